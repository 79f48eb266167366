//! Key files of MOUL shards, the derivation of session keys, and the cipher.
//!
//! A shard's private key, a client's `y` and the server's seed give the RC4 key of one connection.
//! This module reads private keys from the files that shard admins have, holds them in a
//! [`KeyRing`], and derives session keys. It knows nothing of captures, tables or messages. Its
//! caller has to prove that a key is the right one, by the messages that it decrypts.
//!
//! No type here that holds a secret shows it through `Debug`, `Display` or an
//! error. The formats are described in `docs/keys.md`.

mod budget;
mod check;
mod derive;
mod error;
mod file;
mod ini;
mod moss;
mod moulars;
mod nagus;
mod own;
mod prime;
mod private;
mod rc4;
mod ring;
mod service;
mod session;
mod text;
mod write;

pub use budget::{Budget, CarriedWork, SEARCH_FAILED, SEARCH_FOUND};
pub use check::{KeyReport, PublicReport, Report, SessionReport};
pub use derive::{SessionKey, derive_session_key};
pub use error::{KeyError, KeyPlace};
pub use file::{Format, KeyFile, MAX_KEY_FILE};
pub use private::{PrivateKey, PublicHalf};
pub use rc4::Rc4;
pub use ring::{CarriedBounds, KeyCandidate, KeyRing, SearchBounds, SessionCandidate};
pub use service::KeyService;
pub use session::{KeystreamStart, SessionHint, SessionLine};
pub use write::{write_session_line, write_shard_keys};
