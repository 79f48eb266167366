//! Reads a packed tree back. Checks everything first, because a file may come from anyone.

use super::packed::{
    CONCERNS, FROM_SERVER, HAS_NUMBER, HAS_REPLY, KINDS, LINKS, MAGIC, NO_REPLY, ORIGINS, OVER_UDP,
    SEVERITIES, is_owned,
};
use crate::leb128::{Leb128Reader, unzigzag};
use crate::session::{Reply, Side, Transport};
use crate::table::{OTHER_FORM, Tables};
use crate::tree::{
    Buffer, Kind, Node, Problem, ProblemText, RecordLink, Sym, TreeParts, TypeRef, mark,
};

/// Most nodes of one tree: what an evaluator makes at most, with room for what holds them.
const MAX_NODES: usize = 1 << 20;
/// Structures within structures. Tables bound theirs lower.
const MAX_LEVELS: usize = 400;
/// Bytes of all made buffers.
const MAX_MADE: usize = 64 << 20;

/// The head of a packed tree, about the message as a whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PackedHead<'a> {
    /// The [fingerprint](super::fingerprint) of the tables that the tree was made with.
    pub fingerprint: u64,
    /// The sender.
    pub from: Side,
    /// The transport of its stream.
    pub transport: Transport,
    /// Its stream.
    pub stream: u32,
    /// Its number among the records of the capture that was exported.
    pub record: u64,
    /// Where its first byte was in its direction.
    pub offset: u64,
    /// Its service.
    pub service: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its number as on the wire.
    pub number: Option<u64>,
    /// The record it answers, of the capture that was exported.
    pub reply: Option<Reply>,
    /// No reply to it is promised, whatever its table says of such messages.
    pub no_reply: bool,
}

/// A packed tree behind its head.
#[derive(Clone, Copy, Debug)]
pub struct Unpacked<'a> {
    /// What it says of the whole message.
    pub head: PackedHead<'a>,
    rest: Leb128Reader<'a>,
}

/// A name or a label of a packed tree.
struct PackedName<'a> {
    /// Its number in the tables, where it has one.
    number: Option<u32>,
    text: &'a str,
}

impl<'a> Unpacked<'a> {
    /// Reads the head; `None` where the bytes are no packed tree.
    pub fn new(bytes: &'a [u8]) -> Option<Unpacked<'a>> {
        let mut reader = Leb128Reader::new(bytes.strip_prefix(&MAGIC)?);
        let fingerprint = u64::from_le_bytes(*reader.bytes(8)?.first_chunk()?);
        let flags = reader.byte()?;
        let has = |flag: u8| flags & flag != 0;
        let stream = reader.number32()?;
        let record = reader.number()?;
        let offset = reader.number()?;
        let service = reader.text()?;
        let name = reader.text()?;
        // The line of what it is about is made from the tree.
        reader.counted()?;
        let number = if has(HAS_NUMBER) { Some(reader.number()?) } else { None };
        let reply = if has(HAS_REPLY) {
            Some(Reply { record: reader.number()?, nanos: unzigzag(reader.number()?) })
        } else {
            None
        };
        let no_reply = has(NO_REPLY);
        let from = if has(FROM_SERVER) { Side::Server } else { Side::Client };
        let transport = if has(OVER_UDP) { Transport::Udp } else { Transport::Tcp };
        let head = PackedHead {
            fingerprint,
            from,
            transport,
            stream,
            record,
            offset,
            service,
            name,
            number,
            reply,
            no_reply,
        };
        Some(Unpacked { head, rest: reader })
    }

    /// Reads the tree of a message with these `captured` bytes, made with these tables; `None`
    /// where anything in it is not as a tree has to be.
    pub fn tree(mut self, tables: &Tables, captured: &[u8]) -> Option<TreeParts> {
        let names = self.names()?;
        let mut parts = TreeParts::default();
        self.nodes(&names, tables, &mut parts)?;
        self.made(&mut parts)?;
        self.problems(tables, &mut parts)?;
        self.links(&mut parts)?;
        check(&parts, captured).then_some(parts)
    }

    fn names(&mut self) -> Option<Vec<PackedName<'a>>> {
        let count = self.count(2)?;
        let mut names = Vec::with_capacity(count);
        for _ in 0..count {
            let number = self.rest.number32()?.checked_sub(1);
            names.push(PackedName { number, text: self.rest.text()? });
        }
        Some(names)
    }

    /// How many things follow that take `least` bytes each: never more than the bytes that are left
    /// can hold.
    fn count(&mut self, least: usize) -> Option<usize> {
        let count = usize::try_from(self.rest.number()?).ok()?;
        (count <= self.rest.left() / least).then_some(count)
    }

    fn nodes(
        &mut self,
        names: &[PackedName<'a>],
        tables: &Tables,
        parts: &mut TreeParts,
    ) -> Option<()> {
        let count = self.count(10)?;
        if count == 0 || count > MAX_NODES {
            return None;
        }
        let mut syms: Vec<Option<Sym>> = vec![None; names.len()];
        let mut before = 0i64;
        for index in 0..count {
            let name = usize::try_from(self.rest.number()?).ok()?.checked_sub(1)?;
            let slot = syms.get_mut(name)?;
            let sym = match *slot {
                Some(sym) => sym,
                None => resolve(names.get(name)?, tables, parts)?,
            };
            *slot = Some(sym);
            let ty = TypeRef(self.rest.number32()?);
            tables.type_def(ty)?;
            let kind = *KINDS.get(usize::from(self.rest.byte()?))?;
            let marks = self.rest.byte()?;
            let buffer = Buffer(u16::try_from(self.rest.number()?).ok()?);
            before = before.checked_add(unzigzag(self.rest.number()?))?;
            let start = u32::try_from(before).ok()?;
            let bits = self.rest.number32()?;
            let end = (index + 1).checked_add(usize::try_from(self.rest.number()?).ok()?)?;
            let end = u32::try_from(end).ok().filter(|end| *end as usize <= count)?;
            let value = self.value(kind, parts)?;
            let label = usize::try_from(self.rest.number()?).ok()?;
            if label > names.len() {
                return None;
            }
            parts.nodes.push(Node { value, name: sym, ty, start, bits, end, buffer, kind, marks });
        }
        Some(())
    }

    fn value(&mut self, kind: Kind, parts: &mut TreeParts) -> Option<u64> {
        if is_owned(kind) {
            return own(self.rest.text()?, parts);
        }
        if kind.is_place() {
            let start = self.rest.number32()?;
            let length = self.rest.number32()?;
            return Some(Node::place(start as usize, length as usize));
        }
        self.rest.number()
    }

    fn made(&mut self, parts: &mut TreeParts) -> Option<()> {
        let mut all = 0usize;
        for _ in 0..self.count(2)? {
            let origin = *ORIGINS.get(usize::from(self.rest.byte()?))?;
            let bytes = self.rest.counted()?;
            all = all.checked_add(bytes.len()).filter(|all| *all <= MAX_MADE)?;
            parts.made.push((bytes.to_vec(), origin));
        }
        Some(())
    }

    fn problems(&mut self, tables: &Tables, parts: &mut TreeParts) -> Option<()> {
        for _ in 0..self.count(4)? {
            let severity = *SEVERITIES.get(usize::from(self.rest.byte()?))?;
            let node = self.rest.number32()?;
            let (text, a) = problem_text(self.rest.text()?, tables, parts)?;
            let number = self.rest.number()?;
            let concern = *CONCERNS.get(usize::try_from(number >> 1).ok()?)?;
            let bytes = match number & 1 {
                0 => None,
                _ => {
                    let buffer = Buffer(u16::try_from(self.rest.number()?).ok()?);
                    Some((buffer, self.rest.number32()?, self.rest.number32()?))
                }
            };
            parts.problems.push(Problem { severity, node, text, a, b: 0, bytes, concern });
        }
        Some(())
    }

    fn links(&mut self, parts: &mut TreeParts) -> Option<()> {
        for _ in 0..self.count(4)? {
            let kind = *LINKS.get(usize::from(self.rest.byte()?))?;
            let node = self.rest.number32()?;
            let record = self.rest.number()?;
            parts.links.push(RecordLink {
                kind,
                node,
                record,
                nanos: unzigzag(self.rest.number()?),
            });
        }
        Some(())
    }
}

/// A problem's text, and the number in it. What says in which form something was read is known by
/// the tables' own text, or the program's.
fn problem_text(text: &str, tables: &Tables, parts: &mut TreeParts) -> Option<(ProblemText, i64)> {
    let (before, behind) = OTHER_FORM.split_once("{a}")?;
    let number = text.strip_prefix(before).and_then(|rest| rest.strip_suffix(behind)?.parse().ok());
    Some(match (number, tables.dialect_note(text)) {
        (Some(number), _) => (ProblemText::Fixed(OTHER_FORM), number),
        (None, Some(dialect)) => (ProblemText::Table(dialect), 0),
        (None, None) => (ProblemText::Owned(own(text, parts)?), 0),
    })
}

/// A name's number in the tables, or in the tree where it came from the traffic.
fn resolve(name: &PackedName<'_>, tables: &Tables, parts: &mut TreeParts) -> Option<Sym> {
    if let Some(number) = name.number {
        return (tables.names().get(number as usize)? == name.text).then_some(Sym(number));
    }
    let place = own(name.text, parts)?;
    parts.names.push(((place >> 32) as u32, (place & 0xffff_ffff) as u32));
    Some(Sym(Sym::DYNAMIC.checked_add(u32::try_from(parts.names.len() - 1).ok()?)?))
}

/// Keeps a text in the tree.
fn own(text: &str, parts: &mut TreeParts) -> Option<u64> {
    let start = u32::try_from(parts.text.len()).ok()?;
    parts.text.push_str(text);
    u32::try_from(parts.text.len()).ok()?;
    Some(Node::place(start as usize, text.len()))
}

/// A node whose children are being looked at.
struct OpenNode {
    /// The index behind its last child.
    end: u32,
    /// The bit at which its next child has to begin, and the one behind its last child; none where
    /// its children have a buffer of their own.
    bits: Option<(u64, u64)>,
}

impl OpenNode {
    fn new(node: &Node, index: u32) -> OpenNode {
        let has_parts = node.end > index + 1 || matches!(node.kind, Kind::Struct | Kind::List);
        let start = u64::from(node.start);
        let end = start + u64::from(node.bits);
        let bits = (has_parts && !node.has(mark::OWN_BUFFER)).then_some((start, end));
        OpenNode { end: node.end, bits }
    }

    /// Whether its children were one behind the other, up to its end.
    fn is_tiled(&self) -> bool {
        self.bits.is_none_or(|(next, end)| next == end)
    }
}

/// Checks that siblings follow each other, that children lie within their parents and their
/// buffers, and that every reference to a node is to an existing one.
fn check(parts: &TreeParts, captured: &[u8]) -> bool {
    let count = parts.nodes.len() as u32;
    let mut open: Vec<OpenNode> = Vec::new();
    for (index, node) in (0u32..).zip(&parts.nodes) {
        while let Some(over) = open.pop_if(|open| open.end <= index) {
            if !over.is_tiled() {
                return false;
            }
        }
        if let Some((next, _)) = open.last_mut().and_then(|open| open.bits.as_mut()) {
            if *next != u64::from(node.start) {
                return false;
            }
            *next += u64::from(node.bits);
        }
        let within = open.last().map_or(count, |open| open.end);
        // Only the first node, which is the message, is in no other.
        if node.end > within || open.len() > MAX_LEVELS || (open.is_empty() && index > 0) {
            return false;
        }
        open.push(OpenNode::new(node, index));
        if usize::from(node.buffer.0) > parts.made.len() {
            return false;
        }
        let bytes = parts.buffer(node.buffer, captured).len() as u64;
        if u64::from(node.start) + u64::from(node.bits) > bytes * 8 {
            return false;
        }
        let (start, length) = node.content();
        if node.kind.is_place() && !is_owned(node.kind) && start as u64 + length as u64 > bytes {
            return false;
        }
    }
    let tiled = open.iter().all(OpenNode::is_tiled);
    let problems = parts.problems.iter().all(|problem| problem.node < count);
    tiled && problems && parts.links.iter().all(|link| link.node < count)
}
