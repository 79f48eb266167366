#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
use super::super::store::Store;
use crate::print::json::{JsonOptions, JsonWriter};
use crate::print::problem_text;
use crate::proto::{load_tables, protocol_named};
use crate::record::MessageView;
use crate::table::{Evaluator, Tables, parse_hex};
use crate::tree::{Kind, Sym, Tree};
use serde_json::{Value, json};

/// States as programs wrote them, and the content that their authors expect: what each shows, the
/// bytes, the fields.
const STATES: [(&str, &str, &str); 8] = [
    (
        "everything set",
        "008008f0a99a9cb691919a8d0200000006040010010010ad17c8d60010536f756e645f596565736861383939303100000000000000000000000000000000100200000059f47b9e00",
        r#"{"save_flags": {"value": 32768, "names": ["kAddedVarLengthIO"]}, "descriptor_name": "VecInner", "descriptor_version": 2, "flags": {"value": 0, "names": []}, "io_version": 6, "variables": {"iFlag": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": true}, "iNum": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": -691529811}, "iName": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": "Sound_Yeesha89901"}, "iArr": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": [-2983, -24965]}}, "nested": {}}"#,
    ),
    (
        "some variables with their places",
        "008008f0a99a9cb691919a8d0200000006020100104d8e086a030010020000005582cff900",
        r#"{"save_flags": {"value": 32768, "names": ["kAddedVarLengthIO"]}, "descriptor_name": "VecInner", "descriptor_version": 2, "flags": {"value": 0, "names": []}, "io_version": 6, "variables": {"iNum": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": 1778945613}, "iArr": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": [-32171, -1585]}}, "nested": {}}"#,
    ),
    (
        "hints",
        "008008f0a99a9cb691919a8d010000000602020014f0b89e978d9a9a8c9a91a0b19a878a8ccdc9c7cfce1001020010f0b19a878a8ca0b39a899a8dc7cac8cfcd10e7feb89100",
        r#"{"save_flags": {"value": 32768, "names": ["kAddedVarLengthIO"]}, "descriptor_name": "VecInner", "descriptor_version": 1, "flags": {"value": 0, "names": []}, "io_version": 6, "variables": {"iFlag": {"save_flags": {"value": 2, "names": ["kHasNotificationInfo"]}, "notification_info": {"save_flags": 0, "hint": "Gahreesen_Nexus26801"}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": true}, "iNum": {"save_flags": {"value": 2, "names": ["kHasNotificationInfo"]}, "notification_info": {"save_flags": 0, "hint": "Nexus_Lever85702"}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": -1850147097}}, "nested": {}}"#,
    ),
    (
        "times",
        "008008f0a99a9cb691919a8d0100000006020034ef7e2800304304000100347b3cac65fe970a000d169c3900",
        r#"{"save_flags": {"value": 32768, "names": ["kAddedVarLengthIO"]}, "descriptor_name": "VecInner", "descriptor_version": 1, "flags": {"value": 0, "names": []}, "io_version": 6, "variables": {"iFlag": {"save_flags": {"value": 0, "names": []}, "time_stamp": {"seconds": 2653935, "microseconds": 279344}, "save_flags2": {"value": 52, "names": ["kHasTimeStamp", "kHasDirtyFlag", "kWantTimeStamp"]}, "value": true}, "iNum": {"save_flags": {"value": 0, "names": []}, "time_stamp": {"seconds": 1705786491, "microseconds": 694270}, "save_flags2": {"value": 52, "names": ["kHasTimeStamp", "kHasDirtyFlag", "kWantTimeStamp"]}, "value": 966530573}}, "nested": {}}"#,
    ),
    (
        "defaults left out",
        "008008f0a99a9cb691919a8d020000000604001800180018001800",
        r#"{"save_flags": {"value": 32768, "names": ["kAddedVarLengthIO"]}, "descriptor_name": "VecInner", "descriptor_version": 2, "flags": {"value": 0, "names": []}, "io_version": 6, "variables": {"iFlag": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 24, "names": ["kSameAsDefault", "kHasDirtyFlag"]}}, "iNum": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 24, "names": ["kSameAsDefault", "kHasDirtyFlag"]}}, "iName": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 24, "names": ["kSameAsDefault", "kHasDirtyFlag"]}}, "iArr": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 24, "names": ["kSameAsDefault", "kHasDirtyFlag"]}}}, "nested": {}}"#,
    ),
    (
        "an object named",
        "018008f0a99a9cb691919a8d0100012000530202006d00abebbd140ef0bd909094a0bd9e978d90cdc6cfcef4c1000094695ed4000006020010010010ef361bad00",
        r#"{"save_flags": {"value": 32769, "names": ["kHasUoid", "kAddedVarLengthIO"]}, "descriptor_name": "VecInner", "descriptor_version": 1, "obj_uoid": {"flags": {"value": 1, "names": ["kHasCloneIDs"]}, "location": {"sequence_number": 38993952, "flags": {"value": 2, "names": ["kVolatile"]}}, "class": {"value": 109, "name": "plAGMasterMod"}, "object_id": 347990955, "object_name": "Book_Bahro2901", "clone_id": 49652, "clone_player_id": 3562957204}, "flags": {"value": 0, "names": []}, "io_version": 6, "variables": {"iFlag": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": true}, "iNum": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": -1390725393}}, "nested": {}}"#,
    ),
    (
        "some records of lists",
        "008009f0a99a9cb19a8c8b9a9b0200000006020010b7ab4642001090bf4546040000000000020100000602010010af9de7c003001002000000e3f4fd7f000300000602010010e198610c030010020000007fc7f9560000000600000003010000060201001091fc399803001002000000d9cb75af000300000602010010ed489afa03001002000000b7d64d8300050000060201001009dd157303001002000000270a2f890000000600000003010000060101001010e80fc62045cd45106f24460200000100000602010010f526b040030010020000007984b3490000000100000001000006020100109d1f43b703001002000000733465ac00030000060101001040ad9d45b04d0fc6507970c60200000100000602010010ff214d9803001002000000f1e2698e0000000100000001000006020100106d2aa48a0300100200000095a3b1cd000500000601010010c0f0d1c5007057c600b43ac40200000100000602010010d9d182ed03001002000000fb95017a00000001000000010000060201001049b457d50300100200000041df7fe500",
        r#"{"save_flags": {"value": 32768, "names": ["kAddedVarLengthIO"]}, "descriptor_name": "VecNested", "descriptor_version": 2, "flags": {"value": 0, "names": []}, "io_version": 6, "variables": {"nBefore": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": 1111927735}, "nAfter": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": 12655.891}}, "nested": {"nOne": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 0, "names": []}, "records": []}, "nFour": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 0, "names": []}, "records": [{"index": 1, "flags": {"value": 0, "names": []}, "io_version": 6, "variables": {"iNum": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": -1058562641}, "iArr": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": [-2845, 32765]}}, "nested": {}}, {"index": 3, "flags": {"value": 0, "names": []}, "io_version": 6, "variables": {"iNum": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": 207722721}, "iArr": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": [-14465, 22265]}}, "nested": {}}]}, "nList": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 0, "names": []}, "total": 6, "records": [{"index": 1, "flags": {"value": 0, "names": []}, "io_version": 6, "variables": {"iNum": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": -1741030255}, "iArr": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": [-13351, -20619]}}, "nested": {}}, {"index": 3, "flags": {"value": 0, "names": []}, "io_version": 6, "variables": {"iNum": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": -90552083}, "iArr": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": [-10569, -31923]}}, "nested": {}}, {"index": 5, "flags": {"value": 0, "names": []}, "io_version": 6, "variables": {"iNum": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": 1930812681}, "iArr": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": [2599, -30417]}}, "nested": {}}]}, "nDeep": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 0, "names": []}, "total": 6, "records": [{"index": 1, "flags": {"value": 0, "names": []}, "io_version": 6, "variables": {"mPos": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": {"x": -9210.016, "y": 6568.6406, "z": 10523.766}}}, "nested": {"mInner": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 0, "names": []}, "records": [{"flags": {"value": 0, "names": []}, "io_version": 6, "variables": {"iNum": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": 1085286133}, "iArr": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": [-31623, 18867]}}, "nested": {}}]}, "mList": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 0, "names": []}, "total": 1, "records": [{"flags": {"value": 0, "names": []}, "io_version": 6, "variables": {"iNum": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": -1220337763}, "iArr": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": [13427, -21403]}}, "nested": {}}]}}}, {"index": 3, "flags": {"value": 0, "names": []}, "io_version": 6, "variables": {"mPos": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": {"x": 5045.6562, "y": -9171.422, "z": -15390.328}}}, "nested": {"mInner": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 0, "names": []}, "records": [{"flags": {"value": 0, "names": []}, "io_version": 6, "variables": {"iNum": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": -1739775489}, "iArr": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": [-7439, -29079]}}, "nested": {}}]}, "mList": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 0, "names": []}, "total": 1, "records": [{"flags": {"value": 0, "names": []}, "io_version": 6, "variables": {"iNum": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": -1968952723}, "iArr": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": [-23659, -12879]}}, "nested": {}}]}}}, {"index": 5, "flags": {"value": 0, "names": []}, "io_version": 6, "variables": {"mPos": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": {"x": -6718.0938, "y": -13788.0, "z": -746.8125}}}, "nested": {"mInner": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 0, "names": []}, "records": [{"flags": {"value": 0, "names": []}, "io_version": 6, "variables": {"iNum": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": -310193703}, "iArr": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": [-27141, 31233]}}, "nested": {}}]}, "mList": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 0, "names": []}, "total": 1, "records": [{"flags": {"value": 0, "names": []}, "io_version": 6, "variables": {"iNum": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": -715672503}, "iArr": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": [-8383, -6785]}}, "nested": {}}]}}}]}}}"#,
    ),
    (
        "records in records",
        "008009f0a99a9cb2969b9b939a0400000006020010c75dd7be0010006aac4390783ec6706f0746020000010000060400100100107948aab400104c61646465725f46656e636535313530310000000000000000000000000000000010020000008d41699d00000002000000020000060400100100108b76c0640010466973685f54656c656461686e383732303200000000000000000000000000000010020000001110416900000006040010010010c92cedca00104c657665725f46656e63653638383033000000000000000000000000000000000010020000003b5d293200",
        r#"{"save_flags": {"value": 32768, "names": ["kAddedVarLengthIO"]}, "descriptor_name": "VecMiddle", "descriptor_version": 4, "flags": {"value": 0, "names": []}, "io_version": 6, "variables": {"mNum": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": -1093182009}, "mPos": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": {"x": 344.82812, "y": -12190.141, "z": 8667.859}}}, "nested": {"mInner": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 0, "names": []}, "records": [{"flags": {"value": 0, "names": []}, "io_version": 6, "variables": {"iFlag": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": true}, "iNum": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": -1263908743}, "iName": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": "Ladder_Fence51501"}, "iArr": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": [16781, -25239]}}, "nested": {}}]}, "mList": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 0, "names": []}, "total": 2, "records": [{"flags": {"value": 0, "names": []}, "io_version": 6, "variables": {"iFlag": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": true}, "iNum": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": 1690334859}, "iName": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": "Fish_Teledahn87202"}, "iArr": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": [4113, 26945]}}, "nested": {}}, {"flags": {"value": 0, "names": []}, "io_version": 6, "variables": {"iFlag": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": true}, "iNum": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": -890426167}, "iName": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": "Lever_Fence68803"}, "iArr": {"save_flags": {"value": 0, "names": []}, "save_flags2": {"value": 16, "names": ["kHasDirtyFlag"]}, "value": [23867, 12841]}}, "nested": {}}]}}}"#,
    ),
];

const DESCRIPTORS: &str = "
STATEDESC VecInner { VERSION 1 VAR BOOL iFlag[1] DEFAULT=false VAR INT iNum[1] DEFAULT=0 }
STATEDESC VecInner { VERSION 2 VAR BOOL iFlag[1] VAR INT iNum[1] VAR STRING32 iName[1] VAR SHORT \
                           iArr[] }
STATEDESC VecMiddle { VERSION 4 VAR INT mNum[1] VAR $VecInner mInner[1] VAR $VecInner mList[] VAR \
                           POINT3 mPos[1] }
STATEDESC VecNested { VERSION 2
    VAR INT nBefore[1] VAR $VecInner nOne[1] VAR $VecInner nFour[4] VAR $VecInner nList[] VAR \
                           FLOAT nAfter[1] VAR $VecMiddle nDeep[] }
STATEDESC Kinds { VERSION 1
    VAR DOUBLE d[1] VAR TIME t[1] VAR BYTE b[2] VAR AGETIMEOFDAY a[1] VAR VECTOR3 v[1] VAR RGB \
                           c[1] VAR RGBA ca[1] VAR QUATERNION q[1]
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
        JsonWriter::new(JsonOptions::default())
            .fields(MessageView { tables: &self.tables, tree: &self.tree, bytes }, &mut out);
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
