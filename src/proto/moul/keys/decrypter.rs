//! Decrypts one direction. Another thread may make the next piece of its keystream ahead.
//!
//! RC4 is a third to a half of what decoding has to do in order, and its keystream depends on
//! nothing but the key. So once a direction has many bytes, each piece of keystream that is used up
//! asks for the next one ([`Preparations`]). If nobody had time to make it, the bytes are decrypted
//! as they are without.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Rc4;
use crate::session::{Preparation, Preparations, PreparedRoom};

/// A direction with fewer bytes than this needs no help. What is made ahead is at most a sixteenth
/// of what was used, so that little is made for nothing where a direction ends.
const MANY: u64 = 64 << 10;
const SHARE: u64 = 16;
/// The most bytes that are made ahead.
const MOST: usize = 128 << 10;
/// As many bytes are made before others may look at what is there.
const PIECE: usize = 4 << 10;
/// What keystream is applied to where it is wanted itself.
static ZEROS: [u8; PIECE] = [0; PIECE];

/// Decrypts one direction, from the next byte on.
pub struct Decrypter {
    /// How many bytes were used.
    used: u64,
    source: KeystreamSource,
}

/// Where keystream comes from.
enum KeystreamSource {
    Cipher(Box<Rc4>),
    Prepared(Prepared),
}

/// Keystream that may be made ahead.
struct Prepared {
    /// The bytes that come next, from `at` on.
    ready: Vec<u8>,
    at: usize,
    /// What comes behind them.
    behind: Arc<Behind>,
    _room: PreparedRoom,
}

/// Keystream behind what is ready.
struct Behind(Mutex<BehindState>);

struct BehindState {
    /// Makes what is behind `made`.
    cipher: Rc4,
    made: Vec<u8>,
    /// How many bytes to make.
    wanted: usize,
    /// Whether somebody was asked to make them.
    asked: bool,
}

impl Behind {
    fn lock(&self) -> MutexGuard<'_, BehindState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Preparation for Behind {
    fn prepare(&self) {
        loop {
            let mut state = self.lock();
            let BehindState { cipher, made, wanted, asked } = &mut *state;
            if made.len() >= *wanted {
                *asked = false;
                return;
            }
            made.reserve_exact(*wanted + PIECE - made.len());
            cipher.apply_into(&ZEROS, made);
        }
    }
}

impl Decrypter {
    /// Decrypts with a cipher from its present state on.
    pub fn new(cipher: Rc4) -> Decrypter {
        Decrypter { used: 0, source: KeystreamSource::Cipher(Box::new(cipher)) }
    }

    /// Appends `bytes`, decrypted, to `out`. With `preparations`, asks there for what will be
    /// needed next.
    pub fn apply_into(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        preparations: Option<&Preparations>,
    ) {
        self.used += bytes.len() as u64;
        if let Some(preparations) = preparations.filter(|_| self.used >= MANY) {
            self.prepare(preparations);
        }
        match &mut self.source {
            KeystreamSource::Cipher(cipher) => cipher.apply_into(bytes, out),
            KeystreamSource::Prepared(prepared) => {
                let wanted = MOST.min((self.used / SHARE) as usize);
                prepared.apply_into(bytes, out, wanted, preparations);
            }
        }
    }

    /// Skips `count` bytes. That takes as long as decrypting them.
    pub fn skip(&mut self, count: u64) {
        match &mut self.source {
            KeystreamSource::Cipher(cipher) => cipher.skip(count),
            KeystreamSource::Prepared(prepared) => prepared.skip(count),
        }
    }

    /// Lets others make what comes next, if there is room.
    fn prepare(&mut self, preparations: &Preparations) {
        if let KeystreamSource::Cipher(cipher) = &self.source
            && let Some(room) = preparations.room()
        {
            let state = BehindState {
                cipher: (**cipher).clone(),
                made: Vec::new(),
                wanted: 0,
                asked: false,
            };
            let behind = Arc::new(Behind(Mutex::new(state)));
            self.source = KeystreamSource::Prepared(Prepared {
                ready: Vec::new(),
                at: 0,
                behind,
                _room: room,
            });
        }
    }
}

impl Prepared {
    fn apply_into(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        wanted: usize,
        preparations: Option<&Preparations>,
    ) {
        let start = out.len();
        out.extend_from_slice(bytes);
        let mut left = out.get_mut(start..).unwrap_or_default();
        while !left.is_empty() {
            if self.at == self.ready.len() && !self.refill(left, wanted, preparations) {
                return;
            }
            let ready = self.ready.get(self.at..).unwrap_or_default();
            let length = left.len().min(ready.len());
            let (now, later) = left.split_at_mut(length);
            now.iter_mut().zip(ready).for_each(|(byte, key)| *byte ^= key);
            (left, self.at) = (later, self.at + length);
        }
    }

    /// Takes what was made ahead. If there is nothing, decrypts the bytes, and returns `false`.
    /// Asks for more.
    fn refill(
        &mut self,
        bytes: &mut [u8],
        wanted: usize,
        preparations: Option<&Preparations>,
    ) -> bool {
        let mut state = self.behind.lock();
        self.ready.clear();
        self.at = 0;
        std::mem::swap(&mut self.ready, &mut state.made);
        state.wanted = wanted;
        let made = !self.ready.is_empty();
        if !made {
            state.cipher.apply(bytes);
        }
        if let Some(preparations) = preparations.filter(|_| !state.asked) {
            state.asked = true;
            drop(state);
            preparations.add(Arc::clone(&self.behind) as Arc<dyn Preparation>);
        }
        made
    }

    fn skip(&mut self, count: u64) {
        let mut state = self.behind.lock();
        let mut left = count;
        let mut drop_from = |made: usize| {
            let dropped = left.min(made as u64);
            left -= dropped;
            dropped as usize
        };
        self.at += drop_from(self.ready.len() - self.at);
        let dropped = drop_from(state.made.len());
        state.made.drain(..dropped);
        state.cipher.skip(left);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    /// Lengths between 1 and 4,000, the same in each run.
    fn lengths(count: u32) -> impl Iterator<Item = usize> {
        let mut state = 1u32;
        (0..count).map(move |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as usize % 4000 + 1
        })
    }

    /// Decrypts pieces, some of them behind a gap, and lets `work` do what was asked for after
    /// each. What a cipher alone makes of them has to come out.
    fn compare(mut work: impl FnMut(&Preparations)) {
        let preparations = Preparations::default();
        let mut expected = Rc4::new(b"seven..");
        let mut decrypter = Decrypter::new(Rc4::new(b"seven.."));
        for (at, length) in lengths(2000).enumerate() {
            let bytes: Vec<u8> = (0..length).map(|byte| (byte + at) as u8).collect();
            if at % 50 == 49 {
                let gap = length as u64 * 100;
                expected.skip(gap);
                decrypter.skip(gap);
            }
            let mut right = b"before".to_vec();
            let mut found = b"before".to_vec();
            expected.apply_into(&bytes, &mut right);
            decrypter.apply_into(&bytes, &mut found, Some(&preparations));
            assert!(found == right, "piece {at}");
            work(&preparations);
        }
        assert!(matches!(decrypter.source, KeystreamSource::Prepared(_)));
    }

    #[test]
    fn what_is_made_ahead_is_what_the_cipher_makes() {
        compare(Preparations::work);
    }

    #[test]
    fn what_nobody_makes_ahead_is_made_when_it_is_needed() {
        compare(|_| {});
    }

    #[test]
    fn it_may_come_early_or_late() {
        let mut pieces = 0;
        compare(|preparations| {
            pieces += 1;
            if pieces % 30 == 0 {
                preparations.work();
            }
        });
    }

    #[test]
    fn another_thread_may_make_it_at_any_moment() {
        let preparations = Preparations::default();
        std::thread::scope(|scope| {
            scope.spawn(|| preparations.work_until_end());
            let mut expected = Rc4::new(b"seven..");
            let mut decrypter = Decrypter::new(Rc4::new(b"seven.."));
            for length in lengths(2000) {
                let mut right = Vec::new();
                let mut found = Vec::new();
                expected.apply_into(&vec![0; length], &mut right);
                decrypter.apply_into(&vec![0; length], &mut found, Some(&preparations));
                assert!(found == right);
            }
            preparations.end();
        });
    }

    #[test]
    fn only_some_directions_take_memory_for_it() {
        let preparations = Preparations::default();
        let mut directions: Vec<Decrypter> =
            (0..=Preparations::ROOMS).map(|_| Decrypter::new(Rc4::new(b"k"))).collect();
        let bytes = vec![0; MANY as usize];
        let mut out = Vec::new();
        directions
            .iter_mut()
            .for_each(|direction| direction.apply_into(&bytes, &mut out, Some(&preparations)));
        let prepared =
            |direction: &&Decrypter| matches!(direction.source, KeystreamSource::Prepared(_));
        assert_eq!(directions.iter().filter(prepared).count(), Preparations::ROOMS);
        directions.remove(0);
        let last = directions.last_mut().unwrap();
        last.apply_into(&bytes, &mut out, Some(&preparations));
        assert!(matches!(last.source, KeystreamSource::Prepared(_)));
    }
}
