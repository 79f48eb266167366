//! The parts of a capture give what the whole gives.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::common::{self, scratch};

fn folder(name: &str) -> PathBuf {
    let path = scratch(name);
    let _ = fs::remove_dir_all(&path);
    path
}

fn split(captures: &[&str], more: &[&str], to: &PathBuf) -> Vec<PathBuf> {
    let mut program = crate::common::program();
    program.current_dir(common::file("")).arg("split").args(captures).args(more).arg("-o").arg(to);
    let output = program.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut parts: Vec<PathBuf> =
        fs::read_dir(to).unwrap().map(|entry| entry.unwrap().path()).collect();
    parts.sort();
    parts
}

/// A record without its own number and its stream's, which count within a part.
fn content(mut record: Value) -> String {
    let object = record.as_object_mut().unwrap();
    for key in ["record", "stream", "reply_to"] {
        object.remove(key);
    }
    record.to_string()
}

#[test]
fn the_records_of_all_parts_are_those_of_the_whole() {
    let captures = ["captures/moul/full_dirtsand.pcapng", "captures/secondlife/opensim.pcapng.gz"];
    let to = folder("split-whole");
    let parts = split(&captures, &["--into", "8"], &to);
    assert_eq!(parts.len(), 8);
    let mut apart = Vec::new();
    for part in &parts {
        apart.extend(
            common::records(part.to_str().unwrap(), &["keys/dirtsand.ini"], &[])
                .into_iter()
                .map(content),
        );
    }
    let mut whole = common::records(captures[0], &["keys/dirtsand.ini"], &[captures[1]]);
    whole.retain(|record| record.is_object());
    let mut whole: Vec<String> = whole.into_iter().map(content).collect();
    apart.sort();
    whole.sort();
    assert_eq!(apart.len(), whole.len());
    let apart = BTreeSet::from_iter(apart);
    let whole = BTreeSet::from_iter(whole);
    let missing: Vec<&String> = whole.difference(&apart).take(3).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_capture_is_no_part_of_itself() {
    let to = folder("split-itself");
    fs::create_dir_all(&to).unwrap();
    let input = to.join("part-00.pcapng");
    fs::copy(common::file("captures/moul/kind_gate.pcap"), &input).unwrap();
    let before = fs::read(&input).unwrap();
    let mut program = crate::common::program();
    let output =
        program.arg("split").arg(&input).args(["--into", "2", "-o"]).arg(&to).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::read(&input).unwrap(), before);
}
