//! Tests start the program so that it reads no configuration file of whoever runs them.

use std::path::Path;

/// Files that may start it by themselves, and why.
const MAY: [&str; 2] = [
    // Has the functions for all others.
    "common.rs",
    // Also part of a test binary without these; it types `--no-config`.
    "made.rs",
];

#[test]
fn tests_start_the_program_by_the_common_functions() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let starts = ["env!(\"CARGO_BIN_EXE", "\"sh\"", "\"bash\""]
            .map(|what| format!("Command::new({what}"));
        if starts.iter().any(|start| text.contains(start)) && !MAY.contains(&name.as_str()) {
            wrong.push(name);
        }
    }
    assert!(
        wrong.is_empty(),
        "`common::program()` and `common::shell()` start the program, also in {wrong:?}"
    );
}
