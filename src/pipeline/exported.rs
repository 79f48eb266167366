//! Turns messages that were exported into packets of their own (`pdu`) back into records, without
//! streams, sessions and keys.
//!
//! A packet that carries its tree needs nothing else. One without, or one made with other tables,
//! is decoded from its bytes, as a message of its service and sender. This module knows protocols
//! by their trait alone, and no output.

use std::collections::HashMap;

use super::carried_captures::CarriedCaptures;
use super::emitter::RecordEmitter;
use super::shared::Shared;
use super::{Output, Pseudonyms, StreamKey, StreamOver, Summary};
use crate::capture::{Frame, Moment};
use crate::captured::Captured;
use crate::facts::NameInference;
use crate::maps::BoundedMap;
use crate::pdu::{
    CARRIER, CarriedBody, CarriedItem, CarriedRecord, CarriedStream, PackedHead, PduPacket,
    Unpacked, fingerprint,
};
use crate::proto::{LazyTables, feed_alone};
use crate::record::{Body, RoundTrips, StreamTraffic};
use crate::session::{Context, Emit, Ends, Event, EventKind, Message, Side, Start};
use crate::session::{Counts, Reply};
use crate::table::{Outcome, ServiceId};
use crate::tree::{Sym, TreeParts};

/// The most streams counted at once. If there are more, those so far are taken as ended.
const MAX_STREAMS: usize = 16_384;
/// The most records whose new numbers are remembered, for messages that answer them.
const MAX_RECORDS: usize = 65_536;

/// The exported messages of a run.
pub(super) struct ExportedMessages {
    streams: HashMap<StreamKey, ExportedStream>,
    /// The new number of each record of the exported capture.
    numbers: BoundedMap<u64, u64>,
    /// The fingerprints of the protocols' tables.
    fingerprints: HashMap<usize, u64>,
    /// The number and the round trips of the next message, where its packet carries them.
    trips: Option<(u64, RoundTrips)>,
    /// How many packets there were, and their bytes.
    packets: [u64; 2],
    /// What is known of the captures that were exported.
    captures: Option<CarriedCaptures>,
}

impl Default for ExportedMessages {
    fn default() -> Self {
        ExportedMessages {
            streams: HashMap::new(),
            numbers: BoundedMap::new(MAX_RECORDS),
            fingerprints: HashMap::new(),
            trips: None,
            packets: [0; 2],
            captures: None,
        }
    }
}

/// A stream that messages came from.
struct ExportedStream {
    ends: Ends,
    protocol: &'static str,
    service: String,
    counts: [Counts; 2],
}

/// A packet and its meaning.
struct ExportedPacket<'a> {
    packet: &'a PduPacket<'a>,
    unpacked: Option<Unpacked<'a>>,
    /// The protocol, by its place in the tables.
    place: usize,
    key: StreamKey,
    ends: Ends,
    from: Side,
    service: &'a str,
    at: Moment,
    round_trips: RoundTrips,
}

impl ExportedMessages {
    /// Handles a packet. Returns whether it could be read.
    pub(super) fn frame(
        &mut self,
        frame: &Frame<'_>,
        shared: &mut Shared,
        out: &mut dyn Output,
    ) -> bool {
        let done = match PduPacket::parse(frame.data) {
            _ if (frame.wire_len as usize) > frame.data.len() => Err("it was cut by a snap length"),
            Ok(packet) => {
                let [packets, bytes] = &mut self.packets;
                *packets += 1;
                *bytes += frame.data.len() as u64;
                packet.before().for_each(|item| self.carried(item, shared, out));
                let done = match packet.dissector {
                    CARRIER => Ok(()),
                    _ => self.packet(frame, &packet, shared, out),
                };
                packet.after().for_each(|item| self.carried(item, shared, out));
                done
            }
            Err(why) => Err(why),
        };
        if let Err(why) = done {
            shared.summary.left_out += 1;
            shared.summary.left_out_why.get_or_insert(why);
        }
        done.is_ok()
    }

    /// Ends every stream.
    pub(super) fn finish(&mut self, shared: &mut Shared, out: &mut dyn Output) {
        let mut streams: Vec<_> = self.streams.drain().collect();
        streams.sort_unstable_by_key(|(key, _)| (key.transport.word(), key.number));
        for (key, stream) in streams {
            let ExportedStream { ends, protocol, service, counts } = stream;
            let ends =
                shared.setup.pseudonyms.as_mut().map_or(ends, |pseudonyms| pseudonyms.ends(ends));
            out.stream_over(&StreamOver {
                key,
                ends,
                protocol,
                service: &service,
                counts,
                round_trips: RoundTrips::default(),
                traffic: StreamTraffic::unknown(),
                learned: Vec::new(),
            });
        }
    }

    /// What is known of the captures that were exported, in the counts of a run.
    pub(super) fn put_into(&self, summary: &mut Summary) {
        if let Some(captures) = &self.captures {
            captures.put_into(self.packets, summary);
        }
    }

    /// How many frames the programs that captured them say they dropped.
    pub(super) fn dropped(&self) -> u64 {
        self.captures.as_ref().map_or(0, |captures| captures.dropped)
    }

    /// Handles something that a packet carries beside its message.
    fn carried(&mut self, item: CarriedItem, shared: &mut Shared, out: &mut dyn Output) {
        match item {
            CarriedItem::Trips(number, trips) => self.trips = Some((number, trips)),
            CarriedItem::Record(record) => {
                self.carried_record(*record, shared, out);
            }
            CarriedItem::Stream(stream) => {
                self.carried_stream(*stream, shared, out);
            }
            CarriedItem::Capture(capture) => {
                let captures = self.captures.get_or_insert_default();
                captures.add(&capture, &mut shared.passed_over);
            }
        }
    }

    /// The stream of a key, counted if it is new. `None` for a protocol that is not there.
    fn stream(
        &mut self,
        key: StreamKey,
        ends: Ends,
        place: usize,
        service: &str,
        shared: &mut Shared,
        out: &mut dyn Output,
    ) -> Option<&mut ExportedStream> {
        let protocol = shared.setup.tables.get(place)?.protocol().name();
        if self.streams.len() >= MAX_STREAMS && !self.streams.contains_key(&key) {
            self.finish(shared, out);
        }
        let before = self.streams.len();
        self.streams.entry(key).or_insert_with(|| ExportedStream {
            ends,
            protocol,
            service: String::new(),
            counts: [Counts::default(); 2],
        });
        shared.summary.streams += (self.streams.len() - before) as u64;
        let stream = self.streams.get_mut(&key)?;
        // The first messages of a stream may come before its service is known.
        stream.service.clear();
        stream.service.push_str(service);
        Some(stream)
    }

    /// An event, or the end of a direction.
    fn carried_record(
        &mut self,
        record: CarriedRecord,
        shared: &mut Shared,
        out: &mut dyn Output,
    ) -> Option<()> {
        let CarriedRecord { number, at, transport, stream, ends, protocol, round_trips, body } =
            record;
        let place = protocol_place(&protocol, shared)?;
        let key = StreamKey { transport, number: stream };
        let (from, service) = match &body {
            CarriedBody::Event(event) => (event.from, event.service.clone()),
            CarriedBody::StreamEnd { from, service, .. } => (*from, service.clone()),
        };
        let service = known_service(&service, place, shared);
        let mut counts = self.stream(key, ends, place, &service, shared, out)?.counts;
        go_on_at(number, &mut shared.summary);
        let name = shared.setup.tables.get(place)?.protocol().name();
        let mut emitter = RecordEmitter {
            out,
            summary: &mut shared.summary,
            key,
            ends,
            protocol: name,
            round_trips,
            counts: &mut counts,
            pseudonyms: shared.setup.pseudonyms.as_mut(),
            names: shared.names.as_mut(),
        };
        match body {
            CarriedBody::Event(event) => {
                emitter.count_payload(from, event.counts().payload);
                let kind = self.renumbered(event.kind);
                emitter.event(at, Event { kind, service, ..event });
            }
            CarriedBody::StreamEnd { end, text, counts, closed_in, .. } => {
                let body = Body::StreamEnd { end, text: &text, counts, closed_in };
                emitter.record(from, at, &service, body);
            }
        }
        let new = shared.summary.records;
        self.remember(number, new);
        if let Some(stream) = self.streams.get_mut(&key) {
            stream.counts = counts;
        }
        Some(())
    }

    /// An event that refers to another record refers to it by its new number.
    fn renumbered(&self, kind: EventKind) -> EventKind {
        match kind {
            EventKind::Unanswered { request, message, waited, part } => EventKind::Unanswered {
                request: self.numbers.get(&request).copied().unwrap_or(request),
                message,
                waited,
                part,
            },
            kind => kind,
        }
    }

    /// A stream that ended.
    fn carried_stream(
        &mut self,
        carried: CarriedStream,
        shared: &mut Shared,
        out: &mut dyn Output,
    ) -> Option<()> {
        let CarriedStream { transport, stream, ends, protocol, service, .. } = carried;
        let place = protocol_place(&protocol, shared)?;
        let key = StreamKey { transport, number: stream };
        let service = known_service(&service, place, shared);
        self.stream(key, ends, place, &service, shared, out)?;
        let own = self.streams.remove(&key)?;
        let counts = carried.counts.unwrap_or(own.counts);
        // What became no record is in the counts of the whole stream alone.
        for (whole, counted) in counts.iter().zip(&own.counts) {
            shared.summary.bytes.exchange(*counted, *whole);
        }
        let mut ends = ends;
        let mut learned = carried.learned;
        if let Some(pseudonyms) = &mut shared.setup.pseudonyms {
            let shown = pseudonyms.ends(ends);
            learned = pseudonyms.learned(learned, ends, shown);
            ends = shown;
        }
        out.stream_over(&StreamOver {
            key,
            ends,
            protocol: own.protocol,
            service: &service,
            counts,
            round_trips: carried.round_trips,
            traffic: carried.traffic,
            learned,
        });
        Some(())
    }

    fn packet(
        &mut self,
        frame: &Frame<'_>,
        packet: &PduPacket<'_>,
        shared: &mut Shared,
        out: &mut dyn Output,
    ) -> Result<(), &'static str> {
        let mut named = packet.dissector.split('.');
        let protocol = named.next().unwrap_or_default();
        let place =
            shared.setup.tables.iter().position(|tables| tables.protocol().name() == protocol);
        let place = place.ok_or("its dissector is none of this program's protocols")?;
        let tables = shared.setup.tables.get(place).ok_or("its protocol has no tables")?;
        let service = named.next();
        let direction = named.next();
        let unpacked = packet.unpacked();
        let head = unpacked.map(|unpacked| unpacked.head);
        let side = if direction == Some("server") { Side::Server } else { Side::Client };
        let from = head.map_or(side, |head| head.from);
        let transport = head.map(|head| head.transport).or(packet.transport);
        let transport = transport.unwrap_or(tables.protocol().transport());
        let number = head.map_or(packet.stream.unwrap_or_default(), |head| head.stream);
        let [src, dst] = packet.ends;
        let ends = match from {
            Side::Client => Ends { client: src, server: dst },
            Side::Server => Ends { client: dst, server: src },
        };
        let first = tables.get().services().first().map_or("", |service| &*service.name);
        // The file may come from anyone, so only names of known services are printed unescaped.
        let known =
            |name: &&str| tables.get().services().iter().any(|service| service.name == *name);
        let service =
            head.map(|head| head.service).or(service).filter(known).unwrap_or(first).to_string();
        let exported = ExportedPacket {
            packet,
            unpacked,
            place,
            key: StreamKey { transport, number },
            ends,
            from,
            service: &service,
            at: Moment { frame: packet.frame.map_or(frame.number, u64::from), time: frame.time },
            round_trips: RoundTrips::default(),
        };
        self.message(&exported, shared, out);
        Ok(())
    }

    /// Makes a record of a packet.
    fn message(
        &mut self,
        exported: &ExportedPacket<'_>,
        shared: &mut Shared,
        out: &mut dyn Output,
    ) {
        let ExportedPacket { key, ends, place, service, .. } = *exported;
        let Some(stream) = self.stream(key, ends, place, service, shared, out) else { return };
        let mut counts = stream.counts;
        let trips = self.trips.take();
        if let Some((number, _)) = trips {
            go_on_at(number, &mut shared.summary);
        }
        let round_trips = trips.map_or_else(RoundTrips::default, |(_, trips)| trips);
        let exported = &ExportedPacket { round_trips, ..*exported };
        let length = exported.packet.bytes.len() as u64;
        exported.from.of(&mut counts).payload += length;
        shared.summary.bytes.payload += length;
        let offset = exported.unpacked.map_or(0, |unpacked| unpacked.head.offset);
        if shared.setup.pseudonyms.is_none() {
            out.plaintext(&exported.key, exported.from, offset, exported.packet.bytes);
        }
        if !self.with_tree(exported, &mut counts, shared, out) {
            decode_anew(exported, &mut counts, shared, out);
        }
        if let Some(stream) = self.streams.get_mut(&exported.key) {
            stream.counts = counts;
        }
    }

    /// Makes a record of a packet that carries a tree made with these tables. Returns `false` for
    /// any other packet.
    fn with_tree(
        &mut self,
        exported: &ExportedPacket<'_>,
        counts: &mut [Counts; 2],
        shared: &mut Shared,
        out: &mut dyn Output,
    ) -> bool {
        let (Some(unpacked), Some(lazy)) =
            (exported.unpacked, shared.setup.tables.get(exported.place))
        else {
            return false;
        };
        let tables = lazy.get();
        let own = *self.fingerprints.entry(exported.place).or_insert_with(|| fingerprint(tables));
        let head = unpacked.head;
        let parts = (head.fingerprint == own)
            .then(|| unpacked.tree(tables, exported.packet.bytes))
            .flatten();
        let Some(mut parts) = parts else { return false };
        self.renumber(&mut parts);
        parts.put_into(&mut shared.tree);
        let message = Message {
            name: Captured::new(head.name),
            number: head.number,
            service: exported.service,
            from: exported.from,
            offset: head.offset,
            bytes: exported.packet.bytes,
            reply: self.reply(&head),
            no_reply: head.no_reply,
        };
        let mut emitter = emitter(
            exported,
            lazy.protocol().name(),
            counts,
            &mut shared.summary,
            shared.setup.pseudonyms.as_mut(),
            shared.names.as_mut(),
            out,
        );
        let number = emitter.message(exported.at, &message, tables, &mut shared.tree);
        self.remember(head.record, number);
        true
    }

    /// The request that a message answers, by its new number.
    fn reply(&self, head: &PackedHead<'_>) -> Option<Reply> {
        let reply = head.reply?;
        Some(Reply { record: *self.numbers.get(&reply.record)?, ..reply })
    }

    /// Links to earlier records, by their new numbers. Drops links to records that are not here.
    fn renumber(&self, parts: &mut TreeParts) {
        parts.links.retain_mut(|link| match self.numbers.get(&link.record) {
            Some(number) => {
                link.record = *number;
                true
            }
            None => false,
        });
    }

    fn remember(&mut self, record: u64, number: u64) {
        self.numbers.insert(record, number);
    }
}

fn emitter<'a>(
    exported: &ExportedPacket<'_>,
    protocol: &'static str,
    counts: &'a mut [Counts; 2],
    summary: &'a mut super::Summary,
    pseudonyms: Option<&'a mut Pseudonyms>,
    names: Option<&'a mut NameInference>,
    out: &'a mut dyn Output,
) -> RecordEmitter<'a> {
    let key = exported.key;
    let ends = exported.ends;
    let round_trips = exported.round_trips;
    RecordEmitter { out, summary, key, ends, protocol, round_trips, counts, pseudonyms, names }
}

/// Decodes a packet's bytes as what the packet calls them, else as a message of its service and
/// sender.
fn decode_anew(
    exported: &ExportedPacket<'_>,
    counts: &mut [Counts; 2],
    shared: &mut Shared,
    out: &mut dyn Output,
) {
    let Some(lazy) = shared.setup.tables.get(exported.place) else { return };
    let Some(evaluator) = shared.evaluators.get_mut(exported.place) else { return };
    let tables = lazy.get();
    let bytes = exported.packet.bytes;
    let at = exported.at;
    let mut emitter = emitter(
        exported,
        lazy.protocol().name(),
        counts,
        &mut shared.summary,
        shared.setup.pseudonyms.as_mut(),
        shared.names.as_mut(),
        out,
    );
    let Some(service) = table_service(exported, lazy) else {
        let transport = exported.key.transport;
        let service = Some(exported.service);
        let start = Start { ends: exported.ends, transport, whole: true, service, message: None };
        let mut session = lazy.protocol().session(&start, tables);
        let mut context = Context {
            tables,
            evaluator,
            tree: &mut shared.tree,
            settings: shared.setup.settings.of(lazy),
            sequences: [None; 2],
            options: &shared.setup.options,
            emit: &mut emitter,
        };
        let from = exported.from;
        let bytes = exported.packet.bytes;
        let at = exported.at;
        return feed_alone(session.as_mut(), exported.key.transport, from, bytes, at, &mut context);
    };
    let head = exported.unpacked.map(|unpacked| unpacked.head);
    // The opening of a connection may be a structure instead of a message.
    let named = head.filter(|head| tables.message_named(head.name).is_none());
    let whole = match named.and_then(|head| Some((head, tables.type_named(head.name)?))) {
        Some((head, ty)) => {
            let end = evaluator.value(tables, ty, Sym::ELEMENT, bytes, 0, &mut shared.tree);
            (end == bytes.len() * 8).then_some((head.name, head.number))
        }
        None => {
            match evaluator.message(tables, service, exported.from.index(), bytes, &mut shared.tree)
            {
                Outcome::Message(id, length) if length == bytes.len() => {
                    tables.message(id).map(|def| (tables.name(def.name), def.number))
                }
                _ => None,
            }
        }
    };
    let Some((name, number)) = whole else {
        let text = "the bytes of an exported packet are no message of its service and sender";
        let event = Event::new(EventKind::Undecoded, exported.service, exported.from, text);
        return emitter.event(at, event.showing(0, bytes, &shared.setup.options));
    };
    let message = Message {
        name: Captured::new(name),
        number,
        service: exported.service,
        from: exported.from,
        offset: head.map_or(0, |head| head.offset),
        bytes,
        reply: None,
        no_reply: false,
    };
    emitter.message(at, &message, tables, &mut shared.tree);
}

/// The service whose table reads the bytes of a packet. `None` if the protocol's own code has to.
fn table_service(exported: &ExportedPacket<'_>, lazy: &LazyTables) -> Option<ServiceId> {
    let tables = lazy.get();
    let named = exported
        .unpacked
        .and_then(|unpacked| tables.message(tables.message_named(unpacked.head.name)?));
    let service =
        named.map(|def| def.service).or_else(|| tables.service_named(exported.service))?;
    tables
        .service(service)
        .filter(|service| !service.positional && !service.header.is_empty())
        .map(|_| service)
}

/// A protocol's place in the tables.
fn protocol_place(protocol: &str, shared: &Shared) -> Option<usize> {
    shared.setup.tables.iter().position(|tables| tables.protocol().name() == protocol)
}

/// The name of a service. The file may come from anyone, so what is no known service has to look
/// like one: names of services are printed unescaped.
fn known_service(service: &str, place: usize, shared: &Shared) -> String {
    let tables = shared.setup.tables.get(place).map(LazyTables::get);
    let known =
        tables.is_some_and(|tables| tables.services().iter().any(|own| own.name == service));
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match known || service.len() <= 64 && service.chars().all(plain) {
        true => service.to_string(),
        false => "unknown".to_string(),
    }
}

/// The next record has the number that it has in the capture that was exported, unless records with
/// such numbers came already.
fn go_on_at(number: u64, summary: &mut Summary) {
    summary.records = summary.records.max(number.saturating_sub(1));
}
