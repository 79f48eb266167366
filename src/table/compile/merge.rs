//! Merges the modifiers of a type's declaration and of the field that uses it. Those of the field
//! win.

use super::super::text::{FactMods, Mods};

pub(super) fn merge(own: &Mods, outer: &Mods) -> Mods {
    Mods {
        max: outer.max.or(own.max),
        expect: outer.expect.clone().or_else(|| own.expect.clone()),
        shown: outer.shown.clone().or_else(|| own.shown.clone()),
        ids: if outer.ids.is_empty() { own.ids.clone() } else { outer.ids.clone() },
        refers: if outer.ids.is_empty() { own.refers } else { outer.refers },
        names: if outer.names.is_empty() { own.names.clone() } else { outer.names.clone() },
        secret: own.secret || outer.secret,
        opaque: own.opaque || outer.opaque,
        unexplained: own.unexplained || outer.unexplained,
        transaction: own.transaction || outer.transaction,
        terminated: own.terminated || outer.terminated,
        trimmed: own.trimmed || outer.trimmed,
        optional: own.optional || outer.optional,
        dialects: own.dialects || outer.dialects,
        checksum: outer.checksum.clone().or_else(|| own.checksum.clone()),
        facts: merge_facts(&own.facts, &outer.facts),
    }
}

fn merge_facts(own: &FactMods, outer: &FactMods) -> FactMods {
    let outer_says = !outer.refuses_unless.is_empty() || !outer.refuses_unless_texts.is_empty();
    let unless = if outer_says { outer } else { own };
    FactMods {
        own: own.own || outer.own,
        place: outer.place.or(own.place),
        leaves_unless: if outer.leaves_unless.is_empty() {
            own.leaves_unless.clone()
        } else {
            outer.leaves_unless.clone()
        },
        volatile: own.volatile || outer.volatile,
        echoed: own.echoed || outer.echoed,
        unordered: own.unordered || outer.unordered,
        continues: own.continues || outer.continues,
        local: own.local || outer.local,
        same: outer.same.clone().or_else(|| own.same.clone()),
        person: outer.person.clone().or_else(|| own.person.clone()),
        chat: outer.chat.clone().or_else(|| own.chat.clone()),
        file: outer.file.clone().or_else(|| own.file.clone()),
        graph: outer.graph.clone().or_else(|| own.graph.clone()),
        share: outer.share.clone().or_else(|| own.share.clone()),
        change: outer.change.clone().or_else(|| own.change.clone()),
        refuses_unless: unless.refuses_unless.clone(),
        refuses_unless_texts: unless.refuses_unless_texts.clone(),
        identity: if outer.identity.is_empty() {
            own.identity.clone()
        } else {
            outer.identity.clone()
        },
    }
}
