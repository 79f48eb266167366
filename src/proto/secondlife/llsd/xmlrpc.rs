//! XML-RPC, whose values are those of LLSD in other elements:
//! `<value><struct><member><name>id</name><value><int>5</int></value></member></struct></value>`.
//! A value without an element within it is a text.
//!
//! What stands around values (`methodCall`, `params`, `member`, `data` …) is passed over; it
//! belongs to the node that follows it.

use super::{Fault, LlsdReader, Part};
use crate::tree::Sym;

/// Elements that only stand around values.
const AROUND: [&[u8]; 6] =
    [b"methodCall", b"methodResponse", b"params", b"param", b"fault", b"data"];

impl LlsdReader<'_, '_, '_> {
    pub(super) fn rpc_value(&mut self, name: Sym) -> Result<(), Fault> {
        self.rpc_blanks();
        if self.rest().starts_with(b"<methodName") {
            self.tag()?;
            self.content(b"methodName")?;
            self.rpc_blanks();
        }
        let from = self.pos;
        let tag = self.tag()?;
        if tag.name != b"value" {
            return Err(Fault::Bytes("no value of XML-RPC at byte {a}", from));
        }
        if tag.is_empty {
            return self.text_leaf(name, Part::String, self.pos, 0);
        }
        let inner = self.rest().trim_ascii_start();
        if !inner.starts_with(b"<") || inner.starts_with(b"</") {
            let (from, length) = self.content(b"value")?;
            return self.xml_scalar(name, Part::String, b"", from, length);
        }
        self.xml_blanks();
        let from = self.pos;
        let tag = self.tag()?;
        match tag.name {
            b"struct" | b"array" if tag.is_empty => {
                let is_map = tag.name == b"struct";
                self.rpc_value_end()?;
                self.empty_container(name, is_map, from)?;
            }
            b"struct" | b"array" => {
                self.container(name, tag.name == b"struct", from, None)?;
                self.rpc_value_end()?;
            }
            known => {
                let part = match known {
                    b"i4" | b"int" => Part::Integer,
                    b"boolean" => Part::Boolean,
                    b"string" => Part::String,
                    b"double" => Part::Real,
                    b"dateTime.iso8601" => Part::Date,
                    b"base64" => Part::Binary,
                    b"nil" => Part::Undefined,
                    _ => return Err(Fault::Bytes("no element of XML-RPC at byte {a}", from)),
                };
                let (from, length) =
                    if tag.is_empty { (self.pos, 0) } else { self.content(known)? };
                self.rpc_value_end()?;
                self.xml_scalar(name, part, tag.attributes, from, length)?;
            }
        }
        Ok(())
    }

    pub(super) fn rpc_end(&mut self, is_map: bool) -> Result<bool, Fault> {
        self.rpc_blanks();
        let end: &[u8] = if is_map { b"</struct" } else { b"</array" };
        let ends = self.rest().starts_with(end);
        if ends {
            self.closing_tag()?;
        }
        Ok(ends)
    }

    pub(super) fn rpc_key(&mut self) -> Result<(), Fault> {
        self.rpc_blanks();
        let from = self.pos;
        let mut tag = self.tag()?;
        if tag.name == b"member" {
            self.xml_blanks();
            tag = self.tag()?;
        }
        if tag.name != b"name" {
            return Err(Fault::Bytes("no name of a member at byte {a}", from));
        }
        let (from, length) = if tag.is_empty { (self.pos, 0) } else { self.content(b"name")? };
        self.decode(self.bytes.get(from..from + length).unwrap_or_default());
        Ok(())
    }

    /// Passes over blanks, comments, and elements that only stand around values.
    pub(super) fn rpc_blanks(&mut self) {
        loop {
            let before = self.pos;
            if self.between().is_err() {
                return;
            }
            let rest = self.rest();
            let inner = rest.strip_prefix(b"</").or_else(|| rest.strip_prefix(b"<"));
            let Some(inner) = inner else { return };
            let name = inner.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
            let name = inner.get(..name).unwrap_or_default();
            let closes_member = rest.starts_with(b"</member");
            if !closes_member && !AROUND.contains(&name) {
                return;
            }
            if self.closing_tag().is_err() || self.pos == before {
                return;
            }
        }
    }

    fn rpc_value_end(&mut self) -> Result<(), Fault> {
        self.xml_blanks();
        if self.rest().starts_with(b"</value") {
            return self.closing_tag();
        }
        self.fault("an element within a value of XML-RPC at byte {a}")
    }
}
