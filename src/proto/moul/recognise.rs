//! Is it MOUL? The connect packet tells, and nothing but the connect packet does.

use super::super::{LazyTables, Opening, Verdict};
use super::PORT;
use super::rejoin::service_of;
use super::search::Bench;
use crate::table::Evaluator;
use crate::tree::Tree;

/// The header's length, which the packet itself states.
const HEADER: usize = 31;

/// Connection types with the length of their data, and where the data begins with its own length, that it does.
/// Types without a known layout may carry anything.
fn data_of(connection_type: u8) -> Option<(usize, bool)> {
    match connection_type {
        10 | 22 => Some((20, true)),
        11 => Some((36, true)),
        16 => Some((12, true)),
        20 => Some((4, true)),
        21 => Some((4, false)),
        1 | 12..=15 | 17..=19 | 97 => Some((0, false)),
        _ => None,
    }
}

/// Whether a connection begins as MOUL connections do, or, where its beginning was not captured, goes on as they do.
pub(super) fn tcp(opening: &Opening<'_>, tables: &LazyTables) -> Verdict {
    match (connect_packet(opening.client), connect_packet(opening.server)) {
        (Verdict::Yes { .. }, _) => return Verdict::Yes { swapped: false },
        (_, Verdict::Yes { .. }) if !opening.whole => return Verdict::Yes { swapped: true },
        (Verdict::Maybe, _) if !opening.last => return Verdict::Maybe,
        (_, Verdict::Maybe) if !opening.last && !opening.whole => return Verdict::Maybe,
        _ => {}
    }
    if is_http(opening.client) && opening.ends.server.port() == PORT {
        return Verdict::Yes { swapped: false };
    }
    if opening.whole {
        return Verdict::No;
    }
    if let Some(known) = opening.known.filter(|k| k.protocol == "moul") {
        return Verdict::Yes { swapped: known.swapped };
    }
    if !opening.last {
        return Verdict::Maybe;
    }
    joined(opening, tables)
}

/// Whether a connection's bytes hold MOUL messages in clear somewhere.
fn joined(opening: &Opening<'_>, tables: &LazyTables) -> Verdict {
    let mut bench = Bench {
        tables: tables.get(),
        evaluator: &mut Evaluator::default(),
        tree: &mut Tree::new(),
        max_message: 1 << 20,
    };
    match service_of(opening, &mut bench) {
        Some((_, swapped)) => Verdict::Yes { swapped },
        None => Verdict::No,
    }
}

/// Whether bytes begin with a connect packet, or may do so.
pub(super) fn begins(bytes: &[u8]) -> bool {
    connect_packet(bytes) != Verdict::No || is_http(bytes)
}

/// Whether bytes begin with a connect packet.
fn connect_packet(bytes: &[u8]) -> Verdict {
    let Some((kind, rest)) = bytes.split_first() else { return Verdict::Maybe };
    let Some((data, counted)) = data_of(*kind) else { return Verdict::No };
    let header = (HEADER as u16).to_le_bytes();
    if !rest.iter().zip(header).all(|(a, b)| *a == b) {
        return Verdict::No;
    }
    // The build type and the branch are small numbers; the product differs from game to game.
    let small = [bytes.get(8..11), bytes.get(12..15)];
    if small.into_iter().flatten().any(|high| high.iter().any(|b| *b != 0)) {
        return Verdict::No;
    }
    let length = (data as u32).to_le_bytes();
    match bytes.get(HEADER..HEADER + 4) {
        Some(stated) if counted && stated != length => Verdict::No,
        _ if bytes.len() < HEADER + if counted { 4 } else { 0 } => Verdict::Maybe,
        _ => Verdict::Yes { swapped: false },
    }
}

/// Whether bytes begin with an HTTP request: MOSS answers those on the game's own port.
pub(super) fn is_http(bytes: &[u8]) -> bool {
    [&b"GET "[..], b"HEAD ", b"POST "].iter().any(|method| bytes.starts_with(method))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::table::parse_hex;

    const AUTH: &str =
        "0a 1f00 96030000 32000000 01000000 219848ea356cd04b9daebb17c585e680 14000000 00000000000000000000000000000000";

    #[test]
    fn a_connect_packet_is_known_when_its_length_is_there() {
        let bytes = parse_hex(AUTH).unwrap();
        for cut in 0..35 {
            assert_eq!(connect_packet(&bytes[..cut]), Verdict::Maybe, "{cut} bytes");
        }
        assert_eq!(connect_packet(&bytes[..35]), Verdict::Yes { swapped: false });
    }

    #[test]
    fn what_only_looks_alike_is_not_taken() {
        let mut bytes = parse_hex(AUTH).unwrap();
        bytes[31] = 21;
        assert_eq!(connect_packet(&bytes), Verdict::No);
        assert_eq!(connect_packet(b"GET / HTTP/1.1"), Verdict::No);
        assert_eq!(connect_packet(&[10, 31, 1]), Verdict::No);
    }
}
