#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
use super::super::decode_states::STATES;
use super::super::store::Store;
use crate::print::json::{JsonOptions, JsonWriter};
use crate::print::problem_text;
use crate::proto::{load_tables, protocol_named};
use crate::table::{Evaluator, Tables, parse_hex};
use crate::tree::{Kind, Sym, Tree};
use serde_json::{Value, json};

const DESCRIPTORS: &str = "
STATEDESC VecInner { VERSION 1 VAR BOOL iFlag[1] DEFAULT=false VAR INT iNum[1] DEFAULT=0 }
STATEDESC VecInner { VERSION 2 VAR BOOL iFlag[1] VAR INT iNum[1] VAR STRING32 iName[1] VAR SHORT iArr[] }
STATEDESC VecMiddle { VERSION 4 VAR INT mNum[1] VAR $VecInner mInner[1] VAR $VecInner mList[] VAR POINT3 mPos[1] }
STATEDESC VecNested { VERSION 2
    VAR INT nBefore[1] VAR $VecInner nOne[1] VAR $VecInner nFour[4] VAR $VecInner nList[] VAR FLOAT nAfter[1] VAR $VecMiddle nDeep[] }
STATEDESC Kinds { VERSION 1
    VAR DOUBLE d[1] VAR TIME t[1] VAR BYTE b[2] VAR AGETIMEOFDAY a[1] VAR VECTOR3 v[1] VAR RGB c[1] VAR RGBA ca[1] VAR QUATERNION q[1]
    VAR RGB8 c8[1] VAR RGBA8 ca8[2] VAR CREATABLE m[1] VAR AGETIMEOFDAY as[] VAR PLKEY k[] }
STATEDESC In { VERSION 1 VAR BYTE x[1] }
STATEDESC Out { VERSION 1 VAR $In list[] }
STATEDESC In { VERSION 2 VAR BYTE x[1] VAR BYTE y[1] }
STATEDESC Lost { VERSION 1 VAR $Nowhere list[] }
STATEDESC Self { VERSION 1 VAR $Self list[1] }
";

/// Tables, descriptors and a tree, ready to read states.
struct Fixture {
    tables: Tables,
    evaluator: Evaluator,
    tree: Tree,
}

impl Fixture {
    fn new(descriptors: &str) -> Self {
        let tables = load_tables(protocol_named("moul").unwrap(), &[]).unwrap();
        let mut store = Store::new();
        assert_eq!(store.add_file("test.sdl", descriptors.as_bytes(), None).error, None);
        let mut evaluator = Evaluator::default();
        evaluator.context = Some(Box::new(store));
        Fixture { tables, evaluator, tree: Tree::new() }
    }

    /// Reads a state; the fields, and the texts of what is said about it.
    fn read(&mut self, bytes: &[u8]) -> (Value, Vec<String>) {
        let ty = self.tables.type_named("SDL").unwrap();
        self.evaluator.value(&self.tables, ty, Sym::ELEMENT, bytes, 0, &mut self.tree);
        assert_tiled(&self.tree, 0);
        let mut out = Vec::new();
        JsonWriter::new(JsonOptions::default()).fields(&self.tables, &self.tree, bytes, &mut out);
        let said = self
            .tree
            .problems()
            .iter()
            .map(|p| problem_text(p, &self.tables, &self.tree))
            .collect();
        (serde_json::from_slice(&out).unwrap(), said)
    }
}

/// Every node's children lie one behind the other, from its first bit to its last.
fn assert_tiled(tree: &Tree, index: u32) {
    let node = tree.get(index).unwrap();
    let mut at = node.start;
    let mut children = 0;
    for (child, inner) in tree.children(index) {
        assert_eq!(inner.start, at, "a gap or an overlap");
        assert_tiled(tree, child);
        at += inner.bits;
        children += 1;
    }
    let plain = children == 0 && !matches!(node.kind, Kind::Struct | Kind::List);
    assert!(plain || at == node.start + node.bits, "bytes at the end without a place");
}

/// A state of a descriptor, from what follows the version.
fn state(name: &str, version: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = 0x8000u16.to_le_bytes().to_vec();
    bytes.extend((0xf000 | name.len() as u16).to_le_bytes());
    bytes.extend(name.bytes().map(|byte| !byte));
    bytes.extend(version.to_le_bytes());
    bytes.extend([0, 0, 6]);
    bytes.extend(body);
    bytes
}

#[test]
fn states_hold_what_their_authors_say() {
    let mut fixture = Fixture::new(DESCRIPTORS);
    for (what, hex, fields) in STATES {
        let (got, said) = fixture.read(&parse_hex(hex).unwrap());
        let expected: Value = serde_json::from_str(fields).unwrap();
        assert_eq!(got, expected, "{what}");
        assert!(said.is_empty(), "{what}: {said:?}");
    }
}

#[test]
fn cut_anywhere_every_byte_keeps_its_place() {
    let mut fixture = Fixture::new(DESCRIPTORS);
    for (_, hex, _) in STATES {
        let whole = parse_hex(hex).unwrap();
        for end in 0..whole.len() {
            fixture.read(&whole[..end]);
        }
    }
}

#[test]
fn one_byte_changed_is_read_in_order() {
    let mut fixture = Fixture::new(DESCRIPTORS);
    for (_, hex, _) in STATES {
        let whole = parse_hex(hex).unwrap();
        for at in 0..whole.len() {
            for to in [0, 1, 0x7f, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = to;
                fixture.read(&bytes);
            }
        }
    }
}

#[test]
fn values_of_every_type() {
    let mut body = vec![13];
    let var = |body: &mut Vec<u8>, value: &[u8]| {
        body.extend([0, 0]);
        body.extend(value);
    };
    var(&mut body, &1.5f64.to_le_bytes());
    var(&mut body, &[1, 0, 0, 0, 2, 0, 0, 0]);
    var(&mut body, &[3, 255]);
    var(&mut body, &[]);
    let floats = |values: &[f32]| values.iter().flat_map(|f| f.to_le_bytes()).collect::<Vec<u8>>();
    var(&mut body, &floats(&[1.0, 2.0, 3.0]));
    var(&mut body, &floats(&[0.5, 0.25, 0.125]));
    var(&mut body, &floats(&[0.5, 0.25, 0.125, 1.0]));
    var(&mut body, &floats(&[0.0, 0.0, 0.0, 1.0]));
    var(&mut body, &[1, 2, 3]);
    var(&mut body, &[1, 2, 3, 4, 5, 6, 7, 8]);
    var(&mut body, &[0, 0x80]);
    var(&mut body, &[9, 0, 0, 0]);
    var(&mut body, &[0, 0, 0, 0]);
    body.push(0);
    let (got, said) = Fixture::new(DESCRIPTORS).read(&state("Kinds", 1, &body));
    let value = |name: &str| got["variables"][name]["value"].clone();
    assert!(said.is_empty(), "{said:?}");
    assert_eq!(value("d"), json!(1.5));
    assert_eq!(value("t"), json!({"seconds": 1, "microseconds": 2}));
    assert_eq!(value("b"), json!([3, 255]));
    assert_eq!(
        got["variables"]["a"],
        json!({"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 0, "names": []}})
    );
    assert_eq!(value("v"), json!({"x": 1.0, "y": 2.0, "z": 3.0}));
    assert_eq!(value("c"), json!({"r": 0.5, "g": 0.25, "b": 0.125}));
    assert_eq!(value("ca")["a"], json!(1.0));
    assert_eq!(value("q")["w"], json!(1.0));
    assert_eq!(value("c8"), json!({"r": 1, "g": 2, "b": 3}));
    assert_eq!(value("ca8")[1], json!({"r": 5, "g": 6, "b": 7, "a": 8}));
    assert_eq!(got["variables"]["m"].get("value"), Some(&Value::Null), "no object");
    assert_eq!(value("k"), json!([]));
}

#[test]
fn without_a_descriptor_the_header_is_read_and_the_rest_is_not_guessed() {
    let mut fixture = Fixture::new("");
    let (got, said) = fixture.read(&state("city", 43, &[1, 5, 0, 8, 0]));
    assert_eq!(got["descriptor_name"], "city");
    assert_eq!(got["undecoded"], "0105000800");
    assert_eq!(said, ["no state descriptor `city` of version 43 is known"]);
    let (got, said) = fixture.read(&state("city", 43, &[0, 0]));
    assert_eq!((&got["variables"], &got["nested"], said.len()), (&json!({}), &json!({}), 0));
}

#[test]
fn a_record_that_does_not_follow_its_descriptor_keeps_what_fits() {
    let mut fixture = Fixture::new(DESCRIPTORS);
    let (got, said) = fixture.read(&state("VecInner", 1, &[1, 9, 0, 0]));
    assert_eq!((&got["variables"], &got["undecoded"]), (&json!({}), &json!("090000")));
    assert_eq!(said, ["not a record of `VecInner`, version 1, as its descriptor says"]);
    let (got, _) = fixture.read(&state("VecInner", 1, &[2, 0, 0, 1, 0, 0, 7, 7]));
    assert_eq!(got["variables"]["iFlag"]["value"], true);
    assert_eq!(got["undecoded"], "0707");
    let (got, said) = fixture.read(&state("Lost", 1, &[0, 1, 0, 0, 1, 0, 0, 0, 1, 5, 5]));
    assert_eq!(got["undecoded"], "0505");
    assert_eq!(said[0], "no state descriptor `Nowhere` is known");
}

#[test]
fn nested_records_have_the_version_that_fits() {
    let mut fixture = Fixture::new(DESCRIPTORS);
    let record = |values: &[u8]| {
        let mut bytes = vec![0, 0, 6, values.len() as u8];
        values.iter().for_each(|value| bytes.extend([0, 0, *value]));
        bytes.push(0);
        bytes
    };
    let body = |record: Vec<u8>| [vec![0, 1, 0, 0, 1, 0, 0, 0, 1], record].concat();
    let (got, said) = fixture.read(&state("Out", 1, &body(record(&[7]))));
    assert_eq!(
        (&got["nested"]["list"]["records"][0]["variables"]["x"]["value"], said.len()),
        (&json!(7), 0)
    );
    let (got, said) = fixture.read(&state("Out", 1, &body(record(&[7, 8]))));
    assert_eq!(
        (&got["nested"]["list"]["records"][0]["variables"]["y"]["value"], said.len()),
        (&json!(8), 0)
    );
}

/// A list of 300 records: as the client writes all of it, as it reads some of it, and as
/// libHSPlasma writes it.
#[test]
fn long_lists_are_read_as_they_fit() {
    let mut fixture = Fixture::new(DESCRIPTORS);
    let record = [0, 0, 6, 1, 0, 0, 7, 0];
    let list = |count: &[u8], records: Vec<u8>| {
        [vec![0, 1, 0, 0, 44, 1, 0, 0], count.to_vec(), records].concat()
    };
    let (got, said) = fixture.read(&state("Out", 1, &list(&[44], record.repeat(300))));
    assert_eq!(got["nested"]["list"]["records"].as_array().unwrap().len(), 300);
    assert_eq!(
        said,
        ["a list of more than 255 records with a count of 8 bits; all of it is there"]
    );
    let (got, said) =
        fixture.read(&state("Out", 1, &list(&[1], [vec![250], record.to_vec()].concat())));
    assert_eq!((&got["nested"]["list"]["records"][0]["index"], said.len()), (&json!(250), 0));
    let (got, said) =
        fixture.read(&state("Out", 1, &list(&[1, 0], [vec![43, 1], record.to_vec()].concat())));
    assert_eq!((&got["nested"]["list"]["records"][0]["index"], said.len()), (&json!(299), 1));
}

#[test]
fn counts_have_two_bytes_where_there_are_more_than_255_variables() {
    let variables: String = (0..300).map(|n| format!("VAR BYTE v{n}[1] ")).collect();
    let mut fixture = Fixture::new(&format!("STATEDESC Wide {{ VERSION 1 {variables} }}"));
    let (got, said) = fixture.read(&state("Wide", 1, &[1, 0, 43, 1, 0, 0, 9, 0, 0]));
    assert_eq!((&got["variables"]["v299"]["value"], said.len()), (&json!(9), 0));
}

#[test]
fn records_within_records_have_an_end() {
    let mut fixture = Fixture::new(DESCRIPTORS);
    let body: Vec<u8> = [0, 1, 0, 0, 1, 0, 0, 6].repeat(400);
    let (_, said) = fixture.read(&state("Self", 1, &body));
    assert_eq!(said, ["not a record of `Self`, version 1, as its descriptor says"]);
}
