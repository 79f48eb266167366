//! One direction of a connection: bytes that wait to become messages, and the cipher they come in.

use std::collections::VecDeque;

use super::super::{Emit, Moment, Side};
use super::keys::Rc4;

/// Larger buffers are given back once they are empty.
const KEEP_CAPACITY: usize = 64 << 10;

/// How far a keystream is run past what was never captured: so many bytes, and so many for each captured one. Beyond, a few packets with
/// numbers far apart would keep the program busy for minutes.
const FREE_SKIP: u64 = 16 << 20;
const SKIP_PER_BYTE: u64 = 4096;

/// Attempts at a message after which its length, beyond this, is looked at.
const MANY: u32 = 64;
const LONG: usize = 256 << 10;

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
    /// A connection that was there before the capture: nothing is known of how its bytes come.
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
    /// Bytes from `start` on wait; those before are used up.
    pending: Vec<u8>,
    start: usize,
    /// Stream offset of the first waiting byte.
    offset: u64,
    /// Decrypts what comes in.
    cipher: Option<Rc4>,
    /// Waiting bytes that make another attempt worth while.
    pub(super) need: usize,
    /// How often the message that waits was found not to be whole yet.
    attempts: u32,
    /// Bytes right before the waiting ones that became no message.
    passed: u64,
    /// Keystream that is used up before the first waiting byte, while the key is not settled.
    ahead: u64,
    /// Bytes that were captured, and that were not.
    captured: u64,
    skipped: u64,
    /// Stream offset at which the message that a hole cut says it ends.
    pub(super) predicted: Option<u64>,
    /// The last transaction that was told.
    pub(super) last_transaction: Option<u64>,
    /// Which frame brought the bytes up to an offset, as far as they wait.
    arrivals: VecDeque<(u64, Moment)>,
}

impl Half {
    pub(super) fn new(stage: Stage) -> Self {
        Half {
            stage,
            pending: Vec::new(),
            start: 0,
            offset: 0,
            cipher: None,
            need: 1,
            attempts: 0,
            passed: 0,
            ahead: 0,
            captured: 0,
            skipped: 0,
            predicted: None,
            last_transaction: None,
            arrivals: VecDeque::new(),
        }
    }

    /// Takes the next bytes of the stream in, decrypted if they are to be.
    pub(super) fn push(&mut self, bytes: &[u8], at: Moment) {
        let end = self.offset + (self.waiting().len() + bytes.len()) as u64;
        self.captured += bytes.len() as u64;
        match self.arrivals.back_mut() {
            Some(last) if last.1 == at => last.0 = end,
            _ => self.arrivals.push_back((end, at)),
        }
        if self.start > 0 && (self.start == self.pending.len() || self.start > KEEP_CAPACITY) {
            self.pending.drain(..self.start);
            self.start = 0;
        }
        match &mut self.cipher {
            Some(cipher) => cipher.apply_into(bytes, &mut self.pending),
            None => self.pending.extend_from_slice(bytes),
        }
    }

    /// The message that waits has at least `bytes`: no attempt is made before they are there. One that is long and was found short many times
    /// is tried ever more seldom, so that all attempts together stay linear.
    pub(super) fn wait_for(&mut self, bytes: usize) {
        let waiting = self.waiting().len();
        self.attempts += 1;
        let more = if self.is_tried_seldom() { waiting / 8 } else { 1 };
        self.need = bytes.max(waiting + more);
    }

    /// Whether more bytes may wait than the message that they begin with has.
    pub(super) fn is_tried_seldom(&self) -> bool {
        self.attempts > MANY && self.waiting().len() > LONG
    }

    /// The waiting bytes.
    pub(super) fn waiting(&self) -> &[u8] {
        self.pending.get(self.start..).unwrap_or(&[])
    }

    /// Memory that waiting bytes take, in bytes.
    pub(super) fn held(&self) -> usize {
        self.pending.capacity() + self.arrivals.capacity() * size_of::<(u64, Moment)>()
    }

    /// Gives back the memory that no waiting byte needs.
    pub(super) fn shrink(&mut self) {
        self.pending.drain(..self.start);
        self.start = 0;
        self.pending.shrink_to_fit();
        self.arrivals.shrink_to_fit();
    }

    /// Stream offset of the first waiting byte.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// The frame that brought the `length`-th waiting byte.
    pub(super) fn completed(&self, length: usize) -> Option<Moment> {
        let end = self.offset + length as u64;
        self.arrivals.iter().find(|a| a.0 >= end).map(|a| a.1)
    }

    /// So many waiting bytes were used.
    pub(super) fn advance(&mut self, bytes: usize) {
        let bytes = bytes.min(self.pending.len() - self.start);
        self.start += bytes;
        self.offset += bytes as u64;
        self.need = 1;
        self.attempts = 0;
        if self.start == self.pending.len() && self.pending.capacity() > KEEP_CAPACITY {
            self.pending = Vec::new();
            self.start = 0;
        }
        while self.arrivals.front().is_some_and(|a| a.0 <= self.offset) {
            self.arrivals.pop_front();
        }
    }

    /// All waiting bytes become no message.
    pub(super) fn pass_over(&mut self) {
        self.pass(self.waiting().len());
    }

    /// Hands on the first waiting bytes, which become no message, as plaintext; where it is not settled how they come, they are none.
    pub(super) fn tell(&self, side: Side, bytes: usize, emit: &mut dyn Emit) {
        let settled = matches!(self.stage, Stage::Connect | Stage::Handshake | Stage::Messages | Stage::Lost);
        let bytes = self.waiting().get(..bytes).unwrap_or(self.waiting());
        if settled && !bytes.is_empty() {
            emit.plaintext(side, self.offset, bytes);
        }
    }

    /// The first waiting bytes become no message.
    pub(super) fn pass(&mut self, bytes: usize) {
        self.passed += bytes as u64;
        self.advance(bytes);
    }

    /// Whether no byte behind the key agreement is missing: the waiting ones are where the keystream begins.
    pub(super) fn is_aligned(&self) -> bool {
        self.ahead == 0
    }

    /// Offset and number of the bytes that became no message, to be told; the count begins anew.
    pub(super) fn take_passed(&mut self) -> (u64, u64) {
        let passed = std::mem::take(&mut self.passed);
        (self.offset - passed, passed)
    }

    /// The stream goes on at another offset; nothing may wait.
    pub(super) fn jump(&mut self, offset: u64) {
        self.pending = Vec::new();
        self.arrivals.clear();
        self.start = 0;
        self.offset = offset;
        self.need = 1;
    }

    /// From the first waiting byte on, everything goes through this cipher.
    pub(super) fn decrypt_from_here(&mut self, mut cipher: Rc4) {
        cipher.skip(self.ahead);
        if let Some(waiting) = self.pending.get_mut(self.start..) {
            cipher.apply(waiting);
        }
        self.cipher = Some(cipher);
    }

    /// From the first waiting byte on, everything goes through this cipher, of which so many bytes of keystream are used up.
    pub(super) fn decrypt_at(&mut self, cipher: Rc4, used: u64) {
        self.ahead = used;
        self.decrypt_from_here(cipher);
    }

    /// So many waiting bytes are given up before the key is settled: keystream was used for them all the same.
    pub(super) fn use_keystream(&mut self, bytes: u64) {
        self.ahead = self.ahead.saturating_add(bytes);
    }

    /// So many bytes were never captured: the keystream goes past them, now or when the key is settled. False where the work for that would be out
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
