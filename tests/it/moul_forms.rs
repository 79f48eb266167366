//! What programs send in more than one form: each form is read, and a note says which it was where
//! it is not the client's own.
//!
//! `tests/data/moul/forms.pcap` and `sealed.pcap` were written by a program of their own, in clear,
//! after what DIRTSAND, MOULArs, MOSS, NAGUS and the clients are known to send. The two descriptor
//! files beside them were encrypted by it with the key that the login in `sealed.pcap` hands out.

use crate::common::{file, records};
use serde_json::{Value, json};

const FORMS: &str = "tests/data/moul/forms.pcap";

/// The messages of a stream: name, length, notes.
fn messages(all: &[Value], stream: u64) -> Vec<(String, u64, Vec<String>)> {
    let of = |r: &Value| {
        let notes = r["problems"].as_array().into_iter().flatten();
        let notes = notes.map(|p| {
            format!("{}: {}", p["severity"].as_str().unwrap(), p["text"].as_str().unwrap())
        });
        (r["message"].as_str().unwrap().to_string(), r["length"].as_u64().unwrap(), notes.collect())
    };
    all.iter().filter(|r| r["stream"] == stream && r.get("event").is_none()).map(of).collect()
}

/// A direction's count of undecoded bytes.
fn undecoded(all: &[Value], stream: u64, from: &str) -> u64 {
    let end = all
        .iter()
        .find(|r| r["event"] == "stream_end" && r["stream"] == stream && r["from"] == from)
        .unwrap();
    end["bytes"]["undecoded"].as_u64().unwrap()
}

#[test]
fn a_gatekeeper_request_of_seven_bytes() {
    let all = records(FORMS, &[], &[]);
    let long = (
        "Cli2GateKeeper_AuthSrvIpAddressRequest",
        7,
        vec!["note: 7 bytes, where the client's table has 6"],
    );
    let short = ("Cli2GateKeeper_AuthSrvIpAddressRequest", 6, vec![]);
    let file = ("Cli2GateKeeper_FileSrvIpAddressRequest", 7, vec![]);
    let requests = |stream| {
        let all = messages(&all, stream).into_iter().skip(3).filter(|m| m.0.starts_with("Cli2"));
        all.collect::<Vec<_>>()
    };
    let owned = |list: &[&(&str, u64, Vec<&str>)]| {
        let of = |m: &&(&str, u64, Vec<&str>)| {
            (m.0.to_string(), m.1, m.2.iter().map(|n| n.to_string()).collect())
        };
        list.iter().map(of).collect::<Vec<(String, u64, Vec<String>)>>()
    };
    // Answered; with the next request right behind it; with a byte that no message begins with; at
    // the stream's end.
    assert_eq!(requests(0), owned(&[&long, &long, &file, &short, &long, &long]));
    assert_eq!(requests(1), owned(&[&long]));
    // A request whose first byte came together with the one before it.
    assert_eq!(requests(2), owned(&[&short, &file]));
    for stream in 0..3 {
        assert_eq!(undecoded(&all, stream, "client"), 0);
    }
    let replies = all
        .iter()
        .filter(|r| r["stream"] == 0 && r["message"] == "GateKeeper2Cli_AuthSrvIpAddressReply");
    assert!(replies.into_iter().all(|r| r["reply_to"].as_u64()
        == r["record"].as_u64().map(|n| n - 1)
        || r["reply_to"] == 6));
}

#[test]
fn answers_to_a_client_that_wants_no_encryption() {
    let all = records(FORMS, &[], &[]);
    let opening = |stream| messages(&all, stream)[2].clone();
    assert_eq!(opening(0), ("Srv2Cli_Encrypt".into(), 2, vec![]));
    // MOULArs gives a seed all the same, and goes on in clear.
    assert_eq!(opening(3), ("Srv2Cli_Encrypt".into(), 9, vec![]));
    assert_eq!(messages(&all, 3)[3].0, "Cli2Auth_PingRequest");
    assert_eq!(undecoded(&all, 3, "server") + undecoded(&all, 3, "client"), 0);
    // A refusal, MOULArs's and the client's idea of one.
    assert_eq!(opening(4), ("Srv2Cli_Error".into(), 2, vec![]));
    assert_eq!(opening(5), ("Srv2Cli_Error".into(), 6, vec![]));
}

#[test]
fn forms_of_the_auth_server() {
    let all = records(FORMS, &[], &[]);
    assert_eq!((undecoded(&all, 6, "client"), undecoded(&all, 6, "server")), (0, 0));
    let named =
        |name: &str| all.iter().filter(|r| r["message"] == name).cloned().collect::<Vec<Value>>();
    let caps: Vec<Value> =
        named("Auth2Cli_ServerCaps").into_iter().map(|r| r["fields"]["buffer"].clone()).collect();
    let known = json!({ "caps": { "value": 1, "names": ["kCapsScoreLeaderBoards"] } });
    assert_eq!(caps, [json!({}), known.clone(), known]);
    for list in named("Auth2Cli_FileListReply") {
        assert_eq!(list["fields"]["file_data"], json!([]));
    }
    // DIRTSAND's numbers for two replies.
    let answered = |name: &str| {
        named(name).into_iter().map(|r| r["reply_to"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let request = |at: u64| all[at as usize - 1]["message"].as_str().unwrap().to_string();
    assert_eq!(
        answered("Auth2Cli_VaultAddNodeReply").into_iter().map(request).collect::<Vec<_>>(),
        ["Cli2Auth_VaultNodeRemove"]
    );
    let score = answered("Auth2Cli_ScoreAddPointsReply");
    assert_eq!(
        score.into_iter().map(request).collect::<Vec<_>>(),
        ["Cli2Auth_ScoreTransferPoints"]
    );
    assert_eq!(named("Cli2Auth_VaultNodeDelete")[0]["fields"], json!({ "node_id": 4711 }));
    let images: Vec<Value> = named("Auth2Cli_VaultNodeFetched")
        .into_iter()
        .map(|r| r["fields"]["node_buffer"]["image_data"].clone())
        .collect();
    // A JPEG has its length before it; one without and a PNG have not.
    assert_eq!(
        images,
        [json!({ "image": "ffd8ffe0" }), json!("ffd8ffe000"), json!("89504e470d0a")]
    );
    let seen = &named("Auth2Cli_VaultNodeRefsFetched")[0]["fields"]["refs"];
    assert_eq!(
        (&seen[0]["seen"], &seen[1]["seen"], &seen[2]["seen"]),
        (&json!(false), &json!(true), &json!(204))
    );
}

#[test]
fn forms_of_the_game_manager() {
    let all = records(FORMS, &[], &[]);
    let buffers: Vec<&Value> = all
        .iter()
        .filter(|r| r["message"] == "Cli2Game_GameMgrMsg")
        .map(|r| &r["fields"]["buffer"])
        .collect();
    assert_eq!(buffers[0]["new_game_id"], 5, "the short JoinGame");
    assert_eq!(
        (&buffers[1]["create_data"], &buffers[2]["create_data"]),
        (&json!("00"), &json!(""))
    );
    // Of a game that nothing is known of, what follows the header is unexplained, and counted so.
    assert_eq!(buffers[3]["body"], "0102030405");
    assert_eq!(undecoded(&all, 7, "client"), 5);
}

#[test]
fn descriptor_files_open_with_the_key_of_a_login_in_the_capture() {
    let sdl = ["--sdl", "tests/data/moul/xxtea.sdl", "--sdl", "tests/data/moul/xtea.sdl"];
    let all = records("tests/data/moul/sealed.pcap", &[], &sdl);
    let states: Vec<&Value> =
        all.iter().filter_map(|r| r.pointer("/fields/buffer/stream/state")).collect();
    // The first was sent before the login.
    assert_eq!(states[0]["undecoded"].as_str().map(str::len), Some(84));
    assert_eq!(states[1]["variables"]["door"]["value"], -7);
    assert_eq!(states[1]["variables"]["name"]["value"], "lever");
    assert_eq!(states[2]["variables"]["open"]["value"], json!([true, false]));
    let told = all
        .iter()
        .filter(|r| r["event"] == "remark")
        .map(|r| r["text"].as_str().unwrap())
        .collect::<Vec<_>>();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.iter().all(|text| text.ends_with("one state descriptor, known from here on")));
    assert!(
        !all.iter().any(|r| r.to_string().contains("2718281a")),
        "a key is shown as its login shows it, nowhere else"
    );
}

#[test]
fn an_encrypted_descriptor_file_is_refused_where_no_login_can_come() {
    let mut program = crate::common::program();
    program.current_dir(file("")).args([
        "decode",
        "--type",
        "SDL",
        "--sdl",
        "tests/data/moul/xxtea.sdl",
        "00",
    ]);
    let output = program.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains(
            "xxtea.sdl: encrypted with the key of a server, which only a capture of a login has"
        ),
        "{said}"
    );
}

#[test]
fn that_a_server_writes_latin_1_is_said_once_a_stream_and_the_rest_counted() {
    let keys = ["keys/moss_auth_key.der", "keys/moss_game_key.der"];
    let all = crate::common::records("captures/moul/moss_full.pcapng", &keys, &[]);
    let mut said = std::collections::BTreeMap::new();
    let mut counted = 0;
    for record in &all {
        let problems = record["problems"].as_array().into_iter().flatten();
        let here = problems.filter(|p| p["text"] == "not UTF-8: read as Latin-1").count();
        *said.entry(record["stream"].as_u64().unwrap()).or_insert(0) += here;
        let text =
            record["text"].as_str().filter(|text| text.ends_with("not UTF-8: read as Latin-1"));
        counted += text.map_or(0, |text| text.split_once(' ').unwrap().0.parse().unwrap());
    }
    assert!(said.values().all(|n| *n <= 1), "{said:?}");
    assert_eq!((said.values().sum::<usize>(), counted), (4, 120));
}

#[test]
fn the_upper_half_of_a_clones_number_is_told() {
    let said = |ignored: &str| {
        let hex = format!("01 21000100 0000 6d00 01000000 01f0be 0500 {ignored} 8c270000");
        let mut program = crate::common::program();
        let output = program.args(["decode", "--type", "plUoid", "--json", &hex]).output().unwrap();
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    assert_eq!(said("0000").get("problems"), None);
    let told = said("0100");
    assert_eq!(told["value"]["clone_id"], 5);
    assert_eq!(told["problems"][0]["text"], "1, where 0 is expected");
}
