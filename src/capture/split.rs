//! Writes each frame of captures into one of several captures, and says on each which frame of the
//! original it was.
//!
//! The caller decides which part a frame belongs to; this file knows blocks, not addresses. Each
//! part is a pcapng file. It repeats the section headers and the interface descriptions of the
//! frames it holds, in the byte order they had, so times, link types, comments and the other
//! options of a frame stay as they were. A pcap is written as one section with one interface. The
//! number of a frame travels in its `epb_packetid` (draft-ietf-opsawg-pcapng, section 4.3); readers
//! take it for the frame's number where the section header says that this program split a capture.
//! A last section without frames says in its comment how many frames the original had: when rotated
//! files are split one by one, the frame numbers of the next file begin behind it.
//!
//! Decryption secrets and name resolutions are written to every part. Interface statistics and
//! blocks of other types describe the whole capture and are left out.

use super::block::{BlockBuilder, append_option};
use super::bytes::Endianness;
use super::error::{CaptureError, CaptureProblem, Fault, ReadResult};
use super::input::Input;
use super::options::{
    OPTION_COMMENT, OPTION_END, OPTION_PACKET_ID, OPTION_PROGRAM, options as options_of,
};
use super::pcap::Pcap;
use super::pcapng::{
    BlockHeader, INTERFACE, NAMES, OLD_PACKET, PACKET, SECRETS, SECTION, SECTION_OPTIONS,
    SIMPLE_PACKET,
};
use super::reader::{CaptureReader, FileFormat};
use super::source::Source;
use super::split_mark::{SPLIT_PROGRAM, TOTAL_WORDS, is_split, split_total};
use super::write::{InterfaceDescription, secrets_block, section_block, ticks};
use super::{Convert, EmbeddedSecrets, Frame, Time};
use std::io::{self, Write};

/// Secrets and names of one section that are kept for parts which have not begun it, in bytes.
/// Beyond this, splitting stops with an error rather than leave a part without them.
const MAX_SHARED: usize = 16 << 20;

/// Decides which part a frame belongs to. Its time is not read. No part gets a frame if the answer
/// is not below the number of parts.
pub type ChoosePart<'a> = &'a mut dyn FnMut(&Frame<'_>) -> usize;

/// Splits captures into the parts it was made with.
pub struct Splitter<W: Write> {
    parts: Vec<Part<W>>,
    /// Counts the sections of all inputs, so that a part knows whether it has begun the present
    /// one.
    section: u64,
    shape: SplitSection,
    frames: u64,
    /// The number of frames that the inputs state for the capture they are parts of.
    stated_total: Option<u64>,
    left_out: u64,
    /// What is written in the place of the inputs' secrets, if anything is.
    secrets: Option<Vec<(u32, Vec<u8>)>>,
    convert: Option<Convert>,
    block: BlockBuilder,
}

/// The present section of the input.
struct SplitSection {
    order: Endianness,
    /// The options of its header, without the program that wrote it.
    options: Vec<u8>,
    /// The body of each interface description.
    interfaces: Vec<Vec<u8>>,
    /// Whole blocks that are written to every part.
    shared: Vec<u8>,
    /// It is a part already: its frames state their numbers.
    split: bool,
}

/// One of the captures that are written.
struct Part<W> {
    out: W,
    /// The section it has begun; 0 for none.
    section: u64,
    /// Bytes of the section's shared blocks that it has.
    shared: usize,
    /// Its own number for each interface of the input, where it has described it.
    interfaces: Vec<Option<u32>>,
    described: u32,
    frames: u64,
}

/// A frame as a block of the input describes it.
struct SplitPacket<'a> {
    interface: usize,
    /// The timestamp's upper and lower 32 bits, in the interface's own units.
    ticks: [u32; 2],
    /// The bytes that were captured.
    data: &'a [u8],
    wire_len: u32,
    options: &'a [u8],
}

impl<W: Write> Splitter<W> {
    /// A splitter into as many parts as there are outputs; at least one. Hand it buffered outputs.
    pub fn new(outputs: impl IntoIterator<Item = W>) -> Self {
        let part = |out| Part {
            out,
            section: 0,
            shared: 0,
            interfaces: Vec::new(),
            described: 0,
            frames: 0,
        };
        let shape = SplitSection {
            order: Endianness::Little,
            options: Vec::new(),
            interfaces: Vec::new(),
            shared: Vec::new(),
            split: false,
        };
        let parts = outputs.into_iter().map(part).collect();
        Splitter {
            parts,
            section: 0,
            shape,
            frames: 0,
            stated_total: None,
            left_out: 0,
            secrets: None,
            convert: None,
            block: BlockBuilder::new(Endianness::Little),
        }
    }

    /// Writes these secrets, each with its kind, in the place of those that the inputs have.
    #[must_use]
    pub fn with_secrets(self, secrets: Vec<(u32, Vec<u8>)>) -> Self {
        Self { secrets: Some(secrets), ..self }
    }

    /// Inputs that are texts in a format that `convert` knows are read, too.
    #[must_use]
    pub fn converting(self, convert: Convert) -> Self {
        Self { convert: Some(convert), ..self }
    }

    /// Splits one more capture; frame numbers go on from the capture before it.
    ///
    /// # Errors
    /// What reading or writing gives. Of a capture that is cut, every frame before the cut is
    /// written.
    pub fn add(&mut self, input: Source, choose: ChoosePart<'_>) -> Result<(), CaptureError> {
        let mut reader = CaptureReader::open(input, true, self.convert, |reader| reader)?;
        self.read(&mut reader, choose).map_err(|fault| reader.error(fault))
    }

    /// Ends every part with the section that states the number of frames. A part without frames has
    /// only this section. Returns the outputs with the number of frames in each.
    ///
    /// # Errors
    /// What writing gives.
    pub fn finish(mut self) -> io::Result<Vec<(W, u64)>> {
        let comment = format!("{}{TOTAL_WORDS}", self.stated_total.unwrap_or(self.frames));
        let mut options = Vec::new();
        append_option(&mut options, Endianness::Little, OPTION_COMMENT, comment.as_bytes());
        for part in &mut self.parts {
            part.out.write_all(section_block(
                &mut self.block,
                Endianness::Little,
                &options,
                SPLIT_PROGRAM,
            )?)?;
        }
        let mut done = Vec::new();
        for mut part in self.parts {
            part.out.flush()?;
            done.push((part.out, part.frames));
        }
        Ok(done)
    }

    /// How many frames were read.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// How many blocks describe the whole capture and were left out.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    fn read(&mut self, reader: &mut CaptureReader, choose: ChoosePart<'_>) -> ReadResult<()> {
        reader.begin()?;
        match reader.parts() {
            (input, FileFormat::Pcap(pcap)) => self.pcap(input, pcap, choose),
            (input, _) => self.pcapng(input, choose),
        }
    }

    fn pcapng(&mut self, input: &mut Input, choose: ChoosePart<'_>) -> ReadResult<()> {
        let mut order = Endianness::Little;
        while let Some(head) = BlockHeader::read(input, order)? {
            match head.kind {
                SECTION => {
                    head.hold(input, 28)?;
                    head.check_version(input)?;
                    order = head.order;
                    let header =
                        head.body(input.bytes()).get(SECTION_OPTIONS..).unwrap_or_default();
                    let split = options_of(order, header)
                        .any(|o| o.code == OPTION_PROGRAM && is_split(o.value));
                    if split {
                        self.stated_total = split_total(order, header).or(self.stated_total);
                    }
                    let options = without(header, order, OPTION_PROGRAM);
                    self.begin_section(order, options, split).map_err(write_fault)?;
                }
                INTERFACE => {
                    head.hold(input, 20)?;
                    let body = head.body(input.bytes());
                    self.shape.interfaces.push(body.to_vec());
                }
                PACKET | OLD_PACKET | SIMPLE_PACKET => {
                    head.hold(input, 16)?;
                    let at = input.position();
                    let packet =
                        packet(&head, head.body(input.bytes()), &self.shape).ok_or_else(|| {
                            Fault::damaged(
                                at,
                                "expected a packet that fits its block and its section",
                            )
                        })?;
                    self.frame(&packet, choose)?;
                }
                SECRETS if self.secrets.is_some() => {
                    head.pass(input, |_| Ok(()))?;
                    continue;
                }
                SECRETS | NAMES => {
                    head.hold(input, 12)?;
                    let block = input.bytes().get(..head.total as usize).unwrap_or_default();
                    if self.shape.shared.len().saturating_add(block.len()) > MAX_SHARED {
                        let what = "a section's secrets and names";
                        let length = self.shape.shared.len().saturating_add(block.len()) as u64;
                        let problem =
                            CaptureProblem::TooLong { what, length, limit: MAX_SHARED as u64 };
                        return Err(Fault::new(input.position(), problem));
                    }
                    self.shape.shared.extend_from_slice(block);
                }
                _ => {
                    self.left_out += 1;
                    head.pass(input, |_| Ok(()))?;
                    continue;
                }
            }
            input.take(head.total as usize, 0, 0);
        }
        Ok(())
    }

    fn pcap(&mut self, input: &mut Input, pcap: &Pcap, choose: ChoosePart<'_>) -> ReadResult<()> {
        self.begin_section(Endianness::Little, Vec::new(), false).map_err(write_fault)?;
        let digits = if pcap.clock.digits() > 6 { 9 } else { 6 };
        let link = pcap.link;
        let snap_len = pcap.snap_len;
        let fcs_len = pcap.fcs_len;
        self.shape.interfaces.push(InterfaceDescription { link, digits, snap_len, fcs_len }.body());
        while let Some(found) = pcap.next(input)? {
            let ticks = ticks(found.time, digits).map_err(write_fault)?;
            let ticks = [(ticks >> 32) as u32, (ticks & 0xffff_ffff) as u32];
            let data = input.at(found.place);
            let packet =
                SplitPacket { interface: 0, ticks, data, wire_len: found.wire_len, options: &[] };
            self.frame(&packet, choose)?;
        }
        Ok(())
    }

    fn begin_section(
        &mut self,
        order: Endianness,
        options: Vec<u8>,
        split: bool,
    ) -> io::Result<()> {
        self.section += 1;
        let mut shared = Vec::new();
        for (kind, data) in self.secrets.iter().flatten() {
            let secrets = EmbeddedSecrets { kind: *kind, data };
            shared.extend_from_slice(secrets_block(&mut self.block, order, &secrets)?);
        }
        self.shape = SplitSection { order, options, interfaces: Vec::new(), shared, split };
        Ok(())
    }

    fn frame(&mut self, packet: &SplitPacket<'_>, choose: ChoosePart<'_>) -> ReadResult<()> {
        self.frames += 1;
        let order = self.shape.order;
        let link =
            self.shape.interfaces.get(packet.interface).and_then(|body| order.u16_at(body, 0));
        let stated =
            options_of(order, packet.options).find(|option| option.code == OPTION_PACKET_ID);
        let stated = stated
            .filter(|_| self.shape.split)
            .and_then(|option| <[u8; 8]>::try_from(option.value).ok());
        let number = stated.unwrap_or(order.bytes64(self.frames));
        let chosen = choose(&Frame {
            number: order.u64(number),
            time: Time::default(),
            link: link.unwrap_or_default(),
            data: packet.data,
            wire_len: packet.wire_len,
        });
        let Some(part) = self.parts.get_mut(chosen) else { return Ok(()) };
        part.frames += 1;
        let block = &mut self.block;
        part.begin(self.section, &self.shape, block).map_err(write_fault)?;
        let interface = part.describe(packet.interface, &self.shape, block).map_err(write_fault)?;
        // Behind an interface: editcap 4.0 cannot rewrite a file that has secrets before it.
        part.share(&self.shape).map_err(write_fault)?;
        block.begin(order, PACKET);
        let captured = u32::try_from(packet.data.len()).unwrap_or(u32::MAX);
        let [high, low] = packet.ticks;
        block.words(&[interface, high, low, captured, packet.wire_len]);
        block.put(packet.data);
        block.pad();
        block.put(&without(packet.options, order, OPTION_PACKET_ID));
        block.option(OPTION_PACKET_ID, &number);
        block.option(OPTION_END, &[]);
        block.end().and_then(|block| part.out.write_all(block)).map_err(write_fault)
    }
}

impl<W: Write> Part<W> {
    /// Begins the input's present section where the part has not.
    fn begin(
        &mut self,
        section: u64,
        shape: &SplitSection,
        block: &mut BlockBuilder,
    ) -> io::Result<()> {
        if self.section == section {
            return Ok(());
        }
        let header = section_block(block, shape.order, &shape.options, SPLIT_PROGRAM)?;
        self.out.write_all(header)?;
        self.section = section;
        self.shared = 0;
        self.interfaces.clear();
        self.described = 0;
        Ok(())
    }

    /// Writes the shared blocks that the part lacks.
    fn share(&mut self, shape: &SplitSection) -> io::Result<()> {
        let missing = shape.shared.get(self.shared..).unwrap_or_default();
        self.shared = shape.shared.len();
        self.out.write_all(missing)
    }

    /// The part's own number for an interface of the input, which it describes before the
    /// interface's first frame.
    fn describe(
        &mut self,
        interface: usize,
        shape: &SplitSection,
        block: &mut BlockBuilder,
    ) -> io::Result<u32> {
        if let Some(Some(known)) = self.interfaces.get(interface) {
            return Ok(*known);
        }
        if self.interfaces.len() <= interface {
            self.interfaces.resize(interface + 1, None);
        }
        block.begin(shape.order, INTERFACE);
        block.put(shape.interfaces.get(interface).map_or(&[][..], Vec::as_slice));
        self.out.write_all(block.end()?)?;
        let number = self.described;
        self.described += 1;
        if let Some(known) = self.interfaces.get_mut(interface) {
            *known = Some(number);
        }
        Ok(number)
    }
}

/// What a packet block of any of the three kinds says; nothing where it contradicts itself or its
/// section.
fn packet<'a>(
    head: &BlockHeader,
    body: &'a [u8],
    section: &SplitSection,
) -> Option<SplitPacket<'a>> {
    let order = head.order;
    if head.kind == SIMPLE_PACKET {
        let data = body.get(4..)?;
        let wire_len = order.u32_at(body, 0)?;
        let snap_len = order.u32_at(section.interfaces.first()?, 4).filter(|limit| *limit > 0);
        let captured = wire_len.min(snap_len.unwrap_or(u32::MAX)) as usize;
        return Some(SplitPacket {
            interface: 0,
            ticks: [0; 2],
            data: data.get(..captured)?,
            wire_len,
            options: &[],
        });
    }
    let [first, high, low, captured, wire_len] = order.words::<5>(body)?;
    // The obsolete block has two fields of 16 bits here: the interface, and a count of drops.
    let interface = if head.kind == PACKET {
        first as usize
    } else {
        usize::from(order.u16_at(body, 0).unwrap_or_default())
    };
    section.interfaces.get(interface)?;
    let rest = body.get(20..)?;
    let data = rest.get(..captured as usize)?;
    let options = rest.get((captured as usize).next_multiple_of(4)..).unwrap_or_default();
    Some(SplitPacket { interface, ticks: [high, low], data, wire_len, options })
}

/// The options byte for byte, without those of code `without` and without the end of options.
fn without(options: &[u8], order: Endianness, without: u16) -> Vec<u8> {
    let mut kept = Vec::with_capacity(options.len());
    for option in options_of(order, options).filter(|option| option.code != without) {
        kept.extend_from_slice(option.whole);
    }
    // The last option may lack its padding.
    kept.resize(kept.len().next_multiple_of(4), 0);
    kept
}

fn write_fault(error: io::Error) -> Fault {
    Fault::new(0, CaptureProblem::Write(error))
}
