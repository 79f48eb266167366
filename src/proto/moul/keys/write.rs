//! Writes `shard.keys`, the text that `own` reads. Here, and only here, secrets are turned into
//! text: the caller does so because the user asked for a file that holds them.

use super::own::HEADER;
use super::private::PrivateKey;
use super::service::KeyService;
use super::session::{KeystreamStart, SessionLine, Y_KEPT};
use crate::digits::hex;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use num_bigint::BigUint;
use std::fmt::Write;

/// A whole `shard.keys`: a header, the private keys, and the lines of sessions that
/// [`write_session_line`] made. A comment before each group says what its keys open.
pub fn write_shard_keys(keys: &[PrivateKey], sessions: &[impl AsRef<str>]) -> String {
    let mut text = format!("{HEADER} 1 entries={}\n", keys.len() + sessions.len());
    if !keys.is_empty() {
        text.push_str(
            "\n# SECRET: a shard's private keys. They open every session with this shard, past \
             and future.\n",
        );
        keys.iter().for_each(|key| push_private_line(key, &mut text));
    }
    if !sessions.is_empty() {
        text.push_str(
            "\n# Keys of single sessions. Each opens its own session and nothing else.\n",
        );
    }
    for session in sessions {
        text.push_str(session.as_ref());
        text.push('\n');
    }
    text
}

/// Appends the line of a private key. It opens every session with its server.
fn push_private_line(key: &PrivateKey, text: &mut String) {
    text.push_str("private ");
    text.push_str(key.service().map_or("any", KeyService::name));
    if let Some(generator) = key.generator() {
        push_field(text, "g", format_args!("{generator}"));
    }
    push_field(text, "n", format_args!("{}", encode_base64(key.modulus())));
    push_field(text, "k", format_args!("{}", encode_base64(key.exponent())));
    text.push('\n');
}

/// The line of a session's key, without a line feed. The key comes last, so a truncated line has no
/// key.
pub fn write_session_line(session: &SessionLine) -> String {
    let mut text = format!("session {}", session.service.map_or("any", KeyService::name));
    if let Some(client) = session.client {
        push_field(&mut text, "client", format_args!("{client}"));
    }
    if let Some(server) = session.server {
        push_field(&mut text, "server", format_args!("{server}"));
    }
    if let Some(y) = session.y.as_deref().filter(|y| !y.is_empty()) {
        push_field(&mut text, "y", format_args!("{}", hex(y.get(..Y_KEPT).unwrap_or(y))));
    }
    if let Some(seed) = session.seed {
        push_field(&mut text, "seed", format_args!("{}", hex(&seed)));
    }
    for (name, start) in
        [("client-start", session.client_start), ("server-start", session.server_start)]
    {
        match start {
            KeystreamStart::Search => {}
            KeystreamStart::Sequence(number) => {
                push_field(&mut text, name, format_args!("seq:{number}"))
            }
            KeystreamStart::Used(count) => {
                push_field(&mut text, name, format_args!("used:{count}"))
            }
        }
    }
    push_field(&mut text, "rc4", format_args!("{}", hex(session.key.as_bytes())));
    text
}

fn push_field(text: &mut String, name: &str, value: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = write!(text, " {name}={value}");
}

/// 64 bytes, big-endian, as the servers' own configuration files have it.
fn encode_base64(number: &BigUint) -> String {
    let mut bytes = number.to_bytes_le();
    bytes.resize(bytes.len().max(64), 0);
    bytes.reverse();
    STANDARD.encode(bytes)
}
