//! What people have instead of captures: bytes that they copied, logs, printed packets; and what is
//! taken out of captures again.

use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use moulsniff::capture::{Capture, CaptureItem};
use serde_json::Value;

use crate::common::{file, random};
use crate::exported_messages::{folder, messages, run};

const CAPTURE: &str = "captures/moul/full_dirtsand.pcapng";
const KEYS: [&str; 2] = ["--keys", "keys/dirtsand.ini"];

/// Status, standard output and standard error.
fn said(arguments: &[&str]) -> (Option<i32>, String, String) {
    let done = run(arguments);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.code(), text(done.stdout), text(done.stderr))
}

#[test]
fn a_service_or_a_message_is_enough_where_its_meaning_is_plain() {
    let fetch = "1a0007000000e9030000";
    let (status, whole, _) = said(&["decode", "moul.auth.client", fetch]);
    assert_eq!(status, Some(0));
    for name in ["auth", "auth.client", "Cli2Auth_VaultNodeFetch"] {
        let (status, out, remark) = said(&["decode", name, fetch]);
        assert_eq!((status, &out), (Some(0), &whole), "{name}");
        let told = if name == "auth" { "read as moul.auth.client\n" } else { "" };
        assert_eq!(remark, told);
    }
    let (status, _, remark) = said(&["decode", "Cli2Auth_VaultNodeSave", fetch]);
    assert!(
        status == Some(1)
            && remark.contains("is Cli2Auth_VaultNodeFetch, and not Cli2Auth_VaultNodeSave"),
        "{remark}"
    );
    // A ping of either side is the same.
    let (status, out, remark) = said(&["decode", "gatekeeper", "0000 01000000 02000000 00000000"]);
    assert!(
        status == Some(2)
            && out.is_empty()
            && remark.contains("moul.gatekeeper.client (")
            && remark.contains("moul.gatekeeper.server ("),
        "{remark}"
    );
}

#[test]
fn a_message_that_is_cut_shows_what_is_there() {
    let (status, out, remark) = said(&["decode", "moul.auth.client", "1a0007000000e9"]);
    assert_eq!(status, Some(1));
    assert!(out.contains("trans_id   7\n") && out.contains("undecoded  e9\n"), "{out}");
    assert!(remark.ends_with("the message needs 10 bytes at least, 7 are left: 3 are missing\n"));
}

#[test]
fn bytes_are_text_in_a_file_and_on_standard_input() {
    let folder = folder("inputs-bytes");
    let dump = folder.join("dump.txt");
    fs::write(&dump, "00000000: 1a00 0700 0000 e903 0000   ..........\n").unwrap();
    let raw = folder.join("raw.bin");
    fs::write(&raw, [0x1a, 0, 7, 0, 0, 0, 0xe9, 3, 0, 0]).unwrap();
    let (_, whole, _) = said(&["decode", "moul.auth.client", "1a0007000000e9030000"]);
    for path in [&dump, &raw] {
        let at = format!("@{}", path.display());
        assert_eq!(said(&["decode", "moul.auth.client", &at]).1, whole, "{at}");
        for words in [&["decode", "moul.auth.client", "-"][..], &["decode", "moul.auth.client"]] {
            let input = fs::File::open(path).unwrap();
            let mut program = crate::common::program();
            let done = program.args(words).stdin(input).output().unwrap();
            assert_eq!(String::from_utf8(done.stdout).unwrap(), whole, "{words:?} < {at}");
        }
    }
    // What is no dump is bytes where nothing was typed, and a mistake where a text was.
    let words = folder.join("words.txt");
    fs::write(&words, "no bytes\n").unwrap();
    let at = format!("@{}", words.display());
    let (status, _, remark) = said(&["decode", "moul.auth.client", &at]);
    assert_eq!(status, Some(2), "{remark}");
    assert!(remark.contains("character 1 is no hex digit"), "{remark}");
}

/// The log that plNetLog's client would have written of one connection of the capture, and its
/// messages.
fn log_of(service: &str, stream: u64) -> (String, Vec<Value>) {
    let folder = folder(&format!("inputs-log-{service}"));
    let exported = folder.join("messages.pcapng");
    let filter = format!(
        "service == {service} and stream == {stream} and not (message == ConnectPacket or message \
         == Cli2Srv_Connect or message == Srv2Cli_Encrypt)"
    );
    let words =
        ["export", "messages", CAPTURE, "-q", "-Y", &filter, "-o", exported.to_str().unwrap()];
    assert!(run(&[&words[..], &KEYS].concat()).status.success());
    let of = messages(CAPTURE, &[&["-Y", &filter][..], &KEYS].concat());
    let of: Vec<Value> = of.into_iter().filter(|record| record.get("message").is_some()).collect();
    let mut capture = Capture::open(&exported).unwrap();
    let mut log = String::new();
    let mut number = 0;
    while let Some(frame) = capture.next_frame().unwrap() {
        let data = message_of(frame.data);
        let from = if of[number]["from"] == "client" { ">>>" } else { "<<<" };
        number += 1;
        // A chunk may end within a message.
        let (first, rest) = data.split_at(if data.len() > 40 { data.len() / 3 } else { 0 });
        for bytes in [first, rest].into_iter().filter(|bytes| !bytes.is_empty()) {
            let time = (number as u32).wrapping_mul(300_000_000).cast_signed();
            log.push_str(&format!("[{from} {time}]\n"));
            for line in bytes.chunks(16) {
                let words: Vec<String> = line.iter().map(|byte| format!("{byte:02X}")).collect();
                log.push_str(&words.join(" "));
                log.push('\n');
            }
        }
    }
    assert_eq!(number, of.len());
    (log, of)
}

/// The bytes behind the tags of an exported message.
fn message_of(mut packet: &[u8]) -> &[u8] {
    loop {
        let length = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
        let last = packet[..2] == [0, 0];
        packet = &packet[4 + length..];
        if last {
            return packet;
        }
    }
}

fn alike(one: &Value) -> [&Value; 3] {
    ["from", "message", "fields"].map(|key| &one[key])
}

#[test]
fn a_log_has_the_messages_of_its_connection() {
    let (log, of) = log_of("auth", 2);
    assert!(of.len() > 20);
    // The name of the file tells the service, or the messages do.
    for name in ["Auth.log", "session.txt"] {
        let path = folder(&format!("inputs-{name}")).join(name);
        fs::write(&path, log.replace('\n', "\r\n")).unwrap();
        let read = messages(path.to_str().unwrap(), &[]);
        let read: Vec<&Value> = read.iter().filter(|one| one.get("message").is_some()).collect();
        assert_eq!(read.len(), of.len(), "{name}");
        for (one, other) in read.iter().zip(&of) {
            assert_eq!(alike(one), alike(other));
            assert_eq!(one["service"], "auth");
        }
        let (_, said, _) = said(&["diagnose", "-q", path.to_str().unwrap()]);
        assert!(!said.contains("stop"), "{said}");
    }
}

#[test]
fn damage_in_a_log_is_told_in_its_place() {
    let (log, of) = log_of("game", 4);
    let path = folder("inputs-damaged").join("Game.log");
    // A line in the middle of a long chunk is damaged.
    let line = log.lines().filter(|line| line.len() == 47).nth(40).unwrap();
    fs::write(&path, log.replacen(line, &line.replace(' ', "?"), 1)).unwrap();
    let read = crate::common::records(path.to_str().unwrap(), &[], &[]);
    let gaps: Vec<&Value> = read.iter().filter(|one| one["event"] == "gap").collect();
    assert_eq!(gaps.len(), 1, "{read:?}");
    assert_eq!(gaps[0]["length"], 16);
    let count = read.iter().filter(|one| one.get("message").is_some()).count();
    assert!(count + 8 > of.len(), "{count} of {}", of.len());
}

#[test]
fn logs_of_nothing_good_do_no_harm() {
    let (log, _) = log_of("gatekeeper", 0);
    let mut numbers = random();
    let path = folder("inputs-hostile").join("Auth.log");
    for _ in 0..24 {
        let mut bytes = log.clone().into_bytes();
        for _ in 0..20 {
            let place = numbers() % bytes.len();
            bytes[place] = numbers() as u8;
        }
        fs::write(&path, &bytes).unwrap();
        let (status, out, _) = said(&[path.to_str().unwrap(), "--json"]);
        assert!(matches!(status, Some(0 | 1)), "{status:?}");
        for line in out.lines() {
            serde_json::from_str::<Value>(line).unwrap();
        }
    }
}

#[test]
fn printed_packets_are_read_wherever_they_stand() {
    let tell = r#"({"tell",5,"A","bob","B","al","Bob","hi",})"#;
    let path = folder("inputs-printed").join("i3.log");
    fs::write(
        &path,
        format!("2026-11-20 09:30:27 -> {tell}\n2026-11-20 09:30:28.5 <- {tell} (ok)\nnothing\n"),
    )
    .unwrap();
    let read = messages(path.to_str().unwrap(), &[]);
    let read: Vec<&Value> = read.iter().filter(|one| one.get("message").is_some()).collect();
    let facts: Vec<[&str; 3]> = read
        .iter()
        .map(|one| ["time", "from", "message"].map(|key| one[key].as_str().unwrap()))
        .collect();
    let expected = [
        ["2026-11-20T09:30:27.000000Z", "client", "tell"],
        ["2026-11-20T09:30:28.500000Z", "server", "tell"],
    ];
    assert_eq!(facts, expected);
    let (status, out, _) = said(&["decode", "intermud3", tell]);
    assert!(status == Some(0) && out.contains("bob@A to al@B: hi"), "{out}");
}

/// The messages that a filter keeps, as another file of the same frames has to have them.
fn kept(capture: &str, filter: &str, more: &[&str]) -> Vec<Value> {
    let all = messages(capture, &[&["-Y", filter][..], more].concat());
    let keys = ["frame", "time", "src", "dst", "message", "fields"];
    let of = |one: &Value| Value::from(keys.map(|key| one[key].clone()).to_vec());
    let mut kept: Vec<Value> =
        all.iter().filter(|one| one.get("message").is_some()).map(of).collect();
    // What comes behind frames that are left out waits for them.
    kept.sort_by_key(|one| one[0].as_u64());
    kept
}

#[test]
fn frames_of_a_filter_are_decoded_again() {
    let out = folder("inputs-frames").join("out.pcapng");
    let out = out.to_str().unwrap();
    for (capture, filter, keys) in [
        (CAPTURE, "message == Auth2Cli_AcctLoginReply", &KEYS[..]),
        (CAPTURE, "refused", &KEYS),
        (CAPTURE, "message == Cli2Game_PropagateBuffer and offset > 2000", &KEYS),
        ("captures/moul/clear.pcapng.gz", "refused", &[]),
        ("captures/intermud3/i3_coffeemud.pcapng", "message == tell", &[]),
        ("captures/ouro/coh_seed_udp.pcapng", "length > 100", &[]),
    ] {
        let of = kept(capture, filter, keys);
        assert!(!of.is_empty(), "{filter}");
        let words = ["export", "frames", capture, "-q", "-Y", filter, "-o", out];
        let (status, _, remark) = said(&[&words[..], keys].concat());
        assert_eq!(status, Some(0), "{remark}");
        assert_eq!(kept(out, filter, keys), of, "{capture} {filter}");
        assert!(fs::metadata(out).unwrap().len() < fs::metadata(file(capture)).unwrap().len() * 2);
    }
}

#[test]
fn exported_frames_have_keys_only_where_they_are_asked_for() {
    let folder = folder("inputs-frames-keys");
    let [with, without] = ["with.pcapng", "without.pcapng"].map(|name| folder.join(name));
    let words = ["export", "frames", CAPTURE, "-q", "-Y", "refused", "--with-keys", "-o"];
    let (status, ..) = said(&[&words[..], &[with.to_str().unwrap()], &KEYS].concat());
    assert_eq!(status, Some(0));
    assert_eq!(kept(with.to_str().unwrap(), "refused", &[]), kept(CAPTURE, "refused", &KEYS));
    // Not even the keys that a capture carries.
    let words = ["export", "frames", with.to_str().unwrap(), "-q", "-Y", "refused", "-o"];
    let (status, ..) = said(&[&words[..], &[without.to_str().unwrap()]].concat());
    assert_eq!(status, Some(0));
    let secrets = |path: &PathBuf| {
        let mut capture = Capture::open(path).unwrap();
        let mut count = 0;
        while let Some(item) = capture.next_item().unwrap() {
            count += u32::from(matches!(item, CaptureItem::Secrets(_)));
        }
        count
    };
    assert_eq!((secrets(&with), secrets(&without)), (1, 0));
    let (status, _, remark) = said(&["export", "frames", CAPTURE, "--redact", "-o", "/dev/null"]);
    assert!(status == Some(2) && remark.contains("export messages"), "{remark}");
}

/// Exported messages are in the pipe before the next frame is, so that this ends.
#[test]
fn exported_messages_are_written_as_they_are_read() {
    let capture = fs::read(file("captures/moul/kind_gate.pcap")).unwrap();
    let mut child = crate::common::program()
        .current_dir(file(""))
        .args(["export", "messages", "-", "-q", "-o", "-"])
        .args(KEYS)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = child.stdout.take().unwrap();
    let mut all = Vec::new();
    let mut buffer = [0; 4096];
    let (first, rest) = capture.split_at(capture.len() / 2);
    input.write_all(first).unwrap();
    while !all.windows(13).any(|bytes| bytes == b"ConnectPacket") {
        let count = output.read(&mut buffer).unwrap();
        assert!(count > 0, "nothing was written before the end");
        all.extend_from_slice(&buffer[..count]);
    }
    input.write_all(rest).unwrap();
    drop(input);
    output.read_to_end(&mut all).unwrap();
    assert!(child.wait().unwrap().success());
    let path = folder("inputs-live").join("m.pcapng");
    fs::write(&path, all).unwrap();
    let names = |records: Vec<Value>| -> Vec<Value> {
        records.into_iter().map(|one| one["message"].clone()).collect()
    };
    let of = names(messages("captures/moul/kind_gate.pcap", &KEYS));
    assert_eq!(names(messages(path.to_str().unwrap(), &[])), of);
}

#[test]
fn wireshark_asks_for_interfaces_and_options() {
    let (status, out, _) = said(&["extcap", "--extcap-interfaces", "--extcap-version=4.0"]);
    assert_eq!(status, Some(0));
    assert!(out.contains("interface {value=moulsniff-file}{display="), "{out}");
    let (_, out, _) = said(&["extcap", "--extcap-interface", "moulsniff-file", "--extcap-dlts"]);
    assert!(out.starts_with("dlt {number=252}{name="), "{out}");
    let (_, out, _) = said(&["extcap", "--extcap-interface", "moulsniff-file", "--extcap-config"]);
    assert!(out.contains("{call=--keys}") && out.contains("{call=--filter}"), "{out}");
    let (status, _, remark) = said(&["extcap", "--extcap-interface", "moulsniff-file"]);
    assert!(status == Some(2) && remark.contains("started by Wireshark"), "{remark}");
}

/// tshark starts the program by a script in its folder of such programs, as docs/extcap.md says.
#[cfg(unix)]
#[test]
fn tshark_captures_with_extcap() {
    use std::os::unix::fs::PermissionsExt;
    let home = folder("inputs-extcap");
    for place in [".local/lib/wireshark/extcap", ".config/wireshark/extcap"] {
        fs::create_dir_all(home.join(place)).unwrap();
        let script = home.join(place).join("moulsniff");
        let program = env!("CARGO_BIN_EXE_moulsniff");
        fs::write(&script, format!("#!/bin/sh\nexec '{program}' extcap --no-config \"$@\"\n"))
            .unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let capture = file("captures/moul/kind_gate.pcap");
    let keys = file("keys/dirtsand.ini");
    let done = Command::new("tshark")
        .env("HOME", &home)
        .env_remove("XDG_CONFIG_HOME")
        .args([
            "-i",
            "moulsniff-file",
            "-c",
            "5",
            "-l",
            "-T",
            "fields",
            "-e",
            "exported_pdu.prot_name",
        ])
        .args(["-o", &format!("extcap.moulsniff_file.file:{}", capture.display())])
        .args(["-o", &format!("extcap.moulsniff_file.keys:{}", keys.display())])
        .output();
    let Ok(done) = done else { return eprintln!("tshark is not there: extcap is not driven") };
    let out = String::from_utf8_lossy(&done.stdout);
    let remarks = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{remarks}");
    assert_eq!(out.lines().filter(|line| line.starts_with("moul")).count(), 5, "{out}{remarks}");
}
