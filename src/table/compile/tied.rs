//! Finds messages that a transaction among their fields links to others.

use super::super::program::*;
use crate::tree::TypeRef;

/// Sets [`MessageDef::tied`] for each of them.
pub(super) fn find(p: &mut Program) {
    let Program { messages, services, layouts, steps: all_steps, types, .. } = p;
    let ties = |ty: &TypeRef| types.get(ty.0 as usize).is_some_and(|def| def.transaction);
    for message in messages {
        let header = services.get(message.service.0 as usize).map_or(&[][..], |service| &service.header);
        let layout = message.layout.and_then(|layout| layouts.get(layout.0 as usize));
        let steps = layout.and_then(|layout| all_steps.get(layout.start as usize..)).unwrap_or(&[]);
        message.tied = header.iter().any(|(_, _, ty)| ties(ty))
            || steps
                .iter()
                .take_while(|op| !matches!(op, LayoutStep::End))
                .any(|op| matches!(op, LayoutStep::Field { ty, .. } if ties(ty)));
    }
}
