//! The list of tags before a message's bytes: each a number and a length of 16 bits, big-endian,
//! and its value. A list ends with a tag of number 0.
//!
//! A value is padded with zeros to a multiple of four, and its length counts the padding: Wireshark
//! goes on behind the length.

/// The name of the dissector that takes the bytes.
pub(super) const DISSECTOR: u16 = 12;
/// Addresses: source and destination, IPv4 and IPv6.
pub(super) const IPV4: [u16; 2] = [20, 21];
pub(super) const IPV6: [u16; 2] = [22, 23];
/// Which transport the ports belong to, in 4 bytes.
pub(super) const PORT_TYPE: u16 = 24;
/// Ports: source and destination, 4 bytes each.
pub(super) const PORTS: [u16; 2] = [25, 26];
/// The number of the frame in the capture that was exported.
pub(super) const FRAME: u16 = 30;
/// The text of the protocol column.
pub(super) const PROTOCOL_COLUMN: u16 = 33;
/// The text of the info column (Wireshark 4.2 and later).
pub(super) const INFO_COLUMN: u16 = 36;
/// The number of the TCP stream.
pub(super) const TCP_STREAM: u16 = 39;
/// Our own: a piece of the packed tree. No Wireshark has a tag of this number; it shows one as
/// unknown.
pub(super) const PACKED: u16 = 0x4d53;

/// Our own: what came before the message, and what came after it.
pub(super) const CARRIED: u16 = 0x4d54;
pub(super) const CARRIED_AFTER: u16 = 0x4d55;

/// `PT_TCP` and `PT_UDP`.
pub(super) const TCP: u32 = 2;
pub(super) const UDP: u32 = 3;

/// The most bytes in one value: a length has 16 bits, and padding has to fit.
const MOST: usize = 65532;

/// Appends a tag. A value that is too long for one becomes several tags of the same number.
pub(super) fn put(out: &mut Vec<u8>, tag: u16, value: &[u8]) {
    for piece in value.chunks(MOST) {
        let padded = piece.len().next_multiple_of(4);
        out.extend_from_slice(&tag.to_be_bytes());
        out.extend_from_slice(&(padded as u16).to_be_bytes());
        out.extend_from_slice(piece);
        out.resize(out.len() + padded - piece.len(), 0);
    }
}

/// Appends a tag whose value is a number of 4 bytes.
pub(super) fn put_number(out: &mut Vec<u8>, tag: u16, value: u32) {
    put(out, tag, &value.to_be_bytes());
}

/// Ends the list.
pub(super) fn end(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0; 4]);
}

/// The tags of a list, and behind the last one the bytes that follow it.
pub(super) struct TagReader<'a> {
    pub(super) rest: &'a [u8],
}

impl<'a> TagReader<'a> {
    /// The next tag; `None` at the list's end.
    ///
    /// # Errors
    /// The bytes end within the list.
    pub(super) fn next_tag(&mut self) -> Result<Option<(u16, &'a [u8])>, &'static str> {
        const CUT: &str = "its list of tags is cut off";
        let (head, rest) = self.rest.split_first_chunk::<4>().ok_or(CUT)?;
        let [a, b, c, d] = *head;
        let tag = u16::from_be_bytes([a, b]);
        let length = usize::from(u16::from_be_bytes([c, d]));
        let (value, rest) = rest.split_at_checked(length).ok_or(CUT)?;
        self.rest = rest;
        Ok((tag != 0).then_some((tag, value)))
    }
}

/// A number of 4 bytes.
pub(super) fn number(value: &[u8]) -> Option<u32> {
    value.first_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes))
}

/// A text without its padding.
pub(super) fn text(value: &[u8]) -> Option<&str> {
    let length = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
    std::str::from_utf8(value.get(..length)?).ok()
}
