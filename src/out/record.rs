//! What every output is handed: one record, a message or an event with its place in the capture.

use std::fmt::Write;
use std::net::SocketAddr;

use crate::capture::Time;
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

/// Appends a time as RFC 3339 in UTC, with the capture's own precision.
pub fn format_time(time: Time, out: &mut String) {
    let (year, month, day) = civil(time.seconds.div_euclid(86_400));
    let second = time.seconds.rem_euclid(86_400);
    let (h, m, s) = (second / 3600, second / 60 % 60, second % 60);
    let _ = write!(out, "{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}");
    if time.digits > 0 {
        let digits = usize::from(time.digits.min(9));
        let fraction = format!("{:09}", time.nanos);
        out.push('.');
        out.push_str(fraction.get(..digits).unwrap_or(&fraction));
    }
    out.push('Z');
}

/// Year, month and day of a day counted from 1970-01-01 (Gregorian calendar).
fn civil(day: i64) -> (i64, i64, i64) {
    let z = day + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + i64::from(month <= 2), month, doy - (153 * mp + 2) / 5 + 1)
}

/// A problem's text with its numbers.
pub fn problem_text(problem: &Problem, tables: &Tables, tree: &Tree) -> String {
    let mut out = String::new();
    match problem.text {
        Text::Fixed(text) => Problem::format(text, problem.a, problem.b, &mut out),
        Text::Table(sym) => out.push_str(tables.name(sym)),
        Text::Owned(place) => out.push_str(tree.owned(place)),
    }
    out
}

/// The path of the node a problem is about, as filters write it, without `fields.`; empty for the message itself.
pub fn problem_path(tree: &Tree, tables: &Tables, target: u32) -> String {
    let mut out = String::new();
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
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(tree.dynamic(name).unwrap_or_else(|| tables.name(name)));
        }
        parent = index;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_captures_precision() {
        let mut out = String::new();
        format_time(Time { seconds: 1_795_168_301, nanos: 586_970_000, digits: 6 }, &mut out);
        assert_eq!(out, "2026-11-20T09:51:41.586970Z");
        out.clear();
        format_time(Time { seconds: -1, nanos: 5, digits: 9 }, &mut out);
        assert_eq!(out, "1969-12-31T23:59:59.000000005Z");
    }
}
