//! Records onto standard output: those that are wanted, in order, written here or by a crew.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use super::args::ReadArgs;
use super::crew::Crew;
use super::error::CliError;
use super::form::Form;
use super::read::filter;
use crate::filter::Filter;
use crate::out::Record;
use crate::out::tree::{History, Pasts};
use crate::pipeline::{Output, Setup};

/// Bytes gathered before they are written, as long as more input is at hand.
const GATHER: usize = 64 << 10;

/// Writes records to a stream.
pub(super) struct Printer<W: Write + Send + 'static> {
    way: Way<W>,
    filter: Option<Filter>,
    history: Option<History>,
    left: u64,
}

/// How records become text.
enum Way<W: Write + Send + 'static> {
    Here(Box<Here<W>>),
    Crew(Box<Crew<W>>),
}

impl<W: Write + Send + 'static> Printer<W> {
    pub(super) fn new(args: &ReadArgs, setup: &Setup, terminal: bool, mut to: W) -> Result<Self, CliError> {
        let mut head = Vec::new();
        let form = Form::new(args, setup, terminal, &mut head)?;
        let history = form.wants_past().then(History::default);
        let filter = filter(args, setup)?;
        to.write_all(&head).map_err(CliError::writing)?;
        let way = match threads(args) {
            1 => Way::Here(Box::new(Here { form, pasts: Pasts::default(), buffer: Vec::new(), to, error: None })),
            threads => Way::Crew(Box::new(Crew::new(form, setup.tables.clone(), to, threads - 1))),
        };
        Ok(Printer { way, filter, history, left: args.count.unwrap_or(u64::MAX) })
    }

    /// Lets go of all records so far, so that they are out soon, whatever comes next.
    pub(super) fn flush(&mut self) {
        match &mut self.way {
            Way::Here(here) => here.flush(),
            Way::Crew(crew) => crew.hand_on(),
        }
    }

    /// Whether nothing more is to be printed: as many as asked for are out, or nobody reads.
    pub(super) fn is_done(&self) -> bool {
        self.left == 0
            || match &self.way {
                Way::Here(here) => here.error.is_some(),
                Way::Crew(crew) => crew.has_failed(),
            }
    }

    /// Writes all that is left.
    ///
    /// # Errors
    /// What went wrong while writing.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        match &mut self.way {
            Way::Here(here) => {
                here.flush();
                here.error.take().map_or(Ok(()), Err)
            }
            Way::Crew(crew) => crew.finish(),
        }
    }
}

impl<W: Write + Send + 'static> Output for Printer<W> {
    fn record(&mut self, record: &Record<'_>) {
        if self.is_done() || self.filter.as_ref().is_some_and(|f| !f.keeps(record)) {
            return;
        }
        self.left -= 1;
        match &mut self.way {
            Way::Here(here) => here.record(record, self.history.as_mut()),
            Way::Crew(crew) => crew.record(record, self.history.as_mut()),
        }
    }
}

/// Writing on the thread that decodes: nothing is copied.
struct Here<W: Write> {
    form: Form,
    pasts: Pasts,
    buffer: Vec<u8>,
    to: W,
    error: Option<io::Error>,
}

impl<W: Write> Here<W> {
    fn record(&mut self, record: &Record<'_>, history: Option<&mut History>) {
        self.pasts.clear(GATHER);
        let past = history.map(|history| history.next(record, &mut self.pasts)).unwrap_or_default();
        self.form.record(record, self.pasts.get(past), &mut self.buffer);
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

/// How many threads to work with: as many as were asked for, or as the machine has; to stop at a record, order counts and not speed.
fn threads(args: &ReadArgs) -> usize {
    match (args.count, args.threads) {
        (Some(_), _) => 1,
        (None, Some(threads)) => usize::from(threads).max(1),
        (None, None) => available_parallelism().map_or(1, NonZeroUsize::get),
    }
}
