//! The output that prints records: those that a filter keeps, as a writer writes them, onto a stream.

use std::io::{self, Write};

use super::batch_sink::BatchSink;
use super::formatter::Formatter;
use super::writer::RecordWriter;
use crate::filter::Filter;
use crate::out::tree::{AnnotationStore, Annotator};
use crate::out::{Outlined, Record};
use crate::pipeline::Output;
use crate::tree::Tree;

/// Bytes that are collected before they are written, as long as more input is at hand.
const BUFFER: usize = 64 << 10;

/// Prints records onto a stream.
pub struct Printer<W: Write> {
    mode: Mode<W>,
    filter: Option<Filter>,
    /// With a filter and batches, finds annotations here: it has to see the records that the filter drops, which no batch has.
    annotator: Option<Annotator>,
    /// How many records may still be printed.
    left: u64,
}

/// How records become text.
enum Mode<W: Write> {
    /// On the thread that decodes.
    Direct(Box<Direct<W>>),
    /// In batches, on several threads.
    Batched(Box<BatchSink<W>>),
}

impl<W: Write> Printer<W> {
    /// Prints the records that `filter` keeps onto `to`, with `threads` threads.
    pub fn new(formatter: Formatter, filter: Option<Filter>, threads: usize, to: W) -> Self {
        let mut formatter = formatter;
        let annotator = if filter.is_some() && threads > 1 { formatter.take_annotator() } else { None };
        let mode = match threads {
            0 | 1 => Mode::Direct(Box::new(Direct::new(formatter.writer, to))),
            _ => Mode::Batched(Box::new(BatchSink::new(formatter, to))),
        };
        Printer { mode, filter, annotator, left: u64::MAX }
    }

    /// Ends the run after `count` records.
    #[must_use]
    pub fn stopping_after(self, count: u64) -> Self {
        Printer { left: count, ..self }
    }

    /// The filter, which at the end knows whether any of its names was ever met.
    pub fn filter(&self) -> Option<&Filter> {
        self.filter.as_ref()
    }

    /// The first error of writing.
    pub fn take_error(&mut self) -> Option<io::Error> {
        match &mut self.mode {
            Mode::Direct(direct) => direct.error.take(),
            Mode::Batched(batches) => batches.ordered.take_error(),
        }
    }

    /// Whether it prints in batches.
    pub(super) fn is_batched(&self) -> bool {
        matches!(self.mode, Mode::Batched(_))
    }

    /// Its batches, where it prints in batches.
    pub(super) fn batches(&mut self) -> Option<&mut BatchSink<W>> {
        match &mut self.mode {
            Mode::Direct(_) => None,
            Mode::Batched(batches) => Some(batches),
        }
    }

    /// Writes what was collected on this thread.
    pub(super) fn flush(&mut self) {
        if let Mode::Direct(direct) = &mut self.mode {
            direct.flush();
        }
    }

    /// Whether nothing more is to be printed: enough records are out, or writing failed.
    pub(super) fn is_done(&self) -> bool {
        self.left == 0
            || match &self.mode {
                Mode::Direct(direct) => direct.error.is_some(),
                Mode::Batched(batches) => batches.ordered.has_failed(),
            }
    }
}

impl<W: Write> Output for Printer<W> {
    fn record(&mut self, record: &Record<'_>) {
        if self.is_done() {
            return;
        }
        let annotator = match &mut self.mode {
            Mode::Direct(direct) => &mut direct.annotator,
            Mode::Batched(_) => &mut self.annotator,
        };
        if self.filter.as_ref().is_some_and(|f| !f.keeps(record)) {
            if let Some(annotator) = annotator {
                annotator.learn(record);
            }
            return;
        }
        self.left -= 1;
        match &mut self.mode {
            Mode::Direct(direct) => direct.record(record),
            Mode::Batched(batches) => batches.record(record, self.annotator.as_mut()),
        }
    }

    /// Batches can read a message when they print it. A filter needs its tree before that.
    fn wants_outlines(&self) -> bool {
        match &self.mode {
            Mode::Direct(_) => false,
            Mode::Batched(batches) => self.filter.is_none() && batches.is_waited_for(),
        }
    }

    fn outline(&mut self, record: &Record<'_, Outlined<'_>>) {
        if self.is_done() {
            return;
        }
        self.left -= 1;
        if let Mode::Batched(batches) = &mut self.mode {
            batches.outline(record);
        }
    }

    fn take_tree(&mut self, tree: &mut Tree) {
        if let Mode::Batched(batches) = &mut self.mode {
            batches.take(tree);
        }
    }

    /// Batches pause the run when they have enough to print; a direct printer ends it when it is done.
    fn wants_more(&mut self, may_block: bool) -> bool {
        match &mut self.mode {
            Mode::Direct(direct) if may_block => direct.flush(),
            Mode::Batched(batches) if batches.is_enough(may_block) => return false,
            _ => {}
        }
        !self.is_done()
    }
}

/// Prints on the thread that decodes. Nothing is copied.
struct Direct<W: Write> {
    writer: RecordWriter,
    annotator: Option<Annotator>,
    annotations: AnnotationStore,
    buffer: Vec<u8>,
    to: W,
    error: Option<io::Error>,
}

impl<W: Write> Direct<W> {
    fn new(writer: RecordWriter, to: W) -> Self {
        let annotator = writer.annotator();
        Direct { writer, annotator, annotations: AnnotationStore::default(), buffer: Vec::new(), to, error: None }
    }

    fn record(&mut self, record: &Record<'_>) {
        self.annotations.clear(BUFFER);
        let store = &mut self.annotations;
        let own = self.annotator.as_mut().map(|annotator| annotator.next(record, store)).unwrap_or_default();
        self.writer.record(record, self.annotations.get(own), &mut self.buffer);
        if self.buffer.len() >= BUFFER {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        let written = self.to.write_all(&self.buffer).and_then(|()| self.to.flush());
        self.buffer.clear();
        if let Err(error) = written {
            self.error.get_or_insert(error);
        }
    }
}
