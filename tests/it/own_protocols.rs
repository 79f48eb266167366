//! Protocols that table files declare as a whole: each works in every command as if it were built
//! in.

use std::process::Output;
use std::time::{Duration, Instant};

use moulsniff::examples::run_examples;
use moulsniff::proto::{DeclaredProtocol, Protocol, read_alone};
use moulsniff::session::Side;
use moulsniff::table::{BITSTREAM, TableSource, Tables};

use crate::common::{file, random, records, scratch};
use crate::made::{Made, end, run};

const TINY: [&str; 2] = ["--tables", "tests/data/tinychat.table"];
const CAPTURE: &str = "tests/data/tinychat.pcap";

fn moulsniff(words: &[&str]) -> Output {
    crate::common::program().current_dir(file("")).args(words).output().unwrap()
}

/// What the program prints; it must succeed.
fn printed(words: &[&str]) -> String {
    let out = moulsniff(words);
    assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// What the program says of a mistake; it must be one of typing.
fn mistake(words: &[&str]) -> String {
    let out = moulsniff(words);
    assert_eq!(out.status.code(), Some(2), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stderr).unwrap()
}

#[test]
fn bytes_of_a_declared_protocol_are_decoded_by_its_own_name() {
    let words =
        ["--json", "decode", "tinychat.chat.client", "5443010004", "02626f62", "544309000102"];
    let out = printed(&[&TINY[..], &words].concat());
    let said: Vec<(String, String)> = out
        .lines()
        .map(|line| {
            let record: serde_json::Value = serde_json::from_str(line).unwrap();
            (record["message"].to_string(), record["fields"].to_string())
        })
        .collect();
    let want = [
        (r#""Hello""#, r#"{"magic":"5443","kind":1,"version":2,"name":"bob"}"#),
        (r#""Other""#, r#"{"magic":"5443","kind":9,"data":"02"}"#),
    ];
    assert_eq!(said, want.map(|(message, fields)| (message.to_string(), fields.to_string())));
}

#[test]
fn a_connection_is_recognised_framed_answered_and_remembers_what_was_agreed() {
    let all = records(CAPTURE, &[], &TINY);
    let said = |stream: u64| -> Vec<String> {
        let of = all.iter().filter(|r| r["stream"] == stream && r["message"].is_string());
        of.map(|r| format!("{} {} {} {}", r["from"], r["message"], r["reply_to"], r["fields"]))
            .collect()
    };
    let first = said(0);
    assert_eq!(
        first[..2],
        [
            r#""client" "Hello" null {"magic":"5443","kind":1,"version":2,"name":"bob"}"#,
            r#""server" "Welcome" 1 {"magic":"5443","kind":2,"motd":"hello bob"}"#,
        ]
    );
    assert!(
        said(1)[1].ends_with(r#"{"magic":"5443","kind":2,"code":7}"#),
        "version 1 has a code: {:?}",
        said(1)
    );
    assert!(all.iter().all(|r| r["protocol"] == "tinychat" && r["service"] == "chat"));
    let unanswered = all.iter().filter(|r| r["event"] == "unanswered").count();
    assert_eq!(unanswered, 2, "each connection asks once more and gets no answer");
}

#[test]
fn every_command_knows_the_protocol() {
    let with = |words: &[&str]| printed(&[&TINY[..], &["-q"], words].concat());
    assert!(with(&["stats", CAPTURE]).contains("tinychat"));
    assert!(with(&["sessions", CAPTURE]).contains("session 2  tinychat  127.0.0.1"));
    assert!(with(&["follow", "tcp:0", CAPTURE]).contains("client ▸ server  Hello"));
    assert_eq!(
        with(&[CAPTURE, "--oneline", "-Y", "protocol == tinychat and fields.version == 2"])
            .lines()
            .count(),
        2
    );
    assert_eq!(
        with(&[CAPTURE, "--columns", "service,message,fields.motd", "--csv"]).lines().count(),
        17
    );
    assert!(with(&["schema"]).contains("\"Welcome\""));
    assert!(
        with(&["tables", "list", "tinychat.chat"]).contains("tinychat.chat.server\t2\tWelcome")
    );
    let shown = with(&["tables", "show", "tinychat"]);
    assert!(
        shown.starts_with(
            "// tinychat protocol, tests/data/tinychat.table:1\nprotocol tinychat {\n    \
             transport tcp"
        ),
        "{shown}"
    );
    assert!(shown.ends_with("}\n"), "{shown}");
    assert!(with(&["tables", "show", "Header"]).contains("span size: u16be"));
    assert!(with(&["--decode-as", "tcp:7777=tinychat", CAPTURE]).contains("Welcome"));
    let wrong = mistake(&[&TINY[..], &["--decode-as", "tcp:7777=tinychut", CAPTURE]].concat());
    assert!(wrong.contains("did you mean `tinychat`"), "{wrong}");
}

/// What `tables check` says of a table, which is written into a file of this name.
fn checked(name: &str, text: &str) -> String {
    let path = scratch(format!("{name}.table")).display().to_string();
    std::fs::write(&path, text).unwrap();
    let out = moulsniff(&["tables", "check", &path]);
    let said = [out.stdout, out.stderr].concat();
    String::from_utf8(said).unwrap().replace(&path, name)
}

#[test]
fn a_new_table_is_one_that_works_and_its_name_is_a_name() {
    for transport in ["tcp", "udp"] {
        let text = printed(&["tables", "new", "weather", "--transport", transport]);
        assert!(
            text.contains("protocol weather {") && text.contains(&format!("transport {transport}")),
            "{text}"
        );
        assert_eq!(checked(&format!("weather_{transport}"), &text), "3 examples, 0 failed\n");
    }
    assert!(mistake(&["tables", "new", "Weather"]).contains("is no name for a protocol"));
    assert!(mistake(&["tables", "new", "moul"]).contains("is built in"));
}

#[test]
fn mistakes_of_a_declaration_are_shown_with_their_place_and_what_was_meant() {
    let table = std::fs::read_to_string(file(TINY[1])).unwrap();
    for (from, to, said) in [
        (
            "transport tcp",
            "transprot tcp",
            "wrong:2:5: a protocol has transport, ports, recognise, service, state, but no \
             `transprot`; did you mean `transport`?",
        ),
        ("transport tcp", "transport sctp", "wrong:2:15: expected `tcp` or `udp`, found `sctp`"),
        (
            "transport tcp",
            "",
            "a protocol has a transport: `transport tcp`, `transport udp`, or both",
        ),
        ("ports 7777", "ports 77777", "wrong:3:11: a port is 65535 at most"),
        ("\"TC\" |", "\"TCP\" |", "the values that may stand here are equally long"),
        ("service chat\n", "service chut\n", "there is no service `chut`; did you mean `chat`?"),
        (
            "begins Header",
            "begins Haeder",
            "there is no structure `Haeder`; did you mean `Header`?",
        ),
        (
            "selects kind",
            "selects knd",
            "`knd` is no field before this place, and no value of an enum; did you mean `kind`?",
        ),
        ("selects kind", "select kind", "`select` says nothing of a service"),
        ("set version =", "set verison =", "there is no state `verison`"),
        ("state.version", "state.verson", "there is no state `verson`"),
        (
            "both any Other",
            "both any Other { }\nmessage chat client any Another",
            "`Other` is selected by any other number already",
        ),
        ("protocol tinychat {", "protocol moul {", "`moul` is built in"),
    ] {
        let text = table.replacen(from, to, 1);
        assert_ne!(text, table, "{from}");
        let found = checked("wrong", &text);
        assert!(found.contains(said), "{to}: {found}");
    }
}

#[test]
fn what_no_bytes_can_give_is_pointed_out() {
    let table = std::fs::read_to_string(file(TINY[1])).unwrap();
    let found = checked("far", &table.replace("server 2 Welcome", "server 300 Welcome"));
    assert!(
        found.contains(
            "no bytes can give `Welcome`: its number is 300, and what selects the messages of \
             `chat` has 8 bits"
        ),
        "{found}"
    );
    let found = checked("none", &table.replace("    selects kind\n", ""));
    assert!(
        found.contains("no bytes can give `Hello`: nothing selects the messages of `chat`"),
        "{found}"
    );
    let found = checked(
        "late",
        &table
            .replace("    service chat\n", "    service chat\n    service late\n")
            .replace("service chat {", "service late { whole }\nservice chat {"),
    );
    assert!(
        found.contains("no connection offers the service `late`: one before it is always taken"),
        "{found}"
    );
}

#[test]
fn an_example_that_fails_shows_all_that_differs() {
    let table = std::fs::read_to_string(file(TINY[1])).unwrap();
    let found = checked(
        "differs",
        &table.replace("\"version\": 2, \"name\": \"bob\"", "\"version\": 3, \"nome\": \"bob\""),
    );
    for line in [
        "- .version: 3",
        "+ .version: 2",
        "- .nome: \"bob\"",
        "+ .name: \"bob\"",
        "1 example, 1 failed",
    ] {
        assert!(found.contains(line), "{line}: {found}");
    }
}

/// Every type and length that the language has for own protocols.
const TYPES: &str = r#"protocol types { transport udp
    state last = 0 }
service s { whole }
message s both 0 Never {}
struct Bits { a: bitsbe(1), b: bitsbe(12), c: bitsbe(3)
    example "9234" { "a": 1, "b": 582, "c": 4 } }
struct Numbers { a: leb128(4), b: leb128, c: sleb128(4), d: zigzag(4), e: vlq(4), f: prefixint, g: u24be, h: u24
    example "e58e26 01 7f 03 8100 4025 010203 010203" { "a": 624485, "b": "1", "c": -1, "d": -2, "e": 128, "f": "37", "g": 66051, "h": 197121 } }
struct Digits { a: decimal[to " "], b: hexadecimal[4], c: decimal[*]
    example text "-12 00ff9007199254740993" { "a": -12, "b": 255, "c": "9007199254740993" } }
struct Words { a: utf8[to blanks], b: utf8[to blanks], lines: utf8[to "\r\n"][to "\r\n"], rest: bytes[*]
    example text "GET   /\r\n" { "a": "GET", "b": "/", "lines": [], "rest": "" }
    example text "a b one\r\ntwo\r\n\r\nxy" { "a": "a", "b": "b", "lines": ["one", "two"], "rest": "7879" } }
struct Eight { a: utf8_or_latin1[6], b: utf8_or_latin1[u8], c: utf8_or_latin1[z]
    example "4a f6 72 67 00 ff  02 c3a9  e9 00" { "a": "Jörg", "b": "é", "c": "é" } }
struct Pairs { list: { key: utf8[to "="], value: utf8[to ";"] }[*]
    example text "a=1;b=2" { "list": [{ "key": "a", "value": "1" }, { "key": "b", "value": "2" }] } }
struct Part { line: bytes[to "\n"] as { number: decimal[to " "], text: utf8[*] }, left: u8
    example text "7 ab\n!" { "line": { "number": 7, "text": "ab" }, "left": 33 } }
struct Names { a: labels, b: labels, c: labels
    example "02 6162 01 63 00  c003  00" { "a": "ab.c", "b": "c", "c": "." } }
struct Addresses { a: ipv6, b: mac
    example "20010db8000000000000000000000001 001122aabbcc" { "a": "2001:db8::1", "b": "00:11:22:aa:bb:cc" } }
struct Sums { data: bytes[9], crc: u32be checksum crc32(0, here - 4), sum: u8 checksum sum8(0, 9), adler: u32be checksum adler32(0, 9)
    example "313233343536373839 cbf43926 dd 091e01de" { "data": "313233343536373839", "crc": 3421780262, "sum": 221, "adler": 152961502 } }
struct Ahead { kind: u8, if next == '+' { plus: u8 } else { other: u8 }, rest: bytes[remaining % 4]
    example "07 2b 01" { "kind": 7, "plus": 43, "rest": "01" }
    example "07 2c" { "kind": 7, "other": 44, "rest": "" } }
struct Behind { match next(2) { 0 => short: u8, 1 => long: u16 else => none: {} }, rest: bytes[*]
    example "05 06 00" { "short": 5, "rest": "0600" }
    example "05 06 01" { "long": 1541, "rest": "01" }
    example "05 06" { "none": {}, "rest": "0506" } }
enum Running : computed(state.last) { three = 3, five = 5 }
struct Step { delta: u8, set last = state.last + delta, sum: Running, less: computed(delta - 1) }
struct Sequence { steps: Step[2], span one: bytes[1] as Form | Other, kept: computed(state.last)
    example "03 02 07" { "steps": [ { "delta": 3, "sum": { "value": 3, "name": "three" }, "less": 2 },
        { "delta": 2, "sum": { "value": 5, "name": "five" }, "less": 1 } ], "kept": 5 } }
struct Form { set last = 9, a: u8, b: u8 }
struct Entry { key: latin1[to ":"], if key in ("Length", "length") { value: decimal[to ";"], set last = value } else { value: utf8[to ";"] } }
struct Entries { entries: Entry[to "."], body: bytes[state.last]
    example "41 3a 62 3b 4c 65 6e 67 74 68 3a 32 3b 2e 07 08"
        { "entries": [ { "key": "A", "value": "b" }, { "key": "Length", "value": 2 } ], "body": "0708" } }
struct Worded { word: utf8[z], rest: { match word { "on", "yes" => on: u8, "off" => {}, else => other: u8 }, if word != "" { end: u8 } }
    example "6f6e 00 01 02" { "word": "on", "rest": { "on": 1, "end": 2 } }
    example "6f6666 00 02" { "word": "off", "rest": { "end": 2 } }
    example "00 05" { "word": "", "rest": { "other": 5 } } }
struct Either { one: u8, if one == 1 { of: u8 } else { of: utf8[z] }, if of == "on" { more: u8 }
    example "01 01" { "one": 1, "of": 1 }
    example "00 6f6e 00 09" { "one": 0, "of": "on", "more": 9 } }
struct Other { a: u8 }
"#;

fn load(text: &str) -> Result<Tables, moulsniff::table::TableError> {
    let name =
        Tables::protocol_of(&TableSource { name: "t".into(), text: text.to_string().into() })?;
    Tables::load(
        &name,
        vec![TableSource { name: "t".into(), text: text.to_string().into() }],
        &BITSTREAM,
    )
}

#[test]
fn every_type_for_own_protocols_reads_what_its_example_says() {
    let (count, failed) = run_examples(&load(TYPES).unwrap_or_else(|error| panic!("{error}")));
    assert!(failed.is_empty(), "{}", failed.iter().map(|e| format!("{e}\n")).collect::<String>());
    assert_eq!(count, 23);
}

#[test]
fn a_name_that_leads_to_itself_and_an_endless_integer_are_errors_and_no_loop() {
    let tables = load(TYPES).unwrap();
    for (ty, bytes) in [
        ("Names", &b"\xc0\x00"[..]),
        ("Names", b"\x01a\xc0\x00\xc0\x02"),
        ("Numbers", &[0xff; 40]),
        ("Names", &[0x3f; 20]),
    ] {
        let mut evaluator = moulsniff::table::Evaluator::default();
        let mut tree = moulsniff::tree::Tree::new();
        let ty = tables.type_named(ty).unwrap();
        evaluator.value(&tables, ty, moulsniff::tree::Sym::ELEMENT, bytes, 0, &mut tree);
        assert!(!tree.problems().is_empty());
    }
}

/// Any text of a table is an error or a table that works, in bounded time, whatever bytes come.
#[test]
fn a_thousand_changed_tables_are_errors_or_work() {
    let mut random = random();
    let names = [
        "examples/protocols/dns.table",
        "examples/protocols/mqtt.table",
        "examples/protocols/redis.table",
        "examples/protocols/quake3.table",
        TINY[1],
    ];
    let tables = names.map(|name| std::fs::read_to_string(file(name)).unwrap());
    let capture = std::fs::read(file("examples/protocols/dns.pcap")).unwrap();
    let mut good = 0;
    let begun = Instant::now();
    for round in 0..1000 {
        let mut words: Vec<&str> = tables[round % tables.len()]
            .split_inclusive([' ', '\n', '(', ')', ':', ',', '.'])
            .collect();
        for _ in 0..1 + random() % 3 {
            let at = random() % words.len();
            let other = random() % words.len();
            match random() % 4 {
                0 => drop(words.remove(at)),
                1 => words.insert(at, words[other]),
                2 => words[at] = words[other],
                _ => {
                    words[at] =
                        ["0 ", "18446744073709551615 ", "state.", "remaining ", "{ ", "any ", "-1 "]
                            [random() % 7]
                }
            }
        }
        let text = words.concat();
        match load(&text) {
            Err(error) => assert!(error.line > 0 && !error.message.is_empty(), "{error}"),
            Ok(tables) => {
                good += 1;
                run_examples(&tables);
                let Some(protocol) = DeclaredProtocol::of(&tables) else { continue };
                let protocol: &dyn Protocol = &protocol;
                let transport = protocol.transport();
                let from = random() % capture.len();
                let bytes = &capture[from..(from + 300).min(capture.len())];
                read_alone(protocol, &tables, (transport, Side::Client), None, bytes, &mut |_| {});
                read_alone(
                    protocol,
                    &tables,
                    (transport, Side::Server),
                    None,
                    b"*2\r\n$2\r\nab\r\n:7\r\n",
                    &mut |_| {},
                );
            }
        }
    }
    assert!(good > 50, "only {good} of the changed tables are tables");
    assert!(begun.elapsed() < Duration::from_secs(300), "{:?}", begun.elapsed());
}

#[test]
fn a_message_that_one_side_usually_sends_tells_which_end_is_the_client() {
    let table = |marks: [&str; 2]| {
        format!(
            "protocol polls {{ transport udp\n recognise fits }}\nstruct Start {{ kind: u8 }}\n\
             service poll {{ begins Start, selects kind, whole }}\n\
             message poll both 1 Ask {} {{ what: u8 }}\n\
             message poll both 2 Tell {} {{ what: u16 }}\n",
            marks[0], marks[1]
        )
    };
    let path = scratch("polls.table").display().to_string();
    let senders = |marks: [&str; 2], first: &[u8]| -> String {
        std::fs::write(&path, table(marks)).unwrap();
        let mut made = Made::new();
        let one = end(1, 40_001);
        let other = end(2, 40_002);
        made.udp((one, other), first);
        made.udp((other, one), &[1, 9]);
        let (records, _) = run(&made.bytes, &["--tables", &path]);
        let said = records.iter().filter(|r| r["message"].is_string());
        said.map(|r| format!("{} {}", r["message"].as_str().unwrap(), r["from"].as_str().unwrap()))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let usual = ["usually client", "usually server"];
    assert_eq!(senders(["", ""], &[2, 0, 7]), "Tell client, Ask server", "who came first");
    assert_eq!(senders(usual, &[2, 0, 7]), "Tell server, Ask client");
    assert_eq!(senders(usual, &[1, 7]), "Ask client, Ask server");
    assert_eq!(senders(["", "usually server"], &[2, 0, 7]), "Tell server, Ask client");
    let wrong = checked("usually", &table(["usually both", ""]));
    assert!(wrong.contains("expected `client` or `server`"), "{wrong}");
    let wrong = checked(
        "usually_one",
        &table(["", ""]).replace("both 1 Ask", "client 1 Ask usually client"),
    );
    assert!(
        wrong.contains("usually_one:5:27: `usually` is said of a message of `both` directions"),
        "{wrong}"
    );
}

#[test]
fn a_header_whose_form_depends_on_the_state_computes_its_length_and_number() {
    let text = "protocol staged { transport tcp\n state stage = 0 }\n\
        struct Start { if state.stage == 1 { span kind: u8, span size: u16be, span total: computed(size + 3) }\n\
        else { span size: u8, span kind: u32be, span total: computed(size) } }\n\
        service s { begins Start, selects kind, length total max 1000 }\n\
        message s client 70000 First { set stage = 1, data: bytes[*]\n example \"06 00011170 ff\" { \"data\": \"ff\" } }\n\
        message s both 'x' Later { data: bytes[*]\n example with stage = 1 \"78 0001 aa\" { \"data\": \"aa\" } }\n";
    assert_eq!(checked("staged", text), "2 examples, 0 failed\n");
    let path = scratch("staged.table").display().to_string();
    let out = printed(&[
        "--tables",
        &path,
        "--json",
        "decode",
        "staged.s.client",
        "0600011170ff780002aabb780000",
    ]);
    let said: Vec<serde_json::Value> =
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said: Vec<String> =
        said.iter().map(|r| format!("{} {}", r["message"], r["fields"]["data"])).collect();
    assert_eq!(said, ["\"First\" \"ff\"", "\"Later\" \"aabb\"", "\"Later\" \"\""]);
    let absent = "protocol absent { transport tcp }\nservice s { whole }\nmessage s both any M { \
                  a: u8, b: computed(a - 5), c: u8 }\n";
    assert_eq!(checked("absent", absent).lines().last(), Some("0 examples, 0 failed"));
    let path = scratch("absent.table").display().to_string();
    let out = printed(&["--tables", &path, "--json", "decode", "absent.s.client", "0107"]);
    assert!(
        out.contains("absent, or gives no number") && out.contains("\"severity\":\"error\""),
        "{out}"
    );
}

#[test]
fn texts_are_compared_with_texts_and_with_nothing_else() {
    let said = |condition: &str| {
        let text = format!(
            "protocol words {{ transport tcp }}\nservice s {{ whole }}\nmessage s both any M {{ \
             a: utf8[z], n: u8, w: utf16[2], if {condition} {{ b: u8 }} }}\n"
        );
        checked("words", &text)
            .lines()
            .find(|line| line.contains("words:3:"))
            .unwrap_or_default()
            .to_string()
    };
    assert!(said("a == \"x\"").ends_with("has no example: nothing tests it"));
    for (condition, message) in [
        ("a == 1", "expected a text in quotation marks, as the field is a text"),
        ("a == n", "expected a text in quotation marks"),
        (
            "a < \"x\"",
            "`a` is a text: `==`, `!=`, `in` and `match` compare it with texts in quotation marks",
        ),
        ("a", "`a` is a text: "),
        ("n == \"x\"", "only a field that is a text is compared with a text"),
        (
            "w == \"x\"",
            "`w` is used in an expression, so it has to be a number, or a text of bytes",
        ),
    ] {
        assert!(said(condition).contains(message), "{condition}: {}", said(condition));
    }
}

#[test]
fn a_rule_that_never_decides_is_pointed_out() {
    let said = |rules: &str| {
        let text = format!(
            "protocol rules {{ transport tcp\n ports 7777\n{rules}\n}}\nservice s {{ whole \
             }}\nservice t {{ whole }}\n"
        );
        checked("rules", &text)
            .lines()
            .filter(|line| line.contains("rule "))
            .collect::<Vec<_>>()
            .join("\n")
    };
    let idle = "rules:4:1: this rule decides nothing: one before it holds wherever it does";
    let both = |first: &str, second: &str| {
        said(&format!("recognise {first}\nrecognise {second}\nservice s\nservice t"))
    };
    assert_eq!(both("client { at 0 \"GE\" }", "client { at 0 \"GET\", length >= 9 }"), idle);
    assert_eq!(both("at 1 \"ET\"", "client at 0 \"GET\" | \"SET\""), idle);
    assert_eq!(both("at 0 hex \"40\" mask hex \"c0\"", "client at 0 hex \"47\""), idle);
    assert_eq!(both("length >= 3", "server at 0 \"GET\""), idle);
    assert_eq!(both("port 1, 7777", "port"), idle);
    for (first, second) in [
        ("client { at 0 \"GET\" }", "client { at 0 \"GE\" }"),
        ("client { at 0 \"GE\" }", "server { at 0 \"GET\" }"),
        ("at 0 hex \"47\"", "at 0 hex \"47\" mask hex \"c0\""),
        ("at 1 \"ET\"", "at 0 \"GET\" | \"PUT\""),
        ("port 1", "port 1, 2"),
        ("fits", "length >= 3"),
    ] {
        assert_eq!(both(first, second), "", "{first}, {second}");
    }
    let services = "service s when client { at 0 \"GE\" }\nservice t when client { at 0 \"GET\" }";
    assert_eq!(
        said(services),
        "rules:4:9: this service is never taken: the rule of `s` holds wherever this one does"
    );
}

#[test]
fn two_protocols_that_are_checked_together_must_not_take_each_others_connections() {
    let said = |first: &str, second: &str| {
        let write = |name: &str, rule: &str| {
            let path = scratch(format!("{name}.table")).display().to_string();
            let text = format!(
                "protocol {name} {{ transport tcp\n ports 7777\n{rule}\n}}\nservice s {{ whole \
                 }}\nmessage s both any M {{ x: bytes[*]\n example \"00\" {{ \"x\": \"00\" }} }}\n"
            );
            std::fs::write(&path, text).unwrap();
            path
        };
        let out =
            printed(&["tables", "check", &write("firstone", first), &write("secondone", second)]);
        out.lines()
            .find(|line| line.contains("asked first"))
            .map_or(String::new(), |line| line.rsplit('/').next().unwrap().to_string())
    };
    let taken = "`firstone` is asked first, and takes every connection that this rule of \
                 `secondone` recognises";
    assert_eq!(
        said("recognise at 0 \"AB\"", "recognise client { at 0 \"ABC\", fits }"),
        format!("secondone.table:3:1: {taken}")
    );
    assert_eq!(said("", ""), format!("secondone.table:1:1: {taken}"));
    assert_eq!(
        said("recognise { at 0 \"AB\", fits }", "recognise client { at 0 \"ABC\", fits }"),
        ""
    );
    assert_eq!(said("recognise at 0 \"AB\"", "recognise at 0 \"AC\""), "");
}

#[test]
fn words_that_differ_in_case_alone_are_one_where_case_has_no_meaning() {
    let text = |any: &str| {
        format!(
            "protocol words {{ transport tcp }}\n\
             service s {{ begins L, selects word{any}, ends \"\\n\" }}\n\
             struct L {{ word: utf8[to blanks] }}\n\
                 message s client \"GET\" Get {{}}\nmessage s client \"get\" Got {{}}\n"
        )
    };
    let taken = "`Got` takes the number or text of `Get`, which cannot be recognised any more";
    assert!(checked("words", &text(" anycase")).contains(taken));
    assert!(!checked("words_exact", &text("")).contains(taken));
}
