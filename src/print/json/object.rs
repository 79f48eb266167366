//! Writes JSON objects member by member, for what is not a record: statistics, sessions. Texts are
//! escaped as in records.

use super::{number, string, write_counts};
use crate::capture::Time;
use crate::digits::milliseconds;
use crate::facts::Latencies;
use crate::print::clock::format_time;
use crate::session::Counts;

/// An object that is being written.
pub struct JsonObject<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
}

/// Writes an object, whose members `members` writes.
pub fn json_object(out: &mut Vec<u8>, members: impl FnOnce(&mut JsonObject<'_>)) {
    out.push(b'{');
    members(&mut JsonObject { out, first: true });
    out.push(b'}');
}

/// Writes a list; `item` writes each of its items.
pub fn json_list<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut item: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (place, each) in items.into_iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        item(out, each);
    }
    out.push(b']');
}

impl JsonObject<'_> {
    /// Adds a member whose value `value` writes.
    pub fn member(&mut self, key: &str, value: impl FnOnce(&mut Vec<u8>)) {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        string(self.out, key);
        self.out.push(b':');
        value(self.out);
    }

    /// Adds a member that is an object.
    pub fn object(&mut self, key: &str, members: impl FnOnce(&mut JsonObject<'_>)) {
        self.member(key, |out| json_object(out, members));
    }

    /// Adds a whole number.
    pub fn number(&mut self, key: &str, n: u64) {
        self.member(key, |out| number(out, n));
    }

    /// Adds a text.
    pub fn text(&mut self, key: &str, text: &str) {
        self.member(key, |out| string(out, text));
    }

    /// Adds a time as in records.
    pub fn time(&mut self, key: &str, time: Time) {
        let mut text = String::new();
        format_time(time, &mut text);
        self.text(key, &text);
    }

    /// Adds a number with at most three decimals.
    pub fn decimal(&mut self, key: &str, n: f64) {
        let rounded = (n * 1000.0).round() / 1000.0;
        self.member(key, |out| out.extend_from_slice(rounded.to_string().as_bytes()));
    }

    /// Adds nanoseconds as milliseconds with at most three decimals.
    pub fn milliseconds(&mut self, key: &str, nanos: i64) {
        self.decimal(key, milliseconds(nanos));
    }

    /// Adds an object of numbers.
    pub fn counts<K: AsRef<str>>(&mut self, key: &str, list: impl IntoIterator<Item = (K, u64)>) {
        self.object(key, |o| list.into_iter().for_each(|(name, n)| o.number(name.as_ref(), n)));
    }

    /// Adds the percentiles of times in milliseconds, where there are any.
    pub fn latencies(&mut self, key: &str, all: &Latencies) {
        let figures =
            [("p50", all.percentile(50)), ("p95", all.percentile(95)), ("max", all.max())];
        if all.count() > 0 {
            self.object(key, |o| {
                figures.iter().for_each(|(key, nanos)| o.milliseconds(key, nanos.unwrap_or(0)))
            });
        }
    }

    /// Adds what became of bytes, a member for each number.
    pub fn bytes(&mut self, bytes: Counts) {
        let mut text = Vec::new();
        write_counts(bytes, &mut text);
        let inner = text.strip_prefix(b"{").and_then(|text| text.strip_suffix(b"}")).unwrap_or(&[]);
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        self.out.extend_from_slice(inner);
    }
}
