//! LLSD in XML: `<llsd><map><key>id</key><integer>5</integer></map></llsd>`.
//!
//! Only what LLSD uses of XML is known: elements, the attribute `encoding`, references to
//! characters, comments and processing instructions.

use super::{Fault, LlsdReader, Part};
use crate::digits::uuid_text;
use crate::tree::{Kind, Sym};

/// An element's opening tag.
pub(super) struct Tag<'d> {
    pub(super) name: &'d [u8],
    pub(super) attributes: &'d [u8],
    /// Whether the element is empty: `<undef/>`.
    pub(super) is_empty: bool,
}

impl<'d> LlsdReader<'_, '_, 'd> {
    pub(super) fn xml_value(&mut self, name: Sym) -> Result<(), Fault> {
        let mut from = self.between()?;
        let mut tag = self.tag()?;
        if tag.name == b"llsd" && self.claimed == 0 {
            from = self.between()?;
            tag = self.tag()?;
        }
        let part = match tag.name {
            b"map" | b"array" => {
                let is_map = tag.name == b"map";
                if !tag.is_empty {
                    return self.container(name, is_map, from, None);
                }
                return self.empty_container(name, is_map, from);
            }
            b"undef" => Part::Undefined,
            b"boolean" => Part::Boolean,
            b"integer" => Part::Integer,
            b"real" => Part::Real,
            b"uuid" => Part::Uuid,
            b"string" => Part::String,
            b"date" => Part::Date,
            b"uri" => Part::Uri,
            b"binary" => Part::Binary,
            _ => return Err(Fault::Bytes("no element of LLSD at byte {a}", from)),
        };
        let (from, length) = if tag.is_empty { (self.pos, 0) } else { self.content(tag.name)? };
        self.xml_scalar(name, part, tag.attributes, from, length)
    }

    /// An empty array or map.
    pub(super) fn empty_container(
        &mut self,
        name: Sym,
        is_map: bool,
        from: usize,
    ) -> Result<(), Fault> {
        let (part, kind) =
            if is_map { (Part::Map, Kind::Struct) } else { (Part::Array, Kind::List) };
        let node = self.begin(name, part, kind)?;
        let open = self.syntax(self.run.tables.value_types().open_name, from);
        self.end(node);
        open.map(drop)
    }

    /// A value that is written between two tags.
    pub(super) fn xml_scalar(
        &mut self,
        name: Sym,
        part: Part,
        attributes: &[u8],
        from: usize,
        length: usize,
    ) -> Result<(), Fault> {
        let content = self.bytes.get(from..from + length).unwrap_or_default();
        match part {
            Part::Undefined => self.leaf(name, part, Kind::Null, 0, 0).map(drop),
            Part::Boolean => {
                let value = matches!(content.trim_ascii(), b"true" | b"1");
                self.leaf(name, part, Kind::Bool, value.into(), 0).map(drop)
            }
            // An empty element is 0, or the UUID of zeros.
            Part::Integer if length == 0 => self.leaf(name, part, Kind::Signed, 0, 0).map(drop),
            Part::Real if length == 0 => self.leaf(name, part, Kind::F64, 0, 0).map(drop),
            Part::Uuid if length == 0 => {
                self.text = uuid_text(&[0; 16], false);
                self.decoded_leaf(name, part).map(drop)
            }
            Part::Integer | Part::Real => self.number_leaf(name, part, from, length),
            Part::Binary => {
                let is_hex = memchr::memmem::find(attributes, b"base16").is_some();
                self.encoded_bytes_leaf(name, is_hex, from, length)
            }
            _ if content.contains(&b'&') => {
                self.decode(content);
                self.decoded_leaf(name, part).map(drop)
            }
            _ => self.text_leaf(name, part, from, length),
        }
    }

    pub(super) fn xml_end(&mut self, name: &[u8]) -> Result<bool, Fault> {
        self.between()?;
        let ends = self.rest().strip_prefix(b"</").is_some_and(|rest| rest.starts_with(name));
        if ends {
            self.closing_tag()?;
        }
        Ok(ends)
    }

    pub(super) fn xml_key(&mut self) -> Result<(), Fault> {
        let from = self.between()?;
        let tag = self.tag()?;
        if tag.name != b"key" {
            return Err(Fault::Bytes("no key of a map at byte {a}", from));
        }
        let (from, length) = if tag.is_empty { (self.pos, 0) } else { self.content(b"key")? };
        self.decode(self.bytes.get(from..from + length).unwrap_or_default());
        Ok(())
    }

    /// Passes over the end of the root, if it is there.
    pub(super) fn root_end(&mut self) -> Result<(), Fault> {
        let at = self.pos;
        self.xml_blanks();
        if self.rest().starts_with(b"</llsd") {
            return self.closing_tag();
        }
        self.pos = at;
        Ok(())
    }

    /// Passes over what may stand between elements. Returns where the next one begins.
    pub(super) fn between(&mut self) -> Result<usize, Fault> {
        loop {
            self.xml_blanks();
            let end: &[u8] = match self.rest() {
                [b'<', b'!', b'-', b'-', ..] => b"-->",
                [b'<', b'?', ..] => b"?>",
                [b'<', b'!', ..] => b">",
                _ => return Ok(self.pos),
            };
            let Some(length) = memchr::memmem::find(self.rest(), end) else {
                return self.fault("no end of what begins at byte {a}");
            };
            self.pos += length + end.len();
        }
    }

    pub(super) fn xml_blanks(&mut self) {
        self.pos += self.rest().iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    }

    /// An opening tag.
    pub(super) fn tag(&mut self) -> Result<Tag<'d>, Fault> {
        let bytes = self.bytes;
        let inner = bytes.get(self.pos..).and_then(|rest| rest.strip_prefix(b"<"));
        let length = inner.and_then(|inner| memchr::memchr(b'>', inner));
        let (Some(inner), Some(length)) = (inner, length) else {
            return self.fault("no element of LLSD at byte {a}");
        };
        self.pos += length + 2;
        let inner = inner.get(..length).unwrap_or_default();
        let is_empty = inner.ends_with(b"/");
        let inner = inner.strip_suffix(b"/").unwrap_or(inner);
        let name = inner.iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
        let (name, attributes) = inner.split_at(name);
        Ok(Tag { name, attributes, is_empty })
    }

    /// What is between an element's tags. Passes over the closing one.
    pub(super) fn content(&mut self, name: &[u8]) -> Result<(usize, usize), Fault> {
        let from = self.pos;
        let Some(length) = memchr::memchr(b'<', self.rest()) else {
            self.pos = self.bytes.len();
            return self.fault("LLSD goes on beyond the field's end, byte {a}");
        };
        self.pos += length;
        let ends = self.rest().strip_prefix(b"</").is_some_and(|rest| rest.starts_with(name));
        if !ends {
            return self.fault("an element within a value of LLSD at byte {a}");
        }
        self.closing_tag()?;
        Ok((from, length))
    }

    pub(super) fn closing_tag(&mut self) -> Result<(), Fault> {
        match memchr::memchr(b'>', self.rest()) {
            Some(length) => self.take(length + 1).map(drop),
            None => {
                self.pos = self.bytes.len();
                self.fault("LLSD goes on beyond the field's end, byte {a}")
            }
        }
    }

    /// Decodes references to characters into `text`. What is none is kept.
    pub(super) fn decode(&mut self, content: &[u8]) {
        self.text.clear();
        let content = String::from_utf8_lossy(content);
        let mut rest = content.as_ref();
        while let Some((plain, behind)) = rest.split_once('&') {
            self.text.push_str(plain);
            let named = behind.split_once(';').and_then(|(name, after)| {
                let hex = name.strip_prefix("#x").map(|digits| u32::from_str_radix(digits, 16));
                let number = hex.or_else(|| name.strip_prefix('#').map(str::parse));
                let character = match name {
                    "lt" => Some('<'),
                    "gt" => Some('>'),
                    "amp" => Some('&'),
                    "quot" => Some('"'),
                    "apos" => Some('\''),
                    _ => number.and_then(Result::ok).and_then(char::from_u32),
                };
                character.map(|character| (character, after))
            });
            match named {
                Some((character, after)) => {
                    self.text.push(character);
                    rest = after;
                }
                None => {
                    self.text.push('&');
                    rest = behind;
                }
            }
        }
        self.text.push_str(rest);
    }
}
