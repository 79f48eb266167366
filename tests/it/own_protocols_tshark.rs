//! The protocols under `examples/protocols`, value by value against tshark's own dissectors.
//!
//! Beside each capture is what tshark said of it, so that the comparison needs no tshark. Where
//! tshark is there, that file is compared with what it says now; `TSHARK=write` writes it again.

use std::process::Command;

use moulsniff::table::parse_hex;
use serde_json::{Map, Value};

use crate::common::{file, hold, records};

/// A field of tshark, the path of ours without the places in lists (`@type`: the number of the
/// message), and the message it is read from (`*`: any).
type Pair = (&'static str, &'static str, &'static str);

struct Compared {
    name: &'static str,
    pairs: &'static [Pair],
    /// Fields that are text with us and hex in tshark.
    hex: &'static [&'static str],
    /// Paths of ours that are hex where tshark has text.
    text: &'static [&'static str],
}

const DNS: Compared = Compared {
    name: "dns",
    hex: &[],
    text: &[],
    pairs: &[
        ("dns.id", "id", "*"),
        ("dns.flags.opcode", "opcode", "*"),
        ("dns.flags.authoritative", "authoritative", "Response"),
        ("dns.flags.truncated", "truncated", "*"),
        ("dns.flags.recdesired", "recursion_desired", "*"),
        ("dns.flags.recavail", "recursion_available", "Response"),
        ("dns.flags.checkdisable", "checking_disabled", "*"),
        ("dns.flags.rcode", "code", "Response"),
        ("dns.qry.name", "questions[].name", "*"),
        ("dns.qry.type", "questions[].type", "*"),
        ("dns.qry.class", "questions[].class", "*"),
        // Of services tshark has the parts of the name in other fields.
        ("dns.resp.name", "answers[].name", "!SRV"),
        ("dns.resp.name", "authorities[].name", "*"),
        ("dns.resp.name", "additional[].name", "*"),
        ("dns.resp.type", "answers[].type", "*"),
        ("dns.resp.type", "authorities[].type", "*"),
        ("dns.resp.type", "additional[].type", "*"),
        ("dns.resp.class", "answers[].class", "*"),
        ("dns.resp.class", "authorities[].class", "*"),
        ("dns.resp.class", "additional[].class", "*"),
        ("dns.resp.ttl", "answers[].ttl", "*"),
        ("dns.resp.ttl", "authorities[].ttl", "*"),
        ("dns.resp.ttl", "additional[].ttl", "*"),
        ("dns.a", "additional[].data.address", "A"),
        ("dns.aaaa", "additional[].data.address", "AAAA"),
        ("dns.rr.udp_payload_size", "additional[].payload_size", "*"),
        ("dns.resp.edns0_version", "additional[].version", "*"),
        ("dns.resp.z.do", "additional[].dnssec_ok", "*"),
        ("dns.opt.code", "additional[].data.options[].code", "*"),
        ("dns.a", "answers[].data.address", "A"),
        ("dns.aaaa", "answers[].data.address", "AAAA"),
        ("dns.cname", "answers[].data.target", "CNAME"),
        ("dns.ns", "answers[].data.target", "NS"),
        ("dns.ns", "authorities[].data.target", "NS"),
        ("dns.ptr.domain_name", "answers[].data.target", "PTR"),
        ("dns.mx.preference", "answers[].data.preference", "MX"),
        ("dns.mx.mail_exchange", "answers[].data.exchange", "*"),
        ("dns.txt", "answers[].data.texts[]", "*"),
        ("dns.srv.priority", "answers[].data.priority", "*"),
        ("dns.srv.weight", "answers[].data.weight", "*"),
        ("dns.srv.port", "answers[].data.port", "*"),
        ("dns.srv.target", "answers[].data.target", "SRV"),
        ("dns.naptr.order", "answers[].data.order", "*"),
        ("dns.naptr.preference", "answers[].data.preference", "NAPTR"),
        ("dns.naptr.flags", "answers[].data.flags", "NAPTR"),
        ("dns.naptr.service", "answers[].data.services", "*"),
        ("dns.naptr.regex", "answers[].data.expression", "*"),
        ("dns.caa.tag", "answers[].data.tag", "*"),
        ("dns.caa.value", "answers[].data.value", "*"),
        ("dns.soa.mname", "answers[].data.primary", "*"),
        ("dns.soa.rname", "answers[].data.mailbox", "*"),
        ("dns.soa.serial_number", "answers[].data.serial", "*"),
        ("dns.soa.refresh_interval", "answers[].data.refresh", "*"),
        ("dns.soa.retry_interval", "answers[].data.retry", "*"),
        ("dns.soa.expire_limit", "answers[].data.expire", "*"),
        ("dns.soa.minimum_ttl", "answers[].data.minimum", "*"),
    ],
};

const MQTT: Compared = Compared {
    name: "mqtt",
    hex: &[],
    text: &["password", "properties.list[].data"],
    pairs: &[
        ("mqtt.msgtype", "@type", "*"),
        ("mqtt.dupflag", "dup", "PUBLISH"),
        ("mqtt.qos", "qos", "PUBLISH"),
        ("mqtt.retain", "retain", "PUBLISH"),
        ("mqtt.protoname", "protocol_name", "*"),
        ("mqtt.ver", "version", "CONNECT"),
        ("mqtt.conflag.uname", "user_name_flag", "*"),
        ("mqtt.conflag.passwd", "password_flag", "*"),
        ("mqtt.conflag.retain", "will_retain", "*"),
        ("mqtt.conflag.qos", "will_qos", "*"),
        ("mqtt.conflag.willflag", "will_flag", "*"),
        ("mqtt.conflag.cleansess", "clean_start", "*"),
        ("mqtt.kalive", "keep_alive", "*"),
        ("mqtt.clientid", "client_id", "*"),
        ("mqtt.username", "user_name", "*"),
        ("mqtt.passwd", "password", "*"),
        ("mqtt.willtopic", "will.topic", "*"),
        ("mqtt.willmsg", "will.payload", "*"),
        ("mqtt.conack.flags.sp", "session_present", "*"),
        ("mqtt.conack.val", "result", "CONNACK"),
        ("mqtt.connack.reason_code", "reason", "CONNACK"),
        ("mqtt.disconnect.reason_code", "reason", "DISCONNECT"),
        ("mqtt.suback.qos", "reasons[]", "SUBACK3"),
        ("mqtt.suback.reason_code", "reasons[]", "SUBACK5"),
        ("mqtt.unsuback.reason_code", "reasons[]", "UNSUBACK"),
        ("mqtt.msgid", "packet_id", "*"),
        ("mqtt.topic", "topic", "PUBLISH"),
        ("mqtt.topic", "subscriptions[].filter", "*"),
        ("mqtt.topic", "filters[]", "*"),
        ("mqtt.msg", "payload", "PUBLISH"),
        ("mqtt.property_id", "properties.list[].id", "*"),
        ("mqtt.property_id", "will.properties.list[].id", "*"),
        ("mqtt.property.topic_alias", "properties.list[].number", "topic_alias"),
        ("mqtt.prop_number", "properties.list[].number", "!topic_alias"),
        ("mqtt.prop_number", "will.properties.list[].number", "*"),
        ("mqtt.property.content_type", "properties.list[].text", "content_type"),
        ("mqtt.prop_string", "properties.list[].text", "!content_type"),
        ("mqtt.prop_string", "properties.list[].data", "*"),
        ("mqtt.prop_key", "properties.list[].key", "*"),
        ("mqtt.prop_value", "properties.list[].value", "*"),
    ],
};

const REDIS: Compared = Compared {
    name: "redis",
    hex: &["resp.bulk_string.value"],
    text: &[],
    pairs: &[
        ("resp.string", "text", "SimpleString"),
        ("resp.error", "text", "Error"),
        ("resp.integer", "integer", "*"),
        ("resp.integer", "values[].integer", "*"),
        ("resp.bulk_string.value", "data", "*"),
        ("resp.bulk_string.value", "words[].data", "*"),
        ("resp.bulk_string.value", "values[].data", "*"),
        ("resp.bulk_string.value", "values[].values[].data", "*"),
        ("resp.bulk_string.value", "values[].values[].values[].data", "*"),
        ("resp.array.length", "words[#]", "*"),
        ("resp.array.length", "count", "*"),
        ("resp.array.length", "values[].count", "*"),
        ("resp.array.length", "values[].values[].count", "*"),
    ],
};

const MODBUS: Compared = Compared {
    name: "modbus",
    hex: &[],
    text: &[],
    pairs: &[
        ("mbtcp.trans_id", "transaction_id", "*"),
        ("mbtcp.prot_id", "protocol_id", "*"),
        ("mbtcp.unit_id", "unit_id", "*"),
        ("modbus.reference_num", "address", "*"),
        ("modbus.reference_num", "range.address", "*"),
        ("modbus.word_cnt", "count", "ReadHoldingRegisters"),
        ("modbus.word_cnt", "count", "ReadInputRegisters"),
        ("modbus.word_cnt", "range.count", "WriteMultipleRegisters"),
        ("modbus.word_cnt", "count", "WriteMultipleRegistersReply"),
        ("modbus.bit_cnt", "count", "ReadCoils"),
        ("modbus.bit_cnt", "count", "ReadDiscreteInputs"),
        ("modbus.bit_cnt", "range.count", "WriteMultipleCoils"),
        ("modbus.bit_cnt", "count", "WriteMultipleCoilsReply"),
        ("modbus.regval_uint16", "registers[]", "*"),
        ("modbus.exception_code", "exception_code", "*"),
    ],
};

/// tshark's field of an address, which is a number with us where the table computes it.
const COMPUTED_ADDRESS: &str = "stun.att.ipv4";

const STUN: Compared = Compared {
    name: "stun",
    hex: &[],
    text: &[],
    pairs: &[
        ("stun.type", "@type", "*"),
        ("stun.id", "transaction_id", "*"),
        ("stun.att.type", "attributes[].type", "*"),
        (COMPUTED_ADDRESS, "attributes[].value.mapped.address", "*"),
        ("stun.att.port", "attributes[].value.mapped.port", "*"),
        ("stun.att.username", "attributes[].value.username", "*"),
        ("stun.att.priority", "attributes[].value.priority", "*"),
        ("stun.att.realm", "attributes[].value.realm", "*"),
        ("stun.att.nonce", "attributes[].value.nonce", "*"),
        ("stun.att.software", "attributes[].value.software", "*"),
        ("stun.att.error.class", "attributes[].value.class", "*"),
        ("stun.att.error", "attributes[].value.number", "*"),
        ("stun.att.error.reason", "attributes[].value.reason", "*"),
        ("stun.att.hmac", "attributes[].value.data", "MESSAGE_INTEGRITY"),
        ("stun.att.crc32", "attributes[].value.fingerprint", "*"),
    ],
};

#[test]
fn dns_says_what_tshark_says() {
    compare(&DNS);
}

#[test]
fn mqtt_says_what_tshark_says() {
    compare(&MQTT);
}

#[test]
fn modbus_says_what_tshark_says() {
    compare(&MODBUS);
}

#[test]
fn stun_says_what_tshark_says() {
    compare(&STUN);
}

#[test]
fn redis_says_what_tshark_says() {
    compare(&REDIS);
}

/// tshark's dissector of Quake III ends with an exception behind the marker, so this one is held
/// against what the program that asked made of the answers.
#[test]
fn quake3_says_what_quakestat_says() {
    let said = std::fs::read_to_string(file("examples/protocols/quake3.qstat.txt")).unwrap();
    let lines: Vec<&str> = said.lines().filter(|line| !line.is_empty()).collect();
    let all = records(
        "examples/protocols/quake3.pcap",
        &[],
        &["--tables", "examples/protocols/quake3.table"],
    );
    assert!(
        all.iter().all(|r| r["event"].is_null() && r["problems"].is_null()),
        "everything is understood"
    );
    let status = &all.iter().find(|r| r["message"] == "Status").unwrap()["fields"];
    let info = &all.iter().find(|r| r["message"] == "Info").unwrap()["fields"];
    let settings = |of: &Value| of["settings"]["list"].as_array().unwrap().clone();
    let known: Vec<Value> = settings(info).into_iter().chain(settings(status)).collect();
    for setting in lines[1].split('|') {
        let (key, value) = setting.split_once('=').unwrap();
        assert!(known.iter().any(|s| s["key"] == key && s["value"] == value), "{setting}");
    }
    let players: Vec<String> = status["players"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| format!("{}|{}|{}", p["name"].as_str().unwrap(), p["score"], p["ping"]))
        .collect();
    assert_eq!(players, lines[2..]);
    assert_eq!(
        all.iter().filter(|r| r["reply_to"].is_number()).count(),
        6,
        "every question is answered"
    );
}

fn compare(of: &Compared) {
    let (capture, table) = (
        format!("examples/protocols/{}.pcap", of.name),
        format!("examples/protocols/{}.table", of.name),
    );
    let kept = file(&format!("examples/protocols/{}.tshark.json", of.name));
    if let Some(said) = by_tshark(&capture, of) {
        hold(&kept, &lines(&said), "TSHARK");
    }
    let want: Map<String, Value> =
        serde_json::from_str(&std::fs::read_to_string(&kept).unwrap()).unwrap();
    let all = records(&capture, &[], &["--tables", &table]);
    assert!(
        all.iter().all(|r| r["event"] != "undecoded" && r["problems"].is_null()),
        "everything is understood"
    );
    let ours = by_us(&all, of);
    for (field, values) in &want {
        let own = ours.get(field).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let values = values.as_array().unwrap();
        let first =
            values.iter().zip(own).position(|(a, b)| a != b).unwrap_or(own.len().min(values.len()));
        let theirs = values.get(first);
        let mine = own.get(first);
        assert!(
            values == own,
            "{field}, value {first} of {}: {theirs:?} there, {mine:?} here",
            values.len()
        );
    }
    assert!(!want.is_empty() && want.len() == ours.len(), "all of ours are compared");
}

/// One line a field.
fn lines(said: &Map<String, Value>) -> String {
    let all: Vec<String> =
        said.iter().map(|(field, values)| format!("{:?}: {values}", field)).collect();
    format!("{{\n{}\n}}\n", all.join(",\n"))
}

/// The values of each field in the order of the capture, as tshark has them; `None` where there is
/// no tshark.
fn by_tshark(capture: &str, of: &Compared) -> Option<Map<String, Value>> {
    let mut fields: Vec<&str> = of.pairs.iter().map(|pair| pair.0).collect();
    fields.dedup();
    let mut program = Command::new("tshark");
    program.current_dir(file("")).args([
        "-r",
        capture,
        "-T",
        "fields",
        "-E",
        "occurrence=a",
        "-E",
        "aggregator=\u{1f}",
    ]);
    // What tshark shows of a part of a message it shows again with the whole one.
    program.args(["-Y", "!resp.reassembled_in_next_frame"]);
    program.args(fields.iter().flat_map(|field| ["-e", field]));
    let Ok(output) = program.output() else {
        eprintln!("tshark is not there: what it said before is used");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut found = Map::new();
    for line in text.lines() {
        for (field, cell) in
            fields.iter().zip(line.split('\t')).filter(|(_, cell)| !cell.is_empty())
        {
            let list = found.entry(field.to_string()).or_insert_with(|| Value::Array(Vec::new()));
            for value in cell.split('\u{1f}') {
                list.as_array_mut()
                    .unwrap()
                    .push(Value::String(plain(value, of.hex.contains(field))));
            }
        }
    }
    Some(found)
}

/// A value of tshark as we write it.
fn plain(value: &str, hex: bool) -> String {
    match value.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16)) {
        Some(Ok(number)) if !hex => number.to_string(),
        _ => match value {
            "<Root>" => ".".into(),
            "<MISSING>" => String::new(),
            _ => value.replace(r#"\""#, "\""),
        },
    }
}

fn by_us(records: &[Value], of: &Compared) -> Map<String, Value> {
    let mut found = Map::new();
    for record in records.iter().filter(|record| record["message"].is_string()) {
        let kind = kinds(record);
        let mut take = |path: &str, kind: &[String], value: &Value| {
            for (field, own, message) in of.pairs {
                let is = |message: &str| kind.iter().any(|kind| kind == message);
                let wanted = *message == "*"
                    || message.strip_prefix('!').map_or_else(|| is(message), |not| !is(not));
                if *own == path && wanted {
                    let list =
                        found.entry(field.to_string()).or_insert_with(|| Value::Array(Vec::new()));
                    let address = value.as_u64().filter(|_| *field == COMPUTED_ADDRESS);
                    let value = match (of.hex.contains(field), of.text.contains(own)) {
                        _ if address.is_some() => {
                            std::net::Ipv4Addr::from(address.unwrap() as u32).to_string()
                        }
                        (true, _) => in_hex(value),
                        (_, true) => from_hex(value),
                        _ => text_of(value),
                    };
                    list.as_array_mut().unwrap().push(Value::String(value));
                }
            }
        };
        take("@type", &kind, &record["type"]);
        walk(&record["fields"], "", &kind, &mut take);
    }
    found
}

/// What the pairs may ask about: the message, and which version of it.
fn kinds(record: &Value) -> Vec<String> {
    let message = record["message"].as_str().unwrap();
    let version = if record["fields"]["properties"].is_object() { 5 } else { 3 };
    vec![message.to_string(), format!("{message}{version}")]
}

/// Every value with its path, in the order of the fields; of a list its length, too, before its
/// elements. A structure with a type has that as a kind, too.
fn walk(value: &Value, path: &str, kind: &[String], take: &mut dyn FnMut(&str, &[String], &Value)) {
    match value {
        Value::Object(fields)
            if fields.contains_key("value") && fields.len() <= 2 && fields["value"].is_number() =>
        {
            take(path, kind, value);
        }
        Value::Object(fields) => {
            let named =
                |key: &str| fields.get(key).and_then(|ty| ty["name"].as_str()).map(str::to_string);
            let kind: Vec<String> =
                kind.iter().cloned().chain(named("type")).chain(named("id")).collect();
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                walk(value, &path, &kind, take);
            }
        }
        Value::Array(list) => {
            take(&format!("{path}[#]"), kind, &list.len().into());
            list.iter().for_each(|value| walk(value, &format!("{path}[]"), kind, take));
        }
        _ => take(path, kind, value),
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(named) => named["value"].to_string(),
        other => other.to_string(),
    }
}

/// A text as the hex of its bytes.
fn in_hex(value: &Value) -> String {
    text_of(value).bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// The text that bytes in hex are.
fn from_hex(value: &Value) -> String {
    String::from_utf8(parse_hex(&text_of(value)).unwrap()).unwrap()
}
