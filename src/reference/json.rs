//! A declaration as a JSON object, for `tables show --json`. Its shape is `#/$defs/tables_show` in
//! the schema.

use serde_json::{Map, Value, json};

use super::{Entry, EntryKind, FieldText, Item, sender};
use crate::table::{EnumDef, Example};

/// The object of a message or another declaration.
pub fn item_json(item: &Item<'_>) -> Value {
    let mut object = Object::default();
    object.put("protocol", item.tables.protocol());
    object.put("kind", item.kind);
    object.put("name", item.name);
    if let Some((_, def)) = item.message {
        object.put("service", item.service());
        object.put("from", sender(def.direction));
        object.put("usually", def.usually.map(sender));
        object.put("type", def.number);
        let range = def.number.and_then(|number| item.tables.number_in_range(number));
        object.put("range", range.map(|(name, number)| json!({ "name": name, "number": number })));
        object.put("layout_known", def.layout.is_some());
        object.put("expects_reply", def.expects_reply.then_some(true));
        object.list("answers", item.answers().collect());
        object.list("answered_by", item.answered_by.clone());
    }
    object.put("type", item.number);
    object.put("of", item.declaration.family.as_deref());
    object.put("extends", item.declaration.parent.as_deref());
    object.put("doc", Some(item.doc()).filter(|doc| !doc.is_empty()));
    if let Some((of, modifiers)) = &item.declaration.alias {
        object.put("stands_for", of.as_str());
        object.list("modifiers", modifiers.clone());
    }
    object.list("info", item.declaration.info.clone());
    if matches!(item.kind, "enum" | "flags") {
        let def = item.tables.enums().rev().find(|def| def.name == item.name);
        object.list("values", def.map_or(Vec::new(), |def| values(item, def)));
    }
    object.list("fields", entries(&item.declaration.entries));
    object.list(
        "examples",
        item.examples.iter().map(|example| example_json(item, example)).collect(),
    );
    object.list("uses", item.uses.iter().copied().collect());
    object.list("used_by", item.used_by.iter().copied().collect());
    let (file, line) = item.place();
    object.put("file", file);
    object.put("line", line as u64);
    object.put("text", item.text());
    Value::Object(object.0)
}

/// An object that leaves out what there is not.
#[derive(Default)]
struct Object(Map<String, Value>);

impl Object {
    fn put(&mut self, key: &str, value: impl Into<Value>) {
        let value = value.into();
        if !value.is_null() {
            self.0.insert(key.to_string(), value);
        }
    }

    fn list(&mut self, key: &str, values: Vec<impl Into<Value>>) {
        if !values.is_empty() {
            self.put(key, Value::Array(values.into_iter().map(Into::into).collect()));
        }
    }
}

fn values(item: &Item<'_>, def: &EnumDef) -> Vec<Value> {
    let base = item.tables.type_def(def.base);
    let signed = base.is_some_and(|base| base.text.starts_with('i'));
    def.values
        .iter()
        .map(|value| {
            let mut object = Object::default();
            object.put("name", &*value.name);
            object.put(
                "value",
                if signed { Value::from(value.value as i64) } else { whole(value.value) },
            );
            object.put("text", Some(&*value.text).filter(|text| !text.is_empty()));
            let doc = item.declaration.values.iter().find(|(name, _)| *name == value.name);
            object.put("doc", doc.map(|(_, doc)| doc.as_str()));
            Value::Object(object.0)
        })
        .collect()
}

/// A number, as text where jq and JavaScript would round it.
fn whole(number: u64) -> Value {
    if number > 1 << 53 { number.to_string().into() } else { number.into() }
}

fn entries(all: &[Entry]) -> Vec<Value> {
    all.iter()
        .map(|entry| {
            let mut object = Object::default();
            match &entry.kind {
                EntryKind::Field(field) => put_field(field, &mut object),
                EntryKind::Remark { severity, text } => {
                    object.put("severity", severity.as_str());
                    object.put("text", text.as_str());
                }
                EntryKind::Undecoded => object.put("undecoded", true),
            }
            object.list("when", entry.when.clone());
            Value::Object(object.0)
        })
        .collect()
}

fn put_field(field: &FieldText, object: &mut Object) {
    object.put("name", field.name.as_str());
    object.put("type", field.of.as_str());
    object.put("span", field.span.then_some(true));
    object.list("modifiers", field.modifiers.clone());
    object.put("doc", Some(field.doc.as_str()).filter(|doc| !doc.is_empty()));
    object.list("fields", entries(&field.entries));
}

fn example_json(item: &Item<'_>, example: &Example) -> Value {
    let mut object = Object::default();
    let bytes = item.tables.example_bytes(example);
    if example.text {
        object.put("text", bytes);
    } else {
        object.put("bytes", bytes.split_whitespace().collect::<String>());
    }
    let states = item.tables.declared().map_or(&[][..], |protocol| &protocol.states);
    let named = example.states.iter().filter_map(|(place, value)| {
        Some((states.get(*place as usize)?.0.to_string(), Value::from(*value)))
    });
    let states: Map<String, Value> = named.collect();
    object.put("states", (!states.is_empty()).then_some(Value::Object(states)));
    // The table was checked: the fields are JSON.
    let fields: Option<Value> = serde_json::from_str(item.tables.example_json(example)).ok();
    object.put("fields", fields);
    Value::Object(object.0)
}
