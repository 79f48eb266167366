//! Writes values: chooses the writer of a type, and writes numbers, floats, UUIDs and addresses
//! itself.

use std::net::Ipv4Addr;

use super::super::program::*;
use super::{Encoding, Field, Given, JsonKind, Slot, Stop};
use crate::tree::TypeRef;

/// The bits of the float that the text `NaN` stands for.
pub const NAN_32: u32 = 0x7fc0_0000;
/// The same for 64 bits.
pub const NAN_64: u64 = 0x7ff8_0000_0000_0000;

impl Encoding<'_> {
    /// Writes a value by its type. Returns what expressions see of it.
    pub fn value(&mut self, field: &Field) -> Result<Slot, Stop> {
        let tables = self.tables;
        let Some(def) = tables.type_def(field.ty) else {
            return self.fail_at(field, "cannot be encoded: it has no type");
        };
        match &def.read {
            ReadAs::Int { .. } | ReadAs::Bool => self.integer(field, def),
            ReadAs::Float { size, big } => self.float(field, *size, *big),
            ReadAs::Uuid { plain } => self.uuid(field, *plain),
            ReadAs::Ipv4 { big } => self.ipv4(field, *big),
            ReadAs::Bytes(len) => self.bytes(field, *len),
            ReadAs::Text { .. } => self.text(field, &def.read),
            ReadAs::Digits { .. } if field.given == Given::Nothing => {
                self.absent_number(field, def)
            }
            ReadAs::Digits { radix, len } => self.digits(field, *radix, *len),
            ReadAs::List { of, len } => self.list(field, *of, *len),
            ReadAs::Layout { layout, args } => {
                let args = self.args(args, field);
                let Some(layout) = tables.layout(*layout) else { return self.missing(field) };
                let object = self.object(field)?;
                self.layout(layout, &args, object)?;
                Ok(Slot::Number(0))
            }
            ReadAs::Family(family) => self.object_of_class(field, *family),
            ReadAs::Region(region) => self.region(field, region),
            ReadAs::NullOr { present, of } => self.null_or(field, *present, *of),
            ReadAs::Native { native, .. } => match tables.native(*native) {
                Some(code) => match code.native.write {
                    Some(_) if code.native.number && field.given == Given::Nothing => {
                        self.absent_number(field, def)
                    }
                    Some(write) => write(self, field),
                    None => {
                        let name = code.native.name;
                        self.fail_at(field, format!("cannot be encoded: nothing writes a {name}"))
                    }
                },
                None => self.missing(field),
            },
            ReadAs::Value(_) => {
                self.fail_at(field, "cannot be encoded: it describes itself, and stands alone")
            }
        }
    }

    /// The arguments of a type.
    pub(super) fn args(&self, args: &[ExprId], field: &Field) -> Vec<Slot> {
        let value = |id: &ExprId| match (self.tables.ex(*id), self.value_of(*id, field.frame)) {
            (Some(Ex::Slot { slot, .. }), _) => {
                let kept = self.kept(field.frame).get(usize::from(*slot));
                kept.copied().unwrap_or(Slot::Absent)
            }
            (_, super::expr::Value::Known(value)) => Slot::Number(value as u64),
            _ => Slot::Number(0),
        };
        args.iter().map(value).collect()
    }

    /// One of the arguments of a type with code. 0 if it has no value.
    pub fn arg(&self, field: &Field, index: usize) -> u64 {
        match self.tables.type_def(field.ty).map(|def| &def.read) {
            Some(ReadAs::Native { args, .. }) => match args.get(index) {
                Some(id) => match self.value_of(*id, field.frame) {
                    super::expr::Value::Known(value) => value as u64,
                    _ => 0,
                },
                None => 0,
            },
            _ => 0,
        }
    }

    /// The object that a structure is written from.
    pub fn object(&mut self, field: &Field) -> Result<u32, Stop> {
        let Given::Json(node) = field.given else { return self.missing(field) };
        if self.json.kind(node) != JsonKind::Object {
            let kind = self.json.kind(node).word();
            return self.fail(node, format!("is {kind}, where an object is expected"));
        }
        self.enter(node);
        Ok(node)
    }

    fn integer(&mut self, field: &Field, def: &TypeDef) -> Result<Slot, Stop> {
        match field.given {
            Given::Nothing => self.absent_number(field, def),
            _ => {
                let value = self.number(field)?;
                self.put_number(field, value)?;
                Ok(Slot::Number(value as u64))
            }
        }
    }

    /// The next bytes, if they are certain whatever the JSON says.
    pub(super) fn certain_bytes(&self, n: usize) -> Option<&[u8]> {
        let (start, bytes) = &self.certain;
        let from = (self.pos() / 8).checked_sub(*start)?;
        bytes.get(from..from.checked_add(n)?).filter(|_| n > 0 && self.outer.is_empty())
    }

    /// A number that the JSON does not have: the only right one, or one that is computed.
    fn absent_number(&mut self, field: &Field, def: &TypeDef) -> Result<Slot, Stop> {
        let certain = match &def.read {
            ReadAs::Int { size, order, .. } => self.certain_bytes((*size).into()).map(|bytes| {
                let all = bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
                let low = 64 - 8 * u32::from(*size);
                if *order == ByteOrder::Big { all } else { all.swap_bytes() >> low }
            }),
            _ => None,
        };
        let only = def.expect.or(certain).filter(|_| !self.state.exact || field.span);
        match only {
            Some(value) => {
                self.put_number(field, i128::from(value as i64))?;
                Ok(Slot::Number(value))
            }
            None if self.state.exact && !field.span => self.missing(field),
            None => self.put_unknown(*field, field.span.then_some(0)),
        }
    }

    /// The number of a field's value, which is marked as written.
    pub fn number(&mut self, field: &Field) -> Result<i128, Stop> {
        let node = match field.given {
            Given::Number(number) => return Ok(i128::from(number)),
            Given::Nothing => return self.missing(field),
            Given::Json(node) => node,
        };
        self.take(node);
        let symbols = self.tables.symbols(field.ty);
        match self.json.kind(node) {
            JsonKind::Number => self.number_text(field, node),
            JsonKind::Text => match self.json.text(node).parse::<i128>() {
                Ok(number) => Ok(number),
                Err(_) => self.symbol(field, node, symbols),
            },
            JsonKind::True => Ok(1),
            JsonKind::False => Ok(0),
            JsonKind::Object if symbols.is_some() => self.named_number(field, node, symbols),
            kind => self.fail(node, self.expected(field, kind)),
        }
    }

    fn expected(&self, field: &Field, kind: JsonKind) -> String {
        let text = self.type_text(field.ty);
        format!("is {}, where {text} is expected", kind.word())
    }

    fn number_text(&self, field: &Field, node: u32) -> Result<i128, Stop> {
        let text = self.json.text(node);
        if let Ok(number) = text.parse::<i128>() {
            return Ok(number);
        }
        match text.parse::<f64>() {
            Ok(float) if float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0 => {
                Ok(float as i128)
            }
            _ => self.does_not_fit(field, node),
        }
    }

    fn does_not_fit<T>(&self, field: &Field, node: u32) -> Result<T, Stop> {
        let (value, ty) = (self.json.text(node), self.type_text(field.ty));
        self.fail(node, format!("{value} does not fit {ty}"))
    }

    /// An enum value by its name alone.
    fn symbol(&self, field: &Field, node: u32, symbols: Option<&EnumDef>) -> Result<i128, Stop> {
        let name = self.json.text(node);
        let Some(symbols) = symbols else {
            return self.fail(node, self.expected(field, JsonKind::Text));
        };
        match symbols.values.iter().find(|value| value.name == name) {
            Some(value) => Ok(i128::from(value.value)),
            None => {
                let known = symbols.values.iter().map(|value| &*value.name);
                let near = crate::suggest::suggestion(name, known);
                self.fail(node, format!("{} has no value `{name}`{near}", symbols.name))
            }
        }
    }

    /// `{"value": 20, "name": "kName"}` or `{"value": 3, "names": ["kA", "kB"]}`. The number
    /// counts; without one, the names.
    fn named_number(
        &mut self,
        field: &Field,
        node: u32,
        symbols: Option<&EnumDef>,
    ) -> Result<i128, Stop> {
        let json = self.json;
        if let Some(other) =
            json.children(node).find(|c| !matches!(json.key(*c), "value" | "name" | "names"))
        {
            return self.fail(other, "is no part of a named number: it has value, name, names");
        }
        if let Some(value) = json.get(node, "value") {
            return match json.kind(value) {
                JsonKind::Number => self.number_text(field, value),
                JsonKind::True => Ok(1),
                JsonKind::False => Ok(0),
                JsonKind::Text => match json.text(value).parse::<i128>() {
                    Ok(number) => Ok(number),
                    Err(_) => self.does_not_fit(field, value),
                },
                kind => self.fail(value, self.expected(field, kind)),
            };
        }
        if let Some(name) = json.get(node, "name") {
            return self.symbol(field, name, symbols);
        }
        let Some(names) = json.get(node, "names") else {
            return self.fail(node, "has neither a value nor a name");
        };
        let mut all = 0;
        for name in json.children(names) {
            all |= self.symbol(field, name, symbols)?;
        }
        Ok(all)
    }

    /// Writes a number by an integer type, in digits, or by a type with code.
    pub fn put_number(&mut self, field: &Field, value: i128) -> Result<(), Stop> {
        match self.tables.type_def(field.ty).map(|def| &def.read) {
            Some(ReadAs::Native { native, .. }) => {
                let write = self.tables.native(*native).and_then(|code| code.native.write);
                let Some(write) = write else {
                    return self.fail_at(field, "cannot be encoded: nothing writes this number");
                };
                let Ok(value) = u64::try_from(value) else {
                    return self.fail_at(field, format!("{value} is no length"));
                };
                write(self, &Field { given: Given::Number(value), ..*field }).map(|_| ())
            }
            Some(ReadAs::Digits { radix, len }) => self.put_digits(field, *radix, *len, value),
            _ => {
                let bytes = self.integer_bytes(field, value)?;
                self.out().put(&bytes);
                Ok(())
            }
        }
    }

    /// A number as the bytes of an integer type.
    pub(super) fn integer_bytes(&self, field: &Field, value: i128) -> Result<Vec<u8>, Stop> {
        let def = self.tables.type_def(field.ty);
        let (size, signed, order) = match def.map(|def| &def.read) {
            Some(ReadAs::Int { size, signed, order }) => (*size, *signed, *order),
            Some(ReadAs::Bool) => (1, false, ByteOrder::Little),
            _ => return self.fail_at(field, "cannot be encoded: it is no integer"),
        };
        let bits = u32::from(size) * 8;
        let range = match signed {
            true => -(1i128 << (bits - 1))..=(1i128 << (bits - 1)) - 1,
            false => 0..=(1i128 << bits) - 1,
        };
        if !range.contains(&value) {
            let ty = self.type_text(field.ty);
            return self.fail_at(field, format!("{value} does not fit {ty}"));
        }
        let mut value = value as u64;
        if order == ByteOrder::Pdp {
            value = u64::from((value as u32).rotate_right(16));
        }
        let mut bytes = value.to_le_bytes().get(..usize::from(size)).unwrap_or(&[]).to_vec();
        if order == ByteOrder::Big {
            bytes.reverse();
        }
        Ok(bytes)
    }

    fn float(&mut self, field: &Field, size: u8, big: bool) -> Result<Slot, Stop> {
        let Given::Json(node) = field.given else { return self.missing(field) };
        let bits = match size {
            4 => u64::from(self.float32(field, node)?),
            _ => self.float64(field, node)?,
        };
        let mut bytes = bits.to_le_bytes().get(..usize::from(size)).unwrap_or(&[]).to_vec();
        if big {
            bytes.reverse();
        }
        // A NaN has many forms. The message's problem shows which one it was.
        let is_nan = self.json.text(node) == "NaN";
        let shown = self.shown_bytes(node).find(|shown| is_nan && shown.len() == bytes.len());
        let bytes = shown.map_or(bytes, <[u8]>::to_vec);
        self.out().put(&bytes);
        Ok(Slot::Number(bits))
    }

    /// The bits of a float of 32 bits.
    pub fn float32(&mut self, field: &Field, node: u32) -> Result<u32, Stop> {
        self.take(node);
        let text = self.json.text(node);
        match (self.json.kind(node), text) {
            (JsonKind::Text, "NaN") => Ok(NAN_32),
            (JsonKind::Text, "Infinity") => Ok(f32::INFINITY.to_bits()),
            (JsonKind::Text, "-Infinity") => Ok(f32::NEG_INFINITY.to_bits()),
            (JsonKind::Number, _) => match text.parse::<f32>() {
                Ok(float) if float.is_finite() => Ok(float.to_bits()),
                _ => self.does_not_fit(field, node),
            },
            (kind, _) => self.fail(node, self.expected(field, kind)),
        }
    }

    fn float64(&mut self, field: &Field, node: u32) -> Result<u64, Stop> {
        self.take(node);
        let text = self.json.text(node);
        match (self.json.kind(node), text) {
            (JsonKind::Text, "NaN") => Ok(NAN_64),
            (JsonKind::Text, "Infinity") => Ok(f64::INFINITY.to_bits()),
            (JsonKind::Text, "-Infinity") => Ok(f64::NEG_INFINITY.to_bits()),
            (JsonKind::Number, _) => match text.parse::<f64>() {
                Ok(float) if float.is_finite() => Ok(float.to_bits()),
                _ => self.does_not_fit(field, node),
            },
            (kind, _) => self.fail(node, self.expected(field, kind)),
        }
    }

    /// The content of a text of JSON, which is marked as written.
    pub fn string(&mut self, field: &Field) -> Result<(u32, &str), Stop> {
        let Given::Json(node) = field.given else { return self.missing(field) };
        self.take(node);
        match self.json.kind(node) {
            JsonKind::Text => Ok((node, self.json.text(node))),
            kind => self.fail(node, self.expected(field, kind)),
        }
    }

    fn uuid(&mut self, field: &Field, plain: bool) -> Result<Slot, Stop> {
        let bytes = self.uuid_bytes(field, plain)?;
        self.out().put(&bytes);
        Ok(Slot::Number(0))
    }

    /// The bytes of a UUID, as written or in Microsoft's order.
    pub fn uuid_bytes(&mut self, field: &Field, plain: bool) -> Result<[u8; 16], Stop> {
        let (node, text) = self.string(field)?;
        let dashes = [8, 13, 18, 23].iter().all(|at| text.as_bytes().get(*at) == Some(&b'-'));
        let digits: String = text.chars().filter(|c| *c != '-').collect();
        let bytes =
            super::super::parse_hex(&digits).and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
        let Some(mut bytes) = bytes.filter(|_| dashes && text.len() == 36) else {
            let wanted = "is no UUID such as ea489821-6c35-4bd0-9dae-bb17c585e680";
            return self.fail(node, wanted);
        };
        if !plain {
            for part in [0..4, 4..6, 6..8] {
                bytes.get_mut(part).unwrap_or_default().reverse();
            }
        }
        Ok(bytes)
    }

    fn ipv4(&mut self, field: &Field, big: bool) -> Result<Slot, Stop> {
        let (node, text) = self.string(field)?;
        let Ok(address) = text.parse::<Ipv4Addr>() else {
            return self.fail(node, "is no IPv4 address such as 127.0.0.1");
        };
        let mut bytes = address.octets();
        let number = u64::from(u32::from_be_bytes(bytes));
        if !big {
            bytes.reverse();
        }
        self.out().put(&bytes);
        Ok(Slot::Number(number))
    }

    /// The bytes that a text in hex stands for.
    pub fn hex(&self, node: u32) -> Result<Vec<u8>, Stop> {
        if self.json.kind(node) != JsonKind::Text {
            let kind = self.json.kind(node).word();
            return self.fail(node, format!("is {kind}, where bytes in hex are expected"));
        }
        let text = self.json.text(node);
        let bytes = super::super::parse_hex(text);
        bytes.map_or_else(|| self.fail(node, "is no hex: two digits a byte"), Ok)
    }

    fn null_or(&mut self, field: &Field, present: TypeRef, of: TypeRef) -> Result<Slot, Stop> {
        let Given::Json(node) = field.given else { return self.missing(field) };
        let there = self.json.kind(node) != JsonKind::Null;
        let number = i128::from(there);
        self.put_number(&Field { ty: present, ..*field }, number)?;
        if !there {
            self.take(node);
            return Ok(Slot::Number(0));
        }
        let object = self.object(field)?;
        match self.tables.type_def(of).map(|def| &def.read) {
            Some(ReadAs::Layout { layout, args }) => {
                let args = self.args(args, field);
                let Some(layout) = self.tables.layout(*layout) else { return self.missing(field) };
                self.layout(layout, &args, object)?;
            }
            _ => {
                let name = self.tables.value_name();
                let given = self.lookup_sym(object, name).map_or(Given::Nothing, Given::Json);
                self.value(&Field { name, ty: of, span: false, object, given, ..*field })?;
            }
        }
        Ok(Slot::Number(1))
    }

    fn object_of_class(&mut self, field: &Field, family: FamilyId) -> Result<Slot, Stop> {
        let tables = self.tables;
        let Some(family) = tables.family(family) else { return self.missing(field) };
        let Given::Json(node) = field.given else { return self.missing(field) };
        let class = Field { name: family.field, ty: family.of, span: false, ..*field };
        if self.json.kind(node) == JsonKind::Null {
            let Some(null) = family.null else {
                return self.fail(node, "is null, where an object is expected");
            };
            self.take(node);
            self.put_number(&class, i128::from(null))?;
            return Ok(Slot::Number(null));
        }
        let object = self.object(field)?;
        let Some(given) = self.lookup_sym(object, family.field) else {
            return self.missing(&Field { object, given: Given::Nothing, ..class });
        };
        let class = Field { object, given: Given::Json(given), ..class };
        let number = self.number(&class)?;
        self.put_number(&class, number)?;
        let member = u64::try_from(number).ok().and_then(|number| family.numbers.find(number));
        match member.and_then(|at| family.members.get(at)) {
            Some((_, id)) => {
                let Some(layout) = tables.layout(*id) else { return self.missing(field) };
                self.layout(layout, &[], object)?;
                Ok(Slot::Number(number as u64))
            }
            None => {
                self.undecoded(object)?;
                Err(Stop::Undecoded)
            }
        }
    }
}
