//! Paths: which values of a record a condition asks for.

use std::sync::OnceLock;

use super::keys::{KeyParts, RecordKey};
use super::symbols::SymbolPart;
use crate::table::Tables;
use crate::tree::Sym;

/// A compiled path.
#[derive(Clone, Debug)]
pub struct Path {
    pub(super) text: Box<str>,
    pub(super) steps: Vec<PathStep>,
}

/// One step of a path.
#[derive(Clone, Debug)]
pub(super) enum PathStep {
    /// The value of a key.
    Key(PathKey),
    /// The values of a key in this object and in everything within it.
    Anywhere(PathKey),
    /// Every value without parts.
    Everywhere,
    /// An element of a list, counted from 0.
    Index(usize),
    /// All elements of a list.
    All,
}

/// A key's name, as a key of the record and as the symbol that each protocol's tables have for it.
///
/// A symbol is looked up when the first record of its protocol comes, so that the tables of other
/// protocols are not compiled for it.
#[derive(Clone, Debug)]
pub(super) struct PathKey {
    pub(super) text: String,
    pub(super) record: Option<&'static RecordKey>,
    /// Set if values of enums or flag sets have this key in the JSON.
    pub(super) symbol: Option<SymbolPart>,
    syms: Vec<OnceLock<Option<Sym>>>,
}

impl PathKey {
    /// A key for records of as many protocols.
    pub(super) fn new(text: &str, protocols: usize) -> PathKey {
        let syms = vec![OnceLock::new(); protocols];
        let record = RecordKey::named(text);
        let symbol = SymbolPart::of(text);
        PathKey { text: text.to_string(), record, symbol, syms }
    }

    /// Its symbol in `tables`, which are those of the protocol with this index among those the
    /// filter was compiled for.
    #[inline]
    pub(super) fn sym(&self, protocol: usize, tables: &Tables) -> Option<Sym> {
        // Elements of lists have a name among spans, but no key in the JSON.
        let find = || tables.sym(&self.text).filter(|s| *s != Sym::ELEMENT);
        self.syms.get(protocol).map_or_else(find, |known| *known.get_or_init(find))
    }
}

impl Path {
    pub(super) fn new(text: &str, steps: Vec<PathStep>) -> Path {
        Path { text: text.into(), steps }
    }

    /// The path as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether what is found there depends on the names that earlier records give.
    pub(super) fn wants_names(&self) -> bool {
        match self.steps.first() {
            Some(PathStep::Key(key)) => key.record.is_some_and(|key| key.named),
            Some(PathStep::Anywhere(key)) => RecordKey::is_named_anywhere(&key.text),
            _ => true,
        }
    }

    /// Whether it leads to the session of a record.
    pub(super) fn wants_session(&self) -> bool {
        let key = match self.steps.first() {
            Some(PathStep::Key(key) | PathStep::Anywhere(key)) => key,
            _ => return false,
        };
        key.record.is_some_and(RecordKey::is_session)
    }

    /// How expensive looking it up is, for ordering conditions: a key of the record is cheap, a
    /// search at any depth is expensive.
    pub(super) fn cost(&self) -> u32 {
        if matches!(self.steps.first(), Some(PathStep::Everywhere)) {
            return 40;
        }
        if self.steps.iter().any(|s| matches!(s, PathStep::Anywhere(_))) {
            return 20;
        }
        match self.steps.first() {
            Some(PathStep::Key(key))
                if key.record.is_some_and(|key| key.parts == KeyParts::Fields) =>
            {
                10
            }
            _ => 0,
        }
    }
}
