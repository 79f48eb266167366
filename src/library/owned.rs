//! One record that the user owns: a message with its bytes and its tree, or an event. It is shown
//! through the view that outputs have.

mod about;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use super::error::LibraryError;
use super::fields::{FieldName, FieldProblem, FieldSpan, names_of, problems_of, spans_of};
use super::values::{FieldValue, value_of};
use crate::capture::{Moment, Time};
use crate::digits::counted;
use crate::filter::Paths;
use crate::print::json::{JsonOptions, JsonWriter};
use crate::print::tree::{TreeOptions, TreeWriter};
use crate::print::{Paint, PrintedTime};
use crate::proto::LazyTables;
use crate::record::{Body, Names, Record, RoundTrips, StoredBody, StoredRecord};
use crate::session::{Message, Transport};
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
/// assert_eq!(
///     (record.protocol(), record.type_number(), record.bytes().len()),
///     ("moul", Some(26), 10)
/// );
/// assert_eq!(record.get("fields.trans_id"), Some(7.into()));
/// # Ok::<(), moulsniff::Error>(())
/// ```
pub struct OwnedRecord {
    context: Arc<RecordContext>,
    stored: StoredRecord,
    time: PrintedTime,
}

impl std::fmt::Debug for OwnedRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let StoredRecord { head, body, text, bytes, .. } = &self.stored;
        write!(f, "record {}: ", head.number)?;
        match body {
            StoredBody::Message { .. } => {
                write!(f, "{text} of {}", counted(bytes.len(), "byte"))
            }
            StoredBody::Event(event) => write!(f, "{:?}", event.kind),
            StoredBody::StreamEnd { end, .. } => write!(f, "{end:?}"),
        }
    }
}

/// The state that all records of a run share.
pub(super) struct RecordContext {
    tables: Arc<[LazyTables]>,
    redact: bool,
    paths: Mutex<Vec<(String, Arc<Paths>)>>,
}

impl std::fmt::Debug for RecordContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "tables of {}", counted(self.tables.len(), "protocol"))
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
    pub(super) fn new(
        context: &Arc<RecordContext>,
        record: &Record<'_>,
        time: PrintedTime,
    ) -> OwnedRecord {
        OwnedRecord { context: Arc::clone(context), stored: StoredRecord::new(record), time }
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
        let record = Record {
            number,
            at: Moment::default(),
            start: Time::default(),
            transport: lazy.map_or(Transport::Tcp, |lazy| lazy.protocol().transport()),
            stream: 0,
            src: nowhere,
            dst: nowhere,
            from: message.from,
            protocol: lazy.map_or("", |lazy| lazy.protocol().name()),
            service: message.service,
            round_trips: RoundTrips::default(),
            names: Names::default(),
            body: Body::Message { message, tables, tree },
        };
        let mut owned = OwnedRecord::new(context, &record, PrintedTime::default());
        let mut parts = TreeParts::default();
        let mut copy = Tree::new();
        parts.copy_of(tree);
        parts.put_into(&mut copy);
        owned.take_tree(&mut copy);
        owned
    }

    /// Takes the tree of its message.
    pub(super) fn take_tree(&mut self, from: &mut Tree) {
        self.stored.take_tree(from);
    }

    /// Bytes of memory that it takes beside its tree, roughly.
    pub(super) fn size(&self) -> usize {
        self.stored.size()
    }

    /// The first value at a path, with the paths of filters and columns: `fields.trans_id`,
    /// `fields.items[0].name`, `*.player_id`, `info`, `src`. `None` where the record has none, and
    /// for a path that is wrong.
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
    /// ```
    /// # let record = moulsniff::Decoder::new().open("captures/moul/golden.pcap")?.nth(30).ok_or("none")??;
    /// let results = record.all("*.name")?;
    /// assert_eq!(results[0].as_str(), Some("kNetErrPlayerNotFound"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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

    fn each_at(
        &self,
        path: &str,
        take: &mut dyn FnMut(FieldValue) -> bool,
    ) -> Result<(), LibraryError> {
        let paths = self.context.path(path)?;
        self.view(|record| {
            let scope = paths.scope(record);
            for path in paths.paths() {
                if scope
                    .any(path, &mut |value| value_of(&scope, record, value).is_some_and(&mut *take))
                {
                    return;
                }
            }
        });
        Ok(())
    }

    /// The problems of the message. Empty for an event.
    ///
    /// ```
    /// # let record = moulsniff::Decoder::new().open("captures/moul/golden.pcap")?.nth(30).ok_or("none")??;
    /// let strange = record.problems().iter().filter(|problem| problem.severity == moulsniff::Severity::Error).count();
    /// assert_eq!(strange, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn problems(&self) -> Vec<FieldProblem> {
        self.view(|record| problems_of(record, self.context.redact)).unwrap_or_default()
    }

    /// The names that earlier records of the capture give to numbers and UUIDs in this message.
    /// They are inferred, not on the wire.
    ///
    /// ```
    /// # let record = moulsniff::Decoder::new().open("captures/moul/golden.pcap")?.nth(31).ok_or("none")??;
    /// let names = record.names();
    /// assert_eq!((names[0].field.as_str(), names[0].name.as_str()), ("player_int", "Ávätar Øne"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn names(&self) -> Vec<FieldName> {
        self.view(|record| names_of(record, self.context.redact)).unwrap_or_default()
    }

    /// Where each field lies in the bytes; the fields of the message, counts and gaps included,
    /// tile it exactly. Empty for an event.
    ///
    /// ```
    /// # let record = moulsniff::Decoder::new().decode("moul.auth.client", &[0x1a, 0, 7, 0, 0, 0, 0xe9, 3, 0, 0])?.remove(0);
    /// let names: Vec<String> = record.spans().into_iter().map(|span| span.name).collect();
    /// assert_eq!(names.last().map(String::as_str), Some("node_id"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn spans(&self) -> Vec<FieldSpan> {
        self.view(spans_of).unwrap_or_default()
    }

    /// The record as the program's `--json` prints it, on one line without its end.
    ///
    /// ```
    /// # let record = moulsniff::Decoder::new().decode("moul.auth.client", &[0x1a, 0, 7, 0, 0, 0, 0xe9, 3, 0, 0])?.remove(0);
    /// assert!(record.json().ends_with(r#""fields":{"trans_id":7,"node_id":1001}}"#));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn json(&self) -> String {
        self.json_with(false)
    }

    /// The record as the program's `--json --spans` prints it.
    ///
    /// ```
    /// # let record = moulsniff::Decoder::new().decode("moul.auth.client", &[0x1a, 0, 7, 0, 0, 0, 0xe9, 3, 0, 0])?.remove(0);
    /// assert!(record.json_spans().contains(r#""offset":6,"length":4,"value":1001"#));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn json_spans(&self) -> String {
        self.json_with(true)
    }

    fn json_with(&self, spans: bool) -> String {
        let mut writer = JsonWriter::new(JsonOptions { spans, redact: self.context.redact });
        self.written(|record, out| writer.record(record, out))
    }

    /// The record as the program prints it for the eye: a line, and one for each field. It begins
    /// with the date where the record is the first of its day.
    ///
    /// ```
    /// # let record = moulsniff::Decoder::new().open("captures/moul/golden.pcap")?.nth(30).ok_or("none")??;
    /// assert!(record.tree().contains("kNetErrPlayerNotFound"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tree(&self) -> String {
        let paint = Paint::new(false, Default::default());
        let mut writer = TreeWriter::new(TreeOptions {
            paint,
            redact: self.context.redact,
            ..TreeOptions::default()
        });
        self.written(|record, out| writer.record(record, self.time, out))
    }

    fn written(&self, write: impl FnOnce(&Record<'_>, &mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        self.view(|record| write(record, &mut out));
        if out.last() == Some(&b'\n') {
            out.pop();
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Lends it as outputs are handed records.
    fn view<T>(&self, show: impl FnOnce(&Record<'_>) -> T) -> Option<T> {
        let lazy = LazyTables::of(&self.context.tables, self.stored.protocol())?;
        Some(self.stored.view(lazy.get(), show))
    }
}
