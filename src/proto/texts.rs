//! Texts that hold a protocol's traffic: logs that its programs write, packets as people print
//! them. A protocol reads their lines; everything else (files, captures) is done elsewhere.
//!
//! A text knows no addresses, so its connections get made-up ones: see [`TextEnds`].

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::capture::Time;
use crate::session::{Ends, Side};

/// A format of texts.
pub trait TextFormat: Sync {
    /// Whether a text is in this format, by its first bytes. The last line may be cut.
    fn recognise(&self, start: &[u8]) -> bool;
    /// A reader for one text. The name of its file may tell something.
    fn reader(&self, name: &str) -> Box<dyn TextReader>;
}

/// Reads one text, line by line.
pub trait TextReader: Send {
    /// Takes the next line, without its line feed. Hands over what it completes.
    fn line(&mut self, line: &[u8], take: &mut dyn FnMut(TextPiece));
    /// The text ends. Hands over what is left.
    fn end(&mut self, take: &mut dyn FnMut(TextPiece));
}

/// Bytes that one side of a connection sent, as a text tells of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPiece {
    /// The connection.
    pub ends: TextEnds,
    /// Whether it begins here.
    pub begins: bool,
    /// The side that sent the bytes.
    pub from: Side,
    /// When.
    pub time: Time,
    /// How many bytes before them cannot be read.
    pub lost: u64,
    /// The bytes: at most [`MAX_PIECE`].
    pub bytes: Vec<u8>,
}

/// The most bytes in one piece: it has to fit into a packet.
pub const MAX_PIECE: usize = 60_000;

/// The two ends of a connection that a text tells of. Their addresses are of 100::/64, which no
/// host has (RFC 6666), so that a protocol knows its own texts by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextEnds {
    /// The number of the format.
    pub format: u16,
    /// The client's port: the number of the connection in its text.
    pub connection: u16,
    /// The server's port: the service, in the format's own numbers.
    pub service: u16,
}

impl TextEnds {
    /// Both ends.
    pub fn ends(self) -> Ends {
        let end = |host, port| SocketAddr::new(IpAddr::V6(address(self.format, host)), port);
        Ends { client: end(1, self.connection), server: end(2, self.service) }
    }

    /// The service, if two ends are those of a text in this format, and whether the server is at
    /// the client's place.
    pub fn service_of(format: u16, ends: Ends) -> Option<(u16, bool)> {
        let at = |end: SocketAddr, host| end.ip() == IpAddr::V6(address(format, host));
        if at(ends.client, 1) && at(ends.server, 2) {
            Some((ends.server.port(), false))
        } else if at(ends.client, 2) && at(ends.server, 1) {
            Some((ends.client.port(), true))
        } else {
            None
        }
    }
}

fn address(format: u16, host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x100, 0, 0, 0, 0, format, 0, host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_knows_its_ends() {
        let text = TextEnds { format: 7, connection: 3, service: 2 };
        let ends = text.ends();
        assert_eq!(ends.client.to_string(), "[100::7:0:1]:3");
        assert_eq!(TextEnds::service_of(7, ends), Some((2, false)));
        let swapped = Ends { client: ends.server, server: ends.client };
        assert_eq!(TextEnds::service_of(7, swapped), Some((2, true)));
        assert_eq!(TextEnds::service_of(8, ends), None);
    }
}
