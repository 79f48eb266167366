//! `moulsniff export frames`: the original frames of what a filter keeps, with those that open
//! their connections, for readers who have the keys.
//!
//! The captures are read twice: for which bytes of which streams are kept, and for the frames that
//! carried them.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufWriter};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Args;

use crate::capture::{CaptureProblem, Frame, Moment, Source, Splitter};
use crate::captured::file_name;
use crate::cli::commands::keys::with_secrets;
use crate::cli::error::{CliError, Status};
use crate::cli::files;
use crate::cli::options::{CountArgs, FilterArgs, ReadArgs};
use crate::cli::plan::{Plan, PlanArgs};
use crate::cli::summary::before_commit;
use crate::digits::{counted, plural};
use crate::flow::{
    Cause, Dir, End, Flow, FlowLimits, FlowSink, FrameStream, Stream, StreamId, TcpOpening, Totals,
    hosts,
};
use crate::output_file::Access;
use crate::pipeline::{Filtered, Output, StreamKey, StreamOver};
use crate::record::{Body, Record};
use crate::remark::say;
use crate::run::{CaptureRun, FrameInput};
use crate::session::{EventKind, Secret, Side, Transport};
use crate::texts;

/// So many messages of each direction open a connection: its handshake, and what proves its key.
const OPENING: u32 = 8;
/// So many messages of a direction before a message that is kept, and so many behind it, are kept,
/// too, so that it is found again between bytes that are missing.
const AROUND: usize = 4;
/// The most streams and the most ranges of a stream that are remembered.
const MAX_STREAMS: usize = 1 << 18;
const MAX_RANGES: usize = 1 << 16;

/// Frames.
#[derive(Args, Debug)]
pub struct ExportFramesArgs {
    /// Write the frames to this file, as pcapng (`-` is standard output); an existing file is
    /// replaced
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Write the session keys of their connections, too: whoever has the file can read them
    #[arg(long)]
    pub with_keys: bool,
    /// The captures.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Whose frames are written.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// Of how many records.
    #[command(flatten)]
    pub count: CountArgs,
}

pub(super) fn run(args: &ExportFramesArgs) -> Result<Status, CliError> {
    let privacy = &args.read.privacy;
    if privacy.redact || privacy.pseudonyms.is_some() {
        let why = "original frames are copied as they are, so nothing in them can be hidden; \
                   `export messages` can";
        return Err(CliError::Typed(why.into()));
    }
    let Plan { reading, setup, filter, limit, ending, .. } = Plan::new(PlanArgs {
        filter: Some(&args.filter),
        output: Some(&args.output),
        ..PlanArgs::new(&args.read)
    })?;
    let FrameInput::Files(captures) = &reading.input else { return Ok(Status::Good) };
    if captures.iter().any(|path| path.as_os_str() == "-") {
        let why = "the captures are read twice, so they have to be files, not standard input";
        return Err(CliError::Typed(why.into()));
    }
    let limit = args.count.count.unwrap_or(limit);
    let access = if args.with_keys { Access::Owner } else { Access::Usual };
    let file = files::create_or_stdout(&args.output, access, &reading.inputs)?;
    let mut filtered = Filtered::new(WantedBytes::default(), filter.clone(), limit);
    let mut outcome = CaptureRun::new(&reading, setup)?.into_output(&mut filtered);
    before_commit(&mut outcome, filter.as_deref(), &args.output)?;
    let mut wanted = filtered.into_inner();
    wanted.complete();
    let secrets = if args.with_keys { wanted.secrets() } else { Vec::new() };
    let fail = |e| CliError::File(files::output_name(&args.output), e);
    let mut splitter =
        Splitter::new([BufWriter::new(file)]).with_secrets(secrets).converting(texts::convert);
    let mut places = FramePlaces::default();
    for capture in captures {
        let mut choose = |frame: &Frame<'_>| usize::from(!places.keeps(frame, &wanted));
        if let Err(error) = splitter.add(Source::path(capture), &mut choose)
            && let CaptureProblem::Write(error) = error.problem()
        {
            // What is wrong with the capture itself is known since the first reading.
            return Err(fail(io::Error::new(error.kind(), error.to_string())));
        }
    }
    let all = splitter.frames();
    let mut written = 0;
    for (file, frames) in splitter.finish().map_err(fail)? {
        file.into_inner().map_err(|e| fail(e.into_error()))?.commit().map_err(fail)?;
        written += frames;
    }
    if let Some(error) = outcome.error.take() {
        return Err(error.into());
    }
    let status = ending.status(&outcome, filter.as_deref())?;
    if !ending.quiet {
        let streams = wanted.streams.len();
        say(format_args!(
            "{}: {written} of {} of {}",
            file_name(&args.output),
            counted(all, "frame"),
            counted(streams, "stream")
        ));
        if wanted.left_out > 0 {
            let streams = wanted.left_out;
            say(format_args!(
                "{} {} left out: no more than {MAX_STREAMS} are remembered",
                counted(streams, "stream"),
                plural(streams, "is", "are")
            ));
        }
    }
    Ok(status)
}

/// The bytes and datagrams that a filter keeps, by stream.
#[derive(Default)]
struct WantedBytes {
    streams: HashMap<StreamKey, WantedStream>,
    /// How many streams were too many.
    left_out: u64,
    /// The two ends of each stream that is kept, for IP fragments.
    hosts: HashSet<[IpAddr; 2]>,
}

/// What is kept of one stream.
#[derive(Default)]
struct WantedStream {
    protocol: &'static str,
    /// The client's address and port.
    client: Option<SocketAddr>,
    /// Whether something of it is kept, beside its opening.
    kept: bool,
    /// How many messages client and server have sent.
    messages: [u32; 2],
    /// The byte ranges of client and server.
    ranges: [RangeList; 2],
    /// The latest messages of client and server.
    latest: [[(u64, u64); AROUND]; 2],
    /// How many more are kept behind the last one that a filter kept.
    more: [usize; 2],
    /// The frames of datagrams.
    frames: RangeList,
    secrets: Vec<Secret>,
}

/// Ranges of numbers, in about the order in which they were added.
#[derive(Default)]
struct RangeList(Vec<(u64, u64)>);

impl RangeList {
    fn add(&mut self, from: u64, to: u64) {
        let full = self.0.len() >= MAX_RANGES;
        match self.0.last_mut() {
            // Of too many ranges, the last one goes on over what is between.
            Some(last) if from <= last.1 && to >= last.0 || full => {
                *last = (last.0.min(from), last.1.max(to));
            }
            _ => self.0.push((from, to)),
        }
    }

    fn sort(&mut self) {
        self.0.sort_unstable();
        let mut sorted = RangeList::default();
        self.0.drain(..).for_each(|(from, to)| sorted.add(from, to));
        *self = sorted;
    }

    /// Whether one of the sorted ranges has a number in common with another one.
    fn touches(&self, from: u64, to: u64) -> bool {
        let next = self.0.partition_point(|range| range.1 <= from);
        self.0.get(next).is_some_and(|range| range.0 < to)
    }
}

impl WantedBytes {
    fn stream(&mut self, record: &Record<'_>) -> Option<&mut WantedStream> {
        let key = StreamKey { transport: record.transport, number: record.stream };
        if self.streams.len() >= MAX_STREAMS && !self.streams.contains_key(&key) {
            self.left_out += 1;
            return None;
        }
        let stream = self.streams.entry(key).or_default();
        stream.protocol = record.protocol;
        stream.client = Some(record.ends().client);
        Some(stream)
    }

    /// Keeps a record, or only what it has of its connection's opening.
    fn take(&mut self, record: &Record<'_>, kept: bool) {
        let ends = record.ends();
        let Some(stream) = self.stream(record) else { return };
        stream.kept |= kept;
        if let Body::Event(event) = &record.body
            && let EventKind::Key { secret, .. } = &event.kind
        {
            stream.secrets.push(secret.clone());
        }
        let bytes = match &record.body {
            Body::Message { message, .. } => {
                Some((message.offset, message.offset + message.bytes.len() as u64))
            }
            Body::Event(event) => event.offset.zip(event.length).map(|(at, n)| (at, at + n)),
            Body::StreamEnd { .. } => None,
        };
        match record.transport {
            Transport::Udp => stream.datagram(record, kept),
            Transport::Tcp => {
                let is_message = matches!(record.body, Body::Message { .. });
                if let Some(bytes) = bytes {
                    stream.bytes(record.from, bytes, is_message, kept);
                }
            }
        }
        if kept {
            self.hosts.insert([ends.client.ip(), ends.server.ip()]);
        }
    }

    /// Everything was read.
    fn complete(&mut self) {
        self.streams.retain(|_, stream| stream.kept);
        for stream in self.streams.values_mut() {
            stream.ranges.iter_mut().for_each(RangeList::sort);
            stream.frames.sort();
        }
    }

    /// The contents of secrets blocks with the keys of all connections, by kind.
    fn secrets(&self) -> Vec<(u32, Vec<u8>)> {
        let mut blocks = Vec::new();
        for (protocol, secrets) in with_secrets() {
            let mut streams: Vec<_> =
                self.streams.iter().filter(|(_, s)| s.protocol == protocol.name()).collect();
            streams.sort_unstable_by_key(|(key, _)| key.number);
            let own = streams.iter().flat_map(|(_, stream)| &stream.secrets);
            // Exported messages say which key it was, and nothing of it.
            let own: Vec<Secret> =
                own.filter(|secret| !secret.text().is_empty()).cloned().collect();
            if !own.is_empty() {
                blocks.push((secrets.block_type(), secrets.block(&own, None).bytes));
            }
        }
        blocks
    }
}

impl WantedStream {
    fn is_opening(&self, side: Side) -> bool {
        self.messages.get(side.index()).is_some_and(|count| *count < OPENING)
    }

    fn bytes(&mut self, from: Side, (at, end): (u64, u64), is_message: bool, kept: bool) {
        let opening = self.is_opening(from);
        let ranges = from.of(&mut self.ranges);
        let latest = from.of(&mut self.latest);
        let more = from.of(&mut self.more);
        if kept {
            latest.iter().filter(|(at, end)| end > at).for_each(|(at, end)| ranges.add(*at, *end));
            *more = AROUND + 1;
        }
        if kept || opening || *more > 0 {
            ranges.add(at, end);
        }
        if is_message {
            *more = more.saturating_sub(1);
            latest.rotate_left(1);
            if let Some(last) = latest.last_mut() {
                *last = (at, end);
            }
            *from.of(&mut self.messages) += 1;
        }
    }

    fn datagram(&mut self, record: &Record<'_>, kept: bool) {
        let Moment { frame, .. } = record.at;
        let is_record = !matches!(record.body, Body::StreamEnd { .. });
        if is_record && (kept || self.is_opening(record.from)) {
            self.frames.add(frame, frame + 1);
        }
        if matches!(record.body, Body::Message { .. }) {
            *record.from.of(&mut self.messages) += 1;
        }
    }
}

impl Output for WantedBytes {
    fn record(&mut self, record: &Record<'_>) {
        self.take(record, true);
    }

    fn dropped(&mut self, record: &Record<'_>) {
        self.take(record, false);
    }

    fn stream_over(&mut self, over: &StreamOver<'_>) {
        // Of a stream nothing of which is kept, nothing is remembered.
        if self.streams.get(&over.key).is_some_and(|stream| !stream.kept) {
            self.streams.remove(&over.key);
        }
    }
}

/// Finds out for each frame which bytes of which stream it carries.
struct FramePlaces {
    flow: Flow,
    starts: StreamStarts,
}

/// Where the directions of the streams begin.
#[derive(Default)]
struct StreamStarts {
    /// The senders of the two directions, by stream.
    ends: HashMap<StreamId, [SocketAddr; 2]>,
    /// The sequence number of a direction's first byte, and how many bytes came at least.
    starts: HashMap<(StreamId, SocketAddr), (u32, u64)>,
}

impl Default for FramePlaces {
    fn default() -> Self {
        FramePlaces { flow: Flow::new(FlowLimits::default()), starts: StreamStarts::default() }
    }
}

impl FramePlaces {
    fn keeps(&mut self, frame: &Frame<'_>, wanted: &WantedBytes) -> bool {
        self.flow.frame(frame, &mut self.starts);
        let stream =
            |transport, id: StreamId| wanted.streams.get(&StreamKey { transport, number: id.0 });
        match self.flow.frame_stream() {
            Some(FrameStream::Tcp { stream: id, src, first, length, marks }) => {
                let Some(stream) = stream(Transport::Tcp, id) else { return false };
                if marks {
                    return true;
                }
                if length == 0 {
                    return false;
                }
                let side = usize::from(stream.client != Some(src));
                let Some((start, reached)) = self.starts.starts.get_mut(&(id, src)) else {
                    return true;
                };
                let from = unwrap_offset(first.wrapping_sub(*start), *reached);
                *reached = (*reached).max(from);
                stream.ranges.get(side).is_some_and(|ranges| ranges.touches(from, from + length))
            }
            Some(FrameStream::Udp { stream: id }) => stream(Transport::Udp, id)
                .is_some_and(|stream| stream.frames.touches(frame.number, frame.number + 1)),
            Some(FrameStream::Fragment) => {
                let hosts = hosts(frame.link, frame.data, frame.wire_len);
                hosts.is_some_and(|(a, b)| {
                    wanted.hosts.contains(&[a, b]) || wanted.hosts.contains(&[b, a])
                })
            }
            None => false,
        }
    }
}

/// An offset whose lower 32 bits are known, near the one that was reached.
fn unwrap_offset(lower: u32, reached: u64) -> u64 {
    let ahead = lower.wrapping_sub(reached as u32) as i32;
    reached.checked_add_signed(ahead.into()).unwrap_or(lower.into())
}

impl FlowSink for StreamStarts {
    fn tcp_open(&mut self, stream: &Stream, _: TcpOpening, _: Moment) {
        self.ends.insert(stream.id, [stream.forward, stream.backward]);
    }

    fn tcp_start(&mut self, stream: StreamId, dir: Dir, seq: u32) {
        let Some([forward, backward]) = self.ends.get(&stream) else { return };
        let src = if dir == Dir::Forward { *forward } else { *backward };
        self.starts.insert((stream, src), (seq, 0));
    }

    fn tcp_data(&mut self, _: StreamId, _: Dir, _: u64, _: &[u8], _: Moment) {}

    fn tcp_gap(&mut self, _: StreamId, _: Dir, _: u64, _: u64, _: Cause, _: Moment) {}

    fn tcp_end(&mut self, stream: StreamId, dir: Dir, _: End, _: &Totals, _: Moment) {
        let Some([forward, backward]) = self.ends.get(&stream) else { return };
        let src = if dir == Dir::Forward { *forward } else { *backward };
        self.starts.remove(&(stream, src));
    }

    fn udp(&mut self, _: &Stream, _: Dir, _: &[u8], _: u32, _: Moment) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_found() {
        let mut ranges = RangeList::default();
        for (from, to) in [(10, 20), (20, 25), (5, 7), (40, 50), (41, 42)] {
            ranges.add(from, to);
        }
        ranges.sort();
        assert_eq!(ranges.0, [(5, 7), (10, 25), (40, 50)]);
        assert!(ranges.touches(24, 25) && ranges.touches(0, 6) && ranges.touches(0, 100));
        assert!(!ranges.touches(25, 40) && !ranges.touches(7, 10) && !ranges.touches(50, 60));
    }

    #[test]
    fn an_offset_wraps() {
        assert_eq!(unwrap_offset(5, 0xffff_fff0), 0x1_0000_0005);
        assert_eq!(unwrap_offset(0xffff_fff0, 0x1_0000_0005), 0xffff_fff0);
        assert_eq!(unwrap_offset(7, 0), 7);
    }
}
