//! Finds out which kind of record header a pcap has if several kinds share its magic number.
//!
//! The method is Wireshark's: read the first few records as each kind in turn, count implausible
//! fields, and take the kind with the fewest. The caller passes what is in its buffer: of a pipe
//! only what has already come.

use super::bytes::Endianness;

/// A kind of packet record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variant {
    /// 16 bytes of header, as in every common file.
    Plain,
    /// 24 bytes: the standard ones, then an interface index, a protocol and a packet type
    /// (Kuznetsov's patches of 1999-04-17 and 1999-10-29).
    Modified,
    /// 28 bytes: as [`Modified`](Self::Modified), then two more fields and padding (the patch of
    /// 1999-09-15, SuSE 6.3).
    ModifiedLonger,
    /// 20 bytes: the standard ones, then four whose meaning is not known (Nokia's firewalls).
    Nokia,
    /// 16 bytes, and three bytes of padding before each FDDI frame (AIX).
    AixFddi,
}

/// The kinds under a magic number that only the plain record header uses.
pub(super) const PLAIN: &[Variant] = &[Variant::Plain];
/// The kinds under the standard magic number.
pub(super) const STANDARD: &[Variant] = &[Variant::Plain, Variant::Modified, Variant::Nokia];
/// The kinds under the magic number of Kuznetsov's patches.
pub(super) const MODIFIED: &[Variant] = &[Variant::Modified, Variant::ModifiedLonger];

/// How many records are tried.
const RECORDS: usize = 3;
/// A larger captured length is implausible, in bytes.
const MAX_CAPTURED: u32 = 262_144;
/// A larger original length is implausible, in bytes.
const MAX_ORIGINAL: u32 = 128 * 1024 * 1024;
/// A larger interface index in a modified header is implausible.
const MAX_INTERFACE_INDEX: u32 = 10_000;
/// The largest packet type of Linux (`PACKET_OUTGOING`).
const MAX_PACKET_TYPE: u8 = 4;

// Offsets of fields in a record header.
const CAPTURED_LENGTH: usize = 8;
const NOKIA_FIELD: usize = 16;
const INTERFACE_INDEX: usize = 16;
const LINK_PROTOCOL: usize = 20;
const PACKET_TYPE: usize = 22;

impl Variant {
    /// Length of the header before each packet, in bytes.
    #[inline]
    pub(super) fn header(self) -> usize {
        match self {
            Self::Plain | Self::AixFddi => 16,
            Self::Nokia => 20,
            Self::Modified => 24,
            Self::ModifiedLonger => 28,
        }
    }

    /// Bytes of padding at the start of each packet.
    #[inline]
    pub(super) fn padding(self) -> usize {
        if self == Self::AixFddi { 3 } else { 0 }
    }
}

/// The kind that fits `records` best, the first of `variants` if several fit equally well. `whole`
/// means that the file ends where `records` does.
pub(super) fn choose(
    variants: &[Variant],
    order: Endianness,
    snap_len: u32,
    records: &[u8],
    whole: bool,
) -> Variant {
    let score = |variant: &&Variant| misfit(**variant, order, snap_len, records, whole);
    variants.iter().min_by_key(score).copied().unwrap_or(Variant::Plain)
}

/// How many fields of the first records are implausible if they are of this kind.
fn misfit(
    variant: Variant,
    order: Endianness,
    snap_len: u32,
    mut records: &[u8],
    whole: bool,
) -> u32 {
    let mut misfit = 0u32;
    // A record that runs over the end of the file counts more than an implausible field.
    let overrun = if whole { 2 } else { 0 };
    for _ in 0..RECORDS {
        if records.is_empty() {
            break;
        }
        let header = records.get(..variant.header()).unwrap_or(records);
        misfit = misfit.saturating_add(oddities(variant, order, snap_len, header));
        let Some((_, rest)) = records.split_at_checked(variant.header()) else {
            return misfit.saturating_add(overrun);
        };
        let length = order.u32_at(header, CAPTURED_LENGTH).unwrap_or(u32::MAX);
        if length > MAX_CAPTURED {
            break;
        }
        let Some((_, rest)) = rest.split_at_checked(length as usize) else {
            return misfit.saturating_add(overrun);
        };
        records = rest;
    }
    misfit
}

/// How many fields of one header are implausible.
fn oddities(variant: Variant, order: Endianness, snap_len: u32, header: &[u8]) -> u32 {
    let Some([_, micros, captured, original]) = order.words::<4>(header) else {
        return 0;
    };
    let usual = [
        micros >= 1_000_000,
        captured > MAX_CAPTURED,
        snap_len > 0 && captured > snap_len,
        original > MAX_ORIGINAL,
        captured > original,
    ];
    let more = match variant {
        // Missing bytes are not scored.
        _ if header.len() < variant.header() => [false; 3],
        Variant::Plain | Variant::AixFddi => [false; 3],
        Variant::Nokia => [!is_nokia(order.u32_at(header, NOKIA_FIELD)), false, false],
        Variant::Modified | Variant::ModifiedLonger => {
            let index = order.u32_at(header, INTERFACE_INDEX).unwrap_or(u32::MAX);
            let protocol = order.u16_at(header, LINK_PROTOCOL).unwrap_or(u16::MAX);
            let kind = header.get(PACKET_TYPE).copied().unwrap_or(u8::MAX);
            [index > MAX_INTERFACE_INDEX, !is_protocol(protocol), kind > MAX_PACKET_TYPE]
        }
    };
    let odd = usual.iter().chain(&more).filter(|odd| **odd);
    u32::try_from(odd.count()).unwrap_or(u32::MAX)
}

/// Whether a number is an EtherType, or one of the numbers that Linux uses in place of one.
fn is_protocol(number: u16) -> bool {
    matches!(number, 0x0600..|0x0060| 0x0200 | 0x0400 | 0..=0x0017)
}

/// Whether Nokia's undocumented field has one of the values that are known from captures.
fn is_nokia(field: Option<u32>) -> bool {
    let Some(field) = field else { return false };
    field & 0x0fff_00f0 == 0x0fbf_0000
        && matches!(field >> 28, 0x9 | 0xb)
        && matches!(field >> 12 & 0xf, 0xb | 0xd)
        && matches!(field >> 8 & 0xf, 0x6 | 0x9)
        && matches!(field & 0xf, 0x1 | 0x2)
}
