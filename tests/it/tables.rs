//! The embedded tables of every protocol: they compile, their examples hold, nothing with a layout
//! is without an example, nothing that is known by name is missing, and bytes that end early are
//! said to end early. Then the mistakes a table file can have: each file of `tests/tables` holds
//! one.

use std::collections::HashSet;
use std::path::Path;

use crate::common::file;
use moulsniff::examples::run_examples;
use moulsniff::proto::{PROTOCOLS, load_tables, protocol_named};
use moulsniff::table::{
    BITSTREAM, Evaluator, Example, ExampleOf, Outcome, Sender, TableSource, Tables, parse_hex,
};
use moulsniff::tree::{Sym, Tree};

#[test]
fn every_example_gives_its_fields() {
    for tables in all() {
        let (count, failed) = run_examples(&tables);
        let failed: Vec<String> = failed.iter().map(ToString::to_string).collect();
        assert!(failed.is_empty(), "{}", failed.join("\n"));
        assert!(count > 0, "{} has no examples", tables.protocol());
        println!("{}: {count} examples", tables.protocol());
    }
}

/// Code that does not find a type it names could only pass a packet over, without saying why.
#[test]
fn types_that_code_names_are_in_the_tables() {
    let mut found = 0;
    for tables in all() {
        let mut folders = vec![file("src/proto").join(tables.protocol())];
        while let Some(folder) = folders.pop() {
            for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text =
                    crate::layers::program(&std::fs::read_to_string(&path).unwrap_or_default());
                for call in ["type_named(\"", "ty(\"", "layout(\""] {
                    for name in text.split(call).skip(1).filter_map(|rest| rest.split('"').next()) {
                        found += 1;
                        let known = tables.type_named(name).is_some()
                            // A structure with parameters is no type by itself.
                            || tables.layouts().iter().any(|layout| tables.name(layout.name) == name);
                        assert!(known, "{}: there is no type `{name}`", path.display());
                    }
                }
            }
        }
    }
    assert!(found > 20, "the code names {found} types");
}

#[test]
fn every_message_with_a_layout_has_an_example() {
    for tables in all() {
        let mut messages = HashSet::new();
        let mut layouts = HashSet::new();
        for example in tables.examples() {
            match example.of {
                ExampleOf::Message(id) => messages.insert(id.0),
                ExampleOf::Layout(id) => layouts.insert(id.0),
            };
        }
        let defs = tables.messages().iter().enumerate().filter(|(_, m)| m.layout.is_some());
        let without: Vec<&str> = defs
            .filter(|(i, _)| !messages.contains(&(*i as u32)))
            .map(|(_, m)| tables.name(m.name))
            .collect();
        println!(
            "{}: {} messages, {} without an example; {} other structures with one",
            tables.protocol(),
            tables.messages().len(),
            without.len(),
            layouts.len()
        );
        assert!(without.is_empty(), "{}: no example: {}", tables.protocol(), without.join(", "));
    }
}

#[test]
fn every_moul_message_known_by_name_is_there() {
    let tables = tables("moul");
    let mut count = 0;
    for line in include_str!("../data/moul-messages.txt").lines().filter(|l| !l.starts_with('#')) {
        let [service, sender, number, name, layout] = line.split(' ').collect::<Vec<_>>()[..]
        else {
            panic!("{line}")
        };
        let id = tables.message_named(name).unwrap_or_else(|| panic!("no message {name}"));
        let def = tables.message(id).unwrap();
        assert_eq!(tables.service(def.service).unwrap().name, service, "{name}");
        assert_eq!(
            def.direction,
            if sender == "client" { Sender::Client } else { Sender::Server },
            "{name}"
        );
        assert_eq!(def.number, Some(number.parse().unwrap()), "{name}");
        assert!(
            layout == "unknown" || def.layout.is_some(),
            "{name} has a layout somewhere, but none here"
        );
        count += 1;
    }
    assert_eq!(count, 141);
}

#[test]
fn every_plasma_message_class_known_by_name_is_there() {
    let tables = tables("moul");
    let classes = tables.enums().find(|e| e.name == "CreatableClass").unwrap();
    let mut missing = Vec::new();
    for line in include_str!("../data/moul-classes.txt").lines().filter(|l| !l.starts_with('#')) {
        let [_, number, name, kind] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let value =
            classes.get(number.parse().unwrap()).unwrap_or_else(|| panic!("no class {number}"));
        assert_eq!(value.name, name);
        if kind == "layout" && tables.type_named(name).is_none() {
            missing.push(name);
        }
    }
    assert!(missing.is_empty(), "no layout: {}", missing.join(", "));
}

/// Every class has an example of its own, also one that adds nothing to its parent.
#[test]
fn every_class_with_a_layout_has_an_example() {
    for tables in all() {
        let of = |e: &Example| match e.of {
            ExampleOf::Layout(id) => Some(id),
            ExampleOf::Message(_) => None,
        };
        let with: HashSet<_> = tables.examples().iter().filter_map(of).collect();
        for family in tables.families() {
            let name = |id| tables.layout(id).map_or("", |layout| tables.name(layout.name));
            let without: Vec<&str> =
                family.members.iter().filter(|m| !with.contains(&m.1)).map(|m| name(m.1)).collect();
            let all = family.members.len();
            println!(
                "{}: {} of {all} classes of {} with an example",
                tables.protocol(),
                all - without.len(),
                family.name
            );
            assert!(without.is_empty(), "{}: no example: {}", family.name, without.join(", "));
        }
    }
}

/// A message that is not all there yet is never taken for one: how many bytes are wanted is said,
/// and is never too many.
#[test]
fn messages_cut_at_every_byte() {
    let mut cuts = 0;
    for_each_message(|tables, id, bytes| {
        let def = tables.message(id).unwrap();
        let sender = usize::from(def.direction == Sender::Server);
        let numbered = tables.service(def.service).is_some_and(|s| !s.header.is_empty());
        let mut evaluator = Evaluator::default();
        let mut tree = Tree::new();
        for cut in 0..bytes.len() {
            let got = evaluator.message(tables, def.service, sender, &bytes[..cut], &mut tree);
            let name = tables.name(def.name);
            match got {
                Outcome::Need(n) => {
                    assert!(
                        cut < n && n <= bytes.len(),
                        "{name} cut at {cut}: needs {n} of {}",
                        bytes.len()
                    )
                }
                Outcome::Message(_, n) => {
                    assert!(!numbered && n <= cut, "{name} cut at {cut} is a message of {n} bytes")
                }
                other => assert!(!numbered, "{name} cut at {cut}: {other:?}"),
            }
            cuts += 1;
        }
    });
    println!("{cuts} cuts");
    assert!(cuts > 10_000);
}

/// Structures read what there is, and never past it.
#[test]
fn structures_cut_at_every_byte() {
    for tables in all() {
        let mut evaluator = Evaluator::default();
        let mut tree = Tree::new();
        for example in tables.examples() {
            let ExampleOf::Layout(id) = example.of else { continue };
            let bytes = bytes_of(&tables, example);
            let ty = tables.layout(id).unwrap().ty;
            for cut in 0..bytes.len() {
                let end = evaluator.value(&tables, ty, Sym::ELEMENT, &bytes[..cut], 0, &mut tree);
                assert!(
                    end <= cut * 8,
                    "{} cut at {cut}: read {end} bits",
                    tables.example_bytes(example)
                );
            }
        }
    }
}

/// Any byte may be anything: the reader ends, within the bytes.
#[test]
fn messages_with_any_one_byte_changed() {
    for_each_message(|tables, id, bytes| {
        let def = tables.message(id).unwrap();
        let sender = usize::from(def.direction == Sender::Server);
        let mut evaluator = Evaluator::default();
        let mut tree = Tree::new();
        let mut changed = bytes.to_vec();
        for at in 0..bytes.len().min(400) {
            for value in [0x00, 0x7f, 0x80, 0xff] {
                changed[at] = value;
                if let Outcome::Message(_, n) =
                    evaluator.message(tables, def.service, sender, &changed, &mut tree)
                {
                    assert!(n <= changed.len());
                }
            }
            changed[at] = bytes[at];
        }
    });
}

/// In these services every message has an `info` line.
const SAID: [(&str, &[&str]); 4] = [
    ("moul", &["handshake", "gatekeeper", "auth", "file", "game", "csr"]),
    ("intermud3", &["router", "oob"]),
    ("secondlife", &["circuit", "http"]),
    ("ouro", &["link", "auth_server"]),
];

#[test]
fn every_message_that_people_meet_says_what_it_is_about() {
    for (protocol, services) in SAID {
        let tables = tables(protocol);
        let silent: Vec<&str> = tables
            .messages()
            .iter()
            .filter(|message| {
                tables.service(message.service).is_some_and(|s| services.contains(&&*s.name))
            })
            .filter(|message| {
                message.layout.and_then(|l| tables.layout(l)).is_some_and(|l| l.info.is_none())
            })
            .map(|message| tables.name(message.name))
            .collect();
        assert!(silent.is_empty(), "{protocol}: {silent:?}");
    }
}

#[test]
fn every_type_with_code_is_explained_where_tables_use_it() {
    for (protocol, tables) in PROTOCOLS.iter().zip(all()) {
        let explained: HashSet<&str> = tables
            .declarations()
            .iter()
            .filter(|d| d.kind == "code" && !d.doc.is_empty())
            .map(|d| &*d.name)
            .collect();
        let language: HashSet<&str> = BITSTREAM.iter().map(|native| native.name).collect();
        let own = protocol
            .natives()
            .iter()
            .map(|native| native.name)
            .filter(|name| !language.contains(name));
        let silent: Vec<&str> = own.filter(|name| !explained.contains(name)).collect();
        assert!(
            silent.is_empty(),
            "{}: types with code that no table explains: {silent:?}",
            protocol.name()
        );
    }
}

/// Every file of `tests/tables` has one mistake; its first line says where it is and what is said
/// about it.
#[test]
fn every_mistake_is_named_with_its_place() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tables");
    let mut count = 0;
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let expected = text
            .lines()
            .next()
            .unwrap()
            .strip_prefix("// ")
            .expect("a first line that says what is wrong");
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let source = TableSource { name: name.clone(), text: text.clone().into() };
        let said = match load_tables(protocol_named("moul").unwrap(), &[source]) {
            Ok(_) => "nothing is wrong".to_string(),
            Err(e) => format!("{}:{}: {}", e.line, e.column, e.message),
        };
        if said != expected {
            wrong.push(format!("{name}\n  expected: {expected}\n       got: {said}"));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 50, "only {count} mistakes");
}

fn tables(protocol: &str) -> Tables {
    load_tables(protocol_named(protocol).unwrap(), &[]).unwrap_or_else(|e| panic!("{e}"))
}

fn all() -> impl Iterator<Item = Tables> {
    PROTOCOLS.iter().map(|p| load_tables(*p, &[]).unwrap_or_else(|e| panic!("{e}")))
}

/// Calls back with the bytes of each message's examples.
fn for_each_message(mut f: impl FnMut(&Tables, moulsniff::table::MessageId, &[u8])) {
    for tables in all() {
        for example in tables.examples() {
            let ExampleOf::Message(id) = example.of else { continue };
            // Messages that are positions of one text are read by their protocol; its own tests cut
            // them.
            let service = tables.service(tables.message(id).unwrap().service).unwrap();
            if !service.positional {
                f(&tables, id, &bytes_of(&tables, example));
            }
        }
    }
}

fn bytes_of(tables: &Tables, example: &Example) -> Vec<u8> {
    let bytes = tables.example_bytes(example);
    if example.text { bytes.into_bytes() } else { parse_hex(&bytes).unwrap() }
}

#[test]
fn names_of_moul_messages_say_who_sends_and_who_receives() {
    let tables = load_tables(protocol_named("moul").unwrap(), &[]).unwrap();
    let services = [
        ("auth", "Auth"),
        ("game", "Game"),
        ("file", "File"),
        ("gatekeeper", "GateKeeper"),
        ("csr", "Csr"),
    ];
    for (service, word) in services {
        let service = tables.services().iter().find(|s| s.name == service).unwrap();
        for (messages, start) in
            service.messages.iter().zip([format!("Cli2{word}_"), format!("{word}2Cli_")])
        {
            for (_, id) in messages {
                let name = tables.name(tables.message(*id).unwrap().name);
                assert!(name.starts_with(&start), "{name}");
            }
        }
    }
}

#[test]
fn what_ends_too_early_names_the_field_that_is_missing() {
    let table = crate::exported_messages::folder("too-early").join("short.table");
    let text = "protocol moul\nstruct Short { first: u16 text: utf8[u8] numbers: u16[u8] inner: { \
                a: u8 b: u32 } }";
    std::fs::write(&table, text).unwrap();
    for (bytes, error) in [
        ("01", "the region ends 1 byte too early for first; 1 byte before its end"),
        ("0100", "the region ends 1 byte too early for text; 0 bytes before its end"),
        ("0100 05 6162", "the region ends 3 bytes too early for text; 2 bytes before its end"),
        (
            "0100 01 61 02 0100",
            "the region ends 2 bytes too early for numbers; 0 bytes before its end",
        ),
        ("0100 01 61 00", "inner: the region ends 1 byte too early for a; 0 bytes before its end"),
        (
            "0100 01 61 00 01 0203",
            "inner: the region ends 2 bytes too early for b; 2 bytes before its end",
        ),
    ] {
        let words = ["decode", "--tables", table.to_str().unwrap(), "--type", "Short", bytes];
        let told = String::from_utf8(crate::exported_messages::run(&words).stdout).unwrap();
        assert!(told.contains(&format!("error: {error}\n")), "{bytes}: {told}");
    }
}
