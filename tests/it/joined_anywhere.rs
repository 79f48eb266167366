//! Captures that begin later: streams whose beginning is missing are recognised all the same, and
//! what they say is found.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::cut::read;
use crate::made::run;

/// A pcapng without its first packets.
fn behind(whole: &[u8], frames: usize) -> Vec<u8> {
    let word = |at: usize| u32::from_le_bytes(whole[at..at + 4].try_into().unwrap());
    let (mut at, mut seen, mut out) = (0, 0, Vec::new());
    while at + 8 <= whole.len() {
        let end = at + word(at + 4) as usize;
        let packet = matches!(word(at), 3 | 6);
        seen += usize::from(packet);
        if !packet || seen > frames {
            out.extend(&whole[at..end]);
        }
        at = end;
    }
    out
}

/// A message: its frame and who sent it (a datagram may hold several, a segment too), with its
/// name.
type Told = BTreeMap<(u64, String, String), usize>;

/// Of a stream with fewer messages left, nobody can say what it is.
const FEW: usize = 3;

/// The messages of records from streams that `counts` names, as they are when `frames` come before
/// the capture. The first one of each direction is left out: it may have begun before the capture.
fn told(records: &[Value], frames: u64, counts: impl Fn(&str) -> bool) -> Told {
    let mut streams: BTreeMap<String, Vec<(u64, String, String)>> = BTreeMap::new();
    let mut directions = BTreeSet::new();
    for record in records.iter().filter(|record| record["event"].is_null()) {
        let frame = record["frame"].as_u64().unwrap();
        let (src, dst) = (record["src"].to_string(), record["dst"].to_string());
        let stream = format!("{} {}", src.as_str().min(&dst), src.as_str().max(&dst));
        if frame <= frames || !counts(&stream) {
            continue;
        }
        if record["transport"] == "tcp" && directions.insert((src.clone(), dst)) {
            continue;
        }
        let message = record["message"].as_str().unwrap().to_string();
        streams.entry(stream).or_default().push((frame - frames, src, message));
    }
    let mut told = Told::new();
    for message in streams.into_values().filter(|stream| stream.len() >= FEW).flatten() {
        *told.entry(message).or_default() += 1;
    }
    told
}

/// Cuts the beginning of a capture off at `places` places. Returns how many of the messages behind
/// them are told, and how many there are.
fn check(capture: &str, places: usize) -> (usize, usize) {
    let bytes = read(&format!("captures/{capture}"));
    let whole = run(&bytes, &["-q"]).0;
    let last = whole.iter().filter_map(|record| record["frame"].as_u64()).max().unwrap() as usize;
    let (mut found, mut all) = (0, 0);
    for place in 1..=places {
        let frames = last * place / (places + 1);
        let joined: BTreeSet<String> = whole
            .iter()
            .filter(|record| record["frame"].as_u64().unwrap() <= frames as u64)
            .map(|record| {
                let (src, dst) = (record["src"].to_string(), record["dst"].to_string());
                format!("{} {}", src.as_str().min(&dst), src.as_str().max(&dst))
            })
            .collect();
        let wanted = told(&whole, frames as u64, |stream| joined.contains(stream));
        let cut = run(&behind(&bytes, frames), &["-q"]).0;
        let mut here = Told::new();
        for record in cut.iter().filter(|record| record["event"].is_null()) {
            let key = (
                record["frame"].as_u64().unwrap(),
                record["src"].to_string(),
                record["message"].as_str().unwrap().to_string(),
            );
            *here.entry(key).or_default() += 1;
        }
        let count = |(message, times): (&(u64, String, String), &usize)| {
            here.get(message).map_or(0, |told| *told.min(times))
        };
        let (told, there): (usize, usize) = (wanted.iter().map(count).sum(), wanted.values().sum());
        if told < there {
            println!("{capture} behind frame {frames}: {told} of {there}");
        }
        found += told;
        all += there;
    }
    println!("{capture}: {found} of {all}");
    assert!(all > 0, "{capture}");
    (found, all)
}

/// At least so many of a hundred messages are told.
fn at_least(percent: usize, captures: &[(&str, usize)]) {
    let each: Vec<(usize, usize)> =
        captures.iter().map(|(capture, places)| check(capture, *places)).collect();
    let (found, all) = each.iter().fold((0, 0), |sum, each| (sum.0 + each.0, sum.1 + each.1));
    assert!(found * 100 >= all * percent, "{captures:?}: {found} of {all}");
}

#[test]
fn moul_in_clear() {
    at_least(99, &[("moul/clear.pcapng.gz", 20)]);
}

#[test]
fn circuits_of_second_life() {
    at_least(100, &[("secondlife/opensim.pcapng.gz", 12)]);
}

#[test]
fn muds() {
    at_least(100, &[("intermud3/i3_coffeemud.pcapng", 20)]);
}

#[test]
fn links_of_city_of_heroes() {
    at_least(97, &[("ouro/coh_segs_udp.pcapng", 20)]);
    // Links of a few datagrams, of which two are encrypted: behind their opening nothing tells.
    at_least(85, &[("ouro/coh_seed_udp.pcapng", 20)]);
}
