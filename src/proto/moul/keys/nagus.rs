//! NAGUS's configuration, in the syntax of Python's configparser: sections, options, and values
//! that continue on indented lines. Reads only the keys and skips everything else.

use super::error::KeyError;
use super::error::KeyPlace;
use super::ini::THREE;
use super::service::KeyService;
use super::text::{KeyFileContents, KeyPart, Pairs, lines, place_of};

/// Reads `key_g`, `key_n` and `key_a` of `[server.gatekeeper]`, `[server.auth]` and
/// `[server.game]`.
pub(super) fn read_nagus(file: &str, text: &str) -> Result<KeyFileContents, KeyError> {
    let mut pairs = Pairs::new(file);
    let mut encryption_off = false;
    let mut any_part = false;
    for_each_option(text, |option| {
        if option.section == "server" && option.name == "encryption" {
            encryption_off = option.value.trim() == "none";
        }
        let service = option.section.strip_prefix("server.").and_then(KeyService::from_word);
        let part = option.name.strip_prefix("key_").and_then(KeyPart::from_word);
        match (service, part) {
            (Some(service), Some(part)) => {
                any_part = true;
                pairs.put(service, part, option.value, option.place)
            }
            _ => Ok(()),
        }
    })?;
    let mut contents = pairs.finish(&THREE)?;
    contents.no_keys_wanted = !any_part;
    if encryption_off {
        contents.notes.push("encryption = none: this server talks in clear".into());
    }
    Ok(contents)
}

/// Whether a line opens one of NAGUS's server sections. A configuration without these sections may
/// still say that nothing is encrypted.
pub(super) fn is_section(line: &str) -> bool {
    let name = parse_section(line).and_then(|name| name.strip_prefix("server."));
    name.is_some_and(|name| name == "status" || KeyService::from_word(name).is_some())
}

/// Whether a line says how NAGUS's server encrypts.
pub(super) fn is_encryption(line: &str) -> bool {
    line.split_once('=').is_some_and(|(name, _)| name.trim().eq_ignore_ascii_case("encryption"))
}

struct OptionLine<'a> {
    section: &'a str,
    name: &'a str,
    value: &'a str,
    place: KeyPlace,
}

/// An option whose value may continue on the next lines.
struct OpenOption<'a> {
    name: String,
    value: String,
    indent: usize,
    place: KeyPlace,
    section: &'a str,
}

fn for_each_option(
    text: &str,
    mut take: impl FnMut(OptionLine<'_>) -> Result<(), KeyError>,
) -> Result<(), KeyError> {
    let mut current = "";
    let mut open: Option<OpenOption<'_>> = None;
    let mut close = |open: Option<OpenOption<'_>>| match open {
        Some(open) => {
            let OpenOption { name, value, place, section, .. } = open;
            take(OptionLine { section, name: &name, value: &value, place })
        }
        None => Ok(()),
    };
    for (at, line) in lines(text) {
        let bare = line.trim();
        let indent = line.len() - line.trim_start().len();
        if bare.starts_with('#') {
            continue;
        }
        if bare.is_empty() {
            close(open.take())?;
        } else if let Some(open) = open.as_mut().filter(|open| indent > open.indent) {
            open.value.push('\n');
            open.value.push_str(bare);
        } else if let Some(name) = parse_section(line) {
            close(open.take())?;
            current = name;
        } else {
            close(open.take())?;
            open = line.split_once('=').map(|(name, value)| OpenOption {
                name: name.trim().to_ascii_lowercase(),
                value: value.trim().to_owned(),
                indent,
                place: place_of(at, line, value.trim_start()),
                section: current,
            });
        }
    }
    close(open)
}

/// The name between the brackets of a section's head.
fn parse_section(line: &str) -> Option<&str> {
    let (name, _comment) = line.trim().strip_prefix('[')?.rsplit_once(']')?;
    Some(name.trim())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    fn options(text: &str) -> Vec<(String, String, String)> {
        let mut all = Vec::new();
        for_each_option(text, |option| {
            all.push((option.section.to_owned(), option.name.to_owned(), option.value.to_owned()));
            Ok(())
        })
        .unwrap();
        all
    }

    #[test]
    fn a_value_goes_on_while_lines_are_indented_deeper() {
        let text = "[a]\nconfig =\n\t{\n\t# remark\n\t\tkey_n = no option,\n\t}\nKey_N = x\n  \
                    y\n[b] # end\nz=1\n\n  w = 2\n";
        let expected = [
            ("a", "config", "\n{\nkey_n = no option,\n}"),
            ("a", "key_n", "x\ny"),
            ("b", "z", "1"),
            ("b", "w", "2"),
        ];
        let expected = expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()));
        assert_eq!(options(text), expected);
    }

    #[test]
    fn sections_with_keys_are_known() {
        assert!(is_section("[server.auth]"));
        assert!(is_section("[server.gatekeeper]\r"));
        assert!(
            !is_section("[server]") && is_section("[server.status]") && !is_section("server.auth")
        );
    }
}
