//! Text from a capture that would move a terminal's cursor, forge a record or turn the reading
//! order: in no output does it come out raw.

use std::io::Write;
use std::process::Stdio;

use crate::made::{ACK, Made, end};

use crate::common::scratch;

/// What a sender may put into any text: each would do harm on a terminal. The bytes are UTF-8.
const HARM: &str =
    "x\u{1b}[2J\u{7}\r\n#2  frame 9  forged\u{7f}\u{9b}\u{85}\u{202e}\u{2066}\u{2028}\u{61c}y";

/// A router stream of Intermud-3 with harm in packet types, keys of mappings, names and texts, and
/// bytes that are no packet.
fn capture() -> Vec<u8> {
    let quoted = HARM.replace('\n', "\\n");
    let packets = [
        format!(
            "({{\"startup-req-3\",5,\"{quoted}\",0,\"*i4\",0,1,0,0,1,1,1,\"{quoted}\",\"{quoted}\"\
             ,\"{quoted}\",\"e\",([\"{quoted}\":1,]),([]),}})"
        ),
        format!(
            "({{\"tell\",5,\"A\",\"{quoted}\",\"B\",\"{quoted}\",\"{quoted}\",\"{quoted}\",}})"
        ),
        format!(
            "({{\"{quoted}\",5,\"A\",0,\"B\",0,([\"{quoted}\":([\"{quoted}\":1.5,\"k\":\"\\xff\",\
             ]),]),}})"
        ),
        format!("({{\"{HARM}\",5,\"A\",0,\"B\",0,}})"),
        format!(
            "({{\"error\",5,\"*i4\",0,\"A\",0,\"{quoted}\",\"{quoted}\",({{\"{quoted}\",5,}}),}})"
        ),
        format!(
            "({{\"mudlist\",5,\"*i4\",0,\"A\",0,1,([\"{quoted}\":({{-1,\"1.2.3.4\",1,2,3,\"\
             {quoted}\",\"{quoted}\",\"{quoted}\",\"t\",\"o\",\"e\",([\"{quoted}\":1,]),([]),}}),\
             ]),}})"
        ),
        HARM.to_string(),
    ];
    let client = end(1, 40_000);
    let server = end(2, 8080);
    let mut made = Made::new();
    made.open(client, server);
    let mut at = [1, 1];
    for (i, text) in packets.iter().enumerate() {
        let mut bytes = (text.len() as u32 + 1).to_be_bytes().to_vec();
        bytes.extend(text.as_bytes());
        bytes.push(0);
        // The last three come from the router.
        let side = usize::from(i >= 4);
        let ends = if side == 0 { (client, server) } else { (server, client) };
        made.tcp(ends, (at[side], at[1 - side], ACK), &bytes);
        at[side] += bytes.len() as u32;
    }
    made.bytes
}

/// What the program prints, whatever its exit status.
fn printed(arguments: &[&str], capture: &[u8]) -> (String, String) {
    let mut program = crate::common::program();
    program.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = program.spawn().unwrap();
    child.stdin.take().unwrap().write_all(capture).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

/// The controls in a text other than line feeds, and tabs where these part columns.
fn controls(text: &str, tabs: bool) -> String {
    text.chars()
        .filter(|c| moulsniff::captured::is_control(*c) && *c != '\n' && !(tabs && *c == '\t'))
        .collect()
}

#[test]
fn no_output_has_a_control_from_the_capture() {
    let capture = capture();
    let ways: [&[&str]; 19] = [
        &["sessions", "-", "--story", "--json"],
        &["export", "chat", "-"],
        &["export", "chat", "-", "--json", "--copies"],
        &["-", "--oneline"],
        &["follow", "tcp:0", "-", "--json"],
        &["follow", "tcp:0", "-", "--json", "--text"],
        &["sessions", "-"],
        &["sessions", "--csv", "-"],
        &["-"],
        &["-", "-x"],
        &["-", "--json"],
        &["-", "--json", "--spans"],
        &[
            "-",
            "--columns",
            "record,message,event,text,problems,problems[*].field,*.mudname,fields",
        ],
        &["-", "--csv"],
        &["-", "--csv", "--columns", "message,fields,*.error_message"],
        &["stats", "-"],
        &["stats", "--json", "-"],
        &["follow", "tcp:0", "-"],
        &["follow", "tcp:0", "--text", "-"],
    ];
    for way in ways {
        let (out, err) = printed(way, &capture);
        assert!(!out.is_empty(), "{way:?}: {err}");
        let tabs = way.contains(&"--columns") && !way.contains(&"--csv");
        let csv = way.contains(&"--csv");
        // In CSV, line feeds and the like stay within quotes, as RFC 4180 has it.
        let out = if csv { out.replace(['\r', '\t'], "") } else { out.replace("\r\n", "\n") };
        assert_eq!(controls(&out, tabs), "", "{way:?}");
        assert_eq!(controls(&err, false), "", "{way:?}");
        // Where a stream is printed as text, its lines are the lines printed.
        let plain = csv || way.contains(&"--text");
        assert!(
            plain || !out.lines().any(|line| line.starts_with("#2  frame 9")),
            "{way:?}: a record was forged"
        );
    }
}

#[test]
fn every_record_is_one_line_of_columns() {
    let capture = capture();
    let (json, _) = printed(&["-", "--json"], &capture);
    let (columns, _) = printed(&["-", "--columns", "record,message,fields,problems"], &capture);
    assert_eq!(columns.lines().count(), json.lines().count() + 1);
}

#[test]
fn no_error_has_a_control_of_what_was_typed() {
    let name = format!("/nowhere/{HARM}");
    let harm = name.as_str();
    let keys = format!("--keys={name}");
    let tables = format!("--tables={name}");
    let ways: [&[&str]; 10] = [
        &[harm],
        &["stats", harm],
        &["-", &keys],
        &["-", &tables],
        &["-", "--sdl", harm],
        &["-", "-Y", harm],
        &["-", "--columns", harm],
        &["-", harm, "--no-such-option"],
        &["decode", harm, "00"],
        &["tables", "show", harm],
    ];
    for way in ways {
        let (out, err) = printed(way, b"");
        assert!(!err.is_empty(), "{way:?}: {out}");
        assert_eq!(controls(&err, false), "", "{way:?}: {err:?}");
        assert!(!err.lines().any(|line| line.starts_with("#2  frame 9")), "{way:?}: {err}");
    }
}

/// A name of a file with harm in it, as a sender of files may choose one.
#[cfg(unix)]
fn harmful_name() -> String {
    HARM.replace('/', "")
}

#[test]
#[cfg(unix)]
fn no_remark_on_a_file_has_a_control_of_its_name() {
    let folder = scratch("harm");
    let inside = folder.join(harmful_name());
    std::fs::create_dir_all(&inside).unwrap();
    let at = |name: &str| inside.join(name).to_string_lossy().into_owned();
    std::fs::write(at("a.pcap"), capture()).unwrap();
    let game = std::fs::read("captures/moul/kind_game.pcap").unwrap();
    std::fs::write(at("cut.pcap"), &game[..game.len() - 7]).unwrap();
    std::fs::write(at("game.pcap"), &game).unwrap();
    std::fs::copy("keys/dirtsand.ini", at("k.ini")).unwrap();
    std::fs::write(at("bad.ini"), "[[[\u{1b}[31m\u{202e}\n").unwrap();
    std::fs::write(at("bad.toml"), "a = \"\u{1b}[31m").unwrap();
    std::fs::write(at("bad.table"), "protocol moul\nmessage \u{1b}[31m\u{202e}").unwrap();
    std::fs::write(at("bad.sdl"), "STATEDESC \u{1b}[31m { VERSION \u{202e}").unwrap();
    let capture = at("a.pcap");
    let cut = at("cut.pcap");
    let game = at("game.pcap");
    let keys = at("k.ini");
    let out = at("out");
    let folder_of_all = inside.to_string_lossy().into_owned();
    let ways: Vec<Vec<&str>> = vec![
        vec![&cut],
        vec!["--json", &game, "--keys", &keys],
        vec![&game, "--keys", &keys],
        vec!["--csv", &game, "--keys", &keys],
        vec!["stats", &cut, "--keys", &keys],
        vec!["sessions", &game, "--keys", &keys],
        vec!["follow", "--all", "-o", &out, &capture],
        vec!["follow", "--all", "-o", &capture, &game],
        vec!["follow", &capture],
        vec!["split", &capture, "-o", &out],
        vec!["split", &cut, "-o", &out],
        vec!["split", &capture, "-o", &keys],
        vec!["report", &capture, "-o", &out],
        vec!["report", &capture, "-o", &capture],
        vec!["keys", "check", &keys],
        vec!["keys", "check", &folder_of_all],
        vec!["keys", "check", &capture],
        vec!["keys", "inject", &game, "--keys", &keys, "-o", &game],
        vec!["keys", "inject", &game, "--keys", &keys, "-o", &out],
        vec!["keys", "strip", &capture, "-o", &out],
        vec!["keys", "strip", &cut, "-o", &out],
    ];
    let files = ["bad.ini", "bad.toml", "bad.table", "bad.sdl"].map(at);
    let options = ["--keys", "--keys", "--tables", "--sdl"];
    let more = options.iter().zip(&files).map(|(option, name)| vec![&*capture, *option, &**name]);
    for way in ways.into_iter().chain(more) {
        let (out, err) = printed(&way, b"");
        assert_eq!(controls(&err, false), "", "{way:?}: {err:?}");
        assert_eq!(controls(&out, false).replace('\r', ""), "", "{way:?}: {out:?}");
        assert!(
            !err.lines().chain(out.lines()).any(|line| line.starts_with("#2  frame 9")),
            "{way:?}: {err}"
        );
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// How deep arrays and objects lie within each other in a line of JSON, and what jq 1.6 has open
/// there at most: of an object the key too.
fn depth(line: &str) -> (usize, usize) {
    let mut open = Vec::new();
    let mut deepest = (0, 0);
    let mut quoted = false;
    let mut escaped = false;
    for c in line.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            '{' if !quoted => open.push(2),
            '[' if !quoted => open.push(1),
            '}' | ']' if !quoted => drop(open.pop()),
            _ => continue,
        }
        deepest = (deepest.0.max(open.len()), deepest.1.max(open.iter().sum::<usize>()));
    }
    deepest
}

#[test]
fn no_line_of_json_is_too_deep_for_jq() {
    for levels in [70, 79, 84, 90, 118, 127, 190, 230] {
        let text = format!(
            "({{\"tell\",5,\"A\",0,\"B\",0,\"V\",{}1{},}})",
            "([\"k\":".repeat(levels),
            ",])".repeat(levels)
        );
        let client = end(1, 40_000);
        let server = end(2, 8080);
        let mut made = Made::new();
        made.open(client, server);
        let mut bytes = (text.len() as u32).to_be_bytes().to_vec();
        bytes.extend(text.as_bytes());
        made.tcp((client, server), (1, 1, ACK), &bytes);
        for way in [&["-", "--json"][..], &["-", "--json", "--spans"]] {
            let (out, err) = printed(way, &made.bytes);
            assert!(out.contains("\"message\":\"tell\""), "{err}");
            let (deepest, entries) = out.lines().map(depth).max().unwrap();
            assert!(deepest <= 200 && entries <= 256, "{levels} {way:?}: {deepest}, {entries}");
            let cut = out.contains("are written as text");
            assert!(cut || deepest > levels, "{levels} {way:?}: {deepest}");
            // Nothing is cut that jq would read.
            assert!(!cut || entries > 240, "{levels} {way:?}: {entries}");
        }
        for way in [
            &["stats", "-", "--json"][..],
            &["sessions", "-", "--json", "--story"],
            &["follow", "tcp:0", "-", "--json", "--text"],
            &["export", "chat", "-", "--json"],
            &["decode", "intermud3", "--json"],
        ] {
            let input = if way[0] == "decode" { &bytes } else { &made.bytes };
            let (out, _) = printed(way, input);
            let (deepest, entries) = out.lines().map(depth).max().unwrap_or_default();
            assert!(deepest <= 200 && entries <= 256, "{levels} {way:?}: {deepest}, {entries}");
        }
    }
}

#[test]
fn bytes_below_a_message_are_bounded() {
    let text = format!("({{\"tell\",5,\"A\",0,\"B\",0,\"V\",\"{}\",}})", "x".repeat(300_000));
    let mut bytes = (text.len() as u32).to_be_bytes().to_vec();
    bytes.extend(text.as_bytes());
    let client = end(1, 40_000);
    let server = end(2, 8080);
    let mut made = Made::new();
    made.open(client, server);
    for (i, part) in bytes.chunks(60_000).enumerate() {
        made.tcp((client, server), (1 + 60_000 * i as u32, 1, ACK), part);
    }
    let (out, _) = printed(&["-", "-x"], &made.bytes);
    assert!(
        out.contains("\n      00fff0 ") && !out.contains("\n      010000 "),
        "64 KiB are shown"
    );
    assert!(
        out.contains(&format!("      and {} more bytes", bytes.len() - (64 << 10))),
        "what is left out is said"
    );
}

#[test]
fn what_differs_has_no_control_either() {
    let folder = scratch("");
    let path = folder.join("hostile-text.pcap");
    std::fs::write(&path, capture()).unwrap();
    let other = crate::common::file("captures/intermud3/i3_edge_small.pcapng");
    for form in [&["--json"][..], &["--oneline"], &[]] {
        let words =
            [&["diff", path.to_str().unwrap(), other.to_str().unwrap(), "-q"], form].concat();
        let (out, err) = printed(&words, b"");
        assert!(out.len() > 1000, "{err}");
        assert_eq!(controls(&out, false) + &controls(&err, false), "", "{form:?}");
    }
}

/// The values of the tag for Wireshark's info column in the exported packets of a capture.
fn info_columns(exported: &[u8]) -> Vec<String> {
    let number = |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    let mut rest = exported;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let kind = number(rest);
        let length = number(&rest[4..]);
        let mut tags = if kind == 6 { &rest[28..] } else { &[] };
        while tags.len() > 4 && tags[..2] != [0, 0] {
            let end = 4 + usize::from(tags[2]) * 256 + usize::from(tags[3]);
            if tags[..2] == [0, 36] {
                let text = String::from_utf8(tags[4..end].to_vec()).unwrap();
                found.push(text.trim_end_matches('\0').to_string());
            }
            tags = &tags[end..];
        }
        rest = &rest[length..];
    }
    found
}

#[test]
fn what_files_say_about_messages_has_no_control() {
    let folder = scratch("");
    let [exported, page] =
        ["hostile-text.pcapng", "hostile-text.html"].map(|name| folder.join(name));
    let (_, err) =
        printed(&["export", "messages", "-", "-o", exported.to_str().unwrap()], &capture());
    let columns = info_columns(&std::fs::read(&exported).unwrap());
    assert!(columns.iter().any(|text| text.contains("forged")), "{columns:?}: {err}");
    assert!(columns.iter().all(|text| controls(text, false).is_empty()), "{columns:?}");
    let (_, err) = printed(&["report", "-", "-o", page.to_str().unwrap()], &capture());
    assert_eq!(controls(&std::fs::read_to_string(&page).unwrap(), true), "", "{err}");
}
