//! Nothing is allocated for a field, nor for a message, once all has been met: the same messages
//! again and again over one connection, with an allocator that counts.
//!
//! Everything that stands in a real session is sent over a connection made for the purpose,
//! encrypted as it was. The first rounds warm up (buffers grow to what they need, names are
//! learned); in the rounds after them every allocation is counted and put down to the message that
//! was read, or written, when it came.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "it/made.rs"]
mod made;
#[path = "../benches/material/mod.rs"]
mod material;

use std::alloc::System;
use std::collections::BTreeMap;

use made::{ACK, Made, end};
use material::{DIRTSAND, MOSS, Sent};
use moulsniff::facts::Stats;
use moulsniff::pipeline::{Output, Pipeline};
use moulsniff::print::PrintedTimes;
use moulsniff::print::json::{JsonOptions, JsonWriter};
use moulsniff::print::tree::TreeWriter;
use moulsniff::proto::moul::keys::{KeyFile, KeyRing, Rc4};
use moulsniff::record::{Body, Record};
use moulsniff::session::Side;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static COUNTED: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Rounds until everything has grown to its size, and rounds that count.
const WARM: usize = 8;
const COUNTING: usize = 6;

/// The RC4 key of the connections.
const KEY: [u8; 7] = [1, 2, 3, 4, 5, 6, 7];

/// A session's capture and keys.
type Session = (&'static str, &'static [&'static str]);

/// What a round of a connection's messages may allocate: read for statistics, written as JSON,
/// written as trees; and what may be allocated between them in each round, when a file that was
/// downloaded ends or begins.
///
/// The aim is 0 for every message. What is not 0 is exactly what it takes today in a round in which
/// no list grows. Those of the auth server are descriptor files that were downloaded: they are
/// taken apart while the message with their last part is read. On the file server each of 16
/// requests has a name, which is copied for the reply; after 2,048 requests with names the oldest
/// copy is used again. What a message carries, and what it refuses, are texts that are made for
/// some messages.
const BOUNDS: [(Session, &str, [usize; 3], usize); 6] = [
    (DIRTSAND, "gatekeeper", [0, 0, 0], 0),
    (DIRTSAND, "auth", [969, 947, 960], 0),
    (DIRTSAND, "game", [0, 9, 9], 0),
    (DIRTSAND, "file", [32, 20, 26], 27),
    (MOSS, "auth", [47, 37, 50], 0),
    (MOSS, "game", [0, 8, 8], 0),
];

/// What lists that grow by doubling may allocate beyond that, in all rounds that count together:
/// the times of replies, of which statistics keep a list for each type of request, and the requests
/// that wait for a reply. From the eighth round to the fourteenth a list doubles once or twice. The
/// cache of values' texts may get more slots: a long text that comes into one of these first is
/// allocated.
const GROWTH: [usize; 3] = [90, 12, 12];

/// Allocations so far, growing again included.
fn allocations() -> usize {
    let stats = COUNTED.stats();
    stats.allocations + stats.reallocations
}

/// What is done with a record.
enum Way {
    Stats(Box<Stats>),
    Json(Box<JsonWriter>),
    Tree(Box<(TreeWriter, PrintedTimes)>),
}

impl Way {
    fn write(&mut self, record: &Record<'_>, to: &mut Vec<u8>) {
        to.clear();
        match self {
            Way::Stats(stats) => stats.record(record),
            Way::Json(writer) => writer.record(record, to),
            Way::Tree(both) => {
                let (writer, times) = &mut **both;
                writer.record(record, times.next(record), to);
            }
        }
    }
}

/// Counts what is allocated from one record to the next.
struct Counter {
    way: Way,
    to: Vec<u8>,
    counting: bool,
    /// Where the count stood after the last record.
    last: usize,
    found: Found,
}

/// What was allocated in the rounds that count.
#[derive(Default)]
struct Found {
    messages: usize,
    /// By message: while it was read, and while it was written.
    by_message: BTreeMap<String, (usize, usize)>,
    /// For events, and what came before them: a file that was downloaded is taken apart when it is
    /// whole.
    by_events: usize,
    /// For messages, round by round.
    by_round: Vec<usize>,
    /// All of it, and what counting allocated itself.
    all: usize,
    counting: usize,
}

impl Found {
    fn by_messages(&self) -> usize {
        self.by_message.values().map(|(read, written)| read + written).sum()
    }
}

impl Output for Counter {
    fn record(&mut self, record: &Record<'_>) {
        let name = match &record.body {
            Body::Message { message, .. } => Some(message.name.raw()),
            _ => None,
        };
        self.note(name, |way, to| way.write(record, to));
    }
}

impl Counter {
    /// Puts down what was allocated since the last record, and what is to write this one.
    fn note(&mut self, message: Option<&str>, write: impl FnOnce(&mut Way, &mut Vec<u8>)) {
        let read = allocations() - self.last;
        write(&mut self.way, &mut self.to);
        let written = allocations() - self.last - read;
        if self.counting {
            let found = &mut self.found;
            if let Some(name) = message {
                found.messages += 1;
                if let Some(round) = found.by_round.last_mut() {
                    *round += read + written;
                }
                if read + written > 0 {
                    let (while_read, while_written) =
                        found.by_message.entry(name.to_string()).or_default();
                    *while_read += read;
                    *while_written += written;
                }
            } else {
                found.by_events += read + written;
            }
            found.counting += allocations() - self.last - read - written;
        }
        self.last = allocations();
    }
}

/// One connection of a session: its handshake once, then all its messages in several rounds.
fn rounds(sent: &[&Sent]) -> (Made, Vec<usize>) {
    let is_opening = |m: &&&Sent| {
        matches!(m.name.as_str(), "ConnectPacket" | "Cli2Srv_Connect" | "Srv2Cli_Encrypt")
    };
    let opening: Vec<_> = sent.iter().filter(is_opening).collect();
    let encrypted = opening.len() == 3;
    let mut ciphers = [Rc4::new(&KEY), Rc4::new(&KEY)];
    let mut made = Made::new();
    let client = end(1, 40_000);
    let server = end(0, 14_617);
    made.open(client, server);
    let mut next = [1_u32, 1];
    let mut send = |made: &mut Made, from: Side, bytes: &[u8]| {
        for part in bytes.chunks(1400) {
            let here = from.index();
            let there = 1 - from.index();
            let ends = if from == Side::Client { (client, server) } else { (server, client) };
            made.tcp(ends, (next[here], next[there], ACK), part);
            next[here] += part.len() as u32;
        }
    };
    for message in &opening {
        send(&mut made, message.from, &message.bytes);
    }
    let rest: Vec<_> = sent.iter().filter(|m| !is_opening(m)).collect();
    let mut ends = Vec::new();
    for _ in 0..WARM + COUNTING {
        for run in rest.chunk_by(|a, b| a.from == b.from) {
            let mut bytes = run.iter().map(|m| &m.bytes[..]).collect::<Vec<_>>().concat();
            if encrypted {
                ciphers[run[0].from.index()].apply(&mut bytes);
            }
            send(&mut made, run[0].from, &bytes);
        }
        ends.push(made.bytes.len());
    }
    (made, ends)
}

/// What is allocated in the rounds that count.
fn count(sent: &[&Sent], way: Way) -> Found {
    let (made, ends) = rounds(sent);
    let mut keys = KeyRing::default();
    let hex: String = KEY.iter().map(|byte| format!("{byte:02x}")).collect();
    keys.add(KeyFile::parse("key", format!("session any rc4={hex}\n").as_bytes()).unwrap());
    let mut out =
        Counter { way, to: Vec::new(), counting: false, last: 0, found: Found::default() };
    let mut pipeline = Pipeline::new(material::setup(keys));
    let mut at = 24;
    for frame in &material::frames(made.bytes) {
        let before = allocations();
        if let Some(round) =
            ends.iter().position(|end| *end == at).filter(|round| *round + 1 >= WARM)
        {
            out.counting = true;
            if out.found.by_round.len() < COUNTING && round + 1 < WARM + COUNTING {
                out.found.by_round.push(0);
            }
        }
        out.last = before;
        pipeline.frame(&frame.frame(), &mut out);
        if out.counting {
            out.found.all += allocations() - before;
        }
        at += 16 + frame.data.len();
    }
    out.found
}

#[test]
fn nothing_is_allocated_for_a_message_once_all_is_warm() {
    let mut wrong = Vec::new();
    for ((capture, keys), service, bounds, between) in BOUNDS {
        let all = material::messages((capture, keys));
        let longest = |stream: &u32| all.iter().filter(|m| m.stream == *stream).count();
        let stream = all
            .iter()
            .filter(|m| m.service == service)
            .map(|m| m.stream)
            .max_by_key(longest)
            .unwrap();
        let sent: Vec<&Sent> = all.iter().filter(|m| m.stream == stream).collect();
        for (((name, way), bound), growth) in ways().into_iter().zip(bounds).zip(GROWTH) {
            let found = count(&sent, way);
            let messages = found.messages / COUNTING;
            let allocated = found.by_messages();
            let rest = found.all - found.counting - found.by_events - allocated;
            let each = &found.by_round;
            let what = format!(
                "{capture} {service} {name}: {messages} messages a round; in {COUNTING} rounds \
                 {each:?} allocations for messages, {} for events, {rest} between them",
                found.by_events
            );
            println!("{what}");
            assert!(messages > 5 && found.messages.is_multiple_of(COUNTING), "{what}");
            assert!(each.len() == COUNTING && each.iter().sum::<usize>() == allocated, "{what}");
            let least = each.iter().min().copied().unwrap_or_default();
            // Between messages, too, a list may grow once.
            if least > bound
                || allocated > least * COUNTING + growth
                || rest > between * COUNTING + 1
            {
                wrong.push(format!("{what}; bound {bound} a round: {:#?}", found.by_message));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn ways() -> [(&'static str, Way); 3] {
    [
        ("stats", Way::Stats(Box::default())),
        ("json", Way::Json(Box::new(JsonWriter::new(JsonOptions::default())))),
        ("tree", Way::Tree(Box::default())),
    ]
}
