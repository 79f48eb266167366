//! The loop that takes frames from their source and gives them to the pipeline, until the source or
//! the output ends it.

use super::Reading;
use super::error::RunError;
use super::frame_source::{FrameSource, is_unfinished};
use super::interrupt::Interrupt;
use super::keep::Keep;
use super::progress::Progress;
use crate::capture::{CaptureItem, Time};
use crate::facts::{FileOverlap, FilesFacts};
use crate::flow::{CLOCK_STEP, elapsed};
use crate::pipeline::{Output, Pipeline};

/// Errors of one run that are told.
const MAX_ERRORS: usize = 8;
/// Pairs of files that overlap in time, of which it is told.
const MAX_OVERLAPS: usize = 64;

/// Reads one input, in one or more calls of [`run`](ReadLoop::run).
pub(super) struct ReadLoop {
    source: FrameSource,
    interrupt: Interrupt,
    keep: Keep,
    progress: Progress,
    /// What went wrong, [`MAX_ERRORS`] at most.
    errors: Vec<RunError>,
    /// How much more went wrong.
    more_errors: u64,
    files: FilesFacts,
    /// The name of the file that is read, and the time of its first frame.
    name: String,
    began: Time,
}

impl ReadLoop {
    /// Opens the input. No frame is read yet.
    ///
    /// # Errors
    /// If an interface, or the file for frames, cannot be opened. Captures are opened later, by
    /// [`run`](ReadLoop::run).
    pub(super) fn new(reading: &Reading) -> Result<ReadLoop, RunError> {
        let source = FrameSource::new(reading)?;
        Ok(ReadLoop {
            progress: FrameSource::progress(&reading.input, reading.quiet),
            interrupt: source.interrupt(),
            source,
            keep: Keep::new(reading.keep.as_deref(), &reading.inputs)?,
            errors: Vec::new(),
            more_errors: 0,
            files: FilesFacts { sorted: reading.sorted.clone(), ..FilesFacts::default() },
            name: String::new(),
            began: Time::default(),
        })
    }

    /// The progress line.
    pub(super) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Reads frames until the output wants no more. Returns whether there may be more to read.
    pub(super) fn run(&mut self, pipeline: &mut Pipeline, out: &mut dyn Output) -> bool {
        loop {
            match self.source.next_item() {
                Ok(Some(CaptureItem::Frame(frame))) => {
                    let time = frame.time;
                    pipeline.frame(&frame, out);
                    if let Err(error) = self.keep.frame(&frame) {
                        return self.fail(error);
                    }
                    if self.source.files() != self.files.count {
                        self.file_begins(time, pipeline);
                    }
                    self.progress.frame(|| (self.source.bytes_read(), pipeline.summary()));
                    if !out.wants_more(self.source.may_block()) {
                        return true;
                    }
                    if self.interrupt.is_requested() {
                        return false;
                    }
                }
                Ok(Some(CaptureItem::Secrets(secrets))) => {
                    if let Some(trouble) = pipeline.settings().carry(secrets.kind, secrets.data) {
                        self.progress.say_before(trouble);
                    }
                }
                Ok(None) => {
                    if let Err(error) = self.keep.flush() {
                        return self.fail(error);
                    }
                    if !self.source.goes_on() {
                        return false;
                    }
                }
                Err(error) if self.interrupt.is_requested() && is_unfinished(&error) => {}
                // Reading of a damaged file ends here. The files after it are still read.
                Err(error @ RunError::Capture(_)) => {
                    self.fail(error);
                }
                Err(error) => return self.fail(error),
            }
        }
    }

    /// The first frame of a file was read: it may be of before the last ones of other files.
    fn file_begins(&mut self, time: Time, pipeline: &Pipeline) {
        let is_first = self.files.count == 0;
        self.files.count = self.source.files();
        let name = self.source.name();
        let earlier = std::mem::replace(&mut self.name, name);
        let began = std::mem::replace(&mut self.began, time);
        // An exported file tells the times of its capture with its first message.
        let times = pipeline.summary().flow.times.filter(|_| !is_first);
        let Some((_, latest)) = times else { return };
        let nanos = elapsed(time, latest);
        if nanos > CLOCK_STEP && self.files.overlaps.len() < MAX_OVERLAPS {
            let later = self.name.clone();
            let reversed = elapsed(time, began) > 0;
            self.files.overlaps.push(FileOverlap { earlier, later, nanos, reversed });
        }
    }

    /// The files that were read so far.
    pub(super) fn files(&mut self) -> FilesFacts {
        FilesFacts { dropped: self.source.dropped(), ..self.files.clone() }
    }

    /// Keeps an error for the end, when one line tells all of them. Returns `false`: there is no
    /// more to read.
    fn fail(&mut self, error: RunError) -> bool {
        match self.errors.len() {
            MAX_ERRORS.. => self.more_errors += 1,
            _ => self.errors.push(error),
        }
        false
    }

    /// Whether a signal ended the loop before the end of its captures.
    pub(super) fn was_interrupted(&self) -> bool {
        self.interrupt.is_requested() && !self.source.ends_by_signal()
    }

    /// Ends reading, and completes the file for frames. Returns what went wrong.
    pub(super) fn into_error(mut self, quiet: bool) -> Option<RunError> {
        self.progress.end();
        let ReadLoop { mut source, keep, mut errors, more_errors, .. } = self;
        errors.extend(keep.commit().err());
        // An error comes alone.
        if !quiet && errors.is_empty() {
            source.say_dropped();
        }
        match errors.len() {
            0 | 1 => errors.pop(),
            _ => Some(RunError::Several(errors, more_errors)),
        }
    }
}
