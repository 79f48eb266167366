//! The kept schema still describes what the program prints, and what the program prints is valid by
//! its own schema.
//!
//! `SCHEMA=write cargo test --test it schema` rewrites `docs/json.schema.json`; read the difference
//! before committing it.

use std::collections::HashSet;

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;

use crate::common::{file, hold, scratch};

const KEPT: &str = "docs/json.schema.json";

const MOSS: &[&str] = &["--keys", "keys/moss_auth_key.der", "--keys", "keys/moss_game_key.der"];
const DIRTSAND: &[&str] = &["--keys", "keys/dirtsand.ini"];

/// All captures, each with the words that read it.
const CAPTURES: &[(&str, &[&str])] = &[
    ("captures/moul/full_dirtsand.pcapng", DIRTSAND),
    ("captures/moul/kind_gate.pcap", DIRTSAND),
    ("captures/moul/kind_game.pcap", DIRTSAND),
    ("captures/moul/kind_game.pcap", &[]),
    ("captures/moul/any_sll2.pcap", DIRTSAND),
    ("captures/moul/clear.pcapng.gz", &[]),
    ("captures/moul/moss_full.pcapng", MOSS),
    ("captures/moul/nagus.pcapng", &["--keys", "keys/nagus.ini"]),
    ("captures/moul/synthetic_all.pcap.gz", DIRTSAND),
    ("captures/moul/mangled_gaps.pcap.gz", DIRTSAND),
    ("captures/moul/midstream.pcap", DIRTSAND),
    ("captures/secondlife/opensim.pcapng.gz", &[]),
    ("captures/secondlife/every_message.pcapng.gz", &[]),
    ("captures/intermud3/i3_coffeemud.pcapng", &[]),
    ("captures/intermud3/i3_edge_small.pcapng", &[]),
    ("captures/ouro/coh_seed_udp.pcapng", &[]),
    ("captures/ouro/coh_segs_udp.pcapng", &[]),
    ("captures/ouro/coh_tcp.pcap", &[]),
];

fn run(words: &[&str]) -> String {
    let mut command = crate::common::program();
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

struct Schema {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Schema {
    fn new() -> Schema {
        Schema::of("json.schema.json")
    }

    /// The schema, or what a place in it defines.
    fn of(place: &str) -> Schema {
        let schema: Value = serde_json::from_str(&run(&["schema"])).unwrap();
        let mut schemas = Schemas::new();
        let mut compiler = Compiler::new();
        compiler.add_resource("json.schema.json", schema).unwrap();
        let index = compiler.compile(place, &mut schemas).unwrap_or_else(|e| panic!("{e:#}"));
        Schema { schemas, index }
    }

    fn fault(&self, record: &Value) -> Option<String> {
        self.schemas.validate(record, self.index).err().map(|e| format!("{e:#}"))
    }
}

/// Lines of the kept schema may not change or go: programs read what they describe. New lines (a
/// message added to a table) need no new kept file.
#[test]
fn every_line_of_the_kept_schema_is_still_the_programs() {
    let kept = std::fs::read_to_string(file(KEPT)).unwrap();
    let made = run(&["schema"]);
    let lines = |text: &str| {
        text.lines().map(|l| l.trim_end_matches(',').to_string()).collect::<HashSet<_>>()
    };
    if !lines(&kept).is_subset(&lines(&made)) || std::env::var_os("SCHEMA").is_some() {
        hold(&file(KEPT), &made, "SCHEMA");
    }
}

#[test]
fn every_record_of_every_capture_is_as_the_schema_says() {
    let schema = Schema::new();
    let mut faults = Vec::new();
    for (capture, keys) in CAPTURES {
        for style in [&["--json"][..], &["--json", "--redact"], &["--json", "--spans"]] {
            let words = [&[*capture, "--quiet"], *keys, style].concat();
            // One of the edge cases is nested deeper than this parser goes.
            let records = run(&words);
            let records =
                records.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let found = records.filter_map(|r| {
                schema.fault(&r).map(|f| format!("{capture} {style:?} {}: {f}", r["record"]))
            });
            faults.extend(found.take(3));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn statistics_are_as_the_schema_says() {
    let schema = Schema::of("json.schema.json#/$defs/stats");
    for (capture, keys) in CAPTURES {
        let stats: Value =
            serde_json::from_str(&run(&[&["stats", *capture, "--json", "-q"], *keys].concat()))
                .unwrap();
        assert_eq!(schema.fault(&stats), None, "{capture}");
        let mut spoilt = stats;
        spoilt["bytes"]["payload"] = "1".into();
        assert!(schema.fault(&spoilt).is_some());
    }
}

#[test]
fn sessions_are_as_the_schema_says() {
    let schema = Schema::of("json.schema.json#/$defs/session");
    for (capture, keys) in CAPTURES {
        for story in [&["--story"][..], &[]] {
            let lines = run(&[&["sessions", *capture, "--json", "-q"], *keys, story].concat());
            assert!(!lines.is_empty());
            for line in lines.lines() {
                let mut session: Value = serde_json::from_str(line).unwrap();
                assert_eq!(schema.fault(&session), None, "{capture}: {line}");
                session["requests"]["sent"] = "1".into();
                assert!(schema.fault(&session).is_some());
            }
        }
    }
}

#[test]
fn pieces_of_streams_and_key_files_are_as_the_schema_says() {
    let schema = Schema::of("json.schema.json#/$defs/follow");
    for form in ["--hex", "--text"] {
        let gaps = [
            "follow",
            "tcp:1",
            "captures/moul/mangled_gaps.pcap.gz",
            "--keys",
            "keys/dirtsand.ini",
            "--json",
            form,
            "-q",
        ];
        let pieces: Vec<Value> =
            run(&gaps).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(
            pieces.iter().any(|p| p["event"] == "gap")
                && pieces.iter().any(|p| p["message"].is_string())
        );
        let faults: Vec<String> = pieces.iter().filter_map(|piece| schema.fault(piece)).collect();
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
    assert!(
        schema
            .fault(
                &serde_json::json!({ "from": "client", "time": "1970-01-01T00:00:00Z", "frame": 1 })
            )
            .is_some()
    );
    let schema = Schema::of("json.schema.json#/$defs/keys_check");
    let reports = run(&["keys", "check", "keys/dirtsand.ini", "keys/moss_auth_key.der", "--json"]);
    assert_eq!(reports.lines().count(), 2);
    for line in reports.lines() {
        let mut report: Value = serde_json::from_str(line).unwrap();
        assert_eq!(schema.fault(&report), None, "{line}");
        report["entries"][0]["secret"] = Value::Array(Vec::new());
        assert!(schema.fault(&report).is_some());
    }
}

/// Each line of what a command prints, and the same with a key too many.
fn lines_are_as_the_schema_says(schema: &Schema, lines: &[Value]) {
    assert!(!lines.is_empty());
    for line in lines {
        assert_eq!(schema.fault(line), None, "{line}");
        let mut spoilt = line.clone();
        spoilt["surplus"] = 1.into();
        assert!(schema.fault(&spoilt).is_some(), "{line}");
    }
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn exports_are_as_the_schema_says() {
    let (files, chat, vault) = (
        Schema::of("json.schema.json#/$defs/export_file"),
        Schema::of("json.schema.json#/$defs/export_chat"),
        Schema::of("json.schema.json#/$defs/export_vault"),
    );
    let to = scratch("schema-exports");
    let _ = std::fs::remove_dir_all(&to);
    std::fs::create_dir_all(&to).unwrap();
    for (number, (capture, keys)) in CAPTURES.iter().enumerate() {
        let out = to.join(format!("files-{number}"));
        let words =
            [&["export", "files", capture, "--json", "-q", "-o", out.to_str().unwrap()], *keys]
                .concat();
        let found = json_lines(&run(&words));
        let words = [&["export", "chat", capture, "--json", "-q", "--copies"], *keys].concat();
        let said = json_lines(&run(&words));
        for (schema, lines) in [(&files, found), (&chat, said)] {
            if !lines.is_empty() {
                lines_are_as_the_schema_says(schema, &lines);
            }
        }
        let out = to.join(format!("vault-{number}.json"));
        run(&[&["export", "vault", capture, "-q", "-o", out.to_str().unwrap()], *keys].concat());
        let text = std::fs::read_to_string(out).unwrap();
        lines_are_as_the_schema_says(&vault, &[serde_json::from_str(&text).unwrap()]);
    }
}

#[test]
fn differences_are_as_the_schema_says() {
    let one = Schema::of("json.schema.json#/$defs/diff");
    let sum = Schema::of("json.schema.json#/$defs/diff_sum");
    for [a, b] in [["golden.pcap", "changed.pcap"], ["clear.pcapng.gz", "nagus.pcapng"]] {
        let a = format!("captures/moul/{a}");
        let b = format!("captures/moul/{b}");
        let mut command = crate::common::program();
        command.current_dir(env!("CARGO_MANIFEST_DIR"));
        let output = command
            .args(["diff", &a, &b, "--json", "-q", "--keys", "keys/nagus.ini"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(4));
        let mut lines = json_lines(std::str::from_utf8(&output.stdout).unwrap());
        let last = lines.pop().unwrap();
        lines_are_as_the_schema_says(&one, &lines);
        lines_are_as_the_schema_says(&sum, &[last]);
    }
}

#[test]
fn declarations_are_as_the_schema_says() {
    let schema = Schema::of("json.schema.json#/$defs/tables_show");
    let lines = json_lines(&run(&["tables", "show", "--all", "--json"]));
    assert!(lines.len() > 1000, "{}", lines.len());
    lines_are_as_the_schema_says(&schema, &lines);
}

/// The comments that `schema --sql sqlite` begins with are commands: they are typed here one after
/// the other.
#[test]
#[cfg(unix)]
fn records_are_loaded_into_sqlite_as_its_comments_say() {
    if std::process::Command::new("sqlite3").arg("--version").output().is_err() {
        return eprintln!("not run, there is no sqlite3");
    }
    let folder = scratch("schema-sqlite");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let capture = crate::common::file("captures/moul/nagus.pcapng");
    let typed = |command: &str| {
        let mut shell = crate::common::shell();
        shell.current_dir(&folder);
        crate::transcripts::printed_by(shell, command)
    };
    let commands: Vec<String> = run(&["schema", "--sql", "sqlite"])
        .lines()
        .filter_map(|line| line.strip_prefix("-- "))
        .map(|line| line.replace("CAPTURE...", &format!("-q {}", capture.display())))
        .collect();
    assert_eq!(commands.len(), 3, "{commands:?}");
    for command in &commands {
        assert_eq!(typed(command), "", "{command}");
    }
    let records = std::fs::read_to_string(folder.join("capture.ndjson")).unwrap().lines().count();
    let counted = typed("sqlite3 records.db 'SELECT count(*), max(record) FROM records'");
    assert_eq!(counted, format!("{records}|{records}\n"));
    let services = typed("sqlite3 records.db 'SELECT DISTINCT service FROM records ORDER BY 1'");
    assert!(services.lines().any(|service| service == "auth"), "{services}");
}

#[test]
fn what_the_program_does_not_print_is_refused() {
    let schema = Schema::new();
    let line =
        run(&["captures/moul/kind_gate.pcap", "--json", "-q", "--keys", "keys/dirtsand.ini"]);
    let asks = |r: &Value| r["message"] == "Cli2GateKeeper_PingRequest";
    let good = line.lines().map(|l| serde_json::from_str(l).unwrap()).find(asks).unwrap();
    assert_eq!(schema.fault(&good), None);
    type Spoil = fn(&mut Value);
    let spoils: &[Spoil] = &[
        |r| drop(r.as_object_mut().unwrap().remove("frame")),
        |r| r["surplus"] = 1.into(),
        |r| r["from"] = "nobody".into(),
        |r| r["record"] = "1".into(),
        |r| r["event"] = "gap".into(),
        |r| r["fields"]["trans_id"] = "918".into(),
        |r| r["fields"]["surplus"] = 1.into(),
        |r| r["fields"]["payload"] = "no hex".into(),
        |r| r["reply_to"] = 1.into(),
        |r| r["problems"] = Value::Array(Vec::new()),
    ];
    for (n, spoil) in spoils.iter().enumerate() {
        let mut record = good.clone();
        spoil(&mut record);
        assert!(schema.fault(&record).is_some(), "spoil {n} goes unseen");
    }
}
