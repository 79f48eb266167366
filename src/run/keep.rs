//! The file that keeps the frames that were read (`-w`).

use crate::captured::file_name;
use std::path::Path;

use super::error::RunError;
use crate::capture::{Frame, PcapngWriter};
use crate::output_file::{Access, Inputs, OutputFile};

/// A pcapng file that is written while frames are read, or none. It gets its final name when the run is over.
pub(super) struct Keep {
    name: String,
    to: Option<PcapngWriter<OutputFile>>,
}

impl Keep {
    /// Opens the file, where there is one.
    ///
    /// # Errors
    /// It is one of the inputs, or cannot be made.
    pub(super) fn new(path: Option<&Path>, inputs: &Inputs) -> Result<Keep, RunError> {
        let Some(path) = path else { return Ok(Keep { name: String::new(), to: None }) };
        let name = file_name(path);
        let fail = |e| RunError::File(name.clone(), e);
        let file = OutputFile::create(path, Access::Usual, inputs).map_err(fail)?;
        let to = PcapngWriter::new(file).map_err(fail)?;
        Ok(Keep { name, to: Some(to) })
    }

    /// Keeps a frame. After an error nothing more is kept, and the file is given up.
    ///
    /// # Errors
    /// What was written does not fit.
    pub(super) fn frame(&mut self, frame: &Frame<'_>) -> Result<(), RunError> {
        let Some(to) = &mut self.to else { return Ok(()) };
        let written = to.frame(frame);
        self.given_up_after(written)
    }

    /// Writes out what was kept so far, so that a crash loses little of it.
    ///
    /// # Errors
    /// What was written does not fit.
    pub(super) fn flush(&mut self) -> Result<(), RunError> {
        let Some(to) = &mut self.to else { return Ok(()) };
        let written = to.flush();
        self.given_up_after(written)
    }

    /// Completes the file and gives it its final name.
    ///
    /// # Errors
    /// Writing or renaming failed.
    pub(super) fn commit(self) -> Result<(), RunError> {
        let Keep { name, to } = self;
        to.map_or(Ok(()), |to| to.into_inner().commit()).map_err(|e| RunError::File(name, e))
    }

    fn given_up_after(&mut self, written: std::io::Result<()>) -> Result<(), RunError> {
        written.map_err(|error| {
            self.to = None;
            RunError::File(self.name.clone(), error)
        })
    }
}
