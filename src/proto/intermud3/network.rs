//! Collects facts about the network from packets: muds with their states, routers with their
//! addresses, channels with their hosts.
//!
//! Mud and channel lists come as deltas. This file sums them up, in bounded space.

use std::sync::Arc;

use crate::maps::SeededMap;
use crate::proto::Moment;
use crate::session::{Learned, LearnedValue};
use crate::table::{MessageDef, MessageId, Tables};
use crate::tree::{Kind, Node, Sym, TextKind, Tree, decode_text, mark};

/// More muds, routers or channels than this are not kept for one connection.
const LIMIT: usize = 4096;
/// Nor are those whose name and facts together have more bytes than this.
const LONGEST: usize = 4096;

/// The facts about when a mud came to the network, and when it left.
const CHANGES: [&str; 2] = ["came", "went"];

/// Memory of an entry beside its texts, roughly.
const ENTRY: usize = 256;

/// The network as known so far.
#[derive(Default)]
pub(super) struct Network {
    contents: Arc<Vec<NetworkContent>>,
    known: SeededMap<(Group, String), Facts>,
    /// Whether a first list of muds came. Later ones tell changes.
    listed: bool,
    /// Bytes of all names and facts.
    bytes: usize,
}

type Facts = Vec<(&'static str, String)>;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Group {
    Muds,
    Routers,
    Channels,
}

/// What a message says about the network, and in which of its elements.
#[derive(Clone, Copy, Default)]
enum NetworkContent {
    #[default]
    Nothing,
    Startup,
    Muds(Sym),
    Routers(Sym),
    Channels(Sym),
    /// A mapping whose `channels` are a channel list.
    RouterChannels(Sym),
}

impl NetworkContent {
    /// What each message of the tables says.
    fn of_messages(tables: &Tables) -> Vec<NetworkContent> {
        let sym = |name| tables.sym(name).unwrap_or(Sym::ELEMENT);
        let content = |def: &MessageDef| match tables.name(def.name) {
            "startup-req" | "startup-req-1" | "startup-req-2" | "startup-req-3" => {
                NetworkContent::Startup
            }
            "mudlist" => NetworkContent::Muds(sym("info_mapping")),
            "irn-mudlist-delta" | "irn-mudlist-altered" => NetworkContent::Muds(sym("mudlist")),
            "startup-reply" => NetworkContent::Routers(sym("router_list")),
            "chanlist-reply" => NetworkContent::Channels(sym("channel_list")),
            "irn-chanlist-delta" | "irn-chanlist-altered" => {
                NetworkContent::RouterChannels(sym("data"))
            }
            _ => NetworkContent::Nothing,
        };
        tables.messages().iter().map(content).collect()
    }
}

impl Network {
    /// An empty network.
    pub(super) fn new(tables: &Tables) -> Self {
        Network { contents: tables.derived(NetworkContent::of_messages), ..Network::default() }
    }

    /// Learns from a packet.
    pub(super) fn learn(&mut self, id: MessageId, at: Moment, view: &PacketView<'_>) {
        let content = self.contents.get(id.0 as usize).copied().unwrap_or_default();
        match content {
            NetworkContent::Nothing => {}
            NetworkContent::Startup => {
                if let Some(name) = view.value_of(0, "originator_mudname") {
                    let facts = view
                        .facts(0, &["player_port", "mudlib", "driver", "mud_type", "open_status"]);
                    self.put(Group::Muds, view.text(name), facts, "connects here");
                }
            }
            NetworkContent::Muds(list) => {
                self.each(list, Group::Muds, at, view);
                self.listed = true;
            }
            NetworkContent::Channels(list) => self.each(list, Group::Channels, at, view),
            NetworkContent::Routers(list) => {
                for (_, router) in view.elements(view.child(0, list)) {
                    let facts = view.facts(router, &["address"]);
                    if let Some(name) = view.value_of(router, "router_name") {
                        self.put(Group::Routers, view.text(name), facts, "");
                    }
                }
            }
            NetworkContent::RouterChannels(data) => {
                let data = view.child(0, data);
                let channels = data.and_then(|data| view.value_of(data, "channels"));
                for (node, index) in view.elements(channels) {
                    self.entry(Group::Channels, node, index, at, view);
                }
            }
        }
    }

    /// All that is known, sorted by sort and name.
    pub(super) fn learned(&self) -> Vec<Learned> {
        let mut known: Vec<(&(Group, String), &Facts)> = self.known.iter().collect();
        known.sort_unstable_by_key(|(key, _)| *key);
        known
            .into_iter()
            .map(|((group, name), facts)| Learned {
                group: match group {
                    Group::Muds => "muds",
                    Group::Routers => "routers",
                    Group::Channels => "channels",
                },
                name: name.clone(),
                heading: 0,
                of_stream: facts.iter().any(|(key, _)| CHANGES.contains(key)),
                facts: facts
                    .iter()
                    .map(|(key, text)| (*key, LearnedValue::Text(text.clone())))
                    .collect(),
            })
            .collect()
    }

    fn each(&mut self, list: Sym, group: Group, at: Moment, view: &PacketView<'_>) {
        for (node, index) in view.elements(view.child(0, list)) {
            self.entry(group, node, index, at, view);
        }
    }

    /// One entry of a mud or channel list. 0 instead of an array means that it is gone.
    fn entry(&mut self, group: Group, node: &Node, index: u32, at: Moment, view: &PacketView<'_>) {
        let Some(name) = view.tree.dynamic(node.name) else {
            return;
        };
        let wanted: &[&'static str] = match group {
            Group::Channels => &["channel_host", "channel_type"],
            _ => &["ip_addr", "ip", "player_port", "mudlib", "driver", "mud_type", "open_status"],
        };
        let deleted = !matches!(node.kind, Kind::Struct | Kind::List);
        let mut facts = view.facts(index, wanted);
        // A mud's state has another name between routers.
        let state = view.value_of(index, "state").or_else(|| view.value_of(index, "restart_delay"));
        let state = match (group, state) {
            _ if deleted => "deleted".to_string(),
            (Group::Muds, Some(state)) => match view.number(state) {
                Some(-1) => "up".into(),
                Some(0) => "down".into(),
                Some(n) => format!("down for {n} s"),
                None => String::new(),
            },
            _ => String::new(),
        };
        if deleted && let Some(known) = self.known.get(&(group, name.raw().to_string())) {
            facts = known.iter().filter(|f| f.0 != "state").cloned().collect();
        }
        if group == Group::Muds {
            self.note_change(name.raw(), &state, at, &mut facts);
        }
        self.put(group, name.raw().to_string(), facts, &state);
    }

    /// Adds to a mud's facts the frames in which it came to the network and left it. The first list
    /// does not tell this, only later ones do.
    fn note_change(&self, name: &str, state: &str, at: Moment, facts: &mut Facts) {
        let known = self.known.get(&(Group::Muds, name.to_string()));
        facts.retain(|(key, _)| !CHANGES.contains(key));
        let kept = known.into_iter().flatten().filter(|(key, _)| CHANGES.contains(key)).cloned();
        facts.splice(0..0, kept);
        let there = |state: &str| matches!(state, "up" | "connects here");
        let before = known.and_then(|facts| facts.iter().find(|(key, _)| *key == "state"));
        let was = before.map(|(_, state)| there(state));
        if !self.listed || state.is_empty() || was == Some(there(state)) {
            return;
        }
        let [came, went] = CHANGES;
        let change = if there(state) { came } else { went };
        facts.retain(|(key, _)| *key != change);
        facts.insert(0, (change, format!("in frame {}", at.frame)));
    }

    fn put(&mut self, group: Group, name: String, mut facts: Facts, state: &str) {
        if !state.is_empty() {
            facts.insert(0, ("state", state.to_string()));
        }
        let size = size_of_entry(&name, &facts);
        if size > LONGEST {
            return;
        }
        let key = (group, name);
        if self.known.len() < LIMIT || self.known.contains_key(&key) {
            let name_length = key.1.len();
            let before = self.known.insert(key, facts);
            let freed = before.map_or(0, |facts| name_length + size_of_facts(&facts));
            self.bytes = (self.bytes + size).saturating_sub(freed);
        }
    }

    /// Memory of names and facts, roughly, in bytes.
    pub(super) fn held(&self) -> usize {
        self.bytes + ENTRY * self.known.len()
    }

    /// Forgets all that is known.
    pub(super) fn forget(&mut self) {
        self.known.clear();
        self.bytes = 0;
    }
}

fn size_of_facts(facts: &Facts) -> usize {
    facts.iter().map(|(_, text)| text.len()).sum()
}

fn size_of_entry(name: &str, facts: &Facts) -> usize {
    name.len() + size_of_facts(facts)
}

/// A packet's tree, and the tables and bytes needed to read it.
pub(super) struct PacketView<'a> {
    /// The tables that it refers to.
    pub(super) tables: &'a Tables,
    /// Its tree.
    pub(super) tree: &'a Tree,
    /// Its bytes, the length first.
    pub(super) bytes: &'a [u8],
}

impl<'a> PacketView<'a> {
    fn child(&self, parent: u32, name: Sym) -> Option<u32> {
        self.tree.children(parent).find(|(_, n)| n.name == name).map(|(i, _)| i)
    }

    /// An element of a position or a key: of an array, a mapping, or a mapping that is a list of
    /// pairs.
    fn value_of(&self, parent: u32, name: &str) -> Option<u32> {
        let has_name = |node: &Node| match self.tree.dynamic(node.name) {
            Some(key) => key.raw() == name,
            None => self.tables.name(node.name) == name,
        };
        self.elements(Some(parent)).find_map(|(node, index)| {
            if has_name(node) {
                return Some(index);
            }
            let mut pair =
                self.elements((node.kind == Kind::List).then_some(index)).map(|(_, index)| index);
            let key = pair.next()?;
            let value = pair.next()?;
            (self.text(key) == name).then_some(value)
        })
    }

    fn elements(&self, parent: Option<u32>) -> impl Iterator<Item = (&'a Node, u32)> + use<'a> {
        let tree = self.tree;
        parent
            .into_iter()
            .flat_map(move |p| tree.children(p))
            .filter(|(_, n)| !n.has(mark::SPAN))
            .map(|(i, n)| (n, i))
    }

    fn facts(&self, parent: u32, names: &[&'static str]) -> Facts {
        names
            .iter()
            .filter_map(|name| Some((*name, self.text(self.value_of(parent, name)?))))
            .filter(|(_, text)| !text.is_empty())
            .collect()
    }

    fn number(&self, index: u32) -> Option<i64> {
        let node = self.tree.get(index)?;
        matches!(node.kind, Kind::Unsigned | Kind::Signed).then_some(node.value as i64)
    }

    fn text(&self, index: u32) -> String {
        let mut out = String::new();
        let Some(node) = self.tree.get(index) else {
            return out;
        };
        match node.kind {
            Kind::Text(TextKind::Owned) => out.push_str(self.tree.owned(node.value).raw()),
            Kind::Text(kind) => {
                let (start, len) = node.content();
                let bytes = self.bytes.get(start..start + len).unwrap_or(&[]);
                decode_text(kind, bytes, &mut out);
            }
            _ => {
                let symbols = self.tables.symbols(node.ty);
                if let Some(value) = symbols.and_then(|s| s.get(node.value)) {
                    out.push_str(&value.name);
                } else if let Some(n) = self.number(index) {
                    out.push_str(&n.to_string());
                }
            }
        }
        out
    }
}
