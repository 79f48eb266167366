//! In which ways a record may be read, where programs differ. It knows no bytes.

/// What is in doubt about a record, decided by what fits the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SdlReading {
    /// Nested records have the newest version of all, not the newest version that precedes them in their file.
    pub(super) newest: bool,
    /// How lists of more than 255 records are counted.
    pub(super) long: Long,
}

/// How the count of a list is written that may have more than 255 records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Long {
    /// In 8 bits, with an 8-bit index before each record. This is what clients read.
    #[default]
    Byte,
    /// In 8 bits, modulo 256, and all records follow without an index. This is what clients write.
    Wrapped,
    /// In as many bits as the length of the list needs; indices as well. This is what libHSPlasma writes.
    Wide,
}

/// What makes a second way of reading worth a try.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Doubts {
    /// The newest version of a nested descriptor differs from the one that the file had seen.
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
