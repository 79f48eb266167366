//! Explains why a connection stays encrypted: the user gave no key for this kind of server, or gave
//! one that does not fit.

use super::keys::{KeyRing, KeyService};

/// A text names at most this many files or servers.
const NAMED: usize = 3;

/// Says in words why none of the keys opened a connection to `service`. Expects at least one key on
/// the ring.
pub(super) fn explain_wrong_key(keys: &KeyRing, service: Option<KeyService>) -> String {
    if keys.key_count() == 0 {
        return "encrypted, and the session keys that were given belong to other connections"
            .into();
    }
    let all = match keys.key_count() {
        1 => "the key that was given does not open it".to_string(),
        count => format!("none of the {count} keys that were given opens it"),
    };
    let Some(service) = service else { return format!("encrypted, and {all}") };
    let candidates: Vec<_> = keys.candidates(Some(service)).collect();
    let right: Vec<_> = candidates.iter().filter(|c| c.key.service() == Some(service)).collect();
    if let Some(files) = list_names(right.iter().map(|c| c.file.to_string())) {
        let those = if right.len() == 1 { "the one" } else { "those" };
        return format!(
            "encrypted, and {all}, not even {those} for {service} ({files}): this is another shard"
        );
    }
    if candidates.iter().any(|c| c.key.service().is_none()) {
        return format!("encrypted, and {all}");
    }
    let others =
        list_names(candidates.iter().filter_map(|c| c.key.service()).map(|s| s.to_string()));
    let others = others.unwrap_or_else(|| "other servers".into());
    format!(
        "encrypted, and no key for {service} was given: those that were given are for {others}, \
         and do not open it"
    )
}

/// Joins names, each once, as `a, b and c`. Empty if there are none.
fn list_names(names: impl Iterator<Item = String>) -> Option<String> {
    let mut different: Vec<String> = Vec::new();
    for name in names {
        if !different.contains(&name) {
            different.push(name);
        }
    }
    let more = different.len().saturating_sub(NAMED);
    different.truncate(NAMED);
    if more > 0 {
        different.push(format!("{more} more"));
    }
    let last = different.pop()?;
    Some(if different.is_empty() { last } else { format!("{} and {last}", different.join(", ")) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::super::keys::KeyFile;
    use super::*;

    fn ring(files: &[(&str, &[u8])]) -> KeyRing {
        let mut ring = KeyRing::default();
        files.iter().for_each(|(name, bytes)| ring.add(KeyFile::parse(name, bytes).unwrap()));
        ring
    }

    #[test]
    fn a_wrong_file_and_a_missing_one_give_different_errors() {
        let dirtsand: &[u8] = include_bytes!("../../../keys/dirtsand.ini");
        let moss: &[u8] = include_bytes!("../../../keys/moss_game_key.der");
        let says = |files: &[(&str, &[u8])], service| explain_wrong_key(&ring(files), service);
        assert_eq!(
            says(&[("dirtsand.ini", dirtsand)], Some(KeyService::Auth)),
            "encrypted, and none of the 3 keys that were given opens it, not even the one for \
             auth (dirtsand.ini): this is another shard"
        );
        assert_eq!(
            says(&[("game_key.der", moss)], Some(KeyService::Auth)),
            "encrypted, and no key for auth was given: those that were given are for game, and do \
             not open it"
        );
        assert_eq!(
            says(&[("game_key.der", moss)], None),
            "encrypted, and the key that was given does not open it"
        );
        assert_eq!(
            says(&[("s.keys", b"session rc4=00112233445566\n")], Some(KeyService::Auth)),
            "encrypted, and the session keys that were given belong to other connections"
        );
    }

    #[test]
    fn names_are_listed_once() {
        let list = |names: &[&str]| list_names(names.iter().map(ToString::to_string));
        assert_eq!(list(&[]), None);
        assert_eq!(list(&["a", "a", "b"]).unwrap(), "a and b");
        assert_eq!(list(&["a", "b", "c", "d", "e"]).unwrap(), "a, b, c and 2 more");
    }
}
