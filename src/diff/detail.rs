//! The fields of the messages that differ, copied out of their trees when a capture is read for the
//! second time.
//!
//! Memory is bounded ([`DiffBounds`]): messages beyond it are reported only as different.

use std::collections::HashMap;

use super::bounds::DiffBounds;
use super::content::{ContentHasher, ContentView, IdentityMark};
use super::digest::form_text;
use super::hash::ContentHash;
use super::ignore::IgnoreList;
use crate::facts::{InfoSource, refused, write_info};
use crate::pipeline::Output;
use crate::print::json::{JsonOptions, JsonWriter};
use crate::print::{problem_path, problem_text};
use crate::record::{Body, MessageView, Names, Record};
use crate::session::Message;
use crate::tree::{Kind, Node};

/// Memory that an allocation takes beside what was asked for, roughly.
pub(super) const ALLOCATION: usize = 24;
/// Bytes of a value without parts; the rest of a longer one is counted and not shown.
const MAX_VALUE: usize = 16 << 10;

/// A value of a message, with what is needed to compare it.
#[derive(Clone, Debug)]
pub(super) struct DetailValue {
    /// Its field's name; empty for an element of a list.
    pub(super) name: String,
    pub(super) content: DetailContent,
    /// The hash of its content, without identities.
    pub(super) hash: ContentHash,
    pub(super) marks: Vec<IdentityMark>,
    /// It is not compared.
    pub(super) left_out: bool,
    /// The order of its elements means nothing.
    pub(super) unordered: bool,
}

/// What a value holds.
#[derive(Clone, Debug)]
pub(super) enum DetailContent {
    /// A value without parts, as JSON.
    Leaf(String),
    Struct(Vec<DetailValue>),
    List(Vec<DetailValue>),
}

/// A message that differs.
#[derive(Clone, Debug)]
pub(super) struct DetailMessage {
    /// What it is about, in a line.
    pub(super) info: String,
    pub(super) fields: DetailValue,
    /// The path of the field that refuses, its value as JSON, and why in a word.
    pub(super) refused: Option<[String; 3]>,
    /// For each part read in an unusual form: its path, and the form in words.
    pub(super) forms: Vec<[String; 2]>,
}

/// Messages by their record numbers.
#[derive(Default)]
pub struct DetailStore {
    messages: HashMap<u64, DetailMessage>,
    bytes: usize,
}

impl DetailStore {
    pub(super) fn get(&self, record: u64) -> Option<&DetailMessage> {
        self.messages.get(&record)
    }
}

/// Collects the messages with certain record numbers.
pub struct DetailCollector<'f> {
    /// In ascending order.
    wanted: Vec<u64>,
    next: usize,
    store: DetailStore,
    hasher: ContentHasher,
    ignore: &'f IgnoreList,
    json: JsonWriter,
    redact: bool,
    bounds: DiffBounds,
}

impl<'f> DetailCollector<'f> {
    /// Collects the records `wanted`, which are in ascending order. With `redact`, secrets are not
    /// shown.
    pub fn new(
        wanted: Vec<u64>,
        ignore: &'f IgnoreList,
        strict: bool,
        redact: bool,
        bounds: DiffBounds,
    ) -> DetailCollector<'f> {
        DetailCollector {
            wanted,
            next: 0,
            store: DetailStore::default(),
            hasher: ContentHasher::new(strict),
            ignore,
            json: JsonWriter::new(JsonOptions { spans: false, redact }),
            redact,
            bounds,
        }
    }

    /// The collected messages.
    pub fn finish(self) -> DetailStore {
        self.store
    }

    fn keep(&mut self, record: &Record<'_>, view: &ContentView<'_>, message: &Message<'_>) {
        let def = view
            .message
            .tables
            .message_named(message.name.raw())
            .and_then(|id| view.message.tables.message(id));
        let source = InfoSource::new(message, def, view.message, self.redact);
        let mut ignored = Vec::new();
        self.ignore.nodes(record, source.carried().as_deref(), &mut ignored);
        let view = ContentView { ignored: &ignored, ..*view };
        let Some(root) = view.message.tree.get(0) else { return };
        let mut size = 0;
        let fields = self.value(&view, 0, root, &mut size);
        let mut info = String::new();
        write_info(source, Names::default(), &mut info);
        let values = view.message;
        let refused = def.and_then(|def| refused(def, &values)).map(|refused| {
            let path =
                field_path(&problem_path(view.message.tree, view.message.tables, refused.node));
            let value = if refused.is_by_field() {
                self.leaf(&view, refused.node)
            } else {
                "true".to_string()
            };
            [path, value, refused.reason(message.name.raw(), &values)]
        });
        let other = view
            .message
            .tree
            .problems()
            .iter()
            .filter(|problem| form_text(&problem.text, view.message.tables).is_some());
        let forms = other.map(|problem| {
            let path =
                field_path(&problem_path(view.message.tree, view.message.tables, problem.node));
            [path, problem_text(problem, view.message.tables, view.message.tree)]
        });
        let forms = forms.collect();
        self.store.bytes += size + info.len() + size_of::<DetailMessage>() + 4 * ALLOCATION;
        self.store.messages.insert(record.number, DetailMessage { info, fields, refused, forms });
    }

    fn value(
        &mut self,
        view: &ContentView<'_>,
        index: u32,
        node: &Node,
        size: &mut usize,
    ) -> DetailValue {
        let role = self.hasher.role(view.message.tables, node.ty).cloned().unwrap_or_default();
        let ignored = view.ignored.binary_search(&index).is_ok();
        let mut marks = Vec::new();
        let hash = self.hasher.node(view, index, &mut marks);
        let content = match node.kind {
            Kind::Struct => DetailContent::Struct(self.parts(view, index, size)),
            Kind::List => DetailContent::List(self.parts(view, index, size)),
            _ => DetailContent::Leaf(self.leaf(view, index)),
        };
        if let DetailContent::Leaf(text) = &content {
            *size += text.len();
        }
        *size +=
            size_of::<DetailValue>() + marks.len() * size_of::<IdentityMark>() + 3 * ALLOCATION;
        let name = view
            .message
            .tree
            .dynamic(node.name)
            .map_or_else(|| view.message.tables.name(node.name), |name| name.raw());
        *size += name.len();
        DetailValue {
            name: name.to_string(),
            content,
            hash,
            marks,
            left_out: role.volatile || ignored,
            unordered: role.unordered,
        }
    }

    fn parts(&mut self, view: &ContentView<'_>, index: u32, size: &mut usize) -> Vec<DetailValue> {
        view.message
            .tree
            .members(index)
            .map(|(at, node)| self.value(view, at, node, size))
            .collect()
    }

    /// A value without parts as JSON.
    fn leaf(&mut self, view: &ContentView<'_>, index: u32) -> String {
        let mut out = Vec::new();
        self.json.value(view.message, index, &mut out);
        let text = String::from_utf8_lossy(&out);
        match text.char_indices().nth(MAX_VALUE) {
            Some((end, _)) if text.starts_with('"') => {
                // A cut must not fall into an escape.
                let cut = text.get(..end).unwrap_or_default().trim_end_matches('\\');
                let cut = cut
                    .rfind('\\')
                    .filter(|at| cut.len() - at < 12)
                    .map_or(cut, |at| cut.get(..at).unwrap_or(cut));
                format!("{cut}… ({} characters)\"", text.chars().count() - 2)
            }
            _ => text.into_owned(),
        }
    }
}

impl Output for DetailCollector<'_> {
    fn record(&mut self, record: &Record<'_>) {
        while self.wanted.get(self.next).is_some_and(|wanted| *wanted < record.number) {
            self.next += 1;
        }
        if self.wanted.get(self.next) != Some(&record.number) {
            return;
        }
        self.next += 1;
        if let Body::Message { message, tables, tree } = &record.body
            && self.store.bytes < self.bounds.details
        {
            self.keep(
                record,
                &ContentView {
                    message: MessageView { tables, tree, bytes: message.bytes },
                    ignored: &[],
                },
                message,
            );
        }
    }

    fn wants_more(&mut self, _may_block: bool) -> bool {
        self.next < self.wanted.len()
    }
}

/// A path as filters write it.
fn field_path(path: &str) -> String {
    if path.is_empty() { "fields".to_string() } else { format!("fields.{path}") }
}

impl DetailValue {
    /// The value as JSON.
    pub(super) fn json(&self) -> String {
        let all = |parts: &[DetailValue], text: &dyn Fn(&DetailValue) -> String| {
            parts.iter().map(text).collect::<Vec<_>>().join(",")
        };
        match &self.content {
            DetailContent::Leaf(text) => text.clone(),
            DetailContent::List(parts) => format!("[{}]", all(parts, &DetailValue::json)),
            DetailContent::Struct(parts) => {
                let member = |part: &DetailValue| {
                    format!("{}:{}", serde_json::Value::from(part.name.as_str()), part.json())
                };
                format!("{{{}}}", all(parts, &member))
            }
        }
    }
}
