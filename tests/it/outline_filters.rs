//! What tests of [outlines and filters](crate::filters_outlines) share: messages, and what is asked
//! about them.

use crate::material::{self, Sent};
use moulsniff::capture::{Moment, Time};
use moulsniff::captured::Captured;
use moulsniff::facts::{InfoSource, write_info};
use moulsniff::filter::Filter;
use moulsniff::out::tree::Annotations;
use moulsniff::out::{Body, Outlined, Record, RoundTrips};
use moulsniff::proto::{LazyTables, Message, PROTOCOLS, Side, Transport};
use moulsniff::table::{Evaluator, Outcome, TableSource};
use moulsniff::tree::{Kind, Outline, Sym, TextKind, Tree, decode_text, mark};

/// The messages of captures that are short enough to be read many times.
pub fn short_messages(captures: &[(&str, &[&str])]) -> impl Iterator<Item = Sent> {
    let sent = captures.iter().flat_map(|capture| material::messages(*capture));
    sent.filter(|sent| (1..4096).contains(&sent.bytes.len()))
}

/// Asks filters about messages by their outlines and by their trees.
pub struct OutlineFilters {
    tables: Vec<LazyTables>,
    evaluator: Evaluator,
    pub tree: Tree,
    outline: Outline,
    /// How many messages were kept by their outlines.
    pub kept: usize,
}

fn record<B>(message: &Message<'_>, body: B) -> Record<'static, B> {
    let src = ([127, 0, 0, 1], 50_000).into();
    let dst = ([127, 0, 0, 1], 14_617).into();
    let service = if message.service == "game" { "game" } else { "auth" };
    let at = Moment { frame: 1, time: Time { seconds: 0, nanos: 0, digits: 6 } };
    let transport = Transport::Tcp;
    let from = message.from;
    let protocol = "moul";
    let round_trips = RoundTrips::default();
    Record {
        number: 1,
        at,
        transport,
        stream: 0,
        src,
        dst,
        from,
        protocol,
        service,
        round_trips,
        body,
    }
}

impl OutlineFilters {
    pub fn new() -> OutlineFilters {
        OutlineFilters::with("")
    }

    /// With further declarations for MOUL.
    pub fn with(declarations: &str) -> OutlineFilters {
        let further = |protocol: &str| match (protocol, declarations) {
            ("moul", text) if !text.is_empty() => {
                vec![TableSource { name: "further".into(), text: text.to_string().into() }]
            }
            _ => Vec::new(),
        };
        let tables = PROTOCOLS
            .iter()
            .map(|protocol| LazyTables::new(*protocol, further(protocol.name())).unwrap());
        let tables = tables.collect();
        OutlineFilters {
            tables,
            evaluator: Evaluator::default(),
            tree: Tree::new(),
            outline: Outline::default(),
            kept: 0,
        }
    }

    pub fn filter(&self, expression: &str) -> Filter {
        Filter::compile(expression, &self.tables, false)
            .unwrap_or_else(|mistake| panic!("{mistake}"))
    }

    /// Asks each filter about a message both ways; `dropped` counts what each drops by the outline.
    pub fn ask(
        &mut self,
        (service, from): (&str, Side),
        bytes: &[u8],
        filters: &[Filter],
        dropped: &mut [usize],
    ) {
        let moul = LazyTables::of(&self.tables, "moul").unwrap().get();
        let Some(id) = moul.service_named(service) else { return };
        self.evaluator.message(moul, id, from.index(), bytes, &mut self.outline);
        if !self.outline.is_whole() {
            return;
        }
        let outcome = self.evaluator.message(moul, id, from.index(), bytes, &mut self.tree);
        let Outcome::Message(id, length) = outcome else { return };
        let def = moul.message(id).unwrap();
        let name = Captured::new(moul.name(def.name));
        let bytes = &bytes[..length];
        let message = &Message {
            name,
            number: def.number,
            service,
            from,
            offset: 0,
            bytes,
            reply: None,
            no_reply: false,
            once: None,
        };
        let tree = &self.tree;
        let outline = &self.outline;
        let outlined = record(message, Outlined { message, id, tables: moul, outline });
        let whole = record(message, Body::Message { message, tables: moul, tree });
        for (filter, count) in filters.iter().zip(dropped) {
            *count += usize::from(filter.drops(&outlined));
            if let Some(decided) = filter.decides(&outlined, false) {
                assert_eq!(decided, filter.keeps(&whole, Annotations::default()), "{bytes:02x?}");
                self.kept += usize::from(decided);
            }
        }
    }

    /// One of the numbers that lie within objects alone, behind its path, in the message that was
    /// read last.
    pub fn a_placed_number(&self, random: usize) -> Option<(String, i128)> {
        let moul = LazyTables::of(&self.tables, "moul").unwrap().get();
        let mut numbers = Vec::new();
        let mut objects = vec![(0, "fields".to_string())];
        while let Some((object, path)) = objects.pop() {
            for (index, node) in self.tree.members(object) {
                let path = format!("{path}.{}", moul.name(node.name));
                match node.kind {
                    Kind::Struct => objects.push((index, path)),
                    Kind::Unsigned | Kind::Unsigned64 => numbers.push((path, node.value.into())),
                    Kind::Signed | Kind::Signed64 => {
                        numbers.push((path, i128::from(node.value as i64)))
                    }
                    _ => {}
                }
            }
        }
        let number = numbers.get(random % numbers.len().max(1))?;
        Some(number.clone())
    }

    /// One of the texts in the message that was read last, behind the name of its field.
    pub fn a_text(&self, bytes: &[u8], random: usize) -> Option<(String, String)> {
        let fields = self
            .tree
            .nodes()
            .iter()
            .filter(|node| !node.has(mark::SPAN) && node.name != Sym::ELEMENT);
        let texts = fields.filter_map(|node| match node.kind {
            Kind::Text(TextKind::Owned) => None,
            Kind::Text(kind) => Some((kind, node)),
            _ => None,
        });
        let texts: Vec<_> = texts.collect();
        let (kind, node) = texts.get(random % texts.len().max(1))?;
        let mut text = String::new();
        decode_text(*kind, &self.tree.content(node, bytes), &mut text);
        let moul = LazyTables::of(&self.tables, "moul").unwrap().get();
        Some((moul.name(node.name).to_string(), text))
    }

    /// The line that says what the message is about that was read last.
    pub fn info(&self, bytes: &[u8]) -> Option<String> {
        let moul = LazyTables::of(&self.tables, "moul").unwrap().get();
        let id = moul.message_called(self.tree.get(0)?.name)?;
        let layout = moul.message(id).unwrap().layout;
        let mut line = String::new();
        let source = InfoSource { tables: moul, tree: &self.tree, bytes, layout, redact: false };
        write_info(source, &|_| None, &mut line);
        Some(line)
    }

    /// One of the numbers in the message that was read last, behind the path of its field.
    pub fn a_number(&self, random: usize) -> Option<(String, i128)> {
        let moul = LazyTables::of(&self.tables, "moul").unwrap().get();
        let mut numbers = Vec::new();
        for (index, node) in
            self.tree.nodes().iter().enumerate().filter(|(_, node)| !node.has(mark::SPAN))
        {
            let number = match node.kind {
                Kind::Unsigned | Kind::Unsigned64 => node.value.into(),
                Kind::Signed | Kind::Signed64 => i128::from(node.value as i64),
                _ => continue,
            };
            // An element has no name of its own, but the list that holds it.
            let list = self.tree.nodes()[..index]
                .iter()
                .rfind(|list| list.kind == Kind::List && list.end as usize > index);
            match (node.name, list) {
                (Sym::ELEMENT, Some(list)) => {
                    numbers.push((format!("{}[*]", moul.name(list.name)), number))
                }
                (Sym::ELEMENT, None) => {}
                (name, _) => numbers.push((moul.name(name).to_string(), number)),
            }
        }
        let number = numbers.get(random % numbers.len().max(1))?;
        Some(number.clone())
    }

    /// A field whose number has a name, and that name.
    pub fn a_name(&self, random: usize) -> Option<(&str, &str)> {
        let moul = LazyTables::of(&self.tables, "moul").unwrap().get();
        let named = self.tree.nodes().iter().filter_map(|node| {
            let symbols = moul
                .symbols(node.ty)
                .filter(|symbols| !symbols.flags && node.name != Sym::ELEMENT)?;
            Some((moul.name(node.name), &*symbols.get(node.value)?.name))
        });
        let named: Vec<(&str, &str)> = named.collect();
        named.get(random % named.len().max(1)).copied()
    }
}
