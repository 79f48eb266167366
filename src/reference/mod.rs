//! What the tables declare, put together for readers: each message and type with its fields, their
//! explanations, its examples, what answers it and what uses it.
//!
//! It is written as JSON (`json`) and as pages (`html`). It knows tables and their texts, and no
//! capture.

mod declaration;
mod html;
mod json;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::table::{Example, ExampleOf, ListedDeclaration, MessageDef, MessageId, Sender, Tables};

use declaration::{Declaration, Entry, EntryKind, FieldText, read_declaration};

pub use html::{Page, pages};
pub use json::item_json;

/// A message or another declaration, of one protocol.
pub struct Item<'a> {
    /// The tables that declare it.
    pub tables: &'a Tables,
    /// `message`, `struct`, `enum` …
    pub kind: &'static str,
    /// Its name.
    pub name: &'a str,
    /// Its place in the tables' texts.
    pub listed: &'a ListedDeclaration,
    /// The message that it declares, if it declares one.
    message: Option<(MessageId, &'a MessageDef)>,
    /// The number of a class in its family.
    number: Option<u64>,
    declaration: Declaration,
    examples: Vec<&'a Example>,
    /// Messages that answer it.
    answered_by: Vec<&'a str>,
    /// Names of declared types in its fields.
    uses: BTreeSet<&'a str>,
    /// Messages and types that use it.
    used_by: BTreeSet<&'a str>,
}

/// All that some tables declare: the messages in the order of their services, then the types. What
/// was declared again is there once, as it was declared last.
pub fn items(tables: &Tables) -> Vec<Item<'_>> {
    // Several services may have a message of the same name.
    let mut declared: HashMap<(Option<&str>, &str), &ListedDeclaration> = HashMap::new();
    for listed in tables.declarations() {
        let service = source_text(tables, listed).split_whitespace().nth(1);
        let service = service.filter(|_| listed.kind == "message");
        declared.insert((service, &listed.name), listed);
    }
    let numbers = class_numbers(tables);
    let mut examples = examples_by_name(tables);
    let mut all: Vec<Item<'_>> = Vec::new();
    for (id, def) in messages(tables) {
        let name = tables.name(def.name);
        let service = tables.service(def.service).map(|service| &*service.name);
        if let Some(listed) = declared.get(&(service, name)) {
            all.push(Item { message: Some((id, def)), ..Item::new(tables, listed) });
        }
    }
    let mut seen = HashSet::new();
    for listed in tables.declarations().iter().filter(|d| d.kind != "message") {
        if let Some(last) =
            declared.get(&(None, &*listed.name)).filter(|_| seen.insert(&listed.name))
        {
            all.push(Item::new(tables, last));
        }
    }
    for item in &mut all {
        item.number = numbers.get(item.name).copied().filter(|_| item.kind == "class");
        let message = item.message.map(|(id, _)| id);
        item.examples = examples.remove(&(message, item.name)).unwrap_or_default();
    }
    link(&mut all);
    all
}

impl<'a> Item<'a> {
    fn new(tables: &'a Tables, listed: &'a ListedDeclaration) -> Item<'a> {
        Item {
            tables,
            kind: listed.kind,
            name: &listed.name,
            listed,
            message: None,
            number: None,
            declaration: read_declaration(source_text(tables, listed)),
            examples: Vec::new(),
            answered_by: Vec::new(),
            uses: BTreeSet::new(),
            used_by: BTreeSet::new(),
        }
    }

    /// Its explanation.
    fn doc(&self) -> &'a str {
        &self.listed.doc
    }

    /// The service of a message.
    fn service(&self) -> Option<&'a str> {
        let (_, def) = self.message?;
        Some(&self.tables.service(def.service)?.name)
    }

    /// The messages that a message answers.
    fn answers(&self) -> impl Iterator<Item = &'a str> {
        let tables = self.tables;
        let answered = self.message.map_or(&[][..], |(_, def)| &def.answers);
        answered.iter().filter_map(|id| Some(tables.name(tables.message(*id)?.name)))
    }

    /// The file that declares it, and the line there.
    pub fn place(&self) -> (&'a str, usize) {
        let source = self.tables.sources().get(self.listed.file as usize);
        source.map_or(("", 0), |source| {
            let before = source.text.get(..self.listed.range.0).unwrap_or("");
            (&source.name, before.matches('\n').count() + 1)
        })
    }

    /// Its text in the table, without its explanation.
    pub fn text(&self) -> &'a str {
        source_text(self.tables, self.listed)
    }
}

/// The messages that count: where one is declared again, and where another one has its number, the
/// last. They are in the order of their services.
pub fn messages(tables: &Tables) -> Vec<(MessageId, &MessageDef)> {
    let mut replaced: HashSet<u32> = tables.replaced().iter().map(|taken| taken.old.0).collect();
    // One that either side may send may have lost its number on one side alone.
    for service in tables.services() {
        let numbered = service.messages.iter().flatten().map(|(_, id)| id);
        for id in numbered.chain(service.words.iter().flat_map(|words| words.values())) {
            replaced.remove(&id.0);
        }
    }
    let numbered = (0..).map(MessageId).zip(tables.messages());
    let mut all: Vec<(MessageId, &MessageDef)> =
        numbered.filter(|(id, _)| !replaced.contains(&id.0)).collect();
    all.sort_by_key(|(_, def)| def.service.0);
    all
}

/// The side that sends a message.
pub fn sender(direction: Sender) -> &'static str {
    match direction {
        Sender::Client => "client",
        Sender::Server => "server",
        Sender::Both => "both",
    }
}

/// The text of a declaration, from its first word to its last brace.
pub fn source_text<'a>(tables: &'a Tables, listed: &ListedDeclaration) -> &'a str {
    let source = tables.sources().get(listed.file as usize);
    let text = source.and_then(|source| source.text.get(listed.range.0..listed.range.1));
    let text = text.unwrap_or("");
    // Explanations of the next declaration stand before its first word.
    let text = if text.contains('{') {
        text.rfind('}').and_then(|end| text.get(..=end)).unwrap_or(text)
    } else {
        text.lines().next().unwrap_or(text)
    };
    text.trim_end()
}

/// The numbers of classes in their families, by the name of the class.
fn class_numbers(tables: &Tables) -> HashMap<&str, u64> {
    let members = tables.families().iter().flat_map(|family| &family.members);
    members
        .filter_map(|(number, layout)| {
            let ty = tables.layout(*layout)?.ty;
            Some((&*tables.type_def(ty)?.text, *number))
        })
        .collect()
}

/// The examples of each message and each structure, with its name.
fn examples_by_name(tables: &Tables) -> HashMap<(Option<MessageId>, &str), Vec<&Example>> {
    let mut all: HashMap<(Option<MessageId>, &str), Vec<&Example>> = HashMap::new();
    for example in tables.examples() {
        let name = match example.of {
            ExampleOf::Message(id) => tables.message(id).map(|def| tables.name(def.name)),
            ExampleOf::Layout(id) => tables
                .layout(id)
                .and_then(|layout| tables.type_def(layout.ty))
                .map(|def| &*def.text),
        };
        if let Some(name) = name {
            all.entry((example.of.message(), name)).or_default().push(example);
        }
    }
    all
}

/// Fills in who answers whom, and which type is used where.
fn link(all: &mut [Item<'_>]) {
    let types: HashSet<&str> =
        all.iter().filter(|item| item.message.is_none()).map(|item| item.name).collect();
    let mut answered: HashMap<(Option<&str>, &str), Vec<&str>> = HashMap::new();
    let mut used: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for item in all.iter_mut() {
        for request in item.answers() {
            answered.entry((item.service(), request)).or_default().push(item.name);
        }
        let mut words = BTreeSet::new();
        words_of(&item.declaration, &mut words);
        item.uses = words.iter().filter_map(|word| types.get(word.as_str()).copied()).collect();
        item.uses.remove(item.name);
        for name in &item.uses {
            used.entry(name).or_default().insert(item.name);
        }
    }
    for item in all {
        if item.message.is_some() {
            let key = (item.service(), item.name);
            item.answered_by = answered.remove(&key).unwrap_or_default();
        } else {
            item.used_by = used.remove(item.name).unwrap_or_default();
        }
    }
}

/// The words in the types of a declaration: some of them name types.
fn words_of(declaration: &Declaration, words: &mut BTreeSet<String>) {
    let alias = declaration.alias.iter().map(|(of, _)| of);
    let names = declaration.parent.iter().chain(&declaration.family).chain(alias);
    names.for_each(|text| add_words(text, words));
    words_of_entries(&declaration.entries, words);
}

fn words_of_entries(entries: &[Entry], words: &mut BTreeSet<String>) {
    for entry in entries {
        if let EntryKind::Field(field) = &entry.kind {
            add_words(&field.of, words);
            words_of_entries(&field.entries, words);
        }
    }
}

fn add_words(text: &str, words: &mut BTreeSet<String>) {
    let all = text.split(|c: char| !is_word(c)).filter(|word| !word.is_empty());
    words.extend(all.map(str::to_string));
}

/// Whether a character may be part of a name.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::proto::all_tables;

    /// Names of fields, those of fields within them too.
    fn names(entries: &[Entry], out: &mut Vec<String>) {
        for entry in entries {
            if let EntryKind::Field(field) = &entry.kind {
                out.push(field.name.clone());
            }
        }
    }

    #[test]
    fn the_fields_are_those_that_were_compiled() {
        let mut compared = 0;
        for lazy in all_tables(Vec::new()).unwrap() {
            let tables = lazy.get();
            for item in items(tables) {
                let layout = item.message.and_then(|(_, def)| def.layout);
                // What comes from another declaration stands there.
                if item.declaration.parent.is_some() || item.service().is_none() {
                    continue;
                }
                let Some(layout) = layout else { continue };
                let mut read = Vec::new();
                names(&item.declaration.entries, &mut read);
                let compiled: Vec<&str> =
                    tables.fields_of(layout).map(|(name, _)| tables.name(name)).collect();
                let own: Vec<&str> = compiled
                    .iter()
                    .copied()
                    .filter(|name| read.iter().any(|field| field == name))
                    .collect();
                assert!(own.len() >= read.len(), "{}: {read:?}, compiled {compiled:?}", item.name);
                compared += read.len();
            }
        }
        assert!(compared > 500, "{compared}");
    }

    #[test]
    fn every_message_and_type_is_there_once_and_linked() {
        let all = all_tables(Vec::new()).unwrap();
        let tables = all.iter().find(|lazy| lazy.protocol().name() == "moul").unwrap().get();
        let items = items(tables);
        let names: HashSet<(bool, &str)> =
            items.iter().map(|item| (item.message.is_some(), item.name)).collect();
        assert_eq!(names.len(), items.len());
        let item = |name: &str| items.iter().find(|item| item.name == name).unwrap();
        assert_eq!(item("Cli2Auth_VaultNodeFetch").answered_by, ["Auth2Cli_VaultNodeFetched"]);
        assert!(item("ENetError").used_by.contains("Auth2Cli_AcctLoginReply"));
        assert!(!item("Cli2Auth_VaultNodeFetch").examples.is_empty());
        assert!(!item("plMessage").examples.is_empty() && item("plNotifyMsg").number.is_some());
    }
}
