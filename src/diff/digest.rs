//! The digest of one capture: sessions, streams, and a few words for each message.
//!
//! Memory is bounded ([`DiffBounds`]). Messages beyond it are counted, but not compared.

use std::borrow::Cow;
use std::collections::HashMap;

use super::bounds::DiffBounds;
use super::content::{ContentHasher, ContentView, HashedMessage, IdentityMark};
use super::hash::{ContentHash, hash_text, mix, mix_content, number, secret_half, text_content};
use super::ignore::IgnoreList;
use super::lane_digest::{LaneDigest, Loss, LossCause};
use crate::facts::{ClientSession, InfoSource, Sessions, TransportStream, definition, refused};
use crate::filter::Filter;
use crate::pipeline::{Output, StreamOver};
use crate::record::{Body, MessageView, Record};
use crate::session::{Event, EventKind, Message, Side, Transport};
use crate::table::{Refusal, Tables};
use crate::tree::{LinkKind, ProblemText, Tree};

/// The digest of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageDigest {
    pub(super) record: u64,
    /// The place of its stream among [`CaptureDigest::streams`].
    pub(super) stream: u32,
    /// Its place among [`CaptureDigest::names`].
    pub(super) name: u32,
    /// Its length in bytes.
    pub(super) length: u32,
    /// Its name, with the classes of objects in it that a number identifies.
    pub(super) sort: u64,
    /// Name and fields, without what is volatile and without identities.
    pub(super) content: ContentHash,
    /// The hash of what differs each time; 0 where there is nothing of that sort.
    pub(super) volatile: u64,
    /// The content with that of the request that it answers, or of the replies to it.
    pub(super) exchange: u64,
    /// Where its identities begin, among [`CaptureDigest::marks`], and where they end.
    pub(super) marks: [u32; 2],
    /// The hash of the reason of its refusal. 0 if it does not refuse.
    pub(super) refused: u64,
    /// The hash of the forms and dialects in which parts of it were read; 0 for the usual ones.
    pub(super) form: u64,
    /// The record that it answers, or 0, and the nanoseconds since then.
    pub(super) reply_to: u64,
    pub(super) elapsed: i64,
    /// The index of the request that it answers, or of the first reply to it. [`NO_PEER`] if there
    /// is none.
    pub(super) peer: u32,
    /// Whether to compare it. Other messages only help with pairing.
    pub(super) wanted: bool,
}

/// A message's name, and what the message carries where the name does not say it.
#[derive(Clone, Debug, Default)]
pub(super) struct MessageName {
    pub(super) message: String,
    pub(super) carries: Option<String>,
}

/// The index of no message.
pub(super) const NO_PEER: u32 = u32::MAX;

/// One stream.
#[derive(Clone, Debug)]
pub(super) struct StreamDigest {
    pub(super) transport: Transport,
    pub(super) number: u32,
    pub(super) protocol: &'static str,
    pub(super) service: String,
    pub(super) first_record: u64,
    /// The client's direction and the server's.
    pub(super) lanes: [LaneDigest; 2],
}

impl StreamDigest {
    pub(super) fn messages(&self) -> impl Iterator<Item = u32> + '_ {
        self.lanes.iter().flat_map(|lane| lane.messages.iter().copied())
    }
}

/// A session.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionDigest {
    pub(super) protocol: String,
    /// The identity that the client stated. Empty if it stated none.
    pub(super) who: String,
    pub(super) first_record: u64,
    /// Its streams, by their places among [`CaptureDigest::streams`], in order of appearance,
    /// without those that are an earlier session's.
    pub(super) streams: Vec<u32>,
}

/// A capture as it is compared.
#[derive(Default)]
pub struct CaptureDigest {
    pub(super) messages: Vec<MessageDigest>,
    pub(super) marks: Vec<IdentityMark>,
    pub(super) names: Vec<MessageName>,
    pub(super) streams: Vec<StreamDigest>,
    pub(super) sessions: Vec<SessionDigest>,
    /// Names of kinds of identities, by their hashes.
    pub(super) kinds: HashMap<u64, String>,
    /// Messages that came after the memory for digests was used up.
    pub(super) beyond: u64,
    /// Messages that were sent again, and are not compared.
    pub(super) sent_again: u64,
}

impl CaptureDigest {
    pub(super) fn message(&self, index: u32) -> Option<&MessageDigest> {
        self.messages.get(index as usize)
    }

    pub(super) fn name(&self, message: &MessageDigest) -> MessageName {
        self.names.get(message.name as usize).cloned().unwrap_or_default()
    }

    /// Bytes of all directions that were captured and could not be read.
    pub(super) fn unread(&self) -> u64 {
        let lanes = self.streams.iter().flat_map(|stream| &stream.lanes);
        lanes
            .flat_map(|lane| {
                [LossCause::Undecoded, LossCause::Closed].map(|cause| lane.unread(cause).0)
            })
            .sum()
    }

    pub(super) fn marks_of(&self, message: &MessageDigest) -> &[IdentityMark] {
        let [from, to] = message.marks;
        self.marks.get(from as usize..to as usize).unwrap_or_default()
    }
}

/// The memory of a stream with its place in maps and its session, roughly, in bytes. While streams
/// are paired, as many bytes again.
const STREAM: usize = 3 * size_of::<StreamDigest>();
/// The same of a name, beside its text.
const NAME: usize = 2 * size_of::<MessageName>() + 128;
/// The same of a message.
const MESSAGE: usize = size_of::<MessageDigest>() + size_of::<u32>();

/// What is known of a message's name.
struct NameFacts {
    place: u32,
    hash: ContentHash,
    may_refuse: bool,
    ignored: bool,
}

/// A session that is over, with as much of it as is compared: there may be very many.
struct SessionOver {
    protocol: String,
    who: String,
    first_record: u64,
    streams: Box<[TransportStream]>,
}

impl SessionOver {
    fn of(session: &ClientSession) -> SessionOver {
        SessionOver {
            protocol: session.protocol.clone(),
            who: who(session),
            first_record: session.first_record,
            streams: session.streams.iter().map(|stream| stream.id).collect(),
        }
    }
}

/// Makes a digest of the records of one capture.
pub struct Digester<'f> {
    digest: CaptureDigest,
    hasher: ContentHasher,
    sessions: Sessions,
    over: Vec<SessionOver>,
    streams: HashMap<u64, u32>,
    names: HashMap<String, NameFacts>,
    ignore: &'f IgnoreList,
    filter: Option<&'f Filter>,
    ignored: Vec<u32>,
    protocols: Vec<&'static str>,
    bounds: DiffBounds,
    /// The memory of the digest, roughly, in bytes.
    held: usize,
}

impl<'f> Digester<'f> {
    /// Compares what `filter` keeps and `ignore` does not leave out. With `strict` also what is
    /// volatile.
    pub fn new(
        ignore: &'f IgnoreList,
        filter: Option<&'f Filter>,
        strict: bool,
        bounds: DiffBounds,
    ) -> Digester<'f> {
        Digester {
            digest: CaptureDigest::default(),
            hasher: ContentHasher::new(strict),
            sessions: Sessions::ties_only(),
            over: Vec::new(),
            streams: HashMap::new(),
            names: HashMap::new(),
            ignore,
            filter,
            ignored: Vec::new(),
            protocols: Vec::new(),
            bounds,
            held: 0,
        }
    }

    fn is_full(&self) -> bool {
        self.held > self.bounds.digest
    }

    /// Keeps what is compared of sessions that are over. A session of which no stream is in the
    /// digest is not compared.
    fn keep(&mut self, sessions: impl IntoIterator<Item = ClientSession>) {
        let known = |id: &TransportStream| self.streams.contains_key(&stream_key(id.0, id.1));
        let over = sessions.into_iter().map(|session| SessionOver::of(&session));
        self.over.extend(over.filter(|session| session.streams.iter().any(known)));
    }

    /// The digest, once every record was seen.
    pub fn finish(mut self) -> CaptureDigest {
        let mut sessions = std::mem::take(&mut self.sessions);
        self.keep(sessions.finish());
        let mut digest = self.digest;
        tie_replies(&mut digest.messages);
        let place = |id: &TransportStream| self.streams.get(&stream_key(id.0, id.1)).copied();
        for SessionOver { protocol, who, first_record, streams } in self.over {
            let streams: Vec<u32> = streams.iter().filter_map(place).collect();
            digest.sessions.push(SessionDigest { protocol, who, first_record, streams });
        }
        digest.sessions.sort_by_key(|session| session.first_record);
        // A stream may belong to several sessions. It is compared as one of the first of them.
        let mut known = vec![false; digest.streams.len()];
        for session in &mut digest.sessions {
            session.streams.retain(|place| {
                let known = known.get_mut(*place as usize);
                known.is_some_and(|known| !std::mem::replace(known, true))
            });
        }
        digest
    }

    /// The place of a record's stream. `None` if there is no room for a further one.
    fn stream(&mut self, record: &Record<'_>) -> Option<u32> {
        let key = stream_key(record.transport, record.stream);
        if let Some(place) = self.streams.get(&key) {
            return Some(*place);
        }
        if self.is_full() {
            return None;
        }
        self.held += STREAM + record.service.len();
        let place = self.digest.streams.len() as u32;
        self.streams.insert(key, place);
        self.digest.streams.push(StreamDigest {
            transport: record.transport,
            number: record.stream,
            protocol: record.protocol,
            service: record.service.to_string(),
            first_record: record.number,
            lanes: Default::default(),
        });
        Some(place)
    }

    fn lane(&mut self, stream: u32, from: Side) -> Option<&mut LaneDigest> {
        self.digest.streams.get_mut(stream as usize)?.lanes.get_mut(from.index())
    }

    /// What is known of a message's name with what the message carries.
    fn name(&mut self, name: &str, carried: Option<&str>, tables: &Tables) -> &NameFacts {
        let whole =
            carried.map_or(Cow::Borrowed(name), |carried| format!("{name} {carried}").into());
        if !self.names.contains_key(&*whole) {
            self.held += NAME + 2 * whole.len();
            let def = tables.message_named(name).and_then(|id| tables.message(id));
            let facts = NameFacts {
                place: self.digest.names.len() as u32,
                hash: text_content(&whole),
                may_refuse: def.is_some_and(|def| def.refusal != Refusal::Never),
                ignored: self.ignore.ignores(name, carried),
            };
            let carries = carried.map(str::to_string);
            self.digest.names.push(MessageName { message: name.to_string(), carries });
            self.names.insert(whole.to_string(), facts);
        }
        static UNKNOWN: NameFacts =
            NameFacts { place: 0, hash: 0, may_refuse: false, ignored: false };
        self.names.get(&*whole).unwrap_or(&UNKNOWN)
    }

    /// Whether the filter keeps a record.
    fn keeps(&self, record: &Record<'_>) -> bool {
        self.filter.is_none_or(|filter| filter.keeps(record))
    }

    fn message(
        &mut self,
        record: &Record<'_>,
        stream: Option<u32>,
        view: &ContentView<'_>,
        message: &Message<'_>,
    ) {
        let Some(stream) = stream.filter(|_| !self.is_full()) else {
            self.digest.beyond += 1;
            return;
        };
        let kept = self.keeps(record);
        let name = message.name.raw();
        let def = definition(message.name, view.message.tables, view.message.tree);
        let carried = InfoSource::new(message, def, view.message, false).carried();
        let &NameFacts { place, hash, may_refuse, ignored } =
            self.name(name, carried.as_deref(), view.message.tables);
        let wanted = kept && !ignored;
        if view
            .message
            .tree
            .links()
            .iter()
            .any(|link| link.kind == LinkKind::SentAgain && link.node == 0)
        {
            self.digest.sent_again += 1;
            return;
        }
        self.learn_kinds(record.protocol, view.message.tables);
        let mut nodes = std::mem::take(&mut self.ignored);
        self.ignore.nodes(record, carried.as_deref(), &mut nodes);
        let from = self.digest.marks.len() as u32;
        let said =
            self.hasher.message(&ContentView { ignored: &nodes, ..*view }, &mut self.digest.marks);
        self.ignored = nodes;
        let HashedMessage { content, sort, volatile } = said;
        let content = mix_content(hash, content);
        let (reply_to, elapsed) = message.reply.map_or((0, 0), |reply| (reply.record, reply.nanos));
        let refused = if may_refuse { refusal(view, message) } else { 0 };
        let digest = MessageDigest {
            record: record.number,
            stream,
            name: place,
            length: message.bytes.len() as u32,
            sort: mix(secret_half(hash), sort),
            content,
            volatile,
            exchange: secret_half(content),
            marks: [from, self.digest.marks.len() as u32],
            refused,
            form: form(view.message.tables, view.message.tree),
            reply_to,
            elapsed,
            peer: NO_PEER,
            wanted,
        };
        let index = self.digest.messages.len() as u32;
        let marks = self.digest.marks.len() - from as usize;
        self.held += MESSAGE + marks * size_of::<IdentityMark>();
        self.digest.messages.push(digest);
        if let Some(lane) = self.lane(stream, record.from) {
            lane.messages.push(index);
        }
    }

    fn learn_kinds(&mut self, protocol: &'static str, tables: &Tables) {
        if self.protocols.contains(&protocol) {
            return;
        }
        self.protocols.push(protocol);
        let all = (0..).map(crate::tree::TypeRef).take_while(|ty| tables.type_def(*ty).is_some());
        for kind in all.flat_map(|ty| tables.identities(ty)) {
            let name = tables.name(kind);
            self.digest.kinds.entry(hash_text(name)).or_insert_with(|| name.to_string());
        }
    }

    fn event(&mut self, record: &Record<'_>, stream: u32, event: &Event) {
        let counts = event.counts();
        let begins = matches!(event.kind, EventKind::Resync { passed_over } if event.offset == Some(passed_over));
        let Some(lane) = self.lane(stream, record.from) else { return };
        if begins && lane.messages.is_empty() && lane.losses.is_empty() {
            lane.joined_late = true;
        }
        self.lose(record, stream, LossCause::Gap, counts.lost);
        self.lose(record, stream, LossCause::Undecoded, counts.undecoded);
    }

    /// Bytes that are in no message, as `record` says.
    fn lose(&mut self, record: &Record<'_>, stream: u32, cause: LossCause, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let wanted = self.keeps(record);
        let full = self.is_full();
        let Some(lane) = self.lane(stream, record.from) else { return };
        let before = lane.messages.len() as u32;
        match lane.losses.last_mut().filter(|last| full && last.cause == cause) {
            Some(last) => last.bytes += bytes,
            None => {
                lane.losses.push(Loss { before, bytes, cause, record: record.number, wanted });
                self.held += size_of::<Loss>();
            }
        }
    }
}

impl Output for Digester<'_> {
    fn record(&mut self, record: &Record<'_>) {
        self.sessions.record(record);
        let over = self.sessions.take_finished();
        self.keep(over);
        let stream = self.stream(record);
        if let Some(known) = stream.and_then(|at| self.digest.streams.get_mut(at as usize))
            && known.service != record.service
        {
            known.service = record.service.to_string();
        }
        match &record.body {
            Body::Message { message, tables, tree } => {
                let view = ContentView {
                    message: MessageView { tables, tree, bytes: message.bytes },
                    ignored: &[],
                };
                self.message(record, stream, &view, message);
            }
            Body::Event(event) => {
                if let Some(stream) = stream {
                    self.event(record, stream, event);
                }
            }
            Body::StreamEnd { counts, .. } => {
                if let Some(stream) = stream {
                    self.lose(record, stream, LossCause::Closed, counts.closed);
                }
            }
        }
    }

    fn stream_over(&mut self, over: &StreamOver<'_>) {
        self.sessions.stream_over(
            (over.key.transport, over.key.number),
            over.counts,
            &over.learned,
        );
    }
}

fn stream_key(transport: Transport, number: u32) -> u64 {
    u64::from(number) | u64::from(transport == Transport::Udp) << 32
}

fn refusal(view: &ContentView<'_>, message: &Message<'_>) -> u64 {
    let def = view
        .message
        .tables
        .message_named(message.name.raw())
        .and_then(|id| view.message.tables.message(id));
    let values = view.message;
    let refused = def.and_then(|def| refused(def, &values));
    refused.map_or(0, |refused| hash_text(&refused.reason(message.name.raw(), &values)) | 1)
}

/// The text that says of a problem in which form something was read; `None` where it says something
/// else.
pub(super) fn form_text(problem: &ProblemText, tables: &Tables) -> Option<u64> {
    match problem {
        ProblemText::Table(sym) if tables.is_dialect(*sym) => Some(u64::from(sym.0)),
        ProblemText::Fixed(text) if *text == crate::table::OTHER_FORM => Some(u64::MAX),
        _ => None,
    }
}

fn form(tables: &Tables, tree: &Tree) -> u64 {
    let mut forms: Vec<ContentHash> = tree
        .problems()
        .iter()
        .filter_map(|problem| {
            let form = form_text(&problem.text, tables)?;
            Some(mix_content(number(form), number(problem.a as u64)))
        })
        .collect();
    forms.sort_unstable();
    forms.dedup();
    secret_half(forms.into_iter().fold(0, mix_content))
}

/// The identity of a client, in words.
fn who(session: &ClientSession) -> String {
    let words = session.latest().into_iter().filter_map(|identity| {
        let name = identity.name.clone().map(|name| format!("\"{name}\""));
        let text = name.or_else(|| identity.id.as_ref().map(ToString::to_string))?;
        Some(format!("{} {text}", identity.kind))
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Adds the content of replies to the `exchange` of their requests, and the other way round.
fn tie_replies(messages: &mut [MessageDigest]) {
    for at in 0..messages.len() {
        let Some((record, content)) = messages.get(at).map(|m| (m.reply_to, m.content)) else {
            continue;
        };
        if record == 0 {
            continue;
        }
        let Ok(request) = messages.binary_search_by_key(&record, |message| message.record) else {
            continue;
        };
        let asked = messages.get(request).map_or(0, |message| secret_half(message.content));
        if let Some(reply) = messages.get_mut(at) {
            reply.exchange = mix(reply.exchange, asked);
            reply.peer = request as u32;
        }
        if let Some(request) = messages.get_mut(request) {
            request.peer = request.peer.min(at as u32);
            request.exchange = mix(request.exchange, secret_half(content));
        }
    }
}
