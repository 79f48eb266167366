//! Replaces one value: its bytes and its node become those of another value of the same form.

use std::net::{IpAddr, Ipv4Addr};

use super::known::KnownPersons;
use super::text::{escaped, filler, rewrite};
use super::values::{FILLER, Values};
use crate::digits::{is_uuid, swap_uuid};
use crate::table::{ByteOrder, Person, ReadAs, TypeDef, write_bytes};
use crate::tree::{Kind, Node, TextKind, mark};

/// Values of this time and later are taken for times that are moved: 1990-01-01.
const FIRST_TIME: u64 = 631_152_000;

/// Smaller numbers are not looked for where no table marks them: they would be found by chance.
const LEAST_NUMBER: u64 = 4096;

/// How to treat a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hide {
    /// It stays.
    Nothing,
    /// It tells this about a person.
    Person(Person),
    /// It is a secret.
    Secret,
    /// Its content is not known: a file, an image, undecoded bytes.
    Opaque,
    /// The traffic itself named it, so that no table could mark it.
    Unmarked,
}

/// A value and where it is.
pub(super) struct HiddenLeaf<'a> {
    pub(super) values: &'a Values,
    pub(super) known: &'a KnownPersons,
    pub(super) shift: i64,
    pub(super) node: &'a mut Node,
    pub(super) def: Option<&'a TypeDef>,
    /// For a time since 1970: how many of its units are a second.
    pub(super) second: Option<u64>,
    /// The buffer that the node counts in.
    pub(super) buffer: &'a mut Vec<u8>,
    /// The tree's own texts.
    pub(super) text: &'a mut String,
}

impl HiddenLeaf<'_> {
    /// Replaces the value.
    pub(super) fn hide(mut self, hide: Hide) {
        match self.node.kind {
            Kind::Text(kind) => self.hide_text(kind, hide),
            Kind::Unsigned | Kind::Signed | Kind::Unsigned64 | Kind::Signed64 => {
                self.hide_number(hide)
            }
            Kind::Uuid | Kind::UuidBe => self.hide_uuid(hide),
            Kind::Ipv4 => self.hide_ipv4(hide),
            Kind::Bytes | Kind::Undecoded => self.hide_bytes(hide),
            Kind::F64 if matches!(hide, Hide::Person(_) | Hide::Secret) => {
                self.hide_embedded_real()
            }
            _ => {}
        }
    }

    fn hide_text(&mut self, kind: TextKind, hide: Hide) {
        let values = self.values;
        let name = |text: &str| values.name(text);
        let address = |text: &str| match text.parse::<IpAddr>() {
            Ok(address) => values.address(address).to_string(),
            Err(_) => values.name(text),
        };
        match hide {
            Hide::Nothing => {}
            // A pseudonym would keep the signs of a password, and where its digits and capitals
            // are.
            Hide::Person(Person::Text) | Hide::Secret | Hide::Opaque | Hide::Unmarked => {
                // A UUID and a URL stay the same ones wherever they are written.
                self.replace_text(kind, &|text| {
                    if is_uuid(text.as_bytes()) {
                        values.name(text)
                    } else if hide == Hide::Secret
                        && (text.contains("://") || text.starts_with('/'))
                    {
                        values.url(text)
                    } else {
                        filler(text)
                    }
                })
            }
            Hide::Person(Person::Address) => self.replace_text(kind, &address),
            Hide::Person(_) => self.replace_text(kind, &name),
        }
    }

    fn replace_text(&mut self, kind: TextKind, new: &dyn Fn(&str) -> String) {
        let (start, length) = self.node.content();
        let end = start.saturating_add(length);
        if kind != TextKind::Owned {
            let content = self.buffer.get_mut(start..end);
            return content.into_iter().for_each(|content| rewrite(kind, content, new));
        }
        let Some(old) = self.text.get(start..end).map(str::to_string) else { return };
        let text =
            Some(new(&old)).filter(|text| text.len() == old.len()).unwrap_or_else(|| filler(&old));
        self.text.replace_range(start..end, &text);
        self.replace_captured(&old, &text, new);
    }

    /// Replaces the captured form of a text that the tree keeps: text with escapes, or characters
    /// at any bit.
    fn replace_captured(&mut self, old: &str, text: &str, new: &dyn Fn(&str) -> String) {
        let start = self.node.start as usize;
        let bits = self.node.bits as usize;
        let whole = start.is_multiple_of(8) && bits.is_multiple_of(8);
        if whole && self.def.is_some_and(|def| matches!(def.read, ReadAs::Value(_))) {
            let kept = |piece: &str| escaped(piece, new);
            let Some(bytes) = self.buffer.get_mut(start / 8..(start + bits) / 8) else { return };
            let kind =
                if std::str::from_utf8(bytes).is_ok() { TextKind::Utf8 } else { TextKind::Latin1 };
            return rewrite(kind, bytes, &kept);
        }
        // The characters end the value, or a zero byte behind them does.
        for behind in [0, 8] {
            let Some(first) = bits.checked_sub(behind + old.len() * 8).map(|before| start + before)
            else {
                continue;
            };
            if read_bytes(self.buffer, first, old.len()).as_deref() == Some(old.as_bytes()) {
                return write_bytes(self.buffer, first, text.as_bytes());
            }
        }
        clear_bits(self.buffer, start, bits);
    }

    fn hide_number(&mut self, hide: Hide) {
        if let (Hide::Nothing, Some(second), true) = (hide, self.second, self.shift != 0) {
            return self.shift_time(second);
        }
        let new = match hide {
            Hide::Nothing | Hide::Unmarked if !self.is_known(hide) => return,
            Hide::Person(Person::Address) => self.address_number(),
            _ if self.is_identity() => self.values.digits(self.unsigned()),
            _ => self.values.number(self.unsigned()),
        };
        self.write_number(new);
    }

    /// Whether a number that no table marks is the number of a known person. Small numbers, and
    /// numbers that a table gives another meaning, are not.
    fn is_known(&self, hide: Hide) -> bool {
        let value = self.unsigned();
        let other = self.def.is_none_or(|def| {
            def.symbols.is_some() || def.transaction || self.node.has(mark::SPAN)
        });
        let plain = self.number_size() == Some(4) && !other && value >= LEAST_NUMBER;
        (plain || hide == Hide::Unmarked) && self.known.numbers.contains(&value)
    }

    /// The value without its sign's extension.
    fn unsigned(&self) -> u64 {
        match self.number_size() {
            Some(size) if size < 8 => self.node.value & ((1 << (size * 8)) - 1),
            _ => self.node.value,
        }
    }

    /// The bytes of a number that is nothing but these: code may read one of the same type in
    /// another way.
    fn number_size(&self) -> Option<usize> {
        match self.def.map(|def| &def.read) {
            Some(ReadAs::Int { size, .. }) if self.node.bits == u32::from(*size) * 8 => {
                Some(usize::from(*size))
            }
            _ => None,
        }
    }

    /// The pseudonym of an address that is written as a number, in the byte order in which it is a
    /// known one.
    fn address_number(&self) -> u64 {
        let value = self.unsigned() as u32;
        let known =
            |address: u32| self.known.addresses.contains(&IpAddr::from(Ipv4Addr::from(address)));
        let new = |address: u32| match self.values.address(IpAddr::from(Ipv4Addr::from(address))) {
            IpAddr::V4(address) => u32::from(address),
            IpAddr::V6(_) => 0,
        };
        if known(value) { new(value).into() } else { new(value.swap_bytes()).swap_bytes().into() }
    }

    fn write_number(&mut self, new: u64) {
        if self.hide_embedded_digits() || self.hide_embedded_bytes(new) {
            return;
        }
        match self.def.map(|def| &def.read) {
            Some(ReadAs::Int { size, signed, order }) if self.number_size().is_some() => {
                let size = usize::from(*size);
                let signed = *signed;
                let order = *order;
                self.write_int(size, order, new);
                self.node.value = if signed { extended(new, size) } else { new & mask(size) };
            }
            Some(ReadAs::Value(_)) if self.is_identity() => self.write_decimal(new),
            Some(ReadAs::Value(_)) => self.hide_decimal(),
            _ => self.write_bits(new),
        }
    }

    /// The bytes of a value, with what else belongs to it, such as its name.
    fn place(&self) -> std::ops::Range<usize> {
        self.node.start as usize / 8..(self.node.start as usize + self.node.bits as usize) / 8
    }

    /// Replaces an integer of a fixed size that is written as text, behind its name: its digits are
    /// the last ones. Returns whether it is one.
    fn hide_embedded_digits(&mut self) -> bool {
        let is_int = matches!(self.def.map(|def| &def.read), Some(ReadAs::Int { .. }));
        let range = self.place();
        let Some(place) = self.buffer.get_mut(range).filter(|_| is_int) else { return false };
        let Some(last) = place.iter().rposition(u8::is_ascii_digit) else { return false };
        let before = place.get(..last).unwrap_or_default();
        let first = before.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |at| at + 1);
        let negative = place.get(first.wrapping_sub(1)) == Some(&b'-');
        let Some(digits) = place.get_mut(first..=last) else { return false };
        let value = |digits: &[u8]| {
            let number: i64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
            Some(if negative { -number } else { number })
        };
        if value(digits) != Some(self.node.value as i64) {
            return false;
        }
        self.values.decimal(digits);
        // As many digits as the largest number has, at most.
        if digits.len() == 10
            && let Some(first) = digits.first_mut()
        {
            *first = b'1';
        }
        self.node.value = value(digits).unwrap_or(0) as u64;
        true
    }

    /// Replaces an integer of a fixed size whose bytes, the most significant first, end a longer
    /// place. Returns whether it is one.
    fn hide_embedded_bytes(&mut self, new: u64) -> bool {
        let Some(ReadAs::Int { size, signed, .. }) = self.def.map(|def| &def.read) else {
            return false;
        };
        let (size, signed, range) = (usize::from(*size), *signed, self.place());
        let value = self.node.value & mask(size);
        let Some(place) = self.buffer.get_mut(range).filter(|place| place.len() > size) else {
            return false;
        };
        let Some((_, own)) = place.split_last_chunk::<4>().filter(|_| size == 4) else {
            return false;
        };
        if u64::from(u32::from_be_bytes(*own)) != value {
            return false;
        }
        let at = place.len() - size;
        if let Some(own) = place.get_mut(at..) {
            own.copy_from_slice(&(new as u32).to_be_bytes());
        }
        self.node.value = if signed { extended(new, size) } else { new & mask(size) };
        true
    }

    /// Replaces a real number that stands behind its name: as text, whose digits become others, or
    /// as eight bytes, which become zero.
    fn hide_embedded_real(&mut self) {
        let range = self.place();
        let value = f64::from_bits(self.node.value);
        let Some(place) = self.buffer.get_mut(range) else { return };
        let of_number = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
        let last = place.iter().rposition(u8::is_ascii_digit);
        let first = last.and_then(|last| {
            let before = place.get(..last)?.iter().rposition(|byte| !of_number(byte));
            Some(before.map_or(0, |at| at + 1))
        });
        let text = first.zip(last).and_then(|(first, last)| place.get_mut(first..=last));
        let parse = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<f64>().ok();
        if let Some(text) = text
            && parse(text) == Some(value)
        {
            // Digits of an exponent would make another kind of number.
            let end = text.iter().position(|byte| b"eE".contains(byte)).unwrap_or(text.len());
            text.iter_mut().take(end).filter(|byte| byte.is_ascii_digit()).for_each(|b| *b = b'7');
            self.node.value = parse(text).unwrap_or(0.0).to_bits();
        } else if let Some((_, own)) = place.split_last_chunk_mut::<8>()
            && f64::from_be_bytes(*own).to_bits() == value.to_bits()
        {
            *own = [0; 8];
            self.node.value = 0;
        }
    }

    fn write_int(&mut self, size: usize, order: ByteOrder, value: u64) {
        let start = self.node.start as usize / 8;
        let Some(place) = self.buffer.get_mut(start..start + size) else { return };
        let little = value.to_le_bytes();
        let bytes = little.get(..size).unwrap_or_default();
        match order {
            ByteOrder::Little => place.copy_from_slice(bytes),
            ByteOrder::Big => {
                place.iter_mut().zip(bytes.iter().rev()).for_each(|(to, from)| *to = *from)
            }
            ByteOrder::Pdp => {
                let (low, high) = bytes.split_at(size / 2);
                place.iter_mut().zip(high.iter().chain(low)).for_each(|(to, from)| *to = *from);
            }
        }
    }

    /// Writes a number of a fixed count of bits; one that is written in another way becomes 0 bits.
    fn write_bits(&mut self, new: u64) {
        let start = self.node.start as usize;
        let bits = self.node.bits as usize;
        let fixed = self.def.is_some_and(|def| def.text.starts_with("bits("));
        if !fixed || bits > 64 {
            self.node.value = 0;
            return clear_bits(self.buffer, start, bits);
        }
        let most = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
        let mut new = new;
        // The permutation has one cycle for each count of bytes, so it comes back below the bound.
        while new > most {
            new = self.values.number(new);
        }
        self.node.value = new;
        for at in 0..bits {
            set_bit(self.buffer, start + at, new >> at & 1 == 1);
        }
    }

    /// Whether a number is no person's own, but stands for something of a person in one capture.
    /// Some messages write such a number in digits, others in bytes.
    fn is_identity(&self) -> bool {
        let facts = self.def.and_then(|def| def.facts.as_deref());
        facts.is_some_and(|facts| !facts.identity.is_empty())
    }

    /// Where the digits of a number are that is written as decimal text, with its sign. Other
    /// signs may stand around it.
    fn decimal_place(&self) -> Option<std::ops::Range<usize>> {
        let range = self.place();
        let bytes = self.buffer.get(range.clone())?;
        let of_number = |byte: &u8| byte.is_ascii_digit() || *byte == b'-';
        let mut at = 0;
        while let Some(from) = bytes.get(at..)?.iter().position(of_number).map(|from| at + from) {
            let rest = bytes.get(from + 1..)?;
            let end = rest.iter().position(|byte| !byte.is_ascii_digit());
            at = from + 1 + end.unwrap_or(rest.len());
            let value = std::str::from_utf8(bytes.get(from..at)?).ok()?.parse::<i64>();
            let value = value.map_or(0, |value| value as u64);
            if value == self.node.value || value & mask(4) == self.node.value {
                return Some(range.start + from..range.start + at);
            }
        }
        None
    }

    /// A number that is written as decimal text.
    fn hide_decimal(&mut self) {
        let (start, end) = match self.decimal_place() {
            Some(place) => (place.start, place.end),
            None => (self.place().start, self.place().end),
        };
        let Some(text) = self.buffer.get_mut(start..end) else { return };
        self.values.decimal(text);
        // A separator that belongs to the value may stand behind it.
        let text = String::from_utf8_lossy(text);
        let text = text.trim_matches(|c: char| c != '-' && !c.is_ascii_digit());
        let value = text.parse::<i64>().map(|value| value as u64).or_else(|_| text.parse::<u64>());
        self.node.value = value.unwrap_or(0);
    }

    /// Moves a time that the table shows as one. What is shorter is a length of time.
    fn shift_time(&mut self, second: u64) {
        let value = self.unsigned();
        if !(FIRST_TIME..mask(4)).contains(&(value / second)) {
            return;
        }
        let new = value.saturating_add_signed(self.shift.saturating_mul(second as i64));
        match self.def.map(|def| &def.read) {
            Some(ReadAs::Value(_)) => self.write_decimal(new),
            Some(ReadAs::Int { size: 4.., .. }) => self.write_number(new),
            _ => {}
        }
    }

    /// Writes a number into the digits of decimal text; where they are not as many, they become
    /// others. A number that is not written in digits may be four bytes.
    fn write_decimal(&mut self, new: u64) {
        let value = self.unsigned() & mask(4);
        let (start, end) = match self.decimal_place() {
            Some(place) => (place.start, place.end),
            None => (self.place().start, self.place().end),
        };
        let Some(place) = self.buffer.get_mut(start..end) else { return };
        let text = match place.first() {
            Some(b'-') => (new as i32).unsigned_abs().to_string(),
            _ => new.to_string(),
        };
        if place.iter().filter(|byte| byte.is_ascii_digit()).count() != text.len() {
            return match place.last_chunk_mut::<4>() {
                Some(own) if u64::from(u32::from_be_bytes(*own)) == value => {
                    *own = (new as u32).to_be_bytes();
                    self.node.value = new;
                }
                _ => self.hide_decimal(),
            };
        }
        place
            .iter_mut()
            .filter(|byte| byte.is_ascii_digit())
            .zip(text.bytes())
            .for_each(|(to, from)| *to = from);
        self.node.value = new;
    }

    fn hide_uuid(&mut self, hide: Hide) {
        let (start, _) = self.node.content();
        let Some(place) =
            self.buffer.get_mut(start..).and_then(|rest| rest.first_chunk_mut::<16>())
        else {
            return;
        };
        let mixed = self.node.kind == Kind::Uuid;
        let mut uuid = if mixed { swap_uuid(*place) } else { *place };
        if matches!(hide, Hide::Nothing | Hide::Unmarked) && !self.known.has_uuid(&uuid) {
            return;
        }
        self.values.uuid(&mut uuid);
        *place = if mixed { swap_uuid(uuid) } else { uuid };
    }

    fn hide_ipv4(&mut self, hide: Hide) {
        let address = IpAddr::from(Ipv4Addr::from(self.node.value as u32));
        if !matches!(hide, Hide::Person(_) | Hide::Secret)
            && !self.known.addresses.contains(&address)
        {
            return;
        }
        let IpAddr::V4(new) = self.values.address(address) else { return };
        let new = u32::from(new);
        let order = match self.def.map(|def| &def.read) {
            Some(ReadAs::Ipv4 { big: true }) => ByteOrder::Big,
            _ => ByteOrder::Little,
        };
        self.write_int(4, order, new.into());
        self.node.value = new.into();
    }

    fn hide_bytes(&mut self, hide: Hide) {
        let start = self.node.start as usize;
        let bits = self.node.bits as usize;
        if matches!(hide, Hide::Nothing | Hide::Unmarked) {
            return;
        }
        if !start.is_multiple_of(8) || !bits.is_multiple_of(8) {
            return clear_bits(self.buffer, start, bits);
        }
        let (from, length) = self.node.content();
        let Some(content) = self.buffer.get_mut(from..from.saturating_add(length)) else { return };
        match hide {
            Hide::Secret | Hide::Person(Person::Number) => self.values.secret(content),
            Hide::Person(Person::Name | Person::Mail) => {
                rewrite(TextKind::Utf8, content, &|text| self.values.name(text))
            }
            _ => content.iter_mut().filter(|byte| **byte != 0).for_each(|byte| *byte = FILLER),
        }
    }
}

fn mask(size: usize) -> u64 {
    if size >= 8 { u64::MAX } else { (1 << (size * 8)) - 1 }
}

/// A signed number of some bytes, extended to 64 bits.
fn extended(value: u64, size: usize) -> u64 {
    let unused = 64 - 8 * size.clamp(1, 8) as u32;
    ((value << unused) as i64 >> unused) as u64
}

fn bit(bytes: &[u8], at: usize) -> Option<bool> {
    bytes.get(at / 8).map(|byte| byte >> (at % 8) & 1 == 1)
}

fn set_bit(bytes: &mut [u8], at: usize, set: bool) {
    if let Some(byte) = bytes.get_mut(at / 8) {
        let bit = 1 << (at % 8);
        *byte = if set { *byte | bit } else { *byte & !bit };
    }
}

fn clear_bits(bytes: &mut [u8], start: usize, count: usize) {
    (start..start.saturating_add(count)).for_each(|at| set_bit(bytes, at, false));
}

/// Bytes that begin at any bit, the least significant bit first.
fn read_bytes(bytes: &[u8], start: usize, count: usize) -> Option<Vec<u8>> {
    let byte = |place: usize| {
        (0..8).try_fold(0u8, |byte, at| {
            Some(byte | u8::from(bit(bytes, start + place * 8 + at)?) << at)
        })
    };
    (0..count).map(byte).collect()
}
