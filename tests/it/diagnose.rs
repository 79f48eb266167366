//! Captures that are broken in known ways, and what `diagnose` concludes first; and captures with
//! nothing wrong, of which it concludes neither a stop nor a trouble.

use std::io::Write;
use std::path::PathBuf;

use moulsniff::capture::Capture;
use serde_json::Value;

use crate::common::{file, program, scratch};

const KEYS: &str = "keys/dirtsand.ini";
/// One connection to a gatekeeper: five requests, each answered within a millisecond.
const GATE: &str = "captures/moul/kind_gate.pcap";
/// A whole evening on a shard.
const EVENING: &str = "captures/moul/full_dirtsand.pcapng";
/// The port of these servers.
const SERVER: u16 = 14617;
/// A millisecond, in nanoseconds.
const MS: i64 = 1_000_000;

/// A frame that can be changed.
#[derive(Clone)]
struct Frame {
    time: i64,
    data: Vec<u8>,
    wire_len: u32,
}

/// The frames of a checked-in capture, to be broken.
#[derive(Clone)]
struct Frames {
    link: u16,
    frames: Vec<Frame>,
}

impl Frames {
    fn of(name: &str) -> Frames {
        let mut capture = Capture::open(file(name)).unwrap();
        let mut all = Frames { link: 0, frames: Vec::new() };
        while let Some(frame) = capture.next_frame().unwrap() {
            all.link = frame.link;
            all.frames.push(Frame {
                time: frame.time.seconds * 1_000_000_000 + i64::from(frame.time.nanos),
                data: frame.data.to_vec(),
                wire_len: frame.wire_len,
            });
        }
        all
    }

    /// Changes each frame, by its number from 1; `None` takes it out.
    fn each(mut self, change: impl Fn(usize, Frame) -> Option<Frame>) -> Frames {
        let frames = std::mem::take(&mut self.frames);
        self.frames = (1..).zip(frames).filter_map(|(n, frame)| change(n, frame)).collect();
        self
    }

    /// Every frame from number `from` on comes later.
    fn later(self, from: usize, nanos: i64) -> Frames {
        self.each(|n, frame| {
            let time = if n >= from { frame.time + nanos } else { frame.time };
            Some(Frame { time, ..frame })
        })
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = 0xa1b2_3c4d_u32.to_le_bytes().to_vec();
        bytes.extend([2, 0, 4, 0]);
        bytes.extend([0; 8]);
        bytes.extend(262_144_u32.to_le_bytes());
        bytes.extend(u32::from(self.link).to_le_bytes());
        for Frame { time, data, wire_len } in &self.frames {
            let [seconds, nanos] = [time.div_euclid(1_000_000_000), time.rem_euclid(1_000_000_000)];
            for word in [seconds as u32, nanos as u32, data.len() as u32, *wire_len] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend(data);
        }
        bytes
    }

    /// Writes the capture under a name, and returns its path.
    fn written(&self, name: &str) -> PathBuf {
        let folder = scratch("diagnose");
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(name);
        std::fs::write(&path, self.bytes()).unwrap();
        path
    }

    /// What is concluded of it with the shard's keys.
    fn concluded(&self, name: &str) -> Vec<Value> {
        concluded(&[self.written(name)], &["--keys", KEYS])
    }
}

/// Where the TCP header of a frame begins: behind Ethernet and IPv4.
const TCP: usize = 14 + 20;

impl Frame {
    /// Whether the server sent it.
    fn is_of_server(&self) -> bool {
        self.data[TCP..TCP + 2] == SERVER.to_be_bytes()
    }

    fn has_payload(&self) -> bool {
        self.wire_len as usize > TCP + usize::from(self.data[TCP + 12] >> 4) * 4
    }
}

fn concluded(captures: &[PathBuf], more: &[&str]) -> Vec<Value> {
    let mut program = program();
    program.current_dir(file("")).args(["diagnose", "--json", "--quiet"]).args(captures).args(more);
    let output = program.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = output.stdout.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

/// The weight, kind and side of the first conclusion.
fn first(all: &[Value]) -> [&str; 3] {
    let Some(first) = all.first() else { return ["", "", ""] };
    ["weight", "kind", "side"].map(|key| first[key].as_str().unwrap_or(""))
}

fn text(conclusion: &Value) -> &str {
    conclusion["text"].as_str().unwrap()
}

/// The frames of one UDP conversation of a checked-in capture, by its client's port.
fn conversation(name: &str, port: u16) -> Frames {
    Frames::of(name).each(|_, frame| {
        let ports = [&frame.data[TCP..TCP + 2], &frame.data[TCP + 2..TCP + 4]];
        ports.contains(&port.to_be_bytes().as_slice()).then_some(frame)
    })
}

#[test]
fn captures_with_nothing_wrong_give_neither_a_stop_nor_a_trouble() {
    for (capture, keys) in [
        (GATE, KEYS),
        ("captures/moul/kind_game.pcap", KEYS),
        ("captures/moul/any_sll2.pcap", KEYS),
        ("captures/moul/golden.pcap", "keys/shard.keys"),
        ("captures/ouro/coh_segs_udp.pcapng", KEYS),
        ("captures/ouro/coh_seed_udp.pcapng", KEYS),
    ] {
        let all = concluded(&[capture.into()], &["--keys", keys]);
        let heavy: Vec<&Value> = all.iter().filter(|one| one["weight"] != "hint").collect();
        assert!(heavy.is_empty(), "{capture}: {heavy:#?}");
    }
}

#[test]
fn a_snap_length_is_the_first_thing_that_is_wrong() {
    let cut = Frames::of(EVENING).each(|_, mut frame| {
        frame.data.truncate(96);
        Some(frame)
    });
    let all = cut.concluded("snap.pcap");
    assert_eq!(first(&all), ["stop", "snap_length", "capture"]);
    assert!(text(&all[0]).contains("to 96 bytes"), "{}", text(&all[0]));
}

#[test]
fn keys_that_are_missing_or_of_another_shard_are_told_for_all_connections_together() {
    let none = concluded(&[EVENING.into()], &[]);
    assert_eq!(first(&none), ["stop", "no_key", "keys"]);
    assert!(text(&none[0]).starts_with("8 of 9 connections ("), "{}", text(&none[0]));
    let other = concluded(&[EVENING.into()], &["--keys", "keys/nagus.ini"]);
    assert_eq!(first(&other), ["stop", "other_keys", "keys"]);
    // One sentence for all services.
    assert!(text(&other[0]).starts_with("8 of 9 connections ("), "{}", text(&other[0]));
    assert!(text(&other[0]).contains("for auth, game and gatekeeper"), "{}", text(&other[0]));
    assert!(other.iter().skip(1).all(|one| one["side"] != "keys"));
    let right = concluded(&[EVENING.into()], &["--keys", "keys/nagus.ini", "--keys", KEYS]);
    assert!(right.iter().all(|one| one["side"] != "keys"));
}

#[test]
fn a_direction_that_is_missing_from_some_time_on_is_told_with_that_time() {
    let half =
        Frames::of(EVENING).each(|n, frame| (n < 300 || !frame.is_of_server()).then_some(frame));
    let all = half.concluded("half.pcap");
    assert_eq!(first(&all), ["stop", "one_direction", "capture"]);
    let client = Frames::of(GATE).each(|_, frame| frame.is_of_server().then_some(frame));
    let all = client.concluded("server-only.pcap");
    assert!(
        all.iter()
            .any(|one| ["one_direction", "nothing_recognised"]
                .contains(&one["kind"].as_str().unwrap())),
        "{all:#?}"
    );
}

#[test]
fn what_is_lacking_is_told_where_nothing_could_be_recognised_for_it() {
    // Without its handshake an encrypted connection looks like any other.
    let late = Frames::of(GATE).each(|n, frame| (n > 8).then_some(frame));
    let all = late.concluded("late.pcap");
    assert_eq!(first(&all), ["stop", "joined_late", "capture"]);
    assert!(text(&all[0]).contains("tcp port 14617"), "{}", text(&all[0]));
    let server = Frames::of(GATE).each(|_, frame| frame.is_of_server().then_some(frame));
    assert_eq!(first(&server.concluded("no-client.pcap")), ["stop", "one_direction", "capture"]);
}

#[test]
fn a_side_whose_messages_are_not_sent_again_was_acknowledged_where_nothing_was_captured() {
    let whole = conversation("captures/secondlife/opensim.pcapng.gz", 38167);
    let half = whole.frames.len() / 2;
    let cut = whole.each(|n, frame| {
        let of_client = frame.data[TCP..TCP + 2] == 38167_u16.to_be_bytes();
        (n < half || !of_client).then_some(frame)
    });
    let all = cut.concluded("no-datagrams-of-client.pcap");
    assert_eq!(first(&all), ["stop", "one_direction", "capture"]);
    assert!(text(&all[0]).contains("hardly ever sent again"), "{}", text(&all[0]));
    let waits = |one: &Value| one["kind"] == "waiting" || one["kind"] == "closed_waiting";
    assert!(!all.iter().any(waits), "{all:#?}");
}

#[test]
fn bytes_that_are_not_sent_again_were_acknowledged_where_nothing_was_captured() {
    // The other mud of this connection acknowledges, and says nothing.
    let whole = conversation("captures/intermud3/i3_coffeemud.pcapng", 27767);
    let half = whole.frames.len() / 2;
    let cut = whole.each(|n, frame| {
        let of_server = frame.data[TCP..TCP + 2] == 27767_u16.to_be_bytes();
        (n <= half || !of_server).then_some(frame)
    });
    let all = cut.concluded("no-acknowledgements.pcap");
    assert_eq!(first(&all), ["stop", "one_direction", "capture"]);
    assert!(text(&all[0]).contains("sent nothing again"), "{}", text(&all[0]));
    assert!(!all.iter().any(|one| one["kind"] == "closed_waiting"), "{all:#?}");
}

#[test]
fn a_reply_whose_last_part_comes_late_is_a_slow_one() {
    // The list of players comes at once, the end of the login seven seconds later.
    let [keys, capture] = ["keys/nagus.ini", "captures/moul/nagus.pcapng"];
    let mut program = program();
    let args = [
        "--json",
        "-q",
        "--keys",
        keys,
        "-Y",
        "stream == 3 and message == Auth2Cli_AcctLoginReply",
    ];
    let output = program.current_dir(file("")).arg(capture).args(args).output().unwrap();
    let line = output.stdout.split(|b| *b == b'\n').next().unwrap();
    let reply: Value = serde_json::from_slice(line).unwrap();
    let frame = reply["frame"].as_u64().unwrap() as usize;
    let late = Frames::of(capture).later(frame, 7000 * MS).written("late-part.pcap");
    let all = concluded(&[late], &["--keys", keys]);
    let slow = all.iter().find(|one| one["kind"] == "slow_server").unwrap();
    assert_eq!(slow["weight"], "trouble");
    assert!(text(slow).contains("as a further part after 7.0 s"), "{}", text(slow));
}

#[test]
fn a_circuit_whose_opening_was_not_captured_began_before_the_capture() {
    let whole = conversation("captures/secondlife/opensim.pcapng.gz", 38167);
    let kinds = |frames: Frames, name: &str| {
        let all = frames.concluded(name);
        all.iter().map(|one| one["kind"].as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    let third = whole.frames.len() / 3;
    let late =
        kinds(whole.clone().each(|n, frame| (n > third).then_some(frame)), "late-circuit.pcap");
    assert!(late.contains(&"joined_late".to_string()), "{late:?}");
    let early = kinds(whole, "whole-circuit.pcap");
    assert!(!early.contains(&"joined_late".to_string()), "{early:?}");
}

#[test]
fn datagrams_that_are_acknowledged_and_not_captured_are_a_missing_direction() {
    let whole = conversation("captures/secondlife/opensim.pcapng.gz", 38167);
    let half = whole.frames.len() / 2;
    let cut = whole.each(|n, frame| {
        let of_client = frame.data[TCP..TCP + 2] == 38167_u16.to_be_bytes();
        (n < half || of_client).then_some(frame)
    });
    let all = cut.concluded("no-datagrams-of-server.pcap");
    assert_eq!(first(&all), ["stop", "one_direction", "capture"]);
    assert!(text(&all[0]).contains("acknowledged"), "{}", text(&all[0]));
}

#[test]
fn a_step_that_others_were_granted_is_no_stop() {
    let all = concluded(&[EVENING.into()], &["--keys", KEYS]);
    let heavy: Vec<&Value> = all.iter().filter(|one| one["weight"] != "hint").collect();
    assert!(!heavy.is_empty());
    assert!(heavy.iter().all(|one| one["kind"] == "refused_at_end" && one["weight"] == "trouble"));
}

#[test]
fn frames_that_the_capture_lacks_are_no_fault_of_the_network() {
    let lossy =
        Frames::of(EVENING).each(|n, frame| (n % 20 != 0 || !frame.has_payload()).then_some(frame));
    let all = lossy.concluded("lossy.pcap");
    assert_eq!(first(&all), ["stop", "dropped", "capture"]);
}

#[test]
fn segments_that_were_sent_again_are_a_loss_of_the_network() {
    let mut again = Frames::of(GATE);
    let copies: Vec<Frame> = again.frames.iter().filter(|f| f.has_payload()).cloned().collect();
    let copies = copies.into_iter().map(|frame| Frame { time: frame.time + 200 * MS, ..frame });
    again.frames.extend(copies);
    again.frames.sort_by_key(|frame| frame.time);
    let all = again.concluded("resent.pcap");
    assert_eq!(first(&all), ["trouble", "loss", "network"]);
}

#[test]
fn a_request_without_its_reply_waits_until_the_capture_ends_or_the_connection_does() {
    // Frame 11 is the reply to the first request.
    let until = |n| Frames::of(GATE).each(move |number, frame| (number <= n).then_some(frame));
    let mut waits = until(10);
    let last = waits.frames.last().cloned().unwrap();
    let ack = Frames::of(GATE).frames[8].clone();
    waits.frames.push(Frame { time: last.time + 6_100 * MS, ..ack });
    let all = waits.concluded("waits.pcap");
    assert_eq!(first(&all), ["stop", "waiting", "server"]);
    assert!(text(&all[0]).contains("6.1 s until the capture ends"), "{}", text(&all[0]));
    assert!(text(&all[0]).contains("GateKeeper2Cli_PingReply"), "{}", text(&all[0]));
    assert_eq!(all[0]["frames"], serde_json::json!([10]));
    // The server resets the connection instead: the flags of its FIN become RST and ACK.
    let mut reset = until(10);
    let mut frame = Frames::of(GATE).frames[10].clone();
    frame.data[TCP + 13] = 0x14;
    frame.data.truncate(TCP + 32);
    frame.wire_len = frame.data.len() as u32;
    let length = (frame.data.len() - 14) as u16;
    frame.data[16..18].copy_from_slice(&length.to_be_bytes());
    reset.frames.push(frame);
    let all = reset.concluded("reset.pcap");
    assert_eq!(first(&all), ["stop", "closed_waiting", "server"]);
}

#[test]
fn who_is_slow_is_told_from_what_the_network_takes() {
    let slow = Frames::of(GATE).later(13, 2_300 * MS);
    let all = slow.concluded("slow.pcap");
    assert_eq!(first(&all), ["trouble", "slow_server", "server"]);
    assert!(text(&all[0]).contains("after 2.3 s"), "{}", text(&all[0]));
    // Each frame of the server comes later, as it does from far away.
    let mut far = Frames::of(GATE);
    let mut late = 0;
    let mut of_server = false;
    for frame in &mut far.frames {
        if frame.is_of_server() && !of_server {
            late += 320 * MS;
        }
        of_server = frame.is_of_server();
        frame.time += late;
    }
    let all = far.concluded("far.pcap");
    assert_eq!(first(&all), ["trouble", "slow_network", "network"]);
}

#[test]
fn rotated_files_are_read_in_the_order_of_time_and_it_is_told() {
    let whole = Frames::of(EVENING);
    let mut files: Vec<PathBuf> = Vec::new();
    for (n, part) in whole.frames.chunks(100).enumerate() {
        let part = Frames { link: whole.link, frames: part.to_vec() };
        files.push(part.written(&format!("ring.pcap{n}")));
    }
    let one = whole.concluded("ring-whole.pcap");
    files.reverse();
    let mut sorted = concluded(&files, &["--keys", KEYS]);
    let told = sorted.iter().position(|one| one["kind"] == "file_order").unwrap();
    assert_eq!(sorted.remove(told)["weight"], "hint");
    let texts = |all: &[Value]| -> Vec<String> { all.iter().map(|c| text(c).into()).collect() };
    assert_eq!(texts(&sorted), texts(&one));
    let as_given = concluded(&files, &["--keys", KEYS, "--as-given"]);
    assert_eq!(first(&as_given), ["stop", "file_order", "capture"]);
}

#[test]
fn what_is_there_instead_is_told_where_nothing_was_recognised() {
    let mut foreign = Frames::of(GATE);
    for frame in &mut foreign.frames {
        let from = TCP + 32;
        frame.data.iter_mut().skip(from).for_each(|byte| *byte = b'x');
    }
    let all = foreign.concluded("foreign.pcap");
    assert_eq!(first(&all)[..2], ["stop", "nothing_recognised"]);
    assert!(text(&all[0]).contains("tcp port 14617"), "{}", text(&all[0]));
}

#[test]
fn the_summary_names_the_worst_and_quiet_silences_it() {
    let said = |more: &[&str]| {
        let mut program = program();
        program.current_dir(file("")).args([EVENING, "--json"]).args(more);
        let output = program.output().unwrap();
        std::io::stdout().flush().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(said(&[]).contains("\n  stop: 8 of 9 connections ("), "{}", said(&[]));
    assert_eq!(said(&["--quiet"]), "");
}

#[test]
fn statistics_and_sessions_have_the_same_conclusions() {
    let json = |command: &str| -> Vec<Value> {
        let mut program = program();
        program.current_dir(file("")).args([command, EVENING, "--keys", KEYS, "--json", "-q"]);
        let out = program.output().unwrap().stdout;
        let lines = out.split(|b| *b == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
    };
    let all = concluded(&[EVENING.into()], &["--keys", KEYS]);
    assert_eq!(json("stats")[0]["conclusions"], Value::from(all.clone()));
    for session in json("sessions") {
        let own = session["conclusions"].as_array().unwrap();
        for conclusion in own {
            assert_eq!(conclusion["session"], session["session"]);
            assert!(all.iter().any(|one| one["text"] == conclusion["text"]), "{conclusion:#?}");
        }
    }
}

#[test]
fn a_key_file_is_told_which_connections_it_opens() {
    let check = |key: &str| {
        let mut program = program();
        program.current_dir(file("")).args(["keys", "check", key, EVENING, "--json"]);
        let output = program.output().unwrap();
        let last = output.stdout.split(|b| *b == b'\n').rfind(|line| !line.is_empty()).unwrap();
        (output.status.code(), serde_json::from_slice::<Value>(last).unwrap())
    };
    let states = |checked: &Value| -> Vec<String> {
        let all = checked["connections"].as_array().unwrap();
        all.iter().map(|one| one["state"].as_str().unwrap().to_string()).collect()
    };
    let (status, right) = check(KEYS);
    assert_eq!(status, Some(0));
    assert_eq!(states(&right).iter().filter(|state| *state == "opened").count(), 8);
    let (status, wrong) = check("keys/nagus.ini");
    assert_eq!(status, Some(1));
    assert!(states(&wrong).iter().all(|state| state != "opened"));
}
