//! The ciphers of the game's files: those that servers send over the auth connection, and those on
//! a client's disk.
//!
//! A file begins with 12 letters that name the cipher, and the plain size in 4 bytes,
//! little-endian; blocks of 8 bytes follow, the last one filled up. `notthedroids` is XXTEA with
//! the key the auth server sends at login, `whatdoyousee` and the older `BriceIsSmart` are XTEA
//! with a key every client has. This file knows only bytes, not their content.

use std::fmt;

/// The key that every client uses if no server sent one.
pub const CLIENT_KEY: [u32; 4] = [0x6c0a_5452, 0x0382_7d0f, 0x3a17_0b92, 0x16db_7fc2];

const MAGIC: usize = 12;
const DELTA: u32 = 0x9e37_79b9;
const ROUNDS: u32 = 32;

/// How a file is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cipher {
    /// `notthedroids`: XXTEA in blocks of two words.
    Xxtea,
    /// `whatdoyousee`, `BriceIsSmart`: XTEA.
    Xtea,
}

/// Why a file could not be decrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecryptError {
    /// It is cut off: the header announces more bytes than there are.
    Short {
        /// The plain size the header states.
        stated: u32,
        /// How many plain bytes the available blocks can give.
        there: usize,
    },
}

impl fmt::Display for DecryptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { stated, there } => {
                write!(f, "an encrypted file of {stated} bytes, cut off after {there}")
            }
        }
    }
}

impl std::error::Error for DecryptError {}

/// Tells by the first 12 bytes how a file is encrypted; `None` for a plain one.
pub fn find_cipher(bytes: &[u8]) -> Option<Cipher> {
    match bytes.get(..MAGIC)? {
        b"notthedroids" => Some(Cipher::Xxtea),
        b"whatdoyousee" | b"BriceIsSmart" => Some(Cipher::Xtea),
        _ => None,
    }
}

/// Decrypts a file, header included, with the 4 words of `key` as an AcctLoginReply carries them.
/// `None` if the file is not encrypted. The stated size limits the output. Memory is allocated only
/// for bytes that are there.
///
/// # Errors
/// If the file is cut off.
pub fn decrypt_file(key: [u32; 4], bytes: &[u8]) -> Result<Option<Vec<u8>>, DecryptError> {
    let Some(cipher) = find_cipher(bytes) else {
        return Ok(None);
    };
    let rest = bytes.get(MAGIC..).unwrap_or_default();
    let Some((size, body)) = rest.split_first_chunk::<4>() else {
        return Err(DecryptError::Short { stated: 0, there: 0 });
    };
    let stated = u32::from_le_bytes(*size);
    let wanted = usize::try_from(stated).unwrap_or(usize::MAX);
    let (blocks, _) = body.as_chunks::<8>();
    let there = blocks.len().saturating_mul(8);
    if there < wanted {
        return Err(DecryptError::Short { stated, there });
    }
    let mut plain = Vec::with_capacity(wanted.next_multiple_of(8));
    for &[a, b, c, d, e, f, g, h] in blocks.iter().take(wanted.div_ceil(8)) {
        let block = [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])];
        for word in match cipher {
            Cipher::Xxtea => decrypt_xxtea(block, key),
            Cipher::Xtea => decrypt_xtea(block, key),
        } {
            plain.extend_from_slice(&word.to_le_bytes());
        }
    }
    plain.truncate(wanted);
    Ok(Some(plain))
}

/// Opens a file, if necessary with the likeliest of the keys that logins brought. `None` if it is
/// not encrypted.
pub fn open_file(bytes: &[u8], keys: &[Vec<u32>]) -> Option<Result<Vec<u8>, String>> {
    let of_login = || keys.iter().find_map(|key| <[u32; 4]>::try_from(key.as_slice()).ok());
    let key = match find_cipher(bytes)? {
        Cipher::Xtea => Some(CLIENT_KEY),
        Cipher::Xxtea => of_login(),
    };
    match key.map(|key| decrypt_file(key, bytes)) {
        Some(Ok(plain)) => Some(Ok(plain?)),
        Some(Err(error)) => Some(Err(error.to_string())),
        None => Some(Err("no login of the capture brought the key that opens it".into())),
    }
}

/// One of four words: `index` counts modulo 4.
fn key_word(key: [u32; 4], index: u32) -> u32 {
    let [first, second, third, fourth] = key;
    match index & 3 {
        0 => first,
        1 => second,
        2 => third,
        _ => fourth,
    }
}

/// XXTEA for a block of two words: 6 + 52 / 2 rounds.
fn decrypt_xxtea([mut first, mut second]: [u32; 2], key: [u32; 4]) -> [u32; 2] {
    let mut sum = DELTA.wrapping_mul(ROUNDS);
    while sum != 0 {
        let e = (sum >> 2) & 3;
        second = second.wrapping_sub(mix(first, first, sum, key_word(key, 1 ^ e)));
        first = first.wrapping_sub(mix(second, second, sum, key_word(key, e)));
        sum = sum.wrapping_sub(DELTA);
    }
    [first, second]
}

fn mix(y: u32, z: u32, sum: u32, key: u32) -> u32 {
    ((z >> 5) ^ (y << 2)).wrapping_add((y >> 3) ^ (z << 4)) ^ (sum ^ y).wrapping_add(key ^ z)
}

fn decrypt_xtea([mut first, mut second]: [u32; 2], key: [u32; 4]) -> [u32; 2] {
    let mut sum = DELTA.wrapping_mul(ROUNDS);
    for _ in 0..ROUNDS {
        second = second.wrapping_sub(stir(first) ^ sum.wrapping_add(key_word(key, sum >> 11)));
        sum = sum.wrapping_sub(DELTA);
        first = first.wrapping_sub(stir(second) ^ sum.wrapping_add(key_word(key, sum)));
    }
    [first, second]
}

fn stir(value: u32) -> u32 {
    ((value << 4) ^ (value >> 5)).wrapping_add(value)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        hex.as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

    /// The beginning of a file as a DIRTSAND server sent it, its size cut to fit.
    const DROIDS: &str = "6e6f7474686564726f6964732c0000002f467aea63ce486c494be13aff23aa7db0f9a31cc8c7148e3b9b88809e9c6abedf07a06a9b3ca09a50829e916ef06706";
    /// Encrypted by another implementation, the last block filled with 0x55.
    const WHAT: &str = "77686174646f796f757365651a000000caea0a82ecaf05050f84d31b0eafd745b5ba75db0fca46f11113496697c472f1";

    #[test]
    fn what_a_server_sends_is_read_with_the_key_of_the_login() {
        let key = [0x31415926, 0x53589793, 0x23846264, 0x33832795];
        let plain = decrypt_file(key, &bytes(DROIDS)).unwrap().unwrap();
        assert_eq!(
            String::from_utf8(plain).unwrap(),
            "# /*==LICENSE==*\n# \n# CyanWorlds.com Engine "
        );
    }

    #[test]
    fn what_lies_on_a_disk_is_read_with_the_key_of_every_client() {
        let plain = decrypt_file(CLIENT_KEY, &bytes(WHAT)).unwrap().unwrap();
        assert_eq!(plain, b"STATEDESC a { VERSION 1 }\n");
    }

    #[test]
    fn a_plain_file_is_left_alone() {
        assert_eq!(decrypt_file(CLIENT_KEY, b"STATEDESC a { VERSION 1 }"), Ok(None));
        assert_eq!(decrypt_file(CLIENT_KEY, b""), Ok(None));
    }

    #[test]
    fn a_file_cut_anywhere_is_an_error() {
        let whole = bytes(WHAT);
        for end in 12..whole.len() {
            assert!(decrypt_file(CLIENT_KEY, &whole[..end]).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn a_size_beyond_the_file_takes_no_memory() {
        let mut file = b"notthedroids".to_vec();
        file.extend_from_slice(&u32::MAX.to_le_bytes());
        file.extend_from_slice(&[0; 8]);
        assert_eq!(
            decrypt_file(CLIENT_KEY, &file),
            Err(DecryptError::Short { stated: u32::MAX, there: 8 })
        );
    }
}
