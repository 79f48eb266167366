//! Records as an iterator. A thread decodes ahead and waits when a bounded number of records waits
//! to be taken. Without threads, taking a record decodes it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::error::{ErrorKind, LibraryError};
use super::owned::{OwnedRecord, RecordContext};
use crate::capture::{Capture, CaptureItem};
use crate::filter::Filter;
use crate::pipeline::{Output, Pipeline, Setup, Summary};
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
/// records where each is larger ([`Decoder::threads`](super::Decoder::threads)). Dropping the
/// iterator ends it at the next frame. An item that is an error says that a file is damaged or ends
/// in the middle: everything before that was decoded, and the next file follows.
///
/// ```
/// let mut records = moulsniff::Decoder::new()
///     .keys("keys/dirtsand.ini")?
///     .open("captures/moul/kind_game.pcap")?;
/// let first = records.next().ok_or("an empty capture")??;
/// assert_eq!(first.number(), 1);
/// let rest = records.by_ref().count() as u64;
/// assert_eq!(records.counts().map(|counts| counts.records), Some(rest + 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Records {
    from: Parcels,
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

/// Where parcels come from.
enum Parcels {
    Thread(Receiver<Parcel>),
    Here(Box<Decoding<VecDeque<Parcel>>>),
}

impl std::fmt::Debug for Parcels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Parcels::Thread(_) => "Thread",
            Parcels::Here(_) => "Here",
        })
    }
}

impl Parcels {
    /// The next one; `None` if decoding ended early.
    fn next(&mut self) -> Option<Parcel> {
        match self {
            Parcels::Thread(receiver) => receiver.recv().ok(),
            Parcels::Here(decoding) => {
                while decoding.out.to.is_empty() && decoding.step() {}
                decoding.out.to.pop_front()
            }
        }
    }
}

impl Records {
    /// Begins to decode, on a thread if `threaded` and if the system can start one.
    pub(super) fn begin(reader: Reader, threaded: bool) -> Records {
        let dropped = Arc::new(AtomicBool::new(false));
        let reader = Box::new(reader);
        let from = if threaded { begin_on_thread(reader, &dropped) } else { Err(reader) };
        let here =
            |reader: Box<Reader>| Parcels::Here(Box::new(Decoding::new(*reader, VecDeque::new())));
        let from = from.unwrap_or_else(here);
        Records { from, ready: Vec::new().into_iter(), counts: None, over: false, dropped }
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
            match self.from.next() {
                Some(Parcel::Records(records)) => self.ready = records.into_iter(),
                Some(Parcel::Failed(error)) => return Some(Err(error)),
                Some(Parcel::Ended(counts)) => (self.counts, self.over) = (Some(counts), true),
                None => {
                    self.over = true;
                    return Some(Err(LibraryError::new(ErrorKind::Thread, "decoding ended early")));
                }
            }
        }
    }
}

/// Starts a thread that decodes. Hands the reader back if the system cannot start one.
fn begin_on_thread(reader: Box<Reader>, dropped: &Arc<AtomicBool>) -> Result<Parcels, Box<Reader>> {
    // The reader goes to the thread only once there is one.
    let (give, given) = sync_channel::<Box<Reader>>(1);
    let (sender, receiver) = sync_channel(WAITING);
    let dropped = Arc::clone(dropped);
    let work = move || {
        let Ok(reader) = given.recv() else { return };
        let mut decoding = Decoding::new(*reader, sender);
        while !dropped.load(Ordering::Relaxed) && decoding.step() {}
    };
    match thread::Builder::new().name("moulsniff".into()).spawn(work) {
        Ok(_) => give.send(reader).map(|()| Parcels::Thread(receiver)).map_err(|unsent| unsent.0),
        Err(_) => Err(reader),
    }
}

/// What is decoded, and how.
pub(super) struct Reader {
    pub(super) capture: Capture,
    pub(super) setup: Setup,
    pub(super) filter: Option<Filter>,
    pub(super) context: Arc<RecordContext>,
}

/// Takes parcels.
trait TakeParcel {
    /// Takes one. Returns whether more are wanted.
    fn take(&mut self, parcel: Parcel) -> bool;
}

impl TakeParcel for SyncSender<Parcel> {
    fn take(&mut self, parcel: Parcel) -> bool {
        self.send(parcel).is_ok()
    }
}

impl TakeParcel for VecDeque<Parcel> {
    fn take(&mut self, parcel: Parcel) -> bool {
        self.push_back(parcel);
        true
    }
}

/// A capture that is being decoded.
struct Decoding<T> {
    capture: Capture,
    pipeline: Pipeline,
    out: Collector<T>,
}

impl<T: TakeParcel> Decoding<T> {
    fn new(reader: Reader, to: T) -> Decoding<T> {
        let Reader { capture, setup, filter, context } = reader;
        let out = Collector {
            to,
            context,
            filter,
            times: PrintedTimes::default(),
            parcel: Vec::new(),
            bytes: 0,
            open: true,
            kept: false,
        };
        Decoding { capture, pipeline: Pipeline::new(setup), out }
    }

    /// Decodes the next frame, or ends. Returns whether there may be more.
    fn step(&mut self) -> bool {
        let Decoding { capture, pipeline, out } = self;
        if !out.open {
            return false;
        }
        match capture.next_item() {
            Ok(Some(CaptureItem::Frame(frame))) => pipeline.frame(&frame, out),
            Ok(Some(CaptureItem::Secrets(secrets))) => {
                // Events of the streams that stay closed report keys that cannot be used.
                let _ = pipeline.settings().carry(secrets.kind, secrets.data);
                return true;
            }
            Ok(None) => {
                self.end();
                return false;
            }
            Err(error) => out.fail(error.into()),
        }
        if out.bytes >= PARCEL || !capture.is_at_hand() {
            out.send();
        }
        true
    }

    fn end(&mut self) {
        let Decoding { pipeline, out, .. } = self;
        pipeline.finish(out);
        out.send();
        out.to.take(Parcel::Ended(RunCounts::of(&pipeline.summary())));
    }
}

impl RunCounts {
    pub(super) fn of(summary: &Summary) -> RunCounts {
        let bytes = summary.bytes;
        RunCounts {
            frames: summary.flow.frames,
            records: summary.records,
            messages: summary.messages,
            streams: summary.streams,
            explained: bytes.explained,
            opaque: bytes.opaque,
            undecoded: bytes.undecoded,
            closed: bytes.closed,
            lost: bytes.lost,
        }
    }
}

/// Collects records into parcels.
struct Collector<T> {
    to: T,
    context: Arc<RecordContext>,
    filter: Option<Filter>,
    times: PrintedTimes,
    parcel: Vec<OwnedRecord>,
    /// Bytes of memory that the parcel takes.
    bytes: usize,
    /// Whether anybody still wants parcels.
    open: bool,
    /// Whether the latest record was kept, so that its tree is wanted.
    kept: bool,
}

impl<T: TakeParcel> Collector<T> {
    fn send(&mut self) {
        if !self.parcel.is_empty() {
            self.bytes = 0;
            self.open &= self.to.take(Parcel::Records(std::mem::take(&mut self.parcel)));
        }
    }

    fn fail(&mut self, error: LibraryError) {
        self.send();
        self.open &= self.to.take(Parcel::Failed(error));
    }
}

impl<T: TakeParcel> Output for Collector<T> {
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
