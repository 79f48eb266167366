//! Memory is bounded by options, and each bound that is reached says so: small captures that reach
//! them one by one, and large claims that must cost nothing.

use std::io::{Read, Write};
use std::process::Stdio;
use std::time::Duration;

use crate::common::{file, records, scratch};
use crate::made::{ACK, End, Made, end, ip, run, udp};
use serde_json::Value;

/// What opens a connection to a MOUL file server, which needs no key.
const CONNECT: [u8; 43] = *b"\x10\x1f\0\0\0\0\0\x32\0\0\0\x01\0\0\0\
    \x21\x98\x48\xea\x35\x6c\xd0\x4b\x9d\xae\xbb\x17\xc5\x85\xe6\x80\x0c\0\0\0\0\0\0\0\0\0\0\0";

/// A ping of the file service.
const PING: [u8; 12] = *b"\x0c\0\0\0\0\0\0\0\x68\x24\x57\x13";

fn ends(number: u16) -> (End, End) {
    (end(number + 1, 40_000), end(0, 14_617))
}

fn events<'a>(records: &'a [Value], event: &str) -> Vec<&'a Value> {
    records.iter().filter(|r| r["event"] == event).collect()
}

/// The bounds that were reached, that on remembered requests aside: the pings of these captures
/// have no replies.
fn limits(records: &[Value]) -> Vec<&str> {
    let all = events(records, "limit").into_iter().map(|e| e["limit"].as_str().unwrap());
    all.filter(|limit| *limit != "requests").collect()
}

fn messages(records: &[Value], name: &str) -> usize {
    records.iter().filter(|r| r["message"] == name && r["event"].is_null()).count()
}

/// A stream with one missing segment before `segments` of pings.
fn with_a_hole(made: &mut Made, number: u16, segments: u32) {
    let (client, server) = ends(number);
    let pings = PING.repeat(100);
    made.open(client, server);
    made.tcp((client, server), (1, 1, ACK), &CONNECT);
    made.tcp((client, server), (44, 1, ACK), &PING);
    for n in 1..=segments {
        made.tcp((client, server), (56 + n * pings.len() as u32, 1, ACK), &pings);
    }
}

#[test]
fn bytes_that_wait_for_missing_ones_are_bounded_for_a_stream() {
    let mut made = Made::new();
    with_a_hole(&mut made, 0, 10);
    let (all, _) = run(&made.bytes, &["-q"]);
    assert_eq!(limits(&all), [""; 0]);
    let (all, _) = run(&made.bytes, &["-q", "--max-stream", "4K"]);
    assert_eq!(limits(&all), ["max-stream"]);
    let gap = events(&all, "gap")[0];
    assert_eq!((gap["offset"].as_u64(), gap["length"].as_u64()), (Some(55), Some(1200)));
    // Four segments fill the bound: then the hole is given up, long before the capture's end.
    assert_eq!(gap["frame"].as_u64(), Some(5), "the gap is told with the first bytes behind it");
    assert_eq!(messages(&all, "Cli2File_PingRequest"), 1001);
}

#[test]
fn bytes_that_wait_for_missing_ones_are_bounded_for_all_streams() {
    let mut made = Made::new();
    for number in 0..4 {
        with_a_hole(&mut made, number, 4);
    }
    let (all, _) = run(&made.bytes, &["-q", "--max-total", "16K"]);
    assert_eq!(limits(&all), ["max-total"], "{:?}", events(&all, "limit"));
    assert_eq!(messages(&all, "Cli2File_PingRequest"), 4 * 401);
    let (all, _) = run(&made.bytes, &["-q"]);
    assert_eq!(limits(&all), [""; 0]);
}

#[test]
fn messages_that_are_not_whole_are_bounded_for_all_streams() {
    let mut made = Made::new();
    let body = [0; 1400];
    for number in 0..8 {
        let (client, server) = ends(number);
        made.open(client, server);
        made.tcp((client, server), (1, 1, ACK), &CONNECT);
        // A message of 4,096 bytes of which the first 1,408 come now.
        let begun = [&4096_u32.to_le_bytes()[..], &999_u32.to_le_bytes(), &body].concat();
        made.tcp((client, server), (44, 1, ACK), &begun);
    }
    for number in 0..8 {
        let (client, server) = ends(number);
        made.tcp((client, server), (44 + 1408, 1, ACK), &[0; 2688]);
        made.tcp((client, server), (44 + 4096, 1, ACK), &PING.repeat(8));
    }
    let (all, _) = run(&made.bytes, &["-q", "--max-total", "8K"]);
    let given_up = limits(&all);
    assert!(given_up.len() >= 2 && given_up.iter().all(|l| *l == "max-total"), "{given_up:?}");
    // Where the message ends was known all the same: what follows it is read.
    assert_eq!(messages(&all, "Cli2File_PingRequest"), 8 * 8);
    let (all, _) = run(&made.bytes, &["-q"]);
    assert_eq!((limits(&all), messages(&all, "Cli2File_PingRequest")), (vec![], 8 * 8));
    for end in events(&all, "stream_end").iter().filter(|e| e["from"] == "client") {
        let bytes = &end["bytes"];
        assert_eq!(bytes["payload"], 43 + 4096 + 96);
        assert_eq!(
            bytes["payload"],
            bytes["explained"].as_u64().unwrap() + bytes["undecoded"].as_u64().unwrap()
        );
    }
}

#[test]
fn bytes_that_became_no_message_are_shown_up_to_a_bound_and_hidden_with_redact() {
    let (client, server) = ends(0);
    let mut made = Made::new();
    made.open(client, server);
    made.tcp((client, server), (1, 1, ACK), &CONNECT);
    made.tcp((client, server), (44, 1, ACK), &PING);
    // Most of a message: the stream ends within it.
    let begun = [&200_u32.to_le_bytes()[..], b"\0\0\0\0", b"sesame, open"].concat();
    made.tcp((client, server), (56, 1, ACK), &begun);
    let hex = "c800000000000000736573616d652c206f70656e";
    let shown = |more: &[&str]| {
        let (all, _) = run(&made.bytes, &[&["-q"], more].concat());
        let event = events(&all, "undecoded")[0].clone();
        (event["bytes"].as_str().unwrap().to_string(), event["bytes_cut"].as_u64())
    };
    assert_eq!(shown(&[]), (hex.into(), None));
    assert_eq!(shown(&["--max-undecoded", "12"]), (hex[..24].into(), Some(8)));
    assert_eq!(shown(&["--redact"]), ("<redacted, 20 bytes>".into(), None));
    let path = scratch("undecoded.pcap");
    std::fs::write(&path, &made.bytes).unwrap();
    let tree = |more: &[&str]| {
        let mut program = crate::common::program();
        String::from_utf8(program.arg(&path).args(["-q", "-x"]).args(more).output().unwrap().stdout)
            .unwrap()
    };
    let plain = tree(&[]);
    let cut = tree(&["--max-undecoded", "12"]);
    let hidden = tree(&["--redact"]);
    std::fs::remove_file(&path).unwrap();
    assert!(
        plain
            .contains("000000  c8 00 00 00 00 00 00 00  73 65 73 61 6d 65 2c 20  ........sesame, "),
        "{plain}"
    );
    assert!(cut.contains("and 8 more bytes (--max-undecoded)"), "{cut}");
    assert!(!hidden.contains("sesame") && !hidden.contains("73 65 73"), "{hidden}");
}

#[test]
fn packets_that_are_not_whole_are_bounded_for_all_streams() {
    let text = [b"({\"tell\",5,\"".to_vec(), vec![b'x'; 1400]].concat();
    let intermud3 = [&4096_u32.to_be_bytes()[..], &text].concat();
    let ouro = [&(4096_u32 * 8).to_le_bytes()[..], &[0; 1400]].concat();
    for (protocol, begun) in [("intermud3", intermud3), ("ouro", ouro)] {
        let mut made = Made::new();
        for number in 0..8 {
            let (client, server) = ends(number);
            made.open(client, server);
            made.tcp((client, server), (1, 1, ACK), &begun);
        }
        let more = ["-q", "--decode-as", &format!("tcp:14617={protocol}")];
        let (all, _) = run(&made.bytes, &[&more[..], &["--max-total", "8K"]].concat());
        let given_up = limits(&all);
        assert!(
            given_up.len() >= 2 && given_up.iter().all(|l| *l == "max-total"),
            "{protocol}: {given_up:?}"
        );
        let (all, _) = run(&made.bytes, &more);
        assert_eq!(limits(&all), [""; 0], "{protocol}");
    }
}

#[test]
fn the_largest_message_is_bounded() {
    let capture = "captures/moul/full_dirtsand.pcapng";
    let all = records(capture, &["keys/dirtsand.ini"], &["--max-message", "1K"]);
    assert!(limits(&all).contains(&"max-message"));
    assert!(
        events(&all, "limit")
            .iter()
            .all(|e| e["text"].as_str().unwrap().starts_with("a message of at least "))
    );
    let all = records(capture, &["keys/dirtsand.ini"], &["--max-message", "1M"]);
    assert_eq!(limits(&all), [""; 0]);
}

/// A City of Heroes packet as it is in a stream.
fn link_packet(body: &[u8]) -> Vec<u8> {
    let bits = (8 + body.len() as u32) * 8;
    [&bits.to_le_bytes()[..], &adler2::adler32_slice(body).to_be_bytes(), body].concat()
}

#[test]
fn the_largest_message_is_bounded_in_every_protocol_that_puts_messages_together() {
    let mut made = Made::new();
    let (client, server) = ends(0);
    made.open(client, server);
    let small = link_packet(&[0; 12]);
    let large = link_packet(&[0; 300]);
    made.tcp((client, server), (1, 1, ACK), &[&small[..], &large, &small, &large, &small].concat());
    let more = ["-q", "--decode-as", "tcp:14617=ouro", "--max-message"];
    let (all, _) = run(&made.bytes, &[&more[..], &["200"]].concat());
    assert_eq!(limits(&all), ["max-message"; 2]);
    assert_eq!(all.iter().filter(|r| r["message"].is_string() && r["event"].is_null()).count(), 3);
    let (all, _) = run(&made.bytes, &[&more[..], &["1K"]].concat());
    assert_eq!(limits(&all), [""; 0]);
    assert_eq!(all.iter().filter(|r| r["message"].is_string() && r["event"].is_null()).count(), 5);

    let capture = "captures/intermud3/i3_coffeemud.pcapng";
    let whole = records(capture, &[], &[]);
    let is_short = |r: &&Value| {
        r["message"].is_string() && r["event"].is_null() && r["length"].as_u64().unwrap() <= 200
    };
    let cut = records(capture, &[], &["--max-message", "196"]);
    assert!(!limits(&cut).is_empty() && limits(&cut).iter().all(|l| *l == "max-message"));
    let of = |all: &[Value]| {
        all.iter().filter(is_short).map(|r| (r["stream"].clone(), r["offset"].clone())).collect()
    };
    let (found, truth): (Vec<_>, Vec<_>) = (of(&cut), of(&whole));
    assert!(found.iter().all(|place| truth.contains(place)), "invented");
    assert!(found.len() * 100 >= truth.len() * 95, "{} of {}", found.len(), truth.len());
    assert_eq!(limits(&whole), [""; 0]);
}

/// An acknowledgement of Second Life, long enough to be sent in two IP fragments; the first of
/// them, and the second.
fn fragments(id: u16) -> [Vec<u8>; 2] {
    let acks: Vec<u8> = (0..200_u32).flat_map(u32::to_le_bytes).collect();
    let datagram = [&b"\0\0\0\0\x01\0\xff\xff\xff\xfb"[..], &[200], &acks].concat();
    let way = (end(1, 40_001), end(0, 13_000));
    let whole = udp(way, &datagram);
    [(0, 400), (400, whole.len())].map(|(from, to)| {
        let mut packet = ip(17, way, &whole[from..to]);
        packet[4..6].copy_from_slice(&id.to_be_bytes());
        let field = (from / 8) as u16 | if to < whole.len() { 0x2000 } else { 0 };
        packet[6..8].copy_from_slice(&field.to_be_bytes());
        packet
    })
}

const CIRCUIT: [&str; 3] = ["-q", "--decode-as", "udp:13000=secondlife"];

#[test]
fn a_datagram_with_missing_fragments_is_decoded_up_to_the_first_hole() {
    let mut made = Made::new();
    for id in 0..3 {
        let [first, second] = fragments(id);
        made.frame(&first);
        if id != 1 {
            made.frame(&second);
        }
    }
    let (all, _) = run(&made.bytes, &CIRCUIT);
    assert_eq!(messages(&all, "PacketAck"), 3);
    let gaps = events(&all, "gap");
    assert_eq!(gaps.len(), 1);
    assert_eq!(
        (gaps[0]["offset"].as_u64(), gaps[0]["length"].as_u64()),
        (Some(392), Some(811 - 392))
    );
    let problems = all.iter().filter_map(|r| r["problems"].as_array()).flatten();
    assert_eq!(problems.filter(|p| p["severity"] == "error").count(), 1, "the message ends early");
    assert_eq!(limits(&all), [""; 0]);
}

#[test]
fn fragments_that_wait_for_others_are_bounded() {
    let mut made = Made::new();
    for id in 0..1030 {
        made.frame(&fragments(id)[0]);
    }
    let (all, _) = run(&made.bytes, &CIRCUIT);
    assert_eq!(limits(&all), ["fragments"; 6], "1,024 wait, the others are given up one by one");
    assert_eq!(events(&all, "gap").len(), 1030);
}

/// A pcapng with secrets blocks of keys.
fn with_secrets(texts: &[String]) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let length = (body.len().next_multiple_of(4) + 12) as u32;
        let padding = vec![0; length as usize - 12 - body.len()];
        [&kind.to_le_bytes()[..], &length.to_le_bytes(), body, &padding, &length.to_le_bytes()]
            .concat()
    };
    let section = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
    let mut bytes = block(0x0a0d_0d0a, &section);
    for text in texts {
        bytes.extend(block(
            10,
            &[b"LUOM", &(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat(),
        ));
    }
    bytes.extend(block(1, &[101, 0, 0, 0, 0, 0, 4, 0]));
    bytes
}

#[test]
fn keys_that_captures_carry_are_bounded() {
    let lines = |count: usize| "session rc4=00112233445566\n".repeat(count);
    let said = |texts: &[String]| run(&with_secrets(texts), &["-q"]).1;
    assert_eq!(said(&[lines(35_000)]), "");
    assert!(
        said(&[lines(35_000), lines(35_000)])
            .contains("more than 64 private keys or 65536 of sessions")
    );
    assert!(said(&[lines(45_000)]).contains("a block of 1215000 bytes is passed over"));
}

#[test]
fn decompressed_content_is_bounded() {
    let capture = "captures/moul/full_dirtsand.pcapng";
    let of = |more: &[&str]| {
        let all = records(capture, &["keys/dirtsand.ini"], more);
        let problems = all.iter().filter_map(|r| r["problems"].as_array()).flatten();
        problems.filter(|p| p["text"].as_str().unwrap().contains("--max-decompressed")).count()
    };
    assert_eq!(of(&[]), 0);
    assert_eq!(of(&["--max-decompressed", "4"]), 11, "every compressed region of the capture");
}

#[test]
fn text_of_a_capture_is_bounded_and_does_not_depend_on_threads() {
    let bombs = crate::hostile_cases::CASES.iter().find(|case| case.name == "zlib bombs").unwrap();
    let keys = scratch("limits.keys");
    std::fs::write(&keys, crate::hostile_cases::KEY_FILE).unwrap();
    let capture = (bombs.make)(20);
    let of = |more: &[&str]| run(&capture, &[&["--keys", keys.to_str().unwrap()], more].concat());
    let length = |all: &[Value]| all.iter().map(|r| r.to_string().len()).sum::<usize>();
    let left_out = |r: &&Value| {
        r["problems"].to_string().contains("--max-output") && r["fields"] == serde_json::json!({})
    };

    let (whole, said) = of(&["--max-output", "none"]);
    assert!(whole.iter().all(|r| !left_out(&r)) && !said.contains("--max-output"));
    let (cut, said) = of(&["--max-output", "2M"]);
    let shortened = cut.iter().filter(left_out).count();
    assert!((5..20).contains(&shortened), "{shortened}");
    assert!(
        said.contains(&format!("{shortened} messages without fields (--max-output)")),
        "{said}"
    );
    assert!(length(&cut) < (2 << 20) + 256 * capture.len() && length(&whole) > 5 << 20);
    // Every record is there, and what does not concern fields is the same.
    let heads = |all: &[Value]| {
        all.iter().map(|r| (r["record"].clone(), r["offset"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(heads(&whole), heads(&cut));
    for threads in ["1", "2", "8"] {
        assert_eq!(of(&["--max-output", "2M", "--threads", threads]).0, cut, "{threads} threads");
    }
}

#[test]
fn sizes_that_are_none_are_refused() {
    for size in ["0", "many", "1T", "-5"] {
        let option = format!("--max-total={size}");
        let output = crate::common::program().args(["x.pcap", &option]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{size}");
        assert_eq!(output.stderr.iter().filter(|b| **b == b'\n').count(), 1);
    }
}

#[test]
fn a_claim_of_4_gigabytes_costs_nothing() {
    let mut made = Made::new();
    let (client, server) = ends(0);
    made.open(client, server);
    made.tcp((client, server), (1, 1, ACK), &CONNECT);
    let claim = [&0xffff_fff0_u32.to_le_bytes()[..], &10_u32.to_le_bytes()].concat();
    made.tcp((client, server), (44, 1, ACK), &claim);
    for n in 0..200 {
        made.tcp((client, server), (52 + n * 1200, 1, ACK), &PING.repeat(100));
    }
    let (peak, all) = peak(&made.bytes, &[]);
    assert_eq!(limits(&all), ["max-message"]);
    assert_eq!(messages(&all, "Cli2File_PingRequest"), 20_000);
    assert!(peak < 64 << 10, "{peak} KiB");
}

#[test]
fn twenty_thousand_streams_of_either_transport_stay_within_bounds() {
    let mut made = Made::new();
    for number in 0..20_000 {
        let (client, server) = ends(number);
        made.open(client, server);
        // A message of 15 MiB, of which 4,000 bytes come: 80 MB for all.
        let begun =
            [&CONNECT[..], &(15_u32 << 20).to_le_bytes(), &10_u32.to_le_bytes(), &[0; 3992]]
                .concat();
        made.tcp((client, server), (1, 1, ACK), &begun);
        // Another that may be a circuit of Second Life: one acknowledgement.
        let circuit = b"\0\0\0\0\x01\0\xff\xff\xff\xfb\x01\x01\0\0\0";
        made.udp((end(number + 1, 40_001), end(0, 13_000)), circuit);
    }
    let (peak, all) = peak(&made.bytes, &["--decode-as", "udp:13000=secondlife"]);
    println!("{peak} KiB at most");
    // More than 12,288 are not kept open: those idle for longest are told of and ended.
    assert!(limits(&all).contains(&"max-total") && limits(&all).contains(&"streams"));
    assert_eq!(
        events(&all, "stream_end").len(),
        40_000,
        "every direction of every connection is told of"
    );
    assert_eq!(messages(&all, "PacketAck"), 20_000);
    assert!(peak < 256 << 10, "{peak} KiB");
}

/// A zstd frame with the largest window that is accepted: a pcapng with one block of `length` zeros
/// that a reader skips.
fn zeros_in_a_large_window(length: usize) -> Vec<u8> {
    const WINDOW_OF_128_MIB: u8 = 17 << 3;
    const LARGEST_BLOCK: usize = 128 << 10;
    let block = |kind: u32, size: usize, content: &[u8]| {
        let header = (size as u32) << 3 | kind << 1;
        [&header.to_le_bytes()[..3], content].concat()
    };
    let raw = |bytes: &[u8]| block(0, bytes.len(), bytes);
    let words =
        |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let total = length as u32 + 12;
    let mut file = vec![0x28, 0xb5, 0x2f, 0xfd, 0, WINDOW_OF_128_MIB];
    file.extend(raw(&words(&[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28])));
    file.extend(raw(&words(&[0xbad, total])));
    for _ in 0..length / LARGEST_BLOCK {
        file.extend(block(1, LARGEST_BLOCK, &[0]));
    }
    let mut last = raw(&words(&[total]));
    last[0] |= 1;
    file.extend(last);
    file
}

#[test]
#[cfg(target_os = "linux")]
fn a_large_zstd_window_takes_its_own_size_and_no_more() {
    let (peak, all) = peak(&zeros_in_a_large_window(127 << 20), &[]);
    println!("{peak} KiB at most");
    assert!(all.is_empty());
    assert!(peak < 150 << 10, "{peak} KiB");
}

#[test]
#[cfg(target_os = "linux")]
fn two_large_zstd_windows_are_held_one_after_the_other() {
    let folder = scratch("limits-two-windows");
    std::fs::create_dir_all(&folder).unwrap();
    let packed = zeros_in_a_large_window(127 << 20);
    std::fs::write(folder.join("a"), &packed).unwrap();
    std::fs::write(folder.join("b"), [&packed[..], &packed].concat()).unwrap();
    let mut shell = crate::common::shell();
    shell.args(["-c", "ulimit -v 262144; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_moulsniff")]);
    shell.args(["diff", "a", "b", "-q"]).current_dir(folder).env("MALLOC_ARENA_MAX", "1");
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The most memory the program ever held while it read a capture (KiB; 0 where the system does not
/// tell), and its records.
fn peak(capture: &[u8], more: &[&str]) -> (u64, Vec<Value>) {
    let (peak, text) = peak_and_text(capture, &[&["--json"], more].concat());
    let lines = text.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    (peak, lines.map(|line| serde_json::from_slice(line).unwrap()).collect())
}

/// The same with what it printed.
fn peak_and_text(capture: &[u8], more: &[&str]) -> (u64, Vec<u8>) {
    let mut program = crate::common::program();
    program.current_dir(file("")).args(["-", "-q"]).args(more);
    let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        stdout.read_to_end(&mut text).unwrap();
        text
    });
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(capture).unwrap();
    // All but what is in the pipe was read; the rest is once the program sleeps.
    let status =
        || std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let mut said = status();
    for _ in 0..200 {
        if said.contains("State:\tS") || said.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
        said = status();
    }
    let line = said.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = line
        .and_then(|line| line.trim().strip_suffix(" kB"))
        .map_or(0, |kib| kib.trim().parse().unwrap());
    drop(stdin);
    assert!(child.wait().unwrap().success());
    (peak, reader.join().unwrap())
}

/// A protocol whose messages may have 16 MiB, each a text, or a text below nested structures.
const LARGE_MESSAGES: &str = "protocol large { transport tcp ports 7777 }
struct Header { kind: u8, span size: u32be }
service l { begins Header, selects kind, length here + size max 16777216 }
struct Nested { name: utf8[u8], again: u8, if again == 1 { nested: Nested } }
message l both 1 Text { text: utf8[*] }
message l both 2 Deep { nested: Nested, text: utf8[*] }
";

/// Each of these is printed without its fields: its text would be 96 MiB.
#[test]
fn messages_of_16_mib_of_controls_are_no_six_times_as_much_memory() {
    let table = scratch("large.table").display().to_string();
    std::fs::write(&table, LARGE_MESSAGES).unwrap();
    const SIZE: usize = (16 << 20) - 5;
    let ends = (end(1, 40_000), end(0, 7777));
    let mut made = Made::new();
    made.open(ends.0, ends.1);
    let deep = [&b"\x03\x01\x1b\"\x01".repeat(80)[..], b"\x01x\0"].concat();
    let mut at = 1;
    for (kind, head) in [(1, &[][..]), (2, &deep), (1, b"and a small one")] {
        let controls = if head.len() == 15 { 0 } else { SIZE - head.len() };
        let size = (head.len() + controls) as u32;
        let message = [&[kind][..], &size.to_be_bytes(), head, &vec![0x1b; controls]].concat();
        for part in message.chunks(60_000) {
            made.tcp(ends, (at, 1, ACK), part);
            at += part.len() as u32;
        }
    }
    for way in [
        &["--json"][..],
        &["--json", "--spans"],
        &["-x", "--color", "always"],
        &["--csv", "--columns", "message,fields,fields"],
        &["--columns", "message,fields.text"],
    ] {
        for threads in ["1", "8"] {
            let (peak, text) = peak_and_text(
                &made.bytes,
                &[way, &["--tables", &table, "--threads", threads]].concat(),
            );
            assert!(peak < 100 << 10, "{way:?} with {threads} threads: {peak} KiB");
            let text = String::from_utf8(text).unwrap();
            assert!(
                text.len() < 4 << 20 && text.contains("and a small one"),
                "{way:?}: {} bytes",
                text.len()
            );
            assert_eq!(text.matches("Deep").count(), 1, "{way:?}");
        }
    }
}
