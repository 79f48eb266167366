//! `moulsniff export chat`.

use super::super::error::{CliError, Status};
use super::args::ExportChatArgs;

pub(super) fn run(_args: &ExportChatArgs) -> Result<Status, CliError> {
    Err(CliError::Typed("this export is not in this build".into()))
}
