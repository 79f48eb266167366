//! `moulsniff keys`: what key files hold, and keys within captures.

use std::io::Write;

use super::args::{KeysCommand, ReadArgs};
use super::error::{CliError, Status};

pub(super) fn run(command: &KeysCommand, _args: &ReadArgs) -> Result<Status, CliError> {
    match command {
        KeysCommand::Check { files } => {
            let mut status = Status::Good;
            let mut out = std::io::stdout().lock();
            for path in files {
                match crate::keys::check(path) {
                    Ok(report) => {
                        if !report.opens() {
                            status = Status::Unreadable;
                        }
                        write!(out, "{report}").map_err(CliError::writing)?;
                    }
                    Err(error) => {
                        let _ = writeln!(std::io::stderr(), "moulsniff: {error}");
                        status = Status::Unreadable;
                    }
                }
            }
            Ok(status)
        }
        KeysCommand::Inject { .. } | KeysCommand::Strip { .. } => {
            Err(CliError::Typed("keys inject and keys strip are not there yet".into()))
        }
    }
}
