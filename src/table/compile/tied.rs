//! Finds messages that a transaction among their fields links to others, or a value that a reply
//! repeats; and those that bring a share of a reply.

use super::super::program::*;

/// Sets [`MessageDef::tied`], [`MessageDef::echoes`] and [`MessageDef::shares`] for each of them.
/// What is echoed may be in a structure among the fields.
pub(super) fn find(p: &mut Program) {
    let Program { messages, services, layouts, steps: all_steps, types, .. } = p;
    for message in messages {
        let header =
            services.get(message.service.0 as usize).map_or(&[][..], |service| &service.header);
        let layout = message.layout.and_then(|layout| layouts.get(layout.0 as usize));
        let steps = layout.and_then(|layout| all_steps.get(layout.start as usize..)).unwrap_or(&[]);
        let of_field = |op: &LayoutStep| {
            if let LayoutStep::Field { name, ty, .. } = op { Some((*name, *ty)) } else { None }
        };
        let fields = || {
            let steps =
                steps.iter().take_while(|op| !matches!(op, LayoutStep::End)).filter_map(of_field);
            let all = header.iter().map(|(_, name, ty)| (*name, *ty)).chain(steps);
            all.filter_map(|(name, ty)| Some((name, types.get(ty.0 as usize)?)))
        };
        let facts = || fields().filter_map(|(name, def)| Some((name, def.facts.as_deref()?)));
        let share =
            |role| facts().find(|(_, facts)| facts.share == Some(role)).map(|(name, _)| name);
        message.tied = fields().any(|(_, def)| def.transaction);
        let inner = fields().filter_map(|(_, def)| match def.read {
            ReadAs::Layout { layout, .. } => layouts.get(layout.0 as usize),
            _ => None,
        });
        let inner = inner.filter_map(|layout| all_steps.get(layout.start as usize..));
        let inner = inner
            .flat_map(|steps| steps.iter().take_while(|op| !matches!(op, LayoutStep::End)))
            .filter_map(of_field)
            .filter_map(|(_, ty)| types.get(ty.0 as usize)?.facts.as_deref());
        let mut inner = inner.map(|facts| facts.echoed);
        message.echoes = facts().any(|(_, facts)| facts.echoed) || inner.any(|echoed| echoed);
        message.shares = share(ShareRole::Part).zip(share(ShareRole::Whole));
    }
}
