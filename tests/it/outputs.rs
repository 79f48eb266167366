//! Files that commands write: no input is written over, no half file is left, secrets are their
//! owner's.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::common::{file, scratch};

/// A folder with a capture, a hard and a symbolic link to it, and the keys that open it.
fn folder(name: &str) -> PathBuf {
    let dir = scratch(format!("outputs-{name}"));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    fs::copy(file("captures/moul/full_dirtsand.pcapng"), dir.join("a.pcapng")).unwrap();
    fs::copy(file("keys/dirtsand.ini"), dir.join("k.ini")).unwrap();
    fs::hard_link(dir.join("a.pcapng"), dir.join("hard.pcapng")).unwrap();
    symlink("a.pcapng", dir.join("soft.pcapng")).unwrap();
    dir
}

fn run(dir: &Path, words: &[&str]) -> Output {
    crate::common::program().current_dir(dir).args(words).output().unwrap()
}

/// What is in a folder, links not followed.
fn contents(dir: &Path) -> Vec<(String, u64)> {
    let entries = fs::read_dir(dir).unwrap().map(|e| e.unwrap());
    let mut all: Vec<_> = entries
        .map(|e| (e.file_name().into_string().unwrap(), e.path().symlink_metadata().unwrap().len()))
        .collect();
    all.sort();
    all
}

#[test]
fn no_output_is_an_input() {
    let dir = folder("inputs");
    for inner in ["keys", "sdl", "parts", "linked"] {
        fs::create_dir(dir.join(inner)).unwrap();
    }
    fs::hard_link(dir.join("k.ini"), dir.join("keys/k2.ini")).unwrap();
    fs::write(dir.join("sdl/x.sdl"), "STATEDESC x { VERSION 1 VAR INT a[1] DEFAULT=0 }\n").unwrap();
    fs::copy(dir.join("a.pcapng"), dir.join("parts/part-00.pcapng")).unwrap();
    symlink("../a.pcapng", dir.join("linked/part-01.pcapng")).unwrap();
    fs::copy(dir.join("a.pcapng"), dir.join("v.json")).unwrap();
    fs::hard_link(dir.join("v.json"), dir.join("w.json")).unwrap();
    fs::write(dir.join("t.table"), "protocol moul\n").unwrap();
    fs::write(dir.join("p.key"), format!("moulsniff pseudonyms 1\n{}\n", "07".repeat(16))).unwrap();
    let before = contents(&dir);
    for words in [
        &["keys", "strip", "a.pcapng", "-o", "a.pcapng"][..],
        &["keys", "strip", "a.pcapng", "-o", "hard.pcapng"],
        &["keys", "strip", "a.pcapng", "-o", "soft.pcapng"],
        &["keys", "strip", "soft.pcapng", "-o", "./a.pcapng"],
        &["keys", "inject", "a.pcapng", "-o", "hard.pcapng", "--keys", "k.ini"],
        &["keys", "inject", "a.pcapng", "-o", "k.ini", "--keys", "k.ini"],
        &["keys", "inject", "a.pcapng", "-o", "keys/k2.ini", "--keys", "keys"],
        &["export", "messages", "-r", "a.pcapng", "-o", "a.pcapng"],
        &["export", "messages", "-r", "a.pcapng", "-o", "hard.pcapng"],
        &["export", "messages", "a.pcapng", "-o", "/proc/self/cwd/soft.pcapng"],
        &["export", "messages", "a.pcapng", "-o", "t.table", "--tables", "t.table"],
        &["export", "vault", "-r", "v.json", "-o", "v.json"],
        &["export", "vault", "v.json", "-o", "w.json"],
        &["report", "a.pcapng", "-o", "soft.pcapng"],
        &["report", "-r", "a.pcapng", "-o", "a.pcapng"],
        &["report", "a.pcapng", "-o", "p.key", "--pseudonyms", "p.key"],
        &["report", "a.pcapng", "-o", "sdl/x.sdl", "--sdl", "sdl"],
        &["split", "parts/part-00.pcapng", "-o", "parts", "--into", "2"],
        &["split", "a.pcapng", "-o", "linked", "--into", "2"],
    ] {
        let output = run(&dir, words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            said.contains("it is not written over") && said.lines().count() == 1,
            "{words:?}: {said}"
        );
        assert_eq!(contents(&dir), before, "{words:?}");
    }
}

#[test]
fn a_stream_is_not_written_over_the_capture_it_comes_from() {
    let dir = folder("follow");
    fs::create_dir(dir.join("out")).unwrap();
    fs::rename(dir.join("a.pcapng"), dir.join("out/tcp-00000-client.txt")).unwrap();
    let size = fs::metadata(dir.join("out/tcp-00000-client.txt")).unwrap().len();
    let output = run(
        &dir,
        &["follow", "--all", "-o", "out", "out/tcp-00000-client.txt", "--keys", "k.ini", "--text"],
    );
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::metadata(dir.join("out/tcp-00000-client.txt")).unwrap().len(), size);
}

/// Streams that end earlier would be written before the one whose file is the input.
#[test]
fn follow_writes_nothing_where_a_later_stream_has_the_name_of_an_input() {
    let dir = folder("later-stream");
    fs::create_dir(dir.join("out")).unwrap();
    fs::hard_link(dir.join("a.pcapng"), dir.join("out/tcp-00002-server.txt")).unwrap();
    let before = contents(&dir.join("out"));
    let words = ["follow", "--all", "-o", "out", "a.pcapng", "--keys", "k.ini"];
    let output = run(&dir, &words);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("this is the input a.pcapng") && said.lines().count() == 1, "{said}");
    assert_eq!(contents(&dir.join("out")), before);
    // These names are not written.
    assert!(run(&dir, &[&words[..], &["--from", "client"]].concat()).status.success());
    assert!(run(&dir, &[&words[..], &["--json"]].concat()).status.success());
    assert!(contents(&dir.join("out")).contains(&before[0]));
}

#[test]
fn a_mistake_in_what_was_typed_makes_no_key_for_pseudonyms() {
    let dir = folder("no-key");
    fs::create_dir(dir.join("out")).unwrap();
    let before = contents(&dir);
    for words in [
        &["report", "a.pcapng", "-o", "./new"][..],
        &["export", "messages", "a.pcapng", "-o", "new"],
        &["follow", "--all", "a.pcapng", "-o", "new"],
        &["a.pcapng", "-Y", "x =="],
        &["a.pcapng", "--columns", "###"],
        &["--tail", "a.pcapng", "soft.pcapng"],
        &["report", "--tail", "a.pcapng", "-o", "page.html"],
    ] {
        let output = run(&dir, &[words, &["--pseudonyms", "new", "--keys", "k.ini"]].concat());
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert_eq!(contents(&dir), before, "{words:?}");
    }
    let words =
        ["follow", "--all", "a.pcapng", "-o", "out", "--pseudonyms", "out/tcp-00001-client.txt"];
    assert_eq!(run(&dir, &words).status.code(), Some(2));
    assert_eq!(contents(&dir.join("out")), []);
}

#[test]
fn links_in_an_output_folder_are_replaced_and_not_followed() {
    let dir = folder("links");
    fs::create_dir(dir.join("out")).unwrap();
    fs::write(dir.join("victim"), "safe").unwrap();
    symlink("../victim", dir.join("out/tcp-00000-client.txt")).unwrap();
    let output =
        run(&dir, &["follow", "--all", "-o", "out", "a.pcapng", "--keys", "k.ini", "--text"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(fs::read(dir.join("victim")).unwrap(), b"safe");
    assert!(contents(&dir.join("out")).iter().all(|(name, _)| !name.ends_with(".part")));
}

#[test]
fn a_failure_leaves_the_old_file_and_no_half_one() {
    let dir = folder("failure");
    let whole = fs::read(dir.join("a.pcapng")).unwrap();
    fs::write(dir.join("cut.pcapng"), &whole[..whole.len() - 5]).unwrap();
    for old in ["old.pcapng", "old.json", "part-00.pcapng"] {
        fs::write(dir.join(old), "old").unwrap();
    }
    let before = contents(&dir);
    for words in [
        &["keys", "strip", "missing.pcapng", "-o", "old.pcapng"][..],
        &["keys", "strip", "old.pcapng", "-o", "old.json"],
        &["keys", "inject", "a.pcapng", "-o", "old.pcapng"],
        &["keys", "strip", "a.pcapng", "-o", "/dev/full"],
        &["report", "missing.pcapng", "-o", "old.pcapng"],
        &["report", "old.pcapng", "-o", "new.html"],
        &["export", "messages", "missing.pcapng", "-o", "old.pcapng"],
        &["export", "vault", "missing.pcapng", "-o", "old.json"],
        &["export", "vault", "old.pcapng", "-o", "old.json"],
        &["export", "files", "missing.pcapng", "-o", "."],
        &["split", "missing.pcapng", "--into", "2", "-o", "."],
        &["split", "old.pcapng", "--into", "2", "-o", "."],
        &["follow", "--all", "missing.pcapng", "-o", "new"],
        &["split", "missing.pcapng", "--into", "2", "-o", "new/within"],
        &["export", "files", "missing.pcapng", "-o", "new/within"],
    ] {
        assert_eq!(run(&dir, words).status.code(), Some(1), "{words:?}");
        assert_eq!(contents(&dir), before, "{words:?}");
    }
    // A folder that was there stays.
    fs::create_dir(dir.join("empty")).unwrap();
    assert_eq!(
        run(&dir, &["split", "missing.pcapng", "--into", "2", "-o", "empty/new"]).status.code(),
        Some(1)
    );
    assert_eq!(contents(&dir.join("empty")), []);
}

#[test]
fn a_filter_that_was_a_mistake_replaces_no_file() {
    let dir = folder("mistake");
    for old in ["page.html", "v.json", "m.pcapng"] {
        fs::write(dir.join(old), "old").unwrap();
    }
    let before = contents(&dir);
    for words in [
        &["report", "-o", "page.html"][..],
        &["export", "vault", "-o", "v.json"],
        &["export", "messages", "-o", "m.pcapng"],
        &["export", "files", "-o", "new"],
        &["follow", "--all", "-o", "new"],
    ] {
        let filter = ["a.pcapng", "--keys", "k.ini", "-q", "-Y", "*.player_idd == 1"];
        let output = run(&dir, &[words, &filter].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(
            said.contains("did you mean `player_id`") && said.lines().count() == 1,
            "{words:?}: {said}"
        );
        assert_eq!(contents(&dir), before, "{words:?}");
    }
}

#[test]
fn what_comes_before_a_cut_is_written() {
    let dir = folder("cut");
    let whole = fs::read(dir.join("a.pcapng")).unwrap();
    fs::write(dir.join("cut.pcapng"), &whole[..300_000]).unwrap();
    let records = |capture: &str, more: &[&str]| {
        let output = run(&dir, &[&[capture, "--json", "-q"], more].concat());
        (output.status.code(), output.stdout)
    };
    let (status, expected) = records("cut.pcapng", &["--keys", "k.ini"]);
    assert!(status == Some(1) && expected.len() > 100_000);
    for (words, out) in [
        (&["keys", "inject", "cut.pcapng", "--keys", "k.ini"][..], "with.pcapng"),
        (&["keys", "strip", "with.pcapng"], "without.pcapng"),
        (&["keys", "strip", "cut.pcapng"], "stripped.pcapng"),
    ] {
        let output = run(&dir, &[words, &["-o", out]].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        let cut = words[2] == "cut.pcapng";
        assert_eq!(
            (output.status.code(), said.contains("the file is cut")),
            (Some(i32::from(cut)), cut),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    // What is in the files is whole.
    let keys = |name: &str| String::from_utf8(expected.clone()).unwrap().replace("k.ini", name);
    let (status, with) = records("with.pcapng", &[]);
    assert_eq!(
        (status, String::from_utf8(with).unwrap().lines().count()),
        (Some(0), keys("").lines().count())
    );
    for name in ["without.pcapng", "stripped.pcapng"] {
        assert!(records(name, &["--keys", "k.ini"]) == (Some(0), expected.clone()), "{name}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_reader_that_has_enough_is_no_mistake() {
    let dir = folder("enough");
    for words in [
        "report a.pcapng --keys k.ini",
        "export messages a.pcapng --keys k.ini",
        "keys inject a.pcapng --keys k.ini",
        "keys strip a.pcapng",
    ] {
        let program = env!("CARGO_BIN_EXE_moulsniff");
        let line = format!("({program} {words} -q -o /dev/stdout; echo $? >&2) | head -c 1");
        let output = crate::common::shell().current_dir(&dir).args(["-c", &line]).output().unwrap();
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "0\n", "{words}");
    }
}

#[test]
fn files_of_an_earlier_run_are_told_of() {
    let dir = folder("earlier");
    let split = |into: &str| {
        let output = run(&dir, &["split", "a.pcapng", "--into", into, "-q", "-o", "parts"]);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(split("4"), (Some(0), String::new()));
    assert_eq!(split("4"), (Some(0), String::new()));
    let before = contents(&dir.join("parts"));
    let told = "moulsniff: parts: part-02.pcapng and 1 more would stay beside the 2 new parts; \
                remove them, or name another folder\n";
    assert_eq!(split("2"), (Some(2), told.into()));
    assert_eq!(contents(&dir.join("parts")), before);
    assert_eq!(split("8").0, Some(0));

    fs::create_dir(dir.join("out")).unwrap();
    fs::write(dir.join("out/tcp-77777-client.txt"), "old").unwrap();
    fs::write(dir.join("out/tcp-77777-client.bin"), "another form").unwrap();
    let follow = || {
        let output =
            run(&dir, &["follow", "--all", "a.pcapng", "--keys", "k.ini", "-q", "-o", "out"]);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let told = "moulsniff: out: tcp-77777-client.txt was there before; no stream of this run has \
                such a name\n";
    assert_eq!(follow(), (Some(0), told.into()));
    assert_eq!(fs::read(dir.join("out/tcp-77777-client.txt")).unwrap(), b"old");
    fs::remove_file(dir.join("out/tcp-77777-client.txt")).unwrap();
    assert_eq!(follow(), (Some(0), String::new()));
}

#[test]
fn keys_and_plaintext_are_the_owners_alone() {
    let dir = folder("modes");
    fs::write(dir.join("with.pcapng"), "old, and readable by all").unwrap();
    let mode = |name: &str| fs::metadata(dir.join(name)).unwrap().mode() & 0o777;
    assert!(
        run(&dir, &["keys", "inject", "a.pcapng", "-o", "with.pcapng", "--keys", "k.ini"])
            .status
            .success()
    );
    assert_eq!(mode("with.pcapng"), 0o600);
    assert!(run(&dir, &["follow", "--all", "--raw", "-o", "out", "with.pcapng"]).status.success());
    assert_eq!(mode("out/tcp-00000-client.bin"), 0o600);
}

#[test]
fn standard_output_is_no_input_either() {
    let dir = folder("stdout");
    let size = fs::metadata(dir.join("a.pcapng")).unwrap().len();
    let to = fs::OpenOptions::new().append(true).open(dir.join("a.pcapng")).unwrap();
    let mut command = crate::common::program();
    let status =
        command.current_dir(&dir).args(["a.pcapng", "--json", "-q"]).stdout(to).status().unwrap();
    assert_eq!(status.code(), Some(2));
    assert_eq!(fs::metadata(dir.join("a.pcapng")).unwrap().len(), size);
}

#[test]
fn what_is_printed_goes_into_no_file_that_is_read() {
    let dir = folder("printed");
    fs::write(dir.join("t.table"), "protocol moul\n").unwrap();
    fs::write(dir.join("list"), "fields.age_name\n").unwrap();
    for (file, words) in [
        ("t.table", &["tables", "list", "--tables", "t.table"][..]),
        ("t.table", &["tables", "show", "plUoid", "--tables", "t.table"]),
        ("t.table", &["tables", "lua", "--tables", "t.table"]),
        ("t.table", &["tables", "check", "t.table"]),
        ("t.table", &["decode", "moul.auth.client", "1a0007000000e9030000", "--tables", "t.table"]),
        ("t.table", &["schema", "--tables", "t.table"]),
        ("k.ini", &["keys", "check", "k.ini"]),
        ("k.ini", &["config", "--keys", "k.ini"]),
        ("list", &["diff", "a.pcapng", "soft.pcapng", "--ignore-file", "list"]),
        ("hard.pcapng", &["a.pcapng", "--json"]),
    ] {
        let before = fs::read(dir.join(file)).unwrap();
        let out = fs::OpenOptions::new().append(true).open(dir.join(file)).unwrap();
        let output =
            crate::common::program().current_dir(&dir).args(words).stdout(out).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(
            said.contains("standard output is the input") && said.lines().count() == 1,
            "{words:?}: {said}"
        );
        assert!(fs::read(dir.join(file)).unwrap() == before, "{words:?}");
    }
}

/// Opening a pipe that nobody reads waits, and no signal wakes it.
#[test]
#[cfg(target_os = "linux")]
fn a_signal_ends_the_wait_for_the_reader_of_a_pipe() {
    use std::process::{Command, Stdio};
    let dir = folder("no-reader");
    assert!(Command::new("mkfifo").arg(dir.join("pipe")).status().unwrap().success());
    for words in [
        &["report", "a.pcapng", "-o", "pipe"][..],
        &["export", "messages", "a.pcapng", "-o", "pipe"],
    ] {
        let mut program = crate::common::program();
        let mut child =
            program.current_dir(&dir).args(words).stderr(Stdio::null()).spawn().unwrap();
        crate::common::wait_for_handler(&child);
        assert!(
            Command::new("kill")
                .args(["-INT", &child.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
        assert_eq!(child.wait().unwrap().code(), Some(130), "{words:?}");
    }
}
