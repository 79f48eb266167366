//! The open streams: passes each call of the flow to its connection, and bounds the memory of all
//! connections together.

use std::collections::HashMap;

use super::connection::{Connection, RunContext};
use super::shared::Shared;
use super::{Output, StreamKey};
use crate::capture::Moment;
use crate::flow::{Cause, Dir, End, FlowSink, Note, Stream, StreamId, TcpOpening, Totals};
use crate::record::RoundTrip;
use crate::session::Transport;

/// The open streams.
pub(super) struct StreamTable {
    connections: HashMap<StreamKey, Box<Connection>>,
    /// Memory of all connections, roughly, in bytes.
    held: usize,
    /// Above this, the connections that hold most memory have to release some of it.
    full: usize,
    pub(super) shared: Shared,
}

impl StreamTable {
    pub(super) fn new(shared: Shared) -> StreamTable {
        StreamTable { connections: HashMap::new(), held: 0, full: shared.setup.max_held, shared }
    }

    /// The table as the flow sees it for one frame, with the output that this frame's records go
    /// to.
    pub(super) fn sink<'a>(&'a mut self, out: &'a mut dyn Output) -> StreamSink<'a> {
        StreamSink { table: self, out }
    }
}

/// The open streams, and where their records go.
pub(super) struct StreamSink<'a> {
    table: &'a mut StreamTable,
    out: &'a mut dyn Output,
}

fn tcp(stream: StreamId) -> StreamKey {
    StreamKey { transport: Transport::Tcp, number: stream.0 }
}

fn udp(stream: StreamId) -> StreamKey {
    StreamKey { transport: Transport::Udp, number: stream.0 }
}

impl StreamSink<'_> {
    /// Calls a connection, and updates the count of the memory that it holds.
    #[inline]
    fn with(
        &mut self,
        key: StreamKey,
        at: Moment,
        call: impl FnOnce(&mut Connection, &mut RunContext<'_>),
    ) {
        let table = &mut *self.table;
        if let Some(connection) = table.connections.get_mut(&key) {
            let before = connection.held();
            call(connection, &mut RunContext { shared: &mut table.shared, out: &mut *self.out });
            table.held = table.held + connection.held() - before;
        }
        if table.held > table.full {
            self.relieve(at);
        }
    }

    /// Makes the connections that hold most memory give up their waiting bytes. Frees a quarter of
    /// the bound, so that this is rarely needed.
    fn relieve(&mut self, at: Moment) {
        let table = &mut *self.table;
        let bound = table.shared.setup.max_held;
        let enough = bound / 4 * 3;
        let mut largest: Vec<(usize, StreamKey)> =
            table.connections.iter().map(|(key, c)| (c.held(), *key)).collect();
        largest.sort_unstable_by_key(|(held, key)| {
            (std::cmp::Reverse(*held), key.number, key.transport.word())
        });
        for (before, key) in largest {
            if table.held <= enough {
                break;
            }
            if let Some(connection) = table.connections.get_mut(&key) {
                connection.relieve(
                    at,
                    &mut RunContext { shared: &mut table.shared, out: &mut *self.out },
                );
                table.held = table.held - before + connection.held();
            }
        }
        // If the connections cannot release enough, the next attempt comes only after they have
        // grown.
        table.full = bound.max(table.held + bound / 4);
    }

    /// A UDP conversation begins with its first datagram.
    fn conversation(&mut self, stream: &Stream) -> StreamKey {
        let key = udp(stream.id);
        self.table
            .connections
            .entry(key)
            .or_insert_with(|| Box::new(Connection::new(key, *stream, false)));
        key
    }

    fn end(&mut self, key: StreamKey, dir: Dir, how: End, at: Moment) {
        self.with(key, at, |connection, run| connection.end(dir, how, at, run));
        let table = &mut *self.table;
        if table.connections.get(&key).is_some_and(|connection| connection.is_over())
            && let Some(connection) = table.connections.remove(&key)
        {
            table.held -= connection.held();
            connection
                .report_over(&mut RunContext { shared: &mut table.shared, out: &mut *self.out });
        }
    }
}

impl FlowSink for StreamSink<'_> {
    fn tcp_open(&mut self, stream: &Stream, opening: TcpOpening, _at: Moment) {
        let key = tcp(stream.id);
        let replaced = self
            .table
            .connections
            .insert(key, Box::new(Connection::new(key, *stream, opening != TcpOpening::Middle)));
        self.table.held -= replaced.map_or(0, |connection| connection.held());
    }

    fn tcp_data(&mut self, stream: StreamId, dir: Dir, offset: u64, bytes: &[u8], at: Moment) {
        self.with(tcp(stream), at, |connection, run| connection.data(dir, offset, bytes, at, run));
    }

    fn tcp_start(&mut self, stream: StreamId, dir: Dir, seq: u32) {
        if let Some(connection) = self.table.connections.get_mut(&tcp(stream)) {
            connection.starts_at(dir, seq);
        }
    }

    fn tcp_round_trip(&mut self, stream: StreamId, dir: Dir, nanos: i64, opening: bool) {
        if let Some(connection) = self.table.connections.get_mut(&tcp(stream)) {
            connection.round_trip(dir, RoundTrip { nanos, opening });
        }
    }

    fn tcp_gap(
        &mut self,
        stream: StreamId,
        dir: Dir,
        offset: u64,
        len: u64,
        _cause: Cause,
        at: Moment,
    ) {
        self.with(tcp(stream), at, |connection, run| connection.gap(dir, offset, len, at, run));
    }

    fn tcp_note(&mut self, stream: StreamId, dir: Dir, note: Note, at: Moment) {
        self.with(tcp(stream), at, |connection, run| connection.note(dir, note, at, run));
    }

    fn tcp_closing(&mut self, stream: StreamId, dir: Dir, at: Moment) {
        if let Some(connection) = self.table.connections.get_mut(&tcp(stream)) {
            connection.closing(dir, at);
        }
    }

    fn tcp_end(&mut self, stream: StreamId, dir: Dir, how: End, totals: &Totals, at: Moment) {
        if let Some(connection) = self.table.connections.get_mut(&tcp(stream)) {
            connection.count(dir, totals);
        }
        self.end(tcp(stream), dir, how, at);
    }

    fn udp(&mut self, stream: &Stream, dir: Dir, bytes: &[u8], missing: u32, at: Moment) {
        let key = self.conversation(stream);
        self.with(key, at, |connection, run| {
            connection.datagram(dir, bytes, missing.into(), at, run)
        });
    }

    fn udp_note(&mut self, stream: &Stream, dir: Dir, note: Note, at: Moment) {
        let key = self.conversation(stream);
        self.with(key, at, |connection, run| connection.note(dir, note, at, run));
    }

    fn udp_end(&mut self, stream: StreamId, how: End, at: Moment) {
        for dir in [Dir::Forward, Dir::Backward] {
            self.end(udp(stream), dir, how, at);
        }
    }
}
