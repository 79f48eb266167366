//! The JSON as JSON Schema (2020-12): records as the writer writes them, each message's fields from its table, and under `$defs` the JSON of
//! commands that print no records.
//!
//! It describes the JSON writer; a test checks what is printed against it.

mod commands;
mod exports;
mod sessions;
mod sql;
mod types;

use serde_json::{Map, Value, json};

use crate::record::EVENTS;
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
    defs.extend(exports::exports());
    defs.insert("message".into(), message(protocols));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "moulsniff --json",
        "description": "One line of the output: a message or an event. Keys may be added in later versions, none is renamed.",
        "oneOf": [{ "$ref": "#/$defs/message" }, { "$ref": "#/$defs/event" }],
        "$defs": defs
    })
}

/// What is common to all records.
fn record() -> Value {
    let endpoint = json!({ "type": "string", "pattern": "^([0-9.]+|\\[[0-9a-f:.%]+\\]):[0-9]+$" });
    json!({
        "type": "object",
        "required": ["record", "time", "frame", "transport", "stream", "src", "dst", "from", "protocol", "service"],
        "properties": {
            "record": { "type": "integer", "minimum": 1 },
            "time": time(),
            "frame": { "type": "integer", "minimum": 0 },
            "transport": { "enum": ["tcp", "udp"] },
            "stream": { "$ref": "#/$defs/count" },
            "src": endpoint,
            "dst": endpoint,
            "from": { "enum": ["client", "server"] },
            "protocol": { "type": "string" },
            "service": { "type": "string" }
        }
    })
}

fn time() -> Value {
    json!({ "type": "string", "format": "date-time", "pattern": "^-?[0-9]{4,}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]+)?Z$" })
}

fn message(protocols: Vec<Value>) -> Value {
    let links = json!({ "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/link" } });
    json!({
        "$ref": "#/$defs/record",
        "required": ["message", "offset", "length", "fields"],
        "properties": {
            "message": { "type": "string" },
            "type": { "$ref": "#/$defs/count" },
            "offset": { "$ref": "#/$defs/count" },
            "length": { "$ref": "#/$defs/count" },
            "reply_to": { "type": "integer", "minimum": 1 },
            "elapsed_ms": { "type": "number" },
            "sent_again": links,
            "acknowledges": links,
            "expects_reply": { "const": true },
            "refused": { "$ref": "#/$defs/refusal" },
            "info": { "type": "string", "minLength": 1 },
            "fields": { "type": ["object", "array"] },
            "names": { "type": "object", "minProperties": 1, "propertyNames": { "pattern": "^fields\\." },
                       "additionalProperties": { "$ref": "#/$defs/called" } },
            "problems": { "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/problem" } }
        },
        "dependentRequired": { "reply_to": ["elapsed_ms"], "elapsed_ms": ["reply_to"] },
        "allOf": protocols,
        "unevaluatedProperties": false
    })
}

fn event() -> Value {
    let with = |word: &str, key: &str| {
        json!({ "if": { "properties": { "event": { "const": word } } }, "then": { "required": [key] },
                "else": { "not": { "required": [key] } } })
    };
    // The counts of a direction, or the bytes themselves.
    let shown =
        json!({ "properties": { "bytes": { "anyOf": [{ "$ref": "#/$defs/hex" }, { "$ref": "#/$defs/redacted" }] } } });
    let none = json!({ "not": { "required": ["bytes"] } });
    let bytes = json!({
        "if": { "properties": { "event": { "const": "stream_end" } } },
        "then": { "required": ["bytes"], "properties": { "bytes": { "$ref": "#/$defs/bytes" } } },
        "else": { "if": { "properties": { "event": { "enum": ["undecoded", "resync"] } } }, "then": shown, "else": none }
    });
    json!({
        "$ref": "#/$defs/record",
        "required": ["event", "text"],
        "properties": {
            "event": { "enum": EVENTS },
            "offset": { "$ref": "#/$defs/count" },
            "length": { "$ref": "#/$defs/count" },
            "key_file": { "type": "string" },
            "passed_over": { "$ref": "#/$defs/count" },
            "limit": { "type": "string" },
            "request": { "type": "integer", "minimum": 1 },
            "message": { "type": "string" },
            "waited_ms": { "type": "number" },
            "end": { "enum": ["fin", "reset", "open", "timeout", "given_up"] },
            "bytes": {},
            "bytes_cut": { "type": "integer", "minimum": 1 },
            "text": { "type": "string" }
        },
        "allOf": [with("key", "key_file"), with("unanswered", "request"), with("unanswered", "message"), with("unanswered", "waited_ms"), with("stream_end", "end"), with("resync", "passed_over"), with("limit", "limit"), bytes],
        "dependentRequired": { "bytes_cut": ["bytes"] },
        "unevaluatedProperties": false
    })
}

/// What records and fields are made of, whatever the protocol.
fn shapes() -> Map<String, Value> {
    let counts = ["payload", "explained", "opaque", "undecoded", "closed", "lost"];
    let properties: Map<String, Value> =
        counts.iter().map(|c| ((*c).to_string(), json!({ "$ref": "#/$defs/count" }))).collect();
    let hex = json!({ "type": "string", "pattern": "^([0-9a-f]{2})*$" });
    let shapes = [
        ("record", record()),
        ("event", event()),
        ("count", json!({ "type": "integer", "minimum": 0 })),
        (
            "bytes",
            json!({ "type": "object", "required": counts, "properties": properties, "additionalProperties": false }),
        ),
        (
            "link",
            json!({ "type": "object", "required": ["record", "elapsed_ms"], "properties": {
            "record": { "type": "integer", "minimum": 1 }, "elapsed_ms": { "type": "number" } },
            "additionalProperties": false }),
        ),
        (
            // Which field says no; nothing where the message always does.
            "refusal",
            json!({ "type": "object", "properties": { "field": { "type": "string" },
            "value": { "type": ["integer", "string", "boolean"] }, "name": { "type": "string" } },
            "dependentRequired": { "field": ["value"], "value": ["field"] },
            "additionalProperties": false }),
        ),
        (
            "called",
            json!({ "type": "object", "required": ["name", "record"], "properties": {
            "name": { "type": "string" }, "record": { "type": "integer", "minimum": 1 } },
            "additionalProperties": false }),
        ),
        (
            "problem",
            json!({ "type": "object", "required": ["severity", "field", "text"], "properties": {
            "severity": { "enum": ["note", "warning", "error"] }, "field": { "type": "string" },
            "text": { "type": "string" },
            // Bytes of a secret text are hidden like the text.
            "bytes": { "anyOf": [{ "$ref": "#/$defs/hex" }, { "$ref": "#/$defs/redacted" }] } },
            "additionalProperties": false }),
        ),
        ("time", time()),
        // What commands print that print no records.
        ("stats", commands::stats()),
        ("replies", commands::replies()),
        ("latencies", commands::latencies()),
        ("round_trips", commands::round_trips()),
        ("session", sessions::session()),
        ("story_line", sessions::story_line()),
        ("follow", commands::follow()),
        ("keys_check", commands::keys_check()),
        ("spans", json!({ "type": "array", "items": { "$ref": "#/$defs/span" } })),
        ("span", span()),
        ("hex", hex),
        ("long", json!({ "type": "string", "pattern": "^-?[0-9]+$" })),
        ("float", json!({ "anyOf": [{ "type": "number" }, { "enum": ["NaN", "Infinity", "-Infinity"] }] })),
        // A byte that is neither 0 nor 1 stays a number.
        ("bool", json!({ "anyOf": [{ "type": "boolean" }, { "type": "integer", "minimum": 2, "maximum": 255 }] })),
        ("uuid", json!({ "type": "string", "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" })),
        ("ipv4", json!({ "type": "string", "pattern": "^[0-9]{1,3}(\\.[0-9]{1,3}){3}$" })),
        ("redacted", json!({ "type": "string", "pattern": "^<redacted, [0-9]+ bytes>$" })),
    ];
    shapes.into_iter().map(|(name, shape)| (name.to_string(), shape)).collect()
}

/// A field with `--spans`.
fn span() -> Value {
    json!({
        "type": "object",
        "required": ["name", "type", "offset", "length"],
        "properties": {
            "name": { "type": "string" },
            "type": { "type": "string" },
            "offset": { "$ref": "#/$defs/count" },
            "length": { "$ref": "#/$defs/count" },
            "bit_offset": { "$ref": "#/$defs/count" },
            "bit_length": { "$ref": "#/$defs/count" },
            "buffer": { "enum": ["decompressed", "decrypted", "expanded", "reassembled"] },
            "value": true,
            "fields": { "$ref": "#/$defs/spans" }
        },
        "anyOf": [{ "required": ["value"] }, { "required": ["fields"] }],
        "additionalProperties": false
    })
}
