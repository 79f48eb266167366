//! Nodes and edges as JSON, and as a graph for Graphviz.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Map, Value, json};

use crate::captured::escape;
use crate::facts::{Graph, GraphEdge, GraphKey, GraphNode};

/// All nodes and edges as one JSON object.
pub fn graph_json(graph: &Graph) -> Value {
    let nodes: Vec<Value> = graph.nodes.iter().map(|(key, node)| node_json(graph, *key, node)).collect();
    let refs: Vec<Value> =
        graph.edges.iter().map(|((parent, child), edge)| edge_json(graph, *parent, *child, edge)).collect();
    let mut object = json!({ "nodes": nodes, "refs": refs, "names": names_json(graph) });
    if let Some(object) = object.as_object_mut().filter(|_| graph.left_out > 0) {
        object.insert("left_out".into(), graph.left_out.into());
    }
    object
}

fn node_json(graph: &Graph, key: GraphKey, node: &GraphNode) -> Value {
    let mut object = Map::new();
    let mut add = |key: &str, value: Option<Value>| drop(value.map(|value| object.insert(key.into(), value)));
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
            changes.push((record, json!({ "record": record, "field": name, "old": old, "old_since": since })));
        }
    }
    changes.sort_by_key(|(record, _)| *record);
    let changes: Vec<Value> = changes.into_iter().map(|(_, change)| change).collect();
    add("changes", (!changes.is_empty()).then(|| changes.into()));
    object.into()
}

fn edge_json(graph: &Graph, parent: GraphKey, child: GraphKey, edge: &GraphEdge) -> Value {
    let mut object = Map::new();
    let mut add = |key: &str, value: Option<Value>| drop(value.map(|value| object.insert(key.into(), value)));
    add("parent", Some(parent.id.into()));
    add("child", Some(child.id.into()));
    add("server", server(graph, parent));
    for (key, name, id) in [("owner", "owner_name", edge.owner), ("saver", "saver_name", edge.saver)] {
        add(key, id.map(Into::into));
        add(name, id.and_then(|id| name_of(graph, GraphKey { id, ..parent })).map(Into::into));
    }
    add("first_record", Some(edge.records.0.into()));
    add("last_record", Some(edge.records.1.into()));
    add("removed", edge.removed.map(Into::into));
    add("removed_before", (!edge.removed_before.is_empty()).then(|| edge.removed_before.clone().into()));
    object.into()
}

/// The server in whose store a node is.
fn server(graph: &Graph, key: GraphKey) -> Option<Value> {
    graph.server(key).map(|server| server.to_string().into())
}

fn name_of(graph: &Graph, key: GraphKey) -> Option<&str> {
    graph.nodes.get(&key)?.name.as_ref().map(|(name, _)| name.as_str())
}

/// By kind of thing what is called by a name: players, ages.
fn names_json(graph: &Graph) -> Value {
    let mut kinds: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for (key, node) in &graph.nodes {
        let Some((name, of)) = &node.name else { continue };
        // The first kind is the node itself.
        for kind in of.iter().skip(1) {
            let named = json!({ "id": key.id, "server": server(graph, *key), "name": name, "record": node.records.0 });
            kinds.entry(kind).or_default().push(named);
        }
    }
    kinds.into_iter().map(|(kind, list)| (kind.to_string(), Value::from(list))).collect::<Map<_, _>>().into()
}

/// Appends all nodes and edges in the language of Graphviz. What is only referred to is dashed, what was taken away dotted.
pub fn graph_dot(graph: &Graph, out: &mut String) {
    out.push_str("digraph {\n  rankdir=LR;\n  node [shape=box, fontsize=10];\n  edge [fontsize=8];\n");
    for (key, node) in &graph.nodes {
        let kind = node.kind.as_deref().unwrap_or("not seen");
        let name = node.name.as_ref().map_or(String::new(), |(name, _)| format!("\\n{}", label(name)));
        let style = match (node.deleted, node.seen) {
            (Some(_), _) => ", style=dotted",
            (None, false) => ", style=dashed",
            (None, true) => "",
        };
        let (node_name, id, record) = (dot_name(graph, *key), key.id, node.records.0);
        let server = graph.server(*key).filter(|_| graph.stores.len() > 1);
        let server = server.map_or(String::new(), |server| format!(" at {server}"));
        let kind = label(kind);
        let _ = writeln!(out, "  {node_name} [label=\"{kind}{name}\\n{id}{server}, record {record}\"{style}];");
    }
    for ((parent, child), edge) in &graph.edges {
        let by = edge.saver.or(edge.owner).filter(|by| *by != 0);
        let called = |id| name_of(graph, GraphKey { id, ..*parent });
        let by = by.map_or(String::new(), |by| called(by).map_or_else(|| by.to_string(), label));
        let style = if edge.removed.is_some() { ", style=dotted" } else { "" };
        let (parent, child) = (dot_name(graph, *parent), dot_name(graph, *child));
        let _ = writeln!(out, "  {parent} -> {child} [label=\"{by}\"{style}];");
    }
    out.push_str("}\n");
}

/// What a node is called in the file: by its number, and where there are several servers by its server's number too.
fn dot_name(graph: &Graph, key: GraphKey) -> String {
    if graph.stores.len() > 1 { format!("s{}n{}", key.store, key.id) } else { format!("n{}", key.id) }
}

/// A text from the traffic between quotes of Graphviz.
fn label(text: &str) -> String {
    escape(text).replace('\\', "\\\\").replace('"', "\\\"")
}
