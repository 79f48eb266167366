//! Fields, types and expressions of table text.

use super::super::error::TableError;
use super::declarations::TableParser;
use super::lex::Tok;
use super::syntax::*;

/// What may stand behind a type; for suggestions only.
const MODIFIERS: [&str; 21] = [
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
    "volatile",
    "unordered",
    "continues",
    "person",
    "chat",
    "refuses",
];

impl TableParser<'_> {
    /// One entry of a body: a field, a choice, a remark.
    pub(super) fn entry(&mut self) -> Result<Entry, TableError> {
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
        if self.eat_word("remember")? {
            let (kind, _) = self.name("what kind of thing is remembered")?;
            let key = self.sum()?;
            self.need("=")?;
            return Ok(Entry::Remember { kind, key, value: self.expr()? });
        }
        if let Some(severity) = self.severity() {
            self.advance()?;
            return Ok(Entry::Say { severity, text: self.string("what there is to say, quoted")? });
        }
        let near = match &self.now.tok {
            Tok::Ident(word) => crate::suggest::suggestion(word, MODIFIERS.into_iter()),
            _ => String::new(),
        };
        let mut error = self.wrong("a field (`name: TYPE`), `span`, `if`, `match`, `note`, `undecoded` or `}`");
        error.message.push_str(&near);
        Err(error)
    }

    fn field(&mut self, span: bool) -> Result<Entry, TableError> {
        let (name, at) = self.name("a field's name")?;
        self.need(":")?;
        let of = self.type_()?;
        let mods = self.mods()?;
        Ok(Entry::Field { name, at, span, of, mods })
    }

    fn block(&mut self) -> Result<Vec<Entry>, TableError> {
        self.need("{")?;
        let mut entries = Vec::new();
        while !self.eat("}")? {
            self.docs()?;
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
        let on = self.sum()?;
        self.need("{")?;
        let mut arms = Vec::new();
        let mut otherwise = Vec::new();
        while !self.eat("}")? {
            self.docs()?;
            if self.eat_word("else")? {
                self.need("=>")?;
                otherwise = self.arm()?;
            } else {
                let mut values = vec![self.sum()?];
                while self.eat(",")? {
                    values.push(self.sum()?);
                }
                self.need("=>")?;
                arms.push((values, self.arm()?));
            }
            self.eat(",")?;
        }
        Ok(Entry::Match { on, arms, otherwise })
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
                mods.expect = Some(self.sum()?);
            } else if self.eat_word("max")? {
                mods.max = Some(self.int("how many are allowed at most")?);
            } else if self.eat_word("shown")? {
                mods.shown = Some(self.name("how the value is explained (`unix_time`, `hex`, …)")?);
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
            } else if !self.fact(&mut mods.facts)? {
                return Ok(mods);
            }
        }
    }

    /// A modifier that says nothing about how a field is read; whether there was one.
    fn fact(&mut self, facts: &mut FactMods) -> Result<bool, TableError> {
        if self.eat_word("self")? {
            facts.own = true;
        } else if self.eat_word("place")? {
            facts.place = true;
        } else if self.eat_word("volatile")? {
            facts.volatile = true;
        } else if self.eat_word("unordered")? {
            facts.unordered = true;
        } else if self.eat_word("continues")? {
            facts.continues = true;
        } else if self.eat_word("person")? {
            facts.person = Some(self.name("what the field tells about a person (`name`, `number`, `text`, …)")?);
        } else if self.eat_word("chat")? {
            facts.chat = Some(self.name("what the field is in a conversation (`from`, `to`, `channel`, `text`)")?);
        } else if self.eat_word("refuses")? {
            if !self.eat_word("unless")? {
                return Err(self.wrong("`unless` and the values that are no refusal"));
            }
            facts.refuses_unless.push(self.sum()?);
            while self.eat("|")? {
                facts.refuses_unless.push(self.sum()?);
            }
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Kinds of things: `node + player`.
    fn kinds(&mut self, what: &str) -> Result<Vec<String>, TableError> {
        let mut kinds = vec![self.name(what)?.0];
        while self.eat("+")? {
            kinds.push(self.name("a kind of thing")?.0);
        }
        Ok(kinds)
    }

    /// A type.
    pub(super) fn type_(&mut self) -> Result<TypeAst, TableError> {
        self.deeper(Self::type_here)
    }

    fn type_here(&mut self) -> Result<TypeAst, TableError> {
        let at = self.now.at;
        let mut ty = self.primary()?;
        loop {
            if self.eat("[")? {
                let (len, bytes) = self.length()?;
                self.need("]")?;
                ty = TypeAst { at, kind: TypeKind::Many { of: Box::new(ty), len, bytes } };
            } else if self.is_word("zlib") || self.is_word("as") && !self.next_is(":") {
                let zlib = if self.eat_word("zlib")? {
                    self.need("(")?;
                    let keep = self.expr()?;
                    self.need(",")?;
                    let size = self.expr()?;
                    self.need(")")?;
                    Some((keep, size))
                } else {
                    None
                };
                if !self.eat_word("as")? {
                    return Err(self.wrong("`as` and the type of the content"));
                }
                let mut inner = vec![self.type_()?];
                while self.eat("|")? {
                    inner.push(self.type_()?);
                }
                ty = TypeAst { at, kind: TypeKind::As { region: Box::new(ty), zlib, inner } };
            } else {
                return Ok(ty);
            }
        }
    }

    fn primary(&mut self) -> Result<TypeAst, TableError> {
        let at = self.now.at;
        if self.is_sign("{") {
            return Ok(TypeAst { at, kind: TypeKind::Inline(self.block()?) });
        }
        let (mut name, _) = self.name("a type")?;
        if name == "mapping" {
            let of = match self.eat_word("of")? {
                true => Some(Box::new(self.type_()?)),
                false => None,
            };
            let keys = match self.is_sign("{") {
                true => self.block()?,
                false => Vec::new(),
            };
            return Ok(TypeAst { at, kind: TypeKind::Mapping { of, keys } });
        }
        if name == "null_or" {
            self.need("(")?;
            let present = Box::new(self.type_()?);
            self.need(")")?;
            let of = Box::new(self.type_()?);
            return Ok(TypeAst { at, kind: TypeKind::NullOr { present, of } });
        }
        if name == "maybe" {
            name = format!("maybe {}", self.name("the type that may be there")?.0);
        }
        let mut args = Vec::new();
        if self.eat("(")? {
            while !self.eat(")")? {
                args.push(self.expr()?);
                self.eat(",")?;
            }
        }
        Ok(TypeAst { at, kind: TypeKind::Named { name, args } })
    }

    fn length(&mut self) -> Result<(LenAst, bool), TableError> {
        let len = if self.eat("*")? {
            LenAst::Rest
        } else if self.is_word("z") && self.next_is("]") {
            self.advance()?;
            LenAst::Zero
        } else if self.eat_word("to")? {
            LenAst::To(self.int("the number of the unit that ends the text")?)
        } else {
            let integer = match &self.now.tok {
                Tok::Ident(w) if is_integer_type(w) => Some(w.clone()),
                _ => None,
            };
            match integer {
                Some(ty) => {
                    self.advance()?;
                    LenAst::Inline(ty)
                }
                None => LenAst::Expr(self.expr()?),
            }
        };
        let bytes = self.eat_word("bytes")?;
        Ok((len, bytes))
    }

    /// An expression.
    pub(super) fn expr(&mut self) -> Result<ExprAst, TableError> {
        self.deeper(Self::or)
    }

    fn or(&mut self) -> Result<ExprAst, TableError> {
        let mut left = self.and()?;
        while self.eat_word("or")? {
            let right = self.and()?;
            left = binary(BinaryOp::Or, left, right);
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<ExprAst, TableError> {
        let mut left = self.not()?;
        while self.eat_word("and")? {
            let right = self.not()?;
            left = binary(BinaryOp::And, left, right);
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<ExprAst, TableError> {
        let at = self.now.at;
        if self.eat_word("not")? {
            let of = self.deeper(Self::not)?;
            return Ok(ExprAst { at, kind: ExprKind::Not(Box::new(of)) });
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<ExprAst, TableError> {
        let left = self.sum()?;
        let ops = [
            ("==", BinaryOp::Eq),
            ("!=", BinaryOp::Ne),
            ("<=", BinaryOp::Le),
            (">=", BinaryOp::Ge),
            ("<", BinaryOp::Lt),
            (">", BinaryOp::Gt),
        ];
        for (sign, op) in ops {
            if self.eat(sign)? {
                let right = self.sum()?;
                return Ok(binary(op, left, right));
            }
        }
        if self.eat_word("has")? {
            let right = self.sum()?;
            return Ok(binary(BinaryOp::Has, left, right));
        }
        if self.eat_word("in")? {
            self.need("(")?;
            let mut values = Vec::new();
            while !self.eat(")")? {
                values.push(self.sum()?);
                self.eat(",")?;
            }
            return Ok(ExprAst { at: left.at, kind: ExprKind::In(Box::new(left), values) });
        }
        Ok(left)
    }

    pub(super) fn sum(&mut self) -> Result<ExprAst, TableError> {
        let mut left = self.product()?;
        loop {
            let op = if self.eat("+")? {
                BinaryOp::Add
            } else if self.eat("-")? {
                BinaryOp::Sub
            } else {
                return Ok(left);
            };
            let right = self.product()?;
            left = binary(op, left, right);
        }
    }

    fn product(&mut self) -> Result<ExprAst, TableError> {
        let mut left = self.atom()?;
        let ops = [
            ("*", BinaryOp::Mul),
            ("/", BinaryOp::Div),
            ("&", BinaryOp::BitAnd),
            ("<<", BinaryOp::Shl),
            (">>", BinaryOp::Shr),
        ];
        'more: loop {
            for (sign, op) in ops {
                if self.eat(sign)? {
                    let right = self.atom()?;
                    left = binary(op, left, right);
                    continue 'more;
                }
            }
            return Ok(left);
        }
    }

    fn atom(&mut self) -> Result<ExprAst, TableError> {
        let at = self.now.at;
        if self.eat("-")? {
            let n = self.int("a number")?;
            return Ok(ExprAst { at, kind: ExprKind::Int(-i128::from(n)) });
        }
        if self.eat("(")? {
            let inner = self.expr()?;
            self.need(")")?;
            return Ok(inner);
        }
        if let Tok::Int(n) = self.now.tok {
            self.advance()?;
            return Ok(ExprAst { at, kind: ExprKind::Int(i128::from(n)) });
        }
        let (name, _) = self.name("a number, a field's name or `(`")?;
        let kind = match name.as_str() {
            "remaining" => ExprKind::Remaining,
            "more" => ExprKind::More,
            "dialect" => ExprKind::Dialect(self.name("the dialect's name")?.0),
            "recall" if self.is_sign("(") => {
                self.need("(")?;
                let kind = self.name("what kind of thing was remembered")?.0;
                self.need(",")?;
                let key = self.expr()?;
                self.need(")")?;
                ExprKind::Recall(kind, Box::new(key))
            }
            _ if self.eat(".")? => ExprKind::Path(name, self.name("the name of an enum's value")?.0),
            _ => ExprKind::Name(name),
        };
        Ok(ExprAst { at, kind })
    }
}

fn binary(op: BinaryOp, left: ExprAst, right: ExprAst) -> ExprAst {
    ExprAst { at: left.at, kind: ExprKind::Binary(op, Box::new(left), Box::new(right)) }
}

/// Whether a word names an integer type, as a count before a list must be.
pub(super) fn is_integer_type(word: &str) -> bool {
    let word = word.strip_suffix("be").unwrap_or(word);
    matches!(word, "u8" | "u16" | "u32" | "u64" | "i8" | "i16" | "i32" | "i64")
}
