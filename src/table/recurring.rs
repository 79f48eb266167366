//! Finds the structures that recur: names of things, with their numbers. A world has few things,
//! and its messages name them again and again, so that the evaluator keeps what it read in the same
//! bytes before. How it does that is not known here.

use super::Tables;
use super::program::*;
use crate::tree::{TypeRef, mark};

/// How many bits of numbers such a structure has at least before a field that may be absent. With
/// less it is soon read, and what follows it would be most of its first bytes, by which it is
/// found.
const LEAST_BITS: u32 = 48;

impl Tables {
    /// Marks these structures ([`Layout::recurs`]).
    pub(super) fn mark_recurring(&mut self) {
        let recurs: Vec<usize> = (0..self.layouts().len()).filter(|at| self.recurs(*at)).collect();
        for at in recurs {
            if let Some(layout) = self.program.layouts.get_mut(at) {
                layout.recurs = true;
            }
        }
    }

    /// Whether a structure has a text of a type with code, and else only numbers and structures of
    /// numbers; and whether what it consists of depends on nothing but its own bytes and dialects.
    fn recurs(&self, at: usize) -> bool {
        let mut texts = 0;
        let plain =
            self.layouts().get(at).filter(|layout| layout.min_bits >= LEAST_BITS).is_some_and(
                |layout| {
                    self.consists_of(layout, |op, ty| match op.how {
                        TypeOpKind::Native => {
                            texts += 1;
                            self.is_constant_text(op.by, ty)
                        }
                        TypeOpKind::Layout => self
                            .layout(LayoutId(op.by))
                            .is_some_and(|inner| self.consists_of(inner, |_, _| false)),
                        _ => false,
                    })
                },
            );
        plain && texts > 0
    }

    /// Whether a structure consists of numbers and of fields for which `other` holds, some of which
    /// may depend on numbers before them.
    fn consists_of(
        &self,
        layout: &Layout,
        mut other: impl FnMut(&TypeOp, TypeRef) -> bool,
    ) -> bool {
        let steps = self.steps().get(layout.start as usize..).unwrap_or(&[]);
        layout.params == 0
            && layout.positions.is_none()
            && steps.iter().take_while(|step| !matches!(step, LayoutStep::End)).all(|step| {
                match step {
                    // The tree cannot list a span of which tables say more.
                    LayoutStep::Field { marks, op, .. }
                        if op.telling && marks & mark::SPAN != 0 =>
                    {
                        false
                    }
                    LayoutStep::Field { op, ty, .. } => {
                        op.how == TypeOpKind::Little || other(op, *ty)
                    }
                    LayoutStep::Branch { test, .. } => {
                        !matches!(test, Test::General(_) | Test::More)
                    }
                    LayoutStep::Jump(_) => true,
                    _ => false,
                }
            })
    }

    /// Whether a type with code is a text that depends on its own bytes and dialects alone.
    fn is_constant_text(&self, native: u32, ty: TypeRef) -> bool {
        let constant = |arg: &ExprId| matches!(self.ex(*arg), Some(Ex::Const(_) | Ex::Dialect(_)));
        self.native(native).is_some_and(|code| !code.native.texts.is_empty())
            && self.type_def(ty).is_some_and(|def| match &def.read {
                ReadAs::Native { args, .. } => args.iter().all(constant),
                _ => false,
            })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use crate::proto::{load_tables, protocol_named};
    use crate::table::{TableSource, Tables};

    fn recurring(tables: &Tables) -> Vec<String> {
        tables
            .layouts()
            .iter()
            .filter(|layout| layout.recurs)
            .map(|layout| tables.name(layout.name).to_string())
            .collect()
    }

    #[test]
    fn the_names_of_objects_recur() {
        let of = |name| {
            recurring(&load_tables(protocol_named(name).unwrap(), &[]).unwrap())
                .contains(&"plUoid".into())
        };
        assert!(of("moul") && !of("secondlife"));
    }

    #[test]
    fn what_depends_on_more_than_its_own_bytes_does_not_recur() {
        let table = "protocol moul
            type SafeCount = u16
            dialect old
            struct Numbers { a: u8, b: u32 }
            struct Name { number: u32, at: Numbers, if number == 1 { more: u8 }, text: safe_string(dialect old) }
            struct NoText { number: u32, at: Numbers, to: Numbers }
            struct Short { number: u16, text: p_string }
            struct Rest { at: Numbers, to: Numbers, text: p_string, if more { last: u8 } }
            struct Listed { at: Numbers, to: Numbers, text: p_string, all: u8[u8] }
            struct Holds { at: Numbers, to: Numbers, text: p_string, name: Name }
            struct Said { at: Numbers, to: Numbers, text: p_string, number: u32, if number == 1 { note \"one\" } }
            struct Computed { at: Numbers, to: Numbers, text: p_string, number: u32, if number + 1 == 2 { last: u8 } }
            struct Given(n) { at: Numbers, to: Numbers, text: p_string, if n == 1 { last: u8 } }";
        let source = TableSource { name: "test".into(), text: table.into() };
        let tables = Tables::load("moul", vec![source], protocol_named("moul").unwrap().natives())
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(recurring(&tables), ["Name"]);
    }
}
