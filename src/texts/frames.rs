//! Writes the pieces of a text as TCP segments over IPv6, in a pcapng.

use std::io;
use std::net::{IpAddr, SocketAddr};

use etherparse::PacketBuilder;

use crate::capture::{Frame, PcapngWriter};
use crate::proto::{TextEnds, TextPiece};
use crate::session::{Ends, Side};

/// LINKTYPE_RAW: an IP packet, and nothing before it.
const RAW_IP: u16 = 101;
const HOP_LIMIT: u8 = 64;
const WINDOW: u16 = u16::MAX;

/// Makes frames, and keeps them until they are taken.
#[derive(Default)]
pub(super) struct FrameWriter {
    writer: Option<PcapngWriter<Vec<u8>>>,
    /// How many of the written bytes were taken.
    taken: usize,
    packet: Vec<u8>,
    connection: Option<Connection>,
    /// What went wrong.
    failed: Option<io::Error>,
}

/// The connection of the last piece.
struct Connection {
    ends: TextEnds,
    /// The sequence numbers of what client and server send next.
    next: [u32; 2],
    /// Whether nothing was written of it yet.
    begins: bool,
}

impl FrameWriter {
    /// Whether everything was taken.
    pub(super) fn is_empty(&self) -> bool {
        self.failed.is_none() && self.writer.as_ref().is_none_or(|w| w.inner().len() <= self.taken)
    }

    /// Moves what was written into a buffer.
    pub(super) fn take(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        // A capture has a header even if a text has no piece.
        if self.writer.is_none() {
            self.writer = Some(PcapngWriter::new(Vec::new())?);
        }
        let Some(writer) = &mut self.writer else { return Ok(0) };
        let rest = writer.inner().get(self.taken..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(rest) {
            *to = *from;
        }
        self.taken += count;
        if self.taken >= writer.inner().len() {
            writer.inner_mut().clear();
            self.taken = 0;
        }
        Ok(count)
    }

    /// Writes a piece.
    pub(super) fn write(&mut self, piece: &TextPiece) {
        if let Err(error) = self.write_frame(piece) {
            self.failed.get_or_insert(error);
        }
    }

    fn write_frame(&mut self, piece: &TextPiece) -> io::Result<()> {
        let known = self.connection.take().filter(|c| c.ends == piece.ends && !piece.begins);
        let mut connection =
            known.unwrap_or(Connection { ends: piece.ends, next: [1; 2], begins: true });
        self.make_packet(piece, &mut connection)?;
        self.connection = Some(connection);
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self.writer.insert(PcapngWriter::new(Vec::new())?),
        };
        let wire_len = u32::try_from(self.packet.len()).unwrap_or(u32::MAX);
        let data = &self.packet;
        writer.frame(&Frame { number: 0, time: piece.time, link: RAW_IP, data, wire_len })
    }

    fn make_packet(&mut self, piece: &TextPiece, connection: &mut Connection) -> io::Result<()> {
        let Ends { client, server } = piece.ends.ends();
        let (src, dst) =
            if piece.from == Side::Client { (client, server) } else { (server, client) };
        // The first piece opens the connection, so that its sides are certain.
        let opens = std::mem::take(&mut connection.begins);
        let acknowledged = *piece.from.other().of(&mut connection.next);
        let own = piece.from.of(&mut connection.next);
        *own = own.wrapping_add(piece.lost as u32);
        let sequence = own.wrapping_sub(u32::from(opens));
        *own = own.wrapping_add(piece.bytes.len() as u32);
        let ip = PacketBuilder::ipv6(octets(src), octets(dst), HOP_LIMIT);
        let tcp = ip.tcp(src.port(), dst.port(), sequence, WINDOW);
        let tcp = if opens { tcp.syn() } else { tcp };
        let tcp = if opens && piece.from == Side::Client { tcp } else { tcp.ack(acknowledged) };
        self.packet.clear();
        tcp.write(&mut self.packet, &piece.bytes).map_err(io::Error::other)
    }
}

fn octets(end: SocketAddr) -> [u8; 16] {
    match end.ip() {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}
