//! `moulsniff export chat`: who said what to whom, in the order of the capture.

use serde_json::Value;

use crate::common::{file, records};

fn chat(capture: &str, more: &[&str]) -> Vec<Value> {
    let mut program = crate::common::program();
    program.current_dir(file("")).args(["export", "chat", capture, "--json", "--quiet"]).args(more);
    let output = program.output().unwrap();
    assert!(output.status.success(), "{capture}: {}", String::from_utf8_lossy(&output.stderr));
    output
        .stdout
        .split(|b| *b == b'\n')
        .filter(|l| !l.is_empty())
        .map(|l| serde_json::from_slice(l).unwrap())
        .collect()
}

/// The text of each message that says something, by its record.
fn said(capture: &str, message: &str, path: &str) -> Vec<(u64, String)> {
    let all = records(capture, &[], &[]);
    // What the sender took for lost and sent again is said once.
    let own =
        all.iter().filter(|record| record["message"] == message && record["sent_again"].is_null());
    let text =
        own.filter_map(|r| Some((r["record"].as_u64()?, r.pointer(path)?.as_str()?.to_string())));
    text.filter(|(_, text)| !text.is_empty()).collect()
}

#[test]
fn local_chat_and_instant_messages() {
    let capture = "captures/secondlife/opensim.pcapng.gz";
    let lines = chat(capture, &["--copies"]);
    for (message, path) in [
        ("ChatFromSimulator", "/fields/ChatData/Message"),
        ("ChatFromViewer", "/fields/ChatData/Message"),
        ("ImprovedInstantMessage", "/fields/MessageBlock/Message"),
    ] {
        let own = lines.iter().filter(|line| line["message"] == message);
        let have: Vec<(u64, String)> = own
            .map(|line| {
                (line["record"].as_u64().unwrap(), line["text"].as_str().unwrap().to_string())
            })
            .collect();
        let want: Vec<(u64, String)> = said(capture, message, path);
        assert!(!have.is_empty());
        assert_eq!(have, want, "{message}");
    }
    let im = lines.iter().find(|line| line["text"] == "hi there over IM").unwrap();
    assert_eq!(
        (&im["to"][0]["name"], &im["kind"][0]),
        (&"Bob Smith".into(), &"NOTHING_SPECIAL".into())
    );
    let records: Vec<u64> = lines.iter().map(|line| line["record"].as_u64().unwrap()).collect();
    assert!(records.is_sorted());
}

#[test]
fn what_a_server_passes_on_is_said_once() {
    let capture = "captures/intermud3/i3_coffeemud.pcapng";
    let once = chat(capture, &[]);
    let all = chat(capture, &["--copies"]);
    assert!(once.len() < all.len());
    assert!(once.iter().all(|line| line["relays"].is_null()));
    let hug = once.iter().find(|line| line["text"] == "$N hugs $O.").unwrap();
    assert_eq!(
        (&hug["from"]["name"], &hug["to"][0]["name"]),
        (&"Bob@MudBeta".into(), &"Alice".into())
    );
    assert_eq!(hug["channel"], "labchan");
    let tell = once.iter().find(|line| line["text"] == "hello bob").unwrap();
    assert_eq!(tell["to"][0]["name"], "bob@MudBeta");
    let mail = once.iter().find(|line| line["text"] == "Body of the mail").unwrap();
    let to = mail["to"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect::<Vec<_>>();
    assert_eq!(to, ["bob@MudBeta", "carol@MudBeta"]);
    for copy in all.iter().filter(|line| line["relays"].is_u64()) {
        let first = all.iter().find(|line| line["record"] == copy["relays"]).unwrap();
        assert_eq!(first["text"], copy["text"]);
    }
}

#[test]
fn chat_within_an_age_names_speaker_and_listeners() {
    let lines = chat("captures/moul/full_dirtsand.pcapng", &["--keys", "keys/dirtsand.ini"]);
    let directed = lines.iter().find(|line| line["to"].is_array()).unwrap();
    assert_eq!(directed["text"], "Shorah! Привет 你好");
    assert_eq!(directed["from"]["name"], "User Ñame");
    assert!(directed["kind"].as_array().unwrap().iter().any(|kind| kind == "kPrivateMsg"));
    let mut seen = std::collections::BTreeSet::new();
    assert!(lines.iter().all(|line| seen.insert(line["record"].as_u64())), "one line for each");
}

#[test]
fn what_is_said_cannot_move_a_cursor() {
    let mut program = crate::common::program();
    program.current_dir(file("")).args([
        "export",
        "chat",
        "captures/secondlife/every_message.pcapng.gz",
        "--quiet",
        "--copies",
    ]);
    let output = program.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().count() > 5);
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'));
    assert!(text.lines().all(|line| line.starts_with("20")), "each utterance is one line");
}
