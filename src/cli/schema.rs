//! `moulsniff schema`: the shape of the JSON.

use std::io::Write;

use super::args::ReadArgs;
use super::error::{CliError, Status};
use super::read::tables as load;
use crate::out::schema::schema;
use crate::proto::LazyTables;
use crate::table::Tables;

pub(super) fn run(args: &ReadArgs) -> Result<Status, CliError> {
    let all = load(&args.tables)?;
    let tables: Vec<&Tables> = all.iter().map(LazyTables::get).collect();
    let schema = schema(&tables);
    let mut out = Vec::new();
    // A definition a line: what a table's change does to it can be read.
    write(&schema, &mut out);
    std::io::stdout().write_all(&out).map_err(CliError::writing)?;
    Ok(Status::Good)
}

fn write(schema: &serde_json::Value, out: &mut Vec<u8>) {
    let empty = serde_json::Map::new();
    let top = schema.as_object().unwrap_or(&empty);
    let text = |v: &dyn std::fmt::Display| v.to_string();
    out.extend_from_slice(b"{\n");
    for (key, value) in top.iter().filter(|(key, _)| *key != "$defs") {
        out.extend_from_slice(format!("\"{key}\": {},\n", text(value)).as_bytes());
    }
    out.extend_from_slice(b"\"$defs\": {\n");
    let defs = top.get("$defs").and_then(|d| d.as_object()).unwrap_or(&empty);
    for (i, (name, def)) in defs.iter().enumerate() {
        let comma = if i + 1 < defs.len() { "," } else { "" };
        let name = serde_json::Value::from(name.as_str());
        out.extend_from_slice(format!("{name}: {}{comma}\n", text(def)).as_bytes());
    }
    out.extend_from_slice(b"}\n}\n");
}
