//! What is made of records beside trees and JSON: packets of exported messages and what is read of
//! them, the page, sessions, lines, pseudonyms.

use std::io::{Cursor, Read};
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::DeflateDecoder;
use moulsniff::capture::{Capture, CaptureItem, Frame, Time};
use moulsniff::captured::is_control;
use moulsniff::facts::{Account, Chat, Graph, InfoSource, Sessions, Stats, write_info};
use moulsniff::pdu::{LINK_TYPE, PduWriter};
use moulsniff::pipeline::{Output, Pipeline};
use moulsniff::print::chat::{chat_json, chat_text};
use moulsniff::print::graph::{write_graph_dot, write_graph_json};
use moulsniff::print::json::{JsonOptions, JsonWriter};
use moulsniff::print::oneline::{OneLineOptions, OneLineWriter};
use moulsniff::print::report::{About, ReportOptions, ReportWriter, RowFacts};
use moulsniff::print::sessions::{session_csv, session_json, session_text};
use moulsniff::print::{Paint, PrintedTimes, append_marked};
use moulsniff::pseudonyms::Pseudonyms;
use moulsniff::record::{Body, MessageView, Record};

use crate::frames::{Lines, setup};
use crate::{byte, bytes, checks, number};

/// Small captures of every protocol.
const CAPTURES: [&[u8]; 6] = [
    include_bytes!("../corpus/pipeline/game"),
    include_bytes!("../corpus/pipeline/gatekeeper"),
    include_bytes!("../corpus/pipeline/intermud3"),
    include_bytes!("../corpus/pipeline/secondlife"),
    include_bytes!("../corpus/pipeline/ouro_udp"),
    include_bytes!("../corpus/pipeline/ouro_tcp"),
];

/// Packets of exported messages: some as they are written, with a few bytes changed, and some made
/// of the input's bytes.
pub fn exported(mut data: &[u8]) {
    let mut pipeline = Pipeline::new(setup());
    let mut lines = Lines::new();
    let mut frames = 0;
    while !data.is_empty() {
        let how = byte(&mut data);
        let mut packet = if how & 1 == 0 {
            let length = number(&mut data) % 4096;
            bytes(&mut data, length).to_vec()
        } else {
            let all = packets();
            all[number(&mut data) % all.len()].clone()
        };
        for _ in 0..how >> 1 & 7 {
            let at = number(&mut data) % packet.len().max(1);
            let change = byte(&mut data);
            packet.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= change);
        }
        if how & 16 != 0 {
            packet.truncate(number(&mut data) % (packet.len() + 1));
        }
        frames += 1;
        pipeline.frame(&frame(frames, &packet), &mut lines);
    }
    pipeline.finish(&mut lines);
}

fn frame(number: u64, data: &[u8]) -> Frame<'_> {
    let time = Time { seconds: number as i64, nanos: 0, digits: 6 };
    Frame { number, time, link: LINK_TYPE, data, wire_len: data.len() as u32 }
}

/// The exported messages of the captures.
fn packets() -> &'static [Vec<u8>] {
    static PACKETS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    PACKETS.get_or_init(|| {
        let mut out = Packets::default();
        for capture in CAPTURES {
            read(capture, &mut Pipeline::new(setup()), &mut out);
        }
        assert!(out.packets.len() > 10);
        out.packets
    })
}

/// Reads a capture to its end.
fn read(data: &[u8], pipeline: &mut Pipeline, out: &mut dyn Output) {
    let mut capture = Capture::from_reader("x", Box::new(Cursor::new(data.to_vec())));
    loop {
        match capture.next_item() {
            Ok(Some(CaptureItem::Frame(frame))) => pipeline.frame(&frame, out),
            Ok(None) => break,
            _ => {}
        }
    }
    pipeline.finish(out);
}

/// Each message as a packet, and what it is called and how long it is.
#[derive(Default)]
struct Packets {
    writer: PduWriter,
    packets: Vec<Vec<u8>>,
    messages: Vec<(u64, String, usize)>,
}

impl Output for Packets {
    fn record(&mut self, record: &Record<'_>) {
        let Body::Message { message, .. } = &record.body else { return };
        self.messages.push((record.number, message.name.raw().to_string(), message.bytes.len()));
        self.packets.extend(self.writer.packet(record, "info", &[]).map(|packet| packet.bytes));
    }
}

/// A capture under pseudonyms: the same messages, and what was exported of them is read again.
pub fn pseudonyms(data: &[u8]) {
    let mut plain = Packets::default();
    let mut other = Packets::default();
    read(data, &mut Pipeline::new(setup()), &mut plain);
    let mut hidden = setup();
    hidden.pseudonyms = Some(Pseudonyms::new(&[7; 16], data.len() & 1 == 0));
    read(data, &mut Pipeline::new(hidden), &mut other);
    assert_eq!(plain.messages, other.messages, "without pseudonyms, and with them");
    let mut pipeline = Pipeline::new(setup());
    let mut again = Packets::default();
    for (at, packet) in (1..).zip(&other.packets) {
        pipeline.frame(&frame(at, packet), &mut again);
    }
    pipeline.finish(&mut again);
    let names = |all: &Packets| {
        all.messages.iter().map(|(_, name, length)| (name.clone(), *length)).collect::<Vec<_>>()
    };
    assert_eq!(names(&again), names(&other), "what was exported, and what was read of it");
}

/// A capture as a page, and as everything else that is made for people.
pub fn page(data: &[u8]) {
    let options = ReportOptions {
        captures: vec!["x".into()],
        limits: Vec::new(),
        max_rows: 1000,
        redact: data.len() & 1 == 0,
    };
    let mut out = People {
        page: ReportWriter::new(Vec::new(), options, &Account::default()).unwrap(),
        graph: Graph::default(),
        sessions: Sessions::default(),
        chat: Chat::default(),
        stats: Stats::default(),
        lines: OneLineWriter::new(OneLineOptions::default()),
        json: JsonWriter::new(JsonOptions::default()),
        times: PrintedTimes::default(),
        info: String::new(),
    };
    read(data, &mut Pipeline::new(setup()), &mut out);
    out.sessions();
    let mut dot = Vec::new();
    let mut json = Vec::new();
    write_graph_dot(&out.graph, &mut dot).unwrap();
    readable(&String::from_utf8(dot).unwrap());
    write_graph_json(&out.graph, &mut json).unwrap();
    checks::json(&json);
    let about = About { frames: 1, graph: out.graph, ..About::default() };
    opened(&String::from_utf8(out.page.finish(about).unwrap()).unwrap());
}

/// Every output for people.
struct People {
    page: ReportWriter<Vec<u8>>,
    graph: Graph,
    sessions: Sessions,
    chat: Chat,
    stats: Stats,
    lines: OneLineWriter,
    json: JsonWriter,
    times: PrintedTimes,
    info: String,
}

impl People {
    fn sessions(&mut self) {
        for session in self.sessions.finish() {
            let mut text = String::new();
            let mut line = Vec::new();
            session_text(&session, true, &mut text);
            let mut shown = String::new();
            append_marked(&text, &Paint::default(), None, 0, &mut shown);
            readable(&shown);
            session_csv(&session, &[], &mut line);
            line.clear();
            session_json(&session, &[], true, &mut line);
            checks::json(&line);
        }
    }

    fn message(&mut self, record: &Record<'_>) {
        let Body::Message { message, tables, tree } = &record.body else { return };
        let json = &mut self.json;
        let mut value = Vec::new();
        self.graph.record(record, &mut |node| {
            value.clear();
            json.value(MessageView { tables, tree, bytes: message.bytes }, node, &mut value);
            serde_json::from_slice(&value).unwrap()
        });
        let layout = tables
            .message_named(message.name.raw())
            .and_then(|id| tables.message(id))
            .and_then(|def| def.layout);
        let source = InfoSource {
            view: MessageView { tables, tree, bytes: message.bytes },
            layout,
            redact: false,
        };
        write_info(source, record.names, &mut self.info);
        for line in self.chat.record(record, false) {
            let mut text = String::new();
            chat_text(&line, &mut text);
            readable(&text);
            checks::json(chat_json(&line).to_string().as_bytes());
        }
    }
}

impl Output for People {
    fn record(&mut self, record: &Record<'_>) {
        self.info.clear();
        self.message(record);
        self.sessions.record(record);
        self.stats.record(record);
        let mut line = Vec::new();
        self.lines.record(record, self.times.next(record), &mut line);
        readable(&String::from_utf8(line).unwrap());
        let facts = RowFacts { info: &self.info, ..RowFacts::default() };
        self.page.record(record, facts).unwrap();
    }
}

/// Lines without anything that moves a cursor.
fn readable(text: &str) {
    assert!(!text.chars().any(|c| c != '\n' && is_control(c)), "{text:?}");
}

/// The page has its own scripts alone, and each block of data opens.
fn opened(page: &str) {
    assert!(page.ends_with("</html>\n"));
    let mut own = 0;
    for script in page.split("<script").skip(1) {
        let (head, rest) = script.split_once('>').unwrap();
        let (block, _) = rest.split_once("</script>").unwrap();
        if !head.contains("application/octet-stream") {
            own += 1;
            continue;
        }
        let packed = STANDARD.decode(block.trim()).unwrap();
        let mut content = Vec::new();
        DeflateDecoder::new(&packed[..]).read_to_end(&mut content).unwrap();
    }
    assert_eq!(own, 1, "scripts of the page");
}
