//! The options that protocols declare: their definitions on the command line, and their values.
//!
//! It knows no option by name: help, types and files follow the declarations.

use crate::captured::file_name;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueHint};

use crate::cli::error::CliError;
use crate::cli::files;
use crate::proto::{FileRule, OptionFile, OptionKind, OptionSpec, OptionValues, PROTOCOLS};

/// The heading of these options in the help.
pub(super) const HEADING: &str = "Keys and tables";

/// What was typed for the options of all protocols.
#[derive(Clone, Debug, Default)]
pub struct ProtocolArgs {
    options: Vec<TypedOption>,
}

/// What was typed for one option.
#[derive(Clone, Debug)]
struct TypedOption {
    spec: OptionSpec,
    values: Vec<OsString>,
    source: ValueSource,
}

/// Where the values of an option come from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ValueSource {
    /// They were typed, or are those of an option that was not given.
    CommandLine,
    /// An environment variable.
    Environment(&'static str),
    /// A line of the configuration file.
    ConfigFile(String),
}

/// Where the files of an option come from, in words, and their paths.
pub(in crate::cli) type FilesInForce = (String, Vec<PathBuf>);

impl Args for ProtocolArgs {
    fn augment_args(command: Command) -> Command {
        specs()
            .filter(|spec| spec.everywhere)
            .fold(command, |command, spec| command.arg(argument(&spec)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ProtocolArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(ProtocolArgs { options: specs().map(|spec| typed(spec, matches)).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The options that only commands which read captures have. [`ProtocolArgs`] has their values.
#[derive(Clone, Copy, Debug, Default)]
pub struct CaptureOptions;

impl Args for CaptureOptions {
    fn augment_args(command: Command) -> Command {
        let command = command.next_help_heading(HEADING);
        let own = specs().filter(|spec| !spec.everywhere);
        own.fold(command, |command, spec| command.arg(argument(&spec)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for CaptureOptions {
    fn from_arg_matches(_: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(CaptureOptions)
    }

    fn update_from_arg_matches(&mut self, _: &ArgMatches) -> Result<(), clap::Error> {
        Ok(())
    }
}

impl ProtocolArgs {
    /// One file for an option, as if it had been typed.
    pub(in crate::cli) fn of_file(option: &str, path: &Path) -> ProtocolArgs {
        let options = specs().filter(|spec| spec.name == option).map(|spec| TypedOption {
            spec,
            values: vec![path.to_path_buf().into_os_string()],
            source: ValueSource::CommandLine,
        });
        ProtocolArgs { options: options.collect() }
    }

    /// Every file and folder that was named, for checks that no output is an input.
    pub(in crate::cli) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        let files =
            self.options.iter().filter(|typed| matches!(typed.spec.kind, OptionKind::Files(_)));
        files.flat_map(|typed| typed.values.iter().map(PathBuf::from))
    }

    /// Sets the files of an option for which nothing was given; `place` is the line of the
    /// configuration file that names them.
    pub(in crate::cli) fn fill(&mut self, option: &str, paths: &[PathBuf], place: &str) {
        let mut empty = self
            .options
            .iter_mut()
            .filter(|typed| typed.spec.name == option && typed.values.is_empty());
        if let Some(typed) = empty.next() {
            typed.values = paths.iter().map(|path| path.clone().into_os_string()).collect();
            typed.source = ValueSource::ConfigFile(place.to_owned());
        }
    }

    /// The options that name files, each with those that were given for it, if any were.
    pub(in crate::cli) fn in_force(
        &self,
    ) -> impl Iterator<Item = (&'static str, Option<FilesInForce>)> {
        let files =
            self.options.iter().filter(|typed| matches!(typed.spec.kind, OptionKind::Files(_)));
        files.map(|typed| {
            let source = match &typed.source {
                ValueSource::CommandLine => "command line".to_owned(),
                ValueSource::Environment(variable) => (*variable).to_owned(),
                ValueSource::ConfigFile(place) => place.clone(),
            };
            let paths: Vec<PathBuf> = typed.values.iter().map(PathBuf::from).collect();
            (typed.spec.name, (!paths.is_empty()).then_some((source, paths)))
        })
    }

    /// Whether nothing was given for any option.
    pub(in crate::cli) fn is_empty(&self) -> bool {
        self.paths().next().is_none()
    }

    /// Reads the files, and hands everything over in the form that protocols take.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub(in crate::cli) fn read(&self, no_capture: bool) -> Result<OptionValues, CliError> {
        // Only what was given for this one command has to be of use to it.
        let own =
            self.options.iter().all(|typed| !matches!(typed.source, ValueSource::ConfigFile(_)));
        let mut all = OptionValues::new(no_capture && own);
        for TypedOption { spec, values, source } in &self.options {
            for value in values {
                match spec.kind {
                    OptionKind::Word(_) => {
                        all.set_word(spec.name, value.to_string_lossy().into_owned())
                    }
                    OptionKind::Files(rule) => {
                        let added = add_files(&mut all, spec, rule, PathBuf::from(value));
                        added.map_err(|error| match source {
                            ValueSource::ConfigFile(place) => error.named_by(place),
                            _ => error,
                        })?;
                    }
                }
            }
        }
        Ok(all)
    }
}

/// Reads a file, or those of a folder. A file of a folder that is too long is left out: it is of
/// another kind.
fn add_files(
    all: &mut OptionValues,
    spec: &OptionSpec,
    rule: FileRule,
    path: PathBuf,
) -> Result<(), CliError> {
    let folder = path.is_dir().then(|| file_name(&path));
    for file in files::within(&path, rule.what, rule.extension)? {
        let size = file.metadata().map_or(0, |facts| facts.len());
        if folder.is_some() && size > rule.most_bytes {
            continue;
        }
        let bytes = files::read(&file, rule.what, rule.most_bytes)?;
        let before: usize = all.files(spec.name).map(|file| file.bytes.len()).sum();
        if (before + bytes.len()) as u64 > rule.most_in_all {
            let most = rule.most_in_all >> 20;
            let text = format!(
                "{}: the files of --{} have more than {most} MiB in all",
                file_name(&path),
                spec.name
            );
            return Err(CliError::Unreadable(text));
        }
        let name = files::name(&file);
        all.add_file(spec.name, OptionFile { name, bytes, folder: folder.clone() });
    }
    Ok(())
}

/// The options of all protocols.
fn specs() -> impl Iterator<Item = OptionSpec> {
    PROTOCOLS.iter().flat_map(|protocol| protocol.options()).copied()
}

/// Examples of what can be typed, a line each.
pub(in crate::cli) fn examples() -> String {
    let own = PROTOCOLS.iter().flat_map(|protocol| protocol.command_lines());
    let lines = own.chain(&["tcpdump -i lo -U -w - | moulsniff - --json"]);
    lines.fold(String::new(), |text, line| text + "  " + line + "\n")
}

/// The name of a protocol, for examples in errors.
pub(in crate::cli) fn example_protocol() -> &'static str {
    PROTOCOLS.first().map_or("PROTOCOL", |protocol| protocol.name())
}

/// An option as clap has it.
fn argument(spec: &OptionSpec) -> Arg {
    let variable = spec.variable.map(|variable| format!("[env: {variable}]"));
    let more = [Some(spec.more_help.to_owned()), variable];
    let more: Vec<String> = more.into_iter().flatten().filter(|text| !text.is_empty()).collect();
    let arg = Arg::new(spec.name).long(spec.name).value_name(spec.value_name).help(spec.help);
    let arg = if more.is_empty() {
        arg
    } else {
        arg.long_help(format!("{}\n\n{}", spec.help, more.join(" ")))
    };
    match spec.kind {
        OptionKind::Files(_) => arg
            .action(ArgAction::Append)
            .value_parser(clap::value_parser!(OsString))
            .value_hint(ValueHint::AnyPath),
        OptionKind::Word(words) => arg
            .hide_short_help(true)
            .default_value(words.first().copied().unwrap_or(""))
            .value_parser(PossibleValuesParser::new(words)),
    }
}

/// The options that name files, without their hyphens.
pub(in crate::cli) fn file_options() -> impl Iterator<Item = &'static str> {
    specs().filter(|spec| matches!(spec.kind, OptionKind::Files(_))).map(|spec| spec.name)
}

/// What was typed for an option; else what its environment variable holds.
fn typed(spec: OptionSpec, matches: &ArgMatches) -> TypedOption {
    let values: Vec<OsString> = match spec.kind {
        OptionKind::Files(_) => {
            let values = matches.try_get_many::<OsString>(spec.name).ok().flatten();
            values.into_iter().flatten().cloned().collect()
        }
        OptionKind::Word(_) => {
            let value = matches.try_get_one::<String>(spec.name).ok().flatten();
            value.into_iter().map(OsString::from).collect()
        }
    };
    let held = |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty());
    match spec.variable.and_then(|variable| Some((variable, held(variable)?))) {
        Some((variable, held)) if values.is_empty() => {
            let values = std::env::split_paths(&held).map(PathBuf::into_os_string).collect();
            TypedOption { spec, values, source: ValueSource::Environment(variable) }
        }
        _ => TypedOption { spec, values, source: ValueSource::CommandLine },
    }
}
