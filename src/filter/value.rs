//! A record as an object with the keys and values of its JSON, without writing JSON.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::net::SocketAddr;

use super::symbols::set_flags;
use crate::capture::Time;
use crate::digits::{hex, uuid_text};
use crate::facts::{InfoSource, Refused, SessionMap, definition, refused, write_info};
use crate::print::{format_time, problem_path, problem_text};
use crate::record::{Body, MessageView, Record};
use crate::session::Counts;
use crate::table::{EnumDef, MessageDef};
use crate::tree::{Kind, LinkKind, Node, RecordLink, TextKind, decode_text, mark};

const NANOS_PER_SECOND: i128 = 1_000_000_000;

/// A record, and what is needed to look up paths in it.
pub struct RecordScope<'a> {
    pub(super) record: &'a Record<'a>,
    /// Set for messages.
    pub(super) message: Option<MessageView<'a>>,
    /// The index of its protocol among those the filter was compiled for.
    pub(super) protocol: usize,
    redact: bool,
    sessions: Option<&'a SessionMap>,
    /// The line that says what the message is about, once it was asked for.
    info: OnceCell<String>,
}

/// A value in a record's JSON: an object, a list, or a value without parts.
#[derive(Clone, Copy)]
pub enum RecordValue<'a> {
    /// The record.
    Record,
    /// A node of the tree.
    Node(u32),
    /// The number of a node whose values have names.
    Number(u32),
    /// The list of names of the flags that are set in a node.
    Names(u32),
    /// The list of problems.
    Problems,
    /// The problem with an index.
    Problem(usize),
    /// The text of one.
    ProblemText(usize),
    /// The path of one.
    ProblemField(usize),
    /// The bytes of one.
    ProblemBytes(usize),
    /// The list of links of a kind.
    Links(LinkKind),
    /// A link to another record.
    Link(RecordLink),
    /// Byte counts.
    Counts(Counts),
    /// The value with which the message refuses a request.
    Refused(Refused<'a>),
    /// The line that says what the message is about.
    Info,
    /// What the message carries.
    Carried,
    /// The names that earlier records give to numbers in the message.
    CalledNames,
    /// One of these names.
    CalledName(CalledName<'a>),
    /// The path of a field, with `fields.` before it.
    FieldPath(u32),
    /// A truth value.
    Bool(bool),
    /// The bytes that an event shows.
    EventBytes,
    /// An integer.
    Int(i128),
    /// A float.
    Float(f64),
    /// A text.
    Text(&'a str),
    /// The record's time.
    Time(Time),
    /// The address of the sender or the receiver.
    Address(SocketAddr),
}

/// The name that an earlier record gave to a number.
#[derive(Clone, Copy)]
pub struct CalledName<'a> {
    /// The node of the number.
    pub node: u32,
    /// The name.
    pub name: &'a str,
    /// The record that gave it.
    pub record: u64,
}

/// A value in the form in which it is compared.
pub enum Leaf<'a> {
    /// An integer.
    Int(i128),
    /// An integer that is a decimal string in the JSON.
    Long(i128),
    /// A float.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// An absent object.
    Null,
    /// Text.
    Text(Cow<'a, str>),
    /// Bytes as hex.
    Hex(String),
    /// A UUID's text.
    Uuid(String),
    /// An address with its port.
    Address(SocketAddr),
    /// An IPv4 address.
    Ipv4(u32),
    /// A time.
    Time(Time),
    /// A value of an enum: its number, and its name if it has one.
    Named(i128, Option<&'a str>),
    /// A value of a flag set: the number, its bits, and the definition of the set.
    Flags(i128, u64, &'a EnumDef),
    /// An object or a list.
    Composite,
}

impl<'a> RecordScope<'a> {
    pub(super) fn new(
        record: &'a Record<'a>,
        protocols: &[&'static str],
        redact: bool,
    ) -> RecordScope<'a> {
        let message = match &record.body {
            Body::Message { message, tables, tree } => {
                Some(MessageView { tables, tree, bytes: message.bytes })
            }
            _ => None,
        };
        let protocol = index_of(record.protocol, protocols);
        RecordScope { record, message, protocol, redact, sessions: None, info: OnceCell::new() }
    }

    /// The scope, in which the record belongs to a session of these.
    pub(super) fn with_sessions(self, sessions: Option<&'a SessionMap>) -> RecordScope<'a> {
        RecordScope { sessions, ..self }
    }

    /// The number of the session that the record belongs to, where sessions are known.
    pub(super) fn session(&self) -> Option<u32> {
        self.sessions?.session(self.record)
    }

    /// What tables say of the message as a whole.
    pub(super) fn definition(&self) -> Option<&'a MessageDef> {
        let Body::Message { message, tables, tree } = &self.record.body else { return None };
        definition(message.name, tables, tree)
    }

    /// Whether a reply to the message is promised.
    pub(super) fn expects_reply(&self) -> bool {
        let Body::Message { message, .. } = &self.record.body else { return false };
        self.definition().is_some_and(|def| message.expects_reply(def))
    }

    /// The value with which the message refuses a request.
    pub(super) fn refused(&self) -> Option<Refused<'a>> {
        refused(self.definition()?, &self.message?)
    }

    /// What earlier records call the message's numbers.
    pub(super) fn called(&self) -> impl Iterator<Item = CalledName<'a>> {
        let named =
            self.record.names.iter().map(|(node, name, record)| CalledName { node, name, record });
        named.filter(|called| self.node(called.node).is_some_and(|node| !self.hides(node)))
    }

    /// The line that says what the message is about.
    fn info(&self) -> &str {
        self.info.get_or_init(|| {
            let mut text = String::new();
            if let Some(source) = self.info_source() {
                write_info(source, self.record.names, &mut text);
            }
            text
        })
    }

    /// Whether there is a line that says what the message is about.
    pub(super) fn has_info(&self) -> bool {
        !self.info().is_empty()
    }

    /// What the message carries.
    pub(super) fn carried(&self) -> Option<Cow<'a, str>> {
        self.info_source()?.carried()
    }

    fn info_source(&self) -> Option<InfoSource<'a>> {
        let Body::Message { message, tables, tree } = &self.record.body else { return None };
        let def = definition(message.name, tables, tree);
        Some(InfoSource::new(
            message,
            def,
            MessageView { tables, tree, bytes: message.bytes },
            self.redact,
        ))
    }

    /// The path of a field as the JSON's `names` and `refused` have it.
    pub(super) fn field_path(&self, node: u32) -> String {
        self.message.map_or_else(String::new, |v| {
            format!("fields.{}", problem_path(v.tree, v.tables, node))
        })
    }

    pub(super) fn node(&self, index: u32) -> Option<&'a Node> {
        self.message?.tree.get(index)
    }

    pub(super) fn hides(&self, node: &Node) -> bool {
        self.redact && node.has(mark::SECRET)
    }

    /// The enum or flag set of a node's type, unless its value is redacted.
    pub(super) fn symbols(&self, node: &Node) -> Option<&'a EnumDef> {
        if self.hides(node) || matches!(node.kind, Kind::Struct | Kind::List) {
            return None;
        }
        self.message?.tables.symbols(node.ty)
    }

    /// The flags that are set in a node.
    pub fn flag_names(&self, index: u32) -> impl Iterator<Item = &'a str> {
        let node = self.node(index);
        let flags = node.and_then(|n| self.symbols(n)).filter(|s| s.flags);
        let bits = node.map_or(0, Node::unsigned);
        flags.into_iter().flat_map(move |set| set_flags(set, bits))
    }

    /// The form in which a value is compared.
    pub fn leaf(&self, value: RecordValue<'a>) -> Leaf<'a> {
        match value {
            RecordValue::Node(index) => {
                self.node(index).map_or(Leaf::Null, |node| self.node_leaf(node))
            }
            RecordValue::Number(index) => self.node(index).map_or(Leaf::Null, integer),
            RecordValue::Int(n) => Leaf::Int(n),
            RecordValue::Float(f) => Leaf::Float(f),
            RecordValue::Text(text) => Leaf::Text(Cow::Borrowed(text)),
            RecordValue::Time(time) => Leaf::Time(time),
            RecordValue::Address(at) => Leaf::Address(at),
            RecordValue::Bool(truth) => Leaf::Bool(truth),
            RecordValue::FieldPath(node) => Leaf::Text(Cow::Owned(self.field_path(node))),
            RecordValue::Info => Leaf::Text(Cow::Owned(self.info().to_string())),
            RecordValue::Carried => self.carried().map_or(Leaf::Null, Leaf::Text),
            RecordValue::ProblemText(i) => {
                self.problem(i, |p, v| problem_text(p, v.tables, v.tree))
            }
            RecordValue::ProblemField(i) => {
                self.problem(i, |p, v| problem_path(v.tree, v.tables, p.node))
            }
            RecordValue::ProblemBytes(i) => {
                self.problem_bytes(i).map_or(Leaf::Null, |bytes| Leaf::Hex(hex(bytes)))
            }
            RecordValue::EventBytes => self.event_bytes(),
            _ => Leaf::Composite,
        }
    }

    /// The bytes that an event shows; what they say is not known, so that all of them may be
    /// secret.
    fn event_bytes(&self) -> Leaf<'a> {
        match &self.record.body {
            Body::Event(event) if self.redact => {
                Leaf::Text(Cow::Owned(format!("<redacted, {} bytes>", event.bytes.len())))
            }
            Body::Event(event) => Leaf::Hex(hex(&event.bytes)),
            _ => Leaf::Null,
        }
    }

    fn problem(
        &self,
        i: usize,
        text: impl Fn(&crate::tree::Problem, MessageView<'a>) -> String,
    ) -> Leaf<'a> {
        let found = self.message.and_then(|v| Some((v.tree.problems().get(i)?, v)));
        found.map_or(Leaf::Null, |(p, v)| Leaf::Text(Cow::Owned(text(p, v))))
    }

    /// The bytes that a problem quotes.
    fn problem_bytes(&self, i: usize) -> Option<&'a [u8]> {
        let view = self.message?;
        let (buffer, start, len) = view.tree.problems().get(i)?.bytes?;
        let all = view.tree.bytes(buffer, view.bytes);
        Some(all.get(start as usize..start as usize + len as usize).unwrap_or(&[]))
    }

    /// The time that a value denotes, in nanoseconds since 1970: the record's time, a field that
    /// tables declare as Unix time, or a structure of such a field and microseconds.
    pub(super) fn instant(&self, value: RecordValue<'a>) -> Option<i128> {
        match value {
            RecordValue::Time(time) => {
                Some(i128::from(time.seconds) * NANOS_PER_SECOND + i128::from(time.nanos))
            }
            RecordValue::Node(index) => self.node_instant(index),
            _ => None,
        }
    }

    fn node_instant(&self, index: u32) -> Option<i128> {
        let node = self.node(index)?;
        if node.kind != Kind::Struct {
            return self.unix_time(node);
        }
        let mut members = self.message?.tree.members(index);
        let seconds = self.shown_number(members.next()?.1, "unix_time")?;
        let micros = match members.next() {
            Some((_, micros)) => self.microseconds(micros)?,
            None => 0,
        };
        members.next().is_none().then_some(seconds * NANOS_PER_SECOND + micros * 1000)
    }

    /// The time of a number that tables declare as one.
    fn unix_time(&self, node: &Node) -> Option<i128> {
        self.shown_number(node, "unix_time").map(|seconds| seconds * NANOS_PER_SECOND)
    }

    fn microseconds(&self, node: &Node) -> Option<i128> {
        let named = self.message?.tables.name(node.name) == "microseconds";
        match self.node_leaf(node) {
            Leaf::Int(micros) if named => Some(micros),
            _ => None,
        }
    }

    /// The number of a node whose type tables declare as `shown` in this way.
    fn shown_number(&self, node: &Node, shown: &str) -> Option<i128> {
        let tables = self.message?.tables;
        tables.type_def(node.ty)?.shown.filter(|sym| tables.name(*sym) == shown)?;
        match self.node_leaf(node) {
            Leaf::Int(number) | Leaf::Long(number) => Some(number),
            _ => None,
        }
    }

    fn node_leaf(&self, node: &Node) -> Leaf<'a> {
        if self.hides(node) {
            return Leaf::Text(Cow::Owned(format!("<redacted, {} bytes>", node.bits.div_ceil(8))));
        }
        if let Some(symbols) = self.symbols(node) {
            return symbol(symbols, node);
        }
        match node.kind {
            Kind::Struct | Kind::List => Leaf::Composite,
            Kind::Null => Leaf::Null,
            Kind::Uuid | Kind::UuidBe => {
                Leaf::Uuid(uuid_text(&self.content(node), node.kind == Kind::Uuid))
            }
            Kind::Text(TextKind::Owned) => Leaf::Text(Cow::Borrowed(
                self.message.map_or("", |v| v.tree.owned(node.value).raw()),
            )),
            Kind::Text(kind) => Leaf::Text(text(kind, self.content(node))),
            Kind::Bytes | Kind::Undecoded => Leaf::Hex(hex(&self.content(node))),
            _ => plain_number(node),
        }
    }

    fn content(&self, node: &Node) -> Cow<'a, [u8]> {
        self.message.map_or(Cow::Borrowed(&[]), |v| v.tree.content(node, v.bytes))
    }

    /// A record's time as in the JSON.
    pub(super) fn time_text(time: Time) -> String {
        let mut out = String::new();
        format_time(time, &mut out);
        out
    }
}

/// The index of a protocol among those the filter was compiled for; [`usize::MAX`] if it is none of
/// them.
pub(super) fn index_of(protocol: &str, protocols: &[&'static str]) -> usize {
    // Mostly the same text, not only an equal one.
    let same = protocols.iter().position(|known| std::ptr::eq(*known, protocol));
    same.or_else(|| protocols.iter().position(|known| *known == protocol)).unwrap_or(usize::MAX)
}

/// A value of an enum or a flag set.
pub(super) fn symbol<'a>(symbols: &'a EnumDef, node: &Node) -> Leaf<'a> {
    let (Leaf::Int(number) | Leaf::Long(number)) = integer(node) else { return Leaf::Composite };
    if symbols.flags {
        return Leaf::Flags(number, node.unsigned(), symbols);
    }
    let named = symbols.get(node.value).or_else(|| symbols.get(node.unsigned()));
    Leaf::Named(number, named.map(|v| &*v.name))
}

/// A number without names.
fn plain_number<'a>(node: &Node) -> Leaf<'a> {
    match node.kind {
        Kind::Bool => match node.value {
            0 => Leaf::Bool(false),
            1 => Leaf::Bool(true),
            n => Leaf::Int(n.into()),
        },
        Kind::F32 => float32(f32::from_bits(node.value as u32)),
        Kind::F64 => float64(f64::from_bits(node.value)),
        Kind::Ipv4 => Leaf::Ipv4(node.value as u32),
        _ => integer(node),
    }
}

pub(super) fn integer<'a>(node: &Node) -> Leaf<'a> {
    match node.kind {
        Kind::Signed => Leaf::Int((node.value as i64).into()),
        Kind::Unsigned64 => Leaf::Long(node.value.into()),
        Kind::Signed64 => Leaf::Long((node.value as i64).into()),
        _ => Leaf::Int(node.value.into()),
    }
}

/// A float of 32 bits as the number that its shortest decimal form denotes, which is what JSON
/// shows.
fn float32<'a>(f: f32) -> Leaf<'a> {
    if f.is_finite() && f.abs() <= 3e38 {
        return Leaf::Float(zmij::Buffer::new().format_finite(f).parse().unwrap_or(f64::from(f)));
    }
    float64(f64::from(f))
}

fn float64<'a>(f: f64) -> Leaf<'a> {
    if f.is_finite() {
        return Leaf::Float(f);
    }
    Leaf::Text(Cow::Borrowed(match (f.is_nan(), f > 0.0) {
        (true, _) => "NaN",
        (_, true) => "Infinity",
        _ => "-Infinity",
    }))
}

/// Decodes text, without copying if it is valid UTF-8.
fn text(kind: TextKind, bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    if let (TextKind::Utf8, Cow::Borrowed(plain)) = (kind, &bytes)
        && let Ok(text) = std::str::from_utf8(plain)
    {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(bytes.len());
    decode_text(kind, &bytes, &mut out);
    Cow::Owned(out)
}
