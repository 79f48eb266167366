//! The shape of what `export` and `diff` print as JSON.

use serde_json::{Map, Value, json};

/// Kinds of differences. The layer of `diff` lies above this one; a test holds what it prints against this list.
const DIFFERENCES: [&str; 7] = ["only_a", "only_b", "value", "form", "order", "refused", "latency"];

fn number() -> Value {
    json!({ "type": "integer", "minimum": 1 })
}

fn count() -> Value {
    json!({ "$ref": "#/$defs/count" })
}

fn text() -> Value {
    json!({ "type": "string" })
}

/// An object of these keys alone, of which those in `optional` may be missing.
fn object(required: Value, optional: Value) -> Value {
    let all = |value: Value| value.as_object().cloned().unwrap_or_default();
    let mut properties = all(required);
    let names: Vec<String> = properties.keys().cloned().collect();
    properties.extend(all(optional));
    json!({ "type": "object", "required": names, "properties": properties, "additionalProperties": false })
}

/// Where an exported thing was in the capture.
fn place() -> Value {
    let time = json!({ "$ref": "#/$defs/time" });
    json!({ "record": number(), "time": time, "transport": { "enum": ["tcp", "udp"] }, "stream": count(), "protocol": text(), "service": text() })
}

fn with(mut base: Value, more: Value) -> Value {
    if let (Some(base), Value::Object(more)) = (base.as_object_mut(), more) {
        base.extend(more);
    }
    base
}

fn list(of: Value) -> Value {
    json!({ "type": "array", "minItems": 1, "items": of })
}

/// The definitions, by their names.
pub(super) fn exports() -> Map<String, Value> {
    let all = [
        ("export_file", file()),
        ("export_chat", chat()),
        ("export_vault", vault()),
        ("diff", difference()),
        ("diff_sum", difference_sum()),
    ];
    all.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}

/// One line of `export files --json`.
fn file() -> Value {
    let required = with(place(), json!({ "last_record": number(), "complete": { "type": "boolean" } }));
    let sha256 = json!({ "type": "string", "pattern": "^[0-9a-f]{64}$" });
    let optional = json!({
        "from": { "enum": ["client", "server"] }, "name": text(), "wire_name": text(), "kind": text(), "size": count(),
        "sha256": sha256, "refused": text(), "missing": list(text()), "remarks": list(text()),
    });
    object(required, optional)
}

/// One line of `export chat --json`.
fn chat() -> Value {
    let party = object(json!({}), json!({ "name": text(), "id": text() }));
    let sender = json!({ "enum": ["client", "server"] });
    let required = json!({ "frame": count(), "message": text(), "sent_by": sender, "from": party, "text": text() });
    let optional = json!({
        "to": list(party), "channel": text(), "conversation": text(), "kind": list(text()), "relays": number(),
    });
    object(with(place(), required), optional)
}

/// The object that `export vault` writes.
fn vault() -> Value {
    let records = || json!({ "first_record": number(), "last_record": number() });
    let change = object(json!({ "record": number(), "field": text(), "old": true, "old_since": number() }), json!({}));
    let node = object(
        with(records(), json!({ "id": count(), "server": text(), "seen": { "type": "boolean" } })),
        json!({ "type": text(), "name": text(), "deleted": number(), "fields": { "type": "object" }, "changes": list(change) }),
    );
    let edge = object(
        with(records(), json!({ "parent": count(), "child": count(), "server": text() })),
        json!({ "owner": count(), "owner_name": text(), "saver": count(), "saver_name": text(), "removed": number(),
                "removed_before": list(number()) }),
    );
    let named = object(json!({ "id": count(), "server": text(), "name": text(), "record": number() }), json!({}));
    let many = |of: Value| json!({ "type": "array", "items": of });
    let names = json!({ "type": "object", "additionalProperties": many(named) });
    object(json!({ "nodes": many(node), "refs": many(edge), "names": names }), json!({ "left_out": number() }))
}

/// One line of `diff --json` but the last.
fn difference() -> Value {
    let of =
        object(json!({ "record": number(), "transport": { "enum": ["tcp", "udp"] }, "stream": count() }), json!({}));
    let or_null = json!({ "oneOf": [of, { "type": "null" }] });
    let two = |of: Value| json!({ "type": "array", "minItems": 2, "maxItems": 2, "items": of });
    object(
        json!({ "kind": { "enum": DIFFERENCES }, "a": or_null, "b": or_null, "protocol": text(), "service": text(), "message": text() }),
        json!({ "path": text(), "values": two(json!(true)), "identity": text(), "elsewhere": two(or_null), "more": count(), "info": text() }),
    )
}

/// The last line of `diff --json`.
fn difference_sum() -> Value {
    let kinds: Map<String, Value> = DIFFERENCES.iter().map(|kind| (kind.to_string(), count())).collect();
    let two = || object(json!({ "a": count(), "b": count() }), json!({}));
    object(
        json!({ "same": count(), "differences": object(kinds.into(), json!({})), "lost": two() }),
        json!({ "renamed_once": number(), "not_told": count(), "not_compared": two() }),
    )
}
