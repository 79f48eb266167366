//! MOUL by its structure: a connection of valid messages (the examples of the tables), encrypted,
//! then damaged. Bytes made at random hardly ever get past the key agreement; these do, and the
//! damage is in the messages.

use std::sync::OnceLock;

use moulsniff::proto::moul::MoulSettings;
use moulsniff::proto::moul::keys::{KeyFile, KeyRing, Rc4, SearchBounds};
use moulsniff::session::{Settings, Side, Transport};
use moulsniff::table::{ExampleOf, parse_hex};

use crate::sessions::Connection;
use crate::{byte, number, tables_of};

/// The session's key, known from a key file: nothing has to be derived.
const KEY: &str = "01020304050607";
const KEY_BYTES: [u8; 7] = [1, 2, 3, 4, 5, 6, 7];

/// The connection types that are encrypted: service, number, bytes of the connect packet's second
/// part.
const SERVICES: [(&str, u8, u32); 3] = [("auth", 10, 20), ("game", 11, 36), ("gatekeeper", 22, 20)];

/// The examples of a service, for each sender.
type Examples = [Vec<Vec<u8>>; 2];

/// A byte for the service, then steps: what to do, and its numbers.
pub fn moul_messages(mut data: &[u8]) {
    let which = usize::from(byte(&mut data)) % SERVICES.len();
    let settings = settings();
    let examples = &examples()[which];
    let mut connection = Connection::new("moul", Transport::Tcp, true, None, &settings);
    for (side, bytes) in handshake(which) {
        connection.data(side, &bytes);
    }
    let mut ciphers = [Rc4::new(&KEY_BYTES), Rc4::new(&KEY_BYTES)];
    while !data.is_empty() {
        let how = byte(&mut data);
        let side = if how & 1 == 0 { Side::Client } else { Side::Server };
        let cipher = &mut ciphers[side.index()];
        match how >> 1 & 7 {
            // Bytes that were sent and not captured.
            5 => {
                let length = number(&mut data) % 4096 + 1;
                cipher.skip(length as u64);
                connection.gap(side, length as u64);
            }
            // Bytes that were never sent: from here on the keystream is at another place.
            6 => connection.data(side, &[byte(&mut data), byte(&mut data)]),
            7 => connection.relieve(),
            _ => {
                let all = &examples[side.index()];
                let mut bytes = all[number(&mut data) % all.len()].clone();
                cipher.apply(&mut bytes);
                damage(how >> 4, &mut bytes, &mut data);
                let cut = number(&mut data) % (bytes.len() + 1);
                connection.data(side, &bytes[..cut]);
                connection.data(side, &bytes[cut..]);
            }
        }
    }
    connection.end();
}

/// Inverts bits of some bytes, at most seven; with 8, the end of the message is missing although
/// the next one follows.
fn damage(how: u8, bytes: &mut Vec<u8>, data: &mut &[u8]) {
    for _ in 0..how & 7 {
        let at = number(data) % bytes.len();
        bytes[at] ^= byte(data);
    }
    if how & 8 != 0 {
        bytes.truncate(number(data) % (bytes.len() + 1));
    }
}

fn settings() -> Settings {
    static FILE: OnceLock<KeyFile> = OnceLock::new();
    let line = || format!("moulsniff-keys 1\nsession any rc4={KEY}\n");
    let file = FILE.get_or_init(|| KeyFile::parse("session", line().as_bytes()).unwrap());
    let mut ring = KeyRing::default();
    ring.search = SearchBounds { positions: 1 << 12, searches: 4 };
    ring.add(file.clone());
    Settings::new(MoulSettings::with_keys(ring))
}

fn examples() -> &'static [Examples; 3] {
    static EXAMPLES: OnceLock<[Examples; 3]> = OnceLock::new();
    EXAMPLES.get_or_init(|| {
        let tables = tables_of("moul").get();
        SERVICES.map(|(name, ..)| {
            let service = tables.services().iter().find(|s| s.name == name).unwrap();
            [0, 1].map(|sender| {
                let own = |id| service.messages[sender].iter().any(|(_, own)| *own == id);
                let of = tables
                    .examples()
                    .iter()
                    .filter(|e| matches!(e.of, ExampleOf::Message(id) if own(id)));
                let all: Vec<Vec<u8>> =
                    of.map(|e| parse_hex(&tables.example_bytes(e)).unwrap()).collect();
                assert!(!all.is_empty(), "{name} has no examples");
                all
            })
        })
    })
}

/// The connect packet, the client's half of the key agreement, and the server's.
fn handshake(which: usize) -> [(Side, Vec<u8>); 3] {
    let (_, number, length) = SERVICES[which];
    let mut connect = vec![number, 31, 0];
    for field in [918_u32, 50, 1] {
        connect.extend(field.to_le_bytes());
    }
    // The product of all known shards.
    connect.extend([
        0x21, 0x98, 0x48, 0xea, 0x35, 0x6c, 0xd0, 0x4b, 0x9d, 0xae, 0xbb, 0x17, 0xc5, 0x85, 0xe6,
        0x80,
    ]);
    connect.extend(length.to_le_bytes());
    connect.resize(31 + length as usize, 0);
    let mut client = vec![0, 66];
    client.extend([0x5a; 64]);
    let server = vec![1, 9, 1, 2, 3, 4, 5, 6, 7];
    [(Side::Client, connect), (Side::Client, client), (Side::Server, server)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undamaged_messages_are_read() {
        for (which, examples) in examples().iter().enumerate() {
            let settings = settings();
            let mut connection = Connection::new("moul", Transport::Tcp, true, None, &settings);
            for (side, bytes) in handshake(which) {
                connection.data(side, &bytes);
            }
            let before = connection.messages();
            let mut bytes = examples[0].concat();
            Rc4::new(&KEY_BYTES).apply(&mut bytes);
            connection.data(Side::Client, &bytes);
            assert_eq!(connection.messages() - before, examples[0].len() as u64);
            connection.end();
        }
    }
}
