//! Circuits of Second Life: whole captures held against what two other decoders made of them, and
//! spans that tile every datagram.

use std::collections::HashMap;
use std::io::Read;

use serde_json::Value;

use crate::common::scratch;

fn moulsniff(arguments: &[&str]) -> Vec<Value> {
    let output = crate::common::program().args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn capture(name: &str) -> String {
    format!("captures/secondlife/{name}.pcapng.gz")
}

fn truth(name: &str) -> Vec<Value> {
    let file = std::fs::File::open(format!("captures/secondlife/{name}.truth.jsonl.gz")).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The wire's value of what may be an enum or a flag set.
fn plain(value: &Value) -> &Value {
    value.get("value").unwrap_or(value)
}

fn floats_equal(want: f64, got: f64) -> bool {
    want == got || want as f32 == got as f32 || want.is_nan() && got.is_nan()
}

fn as_float(value: &Value) -> Option<f64> {
    match value {
        Value::String(s) => s.replace("Infinity", "inf").parse().ok(),
        other => other.as_f64(),
    }
}

fn equal(want: &Value, got: &Value) -> bool {
    match want {
        Value::Object(bytes) => {
            let hex = bytes["hex"].as_str().unwrap();
            let Value::String(text) = got else {
                return got.is_object() || got.is_array();
            };
            let raw: Vec<u8> = (0..hex.len())
                .step_by(2)
                .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap())
                .collect();
            let end = raw.iter().rposition(|b| *b != 0).map_or(0, |i| i + 1);
            text == hex || *text == String::from_utf8_lossy(&raw[..end])
        }
        Value::Array(numbers) => {
            let got: Vec<&Value> = got.as_object().unwrap().values().collect();
            numbers.iter().zip(got).all(|(w, g)| equal(w, g))
        }
        _ => match plain(got) {
            Value::Bool(b) => want.as_i64() == Some(i64::from(*b)),
            Value::String(s) if want.is_number() => {
                s.parse::<serde_json::Number>().is_ok_and(|n| want == &Value::Number(n))
            }
            got if want.is_number() => floats_equal(want.as_f64().unwrap(), got.as_f64().unwrap()),
            Value::String(s) if want.as_str() == Some(s) => true,
            got => match (as_float(want), as_float(got)) {
                (Some(w), Some(g)) => floats_equal(w, g),
                _ => false,
            },
        },
    }
}

fn hold_against_truth(name: &str) {
    let records = moulsniff(&[&capture(name), "--json", "--quiet"]);
    let by_frame: HashMap<u64, &Value> = records
        .iter()
        .filter(|r| r.get("event").is_none())
        .map(|r| (r["frame"].as_u64().unwrap(), r))
        .collect();
    let truth = truth(name);
    assert!(truth.len() > 500);
    for want in truth {
        let got = by_frame
            .get(&want["frame"].as_u64().unwrap())
            .unwrap_or_else(|| panic!("no message for {want}"));
        let fields = &got["fields"];
        assert_eq!(got["message"], want["name"]);
        assert_eq!(fields["sequence"], want["sequence"], "{want}");
        assert_eq!(fields["flags"]["value"], want["flags"], "{want}");
        assert_eq!(
            fields.get("acks").cloned().unwrap_or(Value::Array(vec![])),
            want["acks"],
            "{want}"
        );
        assert_eq!(fields.get("extra"), want.get("extra"), "{want}");
        // The other decoders do not know the block that OpenSim's byte is the count of.
        let sizes = want["name"] == "MapBlockReply" && fields["Size"].is_array();
        assert_eq!(
            fields.get("undecoded").is_some(),
            want.get("trailing").is_some() && !sizes || cut_in_message(&want, fields)
        );
        for (block, repeats) in want["blocks"].as_object().unwrap() {
            let one = [fields[block].clone()];
            let mine = fields[block].as_array().map_or(&one[..], |list| list);
            for (i, fields) in repeats.as_array().unwrap().iter().enumerate() {
                for (field, value) in fields.as_object().unwrap() {
                    let found = &mine[i][field];
                    assert!(
                        equal(value, found),
                        "{} {block}[{i}].{field}: {value} but {found}",
                        want["name"]
                    );
                }
            }
        }
    }
}

/// A message that was cut off may leave bytes that make no whole field.
fn cut_in_message(want: &Value, fields: &Value) -> bool {
    want.get("cut").is_some() && fields.get("undecoded").is_some()
}

#[test]
fn a_real_login_is_read_as_others_read_it() {
    hold_against_truth("opensim");
}

#[test]
fn every_message_is_read_as_others_read_it() {
    hold_against_truth("every_message");
}

/// Spans lie side by side from 0 to the end, children within their parents.
fn tiles(fields: &[Value], start: u64, end: u64, path: &str) {
    let mut at = start * 8;
    for span in fields {
        let offset = span["offset"].as_u64().unwrap();
        let length = span["length"].as_u64().unwrap();
        let first = offset * 8 + span.get("bit_offset").map_or(0, |b| b.as_u64().unwrap());
        let bits = span.get("bit_length").map_or(length * 8, |b| b.as_u64().unwrap());
        assert_eq!(first, at, "{path}.{}", span["name"]);
        at = first + bits;
        let path = format!("{path}.{}", span["name"]);
        let Some(children) = span.get("fields").and_then(Value::as_array).filter(|c| !c.is_empty())
        else {
            continue;
        };
        if span.get("buffer").is_some() {
            assert_eq!(span["buffer"], "expanded");
            let last = children.last().unwrap();
            tiles(
                children,
                0,
                last["offset"].as_u64().unwrap() + last["length"].as_u64().unwrap(),
                &path,
            );
        } else if span.get("value").is_none() && bits % 8 == 0 {
            tiles(children, offset, offset + length, &path);
        }
    }
    assert_eq!(at, end * 8, "end of {path}");
}

#[test]
fn spans_tile_every_datagram() {
    for name in ["opensim", "every_message"] {
        let records = moulsniff(&[&capture(name), "--json", "--spans", "--quiet"]);
        for record in records.iter().filter(|r| r.get("event").is_none()) {
            let name = record["message"].as_str().unwrap();
            tiles(
                record["fields"].as_array().unwrap(),
                0,
                record["length"].as_u64().unwrap(),
                name,
            );
        }
    }
}

#[test]
fn resends_and_acknowledgements_are_tied_to_what_was_sent() {
    let records = moulsniff(&[&capture("opensim"), "--json", "--quiet"]);
    let ack = &records[2];
    assert_eq!((&ack["message"], &ack["reply_to"]), (&"PacketAck".into(), &2.into()));
    assert_eq!(ack["acknowledges"], serde_json::json!([{"record": 2, "elapsed_ms": 20.244}]));
    let marked = |r: &&Value| r["fields"]["flags"]["value"].as_u64().is_some_and(|f| f & 0x20 != 0);
    assert!(records.iter().filter(marked).all(|r| r.get("sent_again").is_some()));
    assert_eq!(records.iter().filter(marked).count(), 765);
    let opened: Vec<&str> = records
        .iter()
        .filter(|r| r["event"] == "open")
        .filter_map(|r| r["text"].as_str())
        .collect();
    assert_eq!(opened.len(), 3);
    // One client's two circuits are of the same session.
    assert_eq!(opened[0], opened[2]);
    assert!(records.iter().any(|r| r["event"] == "close"));
    let by_name = |name: &str| records.iter().find(|r| r["message"] == name).unwrap();
    let asked = by_name("CompleteAgentMovement");
    let answer = by_name("AgentMovementComplete");
    assert_eq!(answer["reply_to"], asked["record"]);
    let asked = by_name("StartPingCheck");
    let answer = by_name("CompletePingCheck");
    assert_eq!(answer["reply_to"], asked["record"]);
}

#[test]
fn a_grids_own_template_is_told_by_its_content() {
    let dir = scratch("template");
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("any-name");
    let text = "// ours\nversion 2.0\n{ UseCircuitCode Low 3 NotTrusted Unencoded\n{ Ours Single \
                { Whole Fixed 36 } } }\n";
    std::fs::write(&file, text).unwrap();
    let records =
        moulsniff(&[&capture("opensim"), "--json", "--quiet", "--tables", file.to_str().unwrap()]);
    std::fs::remove_dir_all(&dir).unwrap();
    let first = records.iter().find(|r| r["message"] == "UseCircuitCode").unwrap();
    assert_eq!(first["fields"]["Ours"]["Whole"].as_str().map(str::len), Some(72));
    assert_eq!(records.iter().filter(|r| r.get("event").is_none()).count(), 4393);
}

/// An update has both numbers of an object: the one within its region, and the UUID under which it
/// or the avatar gets a name.
#[test]
fn an_object_has_its_name_also_by_its_number_within_the_region() {
    let named = |message: &str, field: &str| -> Vec<String> {
        let filter = format!("message == {message} and names");
        let all = moulsniff(&[&capture("opensim"), "--json", "-q", "-Y", &filter]);
        let name = |record: &Value| Some(record["names"][field]["name"].as_str()?.to_string());
        all.iter().filter_map(name).collect()
    };
    assert_eq!(named("ObjectClickAction", "fields.ObjectData[0].ObjectLocalID"), ["Object"]);
    let moved = named("ImprovedTerseObjectUpdate", "fields.ObjectData[0].Data.ID");
    assert!(moved.iter().any(|name| name == "Test User"), "{moved:?}");
}
