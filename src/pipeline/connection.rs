//! One stream: keeps its bytes until its protocol is known, then passes every call to the
//! protocol's session.
//!
//! It knows protocols by their trait alone, and no output.

use super::emitter::RecordEmitter;
use super::passed_over::Foreign;
use super::shared::{ChosenProtocol, Shared};
use super::waiting::{ForgottenDatagrams, Kept, KeptWhat, WaitingPieces};
use super::{Output, StreamKey, StreamOver};
use crate::capture::Moment;
use crate::digits::{counted, plural};
use crate::flow::{Dir, End, Note, Stream, Totals};
use crate::proto::{LazyTables, Opening, Verdict};
use crate::record::{RoundTrip, RoundTrips, SideTraffic, StreamTraffic};
use crate::session::Counts;
use crate::session::{Context, Emit, Ends, Event, EventKind, Session, Side, Start, Transport};

/// What a connection works with during one call: what all connections share, and where records go.
pub(super) struct RunContext<'a> {
    pub(super) shared: &'a mut Shared,
    pub(super) out: &'a mut dyn Output,
}

/// One stream.
pub(super) struct Connection {
    key: StreamKey,
    stream: Stream,
    /// Whether its beginning was captured, so that the sides are certain.
    whole: bool,
    client_is_forward: bool,
    state: ConnectionState,
    counts: [Counts; 2],
    ended: [bool; 2],
    /// The frames in which the senders of the two directions closed or reset it, forward and
    /// backward.
    closed_in: [Option<u64>; 2],
    /// The TCP sequence numbers of offset 0, forward and backward.
    starts: [Option<u32>; 2],
    /// What the packets of the two directions show, forward and backward.
    traffic: [SideTraffic; 2],
    /// Round trips to the receivers of the two directions, forward and backward.
    round_trips: [Option<RoundTrip>; 2],
    /// Payload bytes, forward and backward, and bytes never captured, counted while the protocol is
    /// not known. For [`Foreign`].
    unclaimed: [u64; 2],
    /// It begins as TLS does.
    is_tls: bool,
    lost: u64,
    /// Whether the server was added to the known servers.
    server_remembered: bool,
    /// Memory of the waiting pieces or, as it reports, of the session: roughly, in bytes.
    held: usize,
}

enum ConnectionState {
    /// The protocol is not known yet.
    Unknown(WaitingPieces),
    /// A protocol, by its index in the tables, and its session.
    Known(usize, Box<dyn Session>),
    /// None of the protocols.
    Foreign,
}

impl Connection {
    /// A stream before its first byte. If its beginning was not captured, the end with the higher
    /// port is taken for the client.
    pub(super) fn new(key: StreamKey, stream: Stream, whole: bool) -> Self {
        let guess =
            key.transport == Transport::Udp || stream.forward.port() >= stream.backward.port();
        Connection {
            key,
            stream,
            whole,
            client_is_forward: whole || guess,
            state: ConnectionState::Unknown(WaitingPieces::default()),
            counts: [Counts::default(); 2],
            ended: [false; 2],
            closed_in: [None; 2],
            starts: [None; 2],
            traffic: [SideTraffic::default(); 2],
            round_trips: [None; 2],
            unclaimed: [0; 2],
            is_tls: false,
            lost: 0,
            server_remembered: false,
            held: 0,
        }
    }

    /// Memory held, roughly, in bytes.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Offset 0 of a direction has this TCP sequence number.
    pub(super) fn starts_at(&mut self, dir: Dir, seq: u32) {
        *of(&mut self.starts, dir) = Some(seq);
    }

    /// The round trip of a direction to its receiver.
    pub(super) fn round_trip(&mut self, dir: Dir, trip: RoundTrip) {
        *of(&mut self.round_trips, dir) = Some(trip);
    }

    /// The sender of a direction closed or reset the connection.
    pub(super) fn closing(&mut self, dir: Dir, at: Moment) {
        of(&mut self.closed_in, dir).get_or_insert(at.frame);
    }

    /// A direction of a TCP stream ended: what its segments showed.
    pub(super) fn count(&mut self, dir: Dir, totals: &Totals) {
        *of(&mut self.traffic, dir) = SideTraffic {
            heard: totals.heard,
            unheard: totals.unheard,
            packets: totals.segments,
            resent: totals.resent,
            first_resent: totals.first_resent,
            zero_windows: totals.zero_windows,
            first_zero_window: totals.first_zero_window,
            longest_zero_window: totals.longest_zero_window,
            unacknowledged: totals.unacknowledged,
        };
    }

    /// Whether both directions ended.
    pub(super) fn is_over(&self) -> bool {
        self.ended.iter().all(|e| *e)
    }

    /// The next bytes of a TCP stream.
    pub(super) fn data(
        &mut self,
        dir: Dir,
        offset: u64,
        bytes: &[u8],
        at: Moment,
        run: &mut RunContext<'_>,
    ) {
        if !matches!(self.state, ConnectionState::Known(..)) {
            self.is_tls |= offset == 0 && begins_tls(bytes);
            *of(&mut self.unclaimed, dir) += bytes.len() as u64;
            return self.keep(dir, at, || KeptWhat::Bytes(offset, bytes.to_vec()), run);
        }
        let side = self.side(dir);
        self.payload(side, offset, bytes, run);
        self.call(run, |session, context| session.data(side, offset, bytes, at, context));
        self.remember_server(run);
    }

    /// The next datagram, of which the last `missing` bytes were not captured.
    pub(super) fn datagram(
        &mut self,
        dir: Dir,
        bytes: &[u8],
        missing: u64,
        at: Moment,
        run: &mut RunContext<'_>,
    ) {
        let traffic = of(&mut self.traffic, dir);
        traffic.heard = true;
        traffic.unheard = 0;
        traffic.packets += 1;
        of(&mut self.traffic, dir.flip()).unheard += 1;
        self.take_datagram(dir, bytes, missing, at, run);
    }

    fn take_datagram(
        &mut self,
        dir: Dir,
        bytes: &[u8],
        missing: u64,
        at: Moment,
        run: &mut RunContext<'_>,
    ) {
        if !matches!(self.state, ConnectionState::Known(..)) {
            *of(&mut self.unclaimed, dir) += bytes.len() as u64;
            return self.ask(dir, bytes, missing, at, run);
        }
        let side = self.side(dir);
        self.payload(side, 0, bytes, run);
        self.call(run, |session, context| session.datagram(side, bytes, missing, at, context));
        if missing > 0 {
            self.emit(run, |emitter, service| {
                emitter.cut_datagram(side, at, service, bytes.len() as u64, missing)
            });
        }
        self.remember_server(run);
    }

    /// Bytes of a TCP stream that were never captured.
    pub(super) fn gap(
        &mut self,
        dir: Dir,
        offset: u64,
        length: u64,
        at: Moment,
        run: &mut RunContext<'_>,
    ) {
        if !matches!(self.state, ConnectionState::Known(..)) {
            self.lost += length;
            return self.keep(dir, at, || KeptWhat::Gap(offset, length), run);
        }
        let side = self.side(dir);
        self.call(run, |session, context| session.gap(side, offset, length, at, context));
    }

    /// An anomaly in a direction.
    pub(super) fn note(&mut self, dir: Dir, note: Note, at: Moment, run: &mut RunContext<'_>) {
        if !matches!(self.state, ConnectionState::Known(..)) {
            return self.keep(dir, at, || KeptWhat::Note(note), run);
        }
        let side = self.side(dir);
        self.emit(run, |emitter, service| emitter.note(side, at, service, note));
    }

    /// The end of a direction.
    pub(super) fn end(&mut self, dir: Dir, how: End, at: Moment, run: &mut RunContext<'_>) {
        *of(&mut self.ended, dir) = true;
        if !matches!(self.state, ConnectionState::Known(..)) {
            return self.keep(dir, at, || KeptWhat::End(how), run);
        }
        let side = self.side(dir);
        let transport = self.key.transport;
        let closed_in = *of(&mut self.closed_in, dir);
        self.call(run, |session, context| session.end(side, at, context));
        self.emit(run, |emitter, service| match transport {
            Transport::Tcp => emitter.stream_end(side, at, service, how, closed_in),
            Transport::Udp if how == End::Evicted => emitter.evicted(side, at, service),
            Transport::Udp => {}
        });
    }

    /// Gives up waiting bytes, because all streams together hold too much.
    pub(super) fn relieve(&mut self, at: Moment, run: &mut RunContext<'_>) {
        match &mut self.state {
            ConnectionState::Unknown(waiting) if self.key.transport == Transport::Udp => {
                waiting.forget_all();
                self.held = waiting.held();
            }
            ConnectionState::Unknown(_) => {
                self.recognise(true, run);
            }
            _ => {}
        }
        self.call(run, |session, context| session.relieve(at, context));
    }

    /// Reports a stream whose two directions ended: to the output or, if no protocol recognised it,
    /// to the counts of such streams.
    pub(super) fn report_over(&self, run: &mut RunContext<'_>) {
        let ConnectionState::Known(protocol, session) = &self.state else {
            return run.shared.passed_over.add(self.as_foreign());
        };
        let Some(tables) = run.shared.setup.tables.get(*protocol) else { return };
        let mut ends = self.ends();
        let mut learned = session.learned();
        if let Some(pseudonyms) = &mut run.shared.setup.pseudonyms {
            let shown = pseudonyms.ends(ends);
            learned = pseudonyms.learned(learned, ends, shown);
            ends = shown;
        }
        let key = self.key;
        let protocol = tables.protocol().name();
        let service = session.service();
        let counts = self.counts;
        let round_trips = self.round_trips();
        run.out.stream_over(&StreamOver {
            key,
            ends,
            protocol,
            service,
            counts,
            round_trips,
            traffic: self.traffic(),
            learned,
        });
    }

    fn as_foreign(&self) -> Foreign {
        let forward = self.stream.forward.port();
        let backward = self.stream.backward.port();
        let [one, other] = self.unclaimed;
        Foreign {
            transport: self.key.transport,
            port: if self.whole { backward } else { forward.min(backward) },
            bytes: one + other,
            one_sided: one == 0 || other == 0,
            joined_late: self.key.transport == Transport::Tcp && !self.whole,
            has_gaps: self.lost > 0,
            is_tls: self.is_tls,
        }
    }

    fn ends(&self) -> Ends {
        if self.client_is_forward {
            Ends { client: self.stream.forward, server: self.stream.backward }
        } else {
            Ends { client: self.stream.backward, server: self.stream.forward }
        }
    }

    /// The receiver of the client's direction is the server, and the other way round.
    fn round_trips(&self) -> RoundTrips {
        let [forward, backward] = self.round_trips;
        if self.client_is_forward {
            RoundTrips { server: forward, client: backward }
        } else {
            RoundTrips { server: backward, client: forward }
        }
    }

    fn traffic(&self) -> StreamTraffic {
        let [forward, backward] = self.traffic;
        let mut sides =
            if self.client_is_forward { [forward, backward] } else { [backward, forward] };
        if self.ends().are_made_up() {
            // A text that tells of one side only misses nothing of the other.
            for side in &mut sides {
                (side.heard, side.unheard) = (true, 0);
            }
        }
        let whole = match (self.key.transport, &self.state) {
            (Transport::Tcp, _) => self.whole,
            (Transport::Udp, ConnectionState::Known(_, session)) => session.has_beginning(),
            (Transport::Udp, _) => true,
        };
        StreamTraffic { whole, sides }
    }

    fn side(&self, dir: Dir) -> Side {
        if (dir == Dir::Forward) == self.client_is_forward { Side::Client } else { Side::Server }
    }

    /// Keeps a piece, and asks the protocols again. Drops the piece if no protocol wants the
    /// stream.
    fn keep(
        &mut self,
        dir: Dir,
        at: Moment,
        what: impl FnOnce() -> KeptWhat,
        run: &mut RunContext<'_>,
    ) {
        let ConnectionState::Unknown(waiting) = &mut self.state else { return };
        waiting.keep(dir, at, what());
        self.held = waiting.held();
        self.recognise(self.is_over(), run);
    }

    /// Keeps a datagram and asks the protocols whether it is theirs. Others before it prove
    /// nothing: any program may send something to the same ends.
    fn ask(&mut self, dir: Dir, bytes: &[u8], missing: u64, at: Moment, run: &mut RunContext<'_>) {
        let ConnectionState::Unknown(waiting) = &mut self.state else { return };
        // Whoever sends the first datagram of a protocol is taken for its client.
        if waiting.looks().iter().all(|look| look.is_empty()) {
            self.client_is_forward = dir == Dir::Forward;
        }
        waiting.keep_datagram(dir, at, bytes, missing);
        self.held = waiting.held();
        let verdict = self.recognise(false, run);
        let ConnectionState::Unknown(waiting) = &mut self.state else { return };
        if verdict == Verdict::No {
            waiting.look_back(dir);
        }
        waiting.forget_excess();
        self.held = waiting.held();
    }

    /// Asks the protocols whose stream this is. Once one takes it, its session gets everything that
    /// was kept. With `over`, no more bytes come and the protocols have to decide.
    fn recognise(&mut self, over: bool, run: &mut RunContext<'_>) -> Verdict {
        let ConnectionState::Unknown(waiting) = &self.state else { return Verdict::No };
        let is_udp = self.key.transport == Transport::Udp;
        let [forward, backward] = waiting.looks();
        let nothing = forward.is_empty() && backward.is_empty();
        if is_udp && over && nothing {
            self.client_is_forward = waiting.first_dir() != Some(Dir::Backward);
        }
        let (client, server) =
            if self.client_is_forward { (forward, backward) } else { (backward, forward) };
        // Any datagram may be the first one of a protocol.
        let last = over || !is_udp && waiting.is_full();
        let ends = self.ends();
        let shared = &*run.shared;
        let opening =
            Opening { client, server, ends, whole: self.whole, last, known: shared.known(ends) };
        let (verdict, protocol) = match shared.chosen_protocol(&opening, self.key.transport) {
            Some(chosen) => {
                let enough = last || is_udp && waiting.has_most_datagrams();
                (chosen.verdict(&opening, self.key.transport, enough, shared), chosen.protocol)
            }
            None => first_verdict(&opening, self.key.transport, shared),
        };
        match verdict {
            Verdict::Yes { swapped } => self.enter(protocol, swapped, run),
            Verdict::Maybe if !last => {}
            _ if nothing && !over => {}
            Verdict::No if is_udp && !over => {}
            _ => {
                self.state = ConnectionState::Foreign;
                self.held = 0;
            }
        }
        verdict
    }

    /// Starts a protocol's session and hands it everything that was kept.
    fn enter(&mut self, protocol: usize, swapped: bool, run: &mut RunContext<'_>) {
        self.client_is_forward ^= swapped;
        let shared = &mut *run.shared;
        let Some(tables) = shared.setup.tables.get(protocol) else { return };
        let ends = self.ends();
        let service = shared
            .known(ends)
            .filter(|k| k.protocol == tables.protocol().name())
            .and_then(|k| k.service);
        let (transport, whole) = (self.key.transport, self.whole);
        let start = Start { ends, transport, whole, service, message: None };
        let session = tables.protocol().session(&start, tables.get());
        shared.summary.streams += 1;
        let before = std::mem::replace(&mut self.state, ConnectionState::Known(protocol, session));
        let ConnectionState::Unknown(waiting) = before else { return };
        let (forgotten, pieces) = waiting.into_pieces();
        self.report_forgotten(forgotten, run);
        for Kept { dir, at, what } in pieces {
            match what {
                KeptWhat::Bytes(offset, bytes) => self.data(dir, offset, &bytes, at, run),
                KeptWhat::Datagram(bytes, missing) => {
                    self.take_datagram(dir, &bytes, missing, at, run)
                }
                KeptWhat::Gap(offset, length) => self.gap(dir, offset, length, at, run),
                KeptWhat::Note(note) => self.note(dir, note, at, run),
                KeptWhat::End(how) => self.end(dir, how, at, run),
            }
        }
    }

    /// Reports the datagrams that came so long before the protocol was known that they were not
    /// kept.
    fn report_forgotten(&mut self, forgotten: ForgottenDatagrams, run: &mut RunContext<'_>) {
        let ForgottenDatagrams { datagrams, bytes, at } = forgotten;
        for (dir, (count, bytes)) in
            [Dir::Forward, Dir::Backward].into_iter().zip(datagrams.into_iter().zip(bytes))
        {
            let side = self.side(dir);
            if count == 0 {
                continue;
            }
            if let Some(counts) = self.counts.get_mut(side.index()) {
                counts.payload += bytes;
            }
            run.shared.summary.bytes.payload += bytes;
            let text = format!(
                "{} before the protocol was known {} not kept",
                counted(count, "datagram"),
                plural(count, "was", "were")
            );
            self.emit(run, |emitter, service| {
                let event = Event::new(EventKind::Undecoded, service, side, text);
                emitter.event(at, event.about(0, bytes));
            });
        }
    }

    /// Counts payload, and hands it on as plaintext if it is not encrypted.
    fn payload(&mut self, side: Side, offset: u64, bytes: &[u8], run: &mut RunContext<'_>) {
        let ConnectionState::Known(_, session) = &self.state else { return };
        // Pseudonyms are put into messages. Their bytes are handed on then.
        let clear = session.is_clear() && run.shared.setup.pseudonyms.is_none();
        let length = bytes.len() as u64;
        if let Some(counts) = self.counts.get_mut(side.index()) {
            counts.payload += length;
        }
        run.shared.summary.bytes.payload += length;
        if clear {
            run.out.plaintext(&self.key, side, offset, bytes);
        }
    }

    /// Adds the server to the known servers, once the session knows its service.
    fn remember_server(&mut self, run: &mut RunContext<'_>) {
        let ConnectionState::Known(protocol, session) = &self.state else { return };
        if self.server_remembered || !self.whole || session.service() == "unknown" {
            return;
        }
        self.server_remembered = true;
        let Some(name) =
            run.shared.setup.tables.get(*protocol).map(|tables| tables.protocol().name())
        else {
            return;
        };
        run.shared.remember_server(self.ends().server, name, session.service().to_string());
    }

    /// Calls the session with what it [works with](Context). Does nothing while the protocol is not
    /// known.
    fn call(
        &mut self,
        run: &mut RunContext<'_>,
        call: impl FnOnce(&mut dyn Session, &mut Context<'_>),
    ) {
        let ends = self.ends();
        let round_trips = self.round_trips();
        let [forward, backward] = self.starts;
        let sequences =
            if self.client_is_forward { [forward, backward] } else { [backward, forward] };
        let ConnectionState::Known(protocol, session) = &mut self.state else { return };
        let shared = &mut *run.shared;
        let tables = shared.setup.tables.get(*protocol);
        let evaluator = shared.evaluators.get_mut(*protocol);
        let (Some(tables), Some(evaluator)) = (tables, evaluator) else { return };
        let pseudonyms = shared.setup.pseudonyms.as_mut();
        let mut emitter = RecordEmitter {
            out: &mut *run.out,
            summary: &mut shared.summary,
            key: self.key,
            ends,
            protocol: tables.protocol().name(),
            round_trips,
            counts: &mut self.counts,
            pseudonyms,
            names: shared.names.as_mut(),
        };
        let mut context = Context {
            tables: tables.get(),
            evaluator,
            tree: &mut shared.tree,
            settings: shared.setup.settings.of(tables),
            sequences,
            options: &shared.setup.options,
            emit: &mut emitter,
        };
        call(session.as_mut(), &mut context);
        self.held = session.held();
    }

    /// Emits a record that comes from the stream itself and not from its session. `emit` gets the
    /// session's service.
    fn emit(&mut self, run: &mut RunContext<'_>, emit: impl FnOnce(&mut RecordEmitter<'_>, &str)) {
        let ends = self.ends();
        let round_trips = self.round_trips();
        let ConnectionState::Known(protocol, session) = &self.state else { return };
        let protocol =
            run.shared.setup.tables.get(*protocol).map_or("", |tables| tables.protocol().name());
        let out = &mut *run.out;
        let summary = &mut run.shared.summary;
        let key = self.key;
        let counts = &mut self.counts;
        let pseudonyms = run.shared.setup.pseudonyms.as_mut();
        let names = run.shared.names.as_mut();
        let mut emitter = RecordEmitter {
            out,
            summary,
            key,
            ends,
            protocol,
            round_trips,
            counts,
            pseudonyms,
            names,
        };
        emit(&mut emitter, session.service());
    }
}

/// A direction's element of a pair in which the forward one comes first.
fn of<T>(pair: &mut [T; 2], dir: Dir) -> &mut T {
    let [forward, backward] = pair;
    if dir == Dir::Forward { forward } else { backward }
}

/// The first protocol that says yes, or else one that says maybe, with its index in the tables.
/// Whether a stream begins with the first message of a TLS client.
fn begins_tls(bytes: &[u8]) -> bool {
    matches!(bytes, [0x16, 3, 0..=4, _, _, 1, 0, ..])
}

fn first_verdict(opening: &Opening<'_>, transport: Transport, shared: &Shared) -> (Verdict, usize) {
    let mut verdict = (Verdict::No, 0);
    for (place, tables) in shared.setup.tables.iter().enumerate() {
        match ask(tables, opening, transport) {
            yes @ Verdict::Yes { .. } => return (yes, place),
            Verdict::Maybe => verdict = (Verdict::Maybe, place),
            Verdict::No => {}
        }
    }
    verdict
}

impl ChosenProtocol {
    /// The user's choice (`--decode-as`) goes before all protocols. Which end is the client, the
    /// protocol's recognition says. If it cannot tell from what there is, though that is `enough`,
    /// the server is at the port that the user named.
    fn verdict(
        self,
        opening: &Opening<'_>,
        transport: Transport,
        enough: bool,
        shared: &Shared,
    ) -> Verdict {
        if opening.whole {
            return Verdict::Yes { swapped: false };
        }
        let asked = shared.setup.tables.get(self.protocol);
        match asked.map_or(Verdict::No, |tables| ask(tables, opening, transport)) {
            yes @ Verdict::Yes { .. } => yes,
            // More bytes of a stream do not change what it began with, but there may be further
            // datagrams.
            Verdict::No if transport == Transport::Tcp || enough => self.by_port(opening),
            Verdict::Maybe if enough => self.by_port(opening),
            undecided => undecided,
        }
    }

    fn by_port(self, opening: &Opening<'_>) -> Verdict {
        let Ends { client, server } = opening.ends;
        Verdict::Yes { swapped: client.port() == self.port && server.port() != self.port }
    }
}

fn ask(tables: &LazyTables, opening: &Opening<'_>, transport: Transport) -> Verdict {
    match transport {
        Transport::Tcp => tables.protocol().recognise_tcp(opening, tables),
        Transport::Udp => tables.protocol().recognise_udp(opening, tables),
    }
}
