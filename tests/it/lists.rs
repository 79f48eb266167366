//! Lists that end with the element that says that it is the last: what they give, where they cannot
//! be declared, and whatever happens to their bits.

use moulsniff::print::json::{JsonOptions, JsonWriter};
use moulsniff::proto::{load_tables, protocol_named};
use moulsniff::record::MessageView;
use moulsniff::table::{Evaluator, TableSource, Tables, parse_hex};
use moulsniff::tree::{Sym, Tree};
use serde_json::{Value, json};

use crate::common::random;
use crate::made::{Made, end, run};
use crate::ouro::tiled;
use crate::ouro_services::{packet, table};

const TABLE: &str = "protocol ouro
struct Shortcut {
    index: packint(1)
    if index == 3 { last } else { name: string }
}
struct Shortcuts { commands: Shortcut[until last], after: bits(5) }
struct Step { again: bits(1), if again == 0 { last } }
struct Walk { steps: Step[until last], end: bits(1), match end { 1 => { last }, else => {} } }
struct Walks { all: Walk[until last], after: bits(3) }
struct Within { all: { a: bits(2), if a == 3 { last } }[until last], rest: bits(2) }
struct Nothing { if remaining == 99 { last } }
struct Nothings { all: Nothing[until last] }
message user client 2 ShortcutsOf { all: Shortcuts }
message user client 3 WalksOf { all: Walks }
message user client 4 NothingsOf { all: Nothings }
";

fn tables(text: &str) -> Result<Tables, String> {
    let source = TableSource { name: "test".into(), text: text.to_string().into() };
    load_tables(protocol_named("ouro").unwrap(), &[source]).map_err(|error| error.message)
}

/// A type's value, its number of bits, and the first problem.
fn value(ty: &str, hex: &str) -> (Value, usize, Option<String>) {
    let (tables, ty) =
        tables(TABLE).unwrap().with_type(ty).unwrap_or_else(|error| panic!("{error}"));
    let bytes = parse_hex(hex).unwrap();
    let mut tree = Tree::new();
    let mut out = Vec::new();
    let end = Evaluator::default().value(&tables, ty, Sym::ELEMENT, &bytes, 0, &mut tree);
    JsonWriter::new(JsonOptions::default()).value(
        MessageView { tables: &tables, tree: &tree, bytes: &bytes },
        0,
        &mut out,
    );
    let problem = tree.problems().first().map(|problem| format!("{:?}", problem.text));
    (serde_json::from_slice(&out).unwrap(), end, problem)
}

#[test]
fn the_last_element_ends_its_list() {
    // 1 "a", 3; then 17 in five bits.
    let want = json!({ "commands": [{ "index": 1, "name": "a" }, { "index": 3 }], "after": 17 });
    let bits = "100 10000110 00000000 101 10001";
    let hex: String = packet(bits)[8..].iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(value("Shortcuts", &hex), (want, 27, None));
    // Two walks of two steps and one; the inner lists do not end the outer one.
    let hex: String =
        packet("10 0 0 1 101")[8..].iter().map(|byte| format!("{byte:02x}")).collect();
    let (got, bits, problem) = value("Walks", &hex);
    let want = json!({ "all": [
        { "steps": [{ "again": 1 }, { "again": 0 }], "end": 0 },
        { "steps": [{ "again": 0 }], "end": 1 },
    ], "after": 5 });
    assert_eq!((got, bits, problem), (want, 8, None));
    let (got, bits, _) = value("Within", "0d");
    assert_eq!((got, bits), (json!({ "all": [{ "a": 1 }, { "a": 3 }], "rest": 0 }), 6));
}

#[test]
fn a_list_without_a_last_element_is_an_error_in_the_traffic() {
    let (_, _, problem) = value("Walks", "ffff");
    assert!(problem.is_some());
    let (_, _, problem) = value("Nothings", "ffff");
    assert!(problem.is_some_and(|text| text.contains("no length")));
}

#[test]
fn a_form_that_does_not_fit_ends_no_list() {
    let table = crate::exported_messages::folder("lists-forms").join("forms.table");
    let text = "protocol moul\nstruct A { a: u8 if a == 9 { last } b: u16 }\nstruct B { c: u16 }
        struct Element { form: bytes[2] as A | B, end: u8, if end == 0 { last } }\nstruct List { \
                all: Element[until last] }";
    std::fs::write(&table, text).unwrap();
    let words = [
        "decode",
        "--json",
        "--tables",
        table.to_str().unwrap(),
        "--type",
        "List",
        "0901 01 0203 00",
    ];
    let told = crate::exported_messages::run(&words);
    let value: Value = serde_json::from_slice(&told.stdout).unwrap_or_else(|_| panic!("{told:?}"));
    let want =
        json!({ "all": [{ "form": { "c": 265 }, "end": 1 }, { "form": { "c": 770 }, "end": 0 }] });
    assert_eq!(value["value"], want);
}

#[test]
fn what_can_never_be_the_last_is_a_mistake_in_the_table() {
    for of in ["u8", "string", "utf8", "bytes", "Plain", "{ a: bits(1) }"] {
        let text = format!(
            "protocol ouro\nstruct Plain {{ a: bits(1) }}\nstruct List {{ all: {of}[until last] }}"
        );
        assert!(tables(&text).err().unwrap().contains("[until last]"), "{of}");
    }
    // `until` is still the name of a field.
    assert!(tables("protocol ouro\nstruct List { until: u8, last: u8, all: u8[until] }").is_ok());
}

/// One link, on which a client sends these user commands: their bits, the number included.
fn link(commands: &[String]) -> Vec<u8> {
    let client = end(1, 50_000);
    let server = end(2, 7000);
    let mut made = Made::new();
    made.udp((client, server), &packet("100 0 1110000"));
    made.udp((server, client), &packet("0 1110000"));
    commands.iter().for_each(|bits| made.udp((client, server), &packet(bits)));
    made.bytes
}

/// Every bit of every packet has its span, and the statistics, which make no trees, count the same
/// bytes and problems.
fn hold(commands: &[String]) -> Vec<Value> {
    let path = table("lists", TABLE);
    let capture = link(commands);
    let (records, _) =
        run(&capture, &["-q", "--spans", "--ouro-cookies", "off", "--tables", &path]);
    let messages: Vec<&Value> =
        records.iter().filter(|record| record.get("event").is_none()).collect();
    assert_eq!(messages.len(), commands.len() + 2);
    for record in messages {
        tiled(&record["fields"], 0, record["length"].as_u64().unwrap() * 8);
    }
    let file = path.replace(".table", ".pcap");
    std::fs::write(&file, &capture).unwrap();
    let output = crate::common::program()
        .args(["stats", "--json", "-q", "--ouro-cookies", "off", "--tables", &path, &file])
        .output()
        .unwrap();
    let stats: Value = serde_json::from_slice(&output.stdout).unwrap();
    let bytes = |key: &str| stats["bytes"][key].as_u64().unwrap();
    assert_eq!(bytes("payload"), bytes("explained") + bytes("opaque") + bytes("undecoded"));
    records
}

#[test]
fn every_bit_of_a_list_that_is_cut_or_random_is_shown() {
    let whole = ["110 100 10000110 00000000 101 10001", "1110000 10 0 0 1 101", "1111000 0"];
    let mut commands = Vec::new();
    for bits in whole {
        let bits: String = bits.split(' ').collect();
        commands.extend((4..=bits.len()).map(|end| bits[..end].to_string()));
    }
    let mut random = random();
    for number in ["110", "1110000", "1111000"] {
        for _ in 0..100 {
            let length = 1 + random() % 200;
            commands.push(
                number
                    .chars()
                    .chain((0..length).map(|_| if random().is_multiple_of(2) { '0' } else { '1' }))
                    .collect(),
            );
        }
    }
    assert!(!hold(&commands).is_empty());
}

#[test]
fn a_list_that_never_ends_is_bounded() {
    let commands: Vec<String> =
        (0..8).map(|at| "1110000".to_string() + &"1".repeat(500_000 + at)).collect();
    for record in hold(&commands).iter().skip(2).filter(|record| record["message"] == "WalksOf") {
        let problem = record["problems"][0]["text"].as_str().unwrap();
        assert!(problem.contains("200000"), "{problem}");
    }
}
