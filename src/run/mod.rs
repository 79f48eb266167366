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

mod columns;
mod error;
mod frame_source;
mod interrupt;
mod keep;
mod least_text;
mod pipe;
mod pool;
mod printer;
mod progress;
mod read_loop;
mod text;
mod writer;

use std::io::{self, Stdout, Write};
use std::path::PathBuf;

pub use columns::Columns;
pub use error::RunError;
pub use frame_source::{FrameInput, list_interfaces};
pub use interrupt::{
    end_is_requested, exit_on_signal, outlive_large_files, unless_interrupted, watch_signals,
};
pub use pool::{FormatBatch, FormatPool, TextSink};
pub use printer::Printer;
pub use progress::{Beside, Progress};
pub use writer::RecordWriter;

use crate::facts::FilesFacts;
use crate::output_file::Inputs;
use crate::pipeline::{Concluding, Diagnosis, Output, Pipeline, Setup};
use read_loop::ReadLoop;
use text::Meter;

/// What to read, and how.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Where frames come from.
    pub input: FrameInput,
    /// All files that are read, keys and tables included. None of them may be overwritten.
    pub inputs: Inputs,
    /// The pcapng file for the frames that were read.
    pub keep: Option<PathBuf>,
    /// How many threads work, at least one. Only a [`Printer`] and compressed captures use more
    /// than one.
    pub threads: usize,
    /// Only errors are printed on standard error.
    pub quiet: bool,
    /// The names of the captures, where they are read in another order than given.
    pub sorted: Vec<String>,
}

/// How a run ended.
pub struct RunOutcome {
    /// The pipeline at its end: its counts, the streams that no protocol recognised, and the keys,
    /// including those in the capture.
    pub pipeline: Pipeline,
    /// What is wrong in the captures, where somebody wants to know it.
    pub diagnosis: Option<Diagnosis>,
    /// The files that were read.
    pub files: FilesFacts,
    /// A signal ended the run before the captures were read to their end. For standard input, a
    /// growing file and an interface a signal is the normal end, and this is `false`.
    pub interrupted: bool,
    /// The first error of reading, or of writing frames. Everything before it was decoded and
    /// passed to the output.
    pub error: Option<RunError>,
}

impl RunOutcome {
    /// Takes the error of a run that should not replace an older file: it read no frame, or the
    /// system could not read on. Of a capture that is damaged or cut, what there is may be all that
    /// there ever is.
    pub(crate) fn take_error_of_nothing_read(&mut self) -> Option<RunError> {
        let nothing = self.pipeline.summary().flow.frames == 0;
        self.error.take_if(|error| nothing || error.is_of_reading())
    }
}

/// A run that is ready to begin.
pub struct CaptureRun {
    read_loop: ReadLoop,
    pipeline: Pipeline,
    diagnosis: Option<Diagnosis>,
    threads: usize,
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
        // The summary names the worst; who wants no summary wants none of it.
        let diagnosis = (!quiet).then(Diagnosis::default);
        Ok(CaptureRun { read_loop, pipeline: Pipeline::new(setup), diagnosis, threads, quiet })
    }

    /// Standard output, which may share a terminal with the progress line of this run.
    pub fn stdout(&self) -> Beside<Stdout> {
        self.read_loop.progress().beside(io::stdout())
    }

    /// Formats batches for an [`Output`] that this run reads into, on as many threads as the
    /// reading asks for.
    pub fn format_pool<F: FormatBatch, W: Write + Send + 'static>(
        &self,
        format: F,
        to: W,
    ) -> FormatPool<F, W> {
        FormatPool::new(format, Meter::new(None), to, self.threads)
    }

    /// The same run, which finds out what is wrong in the captures as `diagnosis` does it.
    #[must_use]
    pub fn diagnosing(self, diagnosis: Option<Diagnosis>) -> CaptureRun {
        CaptureRun { diagnosis, ..self }
    }

    /// Reads everything into `out`, on this thread.
    pub fn into_output(mut self, out: &mut dyn Output) -> RunOutcome {
        let mut diagnosis = self.diagnosis.take();
        match &mut diagnosis {
            Some(diagnosis) => self.read(&mut Concluding::new(out, diagnosis)),
            None => self.read(out),
        }
        self.diagnosis = diagnosis;
        self.ended()
    }

    fn read(&mut self, out: &mut dyn Output) {
        self.read_loop.run(&mut self.pipeline, out);
        self.pipeline.finish(out);
    }

    fn ended(mut self) -> RunOutcome {
        let interrupted = self.read_loop.was_interrupted();
        RunOutcome {
            pipeline: self.pipeline,
            diagnosis: self.diagnosis,
            files: self.read_loop.files(),
            interrupted,
            error: self.read_loop.into_error(self.quiet),
        }
    }
}
