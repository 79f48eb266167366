//! Hostile captures (`hostile_cases.rs`, and those with hostile names here) through every command
//! that reads captures: exit status, memory, size of what is written, no half file, and no control
//! of a capture in any text. Twice the harm may write twice as much.
//!
//! Each case goes through a few of the commands in turn; with `HOSTILE_ALL=1` through all of them,
//! which takes minutes.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::hostile_cases::{CASES, Case, DECODE_AS, KEY_FILE, Line, mudmode, use_circuit_code};
use crate::made::{Made, end};

use crate::common::scratch;

/// Address space of a run (KiB), the program itself included.
const MAX_MEMORY: u32 = 256 << 10;

/// Bytes of output for each byte of the capture, and before the first one.
const MAX_OUTPUT: (u64, u64) = (256, 128 << 10);

/// How many times the growth of the capture its output may grow by, and how many bytes more in any
/// case.
const MAX_GROWTH: (f64, u64) = (1.1, 16 << 10);

/// `IN` is a capture, `LARGE` one with twice as much of the same, `OUT` a folder for what is
/// written. Of a small capture little text is allowed before messages are shortened.
const COMMANDS: [&[&str]; 23] = [
    &["report", "IN", "-o", "OUT/page.html"],
    &["export", "files", "IN", "-o", "OUT/files"],
    &["export", "vault", "IN", "-o", "OUT/vault.json"],
    &["export", "chat", "IN", "--json"],
    &["export", "messages", "IN", "-o", "OUT/messages.pcapng"],
    &["follow", "--all", "IN", "-o", "OUT/streams"],
    &["diff", "IN", "LARGE"],
    &["sessions", "--story", "--json", "IN"],
    &["IN", "--max-output", "64K", "--json", "--pseudonyms", "OUT/key", "--threads", "1"],
    &["split", "IN", "--into", "3", "-o", "OUT/parts"],
    &["keys", "strip", "IN", "-o", "OUT/without.pcapng"],
    &["keys", "inject", "IN", "-o", "OUT/with.pcapng"],
    &["export", "vault", "IN", "-o", "OUT/vault.dot"],
    &["export", "chat", "IN", "--copies"],
    &["follow", "--all", "--raw", "IN", "-o", "OUT/streams"],
    &["sessions", "--story", "IN"],
    &["sessions", "--csv", "IN"],
    &["stats", "--json", "IN"],
    &["diff", "IN", "LARGE", "--json"],
    &[
        "IN",
        "--max-output",
        "64K",
        "--csv",
        "--columns",
        "record,names,info,fields",
        "--threads",
        "1",
    ],
    &["IN", "--max-output", "64K", "--oneline", "-Y", "info ~ \"a\" or problems", "--threads", "1"],
    &["report", "IN", "--redact", "-o", "OUT/page.html"],
    &["IN", "--max-output", "64K", "--json", "--session", "1", "--threads", "1"],
];

/// How many of the commands each case goes through.
const IN_TURN: usize = 2;

/// What a sender may put where a name belongs: what programs keep for themselves, formulas, markup,
/// paths, controls, and nothing.
const NAMES: [&str; 12] = [
    "__proto__",
    "constructor",
    "=1+1\",'x",
    "</script><script>alert(1)</script><!--",
    "../../../tmp/moulsniff-escaped",
    "..\\..\\CON.",
    "a/b\u{0}c",
    "x\u{1b}[2J\u{7}\r\n#2  frame 9  forged\u{7f}\u{9b}\u{85}\u{202e}\u{2066}\u{2028}y",
    "{{}} $HOME `id` %s%n",
    "",
    " ",
    "-o",
];

/// Captures whose harm is in what is said, of each protocol that has text.
const SAYING: [Case; 3] = [
    Case { name: "names of Second Life", size: 12, make: names_of_circuit },
    Case { name: "names in the vault and of files", size: 12, make: names_of_vault },
    Case { name: "names of mudmode", size: 12, make: names_of_mudmode },
];

/// The `i`th name, of at most 200 bytes, and others after each round.
fn name(i: u32) -> String {
    let round = i as usize / NAMES.len();
    let name = NAMES[i as usize % NAMES.len()];
    if round == 0 { name.to_string() } else { format!("{name}{round}") }
}

/// Chat, and files that are sent.
fn names_of_circuit(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    let viewer = end(1, 40_001);
    let simulator = end(0, 13_000);
    made.udp((viewer, simulator), &use_circuit_code(1));
    let counted = |text: &str| [&[text.len() as u8 + 1][..], text.as_bytes(), &[0]].concat();
    let low = |sequence: u32, number: u16, body: &[u8]| {
        [&[0][..], &sequence.to_be_bytes(), &[0, 0xff, 0xff], &number.to_be_bytes(), body].concat()
    };
    for i in 0..n {
        let name = name(i);
        let said = [&[name.len() as u8 + 1, 0][..], name.as_bytes(), &[0]].concat();
        let chat = [&counted(&name)[..], &[i as u8 + 1; 32], &[1, 1, 1], &[0; 12], &said].concat();
        made.udp((simulator, viewer), &low(i * 3 + 2, 139, &chat));
        let id = u64::from(i + 1).to_le_bytes();
        let request = [&id[..], &counted(&name), &[2, 0, 0], &[0; 16], &[0, 0]].concat();
        made.udp((viewer, simulator), &low(i * 3 + 3, 156, &request));
        let content = b"\x04\0\0\0data";
        let piece = [&id[..], &0x8000_0000_u32.to_le_bytes(), &[8, 0], content].concat();
        let piece = [&[0][..], &(i * 3 + 4).to_be_bytes(), &[0, 18], &piece].concat();
        made.udp((simulator, viewer), &piece);
    }
    made.bytes
}

/// Nodes of a vault with names, and downloads.
fn names_of_vault(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    let mut line = Line::agreed(&mut made, 0, 10);
    for i in 0..n {
        let units: Vec<u8> = name(i).encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
        let text = [&(units.len() as u32).to_le_bytes()[..], &units].concat();
        // The node's number, its type (an image, a folder, a text note), and three texts.
        let mask = (1_u64 | 1 << 7 | 1 << 20 | 1 << 21 | 1 << 28).to_le_bytes();
        let kind = [25_u32, 22, 26][i as usize % 3].to_le_bytes();
        let node = [&mask[..], &(i + 1).to_le_bytes(), &kind, &text, &text, &text].concat();
        line.send(
            &mut made,
            0,
            &[&[26, 0][..], &(i + 1).to_le_bytes(), &(i + 1).to_le_bytes()].concat(),
        );
        let head =
            [&[24, 0][..], &(i + 1).to_le_bytes(), &[0; 4], &(node.len() as u32).to_le_bytes()]
                .concat();
        line.send(&mut made, 1, &[head, node].concat());
        // Each node is below the one before.
        let child = [&[i.to_le_bytes(), (i + 1).to_le_bytes(), [0; 4]].concat()[..], &[0]].concat();
        line.send(
            &mut made,
            0,
            &[&[32, 0][..], &(1000 + i).to_le_bytes(), &i.to_le_bytes()].concat(),
        );
        let refs = [&[29, 0][..], &(1000 + i).to_le_bytes(), &[0; 4], &1_u32.to_le_bytes(), &child]
            .concat();
        line.send(&mut made, 1, &refs);
    }
    made.bytes
}

/// Persons, muds, channels, and keys of mappings.
fn names_of_mudmode(n: u32) -> Vec<u8> {
    let quoted = |i| {
        name(i).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\0', "")
    };
    let startup = (
        0,
        "({\"startup-req-3\",5,\"A\",0,\"*i4\",0,1,0,0,1,1,1,\"m\",\"m\",\"m\",\"e\",([\"tell\":1,\
         ]),([]),})"
            .to_owned(),
    );
    let said = (0..n).flat_map(move |i| {
        let name = quoted(i);
        let chat = format!(
            "({{\"channel-m\",5,\"{name}\",\"{name}\",0,0,\"{name}\",\"{name}\",\"{name}\",}})"
        );
        let odd =
            format!("({{\"{name}\",5,\"A\",0,\"B\",0,([\"{name}\":([\"{name}\":1.5,]),]),}})");
        [(0, chat), (1, odd)]
    });
    mudmode(std::iter::once(startup).chain(said))
}

/// A folder of its own for a case.
fn folder(name: &str) -> PathBuf {
    let folder = scratch(format!("hostile-commands-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The program in a shell that bounds its memory. What it prints goes into the file `stdout` of
/// `folder`.
fn program(
    folder: &Path,
    words: impl Iterator<Item = String>,
    keys: bool,
) -> std::process::Command {
    let mut shell = crate::common::shell();
    let line = format!("ulimit -v {MAX_MEMORY}; exec \"$0\" \"$@\" >\"$STDOUT\"");
    shell.args(["-c", &line, env!("CARGO_BIN_EXE_moulsniff")]).args(words).arg("-q");
    if keys {
        let file = folder.join("keys");
        std::fs::write(&file, KEY_FILE).unwrap();
        shell.arg("--keys").arg(file);
    }
    // A further arena takes 64 MiB of address space whatever is in it.
    shell.env("MALLOC_ARENA_MAX", "1").env("STDOUT", folder.join("out/stdout"));
    shell.stdin(Stdio::null()).stderr(Stdio::piped());
    shell
}

fn decode_as() -> impl Iterator<Item = &'static str> {
    DECODE_AS.iter().flat_map(|port| ["--decode-as", port])
}

/// The files in a folder and in those within it, by their paths.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => all.extend(files(&entry.path())),
            false => drop(all.insert(entry.path(), std::fs::read(entry.path()).unwrap())),
        }
    }
    all
}

/// Whether a file has the bytes of a capture as they are: parts, exported files, streams.
fn holds_bytes(path: &Path, words: &[&str]) -> bool {
    let ends = |end: &str| path.extension().is_some_and(|extension| extension == end);
    ends("pcapng") || words.contains(&"--raw") || words[1] == "files" && !ends("csv")
}

/// Whether a capture is gzip or zstd.
fn is_packed(capture: &Path) -> bool {
    let bytes = std::fs::read(capture).unwrap();
    bytes.starts_with(&[0x1f, 0x8b]) || bytes.starts_with(&[0x28, 0xb5])
}

fn length(case: &Case, size: u32) -> usize {
    (case.make)(size).len()
}

/// Runs a command on a case of some size and holds everything but growth. Returns the bytes that
/// were written.
fn written(case: &Case, words: &[&str], size: u32, folder: &Path) -> u64 {
    let said = format!("{} {size} {words:?}", case.name);
    let input = folder.join("in");
    let large = folder.join("large");
    let out = folder.join("out");
    let _ = std::fs::remove_dir_all(&out);
    std::fs::create_dir_all(&out).unwrap();
    let capture = (case.make)(size);
    let mut length = capture.len() as u64;
    std::fs::write(&input, capture).unwrap();
    if words.contains(&"LARGE") {
        let capture = (case.make)(size * 2);
        length += capture.len() as u64;
        std::fs::write(&large, capture).unwrap();
    }
    let path = |word: &str| match word {
        "IN" => input.display().to_string(),
        "LARGE" => large.display().to_string(),
        _ => word.replace("OUT", out.to_str().unwrap()),
    };
    let alone = words[0] == "split" || words[1] == "strip";
    let mut program = program(folder, words.iter().map(|word| path(word)), !alone);
    if !alone && words[1] != "inject" {
        program.args(decode_as());
    }
    let done = program.output().unwrap();
    let error = String::from_utf8(done.stderr).unwrap();
    let status = done.status.code();
    let differ = words[0] == "diff" && status == Some(4);
    // Not every case has sessions whose keys can be given along, or any session.
    let none = status == Some(1) && words[1] == "inject" && error.contains("nothing was written")
        || status == Some(2)
            && words.contains(&"--session")
            && error.contains("there are no sessions");
    let remark = error.is_empty() || error.starts_with("moulsniff: keys in the capture: ");
    assert!(status == Some(0) && remark || differ || none, "{said}: {}: {error}", done.status);
    assert!(!error.contains("panicked") && error.lines().count() <= 1, "{said}: {error}");
    let mut bytes = 0;
    for (path, content) in files(&out) {
        let name = path.file_name().unwrap().to_string_lossy();
        assert!(!name.starts_with('.') && !name.ends_with(".part"), "{said}: {name} is left");
        bytes += content.len() as u64;
        if holds_bytes(&path, words) {
            continue;
        }
        let text = String::from_utf8(content).unwrap_or_else(|e| panic!("{said}: {name}: {e}"));
        let control = |c: &char| moulsniff::captured::is_control(*c) && *c != '\n';
        let csv = name.ends_with(".csv") || words.contains(&"--csv");
        let found: String =
            text.chars().filter(control).filter(|c| !(csv && *c == '\r')).take(10).collect();
        let found = if name.ends_with(".html") { found.replace('\t', "") } else { found };
        assert!(found.is_empty(), "{said}: {name} has {found:?}");
    }
    let most = MAX_OUTPUT.1 + MAX_OUTPUT.0 * length;
    // These write what the capture holds, unpacked.
    let copies = (words[0] == "split" || words[0] == "keys") && is_packed(&input);
    assert!(bytes <= most || copies, "{said}: {bytes} bytes for {length}");
    bytes
}

/// Every command within bounds of memory and output; twice the harm writes at most twice as much.
#[test]
fn every_command_stays_within_bounds() {
    let all = std::env::var_os("HOSTILE_ALL").is_some();
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = CASES.iter().chain(&SAYING).nth(index) else { break };
            let folder = folder(&format!("{index}"));
            // Names can do harm in any output.
            let whole = all || index >= CASES.len();
            let count = if whole { COMMANDS.len() } else { IN_TURN };
            for words in COMMANDS.iter().cycle().skip(index * IN_TURN).take(count) {
                let size = case.size.div_ceil(2);
                let once = written(case, words, size, &folder);
                let twice = written(case, words, size * 2, &folder);
                let growth = length(case, size * 2) as f64 / length(case, size) as f64;
                let most = (once as f64 * growth.max(2.0) * MAX_GROWTH.0) as u64 + MAX_GROWTH.1;
                assert!(
                    twice <= most,
                    "{} {words:?}: {once} bytes, and {twice} for twice the harm",
                    case.name
                );
            }
            std::fs::remove_dir_all(folder).unwrap();
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
    assert!(!Path::new("/tmp/moulsniff-escaped").exists());
}

/// What these cases say is what a capture of them shows: else they would prove nothing.
#[test]
fn the_names_are_read() {
    for (case, wanted) in
        SAYING.iter().zip(["ChatFromSimulator", "Auth2Cli_VaultNodeFetched", "channel-m"])
    {
        let folder = folder(&format!("names-{wanted}"));
        let input = folder.join("in");
        std::fs::write(&input, (case.make)(case.size)).unwrap();
        std::fs::create_dir_all(folder.join("out")).unwrap();
        let words = [input.to_str().unwrap(), "--json"].map(String::from);
        let mut program = program(&folder, words.into_iter(), true);
        program.args(decode_as());
        assert!(program.status().unwrap().success());
        let text = std::fs::read_to_string(folder.join("out/stdout")).unwrap();
        let found =
            text.lines().filter(|line| line.contains(&format!("\"message\":\"{wanted}\""))).count();
        assert_eq!(found, case.size as usize, "{}: {text}", case.name);
        assert!(text.contains("__proto__") && text.contains("moulsniff-escaped"), "{text}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}

/// Of two captures of very many streams one is read behind the other. What is compared is the same.
#[test]
fn two_captures_of_very_many_streams_are_compared() {
    let folder = folder("many-streams");
    std::fs::create_dir_all(folder.join("out")).unwrap();
    let circuits = CASES.iter().find(|case| case.name == "many circuits").unwrap();
    let less = folder.join("less");
    let more = folder.join("more");
    std::fs::write(&less, (circuits.make)(4200)).unwrap();
    std::fs::write(&more, (circuits.make)(4201)).unwrap();
    let compared = |a: &Path, b: &Path| {
        let words = ["diff", a.to_str().unwrap(), b.to_str().unwrap(), "--json"].map(String::from);
        let mut program = program(&folder, words.into_iter(), false);
        let status = program.args(decode_as()).status().unwrap().code();
        let text = std::fs::read_to_string(folder.join("out/stdout")).unwrap();
        let sum: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        (status, sum["same"].as_u64().unwrap())
    };
    assert_eq!(compared(&less, &less), (Some(0), 4200));
    assert_eq!(compared(&less, &more), (Some(4), 4200));
    assert_eq!(compared(&more, &less), (Some(4), 4200));
    std::fs::remove_dir_all(folder).unwrap();
}

/// The capture is written in two parts while it is read. The run ends by `-c`, behind the last
/// message before any event.
#[test]
fn a_growing_capture_gives_the_same_records() {
    for (index, case) in SAYING.iter().enumerate() {
        let folder = folder(&format!("tail-{index}"));
        std::fs::create_dir_all(folder.join("out")).unwrap();
        let whole = folder.join("whole");
        let growing = folder.join("growing");
        let capture = (case.make)(case.size);
        std::fs::write(&whole, &capture).unwrap();
        let run = |words: &[&str]| {
            let mut program = program(&folder, words.iter().map(ToString::to_string), true);
            program.args(decode_as());
            program
        };
        assert!(run(&[whole.to_str().unwrap(), "--json"]).status().unwrap().success());
        let printed = std::fs::read_to_string(folder.join("out/stdout")).unwrap();
        let kept: Vec<&str> =
            printed.lines().filter(|line| !line.contains("\"event\":\"stream_end\"")).collect();
        assert!(kept.len() > case.size as usize, "{}: {printed}", case.name);
        // The last ones may be known only at the end.
        let count = kept.len() / 2;
        let (first, rest) = capture.split_at(capture.len() / 3);
        std::fs::write(&growing, first).unwrap();
        let words = ["--tail", growing.to_str().unwrap(), "--json", "-c", &count.to_string()];
        let child = run(&words).spawn().unwrap();
        std::fs::File::options().append(true).open(&growing).unwrap().write_all(rest).unwrap();
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success() && done.stderr.is_empty(), "{}: {:?}", case.name, done);
        let tailed = std::fs::read_to_string(folder.join("out/stdout")).unwrap();
        assert_eq!(tailed.lines().collect::<Vec<_>>(), kept[..count], "{}", case.name);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
