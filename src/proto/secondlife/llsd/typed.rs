//! What tables say of the values in a body: `mapping { key: TYPE … }`, positions as the names of a
//! map's keys, lists of these.
//!
//! Self-describing values may always be other than tables expect. Then they are read as what they
//! are.

use super::{LlsdReader, Part};
use crate::table::{LayoutId, ReadAs, ValueRead};
use crate::tree::{Kind, Sym, TextKind, TypeRef};

/// The most bytes of a number that is written as bytes.
const MAX_NUMBER: usize = 8;

impl LlsdReader<'_, '_, '_> {
    fn read_as(&self, ty: Option<TypeRef>) -> Option<&ReadAs> {
        self.run.tables.type_def(ty?).map(|def| &def.read)
    }

    /// What is expected of the elements of an array of which `expected` is expected.
    pub(super) fn type_of_element(&self, expected: Option<TypeRef>) -> Option<TypeRef> {
        match self.read_as(expected)? {
            ReadAs::List { of, .. } => Some(*of),
            ReadAs::Value(ValueRead::Mapping { array: Some(array), .. }) => {
                self.type_of_element(Some(*array))
            }
            _ => None,
        }
    }

    /// The field that the last key of such a map names.
    pub(super) fn field_of_key(&self, expected: Option<TypeRef>) -> Option<(Sym, TypeRef)> {
        let keys = match self.read_as(expected)? {
            ReadAs::Layout { layout, .. } => *layout,
            ReadAs::Value(ValueRead::Mapping { keys: Some(keys), .. }) => *keys,
            _ => return None,
        };
        field_named(self.run.tables, keys, &self.text)
    }

    /// What is expected of the values at the other keys of such a map.
    pub(super) fn type_of_value(&self, expected: Option<TypeRef>) -> Option<TypeRef> {
        match self.read_as(expected)? {
            ReadAs::Value(ValueRead::Mapping { of, .. }) => *of,
            _ => None,
        }
    }

    /// Gives the value that was read the type that was expected, if it is of this kind. What tables
    /// hide is hidden in any case.
    pub(super) fn take_type(&mut self, index: u32, expected: TypeRef) {
        let tables = self.run.tables;
        let (Some(node), Some(def)) =
            (self.run.tree.get(index).copied(), tables.type_def(expected))
        else {
            return;
        };
        self.run.tree.mark(index, def.marks);
        let fits = match (&def.read, node.kind) {
            (ReadAs::Value(ValueRead::Any), _) => node.kind != Kind::Null,
            (ReadAs::Value(ValueRead::Text), Kind::Text(_) | Kind::UuidBe) => true,
            (ReadAs::Value(ValueRead::Int | ValueRead::Uint), Kind::Bytes | Kind::Text(_)) => {
                return self.take_number(index, expected);
            }
            (ReadAs::Value(ValueRead::Uint), Kind::Signed) => {
                // An unsigned number of 32 bits is written as a signed one.
                self.run.tree.amend(index, |node| {
                    (node.kind, node.value) =
                        (Kind::Unsigned, u64::from(node.value as i64 as i32 as u32));
                });
                true
            }
            (ReadAs::Value(ValueRead::Int), Kind::Signed) => true,
            (ReadAs::Value(ValueRead::Float), Kind::F64) => true,
            (ReadAs::Value(ValueRead::Mapping { .. }), Kind::Struct) => true,
            (ReadAs::Layout { .. }, Kind::Struct) => true,
            (ReadAs::List { .. }, Kind::List) => node.ty != self.part(Part::Map),
            _ => false,
        };
        if fits {
            self.run.tree.amend(index, |node| node.ty = expected);
        }
    }

    /// A number that is written as up to eight bytes, the most significant first, or as digits in a
    /// text: LLSD's own integers have 32 bits and a sign.
    fn take_number(&mut self, index: u32, expected: TypeRef) {
        let Some(node) = self.run.tree.get(index).copied() else { return };
        let (binary, string) = (self.part(Part::Binary), self.part(Part::String));
        let number = match node.kind {
            Kind::Bytes => {
                let (at, length) = node.content();
                let from = at.saturating_sub(self.origin);
                let bytes = self.bytes.get(from..from.saturating_add(length)).unwrap_or_default();
                let fits = !bytes.is_empty() && bytes.len() <= MAX_NUMBER;
                fits.then(|| (big_endian(bytes), bytes.len() > 4))
            }
            // Bytes that were written as text are kept in hex.
            Kind::Text(TextKind::Owned) if node.ty == binary => {
                let hex = self.run.tree.owned(node.value).raw();
                let fits = !hex.is_empty() && hex.len() <= 2 * MAX_NUMBER;
                let number = fits.then(|| u64::from_str_radix(hex, 16).ok()).flatten();
                number.map(|number| (number, hex.len() > 8))
            }
            Kind::Text(TextKind::Utf8) if node.ty == string => {
                let (at, length) = node.content();
                let from = at.saturating_sub(self.origin);
                let digits = self.bytes.get(from..from.saturating_add(length)).unwrap_or_default();
                let number =
                    std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
                number.map(|number: u64| (number, number > u64::from(u32::MAX)))
            }
            _ => None,
        };
        if let Some(number) = number {
            let kind = if number.1 { Kind::Unsigned64 } else { Kind::Unsigned };
            self.run.tree.amend(index, |node| {
                (node.kind, node.value, node.ty) = (kind, number.0, expected);
            });
        }
    }
}

fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The field of a layout of positions with this name.
pub(in crate::proto::secondlife) fn field_named(
    tables: &crate::table::Tables,
    layout: LayoutId,
    name: &str,
) -> Option<(Sym, TypeRef)> {
    let layout = tables.layout(layout)?;
    let count = u32::from(layout.positions?.count);
    (0..count)
        .filter_map(|at| tables.position(layout, at))
        .find(|(field, _)| tables.name(*field) == name)
}
