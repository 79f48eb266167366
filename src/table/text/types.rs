//! Types: names, structures without a name, lists, regions.

use super::super::error::TableError;
use super::declarations::TableParser;
use super::lex::Tok;
use super::syntax::*;

/// How many lengths (`[N]`) and regions (`as T`) may follow one type. Each is a level of nesting,
/// and the compiler recurses into it.
const MAX_SUFFIXES: usize = 8;

/// How many forms of a region (`as A | B`) there may be: each is tried.
const MAX_FORMS: usize = 16;

impl TableParser<'_> {
    /// A type.
    pub(super) fn type_(&mut self) -> Result<TypeAst, TableError> {
        self.deeper(Self::type_here)
    }

    fn type_here(&mut self) -> Result<TypeAst, TableError> {
        let at = self.now.at;
        let mut ty = self.primary()?;
        for _ in 0..MAX_SUFFIXES {
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
                    Some(ZlibAst { keep, size })
                } else {
                    None
                };
                if !self.eat_word("as")? {
                    return Err(self.wrong("`as` and the type of the content"));
                }
                let mut inner = vec![self.type_()?];
                while self.eat("|")? {
                    if inner.len() >= MAX_FORMS {
                        return Err(self.lex.error(
                            self.now.at,
                            format!("a region has {MAX_FORMS} forms at most"),
                        ));
                    }
                    inner.push(self.type_()?);
                }
                ty = TypeAst { at, kind: TypeKind::As { region: Box::new(ty), zlib, inner } };
            } else {
                return Ok(ty);
            }
        }
        Err(self
            .lex
            .error(self.now.at, format!("a type has {MAX_SUFFIXES} lengths and regions at most")))
    }

    fn primary(&mut self) -> Result<TypeAst, TableError> {
        let at = self.now.at;
        if self.is_sign("{") {
            return Ok(TypeAst { at, kind: TypeKind::Inline(self.block()?) });
        }
        let mut name = self.name("a type")?.name;
        if name == "mapping" {
            let of = if self.eat_word("of")? { Some(Box::new(self.type_()?)) } else { None };
            let keys = if self.is_sign("{") { self.block()? } else { Vec::new() };
            let array = if self.eat_word("or")? { Some(Box::new(self.type_()?)) } else { None };
            return Ok(TypeAst { at, kind: TypeKind::Mapping { of, keys, array } });
        }
        if name == "null_or" {
            self.need("(")?;
            let present = Box::new(self.type_()?);
            self.need(")")?;
            let of = Box::new(self.type_()?);
            return Ok(TypeAst { at, kind: TypeKind::NullOr { present, of } });
        }
        if name == "maybe" {
            name = format!("maybe {}", self.name("the type that may be there")?.name);
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
        } else if self.is_word("until") && self.next_is_word("last") {
            self.advance()?;
            self.advance()?;
            LenAst::Last
        } else if self.eat_word("to")? {
            if matches!(self.now.tok, Tok::Int(_)) {
                LenAst::To(self.int("the number of the unit that ends the text")?)
            } else if self.eat_word("blanks")? {
                LenAst::Blanks
            } else {
                LenAst::Until(self.literal()?)
            }
        } else {
            let integer = match &self.now.tok {
                Tok::Ident(w) if is_integer_type(w) => Some(*w),
                _ => None,
            };
            match integer {
                Some(_) => LenAst::Inline(Box::new(self.primary()?)),
                None => LenAst::Expr(self.expr()?),
            }
        };
        let bytes = self.eat_word("bytes")?;
        Ok((len, bytes))
    }
}

/// The integers that may be a count before a list, or be read anywhere.
pub(in crate::table) const INTEGER_TYPES: [&str; 20] = [
    "u8",
    "u16",
    "u24",
    "u32",
    "u64",
    "i8",
    "i16",
    "i32",
    "i64",
    "u16be",
    "u24be",
    "u32be",
    "u64be",
    "i16be",
    "i32be",
    "i64be",
    "leb128",
    "zigzag",
    "prefixint",
    "vlq",
];

/// Whether a word names an integer type.
fn is_integer_type(word: &str) -> bool {
    let word = word.strip_suffix("be").unwrap_or(word);
    INTEGER_TYPES.contains(&word)
}
