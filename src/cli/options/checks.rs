//! Finds options that have no effect with the command they were typed with. They are reported as
//! mistakes before anything is read.

use crate::captured::file_name;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches};

use super::captures::CaptureArgs;
use super::late_args::LateArgs;
use super::{Cli, Command, KeysCommand, ReadArgs, TablesCommand, TimeWord};
use crate::cli::error::CliError;
use crate::cli::files;
use crate::suggest::suggestion;

/// The names of all commands.
const COMMANDS: [&str; 15] = [
    "diagnose",
    "tables",
    "decode",
    "stats",
    "sessions",
    "diff",
    "follow",
    "export",
    "report",
    "split",
    "keys",
    "schema",
    "config",
    "man",
    "completions",
];

/// Finds an option that has no meaning where it was typed, and a command that was typed as a
/// capture.
pub(in crate::cli) fn check(cli: &Cli) -> Result<(), CliError> {
    let read = cli.reading();
    let other_time = read.time.is_some_and(|time| time != TimeWord::Absolute);
    let name = command_name(cli.command.as_ref());
    let typed = [
        ("columns", read.columns.is_some()),
        ("csv", read.csv),
        ("bytes", read.bytes),
        ("oneline", read.oneline),
        ("time", other_time),
        ("filter", read.filter.is_some()),
        ("count", read.count.is_some()),
    ];
    let typed = typed.into_iter().filter_map(|(option, typed)| typed.then_some(option));
    if let Some(option) = read.typed_everywhere().chain(typed).find(|option| !has_use(name, option))
    {
        let option = if option == "count" { "-c".into() } else { format!("--{option}") };
        return Err(CliError::Typed(format!("{option} does nothing with `{name}`")));
    }
    if read.spans && !read.json {
        return Err(CliError::Typed("--spans belongs to --json: it does nothing without".into()));
    }
    let columns = read.columns.is_some() || read.csv;
    if read.json && columns {
        return Err(CliError::Typed(
            "--json and --columns or --csv are different outputs: one of them".into(),
        ));
    }
    if read.bytes && (read.json || columns) {
        return Err(CliError::Typed(
            "-x shows bytes below trees: it does nothing with --json, --columns and --csv".into(),
        ));
    }
    if other_time && (read.json || columns) {
        return Err(CliError::Typed(
            "-t chooses the time in trees and lines: with --json, --columns and --csv times are always whole, in UTC"
                .into(),
        ));
    }
    if read.oneline && (read.json || columns || read.bytes) {
        return Err(CliError::Typed(
            "--oneline and --json, --columns, --csv or -x are different outputs: one of them"
                .into(),
        ));
    }
    if let (Some(key), Some(output)) = (&read.pseudonyms, cli.output()) {
        files::refuse_future_key(key, output)?;
    }
    if cli.command.is_none() {
        no_command_among(&read.captures)?;
    }
    Ok(())
}

/// Finds an option that was typed in a place or as often as it must not be. Returns what is wrong.
pub(in crate::cli) fn mistyped(known: &clap::Command, matches: &ArgMatches) -> Option<String> {
    let mut names = Vec::new();
    let mut command = known;
    let mut own = matches;
    while let Some((name, within)) = own.subcommand() {
        names.push(name);
        (command, own) = (command.find_subcommand(name)?, within);
    }
    let early = (!names.is_empty())
        .then(|| typed_too_early(known, matches, &names.join(" "), command))
        .flatten();
    early.or_else(|| typed_twice(own))
}

/// Finds an option that was typed before the command `name`, which reads only what comes after its
/// name. Options of all commands may come before or after it.
fn typed_too_early(
    known: &clap::Command,
    matches: &ArgMatches,
    name: &str,
    command: &clap::Command,
) -> Option<String> {
    let typed =
        |arg: &&Arg| matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
    let early = known.get_arguments().filter(|arg| !arg.is_global_set()).find(typed)?;
    let option = match (early.get_long(), early.get_short()) {
        (Some(long), _) => format!("--{long}"),
        (None, Some(short)) => format!("-{short}"),
        (None, None) => {
            return Some(format!("`{name}` is a command and comes first: moulsniff {name} ..."));
        }
    };
    let taken = command.get_arguments().any(|arg| arg.get_id() == early.get_id())
        && has_use(name, early.get_id().as_str());
    Some(match taken {
        true => format!("{option} has to come after the command: moulsniff {name} {option} ..."),
        false => format!("{option} does nothing with `{name}`"),
    })
}

/// Finds a second filter. Of any other option that has one value, the last one typed counts, but
/// the first of two conditions would be lost.
fn typed_twice(own: &ArgMatches) -> Option<String> {
    let filters = own.try_get_many::<String>("filter").ok().flatten()?;
    let text =
        "--filter (-Y) may be given once; `and` joins conditions: -Y 'service == auth and refused'";
    (filters.len() > 1).then(|| text.to_owned())
}

impl Cli {
    /// What was typed about reading, wherever it was typed.
    pub(in crate::cli) fn reading(&self) -> &ReadArgs {
        match &self.command {
            Some(Command::Stats(LateArgs(read))) => read,
            Some(Command::Diagnose(LateArgs(diagnose))) => &diagnose.read,
            Some(Command::Follow(LateArgs(follow))) => &follow.read,
            Some(Command::Sessions(LateArgs(sessions))) => &sessions.read,
            Some(Command::Report(LateArgs(report))) => &report.read,
            Some(Command::Diff(LateArgs(diff))) => &diff.read,
            Some(Command::Export(export)) => export.read(),
            _ => &self.read,
        }
    }

    /// The file or folder that is written.
    fn output(&self) -> Option<&Path> {
        let output = match &self.command {
            Some(Command::Follow(LateArgs(follow))) => follow.output.as_ref(),
            Some(Command::Report(LateArgs(report))) => Some(&report.output),
            Some(Command::Split(split)) => Some(&split.output),
            Some(Command::Export(export)) => export.output(),
            Some(Command::Keys(
                KeysCommand::Inject { output, .. } | KeysCommand::Strip { output, .. },
            )) => Some(output),
            _ => None,
        };
        output.or(self.reading().write.as_ref()).map(PathBuf::as_path)
    }

    /// The same, to be changed.
    pub(in crate::cli) fn reading_mut(&mut self) -> &mut ReadArgs {
        match &mut self.command {
            Some(Command::Stats(LateArgs(read))) => read,
            Some(Command::Diagnose(LateArgs(diagnose))) => &mut diagnose.read,
            Some(Command::Follow(LateArgs(follow))) => &mut follow.read,
            Some(Command::Sessions(LateArgs(sessions))) => &mut sessions.read,
            Some(Command::Report(LateArgs(report))) => &mut report.read,
            Some(Command::Diff(LateArgs(diff))) => &mut diff.read,
            Some(Command::Export(export)) => export.read_mut(),
            _ => &mut self.read,
        }
    }
}

/// Options of all commands that read captures which do something with some of these alone.
pub(in crate::cli) const OF_SOME: [&str; 8] =
    ["columns", "csv", "bytes", "oneline", "time", "filter", "count", "tail"];

/// The help of words and options that mean something else with a command: its name, the option, and
/// the help.
pub(in crate::cli) const OTHER_HELP: [(&str, &str, &str); 6] = [
    (
        "sessions",
        "captures",
        "Read these captures as one, in the order given; `-` is standard input. A number before them, where no file has this name, is the session to print",
    ),
    ("sessions", "csv", "Print comma-separated values for spreadsheets, one line a session"),
    (
        "follow",
        "captures",
        "Print this stream (tcp:3, udp:0, or 3 for tcp:3; not with --all) of these captures, which are read as one, in the order given; `-` is standard input",
    ),
    (
        "diff",
        "captures",
        "Compare these two captures (pcap, pcapng; plain, gzip or zstd), which have to be files",
    ),
    (
        "diff",
        "filter",
        "Print only differences in messages that match an expression, such as 'service == auth'",
    ),
    ("diff", "oneline", "Print one line for each difference"),
];

/// Whether one of [`OF_SOME`], or an option that can be typed with every command, does anything
/// with the one of this name (of several words, such as `keys check`). `option` is without its
/// hyphens at the beginning.
pub(in crate::cli) fn has_use(command: &str, option: &str) -> bool {
    match option {
        "json" => matches!(
            command,
            PROGRAM
                | "stats"
                | "diagnose"
                | "sessions"
                | "diff"
                | "decode"
                | "follow"
                | "keys check"
                | "tables list"
                | "export chat"
                | "export files"
        ),
        "spans" => matches!(command, PROGRAM | "decode"),
        "columns" | "bytes" => command == PROGRAM,
        "csv" => matches!(command, PROGRAM | "sessions"),
        "oneline" => matches!(command, PROGRAM | "diff"),
        "time" => matches!(command, PROGRAM | "config"),
        "filter" => !matches!(command, "sessions" | "diagnose"),
        // What is compared, followed or put together would end at another place in each stream.
        "count" => !matches!(command, "diff" | "follow" | "export files"),
        "tail" => !matches!(command, "report" | "diff"),
        "tables" => !OWN_WORDS_ALONE.contains(&command),
        "redact" => !NO_MESSAGES.contains(&command) && !OWN_WORDS_ALONE.contains(&command),
        "quiet" | "color" | "no_config" => true,
        // The files of protocols.
        _ => {
            !OWN_WORDS_ALONE.contains(&command)
                && !matches!(command, "tables list" | "tables show" | "tables lua" | "schema")
        }
    }
}

/// The program without a command, in errors.
const PROGRAM: &str = "moulsniff";

/// Commands that read no file beside those that are their own.
const OWN_WORDS_ALONE: [&str; 7] =
    ["split", "keys check", "keys strip", "tables new", "tables check", "man", "completions"];

/// Further commands that print no message.
const NO_MESSAGES: [&str; 6] =
    ["keys inject", "tables list", "tables show", "tables lua", "schema", "config"];

fn command_name(command: Option<&Command>) -> &'static str {
    match command {
        None => PROGRAM,
        Some(Command::Tables(TablesCommand::List { .. })) => "tables list",
        Some(Command::Tables(TablesCommand::Show { .. })) => "tables show",
        Some(Command::Tables(TablesCommand::Lua)) => "tables lua",
        Some(Command::Tables(TablesCommand::New { .. })) => "tables new",
        Some(Command::Tables(TablesCommand::Check { .. })) => "tables check",
        Some(Command::Decode(_)) => "decode",
        Some(Command::Stats(_)) => "stats",
        Some(Command::Diagnose(_)) => "diagnose",
        Some(Command::Sessions(_)) => "sessions",
        Some(Command::Follow(_)) => "follow",
        Some(Command::Export(export)) => export.name(),
        Some(Command::Report(_)) => "report",
        Some(Command::Diff(_)) => "diff",
        Some(Command::Split(_)) => "split",
        Some(Command::Keys(KeysCommand::Check { .. })) => "keys check",
        Some(Command::Keys(KeysCommand::Inject { .. })) => "keys inject",
        Some(Command::Keys(KeysCommand::Strip { .. })) => "keys strip",
        Some(Command::Schema(_)) => "schema",
        Some(Command::Config(_)) => "config",
        Some(Command::Man { .. }) => "man",
        Some(Command::Completions { .. }) => "completions",
    }
}

/// A command comes before the captures. One that is typed behind them, or misspelt, would be read
/// as a file.
fn no_command_among(captures: &CaptureArgs) -> Result<(), CliError> {
    for path in captures.words().filter(|path| !exists(path)) {
        let word = path.to_string_lossy();
        if COMMANDS.contains(&word.as_ref()) {
            let rest: Vec<String> = captures
                .words()
                .filter(|other| *other != path)
                .map(|other| file_name(other))
                .collect();
            let text = format!(
                "`{word}` is a command and comes first: moulsniff {word} {}",
                rest.join(" ")
            );
            return Err(CliError::Typed(text));
        }
        let near = suggestion(&word, COMMANDS.into_iter());
        if !near.is_empty() {
            return Err(CliError::Typed(format!("there is no file and no command `{word}`{near}")));
        }
    }
    Ok(())
}

fn exists(path: &Path) -> bool {
    path.as_os_str() == "-" || path.symlink_metadata().is_ok()
}
