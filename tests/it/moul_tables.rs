//! The tables of MOUL's own services: every message there is, by number and name, and an example for each that has a layout.

use moulsniff::examples::run_examples;
use moulsniff::proto::{load_tables, protocol_named};
use moulsniff::table::{ExampleOf, MessageId, Tables};

fn tables() -> Tables {
    load_tables(protocol_named("moul").unwrap(), &[]).unwrap_or_else(|e| panic!("{e}"))
}

/// A service's messages of one sender: number, name, whether the layout is known.
fn messages(tables: &Tables, service: &str, sender: usize) -> Vec<(u64, String, bool)> {
    let service = tables.services().iter().find(|s| s.name == service).unwrap();
    let of = |(number, id): &(u64, MessageId)| {
        let def = tables.message(*id).unwrap();
        (*number, tables.name(def.name).to_string(), def.layout.is_some())
    };
    service.messages[sender].iter().map(of).collect()
}

#[test]
fn every_number_of_the_services_is_known() {
    let tables = tables();
    let counts = |service| [0, 1].map(|sender| messages(&tables, service, sender).len());
    assert_eq!(counts("auth"), [56, 52]);
    assert_eq!(counts("game"), [4, 4]);
    assert_eq!(counts("file"), [6, 5]);
    assert_eq!(counts("gatekeeper"), [3, 3]);
    assert_eq!(counts("csr"), [4, 4]);
    assert_eq!(counts("handshake"), [1, 2]);
}

#[test]
fn thirteen_messages_have_no_published_layout() {
    let tables = tables();
    let mut unknown = Vec::new();
    for service in ["auth", "game", "file", "gatekeeper", "csr"] {
        for sender in [0, 1] {
            let all = messages(&tables, service, sender);
            unknown.extend(all.into_iter().filter(|m| !m.2).map(|(number, name, _)| format!("{name} {number}")));
        }
    }
    let expected = [
        "Cli2Auth_AcctSetEulaVersion 4",
        "Cli2Auth_AcctSetDataRequest 5",
        "Cli2Auth_PlayerUndeleteRequest 14",
        "Cli2Auth_PlayerSelectRequest 15",
        "Cli2Auth_PlayerRenameRequest 16",
        "Cli2Auth_PlayerSetStatus 18",
        "Cli2Auth_PlayerChat 19",
        "Auth2Cli_AcctData 5",
        "Auth2Cli_PlayerList 14",
        "Auth2Cli_PlayerChat 15",
        "Auth2Cli_FriendNotify 22",
        "Cli2Csr_PatchRequest 3",
        "Csr2Cli_PatchReply 3",
    ];
    assert_eq!(unknown, expected);
}

#[test]
fn names_say_who_sends_and_who_receives() {
    let tables = tables();
    let services = [("auth", "Auth"), ("game", "Game"), ("file", "File"), ("gatekeeper", "GateKeeper"), ("csr", "Csr")];
    for (service, word) in services {
        for (_, name, _) in messages(&tables, service, 0) {
            assert!(name.starts_with(&format!("Cli2{word}_")), "{name}");
        }
        for (_, name, _) in messages(&tables, service, 1) {
            assert!(name.starts_with(&format!("{word}2Cli_")), "{name}");
        }
    }
}

#[test]
fn every_message_with_a_layout_has_an_example() {
    let tables = tables();
    for service in tables.services() {
        for (_, id) in service.messages.iter().flatten() {
            let def = tables.message(*id).unwrap();
            let has = tables.examples().iter().any(|e| matches!(e.of, ExampleOf::Message(m) if m == *id));
            assert!(has || def.layout.is_none(), "{} has no example", tables.name(def.name));
        }
    }
}

#[test]
fn the_examples_hold() {
    let tables = tables();
    let (count, failed) = run_examples(&tables);
    let said: String = failed.iter().map(|f| format!("{f}\n")).collect();
    assert!(failed.is_empty(), "{} of {count} examples:\n{said}", failed.len());
}
