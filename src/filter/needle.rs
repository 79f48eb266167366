//! Searches bytes for one of two forms that each byte of what is sought may have, such as the two
//! cases of a letter. It knows no encoding.

use memchr::memchr2_iter;
use memchr::memmem::Finder;

/// What is sought in bytes.
pub(super) enum Needle {
    Exact(Box<Finder<'static>>),
    Either(EitherCase),
}

/// Bytes of which each may have one of two values.
pub(super) struct EitherCase {
    pairs: Box<[(u8, u8)]>,
    /// The place of the pair that is searched for.
    rare: usize,
}

/// The letters of English, those that are rarest at the end.
const LETTERS: &[u8] = b"etaoinsrhldcumfpgwybvkxjqz";

impl Needle {
    /// These bytes.
    pub(super) fn exact(bytes: &[u8]) -> Needle {
        Needle::Exact(Box::new(Finder::new(bytes).into_owned()))
    }

    /// Bytes of which each is that of one text or that of the other one, which is as long.
    pub(super) fn new(lower: &[u8], upper: &[u8]) -> Needle {
        if lower == upper || lower.len() != upper.len() {
            return Needle::exact(lower);
        }
        let pairs: Box<[(u8, u8)]> = lower.iter().copied().zip(upper.iter().copied()).collect();
        // Signs and digits are rarer than letters, and zeros are not.
        let rank =
            |byte: u8| match LETTERS.iter().position(|letter| [*letter, !letter].contains(&byte)) {
                Some(place) => place,
                None if byte == 0 || byte == 0xff => 0,
                None => LETTERS.len(),
            };
        let rare =
            (0..).zip(&pairs).max_by_key(|(_, pair)| rank(pair.0)).map_or(0, |(place, _)| place);
        Needle::Either(EitherCase { pairs, rare })
    }

    /// Whether it is in some bytes.
    pub(super) fn is_in(&self, bytes: &[u8]) -> bool {
        match self {
            Needle::Exact(finder) => {
                finder.needle().len() <= bytes.len() && finder.find(bytes).is_some()
            }
            Needle::Either(either) => either.is_in(bytes),
        }
    }

    /// Whether two needles find the same.
    pub(super) fn is(&self, other: &Needle) -> bool {
        match (self, other) {
            (Needle::Exact(one), Needle::Exact(other)) => one.needle() == other.needle(),
            (Needle::Either(one), Needle::Either(other)) => one.pairs == other.pairs,
            _ => false,
        }
    }
}

/// Whether one of some needles is in one of two parts of a message.
pub(super) fn any_is_in(needles: &[Needle], parts: [&[u8]; 2]) -> bool {
    parts
        .iter()
        .filter(|bytes| !bytes.is_empty())
        .any(|bytes| needles.iter().any(|needle| needle.is_in(bytes)))
}

impl EitherCase {
    fn is_in(&self, bytes: &[u8]) -> bool {
        let Some((one, other)) = self.pairs.get(self.rare) else { return true };
        memchr2_iter(*one, *other, bytes).any(|at| {
            let found =
                at.checked_sub(self.rare).and_then(|from| bytes.get(from..from + self.pairs.len()));
            found.is_some_and(|found| {
                self.pairs
                    .iter()
                    .zip(found)
                    .all(|((one, other), byte)| byte == one || byte == other)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_case_is_found_wherever_it_is() {
        let needle = Needle::new(b"no-body", b"NO-BODY");
        for found in ["Nobody No-BoDy", "no-body", "xNO-BODYx", "--no-body"] {
            assert!(needle.is_in(found.as_bytes()), "{found}");
        }
        for other in ["", "no-bod", "o-body", "no+body", "no-bodz", "-", "-body"] {
            assert!(!needle.is_in(other.as_bytes()), "{other}");
        }
        assert!(Needle::new(b"", b"").is_in(b"") && Needle::new(b"7", b"7").is_in(b"17"));
    }
}
