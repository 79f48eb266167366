//! Connections: a script of bytes, holes and ends for a protocol's session, as the flow might bring
//! it.

use std::net::SocketAddr;

use moulsniff::capture::{Moment, Time};
use moulsniff::proto::moul::MoulSettings;
use moulsniff::proto::moul::keys::{KeyFile, KeyRing, SearchBounds};
use moulsniff::session::{
    Context, Emit, Ends, Event, EventKind, Message, Options, Session, Settings, Share, Side, Start,
    Transport,
};
use moulsniff::table::{Evaluator, Tables};
use moulsniff::tree::Tree;

use crate::{byte, bytes, checks, number, shard, tables_of};

/// Bytes of a script for a connection that was joined late. Every place in what came is tried as
/// the beginning of a message of every service, which takes longer than all that follows; longer
/// scripts would try more places, and nothing else.
const JOINED_SCRIPT: usize = 1024;

pub fn moul(mut data: &[u8]) {
    let how = byte(&mut data);
    // Sessions' own keys, some of them for this connection, come before the script.
    let text = if how & 4 != 0 {
        let count = number(&mut data) % 512;
        bytes(&mut data, count)
    } else {
        &[]
    };
    let mut keys = if how & 2 != 0 { shard() } else { KeyRing::default() };
    keys.search = SearchBounds { positions: 1 << 12, searches: 4 };
    if let Ok(file) = KeyFile::parse("session", text) {
        keys.add(file);
    }
    let service = match how >> 4 {
        1 => Some("auth"),
        2 => Some("game"),
        3 => Some("file"),
        _ => None,
    };
    let whole = how & 1 != 0;
    let script = if whole { data } else { bytes(&mut data, JOINED_SCRIPT) };
    run(
        "moul",
        Transport::Tcp,
        whole,
        service,
        &Settings::new(MoulSettings::with_keys(keys)),
        script,
    );
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
    fn message(
        &mut self,
        _: Moment,
        message: &Message<'_>,
        tables: &Tables,
        tree: &mut Tree,
    ) -> u64 {
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

/// A script: a byte that says what comes and, with the next one, how long it is; then the bytes, if
/// it is bytes that come.
fn run(
    protocol: &str,
    transport: Transport,
    whole: bool,
    service: Option<&str>,
    settings: &Settings,
    mut data: &[u8],
) {
    let mut connection = Connection::new(protocol, transport, whole, service, settings);
    while !data.is_empty() {
        let how = byte(&mut data);
        let length = usize::from(how >> 3) << 8 | usize::from(byte(&mut data));
        let side = if how & 1 == 0 { Side::Client } else { Side::Server };
        match (how >> 1 & 3, transport) {
            (3, Transport::Tcp) if length == 0 => connection.relieve(),
            (3, Transport::Tcp) => connection.gap(side, length as u64),
            _ => connection.data(side, bytes(&mut data, length)),
        }
    }
    connection.end();
}

/// A connection, and where its directions are.
pub struct Connection<'a> {
    tables: &'static Tables,
    transport: Transport,
    settings: &'a Settings,
    options: Options,
    evaluator: Evaluator,
    session: Box<dyn Session>,
    tree: Tree,
    ear: Ear,
    offsets: [u64; 2],
    captured: [u64; 2],
    frame: u64,
}

/// Calls the session with a context made of the connection's parts.
macro_rules! call {
    ($self:ident . $method:ident ( $($argument:expr),* )) => {
        $self.session.$method($($argument,)* &mut Context {
            tables: $self.tables,
            evaluator: &mut $self.evaluator,
            tree: &mut $self.tree,
            settings: $self.settings,
            sequences: [None; 2],
            options: &$self.options,
            emit: &mut $self.ear,
        })
    };
}

impl<'a> Connection<'a> {
    /// A connection of a protocol, from its first byte on (`whole`) or joined late.
    pub fn new(
        protocol: &str,
        transport: Transport,
        whole: bool,
        service: Option<&str>,
        settings: &'a Settings,
    ) -> Connection<'a> {
        let lazy = tables_of(protocol);
        let protocol = lazy.protocol();
        let tables = lazy.get();
        let options =
            Options { max_message: 1 << 20, max_decompressed: 1 << 20, ..Options::default() };
        let mut evaluator = Evaluator::default();
        evaluator.limits.decompressed = options.max_decompressed;
        protocol.prepare(&mut evaluator, settings);
        let ends = Ends {
            client: SocketAddr::from(([10, 0, 0, 1], 50_000)),
            server: SocketAddr::from(([10, 0, 0, 2], 14_617)),
        };
        let start = Start { ends, transport, whole, service, message: None };
        let session = protocol.session(&start, tables);
        Connection {
            tables,
            transport,
            settings,
            options,
            evaluator,
            session,
            tree: Tree::new(),
            ear: Ear::default(),
            offsets: [0; 2],
            captured: [0; 2],
            frame: 0,
        }
    }

    fn next(&mut self) -> Moment {
        self.frame += 1;
        Moment { frame: self.frame, time: Time { seconds: self.frame as i64, nanos: 0, digits: 6 } }
    }

    /// A segment or a datagram. An empty segment is none.
    pub fn data(&mut self, side: Side, bytes: &[u8]) {
        let at = self.next();
        match self.transport {
            Transport::Tcp if bytes.is_empty() => return,
            Transport::Tcp => call!(self.data(side, self.offsets[side.index()], bytes, at)),
            Transport::Udp => call!(self.datagram(side, bytes, 0, at)),
        }
        self.offsets[side.index()] += bytes.len() as u64;
        self.captured[side.index()] += bytes.len() as u64;
        let _ = self.session.held();
    }

    /// Bytes that were never captured.
    pub fn gap(&mut self, side: Side, length: u64) {
        let at = self.next();
        call!(self.gap(side, self.offsets[side.index()], length, at));
        self.offsets[side.index()] += length;
    }

    /// The session is asked to hold less.
    pub fn relieve(&mut self) {
        let at = self.next();
        call!(self.relieve(at));
    }

    /// How many messages there were so far.
    pub fn messages(&self) -> u64 {
        self.ear.records
    }

    /// Both directions end: every byte was accounted for.
    pub fn end(mut self) {
        for side in [Side::Client, Side::Server] {
            let at = Moment { frame: self.frame, time: Time::default() };
            call!(self.end(side, at));
        }
        let _ = (self.session.learned(), self.session.service());
        assert_eq!(
            self.ear.told, self.captured,
            "bytes of the client and of the server: accounted for, captured"
        );
    }
}
