//! `moulsniff export files`: what comes out is what servers sent, whatever way it travelled; and
//! what did not come is said.

use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::common::{file, scratch};
use crate::made::{End, Made, end};

/// An empty folder for a test.
fn folder(name: &str) -> PathBuf {
    let path = scratch(format!("export-{name}"));
    let _ = std::fs::remove_dir_all(&path);
    path
}

/// Exports files, and returns the lines of the index.
fn export(capture: &str, more: &[&str], to: &Path) -> Vec<Value> {
    let mut program = crate::common::program();
    program
        .current_dir(file(""))
        .args(["export", "files", capture, "--json", "--quiet", "-o"])
        .arg(to)
        .args(more);
    let output = program.output().unwrap();
    assert!(output.status.success(), "{capture}: {}", String::from_utf8_lossy(&output.stderr));
    output
        .stdout
        .split(|b| *b == b'\n')
        .filter(|l| !l.is_empty())
        .map(|l| serde_json::from_slice(l).unwrap())
        .collect()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Size and SHA-256 of a file in a folder.
fn sum(folder: &Path, name: &str) -> (usize, String) {
    let content = std::fs::read(folder.join(name)).unwrap();
    (content.len(), sha256(&content))
}

/// The server's own lists have sizes and MD5 of what it keeps; the auth connection's chunks are in
/// what the client noted.
#[test]
fn downloads_are_what_the_server_keeps() {
    let to = folder("downloads");
    let index = export("captures/moul/full_dirtsand.pcapng", &["--keys", "keys/dirtsand.ini"], &to);
    for name in ["dat/small.age", "UruExplorer.exe", "dat/Personal.prp"] {
        let line = index.iter().find(|line| line["name"] == name).unwrap();
        let remarks = line["remarks"].as_array().unwrap();
        assert_eq!(line["complete"], true);
        for right in ["MD5 as listed", "gzip opened", "the file MD5 as listed"] {
            assert!(remarks.iter().any(|remark| remark == right), "{name}: {remarks:?}");
        }
    }
    let listed = std::fs::read_to_string(to.join("listed.csv")).unwrap();
    for name in ["SDL/city.sdl", "Python/python.pak", "Python/small.pak"] {
        let size = sum(&to, name).0;
        let wire = name.replace('/', "\\");
        assert!(
            listed.lines().any(|line| line.contains(&format!(",{wire},{wire},{size},"))),
            "{name}: {size}"
        );
    }
    for line in index.iter().filter(|line| line["name"].is_string()) {
        let content = std::fs::read(to.join(line["name"].as_str().unwrap())).unwrap();
        assert_eq!(line["sha256"], sha256(&content));
        assert_eq!(line["size"], content.len());
    }
    let scripts = std::fs::read(to.join("SDL/city.sdl")).unwrap();
    assert!(scripts.starts_with(b"# /*==LICENSE==*"), "it was opened with the key of the login");
    let refused: Vec<&Value> =
        index.iter().filter(|line| line["refused"] == "kNetErrFileNotFound").collect();
    assert!(refused.iter().any(|line| line["wire_name"] == "..\\etc" && line["name"].is_null()));
    let names = std::fs::read_dir(&to)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(!names.into_iter().any(|name| name.ends_with(".part")), "nothing unfinished is left");
}

#[test]
fn a_second_run_replaces_nothing() {
    let to = folder("again");
    let keys = ["--keys", "keys/dirtsand.ini"];
    export("captures/moul/full_dirtsand.pcapng", &keys, &to);
    std::fs::write(to.join("empty.txt"), "mine").unwrap();
    let again = export("captures/moul/full_dirtsand.pcapng", &keys, &to);
    assert_eq!(std::fs::read(to.join("empty.txt")).unwrap(), b"mine");
    assert!(again.iter().any(|line| line["name"] == "empty-2.txt"));
    assert!(to.join("index-2.csv").exists() && to.join("index.csv").exists());
}

#[test]
fn what_is_lost_is_said_and_the_rest_stays_in_its_place() {
    let whole = folder("whole");
    export("captures/moul/full_dirtsand.pcapng", &["--keys", "keys/dirtsand.ini"], &whole);
    let sent = std::fs::read(whole.join("dat/exact32k.bin")).unwrap();
    let to = folder("gaps");
    let index = export("captures/moul/mangled_gaps.pcap.gz", &["--keys", "keys/dirtsand.ini"], &to);
    let line = index.iter().find(|line| line["wire_name"] == "dat/exact32k.bin").unwrap();
    assert_eq!(
        (&line["complete"], &line["missing"][0]),
        (&Value::Bool(false), &"bytes 0 to 32767".into())
    );
    let have = std::fs::read(to.join(line["name"].as_str().unwrap())).unwrap();
    assert!(line["name"].as_str().unwrap().ends_with(".partial"));
    assert!(sent.len() == have.len() && sent[32768..] == have[32768..]);
    assert!(have[..32768].iter().all(|byte| *byte == 0));
}

/// A circuit whose datagrams a test writes.
struct Circuit {
    made: Made,
    client: End,
    server: End,
    sequence: u32,
}

impl Circuit {
    fn new() -> Circuit {
        Circuit { made: Made::new(), client: end(1, 40000), server: end(2, 9000), sequence: 0 }
    }

    fn say(&mut self, from_client: bool, body: &[u8]) {
        self.sequence += 1;
        let datagram = [&[0][..], &self.sequence.to_be_bytes(), &[0], body].concat();
        let ends =
            if from_client { (self.client, self.server) } else { (self.server, self.client) };
        self.made.udp(ends, &datagram);
    }

    /// Asks for a file by Xfer.
    fn ask(&mut self, id: u64, name: &str) {
        let name = [&[name.len() as u8 + 1][..], name.as_bytes(), &[0]].concat();
        let end = [&[4, 1, 0][..], &[0; 16], &(-1_i16).to_le_bytes()].concat();
        self.say(true, &[&[0xff, 0xff, 0, 156][..], &id.to_le_bytes(), &name, &end].concat());
    }

    fn piece(&mut self, id: u64, number: u32, bytes: &[u8]) {
        let length = (bytes.len() as u16).to_le_bytes();
        self.say(
            false,
            &[&[18][..], &id.to_le_bytes(), &number.to_le_bytes(), &length, bytes].concat(),
        );
    }

    fn export(&self, name: &str, more: &[&str]) -> (PathBuf, Vec<Value>) {
        let to = folder(name);
        let capture = to.with_extension("pcap");
        std::fs::write(&capture, &self.made.bytes).unwrap();
        let mut all = vec!["--decode-as", "udp:9000=secondlife"];
        all.extend(more);
        let index = export(capture.to_str().unwrap(), &all, &to);
        (to, index)
    }
}

/// Pieces of an Xfer in a thousand bytes each: the first has the length before it, the last is
/// marked.
fn pieces(content: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let counted = [&(content.len() as u32).to_le_bytes()[..], content].concat();
    let first = counted.len().min(1004);
    let mut all = vec![counted[..first].to_vec()];
    all.extend(counted[first..].chunks(1000).map(<[u8]>::to_vec));
    let last = all.len() - 1;
    let mark = |at: usize| if at == last { 1 << 31 | at as u32 } else { at as u32 };
    all.into_iter().enumerate().map(|(at, bytes)| (mark(at), bytes)).collect()
}

#[test]
fn pieces_in_any_order_and_twice_make_the_file() {
    let content: Vec<u8> = (0..7321_u32).map(|n| (n * 7 % 251) as u8).collect();
    let mut circuit = Circuit::new();
    circuit.ask(7, "inventory.tmp");
    let all = pieces(&content);
    for at in [3, 0, 7, 3, 1, 1, 6, 2, 5, 0, 4, 4] {
        circuit.piece(7, all[at].0, &all[at].1);
    }
    // Late once more: it is known already.
    circuit.piece(7, all[2].0, &all[2].1);
    let (to, index) = circuit.export("order", &[]);
    assert_eq!(index.len(), 1);
    assert_eq!((&index[0]["complete"], &index[0]["name"]), (&true.into(), &"inventory.tmp".into()));
    assert_eq!(index[0]["sha256"], sha256(&content));
    assert_eq!(std::fs::read(to.join("inventory.tmp")).unwrap(), content);
}

#[test]
fn a_piece_that_is_missing_leaves_a_hole() {
    let content = vec![9; 4500];
    let mut circuit = Circuit::new();
    circuit.ask(7, "a.bin");
    for (number, bytes) in pieces(&content).iter().filter(|(number, _)| *number != 2) {
        circuit.piece(7, *number, bytes);
    }
    let (to, index) = circuit.export("hole", &[]);
    assert_eq!((&index[0]["complete"], &index[0]["missing"][0]), (&false.into(), &"part 2".into()));
    let have = std::fs::read(to.join("a.bin.partial")).unwrap();
    assert_eq!(have.len(), 4500);
    assert!(
        have[..2000].iter().all(|b| *b == 9)
            && have[2000..3000].iter().all(|b| *b == 0)
            && have[3000..].iter().all(|b| *b == 9)
    );
}

#[test]
fn thousands_of_files_at_once_and_names_that_lead_out() {
    let mut circuit = Circuit::new();
    let names = [
        "../../etc/passwd",
        "C:\\Windows\\con",
        "/absolute",
        "nul.txt",
        "a\u{202e}gpj.exe",
        "..",
        "",
        "same",
        "SAME",
        "same/below",
    ];
    for id in 0..3000 {
        circuit.ask(id, names[id as usize % names.len()]);
    }
    for id in (0..3000).rev() {
        let (number, bytes) = &pieces(format!("file {id}").as_bytes())[0];
        circuit.piece(id, *number, bytes);
    }
    let (to, index) = circuit.export("thousands", &[]);
    assert_eq!(index.len(), 3000);
    let mut seen = std::collections::BTreeSet::new();
    for line in &index {
        let name = line["name"].as_str().unwrap();
        assert!(seen.insert(name.to_lowercase()), "{name} twice");
        let path = to.join(name).canonicalize().unwrap();
        assert!(path.starts_with(to.canonicalize().unwrap()), "{name}");
        assert_eq!(line["sha256"], sha256(&std::fs::read(path).unwrap()));
    }
}

#[test]
fn a_file_longer_than_allowed_ends_there() {
    let mut circuit = Circuit::new();
    circuit.ask(7, "long");
    for (number, bytes) in pieces(&vec![1; 50_000]) {
        circuit.piece(7, number, &bytes);
    }
    let (to, index) = circuit.export("long", &["--max-file-size", "10K"]);
    assert_eq!(index[0]["complete"], false);
    assert!(index[0]["remarks"][0].as_str().unwrap().contains("--max-file-size"));
    assert!(std::fs::metadata(to.join("long.partial")).unwrap().len() <= 10 << 10);
}

/// Image parts: the first one in ImageData with codec, size and count, the others numbered.
fn image(circuit: &mut Circuit, id: u8, content: &[u8], order: &[usize]) {
    let parts: Vec<&[u8]> =
        [&content[..600]].into_iter().chain(content[600..].chunks(1000)).collect();
    for at in order {
        let data = [&(parts[*at].len() as u16).to_le_bytes()[..], parts[*at]].concat();
        let body = match at {
            0 => {
                let head =
                    [&[9][..], &[id; 16], &[2], &(content.len() as u32).to_le_bytes()].concat();
                [&head[..], &(parts.len() as u16).to_le_bytes(), &data].concat()
            }
            _ => [&[10][..], &[id; 16], &(*at as u16).to_le_bytes(), &data].concat(),
        };
        circuit.say(false, &body);
    }
}

#[test]
fn textures_come_out_whole_in_any_order_and_say_what_is_missing() {
    let content: Vec<u8> = (0..4600_u32).map(|n| (n * 13 % 253) as u8).collect();
    let mut circuit = Circuit::new();
    image(&mut circuit, 0x11, &content, &[0, 1, 2, 3, 4]);
    image(&mut circuit, 0x22, &content, &[3, 0, 4, 1, 1, 2, 0]);
    image(&mut circuit, 0x33, &content, &[0, 1, 3, 4]);
    let (to, index) = circuit.export("textures", &[]);
    assert_eq!(index.len(), 3, "{index:?}");
    for line in &index[..2] {
        assert_eq!((&line["complete"], &line["size"]), (&true.into(), &4600.into()), "{line}");
        assert_eq!(line["sha256"], sha256(&content));
    }
    assert_eq!(index[0]["name"], "11111111-1111-1111-1111-111111111111.j2c");
    let holed = std::fs::read(to.join(index[2]["name"].as_str().unwrap())).unwrap();
    assert!(index[2]["name"].as_str().unwrap().ends_with(".partial"));
    assert_eq!(index[2]["missing"][0], "part 2");
    assert!(
        holed[..1600] == content[..1600] && holed[2600..] == content[2600..],
        "the rest is in its place"
    );
}

/// A transfer's packets: TransferInfo with the size, then numbered pieces, the last one with the
/// status DONE.
fn transfer(circuit: &mut Circuit, id: u8, content: &[u8], order: &[usize]) {
    let asset = [&[id; 16][..], &0_i32.to_le_bytes()].concat();
    let counted = [&(asset.len() as u16).to_le_bytes()[..], &asset].concat();
    let request = [
        &[0xff, 0xff, 0, 153][..],
        &[id; 16],
        &2_i32.to_le_bytes(),
        &2_i32.to_le_bytes(),
        &[0; 4],
        &counted,
    ];
    circuit.say(true, &request.concat());
    let size = (content.len() as u32).to_le_bytes();
    let answer = [
        &[0xff, 0xff, 0, 154][..],
        &[id; 16],
        &2_i32.to_le_bytes(),
        &0_i32.to_le_bytes(),
        &[0; 4],
        &size,
    ];
    circuit.say(false, &[&answer.concat()[..], &[0, 0]].concat());
    let parts: Vec<&[u8]> = content.chunks(1000).collect();
    for at in order {
        let status = i32::from(*at == parts.len() - 1).to_le_bytes();
        let head =
            [&[17][..], &[id; 16], &2_i32.to_le_bytes(), &(*at as i32).to_le_bytes(), &status]
                .concat();
        let length = (parts[*at].len() as u16).to_le_bytes();
        circuit.say(false, &[&head[..], &length, parts[*at]].concat());
    }
}

#[test]
fn transfers_come_out_whole_in_any_order_and_say_what_is_missing() {
    let content: Vec<u8> = (0..3500_u32).map(|n| (n * 11 % 241) as u8).collect();
    let mut circuit = Circuit::new();
    transfer(&mut circuit, 0x44, &content, &[0, 1, 2, 3]);
    transfer(&mut circuit, 0x55, &content, &[3, 1, 1, 0, 2, 3]);
    transfer(&mut circuit, 0x66, &content, &[0, 2, 3]);
    let (to, index) = circuit.export("transfers", &[]);
    assert_eq!(index.len(), 3, "{index:?}");
    for line in &index[..2] {
        assert_eq!(
            (&line["complete"], &line["sha256"]),
            (&true.into(), &sha256(&content).into()),
            "{line}"
        );
    }
    assert_eq!(
        (&index[2]["complete"], &index[2]["missing"][0]),
        (&false.into(), &"part 1".into()),
        "{}",
        index[2]
    );
    let holed = std::fs::read(to.join(index[2]["name"].as_str().unwrap())).unwrap();
    assert!(holed[..1000] == content[..1000] && holed[2000..] == content[2000..]);
}

/// A status below zero is shown with its sign.
#[test]
fn a_refused_transfer_says_why() {
    let mut circuit = Circuit::new();
    let refused = |status: i32| {
        [
            &[0xff, 0xff, 0, 154][..],
            &[7; 16],
            &[2, 0, 0, 0],
            &[0; 4],
            &status.to_le_bytes(),
            &[0; 4],
            &[0, 0],
        ]
        .concat()
    };
    for (id, status) in [(7, -3), (8, -77)] {
        let asset = [&[20, 0][..], &[id; 20]].concat();
        let request =
            [&[0xff, 0xff, 0, 153][..], &[id; 16], &[2, 0, 0, 0], &[2, 0, 0, 0], &[0; 4], &asset];
        circuit.say(true, &request.concat());
        let mut answer = refused(status);
        answer[4..20].fill(id);
        circuit.say(false, &answer);
    }
    let (_, index) = circuit.export("refused", &[]);
    let why: Vec<&str> = index.iter().map(|line| line["refused"].as_str().unwrap()).collect();
    assert_eq!(why, ["INSUFFICIENT_PERMISSIONS", "-77"]);
}

/// Names that try everything, ten thousand of them, in one capture: what is around the folder stays
/// as it was.
#[test]
fn ten_thousand_hostile_names_write_nothing_outside() {
    let around = folder("hostile");
    let to = around.join("a/b/c/out");
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    let parts = [
        "../",
        "..\\",
        "/",
        "C:\\",
        "\\\\host\\share\\",
        "./",
        "con",
        "nul.txt",
        "a",
        "B",
        "\u{202e}",
        "~/",
        "-rf",
        ".ssh/",
        "...",
        " ",
        "index.csv",
        "%2e%2e/",
        "\u{ff0e}\u{ff0e}/",
        "x.partial",
        "é",
        "\u{1b}[2J",
        "COM1:",
        "file://",
    ];
    let mut circuit = Circuit::new();
    for id in 0..10_000_usize {
        let name = [id, id / 24, id / 576, id * 7 + 3].map(|at| parts[at % parts.len()]).concat();
        circuit.ask(id as u64, &name);
        let (number, bytes) = &pieces(format!("{id}").as_bytes())[0];
        circuit.piece(id as u64, *number, bytes);
    }
    let capture = around.join("names.pcap");
    std::fs::write(&capture, &circuit.made.bytes).unwrap();
    let index = export(capture.to_str().unwrap(), &["--decode-as", "udp:9000=secondlife"], &to);
    assert_eq!(index.len(), 10_000);
    let mut outside = Vec::new();
    let mut open = vec![around.clone()];
    while let Some(path) = open.pop().filter(|path| *path != to) {
        for entry in std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() { open.push(entry) } else { outside.push(entry) }
        }
    }
    assert_eq!(outside, [capture]);
    let root = to.canonicalize().unwrap();
    for line in &index {
        let path = to.join(line["name"].as_str().unwrap()).canonicalize().unwrap();
        assert!(path.starts_with(&root), "{line}");
    }
}
