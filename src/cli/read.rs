//! Reading captures: the main job.

use std::io::{self, IsTerminal, Write};

use super::args::ReadArgs;
use super::crew;
use super::error::{CliError, Status};
use super::feed::{Feed, threads};
use super::intake::Intake;
use super::progress::Progress;
use super::sink::Printer;
use crate::filter::Filter;
use crate::flow::FlowLimits;
use crate::pipeline::{DecodeAs, Output, Pipeline, Setup, Summary};
use crate::proto::{AllSettings, LazyTables, Options, PROTOCOLS, Transport, protocol_named};
use crate::table::{TableError, TableSource, Tables};

/// Reads captures and prints what is in them.
pub(super) fn run(args: &ReadArgs) -> Result<Status, CliError> {
    let setup = setup(args)?;
    let stdout = io::stdout();
    let terminal = stdout.is_terminal();
    let progress = Intake::progress(args);
    let printer = Printer::new(args, &setup, terminal, progress.beside(stdout))?;
    let mut pipeline = Pipeline::new(setup, printer);
    let mut feed = Feed::new(args, progress)?;
    match threads(args) {
        1 => alone(&mut feed, &mut pipeline),
        threads => crew::run(&mut feed, &mut pipeline, threads),
    }
    let summary = pipeline.summary();
    if let Some(error) = pipeline.output().take_error() {
        return Err(CliError::writing(error));
    }
    let verdict = pipeline.output().verdict(args.quiet);
    feed.result(args.quiet)?;
    if !args.quiet {
        say_summary(&summary);
    }
    verdict?;
    Ok(status(args, &summary))
}

/// Decodes and writes on this thread.
fn alone<W: Write>(feed: &mut Feed, pipeline: &mut Pipeline<Printer<W>>) {
    feed.run(pipeline, |printer, waits| {
        if waits {
            printer.flush();
        }
        printer.is_done()
    });
    pipeline.finish();
    pipeline.output().flush();
}

/// Everything a run is made with.
pub(super) fn setup(args: &ReadArgs) -> Result<Setup, CliError> {
    Ok(Setup {
        tables: tables(&args.tables)?.into(),
        settings: settings(args, false)?,
        options: Options { max_message: args.max_message, max_decompressed: args.max_decompressed },
        decode_as: args.decode_as.iter().map(|d| decode_as(d)).collect::<Result<_, _>>()?,
        limits: FlowLimits {
            stream_buffer: args.max_stream,
            total_buffer: args.max_total,
            checksums: args.checksums,
            ..FlowLimits::default()
        },
        max_held: args.max_total,
    })
}

/// The filter that was asked for.
pub(super) fn filter(args: &ReadArgs, setup: &Setup) -> Result<Option<Filter>, CliError> {
    let Some(text) = &args.filter else { return Ok(None) };
    let filter = Filter::compile(text, &setup.tables, args.redact)
        .map_err(|error| CliError::Typed(format!("filter: {error}")))?;
    if !args.quiet {
        let notes = filter.notes().iter().map(ToString::to_string);
        for note in notes.chain(filter.doubts().iter().map(ToString::to_string)) {
            let _ = writeln!(io::stderr(), "moulsniff: filter: {note}");
        }
    }
    Ok(Some(filter))
}

/// Reports a name in the filter that was a mistake, because the filter kept nothing. Called after the last record.
pub(super) fn verdict(filter: Option<&Filter>, quiet: bool) -> Result<(), CliError> {
    let Some(Err(doubt)) = filter.map(Filter::verdict) else { return Ok(()) };
    // The mistake itself was shown at the beginning, unless `quiet`.
    let text = if quiet { doubt.to_string() } else { "it kept nothing, and the remark above says why".to_string() };
    Err(CliError::Typed(format!("filter: {text}")))
}

/// Feeds captures to a pipeline, until `enough` (see [`Feed::run`]).
pub(super) fn feed<O: Output>(
    args: &ReadArgs,
    progress: Progress,
    pipeline: &mut Pipeline<O>,
    enough: impl FnMut(&mut O, bool) -> bool,
) -> Result<(), CliError> {
    let mut feed = Feed::new(args, progress)?;
    feed.run(pipeline, enough);
    feed.result(args.quiet)
}

/// The tables of all protocols, with those that were given on top.
pub(super) fn tables(files: &[std::path::PathBuf]) -> Result<Vec<LazyTables>, CliError> {
    let mut further: Vec<(String, TableSource)> = Vec::new();
    for path in files {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|e| CliError::File(name.clone(), e))?;
        let foreign = PROTOCOLS.iter().find_map(|p| p.foreign_tables(&name, &text));
        let source = foreign.unwrap_or(Ok(TableSource { name, text }))?;
        let protocol = Tables::protocol_of(&source)?;
        if protocol_named(&protocol).is_none() {
            let known: Vec<&str> = PROTOCOLS.iter().map(|p| p.name()).collect();
            let message = format!("there is no protocol `{protocol}`; there are {}", known.join(", "));
            let at = source.text.find(&format!("protocol {protocol}")).map_or(0, |at| at + "protocol ".len());
            return Err(TableError::at(&source.name, &source.text, at, message).into());
        }
        further.push((protocol, source));
    }
    let mut all = Vec::new();
    for protocol in PROTOCOLS {
        let own = further.iter().filter(|f| f.0 == protocol.name()).map(|f| f.1.clone()).collect();
        all.push(LazyTables::new(*protocol, own)?);
    }
    Ok(all)
}

/// What was given to each protocol.
pub(super) fn settings(args: &ReadArgs, no_capture: bool) -> Result<AllSettings, CliError> {
    let given = args.protocols.read(no_capture)?;
    let mut warn = |text: String| {
        let _ = writeln!(io::stderr(), "moulsniff: {text}");
    };
    Ok(AllSettings::new(&given, &mut warn)?)
}

/// `tcp:14000=moul`, or `14000=moul`.
fn decode_as(text: &str) -> Result<DecodeAs, CliError> {
    let wrong =
        |why: &str| CliError::Typed(format!("--decode-as {text}: {why}; expected something like tcp:14000=moul"));
    let (place, protocol) = text.split_once('=').ok_or_else(|| wrong("no `=`"))?;
    let (transport, port) = place.split_once(':').unwrap_or(("tcp", place));
    let transport = match transport {
        "tcp" => Transport::Tcp,
        "udp" => Transport::Udp,
        other => return Err(wrong(&format!("`{other}` is neither tcp nor udp"))),
    };
    let port = port.parse().map_err(|_| wrong(&format!("`{port}` is no port")))?;
    if protocol_named(protocol).is_none() {
        let near = crate::suggest::suggestion(protocol, PROTOCOLS.iter().map(|p| p.name()));
        return Err(wrong(&format!("there is no protocol `{protocol}`{near}")));
    }
    Ok(DecodeAs { transport, port, protocol: protocol.to_string() })
}

pub(super) fn status(args: &ReadArgs, summary: &Summary) -> Status {
    let bytes = summary.bytes;
    if args.strict && (bytes.undecoded > 0 || bytes.lost > 0 || bytes.closed > 0) {
        Status::Strict
    } else {
        Status::Good
    }
}

pub(super) fn say_summary(summary: &Summary) {
    let b = summary.bytes;
    let mut text = format!(
        "{} frames, {} streams recognised, {} messages, {} problems; {} payload bytes: {} explained, {} opaque",
        summary.flow.frames, summary.streams, summary.messages, summary.problems, b.payload, b.explained, b.opaque
    );
    for (word, n) in [("undecoded", b.undecoded), ("closed for want of a key", b.closed), ("lost", b.lost)] {
        if n > 0 {
            text.push_str(&format!(", {n} {word}"));
        }
    }
    if summary.flow.wrong_sums > 0 {
        text.push_str(&format!("; {} wrong checksums", summary.flow.wrong_sums));
    }
    if summary.flow.fragments_dropped > 0 {
        text.push_str(&format!("; {} datagrams of which IP fragments are missing", summary.flow.fragments_dropped));
    }
    if let Some(link) = summary.flow.unsupported_link {
        text.push_str(&format!("; {} frames of link type {link}, which is not supported", summary.flow.unsupported));
    }
    let _ = writeln!(io::stderr(), "{text}");
}
