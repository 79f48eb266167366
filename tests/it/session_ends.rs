//! When sessions are over, which does not depend on how much else is captured; visits of a place;
//! and who closed a connection first.

use std::process::Stdio;

use serde_json::Value;

use crate::common::{program, scratch};
use crate::made::{ACK, End, Made, end};

const FIN: u8 = 1;
const MINUTE: u32 = 60_000;

const TABLE: &str = r#"
protocol club {
    transport tcp
    ports 7100
    recognise client { port, fits }
    service door
}
service door { length: u8 whole, number: u8 }
/// Says who the client is.
message door client 1 IAm { name: utf8[*] names member self }
/// Enters a room.
message door client 2 Enter { room: utf8[*] place }
/// Says something.
message door both 3 Say { text: utf8[*] }
"#;

/// A connection of a member to the club.
struct Visit {
    ends: (End, End),
    seq: u32,
}

impl Visit {
    fn open(made: &mut Made, client: End) -> Visit {
        let ends = (client, end(60_000, 7100));
        made.open(ends.0, ends.1);
        Visit { ends, seq: 1 }
    }

    /// A member comes and says who it is.
    fn of(made: &mut Made, client: End, name: &str) -> Visit {
        let mut visit = Visit::open(made, client);
        visit.send(made, 1, name);
        visit
    }

    fn message(number: u8, text: &str) -> Vec<u8> {
        [&[text.len() as u8 + 2, number], text.as_bytes()].concat()
    }

    fn send(&mut self, made: &mut Made, number: u8, text: &str) {
        let bytes = Visit::message(number, text);
        made.tcp(self.ends, (self.seq, 1, ACK), &bytes);
        self.seq += bytes.len() as u32;
    }

    fn close(self, made: &mut Made) {
        let (client, server) = self.ends;
        made.tcp((client, server), (self.seq, 1, ACK | FIN), b"");
        made.tcp((server, client), (1, self.seq + 1, ACK | FIN), b"");
    }
}

/// A short visit.
fn visit(made: &mut Made, client: End, name: &str) {
    let mut visit = Visit::of(made, client, name);
    visit.send(made, 2, "bar");
    visit.close(made);
}

/// Writes captures, and tells what a command prints for them.
fn json(name: &str, captures: &[&Made], more: &[&str]) -> Vec<Value> {
    let printed = printed(name, captures, &[more, &["--json"]].concat());
    printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The same as text.
fn printed(name: &str, captures: &[&Made], more: &[&str]) -> String {
    let folder = scratch(format!("session-ends-{name}"));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("club.table"), TABLE).unwrap();
    let mut program = program();
    program
        .stdin(Stdio::null())
        .args(more)
        .args(["--quiet", "--tables"])
        .arg(folder.join("club.table"));
    for (number, made) in captures.iter().enumerate() {
        let path = folder.join(format!("{number}.pcap"));
        std::fs::write(&path, &made.bytes).unwrap();
        program.arg(path);
    }
    let output = program.output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The streams of each session of a member.
fn streams_of(sessions: &[Value], name: &str) -> Vec<Vec<u64>> {
    let own = sessions.iter().filter(|session| session["who"]["member_name"] == name);
    let numbers = |session: &Value| {
        session["streams"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| s["stream"].as_u64().unwrap())
            .collect()
    };
    own.map(numbers).collect()
}

#[test]
fn ten_silent_minutes_end_a_session_however_many_records_there_are() {
    for (pause, talk, sessions) in [
        (9, 0, vec![vec![0, 1]]),
        (11, 0, vec![vec![0], vec![1]]),
        (11, 5000, vec![vec![0], vec![2]]),
    ] {
        let mut made = Made::new();
        visit(&mut made, end(1, 5001), "ann");
        let mut other = (talk > 0).then(|| Visit::of(&mut made, end(2, 5002), "bob"));
        for _ in 0..talk {
            made.wait(pause * MINUTE / talk);
            other.iter_mut().for_each(|other| other.send(&mut made, 3, "hm"));
        }
        made.wait(if talk > 0 { 0 } else { pause * MINUTE });
        visit(&mut made, end(1, 5003), "ann");
        let all = json("silence", &[&made], &["sessions"]);
        assert_eq!(
            streams_of(&all, "ann"),
            sessions,
            "{pause} minutes, {talk} records of another client"
        );
        let number =
            all.iter().find(|session| session["who"]["member_name"] == "ann").unwrap()["session"]
                .to_string();
        let streams = |record: &Value| record["stream"].as_u64().unwrap();
        let mut of_one: Vec<u64> =
            json("of-one", &[&made], &["--session", &number]).iter().map(streams).collect();
        of_one.dedup();
        of_one.sort_unstable();
        of_one.dedup();
        assert_eq!(of_one, sessions[0]);
    }
}

#[test]
fn a_clock_that_goes_back_by_more_than_ten_minutes_is_silence_too() {
    let mut first = Made::new();
    let mut second = Made::new();
    visit(&mut first, end(1, 5001), "ann");
    second.wait(60 * MINUTE);
    visit(&mut second, end(1, 5003), "ann");
    let told = |captures: &[&Made]| streams_of(&json("clock", captures, &["sessions"]), "ann");
    assert_eq!(told(&[&first, &second]), [[0], [1]]);
    assert_eq!(told(&[&second, &first]), [[0], [1]]);
}

#[test]
fn a_session_says_that_the_clock_went_back() {
    let mut late = Made::new();
    let mut early = Made::new();
    late.wait(60 * MINUTE);
    Visit::of(&mut late, end(1, 5001), "ann").close(&mut early);
    let told = printed("clock-back", &[&late, &early], &["sessions", "--as-given"]);
    assert!(told.contains("22:13:20, the clock went back by 3600.001 s\n"), "{told}");
    assert!(told.contains("IAm, the clock went back by 3600.001 s before the end\n"), "{told}");
}

#[test]
fn a_stream_that_goes_on_after_silence_is_in_two_sessions_of_the_same_client() {
    let mut made = Made::new();
    let mut visit = Visit::of(&mut made, end(1, 5001), "ann");
    visit.send(&mut made, 2, "bar");
    made.wait(11 * MINUTE);
    visit.send(&mut made, 3, "here again");
    visit.close(&mut made);
    let all = json("goes-on", &[&made], &["sessions"]);
    assert_eq!(streams_of(&all, "ann"), [[0], [0]]);
    let told: Vec<_> = all
        .iter()
        .map(|s| (&s["duration_ms"], &s["streams"][0]["how"], &s["streams"][0]["messages"]))
        .collect();
    let messages = |client: u64| serde_json::json!({"client": client, "server": 0});
    assert_eq!(
        told,
        [(&1.into(), &"timeout".into(), &messages(2)), (&2.into(), &"fin".into(), &messages(1))]
    );
    assert_eq!(all[0]["places"][0]["to"], all[0]["end"]);
}

#[test]
fn what_is_known_at_the_end_of_a_silent_stream_is_told() {
    let mut made = Made::new();
    let mut silent = Visit::of(&mut made, end(1, 5001), "ann");
    silent.seq += 7;
    silent.send(&mut made, 3, "behind a loss");
    made.tcp((silent.ends.1, silent.ends.0), (1, silent.seq, ACK), b"");
    let mut other = Visit::of(&mut made, end(2, 5002), "bob");
    for _ in 0..30 {
        made.wait(MINUTE);
        other.send(&mut made, 3, "hm");
    }
    let all = json("known", &[&made], &["sessions"]);
    let ann = all.iter().find(|session| session["who"]["member_name"] == "ann").unwrap();
    let stream = &ann["streams"][0];
    assert_eq!((&stream["how"], &stream["bytes"]["lost"]), (&"open".into(), &7.into()), "{ann}");
    assert!(ann["duration_ms"].as_f64().unwrap() < 60_000.0, "{ann}");
}

#[test]
fn a_place_that_the_client_left_and_entered_again_was_visited_twice() {
    let mut made = Made::new();
    visit(&mut made, end(1, 5001), "ann");
    made.wait(MINUTE);
    visit(&mut made, end(1, 5003), "ann");
    let all = json("places", &[&made], &["sessions"]);
    assert_eq!(streams_of(&all, "ann"), [[0, 1]]);
    let places = all[0]["places"].as_array().unwrap();
    assert_eq!(places.iter().map(|place| &place["name"]).collect::<Vec<_>>(), ["bar", "bar"]);
    assert!(places[0]["to"].as_str() < places[1]["from"].as_str(), "{places:?}");
}

#[test]
fn who_closed_first_is_told_by_the_packets_also_behind_a_loss() {
    let mut made = Made::new();
    let mut visit = Visit::of(&mut made, end(1, 5001), "ann");
    visit.seq += 5;
    visit.close(&mut made);
    let all = json("closed", &[&made], &["sessions"]);
    let stream = &all[0]["streams"][0];
    assert_eq!(
        (&stream["closed_by"], &stream["bytes"]["lost"]),
        (&"client".into(), &5.into()),
        "{stream}"
    );
}
