//! Records onto standard output: those that are wanted, written here or gathered for a crew.

use std::io::{self, Write};

use super::args::ReadArgs;
use super::crew::Gather;
use super::error::CliError;
use super::feed::threads;
use super::form::Form;
use super::read::{filter, verdict};
use crate::filter::Filter;
use crate::out::tree::{AnnotationStore, Annotator};
use crate::out::{Outlined, Record};
use crate::pipeline::{Output, Setup};
use crate::tree::Tree;

/// Bytes gathered before they are written, as long as more input is at hand.
const GATHER: usize = 64 << 10;

/// Writes records to a stream.
pub(super) struct Printer<W: Write> {
    way: Way<W>,
    filter: Option<Filter>,
    left: u64,
}

/// How records become text.
enum Way<W: Write> {
    Here(Box<Here<W>>),
    Crew(Box<Gather<W>>),
}

impl<W: Write> Printer<W> {
    pub(super) fn new(args: &ReadArgs, setup: &Setup, terminal: bool, mut to: W) -> Result<Self, CliError> {
        let mut head = Vec::new();
        let form = Form::new(args, setup, terminal, &mut head)?;
        let filter = filter(args, setup)?;
        to.write_all(&head).map_err(CliError::writing)?;
        let way = match threads(args) {
            1 => {
                let history = form.wants_annotations().then(Annotator::default);
                let (annotation_store, buffer) = (AnnotationStore::default(), Vec::new());
                Way::Here(Box::new(Here { form, history, annotation_store, buffer, to, error: None }))
            }
            _ => Way::Crew(Box::new(Gather::new(form, setup, to))),
        };
        Ok(Printer { way, filter, left: args.count.unwrap_or(u64::MAX) })
    }

    /// Writes what was gathered here.
    pub(super) fn flush(&mut self) {
        if let Way::Here(here) = &mut self.way {
            here.flush();
        }
    }

    /// What is gathered for a crew.
    pub(super) fn gather(&mut self) -> Option<&mut Gather<W>> {
        match &mut self.way {
            Way::Here(_) => None,
            Way::Crew(gather) => Some(gather),
        }
    }

    /// Whether nothing more is to be printed: as many as asked for are out, or nobody reads.
    pub(super) fn is_done(&self) -> bool {
        self.left == 0
            || match &self.way {
                Way::Here(here) => here.error.is_some(),
                Way::Crew(gather) => gather.has_failed(),
            }
    }

    /// Whether the filter turned out to be a mistake.
    pub(super) fn verdict(&self, quiet: bool) -> Result<(), CliError> {
        verdict(self.filter.as_ref(), quiet)
    }

    /// What went wrong while writing.
    pub(super) fn take_error(&mut self) -> Option<io::Error> {
        match &mut self.way {
            Way::Here(here) => here.error.take(),
            Way::Crew(gather) => gather.take_error(),
        }
    }
}

impl<W: Write> Output for Printer<W> {
    fn record(&mut self, record: &Record<'_>) {
        if self.is_done() || self.filter.as_ref().is_some_and(|f| !f.keeps(record)) {
            return;
        }
        self.left -= 1;
        match &mut self.way {
            Way::Here(here) => here.record(record),
            Way::Crew(gather) => gather.record(record),
        }
    }

    /// A crew can read messages when it writes them; a filter looks into them before that.
    fn wants_outlines(&self) -> bool {
        match &self.way {
            Way::Here(_) => false,
            Way::Crew(gather) => self.filter.is_none() && gather.makes_haste(),
        }
    }

    fn outline(&mut self, record: &Record<'_, Outlined<'_>>) {
        if self.is_done() {
            return;
        }
        self.left -= 1;
        if let Way::Crew(gather) = &mut self.way {
            gather.outline(record);
        }
    }

    fn spent(&mut self, tree: &mut Tree) {
        if let Way::Crew(gather) = &mut self.way {
            gather.take(tree);
        }
    }
}

/// Writing on the thread that decodes: nothing is copied.
struct Here<W: Write> {
    form: Form,
    history: Option<Annotator>,
    annotation_store: AnnotationStore,
    buffer: Vec<u8>,
    to: W,
    error: Option<io::Error>,
}

impl<W: Write> Here<W> {
    fn record(&mut self, record: &Record<'_>) {
        self.annotation_store.clear(GATHER);
        let annotations =
            self.history.as_mut().map(|history| history.next(record, &mut self.annotation_store)).unwrap_or_default();
        self.form.record(record, self.annotation_store.get(annotations), &mut self.buffer);
        if self.buffer.len() >= GATHER {
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
