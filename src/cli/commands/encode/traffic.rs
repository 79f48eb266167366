//! Messages as traffic in a capture: connections and datagrams between the ends that records name,
//! at their times.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use jiff::Timestamp;

use crate::capture::{ConversationWriter, MadeBytes, MadeEnd, Time};
use crate::cli::error::CliError;
use crate::cli::files;
use crate::output_file::{Access, Inputs, OutputFile};
use crate::proto::{AllSettings, EncodedMessage, LazyTables, Protocol, Seal};
use crate::session::{Side, Transport};
use crate::table::Json;

/// The port of a client that no record names.
const CLIENT_PORT: u16 = 50_000;

/// Seconds since 1970 of the first message, if no record has a time: the first of January 2024.
const FIRST_SECOND: i64 = 1_704_067_200;

/// Nanoseconds between messages without a time.
const STEP: u32 = 1_000_000;

/// A capture that is written.
pub(super) struct Traffic<'a> {
    all: &'a [LazyTables],
    settings: &'a AllSettings,
    writer: ConversationWriter<OutputFile>,
    name: String,
    /// What encrypts each connection, by client and server.
    seals: HashMap<[SocketAddr; 2], Option<Box<dyn Seal>>>,
    time: Time,
}

/// Where a message goes.
struct Way {
    transport: Transport,
    client: SocketAddr,
    server: SocketAddr,
    side: Side,
}

impl<'a> Traffic<'a> {
    pub(super) fn new(
        all: &'a [LazyTables],
        settings: &'a AllSettings,
        path: &Path,
        inputs: &Inputs,
        segment: usize,
    ) -> Result<Traffic<'a>, CliError> {
        let file = files::create(path, Access::Owner, inputs)?;
        let name = files::name(path);
        let writer = ConversationWriter::new(file, segment);
        let writer = writer.map_err(|error| CliError::File(name.clone(), error))?;
        let time = Time { seconds: FIRST_SECOND, nanos: 0, digits: 9 };
        Ok(Traffic { all, settings, writer, name, seals: HashMap::new(), time })
    }

    /// Writes a message. The text is what is wrong with it.
    pub(super) fn message(
        &mut self,
        json: &Json<'_>,
        message: EncodedMessage,
        side: Option<Side>,
    ) -> Result<Result<(), String>, CliError> {
        let Some(lazy) = self.all.get(message.protocol) else { return Ok(Ok(())) };
        let way = match way(json, lazy.protocol(), side) {
            Ok(way) => way,
            Err(text) => return Ok(Err(text)),
        };
        self.time = match json.text_of(Json::ROOT, "time").map(str::parse::<Timestamp>) {
            None => later(self.time),
            Some(Ok(time)) => {
                let nanos = u32::try_from(time.subsec_nanosecond()).unwrap_or(0);
                Time { seconds: time.as_second(), nanos, digits: 9 }
            }
            Some(Err(_)) => return Ok(Err("time: is no time such as 2024-01-01T00:00:00Z".into())),
        };
        let service = json.text_of(Json::ROOT, "service").unwrap_or("");
        let seal = self
            .seals
            .entry([way.client, way.server])
            .or_insert_with(|| lazy.protocol().seal(service, self.settings.of(lazy)));
        let bytes = match seal {
            None => message.bytes,
            Some(seal) => match seal.seal(way.side, &message.name, message.bytes) {
                Ok(bytes) => bytes,
                Err(text) => return Ok(Err(text)),
            },
        };
        let from_client = way.side == Side::Client;
        let ends = if from_client { [way.client, way.server] } else { [way.server, way.client] };
        let made = MadeBytes { time: self.time, ends, from_client, bytes: &bytes };
        let written = match way.transport {
            Transport::Tcp => self.writer.stream(made),
            Transport::Udp => self.writer.datagram(made),
        };
        written.map(Ok).map_err(|error| CliError::File(self.name.clone(), error))
    }

    /// Ends all connections and gives the file its name.
    pub(super) fn finish(self, end: MadeEnd) -> Result<(), CliError> {
        let name = self.name;
        let fail = |error| CliError::File(name.clone(), error);
        self.writer.finish(end).and_then(OutputFile::commit).map_err(fail)
    }
}

fn later(time: Time) -> Time {
    match time.nanos + STEP {
        nanos @ 0..1_000_000_000 => Time { nanos, ..time },
        nanos => Time { seconds: time.seconds + 1, nanos: nanos - 1_000_000_000, ..time },
    }
}

/// The ends that a record names. Without them, a client and a server on the loopback network.
fn way(json: &Json<'_>, protocol: &dyn Protocol, side: Option<Side>) -> Result<Way, String> {
    let root = Json::ROOT;
    let transport = match json.text_of(root, "transport") {
        Some("tcp") => Transport::Tcp,
        Some("udp") => Transport::Udp,
        None => protocol.transport(),
        Some(_) => return Err("transport: is neither tcp nor udp".into()),
    };
    let side = match json.text_of(root, "from") {
        Some("client") => Side::Client,
        Some("server") => Side::Server,
        None => side.unwrap_or(Side::Client),
        Some(_) => return Err("from: is neither client nor server".into()),
    };
    let end = |key: &str, port: u16| match json.text_of(root, key) {
        None => Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)),
        Some(text) => match text.parse() {
            Ok(end) => Ok(end),
            Err(_) => Err(format!("{key}: is no address with a port, such as 127.0.0.1:14617")),
        },
    };
    let usual = protocol.usual_ports().iter().find(|(of, _)| *of == transport);
    let port = usual.map_or(1, |(_, port)| *port);
    let (src_port, dst_port) =
        if side == Side::Client { (CLIENT_PORT, port) } else { (port, CLIENT_PORT) };
    let (src, dst) = (end("src", src_port)?, end("dst", dst_port)?);
    let (client, server) = if side == Side::Client { (src, dst) } else { (dst, src) };
    Ok(Way { transport, client, server, side })
}
