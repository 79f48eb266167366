//! Random messages of all tables with extreme values, there and back: JSON becomes bytes, these
//! decode to the same values, and the values to the same bytes.
//!
//! A generator runs the steps of each layout, as the decoder does, and takes a random value where
//! the decoder would read one. What it makes may still be no message, where two fields contradict
//! each other: the encoder has to say so. It must never write something else.

use std::collections::BTreeMap;
use std::time::Duration;

use moulsniff::proto::LazyTables;
use moulsniff::table::{
    BinaryOp, Ex, ExprId, Layout, LayoutStep, Len, LenFrom, MessageDef, NO_SLOT, ReadAs, Sender,
    Tables, Test, TextEnd, TypeDef, ValueRead, apply,
};
use moulsniff::tree::{Sym, TextKind, TypeRef, mark};
use moulsniff::{Decoder, Record};
use serde_json::{Map, Value, json};

use crate::common::Random;

type Fields = Map<String, Value>;

/// Makes values. An error is a message that cannot be.
struct Maker<'t> {
    tables: &'t Tables,
    random: Random,
    /// For each open region: whether nothing may follow in it.
    ended: Vec<bool>,
    /// The last element of a list was made.
    last: bool,
    last_text: Option<(Sym, Vec<u8>)>,
    values: usize,
}

/// Why no message came of it.
type Made<T> = Result<T, &'static str>;
type Slots = Vec<Option<i128>>;

const TEXTS: [&str; 12] = [
    "",
    "a",
    "Shroomie",
    "ünïcode",
    "日本語",
    "\u{1f600} and \u{10ffff}",
    "\"quoted\" \\ back",
    "two\nlines\tand\rmore",
    "%s%n",
    "\u{feff}bom",
    "\u{e000}\u{fffd}",
    "({\"a\",1,})",
];

impl Maker<'_> {
    fn ex(&mut self, id: ExprId, slots: &Slots) -> Option<i128> {
        let tables = self.tables;
        match tables.ex(id)? {
            Ex::Const(n) => Some(*n),
            Ex::Slot { slot, signed } => {
                let value = *slots.get(usize::from(*slot))?;
                value.map(|v| if *signed { v } else { i128::from(v as u64) })
            }
            Ex::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) => {
                let (a, b) = (self.ex(*a, slots).unwrap_or(0), self.ex(*b, slots).unwrap_or(0));
                apply(*op, a, b)
            }
            Ex::Binary(op, a, b) => apply(*op, self.ex(*a, slots)?, self.ex(*b, slots)?),
            Ex::Not(a) => Some(i128::from(self.ex(*a, slots).unwrap_or(0) == 0)),
            Ex::In(a, list) => {
                let value = self.ex(*a, slots)?;
                Some(i128::from(list.iter().any(|of| self.ex(*of, slots) == Some(value))))
            }
            Ex::Remaining => Some(if self.more() { 4096 } else { 0 }),
            Ex::More => Some(i128::from(self.more())),
            Ex::Dialect(_) | Ex::State(_) => Some(0),
            Ex::Recall(..) | Ex::Here | Ex::Next(_) => None,
        }
    }

    /// Whether the region goes on. Once it does not, nothing follows.
    fn more(&mut self) -> bool {
        let stop = self.random.one_in(3);
        let ended = self.ended.last_mut().unwrap();
        *ended |= stop;
        !*ended
    }

    fn test(&mut self, test: &Test, slots: &Slots) -> bool {
        let number = |slot: u16| slots.get(usize::from(slot)).copied().flatten().map(|v| v as u64);
        match *test {
            Test::Has(slot, mask) => number(slot).is_some_and(|v| v & mask == mask),
            Test::Equals(slot, value) => number(slot) == Some(value),
            Test::Differs(slot, value) => number(slot).is_some_and(|v| v != value),
            Test::Above(slot, value) => number(slot).is_some_and(|v| v > value),
            Test::Dialect(_, spoken) => !spoken,
            Test::More => self.more(),
            Test::General(id) => self.ex(id, slots).unwrap_or(0) != 0,
        }
    }

    fn layout(&mut self, layout: &Layout, args: Slots, to: &mut Fields) -> Made<()> {
        if self.values > 3000 || self.ended.len() > 40 {
            return Err("too many values");
        }
        let tables = self.tables;
        let mut slots: Slots = args;
        slots.resize(usize::from(layout.slots), None);
        let mut at = layout.start;
        while let Some(step) = tables.step(at) {
            at += 1;
            match step {
                LayoutStep::Field { name, ty, slot, marks, .. } => {
                    let def = tables.type_def(*ty).unwrap();
                    let span = (marks | def.marks) & mark::SPAN != 0;
                    if !span && *self.ended.last().unwrap() {
                        return Err("a field behind the end");
                    }
                    let (mut value, mut seen) = self.value(*ty, &slots, *slot != NO_SLOT)?;
                    if tables.name(*name) == "recv_game_id" {
                        // Of any other game the messages before say which one it is.
                        (value, seen) = (0.into(), Some(0));
                    }
                    if let Some(text) = value.as_str() {
                        self.last_text = Some((*name, text.as_bytes().to_vec()));
                    }
                    if !span {
                        to.insert(tables.name(*name).to_string(), value);
                    }
                    if let Some(place) = slots.get_mut(usize::from(*slot)) {
                        *place = seen;
                    }
                }
                LayoutStep::Branch { test, otherwise } if !self.test(test, &slots) => {
                    at = *otherwise;
                }
                LayoutStep::Jump(to) => at = *to,
                LayoutStep::Switch { on, targets, otherwise } => {
                    let value = self.ex(*on, &slots);
                    let found = targets.iter().find(|t| Some(t.0) == value);
                    at = found.map_or(*otherwise, |t| t.1);
                }
                LayoutStep::Word { name, slot } => {
                    let text = self.last_text.as_ref().filter(|(of, _)| of == name);
                    let number = text.map(|(_, text)| i128::from(tables.word_number(text)));
                    slots[usize::from(*slot)] = number;
                }
                LayoutStep::Undecoded => {
                    let n = self.random.below(9);
                    if n > 0 && !self.ended.last().unwrap() {
                        to.insert("undecoded".into(), self.hex(n));
                    }
                    *self.ended.last_mut().unwrap() = true;
                    return Ok(());
                }
                LayoutStep::Last => self.last = true,
                LayoutStep::Empty { name, .. } => {
                    to.insert(tables.name(*name).to_string(), json!([]));
                }
                LayoutStep::End => return Ok(()),
                _ => {}
            }
        }
        Ok(())
    }

    fn hex(&mut self, n: usize) -> Value {
        let extreme = self.random.below(4);
        let byte = |random: &mut Random| match extreme {
            0 => 0,
            1 => 0xff,
            _ => random.next() as u8,
        };
        (0..n).map(|_| format!("{:02x}", byte(&mut self.random))).collect::<String>().into()
    }

    /// A number between two, often one at an end. `kept`: other fields may depend on it.
    fn number(&mut self, def: &TypeDef, least: i128, most: i128, kept: bool) -> i128 {
        if let Some(value) = def.expect {
            return i128::from(value as i64).clamp(least, most);
        }
        let most = def.max.map_or(most, |max| most.min(i128::from(max)));
        if let Some(symbols) = def.symbols.and_then(|id| self.tables.enum_def(id))
            && !self.random.one_in(8)
        {
            let mut value = 0;
            for _ in 0..if symbols.flags { self.random.below(4) } else { 1 } {
                value |= self.random.of(&symbols.values).value;
            }
            let value = if least < 0 { i128::from(value as i64) } else { i128::from(value) };
            return value.clamp(least, most);
        }
        if kept && !self.random.one_in(6) {
            return i128::from(self.random.below(4) as u8).clamp(least, most);
        }
        let range = (most - least + 1) as u128;
        let any = least + (u128::from(self.random.next()) % range) as i128;
        let all = [least, most, 0, 1, -1, any, most / 2 + 1];
        self.random.of(&all).clamp(least, most)
    }

    fn count(&mut self) -> usize {
        match self.random.below(40) {
            0 => 60,
            1..=12 => 0,
            n => n % 4,
        }
    }

    /// How many units a value has, where that is decided before it.
    fn decided(&mut self, len: Len, slots: &Slots) -> Made<Option<usize>> {
        match len.from {
            LenFrom::Const(n) => Ok(Some(n as usize)),
            LenFrom::Expr(id) => match self.ex(id, slots) {
                Some(n @ 0..=400) => Ok(Some(n as usize)),
                _ => Err("a length that cannot be"),
            },
            LenFrom::Rest | LenFrom::To(_) | LenFrom::Until(_) | LenFrom::Blanks
                if *self.ended.last().unwrap() =>
            {
                Ok(Some(0))
            }
            _ => Ok(None),
        }
    }

    fn take_rest(&mut self, len: Len) {
        if matches!(len.from, LenFrom::Rest) {
            *self.ended.last_mut().unwrap() = true;
        }
    }

    /// A value, and what expressions see of it.
    fn value(&mut self, ty: TypeRef, slots: &Slots, kept: bool) -> Made<(Value, Option<i128>)> {
        let tables = self.tables;
        self.values += 1;
        let def = tables.type_def(ty).ok_or("no type")?;
        match &def.read {
            ReadAs::Int { size, signed, .. } => {
                let bits = u32::from(*size) * 8;
                let (least, most) = match signed {
                    true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
                    false => (0, (1i128 << bits) - 1),
                };
                let n = self.number(def, least, most, kept);
                Ok((number(n), Some(n)))
            }
            ReadAs::Bool => {
                let n = i128::from(self.random.one_in(2));
                Ok((if n == 1 { true.into() } else { false.into() }, Some(n)))
            }
            ReadAs::Float { size, .. } => Ok((self.float(*size), None)),
            ReadAs::Uuid { .. } => Ok((self.uuid(), None)),
            ReadAs::Ipv4 { .. } => {
                let all = ["0.0.0.0", "255.255.255.255", "192.0.2.1"];
                Ok((self.random.of(&all).into(), None))
            }
            ReadAs::Bytes(len) => {
                let n = match self.decided(*len, slots)? {
                    Some(n) => n,
                    None => self.count(),
                };
                self.take_rest(*len);
                let value = self.hex(n);
                let ends = match len.from {
                    LenFrom::To(end) => vec![end],
                    LenFrom::Until(place) => tables.delimiter(place).to_vec(),
                    LenFrom::Zero => vec![0],
                    _ => Vec::new(),
                };
                let bytes = moulsniff::table::parse_hex(value.as_str().unwrap()).unwrap();
                if !ends.is_empty() && bytes.windows(ends.len()).any(|w| w == ends) {
                    return Err("the end within the bytes");
                }
                Ok((value, None))
            }
            ReadAs::Text { kind, or_latin1, len, end } => {
                self.text(*kind, *or_latin1, *len, *end, slots).map(|text| (text, None))
            }
            ReadAs::Digits { radix, len } => {
                let most = match self.decided(*len, slots)? {
                    Some(0) => return Err("no digits"),
                    Some(n) => i128::from(*radix).pow(n.min(12) as u32) - 1,
                    None => 1_000_000,
                };
                let n = self.number(def, 0, most, kept);
                Ok((number(n), Some(n)))
            }
            ReadAs::List { of, len } => self.list(*of, *len, slots).map(|list| (list, None)),
            ReadAs::Layout { layout, args } => {
                let args = args.iter().map(|arg| self.ex(*arg, slots)).collect();
                let mut fields = Fields::new();
                self.layout(tables.layout(*layout).unwrap(), args, &mut fields)?;
                Ok((fields.into(), None))
            }
            ReadAs::Family(family) => {
                let family = &tables.families()[family.0 as usize];
                if family.null.is_some() && (self.values > 60 || self.random.one_in(4)) {
                    return Ok((Value::Null, family.null.map(i128::from)));
                }
                let (class, layout) = self.random.of(&family.members);
                let mut fields = Fields::new();
                fields.insert(tables.name(family.field).to_string(), class.into());
                self.layout(tables.layout(layout).unwrap(), Vec::new(), &mut fields)?;
                Ok((fields.into(), Some(i128::from(class))))
            }
            ReadAs::Region(region) => {
                self.ended.push(false);
                let form = if self.random.one_in(3) { region.inner.len() } else { 1 };
                let form = self.random.below(form);
                let made = self.value(region.inner[form], slots, false);
                self.ended.pop();
                self.take_rest(region.len);
                Ok((made?.0, None))
            }
            ReadAs::NullOr { of, .. } => {
                if self.random.one_in(3) {
                    return Ok((Value::Null, Some(0)));
                }
                let value = self.value(*of, slots, false)?.0;
                Ok(match value {
                    Value::Object(_) => (value, Some(1)),
                    value => (json!({ "value": value }), Some(1)),
                })
            }
            ReadAs::Native { args, .. } => {
                let arg = args.first().and_then(|arg| self.ex(*arg, slots));
                self.native(def, arg, kept)
            }
            ReadAs::Value(read) => Ok((self.mudmode(*read, def)?, None)),
        }
    }

    fn float(&mut self, size: u8) -> Value {
        let special = ["NaN", "Infinity", "-Infinity"];
        if self.random.one_in(6) {
            return self.random.of(&special).into();
        }
        let bits = self.random.next();
        let text = match size {
            4 => {
                let all =
                    [0.0, -0.0, f32::MAX, f32::MIN, f32::MIN_POSITIVE, f32::from_bits(1), 0.1];
                let any = Some(f32::from_bits(bits as u32)).filter(|any| any.is_finite());
                format!("{:e}", any.filter(|_| bits >> 63 == 0).unwrap_or(self.random.of(&all)))
            }
            _ => {
                let all =
                    [0.0, -0.0, f64::MAX, f64::MIN, f64::MIN_POSITIVE, f64::from_bits(1), 0.1];
                let any = Some(f64::from_bits(bits)).filter(|any| any.is_finite());
                format!("{:e}", any.filter(|_| bits & 1 == 0).unwrap_or(self.random.of(&all)))
            }
        };
        serde_json::from_str(&text).unwrap()
    }

    fn uuid(&mut self) -> Value {
        let hex = self.hex(16);
        let hex = hex.as_str().unwrap();
        let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
        parts.join("-").into()
    }

    fn text(
        &mut self,
        kind: TextKind,
        or_latin1: bool,
        len: Len,
        end: TextEnd,
        slots: &Slots,
    ) -> Made<Value> {
        let wide = matches!(kind, TextKind::Utf16 | TextKind::Inverted16);
        let latin1 = matches!(kind, TextKind::Latin1 | TextKind::InvertedLatin1) && !or_latin1;
        let mut text = self.random.of(&TEXTS).to_string();
        if self.random.one_in(30) {
            text = text.repeat(40);
        }
        let whole = end == TextEnd::Whole && !matches!(len.from, LenFrom::Const(_) | LenFrom::Zero);
        if whole && matches!(len.from, LenFrom::Inline(_) | LenFrom::Rest) && self.random.one_in(5)
        {
            text.push_str("\0inside");
        }
        if latin1 {
            text.retain(|c| u32::from(c) < 0x100);
        }
        let ends = match len.from {
            LenFrom::To(end) => vec![end],
            LenFrom::Until(place) => self.tables.delimiter(place).to_vec(),
            LenFrom::Blanks => b" \r\n\t".to_vec(),
            _ => Vec::new(),
        };
        text.retain(|c| !ends.iter().any(|end| u32::from(c) == u32::from(*end)));
        let units = |text: &str| match (wide, latin1) {
            (true, _) => text.encode_utf16().count(),
            (_, true) => text.chars().count(),
            _ => text.len(),
        };
        let bytes = if wide && len.bytes { 2 } else { 1 };
        let extra = usize::from(end == TextEnd::Zero);
        if let Some(n) = self.decided(len, slots)? {
            let exact = matches!(len.from, LenFrom::Expr(_)) && end != TextEnd::Zeros;
            let Some(n) = (n / bytes).checked_sub(extra) else { return Err("no room for a zero") };
            // One that fills its place has no zero behind it, which is a problem of its own.
            let n = if exact { n } else { n.saturating_sub(1) };
            while units(&text) > n {
                text.pop();
            }
            while exact && units(&text) < n {
                text.push('x');
            }
        }
        self.take_rest(len);
        Ok(text.into())
    }

    fn list(&mut self, of: TypeRef, len: Len, slots: &Slots) -> Made<Value> {
        let n = match self.decided(len, slots)? {
            Some(n) if !len.bytes => n,
            Some(0) => 0,
            Some(_) => return Err("elements of so many bytes"),
            None => self.count(),
        };
        let before = std::mem::take(&mut self.last);
        let mut list = Vec::new();
        for _ in 0..if matches!(len.from, LenFrom::Last) { 50 } else { n } {
            list.push(self.value(of, slots, false)?.0);
            if std::mem::take(&mut self.last) && matches!(len.from, LenFrom::Last) {
                self.last = before;
                return Ok(list.into());
            }
        }
        self.last = before;
        if matches!(len.from, LenFrom::Last) {
            return Err("no last element");
        }
        self.take_rest(len);
        Ok(list.into())
    }

    /// Types with code, by their names.
    fn native(
        &mut self,
        def: &TypeDef,
        arg: Option<i128>,
        kept: bool,
    ) -> Made<(Value, Option<i128>)> {
        let name = def.text.split('(').next().unwrap_or("").trim();
        let name = name.strip_prefix("maybe ").unwrap_or(name);
        let width = arg.unwrap_or(64).clamp(1, 64) as u32;
        let unsigned = |this: &mut Self, bits: u32| {
            let n = this.number(def, 0, (1i128 << bits) - 1, kept);
            Ok((number(n), Some(n)))
        };
        let text = |this: &mut Self, latin1: bool| {
            let mut text = this.random.of(&TEXTS).to_string();
            if latin1 {
                text.retain(|c| u32::from(c) < 0x100);
            }
            Value::from(text)
        };
        match name {
            "safe_string" | "safe_wstring" | "p_string" | "SafeString" => {
                Ok((text(self, false), None))
            }
            "vault_text" => {
                let mut text = text(self, false).as_str().unwrap().to_string();
                text.retain(|c| !c.is_control());
                Ok((text.into(), None))
            }
            "wide_time" => {
                let all =
                    [0, 1, i128::from(i32::MAX), 1 << 31, -1, i128::from(u32::MAX), 8_500_000_000];
                let n = self.random.of(&all);
                Ok((number(n), Some(n)))
            }
            "game_type_id" => Ok((self.uuid(), Some(0))),
            "game_of" => Ok((Value::Null, Some(7))),
            "sdl_variables" | "sdl_nested" => Ok((json!({}), None)),
            "sdl_creatable" => Ok((Value::Null, None)),
            "bits" | "bitsbe" => unsigned(self, width),
            "packint" | "autobits" => unsigned(self, 32),
            "autobits2" | "leb128" | "vlq" => unsigned(self, 64),
            "prefixint" => unsigned(self, 62),
            "face_bits" => unsigned(self, 63),
            "float32" => Ok((self.float(4), None)),
            "alignedbits" => Ok((self.hex((arg.unwrap_or(8) as usize).div_ceil(8)), None)),
            "string" | "alignedstring" => {
                let maybe = def.text.starts_with("maybe") && self.random.one_in(3);
                Ok((if maybe { Value::Null } else { text(self, true) }, Some(i128::from(!maybe))))
            }
            "indexstring" => Ok((text(self, true), None)),
            "indexgeneric" => Ok((number(i128::from(self.random.next() as u32)), None)),
            "LLSD" => Ok((self.llsd(0), None)),
            "layer" => Ok((self.layer(), None)),
            "acks" => {
                let n = self.random.below(4);
                let all: Vec<Value> = (0..n).map(|_| (self.random.next() as u32).into()).collect();
                Ok((all.into(), None))
            }
            _ => {
                if std::env::var_os("ENCODE_SHOW").is_some() {
                    println!("nothing makes {}", def.text);
                }
                Err("a type with code that nothing makes")
            }
        }
    }

    fn llsd(&mut self, depth: usize) -> Value {
        let kind = if depth == 0 { 5 } else { self.random.below(7) };
        match kind {
            0 => number(i128::from(self.random.next() as i32)),
            1 => json!(self.random.of(&[0.5, -1.25e10, 1e-300])),
            2 => self.random.one_in(2).into(),
            3 => Value::Null,
            4 | 5 if depth < 4 => {
                let all = (0..self.random.below(4)).map(|at| {
                    let key = format!("{}{at}", self.random.of(&TEXTS));
                    (key, self.llsd(depth + 1))
                });
                all.collect::<Fields>().into()
            }
            6 if depth < 4 => {
                (0..self.random.below(4)).map(|_| self.llsd(depth + 1)).collect::<Vec<_>>().into()
            }
            _ => self.random.of(&TEXTS).into(),
        }
    }

    /// Patches of a layer. Coefficients that are missing at the end are 0.
    fn layer(&mut self) -> Value {
        let kind = self.random.of(&[0x4c, 0x57, 0x37, 0x38, 0x4d, 0x58, 0x39, 0x3a]);
        let is_large = matches!(kind, 0x4d | 0x58 | 0x39 | 0x3a);
        let size = self.random.of(&[16, 32]);
        let patches: Vec<Value> = (0..self.random.below(4))
            .map(|_| {
                let quantity = self.random.below(0x61);
                let most = 1 << ((quantity & 15) + 2);
                let n = self.random.of(&[0, 1, 5, size * size]);
                let mut all: Vec<i64> =
                    (0..n).map(|_| self.random.of(&[0, 1, -1, most - 1, 1 - most])).collect();
                if let Some(last) = all.last_mut() {
                    *last = 1;
                }
                let place = if is_large { 0x10000 } else { 0x20 };
                json!({
                    "QuantWBits": quantity, "DCOffset": self.float(4),
                    "Range": self.random.next() as u16,
                    "X": self.random.below(place), "Y": self.random.below(place),
                    "Coefficients": all,
                })
            })
            .collect();
        let stride = self.random.next() as u16;
        json!({ "Stride": stride, "PatchSize": size, "Type": kind, "Patches": patches })
    }

    fn mudmode(&mut self, read: ValueRead, def: &TypeDef) -> Made<Value> {
        self.values += 1;
        let any = [ValueRead::Int, ValueRead::Text, ValueRead::Array, ValueRead::Float];
        Ok(match read {
            ValueRead::Any => {
                let read = self.random.of(&any);
                self.mudmode(read, def)?
            }
            ValueRead::Int => {
                number(self.number(def, i128::from(i32::MIN), i128::from(i32::MAX), false))
            }
            ValueRead::Uint => number(self.number(def, 0, i128::from(i32::MAX), false)),
            ValueRead::Float => json!(1.5),
            ValueRead::Text => {
                let text = self.random.of(&TEXTS);
                text.into()
            }
            ValueRead::Array => {
                let n = self.random.below(3);
                let mut all = Vec::new();
                for _ in 0..n {
                    all.push(self.mudmode(ValueRead::Text, def)?);
                }
                all.into()
            }
            ValueRead::Packet => {
                let name = "locate-req";
                let id = self.tables.message_named(name).and_then(|id| self.tables.message(id));
                let layout = id.and_then(|def| def.layout).and_then(|of| self.tables.layout(of));
                let mut fields = Fields::new();
                fields.insert("type".into(), name.into());
                self.positions(layout.ok_or("no such packet")?, &mut fields)?;
                fields.into()
            }
            ValueRead::Mapping { of, .. } => {
                let mut all = Fields::new();
                for at in 0..self.random.below(3) {
                    let value = match of {
                        Some(of) => self.value(of, &Slots::new(), false)?.0,
                        None => self.mudmode(ValueRead::Text, def)?,
                    };
                    all.insert(format!("key \"{at}\""), value);
                }
                all.into()
            }
        })
    }

    /// The positions of an array.
    fn positions(&mut self, layout: &Layout, to: &mut Fields) -> Made<()> {
        let count = layout.positions.map_or(0, |positions| u32::from(positions.count));
        for at in 0..count {
            let (name, ty) = self.tables.position(layout, at).unwrap();
            let value = self.position(ty)?;
            // The first one is the message's name, which is there.
            to.entry(self.tables.name(name)).or_insert(value);
        }
        Ok(())
    }

    fn position(&mut self, ty: TypeRef) -> Made<Value> {
        let tables = self.tables;
        let def = tables.type_def(ty).unwrap();
        match &def.read {
            ReadAs::Layout { layout, .. } => {
                let mut fields = Fields::new();
                self.positions(tables.layout(*layout).unwrap(), &mut fields)?;
                Ok(fields.into())
            }
            ReadAs::List { of, .. } => {
                let n = self.random.below(3);
                (0..n).map(|_| self.position(*of)).collect::<Made<Vec<Value>>>().map(Value::from)
            }
            ReadAs::Value(read) => self.mudmode(*read, def),
            _ => Err("no position"),
        }
    }
}

fn number(n: i128) -> Value {
    match (u64::try_from(n), i64::try_from(n)) {
        (Ok(n), _) => n.into(),
        (_, Ok(n)) => n.into(),
        _ => Value::Null,
    }
}

/// Where values differ: the path, what was made and what came back.
fn different(made: &Value, back: &Value, path: &str) -> Option<String> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Bool(is) => u8::from(*is).to_string(),
        other => other.to_string(),
    };
    match (made, back) {
        (Value::Object(a), Value::Object(b)) => {
            let lost = b
                .keys()
                .find(|key| !a.contains_key(*key))
                .map(|key| format!("{path}.{key}: came of nothing"));
            let differ = |(key, value): (&String, &Value)| match b.get(key) {
                None => Some(format!("{path}.{key}: is gone")),
                Some(other) => different(value, other, &format!("{path}.{key}")),
            };
            a.iter().find_map(differ).or(lost)
        }
        (Value::Array(a), Value::Array(b)) => {
            if a.len() != b.len() {
                return Some(format!("{path}: {} elements became {}", a.len(), b.len()));
            }
            let mut all = a.iter().zip(b).enumerate();
            all.find_map(|(at, (a, b))| different(a, b, &format!("{path}[{at}]")))
        }
        (made, Value::Object(named)) if named.contains_key("value") && !made.is_object() => {
            different(made, &named["value"], path)
        }
        (Value::Number(a), Value::Number(b)) if a.is_f64() || b.is_f64() => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            // serde_json reads floats to the last digit but one, and of 32 bits there are several
            // ways to write one.
            let short = made.to_string().len() < 16;
            let near = (a - b).abs() <= a.abs() * 1e-15;
            let same = a == b || near || short && a as f32 == b as f32;
            (!same).then(|| format!("{path}: {made} became {back}"))
        }
        (made, back) if text(made) == text(back) => None,
        (made, back) => Some(format!("{path}: {made} became {back}")),
    }
}

/// What came of the messages that were made.
#[derive(Debug, Default)]
pub struct Came {
    /// Those that came back.
    pub back: usize,
    /// Those that the encoder refuses, by what it says.
    pub refused: BTreeMap<String, usize>,
    /// Messages with the numbers of tries that came back.
    pub messages: BTreeMap<String, usize>,
    /// Those that came back as something else.
    pub wrong: Vec<String>,
}

/// The fields around a message's own.
fn around(protocol: &str, def: &MessageDef, name: &str, random: &mut Random, fields: &mut Fields) {
    match protocol {
        "secondlife" => {
            let flags = random.of(&[0u8, 0x40, 0x80, 0xc0]);
            fields.insert("flags".into(), flags.into());
            fields.insert("sequence".into(), (random.next() as u32).into());
        }
        "intermud3" => {
            fields.insert("type".into(), name.into());
        }
        "ouro" if name.starts_with("COMMCONTROL") => {
            fields.insert("cmd".into(), 0.into());
            fields.insert("control_cmd".into(), def.number.into());
        }
        _ => {}
    }
}

/// The opcode and the size at the beginning of an AuthServer's message.
fn number_and_size(
    encoder: &mut moulsniff::Encoder,
    of: &str,
    def: &MessageDef,
    name: &str,
    fields: &mut Fields,
) {
    fields.insert("opcode".into(), def.number.into());
    fields.insert("size".into(), 0.into());
    let made = json!({ "message": name, "fields": fields });
    if let Ok(bytes) = encoder.encode_as(of, &made.to_string()) {
        fields.insert("size".into(), (bytes.len() - 3).into());
    }
}

/// Makes `tries` messages of every message of a protocol.
pub fn there_and_back(lazy: &LazyTables, tries: usize, seed: u64) -> Came {
    let tables = lazy.get();
    let protocol = lazy.protocol().name();
    let decoder = Decoder::new();
    let mut encoder = decoder.encoder().unwrap();
    let mut came = Came::default();
    let only = std::env::var("ENCODE_ONLY").ok();
    for def in tables.messages() {
        let name = tables.name(def.name).to_string();
        let Some(layout) = def.layout.and_then(|layout| tables.layout(layout)) else { continue };
        let service = tables.service(def.service).unwrap();
        if service.name == "http" {
            // Headers say how the body is written: no message comes of random ones.
            continue;
        }
        if only.as_ref().is_some_and(|only| *only != name) {
            continue;
        }
        let side = if def.direction == Sender::Server { "server" } else { "client" };
        let of = format!("{protocol}.{}.{side}", service.name);
        came.messages.entry(format!("{of} {name}")).or_default();
        for attempt in 0..tries {
            let random = Random(seed ^ (attempt as u64) << 32 ^ u64::from(def.name.0));
            let mut maker = Maker {
                tables,
                random,
                ended: vec![false],
                last: false,
                last_text: None,
                values: 0,
            };
            for _ in 0..4 {
                maker.random.next();
            }
            let mut fields = Fields::new();
            around(protocol, def, &name, &mut maker.random, &mut fields);
            let made = match service.positional {
                true => maker.positions(layout, &mut fields),
                false => maker.layout(layout, Slots::new(), &mut fields),
            };
            if let Err(why) = made {
                *came.refused.entry(format!("not made: {why}")).or_default() += 1;
                continue;
            }
            if service.name == "auth_server" {
                number_and_size(&mut encoder, &of, def, &name, &mut fields);
            }
            let made = json!({ "message": name, "fields": fields });
            let bytes = match encoder.encode_as(&of, &made.to_string()) {
                Ok(bytes) => bytes,
                Err(error) => {
                    let text: String = error.to_string();
                    let (_, text) = text.split_once(": ").unwrap_or(("", &text));
                    let text: String = text.chars().filter(|c| !c.is_ascii_digit()).collect();
                    if std::env::var_os("ENCODE_SHOW").is_some() {
                        println!("{name}: {error}\n    {made}");
                    }
                    *came.refused.entry(text).or_default() += 1;
                    continue;
                }
            };
            match comes_back(&decoder, &mut encoder, &of, &made, &bytes) {
                None => {
                    came.back += 1;
                    *came.messages.entry(format!("{of} {name}")).or_default() += 1;
                }
                Some(why) => came.wrong.push(format!("{of} {name}: {why}")),
            }
        }
    }
    came
}

/// What a decoder reads of a message.
fn read(
    decoder: &Decoder,
    of: &str,
    made: &Value,
    bytes: &[u8],
) -> Result<Vec<Record>, moulsniff::Error> {
    let Some(side) = of.strip_prefix("ouro.auth_server.") else { return decoder.decode(of, bytes) };
    // Encrypted from the second message on: it comes behind the first one of a connection.
    let (client, server) = ("192.0.2.1:50000".parse().unwrap(), "192.0.2.2:2106".parse().unwrap());
    let mut capture = decoder.capture_writer(Vec::new())?;
    let seed = json!({ "size": 8, "opcode": 0, "seed": 7, "proto_vers": 30206 });
    let first = json!({ "message": "AuthProtocolVersion", "fields": seed });
    let empty = json!({ "size": 9, "opcode": 5, "unk_array": "0000000000000000", "unk_1": 4 });
    let other = json!({ "message": "ServerListRequest", "fields": empty });
    let is_first = made["message"] == first["message"];
    let both = match is_first {
        true => [("server", made), ("client", &other)],
        false => [("server", &first), (side, made)],
    };
    for (at, (side, message)) in (1..).zip(both) {
        let mut record = json!({
            "protocol": "ouro", "service": "auth_server", "transport": "tcp", "from": side,
        });
        record.as_object_mut().unwrap().extend(message.as_object().unwrap().clone());
        capture.message(Duration::from_secs(at), client, server, &record.to_string())?;
    }
    let records = decoder.bytes(capture.finish()?)?.collect::<Result<Vec<_>, _>>()?;
    let messages = records.into_iter().filter(|record| record.message().is_some());
    Ok(messages.skip(usize::from(!is_first)).take(1).collect())
}

fn comes_back(
    decoder: &Decoder,
    encoder: &mut moulsniff::Encoder,
    of: &str,
    made: &Value,
    bytes: &[u8],
) -> Option<String> {
    let hex: String = bytes.iter().take(60).map(|byte| format!("{byte:02x}")).collect();
    let records = match read(decoder, of, made, bytes) {
        Ok(records) => records,
        Err(error) => return Some(format!("{error}: {hex} of {made}")),
    };
    let Some(record) = records.first().filter(|_| records.len() == 1) else {
        return Some(format!("{} records: {hex} of {made}", records.len()));
    };
    let back: Value = serde_json::from_str(&record.json()).unwrap();
    if back["message"] != made["message"] {
        return Some(format!("became {}: {hex} of {made}", back["message"]));
    }
    let mut fields = back["fields"].clone();
    if let Some(fields) = fields.as_object_mut() {
        for computed in ["bit_length", "checksum", "size", "opcode"] {
            if made["fields"].get(computed).is_none() {
                fields.remove(computed);
            }
        }
    }
    if let Some(why) = different(&made["fields"], &fields, "") {
        let problems: Vec<String> = record.problems().into_iter().map(|p| p.text).take(3).collect();
        return Some(format!("{why} {problems:?}: {hex} of {made}"));
    }
    match encoder.encode_as(of, &record.json()) {
        Ok(again) if again == bytes => None,
        Ok(again) => Some(format!("other bytes the second time: {again:02x?} for {bytes:02x?}")),
        Err(error) => Some(format!("not encoded again: {error}: {made}")),
    }
}

/// How often each message is made, and how many come back at least.
const TRIES: [(&str, usize, usize); 4] =
    [("moul", 2, 240), ("secondlife", 1, 450), ("intermud3", 2, 120), ("ouro", 4, 30)];

#[test]
fn random_values_of_all_layouts_come_back() {
    for (protocol, tries, at_least) in TRIES {
        let all = moulsniff::proto::all_tables(Vec::new()).unwrap();
        let lazy = all.iter().find(|lazy| lazy.protocol().name() == protocol).unwrap();
        let came = there_and_back(lazy, tries, 1);
        assert!(came.wrong.is_empty(), "{}", came.wrong.join("\n"));
        assert!(came.back >= at_least, "{protocol}: {} came back", came.back);
    }
}
