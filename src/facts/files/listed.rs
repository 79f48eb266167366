//! Lists of files that servers send: for each file the name under which the receiver keeps it, its
//! size and its MD5.

use std::collections::HashMap;

use super::marks::{FileMarks, MAX_NAME};
use crate::table::FileRole;

/// The most entries kept. Files are not compared with further ones.
const MAX_ENTRIES: usize = 100_000;
/// Entries for one name: several lists may have the same file.
const MAX_SAME: usize = 16;

/// An entry of a list of files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedFile {
    /// The name under which the receiver keeps it.
    pub name: String,
    /// The name by which it is asked for.
    pub asked: String,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// Its MD5, in lower-case hex.
    pub md5: Option<String>,
    /// The size of what is transferred.
    pub packed_size: Option<u64>,
    /// The MD5 of what is transferred.
    pub packed_md5: Option<String>,
}

impl ListedFile {
    /// Whether the file is transferred in another form.
    pub fn is_packed(&self) -> bool {
        match (&self.md5, &self.packed_md5) {
            (Some(plain), Some(packed)) => plain != packed,
            _ => self.packed_size.is_some_and(|packed| packed > 0 && Some(packed) != self.size),
        }
    }
}

/// An entry of a list, with its place.
#[derive(Clone, Debug)]
pub struct ListEntry {
    /// The record of the list.
    pub record: u64,
    /// The list's name, where it was asked for by one.
    pub list: Option<String>,
    /// The entry.
    pub file: ListedFile,
}

/// The entries of all lists.
#[derive(Default)]
pub(super) struct Listed {
    entries: HashMap<(&'static str, String), Vec<ListedFile>>,
    count: usize,
    full: bool,
}

impl Listed {
    /// Adds the entries of a message. Returns the new ones.
    pub(super) fn learn(
        &mut self,
        protocol: &'static str,
        marks: &FileMarks<'_>,
    ) -> Vec<ListedFile> {
        let mut found = Vec::new();
        for listed in marks.nodes.all.iter().filter(|marked| marked.role == FileRole::Listed) {
            let Some(name) = marks.values.word(listed.node, MAX_NAME) else { continue };
            let word = |role| {
                marks
                    .nodes
                    .within(listed.parent, role)
                    .and_then(|m| marks.values.word(m.node, MAX_NAME))
            };
            let number = |role| {
                marks.nodes.within(listed.parent, role).and_then(|m| marks.values.number(m.node))
            };
            let hash = |role| word(role).map(|text| text.to_lowercase());
            let asked = word(FileRole::Name).unwrap_or_else(|| name.clone());
            let file = ListedFile {
                name,
                asked,
                size: number(FileRole::Size),
                md5: hash(FileRole::Md5),
                packed_size: number(FileRole::PackedSize),
                packed_md5: hash(FileRole::PackedMd5),
            };
            self.add(protocol, &file);
            found.push(file);
        }
        found
    }

    fn add(&mut self, protocol: &'static str, file: &ListedFile) {
        if self.count >= MAX_ENTRIES {
            self.full = true;
            return;
        }
        let same = self.entries.entry((protocol, normal(&file.asked))).or_default();
        if same.len() < MAX_SAME && !same.contains(file) {
            same.push(file.clone());
            self.count += 1;
        }
    }

    /// The entries for a file that is asked for by this name.
    pub(super) fn of(&self, protocol: &'static str, asked: &str) -> Vec<ListedFile> {
        self.entries.get(&(protocol, normal(asked))).cloned().unwrap_or_default()
    }

    /// Whether there were more entries than are kept.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }
}

/// A name in the form in which it is compared: any kind of slash, any case.
fn normal(name: &str) -> String {
    name.replace('\\', "/").to_lowercase()
}
