//! Frames: streams out of any of them, and whole captures through every room.

use std::collections::HashMap;
use std::io::Cursor;

use moulsniff::capture::{Capture, CaptureItem, Frame, Moment, Time};
use moulsniff::flow::{
    Cause, Dir, End, Flow, FlowLimits, FlowSink, Note, Stream, StreamId, TcpOpening, Totals,
};
use moulsniff::pipeline::{Output, Pipeline, Setup};
use moulsniff::print::json::{JsonOptions, JsonWriter};
use moulsniff::print::tree::{TreeOptions, TreeWriter};
use moulsniff::print::{Marks, Paint, PrintedTimes};
use moulsniff::proto::moul::MoulSettings;
use moulsniff::proto::moul::keys::SearchBounds;
use moulsniff::proto::{AllSettings, protocol_named};
use moulsniff::record::{Body, Record};
use moulsniff::session::{Options, Settings};

use crate::{byte, bytes, checks, number, shard, tables};

const LINKS: [u16; 8] = [1, 0, 108, 113, 276, 101, 9, 12];

/// Small bounds, so that few bytes reach them.
fn limits() -> FlowLimits {
    FlowLimits {
        tcp_streams: 4,
        tcp_closed: 2,
        udp_streams: 4,
        stream_buffer: 2048,
        total_buffer: 4096,
        fragmented: 4,
        fragment_buffer: 4096,
        hole_frames: 4,
        blind_frames: 8,
        checksums: true,
        ..FlowLimits::default()
    }
}

/// Link type, then frames: length, time since the one before, how much was cut, bytes.
pub fn flow(mut data: &[u8]) {
    let link = LINKS[usize::from(byte(&mut data)) % LINKS.len()];
    let mut flow = Flow::new(limits());
    let mut sink = Tiles::default();
    let mut number_of = 0;
    let mut nanos = 1_000_000_000_u64;
    while !data.is_empty() {
        let length = number(&mut data);
        let how = byte(&mut data);
        nanos += u64::from(how & 15) * 100_000_000;
        let bytes = bytes(&mut data, length);
        number_of += 1;
        let time = Time {
            seconds: (nanos / 1_000_000_000) as i64,
            nanos: (nanos % 1_000_000_000) as u32,
            digits: 9,
        };
        let wire_len = bytes.len() as u32 + u32::from(how >> 4);
        flow.frame(&Frame { number: number_of, time, link, data: bytes, wire_len }, &mut sink);
    }
    flow.finish(&mut sink);
    assert!(sink.open.is_empty(), "streams without an end");
}

/// Holds what comes out against what is promised: data and gaps tile each direction.
#[derive(Default)]
struct Tiles {
    open: HashMap<(u32, Dir), (u64, u64, bool)>,
}

impl Tiles {
    fn take(&mut self, stream: StreamId, dir: Dir, offset: u64, len: u64, lost: bool) {
        let (next, gone, began) =
            self.open.get_mut(&(stream.0, dir)).expect("a stream that is open");
        assert!(len > 0);
        assert!(*next == offset || !*began, "offset {offset} where {next} was expected");
        (*next, *began) = (offset + len, true);
        *gone += if lost { len } else { 0 };
    }
}

impl FlowSink for Tiles {
    fn tcp_open(&mut self, stream: &Stream, _: TcpOpening, _: Moment) {
        for dir in [Dir::Forward, Dir::Backward] {
            assert!(self.open.insert((stream.id.0, dir), (0, 0, false)).is_none(), "opened twice");
        }
    }

    fn tcp_data(&mut self, stream: StreamId, dir: Dir, offset: u64, bytes: &[u8], _: Moment) {
        self.take(stream, dir, offset, bytes.len() as u64, false);
    }

    fn tcp_gap(&mut self, stream: StreamId, dir: Dir, offset: u64, len: u64, _: Cause, _: Moment) {
        self.take(stream, dir, offset, len, true);
    }

    fn tcp_note(&mut self, stream: StreamId, dir: Dir, _: Note, _: Moment) {
        assert!(
            self.open.contains_key(&(stream.0, dir))
                || self.open.contains_key(&(stream.0, dir.flip()))
        );
    }

    fn tcp_end(&mut self, stream: StreamId, dir: Dir, _: End, totals: &Totals, _: Moment) {
        let (_, lost, _) = self.open.remove(&(stream.0, dir)).expect("a stream that is open");
        assert_eq!(totals.lost, lost);
    }

    fn udp(&mut self, _: &Stream, _: Dir, _: &[u8], _: u32, _: Moment) {}
}

/// How captures are read here: with the keys of a shard and small bounds.
pub fn setup() -> Setup {
    let mut keys = shard();
    keys.search = SearchBounds { positions: 1 << 12, searches: 4 };
    Setup {
        tables: tables().clone(),
        settings: AllSettings::default().with("moul", Settings::new(MoulSettings::with_keys(keys))),
        options: Options {
            max_message: 64 << 10,
            max_decompressed: 64 << 10,
            ..Options::default()
        },
        decode_as: Vec::new(),
        limits: limits(),
        max_held: 16 << 10,
        names: true,
        pseudonyms: None,
    }
}

/// A capture file, read as the program reads it.
pub fn pipeline(data: &[u8]) {
    read(Capture::from_reader("x", Box::new(Cursor::new(data.to_vec()))));
}

/// The same of a text: a log, or printed packets.
pub fn texts(data: &[u8]) {
    let capture = Capture::from_reader("x", Box::new(Cursor::new(data.to_vec())));
    let payload = read(capture.converting(moulsniff::texts::convert));
    // Printed packets get a length and a zero each, behind at least five characters.
    assert!(payload <= 2 * data.len() as u64, "more bytes than the text has");
}

/// Reads a capture, and returns its payload.
fn read(mut capture: Capture) -> u64 {
    let mut pipeline = Pipeline::new(setup());
    let mut lines = Lines::new();
    loop {
        match capture.next_item() {
            Ok(Some(CaptureItem::Frame(frame))) => pipeline.frame(&frame, &mut lines),
            Ok(Some(CaptureItem::Secrets(secrets))) => {
                let moul = protocol_named("moul").and_then(|moul| moul.secrets());
                let settings = pipeline.settings().named_mut("moul");
                if let (Some(moul), Some(settings)) = (moul, settings) {
                    let _ = moul.carry(secrets.data, settings);
                }
            }
            Err(_) => {}
            Ok(None) => break,
        }
    }
    pipeline.finish(&mut lines);
    let b = pipeline.summary().bytes;
    assert_eq!(
        b.payload,
        b.explained + b.opaque + b.undecoded + b.closed,
        "payload and what became of it"
    );
    b.payload
}

/// Every record as a tree and as JSON.
pub struct Lines {
    json: JsonWriter,
    tree: TreeWriter,
    times: PrintedTimes,
    line: Vec<u8>,
    records: u64,
}

impl Lines {
    /// No records yet.
    pub fn new() -> Self {
        Lines {
            json: JsonWriter::new(JsonOptions { spans: true, redact: false }),
            tree: TreeWriter::new(TreeOptions {
                paint: Paint::new(true, Marks::default()),
                redact: true,
                bytes: true,
                ..TreeOptions::default()
            }),
            times: PrintedTimes::default(),
            line: Vec::new(),
            records: 0,
        }
    }
}

impl Output for Lines {
    fn record(&mut self, record: &Record<'_>) {
        self.records += 1;
        assert_eq!(record.number, self.records);
        self.line.clear();
        self.json.record(record, &mut self.line);
        checks::json(&self.line);
        if let Body::Message { message, tables, tree } = &record.body {
            checks::message(tables, tree, message.bytes);
        }
        if let Body::StreamEnd { counts: c, .. } = &record.body {
            assert_eq!(
                c.payload,
                c.explained + c.opaque + c.undecoded + c.closed,
                "stream {}",
                record.stream
            );
        }
        self.line.clear();
        self.tree.record(record, self.times.next(record), &mut self.line);
    }
}
