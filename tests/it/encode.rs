//! JSON becomes the bytes that it was read from: the messages of all captures and all examples of
//! the tables. What cannot come back is listed in docs/encode.md, by kind and with its count.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use moulsniff::proto::all_tables;
use moulsniff::table::{Encoder, ExampleOf, Json, Written, parse_hex};
use moulsniff::{Decoder, Record};

use crate::common::{Random, file, program, scratch};

/// How the messages of a capture came back.
#[derive(Debug, Default, PartialEq, Eq)]
struct RoundTrips {
    messages: usize,
    /// From `fields` alone.
    equal: usize,
    /// Those that do not come back from `--spans`, by the name of the message.
    others: BTreeMap<String, usize>,
}

fn round_trips(capture: &str, keys: &[&str]) -> RoundTrips {
    let mut decoder = Decoder::new();
    for key in keys {
        decoder = decoder.keys(file(key)).unwrap();
    }
    let mut encoder = decoder.encoder().unwrap();
    let mut found = RoundTrips::default();
    for record in decoder.open(file(capture)).unwrap() {
        let record = record.unwrap();
        if record.message().is_none() {
            continue;
        }
        found.messages += 1;
        let mut encode = |json: String| match encoder.encode(&json) {
            Ok(Some(bytes)) if bytes == record.bytes() => None,
            Ok(bytes) => Some(difference(&bytes.unwrap_or_default(), record.bytes())),
            Err(error) => Some(error.to_string()),
        };
        let (fields, spans) = (encode(record.json()), encode(record.json_spans()));
        found.equal += usize::from(fields.is_none());
        if let Some(why) = fields {
            show("fields", &record, &why);
        }
        if let Some(why) = spans {
            show("spans", &record, &why);
            let name = record.message().unwrap_or("").to_string();
            *found.others.entry(name).or_default() += 1;
        }
    }
    found
}

fn show(what: &str, record: &Record, why: &str) {
    if std::env::var_os("ENCODE_SHOW").is_some() {
        let problems: Vec<String> = record.problems().iter().map(|p| format!("{p:?}")).collect();
        let problems: String = problems.concat().chars().take(300).collect();
        let name = record.message().unwrap_or("");
        println!("{what} {} {name}: {why} {problems}", record.number());
    }
}

/// The first place where bytes differ.
fn difference(got: &[u8], expected: &[u8]) -> String {
    let same = got.iter().zip(expected).take_while(|(a, b)| a == b).count();
    let part = |bytes: &[u8]| {
        bytes.iter().skip(same).take(12).map(|b| format!("{b:02x}")).collect::<String>()
    };
    let (ours, theirs) = (part(got), part(expected));
    format!("at {same} of {}/{}: {ours} for {theirs}", got.len(), expected.len())
}

const DIRTSAND: &[&str] = &["keys/dirtsand.ini"];
const EVENING: &[&str] = &["keys/evening.keys"];
const NAGUS: &[&str] = &["keys/nagus.ini"];
const MOSS: &[&str] =
    &["keys/moss_gatekeeper_key.der", "keys/moss_auth_key.der", "keys/moss_game_key.der"];

/// Each capture, its keys, how many messages it has, and how many of them come back from `fields`
/// alone. All come back from spans.
const CAPTURES: &[(&str, &[&str], [usize; 2])] = &[
    ("moul/any_sll2.pcap", DIRTSAND, [46, 46]),
    ("moul/changed.pcap", &[], [69, 69]),
    ("moul/clear.pcapng.gz", &[], [425, 413]),
    ("moul/evening.pcapng", EVENING, [330, 330]),
    ("moul/full_dirtsand.pcapng", DIRTSAND, [496, 469]),
    ("moul/golden.pcap", &[], [70, 70]),
    ("moul/kind_game.pcap", DIRTSAND, [154, 144]),
    ("moul/kind_gate.pcap", DIRTSAND, [13, 13]),
    ("moul/mangled_gaps.pcap.gz", DIRTSAND, [469, 445]),
    ("moul/midstream.pcap", DIRTSAND, [74, 68]),
    ("moul/moss_full.pcapng", MOSS, [520, 492]),
    ("moul/nagus.pcapng", NAGUS, [352, 346]),
    ("moul/synthetic_all.pcap.gz", DIRTSAND, [251, 244]),
    ("secondlife/every_message.pcapng.gz", &[], [823, 710]),
    ("secondlife/http.pcap", &[], [15, 12]),
    ("secondlife/opensim.pcapng.gz", &[], [4393, 4392]),
    ("intermud3/i3_coffeemud.pcapng", &[], [133, 127]),
    ("intermud3/i3_edge_small.pcapng", &[], [168, 123]),
    ("ouro/coh_seed_udp.pcapng", &[], [189, 177]),
    ("ouro/coh_segs_udp.pcapng", &[], [22, 16]),
    ("ouro/coh_tcp.pcap", &[], [42, 38]),
];

#[test]
fn messages_of_captures_come_back() {
    let mut wrong = Vec::new();
    for (capture, keys, expected) in CAPTURES {
        let found = round_trips(&format!("captures/{capture}"), keys);
        if [found.messages, found.equal] != *expected || !found.others.is_empty() {
            let counts = [found.messages, found.equal];
            wrong.push(format!("(\"{capture}\", {counts:?}), not from spans: {:?}", found.others));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_capture_is_in_the_list() {
    let mut missing = Vec::new();
    for folder in std::fs::read_dir(file("captures")).unwrap().filter_map(Result::ok) {
        let Ok(files) = std::fs::read_dir(folder.path()) else { continue };
        for name in files.filter_map(Result::ok).map(|f| f.file_name().into_string().unwrap()) {
            let is_listed = CAPTURES.iter().any(|(capture, ..)| capture.ends_with(&name));
            if name.contains(".pcap") && !is_listed {
                missing.push(name);
            }
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}

/// The examples of a protocol that do not come back, as `NAME: why`.
fn examples_not_encoded(protocol: &str) -> (usize, Vec<String>) {
    let all = all_tables(Vec::new()).unwrap();
    let lazy = all.iter().find(|lazy| lazy.protocol().name() == protocol).unwrap();
    let tables = lazy.get();
    let mut wrong = Vec::new();
    for example in tables.examples() {
        let text = tables.example_bytes(example);
        let bytes = if example.text { text.into_bytes() } else { parse_hex(&text).unwrap() };
        let json = Json::parse(tables.example_json(example)).unwrap();
        let mut encoder = Encoder::default();
        let written = Written { json: &json, fields: Json::ROOT, problems: None, message: None };
        let (name, result) = match example.of {
            ExampleOf::Message(id) => {
                let def = tables.message(id).unwrap();
                let bare = tables.service(def.service).is_some_and(|s| s.header.is_empty());
                let layout = def.layout.and_then(|layout| tables.layout(layout));
                let result = match layout.filter(|_| bare) {
                    Some(layout) => encoder.value(tables, layout.ty, written),
                    None => encoder.message(tables, id, written),
                };
                (tables.name(def.name), result)
            }
            ExampleOf::Layout(id) => {
                let layout = tables.layout(id).unwrap();
                (tables.name(layout.name), encoder.value(tables, layout.ty, written))
            }
        };
        match result {
            Ok(got) if got == bytes => {}
            Ok(got) => wrong.push(format!("{name}: {}", difference(&got, &bytes))),
            Err(error) => wrong.push(format!("{name}: {error}")),
        }
    }
    (tables.examples().len(), wrong)
}

/// How many examples come back at least. Those of messages that describe themselves are not among
/// them: their bytes leave out the length.
const EXAMPLES: [(&str, usize); 3] = [("moul", 470), ("secondlife", 420), ("ouro", 20)];

#[test]
fn examples_of_the_tables_come_back() {
    for (protocol, at_least) in EXAMPLES {
        let (all, wrong) = examples_not_encoded(protocol);
        let equal = all - wrong.len();
        assert!(equal >= at_least, "{protocol}: {equal} of {all}\n{}", wrong.join("\n"));
    }
}

/// What is wrong with a vector of `tables vectors`: its bytes must give its fields, and these its
/// bytes. `of` is what `decode` reads them as.
fn wrong_vector(
    decoder: &Decoder,
    encoder: &mut moulsniff::Encoder,
    of: &str,
    vector: &serde_json::Value,
) -> Option<String> {
    let bytes = parse_hex(vector["hex"].as_str().unwrap()).unwrap();
    let records = match decoder.decode(of, &bytes) {
        Ok(records) => records,
        Err(error) => return Some(error.to_string()),
    };
    let [record] = &records[..] else { return Some(format!("{} messages", records.len())) };
    let json: serde_json::Value = serde_json::from_str(&record.json()).unwrap();
    if (&json["message"], &json["fields"]) != (&vector["message"], &vector["fields"]) {
        return Some(format!("is {json}"));
    }
    for (kind, json) in [("json", record.json()), ("spans", record.json_spans())] {
        match encoder.encode_as(of, &json) {
            Ok(got) if got == bytes => {}
            // From fields alone, another form of the same values may come.
            Ok(_) if kind == "json" => {}
            Ok(got) => return Some(format!("{} for {json}", difference(&got, &bytes))),
            Err(error) => return Some(format!("{error} for {json}")),
        }
    }
    // With nothing but the fields, bytes come that give the same fields.
    let got = match encoder.encode_as(of, &vector.to_string()) {
        Ok(got) => got,
        Err(error) => return Some(format!("{error} for {vector}")),
    };
    let again = decoder.decode(of, &got).unwrap().remove(0);
    let mut fields = [fields(&again.json()), vector["fields"].clone()];
    if vector["service"] == "http" {
        // One of them says the length of the body.
        fields.iter_mut().for_each(|fields| _ = fields.as_object_mut().unwrap().remove("headers"));
    }
    (fields[0] != fields[1]).then(|| format!("{} for {}", fields[0], fields[1]))
}

#[test]
fn vectors_of_all_messages_are_decoded_and_encoded() {
    let output = program().args(["tables", "vectors", "--json"]).output().unwrap();
    let decoder = Decoder::new();
    let mut encoder = decoder.encoder().unwrap();
    let (mut all, mut wrong) = (BTreeMap::<String, usize>::new(), Vec::new());
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let vector: serde_json::Value = serde_json::from_str(line).unwrap();
        let Some(name) = vector["message"].as_str() else { continue };
        let part = |key: &str| vector[key].as_str().unwrap();
        let of = match part("service") {
            // Which capability an address stands for was said in another message.
            "http" => name.to_string(),
            service => format!("{}.{service}.{}", part("protocol"), part("direction")),
        };
        *all.entry(part("protocol").to_string()).or_default() += 1;
        if let Some(why) = wrong_vector(&decoder, &mut encoder, &of, &vector) {
            wrong.push(format!("{of} {name}: {why}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {all:?}\n{}", wrong.len(), wrong.join("\n"));
    assert!(all.len() == 4 && all.values().all(|n| *n > 10), "{all:?}");
}

/// The same bytes with one to three changes.
fn damage(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..1 + random.below(3) {
        let at = random.below(bytes.len().max(1));
        match random.below(4) {
            0 => bytes.insert(at.min(bytes.len()), random.below(256) as u8),
            1 => bytes.extend_from_within(at.min(bytes.len())..),
            2 if at < bytes.len() => _ = bytes.remove(at),
            _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << random.below(8)),
        }
    }
    bytes
}

/// What is wrong with the messages in some bytes, written from their spans.
fn spans_come_back(
    decoder: &Decoder,
    encoder: &mut moulsniff::Encoder,
    of: &str,
    bytes: &[u8],
) -> Option<String> {
    let records = decoder.decode(of, bytes).unwrap_or_default();
    records.iter().filter(|record| record.message().is_some()).find_map(|record| {
        let spans = record.json_spans();
        match encoder.encode(&spans) {
            Ok(Some(got)) if got == record.bytes() => None,
            other => Some(format!("{of}: {other:?} for {spans}")),
        }
    })
}

/// Tables of one's own say everything that is needed, too: the numbers and words that select
/// messages, lengths of whole messages, numbers in digits or in seven bits a byte, names that refer
/// to earlier ones.
#[test]
fn messages_of_tables_of_ones_own_come_back() {
    let folder = |name: &str| {
        let files = std::fs::read_dir(name).unwrap().map(|file| file.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|e| e == "table")).collect::<Vec<_>>()
    };
    let mut tables = folder("examples/protocols");
    tables.extend(["examples/first-steps/3.table".into(), "tests/data/tinychat.table".into()]);
    let (mut all, mut wrong) = (0, Vec::new());
    let mut random = Random(7);
    for table in tables {
        let decoder = Decoder::new().tables(&table).unwrap();
        let mut encoder = decoder.encoder().unwrap();
        let vectors = ["tables", "vectors", "--json", "--tables"];
        let output = program().args(vectors).arg(&table).output().unwrap();
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let mut vector: serde_json::Value = serde_json::from_str(line).unwrap();
            let part = |key: &str| vector[key].as_str().unwrap_or("").to_string();
            let (protocol, name) = (part("protocol"), part("message"));
            let built_in = ["moul", "secondlife", "intermud3", "ouro"].contains(&&*protocol);
            if built_in || name.is_empty() {
                continue;
            }
            all += 1;
            let of = format!("{protocol}.{}.{}", part("service"), part("direction"));
            let bytes = parse_hex(&part("hex")).unwrap();
            // Whether the last value of a region ends with its mark is not in the fields.
            vector["length"] = bytes.len().into();
            let mut written = vec![("fields", vector.to_string())];
            // No decoding of one message knows what earlier ones have set.
            if vector.get("states").is_none() {
                let record = decoder.decode(&of, &bytes).unwrap().remove(0);
                written.push(("spans", record.json_spans()));
                // Bytes that no program would send have their spans, too.
                wrong.extend((0..30).filter_map(|_| {
                    let damaged = damage(&bytes, &mut random);
                    spans_come_back(&decoder, &mut encoder, &of, &damaged)
                }));
            }
            for (kind, json) in written {
                match encoder.encode_as(&of, &json) {
                    Ok(got) if got == bytes => {}
                    Ok(got) => {
                        wrong.push(format!("{of} {name} {kind}: {}", difference(&got, &bytes)));
                    }
                    Err(error) => wrong.push(format!("{of} {name} {kind}: {error}")),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {all}\n{}", wrong.len(), wrong.join("\n"));
    assert!(all > 50, "{all}");
}

/// An instance of captures/moul/plasma_typical.jsonl.gz as a message that carries it, with its
/// name for `decode`.
fn carrying(instance: &serde_json::Value) -> Option<(&'static str, Vec<u8>)> {
    let content = parse_hex(instance["hex"].as_str().unwrap()).unwrap();
    let length = |bytes: &[u8]| (bytes.len() as u32).to_le_bytes();
    let propagated = |buffer: &[u8]| {
        let class = [buffer[0], buffer[1], 0, 0];
        [&[2, 0], &class[..], &length(buffer), buffer].concat()
    };
    Some(match instance["kind"].as_str().unwrap() {
        "plNetMessage" => ("moul.game.client", propagated(&content)),
        "plMessage" => {
            // A plNetMsgGameMessage without flags; nothing is compressed, and no time follows.
            let head = [0x6b, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            let buffer = [&head, &length(&content)[..], &content, &[0]].concat();
            ("moul.game.client", propagated(&buffer))
        }
        "vaultnode" => {
            let head = [24, 0, 1, 0, 0, 0, 0, 0, 0, 0];
            ("moul.auth.server", [&head, &length(&content)[..], &content].concat())
        }
        "gamemgr" => {
            let from_client = instance["class"].as_str().unwrap().starts_with("Cli2Srv");
            let name = if from_client { "moul.game.client" } else { "moul.game.server" };
            (name, [&[3, 0], &length(&content)[..], &content].concat())
        }
        _ => return None,
    })
}

/// Those that the client's zlib packed: they come back as the same content, packed here.
const PACKED: [&str; 5] = [
    "plNetMsgTestAndSet",
    "plNetMsgSDLStateBCast",
    "plNetMsgGameMessage",
    "plNetMsgGameMessageDirected",
    "plNetMsgLoadClone",
];

#[test]
fn typical_instances_of_all_classes_come_back() {
    let decoder = Decoder::new();
    let mut encoder = decoder.encoder().unwrap();
    let (mut all, mut others) = (0, Vec::new());
    let text = crate::plasma::unpacked("captures/moul/plasma_typical.jsonl.gz");
    for line in text.lines() {
        let instance = serde_json::from_str(line).unwrap();
        let Some((name, bytes)) = carrying(&instance) else { continue };
        all += 1;
        let json = decoder.decode(name, &bytes).unwrap().remove(0).json();
        if encoder.encode(&json).is_ok_and(|got| got.as_ref() == Some(&bytes)) {
            continue;
        }
        // An encoder remembers which game began under a number; the decoder of one message cannot.
        let got = decoder.encoder().unwrap().encode(&json).unwrap().unwrap();
        if got != bytes {
            let again = decoder.decode(name, &got).unwrap().remove(0);
            assert_eq!(fields(&again.json()), fields(&json));
            others.push(instance["class"].as_str().unwrap().to_string());
        }
    }
    assert_eq!((all, others), (410, PACKED.map(String::from).to_vec()));
}

fn fields(json: &str) -> serde_json::Value {
    let record: serde_json::Value = serde_json::from_str(json).unwrap();
    record["fields"].clone()
}

/// Encodes messages that were typed; what is printed on standard output and on standard error.
fn typed(args: &[&str]) -> (String, String, i32) {
    let output = program().arg("encode").args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code().unwrap())
}

fn mistake(message: &str, fields: &str, expected: &str) {
    let json = format!(r#"{{"message": "{message}", "fields": {fields}}}"#);
    let (out, err, status) = typed(&["moul.auth.client", &json]);
    assert_eq!((out.as_str(), err.as_str(), status), ("", expected, 2), "{json}");
}

#[test]
fn a_mistake_is_one_line_with_the_path_and_what_was_expected() {
    let fetch = "Cli2Auth_VaultNodeFetch";
    let line = |text: &str| format!("moulsniff: {text}\n");
    for (fields, expected) in [
        (
            r#"{"trans_id": 7, "node_id": 5000000000}"#,
            "fields.node_id: 5000000000 does not fit u32",
        ),
        (r#"{"trans_id": 7, "node_id": -1}"#, "fields.node_id: -1 does not fit u32"),
        (r#"{"trans_id": 7, "node_id": 1.5}"#, "fields.node_id: 1.5 does not fit u32"),
        (r#"{"trans_id": 7}"#, "fields.node_id: is missing: u32"),
        (r#"{"trans_id": 7, "node_id": [1]}"#, "fields.node_id: is a list, where u32 is expected"),
        (
            r#"{"trans_id": 7, "nodeid": 1}"#,
            "fields.nodeid: is no field of Cli2Auth_VaultNodeFetch; did you mean `node_id`?",
        ),
        (
            r#"{"trans_id": 7, "node_id": 1, "node_id": 2}"#,
            "fields.node_id: is no field of Cli2Auth_VaultNodeFetch: not with these values of the \
             fields before it",
        ),
        ("7", "fields: is no object of fields"),
    ] {
        mistake(fetch, fields, &line(expected));
    }
    mistake(
        "Cli2Auth_VaultNodeFetsh",
        "{}",
        &line(
            "message: there is no message `Cli2Auth_VaultNodeFetsh`; did you mean \
             `Cli2Auth_VaultNodeFetch`?",
        ),
    );
}

#[test]
fn a_mistake_of_any_length_is_a_short_line() {
    for fields in [format!("{{\"{}\": 1}}", "k".repeat(100_000)), "9".repeat(100_000)] {
        let json = format!(r#"{{"message": "Cli2Auth_VaultNodeFetch", "fields": {fields}}}"#);
        let path = scratch("encode_long.json");
        std::fs::write(&path, json).unwrap();
        let (out, err, status) = typed(&["moul.auth.client", path.to_str().unwrap()]);
        assert_eq!((out.as_str(), status, err.lines().count()), ("", 1, 1));
        assert!(err.len() < 1200, "{err}");
    }
}

#[test]
fn many_lines_are_many_messages_and_a_broken_one_costs_only_itself() {
    let fetch = |node: u32| {
        format!(
            "{{\"protocol\":\"moul\",\"message\":\"Cli2Auth_VaultNodeFetch\",\"fields\":{{\"\
             trans_id\":7,\"node_id\":{node}}}}}"
        )
    };
    let pretty = fetch(3).replace(',', ",\n  ");
    let text = format!("{}\n{{\"broken\": [\n\n{}\n{{\"not UTF-8\": \"", fetch(1), fetch(2));
    let bytes = [text.as_bytes(), b"\xff\"}\n", pretty.as_bytes(), b"\n"].concat();
    let path = scratch("encode_lines.jsonl");
    std::fs::write(&path, bytes).unwrap();
    let (out, err, status) = typed(&[path.to_str().unwrap()]);
    assert_eq!(out, "1a000700000001000000\n1a000700000002000000\n1a000700000003000000\n");
    assert!(err.contains("line 2: no JSON: byte ") && err.lines().count() == 2, "{err}");
    assert!(err.ends_with("line 5: byte 15: expected UTF-8\n"), "{err}");
    assert_eq!(status, 1);
}

#[test]
fn what_is_changed_comes_out_changed_and_nothing_else() {
    let records = crate::common::records("captures/moul/golden.pcap", &[], &[]);
    let mut encoder = Decoder::new().encoder().unwrap();
    let mut fetches = 0;
    for mut record in records {
        if record["message"] != "Cli2Auth_VaultNodeFetch" || record.get("event").is_some() {
            continue;
        }
        fetches += 1;
        let before = encoder.encode(&record.to_string()).unwrap().unwrap();
        record["fields"]["node_id"] = serde_json::json!(0x01020304);
        let after = encoder.encode(&record.to_string()).unwrap().unwrap();
        assert_eq!(after[..6], before[..6]);
        assert_eq!(after[6..], [4, 3, 2, 1]);
    }
    assert!(fetches > 0);
}

/// Records into a capture, and what stands on standard error.
fn made(records: &[serde_json::Value], name: &str, keys: &[&str]) -> (PathBuf, String) {
    let (from, to) = (scratch(format!("{name}.jsonl")), scratch(format!("{name}.pcapng")));
    let jsonl: String = records.iter().map(|record| format!("{record}\n")).collect();
    std::fs::write(&from, jsonl).unwrap();
    let mut args = vec![from.to_str().unwrap(), "--capture", to.to_str().unwrap()];
    args.extend(keys.iter().flat_map(|key| ["--keys", key]));
    let output = program().current_dir(file("")).arg("encode").args(&args).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    (to, said)
}

/// The names and the fields of messages.
fn messages(records: &[serde_json::Value]) -> Vec<(&serde_json::Value, &serde_json::Value)> {
    let all = records.iter().filter(|record| record["message"].is_string());
    all.map(|record| (&record["message"], &record["fields"])).collect()
}

#[test]
fn a_made_capture_is_read_as_the_messages_that_it_was_made_of() {
    let key = "keys/dirtsand.ini";
    let records = crate::common::records("captures/moul/kind_game.pcap", &[key], &[]);
    for (name, keys) in [("encode_own_key", None), ("encode_sealed", Some(key))] {
        let (to, said) = made(&records, name, keys.as_slice());
        let made_key = format!("{}.keys", to.display());
        match keys {
            Some(_) => assert_eq!((said.as_str(), Path::new(&made_key).exists()), ("", false)),
            None => {
                assert_eq!(said.lines().count(), 1, "{said}");
                assert!(said.contains(&format!("is read with --keys {made_key}")), "{said}");
                #[cfg(unix)]
                {
                    let mode = std::fs::metadata(&made_key).unwrap().permissions();
                    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600);
                }
            }
        }
        let keys = [keys.unwrap_or(&made_key)];
        let read = crate::common::records(to.to_str().unwrap(), &keys, &[]);
        assert_eq!(messages(&read), messages(&records), "{name}");
    }
}

#[test]
fn a_connection_that_began_before_the_capture_begins_in_the_middle() {
    let key = "keys/dirtsand.ini";
    let records = crate::common::records("captures/moul/midstream.pcap", &[key], &[]);
    let (to, _) = made(&records, "encode_midstream", &[key]);
    let read = crate::common::records(to.to_str().unwrap(), &[key], &[]);
    assert_eq!(messages(&read), messages(&records));
    assert!(read.iter().any(|record| record["event"] == "resync"));
}

#[test]
fn an_auth_server_s_connection_is_encrypted_with_the_seed_of_its_first_message() {
    let records = crate::common::records("tests/data/ouro/segs_auth.pcap", &[], &[]);
    let (to, _) = made(&records, "encode_auth_server", &[]);
    let read = crate::common::records(to.to_str().unwrap(), &[], &[]);
    assert_eq!(messages(&read), messages(&records));
    assert!(messages(&read).iter().any(|(name, _)| **name == "LoginRequest"));
    let written = std::fs::read(&to).unwrap();
    assert!(!written.windows(6).any(|bytes| bytes == b"secret"));
}

#[test]
fn connections_end_in_a_made_capture_as_they_ended_before() {
    let key = "keys/evening.keys";
    let records = crate::common::records("captures/moul/evening.pcapng", &[key], &[]);
    let (to, said) = made(&records, "encode_evening", &[key]);
    assert_eq!(said, "");
    let made = crate::common::records(to.to_str().unwrap(), &[key], &[]);
    let ends = |records: &[serde_json::Value]| -> Vec<String> {
        let ends = records.iter().filter(|record| record["event"] == "stream_end");
        let keys = ["time", "src", "dst", "end"];
        ends.map(|end| keys.map(|key| end[key].to_string()).join(" ")).collect()
    };
    let (before, after) = (ends(&records), ends(&made));
    let open = before.iter().filter(|end| end.ends_with("\"open\"")).count();
    assert!(before.len() > 20 && open > 0, "{before:?}");
    for end in &before {
        assert!(after.contains(end), "{end} in {after:?}");
    }
    let times: Vec<&str> = made.iter().filter_map(|record| record["time"].as_str()).collect();
    assert!(times.is_sorted());
}
