//! The state descriptors that are known, by name and version.
//!
//! They come from files that the user gives and from files that the capture contains. Nothing is
//! read from disk here: the caller passes a file's bytes to [`Store::add_file`].

use super::decrypt::{CLIENT_KEY, decrypt_file, find_cipher};
use super::descriptor::{Descriptor, NestedType};
use super::parse::{Parsed, SdlError, parse};
use crate::table::Evaluator;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

/// The states of the game's engine: animations, avatars, physics. Every client of every shard has
/// them, so their records can be read without any file.
const ENGINE: &[u8] = include_bytes!("engine.sdl");
/// The most descriptors kept. A whole game's files hold a few hundred.
const MAX_DESCRIPTORS: usize = 16_384;
/// The most variables of all descriptors together. The same files hold several thousand.
const MAX_VARIABLES: usize = 1 << 18;
/// The most bytes of one file. The largest real one has 60,000.
pub const MAX_FILE: usize = 4 << 20;
/// A text lists at most this many versions of a descriptor.
const MAX_LISTED: usize = 8;
/// The most files that wait for a key.
const MAX_ENCRYPTED: usize = 1024;

/// The result of [`Store::add_file`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Added {
    /// How many descriptors the file gave.
    pub descriptors: usize,
    /// Name and version of descriptors that were already known with another layout. The new layout
    /// replaces the old one.
    pub replaced: Vec<(Arc<str>, u32)>,
    /// The mistake that ended the reading early. Descriptors before it are kept.
    pub error: Option<SdlError>,
}

/// State descriptors by name, in any case, and version.
#[derive(Clone, Debug, Default)]
pub struct Store {
    by_name: HashMap<String, BTreeMap<u32, Arc<Descriptor>>>,
    count: usize,
    variables: usize,
    /// Encrypted files whose key has not come yet, with their names.
    encrypted: Vec<(String, Vec<u8>)>,
}

impl Store {
    /// A store that only knows the states of the engine.
    pub fn new() -> Self {
        Self::default()
    }

    /// The store that an evaluator's types with code use. Creates it if there is none yet.
    pub fn of(evaluator: &mut Evaluator) -> Option<&mut Store> {
        let context = evaluator.context.get_or_insert_with(|| Box::new(Store::new()));
        context.downcast_mut()
    }

    /// How many descriptors came from files.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether no descriptor came from a file.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a descriptor file. An encrypted one is opened with `key`, the 4 words of an
    /// AcctLoginReply, or else with the key that every client has. Only errors use `name`.
    pub fn add_file(&mut self, name: &str, bytes: &[u8], key: Option<[u32; 4]>) -> Added {
        let parsed = match decrypt_text(name, bytes, key) {
            Ok(text) => parse(name, &text),
            Err(error) => Parsed { descriptors: Vec::new(), error: Some(error) },
        };
        let mut added = Added { error: parsed.error, ..Added::default() };
        for descriptor in parsed.descriptors {
            match self.add(descriptor) {
                Ok(replaced) => {
                    added.descriptors = added.descriptors.saturating_add(1);
                    added.replaced.extend(replaced);
                }
                Err(full) => {
                    added.error.get_or_insert(file_error(name, full));
                    break;
                }
            }
        }
        added
    }

    /// Adds a descriptor file before any traffic. If it is encrypted and the key that every client
    /// has does not open it, the file waits for the key of a login.
    pub fn keep_file(&mut self, name: &str, bytes: &[u8]) -> Added {
        if find_cipher(bytes).is_none()
            || is_opened_by(name, bytes, CLIENT_KEY)
            || decrypt_file(CLIENT_KEY, bytes).is_err()
        {
            return self.add_file(name, bytes, None);
        }
        if self.encrypted.len() < MAX_ENCRYPTED {
            self.encrypted.push((name.to_owned(), bytes.to_owned()));
        }
        Added::default()
    }

    /// Opens the files that wait for a key with the 4 words of an AcctLoginReply. Returns the name
    /// of each file that this key opens, with the result of reading it.
    pub fn open_with(&mut self, key: [u32; 4]) -> Vec<(String, Added)> {
        let waiting = std::mem::take(&mut self.encrypted);
        let (fit, others) =
            waiting.into_iter().partition(|(name, bytes)| is_opened_by(name, bytes, key));
        self.encrypted = others;
        let add = |(name, bytes): (String, Vec<u8>)| {
            let added = self.add_file(&name, &bytes, Some(key));
            (name, added)
        };
        Vec::into_iter(fit).map(add).collect()
    }

    /// The names of the files that wait for a key.
    pub fn encrypted(&self) -> impl Iterator<Item = &str> {
        self.encrypted.iter().map(|(name, _)| name.as_str())
    }

    fn add(&mut self, descriptor: Descriptor) -> Result<Option<(Arc<str>, u32)>, String> {
        let variables = self.variables.saturating_add(descriptor.variables().len());
        if variables > MAX_VARIABLES {
            return Err(format!("more than {MAX_VARIABLES} variables"));
        }
        let versions = self.by_name.entry(descriptor.name.to_ascii_lowercase()).or_default();
        let name = Arc::clone(&descriptor.name);
        let version = descriptor.version;
        match versions.get_mut(&version) {
            Some(known) => {
                let differs = known.variables() != descriptor.variables();
                self.variables = variables.saturating_sub(known.variables().len());
                *known = Arc::new(descriptor);
                Ok(differs.then_some((name, version)))
            }
            None if self.count >= MAX_DESCRIPTORS => {
                Err(format!("more than {MAX_DESCRIPTORS} descriptors"))
            }
            None => {
                versions.insert(version, Arc::new(descriptor));
                self.variables = variables;
                self.count = self.count.saturating_add(1);
                Ok(None)
            }
        }
    }

    /// The descriptor of that name and version: from a file, or else from the engine.
    pub fn find(&self, name: &str, version: u32) -> Option<&Arc<Descriptor>> {
        let of = |store: &'_ Self| {
            store.versions(name).is_some_and(|versions| versions.contains_key(&version))
        };
        let store = if of(self) { self } else { Self::engine() };
        store.versions(name)?.get(&version)
    }

    /// Says which versions of a descriptor are known, as the end of a sentence: `, but 9 and 10
    /// are`. Empty if there is none.
    pub(super) fn versions_text(&self, name: &str) -> String {
        let stores = [self, Self::engine()];
        let versions = stores.into_iter().filter_map(|store| store.versions(name));
        let versions: BTreeSet<u32> = versions.flat_map(BTreeMap::keys).copied().collect();
        let older = versions.len().saturating_sub(MAX_LISTED);
        let mut listed: Vec<String> =
            versions.iter().skip(older).map(ToString::to_string).collect();
        if older > 0 {
            listed.insert(0, format!("{older} older ones"));
        }
        match listed.split_last() {
            None => String::new(),
            Some((last, [])) => format!(", but {last} is"),
            Some((last, before)) => format!(", but {} and {last} are", before.join(", ")),
        }
    }

    /// The newest known version of the descriptor of that name.
    pub fn newest(&self, name: &str) -> Option<&Arc<Descriptor>> {
        let newest = |store: &'_ Self| {
            store.versions(name).and_then(|versions| versions.keys().next_back().copied())
        };
        self.find(name, newest(self).max(newest(Self::engine()))?)
    }

    /// The descriptor of a nested variable's records. As in clients, this is the newest version
    /// before the variable in its own file. With `newest`, as in DIRTSAND, it is the newest of all.
    /// If the file itself has no version, both are the newest of all.
    pub fn nested(&self, nested: &NestedType, newest: bool) -> Option<&Arc<Descriptor>> {
        match nested.seen {
            Some(version) if !newest => self.find(&nested.name, version),
            _ => self.newest(&nested.name),
        }
    }

    /// The descriptors that need no file.
    pub(super) fn engine() -> &'static Store {
        static STORE: OnceLock<Store> = OnceLock::new();
        STORE.get_or_init(|| {
            let mut store = Store::new();
            // A test holds that the text has no mistake.
            store.add_file("engine.sdl", ENGINE, None);
            store
        })
    }

    fn versions(&self, name: &str) -> Option<&BTreeMap<u32, Arc<Descriptor>>> {
        match self.by_name.get(name) {
            Some(versions) => Some(versions),
            None => with_lower_case(name, |lower| self.by_name.get(lower)),
        }
    }
}

/// Calls `to` with a name in lower case. Names of usual length need no allocation.
fn with_lower_case<T>(name: &str, to: impl FnOnce(&str) -> T) -> T {
    let mut room = [0; 64];
    match room.get_mut(..name.len()) {
        Some(lower) => {
            lower.copy_from_slice(name.as_bytes());
            lower.make_ascii_lowercase();
            to(std::str::from_utf8(lower).unwrap_or(name))
        }
        None => to(&name.to_ascii_lowercase()),
    }
}

/// Whether an encrypted file becomes descriptors with a key.
fn is_opened_by(name: &str, bytes: &[u8], key: [u32; 4]) -> bool {
    let Ok(Some(decrypted)) = decrypt_file(key, bytes) else { return false };
    let parsed = decode_text(&decrypted).map(|text| parse(name, &text));
    parsed.is_some_and(|parsed| parsed.error.is_none() || !parsed.descriptors.is_empty())
}

/// The text of a descriptor file, decrypted if necessary. Bytes that no descriptor file can contain
/// are an error.
fn decrypt_text(name: &str, bytes: &[u8], key: Option<[u32; 4]>) -> Result<String, SdlError> {
    if bytes.len() > MAX_FILE {
        return Err(file_error(
            name,
            format!("{} bytes, more than any descriptor file has", bytes.len()),
        ));
    }
    if find_cipher(bytes).is_none() {
        return decode_text(bytes).ok_or_else(|| file_error(name, "not a text".to_owned()));
    }
    for key in key.into_iter().chain([CLIENT_KEY]) {
        match decrypt_file(key, bytes) {
            Ok(Some(decrypted)) => {
                if let Some(text) = decode_text(&decrypted) {
                    return Ok(text);
                }
            }
            Ok(None) => {}
            Err(error) => return Err(file_error(name, error.to_string())),
        }
    }
    Err(file_error(name, "encrypted with a key that is not known".to_owned()))
}

/// Bytes as text in UTF-8, or else Latin-1: comments in real files use both. `None` if there are
/// control characters, so that it cannot be text.
fn decode_text(bytes: &[u8]) -> Option<String> {
    let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    if bytes.iter().any(|byte| {
        *byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0b | 0x0c | 0x08 | 0x1a)
    }) {
        return None;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text.to_owned()),
        Err(_) => Some(bytes.iter().map(|byte| char::from(*byte)).collect()),
    }
}

fn file_error(name: &str, text: String) -> SdlError {
    SdlError { file: name.to_owned(), line: 0, column: 0, text }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    fn store(text: &str) -> Store {
        let mut store = Store::new();
        assert_eq!(store.add_file("a.sdl", text.as_bytes(), None).error, None);
        store
    }

    #[test]
    fn descriptors_are_found_by_name_in_any_case_and_by_version() {
        let store =
            store("STATEDESC City { VERSION 1 } STATEDESC City { VERSION 43 VAR INT a[1] }");
        assert_eq!(store.len(), 2);
        assert_eq!(store.find("city", 43).unwrap().variables().len(), 1);
        assert_eq!(store.find("CITY", 1).unwrap().variables().len(), 0);
        assert_eq!(store.find("City", 2), None);
        assert_eq!(store.newest("cITy").unwrap().version, 43);
        assert_eq!(store.newest("town"), None);
    }

    #[test]
    fn the_last_of_two_counts_and_a_difference_is_told() {
        let mut store = store("STATEDESC a { VERSION 1 VAR INT x[1] }");
        let same = store.add_file("b.sdl", b"STATEDESC a { VERSION 1 VAR INT x[1] }", None);
        assert_eq!((same.descriptors, same.replaced), (1, vec![]));
        let other = store.add_file("c.sdl", b"STATEDESC A { VERSION 1 VAR BYTE x[1] }", None);
        assert_eq!(other.replaced, vec![(Arc::from("A"), 1)]);
        assert_eq!(store.len(), 1);
    }

    #[test]
    fn a_mistake_keeps_what_stands_before_it() {
        let mut store = Store::new();
        let added =
            store.add_file("a.sdl", b"STATEDESC a { VERSION 1 }\nSTATEDESC b { VERSION x }", None);
        assert_eq!(added.descriptors, 1);
        assert_eq!(
            added.error.unwrap().to_string(),
            "a.sdl:2:23: expected the version, a number from 0, found `x`"
        );
    }

    #[test]
    fn a_nested_record_has_the_version_its_file_had_or_the_newest() {
        let store = store(
            "STATEDESC in { VERSION 1 } STATEDESC out { VERSION 1 VAR $IN a[1] VAR $other b[1] } \
             STATEDESC in { VERSION 2 }",
        );
        let out = store.find("out", 1).unwrap();
        let (_, known) = out.nested(0).unwrap();
        assert_eq!(store.nested(known, false).unwrap().version, 1);
        assert_eq!(store.nested(known, true).unwrap().version, 2);
        let (_, other) = out.nested(1).unwrap();
        assert_eq!(store.nested(other, false), None);
    }

    #[test]
    fn the_known_versions_are_listed() {
        let mut store = store("STATEDESC a { VERSION 3 } STATEDESC a { VERSION 10 }");
        assert_eq!(store.versions_text("A"), ", but 3 and 10 are");
        assert_eq!(store.versions_text("b"), "");
        store.add_file("b.sdl", b"STATEDESC Physical { VERSION 7 }", None);
        assert_eq!(store.versions_text("physical"), ", but 2 and 7 are");
        assert_eq!(store.versions_text("Layer"), ", but 6 is");
        let many: String = (1..=12).map(|n| format!("STATEDESC c {{ VERSION {n} }} ")).collect();
        store.add_file("c.sdl", many.as_bytes(), None);
        assert_eq!(
            store.versions_text("c"),
            ", but 4 older ones, 5, 6, 7, 8, 9, 10, 11 and 12 are"
        );
    }

    #[test]
    fn the_engine_s_states_are_known_until_a_file_says_otherwise() {
        let mut store = Store::new();
        assert!(store.is_empty());
        assert_eq!(store.find("Physical", 2).unwrap().simple_count(), 5);
        store.add_file(
            "a.sdl",
            b"STATEDESC physical { VERSION 2 } STATEDESC physical { VERSION 1 }",
            None,
        );
        assert_eq!(store.find("physical", 2).unwrap().simple_count(), 0);
        assert_eq!(store.newest("physical").unwrap().simple_count(), 0);
        store.add_file("b.sdl", b"STATEDESC Layer { VERSION 5 }", None);
        assert_eq!(store.newest("layer").unwrap().version, 6);
    }

    #[test]
    fn the_engine_s_descriptors_have_no_mistake_and_name_none_that_is_missing() {
        let mut store = Store::new();
        let added = store.add_file("engine.sdl", ENGINE, None);
        assert_eq!((added.error, added.replaced), (None, vec![]));
        assert!(added.descriptors > 0);
        for descriptor in store.by_name.values().flat_map(BTreeMap::values) {
            for place in 0..descriptor.nested_count() {
                let (_, nested) = descriptor.nested(place).unwrap();
                assert!(nested.seen.is_some(), "{} comes after its use", nested.name);
            }
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        let mut store = Store::new();
        let added = store.add_file("x", &[1, 2, 3], None);
        assert_eq!(added.error.unwrap().to_string(), "x: not a text");
        let mut wrong_key = b"notthedroids\x40\0\0\0".to_vec();
        wrong_key.extend((0..64).map(|byte: u8| byte.wrapping_mul(37)));
        let added = store.add_file("x", &wrong_key, Some([1, 2, 3, 4]));
        assert_eq!(added.error.unwrap().to_string(), "x: encrypted with a key that is not known");
        assert!(store.is_empty());
    }
}
