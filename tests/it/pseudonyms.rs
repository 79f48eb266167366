//! After `--pseudonyms` nothing of a person is left, in any encoding and in any output; and one
//! person keeps one pseudonym.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::exported_messages::{KEYS, export, folder, messages, run};
use crate::made::{Made, Talk, end};
use moulsniff::table::parse_hex;
use serde_json::Value;

/// What the programs that made a capture were told about their persons, and which address they had.
struct Persons {
    capture: &'static str,
    names: &'static [&'static str],
    uuids: &'static [&'static str],
    numbers: &'static [u32],
}

const PERSONS: [Persons; 4] = [
    Persons {
        capture: "captures/moul/full_dirtsand.pcapng",
        names: &[
            "player1@lab.test",
            "player2@lab.test",
            "plainuser",
            "Ávätar Øne",
            "Player Two",
            "Nämé",
            "Tmp Ünïcode",
        ],
        uuids: &[
            "1015a799-d056-4afe-a826-4180b45b5293",
            "332ab3cb-ad81-4b15-b19c-88fabca883a4",
            "6ba14920-a912-46e5-8489-bf9981d90e4b",
        ],
        numbers: &[10124, 10160, 10186],
    },
    Persons {
        capture: "captures/moul/nagus.pcapng",
        names: &["player1@lab.test", "plainuser", "Ávätar Øne", "Player Two", "Nämé"],
        uuids: &["192e8ae7-b263-4b44-996e-2b492a30da53"],
        numbers: &[],
    },
    Persons {
        capture: "captures/secondlife/opensim.pcapng.gz",
        names: &["Test User", "Bob Smith", "Smith"],
        uuids: &[],
        numbers: &[],
    },
    Persons {
        capture: "captures/intermud3/i3_coffeemud.pcapng",
        names: &[
            "alice",
            "Alice",
            "Gamma Ray",
            "Bob the Builder",
            "admin@lab.example",
            "bob@example.org",
            "g@example.org",
        ],
        uuids: &[],
        numbers: &[],
    },
];

/// A key that all of these tests share, so that none depends on chance.
fn key(to: &Path) -> String {
    let path = to.join("persons");
    fs::write(&path, "moulsniff pseudonyms 1\n00112233445566778899aabbccddeeff\n").unwrap();
    path.to_str().unwrap().to_string()
}

/// A name in every form in which bytes may hold it.
fn forms_of_name(name: &str) -> Vec<Vec<u8>> {
    let wide = |order: fn(u16) -> [u8; 2]| name.encode_utf16().flat_map(order).collect::<Vec<u8>>();
    let latin: Vec<u8> = name.chars().filter_map(|c| u8::try_from(u32::from(c)).ok()).collect();
    let hex: String = name.bytes().map(|byte| format!("{byte:02x}")).collect();
    let plain =
        vec![name.as_bytes().to_vec(), wide(u16::to_le_bytes), wide(u16::to_be_bytes), latin];
    let inverted = plain.iter().map(|bytes| bytes.iter().map(|byte| !byte).collect());
    inverted
        .chain(plain.clone())
        .chain([hex.clone().into_bytes(), hex.to_uppercase().into_bytes()])
        .collect()
}

fn forms_of_uuid(uuid: &str) -> Vec<Vec<u8>> {
    let hex = uuid.replace('-', "");
    let written: Vec<u8> =
        (0..16).map(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).unwrap()).collect();
    let mut mixed = written.clone();
    [0..4, 4..6, 6..8].into_iter().for_each(|part| mixed[part].reverse());
    let texts = [uuid.to_string(), uuid.to_uppercase(), hex.clone(), hex.to_uppercase()];
    let wide = uuid.encode_utf16().flat_map(u16::to_le_bytes).collect();
    texts.into_iter().map(String::into_bytes).chain([written, mixed, wide]).collect()
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn an_exported_capture_with_pseudonyms_names_no_person() {
    let to = folder("pseudonyms-nobody");
    let key = key(&to);
    for persons in &PERSONS {
        let capture = persons.capture;
        let plain = fs::read(export(capture, &to, &[])).unwrap();
        let exported = export(capture, &to, &["--pseudonyms", &key]);
        let bytes = fs::read(&exported).unwrap();
        for name in persons.names {
            assert!(
                forms_of_name(name).iter().any(|form| holds(&plain, form)),
                "{capture} never held {name}"
            );
            assert!(
                !forms_of_name(name).iter().any(|form| holds(&bytes, form)),
                "{capture} holds {name}"
            );
        }
        for uuid in persons.uuids {
            assert!(
                forms_of_uuid(uuid).iter().any(|form| holds(&plain, form)),
                "{capture} never held {uuid}"
            );
            assert!(
                !forms_of_uuid(uuid).iter().any(|form| holds(&bytes, form)),
                "{capture} holds {uuid}"
            );
        }
        for number in persons.numbers {
            for form in [number.to_le_bytes(), number.to_be_bytes()] {
                assert!(!holds(&bytes, &form), "{capture} holds {number}");
            }
        }
        // The clients' address, which is the servers' as well.
        for form in [&b"127.0.0.1"[..], &[127, 0, 0, 1]] {
            assert!(holds(&plain, form) || form.len() > 4, "{capture}");
            assert!(!holds(&bytes, form), "{capture} holds an address");
        }
    }
}

/// Names, places and lengths of all messages, which pseudonyms leave as they are.
fn shape(messages: &[Value]) -> Vec<[&Value; 6]> {
    let keys = ["message", "type", "service", "from", "offset", "length"];
    messages.iter().map(|message| keys.map(|key| &message[key])).collect()
}

#[test]
fn messages_keep_number_order_name_and_length() {
    let to = folder("pseudonyms-shape");
    let key = key(&to);
    let keys: Vec<&str> = KEYS.iter().flat_map(|key| ["--keys", key]).collect();
    let captures = [
        "captures/moul/full_dirtsand.pcapng",
        "captures/moul/moss_full.pcapng",
        "captures/secondlife/opensim.pcapng.gz",
        "captures/intermud3/i3_edge_small.pcapng",
        "captures/ouro/coh_seed_udp.pcapng",
        "captures/ouro/coh_tcp.pcap",
    ];
    // Some of these captures nest deeper than this test can read.
    for capture in captures.into_iter().filter(|capture| !capture.contains("i3_edge")) {
        let before = messages(capture, &keys);
        let after = messages(export(capture, &to, &["--pseudonyms", &key]).to_str().unwrap(), &[]);
        assert_eq!(shape(&before), shape(&after), "{capture}");
    }
}

#[test]
fn bytes_and_fields_agree() {
    let to = folder("pseudonyms-agree");
    let key = key(&to);
    // Other tables of the protocol have packets decoded anew from their bytes: the fields have to
    // be those that the tree had.
    let table = to.join("further.table");
    fs::write(&table, "protocol moul\nstruct Unused { x: u8 }\n").unwrap();
    for capture in [
        "captures/moul/kind_game.pcap",
        "captures/moul/kind_gate.pcap",
        "captures/moul/nagus.pcapng",
    ] {
        let exported = export(capture, &to, &["--pseudonyms", &key]);
        let carried = messages(exported.to_str().unwrap(), &[]);
        let anew = messages(exported.to_str().unwrap(), &["--tables", table.to_str().unwrap()]);
        let mut same = 0;
        for (carried, anew) in carried.iter().zip(&anew) {
            same += usize::from(carried["fields"] == anew["fields"]);
        }
        // What only a session knows, or a region that had to be filled, is not read anew.
        assert!(same * 100 >= carried.len() * 85, "{capture}: {same} of {}", carried.len());
    }
}

/// The values of a field, at any depth, in order.
fn values(capture: &str, field: &str, more: &[&str]) -> Vec<String> {
    let keys: Vec<&str> = KEYS.iter().flat_map(|key| ["--keys", key]).collect();
    fn collect(value: &Value, field: &str, to: &mut Vec<String>) {
        match value {
            Value::Object(fields) => fields.iter().for_each(|(name, value)| {
                if name == field {
                    to.push(value.to_string());
                }
                collect(value, field, to);
            }),
            Value::Array(list) => list.iter().for_each(|value| collect(value, field, to)),
            _ => {}
        }
    }
    let mut all = Vec::new();
    messages(capture, &[&keys, more].concat())
        .iter()
        .for_each(|message| collect(message, field, &mut all));
    all
}

#[test]
fn one_person_stays_one_person_in_every_capture() {
    let to = folder("pseudonyms-one");
    let key = key(&to);
    let with = ["--pseudonyms", key.as_str()];
    let mut known = std::collections::HashMap::new();
    for (capture, fields) in [
        (
            "captures/moul/full_dirtsand.pcapng",
            &["acct_name", "player_name", "player_int", "account_id", "account_uuid", "offeree"][..],
        ),
        (
            "captures/moul/nagus.pcapng",
            &["acct_name", "player_name", "player_int", "account_id", "account_uuid"],
        ),
    ] {
        for field in fields {
            let before = values(capture, field, &[]);
            let after = values(capture, field, &with);
            assert_eq!(before.len(), after.len());
            for (before, after) in before.into_iter().zip(after) {
                let nobody = ["0", "\"\"", "\"00000000-0000-0000-0000-000000000000\""]
                    .contains(&before.as_str());
                assert_eq!(before == after, nobody, "{field}: {before} became {after}");
                let texts = before.starts_with('"') && before.len() != after.len();
                assert!(!texts, "{field}: {before} became {after}");
                assert_eq!(
                    known.entry(before.clone()).or_insert_with(|| after.clone()),
                    &after,
                    "{field}: {before}"
                );
            }
        }
    }
    let mut all: Vec<&String> = known.values().collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), known.len(), "two persons became one");
}

/// The contents of all files in a folder and in those in it, and their names; but for the key.
fn written(folder: &Path) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        all.push(path.file_name().unwrap().to_str().unwrap().as_bytes().to_vec());
        match path.is_dir() {
            true => all.extend(written(&path)),
            false if path.ends_with("persons") => {}
            // The page's data is compressed; what is in it is looked at by the tests of the report.
            false => all.push(fs::read(path).unwrap()),
        }
    }
    all
}

#[test]
fn no_output_tells_who_somebody_is() {
    let to = folder("pseudonyms-outputs");
    let key = key(&to);
    let capture = "captures/moul/full_dirtsand.pcapng";
    let keys: Vec<&str> = KEYS.iter().flat_map(|key| ["--keys", key]).collect();
    let with = [&[capture, "--pseudonyms", &key][..], &keys].concat();
    let [report, vault, dot, files] =
        ["report.html", "vault.json", "vault.dot", "files"].map(|name| to.join(name));
    for command in [
        &["-x"][..],
        &["--oneline"],
        &["--json", "--spans"],
        &["--csv"],
        &["stats"],
        &["stats", "--json"],
        &["sessions"],
        &["sessions", "--story"],
        &["follow", "tcp:2", "--raw"],
        &["follow", "tcp:4", "--text"],
        &["follow", "tcp:4", "--json"],
        &["sessions", "--csv"],
        &["export", "chat", "--copies"],
        &["export", "chat", "--json", "--copies"],
        &["export", "vault", "-o", vault.to_str().unwrap()],
        &["export", "vault", "-o", dot.to_str().unwrap()],
        &["export", "files", "--json", "-o", files.to_str().unwrap()],
        &["diff", "captures/moul/nagus.pcapng"],
        &["diff", "captures/moul/nagus.pcapng", "--json"],
        &["report", "-o", report.to_str().unwrap()],
    ] {
        let done = run(&[command, &with].concat());
        let said = String::from_utf8_lossy(&done.stderr);
        let differs = command[0] == "diff" && done.status.code() == Some(4);
        assert!(done.status.success() || differs, "{command:?}: {said}");
        let written = written(&to);
        for bytes in [&done.stdout, &done.stderr].into_iter().chain(&written) {
            for name in PERSONS[0].names.iter().chain(PERSONS[0].uuids).chain(&["127.0.0.1"]) {
                assert!(
                    !forms_of_name(name).iter().any(|form| holds(bytes, form)),
                    "{command:?} tells {name}"
                );
            }
        }
    }
}

#[test]
fn programs_that_make_the_file_at_the_same_time_have_one_key() {
    let to = folder("pseudonyms-race");
    for round in 0..4 {
        let path = to.join(round.to_string());
        let begin = || {
            let mut program = crate::common::program();
            program
                .args(["captures/moul/kind_gate.pcap", "-q", "--json"])
                .current_dir(env!("CARGO_MANIFEST_DIR"));
            program.arg("--pseudonyms").arg(&path).stdout(Stdio::piped()).spawn().unwrap()
        };
        let begun: Vec<_> = (0..4).map(|_| begin()).collect();
        let printed: Vec<_> =
            begun.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
        assert!(printed.iter().all(|one| one.status.success() && one.stdout == printed[0].stdout));
    }
    assert_eq!(fs::read_dir(&to).unwrap().count(), 4, "nothing else is left");
    fs::remove_dir_all(to).unwrap();
}

#[test]
fn the_file_is_made_for_its_owner_alone_and_is_never_a_key_of_another_kind() {
    let to = folder("pseudonyms-file");
    let path = to.join("made");
    let capture = "captures/moul/kind_gate.pcap";
    let first = run(&[capture, "--quiet", "--json", "--pseudonyms", path.to_str().unwrap()]);
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let second = run(&[capture, "--quiet", "--json", "--pseudonyms", path.to_str().unwrap()]);
    assert_eq!(first.stdout, second.stdout);
    let other =
        run(&[capture, "--quiet", "--json", "--pseudonyms", to.join("other").to_str().unwrap()]);
    assert_ne!(first.stdout, other.stdout);
    let wrong = run(&[capture, "--pseudonyms", "keys/dirtsand.ini"]);
    let said = String::from_utf8_lossy(&wrong.stderr);
    assert!(wrong.status.code() == Some(1) && said.contains("no file of --pseudonyms"), "{said}");
    assert!(!said.contains("Key") && wrong.stdout.is_empty(), "{said}");
}

#[test]
fn times_move_only_where_that_is_asked_for() {
    let to = folder("pseudonyms-times");
    let key = key(&to);
    let capture = "captures/moul/kind_gate.pcap";
    let times = |more: &[&str]| {
        let all = messages(capture, more);
        all.iter().map(|message| message["time"].as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    let plain = times(&[]);
    let kept = times(&["--pseudonyms", &key]);
    assert_eq!(plain, kept);
    let moved = times(&["--pseudonyms", &key, "--shift-time"]);
    assert!(
        plain
            .iter()
            .zip(&moved)
            .all(|(before, after)| before > after && before[19..] == after[19..]),
        "{moved:?}"
    );
    assert_eq!(run(&[capture, "--shift-time"]).status.code(), Some(2));
}

#[test]
fn no_output_tells_a_time_that_was_moved() {
    let to = folder("pseudonyms-moved");
    let key = key(&to);
    // Frames, a number in decimal digits (`send_time`), a text (`loginout_time`), and microseconds
    // (`UsecSinceStart`) of November 20, 2026.
    for (capture, time) in [
        ("captures/intermud3/i3_coffeemud.pcapng", "1795167000"),
        ("captures/intermud3/i3_coffeemud.pcapng", "Fri Nov 20"),
        ("captures/secondlife/opensim.pcapng.gz", "17951688"),
    ] {
        for command in ["stats", "sessions"] {
            let told = |more: &[&str]| {
                let told = run(&[&[command, capture, "--json", "--quiet"], more].concat());
                String::from_utf8(told.stdout).unwrap()
            };
            assert!(told(&[]).contains("2026-11-20T09:"), "{command} {capture}");
            assert!(
                !told(&["--pseudonyms", &key, "--shift-time"]).contains("2026-11-20T"),
                "{command} {capture}"
            );
        }
        let shown = |more: &[&str]| {
            messages(capture, more)
                .iter()
                .filter(|m| m["fields"].to_string().contains(time))
                .count()
        };
        assert!(shown(&[]) > 0 && shown(&["--pseudonyms", &key, "--shift-time"]) == 0, "{capture}");
    }
}

#[test]
fn redacted_packets_hold_no_secret() {
    let to = folder("pseudonyms-redacted");
    let capture = "captures/moul/full_dirtsand.pcapng";
    let plain = messages(export(capture, &to, &[]).to_str().unwrap(), &[]);
    let exported = export(capture, &to, &["--redact"]);
    let redacted = messages(exported.to_str().unwrap(), &[]);
    let of = |all: &[Value], field: &str| {
        let found = all.iter().filter(|message| message["message"] == "Cli2Auth_AcctLoginRequest");
        found.map(|message| message["fields"][field].clone()).collect::<Vec<_>>()
    };
    assert_eq!(of(&plain, "acct_name"), of(&redacted, "acct_name"));
    let before = of(&plain, "challenge_hash");
    let after = of(&redacted, "challenge_hash");
    assert!(!before.is_empty() && before.iter().zip(&after).all(|(before, after)| before != after));
}

#[test]
fn marks_hold_for_values_of_another_kind_and_nothing_of_a_password_stays() {
    let to = folder("pseudonyms-kinds");
    let mut talk = Talk::to(8080);
    for packet in [
        r#"({"finger-reply",5,"MudA",0,"MudB","alice","Alice","t",0,0,0,42,0,"level-wizard","plan-of-hers",})"#,
        r#"({"tell",5,"MudA","alice","MudB","bob","Alice",({"told-in-array",}),})"#,
        r#"({"tell",5,"MudA","alice","MudB",({"list-of-names",}),"Alice",271828,})"#,
        r#"({"ping-reply",5,"MudA",0,"MudB",0,"P@$$-w0rd!",})"#,
    ] {
        let bytes = [&(packet.len() as u32 + 1).to_be_bytes(), packet.as_bytes(), b"\0"].concat();
        talk.says(0, &bytes);
    }
    let capture = to.join("kinds.pcap");
    fs::write(&capture, talk.bytes()).unwrap();
    let capture = capture.to_str().unwrap();
    let parts = ["wizard", "plan-of", "told-in", "list-of", "271828", "P@$$", "-w0rd", "rd!"];
    let plain = fs::read(export(capture, &to, &[])).unwrap();
    assert!(
        parts.iter().all(|part| holds(&plain, part.as_bytes())),
        "it is in clear without the option"
    );
    let hidden = export(capture, &to, &["--pseudonyms", &key(&to)]);
    let shown = messages(hidden.to_str().unwrap(), &[]);
    let number = shown[2]["fields"]["message"].as_u64();
    assert!(shown.len() == 4 && number.is_some_and(|number| number > 0), "{shown:#?}");
    let hidden = [
        fs::read(&hidden).unwrap(),
        shown.iter().map(Value::to_string).collect::<String>().into_bytes(),
    ];
    for part in parts {
        assert!(hidden.iter().all(|bytes| !holds(bytes, part.as_bytes())), "{part} in {shown:#?}");
    }
    let redacted = fs::read(export(capture, &to, &["--redact"])).unwrap();
    assert!(
        ["P@$$", "-w0rd", "rd!"].iter().all(|part| !holds(&redacted, part.as_bytes())),
        "it is a secret"
    );
}

#[test]
fn bytes_that_may_be_anything_are_filler() {
    let to = folder("pseudonyms-blobs");
    let hidden = export("captures/moul/full_dirtsand.pcapng", &to, &["--pseudonyms", &key(&to)]);
    let shown = messages(hidden.to_str().unwrap(), &["-Y", "*.blob_1 or *.body"]);
    let bytes = |message: &Value| {
        let fields = &message["fields"];
        [&fields["node_buffer"]["blob_1"], &fields["buffer"]["body"]]
            .iter()
            .find_map(|hex| hex.as_str().map(str::to_string))
    };
    assert_eq!(shown.len(), 3);
    for hex in shown.iter().filter_map(bytes) {
        assert!(
            hex.len() > 6 && hex.as_bytes().chunks(2).all(|byte| byte == b"78" || byte == b"00"),
            "{hex}"
        );
    }
}

#[test]
fn the_payload_of_a_ping_and_the_player_who_asks_to_link_are_hidden() {
    let to = folder("pseudonyms-pings");
    let mut talk = Talk::to(14_617);
    let mut put = |side: usize, hex: &str, rest: &[u8]| {
        talk.says(side, &[&parse_hex(hex).unwrap(), rest].concat())
    };
    let product = "219848ea356cd04b9daebb17c585e680";
    put(0, &format!("0a 1f00 96030000 32000000 01000000 {product} 14000000"), &[0; 16]);
    put(0, "0002", &[]);
    put(1, "0102", &[]);
    put(0, "0000 33221100 77665544 11000000", b"written in a ping");
    put(1, "0000 33221100 77665544 11000000", b"written in a ping");
    // A plNetMsgGameMessage with a plLinkingMgrMsg: kLinkPlayerHere, with the KI number of the
    // player who asks.
    let asks = "4b03 00 00000000 0000000000000000 41080000 01000000 03000000 01 01 0b000000 0100 \
                0000 8c03 00 e0250400";
    put(0, &format!("2800 6b020000 3c000000 6b02 00000000 00000000 00 2c000000 {asks} 00"), &[]);
    let capture = to.join("pings.pcap");
    fs::write(&capture, talk.bytes()).unwrap();
    let capture = capture.to_str().unwrap();
    let plain = fs::read(export(capture, &to, &[])).unwrap();
    assert!(holds(&plain, b"written in a ping") && holds(&plain, &271_840_u32.to_le_bytes()));
    let hidden = export(capture, &to, &["--pseudonyms", &key(&to)]);
    let shown = messages(hidden.to_str().unwrap(), &["-Y", "*.payload or *.i"]);
    let hidden = fs::read(&hidden).unwrap();
    assert!(
        !holds(&hidden, b"written") && !holds(&hidden, &271_840_u32.to_le_bytes()),
        "{shown:#?}"
    );
    assert_eq!(shown[0]["fields"]["payload"], "78".repeat(17));
    assert_eq!(shown[1]["fields"]["payload"], "78".repeat(17));
    let argument =
        &shown[2]["fields"]["buffer"]["stream"]["message"]["args"]["buf"]["items"][0]["item"];
    assert_eq!(argument["value"]["type"]["name"], "kInt");
    assert!(argument["value"]["i"].as_u64().is_some_and(|number| number != 271_840), "{argument}");
}

#[test]
fn the_port_of_a_client_is_the_same_wherever_it_is_told() {
    let key = folder("pseudonyms-ports").join("persons.key");
    let key = key.to_str().unwrap();
    let capture = "captures/secondlife/opensim.pcapng.gz";
    let stats: Value = serde_json::from_slice(
        &run(&["stats", "--json", "-q", "--pseudonyms", key, capture]).stdout,
    )
    .unwrap();
    let client = stats["bytes"]["by_stream"]["udp:0"]["client"].as_str().unwrap();
    let circuits: Vec<&String> = stats["learned"]["circuits"].as_object().unwrap().keys().collect();
    assert!(
        circuits.iter().any(|name| name.starts_with(&format!("{client} and "))),
        "{client}: {circuits:?}"
    );
}

#[test]
fn texts_and_numbers_in_llsd_are_hidden_in_every_encoding() {
    let to = folder("pseudonyms-llsd");
    let mut made = Made::new();
    let (viewer, simulator) = (end(1, 50_000), end(2, 9000));
    let packet = |sequence: u8, number: u8, body: &[u8]| {
        [&[0, 0, 0, 0, sequence, 0, 0xff, 0xff, 0, number], body].concat()
    };
    made.udp((viewer, simulator), &packet(1, 3, &[7; 36]));
    let binary =
        b"{\0\0\0\x03k\0\0\0\x04NAMEs\0\0\0\x0aSecretnamek\0\0\0\x01ni\0\x04\x25\xd4k\0\0\0\x01rr\
        \x40\x09\x21\xf9\xf0\x1b\x86\x6e}";
    let notation = b"{'NAME':'Secretname','n':i271828,'r':r3.14159,'all':['Secretname',i271828]}";
    let xml = b"<llsd><map><key>NAME</key><string>Secretname</string><key>n</key>\
        <integer>271828</integer><key>r</key><real>3.14159</real></map></llsd>";
    for (sequence, llsd) in [(1, &binary[..]), (2, notation), (3, xml)] {
        let alert = [&[2, b'x', 0, 1, 2, b'k', 0, llsd.len() as u8], llsd, &[0]].concat();
        made.udp((simulator, viewer), &packet(sequence, 0x86, &alert));
    }
    let capture = to.join("llsd.pcap");
    fs::write(&capture, &made.bytes).unwrap();
    let alerts = ["-Y", "message == AlertMessage"];
    let plain = messages(capture.to_str().unwrap(), &alerts);
    let hidden = export(capture.to_str().unwrap(), &to, &["--pseudonyms", &key(&to)]);
    let shown = messages(hidden.to_str().unwrap(), &alerts);
    let bytes = fs::read(&hidden).unwrap();
    for part in [&b"Secretname"[..], b"271828", &271_828_u32.to_be_bytes(), b"3.14159"] {
        assert!(holds(&made.bytes, part) && !holds(&bytes, part), "{part:?} in {shown:#?}");
    }
    assert_eq!((plain.len(), shown.len()), (3, 3));
    for (plain, shown) in plain.iter().zip(&shown) {
        let values = |alert: &Value| alert["fields"]["AlertInfo"][0]["ExtraParams"].clone();
        let (plain, shown) = (values(plain), values(shown));
        assert_eq!((&plain["NAME"], &plain["n"]), (&"Secretname".into(), &271_828.into()));
        assert!(shown["n"].is_i64() && shown["n"] != plain["n"], "{shown}");
        assert!(shown["r"].is_f64() && shown["r"] != plain["r"], "{shown}");
        assert_eq!(shown["NAME"], "x".repeat(10));
    }
}
