//! Recognises MOUL: by the connect packet if the connection's beginning was captured, otherwise by
//! its messages.

use super::super::{LazyTables, Opening, Verdict};
use super::search::MessageReader;
use super::service_search::find_service;
use super::{PORT, net_log};
use crate::table::Evaluator;
use crate::tree::Tree;

/// The header's length, which the packet itself states.
const HEADER: usize = 31;

/// The product that every known shard names: UUID ea489821-6c35-4bd0-9dae-bb17c585e680, in the
/// order of its bytes on the wire.
const PRODUCT: [u8; 16] = [
    0x21, 0x98, 0x48, 0xea, 0x35, 0x6c, 0xd0, 0x4b, 0x9d, 0xae, 0xbb, 0x17, 0xc5, 0x85, 0xe6, 0x80,
];
/// Offset of the product in the header.
const PRODUCT_AT: usize = 15;

/// The length of the data that a connection type carries, and whether the data begins with its own
/// length. The data of types without a known layout has any length.
fn data_length(connection_type: u8) -> Option<(usize, bool)> {
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

/// Whether a connection begins like a MOUL connection or, if its beginning was not captured,
/// continues like one.
pub(super) fn recognise_tcp(opening: &Opening<'_>, tables: &LazyTables) -> Verdict {
    if let Some(expected) = net_log::expected(opening.ends) {
        return Verdict::Yes { swapped: expected.swapped };
    }
    match (recognise_connect_packet(opening.client), recognise_connect_packet(opening.server)) {
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
    recognise_joined(opening, tables)
}

/// Whether a connection's bytes hold MOUL messages in clear somewhere.
fn recognise_joined(opening: &Opening<'_>, tables: &LazyTables) -> Verdict {
    let mut reader = MessageReader {
        tables: tables.get(),
        evaluator: &mut Evaluator::default(),
        tree: &mut Tree::new(),
        max_message: 1 << 20,
    };
    match find_service(opening, &mut reader) {
        Some((_, swapped)) => Verdict::Yes { swapped },
        None => Verdict::No,
    }
}

/// Whether bytes begin with a connect packet, or may do so.
pub(super) fn may_begin(bytes: &[u8]) -> bool {
    recognise_connect_packet(bytes) != Verdict::No || is_http(bytes)
}

/// Whether bytes begin with a connect packet.
fn recognise_connect_packet(bytes: &[u8]) -> Verdict {
    let Some((kind, rest)) = bytes.split_first() else { return Verdict::Maybe };
    let Some((data, counted)) = data_length(*kind) else { return Verdict::No };
    let header = (HEADER as u16).to_le_bytes();
    if !rest.iter().zip(header).all(|(a, b)| *a == b) {
        return Verdict::No;
    }
    let length = (data as u32).to_le_bytes();
    match bytes.get(HEADER..HEADER + 4) {
        Some(stated) if counted && stated != length => return Verdict::No,
        // The type, the header's length and the length of the data are consistent: these 7 bytes
        // hardly agree by chance.
        Some(_) if counted => return Verdict::Yes { swapped: false },
        _ => {}
    }
    match header_fits(bytes) {
        Some(false) if !counted => Verdict::No,
        Some(_) if !counted && bytes.len() >= HEADER => Verdict::Yes { swapped: false },
        _ => Verdict::Maybe,
    }
}

/// Whether the rest of a header fits a connect packet. Either it names the product of all known
/// shards, or its build type and branch are below 256, as usual with other products. `None` if more
/// bytes are needed.
fn header_fits(bytes: &[u8]) -> Option<bool> {
    let product = bytes.get(PRODUCT_AT..).unwrap_or(&[]);
    if !product.iter().zip(PRODUCT).all(|(a, b)| *a == b) || product.is_empty() {
        let high = [bytes.get(8..11), bytes.get(12..15)].into_iter().flatten().flatten();
        let small = high.copied().all(|byte| byte == 0);
        return if product.is_empty() && !small { None } else { Some(small) };
    }
    (product.len() >= PRODUCT.len()).then_some(true)
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

    const AUTH: &str = "0a 1f00 96030000 32000000 01000000 219848ea356cd04b9daebb17c585e680 \
                        14000000 00000000000000000000000000000000";

    #[test]
    fn a_connect_packet_is_known_when_its_length_is_there() {
        let bytes = parse_hex(AUTH).unwrap();
        for cut in 0..35 {
            assert_eq!(recognise_connect_packet(&bytes[..cut]), Verdict::Maybe, "{cut} bytes");
        }
        assert_eq!(recognise_connect_packet(&bytes[..35]), Verdict::Yes { swapped: false });
    }

    #[test]
    fn a_branch_or_build_type_above_255_is_known_by_the_product_or_by_the_length_of_the_data() {
        for (build_type, branch) in
            [("2c010000", "01000000"), ("32000000", "00010000"), ("ffffffff", "ffffffff")]
        {
            let header =
                format!("1f00 96030000 {build_type} {branch} 219848ea356cd04b9daebb17c585e680");
            for (kind, data) in [("0a", "14000000"), ("0c", "")] {
                let bytes = parse_hex(&format!("{kind} {header} {data}")).unwrap();
                assert_eq!(
                    recognise_connect_packet(&bytes),
                    Verdict::Yes { swapped: false },
                    "{kind} {build_type} {branch}"
                );
                for cut in 0..HEADER {
                    assert_eq!(
                        recognise_connect_packet(&bytes[..cut]),
                        Verdict::Maybe,
                        "{cut} bytes of {kind}"
                    );
                }
            }
            let other = parse_hex(&format!("0c {header}").replace("219848ea", "01010101")).unwrap();
            assert_eq!(
                recognise_connect_packet(&other),
                Verdict::No,
                "of another product, without data"
            );
        }
    }

    #[test]
    fn what_only_looks_alike_is_not_taken() {
        let mut bytes = parse_hex(AUTH).unwrap();
        bytes[31] = 21;
        assert_eq!(recognise_connect_packet(&bytes), Verdict::No);
        assert_eq!(recognise_connect_packet(b"GET / HTTP/1.1"), Verdict::No);
        assert_eq!(recognise_connect_packet(&[10, 31, 1]), Verdict::No);
    }
}
