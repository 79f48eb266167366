//! A server's store of nodes, with their fields and edges, as far as the messages show it: clients
//! read nodes, change them, and link them below others.
//!
//! Tables mark the fields that are a node, its number, a parent, a child (`graph WORD`). A change
//! that a client asks for is applied once its request is answered without a refusal. This file
//! knows no protocol and no output; the caller formats values.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;

use serde_json::Value;

use super::marks::{Mark, Marks};
use super::{Account, Share, TransportStream, definition, refused};
use crate::maps::SeededMap;
use crate::record::{Body, MessageView, Record};
use crate::session::Side;
use crate::table::{GraphRole, MessageDef};
use crate::tree::{Kind, Node};

/// The most servers; nodes of further ones are counted as left out.
const MAX_STORES: usize = 1024;
/// The most old values kept of one field, and earlier removals kept of one edge.
const MAX_OLD: usize = 64;
/// The most requests that wait for a reply.
const MAX_PENDING: usize = 4096;
/// Characters of a name.
const MAX_NAME: usize = 256;

/// Identifies a node: its number, and the server that stores it. Two servers give the same number
/// to different nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GraphKey {
    /// Which of the graph's `stores`, counted from 0.
    pub store: u16,
    /// The node's number.
    pub id: u64,
}

/// A field of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphField {
    /// Its latest value.
    pub value: Value,
    /// The record that set it.
    pub record: u64,
    /// The values before, each with the record that had it first; the oldest first.
    pub old: VecDeque<(Value, u64)>,
}

/// A node.
#[derive(Clone, Debug, Default)]
pub struct GraphNode {
    /// The name of its kind.
    pub kind: Option<String>,
    /// Its name, and the kinds of things that this is a name of.
    pub name: Option<(String, Vec<String>)>,
    /// Its fields, in the order in which they came up.
    pub fields: Vec<(String, GraphField)>,
    /// Whether its fields were seen; otherwise others refer to it alone.
    pub seen: bool,
    /// The first record and the last one that speak of it.
    pub records: (u64, u64),
    /// The record that deleted it.
    pub deleted: Option<u64>,
}

/// A node below another one.
#[derive(Clone, Debug, Default)]
pub struct GraphEdge {
    /// The owner of the edge.
    pub owner: Option<u64>,
    /// The maker of the edge.
    pub saver: Option<u64>,
    /// The first record and the last one that speak of it.
    pub records: (u64, u64),
    /// The record that removed it.
    pub removed: Option<u64>,
    /// The records that removed it before it was made again.
    pub removed_before: Vec<u64>,
}

/// Nodes and edges. Takes records in capture order, and keeps what they tell as far as the run's
/// account has room.
#[derive(Default)]
pub struct Graph {
    /// The servers whose stores the nodes are in, in the order in which they came up.
    pub stores: Vec<SocketAddr>,
    /// Nodes by their servers and numbers.
    pub nodes: BTreeMap<GraphKey, GraphNode>,
    /// Edges by parent and child.
    pub edges: BTreeMap<(GraphKey, GraphKey), GraphEdge>,
    /// Nodes and edges that are left out because there are too many.
    pub left_out: u64,
    share: Share,
    /// Which protocols have such nodes.
    have_nodes: SeededMap<&'static str, bool>,
    pending: HashMap<u64, GraphChange>,
    pending_order: VecDeque<(u64, TransportStream)>,
}

/// The change that a request asks for.
#[derive(Clone, Default)]
struct GraphChange {
    record: u64,
    store: u16,
    target: Option<u64>,
    fields: Vec<(String, Value)>,
    kind: Option<String>,
    name: Option<(String, Vec<String>)>,
    edge: Option<ToldEdge>,
}

#[derive(Clone, Copy)]
struct ToldEdge {
    parent: u64,
    child: u64,
    owner: Option<u64>,
    saver: Option<u64>,
    removed: bool,
}

/// A node with a role in the store, in the structure that holds it.
type GraphMark<'a> = Mark<'a, GraphRole>;

impl Graph {
    /// An empty graph.
    pub fn new(account: &Account) -> Graph {
        Graph { share: account.share(), ..Graph::default() }
    }

    /// There are so many bytes more to keep, and so many fewer.
    fn weigh(&mut self, more: usize, less: usize) {
        self.share.hold((self.share.held() + more).saturating_sub(less));
    }

    /// The address of the server in whose store a node is.
    pub fn server(&self, key: GraphKey) -> Option<SocketAddr> {
        self.stores.get(usize::from(key.store)).copied()
    }

    /// Takes the next record. `value` makes the value of a node of its tree.
    pub fn record(&mut self, record: &Record<'_>, value: &mut dyn FnMut(u32) -> Value) {
        let Body::Message { message, tables, tree } = &record.body else { return };
        let find = || tables.any_type_has(|facts| facts.graph.is_some());
        if !*self.have_nodes.entry(record.protocol).or_insert_with(find) {
            return;
        }
        let values = MessageView { tables, tree, bytes: message.bytes };
        let Some(def) = definition(message.name, tables, tree) else { return };
        let answered = message.reply.and_then(|reply| self.take_pending(reply.record));
        let is_struct = |kind| kind == Kind::Struct;
        let marked = Marks::of(&values, |facts| facts.graph, |_| true, is_struct);
        if marked.all.is_empty() && answered.is_none() || refused(def, &values).is_some() {
            return;
        }
        let Some(store) = self.store(record) else {
            self.left_out += 1;
            return;
        };
        let target = number(&values, &marked, 0, GraphRole::Target);
        if let Some(mut asked) = answered {
            asked.target = asked.target.or(target);
            self.apply(asked);
        }
        for asked in marked
            .all
            .iter()
            .filter(|marked| matches!(marked.role, GraphRole::Asked | GraphRole::Target))
        {
            self.speak_of(&values, asked, GraphKey { store, id: 0 }, record.number);
        }
        for one in told(&values, &marked, value) {
            self.take(def, record, GraphChange { record: record.number, store, ..one });
        }
        let deleted =
            number(&values, &marked, 0, GraphRole::Deleted).map(|id| GraphKey { store, id });
        if let Some(node) = deleted.and_then(|key| self.node(key, record.number)) {
            node.deleted = Some(record.number);
        }
    }

    /// The store that the server of a record's stream has.
    fn store(&mut self, record: &Record<'_>) -> Option<u16> {
        let server = if record.from == Side::Client { record.dst } else { record.src };
        let known = self.stores.iter().position(|known| *known == server);
        if known.is_none() && self.stores.len() < MAX_STORES {
            self.stores.push(server);
            return u16::try_from(self.stores.len() - 1).ok();
        }
        known.and_then(|at| u16::try_from(at).ok())
    }

    /// Applies changes from a server at once, and those that a client asks for once they are
    /// answered.
    fn take(&mut self, def: &MessageDef, record: &Record<'_>, one: GraphChange) {
        if !def.expects_reply {
            return self.apply(one);
        }
        self.pending_order.push_back((record.number, (record.transport, record.stream)));
        self.weigh(one.weight(), 0);
        self.pending.insert(record.number, one);
        while self.pending_order.len() > MAX_PENDING || !self.share.has_room_for(1) {
            let Some((oldest, _)) = self.pending_order.pop_front() else { break };
            self.take_pending(oldest);
        }
    }

    /// The change that a request asked for.
    fn take_pending(&mut self, record: u64) -> Option<GraphChange> {
        let change = self.pending.remove(&record)?;
        self.weigh(0, change.weight());
        Some(change)
    }

    fn apply(&mut self, told: GraphChange) {
        let GraphChange { record, store, target, fields, kind, name, edge } = told;
        if let Some(edge) = edge {
            self.edge(store, edge, record);
        }
        let Some(id) = target.filter(|_| !fields.is_empty()) else { return };
        if !self.share.has_room_for(1) {
            self.left_out += 1;
            return;
        }
        let Some(node) = self.node(GraphKey { store, id }, record) else { return };
        node.seen = true;
        node.deleted = None;
        let named = |node: &GraphNode| {
            node.name.as_ref().map_or(0, |(name, kinds)| name_weight(name, kinds))
        };
        let before = named(node);
        node.kind = kind.or(node.kind.take());
        node.name = name.or(node.name.take());
        let mut more = named(node);
        let mut less = before;
        for (name, value) in fields {
            let own = FIELD + name.len() + weight(&value);
            match node.fields.iter_mut().find(|(known, _)| *known == name) {
                Some((_, field)) if field.value == value => {}
                Some((_, field)) => {
                    more += own;
                    let old = std::mem::replace(&mut field.value, value);
                    field.old.push_back((old, std::mem::replace(&mut field.record, record)));
                    if field.old.len() > MAX_OLD
                        && let Some((oldest, _)) = field.old.pop_front()
                    {
                        less += FIELD + name.len() + weight(&oldest);
                    }
                }
                None => {
                    more += own;
                    node.fields.push((name, GraphField { value, record, old: VecDeque::new() }));
                }
            }
        }
        self.weigh(more, less);
    }

    fn edge(&mut self, store: u16, edge: ToldEdge, record: u64) {
        let key = (GraphKey { store, id: edge.parent }, GraphKey { store, id: edge.child });
        self.node(key.0, record);
        self.node(key.1, record);
        if !self.edges.contains_key(&key) {
            if !self.share.has_room_for(EDGE) {
                self.left_out += 1;
                return;
            }
            self.weigh(EDGE, 0);
        }
        let known = self
            .edges
            .entry(key)
            .or_insert_with(|| GraphEdge { records: (record, record), ..GraphEdge::default() });
        known.records.1 = known.records.1.max(record);
        known.owner = edge.owner.or(known.owner);
        known.saver = edge.saver.or(known.saver);
        if edge.removed {
            known.removed.get_or_insert(record);
        } else if let Some(before) = known.removed.take() {
            known.removed_before.push(before);
            if known.removed_before.len() > MAX_OLD {
                known.removed_before.remove(0);
            }
        }
    }

    /// A message names nodes by their numbers; `base` is any node of their store.
    fn speak_of(
        &mut self,
        values: &MessageView<'_>,
        marked: &GraphMark<'_>,
        base: GraphKey,
        record: u64,
    ) {
        if marked.node.kind == Kind::List {
            let ids: Vec<u64> = values
                .tree
                .members(marked.index)
                .filter_map(|(_, node)| values.number(node))
                .collect();
            for id in ids {
                self.node(GraphKey { id, ..base }, record);
            }
        } else if let Some(id) = values.number(marked.node) {
            self.node(GraphKey { id, ..base }, record);
        }
    }

    /// The node with a number. 0 means no node.
    fn node(&mut self, key: GraphKey, record: u64) -> Option<&mut GraphNode> {
        if key.id == 0 {
            return None;
        }
        if !self.nodes.contains_key(&key) {
            if !self.share.has_room_for(NODE) {
                self.left_out += 1;
                return None;
            }
            self.weigh(NODE, 0);
        }
        let node = self
            .nodes
            .entry(key)
            .or_insert_with(|| GraphNode { records: (record, record), ..GraphNode::default() });
        node.records = (node.records.0.min(record), node.records.1.max(record));
        Some(node)
    }
}

/// The nodes and edges in a message.
fn told(
    values: &MessageView<'_>,
    marked: &Marks<'_, GraphRole>,
    value: &mut dyn FnMut(u32) -> Value,
) -> Vec<GraphChange> {
    let mut told = Vec::new();
    for mask in marked.all.iter().filter(|marked| marked.role == GraphRole::Mask) {
        let inside = |role| marked.within(mask.parent, role);
        let id = inside(GraphRole::Id).and_then(|m| values.number(m.node));
        told.push(GraphChange {
            target: id.or(number(values, marked, 0, GraphRole::Target)),
            fields: fields(values, mask.parent, value),
            kind: inside(GraphRole::Kind).and_then(|m| values.word(m.node, MAX_NAME)),
            name: name(values, mask.parent, inside(GraphRole::Id).map(|id| id.node)),
            ..GraphChange::default()
        });
    }
    for parent in marked.all.iter().filter(|marked| marked.role == GraphRole::Parent) {
        let beside = |role| number(values, marked, parent.parent, role);
        let removed = beside(GraphRole::Removed);
        let child = removed.or(beside(GraphRole::Child));
        if let (Some(above), Some(child)) = (values.number(parent.node), child) {
            let owner = beside(GraphRole::Owner);
            let saver = beside(GraphRole::Saver);
            let edge = ToldEdge { parent: above, child, owner, saver, removed: removed.is_some() };
            told.push(GraphChange { edge: Some(edge), ..GraphChange::default() });
        }
    }
    told
}

/// The number with a role in a structure.
fn number(
    values: &MessageView<'_>,
    marked: &Marks<'_, GraphRole>,
    parent: u32,
    role: GraphRole,
) -> Option<u64> {
    marked.within(parent, role).and_then(|marked| values.number(marked.node))
}

/// The fields of a node, but for the mask that says which there are.
fn fields(
    values: &MessageView<'_>,
    index: u32,
    value: &mut dyn FnMut(u32) -> Value,
) -> Vec<(String, Value)> {
    let members = values.tree.members(index);
    let told = members.filter(|(_, node)| {
        let facts = values.tables.type_def(node.ty).and_then(|def| def.facts.as_deref());
        !facts.is_some_and(|facts| matches!(facts.graph, Some(GraphRole::Id | GraphRole::Mask)))
    });
    told.map(|(at, node)| (values.tables.name(node.name).to_string(), value(at))).collect()
}

/// The name of a node: the first text that names the thing with the number `id`.
fn name(values: &MessageView<'_>, index: u32, id: Option<&Node>) -> Option<(String, Vec<String>)> {
    let own = id.and_then(|id| values.tables.type_def(id.ty)).map_or(&[][..], |def| &def.ids);
    values.tree.members(index).find_map(|(_, node)| {
        let def = values.tables.type_def(node.ty)?;
        let is_own = |kind| own.is_empty() || own.contains(kind);
        if !def.names.iter().any(is_own) {
            return None;
        }
        let kinds = def.names.iter().map(|kind| values.tables.name(*kind).to_string()).collect();
        Some((values.text(node, MAX_NAME)?, kinds))
    })
}

impl GraphChange {
    /// The memory that it takes, roughly.
    fn weight(&self) -> usize {
        let fields = self.fields.iter().map(|(name, value)| FIELD + name.len() + weight(value));
        size_of::<GraphChange>()
            + fields.sum::<usize>()
            + self.name.as_ref().map_or(0, |(name, kinds)| name_weight(name, kinds))
    }
}

/// Memory that a node and an edge take, roughly: trees of them are half empty at most.
const NODE: usize = 2 * size_of::<(GraphKey, GraphNode)>();
const EDGE: usize = 2 * size_of::<((GraphKey, GraphKey), GraphEdge)>();
/// Memory that a field takes beside its name and value, roughly.
const FIELD: usize = size_of::<GraphField>() + ALLOCATION;
/// Memory that each allocation takes beside what was asked for, roughly.
const ALLOCATION: usize = 24;

/// The memory that a value takes, roughly.
fn weight(value: &Value) -> usize {
    let own = size_of::<Value>() + ALLOCATION;
    match value {
        Value::String(text) => own + text.len(),
        Value::Array(list) => own + list.iter().map(weight).sum::<usize>(),
        // An entry has its key, and a place in the map's table.
        Value::Object(map) => {
            own + map.iter().map(|(key, value)| 2 * own + key.len() + weight(value)).sum::<usize>()
        }
        _ => own,
    }
}

/// The memory that a name takes, and the kinds of things it is a name of.
fn name_weight(name: &str, kinds: &[String]) -> usize {
    let text = |text: &str| size_of::<String>() + ALLOCATION + text.len();
    text(name) + kinds.iter().map(|kind| text(kind)).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(id: u64, record: u64, text: &str) -> GraphChange {
        GraphChange {
            record,
            target: Some(id),
            fields: vec![("text".into(), text.into())],
            ..GraphChange::default()
        }
    }

    #[test]
    fn memory_of_values_that_are_gone_is_given_back() {
        let account = Account::default();
        let mut graph = Graph::new(&account);
        let long = "x".repeat(1 << 19);
        // Repeated values, and values that replace each other, make 1 GiB in all.
        for record in 0..1000 {
            graph.apply(change(1, record, &long));
            graph.apply(change(2, record, &format!("{record}")));
        }
        assert_eq!(graph.left_out, 0);
        assert!(graph.share.held() < 2 << 20);
        for record in 1000..2000 {
            graph.apply(change(3 + record % 2, record, &format!("{record}{long}")));
        }
        // Others have what is left of the account.
        let held = graph.share.held();
        let mut others = account.share();
        others.hold(usize::MAX / 2);
        graph.apply(change(5, 2000, &long));
        assert_eq!((graph.left_out, graph.share.held()), (1, held));
    }
}
