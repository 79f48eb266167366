//! Prints the records that a filter keeps onto a stream.

use std::io::{self, Write};
use std::sync::Arc;

use super::batch_sink::BatchSink;
use super::formatter::{Formatter, TextBatches};
use super::ordered::OrderedWriter;
use super::text::{Meter, Text, most_text};
use super::writer::RecordWriter;
use crate::filter::Filter;
use crate::out::tree::{AnnotationStore, Annotations, Annotator};
use crate::out::{Body, Outlined, Record};
use crate::pipeline::Output;

/// How many bytes are collected before they are written, while more input is available.
const BUFFER: usize = 64 << 10;

/// Bytes that an empty buffer keeps allocated.
const KEEP: usize = 2 << 20;

/// How to print records.
#[derive(Clone, Copy, Debug)]
pub struct PrintOptions {
    /// How many threads work. To end after some records, one.
    pub threads: usize,
    /// Bytes of text allowed in addition to those that each byte of a message allows. Messages that
    /// would exceed it are printed without their fields. `None`: no bound.
    pub max_output: Option<u64>,
    /// The run ends when this many records are printed, if one thread works.
    pub limit: u64,
}

/// Prints records onto a stream.
pub struct Printer<W: Write> {
    pub(super) mode: Mode<W>,
    filter: Option<Arc<Filter>>,
}

/// How records become text.
pub(super) enum Mode<W: Write> {
    /// On the thread that decodes.
    Direct(Box<Direct<W>>),
    /// In batches, on several threads.
    Batched(Box<BatchSink<TextBatches<W>>>),
}

impl<W: Write + Send> Printer<W> {
    /// Prints the records that `filter` keeps onto `to`.
    pub fn new(
        mut formatter: Formatter,
        filter: Option<Filter>,
        printing: PrintOptions,
        to: W,
    ) -> Self {
        let PrintOptions { threads, max_output, limit } = printing;
        let meter = Meter::new(max_output);
        formatter.most = most_text(max_output);
        let filter = filter.map(Arc::new);
        let mode = match threads {
            0 | 1 => {
                Mode::Direct(Box::new(Direct::new(formatter, filter.clone(), meter, limit, to)))
            }
            _ => {
                let formatter = formatter.for_batches(filter.clone());
                Mode::Batched(Box::new(BatchSink::new(TextBatches::new(
                    formatter,
                    OrderedWriter::new(meter, to),
                ))))
            }
        };
        Printer { mode, filter }
    }

    /// The filter. After the last record, it knows which of its names occurred.
    pub fn filter(&self) -> Option<&Filter> {
        self.filter.as_deref()
    }

    /// How many messages were printed without their fields.
    pub fn shortened(&self) -> u64 {
        match &self.mode {
            Mode::Direct(direct) => direct.meter.shortened(),
            Mode::Batched(batches) => batches.consumer.ordered.shortened(),
        }
    }

    /// The first error of writing.
    pub fn take_error(&mut self) -> Option<io::Error> {
        match &mut self.mode {
            Mode::Direct(direct) => direct.error.take(),
            Mode::Batched(batches) => batches.consumer.ordered.take_error(),
        }
    }
}

/// Whether a record cannot affect the names that later records show.
fn gives_no_names(record: &Record<'_>) -> bool {
    match &record.body {
        Body::Message { message, tree, .. } => message.reply.is_none() && tree.is_nameless(),
        _ => true,
    }
}

/// Prints on the thread that decodes. Nothing is copied.
pub(super) struct Direct<W: Write> {
    writer: RecordWriter,
    /// The most bytes of text that one message may have.
    most: usize,
    filter: Option<Arc<Filter>>,
    /// Makes the annotations, also for records that the filter drops: later ones depend on them.
    annotator: Option<Annotator>,
    annotations: AnnotationStore,
    /// How many records may still be printed.
    left: u64,
    buffer: Text,
    meter: Meter,
    to: W,
    error: Option<io::Error>,
}

impl<W: Write> Direct<W> {
    fn new(
        formatter: Formatter,
        filter: Option<Arc<Filter>>,
        meter: Meter,
        limit: u64,
        to: W,
    ) -> Self {
        let annotator = formatter.annotator(filter.as_deref());
        let (Formatter { writer, most, .. }, annotations) = (formatter, AnnotationStore::default());
        let left = limit;
        let buffer = Text::default();
        let error = None;
        Direct { writer, most, filter, annotator, annotations, left, buffer, meter, to, error }
    }

    fn is_done(&self) -> bool {
        self.left == 0 || self.error.is_some()
    }

    /// Writes the text collected so far.
    pub(super) fn flush(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        let written = self.meter.write(&self.buffer, &mut self.to);
        self.buffer.clear(KEEP);
        if let Err(error) = written {
            self.error.get_or_insert(error);
        }
    }
}

impl<W: Write> Output for Direct<W> {
    fn record(&mut self, record: &Record<'_>) {
        if self.is_done() {
            return;
        }
        let mut kept = self.filter.is_none();
        if let (Some(filter), Some(annotator)) = (&self.filter, &mut self.annotator)
            && !filter.wants_names()
            && gives_no_names(record)
        {
            kept = filter.keeps(record, Annotations::default());
            if !kept {
                return annotator.pass(record);
            }
        }
        let store = &mut self.annotations;
        store.clear(BUFFER);
        let mut own = self
            .annotator
            .as_mut()
            .map(|annotator| annotator.see(record, store))
            .unwrap_or_default();
        if let Some(filter) = self.filter.as_ref().filter(|_| !kept)
            && !filter.keeps(record, store.get(own))
        {
            return;
        }
        self.annotator.iter_mut().for_each(|annotator| annotator.print(record, &mut own));
        self.left -= 1;
        self.buffer.record(&mut self.writer, record, self.annotations.get(own), self.most);
        if self.buffer.len() >= BUFFER {
            self.flush();
        }
    }

    /// A message that the filter does not drop by its outline needs a tree.
    fn wants_outlines(&self) -> bool {
        self.filter
            .as_ref()
            .is_some_and(|filter| !filter.wants_names() && filter.asks_outlines(false))
    }

    fn chooses_outlines(&self) -> bool {
        self.filter.is_some()
    }

    /// A dropped message may still contain a name that a later record shows.
    fn wants_tree(&mut self, record: &Record<'_, Outlined<'_>>) -> bool {
        let Some(filter) = &self.filter else { return true };
        self.annotator.is_some() && !record.body.outline.is_nameless() || !filter.drops(record)
    }

    /// The filter drops it.
    fn outline(&mut self, record: &Record<'_, Outlined<'_>>) {
        if !self.is_done() {
            self.annotator.iter_mut().for_each(|annotator| annotator.pass(record));
        }
    }

    fn wants_more(&mut self, may_block: bool) -> bool {
        if may_block {
            self.flush();
        }
        !self.is_done()
    }
}
