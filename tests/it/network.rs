//! Network and server are told apart: a capture at the client's end, with a slow network; one at
//! the server's end; and one with a slow server.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;

use crate::common::scratch;

const CAPTURE: &str = "captures/moul/kind_game.pcap";

fn json(arguments: &[&str]) -> Vec<Value> {
    let mut program = crate::common::program();
    program.current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null()).args(arguments);
    let output =
        program.args(["--keys", "keys/dirtsand.ini", "--json", "--quiet"]).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A frame of the capture, and what a copy may change of its time.
struct Packet {
    from_server: bool,
    /// It carries payload of the server.
    reply: bool,
    /// It is the first of its direction, which opens the connection.
    opening: bool,
}

/// A copy of the first connection whose frames are later: by the sum of what `delay` (in ms) gives
/// for them and those before.
fn later(
    name: &str,
    keep: impl Fn(&Packet) -> bool,
    delay: impl Fn(&Packet, Option<&Packet>) -> u32,
) -> PathBuf {
    let all = std::fs::read(CAPTURE).unwrap();
    let word = |at: usize| u32::from_le_bytes(all[at..at + 4].try_into().unwrap());
    assert_eq!((word(0), word(20)), (0xa1b2_c3d4, 1), "little-endian microseconds, Ethernet");
    let mut out = all[..24].to_vec();
    let mut at = 24;
    let mut shift = 0u64;
    let mut before: Option<Packet> = None;
    let mut client = None;
    while at < all.len() {
        let length = word(at + 8) as usize;
        let frame = &all[at + 16..at + 16 + length];
        let port = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
        let [from, to] = [port(34), port(36)];
        let from_server = from == 14617;
        let own = if from_server { to } else { from };
        if *client.get_or_insert(own) == own {
            let total = usize::from(port(16));
            let header = usize::from(frame[46] >> 4) * 4;
            let packet = Packet {
                from_server,
                reply: from_server && total > 20 + header,
                opening: frame[47] & 2 != 0,
            };
            shift += u64::from(delay(&packet, before.as_ref())) * 1000;
            let micros = u64::from(word(at)) * 1_000_000 + u64::from(word(at + 4)) + shift;
            if keep(&packet) {
                out.extend(((micros / 1_000_000) as u32).to_le_bytes());
                out.extend(((micros % 1_000_000) as u32).to_le_bytes());
                out.extend(&all[at + 8..at + 16 + length]);
            }
            before = Some(packet);
        }
        at += 16 + length;
    }
    let path = scratch(format!("network-{name}.pcap"));
    std::fs::write(&path, out).unwrap();
    path
}

fn between(value: &Value, low: f64, high: f64) {
    let number = value.as_f64().unwrap_or_else(|| panic!("{value} is no number"));
    assert!(low <= number && number <= high, "{number} is not in {low}..{high}");
}

/// The only session of a capture, and the statistics of its join request.
fn told(path: &std::path::Path) -> (Value, Value) {
    let path = path.to_str().unwrap();
    let mut sessions = json(&["sessions", path]);
    assert_eq!(sessions.len(), 1);
    let stats = json(&["stats", path]).remove(0);
    assert_eq!(
        stats["bytes"]["by_stream"]["tcp:0"]["round_trip_ms"],
        sessions[0]["streams"][0]["round_trip_ms"]
    );
    (sessions.remove(0), stats["replies"]["Cli2Game_JoinAgeRequest"].clone())
}

#[test]
fn a_far_server_seen_from_the_client_is_the_network() {
    let turn = |now: &Packet, before: Option<&Packet>| {
        now.from_server && before.is_some_and(|b| !b.from_server)
    };
    let path = later("client", |_| true, |now, before| if turn(now, before) { 40 } else { 0 });
    let (session, join) = told(&path);
    let trip = &session["streams"][0]["round_trip_ms"];
    between(&trip["server"], 40.0, 41.0);
    between(&trip["client"], 0.0, 1.0);
    assert!(trip.get("server_measured_by").is_none());
    between(&session["network_ms"]["p50"], 40.0, 41.0);
    between(&join["latency_ms"]["max"], 44.0, 46.0);
    between(&join["slowest_network_ms"], 40.0, 41.0);
    let columns = ["--columns", "message,elapsed_ms,network_ms", "-Y", "network_ms > 39"];
    let mut program = crate::common::program();
    program.args(columns).arg(&path).args(["--keys", "keys/dirtsand.ini", "-q", "--threads", "3"]);
    let text = String::from_utf8(program.output().unwrap().stdout).unwrap();
    assert_eq!(text.lines().filter(|line| line.contains("JoinAgeReply")).count(), 1, "{text}");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_far_client_seen_from_the_server_waits_longer_than_the_server_takes() {
    let turn = |now: &Packet, before: Option<&Packet>| {
        !now.from_server && before.is_some_and(|b| b.from_server)
    };
    let path = later("server", |_| true, |now, before| if turn(now, before) { 40 } else { 0 });
    let (session, join) = told(&path);
    between(&session["streams"][0]["round_trip_ms"]["client"], 40.0, 41.0);
    between(&session["streams"][0]["round_trip_ms"]["server"], 0.0, 1.0);
    between(&session["network_ms"]["max"], 0.0, 1.0);
    between(&join["latency_ms"]["max"], 4.0, 6.0);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_slow_server_is_not_the_network() {
    let path = later("slow", |_| true, |now, _| if now.reply { 300 } else { 0 });
    let (session, join) = told(&path);
    between(&session["streams"][0]["round_trip_ms"]["server"], 0.0, 1.0);
    between(&join["latency_ms"]["max"], 300.0, 306.0);
    between(&join["slowest_network_ms"], 0.0, 1.0);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn without_the_opening_acknowledgements_measure_and_one_side_alone_measures_nothing() {
    let path = later("middle", |packet| !packet.opening, |_, _| 0);
    let (session, _) = told(&path);
    assert_eq!(session["streams"][0]["round_trip_ms"]["server_measured_by"], "acks");
    std::fs::remove_file(path).unwrap();

    let path = later("one-sided", |packet| !packet.from_server, |_, _| 0);
    let sessions = json(&["sessions", path.to_str().unwrap()]);
    assert!(sessions.iter().all(|session| session.get("network_ms").is_none()), "{sessions:?}");
    assert!(sessions[0]["streams"][0].get("round_trip_ms").is_none(), "{}", sessions[0]);
    std::fs::remove_file(path).unwrap();
}
