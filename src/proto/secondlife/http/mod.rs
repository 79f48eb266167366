//! One HTTP connection of a viewer with a simulator or a grid: splits its bytes into requests and
//! replies, ties them, and names them by the capability that they use.
//!
//! `head` and `chunks` know HTTP, `message` fills the tree, `encode` is its inverse, `capabilities`
//! remembers the names of URLs.

mod capabilities;
mod chunks;
mod encode;
mod head;
mod message;
mod recognise;

pub(super) use encode::{compressed_as, encode, says};
pub(super) use recognise::recognise;

use std::collections::VecDeque;
use std::sync::Arc;

use self::capabilities::Capabilities;
use self::chunks::ChunkEnd;
use self::head::{BodyLength, FirstLine, Head, HeadStep};
use self::message::{Asset, HttpTypes, WholeHttp};
use crate::captured::Captured;
use crate::proto::Moment;
use crate::session::{
    Context, Event, EventKind, Message, MessageBytes, Reply, Request, RequestKey, Session, Side,
    StreamBuffer,
};
use crate::table::{Evaluator, Expectation, MessageId, Sender, Tables};
use crate::tree::{Problem, Severity, mark};

/// The most requests that wait for a reply on one connection.
const MAX_ASKED: usize = 256;

/// A connection.
pub(super) struct HttpSession {
    types: Option<HttpTypes>,
    /// The name of its only message.
    named: Option<String>,
    directions: [Direction; 2],
    asked: VecDeque<Asked>,
    /// Requests or replies were lost: a reply belongs to the latest request before it.
    uncertain: bool,
}

/// One direction of it.
#[derive(Default)]
struct Direction {
    stream: StreamBuffer,
    /// Framing is lost.
    lost: bool,
    /// Bytes of a body that follow and are not read.
    skip: u64,
}

/// A request that waits for its reply.
struct Asked {
    /// Its name.
    name: String,
    /// Its message in the tables.
    message: MessageId,
    record: u64,
    at: Moment,
    /// The ID of the session that its capability was granted to.
    session: Option<Arc<str>>,
    /// The asset that it asks for.
    asset: Option<Asset>,
    /// Whether it asks for the head alone.
    is_head: bool,
}

/// What is at the front of a direction's waiting bytes.
enum HttpStep {
    /// A message of so many bytes, its head, and how its body is there.
    Message(usize, Head, Body),
    /// This many bytes are needed.
    Need(usize),
    /// No message.
    No(&'static str),
}

/// A body, as far as its bytes came.
#[derive(Clone, Copy, Default)]
struct Body {
    is_chunked: bool,
    fault: Option<(Severity, &'static str, i64, i64)>,
    /// How many bytes of it follow that are not read.
    skip: u64,
    /// Nothing tells where it ends.
    is_lost: bool,
}

impl HttpSession {
    /// A connection before its first byte.
    /// `named` is the name of its only message, if that is known.
    pub(super) fn new(tables: &Tables, named: Option<&str>) -> HttpSession {
        HttpSession {
            types: HttpTypes::new(tables),
            named: named.map(str::to_string),
            directions: Default::default(),
            asked: VecDeque::new(),
            uncertain: false,
        }
    }

    /// Takes all messages from a direction's waiting bytes. With `last`, no more bytes follow.
    fn messages(&mut self, from: Side, last: bool, at: Moment, context: &mut Context<'_>) {
        let Some(types) = self.types else { return };
        let mut direction = std::mem::take(from.of(&mut self.directions));
        while direction.stream.is_ready() || last && !direction.stream.is_empty() {
            if direction.lost {
                if !self.find(&mut direction, from, at, context) {
                    break;
                }
                continue;
            }
            let bytes = direction.stream.waiting();
            match self.step(from, bytes, last, context.options.max_message, at) {
                HttpStep::Message(length, head, body) => {
                    let bytes = bytes.get(..length).unwrap_or(bytes);
                    let offset = direction.stream.offset();
                    let piece = MessageBytes { from, offset, bytes, at };
                    self.message(types, piece, &head, body, context);
                    direction.stream.advance(length);
                    (direction.skip, direction.lost) = (body.skip, body.is_lost);
                    self.skip(&mut direction, from, at, context);
                }
                HttpStep::Need(length) => {
                    direction.stream.wait_for(length);
                    if last {
                        break;
                    }
                }
                HttpStep::No(text) => {
                    let event = self.event(EventKind::Undecoded, from, text);
                    context.emit.event(at, event.about(direction.stream.offset(), 0));
                    self.uncertain = true;
                    direction.lost = true;
                    direction.stream.pass(1, context.options.max_undecoded);
                }
            }
        }
        *from.of(&mut self.directions) = direction;
    }

    /// What is at the front of some bytes.
    fn step(&self, from: Side, bytes: &[u8], last: bool, most: usize, at: Moment) -> HttpStep {
        let head = match head::read(bytes, from == Side::Server) {
            HeadStep::Head(head) => head,
            HeadStep::Need => return HttpStep::Need(bytes.len() + 1),
            HeadStep::No(text) => return HttpStep::No(text),
        };
        let asked = self.asked_before(at).and_then(|place| self.asked.get(place));
        let rest = bytes.get(head.length..).unwrap_or_default();
        let body = Body::default();
        let fault = |text, a: usize, b: u64| Some((Severity::Error, text, a as i64, b as i64));
        match head.body(bytes, asked.is_some_and(|asked| asked.is_head)) {
            BodyLength::Bytes(length) => {
                let whole = length.saturating_add(head.length as u64);
                let there = rest.len() as u64;
                if whole > most as u64 && bytes.len() >= most.max(head.length) {
                    let kept = rest.len().min(most.saturating_sub(head.length));
                    let text =
                        "the body has {b bytes}, of which the first {a} are kept (--max-message)";
                    let (fault, skip) = (fault(text, kept, length), length - kept as u64);
                    return HttpStep::Message(
                        head.length + kept,
                        head,
                        Body { fault, skip, ..body },
                    );
                }
                if there >= length {
                    return HttpStep::Message(whole as usize, head, body);
                }
                if last {
                    let text = "{a} of the {b bytes} of the body are there: the connection ended, \
                                or bytes are missing";
                    let (fault, skip) = (fault(text, rest.len(), length), length - there);
                    return HttpStep::Message(bytes.len(), head, Body { fault, skip, ..body });
                }
                HttpStep::Need(usize::try_from(whole.min(most as u64)).unwrap_or(usize::MAX))
            }
            BodyLength::Chunks => {
                let body = Body { is_chunked: true, ..body };
                match chunks::walk(rest, &mut |_| {}) {
                    ChunkEnd::Whole(length) => HttpStep::Message(head.length + length, head, body),
                    ChunkEnd::Broken(length) => {
                        let text = "the body has no chunk after {a bytes}, where one is expected";
                        let fault = fault(text, length, 0);
                        let body = Body { fault, is_lost: true, ..body };
                        HttpStep::Message(head.length + length, head, body)
                    }
                    ChunkEnd::Need(_) if last || bytes.len() > most => {
                        let text = match last {
                            true => {
                                "the body's last chunk is missing: the connection ended, or bytes \
                                 are missing"
                            }
                            false => {
                                "the body has more than the {a bytes} that are kept (--max-message)"
                            }
                        };
                        let fault = fault(text, rest.len(), 0);
                        HttpStep::Message(bytes.len(), head, Body { fault, is_lost: true, ..body })
                    }
                    ChunkEnd::Need(length) => HttpStep::Need(head.length + length),
                }
            }
            BodyLength::UntilEnd if last => HttpStep::Message(bytes.len(), head, body),
            BodyLength::UntilEnd if bytes.len() > most => {
                let text = "the body has more than the {a bytes} that are kept (--max-message)";
                let fault = fault(text, rest.len(), 0);
                HttpStep::Message(bytes.len(), head, Body { fault, skip: u64::MAX, ..body })
            }
            BodyLength::UntilEnd => HttpStep::Need(bytes.len() + 1),
            BodyLength::Unreadable => {
                let text = "the length of the body is no number";
                let fault = fault(text, 0, 0);
                let body = Body { fault, is_lost: true, ..body };
                HttpStep::Message(head.length, head, body)
            }
        }
    }

    /// Emits a message.
    fn message(
        &mut self,
        types: HttpTypes,
        MessageBytes { from, offset, bytes, at }: MessageBytes<'_>,
        head: &Head,
        body: Body,
        context: &mut Context<'_>,
    ) {
        let asked = match from {
            Side::Client => None,
            Side::Server => self.asked_before(at),
        };
        let (mut name, mut message, mut session) = match from {
            Side::Client => request_name(types, bytes, head, context),
            Side::Server => {
                reply_name(types, asked.and_then(|place| self.asked.get(place)), context.tables)
            }
        };
        if let Some(named) = self.named.as_deref().filter(|_| name.is_empty())
            && let Some(known) = types.message_named(context.tables, named)
        {
            (name, message) = (named.to_string(), known);
        }
        let asset = match asked.and_then(|place| self.asked.get(place)) {
            Some(asked) => asked.asset.clone(),
            None => Asset::of(bytes, head),
        };
        let whole = WholeHttp {
            bytes,
            head,
            is_chunked: body.is_chunked,
            fault: body.fault,
            is_capability: from == Side::Client && is_capability(bytes, head, &name),
            session: session.as_deref().filter(|_| from == Side::Client),
            asset: asset.as_ref(),
        };
        types.read(&mut context.evaluator.run(context.tables, context.tree), message, &whole);
        if name.is_empty() {
            let found = types.by_keys(context.tables, from, context.tree, bytes);
            if let Some(found) = found {
                message = found;
                types.read(&mut context.evaluator.run(context.tables, context.tree), found, &whole);
                if from == Side::Server {
                    let text = match asked {
                        None => "its request was not captured: it is named by the keys of its body",
                        Some(_) => "its request does not tell its name: the keys of its body do",
                    };
                    context.tree.problem(Problem::new(Severity::Note, 0, text, 0, 0));
                }
            }
            let def = context.tables.message(message);
            name.push_str(def.map_or("", |def| context.tables.name(def.name)));
        }
        if let Some(capabilities) = capabilities(context.evaluator) {
            let (tables, tree) = (context.tables, &*context.tree);
            if from == Side::Server {
                session = types.session(tables, tree, bytes).map(Arc::from).or(session);
            }
            types.granted(tables, tree, bytes, &mut |url, name| {
                capabilities.learn(url, name, session.as_ref());
            });
        }
        let reply = asked.and_then(|place| self.asked.get(place)).map(|asked| asked.reply(at));
        if head.is_interim() {
            context.tree.mark(0, mark::PARTIAL);
        } else if let Some(place) = asked {
            self.asked.drain(..=place);
        }
        let record = context.emit.message(
            at,
            &Message {
                name: Captured::new(&name),
                number: None,
                service: "http",
                from,
                offset,
                bytes,
                reply,
                no_reply: false,
            },
            context.tables,
            context.tree,
        );
        if let FirstLine::Request { method, .. } = head.line {
            let is_head = head::part(bytes, method) == b"HEAD";
            if self.asked.len() >= MAX_ASKED {
                self.asked.pop_front();
                self.uncertain = true;
            }
            self.asked.push_back(Asked { name, message, record, at, session, asset, is_head });
        }
    }

    /// The request that a reply of this frame answers: replies come in the order of requests.
    fn asked_before(&self, at: Moment) -> Option<usize> {
        let before = |asked: &Asked| asked.at.frame <= at.frame;
        if self.uncertain {
            self.asked.iter().rposition(before)
        } else {
            self.asked.front().filter(|asked| before(asked)).map(|_| 0)
        }
    }

    /// Looks for the next message where a piece of the stream begins. Returns whether there is one.
    fn find(
        &mut self,
        direction: &mut Direction,
        from: Side,
        at: Moment,
        context: &mut Context<'_>,
    ) -> bool {
        let bytes = direction.stream.waiting();
        let begins = |place: &usize| {
            bytes.get(*place..).is_some_and(|rest| head::begins(rest, from == Side::Server))
        };
        let place = std::iter::once(0).chain(direction.stream.piece_starts()).find(begins);
        direction.stream.pass(place.unwrap_or(usize::MAX), context.options.max_undecoded);
        if place.is_none() {
            return false;
        }
        direction.lost = false;
        self.resync(direction, from, "an HTTP message begins again", at, context);
        true
    }

    /// Reports the bytes that were passed over.
    fn resync(
        &self,
        direction: &mut Direction,
        from: Side,
        why: &str,
        at: Moment,
        context: &mut Context<'_>,
    ) {
        let passed = direction.stream.take_passed();
        if passed.length == 0 {
            return;
        }
        context.emit.event(at, Event::resync(self.service(), from, passed, why));
    }

    /// Passes over the rest of a body that is not read.
    fn skip(&self, direction: &mut Direction, from: Side, at: Moment, context: &mut Context<'_>) {
        if direction.skip == 0 {
            return;
        }
        let waiting = direction.stream.waiting().len() as u64;
        let here = waiting.min(direction.skip);
        direction.stream.pass(here as usize, context.options.max_undecoded);
        if direction.skip != u64::MAX {
            direction.skip -= here;
        }
        if direction.skip == 0 {
            self.resync(direction, from, "the rest of a body", at, context);
        }
    }

    /// Nothing more is known of what waits in a direction: its message is read as far as it goes.
    fn give_up(&mut self, from: Side, why: &str, at: Moment, context: &mut Context<'_>) {
        self.messages(from, true, at, context);
        let mut direction = std::mem::take(from.of(&mut self.directions));
        let bytes = direction.stream.waiting();
        if !bytes.is_empty() && !direction.lost {
            let length = bytes.len();
            let event = self.event(EventKind::Undecoded, from, why);
            let offset = direction.stream.offset();
            context.emit.event(at, event.showing(offset, bytes, context.options));
            direction.stream.advance(length);
        }
        direction.stream.pass(usize::MAX, context.options.max_undecoded);
        self.resync(&mut direction, from, why, at, context);
        *from.of(&mut self.directions) = direction;
    }

    fn event(&self, kind: EventKind, from: Side, text: &str) -> Event {
        Event::new(kind, "http", from, text)
    }
}

impl Asked {
    fn reply(&self, at: Moment) -> Reply {
        let request = Request {
            message: self.message,
            from: Side::Client,
            key: RequestKey::NONE,
            record: self.record,
            at: self.at,
            answered: false,
            several: false,
        };
        request.reply(at)
    }
}

/// The URLs that the capture has named so far.
fn capabilities(evaluator: &mut Evaluator) -> Option<&mut Capabilities> {
    let store = evaluator.context.get_or_insert_with(|| Box::<Capabilities>::default());
    store.downcast_mut()
}

/// The name of a request and its message in the tables, an empty name if it is not known; and the
/// session of which it is.
fn request_name(
    types: HttpTypes,
    bytes: &[u8],
    head: &Head,
    context: &mut Context<'_>,
) -> (String, MessageId, Option<Arc<str>>) {
    let FirstLine::Request { target, .. } = head.line else {
        return (String::new(), types.request, None);
    };
    let text = |part| String::from_utf8_lossy(part).into_owned();
    let host = text(head.header(bytes, "host").unwrap_or_default());
    let target = text(head::part(bytes, target));
    let granted =
        capabilities(context.evaluator).and_then(|known| known.find(&host, &target)).cloned();
    let session = granted.as_ref().and_then(|granted| granted.session.clone());
    let name = granted.map(|granted| granted.name.to_string()).or_else(|| {
        if let Some(name) = name_in_path(types, context.tables, &target) {
            return Some(name.to_string());
        }
        let body = bytes.get(head.length..).unwrap_or_default();
        method_name(body.get(..1024).unwrap_or(body)).map(str::to_string)
    });
    let Some(name) = name else { return (String::new(), types.request, None) };
    let message = types.message_named(context.tables, &name).unwrap_or(types.request);
    (name, message, session)
}

/// The capability that a path names, as those of OpenSim's asset servers do: `/CAPS/GetTexture/`.
fn name_in_path<'a>(types: HttpTypes, tables: &Tables, target: &'a str) -> Option<&'a str> {
    let (path, _) = target.split_once('?').unwrap_or((target, ""));
    let (_, rest) = path.split_once("/CAPS/")?;
    let is_request = |name: &str| {
        let def = types.message_named(tables, name).and_then(|id| tables.message(id));
        def.is_some_and(|def| def.direction == Sender::Client)
    };
    rest.split('/').next().filter(|name| is_request(name))
}

/// The method that a call of XML-RPC names.
fn method_name(body: &[u8]) -> Option<&str> {
    let at = memchr::memmem::find(body, b"<methodName>")? + b"<methodName>".len();
    let rest = body.get(at..)?;
    let length = memchr::memchr(b'<', rest)?;
    let name = std::str::from_utf8(rest.get(..length)?).ok()?.trim();
    (!name.is_empty()).then_some(name)
}

/// The name of a reply and its message in the tables, an empty name if the request is not known;
/// and the session of which it is.
fn reply_name(
    types: HttpTypes,
    asked: Option<&Asked>,
    tables: &Tables,
) -> (String, MessageId, Option<Arc<str>>) {
    let Some(asked) = asked.filter(|asked| asked.name != "HttpRequest") else {
        return (String::new(), types.reply, None);
    };
    let name = format!("{}Reply", asked.name);
    let message = types.message_named(tables, &name).unwrap_or(types.reply);
    (name, message, asked.session.clone())
}

/// Whether a request's path is a secret: whoever knows a capability's URL can use it.
fn is_capability(bytes: &[u8], head: &Head, name: &str) -> bool {
    let FirstLine::Request { target, .. } = head.line else { return false };
    let target = head::part(bytes, target);
    let has = |word: &[u8]| memchr::memmem::find(target, word).is_some();
    let login = has(b"login") || target == b"/";
    has(b"/CAPS/") || has(b"/CE/") || has(b"/cap/") || !name.is_empty() && !login
}

impl Session for HttpSession {
    fn data(
        &mut self,
        from: Side,
        offset: u64,
        bytes: &[u8],
        at: Moment,
        context: &mut Context<'_>,
    ) {
        if self.types.is_none() {
            let text =
                "the tables do not say how HTTP is laid out: HttpRequest or HttpReply is missing";
            let event = self.event(EventKind::Undecoded, from, text);
            return context.emit.event(at, event.showing(offset, bytes, context.options));
        }
        let mut direction = std::mem::take(from.of(&mut self.directions));
        direction.stream.push(bytes, at);
        self.skip(&mut direction, from, at, context);
        *from.of(&mut self.directions) = direction;
        self.messages(from, false, at, context);
    }

    fn gap(&mut self, from: Side, offset: u64, length: u64, at: Moment, context: &mut Context<'_>) {
        self.give_up(from, "cut off by a gap", at, context);
        context.emit.event(at, Event::gap("http", from, offset, length));
        let direction = from.of(&mut self.directions);
        direction.stream.jump(offset.saturating_add(length));
        if direction.skip != u64::MAX {
            // The rest of a body may be longer than the gap, and then its end is known.
            direction.lost |= direction.skip < length || direction.skip == 0;
            direction.skip = direction.skip.saturating_sub(length);
        }
        self.uncertain = true;
    }

    fn held(&self) -> usize {
        let waiting: usize = self.directions.iter().map(|d| d.stream.held()).sum();
        let names: usize = self.asked.iter().map(|asked| asked.name.capacity()).sum();
        waiting + names + self.asked.capacity() * size_of::<Asked>()
    }

    fn relieve(&mut self, at: Moment, context: &mut Context<'_>) {
        for from in [Side::Client, Side::Server] {
            let waiting = from.of(&mut self.directions).stream.waiting().len();
            if waiting > 0 {
                let text = Event::given_up_text(waiting);
                let event = self.event(EventKind::Limit { limit: "max-total" }, from, &text);
                context.emit.event(at, event);
                self.give_up(from, "given up to make room", at, context);
                from.of(&mut self.directions).stream.shrink();
                let direction = from.of(&mut self.directions);
                direction.lost |= direction.skip == 0;
            }
        }
        self.asked = VecDeque::new();
        self.uncertain = true;
    }

    fn end(&mut self, from: Side, at: Moment, context: &mut Context<'_>) {
        self.give_up(from, "the connection ended within a message", at, context);
        if from == Side::Client || self.uncertain {
            return;
        }
        for asked in std::mem::take(&mut self.asked) {
            // The server lets a long poll wait until something happens.
            let def = context.tables.message(asked.message);
            if def.is_some_and(|def| def.expects == Some(Expectation::Nothing)) {
                continue;
            }
            let text = format!("{}, record {}, never got its reply", asked.name, asked.record);
            let waited = asked.reply(at).nanos;
            let Asked { name: message, record: request, .. } = asked;
            let kind = EventKind::Unanswered { request, message, waited, part: false };
            context.emit.event(at, Event::new(kind, "http", Side::Client, text));
        }
    }

    fn service(&self) -> &str {
        "http"
    }
}
