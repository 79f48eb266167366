//! From frames to records: streams are recognised, given to sessions, and what these say is numbered and counted.
//!
//! It knows every room's door and nothing of what is behind: no protocol by name, no output by name.

mod connection;
mod desk;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::capture::{Frame, Moment};
use crate::flow::{Cause, Dir, End, Flow, FlowLimits, FlowSink, Note};
use crate::flow::{FlowStats, Stream, StreamId, TcpOpening, Totals};
use crate::out::{Counts, Outlined, Record};
use crate::proto::{AllSettings, Ends, Known, LazyTables, Learned, Options, Secret, Side, Transport};
use crate::table::Evaluator;
use crate::tree::{Outline, Tree};
use connection::{Connection, Piece};

/// Where records go.
pub trait Output {
    /// One record.
    fn record(&mut self, record: &Record<'_>);
    /// The tree of the last record, a message, is not needed any more: it may be exchanged for another, whose content means nothing.
    fn spent(&mut self, _tree: &mut Tree) {}
    /// Whether outlines of messages are enough for now, where there is no more to a message than its outline.
    fn wants_outlines(&self) -> bool {
        false
    }
    /// One record, which is a message in outline: only for those who want them.
    fn outline(&mut self, _record: &Record<'_, Outlined<'_>>) {}
    /// Plaintext of a recognised stream, in order: who wants to follow one looks at it.
    fn plaintext(&mut self, _stream: &StreamKey, _from: Side, _offset: u64, _bytes: &[u8]) {}
    /// The secret of a connection of a protocol, once a message proved it: for outputs that were asked to keep it, never to be shown.
    fn secret(&mut self, _protocol: &'static str, _secret: Secret) {}
    /// A recognised stream is over: both its directions ended.
    fn stream_over(&mut self, _stream: &StreamOver<'_>) {}
}

/// A stream of either transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamKey {
    /// TCP or UDP.
    pub transport: Transport,
    /// Its number.
    pub number: u32,
}

/// A recognised stream that is over.
#[derive(Clone, Debug)]
pub struct StreamOver<'a> {
    /// Which.
    pub key: StreamKey,
    /// Its two ends.
    pub ends: Ends,
    /// The protocol's name.
    pub protocol: &'static str,
    /// The service's name.
    pub service: &'a str,
    /// What became of the bytes of the client and of the server.
    pub counts: [Counts; 2],
    /// What it told of the world it belongs to.
    pub learned: Vec<Learned>,
}

/// What a run is made with.
pub struct Setup {
    /// The protocols' tables, in the order in which they are asked whether a stream is theirs.
    /// Shared with those that write records on other threads.
    pub tables: Arc<[LazyTables]>,
    /// What was given to each protocol.
    pub settings: AllSettings,
    /// What was asked of the protocols.
    pub options: Options,
    /// Ports whose connections are decoded as a protocol whatever they look like.
    pub decode_as: Vec<DecodeAs>,
    /// Bounds of streams and fragments.
    pub limits: FlowLimits,
    /// Bytes that the sessions of all streams may hold together, with what they remember.
    pub max_held: usize,
}

/// `tcp:14000=moul`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeAs {
    /// TCP or UDP.
    pub transport: Transport,
    /// The port on either side.
    pub port: u16,
    /// The protocol's name.
    pub protocol: String,
}

/// A run over a capture.
pub struct Pipeline<O: Output> {
    flow: Flow,
    engine: Engine<O>,
}

/// What a run had to do with, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// What was met on the way to streams.
    pub flow: FlowStats,
    /// Records.
    pub records: u64,
    /// Messages among them.
    pub messages: u64,
    /// Problems of these messages.
    pub problems: u64,
    /// Recognised streams.
    pub streams: u64,
    /// Bytes of all recognised streams.
    pub bytes: Counts,
}

impl<O: Output> Pipeline<O> {
    /// A run that has seen nothing yet.
    pub fn new(setup: Setup, out: O) -> Self {
        let ready = |lazy: &LazyTables| {
            let mut evaluator = Evaluator::default();
            evaluator.limits = setup.options.limits();
            lazy.protocol().prepare(&mut evaluator, setup.settings.of(lazy));
            evaluator
        };
        let evaluators = setup.tables.iter().map(ready).collect();
        let (tree, outline, summary, servers) = (Tree::new(), Outline::default(), Summary::default(), HashMap::new());
        let shop = Shop { setup, evaluators, tree, outline, out, summary, servers };
        Pipeline {
            flow: Flow::new(shop.setup.limits),
            engine: Engine { connections: HashMap::new(), held: 0, full: shop.setup.max_held, shop },
        }
    }

    /// The next frame.
    pub fn frame(&mut self, frame: &Frame<'_>) {
        self.flow.frame(frame, &mut self.engine);
    }

    /// What was given to each protocol, for secrets that the capture carries.
    pub fn settings(&mut self) -> &mut AllSettings {
        &mut self.engine.shop.setup.settings
    }

    /// The end of the capture.
    pub fn finish(&mut self) {
        self.flow.finish(&mut self.engine);
    }

    /// Where the records go.
    pub fn output(&mut self) -> &mut O {
        &mut self.engine.shop.out
    }

    /// The numbers so far.
    pub fn summary(&self) -> Summary {
        Summary { flow: self.flow.stats(), ..self.engine.shop.summary }
    }
}

/// What all connections share.
struct Shop<O: Output> {
    setup: Setup,
    evaluators: Vec<Evaluator>,
    tree: Tree,
    outline: Outline,
    out: O,
    summary: Summary,
    /// Servers by address: the protocol they speak and the service they offer, if it is only one.
    servers: HashMap<SocketAddr, (&'static str, Option<String>)>,
}

impl<O: Output> Shop<O> {
    /// What is known of a server at one of the ends: it was met before, or the settings tell.
    fn known(&self, ends: Ends) -> Option<Known<'_>> {
        let met = [(ends.server, false), (ends.client, true)].into_iter().find_map(|(at, swapped)| {
            let (protocol, service) = self.servers.get(&at)?;
            Some(Known { protocol, service: service.as_deref(), swapped })
        });
        met.or_else(|| {
            self.setup.tables.iter().find_map(|tables| {
                let expected = tables.protocol().expects(ends, self.setup.settings.of(tables))?;
                let protocol = tables.protocol().name();
                Some(Known { protocol, service: expected.service, swapped: expected.swapped })
            })
        })
    }
}

/// The open connections, fed by the flow.
struct Engine<O: Output> {
    connections: HashMap<StreamKey, Connection>,
    /// Memory that all connections hold, in bytes and roughly.
    held: usize,
    /// When so much is held, room is made.
    full: usize,
    shop: Shop<O>,
}

impl<O: Output> Engine<O> {
    fn piece(&mut self, transport: Transport, id: StreamId, piece: Piece<'_>, at: Moment) {
        let key = StreamKey { transport, number: id.0 };
        if let Some(connection) = self.connections.get_mut(&key) {
            let before = connection.held();
            connection.take(piece, at, &mut self.shop);
            self.held = self.held + connection.held() - before;
        }
        if self.held > self.full {
            self.relieve(at);
        }
    }

    /// Makes room: those that hold most give up first, until there is room enough that this is not to be done again soon.
    fn relieve(&mut self, at: Moment) {
        let most = self.shop.setup.max_held;
        let enough = most / 4 * 3;
        let mut largest: Vec<(usize, u32, StreamKey)> =
            self.connections.iter().map(|(key, c)| (c.held(), key.number, *key)).collect();
        largest.sort_unstable_by_key(|(held, number, key)| (std::cmp::Reverse(*held), *number, key.transport.word()));
        for (before, _, key) in largest {
            if self.held <= enough {
                break;
            }
            if let Some(connection) = self.connections.get_mut(&key) {
                connection.relieve(at, &mut self.shop);
                self.held = self.held - before + connection.held();
            }
        }
        self.full = most.max(self.held + most / 4);
    }

    /// Datagrams tell of their conversation by coming.
    fn conversation(&mut self, stream: &Stream) {
        let key = StreamKey { transport: Transport::Udp, number: stream.id.0 };
        self.connections.entry(key).or_insert_with(|| Connection::new(key, *stream, false));
    }

    fn end(&mut self, transport: Transport, id: StreamId, dir: Dir, how: End, at: Moment) {
        self.piece(transport, id, Piece::End(dir, how), at);
        let key = StreamKey { transport, number: id.0 };
        if self.connections.get(&key).is_some_and(Connection::is_over)
            && let Some(connection) = self.connections.remove(&key)
        {
            self.held -= connection.held();
            connection.tell_over(&mut self.shop);
        }
    }
}

impl<O: Output> FlowSink for Engine<O> {
    fn tcp_open(&mut self, stream: &Stream, opening: TcpOpening, _at: Moment) {
        let key = StreamKey { transport: Transport::Tcp, number: stream.id.0 };
        let replaced = self.connections.insert(key, Connection::new(key, *stream, opening != TcpOpening::Middle));
        self.held -= replaced.map_or(0, |connection| connection.held());
    }

    fn tcp_data(&mut self, stream: StreamId, dir: Dir, offset: u64, bytes: &[u8], at: Moment) {
        self.piece(Transport::Tcp, stream, Piece::Data(dir, offset, bytes), at);
    }

    fn tcp_start(&mut self, stream: StreamId, dir: Dir, seq: u32) {
        if let Some(connection) = self.connections.get_mut(&StreamKey { transport: Transport::Tcp, number: stream.0 }) {
            connection.starts_at(dir, seq);
        }
    }

    fn tcp_gap(&mut self, stream: StreamId, dir: Dir, offset: u64, len: u64, _cause: Cause, at: Moment) {
        self.piece(Transport::Tcp, stream, Piece::Gap(dir, offset, len), at);
    }

    fn tcp_note(&mut self, stream: StreamId, dir: Dir, note: Note, at: Moment) {
        self.piece(Transport::Tcp, stream, Piece::Note(dir, note), at);
    }

    fn tcp_end(&mut self, stream: StreamId, dir: Dir, how: End, _totals: &Totals, at: Moment) {
        self.end(Transport::Tcp, stream, dir, how, at);
    }

    fn udp(&mut self, stream: &Stream, dir: Dir, bytes: &[u8], missing: u32, at: Moment) {
        self.conversation(stream);
        self.piece(Transport::Udp, stream.id, Piece::Data(dir, u64::from(missing), bytes), at);
    }

    fn udp_note(&mut self, stream: &Stream, dir: Dir, note: Note, at: Moment) {
        self.conversation(stream);
        self.piece(Transport::Udp, stream.id, Piece::Note(dir, note), at);
    }

    fn udp_end(&mut self, stream: StreamId, how: End, at: Moment) {
        for dir in [Dir::Forward, Dir::Backward] {
            self.end(Transport::Udp, stream, dir, how, at);
        }
    }
}
