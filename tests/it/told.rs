//! What `sessions` tells of MOUL's captures: who it was, where it stopped, what was refused, and
//! whose streams are whose.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::cut::{frame_ends, read};

use crate::common::scratch;

const MOSS: [&str; 3] =
    ["keys/moss_auth_key.der", "keys/moss_game_key.der", "keys/moss_gatekeeper_key.der"];

fn printed(command: &[&str], keys: &[&str]) -> String {
    let mut program = crate::common::program();
    program.current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null()).args(command).arg("-q");
    for key in keys {
        program.args(["--keys", key]);
    }
    let output = program.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn sessions(capture: &str, keys: &[&str]) -> Vec<Value> {
    let text = printed(&["sessions", capture, "--json", "--story"], keys);
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn list(session: &Value, key: &str, part: &str) -> Vec<String> {
    let all = session[key].as_array().into_iter().flatten();
    all.map(|each| each[part].as_str().unwrap_or_default().to_string()).collect()
}

#[test]
fn streams_without_an_account_join_the_client_that_continues_soonest_and_a_refused_login_its_account()
 {
    let all = sessions("captures/moul/full_dirtsand.pcapng", &["keys/dirtsand.ini"]);
    let names: Vec<&Value> = all.iter().map(|session| &session["who"]["account_name"]).collect();
    assert_eq!(names, ["player1@lab.test", "player2@lab.test", "plainuser"]);
    let [one, two, plain] = &all[..] else { panic!("{} sessions", all.len()) };
    assert_eq!(list(one, "streams", "service"), ["gatekeeper", "file", "auth", "game", "auth"]);
    assert_eq!(list(one, "streams", "by"), ["time", "time", "", "", ""]);
    assert_eq!(list(two, "streams", "by"), ["", ""]);
    assert_eq!(
        one["refused"],
        json!([{ "player_id": 999_999 }]),
        "who it wanted to be, and never was"
    );
    assert_eq!(one["who"]["player_id"], 10124);
    assert_eq!(
        list(one, "places", "name"),
        ["city"],
        "and not NoSuchAge, which was only asked for"
    );
    assert_eq!(plain["refusals"][0]["text"], "log in as plainuser");
    assert_eq!(plain["refusals"][0]["refused"], "kNetErrAuthenticationFailed");
}

#[test]
fn a_story_is_some_dozens_of_lines_and_tells_replies_with_requests() {
    let captures: [(&str, &[&str]); 4] = [
        ("captures/moul/full_dirtsand.pcapng", &["keys/dirtsand.ini"]),
        ("captures/moul/moss_full.pcapng", &MOSS),
        ("captures/moul/nagus.pcapng", &["keys/nagus.ini"]),
        ("captures/moul/clear.pcapng.gz", &[]),
    ];
    for (capture, keys) in captures {
        for session in sessions(capture, keys) {
            let story = list(&session, "story", "text");
            assert!(!story.is_empty() && story.len() < 80, "{capture}: {} lines", story.len());
            assert!(
                story.iter().all(|text| !text.starts_with("log in: ") && !text.is_empty()),
                "{story:?}"
            );
        }
    }
    let one = &sessions(captures[0].0, captures[0].1)[0];
    let find = |text: &str| {
        one["story"].as_array().unwrap().iter().find(|line| line["text"] == text).unwrap().clone()
    };
    assert_eq!(find("play as 999999")["refused"], "kNetErrPlayerNotFound");
    assert!(find("join instance city as \u{c1}v\u{e4}tar \u{d8}ne")["answered_ms"].is_number());
    assert_eq!(find("download dat/exact32k.bin")["times"], 2);
    assert_eq!(find("download missing\\file.gz")["refused"], "kNetErrFileNotFound");
    assert!(
        find("say \"Shorah! \u{41f}\u{440}\u{438}\u{432}\u{435}\u{442} \u{4f60}\u{597d}\"")
            ["record"]
            .is_number()
    );
}

#[test]
fn a_renamed_player_and_another_avatar_are_what_was_before() {
    let moss = sessions("captures/moul/moss_full.pcapng", &MOSS);
    let one = moss.iter().find(|session| session["who"]["player_id"] == 230).unwrap();
    assert_eq!(one["who"]["player_name"], "N\u{e4}m\u{e9}");
    assert_eq!(one["earlier"], json!([{ "player_name": "Avatar One", "player_id": 230 }]));
    let nagus = &sessions("captures/moul/nagus.pcapng", &["keys/nagus.ini"])[0];
    assert!(
        nagus["earlier"].as_array().unwrap().iter().any(|who| who["player_name"] == "Player Two"),
        "{nagus}"
    );
    assert!(list(nagus, "story", "text").iter().any(|text| text == "game connection reset"));
}

#[test]
fn a_capture_cut_after_a_join_shows_where_it_stopped() {
    let capture = read("captures/moul/full_dirtsand.pcapng");
    let join = printed(
        &[
            "captures/moul/full_dirtsand.pcapng",
            "--columns",
            "frame",
            "-Y",
            "message == Cli2Game_JoinAgeRequest",
        ],
        &["keys/dirtsand.ini"],
    );
    let frame: usize = join.lines().nth(1).unwrap().parse().unwrap();
    let path = scratch("told.pcapng");
    std::fs::write(&path, &capture[..frame_ends(&capture)[frame - 1]]).unwrap();
    let name = path.to_str().unwrap();
    let all = sessions(name, &["keys/dirtsand.ini"]);
    let stuck: Vec<&Value> =
        all.iter().filter(|session| session["unanswered"].is_array()).collect();
    assert_eq!(stuck.len(), 1);
    assert_eq!(stuck[0]["unanswered"].as_array().unwrap().len(), 1);
    assert_eq!(stuck[0]["unanswered"][0]["message"], "Cli2Game_JoinAgeRequest");
    assert_eq!(stuck[0]["last_message"]["message"], "Cli2Game_JoinAgeRequest");
    assert!(stuck[0].get("places").is_none(), "it never entered");
    let text = printed(&["sessions", name], &["keys/dirtsand.ini"]);
    let line = text.lines().find(|line| line.starts_with("  stuck")).unwrap();
    assert!(
        line.contains("join instance city as \u{c1}v\u{e4}tar \u{d8}ne: NEVER ANSWERED"),
        "{line}"
    );
    std::fs::remove_file(path).unwrap();
}

#[test]
fn sessions_stop_after_some_records() {
    let all = printed(
        &["sessions", "captures/moul/full_dirtsand.pcapng", "-c", "100", "--json"],
        &["keys/dirtsand.ini"],
    );
    let last = all
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["last_record"].as_u64().unwrap());
    assert_eq!(last.max(), Some(100));
}
