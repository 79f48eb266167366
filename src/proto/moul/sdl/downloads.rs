//! Descriptor files in the traffic itself: clients fetch them from the auth server when they start.
//!
//! This file sees the messages of one auth connection and puts a file together from its chunks. It
//! reads trees and knows the messages by name; it knows no stream. An encoder hands it what it
//! wrote.

use super::store::{Added, Store};
use crate::proto::EncodedMessage;
use crate::table::{Encoder, Evaluator, Tables};
use crate::tree::{Kind, Node, TextKind, Tree, decode_text};

/// The most files in transfer at once.
const MAX_OPEN: usize = 32;
/// The most bytes of one file.
const MAX_SIZE: usize = 4 << 20;

/// The downloads of one connection.
#[derive(Default)]
pub struct Downloads {
    /// The key that the server sent at login, to open files with.
    key: Option<[u32; 4]>,
    open: Vec<OpenDownload>,
}

/// The key stays in here.
impl std::fmt::Debug for Downloads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Downloads").field("open", &self.open.len()).finish_non_exhaustive()
    }
}

struct OpenDownload {
    transaction: u64,
    name: String,
    bytes: Vec<u8>,
}

impl Downloads {
    /// Memory that unfinished files take, in bytes.
    pub fn held(&self) -> usize {
        self.open.iter().map(|open| open.bytes.capacity() + open.name.len()).sum()
    }

    /// Takes the message of the auth service in `tree`. If it completes a descriptor file, or
    /// brings the key for waiting files, adds these files to the evaluator's [store](Store::of).
    /// Returns the name of each file and the result.
    pub fn observe(
        &mut self,
        message: &str,
        tables: &Tables,
        tree: &Tree,
        captured: &[u8],
        evaluator: &mut Evaluator,
    ) -> Vec<(String, Added)> {
        let fields = Fields { tables, tree, captured };
        match message {
            "Auth2Cli_AcctLoginReply" => return self.observe_login(&fields, evaluator),
            "Cli2Auth_FileDownloadRequest" => self.observe_request(&fields),
            "Auth2Cli_FileDownloadChunk" => {
                return self.observe_chunk(&fields, evaluator).into_iter().collect();
            }
            _ => {}
        }
        Vec::new()
    }

    fn observe_login(
        &mut self,
        fields: &Fields<'_>,
        evaluator: &mut Evaluator,
    ) -> Vec<(String, Added)> {
        match <[u32; 4]>::try_from(fields.numbers("encryption_key")) {
            Ok(key) if key != [0; 4] => {
                self.key = Some(key);
                Store::of(evaluator).map_or(Vec::new(), |store| store.open_with(key))
            }
            _ => Vec::new(),
        }
    }

    fn observe_request(&mut self, fields: &Fields<'_>) {
        let (Some(transaction), Some(name)) = (fields.number("trans_id"), fields.text("filename"))
        else {
            return;
        };
        let wanted = name.len() >= 4
            && name.get(name.len() - 4..).is_some_and(|end| end.eq_ignore_ascii_case(".sdl"));
        self.open.retain(|open| open.transaction != transaction);
        if wanted && self.open.len() < MAX_OPEN {
            self.open.push(OpenDownload { transaction, name, bytes: Vec::new() });
        }
    }

    fn observe_chunk(
        &mut self,
        fields: &Fields<'_>,
        evaluator: &mut Evaluator,
    ) -> Option<(String, Added)> {
        let transaction = fields.number("trans_id")?;
        let at = self.open.iter().position(|open| open.transaction == transaction)?;
        let complete = match self.open.get_mut(at) {
            Some(open) => open.add_chunk(fields),
            None => Some(false),
        };
        match complete {
            Some(false) => None,
            Some(true) => {
                let open = self.open.swap_remove(at);
                let added = Store::of(evaluator)?.add_file(&open.name, &open.bytes, self.key);
                Some((open.name, added))
            }
            None => {
                self.open.swap_remove(at);
                None
            }
        }
    }
}

/// The messages that say something of downloads, and who sends them (0: client, 1: server).
const MESSAGES: [(&str, usize); 3] = [
    ("Auth2Cli_AcctLoginReply", 1),
    ("Cli2Auth_FileDownloadRequest", 0),
    ("Auth2Cli_FileDownloadChunk", 1),
];

/// The most connections whose downloads an encoder keeps.
const MAX_CONNECTIONS: usize = 64;

/// The downloads of the connections whose messages are written, by the connection's number.
type Written = Vec<(String, Downloads)>;

/// Sees a message that was written. If it completes a descriptor file, states of later messages can
/// be written by it.
pub fn learn(tables: &Tables, encoder: &mut Encoder, message: &EncodedMessage, stream: &str) {
    let of = MESSAGES.iter().find(|(name, _)| *name == message.name);
    let Some(((_, sender), service)) = of.zip(tables.service_named("auth")) else { return };
    let mut evaluator = Evaluator::default();
    evaluator.context = encoder.context.take();
    let mut tree = Tree::new();
    evaluator.message(tables, service, *sender, &message.bytes, &mut tree);
    let all = encoder.connections.get_or_insert_with(|| Box::new(Written::new()));
    if let Some(all) = all.downcast_mut::<Written>() {
        let at = all.iter().position(|(of, _)| of == stream).unwrap_or_else(|| {
            if all.len() == MAX_CONNECTIONS {
                all.remove(0);
            }
            all.push((stream.to_string(), Downloads::default()));
            all.len() - 1
        });
        if let Some((_, downloads)) = all.get_mut(at) {
            downloads.observe(&message.name, tables, &tree, &message.bytes, &mut evaluator);
        }
    }
    encoder.context = evaluator.context;
}

impl OpenDownload {
    /// Adds a chunk. Returns whether the file is complete, `None` if it can never be.
    fn add_chunk(&mut self, fields: &Fields<'_>) -> Option<bool> {
        let size = usize::try_from(fields.number("file_size")?).ok()?;
        let offset = usize::try_from(fields.number("chunk_offset")?).ok()?;
        let bytes = fields.bytes("chunk_data")?;
        if fields.number("result") != Some(0)
            || size == 0
            || size > MAX_SIZE
            || offset != self.bytes.len()
        {
            return None;
        }
        let room = size.checked_sub(offset)?;
        self.bytes.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        Some(self.bytes.len() == size)
    }
}

/// The fields of the message in a tree, by name.
struct Fields<'a> {
    tables: &'a Tables,
    tree: &'a Tree,
    captured: &'a [u8],
}

impl<'a> Fields<'a> {
    fn node(&self, name: &str) -> Option<(u32, &'a Node)> {
        self.tree.children(0).find(|(_, node)| self.tables.name(node.name) == name)
    }

    fn number(&self, name: &str) -> Option<u64> {
        let (_, node) = self.node(name)?;
        matches!(node.kind, Kind::Unsigned | Kind::Signed).then_some(node.value)
    }

    fn numbers(&self, name: &str) -> Vec<u32> {
        let Some((index, _)) = self.node(name) else { return Vec::new() };
        let numbers = self.tree.children(index).filter(|(_, node)| node.kind == Kind::Unsigned);
        numbers.map(|(_, node)| node.value as u32).collect()
    }

    fn bytes(&self, name: &str) -> Option<&'a [u8]> {
        let (_, node) = self.node(name)?;
        let (at, len) = node.content();
        let whole = self.tree.bytes(node.buffer, self.captured);
        match node.kind {
            Kind::Bytes => whole.get(at..at.checked_add(len)?),
            _ => None,
        }
    }

    fn text(&self, name: &str) -> Option<String> {
        let (_, node) = self.node(name)?;
        let Kind::Text(kind) = node.kind else { return None };
        if kind == TextKind::Owned {
            return Some(self.tree.owned(node.value).raw().to_owned());
        }
        let (at, len) = node.content();
        let mut text = String::new();
        decode_text(
            kind,
            self.tree.bytes(node.buffer, self.captured).get(at..at.checked_add(len)?)?,
            &mut text,
        );
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use crate::proto::{load_tables, protocol_named};
    use crate::table::Outcome;

    struct Fixture {
        tables: Tables,
        downloads: Downloads,
        /// Has the store.
        evaluator: Evaluator,
    }

    impl Fixture {
        fn new() -> Self {
            let tables = load_tables(protocol_named("moul").unwrap(), &[]).unwrap();
            Fixture { tables, downloads: Downloads::default(), evaluator: Evaluator::default() }
        }

        fn store(&mut self) -> &mut Store {
            Store::of(&mut self.evaluator).unwrap()
        }

        /// Shows it a message: sender (0 client, 1 server), number and content.
        fn see(&mut self, sender: usize, number: u16, body: &[u8]) -> Option<(String, Added)> {
            let bytes = [&number.to_le_bytes()[..], body].concat();
            let mut tree = Tree::new();
            let service = self.tables.service_named("auth").unwrap();
            let outcome =
                Evaluator::default().message(&self.tables, service, sender, &bytes, &mut tree);
            let Outcome::Message(id, _) = outcome else { panic!("{outcome:?}") };
            let name = self.tables.name(self.tables.message(id).unwrap().name);
            self.downloads.observe(name, &self.tables, &tree, &bytes, &mut self.evaluator).pop()
        }

        fn observe_request(&mut self, transaction: u32, name: &str) {
            let units: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let count = name.len() as u16;
            let body = [&transaction.to_le_bytes()[..], &count.to_le_bytes(), &units].concat();
            assert_eq!(self.see(0, 38, &body), None);
        }

        fn observe_chunk(
            &mut self,
            transaction: u32,
            size: usize,
            offset: usize,
            data: &[u8],
        ) -> Option<(String, Added)> {
            let numbers = [transaction, 0, size as u32, offset as u32, data.len() as u32];
            let body =
                [numbers.iter().flat_map(|n| n.to_le_bytes()).collect(), data.to_vec()].concat();
            self.see(1, 37, &body)
        }
    }

    const FILE: &[u8] = b"STATEDESC a { VERSION 1 }";

    #[test]
    fn a_file_is_known_once_its_last_chunk_has_come() {
        let mut fixture = Fixture::new();
        fixture.observe_request(7, "SDL\\a.sdl");
        fixture.observe_request(8, "Python\\python.pak");
        assert_eq!(fixture.observe_chunk(8, 4, 0, b"data"), None);
        assert_eq!(fixture.observe_chunk(7, FILE.len(), 0, &FILE[..10]), None);
        let (name, added) = fixture.observe_chunk(7, FILE.len(), 10, &FILE[10..]).unwrap();
        assert_eq!((name.as_str(), added.descriptors), ("SDL\\a.sdl", 1));
        assert!(fixture.store().find("a", 1).is_some());
    }

    #[test]
    fn a_file_with_a_part_missing_is_given_up() {
        let mut fixture = Fixture::new();
        fixture.observe_request(7, "SDL\\a.sdl");
        assert_eq!(fixture.observe_chunk(7, FILE.len(), 5, &FILE[5..]), None);
        assert_eq!(fixture.observe_chunk(7, FILE.len(), 0, FILE), None);
        assert!(fixture.store().is_empty());
    }

    #[test]
    fn the_key_of_the_login_opens_the_file_and_is_never_shown() {
        let mut fixture = Fixture::new();
        let key = [0x3141_5926u32, 0x5358_9793, 0x2384_6264, 0x3383_2795];
        let login =
            [&[1, 0, 0, 0, 0, 0, 0, 0][..], &[0; 24], &key.map(u32::to_le_bytes).concat()].concat();
        assert_eq!(fixture.see(1, 4, &login), None);
        assert_eq!(fixture.downloads.key, Some(key));
        assert!(!format!("{:?}", fixture.downloads).contains("826366246"));
    }
}
