//! Writes captures of traffic that was never sent: datagrams, and whole TCP connections with
//! handshake, acknowledgements, segments and end.
//!
//! It knows addresses and bytes, and no protocol above TCP and UDP.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use etherparse::{PacketBuilder, PacketBuilderStep, TcpOptionElement};

use super::{Frame, PcapngWriter, Time};

/// The link type of Ethernet.
const ETHERNET: u16 = 1;

/// How many hops a packet may take.
const HOPS: u8 = 64;

/// Nanoseconds of a second.
const SECOND: u32 = 1_000_000_000;

/// The first sequence numbers of client and server.
const FIRST: [u32; 2] = [1_000_000, 2_000_000];

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MadeEnd {
    /// A side closes it.
    Fin,
    /// A side resets it.
    Reset,
}

/// Bytes that one side sends to the other.
#[derive(Clone, Copy, Debug)]
pub struct MadeBytes<'a> {
    /// When.
    pub time: Time,
    /// Who sends, and who receives.
    pub ends: [SocketAddr; 2],
    /// Whether the client sends.
    pub from_client: bool,
    /// What.
    pub bytes: &'a [u8],
}

/// Writes made traffic. The frames are as a capture on the server has them: the server answers at
/// once, the client a round trip later.
pub struct ConversationWriter<W: Write> {
    out: PcapngWriter<W>,
    /// The most bytes of one segment.
    segment: usize,
    /// The connections, by client and server.
    open: HashMap<[SocketAddr; 2], Connection>,
    /// In the order in which they began.
    order: Vec<[SocketAddr; 2]>,
    /// Acknowledgements that clients will send, by their times and the order in which they were
    /// due, with the acknowledged number.
    due: BTreeMap<(Time, u64), ([SocketAddr; 2], u32)>,
    count: u64,
    /// The time of the last frame.
    last: Time,
    frame: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Connection {
    /// The next sequence numbers of client and server.
    next: [u32; 2],
    /// What the client acknowledged; nothing before it completed the handshake.
    acknowledged: Option<u32>,
    round_trip: Duration,
    /// It is not closed at the end.
    left_open: bool,
    /// Whether client and server closed it.
    closed: [bool; 2],
}

impl Connection {
    fn new(next: [u32; 2], round_trip: Duration) -> Connection {
        Connection { next, acknowledged: None, round_trip, left_open: false, closed: [false; 2] }
    }
}

/// A segment's flags.
#[derive(Clone, Copy, Default)]
struct Flags {
    syn: bool,
    ack: bool,
    fin: bool,
    rst: bool,
    push: bool,
}

impl Flags {
    const ACK: Flags = Flags { syn: false, ack: true, fin: false, rst: false, push: false };
}

impl<W: Write> ConversationWriter<W> {
    /// Writes into a capture, at most `segment` bytes of a stream in one frame.
    ///
    /// # Errors
    /// Writing failed.
    pub fn new(out: W, segment: usize) -> io::Result<Self> {
        Ok(ConversationWriter {
            out: PcapngWriter::new(out)?,
            segment: segment.max(1),
            open: HashMap::new(),
            order: Vec::new(),
            due: BTreeMap::new(),
            count: 0,
            last: Time::default(),
            frame: Vec::new(),
        })
    }

    /// Writes a datagram.
    ///
    /// # Errors
    /// Writing failed, or the datagram is too long.
    pub fn datagram(&mut self, of: MadeBytes<'_>) -> io::Result<()> {
        self.acknowledge_until(of.time)?;
        let [from, to] = of.ends;
        let builder = ip(from.ip(), to.ip())?.udp(from.port(), to.port());
        self.frame.clear();
        builder.write(&mut self.frame, of.bytes).map_err(invalid)?;
        self.write(of.time)
    }

    /// Opens a connection of a client and a server. The client completes the handshake a round trip
    /// later.
    ///
    /// # Errors
    /// Writing failed, or the connection is open.
    pub fn open(
        &mut self,
        key: [SocketAddr; 2],
        time: Time,
        round_trip: Duration,
    ) -> io::Result<()> {
        self.acknowledge_until(time)?;
        match self.open.get(&key) {
            Some(connection) if connection.closed != [true; 2] => {
                return Err(invalid(format!("{} to {}: is open", key[0], key[1])));
            }
            Some(_) => {}
            None => self.order.push(key),
        }
        let [client, server] = FIRST;
        let mut connection = Connection::new(FIRST, round_trip);
        self.segment(key, 0, connection, Flags { syn: true, ..Flags::default() }, &[], time)?;
        connection.next = [client + 1, server];
        let flags = Flags { syn: true, ack: true, ..Flags::default() };
        self.segment(key, 1, connection, flags, &[], time)?;
        connection.next = [client + 1, server + 1];
        self.open.insert(key, connection);
        self.acknowledge_later(key, connection, time)
    }

    /// A connection of a client and a server that began before the capture. Nothing is written if it
    /// is known.
    pub fn join(&mut self, key: [SocketAddr; 2]) {
        if self.open.contains_key(&key) {
            return;
        }
        let next = FIRST.map(|first| first + 1);
        let acknowledged = next.last().copied();
        let connection = Connection { acknowledged, ..Connection::new(next, Duration::ZERO) };
        self.open.insert(key, connection);
        self.order.push(key);
    }

    /// A connection stays open at the capture's end, unless its ends are connected once more.
    pub fn leave_open(&mut self, key: [SocketAddr; 2]) {
        if let Some(connection) = self.open.get_mut(&key) {
            connection.left_open = true;
        }
    }

    /// Writes bytes of a connection, which begins with the first of them if it is not open.
    ///
    /// # Errors
    /// Writing failed, or this side cannot send now.
    pub fn stream(&mut self, of: MadeBytes<'_>) -> io::Result<()> {
        let [from, to] = of.ends;
        let (key, side) = if of.from_client { ([from, to], 0) } else { ([to, from], 1) };
        self.acknowledge_until(of.time)?;
        if self.open.get(&key).is_none_or(|connection| connection.closed == [true; 2]) {
            self.open(key, of.time, Duration::ZERO)?;
        }
        for part in of.bytes.chunks(self.segment) {
            let flags = Flags { ack: true, push: true, ..Flags::default() };
            self.send(key, side, flags, part, of.time)?;
        }
        Ok(())
    }

    /// A side closes a connection, or resets it. Nothing is written if it is closed already.
    ///
    /// # Errors
    /// Writing failed, or this side cannot send now.
    pub fn close(
        &mut self,
        key: [SocketAddr; 2],
        from_client: bool,
        time: Time,
        end: MadeEnd,
    ) -> io::Result<()> {
        self.acknowledge_until(time)?;
        let side = usize::from(!from_client);
        let closed = self.open.get(&key).and_then(|connection| connection.closed.get(side));
        if closed != Some(&false) {
            return Ok(());
        }
        let reset = end == MadeEnd::Reset;
        let flags = Flags { ack: true, fin: !reset, rst: reset, ..Flags::default() };
        self.send(key, side, flags, &[], time)
    }

    /// Ends the capture. Connections that are open are closed before, if `end` says how; else the
    /// capture ends while they go on.
    ///
    /// # Errors
    /// Writing failed.
    pub fn finish(mut self, end: Option<MadeEnd>) -> io::Result<W> {
        let late = Time { seconds: i64::MAX, ..Time::default() };
        if end.is_some() {
            self.acknowledge_until(late)?;
        }
        for key in std::mem::take(&mut self.order) {
            for from_client in [true, false] {
                let open = self.open.get(&key).filter(|connection| !connection.left_open);
                let closed = open.map_or([true; 2], |connection| connection.closed);
                if let Some(end) = end
                    && closed.get(usize::from(!from_client)) == Some(&false)
                {
                    self.close(key, from_client, self.last, end)?;
                    self.acknowledge_until(late)?;
                }
            }
        }
        self.out.flush()?;
        Ok(self.out.into_inner())
    }

    /// Writes a segment that the other side acknowledges.
    fn send(
        &mut self,
        key: [SocketAddr; 2],
        side: usize,
        flags: Flags,
        bytes: &[u8],
        time: Time,
    ) -> io::Result<()> {
        let [client, server] = key;
        let wrong = |what: &str| Err(invalid(format!("{client} to {server}: {what}")));
        let Some(mut connection) = self.open.get(&key).copied() else {
            return wrong("is not open");
        };
        if connection.acknowledged.is_none() {
            return wrong("the handshake takes longer");
        }
        if connection.closed.get(side) != Some(&false) {
            return wrong("who closed it cannot send");
        }
        self.segment(key, side, connection, flags, bytes, time)?;
        if let Some(next) = connection.next.get_mut(side) {
            *next = next.wrapping_add(bytes.len() as u32 + u32::from(flags.fin));
        }
        if flags.rst {
            connection.closed = [true; 2];
        } else if flags.fin
            && let Some(closed) = connection.closed.get_mut(side)
        {
            *closed = true;
        }
        self.open.insert(key, connection);
        if flags.rst {
            return Ok(());
        }
        match side {
            0 => self.segment(key, 1, connection, Flags::ACK, &[], time),
            _ => self.acknowledge_later(key, connection, time),
        }
    }

    /// The client acknowledges what the server sent until now, a round trip later.
    fn acknowledge_later(
        &mut self,
        key: [SocketAddr; 2],
        connection: Connection,
        time: Time,
    ) -> io::Result<()> {
        let [_, next] = connection.next;
        self.count += 1;
        self.due.insert((later(time, connection.round_trip), self.count), (key, next));
        self.acknowledge_until(time)
    }

    /// Writes the acknowledgements that are due.
    fn acknowledge_until(&mut self, time: Time) -> io::Result<()> {
        while let Some(entry) = self.due.first_entry()
            && entry.key().0 <= time
        {
            let ((at, _), (key, number)) = entry.remove_entry();
            let Some(connection) = self.open.get_mut(&key) else { continue };
            connection.acknowledged = Some(number);
            let connection = *connection;
            self.segment(key, 0, connection, Flags::ACK, &[], at)?;
        }
        Ok(())
    }

    /// Writes a segment of a side (0 client, 1 server).
    fn segment(
        &mut self,
        [client, server]: [SocketAddr; 2],
        side: usize,
        connection: Connection,
        flags: Flags,
        bytes: &[u8],
        time: Time,
    ) -> io::Result<()> {
        let (from, to) = if side == 0 { (client, server) } else { (server, client) };
        let [of_client, of_server] = connection.next;
        let (own, other) = if side == 0 {
            (of_client, connection.acknowledged.unwrap_or(0))
        } else {
            (of_server, of_client)
        };
        let mut builder = ip(from.ip(), to.ip())?.tcp(from.port(), to.port(), own, u16::MAX);
        if flags.ack {
            builder = builder.ack(other);
        }
        if flags.syn {
            let most = TcpOptionElement::MaximumSegmentSize(1460);
            builder = builder.syn().options(&[most]).map_err(invalid)?;
        }
        if flags.fin {
            builder = builder.fin();
        }
        if flags.rst {
            builder = builder.rst();
        }
        if flags.push {
            builder = builder.psh();
        }
        self.frame.clear();
        builder.write(&mut self.frame, bytes).map_err(invalid)?;
        self.write(time)
    }

    fn write(&mut self, time: Time) -> io::Result<()> {
        self.last = self.last.max(time);
        let wire_len = self.frame.len() as u32;
        let frame = Frame { number: 0, time, link: ETHERNET, data: &self.frame, wire_len };
        self.out.frame(&frame)
    }
}

/// A time that is later by a duration.
fn later(time: Time, by: Duration) -> Time {
    let nanos = time.nanos + by.subsec_nanos();
    let seconds = i64::try_from(by.as_secs()).unwrap_or(i64::MAX);
    Time {
        seconds: time.seconds.saturating_add(seconds).saturating_add((nanos / SECOND).into()),
        nanos: nanos % SECOND,
        ..time
    }
}

/// The headers up to IP. The Ethernet addresses are made up.
fn ip(from: IpAddr, to: IpAddr) -> io::Result<PacketBuilderStep<etherparse::IpHeaders>> {
    let ethernet = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => Ok(ethernet.ipv4(from.octets(), to.octets(), HOPS)),
        (IpAddr::V6(from), IpAddr::V6(to)) => Ok(ethernet.ipv6(from.octets(), to.octets(), HOPS)),
        _ => Err(invalid("expected both addresses to be of IPv4 or both of IPv6")),
    }
}

fn invalid(error: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error.to_string())
}
