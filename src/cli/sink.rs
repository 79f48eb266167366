//! Records onto standard output, in the form that was asked for.

use std::io::{self, Write};

use super::args::{ReadArgs, When};
use super::columns::Columns;
use super::error::CliError;
use super::read::filter;
use crate::filter::Filter;
use crate::out::json::{JsonWriter, Style as JsonStyle};
use crate::out::tree::{History, Past, Style as TreeStyle, TreeWriter};
use crate::out::{Paint, Record};
use crate::pipeline::{Output, Setup};

/// Bytes gathered before they are written, as long as more input is at hand.
const GATHER: usize = 64 << 10;

enum Form {
    Json(JsonWriter),
    Tree(TreeWriter),
    Columns(Columns),
}

/// Writes records to a stream.
pub(super) struct Printer<W: Write> {
    form: Form,
    filter: Option<Filter>,
    history: History,
    past: Past,
    buffer: Vec<u8>,
    to: W,
    left: u64,
    error: Option<io::Error>,
}

impl<W: Write> Printer<W> {
    pub(super) fn new(args: &ReadArgs, setup: &Setup, terminal: bool, to: W) -> Result<Self, CliError> {
        let mut buffer = Vec::new();
        let form = if args.columns.is_some() || args.csv {
            Form::Columns(Columns::new(args, setup, &mut buffer)?)
        } else if args.json {
            Form::Json(JsonWriter::new(JsonStyle { spans: args.spans, redact: args.redact }))
        } else {
            let paint = Paint::new(coloured(args.color, terminal));
            let writer = TreeWriter::new(TreeStyle { paint, redact: args.redact, bytes: args.bytes });
            Form::Tree(writer)
        };
        let filter = filter(args, setup)?;
        let left = args.count.unwrap_or(u64::MAX);
        Ok(Printer { form, filter, history: History::default(), past: Past::default(), buffer, to, left, error: None })
    }

    /// Writes what was gathered.
    pub(super) fn flush(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        let written = self.to.write_all(&self.buffer).and_then(|()| self.to.flush());
        self.buffer.clear();
        if let Err(error) = written {
            self.error.get_or_insert(error);
        }
    }

    /// Whether nothing more is to be printed: as many as asked for are out, or nobody reads.
    pub(super) fn is_done(&self) -> bool {
        self.left == 0 || self.error.is_some()
    }

    /// What went wrong while writing.
    pub(super) fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }
}

impl<W: Write> Output for Printer<W> {
    fn record(&mut self, record: &Record<'_>) {
        if self.is_done() || self.filter.as_ref().is_some_and(|f| !f.keeps(record)) {
            return;
        }
        self.left -= 1;
        match &mut self.form {
            Form::Json(writer) => writer.record(record, &mut self.buffer),
            Form::Tree(writer) => {
                self.history.next(record, &mut self.past);
                writer.record(record, &self.past, &mut self.buffer);
            }
            Form::Columns(columns) => columns.record(record, &mut self.buffer),
        }
        if self.buffer.len() >= GATHER {
            self.flush();
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
