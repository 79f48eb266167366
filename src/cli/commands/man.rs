//! `moulsniff man`: manual pages.

use super::print;
use crate::cli::command;
use crate::cli::error::{CliError, Status};

/// The manual page of the program, or of the command that `words` name.
pub(super) fn run(words: &[String]) -> Result<Status, CliError> {
    let mut page = command();
    page.build();
    for word in words {
        let Some(found) = page.find_subcommand(word).cloned() else {
            let near = crate::suggest::suggestion(
                word,
                page.get_subcommands().map(clap::Command::get_name),
            );
            return Err(CliError::Typed(format!("there is no command `{word}`{near}")));
        };
        page = found;
    }
    let mut text = Vec::new();
    clap_mangen::Man::new(page)
        .source(concat!("moulsniff ", env!("CARGO_PKG_VERSION")))
        .render(&mut text)
        .map_err(CliError::writing)?;
    print(&text)
}
