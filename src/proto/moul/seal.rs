//! Encrypts the messages of a connection that is written into a capture: with the key that its
//! handshake gives under a private key, or in clear where there is none. The inverse of `unlock`.

use super::keys::{KeyService, PrivateKey, Rc4, derive_session_key};
use super::settings::MoulSettings;
use crate::proto::{EncodedMessage, Seal};
use crate::session::{Settings, Side};

/// Bytes before a handshake packet's content: its number and its length.
const HEADER: usize = 2;

/// One connection.
pub(super) struct MoulSeal {
    service: Option<KeyService>,
    key: Option<PrivateKey>,
    y: Vec<u8>,
    ciphers: Option<[Rc4; 2]>,
}

impl MoulSeal {
    pub(super) fn new(service: &str) -> MoulSeal {
        let service = KeyService::from_word(service);
        MoulSeal { service, key: None, y: Vec::new(), ciphers: None }
    }
}

/// Whether a message is the client's half of a handshake that gives a key. In clear it is empty.
pub(super) fn begins_encryption(message: &EncodedMessage) -> bool {
    message.name == "Cli2Srv_Connect" && message.bytes.len() > HEADER
}

impl Seal for MoulSeal {
    fn seal(
        &mut self,
        settings: &Settings,
        side: Side,
        name: &str,
        mut bytes: Vec<u8>,
    ) -> Result<Vec<u8>, String> {
        if let Some(cipher) = self
            .ciphers
            .as_mut()
            .and_then(|ciphers| ciphers.get_mut(usize::from(side == Side::Server)))
        {
            cipher.apply(&mut bytes);
            return Ok(bytes);
        }
        if name == "Cli2Srv_Connect" {
            let first = MoulSettings::of(settings).keys.candidates(self.service).next();
            self.key = first.map(|candidate| candidate.key.clone());
        }
        let content = bytes.get(HEADER..).unwrap_or(&[]);
        match (name, &self.key) {
            // Without a key, both agree on no encryption: the packets are empty.
            ("Cli2Srv_Connect" | "Srv2Cli_Encrypt", None) => {
                let number = bytes.first().copied().unwrap_or(0);
                Ok(vec![number, HEADER as u8])
            }
            ("Cli2Srv_Connect", Some(_)) => {
                self.y = content.to_vec();
                Ok(bytes)
            }
            ("Srv2Cli_Encrypt", Some(private)) => {
                let seed = <[u8; 7]>::try_from(content);
                let key = seed.ok().and_then(|seed| derive_session_key(private, &self.y, &seed));
                match key {
                    Some(key) => self.ciphers = Some([key.cipher(), key.cipher()]),
                    None if self.y.is_empty() && content.is_empty() => {}
                    None => {
                        return Err(
                            "the handshake gives no key: y has 1 to 64 bytes, and the seed 7"
                                .into(),
                        );
                    }
                }
                Ok(bytes)
            }
            _ => Ok(bytes),
        }
    }
}
