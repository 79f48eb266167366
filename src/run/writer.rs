//! Prints records as JSON, as trees, or in columns. Each formatting thread has a copy of
//! the writer.

use super::columns::Columns;
use super::least_text::least_text;
use crate::print::json::JsonWriter;
use crate::print::oneline::OneLineWriter;
use crate::print::tree::TreeWriter;
use crate::print::{PrintedTime, Zone};
use crate::record::{Body, Names, Record};
use crate::tree::{Problem, Severity, Tree};

/// The problem that replaces fields which are left out.
const LEFT_OUT: &str =
    "fields are left out: they would be more text than --max-output allows for this capture";

/// Writes single records.
#[derive(Clone)]
pub enum RecordWriter {
    /// `--json`
    Json(Box<JsonWriter>),
    /// Trees.
    Tree(Box<TreeWriter>),
    /// `--oneline`
    OneLine(Box<OneLineWriter>),
    /// `--columns`, `--csv`
    Columns(Box<Columns>),
}

impl RecordWriter {
    /// Whether it shows the [names](crate::record::Record::names) of records.
    pub fn wants_names(&self) -> bool {
        match self {
            RecordWriter::Json(_) | RecordWriter::Tree(_) | RecordWriter::OneLine(_) => true,
            RecordWriter::Columns(columns) => columns.wants_names(),
        }
    }

    /// The zone of its times.
    pub(super) fn zone(&self) -> Zone {
        match self {
            RecordWriter::Tree(writer) => writer.zone(),
            RecordWriter::OneLine(writer) => writer.zone(),
            RecordWriter::Json(_) | RecordWriter::Columns(_) => Zone::default(),
        }
    }

    /// Appends a record. Returns false as soon as its text would exceed `most` bytes. The caller
    /// then drops what was appended.
    pub(super) fn record(
        &mut self,
        record: &Record<'_>,
        time: PrintedTime,
        most: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        match self {
            RecordWriter::Json(_) | RecordWriter::Tree(_) if is_too_long(record, most) => {
                return false;
            }
            RecordWriter::Json(writer) => writer.record(record, out),
            RecordWriter::Tree(writer) => writer.record(record, time, out),
            RecordWriter::OneLine(writer) => writer.record(record, time, out),
            RecordWriter::Columns(columns) => {
                return columns.record(record, most, out);
            }
        }
        true
    }

    /// Appends a record without its fields, and with a problem that says so.
    pub(super) fn shortened(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        let Body::Message { message, tables, tree: whole } = record.body else { return };
        let mut tree = Tree::new();
        whole.nodes().first().map(|message| tree.leaf(*message));
        tree.problem(Problem::new(Severity::Warning, 0, LEFT_OUT, 0, 0));
        let body = Body::Message { message, tables, tree: &tree };
        // Names are about fields.
        let record = Record { body, names: Names::default(), ..*record };
        self.record(&record, PrintedTime::default(), usize::MAX, out);
    }
}

fn is_too_long(record: &Record<'_>, most: usize) -> bool {
    let Body::Message { message, tree, .. } = &record.body else { return false };
    least_text(tree, 0, message.bytes, most) > most
}
