//! Bytes of a stream that are kept until its protocol is known.
//!
//! It copies what it keeps and says when it holds enough. It knows no protocol.

use std::collections::VecDeque;

use crate::capture::Moment;
use crate::flow::{Dir, End, Note};

/// How many bytes of each direction of a TCP stream are looked at to recognise its protocol.
const LOOK: usize = 4096;
/// With more bytes than this, the protocols have to decide.
const MAX_BYTES: usize = 64 << 10;
const MAX_PIECES: usize = 256;
/// How many datagrams, and of how many bytes, are kept.
const MAX_DATAGRAMS: usize = 1024;
const MAX_DATAGRAM_BYTES: usize = 256 << 10;
/// Memory of a kept piece beside its bytes, roughly.
const OVERHEAD: usize = 96;

/// One piece of a stream, in the order of the capture.
pub(super) struct Kept {
    pub(super) dir: Dir,
    pub(super) at: Moment,
    pub(super) what: KeptWhat,
}

pub(super) enum KeptWhat {
    /// Bytes of a TCP stream at an offset.
    Bytes(u64, Vec<u8>),
    /// A datagram, and how many of its last bytes were not captured.
    Datagram(Vec<u8>, u64),
    /// Bytes that were never captured: offset and length.
    Gap(u64, u64),
    Note(Note),
    End(End),
}

/// Datagrams that were not kept, because too many came before the protocol was known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ForgottenDatagrams {
    /// How many of each direction, forward and backward, and their bytes.
    pub(super) datagrams: [u64; 2],
    pub(super) bytes: [u64; 2],
    /// When the last of them came.
    pub(super) at: Moment,
}

/// All pieces of a stream so far.
#[derive(Default)]
pub(super) struct WaitingPieces {
    pieces: VecDeque<Kept>,
    /// The bytes that the protocols look at, forward and backward.
    looks: [Vec<u8>; 2],
    /// What the latest datagram took the place of in `looks`.
    before: Vec<u8>,
    bytes: usize,
    forgotten: ForgottenDatagrams,
}

impl WaitingPieces {
    /// Keeps a piece of a TCP stream, or anything but a datagram.
    pub(super) fn keep(&mut self, dir: Dir, at: Moment, what: KeptWhat) {
        if let KeptWhat::Bytes(_, bytes) = &what {
            let look = of(&mut self.looks, dir);
            let wanted = LOOK.saturating_sub(look.len()).min(bytes.len());
            look.extend_from_slice(bytes.get(..wanted).unwrap_or(bytes));
        }
        self.bytes += OVERHEAD + what.length();
        self.pieces.push_back(Kept { dir, at, what });
    }

    /// Keeps a datagram. The protocols look at all of it, since some are recognised by the end of
    /// their datagrams. If there are too many, the oldest ones are forgotten.
    pub(super) fn keep_datagram(&mut self, dir: Dir, at: Moment, bytes: &[u8], missing: u64) {
        let look = of(&mut self.looks, dir);
        self.before.clear();
        self.before.extend_from_slice(bytes);
        std::mem::swap(look, &mut self.before);
        self.keep(dir, at, KeptWhat::Datagram(bytes.to_vec(), missing));
        while self.pieces.len() > MAX_DATAGRAMS || self.bytes > MAX_DATAGRAM_BYTES {
            if !self.forget_oldest() {
                break;
            }
        }
    }

    /// No protocol takes the latest datagram of a direction for its own: the one before it is
    /// looked at again.
    pub(super) fn look_back(&mut self, dir: Dir) {
        std::mem::swap(of(&mut self.looks, dir), &mut self.before);
    }

    /// Forgets all datagrams, to free memory.
    pub(super) fn forget_all(&mut self) {
        while self.forget_oldest() {}
    }

    /// Returns whether there was one. What comes behind an end is kept.
    fn forget_oldest(&mut self) -> bool {
        if self.pieces.front().is_some_and(|kept| matches!(kept.what, KeptWhat::End(_))) {
            return false;
        }
        let Some(Kept { dir, at, what }) = self.pieces.pop_front() else { return false };
        self.bytes = self.bytes.saturating_sub(OVERHEAD + what.length());
        if let KeptWhat::Datagram(bytes, _) = what {
            *of(&mut self.forgotten.datagrams, dir) += 1;
            *of(&mut self.forgotten.bytes, dir) += bytes.len() as u64;
            self.forgotten.at = at;
        }
        true
    }

    /// The memory of all pieces, roughly, in bytes.
    pub(super) fn held(&self) -> usize {
        self.bytes
    }

    /// The bytes that the protocols look at, forward and backward.
    pub(super) fn looks(&self) -> [&[u8]; 2] {
        let [forward, backward] = &self.looks;
        [forward, backward]
    }

    /// The direction of the first piece.
    pub(super) fn first_dir(&self) -> Option<Dir> {
        self.pieces.front().map(|kept| kept.dir)
    }

    /// Whether enough is kept of a TCP stream that the protocols have to decide now.
    pub(super) fn is_full(&self) -> bool {
        let looked_enough = self.looks.iter().any(|look| look.len() >= LOOK);
        looked_enough || self.pieces.len() >= MAX_PIECES || self.bytes > MAX_BYTES
    }

    /// Whether as many datagrams are kept as there may be.
    pub(super) fn has_most_datagrams(&self) -> bool {
        self.pieces.len() >= MAX_DATAGRAMS || self.forgotten.datagrams != [0; 2]
    }

    /// The datagrams that were forgotten, and the pieces that were kept, in their order.
    pub(super) fn into_pieces(self) -> (ForgottenDatagrams, VecDeque<Kept>) {
        (self.forgotten, self.pieces)
    }
}

impl KeptWhat {
    fn length(&self) -> usize {
        match self {
            KeptWhat::Bytes(_, bytes) | KeptWhat::Datagram(bytes, _) => bytes.len(),
            _ => 0,
        }
    }
}

/// A direction's element of a pair in which the forward one comes first.
fn of<T>(pair: &mut [T; 2], dir: Dir) -> &mut T {
    let [forward, backward] = pair;
    if dir == Dir::Forward { forward } else { backward }
}
