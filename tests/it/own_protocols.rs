//! Protocols that table files declare as a whole: each works in every command as if it were built in.

use std::process::{Command, Output};

use crate::common::{file, records};

const TINY: [&str; 2] = ["--tables", "tests/data/tinychat.table"];
const CAPTURE: &str = "tests/data/tinychat.pcap";

fn moulsniff(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_moulsniff")).current_dir(file("")).args(words).output().unwrap()
}

/// What the program prints; it must succeed.
fn printed(words: &[&str]) -> String {
    let out = moulsniff(words);
    assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// What the program says of a mistake; it must be one of typing.
fn mistake(words: &[&str]) -> String {
    let out = moulsniff(words);
    assert_eq!(out.status.code(), Some(2), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stderr).unwrap()
}

#[test]
fn bytes_of_a_declared_protocol_are_decoded_by_its_own_name() {
    let words = ["--json", "decode", "tinychat.chat.client", "5443010004", "02626f62", "544309000102"];
    assert_eq!(
        printed(&[&TINY[..], &words].concat()).lines().collect::<Vec<_>>(),
        [
            r#"{"message":"Hello","type":1,"offset":0,"length":9,"fields":{"magic":"5443","kind":1,"version":2,"name":"bob"}}"#,
            r#"{"message":"Other","offset":9,"length":6,"fields":{"magic":"5443","kind":9,"data":"02"}}"#,
        ]
    );
}

#[test]
fn a_connection_is_recognised_framed_answered_and_remembers_what_was_agreed() {
    let all = records(CAPTURE, &[], &TINY);
    let said = |stream: u64| -> Vec<String> {
        let of = all.iter().filter(|r| r["stream"] == stream && r["message"].is_string());
        of.map(|r| format!("{} {} {} {}", r["from"], r["message"], r["reply_to"], r["fields"])).collect()
    };
    let first = said(0);
    assert_eq!(
        first[..2],
        [
            r#""client" "Hello" null {"magic":"5443","kind":1,"version":2,"name":"bob"}"#,
            r#""server" "Welcome" 1 {"magic":"5443","kind":2,"motd":"hello bob"}"#,
        ]
    );
    assert!(said(1)[1].ends_with(r#"{"magic":"5443","kind":2,"code":7}"#), "version 1 has a code: {:?}", said(1));
    assert!(all.iter().all(|r| r["protocol"] == "tinychat" && r["service"] == "chat"));
    let unanswered = all.iter().filter(|r| r["event"] == "unanswered").count();
    assert_eq!(unanswered, 2, "each connection asks once more and gets no answer");
}

#[test]
fn every_command_knows_the_protocol() {
    let with = |words: &[&str]| printed(&[&TINY[..], &["-q"], words].concat());
    assert!(with(&["stats", CAPTURE]).contains("tinychat"));
    assert!(with(&["sessions", CAPTURE]).contains("session 2  tinychat  127.0.0.1"));
    assert!(with(&["follow", "tcp:0", CAPTURE]).contains("client ▸ server  Hello"));
    assert_eq!(with(&[CAPTURE, "--oneline", "-Y", "protocol == tinychat and fields.version == 2"]).lines().count(), 2);
    assert_eq!(with(&[CAPTURE, "--columns", "service,message,fields.motd", "--csv"]).lines().count(), 17);
    assert!(with(&["schema"]).contains("\"Welcome\""));
    assert!(with(&["tables", "list", "tinychat.chat"]).contains("tinychat.chat.server\t2\tWelcome"));
    assert!(with(&["tables", "show", "Header"]).contains("span size: u16be"));
    assert!(with(&["--decode-as", "tcp:7777=tinychat", CAPTURE]).contains("Welcome"));
    let wrong = mistake(&[&TINY[..], &["--decode-as", "tcp:7777=tinychut", CAPTURE]].concat());
    assert!(wrong.contains("did you mean `tinychat`"), "{wrong}");
}
