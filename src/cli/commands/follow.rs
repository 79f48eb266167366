//! `moulsniff follow`: the plaintext of a stream, or of all of them into files.

use crate::captured::file_name;
use crate::digits::{counted, plural};
use crate::remark;
use std::collections::{HashMap, VecDeque};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::cli::error::{CliError, Status};
use crate::cli::files;
use crate::cli::options::{FilterArgs, LiveArgs, ReadArgs};
use crate::cli::plan::{Plan, PlanArgs};
use crate::cli::stale_files::StaleFiles;
use crate::cli::summary::refuse_interrupted;
use crate::cli::terminal::marks;
use crate::output_file::{Access, Inputs, OutputFile, sync_folder};
use crate::pipeline::{Filtered, Output, StreamKey, StreamOver};
use crate::print::follow::{Follow, FollowFormat, FollowPieces, PieceWriter};
use crate::record::Record;
use crate::run::{self, Beside, CaptureRun, FormatBatch, FormatPool, TextSink};
use crate::session::{Side, Transport};

/// Bytes of pieces gathered before they are written.
const GATHER: usize = 64 << 10;
/// Bytes that each part of the pieces keeps allocated.
const KEEP: usize = 256 << 10;
/// Bytes of text gathered for all files together.
const GATHER_ALL: usize = 8 << 20;
/// Files that are completed between two looks at signals.
const AT_ONCE: usize = 64;

/// Following streams.
#[derive(Args, Debug)]
#[command(override_usage = "moulsniff follow [OPTIONS] [tcp:|udp:]N CAPTURE...\n       moulsniff \
                            follow [OPTIONS] --all -o DIR CAPTURE...")]
#[command(mut_arg("captures", |arg| arg.long_help(None::<&str>).help(
    "Print this stream (tcp:3, udp:0, or 3 for tcp:3; not with --all) of these captures, which are read as one, in the order given; `-` is standard input"
)))]
pub struct FollowArgs {
    /// Print a hex dump with the messages' names (the default)
    #[arg(long, conflicts_with_all = ["text", "raw"])]
    pub hex: bool,
    /// Print text, with dots for all other bytes
    #[arg(long, conflicts_with = "raw")]
    pub text: bool,
    /// Print only the bytes
    #[arg(long, conflicts_with = "json")]
    pub raw: bool,
    /// Print JSON, one object a line, with the bytes in hex, or with --text as text
    #[arg(long)]
    pub json: bool,
    /// Print one side only
    #[arg(long, value_name = "SIDE")]
    pub from: Option<FromSide>,
    /// Write all streams, one file for each direction
    #[arg(long, requires = "output")]
    pub all: bool,
    /// Write the files into this folder (with --all); files of an earlier run are replaced, and
    /// those of other streams stay
    #[arg(short, value_name = "DIR", requires = "all")]
    pub output: Option<PathBuf>,
    /// The stream (unless --all), the captures, and how to read them.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Captures that still grow.
    #[command(flatten)]
    pub live: LiveArgs,
    /// Which messages are printed.
    #[command(flatten)]
    pub filter: FilterArgs,
}

/// One side of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FromSide {
    /// The end that opened the connection.
    Client,
    /// The end that accepted it.
    Server,
}

pub(super) fn run(args: &FollowArgs) -> Result<Status, CliError> {
    let mut read = args.read.clone();
    let form = match (args.json, args.text, args.raw) {
        (true, true, _) => FollowFormat::JsonText,
        (true, ..) => FollowFormat::JsonHex,
        (_, true, _) => FollowFormat::Text,
        (_, _, true) => FollowFormat::Raw,
        _ => FollowFormat::Hex,
    };
    let side = args.from.map(|from| match from {
        FromSide::Client => Side::Client,
        FromSide::Server => Side::Server,
    });
    if let Some(dir) = &args.output {
        return all(args.plan(&read), form, side, dir);
    }
    let Some(word) = read.captures.take_first_word() else {
        return Err(CliError::Typed("follow which stream? tcp:N, udp:N, or --all -o DIR".into()));
    };
    let key = stream(&word.to_string_lossy())?;
    if read.captures.is_empty() && args.live.is_empty() {
        return Err(CliError::Typed(format!(
            "no capture: moulsniff follow {} CAPTURE",
            file_name(&word)
        )));
    }
    one(args.plan(&read), form, side, key)
}

impl FollowArgs {
    /// What is asked of `read`, which has no stream among the captures.
    fn plan<'a>(&'a self, read: &'a ReadArgs) -> PlanArgs<'a> {
        PlanArgs {
            live: Some(&self.live),
            filter: Some(&self.filter),
            output: self.output.as_deref(),
            ..PlanArgs::new(read)
        }
    }
}

/// `tcp:3`, `udp:0`, or `3`.
fn stream(text: &str) -> Result<StreamKey, CliError> {
    let (transport, number) = match text.split_once(':') {
        Some(("tcp", n)) => (Transport::Tcp, n),
        Some(("udp", n)) => (Transport::Udp, n),
        Some(_) => return Err(no_stream(text)),
        None => (Transport::Tcp, text),
    };
    let number = number.parse().map_err(|_| no_stream(text))?;
    Ok(StreamKey { transport, number })
}

fn no_stream(text: &str) -> CliError {
    let text = format!(
        "`{text}` is no stream: expected a number, tcp:N or udp:N, and then captures (or --all -o \
         DIR)"
    );
    CliError::Typed(text)
}

fn one(
    args: PlanArgs<'_>,
    form: FollowFormat,
    side: Option<Side>,
    key: StreamKey,
) -> Result<Status, CliError> {
    let Plan { reading, setup, filter, redact, ending, .. } = Plan::new(args)?;
    let run = CaptureRun::new(&reading, setup)?;
    let follow = Follow::new(form, side, filter.is_some())
        .redacted(redact)
        .marked(marks(io::IsTerminal::is_terminal(&io::stdout())));
    let queue = run.format_pool(follow.writer(), run.stdout());
    let pieces = FollowPieces::default();
    let one = One { queue, key, follow, side, pieces, connections: 0, closed: 0 };
    let mut filtered = Filtered::new(one, filter.clone(), u64::MAX);
    let mut outcome = run.into_output(&mut filtered);
    let mut one = filtered.into_inner();
    one.follow.finish(&mut one.pieces);
    one.flush();
    if let Some(error) = one.queue.take_error() {
        return Err(CliError::writing(error));
    }
    if let Some(error) = outcome.error.take() {
        return Err(error.into());
    }
    let name = format!("{}:{}", key.transport.word(), key.number);
    if one.connections == 0 {
        refuse_interrupted(&mut outcome, || format!("stream {name} had not begun"))?;
        let text = format!(
            "there is no stream {name} of a known protocol; moulsniff stats lists those there are"
        );
        return Err(CliError::Typed(text));
    }
    let status = ending.status(&outcome, filter.as_deref())?;
    if !ending.quiet {
        if one.connections > 1 {
            remark::say(format_args!(
                "{name}: {} had this number, one after the other",
                counted(one.connections, "connection")
            ));
        }
        say_left_out(&format!("{name}: "), one.follow.lost, one.closed);
    }
    Ok(status)
}

/// Says which bytes are not among the plaintext.
fn say_left_out(name: &str, lost: u64, closed: u64) {
    let parts = [
        (lost, "was never captured and is", "were never captured and are"),
        (closed, "is not opened by any key and is", "are not opened by any key and are"),
    ];
    for (n, one, more) in parts {
        if n > 0 {
            remark::say(format_args!(
                "{name}{} {} left out",
                counted(n, "byte"),
                plural(n, one, more)
            ));
        }
    }
}

/// One stream onto standard output.
struct One {
    queue: FormatPool<PieceWriter, Beside<io::Stdout>>,
    key: StreamKey,
    follow: Follow,
    side: Option<Side>,
    pieces: FollowPieces,
    /// How many connections had the stream's number: the next one may have the same if its opening
    /// was not captured.
    connections: u64,
    /// How many of their bytes stay encrypted.
    closed: u64,
}

impl One {
    /// Whether a record is of the stream that is followed.
    fn is_own(&self, record: &Record<'_>) -> bool {
        record.transport == self.key.transport && record.stream == self.key.number
    }

    /// Writes everything.
    fn flush(&mut self) {
        self.queue.flush(&mut self.pieces);
    }
}

impl FormatBatch for PieceWriter {
    type Batch = FollowPieces;

    fn format(&mut self, pieces: &mut FollowPieces, to: &mut TextSink<'_>) {
        to.extend(|text| self.write(pieces, text));
        pieces.clear(KEEP);
    }
}

impl Output for One {
    fn record(&mut self, record: &Record<'_>) {
        if self.is_own(record) {
            self.follow.record(record, &mut self.pieces);
        }
    }

    fn plaintext(&mut self, stream: &StreamKey, from: Side, offset: u64, bytes: &[u8]) {
        if *stream == self.key && !self.queue.has_failed() {
            self.follow.plaintext(from, offset, bytes, &mut self.pieces);
            if self.pieces.size() >= GATHER {
                self.queue.add(&mut self.pieces);
            }
        }
    }

    fn stream_over(&mut self, over: &StreamOver<'_>) {
        if over.key == self.key {
            let sides = [Side::Client, Side::Server].into_iter().zip(over.counts);
            let wanted = sides.filter(|(side, _)| self.side.is_none_or(|s| s == *side));
            self.closed += wanted.map(|(_, c)| c.closed).sum::<u64>();
            self.connections += 1;
            self.follow.finish(&mut self.pieces);
        }
    }

    fn wants_more(&mut self, may_block: bool) -> bool {
        if may_block {
            self.flush();
        }
        !self.queue.has_failed()
    }
}

fn all(
    args: PlanArgs<'_>,
    form: FollowFormat,
    side: Option<Side>,
    dir: &Path,
) -> Result<Status, CliError> {
    let earlier = StaleFiles::within(dir, |name| may_be_written(name, form, side));
    refuse_inputs_among_streams(&args, form, side, dir, &earlier)?;
    let Plan { reading, setup, filter, redact, ending, .. } = Plan::new(args)?;
    let folder = files::create_folder(dir)?;
    let run = CaptureRun::new(&reading, setup)?;
    let all = All {
        dir: dir.into(),
        inputs: reading.inputs,
        form,
        side,
        redact,
        filtered: filter.is_some(),
        open: HashMap::new(),
        pieces: FollowPieces::default(),
        ended: EndedConnections::default(),
        done: Vec::new(),
        earlier,
        held: 0,
        files: 0,
        error: None,
    };
    let mut filtered = Filtered::new(all, filter.clone(), u64::MAX);
    let mut outcome = run.into_output(&mut filtered);
    let mut all = filtered.into_inner();
    if outcome.interrupted {
        // The files of streams that were still open are incomplete, and are deleted.
        all.done.clear();
    }
    let stopped = all.commit_rest();
    if let Some(error) = all.error.take() {
        return Err(error);
    }
    outcome.interrupted |= stopped;
    refuse_interrupted(&mut outcome, || {
        format!(
            "{} in {}; the others were not written",
            counted(all.files, "complete file"),
            file_name(dir)
        )
    })?;
    if let Some((names, verb)) = all.earlier.listed().filter(|_| all.files > 0) {
        let folder = file_name(dir);
        remark::warn(format!(
            "{folder}: {names} {verb} there before; no stream of this run has such a name"
        ));
    }
    if let Some(error) = outcome.error.take() {
        return Err(error.into());
    }
    let status = ending.status(&outcome, filter.as_deref())?;
    folder.keep();
    if !ending.quiet {
        remark::say(format_args!("{} in {}", counted(all.files, "file"), file_name(dir)));
        let bytes = outcome.pipeline.summary().bytes;
        say_left_out("", bytes.lost, bytes.closed);
    }
    Ok(status)
}

/// Refuses a folder where the file of a stream would have the place of an input, before anything is
/// written. Which streams there are is not known yet, so any number counts.
fn refuse_inputs_among_streams(
    args: &PlanArgs<'_>,
    form: FollowFormat,
    side: Option<Side>,
    dir: &Path,
    earlier: &StaleFiles,
) -> Result<(), CliError> {
    let inputs = args.inputs();
    earlier.paths(dir).try_for_each(|path| files::refuse_input(&path, &inputs))?;
    let Some((key, name)) =
        args.read.privacy.pseudonyms.as_ref().and_then(|key| Some((key, key.file_name()?)))
    else {
        return Ok(());
    };
    if may_be_written(&name.to_string_lossy(), form, side) {
        files::refuse_future_key(key, &dir.join(name))
    } else {
        Ok(())
    }
}

/// Whether the file of some stream has this name.
fn may_be_written(name: &str, form: FollowFormat, side: Option<Side>) -> bool {
    let end = file_extension(form);
    let mut parts = name
        .strip_suffix(end)
        .and_then(|name| name.strip_suffix('.'))
        .unwrap_or_default()
        .split('-');
    let transport = parts.next();
    let number = parts.next();
    let of = parts.next();
    let connection = parts.next();
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    matches!(transport, Some("tcp" | "udp"))
        && number.is_some_and(is_number)
        && connection.is_none_or(is_number)
        && parts.next().is_none()
        && [Side::Client, Side::Server]
            .iter()
            .any(|s| side.is_none_or(|side| side == *s) && of == Some(s.word()))
}

/// A direction on its way into its file.
struct FollowedDirection {
    follow: Follow,
    buffer: Vec<u8>,
    /// Made with the first bytes.
    file: Option<OutputFile>,
}

impl FollowedDirection {
    /// Makes the text of its pieces, and forgets these.
    fn format(&mut self, pieces: &mut FollowPieces) {
        self.follow.writer().write(pieces, &mut self.buffer);
        pieces.clear(KEEP);
    }
}

/// All streams into files, one a direction.
struct All {
    dir: PathBuf,
    /// What is read: no file of a stream may be one of these.
    inputs: Inputs,
    form: FollowFormat,
    side: Option<Side>,
    redact: bool,
    /// Only plaintext of records that a filter keeps is written.
    filtered: bool,
    open: HashMap<(StreamKey, Side), FollowedDirection>,
    /// Those of the direction that was told something last.
    pieces: FollowPieces,
    /// How many connections with a number are over. The next one may have the same number if its
    /// opening was not captured.
    ended: EndedConnections,
    /// Files whose streams are over, to be completed.
    done: Vec<(PathBuf, OutputFile)>,
    /// Files of an earlier run that this run has not replaced yet.
    earlier: StaleFiles,
    held: usize,
    files: u64,
    error: Option<CliError>,
}

impl All {
    fn with(
        &mut self,
        key: StreamKey,
        side: Side,
        act: impl FnOnce(&mut Follow, &mut FollowPieces),
    ) {
        if self.side.is_some_and(|s| s != side) || self.error.is_some() {
            return;
        }
        let form = self.form;
        let filtered = self.filtered;
        let redact = self.redact;
        let direction = self.open.entry((key, side)).or_insert_with(|| FollowedDirection {
            follow: Follow::new(form, Some(side), filtered)
                .redacted(redact)
                .marked(marks(io::IsTerminal::is_terminal(&io::stdout()))),
            buffer: Vec::new(),
            file: None,
        });
        let before = direction.buffer.len();
        act(&mut direction.follow, &mut self.pieces);
        direction.format(&mut self.pieces);
        self.held += direction.buffer.len() - before;
        if self.held > GATHER_ALL {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let keys: Vec<(StreamKey, Side)> = self.open.keys().copied().collect();
        for (key, side) in keys {
            self.write(key, side);
        }
        self.held = 0;
    }

    fn write(&mut self, key: StreamKey, side: Side) {
        let path = self.path(key, side);
        let Some(direction) = self.open.get_mut(&(key, side)).filter(|d| !d.buffer.is_empty())
        else {
            return;
        };
        if self.error.is_some() {
            return;
        }
        let file = match direction.file.take() {
            Some(file) => Ok(file),
            // Plaintext holds passwords and tokens, which are hidden with --redact.
            None => files::create(
                &path,
                if self.redact { Access::Usual } else { Access::Owner },
                &self.inputs,
            ),
        };
        let written = file.and_then(|mut file| {
            let done = file.write_all(&direction.buffer).and_then(|()| file.rest());
            done.map(|()| file).map_err(|error| CliError::File(file_name(&path), error))
        });
        // Thousands of directions may be open, and each may have had much to write once.
        direction.buffer = Vec::new();
        match written {
            Ok(file) => direction.file = Some(file),
            Err(error) => self.error = Some(error),
        }
    }

    /// Gives the files of streams that are over their names, and drops them where something could
    /// not be written.
    fn commit(&mut self) {
        let mut last = None;
        for (path, file) in self.done.drain(..) {
            if self.error.is_some() {
                continue;
            }
            match file.commit_among_many() {
                Ok(()) => {
                    self.files += 1;
                    self.earlier.replaced(&path);
                }
                Err(error) => self.error = Some(CliError::File(file_name(&path), error)),
            }
            last = Some(path);
        }
        if let Some(path) = last {
            sync_folder(&path);
        }
    }

    /// The same at the end, when there may be very many files. Returns whether a signal ended it:
    /// the rest of them is dropped.
    fn commit_rest(&mut self) -> bool {
        // Where a signal is the normal end of reading, it is there already.
        let ended = run::end_is_requested();
        let mut rest = std::mem::take(&mut self.done).into_iter();
        loop {
            self.done.extend(rest.by_ref().take(AT_ONCE));
            if self.done.is_empty() {
                return false;
            }
            self.commit();
            if !ended && run::end_is_requested() {
                return true;
            }
        }
    }

    fn path(&self, key: StreamKey, side: Side) -> PathBuf {
        let transport = key.transport.word();
        let number = key.number;
        let side = side.word();
        let end = file_extension(self.form);
        self.dir.join(match self.ended.of(key) {
            0 => format!("{transport}-{number:05}-{side}.{end}"),
            before => format!("{transport}-{number:05}-{side}-{}.{end}", before + 1),
        })
    }
}

/// How many connections were over, by their stream's number. Numbers that came long ago do not come
/// again, and are forgotten.
#[derive(Default)]
struct EndedConnections {
    counts: HashMap<StreamKey, u32>,
    order: VecDeque<StreamKey>,
}

impl EndedConnections {
    /// More numbers than the flow remembers.
    const MAX: usize = 1 << 16;

    fn of(&self, key: StreamKey) -> u32 {
        self.counts.get(&key).copied().unwrap_or(0)
    }

    fn add(&mut self, key: StreamKey) {
        let count = self.counts.entry(key).or_default();
        *count += 1;
        if *count == 1 {
            self.order.push_back(key);
        }
        if self.order.len() > Self::MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.counts.remove(&oldest);
        }
    }
}

fn file_extension(form: FollowFormat) -> &'static str {
    match form {
        FollowFormat::Raw => "bin",
        FollowFormat::Hex | FollowFormat::Text => "txt",
        FollowFormat::JsonHex | FollowFormat::JsonText => "jsonl",
    }
}

impl Output for All {
    fn record(&mut self, record: &Record<'_>) {
        let key = StreamKey { transport: record.transport, number: record.stream };
        self.with(key, record.from, |follow, out| follow.record(record, out));
    }

    fn plaintext(&mut self, stream: &StreamKey, from: Side, offset: u64, bytes: &[u8]) {
        self.with(*stream, from, |follow, out| follow.plaintext(from, offset, bytes, out));
    }

    fn stream_over(&mut self, over: &StreamOver<'_>) {
        for side in [Side::Client, Side::Server] {
            if let Some(direction) = self.open.get_mut(&(over.key, side)) {
                direction.follow.finish(&mut self.pieces);
                direction.format(&mut self.pieces);
                self.write(over.key, side);
                let file = self.open.remove(&(over.key, side)).and_then(|direction| direction.file);
                self.done.extend(file.map(|file| (self.path(over.key, side), file)));
            }
        }
        self.ended.add(over.key);
    }

    fn wants_more(&mut self, _may_block: bool) -> bool {
        self.commit();
        self.error.is_none()
    }
}
