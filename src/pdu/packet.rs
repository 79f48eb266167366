//! Whole packets: writes the packet of a record, and reads packets.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

use super::carried::CarriedReader;
use super::packed::{PackSource, Packer};
use super::tags::{self, TagReader};
use super::{Unpacked, fingerprint};
use crate::record::{Body, Record};
use crate::session::{Side, Transport};
use crate::table::Tables;

/// The most bytes of a packet that Wireshark reads (`WTAP_MAX_PACKET_SIZE_STANDARD`).
pub const MAX_BYTES: usize = 262_144;
/// The dissector's name of a packet without a message, which only carries something.
pub const CARRIER: &str = "moulsniff";
/// The most bytes of the info column.
const MAX_INFO: usize = 400;

/// Writes packets of records.
#[derive(Default)]
pub struct PduWriter {
    packer: Packer,
    packed: Vec<u8>,
    packet: Vec<u8>,
    /// The fingerprints of tables, by their place in memory: tables live as long as a run.
    fingerprints: Vec<(usize, u64)>,
}

impl PduWriter {
    /// The packet of a record, with a line that says what it is about and with what it carries
    /// beside its message; `None` for an event.
    ///
    /// Where the tree makes a packet longer than [`MAX_BYTES`] that would be short enough without
    /// it, the tree is left out.
    pub fn packet(
        &mut self,
        record: &Record<'_>,
        info: &str,
        carried: &[u8],
    ) -> Option<WrittenPacket> {
        let Body::Message { message, tables, tree } = record.body else { return None };
        let fingerprint = self.fingerprint(tables);
        let packet = &mut self.packet;
        let packed = &mut self.packed;
        [&mut *packet, &mut *packed].into_iter().for_each(Vec::clear);
        tags::put(
            packet,
            tags::DISSECTOR,
            dissector_name(tables, record.service, record.from).as_bytes(),
        );
        put_ends(packet, record);
        // Frames beyond 32 bits have no number here.
        let frame = u32::try_from(record.at.frame).unwrap_or(u32::MAX);
        tags::put_number(packet, tags::FRAME, frame);
        if record.transport == Transport::Tcp {
            tags::put_number(packet, tags::TCP_STREAM, record.stream);
        }
        tags::put(packet, tags::PROTOCOL_COLUMN, column(record).as_bytes());
        let ends = info.char_indices().map(|(at, c)| at + c.len_utf8());
        let info =
            info.get(..ends.take_while(|end| *end <= MAX_INFO).last().unwrap_or(0)).unwrap_or(info);
        let name = message.name.escaped();
        let column = if info.is_empty() { name.to_string() } else { format!("{name} {info}") };
        tags::put(packet, tags::INFO_COLUMN, column.as_bytes());
        self.packer.pack(record, PackSource { message, tables, tree, info, fingerprint }, packed);
        tags::put(packet, tags::CARRIED, carried);
        // Each piece of the tree takes at most 8 bytes beside its own.
        let without = packet.len() + message.bytes.len() + 4;
        let with = without + packed.len() + 8 * (packed.len() / 65_532 + 1);
        if with <= MAX_BYTES || without > MAX_BYTES {
            tags::put(packet, tags::PACKED, packed);
        }
        let tags_end = packet.len();
        tags::end(packet);
        packet.extend_from_slice(message.bytes);
        Some(WrittenPacket { bytes: std::mem::take(packet), tags_end })
    }

    /// Takes back the memory of a packet that was written.
    pub fn reuse(&mut self, packet: WrittenPacket) {
        self.packet = packet.bytes;
    }

    fn fingerprint(&mut self, tables: &Tables) -> u64 {
        let place = std::ptr::from_ref(tables).addr();
        if let Some((_, known)) = self.fingerprints.iter().find(|(at, _)| *at == place) {
            return *known;
        }
        let new = fingerprint(tables);
        self.fingerprints.push((place, new));
        new
    }
}

/// A packet that may still get something to carry.
pub struct WrittenPacket {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Where the end of its list of tags is.
    tags_end: usize,
}

impl WrittenPacket {
    /// A packet without a message.
    pub fn carrier(carried: &[u8]) -> WrittenPacket {
        let mut bytes = Vec::new();
        tags::put(&mut bytes, tags::DISSECTOR, CARRIER.as_bytes());
        tags::put(&mut bytes, tags::CARRIED, carried);
        let tags_end = bytes.len();
        tags::end(&mut bytes);
        WrittenPacket { bytes, tags_end }
    }

    /// The packet carries this, too, which came after its message.
    pub fn carry_after(&mut self, carried: &[u8]) {
        let mut tag = Vec::new();
        tags::put(&mut tag, tags::CARRIED_AFTER, carried);
        self.bytes.splice(self.tags_end..self.tags_end, tag.iter().copied());
        self.tags_end += tag.len();
    }
}

/// The name of the dissector for messages of a service and sender: what `decode` takes. A protocol
/// whose own code finds its messages, whatever service they belong to, is named alone.
pub fn dissector_name(tables: &Tables, service: &str, from: Side) -> String {
    let protocol = tables.protocol();
    if tables.services().iter().all(|service| service.positional || service.header.is_empty()) {
        protocol.to_string()
    } else {
        format!("{protocol}.{service}.{}", from.word())
    }
}

/// Addresses and ports, source first.
fn put_ends(packet: &mut Vec<u8>, record: &Record<'_>) {
    let ends = [record.src, record.dst];
    for (at, end) in ends.into_iter().enumerate() {
        let tag = |tags: [u16; 2]| tags.get(at).copied().unwrap_or_default();
        match end.ip() {
            IpAddr::V4(address) => tags::put(packet, tag(tags::IPV4), &address.octets()),
            IpAddr::V6(address) => tags::put(packet, tag(tags::IPV6), &address.octets()),
        }
    }
    let kind = if record.transport == Transport::Tcp { tags::TCP } else { tags::UDP };
    tags::put_number(packet, tags::PORT_TYPE, kind);
    for (tag, end) in tags::PORTS.into_iter().zip(ends) {
        tags::put_number(packet, tag, end.port().into());
    }
}

/// The text of the protocol column: protocol and service.
fn column(record: &Record<'_>) -> String {
    format!("{} {}", record.protocol.to_uppercase(), record.service)
}

/// The content of a packet that was read.
#[derive(Clone, Debug)]
pub struct PduPacket<'a> {
    /// The name of the dissector.
    pub dissector: &'a str,
    /// The sender's address and port, and the receiver's; zeros where the packet has none.
    pub ends: [SocketAddr; 2],
    /// The transport, if the packet states it.
    pub transport: Option<Transport>,
    /// The frame in the capture that was exported.
    pub frame: Option<u32>,
    /// The TCP stream in that capture.
    pub stream: Option<u32>,
    /// The packed tree.
    packed: Cow<'a, [u8]>,
    /// What came before the message, and what came after it.
    carried: [Cow<'a, [u8]>; 2],
    /// The message's bytes.
    pub bytes: &'a [u8],
}

impl<'a> PduPacket<'a> {
    /// Reads a packet.
    ///
    /// # Errors
    /// What is wrong with it, as the end of a sentence that begins with "the packet is left out: ".
    pub fn parse(data: &'a [u8]) -> Result<PduPacket<'a>, &'static str> {
        let mut reader = TagReader { rest: data };
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let mut packet = PduPacket {
            dissector: "",
            ends: [nowhere; 2],
            transport: None,
            frame: None,
            stream: None,
            packed: Cow::Borrowed(&[]),
            carried: [Cow::Borrowed(&[]), Cow::Borrowed(&[])],
            bytes: &[],
        };
        while let Some((tag, value)) = reader.next_tag()? {
            packet.take(tag, value);
        }
        packet.bytes = reader.rest;
        if packet.dissector.is_empty() {
            return Err("it names no dissector");
        }
        Ok(packet)
    }

    /// The packed tree, where the packet carries one.
    pub fn unpacked(&self) -> Option<Unpacked<'_>> {
        Unpacked::new(&self.packed)
    }

    /// What the packet carries of before its message.
    pub fn before(&self) -> CarriedReader<'_> {
        let [before, _] = &self.carried;
        CarriedReader::new(before)
    }

    /// What the packet carries of after its message.
    pub fn after(&self) -> CarriedReader<'_> {
        let [_, after] = &self.carried;
        CarriedReader::new(after)
    }

    /// Takes a tag; one that is not known, or too short, says nothing.
    fn take(&mut self, tag: u16, value: &'a [u8]) {
        let place = |tags: [u16; 2]| tags.iter().position(|known| *known == tag);
        if let Some(end) =
            place(tags::IPV4).or(place(tags::IPV6)).and_then(|at| self.ends.get_mut(at))
        {
            let v6 = value
                .first_chunk::<16>()
                .map(|octets| IpAddr::from(*octets))
                .filter(|_| tags::IPV6.contains(&tag));
            let v4 = value
                .first_chunk::<4>()
                .map(|octets| IpAddr::from(*octets))
                .filter(|_| tags::IPV4.contains(&tag));
            if let Some(address) = v4.or(v6) {
                end.set_ip(address);
            }
            return;
        }
        if let Some(end) = place(tags::PORTS).and_then(|at| self.ends.get_mut(at)) {
            let port = tags::number(value).and_then(|port| u16::try_from(port).ok());
            return end.set_port(port.unwrap_or(0));
        }
        match tag {
            tags::DISSECTOR => self.dissector = tags::text(value).unwrap_or(""),
            tags::PORT_TYPE => {
                self.transport = match tags::number(value) {
                    Some(tags::TCP) => Some(Transport::Tcp),
                    Some(tags::UDP) => Some(Transport::Udp),
                    _ => None,
                };
            }
            tags::FRAME => self.frame = tags::number(value),
            tags::TCP_STREAM => self.stream = tags::number(value),
            tags::PACKED => add_piece(&mut self.packed, value),
            tags::CARRIED | tags::CARRIED_AFTER => {
                let [before, after] = &mut self.carried;
                add_piece(if tag == tags::CARRIED { before } else { after }, value);
            }
            _ => {}
        }
    }
}

/// Adds a further piece of a value that is too long for one tag.
fn add_piece<'a>(to: &mut Cow<'a, [u8]>, piece: &'a [u8]) {
    if to.is_empty() {
        *to = Cow::Borrowed(piece);
    } else {
        to.to_mut().extend_from_slice(piece);
    }
}
