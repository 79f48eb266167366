//! Names, UUIDs, numbers and addresses of persons that earlier messages gave. They are also
//! replaced in bytes and texts that no table marks.
//!
//! Bounded: of more than 16,384 of a sort, or of more than 32 MiB, the later ones are replaced only
//! where tables mark them, and so are names longer than 256 bytes.

use crate::digits::{swap_uuid, uuid_text};
use crate::maps::{SeededMap, SeededSet};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Bound;

use super::values::Values;

/// How many of each sort are remembered.
const MOST: usize = 16_384;
/// Bytes of the shortest name that is looked for in other bytes: shorter ones would be found by
/// chance.
const SHORTEST: usize = 4;
/// Bytes of the longest name that is looked for in other bytes.
const LONGEST: usize = 256;
/// Characters of the shortest name that is looked for inside words, too.
const SHORTEST_INSIDE: usize = 6;
/// Memory for the bytes that are looked for, roughly, in bytes.
const MAX_PATTERNS: usize = 32 << 20;

/// The names found so far.
#[derive(Default)]
pub(super) struct KnownPersons {
    names: SeededSet<String>,
    uuids: SeededSet<[u8; 16]>,
    pub(super) numbers: SeededSet<u64>,
    pub(super) addresses: SeededSet<IpAddr>,
    /// The bytes to look for, in order, by their first four.
    patterns: SeededMap<[u8; 4], Patterns>,
    /// Memory of the patterns, roughly.
    held: usize,
}

/// What replaces bytes that are looked for.
struct Pattern {
    to: Box<[u8]>,
    /// The length of the longest other pattern that this one begins with; 0 if there is none.
    shorter: usize,
    /// Bytes of a unit of text, for a short name: before and behind it no letter or digit may
    /// stand. 0 for everything else.
    unit: usize,
}

impl KnownPersons {
    /// Adds a name.
    pub(super) fn name(&mut self, name: &str, values: &Values) {
        let name = name.trim();
        let fits = (SHORTEST..=LONGEST).contains(&name.len()) && self.has_room();
        if !fits || self.names.len() >= MOST || !self.names.insert(name.to_string()) {
            return;
        }
        self.text(name, &values.name(name));
    }

    /// Adds a UUID, as written.
    pub(super) fn uuid(&mut self, uuid: [u8; 16], values: &Values) {
        let is_new = uuid != [0; 16] && self.has_room() && self.uuids.len() < MOST;
        if !is_new || !self.uuids.insert(uuid) {
            return;
        }
        let mut new = uuid;
        values.uuid(&mut new);
        self.add(&uuid, &new, 0);
        self.add(&swap_uuid(uuid), &swap_uuid(new), 0);
        let text = uuid_text(&uuid, false);
        self.text(&text, &values.name(&text));
        self.text(&text.to_uppercase(), &values.name(&text).to_uppercase());
        let [from, to] = [uuid, new].map(|uuid| uuid_text(&uuid, false).replace('-', ""));
        self.text(&from, &to);
        self.text(&from.to_uppercase(), &to.to_uppercase());
    }

    /// Adds a number.
    pub(super) fn number(&mut self, number: u64) {
        if number > 0xff && self.numbers.len() < MOST {
            self.numbers.insert(number);
        }
    }

    /// Adds a client's address.
    pub(super) fn address(&mut self, address: IpAddr, values: &Values) {
        if address.is_unspecified()
            || self.addresses.len() >= MOST
            || !self.addresses.insert(address)
        {
            return;
        }
        self.text(&address.to_string(), &values.address(address).to_string());
    }

    /// Whether there is memory for more patterns.
    fn has_room(&self) -> bool {
        self.held < MAX_PATTERNS
    }

    /// Whether a UUID is that of a person.
    pub(super) fn has_uuid(&self, uuid: &[u8; 16]) -> bool {
        self.uuids.contains(uuid)
    }

    /// A text in every encoding, plain and inverted.
    fn text(&mut self, from: &str, to: &str) {
        let wide = |text: &str, order: fn(u16) -> [u8; 2]| {
            text.encode_utf16().flat_map(order).collect::<Vec<u8>>()
        };
        let mut pairs = vec![(from.as_bytes().to_vec(), to.as_bytes().to_vec(), 1)];
        pairs.push((wide(from, u16::to_le_bytes), wide(to, u16::to_le_bytes), 2));
        pairs.push((wide(from, u16::to_be_bytes), wide(to, u16::to_be_bytes), 2));
        let latin = |text: &str| {
            text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect::<Option<Vec<u8>>>()
        };
        if let (false, Some(from), Some(to)) = (from.is_ascii(), latin(from), latin(to)) {
            pairs.push((from, to, 1));
        }
        let inside = from.chars().count() >= SHORTEST_INSIDE;
        for (from, to, unit) in pairs {
            let unit = if inside { 0 } else { unit };
            let invert = |bytes: &[u8]| bytes.iter().map(|byte| !byte).collect::<Vec<u8>>();
            self.add(&invert(&from), &invert(&to), 0);
            self.add(&from, &to, unit);
        }
    }

    fn add(&mut self, from: &[u8], to: &[u8], unit: usize) {
        let (Some(first), true) = (from.first_chunk::<4>(), from.len() == to.len()) else { return };
        let patterns = self.patterns.entry(*first).or_default();
        if patterns.contains_key(from) {
            return;
        }
        let shorter = longest(patterns, from).map_or(0, |(shorter, _)| shorter.len());
        let longer = patterns.range_mut::<[u8], _>((Bound::Excluded(from), Bound::Unbounded));
        for (_, pattern) in longer.take_while(|(longer, _)| longer.starts_with(from)) {
            pattern.shorter = pattern.shorter.max(from.len());
        }
        patterns.insert(from.into(), Pattern { to: to.into(), shorter, unit });
        self.held += 2 * from.len() + ENTRY;
    }

    /// Replaces all known names, UUIDs and numbers in some bytes.
    pub(super) fn sweep(&self, bytes: &mut [u8]) {
        let mut at = 0;
        while let Some((first, rest)) =
            bytes.get(at..).and_then(|rest| Some((rest.first_chunk::<4>()?, rest)))
        {
            let patterns = self.patterns.get(first);
            let mut found = patterns.and_then(|patterns| longest(patterns, rest));
            while let Some((from, pattern)) = found
                && !pattern.stands_alone(bytes, at, from.len())
            {
                found = patterns.and_then(|patterns| shorter(patterns, from, pattern));
            }
            at += match found.map(|(_, pattern)| pattern) {
                Some(pattern) => {
                    let end = at + pattern.to.len();
                    bytes
                        .get_mut(at..end)
                        .into_iter()
                        .for_each(|place| place.copy_from_slice(&pattern.to));
                    pattern.to.len()
                }
                None => 1,
            };
        }
    }

    /// The same in a text.
    pub(super) fn sweep_text(&self, text: &mut String) {
        let mut bytes = std::mem::take(text).into_bytes();
        let before = bytes.clone();
        self.sweep(&mut bytes);
        // What was replaced are whole characters by whole characters, unless they were found by
        // chance.
        *text = String::from_utf8(bytes)
            .unwrap_or_else(|_| String::from_utf8(before).unwrap_or_default());
    }
}

/// Memory of a pattern beside its bytes, roughly.
const ENTRY: usize = 96;

/// Patterns that begin alike, in order.
type Patterns = BTreeMap<Box<[u8]>, Pattern>;

/// The longest pattern that some bytes begin with. Every such pattern is the last one up to these
/// bytes in the order, or that one begins with it.
fn longest<'p>(patterns: &'p Patterns, bytes: &[u8]) -> Option<(&'p [u8], &'p Pattern)> {
    let (from, pattern) =
        patterns.range::<[u8], _>((Bound::Unbounded, Bound::Included(bytes))).next_back()?;
    let mut found: Option<(&[u8], &Pattern)> = Some((from, pattern));
    let common = from.iter().zip(bytes).take_while(|(x, y)| x == y).count();
    while let Some((from, pattern)) = found
        && from.len() > common
    {
        found = shorter(patterns, from, pattern);
    }
    found
}

/// The longest other pattern that a pattern begins with.
fn shorter<'p>(
    patterns: &'p Patterns,
    from: &'p [u8],
    pattern: &Pattern,
) -> Option<(&'p [u8], &'p Pattern)> {
    let (from, pattern) = patterns.get_key_value(from.get(..pattern.shorter)?)?;
    Some((from, pattern))
}

impl Pattern {
    /// Whether no letter or digit stands before and behind the `length` bytes from `at` on, where
    /// that matters.
    fn stands_alone(&self, bytes: &[u8], at: usize, length: usize) -> bool {
        let end = at + length;
        let letter = |place: Option<usize>| {
            let unit = place.and_then(|place| bytes.get(place..place + self.unit));
            // A unit of two bytes is such a letter where the other byte is 0.
            let rest = |unit: &[u8]| {
                unit.iter().filter(|byte| !byte.is_ascii_alphanumeric()).all(|byte| *byte == 0)
            };
            unit.is_some_and(|unit| {
                unit.iter().filter(|byte| byte.is_ascii_alphanumeric()).count() == 1 && rest(unit)
            })
        };
        self.unit == 0 || !(letter(at.checked_sub(self.unit)) || letter(Some(end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_names_that_begin_alike_the_longest_is_found() {
        let values = Values::new(b"0123456789abcdef");
        let mut known = KnownPersons::default();
        let names = ["Gilgamesh", "Gilgame", "Gilgamesh the Great", "Gilgal", "Gilg"];
        names.iter().for_each(|name| known.name(name, &values));
        for (text, name) in [
            ("Gilgamesh the Grand", "Gilgamesh"),
            ("Gilgamesh the Great", "Gilgamesh the Great"),
            ("Gilgames", "Gilgame"),
            ("Gilgalad", "Gilgal"),
            ("Gilg", "Gilg"),
            ("Gilgo", ""),
            ("Gil", ""),
        ] {
            let mut swept = text.to_string();
            known.sweep_text(&mut swept);
            let rest = text.strip_prefix(name).unwrap_or_default();
            assert_eq!(swept, format!("{}{rest}", values.name(name)), "{text}");
        }
    }

    #[test]
    fn what_was_met_is_found_in_every_encoding() {
        let values = Values::new(b"0123456789abcdef");
        let mut known = KnownPersons::default();
        known.name("Alice", &values);
        known.uuid([7; 16], &values);
        let new = values.name("Alice");
        let mut text = "hello Alice, Alices Alice".to_string();
        known.sweep_text(&mut text);
        assert_eq!(text, format!("hello {new}, Alices {new}"));
        known.name("Gilgamesh", &values);
        let mut text = "xGilgameshs".to_string();
        known.sweep_text(&mut text);
        assert_eq!(
            text,
            format!("x{}s", values.name("Gilgamesh")),
            "a longer name is found inside a word"
        );
        let mut hex = "07".repeat(16);
        known.sweep_text(&mut hex);
        assert!(!hex.contains("0707"), "{hex}");
        let wide: Vec<u8> = " Alice!".encode_utf16().flat_map(u16::to_be_bytes).collect();
        let mut swept = wide.clone();
        known.sweep(&mut swept);
        let expected: Vec<u8> =
            format!(" {new}!").encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(swept, expected);
        let mut bytes = [[9; 3].as_slice(), &[7; 16], &[9]].concat();
        known.sweep(&mut bytes);
        assert!(!bytes.windows(16).any(|window| window == [7; 16]));
    }
}
