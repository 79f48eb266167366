//! The declarations as pages for a browser: an index that can be searched, and a page for each
//! message and type. The pages ask for nothing outside their folder.
//!
//! Names of files and anchors are made of names in the tables alone, so links from outside stay.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use super::{Entry, EntryKind, FieldText, Item, is_word, sender};
use crate::digits::counted;
use crate::examples::read_example;
use crate::print::tree::{TreeOptions, TreeWriter};
use crate::print::{Marks, Paint, Style};
use crate::record::{MessageView, Names};
use crate::table::{Example, Tables};
use crate::tree::Tree;

/// A file of the reference: its path below the folder, and its text.
pub struct Page {
    /// The path, with `/` between its parts.
    pub path: String,
    /// The text.
    pub text: String,
}

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("search.js");

/// What a page of a message has at most of examples, in bytes: it is to open quickly on a phone.
const MAX_EXAMPLES: usize = 24 << 10;

/// All pages. `all` has the declarations of each protocol.
pub fn pages(all: &[Vec<Item<'_>>]) -> Vec<Page> {
    let links: Vec<Links<'_>> = all.iter().map(|items| Links::of(items)).collect();
    let mut pages = vec![
        Page { path: "index.html".into(), text: index(all, &links) },
        Page { path: "style.css".into(), text: STYLE.into() },
        Page { path: "search.js".into(), text: SCRIPT.into() },
    ];
    for (items, links) in all.iter().zip(&links) {
        let page = |item| Page { path: links.path(item).into(), text: item_page(item, links) };
        pages.extend(items.iter().map(page));
    }
    pages
}

/// The declarations of a protocol that have pages, and the paths of these.
#[derive(Default)]
struct Links<'a> {
    /// By the declaration's place in the tables' texts.
    pages: HashMap<(u32, usize), String>,
    /// Several services may have a message of the same name.
    messages: HashMap<&'a str, Vec<&'a Item<'a>>>,
    types: HashMap<&'a str, &'a Item<'a>>,
}

impl<'a> Links<'a> {
    fn of(items: &'a [Item<'a>]) -> Links<'a> {
        let mut links = Links::default();
        let mut taken = HashSet::new();
        for item in items {
            let mut path = path_of(item);
            // Some file systems take names for the same that differ in case alone.
            if !taken.insert(path.to_lowercase()) {
                path.push_str("=2");
            }
            path.push_str(".html");
            links.pages.insert((item.listed.file, item.listed.range.0), path);
            match item.message {
                Some(_) => links.messages.entry(item.name).or_default().push(item),
                None => _ = links.types.insert(item.name, item),
            }
        }
        links
    }

    /// The path of a declaration's page.
    fn path(&self, item: &Item<'_>) -> &str {
        self.pages.get(&(item.listed.file, item.listed.range.0)).map_or("", String::as_str)
    }

    /// The name of a type, as a link where it has a page.
    fn type_name(&self, name: &str) -> String {
        self.link(name, self.types.get(name).copied())
    }

    /// The name of a message, as a link where it has a page: of the service's own, if it has one.
    fn message_name(&self, name: &str, service: Option<&str>) -> String {
        let named = self.messages.get(name).map_or(&[][..], Vec::as_slice);
        let own = named.iter().find(|item| item.service() == service);
        self.link(name, own.or(named.first()).copied())
    }

    fn link(&self, name: &str, item: Option<&Item<'_>>) -> String {
        match item {
            Some(item) => {
                format!("<a href=\"../../{}\">{}</a>", escaped(self.path(item)), escaped(name))
            }
            None => escaped(name),
        }
    }

    /// The text of a type; the types that it names are links.
    fn type_text(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let (word, behind) = rest.split_at(length);
            if !word.is_empty() {
                out.push_str(&self.type_name(word));
            }
            let other = behind.find(is_word).unwrap_or(behind.len());
            let (signs, next) = behind.split_at(other);
            out.push_str(&escaped(signs));
            rest = next;
        }
        out
    }
}

/// `moul/messages/Cli2Auth_VaultNodeFetch`
fn path_of(item: &Item<'_>) -> String {
    let folder = if item.message.is_some() { "messages" } else { "types" };
    format!("{}/{folder}/{}", file_name(item.tables.protocol()), file_name(item.name))
}

/// A name that every file system takes. Characters that some do not take are numbers.
fn file_name(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') {
            out.push(c);
        } else {
            let _ = write!(out, "={:x}", u32::from(c));
        }
    }
    out
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(c),
        }
    }
    out
}

/// An explanation: what stands in backquotes is code.
fn explained(text: &str) -> String {
    let mut out = String::new();
    for (place, part) in text.split('`').enumerate() {
        if place % 2 == 0 {
            out.push_str(&escaped(part));
        } else {
            let _ = write!(out, "<code>{}</code>", escaped(part));
        }
    }
    out
}

fn page(title: &str, root: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<link rel=\"stylesheet\" href=\"{root}style.css\">\n</head>\n\
         <body>\n<main>\n\
         {body}</main>\n</body>\n</html>\n",
        escaped(title)
    )
}

fn index(all: &[Vec<Item<'_>>], links: &[Links<'_>]) -> String {
    let mut body = String::from(
        "<h1>Messages of online worlds</h1>\n<p>What <code>moulsniff</code> knows of each message, \
         made from its tables.</p>\n<p><input type=\"search\" id=\"search\" aria-label=\"Search\" \
         placeholder=\"a message, a type, a field, a number\" autofocus></p>\n\
         <p id=\"found\" role=\"status\"></p>\n",
    );
    for (items, links) in all.iter().zip(links) {
        let Some(first) = items.first() else { continue };
        let protocol = first.tables.protocol();
        let messages = items.iter().filter(|item| item.message.is_some()).count();
        let _ = writeln!(
            body,
            "<section>\n<h2 id=\"{0}\">{0}</h2>\n<p>{1}, {2}</p>",
            escaped(protocol),
            counted(messages, "message"),
            counted(items.len() - messages, "type")
        );
        let mut heading = None;
        for item in items {
            let group = match item.service() {
                Some(service) => format!("{protocol}.{service}"),
                None => "types".to_string(),
            };
            if heading.as_ref() != Some(&group) {
                if heading.is_some() {
                    body.push_str("</ul>\n");
                }
                let _ = writeln!(body, "<h3>{}</h3>\n<ul class=\"list\">", escaped(&group));
                heading = Some(group);
            }
            body.push_str(&index_line(item, links));
        }
        body.push_str("</ul>\n</section>\n");
    }
    body.push_str("<script src=\"search.js\"></script>\n");
    page("Messages of online worlds", "", &body)
}

fn index_line(item: &Item<'_>, links: &Links<'_>) -> String {
    let what = match item.message {
        Some((_, def)) => {
            let number = def.number.map_or(String::new(), |number| format!(" {number}"));
            format!("{}{number}", sender(def.direction))
        }
        None => item.kind.to_string(),
    };
    let mut fields = Vec::new();
    field_names(&item.declaration.entries, &mut fields);
    fields.sort_unstable();
    fields.dedup();
    fields.truncate(40);
    format!(
        "<li data-fields=\"{}\"><a href=\"{}\">{}</a> <small>{}</small> {}</li>\n",
        escaped(&fields.join(" ")),
        escaped(links.path(item)),
        escaped(item.name),
        escaped(&what),
        explained(first_sentence(item.doc()))
    )
}

fn field_names<'a>(entries: &'a [Entry], out: &mut Vec<&'a str>) {
    for entry in entries {
        if let EntryKind::Field(field) = &entry.kind {
            out.push(&field.name);
            field_names(&field.entries, out);
        }
    }
}

fn first_sentence(text: &str) -> &str {
    let end = text.find(". ").map_or(text.len(), |end| end + 1);
    let line = text.find('\n').unwrap_or(text.len());
    text.get(..end.min(line)).unwrap_or(text)
}

fn item_page(item: &Item<'_>, links: &Links<'_>) -> String {
    let protocol = item.tables.protocol();
    let mut body = format!(
        "<nav><a href=\"../../index.html#{0}\">{0}</a></nav>\n<h1>{1}</h1>\n",
        escaped(protocol),
        escaped(item.name)
    );
    for part in item.doc().split('\n').filter(|part| !part.is_empty()) {
        let _ = writeln!(body, "<p>{}</p>", explained(part));
    }
    facts(item, links, &mut body);
    if item.message.is_some_and(|(_, def)| def.layout.is_none()) {
        body.push_str("<p>Its layout is not known.</p>\n");
    }
    if matches!(item.kind, "enum" | "flags") {
        values(item, &mut body);
    }
    if !item.declaration.entries.is_empty() {
        body.push_str("<h2 id=\"fields\">Fields</h2>\n<table class=\"fields\">\n");
        let mut anchors = HashSet::new();
        rows(&item.declaration.entries, "", 0, links, &mut anchors, &mut body);
        body.push_str("</table>\n");
    }
    examples(item, &mut body);
    if !item.used_by.is_empty() {
        let used: Vec<String> = item
            .used_by
            .iter()
            .map(|name| match links.types.contains_key(name) {
                true => links.type_name(name),
                false => links.message_name(name, item.service()),
            })
            .collect();
        let _ = writeln!(body, "<h2 id=\"used\">Used by</h2>\n<p>{}</p>", used.join(", "));
    }
    let (file, line) = item.place();
    let _ = writeln!(
        body,
        "<details><summary>The declaration ({}, line {line})</summary>\n<pre>{}</pre></details>",
        escaped(file),
        escaped(item.text())
    );
    page(&format!("{} ({protocol})", item.name), "../../", &body)
}

/// Who sends it, with which number, what answers it.
fn facts(item: &Item<'_>, links: &Links<'_>, body: &mut String) {
    let mut list = String::new();
    let mut line = |name: &str, text: String| {
        let _ = writeln!(list, "<dt>{name}</dt><dd>{text}</dd>");
    };
    line("Kind", item.kind.to_string());
    if let Some((_, def)) = item.message {
        let usually =
            def.usually.map_or(String::new(), |side| format!(", usually {}", sender(side)));
        line("Service", escaped(item.service().unwrap_or("")));
        line("Sent by", format!("{}{usually}", sender(def.direction)));
        if let Some(number) = def.number {
            let range = item.tables.number_in_range(number);
            let within =
                range.map_or(String::new(), |(name, n)| format!(", {} {n}", escaped(name)));
            line("Number", format!("{number} (0x{number:x}){within}"));
        }
        let messages = |names: Vec<&str>| {
            let links = names.iter().map(|name| links.message_name(name, item.service()));
            links.collect::<Vec<_>>().join(", ")
        };
        let answers: Vec<&str> = item.answers().collect();
        if !answers.is_empty() {
            line("Answers", messages(answers));
        }
        if !item.answered_by.is_empty() {
            line("Answered by", messages(item.answered_by.clone()));
        } else if def.expects_reply {
            line("Expects", "a reply".into());
        }
    }
    if let Some(number) = item.number {
        line("Number", format!("{number} (0x{number:x})"));
    }
    if let Some(family) = &item.declaration.family {
        line("Family", links.type_name(family));
    }
    if let Some(parent) = &item.declaration.parent {
        line("Begins with", format!("the fields of {}", links.type_name(parent)));
    }
    if let Some((of, modifiers)) = &item.declaration.alias {
        line("Stands for", format!("<code>{}</code> {}", links.type_text(of), badges(modifiers)));
    }
    for info in &item.declaration.info {
        line("In one line", format!("<code>{}</code>", escaped(info)));
    }
    let _ = write!(body, "<dl>\n{list}</dl>\n");
}

fn values(item: &Item<'_>, body: &mut String) {
    let Some(def) = item.tables.enums().rev().find(|def| def.name == item.name) else { return };
    let base = item.tables.type_def(def.base).map_or("", |base| &base.text);
    let signed = base.starts_with('i');
    let _ = writeln!(
        body,
        "<h2 id=\"values\">Values</h2>\n<p>Usually read from <code>{}</code>.</p>\n\
         <table class=\"fields\">",
        escaped(base)
    );
    for value in &def.values {
        let doc = item.declaration.values.iter().find(|(name, _)| *name == value.name);
        let number = match (def.flags, signed) {
            (true, _) => format!("0x{:x}", value.value),
            (_, true) => (value.value as i64).to_string(),
            _ => value.value.to_string(),
        };
        let _ = writeln!(
            body,
            "<tr id=\"v.{0}\"><th>{0}</th><td>{number}</td><td>{1} {2}</td></tr>",
            escaped(&value.name),
            escaped(&value.text),
            explained(doc.map_or("", |(_, doc)| doc))
        );
    }
    body.push_str("</table>\n");
}

fn rows(
    entries: &[Entry],
    path: &str,
    depth: usize,
    links: &Links<'_>,
    anchors: &mut HashSet<String>,
    body: &mut String,
) {
    let mut when: &[String] = &[];
    for entry in entries {
        if entry.when != when {
            when = &entry.when;
            let text = if when.is_empty() { "always".into() } else { when.join(" and ") };
            let _ = writeln!(
                body,
                "<tr class=\"when d{}\"><td colspan=\"3\">{}</td></tr>",
                depth.min(6),
                escaped(&text)
            );
        }
        match &entry.kind {
            EntryKind::Field(field) => {
                let own = format!("{path}{}", field.name);
                field_row(field, &own, depth, links, anchors, body);
                rows(&field.entries, &format!("{own}."), depth + 1, links, anchors, body);
            }
            EntryKind::Remark { severity, text } => {
                let _ = writeln!(
                    body,
                    "<tr class=\"d{}\"><th></th><td>{severity}</td><td>{}</td></tr>",
                    depth.min(6),
                    escaped(text)
                );
            }
            EntryKind::Undecoded => {
                let _ = writeln!(
                    body,
                    "<tr class=\"d{}\"><th></th><td>undecoded</td><td>The rest has a layout that \
                     was never published.</td></tr>",
                    depth.min(6)
                );
            }
        }
    }
}

fn field_row(
    field: &FieldText,
    path: &str,
    depth: usize,
    links: &Links<'_>,
    anchors: &mut HashSet<String>,
    body: &mut String,
) {
    // Branches may have fields of one name: the first has the anchor.
    let anchor = if anchors.insert(path.to_string()) {
        format!(" id=\"f.{}\"", escaped(path))
    } else {
        String::new()
    };
    let class = if field.span { "span " } else { "" };
    let _ = writeln!(
        body,
        "<tr class=\"{class}d{}\"{anchor}><th>{}</th><td><code>{}</code></td><td>{} {}</td></tr>",
        depth.min(6),
        escaped(&field.name),
        links.type_text(&field.of),
        explained(&field.doc),
        badges(&field.modifiers)
    );
}

fn badges(modifiers: &[String]) -> String {
    modifiers.iter().fold(String::new(), |mut out, text| {
        let _ = write!(out, "<small>{}</small> ", escaped(text));
        out
    })
}

/// The examples, with their fields and bytes in colours that say which byte is of which field.
fn examples(item: &Item<'_>, body: &mut String) {
    let mut room = MAX_EXAMPLES;
    let mut left_out = 0;
    for (place, example) in item.examples.iter().enumerate() {
        let Some(shown) = example_html(item.tables, example) else { continue };
        if shown.len() > room {
            left_out += 1;
            continue;
        }
        room -= shown.len();
        let _ = writeln!(
            body,
            "<h2 id=\"example-{0}\">Example {0}</h2>\n<pre class=\"example\">{shown}</pre>",
            place + 1
        );
    }
    if left_out > 0 {
        let _ = writeln!(
            body,
            "<p>{} too long for this page: <code>moulsniff tables show {} --json</code>.</p>",
            counted(left_out, "example"),
            escaped(item.name)
        );
    }
}

/// Marks in the text of a tree that no text from outside has: it is escaped there.
const OFF: &str = "\u{2}";
/// The colours of fields and their bytes, each begun by a mark.
const TIES: [&str; 6] = ["\u{1}0", "\u{1}1", "\u{1}2", "\u{1}3", "\u{1}4", "\u{1}5"];

fn example_html(tables: &Tables, example: &Example) -> Option<String> {
    let style = |on| Style { on, off: OFF };
    let paint = Paint {
        name: style("\u{1}n"),
        dim: style("\u{1}d"),
        field: style("\u{1}f"),
        meaning: style("\u{1}m"),
        bad: style("\u{1}b"),
        ties: TIES.map(style).to_vec(),
        marks: Marks::default(),
    };
    let mut writer = TreeWriter::new(TreeOptions { paint, bytes: true, ..TreeOptions::default() });
    let mut out = Vec::new();
    let mut take = |tree: &Tree, bytes: &[u8]| {
        writer.body(MessageView { tables, tree, bytes }, Names::default(), &mut out);
        Ok(())
    };
    read_example(tables, example, &mut take).ok()?;
    Some(coloured(&String::from_utf8_lossy(&out)))
}

/// The marks as elements. Neighbours of one colour are one element, also across blanks: most of a
/// page is bytes.
fn coloured(text: &str) -> String {
    let mut out = String::new();
    let mut wanted: Option<char> = None;
    let mut open: Option<char> = None;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            '\u{1}' => wanted = characters.next(),
            '\u{2}' => wanted = None,
            _ => {
                let blank = c == ' ' && wanted.is_none();
                if wanted != open && !blank {
                    if open.is_some() {
                        // Blanks in front of the next colour are outside both.
                        let end = out.trim_end_matches(' ').len();
                        out.insert_str(end, "</i>");
                    }
                    if let Some(class) = wanted {
                        let _ = write!(out, "<i class=\"t{class}\">");
                    }
                    open = wanted;
                }
                out.push_str(&escaped(c.encode_utf8(&mut [0; 4])));
            }
        }
    }
    if open.is_some() {
        let end = out.trim_end_matches(['\n', ' ']).len();
        out.insert_str(end, "</i>");
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::proto::all_tables;
    use crate::reference::items;

    #[test]
    fn colours_become_elements() {
        assert_eq!(
            coloured("a \u{1}0b\u{2} \u{1}0c\u{2} \u{1}1<\u{2}\n d"),
            "a <i class=\"t0\">b c</i> <i class=\"t1\">&lt;</i>\n d"
        );
    }

    #[test]
    fn names_of_files_are_taken_by_every_system() {
        assert_eq!(file_name("channel-m"), "channel-m");
        assert_eq!(file_name("../a b"), "=2e=2e=2fa=20b");
    }

    #[test]
    fn pages_are_small_and_their_links_lead_somewhere() {
        let all = all_tables(Vec::new()).unwrap();
        let all: Vec<Vec<Item<'_>>> = all.iter().map(|lazy| items(lazy.get())).collect();
        let pages = pages(&all);
        let mut paths: HashSet<String> = HashSet::new();
        for page in &pages {
            assert!(paths.insert(page.path.to_lowercase()), "{}: twice", page.path);
            let is_message = page.path.contains("/messages/");
            assert!(!is_message || page.text.len() < 50_000, "{}: {}", page.path, page.text.len());
        }
        assert!(pages.len() > 1_000);
        for page in &pages {
            for link in page.text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next())
            {
                let target = link.trim_start_matches("../").split('#').next().unwrap();
                assert!(paths.contains(&target.to_lowercase()), "{}: {link}", page.path);
            }
            // Texts of examples may have addresses; nothing is loaded from them.
            let loads = page.text.matches(" src=\"").count();
            assert_eq!(loads, usize::from(page.path == "index.html"), "{}", page.path);
        }
        let page = pages.iter().find(|p| p.path == "moul/messages/Cli2Auth_VaultNodeFetch.html");
        let text = &page.unwrap().text;
        for part in [
            "<tr class=\"d0\" id=\"f.trans_id\"><th>trans_id</th><td><code>u32</code></td>",
            "<dt>Answered by</dt><dd><a \
             href=\"../../moul/messages/Auth2Cli_VaultNodeFetched.html\">",
            "<pre class=\"example\">    <i class=\"t0\">trans_id</i>",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }
}
