//! Records as lines of values, for `--columns` and `--csv`: one line a record, one value a column.

use std::io::Write;

use super::least_text::least_text;
use crate::captured::Escaped;
use crate::filter::{Leaf, Paths, RecordScope, RecordValue};
use crate::print::csv_cell;
use crate::print::format_time;
use crate::print::json::{self, JsonOptions, JsonWriter};
use crate::record::{Body, MessageView, Record};

/// Bytes that a cell's buffer keeps allocated for the next cell. Each thread has one.
const KEEP: usize = 1 << 20;

/// Writes records as lines of values.
#[derive(Clone)]
pub struct Columns {
    paths: Paths,
    csv: bool,
    json: JsonWriter,
    cell: Vec<u8>,
}

impl Columns {
    /// Writes the values at `paths`, as CSV or separated by tabs. The header is appended to `out`
    /// at once.
    pub fn new(paths: Paths, csv: bool, redact: bool, out: &mut Vec<u8>) -> Columns {
        let json = JsonWriter::new(JsonOptions { spans: false, redact });
        let mut columns = Columns { paths, csv, json, cell: Vec::new() };
        let names: Vec<String> =
            columns.paths.paths().iter().map(|p| p.text().to_string()).collect();
        for (i, name) in names.iter().enumerate() {
            columns.cell = name.clone().into_bytes();
            columns.end_cell(i == 0, out);
        }
        out.push(b'\n');
        columns
    }

    /// Whether [`record`](Columns::record) needs the names that earlier records give.
    pub(super) fn wants_names(&self) -> bool {
        self.paths.wants_names()
    }

    /// Appends a record. Returns false if its line would exceed `most` bytes, and then leaves an
    /// incomplete line.
    pub(super) fn record(&mut self, record: &Record<'_>, most: usize, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        for i in 0..self.paths.paths().len() {
            self.cell.clear();
            let fits = self.fill(i, record, most);
            if !fits || out.len() - start + self.cell.len() > most {
                self.cell = Vec::new();
                return false;
            }
            self.end_cell(i == 0, out);
        }
        out.push(b'\n');
        true
    }

    /// Puts the values of a column into the cell: one value as it is, several joined by commas or,
    /// in CSV, as a JSON array. Returns false if they would exceed `most` bytes, and then leaves
    /// some of them out.
    fn fill(&mut self, column: usize, record: &Record<'_>, most: usize) -> bool {
        let Columns { paths, csv, json, cell } = self;
        let Some(path) = paths.paths().get(column) else { return true };
        let scope = paths.scope(record);
        let mut values = 0;
        scope.any(path, &mut |_| {
            values += 1;
            *csv && values > 1
        });
        let array = *csv && values > 1;
        let mut first = true;
        let mut fits = true;
        cell.extend_from_slice(if array { b"[" } else { b"" });
        scope.any(path, &mut |value| {
            if !std::mem::take(&mut first) {
                cell.push(b',');
            }
            fits = cell.len() <= most && least_of(value, record, most) <= most;
            if !fits {
                return true;
            }
            Cell { scope: &scope, record, json }.write(value, array, cell);
            false
        });
        cell.extend_from_slice(if array { b"]" } else { b"" });
        fits
    }

    fn end_cell(&mut self, first: bool, out: &mut Vec<u8>) {
        if !first {
            out.push(if self.csv { b',' } else { b'\t' });
        }
        let text = String::from_utf8_lossy(&self.cell);
        if self.csv {
            csv_cell(&text, out)
        } else {
            tab_cell(&text, out)
        }
        drop(text);
        if self.cell.capacity() > KEEP {
            self.cell = Vec::new();
        }
    }
}

/// A lower bound of the bytes of a value's text, if that may exceed `most`.
fn least_of(value: RecordValue<'_>, record: &Record<'_>, most: usize) -> usize {
    match (value, &record.body) {
        (RecordValue::Node(node), Body::Message { message, tree, .. }) => {
            least_text(tree, node, message.bytes, most)
        }
        _ => 0,
    }
}

/// Appends a cell of tab-separated values: escapes tabs, line feeds, backslashes and controls.
fn tab_cell(text: &str, out: &mut Vec<u8>) {
    let mut parts = text.split('\\');
    let _ = write!(out, "{}", Escaped(parts.next().unwrap_or("")));
    for part in parts {
        let _ = write!(out, "\\\\{}", Escaped(part));
    }
}

/// The context for writing the values of a cell.
struct Cell<'s, 'a> {
    scope: &'s RecordScope<'a>,
    record: &'s Record<'a>,
    json: &'s mut JsonWriter,
}

impl<'a> Cell<'_, 'a> {
    /// Appends a value: objects, lists and floats as in JSON, all others as plain text. With
    /// `quoted`, values that JSON quotes become JSON strings.
    fn write(&mut self, value: RecordValue<'a>, quoted: bool, out: &mut Vec<u8>) {
        let text = match self.scope.leaf(value) {
            Leaf::Composite => return self.composite(value, out),
            Leaf::Float(_) if matches!(value, RecordValue::Node(_)) => {
                return self.composite(value, out);
            }
            Leaf::Int(n) | Leaf::Named(n, None) => return append(&n.to_string(), false, out),
            Leaf::Float(f) => return append(&f.to_string(), false, out),
            Leaf::Bool(b) => return append(&b.to_string(), false, out),
            Leaf::Null => return append("null", false, out),
            Leaf::Long(n) => n.to_string(),
            Leaf::Text(text) => text.into_owned(),
            Leaf::Hex(text) | Leaf::Uuid(text) => text,
            Leaf::Address(at) => at.to_string(),
            Leaf::Ipv4(n) => std::net::Ipv4Addr::from(n).to_string(),
            Leaf::Time(time) => {
                let mut text = String::new();
                format_time(time, &mut text);
                text
            }
            Leaf::Named(_, Some(name)) => name.to_string(),
            Leaf::Flags(number, bits, def) => {
                let set = def.values.iter().filter(|v| v.value != 0 && bits & v.value == v.value);
                let names: Vec<&str> = set.map(|v| &*v.name).collect();
                if names.is_empty() { number.to_string() } else { names.join("|") }
            }
        };
        append(&text, quoted, out);
    }

    fn composite(&mut self, value: RecordValue<'a>, out: &mut Vec<u8>) {
        let json = &mut *self.json;
        let scope = self.scope;
        match (value, &self.record.body) {
            (RecordValue::Node(node), Body::Message { message, tables, tree }) => {
                json.value(MessageView { tables, tree, bytes: message.bytes }, node, out)
            }
            (RecordValue::Names(node), _) => {
                out.push(b'[');
                for (i, name) in scope.flag_names(node).enumerate() {
                    out.extend_from_slice(if i > 0 { b"," } else { b"" });
                    json::string(out, name);
                }
                out.push(b']');
            }
            (RecordValue::CalledNames, Body::Message { message, tables, tree }) => {
                json.names(
                    MessageView { tables, tree, bytes: message.bytes },
                    self.record.names,
                    out,
                );
            }
            (RecordValue::CalledName(called), _) => json::called(called.name, called.record, out),
            (RecordValue::Refused(refused), Body::Message { tables, tree, message }) => {
                json.refusal(MessageView { tables, tree, bytes: message.bytes }, &refused, out);
            }
            (RecordValue::Problems, Body::Message { message, tables, tree }) => {
                json.problem_list(MessageView { tables, tree, bytes: message.bytes }, out);
            }
            (RecordValue::Problem(index), Body::Message { message, tables, tree }) => {
                json.problem(MessageView { tables, tree, bytes: message.bytes }, index, out);
            }
            (RecordValue::Links(kind), Body::Message { tree, .. }) => json.links(tree, kind, out),
            (RecordValue::Link(link), _) => json.link(&link, out),
            (RecordValue::Counts(counts), _) => json::write_counts(counts, out),
            _ => {}
        }
    }
}

fn append(text: &str, quoted: bool, out: &mut Vec<u8>) {
    if quoted { json::string(out, text) } else { out.extend_from_slice(text.as_bytes()) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    fn written(write: fn(&str, &mut Vec<u8>), text: &str) -> String {
        let mut out = Vec::new();
        write(text, &mut out);
        String::from_utf8(out).unwrap_or_default()
    }

    #[test]
    fn a_cell_between_tabs_is_one_line_without_controls() {
        assert_eq!(
            written(tab_cell, "a\tb\nc\\d\u{1b}[2J\u{9b}\u{202e}"),
            r"a\tb\nc\\d\u001b[2J\u009b\u202e"
        );
    }

    #[test]
    fn the_memory_of_a_large_cell_is_not_kept() {
        let mut out = Vec::new();
        let mut columns =
            Columns::new(Paths::compile("record", &[], false).unwrap(), true, false, &mut out);
        for (length, kept) in [(1000, true), (KEEP + 1, false), (1000, true)] {
            columns.cell = vec![b'x'; length];
            out.clear();
            columns.end_cell(true, &mut out);
            assert_eq!((out.len(), columns.cell.capacity() >= length), (length, kept));
        }
    }
}
