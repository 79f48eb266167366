//! `moulsniff export vault`.

use super::super::error::{CliError, Status};
use super::args::ExportVaultArgs;

pub(super) fn run(_args: &ExportVaultArgs) -> Result<Status, CliError> {
    Err(CliError::Typed("this export is not in this build".into()))
}
