//! pcap files: the file header in all its known variants, and packet records.
//!
//! The format is that of draft-ietf-opsawg-pcap; the variants are those Wireshark reads: nanoseconds, two
//! modified record headers under one magic number (Kuznetsov's patches), two under the standard one (the
//! earliest such patch, and Nokia's), IXIA's, AIX's, and the swapped lengths of old versions. Which variant it
//! is only the records can tell where magic numbers are shared; see `pcap_variant`.

use super::Time;
use super::bytes::Order;
use super::clock::Clock;
use super::error::{Fault, Problem, Step};
use super::input::{Input, Place};
use super::pcap_variant::{self, Variant};

/// No record is longer, unless the file's own snap length says so. What Wireshark allows a record of
/// Ethernet or raw IP.
const USUAL_LIMIT: u32 = 262_144;
/// No record may be longer, whatever the snap length says.
pub(super) const MAX_FRAME: u32 = 16 * 1024 * 1024;

const FILE_HEADER: usize = 24;
/// `LINKTYPE_FDDI`.
const FDDI: u16 = 10;

/// A pcap file whose header was read.
#[derive(Clone, Debug)]
pub(super) struct Pcap {
    pub(super) order: Order,
    pub(super) clock: Clock,
    pub(super) link: u16,
    pub(super) snap_len: u32,
    /// Bits of frame check sequence at each frame's end, where the header tells.
    pub(super) fcs_len: Option<u8>,
    variant: Variant,
    lengths: Lengths,
}

/// Which of a record's two lengths comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lengths {
    CapturedFirst,
    OriginalFirst,
    /// Version 2.3 was written both ways: the smaller is the captured one.
    Either,
}

/// A frame found in the input: everything but its number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) time: Time,
    pub(super) link: u16,
    pub(super) wire_len: u32,
    pub(super) place: Place,
}

/// What a magic number says.
struct Magic {
    order: Order,
    clock: Clock,
    /// The variants that share the number, the usual one first.
    variants: &'static [Variant],
    /// Bytes after the usual file header.
    extra: usize,
}

/// Whether these are the first bytes of a pcap file.
pub(super) fn is_pcap(first: &[u8]) -> bool {
    magic(first).is_some()
}

fn magic(first: &[u8]) -> Option<Magic> {
    let bytes = *first.first_chunk::<4>()?;
    let order = match bytes {
        [0xa1, 0xb2, ..] | [0x1c, 0x00, ..] => Order::Big,
        _ => Order::Little,
    };
    let (clock, variants, extra): (_, &[Variant], _) = match order.u32(bytes) {
        0xa1b2_c3d4 => (Clock::MICROS, pcap_variant::STANDARD, 0),
        0xa1b2_3c4d => (Clock::NANOS, pcap_variant::PLAIN, 0),
        0xa1b2_cd34 => (Clock::MICROS, pcap_variant::MODIFIED, 0),
        0x1c00_01ab => (Clock::MICROS, pcap_variant::PLAIN, 4),
        0x1c00_01ac => (Clock::NANOS, pcap_variant::PLAIN, 4),
        _ => return None,
    };
    Some(Magic { order, clock, variants, extra })
}

impl Pcap {
    /// Reads the file header. `plain` says that the input is a plain file, where looking ahead for the
    /// variant keeps nobody waiting.
    pub(super) fn open(input: &mut Input, plain: bool) -> Step<Self> {
        let have = input.want(FILE_HEADER)?;
        let Some(magic) = magic(input.bytes()) else {
            return Err(Fault::damaged(0, "expected a pcap magic number"));
        };
        let Some([_, version, _, _, snap_len, network]) = magic.order.words::<6>(input.bytes()) else {
            return Err(Fault::cut(0, "a pcap file header", FILE_HEADER as u64, have as u64));
        };
        let header = FILE_HEADER + magic.extra;
        let have = input.want(header)?;
        if have < header {
            return Err(Fault::cut(0, "a pcap file header", header as u64, have as u64));
        }
        let (major, minor) = version_of(magic.order, version);
        if major < 2 {
            return Err(Fault::damaged(4, format!("expected pcap of version 2 or later, got {major}.{minor}")));
        }
        input.take(header, 0, 0);
        let mut pcap = Self {
            order: magic.order,
            clock: magic.clock,
            // The upper half of the field tells of check sequences; types have 16 bits.
            link: (network & 0xffff) as u16,
            snap_len,
            fcs_len: fcs_len(network),
            variant: Variant::Plain,
            lengths: lengths_of(major, minor),
        };
        pcap.choose_variant(input, plain, magic.variants, (major, minor), network);
        Ok(pcap)
    }

    fn choose_variant(
        &mut self,
        input: &mut Input,
        plain: bool,
        variants: &[Variant],
        version: (u16, u16),
        network: u32,
    ) {
        if self.lengths != Lengths::CapturedFirst {
            // Older than every variant but AIX's, which shares version 2.2 and is told by its own numbers
            // for the link types (RFC 1573's).
            let known = [(6, 1), (9, 6), (15, FDDI), (24, 0)];
            let aix = known.iter().find(|(number, _)| *number == network);
            if let (Some((_, link)), (2, 2), pcap_variant::STANDARD) = (aix, version, variants) {
                self.link = *link;
                self.clock = Clock::NANOS;
                if *link == FDDI {
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

    /// The longest record this file may have.
    fn limit(&self) -> u32 {
        self.snap_len.clamp(USUAL_LIMIT, MAX_FRAME)
    }

    /// Whether a whole record stands in these bytes.
    pub(super) fn is_at_hand(&self, bytes: &[u8]) -> bool {
        self.order.words::<4>(bytes).is_some_and(|[_, _, first, second]| {
            let (captured, _) = self.lengths.of(first, second);
            bytes.len() >= self.variant.header().saturating_add(captured as usize)
        })
    }

    /// Takes the next record; nothing at the end.
    #[inline]
    pub(super) fn next(&self, input: &mut Input) -> Step<Option<Found>> {
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
                Problem::TooLong { what: "a packet", length: u64::from(captured), limit: u64::from(self.limit()) },
            ));
        }
        let length = captured as usize;
        let total = header.saturating_add(length);
        let have = input.want(total)?;
        if have < total {
            return Err(Fault::cut(input.position(), "a packet", length as u64, have.saturating_sub(header) as u64));
        }
        let padding = self.variant.padding().min(length);
        Ok(Some(Found {
            time: self.time(seconds, fraction),
            link: self.link,
            wire_len: original.saturating_sub(padding as u32),
            place: input.take(total, header.saturating_add(padding), length.saturating_sub(padding)),
        }))
    }

    /// Seconds and a fraction, each a field of its own. A fraction of a second or more, which some writers
    /// leave, is carried over.
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

fn version_of(order: Order, word: u32) -> (u16, u16) {
    let (upper, lower) = ((word >> 16) as u16, (word & 0xffff) as u16);
    match order {
        Order::Little => (lower, upper),
        Order::Big => (upper, lower),
    }
}

fn lengths_of(major: u16, minor: u16) -> Lengths {
    match (major, minor) {
        (2, 0..=2) => Lengths::OriginalFirst,
        (2, 3) => Lengths::Either,
        // DG/UX's tcpdump.
        (543, _) => Lengths::OriginalFirst,
        _ => Lengths::CapturedFirst,
    }
}

/// The upper bits of the link type field: a flag, and a length in units of two bytes.
fn fcs_len(network: u32) -> Option<u8> {
    let present = network & 0x0400_0000 != 0;
    present.then_some(((network >> 28) * 16) as u8)
}
