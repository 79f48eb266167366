//! Records as lines of values, for `--columns` and `--csv`: one line a record, one value a column.

use crate::filter::{Leaf, Paths, RecordScope, RecordValue};
use crate::out::json::{self, JsonOptions, JsonWriter};
use crate::out::{Body, Record, format_time};

/// Writes records as lines of values.
#[derive(Clone)]
pub struct Columns {
    paths: Paths,
    csv: bool,
    json: JsonWriter,
    cell: Vec<u8>,
}

impl Columns {
    /// Writes the values at `paths`, as CSV or separated by tabs. The header is appended to `out` at once.
    pub fn new(paths: Paths, csv: bool, redact: bool, out: &mut Vec<u8>) -> Columns {
        let json = JsonWriter::new(JsonOptions { spans: false, redact });
        let mut columns = Columns { paths, csv, json, cell: Vec::new() };
        let names: Vec<String> = columns.paths.paths().iter().map(|p| p.text().to_string()).collect();
        for (i, name) in names.iter().enumerate() {
            columns.cell = name.clone().into_bytes();
            columns.end_cell(i == 0, out);
        }
        out.push(b'\n');
        columns
    }

    /// Appends a record.
    pub(super) fn record(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        for i in 0..self.paths.paths().len() {
            self.cell.clear();
            let (cell, json) = (&mut self.cell, &mut self.json);
            let scope = self.paths.scope(record);
            if let Some(path) = self.paths.paths().get(i) {
                let mut first = true;
                scope.any(path, &mut |value| {
                    if !std::mem::take(&mut first) {
                        cell.push(b',');
                    }
                    write(&scope, value, record, json, cell);
                    false
                });
            }
            self.end_cell(i == 0, out);
        }
        out.push(b'\n');
    }

    fn end_cell(&mut self, first: bool, out: &mut Vec<u8>) {
        if !first {
            out.push(if self.csv { b',' } else { b'\t' });
        }
        let special = |b: &u8| matches!(b, b',' | b'"' | b'\n' | b'\r');
        if self.csv && self.cell.iter().any(special) {
            out.push(b'"');
            for b in &self.cell {
                out.extend_from_slice(if *b == b'"' { b"\"\"" } else { std::slice::from_ref(b) });
            }
            out.push(b'"');
        } else if self.csv {
            out.extend_from_slice(&self.cell);
        } else {
            for b in &self.cell {
                out.extend_from_slice(match b {
                    b'\t' => b"\\t",
                    b'\n' => b"\\n",
                    b'\r' => b"\\r",
                    b'\\' => b"\\\\",
                    other => std::slice::from_ref(other),
                });
            }
        }
    }
}

/// A value as plain text; objects and lists as JSON.
fn write<'a>(
    scope: &RecordScope<'a>,
    value: RecordValue<'a>,
    record: &Record<'_>,
    json: &mut JsonWriter,
    out: &mut Vec<u8>,
) {
    let text = match scope.leaf(value) {
        Leaf::Int(n) | Leaf::Long(n) | Leaf::Named(n, None) => n.to_string(),
        Leaf::Float(f) => f.to_string(),
        Leaf::Bool(b) => b.to_string(),
        Leaf::Null => "null".into(),
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
            let names: Vec<&str> = set.map(|v| v.name.as_str()).collect();
            if names.is_empty() { number.to_string() } else { names.join("|") }
        }
        Leaf::Composite => return composite(value, record, json, out),
    };
    out.extend_from_slice(text.as_bytes());
}

fn composite(value: RecordValue<'_>, record: &Record<'_>, json: &mut JsonWriter, out: &mut Vec<u8>) {
    match (value, &record.body) {
        (RecordValue::Node(node), Body::Message { message, tables, tree }) => {
            json.value(tables, tree, message.bytes, node, out)
        }
        (RecordValue::Problems, Body::Message { message, tables, tree }) => {
            let mut text = Vec::new();
            json.problems(tables, tree, message.bytes, &mut text);
            out.extend_from_slice(text.strip_prefix(b",\"problems\":").unwrap_or(&text));
        }
        (RecordValue::Counts(counts), _) => json::write_counts(counts, out),
        _ => {}
    }
}
