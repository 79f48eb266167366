//! Hostile names, ten thousand of them: what is made of each is safe, and two never collide.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeSet;
use std::path::{Component, Path};

use super::file_name::FileNames;
use crate::captured::is_control;

/// Names put together of everything that ever made trouble.
fn hostile(count: usize) -> Vec<String> {
    const PARTS: [&str; 44] = [
        "..",
        ".",
        "/",
        "\\",
        "//",
        "\\\\?\\",
        "C:",
        "con",
        "CON",
        "nul",
        "COM1",
        "lpt9",
        "COM¹",
        "aux.txt",
        "prn ",
        "CONIN$",
        "\0",
        "\n",
        "\u{1b}[2J",
        "\u{202e}",
        "\u{200b}",
        "\u{feff}",
        "~",
        "-rf",
        " ",
        ". ",
        "...",
        ":stream",
        "|",
        "<>",
        "*?",
        "\"",
        "é",
        "𝄞",
        "index.csv",
        "listed.csv",
        ".moulsniff-1-0.part",
        "a",
        "A",
        "name.ext",
        "\u{2044}etc",
        "\u{ff0f}",
        "%2e%2e%2f",
        "$(id)",
    ];
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 20) as usize
    };
    let mut names = vec![
        String::new(),
        "x".repeat(70_000),
        format!("{}.txt", "é".repeat(300)),
        "a/".repeat(500),
    ];
    while names.len() < count {
        let length = next() % 7 + 1;
        names.push((0..length).map(|_| PARTS[next() % PARTS.len()]).collect());
    }
    names
}

#[test]
fn ten_thousand_hostile_names_stay_in_the_folder() {
    let outside = tempfile::tempdir().unwrap();
    let inside = outside.path().join("in");
    std::fs::create_dir(&inside).unwrap();
    let mut names = FileNames::new(&inside);
    names.reserve("index.csv");
    let mut seen = BTreeSet::new();
    for wire in hostile(10_000) {
        let path = names.take(&wire, "").unwrap();
        assert!(seen.insert(path.to_lowercase()), "{wire:?} and another one are {path}");
        assert!(path.len() < 1100, "{wire:?}: {path}");
        for part in path.split('/') {
            assert!(
                !part.is_empty() && part.len() <= 128 && !part.starts_with(['.', '-', '~', ' ']),
                "{wire:?}: {path}"
            );
            assert!(
                !part.ends_with(['.', ' ']) && !part.chars().any(is_control),
                "{wire:?}: {path}"
            );
            assert!(!part.contains(['\\', ':', '<', '>', '|', '?', '*', '"']), "{wire:?}: {path}");
            let stem = part.split('.').next().unwrap().trim_end().to_uppercase();
            assert!(
                !["CON", "PRN", "AUX", "NUL", "COM1", "LPT9", "COM¹", "CONIN$"]
                    .contains(&stem.as_str()),
                "{wire:?}: {path}"
            );
        }
        let disk = names.on_disk(&path);
        assert!(
            disk.strip_prefix(&inside)
                .unwrap()
                .components()
                .all(|part| matches!(part, Component::Normal(_)))
        );
        std::fs::write(&disk, "x").unwrap();
    }
    let around: Vec<String> = std::fs::read_dir(&outside)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(around, ["in"]);
    assert_eq!(count(&inside), 10_000);
}

fn count(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { count(&path) } else { 1 }).sum()
}

#[test]
fn what_is_there_stays() {
    let kept = tempfile::tempdir().unwrap();
    let inside = kept.path();
    std::fs::write(inside.join("a.txt"), "mine").unwrap();
    std::fs::write(inside.join("folder"), "mine").unwrap();
    let mut names = FileNames::new(inside);
    assert_eq!(names.take("a.txt", "").unwrap(), "a-2.txt");
    assert_eq!(names.take("folder/b", "").unwrap(), "folder-2/b");
    assert_eq!(names.take("folder/c", ".partial").unwrap(), "folder-3/c.partial");
    let again = names.take("dat\\small.age", "").unwrap();
    assert_eq!(again, "dat/small.age");
    names.give_back(&again);
    assert_eq!(names.take("dat\\small.age", "").unwrap(), "dat/small.age");
}

#[cfg(unix)]
#[test]
fn a_link_to_elsewhere_is_not_followed() {
    let (inside, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let inside = inside.path();
    std::os::unix::fs::symlink(elsewhere.path(), inside.join("dat")).unwrap();
    let mut names = FileNames::new(inside);
    assert_eq!(names.take("dat/x", "").unwrap(), "dat-2/x");
    assert_eq!(std::fs::read_dir(elsewhere).unwrap().count(), 0);
}
