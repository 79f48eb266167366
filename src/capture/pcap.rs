//! pcap files: the file header in all its known variants, and packet records.
//!
//! The format is that of draft-ietf-opsawg-pcap. The variants are those that Wireshark reads:
//! nanoseconds; two modified record headers under one magic number (Kuznetsov's patches); two under
//! the standard one (the earliest such patch, and Nokia's); IXIA's; AIX's; and the swapped lengths
//! of old versions. If variants share a magic number, `pcap_variant` decides by the records.

use super::Time;
use super::bytes::Endianness;
use super::clock::TickClock;
use super::error::{CaptureProblem, Fault, ReadResult};
use super::input::{BufferRange, Input};
use super::pcap_variant::{self, Variant};

/// The longest record in bytes, unless the file's snap length is larger. Wireshark allows as much
/// for Ethernet and raw IP.
const USUAL_LIMIT: u32 = 262_144;
/// The longest record in bytes, whatever the snap length says.
pub(super) const MAX_FRAME: u32 = 16 * 1024 * 1024;

const FILE_HEADER: usize = 24;
/// Bytes that IXIA's variants add to the file header.
const IXIA_EXTRA_HEADER: usize = 4;

const MAGIC_MICROS: u32 = 0xa1b2_c3d4;
const MAGIC_NANOS: u32 = 0xa1b2_3c4d;
/// Kuznetsov's patches.
const MAGIC_MODIFIED: u32 = 0xa1b2_cd34;
const MAGIC_IXIA_MICROS: u32 = 0x1c00_01ab;
const MAGIC_IXIA_NANOS: u32 = 0x1c00_01ac;

const LINKTYPE_NULL: u16 = 0;
const LINKTYPE_ETHERNET: u16 = 1;
const LINKTYPE_TOKEN_RING: u16 = 6;
const LINKTYPE_FDDI: u16 = 10;
/// AIX writes the interface types of RFC 1573 as link types: `ethernet-csmacd`,
/// `iso88025-tokenRing`, `fddi`, `softwareLoopback`.
const AIX_LINK_TYPES: [(u32, u16); 4] =
    [(6, LINKTYPE_ETHERNET), (9, LINKTYPE_TOKEN_RING), (15, LINKTYPE_FDDI), (24, LINKTYPE_NULL)];
/// The version that AIX writes.
const AIX_VERSION: (u16, u16) = (2, 2);
/// The version that tcpdump on DG/UX writes.
const DG_UX_MAJOR: u16 = 543;

/// In the link type field: the lower bits are the link type.
const LINK_TYPE_MASK: u32 = 0xffff;
/// In the link type field: the upper four bits are the length of the frame check sequence.
const FCS_LENGTH_PRESENT: u32 = 0x0400_0000;
const FCS_LENGTH_SHIFT: u32 = 28;
/// The frame check sequence's length counts units of 16 bits.
const FCS_LENGTH_UNIT: u32 = 16;

/// A pcap file whose header was read.
#[derive(Clone, Debug)]
pub(super) struct Pcap {
    pub(super) order: Endianness,
    pub(super) clock: TickClock,
    pub(super) link: u16,
    pub(super) snap_len: u32,
    /// Bits of the frame check sequence at each frame's end, if the header states them.
    pub(super) fcs_len: Option<u8>,
    variant: Variant,
    lengths: Lengths,
}

/// Which of a record's two lengths comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lengths {
    CapturedFirst,
    OriginalFirst,
    /// Version 2.3 was written both ways: the smaller number is the captured length.
    Either,
}

/// A frame in the input, before it gets its number.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoundFrame {
    /// Its number in the capture it was split from, where the file says so.
    pub(super) number: Option<u64>,
    pub(super) time: Time,
    pub(super) link: u16,
    pub(super) wire_len: u32,
    pub(super) place: BufferRange,
}

/// What a magic number implies.
struct Magic {
    order: Endianness,
    clock: TickClock,
    /// The variants that share the magic number, the most common one first.
    variants: &'static [Variant],
    /// Bytes after the standard file header.
    extra: usize,
}

/// Whether these are the first bytes of a pcap file.
pub(super) fn is_pcap(first: &[u8]) -> bool {
    magic(first).is_some()
}

fn magic(first: &[u8]) -> Option<Magic> {
    let bytes = *first.first_chunk::<4>()?;
    let order = match bytes {
        [0xa1, 0xb2, ..] | [0x1c, 0x00, ..] => Endianness::Big,
        _ => Endianness::Little,
    };
    let (clock, variants, extra): (_, &[Variant], _) = match order.u32(bytes) {
        MAGIC_MICROS => (TickClock::MICROS, pcap_variant::STANDARD, 0),
        MAGIC_NANOS => (TickClock::NANOS, pcap_variant::PLAIN, 0),
        MAGIC_MODIFIED => (TickClock::MICROS, pcap_variant::MODIFIED, 0),
        MAGIC_IXIA_MICROS => (TickClock::MICROS, pcap_variant::PLAIN, IXIA_EXTRA_HEADER),
        MAGIC_IXIA_NANOS => (TickClock::NANOS, pcap_variant::PLAIN, IXIA_EXTRA_HEADER),
        _ => return None,
    };
    Some(Magic { order, clock, variants, extra })
}

impl Pcap {
    /// Reads the file header. `plain` means that the input is a plain file, so that reading ahead
    /// to find the variant does not wait for a writer.
    pub(super) fn open(input: &mut Input, plain: bool) -> ReadResult<Self> {
        let have = input.want(FILE_HEADER)?;
        let Some(magic) = magic(input.bytes()) else {
            return Err(Fault::damaged(0, "expected a pcap magic number"));
        };
        let Some([_, version, _, _, snap_len, network]) = magic.order.words::<6>(input.bytes())
        else {
            return Err(Fault::cut(0, "a pcap file header", FILE_HEADER as u64, have as u64));
        };
        let header = FILE_HEADER + magic.extra;
        let have = input.want(header)?;
        if have < header {
            return Err(Fault::cut(0, "a pcap file header", header as u64, have as u64));
        }
        let (major, minor) = version_of(magic.order, version);
        if major < 2 {
            return Err(Fault::damaged(
                4,
                format!("expected pcap of version 2 or later, got {major}.{minor}"),
            ));
        }
        input.take(header, 0, 0);
        let mut pcap = Self {
            order: magic.order,
            clock: magic.clock,
            link: (network & LINK_TYPE_MASK) as u16,
            snap_len,
            fcs_len: fcs_len(network),
            variant: Variant::Plain,
            lengths: lengths_of(major, minor),
        };
        pcap.choose_variant(input, plain, magic.variants, (major, minor) == AIX_VERSION, network);
        Ok(pcap)
    }

    fn choose_variant(
        &mut self,
        input: &mut Input,
        plain: bool,
        variants: &[Variant],
        is_aix_version: bool,
        network: u32,
    ) {
        if self.lengths != Lengths::CapturedFirst {
            // The file is older than every variant but AIX's. AIX shares its version with others;
            // its link types give it away.
            let aix = AIX_LINK_TYPES.iter().find(|(number, _)| *number == network);
            if let (Some((_, link)), true, pcap_variant::STANDARD) = (aix, is_aix_version, variants)
            {
                self.link = *link;
                self.clock = TickClock::NANOS;
                if *link == LINKTYPE_FDDI {
                    self.variant = Variant::AixFddi;
                }
            }
            return;
        }
        if let [only] = variants {
            self.variant = *only;
            return;
        }
        let whole = plain && input.fill();
        let records = input.bytes();
        self.variant = pcap_variant::choose(variants, self.order, self.snap_len, records, whole);
    }

    /// The longest record that is accepted in this file, in bytes.
    fn limit(&self) -> u32 {
        self.snap_len.clamp(USUAL_LIMIT, MAX_FRAME)
    }

    /// Whether `bytes` begin with a whole record.
    pub(super) fn is_at_hand(&self, bytes: &[u8]) -> bool {
        self.order.words::<4>(bytes).is_some_and(|[_, _, first, second]| {
            let (captured, _) = self.lengths.of(first, second);
            bytes.len() >= self.variant.header().saturating_add(captured as usize)
        })
    }

    /// Takes the next record; `None` at the end of the file.
    #[inline]
    pub(super) fn next(&self, input: &mut Input) -> ReadResult<Option<FoundFrame>> {
        let header = self.variant.header();
        let have = input.want(header)?;
        if have < header {
            return if have == 0 {
                Ok(None)
            } else {
                Err(Fault::cut(input.position(), "a packet header", header as u64, have as u64))
            };
        }
        let Some([seconds, fraction, first, second]) = self.order.words::<4>(input.bytes()) else {
            return Ok(None);
        };
        let (captured, original) = self.lengths.of(first, second);
        if captured > self.limit() {
            return Err(Fault::new(
                input.position(),
                CaptureProblem::TooLong {
                    what: "a packet",
                    length: u64::from(captured),
                    limit: u64::from(self.limit()),
                },
            ));
        }
        let length = captured as usize;
        let total = header.saturating_add(length);
        let have = input.want(total)?;
        if have < total {
            return Err(Fault::cut(
                input.position(),
                "a packet",
                length as u64,
                have.saturating_sub(header) as u64,
            ));
        }
        let padding = self.variant.padding().min(length);
        Ok(Some(FoundFrame {
            number: None,
            time: self.time(seconds, fraction),
            link: self.link,
            wire_len: original.saturating_sub(padding as u32),
            place: input.take(
                total,
                header.saturating_add(padding),
                length.saturating_sub(padding),
            ),
        }))
    }

    /// The time of a record. Some programs write fractions of a second or more; they are added to
    /// the seconds.
    #[inline]
    fn time(&self, seconds: u32, fraction: u32) -> Time {
        let fraction = self.clock.time(u64::from(fraction));
        Time { seconds: i64::from(seconds).saturating_add(fraction.seconds), ..fraction }
    }
}

impl Lengths {
    /// The captured length and the original one.
    #[inline]
    fn of(self, first: u32, second: u32) -> (u32, u32) {
        match self {
            Lengths::CapturedFirst => (first, second),
            Lengths::OriginalFirst => (second, first),
            Lengths::Either => (first.min(second), first.max(second)),
        }
    }
}

fn version_of(order: Endianness, word: u32) -> (u16, u16) {
    let upper = (word >> 16) as u16;
    let lower = (word & 0xffff) as u16;
    match order {
        Endianness::Little => (lower, upper),
        Endianness::Big => (upper, lower),
    }
}

fn lengths_of(major: u16, minor: u16) -> Lengths {
    match (major, minor) {
        (2, 0..=2) => Lengths::OriginalFirst,
        (2, 3) => Lengths::Either,
        (DG_UX_MAJOR, _) => Lengths::OriginalFirst,
        _ => Lengths::CapturedFirst,
    }
}

/// The length of the frame check sequence in bits, if the link type field states one.
fn fcs_len(network: u32) -> Option<u8> {
    let present = network & FCS_LENGTH_PRESENT != 0;
    present.then_some(((network >> FCS_LENGTH_SHIFT) * FCS_LENGTH_UNIT) as u8)
}
