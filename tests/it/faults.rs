//! Full disks and signals at any moment, with every command that writes: the old file is as it was, or the new one is complete; no half file has the
//! final name, and nothing else is left behind, except after `kill -9`.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{file, random};

/// A file that was there before.
const OLD: &[u8] = b"old";

/// A command that writes.
struct Way {
    /// What is typed; `IN` is a capture with the keys that open it, and `OUT` a folder of its own.
    words: &'static [&'static str],
    /// The file in that folder that is there before.
    target: &'static str,
    /// Whether that file is replaced.
    replaces: bool,
    /// After a signal: whether a file (its name, its content, the content after a whole run) that differs from the one of a whole run is complete all
    /// the same, and tells what was collected until then.
    fits: fn(&str, &[u8], &[u8]) -> bool,
}

const WAYS: [Way; 11] = [
    Way { words: &["keys", "inject", "IN", "-o", "OUT/a"], target: "a", replaces: true, fits: never },
    Way {
        words: &["keys", "strip", "captures/moul/full_dirtsand.pcapng", "-o", "OUT/a"],
        target: "a",
        replaces: true,
        fits: never,
    },
    Way { words: &["report", "IN", "-o", "OUT/a"], target: "a", replaces: true, fits: page },
    Way {
        words: &["split", "captures/moul/full_dirtsand.pcapng", "--into", "3", "-o", "OUT"],
        target: "part-00.pcapng",
        replaces: true,
        fits: never,
    },
    Way { words: &["follow", "--all", "IN", "-o", "OUT"], target: "tcp-00002-server.txt", replaces: true, fits: never },
    Way { words: &["export", "vault", "IN", "-o", "OUT/a.json"], target: "a.json", replaces: true, fits: json },
    Way { words: &["export", "vault", "IN", "-o", "OUT/a.dot"], target: "a.dot", replaces: true, fits: dot },
    Way { words: &["report", "IN", "--redact", "-o", "OUT/a"], target: "a", replaces: true, fits: page },
    Way { words: &["export", "messages", "IN", "-o", "OUT/a"], target: "a", replaces: true, fits: capture },
    Way { words: &["export", "files", "IN", "-o", "OUT"], target: "index.csv", replaces: false, fits: lines },
    Way { words: &["IN", "--json", "--pseudonyms", "OUT/key"], target: "other", replaces: false, fits: key },
];

fn never(_: &str, _: &[u8], _: &[u8]) -> bool {
    false
}

fn page(_: &str, found: &[u8], _: &[u8]) -> bool {
    found.ends_with(b"</html>\n")
}

fn json(_: &str, found: &[u8], _: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Value>(found).is_ok()
}

fn dot(_: &str, found: &[u8], _: &[u8]) -> bool {
    found.starts_with(b"digraph") && found.ends_with(b"}\n")
}

/// A capture with fewer packets: each pcapng block is whole and as long as it says. The last packets may be others than in a whole run, since messages
/// that wait for missing bytes are written when the reading ends.
fn capture(_: &str, found: &[u8], whole: &[u8]) -> bool {
    let mut rest = found;
    while let Some(length) = rest.get(4..8) {
        let length = u32::from_le_bytes(length.try_into().unwrap()) as usize;
        match rest.split_at_checked(length) {
            Some((block, behind)) if length >= 12 && block.ends_with(&block[4..8]) => rest = behind,
            _ => return false,
        }
    }
    rest.is_empty() && found.len() >= 28 && found[..28] == whole[..28]
}

/// A list with fewer lines, or a file of which less came: its name says so where the capture told its size.
fn lines(name: &str, found: &[u8], whole: &[u8]) -> bool {
    let list = found.ends_with(b"\n") && found.starts_with(b"record,");
    list || name.ends_with(".partial") || whole.starts_with(found)
}

/// Each run makes a key of its own.
fn key(_: &str, found: &[u8], whole: &[u8]) -> bool {
    found.len() == whole.len() && found.ends_with(b"\n")
}

/// A folder with the old file in it.
fn folder(name: &str, target: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("moulsniff-faults-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(target), OLD).unwrap();
    folder
}

fn command(line: &str, way: &Way, folder: &Path) -> Command {
    let mut shell = crate::common::shell();
    let out = folder.to_str().unwrap();
    shell.args(["-c", line, env!("CARGO_BIN_EXE_moulsniff")]);
    for word in way.words {
        match *word {
            "IN" => shell.args(["captures/moul/full_dirtsand.pcapng", "--keys", "keys/dirtsand.ini"]),
            word => shell.arg(word.replace("OUT", out)),
        };
    }
    shell.current_dir(file("")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    shell
}

/// The files in a folder and in those within it, by their paths from there.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            all.extend(contents(&entry.path()).into_iter().map(|(inner, bytes)| (format!("{name}/{inner}"), bytes)));
        } else {
            all.insert(name, std::fs::read(entry.path()).unwrap());
        }
    }
    all
}

fn is_part(name: &str) -> bool {
    name.rsplit('/').next().unwrap().starts_with(".moulsniff-") && name.ends_with(".part")
}

/// The files that a command leaves where nothing goes wrong, and how long that takes.
fn complete(index: usize) -> (BTreeMap<String, Vec<u8>>, Duration) {
    let way = &WAYS[index];
    let folder = folder(&format!("whole-{index}"), way.target);
    let begun = Instant::now();
    let done = command("exec \"$0\" \"$@\"", way, &folder).output().unwrap();
    let time = begun.elapsed();
    assert!(done.status.success(), "{:?}: {}", way.words, String::from_utf8_lossy(&done.stderr));
    let files = contents(&folder);
    assert_eq!(files[way.target] != OLD, way.replaces, "{:?}", way.words);
    assert!(files.len() > usize::from(!way.replaces) && !files.keys().any(|name| is_part(name)), "{:?}", way.words);
    std::fs::remove_dir_all(folder).unwrap();
    (files, time)
}

#[test]
fn a_full_disk_leaves_the_old_file() {
    for (index, way) in WAYS.iter().enumerate() {
        let folder = folder(&format!("full-{index}"), way.target);
        // No file may have more than some bytes: a write beyond fails, as on a full disk.
        let blocks = if way.words.contains(&"--json") { 0 } else { 8 };
        let line = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let done = command(&line, way, &folder).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(1), "{:?}: {said}", way.words);
        assert!(said.lines().count() == 1, "{:?}: {said}", way.words);
        let found = contents(&folder);
        assert_eq!(found[way.target], OLD, "{:?}", way.words);
        // Files that were small enough are complete: so is everything that has its name.
        assert!(!found.keys().any(|name| is_part(name)), "{:?}", way.words);
        assert!(found.values().all(|bytes| bytes.len() <= 4096), "{:?}", way.words);
        std::fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn a_signal_at_any_moment_leaves_the_old_file_or_the_whole_new_one() {
    let mut next = random();
    for (index, way) in WAYS.iter().enumerate() {
        let (whole, time) = complete(index);
        for (round, signal) in ["-TERM", "-KILL", "-INT", "-TERM", "-KILL"].into_iter().enumerate() {
            let folder = folder(&format!("signal-{index}-{round}"), way.target);
            let mut child = command("exec \"$0\" \"$@\"", way, &folder).spawn().unwrap();
            std::thread::sleep(time.mul_f64((next() % 1000) as f64 / 900.0));
            let _ = Command::new("kill").args([signal, &child.id().to_string()]).stderr(Stdio::null()).status();
            child.wait().unwrap();
            let said = format!("{:?} {signal}", way.words);
            for (name, found) in contents(&folder) {
                if is_part(&name) {
                    assert_eq!(signal, "-KILL", "{said}: {name}");
                    continue;
                }
                let old = name == way.target && found == OLD;
                let of_whole = whole.get(&name).map_or(&[][..], |bytes| &bytes[..]);
                let whole_or_short = found == of_whole || (way.fits)(&name, &found, of_whole);
                assert!(old || whole_or_short, "{said}: {name} has {} bytes", found.len());
                assert!(old || way.replaces || name != way.target, "{said}: {name} was replaced");
            }
            std::fs::remove_dir_all(folder).unwrap();
        }
    }
}
