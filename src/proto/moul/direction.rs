//! One direction of a connection: the bytes that wait to become messages, and the cipher that
//! decrypts them.

use super::keys::Rc4;
use crate::capture::Moment;
use crate::session::StreamBuffer;
use crate::session::{Context, Emit, Side};

/// How far a keystream is advanced over bytes that were never captured: this many bytes in any
/// case, and this many more for each captured byte. Without the bound, a few packets with distant
/// sequence numbers would keep the program busy for minutes.
const FREE_SKIP: u64 = 16 << 20;
const SKIP_PER_BYTE: u64 = 4096;

/// Keeps at most this many bytes of a direction while looking for the next message.
const WINDOW: usize = 256 << 10;
/// This many searches behind an unreadable message run at each new piece. Later ones wait for more
/// bytes.
const EARLY_SEARCHES: u32 = 8;

/// How the next bytes of a direction are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The connect packet (only the client sends one).
    Connect,
    /// A packet of the key agreement.
    Handshake,
    /// Messages, but whether and with which key they are encrypted is not decided yet.
    Waiting,
    /// Messages.
    Messages,
    /// Messages, but framing is lost.
    Lost,
    /// A connection older than the capture. Whether and how it is encrypted is not known yet.
    Joined,
    /// Encrypted without a key.
    Encrypted,
    /// Another protocol, left alone.
    Foreign,
}

/// One direction.
pub(super) struct Direction {
    /// How the next bytes are read.
    pub(super) stage: Stage,
    /// The waiting bytes, decrypted once the cipher is set.
    pub(super) stream: StreamBuffer,
    /// Decrypts incoming bytes.
    cipher: Option<Box<Rc4>>,
    /// Bytes of keystream used before the first waiting byte. Counted until the key is decided.
    ahead: u64,
    /// Numbers of captured bytes and of missing bytes.
    captured: u64,
    skipped: u64,
    /// Stream offset where the message that a gap cut ends, if its layout says so.
    pub(super) predicted: Option<u64>,
    /// Framing was lost at a message that the tables cannot read, not at a gap: most pieces of the
    /// stream still begin with a message.
    pub(super) pieces_tell: bool,
    /// Searches since framing was lost.
    pub(super) searches: u32,
    /// The transaction of the last message that had one.
    pub(super) last_transaction: Option<u64>,
}

impl Direction {
    pub(super) fn new(stage: Stage) -> Self {
        Direction {
            stage,
            stream: StreamBuffer::default(),
            cipher: None,
            ahead: 0,
            captured: 0,
            skipped: 0,
            predicted: None,
            pieces_tell: false,
            searches: 0,
            last_transaction: None,
        }
    }

    /// Appends the next bytes of the stream, decrypted if a cipher is set.
    pub(super) fn push(&mut self, bytes: &[u8], at: Moment) {
        self.captured += bytes.len() as u64;
        match &mut self.cipher {
            Some(cipher) => {
                self.stream.push_with(bytes.len(), at, |buffer| cipher.apply_into(bytes, buffer));
            }
            None => self.stream.push(bytes, at),
        }
    }

    /// Hands the first `bytes` waiting bytes, which become no message, to outputs that follow the
    /// stream. Bytes whose key is not decided yet are not plaintext, so they are left out.
    pub(super) fn emit_plaintext(&self, side: Side, bytes: usize, emit: &mut dyn Emit) {
        let settled =
            matches!(self.stage, Stage::Connect | Stage::Handshake | Stage::Messages | Stage::Lost);
        let bytes = self.stream.waiting().get(..bytes).unwrap_or(self.stream.waiting());
        if settled && !bytes.is_empty() {
            emit.plaintext(side, self.stream.offset(), bytes);
        }
    }

    /// Whether no byte behind the key agreement is missing, so that the keystream begins at the
    /// first waiting byte.
    pub(super) fn is_aligned(&self) -> bool {
        self.ahead == 0
    }

    /// Decrypts everything from the first waiting byte on with this cipher.
    pub(super) fn decrypt_from_here(&mut self, mut cipher: Rc4) {
        cipher.skip(self.ahead);
        cipher.apply(self.stream.waiting_mut());
        self.cipher = Some(Box::new(cipher));
    }

    /// Decrypts everything from the first waiting byte on with this cipher, which first skips
    /// `used` bytes of its keystream.
    pub(super) fn decrypt_at(&mut self, cipher: Rc4, used: u64) {
        self.ahead = used;
        self.decrypt_from_here(cipher);
    }

    /// Gives up `bytes` waiting bytes before the key is decided. The sender used keystream for them
    /// too, so they are counted.
    pub(super) fn use_keystream(&mut self, bytes: u64) {
        self.ahead = self.ahead.saturating_add(bytes);
    }

    /// Begins the search for lost framing. With `pieces_tell`, most pieces of the stream still
    /// begin with a message.
    pub(super) fn begin_search(&mut self, pieces_tell: bool) {
        self.stage = Stage::Lost;
        self.pieces_tell = pieces_tell;
        self.searches = 0;
    }

    /// After a search that found nothing: bounds the waiting bytes, and sets how many must wait
    /// before the next search.
    pub(super) fn wait_for_search(&mut self, side: Side, context: &mut Context<'_>) {
        if self.stream.waiting().len() > WINDOW {
            self.emit_plaintext(side, WINDOW / 2, context.emit);
            self.stream.pass(WINDOW / 2, context.options.max_undecoded);
        }
        let waiting = self.stream.waiting().len();
        self.searches = self.searches.saturating_add(1);
        // Asking for a fixed share more each time keeps all searches together linear. The
        // exception: behind an unreadable message, the next piece probably begins a message.
        let more = match waiting {
            0 => 1,
            _ if self.pieces_tell && self.searches <= EARLY_SEARCHES => 1,
            _ => (waiting / 4).max(64),
        };
        self.stream.set_need(waiting + more);
    }

    /// Advances the keystream over `bytes` bytes that were never captured, now or once the key is
    /// decided. Returns false if that would be too much work for what was captured.
    pub(super) fn skip_keystream(&mut self, bytes: u64) -> bool {
        if matches!(self.stage, Stage::Encrypted | Stage::Foreign) {
            return true;
        }
        self.skipped = self.skipped.saturating_add(bytes);
        let wanted = self.cipher.is_some() || matches!(self.stage, Stage::Waiting | Stage::Joined);
        if wanted
            && self.skipped > FREE_SKIP.saturating_add(self.captured.saturating_mul(SKIP_PER_BYTE))
        {
            return false;
        }
        match &mut self.cipher {
            Some(cipher) => cipher.skip(bytes),
            None => self.ahead = self.ahead.saturating_add(bytes),
        }
        true
    }
}
