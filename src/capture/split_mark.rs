//! How a pcapng section says that it is a part of a capture that was split, and how many frames
//! that capture had.

use super::bytes::Endianness;
use super::options::{OPTION_COMMENT, options as options_of};

/// `shb_userappl` of a part: its packet identifiers are frame numbers of the capture that was
/// split.
pub(super) const SPLIT_PROGRAM: &str = concat!("moulsniff ", env!("CARGO_PKG_VERSION"), " split");

/// Whether a `shb_userappl` says that this program, in any version, split a capture.
pub(super) fn is_split(program: &[u8]) -> bool {
    program.starts_with(b"moulsniff ") && program.ends_with(b" split")
}

/// What follows the number of frames in the comment of a part's last section.
pub(super) const TOTAL_WORDS: &str = " frames in the capture that was split";

/// The number of frames of the capture that was split, where the options of a section header state
/// it.
pub(super) fn split_total(order: Endianness, header: &[u8]) -> Option<u64> {
    let comment = options_of(order, header).find(|option| option.code == OPTION_COMMENT)?;
    std::str::from_utf8(comment.value).ok()?.strip_suffix(TOTAL_WORDS)?.parse().ok()
}
