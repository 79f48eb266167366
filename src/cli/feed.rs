//! Captures on their way into a pipeline, for as long as somebody wants.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::Path;
use std::thread::available_parallelism;

use super::args::ReadArgs;
use super::error::CliError;
use crate::capture::{Capture, CaptureError, Item, Source};
use crate::keys::KeyFile;
use crate::pipeline::{Output, Pipeline};

/// The type of the secrets block that carries keys: "MOUL".
pub(super) const SECRETS: u32 = 0x4d4f_554c;

/// The captures that were named, read as one.
pub(super) struct Feed {
    capture: Capture,
    failed: Option<CaptureError>,
}

impl Feed {
    /// Nothing is opened yet.
    pub(super) fn new(args: &ReadArgs) -> Feed {
        let capture = Capture::new(args.captures.iter().map(|path| source(path)));
        Feed { capture: capture.unpacking_ahead(threads(args) > 1), failed: None }
    }

    /// Feeds frames to a pipeline until `enough`; says whether there may be more. It is asked after each frame, and told whether the
    /// next one may have to be waited for: what is to be seen at once has to go out before that.
    pub(super) fn run<O: Output>(
        &mut self,
        pipeline: &mut Pipeline<O>,
        mut enough: impl FnMut(&mut O, bool) -> bool,
    ) -> bool {
        loop {
            match self.capture.next_item() {
                Ok(Some(Item::Frame(frame))) => {
                    pipeline.frame(&frame);
                    if enough(pipeline.output(), !self.capture.is_at_hand()) {
                        return true;
                    }
                }
                Ok(Some(Item::Secrets(secrets))) if secrets.kind == SECRETS => {
                    match KeyFile::parse("keys in the capture", secrets.data) {
                        Ok(file) => pipeline.keys().add(file),
                        Err(error) => {
                            let _ = writeln!(io::stderr(), "moulsniff: {error}");
                        }
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) => return false,
                // What comes after a damaged file is read all the same; the first error is the one that counts.
                Err(error) => match self.failed {
                    None => self.failed = Some(error),
                    Some(_) => {
                        let _ = writeln!(io::stderr(), "moulsniff: {error}");
                    }
                },
            }
        }
    }

    /// How reading went.
    ///
    /// # Errors
    /// The first of what could not be read.
    pub(super) fn result(self) -> Result<(), CliError> {
        self.failed.map_or(Ok(()), |error| Err(error.into()))
    }
}

/// How many threads to work with: as many as were asked for, or as the machine has; to stop at a record, order counts and not speed.
pub(super) fn threads(args: &ReadArgs) -> usize {
    match (args.count, args.threads) {
        (Some(_), _) => 1,
        (None, Some(threads)) => usize::from(threads).max(1),
        (None, None) => available_parallelism().map_or(1, NonZeroUsize::get),
    }
}

fn source(path: &Path) -> Source {
    if path.as_os_str() == "-" { Source::reader("standard input", Box::new(io::stdin())) } else { Source::path(path) }
}
