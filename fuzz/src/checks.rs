//! What is held against every message and record.

use moulsniff::record::MessageView;
use std::cell::RefCell;

use moulsniff::print::json::{JsonOptions, JsonWriter};
use moulsniff::table::Tables;
use moulsniff::tree::{Kind, Tree, mark};

thread_local! {
    /// Kept from message to message: a writer looks at every name of the tables once.
    static WRITERS: RefCell<[JsonWriter; 2]> =
        RefCell::new([false, true].map(|spans| JsonWriter::new(JsonOptions { spans, redact: spans })));
}

/// A message's fields, twice as JSON; its nodes lie one behind the other.
pub fn message(tables: &Tables, tree: &Tree, bytes: &[u8]) {
    if tree.is_empty() {
        return;
    }
    tiled(tree, 0);
    WRITERS.with_borrow_mut(|writers| {
        for writer in writers {
            let mut out = Vec::new();
            writer.fields(MessageView { tables, tree, bytes }, &mut out);
            json(&out);
        }
    });
}

/// Bytes are one line of JSON. Nothing is made of it: that would take more memory than all that is
/// tried here.
pub fn json(line: &[u8]) {
    if let Err(error) = serde_json::from_slice::<serde::de::IgnoredAny>(line) {
        panic!("no JSON: {error}: {}", String::from_utf8_lossy(line));
    }
}

/// The children of a node lie one behind the other, from its first bit to its last; those of a
/// region with content of its own count in that.
fn tiled(tree: &Tree, index: u32) {
    let Some(node) = tree.get(index) else { return };
    if node.has(mark::OWN_BUFFER) {
        return;
    }
    let mut at = node.start;
    let mut children = 0;
    for (child, inner) in tree.children(index) {
        assert_eq!(inner.start, at, "a gap or an overlap before node {child}");
        tiled(tree, child);
        at += inner.bits;
        children += 1;
    }
    let leaf = children == 0 && !matches!(node.kind, Kind::Struct | Kind::List);
    assert!(
        leaf || at == node.start + node.bits,
        "node {index} ends at bit {}, its last child at {at}",
        node.start + node.bits
    );
}
