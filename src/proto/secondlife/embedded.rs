//! What the embedded tables say of messages, for a grid's own template: the types of fields, and
//! which blocks and fields a message has.
//!
//! It reads the tables' text, not their compiled form, because the template becomes such text.

use std::collections::HashMap;

use super::SecondLife;
use crate::proto::Protocol;

/// What the embedded tables say of fields, by `Owner.Block.Field`. The owner is a message or a
/// structure. The fields of a structure itself have no block.
#[derive(Default)]
pub(super) struct FieldTypes {
    fields: HashMap<String, String>,
    /// Structures that messages extend.
    parents: HashMap<String, String>,
    /// Integer types of enums and flags.
    bases: HashMap<String, String>,
    /// The words behind message names, except the structure that they extend: what they answer,
    /// whether they refuse.
    marks: HashMap<String, String>,
    /// Of messages and structures.
    shapes: HashMap<String, MessageShape>,
}

impl FieldTypes {
    /// Reads the embedded tables line by line: they have one field a line, and indent by four
    /// blanks a level.
    pub(super) fn embedded() -> FieldTypes {
        let mut known = FieldTypes::default();
        for source in SecondLife.sources() {
            let mut owner = "";
            let mut block = "";
            let mut shape = MessageShape::default();
            for line in source.text.lines() {
                let words: Vec<&str> = line.split_whitespace().collect();
                match words.as_slice() {
                    // What travels over HTTP is in no template.
                    ["message", "http", ..] | ["positions", ..] => {
                        known.shapes.insert(owner.to_string(), std::mem::take(&mut shape));
                        (owner, block) = ("", "");
                    }
                    ["message", _, _, range, number, name, rest @ ..] => {
                        known.shapes.insert(owner.to_string(), std::mem::take(&mut shape));
                        owner = name;
                        known.heading(name, rest);
                        shape = known.inherited(name);
                        shape.begin(range, integer(number));
                    }
                    ["struct", name, ..] => {
                        known.shapes.insert(owner.to_string(), std::mem::take(&mut shape));
                        (owner, block) = (name, "");
                    }
                    ["enum" | "flags", name, ":", base, "{"] => {
                        known.bases.insert((*name).into(), (*base).into());
                    }
                    [end, ..] if line.starts_with("    }") => {
                        shape.repeat(end.trim_start_matches('}'))
                    }
                    _ => match declaration(line) {
                        Some((4, name, "{")) => {
                            block = name;
                            shape.block(name, "");
                        }
                        Some((level, name, ty)) => {
                            let block = if level > 4 { block } else { "" };
                            known.fields.insert(format!("{owner}.{block}.{name}"), ty.to_string());
                            known.grow(&mut shape, block, name, ty);
                        }
                        None => {}
                    },
                }
            }
            known.shapes.insert(owner.to_string(), shape);
        }
        known
    }

    /// The blocks of the structure that a message extends.
    fn inherited(&self, message: &str) -> MessageShape {
        self.parents
            .get(message)
            .and_then(|parent| self.shapes.get(parent))
            .cloned()
            .unwrap_or_default()
    }

    /// Adds a field to the shape of its message; outside a block it is a block that is declared as
    /// a structure.
    fn grow(&self, shape: &mut MessageShape, block: &str, name: &str, ty: &str) {
        let ty = ty.split_whitespace().next().unwrap_or("");
        let (structure, repeat) = ty.split_at(ty.find('[').unwrap_or(ty.len()));
        match self.shapes.get(structure) {
            Some(fields) if block.is_empty() => {
                shape.block(name, repeat);
                shape.parts.extend(fields.parts.iter().cloned());
            }
            _ => shape.field(name, true),
        }
    }

    /// Whether the embedded message of this name has this number, these blocks and these fields.
    /// It may have further Variable blocks at its end: a datagram may be without them.
    pub(super) fn has(&self, message: &str, shape: &MessageShape) -> bool {
        let Some(known) = self.shapes.get(message) else { return false };
        let Some(further) = known.parts.strip_prefix(shape.parts.as_slice()) else { return false };
        let variable = |part: &ShapePart| match part {
            ShapePart::Block(_, repeat) => repeat == "[u8]",
            ShapePart::Field(_) => true,
        };
        let ends = further.first().is_none_or(|part| matches!(part, ShapePart::Block(..)));
        (&known.range, known.number) == (&shape.range, shape.number)
            && known.differs == shape.differs
            && ends
            && further.iter().all(variable)
    }

    /// The words behind a message's name.
    pub(super) fn marks(&self, message: &str) -> &str {
        self.marks.get(message).map_or("", String::as_str)
    }

    /// Keeps the words behind a message's name: the structure that it extends, and its marks.
    fn heading(&mut self, name: &str, rest: &[&str]) {
        let mut marks = String::new();
        let mut words = rest.iter();
        while let Some(word) = words.next().filter(|word| **word != "{") {
            if *word == "extends" {
                self.parents
                    .extend(words.next().map(|parent| (name.to_string(), (*parent).to_string())));
            } else {
                marks.push(' ');
                marks.push_str(word);
            }
        }
        self.marks.insert(name.to_string(), marks);
    }

    /// The known type of a field, if it is read from the same bytes as `wire`.
    pub(super) fn field(&self, message: &str, block: &str, name: &str, wire: &str) -> Option<&str> {
        let ty = self.declared(message, block, name)?;
        let first = ty.split_whitespace().next().unwrap_or("");
        let base = match first.split_once('(') {
            Some((_, base)) => base.trim_end_matches(')'),
            None => self.bases.get(first).map_or(first, String::as_str),
        };
        let text = base
            .strip_prefix("utf8")
            .is_some_and(|length| wire.strip_prefix("bytes") == Some(length));
        (base == wire || text).then_some(ty)
    }

    /// The type of a field as the tables write it: in the message, in the structure that it
    /// extends, or in the block's type.
    fn declared(&self, message: &str, block: &str, name: &str) -> Option<&str> {
        let parent = self.parents.get(message).map(String::as_str);
        let own = [Some(message), parent].into_iter().flatten();
        if let Some(ty) =
            own.clone().find_map(|owner| self.fields.get(&format!("{owner}.{block}.{name}")))
        {
            return Some(ty);
        }
        let shared = own.clone().find_map(|owner| self.fields.get(&format!("{owner}..{block}")))?;
        let structure = shared.split('[').next().unwrap_or("");
        self.fields.get(&format!("{structure}..{name}")).map(String::as_str)
    }
}

/// A message's number, its blocks and their fields, without types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MessageShape {
    range: String,
    number: Option<u64>,
    parts: Vec<ShapePart>,
    /// Whether a field is read from other bytes than the embedded one of its name.
    differs: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ShapePart {
    /// A block and how often it is repeated, as the tables write it.
    Block(String, String),
    /// A field of the block before it.
    Field(String),
}

impl MessageShape {
    /// Begins another message.
    pub(super) fn begin_new(&mut self, range: &str, number: u64) {
        *self = MessageShape::default();
        self.begin(range, Some(number));
    }

    fn begin(&mut self, range: &str, number: Option<u64>) {
        (self.range, self.number) = (range.to_string(), number);
    }

    /// Adds a block.
    pub(super) fn block(&mut self, name: &str, repeat: &str) {
        self.parts.push(ShapePart::Block(name.to_string(), repeat.to_string()));
    }

    /// Says how often the last block is repeated.
    fn repeat(&mut self, repeat: &str) {
        let last = self.parts.iter_mut().rev().find_map(|part| match part {
            ShapePart::Block(_, times) => Some(times),
            ShapePart::Field(_) => None,
        });
        if let Some(times) = last {
            *times = repeat.to_string();
        }
    }

    /// Adds a field of the last block. A field that a choice declares several times is one field.
    pub(super) fn field(&mut self, name: &str, is_known: bool) {
        self.differs |= !is_known;
        let part = ShapePart::Field(name.to_string());
        if self.parts.last() != Some(&part) {
            self.parts.push(part);
        }
    }
}

/// The indentation, name and type of a field's line.
fn declaration(line: &str) -> Option<(usize, &str, &str)> {
    let level = line.len() - line.trim_start().len();
    let field = line.split_once(" => ").map_or(line, |(_, field)| field);
    let (name, ty) = field.split_once(':')?;
    let name = name.trim();
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (is_name && level >= 4).then_some((level, name, ty.trim()))
}

fn integer(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => word.parse().ok(),
    }
}
