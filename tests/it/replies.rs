//! Which reply belongs to which request where frames were not captured, and what is said of
//! requests then.

use serde_json::Value;

use crate::made::{Made, Talk, end, run};

use crate::common::scratch;

/// The connect packet of a launcher at a file server, whose messages are never encrypted.
const CONNECT: [&[u8]; 3] =
    [b"\x10\x1f\0\0\0\0\0\x32\0\0\0\x01\0\0\0", &[7; 16], b"\x0c\0\0\0\0\0\0\0\0\0\0\0"];

/// A launcher connects to a file server.
fn launcher() -> Talk {
    let mut talk = Talk::to(14_617);
    talk.says(0, &CONNECT.concat());
    talk
}

/// Pings with their replies: with too few messages behind a gap, these are not found again.
fn pings(talk: &mut Talk) {
    for time in [4000, 5000, 6000] {
        talk.says(0, &ping(time));
        talk.says(1, &ping(time));
    }
}

/// A message of the file server: its length, its number, its fields.
fn message(number: u32, fields: &[u32], more: &[u8]) -> Vec<u8> {
    let length = 8 + 4 * fields.len() as u32 + more.len() as u32;
    let numbers = [length, number].into_iter().chain(fields.iter().copied());
    let mut bytes: Vec<u8> = numbers.flat_map(u32::to_le_bytes).collect();
    bytes.extend(more);
    bytes
}

fn ping(time: u32) -> Vec<u8> {
    message(0, &[time], b"")
}

fn builds(transaction: u32) -> Vec<u8> {
    message(10, &[transaction], b"")
}

fn build(transaction: u32) -> Vec<u8> {
    message(10, &[transaction, 0, 918], b"")
}

/// The record numbers of the replies that a message gave, each with its request.
fn replies(records: &[Value], name: &str) -> Vec<(u64, Option<u64>)> {
    let of_name =
        records.iter().filter(|record| record["message"] == name && record.get("event").is_none());
    of_name
        .map(|record| (record["record"].as_u64().unwrap(), record["reply_to"].as_u64()))
        .collect()
}

/// The requests that are called unanswered.
fn unanswered(records: &[Value]) -> Vec<String> {
    let events = records.iter().filter(|record| record["event"] == "unanswered");
    events.map(|event| event["message"].as_str().unwrap().to_string()).collect()
}

#[test]
fn a_ping_belongs_to_the_reply_that_repeats_its_time_also_behind_a_lost_frame() {
    let mut talk = launcher();
    for time in [1000, 2000] {
        talk.says(0, &ping(time));
        talk.says(1, &ping(time));
    }
    talk.loses(0, &ping(3000));
    talk.says(1, &ping(3000));
    pings(&mut talk);
    let records = talk.records();
    let time = |record: u64| records[record as usize - 1]["fields"]["ping_time_ms"].clone();
    let all = replies(&records, "File2Cli_PingReply");
    assert_eq!(all.len(), 6);
    assert_eq!(
        replies(&records, "Cli2File_PingRequest").len(),
        5,
        "all that were captured are read"
    );
    for (reply, request) in all {
        assert!(
            request.is_none_or(|request| time(request) == time(reply)),
            "{reply} answers {request:?}"
        );
    }
    assert_eq!(unanswered(&records), [""; 0]);
}

#[test]
fn a_reply_is_given_to_no_request_that_was_answered_or_sent_later() {
    let mut talk = launcher();
    talk.says(0, &builds(7));
    talk.says(1, &build(7));
    talk.loses(0, &builds(7));
    talk.says(1, &build(7));
    talk.says(0, &builds(7));
    talk.says(1, &build(7));
    pings(&mut talk);
    let records = talk.records();
    assert_eq!(replies(&records, "Cli2File_BuildIdRequest").len(), 2);
    for (reply, request) in replies(&records, "File2Cli_BuildIdReply") {
        let elapsed = records[reply as usize - 1]["elapsed_ms"].as_f64();
        assert!(
            request.is_none() || elapsed == Some(1.0),
            "{reply} answers {request:?} after {elapsed:?} ms"
        );
    }
    assert_eq!(unanswered(&records), [""; 0]);
}

#[test]
fn a_request_that_is_read_behind_its_reply_is_not_unanswered_and_one_without_a_reply_is() {
    for hangs in [false, true] {
        let mut talk = launcher();
        talk.loses(0, &builds(1));
        talk.says(0, &ping(1000));
        talk.says(1, &ping(1000));
        talk.says(0, &builds(2));
        if !hangs {
            talk.says(1, &build(2));
        }
        pings(&mut talk);
        let records = talk.records();
        assert_eq!(replies(&records, "Cli2File_BuildIdRequest").len(), 1);
        let want = if hangs { vec!["Cli2File_BuildIdRequest"] } else { Vec::new() };
        assert_eq!(unanswered(&records), want);
    }
}

#[test]
fn a_download_is_answered_when_all_of_it_has_come() {
    for parts in 1..=3 {
        let mut talk = launcher();
        let mut name = [0; 520];
        name[0] = b'x';
        talk.says(0, &message(21, &[5], &[&name[..], &[0; 4]].concat()));
        for part in 1..=parts {
            let bytes = if part == 3 { 20 } else { 40 };
            talk.made.wait(9);
            talk.says(1, &message(21, &[5, 0, 1, 100, bytes], &vec![0; bytes as usize]));
        }
        talk.says(0, &message(21, &[6], &[&name[..], &[0; 4]].concat()));
        talk.says(1, &message(21, &[6, 7, 0, 0, 0], b""));
        let bytes = talk.bytes();
        let (records, _) = run(&bytes, &[]);
        let all = replies(&records, "File2Cli_FileDownloadReply");
        assert!(all.iter().all(|(_, request)| request.is_some()), "{all:?}");
        assert_eq!(
            unanswered(&records).len(),
            usize::from(parts < 3),
            "{parts} parts; the refusal is a reply"
        );
        let mut program = crate::common::program();
        let path = scratch(format!("parts-{parts}.pcap"));
        std::fs::write(&path, &bytes).unwrap();
        let output = program.arg("stats").arg(&path).args(["--json", "--quiet"]).output().unwrap();
        std::fs::remove_file(&path).unwrap();
        let stats: Value = serde_json::from_slice(&output.stdout).unwrap();
        let counts = &stats["replies"]["Cli2File_FileDownloadRequest"];
        assert_eq!(counts["answered"], if parts < 3 { 1 } else { 2 });
        if parts == 3 {
            assert_eq!(counts["latency_ms"]["max"], 30, "to the last part");
        }
    }
}

/// A datagram of a circuit: flags, sequence number, message.
fn circuit(flags: u8, sequence: u32, message: &[u8]) -> Vec<u8> {
    [&[flags][..], &sequence.to_be_bytes(), &[0], message].concat()
}

#[test]
fn a_message_whose_acknowledgement_may_be_lost_is_not_called_unacknowledged() {
    let viewer = end(1, 13_000);
    let simulator = end(2, 9000);
    let open = [&[0xff, 0xff, 0, 3, 1, 0, 0, 0][..], &[7; 32]].concat();
    let ping = |number: u8| [1, number, 0, 0, 0, 0];
    // RegionHandshakeReply, which nothing answers but an acknowledgement.
    let reliable = [&[0xff, 0xff, 0, 149][..], &[0; 32], &[0; 4]].concat();
    for lost in [None, Some(0), Some(1)] {
        let mut made = Made::new();
        made.udp((viewer, simulator), &circuit(0x40, 1, &open));
        let ack = [&[0xff, 0xff, 0xff, 0xfb, 1][..], &1_u32.to_le_bytes()].concat();
        made.udp((simulator, viewer), &circuit(0, 1, &ack));
        let mut sequence = 2;
        let mut server = |made: &mut Made, missing: bool| {
            sequence += u32::from(missing);
            made.wait(10);
            made.udp((simulator, viewer), &circuit(0, sequence, &ping(sequence as u8)));
            sequence += 1;
        };
        server(&mut made, lost == Some(0));
        made.udp((viewer, simulator), &circuit(0x40, 2, &reliable));
        server(&mut made, lost == Some(1));
        made.wait(10_000);
        server(&mut made, false);
        let (records, _) = run(&made.bytes, &[]);
        let names: Vec<String> =
            unanswered(&records).into_iter().filter(|name| name != "StartPingCheck").collect();
        let want = if lost == Some(1) { vec![] } else { vec!["RegionHandshakeReply"] };
        assert_eq!(names, want, "missing: {lost:?}");
    }
}

/// A packet of Intermud-3.
fn packet(text: &str) -> Vec<u8> {
    [&(text.len() as u32 + 1).to_be_bytes()[..], text.as_bytes(), b"\0"].concat()
}

#[test]
fn a_packet_that_is_read_behind_its_reply_or_its_error_is_not_unanswered() {
    let asks =
        |who: &str, mud: &str| format!("({{\"who-req\",5,\"MudAlpha\",\"{who}\",\"{mud}\",0,}})");
    let reply = |who: &str| {
        packet(&format!("({{\"who-reply\",5,\"MudBeta\",0,\"MudAlpha\",\"{who}\",({{}}),}})"))
    };
    let error = |who: &str, quoted: &str| {
        let head = format!(
            "({{\"error\",5,\"*lab\",0,\"MudAlpha\",\"{who}\",\"unk-dst\",\"Unknown mud\","
        );
        packet(&format!("{head}{quoted},}})"))
    };
    let mut talk = Talk::to(8080);
    talk.says(0, &packet(&asks("alice", "MudBeta")));
    talk.says(1, &reply("alice"));
    talk.loses(0, &packet(&asks("lost", "MudBeta")));
    talk.says(0, &packet(&asks("bob", "MudBeta")));
    talk.says(1, &reply("bob"));
    talk.says(0, &packet(&asks("carol", "NoMud")));
    talk.says(1, &error("carol", &asks("carol", "NoMud")));
    talk.says(0, &packet(&asks("dave", "MudBeta")));
    let records = talk.records();
    let asked: Vec<u64> =
        replies(&records, "who-req").into_iter().map(|(record, _)| record).collect();
    assert_eq!(asked.len(), 4);
    let events = records.iter().filter(|record| record["event"] == "unanswered");
    let never: Vec<u64> = events.map(|event| event["request"].as_u64().unwrap()).collect();
    assert_eq!(never, asked[3..], "nobody replied to dave");
}

#[test]
fn a_reply_that_was_captured_just_before_its_request_leaves_it_answered() {
    let shown = |waits: u32| {
        let mut talk = launcher();
        talk.says(1, &build(5));
        talk.made.wait(waits);
        talk.says(0, &builds(5));
        unanswered(&talk.records())
    };
    assert!(shown(3).is_empty(), "the two directions were captured in a wrong order");
    assert_eq!(shown(1000), ["Cli2File_BuildIdRequest"], "it is another request");
}

#[test]
fn a_refusal_whose_request_was_not_captured_is_not_called_unasked() {
    let talk = || {
        let mut talk = launcher();
        talk.loses(0, &builds(5));
        talk.says(1, &message(10, &[5, 20, 0], b""));
        pings(&mut talk);
        talk
    };
    let told = sessions("replies-refused", talk(), &[]);
    assert!(
        told.contains("  of no request captured before it: REFUSED, kNetErrAuthenticationFailed\n"),
        "{told}"
    );
    let told: serde_json::Value =
        serde_json::from_str(&sessions("replies-refused-json", talk(), &["--json"])).unwrap();
    let refused = &told["refusals"][0];
    assert_eq!(
        (&refused["refused"], refused.get("answered_ms")),
        (&"kNetErrAuthenticationFailed".into(), None)
    );
}

/// What `sessions` prints.
fn sessions(name: &str, talk: Talk, options: &[&str]) -> String {
    let capture = crate::exported_messages::folder(name).join("talk.pcap");
    std::fs::write(&capture, talk.bytes()).unwrap();
    let told = crate::exported_messages::run(
        &[&["sessions", "--quiet", capture.to_str().unwrap()], options].concat(),
    );
    String::from_utf8(told.stdout).unwrap()
}

#[test]
fn a_download_that_stops_is_answered_in_part() {
    let stops = || {
        let mut talk = launcher();
        talk.says(0, &message(21, &[5], &[&b"a\0"[..], &[0; 522]].concat()));
        talk.says(1, &message(21, &[5, 0, 1, 100, 10], &[7; 10]));
        talk
    };
    let records = stops().records();
    let event = records.iter().find(|record| record["event"] == "unanswered").unwrap();
    assert_eq!(event["text"], "Cli2File_FileDownloadRequest, record 2, never got all of its reply");
    assert_eq!(event["in_part"], true);
    let told = sessions("replies-part", stops(), &[]);
    assert!(
        told.contains("download a: ANSWERED IN PART, closed by the client after 3 ms\n"),
        "{told}"
    );
    let told: serde_json::Value =
        serde_json::from_str(&sessions("replies-part-json", stops(), &["--json"])).unwrap();
    assert_eq!(told["unanswered"][0]["in_part"], true);
}
