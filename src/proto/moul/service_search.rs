//! Finds the service of a connection whose beginning was not captured, by its messages if they are
//! in clear.

use super::super::Opening;
use super::search::{MessageReader, Search, SearchResult, search};
use crate::session::Requests;
use crate::session::Side;
use crate::table::ServiceId;

/// Bytes of a direction that are searched for messages in clear.
pub(super) const MAX_CLEAR_BYTES: usize = 4096;
/// Evidence that is enough to recognise a connection by its messages alone.
const PROOF: i32 = 90;

/// The service whose messages in clear give the most evidence, and whether client and server are
/// swapped.
pub(super) fn find_service(
    opening: &Opening<'_>,
    reader: &mut MessageReader<'_>,
) -> Option<(ServiceId, bool)> {
    let tables = reader.tables;
    let mut best = None;
    for (i, service) in tables.services().iter().enumerate() {
        if service.header.is_empty() || service.name == "handshake" {
            continue;
        }
        let id = ServiceId(i as u32);
        for (swapped, bytes) in
            [(false, [opening.client, opening.server]), (true, [opening.server, opening.client])]
        {
            let sides = [Side::Client, Side::Server].into_iter().zip(bytes);
            let bits: i32 =
                sides.map(|(side, bytes)| weigh_messages(id, side, bytes, reader)).sum();
            if bits >= PROOF && best.is_none_or(|(_, _, most)| bits > most) {
                best = Some((id, swapped, bits));
            }
        }
    }
    best.map(|(id, swapped, _)| (id, swapped))
}

/// The evidence that one direction holds messages of a service.
fn weigh_messages(
    service: ServiceId,
    side: Side,
    bytes: &[u8],
    reader: &mut MessageReader<'_>,
) -> i32 {
    let bytes = bytes.get(..MAX_CLEAR_BYTES).unwrap_or(bytes);
    let asked = Requests::default();
    match search(&Search::anywhere(service, side, bytes, &asked), reader) {
        // Bytes that had to be skipped are evidence against it.
        SearchResult::Join { at, bits, .. } => bits - (at as i32 / 64),
        SearchResult::Nothing { .. } => 0,
    }
}
