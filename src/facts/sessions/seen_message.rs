//! A message of a stream as sessions look at it: the fields that tables mark, and what they
//! identify.

use super::super::definition;
use super::values::IdentityValue;
use crate::digits::is_uuid;
use crate::record::{MessageView, Record};
use crate::session::{Message, Side};
use crate::table::{FieldFacts, Sender, Tables, TypeDef};
use crate::tree::{Kind, Node, Tree, mark};

/// Characters of a name.
const MAX_NAME: usize = 64;

/// A message with all that is needed to read it.
#[derive(Clone, Copy)]
pub(super) struct SeenMessage<'a> {
    pub(super) record: &'a Record<'a>,
    pub(super) message: &'a Message<'a>,
    pub(super) tables: &'a Tables,
    pub(super) tree: &'a Tree,
}

impl<'a> SeenMessage<'a> {
    /// The nodes whose facts are as asked for.
    pub(super) fn marked(
        &self,
        which: impl Fn(&FieldFacts) -> bool,
    ) -> impl Iterator<Item = (u32, &'a Node, &'a TypeDef, &'a FieldFacts)> {
        let tables = self.tables;
        let tree = self.tree;
        let values = MessageView { tables, tree, bytes: self.message.bytes };
        let nodes = if values.may_have(&which) { tree.nodes() } else { &[] };
        (0..).zip(nodes).filter_map(move |(index, node)| {
            let def = tables.type_def(node.ty)?;
            let facts = def.facts.as_deref().filter(|facts| which(facts))?;
            Some((index, node, def, facts))
        })
    }

    /// Whether what it says of a client is about the client of its connection.
    pub(super) fn may_identify(&self) -> bool {
        self.record.from == Side::Client
            || definition(self.message.name, self.tables, self.tree)
                .is_none_or(|def| def.direction != Sender::Both)
    }

    /// The secret that the client's session is known by, if the message states it.
    pub(super) fn session(&self) -> Option<String> {
        if !self.may_identify() {
            return None;
        }
        let values =
            MessageView { tables: self.tables, tree: self.tree, bytes: self.message.bytes };
        let mut secrets =
            self.marked(|facts| facts.own).filter(|(_, node, ..)| node.has(mark::SECRET));
        secrets.find_map(|(_, node, ..)| {
            let text = values.word(node, MAX_NAME)?.to_ascii_lowercase();
            text.bytes().any(|byte| byte.is_ascii_alphanumeric() && byte != b'0').then_some(text)
        })
    }

    /// A node as a number that identifies something, with what it is called; or as a name.
    pub(super) fn id_and_name(
        &self,
        index: u32,
        node: &Node,
    ) -> (Option<IdentityValue>, Option<String>) {
        let called = || self.record.names.name_of(index).map(|(name, _)| name.to_string());
        let values =
            MessageView { tables: self.tables, tree: self.tree, bytes: self.message.bytes };
        match node.kind {
            Kind::Unsigned | Kind::Signed | Kind::Unsigned64 | Kind::Signed64
                if node.value != 0 =>
            {
                (Some(IdentityValue::Number(node.value)), called())
            }
            Kind::Uuid | Kind::UuidBe => match values.word(node, MAX_NAME) {
                Some(text) => (Some(IdentityValue::Text(text)), called()),
                None => (None, None),
            },
            Kind::Text(_) => match values.text(node, MAX_NAME) {
                // A UUID is the same one however it is written.
                Some(text) if is_uuid(text.as_bytes()) => {
                    (Some(IdentityValue::Text(text.to_ascii_lowercase())), called())
                }
                text => (None, text),
            },
            _ => (None, None),
        }
    }
}
