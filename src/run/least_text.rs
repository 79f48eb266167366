//! A lower bound of the length of a value's text, computed without making the text. A control
//! character becomes six characters, so a message of 16 MiB could become 96 MiB of text, which
//! would exceed the limit and be thrown away. It knows trees, but no output format.

use crate::tree::{Kind, TextKind, Tree, mark};

/// Characters of the escape of a control (`\u001b`).
const ESCAPE: usize = 6;

/// The minimum length in bytes of the texts in a value (the node `index` of a tree), in every
/// format that prints them completely. 0 if it cannot exceed `most`. `bytes` is the message.
pub(super) fn least_text(tree: &Tree, index: u32, bytes: &[u8], most: usize) -> usize {
    if bytes.len().saturating_add(tree.size()).saturating_mul(ESCAPE) <= most {
        return 0;
    }
    let end = tree.get(index).map_or(index, |node| node.end);
    let mut at = index;
    let mut sum = 0_usize;
    while let Some(node) = tree.get(at).filter(|_| at < end) {
        if node.has(mark::SECRET) {
            // It may be hidden, with all that is in it.
            at = node.end.max(at + 1);
            continue;
        }
        sum = sum.saturating_add(match node.kind {
            Kind::Text(TextKind::Utf8 | TextKind::Latin1) => escaped(&tree.content(node, bytes), 0),
            Kind::Text(TextKind::Inverted8 | TextKind::InvertedLatin1) => {
                escaped(&tree.content(node, bytes), 0xff)
            }
            _ => 0,
        });
        at += 1;
    }
    sum
}

/// The length of a text with its controls escaped. `flip` inverts each byte.
fn escaped(text: &[u8], flip: u8) -> usize {
    let controls = text.iter().map(|byte| byte ^ flip);
    let controls = controls
        .filter(|byte| *byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r' | 8 | 12))
        .count();
    text.len().saturating_add(controls.saturating_mul(ESCAPE - 1))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use crate::print::json::{JsonOptions, JsonWriter};
    use crate::record::MessageView;
    use crate::table::{Evaluator, TableSource, Tables};

    #[test]
    fn it_is_never_more_than_the_text() {
        let text = "protocol t\nstruct S { a: utf8[u8], b: { c: utf8[u8], d: latin1[u8] secret }, \
                    e: bytes[2] }\n";
        let tables =
            Tables::load("t", vec![TableSource { name: "t".into(), text: text.into() }], &[])
                .unwrap();
        let (tables, ty) = tables.with_type("S").unwrap();
        let mut tree = Tree::new();
        let bytes = b"\x05\x01\x1b\n\x09x\x04\x02yz\x7f\x03\x01\x01\x01\xff\xff";
        let name = tables.sym("a").unwrap();
        Evaluator::default().value(&tables, ty, name, bytes, 0, &mut tree);
        assert_eq!(
            least_text(&tree, 0, bytes, 1),
            2 * ESCAPE + 3 + ESCAPE + 3,
            "and the secret counts for nothing"
        );
        let first =
            tree.nodes().iter().position(|node| matches!(node.kind, Kind::Text(_))).unwrap();
        assert_eq!(least_text(&tree, first as u32, bytes, 1), 2 * ESCAPE + 3);
        assert_eq!(least_text(&tree, 0, bytes, 1 << 20), 0);
        let mut json = Vec::new();
        JsonWriter::new(JsonOptions::default()).value(
            MessageView { tables: &tables, tree: &tree, bytes },
            0,
            &mut json,
        );
        assert!(least_text(&tree, 0, bytes, 1) <= json.len());
    }
}
