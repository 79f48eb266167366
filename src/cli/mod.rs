//! The command line: parsing, commands and exit status.

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

use crate::remark;
use std::ffi::OsString;
use std::io::{self, Write};
use std::mem::ManuallyDrop;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches};

/// The end of --help in a build without live capture.
const NOT_LIVE: &str =
    "\n\nLive capture from an interface (-i, -f, -w, -D) needs a build with `--features live`.";

/// The end of errors about options and commands.
const MORE_HELP: &str = " (--help tells what can be typed)";

use options::{checks, late_args, protocol_args};

pub use error::{CliError, Status};
pub use options::Cli;

/// Runs the program with what was typed; returns the exit status.
pub fn main(typed: impl IntoIterator<Item = OsString>) -> u8 {
    let done = match parse(typed) {
        Ok(mut cli) => checks::check(&cli)
            .and_then(|()| config::fill(&mut cli))
            .and_then(|()| commands::run(&cli)),
        Err(error) => help_or_mistake(&error),
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
            match error {
                CliError::TypedNumber(_) => {
                    remark::say_as_it_is(format_args!("moulsniff: {error}"))
                }
                _ => remark::say(format_args!("moulsniff: {error}")),
            }
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
        let text = one_line(error);
        return Err(if is_of_number(error) {
            CliError::TypedNumber(text)
        } else {
            CliError::Typed(text)
        });
    }
    error.print().and_then(|()| io::stdout().flush()).map_err(CliError::writing)?;
    Ok(Status::Good)
}

/// Whether the mistake is a number that is too large, or not whole, for an option that takes a
/// number. However long, it is no key.
fn is_of_number(error: &clap::Error) -> bool {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let takes_number =
        ["<N>", "<SIZE>"].iter().any(|end| text(ContextKind::InvalidArg).ends_with(end));
    error.kind() == ErrorKind::ValueValidation
        && takes_number
        && text(ContextKind::InvalidValue).bytes().all(|byte| byte.is_ascii_digit())
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
        "'{group}' requires a subcommand but one was not provided [subcommands: {commands}]{MORE_HELP}"
    )
}

/// A mistake in what was typed, in one line: what is wrong and what may have been meant, without
/// the usage.
fn one_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let said = text
        .split("\n\n")
        .take_while(|part| !part.starts_with("Usage:") && !part.starts_with("For more"));
    let parts: Vec<String> =
        said.map(|part| part.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let text = parts.join("; ");
    format!("{}{MORE_HELP}", text.strip_prefix("error: ").unwrap_or(&text))
}

/// The command as clap knows it, for help, man page and completions.
pub fn command() -> clap::Command {
    let command = Cli::command();
    let inherited: Vec<clap::Arg> =
        command.get_arguments().filter(|arg| arg.is_global_set()).cloned().collect();
    let command = command.mut_subcommands(|command| without_useless(command, &inherited, ""));
    let status = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let not_live = if cfg!(feature = "live") { "" } else { NOT_LIVE };
    command.after_help(format!(
        "Examples:
{}
{status}{not_live}",
        protocol_args::examples()
    ))
}

/// A command whose help does not list options that do nothing with it: neither those of all
/// commands (`inherited`), nor those of all commands that read captures. `before` is what is typed
/// before its name.
fn without_useless(command: clap::Command, inherited: &[clap::Arg], before: &str) -> clap::Command {
    let name = format!("{before}{}", command.get_name());
    if command.has_subcommands() {
        return command
            .mut_subcommands(|command| without_useless(command, inherited, &format!("{name} ")));
    }
    let command = checks::OTHER_HELP.iter().filter(|(of, ..)| *of == name).fold(
        command,
        |command, (_, option, help)| {
            command.mut_arg(option, |arg| arg.help(*help).long_help(*help))
        },
    );
    let has_use = |arg: &&clap::Arg| checks::has_use(&name, arg.get_id().as_str());
    let own = command
        .get_arguments()
        .filter(|arg| checks::OF_SOME.contains(&arg.get_id().as_str()))
        .cloned();
    let own: Vec<clap::Arg> = own.collect();
    let useless = inherited.iter().chain(&own).filter(|arg| !has_use(arg));
    useless.fold(command, |command, arg| {
        let own = command.get_arguments().any(|own| own.get_id() == arg.get_id());
        if own {
            command.mut_arg(arg.get_id(), |arg| arg.hide(true))
        } else {
            command.arg(arg.clone().hide(true))
        }
    })
}

fn parse(typed: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let typed: Vec<OsString> = typed.into_iter().collect();
    // Never dropped: the process ends soon after, and the drop is a fifth of all that clap does.
    let mut known = ManuallyDrop::new(late_args::only_typed(&typed, Cli::command));
    let matches = match known.try_get_matches_from_mut(&typed) {
        // What only help needs takes as long as reading the command line.
        Err(error) if shows_help(&error) => command().try_get_matches_from(&typed)?,
        Err(error) if error.kind() == ErrorKind::DisplayVersion => return Err(error),
        Err(error) if is_option_of_help(&error) => return parse(without_option_of_help(&typed)),
        // An option may be one of another command.
        Err(_) => Cli::command().try_get_matches_from(&typed)?,
        Ok(matches) => matches,
    };
    match checks::mistyped(&known, &matches) {
        Some(text) => Err(clap::Error::raw(ErrorKind::ArgumentConflict, text)),
        None => Cli::from_arg_matches(&matches),
    }
}

fn shows_help(error: &clap::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    )
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
