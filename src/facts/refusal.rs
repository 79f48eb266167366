//! Whether a message refuses a request, and by which field.

use crate::captured::Captured;
use crate::record::MessageView;
use crate::table::{MessageDef, MessageId, Refusal, Tables};
use crate::tree::{Kind, Tree, mark};

/// The most characters of a text that says why.
const MAX_REASON: usize = 80;

/// A message that refuses a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused<'a> {
    /// The node of the field with the refusal; the message itself where the message always refuses.
    pub node: u32,
    /// The field's number, where it is one; a signed one with its sign extended to 64 bits.
    pub value: Option<u64>,
    /// What kind of value the field has; [`Kind::Struct`] where the message always refuses.
    pub kind: Kind,
    /// The name that an enum gives it.
    pub name: Option<&'a str>,
}

impl Refused<'_> {
    /// Whether a field refuses, and not the message itself.
    pub fn is_by_field(&self) -> bool {
        self.value.is_some() || matches!(self.kind, Kind::Text(_))
    }

    /// Why, in one word: the field's text, the name of its number, or the number (`false` of a
    /// boolean). The name `message` where the message always refuses or the text is secret.
    pub fn reason(&self, message: &str, values: &MessageView<'_>) -> String {
        let text = values.tree.get(self.node).filter(|node| !node.has(mark::SECRET));
        if let Some(text) = text.and_then(|node| values.text(node, MAX_REASON)) {
            return text;
        }
        match (self.name, self.value) {
            (Some(name), _) => name.to_string(),
            (None, Some(value)) => match self.kind {
                Kind::Bool => (value != 0).to_string(),
                Kind::Signed | Kind::Signed64 => (value as i64).to_string(),
                _ => value.to_string(),
            },
            (None, None) => message.to_string(),
        }
    }
}

/// The table's definition of a message; `None` where there is none. In most cases the tree has the
/// definition's number; otherwise the name is looked up.
pub fn definition<'a>(
    name: Captured<'_>,
    tables: &'a Tables,
    tree: &Tree,
) -> Option<&'a MessageDef> {
    known_message(name, tables, tree).map(|(_, def)| def)
}

/// The same with the message's number among the tables' messages.
pub(super) fn known_message<'a>(
    name: Captured<'_>,
    tables: &'a Tables,
    tree: &Tree,
) -> Option<(MessageId, &'a MessageDef)> {
    let by_tree = tree.get(0).and_then(|root| tables.message_called(root.name));
    let id = by_tree.or_else(|| tables.message_named(name.raw()))?;
    Some((id, tables.message(id)?))
}

/// Says whether a message of these tables refuses. A field that refuses may stand at any depth; the
/// first one counts.
pub fn refused<'a>(def: &MessageDef, values: &MessageView<'a>) -> Option<Refused<'a>> {
    match def.refusal {
        Refusal::Never => None,
        Refusal::Always => Some(first_refusing(values).unwrap_or(Refused {
            node: 0,
            value: None,
            kind: Kind::Struct,
            name: None,
        })),
        Refusal::ByField => first_refusing(values),
    }
}

fn first_refusing<'a>(values: &MessageView<'a>) -> Option<Refused<'a>> {
    let tables = values.tables;
    (0..).zip(values.tree.nodes()).find_map(|(index, node)| {
        let facts = tables.type_def(node.ty)?.facts.as_ref().filter(|facts| facts.may_refuse())?;
        if let Kind::Text(_) = node.kind {
            let text = values.text(node, MAX_REASON).unwrap_or_default();
            return (!facts.refuses_unless_texts.contains(&text)).then_some(Refused {
                node: index,
                value: None,
                kind: node.kind,
                name: None,
            });
        }
        let number = values.number(node)?;
        let name = values.symbol_of(node, number);
        (!facts.refuses_unless.contains(&number)).then_some(Refused {
            node: index,
            value: Some(number),
            kind: node.kind,
            name,
        })
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_reason_is_the_name_or_the_number_as_records_have_it() {
        let tables = Tables::load("test", Vec::new(), &[]).unwrap();
        let values = MessageView { tables: &tables, tree: &Tree::new(), bytes: &[] };
        let reason = |kind, value, name| {
            Refused { node: 1, value, kind, name }.reason("JoinGroupReply", &values)
        };
        assert_eq!(reason(Kind::Bool, Some(0), None), "false");
        assert_eq!(reason(Kind::Signed, Some(u64::MAX), None), "-1");
        assert_eq!(reason(Kind::Unsigned, Some(5), None), "5");
        assert_eq!(reason(Kind::Unsigned, Some(5), Some("kNetErr")), "kNetErr");
        assert_eq!(reason(Kind::Struct, None, None), "JoinGroupReply");
    }
}
