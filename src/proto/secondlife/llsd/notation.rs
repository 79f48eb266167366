//! LLSD in its notation, which people can read: `{'id':i5,'te':[i0,i1],'on':true}`.

use super::{Fault, LlsdReader, Part};
use crate::tree::{Kind, Sym};

/// Whether a byte begins a quoted text.
pub(super) fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'')
}

/// The quoted text between two places. If it has escapes, the reader's own text is what it means.
pub(super) struct QuotedText {
    from: usize,
    length: usize,
    is_decoded: bool,
}

impl LlsdReader<'_, '_, '_> {
    pub(super) fn notation_value(&mut self, name: Sym) -> Result<(), Fault> {
        self.blanks(b"");
        let from = self.pos;
        let [kind] = self.array()?;
        match kind {
            b'!' => self.leaf(name, Part::Undefined, Kind::Null, 0, 0).map(drop),
            b'0' | b'1' => self.boolean(name, kind == b'1', b""),
            b't' => self.boolean(name, true, b"rue"),
            b'T' => self.boolean(name, true, b"RUE"),
            b'f' => self.boolean(name, false, b"alse"),
            b'F' => self.boolean(name, false, b"ALSE"),
            b'i' => self.digits(name, Part::Integer),
            b'r' => self.digits(name, Part::Real),
            b'u' => {
                let at = self.take(36)?;
                self.text_leaf(name, Part::Uuid, at, 36)
            }
            b's' => {
                let (at, length) = self.sized()?;
                self.text_leaf(name, Part::String, at, length)
            }
            b'l' | b'd' => {
                let [quote] = self.array()?;
                let part = if kind == b'l' { Part::Uri } else { Part::Date };
                if is_quote(quote) {
                    return self.quoted_leaf(name, part, quote);
                }
                self.pos -= 1;
                self.fault("no quote at byte {a}")
            }
            b'b' => self.notation_bytes(name),
            b'[' | b'{' => self.container(name, kind == b'{', from, None),
            quote if is_quote(quote) => self.quoted_leaf(name, Part::String, quote),
            _ => Err(Fault::Bytes("no value of LLSD begins at byte {a}", from)),
        }
    }

    fn boolean(&mut self, name: Sym, value: bool, rest: &[u8]) -> Result<(), Fault> {
        if self.rest().starts_with(rest) {
            self.pos += rest.len();
        }
        self.leaf(name, Part::Boolean, Kind::Bool, value.into(), 0).map(drop)
    }

    fn digits(&mut self, name: Sym, part: Part) -> Result<(), Fault> {
        let from = self.pos;
        let is_real = matches!(part, Part::Real);
        let digit = |byte: &u8| {
            byte.is_ascii_digit()
                || matches!(byte, b'-' | b'+')
                || is_real && (*byte == b'.' || byte.is_ascii_alphabetic())
        };
        self.pos += self.rest().iter().take_while(|byte| digit(byte)).count();
        if self.pos == from {
            return self.fault("no digits at byte {a}");
        }
        self.number_leaf(name, part, from, self.pos - from)
    }

    /// `b(3)"abc"`, `b16"616263"` or `b64"YWJj"`, behind its letter.
    fn notation_bytes(&mut self, name: Sym) -> Result<(), Fault> {
        if self.peek() == Some(b'(') {
            let (at, length) = self.sized()?;
            let place = self.place(at, length);
            return self.leaf(name, Part::Binary, Kind::Bytes, place, 0).map(drop);
        }
        let base: [u8; 3] = self.array()?;
        let end = memchr::memchr(b'"', self.rest());
        let (true, Some(length)) = (matches!(&base, b"16\"" | b"64\""), end) else {
            self.pos -= base.len();
            return self.fault("no bytes of LLSD at byte {a}");
        };
        let from = self.take(length + 1)?;
        self.encoded_bytes_leaf(name, &base == b"16\"", from, length)
    }

    /// `(3)"abc"`: so many bytes between quotes, whatever they are.
    fn sized(&mut self) -> Result<(usize, usize), Fault> {
        let open = self.peek() == Some(b'(');
        let end = memchr::memchr(b')', self.rest()).filter(|_| open);
        let digits = end.and_then(|end| self.rest().get(1..end));
        let length = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        let (Some(end), Some(length)) = (end, length) else {
            return self.fault("no size at byte {a}");
        };
        // The quotes around it are whichever the sender likes.
        let from = self.take(end + 2)? + end + 2;
        self.take(length)?;
        self.take(1)?;
        Ok((from, length))
    }

    /// A text behind its opening quote, as a node.
    pub(super) fn quoted_leaf(&mut self, name: Sym, part: Part, quote: u8) -> Result<(), Fault> {
        let QuotedText { from, length, is_decoded } = self.quoted(quote)?;
        if is_decoded {
            self.decoded_leaf(name, part).map(drop)
        } else {
            self.text_leaf(name, part, from, length)
        }
    }

    /// A text behind its opening quote, up to the closing one. What it means is in `text`.
    pub(super) fn quoted(&mut self, quote: u8) -> Result<QuotedText, Fault> {
        let from = self.pos;
        let mut decoded = Vec::new();
        let mut is_decoded = false;
        loop {
            let bytes = self.bytes;
            let rest = bytes.get(self.pos..).unwrap_or_default();
            let Some(plain) = memchr::memchr2(quote, b'\\', rest) else {
                self.pos = self.bytes.len();
                return self.fault("the text that ends at byte {a} has no closing quote");
            };
            decoded.extend_from_slice(rest.get(..plain).unwrap_or_default());
            self.pos += plain + 1;
            if rest.get(plain) == Some(&quote) {
                break;
            }
            is_decoded = true;
            decoded.push(self.escaped()?);
        }
        let length = self.pos - 1 - from;
        self.text.clear();
        self.text.push_str(&String::from_utf8_lossy(&decoded));
        Ok(QuotedText { from, length, is_decoded })
    }

    /// The byte that an escape stands for, behind its backslash.
    fn escaped(&mut self) -> Result<u8, Fault> {
        let [byte] = self.array()?;
        Ok(match byte {
            b'a' => 7,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 11,
            b'x' => {
                let [high, low]: [u8; 2] = self.array()?;
                let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0) as u8;
                digit(high) << 4 | digit(low)
            }
            other => other,
        })
    }

    pub(super) fn notation_end(&mut self, close: u8) -> Result<bool, Fault> {
        self.blanks(b",");
        match self.peek() {
            None => self.fault("LLSD goes on beyond the field's end, byte {a}"),
            Some(byte) => {
                self.pos += usize::from(byte == close);
                Ok(byte == close)
            }
        }
    }

    pub(super) fn notation_key(&mut self) -> Result<(), Fault> {
        match self.array()? {
            [b's'] => {
                let (at, length) = self.sized()?;
                let key = self.bytes.get(at..at + length).unwrap_or_default();
                self.text = String::from_utf8_lossy(key).into_owned();
            }
            [quote] if is_quote(quote) => {
                self.quoted(quote)?;
            }
            _ => {
                self.pos -= 1;
                return self.fault("no key of a map at byte {a}");
            }
        }
        self.blanks(b":");
        Ok(())
    }

    /// Passes over blanks and some signs.
    fn blanks(&mut self, signs: &[u8]) {
        let passed = |byte: &&u8| byte.is_ascii_whitespace() || signs.contains(byte);
        self.pos += self.rest().iter().take_while(passed).count();
    }
}
