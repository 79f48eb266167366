//! One packet as a tree: header, link header, command, body and padding, every bit of it.
//!
//! It follows the decisions of the link. It decides nothing itself, and keeps nothing from packet
//! to packet.

use super::packet::{HEADER, Header, LinkHeader, Numbering, checksum};
use crate::table::{Cursor, Evaluator, LayoutId, MessageId, Run, ServiceId, Tables};
use crate::tree::{Buffer, BufferOrigin, Kind, Node, Severity, Sym, Tree, TypeRef, mark};

/// The parts of the tables that frame a packet.
#[derive(Clone, Copy, Debug)]
pub struct FrameTables {
    link_service: ServiceId,
    user_service: ServiceId,
    header: LayoutId,
    encrypted: LayoutId,
    link: LayoutId,
    command: LayoutId,
    cookies: LayoutId,
    body: Sym,
    payload: Sym,
    fragments: Sym,
    record_number: TypeRef,
    ciphertext: Sym,
}

/// How a packet's bytes are read.
#[derive(Clone, Copy, Debug)]
pub enum PacketContent<'a> {
    /// A control or user command.
    Command(CommandLayout),
    /// A command in several datagrams, of which this one came last.
    Whole(CommandLayout, Pieces<'a>),
    /// One of several datagrams of a packet, which is not complete yet.
    Fragment(UnjoinedPiece),
    /// Encrypted: everything behind the length.
    Encrypted,
    /// Compressed, in a way that is not published.
    Compressed,
    /// From a version whose encoding is not published.
    Undescribed(u32),
}

/// The state of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnjoinedPiece {
    /// It waits for the others.
    Waits,
    /// It came before, or its packet was already complete.
    Again,
    /// Another piece came with its position.
    Differs,
    /// Its position is beyond the number of pieces that it states.
    Impossible,
}

impl UnjoinedPiece {
    fn problem(self) -> Option<(Severity, &'static str)> {
        match self {
            UnjoinedPiece::Waits => None,
            UnjoinedPiece::Again => {
                Some((Severity::Note, "this piece came before, or its packet is complete"))
            }
            UnjoinedPiece::Differs => Some((
                Severity::Warning,
                "another piece came with this position; this one is not put together with the \
                 others",
            )),
            UnjoinedPiece::Impossible => Some((
                Severity::Warning,
                "no piece has the position {a} among {b}, or that many are not put together",
            )),
        }
    }
}

/// What is known of a command before its nodes are added.
#[derive(Clone, Copy, Debug)]
pub struct CommandLayout {
    /// How its number is to be read.
    pub numbering: Numbering,
    /// Its message in the tables.
    pub message: Option<MessageId>,
    /// Whether it is a user command.
    pub user: bool,
    /// Whether there are cookies before its body.
    pub cookies: bool,
}

/// A reassembled packet.
#[derive(Clone, Copy, Debug)]
pub struct Pieces<'a> {
    /// The payloads in order.
    pub bytes: &'a [u8],
    /// The number of their bits.
    pub bits: usize,
    /// The records of the other datagrams.
    pub records: &'a [u64],
}

/// A packet and the facts about it.
#[derive(Clone, Copy, Debug)]
pub struct LinkPacket<'a> {
    /// All bytes, trailing ones included.
    pub bytes: &'a [u8],
    /// Its header.
    pub header: Header,
    /// The offset of its end, padding included.
    pub end: usize,
    /// Whether the checksum is right.
    pub right: bool,
    /// Its link header.
    pub link: Option<LinkHeader>,
    /// How it is read.
    pub content: PacketContent<'a>,
}

/// A node without its position.
#[derive(Clone, Copy)]
struct NodeShape {
    name: Sym,
    kind: Kind,
    marks: u8,
}

impl NodeShape {
    /// A node without marks.
    fn new(name: Sym, kind: Kind) -> NodeShape {
        NodeShape { name, kind, marks: 0 }
    }
}

impl CommandLayout {
    /// The layout of a command that cannot be read at all.
    pub fn unread() -> CommandLayout {
        CommandLayout { numbering: Numbering::New, message: None, user: true, cookies: false }
    }
}

impl FrameTables {
    /// Finds the parts in the tables. `server`: the service of the link's server, which has its own
    /// user commands.
    pub fn new(tables: &Tables, server: Option<ServiceId>) -> Option<FrameTables> {
        let layout = |name: &str| {
            let sym = tables.sym(name)?;
            let at = tables.layouts().iter().position(|l| l.name == sym)?;
            Some(LayoutId(at as u32))
        };
        Some(FrameTables {
            link_service: tables.service_named("link")?,
            user_service: server.or_else(|| tables.service_named("user"))?,
            header: layout("PacketHeader")?,
            encrypted: layout("EncryptedHeader")?,
            link: layout("LinkPart")?,
            command: layout("Command")?,
            cookies: layout("Cookies")?,
            body: tables.sym("body")?,
            payload: tables.sym("payload")?,
            fragments: tables.sym("fragments")?,
            ciphertext: tables.sym("ciphertext")?,
            record_number: tables.type_named("RecordNumber")?,
        })
    }

    /// The message of a control or user command of a sender (0 client, 1 server).
    pub fn message(
        &self,
        tables: &Tables,
        user: bool,
        sender: usize,
        number: u32,
    ) -> Option<MessageId> {
        let service = tables.service(if user { self.user_service } else { self.link_service })?;
        tables.message_id(service, sender, u64::from(number))
    }

    /// Reads a packet into a cleared tree.
    pub fn read(
        &self,
        packet: &LinkPacket<'_>,
        tables: &Tables,
        evaluator: &mut Evaluator,
        tree: &mut Tree,
    ) {
        let mut run = evaluator.run(tables, tree);
        let mut cursor = Cursor::new(packet.bytes, Buffer::CAPTURED);
        let root = run.open(&cursor, Sym::ELEMENT, TypeRef(0), 0);
        match packet.content {
            PacketContent::Encrypted => self.encrypted(&mut run, root, packet, &mut cursor),
            _ => self.open(&mut run, root, packet, &mut cursor),
        }
        if cursor.left_bits() > 0 {
            run.undecoded(&mut cursor);
            let left = run.tree.len().saturating_sub(1);
            let bytes = packet.bytes.len().saturating_sub(packet.end) as i64;
            run.problem(Severity::Warning, left, "{a bytes} behind the packet's end", bytes, 0);
        }
        run.tree.close(root, packet.bytes.len() * 8);
    }

    /// A packet in clear: header, link header, content, padding.
    fn open(&self, run: &mut Run<'_>, root: u32, packet: &LinkPacket<'_>, cursor: &mut Cursor<'_>) {
        self.part(run, self.header, &[], root, cursor);
        if !packet.right {
            let sum = packet.bytes.get(HEADER..packet.end).map_or(0, checksum);
            let text = "the checksum is wrong: the bytes give {a}";
            run.problem(Severity::Warning, root + 2, text, i64::from(sum), 0);
        }
        cursor.restore(packet.header.bits as usize);
        if let Some(link) = packet.link {
            self.part(run, self.link, &[], root, cursor);
            if link.debug {
                let text = "the debug bit is set; nothing is published on what it changes";
                run.problem(Severity::Note, root + 4, text, 0, 0);
            }
        }
        self.content(run, root, packet, cursor);
        self.padding(run, packet, cursor);
    }

    fn content(
        &self,
        run: &mut Run<'_>,
        root: u32,
        packet: &LinkPacket<'_>,
        cursor: &mut Cursor<'_>,
    ) {
        match packet.content {
            PacketContent::Command(layout) => self.command(run, root, layout, cursor),
            PacketContent::Whole(layout, pieces) => {
                self.whole(run, layout, pieces, cursor);
                root
            }
            PacketContent::Fragment(piece) => {
                let node = self.rest(run, cursor, NodeShape::new(self.payload, Kind::Bytes));
                if let Some((severity, text)) = piece.problem() {
                    let (a, b) = packet
                        .link
                        .map_or((0, 0), |l| (i64::from(l.position), i64::from(l.siblings)));
                    run.problem(severity, node, text, a, b);
                }
                node
            }
            PacketContent::Compressed => {
                let node = self.rest(run, cursor, NodeShape::new(self.body, Kind::Undecoded));
                run.problem(Severity::Note, node, "compressed; how is not published", 0, 0);
                node
            }
            PacketContent::Undescribed(version) => {
                let node = self.rest(run, cursor, NodeShape::new(self.body, Kind::Undecoded));
                let text = "the encoding of protocol version {a} is not published";
                run.problem(Severity::Note, node, text, i64::from(version), 0);
                node
            }
            PacketContent::Encrypted => root,
        };
    }

    /// The command that begins at the cursor, to the end of its region.
    fn command(
        &self,
        run: &mut Run<'_>,
        node: u32,
        layout: CommandLayout,
        cursor: &mut Cursor<'_>,
    ) -> u32 {
        let old = u64::from(layout.numbering == Numbering::Old);
        if !self.part(run, self.command, &[old], node, cursor) {
            run.undecoded(cursor);
            return node;
        }
        let number = run.tree.len().saturating_sub(1);
        if layout.cookies && !self.part(run, self.cookies, &[], node, cursor) {
            run.undecoded(cursor);
            return node;
        }
        let tables = run.tables;
        let message = layout.message.and_then(|m| tables.message(m));
        match message.and_then(|m| tables.layout(m.layout?)) {
            Some(fields) => {
                run.layout_into(fields, node, cursor);
                self.left_over(run, number);
            }
            None => {
                let body = self.rest(run, cursor, NodeShape::new(self.body, Kind::Undecoded));
                let value = run.tree.get(number).map_or(0, |n| n.value as i64);
                let text = match (message.is_some(), layout.user) {
                    (true, _) => "the layout of command {a} is not known",
                    (_, true) => "user command {a} is in no table",
                    (_, false) => "no control command has the number {a}",
                };
                run.problem(Severity::Note, if body == 0 { number } else { body }, text, value, 0);
            }
        }
        node
    }

    /// Adds a problem if less than a byte is left behind a command's fields: the evaluator only
    /// reports whole bytes.
    fn left_over(&self, run: &mut Run<'_>, number: u32) {
        let last = run.tree.len().saturating_sub(1);
        let Some(node) = run.tree.get(last).filter(|n| last > number && n.kind == Kind::Undecoded)
        else {
            return;
        };
        let bits = i64::from(node.bits);
        if bits < 8 {
            run.problem(Severity::Warning, last, "{a bits} that no field claims", bits, 0);
        }
    }

    /// A command in several datagrams: the records of the others, then all payloads in a buffer of
    /// their own.
    fn whole(
        &self,
        run: &mut Run<'_>,
        layout: CommandLayout,
        pieces: Pieces<'_>,
        cursor: &mut Cursor<'_>,
    ) {
        let list = self.node(run, cursor, NodeShape::new(self.fragments, Kind::List), 0);
        for record in pieces.records {
            let kind =
                if u32::try_from(*record).is_ok() { Kind::Unsigned } else { Kind::Unsigned64 };
            let node = self.node(run, cursor, NodeShape::new(Sym::ELEMENT, kind), 0);
            if let Some(node) = run.tree.get_mut(node) {
                (node.value, node.ty) = (*record, self.record_number);
            }
        }
        run.tree.close(list, cursor.pos());
        let (buffer, mut whole) = run.tree.open_buffer(BufferOrigin::Reassembled);
        whole.extend_from_slice(pieces.bytes);
        let shape = NodeShape {
            name: self.payload,
            kind: Kind::Struct,
            marks: mark::OWN_BUFFER | mark::SEE_THROUGH,
        };
        let region = self.node(run, cursor, shape, 0);
        let mut inside = Cursor::new(&whole, buffer);
        inside.restore(pieces.bits);
        self.command(run, region, layout, &mut inside);
        cursor.seek(cursor.limit());
        run.tree.close(region, cursor.pos());
        run.tree.put_buffer(buffer, whole);
    }

    /// An encrypted packet: its length, and the rest as plain bytes.
    fn encrypted(
        &self,
        run: &mut Run<'_>,
        root: u32,
        packet: &LinkPacket<'_>,
        cursor: &mut Cursor<'_>,
    ) {
        self.part(run, self.encrypted, &[], root, cursor);
        cursor.restore(packet.end * 8);
        let node = self.rest(
            run,
            cursor,
            NodeShape { name: self.ciphertext, kind: Kind::Bytes, marks: mark::OPAQUE },
        );
        if packet.end != packet.header.padded() {
            let text = "{a bytes} of encrypted content, which is not what {b} bits are padded to";
            let bytes = packet.end.saturating_sub(4) as i64;
            let bits = i64::from(packet.header.bits);
            run.problem(Severity::Warning, node, text, bytes, bits);
        }
        cursor.restore(packet.bytes.len() * 8);
    }

    /// The padding between the packet's last bit and its last byte.
    fn padding(&self, run: &mut Run<'_>, packet: &LinkPacket<'_>, cursor: &mut Cursor<'_>) {
        cursor.restore(packet.end * 8);
        if cursor.left_bits() > 0 {
            let name = run.tables.padding_name();
            let start = *cursor;
            let node =
                self.rest(run, cursor, NodeShape { name, kind: Kind::Bytes, marks: mark::SPAN });
            if !zeros(start) {
                run.problem(Severity::Note, node, "padding that is not zero", 0, 0);
            }
        }
        cursor.restore(packet.bytes.len() * 8);
    }

    /// Reads the fields of a layout into an open node. Returns whether all of them were there.
    fn part(
        &self,
        run: &mut Run<'_>,
        layout: LayoutId,
        args: &[u64],
        node: u32,
        cursor: &mut Cursor<'_>,
    ) -> bool {
        let tables = run.tables;
        let read = tables.layout(layout).map(|l| run.steps(l, args, node, cursor));
        if read == Some(Ok(())) {
            return true;
        }
        let at = cursor.pos() as i64;
        let limit = cursor.limit() as i64;
        run.problem(
            Severity::Error,
            node,
            "cannot be read on from bit {a}; the packet ends at bit {b}",
            at,
            limit,
        );
        false
    }

    /// A node over the rest of the cursor's region. 0 if nothing is left.
    fn rest(&self, run: &mut Run<'_>, cursor: &mut Cursor<'_>, shape: NodeShape) -> u32 {
        let bits = cursor.left_bits();
        if bits == 0 {
            return 0;
        }
        let node = self.node(run, cursor, shape, bits);
        cursor.seek(cursor.limit());
        node
    }

    fn node(&self, run: &mut Run<'_>, cursor: &Cursor<'_>, shape: NodeShape, bits: usize) -> u32 {
        let NodeShape { name, kind, marks } = shape;
        let start = cursor.pos();
        let ty = if kind == Kind::Undecoded {
            run.tables.undecoded_type()
        } else {
            run.tables.padding_type()
        };
        let bytes = (start % 8 + bits).div_ceil(8);
        run.tree.leaf(Node {
            value: Node::place(start / 8, bytes),
            name,
            ty,
            start: start as u32,
            bits: bits as u32,
            end: 0,
            buffer: cursor.buffer(),
            kind,
            marks,
        })
    }
}

fn zeros(mut cursor: Cursor<'_>) -> bool {
    while cursor.left_bits() > 0 {
        let bits = cursor.left_bits().min(64) as u32;
        if cursor.bits(bits) != Ok(0) {
            return false;
        }
    }
    true
}
