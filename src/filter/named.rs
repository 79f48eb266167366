//! Filters and lists of columns that have names. Expressions use them as `@name`, which no path can
//! begin with.
//!
//! It has their texts, and does not know where they come from.

use std::collections::BTreeMap;

/// Filters and lists of columns that have names.
#[derive(Clone, Debug, Default)]
pub struct NamedExpressions {
    /// The filters, by their names without the `@`.
    pub filters: BTreeMap<String, NamedExpression>,
    /// The lists of columns, by their names without the `@`.
    pub columns: BTreeMap<String, NamedExpression>,
}

/// A filter or a list of columns that has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedExpression {
    /// What it says.
    pub text: String,
    /// Where it was given its name, for errors.
    pub place: String,
}

/// Whether an expression can use a name: ASCII letters, digits, `_` and `-`, and a letter first.
pub fn can_be_named(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}
