//! Full disks and signals at any moment, with every command that writes: the old file is as it was,
//! or the new one is complete; no half file has the final name, and nothing else is left behind,
//! except after `kill -9`.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{file, random, scratch};

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
    /// After a signal: whether a file (its content, the content after a whole run) that differs
    /// from the one of a whole run is complete all the same.
    fits: fn(&[u8], &[u8]) -> bool,
}

const WAYS: [Way; 11] = [
    Way {
        words: &["keys", "inject", "IN", "-o", "OUT/a"],
        target: "a",
        replaces: true,
        fits: never,
    },
    Way {
        words: &["keys", "strip", "captures/moul/full_dirtsand.pcapng", "-o", "OUT/a"],
        target: "a",
        replaces: true,
        fits: never,
    },
    Way { words: &["report", "IN", "-o", "OUT/a"], target: "a", replaces: true, fits: never },
    Way {
        words: &["split", "captures/moul/full_dirtsand.pcapng", "--into", "3", "-o", "OUT"],
        target: "part-00.pcapng",
        replaces: true,
        fits: never,
    },
    Way {
        words: &["follow", "--all", "IN", "-o", "OUT"],
        target: "tcp-00002-server.txt",
        replaces: true,
        fits: never,
    },
    Way {
        words: &["export", "vault", "IN", "-o", "OUT/a.json"],
        target: "a.json",
        replaces: true,
        fits: never,
    },
    Way {
        words: &["export", "vault", "IN", "-o", "OUT/a.dot"],
        target: "a.dot",
        replaces: true,
        fits: never,
    },
    Way {
        words: &["report", "IN", "--redact", "-o", "OUT/a"],
        target: "a",
        replaces: true,
        fits: never,
    },
    Way {
        words: &["export", "messages", "IN", "-o", "OUT/a"],
        target: "a",
        replaces: true,
        fits: never,
    },
    Way {
        words: &["export", "files", "IN", "-o", "OUT"],
        target: "index.csv",
        replaces: false,
        fits: never,
    },
    Way {
        words: &["IN", "--json", "--pseudonyms", "OUT/key"],
        target: "other",
        replaces: false,
        fits: key,
    },
];

fn never(_: &[u8], _: &[u8]) -> bool {
    false
}

/// Each run makes a key of its own.
fn key(found: &[u8], whole: &[u8]) -> bool {
    found.len() == whole.len() && found.ends_with(b"\n")
}

/// A folder with the old file in it.
fn folder(name: &str, target: &str) -> PathBuf {
    let folder = scratch(format!("faults-{name}"));
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
            "IN" => {
                shell.args(["captures/moul/full_dirtsand.pcapng", "--keys", "keys/dirtsand.ini"])
            }
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
            all.extend(
                contents(&entry.path())
                    .into_iter()
                    .map(|(inner, bytes)| (format!("{name}/{inner}"), bytes)),
            );
        } else if entry.file_type().unwrap().is_file() {
            all.insert(name, std::fs::read(entry.path()).unwrap());
        }
    }
    all
}

/// The names in a folder.
#[cfg(target_os = "linux")]
fn entries(folder: &Path) -> Vec<String> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

fn is_part(name: &str) -> bool {
    name.rsplit('/').next().unwrap().starts_with(".moulsniff-") && name.ends_with(".part")
}

/// The files that a command leaves where nothing goes wrong, and how long that takes. `test` makes
/// the folder one of this test.
fn complete(test: &str, index: usize) -> (BTreeMap<String, Vec<u8>>, Duration) {
    let way = &WAYS[index];
    let folder = folder(&format!("{test}-whole-{index}"), way.target);
    let begun = Instant::now();
    let done = command("exec \"$0\" \"$@\"", way, &folder).output().unwrap();
    let time = begun.elapsed();
    assert!(done.status.success(), "{:?}: {}", way.words, String::from_utf8_lossy(&done.stderr));
    let files = contents(&folder);
    assert_eq!(files[way.target] != OLD, way.replaces, "{:?}", way.words);
    assert!(
        files.len() > usize::from(!way.replaces) && !files.keys().any(|name| is_part(name)),
        "{:?}",
        way.words
    );
    std::fs::remove_dir_all(folder).unwrap();
    (files, time)
}

#[test]
fn a_full_disk_leaves_the_old_file() {
    for (index, way) in WAYS.iter().enumerate() {
        let folder = folder(&format!("full-{index}"), way.target);
        // No file may have more than some bytes: a write beyond fails, as on a full disk.
        let blocks = if way.words.contains(&"--json") { 0 } else { 8 };
        let line = format!("ulimit -f {blocks}; exec \"$0\" \"$@\"");
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
        let (whole, time) = complete("signal", index);
        for (round, signal) in ["-TERM", "-KILL", "-INT", "-TERM", "-KILL"].into_iter().enumerate()
        {
            let folder = folder(&format!("signal-{index}-{round}"), way.target);
            let mut child = command("exec \"$0\" \"$@\"", way, &folder).spawn().unwrap();
            std::thread::sleep(time.mul_f64((next() % 1000) as f64 / 900.0));
            let _ = Command::new("kill")
                .args([signal, &child.id().to_string()])
                .stderr(Stdio::null())
                .status();
            child.wait().unwrap();
            let said = format!("{:?} {signal}", way.words);
            for (name, found) in contents(&folder) {
                if is_part(&name) {
                    assert_eq!(signal, "-KILL", "{said}: {name}");
                    continue;
                }
                let old = name == way.target && found == OLD;
                let of_whole = whole.get(&name).map_or(&[][..], |bytes| &bytes[..]);
                let whole_or_short = found == of_whole || (way.fits)(&found, of_whole);
                assert!(old || whole_or_short, "{said}: {name} has {} bytes", found.len());
                assert!(old || way.replaces || name != way.target, "{said}: {name} was replaced");
            }
            std::fs::remove_dir_all(folder).unwrap();
        }
    }
}

/// The status of a run, what it said, and the files that it left.
#[cfg(target_os = "linux")]
type FaultyRun = (Option<i32>, String, BTreeMap<String, Vec<u8>>);

/// Runs each way under strace, which makes system calls fail as `inject` says. `None` without
/// strace.
#[cfg(target_os = "linux")]
fn with_faults(test: &str, inject: &str, path: &str) -> Option<Vec<FaultyRun>> {
    if Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_err() {
        println!("no strace: faults of system calls are not tested");
        return None;
    }
    let all = WAYS.iter().enumerate().map(|(index, way)| {
        let folder = folder(&format!("{test}-{index}"), way.target);
        let line = format!(
            "exec strace -f -qq -o /dev/null {path} -e inject={inject} \"$0\" -q --no-config \
             \"$@\""
        );
        let done = command(&line, way, &folder).output().unwrap();
        let found = contents(&folder);
        std::fs::remove_dir_all(folder).unwrap();
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned(), found)
    });
    Some(all.collect())
}

#[test]
#[cfg(target_os = "linux")]
fn a_capture_that_cannot_be_read_on_leaves_the_old_file_and_is_an_error() {
    let path = format!("-P {}", file("captures/moul/full_dirtsand.pcapng").display());
    for at in [1, 2, 3] {
        let inject = format!("read:error=EIO:when={at}+");
        let Some(all) = with_faults(&format!("eio-{at}"), &inject, &path) else { return };
        for (way, (status, said, found)) in WAYS.iter().zip(all) {
            assert_eq!(status, Some(1), "{:?}, read {at}: {said}", way.words);
            assert!(said.contains("input/output error"), "{:?}: {said}", way.words);
            // Streams that were over by then are complete.
            let is_kept = found[way.target] == OLD || way.words.contains(&"--all");
            assert!(is_kept, "{:?}, read {at}: replaced", way.words);
            assert!(!found.keys().any(|name| is_part(name)), "{:?}", way.words);
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn files_that_cannot_be_looked_at_leave_nothing_behind() {
    for at in (3..18).step_by(3) {
        let inject = format!("statx:error=EIO:when={at}+");
        let Some(all) = with_faults(&format!("statx-{at}"), &inject, "") else { return };
        for (way, (status, said, found)) in WAYS.iter().zip(all) {
            assert!(!found.keys().any(|name| is_part(name)), "{:?}, {at}: {said}", way.words);
            let is_old = found[way.target] == OLD;
            assert!(is_old || status == Some(0), "{:?}, {at}: {status:?} {said}", way.words);
        }
    }
}

/// A capture that is never read to its end, though it is a plain file: it has empty packets alone,
/// which the file system does not store.
#[cfg(target_os = "linux")]
fn endless(folder: &Path) -> PathBuf {
    let path = folder.join("endless.pcap");
    let capture = std::fs::read(file("captures/moul/kind_game.pcap")).unwrap();
    std::fs::write(&path, &capture[..24]).unwrap();
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    path
}

/// Sends Ctrl-C once the program takes signals and `is_ready`; the status and what was said.
#[cfg(target_os = "linux")]
fn interrupted(command: &mut Command, is_ready: impl Fn() -> bool) -> (Option<i32>, String) {
    let child = command.spawn().unwrap();
    crate::common::wait_for_handler(&child);
    while !is_ready() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success()
    );
    let done = child.wait_with_output().unwrap();
    (done.status.code(), String::from_utf8(done.stderr).unwrap())
}

#[test]
#[cfg(target_os = "linux")]
fn ctrl_c_while_captures_are_read_leaves_what_was_there_and_says_so() {
    let captures = folder("endless", "other");
    let endless = endless(&captures);
    for (index, way) in WAYS
        .iter()
        .enumerate()
        .filter(|(_, way)| ["report", "follow", "export"].contains(&way.words[0]))
    {
        let folder = folder(&format!("interrupted-{index}"), way.target);
        let mut command = command("exec \"$0\" \"$@\"", way, &folder);
        // The streams and files of the first capture are over: theirs are complete.
        let all = way.words.contains(&"--all");
        let files = way.words.contains(&"files");
        let is_replaced = || std::fs::read(folder.join(way.target)).unwrap() != OLD;
        let has_files = || entries(&folder).iter().any(|name| name != way.target && !is_part(name));
        // Otherwise the shell is gone, and the program takes signals, once it has begun its file.
        let has_begun = || entries(&folder).iter().any(|name| is_part(name));
        let is_ready = || match (all, files) {
            (true, _) => is_replaced(),
            (_, true) => has_files(),
            _ => has_begun(),
        };
        let (status, said) = interrupted(command.arg(&endless), is_ready);
        assert_eq!(status, Some(130), "{:?}: {said}", way.words);
        assert!(
            said.starts_with("moulsniff: interrupted: ") && said.lines().count() == 1,
            "{:?}: {said}",
            way.words
        );
        let whole = if all || files { complete("interrupted", index).0 } else { BTreeMap::new() };
        for (name, found) in contents(&folder) {
            let is_old = name == way.target && found == OLD;
            assert!(is_old || whole.get(&name) == Some(&found), "{:?}: {name}", way.words);
            assert!(!name.starts_with("index-"), "{:?}: a list of some files", way.words);
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
    std::fs::remove_dir_all(captures).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn ctrl_c_before_the_sessions_are_known_prints_nothing_and_says_so() {
    let folder = folder("sessions-unknown", "other");
    let mut command = crate::common::program();
    command
        .arg(endless(&folder))
        .args(["-Y", "session == 1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let (status, said) = interrupted(&mut command, || true);
    let expected =
        "moulsniff: interrupted: nothing is printed, since the sessions are not known yet\n";
    assert_eq!((status, said.as_str()), (Some(130), expected));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn ctrl_c_ends_a_copy_at_once_and_no_folder_was_made() {
    let folder = folder("copy", "other");
    assert!(Command::new("mkfifo").arg(folder.join("pipe")).status().unwrap().success());
    for words in [
        &["split", "pipe", "--into", "3", "-o", "new/parts"][..],
        &["keys", "strip", "pipe", "-o", "new"],
    ] {
        let mut command = crate::common::program();
        command.current_dir(&folder).args(words).stderr(Stdio::piped());
        let is_begun = || entries(&folder).len() > 2;
        assert_eq!(interrupted(&mut command, is_begun), (Some(130), String::new()), "{words:?}");
        assert_eq!(entries(&folder).len(), 2, "{words:?}: {:?}", entries(&folder));
    }
    std::fs::remove_dir_all(folder).unwrap();
}
