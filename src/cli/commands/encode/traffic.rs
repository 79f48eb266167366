//! Messages as traffic in a capture: connections and datagrams between the ends that records name,
//! at their times.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::capture::{MadeEnd, Time};
use crate::cli::error::CliError;
use crate::cli::files;
use crate::output_file::{Access, Inputs, OutputFile};
use crate::pipeline::{MessageRoute, TrafficWriter};
use crate::proto::{AllSettings, EncodedMessage, LazyTables, Protocol};
use crate::remark;
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
    settings: AllSettings,
    writer: TrafficWriter<OutputFile>,
    path: PathBuf,
    inputs: Inputs,
    /// The files of the keys that were made.
    keys: Vec<(OutputFile, PathBuf)>,
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
        settings: AllSettings,
        path: &Path,
        inputs: Inputs,
        segment: usize,
    ) -> Result<Traffic<'a>, CliError> {
        let file = files::create(path, Access::Owner, &inputs)?;
        let writer = TrafficWriter::new(file, segment);
        let writer = writer.map_err(|error| CliError::File(files::name(path), error))?;
        let time = Time { seconds: FIRST_SECOND, nanos: 0, digits: 9 };
        let (path, keys) = (path.to_path_buf(), Vec::new());
        Ok(Traffic { all, settings, writer, path, inputs, keys, time })
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
        if let Err(text) = self.take_time(json) {
            return Ok(Err(text));
        }
        self.make_key(lazy, &message)?;
        let Way { transport, client, server, side } = way;
        let service = json.text_of(Json::ROOT, "service").unwrap_or("");
        let route =
            MessageRoute { time: self.time, transport, ends: [client, server], side, service };
        let written = self.writer.message(lazy, &self.settings, route, message);
        written.map_err(|error| CliError::File(files::name(&self.path), error))
    }

    /// Makes a key where a message begins an encryption and no key was given. If the capture goes
    /// into a pipe or a device, no key is made, and the connection is written in clear.
    fn make_key(&mut self, lazy: &LazyTables, message: &EncodedMessage) -> Result<(), CliError> {
        let Some(secrets) = lazy.protocol().secrets() else { return Ok(()) };
        let is_stream = std::fs::metadata(&self.path).is_ok_and(|facts| !facts.is_file());
        if is_stream || !secrets.is_wanted(message, self.settings.of(lazy)) {
            return Ok(());
        }
        let mut path = self.path.clone().into_os_string();
        path.push(".keys");
        let path = PathBuf::from(path);
        let mut file = files::create(&path, Access::Owner, &self.inputs)?;
        let fail = |error| CliError::File(files::name(&path), error);
        let mut random = [0; 128];
        getrandom::fill(&mut random).map_err(|error| fail(io::Error::other(error.to_string())))?;
        let settings = self.settings.named_mut(lazy.protocol().name());
        if let Some(text) = settings.and_then(|settings| secrets.make(&random, settings)) {
            file.write_all(&text).map_err(fail)?;
            self.keys.push((file, path));
        }
        Ok(())
    }

    /// Handles a record that is no message. The end of a connection is written, too, if there was
    /// one. A connection whose first messages were searched for began before the capture.
    pub(super) fn event(&mut self, json: &Json<'_>) -> Result<Result<(), String>, CliError> {
        let text = |key| json.text_of(Json::ROOT, key);
        let protocol = text("protocol").unwrap_or("");
        let of = self.all.iter().map(LazyTables::protocol).find(|of| of.name() == protocol);
        let Some(of) = of else { return Ok(Ok(())) };
        let end = match (text("event"), text("end")) {
            (Some("stream_end"), Some("fin")) => MadeEnd::Fin,
            (Some("stream_end"), Some("reset")) => MadeEnd::Reset,
            (Some("resync"), _) => {
                let joined = way(json, of, None);
                return Ok(joined.map(|way| self.writer.join([way.client, way.server])));
            }
            (Some("stream_end"), Some(_)) => {
                let left = way(json, of, None);
                return Ok(left.map(|way| self.writer.leave_open([way.client, way.server])));
            }
            _ => return Ok(Ok(())),
        };
        let way = way(json, of, None).and_then(|way| self.take_time(json).map(|()| way));
        let way = match way {
            Ok(way) => way,
            Err(text) => return Ok(Err(text)),
        };
        let closed = self.writer.close([way.client, way.server], way.side, self.time, end);
        closed.map_err(|error| CliError::File(files::name(&self.path), error))
    }

    /// Goes on to the time of a record, or a little further if it has none.
    fn take_time(&mut self, json: &Json<'_>) -> Result<(), String> {
        self.time = match json.text_of(Json::ROOT, "time").map(str::parse::<Timestamp>) {
            None => later(self.time),
            Some(Ok(time)) => {
                let nanos = u32::try_from(time.subsec_nanosecond()).unwrap_or(0);
                Time { seconds: time.as_second(), nanos, digits: 9 }
            }
            Some(Err(_)) => return Err("time: is no time such as 2024-01-01T00:00:00Z".into()),
        };
        Ok(())
    }

    /// Ends all connections and gives the files their names.
    pub(super) fn finish(self, end: MadeEnd) -> Result<(), CliError> {
        let name = files::name(&self.path);
        let written = self.writer.finish(Some(end)).and_then(OutputFile::commit);
        written.map_err(|error| CliError::File(name.clone(), error))?;
        for (file, path) in self.keys {
            let keys = files::name(&path);
            file.commit().map_err(|error| CliError::File(keys.clone(), error))?;
            remark::say(format_args!(
                "moulsniff: {keys}: a key was made; {name} is read with --keys {keys}"
            ));
        }
        Ok(())
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
