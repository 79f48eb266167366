//! What the program prints, held to the letter: every `console` block of `tests/transcripts/*.md` and of the README is run.
//!
//! A block reads like a terminal: `$ ` and a command for the shell, then what it prints on standard output and after that on
//! standard error, then `[exit N]` where the status is not 0. `TRANSCRIPTS=write cargo test --test it transcripts` rewrites the
//! blocks with what is printed now; read the difference before committing it.

#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn transcripts() {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(root().join("tests/transcripts")).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "md"));
    files.sort();
    assert!(files.len() > 3, "the transcripts are gone");
    files.iter().for_each(|f| hold(f));
}

#[test]
fn readme() {
    hold(&root().join("README.md"));
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn hold(path: &Path) {
    let expected = std::fs::read_to_string(path).unwrap();
    let printed = played(&expected);
    if std::env::var_os("TRANSCRIPTS").is_some_and(|v| v == "write") {
        std::fs::write(path, printed).unwrap();
        return;
    }
    for (n, (want, have)) in expected.lines().zip(printed.lines()).enumerate() {
        assert_eq!(want, have, "{}:{}: (left: the transcript, right: printed now)", path.display(), n + 1);
    }
    let lines = (expected.lines().count(), printed.lines().count());
    assert_eq!(lines.0, lines.1, "{}: the numbers of lines differ", path.display());
}

/// The text with every console block played again.
fn played(text: &str) -> String {
    let mut out = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        if line != "```console" {
            continue;
        }
        while let Some(line) = lines.next_if(|l| *l != "```") {
            let before = std::iter::from_fn(|| lines.next_if(|l| *l != "```" && !l.starts_with("$ ")));
            let before: String = before.map(|l| format!("{l}\n")).collect();
            let command = line.strip_prefix("$ ").unwrap_or_else(|| panic!("a block begins with `$ `, not {line}"));
            out.push_str(&format!("{line}\n{}", run(command).unwrap_or(before)));
        }
    }
    out
}

/// What a command prints; nothing where a program it needs is not on this machine.
fn run(command: &str) -> Option<String> {
    if command.contains("| jq ") && Command::new("jq").arg("--version").output().is_err() {
        eprintln!("not run, there is no jq: {command}");
        return None;
    }
    let program = Path::new(env!("CARGO_BIN_EXE_moulsniff")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let command = command.replace("cargo run --release -- ", "moulsniff ");
    let shell = Command::new("sh")
        .args(["-c", &command])
        .env("PATH", path)
        .env_remove("COLUMNS")
        .env_remove("NO_COLOR")
        .current_dir(root())
        .output()
        .unwrap();
    let mut out = String::from_utf8(shell.stdout).unwrap();
    out.push_str(&String::from_utf8(shell.stderr).unwrap());
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    match shell.status.code() {
        Some(0) => {}
        Some(n) => out.push_str(&format!("[exit {n}]\n")),
        None => out.push_str("[killed]\n"),
    }
    Some(out.lines().map(|l| format!("{}\n", l.trim_end())).collect())
}
