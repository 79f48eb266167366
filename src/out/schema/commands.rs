//! The shape of what commands print as JSON that print no records: `stats`, `follow`, `keys check`.

use serde_json::{Value, json};

/// The one object that `stats --json` prints.
pub(super) fn stats() -> Value {
    let count = json!({ "$ref": "#/$defs/count" });
    let counts = json!({ "type": "object", "additionalProperties": count });
    let time = json!({ "$ref": "#/$defs/time" });
    let span = json!({
        "type": "object",
        "properties": { "first": time, "last": time, "duration_ms": { "type": "number", "minimum": 0 } },
        "additionalProperties": false
    });
    let rate = json!({ "type": "number", "minimum": 0 });
    let busiest = json!({
        "type": "object", "required": ["time", "messages"],
        "properties": { "time": time, "messages": count }, "additionalProperties": false
    });
    let rates = json!({
        "type": "object",
        "properties": { "frames_per_s": rate, "messages_per_s": rate, "payload_bytes_per_s": rate, "busiest_second": busiest },
        "additionalProperties": false
    });
    let severities = |each: &Value| {
        json!({ "type": "object", "required": ["error", "warning", "note"],
                "properties": { "error": each, "warning": each, "note": each }, "additionalProperties": false })
    };
    json!({
        "type": "object",
        "required": ["frames", "records", "streams", "span", "rates", "messages", "events", "severities", "problems",
                     "problems_by_severity", "replies", "refused", "bytes"],
        "properties": {
            "frames": count, "records": count, "streams": count,
            "span": span, "rates": rates,
            "messages": counts, "events": counts,
            "severities": severities(&count), "problems": counts, "problems_by_severity": severities(&counts),
            "replies": { "type": "object", "additionalProperties": { "$ref": "#/$defs/replies" } },
            "requests_forgotten": count,
            "refused": { "type": "object", "additionalProperties": counts },
            "bytes": bytes(),
            "learned": { "type": "object", "additionalProperties": {
                "type": "object", "additionalProperties": {
                    "type": "object", "additionalProperties": { "type": "string" } } } }
        },
        "additionalProperties": false
    })
}

/// What became of the requests of one message.
pub(super) fn replies() -> Value {
    let count = json!({ "$ref": "#/$defs/count" });
    json!({
        "type": "object",
        "required": ["count", "answered", "refused", "unanswered"],
        "properties": {
            "count": count, "answered": count, "refused": count, "unanswered": count,
            "latency_ms": { "$ref": "#/$defs/latencies" },
            "network_ms": { "$ref": "#/$defs/latencies" },
            "slowest": { "type": "integer", "minimum": 1 },
            "slowest_network_ms": { "type": "number" }
        },
        "dependentRequired": { "latency_ms": ["slowest"], "slowest": ["latency_ms"] },
        "additionalProperties": false
    })
}

/// Percentiles of times, in milliseconds.
pub(super) fn latencies() -> Value {
    json!({
        "type": "object", "required": ["p50", "p95", "max"],
        "properties": { "p50": { "type": "number" }, "p95": { "type": "number" }, "max": { "type": "number" } },
        "additionalProperties": false
    })
}

/// How long the network takes to the ends of a stream and back, in milliseconds.
pub(super) fn round_trips() -> Value {
    let (number, acks) = (json!({ "type": "number" }), json!({ "const": "acks" }));
    json!({
        "type": "object", "minProperties": 1,
        "properties": { "client": number, "client_measured_by": acks, "server": number, "server_measured_by": acks },
        "dependentRequired": { "client_measured_by": ["client"], "server_measured_by": ["server"] },
        "additionalProperties": false
    })
}

/// What became of bytes, for the whole and for its parts.
fn bytes() -> Value {
    let own = ["payload", "explained", "opaque", "undecoded", "closed", "lost"];
    let each = json!({ "type": "object", "additionalProperties": { "$ref": "#/$defs/bytes" } });
    let mut stream: serde_json::Map<String, Value> = ["protocol", "service", "client", "server"]
        .map(|key| (key.to_string(), json!({ "type": "string" })))
        .into_iter()
        .collect();
    stream.insert("round_trip_ms".into(), json!({ "$ref": "#/$defs/round_trips" }));
    stream.extend(own.map(|key| (key.to_string(), json!({ "$ref": "#/$defs/count" }))));
    let keys: Vec<String> = stream.keys().filter(|key| *key != "round_trip_ms").cloned().collect();
    let streams = json!({
        "type": "object",
        "patternProperties": { "^(tcp|udp):[0-9]+$": {
            "type": "object", "required": keys, "properties": stream, "additionalProperties": false } },
        "additionalProperties": false
    });
    let mut properties: serde_json::Map<String, Value> =
        own.map(|key| (key.to_string(), json!({ "$ref": "#/$defs/count" }))).into_iter().collect();
    properties.insert("by_protocol".into(), each.clone());
    properties.insert("by_service".into(), each);
    properties.insert("by_stream".into(), streams);
    properties.insert("streams_not_listed".into(), json!({ "type": "integer", "minimum": 1 }));
    let required = own.into_iter().chain(["by_protocol", "by_service", "by_stream"]);
    json!({ "type": "object", "required": required.collect::<Vec<_>>(), "properties": properties, "additionalProperties": false })
}

/// One line of `follow --json`: bytes of one side, or an event.
pub(super) fn follow() -> Value {
    let count = json!({ "$ref": "#/$defs/count" });
    json!({
        "type": "object",
        "required": ["from", "time", "frame"],
        "properties": {
            "from": { "enum": ["client", "server"] },
            "time": { "$ref": "#/$defs/time" },
            "frame": count,
            "record": { "type": "integer", "minimum": 1 },
            "message": { "type": "string" },
            "event": { "enum": crate::record::EVENTS },
            "offset": count,
            "length": count,
            "bytes": { "$ref": "#/$defs/hex" },
            "text": { "type": "string" }
        },
        "oneOf": [
            { "required": ["offset", "length", "bytes"], "not": { "anyOf": [{ "required": ["event"] }, { "required": ["text"] }] } },
            { "required": ["offset", "length", "text"], "not": { "anyOf": [{ "required": ["event"] }, { "required": ["bytes"] }] } },
            { "required": ["record", "event", "text"], "not": { "anyOf": [{ "required": ["message"] }, { "required": ["bytes"] }] } }
        ],
        "additionalProperties": false
    })
}

/// One line of `keys check --json`: a file.
pub(super) fn keys_check() -> Value {
    let fact = json!({ "type": ["string", "integer", "boolean"] });
    json!({
        "type": "object",
        "required": ["file", "format", "entries"],
        "properties": {
            "file": { "type": "string" },
            "format": { "type": "string" },
            "entries": { "type": "array", "items": {
                "type": "object", "required": ["kind"], "properties": { "kind": { "type": "string" } },
                "additionalProperties": fact } },
            "notes": { "type": "array", "minItems": 1, "items": { "type": "string" } },
            "problem": { "type": "string" }
        },
        "additionalProperties": false
    })
}
