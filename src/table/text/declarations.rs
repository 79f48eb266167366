//! Parses table text into declarations. It resolves no names: `compile` does.

use std::ops::Range;
use std::rc::Rc;

use super::super::error::{TableError, TableSource};
use super::beginning::parse_protocol;
use super::lex::{Lexer, PlacedToken, Tok};
use super::protocol_syntax::ProtocolAst;
use super::syntax::*;
use crate::tree::Severity;

/// A parsed file: its protocol and its declarations.
pub(in crate::table) struct ParsedFile {
    pub(in crate::table) protocol: String,
    /// What `protocol NAME { … }` declares.
    pub(in crate::table) declared: Option<ProtocolAst>,
    pub(in crate::table) items: Vec<Rc<ItemAst>>,
}

/// A table file may have this many bytes.
pub const MAX_TABLE_BYTES: usize = 16 << 20;

/// A table file may have this many declarations, fields, values and examples together. They bound
/// the memory that compiling takes.
const MAX_PARTS: usize = 250_000;

/// Parses a whole table file.
pub(in crate::table) fn parse_file(file: &str, text: &str) -> Result<ParsedFile, TableError> {
    if text.len() > MAX_TABLE_BYTES {
        return Err(TableError::unquoted(file, "a table file has 16 MiB at most"));
    }
    let protocol = parse_protocol(file, text)?;
    let mut p = TableParser::new(file, text)?;
    let doc = p.docs()?;
    let start = p.now.at;
    p.word("protocol", "`protocol NAME`")?;
    p.docs()?;
    p.name("the protocol's name")?;
    let declared =
        if p.is_sign("{") { Some(ProtocolAst { doc, start, ..p.protocol()? }) } else { None };
    let mut items = Vec::new();
    loop {
        let doc = p.docs()?;
        if p.now.tok == Tok::End {
            return Ok(ParsedFile { protocol, declared, items });
        }
        items.push(Rc::new(p.item(doc)?));
    }
}

/// The bytes of an example as text. `range` is the range of its quoted texts. In hex, two of them
/// are joined by a blank.
pub(in crate::table) fn example_bytes(
    source: &TableSource,
    range: Range<usize>,
    text: bool,
) -> String {
    let mut lexer = Lexer::new(&source.name, source.text.get(range).unwrap_or(""));
    let mut bytes = String::new();
    while let Ok(PlacedToken { tok: Tok::Str(part), at }) = lexer.token() {
        if at > 0 && !text {
            bytes.push(' ');
        }
        bytes.push_str(&part);
    }
    bytes
}

/// Parses a type alone (`packint(1)`, `plUoid`), for types asked for by name.
pub(in crate::table) fn parse_type(text: &str) -> Result<TypeAst, TableError> {
    let mut p = TableParser::new("type", text)?;
    let ty = p.type_()?;
    match p.now.tok {
        Tok::End => Ok(ty),
        _ => Err(p.wrong("the end of the type")),
    }
}

/// A recursive descent parser with one token of look-ahead. Nesting is bounded, since files may
/// come from anywhere.
pub(super) struct TableParser<'a> {
    pub(super) lex: Lexer<'a>,
    pub(super) now: PlacedToken<'a>,
    next: PlacedToken<'a>,
    depth: usize,
    /// Declarations, fields, values and examples so far.
    parts: usize,
}

const MAX_DEPTH: usize = 64;

impl<'a> TableParser<'a> {
    fn new(file: &'a str, text: &'a str) -> Result<Self, TableError> {
        let mut lex = Lexer::new(file, text);
        let now = lex.token()?;
        let next = lex.token()?;
        Ok(TableParser { lex, now, next, depth: 0, parts: 0 })
    }

    pub(super) fn advance(&mut self) -> Result<PlacedToken<'a>, TableError> {
        let next = self.lex.token()?;
        let now = std::mem::replace(&mut self.next, next);
        Ok(std::mem::replace(&mut self.now, now))
    }

    pub(super) fn wrong(&self, expected: &str) -> TableError {
        self.lex.error(self.now.at, format!("expected {expected}, found {}", self.now.tok.shown()))
    }

    pub(super) fn deeper<T>(
        &mut self,
        f: impl FnOnce(&mut Self) -> Result<T, TableError>,
    ) -> Result<T, TableError> {
        if self.depth >= MAX_DEPTH {
            return Err(self.lex.error(self.now.at, format!("nested more than {MAX_DEPTH} deep")));
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    /// Counts one more declaration, field, value or example.
    pub(super) fn part(&mut self) -> Result<(), TableError> {
        self.parts += 1;
        if self.parts > MAX_PARTS {
            return Err(self.wrong(&format!(
                "the end of the file, which has {MAX_PARTS} declarations, fields and values"
            )));
        }
        Ok(())
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(&self.now.tok, Tok::Ident(w) if *w == word)
    }

    pub(super) fn next_is(&self, sign: &str) -> bool {
        matches!(&self.next.tok, Tok::Sign(s) if *s == sign)
    }

    pub(super) fn next_is_word(&self, word: &str) -> bool {
        matches!(&self.next.tok, Tok::Ident(w) if *w == word)
    }

    pub(super) fn eat_word(&mut self, word: &str) -> Result<bool, TableError> {
        let yes = self.is_word(word);
        if yes {
            self.advance()?;
        }
        Ok(yes)
    }

    pub(super) fn is_sign(&self, sign: &str) -> bool {
        matches!(&self.now.tok, Tok::Sign(s) if *s == sign)
    }

    pub(super) fn eat(&mut self, sign: &str) -> Result<bool, TableError> {
        let yes = self.is_sign(sign);
        if yes {
            self.advance()?;
        }
        Ok(yes)
    }

    pub(super) fn need(&mut self, sign: &str) -> Result<usize, TableError> {
        if self.is_sign(sign) {
            Ok(self.advance()?.at)
        } else {
            Err(self.wrong(&format!("`{sign}`")))
        }
    }

    pub(super) fn name(&mut self, what: &str) -> Result<NameAst, TableError> {
        match self.now.tok {
            Tok::Ident(word) => {
                let name = word.to_string();
                Ok(NameAst { name, at: self.advance()?.at })
            }
            _ => Err(self.wrong(what)),
        }
    }

    pub(super) fn int(&mut self, what: &str) -> Result<u64, TableError> {
        match self.now.tok {
            Tok::Int(n) => {
                self.advance()?;
                Ok(n)
            }
            _ => Err(self.wrong(what)),
        }
    }

    pub(super) fn string(&mut self, what: &str) -> Result<String, TableError> {
        match &self.now.tok {
            Tok::Str(s) => {
                let s = s.to_string();
                self.advance()?;
                Ok(s)
            }
            _ => Err(self.wrong(what)),
        }
    }

    pub(super) fn word(&mut self, word: &str, message: &str) -> Result<(), TableError> {
        if self.eat_word(word)? { Ok(()) } else { Err(self.wrong(message)) }
    }

    pub(super) fn docs(&mut self) -> Result<String, TableError> {
        let mut out = String::new();
        while let Tok::Doc(line) = &self.now.tok {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(line);
            self.advance()?;
        }
        Ok(out)
    }

    /// Explanations within a declaration are for readers of the file.
    pub(super) fn skip_docs(&mut self) -> Result<(), TableError> {
        while matches!(self.now.tok, Tok::Doc(_)) {
            self.advance()?;
        }
        Ok(())
    }

    fn item(&mut self, doc: String) -> Result<ItemAst, TableError> {
        self.part()?;
        let start = self.now.at;
        let NameAst { name: word, .. } = self.name(
            "a declaration (service, numbers, message, struct, class, positions, enum, flags, \
             family, type, code, dialect)",
        )?;
        let (NameAst { name, at }, kind) = match word.as_str() {
            "service" => self.service()?,
            "numbers" => self.range()?,
            "message" => self.message()?,
            "struct" | "class" | "positions" => self.structure(&word)?,
            "enum" | "flags" => self.enumeration(word == "flags")?,
            "family" => self.family()?,
            "type" => {
                let name = self.name("the type's new name")?;
                self.need("=")?;
                let of = self.type_()?;
                (name, ItemKind::Alias { of, mods: Box::new(self.mods()?) })
            }
            "code" => {
                (self.name("the name of a type that the protocol's code reads")?, ItemKind::Code)
            }
            "dialect" => (self.name("the dialect's name")?, ItemKind::Dialect),
            other => {
                let message = format!(
                    "`{other}` begins no declaration; one of service, numbers, message, struct, \
                     class, positions, enum, flags, family, type, code, dialect does"
                );
                return Err(self.lex.error(start, message));
            }
        };
        Ok(ItemAst { name, at, start, end: self.now.at, doc, kind })
    }

    fn message(&mut self) -> Result<(NameAst, ItemKind), TableError> {
        let service = self.name("the message's service")?.name;
        let NameAst { name: word, at } = self.name("`client`, `server` or `both`")?;
        let direction = match word.as_str() {
            "client" => Sender::Client,
            "server" => Sender::Server,
            "both" => Sender::Both,
            _ => {
                return Err(self
                    .lex
                    .error(at, format!("expected `client`, `server` or `both`, found `{word}`")));
            }
        };
        let number = self.number()?;
        let name = self.message_name(&number)?;
        let mut answers = Vec::new();
        let mut parent = None;
        let mut expects = None;
        let mut refuses = false;
        let mut step = false;
        let mut usually = None;
        loop {
            if self.eat_word("answers")? {
                answers.push(self.reference("the message that this one answers")?);
                while self.eat(",")? {
                    answers.push(self.reference("a message")?);
                }
            } else if self.eat_word("extends")? {
                parent = Some(self.name("the struct whose fields come first")?);
            } else if self.eat_word("expects")? {
                expects = Some(self.expectation()?);
            } else if self.eat_word("refuses")? {
                refuses = true;
            } else if self.eat_word("step")? {
                step = true;
            } else if self.is_word("usually") {
                usually = Some(self.usual_side(direction)?);
            } else {
                break;
            }
        }
        let body = if self.eat_word("unknown")? { None } else { Some(self.body(parent)?) };
        let message = MessageAst {
            service,
            direction,
            number,
            answers,
            expects,
            refuses,
            step,
            usually,
            body,
        };
        Ok((name, ItemKind::Message(message)))
    }

    /// `usually client`, of a message that either side may send.
    fn usual_side(&mut self, direction: Sender) -> Result<Sender, TableError> {
        let at = self.advance()?.at;
        if direction != Sender::Both {
            return Err(self.lex.error(at, "`usually` is said of a message of `both` directions"));
        }
        if self.eat_word("client")? {
            return Ok(Sender::Client);
        }
        if self.eat_word("server")? {
            return Ok(Sender::Server);
        }
        Err(self.wrong("`client` or `server`"))
    }

    /// What follows `expects`.
    fn expectation(&mut self) -> Result<Expectation, TableError> {
        if self.eat_word("reply")? {
            return Ok(Expectation::Reply);
        }
        if self.eat_word("receipt")? {
            return Ok(Expectation::Receipt);
        }
        if self.eat_word("nothing")? {
            return Ok(Expectation::Nothing);
        }
        Err(self.wrong("`reply`, `receipt` or `nothing`"))
    }

    /// A message's number: an integer, one counted within a range (`low 51`), or a quoted name.
    fn number(&mut self) -> Result<NumberAst, TableError> {
        let at = self.now.at;
        let number = match self.now.tok.clone() {
            Tok::Int(n) => NumberAst::Int(n),
            Tok::Str(s) => NumberAst::Text(s.into_owned()),
            Tok::Ident("any") => NumberAst::Any,
            Tok::Ident(range) if matches!(self.next.tok, Tok::Int(_)) => {
                let range = range.to_string();
                self.advance()?;
                let number = self.int("the message's number within the range")?;
                return Ok(NumberAst::Within { range, at, number });
            }
            _ => return Err(self.wrong("the message's number (or its quoted name)")),
        };
        self.advance()?;
        Ok(number)
    }

    /// `numbers low = 0xffff0000 max 65279`
    fn range(&mut self) -> Result<(NameAst, ItemKind), TableError> {
        let name = self.name("the range's name")?;
        self.need("=")?;
        let base = self.int("what is added to the numbers of this range")?;
        let max = if self.eat_word("max")? {
            Some(self.int("the range's largest number")?)
        } else {
            None
        };
        Ok((name, ItemKind::Range { base, max }))
    }

    /// The name of a message, quoted where it is no word.
    pub(super) fn reference(&mut self, what: &str) -> Result<NameAst, TableError> {
        match &self.now.tok {
            Tok::Str(s) => {
                let name = s.to_string();
                Ok(NameAst { name, at: self.advance()?.at })
            }
            _ => self.name(what),
        }
    }

    /// The name behind the number; a message whose number is a text may leave it out.
    fn message_name(&mut self, number: &NumberAst) -> Result<NameAst, TableError> {
        let clause = ["answers", "extends", "expects", "refuses", "step", "usually", "unknown"]
            .iter()
            .any(|w| self.is_word(w));
        match (number, &self.now.tok) {
            (NumberAst::Text(text), _) if clause || self.is_sign("{") => {
                Ok(NameAst { name: text.clone(), at: self.now.at })
            }
            (_, Tok::Str(s)) => {
                let name = s.to_string();
                Ok(NameAst { name, at: self.advance()?.at })
            }
            _ => self.name("the message's name"),
        }
    }

    fn structure(&mut self, word: &str) -> Result<(NameAst, ItemKind), TableError> {
        let name = if word == "positions" {
            self.positions_name()?
        } else {
            self.name("the structure's name")?
        };
        let family = if word == "class" {
            self.word("of", "`of` and the family the class belongs to")?;
            Some(self.name("the family's name")?)
        } else {
            None
        };
        let mut params = Vec::new();
        if self.eat("(")? {
            while !self.eat(")")? {
                params.push(self.name("a parameter's name")?.name);
                self.eat(",")?;
            }
        }
        let parent = if self.eat_word("extends")? {
            Some(self.name("the structure whose fields come first")?)
        } else {
            None
        };
        let mut body = self.body(parent)?;
        body.family = family;
        body.params = params;
        body.positions = word == "positions";
        Ok((name, ItemKind::Struct(body)))
    }

    fn body(&mut self, parent: Option<NameAst>) -> Result<StructAst, TableError> {
        self.need("{")?;
        let mut body = StructAst { parent, ..StructAst::default() };
        while !self.eat("}")? {
            self.skip_docs()?;
            if self.is_word("example") && !self.next_is(":") {
                body.examples.push(self.example()?);
            } else if self.is_word("info") && !self.next_is(":") {
                let at = self.advance()?.at;
                body.info.push(InfoAst { at, text: self.string("the line, quoted")? });
            } else if self.is_word("carries") && !self.next_is(":") {
                let at = self.advance()?.at;
                body.carries = Some(InfoAst { at, text: self.path()? });
            } else if !self.is_sign("}") {
                body.entries.push(self.entry()?);
            }
            self.eat(",")?;
        }
        Ok(body)
    }

    /// The path of a field: `buffer.class`, `Effect[0].Type`.
    fn path(&mut self) -> Result<String, TableError> {
        let mut path = self.name("the path of a field")?.name;
        loop {
            if self.eat(".")? {
                path.push('.');
                path.push_str(&self.name("the name of a field within it")?.name);
            } else if self.eat("[")? {
                if self.eat("*")? {
                    path.push_str("[*]");
                } else {
                    let element = self.int("the element's number, from 0, or `*` for all")?;
                    path.push_str(&format!("[{element}]"));
                }
                self.need("]")?;
            } else {
                return Ok(path);
            }
        }
    }

    fn example(&mut self) -> Result<ExampleAst, TableError> {
        self.part()?;
        let at = self.advance()?.at;
        let mut with = Vec::new();
        while self.eat_word(if with.is_empty() { "with" } else { "and" })? {
            let state = self.name("the state that an earlier message set")?;
            self.need("=")?;
            with.push((state, self.int("the state's value")?));
        }
        let text = self.eat_word("text")?;
        let first = self.now.at;
        if !matches!(self.now.tok, Tok::Str(_)) {
            return Err(
                self.wrong("the example's bytes, quoted: hex, or behind `text` as they are")
            );
        }
        while matches!(self.now.tok, Tok::Str(_)) {
            self.advance()?;
        }
        if !self.is_sign("{") {
            return Err(self.wrong("the example's fields as a JSON object"));
        }
        let json = self.now.at;
        let end = self.lex.skip_json(json)?;
        self.now = self.lex.token()?;
        self.next = self.lex.token()?;
        Ok(ExampleAst { at, with, text, bytes: (first, json), json: (json, end) })
    }

    fn enumeration(&mut self, flags: bool) -> Result<(NameAst, ItemKind), TableError> {
        let name = self.name("the enum's name")?;
        self.need(":")?;
        let base = self.type_()?;
        self.need("{")?;
        let mut values = Vec::new();
        while !self.eat("}")? {
            self.skip_docs()?;
            if self.is_sign("}") {
                continue;
            }
            self.part()?;
            let NameAst { name, at } = self.name("a value's name")?;
            self.need("=")?;
            let negative = self.eat("-")?;
            let mut value = self.int("the value")?;
            if self.eat("<<")? {
                let by = self.int("how many bits to shift")?;
                value = match u32::try_from(by).ok().and_then(|by| value.checked_shl(by)) {
                    Some(shifted) => shifted,
                    None => {
                        return Err(self
                            .lex
                            .error(at, format!("a value has 64 bits, `<< {by}` goes past them")));
                    }
                };
            }
            if negative {
                value = value.wrapping_neg();
            }
            let text =
                if matches!(self.now.tok, Tok::Str(_)) { self.string("")? } else { String::new() };
            values.push(EnumValueAst { name, at, value, text });
            self.eat(",")?;
        }
        Ok((name, ItemKind::Enum { flags, base, values }))
    }

    fn family(&mut self) -> Result<(NameAst, ItemKind), TableError> {
        let name = self.name("the family's name")?;
        self.need("{")?;
        let field = self.name("the name of the field that tells the class")?.name;
        self.need(":")?;
        let of = self.type_()?;
        self.eat(",")?;
        let null = if self.eat_word("null")? {
            Some(self.int("the number that means no object")?)
        } else {
            None
        };
        self.eat(",")?;
        self.need("}")?;
        Ok((name, ItemKind::Family { field, of, null }))
    }

    pub(super) fn severity(&self) -> Option<Severity> {
        match &self.now.tok {
            Tok::Ident("note") => Some(Severity::Note),
            Tok::Ident("warning") => Some(Severity::Warning),
            Tok::Ident("error") => Some(Severity::Error),
            _ => None,
        }
    }
}
