//! Tests whether a number is probably prime, as a shard's modulus must be. File recognition and
//! `keys check` use it. It is not meant for numbers made to deceive the test.

use num_bigint::BigUint;

/// Bases of the Miller-Rabin rounds. An ordinary composite passes eight rounds with a probability
/// below 1 in 65,000.
const BASES: [u32; 8] = [2, 3, 5, 7, 11, 13, 17, 19];

/// Divisors tried first: they rule out nine numbers in ten at once.
const SMALL: [u32; 53] = [
    3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97,
    101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167, 173, 179, 181, 191, 193,
    197, 199, 211, 223, 227, 229, 233, 239, 241, 251,
];

/// Whether `number` is prime, as far as eight rounds of Miller-Rabin can tell. About a millisecond
/// for 512 bits.
pub(super) fn is_probable_prime(number: &BigUint) -> bool {
    let one = BigUint::from(1u32);
    let two = BigUint::from(2u32);
    if *number < two {
        return false;
    }
    if !number.bit(0) {
        return *number == two;
    }
    for small in SMALL {
        if (number % small) == BigUint::ZERO {
            return *number == BigUint::from(small);
        }
    }
    let before = number - &one;
    let twos = before.trailing_zeros().unwrap_or(0);
    let odd = &before >> twos;
    BASES.into_iter().all(|base| {
        let mut power = (BigUint::from(base) % number).modpow(&odd, number);
        if power == one || power == before || power == BigUint::ZERO {
            return true;
        }
        (1..twos).any(|_| {
            power = &power * &power % number;
            power == before
        })
    })
}

/// Whether `number` is a prime *p* with (*p* − 1) / 2 prime too, as the key generators of MOSS,
/// DIRTSAND and MOULArs make them.
pub(super) fn is_safe_prime(number: &BigUint) -> bool {
    is_probable_prime(number) && half_is_prime(number)
}

/// Whether (*p* − 1) / 2 is prime, where *p* is.
pub(super) fn half_is_prime(number: &BigUint) -> bool {
    is_probable_prime(&(number >> 1u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_thousand_numbers_agree_with_trial_division() {
        for number in 0u32..1000 {
            let prime = number > 1 && (2..number).all(|divisor| number % divisor != 0);
            assert_eq!(is_probable_prime(&BigUint::from(number)), prime, "{number}");
        }
    }

    #[test]
    fn products_and_carmichael_numbers_are_not_prime() {
        let mersenne = (BigUint::from(1u32) << 127u32) - 1u32;
        assert!(is_probable_prime(&mersenne));
        assert!(!is_safe_prime(&mersenne));
        assert!(!is_probable_prime(&(&mersenne * &mersenne)));
        for carmichael in [252_601u32, 1_909_001, 294_409, 56_052_361] {
            assert!(!is_probable_prime(&BigUint::from(carmichael)), "{carmichael}");
        }
        assert!(
            is_safe_prime(&BigUint::from(1_000_919u32 * 2 + 1))
                == (is_probable_prime(&BigUint::from(2_001_839u32))
                    && is_probable_prime(&BigUint::from(1_000_919u32)))
        );
        assert!(is_safe_prime(&BigUint::from(23u32)));
    }
}
