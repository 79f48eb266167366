//! Descriptor files that travel in the traffic itself: clients fetch them from the auth server when they start.
//!
//! This file sees the messages of one auth connection and puts a file together from its chunks. It reads trees and knows the four messages
//! by name; it knows no stream.

use super::store::{Added, Store};
use crate::table::Tables;
use crate::tree::{Kind, Node, TextKind, Tree, decode_text};

/// Files that may be under way at once.
const MAX_OPEN: usize = 32;
/// Bytes of a file at most.
const MAX_SIZE: usize = 4 << 20;

/// The downloads of one connection.
#[derive(Default)]
pub struct Downloads {
    /// What the server sent at login, to open files with.
    key: Option<[u32; 4]>,
    open: Vec<Open>,
}

/// The key stays in here.
impl std::fmt::Debug for Downloads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Downloads").field("open", &self.open.len()).finish_non_exhaustive()
    }
}

struct Open {
    transaction: u64,
    name: String,
    bytes: Vec<u8>,
}

impl Downloads {
    /// Takes a message of the auth service that is in `tree`. Where it completes a descriptor file, the store has it from then on: the
    /// file's name and what came of it.
    pub fn observe(&mut self, message: &str, tables: &Tables, tree: &Tree, captured: &[u8], store: &mut Store) -> Option<(String, Added)> {
        let fields = Fields { tables, tree, captured };
        match message {
            "Auth2Cli_AcctLoginReply" => self.login(&fields),
            "Cli2Auth_FileDownloadRequest" => self.request(&fields),
            "Auth2Cli_FileDownloadChunk" => return self.chunk(&fields, store),
            _ => {}
        }
        None
    }

    fn login(&mut self, fields: &Fields<'_>) {
        let key = fields.numbers("encryption_key");
        if let Ok(key) = <[u32; 4]>::try_from(key)
            && key != [0; 4]
        {
            self.key = Some(key);
        }
    }

    fn request(&mut self, fields: &Fields<'_>) {
        let (Some(transaction), Some(name)) = (fields.number("trans_id"), fields.text("filename")) else { return };
        let wanted = name.len() >= 4 && name.get(name.len() - 4..).is_some_and(|end| end.eq_ignore_ascii_case(".sdl"));
        self.open.retain(|open| open.transaction != transaction);
        if wanted && self.open.len() < MAX_OPEN {
            self.open.push(Open { transaction, name, bytes: Vec::new() });
        }
    }

    fn chunk(&mut self, fields: &Fields<'_>, store: &mut Store) -> Option<(String, Added)> {
        let transaction = fields.number("trans_id")?;
        let at = self.open.iter().position(|open| open.transaction == transaction)?;
        let complete = match self.open.get_mut(at) {
            Some(open) => open.take(fields),
            None => Some(false),
        };
        match complete {
            Some(false) => None,
            Some(true) => {
                let open = self.open.swap_remove(at);
                let added = store.add_file(&open.name, &open.bytes, self.key);
                Some((open.name, added))
            }
            None => {
                self.open.swap_remove(at);
                None
            }
        }
    }
}

impl Open {
    /// Adds a chunk; whether the file is complete, `None` where it cannot become so.
    fn take(&mut self, fields: &Fields<'_>) -> Option<bool> {
        let size = usize::try_from(fields.number("file_size")?).ok()?;
        let offset = usize::try_from(fields.number("chunk_offset")?).ok()?;
        let bytes = fields.bytes("chunk_data")?;
        if fields.number("result") != Some(0) || size == 0 || size > MAX_SIZE || offset != self.bytes.len() {
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
            return Some(self.tree.owned(node.value).to_owned());
        }
        let (at, len) = node.content();
        let mut text = String::new();
        decode_text(kind, self.tree.bytes(node.buffer, self.captured).get(at..at.checked_add(len)?)?, &mut text);
        Some(text)
    }
}
