//! Fields that may be missing at the end of a region (`optional`).

use super::super::program::*;
use super::Compiler;
use crate::tree::{Concern, Severity, Sym, TypeRef};

impl Compiler<'_> {
    /// Compiles a field that may be missing at the region's end: a counted list is then empty,
    /// anything else is absent, with a note. What has no bytes by its length is not missing.
    pub(super) fn optional(
        &mut self,
        text: &str,
        name: Sym,
        ty: TypeRef,
        field: LayoutStep,
        ops: &mut Vec<LayoutStep>,
    ) {
        let read = self.out.types.get(ty.0 as usize).map(|d| &d.read);
        let counted =
            matches!(read, Some(ReadAs::List { len: Len { from: LenFrom::Inline(_), .. }, .. }));
        if let Some(length) = read.and_then(length_of) {
            let field = ops.len() as u32 + 2;
            ops.push(LayoutStep::Branch { test: Test::General(length), otherwise: field });
        }
        let start = ops.len() as u32;
        ops.push(LayoutStep::Branch { test: Test::More, otherwise: start + 3 });
        ops.push(field);
        ops.push(LayoutStep::Jump(start + 4));
        ops.push(if counted {
            LayoutStep::Empty { name, ty }
        } else {
            let text = self.name(&format!("ends before `{text}`"));
            LayoutStep::Say { severity: Severity::Note, concern: Concern::None, text }
        });
    }
}

/// The expression that says how long a value is.
fn length_of(read: &ReadAs) -> Option<ExprId> {
    let len = match read {
        ReadAs::Bytes(len)
        | ReadAs::Text { len, .. }
        | ReadAs::Digits { len, .. }
        | ReadAs::List { len, .. } => len,
        ReadAs::Region(region) => &region.len,
        _ => return None,
    };
    match len.from {
        LenFrom::Expr(length) => Some(length),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::print::json::{JsonOptions, JsonWriter};
    use crate::record::MessageView;
    use crate::table::{Evaluator, TableSource, Tables};
    use crate::tree::{Sym, Tree};

    const TABLE: &str = "protocol p
        struct Message {
            First: { a: u8 } optional
            Some: { b: u8 }[u8] optional
            Last: { text: utf8[u8] trimmed } optional
        }";

    fn source(text: &str) -> TableSource {
        TableSource { name: "t".into(), text: text.to_string().into() }
    }

    fn read(bytes: &[u8]) -> String {
        read_with(TABLE, bytes)
    }

    fn read_with(table: &str, bytes: &[u8]) -> String {
        let tables = Tables::load("p", vec![source(table)], &[]).unwrap();
        let ty = tables.type_named("Message").unwrap();
        let mut tree = Tree::new();
        let mut out = Vec::new();
        Evaluator::default().value(&tables, ty, Sym::ELEMENT, bytes, 0, &mut tree);
        let mut json = JsonWriter::new(JsonOptions::default());
        json.fields(MessageView { tables: &tables, tree: &tree, bytes }, &mut out);
        json.problems(MessageView { tables: &tables, tree: &tree, bytes }, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_has_no_bytes_by_its_length_is_not_missing() {
        let padded = "protocol p
            struct Message { size: u8 data: bytes[size] padding: bytes[(4 - size % 4) % 4] \
                      optional }";
        assert_eq!(
            read_with(padded, &[4, 1, 2, 3, 4]),
            r#"{"size":4,"data":"01020304","padding":""}"#
        );
        assert_eq!(
            read_with(padded, &[3, 1, 2, 3]),
            r#"{"size":3,"data":"010203"},"problems":[{"severity":"note","field":"","text":"ends before `padding`"}]"#
        );
    }

    #[test]
    fn a_list_may_end_with_a_zero_byte_and_text_with_any() {
        let words = "protocol p\nstruct Message { Words: utf8[to 32][z] After: u8 optional }";
        assert_eq!(read_with(words, b"a bc d\0\x07"), r#"{"Words":["a","bc","d"],"After":7}"#);
        assert_eq!(
            read_with(words, b"a b"),
            r#"{"Words":["a","b"]},"problems":[{"severity":"note","field":"","text":"ends before `After`"}]"#
        );
        assert_eq!(read_with(words, b"a bc \0\x07"), r#"{"Words":["a","bc"],"After":7}"#);
        assert!(
            Tables::load("p", vec![source("protocol p\nstruct M { a: u8[to 3] }")], &[]).is_err()
        );
    }

    #[test]
    fn a_service_says_it_once_for_all_fields_of_its_messages() {
        let table = "protocol p\nservice s optional\nstruct First { First: { a: u8 } }
            message s both 1 Message extends First { Some: { b: u8 }[u8] }
            struct Holder { a: u8 }";
        let tables = Tables::load("p", vec![source(table)], &[]).unwrap();
        let message = tables.message(tables.message_named("Message").unwrap()).unwrap();
        let ty = tables.layout(message.layout.unwrap()).unwrap().ty;
        let mut tree = Tree::new();
        Evaluator::default().value(&tables, ty, Sym::ELEMENT, &[], 0, &mut tree);
        let notes: Vec<String> =
            tree.problems().iter().map(|p| format!("{:?}", p.severity)).collect();
        assert_eq!(notes, ["Note"], "First is absent with a note, Some is empty");
        tree.clear();
        let holder = tables.type_named("Holder").unwrap();
        Evaluator::default().value(&tables, holder, Sym::ELEMENT, &[], 0, &mut tree);
        assert_eq!(
            tree.problems().first().map(|p| p.severity),
            Some(crate::tree::Severity::Error),
            "a structure is whole"
        );
    }

    #[test]
    fn a_counted_list_is_empty_and_a_structure_absent_with_a_note() {
        assert_eq!(
            read(&[7]),
            r#"{"First":{"a":7},"Some":[]},"problems":[{"severity":"note","field":"","text":"ends before `Last`"}]"#
        );
        assert_eq!(
            read(&[7, 1, 8, 4, b'h', b'i', 0, 0]),
            r#"{"First":{"a":7},"Some":[{"b":8}],"Last":{"text":"hi"}}"#
        );
    }
}
