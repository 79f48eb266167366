//! Runs a command: reads captures, decodes them, and passes the records to an output, on one thread
//! or on several.
//!
//! A [`Reading`] says what is read. A [`CaptureRun`] opens it and reads it to its end into any
//! [`Output`]. A [`Printer`] is the output that prints records; it may run on several threads. This
//! folder knows captures, the pipeline and outputs. It knows no option of the command line and no
//! exit status.
//!
//! A command that reads captures is therefore one file in `cli/`, which resolves what was typed
//! into a plan, and one [`Output`].

mod ahead;
mod batch_sink;
mod choice;
mod columns;
mod error;
mod format_queue;
mod formatter;
mod frame_source;
mod interrupt;
mod keep;
mod least_text;
mod on_panic;
mod ordered;
mod pipe;
mod printer;
mod progress;
mod read_loop;
mod replayer;
mod sequencer;
mod text;
mod workers;
mod writer;

use std::io::{self, Stdout, Write};
use std::path::PathBuf;
use std::sync::Arc;

pub use columns::Columns;
pub use error::RunError;
pub use format_queue::{FormatBatch, FormatQueue};
pub use formatter::Formatter;
pub use frame_source::{FrameInput, list_interfaces};
pub use interrupt::{end_is_requested, exit_on_signal, unless_interrupted, watch_signals};
pub use printer::{PrintOptions, Printer};
pub use progress::{Beside, Progress};
pub use writer::RecordWriter;

use crate::filter::Filter;
use crate::out::Replay;
use crate::output_file::Inputs;
use crate::pipeline::{Output, Pipeline, Setup};
use crate::session::Preparations;
use batch_sink::BatchSink;
use printer::Mode;
use read_loop::ReadLoop;
use replayer::Replayer;

/// What to read, and how.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Where frames come from.
    pub input: FrameInput,
    /// All files that are read, keys and tables included. None of them may be overwritten.
    pub inputs: Inputs,
    /// The pcapng file for the frames that were read.
    pub keep: Option<PathBuf>,
    /// How many threads work, at least one. Only a [`Printer`], a [`Replay`] and compressed
    /// captures use more than one.
    pub threads: usize,
    /// Only errors are printed on standard error.
    pub quiet: bool,
}

/// How a run ended.
pub struct RunOutcome {
    /// The pipeline at its end: its counts, the streams that no protocol recognised, and the keys,
    /// including those in the capture.
    pub pipeline: Pipeline,
    /// A signal ended the run before the captures were read to their end. For standard input, a
    /// growing file and an interface a signal is the normal end, and this is `false`.
    pub interrupted: bool,
    /// The first error of reading, or of writing frames. Everything before it was decoded and
    /// passed to the output.
    pub error: Option<RunError>,
}

impl RunOutcome {
    /// Takes the error of a run that read no frame. Such a run should not replace an older file.
    pub(crate) fn take_error_of_nothing_read(&mut self) -> Option<RunError> {
        if self.pipeline.summary().flow.frames == 0 { self.error.take() } else { None }
    }
}

/// A run that is ready to begin.
pub struct CaptureRun {
    read_loop: ReadLoop,
    pipeline: Pipeline,
    threads: usize,
    /// What a thread does ahead while another one decodes into an [`Output`].
    preparations: Option<Arc<Preparations>>,
    quiet: bool,
}

impl CaptureRun {
    /// Opens the input.
    ///
    /// # Errors
    /// If an interface or a file to write cannot be opened. Captures are opened later, one after
    /// another.
    pub fn new(reading: &Reading, setup: Setup) -> Result<CaptureRun, RunError> {
        let read_loop = ReadLoop::new(reading)?;
        let Reading { threads, quiet, .. } = *reading;
        let preparations = (threads > 1).then(ahead::preparations_of_a_thread);
        Ok(CaptureRun { read_loop, pipeline: Pipeline::new(setup), threads, preparations, quiet })
    }

    /// Standard output, which may share a terminal with the progress line of this run.
    pub fn stdout(&self) -> Beside<Stdout> {
        self.read_loop.progress().beside(io::stdout())
    }

    /// Formats batches for an [`Output`] that this run reads into. If the reading asks for several
    /// threads, another one does part of it.
    pub fn format_queue<F: FormatBatch, W: Write + Send + 'static>(
        &self,
        format: F,
        to: W,
    ) -> FormatQueue<F, W> {
        FormatQueue::new(format, to, self.preparations.clone())
    }

    /// Reads everything into `out`, on this thread. If the reading asks for several threads,
    /// another one does ahead what sessions ask for.
    pub fn into_output(mut self, out: &mut dyn Output) -> RunOutcome {
        let preparations = self.preparations.take();
        self.pipeline.set_preparations(preparations.clone());
        self.read_loop.run(&mut self.pipeline, out);
        self.pipeline.finish(out);
        preparations.iter().for_each(|preparations| preparations.end());
        self.ended()
    }

    /// Reads everything and prints it, on as many threads as the reading asks for. The output does
    /// not depend on their number.
    ///
    /// If the reading asks for several threads, the printer must have been made for several.
    pub fn into_printer<W: Write + Send>(mut self, printer: &mut Printer<W>) -> RunOutcome {
        match &mut printer.mode {
            Mode::Batched(sink) => {
                workers::run(&mut self.read_loop, &mut self.pipeline, sink, self.threads)
            }
            Mode::Direct(direct) => {
                self.read_loop.run(&mut self.pipeline, &mut **direct);
                self.pipeline.finish(&mut **direct);
                direct.flush();
            }
        }
        self.ended()
    }

    /// Reads everything and counts it, on as many threads as the reading asks for. What `to` gets
    /// does not depend on their number: the records in order, and which of them `filter` keeps. The
    /// filter may not need [names](Filter::wants_names), and the setup has no pseudonyms.
    pub fn into_replay<O: Replay + Send>(
        mut self,
        to: &mut O,
        filter: Option<Arc<Filter>>,
    ) -> RunOutcome {
        let mut sink = BatchSink::new(Replayer::new(to, filter, self.pipeline.setup()));
        workers::run(&mut self.read_loop, &mut self.pipeline, &mut sink, self.threads);
        self.ended()
    }

    fn ended(self) -> RunOutcome {
        let interrupted = self.read_loop.was_interrupted();
        RunOutcome {
            pipeline: self.pipeline,
            interrupted,
            error: self.read_loop.into_error(self.quiet),
        }
    }
}
