//! What a filter says of a message by its outline is what it says of its tree: over messages that
//! were really sent, as they are and changed.

use crate::common;
use crate::material::{self, DIRTSAND, MOSS};
use crate::outline_filters::{OutlineFilters, short_messages};
use moulsniff::filter::Filter;
use moulsniff::proto::Side;
use moulsniff::tree::mark;

/// Each with how many messages it is expected to drop by their outlines, at least; none where only
/// fields tell.
const FILTERS: [(&str, usize); 99] = [
    ("*.location", 20),
    ("fields.buffer.stream.message", 20),
    ("not fields.buffer.stream.message.sender", 20),
    ("*.sender == null", 20),
    ("*.receivers", 20),
    ("*.receivers[*] == null", 20),
    ("not *.receivers[0]", 20),
    ("*.time_stamp != 5", 20),
    ("*.location == 5", 20),
    ("*.location != null or fields.buffer.receivers[*] > 5", 20),
    ("fields.buffer.class == plNetMsgGameMessage", 20),
    ("fields.buffer.class != plNetMsgGameMessage", 20),
    ("fields.buffer.class.name contains \"SDL\"", 20),
    ("fields.class.name contains \"SDL\"", 20),
    ("fields.class.value > 600", 20),
    ("fields.class.names[*] == plSceneObject", 200),
    ("*.class == plSceneObject", 20),
    ("*.class == plLoadCloneMsg", 200),
    ("*.class in {plLoadCloneMsg, plPlayerPageMsg}", 200),
    ("*.result == kNetErrTimeout", 300),
    ("not *.class == plLoadCloneMsg", 20),
    ("*.class.name == plSceneObject", 20),
    ("not *.class.name matches \"^plNetMsg\"", 200),
    ("fields.buffer.stream.message.class in {1..700}", 20),
    ("fields.buffer.flags.value > 5", 20),
    ("fields.buffer.flags.names[*] contains TimeSent", 20),
    ("*.flags.names[*] contains \"Clone\"", 20),
    ("*.time_stamp > 5", 20),
    ("*.time_stamp == 1234.5678", 20),
    ("*.object_name == \"Nobody\"", 200),
    ("*.object_name contains \"LinkIn\"", 200),
    ("*.object_name in {\"Nobody\", \"a\"}", 50),
    ("fields.buffer.*.object_name == \"LinkInPointDefault\"", 200),
    ("message == Game2Cli_PropagateBuffer", 20),
    ("not message == Game2Cli_PropagateBuffer", 20),
    ("from == client and *.object_name == \"CameraRegion01\"", 200),
    ("from == client or *.object_name == \"CameraRegion01\"", 20),
    ("not (*.object_name == \"Nobody\" or from == client)", 50),
    ("service in {auth, file}", 200),
    ("*.object_name != \"Nobody\"", 20),
    ("*.clone_player_id == 0", 20),
    ("*.clone_player_id == 123456", 300),
    ("*.clone_player_id in {123456, -5}", 300),
    ("*.receivers[*] == 123456", 300),
    ("*.node_id in {123456, 5..9}", 200),
    ("fields.result == 123456", 200),
    ("*.object_name matches \"Link\"", 20),
    ("*.object_name contains \"\"", 20),
    ("refused", 200),
    ("not refused", 0),
    ("refused.name == kNetSuccess or refused.value == 5", 200),
    ("expects_reply", 200),
    ("problems[*].severity == error", 200),
    ("elapsed_ms > 5 or reply_to == 3", 200),
    ("event == gap or bytes.lost > 0", 200),
    ("frame == 2 or time > 2030-01-01 or record == 2", 200),
    ("offset > 0 or length == 0 or type == 60000", 200),
    ("not frame == 1", 200),
    ("*.node_id == 123456", 200),
    ("*.ki_level == 1", 200),
    ("fields.trans_id == 1", 200),
    ("fields.buffer.*.node_id == 123456", 200),
    ("*.object_name", 20),
    ("*.object_name matches \"^zz+\"", 20),
    ("not *.receivers[*] == 1", 0),
    ("*.\"a name of the traffic\"", 200),
    ("not *.object_name", 200),
    ("*.object_name matches \"(?i)nobody\"", 200),
    ("fields.receivers[*] == 123456", 300),
    ("*.sender == 123456", 200),
    ("*.name == \"Nobody\"", 200),
    ("*.name contains \"kNet\"", 0),
    ("names[*].name == \"Nobody\"", 300),
    ("fields.buffer.flags has 0x1001", 20),
    ("fields.buffer.flags contains Rebroadcast", 20),
    ("fields.buffer.player_id != 0", 20),
    ("fields.result != kNetSuccess", 200),
    ("fields.result.name == kNetSuccess", 20),
    ("*.player_id > 5", 20),
    ("not *.player_id > 5", 20),
    ("*.receivers[*] > 5", 20),
    ("*.receivers[1] != 7", 20),
    ("fields.receivers[0] < 7", 20),
    ("fields.buffer.*.flags has 0x1001", 20),
    ("*.flags has 0x1001", 20),
    ("*.flags has kNetPropagate", 200),
    ("*.bcast_flags has kNetPropagate", 20),
    ("fields.buffer.flags has kNetPropagate", 200),
    ("not *.flags has kHasTimeSent", 20),
    ("*.create_time >= 2026-11-20", 20),
    ("info contains \"Nobody\"", 200),
    ("info == \"no such line\"", 200),
    ("info != \"ping\"", 0),
    ("not info contains \"link in\"", 0),
    ("info in {\"ping\", \"nobody\"}", 200),
    ("info matches \"(?i)^nobody\"", 200),
    ("info contains \"pl\" or info contains \" 1\"", 20),
    ("info", 0),
    ("fields.trans_id < 7 or fields.buffer.time_sent.seconds > 2025-01-01", 1),
];

#[test]
fn what_is_dropped_by_an_outline_is_not_kept() {
    let mut fixture = OutlineFilters::new();
    let filters: Vec<Filter> =
        FILTERS.iter().map(|(expression, _)| fixture.filter(expression)).collect();
    let mut dropped = [0; FILTERS.len()];
    let mut random = common::random();
    for session in [DIRTSAND, MOSS] {
        for sent in material::messages(session) {
            if sent.bytes.is_empty() || sent.bytes.len() > 4096 {
                continue;
            }
            let asked = (sent.service.as_str(), sent.from);
            fixture.ask(asked, &sent.bytes, &filters, &mut dropped);
            let mut bytes = sent.bytes.clone();
            let at = random() % bytes.len();
            bytes[at] = (random() & 0xff) as u8;
            fixture.ask(asked, &bytes, &filters, &mut dropped);
        }
    }
    for ((expression, least), count) in FILTERS.iter().zip(dropped) {
        assert!(count >= *least && (*least > 0 || count == 0), "{expression}: {count} dropped");
    }
}

#[test]
fn a_text_that_is_there_is_found_in_every_encoding() {
    let mut fixture = OutlineFilters::new();
    let mut random = common::random();
    let mut found = 0;
    let mut compressed = 0;
    for sent in short_messages(&[DIRTSAND]) {
        fixture.tree.clear();
        fixture.ask((&sent.service, sent.from), &sent.bytes, &[], &mut []);
        let Some((name, text)) = fixture.a_text(&sent.bytes, random()) else { continue };
        let quoted = serde_json::to_string(&text).unwrap();
        let compared =
            [format!("*.{name} != {quoted}"), format!("*.{name} > \"M\""), format!("*.{name}")];
        let compared = compared.map(|expression| fixture.filter(&expression));
        fixture.ask((&sent.service, sent.from), &sent.bytes, &compared, &mut [0; 3]);
        let mut filters =
            vec![format!("*.{name} == {quoted}"), format!("*.{name} contains {quoted}")];
        if text.chars().all(|c| c.is_alphanumeric() || " _-".contains(c)) {
            let other = |c: char| {
                if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() }
            };
            filters.push(format!(
                "*.{name} matches \"(?i){}\"",
                text.chars().map(other).collect::<String>()
            ));
        }
        let filters: Vec<Filter> =
            filters.iter().map(|expression| fixture.filter(expression)).collect();
        let mut dropped = [0; 3];
        fixture.ask((&sent.service, sent.from), &sent.bytes, &filters, &mut dropped);
        assert!(dropped == [0; 3], "{quoted} is in {:02x?}", sent.bytes);
        found += 1;
        compressed +=
            usize::from(fixture.tree.nodes().iter().any(|node| node.has(mark::OWN_BUFFER)));
    }
    let kept = fixture.kept;
    assert!(
        found > 100 && compressed > 5,
        "{found} texts, {compressed} of them in messages with compressed bytes"
    );
    assert!(kept > 100, "{kept} decided by texts at their places");
}

#[test]
fn a_part_of_a_line_is_found_wherever_it_comes_from() {
    let mut fixture = OutlineFilters::new();
    let mut random = common::random();
    let mut asked = 0;
    let mut dropped = 0;
    for sent in short_messages(&[DIRTSAND, MOSS]) {
        let mut bytes = sent.bytes.clone();
        for _ in 0..4 {
            fixture.tree.clear();
            fixture.ask((&sent.service, sent.from), &bytes, &[], &mut []);
            let Some(line) = fixture.info(&bytes) else { break };
            let line: Vec<char> = line.chars().collect();
            let from = random() % line.len().max(1);
            let length = random() % 12 + 1;
            let part: String = line.iter().skip(from).take(length).collect();
            let other: String = part.chars().rev().collect();
            let [part, all, other] = [part, line.iter().collect(), other]
                .map(|text| serde_json::to_string(&text).unwrap());
            let conditions = [
                format!("info contains {part}"),
                format!("info == {all}"),
                format!("info != {all}"),
                format!("not info contains {other}"),
                format!("info == {other} or info contains {other}"),
            ];
            let filters = conditions.map(|condition| fixture.filter(&condition));
            let mut counts = [0; 5];
            // Holds what each says against what it says of the tree.
            fixture.ask((&sent.service, sent.from), &bytes, &filters, &mut counts);
            assert_eq!(counts[..2], [0, 0], "{part} is in {all}");
            asked += 1;
            dropped += counts[4];
            let at = random() % bytes.len();
            bytes[at] = (random() & 0xff) as u8;
        }
    }
    assert!(asked > 1000 && dropped > 100, "{asked} asked, {dropped} dropped");
}

#[test]
fn a_number_that_is_there_is_found_in_every_form() {
    let mut fixture = OutlineFilters::new();
    let mut random = common::random();
    let mut found = 0;
    for sent in short_messages(&[DIRTSAND, MOSS]) {
        for _ in 0..4 {
            fixture.tree.clear();
            fixture.ask((&sent.service, sent.from), &sent.bytes, &[], &mut []);
            let Some((path, number)) = fixture.a_number(random()) else { continue };
            let filters = [
                format!("*.{path} == {number}"),
                format!("*.{path} in {{-7, {number}}}"),
                format!("*.{path} >= {number}"),
                format!("*.{path} != {number}"),
                format!("not *.{path} < {number}"),
            ];
            let filters = filters.map(|expression| fixture.filter(&expression));
            let mut dropped = [0; 5];
            fixture.ask((&sent.service, sent.from), &sent.bytes, &filters, &mut dropped);
            assert!(dropped[..3] == [0; 3], "{path} {number} is in {:02x?}", sent.bytes);
            found += 1;
        }
    }
    assert!(found > 1000, "{found} numbers");
}

#[test]
fn a_number_that_is_there_is_found_by_its_name() {
    let mut fixture = OutlineFilters::new();
    let mut random = common::random();
    let mut found = 0;
    for sent in short_messages(&[DIRTSAND, MOSS]).chain(short_messages(&[DIRTSAND, MOSS])) {
        fixture.tree.clear();
        fixture.ask((&sent.service, sent.from), &sent.bytes, &[], &mut []);
        let Some((path, name)) = fixture.a_name(random()) else { continue };
        let filters =
            [format!("*.{path} == {name}"), format!("*.{path} in {{\"another\", {name}}}")];
        let filters = filters.map(|expression| fixture.filter(&expression));
        let mut dropped = [0; 2];
        fixture.ask((&sent.service, sent.from), &sent.bytes, &filters, &mut dropped);
        assert_eq!(dropped, [0, 0], "a number of {:02x?} has a name", sent.bytes);
        found += 1;
    }
    assert!(found > 500, "{found} names");
}

/// `stats` decides about most messages by their outlines, `--json` by their trees.
#[test]
fn names_of_earlier_records_are_known_without_trees() {
    let conditions = [
        "names[*].name contains \"a\"",
        "not names[*].name contains \"a\"",
        "names[*].name == \"nobody\" or *.name matches \"(?i)^A\"",
        "*.name contains \"e\"",
        "*.name != \"kNetSuccess\"",
        "names[\"fields.buffer.player_id\"].name",
        "names[\"fields.buffer.player_id\"].name != \"x\" and from == server",
        "names[*].record > 5",
        "info contains \"a\"",
    ];
    for capture in ["kind_game", "midstream", "golden"] {
        let capture = format!("captures/moul/{capture}.pcap");
        let mut found = 0;
        for condition in conditions {
            let run = |words: &[&str]| {
                let mut command = common::program();
                command
                    .current_dir(env!("CARGO_MANIFEST_DIR"))
                    .args(words)
                    .args([&capture, "-Y", condition]);
                let output =
                    command.args(["-q", "--json", "--keys", "keys/dirtsand.ini"]).output().unwrap();
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                String::from_utf8(output.stdout).unwrap()
            };
            let counts = run(&["stats"]);
            let kept = run(&[]).lines().count();
            let counts: serde_json::Value = serde_json::from_str(&counts).unwrap();
            assert_eq!(counts["records"], kept, "{capture}: {condition}");
            found += kept;
        }
        assert!(found > 0, "{capture}");
    }
}

#[test]
fn a_number_whose_place_is_found_compares_as_in_the_tree() {
    let mut fixture = OutlineFilters::new();
    let mut random = common::random();
    let mut asked = 0;
    for sent in short_messages(&[DIRTSAND, MOSS]) {
        for _ in 0..4 {
            fixture.tree.clear();
            fixture.ask((&sent.service, sent.from), &sent.bytes, &[], &mut []);
            let Some((path, number)) = fixture.a_placed_number(random()) else { continue };
            let conditions =
                ["==", "!=", "<=", ">"].map(|operator| format!("{path} {operator} {number}"));
            let others = [path.clone(), format!("not {path} in {{{number}..{}}}", number + 3)];
            let filters: Vec<Filter> =
                conditions.iter().chain(&others).map(|text| fixture.filter(text)).collect();
            let mut bytes = sent.bytes.clone();
            for _ in 0..3 {
                fixture.ask((&sent.service, sent.from), &bytes, &filters, &mut [0; 6]);
                let at = random() % bytes.len();
                bytes[at] = (random() & 0xff) as u8;
            }
            asked += 1;
        }
    }
    assert!(asked > 1000 && fixture.kept > asked, "{asked} numbers, {} kept", fixture.kept);
}

/// The bytes of such numbers are not those of the message.
#[test]
fn a_number_that_begins_within_a_byte_is_found() {
    let declaration =
        "protocol moul message auth client 250 Odd { low: bitsbe(4) odd: u16be high: bitsbe(4) }";
    let mut fixture = OutlineFilters::with(declaration);
    let bytes = [250, 0, 0x51, 0x23, 0x46];
    fixture.ask(("auth", Side::Client), &bytes, &[], &mut []);
    let odd =
        (0..8).filter_map(|at| fixture.a_number(at)).find(|(name, _)| name == "odd").unwrap().1;
    assert_eq!(odd, 0x3562);
    let filters = ["*.odd == 13666", "fields.odd in {13666}", "*.odd == 0x2346"]
        .map(|text| fixture.filter(text));
    let mut dropped = [0; 3];
    fixture.ask(("auth", Side::Client), &bytes, &filters, &mut dropped);
    assert_eq!(dropped, [0, 0, 0]);
    assert!(filters[0].asks_outlines(false));
}

#[test]
fn of_a_field_that_each_branch_has_the_one_that_is_there_counts() {
    let declarations = "protocol moul
message auth client 250 Either { kind: u8 if kind == 1 { both: u8 } else { pad: u8 both: u8 } }
message auth client 251 Perhaps { kind: u8 if kind == 1 { both: u8 } if kind > 0 { both: u8 } last: u8 }";
    let mut fixture = OutlineFilters::with(declarations);
    let filters =
        ["fields.both == 7", "*.both == 7", "fields.both"].map(|text| fixture.filter(text));
    let mut ask = |bytes: &[u8]| {
        let mut dropped = [0; 3];
        fixture.kept = 0;
        fixture.ask(("auth", Side::Client), bytes, &filters, &mut dropped);
        (dropped, fixture.kept)
    };
    assert_eq!(ask(&[250, 0, 1, 7]), ([0, 0, 0], 3));
    assert_eq!(ask(&[250, 0, 0, 9, 7]), ([0, 0, 0], 3));
    assert_eq!(ask(&[250, 0, 0, 7, 9]), ([1, 1, 0], 1));
    // Which one counts where both are there is left to the tree.
    for bytes in [
        [251, 0, 1, 7, 9, 0].as_slice(),
        &[251, 0, 1, 9, 7, 0],
        &[251, 0, 2, 7, 0],
        &[251, 0, 0, 7],
    ] {
        assert_eq!(ask(bytes), ([0, 0, 0], 0));
    }
}
