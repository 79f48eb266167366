//! Encrypted connections joined late: with the session's key alone, the keystream's position is
//! found, wherever in a message the capture begins.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::common::{file, records, scratch};
use crate::made::{ACK, End, Made, end, run};
use moulsniff::capture::{Capture, CaptureItem};
use moulsniff::flow::FlowLimits;
use moulsniff::pipeline::{Output, Pipeline, Setup};
use moulsniff::proto::moul::MoulSettings;
use moulsniff::proto::moul::keys::{KeyFile, KeyRing, SearchBounds, SessionKey};
use moulsniff::proto::{AllSettings, LazyTables, PROTOCOLS};
use moulsniff::record::{Body, Record};
use moulsniff::session::{EventKind, Options, Settings};
use serde_json::Value;

const CAPTURE: &str = "captures/moul/full_dirtsand.pcapng";
const KEY: [u8; 7] = [0x0d, 0x5e, 0x33, 0x91, 0x77, 0xa0, 0x42];
/// Connect packet and key agreement of an auth connection; what the server says to it.
const OPENING: [usize; 2] = [117, 9];

fn ends() -> (End, End) {
    (end(1, 40_000), end(0, 14_617))
}

/// The plaintext that one side of a stream sent.
fn plaintext(stream: u64, from: &str) -> Vec<u8> {
    let mut program = crate::common::program();
    let stream = format!("tcp:{stream}");
    program.args([
        "follow",
        "--raw",
        "--from",
        from,
        &stream,
        CAPTURE,
        "--keys",
        "keys/dirtsand.ini",
        "-q",
    ]);
    program.current_dir(file("")).output().unwrap().stdout
}

/// Messages of one side as service, name and offset, counted from `from` on.
fn told(records: &[Value], stream: u64, side: &str, from: u64) -> BTreeSet<(u64, String)> {
    let of = |r: &&Value| r["stream"] == stream && r["from"] == side && r["event"].is_null();
    let messages = records.iter().filter(of);
    messages
        .filter_map(|m| {
            Some((m["offset"].as_u64()?.checked_sub(from)?, m["message"].as_str()?.to_string()))
        })
        .collect()
}

/// A key file for the test, under a name of its own.
fn key_file(name: &str, line: &str) -> PathBuf {
    let path = scratch(name);
    let rc4: String = KEY.iter().map(|b| format!("{b:02x}")).collect();
    std::fs::write(&path, format!("moulsniff-keys 1\nsession {line} rc4={rc4}\n")).unwrap();
    path
}

/// The connection under a key of the test, from an offset of each direction on, in segments of 500
/// bytes in turn.
fn joined(plain: [&[u8]; 2], cuts: [usize; 2]) -> Vec<u8> {
    let mut made = Made::new();
    join(&mut made, ends().0, plain, cuts);
    made.bytes
}

/// The same in a capture that has others, too.
fn join(made: &mut Made, client: End, plain: [&[u8]; 2], cuts: [usize; 2]) {
    let (_, server) = ends();
    let sent = [0, 1].map(|side| {
        let mut bytes = plain[side].to_vec();
        SessionKey::new(KEY).cipher().apply(&mut bytes[OPENING[side]..]);
        bytes[cuts[side]..].to_vec()
    });
    let mut at = [1000_u32, 2000];
    let mut parts = [sent[0].chunks(500), sent[1].chunks(500)];
    loop {
        let next = [parts[0].next(), parts[1].next()];
        if next == [None, None] {
            return;
        }
        for (side, part) in next.into_iter().enumerate() {
            let way = if side == 0 { (client, server) } else { (server, client) };
            if let Some(part) = part {
                made.tcp(way, (at[side], at[1 - side], ACK), part);
                at[side] += part.len() as u32;
            }
        }
    }
}

#[test]
fn a_session_key_opens_a_stream_that_begins_in_the_middle_of_a_message() {
    let whole = records(CAPTURE, &["keys/dirtsand.ini"], &[]);
    let most = |service: &str| {
        let streams: BTreeSet<u64> = whole
            .iter()
            .filter(|r| r["service"] == service)
            .filter_map(|r| r["stream"].as_u64())
            .collect();
        let count = |s: &u64| told(&whole, *s, "client", 0).len();
        streams.into_iter().max_by_key(count).unwrap()
    };
    let ends = "client=10.9.0.1:40000 server=10.9.0.0:14617";
    for (service, line) in
        [("auth", format!("auth {ends}")), ("game", format!("{ends} server-start=search"))]
    {
        let keys = key_file(&format!("late_{service}_{}.keys", line.len()), &line);
        let stream = most(service);
        let plain = [plaintext(stream, "client"), plaintext(stream, "server")];
        for part in [3, 10] {
            let cuts = [0, 1]
                .map(|side| OPENING[side] + (plain[side].len() - OPENING[side]) * part / 100 + 5);
            let capture = joined([&plain[0], &plain[1]], cuts);
            let (all, _) = run(&capture, &["-q", "--keys", keys.to_str().unwrap()]);
            let says: String = all
                .iter()
                .filter(|r| r["event"] == "key")
                .map(|r| r["text"].as_str().unwrap())
                .collect();
            for (side, name) in ["client", "server"].into_iter().enumerate() {
                let used = cuts[side] - OPENING[side];
                let says_so = format!("the {name}'s keystream was found after {used} bytes");
                assert!(says.contains(&says_so), "{service} at {cuts:?}: {says}");
                let truth = told(&whole, stream, name, cuts[side] as u64);
                let found = told(&all, 0, name, 0);
                assert!(found.is_subset(&truth), "{service} {name} at {cuts:?}: invented");
                let missed = truth.len() - found.len();
                println!(
                    "{service} {name} at {}: {} of {} messages",
                    cuts[side],
                    found.len(),
                    truth.len()
                );
                assert!(
                    missed <= 2,
                    "{service} {name} at {cuts:?}: {missed} of {} missed",
                    truth.len()
                );
            }
        }
    }
}

#[test]
fn another_session_s_key_opens_nothing() {
    let whole = records(CAPTURE, &["keys/dirtsand.ini"], &[]);
    let auth = whole.iter().find(|r| r["service"] == "auth").unwrap()["stream"].as_u64().unwrap();
    let plain = [plaintext(auth, "client"), plaintext(auth, "server")];
    let capture = joined([&plain[0][..1400], &plain[1][..1400]], [200, 200]);
    let line = "session client=10.9.0.1:40000 server=10.9.0.0:14617 rc4=11223344556677\n";
    let path = scratch("late_other.keys");
    std::fs::write(&path, line).unwrap();
    let (all, _) = run(&capture, &["-q", "--keys", path.to_str().unwrap()]);
    assert!(all.iter().all(|r| r["message"].is_null()), "invented");
    let events: Vec<&str> = all.iter().filter_map(|r| r["event"].as_str()).collect();
    assert_eq!(events, ["no_key", "stream_end", "stream_end"]);
    for end in all.iter().filter(|r| r["event"] == "stream_end") {
        assert_eq!(end["bytes"]["closed"], end["bytes"]["payload"]);
    }
}

#[test]
fn holes_without_end_do_not_keep_the_program_busy() {
    let whole = records(CAPTURE, &["keys/dirtsand.ini"], &[]);
    let auth = whole.iter().find(|r| r["service"] == "auth").unwrap()["stream"].as_u64().unwrap();
    let plain = [plaintext(auth, "client"), plaintext(auth, "server")];
    let mut made = Made::new();
    made.bytes = joined([&plain[0], &plain[1]], [200, 200]);
    let (client, server) = ends();
    for jump in 1..40_u32 {
        for step in 0..5 {
            made.tcp((client, server), (jump.wrapping_mul(0x3000_0000) + step, 1, ACK), b"x");
        }
    }
    let keys = key_file("late_holes.keys", "auth client=10.9.0.1:40000 server=10.9.0.0:14617");
    let (all, _) = run(&made.bytes, &["-q", "--keys", keys.to_str().unwrap()]);
    let limits: Vec<&Value> =
        all.iter().filter(|r| r["event"] == "limit").map(|r| &r["limit"]).collect();
    assert_eq!(limits, ["keystream"]);
}

#[test]
fn a_sequence_number_says_where_the_keystream_begins() {
    let whole = records(CAPTURE, &["keys/dirtsand.ini"], &[]);
    let stream = whole.iter().find(|r| r["service"] == "auth").unwrap()["stream"].as_u64().unwrap();
    let plain = [plaintext(stream, "client"), plaintext(stream, "server")];
    // Cut where little follows: too little for a search, and enough where the place is known.
    let cuts = [0, 1].map(|side| plain[side].len() - 300);
    let capture = joined([&plain[0], &plain[1]], cuts);
    // The first captured bytes have the numbers 1000 and 2000; those of the first encrypted bytes
    // lie before 0.
    let [client, server] = [(0, 1000_u32), (1, 2000)]
        .map(|(side, first)| first.wrapping_sub((cuts[side] - OPENING[side]) as u32));
    assert!(client > 1 << 31 && server > 1 << 31);
    let ends = "auth client=10.9.0.1:40000 server=10.9.0.0:14617";
    let read = |name: &str, starts: String| {
        let keys = key_file(name, &format!("{ends} {starts}"));
        run(&capture, &["-q", "--keys", keys.to_str().unwrap()]).0
    };
    let all =
        read("late_numbers.keys", format!("client-start=seq:{client} server-start=seq:{server}"));
    let key = all.iter().find(|r| r["event"] == "key").unwrap()["text"].as_str().unwrap();
    assert!(!key.contains("was found"), "nothing is searched: {key}");
    for (side, name) in ["client", "server"].into_iter().enumerate() {
        let truth = told(&whole, stream, name, cuts[side] as u64);
        let found = told(&all, 0, name, 0);
        assert!(found.is_subset(&truth) && !found.is_empty(), "{name}: {found:?} of {truth:?}");
        assert!(truth.len() - found.len() <= 1, "{name}: {found:?} of {truth:?}");
    }
    // A wrong number gives noise, and in noise no message is found.
    let wrong = read(
        "late_wrong.keys",
        format!("client-start=seq:{} server-start=seq:{}", client - 1, server - 7),
    );
    assert!(wrong.iter().all(|r| r["message"].is_null()), "invented");
    // A number behind what was captured is that of another connection.
    let later =
        read("late_later.keys", "client-start=seq:90000 server-start=seq:90000".to_string());
    assert!(later.iter().all(|r| r["event"] != "undecoded"));
}

/// Counts directions that were opened, and connections that stayed closed.
#[derive(Default)]
struct Opened(usize, usize);

impl Output for Opened {
    fn record(&mut self, record: &Record<'_>) {
        if let Body::Event(event) = &record.body {
            self.0 += usize::from(matches!(event.kind, EventKind::Key { .. }));
            self.1 += usize::from(event.kind == EventKind::NoKey);
        }
    }
}

#[test]
fn keystreams_are_searched_a_bounded_number_of_times_whatever_the_streams() {
    let whole = records(CAPTURE, &["keys/dirtsand.ini"], &[]);
    let auth = whole.iter().find(|r| r["service"] == "auth").unwrap()["stream"].as_u64().unwrap();
    let plain = [plaintext(auth, "client"), plaintext(auth, "server")];
    let mut made = Made::new();
    for number in 1..=12 {
        join(
            &mut made,
            end(number, 40_000),
            [&plain[0][..3000], &plain[1][..3000]],
            [OPENING[0] + 20, OPENING[1] + 20],
        );
    }
    // Searched for; or given, and so far away that to go there takes as long; or given and near.
    for (starts, most) in [
        ("", 8),
        ("client-start=used:5000 server-start=used:5000", 8),
        ("client-start=used:20 server-start=used:20", 24),
    ] {
        let rc4: String = KEY.iter().map(|b| format!("{b:02x}")).collect();
        let mut keys = KeyRing::default();
        keys.search = SearchBounds { positions: 1 << 12, searches: 8 };
        keys.add(
            KeyFile::parse("x.keys", format!("session auth {starts} rc4={rc4}\n").as_bytes())
                .unwrap(),
        );
        let tables = PROTOCOLS.iter().map(|p| LazyTables::new(*p, Vec::new()).unwrap());
        let setup = Setup {
            tables: tables.collect(),
            settings: AllSettings::default()
                .with("moul", Settings::new(MoulSettings::with_keys(keys))),
            options: Options::default(),
            decode_as: vec![moulsniff::pipeline::DecodeAs {
                transport: moulsniff::session::Transport::Tcp,
                port: 14_617,
                protocol: "moul".into(),
            }],
            limits: FlowLimits::default(),
            max_held: 32 << 20,
            names: false,
            pseudonyms: None,
        };
        let mut pipeline = Pipeline::new(setup);
        let mut out = Opened::default();
        let mut capture =
            Capture::from_reader("x", Box::new(std::io::Cursor::new(made.bytes.clone())));
        while let Some(item) = capture.next_item().unwrap() {
            if let CaptureItem::Frame(frame) = item {
                pipeline.frame(&frame, &mut out);
            }
        }
        pipeline.finish(&mut out);
        let Opened(opened, closed) = out;
        println!("{starts}: {opened} opened, {closed} closed");
        assert!(
            (1..=most).contains(&opened) && (most == 8 || opened == most),
            "{starts}: {opened}"
        );
    }
}
