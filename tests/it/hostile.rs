//! Hostile captures (`hostile_cases.rs`) against bounds: memory and output of records and
//! statistics, and instructions, which may only double where a capture does. `hostile_commands.rs`
//! has the other commands.
//!
//! `HOSTILE=DIR cargo test --test it hostile::write -- --ignored` writes the captures into a
//! folder, ten times as large (or `HOSTILE_TIMES` times), to try other programs and builds on them.

use std::io::{Cursor, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use crate::hostile_cases::{CASES, Case, DECODE_AS, KEY_FILE};
use crate::material;
use moulsniff::capture::{Capture, CaptureItem, Source};
use moulsniff::pipeline::{DecodeAs, Output, Pipeline, Setup};
use moulsniff::print::json::{JsonOptions, JsonWriter};
use moulsniff::proto::moul::keys::{KeyFile, KeyRing};
use moulsniff::proto::{LazyTables, PROTOCOLS};
use moulsniff::record::Record;
use moulsniff::session::Transport;

use crate::common::scratch;

/// Address space of a run (KiB), the program itself included.
const MAX_MEMORY: u32 = 256 << 10;

/// Bytes of output for each byte of the capture, and before the first one.
const MAX_OUTPUT: (usize, usize) = (256, 128 << 10);

/// How many times the instructions of a capture one of twice the size may take.
const MAX_GROWTH: f64 = 2.4;

/// Two sizes of a case that are compared, and how often the first has to be doubled for the second.
/// Of most cases the smaller one is a quarter of what other tests use, so that all of them together
/// take less than a minute.
fn sizes(case: &Case) -> (u32, u32, i32) {
    match case.size {
        ..4 => (case.size, case.size * 2, 1),
        size => (size / 4, size / 4 * 4, 2),
    }
}

fn keys() -> PathBuf {
    let path = scratch("hostile.keys");
    // Under another name first: tests run side by side.
    let own = path.with_extension(format!("{:?}", std::thread::current().id()));
    std::fs::write(&own, KEY_FILE).unwrap();
    std::fs::rename(own, &path).unwrap();
    path
}

/// Runs the program on a capture within bounds of memory; the bytes that it printed.
fn printed(case: &Case, arguments: &[&str], capture: &[u8]) -> usize {
    let mut shell = crate::common::shell();
    let line = format!("ulimit -v {MAX_MEMORY}; exec \"$0\" \"$@\"");
    shell
        .args(["-c", &line, env!("CARGO_BIN_EXE_moulsniff")])
        .args(arguments)
        .arg("-")
        .arg("--keys")
        .arg(keys());
    for port in DECODE_AS {
        shell.args(["--decode-as", port]);
    }
    // A further arena takes 64 MiB of address space whatever is in it.
    shell
        .env("MALLOC_ARENA_MAX", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = shell.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let length = std::thread::scope(|scope| {
        scope.spawn(move || drop(stdin.write_all(capture)));
        std::io::copy(&mut stdout, &mut std::io::sink()).unwrap()
    });
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let status = child.wait().unwrap();
    assert!(status.success(), "{} {arguments:?}: {status}: {said}", case.name);
    usize::try_from(length).unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn every_case_stays_within_bounds_of_memory_and_output() {
    // Of a small capture little text is allowed before messages are shortened.
    let ways: [&[&str]; 5] = [
        &["--max-output", "64K", "--json", "--spans"],
        &["--max-output", "64K", "-x", "--color", "always"],
        &["--max-output", "64K", "--oneline"],
        &["stats"],
        &["sessions"],
    ];
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(case) =
                    CASES.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    let capture = (case.make)(case.size);
                    for way in ways {
                        let length =
                            printed(case, &[way, &["--threads", "1", "-q"]].concat(), &capture);
                        let most = MAX_OUTPUT.1 + MAX_OUTPUT.0 * capture.len();
                        assert!(
                            length <= most,
                            "{} {way:?}: {length} bytes for {}",
                            case.name,
                            capture.len()
                        );
                    }
                }
            });
        }
    });
}

#[test]
fn the_same_size_gives_the_same_capture() {
    for case in &CASES {
        assert!((case.make)(case.size) == (case.make)(case.size), "{}", case.name);
        let once = (case.make)(case.size).len();
        let twice = (case.make)(case.size * 2).len();
        assert!(twice > once, "{}: {once} and {twice} bytes", case.name);
    }
}

#[test]
#[ignore = "writes files for other tests"]
fn write() {
    let Some(folder) = std::env::var_os("HOSTILE").map(PathBuf::from) else { return };
    let times = std::env::var("HOSTILE_TIMES").map_or(10, |times| times.parse().unwrap());
    std::fs::create_dir_all(&folder).unwrap();
    for case in &CASES {
        std::fs::write(folder.join(case.name.replace(' ', "-")), (case.make)(case.size * times))
            .unwrap();
    }
    std::fs::write(folder.join("hostile.keys"), KEY_FILE).unwrap();
}

/// Counts the bytes of JSON.
struct Counter {
    writer: JsonWriter,
    line: Vec<u8>,
    bytes: usize,
}

impl Output for Counter {
    fn record(&mut self, record: &Record<'_>) {
        self.line.clear();
        self.writer.record(record, &mut self.line);
        self.bytes += self.line.len();
    }
}

/// Reads a capture to its end, as JSON. Its name is what the instructions are counted by.
#[inline(never)]
fn counted_run(pipeline: &mut Pipeline, capture: Vec<u8>) -> usize {
    let writer = JsonWriter::new(JsonOptions::default());
    let mut counter = Counter { writer, line: Vec::new(), bytes: 0 };
    let mut capture = Capture::new([Source::reader("hostile", Box::new(Cursor::new(capture)))]);
    while let Ok(Some(item)) = capture.next_item() {
        match item {
            CaptureItem::Frame(frame) => pipeline.frame(&frame, &mut counter),
            CaptureItem::Secrets(secrets) => {
                let of = PROTOCOLS
                    .iter()
                    .find(|p| p.secrets().is_some_and(|own| own.block_type() == secrets.kind));
                let Some(protocol) = of else { continue };
                let settings = pipeline.settings().named_mut(protocol.name()).unwrap();
                protocol.secrets().unwrap().carry(secrets.data, settings);
            }
        }
    }
    pipeline.finish(&mut counter);
    counter.bytes
}

/// A pipeline over tables that are compiled once for all of them.
fn pipeline(tables: &Arc<[LazyTables]>) -> Pipeline {
    let mut ring = KeyRing::default();
    ring.add(KeyFile::parse("hostile.keys", KEY_FILE.as_bytes()).unwrap());
    let mut setup = Setup { tables: Arc::clone(tables), ..material::setup(ring) };
    setup.decode_as = vec![
        DecodeAs { transport: Transport::Udp, port: 13_000, protocol: "secondlife".into() },
        DecodeAs { transport: Transport::Udp, port: 7000, protocol: "ouro".into() },
    ];
    Pipeline::new(setup)
}

/// What callgrind runs: every case in two sizes.
#[test]
#[ignore = "run by the test that counts instructions"]
fn steps() {
    let tables: Arc<[LazyTables]> =
        PROTOCOLS.iter().map(|p| LazyTables::new(*p, Vec::new()).unwrap()).collect();
    for tables in tables.iter() {
        tables.get();
    }
    for case in &CASES {
        let (small, large, _) = sizes(case);
        for size in [small, large] {
            let capture = (case.make)(size);
            let mut pipeline = pipeline(&tables);
            let begun = std::time::Instant::now();
            std::hint::black_box(counted_run(&mut pipeline, capture));
            println!("{} {size} {:?}", case.name, begun.elapsed());
        }
    }
}

/// `.ci/run` runs it by itself: beside other tests valgrind would take minutes.
#[test]
#[ignore = "run by .ci/run, under valgrind"]
#[cfg(target_os = "linux")]
fn twice_the_harm_takes_twice_the_instructions() {
    let folder = scratch(format!("callgrind-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut valgrind = crate::common::without_config(Command::new("valgrind"));
    valgrind.args([
        "--tool=callgrind",
        "--toggle-collect=it::hostile::counted_run",
        "--dump-after=*hostile::counted_run",
        "--compress-pos=no",
    ]);
    valgrind.arg(format!("--callgrind-out-file={}", folder.join("out").display()));
    valgrind.arg(std::env::current_exe().unwrap()).args([
        "hostile::steps",
        "--exact",
        "--ignored",
        "--test-threads",
        "1",
    ]);
    let Ok(output) = valgrind.output() else {
        println!("no valgrind: instructions are not counted");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Each return of the function gives a part of the profile, numbered from 1, and the program's
    // end the last one. Were one missing, all behind it would be taken for another case.
    assert_eq!(
        std::fs::read_dir(&folder).unwrap().count(),
        2 * CASES.len() + 1,
        "parts of the profile"
    );
    let total = |number: usize| -> u64 {
        let text = std::fs::read_to_string(folder.join(format!("out.{number}"))).unwrap();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("totals: ").or(line.strip_prefix("summary: ")));
        line.unwrap().trim().parse().unwrap()
    };
    let mut wrong = Vec::new();
    for (i, case) in CASES.iter().enumerate() {
        let once = total(2 * i + 1);
        let more = total(2 * i + 2);
        let (small, large, doublings) = sizes(case);
        assert!(
            once > 10_000 && more > 10_000,
            "{}: {once} and {more} instructions are no run",
            case.name
        );
        let growth = (more as f64 / once as f64).powf(1.0 / f64::from(doublings));
        println!("{:45} {once:12} {more:12} {growth:.2}", case.name);
        if growth > MAX_GROWTH {
            wrong.push(format!(
                "{}: {once} instructions in size {small}, {more} in size {large}",
                case.name
            ));
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
