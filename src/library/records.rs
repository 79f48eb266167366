//! Records as an iterator. A thread decodes ahead and waits when a bounded number of records waits
//! to be taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::error::{ErrorKind, LibraryError};
use super::owned::{OwnedRecord, RecordContext};
use crate::capture::{Capture, CaptureItem};
use crate::filter::Filter;
use crate::pipeline::{Output, Pipeline, Setup};
use crate::print::PrintedTimes;
use crate::record::{Body, Record};
use crate::tree::Tree;

/// Bytes of records that are handed over at once, unless the next frame has to be waited for.
const PARCEL: usize = 256 << 10;

/// How many such parcels wait at most; there is one more that is being filled, and one that is
/// being taken from.
const WAITING: usize = 2;

/// The records of a capture, in its order, each as soon as it is decoded.
///
/// A thread of its own reads and decodes; it is at most a megabyte of records ahead, or a few
/// records where each is larger. Dropping the iterator ends it at the next frame. An item that is
/// an error says that a file is damaged or ends in the middle: everything before that was decoded,
/// and the next file follows.
///
/// ```
/// let mut records = moulsniff::Decoder::new().keys("keys/dirtsand.ini")?.open("captures/moul/kind_game.pcap")?;
/// let first = records.next().ok_or("an empty capture")??;
/// assert_eq!(first.number(), 1);
/// let rest = records.by_ref().count() as u64;
/// assert_eq!(records.counts().map(|counts| counts.records), Some(rest + 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Records {
    receiver: Receiver<Parcel>,
    ready: std::vec::IntoIter<OwnedRecord>,
    counts: Option<RunCounts>,
    over: bool,
    /// Set when the iterator was dropped.
    dropped: Arc<AtomicBool>,
}

/// The counts of a capture.
///
/// ```
/// let mut records = moulsniff::Decoder::new().open("captures/moul/golden.pcap")?;
/// assert_eq!(records.by_ref().count(), 75);
/// let counts = records.counts().ok_or("not at the end")?;
/// assert_eq!((counts.streams, counts.undecoded, counts.lost), (2, 0, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunCounts {
    /// Frames.
    pub frames: u64,
    /// Records, before any filter.
    pub records: u64,
    /// Messages among them.
    pub messages: u64,
    /// Streams of known protocols.
    pub streams: u64,
    /// Bytes of these streams that became fields.
    pub explained: u64,
    /// Bytes without structure by nature: file contents, voice, images.
    pub opaque: u64,
    /// Bytes that nothing explains.
    pub undecoded: u64,
    /// Bytes that no key opens.
    pub closed: u64,
    /// Bytes that were never captured.
    pub lost: u64,
}

/// What the decoding thread hands over.
#[derive(Debug)]
enum Parcel {
    Records(Vec<OwnedRecord>),
    Failed(LibraryError),
    Ended(RunCounts),
}

impl Records {
    /// Begins to decode.
    pub(super) fn begin(reader: Reader) -> Result<Records, LibraryError> {
        let (sender, receiver) = sync_channel(WAITING);
        let dropped = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&dropped);
        let begun = thread::Builder::new()
            .name("moulsniff".into())
            .spawn(move || reader.run(sender, &seen));
        begun.map_err(|error| {
            LibraryError::new(ErrorKind::Thread, format!("no thread to decode on: {error}"))
        })?;
        Ok(Records { receiver, ready: Vec::new().into_iter(), counts: None, over: false, dropped })
    }

    /// What was in the capture; `None` until the iterator has returned `None`.
    ///
    /// ```
    /// let mut records = moulsniff::Decoder::new().open("captures/moul/golden.pcap")?;
    /// assert_eq!(records.counts(), None);
    /// records.by_ref().for_each(drop);
    /// assert_eq!(records.counts().map(|counts| counts.records), Some(75));
    /// # Ok::<(), moulsniff::Error>(())
    /// ```
    pub fn counts(&self) -> Option<RunCounts> {
        self.counts
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        self.dropped.store(true, Ordering::Relaxed);
    }
}

impl Iterator for Records {
    type Item = Result<OwnedRecord, LibraryError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(record) = self.ready.next() {
                return Some(Ok(record));
            }
            if self.over {
                return None;
            }
            match self.receiver.recv() {
                Ok(Parcel::Records(records)) => self.ready = records.into_iter(),
                Ok(Parcel::Failed(error)) => return Some(Err(error)),
                Ok(Parcel::Ended(counts)) => (self.counts, self.over) = (Some(counts), true),
                Err(_) => {
                    self.over = true;
                    return Some(Err(LibraryError::new(ErrorKind::Thread, "decoding ended early")));
                }
            }
        }
    }
}

/// What the decoding thread works with.
pub(super) struct Reader {
    pub(super) capture: Capture,
    pub(super) setup: Setup,
    pub(super) filter: Option<Filter>,
    pub(super) context: Arc<RecordContext>,
}

impl Reader {
    fn run(self, sender: SyncSender<Parcel>, dropped: &AtomicBool) {
        let Reader { mut capture, setup, filter, context } = self;
        let mut pipeline = Pipeline::new(setup);
        let mut out = Collector {
            sender,
            context,
            filter,
            times: PrintedTimes::default(),
            parcel: Vec::new(),
            bytes: 0,
            open: true,
            kept: false,
        };
        while out.open && !dropped.load(Ordering::Relaxed) {
            match capture.next_item() {
                Ok(Some(CaptureItem::Frame(frame))) => pipeline.frame(&frame, &mut out),
                Ok(Some(CaptureItem::Secrets(secrets))) => {
                    // Events of the streams that stay closed report keys that cannot be used.
                    let _ = pipeline.settings().carry(secrets.kind, secrets.data);
                    continue;
                }
                Ok(None) => break,
                Err(error) => out.fail(error.into()),
            }
            if out.bytes >= PARCEL || !capture.is_at_hand() {
                out.send();
            }
        }
        pipeline.finish(&mut out);
        out.send();
        let summary = pipeline.summary();
        let bytes = summary.bytes;
        let _ = out.sender.send(Parcel::Ended(RunCounts {
            frames: summary.flow.frames,
            records: summary.records,
            messages: summary.messages,
            streams: summary.streams,
            explained: bytes.explained,
            opaque: bytes.opaque,
            undecoded: bytes.undecoded,
            closed: bytes.closed,
            lost: bytes.lost,
        }));
    }
}

/// Collects records into parcels.
struct Collector {
    sender: SyncSender<Parcel>,
    context: Arc<RecordContext>,
    filter: Option<Filter>,
    times: PrintedTimes,
    parcel: Vec<OwnedRecord>,
    /// Bytes of memory that the parcel takes.
    bytes: usize,
    /// Whether the receiver still exists.
    open: bool,
    /// Whether the latest record was kept, so that its tree is wanted.
    kept: bool,
}

impl Collector {
    fn send(&mut self) {
        if !self.parcel.is_empty() {
            self.bytes = 0;
            self.open &=
                self.sender.send(Parcel::Records(std::mem::take(&mut self.parcel))).is_ok();
        }
    }

    fn fail(&mut self, error: LibraryError) {
        self.send();
        self.open &= self.sender.send(Parcel::Failed(error)).is_ok();
    }
}

impl Output for Collector {
    fn record(&mut self, record: &Record<'_>) {
        self.kept = false;
        // A frame may complete any number of records.
        if self.bytes >= PARCEL {
            self.send();
        }
        if !self.open {
            return;
        }
        if self.filter.as_ref().is_some_and(|filter| !filter.keeps(record)) {
            return;
        }
        if let Body::Message { tree, .. } = &record.body {
            self.bytes += tree.size();
        }
        let time = self.times.next(record);
        let record = OwnedRecord::new(&self.context, record, time);
        self.bytes += record.size();
        self.parcel.push(record);
        self.kept = true;
    }

    fn take_tree(&mut self, tree: &mut Tree) {
        if self.kept
            && let Some(record) = self.parcel.last_mut()
        {
            record.take_tree(tree);
        }
    }
}
