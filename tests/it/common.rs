//! What the tests of the whole program share: running it, and reading what was recorded beside the captures.

#![allow(dead_code)] // not every test reads what was recorded

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// A file of the repository.
pub fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The JSON of a file, which may be compressed.
pub fn json(name: &str) -> Value {
    let mut text = Vec::new();
    let mut from = File::open(file(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    if name.ends_with(".gz") {
        flate2::read::GzDecoder::new(from).read_to_end(&mut text).unwrap();
    } else {
        from.read_to_end(&mut text).unwrap();
    }
    serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The records the program prints for a capture; it must succeed.
pub fn records(capture: &str, keys: &[&str], more: &[&str]) -> Vec<Value> {
    let mut program = Command::new(env!("CARGO_BIN_EXE_moulsniff"));
    program.current_dir(file("")).args([capture, "--json", "--quiet"]).args(more);
    for key in keys {
        program.args(["--keys", key]);
    }
    let output = program.output().unwrap();
    assert!(output.status.success(), "{capture}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout.split(|b| *b == b'\n').filter(|l| !l.is_empty()).map(|l| serde_json::from_slice(l).unwrap()).collect()
}

/// Arbitrary numbers, the same in every run.
pub fn random() -> impl FnMut() -> usize {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed >> 16).unwrap()
    }
}
