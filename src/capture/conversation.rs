//! Writes captures of traffic that was never sent: datagrams, and whole TCP connections with
//! handshake, acknowledgements, segments and end.
//!
//! It knows addresses and bytes, and no protocol above TCP and UDP.

use std::collections::HashMap;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};

use etherparse::{PacketBuilder, PacketBuilderStep, TcpOptionElement};

use super::{Frame, PcapngWriter, Time};

/// The link type of Ethernet.
const ETHERNET: u16 = 1;

/// How many hops a packet may take.
const HOPS: u8 = 64;

/// The first sequence numbers of client and server.
const FIRST: [u32; 2] = [1_000_000, 2_000_000];

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MadeEnd {
    /// Both sides close it.
    Fin,
    /// The client resets it.
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

/// Writes made traffic.
pub struct ConversationWriter<W: Write> {
    out: PcapngWriter<W>,
    /// The most bytes of one segment.
    segment: usize,
    /// The open connections, by client and server, with their numbers and the time of their last
    /// frame.
    open: HashMap<[SocketAddr; 2], Connection>,
    /// In the order in which they began.
    order: Vec<[SocketAddr; 2]>,
    frame: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Connection {
    /// The next sequence numbers of client and server.
    next: [u32; 2],
    last: Time,
}

/// A segment's flags.
#[derive(Clone, Copy, Default)]
struct Flags {
    syn: bool,
    ack: bool,
    fin: bool,
    rst: bool,
}

impl<W: Write> ConversationWriter<W> {
    /// Writes into a capture, at most `segment` bytes of a stream in one frame.
    ///
    /// # Errors
    /// Writing failed.
    pub fn new(out: W, segment: usize) -> io::Result<Self> {
        let (out, segment) = (PcapngWriter::new(out)?, segment.max(1));
        let (open, order, frame) = (HashMap::new(), Vec::new(), Vec::new());
        Ok(ConversationWriter { out, segment, open, order, frame })
    }

    /// Writes a datagram.
    ///
    /// # Errors
    /// Writing failed, or the datagram is too long.
    pub fn datagram(&mut self, of: MadeBytes<'_>) -> io::Result<()> {
        let [from, to] = of.ends;
        let builder = ip(from.ip(), to.ip())?.udp(from.port(), to.port());
        self.frame.clear();
        builder.write(&mut self.frame, of.bytes).map_err(invalid)?;
        self.write(of.time)
    }

    /// Writes bytes of a connection, which begins with the first of them.
    ///
    /// # Errors
    /// Writing failed.
    pub fn stream(&mut self, of: MadeBytes<'_>) -> io::Result<()> {
        let [from, to] = of.ends;
        let key = if of.from_client { [from, to] } else { [to, from] };
        let side = usize::from(!of.from_client);
        let mut connection = match self.open.get(&key) {
            Some(connection) => *connection,
            None => {
                self.order.push(key);
                self.open(key, of.time)?
            }
        };
        for part in of.bytes.chunks(self.segment) {
            self.segment(
                key,
                side,
                connection,
                Flags { ack: true, ..Flags::default() },
                part,
                of.time,
            )?;
            if let Some(next) = connection.next.get_mut(side) {
                *next = next.wrapping_add(part.len() as u32);
            }
            self.segment(
                key,
                1 - side,
                connection,
                Flags { ack: true, ..Flags::default() },
                &[],
                of.time,
            )?;
        }
        connection.last = of.time;
        self.open.insert(key, connection);
        Ok(())
    }

    /// The three segments that open a connection.
    fn open(&mut self, key: [SocketAddr; 2], time: Time) -> io::Result<Connection> {
        let mut connection = Connection { next: FIRST, last: time };
        let [client, server] = FIRST;
        self.segment(key, 0, connection, Flags { syn: true, ..Flags::default() }, &[], time)?;
        connection.next = [client + 1, server];
        self.segment(
            key,
            1,
            connection,
            Flags { syn: true, ack: true, ..Flags::default() },
            &[],
            time,
        )?;
        connection.next = [client + 1, server + 1];
        self.segment(key, 0, connection, Flags { ack: true, ..Flags::default() }, &[], time)?;
        Ok(connection)
    }

    /// Ends all connections and the capture.
    ///
    /// # Errors
    /// Writing failed.
    pub fn finish(mut self, end: MadeEnd) -> io::Result<W> {
        for key in std::mem::take(&mut self.order) {
            let Some(mut connection) = self.open.get(&key).copied() else { continue };
            let time = connection.last;
            if end == MadeEnd::Reset {
                let flags = Flags { rst: true, ack: true, ..Flags::default() };
                self.segment(key, 0, connection, flags, &[], time)?;
                continue;
            }
            for side in [0, 1] {
                let flags = Flags { fin: true, ack: true, ..Flags::default() };
                self.segment(key, side, connection, flags, &[], time)?;
                if let Some(next) = connection.next.get_mut(side) {
                    *next = next.wrapping_add(1);
                }
            }
            self.segment(key, 0, connection, Flags { ack: true, ..Flags::default() }, &[], time)?;
        }
        self.out.flush()?;
        Ok(self.out.into_inner())
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
        let [own, other] = if side == 0 {
            connection.next
        } else {
            let [client, server] = connection.next;
            [server, client]
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
        if !bytes.is_empty() {
            builder = builder.psh();
        }
        self.frame.clear();
        builder.write(&mut self.frame, bytes).map_err(invalid)?;
        self.write(time)
    }

    fn write(&mut self, time: Time) -> io::Result<()> {
        let wire_len = self.frame.len() as u32;
        let frame = Frame { number: 0, time, link: ETHERNET, data: &self.frame, wire_len };
        self.out.frame(&frame)
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
