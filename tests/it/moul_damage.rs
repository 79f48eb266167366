//! Damage inside messages: what comes before it is read as if nothing had happened, the rest is
//! shown, and what comes behind the damaged buffer is not touched.

use crate::common;
use std::io::Read;

use moulsniff::proto::{load_tables, protocol_named};
use moulsniff::table::{Evaluator, Outcome, Tables, parse_hex};
use moulsniff::tree::{Buffer, Kind, Node, Sym, Tree};
use serde_json::Value;

struct Fixture {
    tables: Tables,
    evaluator: Evaluator,
    tree: Tree,
}

impl Fixture {
    fn new() -> Self {
        let tables =
            load_tables(protocol_named("moul").unwrap(), &[]).unwrap_or_else(|e| panic!("{e}"));
        Fixture { tables, evaluator: Evaluator::default(), tree: Tree::new() }
    }

    /// Reads the message that begins the bytes; its length.
    fn message(&mut self, service: &str, sender: usize, bytes: &[u8]) -> usize {
        let id = self.tables.service_named(service).unwrap();
        match self.evaluator.message(&self.tables, id, sender, bytes, &mut self.tree) {
            Outcome::Message(_, length) => length,
            other => panic!("{other:?}"),
        }
    }

    /// The captured bytes' leaves in order: those of a region that was unpacked are the region.
    fn leaves(&self) -> Vec<(u32, u32, String, u64, Kind)> {
        let nodes = self.tree.nodes();
        let inner =
            |i: usize, n: &Node| n.end as usize > i + 1 && nodes[i + 1].buffer == Buffer::CAPTURED;
        let captured = nodes.iter().enumerate().filter(|(_, n)| n.buffer == Buffer::CAPTURED);
        let leaves = captured.filter(|(i, n)| n.bits > 0 && !inner(*i, n));
        leaves
            .map(|(_, n)| (n.start, n.bits, self.tables.name(n.name).to_string(), n.value, n.kind))
            .collect()
    }

    /// Whether the leaves cover the first bytes without gap or overlap.
    fn tiled(&self, bytes: usize) -> bool {
        let mut at = 0;
        let whole = self.leaves().iter().all(|leaf| {
            let follows = leaf.0 == at;
            at = leaf.0 + leaf.1;
            follows
        });
        whole && at as usize == bytes * 8
    }
}

fn unpacked(path: &str) -> Vec<Value> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap())
        .read_to_string(&mut text)
        .unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What is put into which message, behind which bytes: a buffer of that length.
fn wrapped(kind: &str, content: &[u8], class: &str) -> Option<(&'static str, usize, Vec<u8>)> {
    let length = (content.len() as u32).to_le_bytes();
    let (service, sender, head): (_, _, &[u8]) = match kind {
        "plMessage" | "plNetMessage" => ("game", 0, &[2, 0, 1, 0, 0, 0]),
        "vaultnode" => ("auth", 1, &[24, 0, 7, 0, 0, 0, 0, 0, 0, 0]),
        "gamemgr" if class.starts_with("Cli") => ("game", 0, &[3, 0]),
        "gamemgr" => ("game", 1, &[3, 0]),
        _ => return None,
    };
    Some((service, sender, [head, &length, content].concat()))
}

/// A ping of that service and sender.
fn ping(service: &str, sender: usize) -> Vec<u8> {
    match (service, sender) {
        ("game", _) => vec![0, 0, 9, 9, 9, 9],
        _ => vec![0, 0, 9, 9, 9, 9, 0, 0, 0, 0, 0, 0, 0, 0],
    }
}

fn instances() -> Vec<(String, String, Vec<u8>)> {
    let text = |v: &Value, key: &str| v[key].as_str().unwrap().to_string();
    let typical = unpacked("captures/moul/plasma_typical.jsonl.gz");
    let all = typical
        .iter()
        .map(|v| (text(v, "kind"), text(v, "class"), parse_hex(&text(v, "hex")).unwrap()));
    all.filter(|(kind, class, _)| wrapped(kind, &[], class).is_some()).collect()
}

#[test]
fn a_cut_buffer_ends_where_its_message_says() {
    let mut fixture = Fixture::new();
    let mut cuts = 0;
    for (kind, class, content) in instances() {
        // Long ones at fewer places.
        for cut in (0..content.len()).step_by(content.len() / 200 + 1) {
            let (service, sender, message) = wrapped(&kind, &content[..cut], &class).unwrap();
            let stream = [message.clone(), ping(service, sender)].concat();
            let length = fixture.message(service, sender, &stream);
            assert_eq!(length, message.len(), "{class} cut at {cut}");
            assert!(fixture.tiled(length), "{class} cut at {cut}: {:?}", fixture.leaves());
            assert_eq!(fixture.message(service, sender, &stream[length..]), stream.len() - length);
            cuts += 1;
        }
    }
    assert!(cuts > 30_000, "{cuts} cuts");
}

#[test]
fn what_stands_before_a_cut_is_read_as_before() {
    let mut fixture = Fixture::new();
    let ty = fixture.tables.type_named("plCreatable").unwrap();
    let mut kept = 0u64;
    let mut lost = Vec::new();
    for (_, class, content) in
        instances().into_iter().filter(|i| i.0 != "vaultnode" && i.0 != "gamemgr")
    {
        fixture.evaluator.value(&fixture.tables, ty, Sym::ELEMENT, &content, 0, &mut fixture.tree);
        let whole = fixture.leaves();
        for cut in (0..content.len()).step_by(content.len() / 60 + 1) {
            fixture.evaluator.value(
                &fixture.tables,
                ty,
                Sym::ELEMENT,
                &content[..cut],
                0,
                &mut fixture.tree,
            );
            assert!(fixture.tiled(cut), "{class} cut at {cut}");
            let found: std::collections::HashSet<_> =
                fixture.leaves().into_iter().map(|l| (l.0, l.1, l.2)).collect();
            let end = cut as u32 * 8;
            // A text that is cut off is undecoded together with its count, and where it has a
            // terminator or padding with these.
            let gone = |i: usize| {
                let behind = whole[i + 1..].iter().take(2);
                let mut cut_off = behind.filter(|l| l.0 + l.1 > end).map(|l| l.2.as_str());
                cut_off
                    .any(|name| whole[i].2 == "count" || ["padding", "terminator"].contains(&name))
            };
            for (_, leaf) in whole.iter().enumerate().filter(|(i, l)| l.0 + l.1 <= end && !gone(*i))
            {
                match found.contains(&(leaf.0, leaf.1, leaf.2.clone())) {
                    true => kept += 1,
                    false => {
                        lost.push(format!("{class} cut at {cut}: {} at {}", leaf.2, leaf.0 / 8))
                    }
                }
            }
        }
    }
    assert!(
        kept > 100_000 && lost.is_empty(),
        "{kept} kept, {} lost: {:?}",
        lost.len(),
        lost.iter().step_by(lost.len() / 20 + 1).collect::<Vec<_>>()
    );
}

#[test]
fn a_changed_byte_costs_nothing_behind_its_buffer() {
    let mut fixture = Fixture::new();
    let mut random = common::random();
    let mut next = |below: usize| random() % below;
    for (kind, class, content) in instances().into_iter().filter(|i| !i.2.is_empty()) {
        for _ in 0..24 {
            let mut changed = content.clone();
            for _ in 0..=next(3) {
                let at = next(changed.len());
                changed[at] = next(256) as u8;
            }
            let (service, sender, message) = wrapped(&kind, &changed, &class).unwrap();
            let stream = [message.clone(), ping(service, sender)].concat();
            let length = fixture.message(service, sender, &stream);
            assert_eq!(length, message.len(), "{class}");
            assert!(fixture.tiled(length), "{class}: {:?}", fixture.leaves());
            assert_eq!(fixture.message(service, sender, &stream[length..]), stream.len() - length);
        }
    }
}
