//! The names that the expressions of one structure may use.

use super::super::program::*;
use super::super::text::*;
use crate::maps::{SeededMap, SeededSet};

/// A name that expressions may use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Var {
    pub(super) slot: u16,
    pub(super) value: ValueSort,
}

/// The kind of a name's value.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ValueSort {
    /// The enum whose names it may be compared with.
    pub(super) symbols: Option<EnumId>,
    /// A number in two's complement.
    pub(super) signed: bool,
    /// A text: the value is the number of a word of the tables ([`Program::words`]).
    pub(super) text: bool,
}

/// The names of one structure.
#[derive(Debug, Default)]
pub(super) struct FieldScope {
    pub(super) vars: SeededMap<String, Var>,
    /// Names that an expression uses: only these keep their values.
    pub(super) wanted: SeededSet<String>,
    pub(super) slots: u16,
    /// Whether there are more values to keep than slots.
    pub(super) is_full: bool,
    /// Whether the region may end before any field of this structure.
    pub(super) optional: bool,
}

impl FieldScope {
    pub(super) fn declare(&mut self, name: &str, value: ValueSort) -> u16 {
        if !self.wanted.contains(name) {
            return NO_SLOT;
        }
        let slot = match self.vars.get(name) {
            Some(var) if var.value.text == value.text => var.slot,
            // If one branch declares a number and another a text, both are kept apart, and the name
            // means the one declared last.
            _ if self.slots == NO_SLOT => {
                self.is_full = true;
                return NO_SLOT;
            }
            _ => {
                self.slots += 1;
                self.slots - 1
            }
        };
        self.vars.insert(name.to_string(), Var { slot, value });
        slot
    }

    /// Whether an expression is the name of a text.
    pub(super) fn is_text(&self, e: &ExprAst) -> bool {
        matches!(&e.kind, ExprKind::Name(name) if self.vars.get(name).is_some_and(|var| var.value.text))
    }

    /// The names of this scope that the entries of an inner structure use without declaring them.
    pub(super) fn free_names(&self, entries: &[Entry]) -> Vec<String> {
        let mut used = SeededSet::default();
        refs_of_entries(entries, &mut used);
        let mut own = SeededSet::default();
        declared(entries, &mut own);
        let mut free: Vec<String> =
            used.into_iter().filter(|n| self.vars.contains_key(n) && !own.contains(n)).collect();
        free.sort();
        free
    }
}

/// The names of all fields of a body, those of its choices included.
pub(super) fn field_names(entries: &[Entry]) -> SeededSet<String> {
    let mut names = SeededSet::default();
    declared(entries, &mut names);
    names
}

fn declared(entries: &[Entry], out: &mut SeededSet<String>) {
    for entry in entries {
        match entry {
            Entry::Field(FieldAst { name, .. }) => {
                out.insert(name.clone());
            }
            Entry::If { arms, otherwise } => {
                arms.iter().for_each(|a| declared(&a.1, out));
                declared(otherwise, out);
            }
            Entry::Match { arms, otherwise, .. } => {
                arms.iter().for_each(|a| declared(&a.1, out));
                declared(otherwise, out);
            }
            _ => {}
        }
    }
}

pub(super) fn refs_of_entries(entries: &[Entry], out: &mut SeededSet<String>) {
    for entry in entries {
        match entry {
            Entry::Field(FieldAst { name, of, mods, .. }) => {
                refs_of_type(of, out);
                if let Some(checksum) = mods.as_ref().and_then(|mods| mods.checksum.as_ref()) {
                    out.insert(name.clone());
                    refs_of_expr(&checksum.from, out);
                    refs_of_expr(&checksum.to, out);
                }
            }
            Entry::If { arms, otherwise } => {
                for (cond, body) in arms {
                    refs_of_expr(cond, out);
                    refs_of_entries(body, out);
                }
                refs_of_entries(otherwise, out);
            }
            Entry::Match { on, arms, otherwise } => {
                refs_of_expr(on, out);
                arms.iter().for_each(|a| refs_of_entries(&a.1, out));
                refs_of_entries(otherwise, out);
            }
            Entry::Remember { key, value, .. } => {
                refs_of_expr(key, out);
                refs_of_expr(value, out);
            }
            Entry::Set { value, .. } => refs_of_expr(value, out),
            Entry::Say { .. } | Entry::Undecoded | Entry::Partial | Entry::Last => {}
        }
    }
}

fn refs_of_type(ty: &TypeAst, out: &mut SeededSet<String>) {
    match &ty.kind {
        TypeKind::Named { args, .. } => args.iter().for_each(|a| refs_of_expr(a, out)),
        TypeKind::Inline(entries) => refs_of_entries(entries, out),
        TypeKind::Many { of, len, .. } => {
            refs_of_type(of, out);
            if let LenAst::Expr(e) = len {
                refs_of_expr(e, out);
            }
        }
        TypeKind::As { region, zlib, inner } => {
            refs_of_type(region, out);
            inner.iter().for_each(|t| refs_of_type(t, out));
            if let Some(ZlibAst { keep, size }) = zlib {
                refs_of_expr(keep, out);
                refs_of_expr(size, out);
            }
        }
        TypeKind::Mapping { of, keys, array } => {
            of.iter().chain(array).for_each(|of| refs_of_type(of, out));
            refs_of_entries(keys, out);
        }
        TypeKind::NullOr { present, of } => {
            refs_of_type(present, out);
            refs_of_type(of, out);
        }
    }
}

pub(super) fn refs_of_expr(e: &ExprAst, out: &mut SeededSet<String>) {
    match &e.kind {
        ExprKind::Name(name) => {
            out.insert(name.clone());
        }
        ExprKind::Binary(_, a, b) => {
            refs_of_expr(a, out);
            refs_of_expr(b, out);
        }
        ExprKind::Not(a) | ExprKind::Recall(_, a) => refs_of_expr(a, out),
        ExprKind::In(a, list) => {
            refs_of_expr(a, out);
            list.iter().for_each(|e| refs_of_expr(e, out));
        }
        _ => {}
    }
}
