//! One record that the user owns: a message with its bytes and its tree, or an event. It is shown through the view that outputs have.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::error::LibraryError;
use super::fields::{FieldName, FieldProblem, FieldSpan, names_of, problems_of, spans_of};
use super::values::{FieldValue, value_of};
use crate::capture::Moment;
use crate::captured::Captured;
use crate::facts::{definition, refused};
use crate::filter::Paths;
use crate::out::json::{JsonOptions, JsonWriter};
use crate::out::tree::{AnnotationRange, AnnotationStore, Annotations, TreeOptions, TreeWriter};
use crate::out::{Body, Counts, EndedBy, Paint, Record, event_word, format_time};
use crate::proto::{Event, LazyTables, Message, Reply, Side, Transport};
use crate::record::RoundTrips;
use crate::table::Tables;
use crate::tree::{Tree, TreeParts};

/// Paths that are kept compiled.
const PATHS: usize = 256;

/// A message or an event of a capture, with its place in it.
///
/// It owns its bytes and fields, and can be kept, or sent to another thread.
///
/// ```
/// let decoder = moulsniff::Decoder::new();
/// let record = &decoder.decode("moul.auth.client", &[0x1a, 0, 7, 0, 0, 0, 0xe9, 3, 0, 0])?[0];
/// assert_eq!((record.protocol(), record.type_number(), record.bytes().len()), ("moul", Some(26), 10));
/// assert_eq!(record.get("fields.trans_id"), Some(7.into()));
/// # Ok::<(), moulsniff::Error>(())
/// ```
#[derive(Debug)]
pub struct OwnedRecord {
    context: Arc<RecordContext>,
    head: OwnedHead,
    body: OwnedBody,
    annotations: OwnAnnotations,
}

#[derive(Debug)]
struct OwnedHead {
    number: u64,
    at: Moment,
    transport: Transport,
    stream: u32,
    src: SocketAddr,
    dst: SocketAddr,
    from: Side,
    protocol: &'static str,
    service: String,
    round_trips: RoundTrips,
}

enum OwnedBody {
    Message(OwnedMessage),
    Event(Event),
    StreamEnd { end: EndedBy, text: String, counts: Counts },
}

struct OwnedMessage {
    name: String,
    number: Option<u64>,
    offset: u64,
    bytes: Vec<u8>,
    reply: Option<Reply>,
    no_reply: bool,
    /// Missing for a moment, until the pipeline hands it over.
    tree: Option<Tree>,
}

impl std::fmt::Debug for OwnedBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OwnedBody::Message(message) => write!(f, "{} of {} bytes", message.name, message.bytes.len()),
            OwnedBody::Event(event) => write!(f, "{:?}", event.kind),
            OwnedBody::StreamEnd { end, .. } => write!(f, "{end:?}"),
        }
    }
}

/// What earlier records call the numbers in a record.
#[derive(Default)]
pub(super) struct OwnAnnotations {
    pub(super) store: AnnotationStore,
    pub(super) range: AnnotationRange,
}

impl std::fmt::Debug for OwnAnnotations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} names", self.store.get(self.range).names().count())
    }
}

/// What all records of a run share.
pub(super) struct RecordContext {
    tables: Arc<[LazyTables]>,
    redact: bool,
    paths: Mutex<Vec<(String, Arc<Paths>)>>,
}

impl std::fmt::Debug for RecordContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "tables of {} protocols", self.tables.len())
    }
}

impl RecordContext {
    pub(super) fn new(tables: Arc<[LazyTables]>, redact: bool) -> RecordContext {
        RecordContext { tables, redact, paths: Mutex::default() }
    }

    /// A path, compiled once.
    fn path(&self, text: &str) -> Result<Arc<Paths>, LibraryError> {
        let mut known = self.paths.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((_, paths)) = known.iter().find(|(path, _)| path == text) {
            return Ok(Arc::clone(paths));
        }
        let paths = Arc::new(Paths::compile(text, &self.tables, self.redact)?);
        if known.len() >= PATHS {
            known.remove(0);
        }
        known.push((text.to_owned(), Arc::clone(&paths)));
        Ok(paths)
    }
}

impl OwnedRecord {
    /// A copy of a record; a message's tree is still missing.
    pub(super) fn new(context: &Arc<RecordContext>, record: &Record<'_>, annotations: OwnAnnotations) -> OwnedRecord {
        let body = match &record.body {
            Body::Message { message, .. } => OwnedBody::Message(OwnedMessage::new(message, None)),
            Body::Event(event) => OwnedBody::Event((*event).clone()),
            Body::StreamEnd { end, text, counts } => {
                OwnedBody::StreamEnd { end: *end, text: (*text).to_owned(), counts: *counts }
            }
        };
        let Record { number, at, transport, stream, src, dst, from, protocol, round_trips, .. } = *record;
        let service = record.service.to_owned();
        let head = OwnedHead { number, at, transport, stream, src, dst, from, protocol, service, round_trips };
        OwnedRecord { context: Arc::clone(context), head, body, annotations }
    }

    /// A message that comes from no capture.
    pub(super) fn alone(
        context: &Arc<RecordContext>,
        message: &Message<'_>,
        tables: &Tables,
        tree: &Tree,
        number: u64,
    ) -> OwnedRecord {
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let lazy = LazyTables::of(&context.tables, tables.protocol());
        let head = OwnedHead {
            number,
            at: Moment::default(),
            transport: lazy.map_or(Transport::Tcp, |lazy| lazy.protocol().transport()),
            stream: 0,
            src: nowhere,
            dst: nowhere,
            from: message.from,
            protocol: lazy.map_or("", |lazy| lazy.protocol().name()),
            service: message.service.to_owned(),
            round_trips: RoundTrips::default(),
        };
        let (mut parts, mut copy) = (TreeParts::default(), Tree::new());
        parts.copy_of(tree);
        parts.put_into(&mut copy);
        let body = OwnedBody::Message(OwnedMessage::new(message, Some(copy)));
        OwnedRecord { context: Arc::clone(context), head, body, annotations: OwnAnnotations::default() }
    }

    /// Takes the tree of its message, if that is missing.
    pub(super) fn take_tree(&mut self, from: &mut Tree) {
        if let OwnedBody::Message(OwnedMessage { tree: tree @ None, .. }) = &mut self.body {
            *tree = Some(std::mem::take(from));
        }
    }

    /// Bytes of memory that it takes beside its tree, roughly.
    pub(super) fn size(&self) -> usize {
        let own = match &self.body {
            OwnedBody::Message(message) => message.bytes.len() + message.name.len(),
            OwnedBody::Event(event) => event.bytes.len() + event.text.len(),
            OwnedBody::StreamEnd { text, .. } => text.len(),
        };
        size_of::<OwnedRecord>() + own
    }

    /// Its number, from 1, counted before any filter.
    pub fn number(&self) -> u64 {
        self.head.number
    }

    /// The number of the frame that completed it, from 1, as Wireshark numbers it; 0 for a message without a capture.
    pub fn frame(&self) -> u64 {
        self.head.at.frame
    }

    /// When that frame was captured.
    pub fn time(&self) -> SystemTime {
        let time = self.head.at.time;
        let whole = Duration::from_secs(time.seconds.unsigned_abs());
        let at = if time.seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
        at.and_then(|at| at.checked_add(Duration::from_nanos(time.nanos.into()))).unwrap_or(UNIX_EPOCH)
    }

    /// The same in RFC 3339, with the capture's own number of decimals.
    pub fn time_text(&self) -> String {
        let mut text = String::new();
        format_time(self.head.at.time, &mut text);
        text
    }

    /// TCP or UDP.
    pub fn transport(&self) -> Transport {
        self.head.transport
    }

    /// The stream's number, from 0, as Wireshark counts the streams of a transport.
    pub fn stream(&self) -> u32 {
        self.head.stream
    }

    /// The sender.
    pub fn src(&self) -> SocketAddr {
        self.head.src
    }

    /// The receiver.
    pub fn dst(&self) -> SocketAddr {
        self.head.dst
    }

    /// Which side sent it.
    pub fn from(&self) -> Side {
        self.head.from
    }

    /// The protocol's name.
    pub fn protocol(&self) -> &str {
        self.head.protocol
    }

    /// The service's name; empty for a message without a capture.
    pub fn service(&self) -> &str {
        &self.head.service
    }

    /// The message's name; `None` for an event.
    pub fn message(&self) -> Option<&str> {
        self.owned_message().map(|message| message.name.as_str())
    }

    /// The event's name, such as `gap` or `stream_end`; `None` for a message.
    pub fn event(&self) -> Option<&'static str> {
        self.view(|record, _| event_word(&record.body)).filter(|word| !word.is_empty())
    }

    /// What an event says to people; `None` for a message.
    pub fn text(&self) -> Option<&str> {
        match &self.body {
            OwnedBody::Message(_) => None,
            OwnedBody::Event(event) => Some(&event.text),
            OwnedBody::StreamEnd { text, .. } => Some(text),
        }
    }

    /// The message's number as on the wire, where it has one.
    pub fn type_number(&self) -> Option<u64> {
        self.owned_message().and_then(|message| message.number)
    }

    /// The message's bytes, decrypted; empty for an event.
    pub fn bytes(&self) -> &[u8] {
        self.owned_message().map_or(&[], |message| &message.bytes)
    }

    /// Offset of the message's first byte in its direction of the stream; 0 in a datagram, and for an event.
    pub fn offset(&self) -> u64 {
        self.owned_message().map_or(0, |message| message.offset)
    }

    /// The number of the record that this one answers.
    pub fn reply_to(&self) -> Option<u64> {
        Some(self.owned_message()?.reply?.record)
    }

    /// The time since the record that this one answers.
    pub fn elapsed(&self) -> Option<Duration> {
        let nanos = self.owned_message()?.reply?.nanos;
        Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(0)))
    }

    /// Why the message says no, in a word: the name of the result, or its number, or the message's own name. `None` if it does not.
    pub fn refused(&self) -> Option<String> {
        self.view(|record, _| {
            let Body::Message { message, tables, tree } = &record.body else { return None };
            let refused = refused(definition(message.name, tables, tree)?, tables, tree)?;
            Some(refused.reason(message.name.raw()))
        })?
    }

    /// The first value at a path, with the paths of filters and columns: `fields.trans_id`, `fields.items[0].name`, `*.player_id`, `info`, `src`. `None` where the record has
    /// none, and for a path that is wrong.
    ///
    /// ```
    /// # let records = moulsniff::Decoder::new().decode("moul.auth.client", &[0x1a, 0, 7, 0, 0, 0, 0xe9, 3, 0, 0])?;
    /// let node = records[0].get("fields.node_id").and_then(|value| value.as_u64());
    /// assert_eq!(node, Some(1001));
    /// # Ok::<(), moulsniff::Error>(())
    /// ```
    pub fn get(&self, path: &str) -> Option<FieldValue> {
        self.try_get(path).ok()?
    }

    /// The same, with an error for a path that is wrong.
    ///
    /// ```
    /// # let records = moulsniff::Decoder::new().decode("moul.auth.client", &[0x1a, 0, 7, 0, 0, 0, 0xe9, 3, 0, 0])?;
    /// let mistake = records[0].try_get("fields.transid").err().ok_or("no mistake")?;
    /// assert!(mistake.to_string().contains("did you mean `trans_id`?"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The path is none, or has names that no table knows.
    pub fn try_get(&self, path: &str) -> Result<Option<FieldValue>, LibraryError> {
        let mut first = None;
        self.each_at(path, &mut |value| {
            first = Some(value);
            true
        })?;
        Ok(first)
    }

    /// All values at a path: with `[*]` or `*.` there may be several.
    ///
    /// # Errors
    /// The path is none, or has names that no table knows.
    pub fn all(&self, path: &str) -> Result<Vec<FieldValue>, LibraryError> {
        let mut all = Vec::new();
        self.each_at(path, &mut |value| {
            all.push(value);
            false
        })?;
        Ok(all)
    }

    fn each_at(&self, path: &str, take: &mut dyn FnMut(FieldValue) -> bool) -> Result<(), LibraryError> {
        let paths = self.context.path(path)?;
        self.view(|record, annotations| {
            let scope = paths.scope(record, annotations);
            for path in paths.paths() {
                if scope.any(path, &mut |value| value_of(&scope, record, value).is_some_and(&mut *take)) {
                    return;
                }
            }
        });
        Ok(())
    }

    /// What is odd about the message, in its place; empty for an event.
    pub fn problems(&self) -> Vec<FieldProblem> {
        self.view(|record, _| problems_of(record, self.context.redact)).unwrap_or_default()
    }

    /// What earlier records of the capture call the numbers and UUIDs in this message. Inferred, never on the wire.
    pub fn names(&self) -> Vec<FieldName> {
        self.view(|record, annotations| names_of(record, annotations, self.context.redact)).unwrap_or_default()
    }

    /// Where each field lies in the bytes; the fields of the message, counts and gaps included, tile it exactly. Empty for an event.
    pub fn spans(&self) -> Vec<FieldSpan> {
        self.view(|record, _| spans_of(record)).unwrap_or_default()
    }

    /// The record as the program's `--json` prints it, on one line without its end.
    pub fn json(&self) -> String {
        self.json_with(false)
    }

    /// The record as the program's `--json --spans` prints it.
    pub fn json_spans(&self) -> String {
        self.json_with(true)
    }

    fn json_with(&self, spans: bool) -> String {
        let mut writer = JsonWriter::new(JsonOptions { spans, redact: self.context.redact });
        self.written(|record, annotations, out| writer.record(record, annotations, out))
    }

    /// The record as the program prints it for the eye: a line, and one for each field. It begins with the date where the record is the first of its day.
    pub fn tree(&self) -> String {
        let paint = Paint::new(false, Default::default());
        let mut writer = TreeWriter::new(TreeOptions { paint, redact: self.context.redact, ..TreeOptions::default() });
        self.written(|record, annotations, out| writer.record(record, annotations, out))
    }

    fn written(&self, write: impl FnOnce(&Record<'_>, Annotations<'_>, &mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        self.view(|record, annotations| write(record, annotations, &mut out));
        if out.last() == Some(&b'\n') {
            out.pop();
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    fn owned_message(&self) -> Option<&OwnedMessage> {
        match &self.body {
            OwnedBody::Message(message) => Some(message),
            _ => None,
        }
    }

    /// Lends it as outputs are handed records.
    fn view<T>(&self, show: impl FnOnce(&Record<'_>, Annotations<'_>) -> T) -> Option<T> {
        let OwnedHead { number, at, transport, stream, src, dst, from, protocol, round_trips, .. } = self.head;
        let service = self.head.service.as_str();
        let message;
        let body = match &self.body {
            OwnedBody::Message(own) => {
                let OwnedMessage { number, offset, ref bytes, reply, no_reply, .. } = *own;
                message =
                    Message { name: Captured::new(&own.name), number, service, from, offset, bytes, reply, no_reply };
                let tables = LazyTables::of(&self.context.tables, protocol)?.get();
                Body::Message { message: &message, tables, tree: own.tree.as_ref()? }
            }
            OwnedBody::Event(event) => Body::Event(event),
            OwnedBody::StreamEnd { end, text, counts } => Body::StreamEnd { end: *end, text, counts: *counts },
        };
        let record = Record { number, at, transport, stream, src, dst, from, protocol, service, round_trips, body };
        Some(show(&record, self.annotations.store.get(self.annotations.range)))
    }
}

impl OwnedMessage {
    fn new(message: &Message<'_>, tree: Option<Tree>) -> OwnedMessage {
        OwnedMessage {
            name: message.name.raw().to_owned(),
            number: message.number,
            offset: message.offset,
            bytes: message.bytes.to_vec(),
            reply: message.reply,
            no_reply: message.no_reply,
            tree,
        }
    }
}
