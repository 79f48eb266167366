//! Reads the text of a declaration into what a reader wants to see of it: each field with its type,
//! its explanation and the conditions under which it is there.
//!
//! The compiled tables have neither explanations of fields nor conditions as they were written. The
//! text has been compiled before it comes here, so this reader knows no errors: what it does not
//! understand it leaves out. A test compares its fields with the compiled ones. It knows no tables.

/// What a declaration says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Declaration {
    /// The structure whose fields come first (`extends`).
    pub parent: Option<String>,
    /// The family of a class (`of`).
    pub family: Option<String>,
    /// The fields, and what else stands among them, in the order of the text.
    pub entries: Vec<Entry>,
    /// The lines that say what a message is about, as they are written.
    pub info: Vec<String>,
    /// Explanations of an enum's values, by name.
    pub values: Vec<(String, String)>,
    /// What an alias stands for: a type with its modifiers.
    pub alias: Option<(String, Vec<String>)>,
}

/// A field, or a remark that stands among the fields.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Conditions that all have to hold, in the words of the table language.
    pub when: Vec<String>,
    /// What it is.
    pub kind: EntryKind,
}

/// What stands among the fields of a declaration.
#[derive(Clone, Debug, PartialEq)]
pub enum EntryKind {
    /// A field.
    Field(FieldText),
    /// A remark that the message gets (`note "…"`), with its severity.
    Remark {
        /// `note`, `warning` or `error`.
        severity: String,
        /// Its text.
        text: String,
    },
    /// The rest of the region has a layout that nobody knows.
    Undecoded,
}

/// A field as it is declared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FieldText {
    /// Its name.
    pub name: String,
    /// Whether it only says how others lie in the bytes (`span`).
    pub span: bool,
    /// Its type, fields within it left out.
    pub of: String,
    /// What the table says of its values: `transaction`, `max 64`.
    pub modifiers: Vec<String>,
    /// Its explanation.
    pub doc: String,
    /// Fields within it, of a structure without a name.
    pub entries: Vec<Entry>,
}

/// Reads the text of a declaration, from its first word on.
pub fn read_declaration(text: &str) -> Declaration {
    let tokens = tokens(text);
    let mut reader = Reader { text, tokens: &tokens, at: 0 };
    let mut declaration = Declaration::default();
    match reader.word() {
        "enum" | "flags" => reader.enumeration(&mut declaration),
        "type" => {
            reader.skip_past("=");
            let (of, mut entries) = reader.type_text();
            declaration.alias = Some((of, reader.modifiers()));
            declaration.entries.append(&mut entries);
        }
        "message" | "struct" | "class" | "positions" => reader.structure(&mut declaration),
        _ => {}
    }
    declaration
}

/// A token by its first and last byte.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Token {
    kind: TokenKind,
    from: usize,
    to: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum TokenKind {
    Word,
    Number,
    Text,
    Doc,
    Sign,
}

/// Signs of two characters.
const PAIRS: [&str; 8] = ["<<", ">>", "==", "!=", "<=", ">=", "=>", "->"];

fn tokens(text: &str) -> Vec<Token> {
    let mut all = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let first = rest.chars().next().unwrap_or(' ');
        let line = rest.find('\n').unwrap_or(rest.len());
        let (kind, length) = if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        } else if rest.starts_with("///") {
            (TokenKind::Doc, line)
        } else if rest.starts_with("//") {
            at += line;
            continue;
        } else if first == '"' || first == '\'' {
            (TokenKind::Text, quoted(rest, first))
        } else if first.is_ascii_digit() {
            (TokenKind::Number, run(rest, |c| c.is_ascii_alphanumeric() || c == '_'))
        } else if first.is_alphabetic() || first == '_' {
            (TokenKind::Word, run(rest, |c| c.is_alphanumeric() || c == '_'))
        } else if PAIRS.iter().any(|pair| rest.starts_with(pair)) {
            (TokenKind::Sign, 2)
        } else {
            (TokenKind::Sign, first.len_utf8())
        };
        all.push(Token { kind, from: at, to: at + length });
        at += length;
    }
    all
}

/// The bytes at the beginning of a text whose characters are alike.
fn run(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is_part(c)).unwrap_or(text.len())
}

/// The bytes of a quoted text, with its quotes.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == quote {
            return at + 1;
        }
    }
    text.len()
}

/// Modifiers without words behind them.
const ALONE: [&str; 14] = [
    "secret",
    "opaque",
    "unexplained",
    "transaction",
    "terminated",
    "trimmed",
    "optional",
    "dialects",
    "self",
    "volatile",
    "echoed",
    "unordered",
    "continues",
    "local",
];

/// Modifiers with one word or number behind them, and perhaps more in parentheses, or behind `+`.
const WITH_WORD: [&str; 14] = [
    "max", "shown", "id", "refers", "names", "identity", "person", "chat", "file", "graph",
    "share", "change", "checksum", "same",
];

/// Signs between the parts of an expression.
const OPERATORS: [&str; 9] = ["+", "-", "*", "/", "%", "&", "<<", ">>", "^"];

struct Reader<'a> {
    text: &'a str,
    tokens: &'a [Token],
    at: usize,
}

impl<'a> Reader<'a> {
    fn kind(&self, ahead: usize) -> Option<TokenKind> {
        self.tokens.get(self.at + ahead).map(|token| token.kind)
    }

    /// The text of a token; an empty one behind the last.
    fn text(&self, ahead: usize) -> &'a str {
        let token = self.tokens.get(self.at + ahead);
        token.and_then(|token| self.text.get(token.from..token.to)).unwrap_or("")
    }

    fn is_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    /// Takes a token.
    fn word(&mut self) -> &'a str {
        let text = self.text(0);
        self.at += 1;
        text
    }

    /// Takes a token, if it is this one.
    fn eat(&mut self, text: &str) -> bool {
        let is_it = self.text(0) == text && self.kind(0) != Some(TokenKind::Text);
        self.at += usize::from(is_it);
        is_it
    }

    fn skip_past(&mut self, text: &str) {
        while !self.is_end() && !self.eat(text) {
            self.at += 1;
        }
    }

    /// The text of the tokens from a place up to here, blanks as they are within a line.
    fn since(&self, from: usize) -> String {
        let start = self.tokens.get(from).map_or(0, |token| token.from);
        let last = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        let text = last.and_then(|token| self.text.get(start..token.to)).unwrap_or("");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Passes over what stands in parentheses, brackets or braces, if they begin here.
    fn skip_group(&mut self) {
        if !matches!(self.text(0), "(" | "[" | "{") {
            return;
        }
        let mut depth = 0usize;
        while !self.is_end() {
            let sign = if self.kind(0) == Some(TokenKind::Sign) { self.text(0) } else { "" };
            self.at += 1;
            match sign {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
    }

    fn docs(&mut self) -> String {
        let mut lines = Vec::new();
        while self.kind(0) == Some(TokenKind::Doc) {
            lines.push(self.word().trim_start_matches('/').trim());
        }
        lines.join("\n")
    }

    /// The value of a quoted text.
    fn unquoted(&mut self) -> String {
        let text = self.word();
        let inner = text.get(1..text.len().saturating_sub(1)).unwrap_or("");
        inner.replace("\\\"", "\"").replace("\\\\", "\\")
    }

    fn enumeration(&mut self, declaration: &mut Declaration) {
        self.skip_past("{");
        loop {
            let doc = self.docs();
            if self.is_end() || self.eat("}") {
                return;
            }
            if self.kind(0) == Some(TokenKind::Word) && self.text(1) == "=" {
                let name = self.word().to_string();
                if !doc.is_empty() {
                    declaration.values.push((name, doc));
                }
            } else {
                self.at += 1;
            }
        }
    }

    fn structure(&mut self, declaration: &mut Declaration) {
        while !self.is_end() && self.text(0) != "{" {
            if self.eat("extends") {
                declaration.parent = Some(self.word().to_string());
            } else if self.eat("of") {
                declaration.family = Some(self.word().to_string());
            } else {
                self.at += 1;
            }
        }
        self.at += 1;
        loop {
            let before = self.at;
            let doc = self.docs();
            if self.is_end() || self.eat("}") {
                return;
            }
            if self.eat(",") {
                continue;
            }
            if self.text(1) != ":" && self.eat("example") {
                while !self.is_end() && self.text(0) != "{" {
                    self.at += 1;
                }
                self.skip_group();
            } else if self.text(1) != ":" && self.eat("info") {
                declaration.info.push(self.unquoted());
            } else if self.text(1) != ":" && self.eat("carries") {
                self.at += 1;
                while matches!(self.text(0), "." | "[") {
                    self.skip_group();
                    if self.eat(".") {
                        self.at += 1;
                    }
                }
            } else {
                self.entry(doc, &[], &mut declaration.entries);
            }
            self.at = self.at.max(before + 1);
        }
    }

    /// The entries in braces.
    fn block(&mut self, when: &[String], out: &mut Vec<Entry>) {
        if !self.eat("{") {
            return;
        }
        loop {
            let before = self.at;
            let doc = self.docs();
            if self.is_end() || self.eat("}") {
                return;
            }
            if !self.eat(",") {
                self.entry(doc, when, out);
            }
            self.at = self.at.max(before + 1);
        }
    }

    fn entry(&mut self, doc: String, when: &[String], out: &mut Vec<Entry>) {
        let mut push = |kind| out.push(Entry { when: when.to_vec(), kind });
        if self.text(1) == ":" {
            return push(EntryKind::Field(self.field(doc, false)));
        }
        match self.word() {
            "span" => push(EntryKind::Field(self.field(doc, true))),
            "if" => self.choice(when, out),
            "match" => self.matching(when, out),
            "undecoded" => push(EntryKind::Undecoded),
            "remember" => {
                self.skip_past("=");
                self.expression();
            }
            "set" => {
                self.skip_past("=");
                self.expression();
            }
            severity @ ("note" | "warning" | "error") => {
                self.eat("unhandled");
                let severity = severity.to_string();
                push(EntryKind::Remark { severity, text: self.unquoted() });
            }
            // `partial`, `last`
            _ => {}
        }
    }

    fn field(&mut self, doc: String, span: bool) -> FieldText {
        let name = self.word().to_string();
        self.eat(":");
        let (of, entries) = self.type_text();
        FieldText { name, span, of, modifiers: self.modifiers(), doc, entries }
    }

    fn choice(&mut self, when: &[String], out: &mut Vec<Entry>) {
        // What has to be false for the branch that comes next.
        let mut before: Vec<String> = when.to_vec();
        loop {
            let condition = self.condition();
            let mut here = before.clone();
            here.push(condition.clone());
            self.block(&here, out);
            before.push(format!("not ({condition})"));
            if !self.eat("else") {
                return;
            }
            if !self.eat("if") {
                return self.block(&before, out);
            }
        }
    }

    /// A condition, up to the brace behind it.
    fn condition(&mut self) -> String {
        let from = self.at;
        while !self.is_end() && self.text(0) != "{" {
            self.at += 1;
        }
        self.since(from)
    }

    fn matching(&mut self, when: &[String], out: &mut Vec<Entry>) {
        let on = self.condition();
        self.eat("{");
        let mut listed: Vec<String> = Vec::new();
        loop {
            let before = self.at;
            let doc = self.docs();
            if self.is_end() || self.eat("}") {
                return;
            }
            if self.eat(",") {
                continue;
            }
            let from = self.at;
            while !self.is_end() && self.text(0) != "=>" {
                self.at += 1;
            }
            let values = self.since(from);
            self.eat("=>");
            let condition = match values.as_str() {
                "else" => format!("not {on} in ({})", listed.join(", ")),
                one if !one.contains(',') => format!("{on} == {one}"),
                several => format!("{on} in ({several})"),
            };
            if values != "else" {
                listed.push(values);
            }
            let mut here = when.to_vec();
            here.push(condition);
            if self.text(0) == "{" {
                self.block(&here, out);
            } else {
                let doc = if doc.is_empty() { self.docs() } else { doc };
                self.entry(doc, &here, out);
            }
            self.at = self.at.max(before + 1);
        }
    }

    /// A type as it is written, and the fields of a structure without a name in it.
    fn type_text(&mut self) -> (String, Vec<Entry>) {
        let mut entries = Vec::new();
        let mut parts = Vec::new();
        self.type_parts(&mut parts, &mut entries);
        (parts.concat(), entries)
    }

    fn type_parts(&mut self, parts: &mut Vec<String>, entries: &mut Vec<Entry>) {
        if self.text(0) == "{" {
            self.block(&[], entries);
            parts.push("{ … }".into());
        } else {
            let name = self.word();
            parts.push(name.into());
            if name == "maybe" {
                parts.push(format!(" {}", self.word()));
            }
            self.group_text(parts, "(");
            if name == "null_or" {
                parts.push(" ".into());
                self.type_parts(parts, entries);
            }
            if name == "mapping" {
                if self.text(1) != ":" && self.eat("of") {
                    parts.push(" of ".into());
                    self.type_parts(parts, entries);
                }
                if self.text(0) == "{" {
                    self.block(&[], entries);
                    parts.push(" { … }".into());
                }
                if self.text(1) != ":" && self.eat("or") {
                    parts.push(" or ".into());
                    self.type_parts(parts, entries);
                }
            }
        }
        loop {
            if self.text(0) == "[" {
                self.group_text(parts, "[");
            } else if self.text(0) == "zlib" && self.text(1) == "(" {
                self.at += 1;
                parts.push(" zlib".into());
                self.group_text(parts, "(");
            } else if self.text(0) == "as" && self.text(1) != ":" {
                self.at += 1;
                parts.push(" as ".into());
                self.type_parts(parts, entries);
                while self.eat("|") {
                    parts.push(" | ".into());
                    self.type_parts(parts, entries);
                }
            } else {
                return;
            }
        }
    }

    fn group_text(&mut self, parts: &mut Vec<String>, opening: &str) {
        if self.text(0) == opening {
            let from = self.at;
            self.skip_group();
            parts.push(self.since(from));
        }
    }

    fn modifiers(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        loop {
            let from = self.at;
            if self.text(1) == ":" || self.kind(0) == Some(TokenKind::Text) {
                return all;
            }
            let word = self.text(0);
            if ALONE.contains(&word) {
                self.at += 1;
            } else if WITH_WORD.contains(&word) {
                self.at += 2;
                self.skip_group();
                while self.eat("+") {
                    self.at += 1;
                }
            } else if word == "=" {
                self.at += 1;
                self.expression();
            } else if word == "place" {
                self.at += 1;
                if self.text(1) != ":" && !self.eat("named") {
                    self.eat("beside");
                }
            } else if matches!(word, "refuses" | "leaves") {
                self.at += 2;
                self.expression();
                while self.eat("|") {
                    self.expression();
                }
            } else {
                return all;
            }
            all.push(self.since(from));
        }
    }

    /// Passes over an expression of numbers.
    fn expression(&mut self) {
        loop {
            self.eat("-");
            if matches!(self.text(0), "(") {
                self.skip_group();
            } else {
                self.at += 1;
                while self.eat(".") {
                    self.at += 1;
                }
                if self.text(0) == "(" {
                    self.skip_group();
                }
            }
            if !OPERATORS.contains(&self.text(0)) {
                return;
            }
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn fields(entries: &[Entry]) -> Vec<String> {
        let mut lines = Vec::new();
        for entry in entries {
            let when = entry.when.join(" and ");
            lines.push(match &entry.kind {
                EntryKind::Field(field) => {
                    let modifiers = field.modifiers.join(", ");
                    let within = fields(&field.entries).join("; ");
                    format!(
                        "{when}?{} {}: {} [{modifiers}] {} <{within}>",
                        if field.span { "span" } else { "" },
                        field.name,
                        field.of,
                        field.doc
                    )
                }
                EntryKind::Remark { severity, text } => format!("{when}? {severity} {text}"),
                EntryKind::Undecoded => format!("{when}? undecoded"),
            });
        }
        lines
    }

    #[test]
    fn fields_have_types_modifiers_and_explanations() {
        let text = r#"message auth client 26 Fetch extends Begin step {
            /// Ties the reply
            /// to this request.
            trans_id: u32 transaction // as always
            span size: u32, payload: bytes[size - 4] as { a: u8, b: A } max 0x10 person text
            result: ENetError refuses unless kNetSuccess | "fine"
            level: u8 = 1 << 2
            of: Node[u32 bytes] id node + player shown range(-1, 2)
            info "fetch \"{trans_id}\""
            carries payload[0].a
            example with version = 3 and more = 4 text "({1})"
                "2" { "trans_id": 7, "text": "}" }
        }"#;
        let declaration = read_declaration(text);
        assert_eq!(declaration.parent.as_deref(), Some("Begin"));
        assert_eq!(declaration.info, ["fetch \"{trans_id}\""]);
        assert_eq!(
            fields(&declaration.entries),
            [
                "? trans_id: u32 [transaction] Ties the reply\nto this request. <>",
                "?span size: u32 []  <>",
                "? payload: bytes[size - 4] as { … } [max 0x10, person text]  <? a: u8 []  <>; ? \
                 b: A []  <>>",
                "? result: ENetError [refuses unless kNetSuccess | \"fine\"]  <>",
                "? level: u8 [= 1 << 2]  <>",
                "? of: Node[u32 bytes] [id node + player, shown range(-1, 2)]  <>",
            ]
        );
    }

    #[test]
    fn conditions_say_when_a_field_is_there() {
        let text = r#"struct S(n) {
            if flags has kA { a: u8 } else if n == 2 { b: u8, undecoded } else { c: u8 }
            match type {
                kX, kY => { x: u8 }
                3 => y: u32 max 3
                /// Anything else.
                else => z: i32
            }
            note unhandled "old"
            remember game id = type
            last
        }"#;
        assert_eq!(
            fields(&read_declaration(text).entries),
            [
                "flags has kA? a: u8 []  <>",
                "not (flags has kA) and n == 2? b: u8 []  <>",
                "not (flags has kA) and n == 2? undecoded",
                "not (flags has kA) and not (n == 2)? c: u8 []  <>",
                "type in (kX, kY)? x: u8 []  <>",
                "type == 3? y: u32 [max 3]  <>",
                "not type in (kX, kY, 3)? z: i32 [] Anything else. <>",
                "? note old",
            ]
        );
    }

    #[test]
    fn values_of_enums_and_aliases_are_read() {
        let text = "flags F : u32 {\n /// First.\n kA = 1 << 0 \"one\"\n kB = 2\n}";
        assert_eq!(read_declaration(text).values, [("kA".to_string(), "First.".to_string())]);
        let alias = read_declaration("type Time = u32 shown unix_time").alias.unwrap();
        assert_eq!(alias, ("u32".to_string(), vec!["shown unix_time".to_string()]));
    }

    #[test]
    fn text_that_is_no_declaration_ends() {
        for text in [
            "",
            "message",
            "struct {",
            "enum E : u8 {",
            "class X of {{{",
            "struct S { a: [",
            "struct S { if",
            "struct S { match x { 3",
        ] {
            read_declaration(text);
        }
    }
}
