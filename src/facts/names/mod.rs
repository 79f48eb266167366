//! Infers names for the numbers of players, nodes, ages and accounts. From a message with a name
//! and a number it learns that they belong together; trees then show the name beside the number in
//! later messages. Of things that change it learns what they were before. It knows no protocol:
//! tables mark types as names or as numbers of a kind of thing.

mod changes;
mod known_names;
mod number_filter;
mod roles;
mod stream_places;

use std::collections::VecDeque;

use crate::record::{Body, MessageView, NameStore, Names, Record};
use crate::table::{ChangeRole, PlaceRole};
use crate::tree::{Kind, Node, Sym, TextKind, Tree, decode_text, mark};
use changes::KnownValues;
use known_names::{InferenceMessage, KnownNames, number_of, tables_id};
use roles::{CHANGE, ENTERED, NAME, NUMBER, SAME, change_of, role, walk};
use stream_places::{StreamPlaces, is_entered, role_of_place};

/// How many names from requests wait for a reply, in all and of one request.
const ASKED: usize = 2048;
const ASKED_AT_ONCE: usize = 4;
/// How many characters of a name are remembered.
const LENGTH: usize = 64;

/// All names that were inferred. Memory grows to the bounds above; after that no message allocates.
#[derive(Default)]
pub struct NameInference {
    known: KnownNames,
    places: StreamPlaces,
    values: KnownValues,
    /// Names in requests, the oldest first, as (record, kind, name). The number of the thing comes
    /// with the reply.
    asked: VecDeque<(u64, Sym, String)>,
    /// Nodes of the current message: numbers of things, and names.
    numbers: Vec<u32>,
    texts: Vec<u32>,
    /// Those of the numbers that have another number of the same thing beside them.
    tied: Vec<u32>,
    /// Those of them that tell about something that changes.
    changes: Vec<(u32, ChangeRole)>,
    /// Whether one of these numbers is a place that the client enters.
    enters: bool,
    text: String,
    /// The names of the current message's numbers.
    store: NameStore,
}

impl NameInference {
    /// Learns from a record. Returns the names of its numbers: those given by earlier records or by
    /// the request it answers.
    pub fn infer(&mut self, record: &Record<'_>) -> Names<'_> {
        self.store.clear();
        if let Body::Message { message, tables, tree } = record.body {
            self.infer_in(InferenceMessage {
                view: MessageView { tables, tree, bytes: message.bytes },
                record: record.number,
                answers: message.reply.map(|reply| reply.record),
                stream: (record.transport, record.stream),
            });
        }
        self.store.names()
    }

    fn infer_in(&mut self, seen: InferenceMessage<'_>) {
        self.look(seen);
        for index in &self.tied {
            if let Some(node) = seen.view.tree.get(*index) {
                self.known.tie(seen, parent(seen.view.tree, *index), node);
            }
        }
        if !self.numbers.is_empty() {
            self.answered(seen);
            if self.enters {
                self.place_of_stream(seen);
            }
            for index in &self.numbers {
                if let Some((name, record)) =
                    seen.view.tree.get(*index).and_then(|node| self.known.of(seen, node))
                {
                    self.store.add(*index, name, record);
                }
            }
        }
        if !self.texts.is_empty() {
            self.learn(seen);
            self.name_of_stream(seen);
        }
        if !self.changes.is_empty() {
            self.values.learn(seen, &self.changes, &mut self.store);
        }
        self.store.forgotten = self.known.take_full();
    }

    /// Finds the numbers and names in a message.
    fn look(&mut self, seen: InferenceMessage<'_>) {
        self.numbers.clear();
        self.texts.clear();
        self.tied.clear();
        self.changes.clear();
        self.enters = false;
        let numbers = &mut self.numbers;
        let texts = &mut self.texts;
        let tied = &mut self.tied;
        let enters = &mut self.enters;
        let changes = &mut self.changes;
        let mut add = |index: u32, node: &Node, role: u8| {
            if role & CHANGE != 0
                && let Some(change) = seen.view.tables.type_def(node.ty).and_then(change_of)
            {
                changes.push((index, change));
            }
            if role & NUMBER != 0 {
                numbers.push(index);
                *enters |= role & ENTERED != 0;
            }
            if role & SAME != 0 {
                tied.push(index);
            }
            if role & NAME != 0 && matches!(node.kind, Kind::Text(_)) {
                texts.push(index);
            }
        };
        match seen.view.tree.telling() {
            Some(fields) => fields.for_each(|(index, node)| {
                add(index, node, seen.view.tables.type_def(node.ty).map_or(0, role));
            }),
            None => walk(seen.view.tree.nodes(), seen.view.tables, &mut add),
        }
    }

    /// Learns from a message. A text that names a kind of thing belongs to the number of that kind
    /// in the same structure. In a request the number may also be a field of the message itself (a
    /// node that is saved), or come with the reply (a login).
    fn learn(&mut self, seen: InferenceMessage<'_>) {
        let request = seen.answers.is_none() && has_transaction(seen);
        for at in 0..self.texts.len() {
            let Some(index) = self.texts.get(at).copied() else { break };
            let Some(node) = seen.view.tree.get(index) else { continue };
            let Some(def) = seen.view.tables.type_def(node.ty) else { continue };
            read_name(seen, node, &mut self.text);
            if self.text.is_empty() {
                continue;
            }
            append_continued(seen, index, &mut self.text);
            for named in &def.names {
                let beside = self.known.give(
                    seen,
                    parent(seen.view.tree, index),
                    *named,
                    &self.text,
                    seen.record,
                );
                if request {
                    let _ = beside || self.known.give(seen, 0, *named, &self.text, seen.record);
                    ask(&mut self.asked, seen.record, *named, &self.text);
                }
            }
        }
    }

    /// Learns the number of the place that the client enters on this stream.
    fn place_of_stream(&mut self, seen: InferenceMessage<'_>) {
        for node in self.numbers.iter().filter_map(|index| seen.view.tree.get(*index)) {
            let Some(def) = seen.view.tables.type_def(node.ty) else { continue };
            if !is_entered(def) {
                continue;
            }
            let (Some(kind), Some(number)) = (def.ids.first(), number_of(seen, node)) else {
                continue;
            };
            let thing = (tables_id(seen.view.tables), *kind, number);
            if let Some((name, record)) = self.places.enter(seen.stream, thing) {
                self.known.keep(thing, name, record);
            }
        }
    }

    /// Learns the name of the place that a stream is about, for its number and for the numbers of
    /// its kinds in the same message.
    fn name_of_stream(&mut self, seen: InferenceMessage<'_>) {
        for index in &self.texts {
            let Some(node) = seen.view.tree.get(*index) else { continue };
            let Some(def) = seen.view.tables.type_def(node.ty) else { continue };
            if role_of_place(def) != Some(PlaceRole::Named) {
                continue;
            }
            read_name(seen, node, &mut self.text);
            if self.text.is_empty() {
                continue;
            }
            for number in self.numbers.iter().filter_map(|index| seen.view.tree.get(*index)) {
                let kinds =
                    seen.view.tables.type_def(number.ty).map_or(&[][..], |def| def.ids.as_slice());
                let kind = kinds.iter().find(|kind| def.names.contains(kind));
                if let (Some(kind), Some(key)) = (kind, number_of(seen, number)) {
                    self.known.keep(
                        (tables_id(seen.view.tables), *kind, key),
                        &self.text,
                        seen.record,
                    );
                }
            }
            if let Some(thing) = self.places.name(seen.stream, &self.text, seen.record) {
                self.known.keep(thing, &self.text, seen.record);
            }
        }
    }

    /// Learns from a reply: names in its request belong to the numbers in it.
    fn answered(&mut self, seen: InferenceMessage<'_>) {
        let Some(request) = seen.answers else { return };
        let first = self.asked.partition_point(|asked| asked.0 < request);
        for (_, kind, name) in self.asked.range(first..).take_while(|asked| asked.0 == request) {
            self.known.give(seen, 0, *kind, name, request);
            for (list, _) in seen.view.tree.children(0).filter(|(_, node)| node.kind == Kind::List)
            {
                self.known.give(seen, list, *kind, name, request);
            }
        }
    }
}

/// Remembers a name from a request. Records come in ascending order.
fn ask(asked: &mut VecDeque<(u64, Sym, String)>, record: u64, kind: Sym, name: &str) {
    if asked.iter().rev().take_while(|of| of.0 == record).count() >= ASKED_AT_ONCE {
        return;
    }
    let oldest = if asked.len() < ASKED { None } else { asked.pop_front() };
    let mut text = oldest.map(|(_, _, text)| text).unwrap_or_default();
    text.clear();
    text.push_str(name);
    asked.push_back((record, kind, text));
}

/// Reads the first `LENGTH` characters of a text.
fn read_name(seen: InferenceMessage<'_>, node: &Node, out: &mut String) {
    out.clear();
    match node.kind {
        Kind::Text(TextKind::Owned) => out.push_str(seen.view.tree.owned(node.value).raw()),
        Kind::Text(kind) => {
            let (start, len) = node.content();
            let all = seen.view.tree.bytes(node.buffer, seen.view.bytes);
            decode_text(kind, all.get(start..start.saturating_add(len)).unwrap_or(&[]), out);
        }
        _ => {}
    }
    if let Some((end, _)) = out.char_indices().nth(LENGTH) {
        out.truncate(end);
    }
}

/// Appends the fields behind a name that go on with it (`continues`), with a blank before each.
fn append_continued(seen: InferenceMessage<'_>, index: u32, out: &mut String) {
    let siblings = seen.view.tree.children(parent(seen.view.tree, index));
    // A text's length comes between it and the text before it.
    let behind = siblings.filter(|(at, node)| *at > index && !node.has(mark::SPAN));
    let mut part = String::new();
    for (_, node) in behind {
        let def = seen.view.tables.type_def(node.ty);
        if !def.and_then(|def| def.facts.as_ref()).is_some_and(|facts| facts.continues) {
            return;
        }
        read_name(seen, node, &mut part);
        if !part.is_empty() {
            out.push(' ');
            out.push_str(&part);
        }
    }
}

/// Whether a message has a number that its reply will repeat.
fn has_transaction(seen: InferenceMessage<'_>) -> bool {
    seen.view
        .tree
        .children(0)
        .any(|(_, node)| seen.view.tables.type_def(node.ty).is_some_and(|def| def.transaction))
}

/// The structure that contains a node.
fn parent(tree: &Tree, index: u32) -> u32 {
    (0..index).rev().find(|i| tree.get(*i).is_some_and(|n| n.end > index)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::known_names::MAX_NAMES;
    use super::*;
    use crate::proto::{load_tables, protocol_named};
    use crate::session::Transport;
    use crate::table::{Evaluator, Outcome, Tables, parse_hex};

    /// Messages of the auth server, and what is known after them.
    struct Fixture {
        tables: Tables,
        names: NameInference,
        record: u64,
    }

    impl Fixture {
        fn new() -> Self {
            let tables = load_tables(protocol_named("moul").unwrap(), &[]).unwrap();
            Fixture { tables, names: NameInference::default(), record: 0 }
        }

        /// Takes a message in, a reply to a record or not, and gives what its numbers are called
        /// before it is learned from.
        fn read(&mut self, sender: usize, hex: &str, reply: Option<u64>) -> Vec<(String, u64)> {
            self.hear_on("auth", 0, sender, hex, reply)
        }

        /// As `read`, on a stream with a server of the named kind.
        fn hear_on(
            &mut self,
            service: &str,
            stream: u32,
            sender: usize,
            hex: &str,
            reply: Option<u64>,
        ) -> Vec<(String, u64)> {
            let bytes = parse_hex(hex).unwrap();
            let mut tree = Tree::new();
            let service = self.tables.service_named(service).unwrap();
            let outcome =
                Evaluator::default().message(&self.tables, service, sender, &bytes, &mut tree);
            assert!(matches!(outcome, Outcome::Message(..)), "{outcome:?}");
            self.record += 1;
            let seen = InferenceMessage {
                view: MessageView { tables: &self.tables, tree: &tree, bytes: &bytes },
                record: self.record,
                answers: reply,
                stream: (Transport::Tcp, stream),
            };
            self.names.store.clear();
            self.names.infer_in(seen);
            let names = self.names.store.names();
            names.iter().map(|(_, name, record)| (name.to_string(), record)).collect()
        }
    }

    const LOGIN: &str = "0300 01000000 d4c3b2a1 0900 70006c00610069006e007500730065007200
        5d1b91b0dfcaf9bf617b340305a40c2266631886 0000 0300 770069006e00";
    const LOGIN_REPLY: &str = "0400 01000000 00000000 e78a2e1963b2444b996e2b492a30da53 08000000 \
                               01000000
        00000000000000000000000000000000";
    const ACCOUNT_CREATED: &str = "0800 02000000 00000000 e78a2e1963b2444b996e2b492a30da53";

    #[test]
    fn an_account_is_called_as_its_login_called_it() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.read(0, LOGIN, None), []);
        assert_eq!(fixture.read(1, LOGIN_REPLY, Some(1)), [("plainuser".into(), 1)]);
        assert_eq!(
            fixture.read(1, ACCOUNT_CREATED, None),
            [("plainuser".into(), 1)],
            "elsewhere too"
        );
    }

    #[test]
    fn a_reply_to_another_request_names_nothing() {
        let mut fixture = Fixture::new();
        fixture.read(0, LOGIN, None);
        assert_eq!(fixture.read(1, LOGIN_REPLY, Some(2)), []);
        assert_eq!(fixture.read(1, ACCOUNT_CREATED, None), []);
    }

    /// A folder that the avatar 5 made: the mask, its maker, the type, the name.
    const FOLDER: &str = "c000100000000000 05000000 16000000 04000000 4100 0000";

    #[test]
    fn a_found_node_has_the_name_it_was_looked_for_by() {
        let mut fixture = Fixture::new();
        fixture.read(0, &format!("2100 07000000 18000000 {FOLDER}"), None);
        let reply = "1f00 07000000 00000000 01000000 6b000000";
        assert_eq!(fixture.read(1, reply, Some(1)), [("A".into(), 1)]);
        assert_eq!(
            fixture.read(0, "1a00 08000000 6b000000", None),
            [("A".into(), 1)],
            "a fetch of 107"
        );
        assert_eq!(
            fixture.read(0, "1a00 09000000 05000000", None),
            [],
            "its creator has another name"
        );
    }

    #[test]
    fn two_connections_number_their_downloads_independently() {
        let mut fixture = Fixture::new();
        let request =
            |name: &str| format!("18020000 15000000 02000000 {name} {} 00000000", "00".repeat(518));
        let part = "1d000000 15000000 02000000 00000000 01000000 02000000 01000000 78";
        let ack = "10000000 17000000 02000000 01000000";
        fixture.hear_on("file", 0, 0, &request("6100"), None);
        fixture.hear_on("file", 1, 0, &request("6200"), None);
        assert_eq!(fixture.hear_on("file", 0, 1, part, Some(1)), [("a".into(), 1)]);
        assert_eq!(fixture.hear_on("file", 1, 1, part, Some(2)), [("b".into(), 2)]);
        assert_eq!(fixture.hear_on("file", 0, 0, ack, None), [("a".into(), 1)]);
        assert_eq!(fixture.hear_on("file", 1, 0, ack, None), [("b".into(), 2)]);
        assert_eq!(fixture.hear_on("file", 2, 0, ack, None), []);
    }

    #[test]
    fn a_last_name_continues_a_first_name() {
        let tables = load_tables(protocol_named("secondlife").unwrap(), &[]).unwrap();
        let message = tables.message(tables.message_named("UUIDNameReply").unwrap()).unwrap();
        let ty = tables.layout(message.layout.unwrap()).unwrap().ty;
        let bytes =
            parse_hex("01 000000000000000000000000000000aa 0441646100 084578616d706c6500").unwrap();
        let mut tree = Tree::new();
        let mut names = NameInference::default();
        Evaluator::default().value(&tables, ty, Sym::ELEMENT, &bytes, 0, &mut tree);
        let seen = InferenceMessage {
            view: MessageView { tables: &tables, tree: &tree, bytes: &bytes },
            record: 1,
            answers: None,
            stream: (Transport::Tcp, 0),
        };
        names.infer_in(seen);
        let kind = tables.sym("agent").unwrap();
        let known = names.known.things.get(&(known_names::tables_id(&tables), kind, 0xaa));
        assert_eq!(known, Some(&("Ada Example".to_string(), 1)));
    }

    #[test]
    fn that_names_are_forgotten_is_said_once() {
        let mut known = KnownNames::default();
        let kind = Sym::ELEMENT;
        let mut said = 0;
        for number in 0..MAX_NAMES as u128 + 10 {
            known.keep((0, kind, number), &format!("thing {number}"), 1);
            said += usize::from(known.take_full());
        }
        assert_eq!((said, known.things.len()), (1, MAX_NAMES));
        assert_eq!(known.things.get(&(0, kind, 9)), None);
        assert_eq!(known.things.get(&(0, kind, 10)), Some(&("thing 10".into(), 1)));
    }

    #[test]
    fn names_in_requests_are_bounded() {
        let mut asked = VecDeque::new();
        for record in 0..ASKED as u64 {
            (0..9).for_each(|_| ask(&mut asked, record, Sym::ELEMENT, &record.to_string()));
        }
        assert_eq!(asked.len(), ASKED);
        assert_eq!(asked.iter().filter(|of| of.0 == 2000).count(), ASKED_AT_ONCE);
        assert!(asked.iter().all(|(record, _, name)| *name == record.to_string()));
    }
}
