//! The order of the modules: which may use which.
//! `docs/architecture.md` says why.

use std::path::{Path, PathBuf};

/// Every module, each followed by the modules before it that it may use. A module that is not
/// listed may be used by none.
#[rustfmt::skip]
const MODULES: &[(&str, &[&str])] = &[
    // How text from outside is shown: everybody may know that.
    (CAPTURED, &[]),
    (REMARK, &[]),
    (DIGITS, &[]),
    ("leb128", &[]),
    ("suggest", &[]),
    ("maps", &[]),
    ("output_file", &[]),
    ("folder", &[]),
    ("tree", &[]),
    ("table", &["leb128", "suggest", "maps", "tree"]),
    ("capture", &["suggest", "tree"]),
    ("flow", &["tree", "capture"]),
    // Of captures a session knows what a time is, and nothing else.
    ("session", &["tree", "table", "capture"]),
    ("record", &["tree", "table", "capture", "session"]),
    ("facts", &["maps", "tree", "table", "capture", "session", "record"]),
    ("proto", &["suggest", "maps", "tree", "table", "capture", "session"]),
    // Texts in a protocol's own format, turned into captures.
    ("texts", &["capture", "session", "proto"]),
    // Bytes as people copy them.
    ("dump", &[]),
    ("pseudonyms", &["maps", "tree", "table", "capture", "session"]),
    ("pdu", &["leb128", "tree", "table", "capture", "session", "record"]),
    ("print", &["leb128", "maps", "pdu", "facts", "record", "tree", "table", "capture", "session", "proto"]),
    // Questions about records: what an output is handed is what can be asked for.
    ("filter", &["suggest", "maps", "tree", "table", "capture", "session", "record", "facts", "proto", "print"]),
    ("examples", &["tree", "table", "session", "record", "proto", "print"]),
    // What the tables declare, for readers.
    ("reference", &["tree", "table", "record", "print", "examples"]),
    ("pipeline", &[
        "suggest", "maps", "pdu", "pseudonyms", "tree", "table", "capture", "flow", "session", "record", "facts", "proto",
        "filter",
    ]),
    // Two captures side by side.
    ("diff", &[
        "suggest", "tree", "table", "capture", "facts", "record", "session", "proto", "print", "filter", "pipeline",
    ]),
    // What others build on; the program does without it.
    ("library", &[
        "suggest", "folder", "record", "tree", "table", "capture", "flow", "session", "facts", "proto", "print",
        "filter", "pipeline", "texts", "diff",
    ]),
    // Captures read, decoded and handed to an output; no option of the command line.
    ("run", &[
        "suggest", "tree", "table", "capture", "flow", "session", "record", "facts", "proto", "print", "filter", "pipeline",
        "output_file", "texts",
    ]),
    ("cli", &[
        "texts", "dump",
        "suggest", "output_file", "folder", "tree", "table", "capture", "flow", "session", "record", "facts", "pdu",
        "pseudonyms", "proto", "print", "filter", "examples", "reference", "pipeline", "diff", "run",
    ]),
];

const CAPTURED: &str = "captured";

/// Where a line is said on standard error: everybody may do that.
const REMARK: &str = "remark";

/// Bytes as hex, UUIDs and milliseconds: every module may write them.
const DIGITS: &str = "digits";

#[test]
fn every_room_knows_only_rooms_before_it() {
    for (place, (module, may)) in MODULES.iter().enumerate() {
        for earlier in *may {
            assert!(
                MODULES.iter().take(place).any(|r| r.0 == *earlier),
                "{module} may know {earlier}, which comes later"
            );
        }
    }
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let module = module_of(&path);
        if matches!(module.as_str(), "lib" | "main") {
            continue;
        }
        let Some((_, may)) = MODULES.iter().find(|r| r.0 == module) else {
            panic!("the module {module} is missing in the list of modules");
        };
        for (number, line) in program_lines(&text) {
            for known in modules_named(line).filter(|known| {
                ![module.as_str(), CAPTURED, REMARK, DIGITS].contains(known) && !may.contains(known)
            }) {
                wrong.push(format!(
                    "{}:{number}: {module} may not know {known}: {}",
                    path.display(),
                    line.trim()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_session_knows_of_captures_what_a_time_is_and_nothing_else() {
    for (path, text) in sources()
        .into_iter()
        .filter(|(path, _)| ["session", "proto", "print"].contains(&module_of(path).as_str()))
    {
        for (number, line) in program_lines(&text)
            .filter(|(_, l)| l.contains("crate::capture::") || l.contains("crate::capture;"))
        {
            let known = [
                "crate::capture::Time;",
                "crate::capture::Moment;",
                "crate::capture::{Moment, Time};",
            ];
            assert!(known.iter().any(|k| line.contains(k)), "{}:{number}: {line}", path.display());
        }
    }
}

/// Words by which a protocol is known, beside the name of its folder. A protocol without an entry
/// is known by its folder alone.
const WORDS: [(&str, &[&str]); 4] = [
    (
        "moul",
        &[
            "uru",
            "plasma",
            "dirtsand",
            "moulars",
            "moss",
            "nagus",
            "sdl",
            "gamemgr",
            "creatable",
            "gatekeeper",
            "shard",
        ],
    ),
    ("secondlife", &["sl", "opensim", "linden", "viewer", "simulator", "circuit"]),
    ("intermud3", &["i3", "intermud", "mudmode", "mud", "muds"]),
    ("ouro", &["ourodev", "coh", "heroes", "cookie", "cookies", "dbserver"]),
];

#[test]
fn a_protocols_words_stay_in_its_folder() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/proto");
    let folders = std::fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir());
    let folders: Vec<String> =
        folders.map(|f| f.file_name().unwrap().to_string_lossy().into_owned()).collect();
    let mut wrong = Vec::new();
    for (path, text) in
        sources().into_iter().filter(|(path, _)| !path.ends_with("proto/registry.rs"))
    {
        for folder in
            folders.iter().filter(|folder| !path.starts_with(Path::new("src/proto").join(folder)))
        {
            let more = WORDS
                .iter()
                .find(|(protocol, _)| protocol == folder)
                .map_or(&[][..], |(_, words)| words);
            for (number, line) in program_lines(&text) {
                let said = words_of(line);
                if let Some(word) =
                    said.iter().find(|word| *word == folder || more.contains(&word.as_str()))
                {
                    let line = line.trim();
                    wrong.push(format!(
                        "{}:{number}: `{word}` belongs into src/proto/{folder}: {line}",
                        path.display()
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The words of a line in lower case: identifiers as a whole without underscores, and the words
/// they are made of.
fn words_of(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for identifier in line.split(|c: char| !c.is_alphanumeric() && c != '_') {
        words.push(identifier.replace('_', "").to_lowercase());
        let mut word = String::new();
        for c in identifier.chars() {
            if c == '_' || c.is_uppercase() && word.chars().last().is_some_and(char::is_lowercase) {
                words.push(std::mem::take(&mut word).to_lowercase());
            }
            word.extend(Some(c).filter(|c| *c != '_'));
        }
        words.push(word.to_lowercase());
    }
    words
}

#[test]
fn every_file_says_what_it_is_for() {
    let silent = sources().into_iter().filter(|(_, text)| !text.starts_with("//!"));
    let silent: Vec<String> = silent.map(|(path, _)| path.display().to_string()).collect();
    assert!(silent.is_empty(), "no paragraph says what these are for: {silent:?}");
}

#[test]
fn nothing_that_may_panic_outside_tests() {
    const WORDS: [&str; 7] = [
        ".unwrap()",
        ".expect(\"",
        "panic!(",
        "todo!(",
        "unimplemented!(",
        "unreachable!(",
        "unsafe ",
    ];
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        for (number, line) in program_lines(&text) {
            if WORDS.iter().any(|w| line.contains(w)) {
                wrong.push(format!("{}:{number}: {}", path.display(), line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn names_of_files_and_lines_on_standard_error_are_escaped_in_one_place() {
    // What is written, and the only files that may write it.
    const PLACES: [(&str, &[&str]); 4] = [
        (".display()", &["src/captured.rs"]),
        ("stderr()", &["src/remark.rs", "src/run/progress.rs", "src/cli/mod.rs"]),
        ("eprint", &[]),
        ("dbg!(", &[]),
    ];
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        for (number, line) in program_lines(&text) {
            let raw = PLACES.iter().find(|(word, may)| {
                line.contains(word) && !may.iter().any(|m| path == Path::new(m))
            });
            if let Some((word, _)) = raw {
                wrong.push(format!(
                    "{}:{number}: `{word}` goes past `captured::file_name` or `remark::say`",
                    path.display()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The names of all modules.
pub fn modules() -> impl Iterator<Item = &'static str> {
    MODULES.iter().map(|(module, _)| *module)
}

/// Every Rust file below `src`, its path relative to the repository.
pub fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut open = vec![root.join("src")];
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let within = path.strip_prefix(root).unwrap();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") && !is_test(within) {
                found.push((within.to_path_buf(), std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(found.len() > 50, "the sources are somewhere else");
    found.sort();
    found
}

/// Whether a file holds nothing but tests and what they need.
fn is_test(path: &Path) -> bool {
    let stem = path.file_stem().unwrap().to_string_lossy();
    let within = path.components().any(|c| c.as_os_str() == "tests");
    within || stem == "tests" || stem == "testing" || stem.ends_with("_tests")
}

fn module_of(path: &Path) -> String {
    let first = path.components().nth(1).unwrap();
    Path::new(&first).file_stem().unwrap().to_string_lossy().into_owned()
}

/// The lines of the program: no comments, and nothing of the tests at a file's end.
fn program_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let end = text.find("\nmod tests {").unwrap_or(text.len());
    let lines = text[..end].lines().enumerate().map(|(i, line)| (i + 1, line));
    lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// The text of the program, line by line where it was, without comments and tests.
pub fn program(text: &str) -> String {
    let mut all = String::new();
    let mut at = 1;
    for (number, line) in program_lines(text) {
        while at < number {
            all.push('\n');
            at += 1;
        }
        all.push_str(line.split(" // ").next().unwrap_or(line));
    }
    all
}

/// The modules that a line reaches by `crate::`.
fn modules_named(line: &str) -> impl Iterator<Item = &str> {
    let after = line.split("crate::").skip(1);
    after
        .flat_map(|rest| {
            let group = rest.strip_prefix('{').map(|g| g.split(',').collect::<Vec<_>>());
            group.unwrap_or_else(|| vec![rest])
        })
        .map(|word| {
            word.trim().split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("")
        })
        .filter(|word| MODULES.iter().any(|r| r.0 == *word))
}
