//! pcapng: blocks, sections and interfaces (draft-ietf-opsawg-pcapng).
//!
//! Packet blocks of all three kinds become frames, Decryption Secrets Blocks are handed on, and every other
//! block is passed over without being held in memory. A section may have its own byte order, an interface
//! its own link type and clock.

use super::Time;
use super::bytes::Order;
use super::clock::Clock;
use super::error::{Fault, Problem, Step};
use super::input::{Input, Place};
use super::pcap::{Found, MAX_FRAME};

/// Section Header Block: a palindrome, so that it can be read before the byte order is known.
pub(super) const SECTION: u32 = 0x0a0d_0d0a;
/// Interface Description Block.
pub(super) const INTERFACE: u32 = 1;
/// Packet Block, obsolete.
const OLD_PACKET: u32 = 2;
/// Simple Packet Block.
const SIMPLE_PACKET: u32 = 3;
/// Enhanced Packet Block.
pub(super) const PACKET: u32 = 6;
/// Decryption Secrets Block.
pub(super) const SECRETS: u32 = 10;
/// The byte-order magic of a section header.
pub(super) const ORDER_MAGIC: u32 = 0x1a2b_3c4d;

/// No block that has to be held in memory is longer.
pub(super) const MAX_HELD: u32 = MAX_FRAME;
/// No block at all is longer, as in Wireshark (whose limit is some bytes larger).
pub(super) const MAX_BLOCK: u32 = 128 * 1024 * 1024;
/// No section has more interfaces; an old packet block could not name more.
const MAX_INTERFACES: usize = 65_536;

/// A block's header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) kind: u32,
    /// Length of the whole block, header and trailer included.
    pub(super) total: u32,
    /// The byte order: of a section header, the one it begins.
    pub(super) order: Order,
}

/// A pcapng file within one of its sections.
#[derive(Clone, Debug)]
pub(super) struct Pcapng {
    order: Order,
    interfaces: Vec<Interface>,
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: u16,
    snap_len: u32,
    clock: Clock,
}

/// What a block gave.
#[derive(Clone, Copy, Debug)]
pub(super) enum Block {
    Frame(Found),
    Secrets { kind: u32, place: Place },
}

impl Pcapng {
    /// A file of which nothing was read; its first block must be a section header.
    pub(super) fn new() -> Self {
        Self { order: Order::Little, interfaces: Vec::new() }
    }

    /// Whether the next block stands in these bytes as a whole and is a packet; what gives nothing may be followed by a wait.
    pub(super) fn is_at_hand(&self, bytes: &[u8]) -> bool {
        self.order.words::<2>(bytes).is_some_and(|[kind, total]| {
            matches!(kind, PACKET | OLD_PACKET | SIMPLE_PACKET) && bytes.len() >= total as usize
        })
    }

    /// Takes blocks until one gives something; nothing at the end.
    #[inline]
    pub(super) fn next(&mut self, input: &mut Input) -> Step<Option<Block>> {
        loop {
            let Some(head) = Head::read(input, self.order)? else {
                return Ok(None);
            };
            match head.kind {
                PACKET | OLD_PACKET => return self.packet(input, head).map(Some),
                SIMPLE_PACKET => return self.simple_packet(input, head).map(Some),
                SECRETS => return secrets(input, head).map(Some),
                SECTION => self.begin_section(input, head)?,
                INTERFACE => self.add_interface(input, head)?,
                _ => head.pass(input, |_| Ok(()))?,
            }
        }
    }

    fn begin_section(&mut self, input: &mut Input, head: Head) -> Step<()> {
        head.hold(input, 28)?;
        head.check_version(input)?;
        self.order = head.order;
        self.interfaces.clear();
        input.take(head.total as usize, 0, 0);
        Ok(())
    }

    fn add_interface(&mut self, input: &mut Input, head: Head) -> Step<()> {
        head.hold(input, 20)?;
        if self.interfaces.len() >= MAX_INTERFACES {
            return Err(Fault::damaged(
                input.position(),
                format!("expected at most {MAX_INTERFACES} interfaces in a section, got more"),
            ));
        }
        let body = head.body(input.bytes());
        let interface = Interface {
            link: head.order.u16_at(body, 0).unwrap_or_default(),
            snap_len: head.order.u32_at(body, 4).unwrap_or_default(),
            clock: clock_of(head.order, body.get(8..).unwrap_or_default()),
        };
        self.interfaces.push(interface);
        input.take(head.total as usize, 0, 0);
        Ok(())
    }

    /// An Enhanced Packet Block, or the obsolete block it replaced.
    #[inline]
    fn packet(&self, input: &mut Input, head: Head) -> Step<Block> {
        head.hold(input, 32)?;
        let Some([first, high, low, captured, original]) = head.order.words::<5>(head.body(input.bytes())) else {
            return Err(Fault::damaged(input.position(), "expected a packet block"));
        };
        let index = if head.kind == PACKET {
            first as usize
        } else {
            // Two fields of two bytes: the interface, and a count of drops.
            usize::from(match head.order {
                Order::Little => first & 0xffff,
                Order::Big => first >> 16,
            } as u16)
        };
        let interface = self.interface(input, index)?;
        let ticks = u64::from(high) << 32 | u64::from(low);
        found(input, head, 28, captured, original, interface.link, interface.clock.time(ticks))
    }

    /// A Simple Packet Block: no time, always of the first interface, as long as its snap length allows.
    fn simple_packet(&self, input: &mut Input, head: Head) -> Step<Block> {
        head.hold(input, 16)?;
        let interface = self.interface(input, 0)?;
        let body = head.body(input.bytes());
        let original = head.order.u32_at(body, 0).unwrap_or_default();
        let captured = match interface.snap_len {
            0 => original,
            limit => original.min(limit),
        };
        let time = Time { digits: interface.clock.digits(), ..Time::default() };
        found(input, head, 12, captured, original, interface.link, time)
    }

    #[inline]
    fn interface(&self, input: &Input, index: usize) -> Step<Interface> {
        match self.interfaces.get(index) {
            Some(interface) => Ok(*interface),
            None => Err(Fault::damaged(
                input.position(),
                format!("expected one of the section's {} interfaces, got number {index}", self.interfaces.len()),
            )),
        }
    }
}

/// Takes a packet block whose packet begins `from` bytes into it.
#[inline]
fn found(
    input: &mut Input,
    head: Head,
    from: usize,
    captured: u32,
    original: u32,
    link: u16,
    time: Time,
) -> Step<Block> {
    let room = (head.total as usize).saturating_sub(from.saturating_add(4));
    if captured as usize > room {
        return Err(Fault::damaged(
            input.position(),
            format!("expected a packet of at most {room} bytes in its block, got one of {captured}"),
        ));
    }
    Ok(Block::Frame(Found {
        time,
        link,
        wire_len: original,
        place: input.take(head.total as usize, from, captured as usize),
    }))
}

fn secrets(input: &mut Input, head: Head) -> Step<Block> {
    head.hold(input, 20)?;
    let body = head.body(input.bytes());
    let Some([kind, length]) = head.order.words::<2>(body) else {
        return Err(Fault::damaged(input.position(), "expected secrets"));
    };
    let room = body.len().saturating_sub(8);
    if length as usize > room {
        return Err(Fault::damaged(
            input.position(),
            format!("expected secrets of at most {room} bytes in their block, got {length}"),
        ));
    }
    let place = input.take(head.total as usize, 16, length as usize);
    Ok(Block::Secrets { kind, place })
}

impl Head {
    /// Looks at the next block's header; nothing at the end.
    #[inline]
    pub(super) fn read(input: &mut Input, order: Order) -> Step<Option<Self>> {
        let have = input.want(8)?;
        if have == 0 {
            return Ok(None);
        }
        let Some([kind, total]) = order.words::<2>(input.bytes()) else {
            return Err(Fault::cut(input.position(), "a block header", 8, have as u64));
        };
        let head = Self { kind, total, order };
        let head = if kind == SECTION { head.with_own_order(input)? } else { head };
        if head.total < 12 {
            return Err(Fault::damaged(
                input.position(),
                format!("expected a block of at least 12 bytes, got {}", head.total),
            ));
        }
        Ok(Some(head))
    }

    fn with_own_order(self, input: &mut Input) -> Step<Self> {
        let have = input.want(12)?;
        let orders = [Order::Little, Order::Big];
        let own = orders.into_iter().find_map(|order| {
            let [_, total, magic] = order.words::<3>(input.bytes())?;
            (magic == ORDER_MAGIC).then_some(Self { total, order, ..self })
        });
        match own {
            Some(head) => Ok(head),
            None if have < 12 => Err(Fault::cut(input.position(), "a section header", 28, have as u64)),
            None => Err(Fault::damaged(
                input.position().saturating_add(8),
                "expected the byte-order magic 1a2b3c4d of a section, got something else",
            )),
        }
    }

    /// Sees to it that the whole block is in the input's buffer, and that its two lengths agree.
    #[inline]
    pub(super) fn hold(&self, input: &mut Input, at_least: u32) -> Step<()> {
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
        let trailer = (self.total as usize).saturating_sub(4);
        self.check_trailer(input, trailer, input.position())
    }

    /// What stands between a held block's header and its trailer.
    #[inline]
    pub(super) fn body<'a>(&self, block: &'a [u8]) -> &'a [u8] {
        let end = (self.total as usize).saturating_sub(4);
        block.get(8..end).unwrap_or_default()
    }

    /// Takes the block without holding it, giving it to `sink` piece by piece.
    pub(super) fn pass(&self, input: &mut Input, mut sink: impl FnMut(&[u8]) -> Step<()>) -> Step<()> {
        let at = input.position();
        if self.total > MAX_BLOCK {
            return Err(self.too_long(input, MAX_BLOCK));
        }
        let before_trailer = u64::from(self.total).saturating_sub(4);
        let passed = input.pass(before_trailer, &mut sink)?;
        let have = input.want(4)?;
        if passed < before_trailer || have < 4 {
            return Err(self.cut(at, passed.saturating_add(have as u64)));
        }
        self.check_trailer(input, 0, at)?;
        let place = input.take(4, 0, 4);
        sink(input.at(place))
    }

    /// Checks that a held section header is of a version that is known.
    pub(super) fn check_version(&self, input: &Input) -> Step<()> {
        let body = self.body(input.bytes());
        let major = self.order.u16_at(body, 4).unwrap_or_default();
        let minor = self.order.u16_at(body, 6).unwrap_or_default();
        match (major, minor) {
            // 1.2 was written by some programs and means the same.
            (1, 0 | 2) => Ok(()),
            _ => Err(Fault::damaged(
                input.position().saturating_add(12),
                format!("expected pcapng of version 1.0, got {major}.{minor}"),
            )),
        }
    }

    #[inline]
    fn check_trailer(&self, input: &Input, at: usize, block: u64) -> Step<()> {
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
            Problem::TooLong { what: "a block", length: u64::from(self.total), limit: u64::from(limit) },
        )
    }
}

/// The clock an interface's options describe: microseconds where they say nothing. Options that run over
/// their end are passed over, as are those of a length of their own making.
fn clock_of(order: Order, mut options: &[u8]) -> Clock {
    let mut resolution = 6;
    let mut offset = 0;
    while let (Some(code), Some(length)) = (order.u16_at(options, 0), order.u16_at(options, 2)) {
        let Some(rest) = options.get(4..) else { break };
        let Some((value, _)) = rest.split_at_checked(usize::from(length)) else {
            break;
        };
        match (code, value) {
            (0, _) => break,
            (9, [value]) => resolution = *value,
            (14, value) => {
                if let Ok(value) = <[u8; 8]>::try_from(value) {
                    offset = order.i64(value);
                }
            }
            _ => {}
        }
        let padded = usize::from(length).next_multiple_of(4);
        options = rest.get(padded..).unwrap_or_default();
    }
    Clock::new(resolution, offset)
}
