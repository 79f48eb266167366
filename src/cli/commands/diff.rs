//! `moulsniff diff`: two captures side by side.
//!
//! One is read after the other; the messages that differ are read a second time, for their fields.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::captured::file_name;
use crate::cli::error::{CliError, Status};
use crate::cli::files;
use crate::cli::options::{FilterArgs, ReadArgs, size};
use crate::cli::plan::{Plan, PlanArgs};
use crate::cli::summary::{Summary, refuse_mistake};
use crate::cli::terminal::{coloured, marks};
use crate::diff::{
    CaptureDigest, CompareOptions, Comparison, DetailCollector, DetailStore, DiffBounds, DiffStyle,
    DifferenceSum, Digester, IgnoreList, Section, difference_json, difference_line, differences,
    section_text, sum_json, summary_text,
};
use crate::pipeline::Output;
use crate::print::Paint;
use crate::run::{CaptureRun, RunOutcome};

/// Bytes of a file of entries for `--ignore`.
const MAX_IGNORE_FILE: u64 = 1 << 20;
/// Bytes of output that are written at once.
const GATHER: usize = 64 << 10;

/// Two captures side by side.
#[derive(Args, Debug)]
#[command(override_usage = "moulsniff diff [OPTIONS] A B")]
#[command(mut_arg("captures", |arg| arg.long_help(None::<&str>).help(
    "Compare these two captures (pcap, pcapng; plain, gzip or zstd), which have to be files"
)))]
#[command(mut_arg("filter", |arg| arg.long_help(None::<&str>).help(
    "Print only differences in messages that match an expression, such as 'service == auth'"
)))]
pub struct DiffArgs {
    /// Do not compare PATH, such as 'fields.buffer.time_sent' or '*.time_sent', or MESSAGE, a name
    /// in which * stands for any characters; may be given several times
    #[arg(long, value_name = "PATH|MESSAGE")]
    pub ignore: Vec<String>,
    /// Read --ignore entries from a file, one a line; # begins a comment
    #[arg(long = "ignore-file", value_name = "FILE")]
    pub ignore_files: Vec<PathBuf>,
    /// Report replies that take this many times as long in B, and at least 5 ms longer
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    pub latency: Option<f64>,
    /// Use at most this much memory for both captures, roughly. Messages beyond it are counted and
    /// not compared; differences beyond it are counted and not printed
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size)]
    pub max_memory: usize,
    /// Print JSON, one object for each difference
    #[arg(long, conflicts_with = "oneline")]
    pub json: bool,
    /// Print one line for each difference
    #[arg(long)]
    pub oneline: bool,
    /// The two captures.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Which messages are compared.
    #[command(flatten)]
    pub filter: FilterArgs,
}

/// How many times as long.
fn factor(text: &str) -> Result<f64, String> {
    let factor: Option<f64> = text.trim_end_matches('x').parse().ok();
    factor
        .filter(|factor| factor.is_finite() && *factor >= 1.0)
        .ok_or_else(|| "expected a number from 1 on, such as 3".into())
}

pub(super) fn run(args: &DiffArgs) -> Result<Status, CliError> {
    let files = captures(args)?;
    let [first, second] = &files;
    let first = plan(args, first)?;
    let ignore = ignore_list(args, &first)?;
    let ending = first.ending;
    let mut a = digest(first, args, &ignore)?;
    let mut b = digest(plan(args, second)?, args, &ignore)?;
    if a.outcome.interrupted || b.outcome.interrupted {
        return Ok(Status::Interrupted);
    }
    let error = a.outcome.error.take().or(b.outcome.error.take());
    if error.is_none() {
        ignore.verdict().map_err(|error| CliError::Typed(format!("--ignore: {error}")))?;
    }
    if let Some(error) = error {
        if [&a, &b].iter().any(|side| side.outcome.pipeline.summary().flow.frames == 0) {
            return Err(error.into());
        }
        // What came before the cut is compared all the same.
        compare(args, &files, [&a, &b], &ignore)?;
        return Err(error.into());
    }
    let differ = compare(args, &files, [&a, &b], &ignore)?;
    ending.say_summary_of("A", &mut a.outcome);
    ending.say_summary_of("B", &mut b.outcome);
    status(ending, differ, [&a, &b])
}

/// What was read of one capture.
struct DiffSide {
    digest: CaptureDigest,
    outcome: RunOutcome,
}

fn status(ending: Summary, differ: bool, sides: [&DiffSide; 2]) -> Result<Status, CliError> {
    if differ {
        return Ok(Status::Different);
    }
    let [a, b] = sides;
    match ending.status(&a.outcome, None)? {
        Status::Good => ending.status(&b.outcome, None),
        other => Ok(other),
    }
}

/// The two captures. Both are read twice, so they have to be files.
fn captures(args: &DiffArgs) -> Result<[PathBuf; 2], CliError> {
    let read = &args.read;
    let all: Vec<&PathBuf> = read.captures.paths().collect();
    let [a, b] = all.as_slice() else {
        return Err(CliError::Typed(format!(
            "diff compares two captures, and here are {}",
            all.len()
        )));
    };
    for path in [a, b] {
        let pipe = path.metadata().is_ok_and(|about| !about.is_file() && !about.is_dir());
        if path.as_os_str() == "-" || pipe {
            let text = format!(
                "{}: diff reads a capture twice where something differs, so it has to be a file",
                file_name(path)
            );
            return Err(CliError::Typed(text));
        }
    }
    Ok([(*a).clone(), (*b).clone()])
}

/// How one of the captures is read.
fn plan(args: &DiffArgs, file: &Path) -> Result<Plan, CliError> {
    let read = ReadArgs { captures: file.to_path_buf().into(), ..args.read.clone() };
    Plan::new(PlanArgs { filter: Some(&args.filter), ..PlanArgs::new(&read) })
}

fn ignore_list(args: &DiffArgs, plan: &Plan) -> Result<IgnoreList, CliError> {
    let mut list = IgnoreList::default();
    let tables = &plan.setup.tables;
    for entry in &args.ignore {
        list.add(entry, tables).map_err(|error| CliError::Typed(format!("--ignore: {error}")))?;
    }
    for path in &args.ignore_files {
        let name = files::name(path);
        let text = ignore_text(path)?;
        for (number, line) in text.lines().enumerate() {
            list.add_line(line, tables).map_err(|error| {
                CliError::Typed(format!("{name}, line {}, {}", number + 1, error.unquoted()))
            })?;
        }
    }
    Ok(list)
}

fn ignore_text(path: &Path) -> Result<String, CliError> {
    let bytes = files::read(path, "a list of what is ignored", MAX_IGNORE_FILE)?;
    String::from_utf8(bytes).map_err(|_| {
        let error = io::Error::new(
            io::ErrorKind::InvalidData,
            "no list of what is ignored: it is no text in UTF-8",
        );
        CliError::File(files::name(path), error)
    })
}

fn digest(plan: Plan, args: &DiffArgs, ignore: &IgnoreList) -> Result<DiffSide, CliError> {
    let Plan { reading, setup, filter, .. } = plan;
    let bounds = DiffBounds::of(args.max_memory);
    let mut digester = Digester::new(ignore, filter.as_deref(), args.read.strict, bounds);
    let outcome = CaptureRun::new(&reading, setup)?.into_output(&mut digester);
    refuse_mistake(filter.as_deref())?;
    Ok(DiffSide { digest: digester.finish(), outcome })
}

/// Compares what was read, and prints it. Returns whether anything differs.
fn compare(
    args: &DiffArgs,
    files: &[PathBuf; 2],
    sides: [&DiffSide; 2],
    ignore: &IgnoreList,
) -> Result<bool, CliError> {
    let [a, b] = sides;
    let comparison =
        Comparison::new(&a.digest, &b.digest, CompareOptions { latency: args.latency });
    let bounds = DiffBounds::of(args.max_memory);
    let [in_a, in_b] = comparison.wanted();
    let collect = |file: &Path, wanted: Vec<u64>| -> Result<DetailStore, CliError> {
        let mut collector = DetailCollector::new(
            wanted,
            ignore,
            args.read.strict,
            args.read.privacy.redact,
            bounds,
        );
        if collector.wants_more(false) {
            let Plan { reading, setup, .. } = plan(args, file)?;
            CaptureRun::new(&reading, setup)?.into_output(&mut collector);
        }
        Ok(collector.finish())
    };
    let [a, b] = files;
    let of_a = collect(a, in_a)?;
    let of_b = collect(b, in_b)?;
    let sections = differences(&comparison, [&of_a, &of_b], bounds);
    let sum = DifferenceSum::new(&sections, &comparison);
    let mut to = Gathered { out: String::new() };
    to.print(args, files, &sections, &sum)?;
    to.flush()?;
    Ok(sum.differences() > 0)
}

/// Text on its way to standard output.
struct Gathered {
    out: String,
}

impl Gathered {
    fn print(
        &mut self,
        args: &DiffArgs,
        files: &[PathBuf; 2],
        sections: &[Section],
        sum: &DifferenceSum,
    ) -> Result<(), CliError> {
        let terminal = io::stdout().is_terminal();
        let style = DiffStyle {
            paint: Paint::new(coloured(args.read.general.color, terminal), marks(terminal)),
            names: files.each_ref().map(|path| file_name(path)),
        };
        let text = !args.json && !args.oneline;
        if text {
            summary_text(sum, &style, &mut self.out);
        }
        let mut session = String::new();
        for section in sections {
            if text {
                section_text(section, &mut session, &style, &mut self.out);
                self.flush_full()?;
                continue;
            }
            for difference in &section.differences {
                if args.json {
                    difference_json(section, difference, &mut self.out);
                } else {
                    difference_line(section, difference, &style, &mut self.out);
                }
                self.flush_full()?;
            }
        }
        if args.json {
            self.out.push_str(&sum_json(sum));
        }
        Ok(())
    }

    fn flush_full(&mut self) -> Result<(), CliError> {
        if self.out.len() >= GATHER { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), CliError> {
        let mut to = io::stdout();
        to.write_all(self.out.as_bytes()).and_then(|()| to.flush()).map_err(CliError::writing)?;
        self.out.clear();
        Ok(())
    }
}
