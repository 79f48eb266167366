//! `stats`: what it counts against what the records say, and how its tables look.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::common::{file, records, scratch};

const DIRTSAND: &str = "captures/moul/full_dirtsand.pcapng";
const OPENSIM: &str = "captures/secondlife/opensim.pcapng.gz";
const KEYS: &[&str] = &["keys/dirtsand.ini"];

fn printed(words: &[&str]) -> String {
    let mut program = crate::common::program();
    let output =
        program.current_dir(file("")).arg("stats").args(words).arg("--quiet").output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn stats(words: &[&str]) -> Value {
    serde_json::from_str(&printed(&[words, &["--json"]].concat())).unwrap()
}

/// The nearest rank.
fn percentile(sorted: &[f64], percent: usize) -> f64 {
    sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1]
}

#[test]
fn replies_are_those_of_the_records() {
    let all = records(DIRTSAND, KEYS, &[]);
    let by_record: BTreeMap<u64, &Value> =
        all.iter().map(|r| (r["record"].as_u64().unwrap(), r)).collect();
    // A request with several replies is answered by the last one.
    let last: BTreeMap<u64, f64> = all
        .iter()
        .filter_map(|r| Some((r["reply_to"].as_u64()?, r["elapsed_ms"].as_f64()?)))
        .collect();
    let mut elapsed: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (request, milliseconds) in last {
        elapsed
            .entry(by_record[&request]["message"].as_str().unwrap())
            .or_default()
            .push(milliseconds);
    }
    let found = stats(&[DIRTSAND, "--keys", KEYS[0]]);
    let mut compared = 0;
    for (message, figures) in found["replies"].as_object().unwrap() {
        let sent = all.iter().filter(|r| r["message"] == message.as_str()).count();
        assert_eq!(figures["count"], sent, "{message}");
        // A part of a file does not say whether it is the last one.
        if message == "Cli2File_FileDownloadRequest" {
            continue;
        }
        let mut times = elapsed.remove(message.as_str()).unwrap_or_default();
        times.sort_by(f64::total_cmp);
        assert_eq!(figures["answered"], times.len(), "{message}");
        let near = |key: &str, exact: f64| {
            let said = figures["latency_ms"][key].as_f64().unwrap();
            assert!((said - exact).abs() < 0.0011, "{message} {key}: {said}, not {exact}");
        };
        near("p50", percentile(&times, 50));
        near("p95", percentile(&times, 95));
        near("max", *times.last().unwrap());
        let slowest = figures["slowest"].as_u64().unwrap();
        assert_eq!(by_record[&slowest]["message"], message.as_str());
        compared += 1;
    }
    assert!(compared > 25, "{compared}");
    let refused: u64 = found["refused"]["Auth2Cli_AcctLoginReply"]
        .as_object()
        .unwrap()
        .values()
        .map(|n| n.as_u64().unwrap())
        .sum();
    assert_eq!(refused, 1);
    assert_eq!(found["replies"]["Cli2Auth_AcctLoginRequest"]["refused"], 1);
}

#[test]
fn problems_are_counted_by_severity_and_text() {
    let all = records(DIRTSAND, KEYS, &[]);
    let problems = || all.iter().filter_map(|r| r["problems"].as_array()).flatten();
    let found = stats(&[DIRTSAND, "--keys", KEYS[0]]);
    for severity in ["error", "warning", "note"] {
        let own = problems().filter(|p| p["severity"] == severity).count() as u64;
        assert_eq!(found["severities"][severity], own);
        let texts = found["problems_by_severity"][severity].as_object().unwrap();
        assert_eq!(texts.values().map(|n| n.as_u64().unwrap()).sum::<u64>(), own);
    }
    let worst = found["problems"].as_object().unwrap().keys().next().unwrap();
    assert_eq!(problems().find(|p| p["text"] == worst.as_str()).unwrap()["severity"], "warning");
    let text = printed(&[DIRTSAND, "--keys", KEYS[0]]);
    assert!(text.find("\nwarnings\n").unwrap() < text.find("\nbytes").unwrap(), "{text}");
    assert!(text.find("\nbytes").unwrap() < text.find("\nnotes\n").unwrap(), "{text}");
}

#[test]
fn span_and_rates_are_those_of_the_frames() {
    let all = records(DIRTSAND, KEYS, &[]);
    let found = stats(&[DIRTSAND, "--keys", KEYS[0]]);
    let first = found["span"]["first"].as_str().unwrap();
    let last = found["span"]["last"].as_str().unwrap();
    assert!(
        first <= all[0]["time"].as_str().unwrap()
            && last >= all.last().unwrap()["time"].as_str().unwrap()
    );
    let seconds = found["span"]["duration_ms"].as_f64().unwrap() / 1000.0;
    assert!((found["rates"]["frames_per_s"].as_f64().unwrap() * seconds - 732.0).abs() < 0.1);
    let mut by_second: BTreeMap<&str, u64> = BTreeMap::new();
    for record in all.iter().filter(|r| r["message"].is_string()) {
        *by_second
            .entry(record["time"].as_str().unwrap().split_once('.').unwrap().0)
            .or_default() += 1;
    }
    let busiest = &found["rates"]["busiest_second"];
    assert_eq!(busiest["messages"], *by_second.values().max().unwrap());
    assert_eq!(
        by_second[busiest["time"].as_str().unwrap().trim_end_matches('Z')],
        busiest["messages"]
    );
}

#[test]
fn a_filtered_request_keeps_its_reply() {
    let whole = stats(&[DIRTSAND, "--keys", KEYS[0]]);
    let some = stats(&[DIRTSAND, "--keys", KEYS[0], "-Y", "message == Cli2Auth_AcctLoginRequest"]);
    assert_eq!(some["replies"].as_object().unwrap().len(), 1);
    assert_eq!(
        some["replies"]["Cli2Auth_AcctLoginRequest"],
        whole["replies"]["Cli2Auth_AcctLoginRequest"]
    );
    assert_eq!(some["refused"], serde_json::json!({}), "the replies are not counted themselves");
}

#[test]
fn an_acknowledgement_is_no_reply() {
    let found = stats(&[OPENSIM]);
    let parcels = &found["replies"]["ParcelPropertiesRequest"];
    // OpenSim replies over HTTP, so the acknowledgement is all that the circuit has of it.
    assert_eq!((&parcels["answered"], &parcels["unanswered"]), (&0.into(), &0.into()), "{parcels}");
    let told = printed(&[OPENSIM, "-Y", "message == ParcelPropertiesRequest"]);
    assert!(
        told.contains(&format!(
            "\n{} have no reply; to be acknowledged is enough",
            parcels["count"]
        )),
        "{told}"
    );
    assert!(!told.contains("not captured"), "{told}");
}

#[test]
fn every_row_fits_80_columns_and_no_column_is_all_zeros() {
    let captures = [
        (DIRTSAND, "keys/dirtsand.ini"),
        (OPENSIM, "keys/dirtsand.ini"),
        ("captures/secondlife/every_message.pcapng.gz", "keys/dirtsand.ini"),
        ("captures/moul/kind_game.pcap", "keys/nagus.ini"),
        ("captures/moul/mangled_gaps.pcap.gz", "keys/dirtsand.ini"),
        ("captures/intermud3/i3_coffeemud.pcapng", "keys/dirtsand.ini"),
        ("captures/intermud3/i3_edge_small.pcapng", "keys/dirtsand.ini"),
        ("captures/ouro/coh_tcp.pcap", "keys/dirtsand.ini"),
    ];
    for (capture, keys) in captures {
        let text = printed(&[capture, "--keys", keys]);
        // Conclusions, which come first, are sentences.
        let tables = text.lines().skip_while(|line| !line.contains(" frames in "));
        for line in tables {
            assert!(line.chars().count() <= 80, "{capture}: {line}");
        }
        let bytes = text.split("\n\n").find(|part| part.starts_with("bytes")).unwrap();
        let rows: Vec<Vec<&str>> =
            bytes.lines().map(|line| line.split_whitespace().collect()).collect();
        for column in 1..rows[0].len() {
            assert!(
                rows.iter().skip(1).any(|row| row[column] != "0"),
                "{capture}: {}",
                rows[0][column]
            );
        }
    }
    let closed = printed(&[DIRTSAND, "--keys", "keys/nagus.ini"]);
    assert!(
        closed.lines().take(8).any(|line| line.contains("166965 not opened by any key")),
        "{closed}"
    );
    let circuits = printed(&[OPENSIM]);
    assert!(circuits.contains("mean ack ms") && !circuits.contains("microseconds"), "{circuits}");
}

#[test]
fn a_request_that_hangs_stands_first() {
    // The capture ends behind the client's request to join an age.
    let all = records(DIRTSAND, KEYS, &[]);
    let join = all.iter().find(|r| r["message"] == "Cli2Game_JoinAgeRequest").unwrap();
    let cut = scratch("hangs.pcap");
    first_frames(join["frame"].as_u64().unwrap(), &cut);
    let name = cut.to_str().unwrap();
    let found = stats(&[name, "--keys", KEYS[0]]);
    let (first, figures) = found["replies"].as_object().unwrap().iter().next().unwrap();
    assert_eq!((first.as_str(), &figures["unanswered"]), ("Cli2Game_JoinAgeRequest", &1.into()));
    let text = printed(&[name, "--keys", KEYS[0]]);
    let rows: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("requests ")).collect();
    assert!(
        rows[0].ends_with("unanswered") && rows[2].starts_with("Cli2Game_JoinAgeRequest"),
        "{text}"
    );
}

/// Writes the first frames of the capture with a shard as a pcap.
fn first_frames(count: u64, to: &std::path::Path) {
    let mut capture = moulsniff::capture::Capture::open(file(DIRTSAND)).unwrap();
    let mut out = Vec::new();
    let mut link = None;
    while let Some(frame) = capture.next_frame().unwrap().filter(|frame| frame.number <= count) {
        if link.replace(frame.link).is_none() {
            out.extend(
                [0xa1b2_3c4d_u32, 4 << 16 | 2, 0, 0, 1 << 18, frame.link.into()]
                    .map(u32::to_le_bytes)
                    .concat(),
            );
            out.splice(4..8, [2, 0, 4, 0]);
        }
        let length = frame.data.len() as u32;
        out.extend(
            [frame.time.seconds as u32, frame.time.nanos, length, frame.wire_len]
                .map(u32::to_le_bytes)
                .concat(),
        );
        out.extend_from_slice(frame.data);
    }
    std::fs::write(to, out).unwrap();
}
