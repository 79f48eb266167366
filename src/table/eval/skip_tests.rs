//! What is passed over, and what is left to the evaluator.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use super::{Evaluator, MessageStart, Outcome, Run};
use crate::table::{TableSource, Tables, parse_hex};
use crate::tree::{Outline, Tree};

const TABLE: &str = r#"protocol moul
    /// 64 bits where others have 32.
    dialect wide
    enum ThingClass : u16 { Stone = 1, Bird = 2 }
    struct Point { x: f32 y: f32 }
    struct Key { kind: u16 if kind has 1 { place: Point } id: u32 }
    family Thing { class: ThingClass, null 0x8000 }
    class Stone of Thing { weight: u32 flag: bool }
    class Bird of Thing { if dialect wide { height: u64 } else { height: u32 } }
    service game = 4 { number: u16 }
    message game client 1 Numbers { flags: u8 if flags has 2 { more: u16 } points: Point[u8] most: u8 max 9 last: i16 }
    message game client 2 Things { key: Key things: Thing[u16] }
    message game client 3 Packed { inner: bytes[u16] as Thing dialects after: u8 }
    message game client 4 Tied { trans_id: u32 transaction }
    message game client 5 Flags {
        flags: u16
        if flags has 1 { place: Point }
        if flags has 2 { one: u8 two: u32 }
        if flags has 4 { sure: bool }
        if flags has 0x108 { few: u16 }
        last: u8
    }
    type MaybeKey = null_or(bool) Key
    message game client 6 Keys { keys: MaybeKey[u8] numbers: i16[u8] points: Point[u8] }
"#;

struct Fixture {
    tables: Tables,
    evaluator: Evaluator,
    outline: Outline,
    tree: Tree,
}

impl Fixture {
    fn new() -> Fixture {
        let source = TableSource { name: "test".into(), text: TABLE.into() };
        let tables =
            Tables::load("moul", vec![source], &[]).unwrap_or_else(|error| panic!("{error}"));
        Fixture {
            tables,
            evaluator: Evaluator::default(),
            outline: Outline::default(),
            tree: Tree::default(),
        }
    }

    /// What the beginning of a message says without the evaluator, which says the same.
    fn beginning(&mut self, hex: &str) -> Option<Outcome> {
        let bytes = parse_hex(hex).unwrap();
        let service = self.tables.service_named("game").unwrap();
        self.outline.clear();
        self.evaluator.begin();
        let mut run =
            Run { tables: &self.tables, tree: &mut self.outline, state: &mut self.evaluator };
        let sender = 0;
        let length = bytes.len();
        let outcome = run.skip_message(MessageStart {
            service,
            sender,
            bytes: &bytes,
            length,
            behind: None,
        })?;
        assert_eq!(self.outline.len(), 0, "{hex}");
        assert_eq!(
            outcome,
            self.evaluator.message(&self.tables, service, 0, &bytes, &mut self.tree),
            "{hex}"
        );
        Some(outcome)
    }

    /// Whether a message is passed over. Then its outline says what its tree says.
    fn skips(&mut self, hex: &str) -> bool {
        let bytes = parse_hex(hex).unwrap();
        let service = self.tables.service_named("game").unwrap();
        self.outline.clear();
        self.evaluator.begin();
        let mut run =
            Run { tables: &self.tables, tree: &mut self.outline, state: &mut self.evaluator };
        let start =
            MessageStart { service, sender: 0, bytes: &bytes, length: bytes.len(), behind: None };
        let Some(outcome) = run.skip_message(start) else {
            assert_eq!(self.outline.len(), 0, "{hex}");
            return false;
        };
        assert_eq!(
            outcome,
            self.evaluator.message(&self.tables, service, 0, &bytes, &mut self.tree),
            "{hex}"
        );
        assert!(
            matches!(outcome, Outcome::Message(_, length) if length == bytes.len()),
            "{hex}: {outcome:?}"
        );
        assert_eq!(self.outline.len(), self.tree.len(), "{hex}");
        assert_eq!(
            format!("{:?}", self.outline.problems()),
            format!("{:?}", self.tree.problems()),
            "{hex}"
        );
        let mut evaluated = Outline::default();
        assert_eq!(
            self.evaluator.message(&self.tables, service, 0, &bytes, &mut evaluated),
            outcome,
            "{hex}"
        );
        let classes = |outline: &Outline| *outline.classes().unwrap();
        assert_eq!(classes(&self.outline), classes(&evaluated), "{hex}");
        true
    }
}

#[test]
fn a_message_as_the_table_says_is_passed_over() {
    let mut fixture = Fixture::new();
    assert!(fixture.skips("0100 00 00 09 ffff"));
    assert!(fixture.skips("0100 02 3412 02 00000000 00000000 00000000 00000000 00 0100"));
    assert!(fixture.skips("0200 0000 01000000 0200 0100 05000000 01 0080"), "an object and none");
    assert_eq!(
        fixture.outline.classes().unwrap().iter().map(|word| word.count_ones()).sum::<u32>(),
        1
    );
    assert!(fixture.skips("0200 0100 00000000 00000000 01000000 0000"));
    assert!(fixture.skips("0300 0700 0100 05000000 00 07"), "a region that its content fills");
}

#[test]
fn cut_anywhere_it_is_left_to_the_evaluator() {
    let mut fixture = Fixture::new();
    let whole = "010002341202000000000000000000000000000000000000";
    for cut in (0..whole.len()).step_by(2) {
        assert!(!fixture.skips(&whole[..cut]), "{cut}");
    }
}

#[test]
fn what_is_unusual_is_left_to_the_evaluator() {
    let mut fixture = Fixture::new();
    assert!(!fixture.skips("0200 0000 01000000 0100 0100 05000000 02"), "a boolean of 2");
    assert!(!fixture.skips("0200 0000 01000000 0100 0700"), "a class that no table has");
    assert!(!fixture.skips("0300 0800 0100 05000000 00 ff 07"), "a byte behind a region's content");
    assert!(!fixture.skips("0400 01000000"), "a message that a reply may belong to");
    assert!(!fixture.skips("0900"), "a number without a message");
    assert!(!fixture.skips("0100 00 00 0a ffff"), "more than the table's own bound");
}

#[test]
fn a_region_may_have_a_form_that_a_dialect_tells() {
    let mut fixture = Fixture::new();
    assert!(fixture.skips("0300 0600 0200 05000000 07"));
    assert_eq!(fixture.outline.problems().len(), 0);
    assert!(fixture.skips("0300 0a00 0200 0500000000000000 07"));
    assert_eq!(fixture.outline.problems().len(), 1, "a note says which dialect fits");
}

#[test]
fn flags_that_follow_each_other_are_looked_at_one_by_one() {
    let mut fixture = Fixture::new();
    let parts = [(1, "0000803f00000040"), (2, "0705000000"), (4, "01"), (0x108, "ffff")];
    for flags in (0u16..16).chain([0x100, 0x108, 0x10c, 0x10f, 0xffff]) {
        let fields: String =
            parts.iter().filter(|part| flags & part.0 == part.0).map(|part| part.1).collect();
        let message = format!("0500{:04x}{fields}09", flags.swap_bytes());
        assert!(fixture.skips(&message), "{message}");
        assert!(!fixture.skips(&message[..message.len() - 2]), "{message}");
    }
}

#[test]
fn lists_of_structures_may_have_gaps() {
    let mut fixture = Fixture::new();
    let near = "01 0000 07000000";
    let far = "01 0100 0000000000000000 07000000";
    assert!(
        fixture.skips(&format!("0600 04 {near} 00 {far} {near} 02 0100 ffff 01 0000000000000000"))
    );
    assert!(fixture.skips("0600 00 00 00"));
    assert!(fixture.skips("0600 01 00 00 00"));
    assert!(!fixture.skips("0600 01 02 0000 07000000 00 00"), "a presence of 2");
    assert!(!fixture.skips("0600 02 00 01 0000 0700"), "cut off");
}

#[test]
fn a_region_says_how_long_the_message_is() {
    let mut fixture = Fixture::new();
    assert_eq!(fixture.beginning("0300 0700 0100 0500"), Some(Outcome::Need(11)));
    assert_eq!(fixture.beginning("0300 0700"), Some(Outcome::Need(11)));
    assert_eq!(fixture.beginning("0300 07"), None, "the region's length is cut");
    assert_eq!(fixture.beginning("0300 0700 0100 05000000 00"), None, "behind the region");
}
