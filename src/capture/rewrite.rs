//! Copies a capture and injects secrets of one kind, or strips all secrets.
//!
//! Every other block of a pcapng is copied byte for byte, whether its type is known or not. Only
//! the length that a section header states becomes "unknown", because it would be wrong. A pcap
//! becomes pcapng, with its link type and the full precision of its times. Secrets are not
//! interpreted.

use super::block::BlockBuilder;
use super::bytes::Endianness;
use super::error::{CaptureError, CaptureProblem, Fault, ReadResult};
use super::input::Input;
use super::pcap::Pcap;
use super::pcapng::{
    BlockHeader, INTERFACE, MAX_HELD, OLD_PACKET, PACKET, SECRETS, SECTION, SIMPLE_PACKET,
    SMALLEST_SECRETS, SMALLEST_SECTION,
};
use super::reader::{CaptureReader, FileFormat};
use super::source::Source;
use super::write::{InterfaceDescription, PcapngWriter, secrets_block};
use super::{EmbeddedSecrets, Frame};
use std::io::{self, Write};

/// Where the section length begins in a Section Header Block.
const SECTION_LENGTH: usize = 16;
/// The section length that means "unknown".
const UNKNOWN_LENGTH: [u8; 8] = [0xff; 8];

/// Where a rewritten capture goes.
pub struct RewriteTarget<'a> {
    name: &'a str,
    out: &'a mut dyn Write,
}

/// What was copied.
#[derive(Debug, Default)]
pub struct Rewritten {
    /// How many packets there are.
    pub packets: u64,
    /// How many blocks with secrets were removed or replaced.
    pub removed: u64,
    /// Where the input is cut or damaged. Everything before that has been written.
    pub damage: Option<CaptureError>,
}

impl<'a> RewriteTarget<'a> {
    /// A writer, which should be buffered, and its name in errors.
    pub fn new(name: &'a str, out: &'a mut dyn Write) -> Self {
        Self { name, out }
    }
}

/// Copies a capture and adds `payload` as secrets of type `secret_type`, in place of any secrets of
/// that type. The new block follows the first section's header and the interfaces directly after
/// it. (The format allows it before the interfaces too, but editcap 4.0 cannot rewrite such a
/// file.)
///
/// # Errors
/// Writing failed, or the input is damaged before its first packet.
pub fn inject(
    input: Source,
    output: RewriteTarget<'_>,
    secret_type: u32,
    payload: &[u8],
) -> Result<Rewritten, CaptureError> {
    let secrets = EmbeddedSecrets { kind: secret_type, data: payload };
    rewrite(input, output, Some(secrets))
}

/// Copies a capture without its secrets, of whatever kind: those of TLS open what was sent as well.
///
/// # Errors
/// As [`inject`].
pub fn strip(input: Source, output: RewriteTarget<'_>) -> Result<Rewritten, CaptureError> {
    rewrite(input, output, None)
}

fn rewrite(
    input: Source,
    output: RewriteTarget<'_>,
    secrets: Option<EmbeddedSecrets<'_>>,
) -> Result<Rewritten, CaptureError> {
    let mut reader = CaptureReader::open(input, false, None, |reader| reader)?;
    let replaced = secrets.map(|secrets| secrets.kind);
    let mut copy = Copy { out: output.out, replaced, secrets, done: Rewritten::default() };
    let copied = copy.run(&mut reader);
    // Everything before a fault is part of the output and must not stay in a buffer.
    let flushed = copy.out.flush().map_err(write_fault);
    match copied.and(flushed) {
        Ok(()) => Ok(copy.done),
        Err(fault)
            if copy.done.packets > 0 && !matches!(fault.problem, CaptureProblem::Write(_)) =>
        {
            Ok(Rewritten { damage: Some(reader.error(fault)), ..copy.done })
        }
        Err(Fault { problem: problem @ CaptureProblem::Write(_), at }) => {
            Err(CaptureError::new(output.name, None, at, problem))
        }
        Err(fault) => Err(reader.error(fault)),
    }
}

struct Copy<'a> {
    out: &'a mut dyn Write,
    /// The only kind of secrets that are not copied; `None` for all of them.
    replaced: Option<u32>,
    secrets: Option<EmbeddedSecrets<'a>>,
    done: Rewritten,
}

impl Copy<'_> {
    fn run(&mut self, reader: &mut CaptureReader) -> ReadResult<()> {
        reader.begin()?;
        match reader.parts() {
            (input, FileFormat::Pcap(pcap)) => self.convert(input, pcap),
            (input, _) => self.copy(input),
        }
    }

    /// Copies a pcapng block by block.
    fn copy(&mut self, input: &mut Input) -> ReadResult<()> {
        let mut section = None;
        while let Some(head) = BlockHeader::read(input, section.unwrap_or(Endianness::Little))? {
            if head.kind != INTERFACE {
                self.insert(section)?;
            }
            match head.kind {
                SECTION => {
                    self.section(input, head)?;
                    section = Some(head.order);
                }
                SECRETS => self.secrets(input, head)?,
                kind => {
                    self.block(input, head)?;
                    self.done.packets +=
                        u64::from(matches!(kind, PACKET | SIMPLE_PACKET | OLD_PACKET));
                }
            }
        }
        self.insert(section)
    }

    /// Writes the new secrets, in the byte order of the section, the first time it is called within
    /// one.
    fn insert(&mut self, section: Option<Endianness>) -> ReadResult<()> {
        if let Some(order) = section
            && let Some(secrets) = self.secrets.take()
        {
            let mut block = BlockBuilder::new(order);
            let block = secrets_block(&mut block, order, &secrets).map_err(write_fault)?;
            write(self.out, block)?;
        }
        Ok(())
    }

    /// Copies a block. One that is cut is left out, unless it is too long to be held in memory.
    fn block(&mut self, input: &mut Input, head: BlockHeader) -> ReadResult<()> {
        if head.total > MAX_HELD {
            return head.pass(input, |bytes| write(self.out, bytes));
        }
        head.hold(input, 0)?;
        let total = head.total as usize;
        let place = input.take(total, 0, total);
        write(self.out, input.at(place))
    }

    fn section(&mut self, input: &mut Input, head: BlockHeader) -> ReadResult<()> {
        head.hold(input, SMALLEST_SECTION)?;
        head.check_version(input)?;
        let total = head.total as usize;
        let place = input.take(total, 0, total);
        let block = input.at(place);
        let (before, rest) = block.split_at_checked(SECTION_LENGTH).unwrap_or((block, &[]));
        write(self.out, before)?;
        write(self.out, &UNKNOWN_LENGTH)?;
        write(self.out, rest.get(UNKNOWN_LENGTH.len()..).unwrap_or_default())
    }

    fn secrets(&mut self, input: &mut Input, head: BlockHeader) -> ReadResult<()> {
        head.hold(input, SMALLEST_SECRETS)?;
        let kind = head.order.u32_at(head.body(input.bytes()), 0);
        let total = head.total as usize;
        let place = input.take(total, 0, total);
        if self.replaced.is_none_or(|replaced| kind == Some(replaced)) {
            self.done.removed = self.done.removed.saturating_add(1);
            return Ok(());
        }
        write(self.out, input.at(place))
    }

    /// Copies a pcap as pcapng.
    fn convert(&mut self, input: &mut Input, pcap: &Pcap) -> ReadResult<()> {
        let interface = InterfaceDescription {
            link: pcap.link,
            digits: pcap.clock.digits(),
            snap_len: pcap.snap_len,
            fcs_len: pcap.fcs_len,
        };
        let mut writer = PcapngWriter::new(&mut *self.out).map_err(write_fault)?;
        writer.index_of(interface).map_err(write_fault)?;
        if let Some(secrets) = self.secrets.take() {
            writer.secrets(secrets).map_err(write_fault)?;
        }
        while let Some(found) = pcap.next(input)? {
            let frame = Frame {
                number: 0,
                time: found.time,
                link: found.link,
                data: input.at(found.place),
                wire_len: found.wire_len,
            };
            writer.frame_of(interface, &frame).map_err(write_fault)?;
            self.done.packets += 1;
        }
        Ok(())
    }
}

fn write(out: &mut dyn Write, bytes: &[u8]) -> ReadResult<()> {
    out.write_all(bytes).map_err(write_fault)
}

fn write_fault(error: io::Error) -> Fault {
    Fault::new(0, CaptureProblem::Write(error))
}
