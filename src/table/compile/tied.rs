//! Finds messages that a transaction among their fields links to others, or a value that a reply repeats.

use super::super::program::*;

/// Sets [`MessageDef::tied`] and [`MessageDef::echoes`] for each of them.
pub(super) fn find(p: &mut Program) {
    let Program { messages, services, layouts, steps: all_steps, types, .. } = p;
    let ties = |def: &TypeDef| def.transaction;
    let echoes = |def: &TypeDef| def.facts.as_ref().is_some_and(|facts| facts.echoed);
    for message in messages {
        let header = services.get(message.service.0 as usize).map_or(&[][..], |service| &service.header);
        let layout = message.layout.and_then(|layout| layouts.get(layout.0 as usize));
        let steps = layout.and_then(|layout| all_steps.get(layout.start as usize..)).unwrap_or(&[]);
        let of_field = |op: &LayoutStep| if let LayoutStep::Field { ty, .. } = op { Some(*ty) } else { None };
        let fields = || {
            let steps = steps.iter().take_while(|op| !matches!(op, LayoutStep::End)).filter_map(of_field);
            let all = header.iter().map(|(_, _, ty)| *ty).chain(steps);
            all.filter_map(|ty| types.get(ty.0 as usize))
        };
        (message.tied, message.echoes) = (fields().any(ties), fields().any(echoes));
    }
}
