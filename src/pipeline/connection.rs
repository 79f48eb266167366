//! One stream on its way to a session: held until its protocol is known, then handed on.

use std::collections::HashMap;
use std::net::SocketAddr;

use super::desk::Desk;
use super::{Output, Shop, StreamKey, StreamOver};
use crate::capture::Moment;
use crate::flow::{Dir, End, Note, Stream};
use crate::out::Counts;
use crate::proto::{Context, Emit, Ends, Opening, Session, Side, Start, Transport, Verdict};

/// Servers that are remembered, for connections that were there before the capture.
const KNOWN_SERVERS: usize = 4096;

/// Bytes of one direction that are looked at to know a protocol.
const LOOK: usize = 4096;

/// Bytes and pieces that wait for a stream's protocol to be known.
const WAITING_BYTES: usize = 64 << 10;
const WAITING_PIECES: usize = 256;

/// What a piece that waits costs beside its bytes, roughly.
const OVERHEAD: usize = 96;

/// Something a stream brings.
#[derive(Clone, Copy)]
pub(super) enum Piece<'a> {
    /// Bytes at an offset; of a datagram, the number is how many of its last bytes were cut off.
    Data(Dir, u64, &'a [u8]),
    /// Bytes that were never captured.
    Gap(Dir, u64, u64),
    /// Something odd about a direction.
    Note(Dir, Note),
    /// The end of a direction.
    End(Dir, End),
}

impl Piece<'_> {
    fn dir(&self) -> Dir {
        match self {
            Piece::Data(dir, ..) | Piece::Gap(dir, ..) | Piece::Note(dir, _) | Piece::End(dir, _) => *dir,
        }
    }
}

/// A piece that waits.
struct Held {
    dir: Dir,
    offset: u64,
    what: HeldWhat,
    at: Moment,
}

enum HeldWhat {
    Bytes(Vec<u8>),
    Gap(u64),
    Note(Note),
    End(End),
}

enum State {
    /// The protocol is not known yet: all pieces, and the first bytes of each direction.
    Unknown { held: Vec<Held>, first: [Vec<u8>; 2] },
    /// A protocol's session.
    Known { protocol: usize, session: Box<dyn Session> },
    /// None of the protocols.
    Foreign,
}

/// One stream.
pub(super) struct Connection {
    key: StreamKey,
    stream: Stream,
    /// Its beginning was captured, so that the sides are certain.
    whole: bool,
    client_is_forward: bool,
    state: State,
    counts: [Counts; 2],
    ended: [bool; 2],
    /// The sequence numbers of offset 0, forward and backward.
    starts: [Option<u32>; 2],
    /// The server was remembered.
    noted: bool,
    /// Memory held, in bytes and roughly: of pieces that wait, or what the session said.
    held: usize,
}

impl Connection {
    /// A stream of which nothing but its ends is known. Where its beginning was not captured, the higher port is taken for the client's.
    pub(super) fn new(key: StreamKey, stream: Stream, whole: bool) -> Self {
        let guess = key.transport == Transport::Udp || stream.forward.port() >= stream.backward.port();
        Connection {
            key,
            stream,
            whole,
            client_is_forward: whole || guess,
            state: State::Unknown { held: Vec::new(), first: [Vec::new(), Vec::new()] },
            counts: [Counts::default(); 2],
            ended: [false; 2],
            starts: [None; 2],
            noted: false,
            held: 0,
        }
    }

    /// Memory held, in bytes and roughly.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Gives up what waits.
    pub(super) fn relieve<O: Output>(&mut self, at: Moment, shop: &mut Shop<O>) {
        if let State::Unknown { .. } = &self.state {
            self.recognise(true, shop);
        }
        self.call(Call::Relieve, at, shop);
    }

    /// Offset 0 of a direction has this sequence number.
    pub(super) fn starts_at(&mut self, dir: Dir, seq: u32) {
        let [forward, backward] = &mut self.starts;
        *(if dir == Dir::Forward { forward } else { backward }) = Some(seq);
    }

    /// Whether both directions ended.
    pub(super) fn is_over(&self) -> bool {
        self.ended.iter().all(|e| *e)
    }

    /// Tells the output what became of a recognised stream.
    pub(super) fn tell_over<O: Output>(&self, shop: &mut Shop<O>) {
        let State::Known { protocol, session } = &self.state else { return };
        let Some(tables) = shop.setup.tables.get(*protocol) else { return };
        shop.out.stream_over(&StreamOver {
            key: self.key,
            ends: self.ends(),
            protocol: tables.protocol().name(),
            service: session.service(),
            counts: self.counts,
            learned: session.learned(),
        });
    }

    /// Takes the next piece.
    pub(super) fn take<O: Output>(&mut self, piece: Piece<'_>, at: Moment, shop: &mut Shop<O>) {
        if let Piece::End(dir, _) = piece {
            let [forward, backward] = &mut self.ended;
            *(if dir == Dir::Forward { forward } else { backward }) = true;
        }
        match &mut self.state {
            State::Foreign => {}
            State::Known { .. } => self.hand_on(piece, at, shop),
            State::Unknown { held, first } => {
                self.held += hold(held, first, piece, at, self.key.transport);
                let over = self.ended.iter().all(|e| *e);
                self.recognise(over, shop);
            }
        }
    }

    fn ends(&self) -> Ends {
        match self.client_is_forward {
            true => Ends { client: self.stream.forward, server: self.stream.backward },
            false => Ends { client: self.stream.backward, server: self.stream.forward },
        }
    }

    fn side(&self, dir: Dir) -> Side {
        if (dir == Dir::Forward) == self.client_is_forward { Side::Client } else { Side::Server }
    }

    /// Asks the protocols whose stream this is; once it is known, all that was held goes to its session.
    fn recognise<O: Output>(&mut self, over: bool, shop: &mut Shop<O>) {
        let State::Unknown { held, first } = &self.state else { return };
        let [forward, backward] = first;
        let (client, server) = if self.client_is_forward { (forward, backward) } else { (backward, forward) };
        let full = |look: &[u8]| self.key.transport == Transport::Tcp && look.len() >= LOOK;
        let last = over || full(client) || full(server) || held.len() >= WAITING_PIECES || self.held > WAITING_BYTES;
        let ends = self.ends();
        let known = shop.known(ends);
        let opening = Opening { client, server, ends, whole: self.whole, last, known };
        let mut verdict = (Verdict::No, 0);
        let forced = forced_protocol(&opening, self.key.transport, shop);
        for (i, tables) in shop.setup.tables.iter().enumerate() {
            let protocol = tables.protocol();
            let said = match (forced, self.key.transport) {
                (Some(wanted), _) if wanted == i => Verdict::Yes { swapped: false },
                (Some(_), _) => Verdict::No,
                (None, Transport::Tcp) => protocol.recognise_tcp(&opening, tables),
                (None, Transport::Udp) => protocol.recognise_udp(&opening, tables),
            };
            match said {
                Verdict::Yes { .. } => {
                    verdict = (said, i);
                    break;
                }
                Verdict::Maybe => verdict = (Verdict::Maybe, i),
                Verdict::No => {}
            }
        }
        match verdict {
            (Verdict::Yes { swapped }, protocol) => self.enter(protocol, swapped, shop),
            (Verdict::Maybe, _) if !last => {}
            _ if client.is_empty() && server.is_empty() && !over => {}
            _ => {
                self.state = State::Foreign;
                self.held = 0;
            }
        }
    }

    fn enter<O: Output>(&mut self, protocol: usize, swapped: bool, shop: &mut Shop<O>) {
        if swapped {
            self.client_is_forward = !self.client_is_forward;
        }
        let Some(tables) = shop.setup.tables.get(protocol) else { return };
        let ends = self.ends();
        let service = shop.known(ends).filter(|k| k.protocol == tables.protocol().name()).and_then(|k| k.service);
        let start = Start { ends, transport: self.key.transport, whole: self.whole, service };
        let session = tables.protocol().session(&start, tables.get());
        shop.summary.streams += 1;
        let before = std::mem::replace(&mut self.state, State::Known { protocol, session });
        let State::Unknown { held, .. } = before else { return };
        for piece in held {
            match &piece.what {
                HeldWhat::Bytes(bytes) => self.hand_on(Piece::Data(piece.dir, piece.offset, bytes), piece.at, shop),
                HeldWhat::Gap(len) => self.hand_on(Piece::Gap(piece.dir, piece.offset, *len), piece.at, shop),
                HeldWhat::Note(note) => self.hand_on(Piece::Note(piece.dir, *note), piece.at, shop),
                HeldWhat::End(how) => self.hand_on(Piece::End(piece.dir, *how), piece.at, shop),
            }
        }
    }

    fn hand_on<O: Output>(&mut self, piece: Piece<'_>, at: Moment, shop: &mut Shop<O>) {
        self.call(Call::Piece(piece), at, shop);
    }

    /// One call of the session, with all that is lent for it.
    fn call<O: Output>(&mut self, call: Call<'_>, at: Moment, shop: &mut Shop<O>) {
        let ends = self.ends();
        let dir = match &call {
            Call::Piece(piece) => piece.dir(),
            Call::Relieve => Dir::Forward,
        };
        let side = self.side(dir);
        let [forward, backward] = self.starts;
        let sequences = if self.client_is_forward { [forward, backward] } else { [backward, forward] };
        let State::Known { protocol, session } = &mut self.state else { return };
        let (Some(tables), Some(evaluator)) = (shop.setup.tables.get(*protocol), shop.evaluators.get_mut(*protocol))
        else {
            return;
        };
        let outlines = shop.out.wants_outlines();
        let mut desk = Desk {
            out: &mut shop.out,
            summary: &mut shop.summary,
            key: self.key,
            ends,
            protocol: tables.protocol().name(),
            counts: &mut self.counts,
        };
        if let Call::Piece(Piece::Data(_, offset, bytes)) = call {
            desk.payload(side, bytes.len() as u64);
            if session.is_clear() {
                // The number of a datagram is no offset.
                desk.plaintext(side, if self.key.transport == Transport::Tcp { offset } else { 0 }, bytes);
            }
        }
        let mut context = Context {
            tables: tables.get(),
            evaluator,
            tree: &mut shop.tree,
            outline: outlines.then_some(&mut shop.outline),
            settings: shop.setup.settings.of(tables),
            sequences,
            options: &shop.setup.options,
            emit: &mut desk,
        };
        match call {
            Call::Piece(Piece::Data(_, offset, bytes)) => {
                if self.key.transport == Transport::Tcp {
                    session.data(side, offset, bytes, at, &mut context);
                } else {
                    session.datagram(side, bytes, offset, at, &mut context);
                    if offset > 0 {
                        desk.cut_datagram(side, at, session.service(), (bytes.len() as u64, offset));
                    }
                }
                if !self.noted && self.whole && session.service() != "unknown" {
                    self.noted = true;
                    let service = session.service().to_string();
                    note_server(&mut shop.servers, ends.server, tables.protocol().name(), service);
                }
            }
            Call::Piece(Piece::Gap(_, offset, len)) => session.gap(side, offset, len, at, &mut context),
            Call::Piece(Piece::Note(_, note)) => desk.note(side, at, session.service(), note),
            Call::Piece(Piece::End(_, how)) => {
                session.end(side, at, &mut context);
                if self.key.transport == Transport::Tcp {
                    desk.stream_end(side, at, session.service(), how);
                } else if how == End::Evicted {
                    desk.too_many(side, at, session.service());
                }
            }
            Call::Relieve => session.relieve(at, &mut context),
        }
        self.held = session.held();
    }
}

/// What a session is called for.
#[derive(Clone, Copy)]
enum Call<'a> {
    /// The next piece of its stream.
    Piece(Piece<'a>),
    /// Room is needed.
    Relieve,
}

/// Remembers what a server speaks; where it offers more than one service, which one is not known of the next connection.
fn note_server(
    servers: &mut HashMap<SocketAddr, (&'static str, Option<String>)>,
    at: SocketAddr,
    protocol: &'static str,
    service: String,
) {
    let room = servers.len() < KNOWN_SERVERS;
    match servers.get_mut(&at) {
        Some((_, known)) if known.as_ref() != Some(&service) => *known = None,
        Some(_) => {}
        None if room => {
            servers.insert(at, (protocol, Some(service)));
        }
        None => {}
    }
}

/// The protocol somebody asked for by port.
fn forced_protocol<O: Output>(opening: &Opening<'_>, transport: Transport, shop: &Shop<O>) -> Option<usize> {
    let ports = [opening.ends.client.port(), opening.ends.server.port()];
    let rule = shop.setup.decode_as.iter().find(|d| d.transport == transport && ports.contains(&d.port))?;
    shop.setup.tables.iter().position(|t| t.protocol().name() == rule.protocol)
}

/// Keeps a piece; what it costs.
fn hold(held: &mut Vec<Held>, first: &mut [Vec<u8>; 2], piece: Piece<'_>, at: Moment, transport: Transport) -> usize {
    let [forward, backward] = first;
    let dir = piece.dir();
    let (offset, what) = match piece {
        Piece::Data(dir, offset, bytes) => {
            let look = if dir == Dir::Forward { forward } else { backward };
            // Of a stream all that comes is looked at, of datagrams the latest one, and whole: it is known by its end, too.
            if transport == Transport::Udp {
                look.clear();
            }
            let room = if transport == Transport::Tcp { LOOK.saturating_sub(look.len()) } else { bytes.len() };
            look.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or(bytes));
            held.push(Held { dir, offset, what: HeldWhat::Bytes(bytes.to_vec()), at });
            return OVERHEAD + bytes.len();
        }
        Piece::Gap(_, offset, len) => (offset, HeldWhat::Gap(len)),
        Piece::Note(_, note) => (0, HeldWhat::Note(note)),
        Piece::End(_, how) => (0, HeldWhat::End(how)),
    };
    held.push(Held { dir, offset, what, at });
    OVERHEAD
}
