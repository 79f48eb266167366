//! What the program prints, byte for byte: every `console` block of `tests/transcripts/*.md`, of
//! the README and of `docs/your-protocol.md` is run.
//!
//! A block reads like a terminal: `$ ` and a command for the shell, then its standard output, then
//! its standard error, then `[exit N]` where the status is not 0. `TRANSCRIPTS=write cargo test
//! --test it transcripts` rewrites the blocks with what is printed now; read the difference before
//! committing it.

#![cfg(unix)]

use std::path::Path;
use std::process::Command;

use crate::common::{file, hold, scratch};

/// A test for each transcript, by its file's name.
macro_rules! transcripts {
    ($($name:ident)*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];

        $(#[test]
        fn $name() {
            check(&format!("tests/transcripts/{}.md", stringify!($name)));
        })*
    };
}

transcripts! { evening help inputs intermud3 json keys mistakes moul ouro secondlife tables trees }

#[test]
fn readme() {
    check("README.md");
}

#[test]
fn your_protocol() {
    check("docs/your-protocol.md");
}

#[test]
fn page_of_json() {
    check("docs/json.md");
}

#[test]
fn page_of_diff() {
    check("docs/diff.md");
}

#[test]
fn commands_of_the_page_of_exports() {
    every_command("docs/export.md", 4);
}

#[test]
fn commands_of_the_page_of_sharing() {
    every_command("docs/sharing.md", 8);
}

/// Runs each command of a page that stands in a block of its own or in a table, in a folder where
/// captures and keys are, and where the files go that it writes. What a page says of its words is
/// left: `CAPTURE` is a capture, `KEYS` are its keys.
fn every_command(page: &str, least: usize) {
    let text = std::fs::read_to_string(file(page)).unwrap();
    let folder = scratch(page.replace('/', "-"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["captures", "keys"] {
        std::os::unix::fs::symlink(file(name), folder.join(name)).unwrap();
    }
    let path = format!(
        "{}:{}",
        Path::new(env!("CARGO_BIN_EXE_moulsniff")).parent().unwrap().display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let blocks = text.lines().filter_map(|line| line.strip_prefix("    moulsniff "));
    let cells = text
        .lines()
        .filter(|line| line.starts_with('|'))
        .filter_map(|line| line.split("`moulsniff ").nth(1)?.split('`').next());
    let mut run = 0;
    for command in blocks.chain(cells) {
        let capture = "captures/moul/kind_gate.pcap";
        let words = command.split_whitespace().map(|word| match word {
            "CAPTURE" => capture,
            "KEYS" => "keys/dirtsand.ini",
            "FILE" => "persons.key",
            word => word,
        });
        // Names of files that are written are the run's own: nothing is written over.
        let command = format!("moulsniff {}", words.collect::<Vec<_>>().join(" "))
            .replace("OUT.pcapng", &format!("OUT-{run}.pcapng"));
        let done = crate::common::shell()
            .args(["-c", &command])
            .env("PATH", &path)
            .current_dir(&folder)
            .output()
            .unwrap();
        assert!(done.status.success(), "{command}: {}", String::from_utf8_lossy(&done.stderr));
        run += 1;
    }
    assert!(run >= least, "{run} commands of {page}");
}

#[test]
fn every_transcript_has_its_test() {
    let paths = std::fs::read_dir(file("tests/transcripts")).unwrap().map(|e| e.unwrap().path());
    let transcripts = paths.filter(|f| f.extension().is_some_and(|e| e == "md"));
    let mut names: Vec<String> =
        transcripts.map(|f| f.file_stem().unwrap().to_str().unwrap().to_string()).collect();
    names.sort();
    assert_eq!(names, NAMES, "`transcripts!` in this file lists the files of tests/transcripts");
}

fn check(name: &str) {
    let path = file(name);
    let kept = std::fs::read_to_string(&path).unwrap();
    hold(&path, &played(&kept, &run), "TRANSCRIPTS");
}

/// The text with every console block played again; `run` is what a command prints, or nothing where
/// it cannot be run.
pub fn played(text: &str, run: &dyn Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        if line != "```console" {
            continue;
        }
        while let Some(line) = lines.next_if(|l| *l != "```") {
            let before =
                std::iter::from_fn(|| lines.next_if(|l| *l != "```" && !l.starts_with("$ ")));
            let before: String = before.map(|l| format!("{l}\n")).collect();
            let command = line
                .strip_prefix("$ ")
                .unwrap_or_else(|| panic!("a block begins with `$ `, not {line}"));
            out.push_str(&format!("{line}\n{}", run(command).unwrap_or(before)));
        }
    }
    out
}

/// What a command prints; nothing where a program it needs is not on this machine.
fn run(command: &str) -> Option<String> {
    for needed in ["jq", "sqlite3"] {
        let used = command.contains(&format!("| {needed} "));
        if used && Command::new(needed).arg("--version").output().is_err() {
            eprintln!("not run, there is no {needed}: {command}");
            return None;
        }
    }
    let mut shell = crate::common::shell();
    shell.current_dir(file(""));
    Some(printed_by(shell, &command.replace("cargo run --release -- ", "moulsniff ")))
}

/// What a command prints in a shell in which `moulsniff` is the program: standard output, standard
/// error, and the status where it is not 0.
pub fn printed_by(mut shell: Command, command: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_moulsniff")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    shell.args(["-c", command]).env("PATH", path).env_remove("COLUMNS").env_remove("NO_COLOR");
    let done = shell.output().unwrap();
    let mut out = String::from_utf8(done.stdout).unwrap();
    out.push_str(&String::from_utf8(done.stderr).unwrap());
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    match done.status.code() {
        Some(0) => {}
        Some(n) => out.push_str(&format!("[exit {n}]\n")),
        None => out.push_str("[killed]\n"),
    }
    out.lines().map(|l| format!("{}\n", l.trim_end())).collect()
}
