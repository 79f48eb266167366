//! Pairs the sessions and the streams of two captures.
//!
//! Sessions with the same messages are paired. If that leaves a choice, they are paired in the
//! order in which they began. The streams of two paired sessions are paired the same way, service
//! by service, and then the streams that are left over.

use std::collections::HashMap;

use super::digest::{CaptureDigest, StreamDigest};
use super::hash::secret_half;

/// If there are more sessions or streams than this, only those whose positions differ by less than
/// [`NEAR`] are compared, or by less where there are so many that more than [`TRIES`] would be.
const MANY: usize = 4096;
const NEAR: usize = 48;
const TRIES: usize = 2 << 20;

/// A pair of streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamPair {
    /// The stream of the first capture; `None` where only the second one has it.
    pub(super) a: Option<u32>,
    pub(super) b: Option<u32>,
    /// The sessions that they belong to.
    pub(super) sessions: [Option<u32>; 2],
}

/// Each content, and how often it comes up, in order.
type Contents = Vec<(u64, u32)>;

/// Something that is paired: a session, or a stream.
struct Candidate {
    /// Its place in its capture's list.
    place: u32,
    /// Only candidates with the same one are paired.
    sort: String,
    contents: Contents,
    size: u64,
}

/// Pairs the streams of two captures. Every stream is in exactly one pair.
pub(super) fn pair_streams(a: &CaptureDigest, b: &CaptureDigest) -> Vec<StreamPair> {
    let sessions = pair(&session_candidates(a), &session_candidates(b), true);
    let mut found = Found { a, b, pairs: Vec::new() };
    for [in_a, in_b] in sessions {
        let of = |digest: &CaptureDigest, place: u32| {
            digest.sessions.get(place as usize).map(|s| s.streams.clone())
        };
        let left = of(a, in_a).unwrap_or_default();
        let right = of(b, in_b).unwrap_or_default();
        found.pair(&left, &right, true);
    }
    let [left, right] = found.left_over();
    found.pair(&left, &right, false);
    let [left, right] = found.left_over();
    found.pairs.extend(left.into_iter().map(|place| [Some(place), None]));
    found.pairs.extend(right.into_iter().map(|place| [None, Some(place)]));
    in_order(a, b, found.pairs)
}

struct Found<'c> {
    a: &'c CaptureDigest,
    b: &'c CaptureDigest,
    pairs: Vec<[Option<u32>; 2]>,
}

impl Found<'_> {
    /// Pairs streams of these two lists. With `unlike` also such that have nothing in common but
    /// their service.
    fn pair(&mut self, left: &[u32], right: &[u32], unlike: bool) {
        let paired =
            pair(&stream_candidates(self.a, left), &stream_candidates(self.b, right), unlike);
        self.pairs.extend(paired.into_iter().map(|[a, b]| [Some(a), Some(b)]));
    }

    fn left_over(&self) -> [Vec<u32>; 2] {
        let rest = |side: usize, digest: &CaptureDigest| {
            let mut known = vec![false; digest.streams.len()];
            for place in self.pairs.iter().filter_map(|pair| *pair.get(side)?) {
                if let Some(known) = known.get_mut(place as usize) {
                    *known = true;
                }
            }
            (0..).zip(known).filter(|(_, known)| !known).map(|(place, _)| place).collect()
        };
        [rest(0, self.a), rest(1, self.b)]
    }
}

/// The pairs with their sessions, in the order of the sessions and of the streams in the first
/// capture; those of the second one alone come where their sessions are.
fn in_order(a: &CaptureDigest, b: &CaptureDigest, pairs: Vec<[Option<u32>; 2]>) -> Vec<StreamPair> {
    let sessions = [sessions_of(a), sessions_of(b)];
    let of = |side: usize, stream: Option<u32>| {
        sessions.get(side)?.get(stream? as usize).copied().flatten()
    };
    let mut out: Vec<StreamPair> = pairs
        .into_iter()
        .map(|[x, y]| StreamPair { a: x, b: y, sessions: [of(0, x), of(1, y)] })
        .collect();
    let mut partner: HashMap<u32, u32> = HashMap::new();
    for pair in &out {
        if let [Some(in_a), Some(in_b)] = pair.sessions {
            partner.entry(in_b).or_insert(in_a);
        }
    }
    let first = |digest: &CaptureDigest, stream: Option<u32>| {
        stream
            .and_then(|place| digest.streams.get(place as usize))
            .map_or(0, |stream| stream.first_record)
    };
    out.sort_by_key(|pair| {
        let [in_a, in_b] = pair.sessions;
        let session = in_a.or_else(|| partner.get(&in_b?).copied()).unwrap_or(u32::MAX);
        let alone = u8::from(pair.a.is_none());
        (session, alone, if alone == 0 { first(a, pair.a) } else { first(b, pair.b) })
    });
    out
}

/// The session of each stream.
fn sessions_of(digest: &CaptureDigest) -> Vec<Option<u32>> {
    let mut out = vec![None; digest.streams.len()];
    for (number, session) in (0..).zip(&digest.sessions) {
        for stream in &session.streams {
            if let Some(place) = out.get_mut(*stream as usize) {
                *place = Some(number);
            }
        }
    }
    out
}

fn session_candidates(digest: &CaptureDigest) -> Vec<Candidate> {
    let sessions = (0..).zip(&digest.sessions);
    sessions
        .filter(|(_, session)| !session.streams.is_empty())
        .map(|(place, session)| {
            let streams =
                session.streams.iter().filter_map(|stream| digest.streams.get(*stream as usize));
            candidate(digest, place, session.protocol.clone(), streams)
        })
        .collect()
}

fn stream_candidates(digest: &CaptureDigest, streams: &[u32]) -> Vec<Candidate> {
    let all =
        streams.iter().filter_map(|place| Some((*place, digest.streams.get(*place as usize)?)));
    all.map(|(place, stream)| {
        let sort = format!("{} {} {}", stream.protocol, stream.transport.word(), stream.service);
        candidate(digest, place, sort, [stream].into_iter())
    })
    .collect()
}

fn candidate<'d>(
    digest: &'d CaptureDigest,
    place: u32,
    sort: String,
    streams: impl Iterator<Item = &'d StreamDigest>,
) -> Candidate {
    let messages =
        streams.flat_map(StreamDigest::messages).filter_map(|index| digest.message(index));
    let mut all: Vec<u64> = messages.map(|message| secret_half(message.content)).collect();
    all.sort_unstable();
    let runs = all.chunk_by(|one, next| one == next);
    let contents = runs.filter_map(|run| Some((*run.first()?, run.len() as u32))).collect();
    Candidate { place, sort, contents, size: all.len() as u64 }
}

/// Two candidates that may be a pair, the best pair first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PairTry {
    /// How much they differ, from 0 to 1000.
    unlike: u16,
    /// How far apart their places are.
    apart: u16,
    /// Their places in the two lists.
    at: [u32; 2],
}

/// How much two candidates have in common, from 0 to 1000.
fn likeness(a: &Candidate, b: &Candidate) -> u64 {
    let (small, large) = if a.contents.len() < b.contents.len() { (a, b) } else { (b, a) };
    let common = small
        .contents
        .iter()
        .filter_map(|(key, n)| {
            let at = large.contents.binary_search_by_key(key, |(known, _)| *known).ok()?;
            Some(u64::from(large.contents.get(at)?.1.min(*n)))
        })
        .sum::<u64>();
    common * 2000 / (a.size + b.size).max(1)
}

/// Pairs candidates, the most alike first and then those whose places in the order are nearest.
/// With `unlike` also such that have nothing in common.
fn pair(a: &[Candidate], b: &[Candidate], unlike: bool) -> Vec<[u32; 2]> {
    let near = (TRIES / 2 / a.len().max(1)).clamp(1, NEAR);
    let far = if a.len().saturating_mul(b.len()) > MANY { near } else { usize::MAX };
    // Those of each sort in the second list, in order, and how many of it came in the first one.
    let mut sorts: HashMap<&str, (Vec<usize>, usize)> = HashMap::new();
    for (at, other) in b.iter().enumerate() {
        sorts.entry(&other.sort).or_default().0.push(at);
    }
    let mut tries = Vec::new();
    for (at_a, one) in a.iter().enumerate() {
        let Some((same, rank)) = sorts.get_mut(&*one.sort) else { continue };
        let first = rank.saturating_sub(far);
        for (rank_b, at_b) in
            same.iter().enumerate().skip(first).take(far.saturating_mul(2).saturating_add(1))
        {
            let Some(other) = b.get(*at_b).filter(|_| rank.abs_diff(rank_b) <= far) else {
                continue;
            };
            let alike = likeness(one, other);
            if alike > 0 || unlike {
                tries.push(PairTry {
                    unlike: 1000_u16.saturating_sub(alike as u16),
                    apart: rank.abs_diff(rank_b) as u16,
                    at: [at_a as u32, *at_b as u32],
                });
            }
        }
        *rank += 1;
    }
    tries.sort_unstable();
    let mut used_a = vec![false; a.len()];
    let mut used_b = vec![false; b.len()];
    let mut out = Vec::new();
    for PairTry { at: [at_a, at_b], .. } in tries {
        let (at_a, at_b) = (at_a as usize, at_b as usize);
        let (Some(one), Some(other)) = (used_a.get_mut(at_a), used_b.get_mut(at_b)) else {
            continue;
        };
        if !*one && !*other {
            (*one, *other) = (true, true);
            out.extend(a.get(at_a).zip(b.get(at_b)).map(|(one, other)| [one.place, other.place]));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(place: u32, sort: &str, contents: &[u64]) -> Candidate {
        let contents: Contents = contents.iter().map(|key| (*key, 1)).collect();
        Candidate { place, sort: sort.into(), size: contents.len() as u64, contents }
    }

    #[test]
    fn content_decides_before_order_and_order_where_there_is_none() {
        let a = [of(0, "auth", &[1, 2, 3]), of(1, "auth", &[7, 8]), of(2, "game", &[1])];
        let b = [of(5, "auth", &[7, 9]), of(6, "auth", &[1, 2, 4]), of(7, "file", &[1])];
        assert_eq!(pair(&a, &b, true), [[0, 6], [1, 5]]);
        let a = [of(0, "file", &[]), of(1, "file", &[])];
        let b = [of(3, "file", &[]), of(4, "file", &[])];
        assert_eq!(pair(&a, &b, true), [[0, 3], [1, 4]]);
        assert_eq!(pair(&a, &b, false), [[0_u32; 2]; 0]);
    }
}
