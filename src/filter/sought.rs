//! The values of a condition on a field, in the bytes that they have in a message: where none of these is in it, the condition does not hold.
//!
//! It knows the forms that tables give to a name, and nothing of records.

use std::sync::OnceLock;

use memchr::memmem::Finder;

use super::keys::part_names;
use super::literal::{Literal, NumberLiteral};
use super::path::{Path, PathKey, PathStep};
use super::{Check, CompareOp, SetItem};
use crate::table::{Tables, ValueForm};
use crate::tree::TextKind;

/// The values of a condition on a field, one of which has to be in the message's bytes for the condition to hold.
pub(super) struct SoughtValues {
    key: PathKey,
    values: Vec<SoughtValue>,
    /// For each protocol the bytes of all values in all forms of the fields of this name; `None` where these tell nothing.
    bytes: Vec<OnceLock<Option<Vec<Finder<'static>>>>>,
}

/// A value, or a part of one.
enum SoughtValue {
    /// It equals this.
    Whole(Literal),
    /// This is in its text.
    Part(String),
}

impl SoughtValues {
    /// The values of a condition; `None` where the bytes cannot decide about it.
    pub(super) fn new(path: &Path, check: &Check, protocols: usize) -> Option<SoughtValues> {
        let anywhere = matches!(path.steps.first(), Some(PathStep::Anywhere(_)));
        let fields = matches!(path.steps.first(), Some(PathStep::Key(key)) if key.text == "fields");
        let key = path.steps.iter().rev().find_map(PathStep::key)?;
        if key.record.is_some() || part_names().any(|part| part == key.text) || !(anywhere || fields) {
            return None;
        }
        let whole = |literal: &Literal| SoughtValue::Whole(literal.clone());
        let values = match check {
            Check::Compare(CompareOp::Eq, literal) => vec![whole(literal)],
            Check::Contains(literal) => vec![SoughtValue::Part(literal.raw.clone())],
            Check::In(items) => items.iter().map(|item| item.literal().map(whole)).collect::<Option<_>>()?,
            #[cfg(feature = "regex")]
            Check::Matches(pattern) if !pattern.required().is_empty() => {
                vec![SoughtValue::Part(pattern.required().to_string())]
            }
            _ => return None,
        };
        let bytes = std::iter::repeat_with(OnceLock::new).take(protocols).collect();
        Some(SoughtValues { key: key.clone(), values, bytes })
    }

    /// Whether the condition cannot hold for a message with these bytes.
    pub(super) fn fails(&self, protocol: usize, tables: &Tables, bytes: &[u8]) -> bool {
        let known =
            self.bytes.get(protocol).and_then(|known| known.get_or_init(|| self.find(protocol, tables)).as_ref());
        known.is_some_and(|all| !all.iter().any(|sought| sought.find(bytes).is_some()))
    }

    /// The bytes of all values in all forms that the tables of a protocol have.
    fn find(&self, protocol: usize, tables: &Tables) -> Option<Vec<Finder<'static>>> {
        let forms = tables.forms_of(self.key.sym(protocol, tables)?)?;
        let mut all: Vec<Finder<'static>> = Vec::new();
        for value in &self.values {
            for form in &forms {
                match value.bytes(*form) {
                    Sought::Bytes(bytes) if all.iter().all(|other| other.needle() != bytes) => {
                        all.push(Finder::new(&bytes).into_owned());
                    }
                    Sought::Bytes(_) | Sought::Nothing => {}
                    Sought::Unknown => return None,
                }
            }
        }
        Some(all)
    }
}

/// What to search for.
enum Sought {
    Bytes(Vec<u8>),
    /// No value of the form is meant.
    Nothing,
    /// The bytes of a value do not tell whether it is meant.
    Unknown,
}

impl From<Option<Vec<u8>>> for Sought {
    fn from(bytes: Option<Vec<u8>>) -> Sought {
        bytes.map_or(Sought::Nothing, Sought::Bytes)
    }
}

impl SoughtValue {
    fn bytes(&self, form: ValueForm) -> Sought {
        match (self, form) {
            (SoughtValue::Whole(Literal { raw, .. }) | SoughtValue::Part(raw), ValueForm::Text(kind)) => {
                // Invalid bytes may also be shown as this character.
                if raw.contains('\u{fffd}') { Sought::Unknown } else { encoded(raw, kind).into() }
            }
            // The value may be a time, and has the text of its name or its digits.
            (SoughtValue::Whole(Literal { time: Some(_), .. }) | SoughtValue::Part(_), ValueForm::Int(_)) => {
                Sought::Unknown
            }
            (SoughtValue::Whole(literal), ValueForm::Int(int)) => match literal.number {
                Some(NumberLiteral::Int(number)) => int.bytes(number).into(),
                Some(NumberLiteral::Float(_)) => Sought::Unknown,
                None if int.is_named || literal.is_null() => Sought::Unknown,
                None => Sought::Nothing,
            },
        }
    }
}

/// A text in an encoding; `None` where it has none.
fn encoded(text: &str, kind: TextKind) -> Option<Vec<u8>> {
    let latin = || text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect::<Option<Vec<u8>>>();
    let wide = || text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let inverted = |bytes: &[u8]| bytes.iter().map(|byte| !byte).collect();
    match kind {
        TextKind::Utf8 => Some(text.into()),
        TextKind::Latin1 => latin(),
        TextKind::Utf16 => Some(wide()),
        TextKind::Inverted8 => Some(inverted(text.as_bytes())),
        TextKind::InvertedLatin1 => latin().map(|bytes| inverted(&bytes)),
        TextKind::Inverted16 => Some(inverted(&wide())),
        TextKind::Owned => None,
    }
}

impl SetItem {
    fn literal(&self) -> Option<&Literal> {
        match self {
            SetItem::One(literal) => Some(literal),
            SetItem::Range(..) => None,
        }
    }
}
