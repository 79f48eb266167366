//! pcapng: blocks, sections and interfaces (draft-ietf-opsawg-pcapng).
//!
//! Packet blocks of all three kinds become frames, Decryption Secrets Blocks are passed on, and
//! every other block is skipped without being held in memory. Each section has its own byte order,
//! each interface its own link type and clock.

use super::Time;
use super::bytes::Endianness;
use super::clock::TickClock;
use super::error::{CaptureProblem, Fault, ReadResult};
use super::input::{BufferRange, Input};
use super::options::{
    OPTION_INTERFACE_DROPS, OPTION_OFFSET, OPTION_PACKET_ID, OPTION_PROGRAM, OPTION_RESOLUTION,
    OPTION_SYSTEM_DROPS, options,
};
use super::pcap::{FoundFrame, MAX_FRAME};
use super::split_mark::{is_split, split_total};
use std::collections::BTreeMap;

/// Section Header Block: its type is the same in both byte orders, so that it can be read before
/// the order is known.
pub(super) const SECTION: u32 = 0x0a0d_0d0a;
/// Interface Description Block.
pub(super) const INTERFACE: u32 = 1;
/// Packet Block, obsolete.
pub(super) const OLD_PACKET: u32 = 2;
/// Simple Packet Block.
pub(super) const SIMPLE_PACKET: u32 = 3;
/// Name Resolution Block.
pub(super) const NAMES: u32 = 4;
/// Interface Statistics Block.
pub(super) const STATISTICS: u32 = 5;
/// Enhanced Packet Block.
pub(super) const PACKET: u32 = 6;
/// Decryption Secrets Block.
pub(super) const SECRETS: u32 = 10;
/// The byte-order magic of a section header.
pub(super) const ORDER_MAGIC: u32 = 0x1a2b_3c4d;

/// The longest block that is held in memory, in bytes.
pub(super) const MAX_HELD: u32 = MAX_FRAME;
/// The longest block of any type, in bytes. Wireshark's limit is a few bytes larger.
pub(super) const MAX_BLOCK: u32 = 128 * 1024 * 1024;
/// The most interfaces in a section. The obsolete packet block has 16 bits for an interface's
/// number.
const MAX_INTERFACES: usize = 65_536;

// Lengths in bytes, as the format draft draws the blocks.
/// Type and length, before a block's body.
const HEADER: usize = 8;
/// The length again, after the body.
const TRAILER: usize = 4;
const SMALLEST_BLOCK: u32 = 12;
pub(super) const SMALLEST_SECTION: u32 = 28;
const SMALLEST_INTERFACE: u32 = 20;
const SMALLEST_STATISTICS: u32 = 24;
/// A longer Interface Statistics Block is passed over.
const MAX_STATISTICS: u32 = 1 << 16;
const SMALLEST_PACKET: u32 = 32;
const SMALLEST_SIMPLE_PACKET: u32 = 16;
pub(super) const SMALLEST_SECRETS: u32 = 20;
/// Where the packet begins in an Enhanced Packet Block or in the obsolete one.
const PACKET_DATA: usize = 28;
/// Where the packet begins in a Simple Packet Block.
const SIMPLE_PACKET_DATA: usize = 12;
/// Where the secrets begin in a Decryption Secrets Block.
const SECRETS_DATA: usize = 16;

// Offsets in the body of an Interface Description Block.
const LINK_TYPE: usize = 0;
const SNAP_LEN: usize = 4;
const INTERFACE_OPTIONS: usize = 8;
/// Where the options of an Interface Statistics Block begin in its body.
const STATISTICS_OPTIONS: usize = 12;
/// Where the options of a section header begin in its body.
pub(super) const SECTION_OPTIONS: usize = 16;

/// `if_tsresol` of an interface that states none: microseconds.
const DEFAULT_RESOLUTION: u8 = 6;

/// A block's header.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockHeader {
    pub(super) kind: u32,
    /// Length of the whole block in bytes, header and trailer included.
    pub(super) total: u32,
    /// The section's byte order. For a section header, that of the section it begins.
    pub(super) order: Endianness,
}

/// A pcapng file within one of its sections.
#[derive(Clone, Debug)]
pub(super) struct Pcapng {
    order: Endianness,
    interfaces: Vec<SectionInterface>,
    /// The section is part of a split capture: packet identifiers are frame numbers of the whole.
    split: bool,
    /// Frames dropped on each interface of the section, and in the sections before it. The counts
    /// of an interface grow, so its last one counts.
    drops: BTreeMap<u32, u64>,
    dropped_before: u64,
    /// How many frames that capture has, once the file has stated it.
    split_total: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct SectionInterface {
    link: u16,
    snap_len: u32,
    clock: TickClock,
}

/// The content of a block that is not skipped.
#[derive(Clone, Copy, Debug)]
pub(super) enum Block {
    Frame(FoundFrame),
    Secrets { kind: u32, place: BufferRange },
}

impl Pcapng {
    /// A file from which nothing was read yet. Its first block must be a section header.
    pub(super) fn new() -> Self {
        Self {
            order: Endianness::Little,
            interfaces: Vec::new(),
            split: false,
            drops: BTreeMap::new(),
            dropped_before: 0,
            split_total: None,
        }
    }

    /// Whether `bytes` begin with a whole packet block. For other blocks the answer is no, because
    /// `next` would read on after them and might have to wait.
    pub(super) fn is_at_hand(&self, bytes: &[u8]) -> bool {
        self.order.words::<2>(bytes).is_some_and(|[kind, total]| {
            matches!(kind, PACKET | OLD_PACKET | SIMPLE_PACKET) && bytes.len() >= total as usize
        })
    }

    /// Takes blocks until one has a frame or secrets; `None` at the end of the file.
    #[inline]
    pub(super) fn next(&mut self, input: &mut Input) -> ReadResult<Option<Block>> {
        loop {
            let Some(head) = BlockHeader::read(input, self.order)? else {
                return Ok(None);
            };
            match head.kind {
                PACKET | OLD_PACKET => return self.packet(input, head).map(Some),
                SIMPLE_PACKET => return self.simple_packet(input, head).map(Some),
                SECRETS => return secrets(input, head).map(Some),
                SECTION => self.begin_section(input, head)?,
                INTERFACE => self.add_interface(input, head)?,
                STATISTICS if head.total <= MAX_STATISTICS => self.count_drops(input, head)?,
                _ => head.pass(input, |_| Ok(()))?,
            }
        }
    }

    /// How many frames the capture has that this file is a part of, where the file has stated it.
    pub(super) fn split_total(&self) -> Option<u64> {
        self.split_total
    }

    /// How many frames were dropped when they were captured, as far as the file says so.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped_before.saturating_add(self.drops.values().sum())
    }

    fn count_drops(&mut self, input: &mut Input, head: BlockHeader) -> ReadResult<()> {
        head.hold(input, SMALLEST_STATISTICS)?;
        let body = head.body(input.bytes());
        let interface = head.order.u32_at(body, 0).unwrap_or_default();
        let drops = options(head.order, body.get(STATISTICS_OPTIONS..).unwrap_or_default())
            .filter(|o| matches!(o.code, OPTION_INTERFACE_DROPS | OPTION_SYSTEM_DROPS))
            .filter_map(|o| Some(head.order.u64(<[u8; 8]>::try_from(o.value).ok()?)))
            .fold(0_u64, u64::saturating_add);
        if self.drops.len() < MAX_INTERFACES {
            self.drops.insert(interface, drops);
        }
        input.take(head.total as usize, 0, 0);
        Ok(())
    }

    fn begin_section(&mut self, input: &mut Input, head: BlockHeader) -> ReadResult<()> {
        head.hold(input, SMALLEST_SECTION)?;
        head.check_version(input)?;
        self.order = head.order;
        self.interfaces.clear();
        self.dropped_before = self.dropped();
        self.drops.clear();
        let header = head.body(input.bytes()).get(SECTION_OPTIONS..).unwrap_or_default();
        self.split =
            options(head.order, header).any(|o| o.code == OPTION_PROGRAM && is_split(o.value));
        if self.split {
            self.split_total = split_total(head.order, header).or(self.split_total);
        }
        input.take(head.total as usize, 0, 0);
        Ok(())
    }

    fn add_interface(&mut self, input: &mut Input, head: BlockHeader) -> ReadResult<()> {
        head.hold(input, SMALLEST_INTERFACE)?;
        if self.interfaces.len() >= MAX_INTERFACES {
            return Err(Fault::damaged(
                input.position(),
                format!("expected at most {MAX_INTERFACES} interfaces in a section, got more"),
            ));
        }
        let body = head.body(input.bytes());
        let interface = SectionInterface {
            link: head.order.u16_at(body, LINK_TYPE).unwrap_or_default(),
            snap_len: head.order.u32_at(body, SNAP_LEN).unwrap_or_default(),
            clock: clock_of(head.order, body.get(INTERFACE_OPTIONS..).unwrap_or_default()),
        };
        self.interfaces.push(interface);
        input.take(head.total as usize, 0, 0);
        Ok(())
    }

    /// An Enhanced Packet Block, or the obsolete block it replaced.
    #[inline]
    fn packet(&self, input: &mut Input, head: BlockHeader) -> ReadResult<Block> {
        head.hold(input, SMALLEST_PACKET)?;
        let Some([first, high, low, captured, original]) =
            head.order.words::<5>(head.body(input.bytes()))
        else {
            return Err(Fault::damaged(input.position(), "expected a packet block"));
        };
        let index = if head.kind == PACKET {
            first as usize
        } else {
            // Two fields of two bytes: the interface, and a count of dropped packets.
            usize::from(match head.order {
                Endianness::Little => first & 0xffff,
                Endianness::Big => first >> 16,
            } as u16)
        };
        let interface = self.interface(input, index)?;
        let time = interface.clock.time(u64::from(high) << 32 | u64::from(low));
        let lengths = PacketLengths { before: PACKET_DATA, captured, original };
        let number = if self.split { packet_id(&head, input, captured) } else { None };
        let found = take_packet(input, head, lengths, interface.link, time)?;
        Ok(Block::Frame(FoundFrame { number, ..found }))
    }

    /// A Simple Packet Block: without a time, always of the first interface, and cut to that
    /// interface's snap length.
    fn simple_packet(&self, input: &mut Input, head: BlockHeader) -> ReadResult<Block> {
        head.hold(input, SMALLEST_SIMPLE_PACKET)?;
        let interface = self.interface(input, 0)?;
        let body = head.body(input.bytes());
        let original = head.order.u32_at(body, 0).unwrap_or_default();
        let captured = match interface.snap_len {
            0 => original,
            limit => original.min(limit),
        };
        let time = Time { digits: interface.clock.digits(), ..Time::default() };
        let lengths = PacketLengths { before: SIMPLE_PACKET_DATA, captured, original };
        take_packet(input, head, lengths, interface.link, time).map(Block::Frame)
    }

    #[inline]
    fn interface(&self, input: &Input, index: usize) -> ReadResult<SectionInterface> {
        match self.interfaces.get(index) {
            Some(interface) => Ok(*interface),
            None => Err(Fault::damaged(
                input.position(),
                format!(
                    "expected one of the section's {} interfaces, got number {index}",
                    self.interfaces.len()
                ),
            )),
        }
    }
}

/// Lengths within a packet block, in bytes.
#[derive(Clone, Copy)]
struct PacketLengths {
    /// Of the block's fields before the packet.
    before: usize,
    /// Of the packet as captured.
    captured: u32,
    /// Of the packet on the wire.
    original: u32,
}

/// Takes a packet block from the input.
#[inline]
fn take_packet(
    input: &mut Input,
    head: BlockHeader,
    lengths: PacketLengths,
    link: u16,
    time: Time,
) -> ReadResult<FoundFrame> {
    let PacketLengths { before, captured, original } = lengths;
    let most = (head.total as usize).saturating_sub(before.saturating_add(TRAILER));
    if captured as usize > most {
        return Err(Fault::damaged(
            input.position(),
            format!(
                "expected a packet of at most {most} bytes in its block, got one of {captured}"
            ),
        ));
    }
    let place = input.take(head.total as usize, before, captured as usize);
    Ok(FoundFrame { number: None, time, link, wire_len: original, place })
}

/// The packet identifier of an Enhanced Packet Block whose packet has `captured` bytes.
fn packet_id(head: &BlockHeader, input: &Input, captured: u32) -> Option<u64> {
    let from = (PACKET_DATA - HEADER).saturating_add((captured as usize).next_multiple_of(4));
    let bytes = head.body(input.bytes()).get(from..)?;
    let option = options(head.order, bytes).find(|option| option.code == OPTION_PACKET_ID)?;
    Some(head.order.u64(<[u8; 8]>::try_from(option.value).ok()?))
}

fn secrets(input: &mut Input, head: BlockHeader) -> ReadResult<Block> {
    head.hold(input, SMALLEST_SECRETS)?;
    let body = head.body(input.bytes());
    let Some([kind, length]) = head.order.words::<2>(body) else {
        return Err(Fault::damaged(input.position(), "expected secrets"));
    };
    let most = body.len().saturating_sub(SECRETS_DATA - HEADER);
    if length as usize > most {
        return Err(Fault::damaged(
            input.position(),
            format!("expected secrets of at most {most} bytes in their block, got {length}"),
        ));
    }
    let place = input.take(head.total as usize, SECRETS_DATA, length as usize);
    Ok(Block::Secrets { kind, place })
}

impl BlockHeader {
    /// Looks at the next block's header, without taking it; `None` at the end of the file.
    #[inline]
    pub(super) fn read(input: &mut Input, order: Endianness) -> ReadResult<Option<Self>> {
        let have = input.want(HEADER)?;
        if have == 0 {
            return Ok(None);
        }
        let Some([kind, total]) = order.words::<2>(input.bytes()) else {
            return Err(Fault::cut(input.position(), "a block header", HEADER as u64, have as u64));
        };
        let head = Self { kind, total, order };
        let head = if kind == SECTION { head.with_own_order(input)? } else { head };
        if head.total < SMALLEST_BLOCK {
            return Err(Fault::damaged(
                input.position(),
                format!("expected a block of at least {SMALLEST_BLOCK} bytes, got {}", head.total),
            ));
        }
        Ok(Some(head))
    }

    fn with_own_order(self, input: &mut Input) -> ReadResult<Self> {
        let have = input.want(SMALLEST_BLOCK as usize)?;
        let orders = [Endianness::Little, Endianness::Big];
        let own = orders.into_iter().find_map(|order| {
            let [_, total, magic] = order.words::<3>(input.bytes())?;
            (magic == ORDER_MAGIC).then_some(Self { total, order, ..self })
        });
        match own {
            Some(head) => Ok(head),
            None if have < SMALLEST_BLOCK as usize => Err(Fault::cut(
                input.position(),
                "a section header",
                SMALLEST_SECTION.into(),
                have as u64,
            )),
            None => Err(Fault::damaged(
                input.position().saturating_add(HEADER as u64),
                "expected the byte-order magic 1a2b3c4d of a section, got something else",
            )),
        }
    }

    /// Reads the whole block into the input's buffer, and checks that its two lengths agree.
    #[inline]
    pub(super) fn hold(&self, input: &mut Input, at_least: u32) -> ReadResult<()> {
        if self.total > MAX_HELD {
            return Err(self.too_long(input, MAX_HELD));
        }
        if self.total < at_least {
            return Err(Fault::damaged(
                input.position(),
                format!("expected a block of at least {at_least} bytes, got {}", self.total),
            ));
        }
        let have = input.want(self.total as usize)?;
        if have < self.total as usize {
            return Err(self.cut(input.position(), have as u64));
        }
        let trailer = (self.total as usize).saturating_sub(TRAILER);
        self.check_trailer(input, trailer, input.position())
    }

    /// The bytes between a held block's header and its trailer.
    #[inline]
    pub(super) fn body<'a>(&self, block: &'a [u8]) -> &'a [u8] {
        let end = (self.total as usize).saturating_sub(TRAILER);
        block.get(HEADER..end).unwrap_or_default()
    }

    /// Takes the block and gives it to `sink` piece by piece, without holding all of it.
    pub(super) fn pass(
        &self,
        input: &mut Input,
        mut sink: impl FnMut(&[u8]) -> ReadResult<()>,
    ) -> ReadResult<()> {
        let at = input.position();
        if self.total > MAX_BLOCK {
            return Err(self.too_long(input, MAX_BLOCK));
        }
        let before_trailer = u64::from(self.total).saturating_sub(TRAILER as u64);
        let passed = input.pass(before_trailer, &mut sink)?;
        let have = input.want(TRAILER)?;
        if passed < before_trailer || have < TRAILER {
            return Err(self.cut(at, passed.saturating_add(have as u64)));
        }
        self.check_trailer(input, 0, at)?;
        let place = input.take(TRAILER, 0, TRAILER);
        sink(input.at(place))
    }

    /// Checks that a held section header has a supported version.
    pub(super) fn check_version(&self, input: &Input) -> ReadResult<()> {
        let body = self.body(input.bytes());
        let major = self.order.u16_at(body, 4).unwrap_or_default();
        let minor = self.order.u16_at(body, 6).unwrap_or_default();
        match (major, minor) {
            // Some programs write 1.2 and mean the same.
            (1, 0 | 2) => Ok(()),
            _ => Err(Fault::damaged(
                input.position().saturating_add(12),
                format!("expected pcapng of version 1.0, got {major}.{minor}"),
            )),
        }
    }

    #[inline]
    fn check_trailer(&self, input: &Input, at: usize, block: u64) -> ReadResult<()> {
        match self.order.u32_at(input.bytes(), at) {
            Some(trailer) if trailer == self.total => Ok(()),
            trailer => Err(Fault::damaged(
                block,
                format!(
                    "expected a block whose two lengths agree, got {} and {}",
                    self.total,
                    trailer.unwrap_or_default()
                ),
            )),
        }
    }

    fn cut(&self, at: u64, got: u64) -> Fault {
        Fault::cut(at, "a block", u64::from(self.total), got)
    }

    fn too_long(&self, input: &Input, limit: u32) -> Fault {
        Fault::new(
            input.position(),
            CaptureProblem::TooLong {
                what: "a block",
                length: u64::from(self.total),
                limit: u64::from(limit),
            },
        )
    }
}

/// The clock that an interface's options describe. Options of the wrong length, and those that run
/// over the end of the block, are ignored.
fn clock_of(order: Endianness, bytes: &[u8]) -> TickClock {
    let mut resolution = DEFAULT_RESOLUTION;
    let mut offset = 0;
    for option in options(order, bytes) {
        match (option.code, option.value) {
            (OPTION_RESOLUTION, [value]) => resolution = *value,
            (OPTION_OFFSET, value) => {
                if let Ok(value) = <[u8; 8]>::try_from(value) {
                    offset = order.i64(value);
                }
            }
            _ => {}
        }
    }
    TickClock::new(resolution, offset)
}
