//! The type of the vault that needs code: a blob, shown as text if it holds text.

use crate::table::{
    Call, Cursor, EncodeStop, Encoding, Field, Given, Native, Run, Slot, Slots, Stop,
};
use crate::tree::{Kind, Node, Severity, TextKind, mark};

/// The types with code, by the names tables use.
pub const NATIVES: [Native; 1] = [Native::new("vault_text", read_text).written_by(write_text)];

/// The note of a blob that is no text.
const NO_TEXT: &str = "bytes where clients keep a text";

/// A blob with its length in 4 bytes before it. Clients keep text in it, in UTF-8 and without a
/// terminator. Content that is not text stays bytes: a program may put anything there.
fn read_text(run: &mut Run<'_>, cursor: &mut Cursor<'_>, call: &Call) -> Result<u64, Stop> {
    let tables = run.tables;
    let Some(size) = tables.type_named("VaultSize") else { return Err(Stop::Unknown) };
    let length = run.field(cursor, tables.count_name(), size, mark::SPAN, Slots::default())?;
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let bytes = cursor.peek(length)?.unwrap_or_default();
    let readable = std::str::from_utf8(bytes).is_ok_and(|text| !text.chars().any(char::is_control));
    let start = cursor.pos();
    let at = cursor.skip(length)?;
    let kind = if readable { Kind::Text(TextKind::Utf8) } else { Kind::Bytes };
    let node = run.tree.leaf(call.node(cursor, start, kind, Node::place(at, length)));
    if !readable {
        run.problem(Severity::Note, node, NO_TEXT, 0, 0);
    }
    Ok(0)
}

fn write_text(encoding: &mut Encoding<'_>, field: &Field) -> Result<Slot, EncodeStop> {
    let Given::Json(node) = field.given else { return encoding.fail_at(field, "is missing") };
    let bytes = if encoding.is_said(node, NO_TEXT) {
        encoding.take(node);
        encoding.hex(node)?
    } else {
        encoding.text_bytes(field, &[TextKind::Utf8])?
    };
    let Ok(length) = u32::try_from(bytes.len()) else {
        return encoding.fail(node, "is longer than its length can say");
    };
    encoding.out().put(&length.to_le_bytes());
    encoding.out().put(&bytes);
    Ok(Slot::Number(0))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use crate::table::{Evaluator, TableSource, Tables};
    use crate::tree::{Sym, Tree};

    fn read(bytes: &[u8]) -> (Vec<Kind>, usize, usize) {
        let table = "protocol moul type VaultSize = u32 struct Blob { text: vault_text }";
        let source = TableSource { name: "test".into(), text: table.into() };
        let tables = Tables::load("moul", vec![source], &NATIVES).unwrap();
        let mut tree = Tree::new();
        let ty = tables.type_named("Blob").unwrap();
        let end = Evaluator::default().value(&tables, ty, Sym::ELEMENT, bytes, 0, &mut tree);
        let kinds = tree.nodes().iter().skip(1).map(|node| node.kind).collect();
        (kinds, end / 8, tree.problems().len())
    }

    #[test]
    fn text_is_text_and_anything_else_is_bytes() {
        let text = Kind::Text(TextKind::Utf8);
        assert_eq!(read(b"\x08\0\0\0Default:"), (vec![Kind::Unsigned, text], 12, 0));
        assert_eq!(read(b"\0\0\0\0"), (vec![Kind::Unsigned, text], 4, 0));
        assert_eq!(read(b"\x02\0\0\0\xb4\x1d"), (vec![Kind::Unsigned, Kind::Bytes], 6, 1));
        assert_eq!(read(b"\x02\0\0\0a\0"), (vec![Kind::Unsigned, Kind::Bytes], 6, 1));
    }

    #[test]
    fn a_blob_that_is_cut_off_is_not_read() {
        for cut in 0..6 {
            let (kinds, end, _) = read(&b"\x02\0\0\0ab"[..cut]);
            assert!(end <= cut, "{kinds:?}");
        }
    }
}
