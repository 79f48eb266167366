//! What a record has and a payload has not, in few bytes: events, the ends of streams and what was
//! known of them, round trips, and what was known of the capture as a whole. A packet carries what
//! came before its message; the last one also what came after it.
//!
//! All numbers are LEB128 (`leb128`), signed ones zigzag-coded; a text is its length in bytes and
//! UTF-8. An item is its kind, its length in bytes, and its content, so that a reader passes over
//! kinds that it does not know. A number that may be absent is 0, or the number plus 1.

use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;

use super::packed::put_text;
use crate::capture::{Moment, Time};
use crate::leb128::{Leb128Reader, put, unzigzag, zigzag};
use crate::record::{Body, EndedBy, Record, RoundTrip, RoundTrips, SideTraffic, StreamTraffic};
use crate::session::{
    Counts, Ends, Event, EventKind, Learned, LearnedValue, Secret, Side, Transport,
};

// Kinds of items.
const TRIPS: u8 = 1;
const EVENT: u8 = 2;
const STREAM_END: u8 = 3;
const STREAM: u8 = 4;
const CAPTURE: u8 = 5;

/// Words of facts and limits that are kept while the program runs, and bytes of each.
const MAX_WORDS: usize = 512;
const MAX_WORD: usize = 64;
/// Facts of one stream, things and ports that are read.
const MAX_LIST: usize = 65_536;

/// How a direction ended, each at the place of its number.
const ENDS: [EndedBy; 5] =
    [EndedBy::Fin, EndedBy::Reset, EndedBy::Open, EndedBy::Timeout, EndedBy::GivenUp];

/// One thing that a packet carries.
#[derive(Clone, Debug)]
pub enum CarriedItem {
    /// The number of the packet's own record, and the round trips that were known by then.
    Trips(u64, RoundTrips),
    /// A record that is an event or the end of a direction.
    Record(Box<CarriedRecord>),
    /// A stream ended.
    Stream(Box<CarriedStream>),
    /// The capture ended.
    Capture(Box<CarriedCapture>),
}

/// A record without a message.
#[derive(Clone, Debug)]
pub struct CarriedRecord {
    /// Its number in the capture that was exported.
    pub number: u64,
    /// Its frame there.
    pub at: Moment,
    /// Its stream.
    pub transport: Transport,
    /// The stream's number.
    pub stream: u32,
    /// Its two ends.
    pub ends: Ends,
    /// The protocol's name.
    pub protocol: String,
    /// The round trips that were known by then.
    pub round_trips: RoundTrips,
    /// What it is. The service and the sender are those of the event.
    pub body: CarriedBody,
}

/// What a record without a message is.
#[derive(Clone, Debug)]
pub enum CarriedBody {
    /// An event.
    Event(Event),
    /// The end of a direction.
    StreamEnd {
        /// The side that sent it.
        from: Side,
        /// The service.
        service: String,
        /// How it ended.
        end: EndedBy,
        /// The same for people.
        text: String,
        /// Its bytes.
        counts: Counts,
        /// The frame in which its sender closed or reset it.
        closed_in: Option<u64>,
    },
}

/// A stream that ended.
#[derive(Clone, Debug)]
pub struct CarriedStream {
    /// Its transport.
    pub transport: Transport,
    /// Its number.
    pub stream: u32,
    /// Its two ends.
    pub ends: Ends,
    /// The protocol's name.
    pub protocol: String,
    /// The service's name.
    pub service: String,
    /// The byte counts of client and server. `None` where only a part of its messages is there.
    pub counts: Option<[Counts; 2]>,
    /// The round trips to its ends.
    pub round_trips: RoundTrips,
    /// What its packets showed.
    pub traffic: StreamTraffic,
    /// What its session learned.
    pub learned: Vec<Learned>,
}

/// What was known of the capture at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CarriedCapture {
    /// Numbers, by their place.
    pub numbers: Vec<u64>,
    /// The times of the earliest and of the latest frame.
    pub times: Option<(Time, Time)>,
    /// By how many nanoseconds a frame was earlier than one before it, at most.
    pub back_by: i64,
    /// Ports of conversations that no protocol recognised: UDP or not, port, conversations, bytes.
    pub ports: Vec<(bool, u16, u64, u64)>,
}

/// Collects what the next packet carries.
#[derive(Default)]
pub struct CarriedWriter {
    bytes: Vec<u8>,
    item: Vec<u8>,
}

impl CarriedWriter {
    /// What was collected.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Begins anew.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Adds what the packet of a message carries beside it.
    pub fn message(&mut self, record: &Record<'_>) {
        put(&mut self.item, record.number);
        put_trips(&mut self.item, &record.round_trips);
        self.add(TRIPS);
    }

    /// Adds a record that is no message.
    pub fn record(&mut self, record: &Record<'_>) {
        let to = &mut self.item;
        let kind = match &record.body {
            Body::Message { .. } => return,
            Body::Event(_) => EVENT,
            Body::StreamEnd { .. } => STREAM_END,
        };
        put(to, record.number);
        put(to, record.at.frame);
        put_time(to, record.at.time);
        put_stream(to, record.transport, record.stream, record.ends(), record.protocol);
        put_trips(to, &record.round_trips);
        to.push(record.from.index() as u8);
        put_text(to, record.service);
        match &record.body {
            Body::Message { .. } => {}
            Body::Event(event) => put_event(to, event),
            Body::StreamEnd { end, text, counts, closed_in } => {
                to.push(ENDS.iter().position(|known| known == end).unwrap_or(2) as u8);
                put_text(to, text);
                put_counts(to, counts);
                put_optional(to, *closed_in);
            }
        }
        self.add(kind);
    }

    /// Adds a stream that ended.
    pub fn stream(&mut self, stream: &CarriedStream) {
        let to = &mut self.item;
        put_stream(to, stream.transport, stream.stream, stream.ends, &stream.protocol);
        put_text(to, &stream.service);
        put(to, stream.counts.is_some().into());
        stream.counts.iter().flatten().for_each(|counts| put_counts(to, counts));
        put_trips(to, &stream.round_trips);
        put(to, stream.traffic.whole.into());
        for side in &stream.traffic.sides {
            let SideTraffic {
                heard,
                unheard,
                packets,
                resent,
                first_resent,
                zero_windows,
                first_zero_window,
                longest_zero_window,
                unacknowledged,
            } = *side;
            let numbers = [
                heard.into(),
                unheard,
                packets,
                resent,
                first_resent,
                zero_windows,
                first_zero_window,
                zigzag(longest_zero_window),
                zigzag(unacknowledged),
            ];
            numbers.into_iter().for_each(|number| put(to, number));
        }
        put(to, stream.learned.len() as u64);
        for learned in &stream.learned {
            put_text(to, learned.group);
            put_text(to, &learned.name);
            put(to, learned.heading as u64);
            put(to, learned.of_stream.into());
            put(to, learned.facts.len() as u64);
            for (key, value) in &learned.facts {
                put_text(to, key);
                match value {
                    LearnedValue::Text(text) => {
                        to.push(0);
                        put_text(to, text);
                    }
                    LearnedValue::Count(count) => {
                        to.push(1);
                        put(to, *count);
                    }
                    LearnedValue::Microseconds(count) => {
                        to.push(2);
                        put(to, *count);
                    }
                }
            }
        }
        self.add(STREAM);
    }

    /// Adds what is known of the capture.
    pub fn capture(&mut self, capture: &CarriedCapture) {
        let to = &mut self.item;
        put(to, capture.numbers.len() as u64);
        capture.numbers.iter().for_each(|number| put(to, *number));
        put(to, capture.times.is_some().into());
        for time in capture.times.iter().flat_map(|(first, last)| [first, last]) {
            put_time(to, *time);
        }
        put(to, zigzag(capture.back_by));
        put(to, capture.ports.len() as u64);
        for (udp, port, conversations, bytes) in &capture.ports {
            let numbers = [u64::from(*udp), u64::from(*port), *conversations, *bytes];
            numbers.into_iter().for_each(|number| put(to, number));
        }
        self.add(CAPTURE);
    }

    /// Adds the item that was written.
    fn add(&mut self, kind: u8) {
        self.bytes.push(kind);
        put(&mut self.bytes, self.item.len() as u64);
        self.bytes.append(&mut self.item);
    }
}

fn put_optional(to: &mut Vec<u8>, number: Option<u64>) {
    put(to, number.map_or(0, |number| number.saturating_add(1)));
}

fn put_time(to: &mut Vec<u8>, time: Time) {
    put(to, zigzag(time.seconds));
    put(to, time.nanos.into());
    to.push(time.digits);
}

fn put_trips(to: &mut Vec<u8>, trips: &RoundTrips) {
    for trip in [trips.client, trips.server] {
        match trip {
            None => to.push(0),
            Some(RoundTrip { nanos, opening }) => {
                to.push(1 + u8::from(opening));
                put(to, zigzag(nanos));
            }
        }
    }
}

fn put_counts(to: &mut Vec<u8>, counts: &Counts) {
    let Counts { payload, explained, opaque, undecoded, closed, lost } = *counts;
    let numbers = [payload, explained, opaque, undecoded, closed, lost];
    numbers.into_iter().for_each(|number| put(to, number));
}

fn put_stream(to: &mut Vec<u8>, transport: Transport, number: u32, ends: Ends, protocol: &str) {
    to.push(u8::from(transport == Transport::Udp));
    put(to, number.into());
    for end in [ends.client, ends.server] {
        match end.ip() {
            IpAddr::V4(address) => {
                to.push(4);
                to.extend_from_slice(&address.octets());
            }
            IpAddr::V6(address) => {
                to.push(6);
                to.extend_from_slice(&address.octets());
            }
        }
        put(to, end.port().into());
    }
    put_text(to, protocol);
}

fn put_event(to: &mut Vec<u8>, event: &Event) {
    put_optional(to, event.offset);
    put_optional(to, event.length);
    put(to, event.bytes.len() as u64);
    to.extend_from_slice(&event.bytes);
    put_text(to, &event.text);
    match &event.kind {
        EventKind::Key { key_file, .. } => {
            to.push(0);
            put_text(to, key_file);
        }
        EventKind::NoKey => to.push(1),
        EventKind::WrongKey => to.push(2),
        EventKind::Gap => to.push(3),
        EventKind::Undecoded => to.push(4),
        EventKind::Resync { passed_over } => {
            to.push(5);
            put(to, *passed_over);
        }
        EventKind::Limit { limit } => {
            to.push(6);
            put_text(to, limit);
        }
        EventKind::Unanswered { request, message, waited, part } => {
            to.push(7);
            put(to, *request);
            put_text(to, message);
            put(to, zigzag(*waited));
            put(to, (*part).into());
        }
        EventKind::Checksum => to.push(8),
        EventKind::Open => to.push(9),
        EventKind::Close => to.push(10),
        EventKind::Remark => to.push(11),
    }
}

/// Reads the items that a packet carries. What is damaged, and what follows it, is left out.
pub struct CarriedReader<'a> {
    rest: Leb128Reader<'a>,
}

impl<'a> CarriedReader<'a> {
    /// Reads from the first of `bytes` on.
    pub fn new(bytes: &'a [u8]) -> CarriedReader<'a> {
        CarriedReader { rest: Leb128Reader::new(bytes) }
    }
}

impl Iterator for CarriedReader<'_> {
    type Item = CarriedItem;

    fn next(&mut self) -> Option<CarriedItem> {
        loop {
            // Zeros behind the last item pad the tag.
            let kind = self.rest.byte().filter(|kind| *kind != 0)?;
            let mut item = ItemReader { rest: Leb128Reader::new(self.rest.counted()?) };
            let read = match kind {
                TRIPS => item.trips_of_message(),
                EVENT => item.record(false),
                STREAM_END => item.record(true),
                STREAM => item.stream(),
                CAPTURE => item.capture(),
                _ => continue,
            };
            return read;
        }
    }
}

struct ItemReader<'a> {
    rest: Leb128Reader<'a>,
}

impl ItemReader<'_> {
    fn number(&mut self) -> Option<u64> {
        self.rest.number()
    }

    fn flag(&mut self) -> Option<bool> {
        Some(self.rest.number()? != 0)
    }

    fn text(&mut self) -> Option<String> {
        self.rest.text().map(str::to_string)
    }

    fn optional(&mut self) -> Option<Option<u64>> {
        Some(self.rest.number()?.checked_sub(1))
    }

    fn trips_of_message(&mut self) -> Option<CarriedItem> {
        Some(CarriedItem::Trips(self.number()?, self.trips()?))
    }

    fn time(&mut self) -> Option<Time> {
        let seconds = unzigzag(self.number()?);
        let nanos = u32::try_from(self.number()?).ok().filter(|nanos| *nanos < 1_000_000_000)?;
        Some(Time { seconds, nanos, digits: self.rest.byte()?.min(9) })
    }

    fn trips(&mut self) -> Option<RoundTrips> {
        Some(RoundTrips { client: self.trip()?, server: self.trip()? })
    }

    fn trip(&mut self) -> Option<Option<RoundTrip>> {
        let kind = self.rest.byte()?;
        if kind == 0 {
            return Some(None);
        }
        Some(Some(RoundTrip { nanos: unzigzag(self.number()?), opening: kind == 2 }))
    }

    fn counts(&mut self) -> Option<Counts> {
        Some(Counts {
            payload: self.number()?,
            explained: self.number()?,
            opaque: self.number()?,
            undecoded: self.number()?,
            closed: self.number()?,
            lost: self.number()?,
        })
    }

    fn end(&mut self) -> Option<SocketAddr> {
        let address = match self.rest.byte()? {
            4 => IpAddr::from(*self.rest.bytes(4)?.first_chunk::<4>()?),
            6 => IpAddr::from(*self.rest.bytes(16)?.first_chunk::<16>()?),
            _ => return None,
        };
        Some(SocketAddr::new(address, u16::try_from(self.number()?).ok()?))
    }

    fn of_stream(&mut self) -> Option<(Transport, u32, Ends, String)> {
        let transport = if self.rest.byte()? == 1 { Transport::Udp } else { Transport::Tcp };
        let number = self.rest.number32()?;
        let ends = Ends { client: self.end()?, server: self.end()? };
        Some((transport, number, ends, self.text()?))
    }

    fn side(&mut self) -> Option<Side> {
        Some(if self.rest.byte()? == 0 { Side::Client } else { Side::Server })
    }

    fn record(&mut self, stream_end: bool) -> Option<CarriedItem> {
        let number = self.number()?;
        let at = Moment { frame: self.number()?, time: self.time()? };
        let (transport, stream, ends, protocol) = self.of_stream()?;
        let round_trips = self.trips()?;
        let from = self.side()?;
        let service = self.text()?;
        let body = match stream_end {
            true => CarriedBody::StreamEnd {
                from,
                service,
                end: *ENDS.get(usize::from(self.rest.byte()?))?,
                text: self.text()?,
                counts: self.counts()?,
                closed_in: self.optional()?,
            },
            false => CarriedBody::Event(self.event(from, service)?),
        };
        Some(CarriedItem::Record(Box::new(CarriedRecord {
            number,
            at,
            transport,
            stream,
            ends,
            protocol,
            round_trips,
            body,
        })))
    }

    fn event(&mut self, from: Side, service: String) -> Option<Event> {
        let offset = self.optional()?;
        let length = self.optional()?;
        let bytes = self.rest.counted()?.to_vec();
        let text = self.text()?;
        let kind = match self.rest.byte()? {
            // The secret stays with whoever has the keys.
            0 => EventKind::Key { key_file: self.text()?, secret: Secret::new(String::new()) },
            1 => EventKind::NoKey,
            2 => EventKind::WrongKey,
            3 => EventKind::Gap,
            4 => EventKind::Undecoded,
            5 => EventKind::Resync { passed_over: self.number()? },
            6 => EventKind::Limit { limit: kept_word(self.rest.text()?)? },
            7 => EventKind::Unanswered {
                request: self.number()?,
                message: self.text()?,
                waited: unzigzag(self.number()?),
                part: self.flag()?,
            },
            8 => EventKind::Checksum,
            9 => EventKind::Open,
            10 => EventKind::Close,
            11 => EventKind::Remark,
            _ => return None,
        };
        Some(Event { kind, service, from, offset, length, bytes, text })
    }

    fn stream(&mut self) -> Option<CarriedItem> {
        let (transport, stream, ends, protocol) = self.of_stream()?;
        let service = self.text()?;
        let counts = if self.flag()? { Some([self.counts()?, self.counts()?]) } else { None };
        let round_trips = self.trips()?;
        let traffic =
            StreamTraffic { whole: self.flag()?, sides: [self.traffic()?, self.traffic()?] };
        let mut learned = Vec::new();
        for _ in 0..self.number()?.min(MAX_LIST as u64) {
            learned.push(self.learned()?);
        }
        Some(CarriedItem::Stream(Box::new(CarriedStream {
            transport,
            stream,
            ends,
            protocol,
            service,
            counts,
            round_trips,
            traffic,
            learned,
        })))
    }

    fn traffic(&mut self) -> Option<SideTraffic> {
        Some(SideTraffic {
            heard: self.flag()?,
            unheard: self.number()?,
            packets: self.number()?,
            resent: self.number()?,
            first_resent: self.number()?,
            zero_windows: self.number()?,
            first_zero_window: self.number()?,
            longest_zero_window: unzigzag(self.number()?),
            unacknowledged: unzigzag(self.number()?),
        })
    }

    fn learned(&mut self) -> Option<Learned> {
        let group = kept_word(self.rest.text()?)?;
        let name = self.text()?;
        let heading = usize::try_from(self.number()?).ok()?;
        let heading = if name.is_char_boundary(heading) { heading } else { 0 };
        let of_stream = self.flag()?;
        let mut facts = Vec::new();
        for _ in 0..self.number()?.min(MAX_LIST as u64) {
            let key = kept_word(self.rest.text()?)?;
            let value = match self.rest.byte()? {
                0 => LearnedValue::Text(self.text()?),
                1 => LearnedValue::Count(self.number()?),
                2 => LearnedValue::Microseconds(self.number()?),
                _ => return None,
            };
            facts.push((key, value));
        }
        Some(Learned { group, name, heading, of_stream, facts })
    }

    fn capture(&mut self) -> Option<CarriedItem> {
        let mut capture = CarriedCapture::default();
        for _ in 0..self.number()?.min(MAX_LIST as u64) {
            capture.numbers.push(self.number()?);
        }
        if self.flag()? {
            capture.times = Some((self.time()?, self.time()?));
        }
        capture.back_by = unzigzag(self.number()?);
        for _ in 0..self.number()?.min(MAX_LIST as u64) {
            let udp = self.flag()?;
            let port = u16::try_from(self.number()?).ok()?;
            capture.ports.push((udp, port, self.number()?, self.number()?));
        }
        Some(CarriedItem::Capture(Box::new(capture)))
    }
}

/// A word that lives as long as the program: a key of a fact, a limit's name. There are few; of a
/// file that has very many, the further ones are not read.
fn kept_word(word: &str) -> Option<&'static str> {
    static WORDS: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let mut words = WORDS.lock().ok()?;
    if let Some(known) = words.iter().find(|known| **known == word) {
        return Some(known);
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "_- ".contains(c);
    if words.len() >= MAX_WORDS || word.len() > MAX_WORD || !word.chars().all(plain) {
        return None;
    }
    let kept: &'static str = Box::leak(word.to_string().into_boxed_str());
    words.push(kept);
    Some(kept)
}
