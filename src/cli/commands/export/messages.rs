//! `moulsniff export messages`: every message decrypted, one packet each, for Wireshark and for
//! readers who have no keys.

use std::path::PathBuf;

use clap::Args;
use std::io::{self, BufWriter};

use crate::capture::{Frame, PcapngWriter};
use crate::captured::file_name;
use crate::cli::error::{CliError, Status};
use crate::cli::files;
use crate::cli::options::{CountArgs, FilterArgs, LiveArgs, ReadArgs};
use crate::cli::plan::{Plan, PlanArgs};
use crate::cli::pseudonyms::random;
use crate::cli::summary::before_commit;
use crate::digits::{counted, plural};
use crate::facts::{InfoSource, write_info};
use crate::output_file::{Access, OutputFile};
use crate::pdu::{LINK_TYPE, MAX_BYTES, PduWriter};
use crate::pipeline::{Filtered, Output};
use crate::pseudonyms::Pseudonyms;
use crate::record::{Body, Record};
use crate::remark::say;
use crate::run::CaptureRun;

/// Messages.
#[derive(Args, Debug)]
pub struct ExportMessagesArgs {
    /// Write the capture to this file, as pcapng with Wireshark's exported PDUs (link type 252); an
    /// existing file is replaced
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
    let Plan { reading, mut setup, filter, redact, limit, ending, .. } = Plan::new(PlanArgs {
        live: Some(&args.live),
        filter: Some(&args.filter),
        count: args.count.count,
        output: Some(&args.output),
        ..PlanArgs::new(&args.read)
    })?;
    setup.names = true;
    let fail = |e| CliError::File(file_name(&args.output), e);
    if redact && setup.pseudonyms.is_none() {
        setup.pseudonyms = Some(Pseudonyms::of_secrets(&random().map_err(fail)?));
    }
    let file = files::create(&args.output, Access::Owner, &reading.inputs)?;
    let capture = PcapngWriter::new(BufWriter::new(file)).map_err(fail)?;
    let packets = Packets {
        capture,
        writer: PduWriter::default(),
        info: String::new(),
        redact,
        left: limit,
        large: 0,
        left_out: 0,
        error: None,
    };
    let mut filtered = Filtered::new(packets, filter.clone(), u64::MAX);
    let mut outcome = CaptureRun::new(&reading, setup)?.into_output(&mut filtered);
    let mut packets = filtered.into_inner();
    if let Some(error) = packets.error.take() {
        return Err(fail(error));
    }
    before_commit(&mut outcome, filter.as_deref(), &args.output)?;
    let file = packets.capture.into_inner().into_inner().map_err(|e| fail(e.into_error()))?;
    file.commit().map_err(fail)?;
    if let Some(error) = outcome.error.take() {
        return Err(error.into());
    }
    let status = ending.status(&outcome, filter.as_deref())?;
    if packets.large > 0 && !ending.quiet {
        let large = packets.large;
        say(format_args!(
            "{} {} more than {MAX_BYTES} bytes: Wireshark reads the file up to the first of them, this program reads all",
            counted(large, "packet"),
            plural(large, "has", "have")
        ));
    }
    if packets.left_out > 0 && !ending.quiet {
        let left_out = packets.left_out;
        say(format_args!(
            "{} {} left out: a packet of pcapng has at most 16 MiB with the message's tree, and a time between 1970 and 2554",
            counted(left_out, "message"),
            plural(left_out, "is", "are")
        ));
    }
    ending.say_summary(&mut outcome);
    Ok(status)
}

/// Writes a packet for each message that the filter keeps.
struct Packets {
    capture: PcapngWriter<BufWriter<OutputFile>>,
    writer: PduWriter,
    info: String,
    redact: bool,
    /// How many packets may still be written.
    left: u64,
    /// How many are larger than Wireshark reads.
    large: u64,
    /// How many do not fit into a pcapng at all.
    left_out: u64,
    error: Option<io::Error>,
}

impl Output for Packets {
    fn record(&mut self, record: &Record<'_>) {
        if self.left == 0 || self.error.is_some() {
            return;
        }
        let Body::Message { message, tables, tree } = record.body else { return };
        let def = tables.message_named(message.name.raw()).and_then(|id| tables.message(id));
        let source = InfoSource::new(message, def, tables, tree, self.redact);
        self.info.clear();
        write_info(
            source,
            &|node| record.names.name_of(node).map(|(name, _)| name),
            &mut self.info,
        );
        let Some(data) = self.writer.packet(record, &self.info) else { return };
        self.left -= 1;
        self.large += u64::from(data.len() > MAX_BYTES);
        let wire_len = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let frame = Frame { number: 0, time: record.at.time, link: LINK_TYPE, data, wire_len };
        match self.capture.frame(&frame) {
            Ok(()) => {}
            // Nothing of it was written.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => self.left_out += 1,
            Err(error) => self.error = Some(error),
        }
    }

    fn wants_more(&mut self, _may_block: bool) -> bool {
        self.error.is_none() && self.left > 0
    }
}
