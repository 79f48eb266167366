//! Bytes of a stream that are kept until its protocol is known.
//!
//! It copies what it keeps and says when it holds enough. It knows no protocol.

use crate::capture::Moment;
use crate::flow::{Dir, End, Note};
use crate::session::Transport;

/// How many bytes of each direction of a TCP stream are looked at to recognise its protocol.
const LOOK: usize = 4096;
/// With more bytes than this, the protocols have to decide.
const MAX_BYTES: usize = 64 << 10;
const MAX_PIECES: usize = 256;
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

/// All pieces of a stream so far.
#[derive(Default)]
pub(super) struct WaitingPieces {
    pieces: Vec<Kept>,
    /// The bytes that the protocols look at, forward and backward.
    looks: [Vec<u8>; 2],
    bytes: usize,
}

impl WaitingPieces {
    /// Keeps a piece. Returns its memory, roughly, in bytes.
    pub(super) fn keep(&mut self, dir: Dir, at: Moment, what: KeptWhat) -> usize {
        let [forward, backward] = &mut self.looks;
        let look = if dir == Dir::Forward { forward } else { backward };
        let length = match &what {
            KeptWhat::Bytes(_, bytes) => {
                let wanted = LOOK.saturating_sub(look.len()).min(bytes.len());
                look.extend_from_slice(bytes.get(..wanted).unwrap_or(bytes));
                bytes.len()
            }
            // For UDP, the protocols look at the latest datagram, and at all of it: some protocols
            // are recognised by the end of their datagrams.
            KeptWhat::Datagram(bytes, _) => {
                look.clear();
                look.extend_from_slice(bytes);
                bytes.len()
            }
            _ => 0,
        };
        self.pieces.push(Kept { dir, at, what });
        self.bytes += OVERHEAD + length;
        OVERHEAD + length
    }

    /// The bytes that the protocols look at, forward and backward.
    pub(super) fn looks(&self) -> [&[u8]; 2] {
        let [forward, backward] = &self.looks;
        [forward, backward]
    }

    /// Whether enough is kept that the protocols have to decide now.
    pub(super) fn is_full(&self, transport: Transport) -> bool {
        let looked_enough =
            transport == Transport::Tcp && self.looks.iter().any(|look| look.len() >= LOOK);
        looked_enough || self.pieces.len() >= MAX_PIECES || self.bytes > MAX_BYTES
    }

    pub(super) fn into_pieces(self) -> Vec<Kept> {
        self.pieces
    }
}
