//! Reads `shard.keys`, moulsniff's own text format: each line holds a shard's private key or
//! one session's key. `docs/keys.md` describes it; `write` writes it.

use super::derive::SessionKey;
use super::error::{KeyError, KeyPlace};
use super::private::{MAX_KEYS, PrivateKey, check_modulus};
use super::service::KeyService;
use super::session::{KeystreamStart, SessionLine};
use super::text::{KeyFileContents, lines, parse_number, place_of};
use num_bigint::BigUint;
use std::net::SocketAddr;

/// The word the first line begins with.
pub(super) const HEADER: &str = "moulsniff-keys";

/// Whether a line belongs to this format and no other.
pub(super) fn is_line(line: &str) -> bool {
    let mut words = line.split_whitespace();
    match words.next() {
        Some(HEADER) => true,
        Some("private" | "session") => {
            words.all(|word| parse_service(word).is_some() || word.contains('='))
        }
        _ => false,
    }
}

/// Reads the lines in any order. The header may be missing in a file written by hand.
pub(super) fn read_shard_keys(file: &str, text: &str) -> Result<KeyFileContents, KeyError> {
    let mut contents = KeyFileContents::default();
    let mut promised = None;
    for (at, line) in lines(text) {
        let mut words = split_words(at, line);
        let Some(first) = words.next() else { continue };
        let line = KeyLine { file, first: first.place };
        match first.text {
            HEADER => promised = add_counts(promised, line.parse_header(words)?),
            "private" if contents.keys.len() >= MAX_KEYS => {
                return Err(
                    line.error_at(first.place, format!("expected at most {MAX_KEYS} private keys"))
                );
            }
            "private" => contents.keys.push(line.parse_private(words)?),
            "session" => contents.sessions.push(line.parse_session(words)?),
            _ => {
                return Err(
                    line.error_at(first.place, "expected `private`, `session` or a comment (`#`)")
                );
            }
        }
    }
    let found = contents.keys.len() + contents.sessions.len();
    match promised {
        Some(promised) if promised != found => {
            contents.notes.push(format!(
                "{promised} entries were written, {found} are there: was the file cut or edited?"
            ));
        }
        None if !text.ends_with('\n') => {
            contents.notes.push("the last line has no end: was the file cut?".into())
        }
        _ => {}
    }
    Ok(contents)
}

/// In two concatenated files, the promised numbers add up.
fn add_counts(before: Option<usize>, now: Option<usize>) -> Option<usize> {
    match (before, now) {
        (Some(before), Some(now)) => before.checked_add(now),
        (before, now) => before.or(now),
    }
}

#[derive(Clone, Copy)]
struct Word<'a> {
    text: &'a str,
    place: KeyPlace,
}

/// The words of a line up to its comment.
fn split_words(number: usize, line: &str) -> impl Iterator<Item = Word<'_>> {
    let words = line.split_whitespace().take_while(|word| !word.starts_with('#'));
    words.map(move |text| Word { text, place: place_of(number, line, text) })
}

/// `Some(None)` for `any`.
fn parse_service(word: &str) -> Option<Option<KeyService>> {
    if word == "any" { Some(None) } else { KeyService::from_word(word).map(Some) }
}

/// A line that is being read. Its errors point into it.
struct KeyLine<'a> {
    file: &'a str,
    first: KeyPlace,
}

impl<'a> KeyLine<'a> {
    fn error_at(&self, place: KeyPlace, text: impl Into<String>) -> KeyError {
        KeyError::new(self.file, place, text)
    }

    /// The number of entries the header promises.
    fn parse_header(
        &self,
        mut words: impl Iterator<Item = Word<'a>>,
    ) -> Result<Option<usize>, KeyError> {
        let version = words.next();
        if version.is_none_or(|version| version.text != "1") {
            let place = version.map_or(self.first, |version| version.place);
            return Err(self.error_at(place, "expected version 1 of this format"));
        }
        let mut promised = None;
        for word in words {
            let count = word.text.strip_prefix("entries=").and_then(|count| count.parse().ok());
            let count = count
                .ok_or_else(|| self.error_at(word.place, "expected `entries=` and a number"))?;
            promised = Some(count);
        }
        Ok(promised)
    }

    /// The service word, if it comes next, and the `name=value` words.
    fn parse_fields<const N: usize>(
        &self,
        words: impl Iterator<Item = Word<'a>>,
        names: [&str; N],
    ) -> Result<(Option<KeyService>, [Option<Word<'a>>; N]), KeyError> {
        let mut values = [None; N];
        let mut service = None;
        let known = || {
            format!(
                "expected a server (gatekeeper, auth, game, csr, any) or one of {}=",
                names.join("=, ")
            )
        };
        for (at, word) in words.enumerate() {
            if at == 0
                && let Some(found) = parse_service(word.text)
            {
                service = found;
                continue;
            }
            let (name, text) =
                word.text.split_once('=').ok_or_else(|| self.error_at(word.place, known()))?;
            let slot =
                names.iter().position(|known| *known == name).and_then(|at| values.get_mut(at));
            let slot = slot.ok_or_else(|| self.error_at(word.place, known()))?;
            if slot.replace(Word { text, place: shift(word.place, name.len() + 1) }).is_some() {
                return Err(self.error_at(word.place, "expected each value once in a line"));
            }
        }
        Ok((service, values))
    }

    fn parse_private(&self, words: impl Iterator<Item = Word<'a>>) -> Result<PrivateKey, KeyError> {
        let (service, [g, n, k]) = self.parse_fields(words, ["g", "n", "k"])?;
        let missing =
            |name: &str| self.error_at(self.first, format!("expected {name}= in this line"));
        let n = n.ok_or_else(|| missing("n"))?;
        let k = k.ok_or_else(|| missing("k"))?;
        let modulus = self.parse_number(n)?;
        let exponent = self.parse_number(k)?;
        check_modulus(&modulus).map_err(|text| self.error_at(n.place, text))?;
        let generator = g.map(|g| self.parse_decimal(g)).transpose()?;
        PrivateKey::new(service, generator, modulus, exponent)
            .map_err(|text| self.error_at(k.place, text))
    }

    fn parse_session(
        &self,
        words: impl Iterator<Item = Word<'a>>,
    ) -> Result<SessionLine, KeyError> {
        let names = ["client", "server", "y", "seed", "client-start", "server-start", "rc4"];
        let (service, [client, server, y, seed, client_start, server_start, rc4]) =
            self.parse_fields(words, names)?;
        let rc4 = rc4
            .ok_or_else(|| self.error_at(self.first, "expected rc4= in this line: was it cut?"))?;
        Ok(SessionLine {
            key: SessionKey::new(self.parse_seven(rc4)?),
            service,
            client: client.map(|end| self.parse_end(end)).transpose()?,
            server: server.map(|end| self.parse_end(end)).transpose()?,
            y: y.map(|y| {
                self.parse_hex(y, "of 1 to 64 bytes", |length| (1..=64).contains(&length))
            })
            .transpose()?,
            seed: seed.map(|seed| self.parse_seven(seed)).transpose()?,
            client_start: client_start
                .map_or(Ok(KeystreamStart::Search), |start| self.parse_start(start))?,
            server_start: server_start
                .map_or(Ok(KeystreamStart::Search), |start| self.parse_start(start))?,
        })
    }

    fn parse_number(&self, word: Word<'_>) -> Result<BigUint, KeyError> {
        parse_number(word.text).map_err(|text| self.error_at(word.place, text))
    }

    fn parse_decimal(&self, word: Word<'_>) -> Result<u64, KeyError> {
        word.text.parse().map_err(|_| self.error_at(word.place, "expected a decimal number"))
    }

    fn parse_end(&self, word: Word<'_>) -> Result<SocketAddr, KeyError> {
        let text = "expected address:port, IPv6 in brackets";
        word.text.parse().map_err(|_| self.error_at(word.place, text))
    }

    fn parse_start(&self, word: Word<'_>) -> Result<KeystreamStart, KeyError> {
        let start = match word.text.split_once(':') {
            None if word.text == "search" => Some(KeystreamStart::Search),
            Some(("seq", number)) => number.parse().ok().map(KeystreamStart::Sequence),
            Some(("used", number)) => number.parse().ok().map(KeystreamStart::Used),
            _ => None,
        };
        start.ok_or_else(|| {
            self.error_at(word.place, "expected `search`, `seq:NUMBER` or `used:NUMBER`")
        })
    }

    fn parse_seven(&self, word: Word<'_>) -> Result<[u8; 7], KeyError> {
        let bytes = self.parse_hex(word, "of 7 bytes", |length| length == 7)?;
        bytes.try_into().map_err(|_| self.error_at(word.place, "expected hex of 7 bytes"))
    }

    fn parse_hex(
        &self,
        word: Word<'_>,
        expected: &str,
        fits: impl Fn(usize) -> bool,
    ) -> Result<Vec<u8>, KeyError> {
        let (pairs, odd) = word.text.as_bytes().as_chunks::<2>();
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let bytes: Option<Vec<u8>> = pairs
            .iter()
            .map(|[high, low]| u8::try_from(digit(*high)? * 16 + digit(*low)?).ok())
            .collect();
        let bytes = bytes.filter(|bytes| odd.is_empty() && fits(bytes.len()));
        bytes.ok_or_else(|| self.error_at(word.place, format!("expected hex {expected}")))
    }
}

fn shift(place: KeyPlace, by: usize) -> KeyPlace {
    match place {
        KeyPlace::Line { line, column } => {
            KeyPlace::Line { line, column: column.saturating_add(by) }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    fn complaint(text: &str) -> String {
        read_shard_keys("s.keys", text).err().expect("refused").to_string()
    }

    #[test]
    fn a_session_line_may_say_all_or_nothing() {
        let text = "# by hand\n\
            session rc4=00112233445566\n\
            session any rc4=00112233445566 # no server either\n\
            session gate y=0203 seed=A1a2a3a4a5a6a7 client=[::1]:40000 server=10.0.0.1:14617 \
            client-start=seq:4294967295 server-start=used:18446744073709551615 \
            rc4=ffeeddccbbaa99\n";
        let contents = read_shard_keys("s.keys", text).ok().unwrap();
        let [bare, any, full] = &contents.sessions[..] else { panic!("three sessions") };
        assert_eq!(bare, any);
        assert_eq!(
            *bare,
            SessionLine::new(SessionKey::new([0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66]))
        );
        assert_eq!(full.service, Some(KeyService::GateKeeper));
        assert_eq!(full.client.unwrap().to_string(), "[::1]:40000");
        assert_eq!(full.server.unwrap().to_string(), "10.0.0.1:14617");
        assert_eq!(full.y, Some(vec![2, 3]));
        assert_eq!(full.seed, Some([0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7]));
        assert_eq!(full.client_start, KeystreamStart::Sequence(u32::MAX));
        assert_eq!(full.server_start, KeystreamStart::Used(u64::MAX));
        assert!(contents.notes.is_empty());
    }

    #[test]
    fn every_mistake_has_its_place_and_what_was_expected() {
        for (text, expected) in [
            ("moulsniff-keys 2", "1:16: expected version 1 of this format"),
            ("moulsniff-keys", "1:1: expected version 1 of this format"),
            ("moulsniff-keys 1 entries=x", "1:18: expected `entries=` and a number"),
            ("\n  public auth", "2:3: expected `private`, `session` or a comment (`#`)"),
            ("session auth", "1:1: expected rc4= in this line: was it cut?"),
            (
                "session file rc4=00112233445566",
                "1:9: expected a server (gatekeeper, auth, game, csr, any) or one of client=",
            ),
            ("session auth key=00112233445566", "1:14: expected a server"),
            (
                "session rc4=00112233445566 rc4=00112233445566",
                "1:28: expected each value once in a line",
            ),
            ("session rc4=0011223344556", "1:13: expected hex of 7 bytes"),
            ("session rc4=0011223344556g", "1:13: expected hex of 7 bytes"),
            ("session y= rc4=00112233445566", "1:11: expected hex of 1 to 64 bytes"),
            (
                "session client=10.0.0.1 rc4=00112233445566",
                "1:16: expected address:port, IPv6 in brackets",
            ),
            (
                "session client-start=7 rc4=00112233445566",
                "1:22: expected `search`, `seq:NUMBER` or `used:NUMBER`",
            ),
            ("session client-start=seq:4294967296 rc4=00112233445566", "1:22: expected `search`"),
            ("private auth k=AAAA", "1:1: expected n= in this line"),
            ("private auth n=AAAA", "1:1: expected k= in this line"),
            ("private auth n=AAAA k=AAAA", "1:16: expected base-64 of 64 bytes, found 3 bytes"),
            ("private auth g=x n=AAAA k=AAAA", "1:20: expected base-64 of 64 bytes, found 3 bytes"),
        ] {
            let found = complaint(text);
            assert!(found.starts_with(&format!("s.keys:{expected}")), "{text}: {found}");
        }
    }

    #[test]
    fn a_promise_of_more_entries_is_noted() {
        let line = "session rc4=00112233445566\n";
        let notes = |text: String| read_shard_keys("s.keys", &text).ok().unwrap().notes;
        assert!(notes(format!("moulsniff-keys 1 entries=1\n{line}")).is_empty());
        let two = format!("moulsniff-keys 1 entries=1\n{line}");
        assert!(notes(format!("{two}{two}")).is_empty(), "two files put together");
        assert_eq!(notes(format!("moulsniff-keys 1 entries=2\n{line}")).len(), 1);
        assert_eq!(
            notes(line.trim_end().to_owned()),
            ["the last line has no end: was the file cut?"]
        );
    }

    #[test]
    fn lines_are_recognised() {
        assert!(
            is_line("moulsniff-keys 1") && is_line("private auth n=x") && is_line("session rc4=1")
        );
        assert!(!is_line("private matters") && !is_line("[crypt_keys]") && !is_line(""));
    }
}
