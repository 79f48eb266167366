//! Two captures side by side: real runs of the same client against the same server, copies that
//! were damaged, and copies in which one thing was changed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use crate::common::{file, random, scratch};
use crate::made::{ACK, End, Made, end};

/// A run without encryption, and one with it of the same client against the same server, which also
/// fetched files.
const CLEAR: &str = "captures/moul/clear.pcapng.gz";
const ENCRYPTED: &str = "captures/moul/full_dirtsand.pcapng";

/// What the program prints, and its exit status.
fn run(args: &[&str]) -> (String, String, i32) {
    let mut program = crate::common::program();
    let output = program
        .current_dir(file(""))
        .arg("diff")
        .args(args)
        .args(["--keys", "keys/dirtsand.ini"])
        .output();
    let output = output.unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr), output.status.code().unwrap())
}

/// The objects of `--json` without the last one, and the last one.
pub fn compared(a: &str, b: &str, more: &[&str]) -> (Vec<Value>, Value) {
    let (out, said, status) = run(&[&[a, b, "--json", "--quiet"], more].concat());
    let mut lines: Vec<Value> =
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let sum = lines.pop().unwrap_or_else(|| panic!("{said}"));
    let count: u64 =
        sum["differences"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(count as usize, lines.len(), "{sum}");
    assert_eq!(status, if lines.is_empty() { 0 } else { 4 });
    (lines, sum)
}

/// One message of a capture whose plaintext is what was sent.
#[derive(Clone)]
pub struct Sent {
    pub stream: u64,
    pub client: bool,
    pub name: String,
    fields: Value,
    pub bytes: Vec<u8>,
    /// Milliseconds that pass before it.
    wait: u32,
}

/// The messages of [`CLEAR`], in order, without the file server's.
pub fn messages() -> Vec<Sent> {
    let folder = folder("follow");
    let mut program = crate::common::program();
    let follow = ["follow", "--all", "--raw", "--quiet", CLEAR, "-o"];
    assert!(program.current_dir(file("")).args(follow).arg(&folder).status().unwrap().success());
    let mut streams: BTreeMap<(u64, bool), Vec<u8>> = BTreeMap::new();
    let records = crate::common::records(CLEAR, &[], &[]);
    let messages = records.iter().filter(|record| record.get("message").is_some());
    let sent = messages.map(|record| {
        let stream = record["stream"].as_u64().unwrap();
        let client = record["from"] == "client";
        let side = if client { "client" } else { "server" };
        let path = folder.join(format!("tcp-{stream:05}-{side}.bin"));
        let all = streams.entry((stream, client)).or_insert_with(|| std::fs::read(path).unwrap());
        let number = |key: &str| record[key].as_u64().unwrap() as usize;
        let bytes = all[number("offset")..number("offset") + number("length")].to_vec();
        let name = record["message"].as_str().unwrap().to_string();
        Sent { stream, client, name, fields: record["fields"].clone(), bytes, wait: 0 }
    });
    let sent = sent.collect();
    std::fs::remove_dir_all(folder).unwrap();
    sent
}

/// A folder of this test's own.
pub fn folder(name: &str) -> PathBuf {
    let number =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    let path = scratch(format!("diff-{name}-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// A capture of these messages, as they are named by their places, and each piece of at most `most`
/// bytes a segment of its own.
pub fn capture(name: &str, messages: &[Sent], most: usize) -> String {
    let mut made = Made::new();
    let server: End = end(1, 14617);
    let mut next: BTreeMap<(u64, bool), u32> = BTreeMap::new();
    for sent in messages {
        let client = end(2, 50_000 + sent.stream as u16);
        if !next.contains_key(&(sent.stream, true)) {
            made.open(client, server);
            next.extend([((sent.stream, true), 1), ((sent.stream, false), 1)]);
        }
        made.wait(sent.wait);
        let ends = if sent.client { (client, server) } else { (server, client) };
        for piece in sent.bytes.chunks(most) {
            let at = next[&(sent.stream, sent.client)];
            made.tcp(ends, (at, next[&(sent.stream, !sent.client)], ACK), piece);
            next.insert((sent.stream, sent.client), at + piece.len() as u32);
        }
    }
    let path = folder(name).join("capture.pcap");
    std::fs::write(&path, made.bytes).unwrap();
    path.to_str().unwrap().to_string()
}

/// Compares the messages with what `change` makes of them.
pub fn changed(name: &str, more: &[&str], change: impl FnOnce(&mut Vec<Sent>)) -> Vec<Value> {
    let mut all = messages();
    let a = capture(&format!("{name}-a"), &all, 1400);
    change(&mut all);
    let b = capture(&format!("{name}-b"), &all, 900);
    let (found, sum) = compared(&a, &b, more);
    let (turned, turned_sum) = compared(&b, &a, &[]);
    if more.is_empty() {
        assert_eq!(
            found.len(),
            turned.len(),
            "the other way round: {turned_sum} {turned:#?} {found:#?}"
        );
    }
    assert!(sum["same"].as_u64().unwrap() > 300, "{sum}");
    found
}

pub fn place(all: &[Sent], name: &str, fits: impl Fn(&Value) -> bool) -> usize {
    all.iter()
        .position(|sent| sent.name == name && fits(&sent.fields))
        .unwrap_or_else(|| panic!("no such {name}"))
}

/// Writes another 32-bit number in place of one that a message has.
fn replace(sent: &mut Sent, old: u32, new: u32) -> usize {
    let old = old.to_le_bytes();
    let new = new.to_le_bytes();
    let places: Vec<usize> = (2..sent.bytes.len().saturating_sub(3))
        .filter(|at| sent.bytes[*at..*at + 4] == old)
        .collect();
    for at in &places {
        sent.bytes[*at..*at + 4].copy_from_slice(&new);
    }
    places.len()
}

#[test]
fn a_capture_and_itself_are_the_same() {
    let (found, sum) = compared(ENCRYPTED, ENCRYPTED, &[]);
    assert!(found.is_empty());
    assert_eq!(sum["same"], 496);
}

#[test]
fn two_runs_of_one_client_differ_in_nothing_but_what_one_of_them_left_out() {
    let (found, sum) = compared(CLEAR, ENCRYPTED, &["-Y", "service != \"file\""]);
    assert!(found.is_empty(), "{found:#?}");
    assert_eq!(sum["same"], 425);
    let (found, _) = compared(CLEAR, ENCRYPTED, &[]);
    assert_eq!(found.len(), 71);
    assert!(
        found
            .iter()
            .all(|one| one["kind"] == "only_b" && one["service"] == "file" && one["a"].is_null())
    );
    let (out, _, status) = run(&[CLEAR, ENCRYPTED, "--quiet"]);
    assert_eq!(status, 4);
    assert!(out.contains("only in B Cli2File_PingRequest"), "{out}");
    assert!(out.contains("16 more like this"), "{out}");
}

#[test]
fn volatile_fields_are_compared_if_strict() {
    let (found, _) = compared(CLEAR, ENCRYPTED, &["-Y", "service != \"file\"", "--strict"]);
    assert!(found.iter().any(|one| one["path"] == "fields.server_challenge"), "{found:#?}");
}

#[test]
fn losses_are_no_differences() {
    let (found, sum) = compared(ENCRYPTED, "captures/moul/mangled_gaps.pcap.gz", &[]);
    assert!(found.is_empty(), "{found:#?}");
    assert!(sum["lost"]["b"].as_u64().unwrap() > 20, "{sum}");
    let all = messages();
    let a = capture("whole", &all, 1400);
    let whole = std::fs::read(capture("lost", &all, 500)).unwrap();
    let frames = frames(&whole);
    // Of each direction the beginning is kept, and its last frame: nothing tells of bytes that were
    // lost behind it.
    let way = |frame: &[u8]| frame[16 + 20..16 + 24].to_vec();
    let mut random = random();
    for round in 0..4 {
        let mut damaged = whole[..24].to_vec();
        for (at, frame) in frames.iter().enumerate() {
            let same =
                |frames: &[&[u8]]| frames.iter().filter(|other| way(other) == way(frame)).count();
            if same(&frames[..at]) < 8
                || same(&frames[at + 1..]) == 0
                || !random().is_multiple_of(20)
            {
                damaged.extend(*frame);
            }
        }
        let b = folder(&format!("damaged-{round}")).join("capture.pcap");
        std::fs::write(&b, damaged).unwrap();
        let (found, sum) = compared(&a, b.to_str().unwrap(), &[]);
        assert!(found.is_empty(), "{sum} {found:#?}");
        assert!(sum["lost"]["b"].as_u64().unwrap() > 0, "{sum}");
    }
}

/// The frames of a pcap, each with the 16 bytes before it.
fn frames(capture: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    let mut at = 24;
    while at < capture.len() {
        let length = u32::from_le_bytes(capture[at + 8..at + 12].try_into().unwrap()) as usize;
        all.push(&capture[at..at + 16 + length]);
        at += 16 + length;
    }
    all
}

#[test]
fn one_value() {
    let found = changed("value", &[], |all| {
        let at = place(all, "Cli2Auth_AgeRequest", |fields| fields["age_name"] == "city");
        let letter = all[at].bytes.iter().position(|byte| *byte == b'c').unwrap();
        all[at].bytes[letter] = b'k';
    });
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(
        (&found[0]["kind"], &found[0]["path"]),
        (&"value".into(), &"fields.age_name".into())
    );
    assert_eq!(found[0]["values"], serde_json::json!(["city", "kity"]));
    assert_ne!(found[0]["a"]["record"], Value::Null);
}

#[test]
fn one_message_more_or_less() {
    for name in [
        "Cli2Auth_VaultNodeFetch",
        "Auth2Cli_VaultNodeFetched",
        "Cli2Game_PropagateBuffer",
        "Auth2Cli_PingReply",
    ] {
        let found = changed("message", &[], |all| {
            let places: Vec<usize> = (0..all.len()).filter(|at| all[*at].name == name).collect();
            all.remove(places[places.len() / 2]);
        });
        assert_eq!(found.len(), 1, "{name}: {found:#?}");
        assert_eq!((&found[0]["kind"], &found[0]["message"]), (&"only_a".into(), &name.into()));
    }
}

#[test]
fn one_order() {
    for (name, stride) in [
        ("Cli2Game_PropagateBuffer", 1),
        ("Cli2Auth_VaultNodeFetch", 2),
        ("Game2Cli_PropagateBuffer", 3),
    ] {
        let found = changed("order", &[], |all| {
            let stream = all[place(all, name, |_| true)].stream;
            let places: Vec<usize> = (0..all.len())
                .filter(|at| all[*at].name == name && all[*at].stream == stream)
                .collect();
            let first = (places.len() / 2..)
                .find(|at| all[places[*at]].bytes != all[places[*at + stride]].bytes);
            let first = first.unwrap();
            let moved = all.remove(places[first]);
            all.insert(places[first + stride], moved);
        });
        assert_eq!(found.len(), 1, "{name}: {found:#?}");
        assert_eq!((&found[0]["kind"], &found[0]["message"]), (&"order".into(), &name.into()));
    }
}

#[test]
fn one_refusal() {
    let found = changed("refusal", &[], |all| {
        let at = place(all, "Auth2Cli_AgeReply", |fields| fields["result"]["value"] == 0);
        all[at].bytes[6] = 7;
    });
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(
        (&found[0]["kind"], &found[0]["path"]),
        (&"refused".into(), &"fields.result".into())
    );
    assert_eq!(found[0]["values"][1]["value"], 7);
}

#[test]
fn one_delay() {
    let later = |all: &mut Vec<Sent>| {
        let at = place(all, "Auth2Cli_AgeReply", |fields| fields["result"]["value"] == 0);
        all[at].wait = 400;
    };
    let found = changed("delay", &["--latency", "3"], later);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(
        (&found[0]["kind"], &found[0]["message"]),
        (&"latency".into(), &"Auth2Cli_AgeReply".into())
    );
    assert!(changed("no-delay", &[], later).is_empty(), "without --latency");
}

/// The number of the player whose client says most.
fn player(all: &[Sent]) -> u32 {
    let at = place(all, "Cli2Auth_AcctSetPlayerRequest", |fields| fields["trans_id"] == 7);
    all[at].fields["player_int"].as_u64().unwrap() as u32
}

#[test]
fn other_numbers_for_the_same_things_are_no_difference() {
    let found = changed("renamed", &[], |all| {
        let player = player(all);
        let places: usize = all.iter_mut().map(|sent| replace(sent, player, 0x7777_1234)).sum();
        assert!(places > 30, "{places}");
    });
    // In compressed parts of messages the number still is the old one: that is the one difference.
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0]["path"], "fields.buffer.stream.message.clone_key.clone_player_id");
}

#[test]
fn a_player_that_becomes_another_one_in_the_middle_is_found() {
    for part in [2, 3, 10] {
        let found = changed("meaning", &[], |all| {
            let player = player(all);
            let places: Vec<usize> =
                (0..all.len()).filter(|at| replace(&mut all[*at].clone(), player, 1) > 0).collect();
            let from = places.len() - places.len() / part;
            let replaced: usize =
                places[from..].iter().map(|at| replace(&mut all[*at], player, 0x7777_1234)).sum();
            assert!(replaced > 0);
        });
        assert!(!found.is_empty(), "the last of {part} parts");
        assert!(
            found.iter().all(|one| one["identity"] == "player" || one["identity"] == "node"),
            "{found:#?}"
        );
        assert!(found.len() <= 2, "{found:#?}");
        assert!(
            found[0]["elsewhere"][0]["record"].is_u64()
                && found[0]["elsewhere"][1]["record"].is_u64()
        );
    }
}

/// In a changed copy nothing was numbered anew, so another number is a change, even where it stands
/// in one message alone.
#[test]
fn a_number_that_differs_and_occurs_in_one_message_only_is_a_difference() {
    let found = changed("seen-once", &[], |all| {
        let at = place(all, "Cli2Auth_VaultFetchNodeRefs", |fields| fields["node_id"] == 888_888);
        assert_eq!(replace(&mut all[at], 888_888, 777_123), 1);
    });
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((&found[0]["kind"], &found[0]["path"]), (&"value".into(), &"fields.node_id".into()));
    assert_eq!(found[0]["values"], serde_json::json!([888_888, 777_123]));
    assert_eq!(found[0]["elsewhere"], serde_json::json!([null, null]));
}

/// A recording whose bytes say what is said, with some of them replaced where they stand for the
/// `nth` time.
fn with_bytes(name: &str, capture: &str, [old, new]: [&[u8]; 2], nth: usize) -> [String; 2] {
    let mut all = Vec::new();
    let kept = std::fs::read(file(capture)).unwrap();
    match capture.strip_suffix(".gz") {
        Some(_) => drop(
            std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&kept[..]), &mut all)
                .unwrap(),
        ),
        None => all = kept,
    }
    let at = (0..all.len() - old.len()).filter(|at| all[*at..].starts_with(old)).nth(nth).unwrap();
    let folder = folder(name);
    let paths = ["a.pcapng", "b.pcapng"].map(|name| folder.join(name));
    std::fs::write(&paths[0], &all).unwrap();
    all[at..at + old.len()].copy_from_slice(new);
    std::fs::write(&paths[1], &all).unwrap();
    paths.map(|path| path.to_str().unwrap().to_string())
}

#[test]
fn each_change_of_a_recording_is_one_difference_in_other_protocols_too() {
    const I3: &str = "captures/intermud3/i3_coffeemud.pcapng";
    const SL: &str = "captures/secondlife/opensim.pcapng.gz";
    const OURO: &str = "captures/ouro/coh_seed_udp.pcapng";
    let circuit = [806_703_776_u32, 806_703_777].map(u32::to_le_bytes);
    let cases: [(&str, [&[u8]; 2], usize, &str); 8] = [
        (I3, [b"hello bob", b"hello bub"], 0, "fields.message"),
        (I3, [b"hello bob", b"hello bub"], 1, "fields.message"),
        (I3, [b"\"MudGamma\"", b"\"MudGamme\""], 3, "fields.target_mudname"),
        (I3, [b"\"tell\",5", b"\"tell\",4"], 0, "fields.ttl"),
        (SL, [b"\x06\0hello\0", b"\x06\0hallo\0"], 0, "fields.ChatData.Message"),
        (SL, [b"Bob Smith", b"Bub Smith"], 0, "fields.ChatData.FromName"),
        (SL, [&circuit[0], &circuit[1]], 2, "fields.AgentData.CircuitCode"),
        (OURO, [b"", b""], 0, ""),
    ];
    for (number, (capture, bytes, nth, path)) in cases.into_iter().enumerate() {
        let [a, b] = with_bytes(&format!("bytes-{number}"), capture, bytes, nth);
        let (found, sum) = compared(&a, &b, &[]);
        let paths: Vec<&Value> = found.iter().map(|one| &one["path"]).collect();
        let expected: Vec<&str> = Some(path).filter(|path| !path.is_empty()).into_iter().collect();
        assert_eq!(paths, expected, "{capture} {nth}: {sum} {found:#?}");
    }
}

/// Two runs number things anew: what stands in one message alone may be the same thing, and is
/// counted.
#[test]
fn numbers_of_two_runs_that_were_seen_once_are_counted() {
    let keys = ["--keys", "keys/nagus.ini", "--keys", "keys/dirtsand.ini"];
    let (found, sum) =
        compared("captures/moul/nagus.pcapng", "captures/moul/full_dirtsand.pcapng", &keys);
    assert!(sum["renamed_once"].as_u64().unwrap() > 0, "{sum}");
    assert!(found.iter().all(|one| one["elsewhere"] != serde_json::json!([null, null])));
}

#[test]
fn what_is_ignored_is_not_compared() {
    let list = folder("ignore").join("list");
    std::fs::write(&list, "# what this server may do\n\nfields.age_name   # any age\nCli2File_*\n")
        .unwrap();
    let change = |all: &mut Vec<Sent>| {
        let at = place(all, "Cli2Auth_AgeRequest", |fields| fields["age_name"] == "city");
        let letter = all[at].bytes.iter().position(|byte| *byte == b'c').unwrap();
        all[at].bytes[letter] = b'k';
    };
    for more in [
        &["--ignore", "*.age_name"][..],
        &["--ignore", "Cli2Auth_AgeRequest fields.age_name"],
        &["--ignore", "*AgeRequest"],
        &["--ignore-file", list.to_str().unwrap()],
    ] {
        assert!(changed("ignored", more, change).is_empty(), "{more:?}");
    }
    assert_eq!(
        changed("ignored", &["--ignore", "Cli2Auth_PingRequest fields.age_name"], change).len(),
        1
    );
    let (_, said, status) = run(&[CLEAR, CLEAR, "--ignore", "fields.agename"]);
    assert_eq!(status, 2, "{said}");
    assert!(said.contains("age_name"), "{said}");
    for (entry, what) in [
        ("Cli2Auth_PingReq", "did you mean `Cli2Auth_PingRequest`?"),
        ("Nope", "no table has a message `Nope`"),
        ("*Nope* fields.age_name", "no table has a message `*Nope*`"),
        ("", "an empty entry"),
    ] {
        let (out, said, status) = run(&[CLEAR, CLEAR, "--ignore", entry]);
        assert_eq!((status, out.len()), (2, 0), "{entry}: {said}");
        assert!(said.contains(what), "{said}");
    }
}

#[test]
fn one_line_a_difference() {
    let (out, said, status) = run(&[CLEAR, ENCRYPTED, "--oneline"]);
    assert_eq!((out.lines().count(), status), (71, 4));
    assert!(
        out.starts_with("captures/moul/full_dirtsand.pcapng:15: only_b: file ConnectPacket"),
        "{out}"
    );
    assert!(said.contains("A: ") && said.contains("B: "), "{said}");
}

#[test]
fn secrets_are_hidden_in_differences_too() {
    let strict = ["-Y", "service != \"file\"", "--strict"];
    let shown = |more: &[&str]| {
        let (found, _) = compared(CLEAR, ENCRYPTED, &[&strict[..], more].concat());
        found
            .into_iter()
            .find(|one| one["path"] == "fields.server_challenge")
            .map(|one| one["values"].clone())
            .unwrap()
    };
    assert!(shown(&[])[0].is_u64());
    assert_eq!(shown(&["--redact"])[0], "<redacted, 4 bytes>");
}

#[test]
fn what_is_typed_wrong_is_said() {
    for (args, text) in [
        (&[CLEAR][..], "compares two captures"),
        (&[CLEAR, CLEAR, CLEAR], "compares two captures"),
        (&[CLEAR, "-"], "has to be a file"),
        (&[CLEAR, CLEAR, "--latency", "0"], "from 1 on"),
    ] {
        let (out, said, status) = run(args);
        assert_eq!((out.as_str(), status), ("", 2), "{said}");
        assert!(said.contains(text), "{said}");
    }
    let (out, said, status) = run(&[CLEAR, "captures/no-such-file"]);
    assert_eq!((out.as_str(), status), ("", 1), "{said}");
}

/// The two captures of `docs/diff.md`: the beginning of [`CLEAR`], and what a changed server makes
/// of it. `DIFF_CAPTURES=write` writes them.
#[test]
fn the_captures_of_the_page_are_what_this_makes() {
    let mut all: Vec<Sent> =
        messages().into_iter().filter(|sent| sent.stream < 2).take(70).collect();
    let made = [capture("golden", &all, 1400), {
        change_server(&mut all);
        capture("changed", &all, 900)
    }];
    for (name, made) in
        ["captures/moul/golden.pcap", "captures/moul/changed.pcap"].iter().zip(&made)
    {
        if std::env::var_os("DIFF_CAPTURES").is_some_and(|value| value == "write") {
            std::fs::copy(made, file(name)).unwrap();
        }
        assert_eq!(std::fs::read(file(name)).unwrap(), std::fs::read(made).unwrap(), "{name}");
    }
    let (found, sum) =
        compared("captures/moul/golden.pcap", "captures/moul/changed.pcap", &["--latency", "3"]);
    let kinds: Vec<&str> = found.iter().map(|one| one["kind"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        ["latency", "only_a", "refused", "value", "order", "value"],
        "{sum} {found:#?}"
    );
}

#[test]
fn the_script_of_the_page_is_the_one_that_is_run() {
    let [page, script] =
        ["docs/diff.md", ".ci/compare"].map(|name| std::fs::read_to_string(file(name)).unwrap());
    assert!(page.contains(&format!("```sh\n{script}```")), "{script}");
}

/// One of everything that may differ.
fn change_server(all: &mut Vec<Sent>) {
    let find = |all: &[Sent], name: &str, node: u64| {
        place(all, name, |f| f["node_id"] == node || f["node_buffer"]["node_id"] == node)
    };
    let late = place(all, "GateKeeper2Cli_AuthSrvIpAddressReply", |_| true);
    all[late].wait = 40;
    all.remove(place(all, "Auth2Cli_VaultNodeAdded", |_| true));
    let refused = place(all, "Auth2Cli_PlayerDeleteReply", |f| f["result"]["value"] == 0);
    all[refused].bytes[6] = 6;
    let named = find(all, "Auth2Cli_VaultNodeFetched", 10007);
    let name: Vec<u8> = "Ae'gura".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let at = all[named].bytes.windows(name.len()).position(|part| part == name).unwrap();
    all[named].bytes[at] = b'B';
    let asked = find(all, "Cli2Auth_VaultNodeFetch", 10011);
    let both: Vec<Sent> = all.drain(asked..asked + 2).collect();
    all.splice(asked + 2..asked + 2, both);
    let other = find(all, "Cli2Auth_VaultNodeFetch", 10125);
    assert_eq!(replace(&mut all[other], 10125, 20125), 1);
}

#[test]
fn what_is_beyond_the_memory_is_counted() {
    let moss = "captures/moul/moss_full.pcapng";
    let of = |memory: &str| {
        let args =
            [ENCRYPTED, moss, "--keys", "keys/moss_auth_key.der", "--json", "--max-memory", memory];
        let (out, _, status) = run(&args);
        assert_eq!(status, 4);
        let mut lines: Vec<Value> =
            out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        (lines.pop().unwrap(), lines.len() as u64)
    };
    let total = |sum: &Value| {
        sum["differences"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum::<u64>()
    };
    let (whole, all) = of("256M");
    assert_eq!(
        (total(&whole), &whole["not_told"], &whole["not_compared"]),
        (all, &Value::Null, &Value::Null)
    );
    let (cut, told) = of("80K");
    assert_eq!(total(&cut), told + cut["not_told"].as_u64().unwrap());
    assert!(told > 0 && told < all, "{told} of {all}");
    assert!(cut["not_compared"]["a"].as_u64().unwrap() > 50);
    let (text, ..) = run(&[ENCRYPTED, moss, "--max-memory", "80K"]);
    assert!(
        text.contains("are only counted (--max-memory)")
            && text.contains("were too many to be compared"),
        "{text}"
    );
}

#[test]
fn what_there_is_to_say_of_keys_and_filters_is_said_once() {
    let keys = folder("keys-once");
    for name in ["dirtsand.ini", "server.ini"] {
        std::fs::copy(file("keys").join(name), keys.join(name)).unwrap();
    }
    let capture = "captures/moul/kind_gate.pcap";
    let mut program = crate::common::program();
    let keys = keys.to_str().unwrap();
    let output = program
        .current_dir(file(""))
        .args(["diff", capture, capture, "--keys", keys])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.matches("public halves").count(), 1, "{said}");
}

#[test]
fn captures_that_were_made_to_have_the_same_hash_differ() {
    let [a, b, c] =
        ["a", "b", "c"].map(|name| format!("tests/data/diff_same_hash/collision_{name}.pcap"));
    for [one, other] in [[&a, &b], [&a, &c], [&b, &c]] {
        let (found, _) = compared(one, other, &[]);
        assert_eq!(found.len(), 1, "{one} {other}");
        assert_eq!(found[0]["path"], "fields.message");
    }
    assert!(compared(&a, &a, &[]).0.is_empty());
}

/// A client that states another session on the same circuit begins another session.
#[test]
fn a_stream_that_goes_on_in_further_sessions_is_compared_once() {
    let mut made = Made::new();
    for session in 1..=5 {
        let header = [0x40, 0, 0, 0, session, 0, 0xff, 0xff, 0, 3];
        let circuit = [&header[..], &[7; 4], &[session; 16], &[9; 16]].concat();
        made.udp((end(1, 50_000), end(2, 13_000)), &circuit);
    }
    let path = folder("one-stream").join("made.pcap");
    std::fs::write(&path, made.bytes).unwrap();
    let path = path.to_str().unwrap();
    let (differences, sum) = compared(path, path, &[]);
    assert_eq!((differences.len(), &sum["same"]), (0, &Value::from(5)));
}
