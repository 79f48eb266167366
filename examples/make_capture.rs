//! Makes the capture of an evening that nobody played, of a script that everybody can read:
//! cargo run --example make_capture -- examples/evening keys/evening.keys OUT.pcapng
//!
//! The script is `script.jsonl` in that folder. A line of it has one of these:
//! - `define` and `value`, `file` or `noise`: what `$NAME` stands for in later lines. A file of the
//!   folder and noise (so many bytes) are written as hex. `$now` is the time, `$key` and `$seed`
//!   are what a handshake needs.
//! - `opens`: a client connects to a service. Its messages follow with this name in `on`.
//! - `client` or `server`: who sends the message that is named. The server sends the same to the
//!   connections in `forwarded`.
//! - `pings_every_s`: the client pings, and the server answers.
//! - `closes`: who closes the connection.

use std::collections::HashMap;
use std::error::Error;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use moulsniff::{CaptureWriter, Decoder, Side};
use serde_json::{Map, Value, json};

/// How long the server takes to answer a ping, and to forward a message.
const SERVER_TAKES: Duration = Duration::from_millis(1);

/// What happens on a connection.
enum Step {
    Open { client: SocketAddr, round_trip: Duration },
    Message { service: String, side: Side, name: String, fields: Value },
    Close(Side),
}

/// The script, as it is read.
#[derive(Default)]
struct Script {
    folder: PathBuf,
    /// Seconds since 1970 when the day of the script began.
    midnight: u64,
    server: Option<SocketAddr>,
    defined: HashMap<String, Value>,
    /// The service and the client's address of each connection.
    connections: HashMap<String, (String, SocketAddr)>,
    /// Steps with their times and connections.
    steps: Vec<(Duration, String, Step)>,
}

impl Script {
    fn read(folder: &Path) -> Result<Script, Box<dyn Error>> {
        let mut script = Script { folder: folder.into(), ..Script::default() };
        let text = std::fs::read_to_string(folder.join("script.jsonl"))?;
        for (number, line) in text.lines().enumerate() {
            let read = serde_json::from_str(line).map_err(Box::from);
            let added = read.and_then(|line| script.add(&line));
            added.map_err(|error| format!("line {}: {error}", number + 1))?;
        }
        // What was forwarded and what is said again and again stands before its time.
        script.steps.sort_by_key(|(at, ..)| *at);
        Ok(script)
    }

    fn add(&mut self, line: &Map<String, Value>) -> Result<(), Box<dyn Error>> {
        let text = |key: &str| line.get(key).and_then(Value::as_str);
        let number = |key: &str| line.get(key).and_then(Value::as_u64);
        if let Some(midnight) = number("midnight") {
            self.midnight = midnight;
            self.server = Some(text("server").ok_or("no server")?.parse()?);
        }
        if let Some(name) = text("define") {
            let value = match (line.get("value"), text("file"), number("noise")) {
                (Some(value), ..) => self.resolve(value, Duration::ZERO),
                (_, Some(file), _) => hex(std::fs::read(self.folder.join(file))?.into_iter()),
                (.., Some(length)) => hex(noise(1).take(length as usize)),
                _ => return Err("nothing is defined".into()),
            };
            self.defined.insert(format!("${name}"), value);
        }
        let Some(at) = text("at") else { return Ok(()) };
        let at = self.time(at)?;
        if let Some(name) = text("opens") {
            let client = text("client").ok_or("no client")?.parse()?;
            let service = text("service").ok_or("no service")?.to_string();
            let round_trip = Duration::from_millis(number("round_trip_ms").unwrap_or(0));
            let count = self.connections.len() as u32 + 1;
            // A number below the key's, whose last byte is its highest.
            self.defined.insert("$key".into(), hex(noise(count).take(63).chain([1])));
            self.defined.insert("$seed".into(), hex(noise(!count).take(7)));
            self.connections.insert(name.into(), (service, client));
            self.steps.push((at, name.into(), Step::Open { client, round_trip }));
            return Ok(());
        }
        let on = text("on").ok_or("no connection")?;
        if let Some(side) = text("closes") {
            let side = if side == "server" { Side::Server } else { Side::Client };
            self.steps.push((at, on.into(), Step::Close(side)));
        } else if let Some(seconds) = number("pings_every_s") {
            let until = self.time(text("until").ok_or("no end of the pings")?)?;
            self.add_pings(on, at, until, Duration::from_secs(seconds.max(1)))?;
        } else {
            let fields = self.resolve(line.get("fields").unwrap_or(&Value::Null), at);
            let (side, name) = match (text("client"), text("server")) {
                (Some(name), _) => (Side::Client, name),
                (_, Some(name)) => (Side::Server, name),
                _ => return Err("nothing is said".into()),
            };
            for to in line.get("forwarded").and_then(Value::as_array).into_iter().flatten() {
                let to = to.as_str().ok_or("no connection")?;
                let name = name.replace("Cli2Game", "Game2Cli");
                self.say(at + SERVER_TAKES, to, Side::Server, &name, fields.clone())?;
            }
            self.say(at, on, side, name, fields)?;
        }
        Ok(())
    }

    fn add_pings(
        &mut self,
        on: &str,
        mut at: Duration,
        until: Duration,
        every: Duration,
    ) -> Result<(), Box<dyn Error>> {
        let (service, _) = self.connections.get(on).ok_or("no such connection")?;
        let is_auth = service == "auth";
        let word = if is_auth { "Auth" } else { "Game" };
        for count in 1_u32.. {
            if at >= until {
                break;
            }
            let ms = (at.as_millis() % 86_400_000) as u32;
            let mut fields = json!({ "ping_time_ms": ms });
            if is_auth {
                fields = json!({ "ping_time_ms": ms, "trans_id": 1000 + count, "payload": "" });
            }
            let (asks, answers) =
                (format!("Cli2{word}_PingRequest"), format!("{word}2Cli_PingReply"));
            self.say(at, on, Side::Client, &asks, fields.clone())?;
            self.say(at + SERVER_TAKES, on, Side::Server, &answers, fields)?;
            at += every;
        }
        Ok(())
    }

    fn say(
        &mut self,
        at: Duration,
        on: &str,
        side: Side,
        name: &str,
        fields: Value,
    ) -> Result<(), Box<dyn Error>> {
        let (service, _) = self.connections.get(on).ok_or_else(|| format!("{on} is not open"))?;
        let step = Step::Message { service: service.clone(), side, name: name.into(), fields };
        self.steps.push((at, on.into(), step));
        Ok(())
    }

    /// A time of the day, such as 20:15:00.250.
    fn time(&self, clock: &str) -> Result<Duration, Box<dyn Error>> {
        let mut seconds = 0.0;
        for part in clock.split(':') {
            seconds = seconds * 60.0 + part.parse::<f64>()?;
        }
        let day = Duration::from_millis((seconds * 1000.0).round() as u64);
        Ok(Duration::from_secs(self.midnight) + day)
    }

    /// A value with all that is defined in its place.
    fn resolve(&self, value: &Value, at: Duration) -> Value {
        match value {
            Value::String(text) if text == "$now" => {
                json!({ "seconds": at.as_secs(), "microseconds": at.subsec_micros() })
            }
            Value::String(text) => self.defined.get(text).unwrap_or(value).clone(),
            Value::Array(all) => all.iter().map(|value| self.resolve(value, at)).collect(),
            Value::Object(all) => {
                let all = all.iter().map(|(key, value)| (key.clone(), self.resolve(value, at)));
                Value::Object(all.collect())
            }
            _ => value.clone(),
        }
    }

    fn write(&self, to: &mut CaptureWriter<Vec<u8>>) -> Result<(), Box<dyn Error>> {
        let server = self.server.ok_or("the script names no server")?;
        for (at, on, step) in &self.steps {
            let (_, client) = self.connections.get(on).ok_or("no such connection")?;
            let done = match step {
                Step::Open { client, round_trip } => to.open(*at, *client, server, *round_trip),
                Step::Close(side) => to.close(*at, *client, server, *side),
                Step::Message { service, side, name, fields } => {
                    let from = if *side == Side::Server { "server" } else { "client" };
                    let record = json!({
                        "protocol": "moul", "service": service, "from": from, "message": name, "fields": fields,
                    });
                    let said = to.message(*at, *client, server, &record.to_string());
                    said.map_err(|error| format!("{on}: {name}: {error}"))?;
                    Ok(())
                }
            };
            done.map_err(|error| format!("{on}: {error}"))?;
        }
        Ok(())
    }
}

fn hex(bytes: impl Iterator<Item = u8>) -> Value {
    bytes.map(|byte| format!("{byte:02x}")).collect::<String>().into()
}

/// Bytes that look random and are always the same.
fn noise(mut state: u32) -> impl Iterator<Item = u8> {
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
}

fn make(folder: &str, keys: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let script = Script::read(Path::new(folder))?;
    let decoder =
        Decoder::new().keys(keys)?.file("sdl", Path::new(folder).join("Neighborhood.sdl"))?;
    let mut capture = decoder.capture_writer(Vec::new())?;
    script.write(&mut capture)?;
    Ok(capture.finish()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, folder, keys, out] = args.as_slice() else {
        eprintln!("usage: make_capture FOLDER KEYS OUT");
        std::process::exit(2);
    };
    std::fs::write(out, make(folder, keys)?)?;
    Ok(())
}

#[test]
fn the_capture_is_made_of_the_script() -> Result<(), Box<dyn Error>> {
    let made = make("examples/evening", "keys/evening.keys")?;
    let is_same = made == std::fs::read("captures/moul/evening.pcapng")?;
    assert!(is_same, "make_capture makes another captures/moul/evening.pcapng");
    Ok(())
}
