//! Where the configuration file is looked for on each system.

use std::env;
use std::path::PathBuf;

/// The file's path below the folder of configurations.
const BELOW: [&str; 2] = ["moulsniff", "config.toml"];

/// Where the file is looked for, whether there is one or not; nothing where this user has no folder
/// for such files.
pub(in crate::cli) fn config_path() -> Option<PathBuf> {
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
pub(super) fn home() -> Option<PathBuf> {
    env::home_dir().filter(|path| path.is_absolute())
}

/// The folder that a variable names. The XDG base directory specification has relative paths
/// ignored.
fn absolute(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
