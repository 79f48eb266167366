//! What a writer derives from tables the first time it meets them, laid out for the loop that runs
//! for every value: each name as this writer prints it, and for each type whether its numbers have
//! names. The texts of such numbers are added while writing.

use super::value_texts::ValueTexts;
use crate::table::{TableText, Tables};
use crate::tree::TypeRef;

/// A name as a writer writes it, in half a cache line: up to 31 characters, padded with spaces, and
/// their number. The tables' own entry of a name is four times as large. When the width was read
/// from there, it took a third of the time for finding the column of a structure's values.
#[derive(Clone)]
#[repr(align(32))]
pub(super) struct Label([u8; 32]);

impl Label {
    /// How many characters there can be.
    pub(super) const MOST: usize = 31;
    /// No characters.
    pub(super) const NONE: Label = Label([0; 32]);
    /// A comma.
    pub(super) const COMMA: Label = {
        let mut block = [b' '; 32];
        let ([first, .., length], comma) = (&mut block, b',');
        (*first, *length) = (comma, 1);
        Label(block)
    };

    fn new(text: Option<&[u8]>) -> Label {
        let mut block = [b' '; 32];
        let [characters @ .., length] = &mut block;
        *length = u8::MAX;
        if let Some(text) = text
            && let Some(room) = characters.get_mut(..text.len())
        {
            room.copy_from_slice(text);
            *length = text.len() as u8;
        }
        Label(block)
    }

    /// The characters in a block. Its last byte is the length.
    #[inline(always)]
    pub(super) fn block(&self) -> &[u8; 32] {
        &self.0
    }

    /// Puts a label of at most [`Label::MOST`] characters into a room, with `first` in the place of
    /// its first one. Returns how many they are, and the room behind them, if that has `M` bytes.
    #[inline(always)]
    pub(super) fn put<'a, const N: usize, const M: usize>(
        &self,
        first: u8,
        room: &'a mut [u8; N],
    ) -> Option<(usize, &'a mut [u8; M])> {
        *room.first_chunk_mut()? = self.0;
        *room.first_mut()? = first;
        let length = self.length() & Label::MOST;
        Some((length, room.get_mut(length..)?.first_chunk_mut()?))
    }

    /// How many characters there are; more than [`Label::MOST`] where the name does not fit or has
    /// to be escaped.
    #[inline(always)]
    pub(super) fn length(&self) -> usize {
        let [.., length] = self.0;
        length.into()
    }
}

/// Derived from one protocol's tables.
#[derive(Clone, Default)]
pub(super) struct TableCache {
    /// The tables' number and 1; 0 for none.
    which: u64,
    /// The names, by number.
    pub(super) labels: Vec<Label>,
    /// For each type (by its number) the key under which `value_texts` has the texts of its values;
    /// 0 for types whose numbers mean nothing more.
    pub(super) meanings: Vec<u32>,
    /// Texts of numbers that have names.
    pub(super) value_texts: ValueTexts,
}

/// How many tables are cached at once; the oldest are dropped.
const MOST: usize = 8;

/// The caches of all tables met so far, the one used last at hand.
#[derive(Clone, Default)]
pub(super) struct TableCaches {
    last: TableCache,
    others: Vec<TableCache>,
}

impl TableCaches {
    /// The cache of `tables`. When it is made, `label` appends a name as this writer prints it and
    /// returns whether that can be a [`Label`]; `meaning` gives the key of a type's value texts, 0
    /// for none.
    #[inline(always)]
    pub(super) fn of(
        &mut self,
        tables: &Tables,
        label: fn(&str, &mut Vec<u8>) -> bool,
        meaning: fn(&Tables, TypeRef) -> u32,
    ) -> &mut TableCache {
        let which = u64::from(tables.id()) + 1;
        if self.last.which != which {
            self.switch(which, tables, label, meaning);
        }
        &mut self.last
    }

    #[cold]
    #[inline(never)]
    fn switch(
        &mut self,
        which: u64,
        tables: &Tables,
        label: fn(&str, &mut Vec<u8>) -> bool,
        meaning: fn(&Tables, TypeRef) -> u32,
    ) {
        let known = self.others.iter_mut().find(|cache| cache.which == which);
        if let Some(other) = known {
            std::mem::swap(other, &mut self.last);
            return;
        }
        let mut text = Vec::new();
        let form = |name: &TableText| {
            text.clear();
            Label::new(label(name, &mut text).then_some(text.as_slice()))
        };
        let labels = tables.names().iter().map(form).collect();
        let types = (0..tables.type_count()).map(TypeRef);
        let cache = TableCache {
            which,
            labels,
            meanings: types.map(|ty| meaning(tables, ty)).collect(),
            value_texts: ValueTexts::default(),
        };
        let last = std::mem::replace(&mut self.last, cache);
        if self.others.len() >= MOST {
            self.others.remove(0);
        }
        self.others.push(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_has_up_to_31_characters() {
        for length in [0, 1, 30, 31] {
            let label = Label::new(Some("x".repeat(length).as_bytes()));
            assert_eq!(label.length(), length);
            assert_eq!(
                label.block().first_chunk::<31>(),
                format!("{:31}", "x".repeat(length)).as_bytes().first_chunk()
            );
        }
        assert!(Label::new(Some(&[b'x'; 32])).length() > Label::MOST);
        assert!(Label::new(None).length() > Label::MOST);
    }
}
