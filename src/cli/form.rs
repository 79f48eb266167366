//! The form that was asked for: JSON, trees or columns. One writer of it a thread.

use super::args::{ReadArgs, When};
use super::columns::Columns;
use super::error::CliError;
use crate::out::json::{JsonOptions, JsonWriter};
use crate::out::tree::{Annotations, TreeOptions, TreeWriter};
use crate::out::{Paint, Record};
use crate::pipeline::Setup;

/// Writes records, each without regard to those before it.
#[derive(Clone)]
pub(super) enum Form {
    /// `--json`
    Json(JsonWriter),
    /// Trees.
    Tree(TreeWriter),
    /// `--columns`, `--csv`
    Columns(Box<Columns>),
}

impl Form {
    /// The form that was asked for; what stands at the output's beginning is appended at once.
    pub(super) fn new(args: &ReadArgs, setup: &Setup, terminal: bool, out: &mut Vec<u8>) -> Result<Form, CliError> {
        if args.columns.is_some() || args.csv {
            return Ok(Form::Columns(Box::new(Columns::new(args, setup, out)?)));
        }
        if args.json {
            return Ok(Form::Json(JsonWriter::new(JsonOptions { spans: args.spans, redact: args.redact })));
        }
        let paint = Paint::new(coloured(args.color, terminal));
        Ok(Form::Tree(TreeWriter::new(TreeOptions { paint, redact: args.redact, bytes: args.bytes })))
    }

    /// Whether `annotations` has to be known of each record.
    pub(super) fn wants_annotations(&self) -> bool {
        matches!(self, Form::Tree(_))
    }

    /// Appends a record; `annotations` is what those before it have to do with it.
    pub(super) fn record(&mut self, record: &Record<'_>, annotations: Annotations<'_>, out: &mut Vec<u8>) {
        match self {
            Form::Json(writer) => writer.record(record, out),
            Form::Tree(writer) => writer.record(record, annotations, out),
            Form::Columns(columns) => columns.record(record, out),
        }
    }
}

/// Whether to use colour.
pub(super) fn coloured(when: When, terminal: bool) -> bool {
    match when {
        When::Always => true,
        When::Never => false,
        When::Auto => terminal && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
    }
}
