//! Messages into a capture.

use std::fmt;
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use super::decoder::Decoder;
use super::encoder::Encoder;
use super::error::{ErrorKind, LibraryError};
use crate::capture::{MadeEnd, Time};
use crate::pipeline::{MessageRoute, TrafficWriter};
use crate::session::{Side, Transport};
use crate::table::Json;

/// The most bytes of a stream in one frame.
const SEGMENT: usize = 1460;

/// Writes a capture of messages that were never sent, as a capture on the server would have them:
/// whole TCP connections, encrypted as their handshakes say if the decoder has the service's key.
/// Times are since 1970, and go forward.
///
/// ```
/// use std::time::Duration;
///
/// let client = "192.0.2.1:50001".parse()?;
/// let server = "198.51.100.1:14617".parse()?;
/// let mut capture = moulsniff::Decoder::new().capture_writer(Vec::new())?;
/// let second = Duration::from_secs;
/// capture.open(second(1_800_000_000), client, server, Duration::from_millis(40))?;
/// let connect = r#"{"protocol": "moul", "service": "gatekeeper", "from": "client", "message": "Cli2Srv_Connect", "fields": {"y": ""}}"#;
/// capture.message(second(1_800_000_001), client, server, connect)?;
/// capture.close(second(1_800_000_002), client, server, moulsniff::Side::Client)?;
/// let bytes = capture.finish()?;
/// assert_eq!(bytes.get(..4), Some(&[0x0a, 0x0d, 0x0d, 0x0a][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct CaptureWriter<W: Write> {
    encoder: Encoder,
    traffic: TrafficWriter<W>,
}

impl<W: Write> fmt::Debug for CaptureWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaptureWriter").finish_non_exhaustive()
    }
}

impl Decoder {
    /// A writer of captures with the same tables and keys.
    ///
    /// ```
    /// let writer = moulsniff::Decoder::new().keys("keys/shard.keys")?.capture_writer(Vec::new());
    /// assert!(writer.is_ok());
    /// # Ok::<(), moulsniff::Error>(())
    /// ```
    ///
    /// # Errors
    /// Something that was given to the decoder is wrong, or writing failed.
    pub fn capture_writer<W: Write>(&self, out: W) -> Result<CaptureWriter<W>, LibraryError> {
        let encoder = self.encoder()?;
        let traffic = TrafficWriter::new(out, SEGMENT).map_err(written)?;
        Ok(CaptureWriter { encoder, traffic })
    }
}

impl<W: Write> CaptureWriter<W> {
    /// A client connects to a server over TCP. The client acknowledges what the server sends a
    /// round trip later. A connection that is not opened begins with its first message.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let (client, server) = ("192.0.2.1:50001".parse()?, "198.51.100.1:14617".parse()?);
    /// let mut capture = moulsniff::Decoder::new().capture_writer(Vec::new())?;
    /// capture.open(Duration::from_secs(1), client, server, Duration::from_millis(40))?;
    /// assert!(capture.open(Duration::from_secs(2), client, server, Duration::ZERO).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Writing failed, or the connection is open.
    pub fn open(
        &mut self,
        at: Duration,
        client: SocketAddr,
        server: SocketAddr,
        round_trip: Duration,
    ) -> Result<(), LibraryError> {
        self.traffic.open([client, server], time(at), round_trip).map_err(written)
    }

    /// Writes a message between a client and a server: a record's `protocol`, `service`, `from`,
    /// `message` and `fields`.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let (client, server) = ("192.0.2.1:50001".parse()?, "198.51.100.1:14617".parse()?);
    /// let mut capture = moulsniff::Decoder::new().capture_writer(Vec::new())?;
    /// let ping = r#"{"protocol": "moul", "service": "game", "from": "client", "message": "Cli2Game_PingRequest", "fields": {"ping_time_ms": 7}}"#;
    /// capture.message(Duration::from_secs(1), client, server, ping)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Encoder::encode`], and writing may fail.
    pub fn message(
        &mut self,
        at: Duration,
        client: SocketAddr,
        server: SocketAddr,
        json: &str,
    ) -> Result<(), LibraryError> {
        let Encoder { tables, settings, encoder } = &mut self.encoder;
        let json = Json::parse(json)?;
        let wrong = |text: String| LibraryError::new(ErrorKind::Json, text);
        let Some(message) = encoder.encode(tables, &json, None)? else {
            return Err(wrong("is no message".into()));
        };
        let Some(lazy) = tables.get(message.protocol) else { return Ok(()) };
        let side = match json.text_of(Json::ROOT, "from") {
            Some("server") => Side::Server,
            _ => Side::Client,
        };
        let transport = match json.text_of(Json::ROOT, "transport") {
            Some("tcp") => Transport::Tcp,
            Some("udp") => Transport::Udp,
            _ => lazy.protocol().transport(),
        };
        let service = json.text_of(Json::ROOT, "service").unwrap_or("");
        let route =
            MessageRoute { time: time(at), transport, ends: [client, server], side, service };
        self.traffic.message(lazy, settings, route, message).map_err(written)?.map_err(wrong)
    }

    /// A side closes the connection.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let (client, server) = ("192.0.2.1:50001".parse()?, "198.51.100.1:14617".parse()?);
    /// let mut capture = moulsniff::Decoder::new().capture_writer(Vec::new())?;
    /// capture.open(Duration::from_secs(1), client, server, Duration::ZERO)?;
    /// capture.close(Duration::from_secs(2), client, server, moulsniff::Side::Server)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Writing failed, or the side cannot close it now.
    pub fn close(
        &mut self,
        at: Duration,
        client: SocketAddr,
        server: SocketAddr,
        side: Side,
    ) -> Result<(), LibraryError> {
        let closed = self.traffic.close([client, server], side, time(at), MadeEnd::Fin);
        closed.map_err(written)?.map_err(|text| LibraryError::new(ErrorKind::Given, text))
    }

    /// Ends the capture. Connections that were not closed go on behind its end.
    ///
    /// ```
    /// let capture = moulsniff::Decoder::new().capture_writer(Vec::new())?.finish()?;
    /// assert_eq!(moulsniff::Decoder::new().bytes(capture)?.count(), 0);
    /// # Ok::<(), moulsniff::Error>(())
    /// ```
    ///
    /// # Errors
    /// Writing failed.
    pub fn finish(self) -> Result<W, LibraryError> {
        self.traffic.finish(None).map_err(written)
    }
}

fn time(at: Duration) -> Time {
    let seconds = i64::try_from(at.as_secs()).unwrap_or(i64::MAX);
    Time { seconds, nanos: at.subsec_nanos(), digits: 9 }
}

fn written(error: std::io::Error) -> LibraryError {
    LibraryError::new(ErrorKind::File, error.to_string())
}
