//! MOULArs's `moulars.toml` and what its key generator prints. It looks at `[crypt_keys]` and
//! nothing else. A build without TOML recognises these files and says that it cannot read them.

use super::error::{KeyError, KeyPlace};
use super::ini::{THREE, parse_client_line};
use super::text::{KeyFileContents, Pairs, lines};
#[cfg(feature = "toml")]
use super::{service::KeyService, text::KeyPart};
#[cfg(feature = "toml")]
use crate::captured::line_and_column;
#[cfg(feature = "toml")]
use toml::de::{DeTable, DeValue};

/// Reads `auth.n`, `auth.k` and so on of `[crypt_keys]`, in any spelling that TOML allows.
pub(super) fn read_moulars(file: &str, text: &str) -> Result<KeyFileContents, KeyError> {
    let mut pairs = Pairs::new(file);
    read_table(file, text, text, 0, &mut pairs)?;
    pairs.finish(&THREE)
}

/// Reads the server's part of the key generator's output and checks the clients' part against it.
pub(super) fn read_generator_output(file: &str, text: &str) -> Result<KeyFileContents, KeyError> {
    let mut pairs = Pairs::new(file);
    let (start, end) = find_server_part(text);
    let part = text.get(start..end).unwrap_or_default();
    read_table(file, text, part, start, &mut pairs)?;
    for (_, line) in lines(text.get(end..).unwrap_or_default()) {
        if let Some((service, part, value)) = parse_client_line(line) {
            pairs.put_public(service, part, value);
        }
    }
    pairs.finish(&THREE)
}

/// Whether a line begins the table of keys.
pub(super) fn is_table(line: &str) -> bool {
    let line = line.trim_start().trim_start_matches('[').trim_start();
    line.starts_with("crypt_keys")
}

/// The text from the line `[crypt_keys]` up to the next line that is not empty, a comment or a
/// value.
fn find_server_part(text: &str) -> (usize, usize) {
    let mut start = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.trim();
        match start {
            None if is_table(line) => start = Some(at),
            Some(start) if bare.starts_with("--") || parse_client_line(line).is_some() => {
                return (start, at);
            }
            _ => {}
        }
        at += line.len();
    }
    (start.unwrap_or(at), at)
}

/// Refuses to read the table.
#[cfg(not(feature = "toml"))]
fn read_table(
    file: &str,
    _text: &str,
    _part: &str,
    _base: usize,
    _pairs: &mut Pairs<'_>,
) -> Result<(), KeyError> {
    let text = "a MOULArs configuration: this build reads no TOML (the feature `toml` is off)";
    Err(KeyError::new(file, KeyPlace::Whole, text))
}

/// Reads `part` of `text`, which begins at `base`.
#[cfg(feature = "toml")]
fn read_table(
    file: &str,
    text: &str,
    part: &str,
    base: usize,
    pairs: &mut Pairs<'_>,
) -> Result<(), KeyError> {
    // The parser's own messages may quote the file, keys included: only its positions are used.
    let bad = |error: toml::de::Error| {
        let at = error.span().map_or(0, |span| span.start);
        KeyError::new(
            file,
            find_place(text, base.saturating_add(at)),
            "expected TOML (the file may be cut off here)",
        )
    };
    let table = DeTable::parse(part).map_err(bad)?;
    let Some(keys) = table.get_ref().get("crypt_keys").and_then(|keys| keys.get_ref().as_table())
    else {
        return Ok(());
    };
    for (name, pair) in keys.iter() {
        let (Some(service), Some(pair)) =
            (KeyService::from_word(name.get_ref()), pair.get_ref().as_table())
        else {
            continue;
        };
        for (name, value) in pair.iter() {
            let Some(part) = KeyPart::from_word(name.get_ref()) else {
                continue;
            };
            let place = find_place(text, base.saturating_add(value.span().start));
            match value.get_ref() {
                DeValue::String(value) => pairs.put(service, part, value, place)?,
                _ => return Err(KeyError::new(file, place, "expected a string of base-64")),
            }
        }
    }
    Ok(())
}

/// The line and column of a byte.
#[cfg(feature = "toml")]
fn find_place(text: &str, at: usize) -> KeyPlace {
    let (line, column) = line_and_column(text, at);
    KeyPlace::Line { line, column }
}

#[cfg(all(test, feature = "toml"))]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn positions_are_lines_and_characters() {
        assert_eq!(find_place("ab\ncd", 4), KeyPlace::Line { line: 2, column: 2 });
        assert_eq!(find_place("é\né=", 6), KeyPlace::Line { line: 2, column: 3 });
        assert_eq!(find_place("é", 1), KeyPlace::Line { line: 1, column: 1 });
        assert_eq!(find_place("", 99), KeyPlace::Line { line: 1, column: 1 });
    }

    #[test]
    fn every_way_to_write_the_table_is_read() {
        let value = format!("{}==", "A".repeat(85) + "Q");
        let refused = |text: String| match read_moulars("m.toml", &text) {
            Err(error) => error.to_string(),
            Ok(contents) => contents.notes.join("; "),
        };
        // The modulus is too small: the error shows that it was read.
        for text in [
            format!("[crypt_keys]\nauth.n = \"{value}\"\nauth.k = '{value}'"),
            format!("[crypt_keys.auth]\nn = \"{value}\"\nk = '{value}'"),
            format!("crypt_keys = {{ auth = {{ n = \"{value}\", k = '{value}' }} }}"),
            format!("crypt_keys.auth.n = \"\"\"\n{value}\"\"\"\ncrypt_keys.auth.k = '{value}'"),
        ] {
            assert!(
                refused(text.clone()).contains("found 1 bit"),
                "{text}: {}",
                refused(text.clone())
            );
        }
    }

    #[test]
    fn errors_point_and_do_not_quote() {
        let error = read_moulars("m.toml", "[crypt_keys]\nauth.n = \"c2VjcmV0\nauth.k = 1\n")
            .err()
            .unwrap();
        assert!(error.to_string().starts_with("m.toml:2:"), "{error}");
        assert!(!error.to_string().contains("c2Vj"), "{error}");
        let error = read_moulars("m.toml", "[crypt_keys]\nauth.n = 15\n").err().unwrap();
        assert_eq!(error.to_string(), "m.toml:2:10: expected a string of base-64");
    }
}
