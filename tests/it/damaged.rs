//! Segments lost, swapped, sent twice, cut and overlapping: every message that was captured whole
//! is found, except behind a hole; none is invented; every payload byte is accounted for. The
//! damage is made here, the same in every run.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{file, records};
use crate::made::{End, Made, ip, run, tcp};
use moulsniff::capture::{Capture, CaptureItem};
use serde_json::Value;

/// Bytes of a segment, as on a network: the captures were made on a loopback interface.
const SEGMENT: usize = 1448;
/// What is never damaged: a direction's handshake.
const KEPT: u32 = 200;

struct Segment {
    way: (End, End),
    numbers: (u32, u32, u8),
    payload: Vec<u8>,
}

/// How often a segment is lost, swapped with the one before, sent twice, cut, or sent again with
/// some bytes before it: in 1,000.
#[derive(Clone, Copy, Default)]
struct Damage {
    loss: u32,
    swap: u32,
    twice: u32,
    cut: u32,
    overlap: u32,
}

/// A direction: the client's port, and the sender.
type Direction = (u16, &'static str);

/// A damaged capture, and what of each direction is nowhere in it.
struct Damaged {
    bytes: Vec<u8>,
    lost: BTreeMap<Direction, Vec<(u64, u64)>>,
}

fn segments(capture: &str) -> Vec<Segment> {
    let mut all = Vec::new();
    let mut capture = Capture::open(file(capture)).unwrap();
    while let Some(item) = capture.next_item().unwrap() {
        let CaptureItem::Frame(frame) = item else { continue };
        let packet = &frame.data[14..];
        let header = usize::from(packet[0] & 15) * 4;
        let total = u16::from_be_bytes([packet[2], packet[3]]);
        let segment = &packet[header..];
        assert_eq!((packet[0] >> 4, packet[9]), (4, 6), "TCP over IPv4");
        let port = |at: usize| u16::from_be_bytes([segment[at], segment[at + 1]]);
        let number = |at: usize| u32::from_be_bytes(segment[at..at + 4].try_into().unwrap());
        let end = |at: usize, port| End { address: packet[at..at + 4].try_into().unwrap(), port };
        let payload = &segment[usize::from(segment[12] >> 4) * 4..usize::from(total) - header];
        let way = (end(12, port(0)), end(16, port(2)));
        let flags = segment[13];
        let mut pieces: Vec<&[u8]> = payload.chunks(SEGMENT).collect();
        if pieces.is_empty() {
            pieces.push(&[]);
        }
        let mut seq = number(4);
        let count = pieces.len();
        for (i, piece) in pieces.into_iter().enumerate() {
            // A FIN belongs to the last piece.
            let flags = if i + 1 < count { flags & !1 } else { flags };
            all.push(Segment { way, numbers: (seq, number(8), flags), payload: piece.to_vec() });
            seq = seq.wrapping_add(piece.len() as u32);
        }
    }
    all
}

fn damaged(segments: &[Segment], damage: Damage, seed: u64) -> Damaged {
    let mut state = seed;
    let mut chance = |in_1000: u32| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % 1000) < u64::from(in_1000)
    };
    let mut first: BTreeMap<(u16, u16), (u32, Direction)> = BTreeMap::new();
    let mut before: BTreeMap<(u16, u16), Vec<u8>> = BTreeMap::new();
    // Frames as they will stand in the capture: the packet, and how much of it is kept.
    let mut frames: Vec<(Vec<u8>, usize)> = Vec::new();
    let mut lost: BTreeMap<Direction, Vec<(u64, u64)>> = BTreeMap::new();
    for Segment { way, numbers, payload } in segments {
        let ports = (way.0.port, way.1.port);
        if numbers.2 & 2 != 0 {
            let direction =
                if numbers.2 & 16 == 0 { (ports.0, "client") } else { (ports.1, "server") };
            first.insert(ports, (numbers.0.wrapping_add(1), direction));
        }
        let (start, direction) = first[&ports];
        let offset = numbers.0.wrapping_sub(start);
        let packet = ip(6, *way, &tcp(*way, *numbers, payload));
        let whole = packet.len();
        if payload.is_empty() || !(KEPT..1 << 31).contains(&offset) {
            frames.push((packet, whole));
            continue;
        }
        let last = before.insert(ports, payload.clone()).unwrap_or_default();
        let mut gone = |from: usize| {
            let range = (u64::from(offset) + from as u64, u64::from(offset) + payload.len() as u64);
            lost.entry(direction).or_default().push(range);
        };
        if chance(damage.loss) {
            gone(0);
            before.remove(&ports);
        } else if chance(damage.cut) {
            let kept = payload.len() / 2;
            gone(kept);
            frames.push((packet, 40 + kept));
            before.remove(&ports);
        } else if chance(damage.overlap)
            && !last.is_empty()
            && offset as usize >= KEPT as usize + last.len()
        {
            // Sent again together with what came before it.
            let numbers = (numbers.0.wrapping_sub(last.len() as u32), numbers.1, numbers.2);
            let packet = ip(6, *way, &tcp(*way, numbers, &[&last[..], payload].concat()));
            let whole = packet.len();
            frames.push((packet, whole));
        } else {
            if chance(damage.twice) {
                frames.push((packet.clone(), whole));
            }
            let at =
                if chance(damage.swap) { frames.len().saturating_sub(1) } else { frames.len() };
            frames.insert(at, (packet, whole));
        }
    }
    let mut made = Made::new();
    for (packet, kept) in &frames {
        made.frame_cut(packet, *kept);
    }
    Damaged { bytes: made.bytes, lost }
}

/// The place of each message, by its direction.
fn told(records: &[Value]) -> BTreeMap<(u64, String, u64), (String, u64)> {
    let mut all = BTreeMap::new();
    for r in records.iter().filter(|r| r["message"].is_string() && r["event"].is_null()) {
        let (client, from) = client_of(r);
        let place = (client, from, r["offset"].as_u64().unwrap());
        all.insert(
            place,
            (r["message"].as_str().unwrap().to_string(), r["length"].as_u64().unwrap()),
        );
    }
    all
}

/// The client's port, and the sender.
fn client_of(record: &Value) -> (u64, String) {
    let from = record["from"].as_str().unwrap();
    let client = record[if from == "client" { "src" } else { "dst" }].as_str().unwrap();
    (client.rsplit_once(':').unwrap().1.parse().unwrap(), from.to_string())
}

/// Holds damaged captures against the whole one; the share of the wholly captured messages that
/// were found, in 10,000.
fn share_found(capture: &str, key: &str, damage: Damage, seeds: std::ops::Range<u64>) -> u64 {
    let whole = records(capture, &[key], &[]);
    let truth = told(&whole);
    let payload = |all: &[Value]| -> BTreeMap<(u64, String), Value> {
        all.iter()
            .filter(|r| r["event"] == "stream_end")
            .map(|r| (client_of(r), r["bytes"].clone()))
            .collect()
    };
    let all_payload = payload(&whole);
    let segments = segments(capture);
    let mut captured = 0;
    let mut found = 0;
    for seed in seeds {
        let damaged = damaged(&segments, damage, seed);
        let (all, _) = run(&damaged.bytes, &["-q", "--keys", key]);
        let mine = told(&all);
        let none = Vec::new();
        for ((client, from, offset), (name, length)) in &truth {
            let side = if from == "client" { "client" } else { "server" };
            let lost = damaged.lost.get(&(*client as u16, side)).unwrap_or(&none);
            if lost.iter().any(|(a, b)| *a < offset + length && *offset < *b) {
                continue;
            }
            captured += 1;
            found += u64::from(
                mine.get(&(*client, from.clone(), *offset)) == Some(&(name.clone(), *length)),
            );
        }
        for (place, (name, length)) in &mine {
            let (true_name, true_length) =
                truth.get(place).unwrap_or_else(|| panic!("{place:?} {name} is invented"));
            assert!(name == true_name && length <= true_length, "{place:?}: {name} is {true_name}");
        }
        for event in all.iter().filter(|r| r["event"] == "undecoded" || r["event"] == "resync") {
            let count = |key: &str| event[key].as_u64().unwrap_or(0);
            let shown = event["bytes"].as_str().map_or(0, |hex| hex.len() as u64 / 2);
            let bytes =
                if event["event"] == "resync" { count("passed_over") } else { count("length") };
            assert_eq!(
                (shown, count("bytes_cut")),
                (bytes.min(4096), bytes.saturating_sub(4096)),
                "{event}"
            );
        }
        let mut ends = BTreeSet::new();
        for (direction, bytes) in payload(&all) {
            let of = |key: &str| bytes[key].as_u64().unwrap();
            let sum = of("explained") + of("opaque") + of("undecoded") + of("closed");
            assert_eq!(of("payload"), sum, "{direction:?}: every byte became something");
            let side = if direction.1 == "client" { "client" } else { "server" };
            let lost: u64 = damaged
                .lost
                .get(&(direction.0 as u16, side))
                .unwrap_or(&none)
                .iter()
                .map(|(a, b)| b - a)
                .sum();
            let before = all_payload[&direction]["payload"].as_u64().unwrap();
            assert_eq!(of("payload"), before - lost, "{direction:?}: what was captured");
            // Bytes behind the last captured one leave no trace.
            let at_end = damaged
                .lost
                .get(&(direction.0 as u16, side))
                .is_some_and(|all| all.iter().any(|l| l.1 == before));
            assert!(
                of("lost") == lost || at_end && of("lost") < lost,
                "{direction:?}: {} of {lost}",
                of("lost")
            );
            ends.insert(direction);
        }
        assert!(ends.iter().eq(all_payload.keys()), "every direction is told of");
    }
    let share = 10_000 * found / captured;
    println!("{capture}: {found} of {captured}");
    share
}

#[test]
fn wholly_captured_messages_are_found_at_every_rate_of_loss() {
    for (capture, key) in [
        ("captures/moul/full_dirtsand.pcapng", "keys/dirtsand.ini"),
        ("captures/moul/nagus.pcapng", "keys/nagus.ini"),
    ] {
        for (loss, floor) in [(1, 9_900), (10, 9_700), (50, 9_000), (200, 0)] {
            let share = share_found(capture, key, Damage { loss, ..Damage::default() }, 1..4);
            assert!(share >= floor, "{capture}: {share} at a loss of {loss} in 1,000");
        }
    }
}

#[test]
fn disorder_and_repetition_cost_nothing() {
    let damage = Damage { swap: 100, twice: 100, overlap: 100, ..Damage::default() };
    assert_eq!(
        share_found("captures/moul/full_dirtsand.pcapng", "keys/dirtsand.ini", damage, 1..3),
        10_000
    );
}

#[test]
fn all_kinds_of_damage_together_leave_most_of_it() {
    let damage = Damage { loss: 10, swap: 50, twice: 50, cut: 10, overlap: 50 };
    let share =
        share_found("captures/moul/full_dirtsand.pcapng", "keys/dirtsand.ini", damage, 1..4);
    assert!(share >= 9_500, "{share}");
}
