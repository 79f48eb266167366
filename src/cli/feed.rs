//! Frames on their way into a pipeline, for as long as somebody wants.

use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use super::args::ReadArgs;
use super::error::CliError;
use super::intake::{Intake, Keep, is_unfinished};
use super::interrupt::Interrupt;
use super::progress::Progress;
use crate::capture::{Item, Secrets};
use crate::pipeline::{Output, Pipeline};
use crate::proto::{AllSettings, PROTOCOLS, Protocol};

/// What was asked to be read, as one.
pub(super) struct Feed {
    intake: Intake,
    interrupt: Interrupt,
    /// The file that keeps what was seen.
    keep: Keep,
    progress: Progress,
    failed: Option<CliError>,
}

impl Feed {
    /// What was asked for, of which nothing is read yet.
    ///
    /// # Errors
    /// What cannot be opened, where that shows before anything is read.
    pub(super) fn new(args: &ReadArgs, progress: Progress) -> Result<Feed, CliError> {
        let intake = Intake::new(args)?;
        Ok(Feed { interrupt: intake.interrupt(), intake, keep: Keep::new(args)?, progress, failed: None })
    }

    /// Feeds frames to a pipeline until `enough`; says whether there may be more. It is asked after each frame, and told whether the
    /// next one may have to be waited for: what is to be seen at once has to go out before that.
    pub(super) fn run<O: Output>(
        &mut self,
        pipeline: &mut Pipeline<O>,
        mut enough: impl FnMut(&mut O, bool) -> bool,
    ) -> bool {
        loop {
            match self.intake.next_item() {
                Ok(Some(Item::Frame(frame))) => {
                    pipeline.frame(&frame);
                    if let Err(error) = self.keep.frame(&frame) {
                        return self.fail(error);
                    }
                    self.progress.frame(|| (self.intake.bytes_read(), pipeline.summary()));
                    if enough(pipeline.output(), self.intake.may_wait()) {
                        return true;
                    }
                    if self.intake.is_over() {
                        return false;
                    }
                }
                Ok(Some(Item::Secrets(secrets))) => {
                    if let Some(trouble) = carried(secrets, pipeline.settings()) {
                        self.progress.say(&format!("moulsniff: {trouble}"));
                    }
                }
                Ok(None) => {
                    if let Err(error) = self.keep.flush() {
                        return self.fail(error);
                    }
                    if !self.intake.goes_on() {
                        return false;
                    }
                }
                Err(error) if self.interrupt.is_wished() && is_unfinished(&error) => {}
                // What comes after a damaged file is read all the same; the first error is the one that counts.
                Err(error @ CliError::Capture(_)) => {
                    self.fail(error);
                }
                Err(error) => return self.fail(error),
            }
        }
    }

    /// Keeps the first error for the end; further ones are said at once. There is no more to come.
    fn fail(&mut self, error: CliError) -> bool {
        match self.failed {
            None => self.failed = Some(error),
            Some(_) => self.progress.say(&format!("moulsniff: {error}")),
        }
        false
    }

    /// How reading went.
    ///
    /// # Errors
    /// The first of what could not be read, or kept.
    pub(super) fn result(mut self, quiet: bool) -> Result<(), CliError> {
        if let Err(error) = self.keep.flush() {
            self.fail(error);
        }
        self.progress.end();
        if !quiet {
            self.intake.say_taken();
        }
        self.failed.map_or(Ok(()), Err)
    }
}

/// Hands secrets that a capture carries to the protocol they belong to; what there is to say about them.
fn carried(secrets: Secrets<'_>, settings: &mut AllSettings) -> Option<String> {
    let of = |protocol: &&&dyn Protocol| protocol.secrets().is_some_and(|own| own.block_type() == secrets.kind);
    let protocol = PROTOCOLS.iter().find(of)?;
    protocol.secrets()?.carry(secrets.data, settings.named_mut(protocol.name())?)
}

/// How many threads to work with: as many as were asked for, or as the machine has; to stop at a record, order counts and not speed.
pub(super) fn threads(args: &ReadArgs) -> usize {
    match (args.count, args.threads) {
        (Some(_), _) => 1,
        (None, Some(threads)) => usize::from(threads).max(1),
        (None, None) => available_parallelism().map_or(1, NonZeroUsize::get),
    }
}
