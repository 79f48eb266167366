//! Every text and every UUID of every example in the tables is replaced by a marker of its own, of
//! the same length. Under `--pseudonyms` no marker is left but in the fields that
//! `tests/data/visible.txt` lists, each with its type; docs/sharing.md says by kind why they stay.
//! `VISIBLE=write` rewrites the list.

use std::collections::BTreeSet;

use moulsniff::captured::Captured;
use moulsniff::examples::read_example;
use moulsniff::print::json::{JsonOptions, JsonWriter};
use moulsniff::proto::all_tables;
use moulsniff::pseudonyms::Pseudonyms;
use moulsniff::record::MessageView;
use moulsniff::session::{Message, Side};
use moulsniff::table::{ExampleOf, Tables};
use moulsniff::tree::{Kind, Node, Sym, TextKind, Tree, TreeParts, mark};

use crate::common::{file, hold, random};

/// Shorter texts would be found by chance.
const SHORTEST: usize = 6;

/// A value that was replaced by a marker.
struct Marked {
    node: usize,
    /// The marker as the field has it, and as outputs print it.
    bytes: Vec<u8>,
    shown: String,
    secret: bool,
}

/// The marker of a text or UUID; `None` for everything else, and where there is no room for one.
fn marker(
    node: &Node,
    length: usize,
    next: &mut impl FnMut() -> usize,
) -> Option<(Vec<u8>, String)> {
    // No `x`, which is what fillers are of.
    let mut letters = |count: usize| -> String {
        (0..count).map(|_| char::from(b'a' + (next() % 23) as u8)).collect()
    };
    if matches!(node.kind, Kind::Uuid | Kind::UuidBe) {
        let bytes = letters(16).into_bytes();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        // Whatever order its first groups have, the last twelve digits are these.
        return Some((bytes, hex.get(20..)?.to_string()));
    }
    let Kind::Text(kind) = node.kind else { return None };
    let unit = if matches!(kind, TextKind::Utf16 | TextKind::Inverted16) { 2 } else { 1 };
    let text = letters(length / unit);
    let inverted =
        matches!(kind, TextKind::Inverted8 | TextKind::Inverted16 | TextKind::InvertedLatin1);
    let wide = text.bytes().flat_map(|byte| [byte, 0].into_iter().take(unit));
    let bytes = wide.map(|byte| if inverted { !byte } else { byte }).collect();
    (length > 0).then_some((bytes, text))
}

/// Where the content of a node is: in a buffer, or in the tree's own texts.
fn place<'a>(
    parts: &'a mut TreeParts,
    captured: &'a mut [u8],
    node: &Node,
) -> Option<&'a mut [u8]> {
    let uuid = matches!(node.kind, Kind::Uuid | Kind::UuidBe);
    let (start, length) = node.content();
    let length = if uuid { 16 } else { length };
    let buffer = match usize::from(node.buffer.0).checked_sub(1) {
        None => captured,
        Some(at) => &mut parts.made.get_mut(at)?.0[..],
    };
    buffer.get_mut(start..start + length)
}

/// Puts markers into an example's tree and bytes.
fn mark_all(
    parts: &mut TreeParts,
    captured: &mut [u8],
    next: &mut impl FnMut() -> usize,
) -> Vec<Marked> {
    let mut all = Vec::new();
    for (index, node) in parts.nodes.clone().into_iter().enumerate() {
        // A text that the tree keeps is in the bytes in another form.
        let own = node.kind == Kind::Text(TextKind::Owned);
        if node.end as usize > index + 1 || own {
            continue;
        }
        let Some(room) = place(parts, captured, &node) else { continue };
        if room.iter().all(|byte| *byte == 0) {
            continue;
        }
        let Some((bytes, shown)) = marker(&node, room.len(), next) else { continue };
        if bytes.len() != room.len() {
            continue;
        }
        room.copy_from_slice(&bytes);
        all.push(Marked { node: index, bytes, shown, secret: node.has(mark::SECRET) });
    }
    all
}

/// The path of a node by the names of the fields around it.
fn path(parts: &TreeParts, tables: &Tables, node: usize) -> String {
    let around = (0..=node).filter(|at| parts.nodes[*at].end as usize > node);
    let name = |at: usize| match parts.nodes[at].name {
        Sym::ELEMENT => None,
        name if name.0 >= Sym::DYNAMIC => Some("*"),
        name => Some(tables.name(name)),
    };
    around.skip(1).filter_map(name).collect::<Vec<_>>().join(".")
}

/// The fields of an example that are visible under pseudonyms, as lines of the list.
fn visible(
    tables: &Tables,
    name: &str,
    tree: &Tree,
    bytes: &[u8],
    next: &mut impl FnMut() -> usize,
) -> Vec<String> {
    let mut parts = TreeParts::default();
    parts.copy_of(tree);
    let mut captured = bytes.to_vec();
    let marked = mark_all(&mut parts, &mut captured, next);
    let mut tree = Tree::default();
    parts.put_into(&mut tree);

    let json = |tree: &Tree, bytes: &[u8], redact: bool| {
        let mut out = Vec::new();
        let options = JsonOptions { spans: true, redact };
        JsonWriter::new(options).fields(MessageView { tables, tree, bytes }, &mut out);
        String::from_utf8(out).unwrap()
    };
    let redacted = json(&tree, &captured, true);
    for secret in marked.iter().filter(|one| one.secret && one.shown.len() >= SHORTEST) {
        assert!(!redacted.contains(&secret.shown), "{name}: --redact shows a secret: {redacted}");
    }

    let message = Message {
        name: Captured::new(name),
        number: None,
        service: "",
        from: Side::Client,
        offset: 0,
        bytes: &captured,
        reply: None,
        no_reply: false,
    };
    let mut hidden = Pseudonyms::new(&[7; 16], false).message(&message, tables, &mut tree);
    let shown = json(&tree, &hidden, false);
    parts.copy_of(&tree);
    let mut lines = Vec::new();
    for Marked { node, bytes, shown: text, .. } in marked {
        let at = parts.nodes[node];
        let stays = place(&mut parts, &mut hidden, &at).is_some_and(|now| *now == bytes[..]);
        if stays {
            let ty = tables.type_def(at.ty).map_or("", |def| &*def.text);
            // Brackets and commas of values in text tell nothing.
            if !ty.ends_with("yntax") {
                lines.push(format!("{name} {} {ty}", path(&parts, tables, node)));
            }
        } else if text.len() >= SHORTEST {
            assert!(!shown.contains(&text), "{name}: {text} is still in {shown}");
        }
    }
    lines
}

#[test]
fn under_pseudonyms_only_listed_texts_and_uuids_stay() {
    let mut next = random();
    let mut lines = BTreeSet::new();
    for lazy in &all_tables(Vec::new()).unwrap() {
        let tables = lazy.get();
        for example in tables.examples() {
            let name = match example.of {
                ExampleOf::Message(id) => tables.name(tables.message(id).unwrap().name),
                ExampleOf::Layout(id) => tables.name(tables.layout(id).unwrap().name),
            };
            let read = read_example(tables, example, &mut |tree, bytes| {
                let own = visible(tables, name, tree, bytes, &mut next);
                lines.extend(own.iter().map(|line| format!("{} {line}\n", lazy.protocol().name())));
                Ok(())
            });
            read.unwrap_or_else(|why| panic!("{name}: {why}"));
        }
    }
    let printed: String = lines.into_iter().collect();
    hold(&file("tests/data/visible.txt"), &printed, "VISIBLE");
}
