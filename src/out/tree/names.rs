//! Names that messages gave to numbers: a player's, a node's, an age's. Shown beside the number later on, as what was inferred.

use std::collections::{HashMap, VecDeque};

use super::value::View;
use crate::tree::{Kind, Node, Sym, decode_text};

/// More names than this are not remembered; the oldest are forgotten first.
const LIMIT: usize = 16_384;
/// Characters of a name that are remembered.
const LENGTH: usize = 64;

/// A thing that may have a name: its protocol, what it is, and its number.
type Thing = (usize, Sym, u128);

/// What is known by name.
#[derive(Default)]
pub(super) struct Names {
    known: HashMap<Thing, (String, u64)>,
    order: VecDeque<Thing>,
    /// The limit was reached, and that has to be said.
    full: bool,
}

impl Names {
    /// Learns from a message: in each structure, a text that names a kind of thing belongs to the number of that kind beside it.
    pub(super) fn learn(&mut self, view: &View<'_>, record: u64) {
        for (index, node) in view.tree.nodes().iter().enumerate() {
            let Kind::Text(kind) = node.kind else { continue };
            let Some(def) = view.tables.type_def(node.ty).filter(|d| !d.names.is_empty()) else { continue };
            let (start, len) = node.content();
            let bytes = view.tree.bytes(node.buffer, view.bytes).get(start..start + len).unwrap_or(&[]);
            let mut name = String::new();
            decode_text(kind, bytes, &mut name);
            if name.is_empty() {
                continue;
            }
            for (_, number) in view.tree.children(parent(view, index)) {
                let id = view.tables.type_def(number.ty).and_then(|d| d.id);
                if let (Some(id), Some(key)) = (id.filter(|id| def.names.contains(id)), number_of(view, number)) {
                    self.keep((view.tables as *const _ as usize, id, key), name.chars().take(LENGTH).collect(), record);
                }
            }
        }
    }

    /// The name of a number, and the record that gave it.
    pub(super) fn of(&self, view: &View<'_>, node: &Node) -> Option<(&str, u64)> {
        let id = view.tables.type_def(node.ty)?.id?;
        let key = number_of(view, node)?;
        self.known.get(&(view.tables as *const _ as usize, id, key)).map(|(name, record)| (name.as_str(), *record))
    }

    /// Whether the oldest names began to be forgotten; said once.
    pub(super) fn take_full(&mut self) -> bool {
        std::mem::take(&mut self.full)
    }

    fn keep(&mut self, thing: Thing, name: String, record: u64) {
        if self.known.insert(thing, (name, record)).is_some() {
            return;
        }
        self.order.push_back(thing);
        if self.order.len() > LIMIT
            && let Some(oldest) = self.order.pop_front()
        {
            self.full = self.order.len() == LIMIT && self.known.len() == LIMIT + 1;
            self.known.remove(&oldest);
        }
    }
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
