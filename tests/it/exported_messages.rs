//! Messages that were exported into packets of their own come back as they were, and packets that
//! are damaged do no harm.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use moulsniff::capture::{Capture, Frame, PcapngWriter};
use serde_json::Value;

use crate::common::{file, random, scratch};

/// All keys of the captures.
pub const KEYS: [&str; 5] = [
    "keys/dirtsand.ini",
    "keys/nagus.ini",
    "keys/moss_gatekeeper_key.der",
    "keys/moss_auth_key.der",
    "keys/moss_game_key.der",
];

pub fn folder(name: &str) -> PathBuf {
    let path = scratch(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

pub fn run(arguments: &[&str]) -> Output {
    let mut program = crate::common::program();
    program.current_dir(file("")).args(arguments).output().unwrap()
}

/// Exports a capture's messages; the file is named after the capture.
pub fn export(capture: &str, to: &Path, more: &[&str]) -> PathBuf {
    let name = format!("{}.pdus.pcapng", Path::new(capture).file_name().unwrap().to_str().unwrap());
    let out = to.join(name);
    let keys: Vec<&str> = KEYS.iter().flat_map(|key| ["--keys", key]).collect();
    let arguments =
        [&["export", "messages", capture, "--quiet", "-o", out.to_str().unwrap()], &keys[..], more];
    let done = run(&arguments.concat());
    assert!(done.status.success(), "{capture}: {}", String::from_utf8_lossy(&done.stderr));
    out
}

/// The messages that the program prints: without what counts records, which are others where events
/// are missing.
pub fn messages(capture: &str, more: &[&str]) -> Vec<Value> {
    printed(capture, more).iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The same as text. What is nested deeper than this test can read stays as it was printed, from
/// its time on.
fn printed(capture: &str, more: &[&str]) -> Vec<String> {
    let done = run(&[&[capture, "--quiet", "--json"], more].concat());
    assert!(done.status.success(), "{capture}: {}", String::from_utf8_lossy(&done.stderr));
    let text = String::from_utf8(done.stdout).unwrap();
    let mut all = Vec::new();
    for line in text.lines() {
        let Ok(mut record) = serde_json::from_str::<Value>(line) else {
            all.push(line[line.find("\"time\"").unwrap()..].to_string());
            continue;
        };
        let message = record.as_object_mut().unwrap();
        if message.contains_key("event") {
            continue;
        }
        for key in ["record", "reply_to", "elapsed_ms", "names", "acknowledges", "sent_again"] {
            message.remove(key);
        }
        all.push(record.to_string());
    }
    all
}

/// Exports a capture and reads it back, with the spans and with the fields.
fn comes_back(capture: &str) {
    let to = folder(&format!("exported-{}", capture.replace('/', "-")));
    let exported = export(capture, &to, &[]);
    let keys: Vec<&str> = KEYS.iter().flat_map(|key| ["--keys", key]).collect();
    for more in [&[][..], &["--spans"]] {
        let before = printed(capture, &[&keys, more].concat());
        let after = printed(exported.to_str().unwrap(), more);
        assert_eq!(before.len(), after.len(), "{capture}");
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(before, after, "{capture}");
        }
        assert!(!before.is_empty(), "{capture}");
    }
}

#[test]
fn every_capture_comes_back() {
    let folders = ["moul", "secondlife", "intermud3", "ouro"];
    let files =
        folders.iter().flat_map(|folder| fs::read_dir(file("captures").join(folder)).unwrap());
    let paths = files.map(|entry| entry.unwrap().path());
    let captures: Vec<PathBuf> =
        paths.filter(|path| path.to_str().unwrap().contains(".pcap")).collect();
    assert!(captures.len() > 15);
    for capture in captures {
        comes_back(capture.strip_prefix(file("")).unwrap().to_str().unwrap());
    }
}

#[test]
fn replies_point_at_the_records_of_the_exported_file() {
    let to = folder("exported-replies");
    let exported = export("captures/moul/kind_gate.pcap", &to, &[]);
    let done = run(&[exported.to_str().unwrap(), "--quiet", "--json"]);
    let text = String::from_utf8(done.stdout).unwrap();
    let records: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let replies: Vec<&Value> =
        records.iter().filter(|record| record.get("reply_to").is_some()).collect();
    assert!(!replies.is_empty());
    for reply in replies {
        let request = &records[reply["reply_to"].as_u64().unwrap() as usize - 1];
        assert_eq!(request["fields"]["trans_id"], reply["fields"]["trans_id"]);
    }
}

#[test]
fn other_tables_decode_the_bytes_anew() {
    let to = folder("exported-tables");
    let exported = export("captures/moul/kind_game.pcap", &to, &[]);
    let table = to.join("other.table");
    fs::write(
        &table,
        "protocol moul\nmessage game client 0 Cli2Game_PingRequest {\n    ping: u32\n    example \
         \"0000 07000000\" { \"ping\": 7 }\n}\n",
    )
    .unwrap();
    let with = messages(exported.to_str().unwrap(), &["--tables", table.to_str().unwrap()]);
    let pings: Vec<&Value> =
        with.iter().filter(|m| m["message"] == "Cli2Game_PingRequest").collect();
    assert!(!pings.is_empty());
    assert!(pings.iter().all(|ping| ping["fields"]["ping"].is_u64()), "{pings:?}");
    assert_eq!(with.len(), 154);
}

#[test]
fn a_capture_and_its_exported_messages_do_not_differ() {
    let to = folder("exported-forms");
    // Parts of both are in forms that not every program writes.
    for capture in ["captures/moul/moss_full.pcapng", "captures/moul/nagus.pcapng"] {
        let exported = export(capture, &to, &[]);
        let keys: Vec<&str> = KEYS.iter().flat_map(|key| ["--keys", key]).collect();
        let told =
            run(&[&["diff", capture, exported.to_str().unwrap(), "--quiet"], &keys[..]].concat());
        let told = (told.status.code(), String::from_utf8(told.stdout).unwrap());
        assert!(
            told.0 == Some(0) && told.1.contains("messages the same, no differences"),
            "{told:?}"
        );
    }
}

/// What commands that sum up say of a capture, in order.
fn summed_up(capture: &str, more: &[&str]) -> Vec<String> {
    let commands =
        [&["diagnose", "--all", "--json"][..], &["sessions", "--json"], &["stats", "--json"]];
    let said = commands.map(|command| {
        let done = run(&[command, &[capture, "--quiet"], more].concat());
        String::from_utf8(done.stdout).unwrap()
    });
    assert!(!said[2].is_empty(), "{capture}");
    said.into()
}

#[test]
fn what_is_wrong_in_a_capture_is_in_its_exported_messages() {
    let to = folder("exported-conclusions");
    let keys: Vec<&str> = KEYS.iter().flat_map(|key| ["--keys", key]).collect();
    for capture in [
        "captures/moul/full_dirtsand.pcapng",
        "captures/moul/mangled_gaps.pcap.gz",
        "captures/moul/midstream.pcap",
        "captures/secondlife/opensim.pcapng.gz",
        "captures/intermud3/i3_coffeemud.pcapng",
        "captures/ouro/coh_segs_udp.pcapng",
        "captures/ouro/coh_tcp.pcap",
    ] {
        let exported = export(capture, &to, &[]);
        let exported = exported.to_str().unwrap();
        for (before, after) in summed_up(capture, &keys).iter().zip(summed_up(exported, &[])) {
            assert_eq!(*before, after, "{capture}");
        }
        // Events and the ends of streams have the numbers that they had.
        let all = |capture: &str, keys: &[&str]| {
            run(&[&[capture, "--quiet", "--columns", "record,frame,time,event,message,text"], keys]
                .concat())
            .stdout
        };
        assert!(all(capture, &keys) == all(exported, &[]), "{capture}");
    }
}

#[test]
fn pseudonyms_leave_the_conclusions_as_they_are() {
    let to = folder("exported-conclusions-pseudonyms");
    let persons = to.join("persons.key");
    let capture = "captures/moul/full_dirtsand.pcapng";
    let pseudonyms = ["--pseudonyms", persons.to_str().unwrap()];
    let exported = export(capture, &to, &pseudonyms);
    let keys: Vec<&str> = KEYS.iter().flat_map(|key| ["--keys", key]).chain(pseudonyms).collect();
    assert_eq!(summed_up(capture, &keys), summed_up(exported.to_str().unwrap(), &[]));
    // The kinds and places are those of the names as they were.
    let plain = run(&[&["diagnose", capture, "--all", "--json", "--quiet"], &keys[..10]].concat());
    let facts = |text: &[u8]| -> Vec<(Value, Value)> {
        let text = String::from_utf8_lossy(text).into_owned();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.map(|line| (line["kind"].clone(), line["records"].clone())).collect()
    };
    let hidden = run(&["diagnose", exported.to_str().unwrap(), "--all", "--json", "--quiet"]);
    assert_eq!(facts(&plain.stdout), facts(&hidden.stdout));
}

/// A file of exported messages after something was done to each packet.
fn changed(exported: &Path, to: &Path, mut change: impl FnMut(&mut Vec<u8>)) {
    let mut capture = Capture::open(exported).unwrap();
    let mut writer = PcapngWriter::new(fs::File::create(to).unwrap()).unwrap();
    while let Some(frame) = capture.next_frame().unwrap() {
        let mut data = frame.data.to_vec();
        change(&mut data);
        writer.frame(&Frame { data: &data, wire_len: data.len() as u32, ..frame }).unwrap();
    }
    writer.flush().unwrap();
}

#[test]
fn damaged_packets_do_no_harm() {
    let to = folder("exported-damaged");
    let mut next = random();
    for capture in [
        "captures/moul/kind_game.pcap",
        "captures/ouro/coh_seed_udp.pcapng",
        "captures/intermud3/i3_edge_small.pcapng",
    ] {
        let exported = export(capture, &to, &[]);
        for round in 0..6 {
            let damaged = to.join("damaged.pcapng");
            changed(&exported, &damaged, |data| match round {
                0 => data.truncate(next() % data.len()),
                1 => (0..4).for_each(|_| {
                    let at = next() % data.len();
                    data[at] = 0xff;
                }),
                _ => (0..=next() % 8).for_each(|_| {
                    let at = next() % data.len();
                    data[at] ^= 1 << (next() % 8);
                }),
            });
            for form in [&["--json", "--spans"][..], &["-x"], &["--oneline"], &["--json"]] {
                let done = run(&[&[damaged.to_str().unwrap()], form].concat());
                let said = String::from_utf8_lossy(&done.stderr);
                assert!(
                    done.status.success() && !said.contains("panicked"),
                    "{capture} {round}: {said}"
                );
                // The parser of the tests reads no values that lie as deep as some of Intermud-3.
                let json = form.contains(&"--json") && !capture.contains("intermud3");
                assert!(!json || is_json(&done.stdout), "{capture} {round}");
            }
        }
    }
}

/// Whether each line is JSON.
fn is_json(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.all(|line| serde_json::from_slice::<Value>(line).is_ok())
}

/// JSON has a number of any length as it came, so it has to be one.
#[test]
fn what_a_packet_calls_a_number_is_one() {
    // A structure's value is 0, which as the value of a number is a text without characters.
    const STRUCTURE: u8 = 0;
    const NUMBER: u8 = 14;
    let to = folder("exported-number");
    let exported = export("captures/ouro/coh_seed_udp.pcapng", &to, &[]);
    let damaged = to.join("damaged.pcapng");
    let mut found = 0;
    for place in 10..60 {
        changed(&exported, &damaged, |data| {
            let kinds = data.iter_mut().filter(|byte| **byte == STRUCTURE);
            found += kinds.skip(place).take(1).map(|kind| *kind = NUMBER).count();
        });
        let done = run(&[damaged.to_str().unwrap(), "-q", "--json"]);
        assert!(is_json(&done.stdout), "{place}");
    }
    assert!(found > 20, "{found}");
}

#[test]
fn packets_of_other_programs_are_reported_once() {
    let to = folder("exported-foreign");
    let exported = export("captures/moul/kind_gate.pcap", &to, &[]);
    let foreign = to.join("foreign.pcapng");
    let mut number = 0;
    changed(&exported, &foreign, |data| {
        number += 1;
        match number {
            1 => data[4..8].copy_from_slice(b"http"),
            2 => data.truncate(3),
            _ => {}
        }
    });
    let done = run(&[foreign.to_str().unwrap(), "--json"]);
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(
        said.contains("2 exported messages left out: of the first one its dissector is none"),
        "{said}"
    );
    let text = String::from_utf8(done.stdout).unwrap();
    assert_eq!(text.lines().filter(|line| line.contains("\"message\":")).count(), 11);
    assert_eq!(run(&[foreign.to_str().unwrap(), "--json", "--strict"]).status.code(), Some(3));
}

#[test]
fn a_service_that_a_packet_makes_up_is_none() {
    let to = folder("exported-service");
    let exported =
        export("captures/moul/full_dirtsand.pcapng", &to, &["--keys", "keys/dirtsand.ini"]);
    let damaged = to.join("damaged.pcapng");
    // The name of a service stands in the packed tree, where nothing but its length is checked by
    // its form.
    changed(&exported, &damaged, |data| {
        let places: Vec<usize> =
            data.windows(4).enumerate().filter(|(_, w)| *w == b"auth").map(|(at, _)| at).collect();
        places.into_iter().for_each(|at| data[at..at + 4].copy_from_slice(b"\",\"\x1b"));
    });
    for form in [&["--json", "-q"][..], &["--oneline", "-q"], &["-q"]] {
        let done = run(&[&[damaged.to_str().unwrap()], form].concat());
        let text = String::from_utf8(done.stdout).unwrap();
        assert!(text.lines().count() > 100 && !text.contains('\u{1b}'), "{form:?}");
        if form[0] == "--json" {
            assert!(
                text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()),
                "{form:?}"
            );
        }
    }
}
