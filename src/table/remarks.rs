//! What is not wrong in a table file, but probably not meant: a message that nothing tests, or one that takes another's number.

use std::collections::HashSet;

use super::error::TableError;
use super::program::*;
use super::{TableSource, Tables};

impl Tables {
    /// Remarks about the sources from the one numbered `from` on, in the order of the sources: each with its place.
    pub fn remarks(&self, from: usize) -> Vec<TableError> {
        let mut found: Vec<(u32, usize, String)> = Vec::new();
        let tested: HashSet<MessageId> = self.examples().iter().filter_map(|example| example.of.message()).collect();
        for declared in self.declarations().iter().filter(|d| d.kind == "message" && d.file as usize >= from) {
            let id = self.message_named(&declared.name);
            let Some(id) = id.filter(|id| self.message(*id).is_some_and(|def| def.layout.is_some())) else { continue };
            if !tested.contains(&id) {
                let message = format!("`{}` has no example: nothing tests it", declared.name);
                found.push((declared.file, declared.range.0, message));
            }
        }
        for taken in self.replaced().iter().filter(|taken| taken.file as usize >= from) {
            let name = |id| self.message(id).map_or("", |def| self.name(def.name));
            let (old, new) = (name(taken.old), name(taken.new));
            if old != new {
                let message = format!("`{new}` takes the number of `{old}`, which cannot be recognised any more");
                found.push((taken.file, taken.at, message));
            }
        }
        found.sort();
        found.dedup();
        let place = |(file, at, message): (u32, usize, String)| {
            let TableSource { name, text } = self.sources().get(file as usize)?;
            Some(TableError::at(name, text, at, message))
        };
        found.into_iter().filter_map(place).collect()
    }
}
