//! Names that messages gave to numbers: a player's, a node's, an age's, an account's. Shown beside the number later on, as what was
//! inferred. Knows no protocol: what is a name, and what a number, tables say.

use std::collections::{HashMap, VecDeque};

use super::value::View;
use crate::tree::{Kind, Node, Sym, TextKind, decode_text};

/// More names than this are not remembered; the oldest are forgotten first.
const LIMIT: usize = 16_384;
/// More requests with names are not remembered, nor more names of one.
const REQUESTS: usize = 1024;
const ASKED: usize = 4;
/// Characters of a name that are remembered.
const LENGTH: usize = 64;

/// A thing that may have a name: its protocol, what it is, and its number.
type Thing = (usize, Sym, u128);

/// What is known by name.
#[derive(Default)]
pub(super) struct Names {
    known: HashMap<Thing, (String, u64)>,
    order: VecDeque<Thing>,
    /// Names in requests, by record: what they name has its number in the reply.
    asked: HashMap<u64, Vec<(Sym, String)>>,
    asked_order: VecDeque<u64>,
    /// The limit was reached: to be said, and said.
    full: Option<bool>,
}

impl Names {
    /// Learns from a message: in each structure, a text that names a kind of thing belongs to the number of that kind beside it. In a
    /// request it may also be the number of the message itself (a node that is saved), or come with the reply (a login).
    pub(super) fn learn(&mut self, view: &View<'_>, record: u64, request: bool) {
        let request = request && has_transaction(view);
        for (index, node) in view.tree.nodes().iter().enumerate() {
            let Kind::Text(kind) = node.kind else { continue };
            let Some(def) = view.tables.type_def(node.ty).filter(|d| !d.names.is_empty()) else { continue };
            let name = text_of(view, node, kind);
            if name.is_empty() {
                continue;
            }
            for named in &def.names {
                let beside = self.give(view, parent(view, index), *named, &name, record);
                if request {
                    let _ = beside || self.give(view, 0, *named, &name, record);
                    self.ask(record, *named, name.clone());
                }
            }
        }
    }

    /// Learns from a reply: names in its request belong to the numbers it brings.
    pub(super) fn answered(&mut self, view: &View<'_>, request: u64) {
        let Some(asked) = self.asked.get(&request).cloned() else { return };
        for (kind, name) in asked {
            self.give(view, 0, kind, &name, request);
            let lists: Vec<u32> =
                view.tree.children(0).filter(|(_, node)| node.kind == Kind::List).map(|(index, _)| index).collect();
            for list in lists {
                self.give(view, list, kind, &name, request);
            }
        }
    }

    /// The name of a number, and the record that gave it.
    pub(super) fn of(&self, view: &View<'_>, node: &Node) -> Option<(&str, u64)> {
        let ids = &view.tables.type_def(node.ty).filter(|def| !def.ids.is_empty())?.ids;
        let key = number_of(view, node)?;
        let known = ids.iter().find_map(|id| self.known.get(&(view.tables as *const _ as usize, *id, key)))?;
        Some((known.0.as_str(), known.1))
    }

    /// Whether the oldest names began to be forgotten; said once.
    pub(super) fn take_full(&mut self) -> bool {
        let say = self.full == Some(false);
        if say {
            self.full = Some(true);
        }
        say
    }

    /// Gives a name to the numbers of a kind that stand in a structure; whether there was one.
    fn give(&mut self, view: &View<'_>, parent: u32, kind: Sym, name: &str, record: u64) -> bool {
        let mut given = false;
        for (_, number) in view.tree.children(parent) {
            let Some(def) = view.tables.type_def(number.ty) else { continue };
            if def.refers || !def.ids.contains(&kind) {
                continue;
            }
            if let Some(key) = number_of(view, number) {
                self.keep((view.tables as *const _ as usize, kind, key), name.to_string(), record);
                given = true;
            }
        }
        given
    }

    fn keep(&mut self, thing: Thing, name: String, record: u64) {
        if self.known.insert(thing, (name, record)).is_some() {
            return;
        }
        self.order.push_back(thing);
        if self.order.len() > LIMIT
            && let Some(oldest) = self.order.pop_front()
        {
            self.full.get_or_insert(false);
            self.known.remove(&oldest);
        }
    }

    fn ask(&mut self, record: u64, kind: Sym, name: String) {
        let names = self.asked.entry(record).or_default();
        if names.is_empty() {
            self.asked_order.push_back(record);
        }
        if names.len() < ASKED {
            names.push((kind, name));
        }
        if self.asked_order.len() > REQUESTS
            && let Some(oldest) = self.asked_order.pop_front()
        {
            self.asked.remove(&oldest);
        }
    }
}

/// As much of a text as is remembered.
fn text_of(view: &View<'_>, node: &Node, kind: TextKind) -> String {
    if kind == TextKind::Owned {
        return view.tree.owned(node.value).chars().take(LENGTH).collect();
    }
    let (start, len) = node.content();
    let bytes = view.tree.bytes(node.buffer, view.bytes).get(start..start.saturating_add(len)).unwrap_or(&[]);
    let mut name = String::new();
    decode_text(kind, bytes, &mut name);
    match name.char_indices().nth(LENGTH) {
        Some((end, _)) => name.get(..end).unwrap_or(&name).to_string(),
        None => name,
    }
}

/// Whether a message has a number that its reply will repeat.
fn has_transaction(view: &View<'_>) -> bool {
    view.tree.children(0).any(|(_, node)| view.tables.type_def(node.ty).is_some_and(|def| def.transaction))
}

/// The structure a node stands in.
fn parent(view: &View<'_>, index: usize) -> u32 {
    let nodes = view.tree.nodes();
    (0..index).rev().find(|i| nodes.get(*i).is_some_and(|n| n.end as usize > index)).unwrap_or(0) as u32
}

/// A number, or a UUID as one; 0 names nothing.
fn number_of(view: &View<'_>, node: &Node) -> Option<u128> {
    let key = match node.kind {
        Kind::Unsigned | Kind::Signed | Kind::Unsigned64 | Kind::Signed64 => u128::from(node.value),
        Kind::Uuid | Kind::UuidBe => {
            let (start, _) = node.content();
            let bytes = view.tree.bytes(node.buffer, view.bytes).get(start..start + 16)?;
            u128::from_be_bytes(*bytes.first_chunk::<16>()?)
        }
        _ => return None,
    };
    (key != 0).then_some(key)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;
    use crate::proto::{load_tables, protocol_named};
    use crate::table::{Evaluator, Outcome, Tables, parse_hex};
    use crate::tree::Tree;

    /// Messages of the auth server, and what is known after them.
    struct Bench {
        tables: Tables,
        names: Names,
        record: u64,
    }

    impl Bench {
        fn new() -> Self {
            let tables = load_tables(protocol_named("moul").unwrap(), &[]).unwrap();
            Bench { tables, names: Names::default(), record: 0 }
        }

        /// Takes a message in, a reply to a record or not, and gives what its numbers are called before it is learned from.
        fn hear(&mut self, sender: usize, hex: &str, reply: Option<u64>) -> Vec<(String, u64)> {
            let bytes = parse_hex(hex).unwrap();
            let mut tree = Tree::new();
            let service = self.tables.service_named("auth").unwrap();
            let outcome = Evaluator::default().message(&self.tables, service, sender, &bytes, &mut tree);
            assert!(matches!(outcome, Outcome::Message(..)), "{outcome:?}");
            let view = View { tables: &self.tables, tree: &tree, bytes: &bytes, redact: false };
            self.record += 1;
            if let Some(request) = reply {
                self.names.answered(&view, request);
            }
            let named = tree.nodes().iter().filter_map(|n| self.names.of(&view, n));
            let named = named.map(|(name, record)| (name.to_string(), record)).collect();
            self.names.learn(&view, self.record, reply.is_none());
            named
        }
    }

    const LOGIN: &str = "0300 01000000 d4c3b2a1 0900 70006c00610069006e007500730065007200
        5d1b91b0dfcaf9bf617b340305a40c2266631886 0000 0300 770069006e00";
    const LOGIN_REPLY: &str = "0400 01000000 00000000 e78a2e1963b2444b996e2b492a30da53 08000000 01000000
        00000000000000000000000000000000";
    const ACCOUNT_CREATED: &str = "0800 02000000 00000000 e78a2e1963b2444b996e2b492a30da53";

    #[test]
    fn an_account_is_called_as_its_login_called_it() {
        let mut bench = Bench::new();
        assert_eq!(bench.hear(0, LOGIN, None), []);
        assert_eq!(bench.hear(1, LOGIN_REPLY, Some(1)), [("plainuser".into(), 1)]);
        assert_eq!(bench.hear(1, ACCOUNT_CREATED, None), [("plainuser".into(), 1)], "elsewhere too");
    }

    #[test]
    fn a_reply_to_another_request_names_nothing() {
        let mut bench = Bench::new();
        bench.hear(0, LOGIN, None);
        assert_eq!(bench.hear(1, LOGIN_REPLY, Some(2)), []);
        assert_eq!(bench.hear(1, ACCOUNT_CREATED, None), []);
    }

    /// A folder that the avatar 5 made: the mask, its maker, the type, the name.
    const FOLDER: &str = "c000100000000000 05000000 16000000 04000000 4100 0000";

    #[test]
    fn a_found_node_has_the_name_it_was_looked_for_by() {
        let mut bench = Bench::new();
        bench.hear(0, &format!("2100 07000000 18000000 {FOLDER}"), None);
        let reply = "1f00 07000000 00000000 01000000 6b000000";
        assert_eq!(bench.hear(1, reply, Some(1)), [("A".into(), 1)]);
        assert_eq!(bench.hear(0, "1a00 08000000 6b000000", None), [("A".into(), 1)], "a fetch of 107");
        assert_eq!(bench.hear(0, "1a00 09000000 05000000", None), [], "who made it is not called so");
    }

    #[test]
    fn that_names_are_forgotten_is_said_once() {
        let mut names = Names::default();
        let kind = Sym::ELEMENT;
        let mut said = 0;
        for number in 0..LIMIT as u128 + 10 {
            names.keep((0, kind, number), "x".into(), 1);
            said += usize::from(names.take_full());
        }
        assert_eq!((said, names.known.len()), (1, LIMIT));
    }

    #[test]
    fn requests_without_an_answer_are_bounded() {
        let mut names = Names::default();
        for record in 0..REQUESTS as u64 + 10 {
            (0..9).for_each(|_| names.ask(record, Sym::ELEMENT, "x".into()));
        }
        assert_eq!(names.asked.len(), REQUESTS);
        assert!(names.asked.values().all(|n| n.len() == ASKED));
    }
}
