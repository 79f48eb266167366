//! Files of an earlier run in a folder that a command writes to. It does not know who wrote them,
//! so it removes none.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::captured::escape;

/// The names of files that are in a folder and have not been replaced.
pub(super) struct StaleFiles(BTreeSet<String>);

impl StaleFiles {
    /// Those files of a folder for whose names `is_own` holds. There may be no such folder.
    pub(super) fn within(folder: &Path, is_own: impl Fn(&str) -> bool) -> StaleFiles {
        let there = std::fs::read_dir(folder).into_iter().flatten().flatten();
        StaleFiles(
            there
                .filter_map(|entry| entry.file_name().into_string().ok())
                .filter(|name| is_own(name))
                .collect(),
        )
    }

    /// Their paths in `folder`.
    pub(super) fn paths(&self, folder: &Path) -> impl Iterator<Item = PathBuf> {
        self.0.iter().map(|name| folder.join(name))
    }

    /// Forgets the file at `path`: this run replaces it.
    pub(super) fn replaced(&mut self, path: &Path) {
        if let Some(name) = path.file_name().and_then(|name| name.to_str()) {
            self.0.remove(name);
        }
    }

    /// `a.bin` or `a.bin and 3 more`, with `was` or `were`; `None` if there are none.
    pub(super) fn listed(&self) -> Option<(String, &'static str)> {
        let first = escape(self.0.first()?);
        Some(match self.0.len() - 1 {
            0 => (first, "was"),
            more => (format!("{first} and {more} more"), "were"),
        })
    }
}
