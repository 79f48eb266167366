//! Differences as JSON: one object for each, and the sum as the last one.

use serde_json::{Map, Value, json};

use super::difference::{
    Difference, DifferenceKind, DifferenceSum, FieldDifference, RecordOf, Section,
};
use crate::print::json::one_line;

/// Values that are deeper are written as text: jq 1.6 reads 256, and some are around the value.
const MAX_ENTRIES: usize = 248;

/// The objects of a message's differences, one a line.
pub fn difference_json(section: &Section, difference: &Difference, out: &mut String) {
    for field in &difference.fields {
        out.push_str(&one_line(&field_json(section, difference, field)));
        out.push('\n');
    }
}

fn field_json(section: &Section, difference: &Difference, field: &FieldDifference) -> Value {
    let mut object = Map::new();
    let mut set = |key: &str, value: Value| drop(object.insert(key.to_string(), value));
    set("kind", field.kind.word().into());
    set("a", difference.a.map_or(Value::Null, record));
    set("b", difference.b.map_or(Value::Null, record));
    set("protocol", section.protocol.into());
    set("service", section.service.as_str().into());
    set("message", difference.message.as_str().into());
    if let Some(carried) = &difference.carries {
        set("carries", carried.as_str().into());
    }
    if let Some(path) = &field.path {
        set("path", path.as_str().into());
        set(
            "values",
            Value::Array(field.values.iter().map(|value| parsed(value.as_deref())).collect()),
        );
    }
    if let Some(identity) = &field.identity {
        set("identity", identity.kind.as_str().into());
        set(
            "elsewhere",
            Value::Array(
                identity.elsewhere.iter().map(|of| of.map_or(Value::Null, record)).collect(),
            ),
        );
        set("more", identity.more.into());
    }
    if !difference.info.is_empty() {
        set("info", difference.info.as_str().into());
    }
    Value::Object(object)
}

fn record(of: RecordOf) -> Value {
    json!({"record": of.record, "transport": of.transport, "stream": of.stream})
}

/// A value's JSON; one that was cut off stays a text.
fn parsed(text: Option<&str>) -> Value {
    let value =
        |text: &str| serde_json::from_str(text).ok().filter(|value| entries(value) <= MAX_ENTRIES);
    text.map_or(Value::Null, |text| value(text).unwrap_or_else(|| text.into()))
}

/// What jq has open where a value is deepest: of an object the key too.
fn entries(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(entries).max().unwrap_or(0),
        Value::Object(map) => 2 + map.values().map(entries).max().unwrap_or(0),
        _ => 0,
    }
}

/// The last line.
pub fn sum_json(sum: &DifferenceSum) -> String {
    let kinds: Map<String, Value> = DifferenceKind::ALL
        .iter()
        .zip(sum.kinds)
        .map(|(kind, count)| (kind.word().to_string(), count.into()))
        .collect();
    let [lost_a, lost_b] = sum.lost;
    let mut all =
        json!({"same": sum.same, "differences": kinds, "lost": {"a": lost_a, "b": lost_b}});
    if let Some(all) = all.as_object_mut().filter(|_| sum.renamed_once > 0) {
        all.insert("renamed_once".into(), sum.renamed_once.into());
    }
    if let Some(all) = all.as_object_mut().filter(|_| sum.not_reported > 0) {
        all.insert("not_told".into(), sum.not_reported.into());
    }
    let pairs = [
        ("unread_messages", sum.unread_messages),
        ("unread_bytes", sum.unread_bytes),
        ("sent_again", sum.sent_again),
        ("not_compared", sum.not_compared),
    ];
    for (key, [a, b]) in
        pairs.into_iter().filter(|(_, counts)| counts.iter().any(|count| *count > 0))
    {
        all.as_object_mut()
            .into_iter()
            .for_each(|all| drop(all.insert(key.into(), json!({"a": a, "b": b}))));
    }
    format!("{}\n", one_line(&all))
}
