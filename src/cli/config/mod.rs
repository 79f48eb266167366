//! The configuration file: options that the user would otherwise type each time. `docs/settings.md`
//! describes it.
//!
//! An option on the command line overrides the file, and so does the option's environment variable.
//! Only commands that use one of its values read the file. They do so after the command line was
//! checked, so the file cannot turn a correct command line into a mistake.

mod place;
pub(super) mod read;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::error::CliError;
use super::files;
use super::options::{Cli, Command, KeysCommand, ReadArgs, TablesCommand, TimeWord};
use crate::filter::NamedExpressions;
pub(super) use place::config_path;

/// The largest configuration file, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// What the configuration file says.
#[derive(Clone, Debug, Default)]
pub(super) struct Config {
    /// The file, where there is one that is read or that no output may replace.
    pub(super) path: Option<PathBuf>,
    /// The options that name files.
    pub(super) files: Vec<FilesOfConfig>,
    /// The form of times.
    pub(super) time: Option<TimeOfConfig>,
    /// Filters and columns that have names.
    pub(super) named: NamedExpressions,
}

/// The form of times that the file asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeOfConfig {
    pub(super) form: TimeWord,
    /// The line of the file, from 1.
    pub(super) line: usize,
}

/// An option that names files, as the file has it.
#[derive(Clone, Debug)]
pub(super) struct FilesOfConfig {
    /// The option, without its hyphens.
    pub(super) option: String,
    /// The files, from the folder of the configuration file if the path is a relative one.
    pub(super) paths: Vec<PathBuf>,
    /// The line of the file, from 1.
    pub(super) line: usize,
}

/// Brings the file's values into what was typed, where the command uses them.
///
/// # Errors
/// The file cannot be read, or is not what a configuration file is.
pub(super) fn fill(cli: &mut Cli) -> Result<(), CliError> {
    if cli.reading().no_config {
        return Ok(());
    }
    let uses = uses_config(cli);
    let Some(path) = config_path().filter(|path| is_there(path)) else { return Ok(()) };
    let config =
        if uses { Config::load(&path)? } else { Config { path: Some(path), ..Config::default() } };
    config.fill(cli.reading_mut());
    Ok(())
}

/// Whether a command uses values of the file. Other commands only make sure not to overwrite it.
fn uses_config(cli: &Cli) -> bool {
    match &cli.command {
        None => !cli.read.list_interfaces,
        Some(Command::Tables(tables)) => {
            matches!(
                tables,
                TablesCommand::List { .. } | TablesCommand::Show { .. } | TablesCommand::Lua
            )
        }
        Some(Command::Keys(keys)) => matches!(keys, KeysCommand::Inject { .. }),
        Some(
            Command::Split(_)
            | Command::Config(_)
            | Command::Man { .. }
            | Command::Completions { .. },
        ) => false,
        Some(_) => true,
    }
}

/// Whether there is a file to be read. A file in a folder that this user may not enter counts as
/// absent: `HOME` may be another user's.
pub(super) fn is_there(path: &Path) -> bool {
    match fs::symlink_metadata(path) {
        Ok(_) => true,
        Err(error) => !matches!(
            error.kind(),
            ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied
        ),
    }
}

impl Config {
    /// Reads the file.
    pub(super) fn load(path: &Path) -> Result<Config, CliError> {
        const WHAT: &str = "a configuration file";
        let name = files::name(path);
        if fs::metadata(path).is_ok_and(|facts| !facts.is_file()) {
            let text = format!(
                "{name}: expected {WHAT}, found a folder, a named pipe or a device, which is not read"
            );
            return Err(CliError::Unreadable(text));
        }
        let bytes = files::read(path, WHAT, MOST_BYTES)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let config = read::parse(&name, folder, &bytes)?;
        Ok(Config { path: Some(path.to_path_buf()), ..config })
    }

    /// Sets what was not typed, and what no environment variable says.
    pub(super) fn fill(self, args: &mut ReadArgs) {
        for files in &self.files {
            let place = self.place(files.line);
            if files.option == read::TABLES {
                if args.tables.is_empty() {
                    args.tables.clone_from(&files.paths);
                    args.config.tables_place = Some(place);
                }
            } else {
                args.protocols.fill(&files.option, &files.paths, &place);
            }
        }
        if let Some(time) = self.time {
            args.time.get_or_insert(time.form);
        }
        args.config.path = self.path;
        args.config.named = self.named;
    }

    /// A line of the file, for people.
    fn place(&self, line: usize) -> String {
        let name = self.path.as_deref().map(files::name).unwrap_or_default();
        format!("{name}, line {line}")
    }
}
