//! Net messages and messages, held against what their writers say they hold: every value at its
//! place, every byte used.
//!
//! `captures/moul/plasma_typical.jsonl.gz` has one typical instance of each, made from the client's
//! own layouts by another program. `captures/moul/*.propagated.json.gz` are the buffers that
//! clients built in real sessions with DIRTSAND, MOSS and NAGUS, with the values they put into
//! them. `captures/moul/plasma_written.jsonl.gz` was written after the client's own Write functions
//! with values at random: every class as the client writes it, and those that libHSPlasma (`hs`)
//! and DIRTSAND (`ds`) write in another form.

use std::io::Read;

use moulsniff::facts::{InfoSource, write_info};
use moulsniff::print::problem_text;
use moulsniff::proto::{load_tables, protocol_named};
use moulsniff::record::{MessageView, Names};
use moulsniff::table::{Evaluator, Tables, parse_hex};
use moulsniff::tree::{Buffer, Kind, Node, Severity, Sym, TextKind, Tree, decode_text};
use serde_json::Value;

/// Reads an instance and says what disagrees.
struct Reader {
    tables: Tables,
    evaluator: Evaluator,
    tree: Tree,
    bytes: Vec<u8>,
    wrong: Vec<String>,
    compared: usize,
}

impl Reader {
    fn new() -> Self {
        let tables =
            load_tables(protocol_named("moul").unwrap(), &[]).unwrap_or_else(|e| panic!("{e}"));
        Reader {
            tables,
            evaluator: Evaluator::default(),
            tree: Tree::new(),
            bytes: Vec::new(),
            wrong: Vec::new(),
            compared: 0,
        }
    }

    fn instance(&mut self, instance: &Value) {
        let class = instance["class"].as_str().unwrap();
        self.bytes = parse_hex(instance["hex"].as_str().unwrap()).unwrap();
        let ty = self.tables.type_named("plCreatable").unwrap();
        let end =
            self.evaluator.value(&self.tables, ty, Sym::ELEMENT, &self.bytes, 0, &mut self.tree);
        if end != self.bytes.len() * 8 {
            self.wrong.push(format!("{class}: {} of {} bytes used", end / 8, self.bytes.len()));
        }
        let bad = self.tree.problems().iter().filter(|p| p.severity > Severity::Note).count();
        let opaque = self.tree.nodes().iter().filter(|n| n.kind == Kind::Undecoded).count();
        let state = class.starts_with("plNetMsgSDL");
        if (bad > 0 || opaque > 0) && !state {
            self.wrong.push(format!("{class}: {bad} problems, {opaque} places undecoded"));
        }
        for field in instance["fields"].as_array().unwrap() {
            self.field(class, field, Buffer::CAPTURED, 0);
        }
    }

    /// A field of the truth; `base` is added to its offset.
    fn field(&mut self, class: &str, field: &Value, buffer: Buffer, base: u64) {
        let at = field["off"].as_u64().unwrap() + base;
        let len = field["len"].as_u64().unwrap();
        if let Some(fields) = field["fields"].as_array() {
            fields.iter().for_each(|f| self.field(class, f, buffer, base));
        } else if field.get("content_fields").is_some()
            || field.get("inner_fields").is_some()
            || field.get("inflated_fields").is_some()
        {
            self.region(class, field, (at, len), buffer);
        } else if len > 0 && !self.agrees(field, (at, len), buffer) {
            let found: Vec<String> =
                self.at(buffer, at, len).map(|n| format!("{:?} {}", n.kind, n.value)).collect();
            self.wrong.push(format!(
                "{class} at {at}: {} is {}, not {found:?}",
                field["name"], field["value"]
            ));
        } else {
            self.compared += 1;
        }
    }

    /// A region with content of its own, which may stand in a decompressed buffer.
    fn region(&mut self, class: &str, field: &Value, (at, len): (u64, u64), buffer: Buffer) {
        if field["content"] == "sdl" {
            return;
        }
        let inner = ["content_fields", "inner_fields", "inflated_fields"]
            .iter()
            .find_map(|k| field[*k].as_array())
            .unwrap();
        let own = self
            .tree
            .nodes()
            .iter()
            .position(|n| place(n) == (buffer, at, len))
            .and_then(|i| self.tree.nodes().get(i + 1))
            .map(|child| child.buffer)
            .filter(|b| *b != buffer);
        for f in inner {
            match own {
                Some(own) => self.field(class, f, own, 0),
                None => self.field(class, f, buffer, at),
            }
        }
    }

    fn at(&self, buffer: Buffer, at: u64, len: u64) -> impl Iterator<Item = &Node> {
        self.tree.nodes().iter().filter(move |n| place(n) == (buffer, at, len))
    }

    fn agrees(&self, field: &Value, (at, len): (u64, u64), buffer: Buffer) -> bool {
        let value = &field["value"];
        match field["type"].as_str().unwrap() {
            "hsBitVector" => {
                field["words"].as_array().unwrap().iter().enumerate().all(|(i, word)| {
                    self.at(buffer, at + 4 + 4 * i as u64, 4)
                        .any(|n| n.value == word.as_u64().unwrap())
                })
            }
            "f32" | "f64" => {
                let bits = u64::from_str_radix(field["bits"].as_str().unwrap(), 16).unwrap();
                self.at(buffer, at, len)
                    .any(|n| n.value == bits && matches!(n.kind, Kind::F32 | Kind::F64))
            }
            "plKey" => self.at(buffer, at, len).any(|n| n.kind == Kind::Null),
            "creatable" => self.at(buffer, at, len).any(|n| n.kind == Kind::Null),
            "pstring16" => {
                len == 2 || self.at(buffer, at + 2, len - 2).any(|n| self.text(n) == value.as_str())
            }
            "bytes" => {
                let raw = &self.tree.bytes(buffer, &self.bytes)[at as usize..(at + len) as usize];
                let hex: String = raw.iter().map(|b| format!("{b:02x}")).collect();
                let told =
                    value.as_str() == Some(&hex) || value.as_str().map(str::as_bytes) == Some(raw);
                told && self
                    .at(buffer, at, len)
                    .any(|n| matches!(n.kind, Kind::Bytes | Kind::Text(_)))
            }
            "uuid" => self.at(buffer, at, len).any(|n| n.kind == Kind::Uuid),
            _ if value.is_string() => {
                self.at(buffer, at, len).any(|n| self.text(n) == value.as_str())
            }
            _ => {
                let want = value.as_i64().or_else(|| value.as_bool().map(i64::from)).unwrap();
                self.at(buffer, at, len).any(|n| n.value == want as u64)
            }
        }
    }

    fn text(&self, node: &Node) -> Option<&'static str> {
        let Kind::Text(kind) = node.kind else { return None };
        let mut out = String::new();
        if kind == TextKind::Owned {
            out.push_str(self.tree.owned(node.value).raw());
        } else {
            let (at, len) = node.content();
            decode_text(kind, &self.tree.bytes(node.buffer, &self.bytes)[at..at + len], &mut out);
        }
        Some(out.leak())
    }
}

fn place(node: &Node) -> (Buffer, u64, u64) {
    (node.buffer, u64::from(node.start / 8), u64::from(node.bits / 8))
}

pub fn unpacked(path: &str) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap())
        .read_to_string(&mut text)
        .unwrap();
    text
}

fn instances() -> Vec<Value> {
    let text = unpacked("captures/moul/plasma_typical.jsonl.gz");
    let all = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|v| v["kind"] == "plMessage" || v["kind"] == "plNetMessage").collect()
}

#[test]
fn every_message_is_what_its_writer_says() {
    let mut reader = Reader::new();
    let all = instances();
    all.iter().for_each(|v| reader.instance(v));
    assert_eq!(reader.wrong, Vec::<String>::new());
    assert_eq!(all.len(), 225);
    assert!(reader.compared > 5400, "{} values compared", reader.compared);
}

/// A leaf of a propagated buffer: offset, length, kind, value.
fn leaf(reader: &mut Reader, what: &str, leaf: &Value, buffer: Buffer, base: u64) {
    let at = leaf[0].as_u64().unwrap() + base;
    let len = leaf[1].as_u64().unwrap();
    let value = &leaf[3];
    let found = match leaf[2].as_str().unwrap() {
        "stream" | "stream_zlib" => return stream(reader, what, value, (at, len), buffer),
        // Places whose parts are other nodes: the bytes were compared as such when the truth was
        // made.
        "raw" | "uoid_raw" => true,
        "f32" => reader
            .at(buffer, at, len)
            .any(|n| f32::from_bits(n.value as u32) == value.as_f64().unwrap() as f32),
        "f64" => {
            reader.at(buffer, at, len).any(|n| f64::from_bits(n.value) == value.as_f64().unwrap())
        }
        "safestr" | "safewstr" => {
            reader.at(buffer, at, len).any(|n| reader.text(n) == value.as_str())
        }
        "pstr16" => {
            len == 2 || reader.at(buffer, at + 2, len - 2).any(|n| reader.text(n) == value.as_str())
        }
        "char32" => reader.at(buffer, at, len).any(|n| reader.text(n) == value.as_str()),
        "uuid_le" => reader.at(buffer, at, len).any(|n| n.kind == Kind::Uuid),
        "bitvector" => reader.at(buffer, at, 4).any(|n| n.value == (len - 4) / 4),
        _ => {
            let want = value.as_u64().unwrap();
            let same = |n: &Node| n.value & (u64::MAX >> (64 - 8 * len)) == want;
            // A clone's number and the two bytes behind it were written as one.
            let halves = reader.at(buffer, at, 2).any(|n| n.value == want);
            let null = want == 0x8000 && reader.at(buffer, at, len).any(|n| n.kind == Kind::Null);
            reader.at(buffer, at, len).any(same) || halves || null
        }
    };
    let named = leaf[4].as_str().is_none_or(|name| {
        let name = |n: &Node| ["text", name].contains(&reader.tables.name(n.name));
        reader.at(buffer, at, len).any(name)
    });
    if !found || !named {
        reader.wrong.push(format!("{what} at {at}: {leaf}"));
    }
    reader.compared += 1;
}

/// A stream inside a buffer, plain or compressed.
fn stream(reader: &mut Reader, what: &str, value: &Value, (at, len): (u64, u64), buffer: Buffer) {
    if len == 0 {
        return;
    }
    let nodes = reader.tree.nodes();
    let region = nodes
        .iter()
        .position(|n| place(n) == (buffer, at, len))
        .unwrap_or_else(|| panic!("{what}: no stream at {at}"));
    let own = nodes.get(region + 1).map(|n| n.buffer).filter(|b| *b != buffer);
    let state = what.starts_with("plNetMsgSDL");
    for inner in value["leaves"].as_array().into_iter().flatten().filter(|_| !state) {
        match own {
            Some(own) => leaf(reader, what, inner, own, 0),
            None => leaf(reader, what, inner, buffer, at),
        }
    }
}

#[test]
fn what_clients_really_sent() {
    let mut reader = Reader::new();
    let ty = reader.tables.type_named("plCreatable").unwrap();
    for capture in ["full_dirtsand", "moss_full", "nagus"] {
        let buffers: Value =
            serde_json::from_str(&unpacked(&format!("captures/moul/{capture}.propagated.json.gz")))
                .unwrap();
        for sent in buffers.as_array().unwrap() {
            reader.bytes = parse_hex(sent["hex"].as_str().unwrap()).unwrap();
            let end = reader.evaluator.value(
                &reader.tables,
                ty,
                Sym::ELEMENT,
                &reader.bytes,
                0,
                &mut reader.tree,
            );
            let class =
                reader.tree.nodes().iter().find(|n| n.start == 0 && n.bits == 16).and_then(|n| {
                    let name =
                        reader.tables.symbols(n.ty)?.values.iter().find(|v| v.value == n.value)?;
                    Some(name.name.clone())
                });
            let what = format!("{} {capture} {}", class.unwrap(), sent["note"]);
            if end != reader.bytes.len() * 8 {
                reader.wrong.push(format!(
                    "{what}: {} of {} bytes used",
                    end / 8,
                    reader.bytes.len()
                ));
            }
            for l in sent["leaves"].as_array().into_iter().flatten() {
                leaf(&mut reader, &what, l, Buffer::CAPTURED, 0);
            }
        }
    }
    assert_eq!(reader.wrong, Vec::<String>::new());
    assert!(reader.compared > 9000, "{} values compared", reader.compared);
}

#[test]
fn what_each_program_writes() {
    let mut reader = Reader::new();
    let ty = reader.tables.type_named("plCreatable").unwrap();
    let text = unpacked("captures/moul/plasma_written.jsonl.gz");
    let all: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut forms = std::collections::BTreeMap::new();
    // Today's clients read these seconds as the beginning of 64 bits.
    let is_wide = |leaf: &Value| leaf[3] == u32::MAX && leaf[4] == "seconds";
    let is_today =
        |written: &&Value| !written["leaves"].as_array().into_iter().flatten().any(is_wide);
    for written in all.iter().filter(is_today) {
        reader.bytes = parse_hex(written["hex"].as_str().unwrap()).unwrap();
        let end = reader.evaluator.value(
            &reader.tables,
            ty,
            Sym::ELEMENT,
            &reader.bytes,
            0,
            &mut reader.tree,
        );
        let what = format!("{} of {}", written["class"], written["writer"]);
        let bad = reader.tree.problems().iter().filter(|p| p.severity > Severity::Note).count();
        let rest = reader.tree.nodes().iter().filter(|n| n.kind == Kind::Undecoded).count();
        if end != reader.bytes.len() * 8 || bad + rest > 0 {
            let length = reader.bytes.len();
            reader.wrong.push(format!(
                "{what}: {} of {length} bytes, {bad} problems, {rest} undecoded",
                end / 8
            ));
        }
        for problem in reader.tree.problems() {
            let said = problem_text(problem, &reader.tables, &reader.tree);
            if let Some(form) =
                said.strip_prefix("in the form `").and_then(|rest| rest.split('`').next())
            {
                *forms
                    .entry((written["writer"].as_str().unwrap(), form.to_string()))
                    .or_insert(0) += 1;
            }
        }
        for l in written["leaves"].as_array().into_iter().flatten() {
            leaf(&mut reader, &what, l, Buffer::CAPTURED, 0);
        }
    }
    assert_eq!(reader.wrong, Vec::<String>::new());
    assert!(reader.compared > 8000, "{} values compared", reader.compared);
    let met: Vec<(&str, &str)> =
        forms.keys().map(|(writer, form)| (*writer, form.as_str())).collect();
    let expected = [
        ("ds", "bare_brain_messages"),
        ("hs", "terminated_empty"),
        ("hs", "wide_reserved"),
        ("plasma", "header_alone"),
    ];
    assert_eq!(met, expected, "the notes that say which form was read");
}

#[test]
fn cut_anywhere_nothing_is_read_beyond_the_end() {
    let mut reader = Reader::new();
    let ty = reader.tables.type_named("plCreatable").unwrap();
    for instance in instances() {
        let bytes = parse_hex(instance["hex"].as_str().unwrap()).unwrap();
        for cut in (0..bytes.len()).step_by(3) {
            let end = reader.evaluator.value(
                &reader.tables,
                ty,
                Sym::ELEMENT,
                &bytes[..cut],
                0,
                &mut reader.tree,
            );
            assert!(end <= cut * 8, "{} cut at {cut}", instance["class"]);
        }
    }
}

/// A buffer read as `plCreatable`: its message, and the notes.
fn message(hex: &str) -> (Value, Vec<Value>) {
    let output = crate::common::program()
        .args(["decode", "--type", "plCreatable", "--json", hex])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut read: Value = serde_json::from_slice(&output.stdout).unwrap();
    let notes = read["problems"].as_array().cloned().unwrap_or_default();
    (read["value"]["stream"]["message"].take(), notes)
}

/// plNetMsgGameMessage, then a stream of this length with the message.
const GAME: &str = "6b02 01100400 2d18006b07000000 8c270000 00000000 00";
const PLACE: &str = "0000803f0000004000004040 000080400000a0400000c040";
const POINT: &str = "01 00 01002000 0000 0100 07000000 05f0 bd9a919c97";

#[test]
fn a_seek_says_where_beside_its_point_in_libhsplasma_and_instead_of_it_in_the_client() {
    let start = |class: &str| format!("{class} 00 00000000 0000000000000000 41000000 00");
    let end = "0000c03f 01 04f0a89e9394 0000 00 02 00";
    let one_shot = "03f0ac968b 01 00 00";
    for (content, length, place, noted) in [
        (format!("{} {POINT} {PLACE} {end}", start("9902")), "51000000", true, true),
        (format!("{} 00 {end}", start("9902")), "25000000", false, true),
        (format!("{} {POINT} {PLACE} {end} {one_shot}", start("9a02")), "58000000", true, true),
        (format!("{} 00 {PLACE} {end}", start("9902")), "3d000000", true, false),
    ] {
        let (message, notes) = message(&format!("{GAME} {length} {content} 00"));
        assert_eq!(message["anim_name"], "Walk", "{content}");
        assert_eq!(message["duration"], 1.5, "{content}");
        assert_eq!(message.get("target_pos").is_some(), place, "{content}");
        let texts: Vec<&str> = notes.iter().filter_map(|note| note["text"].as_str()).collect();
        assert_eq!(
            texts.iter().any(|text| text.starts_with("in the form `seek_beside_point`")),
            noted,
            "{texts:?}"
        );
    }
}

#[test]
fn the_clients_own_ride_is_not_noted_and_a_plain_one_is() {
    let brain = "00000000005b2183f280c56f46000000004414b1c0";
    for (more, length, noted) in [("01", "2c000000", false), ("", "2b000000", true)] {
        // plAvPushBrainMsg: no task, then the brain.
        let content = format!("6703 00 00000000 0000000000000000 41000000 00 9e04 {brain} {more}");
        let (_, notes) = message(&format!("{GAME} {length} {content} 00"));
        let plain = notes
            .iter()
            .any(|note| note["text"].as_str().unwrap().starts_with("in the form `riding_plain`"));
        assert_eq!(plain, noted, "{notes:?}");
    }
}

#[test]
fn what_no_program_knows_is_noted() {
    for (ty, hex) in [("plGenericType", "2a"), ("proEventData", "63000000")] {
        let output = crate::common::program()
            .args(["decode", "--type", ty, "--json", hex])
            .output()
            .unwrap();
        let read: Value = serde_json::from_slice(&output.stdout).unwrap();
        let text = read["problems"][0]["text"].as_str().unwrap_or("nothing");
        assert!(text.contains("that no program knows"), "{ty}: {text}");
    }
}

/// The bytes of a Game2Cli_PropagateBuffer with an instance in it; messages that are no net
/// messages stand in a plNetMsgGameMessage.
fn propagated(reader: &Reader, instance: &Value) -> Vec<u8> {
    let mut buffer = parse_hex(instance["hex"].as_str().unwrap()).unwrap();
    if instance["kind"] == "plMessage" {
        let symbols = reader.tables.enums().find(|e| e.name == "CreatableClass").unwrap();
        let class = symbols.values.iter().find(|v| v.name == "plNetMsgGameMessage").unwrap();
        let mut whole = u16::try_from(class.value).unwrap().to_le_bytes().to_vec();
        whole.extend_from_slice(&[0; 9]);
        whole.extend_from_slice(&u32::try_from(buffer.len()).unwrap().to_le_bytes());
        whole.append(&mut buffer);
        whole.push(0);
        buffer = whole;
    }
    let mut message = vec![2, 0];
    message.extend_from_slice(&[buffer[0], buffer[1], 0, 0]);
    message.extend_from_slice(&u32::try_from(buffer.len()).unwrap().to_le_bytes());
    message.append(&mut buffer);
    message
}

/// Whether a line is empty, a number alone, or nothing but names of an enum or of flags.
fn is_bare(line: &str) -> bool {
    let number = |word: &str| word.parse::<f64>().is_ok();
    let name = |word: &str| {
        let mut letters = word.chars();
        letters.next() == Some('k') && letters.next().is_some_and(char::is_uppercase)
    };
    line.split([' ', '+', ',']).all(|word| word.is_empty() || number(word) || name(word))
}

#[test]
fn every_message_says_what_it_carries_and_has_a_line_that_tells() {
    let mut reader = Reader::new();
    let game = reader.tables.service_named("game").unwrap();
    let mut wrong = Vec::new();
    for instance in instances() {
        let bytes = propagated(&reader, &instance);
        let tables = &reader.tables;
        reader.evaluator.message(tables, game, 1, &bytes, &mut reader.tree);
        let def =
            tables.message_named("Game2Cli_PropagateBuffer").and_then(|id| tables.message(id));
        let layout = def.unwrap().layout;
        let source = InfoSource {
            view: MessageView { tables, tree: &reader.tree, bytes: &bytes },
            layout,
            redact: false,
        };
        let mut line = String::new();
        write_info(source, Names::default(), &mut line);
        let class = instance["class"].as_str().unwrap();
        let carried = source.carried().unwrap_or_default();
        // A net message around another one is told by that one.
        let within = ["plNetMsgGameMessage", "plNetMsgGameMessageDirected", "plNetMsgLoadClone"];
        if (carried != class && !within.contains(&class)) || is_bare(&line) {
            wrong.push(format!("{class}: {carried}: {line}"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn a_line_says_what_a_value_was_before_on_the_same_connection() {
    let keys = ["keys/moss_auth_key.der", "keys/moss_game_key.der", "keys/moss_gatekeeper_key.der"];
    let records = crate::common::records(
        "captures/moul/moss_full.pcapng",
        &keys,
        &["-Y", "carries ~ 'SDLState' && info ~ 'KickableBall' && stream < 6"],
    );
    let lines: Vec<(u64, &str)> = records
        .iter()
        .map(|record| (record["stream"].as_u64().unwrap(), record["info"].as_str().unwrap()))
        .collect();
    let first = "physical SDL of KickableBall by Nämé: position 1.5 -2.5 3.5, orientation 0 0 0 \
                 1, linear 0 0 -9.75, angular 0.1 0.2 0.3 and 1 more";
    let then = "physical SDL of KickableBall by Nämé: position 1.5 -2.5 3.5 → 2 3 4";
    let whole = "physical SDL of KickableBall: position 2 3 4 → 1.5 -2.5 3.5, orientation 0 0 0 \
                 1, linear 0 0 -9.75, angular 0.1 0.2 0.3 and 1 more";
    assert_eq!(lines, [(4, first), (5, first), (4, then), (5, then), (4, whole)]);
}
