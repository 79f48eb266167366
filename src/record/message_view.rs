//! One message with what its values are read with: every output and every collector is handed this.
//! It knows trees and tables, but no message by name.

use std::borrow::Cow;

use crate::digits::uuid_text;
use crate::table::{FieldFacts, MessageDef, Tables};
use crate::tree::{Kind, LinkKind, Node, TextKind, Tree, decode_text};

/// A message as it was read.
#[derive(Clone, Copy)]
pub struct MessageView<'a> {
    /// The tables that read it.
    pub tables: &'a Tables,
    /// Its fields.
    pub tree: &'a Tree,
    /// Its captured bytes.
    pub bytes: &'a [u8],
}

impl<'a> MessageView<'a> {
    /// What the tables declare of a message with a name.
    pub fn definition(&self, message: &str) -> Option<&'a MessageDef> {
        self.tables.message_named(message).and_then(|id| self.tables.message(id))
    }

    /// Whether some field may have the wanted facts. `false` is certain, and known without looking
    /// at all nodes.
    pub fn may_have(&self, wanted: impl Fn(&FieldFacts) -> bool) -> bool {
        let facts =
            |node: &Node| self.tables.type_def(node.ty).and_then(|def| def.facts.as_deref());
        self.tree
            .telling()
            .is_none_or(|mut fields| fields.any(|(_, node)| facts(node).is_some_and(&wanted)))
    }

    /// Whether the sender sent this message again because it took the first one for lost.
    pub fn is_sent_again(&self) -> bool {
        self.tree.links().iter().any(|link| link.kind == LinkKind::SentAgain && link.node == 0)
    }

    /// A node that is a number, with the sign extended to 64 bits.
    pub fn number(&self, node: &Node) -> Option<u64> {
        let number = matches!(
            node.kind,
            Kind::Unsigned | Kind::Signed | Kind::Unsigned64 | Kind::Signed64 | Kind::Bool
        );
        number.then_some(node.value)
    }

    /// The name that an enum gives to a node's number.
    pub fn symbol(&self, node: &Node) -> Option<&'a str> {
        self.symbol_of(node, self.number(node)?)
    }

    /// The text in a node, cut to `most` characters; `None` where it is empty or the node is no
    /// text.
    pub fn text(&self, node: &Node, most: usize) -> Option<String> {
        let Kind::Text(kind) = node.kind else { return None };
        let mut text = String::new();
        if kind == TextKind::Owned {
            text.push_str(self.tree.owned(node.value).raw());
        } else {
            let (start, length) = node.content();
            // No encoding takes more than four bytes a character.
            let end = start.saturating_add(length.min(most.saturating_mul(4)));
            decode_text(
                kind,
                self.tree.bytes(node.buffer, self.bytes).get(start..end).unwrap_or_default(),
                &mut text,
            );
        }
        if let Some((end, _)) = text.char_indices().nth(most) {
            text.truncate(end);
        }
        (!text.is_empty()).then_some(text)
    }

    /// A node's value in one word: a text, a UUID, the name or the digits of a number. `None` for
    /// empty values: an empty text, a UUID of zeros, a structure.
    pub fn word(&self, node: &Node, most: usize) -> Option<String> {
        match node.kind {
            Kind::Text(_) => self.text(node, most),
            Kind::Uuid | Kind::UuidBe => {
                let (start, _) = node.content();
                let all = self.tree.bytes(node.buffer, self.bytes);
                let bytes = all
                    .get(start..start.saturating_add(16))
                    .filter(|all| all.iter().any(|byte| *byte != 0))?;
                Some(uuid_text(bytes, node.kind == Kind::Uuid))
            }
            Kind::Signed | Kind::Signed64 => Some(
                self.symbol(node).map_or_else(|| (node.value as i64).to_string(), str::to_string),
            ),
            Kind::Unsigned | Kind::Unsigned64 => {
                Some(self.symbol(node).map_or_else(|| node.value.to_string(), str::to_string))
            }
            _ => None,
        }
    }

    /// The bytes of a node that holds bytes; of a text its UTF-8.
    pub fn content(&self, node: &Node) -> Option<Cow<'a, [u8]>> {
        match node.kind {
            Kind::Bytes | Kind::Undecoded => Some(self.tree.content(node, self.bytes)),
            Kind::Text(TextKind::Owned) => {
                Some(Cow::Borrowed(self.tree.owned(node.value).raw().as_bytes()))
            }
            Kind::Text(_) => {
                self.text(node, usize::MAX / 4).map(|text| Cow::Owned(text.into_bytes()))
            }
            _ => None,
        }
    }

    /// The name that an enum gives to a number of a node's type. Its sign is extended to 64 bits.
    pub fn symbol_of(&self, node: &Node, number: u64) -> Option<&'a str> {
        let symbols = self.tables.symbols(node.ty).filter(|symbols| !symbols.flags)?;
        // Tables may have a negative number as its bits.
        let raw = Node { value: number, ..*node }.unsigned();
        symbols.get(raw).or_else(|| symbols.get(number)).map(|value| &*value.name)
    }
}
