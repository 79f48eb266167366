//! One direction of a connection: the bytes that wait to become messages, and the cipher that decrypts them.

use super::super::{Context, Emit, Moment, Side};
use super::keys::Rc4;
use crate::session::StreamBuffer;

/// How far a keystream is run past bytes that were never captured: this many bytes, and this many for each captured one. Without the bound, a few packets
/// with sequence numbers far apart would keep the program busy for minutes.
const FREE_SKIP: u64 = 16 << 20;
const SKIP_PER_BYTE: u64 = 4096;

/// Bytes of a direction that are kept while the next message is looked for.
const WINDOW: usize = 256 << 10;
/// Searches behind an unreadable message that are made with each new piece; later ones wait for more.
const EARLY_SEARCHES: u32 = 8;

/// What the next bytes of a direction are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The connect packet (only the client sends one).
    Connect,
    /// A packet of the key agreement.
    Handshake,
    /// Messages whose key is not settled yet.
    Waiting,
    /// Messages.
    Messages,
    /// Messages, but where the next one begins is not known.
    Lost,
    /// A connection that was there before the capture: whether its bytes are encrypted, and how, is not known yet.
    Joined,
    /// Encrypted without a key.
    Closed,
    /// Another protocol, left alone.
    Foreign,
}

/// One direction.
pub(super) struct Half {
    /// What comes next.
    pub(super) stage: Stage,
    /// The bytes that wait, in clear once the cipher is set.
    pub(super) stream: StreamBuffer,
    /// Decrypts what comes in.
    cipher: Option<Rc4>,
    /// Bytes of keystream that were used before the first waiting byte, while the key is not settled.
    ahead: u64,
    /// Bytes that were captured, and that were not.
    captured: u64,
    skipped: u64,
    /// Stream offset at which the message that a gap cut ends by its own layout.
    pub(super) predicted: Option<u64>,
    /// Framing was lost at a message that the tables do not read, and not at a gap: the stream's pieces mostly begin with a message still.
    pub(super) pieces_tell: bool,
    /// Searches since framing was lost.
    pub(super) searches: u32,
    /// The transaction of the last message that had one.
    pub(super) last_transaction: Option<u64>,
}

impl Half {
    pub(super) fn new(stage: Stage) -> Self {
        Half {
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

    /// Takes the next bytes of the stream in, decrypted if a cipher is set.
    pub(super) fn push(&mut self, bytes: &[u8], at: Moment) {
        self.captured += bytes.len() as u64;
        match &mut self.cipher {
            Some(cipher) => self.stream.push_with(bytes.len(), at, |buffer| cipher.apply_into(bytes, buffer)),
            None => self.stream.push(bytes, at),
        }
    }

    /// Hands the first `bytes` waiting bytes, which become no message, to outputs that follow the stream. Bytes whose key is not settled are no
    /// plaintext, and are not handed on.
    pub(super) fn follow(&self, side: Side, bytes: usize, emit: &mut dyn Emit) {
        let settled = matches!(self.stage, Stage::Connect | Stage::Handshake | Stage::Messages | Stage::Lost);
        let bytes = self.stream.waiting().get(..bytes).unwrap_or(self.stream.waiting());
        if settled && !bytes.is_empty() {
            emit.plaintext(side, self.stream.offset(), bytes);
        }
    }

    /// Whether no byte behind the key agreement is missing: the waiting ones are where the keystream begins.
    pub(super) fn is_aligned(&self) -> bool {
        self.ahead == 0
    }

    /// From the first waiting byte on, everything goes through this cipher.
    pub(super) fn decrypt_from_here(&mut self, mut cipher: Rc4) {
        cipher.skip(self.ahead);
        cipher.apply(self.stream.waiting_mut());
        self.cipher = Some(cipher);
    }

    /// From the first waiting byte on, everything goes through this cipher, after `used` bytes of its keystream.
    pub(super) fn decrypt_at(&mut self, cipher: Rc4, used: u64) {
        self.ahead = used;
        self.decrypt_from_here(cipher);
    }

    /// `bytes` waiting bytes are given up before the key is settled: keystream was used for them all the same.
    pub(super) fn use_keystream(&mut self, bytes: u64) {
        self.ahead = self.ahead.saturating_add(bytes);
    }

    /// Framing is lost; `pieces_tell` says that the stream's pieces still mostly begin with a message.
    pub(super) fn lose(&mut self, pieces_tell: bool) {
        self.stage = Stage::Lost;
        self.pieces_tell = pieces_tell;
        self.searches = 0;
    }

    /// Nothing was found among the waiting bytes: bounds them, and says how many make another search worth while.
    pub(super) fn wait_for_search(&mut self, side: Side, context: &mut Context<'_>) {
        if self.stream.waiting().len() > WINDOW {
            self.follow(side, WINDOW / 2, context.emit);
            self.stream.pass(WINDOW / 2, context.options.max_undecoded);
        }
        let waiting = self.stream.waiting().len();
        self.searches = self.searches.saturating_add(1);
        // A good part more each time keeps all searches together linear. Behind an unreadable message, the next piece may be a message.
        let more = match waiting {
            0 => 1,
            _ if self.pieces_tell && self.searches <= EARLY_SEARCHES => 1,
            _ => (waiting / 4).max(64),
        };
        self.stream.set_need(waiting + more);
    }

    /// `bytes` bytes were never captured: the keystream goes past them, now or when the key is settled. False where the work for that would be out
    /// of proportion to what was captured.
    pub(super) fn skip_keystream(&mut self, bytes: u64) -> bool {
        if matches!(self.stage, Stage::Closed | Stage::Foreign) {
            return true;
        }
        self.skipped = self.skipped.saturating_add(bytes);
        let wanted = self.cipher.is_some() || matches!(self.stage, Stage::Waiting | Stage::Joined);
        if wanted && self.skipped > FREE_SKIP.saturating_add(self.captured.saturating_mul(SKIP_PER_BYTE)) {
            return false;
        }
        match &mut self.cipher {
            Some(cipher) => cipher.skip(bytes),
            None => self.ahead = self.ahead.saturating_add(bytes),
        }
        true
    }
}
