//! Exported messages as Wireshark shows them with the script of `tables lua`. Where tshark is not
//! installed, each test says so and passes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::exported_messages::{KEYS, export, folder, run};

fn installed() -> bool {
    let there =
        Command::new("tshark").arg("--version").output().is_ok_and(|out| out.status.success());
    if !there {
        println!("skipped: tshark is not installed");
    }
    there
}

/// Writes the script into a folder.
fn script(to: &Path) -> PathBuf {
    let printed = run(&["tables", "lua"]);
    assert!(printed.status.success());
    let path = to.join("moulsniff.lua");
    fs::write(&path, printed.stdout).unwrap();
    path
}

/// What tshark prints with the script; it must say nothing against it.
fn tshark(exported: &Path, script: &Path, more: &[&str]) -> String {
    let load = format!("lua_script:{}", script.display());
    let out = Command::new("tshark")
        .args(["-r", exported.to_str().unwrap(), "-X", &load])
        .args(more)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && !said.contains("Lua"), "{said}");
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// The records that a filter of this program keeps, of the capture itself.
fn kept(capture: &str, filter: &str) -> Vec<u64> {
    let keys: Vec<&str> = KEYS.iter().flat_map(|key| ["--keys", key]).collect();
    let done =
        run(&[&[capture, "--quiet", "-Y", filter, "--columns", "record"], &keys[..]].concat());
    let text = String::from_utf8(done.stdout).unwrap();
    text.lines().skip(1).map(|line| line.parse().unwrap()).collect()
}

#[test]
fn display_filters_find_the_records_that_filters_find() {
    if !installed() {
        return;
    }
    let to = folder("lua-filters");
    let script = script(&to);
    for (capture, pairs) in [
        (
            "captures/moul/full_dirtsand.pcapng",
            &[
                ("moul.trans_id == 7", "*.trans_id == 7"),
                (
                    "moul.result == 20 or moul.node_id == 10000",
                    "*.result == 20 or *.node_id == 10000",
                ),
                ("moul.object_name contains \"Avatar\"", "*.object_name contains \"Avatar\""),
                ("moul.string", "*.string contains \"\""),
            ][..],
        ),
        (
            "captures/secondlife/opensim.pcapng.gz",
            &[
                ("secondlife.PingID == 2", "*.PingID == 2"),
                ("secondlife.FromName contains \"Test\"", "*.FromName contains \"Test\""),
                ("secondlife.LocalID > 700", "*.LocalID > 700"),
            ],
        ),
        ("captures/intermud3/i3_coffeemud.pcapng", &[("intermud3.ttl == 5", "*.ttl == 5")]),
        ("captures/ouro/coh_segs_udp.pcapng", &[("ouro.sequence == 2", "*.sequence == 2")]),
    ] {
        let exported = export(capture, &to, &[]);
        let mut found = 0;
        for (theirs, ours) in pairs {
            let text = tshark(
                &exported,
                &script,
                &["-Y", theirs, "-T", "fields", "-e", "moulsniff.record"],
            );
            let records: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
            assert_eq!(records, kept(capture, ours), "{capture}: {theirs}");
            found += records.len();
        }
        assert!(found > 0, "{capture}");
    }
}

#[test]
fn columns_are_filled_and_every_tree_is_shown() {
    if !installed() {
        return;
    }
    let to = folder("lua-trees");
    let script = script(&to);
    for capture in [
        "captures/moul/full_dirtsand.pcapng",
        "captures/moul/synthetic_all.pcap.gz",
        "captures/secondlife/every_message.pcapng.gz",
        "captures/intermud3/i3_edge_small.pcapng",
        "captures/ouro/coh_seed_udp.pcapng",
    ] {
        let exported = export(capture, &to, &[]);
        let lines = tshark(&exported, &script, &[]);
        let trees = tshark(&exported, &script, &["-V"]);
        assert!(!trees.contains("not shown"), "{capture}");
        assert_eq!(trees.matches("[record: ").count(), lines.lines().count(), "{capture}");
    }
    let exported = export("captures/moul/kind_gate.pcap", &to, &[]);
    let lines = tshark(&exported, &script, &[]);
    let line = lines.lines().find(|line| line.contains("FileSrvIpAddressReply")).unwrap();
    assert!(line.contains("127.0.0.1 \u{2192} 127.0.0.1"), "{line}");
    assert!(line.contains("MOUL gatekeeper") && line.ends_with("file server 127.0.0.1"), "{line}");
}

#[test]
fn a_field_has_the_bytes_that_it_has_here() {
    if !installed() {
        return;
    }
    let to = folder("lua-bytes");
    let script = script(&to);
    let exported = export("captures/moul/kind_gate.pcap", &to, &[]);
    let text =
        tshark(&exported, &script, &["-Y", "moul.trans_id", "-T", "json", "-x", "-j", "moul"]);
    // `-x` adds each field's bytes as hex, its first byte in the packet and its length.
    assert!(text.contains("\"moul.trans_id_raw\""), "{text}");
    let raw = text.split("\"moul.trans_id_raw\"").nth(1).unwrap();
    let parts: Vec<&str> =
        raw.split(['[', ']']).nth(1).unwrap().split(',').map(str::trim).collect();
    assert_eq!((parts[0], parts[2]), ("\"04030201\"", "4"), "{parts:?}");
}
