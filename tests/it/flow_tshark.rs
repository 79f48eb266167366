//! Streams held against tshark: their numbers, ends and payload bytes, for files that dumpcap,
//! tshark, editcap and mergecap wrote. Where these are not installed, the test says so and passes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{file, scratch};
use moulsniff::capture::{Capture, Moment, Source};
use moulsniff::flow::{
    Cause, Dir, End, Flow, FlowLimits, FlowSink, Stream, StreamId, TcpOpening, Totals,
};

/// A TCP stream by its number: the sender and the receiver of the first frame, and what each sent,
/// in hex.
pub type Tcp = BTreeMap<u32, (String, String, [String; 2])>;
/// A datagram: its frame, its stream's number, its bytes in hex.
pub type Udp = Vec<(u64, u32, String)>;

#[derive(Default)]
pub struct Log {
    pub tcp: Tcp,
    pub udp: Udp,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

impl FlowSink for Log {
    fn tcp_open(&mut self, stream: &Stream, _: TcpOpening, _: Moment) {
        let from = stream.forward.to_string();
        let to = stream.backward.to_string();
        self.tcp.insert(stream.id.0, (from, to, Default::default()));
    }

    fn tcp_data(&mut self, stream: StreamId, dir: Dir, _: u64, bytes: &[u8], _: Moment) {
        let sent = &mut self.tcp.get_mut(&stream.0).unwrap().2;
        sent[usize::from(dir == Dir::Backward)].push_str(&hex(bytes));
    }

    fn tcp_gap(&mut self, _: StreamId, _: Dir, _: u64, _: u64, _: Cause, _: Moment) {}

    fn tcp_end(&mut self, _: StreamId, _: Dir, _: End, _: &Totals, _: Moment) {}

    fn udp(&mut self, stream: &Stream, _: Dir, bytes: &[u8], _: u32, at: Moment) {
        self.udp.push((at.frame, stream.id.0, hex(bytes)));
    }
}

pub fn ours(path: &Path) -> Log {
    ours_of(&[path.to_path_buf()])
}

/// Several files as one capture.
fn ours_of(paths: &[PathBuf]) -> Log {
    let mut flow = Flow::new(FlowLimits::default());
    let mut log = Log::default();
    let mut capture = Capture::new(paths.iter().map(Source::path));
    while let Some(frame) = capture.next_frame().unwrap() {
        flow.frame(&frame, &mut log);
    }
    flow.finish(&mut log);
    log
}

fn run(tool: &str, arguments: &[&str]) -> String {
    let out = Command::new(tool).args(arguments).output().unwrap();
    assert!(out.status.success(), "{tool} {arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

fn theirs(path: &Path) -> Log {
    let path = path.to_str().unwrap();
    let mut log = Log::default();
    let streams = run("tshark", &["-r", path, "-Y", "tcp", "-T", "fields", "-e", "tcp.stream"]);
    let last = streams.lines().filter_map(|line| line.trim().parse::<u32>().ok()).max();
    let asked: Vec<String> =
        (0..last.map_or(0, |last| last + 1)).map(|n| format!("follow,tcp,raw,{n}")).collect();
    let asked: Vec<&str> = asked.iter().flat_map(|follow| ["-z", follow]).collect();
    let text = if asked.is_empty() {
        String::new()
    } else {
        run("tshark", &[&["-r", path, "-q"][..], &asked].concat())
    };
    for text in text.split("Filter: tcp.stream eq ").skip(1) {
        let number = text.lines().next().unwrap().trim().parse().unwrap();
        let node = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("").trim().to_string()
        };
        let mut sent = [String::new(), String::new()];
        let hex =
            |l: &&str| !l.trim().is_empty() && l.trim().bytes().all(|b| b.is_ascii_hexdigit());
        for line in text.lines().skip(3).filter(hex) {
            sent[usize::from(line.starts_with('\t'))].push_str(line.trim());
        }
        log.tcp.insert(number, (node("Node 0:"), node("Node 1:"), sent));
    }
    let mut fields = vec!["-e", "frame.number", "-e", "udp.stream", "-e", "udp.payload"];
    fields.extend(["-e", "frame.protocols"]);
    let datagrams =
        run("tshark", &[&["-r", path, "-Y", "udp && !icmp", "-T", "fields"][..], &fields].concat());
    for line in datagrams.lines() {
        let parts: Vec<&str> = line.split('\t').collect();
        // In a tunnel, the last one is the innermost, unless the tunnel's own one is.
        let inner = parts[3].rsplit_once(":vxlan:").or(parts[3].rsplit_once(":geneve:"));
        if inner.is_some_and(|(_, inner)| !inner.contains(":udp")) {
            continue;
        }
        let innermost = |part: &str| part.rsplit(',').next().unwrap().replace(':', "");
        log.udp.push((
            parts[0].parse().unwrap(),
            innermost(parts[1]).parse().unwrap(),
            innermost(parts[2]),
        ));
    }
    log
}

pub fn compare(path: &Path) {
    let ours = ours(path);
    let theirs = theirs(path);
    assert_eq!(ours.udp.len(), theirs.udp.len(), "{}", path.display());
    for (mine, other) in ours.udp.iter().zip(&theirs.udp) {
        assert_eq!(mine, other, "{}", path.display());
    }
    assert_eq!(
        ours.tcp.keys().collect::<Vec<_>>(),
        theirs.tcp.keys().collect::<Vec<_>>(),
        "{}",
        path.display()
    );
    let mut bytes = 0;
    for (number, mine) in &ours.tcp {
        let other = &theirs.tcp[number];
        // Where no data was sent, either end may be called the first node.
        let swapped = mine.0 == other.1;
        let [a, b] = &other.2;
        let sent = if swapped { [b, a] } else { [a, b] };
        if !a.is_empty() || !b.is_empty() {
            let ends = if swapped { (&other.1, &other.0) } else { (&other.0, &other.1) };
            assert_eq!((&mine.0, &mine.1), ends, "{}: stream {number}", path.display());
        }
        for (ours, theirs) in mine.2.iter().zip(sent) {
            assert!(ours == theirs, "{}: stream {number}", path.display());
            bytes += theirs.len() / 2;
        }
    }
    let name = path.file_name().unwrap().to_string_lossy();
    println!("{name}: {} streams of {bytes} bytes, {} datagrams", ours.tcp.len(), ours.udp.len());
    assert!(bytes > 0 || !ours.udp.is_empty());
}

pub fn installed(tool: &str) -> bool {
    let there = Command::new(tool).arg("--version").output().is_ok_and(|out| out.status.success());
    if !there {
        println!("{tool} is not installed: what it writes is not compared");
    }
    there
}

#[test]
fn streams_are_those_tshark_finds_whatever_wrote_the_file() {
    if !["tshark", "editcap", "mergecap"].into_iter().all(installed) {
        return;
    }
    let folder = scratch("flow-tshark");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let to = |name: &str| folder.join(name);
    let text = |path: &PathBuf| path.to_str().unwrap().to_string();
    let cooked = text(&file("captures/moul/any_sll2.pcap"));
    let game = text(&file("captures/moul/kind_game.pcap"));
    let datagrams = text(&file("captures/ouro/coh_seed_udp.pcapng"));
    let edit = |name: &str, options: &[&str], from: &str| {
        let path = to(name);
        run("editcap", &[options, &[from, &text(&path)]].concat());
        compare(&path);
        path
    };
    edit("nanoseconds.pcap", &["-F", "nsecpcap"], &game);
    let commented = edit("commented.pcapng", &["-a", "3:a comment", "-t", "-0.5"], &game);
    edit("snapped.pcapng", &["-s", "120"], &datagrams);
    // In several files, which are one capture again.
    for (from, name) in [(&game, "part.pcapng"), (&datagrams, "part.pcap")] {
        let whole = edit("whole.pcapng", &[], from);
        run("editcap", &["-c", "20", from, &text(&to(name))]);
        let is_part = |path: &PathBuf| {
            path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("part_"))
        };
        let mut parts: Vec<PathBuf> =
            fs::read_dir(&folder).unwrap().map(|f| f.unwrap().path()).filter(is_part).collect();
        parts.sort();
        assert!(parts.len() > 2);
        let split = ours_of(&parts);
        let whole = ours(&whole);
        assert!(split.tcp == whole.tcp && split.udp == whole.udp, "{name}");
        parts.iter().for_each(|path| fs::remove_file(path).unwrap());
    }
    // Two interfaces with clocks and snap lengths of their own, and secrets.
    let nanoseconds = edit("short.pcap", &["-F", "nsecpcap", "-s", "90"], &datagrams);
    let merge = |name: &str, options: &[&str], from: &[&str]| {
        let path = to(name);
        run("mergecap", &[options, &["-w", &text(&path)], from].concat());
        compare(&path);
        path
    };
    merge("link_types.pcapng", &["-a"], &[&cooked, &game, &datagrams]);
    // A capture on two interfaces: each packet twice.
    merge("twice.pcapng", &["-I", "none"], &[&game, &game]);
    let interfaces = merge("interfaces.pcapng", &["-I", "none"], &[&text(&nanoseconds), &game]);
    let secrets = to("secrets.txt");
    fs::write(&secrets, "CLIENT_RANDOM 00 00\n").unwrap();
    edit(
        "with_secrets.pcapng",
        &["--inject-secrets", &format!("tls,{}", text(&secrets))],
        &text(&interfaces),
    );
    let sections = to("sections.pcapng");
    fs::write(
        &sections,
        [
            fs::read(&commented).unwrap(),
            fs::read(file("captures/moul/full_dirtsand.pcapng")).unwrap(),
        ]
        .concat(),
    )
    .unwrap();
    compare(&sections);
    let filtered = to("filtered.pcapng");
    run("tshark", &["-r", &game, "-Y", "tcp.len > 0", "-w", &text(&filtered)]);
    compare(&filtered);
    if installed("zstd") {
        let packed = to("packed.zst");
        // Small windows, which are put together anew many times, up to one that is not read block
        // by block.
        let large = text(&file("captures/moul/full_dirtsand.pcapng"));
        for how in [
            &["-1"][..],
            &["-19"],
            &["--fast=5", "--no-check"],
            &["--zstd=wlog=10"],
            &["-6", "--zstd=wlog=14"],
            &["--long=27"],
        ] {
            run("zstd", &[how, &["-q", "-f", &large, "-o", &text(&packed)]].concat());
            assert_eq!(ours(&packed).tcp, ours(Path::new(&large)).tcp, "{how:?}");
        }
    }
    if installed("dumpcap") {
        let path = to("dumped.pcapng");
        let mut program = Command::new("dumpcap");
        program.args(["-q", "-i", "-", "-w", &text(&path)]).stdin(fs::File::open(&game).unwrap());
        let done = program.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        if done.success() {
            compare(&path);
        }
    }
}
