//! Reads the first words of a table file: the protocol that it belongs to, and whether it declares
//! that protocol. It reads no further.

use super::super::error::TableError;
use super::lex::{Lexer, Tok};

/// The protocol that a file belongs to, by its first words. They also tell whether it is a table
/// file at all. An error about another kind of file quotes nothing from it, because it may be a key
/// file given by mistake.
pub(in crate::table) fn parse_protocol(file: &str, text: &str) -> Result<String, TableError> {
    let mut lexer = Lexer::new(file, text);
    let mut word = || loop {
        match lexer.token().map(|token| token.tok) {
            Ok(Tok::Doc(_)) => {}
            Ok(Tok::Ident(word)) => return Some(word),
            _ => return None,
        }
    };
    let found = word().filter(|word| *word == "protocol").and_then(|_| word());
    found.map(str::to_string).ok_or_else(|| {
        TableError::unquoted(file, "this is no table file: those begin with `protocol NAME`")
    })
}

/// Whether a file declares a whole protocol (`protocol NAME { … }`) and not only more of one.
pub(in crate::table) fn declares_protocol(file: &str, text: &str) -> bool {
    let mut lexer = Lexer::new(file, text);
    let mut words = 0;
    loop {
        match lexer.token().map(|token| token.tok) {
            Ok(Tok::Doc(_)) => {}
            Ok(Tok::Ident(_)) if words < 2 => words += 1,
            Ok(Tok::Sign("{")) => return words == 2,
            _ => return false,
        }
    }
}
