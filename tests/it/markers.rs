//! Every text and every UUID of every example in the tables is replaced by a marker of its own, of
//! the same length. Under `--pseudonyms` no marker is left but in the fields that
//! `tests/data/visible.txt` lists, each with its type; docs/sharing.md says by kind why they stay.
//! `VISIBLE=write` rewrites the list.
//!
//! All marked messages together are a capture, too, of which each command tells no hidden marker.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use moulsniff::capture::{Moment, Time};
use moulsniff::captured::Captured;
use moulsniff::examples::read_example;
use moulsniff::pdu::PduWriter;
use moulsniff::print::json::{JsonOptions, JsonWriter};
use moulsniff::proto::all_tables;
use moulsniff::pseudonyms::Pseudonyms;
use moulsniff::record::{Body, MessageView, Names, Record, RoundTrips};
use moulsniff::session::{Message, Side, Transport};
use moulsniff::table::{ExampleOf, MessageDef, Sender, Tables};
use moulsniff::tree::{Kind, Node, Sym, TextKind, Tree, TreeParts, mark};

use crate::common::{file, hold, program, random};
use crate::made::Made;
use crate::report::blocks;

/// Shorter texts would be found by chance.
const SHORTEST: usize = 6;
/// The same where there is far more text, with pseudonyms of the same letters.
const SHORTEST_OF_ALL: usize = 10;

/// A value that was replaced by a marker.
struct Marked {
    node: usize,
    /// The marker as the field has it, and as outputs print it.
    bytes: Vec<u8>,
    shown: String,
    secret: bool,
}

/// The marker of a text or UUID; `None` for everything else, and where there is no room for one.
fn marker(
    node: &Node,
    length: usize,
    next: &mut impl FnMut() -> usize,
) -> Option<(Vec<u8>, String)> {
    // No `x`, which is what fillers are of.
    let mut letters = |count: usize| -> String {
        (0..count).map(|_| char::from(b'a' + (next() % 23) as u8)).collect()
    };
    if matches!(node.kind, Kind::Uuid | Kind::UuidBe) {
        let bytes = letters(16).into_bytes();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        // Whatever order its first groups have, the last twelve digits are these.
        return Some((bytes, hex.get(20..)?.to_string()));
    }
    let Kind::Text(kind) = node.kind else { return None };
    let unit = if matches!(kind, TextKind::Utf16 | TextKind::Inverted16) { 2 } else { 1 };
    let text = letters(length / unit);
    let inverted =
        matches!(kind, TextKind::Inverted8 | TextKind::Inverted16 | TextKind::InvertedLatin1);
    let wide = text.bytes().flat_map(|byte| [byte, 0].into_iter().take(unit));
    let bytes = wide.map(|byte| if inverted { !byte } else { byte }).collect();
    (length > 0).then_some((bytes, text))
}

/// Where the content of a node is: in a buffer, or in the tree's own texts.
fn place<'a>(
    parts: &'a mut TreeParts,
    captured: &'a mut [u8],
    node: &Node,
) -> Option<&'a mut [u8]> {
    let uuid = matches!(node.kind, Kind::Uuid | Kind::UuidBe);
    let (start, length) = node.content();
    let length = if uuid { 16 } else { length };
    let buffer = match usize::from(node.buffer.0).checked_sub(1) {
        None => captured,
        Some(at) => &mut parts.made.get_mut(at)?.0[..],
    };
    buffer.get_mut(start..start + length)
}

/// Puts markers into an example's tree and bytes.
fn mark_all(
    parts: &mut TreeParts,
    captured: &mut [u8],
    next: &mut impl FnMut() -> usize,
) -> Vec<Marked> {
    let mut all = Vec::new();
    for (index, node) in parts.nodes.clone().into_iter().enumerate() {
        // A text that the tree keeps is in the bytes in another form.
        let own = node.kind == Kind::Text(TextKind::Owned);
        if node.end as usize > index + 1 || own {
            continue;
        }
        let Some(room) = place(parts, captured, &node) else { continue };
        if room.iter().all(|byte| *byte == 0) {
            continue;
        }
        let Some((bytes, shown)) = marker(&node, room.len(), next) else { continue };
        if bytes.len() != room.len() {
            continue;
        }
        room.copy_from_slice(&bytes);
        all.push(Marked { node: index, bytes, shown, secret: node.has(mark::SECRET) });
    }
    all
}

/// The path of a node by the names of the fields around it.
fn path(parts: &TreeParts, tables: &Tables, node: usize) -> String {
    let around = (0..=node).filter(|at| parts.nodes[*at].end as usize > node);
    let name = |at: usize| match parts.nodes[at].name {
        Sym::ELEMENT => None,
        name if name.0 >= Sym::DYNAMIC => Some("*"),
        name => Some(tables.name(name)),
    };
    around.skip(1).filter_map(name).collect::<Vec<_>>().join(".")
}

/// Marked messages as a capture of decrypted messages, and their markers.
struct MarkedCapture {
    made: Made,
    writer: PduWriter,
    frames: u64,
    /// The protocol of the next messages.
    protocol: &'static str,
    /// Markers that pseudonyms replace, and those of secrets: what they begin with, the whole
    /// marker, and whose it is.
    hidden: Markers,
    secret: Markers,
}

type Markers = HashMap<[u8; SHORTEST_OF_ALL], (Vec<u8>, String)>;

fn remember(markers: &mut Markers, marked: &Marked, whose: &str) {
    for bytes in [&marked.bytes, marked.shown.as_bytes()] {
        if let Some(start) = bytes.first_chunk() {
            markers.insert(*start, (bytes.to_vec(), whose.to_string()));
        }
    }
}

/// The markers in what was printed, and whose they are.
fn found<'m>(markers: &'m Markers, printed: &[u8]) -> BTreeSet<&'m str> {
    let starts = printed.windows(SHORTEST_OF_ALL).enumerate();
    starts
        .filter_map(|(at, start)| {
            let (marker, whose) = markers.get(start)?;
            printed[at..].starts_with(marker).then_some(whose.as_str())
        })
        .collect()
}

impl MarkedCapture {
    fn new() -> MarkedCapture {
        let mut made = Made::new();
        // Decrypted messages, as Wireshark exchanges them.
        made.bytes[20..24].copy_from_slice(&252_u32.to_le_bytes());
        let [hidden, secret] = [(); 2].map(|()| Markers::new());
        let writer = PduWriter::default();
        MarkedCapture { made, writer, frames: 0, protocol: "", hidden, secret }
    }

    /// Each message is on a stream of its own.
    fn add(&mut self, tables: &Tables, def: &MessageDef, tree: &Tree, bytes: &[u8]) {
        self.frames += 1;
        let from = if def.direction == Sender::Server { Side::Server } else { Side::Client };
        let service = tables.service(def.service).map_or("", |service| &service.name);
        let client: SocketAddr = format!("10.0.0.1:{}", 20_000 + self.frames).parse().unwrap();
        let server: SocketAddr = "10.0.0.2:14617".parse().unwrap();
        let (src, dst) = if from == Side::Client { (client, server) } else { (server, client) };
        let time = Time { seconds: self.frames as i64, nanos: 0, digits: 6 };
        let message = Message {
            name: Captured::new(tables.name(def.name)),
            number: def.number,
            service,
            from,
            offset: 0,
            bytes,
            reply: None,
            no_reply: false,
        };
        let record = Record {
            number: self.frames,
            at: Moment { frame: self.frames, time },
            start: time,
            transport: Transport::Tcp,
            stream: self.frames as u32,
            src,
            dst,
            from,
            protocol: self.protocol,
            service,
            round_trips: RoundTrips::default(),
            names: Names::default(),
            body: Body::Message { message: &message, tables, tree },
        };
        let packet = self.writer.packet(&record, "", &[]).unwrap();
        self.made.frame(&packet.bytes);
    }
}

/// The fields of an example that are visible under pseudonyms, as lines of the list.
fn visible(
    tables: &Tables,
    (name, def): (&str, Option<&MessageDef>),
    tree: &Tree,
    bytes: &[u8],
    all: &mut MarkedCapture,
    next: &mut impl FnMut() -> usize,
) -> Vec<String> {
    let mut parts = TreeParts::default();
    parts.copy_of(tree);
    let mut captured = bytes.to_vec();
    let marked = mark_all(&mut parts, &mut captured, next);
    let mut tree = Tree::default();
    parts.put_into(&mut tree);
    if let Some(def) = def {
        all.add(tables, def, &tree, &captured);
    }

    let json = |tree: &Tree, bytes: &[u8], redact: bool| {
        let mut out = Vec::new();
        let options = JsonOptions { spans: true, redact };
        JsonWriter::new(options).fields(MessageView { tables, tree, bytes }, &mut out);
        String::from_utf8(out).unwrap()
    };
    let redacted = json(&tree, &captured, true);
    for secret in marked.iter().filter(|one| one.secret && one.shown.len() >= SHORTEST) {
        assert!(!redacted.contains(&secret.shown), "{name}: --redact shows a secret: {redacted}");
    }

    let message = Message {
        name: Captured::new(name),
        number: None,
        service: "",
        from: Side::Client,
        offset: 0,
        bytes: &captured,
        reply: None,
        no_reply: false,
    };
    let mut hidden = Pseudonyms::new(&[7; 16], false).message(&message, tables, &mut tree);
    let shown = json(&tree, &hidden, false);
    parts.copy_of(&tree);
    let mut lines = Vec::new();
    for one in marked {
        if one.secret && def.is_some() {
            remember(&mut all.secret, &one, &format!("{name} {}", path(&parts, tables, one.node)));
        }
        let Marked { node, ref bytes, shown: ref text, .. } = one;
        let at = parts.nodes[node];
        let stays = place(&mut parts, &mut hidden, &at).is_some_and(|now| *now == bytes[..]);
        if stays {
            let ty = tables.type_def(at.ty).map_or("", |def| &*def.text);
            // Brackets and commas of values in text tell nothing.
            if !ty.ends_with("yntax") {
                lines.push(format!("{name} {} {ty}", path(&parts, tables, node)));
            }
            continue;
        }
        if text.len() >= SHORTEST {
            assert!(!shown.contains(text), "{name}: {text} is still in {shown}");
        }
        if def.is_some() {
            remember(&mut all.hidden, &one, &format!("{name} {}", path(&parts, tables, node)));
        }
    }
    lines
}

#[test]
fn under_pseudonyms_only_listed_texts_and_uuids_stay() {
    let (lines, _) = marked_examples();
    let printed: String = lines.into_iter().collect();
    hold(&file("tests/data/visible.txt"), &printed, "VISIBLE");
}

/// The fields of all examples that are visible under pseudonyms, and all of them as a capture.
fn marked_examples() -> (BTreeSet<String>, MarkedCapture) {
    let mut next = random();
    let mut lines = BTreeSet::new();
    let mut all = MarkedCapture::new();
    for lazy in &all_tables(Vec::new()).unwrap() {
        let tables = lazy.get();
        all.protocol = lazy.protocol().name();
        for example in tables.examples() {
            let def = match example.of {
                ExampleOf::Message(id) => tables.message(id),
                ExampleOf::Layout(_) => None,
            };
            let name = match example.of {
                ExampleOf::Message(id) => tables.name(tables.message(id).unwrap().name),
                ExampleOf::Layout(id) => tables.name(tables.layout(id).unwrap().name),
            };
            let read = read_example(tables, example, &mut |tree, bytes| {
                let own = visible(tables, (name, def), tree, bytes, &mut all, &mut next);
                lines.extend(own.iter().map(|line| format!("{} {line}\n", lazy.protocol().name())));
                Ok(())
            });
            read.unwrap_or_else(|why| panic!("{name}: {why}"));
        }
    }
    (lines, all)
}

/// What is typed, of which `IN` is the capture and `OUT` a file of its own.
const COMMANDS: [&[&str]; 12] = [
    &["IN"],
    &["IN", "-x"],
    &["IN", "--oneline"],
    &["IN", "--json", "--spans"],
    &["IN", "--csv", "--columns", "record,names,info,fields"],
    &["stats", "IN"],
    &["sessions", "--story", "IN"],
    &["sessions", "--json", "IN"],
    &["diagnose", "IN"],
    &["diff", "IN", "OTHER"],
    &["report", "IN", "-o", "OUT"],
    &["export", "messages", "IN", "-o", "OUT"],
];

/// What a command prints and writes.
fn told(command: &[&str], more: &[&str], folder: &Path) -> Vec<u8> {
    let out = folder.join("out");
    let mut run = program();
    for word in command {
        match *word {
            "IN" => run.arg(folder.join("marked.pcap")),
            "OTHER" => run.arg(file("captures/moul/golden.pcap")),
            "OUT" => run.arg(&out),
            word => run.arg(word),
        };
    }
    let done = run.args(more).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(matches!(done.status.code(), Some(0 | 4)), "{command:?} {more:?}: {said}");
    let written = std::fs::read(&out).unwrap_or_default();
    let _ = std::fs::remove_file(&out);
    let opened = match command {
        ["report", ..] => blocks(std::str::from_utf8(&written).unwrap()),
        _ => Vec::new(),
    };
    [done.stdout, done.stderr, written, opened].concat()
}

#[test]
fn no_command_tells_a_marker_that_is_to_be_hidden() {
    let (_, all) = marked_examples();
    assert!(all.hidden.len() > 500 && all.secret.len() > 20, "{}", all.secret.len());
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("markers");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("marked.pcap"), &all.made.bytes).unwrap();
    let key = folder.join("key");
    std::fs::write(&key, "moulsniff pseudonyms 1\n0123456789abcdef0123456789abcdef\n").unwrap();
    let key = key.to_str().unwrap();
    let mut told_of = Vec::new();
    for command in COMMANDS {
        for (markers, more) in
            [(&all.secret, &["--redact"][..]), (&all.hidden, &["--pseudonyms", key])]
        {
            let told = told(command, more, &folder);
            let found = found(markers, &told);
            if !found.is_empty() {
                told_of.push(format!("{command:?} {more:?}: {found:#?}"));
            }
        }
    }
    // Without these options everything is there, or the test could not fail.
    let plain = told(COMMANDS[3], &[], &folder);
    let found = [found(&all.hidden, &plain).len(), found(&all.secret, &plain).len()];
    assert!(found[0] > 200 && found[1] > 10, "{found:?}");
    assert!(told_of.is_empty(), "{}", told_of.join("\n"));
}
