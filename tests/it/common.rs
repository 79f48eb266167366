//! What the tests of the whole program share: running it, and reading what was recorded beside the
//! captures.

#![allow(dead_code)] // not every test reads what was recorded

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use serde_json::Value;
use similar::TextDiff;

/// A file of the repository.
pub fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// A file or folder that a test makes, among those that cargo keeps for tests. It may be there from
/// an earlier run.
pub fn scratch(name: impl AsRef<Path>) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// The path of a key file for `--pseudonyms`; `name` is that of the test's own.
pub fn pseudonyms_key(name: &str) -> String {
    let path = scratch(name);
    std::fs::write(&path, "moulsniff pseudonyms 1\n00112233445566778899aabbccddeeff\n").unwrap();
    path.display().to_string()
}

/// The program, which reads no configuration file of whoever runs the tests.
pub fn program() -> Command {
    without_config(Command::new(env!("CARGO_BIN_EXE_moulsniff")))
}

/// A shell in which the same holds for the program.
pub fn shell() -> Command {
    without_config(Command::new("sh"))
}

/// A command under which the program reads no configuration file of whoever runs the tests.
pub fn without_config(mut command: Command) -> Command {
    // No such folder exists.
    let none = scratch("no-config");
    command.env("XDG_CONFIG_HOME", &none).env("APPDATA", &none);
    command
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
    let mut program = program();
    program.current_dir(file("")).args([capture, "--json", "--quiet"]).args(more);
    for key in keys {
        program.args(["--keys", key]);
    }
    let output = program.output().unwrap();
    assert!(output.status.success(), "{capture}: {}", String::from_utf8_lossy(&output.stderr));
    output
        .stdout
        .split(|b| *b == b'\n')
        .filter(|l| !l.is_empty())
        .map(|l| serde_json::from_slice(l).unwrap())
        .collect()
}

/// Holds a kept file against what is printed now: fails with a unified diff, or rewrites the file
/// where the variable `switch` is `write`.
pub fn hold(path: &Path, printed: &str, switch: &str) {
    if std::env::var_os(switch).is_some_and(|v| v == "write") {
        std::fs::write(path, printed).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(path).unwrap();
    if kept != printed {
        let name = path.strip_prefix(file("")).unwrap_or(path).display();
        let diff = unified(&kept, printed, &format!("{name} (kept)"), "printed now");
        panic!("{name} is not what is printed now; {switch}=write rewrites it.\n{diff}");
    }
}

/// The difference of two texts, as `diff -u` prints it.
pub fn unified(old: &str, new: &str, old_name: &str, new_name: &str) -> String {
    TextDiff::from_lines(old, new).unified_diff().header(old_name, new_name).to_string()
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

/// Waits until the program takes SIGINT: before that, the signal would end any program.
#[cfg(target_os = "linux")]
pub fn wait_for_handler(child: &Child) {
    let takes_signals = || {
        let text = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & 1 << (2 - 1) != 0
    };
    while !takes_signals() {
        std::thread::yield_now();
    }
}

/// What a command writes to a terminal; nothing where no terminal can be had.
pub fn on_a_terminal(command: &str) -> Option<String> {
    let output = without_config(Command::new("script"))
        .args(["-q", "-e", "-c", command, "/dev/null"])
        .output();
    let Ok(output) = output else {
        eprintln!("not run, there is no `script` to make a terminal: {command}");
        return None;
    };
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stdout));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Numbers that look random and are always the same.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let x = (self.0 >> 33) ^ self.0;
        x.wrapping_mul(0xff51_afd7_ed55_8ccd) ^ x >> 29
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() >> 16) as usize % n.max(1)
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }
}
