//! Nodes and what they are below, as the page's view of the vault shows them.

use serde_json::{Value, json};

use crate::facts::{Graph, GraphKey, GraphNode};

/// Nodes in the page at most: the browser draws a line for each.
const MAX_NODES: usize = 5000;
/// Characters of one value.
const MAX_VALUE: usize = 200;

/// The nodes and references of a graph, for `data.js`; nothing for a capture without any.
pub(super) fn vault(graph: &Graph) -> Option<Value> {
    let last = graph.nodes.keys().take(MAX_NODES).next_back()?;
    let nodes: Vec<Value> =
        graph.nodes.range(..=last).map(|(key, node)| shown(&id(graph, *key), node)).collect();
    let links = graph.edges.iter().filter(|((parent, child), _)| parent <= last && child <= last);
    let links: Vec<Value> = links
        .map(|((parent, child), edge)| {
            json!({ "parent": id(graph, *parent), "child": id(graph, *child), "gone": edge.removed.is_some() })
        })
        .collect();
    let left_out = (graph.nodes.len() - nodes.len()) as u64 + graph.left_out;
    Some(json!({ "nodes": nodes, "links": links, "left_out": left_out }))
}

/// A node's number, and its server where there are several.
fn id(graph: &Graph, key: GraphKey) -> String {
    match graph.server(key).filter(|_| graph.stores.len() > 1) {
        Some(server) => format!("{} at {server}", key.id),
        None => key.id.to_string(),
    }
}

fn shown(id: &str, node: &GraphNode) -> Value {
    let fields: Vec<String> =
        node.fields.iter().map(|(name, field)| format!("{name}={}", text(&field.value))).collect();
    let mut said = vec![(node.records.0, "named for the first time".to_string())];
    for (name, field) in &node.fields {
        // Each old value went when the next one came.
        let set_by = field.old.iter().map(|(_, record)| *record).skip(1).chain([field.record]);
        said.extend(
            field
                .old
                .iter()
                .zip(set_by)
                .map(|((old, _), record)| (record, format!("{name} was {}", text(old)))),
        );
    }
    said.extend(node.deleted.map(|record| (record, "deleted".to_string())));
    said.sort();
    json!({
        "id": id, "type": node.kind, "name": node.name.as_ref().map(|(name, _)| name),
        "also": fields, "fetched": node.seen, "deleted": node.deleted.is_some(), "said": said,
    })
}

/// A value in one line.
fn text(value: &Value) -> String {
    let whole = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match whole.char_indices().nth(MAX_VALUE) {
        Some((end, _)) => format!("{}…", whole.get(..end).unwrap_or_default()),
        None => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_without_nodes_is_none() {
        assert_eq!(vault(&Graph::default()), None);
    }

    #[test]
    fn values_are_cut_between_characters() {
        let long = text(&Value::from("é".repeat(MAX_VALUE + 1)));
        assert_eq!(long.chars().count(), MAX_VALUE + 1);
        assert_eq!(text(&json!({ "value": 3, "name": "x" })), "{\"value\":3,\"name\":\"x\"}");
    }
}
