//! Finds mistakes that the grammar allows: one name or number for two things, values that do not
//! fit.
//!
//! It looks at one file at a time, because a later file may reuse an earlier one's names and
//! numbers.

use std::rc::Rc;

use super::super::error::TableError;
use super::super::text::*;
use super::Compiler;
use crate::maps::{SeededMap, SeededSet};

impl Compiler<'_> {
    /// Checks all files.
    pub(super) fn strict(&mut self) -> Result<(), TableError> {
        for file in 0..self.files.len() {
            self.file = file;
            self.strict_file(self.files.get(file).map_or(&[][..], |f| &f.items))?;
        }
        Ok(())
    }

    fn strict_file(&self, items: &[Rc<ItemAst>]) -> Result<(), TableError> {
        self.numbers(items)?;
        for item in items {
            match &item.kind {
                ItemKind::Struct(body) => self.structure(item.at, body)?,
                ItemKind::Message(MessageAst { body: Some(body), .. }) => {
                    self.structure(item.at, body)?
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A number means one message of a service and sender.
    fn numbers(&self, items: &[Rc<ItemAst>]) -> Result<(), TableError> {
        let mut taken: SeededMap<(&str, u64, Sender), &str> = SeededMap::default();
        let mut words = SeededMap::default();
        for item in items {
            let ItemKind::Message(m) = &item.kind else { continue };
            self.words_once(item, m, &mut words)?;
            let Some(number) = self.number(&m.number)? else { continue };
            for side in [Sender::Client, Sender::Server] {
                if m.direction != side && m.direction != Sender::Both {
                    continue;
                }
                if let Some(other) = taken.insert((&m.service, number, side), &item.name) {
                    return self
                        .error(item.at, format!("`{other}` has the number {number} already"));
                }
            }
        }
        Ok(())
    }

    /// A text, or `any`, selects one message of a service and sender.
    fn words_once<'a>(
        &self,
        item: &'a ItemAst,
        m: &'a MessageAst,
        taken: &mut SeededMap<(&'a str, &'a str, Sender), &'a str>,
    ) -> Result<(), TableError> {
        let (word, shown) = match &m.number {
            NumberAst::Text(word) => (word.as_str(), format!("\"{word}\"")),
            NumberAst::Any => ("", "any other number".to_string()),
            _ => return Ok(()),
        };
        for side in [Sender::Client, Sender::Server]
            .into_iter()
            .filter(|s| m.direction == *s || m.direction == Sender::Both)
        {
            match taken.insert((&m.service, word, side), &item.name) {
                Some(other) if other != item.name => {
                    return self
                        .error(item.at, format!("`{other}` is selected by {shown} already"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn structure(&self, at: usize, body: &StructAst) -> Result<(), TableError> {
        let mut names = SeededSet::default();
        if let Some(twice) = body.params.iter().find(|p| !names.insert(p.as_str())) {
            return self.error(at, format!("the parameter `{twice}` is named twice"));
        }
        self.entries_once(&body.entries, &mut SeededSet::default())
    }

    /// A field name may occur once in a structure, but branches of one choice may use the same
    /// names. `names` holds the names before these entries, and is restored afterwards.
    fn entries_once<'a>(
        &self,
        entries: &'a [Entry],
        names: &mut SeededSet<&'a str>,
    ) -> Result<(), TableError> {
        let mut own = Vec::new();
        for entry in entries {
            match entry {
                Entry::Field(FieldAst { name, at, of, .. }) => {
                    if !names.insert(name) {
                        return self.error(*at, format!("there is a field `{name}` already"));
                    }
                    own.push(name.as_str());
                    self.inline_once(of)?;
                }
                Entry::If { arms, otherwise } => {
                    let branches = arms.iter().map(|arm| &arm.1).chain([otherwise]);
                    branches.into_iter().try_for_each(|branch| self.entries_once(branch, names))?;
                }
                Entry::Match { arms, otherwise, .. } => {
                    let branches = arms.iter().map(|arm| &arm.1).chain([otherwise]);
                    branches.into_iter().try_for_each(|branch| self.entries_once(branch, names))?;
                }
                _ => {}
            }
        }
        for name in own {
            names.remove(name);
        }
        Ok(())
    }

    fn inline_once(&self, ty: &TypeAst) -> Result<(), TableError> {
        match &ty.kind {
            TypeKind::Named { .. } => Ok(()),
            TypeKind::Inline(entries) | TypeKind::Mapping { keys: entries, .. } => {
                self.entries_once(entries, &mut SeededSet::default())
            }
            TypeKind::Many { of, .. } | TypeKind::NullOr { of, .. } => self.inline_once(of),
            TypeKind::As { inner, .. } => inner.iter().try_for_each(|ty| self.inline_once(ty)),
        }
    }
}

/// Whether a value, in two's complement where it is negative, fits an integer whose bits are those
/// of `mask`.
pub(super) fn fits(value: u64, mask: u64) -> bool {
    let negative = value | (mask >> 1) == u64::MAX;
    value <= mask || negative
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn what_fits_a_byte() {
        assert!(fits(0, 0xff) && fits(255, 0xff) && !fits(256, 0xff));
        assert!(fits(1u64.wrapping_neg(), 0xff) && fits(128u64.wrapping_neg(), 0xff));
        assert!(!fits(129u64.wrapping_neg(), 0xff) && fits(u64::MAX, u64::MAX));
    }
}
