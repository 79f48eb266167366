//! Changed JSON. What is changed comes out changed, with all that is computed from it, and nothing
//! else; and JSON that is no message gives one line that says where and why.

use std::collections::HashMap;

use moulsniff::{Decoder, Encoder};
use serde_json::{Value, json};

use crate::common::{Random, program, records};

/// The fields of each message's first test vector, and its name for `decode`.
fn vectors() -> HashMap<String, (String, Value)> {
    let output = program().args(["tables", "vectors", "--json"]).output().unwrap();
    let mut all = HashMap::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let vector: Value = serde_json::from_str(line).unwrap();
        let part = |key: &str| vector[key].as_str().unwrap_or("").to_string();
        let of = format!("{}.{}.{}", part("protocol"), part("service"), part("direction"));
        all.entry(part("message")).or_insert((of, vector["fields"].clone()));
    }
    all
}

/// What comes back of fields, with the values that are computed where the fields leave them out.
fn there_and_back(of: &str, message: &str, fields: &Value) -> Result<(Vec<u8>, Value), String> {
    let decoder = Decoder::new();
    let json = json!({"message": message, "fields": fields}).to_string();
    let bytes = decoder.encoder().unwrap().encode_as(of, &json).map_err(|e| e.to_string())?;
    let read = decoder.decode(of, &bytes).unwrap().remove(0);
    let mut back: Value = serde_json::from_str(&read.json()).unwrap();
    assert_eq!((&back["message"], &back["problems"]), (&message.into(), &Value::Null));
    for computed in ["checksum", "bit_length"] {
        if fields.get(computed).is_none() {
            back["fields"].as_object_mut().unwrap().remove(computed);
        }
    }
    Ok((bytes, back["fields"].take()))
}

#[test]
fn what_depends_on_a_changed_value_follows_it() {
    let vectors = vectors();
    let check = |name: &str, place: &str, value: Value, longer: isize| {
        let (of, fields) = &vectors[name];
        let mut fields = fields.clone();
        if name.starts_with("COMMCONTROL") {
            // What is given is not computed.
            for computed in ["checksum", "bit_length"] {
                fields.as_object_mut().unwrap().remove(computed);
            }
        }
        let (before, same) = there_and_back(of, name, &fields).unwrap();
        assert_eq!(same, fields, "{name}");
        *fields.pointer_mut(place).unwrap() = value;
        let (after, changed) = there_and_back(of, name, &fields).unwrap();
        assert_eq!(changed, fields, "{name}{place}");
        assert_eq!(after.len() as isize - before.len() as isize, longer, "{name}{place}");
    };
    // The length of bytes, the number of a list's elements, the length of a text with its zero.
    check("Cli2Auth_PingRequest", "/payload", json!("00010203"), 4);
    let owner = json!({"OwnerID": "db0cfa86-ce48-bdff-7feb-f6e89305589f"});
    check("ParcelDisableObjects", "/OwnerIDs", json!([owner, owner, owner]), 32);
    check("ChatFromViewer", "/ChatData/Message", json!("ünï"), 6);
    // Patches are bits, and the padding behind them; coefficients that are missing are 0.
    let patches = "/LayerData/Data/Patches/0";
    check("LayerData", &format!("{patches}/Coefficients"), json!([300, -1, 0, 1, 2, 3]), 3);
    check("LayerData", &format!("{patches}/Range"), json!(65_535), 0);
    // Zeros are coded.
    let coded = json!({"value": 128, "names": ["ZEROCODED"]});
    check("ParcelDisableObjects", "/flags", coded, -2);
    // Packed bits, their length and the checksum.
    check("COMMCONTROL_CONNECT", "/connect_id", json!(70_000), 8);
    // Quotes and escapes.
    check("tell", "/message", json!("\"hi\",\n\\ ü"), 5);
}

#[test]
fn a_message_that_was_compressed_is_compressed_again() {
    let records = records("captures/moul/kind_game.pcap", &["keys/dirtsand.ini"], &[]);
    let place = "/fields/buffer/stream/message/sender/object_name";
    let is_compressed = |record: &&Value| {
        let kind = record.pointer("/fields/buffer/stream/compression_type/name");
        kind == Some(&json!("kCompressionZlib"))
            && record.pointer(place).is_some()
            && record["problems"].is_null()
    };
    let record = records.iter().find(is_compressed).unwrap();
    let (of, name) = ("moul.game.client", record["message"].as_str().unwrap());
    let of = if record["from"] == "server" { "moul.game.server" } else { of };
    // A size that is left out is computed.
    let size = |fields: &mut Value| {
        fields["buffer"]["stream"].as_object_mut().unwrap().remove("uncompressed_size").unwrap()
    };
    let mut changed = record.clone();
    let before = size(&mut changed["fields"]).as_u64().unwrap();
    let old = record.pointer(place).unwrap().as_str().unwrap().to_string();
    *changed.pointer_mut(place).unwrap() = format!("{old} and more").into();
    let (_, mut back) = there_and_back(of, name, &changed["fields"]).unwrap();
    assert!(size(&mut back).as_u64().unwrap() > before);
    assert_eq!(back, changed["fields"]);
    // Flags that say that a field is there are given.
    let mut changed = record.clone();
    changed["fields"]["buffer"].as_object_mut().unwrap().remove("time_sent").unwrap();
    let error = there_and_back(of, name, &changed["fields"]).unwrap_err();
    assert!(error.starts_with("fields.buffer.time_sent: is missing"), "{error}");
}

#[test]
fn the_size_of_what_was_compressed_says_which_texts_are_in_latin_1() {
    let records = records("captures/moul/kind_game.pcap", &["keys/dirtsand.ini"], &[]);
    let mut encoder = Encoder::new().unwrap();
    let mut beyond_ascii = 0;
    for record in &records {
        let stream = &record["fields"]["buffer"]["stream"];
        if stream["compression_type"]["name"] != "kCompressionZlib" {
            continue;
        }
        beyond_ascii += usize::from(!stream.to_string().is_ascii());
        let of = format!("moul.game.{}", record["from"].as_str().unwrap());
        let bytes = encoder.encode(&record.to_string()).unwrap().unwrap();
        let read = Decoder::new().decode(&of, &bytes).unwrap().remove(0);
        let back: Value = serde_json::from_str(&read.json()).unwrap();
        assert_eq!(back["fields"], record["fields"]);
        let has_another_size = |of: &Value| of["problems"].to_string().contains("were announced");
        assert_eq!(has_another_size(&back), has_another_size(record), "{back} of {record}");
    }
    assert!(beyond_ascii > 4, "{beyond_ascii}");
}

#[test]
fn another_message_with_the_same_fields_has_another_number() {
    let vectors = vectors();
    for (name, other, number) in [
        ("Cli2Auth_VaultNodeFetch", "Cli2Auth_VaultFetchNodeRefs", 0..2),
        ("AgentPause", "AgentResume", 6..10),
    ] {
        let (of, fields) = &vectors[name];
        let (before, _) = there_and_back(of, name, fields).unwrap();
        let (mut after, same) = there_and_back(of, other, fields).unwrap();
        assert_eq!(&same, fields, "{other}");
        assert_ne!(after[number.clone()], before[number.clone()]);
        after[number.clone()].copy_from_slice(&before[number]);
        assert_eq!(after, before);
    }
}

/// A value in the place of another one. What serde_json cannot hold stands as a mark, and is put in
/// the text.
fn odd_value(random: &mut Random, raw: &mut String) -> Value {
    let deep = "[".repeat(1_100) + &"]".repeat(1_100);
    let nested = "{\"a\":".repeat(200) + "1" + &"}".repeat(200);
    let texts = [
        "1e999",
        "-0",
        "123456789012345678901234567890123456789012345678901",
        "-1.5e-400",
        "\"\\ud800\"",
        "\"\\udc00\\ud800\"",
        "\"\\u12\"",
        "01",
        "+1",
        "NaN",
        "",
        "{\"a\":1,\"a\":2}",
        "1,\"fields\":{}",
        "1],\"x\":[2",
        "\"\u{1}\"",
        &deep,
        &nested,
    ];
    match random.below(12) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(u64::MAX),
        4 => json!(1.5),
        5 => json!(""),
        6 => json!("\u{0}\u{feff}\u{1f600}".repeat(50)),
        7 => json!([]),
        8 => json!({"value": {}, "name": [], "names": 3}),
        9 => json!([[], {}, null]),
        _ => {
            *raw = texts[random.below(texts.len())].to_string();
            json!("@raw@")
        }
    }
}

/// Changes one of the values, or one of the keys, that lie in a value.
fn mutate(value: &mut Value, random: &mut Random, raw: &mut String) {
    let inside = match value {
        Value::Array(all) => all.len(),
        Value::Object(all) => all.len(),
        _ => 0,
    };
    if inside == 0 || random.below(4) == 0 {
        *value = odd_value(random, raw);
        return;
    }
    let at = random.below(inside);
    match value {
        Value::Object(all) => {
            let key = all.keys().nth(at).unwrap().clone();
            match random.below(6) {
                0 => _ = all.remove(&key),
                1 => _ = all.insert(format!("{key}\n\u{1b}."), json!(1)),
                2 => {
                    let of = all.remove(&key).unwrap();
                    all.insert(format!("{key}_"), of);
                }
                _ => mutate(&mut all[&key], random, raw),
            }
        }
        Value::Array(all) => match random.below(6) {
            0 => _ = all.remove(at),
            1 => all.extend(std::iter::repeat_n(all[at].clone(), 300).collect::<Vec<_>>()),
            _ => mutate(&mut all[at], random, raw),
        },
        _ => {}
    }
}

/// The error of hostile JSON is one short line that begins with a path, or with what is no JSON.
fn refused_or_written(encoder: &mut Encoder, json: &str) {
    let Err(error) = encoder.encode(json) else { return };
    let text = error.to_string();
    let begins = ["fields", "message", "protocol", "no JSON: byte ", "is "];
    let known = begins.iter().any(|begin| text.starts_with(begin));
    let short = text.chars().count() < 700 && !text.chars().any(|c| c == '\n');
    assert!(known && short && text.contains(' '), "{text:?} of {json:.500}");
}

#[test]
fn hostile_json_is_written_or_refused_in_one_line() {
    let mut encoder = Encoder::new().unwrap();
    let captures = [
        ("captures/moul/golden.pcap", 40),
        ("captures/intermud3/i3_coffeemud.pcapng", 60),
        ("captures/ouro/coh_tcp.pcap", 30),
        ("captures/secondlife/every_message.pcapng.gz", 400),
        ("captures/secondlife/http.pcap", 15),
    ];
    let mut random = Random(7);
    let mut tried = 0;
    for (capture, most) in captures {
        let all = Decoder::new().open(crate::common::file(capture)).unwrap();
        for record in all.take(most).map(Result::unwrap) {
            for json in [record.json(), record.json_spans()] {
                let seed: Value = serde_json::from_str(&json).unwrap();
                for _ in 0..3 {
                    let (mut changed, mut raw) = (seed.clone(), String::new());
                    let of =
                        if random.below(5) == 0 { &mut changed } else { &mut changed["fields"] };
                    mutate(of, &mut random, &mut raw);
                    let text = changed.to_string().replace("\"@raw@\"", &raw);
                    refused_or_written(&mut encoder, &text);
                    // Cut anywhere.
                    let cut =
                        (0..=random.below(text.len())).rev().find(|at| text.is_char_boundary(*at));
                    refused_or_written(&mut encoder, &text[..cut.unwrap_or(0)]);
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 2_000, "{tried}");
}

#[test]
fn a_list_of_a_million_elements_is_refused_where_its_count_does_not_fit() {
    let (of, fields) = &vectors()["ParcelDisableObjects"];
    let owner = fields["OwnerIDs"][0].to_string();
    let many = format!("[{}{owner}]", format!("{owner},").repeat(999_999));
    let fields = fields.to_string().replace(&format!("[{owner}]"), &many);
    let json = format!("{{\"message\":\"ParcelDisableObjects\",\"fields\":{fields}}}");
    let error = Encoder::new().unwrap().encode_as(of, &json).unwrap_err();
    assert_eq!(error.to_string(), "fields.OwnerIDs: 1000000 does not fit u8");
}
