//! Numbers whose values have names, and what the JSON has of them: `value`, `name`, `names`. It
//! knows the tables, and nothing of records and paths.

use crate::table::EnumDef;

/// What a path asks of a number whose values have names, if not for the number itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SymbolPart {
    /// The number.
    Value,
    /// The name of an enum's value.
    Name,
    /// Each name of a flag that is set.
    Names,
}

impl SymbolPart {
    /// The keys that the parts have in the JSON.
    pub(super) const KEYS: [(&str, SymbolPart); 3] =
        [("value", SymbolPart::Value), ("name", SymbolPart::Name), ("names", SymbolPart::Names)];

    /// The part with a key.
    pub(super) fn of(key: &str) -> Option<SymbolPart> {
        SymbolPart::KEYS.into_iter().find(|(known, _)| *known == key).map(|(_, part)| part)
    }
}

/// The names of the flags of a set that bits have.
pub(super) fn set_flags(symbols: &EnumDef, bits: u64) -> impl Iterator<Item = &str> {
    let set = symbols
        .values
        .iter()
        .filter(move |flag| flag.value != 0 && bits & flag.value == flag.value);
    set.map(|flag| &*flag.name)
}
