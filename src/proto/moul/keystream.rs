//! Finds how far the keystream of a session key was used in a connection that is older than the
//! capture. It decrypts the captured bytes with the keystream from every position up to a bound: at
//! the right position they are messages, at all others noise.
//!
//! There are two ways, both linear. If the capture begins with a message, the message has a known
//! number and proves itself. If it begins within a message, zeros show the position: about every
//! second byte that MOUL sends is zero, but only every 256th byte of noise. The few positions with
//! many zeros are then searched for messages. This file knows bytes and tables, no connection.

use super::evidence::{Against, weigh_message};
use super::keys::SessionKey;
use super::search::{MessageReader, Search, SearchResult, search};
use crate::session::Requests;
use crate::session::Side;
use crate::table::{Outcome, ServiceId};

/// The most bytes of a direction that are looked at.
pub(super) const MAX_BYTES: usize = 64 << 10;
/// Bytes in which zeros are counted. Fewer bytes prove nothing.
pub(super) const WINDOW: usize = 64;
/// Zeros in a window that make a position plausible: noise has as many at 7 of a million positions.
const ZEROS: u32 = 5;
/// Zeros in the first half of the window, which are counted first: noise has as many at 7 of a
/// thousand positions.
const ZEROS_HALF: u32 = 2;
/// Windows that are looked at: the first ones, and some spread over the bytes behind them, since
/// files and images have few zeros.
const WINDOWS: usize = 8;
const WINDOWS_BEHIND: usize = 24;
/// Positions searched for messages in each window.
const CANDIDATES: usize = 128;
/// Bytes searched for messages, from the window's first on.
const STRETCH: usize = 4096;
/// The evidence that messages at the start of the capture need, in bits: 2^22 positions are tried,
/// of which up to 2^12 are plausible.
const PROOF: i32 = 44;
/// Bytes that are read as messages at the start of the capture.
const HEAD: usize = 512;

/// The first part of a key's keystream: as much as a search needs.
pub(super) struct Keystream {
    stream: Vec<u8>,
    positions: usize,
}

/// A position that proved itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// Bytes of keystream used before the first captured byte.
    pub(super) used: u64,
    /// How sure it is, in bits.
    pub(super) bits: i32,
}

impl Keystream {
    /// The keystream of a key, long enough to decrypt `bytes` bytes at each of the first
    /// `positions` positions.
    pub(super) fn generate(key: &SessionKey, positions: usize, bytes: usize) -> Keystream {
        let mut stream = vec![0; positions + bytes.min(MAX_BYTES)];
        key.cipher().apply(&mut stream);
        Keystream { stream, positions }
    }

    /// Looks for the position at which a direction's bytes become messages of one of `services`.
    pub(super) fn find_position(
        &self,
        services: &[ServiceId],
        side: Side,
        bytes: &[u8],
        reader: &mut MessageReader<'_>,
    ) -> Option<(ServiceId, Position)> {
        let bytes = bytes.get(..MAX_BYTES).unwrap_or(bytes);
        self.find_at_message(services, side, bytes, reader)
            .or_else(|| self.find_within_message(services, side, bytes, reader))
    }

    /// Decrypts bytes with the keystream from a position on.
    fn decrypt_at(&self, position: usize, bytes: &[u8], out: &mut Vec<u8>) {
        out.clear();
        let stream = self.stream.get(position..).unwrap_or(&[]);
        out.extend(bytes.iter().zip(stream).map(|(byte, key)| byte ^ key));
    }

    fn find_at_message(
        &self,
        services: &[ServiceId],
        side: Side,
        bytes: &[u8],
        reader: &mut MessageReader<'_>,
    ) -> Option<(ServiceId, Position)> {
        let tables = reader.tables;
        // For each message number, the services that know it, one bit each. It is needed at every
        // position, so a look-up in the tables would be too slow.
        let mut known = vec![0_u8; 1 << 16];
        for (i, service) in services.iter().enumerate().take(8) {
            for (number, _) in tables.service(*service)?.messages.get(side.index())? {
                if let Some(place) = known.get_mut(usize::try_from(*number).unwrap_or(usize::MAX)) {
                    *place |= 1 << i;
                }
            }
        }
        let first = u16::from_le_bytes(*bytes.first_chunk::<2>()?);
        let head = bytes.get(..HEAD).unwrap_or(bytes);
        let mut plain = Vec::new();
        for (position, key) in self.stream.windows(2).take(self.positions).enumerate() {
            let number = first ^ key.first_chunk::<2>().map_or(0, |key| u16::from_le_bytes(*key));
            let by = known.get(usize::from(number)).copied().unwrap_or(0);
            if by == 0 {
                continue;
            }
            self.decrypt_at(position, head, &mut plain);
            for (_, service) in services.iter().enumerate().filter(|(i, _)| by >> i & 1 == 1) {
                if let Some(bits) = weigh_first_messages(*service, side, &plain, reader)
                    .filter(|bits| *bits >= PROOF)
                {
                    return Some((*service, Position { used: position as u64, bits }));
                }
            }
        }
        None
    }

    fn find_within_message(
        &self,
        services: &[ServiceId],
        side: Side,
        bytes: &[u8],
        reader: &mut MessageReader<'_>,
    ) -> Option<(ServiceId, Position)> {
        let (windows, _) = bytes.as_chunks::<WINDOW>();
        let mut plain = Vec::new();
        let step = windows.len().saturating_sub(WINDOWS).div_ceil(WINDOWS_BEHIND).max(1);
        let behind = windows.iter().enumerate().skip(WINDOWS).step_by(step);
        for (i, window) in windows.iter().enumerate().take(WINDOWS).chain(behind) {
            let at = i * WINDOW;
            let stretch = bytes.get(at..bytes.len().min(at + STRETCH)).unwrap_or(&[]);
            for position in self.find_plausible(window, at).into_iter().take(CANDIDATES) {
                self.decrypt_at(position + at, stretch, &mut plain);
                for service in services {
                    if let Some(bits) = weigh_any_messages(*service, side, &plain, reader) {
                        return Some((*service, Position { used: position as u64, bits }));
                    }
                }
            }
        }
        None
    }

    /// Positions at which the window at offset `at` decrypts to many zeros, most zeros first.
    fn find_plausible(&self, window: &[u8; WINDOW], at: usize) -> Vec<usize> {
        let first = split_words(window.first_chunk());
        let rest = split_words(window.last_chunk());
        let mut found: Vec<(u32, usize)> = Vec::new();
        let stream = self.stream.get(at..).unwrap_or(&[]);
        for (position, keys) in stream.windows(WINDOW).take(self.positions).enumerate() {
            let zeros = count_zeros(first, keys.first_chunk());
            if zeros < ZEROS_HALF {
                continue;
            }
            let zeros = zeros + count_zeros(rest, keys.last_chunk());
            if zeros >= ZEROS {
                found.push((zeros, position));
            }
        }
        found.sort_by_key(|(zeros, position)| (std::cmp::Reverse(*zeros), *position));
        found.into_iter().map(|(_, position)| position).collect()
    }
}

/// Half a window as 64-bit words.
fn split_words(half: Option<&[u8; WINDOW / 2]>) -> [u64; 4] {
    let [a, b, c, d] = half.map_or([[0; 8]; 4], |half| {
        let (words, _) = half.as_chunks::<8>();
        words.first_chunk::<4>().copied().unwrap_or_default()
    });
    [u64::from_le_bytes(a), u64::from_le_bytes(b), u64::from_le_bytes(c), u64::from_le_bytes(d)]
}

/// How many bytes of half a window become zero under a keystream.
#[inline]
fn count_zeros(half: [u64; 4], keys: Option<&[u8; WINDOW / 2]>) -> u32 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let [a, b, c, d] = half;
    let [e, f, g, h] = split_words(keys);
    // Adding 0x7f to the low seven bits of a byte sets its highest bit unless they are all zero. So
    // the highest bit stays clear in the sum and in the byte itself only if the byte is zero.
    let count = |x: u64| (!(((x & LOW) + LOW) | x | LOW)).count_ones();
    count(a ^ e) + count(b ^ f) + count(c ^ g) + count(d ^ h)
}

/// The evidence of messages that begin with the first byte. Zero if one of them is invalid.
fn weigh_first_messages(
    service: ServiceId,
    side: Side,
    plain: &[u8],
    reader: &mut MessageReader<'_>,
) -> Option<i32> {
    let tables = reader.tables;
    let def = tables.service(service)?;
    let mut at = 0;
    let mut bits = 0;
    while let Some(rest) = plain.get(at..).filter(|rest| !rest.is_empty()) {
        match reader.evaluator.message(tables, service, side.index(), rest, reader.tree) {
            Outcome::Message(_, length) => {
                let whole = rest.get(..length).unwrap_or(rest);
                bits +=
                    weigh_message(tables, def, side.index(), reader.tree, whole, Against::Noise);
                at += length.max(1);
            }
            Outcome::Need(_) => break,
            _ => return None,
        }
    }
    Some(bits)
}

/// The evidence in bits that there are messages somewhere in the bytes.
fn weigh_any_messages(
    service: ServiceId,
    side: Side,
    plain: &[u8],
    reader: &mut MessageReader<'_>,
) -> Option<i32> {
    let asked = Requests::default();
    match search(&Search::anywhere(service, side, plain, &asked), reader) {
        SearchResult::Join { bits, .. } => Some(bits),
        SearchResult::Nothing { .. } => None,
    }
}
