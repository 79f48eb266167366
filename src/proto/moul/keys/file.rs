//! A key file of any format. The format is recognised by the content, not by the file's name.

use super::error::{KeyError, KeyPlace};
use super::ini::{parse_client_line, parse_server_line, read_client_ini, read_dirtsand};
use super::moss::{self, Raw};
use super::moulars::{self, read_moulars};
use super::nagus::{self, read_nagus};
use super::own::{self, read_shard_keys};
use super::private::PrivateKey;
use super::session::SessionLine;
use super::text::{KeyFileContents, decode_file, lines};
use std::fmt;

/// The largest key file that is read, in bytes. A `shard.keys` of this size holds a hundred
/// thousand sessions.
pub const MAX_KEY_FILE: u64 = 16 << 20;

/// A format of key files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// DIRTSAND's `dirtsand.ini`.
    Dirtsand,
    /// What `dirtsand --generate-keys` prints.
    DirtsandGenerator,
    /// MOULArs's `moulars.toml`.
    Moulars,
    /// What MOULArs's key generator prints.
    MoularsGenerator,
    /// NAGUS's configuration.
    Nagus,
    /// MOSS's server key: DER, written by `make_cyan_dh -s`.
    MossDer,
    /// MOSS's file for Wireshark, written by `make_cyan_dh -w`.
    MossWireshark,
    /// What `make_cyan_dh -t` prints.
    MossText,
    /// MOSS's file for clients, written by `make_cyan_dh -c`: it opens nothing.
    MossPublic,
    /// The `server.ini` of H'uru clients: it opens nothing.
    ClientIni,
    /// moulsniff's own `shard.keys`.
    ShardKeys,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Dirtsand => "DIRTSAND configuration",
            Format::DirtsandGenerator => "output of DIRTSAND's key generator",
            Format::Moulars => "MOULArs configuration",
            Format::MoularsGenerator => "output of MOULArs's key generator",
            Format::Nagus => "NAGUS configuration",
            Format::MossDer => "MOSS server key (DER)",
            Format::MossWireshark => "MOSS key for Wireshark (make_cyan_dh -w)",
            Format::MossText => "output of make_cyan_dh -t",
            Format::MossPublic => "MOSS key for clients (make_cyan_dh -c)",
            Format::ClientIni => "client's server.ini",
            Format::ShardKeys => "moulsniff shard.keys",
        })
    }
}

/// A key file that opens something: at least one private key or session key.
#[derive(Clone, Debug)]
pub struct KeyFile {
    name: String,
    format: Format,
    keys: Vec<PrivateKey>,
    sessions: Vec<SessionLine>,
    notes: Vec<String>,
}

impl KeyFile {
    /// Reads a file's bytes. Errors quote `name`. If nothing else says which server a key is for,
    /// the last part of `name` may (`auth_key.der`).
    pub fn parse(name: &str, bytes: &[u8]) -> Result<KeyFile, KeyError> {
        let (format, contents) = read_any(name, bytes)?;
        match check_opens_something(name, format, &contents) {
            Some(error) => Err(error),
            None => {
                let KeyFileContents { keys, sessions, notes, .. } = contents;
                Ok(KeyFile { name: name.to_owned(), format, keys, sessions, notes })
            }
        }
    }

    /// The name it was read under.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What kind of file it is.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The private keys in it, in the file's order.
    pub fn keys(&self) -> &[PrivateKey] {
        &self.keys
    }

    /// The session keys in it, in the file's order.
    pub fn sessions(&self) -> &[SessionLine] {
        &self.sessions
    }

    /// Remarks for the user: halves without their other half, signs that the file was cut. Nothing
    /// secret.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    pub(super) fn into_parts(self) -> (String, Vec<PrivateKey>, Vec<SessionLine>) {
        (self.name, self.keys, self.sessions)
    }
}

/// Reads any format, including those whose files open nothing.
pub(super) fn read_any(name: &str, bytes: &[u8]) -> Result<(Format, KeyFileContents), KeyError> {
    let whole = |text: &str| KeyError::new(name, KeyPlace::Whole, text);
    if bytes.is_empty() {
        return Err(whole("the file is empty").of_another_kind());
    }
    for magic in ["whatdoyousee", "notthedroids", "BriceIsSmart"] {
        if bytes.starts_with(magic.as_bytes()) {
            let text = "an encrypted file of a client's; clients hold only public halves, a \
                        shard's private K is needed";
            return Err(whole(text).of_another_kind());
        }
    }
    match decode_file(bytes) {
        Some(text) => read_text(name, &text),
        None => read_binary(name, bytes),
    }
}

fn read_text(name: &str, text: &str) -> Result<(Format, KeyFileContents), KeyError> {
    let any = |test: fn(&str) -> bool| lines(text).any(|(_, line)| test(line));
    let printed_for_clients = any(|line| parse_client_line(line).is_some());
    let first = lines(text)
        .map(|(_, line)| line.trim())
        .find(|line| !line.is_empty() && !line.starts_with('#'));
    let (format, contents) = if first.is_some_and(own::is_line) {
        (Format::ShardKeys, read_shard_keys(name, text)?)
    } else if any(moulars::is_table) {
        if printed_for_clients || any(|line| line.trim_start().starts_with("---")) {
            (Format::MoularsGenerator, moulars::read_generator_output(name, text)?)
        } else {
            (Format::Moulars, read_moulars(name, text)?)
        }
    } else if any(|line| parse_server_line(line).is_some()) {
        let format = if printed_for_clients || any(|line| line.starts_with("---")) {
            Format::DirtsandGenerator
        } else {
            Format::Dirtsand
        };
        (format, read_dirtsand(name, text)?)
    } else if any(nagus::is_section) || any(nagus::is_encryption) {
        (Format::Nagus, read_nagus(name, text)?)
    } else if printed_for_clients {
        (Format::ClientIni, read_client_ini(name, text)?)
    } else if any(|line| line.starts_with("Private key:")) {
        (Format::MossText, moss::read_printed(name, text)?)
    } else {
        return Err(KeyError::new(name, KeyPlace::Whole, explain_refusal(text)).of_another_kind());
    };
    Ok((format, contents))
}

fn read_binary(name: &str, bytes: &[u8]) -> Result<(Format, KeyFileContents), KeyError> {
    let der = moss::is_der(bytes).then(|| moss::read_der(name, bytes));
    match der {
        Some(Ok(contents)) => Ok((Format::MossDer, contents)),
        der => match (moss::read_raw(name, bytes), der) {
            (Ok(Raw::Private(contents)), _) => Ok((Format::MossWireshark, contents)),
            (Ok(Raw::Public(contents)), _) => Ok((Format::MossPublic, contents)),
            (Err(_), Some(Err(error))) => Err(error),
            (Err(error), _) => Err(error.of_another_kind()),
        },
    }
}

/// The error text for a text that holds no keys of any known kind.
fn explain_refusal(text: &str) -> &'static str {
    if text.contains("-----BEGIN ") {
        "PEM is none of the key formats: MOSS's own DER file is needed"
    } else if text.contains("kDhNData") {
        "source code for clients holds only public halves: a shard's private key is needed"
    } else if text.contains("Key.Auth.") || text.contains("Key.Droid") {
        "a DIRTSAND configuration without keys: expected Key.Auth.N, Key.Auth.K and so on"
    } else if text.contains("Server.Auth.") || text.contains("Server.Gate.") {
        "a client's server.ini opens nothing, this one holds no keys at all: a shard's private K \
         is needed"
    } else {
        "not a key file: expected dirtsand.ini, moulars.toml, NAGUS's configuration, MOSS's DER or \
         -w file, or shard.keys"
    }
}

/// The error for a valid file that holds no key.
pub(super) fn check_opens_something(
    name: &str,
    format: Format,
    contents: &KeyFileContents,
) -> Option<KeyError> {
    if !contents.keys.is_empty() || !contents.sessions.is_empty() {
        return None;
    }
    let text = match format {
        Format::ClientIni => {
            "a client's server.ini holds only N and X, the public halves; a shard's private K is \
             needed (Key.Auth.K of dirtsand.ini)"
        }
        Format::MossPublic => {
            "make_cyan_dh -c wrote this for clients: it holds only the prime and the public key; \
             the file of -s or -w is needed"
        }
        Format::Dirtsand | Format::DirtsandGenerator => {
            "no whole key: expected Key.Auth.N and Key.Auth.K, or Game, or Gate"
        }
        Format::Moulars | Format::MoularsGenerator => {
            "no whole key: expected auth.n and auth.k in [crypt_keys], or game, or gate"
        }
        Format::Nagus if contents.no_keys_wanted => {
            "a NAGUS configuration without keys: a server that does not encrypt needs none, and \
             any other cannot be read with it"
        }
        Format::Nagus => {
            "no whole key: expected key_n and key_a in [server.auth], [server.game] or \
             [server.gatekeeper]"
        }
        _ => "no key in this file: expected a line `private` or `session`",
    };
    let error = KeyError::new(name, KeyPlace::Whole, text);
    // Half a key is an error. No key at all means that the server does not encrypt.
    let harmless = format == Format::Nagus && contents.public.is_empty() && contents.no_keys_wanted;
    Some(if harmless { error.harmless() } else { error })
}
