//! Whether a UDP conversation is a circuit, told by content on any port.
//!
//! A datagram says so where its header is plain (no reserved bits, no extra header), its message is known and fills it
//! exactly, and its sequence number and acknowledgements are those of a circuit. How much that proves depends on the message
//! number: four bytes of it are proof enough, one byte is not.

use super::datagram::Frame;
use super::packet::{self, Packet};
use crate::proto::{LazyTables, Opening, Verdict};
use crate::table::Evaluator;
use crate::tree::{Severity, Tree};

/// Numbers of frequent messages that only a viewer sends.
const VIEWERS: &[u32] = &[
    0x4,         // AgentUpdate
    0x5,         // AgentAnimation
    0x8,         // RequestImage
    0xff02,      // MultipleObjectUpdate
    0xff03,      // RequestMultipleObjects
    0xff11,      // ViewerEffect
    0xffff_0003, // UseCircuitCode
    0xffff_0050, // ChatFromViewer
    0xffff_0051, // AgentThrottle
    0xffff_0052, // AgentFOV
    0xffff_0053, // AgentHeightWidth
    0xffff_0054, // AgentSetAppearance
    0xffff_0060, // ObjectImage
    0xffff_006e, // ObjectSelect
    0xffff_0095, // RegionHandshakeReply
    0xffff_00eb, // UUIDNameRequest
    0xffff_00f9, // CompleteAgentMovement
    0xffff_00fc, // LogoutRequest
    0xffff_0139, // MoneyBalanceRequest
    0xffff_017d, // AgentWearablesRequest
    0xffff_017f, // AgentIsNowWearing
    0xffff_0180, // AgentCachedTexture
    0xffff_0182, // AgentDataUpdateRequest
    0xffff_0197, // MapBlockRequest
];
/// Numbers of frequent messages that only a simulator sends.
const SIMULATORS: &[u32] = &[
    0x9,         // ImageData
    0xa,         // ImagePacket
    0xb,         // LayerData
    0xc,         // ObjectUpdate
    0xd,         // ObjectUpdateCompressed
    0xe,         // ObjectUpdateCached
    0xf,         // ImprovedTerseObjectUpdate
    0x10,        // KillObject
    0x14,        // AvatarAnimation
    0x17,        // ParcelProperties
    0x1d,        // SoundTrigger
    0xff06,      // CoarseLocationUpdate
    0xff07,      // CrossedRegion
    0xff09,      // ObjectProperties
    0xff0d,      // AttachedSound
    0xff0f,      // PreloadSound
    0xffff_0045, // TeleportFinish
    0xffff_0049, // TeleportStart
    0xffff_008a, // HealthMessage
    0xffff_008b, // ChatFromSimulator
    0xffff_008c, // SimStats
    0xffff_0094, // RegionHandshake
    0xffff_0096, // SimulatorViewerTimeMessage
    0xffff_0097, // EnableSimulator
    0xffff_0098, // DisableSimulator
    0xffff_009e, // AvatarAppearance
    0xffff_00c4, // ParcelOverlay
    0xffff_00ec, // UUIDNameReply
    0xffff_00fa, // AgentMovementComplete
    0xffff_00fd, // LogoutReply
    0xffff_0116, // InventoryDescendents
    0xffff_0142, // OnlineNotification
    0xffff_0143, // OfflineNotification
    0xffff_017e, // AgentWearablesUpdate
    0xffff_0181, // AgentCachedTextureResponse
    0xffff_0183, // AgentDataUpdate
    0xffff_0199, // MapBlockReply
];

/// Bits of evidence from which one datagram proves a circuit.
const CERTAIN: u32 = 40;
/// Bits that the datagrams of both sides have to bring each, where neither is proof alone.
const BOTH: u32 = 33;
/// Bits that are enough where one of the ends is a simulator that was met before.
const MET: u32 = 25;
/// Bits that a message with a number of four bytes brings where it does not fill its datagram exactly.
const UNSOUND: u32 = 30;
/// Bits from which a datagram is believed where only one side was captured and nothing more will come.
const AT_LAST: u32 = 39;

/// What one datagram says.
#[derive(Clone, Copy, Debug, Default)]
struct Evidence {
    bits: u32,
    viewer: bool,
    simulator: bool,
}

/// Judges a conversation by the latest datagram of each side.
pub fn recognise(opening: &Opening<'_>, tables: &LazyTables) -> Verdict {
    let (Some(client), Some(server)) = (judge(opening.client, tables), judge(opening.server, tables)) else {
        return Verdict::No;
    };
    let most = client.bits.max(server.bits);
    let both = client.bits.min(server.bits) >= BOTH;
    let met = opening.known.is_some_and(|k| k.protocol == "secondlife") && most >= MET;
    if most >= CERTAIN || met || both || opening.last && most >= AT_LAST {
        let swapped = server.viewer || client.simulator;
        let straight = client.viewer || server.simulator;
        return Verdict::Yes { swapped: swapped && !straight };
    }
    if opening.last { Verdict::No } else { Verdict::Maybe }
}

/// What a side's datagram proves: nothing yet where there is none, `None` where it cannot be one of a circuit.
fn judge(datagram: &[u8], tables: &LazyTables) -> Option<Evidence> {
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

/// What a datagram proves; `None` where it cannot be one of a circuit.
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
    let frame = Frame::new(tables)?;
    if !frame.plausible(datagram, socks, tables) {
        return None;
    }
    let (mut evaluator, mut tree) = (Evaluator::default(), Tree::new());
    let read = frame.read(datagram, (socks, 0), tables, &mut evaluator, &mut tree).ok()?;
    let viewer = VIEWERS.contains(&read.number);
    let simulator = SIMULATORS.contains(&read.number);
    // Text in another character set says nothing against a circuit; a message that is cut off, or goes on behind its last field, does.
    let sound = tree.problems().iter().all(|p| p.bytes.is_some() || p.severity == Severity::Note && p.node != 0);
    if !sound {
        // Simulators do send a byte too many: where the number alone proves much, the next datagrams are waited for.
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
    // A longer message that is filled to its last byte proves more.
    let fit = match datagram.len() {
        0..=15 => 2,
        16..=31 => 6,
        _ => 8,
    };
    Some(Evidence { bits: 4 + 8 + number + sequence + fit, viewer, simulator })
}

/// Whether a message could have this number at all: a quick look before the tables are asked.
fn possible(number: u32) -> bool {
    match number {
        0..=0xff => (1..0x80).contains(&number),
        0x100..=0xffff => (0xff01..0xff80).contains(&number),
        _ => (0xffff_0001..0xffff_1000).contains(&number) || number >= 0xffff_fffa,
    }
}
