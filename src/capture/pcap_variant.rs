//! Which pcap this is, where several kinds of record header share one magic number.
//!
//! The method is Wireshark's: read the first few records as each kind in turn, count what makes no sense, and
//! take the kind with the least. A plain file is looked at as far as the buffer goes; of a pipe only what it
//! has brought so far, since it must not be waited for.

use super::bytes::Order;

/// A kind of packet record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variant {
    /// 16 bytes of header, as in every common file.
    Plain,
    /// 24 bytes: an interface index, a protocol and a packet type behind the usual ones (Kuznetsov's patches
    /// of 1999-04-17 and 1999-10-29).
    Modified,
    /// 28 bytes: as before with two more fields and padding (the patch of 1999-09-15, SuSE 6.3).
    ModifiedLonger,
    /// 20 bytes: four unknown ones behind the usual ones (Nokia's firewalls).
    Nokia,
    /// 16 bytes and three bytes of padding before each FDDI frame (AIX).
    AixFddi,
}

/// What nothing shares its magic number with.
pub(super) const PLAIN: &[Variant] = &[Variant::Plain];
/// What may stand under the standard magic number.
pub(super) const STANDARD: &[Variant] = &[Variant::Plain, Variant::Modified, Variant::Nokia];
/// What may stand under the modified one.
pub(super) const MODIFIED: &[Variant] = &[Variant::Modified, Variant::ModifiedLonger];

const RECORDS: usize = 3;
const MAX_CAPTURED: u32 = 262_144;
const MAX_ORIGINAL: u32 = 128 * 1024 * 1024;

impl Variant {
    /// How long the header before each packet is.
    #[inline]
    pub(super) fn header(self) -> usize {
        match self {
            Self::Plain | Self::AixFddi => 16,
            Self::Nokia => 20,
            Self::Modified => 24,
            Self::ModifiedLonger => 28,
        }
    }

    /// How many bytes of a packet are none of its own.
    #[inline]
    pub(super) fn padding(self) -> usize {
        if self == Self::AixFddi { 3 } else { 0 }
    }
}

/// The kind that fits these records best; the first where several fit as well. `whole` says that the records
/// end where `records` does.
pub(super) fn choose(variants: &[Variant], order: Order, snap_len: u32, records: &[u8], whole: bool) -> Variant {
    let score = |variant: &&Variant| misfit(**variant, order, snap_len, records, whole);
    variants.iter().min_by_key(score).copied().unwrap_or(Variant::Plain)
}

/// How much of the first records makes no sense as this kind.
fn misfit(variant: Variant, order: Order, snap_len: u32, mut records: &[u8], whole: bool) -> u32 {
    let mut misfit = 0u32;
    // Running over the end of a whole file says more than an odd field.
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
        let length = order.u32_at(header, 8).unwrap_or(u32::MAX);
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

/// How many fields of one header make no sense.
fn oddities(variant: Variant, order: Order, snap_len: u32, header: &[u8]) -> u32 {
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
        // What has not come yet speaks against nobody.
        _ if header.len() < variant.header() => [false; 3],
        Variant::Plain | Variant::AixFddi => [false; 3],
        Variant::Nokia => [!is_nokia(order.u32_at(header, 16)), false, false],
        Variant::Modified | Variant::ModifiedLonger => {
            let index = order.u32_at(header, 16).unwrap_or(u32::MAX);
            let protocol = order.u16_at(header, 20).unwrap_or(u16::MAX);
            let kind = header.get(22).copied().unwrap_or(u8::MAX);
            [index > 10_000, !is_protocol(protocol), kind > 4]
        }
    };
    let odd = usual.iter().chain(&more).filter(|odd| **odd);
    u32::try_from(odd.count()).unwrap_or(u32::MAX)
}

/// An EtherType, or one of the numbers Linux uses in its place.
fn is_protocol(number: u16) -> bool {
    matches!(number, 0x0600..|0x0060| 0x0200 | 0x0400 | 0..=0x0017)
}

/// The only values seen in the field nobody has explained.
fn is_nokia(field: Option<u32>) -> bool {
    let Some(field) = field else { return false };
    field & 0x0fff_00f0 == 0x0fbf_0000
        && matches!(field >> 28, 0x9 | 0xb)
        && matches!(field >> 12 & 0xf, 0xb | 0xd)
        && matches!(field >> 8 & 0xf, 0x6 | 0x9)
        && matches!(field & 0xf, 0x1 | 0x2)
}
