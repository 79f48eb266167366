//! Services: how their messages begin, where each ends, and what tells one message from another.

use super::super::error::TableError;
use super::declarations::TableParser;
use super::syntax::*;

/// What may stand in the braces of a service beside the fields of a header.
const STATEMENTS: [&str; 7] = ["begins", "selects", "length", "ends", "fixed", "whole", "resync"];

impl TableParser<'_> {
    pub(super) fn service(&mut self) -> Result<(NameAst, ItemKind), TableError> {
        let name = self.name("the service's name")?;
        let number = if self.eat("=")? { Some(self.int("the service's number")?) } else { None };
        let mut ports = Vec::new();
        if self.eat_word("when")? {
            if !self.eat_word("port")? {
                return Err(
                    self.wrong("`port` and the ports of the servers whose messages these are")
                );
            }
            ports = self.ports()?;
        }
        let positional = self.eat_word("positional")?;
        let optional = self.eat_word("optional")?;
        let mut header = Vec::new();
        let mut framing = FramingAst::default();
        if self.eat("{")? {
            while !self.eat("}")? {
                self.docs()?;
                if self.is_sign("}") {
                    continue;
                }
                self.part()?;
                if self.next_is(":") {
                    header.push(self.header_field()?);
                } else {
                    self.service_statement(&mut framing)?;
                }
                self.eat(",")?;
            }
        }
        let service = ServiceAst { number, ports, positional, optional, header, framing };
        Ok((name, ItemKind::Service(Box::new(service))))
    }

    fn header_field(&mut self) -> Result<HeaderField, TableError> {
        let NameAst { name: field, at } =
            self.name("`number`, `length` or another field's name")?;
        self.need(":")?;
        let of = self.type_()?;
        let role = match field.as_str() {
            "number" => HeaderRole::Number,
            "length" if self.eat_word("whole")? => HeaderRole::LengthWhole,
            "length" if self.eat_word("after")? => HeaderRole::LengthAfter,
            "length" => {
                return Err(self.wrong("`whole` or `after` behind the length's type"));
            }
            _ => HeaderRole::Other,
        };
        Ok(HeaderField { name: field, at, role, of })
    }

    fn service_statement(&mut self, framing: &mut FramingAst) -> Result<(), TableError> {
        let NameAst { name: word, at } = self
            .name("a field of the header (`number: u16`) or a statement (`begins`, `length`, …)")?;
        match word.as_str() {
            "begins" => {
                framing.begins = Some(self.name("the structure that every message begins with")?)
            }
            "selects" => {
                framing.selects = Some(self.parse_number()?);
                framing.any_case = self.eat_word("anycase")?;
            }
            "length" => {
                framing.length = Some(self.parse_number()?);
                if self.eat_word("max")? {
                    framing.max = Some(self.int("the largest length in bytes")?);
                }
            }
            "ends" => framing.frame = ServiceFrame::Ends(self.literal()?),
            "fixed" => {
                let bytes = self.int("how many bytes each message has")?;
                let fits = u32::try_from(bytes).ok().filter(|bytes| *bytes > 0);
                let wrong =
                    || self.lex.error(at, "a message has at least 1 byte, and less than 4 GiB");
                framing.frame = ServiceFrame::Fixed(fits.ok_or_else(wrong)?);
            }
            "whole" => framing.frame = ServiceFrame::Whole,
            "resync" => framing.resync = Some(self.literal()?),
            other => {
                let near = crate::suggest::suggestion(other, STATEMENTS.into_iter());
                let message = format!(
                    "`{other}` says nothing of a service; {} do, and `number: TYPE`{near}",
                    STATEMENTS.join(", ")
                );
                return Err(self.lex.error(at, message));
            }
        }
        Ok(())
    }
}
