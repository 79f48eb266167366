//! Capture files and pipes, turned into frames with time and link type.
//!
//! This room never looks inside a frame: what a link type means is `flow`'s business.

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
    /// When it was captured.
    pub time: Time,
    /// Link type (`LINKTYPE_*` of the tcpdump group's registry).
    pub link: u16,
    /// The captured bytes, perhaps cut by a snap length.
    pub data: &'a [u8],
    /// How many bytes the frame had on the wire.
    pub wire_len: u32,
}
