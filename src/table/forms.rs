//! In which forms the values of a name's fields are in a message's bytes, by the tables alone:
//! without reading a byte.

use super::Tables;
use super::program::*;
use crate::tree::{Sym, TextKind, TypeRef};

/// A form of values in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueForm {
    /// A text in an encoding.
    Text(TextKind),
    /// An integer.
    Int(IntForm),
    /// A floating-point number.
    Float,
    /// An object, or nothing in its place.
    Object,
}

/// An integer of whole bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntForm {
    size: u8,
    signed: bool,
    order: ByteOrder,
    /// The names of some of its values.
    symbols: Option<EnumId>,
}

impl IntForm {
    /// A number's bytes; `None` for a number that it cannot have.
    pub fn bytes(self, number: i128) -> Option<Vec<u8>> {
        let bits = u32::from(self.size) * 8;
        let values = if self.signed { -(1 << (bits - 1))..1 << (bits - 1) } else { 0..1 << bits };
        if !values.contains(&number) {
            return None;
        }
        Some(self.lowest_bytes(number))
    }

    /// The bytes of a number, of which those that it has no room for are left out.
    fn lowest_bytes(self, number: i128) -> Vec<u8> {
        let value = if self.order == ByteOrder::Pdp {
            i128::from((number as u32).rotate_left(16))
        } else {
            number
        };
        let mut bytes: Vec<u8> = value.to_le_bytes().into_iter().take(self.size.into()).collect();
        if self.order == ByteOrder::Big {
            bytes.reverse();
        }
        bytes
    }
}

impl Tables {
    /// The forms of the values of all fields of a name, and of the elements of those that are
    /// lists. `None` where a value may be anything but texts and numbers that are in the message as
    /// they are.
    pub fn forms_of(&self, name: Sym) -> Option<Vec<ValueForm>> {
        let header = self
            .services()
            .iter()
            .flat_map(|service| &service.header)
            .map(|(_, name, ty)| (*name, *ty));
        let steps = self.steps().iter().filter_map(|step| match step {
            LayoutStep::Field { name, ty, .. } | LayoutStep::Empty { name, ty } => {
                Some((*name, *ty))
            }
            _ => None,
        });
        let families = self.families().iter().map(|family| (family.field, family.of));
        let mut forms = Vec::new();
        for (_, ty) in header.chain(steps).chain(families).filter(|field| field.0 == name) {
            self.add_forms(ty, &mut forms)?;
        }
        (!self.is_builtin(name) && !forms.is_empty()).then_some(forms)
    }

    /// The bytes of each number of a form that has a name; none where no number has it. `None` for
    /// flags, of which a number may have several.
    pub fn bytes_named(&self, form: IntForm, name: &str) -> Option<Vec<Vec<u8>>> {
        let Some(symbols) = form.symbols.and_then(|symbols| self.enum_def(symbols)) else {
            return Some(Vec::new());
        };
        let named = symbols.values.iter().filter(|value| value.name == name);
        (!symbols.flags).then(|| named.map(|value| form.lowest_bytes(value.value.into())).collect())
    }

    fn add_forms(&self, ty: TypeRef, forms: &mut Vec<ValueForm>) -> Option<()> {
        let def = self.type_def(ty)?;
        let mut add = |form| {
            if !forms.contains(&form) {
                forms.push(form);
            }
        };
        match &def.read {
            ReadAs::Text { .. } | ReadAs::Native { .. } => {
                let encodings = self.encodings(def);
                encodings.iter().for_each(|kind| add(ValueForm::Text(*kind)));
                return (!encodings.is_empty()).then_some(());
            }
            ReadAs::Int { size, signed, order } => {
                add(ValueForm::Int(IntForm {
                    size: *size,
                    signed: *signed,
                    order: *order,
                    symbols: def.symbols,
                }));
            }
            ReadAs::Float { .. } => add(ValueForm::Float),
            ReadAs::List { of, .. } => return self.add_forms(*of, forms),
            ReadAs::Layout { .. } | ReadAs::Family(_) => add(ValueForm::Object),
            ReadAs::NullOr { of, .. } => {
                add(ValueForm::Object);
                return self.add_forms(*of, forms);
            }
            _ => return None,
        }
        Some(())
    }

    /// The encodings that the values of a type may have, if they are texts whose bytes are in the
    /// message as they are, or inverted.
    pub(in crate::table) fn encodings(&self, def: &TypeDef) -> Vec<TextKind> {
        match &def.read {
            ReadAs::Text { kind, or_latin1: false, .. } => vec![*kind],
            ReadAs::Text { kind, or_latin1: true, .. } => vec![*kind, TextKind::Latin1],
            ReadAs::Native { native, .. } => {
                self.native(*native).map_or(Vec::new(), |code| code.native.texts.to_vec())
            }
            _ => Vec::new(),
        }
    }

    /// Whether all values of a type are texts whose bytes are in the message as they are, or
    /// inverted.
    pub fn is_text(&self, ty: TypeRef) -> bool {
        self.type_def(ty).is_some_and(|def| match &def.read {
            ReadAs::Text { .. } => true,
            ReadAs::Native { native, .. } => {
                self.native(*native).is_some_and(|native| !native.native.texts.is_empty())
            }
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_number_are_those_that_the_form_has_room_for() {
        let form = |size, signed, order| IntForm { size, signed, order, symbols: None };
        let bytes = |form: IntForm, number| form.bytes(number);
        assert_eq!(bytes(form(2, false, ByteOrder::Little), 0x1234), Some(vec![0x34, 0x12]));
        assert_eq!(bytes(form(2, false, ByteOrder::Big), 0x1234), Some(vec![0x12, 0x34]));
        assert_eq!(bytes(form(3, false, ByteOrder::Big), 0x12_3456), Some(vec![0x12, 0x34, 0x56]));
        assert_eq!(
            bytes(form(4, false, ByteOrder::Pdp), 0x1234_5678),
            Some(vec![0x34, 0x12, 0x78, 0x56])
        );
        assert_eq!(bytes(form(1, false, ByteOrder::Little), 256), None);
        assert_eq!(bytes(form(1, false, ByteOrder::Little), -1), None);
        assert_eq!(bytes(form(1, true, ByteOrder::Little), -1), Some(vec![0xff]));
        assert_eq!(
            bytes(form(8, true, ByteOrder::Little), i128::from(i64::MIN)),
            Some(vec![0, 0, 0, 0, 0, 0, 0, 0x80])
        );
        assert_eq!(
            bytes(form(8, false, ByteOrder::Little), i128::from(u64::MAX)),
            Some(vec![0xff; 8])
        );
        assert_eq!(bytes(form(8, false, ByteOrder::Little), i128::from(u64::MAX) + 1), None);
    }
}
