//! One short line that says what a message is about: the table's own `info` line, or else the
//! message's first fields with a value.

use std::borrow::Cow;
use std::fmt::Write;

use crate::captured::{CONTROL_LEADS, Captured, is_control};
use crate::digits::{hex, uuid_text};
use crate::record::{MessageView, Names};
use crate::session::Message;
use crate::table::{InfoLine, InfoPart, InfoStep, Layout, LayoutId, MessageDef, ReadAs, Tables};
use crate::tree::{Kind, Node, TextKind, decode_text, mark};

/// Characters of one value in a line; longer ones are cut.
const MAX_VALUE: usize = 80;
/// Characters of a line.
const MAX_LINE: usize = 400;
/// Fields of a line that no table wrote.
const DEFAULT_FIELDS: usize = 4;
/// Elements of a list that a line shows.
const MAX_ELEMENTS: usize = 4;
/// Different things that one message carries; further ones are left out.
const MAX_CARRIED: usize = 64;
/// Info lines within info lines.
const MAX_DEPTH: usize = 8;

/// A message that a line is written about.
#[derive(Clone, Copy)]
pub struct InfoSource<'a> {
    /// The message as it was read.
    pub view: MessageView<'a>,
    /// The layout of the whole message, where the tables have one.
    pub layout: Option<LayoutId>,
    /// Whether secrets are hidden.
    pub redact: bool,
}

impl<'a> InfoSource<'a> {
    /// What a message's line is written from. `def` is the message's definition in the tables.
    /// Without one, the tables may have a structure with the message's name.
    pub fn new(
        message: &Message<'a>,
        def: Option<&MessageDef>,
        view: MessageView<'a>,
        redact: bool,
    ) -> InfoSource<'a> {
        let layout = match def {
            Some(def) => def.layout,
            None => view.tables.type_named(message.name.raw()).and_then(|ty| {
                match view.tables.type_def(ty)?.read {
                    ReadAs::Layout { layout, .. } => Some(layout),
                    _ => None,
                }
            }),
        };
        InfoSource { view, layout, redact }
    }

    /// What the message carries, where its name does not say it: the class of an object, a method,
    /// a kind, an error code. The tables say which value tells it; where that is an object which
    /// carries something itself, the innermost one counts.
    pub fn carried(&self) -> Option<Cow<'a, str>> {
        let Some(mut all) = self.carried_elements() else {
            return self.carried_by(self.view.tables.layout(self.layout?)?, 0, 0);
        };
        if all.len() < 2 {
            return all.pop();
        }
        let left_out = all.len().saturating_sub(MAX_ELEMENTS);
        all.truncate(MAX_ELEMENTS);
        let mut text = all.join(", ");
        if left_out > 0 {
            let _ = write!(text, " and {left_out} more");
        }
        Some(text.into())
    }

    /// All different things that the elements of a list tell. `None` unless a table says that they
    /// tell what the message carries.
    pub fn carried_elements(&self) -> Option<Vec<Cow<'a, str>>> {
        let layout = self.view.tables.layout(self.layout?)?;
        let (list, Some(of)) = self.view.tables.carries_of(layout)? else { return None };
        let mut all: Vec<Cow<'a, str>> = Vec::new();
        let list = self.find(list, 0).into_iter();
        for (element, _) in list.flat_map(|list| self.view.tree.members(list)) {
            let carried = self.find(of, element).and_then(|index| self.carried_at(index, 0));
            if let Some(carried) = carried
                && all.len() < MAX_CARRIED
                && !all.contains(&carried)
            {
                all.push(carried);
            }
        }
        Some(all)
    }

    fn carried_by(&self, layout: &Layout, node: u32, depth: usize) -> Option<Cow<'a, str>> {
        let (path, of) = self.view.tables.carries_of(layout).filter(|_| depth < MAX_DEPTH)?;
        let index = self.find(path, node)?;
        let index = match of {
            None => index,
            Some(of) => self.find(of, self.view.tree.members(index).next()?.0)?,
        };
        self.carried_at(index, depth)
    }

    /// What the value at the end of the path tells.
    fn carried_at(&self, index: u32, depth: usize) -> Option<Cow<'a, str>> {
        let node = self.view.tree.get(index)?;
        if self.redact && node.has(mark::SECRET) {
            return None;
        }
        match node.kind {
            Kind::Struct => {
                let named =
                    self.view.tree.members(index).next().and_then(|(_, class)| self.named(class));
                let layout = self
                    .layout_of(node)
                    .filter(|layout| layout.carries.is_some())
                    .or_else(|| self.layout_named(named.as_deref()?));
                let inner = layout.and_then(|layout| self.carried_by(layout, index, depth + 1));
                inner.or(named)
            }
            Kind::Text(TextKind::Owned) => carried_text(self.view.tree.owned(node.value).raw()),
            Kind::Text(kind) => {
                let mut text = String::new();
                let content = self.view.tree.content(node, self.view.bytes);
                decode_text(kind, content.get(..MAX_VALUE * 4 + 4).unwrap_or(&content), &mut text);
                carried_text(&text)
            }
            _ => self.named(node).or_else(|| match node.kind {
                Kind::Unsigned | Kind::Unsigned64 => Some(node.value.to_string().into()),
                Kind::Signed | Kind::Signed64 => Some((node.value as i64).to_string().into()),
                _ => None,
            }),
        }
    }

    /// The name that an enum gives a number; of one without a name, the number.
    fn named(&self, node: &Node) -> Option<Cow<'a, str>> {
        self.view.tables.symbols(node.ty).filter(|symbols| !symbols.flags)?;
        Some(match self.view.symbol_of(node, node.value) {
            Some(name) => Cow::Borrowed(name),
            None if matches!(node.kind, Kind::Signed | Kind::Signed64) => {
                Cow::Owned((node.value as i64).to_string())
            }
            None => Cow::Owned(node.value.to_string()),
        })
    }

    /// The layout of a structure, also of one that may be absent.
    fn layout_of(&self, node: &Node) -> Option<&'a Layout> {
        let mut ty = node.ty;
        while let ReadAs::NullOr { of, .. } = self.view.tables.type_def(ty)?.read {
            ty = of;
        }
        match self.view.tables.type_def(ty)?.read {
            ReadAs::Layout { layout, .. } => self.view.tables.layout(layout),
            _ => None,
        }
    }

    fn layout_named(&self, name: &str) -> Option<&'a Layout> {
        match self.view.tables.type_def(self.view.tables.type_named(name)?)?.read {
            ReadAs::Layout { layout, .. } => self.view.tables.layout(layout),
            _ => None,
        }
    }

    /// The node at the end of a path.
    fn find(&self, path: &[InfoStep], from: u32) -> Option<u32> {
        path.iter().try_fold(from, |at, step| match step {
            // Counts are among a structure's spans only, and may be asked for too.
            InfoStep::Name(name) => self.view.tree.member_or_span(at, *name),
            InfoStep::Element(number) => {
                self.view.tree.members(at).nth(*number as usize).map(|(index, _)| index)
            }
        })
    }
}

/// A text that says what a message carries, as one short line.
fn carried_text<'a>(text: &str) -> Option<Cow<'a, str>> {
    let mut line = text.to_string();
    clean(&mut line, 0);
    shorten(&mut line, 0, MAX_VALUE);
    (!line.is_empty()).then_some(Cow::Owned(line))
}

/// Appends the line of a message. `names` has what earlier records tell about it. Control
/// characters come out as spaces, so the line stays one line.
pub fn write_info(source: InfoSource<'_>, names: Names<'_>, out: &mut String) {
    let from = out.len();
    let writer = InfoWriter { source, names };
    let own = source
        .layout
        .and_then(|layout| source.view.tables.info_of(source.view.tables.layout(layout)?));
    match own {
        Some(line) => {
            writer.line(line, 0, 0, out);
        }
        None => writer.first_fields(out),
    }
    shorten(out, from, MAX_LINE);
}

/// How much of a line's values is there: the least of them counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Told {
    /// The field is absent, null or empty.
    Nothing,
    /// It is zero.
    Zero,
    /// It has a value.
    Value,
}

/// Appends a value as a line has it, without names. A list's first elements are in parentheses.
pub(super) fn write_value(source: InfoSource<'_>, node: u32, out: &mut String) {
    InfoWriter { source, names: Names::default() }.element(node, 0, out);
}

struct InfoWriter<'a, 'n> {
    source: InfoSource<'a>,
    names: Names<'n>,
}

impl InfoWriter<'_, '_> {
    /// Appends a line about the structure at `node`: the first one of which all fields are there,
    /// or else the last.
    fn line(&self, line: &InfoLine, node: u32, depth: usize, out: &mut String) -> Told {
        let from = out.len();
        let mut told = Told::Nothing;
        for (parts, left) in line.lines.iter().zip((0..line.lines.len()).rev()) {
            if left > 0 && !self.may_fit(parts, node) {
                continue;
            }
            out.truncate(from);
            told = self.parts(parts, node, depth, out);
            if told > Told::Nothing {
                break;
            }
        }
        if out.len() > from { told } else { Told::Nothing }
    }

    /// Whether the fields that a line names outside brackets may all be there: a look that is
    /// cheaper than writing the line.
    fn may_fit(&self, parts: &[InfoPart], node: u32) -> bool {
        parts.iter().all(|part| match part {
            InfoPart::Field(path) | InfoPart::Each { list: path, .. } => {
                let node = self.find(path, node).and_then(|at| self.source.view.tree.get(at));
                node.is_some_and(|node| node.kind != Kind::Null)
            }
            _ => true,
        })
    }

    fn parts(&self, parts: &[InfoPart], node: u32, depth: usize, out: &mut String) -> Told {
        let mut all = Told::Value;
        for part in parts {
            let told = match part {
                InfoPart::Text(text) => {
                    out.push_str(text);
                    Told::Value
                }
                InfoPart::Field(path) => {
                    self.find(path, node).map_or(Told::Nothing, |at| self.value(at, depth, out))
                }
                InfoPart::Each { list, of } => {
                    self.find(list, node).map_or(Told::Nothing, |at| self.each(at, of, depth, out))
                }
                InfoPart::Extends(layout) => self.extended(*layout, node, depth, out),
                InfoPart::Choice { path, yes, no } => {
                    let holds = self.holds(path, node, depth, out);
                    out.push_str(if holds == Some(true) { yes } else { no });
                    if holds.is_some() { Told::Value } else { Told::Nothing }
                }
                InfoPart::Optional(parts) => {
                    let from = out.len();
                    if self.parts(parts, node, depth, out) < Told::Value {
                        out.truncate(from);
                    }
                    Told::Value
                }
            };
            all = all.min(told);
        }
        all
    }

    /// Appends the line of the structure that this one extends.
    fn extended(&self, layout: LayoutId, node: u32, depth: usize, out: &mut String) -> Told {
        let tables = self.source.view.tables;
        let line = tables.layout(layout).and_then(|layout| tables.info_of(layout));
        match line {
            Some(line) if depth < MAX_DEPTH => self.line(line, node, depth + 1, out),
            _ => Told::Nothing,
        }
    }

    /// Whether a field has a value; where the path ends in the name of a flag or of a value of an
    /// enum, whether the flag is set, or the value is that one. `None` if the field is absent.
    fn holds(&self, path: &[InfoStep], node: u32, depth: usize, out: &mut String) -> Option<bool> {
        let MessageView { tables, tree, .. } = self.source.view;
        let from = out.len();
        if let Some(at) = self.find(path, node) {
            let told = self.value(at, depth, out);
            out.truncate(from);
            return Some(told == Told::Value);
        }
        let (InfoStep::Name(name), first) = path.split_last()? else { return None };
        let node = tree.get(self.find(first, node)?)?;
        let symbols = tables.symbols(node.ty)?;
        let name = tables.name(*name);
        let value = symbols.values.iter().find(|value| value.name == name)?.value;
        Some(match symbols.flags {
            true => value != 0 && node.unsigned() & value == value,
            false => node.value == value,
        })
    }

    /// Appends the elements of a list, or the values of a structure whose names came with the
    /// traffic, each with its name before it: those of them that have something to tell, and first
    /// those that are known to have changed. `of` is the way from an element to what is told of it.
    fn each(&self, list: u32, of: &[InfoStep], depth: usize, out: &mut String) -> Told {
        let tree = self.source.view.tree;
        let from = out.len();
        let (mut shown, mut more) = (0, 0);
        let earlier = |index| self.find(of, index).and_then(|at| self.names.value_before(at));
        let changed = tree.members(list).filter(|(index, _)| earlier(*index).is_some());
        let others = tree.members(list).filter(|(index, _)| earlier(*index).is_none());
        for (index, node) in changed.chain(others) {
            if shown == MAX_ELEMENTS {
                more += 1;
                continue;
            }
            let before = out.len();
            out.push_str(if shown > 0 { ", " } else { "" });
            let name = tree.dynamic(node.name);
            if let Some(name) = name {
                let from = out.len();
                out.push_str(name.raw());
                clean(out, from);
                shorten(out, from, MAX_VALUE);
            }
            let behind_name = out.len();
            out.push_str(if name.is_some() { " " } else { "" });
            if let Some(earlier) = earlier(index) {
                out.push_str(earlier);
                out.push_str(" → ");
            }
            let told =
                self.find(of, index).map_or(Told::Nothing, |at| self.element(at, depth, out));
            match (told, name) {
                (Told::Nothing, None) => {
                    out.truncate(before);
                    continue;
                }
                (Told::Nothing, Some(_)) => out.truncate(behind_name),
                _ => {}
            }
            shown += 1;
        }
        if more > 0 {
            let _ = write!(out, " and {more} more");
        }
        if out.len() > from { Told::Value } else { Told::Nothing }
    }

    /// Appends the value of an element.
    fn element(&self, at: u32, depth: usize, out: &mut String) -> Told {
        if self.source.view.tree.get(at).is_none_or(|node| node.kind != Kind::List) {
            return self.value(at, depth, out);
        }
        out.push('(');
        let told = match depth < MAX_DEPTH {
            true => self.each(at, &[], depth + 1, out),
            false => Told::Nothing,
        };
        out.push(')');
        told
    }

    fn find(&self, path: &[InfoStep], from: u32) -> Option<u32> {
        self.source.find(path, from)
    }

    /// Appends a value.
    fn value(&self, index: u32, depth: usize, out: &mut String) -> Told {
        let InfoSource { view: MessageView { tables, tree, bytes }, redact, .. } = self.source;
        let Some(node) = tree.get(index) else { return Told::Nothing };
        if redact && node.has(mark::SECRET) {
            let _ = write!(out, "<redacted, {} bytes>", node.bits.div_ceil(8));
            return Told::Value;
        }
        if let Some((name, _)) = self.names.name_of(index) {
            let from = out.len();
            out.push_str(name);
            clean(out, from);
            return Told::Value;
        }
        let from = out.len();
        match node.kind {
            Kind::Struct => return self.structure(index, node, depth, out),
            Kind::List => {
                let count = tree.members(index).count();
                out.push_str(itoa::Buffer::new().format(count));
                return if count > 0 { Told::Value } else { Told::Nothing };
            }
            Kind::Null => return Told::Nothing,
            Kind::Text(TextKind::Owned) => out.push_str(tree.owned(node.value).raw()),
            Kind::Text(kind) => {
                let (start, length) = node.content();
                // No encoding takes more than four bytes a character.
                let end = start.saturating_add(length.min(MAX_VALUE * 4 + 4));
                decode_text(
                    kind,
                    tree.bytes(node.buffer, bytes).get(start..end).unwrap_or_default(),
                    out,
                );
            }
            Kind::Bytes | Kind::Undecoded => {
                let content = tree.content(node, bytes);
                out.push_str(&hex(content.get(..16).unwrap_or(&content)));
                if content.len() > 16 {
                    let _ = write!(out, "… ({} bytes)", content.len());
                }
            }
            _ => return self.number(tables, node, out),
        }
        clean(out, from);
        shorten(out, from, MAX_VALUE);
        if out.len() > from { Told::Value } else { Told::Nothing }
    }

    /// A structure by its own line.
    fn structure(&self, index: u32, node: &Node, depth: usize, out: &mut String) -> Told {
        if depth >= MAX_DEPTH {
            return Told::Nothing;
        }
        // If a number tells an object's class, the class is its first field, and the layout belongs
        // to a node inside.
        let layout = self.source.layout_of(node);
        match layout.and_then(|layout| self.source.view.tables.info_of(layout)) {
            Some(line) => self.line(line, index, depth + 1, out),
            None => self.family(index, layout, depth, out),
        }
    }

    /// An object whose class a number tells: the class's name and its line. `own`, the layout of
    /// the node, has no line.
    fn family(&self, index: u32, own: Option<&Layout>, depth: usize, out: &mut String) -> Told {
        let MessageView { tables, tree, .. } = self.source.view;
        let Some((first, class)) = tree.members(index).next() else { return Told::Nothing };
        let Some(name) = self.source.view.symbol_of(class, class.value) else {
            return self.value(first, depth + 1, out);
        };
        out.push_str(name);
        if own.is_some_and(|own| tables.name(own.name) == name) {
            return Told::Value;
        }
        let layout = self.source.layout_named(name);
        if let Some(line) = layout.and_then(|layout| tables.info_of(layout)) {
            let from = out.len();
            out.push(' ');
            if self.line(line, index, depth + 1, out) == Told::Nothing {
                out.truncate(from);
            }
        }
        Told::Value
    }

    /// Appends a number by its name.
    fn number(&self, tables: &Tables, node: &Node, out: &mut String) -> Told {
        let bytes = |length: usize| {
            let (start, _) = node.content();
            let all = self.source.view.tree.bytes(node.buffer, self.source.view.bytes);
            all.get(start..start.saturating_add(length)).unwrap_or_default()
        };
        if let Some(name) = self.source.view.symbol_of(node, node.value) {
            out.push_str(name);
            return Told::Value;
        }
        if flag_names(tables, node, out) {
            return Told::Value;
        }
        let shown = tables.type_def(node.ty).and_then(|def| def.shown);
        if let Some(meaning) = shown.and_then(|shown| tables.meaning(tables.name(shown))) {
            let from = out.len();
            let mut text = std::mem::take(out).into_bytes();
            (meaning.write)(node.value, &mut text);
            *out = String::from_utf8(text)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
            if out.len() > from {
                return if node.value == 0 { Told::Zero } else { Told::Value };
            }
        }
        let mut digits = itoa::Buffer::new();
        let _ = match node.kind {
            Kind::Unsigned | Kind::Unsigned64 => {
                out.push_str(digits.format(node.value));
                Ok(())
            }
            Kind::Signed | Kind::Signed64 => {
                out.push_str(digits.format(node.value as i64));
                Ok(())
            }
            Kind::Bool => write!(out, "{}", node.value != 0),
            Kind::F32 => write!(out, "{}", f32::from_bits(node.value as u32)),
            Kind::F64 => write!(out, "{}", f64::from_bits(node.value)),
            Kind::Ipv4 => write!(out, "{}", std::net::Ipv4Addr::from(node.value as u32)),
            Kind::Uuid | Kind::UuidBe => {
                let content = bytes(16);
                out.push_str(&uuid_text(content, node.kind == Kind::Uuid));
                let zero = content.iter().all(|byte| *byte == 0);
                return if zero { Told::Zero } else { Told::Value };
            }
            _ => Ok(()),
        };
        if node.value == 0 { Told::Zero } else { Told::Value }
    }

    /// The message's first own fields: no header, no structures, no secrets, and no transaction. If
    /// it has only structures, those of their fields that have a value.
    fn first_fields(&self, out: &mut String) {
        let InfoSource { view: MessageView { tables, tree, .. }, layout, .. } = self.source;
        let own = |name| {
            layout.is_none_or(|layout| tables.fields_of(layout).any(|(field, _)| field == name))
        };
        let members = || tree.members(0).filter(|(_, node)| own(node.name));
        let mut left = DEFAULT_FIELDS;
        self.plain_fields(members(), None, &mut left, out);
        if left < DEFAULT_FIELDS {
            return;
        }
        for (index, node) in members().filter(|(_, node)| matches!(node.kind, Kind::Struct)) {
            self.plain_fields(tree.members(index), Some(node), &mut left, out);
        }
    }

    /// Appends plain fields, those of a structure with its name before theirs, while some are
    /// `left`.
    fn plain_fields<'t>(
        &self,
        fields: impl Iterator<Item = (u32, &'t Node)>,
        within: Option<&Node>,
        left: &mut usize,
        out: &mut String,
    ) {
        let MessageView { tables, tree, .. } = self.source.view;
        let name = |node: &Node| {
            tree.dynamic(node.name).map_or_else(|| tables.name(node.name), Captured::raw)
        };
        let telling = fields.filter(|(_, node)| {
            let transaction = tables.type_def(node.ty).is_some_and(|def| def.transaction);
            let composite =
                matches!(node.kind, Kind::Struct | Kind::List | Kind::Null | Kind::Undecoded);
            !transaction && !composite && !node.has(mark::SECRET)
        });
        for (index, node) in telling {
            let from = out.len();
            if *left == 0 {
                return;
            }
            if *left < DEFAULT_FIELDS {
                out.push(' ');
            }
            if let Some(structure) = within {
                out.push_str(name(structure));
                out.push('.');
            }
            out.push_str(name(node));
            out.push('=');
            if self.value(index, 0, out) == Told::Value || within.is_none() {
                *left -= 1;
            } else {
                out.truncate(from);
            }
        }
    }
}

/// Appends the names of the flags that are set, `+` between them. Returns whether there is one.
fn flag_names(tables: &Tables, node: &Node, out: &mut String) -> bool {
    let from = out.len();
    let flags = tables
        .symbols(node.ty)
        .filter(|symbols| symbols.flags)
        .map(|symbols| symbols.values.iter());
    for set in
        flags.into_iter().flatten().filter(|v| v.value != 0 && node.unsigned() & v.value == v.value)
    {
        out.push_str(if out.len() > from { "+" } else { "" });
        out.push_str(&set.name);
    }
    out.len() > from
}

/// Replaces control characters by spaces, from an offset on.
fn clean(out: &mut String, from: usize) {
    let special = |byte: u8| byte < b' ' || byte == 0x7f || CONTROL_LEADS.contains(&byte);
    if !out.as_bytes().get(from..).is_some_and(|text| text.iter().any(|byte| special(*byte))) {
        return;
    }
    if out.get(from..).is_some_and(|text| text.chars().any(is_control)) {
        let text: String =
            out.split_off(from).chars().map(|c| if is_control(c) { ' ' } else { c }).collect();
        out.push_str(&text);
    }
}

/// Cuts the text from an offset on to a number of characters.
fn shorten(out: &mut String, from: usize, most: usize) {
    if out.len() <= from + most {
        return;
    }
    let end =
        out.get(from..).and_then(|text| text.char_indices().nth(most)).map(|(at, _)| from + at);
    if let Some(end) = end {
        out.truncate(end);
        out.push('…');
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;
    use crate::record::MessageView;
    use crate::table::{Evaluator, TableSource, parse_hex};
    use crate::tree::Tree;

    const TABLE: &str = r#"
        protocol test
        enum Net : u32 { kSuccess = 0, kNoSuchAge = 7 "There is no such age" }
        struct Who { number: u32, name: utf8[u8], info "{name}" }
        service auth { number: u16 }
        message auth client 1 Login {
            trans_id: u32 transaction
            account: utf8[u8]
            who: Who[u8]
            instance: u32
            info "login of {account}[, instance {instance}][ with {who[1]}], {instance?here|nowhere}{instance?!}, {{sure}}"
        }
        message auth server 2 Reply answers Login {
            trans_id: u32 transaction
            result: Net refuses unless kSuccess
            left: u8
            if left > 0 { partial }
        }
    "#;

    fn read(
        hex: &str,
        sender: usize,
        then: impl Fn(&Tables, &crate::table::MessageDef, &Tree, &[u8]),
    ) {
        let source = TableSource { name: "test".into(), text: TABLE.into() };
        let tables = Tables::load("test", vec![source], &[]).unwrap();
        let bytes = parse_hex(hex).unwrap();
        let mut tree = Tree::new();
        let service = tables.service_named("auth").unwrap();
        let number = u64::from(bytes[0]);
        let id = tables.message_id(tables.service(service).unwrap(), sender, number).unwrap();
        Evaluator::default().message(&tables, service, sender, &bytes, &mut tree);
        then(&tables, tables.message(id).unwrap(), &tree, &bytes);
    }

    fn info(hex: &str, sender: usize) -> String {
        let line = std::cell::RefCell::new(String::new());
        read(hex, sender, |tables, def, tree, bytes| {
            let source = InfoSource {
                view: MessageView { tables, tree, bytes },
                layout: def.layout,
                redact: false,
            };
            write_info(source, Names::default(), &mut line.borrow_mut());
        });
        line.into_inner()
    }

    #[test]
    fn a_line_has_the_values_that_are_there() {
        assert_eq!(
            info("0100 07000000 02 6162 00 09000000", 0),
            "login of ab, instance 9, here!, {sure}"
        );
        let two = "02 01000000 01 78 02000000 01 79";
        assert_eq!(
            info(&format!("0100 07000000 02 6162 {two} 00000000"), 0),
            "login of ab with y, nowhere, {sure}"
        );
    }

    #[test]
    fn control_characters_stay_out_of_a_line() {
        assert_eq!(info("0100 07000000 03 611b0a 00 00000000", 0), "login of a  , nowhere, {sure}");
    }

    #[test]
    fn without_a_line_of_its_own_a_message_has_its_first_fields() {
        assert_eq!(info("0200 07000000 07000000 00", 1), "result=kNoSuchAge left=0");
    }

    #[test]
    fn a_result_that_is_no_success_refuses_and_parts_are_partial() {
        read("0200 07000000 07000000 00", 1, |tables, def, tree, bytes| {
            let values = MessageView { tables, tree, bytes };
            let refused = super::super::refused(def, &values).unwrap();
            assert_eq!((refused.value, refused.name), (Some(7), Some("kNoSuchAge")));
            assert!(!tree.get(0).unwrap().has(mark::PARTIAL));
        });
        read("0200 07000000 00000000 01", 1, |tables, def, tree, bytes| {
            let values = MessageView { tables, tree, bytes };
            assert_eq!(super::super::refused(def, &values), None);
            assert!(tree.get(0).unwrap().has(mark::PARTIAL));
        });
    }

    const CARRYING: &str = r#"
        protocol test
        enum Class : u8 { Note = 1, Empty = 2, Old = 3 }
        flags Way : u8 { kLeaves = 1, kQuiet = 2 }
        family Any { class: Class }
        struct Thing { name: utf8[u8], number: u8, info "{name}", info "thing {number}" }
        struct Sent { from: null_or(bool) Thing, to: Thing[u8], info "{to[*]}[ from {from}]", info "all" }
        class Note of Any extends Sent { way: Way, info "{extends}: {way.kLeaves?leaves|enters}" }
        class Empty of Any extends Sent { }
        class Old of Any { code: i8, carries code }
        service s { number: u8 }
        message s client 1 Send { object: bytes[*] as Any, carries object, info "{object}" }
        message s client 2 Things { things: Thing[u8], info "{things[*].number}" }
    "#;

    /// What a message carries, and its line.
    fn carried(hex: &str) -> (Option<String>, String) {
        let source = TableSource { name: "test".into(), text: CARRYING.into() };
        let tables = Tables::load("test", vec![source], &[]).unwrap();
        let bytes = parse_hex(hex).unwrap();
        let mut tree = Tree::new();
        let service = tables.service_named("s").unwrap();
        Evaluator::default().message(&tables, service, 0, &bytes, &mut tree);
        let id = tables.message_id(tables.service(service).unwrap(), 0, bytes[0].into()).unwrap();
        let layout = tables.message(id).unwrap().layout;
        let source = InfoSource {
            view: MessageView { tables: &tables, tree: &tree, bytes: &bytes },
            layout,
            redact: false,
        };
        let mut line = String::new();
        write_info(source, Names::default(), &mut line);
        (source.carried().map(|carried| carried.into_owned()), line)
    }

    #[test]
    fn a_message_carries_an_object_or_what_that_carries() {
        let said = |carried: &str, line: &str| (Some(carried.to_string()), line.to_string());
        // From `ab` to `c` and to thing 9, which has no name.
        let note = "01 01 01 0261625f 02 016305 0009";
        assert_eq!(carried(&format!("{note} 03")), said("Note", "c, thing 9 from ab: leaves"));
        assert_eq!(carried(&format!("{note} 02")), said("Note", "c, thing 9 from ab: enters"));
        assert_eq!(carried("01 01 00 00 00"), said("Note", "all: enters"));
        assert_eq!(carried("01 02 00 01 016305"), said("Empty", "c"));
        assert_eq!(carried("01 03 ff"), said("-1", "Old"));
        assert_eq!(carried("01 09").0.as_deref(), Some("9"));
    }

    #[test]
    fn a_line_shows_the_first_elements_of_a_list() {
        let (carries, line) = carried("02 05 0001 0002 0003 0004 0005");
        assert_eq!((carries, line.as_str()), (None, "1, 2, 3, 4 and 1 more"));
    }

    #[test]
    fn what_is_answered_expects_a_reply() {
        read("0200 07000000 00000000 00", 1, |tables, def, _, _| {
            assert!(!def.expects_reply);
            assert!(tables.message(tables.message_named("Login").unwrap()).unwrap().expects_reply);
        });
    }
}
