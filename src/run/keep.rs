//! The file for the frames that were read (`-w`).

use crate::captured::file_name;
use std::path::Path;

use super::error::RunError;
use crate::capture::{Frame, PcapngWriter};
use crate::output_file::{Access, Inputs, OutputFile};

/// A pcapng file that is written while frames are read, or none. It gets its final name when the
/// run is over.
pub(super) struct Keep {
    name: String,
    to: Option<PcapngWriter<OutputFile>>,
}

impl Keep {
    /// Opens the file, if there is one.
    ///
    /// # Errors
    /// If the file is one of the inputs, or cannot be created.
    pub(super) fn new(path: Option<&Path>, inputs: &Inputs) -> Result<Keep, RunError> {
        let Some(path) = path else { return Ok(Keep { name: String::new(), to: None }) };
        let name = file_name(path);
        let fail = |e| RunError::File(name.clone(), e);
        let file = OutputFile::create(path, Access::Usual, inputs).map_err(fail)?;
        let to = PcapngWriter::new(file).map_err(fail)?;
        Ok(Keep { name, to: Some(to) })
    }

    /// Writes a frame. After an error nothing more is written, and the file is removed.
    ///
    /// # Errors
    /// If writing failed.
    pub(super) fn frame(&mut self, frame: &Frame<'_>) -> Result<(), RunError> {
        let Some(to) = &mut self.to else { return Ok(()) };
        let written = to.frame(frame);
        self.given_up_after(written)
    }

    /// Flushes the frames so far, so that a crash loses few of them.
    ///
    /// # Errors
    /// If writing failed.
    pub(super) fn flush(&mut self) -> Result<(), RunError> {
        let Some(to) = &mut self.to else { return Ok(()) };
        let written = to.flush();
        self.given_up_after(written)
    }

    /// Completes the file and gives it its final name.
    ///
    /// # Errors
    /// If writing or renaming failed.
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
