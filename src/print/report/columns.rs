//! The columns of the message list: one number a row and column, written as typed arrays in
//! little-endian order.

use std::io::{self, Write};
use std::net::SocketAddr;

use serde_json::{Value, json};

use super::{RowFacts, SessionRow};
use crate::capture::Time;
use crate::digits;
use crate::maps::SeededMap;
use crate::record::{Body, Record, event_word};
use crate::session::{Ends, Side};

/// Bits of a row's flags, as `data.js` knows them.
pub(super) mod flag {
    /// The server sent it.
    pub const SERVER: u8 = 1;
    /// It is an event.
    pub const EVENT: u8 = 2;
    /// It refuses something.
    pub const REFUSED: u8 = 4;
    /// A request that was never answered, or the event that says so.
    pub const UNANSWERED: u8 = 8;
    /// The protocol promises a reply.
    pub const EXPECTS: u8 = 16;
    /// It has a problem of the severity note. The next bit is for a warning, the one above for an
    /// error.
    pub const NOTE: u8 = 32;
}

/// Reasons for refusals beyond this many are counted as one.
const MAX_REASONS: usize = 1000;

/// The capture does not show what the network took of a reply's time.
const NETWORK_UNKNOWN: f32 = -1.0;
/// The row is no reply, or not the last one to its request.
const NOT_LAST: f32 = -2.0;

/// The memory of a row, and of a stream with its places in lists, in bytes.
const ROW: usize = 51;
const STREAM: usize = 2 * size_of::<StreamRow>();

/// All columns.
#[derive(Default)]
pub(super) struct ReportColumns {
    /// The time of the first record, cut to the milliseconds that JavaScript's dates have.
    start: Option<Time>,
    record: Vec<u32>,
    frame: Vec<u32>,
    /// Milliseconds since `start`.
    time: Vec<f64>,
    stream: Vec<u32>,
    flags: Vec<u8>,
    name: Vec<u16>,
    length: Vec<u32>,
    /// The record that this one answers; 0 for none.
    reply: Vec<u32>,
    /// Milliseconds since that record; negative for none.
    elapsed: Vec<f64>,
    /// How many of these milliseconds the network took; [`NETWORK_UNKNOWN`] where the capture does
    /// not show it, [`NOT_LAST`] where this is not the last reply.
    network: Vec<f32>,
    why: Vec<u16>,
    names: Interned,
    reasons: Interned,
    /// Names of services.
    services: Interned,
    streams: Vec<StreamRow>,
    stream_of: SeededMap<(&'static str, u32), u32>,
}

/// A stream, as it is kept until the page ends. There may be very many.
struct StreamRow {
    transport: &'static str,
    number: u32,
    protocol: &'static str,
    /// Its place among the names of services.
    service: u16,
    client: SocketAddr,
    server: SocketAddr,
    /// The number of its session; 0 for none.
    session: u64,
    places: Vec<String>,
}

/// Texts with numbers; 0 is the empty text.
#[derive(Default)]
struct Interned {
    texts: Vec<String>,
    numbers: SeededMap<String, u16>,
    /// Their memory, roughly.
    bytes: usize,
}

impl Interned {
    fn number(&mut self, text: &str, most: usize) -> u16 {
        if self.texts.is_empty() {
            self.texts.push(String::new());
        }
        if let Some(known) = self.numbers.get(text) {
            return *known;
        }
        if text.is_empty() || self.texts.len() >= most {
            return 0;
        }
        self.bytes += 2 * (size_of::<String>() + text.len());
        let number = self.texts.len() as u16;
        self.texts.push(text.to_string());
        self.numbers.insert(text.to_string(), number);
        number
    }
}

impl ReportColumns {
    /// Notes which session its streams belong to, and where each of them was.
    pub(super) fn tell_session(&mut self, number: u64, session: &SessionRow) {
        for (transport, stream) in &session.streams {
            let known = self.stream_of.get(&(transport.word(), *stream)).copied();
            let Some((place, entry)) =
                known.and_then(|at| Some((at, self.streams.get_mut(at as usize)?)))
            else {
                continue;
            };
            entry.session = number;
            let here = session.places.iter().filter(|(record, _)| {
                let row = self.record.binary_search(&narrow(*record)).ok();
                row.and_then(|row| self.stream.get(row)) == Some(&place)
            });
            entry.places = here.map(|(_, name)| name.clone()).collect();
        }
    }

    /// How many rows there are.
    pub(super) fn rows(&self) -> u64 {
        self.record.len() as u64
    }

    /// Adds a row.
    pub(super) fn push(&mut self, record: &Record<'_>, mut flags: u8, facts: RowFacts<'_>) {
        let start = *self.start.get_or_insert_with(|| whole_milliseconds(record.at.time));
        if record.from == Side::Server {
            flags |= flag::SERVER;
        }
        if facts.refused.is_some() {
            flags |= flag::REFUSED;
        }
        if let Some(request) = facts.unanswered {
            flags |= flag::UNANSWERED;
            self.mark_unanswered(request);
        }
        let (name, length, reply) = match &record.body {
            Body::Message { message, .. } => {
                (message.name.raw(), message.bytes.len(), message.reply)
            }
            body => (event_word(body), 0, None),
        };
        self.record.push(narrow(record.number));
        self.frame.push(narrow(record.at.frame));
        self.time.push(milliseconds(start, record.at.time));
        let stream = self.stream_number(record);
        self.stream.push(stream);
        self.flags.push(flags);
        let most = usize::from(u16::MAX);
        let number = match facts.carried {
            None => self.names.number(name, most),
            Some(carried) => match self.names.number(&format!("{name} {carried}"), most) {
                0 => self.names.number(name, most),
                number => number,
            },
        };
        self.name.push(number);
        self.length.push(narrow(length as u64));
        self.reply.push(reply.map_or(0, |reply| narrow(reply.record)));
        self.elapsed.push(reply.map_or(-1.0, |reply| digits::milliseconds(reply.nanos)));
        let network = reply.and_then(|reply| record.network(reply.nanos));
        self.network.push(if facts.last_reply {
            network.map_or(NETWORK_UNKNOWN, |nanos| digits::milliseconds(nanos) as f32)
        } else {
            NOT_LAST
        });
        let why = self.reasons.number(facts.refused.unwrap_or_default(), MAX_REASONS);
        self.why.push(why);
    }

    /// The request's row says that it was never answered. Rows are in the order of records.
    fn mark_unanswered(&mut self, request: u64) {
        if let Ok(row) = self.record.binary_search(&narrow(request))
            && let Some(flags) = self.flags.get_mut(row)
        {
            *flags |= flag::UNANSWERED;
        }
    }

    fn stream_number(&mut self, record: &Record<'_>) -> u32 {
        let key = (record.transport.word(), record.stream);
        let service = self.services.number(record.service, usize::from(u16::MAX));
        if let Some(known) = self.stream_of.get(&key) {
            if let Some(stream) = self.streams.get_mut(*known as usize) {
                stream.service = service;
            }
            return *known;
        }
        let Ends { client, server } = record.ends();
        let (transport, number) = key;
        let protocol = record.protocol;
        let stream = StreamRow {
            transport,
            number,
            protocol,
            service,
            client,
            server,
            session: 0,
            places: Vec::new(),
        };
        self.streams.push(stream);
        let number = self.streams.len() as u32 - 1;
        self.stream_of.insert(key, number);
        number
    }

    /// What the column `time` counts from, in RFC 3339.
    pub(super) fn start(&self) -> String {
        let mut text = String::new();
        super::super::format_time(self.start.unwrap_or_default(), &mut text);
        text
    }

    /// Name, kind and length of each array, in the order of [`ReportColumns::bytes`].
    pub(super) fn list(&self) -> Value {
        let rows = self.record.len();
        let kinds = [
            ("time", "f64"),
            ("elapsed", "f64"),
            ("record", "u32"),
            ("frame", "u32"),
            ("stream", "u32"),
            ("length", "u32"),
            ("reply", "u32"),
            ("network", "f32"),
            ("name", "u16"),
            ("why", "u16"),
            ("flags", "u8"),
        ];
        kinds.map(|(name, kind)| json!([name, kind, rows])).into_iter().collect()
    }

    /// Writes all arrays, the widest numbers first, so that each begins where its numbers may.
    ///
    /// # Errors
    /// What writing gives.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        for column in [&self.time, &self.elapsed] {
            write_column(out, column, |n| n.to_le_bytes())?;
        }
        for column in [&self.record, &self.frame, &self.stream, &self.length, &self.reply] {
            write_column(out, column, |n| n.to_le_bytes())?;
        }
        write_column(out, &self.network, |n| n.to_le_bytes())?;
        for column in [&self.name, &self.why] {
            write_column(out, column, |n| n.to_le_bytes())?;
        }
        out.write_all(&self.flags)
    }

    /// The memory of all rows, streams and names, roughly, in bytes.
    pub(super) fn held(&self) -> usize {
        let texts = self.names.bytes + self.reasons.bytes + self.services.bytes;
        self.record.len() * ROW + self.streams.len() * STREAM + texts
    }

    /// The names of messages and events, by number.
    pub(super) fn names(&self) -> &[String] {
        &self.names.texts
    }

    /// The reasons of refusals, by number.
    pub(super) fn reasons(&self) -> &[String] {
        &self.reasons.texts
    }

    /// The streams as the page's script knows them, by number.
    pub(super) fn streams(&self) -> impl Iterator<Item = Value> {
        self.streams.iter().map(|stream| {
            let places: Vec<Value> = stream.places.iter().map(|name| json!({ "name": name })).collect();
            json!({
                "key": format!("{} {}", stream.transport, stream.number), "transport": stream.transport,
                "number": stream.number, "protocol": stream.protocol,
                "service": self.services.texts.get(usize::from(stream.service)), "client": stream.client.to_string(),
                "server": stream.server.to_string(), "session": stream.session, "how": "", "start": 0, "end": 0,
                "places": places,
            })
        })
    }
}

/// Writes a column, some thousand numbers at a time.
fn write_column<N: Copy, const LENGTH: usize>(
    out: &mut impl Write,
    column: &[N],
    bytes: impl Fn(N) -> [u8; LENGTH] + Copy,
) -> io::Result<()> {
    let mut part = Vec::new();
    for numbers in column.chunks(4096) {
        part.clear();
        part.extend(numbers.iter().flat_map(|number| bytes(*number)));
        out.write_all(&part)?;
    }
    Ok(())
}

fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn whole_milliseconds(time: Time) -> Time {
    Time { nanos: time.nanos / 1_000_000 * 1_000_000, digits: 3, ..time }
}

fn milliseconds(from: Time, to: Time) -> f64 {
    (to.seconds - from.seconds) as f64 * 1e3 + (f64::from(to.nanos) - f64::from(from.nanos)) / 1e6
}
