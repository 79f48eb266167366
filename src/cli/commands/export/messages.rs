//! `moulsniff export messages`: every message decrypted, one packet each, for Wireshark and for
//! readers who have no keys.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use clap::Args;
use std::io::{self, BufWriter};

use crate::capture::{Frame, PcapngWriter, Time};
use crate::cli::error::{CliError, Status};
use crate::cli::files;
use crate::cli::options::{CountArgs, FilterArgs, LiveArgs, ReadArgs};
use crate::cli::plan::{Plan, PlanArgs};
use crate::cli::pseudonyms::random;
use crate::cli::summary::before_commit;
use crate::digits::{counted, plural};
use crate::facts::{InfoSource, write_info};
use crate::output_file::{Access, OutputFile};
use crate::pdu::{
    CarriedCapture, CarriedStream, CarriedWriter, LINK_TYPE, MAX_BYTES, PduWriter, WrittenPacket,
};
use crate::pipeline::{Filtered, Output, StreamKey, StreamOver};
use crate::pseudonyms::Pseudonyms;
use crate::record::{Body, MessageView, Record};
use crate::remark::say;
use crate::run::CaptureRun;

/// Messages.
#[derive(Args, Debug)]
pub struct ExportMessagesArgs {
    /// Write the capture to this file, as pcapng with Wireshark's exported PDUs (link type 252);
    /// an existing file is replaced. `-` is standard output: each message is written as it is read
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// The captures.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Captures that still grow.
    #[command(flatten)]
    pub live: LiveArgs,
    /// Which messages are written.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// How many.
    #[command(flatten)]
    pub count: CountArgs,
}

pub(super) fn run(args: &ExportMessagesArgs) -> Result<Status, CliError> {
    write_messages(&args.output, &args.read, &args.live, &args.filter, &args.count)
}

/// Writes the messages of what is read into a file or a pipe.
pub(in crate::cli::commands) fn write_messages(
    output: &Path,
    read: &ReadArgs,
    live: &LiveArgs,
    kept: &FilterArgs,
    count: &CountArgs,
) -> Result<Status, CliError> {
    let Plan { reading, mut setup, filter, redact, limit, ending, .. } = Plan::new(PlanArgs {
        live: Some(live),
        filter: Some(kept),
        count: count.count,
        output: Some(output),
        ..PlanArgs::new(read)
    })?;
    setup.names = true;
    let fail = |e| CliError::File(files::output_name(output), e);
    if redact && setup.pseudonyms.is_none() {
        setup.pseudonyms = Some(Pseudonyms::of_secrets(&random().map_err(fail)?));
    }
    let file = files::create_or_stdout(output, Access::Owner, &reading.inputs)?;
    let mut capture = PcapngWriter::new(BufWriter::new(file)).map_err(fail)?;
    // Who reads a pipe waits for the beginning.
    capture.flush().map_err(fail)?;
    let packets = Packets {
        capture,
        writer: PduWriter::default(),
        carried: CarriedWriter::default(),
        held: None,
        kept: (filter.is_some() || limit != u64::MAX).then(HashSet::new),
        info: String::new(),
        redact,
        left: limit,
        large: 0,
        left_out: 0,
        error: None,
        time: Time::default(),
    };
    let mut filtered = Filtered::new(packets, filter.clone(), u64::MAX);
    let mut outcome = CaptureRun::new(&reading, setup)?.into_output(&mut filtered);
    let mut packets = filtered.into_inner();
    // Of a part of the messages, what is known of the whole says nothing.
    let whole = packets.kept.is_none() && !outcome.interrupted;
    packets.finish(whole.then(|| outcome.pipeline.carried(outcome.files.dropped)));
    if let Some(error) = packets.error.take() {
        return Err(fail(error));
    }
    before_commit(&mut outcome, filter.as_deref(), output)?;
    let file = packets.capture.into_inner().into_inner().map_err(|e| fail(e.into_error()))?;
    file.commit().map_err(fail)?;
    if let Some(error) = outcome.error.take() {
        return Err(error.into());
    }
    let status = ending.status(&outcome, filter.as_deref())?;
    if packets.large > 0 && !ending.quiet {
        let large = packets.large;
        say(format_args!(
            "{} {} more than {MAX_BYTES} bytes: Wireshark reads the file up to the first of them, \
             this program reads all",
            counted(large, "packet"),
            plural(large, "has", "have")
        ));
    }
    if packets.left_out > 0 && !ending.quiet {
        let left_out = packets.left_out;
        say(format_args!(
            "{} {} left out: a packet of pcapng has at most 16 MiB with the message's tree, and a \
             time between 1970 and 2554",
            counted(left_out, "message"),
            plural(left_out, "is", "are")
        ));
    }
    ending.say_summary(&mut outcome);
    Ok(status)
}

/// Writes a packet for each message that the filter keeps. What comes between messages travels with
/// the next one, and what comes behind the last one with that: so one packet is held back.
struct Packets {
    capture: PcapngWriter<BufWriter<OutputFile>>,
    writer: PduWriter,
    carried: CarriedWriter,
    /// The latest packet, with its time.
    held: Option<(Time, WrittenPacket)>,
    /// With a filter: the streams of which it kept something.
    kept: Option<HashSet<StreamKey>>,
    info: String,
    redact: bool,
    /// How many packets may still be written.
    left: u64,
    /// How many are larger than Wireshark reads.
    large: u64,
    /// How many do not fit into a pcapng at all.
    left_out: u64,
    error: Option<io::Error>,
    /// The time of the last record.
    time: Time,
}

/// What waits for a message takes a packet of its own from so many bytes on.
const MAX_CARRIED: usize = 64 << 10;

impl Packets {
    /// Writes the packet that was held back.
    fn write_held(&mut self) {
        let Some((time, packet)) = self.held.take() else { return };
        let data = packet.bytes.as_slice();
        self.large += u64::from(data.len() > MAX_BYTES);
        let wire_len = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let frame = Frame { number: 0, time, link: LINK_TYPE, data, wire_len };
        match self.capture.frame(&frame) {
            Ok(()) => {}
            // Nothing of it was written.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => self.left_out += 1,
            Err(error) => self.error = Some(error),
        }
        self.writer.reuse(packet);
    }

    /// Gives what waits a packet of its own if it is much.
    fn bound_carried(&mut self, time: Time) {
        if self.carried.bytes().len() > MAX_CARRIED {
            self.write_held();
            self.held = Some((time, WrittenPacket::carrier(self.carried.bytes())));
            self.carried.clear();
        }
    }

    /// Everything was read: writes what waits.
    fn finish(&mut self, capture: Option<CarriedCapture>) {
        if let Some(capture) = capture {
            self.carried.capture(&capture);
        }
        if !self.carried.bytes().is_empty() {
            let none = || (self.time, WrittenPacket::carrier(&[]));
            let (_, packet) = self.held.get_or_insert_with(none);
            packet.carry_after(self.carried.bytes());
        }
        self.write_held();
    }
}

impl Output for Packets {
    fn record(&mut self, record: &Record<'_>) {
        if self.left == 0 || self.error.is_some() {
            return;
        }
        self.time = record.at.time;
        let stream = StreamKey { transport: record.transport, number: record.stream };
        if let Some(kept) = &mut self.kept {
            kept.insert(stream);
        }
        let Body::Message { message, tables, tree } = record.body else {
            self.carried.record(record);
            return self.bound_carried(record.at.time);
        };
        let def = tables.message_named(message.name.raw()).and_then(|id| tables.message(id));
        let source = InfoSource::new(
            message,
            def,
            MessageView { tables, tree, bytes: message.bytes },
            self.redact,
        );
        self.info.clear();
        write_info(source, record.names, &mut self.info);
        self.write_held();
        self.carried.message(record);
        let packet = self.writer.packet(record, &self.info, self.carried.bytes());
        self.carried.clear();
        self.held = packet.map(|packet| (record.at.time, packet));
        self.left -= 1;
    }

    fn stream_over(&mut self, over: &StreamOver<'_>) {
        if self.kept.as_ref().is_some_and(|kept| !kept.contains(&over.key)) {
            return;
        }
        self.carried.stream(&CarriedStream {
            transport: over.key.transport,
            stream: over.key.number,
            ends: over.ends,
            protocol: over.protocol.to_string(),
            service: over.service.to_string(),
            counts: self.kept.is_none().then_some(over.counts),
            round_trips: over.round_trips,
            traffic: over.traffic,
            learned: over.learned.clone(),
        });
    }

    fn wants_more(&mut self, may_block: bool) -> bool {
        if may_block && self.error.is_none() {
            self.write_held();
            if let Err(error) = self.capture.flush() {
                self.error.get_or_insert(error);
            }
        }
        self.error.is_none() && self.left > 0
    }
}
