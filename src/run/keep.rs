//! The file that keeps the frames that were read (`-w`).

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use super::error::RunError;
use crate::capture::{Frame, PcapngWriter};

/// A pcapng file that is written while frames are read, or none.
pub(super) struct Keep {
    name: String,
    to: Option<PcapngWriter<BufWriter<File>>>,
}

impl Keep {
    /// Opens the file, where there is one.
    pub(super) fn new(path: Option<&Path>) -> Result<Keep, RunError> {
        let Some(path) = path else { return Ok(Keep { name: String::new(), to: None }) };
        let name = path.display().to_string();
        let fail = |e| RunError::File(name.clone(), e);
        let file = File::create(path).map_err(fail)?;
        let to = PcapngWriter::new(BufWriter::new(file)).map_err(fail)?;
        Ok(Keep { name, to: Some(to) })
    }

    /// Keeps a frame.
    pub(super) fn frame(&mut self, frame: &Frame<'_>) -> Result<(), RunError> {
        let name = &self.name;
        self.to.as_mut().map_or(Ok(()), |to| to.frame(frame)).map_err(|e| RunError::File(name.clone(), e))
    }

    /// Writes out what was kept so far, so that another program that reads the file sees it.
    pub(super) fn flush(&mut self) -> Result<(), RunError> {
        let name = &self.name;
        self.to.as_mut().map_or(Ok(()), PcapngWriter::flush).map_err(|e| RunError::File(name.clone(), e))
    }
}
