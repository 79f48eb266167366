//! Copying a capture while secrets of one kind are put in or taken out.
//!
//! Every other block of a pcapng comes out byte for byte as it was, known or not; only a section's stated
//! length, which would no longer hold, becomes "unknown". A pcap comes out as pcapng, with its times to their
//! full precision and its link type. What the secrets say is not looked at.

use super::bytes::Order;
use super::error::{CaptureError, Fault, Problem, Step};
use super::input::Input;
use super::pcap::Pcap;
use super::pcapng::{Head, INTERFACE, SECRETS, SECTION};
use super::reader::{Format, Reader};
use super::source::Source;
use super::write::{Interface, PcapngWriter, secrets_block};
use super::{Frame, Secrets};
use std::io::{self, Write};

/// Where a rewritten capture goes.
pub struct Output<'a> {
    name: &'a str,
    out: &'a mut dyn Write,
}

/// What was done to a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rewritten {
    /// How many blocks of secrets of the kind were taken out (or replaced).
    pub removed: u64,
}

impl<'a> Output<'a> {
    /// Something to write to, best buffered; `name` is what errors call it.
    pub fn new(name: &'a str, out: &'a mut dyn Write) -> Self {
        Self { name, out }
    }
}

/// Copies a capture with `payload` in it as secrets of kind `secret_type`: behind the first section's header
/// and the interfaces that follow it, before everything else (editcap 4.0 cannot rewrite a file whose secrets
/// come before its interfaces). Secrets of this kind that were there before are left out.
///
/// # Errors
/// What reading or writing gives; of a capture that is cut, everything before the cut is written.
pub fn inject(input: Source, output: Output<'_>, secret_type: u32, payload: &[u8]) -> Result<Rewritten, CaptureError> {
    let secrets = Secrets { kind: secret_type, data: payload };
    rewrite(input, output, secret_type, Some(secrets))
}

/// Copies a capture without its secrets of kind `secret_type`.
///
/// # Errors
/// As [`inject`].
pub fn strip(input: Source, output: Output<'_>, secret_type: u32) -> Result<Rewritten, CaptureError> {
    rewrite(input, output, secret_type, None)
}

fn rewrite(
    input: Source,
    output: Output<'_>,
    kind: u32,
    secrets: Option<Secrets<'_>>,
) -> Result<Rewritten, CaptureError> {
    let mut reader = Reader::open(input, false, |reader| reader)?;
    let mut copy = Copy { out: output.out, kind, secrets, done: Rewritten::default() };
    let copied = copy.run(&mut reader);
    // What was copied before a fault counts, so it must not stay in a buffer.
    let flushed = copy.out.flush().map_err(write_fault);
    match copied.and(flushed) {
        Ok(()) => Ok(copy.done),
        Err(Fault { problem: problem @ Problem::Write(_), at }) => {
            Err(CaptureError::new(output.name, None, at, problem))
        }
        Err(fault) => Err(reader.error(fault)),
    }
}

struct Copy<'a> {
    out: &'a mut dyn Write,
    kind: u32,
    secrets: Option<Secrets<'a>>,
    done: Rewritten,
}

impl Copy<'_> {
    fn run(&mut self, reader: &mut Reader) -> Step<()> {
        reader.begin()?;
        match reader.parts() {
            (input, Format::Pcap(pcap)) => self.convert(input, pcap),
            (input, _) => self.copy(input),
        }
    }

    /// Copies a pcapng block by block.
    fn copy(&mut self, input: &mut Input) -> Step<()> {
        let mut section = None;
        while let Some(head) = Head::read(input, section.unwrap_or(Order::Little))? {
            if head.kind != INTERFACE {
                self.insert(section)?;
            }
            match head.kind {
                SECTION => {
                    self.section(input, head)?;
                    section = Some(head.order);
                }
                SECRETS => self.secrets(input, head)?,
                _ => head.pass(input, |bytes| write(self.out, bytes))?,
            }
        }
        self.insert(section)
    }

    /// Writes the secrets that are to go in, once, in the byte order of the section.
    fn insert(&mut self, section: Option<Order>) -> Step<()> {
        if let Some(order) = section
            && let Some(secrets) = self.secrets.take()
        {
            let block = secrets_block(order, secrets).map_err(write_fault)?;
            write(self.out, &block)?;
        }
        Ok(())
    }

    fn section(&mut self, input: &mut Input, head: Head) -> Step<()> {
        head.hold(input, 28)?;
        head.check_version(input)?;
        let total = head.total as usize;
        let place = input.take(total, 0, total);
        let block = input.at(place);
        let (before, rest) = block.split_at_checked(16).unwrap_or((block, &[]));
        write(self.out, before)?;
        write(self.out, &[0xff; 8])?;
        write(self.out, rest.get(8..).unwrap_or_default())
    }

    fn secrets(&mut self, input: &mut Input, head: Head) -> Step<()> {
        head.hold(input, 20)?;
        let kind = head.order.u32_at(head.body(input.bytes()), 0);
        let total = head.total as usize;
        let place = input.take(total, 0, total);
        if kind == Some(self.kind) {
            self.done.removed = self.done.removed.saturating_add(1);
            return Ok(());
        }
        write(self.out, input.at(place))
    }

    /// Turns a pcap into pcapng.
    fn convert(&mut self, input: &mut Input, pcap: &Pcap) -> Step<()> {
        let interface =
            Interface { link: pcap.link, digits: pcap.clock.digits(), snap_len: pcap.snap_len, fcs_len: pcap.fcs_len };
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
        }
        Ok(())
    }
}

fn write(out: &mut dyn Write, bytes: &[u8]) -> Step<()> {
    out.write_all(bytes).map_err(write_fault)
}

fn write_fault(error: io::Error) -> Fault {
    Fault::new(0, Problem::Write(error))
}
