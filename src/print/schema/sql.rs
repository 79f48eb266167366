//! The definition of a database table that takes the lines of `--json`, in the words of one engine.
//!
//! The columns are the keys of `record`, `message` and `event` in `shapes.json`, so a new key is a
//! new column without a word here. Engines that guess types from the first lines give one capture
//! other types than the next; these are always the same. What has a shape of its own in each
//! message (`fields`, `names`, `problems` …) is JSON.

use serde_json::{Map, Value};

/// An engine that reads JSON lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlEngine {
    /// DuckDB 1.0 and later.
    DuckDb,
    /// ClickHouse 25.3 and later.
    ClickHouse,
    /// Apache Spark 3.5 and later.
    Spark,
    /// SQLite 3.38 and later.
    Sqlite,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnType {
    Integer,
    Float,
    Boolean,
    Text,
    Time,
    Json,
}

/// A key of records as a column.
struct Column<'a> {
    name: &'a str,
    column_type: ColumnType,
    /// Every record has it.
    required: bool,
}

/// The statement that makes a table `records`, with a comment that says how lines are loaded into
/// it.
///
/// ```
/// use moulsniff::print::schema::{SqlEngine, sql};
///
/// let text = sql(SqlEngine::DuckDb);
/// assert!(text.contains("\"record\" BIGINT NOT NULL"));
/// assert!(text.contains("\"fields\" JSON"));
/// ```
pub fn sql(engine: SqlEngine) -> String {
    let mut all = super::shapes();
    let shapes = ["record", "message", "event"].map(|name| all.remove(name).unwrap_or_default());
    let columns: Vec<String> =
        columns(&shapes).iter().map(|column| engine.column(column)).collect();
    let (before, after) = engine.around();
    format!("{before}    {}\n{after};\n", columns.join(",\n    "))
}

/// The columns, each key once, in the order in which records have them.
fn columns(shapes: &[Value]) -> Vec<Column<'_>> {
    let mut columns: Vec<Column<'_>> = Vec::new();
    let required = shapes.first().and_then(|record| record.get("required")?.as_array());
    for (name, shape) in shapes.iter().filter_map(properties).flatten() {
        if !columns.iter().any(|column| column.name == name) {
            let required =
                required.is_some_and(|names| names.iter().any(|required| required == name));
            columns.push(Column { name, column_type: column_type(shape), required });
        }
    }
    columns
}

fn properties(shape: &Value) -> Option<&Map<String, Value>> {
    shape.get("properties")?.as_object()
}

/// The column type that holds whatever a key's schema allows.
fn column_type(shape: &Value) -> ColumnType {
    let is = |key: &str, text: &str| shape.get(key).is_some_and(|value| value == text);
    if is("format", "date-time") {
        ColumnType::Time
    } else if is("type", "integer") || is("$ref", "#/$defs/count") {
        ColumnType::Integer
    } else if is("type", "number") {
        ColumnType::Float
    } else if is("type", "boolean") || shape.get("const").is_some_and(Value::is_boolean) {
        ColumnType::Boolean
    } else if is("type", "string") || shape.get("enum").is_some() {
        ColumnType::Text
    } else {
        ColumnType::Json
    }
}

impl SqlEngine {
    /// What comes before and after the columns: how to load lines, and how the table is kept.
    fn around(self) -> (&'static str, &'static str) {
        match self {
            SqlEngine::DuckDb => (
                "-- moulsniff CAPTURE... --json > capture.ndjson, then:\n\
                 -- COPY records FROM 'capture.ndjson' (FORMAT json);\n\
                 CREATE TABLE IF NOT EXISTS records (\n",
                ")",
            ),
            SqlEngine::ClickHouse => (
                "-- moulsniff CAPTURE... --json > capture.ndjson, then:\n\
                 -- INSERT INTO records FROM INFILE 'capture.ndjson' SETTINGS date_time_input_format = 'best_effort',\n\
                 --     input_format_json_read_objects_as_strings = 1 FORMAT JSONEachRow;\n\
                 CREATE TABLE IF NOT EXISTS records (\n",
                ") ENGINE = MergeTree ORDER BY (protocol, service, time, record)",
            ),
            SqlEngine::Spark => (
                "-- moulsniff CAPTURE... --json > capture.ndjson, then put OPTIONS (path 'capture.ndjson') behind USING json.\n\
                 CREATE TABLE IF NOT EXISTS records (\n",
                ") USING json",
            ),
            SqlEngine::Sqlite => (
                "-- moulsniff CAPTURE... --json > capture.ndjson\n\
                 -- moulsniff schema --sql sqlite | sqlite3 records.db\n\
                 -- sqlite3 records.db '.mode ascii' '.separator \"\\t\" \"\\n\"' '.import capture.ndjson lines'\n\
                 CREATE TABLE IF NOT EXISTS lines (line TEXT NOT NULL);\n\
                 CREATE VIEW IF NOT EXISTS records AS SELECT\n",
                "FROM lines",
            ),
        }
    }

    /// One column as the statement has it.
    fn column(self, column: &Column<'_>) -> String {
        let Column { name, column_type, required } = column;
        let words = self.words(*column_type);
        match self {
            SqlEngine::DuckDb if *required => format!("\"{name}\" {words} NOT NULL"),
            SqlEngine::DuckDb => format!("\"{name}\" {words}"),
            SqlEngine::ClickHouse if *required => format!("`{name}` {words}"),
            SqlEngine::ClickHouse => format!("`{name}` Nullable({words})"),
            SqlEngine::Spark if *required => format!("`{name}` {words} NOT NULL"),
            SqlEngine::Spark => format!("`{name}` {words}"),
            SqlEngine::Sqlite => format!("line ->> '$.{name}' AS \"{name}\""),
        }
    }

    /// The name of a type. SQLite takes each value as JSON has it.
    fn words(self, column_type: ColumnType) -> &'static str {
        // ClickHouse and Spark keep JSON as text, which a query opens.
        let [duckdb, clickhouse, spark] = match column_type {
            ColumnType::Integer => ["BIGINT", "Int64", "BIGINT"],
            ColumnType::Float => ["DOUBLE", "Float64", "DOUBLE"],
            ColumnType::Boolean => ["BOOLEAN", "Bool", "BOOLEAN"],
            ColumnType::Text => ["VARCHAR", "String", "STRING"],
            ColumnType::Time => ["TIMESTAMP_NS", "DateTime64(9, 'UTC')", "TIMESTAMP"],
            ColumnType::Json => ["JSON", "String", "STRING"],
        };
        match self {
            SqlEngine::DuckDb => duckdb,
            SqlEngine::ClickHouse => clickhouse,
            SqlEngine::Spark => spark,
            SqlEngine::Sqlite => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_one_column_with_a_type() {
        let text = sql(SqlEngine::ClickHouse);
        for line in [
            "`record` Int64,",
            "`time` DateTime64(9, 'UTC'),",
            "`message` Nullable(String),",
            "`elapsed_ms` Nullable(Float64),",
            "`fields` Nullable(String),",
            "`bytes` Nullable(String),",
        ] {
            assert_eq!(
                text.lines().filter(|found| found.trim() == line).count(),
                1,
                "{line}\n{text}"
            );
        }
    }
}
