//! `moulsniff schema`: the shape of the JSON.

use std::io::Write;

use clap::{Args, ValueEnum};
use serde_json::Value;

use super::tables::TableReadArgs;
use crate::cli::error::{CliError, Status};
use crate::cli::load::tables_of;
use crate::print::schema::{SqlEngine, schema, sql};
use crate::proto::LazyTables;
use crate::table::Tables;

/// What to print of the shape of the JSON.
#[derive(Args, Debug)]
pub struct SchemaArgs {
    /// Print the definition of a database table that takes the lines of --json with the same types
    /// for every capture
    #[arg(long, value_name = "ENGINE")]
    pub sql: Option<SqlName>,
    /// The tables.
    #[command(flatten)]
    pub read: TableReadArgs,
}

/// An engine that reads JSON lines.
#[derive(ValueEnum, Debug, Clone, Copy)]
pub enum SqlName {
    /// DuckDB
    Duckdb,
    /// ClickHouse
    Clickhouse,
    /// Apache Spark
    Spark,
    /// SQLite
    Sqlite,
}

pub(super) fn run(args: &SchemaArgs) -> Result<Status, CliError> {
    let mut out = Vec::new();
    match args.sql {
        Some(name) => out.extend_from_slice(sql(engine(name)).as_bytes()),
        None => {
            let all = tables_of(&args.read.tables)?;
            let tables: Vec<&Tables> = all.iter().map(LazyTables::get).collect();
            write(&schema(&tables), &mut out);
        }
    }
    std::io::stdout().write_all(&out).map_err(CliError::writing)?;
    Ok(Status::Good)
}

fn engine(name: SqlName) -> SqlEngine {
    match name {
        SqlName::Duckdb => SqlEngine::DuckDb,
        SqlName::Clickhouse => SqlEngine::ClickHouse,
        SqlName::Spark => SqlEngine::Spark,
        SqlName::Sqlite => SqlEngine::Sqlite,
    }
}

/// One definition a line, one message a line within a protocol, and one line a protocol: a change
/// of a table shows as the lines it concerns.
fn write(schema: &Value, out: &mut Vec<u8>) {
    let empty = serde_json::Map::new();
    let top = schema.as_object().unwrap_or(&empty);
    out.extend_from_slice(b"{\n");
    for (key, value) in top.iter().filter(|(key, _)| *key != "$defs") {
        out.extend_from_slice(format!("\"{key}\": {value},\n").as_bytes());
    }
    out.extend_from_slice(b"\"$defs\": {\n");
    let defs = top.get("$defs").and_then(|d| d.as_object()).unwrap_or(&empty);
    for (i, (name, def)) in defs.iter().enumerate() {
        let comma = if i + 1 < defs.len() { "," } else { "" };
        out.extend_from_slice(
            format!("{}: {}{comma}\n", Value::from(name.as_str()), definition(def)).as_bytes(),
        );
    }
    out.extend_from_slice(b"}\n}\n");
}

/// A definition's text, with each part of its `allOf` on a line: the messages of a protocol, the
/// protocols of a message.
fn definition(def: &Value) -> String {
    let Some(object) = def.as_object() else { return def.to_string() };
    let keys: Vec<String> = object
        .iter()
        .map(|(key, value)| match value.as_array() {
            Some(parts) if key == "allOf" && !parts.is_empty() => {
                let lines: Vec<String> = parts.iter().map(Value::to_string).collect();
                format!("\"allOf\":[\n{}\n]", lines.join(",\n"))
            }
            _ => format!("{}:{value}", Value::from(key.as_str())),
        })
        .collect();
    format!("{{{}}}", keys.join(","))
}
