//! The interface of a protocol's secrets: it reports on a file, reads the secrets that a capture
//! carries, and writes them.

use super::EncodedMessage;
use crate::session::{Secret, Settings};

/// A protocol's secrets, which open its encrypted connections.
pub trait Secrets: Sync {
    /// The option of the protocol that takes files of them, without its hyphens.
    fn option(&self) -> &'static str;

    /// The type of the Decryption Secrets Blocks of a pcapng that carry them.
    fn block_type(&self) -> u32;

    /// Adds the secrets in a capture's block to the protocol's settings. `bytes` is the block's
    /// content. The method bounds how much it takes. Returns a warning in one line without anything
    /// secret, or `None` if it took everything.
    ///
    /// Called when the block is met, before the frames behind it are read. Secrets from a capture
    /// come after those that the user gave.
    fn carry(&self, bytes: &[u8], settings: &mut Settings) -> Option<String>;

    /// Writes a block's content: the secrets of single connections, in the order in which they were
    /// proved, and those long-term secrets of `settings` that open every connection, if settings
    /// are passed.
    fn block(&self, connections: &[Secret], long_term: Option<&Settings>) -> SecretsBlock;

    /// Whether a message, when it is written into a capture, begins an encryption for which the
    /// settings have no long-term secret.
    fn is_wanted(&self, message: &EncodedMessage, settings: &Settings) -> bool;

    /// Makes a long-term secret of random bytes and adds it to the settings. Returns the content of
    /// a file of it.
    fn make(&self, random: &[u8; 128], settings: &mut Settings) -> Option<Vec<u8>>;

    /// Reports on a file (or on a block's content) called `name`, without its secrets.
    fn report(&self, name: &str, bytes: &[u8]) -> Result<SecretsReport, SecretsRefusal>;
}

/// Why a file could not be reported on.
#[derive(Clone, Debug)]
pub struct SecretsRefusal {
    /// One line that names the file and quotes nothing of it.
    pub text: String,
    /// Whether the file is not a file of secrets at all, rather than a damaged one.
    pub another_kind: bool,
}

/// The content of a Decryption Secrets Block.
pub struct SecretsBlock {
    /// What the block holds.
    pub bytes: Vec<u8>,
    /// How many long-term secrets are in it.
    pub long_term: usize,
}

/// What a file of secrets holds, without the secrets.
#[derive(Clone, Debug, Default)]
pub struct SecretsReport {
    /// The file's format, in a few words.
    pub format: String,
    /// The report for people: a line for the file, and indented lines for what is in it.
    pub text: String,
    /// Its entries, in the file's order.
    pub entries: Vec<SecretsEntry>,
    /// What a user should know: halves without their other half, signs that the file was cut.
    pub notes: Vec<String>,
    /// Why it opens nothing, if so.
    pub problem: Option<String>,
}

/// One entry of a file of secrets.
#[derive(Clone, Debug, Default)]
pub struct SecretsEntry {
    /// What it is: `private`, `public`, `session`.
    pub kind: &'static str,
    /// Facts about it, by name.
    pub facts: Vec<Fact>,
}

/// A fact about an entry.
#[derive(Clone, Debug)]
pub struct Fact {
    /// Its name, in snake_case.
    pub name: &'static str,
    /// Its value.
    pub value: FactValue,
}

/// The value of a [`Fact`].
#[derive(Clone, Debug)]
pub enum FactValue {
    /// A text.
    Text(String),
    /// A number.
    Number(u64),
    /// Yes or no.
    Flag(bool),
}
