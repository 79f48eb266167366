//! The options at the end of a pcapng block (draft-ietf-opsawg-pcapng, section 3.5).

use super::bytes::Endianness;

/// `opt_endofopt`.
pub(super) const OPTION_END: u16 = 0;
/// `opt_comment`: text.
pub(super) const OPTION_COMMENT: u16 = 1;
/// `shb_userappl`: the program that wrote a section.
pub(super) const OPTION_PROGRAM: u16 = 4;
/// `epb_packetid`: a number of 8 bytes.
pub(super) const OPTION_PACKET_ID: u16 = 5;
/// `isb_ifdrop`: a number of 8 bytes, of frames for which the interface had no room.
pub(super) const OPTION_INTERFACE_DROPS: u16 = 5;
/// `isb_osdrop`: a number of 8 bytes, of frames for which the system had no room.
pub(super) const OPTION_SYSTEM_DROPS: u16 = 7;
/// `if_tsresol`: one byte.
pub(super) const OPTION_RESOLUTION: u16 = 9;
/// `if_fcslen`: one byte.
pub(super) const OPTION_FCS: u16 = 13;
/// `if_tsoffset`: a signed number of 8 bytes.
pub(super) const OPTION_OFFSET: u16 = 14;
/// Code and length, before an option's value.
const OPTION_HEADER: usize = 4;

/// One option.
#[derive(Clone, Copy)]
pub(super) struct BlockOption<'a> {
    pub(super) code: u16,
    /// Without padding.
    pub(super) value: &'a [u8],
    /// Code, length, value and padding.
    pub(super) whole: &'a [u8],
}

/// Iterates over options up to `opt_endofopt` or the end of the block. An option that is longer
/// than the rest of the block ends the iteration.
pub(super) fn options(
    order: Endianness,
    mut bytes: &[u8],
) -> impl Iterator<Item = BlockOption<'_>> {
    std::iter::from_fn(move || {
        let code = order.u16_at(bytes, 0)?;
        let length = usize::from(order.u16_at(bytes, 2)?);
        if code == OPTION_END {
            return None;
        }
        let value = bytes.get(OPTION_HEADER..)?.get(..length)?;
        let padded = (OPTION_HEADER + length).next_multiple_of(4).min(bytes.len());
        let (whole, rest) = bytes.split_at_checked(padded)?;
        bytes = rest;
        Some(BlockOption { code, value, whole })
    })
}
