//! Files that are transferred in messages: asked for, sent in parts, listed.
//!
//! Tables mark the fields with a file's name, its parts and its size (`file WORD`). This folder
//! knows no protocol and writes nothing. The caller has a store for the bytes of parts; the result
//! says where each file's bytes are in that store.

mod listed;
mod marks;
mod transfer;
#[cfg(test)]
mod transfer_tests;

use std::collections::{HashMap, HashSet, VecDeque};

use listed::Listed;
pub use listed::{ListEntry, ListedFile};
use marks::FileMarks;
use transfer::FilePart;
pub use transfer::{FileTransfer, PartOrder, Piece};

use super::{TransportStream, refused};
use crate::record::{Body, MessageView, Record};
use crate::session::EventKind;
use crate::table::{FileRole, MessageDef};
use crate::tree::mark;

/// The most incomplete files at once. Beyond that, the file that waited longest is given up.
const MAX_OPEN: usize = 4096;
/// Completed transfers that are remembered, so that their late parts are recognised.
const MAX_DONE: usize = 65_536;
/// How many names of requested lists are remembered.
const MAX_ASKED: usize = 1024;
/// Streams whose file keys are kept.
const MAX_KEYS: usize = 1024;

/// Identifies a transfer: the stream, and the value that its messages share.
type FileKey = (TransportStream, String);

/// Collects files. It takes records in capture order and returns finished files.
pub struct Files {
    /// The most bytes of one file.
    max_file: u64,
    redact: bool,
    open: HashMap<FileKey, FileTransfer>,
    done: HashSet<FileKey>,
    done_order: VecDeque<FileKey>,
    listed: Listed,
    /// The names of lists that were asked for.
    asked_lists: HashMap<FileKey, String>,
    /// Numbers that open files, by the stream that brought them; the latest at last.
    keys: VecDeque<(TransportStream, Vec<u32>)>,
    over: Vec<FileTransfer>,
    entries: Vec<ListEntry>,
}

/// A message about files.
struct FileMessage<'a, 'b> {
    record: &'a Record<'b>,
    marks: FileMarks<'a>,
    def: &'a MessageDef,
    message: (u64, u64),
    kept: bool,
}

impl Files {
    /// A collector of files up to `max_file` bytes each. With `redact`, what is secret is left out.
    pub fn new(max_file: u64, redact: bool) -> Files {
        Files {
            max_file,
            redact,
            open: HashMap::new(),
            done: HashSet::new(),
            done_order: VecDeque::new(),
            listed: Listed::default(),
            asked_lists: HashMap::new(),
            keys: VecDeque::new(),
            over: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// Takes the next record. `kept` says whether the bytes in it are wanted. Names and sizes are
    /// learned in any case. `keep` stores the bytes of a part and returns their place, `None` if
    /// they cannot be stored.
    pub fn record(
        &mut self,
        record: &Record<'_>,
        kept: bool,
        keep: &mut dyn FnMut(&[u8]) -> Option<u64>,
    ) {
        let stream = (record.transport, record.stream);
        match &record.body {
            Body::Message { message, tables, tree } => {
                let values = MessageView { tables, tree, bytes: message.bytes };
                let Some(def) = values.definition(message.name.raw()) else { return };
                let marks = FileMarks::of(values, self.redact);
                if !marks.nodes.all.is_empty() && !values.is_sent_again() {
                    let place = (message.offset, message.bytes.len() as u64);
                    self.message(
                        &FileMessage { record, marks, def, message: place, kept },
                        stream,
                        keep,
                    );
                }
            }
            Body::Event(event) if event.kind == EventKind::Gap => {
                let here = |(key, file): &(&FileKey, &mut FileTransfer)| {
                    key.0 == stream && file.from != Some(event.from.other())
                };
                self.open.iter_mut().filter(here).for_each(|(_, file)| file.sequence.gap = true);
            }
            _ => {}
        }
    }

    /// A stream ended, and so did its files.
    pub fn stream_over(&mut self, stream: TransportStream) {
        self.end(|key, _| key.0 == stream);
        self.asked_lists.retain(|key, _| key.0 != stream);
    }

    /// The capture is over.
    pub fn finish(&mut self) {
        self.end(|_, _| true);
    }

    /// The files that are over since the last call, in the order in which they ended.
    pub fn take_over(&mut self) -> Vec<FileTransfer> {
        std::mem::take(&mut self.over)
    }

    /// The entries of lists that came since the last call.
    pub fn take_entries(&mut self) -> Vec<ListEntry> {
        std::mem::take(&mut self.entries)
    }

    /// Whether no unfinished file has bytes in the store.
    pub fn is_idle(&self) -> bool {
        self.open.values().all(|file| file.pieces.is_empty())
    }

    /// Whether lists had more entries than are compared with files.
    pub fn has_too_many_entries(&self) -> bool {
        self.listed.is_full()
    }

    fn message(
        &mut self,
        seen: &FileMessage<'_, '_>,
        stream: TransportStream,
        keep: &mut dyn FnMut(&[u8]) -> Option<u64>,
    ) {
        let FileMessage { record, marks, def, .. } = seen;
        if let Some(key) = marks.first(FileRole::Key) {
            self.learn_key(stream, marks, key.index);
        }
        let whole = marks.nodes.all.iter().filter(|marked| marked.role == FileRole::Whole);
        for content in whole
            .filter_map(|marked| marks.values.content(marked.node))
            .filter(|bytes| !bytes.is_empty())
        {
            self.whole(seen, stream, &content, keep);
        }
        let Some(own) = marks.key() else { return };
        let key = (stream, own);
        if let Some(list) =
            marks.word(FileRole::List).filter(|_| self.asked_lists.len() < MAX_ASKED)
        {
            self.asked_lists.insert(key.clone(), list);
        }
        let list = self.asked_lists.get(&key).cloned();
        let found = self.listed.learn(record.protocol, marks);
        self.entries.extend(found.into_iter().filter(|_| seen.kept).map(|file| ListEntry {
            record: record.number,
            list: list.clone(),
            file,
        }));
        let refusal = refused(def, &marks.values);
        if let Some(refusal) = refusal {
            let reason = refusal.reason(marks.values.tables.name(def.name), &marks.values);
            return self.refused(seen, key, reason);
        }
        let part = marks.first(FileRole::Part).or_else(|| marks.first(FileRole::CountedPart));
        match part.and_then(|part| Some((part.role, marks.values.content(part.node)?))) {
            Some((role, bytes)) if seen.kept => self.part(seen, key, role, &bytes, keep),
            Some(_) => {}
            None if marks.first(FileRole::Name).is_some() && def.answers.is_empty() => {
                self.asked(seen, key)
            }
            None if marks.first(FileRole::Size).is_some() => self.described(seen, key),
            None => {}
        }
    }

    /// A file is asked for.
    fn asked(&mut self, seen: &FileMessage<'_, '_>, key: FileKey) {
        self.done.remove(&key);
        let name = seen.marks.word(FileRole::Name);
        // Where the capture has gaps, a request may come after the first parts of its reply.
        let another = |file: &FileTransfer| {
            file.name.is_some() && (file.order != PartOrder::Unknown || file.name != name)
        };
        if self.open.get(&key).is_some_and(another) {
            self.end(|other, _| *other == key);
            self.done.remove(&key);
        }
        let file = self.file(seen, key);
        file.name = name;
        file.kept |= seen.kept;
        file.from = Some(seen.record.from.other());
    }

    /// A message says how large a file is that comes in other messages.
    fn described(&mut self, seen: &FileMessage<'_, '_>, key: FileKey) {
        if self.done.contains(&key) {
            return;
        }
        let file = self.file(seen, key.clone());
        file.from = Some(seen.record.from);
        file.kept |= seen.kept;
        if file.size == Some(0) {
            file.order = PartOrder::Sequence;
        }
        if file.is_over() {
            self.end(|other, _| *other == key);
        }
    }

    fn part(
        &mut self,
        seen: &FileMessage<'_, '_>,
        key: FileKey,
        role: FileRole,
        bytes: &[u8],
        keep: &mut dyn FnMut(&[u8]) -> Option<u64>,
    ) {
        if self.done.contains(&key) {
            return;
        }
        let most = self.max_file;
        let file = self.file(seen, key.clone());
        file.from = Some(seen.record.from);
        file.kept = true;
        // A message with the number of parts, but without a number of its own, brings the first
        // part.
        let begins = seen.marks.first(FileRole::Parts).is_some();
        let number = seen.marks.part_number().or(begins.then_some(0));
        let mut bytes = bytes;
        let counted = role == FileRole::CountedPart && number == Some(0);
        if let Some((size, rest)) = bytes.split_first_chunk::<4>().filter(|_| counted) {
            file.size = Some(u64::from(u32::from_le_bytes(*size)));
            bytes = rest;
        }
        if let Some(parts) = seen.marks.number(FileRole::Parts).filter(|parts| *parts > 0) {
            file.last_number = Some(parts - 1);
        }
        // If parts answer a request, the last one says that it is the last.
        let partial = seen.marks.values.tree.get(0).is_some_and(|root| root.has(mark::PARTIAL));
        let last = !seen.def.answers.is_empty() && !partial;
        let offset = seen.marks.number(FileRole::Offset);
        file.part(FilePart { bytes, offset, number, message: seen.message, last }, most, keep);
        if file.is_over() {
            self.end(|other, _| *other == key);
        }
    }

    /// A message that brings a whole file.
    fn whole(
        &mut self,
        seen: &FileMessage<'_, '_>,
        stream: TransportStream,
        bytes: &[u8],
        keep: &mut dyn FnMut(&[u8]) -> Option<u64>,
    ) {
        if !seen.kept {
            return;
        }
        let mut file = new_file(seen, stream);
        file.name = seen.marks.word(FileRole::Title);
        file.from = Some(seen.record.from);
        file.size = Some(bytes.len() as u64);
        file.part(
            FilePart { bytes, offset: Some(0), number: None, message: seen.message, last: true },
            self.max_file,
            keep,
        );
        file.kept = true;
        self.over(file);
    }

    fn refused(&mut self, seen: &FileMessage<'_, '_>, key: FileKey, reason: String) {
        const OF_FILES: [FileRole; 4] =
            [FileRole::Part, FileRole::CountedPart, FileRole::Size, FileRole::Id];
        let about_file = OF_FILES.iter().any(|role| seen.marks.first(*role).is_some());
        if self.done.contains(&key) || !about_file && !self.open.contains_key(&key) {
            return;
        }
        let file = self.file(seen, key.clone());
        file.refused = Some(reason);
        file.kept |= seen.kept;
        file.from.get_or_insert(seen.record.from);
        self.end(|other, _| *other == key);
    }

    /// The transfer with a key, with what a message says of it.
    fn file(&mut self, seen: &FileMessage<'_, '_>, key: FileKey) -> &mut FileTransfer {
        if self.open.len() >= MAX_OPEN && !self.open.contains_key(&key) {
            self.give_up_oldest();
        }
        let stream = key.0;
        let file = self.open.entry(key).or_insert_with(|| new_file(seen, stream));
        file.last_record = seen.record.number;
        file.size = seen.marks.number(FileRole::Size).or(file.size);
        if file.name.is_none() {
            file.name = seen.marks.word(FileRole::Name);
        }
        if file.kind.is_none() {
            file.kind = seen.marks.word(FileRole::Kind);
        }
        file
    }

    fn give_up_oldest(&mut self) {
        let mut last: Vec<u64> = self.open.values().map(|file| file.last_record).collect();
        last.sort_unstable();
        let limit = last.get(last.len() / 8).copied().unwrap_or(0);
        for file in self.open.values_mut().filter(|file| file.last_record <= limit) {
            file.note("given up because too many files were on their way at once");
        }
        self.end(|_, file| file.last_record <= limit);
    }

    /// Ends the transfers that `which` names, in the order of their first records.
    fn end(&mut self, which: impl Fn(&FileKey, &FileTransfer) -> bool) {
        let mut ended: Vec<(FileKey, FileTransfer)> =
            self.open.extract_if(|key, file| which(key, file)).collect();
        ended.sort_by_key(|(_, file)| file.first_record);
        for (key, mut file) in ended {
            // A UUID is a name; the number of a transaction says nothing.
            if file.name.is_none() && !key.1.bytes().all(|byte| byte.is_ascii_digit()) {
                file.name = Some(key.1.clone());
            }
            self.over(file);
            if self.done.insert(key.clone()) {
                self.done_order.push_back(key);
            }
        }
        while self.done_order.len() > MAX_DONE {
            if let Some(oldest) = self.done_order.pop_front() {
                self.done.remove(&oldest);
            }
        }
    }

    fn over(&mut self, mut file: FileTransfer) {
        if !file.kept {
            return;
        }
        file.settle();
        if let Some(name) = &file.name {
            file.listed = self.listed.of(file.protocol, name);
        }
        let own = self.keys.iter().rev().filter(|(stream, _)| *stream == file.stream);
        let others = self.keys.iter().rev().filter(|(stream, _)| *stream != file.stream);
        for (_, key) in own.chain(others) {
            if !file.keys.contains(key) {
                file.keys.push(key.clone());
            }
        }
        self.over.push(file);
    }

    fn learn_key(&mut self, stream: TransportStream, marks: &FileMarks<'_>, list: u32) {
        let numbers =
            marks.values.tree.members(list).filter_map(|(_, node)| marks.values.number(node));
        let key: Vec<u32> = numbers.filter_map(|number| u32::try_from(number).ok()).collect();
        if key.iter().all(|number| *number == 0) {
            return;
        }
        self.keys.retain(|(known, numbers)| *known != stream || *numbers != key);
        self.keys.push_back((stream, key));
        if self.keys.len() > MAX_KEYS {
            self.keys.pop_front();
        }
    }
}

fn new_file(seen: &FileMessage<'_, '_>, stream: TransportStream) -> FileTransfer {
    let record = seen.record;
    FileTransfer {
        service: record.service.to_string(),
        at: record.at,
        kind: seen.marks.word(FileRole::Kind),
        ..FileTransfer::new(record.protocol, stream, record.number)
    }
}
