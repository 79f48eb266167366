//! The declaration of a whole protocol: `protocol NAME { … }` at the beginning of a table file.
//! Resolves nothing.

use super::super::error::TableError;
use super::super::hex::parse_hex;
use super::declarations::TableParser;
use super::lex::Tok;
use super::protocol_syntax::{Condition, OfferAst, ProtocolAst, RuleAst, RuleSide, StateAst};
use super::syntax::NameAst;

impl TableParser<'_> {
    /// The body of `protocol NAME { … }`.
    pub(super) fn protocol(&mut self) -> Result<ProtocolAst, TableError> {
        let mut found = ProtocolAst { at: self.need("{")?, ..ProtocolAst::default() };
        while !self.eat("}")? {
            self.docs()?;
            if self.is_sign("}") {
                continue;
            }
            self.part()?;
            self.statement(&mut found)?;
            self.eat(",")?;
        }
        found.end = self.now.at;
        Ok(found)
    }

    fn statement(&mut self, found: &mut ProtocolAst) -> Result<(), TableError> {
        const WORDS: [&str; 5] = ["transport", "ports", "recognise", "service", "state"];
        let NameAst { name: word, at } =
            self.name("`transport`, `ports`, `recognise`, `service`, `state` or `}`")?;
        match word.as_str() {
            "transport" => self.transports(found)?,
            "ports" => found.ports.extend(self.ports()?),
            "recognise" => found.rules.push(self.rule(at)?),
            "service" => {
                let NameAst { name, at } = self.name("the name of a service")?;
                let when = if self.eat_word("when")? { Some(self.rule(at)?) } else { None };
                found.services.push(OfferAst { name, at, when });
            }
            "state" => {
                let NameAst { name, at } = self.name("the state's name")?;
                self.need("=")?;
                found.states.push(StateAst {
                    name,
                    at,
                    value: self.int("its value when a connection begins")?,
                });
            }
            other => {
                let near = crate::suggest::suggestion(other, WORDS.into_iter());
                let message =
                    format!("a protocol has {}, but no `{other}`{near}", WORDS.join(", "));
                return Err(self.lex.error(at, message));
            }
        }
        Ok(())
    }

    fn transports(&mut self, found: &mut ProtocolAst) -> Result<(), TableError> {
        loop {
            if self.eat_word("tcp")? {
                found.tcp = true;
            } else if self.eat_word("udp")? {
                found.udp = true;
            } else {
                return Err(self.wrong("`tcp` or `udp`"));
            }
            if !self.eat(",")? {
                return Ok(());
            }
        }
    }

    pub(super) fn ports(&mut self) -> Result<Vec<u16>, TableError> {
        let mut ports = Vec::new();
        loop {
            self.part()?;
            let at = self.now.at;
            let port = self.int("a port")?;
            ports.push(
                u16::try_from(port).map_err(|_| self.lex.error(at, "a port is 65535 at most"))?,
            );
            if !self.eat(",")? {
                return Ok(ports);
            }
        }
    }

    /// `each client { … }`, or one condition without braces.
    fn rule(&mut self, at: usize) -> Result<RuleAst, TableError> {
        let each = self.eat_word("each")?;
        let side = if self.eat_word("client")? {
            RuleSide::Client
        } else if self.eat_word("server")? {
            RuleSide::Server
        } else if self.eat_word("both")? {
            RuleSide::Both
        } else {
            RuleSide::Either
        };
        let mut conditions = Vec::new();
        if !self.eat("{")? {
            conditions.push(self.condition()?);
            return Ok(RuleAst { at, each, side, conditions });
        }
        while !self.eat("}")? {
            self.part()?;
            conditions.push(self.condition()?);
            self.eat(",")?;
        }
        if conditions.is_empty() {
            return Err(self.lex.error(
                at,
                "a rule has at least one condition: any connection would satisfy this one",
            ));
        }
        Ok(RuleAst { at, each, side, conditions })
    }

    fn condition(&mut self) -> Result<Condition, TableError> {
        if self.eat_word("fits")? {
            return Ok(Condition::Fits);
        }
        if self.eat_word("port")? {
            let listed = matches!(self.now.tok, Tok::Int(_));
            return Ok(Condition::Port(if listed { self.ports()? } else { Vec::new() }));
        }
        if self.eat_word("length")? {
            let least = self.eat(">=")?;
            if !least && !self.eat("<=")? {
                return Err(self.wrong("`>=` or `<=` and a number of bytes"));
            }
            let bytes = self.place("a number of bytes")?;
            return Ok(if least { Condition::Least(bytes) } else { Condition::Most(bytes) });
        }
        if !self.eat_word("at")? {
            return Err(
                self.wrong("a condition: `at N \"bytes\"`, `length >= N`, `fits` or `port`")
            );
        }
        let place = self.place("the place of a byte, from 0")?;
        let here = self.now.at;
        let mut values = vec![self.literal()?];
        while self.eat("|")? {
            values.push(self.literal()?);
        }
        let length = values.first().map_or(0, Vec::len);
        if values.iter().any(|value| value.len() != length) {
            return Err(self.lex.error(here, "the values that may stand here are equally long"));
        }
        let behind = self.now.at;
        let mask = if self.eat_word("mask")? { self.literal()? } else { Vec::new() };
        if !mask.is_empty() && mask.len() != length {
            return Err(self
                .lex
                .error(behind, format!("the mask is as long as the value: {length} bytes")));
        }
        Ok(Condition::At { place, values, mask })
    }

    /// A number that is compared with places among the first bytes of a connection, of which 4096
    /// are looked at.
    fn place(&mut self, what: &str) -> Result<u32, TableError> {
        let at = self.now.at;
        match u32::try_from(self.int(what)?) {
            Ok(place) if place <= 4096 => Ok(place),
            _ => Err(self.lex.error(at, "only the first 4096 bytes are looked at")),
        }
    }

    /// Bytes: a quoted text as it is, or `hex "0d 0a"`.
    pub(super) fn literal(&mut self) -> Result<Vec<u8>, TableError> {
        let hex = self.eat_word("hex")?;
        let at = self.now.at;
        let text = self.string("bytes: a quoted text, or hex \"0d 0a\"")?;
        let bytes = if hex {
            parse_hex(&text).ok_or_else(|| self.lex.error(at, "hex has two digits a byte"))?
        } else {
            text.into_bytes()
        };
        if bytes.is_empty() || bytes.len() > 255 {
            return Err(self.lex.error(at, "from 1 to 255 bytes are written here"));
        }
        Ok(bytes)
    }
}
