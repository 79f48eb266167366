//! Live capture: on the loopback device, of real programs' traffic, said again by a small client
//! and server of the tests' own.
//!
//! What needs a right to capture is run where there is one, and says when not.
//!
//! A test binary of its own: with the feature `live` only this one is built again.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "it/common.rs"]
mod common;

use std::process::Output;

fn run(words: &[&str]) -> Output {
    crate::common::program().current_dir(env!("CARGO_MANIFEST_DIR")).args(words).output().unwrap()
}

/// A refusal is one line on standard error, with the status.
fn refused(words: &[&str], status: i32) -> String {
    let output = run(words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{words:?}: {said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(output.stdout.is_empty());
    said
}

#[test]
fn what_belongs_to_an_interface_needs_one() {
    for words in [
        &["-f", "tcp", "x.pcap"][..],
        &["-w", "out.pcapng", "x.pcap"],
        &["-i", "lo", "x.pcap"],
        &["-i", "lo", "--tail", "x"],
    ] {
        refused(words, 2);
    }
}

#[cfg(not(feature = "live"))]
#[test]
fn a_build_without_it_says_what_to_do() {
    for words in [&["-i", "lo"][..], &["-D"], &["stats", "-i", "lo"]] {
        let said = refused(words, 2);
        assert!(said.contains("--features live") && said.contains("tcpdump"), "{said}");
    }
}

#[cfg(feature = "live")]
mod with_libpcap {
    use super::{refused, run};
    use std::fs;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::path::PathBuf;
    use std::process::{Child, Command, Stdio};
    use std::sync::mpsc::{Receiver, channel};
    use std::thread;
    use std::time::Duration;

    use moulsniff::capture::{Capture, Moment};
    use moulsniff::flow::{
        Cause, Dir, End, Flow, FlowLimits, FlowSink, Stream, StreamId, TcpOpening, Totals,
    };
    use serde_json::Value;

    const CAPTURE: &str = "captures/moul/kind_game.pcap";
    const KEYS: [&str; 2] = ["--keys", "keys/dirtsand.ini"];
    const PATIENCE: Duration = Duration::from_secs(60);

    /// What both sides of the first stream said, in order, as it was on the wire.
    #[derive(Default)]
    struct Conversation(Vec<(Dir, Vec<u8>)>);

    impl FlowSink for Conversation {
        fn tcp_open(&mut self, _: &Stream, _: TcpOpening, _: Moment) {}
        fn tcp_data(&mut self, stream: StreamId, dir: Dir, _: u64, bytes: &[u8], _: Moment) {
            if stream.0 == 0 {
                self.0.push((dir, bytes.to_vec()));
            }
        }
        fn tcp_gap(&mut self, _: StreamId, _: Dir, _: u64, _: u64, _: Cause, _: Moment) {}
        fn tcp_end(&mut self, _: StreamId, _: Dir, _: End, _: &Totals, _: Moment) {}
        fn udp(&mut self, _: &Stream, _: Dir, _: &[u8], _: u32, _: Moment) {}
        fn udp_end(&mut self, _: StreamId, _: End, _: Moment) {}
    }

    fn conversation() -> Vec<(Dir, Vec<u8>)> {
        let mut capture =
            Capture::open(format!("{}/{CAPTURE}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let mut flow = Flow::new(FlowLimits::default());
        let mut found = Conversation::default();
        while let Some(frame) = capture.next_frame().unwrap() {
            flow.frame(&frame, &mut found);
        }
        flow.finish(&mut found);
        found.0
    }

    /// Says it again, over a connection of its own to a port with a listener.
    fn say_again(listener: &TcpListener) {
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        for (dir, bytes) in conversation() {
            let (from, to) = if dir == Dir::Forward {
                (&mut client, &mut server)
            } else {
                (&mut server, &mut client)
            };
            from.write_all(&bytes).unwrap();
            to.read_exact(&mut vec![0; bytes.len()]).unwrap();
        }
    }

    /// What a message is, without when and where it was captured.
    fn essence(records: &[Value]) -> Vec<Value> {
        let keys = ["from", "service", "message", "type", "offset", "length", "fields"];
        let messages = records.iter().filter(|r| r.get("event").is_none());
        messages
            .map(|r| keys.iter().map(|k| r.get(*k).cloned().unwrap_or_default()).collect())
            .collect()
    }

    fn json(words: &[&str]) -> Vec<Value> {
        let output = run(&[words, &KEYS, &["--json", "-q"]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect()
    }

    /// A program that captures on the loopback device; nothing where it may not.
    fn capturing(port: u16, keep: &str) -> Option<(Child, Receiver<Value>)> {
        let filter = format!("tcp port {port}");
        let mut command = crate::common::program();
        command
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .args(["-i", "lo", "-f", &filter, "-w", keep, "--json"])
            .args(KEYS);
        let mut program = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        // Byte by byte, so that what comes later is still there.
        let stderr = program.stderr.as_mut().unwrap();
        while !said.ends_with('\n') {
            let mut byte = [0];
            if stderr.read(&mut byte).unwrap() == 0 {
                break;
            }
            said.push(byte[0] as char);
        }
        if !said.starts_with("capturing on lo") {
            let _ = program.wait();
            assert!(said.contains("no right"), "{said}");
            eprintln!("not run, there is no right to capture: {said}");
            return None;
        }
        let (to, records) = channel();
        let stdout = BufReader::new(program.stdout.take().unwrap());
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let _ = to.send(serde_json::from_str(&line).unwrap());
            }
        });
        Some((program, records))
    }

    #[test]
    fn a_conversation_on_the_loopback_device_is_decoded_as_it_happens_and_kept() {
        let expected = essence(&json(&[CAPTURE, "-Y", "stream == 0"]));
        assert!(expected.len() > 50);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("live");
        fs::create_dir_all(&dir).unwrap();
        let keep = dir.join("kept.pcapng");
        let keep = keep.to_str().unwrap();
        let Some((mut program, records)) = capturing(listener.local_addr().unwrap().port(), keep)
        else {
            return;
        };
        say_again(&listener);
        // All messages come while the program still captures.
        let mut got = Vec::new();
        while essence(&got).len() < expected.len() {
            got.push(records.recv_timeout(PATIENCE).expect("a message did not come"));
        }
        assert!(program.try_wait().unwrap().is_none(), "it goes on until Ctrl-C");
        assert!(
            Command::new("kill")
                .args(["-INT", &program.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
        got.extend(records.iter());
        assert_eq!(program.wait().unwrap().code(), Some(0));
        let mut said = String::new();
        program.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(
            said.contains("0 packets dropped by the kernel") && said.contains(" messages, "),
            "{said}"
        );
        assert_eq!(essence(&got), expected);
        assert!(!got.iter().any(|r| r["event"] == "gap"));
        // What was kept says the same.
        assert_eq!(essence(&json(&[keep])), expected);
    }

    #[test]
    fn what_cannot_be_captured_is_one_clear_line() {
        let listed = run(&["-D"]);
        assert!(listed.status.success());
        assert!(String::from_utf8_lossy(&listed.stdout).lines().any(|l| l.starts_with("lo\t")));
        let output = run(&["-i", "lo", "-f", "tcp prot 5"]);
        if String::from_utf8_lossy(&output.stderr).contains("no right") {
            eprintln!("not run, there is no right to capture");
            return;
        }
        let said = refused(&["-i", "lo", "-f", "tcp prot 5"], 2);
        assert!(said.contains("pcap-filter"), "{said}");
        let said = refused(&["-i", "nosuch0"], 1);
        assert!(said.contains("no interface `nosuch0`") && said.contains("lo"), "{said}");
    }
}
