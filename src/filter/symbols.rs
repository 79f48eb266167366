//! Numbers whose values have names, and what the JSON has of them: `value`, `name`, `names`. It knows the tables, and nothing of records and paths.

use crate::table::EnumDef;

/// What a path asks of a number whose values have names, if not for the number itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SymbolPart {
    /// The number.
    Value,
    /// The name of an enum's value.
    Name,
    /// Each name of a flag that is set.
    Names,
}

/// The names of the flags of a set that bits have.
pub(super) fn set_flags(symbols: &EnumDef, bits: u64) -> impl Iterator<Item = &str> {
    let set = symbols.values.iter().filter(move |flag| flag.value != 0 && bits & flag.value == flag.value);
    set.map(|flag| &*flag.name)
}
