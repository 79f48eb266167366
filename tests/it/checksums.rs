//! `--checksums`: wrong ones are told of, packet by packet, and change nothing else; held against
//! tshark where it is installed.

use std::collections::BTreeSet;
use std::process::Command;

use crate::common::{file, records};
use crate::made::{ACK, Made, end, ip, run, tcp};
use serde_json::Value;

const CONNECT: [u8; 43] = *b"\x10\x1f\0\0\0\0\0\x32\0\0\0\x01\0\0\0\
    \x21\x98\x48\xea\x35\x6c\xd0\x4b\x9d\xae\xbb\x17\xc5\x85\xe6\x80\x0c\0\0\0\0\0\0\0\0\0\0\0";
const PING: [u8; 12] = *b"\x0c\0\0\0\0\0\0\0\x68\x24\x57\x13";

fn wrong(records: &[Value]) -> Vec<(u64, String)> {
    let events = records.iter().filter(|r| r["event"] == "checksum");
    events
        .map(|e| (e["frame"].as_u64().unwrap(), e["text"].as_str().unwrap().to_string()))
        .collect()
}

#[test]
fn wrong_checksums_are_told_only_on_request_and_change_nothing_else() {
    let client = end(1, 40_000);
    let server = end(0, 14_617);
    let mut made = Made::new();
    made.open(client, server);
    made.tcp((client, server), (1, 1, ACK), &CONNECT);
    // The fourth frame's segment, the fifth frame's header, the sixth frame cut by one byte.
    let mut segment = tcp((client, server), (44, 1, ACK), &PING);
    segment[16] ^= 0x12;
    made.frame(&ip(6, (client, server), &segment));
    let mut packet = ip(6, (client, server), &tcp((client, server), (56, 1, ACK), &PING));
    packet[10] ^= 0x34;
    made.frame(&packet);
    let (quiet, said) = run(&made.bytes, &[]);
    assert!(wrong(&quiet).is_empty() && !said.contains("checksum"), "{said}");
    let (mut asked, said) = run(&made.bytes, &["--checksums"]);
    assert!(said.contains("; 2 wrong checksums"), "{said}");
    let found = wrong(&asked);
    assert_eq!(found.iter().map(|f| f.0).collect::<Vec<_>>(), [4, 5]);
    assert!(
        found[0].1.starts_with("wrong TCP checksum: ")
            && found[1].1.starts_with("wrong IPv4 checksum: "),
        "{found:?}"
    );
    asked.retain(|r| r["event"] != "checksum");
    let unnumbered = |mut all: Vec<Value>| {
        all.iter_mut().for_each(|r| {
            // Checksum events are records too, and shift the numbers of all others, in texts as
            // well.
            let text = if r["event"] == "unanswered" { "text" } else { "" };
            for key in ["record", "reply_to", "request", text] {
                r.as_object_mut().unwrap().remove(key);
            }
        });
        all
    };
    assert_eq!(unnumbered(asked), unnumbered(quiet));
}

#[test]
fn what_tshark_finds_wrong_is_found_wrong() {
    if !Command::new("tshark").arg("--version").output().is_ok_and(|out| out.status.success()) {
        println!("skipped: tshark is not installed");
        return;
    }
    for (capture, keys) in [
        ("captures/moul/full_dirtsand.pcapng", &["keys/dirtsand.ini"][..]),
        ("captures/moul/any_sll2.pcap", &["keys/dirtsand.ini"]),
        ("captures/moul/mangled_gaps.pcap.gz", &["keys/dirtsand.ini"]),
        ("captures/secondlife/opensim.pcapng.gz", &[]),
        ("captures/ouro/coh_tcp.pcap", &[]),
    ] {
        let ours: BTreeSet<u64> =
            wrong(&records(capture, keys, &["--checksums"])).into_iter().map(|w| w.0).collect();
        let theirs = by_tshark(capture);
        // Streams of protocols that are not read have no records, nor have ended ones.
        let only: BTreeSet<u64> = ours.difference(&theirs).copied().collect();
        assert!(only.is_empty(), "{capture}: only we find these wrong: {only:?}");
        let missing = theirs.difference(&ours).count();
        println!(
            "{capture}: {} wrong, {missing} of them in streams that are not read, or behind their \
             end",
            theirs.len()
        );
        assert!(
            missing * 10 <= theirs.len(),
            "{capture}: {missing} of {} are not found",
            theirs.len()
        );
    }
}

/// The frames in which tshark finds a wrong checksum.
fn by_tshark(capture: &str) -> BTreeSet<u64> {
    let mut program = Command::new("tshark");
    for protocol in ["ip", "tcp", "udp"] {
        program.args(["-o", &format!("{protocol}.check_checksum:TRUE")]);
    }
    let bad = "ip.checksum.status == 0 or tcp.checksum.status == 0 or udp.checksum.status == 0";
    let output = program
        .args(["-Y", bad, "-T", "fields", "-e", "frame.number", "-r"])
        .arg(file(capture))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(|line| line.parse().unwrap()).collect()
}
