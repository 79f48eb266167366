//! Remembers the values of things that tables mark with `change`, for each connection, so that a
//! line can say what a value was before. It knows no protocol, and decides nothing about names.

use super::known_names::InferenceMessage;
use super::parent;
use crate::facts::info::{InfoSource, write_value};
use crate::maps::BoundedMap;
use crate::record::NameStore;
use crate::table::ChangeRole;
use crate::tree::{Kind, mark};

/// How many values are remembered; beyond that the oldest are forgotten.
const MAX_VALUES: usize = 8192;
/// Values of one message that are remembered.
const MAX_IN_MESSAGE: usize = 512;
/// Bytes of what tells which value it is; a value with more is not remembered.
const MAX_KEY: usize = 256;
/// Bytes of a value's text; a longer one is not remembered.
const MAX_TEXT: usize = 128;

/// The latest values of all things, each with the record that brought it.
pub(super) struct KnownValues {
    /// By stream, thing and name.
    values: BoundedMap<Box<[u8]>, (String, u64)>,
    key: Vec<u8>,
    text: String,
}

impl Default for KnownValues {
    fn default() -> Self {
        KnownValues { values: BoundedMap::new(MAX_VALUES), key: Vec::new(), text: String::new() }
    }
}

impl KnownValues {
    /// Learns the values of a message. `marked` are the nodes that tables mark with `change`. Adds
    /// to `store` what those were before that are others now.
    pub(super) fn learn(
        &mut self,
        seen: InferenceMessage<'_>,
        marked: &[(u32, ChangeRole)],
        store: &mut NameStore,
    ) {
        for (values, _) in marked.iter().filter(|(_, role)| *role == ChangeRole::Values) {
            if self.begin_key(seen, *values, marked).is_some() {
                self.learn_values(seen, *values, store);
            }
        }
    }

    /// Makes the part of the key that tells which thing the values at a node belong to: the keys
    /// before it in the structures around it. `None` if there is none, or if it is too long.
    fn begin_key(
        &mut self,
        seen: InferenceMessage<'_>,
        values: u32,
        marked: &[(u32, ChangeRole)],
    ) -> Option<()> {
        let tree = seen.view.tree;
        let (transport, stream) = seen.stream;
        self.key.clear();
        self.key.push(transport as u8);
        self.key.extend_from_slice(&stream.to_le_bytes());
        let begin = self.key.len();
        for (index, role) in marked {
            let node = tree.get(*index)?;
            let around = tree.get(parent(tree, *index))?;
            if *role != ChangeRole::Key || *index > values || around.end <= values {
                continue;
            }
            let (start, bits) = (node.start as usize, node.bits as usize);
            let bytes = tree.bytes(node.buffer, seen.view.bytes);
            let bytes = bytes.get(start / 8..(start + bits).div_ceil(8))?;
            self.key.extend_from_slice(&node.bits.to_le_bytes());
            self.key.extend_from_slice(bytes);
            if self.key.len() > MAX_KEY {
                return None;
            }
        }
        (self.key.len() > begin).then_some(())
    }

    fn learn_values(&mut self, seen: InferenceMessage<'_>, values: u32, store: &mut NameStore) {
        let tree = seen.view.tree;
        let thing = self.key.len();
        let source = InfoSource { view: seen.view, layout: None, redact: true };
        for (entry, node) in tree.members(values).take(MAX_IN_MESSAGE) {
            let Some(name) = tree.dynamic(node.name) else { continue };
            self.key.truncate(thing);
            self.key.extend_from_slice(name.raw().as_bytes());
            // An entry with several fields ends with its value.
            let last = match node.kind {
                Kind::Struct => tree.members(entry).last(),
                _ => Some((entry, node)),
            };
            let Some((at, value)) = last.filter(|(_, node)| !node.has(mark::SECRET)) else {
                continue;
            };
            self.text.clear();
            if value.kind != Kind::Null {
                write_value(source, at, &mut self.text);
            }
            if self.key.len() > MAX_KEY || self.text.len() > MAX_TEXT {
                continue;
            }
            match self.values.get_mut(self.key.as_slice()) {
                Some((known, record)) => {
                    if *known != self.text {
                        if !known.is_empty() && !self.text.is_empty() {
                            store.add_change(at, known, *record);
                        }
                        known.clear();
                        known.push_str(&self.text);
                    }
                    *record = seen.record;
                }
                None => {
                    let value = (self.text.clone(), seen.record);
                    self.values.insert(self.key.as_slice().into(), value);
                }
            }
        }
    }
}
