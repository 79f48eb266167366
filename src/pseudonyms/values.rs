//! Pseudonyms of single values: numbers, UUIDs, addresses, names. Each has the form and the length
//! of what it replaces.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use super::permute::{Digit, Permuter};
use crate::digits::{is_uuid, parse_uuid};
use crate::maps::BoundedMap;

/// What replaces free text.
pub(super) const FILLER: u8 = b'x';

/// Gives pseudonyms under a key.
#[derive(Clone)]
pub(super) struct Values {
    permuter: Permuter,
    /// Values that had a pseudonym before, each behind a word for its sort.
    remembered: Arc<Mutex<KnownValues>>,
}

/// Pseudonyms by what they are for and what they stand for.
type KnownValues = BoundedMap<Box<[u8]>, Box<[u8]>>;

/// How many pseudonyms are remembered, and the bytes of the longest.
const REMEMBERED: usize = 32_768;
const LONGEST: usize = 64;

impl Values {
    /// Pseudonyms under a key.
    pub(super) fn new(key: &[u8; 16]) -> Values {
        let remembered = Arc::new(Mutex::new(BoundedMap::new(REMEMBERED)));
        Values { permuter: Permuter::new(key), remembered }
    }

    /// The pseudonym of a value of a sort, as `make` gives it unless it is remembered.
    fn remember(&self, what_for: &str, value: &[u8], make: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
        if value.len() > LONGEST {
            return make();
        }
        let key = [what_for.as_bytes(), &[0xff], value].concat();
        let lock = || self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&*key) {
            return known.to_vec();
        }
        let made = make();
        lock().insert(key.into(), made.clone().into());
        made
    }

    /// A number that depends on the key and on what it is for alone.
    pub(super) fn constant(&self, what_for: &str) -> u64 {
        self.permuter.hash(what_for, &[])
    }

    /// The pseudonym of a number: bytes that are 0 stay 0, so it needs as many bytes. 0 and all
    /// bits of 32 or 64 stay.
    pub(super) fn number(&self, value: u64) -> u64 {
        let whole =
            |digits: &[Digit]| digits.len() >= 4 && digits.iter().all(|digit| digit.value == 254);
        let mut bytes = value.to_be_bytes();
        self.bytes("number", &mut bytes, whole);
        u64::from_be_bytes(bytes)
    }

    /// The pseudonym of a UUID, as written. The nil UUID stays.
    pub(super) fn uuid(&self, bytes: &mut [u8; 16]) {
        self.bytes("uuid", bytes, |_| false);
    }

    /// Bytes in the place of bytes that are a secret. Bytes that are 0 stay 0.
    pub(super) fn secret(&self, bytes: &mut [u8]) {
        self.bytes("secret", bytes, |_| false);
    }

    fn bytes(&self, what_for: &str, bytes: &mut [u8], stays: impl Fn(&[Digit]) -> bool) {
        let made = self.remember(what_for, bytes, || {
            let mut made = bytes.to_vec();
            self.permute_bytes(what_for, &mut made, stays);
            made
        });
        bytes.copy_from_slice(&made);
    }

    fn permute_bytes(&self, what_for: &str, bytes: &mut [u8], stays: impl Fn(&[Digit]) -> bool) {
        let digit =
            |byte: &u8| byte.checked_sub(1).map(|value| Digit { value: value.into(), radix: 255 });
        let mut digits: Vec<Digit> = bytes.iter().filter_map(digit).collect();
        self.permuter.replace(what_for, &mut digits, stays);
        for (byte, digit) in bytes.iter_mut().filter(|byte| **byte != 0).zip(digits) {
            *byte = digit.value as u8 + 1;
        }
    }

    /// Replaces decimal digits by as many others. A number that does not begin with 0 gets a
    /// pseudonym that does not either.
    pub(super) fn decimal(&self, text: &mut [u8]) {
        let long = text.iter().filter(|byte| byte.is_ascii_digit()).count() > 1;
        let mut first = true;
        let mut digits = Vec::new();
        for byte in text.iter().filter(|byte| byte.is_ascii_digit()) {
            let least = u32::from(first && (long || *byte != b'0'));
            first = false;
            digits.push((
                least,
                Digit { value: u32::from(byte - b'0').saturating_sub(least), radix: 10 - least },
            ));
        }
        let mut permuted: Vec<Digit> = digits.iter().map(|(_, digit)| *digit).collect();
        self.permuter.replace("decimal", &mut permuted, |_| false);
        let new = permuted
            .iter()
            .zip(&digits)
            .map(|(digit, (least, _))| (digit.value + least) as u8 + b'0');
        text.iter_mut()
            .filter(|byte| byte.is_ascii_digit())
            .zip(new)
            .for_each(|(byte, new)| *byte = new);
    }

    /// The pseudonym of a number that may be written in digits: it has as many of them, and as a
    /// signed number of 32 bits it has the same sign.
    pub(super) fn digits(&self, value: u64) -> u64 {
        let class = |value: u64| (value <= i32::MAX as u64, value <= u64::from(u32::MAX));
        let mut text = value.to_string().into_bytes();
        // The permutation has one cycle for each count of digits, so it comes back to the class.
        loop {
            self.decimal(&mut text);
            let new = text.iter().fold(0u64, |new, digit| {
                new.saturating_mul(10).saturating_add(u64::from(digit.wrapping_sub(b'0')))
            });
            if class(new) == class(value) {
                return new;
            }
        }
    }

    /// The pseudonym of a URL, or of the path of one: its scheme and host stay.
    pub(super) fn url(&self, text: &str) -> String {
        let host = text.find("://").map_or(0, |at| at + 3);
        let path =
            text.get(host..).and_then(|rest| rest.find('/')).map_or(text.len(), |at| host + at);
        let (front, path) = text.split_at_checked(path).unwrap_or((text, ""));
        format!("{front}{}", self.name(path))
    }

    /// The pseudonym of an address: each number of an IPv4 address has as many decimal digits as
    /// before, so its text is as long. 0 stays 0, and multicast and broadcast addresses, which are
    /// nobody's, stay as they are.
    pub(super) fn address(&self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(address) => IpAddr::V4(self.ipv4(address)),
            IpAddr::V6(address) => match address.to_ipv4_mapped() {
                Some(mapped) => IpAddr::V6(self.ipv4(mapped).to_ipv6_mapped()),
                None => {
                    let mut bytes = address.octets();
                    // Bytes of 0 are no digits.
                    let first = bytes[0] != 0;
                    let nobody = |digits: &[Digit]| {
                        first && digits.first().is_some_and(|digit| digit.value == 0xff - 1)
                    };
                    self.bytes("ipv6", &mut bytes, nobody);
                    IpAddr::V6(Ipv6Addr::from(bytes))
                }
            },
        }
    }

    fn ipv4(&self, address: Ipv4Addr) -> Ipv4Addr {
        let octets = address.octets();
        let made = self.remember("ipv4", &octets, || self.permute_ipv4(octets).to_vec());
        Ipv4Addr::from(*made.first_chunk().unwrap_or(&octets))
    }

    fn permute_ipv4(&self, mut octets: [u8; 4]) -> [u8; 4] {
        let class = |octet: u8| match octet {
            0 => (0, 1),
            1..10 => (1, 9),
            10..100 => (10, 90),
            _ => (100, 156),
        };
        let mut digits = octets.map(|octet| {
            let (least, radix) = class(octet);
            Digit { value: u32::from(octet - least), radix }
        });
        let nobody = |digits: &[Digit]| {
            digits.first().is_some_and(|digit| digit.radix == 156 && digit.value >= 224 - 100)
        };
        self.permuter.replace("ipv4", &mut digits, nobody);
        for (octet, digit) in octets.iter_mut().zip(digits) {
            *octet = class(*octet).0 + digit.value as u8;
        }
        octets
    }

    /// The pseudonym of an address with its port. Ports below 1024, below 32,768 and above stay
    /// there.
    pub(super) fn socket(&self, end: SocketAddr) -> SocketAddr {
        let (least, step, radix) = match end.port() {
            0..1024 => (1, 33, 31),
            1024..32_768 => (1024, 256, 124),
            _ => (32_768, 256, 128),
        };
        let port = match u32::from(end.port()).checked_sub(least) {
            None => 0,
            Some(from) => {
                let mut digits = [(from / step, radix), (from % step, step)]
                    .map(|(value, radix)| Digit { value, radix });
                self.permuter.replace(&format!("port of {}", end.ip()), &mut digits, |_| false);
                let [high, low] = digits;
                (least + high.value * step + low.value) as u16
            }
        };
        SocketAddr::new(self.address(end.ip()), port)
    }

    /// The pseudonym of a name: each word becomes another word of as many letters and digits, in
    /// every way of writing them, and what is between words stays. A UUID in the text becomes its
    /// own pseudonym.
    pub(super) fn name(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            if let Some(uuid) = uuid_at(rest) {
                self.uuid_text(uuid, &mut out);
                rest = rest.get(36..).unwrap_or("");
                continue;
            }
            let end = rest
                .char_indices()
                .find(|(_, c)| Letter::of(*c).is_none())
                .map_or(rest.len(), |(at, _)| at);
            let end = if end == 0 { c.len_utf8() } else { end };
            let (word, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
            self.word(word, &mut out);
            rest = behind;
        }
        out
    }

    fn word(&self, word: &str, out: &mut String) {
        let made = self.remember("word", word.as_bytes(), || {
            let mut made = String::new();
            self.permute_word(word, &mut made);
            made.into_bytes()
        });
        out.push_str(&String::from_utf8_lossy(&made));
    }

    fn permute_word(&self, word: &str, out: &mut String) {
        let letters: Option<Vec<Letter>> = word.chars().map(Letter::of).collect();
        let Some(letters) = letters else { return out.push_str(word) };
        let mut digits: Vec<Digit> = letters.iter().map(|letter| letter.digit).collect();
        self.permuter.replace("word", &mut digits, |_| false);
        out.extend(letters.iter().zip(digits).map(|(letter, digit)| letter.with(digit.value)));
    }

    /// Appends the pseudonym of a UUID in its usual text.
    fn uuid_text(&self, text: &str, out: &mut String) {
        let mut bytes = parse_uuid(text).unwrap_or_default();
        self.uuid(&mut bytes);
        let upper = text.bytes().any(|byte| byte.is_ascii_uppercase());
        let mut digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        for c in text.chars() {
            let digit = if c == '-' { None } else { digits.next() };
            let new = digit.and_then(|digit| char::from_digit(digit.into(), 16)).unwrap_or(c);
            out.push(if upper { new.to_ascii_uppercase() } else { new });
        }
    }
}

/// The UUID that a text begins with.
fn uuid_at(text: &str) -> Option<&str> {
    text.get(..36).filter(|uuid| is_uuid(uuid.as_bytes()))
}

/// A letter or digit, as the number that it is among those that may stand in its place: as many
/// bytes in every encoding.
struct Letter {
    digit: Digit,
    upper: bool,
    first: u32,
}

impl Letter {
    /// `None` for what is between words.
    fn of(c: char) -> Option<Letter> {
        let mut lower = c.to_lowercase();
        let lower = match (lower.next(), lower.next()) {
            (Some(lower), None) if lower.len_utf8() == c.len_utf8() => lower,
            _ => c,
        };
        let at = u32::from(lower);
        let (first, radix) = match lower {
            'a'..='z' => (u32::from('a'), 26),
            '0'..='9' => (u32::from('0'), 10),
            '\0'..='\u{bf}' | '×' | '÷' => return None,
            // The letters of Latin-1 that have a capital one.
            '\u{c0}'..='\u{ff}' => (0xe0, 23),
            '\u{100}'..='\u{7ff}' => (0x3b1, 17),
            '\u{3000}'..='\u{303f}' | '\u{2000}'..='\u{206f}' => return None,
            '\u{800}'..='\u{ffff}' => (0x4e00, 4096),
            _ => (0x20000, 4096),
        };
        // Letters of other alphabets have no order that matters here.
        let value = if at >= first { (at - first) % radix } else { at % radix };
        Some(Letter { digit: Digit { value, radix }, upper: lower != c, first })
    }

    fn with(&self, value: u32) -> char {
        let c = char::from_u32(self.first + value).unwrap_or('x');
        if !self.upper {
            return c;
        }
        c.to_uppercase().next().filter(|upper| upper.len_utf8() == c.len_utf8()).unwrap_or(c)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn values() -> Values {
        Values::new(b"0123456789abcdef")
    }

    #[test]
    fn a_name_keeps_its_length_in_every_encoding() {
        for name in [
            "Alice",
            "Ávätar Øne",
            "player1",
            "Мария",
            "日本 7",
            "x",
            "A.B-c_d@host.example",
            "𠀀𠀁",
        ] {
            let new = values().name(name);
            assert_ne!(new, name);
            assert_eq!(new.len(), name.len(), "{new}");
            assert_eq!(new.encode_utf16().count(), name.encode_utf16().count(), "{new}");
            let latin = |text: &str| text.chars().all(|c| u32::from(c) < 256);
            assert_eq!(latin(&new), latin(name), "{new}");
        }
    }

    #[test]
    fn a_word_is_the_same_wherever_and_however_it_is_written() {
        let whole = values().name("Alice Smith");
        assert_eq!(whole, format!("{} {}", values().name("Alice"), values().name("Smith")));
        assert_eq!(values().name("ALICE"), values().name("Alice").to_uppercase());
    }

    #[test]
    fn numbers_uuids_and_addresses_keep_their_form() {
        let values = values();
        for special in [0, u64::from(u32::MAX), u64::MAX] {
            assert_eq!(values.number(special), special);
        }
        assert_ne!(values.number(10124), 10124);
        assert!((0x101..0x10000).contains(&values.number(10124)));
        let text = "0f5e3a51-1d4c-4f7a-9a58-3c2b00000001";
        let new = values.name(text);
        assert_eq!((new.len(), new.get(28..34)), (36, Some("000000")));
        assert_ne!(new, text);
        assert_eq!(values.name(&text.to_uppercase()), new.to_uppercase());
        let end: SocketAddr = ([127, 0, 0, 1], 57862).into();
        let new = values.socket(end);
        assert_ne!((new.ip(), new.port()), (end.ip(), end.port()));
        assert_eq!(new.ip().to_string().len(), 9);
        let mut digits = *b"-100";
        values.decimal(&mut digits);
        assert!(digits.starts_with(b"-") && digits != *b"-100" && digits.get(1) != Some(&b'0'));
    }

    #[test]
    fn an_address_of_one_host_never_becomes_one_of_many() {
        let many = |address: IpAddr| {
            address.is_multicast() || matches!(address, IpAddr::V4(v4) if v4.octets()[0] >= 224)
        };
        for key in 0..200_u8 {
            let values = Values::new(&[key; 16]);
            for text in [
                "127.0.0.1",
                "192.168.178.20",
                "203.0.113.9",
                "10.1.2.3",
                "2001:db8::7",
                "::1",
                "fe80::1234",
            ] {
                let address: IpAddr = text.parse().unwrap();
                let new = values.address(address);
                assert!(new != address && !many(new), "{address}: {new}");
            }
            for text in ["224.0.0.251", "239.255.255.250", "255.255.255.255", "ff02::fb"] {
                let address: IpAddr = text.parse().unwrap();
                assert_eq!(values.address(address), address);
            }
        }
    }
}
