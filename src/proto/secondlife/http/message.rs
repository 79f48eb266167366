//! One HTTP message into the tree: its first line, its headers, its body.
//!
//! It knows how a body is packed, and that tables name the keys of the maps in it. Which message it
//! is, the session knows.

use std::io::Read;

use super::chunks;
use super::head::{self, FirstLine, Head, Place};
use crate::digits::is_uuid;
use crate::proto::secondlife::llsd::typed::field_named;
use crate::proto::secondlife::llsd::{LlsdBody, LlsdTypes};
use crate::session::Side;
use crate::table::{
    Cursor, LayoutId, MessageId, ReadAs, Run, Sender, ServiceId, Tables, ValueRead,
};
use crate::tree::{Buffer, BufferOrigin, Kind, Node, Severity, Sym, TextKind, Tree, TypeRef, mark};

/// What the tables say of all messages over HTTP.
#[derive(Clone, Copy)]
pub(super) struct HttpTypes {
    /// The messages that no table describes.
    pub(super) request: MessageId,
    pub(super) reply: MessageId,
    /// What the URL of a capability identifies, and the URL of the one that grants others.
    capability: Sym,
    seed: Sym,
    /// What a session's ID identifies.
    session: Sym,
    /// The fields of a header, and what is known of values, by the header's name.
    header: LayoutId,
    values: LayoutId,
    content: TypeRef,
    llsd: LlsdTypes,
}

/// A message whose bytes are there, as far as they came.
pub(super) struct WholeHttp<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) head: &'a Head,
    pub(super) is_chunked: bool,
    /// What is wrong with the body's end, with up to two numbers.
    pub(super) fault: Option<(Severity, &'static str, i64, i64)>,
    /// Whether the path is a secret: that of a capability.
    pub(super) is_capability: bool,
    /// The ID of the session that the capability was granted to.
    pub(super) session: Option<&'a str>,
    /// The asset that it is about.
    pub(super) asset: Option<&'a Asset>,
}

/// An asset, as the query of a request names it: `texture_id=` and a UUID.
#[derive(Clone, Debug)]
pub(super) struct Asset {
    kind: Box<str>,
    id: Box<str>,
}

impl Asset {
    /// The asset that a request asks for.
    pub(super) fn of(bytes: &[u8], head: &Head) -> Option<Asset> {
        let FirstLine::Request { target, .. } = head.line else { return None };
        let target = std::str::from_utf8(head::part(bytes, target)).ok()?;
        let (_, query) = target.split_once('?')?;
        query.split('&').find_map(|part| {
            let (key, id) = part.split_once('=')?;
            let kind = key.strip_suffix("_id").filter(|kind| (1..=16).contains(&kind.len()))?;
            let asset = || Asset { kind: kind.into(), id: id.to_ascii_lowercase().into() };
            is_uuid(id.as_bytes()).then(asset)
        })
    }
}

/// Which bytes of an asset a reply brings: the first one's place, and how many the asset has.
fn range_of(whole: &WholeHttp<'_>) -> Option<(u64, u64)> {
    let FirstLine::Reply { status, .. } = whole.head.line else { return None };
    let header = |name| std::str::from_utf8(whole.head.header(whole.bytes, name)?).ok();
    match status {
        // The length of a packed body says nothing of what is in it.
        200 if Packing::of(whole) == Packing::None => {
            Some((0, header("content-length")?.trim().parse().ok()?))
        }
        206 => {
            let (range, size) = header("content-range")?.trim().rsplit_once('/')?;
            let first = range.rsplit(' ').next()?.split('-').next()?;
            Some((first.parse().ok()?, size.parse().ok()?))
        }
        _ => None,
    }
}

impl HttpTypes {
    /// `None` if the tables do not have them.
    pub(super) fn new(tables: &Tables) -> Option<HttpTypes> {
        let layout = |name: &str| match tables.type_def(tables.type_named(name)?)?.read {
            ReadAs::Layout { layout, .. } => Some(layout),
            _ => None,
        };
        Some(HttpTypes {
            request: tables.message_named("HttpRequest")?,
            reply: tables.message_named("HttpReply")?,
            capability: tables.sym("capability")?,
            seed: tables.sym("seed_capability")?,
            session: tables.sym("session")?,
            header: layout("HttpHeader")?,
            values: layout("HttpHeaderValues")?,
            content: tables.type_named("HttpContent")?,
            llsd: LlsdTypes::new(tables),
        })
    }

    /// Reads a message into a cleared tree. `message` says what is known of its fields.
    pub(super) fn read(self, run: &mut Run<'_>, message: MessageId, whole: &WholeHttp<'_>) {
        let tables = run.tables;
        let Some(def) = tables.message(message) else { return };
        let Some(layout) = def.layout.and_then(|id| Some((id, tables.layout(id)?))) else { return };
        let (id, layout) = layout;
        let mut cursor = Cursor::new(whole.bytes, Buffer::CAPTURED);
        let root = run.open(&cursor, def.name, layout.ty, 0);
        let mut writer = FieldWriter { run, layout: id, at: 0 };
        writer.first_line(whole);
        self.headers(&mut writer, whole);
        if let Some(session) = whole.session {
            writer.computed("session_id", session);
        }
        if let Some(asset) = whole.asset {
            writer.computed("asset_id", &asset.id);
            writer.computed("asset_kind", &asset.kind);
            if let Some((offset, size)) = range_of(whole) {
                writer.computed_number("offset", offset);
                writer.computed_number("size", size);
            }
        }
        cursor.seek(whole.head.length * 8);
        self.body(run, id, cursor, whole);
        if let Some((severity, text, a, b)) = whole.fault {
            run.problem(severity, root, text, a, b);
        }
        run.tree.close(root, whole.bytes.len() * 8);
    }

    fn headers(self, to: &mut FieldWriter<'_, '_>, whole: &WholeHttp<'_>) {
        let Some((name, ty)) = to.field("headers") else { return };
        let list = to.open(name, ty, Kind::List);
        let all = &whole.head.headers;
        let outer = std::mem::replace(&mut to.layout, self.header);
        for (place, (field, value)) in all.iter().enumerate() {
            let ty = to.run.tables.layout(self.header).map_or(TypeRef(0), |layout| layout.ty);
            let header = to.open(Sym::ELEMENT, ty, Kind::Struct);
            to.text("name", *field, value.0.max(field.0 + field.1));
            // What follows a header's value up to the next one's name belongs to it.
            let end =
                all.get(place + 1).map_or(whole.head.length.saturating_sub(2), |next| next.0.0);
            let lower = head::part(whole.bytes, *field).to_ascii_lowercase();
            let known = std::str::from_utf8(&lower)
                .ok()
                .and_then(|name| field_named(to.run.tables, self.values, name));
            if let (Some((name, plain)), known) = (to.field("value"), known) {
                to.text_as(name, known.map_or(plain, |(_, ty)| ty), *value, end);
            }
            to.run.tree.close(header, to.at * 8);
        }
        to.layout = outer;
        to.run.tree.close(list, to.at * 8);
        let end = to.run.tables.end_name();
        to.leaf(end, ty, Kind::Text(TextKind::Utf8), (to.at, 2), whole.head.length, mark::SPAN);
    }

    /// The body, unpacked.
    fn body(self, run: &mut Run<'_>, layout: LayoutId, cursor: Cursor<'_>, whole: &WholeHttp<'_>) {
        let raw = cursor.rest();
        if raw.is_empty() {
            return;
        }
        let mut cursor = cursor;
        let packing = Packing::of(whole);
        if packing == Packing::None && !whole.is_chunked {
            return self.content(run, layout, &mut cursor, whole);
        }
        let start = cursor.pos();
        let origin = match packing {
            Packing::None => BufferOrigin::Reassembled,
            _ => BufferOrigin::Decompressed,
        };
        let region = run.open(&cursor, self.name_of_content(run.tables), self.content, 0);
        run.tree.mark(region, mark::OWN_BUFFER | mark::SEE_THROUGH);
        let (buffer, mut bytes) = run.tree.open_buffer(origin);
        if whole.is_chunked {
            let _ = chunks::walk(raw, &mut |place| bytes.extend_from_slice(head::part(raw, place)));
        } else {
            bytes.extend_from_slice(raw);
        }
        if packing != Packing::None {
            let most = run.state.limits.decompressed;
            let packed = std::mem::take(&mut bytes);
            let (unpacked, why) = packing.unpack(&packed, most);
            bytes = unpacked;
            if let Some(text) = why {
                run.problem(Severity::Error, region, text, bytes.len() as i64, 0);
            }
        }
        self.content(run, layout, &mut Cursor::new(&bytes, buffer), whole);
        run.tree.put_buffer(buffer, bytes);
        run.tree.close(region, start + raw.len() * 8);
    }

    fn name_of_content(self, tables: &Tables) -> Sym {
        tables.sym("content").unwrap_or(Sym::ELEMENT)
    }

    /// What is in the body.
    fn content(
        self,
        run: &mut Run<'_>,
        layout: LayoutId,
        cursor: &mut Cursor<'_>,
        whole: &WholeHttp<'_>,
    ) {
        let tables = run.tables;
        let content = cursor.rest();
        let Some((name, ty)) = field_named(tables, layout, "body") else { return };
        if content.is_empty() {
            return;
        }
        let kind = ContentKind::of(whole, content);
        let body = LlsdBody { name, expected: Some(ty), is_xml_rpc: kind == ContentKind::XmlRpc };
        let start = cursor.pos();
        if matches!(kind, ContentKind::Llsd | ContentKind::XmlRpc)
            && self.llsd.read(run, cursor, body)
        {
            return run.undecoded(cursor);
        }
        let is_text = kind != ContentKind::File && std::str::from_utf8(content).is_ok();
        let place = Node::place(start / 8, content.len());
        let bits = cursor.left_bits() as u32;
        cursor.seek(cursor.limit());
        let node = run.tree.leaf(Node {
            value: place,
            name,
            ty,
            start: start as u32,
            bits,
            buffer: cursor.buffer(),
            kind: if is_text { Kind::Text(TextKind::Utf8) } else { Kind::Bytes },
            ..Node::EMPTY
        });
        match kind {
            ContentKind::File if !is_text => run.tree.mark(node, mark::OPAQUE),
            ContentKind::Llsd => {
                run.problem(Severity::Warning, node, "no LLSD, though the head says so", 0, 0);
            }
            _ if !is_text => run.tree.mark(node, mark::UNEXPLAINED),
            _ => {}
        }
    }

    /// The ID of the session that a login's reply opens.
    pub(super) fn session<'a>(
        self,
        tables: &Tables,
        tree: &'a Tree,
        bytes: &'a [u8],
    ) -> Option<&'a str> {
        let is_session = |node: &&Node| {
            let def = tables.type_def(node.ty);
            let own = def.and_then(|def| def.facts.as_deref()).is_some_and(|facts| facts.own);
            own && tables.identities(node.ty).any(|of| of == self.session)
        };
        text(tree, tree.nodes().iter().find(is_session)?, bytes).filter(|id| !id.is_empty())
    }

    /// The capabilities that a message grants, each with its URL, to `take`.
    pub(super) fn granted(
        self,
        tables: &Tables,
        tree: &Tree,
        bytes: &[u8],
        take: &mut dyn FnMut(&str, &str),
    ) {
        for node in tree.nodes().iter().filter(|node| node.has(mark::SECRET)) {
            let is = |kind| tables.identities(node.ty).any(|of| of == kind);
            let is_seed = is(self.seed);
            if !is_seed && !is(self.capability) {
                continue;
            }
            let Some(url) = text(tree, node, bytes) else { continue };
            let name = match tree.dynamic(node.name) {
                _ if is_seed => "Seed",
                Some(name) => name.raw(),
                None => tables.name(node.name),
            };
            take(url, name);
        }
    }

    /// The message over HTTP with this name.
    pub(super) fn message_named(self, tables: &Tables, name: &str) -> Option<MessageId> {
        let id = tables.message_named(name)?;
        tables.message(id).is_some_and(|def| self.is_own(tables, def.service)).then_some(id)
    }

    /// The node of the body.
    pub(super) fn body_of(self, tables: &Tables, tree: &Tree) -> Option<u32> {
        let name = tables.sym("body")?;
        let at = tree.nodes().iter().position(|node| node.name == name && !node.has(mark::SPAN))?;
        Some(at as u32)
    }

    /// The message whose table has exactly these keys of a body, if there is one alone: that of a
    /// reply whose request was not captured.
    pub(super) fn by_keys(
        self,
        tables: &Tables,
        from: Side,
        tree: &Tree,
        bytes: &[u8],
    ) -> Option<MessageId> {
        let body = self.body_of(tables, tree)?;
        let kind = tree.get(body)?.kind;
        let members = || tree.children(body).filter(|(_, node)| !node.has(mark::SPAN));
        let is_capability = |name: &str| self.message_named(tables, name).is_some();
        if kind == Kind::List {
            let asks =
                members().any(|(_, node)| text(tree, node, bytes).is_some_and(is_capability));
            return tables.message_named("Seed").filter(|_| from == Side::Client && asks);
        }
        if kind != Kind::Struct {
            return None;
        }
        let key = |node: &Node| tree.dynamic(node.name).map(|name| name.raw().to_string());
        let grants = members().any(|(_, node)| {
            let url = text(tree, node, bytes).is_some_and(|url| url.contains("://"));
            url && key(node).is_some_and(|name| is_capability(&name))
        });
        if grants && from == Side::Server {
            return tables.message_named("SeedReply");
        }
        let sender = match from {
            Side::Client => Sender::Client,
            Side::Server => Sender::Server,
        };
        let mut fitting = (0..).map(MessageId).zip(tables.messages()).filter(|(id, def)| {
            // A later file may have declared the message again.
            tables.message_called(def.name) == Some(*id)
                && *id != self.request
                && *id != self.reply
                && def.direction == sender
                && self.is_own(tables, def.service)
                && def.layout.is_some_and(|layout| {
                    let keys = keys_of_body(tables, layout);
                    keys.is_some_and(|keys| {
                        members().count() > 1
                            && members().all(|(_, node)| {
                                key(node)
                                    .is_some_and(|key| field_named(tables, keys, &key).is_some())
                            })
                    })
                })
        });
        let (found, _) = fitting.next()?;
        fitting.next().is_none().then_some(found)
    }

    fn is_own(self, tables: &Tables, service: ServiceId) -> bool {
        tables.message(self.request).is_some_and(|def| def.service == service)
    }
}

/// The keys that a message's body may have, if its table names them.
fn keys_of_body(tables: &Tables, layout: LayoutId) -> Option<LayoutId> {
    let (_, ty) = field_named(tables, layout, "body")?;
    match &tables.type_def(ty)?.read {
        ReadAs::Layout { layout, .. } => Some(*layout),
        ReadAs::Value(ValueRead::Mapping { keys, .. }) => *keys,
        _ => None,
    }
}

/// The text of a node.
pub(super) fn text<'a>(tree: &'a Tree, node: &Node, bytes: &'a [u8]) -> Option<&'a str> {
    match node.kind {
        Kind::Text(TextKind::Owned) => Some(tree.owned(node.value).raw()),
        Kind::Text(TextKind::Utf8) => {
            std::str::from_utf8(head::part(tree.bytes(node.buffer, bytes), node.content())).ok()
        }
        _ => None,
    }
}

/// Writes the fields of a head one behind the other: each begins where the one before ended.
struct FieldWriter<'r, 't> {
    run: &'r mut Run<'t>,
    layout: LayoutId,
    /// All bytes before this one belong to a field.
    at: usize,
}

impl FieldWriter<'_, '_> {
    fn field(&self, name: &str) -> Option<(Sym, TypeRef)> {
        field_named(self.run.tables, self.layout, name)
    }

    fn open(&mut self, name: Sym, ty: TypeRef, kind: Kind) -> u32 {
        let start = (self.at * 8) as u32;
        self.run.tree.leaf(Node { name, ty, start, kind, ..Node::EMPTY })
    }

    /// A field over the bytes up to `end`, with the content at a place in them.
    fn text(&mut self, name: &str, content: Place, end: usize) {
        if let Some((name, ty)) = self.field(name) {
            self.text_as(name, ty, content, end);
        }
    }

    fn text_as(&mut self, name: Sym, ty: TypeRef, content: Place, end: usize) {
        let marks = self.run.tables.type_def(ty).map_or(0, |def| def.marks);
        self.leaf(name, ty, Kind::Text(TextKind::Utf8), content, end, marks);
    }

    fn leaf(
        &mut self,
        name: Sym,
        ty: TypeRef,
        kind: Kind,
        (at, length): Place,
        end: usize,
        marks: u8,
    ) {
        let start = (self.at * 8) as u32;
        let bits = (end.saturating_sub(self.at) * 8) as u32;
        let value = Node::place(at, length);
        self.run.tree.leaf(Node { value, name, ty, start, bits, kind, marks, ..Node::EMPTY });
        self.at = end;
    }

    /// A text that is known from earlier messages, in no bytes of this one.
    fn computed(&mut self, name: &str, text: &str) {
        let Some((name, ty)) = self.field(name) else { return };
        let text = self.run.tree.own_text(text);
        self.text_as(name, ty, (0, 0), self.at);
        let node = self.run.tree.len().saturating_sub(1);
        self.run.tree.amend(node, |node| {
            (node.kind, node.value) = (Kind::Text(TextKind::Owned), text);
        });
    }

    /// A number that follows from others, in no bytes of its own.
    fn computed_number(&mut self, name: &str, number: u64) {
        let Some((name, ty)) = self.field(name) else { return };
        let node = self.run.tree.len();
        self.leaf(name, ty, Kind::Unsigned, (0, 0), self.at, 0);
        self.run.tree.amend(node, |node| node.value = number);
    }

    fn first_line(&mut self, whole: &WholeHttp<'_>) {
        let first = whole.head.headers.first();
        let end = first.map_or(whole.head.length.saturating_sub(2), |(name, _)| name.0);
        let line = head::part(whole.bytes, (0, end));
        let version = memchr::memmem::rfind(line, b"HTTP/").unwrap_or(0);
        match whole.head.line {
            FirstLine::Request { method, target } => {
                self.text("method", method, target.0);
                let node = self.run.tree.len();
                self.text("target", target, version.max(target.0 + target.1));
                if whole.is_capability {
                    self.run.tree.mark(node, mark::SECRET);
                }
                self.text("version", (version, 8), end);
            }
            FirstLine::Reply { status, reason } => {
                let at = memchr::memmem::find(line, b"HTTP/").unwrap_or(0);
                self.text("version", (at, 8), at + 9);
                let behind = if reason.1 == 0 { end } else { reason.0 };
                if let Some((name, ty)) = self.field("status") {
                    let node = self.run.tree.len();
                    self.leaf(name, ty, Kind::Unsigned, (0, 0), behind, 0);
                    self.run.tree.amend(node, |node| node.value = u64::from(status));
                }
                if reason.1 > 0 {
                    self.text("reason", reason, end);
                }
            }
        }
    }
}

/// How a body is compressed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Packing {
    None,
    Gzip,
    Deflate,
}

impl Packing {
    fn of(whole: &WholeHttp<'_>) -> Packing {
        let coded = |word: &str| whole.head.has_word(whole.bytes, "content-encoding", word);
        match () {
            () if coded("gzip") || coded("x-gzip") => Packing::Gzip,
            () if coded("deflate") => Packing::Deflate,
            () => Packing::None,
        }
    }

    /// What is packed in some bytes, up to `most`, and what is wrong with them.
    fn unpack(self, packed: &[u8], most: usize) -> (Vec<u8>, Option<&'static str>) {
        let mut out = Vec::new();
        let limit = most as u64 + 1;
        let read = match self {
            Packing::Gzip => {
                flate2::read::MultiGzDecoder::new(packed).take(limit).read_to_end(&mut out)
            }
            _ => flate2::read::ZlibDecoder::new(packed).take(limit).read_to_end(&mut out),
        };
        let why = match read {
            _ if out.len() > most => {
                out.truncate(most);
                Some(
                    "the content becomes longer than what is kept: {a} bytes in a message \
                     (--max-decompressed)",
                )
            }
            Ok(_) => None,
            Err(_) => Some("the compressed bytes are damaged after {a bytes} of content"),
        };
        (out, why)
    }
}

/// What a body is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ContentKind {
    Llsd,
    XmlRpc,
    /// Without a structure by its nature: a texture, a mesh, a sound.
    File,
    Other,
}

impl ContentKind {
    fn of(whole: &WholeHttp<'_>, content: &[u8]) -> ContentKind {
        let said = whole.head.header(whole.bytes, "content-type").unwrap_or_default();
        let said = said.to_ascii_lowercase();
        let beginning = content.get(..1024).unwrap_or(content);
        let has = |word: &[u8]| memchr::memmem::find(beginning, word).is_some();
        if has(b"<methodCall") || has(b"<methodResponse") {
            return ContentKind::XmlRpc;
        }
        let llsd = said.starts_with(b"application/llsd") || has(b"<llsd") || has(b"<? LLSD/");
        if llsd {
            return ContentKind::Llsd;
        }
        let files: [&[u8]; 5] =
            [b"image/", b"application/octet-stream", b"application/vnd.ll.", b"audio/", b"video/"];
        if files.iter().any(|kind| said.starts_with(kind)) {
            return ContentKind::File;
        }
        ContentKind::Other
    }
}
