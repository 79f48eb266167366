//! An outline says the same of a message as its tree: over messages that were really sent, as they
//! are, cut and changed.

use crate::common;
use crate::material;
use std::collections::HashSet;

use crate::material::{DIRTSAND, MOSS};
use crate::plasma::unpacked;
use moulsniff::proto::{PROTOCOLS, load_tables};
use moulsniff::table::{Evaluator, Outcome, PaddedBytes, ServiceId, Tables, parse_hex};
use moulsniff::tree::{Buffer, Deferring, Kind, Outline, Tree, mark};
use serde_json::Value;

/// With every class of message, compressed regions, and states whose descriptors are known and not.
const SESSIONS: [(&str, &[&str]); 3] =
    [DIRTSAND, MOSS, ("captures/moul/synthetic_all.pcap.gz", &["keys/dirtsand.ini"])];

/// What a message is read with, twice.
struct Fixture {
    tables: Tables,
    evaluator: Evaluator,
    tree: Tree,
    outline: Outline,
    /// Reads what the first one deferred. It knows no earlier message.
    later: Evaluator,
    later_tree: Tree,
    rest: Outline,
    /// Messages whose outlines had all there is to know: as they were sent, those of them with a
    /// compressed region, all with one whose bytes the outline kept, and changed ones.
    whole: usize,
    regions: usize,
    made: usize,
    changed: usize,
    deferred: usize,
    /// Deferred parts that were passed over by themselves.
    read_on: usize,
}

impl Fixture {
    fn new() -> Fixture {
        let moul = PROTOCOLS.iter().find(|protocol| protocol.name() == "moul").unwrap();
        // Skip programs are used at once.
        let mut evaluator = Evaluator::default();
        evaluator.outlined = u32::MAX;
        let (tree, outline, later, later_tree) =
            (Tree::default(), Outline::default(), Evaluator::default(), Tree::default());
        let tables = load_tables(*moul, &[]).unwrap();
        let rest = Outline::default();
        let whole = 0;
        let regions = 0;
        let made = 0;
        let changed = 0;
        let deferred = 0;
        let read_on = 0;
        Fixture {
            tables,
            evaluator,
            tree,
            outline,
            later,
            later_tree,
            rest,
            whole,
            regions,
            made,
            changed,
            deferred,
            read_on,
        }
    }

    /// Reads a message into a tree and into an outline; whether the outline has all there is to
    /// know.
    fn read(&mut self, (service, sender): (ServiceId, usize), bytes: &[u8]) -> bool {
        let Fixture { tables, evaluator, tree, outline, made: kept, .. } = self;
        let said = evaluator.message(tables, service, sender, bytes, outline);
        if !outline.is_whole() {
            return false;
        }
        let outcome = evaluator.message(tables, service, sender, bytes, tree);
        assert_eq!(said, outcome, "{bytes:02x?}");
        if let Outcome::Message(id, _) = outcome {
            assert!(!tables.message(id).unwrap().tied);
            assert_eq!(outline.len(), tree.len(), "{bytes:02x?}");
            assert_eq!(
                format!("{:?}", outline.problems()),
                format!("{:?}", tree.problems()),
                "{bytes:02x?}"
            );
            let explained = |marks: u8, kind| {
                kind != Kind::Undecoded && marks & (mark::OPAQUE | mark::UNEXPLAINED) == 0
            };
            assert!(
                tree.nodes().iter().all(|node| explained(node.marks, node.kind)),
                "{bytes:02x?}"
            );
            let named =
                tree.nodes().iter().any(|node| node.marks & (mark::NAME | mark::PARTIAL) != 0);
            assert!(!(named && outline.is_nameless()), "{bytes:02x?}");
            if let Some(made) = outline.made_bytes() {
                let mut buffers =
                    tree.nodes().iter().filter(|node| node.buffer != Buffer::CAPTURED);
                assert!(buffers.all(|node| made == tree.bytes(node.buffer, bytes)), "{bytes:02x?}");
                *kept += usize::from(!made.is_empty());
            }
        }
        true
    }

    /// Reads a message as far as it has to be read at once. Whoever reads it later, and knows no
    /// earlier message, says the same of it.
    fn defer(&mut self, (service, sender): (ServiceId, usize), bytes: &[u8]) {
        let Fixture { tables, evaluator, tree, outline, later, later_tree, rest, .. } = self;
        outline.set_deferring(Deferring::Only);
        let said = evaluator.deferred(tables, service, sender, bytes, outline);
        let part = outline.deferred();
        let context = outline.context().cloned();
        outline.set_deferring(Deferring::Never);
        let Some(outcome) = said else { return };
        assert!(outline.is_whole());
        let part = part.unwrap();
        assert_eq!(
            outcome,
            evaluator.message(tables, service, sender, bytes, tree),
            "{bytes:02x?}"
        );
        let Outcome::Message(id, length) = outcome else { panic!("{outcome:?}") };
        later.context = context;
        let all = |tree: &Tree| format!("{:?} {:?}", tree.nodes(), tree.problems());
        // What is behind a message changes nothing.
        for behind in [&[][..], &[0xff; 24], bytes] {
            let bytes = &[&bytes[..length], behind].concat();
            let padded = PaddedBytes { bytes, length };
            assert_eq!(
                outcome,
                later.padded(tables, service, sender, padded, later_tree),
                "{bytes:02x?}"
            );
            assert_eq!(all(later_tree), all(tree), "{bytes:02x?}");
            let said = later.padded(tables, service, sender, padded, outline);
            if outline.is_whole() {
                assert_eq!((said, outline.len()), (outcome, tree.len()), "{bytes:02x?}");
            }
            // Read on from where the first outline ends, it is the same outline.
            if later.deferred_part(tables, id, part, padded, rest) {
                assert_eq!(all_facts(rest), all_facts(outline), "{bytes:02x?}");
                self.read_on += 1;
            }
        }
        self.deferred += 1;
    }

    /// Reads a message as it is, then changed and cut at random.
    fn read_changed(
        &mut self,
        asked: (ServiceId, usize),
        bytes: &[u8],
        random: &mut impl FnMut() -> usize,
    ) {
        if self.read(asked, bytes) {
            self.whole += 1;
            self.regions +=
                usize::from(self.tree.nodes().iter().any(|node| node.has(mark::OWN_BUFFER)));
        }
        self.defer(asked, bytes);
        for _ in 0..24 {
            let mut bytes = bytes.to_vec();
            for _ in 0..random() % 3 {
                let at = random() % bytes.len();
                bytes[at] = (random() & 0xff) as u8;
            }
            bytes.truncate(bytes.len() - (random() % 4 / 3) * (random() % bytes.len()));
            self.changed += usize::from(self.read(asked, &bytes));
            self.defer(asked, &bytes);
        }
    }
}

/// Everything that an outline says.
fn all_facts(outline: &Outline) -> String {
    let facts = [outline.is_whole(), outline.is_nameless(), outline.is_aligned()];
    let problems = outline.problems();
    let classes = outline.classes();
    let made = outline.made_bytes();
    format!(
        "{} {facts:?} {problems:?} {classes:?} {made:?} {:?}",
        outline.len(),
        outline.dialects()
    )
}

#[test]
fn an_outline_and_a_tree_agree() {
    let mut fixture = Fixture::new();
    let mut random = common::random();
    let mut seen = HashSet::new();
    for session in SESSIONS {
        for sent in material::messages(session) {
            let Some(service) = fixture.tables.service_named(&sent.service) else { continue };
            let asked = (service, sent.from.index());
            if !sent.bytes.is_empty()
                && sent.bytes.len() <= 4096
                && seen.insert((asked.1, sent.bytes.clone()))
            {
                fixture.read_changed(asked, &sent.bytes, &mut random);
            }
        }
    }
    let Fixture { whole, changed, regions, made, deferred, read_on, .. } = fixture;
    // Else nothing was compared.
    assert!(
        whole > 300 && changed > 5000 && regions > 10 && made > 100,
        "{whole} {changed} {regions} {made} of {}",
        seen.len()
    );
    assert!(deferred > 5000 && read_on > 5000, "{deferred} {read_on}");
}

/// Every class in the forms of several programs, some of which only a dialect fits.
#[test]
fn they_agree_about_every_class_of_message() {
    let mut fixture = Fixture::new();
    let mut random = common::random();
    let asked = (fixture.tables.service_named("game").unwrap(), 1);
    for file in ["captures/moul/plasma_typical.jsonl.gz", "captures/moul/plasma_written.jsonl.gz"] {
        for line in unpacked(file).lines() {
            let instance: Value = serde_json::from_str(line).unwrap();
            if !matches!(instance["kind"].as_str(), None | Some("plMessage" | "plNetMessage")) {
                continue;
            }
            let inner = parse_hex(instance["hex"].as_str().unwrap()).unwrap();
            let class = u32::from(u16::from_le_bytes([inner[0], inner[1]]));
            let head = [
                &2_u16.to_le_bytes()[..],
                &class.to_le_bytes(),
                &(inner.len() as u32).to_le_bytes(),
            ]
            .concat();
            fixture.read_changed(asked, &[head, inner].concat(), &mut random);
        }
    }
    let Fixture { whole, changed, deferred, read_on, .. } = fixture;
    assert!(whole > 300 && changed > 5000, "{whole} {changed}");
    assert!(deferred > 5000 && read_on > 5000, "{deferred} {read_on}");
}
