//! Reads capture files and pipes, and gives frames with their time and link type.
//!
//! This module never looks inside a frame: `flow` knows what a link type means. It does not read
//! decryption secrets either: it passes their bytes on with the number of their kind.
//!
//! [`Capture`] reads one or more files as one capture. `write` writes pcapng, for live captures and
//! for injecting secrets into a capture and stripping them again.

mod ahead;
mod block;
mod bytes;
mod clock;
mod conversation;
mod error;
mod input;
mod live;
mod options;
mod pcap;
mod pcap_variant;
mod pcapng;
mod reader;
mod rewrite;
mod run;
mod source;
mod split;
mod split_mark;
mod tail;
mod unpack;
mod write;
#[cfg(feature = "zstd")]
mod zstd;

use std::io::Read;

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod rewrite_tests;
#[cfg(test)]
mod split_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use conversation::{ConversationWriter, MadeBytes, MadeEnd};
pub use error::{CaptureError, CaptureProblem, Packing};
pub use live::{Interface, Live, LiveError, Taken, interfaces};
pub use reader::is_magic;
pub use rewrite::{RewriteTarget, Rewritten, inject, strip};
pub use run::Capture;
pub use source::{Source, is_of_kernel};
pub use split::{ChoosePart, Splitter};
pub use tail::{Ended, FileChange, Grown, Tail};
pub use write::PcapngWriter;

/// Turns a text into a capture while it is read, if it has a known format. It is given the name of
/// the file and its first bytes.
pub type Convert = fn(&str, &[u8]) -> Option<ConvertedReader>;

/// Makes the reader of a capture from that of a text.
pub type ConvertedReader = Box<dyn FnOnce(Box<dyn Read + Send>) -> Box<dyn Read + Send>>;

/// A point in time as a capture states it, with the precision of the capture's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Time {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub seconds: i64,
    /// Nanoseconds within the second, below 1,000,000,000.
    pub nanos: u32,
    /// Decimal digits of the second that the capture's clock counts (6: microseconds, 9:
    /// nanoseconds).
    pub digits: u8,
}

impl Time {
    /// Whether a damaged clock gave it: it is the first or the last time that can be written.
    pub fn is_of_damaged_clock(self) -> bool {
        [clock::EARLIEST, clock::LATEST].contains(&self.seconds)
    }
}

/// The frame at which something became known, and when that frame was captured.
///
/// Ordered by the frame's number first. [`Default`] is for bytes that come from no capture: frame 0
/// at time 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Moment {
    /// Number of the frame, from 1, as in [`Frame::number`].
    pub frame: u64,
    /// When that frame was captured.
    pub time: Time,
}

/// One captured frame. Its bytes are borrowed from the reader and end with the next call for an
/// item.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Number of the frame, from 1, counted across all files of the capture, as Wireshark numbers
    /// frames.
    pub number: u64,
    /// When it was captured; zero if the capture does not record it (a pcapng Simple Packet Block).
    pub time: Time,
    /// Link type (`LINKTYPE_*` of the tcpdump group's registry).
    pub link: u16,
    /// The captured bytes, which a snap length may have cut.
    pub data: &'a [u8],
    /// How many bytes the frame had on the wire.
    pub wire_len: u32,
}

/// The content of a pcapng Decryption Secrets Block, not interpreted.
///
/// Its `Debug` form shows the kind and the length, never the bytes.
#[derive(Clone, Copy)]
pub struct EmbeddedSecrets<'a> {
    /// The block's secrets type (for example `0x544c534b`, a TLS key log).
    pub kind: u32,
    /// The secrets themselves, without padding.
    pub data: &'a [u8],
}

/// One item of a capture. Items come in the order of the file.
#[derive(Clone, Copy, Debug)]
pub enum CaptureItem<'a> {
    /// A captured frame.
    Frame(Frame<'a>),
    /// Secrets that decrypt frames after them.
    Secrets(EmbeddedSecrets<'a>),
}

impl std::fmt::Debug for EmbeddedSecrets<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmbeddedSecrets")
            .field("kind", &self.kind)
            .field("length", &self.data.len())
            .finish_non_exhaustive()
    }
}
