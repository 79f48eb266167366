//! Names of things by their numbers, each with the record that gave it. It knows how many are
//! remembered, and not where they come from.

use super::number_filter::NumberFilter;
use super::roles::same_of;
use super::stream_places::Nameable;
use crate::facts::TransportStream;
use crate::maps::BoundedMap;
use crate::record::MessageView;
use crate::table::Tables;
use crate::tree::{Kind, Node, Sym, TypeRef};

/// How many names are remembered; beyond that the oldest are forgotten.
pub(super) const MAX_NAMES: usize = 16_384;

/// A message to learn from and to find names for.
#[derive(Clone, Copy)]
pub(super) struct InferenceMessage<'a> {
    pub(super) view: MessageView<'a>,
    /// The number of its record.
    pub(super) record: u64,
    /// The record it answers.
    pub(super) answers: Option<u64>,
    /// Its stream.
    pub(super) stream: TransportStream,
}

/// Names by identity, each with the record that gave it.
pub(super) struct KnownNames {
    pub(super) things: BoundedMap<Nameable, (String, u64)>,
    /// Of things that have two numbers, the other one, and its type.
    same: BoundedMap<Nameable, (TypeRef, u128)>,
    numbers: NumberFilter,
    /// `None` below the bound; `Some(false)` once it is reached and not yet reported; `Some(true)`
    /// after that.
    full: Option<bool>,
}

impl Default for KnownNames {
    fn default() -> Self {
        let things = BoundedMap::new(MAX_NAMES);
        let same = BoundedMap::new(MAX_NAMES);
        KnownNames { things, same, numbers: NumberFilter::default(), full: None }
    }
}

impl KnownNames {
    /// The name of a number, and the record that gave it.
    pub(super) fn of(&self, seen: InferenceMessage<'_>, node: &Node) -> Option<(&str, u64)> {
        if self.things.is_empty() || is_integer(node.kind) && !self.numbers.may_have(node.value) {
            return None;
        }
        let key = number_of(seen, node)?;
        let known = self.by_type(seen.view.tables, node.ty, key).or_else(|| {
            let tables = seen.view.tables;
            let ids = &tables.type_def(node.ty)?.ids;
            let of = |id: &Sym| self.same.get(&(tables_id(tables), *id, key));
            let (ty, number) = ids.iter().find_map(of)?;
            self.by_type(tables, *ty, *number)
        })?;
        Some((known.0.as_str(), known.1))
    }

    /// The name of a number of a type.
    fn by_type(&self, tables: &Tables, ty: TypeRef, number: u128) -> Option<&(String, u64)> {
        let ids = &tables.type_def(ty)?.ids;
        ids.iter().find_map(|id| self.things.get(&(tables_id(tables), *id, number)))
    }

    /// Remembers that a number and the one beside it, in the structure `parent`, are those of one
    /// thing.
    pub(super) fn tie(&mut self, seen: InferenceMessage<'_>, parent: u32, node: &Node) {
        let InferenceMessage { view: MessageView { tables, tree, .. }, .. } = seen;
        let Some(def) = tables.type_def(node.ty) else { return };
        let (Some(kind), Some(number)) = (same_of(def), number_of(seen, node)) else { return };
        let beside = tree.children(parent).find_map(|(_, other)| {
            let of = tables.type_def(other.ty)?;
            (!of.refers && of.ids.contains(&kind)).then_some((other.ty, number_of(seen, other)?))
        });
        let Some(beside) = beside else { return };
        for id in &def.ids {
            let thing = (tables_id(tables), *id, number);
            if let Some(known) = self.same.get_mut(&thing) {
                *known = beside;
            } else {
                self.numbers.add(number as u64);
                self.same.insert(thing, beside);
            }
        }
    }

    /// True once, for the message with which the bound was reached.
    pub(super) fn take_full(&mut self) -> bool {
        let say = self.full == Some(false);
        if say {
            self.full = Some(true);
        }
        say
    }

    /// Gives a name to the numbers of a kind in a structure. Returns whether there was one.
    pub(super) fn give(
        &mut self,
        seen: InferenceMessage<'_>,
        parent: u32,
        kind: Sym,
        name: &str,
        record: u64,
    ) -> bool {
        let mut given = false;
        for (_, number) in seen.view.tree.children(parent) {
            let Some(def) = seen.view.tables.type_def(number.ty) else { continue };
            if def.refers || !def.ids.contains(&kind) {
                continue;
            }
            if let Some(key) = number_of(seen, number) {
                self.keep((tables_id(seen.view.tables), kind, key), name, record);
                given = true;
            }
        }
        given
    }

    pub(super) fn keep(&mut self, thing: Nameable, name: &str, record: u64) {
        if let Some((known, by)) = self.things.get_mut(&thing) {
            *by = record;
            if known != name {
                known.clear();
                known.push_str(name);
            }
            return;
        }
        self.numbers.add(thing.2 as u64);
        if self.things.insert(thing, (name.to_string(), record)).is_some() {
            self.full.get_or_insert(false);
        }
    }
}

fn is_integer(kind: Kind) -> bool {
    matches!(kind, Kind::Unsigned | Kind::Signed | Kind::Unsigned64 | Kind::Signed64)
}

/// Identifies tables by address: a number identifies a thing only within its protocol.
pub(super) fn tables_id(tables: &Tables) -> usize {
    std::ptr::from_ref(tables) as usize
}

/// A number, or a UUID as a 128-bit one; `None` for 0, which identifies nothing. Above a number
/// that counts on its connection alone is that of the stream.
pub(super) fn number_of(seen: InferenceMessage<'_>, node: &Node) -> Option<u128> {
    let key = match node.kind {
        Kind::Unsigned | Kind::Signed | Kind::Unsigned64 | Kind::Signed64 if node.value != 0 => {
            let facts = seen.view.tables.type_def(node.ty).and_then(|def| def.facts.as_deref());
            let stream =
                facts.filter(|facts| facts.local).map_or(0, |_| u128::from(seen.stream.1) + 1);
            stream << 64 | u128::from(node.value)
        }
        Kind::Uuid | Kind::UuidBe => {
            let (start, _) = node.content();
            let bytes =
                seen.view.tree.bytes(node.buffer, seen.view.bytes).get(start..start + 16)?;
            u128::from_be_bytes(*bytes.first_chunk::<16>()?)
        }
        _ => return None,
    };
    (key != 0).then_some(key)
}
