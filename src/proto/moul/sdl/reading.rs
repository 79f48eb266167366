//! The ways to read a record on which programs differ. It knows no bytes.

/// One way to read a record. Which way is right is decided by what fits the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SdlReading {
    /// Nested records have the newest version of all, not the newest version that precedes them in
    /// their file.
    pub(super) newest: bool,
    /// How lists of more than 255 records are counted.
    pub(super) long: Long,
}

/// How a list that may have more than 255 records writes its count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Long {
    /// In 8 bits, with an 8-bit index before each record, as clients read it.
    #[default]
    Byte,
    /// In 8 bits, modulo 256, followed by all records without an index, as clients write it.
    Wrapped,
    /// In as many bits as the length of the list needs, as are the indices. libHSPlasma writes
    /// this.
    Wide,
}

/// A reason to try a second way of reading.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Doubts {
    /// The newest version of a nested descriptor differs from the newest one before it in the file.
    pub(super) version: bool,
    /// A list may have more than 255 records.
    pub(super) long_list: bool,
}

/// All ways of reading, the usual one first.
pub(super) fn readings() -> impl Iterator<Item = SdlReading> {
    [Long::Byte, Long::Wrapped, Long::Wide]
        .into_iter()
        .flat_map(|long| [false, true].map(|newest| SdlReading { newest, long }))
}
