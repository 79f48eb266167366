//! What every output is handed: one record, a message or an event with its place in the capture.

use std::net::SocketAddr;

use crate::proto::{Event, EventKind, Message, Moment, Side, Transport};
use crate::table::Tables;
use crate::tree::{Kind, Problem, Sym, Text, Tree};

/// Byte counts of a direction, a stream, a service or the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All captured payload bytes.
    pub payload: u64,
    /// In a span of a named field.
    pub explained: u64,
    /// Without structure by nature.
    pub opaque: u64,
    /// That no field claims.
    pub undecoded: u64,
    /// That stayed closed for want of a key.
    pub closed: u64,
    /// Never captured.
    pub lost: u64,
}

impl Counts {
    /// Adds the counts of something else.
    pub fn add(&mut self, other: Counts) {
        self.payload += other.payload;
        self.explained += other.explained;
        self.opaque += other.opaque;
        self.undecoded += other.undecoded;
        self.closed += other.closed;
        self.lost += other.lost;
    }
}

/// One record.
pub struct Record<'a> {
    /// Its number, from 1.
    pub number: u64,
    /// The frame that completed it.
    pub at: Moment,
    /// TCP or UDP.
    pub transport: Transport,
    /// The stream's number.
    pub stream: u32,
    /// Who sent it.
    pub src: SocketAddr,
    /// Who received it.
    pub dst: SocketAddr,
    /// Client or server.
    pub from: Side,
    /// The protocol's name.
    pub protocol: &'a str,
    /// The service's name.
    pub service: &'a str,
    /// A message, an event, or a direction's end.
    pub body: Body<'a>,
}

/// What a record is.
pub enum Body<'a> {
    /// A message.
    Message {
        /// What the session said of it.
        message: &'a Message<'a>,
        /// The tables its tree refers to.
        tables: &'a Tables,
        /// Its fields.
        tree: &'a Tree,
    },
    /// An event.
    Event(&'a Event),
    /// The end of a direction.
    StreamEnd {
        /// How it ended.
        text: &'a str,
        /// Its bytes.
        counts: Counts,
    },
}

/// The names of all events.
#[rustfmt::skip]
pub const EVENTS: [&str; 12] = [
    "key", "no_key", "wrong_key", "gap", "undecoded", "resync", "limit", "checksum", "stream_end", "open", "close", "remark",
];

/// The name of an event as in the JSON; empty for a message.
pub fn event_word(body: &Body<'_>) -> &'static str {
    let Body::Event(event) = body else {
        return if matches!(body, Body::StreamEnd { .. }) { "stream_end" } else { "" };
    };
    match &event.kind {
        EventKind::Key { .. } => "key",
        EventKind::NoKey => "no_key",
        EventKind::WrongKey => "wrong_key",
        EventKind::Gap => "gap",
        EventKind::Undecoded => "undecoded",
        EventKind::Resync { .. } => "resync",
        EventKind::Limit { .. } => "limit",
        EventKind::Checksum => "checksum",
        EventKind::Open => "open",
        EventKind::Close => "close",
        EventKind::Remark => "remark",
    }
}

/// A problem's text with its numbers.
pub fn problem_text(problem: &Problem, tables: &Tables, tree: &Tree) -> String {
    let mut out = String::new();
    write_problem_text(problem, tables, tree, &mut out);
    out
}

/// Appends a problem's text with its numbers.
pub fn write_problem_text(problem: &Problem, tables: &Tables, tree: &Tree, out: &mut String) {
    match problem.text {
        Text::Fixed(text) => Problem::format(text, problem.a, problem.b, out),
        Text::Table(sym) => out.push_str(tables.name(sym)),
        Text::Owned(place) => out.push_str(tree.owned(place)),
    }
}

/// The path of the node a problem is about, as filters write it, without `fields.`; empty for the message itself.
pub fn problem_path(tree: &Tree, tables: &Tables, target: u32) -> String {
    let mut out = String::new();
    write_problem_path(tree, tables, target, &mut out);
    out
}

/// Appends the same.
pub fn write_problem_path(tree: &Tree, tables: &Tables, target: u32, out: &mut String) {
    let start = out.len();
    let mut parent = 0;
    while parent < target {
        let list = tree.get(parent).is_some_and(|n| n.kind == Kind::List);
        let mut element = 0;
        let mut next = None;
        for (index, node) in tree.children(parent) {
            if index <= target && target < node.end {
                next = Some((index, node.name));
                break;
            }
            element += usize::from(!node.has(crate::tree::mark::SPAN));
        }
        let Some((index, name)) = next else { break };
        let through = tree.get(index).is_some_and(|n| n.has(crate::tree::mark::SEE_THROUGH));
        if through {
            parent = index;
            continue;
        }
        if list && name == Sym::ELEMENT {
            out.push('[');
            out.push_str(itoa::Buffer::new().format(element));
            out.push(']');
        } else {
            if out.len() > start {
                out.push('.');
            }
            out.push_str(tree.dynamic(name).unwrap_or_else(|| tables.name(name)));
        }
        parent = index;
    }
}
