//! One name, one type: a reader who meets the name of a type need not ask which one it is.

use std::collections::BTreeMap;

use crate::layers::{program, sources};

#[test]
fn a_type_name_is_used_once() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut all = 0;
    for (path, text) in sources() {
        let path = path.display().to_string();
        for name in program(&text).lines().filter_map(declared) {
            all += 1;
            let at = places.entry(name.to_string()).or_default();
            // A type may be declared once for each platform or feature, in one file.
            if !at.contains(&path) {
                at.push(path.clone());
            }
        }
    }
    assert!(all > 500, "only {all} types were found");
    let doubled = places.iter().filter(|(_, at)| at.len() > 1);
    let wrong: Vec<String> =
        doubled.map(|(name, at)| format!("`{name}` is a type in {}", at.join(" and in "))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The type that a line declares. A trait's associated types, which are indented, have the trait's words.
fn declared(line: &str) -> Option<&str> {
    // Words such as `pub`, `pub(super)` and `pub(in`, `crate::table)` come first.
    let mut words = line.split(' ').skip_while(|word| word.starts_with("pub") || word.ends_with(')'));
    if !["struct", "enum", "trait", "type", "union"].contains(&words.next()?) {
        return None;
    }
    words.next()?.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}
