//! The bodies of structures: fields with their modifiers, choices, remarks.

use super::super::error::TableError;
use super::declarations::TableParser;
use super::lex::Tok;
use super::syntax::*;
use crate::tree::Concern;

/// The words that may follow a type. For suggestions only.
const MODIFIERS: [&str; 31] = [
    "checksum",
    "max",
    "shown",
    "id",
    "refers",
    "names",
    "secret",
    "opaque",
    "unexplained",
    "transaction",
    "terminated",
    "trimmed",
    "optional",
    "dialects",
    "self",
    "place",
    "leaves",
    "identity",
    "volatile",
    "echoed",
    "unordered",
    "continues",
    "local",
    "same",
    "person",
    "chat",
    "file",
    "graph",
    "share",
    "change",
    "refuses",
];

impl TableParser<'_> {
    /// One entry of a body: a field, a choice, a remark.
    pub(super) fn entry(&mut self) -> Result<Entry, TableError> {
        self.part()?;
        self.deeper(|p| p.entry_here())
    }

    fn entry_here(&mut self) -> Result<Entry, TableError> {
        if self.next_is(":") {
            return self.field(false);
        }
        if self.eat_word("span")? {
            return self.field(true);
        }
        if self.eat_word("if")? {
            return self.choice();
        }
        if self.eat_word("match")? {
            return self.matching();
        }
        if self.eat_word("undecoded")? {
            return Ok(Entry::Undecoded);
        }
        if self.eat_word("partial")? {
            return Ok(Entry::Partial);
        }
        if self.eat_word("last")? {
            return Ok(Entry::Last);
        }
        if self.eat_word("remember")? {
            let kind = self.name("what kind of thing is remembered")?.name;
            let key = self.parse_number()?;
            self.need("=")?;
            return Ok(Entry::Remember { kind, key, value: self.expr()? });
        }
        if self.is_word("set") {
            self.advance()?;
            let NameAst { name: state, at } = self.name("the state that is set")?;
            self.need("=")?;
            return Ok(Entry::Set { state, at, value: self.expr()? });
        }
        if let Some(severity) = self.severity() {
            self.advance()?;
            let concern =
                if self.eat_word("unhandled")? { Concern::Unhandled } else { Concern::None };
            let text = self.string("what there is to say, quoted")?;
            return Ok(Entry::Say { severity, concern, text });
        }
        let near = match &self.now.tok {
            Tok::Ident(word) => crate::suggest::suggestion(word, MODIFIERS.into_iter()),
            _ => String::new(),
        };
        let mut error =
            self.wrong("a field (`name: TYPE`), `span`, `if`, `match`, `note`, `undecoded` or `}`");
        error.message.push_str(&near);
        Err(error)
    }

    fn field(&mut self, span: bool) -> Result<Entry, TableError> {
        let NameAst { name, at } = self.field_name()?;
        self.need(":")?;
        let of = self.type_()?;
        let mods = if self.begins_mods() { self.some_mods()? } else { None };
        Ok(Entry::Field(FieldAst { name, at, span, of, mods }))
    }

    /// A field's name. A key of a mapping may have signs that no name has.
    #[inline(never)]
    fn field_name(&mut self) -> Result<NameAst, TableError> {
        match self.now.tok {
            Tok::Str(_) => Ok(NameAst { at: self.now.at, name: self.string("a key")? }),
            _ => self.name("a field's name"),
        }
    }

    /// Whether modifiers may follow here: they begin with `=` or with a word that is not the next
    /// field's name.
    fn begins_mods(&self) -> bool {
        !self.next_is(":") && (matches!(self.now.tok, Tok::Ident(_)) || self.is_sign("="))
    }

    /// The modifiers here, if there are any.
    fn some_mods(&mut self) -> Result<Option<Box<Mods>>, TableError> {
        let behind = self.now.at;
        let mods = self.mods()?;
        Ok((self.now.at != behind).then(|| Box::new(mods)))
    }

    pub(super) fn block(&mut self) -> Result<Vec<Entry>, TableError> {
        self.need("{")?;
        let mut entries = Vec::new();
        while !self.eat("}")? {
            self.skip_docs()?;
            if self.is_sign("}") {
                continue;
            }
            entries.push(self.entry()?);
            self.eat(",")?;
        }
        Ok(entries)
    }

    fn choice(&mut self) -> Result<Entry, TableError> {
        let mut arms = vec![(self.expr()?, self.block()?)];
        loop {
            if !self.eat_word("else")? {
                return Ok(Entry::If { arms, otherwise: Vec::new() });
            }
            if self.eat_word("if")? {
                arms.push((self.expr()?, self.block()?));
            } else {
                return Ok(Entry::If { arms, otherwise: self.block()? });
            }
        }
    }

    fn matching(&mut self) -> Result<Entry, TableError> {
        let on = self.parse_number()?;
        self.need("{")?;
        let mut arms = Vec::new();
        let mut otherwise = Vec::new();
        while !self.eat("}")? {
            self.skip_docs()?;
            if self.eat_word("else")? {
                self.need("=>")?;
                otherwise = self.arm()?;
            } else {
                let mut values = vec![self.parse_number()?];
                while self.eat(",")? {
                    values.push(self.parse_number()?);
                }
                self.need("=>")?;
                arms.push((values, self.arm()?));
            }
            self.eat(",")?;
        }
        Ok(Entry::Match { on, arms, otherwise })
    }

    /// The word behind `shown`, with its numbers: `hex`, `range(-128, 128)`.
    fn shown(&mut self) -> Result<NameAst, TableError> {
        let mut word = self.name("how the value is explained (`unix_time`, `hex`, …)")?;
        if self.eat("(")? {
            let mut numbers = Vec::new();
            while !self.eat(")")? {
                let sign = if self.eat("-")? { "-" } else { "" };
                numbers.push(format!("{sign}{}", self.int("a number")?));
                self.eat(",")?;
            }
            word.name = format!("{}({})", word.name, numbers.join(", "));
        }
        Ok(word)
    }

    fn arm(&mut self) -> Result<Vec<Entry>, TableError> {
        if self.is_sign("{") { self.block() } else { Ok(vec![self.entry()?]) }
    }

    /// The modifiers behind a type.
    pub(super) fn mods(&mut self) -> Result<Mods, TableError> {
        let mut mods = Mods::default();
        loop {
            if self.next_is(":") {
                return Ok(mods);
            }
            if self.eat("=")? {
                mods.expect = Some(self.parse_number()?);
            } else if self.eat_word("max")? {
                mods.max = Some(self.int("how many are allowed at most")?);
            } else if self.eat_word("shown")? {
                mods.shown = Some(self.shown()?);
            } else if self.eat_word("id")? {
                mods.ids = self.kinds("of what kind of thing it is the number")?;
            } else if self.eat_word("refers")? {
                mods.ids = self.kinds("to what kind of thing it refers")?;
                mods.refers = true;
            } else if self.eat_word("names")? {
                mods.names = self.kinds("what kind of thing it is the name of")?;
            } else if self.eat_word("secret")? {
                mods.secret = true;
            } else if self.eat_word("opaque")? {
                mods.opaque = true;
            } else if self.eat_word("unexplained")? {
                mods.unexplained = true;
            } else if self.eat_word("transaction")? {
                mods.transaction = true;
            } else if self.eat_word("terminated")? {
                mods.terminated = true;
            } else if self.eat_word("trimmed")? {
                mods.trimmed = true;
            } else if self.eat_word("optional")? {
                mods.optional = true;
            } else if self.eat_word("dialects")? {
                mods.dialects = true;
            } else if self.eat_word("checksum")? {
                mods.checksum = Some(Box::new(self.checksum()?));
            } else if !self.fact(&mut mods.facts)? {
                return Ok(mods);
            }
        }
    }

    /// The words after `checksum`.
    fn checksum(&mut self) -> Result<ChecksumAst, TableError> {
        let name = self.name("how the checksum is computed (`crc32`, `adler32`, …)")?;
        self.need("(")?;
        let from = self.expr()?;
        self.need(",")?;
        let to = self.expr()?;
        self.need(")")?;
        Ok(ChecksumAst { name, from, to })
    }

    /// Values with `|` between them.
    fn alternatives(&mut self) -> Result<Vec<ExprAst>, TableError> {
        let mut all = vec![self.alternative()?];
        while self.eat("|")? {
            all.push(self.alternative()?);
        }
        Ok(all)
    }

    /// The values behind `refuses unless`: numbers, and quoted texts.
    fn refuses_unless(&mut self, facts: &mut FactMods) -> Result<(), TableError> {
        loop {
            if matches!(self.now.tok, Tok::Str(_)) {
                facts.refuses_unless_texts.push(self.string("")?);
            } else {
                facts.refuses_unless.push(self.alternative()?);
            }
            if !self.eat("|")? {
                return Ok(());
            }
        }
    }

    /// The word behind `place`.
    fn place_role(&mut self) -> Result<PlaceRole, TableError> {
        if self.eat_word("named")? {
            return Ok(PlaceRole::Named);
        }
        Ok(if self.eat_word("beside")? { PlaceRole::Beside } else { PlaceRole::Enters })
    }

    /// Parses a modifier that does not affect how a field is read. Returns whether there was one.
    fn fact(&mut self, facts: &mut FactMods) -> Result<bool, TableError> {
        if self.eat_word("self")? {
            facts.own = true;
        } else if self.eat_word("place")? {
            facts.place = Some(self.place_role()?);
        } else if self.eat_word("identity")? {
            facts.identity = self.kinds("what kind of thing it identifies")?;
        } else if self.eat_word("volatile")? {
            facts.volatile = true;
        } else if self.eat_word("echoed")? {
            facts.echoed = true;
        } else if self.eat_word("unordered")? {
            facts.unordered = true;
        } else if self.eat_word("continues")? {
            facts.continues = true;
        } else if self.eat_word("local")? {
            facts.local = true;
        } else if self.eat_word("same")? {
            facts.same = Some(self.name("as the number of what kind of thing")?);
        } else if self.eat_word("person")? {
            facts.person = Some(
                self.name("what the field tells about a person (`name`, `number`, `text`, …)")?,
            );
        } else if self.eat_word("chat")? {
            facts.chat = Some(
                self.name("what the field is in a conversation (`from`, `to`, `channel`, `text`)")?,
            );
        } else if self.eat_word("file")? {
            facts.file = Some(
                self.name("what the field is of a transferred file (`name`, `part`, `size`, …)")?,
            );
        } else if self.eat_word("share")? {
            facts.share = Some(
                self.name("what the field is of a reply in several messages (`part`, `whole`)")?,
            );
        } else if self.eat_word("change")? {
            facts.change =
                Some(self.name("what the field is of something that changes (`key`, `values`)")?);
        } else if self.eat_word("graph")? {
            facts.graph =
                Some(self.name("what the field is of a store of nodes (`mask`, `parent`, …)")?);
        } else if self.eat_word("refuses")? {
            if !self.eat_word("unless")? {
                return Err(self.wrong("`unless` and the values that are no refusal"));
            }
            self.refuses_unless(facts)?;
        } else if self.eat_word("leaves")? {
            if !self.eat_word("unless")? {
                return Err(self.wrong("`unless` and the values with which the client stays"));
            }
            facts.leaves_unless = self.alternatives()?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Kinds of things: `node + player`.
    fn kinds(&mut self, what: &str) -> Result<Vec<String>, TableError> {
        let mut kinds = vec![self.name(what)?.name];
        while self.eat("+")? {
            kinds.push(self.name("a kind of thing")?.name);
        }
        Ok(kinds)
    }
}
