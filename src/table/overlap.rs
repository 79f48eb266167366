//! Finds redundant recognition rules: if every connection that satisfies one rule satisfies another
//! too, one of the two decides nothing.
//!
//! It compares conditions, not bytes. It knows no protocol.

use super::program::{ProtocolDef, Rule};
use super::text::{Condition, RuleSide};

/// The most pairs of values, ports and conditions that one comparison of rules looks at: a file may
/// have a thousand rules with a thousand values each.
const MAX_PAIRS: usize = 20_000_000;

/// Compares rules, up to a bound.
pub(super) struct RuleComparison {
    /// How many pairs may still be compared.
    left: usize,
}

impl RuleComparison {
    /// A comparison that looked at nothing yet.
    pub(super) fn new() -> RuleComparison {
        RuleComparison { left: MAX_PAIRS }
    }

    /// Whether every connection that satisfies `rule`, of the protocol `of`, also satisfies
    /// `wider`, of the protocol `other`. `false` if it cannot tell, or if the bound is reached.
    pub(super) fn implies(
        &mut self,
        rule: &Rule,
        of: &ProtocolDef,
        wider: &Rule,
        other: &ProtocolDef,
    ) -> bool {
        let pairs = size(rule, of).saturating_mul(size(wider, other));
        self.left = self.left.saturating_sub(pairs);
        self.left > 0 && implies(rule, of, wider, other)
    }
}

/// How many pairs there are to compare in a rule.
fn size(rule: &Rule, of: &ProtocolDef) -> usize {
    let sizes = rule.conditions.iter().map(|condition| match condition {
        Condition::At { values, mask, .. } => {
            values.iter().map(Vec::len).sum::<usize>() + mask.len()
        }
        Condition::Port(listed) => listed.len() + of.ports.len(),
        Condition::Least(_) | Condition::Most(_) | Condition::Fits => 0,
    });
    sizes.map(|size| size + 1).sum()
}

fn implies(rule: &Rule, of: &ProtocolDef, wider: &Rule, other: &ProtocolDef) -> bool {
    let sides =
        wider.side == rule.side || wider.side == RuleSide::Either || rule.side == RuleSide::Both;
    let same = std::ptr::eq(of, other);
    let ports = |listed: &[u16], own: &[u16]| {
        if listed.is_empty() { own.to_vec() } else { listed.to_vec() }
    };
    let follows = |wanted: &Condition| match wanted {
        Condition::Port(listed) => rule.conditions.iter().any(|given| match given {
            Condition::Port(narrower) => {
                let all = ports(listed, &other.ports);
                ports(narrower, &of.ports).iter().all(|port| all.contains(port))
            }
            _ => false,
        }),
        Condition::Fits => {
            same && rule.conditions.iter().any(|given| matches!(given, Condition::Fits))
        }
        _ => rule.conditions.iter().any(|given| follows_from(given, wanted)),
    };
    sides && wider.conditions.iter().all(follows)
}

/// Whether a condition on bytes or their number holds wherever another one does.
fn follows_from(given: &Condition, wanted: &Condition) -> bool {
    match (given, wanted) {
        (Condition::Least(given), Condition::Least(wanted)) => given >= wanted,
        (Condition::Most(given), Condition::Most(wanted)) => given <= wanted,
        (Condition::At { place, values, .. }, Condition::Least(wanted)) => {
            values.iter().all(|value| *place as usize + value.len() >= *wanted as usize)
        }
        (
            Condition::At { place: at, values: given, mask },
            Condition::At { place, values, mask: wanted },
        ) => {
            let Some(skipped) = place.checked_sub(*at).map(|skipped| skipped as usize) else {
                return false;
            };
            given.iter().all(|one| {
                values.iter().any(|other| holds_within(one, mask, skipped, other, wanted))
            })
        }
        _ => false,
    }
}

/// Whether bytes that begin with `given` have `wanted` from the place `skipped` on. Only the bits
/// of the masks count; an empty mask has all.
fn holds_within(
    given: &[u8],
    mask: &[u8],
    skipped: usize,
    wanted: &[u8],
    wanted_mask: &[u8],
) -> bool {
    let bits = |mask: &[u8], at: usize| mask.get(at).copied().unwrap_or(0xff);
    wanted.iter().enumerate().all(|(at, byte)| {
        let asked = bits(wanted_mask, at);
        let known = bits(mask, skipped + at);
        given
            .get(skipped + at)
            .is_some_and(|own| asked & known == asked && (own ^ byte) & asked == 0)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::super::{TableSource, Tables};
    use super::*;

    #[test]
    fn what_is_compared_is_bounded() {
        let text = "protocol t { transport tcp\n recognise client at 0 \"GET\" | \"PUT\"\n \
                    recognise client at 0 \"GE\" | \"PU\" }\nservice s { whole }\n";
        let tables =
            Tables::load("t", vec![TableSource { name: "t".into(), text: text.into() }], &[])
                .unwrap();
        let of = tables.declared().unwrap();
        let [narrow, wide] = of.rules.as_slice() else { panic!() };
        let pairs = (1 + 6) * (1 + 4);
        let mut comparison = RuleComparison { left: 2 * pairs + 1 };
        let answers = [0; 3].map(|_| comparison.implies(narrow, of, wide, of));
        assert_eq!(answers, [true, true, false]);
    }
}
