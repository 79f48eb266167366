//! What benchmarks and the test that counts allocations work with: captures of the repository, the
//! messages that were really sent in them, and a pipeline as the program makes it. Nothing here
//! measures.

#![allow(dead_code)] // each uses its own part

use std::io::Read;
use std::path::PathBuf;

use moulsniff::capture::{Capture, Source, Time};
use moulsniff::flow::FlowLimits;
use moulsniff::pipeline::{Output, Pipeline, Setup};
use moulsniff::proto::moul::MoulSettings;
use moulsniff::proto::moul::keys::{KeyFile, KeyRing};
use moulsniff::proto::{AllSettings, LazyTables, PROTOCOLS};
use moulsniff::record::{Body, Record};
use moulsniff::session::{Options, Settings, Side};

/// A session with a DIRTSAND shard, and what opens it.
pub const DIRTSAND: (&str, &[&str]) =
    ("captures/moul/full_dirtsand.pcapng", &["keys/dirtsand.ini"]);
/// A session with a MOSS shard.
pub const MOSS: (&str, &[&str]) =
    ("captures/moul/moss_full.pcapng", &["keys/moss_auth_key.der", "keys/moss_game_key.der"]);

/// A capture of the repository, unpacked.
pub fn bytes(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name);
    let packed = std::fs::read(&path).unwrap();
    if !name.ends_with(".gz") {
        return packed;
    }
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut plain).unwrap();
    plain
}

/// Key files of the repository.
pub fn keys(names: &[&str]) -> KeyRing {
    let mut ring = KeyRing::default();
    for name in names {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name);
        ring.add(KeyFile::parse(name, &std::fs::read(path).unwrap()).unwrap());
    }
    ring
}

/// What a run of the program is made with.
pub fn setup(keys: KeyRing) -> Setup {
    Setup {
        tables: PROTOCOLS.iter().map(|p| LazyTables::new(*p, Vec::new()).unwrap()).collect(),
        settings: AllSettings::default().with("moul", Settings::new(MoulSettings::with_keys(keys))),
        options: Options::default(),
        decode_as: Vec::new(),
        limits: FlowLimits::default(),
        max_held: 32 << 20,
        names: true,
        pseudonyms: None,
    }
}

/// A frame that was read.
pub struct Kept {
    pub number: u64,
    pub time: Time,
    pub link: u16,
    pub data: Vec<u8>,
    pub wire_len: u32,
}

impl Kept {
    /// As the reader gave it.
    pub fn frame(&self) -> moulsniff::capture::Frame<'_> {
        moulsniff::capture::Frame {
            number: self.number,
            time: self.time,
            link: self.link,
            data: &self.data,
            wire_len: self.wire_len,
        }
    }
}

/// All frames of a capture.
pub fn frames(bytes: Vec<u8>) -> Vec<Kept> {
    let mut capture =
        Capture::new([Source::reader("frames", Box::new(std::io::Cursor::new(bytes)))]);
    let mut all = Vec::new();
    while let Some(frame) = capture.next_frame().unwrap() {
        let number = frame.number;
        let time = frame.time;
        let link = frame.link;
        let wire_len = frame.wire_len;
        all.push(Kept { number, time, link, data: frame.data.to_vec(), wire_len });
    }
    all
}

/// A message that was sent.
pub struct Sent {
    pub protocol: String,
    pub service: String,
    pub stream: u32,
    pub from: Side,
    pub name: String,
    pub bytes: Vec<u8>,
}

/// All messages of a capture.
pub fn messages((capture, keyfiles): (&str, &[&str])) -> Vec<Sent> {
    let mut pipeline = Pipeline::new(setup(keys(keyfiles)));
    let mut collector = Collector::default();
    for frame in frames(bytes(capture)) {
        pipeline.frame(&frame.frame(), &mut collector);
    }
    pipeline.finish(&mut collector);
    collector.0
}

#[derive(Default)]
struct Collector(Vec<Sent>);

impl Output for Collector {
    fn record(&mut self, record: &Record<'_>) {
        let Body::Message { message, .. } = &record.body else { return };
        self.0.push(Sent {
            protocol: record.protocol.to_string(),
            service: record.service.to_string(),
            stream: record.stream,
            from: message.from,
            name: message.name.raw().to_string(),
            bytes: message.bytes.to_vec(),
        });
    }
}
