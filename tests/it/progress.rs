//! Progress is shown on a terminal, beside output that it does not touch, and nowhere else.
#![cfg(unix)]

use crate::common::{self, on_a_terminal, scratch};
use std::path::PathBuf;

/// A capture of some size: one that comes again and again as further sections, which pcapng allows.
fn large(name: &str) -> PathBuf {
    let path = scratch(name);
    let section = std::fs::read(common::file("captures/moul/full_dirtsand.pcapng")).unwrap();
    std::fs::write(&path, section.repeat((5 << 20) / section.len() + 1)).unwrap();
    path
}

#[test]
fn a_terminal_is_told_how_far_reading_has_come() {
    let capture = large("progress.pcapng");
    let program = env!("CARGO_BIN_EXE_moulsniff");
    let out = scratch("progress.json");
    let command =
        |more: &str| format!("{program} {} --json {more} > {}", capture.display(), out.display());
    let Some(shown) = on_a_terminal(&command("")) else { return };
    let beside = std::fs::read(&out).unwrap();
    assert!(shown.contains('%') && shown.contains("messages") && shown.contains("left"), "{shown}");
    // Without a terminal there is nothing but the summary, and the results are the same.
    let plain = crate::common::program().arg(&capture).arg("--json").output().unwrap();
    assert_eq!(plain.stdout, beside);
    let said = String::from_utf8_lossy(&plain.stderr).into_owned();
    assert!(said.contains(" frames, ") && !said.contains('%'), "{said}");
    let quiet = on_a_terminal(&command("--quiet")).unwrap();
    assert_eq!(quiet, "", "--quiet silences it");
}

#[test]
fn the_line_is_never_wider_than_the_terminal() {
    let capture = large("progress-narrow.pcapng");
    let program = env!("CARGO_BIN_EXE_moulsniff");
    let command =
        format!("stty rows 24 cols 30; {program} {} --json > /dev/null", capture.display());
    let Some(shown) = on_a_terminal(&command) else { return };
    // What was drawn, one state of the line after another; the summary at the end is no part of it.
    let states: Vec<&str> = shown.split(['\r', '\n']).filter(|state| state.contains('%')).collect();
    assert!(!states.is_empty(), "{shown:?}");
    for state in states {
        let text: String =
            state.split("\u{1b}[").map(|part| part.trim_start_matches("2K")).collect();
        assert!(text.chars().count() <= 30, "{state:?}");
    }
}

#[test]
fn results_on_the_same_terminal_come_in_whole_lines() {
    let capture = large("progress-same.pcapng");
    let program = env!("CARGO_BIN_EXE_moulsniff");
    let command = format!(
        "{program} {} --json -Y 'event == stream_end and from == server'",
        capture.display()
    );
    let Some(shown) = on_a_terminal(&command) else { return };
    let plain =
        crate::common::shell().args(["-c", &format!("{command} 2>/dev/null")]).output().unwrap();
    let expected = String::from_utf8(plain.stdout).unwrap();
    assert!(expected.lines().count() > 10);
    for line in expected.lines() {
        assert!(shown.contains(line), "{line}");
    }
}
