//! Recognises a circuit by the content of its datagrams, on any port.
//!
//! A datagram is evidence if its header is plain (no reserved bits, no extra header), its message
//! is known and fills it exactly, and its sequence number and acknowledgements fit a circuit. How
//! much that proves depends on the message number: four bytes of it are proof enough, one byte is
//! not.

use super::datagram::{DatagramForm, DatagramLayouts};
use super::packet::{self, Packet};
use crate::proto::{LazyTables, Opening, Verdict};
use crate::table::{Evaluator, Sender};
use crate::tree::{Severity, Tree};

/// Bits of evidence that one datagram needs to prove a circuit.
const CERTAIN: u32 = 40;
/// Bits of evidence that a datagram of each side needs, to prove a circuit together.
const BOTH: u32 = 33;
/// Bits that are enough if one end is a simulator already seen in the capture.
const MET: u32 = 25;
/// Bits for a message with a number of four bytes that does not fill its datagram exactly.
const UNSOUND: u32 = 30;
/// Bits that are enough at the end of the capture if only one side was captured.
const AT_LAST: u32 = 39;

/// The evidence in one datagram.
#[derive(Clone, Copy, Debug, Default)]
struct Evidence {
    bits: u32,
    viewer: bool,
    simulator: bool,
}

/// Judges a conversation by the latest datagram of each side.
pub fn recognise(opening: &Opening<'_>, tables: &LazyTables) -> Verdict {
    let (Some(client), Some(server)) =
        (evidence_in(opening.client, tables), evidence_in(opening.server, tables))
    else {
        return Verdict::No;
    };
    let most = client.bits.max(server.bits);
    let both = client.bits.min(server.bits) >= BOTH;
    let met = opening.known.is_some_and(|k| k.protocol == "secondlife") && most >= MET;
    if most >= CERTAIN || met || both || opening.last && most >= AT_LAST {
        let swapped = server.viewer || client.simulator;
        let straight = client.viewer || server.simulator;
        // If no message tells which end is the simulator, it is the end that was one before, or
        // else the end with the lower port.
        let lower = opening.ends.client.port() < opening.ends.server.port();
        let guess = opening
            .known
            .filter(|known| known.protocol == "secondlife")
            .map_or(lower, |known| known.swapped);
        return Verdict::Yes { swapped: if swapped || straight { !straight } else { guess } };
    }
    if opening.last { Verdict::No } else { Verdict::Maybe }
}

/// The evidence in a side's datagram. No evidence yet if there is none, `None` if it cannot belong
/// to a circuit.
fn evidence_in(datagram: &[u8], tables: &LazyTables) -> Option<Evidence> {
    if datagram.is_empty() {
        return Some(Evidence::default());
    }
    let plain = evidence(datagram, false, tables);
    if !packet::begins_as_socks(datagram) {
        return plain;
    }
    match (plain, evidence(datagram, true, tables)) {
        (Some(a), Some(b)) => Some(if b.bits > a.bits { b } else { a }),
        (a, b) => a.or(b),
    }
}

/// The evidence in a datagram. `None` if it cannot belong to a circuit.
fn evidence(datagram: &[u8], socks: bool, tables: &LazyTables) -> Option<Evidence> {
    let packet = Packet::parse(datagram, socks)?;
    if packet.flags & 0x0f != 0 || packet.extra != 0 || packet.bad_acks.is_some() {
        return None;
    }
    if packet.has(packet::RESENT) && !packet.has(packet::RELIABLE) {
        return None;
    }
    if !packet.has(packet::ZEROCODED) && !possible(packet::number(packet.coded(datagram))?.0) {
        return None;
    }
    let tables = tables.get();
    let frame = DatagramLayouts::new(tables)?;
    if !frame.plausible(datagram, socks, tables) {
        return None;
    }
    let mut evaluator = Evaluator::default();
    let mut tree = Tree::new();
    let read = frame
        .read(datagram, DatagramForm { socks, sender: 0 }, tables, &mut evaluator, &mut tree)
        .ok()?;
    let usually = tables.message(read.message).and_then(|def| def.usually);
    let viewer = usually == Some(Sender::Client);
    let simulator = usually == Some(Sender::Server);
    // Text in another character set is no evidence against a circuit; a message that is cut off, or
    // that goes on behind its last field, is.
    let sound = tree
        .problems()
        .iter()
        .all(|p| p.bytes.is_some() || p.severity == Severity::Note && p.node != 0);
    if !sound {
        // Some simulators send a byte too many. A number of four bytes proves enough to wait for
        // the next datagrams.
        return (read.number > 0xffff).then_some(Evidence { bits: UNSOUND, viewer, simulator });
    }
    // Four flag bits, a length of 0, and a number that is known.
    let number = match read.number {
        0..=0xff => 3,
        0x100..=0xffff => 12,
        _ => 23,
    };
    let sequence = match read.packet.sequence {
        0..=0xffff => 16,
        0x1_0000..=0x00ff_ffff => 8,
        _ => 0,
    };
    // A longer message that ends exactly with the datagram proves more.
    let fit = match datagram.len() {
        0..=15 => 2,
        16..=31 => 6,
        _ => 8,
    };
    Some(Evidence { bits: 4 + 8 + number + sequence + fit, viewer, simulator })
}

/// Whether a message could have this number at all: a quick check before the tables are loaded.
fn possible(number: u32) -> bool {
    match number {
        0..=0xff => (1..0x80).contains(&number),
        0x100..=0xffff => (0xff01..0xff80).contains(&number),
        _ => (0xffff_0001..0xffff_1000).contains(&number) || number >= 0xffff_fffa,
    }
}
