//! Intermud-3 as a whole: captures against what another program found in them, streams cut and
//! delivered in every way, spans that tile.

use std::collections::HashMap;
use std::io::Read;

use moulsniff::print::json::{JsonOptions, JsonWriter};
use moulsniff::proto::{MessageOrEvent, Protocol, load_tables, protocol_named, read_alone};
use moulsniff::record::MessageView;
use moulsniff::session::{Event, EventKind, Side, Transport};
use moulsniff::table::Tables;
use serde_json::{Value, json};

fn protocol() -> &'static dyn Protocol {
    protocol_named("intermud3").unwrap()
}

fn tables() -> Tables {
    load_tables(protocol(), &[]).unwrap()
}

/// A packet: the length, the text, nothing more.
fn packet(text: &str) -> Vec<u8> {
    packet_of(text.as_bytes())
}

fn packet_of(text: &[u8]) -> Vec<u8> {
    let mut out = (text.len() as u32).to_be_bytes().to_vec();
    out.extend_from_slice(text);
    out
}

/// Messages and events of a stream, as JSON.
fn read(tables: &Tables, bytes: &[u8], style: JsonOptions) -> Vec<Value> {
    let mut found = Vec::new();
    read_alone(protocol(), tables, (Transport::Tcp, Side::Client), None, bytes, &mut |said| {
        match said {
            MessageOrEvent::Message(message, tree) => {
                let mut out = b"{".to_vec();
                JsonWriter::new(style).message_body(
                    message,
                    MessageView { tables, tree, bytes: message.bytes },
                    &mut out,
                );
                out.push(b'}');
                // serde_json reads to a depth of 128 only.
                found.push(serde_json::from_slice(&out).unwrap_or_else(|e| {
                    assert!(
                        e.to_string().contains("recursion"),
                        "{e}: {}",
                        String::from_utf8_lossy(&out)
                    );
                    json!({ "message": message.name.raw(), "deep": String::from_utf8_lossy(&out) })
                }));
            }
            MessageOrEvent::Event(Event { kind, offset, length, text, .. }) => {
                let kind = match kind {
                    EventKind::Undecoded => "undecoded".to_string(),
                    other => format!("{other:?}"),
                };
                found.push(
                    json!({ "event": kind, "offset": offset, "length": length, "text": text }),
                );
            }
        }
    });
    found
}

/// The first message of a stream.
fn first(text: &str) -> Value {
    read(&tables(), &packet(text), JsonOptions::default()).remove(0)
}

fn problems(message: &Value) -> Vec<String> {
    let list = message["problems"].as_array().cloned().unwrap_or_default();
    list.iter().map(|p| p["text"].as_str().unwrap().to_string()).collect()
}

// ---- Captures against what another program found in them

#[test]
fn coffeemuds_traffic_is_what_another_program_says() {
    held_against_truth("i3_coffeemud", 130);
}

#[test]
fn edge_cases_are_what_another_program_says() {
    held_against_truth("i3_edge_small", 140);
}

fn held_against_truth(name: &str, at_least: usize) {
    let got = run(name);
    let mut checked = 0;
    for line in gunzip(&format!("captures/intermud3/{name}.truth.jsonl.gz")).lines() {
        let Ok(truth) = serde_json::from_str::<Value>(line) else {
            assert!(line.contains("arr\":[{\"arr\":[{\"arr"), "{line}");
            continue;
        };
        let key = (
            truth["client_port"].as_u64().unwrap(),
            truth["direction"] == "c2s",
            truth["stream_offset"].as_u64().unwrap(),
        );
        let record = got.get(&key).unwrap_or_else(|| panic!("nothing stands for {line}"));
        checked += 1;
        if truth["framing"] != "ok" || truth["error"].is_string() {
            assert!(
                record["event"] == "undecoded" || !problems(record).is_empty(),
                "nothing is said of {line}: {record}"
            );
            continue;
        }
        if let Some(kind) = truth["packet_type"].as_str() {
            assert_eq!(record["message"], json!(kind), "{line}");
        }
        let fields = truth["fields"].as_object().cloned().unwrap_or_default();
        for (field, value) in &fields {
            let found = &record["fields"][field];
            assert!(same(value, found), "{name} {key:?} {field}: {value} is not {found}");
        }
        if fields.is_empty() {
            let value = &record["fields"]["value"];
            assert!(
                same(&truth["value"], value),
                "{name} {key:?}: {} is not {value}",
                truth["value"]
            );
        }
    }
    assert!(checked >= at_least, "only {checked} packets");
}

/// The capture's records by the client's port, direction and offset.
fn run(name: &str) -> HashMap<(u64, bool, u64), Value> {
    let output = crate::common::program()
        .args([&format!("captures/intermud3/{name}.pcapng"), "--json", "--quiet"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let mut out = HashMap::new();
    for line in lines.lines() {
        let Ok(record) = serde_json::from_str::<Value>(line) else {
            assert!(line.contains("[[[[[["), "{line}");
            continue;
        };
        let client = record["from"] == "client";
        let end = record[if client { "src" } else { "dst" }].as_str().unwrap();
        let port = end.rsplit(':').next().unwrap().parse().unwrap();
        if record["message"].is_string() && record["event"].is_null()
            || record["event"] == "undecoded"
        {
            out.insert((port, client, record["offset"].as_u64().unwrap()), record);
        }
    }
    out
}

fn gunzip(path: &str) -> String {
    let mut out = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap())
        .read_to_string(&mut out)
        .unwrap();
    out
}

/// The truth's text is the bytes as ISO-8859-1; where they are UTF-8, they are meant so.
fn utf8(text: &str) -> String {
    let bytes: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
    bytes.and_then(|b| String::from_utf8(b).ok()).unwrap_or_else(|| text.to_string())
}

fn same(truth: &Value, found: &Value) -> bool {
    let named = found.as_object().filter(|o| o.len() <= 2).and_then(|o| o.get("value"));
    let text = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_string);
    let (kind, value) = truth.as_object().unwrap().iter().next().unwrap();
    match kind.as_str() {
        "int" => text(named.unwrap_or(found)) == text(value),
        "float" => found.as_f64() == value.as_f64(),
        "str" => found.as_str() == Some(&utf8(value.as_str().unwrap())),
        "arr" | "class" => {
            let wanted = value.as_array().unwrap();
            let found: Vec<&Value> = match found {
                Value::Array(list) => list.iter().collect(),
                Value::Object(fields) => fields.values().collect(),
                _ => return false,
            };
            wanted.len() == found.len() && wanted.iter().zip(found).all(|(w, f)| same(w, f))
        }
        "map" => {
            let wanted = value.as_array().unwrap();
            let found: Vec<(Value, &Value)> = match found {
                Value::Object(fields) => fields.iter().map(|(k, v)| (json!(k), v)).collect(),
                Value::Array(pairs) => pairs.iter().map(|p| (p[0].clone(), &p[1])).collect(),
                _ => return false,
            };
            wanted.len() == found.len()
                && wanted
                    .iter()
                    .zip(found)
                    .all(|(w, (key, value))| same(&w[0], &key) && same(&w[1], value))
        }
        "void" => found.is_null(),
        "object" => found == value,
        other => panic!("the truth has {other}"),
    }
}

// ---- Values

#[test]
fn integers_of_any_length_keep_their_digits() {
    let message = first(
        "({0,-0,007,9007199254740992,9007199254740993,-9223372036854775808,100000000000000000000,\
         -0099999999999999999999,})",
    );
    assert_eq!(
        message["fields"]["value"],
        json!([
            0,
            0,
            7,
            9007199254740992u64,
            "9007199254740993",
            "-9223372036854775808",
            "100000000000000000000",
            "-99999999999999999999"
        ])
    );
    let said = problems(&message);
    assert_eq!(
        said.iter().filter(|p| p.starts_with("an integer of more than 64 bits")).count(),
        2,
        "{said:?}"
    );
    assert_eq!(said.iter().filter(|p| p.starts_with("a leading zero")).count(), 2, "{said:?}");
}

#[test]
fn a_mapping_is_an_object_where_its_keys_are_different_texts() {
    assert_eq!(first(r#"(["a":1,"b":"c",])"#)["fields"]["value"], json!({ "a": 1, "b": "c" }));
    assert_eq!(first(r#"(["a":1,"a":2,])"#)["fields"]["value"], json!([["a", 1], ["a", 2]]));
    assert_eq!(
        first(r#"([1:"a",1.5:"b","1":"c",])"#)["fields"]["value"],
        json!([[1, "a"], [1.5, "b"], ["1", "c"]])
    );
    assert_eq!(
        first(r#"(["x":(["y":1,2:3,]),({1,}):(["z":4,]),])"#)["fields"]["value"],
        json!([["x", [["y", 1], [2, 3]]], [[1], { "z": 4 }]])
    );
    let many: String = (0..40).map(|i| format!("\"k{i}\":{i},")).collect();
    assert_eq!(first(&format!("([{many}])"))["fields"]["value"].as_object().unwrap().len(), 40);
    assert_eq!(
        first(&format!("([{many}\"k3\":0,])"))["fields"]["value"].as_array().unwrap().len(),
        41
    );
}

#[test]
fn mappings_within_mappings_are_not_read_again_without_end() {
    let mut text = String::new();
    for _ in 0..40 {
        text.push_str("([\"a\":");
    }
    text.push('1');
    for _ in 0..40 {
        text.push_str(",1:1,])");
    }
    let message = first(&text);
    assert!(message["fields"]["value"].is_array());
}

#[test]
fn empty_slots_are_null() {
    let message = first(r#"({"custom",5,"A",0,"B",0,"before",,"after",(["o":,]),})"#);
    let fields = &message["fields"];
    assert_eq!((&fields["extra_6"], &fields["extra_7"]), (&json!("before"), &Value::Null));
    assert_eq!((&fields["extra_8"], &fields["extra_9"]), (&json!("after"), &json!({ "o": null })));
}

#[test]
fn text_is_utf8_or_iso_8859_1_string_by_string() {
    let bytes = packet_of(b"({\"tell\",5,\"A\",\"a\",\"B\",\"b\",\"caf\xc3\xa9\",\"caf\xe9\",})");
    let message = read(&tables(), &bytes, JsonOptions::default()).remove(0);
    assert_eq!(message["fields"]["orig_visname"], "café");
    assert_eq!(message["fields"]["message"], "café");
    let problem =
        message["problems"].as_array().unwrap().iter().find(|p| p["field"] == "message").unwrap();
    assert_eq!(problem["bytes"], "636166e9");
    assert_eq!(problem["severity"], "note");
}

#[test]
fn depth_has_a_bound_and_the_rest_is_shown() {
    let deep = |n: usize| format!("{}{}", "({".repeat(n), ",})".repeat(n).replacen(',', "", 1));
    let json = |n: usize| first(&deep(n))["deep"].as_str().unwrap().to_string();
    assert!(json(180).contains(&"[".repeat(180)) && !json(180).contains("deeper than"));
    // JSON shows fewer levels than are read: jq 1.6 reads 256.
    assert!(json(240).contains(&"[".repeat(180)) && json(240).contains("deeper than"));
    assert!(json(50_000).contains("more than 250 deep"));
}

#[test]
fn values_have_a_bound_and_the_rest_is_shown() {
    let says = |message: &Value| {
        problems(message).iter().filter(|p| p.contains("more than 200000 values")).count()
    };
    let below =
        first(&format!("({{\"custom\",5,\"A\",\"a\",\"B\",0,({{{}}}),}})", "1,".repeat(190_000)));
    assert_eq!((says(&below), below["fields"]["extra_6"].as_array().unwrap().len()), (0, 190_000));
    // A list, a mapping of texts, a mapping of numbers, brackets.
    let keys: String = (0..201_000).map(|n| format!("\"{n:x}\":1,")).collect();
    let numbers: String = (0..110_000).map(|n| format!("{n}:1,")).collect();
    for inner in [
        format!("({{{}}})", "1,".repeat(300_000)),
        format!("([{keys}])"),
        format!("([{numbers}])"),
        "({}),".repeat(110_000),
    ] {
        let mut bytes = packet(&format!("({{\"custom\",{inner},}})"));
        bytes.extend(packet(r#"({"who-req",5,"A","a","B",0,})"#));
        let found = read(&tables(), &bytes, JsonOptions::default());
        assert_eq!((found.len(), says(&found[0])), (2, 1), "{}", &inner[..20]);
        assert!(found[0].to_string().contains("undecoded"), "{}", &inner[..20]);
        assert_eq!((&found[1]["message"], says(&found[1])), (&json!("who-req"), 0));
        let redacted =
            read(&tables(), &bytes, JsonOptions { redact: true, ..JsonOptions::default() });
        assert!(redacted[0].to_string().contains("<redacted, "), "the rest is shown");
    }
}

// ---- What is malformed

#[test]
fn a_quote_that_is_not_escaped_costs_nothing_but_a_remark() {
    let text = r#"({"channel-m",5,"MudAlpha","alice",0,0,"labchan","Alice","Hello channel "quoted" \ slash",})"#;
    let mut bytes = packet(text);
    bytes.extend(packet(r#"({"who-req",5,"A","a","B",0,})"#));
    let found = read(&tables(), &bytes, JsonOptions::default());
    assert_eq!(found.len(), 2);
    assert_eq!(found[0]["fields"]["message"], r#"Hello channel "quoted" \ slash"#);
    assert_eq!(found[0]["fields"]["visname"], "Alice");
    assert!(
        problems(&found[0])[0].contains("not escaped, at byte 76"),
        "{:?}",
        problems(&found[0])
    );
    assert_eq!(found[1]["message"], "who-req");
}

#[test]
fn the_header_survives_what_comes_behind_it() {
    for rest in [
        "null,})",
        "\"never closed,})",
        "({1,2,",
        "([\"a\" 1,])",
        "]),})",
        "}",
        "<OBJECT /obj/foo",
        "0x10,})",
        "\"a\0b\",})",
        "-,})",
    ] {
        let message =
            first(&format!("({{\"tell\",5,\"MudAlpha\",\"alice\",\"MudBeta\",\"bob\",{rest}"));
        assert_eq!(message["message"], "tell", "{rest}");
        assert_eq!(message["fields"]["target_username"], "bob", "{rest}: {message}");
        assert!(!problems(&message).is_empty(), "{rest}");
    }
}

#[test]
fn elements_of_another_sort_than_expected_are_noted() {
    let said = |text: &str| problems(&first(text)).join("; ");
    assert!(
        said(r#"({"tell","5","a","b","c","d","v","m",})"#)
            .contains("a text at byte 13, where a number")
    );
    assert!(
        said(r#"({"tell",-1,"a","b","c","d","v","m",})"#).contains("a negative number at byte 13")
    );
    assert!(said(r#"({"tell",5,"a",})"#).contains("3 elements, where 8 are expected"));
    assert!(said(r#"({5,5,"a",0,"b",0,})"#).contains("does not begin with a text"));
    assert!(said(r#"([1:2,])"#).contains("is not an array"));
}

#[test]
fn what_an_error_brings_along_and_is_no_packet_has_no_header() {
    let error = first(r#"({"error",5,"*d",0,"M",0,"bad-mojo","text",({"1.2.3.4","lib",4000,}),})"#);
    assert_eq!(
        error["fields"]["error_packet"],
        json!({ "type": "1.2.3.4", "extra_1": "lib", "extra_2": 4000 })
    );
}

#[test]
fn an_array_of_a_number_of_elements_has_positions_of_its_own() {
    // Also in the packet that an error brings along, and with quotes that are not escaped.
    let ask = r#"({"startup-req-2",5,"A",0,"*b",0,0,0,0,1,0,0,"the "great"","b","c","LP","open","x@y",(["who":1,]),0,})"#;
    let fields = &first(ask)["fields"];
    assert_eq!(
        (&fields["mudlib"], &fields["admin_email"]),
        (&json!("the \"great\""), &json!("x@y"))
    );
    assert_eq!(fields["services"], json!({ "who": 1 }));
    let error = first(&format!(r#"({{"error",5,"*d",0,"A",0,"unk-dst","text",{ask},}})"#));
    assert_eq!(error["fields"]["error_packet"]["admin_email"], "x@y");
    // Any other number is noted as before.
    let long = first(&ask.replace(",0,})", ",0,0,})"));
    assert!(problems(&long).join("; ").contains("21 elements, where 18 are expected"), "{long}");
}

#[test]
fn a_carriage_return_behind_a_packet_is_told_from_blanks_between_values() {
    let said = problems(&first("({\"who-req\",5,\"A\",\"a\",\"B\",0,})\r")).join("; ");
    assert!(said.contains("blanks behind the value") && !said.contains("between"), "{said}");
}

// ---- Streams

#[test]
fn a_nul_that_was_not_counted_is_passed_over() {
    let mut bytes = packet(r#"({"who-req",5,"A","a","B",0,})"#);
    let first = bytes.len();
    bytes.push(0);
    bytes.extend(packet(r#"({"who-req",5,"A","b","B",0,})"#));
    let found = read(&tables(), &bytes, JsonOptions::default());
    assert_eq!(found[1]["event"], "undecoded");
    assert_eq!(
        (found[1]["offset"].as_u64(), found[1]["length"].as_u64()),
        (Some(first as u64), Some(1))
    );
    let last = found.last().unwrap();
    assert_eq!(
        (last["offset"].as_u64(), &last["fields"]["originator_username"]),
        (Some(first as u64 + 1), &json!("b"))
    );
}

#[test]
fn framing_is_found_again_after_what_is_no_packet() {
    let mut bytes = b"garbage that is no packet at all".to_vec();
    let at = bytes.len() as u64;
    bytes.extend(packet(r#"({"who-req",5,"A","a","B",0,})"#));
    let found = read(&tables(), &bytes, JsonOptions::default());
    assert_eq!(found[0]["event"], "undecoded");
    assert_eq!(found[1]["offset"].as_u64(), Some(at));
    assert_eq!(found[2]["message"], "who-req");
    assert_eq!(found[2]["offset"].as_u64(), Some(at));
}

#[test]
fn two_mebibytes_are_read_and_more_are_refused() {
    let big = format!("({{\"custom-big\",5,\"{}\",}})", "x".repeat((2 << 20) - 22));
    assert_eq!(big.len(), 2 << 20);
    let found = read(&tables(), &packet(&big), JsonOptions::default());
    assert_eq!((found.len(), &found[0]["message"]), (1, &json!("custom-big")));
    let found = read(&tables(), &packet(&format!("{big} ")), JsonOptions::default());
    assert!(found.iter().all(|f| f["message"].is_null()), "more than two mebibytes were read");
    assert!(found.iter().any(|f| f["event"].as_str().is_some_and(|e| e.starts_with("Limit"))));
}

/// All packets of CoffeeMud's capture, one direction after the other, and the edge cases.
fn samples() -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    for name in ["i3_coffeemud", "i3_edge_small"] {
        for stream in 0.. {
            let output = crate::common::program()
                .args([
                    "follow",
                    &format!("tcp:{stream}"),
                    &format!("captures/intermud3/{name}.pcapng"),
                    "--quiet",
                ])
                .output()
                .unwrap();
            if !output.status.success() || output.stdout.is_empty() {
                break;
            }
            out.push(output.stdout);
        }
    }
    out
}

#[test]
fn spans_tile_every_packet() {
    let tables = tables();
    let texts = [
        r#"({"tell",5,"MudAlpha","alice","MudBeta","bob","Alice","hello \"bob\"",})"#,
        r#"({"mudlist",5,"*lab",0,"A",0,3,(["M":({-1,"127.0.0.1",4300,([1:2,"a":({}),]),}),"D":0,]),})"#,
        "({ \"tell\" , 5 , ([ \"a\" : 1 , ]) , }) \0",
        r#"({"custom",,({,}),([,]),(/1,"two",/),<OBJECT /a#1>,0x10,1e5,([:1,])})xyz"#,
        r#"({"channel-m",5,"A","a",0,0,"c","V","say "hi" now",})"#,
        r#"({"tell",5,({1,2"#,
        r#"({"tell"5,})"#,
        r#"(["a" "b",])"#,
        r#"({"a":1,})"#,
        r#"({1,])"#,
        r#"({"x",})"#,
        "123\0",
        "\0",
        "",
        "{\"a\":[1,2]}",
        "(<1,>)\0",
        "({null,true,})",
        "([null:1,2:null,\"a\":null,])",
        "([\"a\":1,\"b\"])",
        "([1:2,3])",
        "({\"a\",})\0\0\0",
    ];
    for text in texts {
        let bytes = packet(text);
        let style = JsonOptions { spans: true, ..JsonOptions::default() };
        for message in read(&tables, &bytes, style) {
            let Some(spans) = message["fields"].as_array() else { continue };
            tiles(spans, 0, bytes.len() as u64, text);
        }
    }
}

/// Spans lie one behind the other, from `start` to `end`, at every depth.
fn tiles(spans: &[Value], start: u64, end: u64, text: &str) {
    let mut at = start;
    for span in spans {
        assert_eq!(span["offset"].as_u64(), Some(at), "{text}: {span}");
        let next = at + span["length"].as_u64().unwrap();
        if let Some(inner) = span["fields"].as_array().filter(|i| !i.is_empty()) {
            tiles(inner, at, next, text);
        }
        at = next;
    }
    assert_eq!(at, end, "{text}");
}

#[test]
fn a_stream_cut_at_any_byte_gives_the_packets_before_the_cut() {
    let tables = tables();
    let mut bytes =
        packet("({\"tell\",5,\"MudAlpha\",\"alice\",\"MudBeta\",\"bob\",\"Alice\",\"hello\",})\0");
    bytes.extend(packet(r#"({"channel-m",5,"A","a",0,0,"c","V","say "hi" now",})"#));
    bytes.push(0);
    bytes.extend(packet(r#"(["a":({1,2.5,}),2:"x",])"#));
    for cut in 0..=bytes.len() {
        let found = read(&tables, &bytes[..cut], JsonOptions::default());
        let mut covered = 0;
        for record in found.iter().filter(|r| r["length"] != 0) {
            assert_eq!(record["offset"].as_u64(), Some(covered), "cut at {cut}: {record}");
            covered += record["length"].as_u64().unwrap();
        }
        assert_eq!(covered, cut as u64, "cut at {cut}");
    }
}

#[test]
fn damage_never_stops_the_reading() {
    let tables = tables();
    let whole = packet(
        "({\"mudlist\",5,\"*lab\",0,\"A\",0,3,([\"M\":({-1,\"127.0.0.1\",4300,([1:2,\"a\":({}),]),\
         }),\"D\":0,]),})\0",
    );
    for at in 0..whole.len() {
        for byte in [0, b'"', b'\\', b'(', b'}', b']', b',', b':', b'/', b'-', 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            bytes.extend(packet(r#"({"who-req",5,"A","a","B",0,})"#));
            let found =
                read(&tables, &bytes, JsonOptions { spans: true, ..JsonOptions::default() });
            for message in found.iter().filter(|m| m["message"].is_string()) {
                let length = message["length"].as_u64().unwrap();
                tiles(
                    message["fields"].as_array().unwrap(),
                    0,
                    length,
                    &format!("byte {at} as {byte}"),
                );
            }
            if at >= 4 {
                assert_eq!(found.last().unwrap()["message"], "who-req", "byte {at} as {byte}");
            }
        }
    }
}

#[test]
fn tokens_in_any_order_are_read_to_their_end() {
    let tables = tables();
    let tokens: [&[u8]; 34] = [
        b"({",
        b"})",
        b"([",
        b"])",
        b"(/",
        b"/)",
        b",",
        b",",
        b",",
        b":",
        b":",
        b"\"",
        b"\"a\"",
        b"\"b\"",
        b"\"tell\"",
        b"5",
        b"-1",
        b"1.5",
        b"1e",
        b"0x1",
        b"-",
        b"+5",
        b".5",
        b" ",
        b"\n",
        b"\\",
        b"\0",
        b"<OBJECT>",
        b"<",
        b"null",
        b"}",
        b"]",
        b"\xe9",
        b"9007199254740993",
    ];
    let mut seed = 12345u64;
    for round in 0..6000 {
        let mut text = if round % 2 == 0 { b"({\"tell\",5,".to_vec() } else { Vec::new() };
        for _ in 0..round % 40 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            text.extend_from_slice(tokens[(seed >> 33) as usize % tokens.len()]);
        }
        let bytes = packet_of(&text);
        let shown = String::from_utf8_lossy(&text).into_owned();
        for message in read(&tables, &bytes, JsonOptions { spans: true, ..JsonOptions::default() })
        {
            if let Some(spans) = message["fields"].as_array() {
                tiles(spans, 0, message["length"].as_u64().unwrap(), &shown);
            }
        }
        read(&tables, &bytes, JsonOptions::default());
    }
}

#[test]
fn real_streams_cut_anywhere_are_read_without_a_panic() {
    let tables = tables();
    for sample in samples() {
        let step = (sample.len() / 200).max(1);
        for cut in (0..sample.len()).step_by(step) {
            read(&tables, &sample[cut..], JsonOptions::default());
        }
    }
}

#[test]
fn an_error_belongs_to_the_packet_it_brings_along() {
    let output = crate::common::program()
        .args(["captures/intermud3/i3_coffeemud.pcapng", "--json", "--quiet"])
        .output()
        .unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let records: Vec<Value> = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let mut tied = 0;
    for error in records.iter().filter(|r| r["message"] == "error" && r["reply_to"].is_u64()) {
        let request = &records[error["reply_to"].as_u64().unwrap() as usize - 1];
        tied += 1;
        if error["fields"]["error_packet"].is_object() {
            assert_eq!(error["fields"]["error_packet"]["type"], request["message"]);
        }
        assert_eq!(error["fields"]["target_mudname"], request["fields"]["originator_mudname"]);
    }
    assert!(tied >= 4, "{tied} errors have their request");
}

// ---- Secrets

#[test]
fn passwords_and_tokens_are_hidden_where_asked() {
    let tables = tables();
    let redact = JsonOptions { redact: true, ..JsonOptions::default() };
    for (text, field) in [
        (r#"({"oob-begin","MudAlpha",1,123456789,})"#, "auth_token"),
        (r#"({"auth-mud-reply",5,"A",0,"B",0,123456789,})"#, "session_key"),
        (r#"({"startup-reply",5,"*lab",0,"B",0,({}),123456789,})"#, "password"),
    ] {
        let message = read(&tables, &packet(text), redact).remove(0);
        assert!(message["fields"][field].as_str().unwrap().starts_with("<redacted, "), "{message}");
        assert!(!message.to_string().contains("123456789"), "{message}");
    }
}

#[test]
fn a_secret_is_hidden_however_it_is_written() {
    let tables = tables();
    let redact = JsonOptions { redact: true, ..JsonOptions::default() };
    let startup =
        |password: &str| format!(r#"({{"startup-req-3",5,"A",0,"*r",0,{password},0,0,}})"#);
    let irn = |info: &str| format!(r#"({{"irn-startup-req",5,"*r",0,"*s",0,{info},}})"#);
    for text in [
        startup("hunter2"),
        startup("\"hunter2\u{e9}\""),
        startup("\"hunter2\"x\""),
        startup("({\"hunter2\",})"),
        startup("<hunter2>"),
        format!(r#"({{"error",5,"*r",0,"A",0,"bad","no",{},}})"#, startup("\"hunter2\"")),
        irn(r#"(["client_password":"hunter2",])"#),
        irn(r#"(["client_password":"hunter2",5:"no text as key",])"#),
        irn(r#"(["server_password":"a","server_password":"hunter2",])"#),
    ] {
        let latin1: Vec<u8> = text.chars().map(|c| c as u8).collect();
        let whole = packet_of(&latin1);
        let message = read(&tables, &whole, redact).remove(0).to_string();
        assert!(!message.contains("hunter2") && !message.contains("68756e74657232"), "{message}");
        assert!(message.contains("<redacted, "), "{message}");
        assert!(
            !read(&tables, &whole, JsonOptions::default())
                .remove(0)
                .to_string()
                .contains("redacted")
        );
    }
}

// ---- Tables

#[test]
fn every_example_of_the_tables_holds() {
    let (count, failed) = moulsniff::examples::run_examples(&tables());
    assert!(
        failed.is_empty(),
        "{}",
        failed.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    );
    assert!(count >= 64, "{count}");
}

// ---- What is learned

#[test]
fn stats_tell_what_is_on_the_network() {
    let output = crate::common::program()
        .args(["stats", "captures/intermud3/i3_coffeemud.pcapng", "--json", "--quiet"])
        .output()
        .unwrap();
    let stats: Value = serde_json::from_slice(&output.stdout).unwrap();
    let learned = &stats["learned"];
    let muds: Vec<&String> = learned["muds"].as_object().unwrap().keys().collect();
    assert_eq!(muds, ["MudAlpha", "MudBeta", "MudGamma", "PeerMud"]);
    assert_eq!(learned["muds"]["PeerMud"]["state"], "up");
    assert_eq!(learned["muds"]["PeerMud"]["ip_addr"], "10.0.0.1");
    assert_eq!(learned["routers"]["*lab"]["address"], "127.0.0.1 8080");
    assert_eq!(
        learned["channels"]["labchan"],
        json!({ "channel_host": "MudAlpha", "channel_type": "selective_ban" })
    );
}
