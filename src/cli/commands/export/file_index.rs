//! The list of what `export files` found: one line a file, as CSV and as JSON.

use serde_json::{Value, json};

use crate::facts::{FileTransfer, ListEntry, PartOrder};
use crate::print::{csv_cell, format_time};

/// The columns of index.csv.
pub(super) const INDEX_COLUMNS: &str = "record,last_record,time,stream,protocol,service,from,name,\
                                        wire_name,kind,size,sha256,complete,missing,remarks\n";
/// The columns of listed.csv.
pub(super) const LISTED_COLUMNS: &str = "record,list,name,asked,size,md5,packed_size,packed_md5\n";

/// What was written of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Written {
    /// Where it is, from the folder on; none where nothing was written.
    pub(super) path: Option<String>,
    /// Bytes that were written.
    pub(super) size: u64,
    /// Their SHA-256 in hex.
    pub(super) sha256: String,
    /// What was done to it, and what it was compared with.
    pub(super) remarks: Vec<String>,
}

/// Appends the line of a file.
pub(super) fn index_line(file: &FileTransfer, written: &Written, out: &mut Vec<u8>) {
    let (transport, stream) = file.stream;
    let cells = [
        file.first_record.to_string(),
        file.last_record.to_string(),
        time(file),
        format!("{}:{stream}", transport.word()),
        file.protocol.to_string(),
        file.service.clone(),
        file.from.map_or("", |from| from.word()).to_string(),
        written.path.clone().unwrap_or_default(),
        file.name.clone().unwrap_or_default(),
        file.kind.clone().unwrap_or_default(),
        if written.path.is_some() { written.size.to_string() } else { String::new() },
        written.sha256.clone(),
        state(file).to_string(),
        missing(file).join("; "),
        remarks(file, written).join("; "),
    ];
    line(&cells, out);
}

/// The same as a JSON object.
pub(super) fn index_json(file: &FileTransfer, written: &Written) -> Value {
    let (transport, stream) = file.stream;
    let mut object = json!({
        "record": file.first_record,
        "last_record": file.last_record,
        "time": time(file),
        "transport": transport.word(),
        "stream": stream,
        "protocol": file.protocol,
        "service": file.service,
    });
    let mut add = |key: &str, value: Option<Value>| {
        if let (Some(object), Some(value)) = (object.as_object_mut(), value) {
            object.insert(key.into(), value);
        }
    };
    let list = |list: Vec<String>| (!list.is_empty()).then(|| list.into());
    add("from", file.from.map(|from| from.word().into()));
    add("name", written.path.clone().map(Into::into));
    add("wire_name", file.name.clone().map(Into::into));
    add("kind", file.kind.clone().map(Into::into));
    add("size", written.path.as_ref().map(|_| written.size.into()));
    add("sha256", written.path.as_ref().map(|_| written.sha256.clone().into()));
    add("complete", Some(file.complete.into()));
    add("refused", file.refused.clone().map(Into::into));
    add("missing", list(missing(file)));
    add("remarks", list(remarks(file, written)));
    object
}

/// Appends the line of an entry of a list.
pub(super) fn listed_line(entry: &ListEntry, out: &mut Vec<u8>) {
    let file = &entry.file;
    let number = |number: Option<u64>| number.map_or(String::new(), |number| number.to_string());
    let cells = [
        entry.record.to_string(),
        entry.list.clone().unwrap_or_default(),
        file.name.clone(),
        file.asked.clone(),
        number(file.size),
        file.md5.clone().unwrap_or_default(),
        number(file.packed_size),
        file.packed_md5.clone().unwrap_or_default(),
    ];
    line(&cells, out);
}

fn line(cells: &[String], out: &mut Vec<u8>) {
    for (place, cell) in cells.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        csv_cell(cell, out);
    }
    out.push(b'\n');
}

fn time(file: &FileTransfer) -> String {
    let mut text = String::new();
    format_time(file.at.time, &mut text);
    text
}

fn state(file: &FileTransfer) -> &'static str {
    match (&file.refused, file.complete) {
        (Some(_), _) if file.pieces.is_empty() => "refused",
        (Some(_), _) => "no",
        (None, true) => "yes",
        (None, false) => "no",
    }
}

/// The missing parts, in words.
fn missing(file: &FileTransfer) -> Vec<String> {
    let refused = file.refused.iter().map(|reason| format!("refused: {reason}"));
    if file.pieces.is_empty() && file.refused.is_some() {
        return refused.collect();
    }
    let what = match file.order {
        PartOrder::Unknown => return vec!["all of it: nothing was sent".into()],
        PartOrder::Number => "part",
        PartOrder::Offset | PartOrder::Sequence => "byte",
    };
    let holes = file.holes();
    let said = holes.iter().take(32).map(|(from, to)| match (to.checked_sub(*from), *to) {
        (_, u64::MAX) => format!("what follows {what} {}", from.saturating_sub(1)),
        (Some(1), _) => format!("{what} {from}"),
        _ => format!("{what}s {from} to {}", to.saturating_sub(1)),
    });
    let rest = holes.len().saturating_sub(32);
    refused.chain(said).chain((rest > 0).then(|| format!("and {rest} more holes"))).collect()
}

fn remarks(file: &FileTransfer, written: &Written) -> Vec<String> {
    let notes = file.notes.iter().map(|note| (*note).to_string());
    notes.chain(written.remarks.iter().cloned()).collect()
}
