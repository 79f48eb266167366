//! The names of positions: a word, or the name of other positions or of a message and a number of
//! elements.

use super::super::error::TableError;
use super::declarations::TableParser;
use super::lex::Tok;
use super::syntax::NameAst;

impl TableParser<'_> {
    /// `Packet`, `MudInfo of 11`, `MudInfo of 12 otherwise`, `"startup-req-2" of 20`.
    pub(super) fn positions_name(&mut self) -> Result<NameAst, TableError> {
        let message = matches!(self.now.tok, Tok::Str(_));
        let of = self.reference("the positions' name")?;
        if message {
            self.word(
                "of",
                "`of` and the number of elements for which the message has other positions",
            )?;
        } else if !self.eat_word("of")? {
            return Ok(of);
        }
        let count = self.int("the number of elements")?;
        let otherwise = if self.eat_word("otherwise")? { " otherwise" } else { "" };
        Ok(NameAst { name: format!("{} of {count}{otherwise}", of.name), at: of.at })
    }
}
