//! Which structures are self-contained: besides their bytes they depend on nothing but the
//! evaluator's context, and no other message depends on them. Such a structure can be read at any
//! time, on any thread, as long as its bytes and the context are kept.

use std::sync::OnceLock;

use super::Tables;
use super::program::*;
use crate::tree::TypeRef;

impl Tables {
    /// Whether a structure is self-contained, with all that it consists of. The answer is kept.
    pub(in crate::table) fn is_self_contained(&self, id: LayoutId) -> bool {
        let all =
            self.contained.get_or_init(|| self.layouts().iter().map(|_| OnceLock::new()).collect());
        let known = all.get(id.0 as usize);
        known.is_some_and(|known| *known.get_or_init(|| SelfContained::new(self).layout(id)))
    }
}

/// Goes through everything that a structure consists of, each part once, until something is not
/// self-contained.
struct SelfContained<'t> {
    tables: &'t Tables,
    types: Vec<bool>,
    layouts: Vec<bool>,
}

impl<'t> SelfContained<'t> {
    fn new(tables: &'t Tables) -> Self {
        let types = vec![false; tables.program.type_ops.len()];
        let layouts = vec![false; tables.layouts().len()];
        SelfContained { tables, types, layouts }
    }

    fn layout(&mut self, id: LayoutId) -> bool {
        let mut types = Vec::new();
        self.add_layout(id, &mut types) && self.types(types)
    }

    fn types(&mut self, mut waiting: Vec<TypeRef>) -> bool {
        while let Some(ty) = waiting.pop() {
            let new = self
                .types
                .get_mut(ty.0 as usize)
                .is_some_and(|seen| !std::mem::replace(seen, true));
            if new && !self.parts(ty, &mut waiting) {
                return false;
            }
        }
        true
    }

    /// Adds the types of a layout's fields. Returns whether its own steps are self-contained.
    fn add_layout(&mut self, id: LayoutId, types: &mut Vec<TypeRef>) -> bool {
        let new =
            self.layouts.get_mut(id.0 as usize).is_some_and(|seen| !std::mem::replace(seen, true));
        let Some(layout) = self.tables.layout(id).filter(|_| new) else { return true };
        let steps = self.tables.steps().get(layout.start as usize..).unwrap_or(&[]).iter();
        for step in steps.take_while(|step| !matches!(step, LayoutStep::End)) {
            match step {
                LayoutStep::Field { ty, .. } => types.push(*ty),
                LayoutStep::Branch { test: Test::General(expr), .. }
                | LayoutStep::Switch { on: expr, .. } => {
                    if !self.expr(*expr) {
                        return false;
                    }
                }
                LayoutStep::Branch { .. }
                | LayoutStep::Jump(_)
                | LayoutStep::Say { .. }
                | LayoutStep::Empty { .. }
                | LayoutStep::Undecoded
                | LayoutStep::End => {}
                LayoutStep::Word { .. }
                | LayoutStep::Partial
                | LayoutStep::Last
                | LayoutStep::Remember { .. }
                | LayoutStep::Checksum { .. }
                | LayoutStep::Set { .. }
                | LayoutStep::Chosen { .. } => return false,
            }
        }
        true
    }

    /// Adds the types that a type consists of. Returns whether it is self-contained apart from
    /// these.
    fn parts(&mut self, ty: TypeRef, types: &mut Vec<TypeRef>) -> bool {
        let tables = self.tables;
        let Some(def) = tables.type_def(ty) else { return false };
        match &def.read {
            ReadAs::Int { .. }
            | ReadAs::Float { .. }
            | ReadAs::Bool
            | ReadAs::Uuid { .. }
            | ReadAs::Ipv4 { .. } => true,
            ReadAs::Bytes(len) | ReadAs::Text { len, .. } | ReadAs::Digits { len, .. } => {
                self.len(*len, types)
            }
            ReadAs::List { of, len } => {
                types.push(*of);
                self.len(*len, types)
            }
            ReadAs::Layout { layout, args } => self.exprs(args) && self.add_layout(*layout, types),
            ReadAs::Family(family) => tables.family(*family).is_some_and(|family| {
                types.push(family.of);
                family.members.iter().all(|member| self.add_layout(member.1, types))
            }),
            ReadAs::Region(RegionType { len, inner, zlib, .. }) => {
                types.extend(inner);
                self.len(*len, types) && zlib.is_none_or(|zlib| self.exprs(&[zlib.keep, zlib.size]))
            }
            ReadAs::NullOr { present, of } => {
                types.extend([*present, *of]);
                true
            }
            // Code for outlines uses nothing but the bytes.
            ReadAs::Native { native, args } => {
                let code = tables.native(*native).map(|code| code.native);
                code.is_some_and(|code| code.outline.is_some() || code.self_contained)
                    && self.exprs(args)
            }
            ReadAs::Value(_) => false,
        }
    }

    fn len(&self, len: Len, types: &mut Vec<TypeRef>) -> bool {
        match len.from {
            LenFrom::Expr(expr) => self.expr(expr),
            LenFrom::Inline(ty) => {
                types.push(ty);
                true
            }
            _ => true,
        }
    }

    fn exprs(&self, exprs: &[ExprId]) -> bool {
        exprs.iter().all(|expr| self.expr(*expr))
    }

    fn expr(&self, id: ExprId) -> bool {
        match self.tables.ex(id) {
            Some(Ex::Binary(_, a, b)) => self.expr(*a) && self.expr(*b),
            Some(Ex::Not(a)) => self.expr(*a),
            Some(Ex::In(a, set)) => self.expr(*a) && self.exprs(set),
            Some(Ex::Recall(..) | Ex::State(_)) | None => false,
            Some(
                Ex::Const(_)
                | Ex::Slot { .. }
                | Ex::Remaining
                | Ex::More
                | Ex::Dialect(_)
                | Ex::Here
                | Ex::Next(_),
            ) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use crate::proto::{load_tables, protocol_named};
    use crate::table::{TableSource, Tables};

    const TABLE: &str = r#"protocol test {
        transport tcp
        service game
        state level = 0
    }
    enum Class : u16 { Plain = 1, Learns = 2, Asks = 3, Sets = 4, Knows = 5, Summed = 6, Within = 7, Holds = 8, Numbers = 9 }
    family Thing { class: Class, null 0x8000 }
    struct Pair { count: u8 if count > 1 { more: u16[count] } name: utf8[u8] }
    class Plain of Thing { pairs: Pair[u16] inside: bytes[u8] as Pair }
    class Learns of Thing { number: u32 name: u8 remember thing number = name }
    class Asks of Thing { number: u32 if recall(thing, number) == 1 { more: u8 } }
    class Sets of Thing { to: u8 set level = to }
    class Knows of Thing { if state.level == 1 { more: u8 } }
    class Summed of Thing { data: u32 sum: u8 checksum sum8(0, here) }
    struct Learner { number: u32 name: u8 remember thing number = name }
    class Within of Thing { all: bytes[u16] as Learner }
    enum OtherClass : u8 { OtherPlain = 1 }
    family Other { class: OtherClass, null 0x80 }
    class OtherPlain of Other { pair: Pair }
    class Holds of Thing { other: Other }
    class Numbers of Thing { number: leb128 text: labels }
    service game = 1 { number: u16 }
    "#;

    /// The numbers of a family's classes that are not self-contained.
    fn dependent(tables: &Tables, family: &str) -> Vec<u64> {
        let family = tables.families().iter().find(|one| one.name == family).unwrap();
        let members = family.members.iter().filter(|member| !tables.is_self_contained(member.1));
        members.map(|member| member.0).collect()
    }

    #[test]
    fn what_other_messages_depend_on_or_what_depends_on_them_is_not_self_contained() {
        let source = TableSource { name: "test".into(), text: TABLE.into() };
        let tables =
            Tables::load("test", vec![source], &[]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(dependent(&tables, "Thing"), [2, 3, 4, 5, 6, 7]);
        assert!(dependent(&tables, "Other").is_empty());
    }

    /// Else threads would gain little.
    #[test]
    fn the_messages_of_a_game_are_self_contained() {
        let tables = load_tables(protocol_named("moul").unwrap(), &[]).unwrap();
        assert!(dependent(&tables, "plCreatable").is_empty());
    }
}
