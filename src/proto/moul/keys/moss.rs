//! The files of MOSS's `make_cyan_dh`: the server's DER, the `-w` file for Wireshark, the `-c` file
//! for clients, and what `-t` prints. None names its server, but the generator or the file's name
//! may tell.

use super::error::{KeyError, KeyPlace};
use super::prime::{is_probable_prime, is_safe_prime};
use super::private::{PrivateKey, PublicHalf};
use super::service::KeyService;
use super::text::{KeyFileContents, lines};
use crate::digits::{counted, plural};
use num_bigint::BigUint;

/// Bytes of the prime at the start of the raw files.
const PRIME: usize = 64;

/// The two raw files.
pub(super) enum Raw {
    /// `-w`: p and the private exponent, big-endian, without padding.
    Private(KeyFileContents),
    /// `-c`: p and the public key, little-endian.
    Public(KeyFileContents),
}

/// Whether a binary file begins like a SEQUENCE whose first element is an INTEGER.
pub(super) fn is_der(bytes: &[u8]) -> bool {
    let mut reader = Der { file: "", bytes, at: 0 };
    bytes.first() == Some(&0x30)
        && (bytes.len() < 4
            || (reader.read_header(0x30).is_ok()
                && matches!(bytes.get(reader.at), None | Some(0x02))))
}

/// Reads the server's key: a SEQUENCE of three INTEGERs, p, g and the private exponent. The lengths
/// vary.
pub(super) fn read_der(file: &str, bytes: &[u8]) -> Result<KeyFileContents, KeyError> {
    let mut reader = Der { file, bytes, at: 0 };
    let length = reader.read_header(0x30)?;
    let end = reader.at.saturating_add(length);
    let Some(sequence) = bytes.get(..end) else {
        let text = format!(
            "expected {} as the SEQUENCE says, found {}: the file is cut off",
            counted(end, "byte"),
            bytes.len()
        );
        return Err(KeyError::new(file, KeyPlace::Byte(bytes.len()), text));
    };
    reader.bytes = sequence;
    let p = reader.read_integer("p")?;
    let g = reader.read_integer("g")?;
    if reader.at == end {
        let text = "expected a third INTEGER, the private exponent: these are Diffie-Hellman \
                    parameters without a key";
        return Err(KeyError::new(file, KeyPlace::Byte(end), text));
    }
    let exponent = reader.read_integer("the private exponent")?;
    if reader.at != end {
        let text = "expected the SEQUENCE to end after p, g and the private exponent";
        return Err(KeyError::new(file, KeyPlace::Byte(reader.at), text));
    }
    let mut contents = make_contents_by_generator(file, p, u64::try_from(&g).ok(), exponent)?;
    let more = bytes.len() - end;
    if more > 0 {
        contents.notes.push(format!(
            "{} after the key {} passed over",
            counted(more, "byte"),
            plural(more, "is", "are")
        ));
    }
    Ok(contents)
}

/// Tells the `-w` file from the `-c` file by which byte order makes a prime of the first 64 bytes,
/// and reads it.
pub(super) fn read_raw(file: &str, bytes: &[u8]) -> Result<Raw, KeyError> {
    let wrong = |at: usize, text: &str| KeyError::new(file, KeyPlace::Byte(at), text);
    if bytes.len() > 2 * PRIME {
        return Err(wrong(
            2 * PRIME,
            "not a key file: expected text, MOSS's DER, or the 128 bytes of make_cyan_dh -w",
        ));
    }
    let Some((prime, rest)) = bytes.split_at_checked(PRIME) else {
        return Err(wrong(
            bytes.len(),
            "not a key file, or cut off: make_cyan_dh writes more than 64 bytes",
        ));
    };
    let big = BigUint::from_bytes_be(prime);
    let little = BigUint::from_bytes_le(prime);
    let big_prime = is_probable_prime(&big);
    let little_prime = is_probable_prime(&little);
    // About one random number in several hundred is prime, so the wrong byte order may give a prime
    // too. It never gives a safe prime by chance.
    let backwards =
        little_prime && (!big_prime || (is_safe_prime(&little) && !is_safe_prime(&big)));
    if backwards && rest.len() == PRIME {
        let public_key = Some(BigUint::from_bytes_le(rest));
        let half =
            PublicHalf { service: KeyService::from_file_name(file), modulus: little, public_key };
        return Ok(Raw::Public(KeyFileContents {
            public: vec![half],
            ..KeyFileContents::default()
        }));
    }
    if !big_prime {
        return Err(wrong(
            0,
            "not a key file, or damaged: expected a prime in the first 64 bytes, as make_cyan_dh \
             -w writes",
        ));
    }
    if rest.is_empty() {
        return Err(wrong(
            PRIME,
            "expected the private exponent after the prime: the file is cut off",
        ));
    }
    let exponent = BigUint::from_bytes_be(rest);
    let mut contents = make_contents(file, KeyService::from_file_name(file), None, big, exponent)?;
    if rest.len() < PRIME {
        let text = format!(
            "a private exponent of {} bytes: right if the key is so short, wrong if the file was \
             cut",
            rest.len()
        );
        contents.notes.push(text);
    }
    Ok(Raw::Private(contents))
}

/// Reads what `make_cyan_dh -t` prints: numbers in hex under the names "Prime (modulus)",
/// "Generator" and "Private key".
pub(super) fn read_printed(file: &str, text: &str) -> Result<KeyFileContents, KeyError> {
    let mut numbers: [(String, KeyPlace); 4] =
        std::array::from_fn(|_| (String::new(), KeyPlace::Whole));
    let mut current = None;
    for (number, line) in lines(text) {
        let heading = ["prime", "generator", "private key", "public key"];
        let lower = line.trim().to_ascii_lowercase();
        if let Some(found) = heading.iter().position(|heading| lower.starts_with(heading)) {
            current = numbers.get_mut(found);
            if let Some((digits, place)) = current.as_mut() {
                digits.clear();
                *place = KeyPlace::Line { line: number, column: 1 };
            }
        } else if lower.chars().all(|c| c.is_ascii_hexdigit() || c.is_whitespace()) {
            if let Some((digits, _)) = current.as_mut() {
                digits.extend(lower.split_whitespace());
            }
        } else {
            current = None;
        }
    }
    let [p, g, k, x] = numbers;
    let hex = |(digits, place): &(String, KeyPlace), name: &str| {
        BigUint::parse_bytes(digits.as_bytes(), 16).ok_or_else(|| {
            KeyError::new(
                file,
                *place,
                format!("expected {name} in hex, as make_cyan_dh -t prints it"),
            )
        })
    };
    let generator = u64::try_from(hex(&g, "the generator")?).ok();
    let (p, k, k_digits) = (hex(&p, "the prime")?, hex(&k, "the private key")?, k.0.len());
    let mut contents = make_contents_by_generator(file, p, generator, k)?;
    if let (Ok(x), Some(g), Some(key)) =
        (hex(&x, "the public key"), generator, contents.keys.first())
    {
        if key.public_key(g) != x {
            contents.notes.push(
                "the public key does not belong to prime and private key: cut or mistyped?".into(),
            );
        }
    } else if k_digits < 2 * PRIME {
        contents.notes.push(
            "the private key is short: right if it is so short, wrong if the text was cut".into(),
        );
    }
    Ok(contents)
}

fn make_contents_by_generator(
    file: &str,
    p: BigUint,
    g: Option<u64>,
    exponent: BigUint,
) -> Result<KeyFileContents, KeyError> {
    let by_generator = g.and_then(KeyService::from_generator);
    let by_name = KeyService::from_file_name(file);
    let (service, note) = match (by_generator, by_name) {
        (Some(g), Some(name)) if g != name => (
            None,
            Some(format!(
                "the generator is {g}'s, the file's name says {name}: tried for every server"
            )),
        ),
        (service, name) => (service.or(name), None),
    };
    let mut contents = make_contents(file, service, g, p, exponent)?;
    contents.notes.extend(note);
    Ok(contents)
}

fn make_contents(
    file: &str,
    service: Option<KeyService>,
    generator: Option<u64>,
    p: BigUint,
    exponent: BigUint,
) -> Result<KeyFileContents, KeyError> {
    let key = PrivateKey::new(service, generator, p, exponent)
        .map_err(|text| KeyError::new(file, KeyPlace::Whole, text))?;
    Ok(KeyFileContents { keys: vec![key], ..KeyFileContents::default() })
}

/// Reads definite-length DER, as OpenSSL writes it.
struct Der<'a> {
    file: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl Der<'_> {
    fn error_here(&self, text: impl Into<String>) -> KeyError {
        KeyError::new(self.file, KeyPlace::Byte(self.at), text)
    }

    fn read_byte(&mut self) -> Result<u8, KeyError> {
        let byte = self.bytes.get(self.at).copied();
        let byte = byte.ok_or_else(|| {
            self.error_here("expected more DER: the file or its SEQUENCE ends here")
        })?;
        self.at += 1;
        Ok(byte)
    }

    /// The length of the element that begins here with `tag`.
    fn read_header(&mut self, tag: u8) -> Result<usize, KeyError> {
        if self.bytes.get(self.at).is_some_and(|found| *found != tag) {
            let name = if tag == 0x30 { "a SEQUENCE (30)" } else { "an INTEGER (02)" };
            return Err(self.error_here(format!("expected {name} of DER")));
        }
        self.read_byte()?;
        let first = self.read_byte()?;
        if first < 0x80 {
            return Ok(usize::from(first));
        }
        if !(0x81..=0x83).contains(&first) {
            self.at -= 1;
            return Err(self.error_here("expected a DER length of at most 3 bytes"));
        }
        (0x80..first).try_fold(0, |length, _| Ok(length << 8 | usize::from(self.read_byte()?)))
    }

    /// An INTEGER. Read as unsigned, as MOSS does.
    fn read_integer(&mut self, name: &str) -> Result<BigUint, KeyError> {
        let length = self.read_header(0x02)?;
        let end = self.at.saturating_add(length);
        match self.bytes.get(self.at..end) {
            Some(digits) if !digits.is_empty() => {
                self.at = end;
                Ok(BigUint::from_bytes_be(digits))
            }
            Some(_) => {
                Err(self.error_here(format!("expected the INTEGER {name}, found an empty one")))
            }
            None => {
                Err(self
                    .error_here(format!("expected the INTEGER {name} to end within its SEQUENCE")))
            }
        }
    }
}
