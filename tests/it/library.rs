//! The library, as another crate sees it: what is public, how many crates it needs, that it gives
//! what the program prints.

use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use moulsniff::{Decoder, ErrorKind, Record, Severity, Value};

use crate::common::{file, hold};

const CAPTURE: &str = "captures/moul/golden.pcap";
const KEYS: &str = "keys/shard.keys";

fn records(capture: &str) -> Vec<Record> {
    let decoder = Decoder::new().keys(file(KEYS)).unwrap();
    decoder.open(file(capture)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn records_are_those_that_the_program_prints() {
    for capture in [CAPTURE, "captures/secondlife/session.pcapng", "captures/moul/kind_game.pcap"] {
        if !file(capture).exists() {
            continue;
        }
        for spans in [false, true] {
            let mut program = crate::common::program();
            program.args(["--json", "--quiet", "--keys"]).arg(file(KEYS)).arg(file(capture));
            let printed = program.args(spans.then_some("--spans")).output().unwrap().stdout;
            let printed = String::from_utf8(printed).unwrap();
            let here = records(capture);
            assert!(here.len() > 10);
            let json =
                here.iter().map(|record| if spans { record.json_spans() } else { record.json() });
            assert!(json.eq(printed.lines().map(str::to_owned)), "{capture}");
        }
    }
}

#[test]
fn trees_are_those_that_the_program_prints() {
    let mut program = crate::common::program();
    program.env("LC_ALL", "C.UTF-8").args(["--quiet", "--keys"]).arg(file(KEYS)).arg(file(CAPTURE));
    let printed = String::from_utf8(program.output().unwrap().stdout).unwrap();
    let here: String = records(CAPTURE).iter().map(|record| record.tree() + "\n").collect();
    let bare = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(bare(&here), bare(&printed));
}

#[test]
fn values_have_types() {
    let records = records(CAPTURE);
    let reply =
        records.iter().find(|record| record.message() == Some("Auth2Cli_AcctLoginReply")).unwrap();
    let result = reply.get("fields.result").unwrap();
    assert!(matches!(result, Value::Enum { .. }), "{result:?}");
    assert_eq!(result.as_str(), Some("kNetSuccess"));
    assert!(matches!(reply.get("fields.account_id"), Some(Value::Text(_))));
    assert_eq!(reply.get("fields.encryption_key").unwrap().elements().len(), 4);
    let whole = reply.get("fields").unwrap();
    assert_eq!(whole.field("result"), Some(&result));
    assert_eq!(reply.all("fields.encryption_key[*]").unwrap().len(), 4);
    assert!(reply.reply_to().is_some() && reply.elapsed().is_some());
    assert_eq!(reply.time_text().len(), "2026-11-20T09:30:27.123456Z".len());
    assert!(
        records.iter().flat_map(Record::problems).all(|problem| problem.severity < Severity::Error)
    );
    assert!(records.iter().any(|record| !record.names().is_empty()));
    assert!(
        records
            .iter()
            .any(|record| record.event() == Some("stream_end") && record.message().is_none())
    );
}

#[test]
fn spans_tile_each_message() {
    for record in records(CAPTURE).iter().filter(|record| record.message().is_some()) {
        let bits: u64 = record.spans().iter().map(|span| span.bits).sum();
        assert_eq!(bits, 8 * record.bytes().len() as u64, "{}", record.json());
    }
}

#[test]
fn secrets_are_hidden_where_that_is_asked() {
    let decoder = Decoder::new().keys(file(KEYS)).unwrap().redact();
    let all: Vec<Record> = decoder.open(file(CAPTURE)).unwrap().map(Result::unwrap).collect();
    let request =
        all.iter().find(|record| record.message() == Some("Cli2Auth_AcctLoginRequest")).unwrap();
    let hidden = request.get("fields").unwrap().to_string();
    assert!(hidden.contains("<redacted, 20 bytes>"), "{hidden}");
    assert!(request.json().contains("<redacted, 20 bytes>"));
}

#[test]
fn mistakes_are_told_by_their_kind() {
    let kind = |error: Option<moulsniff::Error>| error.unwrap().kind();
    let decoder = Decoder::new();
    assert_eq!(kind(decoder.open("no.pcap").err()), ErrorKind::Capture);
    assert_eq!(kind(Decoder::new().keys("no.keys").err()), ErrorKind::File);
    assert_eq!(kind(Decoder::new().file("kyes", "x").err()), ErrorKind::Given);
    assert_eq!(
        kind(Decoder::new().table_text("t", "protocol moul\nmesage").open(file(CAPTURE)).err()),
        ErrorKind::Table
    );
    assert_eq!(kind(Decoder::new().filter("fields.").open(file(CAPTURE)).err()), ErrorKind::Given);
    assert_eq!(
        kind(Decoder::new().decode_as("tcp:x=moul").open(file(CAPTURE)).err()),
        ErrorKind::Given
    );
    assert_eq!(kind(decoder.decode("moul.auth.client", &[1]).err()), ErrorKind::Bytes);
    assert_eq!(kind(decoder.decode("moul.auht.client", &[1]).err()), ErrorKind::Given);
}

#[test]
fn a_damaged_capture_gives_what_comes_before_the_damage() {
    let whole = std::fs::read(file(CAPTURE)).unwrap();
    let decoder = Decoder::new().keys(file(KEYS)).unwrap();
    let all: Vec<_> = decoder.bytes(whole[..whole.len() - 5].to_vec()).unwrap().collect();
    let bad: Vec<_> = all.iter().filter_map(|item| item.as_ref().err()).collect();
    assert!(all.len() > 10 && bad.len() == 1 && bad[0].kind() == ErrorKind::Capture, "{bad:?}");
}

/// A capture that goes on for ever: each packet of the one inside is read again and again.
struct Endless {
    capture: Vec<u8>,
    at: usize,
    /// Set when the reader is dropped.
    ended: Arc<AtomicBool>,
}

impl Drop for Endless {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

impl Read for Endless {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.capture.len() {
            self.at = 24;
        }
        let n = to.len().min(self.capture.len() - self.at);
        to[..n].copy_from_slice(&self.capture[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

#[test]
fn who_stops_taking_records_stops_the_reading() {
    let ended = Arc::new(AtomicBool::new(false));
    let endless = Endless {
        capture: std::fs::read(file(CAPTURE)).unwrap(),
        at: 0,
        ended: Arc::clone(&ended),
    };
    let mut records = Decoder::new().keys(file(KEYS)).unwrap().read("endless", endless).unwrap();
    assert_eq!(records.by_ref().take(20).filter(Result::is_ok).count(), 20);
    // The same packets again are no records: the thread reads on and on.
    std::thread::sleep(Duration::from_millis(50));
    assert!(!ended.load(Ordering::Relaxed));
    drop(records);
    let waited = (0..200).find(|_| {
        std::thread::sleep(Duration::from_millis(50));
        ended.load(Ordering::Relaxed)
    });
    assert!(waited.is_some(), "the thread goes on");
}

#[test]
fn without_the_program_there_are_few_crates() {
    let mut tree = Command::new(env!("CARGO"));
    tree.args([
        "tree",
        "--no-default-features",
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--offline",
        "--locked",
    ]);
    let output = tree.current_dir(file("")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut crates: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    crates.sort_unstable();
    crates.dedup();
    assert!(crates.len() <= 14, "{crates:?}");
    assert!(
        !["clap", "indicatif", "ctrlc", "serde_json"]
            .iter()
            .any(|unwanted| crates.contains(unwanted))
    );
}

/// The declarations of public items in the files of the library, in their order: what a change may
/// break for others.
fn public_items() -> String {
    let mut listing = String::new();
    let root = std::fs::read_to_string(file("src/lib.rs")).unwrap();
    let shown = root
        .split_once("\npub use library")
        .map_or(String::new(), |(_, rest)| format!("pub use library{rest}"));
    listing.push_str(&shown);
    for name in [
        "answers",
        "decoder",
        "encoder",
        "records",
        "owned",
        "owned/about",
        "values",
        "fields",
        "error",
    ] {
        let text = std::fs::read_to_string(file(&format!("src/library/{name}.rs"))).unwrap();
        listing.push_str(&format!("\n// {name}\n"));
        let mut owner = String::new();
        let mut open = false;
        for line in text.lines() {
            let bare = line.trim();
            if line.starts_with("impl")
                || line.starts_with("pub enum")
                || line.starts_with("pub struct")
            {
                owner = line.trim_end_matches(" {").to_owned();
                let own = [
                    "Collector<T>",
                    "Examiner",
                    "OwnedBody",
                    "OwnAnnotations",
                    "Parcels",
                    "RecordContext",
                ];
                let own = own.iter().any(|own| line.ends_with(&format!("{own} {{")))
                    || line.starts_with("impl TakeParcel for");
                if !own && (!line.starts_with("impl") || line.contains(" for ")) {
                    listing.push_str(&format!("{owner}\n"));
                }
            }
            let variant = owner.starts_with("pub enum")
                && line.starts_with("    ")
                && !bare.starts_with("//");
            if line == "}" {
                owner.clear();
            }
            if bare.starts_with("pub fn")
                || bare.starts_with("pub ") && line.starts_with("    ") && !bare.starts_with("pub(")
                || variant
            {
                open = bare.starts_with("pub fn") && !bare.ends_with('{');
                listing.push_str(&format!("    {}\n", bare.trim_end_matches(" {")));
            } else if open {
                listing.push_str(&format!("        {}\n", bare.trim_end_matches(" {")));
                open = !bare.ends_with('{');
            }
        }
    }
    listing
}

/// A changed line is a new second number of the version, and an entry in the change log.
#[test]
fn public_items_are_those_that_are_kept() {
    hold(Path::new(&file("tests/data/public-items.txt")), &public_items(), "PUBLIC_ITEMS");
}
