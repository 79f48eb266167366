//! Recognises a link by its content, on any port: a length that fits and a correct Adler-32.
//!
//! The checksum is proof enough: its 32 bits agree by chance once in four thousand million
//! datagrams.

use super::packet::{CommandNumbers, HEADER, Header, LinkHeader, Numbering, control, cursor};
use crate::proto::{Opening, Verdict};
use crate::session::Transport;

/// The usual ports of servers.
const PORTS: [u16; 3] = [7000, 7002, 7003];
/// Ports of the AuthServer, which speaks another protocol.
pub const AUTH_PORTS: [u16; 3] = [2104, 2106, 2108];
/// How many places are searched for a packet in a stream whose beginning was not captured.
const PLACES: usize = 1024;

/// Judges a conversation of datagrams by the latest ones.
pub fn udp(opening: &Opening<'_>) -> Verdict {
    let ports = [opening.ends.client.port(), opening.ends.server.port()];
    let usual = PORTS.iter().any(|p| ports.contains(p));
    let sides = [opening.client, opening.server];
    if !sides.iter().any(|d| proven(d) || usual && shaped(d)) {
        return Verdict::No;
    }
    Verdict::Yes { swapped: swapped(opening, Transport::Udp) }
}

/// Judges a stream by its first bytes.
pub fn tcp(opening: &Opening<'_>) -> Verdict {
    let sides = [opening.client, opening.server];
    if sides.iter().any(|s| begins(s) || !opening.whole && joins(s)) {
        return Verdict::Yes { swapped: !opening.whole && swapped(opening, Transport::Tcp) };
    }
    if is_auth_server(opening) {
        return Verdict::Yes { swapped: false };
    }
    let may = |side: &[u8]| match Header::parse(side) {
        None => true,
        Some(header) => {
            header.possible() && side.len() < header.padded() && header.padded() <= 1 << 16
        }
    };
    if opening.last || !sides.iter().any(|s| may(s)) { Verdict::No } else { Verdict::Maybe }
}

/// Whether a TCP connection goes to an AuthServer: it has its port, and a first length that fits
/// one of its packets.
pub fn is_auth_server(opening: &Opening<'_>) -> bool {
    let lengths = |side: &[u8]| match side {
        [low, high, ..] => (3..=8192).contains(&u16::from_le_bytes([*low, *high])),
        _ => true,
    };
    let some = !opening.client.is_empty() || !opening.server.is_empty();
    AUTH_PORTS.contains(&opening.ends.server.port())
        && some
        && lengths(opening.client)
        && lengths(opening.server)
}

/// Whether a datagram's checksum is right, whatever its length says.
fn proven(datagram: &[u8]) -> bool {
    let Some(header) = Header::parse(datagram) else { return false };
    header.possible() && header.proven_end(datagram).is_some() && datagram.len() > HEADER
}

/// Whether a datagram states a length that a packet may have, and is not longer.
fn shaped(datagram: &[u8]) -> bool {
    Header::parse(datagram)
        .is_some_and(|h| h.possible() && h.bits < 1 << 16 && datagram.len() <= h.padded())
}

fn begins(stream: &[u8]) -> bool {
    let Some(header) = Header::parse(stream).filter(|h| h.possible()) else { return false };
    [header.bytes(), header.padded()]
        .into_iter()
        .any(|end| stream.get(..end).is_some_and(|whole| header.sums(whole)))
}

fn joins(stream: &[u8]) -> bool {
    (0..PLACES.min(stream.len())).any(|at| stream.get(at..).is_some_and(begins))
}

/// Whether the end that was taken for the client is the server. The end that sends CONNECT is the
/// client, the end that answers it the server; without either, the higher port is the client's.
fn swapped(opening: &Opening<'_>, transport: Transport) -> bool {
    match (role(opening.client, transport), role(opening.server, transport)) {
        (Some(client), None) => !client,
        (None, Some(client)) => client,
        (Some(a), Some(b)) if a != b => !a,
        _ => opening.ends.client.port() < opening.ends.server.port(),
    }
}

/// Whether a side's first packet says that it is the client (`true`) or the server.
fn role(bytes: &[u8], transport: Transport) -> Option<bool> {
    let header = Header::parse(bytes).filter(|h| h.possible() && h.bytes() <= bytes.len())?;
    let bits = header.bits as usize;
    let linked = LinkHeader::parse(bytes, bits)
        .filter(|l| transport == Transport::Udp && l.sane && l.sequence < 1 << 16);
    let places = [Some((HEADER * 8, true)), linked.map(|l| (l.end, l.is_early()))];
    places.into_iter().flatten().find_map(|(from, early)| {
        let at = cursor(bytes, bits, from);
        let exact = |numbering| CommandNumbers::parse(at, numbering).filter(|c| c.exact)?.control;
        match (exact(Numbering::Old), exact(Numbering::New)) {
            (Some(control::CONNECT), _) if early => Some(true),
            (Some(control::CLIENT_ACK), _) | (_, Some(control::CLIENT_ACK)) => Some(true),
            (Some(control::SERVER_ACK | control::SERVER_ACK_ACK), _)
            | (_, Some(control::SERVER_ACK | control::SERVER_ACK_ACK)) => Some(false),
            _ => None,
        }
    })
}
