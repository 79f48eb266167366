//! Several threads print what one prints, no more of it waits than is good, and what comes in by a
//! pipe is out at once.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::made::{ACK, FIN, Made, SYN, end, run};

use crate::common::scratch;

/// How long to wait for what has to come; a machine may be busy.
const PATIENCE: Duration = Duration::from_secs(30);
/// What the forms are printed with; each has caches or memory of its own.
const FORMS: [&[&str]; 8] = [
    &["--json"],
    &["--json", "--spans"],
    &["--json", "--redact"],
    &[],
    &["-x", "--color", "always", "--redact"],
    &["--columns", "record,time,message,*.node_id,fields.buffer,problems,reply_to"],
    &["--csv"],
    &["--filter", "fields.node_id > 1 or service == game or event == gap"],
];

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The program on all captures of the repository as one, several times over: more than a batch of
/// records.
fn program(times: usize) -> Command {
    command(&[], times)
}

/// A command of the program, on the same.
fn command(words: &[&str], times: usize) -> Command {
    let mut captures: Vec<PathBuf> = std::fs::read_dir(file("captures"))
        .unwrap()
        .filter_map(|folder| std::fs::read_dir(folder.unwrap().path()).ok())
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains(".pcap"))
        .collect();
    captures.sort();
    assert!(captures.len() > 10, "the captures are gone");
    let mut command = crate::common::program();
    command.current_dir(file("")).args(words).arg("--quiet");
    for _ in 0..times {
        command.args(&captures);
    }
    for key in
        ["keys/dirtsand.ini", "keys/nagus.ini", "keys/moss_auth_key.der", "keys/moss_game_key.der"]
    {
        command.args(["--keys", key]);
    }
    command
}

#[test]
fn what_is_printed_is_the_same_for_any_number_of_threads() {
    for form in FORMS {
        let printed =
            |threads: &str| program(1).args(form).args(["--threads", threads]).output().unwrap();
        let one = printed("1");
        assert!(one.stdout.len() > 200_000, "{form:?}: {}", String::from_utf8_lossy(&one.stderr));
        for threads in ["2", "5"] {
            let several = printed(threads);
            assert_eq!(several.status.code(), one.status.code());
            assert_eq!(several.stderr, one.stderr, "{form:?}");
            assert!(
                several.stdout == one.stdout,
                "{form:?}: {threads} threads print something else"
            );
        }
    }
}

#[test]
fn what_filters_keep_is_the_same_for_any_number_of_threads() {
    for filter in [
        "*.object_name == \"Nobody\"",
        "*.object_name contains \"a\"",
        "names[*].name contains \"e\"",
        "*.name == \"city\" or problems",
        "event == stream_end and bytes.lost > 0",
        "fields.buffer.player_id > 5",
    ] {
        for form in ["--json", "--columns=record,message,problems"] {
            let printed = |threads: &str| {
                let ran =
                    program(1).args([form, "-Y", filter, "--threads", threads]).output().unwrap();
                (ran.status.code(), ran.stderr, ran.stdout)
            };
            let one = printed("1");
            assert_eq!(one.0, Some(0), "{}", String::from_utf8_lossy(&one.1));
            assert!(["2", "5"].iter().all(|threads| printed(threads) == one), "{filter}, {form}");
        }
    }
}

#[test]
fn what_is_counted_is_the_same_for_any_number_of_threads() {
    for filter in [
        "",
        "service == game",
        "*.object_name == \"Nobody\"",
        "refused",
        "*.flags has kHasTimeSent",
        "event",
    ] {
        let counted = |threads: &str| {
            let filter: &[&str] = if filter.is_empty() { &[] } else { &["-Y", filter] };
            let ran = command(&["stats", "--json"], 2)
                .args(filter)
                .args(["--threads", threads])
                .output()
                .unwrap();
            (ran.status.code(), ran.stderr, String::from_utf8(ran.stdout).unwrap())
        };
        let one = counted("1");
        assert!(one.2.len() > 100, "{filter}: {}", String::from_utf8_lossy(&one.1));
        for threads in ["2", "5"] {
            assert_eq!(counted(threads), one, "{filter}, {threads} threads");
        }
    }
}

/// A connection is closed on both sides, then segments come far behind it under the same ports:
/// another connection with the same number, whose beginning was not captured.
#[test]
fn what_is_counted_of_two_connections_with_one_number_is_the_same_for_any_number_of_threads() {
    let client = end(1, 40_000);
    let server = end(2, 8_080);
    let text = b"({\"error\",5,\"a\",0,\"b\",0,\"not-imp\",\"x\",0,})";
    let packet = [&(text.len() as u32).to_be_bytes()[..], text].concat();
    let mut capture = Made::new();
    for round in 0..3_u32 {
        let begin = round * 0x2000_0000;
        if round == 0 {
            capture.tcp((client, server), (0, 0, SYN), &[]);
            capture.tcp((server, client), (0, 1, SYN | ACK), &[]);
        }
        let next = begin + 1 + packet.len() as u32;
        capture.tcp((client, server), (begin + 1, 1, ACK), &packet);
        capture.tcp((client, server), (next, 1, ACK | FIN), &[]);
        capture.tcp((server, client), (1, next + 1, ACK | FIN), &[]);
        capture.tcp((client, server), (next + 1, 2, ACK), &[]);
    }
    let counted = |threads: &str| {
        let counts = |record: &Value| (record["stream"].clone(), record["bytes"].clone());
        let (records, _) =
            run(&capture.bytes, &["--decode-as", "tcp:8080=intermud3", "--threads", threads]);
        records
            .iter()
            .filter(|record| record["event"] == "stream_end")
            .map(counts)
            .collect::<Vec<_>>()
    };
    let one = counted("1");
    let explained: Vec<u64> =
        one.iter().filter_map(|(_, bytes)| bytes["explained"].as_u64()).collect();
    assert!(explained.iter().filter(|bytes| **bytes == packet.len() as u64).count() > 1, "{one:?}");
    assert!(["2", "5"].iter().all(|threads| counted(threads) == one));
}

#[test]
fn a_number_of_threads_is_at_least_one() {
    let output = program(1).args(["--threads", "0"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1);
}

#[test]
fn a_reader_that_goes_away_ends_the_run_quietly() {
    for threads in ["1", "2", "5"] {
        let mut child = spawn(program(10).args(["--json", "--threads", threads]));
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        assert!(first.starts_with("{\"record\":1,"), "{first}");
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn what_nobody_reads_does_not_gather_in_memory() {
    for form in [&["--json", "--spans"][..], &["-x", "--color", "always"]] {
        // Some hundred megabytes of output.
        let mut child = spawn(program(10).args(form).args(["--threads", "5"]));
        let peak = || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
            let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
        };
        let began = Instant::now();
        let mut last = (0, Instant::now());
        // Until it has grown no more for a while.
        while began.elapsed() < PATIENCE && last.1.elapsed() < Duration::from_millis(1500) {
            thread::sleep(Duration::from_millis(50));
            last = if peak() > last.0 { (peak(), Instant::now()) } else { last };
        }
        let kib = last.0;
        drop(child.stdout.take());
        child.wait().unwrap();
        assert!(kib < 64 << 10, "{form:?}: {kib} KiB");
    }
}

/// The frames of a capture as they stand in the file, the first together with the file's header;
/// records of pcap, blocks of pcapng.
fn frames(capture: &[u8]) -> Vec<&[u8]> {
    let ng = capture.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]);
    let word = |at: usize| u32::from_le_bytes(capture[at..at + 4].try_into().unwrap()) as usize;
    let mut from = 0;
    let mut at = if ng { 0 } else { 24 };
    let mut found = Vec::new();
    while at < capture.len() {
        let (frame, end) =
            if ng { (word(at) == 6, at + word(at + 4)) } else { (true, at + 16 + word(at + 8)) };
        if frame {
            found.push(&capture[from..end]);
            from = end;
        }
        at = end;
    }
    found
}

/// The lines that a program prints, as they come.
fn lines(child: &mut Child) -> Receiver<String> {
    let (send, receive) = channel();
    let out = BufReader::new(child.stdout.take().unwrap());
    thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
    receive
}

fn spawn(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// A frame of zstd as its writer flushed it: the header with the first two blocks, each further
/// block, and what ends it.
fn flushed(packed: &[u8]) -> (Vec<&[u8]>, &[u8]) {
    // Magic number, descriptor, window.
    let mut from = 0;
    let mut at = 6;
    let mut found = Vec::new();
    loop {
        let block = u32::from_le_bytes([packed[at], packed[at + 1], packed[at + 2], 0]) as usize;
        if block & 1 == 1 {
            return (found, &packed[from..]);
        }
        let first = at == 6;
        at += 3 + if block >> 1 & 3 == 1 { 1 } else { block >> 3 };
        if !first {
            found.push(&packed[from..at]);
            from = at;
        }
    }
}

fn each_message_is_out_before_the_next_frame(capture: &str, threads: &str) {
    let bytes = std::fs::read(file(capture)).unwrap();
    each_message_is_out(capture, (frames(&bytes), b""), threads);
}

/// Writes a capture into a pipe, a piece with each frame, and the next one only once every message
/// that the last one completed has come out; at the end what no frame stands in.
fn each_message_is_out(capture: &str, (frames, end): (Vec<&[u8]>, &[u8]), threads: &str) {
    let program = |from: &str| {
        let mut command = crate::common::program();
        let keys = ["--keys", "keys/dirtsand.ini", "--keys", "keys/nagus.ini"];
        command
            .current_dir(file(""))
            .args([from, "--json", "--quiet", "--threads", threads])
            .args(keys);
        command
    };
    let whole = String::from_utf8(program(capture).output().unwrap().stdout).unwrap();
    // What is said at the capture's end belongs to the last frames, and comes when there are no
    // more.
    let at_end = |line: &str| {
        line.contains("still open at the capture's end") || line.contains("\"event\":\"undecoded\"")
    };
    let frame_of = |line: &str| {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["frame"].as_u64().unwrap()
    };
    let mut expected: Vec<(u64, &str)> = whole.lines().map(|line| (frame_of(line), line)).collect();
    // A key may be proved only by the message behind the first one: until then the first one cannot
    // be read.
    for key in (0..expected.len())
        .filter(|at| whole.lines().nth(*at).unwrap().contains("\"event\":\"key\""))
    {
        let frame = expected[key].0;
        let waits = expected[key..].iter().take_while(|line| line.0 == frame).count();
        let proof = expected.get(key + waits).map_or(frame, |line| line.0);
        expected[key..key + waits].iter_mut().for_each(|line| line.0 = proof);
    }
    let mut child = spawn(&mut program("-"));
    let out = lines(&mut child);
    let mut pipe = child.stdin.take().unwrap();
    let mut next = 0;
    let mut waits = Vec::new();
    for (number, frame) in (1..).zip(&frames) {
        pipe.write_all(frame).unwrap();
        pipe.flush().unwrap();
        let written = Instant::now();
        while expected.get(next).is_some_and(|(at, line)| *at <= number && !at_end(line)) {
            let line = out.recv_timeout(PATIENCE);
            assert_eq!(
                line.as_deref(),
                Ok(expected[next].1),
                "{capture}, {threads} threads, frame {number}"
            );
            waits.push(written.elapsed());
            next += 1;
        }
    }
    pipe.write_all(end).unwrap();
    drop(pipe);
    let rest: Vec<String> = out.iter().collect();
    assert_eq!(rest, expected[next..].iter().map(|e| e.1).collect::<Vec<_>>());
    assert!(
        waits.len() > 10 && rest.len() < waits.len() / 2,
        "{capture}: {} at once, {} later",
        waits.len(),
        rest.len()
    );
    waits.sort_unstable();
    // Nearly always: the machine may be busy with something else.
    let most = waits[waits.len() * 9 / 10];
    assert!(most < Duration::from_millis(100), "{capture}: {most:?}");
}

#[test]
fn from_a_pipe_a_message_is_out_when_its_last_byte_is_in() {
    for threads in ["1", "2", "5"] {
        each_message_is_out_before_the_next_frame("captures/moul/kind_game.pcap", threads);
        each_message_is_out_before_the_next_frame("captures/moul/full_dirtsand.pcapng", threads);
        each_message_is_out_before_the_next_frame("captures/moul/nagus.pcapng", threads);
    }
}

#[test]
fn a_message_is_out_when_the_block_of_zstd_with_its_last_byte_is_in() {
    // kind_gate.pcap, flushed behind each packet; later blocks repeat what earlier ones said.
    let packed = std::fs::read(file("tests/data/flushed.pcap.zst")).unwrap();
    let (blocks, end) = flushed(&packed);
    assert_eq!((blocks.len(), end.len()), (23, 7));
    for threads in ["1", "2"] {
        each_message_is_out("captures/moul/kind_gate.pcap", (blocks.clone(), end), threads);
    }
}

/// No stack of this size can be had, so no thread starts.
#[test]
#[cfg(target_pointer_width = "64")]
fn without_threads_everything_is_done_on_the_first_one() {
    let capture = "captures/moul/full_dirtsand.pcapng";
    let packed = scratch("without-threads.gz");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&std::fs::read(file(capture)).unwrap()).unwrap();
    std::fs::write(&packed, gzip.finish().unwrap()).unwrap();
    let packed = packed.to_str().unwrap();
    for words in [
        &[capture, "--json", "--threads", "8"][..],
        &[packed, "-x", "--threads", "8"],
        &["stats", packed],
        &["diff", capture, packed],
        &["diff", capture, "captures/moul/moss_full.pcapng", "--json"],
    ] {
        let run = |stack: Option<&str>| {
            let mut program = crate::common::program();
            program.current_dir(file("")).args(words).args(["-q", "--keys", "keys/dirtsand.ini"]);
            stack.map(|stack| program.env("RUST_MIN_STACK", stack));
            program.output().unwrap()
        };
        let usual = run(None);
        let without = run(Some("70368744177664"));
        assert_eq!(
            String::from_utf8_lossy(&without.stderr),
            String::from_utf8_lossy(&usual.stderr),
            "{words:?}"
        );
        assert!(without.status == usual.status && without.stdout == usual.stdout, "{words:?}");
    }
}
