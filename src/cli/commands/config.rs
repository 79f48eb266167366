//! `moulsniff config`: the configuration file's path, each value that is in force, and where it
//! comes from.
//!
//! Of key files it knows the paths alone.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::captured::escape;
use crate::cli::config::{Config, Configured, config_path, is_there, read};
use crate::cli::error::{CliError, Status};
use crate::cli::options::{GeneralArgs, KeyArgs, TIME_HELP, TimeWord};
use crate::cli::{files, load};
use crate::filter::{Filter, NamedExpression, Paths};
use crate::output_file::Inputs;

/// The values in force.
#[derive(Args, Debug)]
pub struct ConfigArgs {
    #[arg(short = 't', long = "time", value_name = "FORM", help = TIME_HELP)]
    pub time: Option<TimeWord>,
    /// What every command has.
    #[command(flatten)]
    pub general: GeneralArgs,
    /// Keys and tables.
    #[command(flatten)]
    pub keys: KeyArgs,
}

/// One value: what it is of, where it comes from, and what it is.
struct ConfigLine {
    what: String,
    source: String,
    value: String,
}

/// Prints the values in force; filters and columns that have names are compiled, too.
///
/// # Errors
/// The file is not what it should be, or one of its filters or columns is wrong.
pub(super) fn run(args: &ConfigArgs) -> Result<Status, CliError> {
    let path = config_path();
    let there = path.as_deref().is_some_and(is_there);
    let shown = match &path {
        _ if args.general.no_config => ("not read", "--no-config was typed".into()),
        None => ("none", "this user has no folder for it: HOME is not set".into()),
        Some(path) => (if there { "read" } else { "none" }, files::name(path)),
    };
    let mut lines =
        vec![ConfigLine { what: "file".into(), source: shown.0.into(), value: shown.1 }];
    let config = match path.filter(|_| there && !args.general.no_config) {
        Some(path) => Config::load(&path)?,
        None => Config::default(),
    };
    let typed: Vec<PathBuf> = args.keys.protocols.paths().collect();
    let typed = typed.iter().chain(&args.keys.tables.files).map(PathBuf::as_path);
    files::refuse_standard_output(&Inputs::of(typed))?;
    options(&args.keys, &config, &mut lines);
    let (source, form) = match (args.time, config.time) {
        (Some(typed), _) => ("command line".into(), typed),
        (None, Some(time)) => (line_of_file(time.line), time.form),
        (None, None) => ("default".into(), Default::default()),
    };
    lines.push(ConfigLine { what: "time".into(), source, value: form.name() });
    for (what, named) in [("filter", &config.named.filters), ("columns", &config.named.columns)] {
        let line = |(name, named): (&String, &NamedExpression)| {
            let place = named.place.rsplit_once(", line ").map_or("", |(_, line)| line);
            ConfigLine {
                what: format!("{what} @{name}"),
                source: format!("file, line {place}"),
                value: named.text.clone(),
            }
        };
        lines.extend(named.iter().map(line));
    }
    print(&lines)?;
    check_named(args, config)
}

/// The options that name files, a line for each file.
fn options(args: &KeyArgs, config: &Config, lines: &mut Vec<ConfigLine>) {
    let typed = (!args.tables.files.is_empty())
        .then(|| ("command line".to_owned(), args.tables.files.clone()));
    let protocols = args.protocols.in_force().map(|(option, found)| (option.to_owned(), found));
    for (option, found) in protocols.chain([(read::TABLES.to_owned(), typed)]) {
        let of_file = || {
            let files = config.files.iter().find(|files| files.option == option)?;
            Some((line_of_file(files.line), files.paths.clone()))
        };
        let (source, paths) =
            found.or_else(of_file).unwrap_or_else(|| ("default".into(), Vec::new()));
        if paths.is_empty() {
            lines.push(ConfigLine {
                what: option.clone(),
                source: source.clone(),
                value: "none".into(),
            });
        }
        for path in paths {
            let value = format!("{}{}", files::name(&path), absence(&path));
            lines.push(ConfigLine { what: option.clone(), source: source.clone(), value });
        }
    }
}

/// What to say of a path where nothing is.
fn absence(path: &Path) -> &'static str {
    if path.as_os_str() == "-" || path.exists() { "" } else { " (there is no such file)" }
}

fn line_of_file(line: usize) -> String {
    format!("file, line {line}")
}

fn print(lines: &[ConfigLine]) -> Result<(), CliError> {
    let width = |part: fn(&ConfigLine) -> &str| {
        lines.iter().map(|line| part(line).chars().count()).max().unwrap_or(0)
    };
    let what = width(|line| &line.what);
    let source = width(|line| &line.source);
    let mut out = io::stdout().lock();
    for line in lines {
        let value = escape(&line.value);
        writeln!(out, "{:what$}  {:source$}  {value}", line.what, line.source)
            .map_err(CliError::writing)?;
    }
    out.flush().map_err(CliError::writing)
}

/// Compiles what has a name: other commands compile what they use.
fn check_named(args: &ConfigArgs, config: Config) -> Result<Status, CliError> {
    let named = config.named.clone();
    let mut tables = args.keys.tables.clone();
    let general = &mut args.general.clone();
    config.fill(Configured { general, tables: &mut tables, protocols: None, time: None });
    if named.filters.is_empty() && named.columns.is_empty() {
        return Ok(Status::Good);
    }
    let tables = load::tables_of(&tables)?;
    for name in named.filters.keys() {
        Filter::compile_with(&format!("@{name}"), &tables, &named, false)
            .map_err(|error| CliError::Typed(format!("filter: {error}")))?;
    }
    for name in named.columns.keys() {
        Paths::compile_with(&format!("@{name}"), &tables, &named, false)
            .map_err(|error| CliError::Typed(format!("columns: {error}")))?;
    }
    Ok(Status::Good)
}
