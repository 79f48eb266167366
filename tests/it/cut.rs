//! Captures that end with a request: this request and the others that still wait are never
//! answered, and nothing else is.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::process::Stdio;

use serde_json::Value;

use crate::common::scratch;

const DIRTSAND: &[&str] = &["keys/dirtsand.ini"];
const MOSS: &[&str] =
    &["keys/moss_auth_key.der", "keys/moss_game_key.der", "keys/moss_gatekeeper_key.der"];

/// Runs the program with a capture on standard input.
fn records(capture: &[u8], keys: &[&str]) -> Vec<Value> {
    let path = scratch(format!("cut-{:?}.cap", std::thread::current().id()));
    std::fs::write(&path, capture).unwrap();
    let mut program = crate::common::program();
    program
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .arg(&path)
        .args(["--json", "-q"]);
    for key in keys {
        program.args(["--keys", key]);
    }
    let output = program.output().unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Where a capture ends behind each of its frames.
pub fn frame_ends(all: &[u8]) -> Vec<usize> {
    let word = |at: usize| u32::from_le_bytes(all[at..at + 4].try_into().unwrap()) as usize;
    let mut ends = Vec::new();
    let pcapng = word(0) == 0x0a0d_0d0a;
    let mut at = if pcapng { 0 } else { 24 };
    while at + 8 <= all.len() {
        let (kind, length) = if pcapng { (word(at), word(at + 4)) } else { (6, 16 + word(at + 8)) };
        at += length;
        if [3, 6].contains(&kind) {
            ends.push(at);
        }
    }
    ends
}

pub fn read(path: &str) -> Vec<u8> {
    let all = std::fs::read(path).unwrap();
    if !path.ends_with(".gz") {
        return all;
    }
    let mut plain = Vec::new();
    flate2::read::MultiGzDecoder::new(&all[..]).read_to_end(&mut plain).unwrap();
    plain
}

/// The requests among records that were not answered within the first `frames` frames.
fn waiting(all: &[Value], frames: u64) -> BTreeSet<u64> {
    let frame = |record: &Value| record["frame"].as_u64().unwrap();
    let mut last_reply: BTreeMap<u64, u64> = BTreeMap::new();
    for record in all {
        if let Some(request) = record["reply_to"].as_u64() {
            last_reply.insert(request, frame(record));
        }
    }
    let never: BTreeSet<u64> = all.iter().filter_map(|record| record["request"].as_u64()).collect();
    let asks =
        all.iter().filter(|record| record["expects_reply"] == true && frame(record) <= frames);
    let number = |record: &Value| record["record"].as_u64().unwrap();
    let waits = |record: &u64| {
        never.contains(record) || last_reply.get(record).is_some_and(|reply| *reply > frames)
    };
    asks.map(number).filter(waits).collect()
}

/// What records are, without their numbers.
fn places(all: &[Value], records: impl Iterator<Item = u64>) -> BTreeSet<String> {
    let place = |record: u64| {
        let own = &all[record as usize - 1];
        assert_eq!(own["record"], record);
        let keys = ["message", "transport", "stream", "from", "offset", "frame"];
        keys.map(|key| own[key].to_string()).join(" ")
    };
    records.map(place).collect()
}

/// Cuts a capture behind at most `most` of its requests.
fn check(path: &str, keys: &[&str], most: usize) {
    let capture = read(path);
    let all = records(&capture, keys);
    let ends = frame_ends(&capture);
    let requests: BTreeSet<u64> = all
        .iter()
        .filter(|record| record["expects_reply"] == true)
        .map(|record| record["frame"].as_u64().unwrap())
        .collect();
    assert!(requests.len() > 1, "{path} has {} requests", requests.len());
    let step = requests.len().div_ceil(most);
    let mut hanging = 0;
    for frames in requests.into_iter().step_by(step) {
        // Streams that are recognised only when the capture ends get other numbers, so requests are
        // compared by their places.
        let cut = records(&capture[..ends[frames as usize - 1]], keys);
        let found = places(&cut, cut.iter().filter_map(|record| record["request"].as_u64()));
        let expected = places(&all, waiting(&all, frames).into_iter());
        let (more, less): (Vec<_>, Vec<_>) =
            (found.difference(&expected).collect(), expected.difference(&found).collect());
        assert!(
            more.is_empty() && less.is_empty(),
            "{path} cut behind frame {frames}: too many {more:?}, missing {less:?}"
        );
        hanging += found.len();
    }
    assert!(hanging > 0, "{path}");
}

#[test]
fn moul_with_keys() {
    check("captures/moul/full_dirtsand.pcapng", DIRTSAND, 60);
    check("captures/moul/kind_gate.pcap", DIRTSAND, 20);
    check("captures/moul/moss_full.pcapng", MOSS, 40);
    check("captures/moul/nagus.pcapng", &["keys/nagus.ini"], 40);
}

#[test]
fn moul_in_clear() {
    check("captures/moul/clear.pcapng.gz", &[], 40);
}

#[test]
fn acknowledgements_ask_for_nothing() {
    let all = records(&read("captures/moul/full_dirtsand.pcapng"), DIRTSAND);
    let acks: Vec<&Value> = all
        .iter()
        .filter(|record| record["message"].as_str().is_some_and(|name| name.ends_with("Ack")))
        .collect();
    assert!(acks.len() >= 34, "{}", acks.len());
    assert!(
        acks.iter().all(|ack| ack.get("expects_reply").is_none() && ack.get("reply_to").is_none())
    );
}
