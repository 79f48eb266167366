//! Key files of MOUL shards, the derivation of session keys, and the cipher.
//!
//! A shard's private key, a client's `y` and the server's seed give the RC4 key of one connection;
//! this room reads the private keys out of the files shard admins have, holds them in a
//! [`KeyRing`], and does that sum. It knows nothing of captures, tables or messages: bytes come in,
//! keys and plain bytes go out, and whether a key was the right one is for the caller to prove.
//!
//! Secrets stay inside: no type here that holds one shows it through `Debug`, `Display` or an
//! error. The formats are described in `docs/keys.md`.

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

pub use check::{KeyReport, PublicReport, Report, SessionReport};
pub use derive::{Deriver, SessionKey, session_key};
pub use error::{KeyError, Place};
pub use file::{Format, KeyFile, MAX_KEY_FILE};
pub use private::{PrivateKey, PublicHalf};
pub use rc4::Rc4;
pub use ring::{Candidate, CarriedBounds, KeyRing, SearchBounds, SessionCandidate};
pub use service::Service;
pub use session::{KeystreamStart, SessionHint, SessionLine};
pub use write::{session_text, shard_keys};
