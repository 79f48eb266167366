//! The plaintext of streams is what the messages were made of; keys ride in captures and come out
//! again.

use crate::common::{self, scratch};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Output;

use moulsniff::capture::{Capture, Moment};
use moulsniff::flow::{
    Cause, Dir, End, Flow, FlowLimits, FlowSink, Stream, StreamId, TcpOpening, Totals,
};
use rc4::{KeyInit, StreamCipher};
use serde_json::Value;

const CAPTURE: &str = "captures/moul/kind_game.pcap";
const KEYS: [&str; 2] = ["--keys", "keys/dirtsand.ini"];

fn run(words: &[&str]) -> Output {
    let mut command = crate::common::program();
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(words).output().unwrap()
}

fn records(words: &[&str]) -> Vec<Value> {
    let output = run(words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn folder(name: &str) -> PathBuf {
    let dir = scratch(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

fn follow(more: &[&str]) -> Vec<u8> {
    let mut words = vec!["follow", "0", CAPTURE];
    words.extend(KEYS);
    words.extend(more);
    let output = run(&words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn the_plaintext_is_as_long_as_the_stream_and_the_messages_lie_in_it() {
    let all = records(&[CAPTURE, KEYS[0], KEYS[1], "--json", "-q", "-Y", "stream == 0"]);
    for side in ["client", "server"] {
        let plain = follow(&["--raw", "--from", side]);
        let end = all.iter().find(|r| r["event"] == "stream_end" && r["from"] == side).unwrap();
        assert_eq!(plain.len() as u64, end["bytes"]["payload"].as_u64().unwrap(), "{side}");
        // Every message begins with its number.
        for r in all
            .iter()
            .filter(|r| r["from"] == side && r["service"] == "game" && r.get("fields").is_some())
        {
            let at = r["offset"].as_u64().unwrap() as usize;
            let number = r["type"].as_u64().unwrap();
            assert_eq!(u64::from(plain[at]), number & 0xff, "{r}");
        }
    }
}

#[test]
fn secrets_are_overwritten_where_asked() {
    let capture = "captures/intermud3/i3_coffeemud.pcapng";
    let all = records(&[capture, "--json", "-q"]);
    let record = all.iter().find(|r| r["message"] == "auth-mud-reply").unwrap();
    let secret = record["fields"]["session_key"].to_string();
    assert!(secret.len() > 4, "{record}");
    let stream = format!("tcp:{}", record["stream"]);
    let shown = |more: &[&str]| -> Vec<u8> {
        let mut words = vec!["follow", &stream, capture, "--raw", "-q"];
        words.extend(more);
        run(&words).stdout
    };
    let holds = |bytes: &[u8]| bytes.windows(secret.len()).any(|w| w == secret.as_bytes());
    let plain = shown(&[]);
    let hidden = shown(&["--redact"]);
    assert!(holds(&plain) && !holds(&hidden));
    // All of that stream is messages: nothing else changed.
    assert_eq!(plain.len(), hidden.len());
    assert!(plain.iter().zip(&hidden).all(|(p, h)| p == h || *h == b'*'));
}

#[test]
fn both_sides_come_in_order_and_the_dump_names_the_messages() {
    let both = follow(&["--raw"]).len();
    let one_by_one: usize =
        ["client", "server"].iter().map(|s| follow(&["--raw", "--from", s]).len()).sum();
    assert_eq!(both, one_by_one);
    let dump = String::from_utf8(follow(&[])).unwrap();
    assert!(dump.contains("── client ▸ server  ConnectPacket  record 1, "), "{dump}");
    assert!(dump.contains("00000000  "), "{dump}");
    // 16 bytes a line at most, and every byte once.
    let hex: usize = dump
        .lines()
        .filter(|l| !l.starts_with('─'))
        .map(|l| l.split('|').next().unwrap().split_whitespace().count() - 1)
        .sum();
    assert_eq!(hex, both);
}

#[test]
fn a_filter_keeps_the_plaintext_of_its_messages() {
    let filter = "message == Cli2Game_PropagateBuffer";
    let kept = records(&[
        CAPTURE,
        KEYS[0],
        KEYS[1],
        "--json",
        "-q",
        "-Y",
        &format!("{filter} and stream == 0"),
    ]);
    let length: u64 = kept.iter().map(|r| r["length"].as_u64().unwrap()).sum();
    assert!(length > 0);
    assert_eq!(follow(&["--raw", "-Y", filter]).len() as u64, length);
}

#[test]
fn all_streams_go_into_files_that_sort() {
    let dir = folder("follow-all");
    let output =
        run(&["follow", "--all", "--raw", "-o", dir.to_str().unwrap(), CAPTURE, KEYS[0], KEYS[1]]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(
        std::fs::read(dir.join("tcp-00000-client.bin")).unwrap(),
        follow(&["--raw", "--from", "client"])
    );
    assert_eq!(
        std::fs::read(dir.join("tcp-00000-server.bin")).unwrap(),
        follow(&["--raw", "--from", "server"])
    );
}

#[test]
fn without_a_key_only_the_handshake_is_plaintext_and_that_is_said() {
    let output = run(&["follow", "tcp:0", CAPTURE, "--raw", "--from", "client"]);
    let whole = follow(&["--raw", "--from", "client"]);
    assert!(!output.stdout.is_empty() && output.stdout.len() < whole.len());
    assert!(whole.starts_with(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stderr).contains("not opened by any key"));
}

#[test]
fn a_stream_that_is_not_there_is_one_clear_line() {
    for word in ["99", "udp:0", "sctp:1", "x"] {
        let output = run(&["follow", word, CAPTURE]);
        assert_eq!(output.status.code(), Some(2), "{word}");
        assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1, "{word}");
    }
}

#[test]
fn injected_keys_open_the_capture_and_stripping_takes_them_out() {
    let dir = folder("inject");
    let path = |name: &str| dir.join(name).to_str().unwrap().to_string();
    let with = path("with.pcapng");
    let without = path("without.pcapng");
    let inject = |more: &[&str]| {
        let mut words = vec!["keys", "inject", CAPTURE, "-o", &with];
        words.extend(KEYS);
        words.extend(more);
        run(&words)
    };
    let numbers = |words: &[&str]| -> Vec<Value> {
        records(words)
            .into_iter()
            .filter(|r| r.get("event").is_none())
            .map(|r| r["fields"].clone())
            .collect()
    };
    let expected = numbers(&[CAPTURE, KEYS[0], KEYS[1], "--json", "-q"]);
    for more in [&[][..], &["--private"]] {
        let output = inject(more);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stderr).contains("PRIVATE"), !more.is_empty());
        let bytes = std::fs::read(&with).unwrap();
        let private = bytes.windows(9).any(|w| w == b"\nprivate ");
        assert_eq!(private, !more.is_empty(), "long-term keys only where they are asked for");
        assert_eq!(numbers(&[&with, "--json", "-q"]), expected);
        assert!(run(&["keys", "strip", &with, "-o", &without]).status.success());
        assert!(numbers(&[&without, "--json", "-q"]).len() < expected.len());
    }
    let output = run(&["keys", "inject", CAPTURE, "-o", &path("none.pcapng")]);
    assert_eq!(output.status.code(), Some(1));
    assert!(!dir.join("none.pcapng").exists(), "nothing is written where nothing opens");
    assert_eq!(run(&["keys", "strip", &with, "-o", &with]).status.code(), Some(2));
}

/// What both directions of every stream carried, as it was on the wire: put in order by the flow,
/// looked at by no session.
#[derive(Default)]
struct Wire(BTreeMap<(&'static str, u32), Both>);

/// What the sides of a stream sent, and their ports.
type Both = ([Vec<u8>; 2], [u16; 2]);

impl Wire {
    fn of(capture: &str) -> Wire {
        let mut capture =
            Capture::open(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(capture)).unwrap();
        let mut flow = Flow::new(FlowLimits::default());
        let mut wire = Wire::default();
        while let Some(frame) = capture.next_frame().unwrap() {
            flow.frame(&frame, &mut wire);
        }
        flow.finish(&mut wire);
        wire
    }

    fn add(&mut self, stream: (&'static str, u32), dir: Dir, bytes: &[u8]) {
        self.0.entry(stream).or_default().0[usize::from(dir == Dir::Backward)]
            .extend_from_slice(bytes);
    }
}

impl FlowSink for Wire {
    fn tcp_open(&mut self, stream: &Stream, _: TcpOpening, _: Moment) {
        self.0.entry(("tcp", stream.id.0)).or_default().1 =
            [stream.forward.port(), stream.backward.port()];
    }
    fn tcp_data(&mut self, stream: StreamId, dir: Dir, _: u64, bytes: &[u8], _: Moment) {
        self.add(("tcp", stream.0), dir, bytes);
    }
    fn tcp_gap(&mut self, _: StreamId, _: Dir, _: u64, _: u64, _: Cause, _: Moment) {}
    fn tcp_end(&mut self, _: StreamId, _: Dir, _: End, _: &Totals, _: Moment) {}
    fn udp(&mut self, stream: &Stream, dir: Dir, bytes: &[u8], _: u32, _: Moment) {
        self.add(("udp", stream.id.0), dir, bytes);
        self.0.entry(("udp", stream.id.0)).or_default().1 =
            [stream.forward.port(), stream.backward.port()];
    }
    fn udp_end(&mut self, _: StreamId, _: End, _: Moment) {}
}

/// The plaintext files of all streams of a capture, by name.
fn all_files(capture: &str, keys: &[&str], name: &str) -> BTreeMap<String, Vec<u8>> {
    let dir = folder(name);
    let output =
        run(&[&["follow", "--all", "--raw", "-o", dir.to_str().unwrap(), capture], keys].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let files = std::fs::read_dir(dir).unwrap().map(|f| f.unwrap());
    files
        .map(|f| (f.file_name().into_string().unwrap(), std::fs::read(f.path()).unwrap()))
        .collect()
}

#[test]
fn what_is_clear_is_followed_byte_for_byte_by_tcp_and_udp() {
    let captures = [
        "intermud3/i3_coffeemud.pcapng",
        "secondlife/opensim.pcapng.gz",
        "ouro/coh_segs_udp.pcapng",
        "ouro/coh_tcp.pcap",
    ];
    for capture in captures.map(|c| format!("captures/{c}")) {
        let wire = Wire::of(&capture);
        let files = all_files(&capture, &[], &format!("follow-{}", capture.replace('/', "-")));
        assert!(files.len() >= 2, "{capture}: {:?}", files.keys());
        for (name, plain) in files {
            let mut parts = name.trim_end_matches(".bin").split('-');
            let transport = parts.next().unwrap();
            let number = parts.next().unwrap().parse::<u32>().unwrap();
            let transport = if transport == "tcp" { "tcp" } else { "udp" };
            let both = &wire.0[&(transport, number)].0;
            assert!(
                both.contains(&plain),
                "{capture} {name}: {} bytes, {} and {}",
                plain.len(),
                both[0].len(),
                both[1].len()
            );
        }
    }
}

#[test]
fn what_is_encrypted_is_followed_byte_for_byte_as_its_recorded_key_opens_it() {
    let capture = "captures/moul/full_dirtsand.pcapng";
    let wire = Wire::of(capture);
    let files = all_files(capture, &KEYS, "follow-encrypted");
    let truth = common::json("captures/moul/full_dirtsand.truth.json.gz");
    let mut opened = 0;
    for connection in truth["connections"].as_array().unwrap() {
        let port = connection["client_port"].as_u64().unwrap() as u16;
        let (stream, (sent, _)) = wire.0.iter().find(|(_, (_, ports))| ports[0] == port).unwrap();
        for (sent, (side, at)) in
            sent.iter().zip([("client", "c2s_msgs_at"), ("server", "s2c_msgs_at")])
        {
            let mut plain = sent.clone();
            if let Some(key) = connection["rc4_key"].as_str() {
                let key = moulsniff::table::parse_hex(key).unwrap();
                let begin = connection[at].as_u64().unwrap() as usize;
                rc4::Rc4::new_from_slice(&key).unwrap().apply_keystream(&mut plain[begin..]);
                opened += 1;
            }
            let file = format!("tcp-{:05}-{side}.bin", stream.1);
            assert!(
                files[&file] == plain,
                "{file}: {} bytes where {} are true",
                files[&file].len(),
                plain.len()
            );
        }
    }
    assert!(opened > 10, "{opened} directions were encrypted");
}

#[test]
fn the_dump_shows_every_message_with_its_own_bytes_whatever_the_segments_are() {
    let capture = "captures/intermud3/i3_coffeemud.pcapng";
    for stream in ["0", "1"] {
        let output = run(&["follow", stream, capture, "-q"]);
        let dump = String::from_utf8(output.stdout).unwrap();
        let mut named = 0;
        // Below each line that names a message stand as many bytes as it says.
        for part in dump.split("── ").skip(1) {
            let (head, body) = part.split_once('\n').unwrap();
            let Some((_, said)) = head.split_once("  record ") else { continue };
            let length: usize =
                said.split(", ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
            let count: usize = body
                .lines()
                .map(|l| l.split('|').next().unwrap().split_whitespace().count() - 1)
                .sum();
            assert_eq!(count, length, "{head}");
            named += 1;
        }
        assert!(named > 3, "{dump}");
    }
}

#[test]
fn pieces_as_json_are_the_plaintext_in_order() {
    let all = records(&[CAPTURE, KEYS[0], KEYS[1], "--json", "-q", "-Y", "stream == 0"]);
    let lines = |more: &[&str]| -> Vec<Value> {
        let text = String::from_utf8(follow(more)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let pieces = lines(&["--json"]);
    for side in ["client", "server"] {
        let own = pieces.iter().filter(|p| p["from"] == side && p["bytes"].is_string());
        let mut hex = String::new();
        for piece in own {
            assert_eq!(piece["offset"].as_u64().unwrap(), hex.len() as u64 / 2, "{piece}");
            hex.push_str(piece["bytes"].as_str().unwrap());
            assert_eq!(
                piece["length"].as_u64().unwrap() * 2,
                piece["bytes"].as_str().unwrap().len() as u64
            );
            let record = all.iter().find(|r| r["record"] == piece["record"]).unwrap();
            for key in ["time", "frame", "message", "offset", "length"] {
                assert_eq!(piece[key], record[key], "{piece}");
            }
        }
        let plain: String =
            follow(&["--raw", "--from", side]).iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, plain, "{side}");
    }
    assert_eq!(pieces.iter().filter(|p| p["event"] == "key").count(), 1);
    let texts = lines(&["--json", "--text"]);
    assert_eq!(texts.len(), pieces.len());
    assert!(texts.iter().all(|p| p["text"].is_string() && p.get("bytes").is_none()));
}
