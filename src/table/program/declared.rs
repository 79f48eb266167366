//! What has a name of its own: enums, families, services, messages.

use std::collections::HashMap;

use super::super::text::{Expectation, HeaderRole, Sender, ServiceFrame};
use super::TableText;
use super::facts::Refusal;
use super::ids::{LayoutId, MessageId, ServiceId};
use super::numbers::Numbers;
use crate::tree::{Sym, TypeRef};

/// An enum or a flag set.
#[derive(Debug, Clone)]
pub struct EnumDef {
    /// Its name.
    pub name: TableText,
    /// Whether its values are bits.
    pub flags: bool,
    /// Its explanation.
    pub doc: TableText,
    /// Its values, sorted by number.
    pub values: Vec<EnumValue>,
    /// The index of each value by number.
    pub numbers: Numbers,
    /// The integer it is usually read from.
    pub base: TypeRef,
}

/// A named number.
#[derive(Debug, Clone)]
pub struct EnumValue {
    /// The number.
    pub value: u64,
    /// Its name.
    pub name: TableText,
    /// A text for people.
    pub text: TableText,
}

impl EnumDef {
    /// The value with a number.
    pub fn get(&self, value: u64) -> Option<&EnumValue> {
        self.values.get(self.numbers.find(value)?)
    }
}

/// Objects that begin with the number of their class.
#[derive(Debug, Clone)]
pub struct Family {
    /// Its name.
    pub name: TableText,
    /// The name of the field that holds the class number.
    pub field: Sym,
    /// The type of that field.
    pub of: TypeRef,
    /// The number that means "no object".
    pub null: Option<u64>,
    /// Class numbers and layouts, sorted.
    pub members: Vec<(u64, LayoutId)>,
    /// Where each class is.
    pub numbers: Numbers,
}

/// A service: how its messages begin.
#[derive(Debug, Clone)]
pub struct Service {
    /// Its name as in the JSON.
    pub name: TableText,
    /// The protocol's number for it.
    pub number: Option<u64>,
    /// The ports of the servers whose messages these are. Empty if the protocol's code finds the
    /// service.
    pub ports: Vec<u16>,
    /// Whether its messages are self-describing arrays, which the protocol's own code finds and
    /// reads.
    pub positional: bool,
    /// Whether a message may end before any of its fields.
    pub optional: bool,
    /// The header's fields.
    pub header: Vec<(HeaderRole, Sym, TypeRef)>,
    /// Messages by number and sender: `[client, server]`, sorted by number.
    pub messages: [Vec<(u64, MessageId)>; 2],
    /// The framing of the messages, if the tables declare it.
    pub framing: ServiceFraming,
    /// The messages for all numbers without a message of their own, by sender.
    pub others: [Option<MessageId>; 2],
    /// If a text selects: the messages by that text and sender, in lower case if case does not
    /// matter.
    pub words: [HashMap<Vec<u8>, MessageId>; 2],
}

/// The framing of a service's messages, as the tables declare it.
#[derive(Debug, Clone, Default)]
pub struct ServiceFraming {
    /// The layout of every message's beginning, which tells the message.
    pub begins: Option<LayoutId>,
    /// The field whose text selects the message, and whether to ignore case.
    pub word: Option<(Sym, bool)>,
    /// Where a message ends.
    pub frame: ServiceFrame,
    /// The longest message in bytes. 0 if the tables do not say.
    pub max: u64,
    /// The bytes at the start of every message, to find the next one behind damage.
    pub resync: Option<Vec<u8>>,
}

/// A message.
#[derive(Debug, Clone)]
pub struct MessageDef {
    /// Its name.
    pub name: Sym,
    /// Its service.
    pub service: ServiceId,
    /// The side that sends it.
    pub direction: Sender,
    /// Its number, where it has one.
    pub number: Option<u64>,
    /// The text that selects it, where one does.
    pub word: Option<TableText>,
    /// Its layout, where it is known.
    pub layout: Option<LayoutId>,
    /// Whether it has a transaction, which links it to other messages.
    pub tied: bool,
    /// Whether it has a value that a reply repeats (`echoed`).
    pub echoes: bool,
    /// The fields that say what it brings of a reply in several messages (`share part`), and what
    /// all bring together (`share whole`).
    pub shares: Option<(Sym, Sym)>,
    /// The requests it answers.
    pub answers: Vec<MessageId>,
    /// The reply that its sender expects, as the table states it.
    pub expects: Option<Expectation>,
    /// Whether the protocol promises a reply: the table says so, or another message answers it.
    pub expects_reply: bool,
    /// How it refuses.
    pub refusal: Refusal,
    /// Whether it is a step in a session's story.
    pub step: bool,
    /// The side that sends it in practice, of a message that either side may send (`usually
    /// client`).
    pub usually: Option<Sender>,
    /// Its explanation.
    pub doc: TableText,
}
