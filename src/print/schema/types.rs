//! Fields by their tables: each message's object, and the structures, enums and flag sets in it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::table::{EnumDef, Layout, LayoutId, LayoutStep, ReadAs, RegionType, Tables, TypeDef};
use crate::tree::{Sym, TypeRef, mark};

/// The definitions of one protocol.
pub(super) struct ProtocolSchema<'a> {
    tables: &'a Tables,
    /// The name of each layout's definition.
    names: Vec<String>,
    /// Layouts of messages whose header code reads, which adds fields of its own.
    framed: BTreeSet<u32>,
}

impl<'a> ProtocolSchema<'a> {
    pub(super) fn new(tables: &'a Tables) -> ProtocolSchema<'a> {
        let names = layout_names(tables);
        let framed = tables
            .messages()
            .iter()
            .filter(|m| tables.service(m.service).is_some_and(|s| s.header.is_empty()));
        let framed = framed.filter_map(|m| m.layout).map(|id| id.0).collect();
        ProtocolSchema { tables, names, framed }
    }

    /// The schema of the protocol's messages, and all definitions that it refers to.
    pub(super) fn messages(&self) -> Map<String, Value> {
        let protocol = self.tables.protocol();
        let mut defs = Map::new();
        let mut by_name: Vec<(String, Vec<Value>, String)> = Vec::new();
        for def in self.tables.messages() {
            let Some(layout) = def.layout else { continue };
            let name = self.tables.name(def.name).to_string();
            let place = json!({ "$ref": self.place(layout) });
            match by_name.iter_mut().find(|(n, ..)| *n == name) {
                Some((_, places, _)) if places.contains(&place) => {}
                Some((_, places, _)) => places.push(place),
                None => by_name.push((name, vec![place], def.doc.to_string())),
            }
        }
        let cases: Vec<Value> =
            by_name.into_iter().map(|(name, places, doc)| case(&name, places, &doc)).collect();
        defs.insert(protocol.to_string(), json!({ "allOf": cases }));
        for (id, layout) in self.tables.layouts().iter().enumerate() {
            if let Some(name) = self.names.get(id) {
                let framed = u32::try_from(id).is_ok_and(|id| self.framed.contains(&id));
                defs.insert(name.clone(), self.layout(layout, framed));
            }
        }
        for symbols in self.tables.enums() {
            defs.insert(self.symbols_name(symbols), names(symbols));
        }
        defs
    }

    fn place(&self, layout: LayoutId) -> String {
        format!("#/$defs/{}", self.names.get(layout.0 as usize).map_or("", String::as_str))
    }

    fn symbols_name(&self, symbols: &EnumDef) -> String {
        format!("{}.{}", self.tables.protocol(), symbols.name)
    }

    /// A structure: every field that its steps may read. Bytes that could not be read are
    /// `undecoded`.
    fn layout(&self, layout: &Layout, framed: bool) -> Value {
        // Self-describing values are what they say they are; a table only names what should stand
        // where.
        let free = layout.positions.is_some();
        let mut open = free || framed;
        let mut properties: Vec<(String, Vec<Value>)> = Vec::new();
        for (_, name, ty, list) in steps(self.tables, layout) {
            let Some(def) = self.tables.type_def(ty) else { continue };
            // Code may add fields of its own.
            open |= matches!(def.read, ReadAs::Native { .. } | ReadAs::Value(_));
            let shape = match list {
                true => json!({ "type": "array", "maxItems": 0 }),
                false if free => json!(true),
                false => self.value(def),
            };
            let name = self.tables.name(name).to_string();
            match properties.iter_mut().find(|(n, _)| *n == name) {
                Some((_, shapes)) if shapes.contains(&shape) => {}
                Some((_, shapes)) => shapes.push(shape),
                None => properties.push((name, vec![shape])),
            }
        }
        let mut properties: Map<String, Value> =
            properties.into_iter().map(|(n, shapes)| (n, any_of(shapes))).collect();
        properties.entry("undecoded").or_insert_with(|| json!({ "$ref": "#/$defs/hex" }));
        json!({ "type": "object", "properties": properties, "additionalProperties": open })
    }

    fn of(&self, ty: TypeRef) -> Value {
        self.tables.type_def(ty).map_or(json!(true), |def| self.value(def))
    }

    /// The schema of a type's values.
    fn value(&self, def: &TypeDef) -> Value {
        let plain = self.plain(def);
        match def.marks & mark::SECRET {
            0 => plain,
            _ => any_of(vec![plain, json!({ "$ref": "#/$defs/redacted" })]),
        }
    }

    fn plain(&self, def: &TypeDef) -> Value {
        let symbols = def.symbols.and_then(|id| self.tables.enum_def(id));
        let scalar = matches!(
            def.read,
            ReadAs::Int { .. } | ReadAs::Bool | ReadAs::Value(_) | ReadAs::Native { .. }
        );
        if let Some(symbols) = symbols.filter(|_| scalar) {
            let named = json!({ "$ref": format!("#/$defs/{}", self.symbols_name(symbols)) });
            return if matches!(def.read, ReadAs::Int { .. } | ReadAs::Bool) {
                named
            } else {
                json!(true)
            };
        }
        let named = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
        match &def.read {
            ReadAs::Int { size: 8, .. } => named("long"),
            ReadAs::Int { .. } => json!({ "type": "integer" }),
            ReadAs::Float { .. } => named("float"),
            ReadAs::Bool => named("bool"),
            ReadAs::Uuid { .. } => named("uuid"),
            ReadAs::Ipv4 { .. } => named("ipv4"),
            ReadAs::Bytes(_) => named("hex"),
            ReadAs::Digits { .. } => json!({ "type": ["integer", "string"] }),
            ReadAs::Text { .. } => json!({ "type": "string" }),
            ReadAs::List { of, .. } => json!({ "type": "array", "items": self.of(*of) }),
            ReadAs::Layout { layout, .. } => json!({ "$ref": self.place(*layout) }),
            ReadAs::Family(_) => json!({ "type": ["object", "null"] }),
            // Where nothing fitted there is an empty structure, with what could not be read.
            ReadAs::Region(RegionType { inner, .. }) => {
                let left = json!({ "type": "object", "properties": { "undecoded": { "$ref": "#/$defs/hex" } },
                                   "additionalProperties": false });
                any_of(inner.iter().map(|ty| self.of(*ty)).chain([left]).collect())
            }
            ReadAs::NullOr { of, .. } => any_of(vec![json!({ "type": "null" }), self.of(*of)]),
            ReadAs::Value(_) | ReadAs::Native { .. } => json!(true),
        }
    }
}

/// A name for each layout, no two alike. A structure written within another has none of its own and
/// is called by its place, `secondlife.AgentUpdate.AgentData`: a number would change with each
/// message that is added before it.
fn layout_names(tables: &Tables) -> Vec<String> {
    let mut names: Vec<String> =
        tables.layouts().iter().map(|l| tables.name(l.name).to_string()).collect();
    // A layout may come before the one it is written in, hence as many rounds as there are levels.
    while names.iter().any(String::is_empty) {
        let mut found = Vec::new();
        for (outer, layout) in
            names.iter().zip(tables.layouts()).filter(|(outer, _)| !outer.is_empty())
        {
            for (_, name, ty, _) in steps(tables, layout) {
                let mut inner = Vec::new();
                within(tables, ty, &mut inner);
                inner.retain(|id| names.get(id.0 as usize).is_some_and(String::is_empty));
                found.extend(
                    inner.into_iter().map(|id| (id, format!("{outer}.{}", tables.name(name)))),
                );
            }
        }
        if found.is_empty() {
            break;
        }
        for (id, path) in found {
            if let Some(name) = names.get_mut(id.0 as usize).filter(|name| name.is_empty()) {
                *name = path;
            }
        }
    }
    let mut alike = BTreeMap::new();
    let unique = |name: String| {
        let name = format!("{}.{name}", tables.protocol());
        let count = alike.entry(name.clone()).and_modify(|n| *n += 1).or_insert(1u32);
        if *count == 1 && !name.ends_with('.') { name } else { format!("{name}_{count}") }
    };
    names.into_iter().map(unique).collect()
}

/// All fields a layout may have, in order: the step, the name, the type, and whether it is only an
/// empty list.
fn steps(tables: &Tables, layout: &Layout) -> Vec<(u32, Sym, TypeRef, bool)> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let mut ways = vec![layout.start];
    while let Some(at) = ways.pop() {
        let (true, Some(op)) = (seen.insert(at), tables.step(at)) else { continue };
        match op {
            LayoutStep::End | LayoutStep::Undecoded => continue,
            LayoutStep::Jump(to) => {
                ways.push(*to);
                continue;
            }
            LayoutStep::Branch { otherwise, .. } => ways.push(*otherwise),
            LayoutStep::Switch { targets, otherwise, .. } => {
                ways.push(*otherwise);
                ways.extend(targets.iter().map(|t| t.1));
                continue;
            }
            LayoutStep::Field { name, ty, marks, .. } if marks & mark::SPAN == 0 => {
                found.push((at, *name, *ty, false))
            }
            LayoutStep::Empty { name, ty } => found.push((at, *name, *ty, true)),
            LayoutStep::Field { .. }
            | LayoutStep::Say { .. }
            | LayoutStep::Partial
            | LayoutStep::Last
            | LayoutStep::Word { .. }
            | LayoutStep::Remember { .. }
            | LayoutStep::Set { .. }
            | LayoutStep::Checksum { .. }
            | LayoutStep::Chosen { .. } => {}
        }
        ways.push(at + 1);
    }
    found.sort_by_key(|f| f.0);
    found
}

/// Adds the layouts that a type's values have, or the elements of its lists.
fn within(tables: &Tables, ty: TypeRef, found: &mut Vec<LayoutId>) {
    match tables.type_def(ty).map(|def| &def.read) {
        Some(ReadAs::Layout { layout, .. }) => found.push(*layout),
        Some(ReadAs::List { of, .. } | ReadAs::NullOr { of, .. }) => within(tables, *of, found),
        Some(ReadAs::Region(RegionType { inner, .. })) => {
            inner.iter().for_each(|ty| within(tables, *ty, found))
        }
        _ => {}
    }
}

/// A message by its name.
fn case(name: &str, places: Vec<Value>, doc: &str) -> Value {
    let mut fields = vec![json!({ "$ref": "#/$defs/spans" })];
    fields.extend(places);
    let mut case = json!({
        "if": { "properties": { "message": { "const": name } } },
        "then": { "properties": { "fields": any_of(fields) } }
    });
    if let (Some(case), false) = (case.as_object_mut(), doc.is_empty()) {
        case.insert("description".into(), json!(doc));
    }
    case
}

/// One of some shapes.
fn any_of(mut shapes: Vec<Value>) -> Value {
    shapes.dedup();
    if shapes.contains(&json!(true)) {
        return json!(true);
    }
    match shapes.len() {
        1 => shapes.remove(0),
        _ => json!({ "anyOf": shapes }),
    }
}

/// A value of an enum, or of a flag set.
fn names(symbols: &EnumDef) -> Value {
    let mut known: Vec<&str> = Vec::new();
    for value in &symbols.values {
        if !known.contains(&&*value.name) {
            known.push(&value.name);
        }
    }
    let number = json!({ "anyOf": [{ "type": "integer" }, { "$ref": "#/$defs/long" }] });
    let (key, shape, required) = if symbols.flags {
        ("names", json!({ "type": "array", "items": { "enum": known } }), json!(["value", "names"]))
    } else {
        ("name", json!({ "enum": known }), json!(["value"]))
    };
    let mut shape = json!({ "type": "object", "required": required, "properties": { "value": number, key: shape },
                            "additionalProperties": false });
    if let (Some(shape), false) = (shape.as_object_mut(), symbols.doc.is_empty()) {
        shape.insert("description".into(), json!(symbols.doc));
    }
    shape
}
