//! An outline says the same of a message as its tree: over messages that were really sent, as they are, cut and changed.

use crate::common;
use crate::material;
use std::collections::HashSet;

use crate::material::{DIRTSAND, MOSS};
use moulsniff::proto::{PROTOCOLS, load_tables};
use moulsniff::table::{Evaluator, Outcome, ServiceId, Tables};
use moulsniff::tree::{Kind, Outline, Tree, mark};

/// With every class of message, compressed regions, and states whose descriptors are known and not.
const SESSIONS: [(&str, &[&str]); 3] =
    [DIRTSAND, MOSS, ("captures/moul/synthetic_all.pcap.gz", &["keys/dirtsand.ini"])];

/// What a message is read with, twice.
struct Bench {
    tables: Tables,
    evaluator: Evaluator,
    tree: Tree,
    outline: Outline,
}

impl Bench {
    /// Reads a message into a tree and into an outline; whether the outline has all there is to know.
    fn read(&mut self, (service, sender): (ServiceId, usize), bytes: &[u8]) -> bool {
        let Bench { tables, evaluator, tree, outline } = self;
        let said = evaluator.message(tables, service, sender, bytes, outline);
        if !outline.is_whole() {
            return false;
        }
        let outcome = evaluator.message(tables, service, sender, bytes, tree);
        assert_eq!(said, outcome, "{bytes:02x?}");
        if let Outcome::Message(id, _) = outcome {
            assert!(!tables.message(id).unwrap().tied);
            assert_eq!(outline.len(), tree.len(), "{bytes:02x?}");
            assert_eq!(format!("{:?}", outline.problems()), format!("{:?}", tree.problems()), "{bytes:02x?}");
            let explained =
                |marks: u8, kind| kind != Kind::Undecoded && marks & (mark::OPAQUE | mark::UNEXPLAINED) == 0;
            assert!(tree.nodes().iter().all(|node| explained(node.marks, node.kind)), "{bytes:02x?}");
        }
        true
    }
}

#[test]
fn an_outline_and_a_tree_agree() {
    let moul = PROTOCOLS.iter().find(|protocol| protocol.name() == "moul").unwrap();
    let tables = load_tables(*moul, &[]).unwrap();
    let mut bench =
        Bench { tables, evaluator: Evaluator::default(), tree: Tree::default(), outline: Outline::default() };
    let mut random = common::random();
    let (mut seen, mut whole, mut changed_whole, mut regions) = (HashSet::new(), 0, 0, 0);
    for session in SESSIONS {
        for sent in material::messages(session) {
            let Some(service) = bench.tables.service_named(&sent.service) else { continue };
            let asked = (service, sent.from.index());
            if sent.bytes.is_empty() || sent.bytes.len() > 4096 || !seen.insert((asked.1, sent.bytes.clone())) {
                continue;
            }
            if bench.read(asked, &sent.bytes) {
                whole += 1;
                regions += usize::from(bench.tree.nodes().iter().any(|node| node.has(mark::OWN_BUFFER)));
            }
            for _ in 0..24 {
                let mut bytes = sent.bytes.clone();
                for _ in 0..random() % 3 {
                    let at = random() % bytes.len();
                    bytes[at] = (random() & 0xff) as u8;
                }
                bytes.truncate(bytes.len() - (random() % 4 / 3) * (random() % bytes.len()));
                changed_whole += usize::from(bench.read(asked, &bytes));
            }
        }
    }
    // Else nothing was compared.
    assert!(whole > 300 && changed_whole > 5000 && regions > 10, "{whole} {changed_whole} {regions} of {}", seen.len());
}
