//! A message of a stream as sessions look at it: the fields that tables mark, and what they
//! identify.

use super::values::IdentityValue;
use crate::record::{MessageView, Record};
use crate::session::Message;
use crate::table::{FieldFacts, Tables, TypeDef};
use crate::tree::{Kind, Node, Tree};

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
            Kind::Text(_) => (None, values.text(node, MAX_NAME)),
            _ => (None, None),
        }
    }
}
