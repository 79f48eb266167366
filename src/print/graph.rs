//! Nodes and edges as JSON, and as a graph for Graphviz.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::json::indented;
use crate::captured::escape;
use crate::facts::{Graph, GraphEdge, GraphKey, GraphNode};

/// Writes all nodes and edges as one JSON object, indented. Nothing but one node is held beside the
/// graph.
///
/// # Errors
/// What writing gives.
pub fn write_graph_json(graph: &Graph, to: &mut impl Write) -> io::Result<()> {
    to.write_all(b"{\n  \"nodes\": ")?;
    list(graph.nodes.iter().map(|(key, node)| node_json(graph, *key, node)), 1, to)?;
    to.write_all(b",\n  \"refs\": ")?;
    list(
        graph.edges.iter().map(|((parent, child), edge)| edge_json(graph, *parent, *child, edge)),
        1,
        to,
    )?;
    to.write_all(b",\n  \"names\": {")?;
    for (at, (kind, keys)) in named(graph).iter().enumerate() {
        write!(to, "{}\n    {}: ", if at > 0 { "," } else { "" }, indented(&Value::from(*kind)))?;
        list(keys.iter().filter_map(|key| name_json(graph, *key)), 2, to)?;
    }
    to.write_all(if graph.nodes.values().any(has_kinds) { b"\n  }" } else { b"}" })?;
    if graph.left_out > 0 {
        write!(to, ",\n  \"left_out\": {}", graph.left_out)?;
    }
    to.write_all(b"\n}\n")
}

/// Writes values as a JSON array at a depth of `depth` levels.
fn list(values: impl Iterator<Item = Value>, depth: usize, to: &mut impl Write) -> io::Result<()> {
    let indent = "  ".repeat(depth + 1);
    let mut any = false;
    to.write_all(b"[")?;
    for value in values {
        // A JSON string has no line feed.
        let text = indented(&value).replace('\n', &format!("\n{indent}"));
        write!(to, "{}\n{indent}{text}", if any { "," } else { "" })?;
        any = true;
    }
    if any { write!(to, "\n{}]", "  ".repeat(depth)) } else { to.write_all(b"]") }
}

fn node_json(graph: &Graph, key: GraphKey, node: &GraphNode) -> Value {
    let mut object = Map::new();
    let mut add =
        |key: &str, value: Option<Value>| drop(value.map(|value| object.insert(key.into(), value)));
    add("id", Some(key.id.into()));
    add("server", server(graph, key));
    add("type", node.kind.clone().map(Into::into));
    add("name", node.name.as_ref().map(|(name, _)| name.clone().into()));
    add("seen", Some(node.seen.into()));
    add("first_record", Some(node.records.0.into()));
    add("last_record", Some(node.records.1.into()));
    add("deleted", node.deleted.map(Into::into));
    if node.seen {
        let fields: Map<String, Value> =
            node.fields.iter().map(|(name, field)| (name.clone(), field.value.clone())).collect();
        add("fields", Some(fields.into()));
    }
    let mut changes = Vec::new();
    for (name, field) in &node.fields {
        let set_by = field.old.iter().map(|(_, record)| *record).skip(1).chain([field.record]);
        for ((old, since), record) in field.old.iter().zip(set_by) {
            changes.push((
                record,
                json!({ "record": record, "field": name, "old": old, "old_since": since }),
            ));
        }
    }
    changes.sort_by_key(|(record, _)| *record);
    let changes: Vec<Value> = changes.into_iter().map(|(_, change)| change).collect();
    add("changes", (!changes.is_empty()).then(|| changes.into()));
    object.into()
}

fn edge_json(graph: &Graph, parent: GraphKey, child: GraphKey, edge: &GraphEdge) -> Value {
    let mut object = Map::new();
    let mut add =
        |key: &str, value: Option<Value>| drop(value.map(|value| object.insert(key.into(), value)));
    add("parent", Some(parent.id.into()));
    add("child", Some(child.id.into()));
    add("server", server(graph, parent));
    for (key, name, id) in
        [("owner", "owner_name", edge.owner), ("saver", "saver_name", edge.saver)]
    {
        add(key, id.map(Into::into));
        add(name, id.and_then(|id| name_of(graph, GraphKey { id, ..parent })).map(Into::into));
    }
    add("first_record", Some(edge.records.0.into()));
    add("last_record", Some(edge.records.1.into()));
    add("removed", edge.removed.map(Into::into));
    add(
        "removed_before",
        (!edge.removed_before.is_empty()).then(|| edge.removed_before.clone().into()),
    );
    object.into()
}

/// The server in whose store a node is.
fn server(graph: &Graph, key: GraphKey) -> Option<Value> {
    graph.server(key).map(|server| server.to_string().into())
}

fn name_of(graph: &Graph, key: GraphKey) -> Option<&str> {
    graph.nodes.get(&key)?.name.as_ref().map(|(name, _)| name.as_str())
}

/// By kind of thing the nodes that are called by a name: players, ages. The first kind is the node
/// itself.
fn named(graph: &Graph) -> BTreeMap<&str, Vec<GraphKey>> {
    let mut kinds: BTreeMap<&str, Vec<GraphKey>> = BTreeMap::new();
    for (key, node) in &graph.nodes {
        for kind in node.name.iter().flat_map(|(_, of)| of.iter().skip(1)) {
            kinds.entry(kind).or_default().push(*key);
        }
    }
    kinds
}

fn has_kinds(node: &GraphNode) -> bool {
    node.name.as_ref().is_some_and(|(_, of)| of.len() > 1)
}

fn name_json(graph: &Graph, key: GraphKey) -> Option<Value> {
    let node = graph.nodes.get(&key)?;
    let (name, _) = node.name.as_ref()?;
    Some(
        json!({ "id": key.id, "server": server(graph, key), "name": name, "record": node.records.0 }),
    )
}

/// Writes all nodes and edges in the language of Graphviz. Nodes that are only referred to are
/// dashed, removed edges dotted.
///
/// # Errors
/// What writing gives.
pub fn write_graph_dot(graph: &Graph, to: &mut impl Write) -> io::Result<()> {
    to.write_all(
        b"digraph {\n  rankdir=LR;\n  node [shape=box, fontsize=10];\n  edge [fontsize=8];\n",
    )?;
    for (key, node) in &graph.nodes {
        let kind = node.kind.as_deref().unwrap_or("not seen");
        let name =
            node.name.as_ref().map_or(String::new(), |(name, _)| format!("\\n{}", label(name)));
        let style = match (node.deleted, node.seen) {
            (Some(_), _) => ", style=dotted",
            (None, false) => ", style=dashed",
            (None, true) => "",
        };
        let node_name = dot_name(graph, *key);
        let id = key.id;
        let record = node.records.0;
        let server = graph.server(*key).filter(|_| graph.stores.len() > 1);
        let server = server.map_or(String::new(), |server| format!(" at {server}"));
        let kind = label(kind);
        writeln!(
            to,
            "  {node_name} [label=\"{kind}{name}\\n{id}{server}, record {record}\"{style}];"
        )?;
    }
    for ((parent, child), edge) in &graph.edges {
        let by = edge.saver.or(edge.owner).filter(|by| *by != 0);
        let called = |id| name_of(graph, GraphKey { id, ..*parent });
        let by = by.map_or(String::new(), |by| called(by).map_or_else(|| by.to_string(), label));
        let style = if edge.removed.is_some() { ", style=dotted" } else { "" };
        let parent = dot_name(graph, *parent);
        let child = dot_name(graph, *child);
        writeln!(to, "  {parent} -> {child} [label=\"{by}\"{style}];")?;
    }
    to.write_all(b"}\n")
}

/// The ID of a node in the file: its number and, if there are several servers, its server's number.
fn dot_name(graph: &Graph, key: GraphKey) -> String {
    if graph.stores.len() > 1 {
        format!("s{}n{}", key.store, key.id)
    } else {
        format!("n{}", key.id)
    }
}

/// A text from the traffic between quotes of Graphviz.
fn label(text: &str) -> String {
    escape(text).replace('\\', "\\\\").replace('"', "\\\"")
}
