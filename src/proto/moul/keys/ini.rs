//! Files of single lines: DIRTSAND's `dirtsand.ini`, what its key generator prints, and the
//! `server.ini` of H'uru clients. It knows neither sections nor multi-line values.

use super::error::KeyError;
use super::service::KeyService;
use super::text::{KeyFileContents, KeyPart, Pairs, lines, place_of};

/// Services whose keys DIRTSAND and MOULArs have.
pub(super) const THREE: [KeyService; 3] =
    [KeyService::GateKeeper, KeyService::Auth, KeyService::Game];

/// Reads lines such as `Key.Auth.N = base64`. As in DIRTSAND, `#` starts a comment anywhere, and
/// unknown lines are skipped. The client's lines that the key generator prints are
/// checked against the keys.
pub(super) fn read_dirtsand(file: &str, text: &str) -> Result<KeyFileContents, KeyError> {
    let mut pairs = Pairs::new(file);
    for (at, line) in lines(text) {
        if let Some((service, part, value)) = parse_server_line(line) {
            let part = match part {
                KeyPart::N | KeyPart::K => part,
                KeyPart::X | KeyPart::G => continue,
            };
            pairs.put(service, part, value, place_of(at, line, value.trim_start()))?;
        } else if let Some((service, part, value)) = parse_client_line(line) {
            pairs.put_public(service, part, value);
        }
    }
    pairs.finish(&THREE)
}

/// Reads lines such as `Server.Auth.N "base64"`: public halves, which open nothing.
pub(super) fn read_client_ini(file: &str, text: &str) -> Result<KeyFileContents, KeyError> {
    let mut pairs = Pairs::new(file);
    for (at, line) in lines(text) {
        if let Some((service, part, value)) = parse_client_line(line)
            && part != KeyPart::G
        {
            pairs.put(service, part, value, place_of(at, line, value))?;
        }
    }
    pairs.finish(&[])
}

/// `Key.SERVICE.PART = VALUE`; the value begins behind the `=`.
pub(super) fn parse_server_line(line: &str) -> Option<(KeyService, KeyPart, &str)> {
    let (name, value) = strip_comment(line).split_once('=')?;
    let (service, part) = parse_dotted_name(name.trim(), "key")?;
    Some((service, part, value))
}

/// `Server.SERVICE.PART "VALUE"`.
pub(super) fn parse_client_line(line: &str) -> Option<(KeyService, KeyPart, &str)> {
    let line = strip_comment(line).trim();
    let (name, value) = line.split_once(|c: char| c.is_whitespace() || c == '=')?;
    let (service, part) = parse_dotted_name(name, "server")?;
    let value = value.trim_start_matches(|c: char| c.is_whitespace() || c == '=');
    Some((service, part, value))
}

fn strip_comment(line: &str) -> &str {
    line.split('#').next().unwrap_or(line)
}

fn parse_dotted_name(name: &str, first: &str) -> Option<(KeyService, KeyPart)> {
    let mut words = name.split('.');
    if !words.next()?.eq_ignore_ascii_case(first) {
        return None;
    }
    let service = KeyService::from_word(words.next()?)?;
    let part = KeyPart::from_word(words.next()?)?;
    words.next().is_none().then_some((service, part))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn lines_are_taken_apart() {
        assert_eq!(
            parse_server_line("Key.Auth.N = ab=="),
            Some((KeyService::Auth, KeyPart::N, " ab=="))
        );
        assert_eq!(
            parse_server_line("  Key.Gate.K=x # y"),
            Some((KeyService::GateKeeper, KeyPart::K, "x "))
        );
        assert_eq!(parse_server_line("#Key.Auth.N = ab"), None);
        assert_eq!(parse_server_line("Key.Droid = 3141"), None);
        assert_eq!(parse_server_line("Key.Auth.N.Z = 1"), None);
        assert_eq!(
            parse_client_line("Server.Game.X \"q==\""),
            Some((KeyService::Game, KeyPart::X, "\"q==\""))
        );
        assert_eq!(parse_client_line("Server.Port 14617"), None);
        assert_eq!(parse_client_line("Server.Gate.Host \"127.0.0.1\""), None);
    }
}
