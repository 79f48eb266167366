//! Resolves the command line once into a [`Plan`]: every default, every conflict and every file is
//! decided here.
//!
//! [`PlanArgs`] has what was typed; a [`Plan`] has its meaning. A command that reads captures makes
//! a plan, runs it with its own output, and closes it. Nothing outside this file interprets
//! [`ReadArgs`].

use crate::remark;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::available_parallelism;

use super::capture_order::OrderedCaptures;
use super::error::CliError;
use super::options::{FilterArgs, LiveArgs, PrintArgs, ReadArgs, TimeWord, When, example_protocol};
use super::session_pass::session_map;
use super::summary::Summary;
use super::terminal::{coloured, marks, width};
use super::{files, load, pseudonyms};
use crate::capture::LiveError;
use crate::filter::{Filter, Paths};
use crate::flow::FlowLimits;
use crate::output_file::Inputs;
use crate::pipeline::{DecodeAs, Setup};
use crate::print::json::{JsonOptions, JsonWriter};
use crate::print::oneline::{OneLineOptions, OneLineWriter};
use crate::print::tree::{TreeOptions, TreeWriter};
use crate::print::{Paint, Zone};
use crate::proto::{LazyTables, Protocol};
use crate::run::{Columns, FrameInput, Reading, RecordWriter};
use crate::session::Options;

/// The columns of `--csv` alone.
const DEFAULT_COLUMNS: &str =
    "record,time,frame,transport,stream,src,dst,from,protocol,service,message,event";

/// What a command that reads captures has to do.
pub(super) struct Plan {
    /// What is read.
    pub(super) reading: Reading,
    /// How it is decoded.
    pub(super) setup: Setup,
    /// Which records count.
    pub(super) filter: Option<Arc<Filter>>,
    /// What `--columns` and `--csv` print of each record.
    columns: Option<Paths>,
    /// After how many of these records the run ends.
    pub(super) limit: u64,
    /// Secrets are hidden.
    pub(super) redact: bool,
    /// How the command closes.
    pub(super) ending: Summary,
}

/// What was typed about reading. What a command has no option for is absent.
#[derive(Clone, Copy)]
pub(super) struct PlanArgs<'a> {
    /// What every command has.
    pub(super) read: &'a ReadArgs,
    /// Captures that still grow.
    pub(super) live: Option<&'a LiveArgs>,
    /// Which records count.
    pub(super) filter: Option<&'a FilterArgs>,
    /// After how many of them the run ends.
    pub(super) count: Option<u64>,
    /// How records are printed.
    pub(super) print: Option<&'a PrintArgs>,
    /// The file or folder that is written.
    pub(super) output: Option<&'a Path>,
}

impl<'a> PlanArgs<'a> {
    /// Those of a command that has nothing but `read`.
    pub(super) fn new(read: &'a ReadArgs) -> PlanArgs<'a> {
        PlanArgs { read, live: None, filter: None, count: None, print: None, output: None }
    }

    /// The session that was asked for.
    fn session(&self) -> Option<u64> {
        self.filter?.session
    }

    /// Every file that is read.
    pub(super) fn inputs(&self) -> Inputs {
        let ReadArgs { captures, keys, privacy, general, .. } = self.read;
        let protocols: Vec<PathBuf> = keys.protocols.paths().collect();
        let tail = self.live.and_then(|live| live.tail.as_ref());
        let own = keys.tables.files.iter().chain(&privacy.pseudonyms).chain(&general.config_file);
        let all = captures.paths().chain(tail).chain(own).chain(&protocols);
        Inputs::of(all.map(PathBuf::as_path))
    }
}

impl Plan {
    /// Resolves what was typed. Reads the files that it names, except captures.
    pub(super) fn new(args: PlanArgs<'_>) -> Result<Plan, CliError> {
        let ReadArgs { privacy, general, strict, .. } = args.read;
        if let (Some(key), Some(output)) = (&privacy.pseudonyms, args.output) {
            files::refuse_future_key(key, output)?;
        }
        let mut setup = setup(args.read)?;
        if privacy.redact || privacy.pseudonyms.is_some() {
            let unmarked = setup.tables.iter().filter_map(LazyTables::unmarked);
            unmarked.for_each(|remark| remark::warn(remark.to_string()));
        }
        let mut reading = reading(&args)?;
        let mut filter = filter(&args, &setup)?;
        let mut columns = columns(&args, &setup)?;
        // Last, since this may make a file, and nothing is to be left behind by a mistake in what
        // was typed.
        setup.pseudonyms = pseudonyms::load(privacy)?;
        reading.inputs = args.inputs();
        let mut setup = pseudonyms::meet(&reading, setup)?;
        let asked = [
            filter.as_ref().map(Filter::wants_session),
            columns.as_ref().map(Paths::wants_session),
        ];
        if asked.contains(&Some(true)) {
            let (ready, map) = session_map(&reading, setup, args.session())?;
            setup = ready;
            let map = Arc::new(map);
            filter = filter.map(|filter| filter.with_sessions(Arc::clone(&map)));
            columns = columns.map(|columns| columns.with_sessions(Arc::clone(&map)));
        }
        setup.names = filter.as_ref().is_some_and(Filter::wants_names)
            || columns.as_ref().is_some_and(Paths::wants_names);
        Ok(Plan {
            setup,
            reading,
            filter: filter.map(Arc::new),
            columns,
            limit: args.count.unwrap_or(u64::MAX),
            redact: privacy.redact,
            ending: Summary {
                quiet: general.quiet,
                strict: *strict,
                nothing_asked: args.count == Some(0),
            },
        })
    }

    /// What writes the records, for `args` that ask for them on a standard output that is a
    /// terminal or not. What belongs at the output's beginning is appended to `out`.
    pub(super) fn writer(
        &self,
        args: &PrintArgs,
        color: When,
        terminal: bool,
        out: &mut Vec<u8>,
    ) -> Result<RecordWriter, CliError> {
        let redact = self.redact;
        if let Some(paths) = &self.columns {
            return Ok(RecordWriter::Columns(Box::new(Columns::new(
                paths.clone(),
                args.csv,
                redact,
                out,
            ))));
        }
        if args.json {
            let options = JsonOptions { spans: args.spans, redact };
            return Ok(RecordWriter::Json(Box::new(JsonWriter::new(options))));
        }
        let paint = Paint::new(coloured(color, terminal), marks(terminal));
        let word = args.time.unwrap_or_default();
        let time = word.form();
        let zone = if word == TimeWord::Local {
            Zone::local(files::is_plain).map_err(CliError::Typed)?
        } else {
            Zone::default()
        };
        if args.oneline {
            let width = terminal.then(width);
            let options = OneLineOptions { paint, redact, time, zone, width };
            return Ok(RecordWriter::OneLine(Box::new(OneLineWriter::new(options))));
        }
        let options = TreeOptions { paint, redact, bytes: args.bytes, time, zone };
        Ok(RecordWriter::Tree(Box::new(TreeWriter::new(options))))
    }
}

fn reading(args: &PlanArgs<'_>) -> Result<Reading, CliError> {
    let captures = &args.read.captures;
    let none = LiveArgs::default();
    let LiveArgs { interface, capture_filter, write, tail } = args.live.unwrap_or(&none);
    let mut sorted = Vec::new();
    let input = match (interface, tail) {
        (None, None) => {
            let given: Vec<PathBuf> = captures.paths().cloned().collect();
            let ordered = OrderedCaptures::new(&given, args.read.as_given)?;
            sorted = ordered.sorted_names();
            FrameInput::Files(ordered.paths)
        }
        (None, Some(file)) if captures.is_empty() => FrameInput::Growing(file.clone()),
        (Some(name), None) if captures.is_empty() => {
            FrameInput::Interface(name.clone(), capture_filter.clone().unwrap_or_default())
        }
        _ => return Err(CliError::Typed("captures, --tail and -i exclude each other".into())),
    };
    if interface.is_some() && !cfg!(feature = "live") {
        return Err(LiveError::NotBuilt.into());
    }
    let inputs = args.inputs();
    files::refuse_standard_output(&inputs)?;
    let threads = threads(args.read.limits.threads);
    let quiet = args.read.general.quiet;
    if !sorted.is_empty() && !quiet {
        remark::warn(format!(
            "read in the order of their first frames, not as given, the first being {}; \
             --as-given keeps the order",
            sorted.first().map_or("", String::as_str)
        ));
    }
    Ok(Reading { input, inputs, keep: write.clone(), threads, quiet, sorted })
}

/// The number of threads that was asked for, or one for each core.
fn threads(typed: Option<u16>) -> usize {
    let cores = || available_parallelism().map_or(1, NonZeroUsize::get);
    typed.map_or_else(cores, |threads| usize::from(threads).max(1))
}

fn setup(args: &ReadArgs) -> Result<Setup, CliError> {
    let ReadArgs { keys, limits, .. } = args;
    let tables: Arc<[LazyTables]> = load::tables_of(&keys.tables)?.into();
    // They stay until the program ends, when the system takes all of its memory at once.
    std::mem::forget(Arc::clone(&tables));
    let decode_as = decode_as(&args.decode_as, &tables)?;
    Ok(Setup {
        tables,
        settings: load::settings(&keys.protocols, false)?,
        options: Options {
            max_message: limits.max_message,
            max_decompressed: limits.max_decompressed,
            max_undecoded: limits.max_undecoded,
        },
        decode_as,
        limits: FlowLimits {
            stream_buffer: limits.max_stream,
            total_buffer: limits.max_total,
            checksums: limits.checksums,
            ..FlowLimits::default()
        },
        max_held: limits.max_total,
        names: false,
        pseudonyms: None,
    })
}

fn filter(args: &PlanArgs<'_>, setup: &Setup) -> Result<Option<Filter>, CliError> {
    let ReadArgs { privacy, general, .. } = args.read;
    let compile = |text: &str| {
        Filter::compile_with(text, &setup.tables, &general.named, privacy.redact)
            .map_err(|error| CliError::Typed(format!("filter: {error}")))
    };
    let session =
        args.session().map(|number| compile(&format!("session == {number}"))).transpose()?;
    let text = match args.filter.map_or(&[][..], |filter| &filter.filter) {
        [] => return Ok(session),
        [text] => text,
        // Of other options the last one counts, but the first of two conditions would be lost.
        _ => {
            return Err(CliError::Typed(
                "--filter (-Y) may be given once; `and` joins conditions: -Y 'service == auth and \
                 refused'"
                    .into(),
            ));
        }
    };
    let filter = compile(text)?;
    if !general.quiet {
        for doubt in filter.doubts() {
            remark::warn(format!("filter: {doubt}"));
        }
    }
    Ok(Some(match session {
        Some(session) => session.and(filter),
        None => filter,
    }))
}

fn columns(args: &PlanArgs<'_>, setup: &Setup) -> Result<Option<Paths>, CliError> {
    let ReadArgs { privacy, general, .. } = args.read;
    let Some(print) = args.print.filter(|print| print.columns.is_some() || print.csv) else {
        return Ok(None);
    };
    let list = print.columns.as_deref().unwrap_or(DEFAULT_COLUMNS);
    let paths = Paths::compile_with(list, &setup.tables, &general.named, privacy.redact)
        .map_err(|error| CliError::Typed(format!("columns: {error}")))?;
    if !general.quiet {
        for doubt in paths.doubts() {
            remark::warn(format!("columns: {doubt}"));
        }
    }
    Ok(Some(paths))
}

/// What `--decode-as` says of ports: `tcp:14000=moul`, or `14000=moul`, each.
fn decode_as(texts: &[String], tables: &[LazyTables]) -> Result<Vec<DecodeAs>, CliError> {
    let protocols: Vec<&dyn Protocol> = tables.iter().map(|lazy| lazy.protocol() as _).collect();
    let one = |text: &String| {
        DecodeAs::parse(text, &protocols).map_err(|why| {
            let protocol = example_protocol();
            CliError::Typed(format!(
                "--decode-as {text}: {why}; expected something like tcp:14000={protocol}"
            ))
        })
    };
    let all = texts.iter().map(one).collect::<Result<Vec<_>, _>>()?;
    DecodeAs::agree(&all).map_err(|why| CliError::Typed(format!("--decode-as: {why}")))?;
    Ok(all)
}
