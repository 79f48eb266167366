//! The numbers of the user commands of City of Heroes' servers: each server may have its own, told
//! by its port.

use std::path::PathBuf;

use serde_json::Value;

use crate::common::{program, scratch};
use crate::made::{Made, end, run};

/// Two servers that number their commands independently.
const TABLE: &str = "protocol ouro
service game when port 7002, 9002
service map when port 7003
message game client 2 GameTwo { a: packint(1) info \"{a}\" example \"01\" { \"a\": 1 } }
message game server 2 GameReply answers GameTwo { a: packint(1) }
message map client 2 MapTwo { b: bits(3) }
message user client 2 UserTwo { c: bits(2) }
";

/// A packet without a link header. `bits`: its bits in the order in which they go.
pub fn packet(bits: &str) -> Vec<u8> {
    let bits: Vec<u8> = bits.bytes().filter(|b| *b != b' ').map(|b| b - b'0').collect();
    let body: Vec<u8> =
        bits.chunks(8).map(|c| c.iter().rev().fold(0, |byte, bit| byte << 1 | bit)).collect();
    let mut out = (64 + bits.len() as u32).to_le_bytes().to_vec();
    out.extend(adler2::adler32_slice(&body).to_be_bytes());
    out.extend(body);
    out
}

/// For each port a link of version 4: CONNECT, its answer, the user command 2 of the client and of
/// the server.
fn links(ports: &[u16]) -> Vec<u8> {
    let mut made = Made::new();
    for (host, port) in (1..).zip(ports) {
        let client = end(host, 50_000);
        let server = end(99, *port);
        made.udp((client, server), &packet("100 0 1110000"));
        made.udp((server, client), &packet("0 1110000"));
        made.udp((client, server), &packet("110 100"));
        made.udp((server, client), &packet("110 0"));
    }
    made.bytes
}

/// A file of this run of the tests.
fn file(name: &str) -> PathBuf {
    scratch(name)
}

/// Writes a table for a test.
pub fn table(name: &str, text: &str) -> String {
    let path = file(&format!("{name}.table"));
    std::fs::write(&path, text).unwrap();
    path.to_string_lossy().into_owned()
}

/// Service, name and number of each user command.
fn user_commands(records: &[Value]) -> Vec<(String, String, u64)> {
    let text = |value: &Value| value.as_str().unwrap().to_string();
    let messages = records.iter().filter(|record| record["fields"].get("user_cmd").is_some());
    let one = |r: &Value| {
        (text(&r["service"]), text(&r["message"]), r["fields"]["user_cmd"].as_u64().unwrap())
    };
    messages.map(one).collect()
}

#[test]
fn each_server_has_its_own_numbers() {
    let table = table("ouro-servers", TABLE);
    let (records, _) = run(&links(&[7002, 7003, 7000, 9002]), &["-q", "--tables", &table]);
    let want = [
        ("game", "GameTwo"),
        ("game", "GameReply"),
        ("map", "MapTwo"),
        ("map", "UserCommand"),
        ("link", "UserTwo"),
        ("link", "UserCommand"),
        ("game", "GameTwo"),
        ("game", "GameReply"),
    ];
    let want: Vec<_> = want
        .into_iter()
        .map(|(service, name)| (service.to_string(), name.to_string(), 2))
        .collect();
    assert_eq!(user_commands(&records), want);
    // Every record of a link has its service, those of the link's own commands and the events
    // included.
    for record in &records {
        let port =
            record["dst"].as_str().unwrap().rsplit(':').next().unwrap().parse::<u16>().unwrap();
        let port = if port < 50_000 {
            port
        } else {
            record["src"].as_str().unwrap().rsplit(':').next().unwrap().parse().unwrap()
        };
        let service = match port {
            7002 | 9002 => "game",
            7003 => "map",
            _ => "link",
        };
        assert_eq!(record["service"], service, "{record}");
    }
    let reply = records.iter().find(|record| record["message"] == "GameReply").unwrap();
    let request = records.iter().find(|record| record["message"] == "GameTwo").unwrap();
    assert_eq!(reply["reply_to"], request["record"], "{reply}");
}

#[test]
fn without_such_a_table_nothing_changes() {
    let table = table("ouro-user", "protocol ouro\nmessage user client 2 UserTwo { c: bits(2) }\n");
    let (records, _) = run(&links(&[7002, 7003]), &["-q", "--tables", &table]);
    let names: Vec<String> = user_commands(&records)
        .into_iter()
        .map(|(service, name, _)| service + " " + &name)
        .collect();
    assert_eq!(names, ["link UserTwo", "link UserCommand", "link UserTwo", "link UserCommand"]);
}

#[test]
fn decode_and_exported_messages_know_the_service() {
    let table = table("ouro-decode", TABLE);
    let hex: String = packet("110 100").iter().map(|b| format!("{b:02x}")).collect();
    let decoded = |name: &str| {
        let output =
            program().args(["--tables", &table, "decode", "--json", name, &hex]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    for (name, message) in [("ouro.game", "GameTwo"), ("ouro.map", "MapTwo"), ("ouro", "UserTwo")] {
        let got = decoded(name);
        assert_eq!(
            (&got["message"], &got["fields"]["user_cmd"]),
            (&message.into(), &2.into()),
            "{name}: {got}"
        );
    }
    let capture = file("ouro-servers.pcap");
    let exported = file("ouro-servers-exported.pcapng");
    std::fs::write(&capture, links(&[7002, 7003, 7000])).unwrap();
    let written = program()
        .args(["export", "messages", "-q", "--tables", &table])
        .arg(&capture)
        .arg("-o")
        .arg(&exported)
        .status();
    assert!(written.unwrap().success());
    let (direct, _) = run(&std::fs::read(&capture).unwrap(), &["-q", "--tables", &table]);
    let (again, _) = run(&std::fs::read(&exported).unwrap(), &["-q", "--tables", &table]);
    assert_eq!(user_commands(&again), user_commands(&direct));
    assert_eq!(user_commands(&direct).len(), 6);
}

#[test]
fn what_selects_nothing_is_a_mistake() {
    let refused = |name: &str, text: &str, arguments: &[&str]| {
        let table = table(name, text);
        let output = program().args(arguments).args(["--tables", &table]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        String::from_utf8(output.stderr).unwrap()
    };
    let check = |name: &str, text: &str| refused(name, text, &["tables", "list"]);
    let said = check("ouro-no-port", "protocol ouro\nservice game\n");
    assert!(
        said.contains(":2:1: nothing has the service `game`: `service game when port N`"),
        "{said}"
    );
    let said = check("ouro-own", "protocol ouro\nservice user when port 7002\n");
    assert!(said.contains("`user` is the protocol's own service"), "{said}");
    let said = check(
        "ouro-both",
        "protocol ouro\nservice a when port 7002\nservice b when port 7003, 7002\n",
    );
    assert!(said.contains(":3:9: port 7002 belongs to the service `a` already"), "{said}");
    let said =
        check("tiny-port", "protocol tiny { transport tcp }\nservice a when port 7 { whole }\n");
    assert!(said.contains("`protocol NAME { service a when … }`"), "{said}");
    let said = refused(
        "ouro-filter",
        TABLE,
        &["captures/ouro/coh_segs_udp.pcapng", "-Y", "service == user"],
    );
    assert!(said.contains("no record has the service `user`; such messages have `link`"), "{said}");
    let output = program()
        .args(["captures/ouro/coh_segs_udp.pcapng", "-q", "-Y", "service == \"user\""])
        .output();
    assert_eq!(output.unwrap().status.code(), Some(2));
}

#[test]
fn a_later_table_gives_a_service_other_ports() {
    let one = table("ouro-one", TABLE);
    let other = table("ouro-other", "protocol ouro\nservice game when port 7000\n");
    let (records, _) = run(&links(&[7002, 7000]), &["-q", "--tables", &one, "--tables", &other]);
    let names: Vec<String> = user_commands(&records)
        .into_iter()
        .map(|(service, name, _)| service + " " + &name)
        .collect();
    assert_eq!(names, ["link UserTwo", "link UserCommand", "game GameTwo", "game GameReply"]);
    let (records, _) =
        run(&links(&[7002, 7000]), &["-q", "--tables", &one, "-Y", "service == game"]);
    assert!(records.iter().all(|record| record["service"] == "game"), "{records:?}");
    assert_eq!(user_commands(&records).len(), 2);
}

#[test]
fn the_table_of_segs_reads_what_a_program_of_segs_wrote() {
    let path = "examples/cityofheroes/segs.table";
    let checked = program().args(["tables", "check", path]).output().unwrap();
    let said = String::from_utf8(checked.stdout).unwrap();
    assert!(said.ends_with(" examples, 0 failed\n") && checked.status.success(), "{said}");
    let at_7000 = table("ouro-segs", "protocol ouro\nservice game when port 7000\n");
    let capture = std::fs::read("captures/ouro/coh_segs_udp.pcapng").unwrap();
    let (records, _) = run(&capture, &["-q", "--tables", path, "--tables", &at_7000]);
    let login = records.iter().find(|record| record["message"] == "UpdateServer").unwrap();
    let fields = &login["fields"];
    assert_eq!((&login["service"], &fields["build_date"]), (&"game".into(), &20_040_422.into()));
    assert_eq!(fields["client_info"], "00112233445566778899aabbccddeeff");
    assert_eq!((&fields["auth_id"], &fields["account_name"]), (&1.into(), &"account".into()));
    assert_eq!(fields["auth_cookie"], 0x1122_3344);
    let (made, _) = run(&links(&[7002, 7003, 7040, 7041]), &["-q", "--tables", path]);
    let services: Vec<String> =
        user_commands(&made).into_iter().map(|(service, ..)| service).collect();
    assert_eq!(services, ["game", "game", "map", "map", "map", "map", "link", "link"]);
    // At the ports of SEGS the table does not touch this link, and without the table nothing of it
    // is known.
    let (records, _) = run(&capture, &["-q", "--tables", path]);
    assert!(
        records
            .iter()
            .all(|record| record["service"] == "link" && record["message"] != "UpdateServer")
    );
}

/// The records of a capture that was made after SEGS' source.
fn segs(name: &str, more: &[&str]) -> Vec<Value> {
    let capture = std::fs::read(format!("{}/tests/data/ouro/{name}", env!("CARGO_MANIFEST_DIR")));
    run(&capture.unwrap(), more).0
}

/// Whether two values are the same, where 1 and 1.0 are.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| other.get(key).is_some_and(|it| same(one, it)))
        }
        _ => one == other,
    }
}

#[test]
fn segs_map_server_is_read_to_the_last_bit() {
    let records = segs("segs_map.pcap", &["--tables", "examples/cityofheroes/segs.table"]);
    let expected = include_str!("../data/ouro/segs_map.jsonl").lines();
    let expected: Vec<Value> = expected.map(|line| serde_json::from_str(line).unwrap()).collect();
    let names = ["NewEntity", "Entities_Full", "RecvInputState", "Entities_Incremental"];
    assert_eq!(expected.len(), names.len());
    for (name, expected) in names.iter().zip(expected) {
        let record = records.iter().find(|record| record["message"] == *name).unwrap();
        for (key, value) in expected.as_object().unwrap() {
            assert!(same(&record["fields"][key], value), "{name}.{key}: {record}");
        }
        assert_eq!(record["problems"], Value::Null, "{name}");
    }
}

#[test]
fn an_auth_server_s_messages_are_decrypted_with_the_seed_that_it_sends() {
    let records = segs("segs_auth.pcap", &[]);
    let messages = |stream: u64| {
        let of = |r: &&Value| r["stream"] == stream && r["event"].is_null();
        let all = records.iter().filter(of);
        all.map(|r| (r["message"].as_str().unwrap(), &r["fields"])).collect::<Vec<_>>()
    };
    let names: Vec<&str> = messages(0).iter().map(|message| message.0).collect();
    let all = [
        "AuthProtocolVersion",
        "LoginRequest",
        "LoginResponse",
        "ServerListRequest",
        "ServerListResponse",
        "ServerSelectRequest",
        "ServerSelectResponse",
    ];
    assert_eq!(names, all);
    // The DES key is that of the version.
    for (stream, login, password) in [(0, "hero", "secret password"), (1, "villain", "wrong")] {
        let fields = messages(stream)[1].1;
        assert_eq!((&fields["login"], &fields["password"]), (&login.into(), &password.into()));
    }
    let server = &messages(0)[4].1["servers"][0];
    assert_eq!((&server["addr"], &server["port"]), (&"10.0.0.1".into(), &7002.into()));
    let refused = messages(1)[2];
    assert_eq!(refused.0, "AuthorizationError");
    assert_eq!(refused.1["error_type"]["name"], "AUTH_WRONG_LOGINPASS");
    let events = |stream: u64| {
        let of = |r: &&Value| r["stream"] == stream && r["event"].is_string();
        let all = records.iter().filter(of);
        all.map(|r| r["event"].as_str().unwrap()).collect::<Vec<_>>()
    };
    // A message with an unknown number is passed over; what follows a gap stays closed.
    assert!(events(1).contains(&"undecoded"), "{records:#?}");
    let end = records.iter().find(|r| r["event"] == "stream_end" && r["stream"] == 2);
    assert!(events(2).contains(&"gap") && end.is_some(), "{records:#?}");
}

#[test]
fn a_connect_that_is_numbered_as_in_version_4_is_a_connect() {
    let mut made = Made::new();
    let client = end(1, 50_000);
    let server = end(99, 7003);
    made.udp((client, server), &packet("0 100 0 1110000"));
    made.udp((server, client), &packet("0 1110000"));
    let (records, _) = run(&made.bytes, &[]);
    let first = &records[0];
    assert_eq!(first["message"], "COMMCONTROL_CONNECT");
    assert_eq!(first["fields"]["requested_version"], 4);
    assert!(records.iter().all(|record| record["event"] != "remark"), "{records:#?}");
}
