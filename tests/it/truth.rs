//! Every message of the captures, in order, against what client and server themselves recorded:
//! name, number, offset, length, every declared field at its place with its value; and the spans of
//! every message tile it.
//!
//! The files beside the captures, `NAME.truth.json.gz`, are described in `captures/README.md`.

use std::collections::{BTreeMap, HashMap};

use crate::common::{json, records};
use serde_json::Value;

const MOSS: [&str; 3] =
    ["keys/moss_gatekeeper_key.der", "keys/moss_auth_key.der", "keys/moss_game_key.der"];

#[test]
fn a_small_gatekeeper_connection() {
    agrees("kind_gate.pcap", &["keys/dirtsand.ini"], 13);
}

#[test]
fn two_clients_on_a_game_server() {
    agrees("kind_game.pcap", &["keys/dirtsand.ini"], 154);
}

#[test]
fn captured_on_the_any_device() {
    agrees("any_sll2.pcap", &["keys/dirtsand.ini"], 46);
}

#[test]
fn a_whole_session_with_dirtsand() {
    agrees("full_dirtsand.pcapng", &["keys/dirtsand.ini"], 496);
}

#[test]
fn a_whole_session_with_dirtsand_in_clear() {
    agrees("clear.pcapng.gz", &[], 425);
}

#[test]
fn a_whole_session_with_nagus() {
    agrees("nagus.pcapng", &["keys/nagus.ini"], 352);
}

#[test]
fn a_whole_session_with_moss() {
    agrees("moss_full.pcapng", &MOSS, 520);
}

#[test]
fn every_message_of_the_client_tables_both_ways() {
    agrees("synthetic_all.pcap.gz", &["keys/dirtsand.ini"], 251);
}

/// Keys of other shards in front do not matter, nor does their number.
#[test]
fn the_right_key_among_wrong_ones() {
    agrees(
        "nagus.pcapng",
        &["keys/moulars.toml", "keys/dirtsand.ini", MOSS[1], "keys/nagus.ini"],
        352,
    );
}

/// What the two peers recorded of one direction of one connection.
struct Told<'a> {
    port: u64,
    way: &'static str,
    messages: &'a [Value],
}

fn agrees(capture: &str, keys: &[&str], at_least: usize) {
    let base = capture.split('.').next().unwrap();
    let truth = json(&format!("captures/moul/{base}.truth.json.gz"));
    let records = records(&format!("captures/moul/{capture}"), keys, &["--spans"]);
    let told = directions(&truth);
    let got = by_direction(&records);
    let mut count = 0;
    for t in &told {
        let mine = got.get(&(t.port, t.way)).map_or(&[][..], Vec::as_slice);
        for (want, have) in t.messages.iter().zip(mine) {
            same_message(capture, t, want, have);
        }
        assert_eq!(
            t.messages.len(),
            mine.len(),
            "{capture}: messages of port {} {}",
            t.port,
            t.way
        );
        count += mine.len();
    }
    assert_eq!(
        got.values().map(Vec::len).sum::<usize>(),
        count,
        "{capture}: messages that were never sent"
    );
    assert!(count >= at_least, "{capture}: only {count} messages were compared");
    for r in &records {
        let event = r["event"].as_str().unwrap_or("key");
        assert!(
            !["undecoded", "gap", "resync", "limit", "wrong_key", "no_key"].contains(&event),
            "{capture}: {r}"
        );
    }
}

fn directions(truth: &Value) -> Vec<Told<'_>> {
    let mut all = Vec::new();
    for c in truth["connections"].as_array().unwrap() {
        let port = c["client_port"].as_u64().unwrap();
        for way in ["c2s", "s2c"] {
            all.push(Told { port, way, messages: c["messages"][way].as_array().unwrap() });
        }
    }
    all
}

/// The messages of each direction, in the order in which they were printed.
fn by_direction(records: &[Value]) -> HashMap<(u64, &'static str), Vec<&Value>> {
    let mut all: HashMap<_, Vec<&Value>> = HashMap::new();
    for r in records.iter().filter(|r| r.get("event").is_none()) {
        let client = r["from"] == "client";
        let end = if client { &r["src"] } else { &r["dst"] };
        let port = end.as_str().unwrap().rsplit(':').next().unwrap().parse().unwrap();
        all.entry((port, if client { "c2s" } else { "s2c" })).or_default().push(r);
    }
    all
}

fn same_message(capture: &str, told: &Told<'_>, want: &Value, have: &Value) {
    let place =
        format!("{capture}: port {} {} at {}: {}", told.port, told.way, want["off"], want["name"]);
    let name = match want["name"].as_str().unwrap() {
        "Connect" => "ConnectPacket".to_string(),
        "EncryptConnect" => "Cli2Srv_Connect".to_string(),
        "EncryptReply" => "Srv2Cli_Encrypt".to_string(),
        "EncryptError" => "Srv2Cli_Error".to_string(),
        other => other.replace("AcctExists", "AccountExists"),
    };
    assert_eq!(
        have["message"].as_str().unwrap().replace("AcctExists", "AccountExists"),
        name,
        "{place}"
    );
    assert_eq!((&have["offset"], &have["length"]), (&want["off"], &want["len"]), "{place}");
    if let Some(number) = want.get("id") {
        assert_eq!(&have["type"], number, "{place}");
    }
    let spans = Spans::of(have, &place);
    spans.tile(&place, want["len"].as_u64().unwrap());
    for key in ["y", "seed"].into_iter().filter(|k| want.get(*k).is_some_and(|v| v != "")) {
        assert!(spans.flat.iter().any(|s| s["value"] == want[key]), "{place}: {key}");
    }
    let mut at = 2;
    for field in want["fields"].as_array().map_or(&[][..], Vec::as_slice) {
        let length = wire_length(field);
        if length > 0 && field["k"] != "count" {
            spans.hold(&place, field, at, length);
        }
        at += length;
    }
}

/// How many bytes a declared field takes.
fn wire_length(field: &Value) -> u64 {
    match field["k"].as_str().unwrap() {
        "u8" => 1,
        "u16" => 2,
        "u32" | "count" => 4,
        "u64" => 8,
        "str" => 2 + 2 * field["wire_chars"].as_u64().unwrap(),
        "data" => field["n"].as_u64().unwrap(),
        "arr32" => 4 * field["n"].as_u64().unwrap(),
        "var" => field["hex"].as_str().unwrap().len() as u64 / 2,
        other => panic!("a field of kind {other}"),
    }
}

/// The spans of one message: as they nest, and those of captured bytes by their place.
struct Spans<'a> {
    top: &'a [Value],
    flat: Vec<&'a Value>,
    places: BTreeMap<(u64, u64), Vec<&'a Value>>,
}

impl<'a> Spans<'a> {
    fn of(record: &'a Value, place: &str) -> Self {
        let top = record["fields"].as_array().unwrap_or_else(|| panic!("{place}: no spans"));
        let mut flat = Vec::new();
        let mut open: Vec<&Value> = top.iter().rev().collect();
        while let Some(span) = open.pop() {
            flat.push(span);
            // What was decompressed or decrypted has places of its own.
            if span.get("buffer").is_none() {
                open.extend(span["fields"].as_array().map_or(&[][..], Vec::as_slice).iter().rev());
            }
        }
        assert!(top.iter().all(|s| s["type"] != "undecoded"), "{place}: {top:?}");
        let mut places: BTreeMap<_, Vec<&Value>> = BTreeMap::new();
        for span in &flat {
            places
                .entry((span["offset"].as_u64().unwrap(), span["length"].as_u64().unwrap()))
                .or_default()
                .push(span);
        }
        Spans { top, flat, places }
    }

    /// No gap and no overlap, on every level.
    fn tile(&self, place: &str, length: u64) {
        tile(place, self.top, 0, Some(length));
        for span in &self.flat {
            let Some(children) = span["fields"].as_array().filter(|c| !c.is_empty()) else {
                continue;
            };
            let own = span.get("buffer").is_some();
            let start = if own { 0 } else { span["offset"].as_u64().unwrap() };
            let length = span["length"].as_u64().filter(|_| !own);
            tile(&format!("{place}, {}", span["name"]), children, start, length);
        }
    }

    fn at(&self, offset: u64, length: u64) -> &[&'a Value] {
        self.places.get(&(offset, length)).map_or(&[], Vec::as_slice)
    }

    /// A declared field has a span at its place, with an equal value.
    fn hold(&self, place: &str, field: &Value, at: u64, length: u64) {
        let mut spans = self.at(at, length).to_vec();
        match field["k"].as_str().unwrap() {
            // With its count before it, or without.
            "str" => spans.extend(self.at(at + 2, length - 2)),
            "var" => spans.extend(self.at(at.saturating_sub(4), length + 4)),
            _ => {}
        }
        let within = |s: &&&Value| {
            let o = s["offset"].as_u64().unwrap();
            let l = s["length"].as_u64().unwrap();
            at.saturating_sub(4) <= o && o + l <= at + length
        };
        let opened = field["k"] == "var" && self.flat.iter().filter(within).count() > 1;
        let found: Vec<_> = spans.iter().map(|s| &s["value"]).collect();
        assert!(
            opened || spans.iter().any(|s| equal(field, s)),
            "{place}: {field} at {at}, got {found:?}"
        );
    }
}

fn tile(place: &str, spans: &[Value], start: u64, length: Option<u64>) {
    let mut at = start;
    for span in spans {
        assert_eq!(
            span["offset"].as_u64(),
            Some(at),
            "{place}: the span {} begins elsewhere",
            span["name"]
        );
        at += span["length"].as_u64().unwrap();
    }
    if let Some(length) = length {
        assert_eq!(at, start + length, "{place}: the spans end elsewhere");
    }
}

fn equal(field: &Value, span: &Value) -> bool {
    let value = scalar(&span["value"]);
    match field["k"].as_str().unwrap() {
        "u8" | "u16" | "u32" => equal_number(field["v"].as_u64().unwrap(), value),
        "u64" => *value == field["v"].to_string().as_str(),
        "str" => *value == field["v"],
        _ => equal_bytes(field["hex"].as_str().unwrap(), value) || span["fields"].is_array(),
    }
}

fn scalar(value: &Value) -> &Value {
    value.as_object().and_then(|o| o.get("value")).unwrap_or(value)
}

fn equal_number(want: u64, value: &Value) -> bool {
    match value {
        Value::Bool(b) => u64::from(*b) == want,
        Value::Number(n) => {
            n.as_i64().is_some_and(|n| n == want as i64 || n as u32 == want as u32) || n.is_f64()
        }
        // An address written in text.
        Value::String(s) => s.parse::<std::net::Ipv4Addr>().is_ok_and(|a| {
            let bytes = a.octets();
            [u32::from_le_bytes(bytes), u32::from_be_bytes(bytes)].contains(&(want as u32))
        }),
        _ => false,
    }
}

fn equal_bytes(want: &str, value: &Value) -> bool {
    match value {
        Value::String(s) => {
            let raw = s.replace('-', "");
            raw == want || (s.contains('-') && microsoft(&raw) == want)
        }
        Value::Array(a) => {
            a.iter()
                .map(|n| hex(&(scalar(n).as_u64().unwrap() as u32).to_le_bytes()))
                .collect::<String>()
                == want
        }
        _ => false,
    }
}

/// The bytes of a UUID's text in Microsoft's order, in hex.
fn microsoft(raw: &str) -> String {
    let pair = |i: usize| raw.get(2 * i..2 * i + 2).unwrap_or("");
    [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15].into_iter().map(pair).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
