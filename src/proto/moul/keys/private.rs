//! A shard's long-term key: modulus and private exponent, checked on construction. It knows no
//! file format.

use super::prime;
use super::service::KeyService;
use crate::digits::counted;
use num_bigint::BigUint;
use std::fmt;

/// The longest modulus and exponent that the protocol allows, in bits.
pub(super) const MAX_BITS: u64 = 512;

/// The most private keys in one file. Each may have to be tried on every connection.
pub(super) const MAX_KEYS: usize = 1000;

/// A shorter modulus is treated as a mistake, not as a weak key.
const MIN_BITS: u64 = 128;

/// A server's private half: *N* and *K* (MOSS: p and the private exponent; NAGUS: n and a).
///
/// Both have at most 512 bits, N is odd and has at least 128, K is not 0. K may be larger than N.
#[derive(Clone, PartialEq, Eq)]
pub struct PrivateKey {
    service: Option<KeyService>,
    generator: Option<u64>,
    modulus: BigUint,
    exponent: BigUint,
}

impl PrivateKey {
    /// A key from its numbers. The error says what is wrong with them, without showing either.
    pub(super) fn new(
        service: Option<KeyService>,
        generator: Option<u64>,
        modulus: BigUint,
        exponent: BigUint,
    ) -> Result<PrivateKey, String> {
        check_modulus(&modulus)?;
        if exponent == BigUint::ZERO {
            return Err("the private exponent is 0".into());
        }
        if exponent.bits() > MAX_BITS {
            return Err(format!(
                "expected a private exponent of at most {MAX_BITS} bits, found {}",
                exponent.bits()
            ));
        }
        Ok(PrivateKey { service, generator, modulus, exponent })
    }

    /// A key of random bytes: its modulus is the next prime behind the first half of them.
    pub fn make(random: &[u8; 128]) -> PrivateKey {
        let (modulus, exponent) = random.split_at(64);
        let mut modulus = BigUint::from_bytes_le(modulus);
        // Not so close to the end that the next prime had more bits.
        modulus.set_bit(0, true);
        modulus.set_bit(MAX_BITS - 1, true);
        modulus.set_bit(MAX_BITS - 2, false);
        while !prime::is_probable_prime(&modulus) {
            modulus += 2u32;
        }
        let mut exponent = BigUint::from_bytes_le(exponent);
        exponent.set_bit(MAX_BITS - 1, false);
        exponent.set_bit(0, true);
        PrivateKey { service: None, generator: None, modulus, exponent }
    }

    /// The server it belongs to, if the file says so.
    pub fn service(&self) -> Option<KeyService> {
        self.service
    }

    pub(super) fn set_service(&mut self, service: Option<KeyService>) {
        self.service = service;
    }

    /// The generator *g*, if the file names it. Decrypting does not need it.
    pub fn generator(&self) -> Option<u64> {
        self.generator
    }

    /// Bits of the modulus.
    pub fn modulus_bits(&self) -> u64 {
        self.modulus.bits()
    }

    /// Bits of the private exponent.
    pub fn exponent_bits(&self) -> u64 {
        self.exponent.bits()
    }

    /// A short, public name for the key: the first eight hex digits of N, which every client has
    /// too.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.modulus)
    }

    /// Whether both are the same key, whatever server they were given for.
    pub fn same_numbers(&self, other: &PrivateKey) -> bool {
        self.modulus == other.modulus && self.exponent == other.exponent
    }

    /// The modulus, which is public.
    pub(super) fn modulus(&self) -> &BigUint {
        &self.modulus
    }

    /// The secret itself.
    pub(super) fn exponent(&self) -> &BigUint {
        &self.exponent
    }

    /// g^K mod N, the public key clients have as X.
    pub(super) fn public_key(&self, generator: u64) -> BigUint {
        BigUint::from(generator).modpow(&self.exponent, &self.modulus)
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateKey")
            .field("service", &self.service)
            .field("generator", &self.generator)
            .field(
                "modulus",
                &format_args!("{} bits, {}…", self.modulus.bits(), self.fingerprint()),
            )
            .field("exponent", &format_args!("<private exponent>"))
            .finish()
    }
}

/// The client's part of a server's key: N, and usually X. It opens nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicHalf {
    pub(super) service: Option<KeyService>,
    pub(super) modulus: BigUint,
    pub(super) public_key: Option<BigUint>,
}

impl PublicHalf {
    /// The server it belongs to, if the file says so.
    pub fn service(&self) -> Option<KeyService> {
        self.service
    }

    /// Bits of the modulus.
    pub fn modulus_bits(&self) -> u64 {
        self.modulus.bits()
    }

    /// The first eight hex digits of N, the same as [`PrivateKey::fingerprint`] of the key it
    /// belongs to.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.modulus)
    }
}

/// What is wrong with a modulus, if anything is.
pub(super) fn check_modulus(modulus: &BigUint) -> Result<(), String> {
    if *modulus == BigUint::ZERO {
        return Err("the modulus N is 0".into());
    }
    if !modulus.bit(0) {
        return Err("expected a prime modulus N, found an even number".into());
    }
    if modulus.bits() < MIN_BITS {
        return Err(format!(
            "expected a modulus N of {MAX_BITS} bits, found {}",
            counted(modulus.bits(), "bit")
        ));
    }
    if modulus.bits() > MAX_BITS {
        return Err(format!(
            "expected a modulus N of at most {MAX_BITS} bits, found {}",
            modulus.bits()
        ));
    }
    Ok(())
}

/// Remarks on a modulus that works but that no key generator makes.
pub(super) fn find_doubts(modulus: &BigUint) -> Option<String> {
    if !prime::is_probable_prime(modulus) {
        Some("N is not a prime: mistyped or damaged?".into())
    } else if modulus.bits() < MAX_BITS - 8 {
        Some(format!("N has only {} bits, where key generators make {MAX_BITS}", modulus.bits()))
    } else {
        None
    }
}

fn fingerprint(modulus: &BigUint) -> String {
    modulus.to_str_radix(16).chars().take(8).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    fn number(bits: u64, low: u32) -> BigUint {
        (BigUint::from(1u32) << (bits - 1)) + low
    }

    #[test]
    fn numbers_that_cannot_be_a_key_are_refused() {
        let refused = |n: BigUint, k: BigUint| PrivateKey::new(None, None, n, k).unwrap_err();
        let k = BigUint::from(77u32);
        assert_eq!(refused(BigUint::ZERO, k.clone()), "the modulus N is 0");
        assert!(refused(number(512, 2), k.clone()).contains("even"));
        assert!(refused(number(127, 1), k.clone()).contains("found 127 bits"));
        assert!(refused(number(513, 1), k.clone()).contains("found 513"));
        assert!(refused(number(512, 1), BigUint::ZERO).contains("exponent is 0"));
        assert!(refused(number(512, 1), number(513, 0)).contains("found 513"));
        assert!(
            PrivateKey::new(None, None, number(130, 1), number(512, 5)).is_ok(),
            "K may be larger than N"
        );
    }

    #[test]
    fn a_key_of_random_bytes_is_a_key() {
        for random in [[0; 128], [0xff; 128], [0x5a; 128]] {
            let key = PrivateKey::make(&random);
            assert!(prime::is_probable_prime(&key.modulus));
            assert_eq!(find_doubts(&key.modulus), None);
            let again = PrivateKey::new(None, None, key.modulus.clone(), key.exponent.clone());
            assert!(again.is_ok_and(|again| again == key));
        }
    }

    #[test]
    fn debug_keeps_the_secret() {
        let exponent = BigUint::from(0xdead_beef_u32);
        let key =
            PrivateKey::new(Some(KeyService::Auth), Some(41), number(512, 1), exponent).unwrap();
        let shown = format!("{key:?}");
        assert!(shown.contains("<private exponent>"), "{shown}");
        assert!(!shown.contains("3735928559") && !shown.contains("deadbeef"), "{shown}");
    }
}
