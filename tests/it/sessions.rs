//! What `--session` and the key `session` keep: the records of the streams that `sessions` lists
//! for a session, in every command.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::Value;

use super::made::{Made, end};

use crate::common::scratch;

const FULL: [&str; 3] = ["captures/moul/full_dirtsand.pcapng", "--keys", "keys/dirtsand.ini"];

fn run(arguments: &[&str]) -> Output {
    let mut program = crate::common::program();
    program
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .args(arguments)
        .arg("--quiet");
    program.output().unwrap()
}

fn printed(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(arguments: &[&str]) -> Vec<Value> {
    let lines = printed(&[arguments, &["--json"]].concat());
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The arguments for a command on `FULL`, behind its own.
fn full<'a>(command: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [command, &FULL[..], more].concat()
}

fn stream_of(record: &Value) -> (String, u64) {
    (record["transport"].as_str().unwrap().to_string(), record["stream"].as_u64().unwrap())
}

/// The streams of each session, in the order of their numbers.
fn streams(sessions: &[Value]) -> Vec<BTreeSet<(String, u64)>> {
    let own =
        |session: &Value| session["streams"].as_array().unwrap().iter().map(stream_of).collect();
    sessions.iter().map(own).collect()
}

#[test]
fn a_session_has_the_records_of_its_streams_and_each_record_has_one_session() {
    let whole = json(&FULL);
    let sessions = streams(&json(&full(&["sessions"], &[])));
    assert!(sessions.len() >= 3, "{sessions:?}");
    let mut sum = 0;
    for (number, own) in (1..).zip(&sessions) {
        let number = number.to_string();
        let wanted: Vec<&Value> =
            whole.iter().filter(|record| own.contains(&stream_of(record))).collect();
        sum += wanted.len();
        assert_eq!(json(&full(&[], &["--session", &number])).iter().collect::<Vec<_>>(), wanted);
        let filter = format!("session == {number}");
        assert_eq!(
            json(&full(&[], &["-Y", &filter, "--threads", "3"])).iter().collect::<Vec<_>>(),
            wanted
        );
    }
    assert_eq!(sum, whole.len(), "every record belongs to one session");
}

/// `sessions` looks into all messages. For the column, only those that may tell something are
/// looked into.
#[test]
fn the_column_is_the_session_of_each_stream() {
    let others = [
        "captures/moul/moss_full.pcapng",
        "captures/moul/midstream.pcap",
        "captures/moul/mangled_gaps.pcap.gz",
        "captures/moul/synthetic_all.pcap.gz",
        "captures/moul/nagus.pcapng",
        "captures/secondlife/every_message.pcapng.gz",
        "captures/secondlife/opensim.pcapng.gz",
        "captures/intermud3/i3_coffeemud.pcapng",
        "captures/ouro/coh_segs_udp.pcapng",
    ];
    for capture in others.into_iter().chain([FULL[0]]) {
        let with = |command: &[&'static str]| [command, &[capture], &FULL[1..]].concat();
        let sessions = streams(&json(&with(&["sessions"])));
        let table = printed(&[&with(&[])[..], &["--columns", "session,transport,stream"]].concat());
        let mut seen = 0;
        for line in table.lines().skip(1) {
            let cells: Vec<&str> = line.split('\t').collect();
            seen += 1;
            // What comes behind a stream's session, such as its end, may be in none.
            let Ok(number) = cells[0].parse::<usize>() else { continue };
            let stream = (cells[1].to_string(), cells[2].parse().unwrap());
            assert!(sessions[number - 1].contains(&stream), "{capture}: {line}");
        }
        assert_eq!(seen, json(&with(&[])).len(), "{capture}");
    }
}

#[test]
fn a_filter_narrows_a_session_further() {
    let both = json(&full(&[], &["--session", "3", "-Y", "refused or event == key"]));
    let one = json(&full(&[], &["-Y", "session == 3 and (refused or event == key)"]));
    assert!(!one.is_empty());
    assert_eq!(both, one);
    let lines = printed(&full(&[], &["--session", "3", "--oneline"]));
    assert_eq!(lines.lines().count(), json(&full(&[], &["--session", "3"])).len());
    assert_eq!(json(&full(&[], &["--session", "3", "-c", "5"])).len(), 5);
}

#[test]
fn other_commands_know_the_same_session() {
    let own = json(&full(&[], &["--session", "3"]));
    let sessions = json(&full(&["sessions"], &[]));
    for asked in [full(&["sessions", "3"], &[]), full(&["sessions"], &["--session", "3"])] {
        assert_eq!(json(&asked), &sessions[2..3]);
    }
    let stats = json(&full(&["stats"], &["--session", "3"])).remove(0);
    assert_eq!(stats, json(&full(&["stats"], &["-Y", "session == 3"])).remove(0));
    assert_eq!(stats["streams"], streams(&sessions)[2].len());
    let chat = json(&full(&["export", "chat"], &["--session", "3"]));
    let numbers: BTreeSet<u64> =
        own.iter().map(|record| record["record"].as_u64().unwrap()).collect();
    let all = json(&full(&["export", "chat"], &[]));
    let kept: Vec<&Value> =
        all.iter().filter(|line| numbers.contains(&line["record"].as_u64().unwrap())).collect();
    assert_eq!(chat.iter().collect::<Vec<_>>(), kept);
}

#[test]
fn files_that_commands_write_hold_the_session_alone() {
    let folder = scratch("session");
    std::fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let own = json(&full(&[], &["--session", "3"]));

    let messages = path("messages.pcapng");
    printed(&full(&["export", "messages"], &["--session", "3", "-o", &messages]));
    let names = |records: &[Value]| -> Vec<Value> {
        records
            .iter()
            .map(|record| record["message"].clone())
            .filter(|name| !name.is_null())
            .collect()
    };
    assert_eq!(names(&json(&[&messages])), names(&own));

    let vault = path("vault.json");
    printed(&full(&["export", "vault"], &["--session", "3", "-o", &vault]));
    let filtered = path("filtered.json");
    printed(&full(&["export", "vault"], &["-Y", "session == 3", "-o", &filtered]));
    assert_eq!(std::fs::read(&vault).unwrap(), std::fs::read(&filtered).unwrap());

    let streams: BTreeSet<String> =
        own.iter().map(|record| format!("tcp-{:05}", stream_of(record).1)).collect();
    let followed = path("followed");
    printed(&full(&["follow", "--all"], &["--session", "3", "-o", &followed]));
    let files = listed(Path::new(&followed));
    assert!(!files.is_empty());
    assert!(
        files.iter().all(|file| streams.iter().any(|stream| file.starts_with(stream))),
        "{files:?}"
    );

    printed(&full(&["export", "files"], &["--session", "3", "-o", &path("files")]));
    printed(&full(&["report"], &["--session", "3", "-o", &path("report.html")]));
    assert_eq!(json(&["diff", FULL[0], FULL[0], "--keys", FULL[2], "--session", "3"]).len(), 1);
    std::fs::remove_dir_all(&folder).unwrap();
}

fn listed(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn what_has_no_such_session_or_cannot_be_read_twice_is_a_mistake_of_one_line() {
    let wrong = |arguments: &[&str], status: i32, text: &str| {
        let output = run(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
        assert!(said.contains(text) && said.lines().count() == 1, "{arguments:?}: {said}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    };
    let many = format!("there are {}", json(&full(&["sessions"], &[])).len());
    for number in ["0", "99"] {
        wrong(&full(&[], &["--session", number]), 2, &many);
        wrong(&full(&["stats"], &["--session", number]), 2, &many);
        wrong(&full(&["sessions"], &["--session", number]), 2, &many);
    }
    wrong(&["-", "--session", "1"], 2, "standard input");
    wrong(&["-", "-Y", "session == 1"], 2, "read twice");
    wrong(&["-", "--columns", "session"], 2, "read twice");
    wrong(&["--tail", FULL[0], "--session", "1"], 2, "read twice");
    wrong(&["no-such.pcap", "--session", "1"], 1, "no-such.pcap");
    wrong(&full(&["sessions"], &["-Y", "session == 1"]), 2, "-Y");
    assert!(json(&full(&[], &["-Y", "session == 99"])).is_empty());
}

#[test]
#[cfg(unix)]
fn the_commands_of_the_page_print_something() {
    let page = std::fs::read_to_string(crate::common::file("docs/sessions.md")).unwrap();
    let commands: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("    moulsniff ")).collect();
    assert!(commands.len() >= 7, "{commands:?}");
    for command in commands {
        let line = format!("{} --quiet {command}", env!("CARGO_BIN_EXE_moulsniff"));
        let mut shell = crate::common::shell();
        let output =
            shell.current_dir(env!("CARGO_MANIFEST_DIR")).args(["-c", &line]).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        // Every request of this session got its reply.
        assert_eq!(output.stdout.is_empty(), command.contains("event == unanswered"), "{command}");
    }
}

/// More clients than streams are kept: the program gives up the oldest ones long after they said
/// anything.
#[test]
fn giving_up_a_stream_makes_no_session_and_lengthens_none() {
    const CLIENTS: u16 = 17_000;
    let question = b"\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01";
    let mut made = Made::new();
    for client in 0..CLIENTS {
        let client = end(client, 4000);
        let server = end(60_000, 53);
        made.udp((client, server), &[b"\0\x01\x01\0", &question[..]].concat());
        made.udp((server, client), &[b"\0\x01\x81\x80", &question[..]].concat());
        made.wait(200);
    }
    let path = scratch("many-clients.pcap");
    std::fs::write(&path, &made.bytes).unwrap();
    let sessions =
        json(&["sessions", path.to_str().unwrap(), "--tables", "examples/protocols/dns.table"]);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(sessions.len(), usize::from(CLIENTS));
    for session in &sessions {
        assert_eq!(
            (&session["requests"]["answered"], &session["duration_ms"]),
            (&1.into(), &1.into()),
            "{session}"
        );
    }
}
