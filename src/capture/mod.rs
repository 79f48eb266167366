//! Capture files and pipes, turned into frames with time and link type.
//!
//! This room never looks inside a frame: what a link type means is `flow`'s business. Nor does it know
//! what a decryption secret says: it hands the bytes on, with the number that names their kind.
//!
//! [`Capture`] reads one or more files as one run; `write` makes pcapng, for live captures and for putting
//! secrets into a capture and taking them out again.

mod ahead;
mod bytes;
mod clock;
mod error;
mod input;
mod live;
mod pcap;
mod pcap_variant;
mod pcapng;
mod reader;
mod rewrite;
mod run;
mod source;
mod tail;
mod unpack;
mod write;
mod zstd;

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod rewrite_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use error::{CaptureError, Packing, Problem};
pub use live::{Interface, Live, LiveError, Taken, interfaces};
pub use rewrite::{Output, Rewritten, inject, strip};
pub use run::Capture;
pub use source::Source;
pub use tail::{Ended, Grown, Tail};
pub use write::PcapngWriter;

/// A point in time as a capture states it, with the precision it was written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Time {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub seconds: i64,
    /// Nanoseconds within the second, below 1,000,000,000.
    pub nanos: u32,
    /// How many decimal digits of the second the capture's clock has (6: microseconds, 9: nanoseconds).
    pub digits: u8,
}

/// One captured frame. The bytes are borrowed from the reader until the next frame is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Number in the whole run, from 1, going on from file to file, as Wireshark numbers frames.
    pub number: u64,
    /// When it was captured; zero where the capture does not say (a pcapng Simple Packet Block).
    pub time: Time,
    /// Link type (`LINKTYPE_*` of the tcpdump group's registry).
    pub link: u16,
    /// The captured bytes, perhaps cut by a snap length.
    pub data: &'a [u8],
    /// How many bytes the frame had on the wire.
    pub wire_len: u32,
}

/// What a pcapng Decryption Secrets Block carries, whole and unread.
///
/// Its `Debug` form tells the kind and the length, never the bytes.
#[derive(Clone, Copy)]
pub struct Secrets<'a> {
    /// The block's secrets type (`0x544c534b` is a TLS key log, for one).
    pub kind: u32,
    /// The secrets themselves, without padding.
    pub data: &'a [u8],
}

/// What a capture holds, in the order it holds it.
#[derive(Clone, Copy, Debug)]
pub enum Item<'a> {
    /// A captured frame.
    Frame(Frame<'a>),
    /// Secrets that open what comes after them.
    Secrets(Secrets<'a>),
}

impl std::fmt::Debug for Secrets<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").field("kind", &self.kind).field("length", &self.data.len()).finish_non_exhaustive()
    }
}
