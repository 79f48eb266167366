//! Reads one datagram into a tree: header, message (expanded if it is zero-coded) and appended
//! acknowledgements.
//!
//! It adds the frame's nodes and lets the tables read the message. It keeps nothing between
//! datagrams.

use super::packet::{self, Expansion, Packet};
use crate::table::{Cursor, Evaluator, Layout, LayoutId, MessageId, Run, ServiceId, Tables};
use crate::tree::{Buffer, BufferOrigin, Severity, Sym, Tree, TypeRef, mark};

/// The parts of the tables that frame a datagram.
#[derive(Clone, Copy, Debug)]
pub struct DatagramLayouts {
    /// The only service.
    pub circuit: ServiceId,
    header: LayoutId,
    body: LayoutId,
    end: LayoutId,
}

/// What the caller must know of a datagram.
#[derive(Clone, Copy, Debug)]
pub struct DatagramForm {
    /// Whether it begins with a SOCKS header.
    pub socks: bool,
    /// The side that sent it: 0 for the client, 1 for the server.
    pub sender: usize,
}

/// Why a datagram is not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoMessage {
    /// It is shorter than a header and one byte.
    TooShort,
    /// It ends within the message number.
    NoNumber,
    /// No message has this number.
    Unknown(u32),
}

/// A datagram whose message is in the tree.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// Where its parts lie.
    pub packet: Packet,
    /// Its message.
    pub message: MessageId,
    /// The message's number.
    pub number: u32,
}

/// The expanded message of a zero-coded datagram.
struct Expanded<'a> {
    /// At its first byte.
    cursor: Cursor<'a>,
    how: Expansion,
}

#[derive(Clone, Copy)]
struct FoundMessage {
    id: MessageId,
    number: u32,
    width: usize,
}

impl FoundMessage {
    fn read(self, packet: Packet) -> Read {
        Read { packet, message: self.id, number: self.number }
    }
}

impl DatagramLayouts {
    /// Finds the frame's parts in the tables.
    pub fn new(tables: &Tables) -> Option<DatagramLayouts> {
        let layout = |name: &str| match tables.type_def(tables.type_named(name)?)?.read {
            crate::table::ReadAs::Layout { layout, .. } => Some(layout),
            _ => None,
        };
        let parameterised = |name: &str| {
            let sym = tables.sym(name)?;
            let at = tables.layouts().iter().position(|l| l.name == sym)?;
            Some(LayoutId(at as u32))
        };
        Some(DatagramLayouts {
            circuit: tables.service_named("circuit")?,
            header: parameterised("PacketHeader")?,
            body: parameterised("body")?,
            end: layout("PacketEnd")?,
        })
    }

    /// Reads a datagram into a cleared tree. A datagram that is no message but has a header returns
    /// the header with the error.
    pub fn read(
        &self,
        datagram: &[u8],
        DatagramForm { socks, sender }: DatagramForm,
        tables: &Tables,
        evaluator: &mut Evaluator,
        tree: &mut Tree,
    ) -> Result<Read, (NoMessage, Option<Packet>)> {
        let packet = Packet::parse(datagram, socks).ok_or((NoMessage::TooShort, None))?;
        let mut run = evaluator.run(tables, tree);
        let coded = packet.coded(datagram);
        if !packet.has(packet::ZEROCODED) {
            let found = self.find(coded, sender, tables).map_err(|e| (e, Some(packet)))?;
            self.fill(&mut run, datagram, &packet, found, None);
            return Ok(found.read(packet));
        }
        let (buffer, mut expanded) = run.tree.open_buffer(BufferOrigin::Expanded);
        let how = packet::expand(coded, packet::MAX_EXPANDED, &mut expanded);
        let found = self.find(&expanded, sender, tables);
        if let Ok(found) = found {
            let inside = Cursor::new(&expanded, buffer);
            self.fill(&mut run, datagram, &packet, found, Some(Expanded { cursor: inside, how }));
        }
        run.tree.put_buffer(buffer, expanded);
        found.map(|f| f.read(packet)).map_err(|e| (e, Some(packet)))
    }

    /// Whether a datagram could be one of a circuit by its header and message number alone.
    pub fn plausible(&self, datagram: &[u8], socks: bool, tables: &Tables) -> bool {
        let Some(packet) = Packet::parse(datagram, socks) else {
            return false;
        };
        let coded = packet.coded(datagram);
        let mut start = Vec::new();
        if packet.has(packet::ZEROCODED) {
            packet::expand(coded, 8, &mut start);
        } else {
            start.extend(coded.iter().take(8));
        }
        packet.flags & 0x0f == 0 && packet.extra == 0 && self.find(&start, 0, tables).is_ok()
    }

    fn find(
        &self,
        message: &[u8],
        sender: usize,
        tables: &Tables,
    ) -> Result<FoundMessage, NoMessage> {
        let (number, width) = packet::number(message).ok_or(NoMessage::NoNumber)?;
        let service = tables.service(self.circuit);
        let id = service.and_then(|s| tables.message_id(s, sender, u64::from(number)));
        match id {
            Some(id) => Ok(FoundMessage { id, number, width }),
            None => Err(NoMessage::Unknown(number)),
        }
    }

    /// Adds all nodes. `inside` is the expanded message if the datagram is zero-coded.
    fn fill(
        &self,
        run: &mut Run<'_>,
        datagram: &[u8],
        packet: &Packet,
        found: FoundMessage,
        inside: Option<Expanded<'_>>,
    ) {
        let tables = run.tables;
        let def = tables.message(found.id);
        let layout = def.and_then(|d| tables.layout(d.layout?));
        let mut cursor = Cursor::new(datagram, Buffer::CAPTURED);
        let name = def.map_or(Sym::ELEMENT, |d| d.name);
        let ty = layout.map_or(TypeRef(0), |l| l.ty);
        let root = run.open(&cursor, name, ty, 0);
        run.tree.set_telling(true);
        self.header(run, root, packet, &mut cursor);
        let args = [found.width as u64, u64::from(packet.extra)];
        match inside {
            Some(Expanded { cursor: mut inside, how }) => {
                let region = self.region(run, &cursor);
                say_expansion(run, region, how);
                self.message(run, region, args, layout, &mut inside);
                cursor.seek(packet.end * 8);
                run.tree.close(region, cursor.pos());
            }
            None => {
                let limit = cursor.narrow(packet.end.saturating_sub(packet.body));
                self.message(run, root, args, layout, &mut cursor);
                cursor.restore(limit.unwrap_or(cursor.limit()));
            }
        }
        if packet.has(packet::ACK)
            && packet.bad_acks.is_none()
            && let Some(end) = tables.layout(self.end)
        {
            // Its length was checked: this cannot run out of bytes.
            let _ = run.steps(end, &[], root, &mut cursor);
        }
        run.tree.close(root, datagram.len() * 8);
    }

    fn header(&self, run: &mut Run<'_>, root: u32, packet: &Packet, cursor: &mut Cursor<'_>) {
        let tables = run.tables;
        if let Some(header) = tables.layout(self.header) {
            // The length was checked: this cannot run out of bytes.
            let _ = run.steps(header, &[u64::from(packet.socks)], root, cursor);
        }
        let flags = run.tree.len().saturating_sub(3);
        if packet.flags & 0x0f != 0 {
            let bits = i64::from(packet.flags & 0x0f);
            run.problem(Severity::Note, flags, "reserved bits are set: {a}", bits, 0);
        }
        if packet.extra != 0 {
            run.problem(
                Severity::Note,
                flags + 2,
                "an extra header of {a bytes}, read behind the message number, where the viewer \
                 looks for it",
                i64::from(packet.extra),
                0,
            );
        }
        if let Some(count) = packet.bad_acks {
            run.problem(
                Severity::Error,
                flags,
                "{a} appended acknowledgements are announced, which is more than there is room for",
                i64::from(count),
                0,
            );
        }
    }

    /// Opens the region of the coded message.
    fn region(&self, run: &mut Run<'_>, cursor: &Cursor<'_>) -> u32 {
        let layout = run.tables.layout(self.body);
        let (name, ty) = layout.map_or((Sym::ELEMENT, TypeRef(0)), |l| (l.name, l.ty));
        run.open(cursor, name, ty, mark::OWN_BUFFER | mark::SEE_THROUGH)
    }

    /// The message's number, its extra header and its blocks, over the rest of the cursor's region.
    fn message(
        &self,
        run: &mut Run<'_>,
        node: u32,
        args: [u64; 2],
        layout: Option<&Layout>,
        cursor: &mut Cursor<'_>,
    ) {
        let tables = run.tables;
        let start = tables.layout(self.body).map(|l| run.steps(l, &args, node, cursor));
        if !matches!(start, Some(Ok(()))) {
            let left = cursor.left() as i64;
            run.problem(
                Severity::Error,
                node,
                "the extra header of {a bytes} is longer than what is left: {b}",
                args.get(1).map_or(0, |n| *n as i64),
                left,
            );
            run.undecoded(cursor);
            return;
        }
        if let Some(layout) = layout {
            run.layout_into(layout, node, cursor);
        }
    }
}

fn say_expansion(run: &mut Run<'_>, node: u32, how: Expansion) {
    match how {
        Expansion::Whole => {}
        Expansion::NoCount => {
            run.problem(Severity::Note, node, "the last zero of the zero coding has no count", 0, 0)
        }
        Expansion::Limit => run.problem(
            Severity::Error,
            node,
            "expands to more than {a} bytes; the rest is left out",
            packet::MAX_EXPANDED as i64,
            0,
        ),
    }
}
