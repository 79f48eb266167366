//! LLSD in its binary encoding: a letter for the kind, lengths and counts in four bytes, the most
//! significant first.

use super::notation::is_quote;
use super::{Fault, LlsdReader, Part};
use crate::tree::{Kind, Severity, Sym};

impl LlsdReader<'_, '_, '_> {
    pub(super) fn binary_value(&mut self, name: Sym) -> Result<(), Fault> {
        let from = self.pos;
        let [kind] = self.array()?;
        let scalar = |reader: &mut Self, part, kind, value| {
            reader.leaf(name, part, kind, value, 0).map(drop)
        };
        match kind {
            b'!' => scalar(self, Part::Undefined, Kind::Null, 0),
            b'0' | b'1' => scalar(self, Part::Boolean, Kind::Bool, u64::from(kind == b'1')),
            b'i' => {
                let number = i32::from_be_bytes(self.array()?);
                scalar(self, Part::Integer, Kind::Signed, i64::from(number) as u64)
            }
            b'r' => {
                let bits = u64::from_be_bytes(self.array()?);
                scalar(self, Part::Real, Kind::F64, bits)
            }
            // Seconds since 1970, least significant byte first, alone among all numbers.
            b'd' => {
                let bits = u64::from_le_bytes(self.array()?);
                scalar(self, Part::Date, Kind::F64, bits)
            }
            b'u' => {
                let at = self.take(16)?;
                let place = self.place(at, 16);
                scalar(self, Part::Uuid, Kind::UuidBe, place)
            }
            b's' | b'l' => {
                let (at, length) = self.counted()?;
                self.text_leaf(
                    name,
                    if kind == b's' { Part::String } else { Part::Uri },
                    at,
                    length,
                )
            }
            b'b' => {
                let (at, length) = self.counted()?;
                let place = self.place(at, length);
                scalar(self, Part::Binary, Kind::Bytes, place)
            }
            quote if is_quote(quote) => self.quoted_leaf(name, Part::String, quote),
            b'[' | b'{' => {
                let count = u32::from_be_bytes(self.array()?);
                self.container(name, kind == b'{', from, Some(count))
            }
            _ => Err(Fault::Bytes("no kind of LLSD has the letter at byte {a}", from)),
        }
    }

    /// Bytes behind their number.
    fn counted(&mut self) -> Result<(usize, usize), Fault> {
        let length = u32::from_be_bytes(self.array()?) as usize;
        Ok((self.take(length)?, length))
    }

    pub(super) fn binary_end(&mut self, close: u8, left: &mut Option<u32>) -> Result<bool, Fault> {
        let ends = self.peek() == Some(close);
        match left {
            Some(left) if !ends && *left > 0 => *left -= 1,
            _ if !ends => return self.fault("no closing bracket at byte {a}, behind all elements"),
            Some(left) if *left > 0 => {
                let last = self.run.tree.len().saturating_sub(1);
                let text = "{a} fewer elements than announced";
                self.run.problem(Severity::Note, last, text, i64::from(*left), 0);
            }
            _ => {}
        }
        self.pos += usize::from(ends);
        Ok(ends)
    }

    pub(super) fn binary_key(&mut self) -> Result<(), Fault> {
        match self.array()? {
            [b'k' | b's'] => {
                let (at, length) = self.counted()?;
                let key = self.bytes.get(at..at + length).unwrap_or_default();
                self.text = String::from_utf8_lossy(key).into_owned();
                Ok(())
            }
            [quote] if is_quote(quote) => self.quoted(quote).map(drop),
            _ => {
                self.pos -= 1;
                self.fault("no key of a map at byte {a}")
            }
        }
    }
}
