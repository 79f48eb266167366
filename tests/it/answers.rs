//! Which questions the program answers beyond fields: who a client was, what was refused, what was
//! never answered, how a stream ended.

use serde_json::Value;

fn printed(arguments: &[&str]) -> String {
    let mut program = crate::common::program();
    let output = program
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(arguments)
        .arg("--quiet")
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(arguments: &[&str]) -> Vec<Value> {
    let lines = printed(&[arguments, &["--json"]].concat());
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const FULL: [&str; 3] = ["captures/moul/full_dirtsand.pcapng", "--keys", "keys/dirtsand.ini"];

#[test]
fn a_refused_player_or_age_does_not_count_as_the_clients_own() {
    let sessions = json(&[&["sessions"], &FULL[..]].concat());
    let main =
        sessions.iter().find(|session| session["who"]["player_name"] == "Ávätar Øne").unwrap();
    assert_eq!(main["who"]["player_id"], 10124);
    assert!(
        main["refused"].as_array().unwrap().iter().any(|who| who["player_id"] == 999_999),
        "{main}"
    );
    assert!(main.get("earlier").is_none(), "{main}");
    for session in &sessions {
        for place in session["places"].as_array().into_iter().flatten() {
            assert_eq!(place["name"], "city", "{session}");
        }
        for stream in session["streams"].as_array().unwrap() {
            assert_eq!(stream["how"], "fin", "{stream}");
        }
    }
}

#[test]
fn a_direction_says_how_it_ended() {
    let full = json(&[&FULL[..], &["-Y", "event == stream_end"]].concat());
    assert!(full.iter().all(|record| record["end"] == "fin"), "{full:?}");
    let cut =
        json(&["captures/moul/midstream.pcap", "--keys", "keys/dirtsand.ini", "-Y", "end == open"]);
    let all = json(&[
        "captures/moul/midstream.pcap",
        "--keys",
        "keys/dirtsand.ini",
        "-Y",
        "event == stream_end",
    ]);
    let open = |records: &[Value]| records.iter().filter(|record| record["end"] == "open").count();
    assert_eq!(cut.len(), open(&all));
}

#[test]
fn names_and_refusals_do_not_depend_on_filters_or_threads() {
    let whole = json(&FULL);
    for threads in ["1", "3"] {
        for filter in ["names", "refused", "from == server and message"] {
            let some = json(&[&FULL[..], &["--threads", threads, "-Y", filter]].concat());
            assert!(!some.is_empty(), "{filter}");
            for record in some {
                let number = record["record"].as_u64().unwrap() as usize;
                assert_eq!(Some(&record), whole.get(number - 1), "{filter}, {threads} threads");
            }
        }
    }
}

#[test]
fn a_name_is_the_one_that_held_at_the_record() {
    let whole = json(&FULL);
    for record in &whole {
        for (path, called) in record["names"].as_object().into_iter().flatten() {
            assert!(path.starts_with("fields."), "{path}");
            assert!(called["record"].as_u64() <= record["record"].as_u64(), "{record}");
        }
    }
}
