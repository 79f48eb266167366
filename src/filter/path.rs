//! Paths: which values of a record a condition is about.

use std::sync::OnceLock;

use crate::table::Tables;
use crate::tree::Sym;

/// A compiled path.
#[derive(Clone, Debug)]
pub struct Path {
    pub(super) text: String,
    pub(super) steps: Vec<Step>,
}

/// One step of a path.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// The value of a key.
    Key(Key),
    /// The values of a key in this object and all that are within it.
    Anywhere(Key),
    /// An element of a list.
    Index(usize),
    /// All elements of a list.
    All,
}

/// A key's name, with the number each protocol's tables have for it: looked up when a record of that protocol first comes, so that
/// tables nobody needs are not compiled for it.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) text: String,
    syms: Vec<OnceLock<Option<Sym>>>,
}

impl Key {
    pub(super) fn new(text: &str, protocols: usize) -> Key {
        Key { text: text.to_string(), syms: vec![OnceLock::new(); protocols] }
    }

    /// Its number in the tables of a protocol, which has a place among those the filter was compiled for.
    pub(super) fn sym(&self, protocol: usize, tables: &Tables) -> Option<Sym> {
        // Elements of lists have a name only among spans.
        let find = || tables.sym(&self.text).filter(|s| *s != Sym::ELEMENT);
        self.syms.get(protocol).map_or_else(find, |known| *known.get_or_init(find))
    }
}

impl Path {
    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What looking it up costs: a key of the record next to nothing, a search at any depth most.
    pub(super) fn cost(&self) -> u32 {
        if self.steps.iter().any(|s| matches!(s, Step::Anywhere(_))) {
            return 20;
        }
        match self.steps.first() {
            Some(Step::Key(key)) if key.text == "fields" => 10,
            _ => 0,
        }
    }
}
