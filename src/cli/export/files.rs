//! `moulsniff export files`.

use super::super::error::{CliError, Status};
use super::args::ExportFilesArgs;

pub(super) fn run(_args: &ExportFilesArgs) -> Result<Status, CliError> {
    Err(CliError::Typed("this export is not in this build".into()))
}
