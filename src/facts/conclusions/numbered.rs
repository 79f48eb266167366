//! What sessions tell of protocols with sequence numbers of their own: counts for each side.

use super::EndedStream;
use crate::session::{Learned, LearnedValue, Side};

/// Packets of one side, one after the other, behind which the other side is taken to be missing.
pub(super) const ALONE: u64 = 3;

/// Which side a fact is about, if it is about one.
pub(super) fn side_of(learned: &Learned) -> Option<Side> {
    let own = learned.name.get(learned.heading..).unwrap_or_default();
    [Side::Client, Side::Server].into_iter().find(|side| own.ends_with(side.word()))
}

/// The sum of the counts of one name.
pub(super) fn learned_count(learned: &Learned, wanted: &str) -> u64 {
    let facts = learned.facts.iter().filter(|(key, _)| *key == wanted);
    let counts = facts.map(|(_, value)| match value {
        LearnedValue::Count(count) => *count,
        LearnedValue::Text(_) | LearnedValue::Microseconds(_) => 0,
    });
    counts.sum()
}

/// How many datagrams of a side were acknowledged after its last one that was captured, if nothing
/// more of the side was.
pub(super) fn missing_at_end(ended: &EndedStream<'_>, side: Side) -> u64 {
    count_of_silent(ended, side, "unseen_at_end")
}

/// How many messages a side must have acknowledged after its last datagram that was captured, since
/// the other side did not send them again.
pub(super) fn missing_acks(ended: &EndedStream<'_>, side: Side) -> u64 {
    count_of_silent(ended, side, "missing_acks")
}

/// A count of a side, if many packets of the other one came behind its last one.
fn count_of_silent(ended: &EndedStream<'_>, side: Side, wanted: &str) -> u64 {
    let silent = ended.traffic.sides.get(side.index()).is_some_and(|own| own.unheard >= ALONE);
    let own = ended.learned.iter().filter(|one| one.of_stream && side_of(one) == Some(side));
    let count: u64 = own.map(|learned| learned_count(learned, wanted)).sum();
    if silent { count } else { 0 }
}
