//! Full disks and signals at any moment, with every command that writes: the old file is as it was, or the new one is complete; no half file has the
//! final name, and nothing else is left behind, except after `kill -9`.
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{file, random};

/// A file that was there before.
const OLD: &[u8] = b"old";

/// Each command that writes, with the file it writes; `OUT` is a folder of its own.
const WAYS: [(&[&str], &str); 5] = [
    (&["keys", "inject", "captures/moul/full_dirtsand.pcapng", "--keys", "keys/dirtsand.ini", "-o", "OUT/a"], "a"),
    (&["keys", "strip", "captures/moul/full_dirtsand.pcapng", "-o", "OUT/a"], "a"),
    (&["report", "captures/moul/full_dirtsand.pcapng", "--keys", "keys/dirtsand.ini", "-o", "OUT/a"], "a"),
    (&["split", "captures/moul/full_dirtsand.pcapng", "--into", "1", "-o", "OUT"], "part-00.pcapng"),
    (
        &["follow", "--all", "captures/moul/full_dirtsand.pcapng", "--keys", "keys/dirtsand.ini", "-o", "OUT"],
        "tcp-00002-server.txt",
    ),
];

/// A folder with the old file in it.
fn folder(name: &str, target: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("moulsniff-faults-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(target), OLD).unwrap();
    folder
}

fn command(line: &str, way: &[&str], folder: &Path) -> Command {
    let mut shell = Command::new("sh");
    let out = folder.to_str().unwrap();
    shell.args(["-c", line, env!("CARGO_BIN_EXE_moulsniff")]).args(way.iter().map(|word| word.replace("OUT", out)));
    shell.current_dir(file("")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    shell
}

fn unfinished(folder: &Path) -> usize {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().ends_with(".part")).count()
}

/// The file that a command writes where nothing goes wrong.
fn complete(index: usize) -> Vec<u8> {
    let (way, target) = WAYS[index];
    let folder = folder(&format!("whole-{index}"), target);
    let done = command("exec \"$0\" \"$@\"", way, &folder).output().unwrap();
    assert!(done.status.success(), "{way:?}: {}", String::from_utf8_lossy(&done.stderr));
    let bytes = std::fs::read(folder.join(target)).unwrap();
    assert!(bytes != OLD && unfinished(&folder) == 0, "{way:?}");
    std::fs::remove_dir_all(folder).unwrap();
    bytes
}

#[test]
fn a_full_disk_leaves_the_old_file() {
    for (index, (way, target)) in WAYS.into_iter().enumerate() {
        let folder = folder(&format!("full-{index}"), target);
        // No file may have more than 4 KiB: a write beyond fails, as on a full disk.
        let done = command("trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\"", way, &folder).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(1), "{way:?}: {said}");
        assert_eq!(std::fs::read(folder.join(target)).unwrap(), OLD, "{way:?}");
        assert_eq!(unfinished(&folder), 0, "{way:?}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn a_signal_at_any_moment_leaves_the_old_file_or_the_whole_new_one() {
    let mut next = random();
    for (index, (way, target)) in WAYS.into_iter().enumerate() {
        let whole = complete(index);
        for (round, signal) in ["-TERM", "-KILL", "-INT", "-TERM", "-KILL"].into_iter().enumerate() {
            let folder = folder(&format!("signal-{index}-{round}"), target);
            let mut child = command("exec \"$0\" \"$@\"", way, &folder).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(next() as u64 % 400));
            let _ = Command::new("kill").args([signal, &child.id().to_string()]).stderr(Stdio::null()).status();
            child.wait().unwrap();
            let found = std::fs::read(folder.join(target)).unwrap();
            // After a signal, the page tells what was collected until then: complete, and perhaps shorter.
            let page = way[0] == "report" && found.ends_with(b"</html>\n");
            assert!(found == OLD || found == whole || page, "{way:?} {signal}: {} bytes", found.len());
            assert!(signal == "-KILL" || unfinished(&folder) == 0, "{way:?} {signal}");
            std::fs::remove_dir_all(folder).unwrap();
        }
    }
}
