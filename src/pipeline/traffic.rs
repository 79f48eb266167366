//! Encoded messages as traffic in a capture: over TCP or UDP, encrypted where their protocol does
//! that.
//!
//! It knows how a capture is written, and no JSON.

use std::collections::HashMap;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

use crate::capture::{ConversationWriter, MadeBytes, MadeEnd, Time};
use crate::proto::{AllSettings, EncodedMessage, LazyTables, Seal};
use crate::session::{Side, Transport};

/// Writes messages into a capture.
pub struct TrafficWriter<W: Write> {
    writer: ConversationWriter<W>,
    /// What encrypts each connection, by client and server.
    seals: HashMap<[SocketAddr; 2], Option<Box<dyn Seal>>>,
}

/// Where a message goes, and when.
#[derive(Clone, Copy, Debug)]
pub struct MessageRoute<'a> {
    /// When it is sent.
    pub time: Time,
    /// Over what.
    pub transport: Transport,
    /// The client and the server.
    pub ends: [SocketAddr; 2],
    /// Who sends it.
    pub side: Side,
    /// The service, whose key encrypts the connection.
    pub service: &'a str,
}

impl<W: Write> TrafficWriter<W> {
    /// Writes into a capture, at most `segment` bytes of a stream in one frame.
    ///
    /// # Errors
    /// Writing failed.
    pub fn new(out: W, segment: usize) -> io::Result<Self> {
        let writer = ConversationWriter::new(out, segment)?;
        Ok(TrafficWriter { writer, seals: HashMap::new() })
    }

    /// Opens a TCP connection of a client and a server.
    ///
    /// # Errors
    /// Writing failed, or the connection is open.
    pub fn open(
        &mut self,
        ends: [SocketAddr; 2],
        time: Time,
        round_trip: Duration,
    ) -> io::Result<()> {
        self.seals.remove(&ends);
        self.writer.open(ends, time, round_trip)
    }

    /// A TCP connection of a client and a server began before the capture, unless it is known.
    pub fn join(&mut self, ends: [SocketAddr; 2]) {
        self.writer.join(ends);
    }

    /// A TCP connection stays open at the capture's end.
    pub fn leave_open(&mut self, ends: [SocketAddr; 2]) {
        self.writer.leave_open(ends);
    }

    /// Writes a message. The text is what is wrong with it.
    ///
    /// # Errors
    /// Writing failed.
    pub fn message(
        &mut self,
        lazy: &LazyTables,
        settings: &AllSettings,
        route: MessageRoute<'_>,
        message: EncodedMessage,
    ) -> io::Result<Result<(), String>> {
        let [client, server] = route.ends;
        let seal =
            self.seals.entry(route.ends).or_insert_with(|| lazy.protocol().seal(route.service));
        let bytes = match seal {
            None => message.bytes,
            Some(seal) => {
                match seal.seal(settings.of(lazy), route.side, &message.name, message.bytes) {
                    Ok(bytes) => bytes,
                    Err(text) => return Ok(Err(text)),
                }
            }
        };
        let from_client = route.side == Side::Client;
        let ends = if from_client { [client, server] } else { [server, client] };
        let made = MadeBytes { time: route.time, ends, from_client, bytes: &bytes };
        let written = match route.transport {
            Transport::Tcp => self.writer.stream(made),
            Transport::Udp => self.writer.datagram(made),
        };
        said(written)
    }

    /// A side of a TCP connection closes it, or resets it. The text is what is wrong with that.
    ///
    /// # Errors
    /// Writing failed.
    pub fn close(
        &mut self,
        ends: [SocketAddr; 2],
        side: Side,
        time: Time,
        end: MadeEnd,
    ) -> io::Result<Result<(), String>> {
        said(self.writer.close(ends, side == Side::Client, time, end))
    }

    /// Ends the capture. Connections that are open are closed before, if `end` says how.
    ///
    /// # Errors
    /// Writing failed.
    pub fn finish(self, end: Option<MadeEnd>) -> io::Result<W> {
        self.writer.finish(end)
    }
}

/// What cannot be put into a frame is a mistake of the message, not of the file.
fn said(written: io::Result<()>) -> io::Result<Result<(), String>> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(Err(error.to_string())),
        written => written.map(Ok),
    }
}
