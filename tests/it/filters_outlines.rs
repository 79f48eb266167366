//! What a filter says of a message by its outline is what it says of its tree: over messages that were really sent, as they are and changed.

use crate::common;
use crate::material::{self, DIRTSAND, MOSS, Sent};
use moulsniff::capture::{Moment, Time};
use moulsniff::captured::Captured;
use moulsniff::facts::{InfoSource, write_info};
use moulsniff::filter::Filter;
use moulsniff::out::tree::Annotations;
use moulsniff::out::{Body, Outlined, Record, RoundTrips};
use moulsniff::proto::{LazyTables, Message, PROTOCOLS, Side, Transport};
use moulsniff::table::{Evaluator, Outcome, TableSource};
use moulsniff::tree::{Kind, Outline, Sym, TextKind, Tree, decode_text, mark};

/// Each with how many messages it is expected to drop by their outlines, at least; none where only fields tell.
const FILTERS: [(&str, usize); 95] = [
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

/// The messages of captures that are short enough to be read many times.
fn short_messages(captures: &[(&str, &[&str])]) -> impl Iterator<Item = Sent> {
    let sent = captures.iter().flat_map(|capture| material::messages(*capture));
    sent.filter(|sent| (1..4096).contains(&sent.bytes.len()))
}

struct Bench {
    tables: Vec<LazyTables>,
    evaluator: Evaluator,
    tree: Tree,
    outline: Outline,
    /// How many messages were kept by their outlines.
    kept: usize,
}

fn record<B>(message: &Message<'_>, body: B) -> Record<'static, B> {
    let (src, dst) = (([127, 0, 0, 1], 50_000).into(), ([127, 0, 0, 1], 14_617).into());
    let service = if message.service == "game" { "game" } else { "auth" };
    let at = Moment { frame: 1, time: Time { seconds: 0, nanos: 0, digits: 6 } };
    let (transport, from, protocol) = (Transport::Tcp, message.from, "moul");
    let round_trips = RoundTrips::default();
    Record { number: 1, at, transport, stream: 0, src, dst, from, protocol, service, round_trips, body }
}

impl Bench {
    fn new() -> Bench {
        Bench::with("")
    }

    /// With further declarations for MOUL.
    fn with(declarations: &str) -> Bench {
        let further = |protocol: &str| match (protocol, declarations) {
            ("moul", text) if !text.is_empty() => {
                vec![TableSource { name: "further".into(), text: text.to_string().into() }]
            }
            _ => Vec::new(),
        };
        let tables = PROTOCOLS.iter().map(|protocol| LazyTables::new(*protocol, further(protocol.name())).unwrap());
        let tables = tables.collect();
        Bench { tables, evaluator: Evaluator::default(), tree: Tree::new(), outline: Outline::default(), kept: 0 }
    }

    fn filter(&self, expression: &str) -> Filter {
        Filter::compile(expression, &self.tables, false).unwrap_or_else(|mistake| panic!("{mistake}"))
    }

    /// Asks each filter about a message both ways; `dropped` counts what each drops by the outline.
    fn ask(&mut self, (service, from): (&str, Side), bytes: &[u8], filters: &[Filter], dropped: &mut [usize]) {
        let moul = LazyTables::of(&self.tables, "moul").unwrap().get();
        let Some(id) = moul.service_named(service) else { return };
        self.evaluator.message(moul, id, from.index(), bytes, &mut self.outline);
        if !self.outline.is_whole() {
            return;
        }
        let outcome = self.evaluator.message(moul, id, from.index(), bytes, &mut self.tree);
        let Outcome::Message(id, length) = outcome else { return };
        let def = moul.message(id).unwrap();
        let (name, bytes) = (Captured::new(moul.name(def.name)), &bytes[..length]);
        let message = &Message {
            name,
            number: def.number,
            service,
            from,
            offset: 0,
            bytes,
            reply: None,
            no_reply: false,
            once: None,
        };
        let (tree, outline) = (&self.tree, &self.outline);
        let outlined = record(message, Outlined { message, id, tables: moul, outline });
        let whole = record(message, Body::Message { message, tables: moul, tree });
        for (filter, count) in filters.iter().zip(dropped) {
            *count += usize::from(filter.drops(&outlined));
            if let Some(decided) = filter.decides(&outlined, false) {
                assert_eq!(decided, filter.keeps(&whole, Annotations::default()), "{bytes:02x?}");
                self.kept += usize::from(decided);
            }
        }
    }

    /// One of the numbers that lie within objects alone, behind its path, in the message that was read last.
    fn a_placed_number(&self, random: usize) -> Option<(String, i128)> {
        let moul = LazyTables::of(&self.tables, "moul").unwrap().get();
        let (mut numbers, mut objects) = (Vec::new(), vec![(0, "fields".to_string())]);
        while let Some((object, path)) = objects.pop() {
            for (index, node) in self.tree.members(object) {
                let path = format!("{path}.{}", moul.name(node.name));
                match node.kind {
                    Kind::Struct => objects.push((index, path)),
                    Kind::Unsigned | Kind::Unsigned64 => numbers.push((path, node.value.into())),
                    Kind::Signed | Kind::Signed64 => numbers.push((path, i128::from(node.value as i64))),
                    _ => {}
                }
            }
        }
        let number = numbers.get(random % numbers.len().max(1))?;
        Some(number.clone())
    }

    /// One of the texts in the message that was read last, behind the name of its field.
    fn a_text(&self, bytes: &[u8], random: usize) -> Option<(String, String)> {
        let fields = self.tree.nodes().iter().filter(|node| !node.has(mark::SPAN) && node.name != Sym::ELEMENT);
        let texts = fields.filter_map(|node| match node.kind {
            Kind::Text(TextKind::Owned) => None,
            Kind::Text(kind) => Some((kind, node)),
            _ => None,
        });
        let texts: Vec<_> = texts.collect();
        let (kind, node) = texts.get(random % texts.len().max(1))?;
        let mut text = String::new();
        decode_text(*kind, &self.tree.content(node, bytes), &mut text);
        let moul = LazyTables::of(&self.tables, "moul").unwrap().get();
        Some((moul.name(node.name).to_string(), text))
    }

    /// The line that says what the message is about that was read last.
    fn info(&self, bytes: &[u8]) -> Option<String> {
        let moul = LazyTables::of(&self.tables, "moul").unwrap().get();
        let id = moul.message_called(self.tree.get(0)?.name)?;
        let layout = moul.message(id).unwrap().layout;
        let mut line = String::new();
        let source = InfoSource { tables: moul, tree: &self.tree, bytes, layout, redact: false };
        write_info(source, &|_| None, &mut line);
        Some(line)
    }

    /// One of the numbers in the message that was read last, behind the path of its field.
    fn a_number(&self, random: usize) -> Option<(String, i128)> {
        let moul = LazyTables::of(&self.tables, "moul").unwrap().get();
        let mut numbers = Vec::new();
        for (index, node) in self.tree.nodes().iter().enumerate().filter(|(_, node)| !node.has(mark::SPAN)) {
            let number = match node.kind {
                Kind::Unsigned | Kind::Unsigned64 => node.value.into(),
                Kind::Signed | Kind::Signed64 => i128::from(node.value as i64),
                _ => continue,
            };
            // An element has no name of its own, but the list that holds it.
            let list =
                self.tree.nodes()[..index].iter().rfind(|list| list.kind == Kind::List && list.end as usize > index);
            match (node.name, list) {
                (Sym::ELEMENT, Some(list)) => numbers.push((format!("{}[*]", moul.name(list.name)), number)),
                (Sym::ELEMENT, None) => {}
                (name, _) => numbers.push((moul.name(name).to_string(), number)),
            }
        }
        let number = numbers.get(random % numbers.len().max(1))?;
        Some(number.clone())
    }
}

#[test]
fn what_is_dropped_by_an_outline_is_not_kept() {
    let mut bench = Bench::new();
    let filters: Vec<Filter> = FILTERS.iter().map(|(expression, _)| bench.filter(expression)).collect();
    let mut dropped = [0; FILTERS.len()];
    let mut random = common::random();
    for session in [DIRTSAND, MOSS] {
        for sent in material::messages(session) {
            if sent.bytes.is_empty() || sent.bytes.len() > 4096 {
                continue;
            }
            let asked = (sent.service.as_str(), sent.from);
            bench.ask(asked, &sent.bytes, &filters, &mut dropped);
            let mut bytes = sent.bytes.clone();
            let at = random() % bytes.len();
            bytes[at] = (random() & 0xff) as u8;
            bench.ask(asked, &bytes, &filters, &mut dropped);
        }
    }
    for ((expression, least), count) in FILTERS.iter().zip(dropped) {
        assert!(count >= *least && (*least > 0 || count == 0), "{expression}: {count} dropped");
    }
}

#[test]
fn a_text_that_is_there_is_found_in_every_encoding() {
    let mut bench = Bench::new();
    let (mut random, mut found, mut compressed) = (common::random(), 0, 0);
    for sent in short_messages(&[DIRTSAND]) {
        bench.tree.clear();
        bench.ask((&sent.service, sent.from), &sent.bytes, &[], &mut []);
        let Some((name, text)) = bench.a_text(&sent.bytes, random()) else { continue };
        let quoted = serde_json::to_string(&text).unwrap();
        let compared = [format!("*.{name} != {quoted}"), format!("*.{name} > \"M\""), format!("*.{name}")];
        let compared = compared.map(|expression| bench.filter(&expression));
        bench.ask((&sent.service, sent.from), &sent.bytes, &compared, &mut [0; 3]);
        let mut filters = vec![format!("*.{name} == {quoted}"), format!("*.{name} contains {quoted}")];
        if text.chars().all(|c| c.is_alphanumeric() || " _-".contains(c)) {
            let other = |c: char| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
            filters.push(format!("*.{name} matches \"(?i){}\"", text.chars().map(other).collect::<String>()));
        }
        let filters: Vec<Filter> = filters.iter().map(|expression| bench.filter(expression)).collect();
        let mut dropped = [0; 3];
        bench.ask((&sent.service, sent.from), &sent.bytes, &filters, &mut dropped);
        assert!(dropped == [0; 3], "{quoted} is in {:02x?}", sent.bytes);
        found += 1;
        compressed += usize::from(bench.tree.nodes().iter().any(|node| node.has(mark::OWN_BUFFER)));
    }
    let kept = bench.kept;
    assert!(found > 100 && compressed > 5, "{found} texts, {compressed} of them in messages with compressed bytes");
    assert!(kept > 100, "{kept} decided by texts at their places");
}

#[test]
fn a_part_of_a_line_is_found_wherever_it_comes_from() {
    let mut bench = Bench::new();
    let (mut random, mut asked, mut dropped) = (common::random(), 0, 0);
    for sent in short_messages(&[DIRTSAND, MOSS]) {
        let mut bytes = sent.bytes.clone();
        for _ in 0..4 {
            bench.tree.clear();
            bench.ask((&sent.service, sent.from), &bytes, &[], &mut []);
            let Some(line) = bench.info(&bytes) else { break };
            let line: Vec<char> = line.chars().collect();
            let (from, length) = (random() % line.len().max(1), random() % 12 + 1);
            let part: String = line.iter().skip(from).take(length).collect();
            let other: String = part.chars().rev().collect();
            let [part, all, other] =
                [part, line.iter().collect(), other].map(|text| serde_json::to_string(&text).unwrap());
            let conditions = [
                format!("info contains {part}"),
                format!("info == {all}"),
                format!("info != {all}"),
                format!("not info contains {other}"),
                format!("info == {other} or info contains {other}"),
            ];
            let filters = conditions.map(|condition| bench.filter(&condition));
            let mut counts = [0; 5];
            // Holds what each says against what it says of the tree.
            bench.ask((&sent.service, sent.from), &bytes, &filters, &mut counts);
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
    let mut bench = Bench::new();
    let (mut random, mut found) = (common::random(), 0);
    for sent in short_messages(&[DIRTSAND, MOSS]) {
        for _ in 0..4 {
            bench.tree.clear();
            bench.ask((&sent.service, sent.from), &sent.bytes, &[], &mut []);
            let Some((path, number)) = bench.a_number(random()) else { continue };
            let filters = [
                format!("*.{path} == {number}"),
                format!("*.{path} in {{-7, {number}}}"),
                format!("*.{path} >= {number}"),
                format!("*.{path} != {number}"),
                format!("not *.{path} < {number}"),
            ];
            let filters = filters.map(|expression| bench.filter(&expression));
            let mut dropped = [0; 5];
            bench.ask((&sent.service, sent.from), &sent.bytes, &filters, &mut dropped);
            assert!(dropped[..3] == [0; 3], "{path} {number} is in {:02x?}", sent.bytes);
            found += 1;
        }
    }
    assert!(found > 1000, "{found} numbers");
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
                command.current_dir(env!("CARGO_MANIFEST_DIR")).args(words).args([&capture, "-Y", condition]);
                let output = command.args(["-q", "--json", "--keys", "keys/dirtsand.ini"]).output().unwrap();
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                String::from_utf8(output.stdout).unwrap()
            };
            let (counts, kept) = (run(&["stats"]), run(&[]).lines().count());
            let counts: serde_json::Value = serde_json::from_str(&counts).unwrap();
            assert_eq!(counts["records"], kept, "{capture}: {condition}");
            found += kept;
        }
        assert!(found > 0, "{capture}");
    }
}

#[test]
fn a_number_whose_place_is_found_compares_as_in_the_tree() {
    let mut bench = Bench::new();
    let (mut random, mut asked) = (common::random(), 0);
    for sent in short_messages(&[DIRTSAND, MOSS]) {
        for _ in 0..4 {
            bench.tree.clear();
            bench.ask((&sent.service, sent.from), &sent.bytes, &[], &mut []);
            let Some((path, number)) = bench.a_placed_number(random()) else { continue };
            let conditions = ["==", "!=", "<=", ">"].map(|operator| format!("{path} {operator} {number}"));
            let others = [path.clone(), format!("not {path} in {{{number}..{}}}", number + 3)];
            let filters: Vec<Filter> = conditions.iter().chain(&others).map(|text| bench.filter(text)).collect();
            let mut bytes = sent.bytes.clone();
            for _ in 0..3 {
                bench.ask((&sent.service, sent.from), &bytes, &filters, &mut [0; 6]);
                let at = random() % bytes.len();
                bytes[at] = (random() & 0xff) as u8;
            }
            asked += 1;
        }
    }
    assert!(asked > 1000 && bench.kept > asked, "{asked} numbers, {} kept", bench.kept);
}

/// The bytes of such numbers are not those of the message.
#[test]
fn a_number_that_begins_within_a_byte_is_found() {
    let declaration = "protocol moul message auth client 250 Odd { low: bitsbe(4) odd: u16be high: bitsbe(4) }";
    let mut bench = Bench::with(declaration);
    let bytes = [250, 0, 0x51, 0x23, 0x46];
    bench.ask(("auth", Side::Client), &bytes, &[], &mut []);
    let odd = (0..8).filter_map(|at| bench.a_number(at)).find(|(name, _)| name == "odd").unwrap().1;
    assert_eq!(odd, 0x3562);
    let filters = ["*.odd == 13666", "fields.odd in {13666}", "*.odd == 0x2346"].map(|text| bench.filter(text));
    let mut dropped = [0; 3];
    bench.ask(("auth", Side::Client), &bytes, &filters, &mut dropped);
    assert_eq!(dropped, [0, 0, 0]);
    assert!(filters[0].asks_outlines(false));
}

#[test]
fn of_a_field_that_each_branch_has_the_one_that_is_there_counts() {
    let declarations = "protocol moul
message auth client 250 Either { kind: u8 if kind == 1 { both: u8 } else { pad: u8 both: u8 } }
message auth client 251 Perhaps { kind: u8 if kind == 1 { both: u8 } if kind > 0 { both: u8 } last: u8 }";
    let mut bench = Bench::with(declarations);
    let filters = ["fields.both == 7", "*.both == 7", "fields.both"].map(|text| bench.filter(text));
    let mut ask = |bytes: &[u8]| {
        let mut dropped = [0; 3];
        bench.kept = 0;
        bench.ask(("auth", Side::Client), bytes, &filters, &mut dropped);
        (dropped, bench.kept)
    };
    assert_eq!(ask(&[250, 0, 1, 7]), ([0, 0, 0], 3));
    assert_eq!(ask(&[250, 0, 0, 9, 7]), ([0, 0, 0], 3));
    assert_eq!(ask(&[250, 0, 0, 7, 9]), ([1, 1, 0], 1));
    // Which one counts where both are there is left to the tree.
    for bytes in [[251, 0, 1, 7, 9, 0].as_slice(), &[251, 0, 1, 9, 7, 0], &[251, 0, 2, 7, 0], &[251, 0, 0, 7]] {
        assert_eq!(ask(bytes), ([0, 0, 0], 0));
    }
}
