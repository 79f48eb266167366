//! What a record's tree says of the records before it. Found out once, in capture order; whoever writes the tree needs no memory of
//! its own, and may write any record at any time.

use super::names::{Names, Seen};
use crate::out::{Body, Record};

/// What earlier records have to do with one.
#[derive(Default)]
pub struct Past {
    /// It is the first of its day.
    pub new_day: bool,
    /// From here on the oldest names are forgotten.
    pub forgotten: bool,
    named: Vec<Named>,
    text: String,
}

/// A node whose number has a name: where its text stands, and the record that gave it.
struct Named {
    node: u32,
    start: usize,
    end: usize,
    record: u64,
}

impl Past {
    /// Empties it, keeping what was allocated.
    pub fn clear(&mut self) {
        self.new_day = false;
        self.forgotten = false;
        self.named.clear();
        self.text.clear();
    }

    /// Notes what a node's number is called, and by which record. Nodes come in order.
    pub fn call(&mut self, node: u32, name: &str, record: u64) {
        let start = self.text.len();
        self.text.push_str(name);
        self.named.push(Named { node, start, end: self.text.len(), record });
    }

    /// What a node's number is called, and by which record.
    pub fn name(&self, node: u32) -> Option<(&str, u64)> {
        let at = self.named.binary_search_by_key(&node, |named| named.node).ok()?;
        let named = self.named.get(at)?;
        Some((self.text.get(named.start..named.end)?, named.record))
    }
}

/// The records so far.
pub struct History {
    day: i64,
    names: Names,
}

impl Default for History {
    fn default() -> Self {
        History { day: i64::MIN, names: Names::default() }
    }
}

impl History {
    /// Takes in the next record; what those before it have to do with it goes to `past`.
    pub fn next(&mut self, record: &Record<'_>, past: &mut Past) {
        past.clear();
        let day = record.at.time.seconds.div_euclid(86_400);
        past.new_day = day != self.day;
        self.day = day;
        if let Body::Message { message, tables, tree } = &record.body {
            let answers = message.reply.map(|reply| reply.record);
            self.names.infer(Seen { tables, tree, bytes: message.bytes, record: record.number, answers }, past);
        }
    }
}
