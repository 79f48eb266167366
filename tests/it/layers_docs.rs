//! `docs/architecture.md` leads a reader through the program: every module has its row there, and
//! every file that it names exists.

use std::path::Path;

use crate::layers::modules;

const PAGE: &str = include_str!("../../docs/architecture.md");

#[test]
fn files_named_by_the_architecture_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut missing = Vec::new();
    let mut found = 0;
    for quoted in PAGE.split('`').skip(1).step_by(2).filter(|word| word.ends_with(".rs")) {
        let is_whole =
            quoted == "build.rs" || quoted.starts_with("src/") || quoted.starts_with("tests/");
        let place = if is_whole { "" } else { "src/" };
        found += 1;
        if !root.join(format!("{place}{quoted}")).exists() {
            missing.push(quoted);
        }
    }
    assert!(missing.is_empty(), "docs/architecture.md names files that do not exist: {missing:?}");
    assert!(found > 15, "only {found} files are named");
}

#[test]
fn every_module_has_a_row_in_the_architecture() {
    let rows: Vec<&str> = PAGE.lines().filter(|line| line.starts_with("| `")).collect();
    let has_row = |module: &str| {
        let quoted = format!("`{module}`");
        rows.iter().any(|row| row.split('|').nth(1).is_some_and(|cell| cell.contains(&quoted)))
    };
    let missing: Vec<&str> = modules().filter(|module| !has_row(module)).collect();
    assert!(missing.is_empty(), "docs/architecture.md has no row for {missing:?}");
}
