//! Compiles what tables say beyond layouts: field facts, info lines, and which messages may refuse.

use super::super::error::TableError;
use super::super::program::*;
use super::super::text::*;
use super::Compiler;
use super::scope::FieldScope;
use crate::maps::{SeededMap, SeededSet};
use crate::tree::{Sym, TypeRef};

/// The deepest nesting of groups in an info line.
const MAX_GROUPS: usize = 4;
/// How deep nested structures are searched for fields that refuse.
const MAX_DEPTH: usize = 16;

impl Compiler<'_> {
    /// The facts of a field. `symbols` is the enum that names its values. `None` if the table
    /// states no fact.
    pub(super) fn field_facts(
        &mut self,
        mods: &FactMods,
        symbols: Option<EnumId>,
    ) -> Result<Option<Box<FieldFacts>>, TableError> {
        let refuses_unless = self.constants(&mods.refuses_unless, symbols)?;
        let leaves_unless = self.constants(&mods.leaves_unless, symbols)?;
        let person = self.word(mods.person.as_ref(), "person", &Person::WORDS)?;
        let chat = self.word(mods.chat.as_ref(), "chat", &ChatRole::WORDS)?;
        let file = self.word(mods.file.as_ref(), "file", &FileRole::WORDS)?;
        let graph = self.word(mods.graph.as_ref(), "graph", &GraphRole::WORDS)?;
        let share = self.word(mods.share.as_ref(), "share", &ShareRole::WORDS)?;
        let change = self.word(mods.change.as_ref(), "change", &ChangeRole::WORDS)?;
        let FactMods { own, place, volatile, echoed, unordered, continues, local, .. } = *mods;
        let same = mods.same.as_ref().map(|kind| self.name(&kind.name));
        let identity = mods.identity.iter().map(|kind| self.name(kind)).collect();
        let facts = FieldFacts {
            identity,
            own,
            place,
            leaves_unless,
            volatile,
            echoed,
            unordered,
            continues,
            local,
            same,
            person,
            chat,
            file,
            graph,
            share,
            change,
            refuses_unless,
            refuses_unless_texts: mods.refuses_unless_texts.clone(),
        };
        Ok((facts != FieldFacts::default()).then(|| Box::new(facts)))
    }

    /// The values behind `unless`.
    fn constants(
        &mut self,
        values: &[ExprAst],
        symbols: Option<EnumId>,
    ) -> Result<Vec<u64>, TableError> {
        let mut constants = Vec::new();
        for value in values {
            let id = self.expr(value, &FieldScope::default(), symbols)?;
            match self.out.exprs.get(id.0 as usize) {
                Some(Ex::Const(n)) => constants.push(*n as u64),
                _ => return self.error(value.at, "expected a number or an enum value"),
            }
        }
        Ok(constants)
    }

    /// The fact that a modifier's word means.
    fn word<T: Copy>(
        &self,
        word: Option<&NameAst>,
        modifier: &str,
        known: &[(&str, T)],
    ) -> Result<Option<T>, TableError> {
        let Some(NameAst { name: word, at }) = word else { return Ok(None) };
        match known.iter().find(|(name, _)| name == word) {
            Some((_, value)) => Ok(Some(*value)),
            None => {
                let near = crate::suggest::suggestion(word, known.iter().map(|(name, _)| *name));
                let words: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
                self.error(*at, format!("`{modifier}` knows {}{near}", words.join(", ")))
            }
        }
    }

    /// Compiles what a structure says of itself in a line, and what it carries. Without lines of
    /// its own it has those of `parent`, the structure that it extends, and so with what it
    /// carries.
    pub(super) fn info(
        &mut self,
        body: &StructAst,
        layout: LayoutId,
        parent: Option<LayoutId>,
    ) -> Result<(), TableError> {
        let mut lines = Vec::new();
        for InfoAst { at, text } in &body.info {
            let mut reader = InfoReader { text, at: 0 };
            let parts = self.info_parts(&mut reader, *at, parent, 0)?;
            self.check_own_names("info", *at, &parts, layout)?;
            lines.push(parts);
        }
        let info = self.info_lines(lines);
        let mut carries = None;
        if let Some(InfoAst { at, text }) = &body.carries {
            let parts = vec![self.info_field("carries", text, *at)?];
            self.check_own_names("carries", *at, &parts, layout)?;
            carries = self.info_lines(vec![parts]);
        }
        if let Some(layout) = self.out.layouts.get_mut(layout.0 as usize) {
            (layout.info, layout.carries) = (info, carries);
        }
        self.parents.extend(parent.map(|parent| (layout, parent)));
        Ok(())
    }

    fn info_lines(&mut self, lines: Vec<Vec<InfoPart>>) -> Option<InfoId> {
        let id = InfoId(self.out.infos.len() as u32);
        let none = lines.is_empty();
        (!none).then(|| self.out.infos.push(InfoLine { lines }))?;
        Some(id)
    }

    /// Gives structures without lines of their own those of the structures that they extend, and
    /// so with what they carry.
    pub(super) fn inherit_info(&mut self) {
        let parents: SeededMap<LayoutId, LayoutId> = self.parents.drain(..).collect();
        for at in 0..self.out.layouts.len() {
            let mut info = None;
            let mut carries = None;
            let mut from = Some(LayoutId(at as u32));
            // A chain of structures has an end: those that extend themselves were refused.
            while let Some(id) = from
                && let Some(layout) = self.out.layouts.get(id.0 as usize)
            {
                info = info.or(layout.info);
                carries = carries.or(layout.carries);
                from = parents.get(&id).copied();
            }
            if let Some(layout) = self.out.layouts.get_mut(at) {
                (layout.info, layout.carries) = (info, carries);
            }
        }
    }

    /// The first name of each path is that of a field of the structure.
    fn check_own_names(
        &self,
        word: &str,
        at: usize,
        parts: &[InfoPart],
        layout: LayoutId,
    ) -> Result<(), TableError> {
        let own = self.own_names(layout);
        let Some(name) = first_unknown(parts, &own) else { return Ok(()) };
        let name = self.out.names.get(name.0 as usize).cloned().unwrap_or_default();
        let names =
            own.iter().filter_map(|sym| self.out.names.get(sym.0 as usize)).map(|name| &**name);
        let near = crate::suggest::suggestion(&name, names);
        self.error(
            at,
            format!("`{word}` names the field `{name}`, which is none of this structure{near}"),
        )
    }

    fn info_parts(
        &mut self,
        reader: &mut InfoReader<'_>,
        at: usize,
        parent: Option<LayoutId>,
        depth: usize,
    ) -> Result<Vec<InfoPart>, TableError> {
        let mut parts = Vec::new();
        while let Some(piece) = reader.next() {
            match piece {
                InfoPiece::Text(text) => parts.push(InfoPart::Text(text.to_string().into())),
                InfoPiece::Path("extends") => match parent {
                    Some(parent) => parts.push(InfoPart::Extends(parent)),
                    None => {
                        let text = "`info` has `{extends}`, and this structure extends no other";
                        return self.error(at, text);
                    }
                },
                InfoPiece::Path(path) => parts.push(self.info_field("info", path, at)?),
                InfoPiece::Choice(path, words) => {
                    let (yes, no) = words.split_once('|').unwrap_or((words, ""));
                    let path = self.info_path("info", path, at)?;
                    parts.push(InfoPart::Choice {
                        path,
                        yes: yes.to_string().into(),
                        no: no.to_string().into(),
                    });
                }
                InfoPiece::Open if depth >= MAX_GROUPS => {
                    return self
                        .error(at, format!("`info` has groups more than {MAX_GROUPS} deep"));
                }
                InfoPiece::Open => parts.push(InfoPart::Optional(self.info_parts(
                    reader,
                    at,
                    parent,
                    depth + 1,
                )?)),
                InfoPiece::Close if depth > 0 => return Ok(parts),
                InfoPiece::Close => {
                    return self.error(at, "`info` has a `]` without a `[` before it");
                }
                InfoPiece::Unclosed => {
                    return self.error(at, "`info` has a `{` without a `}` after it");
                }
            }
        }
        if depth > 0 {
            self.error(at, "`info` has a `[` without a `]` after it")
        } else {
            Ok(parts)
        }
    }

    /// A path that stands behind `word` or in its text.
    /// A field by its path, or a field of all elements of a list.
    fn info_field(&mut self, word: &str, path: &str, at: usize) -> Result<InfoPart, TableError> {
        let Some((list, of)) = path.split_once("[*]") else {
            return Ok(InfoPart::Field(self.info_path(word, path, at)?));
        };
        let list = self.info_path(word, list, at)?;
        let Some(of) = of.strip_prefix('.') else {
            return Ok(InfoPart::Each { list, of: Vec::new() });
        };
        let of = self.info_path(word, of, at)?;
        if let Some(InfoStep::Name(name)) = of.first() {
            self.info_names.push((self.file, at, *name));
        }
        Ok(InfoPart::Each { list, of })
    }

    fn info_path(
        &mut self,
        word: &str,
        path: &str,
        at: usize,
    ) -> Result<Vec<InfoStep>, TableError> {
        let mut steps = Vec::new();
        for part in path.split('.') {
            let (name, elements) =
                part.split_once('[').map_or((part, None), |(name, rest)| (name, Some(rest)));
            let sym = self.name(name);
            if !steps.is_empty() {
                self.info_names.push((self.file, at, sym));
            }
            steps.push(InfoStep::Name(sym));
            for element in elements.into_iter().flat_map(|rest| rest.split('[')) {
                match element.strip_suffix(']').and_then(|number| number.parse().ok()) {
                    Some(number) => steps.push(InfoStep::Element(number)),
                    None => {
                        return self.error(
                            at,
                            format!(
                                "`{word}` has the path `{path}`; expected one like `list[0].name`"
                            ),
                        );
                    }
                }
            }
        }
        Ok(steps)
    }

    /// Every name in an info line is the name of some field, or of a value of an enum.
    pub(super) fn check_info_names(&mut self) -> Result<(), TableError> {
        let fields: SeededSet<Sym> = self.out.steps.iter().filter_map(field_name).collect();
        for (file, at, sym) in std::mem::take(&mut self.info_names) {
            let name = self.out.names.get(sym.0 as usize).cloned().unwrap_or_default();
            let is_value = || self.value_owners.contains_key(&*name);
            if !fields.contains(&sym) && !is_value() {
                self.file = file;
                let names = fields
                    .iter()
                    .filter_map(|sym| self.out.names.get(sym.0 as usize))
                    .map(|name| &**name);
                let near = crate::suggest::suggestion(&name, names);
                return self.error(
                    at,
                    format!("`info` names the field `{name}`, which no table has{near}"),
                );
            }
        }
        Ok(())
    }

    /// The names of a structure's own fields, in all branches.
    fn own_names(&self, layout: LayoutId) -> SeededSet<Sym> {
        let start =
            self.out.layouts.get(layout.0 as usize).map_or(0, |layout| layout.start as usize);
        let steps = self.out.steps.get(start..).unwrap_or(&[]).iter();
        steps.take_while(|step| !matches!(step, LayoutStep::End)).filter_map(field_name).collect()
    }
}

fn field_name(step: &LayoutStep) -> Option<Sym> {
    match step {
        LayoutStep::Field { name, .. } | LayoutStep::Empty { name, .. } => Some(*name),
        _ => None,
    }
}

/// The first field of an info line that is not one of `own`.
fn first_unknown(parts: &[InfoPart], own: &SeededSet<Sym>) -> Option<Sym> {
    parts.iter().find_map(|part| match part {
        InfoPart::Text(_) | InfoPart::Extends(_) => None,
        InfoPart::Optional(parts) => first_unknown(parts, own),
        InfoPart::Field(path)
        | InfoPart::Each { list: path, .. }
        | InfoPart::Choice { path, .. } => match path.first() {
            Some(InfoStep::Name(name)) if !own.contains(name) => Some(*name),
            _ => None,
        },
    })
}

/// Parses the text of an info line. `{{`, `[[` and the like mean the character itself.
struct InfoReader<'a> {
    text: &'a str,
    at: usize,
}

enum InfoPiece<'a> {
    Text(&'a str),
    Path(&'a str),
    /// Parses a path, and the texts for a field with a value and without one.
    Choice(&'a str, &'a str),
    Open,
    Close,
    Unclosed,
}

impl<'a> InfoReader<'a> {
    fn next(&mut self) -> Option<InfoPiece<'a>> {
        const SIGNS: [char; 4] = ['{', '}', '[', ']'];
        let rest = self.text.get(self.at..)?;
        let first = rest.chars().next()?;
        let doubled = SIGNS.contains(&first) && rest.chars().nth(1) == Some(first);
        let (piece, used) = match first {
            _ if doubled => (InfoPiece::Text(rest.get(..1)?), 2),
            '{' => match rest.find('}') {
                Some(end) => {
                    let inside = rest.get(1..end)?;
                    let choice =
                        inside.split_once('?').map(|(path, words)| InfoPiece::Choice(path, words));
                    (choice.unwrap_or(InfoPiece::Path(inside)), end + 1)
                }
                None => (InfoPiece::Unclosed, rest.len()),
            },
            '[' => (InfoPiece::Open, 1),
            ']' => (InfoPiece::Close, 1),
            _ => {
                let end = rest
                    .char_indices()
                    .skip(1)
                    .find(|(_, c)| SIGNS.contains(c))
                    .map_or(rest.len(), |(at, _)| at);
                (InfoPiece::Text(rest.get(..end)?), end)
            }
        };
        self.at += used;
        Some(piece)
    }
}

/// Fills in which messages expect a reply and which may refuse, once all layouts are known.
pub(super) fn find(p: &mut Program) {
    let mut answered = vec![false; p.messages.len()];
    for asked in p.messages.iter().flat_map(|message| &message.answers) {
        if let Some(known) = answered.get_mut(asked.0 as usize) {
            *known = true;
        }
    }
    let layouts = refusing_layouts(p);
    let refusing: Vec<bool> = p
        .messages
        .iter()
        .map(|message| message.layout.is_some_and(|layout| layouts.contains(&layout)))
        .collect();
    for ((message, answered), refusing) in p.messages.iter_mut().zip(answered).zip(refusing) {
        message.expects_reply =
            message.expects.map_or(answered, |expected| expected != Expectation::Nothing);
        if message.refusal == Refusal::Never && refusing {
            message.refusal = Refusal::ByField;
        }
    }
}

/// The layouts that have a field that may refuse, at any depth up to [`MAX_DEPTH`]. Families and
/// types with code are not searched: a message refuses by a field of its own. Each round finds
/// layouts one level further out.
fn refusing_layouts(p: &Program) -> SeededSet<LayoutId> {
    let mut found = SeededSet::default();
    for _ in 0..MAX_DEPTH {
        let before = found.len();
        for (layout, id) in p.layouts.iter().zip(0..) {
            let steps = p.steps.get(layout.start as usize..).unwrap_or(&[]).iter();
            let mut steps = steps.take_while(|step| !matches!(step, LayoutStep::End));
            let id = LayoutId(id);
            let refuses = |step: &LayoutStep| matches!(step, LayoutStep::Field { ty, .. } if type_refuses(p, *ty, &found, MAX_DEPTH));
            if !found.contains(&id) && steps.any(refuses) {
                found.insert(id);
            }
        }
        if found.len() == before {
            break;
        }
    }
    found
}

fn type_refuses(p: &Program, ty: TypeRef, layouts: &SeededSet<LayoutId>, depth: usize) -> bool {
    let Some(def) = p.types.get(ty.0 as usize) else { return false };
    if def.facts.as_ref().is_some_and(|facts| facts.may_refuse()) {
        return true;
    }
    match &def.read {
        ReadAs::Layout { layout, .. } => layouts.contains(layout),
        ReadAs::List { of, .. } | ReadAs::NullOr { of, .. } => {
            depth > 1 && type_refuses(p, *of, layouts, depth - 1)
        }
        ReadAs::Region(region) => {
            depth > 1
                && region.inner.iter().any(|inner| type_refuses(p, *inner, layouts, depth - 1))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::table::{Refusal, TableSource, Tables};

    #[test]
    fn a_field_refuses_also_within_a_region_but_not_within_an_object_of_a_family() {
        let text = "protocol p\nservice s = 1 { number: u8 }\nenum Result : u8 { kDone = 0 }\n\
            enum Class : u8 { Thing = 1 }\n\
            struct Answer { result: Result refuses unless kDone }\nfamily Any { class: Class }\n\
            class Thing of Any { result: Result refuses unless kDone }\n\
            message s server 1 Within { all: bytes[u8] as Answer }\n\
            message s server 2 Object { all: bytes[u8] as Any }\n\
            message s server 3 Plain { result: Result }";
        let tables =
            Tables::load("p", vec![TableSource { name: "t".into(), text: text.into() }], &[])
                .unwrap();
        let refusals: Vec<Refusal> =
            tables.messages().iter().map(|message| message.refusal).collect();
        assert_eq!(refusals, [Refusal::ByField, Refusal::Never, Refusal::Never]);
    }

    #[test]
    fn a_value_identifies_what_its_modifiers_say() {
        let text = "protocol p\nstruct S { a: u32 transaction, b: u32 id player, c: u64 identity \
                    region + object, d: u32 }";
        let tables =
            Tables::load("p", vec![TableSource { name: "t".into(), text: text.into() }], &[])
                .unwrap();
        let kinds = |field: &str| {
            let ty = tables
                .fields(tables.type_named("S").unwrap())
                .find(|f| tables.name(f.0) == field)
                .unwrap()
                .1;
            tables.identities(ty).map(|kind| tables.name(kind)).collect::<Vec<_>>()
        };
        assert_eq!(kinds("a"), ["transaction"]);
        assert_eq!(kinds("b"), ["player"]);
        assert_eq!(kinds("c"), ["region", "object"]);
        assert!(kinds("d").is_empty());
    }
}
