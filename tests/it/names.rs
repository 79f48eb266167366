//! What earlier records call a message's numbers depends neither on what a filter keeps nor on the
//! number of threads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::common;

/// The lines of a capture's JSON by the number of their record.
fn lines(capture: &Path, more: &[&str]) -> BTreeMap<u64, String> {
    let mut program = common::program();
    program.current_dir(common::file("")).arg(capture).args(["--json", "--quiet"]).args(more);
    for key in [
        "dirtsand.ini",
        "nagus.ini",
        "moss_auth_key.der",
        "moss_game_key.der",
        "moss_gatekeeper_key.der",
    ] {
        program.args(["--keys", &format!("keys/{key}")]);
    }
    let output = program.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let number = |line: &str| {
        line["{\"record\":".len()..].split(',').next().unwrap().parse::<u64>().unwrap()
    };
    text.lines().map(|line| (number(line), line.to_string())).collect()
}

fn captures(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.to_string_lossy().into_owned();
        if path.is_dir() {
            captures(&path, found);
        } else if [".pcap", ".pcapng", ".pcap.gz", ".pcapng.gz"]
            .iter()
            .any(|end| name.ends_with(end))
        {
            found.push(path);
        }
    }
}

#[test]
fn every_record_is_the_same_with_a_filter_and_with_threads() {
    let mut all = Vec::new();
    captures(&common::file("captures"), &mut all);
    assert!(all.len() >= 15, "{all:?}");
    let mut named = 0;
    for capture in all {
        let whole = lines(&capture, &["--threads", "1"]);
        named += whole.values().filter(|line| line.contains("\"names\":{")).count();
        assert!(lines(&capture, &["--threads", "4"]) == whole, "{}: threads", capture.display());
        for filter in ["names", "from == server", "expects_reply or refused"] {
            for threads in ["1", "4"] {
                for (record, line) in lines(&capture, &["-Y", filter, "--threads", threads]) {
                    assert_eq!(
                        whole.get(&record),
                        Some(&line),
                        "{}: {filter}, {threads} threads",
                        capture.display()
                    );
                }
            }
        }
    }
    assert!(named > 1000, "{named} records with names");
}
