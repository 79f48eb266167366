//! The tables' own examples, cut and changed: whatever the bytes, every one of them keeps its place
//! in the tree, and the fields are JSON.

use crate::common;
use moulsniff::print::json::{JsonOptions, JsonWriter};
use moulsniff::proto::{PROTOCOLS, load_tables};
use moulsniff::record::MessageView;
use moulsniff::table::{Evaluator, ExampleOf, Tables, parse_hex};
use moulsniff::tree::{Kind, Sym, Tree, TypeRef, mark};

/// Every structure that has an example, with its name and the example's bytes.
fn structures(tables: &Tables) -> Vec<(String, TypeRef, Vec<u8>)> {
    let layout = |of: &ExampleOf| match of {
        ExampleOf::Layout(id) => tables.layout(*id),
        ExampleOf::Message(_) => None,
    };
    let found = tables.examples().iter().filter_map(|example| {
        let layout = layout(&example.of)?;
        let bytes = match example.text {
            true => tables.example_bytes(example).into_bytes(),
            false => parse_hex(&tables.example_bytes(example))?,
        };
        Some((tables.name(layout.name).to_string(), layout.ty, bytes))
    });
    found.collect()
}

/// Reads bytes as a structure and holds the result against what is always true.
fn read(
    tables: &Tables,
    evaluator: &mut Evaluator,
    ty: TypeRef,
    bytes: &[u8],
) -> Result<(), String> {
    let mut tree = Tree::new();
    evaluator.value(tables, ty, Sym::ELEMENT, bytes, 0, &mut tree);
    tiled(&tree, 0)?;
    let mut out = Vec::new();
    JsonWriter::new(JsonOptions::default())
        .fields(MessageView { tables, tree: &tree, bytes }, &mut out);
    serde_json::from_slice::<serde_json::Value>(&out)
        .map(|_| ())
        .map_err(|error| format!("no JSON: {error}"))
}

/// The children of a node lie one behind the other, from its first bit to its last.
fn tiled(tree: &Tree, index: u32) -> Result<(), String> {
    let node = tree.get(index).unwrap();
    if node.has(mark::OWN_BUFFER) {
        // The children count in another buffer, which may be shorter where it was damaged.
        return Ok(());
    }
    let mut at = node.start;
    let mut children = 0;
    for (child, inner) in tree.children(index) {
        if inner.start != at {
            return Err(format!("bit {at} is followed by bit {}", inner.start));
        }
        tiled(tree, child)?;
        at += inner.bits;
        children += 1;
    }
    let leaf = children == 0 && !matches!(node.kind, Kind::Struct | Kind::List);
    if leaf || at == node.start + node.bits {
        return Ok(());
    }
    Err(format!("a structure ends at bit {}, its last field at bit {at}", node.start + node.bits))
}

#[test]
fn examples_cut_at_every_byte() {
    for protocol in PROTOCOLS {
        let tables = load_tables(*protocol, &[]).unwrap();
        let mut evaluator = Evaluator::default();
        for (name, ty, bytes) in structures(&tables) {
            for end in 0..bytes.len() {
                if let Err(why) = read(&tables, &mut evaluator, ty, &bytes[..end]) {
                    panic!("{name} cut at {end}: {why}");
                }
            }
        }
    }
}

#[test]
fn examples_with_a_few_bytes_changed() {
    let mut random = common::random();
    for protocol in PROTOCOLS {
        let tables = load_tables(*protocol, &[]).unwrap();
        let mut evaluator = Evaluator::default();
        for (name, ty, bytes) in
            structures(&tables).into_iter().filter(|structure| !structure.2.is_empty())
        {
            for _ in 0..100 {
                let mut changed = bytes.clone();
                for _ in 0..1 + random() % 3 {
                    let at = random() % changed.len();
                    changed[at] = (random() & 0xff) as u8;
                }
                if let Err(why) = read(&tables, &mut evaluator, ty, &changed) {
                    panic!("{name} as {changed:02x?}: {why}");
                }
            }
        }
    }
}
