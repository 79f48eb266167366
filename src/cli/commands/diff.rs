//! `moulsniff diff`: two captures side by side.
//!
//! Both are read at the same time, on a thread each; the messages that differ are read a second
//! time, for their fields.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder, ScopedJoinHandle};

use crate::capture::UnpackRoom;
use crate::captured::file_name;
use crate::cli::error::{CliError, Status};
use crate::cli::files;
use crate::cli::options::captures::CaptureArgs;
use crate::cli::options::{DiffArgs, ReadArgs};
use crate::cli::plan::{Plan, coloured, marks};
use crate::cli::summary::{Summary, refuse_mistake};
use crate::diff::{
    CaptureDigest, CompareOptions, Comparison, DetailCollector, DetailStore, DiffBounds, DiffStyle,
    DifferenceSum, Digester, IgnoreList, Section, StreamRoom, difference_json, difference_line,
    differences, section_text, sum_json, summary_text,
};
use crate::pipeline::Output;
use crate::print::Paint;
use crate::run::{CaptureRun, RunOutcome};

/// Bytes of a file of entries for `--ignore`.
const MAX_IGNORE_FILE: u64 = 1 << 20;
/// Bytes of output that are written at once.
const GATHER: usize = 64 << 10;

pub(super) fn run(args: &DiffArgs) -> Result<Status, CliError> {
    let files = captures(args)?;
    let room = UnpackRoom::default();
    let [first, second] = [plan(args, &files, 0, &room)?, plan(args, &files, 1, &room)?];
    let ignore = ignore_list(args, &first)?;
    let ending = first.ending;
    let strict = args.read.strict;
    let bounds = DiffBounds::of(args.max_memory);
    let read = |plan: Plan, streams: &StreamRoom| digest(plan, &ignore, strict, bounds, streams);
    let streams = StreamRoom::default();
    let (mut a, mut b) = both(|| read(first, &streams), || read(second, &streams))?;
    for (side, own) in [&mut a, &mut b].into_iter().enumerate() {
        if own.gave_up && !own.outcome.interrupted {
            *own = read(plan(args, &files, side, &room)?, &StreamRoom::default())?;
        }
    }
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
    /// It was not read to its end, and has to be read again: see [`Digester::gave_up`].
    gave_up: bool,
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
    if read.interface.is_some() || read.tail.is_some() {
        return Err(CliError::Typed(
            "diff compares two capture files: -i and --tail do nothing with it".into(),
        ));
    }
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

/// How one of the captures is read. Both unpack within `room`.
fn plan(
    args: &DiffArgs,
    files: &[PathBuf; 2],
    side: usize,
    room: &UnpackRoom,
) -> Result<Plan, CliError> {
    let captures = files.get(side).cloned().map(CaptureArgs::from).unwrap_or_default();
    // Remarks on the filter are made once.
    let quiet = args.read.quiet || side > 0;
    let read = ReadArgs { captures, quiet, strict: args.read.strict, ..args.read.clone() };
    let mut plan = Plan::within(&read, room.clone())?;
    // Two lines of progress would write over each other.
    plan.reading.quiet = true;
    plan.ending.quiet = args.read.quiet;
    Ok(plan)
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

/// Does two things at the same time, or one after the other where the system has no thread to give.
fn both<T: Send>(
    first: impl FnOnce() -> Result<T, CliError>,
    second: impl FnOnce() -> Result<T, CliError> + Send,
) -> Result<(T, T), CliError> {
    // The thread takes what it has to do once it runs: a failing `spawn` drops its closure.
    let work = Mutex::new(Some(second));
    let take = || work.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (mine, theirs) = thread::scope(|scope| {
        let other = Builder::new()
            .name("second".into())
            .spawn_scoped(scope, || take().map(|second| second()));
        let mine = first();
        (mine, other.map(ScopedJoinHandle::join))
    });
    let gone = || CliError::Unreadable("the thread that reads the second capture is gone".into());
    let theirs = match (theirs, take()) {
        (Ok(Err(panic)), _) => std::panic::resume_unwind(panic),
        (Ok(Ok(Some(theirs))), _) => theirs,
        (_, Some(second)) => second(),
        _ => Err(gone()),
    };
    Ok((mine?, theirs?))
}

fn digest(
    plan: Plan,
    ignore: &IgnoreList,
    strict: bool,
    bounds: DiffBounds,
    streams: &StreamRoom,
) -> Result<DiffSide, CliError> {
    let Plan { reading, setup, filter, .. } = plan;
    let mut digester = Digester::new(ignore, filter.as_deref(), strict, bounds, streams);
    let outcome = CaptureRun::new(&reading, setup)?.into_output(&mut digester);
    let gave_up = digester.gave_up();
    if !gave_up {
        refuse_mistake(filter.as_deref())?;
    }
    Ok(DiffSide { digest: digester.finish(), outcome, gave_up })
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
    let room = UnpackRoom::default();
    let collect = |side: usize, wanted: Vec<u64>| -> Result<DetailStore, CliError> {
        let mut collector =
            DetailCollector::new(wanted, ignore, args.read.strict, args.read.redact, bounds);
        if collector.wants_more(false) {
            let Plan { reading, setup, .. } = plan(args, files, side, &room)?;
            CaptureRun::new(&reading, setup)?.into_output(&mut collector);
        }
        Ok(collector.finish())
    };
    let (of_a, of_b) = both(|| collect(0, in_a), || collect(1, in_b))?;
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
            paint: Paint::new(coloured(args.read.color, terminal), marks(terminal)),
            names: files.each_ref().map(|path| file_name(path)),
        };
        let text = !args.read.json && !args.read.oneline;
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
                match args.read.json {
                    true => difference_json(section, difference, &mut self.out),
                    false => difference_line(section, difference, &style, &mut self.out),
                }
                self.flush_full()?;
            }
        }
        if args.read.json {
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
