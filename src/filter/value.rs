//! A record seen as its JSON would be, without making it: objects, lists and values one can step into.

use std::borrow::Cow;
use std::net::SocketAddr;

use crate::capture::Time;
use crate::out::{Body, Counts, Record, event_word, format_time, problem_path, problem_text};
use crate::proto::EventKind;
use crate::table::{EnumDef, Tables};
use crate::tree::{Kind, LinkKind, Node, RecordLink, TextKind, Tree, decode_text, mark};

/// A record that is being looked at.
pub struct Scope<'a> {
    pub(super) record: &'a Record<'a>,
    /// A message's tree and what it refers to.
    pub(super) message: Option<View<'a>>,
    /// The protocol's place among those the filter was compiled for.
    pub(super) protocol: usize,
    redact: bool,
}

/// A tree with all that is needed to read it.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) tables: &'a Tables,
    pub(super) tree: &'a Tree,
    pub(super) bytes: &'a [u8],
}

/// A place in a record's JSON.
#[derive(Clone, Copy)]
pub enum Value<'a> {
    /// The record.
    Record,
    /// A node of the tree.
    Node(u32),
    /// The number of a node whose values have names.
    Number(u32),
    /// The names of a node's flags.
    Names(u32),
    /// The list of problems.
    Problems,
    /// One of them.
    Problem(usize),
    /// The text of one.
    ProblemText(usize),
    /// The path of one.
    ProblemField(usize),
    /// The bytes of one.
    ProblemBytes(usize),
    /// The ties of a kind.
    Links(LinkKind),
    /// One of them.
    Link(RecordLink),
    /// Byte counts.
    Counts(Counts),
    /// An integer.
    Int(i128),
    /// A float.
    Float(f64),
    /// A text.
    Text(&'a str),
    /// The record's time.
    Time(Time),
    /// One of the record's ends.
    Address(SocketAddr),
}

/// A value as it can be compared.
pub enum Leaf<'a> {
    /// An integer.
    Int(i128),
    /// An integer that JSON has as a decimal string.
    Long(i128),
    /// A float.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// No object where one could be.
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
    /// A value of an enum.
    Named(i128, Option<&'a str>),
    /// A value of a flag set: the number, its bits, and the names of bits.
    Flags(i128, u64, &'a EnumDef),
    /// An object or a list.
    Composite,
}

impl<'a> Scope<'a> {
    pub(super) fn new(record: &'a Record<'a>, protocols: &[String], redact: bool) -> Scope<'a> {
        let message = match &record.body {
            Body::Message { message, tables, tree } => Some(View { tables, tree, bytes: message.bytes }),
            _ => None,
        };
        let protocol = protocols.iter().position(|p| p == record.protocol).unwrap_or(usize::MAX);
        Scope { record, message, protocol, redact }
    }

    /// A key of the record itself.
    pub(super) fn key(&self, key: &str) -> Option<Value<'a>> {
        let r = self.record;
        Some(match key {
            "record" => Value::Int(r.number.into()),
            "time" => Value::Time(r.at.time),
            "frame" => Value::Int(r.at.frame.into()),
            "transport" => Value::Text(r.transport.word()),
            "stream" => Value::Int(r.stream.into()),
            "src" => Value::Address(r.src),
            "dst" => Value::Address(r.dst),
            "from" => Value::Text(r.from.word()),
            "protocol" => Value::Text(r.protocol),
            "service" => Value::Text(r.service),
            _ => return self.body_key(key),
        })
    }

    fn body_key(&self, key: &str) -> Option<Value<'a>> {
        match &self.record.body {
            Body::Message { message, tree, .. } => match key {
                "message" => Some(Value::Text(message.name)),
                "type" => message.number.map(|n| Value::Int(n.into())),
                "offset" => Some(Value::Int(message.offset.into())),
                "length" => Some(Value::Int(message.bytes.len() as i128)),
                "reply_to" => message.reply.map(|r| Value::Int(r.record.into())),
                "elapsed_ms" => message.reply.map(|r| Value::Float(milliseconds(r.nanos))),
                "fields" => Some(Value::Node(0)),
                "problems" => (!tree.problems().is_empty()).then_some(Value::Problems),
                "sent_again" => self.links(LinkKind::SentAgain),
                "acknowledges" => self.links(LinkKind::Acknowledges),
                _ => None,
            },
            Body::Event(event) => match (key, &event.kind) {
                ("event", _) => Some(Value::Text(event_word(&self.record.body))),
                ("text", _) => Some(Value::Text(&event.text)),
                ("offset", _) => event.offset.map(|n| Value::Int(n.into())),
                ("length", _) => event.length.map(|n| Value::Int(n.into())),
                ("key_file", EventKind::Key { key_file }) => Some(Value::Text(key_file)),
                ("passed_over", EventKind::Resync { passed_over }) => Some(Value::Int((*passed_over).into())),
                ("limit", EventKind::Limit { limit }) => Some(Value::Text(limit)),
                _ => None,
            },
            Body::StreamEnd { text, counts } => match key {
                "event" => Some(Value::Text("stream_end")),
                "text" => Some(Value::Text(text)),
                "bytes" => Some(Value::Counts(*counts)),
                _ => None,
            },
        }
    }

    fn links(&self, kind: LinkKind) -> Option<Value<'a>> {
        self.message?.tree.links().iter().any(|l| l.kind == kind).then_some(Value::Links(kind))
    }

    pub(super) fn node(&self, index: u32) -> Option<&'a Node> {
        self.message?.tree.get(index)
    }

    pub(super) fn hides(&self, node: &Node) -> bool {
        self.redact && node.has(mark::SECRET)
    }

    /// The names of a node's values, where it has some and shows them.
    pub(super) fn symbols(&self, node: &Node) -> Option<&'a EnumDef> {
        if self.hides(node) || matches!(node.kind, Kind::Struct | Kind::List) {
            return None;
        }
        self.message?.tables.symbols(node.ty)
    }

    /// The flags that are set in a node.
    pub(super) fn flag_names(&self, index: u32) -> impl Iterator<Item = &'a str> {
        let node = self.node(index);
        let flags = node.and_then(|n| self.symbols(n)).filter(|s| s.flags);
        let bits = node.map_or(0, raw);
        flags
            .into_iter()
            .flat_map(|s| &s.values)
            .filter(move |v| v.value != 0 && bits & v.value == v.value)
            .map(|v| &*v.name)
    }

    /// A value as it can be compared.
    pub fn leaf(&self, value: Value<'a>) -> Leaf<'a> {
        match value {
            Value::Node(index) => self.node(index).map_or(Leaf::Null, |node| self.node_leaf(node)),
            Value::Number(index) => self.node(index).map_or(Leaf::Null, integer),
            Value::Int(n) => Leaf::Int(n),
            Value::Float(f) => Leaf::Float(f),
            Value::Text(text) => Leaf::Text(Cow::Borrowed(text)),
            Value::Time(time) => Leaf::Time(time),
            Value::Address(at) => Leaf::Address(at),
            Value::ProblemText(i) => self.problem(i, |p, v| problem_text(p, v.tables, v.tree)),
            Value::ProblemField(i) => self.problem(i, |p, v| problem_path(v.tree, v.tables, p.node)),
            Value::ProblemBytes(i) => self.problem(i, |p, v| {
                let (buffer, start, len) = p.bytes.unwrap_or((crate::tree::Buffer::CAPTURED, 0, 0));
                let all = v.tree.bytes(buffer, v.bytes);
                hex(all.get(start as usize..start as usize + len as usize).unwrap_or(&[]))
            }),
            _ => Leaf::Composite,
        }
    }

    fn problem(&self, i: usize, text: impl Fn(&crate::tree::Problem, View<'a>) -> String) -> Leaf<'a> {
        let found = self.message.and_then(|v| Some((v.tree.problems().get(i)?, v)));
        found.map_or(Leaf::Null, |(p, v)| Leaf::Text(Cow::Owned(text(p, v))))
    }

    fn node_leaf(&self, node: &'a Node) -> Leaf<'a> {
        if self.hides(node) {
            return Leaf::Text(Cow::Owned(format!("<redacted, {} bytes>", node.bits.div_ceil(8))));
        }
        if let Some(symbols) = self.symbols(node) {
            let (Leaf::Int(number) | Leaf::Long(number)) = integer(node) else { return Leaf::Composite };
            if symbols.flags {
                return Leaf::Flags(number, raw(node), symbols);
            }
            let named = symbols.get(node.value).or_else(|| symbols.get(raw(node)));
            return Leaf::Named(number, named.map(|v| &*v.name));
        }
        let owned = |place| self.message.map_or("", |v| v.tree.owned(place));
        match node.kind {
            Kind::Struct | Kind::List => Leaf::Composite,
            Kind::Null => Leaf::Null,
            Kind::Bool => match node.value {
                0 => Leaf::Bool(false),
                1 => Leaf::Bool(true),
                n => Leaf::Int(n.into()),
            },
            Kind::F32 => float32(f32::from_bits(node.value as u32)),
            Kind::F64 => float64(f64::from_bits(node.value)),
            Kind::Uuid | Kind::UuidBe => Leaf::Uuid(uuid(&self.content(node), node.kind == Kind::Uuid)),
            Kind::Ipv4 => Leaf::Ipv4(node.value as u32),
            Kind::Text(TextKind::Owned) => Leaf::Text(Cow::Borrowed(owned(node.value))),
            Kind::Text(kind) => Leaf::Text(text(kind, self.content(node))),
            Kind::Number => number(owned(node.value)),
            Kind::Bytes | Kind::Undecoded => Leaf::Hex(hex(&self.content(node))),
            _ => integer(node),
        }
    }

    fn content(&self, node: &Node) -> Cow<'a, [u8]> {
        self.message.map_or(Cow::Borrowed(&[]), |v| v.tree.content(node, v.bytes))
    }

    /// What a record's time looks like in the JSON.
    pub(super) fn time_text(time: Time) -> String {
        let mut out = String::new();
        format_time(time, &mut out);
        out
    }
}

/// Nanoseconds as the milliseconds the JSON has.
pub(super) fn milliseconds(nanos: i64) -> f64 {
    (nanos / 1000) as f64 / 1000.0
}

fn raw(node: &Node) -> u64 {
    let bits = u64::from(node.bits.clamp(1, 64));
    if bits == 64 { node.value } else { node.value & ((1 << bits) - 1) }
}

fn integer<'a>(node: &Node) -> Leaf<'a> {
    match node.kind {
        Kind::Signed => Leaf::Int((node.value as i64).into()),
        Kind::Unsigned64 => Leaf::Long(node.value.into()),
        Kind::Signed64 => Leaf::Long((node.value as i64).into()),
        _ => Leaf::Int(node.value.into()),
    }
}

/// A number as JSON text: as it is, or as a decimal string.
fn number(json: &str) -> Leaf<'_> {
    let quoted = json.strip_prefix('"').and_then(|t| t.strip_suffix('"'));
    let text = quoted.unwrap_or(json);
    match (text.parse::<i128>(), text.parse::<f64>()) {
        (Ok(n), _) if quoted.is_some() => Leaf::Long(n),
        (Ok(n), _) => Leaf::Int(n),
        (_, Ok(f)) if quoted.is_none() => Leaf::Float(f),
        _ => Leaf::Text(Cow::Borrowed(text)),
    }
}

/// A float of 32 bits as the number its shortest decimal form is.
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

/// What some bytes say, without a copy where they are UTF-8 already.
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

pub(super) fn hex(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len() * 2);
    crate::out::json::hex(&mut out, bytes);
    String::from_utf8(out).unwrap_or_default()
}

fn uuid(bytes: &[u8], microsoft: bool) -> String {
    let mut order = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
    if microsoft {
        order = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    }
    let mut out = String::with_capacity(36);
    for (i, from) in order.into_iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        out.push_str(&hex(&[bytes.get(from).copied().unwrap_or(0)]));
    }
    out
}
