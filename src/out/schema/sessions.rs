//! The schema of `sessions --json`.

use serde_json::{Value, json};

/// One line of `sessions --json`.
pub(super) fn session() -> Value {
    let count = json!({ "$ref": "#/$defs/count" });
    let record = json!({ "type": "integer", "minimum": 1 });
    let counts = |keys: &[&str]| {
        let own: serde_json::Map<String, Value> = keys.iter().map(|key| (key.to_string(), count.clone())).collect();
        json!({ "type": "object", "required": keys, "properties": own, "additionalProperties": false })
    };
    let times = json!({ "$ref": "#/$defs/latencies" });
    let time = json!({ "$ref": "#/$defs/time" });
    json!({
        "type": "object",
        "required": ["session", "protocol", "client", "start", "end", "duration_ms", "who", "streams", "requests", "problems", "first_record", "last_record"],
        "properties": {
            "session": record, "protocol": { "type": "string" }, "client": { "type": "string" },
            "start": time, "end": time, "duration_ms": { "type": "number" },
            "who": identity(),
            "earlier": { "type": "array", "minItems": 1, "items": identity() },
            "refused": { "type": "array", "minItems": 1, "items": identity() },
            "streams": { "type": "array", "minItems": 1, "items": stream() },
            "places": { "type": "array", "minItems": 1, "items": {
                "type": "object", "required": ["from", "record"],
                "properties": { "name": { "type": "string" }, "id": identity_value(), "from": time, "to": time, "record": record },
                "additionalProperties": false } },
            "requests": counts(&["sent", "answered", "refused", "unanswered"]),
            "requests_forgotten": record,
            "refusals": { "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/story_line" } },
            "unanswered": { "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/story_line" } },
            "last_message": {
                "type": "object", "required": ["record", "from", "message", "before_end_ms"],
                "properties": { "record": record, "from": { "enum": ["client", "server"] }, "message": { "type": "string" },
                                "before_end_ms": { "type": "number" } },
                "additionalProperties": false },
            "latency_ms": times, "network_ms": times, "slowest": record, "slowest_network_ms": { "type": "number" },
            "problems": counts(&["error", "warning", "note"]),
            "first_record": record, "last_record": record,
            "story": { "type": "array", "items": { "$ref": "#/$defs/story_line" } },
            "steps_left_out": count
        },
        "dependentRequired": { "latency_ms": ["slowest"], "slowest": ["latency_ms"], "slowest_network_ms": ["network_ms"], "story": ["steps_left_out"] },
        "additionalProperties": false
    })
}

fn identity_value() -> Value {
    json!({ "type": ["string", "integer"] })
}

/// What a client said of itself: names and numbers by kind, such as `player_name` and `player_id`.
fn identity() -> Value {
    json!({
        "type": "object",
        "patternProperties": { "_name$": { "type": "string" }, "_id$": identity_value() },
        "additionalProperties": false
    })
}

fn stream() -> Value {
    let count = json!({ "$ref": "#/$defs/count" });
    let (text, time) = (json!({ "type": "string" }), json!({ "$ref": "#/$defs/time" }));
    json!({
        "type": "object",
        "required": ["transport", "stream", "service", "server", "client", "start", "end", "how", "messages", "bytes"],
        "properties": {
            "transport": { "enum": ["tcp", "udp"] }, "stream": count, "service": text, "server": text, "client": text,
            "start": time, "end": time, "how": { "enum": ["fin", "reset", "open", "timeout", "given_up"] },
            "closed_by": { "enum": ["client", "server"] },
            "round_trip_ms": { "$ref": "#/$defs/round_trips" },
            "messages": { "type": "object", "required": ["client", "server"],
                          "properties": { "client": count, "server": count }, "additionalProperties": false },
            "sent_again": count, "acknowledgements": count, "mean_ack_ms": { "type": "number" }, "lost": count,
            "learned": { "type": "object", "additionalProperties": { "type": "object", "additionalProperties": {
                "type": "object", "additionalProperties": text } } },
            "bytes": { "$ref": "#/$defs/bytes" },
            "by": { "enum": ["address", "time"] }
        },
        "additionalProperties": false
    })
}

/// One step of a session's story.
pub(super) fn story_line() -> Value {
    let number = json!({ "type": "number" });
    let record = json!({ "type": "integer", "minimum": 1 });
    json!({
        "type": "object",
        "required": ["record", "time", "transport", "stream", "message", "text"],
        "properties": {
            "record": record, "time": { "$ref": "#/$defs/time" },
            "transport": { "enum": ["tcp", "udp"] }, "stream": { "$ref": "#/$defs/count" },
            "message": { "type": "string" }, "text": { "type": "string" },
            "times": { "type": "integer", "minimum": 2 },
            "answered_ms": number, "refused": { "type": "string" }, "unanswered_ms": number
        },
        "additionalProperties": false
    })
}
