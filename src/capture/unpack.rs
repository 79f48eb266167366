//! Recognises compressed captures by their first bytes, and decompresses them while they are read.
//!
//! It knows gzip (RFC 1952) and zstd (RFC 8878), and nothing of what is inside.

use super::error::Packing;
#[cfg(feature = "zstd")]
use super::zstd::Zstd;
use flate2::bufread::MultiGzDecoder;
use std::io::{BufReader, Read};

/// How many compressed bytes are read at a time.
const BUFFER: usize = 64 * 1024;

/// How data with these first bytes is compressed, if it is.
pub(super) fn packing_of(first: &[u8]) -> Option<Packing> {
    match first {
        [0x1f, 0x8b, ..] => Some(Packing::Gzip),
        // A zstd frame, or a skippable one before it (as pzstd writes).
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Packing::Zstd),
        _ => None,
    }
}

/// A reader of the decompressed data. A read returns what is decompressed so far, without waiting
/// for more input.
pub(super) fn unpack(packing: Packing, packed: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
    let packed = BufReader::with_capacity(BUFFER, packed);
    match packing {
        Packing::Gzip => Box::new(MultiGzDecoder::new(packed)),
        #[cfg(feature = "zstd")]
        Packing::Zstd => Box::new(Zstd::new(packed)),
        #[cfg(not(feature = "zstd"))]
        Packing::Zstd => Box::new(WithoutZstd),
    }
}

/// Stands in for a reader of zstd in a build without it: every read is an error.
#[cfg(not(feature = "zstd"))]
struct WithoutZstd;

#[cfg(not(feature = "zstd"))]
impl Read for WithoutZstd {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(std::io::Error::new(
            std::io::ErrorKind::Unsupported,
            "this build reads no zstd (the feature `zstd` is off)",
        ))
    }
}
