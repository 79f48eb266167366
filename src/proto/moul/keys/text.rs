//! What the text formats share: decoding, lines with their numbers, base-64 numbers, and pairing
//! the halves of a key. It knows no particular format.

use super::error::{KeyError, KeyPlace};
use super::private::{MAX_KEYS, PrivateKey, PublicHalf, check_modulus};
use super::service::KeyService;
use super::session::SessionLine;
use crate::digits::counted;
use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use num_bigint::BigUint;

/// The content of a key file of any format.
#[derive(Default)]
pub(super) struct KeyFileContents {
    pub(super) keys: Vec<PrivateKey>,
    pub(super) public: Vec<PublicHalf>,
    pub(super) sessions: Vec<SessionLine>,
    pub(super) notes: Vec<String>,
    /// The file names no part of any key: a valid file if the server does not encrypt.
    pub(super) no_keys_wanted: bool,
}

/// The text of a file: UTF-8 or UTF-16 with or without byte order mark, with comments in an older
/// 8-bit character set allowed. `None` if the file is not text.
pub(super) fn decode_file(bytes: &[u8]) -> Option<String> {
    if let Some(rest) = bytes.strip_prefix(b"\xff\xfe") {
        return Some(decode_utf16(rest, u16::from_le_bytes));
    }
    if let Some(rest) = bytes.strip_prefix(b"\xfe\xff") {
        return Some(decode_utf16(rest, u16::from_be_bytes));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let control = |byte: &u8| {
        *byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r' | b'\x0c' | b'\x08' | b'\x1b')
    };
    (!bytes.iter().any(control)).then(|| String::from_utf8_lossy(bytes).into_owned())
}

fn decode_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let (units, _odd) = bytes.as_chunks::<2>();
    char::decode_utf16(units.iter().map(|pair| unit(*pair)))
        .map(|c| c.unwrap_or('\u{fffd}'))
        .collect()
}

/// The lines of a text with their numbers from 1, without their ends.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)))
}

/// Where `part`, a piece cut out of `line`, begins.
pub(super) fn place_of(number: usize, line: &str, part: &str) -> KeyPlace {
    let start = (part.as_ptr() as usize).saturating_sub(line.as_ptr() as usize);
    let column = line.get(..start).map_or(1, |before| before.chars().count() + 1);
    KeyPlace::Line { line: number, column }
}

/// A value without the blanks and quotes around it.
pub(super) fn trim_quotes(value: &str) -> &str {
    let value = value.trim();
    for quote in ['"', '\''] {
        let inner = value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        if let Some(inner) = inner {
            return inner.trim();
        }
    }
    value
}

/// A 512-bit number in base-64, big-endian, as DIRTSAND, MOULArs and NAGUS write it: 64 bytes, no
/// more and no less, so that a value cut short is noticed. Blanks inside are ignored. The error
/// names what was expected and how many bytes there were.
pub(super) fn parse_number(value: &str) -> Result<BigUint, String> {
    // Bits left over after the last byte are accepted, as Python and DIRTSAND accept them. The
    // length shows whether a value was cut short.
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let engine = GeneralPurpose::new(&base64::alphabet::STANDARD, config);
    let digits: String = value.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    match engine.decode(&digits) {
        Ok(bytes) if bytes.len() == 64 => Ok(BigUint::from_bytes_be(&bytes)),
        Ok(bytes) => {
            Err(format!("expected base-64 of 64 bytes, found {}", counted(bytes.len(), "byte")))
        }
        Err(_) => Err("expected base-64 of 64 bytes, found something that is no base-64".into()),
    }
}

/// The parts of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum KeyPart {
    /// The modulus.
    N,
    /// The private exponent.
    K,
    /// The public key.
    X,
    /// The generator.
    G,
}

impl KeyPart {
    /// The letter by which servers' configuration files call it.
    fn letter(self) -> char {
        match self {
            KeyPart::N => 'N',
            KeyPart::K => 'K',
            KeyPart::X => 'X',
            KeyPart::G => 'G',
        }
    }

    /// The part that a letter stands for. NAGUS writes `a` for the exponent.
    pub(super) fn from_word(word: &str) -> Option<KeyPart> {
        match word {
            "N" | "n" => Some(KeyPart::N),
            "K" | "k" | "A" | "a" => Some(KeyPart::K),
            "X" | "x" => Some(KeyPart::X),
            "G" | "g" => Some(KeyPart::G),
            _ => None,
        }
    }
}

/// Collects the parts of keys as a file gives them and pairs them by service. A service's second N
/// begins a second key.
pub(super) struct Pairs<'a> {
    file: &'a str,
    keys: Vec<PartialKey>,
    notes: Vec<String>,
}

#[derive(Default)]
struct PartialKey {
    service: Option<KeyService>,
    n: Option<(BigUint, KeyPlace)>,
    k: Option<(BigUint, KeyPlace)>,
    x: Option<BigUint>,
    g: Option<u64>,
}

impl<'a> Pairs<'a> {
    pub(super) fn new(file: &'a str) -> Pairs<'a> {
        Pairs { file, keys: Vec::new(), notes: Vec::new() }
    }

    /// Adds one value as the file writes it, quotes included. Ignores an empty value.
    pub(super) fn put(
        &mut self,
        service: KeyService,
        part: KeyPart,
        value: &str,
        place: KeyPlace,
    ) -> Result<(), KeyError> {
        let value = trim_quotes(value);
        if value.is_empty() {
            return Ok(());
        }
        if part == KeyPart::G {
            let wrong =
                |_| KeyError::new(self.file, place, "expected the generator as a decimal number");
            let generator = value.parse().map_err(wrong)?;
            self.keep(service, part, |parts| parts.g = Some(generator));
            return Ok(());
        }
        match parse_number(value) {
            Ok(number) => self.keep(service, part, |parts| match part {
                KeyPart::N => parts.n = Some((number, place)),
                KeyPart::K => parts.k = Some((number, place)),
                _ => parts.x = Some(number),
            }),
            // Key generators print the client's half beside the server's. It is not needed.
            Err(_) if part == KeyPart::X => {
                self.notes.push(format!("{service}: the public key X cannot be read"))
            }
            Err(text) => return Err(KeyError::new(self.file, place, text)),
        }
        Ok(())
    }

    /// Adds a public half from the client's side of a key generator's output.
    pub(super) fn put_public(&mut self, service: KeyService, part: KeyPart, value: &str) {
        let Ok(number) = parse_number(trim_quotes(value)) else {
            self.notes.push(format!("{service}: a client's value cannot be read"));
            return;
        };
        let last = self.keys.iter_mut().rev().find(|key| key.service == Some(service));
        match (part, last) {
            (KeyPart::X, Some(key)) => key.x = Some(number),
            (KeyPart::N, Some(key)) if key.n.as_ref().is_some_and(|(n, _)| *n != number) => {
                self.notes
                    .push(format!("{service}: the N for clients is another than the server's"));
            }
            _ => {}
        }
    }

    /// Sets `part` of the service's latest key. Begins a new key if that one has this part already.
    fn keep(&mut self, service: KeyService, part: KeyPart, set: impl FnOnce(&mut PartialKey)) {
        let latest = self.keys.iter().rev().find(|key| key.service == Some(service));
        if latest.is_none_or(|key| key.has(part) && key.is_whole()) {
            self.keys.push(PartialKey { service: Some(service), ..PartialKey::default() });
        } else if latest.is_some_and(|key| key.has(part)) {
            self.notes
                .push(format!("{service}: {} is given twice, the last one counts", part.letter()));
        }
        if let Some(latest) = self.keys.iter_mut().rev().find(|key| key.service == Some(service)) {
            set(latest);
        }
    }

    /// Returns the complete keys, with remarks on halves and on services without a key. `expected`
    /// are the services for which files of this format have keys.
    pub(super) fn finish(self, expected: &[KeyService]) -> Result<KeyFileContents, KeyError> {
        if self.keys.len() > MAX_KEYS {
            let text = format!("expected at most {MAX_KEYS} private keys");
            return Err(KeyError::new(self.file, KeyPlace::Whole, text));
        }
        let mut contents = KeyFileContents { notes: self.notes, ..KeyFileContents::default() };
        for parts in self.keys {
            parts.finish(self.file, &mut contents)?;
        }
        for service in expected {
            let found = contents.keys.iter().filter(|key| key.service() == Some(*service)).count();
            if found == 0 && !contents.keys.is_empty() {
                contents.notes.push(format!("{service}: no key in this file"));
            } else if found > 1 {
                contents.notes.push(format!("{service}: {found} keys, all of them are tried"));
            }
        }
        Ok(contents)
    }
}

impl PartialKey {
    fn has(&self, part: KeyPart) -> bool {
        match part {
            KeyPart::N => self.n.is_some(),
            KeyPart::K => self.k.is_some(),
            KeyPart::X => self.x.is_some(),
            KeyPart::G => self.g.is_some(),
        }
    }

    fn is_whole(&self) -> bool {
        self.n.is_some() && self.k.is_some()
    }

    fn finish(self, file: &str, contents: &mut KeyFileContents) -> Result<(), KeyError> {
        let name = self.service.map_or("a key", KeyService::name);
        match (self.n, self.k) {
            (Some((n, n_place)), Some((k, k_place))) => {
                check_modulus(&n).map_err(|text| KeyError::new(file, n_place, text))?;
                let key = PrivateKey::new(self.service, self.g, n, k)
                    .map_err(|text| KeyError::new(file, k_place, text))?;
                let generator = self.g.or(self.service.map(KeyService::generator));
                if let (Some(x), Some(generator)) = (&self.x, generator)
                    && key.public_key(generator) != *x
                {
                    contents
                        .notes
                        .push(format!("{name}: the public key X does not belong to N and K"));
                }
                contents.keys.push(key);
            }
            (Some((modulus, _)), None) => {
                if self.x.is_none() {
                    contents.notes.push(format!("{name}: N without its private exponent"));
                }
                contents.public.push(PublicHalf {
                    service: self.service,
                    modulus,
                    public_key: self.x,
                });
            }
            (None, Some(_)) => {
                contents.notes.push(format!("{name}: a private exponent without its N"))
            }
            (None, None) => {}
        }
        Ok(())
    }
}
