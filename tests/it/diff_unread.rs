//! What `diff` says of bytes that were captured and could not be read, and of what it does not
//! compare.

use serde_json::{Value, json};

use crate::common::file;
use crate::diff::{capture, changed, compared, folder, messages, place};

/// The captures of this repository need no key here, or are compared without.
fn without_keys(a: &str, b: &str) -> (String, i32) {
    let output = crate::common::program()
        .current_dir(file(""))
        .args(["diff", a, b, "--quiet"])
        .output()
        .unwrap();
    (String::from_utf8(output.stdout).unwrap(), output.status.code().unwrap())
}

fn only<'a>(found: &'a [Value], path: &str) -> &'a Value {
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((&found[0]["kind"], &found[0]["path"]), (&json!("unread"), &json!(path)));
    &found[0]["values"]
}

#[test]
fn a_reply_that_became_garbage_is_a_difference() {
    let found = changed("garbage", &[], |all| {
        let at = place(all, "Auth2Cli_PlayerDeleteReply", |_| true);
        all[at].bytes.fill(0xEE);
    });
    let values = only(&found, "bytes.undecoded");
    assert!(values[0] == 0 && values[1].as_u64().unwrap() >= 10, "{values}");
}

#[test]
fn a_message_that_no_table_has_is_a_difference() {
    let found = changed("unknown", &[], |all| {
        let at =
            all.iter().rposition(|sent| !sent.client && sent.name.starts_with("Auth2Cli")).unwrap();
        let unknown = [&999_u16.to_le_bytes()[..], &[7; 30]].concat();
        all[at].bytes.extend(unknown);
    });
    assert_eq!(only(&found, "bytes.undecoded"), &json!([0, 32]));
}

#[test]
fn what_no_key_opens_is_not_called_the_same() {
    let gate = "captures/moul/kind_gate.pcap";
    let (said, status) = without_keys(gate, gate);
    assert!(
        said.ends_with("no differences; 166 bytes of A and 166 of B could not be read\n"),
        "{said}"
    );
    assert_eq!(status, 0);
    let all: Vec<_> = messages().into_iter().filter(|sent| sent.stream == 0).collect();
    let clear = capture("gate-clear", &all, 1400);
    let (said, status) = without_keys(&clear, gate);
    assert!(said.contains("bytes of the server that no key opens: 0 in A; 112 in B"), "{said}");
    assert!(said.contains("bytes of the client that no key opens: 0 in A; 54 in B"), "{said}");
    assert_eq!(status, 4);
}

#[test]
fn messages_that_were_sent_again_are_counted() {
    let grid = "captures/secondlife/opensim.pcapng.gz";
    let (_, sum) = compared(grid, grid, &[]);
    assert_eq!(sum["sent_again"], json!({"a": 765, "b": 765}));
}

/// A command in several datagrams names the records that it came in. Their numbers change with each
/// record before them.
#[test]
fn a_datagram_that_is_missing_changes_no_numbers_of_records_elsewhere() {
    let segs = "captures/ouro/coh_segs_udp.pcapng";
    let whole = std::fs::read(file(segs)).unwrap();
    let mut kept = Vec::new();
    let mut at = 0;
    let mut packets = 0;
    while at < whole.len() {
        let word = |at: usize| u32::from_le_bytes(whole[at..at + 4].try_into().unwrap());
        let end = at + word(at + 4) as usize;
        packets += u32::from(word(at) == 6);
        // The twelfth packet keeps the link alive.
        if !(word(at) == 6 && packets == 12) {
            kept.extend(&whole[at..end]);
        }
        at = end;
    }
    let path = folder("ouro-idle").join("capture.pcapng");
    std::fs::write(&path, kept).unwrap();
    let (found, _) = compared(segs, path.to_str().unwrap(), &[]);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(
        (&found[0]["kind"], &found[0]["message"]),
        (&json!("only_a"), &json!("COMMCONTROL_IDLE"))
    );
}
