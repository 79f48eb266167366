//! Derives the RC4 key of one connection from a private key, the client's y and the server's seed.
//! The caller has taken y and seed out of the handshake: this file knows no packets.

use super::private::PrivateKey;
use super::rc4::Rc4;
use crate::maps::BoundedMap;
use num_bigint::BigUint;
use std::fmt;

/// The longest y that the protocol allows, in bytes.
const MAX_Y: usize = 64;

/// How many modular powers a [`Deriver`] remembers.
const REMEMBERED: usize = 1 << 15;

/// The RC4 key of one connection, for both directions. It opens only that connection. `Debug` does
/// not show it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionKey([u8; 7]);

impl SessionKey {
    /// A key from its seven bytes, as RC4 takes them.
    pub fn new(bytes: [u8; 7]) -> SessionKey {
        SessionKey(bytes)
    }

    /// The seven bytes, for a file that the user asked to hold secrets.
    pub fn as_bytes(&self) -> &[u8; 7] {
        &self.0
    }

    /// A cipher at the start of this key's stream. Each direction has its own.
    pub fn cipher(&self) -> Rc4 {
        Rc4::new(&self.0)
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionKey(<session key>)")
    }
}

/// The session key of a connection: the seed, each byte XORed with one of the seven lowest bytes of
/// y^K mod N, lowest first.
///
/// `y` is the client's number as on the wire, little-endian, 1 to 64 bytes, leading and trailing
/// zeros as they come; `None` for any other length. A y of value 0 is valid and gives the seed
/// itself. Costs one modular power of 512 bits.
pub fn derive_session_key(key: &PrivateKey, y: &[u8], seed: &[u8; 7]) -> Option<SessionKey> {
    compute_shared(key, y).map(|shared| mix(&shared, seed))
}

/// Derives session keys and remembers the last powers, so that a connection that is read again, or
/// whose keys are tried again when more bytes came, costs none. A key is known by its place on the
/// ring, and a y by its number: zeros after it change nothing.
pub(super) struct Deriver {
    remembered: BoundedMap<(usize, [u8; MAX_Y]), [u8; 7]>,
}

impl Default for Deriver {
    fn default() -> Self {
        Deriver { remembered: BoundedMap::new(REMEMBERED) }
    }
}

impl Deriver {
    /// Whether the power for the key at this place and `y` is remembered, so that
    /// [`derive`](Deriver::derive) costs nothing.
    pub(super) fn remembers(&self, place: usize, y: &[u8]) -> bool {
        pad(y).is_some_and(|y| self.remembered.get(&(place, y)).is_some())
    }

    /// As [`derive_session_key`], with the key at this place of the ring.
    pub(super) fn derive(
        &mut self,
        place: usize,
        key: &PrivateKey,
        y: &[u8],
        seed: &[u8; 7],
    ) -> Option<SessionKey> {
        let name = (place, pad(y)?);
        if let Some(shared) = self.remembered.get(&name) {
            return Some(mix(shared, seed));
        }
        let shared = compute_shared(key, y)?;
        self.remembered.insert(name, shared);
        Some(mix(&shared, seed))
    }

    /// How many powers are remembered.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.remembered.len()
    }
}

/// Shows no key.
impl fmt::Debug for Deriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Deriver")
    }
}

/// A y of a length that the protocol allows, with zeros behind it.
fn pad(y: &[u8]) -> Option<[u8; MAX_Y]> {
    let mut padded = [0; MAX_Y];
    padded.get_mut(..y.len()).filter(|_| !y.is_empty())?.copy_from_slice(y);
    Some(padded)
}

/// The seven lowest bytes of y^K mod N, lowest first, with zeros where the number is shorter.
fn compute_shared(key: &PrivateKey, y: &[u8]) -> Option<[u8; 7]> {
    if y.is_empty() || y.len() > MAX_Y {
        return None;
    }
    let power = BigUint::from_bytes_le(y).modpow(key.exponent(), key.modulus()).to_bytes_le();
    let mut lowest = [0; 7];
    for (low, byte) in lowest.iter_mut().zip(power) {
        *low = byte;
    }
    Some(lowest)
}

fn mix(shared: &[u8; 7], seed: &[u8; 7]) -> SessionKey {
    let mut key = *seed;
    for (byte, shared) in key.iter_mut().zip(shared) {
        *byte ^= shared;
    }
    SessionKey(key)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    /// N = 2^128 − 159, a prime, and a small exponent: results that can be checked by hand.
    fn small_key(exponent: u32) -> PrivateKey {
        let modulus = (BigUint::from(1u32) << 128u32) - 159u32;
        PrivateKey::new(None, None, modulus, BigUint::from(exponent)).unwrap()
    }

    #[test]
    fn seed_and_shared_secret_are_mixed_lowest_byte_first() {
        // 0x0201 squared is 0x040401.
        let key =
            derive_session_key(&small_key(2), &[0x01, 0x02], &[0x10, 0x20, 0x30, 0, 0, 0, 0xff])
                .unwrap();
        assert_eq!(key.as_bytes(), &[0x11, 0x24, 0x34, 0, 0, 0, 0xff]);
    }

    #[test]
    fn zeros_after_y_change_nothing() {
        let key = small_key(0xabcd);
        let seed = [1, 2, 3, 4, 5, 6, 7];
        let bare = derive_session_key(&key, &[9, 8, 7], &seed);
        assert_eq!(bare, derive_session_key(&key, &[9, 8, 7, 0, 0, 0, 0, 0, 0, 0], &seed));
        assert_ne!(bare, derive_session_key(&key, &[0, 9, 8, 7], &seed));
    }

    #[test]
    fn a_y_of_zero_gives_the_seed_and_an_impossible_length_nothing() {
        let key = small_key(3);
        let seed = [7; 7];
        assert_eq!(derive_session_key(&key, &[0; 64], &seed).unwrap().as_bytes(), &seed);
        assert_eq!(derive_session_key(&key, &[], &seed), None);
        assert_eq!(derive_session_key(&key, &[1; 65], &seed), None);
        assert!(derive_session_key(&key, &[0xff; 64], &seed).is_some(), "a y larger than N");
    }

    #[test]
    fn what_is_remembered_is_the_same_and_bounded() {
        let mut deriver = Deriver { remembered: BoundedMap::new(64) };
        let keys = [small_key(65_537), small_key(65_539)];
        for round in 0..3u8 {
            for y in 1..=100u8 {
                for (place, key) in keys.iter().enumerate() {
                    let seed = [round; 7];
                    let derived = deriver.derive(place, key, &[y, 1], &seed);
                    assert_eq!(derived, derive_session_key(key, &[y, 1], &seed));
                }
            }
        }
        assert_eq!(deriver.remembered(), 64);
        assert!(deriver.remembers(1, &[100, 1]) && deriver.remembers(1, &[100, 1, 0]));
        assert!(!deriver.remembers(1, &[1, 1]) && !deriver.remembers(2, &[100, 1]));
        for y in [&[][..], &[1; 65]] {
            assert_eq!(deriver.derive(0, &keys[0], y, &[0; 7]), None);
        }
        assert_eq!(format!("{deriver:?}"), "Deriver");
    }

    #[test]
    fn session_keys_are_not_shown() {
        assert_eq!(format!("{:?}", SessionKey::new([0xab; 7])), "SessionKey(<session key>)");
    }
}
