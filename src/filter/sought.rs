//! The values of a condition on a field, in the bytes that they have in a message: where none of
//! these is in it, the condition does not hold.
//!
//! It knows the forms that tables give to a name, and nothing of records.

use std::sync::OnceLock;

use super::keys::part_names;
use super::literal::{Literal, NumberLiteral};
use super::needle::{Needle, any_is_in};
use super::path::{Path, PathKey, PathStep};
#[cfg(feature = "regex")]
use super::pattern::RequiredText;
use super::{Check, CompareOp, SetItem};
use crate::table::{Tables, ValueForm};
use crate::tree::TextKind;

/// The values of a condition on a field, one of which has to be in the message's bytes for the
/// condition to hold.
pub(super) struct SoughtValues {
    key: PathKey,
    values: Vec<SoughtValue>,
    /// For each protocol the bytes of all values in all forms of the fields of this name; `None`
    /// where these tell nothing.
    bytes: Vec<OnceLock<Option<Vec<Needle>>>>,
}

/// A value, or a part of one.
pub(super) enum SoughtValue {
    /// It equals this.
    Whole(Literal),
    /// This is in its text.
    Part(PartOfText),
}

/// A part of a text, of which ASCII letters may have the other case.
pub(super) struct PartOfText {
    pub(super) text: String,
    pub(super) any_case: bool,
}

/// The values of which a text has to be one, or has to have one, for a check to hold; `None` where
/// a check has no such values.
pub(super) fn values(check: &Check) -> Option<Vec<SoughtValue>> {
    let whole = |literal: &Literal| SoughtValue::Whole(literal.clone());
    Some(match check {
        Check::Compare(CompareOp::Eq, literal) => vec![whole(literal)],
        Check::Contains(literal) => {
            vec![SoughtValue::Part(PartOfText { text: literal.raw.clone(), any_case: false })]
        }
        Check::In(items) => {
            items.iter().map(|item| item.literal().map(whole)).collect::<Option<_>>()?
        }
        #[cfg(feature = "regex")]
        Check::Matches(pattern) => match pattern.required() {
            RequiredText { text, .. } if text.is_empty() => return None,
            RequiredText { text, any_case } => {
                vec![SoughtValue::Part(PartOfText { text: text.clone(), any_case: *any_case })]
            }
        },
        _ => return None,
    })
}

impl SoughtValues {
    /// The values of a condition; `None` where the bytes cannot decide about it.
    pub(super) fn new(path: &Path, check: &Check, protocols: usize) -> Option<SoughtValues> {
        let anywhere = matches!(path.steps.first(), Some(PathStep::Anywhere(_)));
        let fields = matches!(path.steps.first(), Some(PathStep::Key(key)) if key.text == "fields");
        let key = path.steps.iter().rev().find_map(PathStep::key)?;
        // Other values than fields may have the key `name`, too: who asks knows that.
        let name = path.steps.len() == 1 && key.text == "name";
        if key.record.is_some()
            || !name && part_names().any(|part| part == key.text)
            || !(anywhere || fields)
        {
            return None;
        }
        let values = values(check)?;
        let bytes = std::iter::repeat_with(OnceLock::new).take(protocols).collect();
        Some(SoughtValues { key: key.clone(), values, bytes })
    }

    /// Whether the condition cannot hold for a message with these bytes, its own and those that
    /// were made of them.
    pub(super) fn fails(&self, protocol: usize, tables: &Tables, searched: [&[u8]; 2]) -> bool {
        let known = self
            .bytes
            .get(protocol)
            .and_then(|known| known.get_or_init(|| self.find(protocol, tables)).as_ref());
        known.is_some_and(|all| !any_is_in(all, searched))
    }

    /// The bytes of all values in all forms that the tables of a protocol have.
    fn find(&self, protocol: usize, tables: &Tables) -> Option<Vec<Needle>> {
        let forms = tables.forms_of(self.key.sym(protocol, tables)?)?;
        let mut all: Vec<Needle> = Vec::new();
        for value in &self.values {
            for form in &forms {
                for needle in value.needles(*form, tables)? {
                    if all.iter().all(|other| !other.is(&needle)) {
                        all.push(needle);
                    }
                }
            }
        }
        Some(all)
    }
}

impl SoughtValue {
    /// The text that a text has to be, or has to have.
    pub(super) fn into_text(self) -> PartOfText {
        match self {
            SoughtValue::Whole(literal) => PartOfText { text: literal.raw, any_case: false },
            SoughtValue::Part(part) => part,
        }
    }

    /// The bytes of the values of a form that are meant; `None` where bytes do not tell whether a
    /// value is meant.
    fn needles(&self, form: ValueForm, tables: &Tables) -> Option<Vec<Needle>> {
        match (self, form) {
            (SoughtValue::Whole(literal), ValueForm::Text(kind)) => {
                part(&PartOfText { text: literal.raw.clone(), any_case: false }, kind)
            }
            (SoughtValue::Part(text), ValueForm::Text(kind)) => part(text, kind),
            // A structure of numbers may be a time.
            (SoughtValue::Whole(literal), ValueForm::Object)
                if literal.time.is_some() || literal.is_null() =>
            {
                None
            }
            (_, ValueForm::Object) => Some(Vec::new()),
            (SoughtValue::Whole(literal), ValueForm::Int(int))
                if literal.time.is_none() && !literal.is_null() =>
            {
                let bytes = match literal.number {
                    Some(NumberLiteral::Int(number)) => int.bytes(number).into_iter().collect(),
                    Some(NumberLiteral::Float(_)) => return None,
                    None => tables.bytes_named(int, &literal.raw)?,
                };
                Some(bytes.iter().map(|bytes| Needle::exact(bytes)).collect())
            }
            // A number that is written in another way may be equal. An integer may be a time, and
            // has the text of its name or its digits.
            (_, ValueForm::Float | ValueForm::Int(_)) => None,
        }
    }
}

/// The bytes of a text in an encoding, if it has any; `None` where they do not tell whether it is
/// meant.
fn part(text: &PartOfText, kind: TextKind) -> Option<Vec<Needle>> {
    // Invalid bytes may also be shown as this character.
    (!text.text.contains('\u{fffd}')).then(|| needle_of(text, kind).into_iter().collect())
}

/// The bytes of a text in an encoding; `None` where it has none.
pub(super) fn needle_of(
    PartOfText { text, any_case }: &PartOfText,
    kind: TextKind,
) -> Option<Needle> {
    match any_case {
        true => {
            let lower = text.to_ascii_lowercase();
            let upper = text.to_ascii_uppercase();
            Some(Needle::new(&encoded(&lower, kind)?, &encoded(&upper, kind)?))
        }
        false => Some(Needle::exact(&encoded(text, kind)?)),
    }
}

/// A text in an encoding; `None` where it has none.
fn encoded(text: &str, kind: TextKind) -> Option<Vec<u8>> {
    let latin =
        || text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect::<Option<Vec<u8>>>();
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
