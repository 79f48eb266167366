//! `moulsniff export vault`: nodes as their latest messages have them, what they were before, and
//! what is below what.

use std::path::PathBuf;
use std::process::Output;

use serde_json::Value;

use crate::common::{file, scratch};

fn export(capture: &str, name: &str, more: &[&str]) -> (PathBuf, Output) {
    let to = scratch(format!("vault-{name}"));
    let mut program = crate::common::program();
    program.current_dir(file("")).args(["export", "vault", capture, "-o"]).arg(&to).args(more);
    let output = program.output().unwrap();
    (to, output)
}

fn vault(capture: &str, name: &str, keys: &str) -> Value {
    let (to, output) = export(capture, name, &["--keys", keys]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&std::fs::read(to).unwrap()).unwrap()
}

fn node(vault: &Value, id: u64) -> &Value {
    vault["nodes"].as_array().unwrap().iter().find(|node| node["id"] == id).unwrap()
}

#[test]
fn nodes_have_types_fields_and_names() {
    let vault = vault("captures/moul/full_dirtsand.pcapng", "names.json", "keys/dirtsand.ini");
    let player = node(&vault, 10124);
    assert_eq!(
        (&player["type"], &player["name"]),
        (&"kNodeType_VNodeMgrPlayer".into(), &"Ávätar Øne".into())
    );
    assert_eq!(player["fields"]["avatar_shape_name"], "female");
    let players = vault["names"]["player"].as_array().unwrap();
    assert!(players.iter().any(|player| player["id"] == 10124 && player["name"] == "Ávätar Øne"));
    let ages = vault["names"]["age"].as_array().unwrap();
    assert!(ages.iter().any(|age| age["name"] == "city"));
    let state = node(&vault, 10010);
    assert_eq!(state["fields"]["sdl_data"]["descriptor_name"], "city", "states are opened");
    let referred = node(&vault, 10147);
    assert_eq!((&referred["seen"], &referred["fields"]), (&false.into(), &Value::Null));
}

/// Two shards give the same numbers to different nodes.
#[test]
fn nodes_of_two_servers_are_kept_apart() {
    let captures = "captures/moul/full_dirtsand.pcapng";
    let more = [
        "captures/moul/nagus.pcapng",
        "--keys",
        "keys/dirtsand.ini",
        "--keys",
        "keys/nagus.ini",
        "--quiet",
    ];
    let (to, output) = export(captures, "two.json", &more);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let both: Value = serde_json::from_slice(&std::fs::read(to).unwrap()).unwrap();
    let one = vault(captures, "one.json", "keys/dirtsand.ini");
    let server = &node(&one, 10124)["server"];
    let of_one: Vec<&Value> =
        both["nodes"].as_array().unwrap().iter().filter(|node| &node["server"] == server).collect();
    assert_eq!(of_one, one["nodes"].as_array().unwrap().iter().collect::<Vec<_>>());
    let all = both["nodes"].as_array().unwrap();
    let shared = of_one.iter().filter(|one| {
        all.iter().any(|two| two["id"] == one["id"] && two["server"] != one["server"])
    });
    assert!(shared.count() > 0, "some number is in both");
}

#[test]
fn what_changed_has_its_old_value_and_the_record() {
    let vault = vault("captures/moul/full_dirtsand.pcapng", "changes.json", "keys/dirtsand.ini");
    let changed = node(&vault, 10213);
    let changes = changed["changes"].as_array().unwrap();
    assert!(!changes.is_empty());
    for change in changes {
        let since = change["old_since"].as_u64().unwrap();
        let record = change["record"].as_u64().unwrap();
        assert!(since < record);
        assert_ne!(change["old"], changed["fields"][change["field"].as_str().unwrap()]);
    }
    let refs = vault["refs"].as_array().unwrap();
    let removed =
        refs.iter().find(|edge| edge["parent"] == 10124 && edge["child"] == 10213).unwrap();
    assert!(removed["first_record"].as_u64().unwrap() < removed["removed"].as_u64().unwrap());
    assert!(refs.iter().any(|edge| edge["parent"] == 10124
        && edge["child"] == 10125
        && edge["removed"].is_null()));
}

/// The save in record 137 was refused, and no other message has the fields of its node.
#[test]
fn what_was_refused_changes_nothing() {
    let capture = "captures/moul/nagus.pcapng";
    let all = crate::common::records(capture, &["keys/nagus.ini"], &[]);
    let save = all.iter().find(|record| record["record"] == 137).unwrap();
    assert_eq!(save["message"], "Cli2Auth_VaultNodeSave");
    let id = save["fields"]["node_id"].as_u64().unwrap();
    let vault = vault(capture, "refused.json", "keys/nagus.ini");
    let nodes = vault["nodes"].as_array().unwrap();
    let own = nodes.iter().filter(|node| node["id"] == id);
    for node in own {
        let set = node["fields"].as_object().map_or(0, serde_json::Map::len);
        assert!(set == 0 || node["first_record"].as_u64().unwrap() < 137);
        assert!(
            !node["changes"]
                .as_array()
                .is_some_and(|all| all.iter().any(|change| change["record"] == 137))
        );
    }
}

#[test]
fn graphviz_can_read_it() {
    let (to, output) = export(
        "captures/moul/moss_full.pcapng",
        "moss.dot",
        &["--keys", "keys/moss_auth_key.der", "--quiet"],
    );
    assert!(output.status.success());
    let text = std::fs::read_to_string(to).unwrap();
    assert!(text.starts_with("digraph {\n") && text.ends_with("}\n"));
    assert!(text.lines().any(|line| line.contains("->")));
    for line in text.lines().filter(|line| line.contains("[label=")) {
        let bare = line.replace("\\\\", "").replace("\\\"", "");
        assert_eq!(bare.matches('"').count(), 2, "{line}");
    }
}

#[test]
fn another_ending_is_a_mistake() {
    let (to, output) = export("captures/moul/nagus.pcapng", "vault.txt", &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!to.exists());
    assert!(String::from_utf8_lossy(&output.stderr).contains(".json or .dot"));
}
