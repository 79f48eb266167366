//! The configuration file: options that the user would otherwise type each time. `docs/settings.md`
//! describes it.
//!
//! An option on the command line overrides the file, and so does the option's environment variable.
//! Only commands that use one of its values read the file. They do so after the command line was
//! checked, so the file cannot turn a correct command line into a mistake.

pub(super) mod read;

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::error::CliError;
use super::files;
use super::options::{GeneralArgs, KeyArgs, ProtocolArgs, ReadArgs, TableArgs, TimeWord};
use crate::filter::NamedExpressions;

/// The largest configuration file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

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

/// The options of a command that the file may fill.
pub(super) struct Configured<'a> {
    pub(super) general: &'a mut GeneralArgs,
    pub(super) tables: &'a mut TableArgs,
    /// The protocols' options, where the command has them.
    pub(super) protocols: Option<&'a mut ProtocolArgs>,
    /// The form of times, where the command prints some.
    pub(super) time: Option<&'a mut Option<TimeWord>>,
}

impl<'a> Configured<'a> {
    /// Those of a command that reads captures.
    pub(super) fn of_captures(read: &'a mut ReadArgs) -> Configured<'a> {
        Configured::of_keys(&mut read.keys, &mut read.general)
    }

    /// Those of a command that reads keys and tables.
    pub(super) fn of_keys(keys: &'a mut KeyArgs, general: &'a mut GeneralArgs) -> Configured<'a> {
        let protocols = Some(&mut keys.protocols);
        Configured { general, tables: &mut keys.tables, protocols, time: None }
    }

    /// Those of a command that reads tables alone.
    pub(super) fn of_tables(
        tables: &'a mut TableArgs,
        general: &'a mut GeneralArgs,
    ) -> Configured<'a> {
        Configured { general, tables, protocols: None, time: None }
    }
}

/// Fills what was not typed with the file's values.
///
/// # Errors
/// The file cannot be read, or is not what a configuration file is.
pub(super) fn fill(options: Configured<'_>) -> Result<(), CliError> {
    if let Some(path) = file(options.general) {
        Config::load(&path)?.fill(options);
    }
    Ok(())
}

/// The file, if it is there and is to be read. A command that needs nothing of it does not
/// overwrite it either.
pub(super) fn file(general: &GeneralArgs) -> Option<PathBuf> {
    if general.no_config { None } else { config_path().filter(|path| is_there(path)) }
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
                "{name}: expected {WHAT}, found a folder, a named pipe or a device, which is not \
                 read"
            );
            return Err(CliError::Unreadable(text));
        }
        let bytes = files::read(path, WHAT, MAX_BYTES)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let config = read::parse(&name, folder, &bytes)?;
        Ok(Config { path: Some(path.to_path_buf()), ..config })
    }

    /// Sets what was not typed, and what no environment variable says.
    pub(super) fn fill(self, options: Configured<'_>) {
        let Configured { general, tables, mut protocols, time } = options;
        for files in &self.files {
            let place = self.place(files.line);
            if files.option == read::TABLES {
                if tables.files.is_empty() {
                    tables.files.clone_from(&files.paths);
                    tables.place = Some(place);
                }
            } else if let Some(protocols) = &mut protocols {
                protocols.fill(&files.option, &files.paths, &place);
            }
        }
        if let (Some(form), Some(time)) = (self.time, time) {
            time.get_or_insert(form.form);
        }
        general.config_file = self.path;
        general.named = self.named;
    }

    /// A line of the file, for people.
    fn place(&self, line: usize) -> String {
        let name = self.path.as_deref().map(files::name).unwrap_or_default();
        format!("{name}, line {line}")
    }
}

/// The file's path below the folder of configurations.
const BELOW: [&str; 2] = ["moulsniff", "config.toml"];

/// Where the file is looked for, whether there is one or not; nothing where this user has no folder
/// for such files.
pub(super) fn config_path() -> Option<PathBuf> {
    Some(BELOW.iter().fold(folder()?, |path, part| path.join(part)))
}

/// The folder of configurations: on Windows `%APPDATA%`; elsewhere, macOS included,
/// `$XDG_CONFIG_HOME`, else `~/.config`.
fn folder() -> Option<PathBuf> {
    if cfg!(windows) {
        return absolute("APPDATA");
    }
    absolute("XDG_CONFIG_HOME").or_else(|| Some(home()?.join(".config")))
}

/// This user's home folder.
fn home() -> Option<PathBuf> {
    env::home_dir().filter(|path| path.is_absolute())
}

/// The folder that a variable names. The XDG base directory specification has relative paths
/// ignored.
fn absolute(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
