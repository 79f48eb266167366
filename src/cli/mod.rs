//! The command line: parsing, commands and exit status.

mod capture_order;
mod commands;
mod conclusions;
mod config;
mod error;
mod files;
mod load;
mod options;
mod plan;
mod pseudonyms;
mod session_pass;
mod stale_files;
mod summary;
mod terminal;
mod tshark;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, CommandFactory, FromArgMatches};

/// What is printed where nothing was typed.
const FIRST_WORDS: &str = "\
moulsniff reads captures of online worlds and prints every message in them.

  moulsniff CAPTURE --keys FILE             each message as a tree of its fields
  moulsniff CAPTURE --keys FILE --oneline   one line for each message
  moulsniff diagnose CAPTURE --keys FILE    what is wrong, the worst first

moulsniff -h              the commands, and the options that people use
moulsniff help COMMAND    everything about a command
moulsniff --help          everything about printing captures
";

/// The end of -h.
const ALL_OPTIONS: &str = "\n`moulsniff --help` has all options, `moulsniff help COMMAND` those \
                           of a command, and `moulsniff tables list` all messages.";

/// The end of --help.
const STATUS: &str = "\nExit status: 0 read to its end; 1 something could not be read or written; \
                      2 what was typed is wrong; 3 with --strict, something was undecoded, lost, \
                      cut or not opened by any key, or nothing was recognised; 4 with diff, the \
                      captures differ; 130 Ctrl-C before a capture file was read to its end.";

/// The end of --help in a build without live capture.
const NOT_LIVE: &str =
    "\n\nLive capture from an interface (-i, -f, -w, -D) needs a build with `--features live`.";

/// The end of errors about options and commands.
const MORE_HELP: &str = " (--help tells what can be typed)";

use crate::captured::file_name;
use crate::remark;
use crate::run;
use crate::suggest::suggestion;
use commands::Cli;
use options::{CaptureArgs, examples};

pub use error::{CliError, Status};

/// Runs the program with what was typed; returns the exit status.
pub fn main(typed: impl IntoIterator<Item = OsString>) -> u8 {
    run::outlive_large_files();
    let typed: Vec<OsString> = typed.into_iter().collect();
    let done = if typed.len() <= 1 {
        commands::print(FIRST_WORDS.as_bytes())
    } else {
        match parse(typed) {
            Ok(mut cli) => commands::run(&mut cli),
            Err(error) => help_or_mistake(&error),
        }
    };
    match done {
        Ok(status) => end(status),
        Err(error) if error.is_closed_pipe() => end(Status::Good),
        Err(error) => {
            // One line. Where what was typed is wrong, or the run is begun again, the remarks come
            // again.
            let remarks = remark::take_waiting();
            let comes_again = matches!(error.status(), Status::Typed | Status::Interrupted);
            let error = if comes_again { error } else { error.with_remarks(remarks) };
            remark::say(format_args!("moulsniff: {error}"));
            error.status() as u8
        }
    }
}

fn end(status: Status) -> u8 {
    remark::say_waiting();
    status as u8
}

/// What clap has to print: help and version onto standard output; what was typed wrong as one line.
fn help_or_mistake(error: &clap::Error) -> Result<Status, CliError> {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Err(CliError::Typed(no_command(&error.render().to_string())));
    }
    if error.use_stderr() {
        return Err(CliError::Typed(one_line(error)));
    }
    error.print().and_then(|()| io::stdout().flush()).map_err(CliError::writing)?;
    Ok(Status::Good)
}

/// The name of a group of commands was typed alone. `help` is the help of the group, which clap has
/// for this.
fn no_command(help: &str) -> String {
    let usage = help.lines().find_map(|line| line.strip_prefix("Usage: ")).unwrap_or_default();
    let group: Vec<&str> =
        usage.split(' ').take_while(|word| !word.starts_with(['[', '<'])).collect();
    let listed = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty());
    // A long description goes on in lines that are indented further.
    let lines =
        listed.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    let commands: Vec<&str> = lines.filter_map(|line| line.split(' ').next()).collect();
    // The words of clap where an option was typed as well.
    let group = group.join(" ");
    let commands = commands.join(", ");
    format!(
        "'{group}' requires a subcommand but one was not provided [subcommands: \
         {commands}]{MORE_HELP}"
    )
}

/// A mistake in what was typed, in one line: what is wrong and what may have been meant, without
/// the usage.
fn one_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let said = text
        .split("\n\n")
        .take_while(|part| !part.starts_with("Usage:") && !part.starts_with("For more"))
        // How to type a file that has the name of an option helps nobody who mistook an option.
        .filter(|part| !part.trim_start().starts_with("tip: to pass"));
    let elsewhere = other_commands(error);
    // An option that exists is not a misspelt one.
    let said = said.filter(|part| {
        elsewhere.is_empty() || !part.trim_start().starts_with("tip: a similar argument")
    });
    let parts: Vec<String> =
        said.map(|part| part.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let text = parts.join("; ");
    format!("{}{elsewhere}{MORE_HELP}", text.strip_prefix("error: ").unwrap_or(&text))
}

/// The commands that have an option which this one has not, in words.
fn other_commands(error: &clap::Error) -> String {
    let option = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(option)) if error.kind() == ErrorKind::UnknownArgument => option,
        _ => return String::new(),
    };
    let program = command();
    let has = |command: &clap::Command| {
        command.get_arguments().any(|arg| arg.get_long() == option.strip_prefix("--"))
    };
    let commands = program.get_subcommands().filter(|command| has(command));
    let names = commands.map(|command| format!("`moulsniff {}`", command.get_name()));
    let plain = has(&program).then(|| "`moulsniff` without a command".to_string());
    let all: Vec<String> = plain.into_iter().chain(names).collect();
    match all.len() {
        0 => String::new(),
        1 => format!("; {} has it", all.concat()),
        _ => format!("; {} have it", all.join(", ")),
    }
}

/// The command as clap knows it, for reading what was typed, help, man page and completions.
pub fn command() -> clap::Command {
    let not_live = if cfg!(feature = "live") { "" } else { NOT_LIVE };
    let examples = format!("Examples:\n{}", examples());
    let long = format!("{examples}{STATUS}{not_live}");
    Cli::command().after_help(examples + ALL_OPTIONS).after_long_help(long)
}

fn parse(typed: Vec<OsString>) -> Result<Cli, clap::Error> {
    let mut command = command();
    let typed = command_first(&command, typed);
    let named = typed.get(1).is_some_and(|word| command.find_subcommand(word).is_some());
    let typed = if named { typed } else { of_tshark(&command, &typed)? };
    let matches = match command.try_get_matches_from_mut(&typed) {
        Err(error) if is_option_of_help(&error) => return parse(without_option_of_help(&typed)),
        matches => matches?,
    };
    let cli = Cli::from_arg_matches(&matches)?;
    if cli.command.is_none() {
        no_command_among(&command, &cli.print.read.captures)?;
    }
    Ok(cli)
}

/// What was typed, with this program's options in the place of tshark's.
fn of_tshark(known: &clap::Command, typed: &[OsString]) -> Result<Vec<OsString>, clap::Error> {
    let takes_value = |word: &str| {
        let is_it = |arg: &&Arg| match word.strip_prefix("--") {
            Some(long) => arg.get_long() == Some(long),
            None => arg.get_short() == word.chars().nth(1),
        };
        known.get_arguments().find(is_it).is_some_and(|arg| arg.get_action().takes_values())
    };
    tshark::translate(typed, &takes_value)
        .map_err(|text| clap::Error::raw(ErrorKind::ArgumentConflict, text))
}

/// What was typed, with the options that stand before a command behind its name: they are its
/// options. Without a command it is as it was.
fn command_first(known: &clap::Command, typed: Vec<OsString>) -> Vec<OsString> {
    let mut words = typed.iter().enumerate().skip(1);
    let mut command = known;
    // Behind the last name of the command.
    let mut end = 1;
    let mut names = Vec::new();
    while let Some((place, word)) = words.next() {
        let word = word.to_string_lossy();
        if word.len() > 1 && word.starts_with('-') {
            if word == "--" {
                break;
            }
            if takes_next_word(known, &word) {
                words.next();
            }
            continue;
        }
        let Some(found) = command.find_subcommand(&*word) else { break };
        command = found;
        names.push(place);
        end = place + 1;
    }
    let (first, rest) = typed.split_at(end.min(typed.len()));
    let (before, after): (Vec<_>, Vec<_>) =
        first.iter().enumerate().partition(|(place, _)| *place == 0 || names.contains(place));
    let words = before.into_iter().chain(after).map(|(_, word)| word);
    words.chain(rest).cloned().collect()
}

/// Whether the value of an option is the next word: of `--keys` and `-qc`, but not of `--keys=FILE`
/// and `-c1`.
fn takes_next_word(known: &clap::Command, word: &str) -> bool {
    let takes_value = |is_it: &dyn Fn(&Arg) -> bool| {
        all_arguments(known).iter().any(|arg| is_it(arg) && arg.get_action().takes_values())
    };
    if let Some(long) = word.strip_prefix("--") {
        return takes_value(&|arg| arg.get_long() == Some(long));
    }
    let mut letters = word.chars().skip(1);
    letters.any(|letter| takes_value(&|arg| arg.get_short() == Some(letter)))
        && letters.next().is_none()
}

/// The options of all commands. Those that have one name take a value in all of them, or in none;
/// but `extcap` has the options of Wireshark, which types them behind its name.
fn all_arguments(command: &clap::Command) -> Vec<&Arg> {
    let commands = command.get_subcommands().filter(|command| command.get_name() != "extcap");
    command.get_arguments().chain(commands.flat_map(all_arguments)).collect()
}

/// A command comes before the captures. One that is typed behind them, or misspelt, would be read
/// as a file.
fn no_command_among(known: &clap::Command, captures: &CaptureArgs) -> Result<(), clap::Error> {
    let wrong = |text: String| Err(clap::Error::raw(ErrorKind::ArgumentConflict, text));
    let exists = |path: &Path| path.as_os_str() == "-" || path.symlink_metadata().is_ok();
    let names = || known.get_subcommands().map(clap::Command::get_name);
    for path in captures.words().filter(|path| !exists(path)) {
        let word = path.to_string_lossy();
        if names().any(|name| name == word) {
            let others = captures.words().filter(|other| *other != path);
            let others: Vec<String> = others.map(|other| file_name(other)).collect();
            let others = others.join(" ");
            return wrong(format!(
                "`{word}` is a command and comes first: moulsniff {word} {others}"
            ));
        }
        let near = suggestion(&word, names());
        if !near.is_empty() {
            return wrong(format!("there is no file and no command `{word}`{near}"));
        }
    }
    Ok(())
}

/// Whether `--help` was typed behind clap's command `help`, which takes it for the name of a
/// command.
fn is_option_of_help(error: &clap::Error) -> bool {
    let named = error.get(ContextKind::InvalidSubcommand);
    matches!(named, Some(ContextValue::String(word)) if word == "--help" || word == "-h")
}

/// `help follow` for `help follow --help`, and `help help` for `help --help`.
fn without_option_of_help(typed: &[OsString]) -> Vec<OsString> {
    let mut words: Vec<OsString> =
        typed.iter().take_while(|word| *word != "--help" && *word != "-h").cloned().collect();
    if words.iter().filter(|word| *word == "help").count() == 1 {
        words.extend(words.last().filter(|word| *word == "help").cloned());
    }
    words
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use std::collections::HashMap;

    use super::*;

    fn moved(typed: &str) -> String {
        let words = typed.split(' ').map(OsString::from).collect();
        let moved = command_first(&command(), words);
        moved.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn options_before_a_command_come_behind_its_name() {
        for (typed, expected) in [
            ("p --keys k --json stats a", "p stats --keys k --json a"),
            ("p --keys=k stats a", "p stats --keys=k a"),
            ("p -qc 5 tables -q list w", "p tables list -qc 5 -q w"),
            ("p -c5 export chat a", "p export chat -c5 a"),
            ("p -Y stats a stats", "p -Y stats a stats"),
            ("p -- stats", "p -- stats"),
            ("p - stats", "p - stats"),
            ("p --unknown stats", "p stats --unknown"),
            ("p -q", "p -q"),
        ] {
            assert_eq!(moved(typed), expected, "{typed}");
        }
    }

    /// [`takes_next_word`] does not know yet which command it is.
    #[test]
    fn an_option_takes_a_value_in_all_commands_or_in_none() {
        let command = command();
        command.clone().debug_assert();
        let mut known = HashMap::new();
        for arg in all_arguments(&command) {
            let long = arg.get_long().map(str::to_owned);
            let names = long.into_iter().chain(arg.get_short().map(String::from));
            for name in names {
                let takes = arg.get_action().takes_values();
                assert_eq!(*known.entry(name.clone()).or_insert(takes), takes, "{name}");
            }
        }
        assert!(known.len() > 40);
    }
}
