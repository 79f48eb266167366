//! Connections: a script of bytes, holes and ends for a protocol's session, as the flow might bring it.

use std::net::SocketAddr;

use moulsniff::capture::{Moment, Time};
use moulsniff::proto::moul::MoulSettings;
use moulsniff::proto::moul::keys::{KeyFile, KeyRing, SearchBounds};
use moulsniff::proto::{Context, Emit, Ends, Event, EventKind, Message, Options, Share, Side, Start, Transport, Settings};
use moulsniff::table::{Evaluator, Tables};
use moulsniff::tree::Tree;

use crate::{byte, bytes, checks, number, tables_of};

const KEYS: &[u8] = include_bytes!("../../keys/dirtsand.ini");

pub fn moul(mut data: &[u8]) {
    let how = byte(&mut data);
    // Sessions' own keys, some of them for this connection, come before the script.
    let text = if how & 4 != 0 {
        let count = number(&mut data) % 512;
        bytes(&mut data, count)
    } else {
        &[]
    };
    let mut keys = KeyRing::default();
    keys.search = SearchBounds { positions: 1 << 12, searches: 4 };
    if how & 2 != 0 {
        keys.add(KeyFile::parse("dirtsand.ini", KEYS).unwrap());
    }
    if let Ok(file) = KeyFile::parse("session", text) {
        keys.add(file);
    }
    let service = match how >> 4 {
        1 => Some("auth"),
        2 => Some("game"),
        3 => Some("file"),
        _ => None,
    };
    run("moul", Transport::Tcp, how & 1 != 0, service, &Settings::new(MoulSettings::with_keys(keys)), data);
}

pub fn secondlife(data: &[u8]) {
    run("secondlife", Transport::Udp, false, None, &Settings::default(), data);
}

pub fn intermud3(mut data: &[u8]) {
    let how = byte(&mut data);
    let service = if how & 2 != 0 { Some("oob") } else { None };
    run("intermud3", Transport::Tcp, how & 1 != 0, service, &Settings::default(), data);
}

pub fn ouro(mut data: &[u8]) {
    let transport = if byte(&mut data) & 1 == 0 { Transport::Udp } else { Transport::Tcp };
    run("ouro", transport, true, None, &Settings::default(), data);
}

/// Counts what becomes of every byte.
#[derive(Default)]
struct Ear {
    records: u64,
    told: [u64; 2],
}

impl Emit for Ear {
    fn message(&mut self, _: Moment, message: &Message<'_>, tables: &Tables, tree: &Tree) -> u64 {
        checks::message(tables, tree, message.bytes);
        self.told[message.from.index()] += message.bytes.len() as u64;
        self.records += 1;
        self.records
    }

    fn event(&mut self, _: Moment, event: Event) {
        self.told[event.from.index()] += match event.kind {
            EventKind::Undecoded => event.length.unwrap_or(0),
            EventKind::Resync { passed_over } => passed_over,
            _ => 0,
        };
    }

    fn account(&mut self, from: Side, _: Share, bytes: u64) {
        self.told[from.index()] += bytes;
    }
}

/// A script: a byte that says what comes and, with the next one, how long it is; then the bytes, if it is bytes that come.
fn run(protocol: &str, transport: Transport, whole: bool, service: Option<&str>, settings: &Settings, mut data: &[u8]) {
    let lazy = tables_of(protocol);
    let (protocol, tables) = (lazy.protocol(), lazy.get());
    let options = Options { max_message: 1 << 20, max_decompressed: 1 << 20, ..Options::default() };
    let mut evaluator = Evaluator::default();
    evaluator.limits.decompressed = options.max_decompressed;
    protocol.prepare(&mut evaluator, settings);
    let ends =
        Ends { client: SocketAddr::from(([10, 0, 0, 1], 50_000)), server: SocketAddr::from(([10, 0, 0, 2], 14_617)) };
    let mut session = protocol.session(&Start { ends, transport, whole, service }, tables);
    let (mut tree, mut ear) = (Tree::new(), Ear::default());
    let (mut offsets, mut captured) = ([0_u64; 2], [0_u64; 2]);
    let mut frame = 0;
    macro_rules! context {
        () => {
            &mut Context {
                tables,
                evaluator: &mut evaluator,
                tree: &mut tree,
                outline: None,
                settings,
                sequences: [None; 2],
                options: &options,
                emit: &mut ear,
            }
        };
    }
    while !data.is_empty() {
        let how = byte(&mut data);
        let length = usize::from(how >> 3) << 8 | usize::from(byte(&mut data));
        let side = if how & 1 == 0 { Side::Client } else { Side::Server };
        frame += 1;
        let at = Moment { frame, time: Time { seconds: frame as i64, nanos: 0, digits: 6 } };
        let (offset, taken) = (&mut offsets[side.index()], &mut captured[side.index()]);
        match (how >> 1 & 3, transport) {
            (3, Transport::Tcp) if length == 0 => session.relieve(at, context!()),
            (3, Transport::Tcp) => {
                session.gap(side, *offset, length as u64, at, context!());
                *offset += length as u64;
            }
            _ => {
                let bytes = bytes(&mut data, length);
                if bytes.is_empty() && transport == Transport::Tcp {
                    continue;
                }
                match transport {
                    Transport::Tcp => session.data(side, *offset, bytes, at, context!()),
                    Transport::Udp => session.datagram(side, bytes, 0, at, context!()),
                }
                *offset += bytes.len() as u64;
                *taken += bytes.len() as u64;
            }
        }
        let _ = session.held();
    }
    for side in [Side::Client, Side::Server] {
        session.end(side, Moment { frame, time: Time::default() }, context!());
    }
    let _ = (session.learned(), session.service());
    assert_eq!(ear.told, captured, "bytes of the client and of the server: told of, captured");
}
