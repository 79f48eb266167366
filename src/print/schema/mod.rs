//! The JSON as JSON Schema (2020-12): records as the writer writes them, each message's fields from
//! its table, and under `$defs` the JSON of commands that print no records.
//!
//! What no table changes is kept as JSON in `shapes.json`. The rest is made from the tables. Tests
//! check what is printed against both.

mod sql;
mod types;

use serde_json::{Map, Value, json};

use crate::table::Tables;
pub use sql::{SqlEngine, sql};
use types::ProtocolSchema;

/// The schema of one line of `--json`, with the messages of some tables.
pub fn schema(all: &[&Tables]) -> Value {
    let mut defs = shapes();
    let mut protocols = Vec::new();
    for tables in all {
        let name = tables.protocol();
        protocols.push(json!({
            "if": { "properties": { "protocol": { "const": name } } },
            "then": { "$ref": format!("#/$defs/{name}") }
        }));
        defs.extend(ProtocolSchema::new(tables).messages());
    }
    if let Some(message) = defs.get_mut("message").and_then(Value::as_object_mut) {
        message.insert("allOf".into(), protocols.into());
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "moulsniff --json",
        "description": "One line of the output: a message or an event. Keys may be added in later versions, none is renamed.",
        "oneOf": [{ "$ref": "#/$defs/message" }, { "$ref": "#/$defs/event" }],
        "$defs": defs
    })
}

/// The definitions that are the same whatever the tables say. `message` lacks the messages of the
/// protocols.
fn shapes() -> Map<String, Value> {
    serde_json::from_str(include_str!("shapes.json")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;
    use crate::record::EVENTS;

    #[test]
    fn the_kept_shapes_name_every_event() {
        let shapes = shapes();
        for shape in ["event", "follow"] {
            let words = shapes[shape].pointer("/properties/event/enum").unwrap();
            assert_eq!(*words, json!(EVENTS), "{shape}");
        }
    }

    #[test]
    fn the_kept_shapes_refer_to_each_other_and_to_nothing_else() {
        let shapes = shapes();
        let text = include_str!("shapes.json");
        for name in text.split("\"#/$defs/").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(shapes.contains_key(name), "{name}");
        }
    }
}
