//! Compiles bodies of structures into steps, and the names that their expressions may use.

use std::rc::Rc;

use super::super::error::TableError;
use super::super::program::*;
use super::super::text::*;
use super::Compiler;
use super::scope::{FieldScope, ValueSort, refs_of_entries};
use crate::maps::SeededSet;
use crate::tree::{TextKind, TypeRef, mark};

impl Compiler<'_> {
    pub(super) fn new_layout(&mut self, name: &str) -> LayoutId {
        let id = LayoutId(self.out.layouts.len() as u32);
        let name_sym = self.name(name);
        let ty = TypeRef(self.out.types.len() as u32);
        let text = if name.is_empty() { "struct".to_string() } else { name.to_string() };
        self.out.types.push(TypeDef {
            read: ReadAs::Layout { layout: id, args: Vec::new() },
            text: text.into(),
            ..TypeDef::blank()
        });
        let (params, positions) = match self.item_named(name).as_ref().map(|i| &i.0.kind) {
            Some(ItemKind::Struct(s)) => (s.params.len() as u16, s.positions),
            _ => (0, false),
        };
        self.out.layouts.push(Layout {
            name: name_sym,
            ty,
            start: 0,
            slots: 0,
            params,
            positions: positions.then(Positions::default),
            min_bits: 0,
            info: None,
            carries: None,
        });
        id
    }

    /// Compiles a declared structure: its ancestors' entries first.
    pub(super) fn fill_layout(&mut self, id: LayoutId, body: &StructAst) -> Result<(), TableError> {
        let ancestors = self.ancestors(body)?;
        let chain: Vec<(&StructAst, usize)> =
            bodies(&ancestors).chain([(body, self.file)]).collect();
        let outer = std::mem::replace(&mut self.positional, body.positions);
        if body.positions {
            self.fill_positions(id, chain.iter().flat_map(|(s, _)| &s.entries))?;
        }
        let mut scope = FieldScope { optional: body.optional, ..FieldScope::default() };
        for (s, _) in &chain {
            refs_of_entries(&s.entries, &mut scope.wanted);
            scope.wanted.extend(s.params.iter().cloned());
        }
        let beginning = body.beginning.as_deref();
        beginning.into_iter().for_each(|beginning| beginning.refs(&mut scope.wanted));
        // What stands before the first step that is no part of the beginning.
        let behind_beginning = beginning.and_then(|beginning| match &beginning.structure {
            Some(first) => ancestors.iter().position(|(item, _)| item.name == first.name),
            None => None,
        });
        let behind_beginning = behind_beginning.map_or(0, |last| last + 1);
        let own_file = chain.last().map_or(self.file, |c| c.1);
        for param in &body.params {
            scope.declare(param, ValueSort::default());
        }
        let own_params: SeededSet<&String> = body.params.iter().collect();
        let mut ops = Vec::new();
        for (place, (s, file)) in chain.iter().enumerate() {
            self.file = *file;
            if let Some(beginning) = beginning.filter(|_| place == behind_beginning) {
                ops.push(self.chosen(beginning, &scope)?);
            }
            if s.params.iter().any(|p| !own_params.contains(p)) {
                return self.error(
                    0,
                    "a structure with parameters can be extended only by one that names the same \
                     parameters",
                );
            }
            self.entries(&s.entries, &mut scope, &mut ops)?;
        }
        self.positional = outer;
        self.file = own_file;
        self.store(id, ops, &scope, body.params.len())?;
        let parent = body.parent.as_ref();
        let parent = parent.and_then(|parent| self.layout_ids.get(&parent.name)).copied();
        self.info(body, id, parent)
    }

    /// Compiles the entries of all that a structure extends, the most distant first.
    pub(super) fn chain_entries(
        &mut self,
        body: &StructAst,
        scope: &mut FieldScope,
        ops: &mut Vec<LayoutStep>,
    ) -> Result<(), TableError> {
        let own_file = self.file;
        let ancestors = self.ancestors(body)?;
        bodies(&ancestors).for_each(|(s, _)| refs_of_entries(&s.entries, &mut scope.wanted));
        for (s, file) in bodies(&ancestors) {
            self.file = file;
            self.entries(&s.entries, scope, ops)?;
        }
        self.file = own_file;
        Ok(())
    }

    /// The structures whose fields come before those of a structure: those that it extends and,
    /// before them, the beginning of all messages of its service.
    fn ancestors(&mut self, body: &StructAst) -> Result<Vec<(Rc<ItemAst>, usize)>, TableError> {
        let mut found = self.extended(body)?;
        let first = body.beginning.as_ref().and_then(|beginning| beginning.structure.as_ref());
        if let Some(first) = first
            && !found.iter().any(|(item, _)| item.name == first.name)
        {
            let first = StructAst { parent: Some(first.clone()), ..StructAst::default() };
            let mut all = self.extended(&first)?;
            all.append(&mut found);
            found = all;
        }
        Ok(found)
    }

    /// The structures a structure extends, the most distant first.
    fn extended(&mut self, body: &StructAst) -> Result<Vec<(Rc<ItemAst>, usize)>, TableError> {
        let own_file = self.file;
        let mut found: Vec<(Rc<ItemAst>, usize)> = Vec::new();
        let mut parent = body.parent.clone();
        while let Some(NameAst { name, at }) = parent {
            let named = self.item_named(&name);
            let Some((item, file)) = named.filter(|n| matches!(n.0.kind, ItemKind::Struct(_)))
            else {
                let near =
                    crate::suggest::suggestion(&name, self.layout_ids.keys().map(String::as_str));
                return self.error(at, format!("there is no structure `{name}` to extend{near}"));
            };
            if found.len() >= 32 {
                return self.error(at, format!("`{name}` extends itself, or more than 32 others"));
            }
            self.file = file;
            let ItemKind::Struct(s) = &item.kind else { break };
            self.file = own_file;
            self.same_sort(at, s, body)?;
            self.file = file;
            parent = s.parent.clone();
            found.push((item, file));
        }
        self.file = own_file;
        found.reverse();
        Ok(found)
    }

    /// Compiles a structure without a name. The names that it uses from the outer one become its
    /// parameters.
    pub(super) fn fill_inline(
        &mut self,
        id: LayoutId,
        entries: &[Entry],
        params: &[String],
        outer: &FieldScope,
    ) -> Result<(), TableError> {
        let mut scope = FieldScope::default();
        refs_of_entries(entries, &mut scope.wanted);
        scope.wanted.extend(params.iter().cloned());
        for param in params {
            let var = outer.vars.get(param);
            scope.declare(param, var.map_or(ValueSort::default(), |var| var.value));
        }
        if self.positional {
            self.fill_positions(id, entries.iter())?;
        }
        let mut ops = Vec::new();
        self.entries(entries, &mut scope, &mut ops)?;
        self.store(id, ops, &scope, params.len())
    }

    /// Jumps were compiled relative to the structure's first step. Here they get their final
    /// targets.
    pub(super) fn store(
        &mut self,
        id: LayoutId,
        mut ops: Vec<LayoutStep>,
        scope: &FieldScope,
        params: usize,
    ) -> Result<(), TableError> {
        if scope.is_full {
            return self.error(
                0,
                format!(
                    "a structure has more than {NO_SLOT} parameters and values for expressions"
                ),
            );
        }
        ops.push(LayoutStep::End);
        let base = self.out.steps.len() as u32;
        for op in &mut ops {
            match op {
                LayoutStep::Branch { otherwise, .. } => *otherwise += base,
                LayoutStep::Jump(to) => *to += base,
                LayoutStep::Switch { targets, otherwise, .. } => {
                    *otherwise += base;
                    targets.iter_mut().for_each(|t| t.1 += base);
                }
                _ => {}
            }
        }
        self.out.steps.extend(ops);
        if let Some(layout) = self.out.layouts.get_mut(id.0 as usize) {
            layout.start = base;
            layout.slots = scope.slots;
            layout.params = params as u16;
        }
        Ok(())
    }

    fn entries(
        &mut self,
        entries: &[Entry],
        scope: &mut FieldScope,
        ops: &mut Vec<LayoutStep>,
    ) -> Result<(), TableError> {
        for entry in entries {
            self.entry(entry, scope, ops)?;
        }
        Ok(())
    }

    fn entry(
        &mut self,
        entry: &Entry,
        scope: &mut FieldScope,
        ops: &mut Vec<LayoutStep>,
    ) -> Result<(), TableError> {
        match entry {
            Entry::Field(field) => self.field(field, scope, ops)?,
            Entry::If { arms, otherwise } => self.choice(arms, otherwise, scope, ops)?,
            Entry::Match { on, arms, otherwise } => {
                self.matching(on, arms, otherwise, scope, ops)?
            }
            Entry::Say { severity, concern, text } => {
                let text = self.name(text);
                ops.push(LayoutStep::Say { severity: *severity, concern: *concern, text });
            }
            Entry::Undecoded => ops.push(LayoutStep::Undecoded),
            Entry::Partial => ops.push(LayoutStep::Partial),
            Entry::Last => ops.push(LayoutStep::Last),
            Entry::Remember { kind, key, value } => {
                let kind = self.name(kind);
                let key = self.expr(key, scope, None)?;
                let value = self.expr(value, scope, None)?;
                ops.push(LayoutStep::Remember { kind, key, value });
            }
            Entry::Set { state, at, value } => {
                let state = self.state(state, *at)?;
                let value = self.expr(value, scope, None)?;
                ops.push(LayoutStep::Set { state, value });
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        field: &FieldAst,
        scope: &mut FieldScope,
        ops: &mut Vec<LayoutStep>,
    ) -> Result<(), TableError> {
        let FieldAst { name, at, .. } = field;
        let mods = field.mods.as_deref().unwrap_or(&NO_MODS);
        self.check_size(*at)?;
        let ty = self.type_(&field.of, mods, scope)?;
        self.check_sort(&field.of, ty)?;
        let def = self.out.types.get(ty.0 as usize);
        let symbols = def.and_then(|d| d.symbols);
        let signed = matches!(
            def.map(|d| &d.read),
            Some(ReadAs::Int { signed: true, .. } | ReadAs::Digits { .. })
        );
        let scalar = matches!(
            def.map(|d| &d.read),
            Some(
                ReadAs::Int { .. }
                    | ReadAs::Bool
                    | ReadAs::Digits { .. }
                    | ReadAs::Ipv4 { .. }
                    | ReadAs::Native { .. }
                    | ReadAs::NullOr { .. }
                    | ReadAs::Family(_)
            )
        );
        let text = matches!(
            def.map(|d| &d.read),
            Some(ReadAs::Text { kind: TextKind::Utf8 | TextKind::Latin1, .. })
        );
        let slot = scope.declare(name, ValueSort { symbols, signed, text });
        if slot != NO_SLOT && !scalar && !text {
            let message = format!(
                "`{name}` is used in an expression, so it has to be a number, or a text of bytes"
            );
            return self.error(*at, message);
        }
        if slot != NO_SLOT && slot >= 64 {
            return self
                .error(*at, "more than 64 fields of this structure are used in expressions");
        }
        let sym = self.name(name);
        let marks = if field.span { mark::SPAN } else { 0 };
        let kept = if text { NO_SLOT } else { slot };
        let step = LayoutStep::Field { name: sym, ty, slot: kept, marks, op: TypeOp::NONE };
        if (mods.optional || scope.optional) && !self.positional {
            self.optional(name, sym, ty, step, ops);
        } else {
            ops.push(step);
        }
        if text && slot != NO_SLOT {
            ops.push(LayoutStep::Word { name: sym, slot });
        }
        match &mods.checksum {
            Some(checksum) => self.checksum(field, checksum, scope, ops),
            None => Ok(()),
        }
    }

    /// Adds the step that compares the field before it with a checksum.
    fn checksum(
        &mut self,
        field: &FieldAst,
        checksum: &ChecksumAst,
        scope: &mut FieldScope,
        ops: &mut Vec<LayoutStep>,
    ) -> Result<(), TableError> {
        let NameAst { name, at } = &checksum.name;
        let Some(sum) = Checksum::WORDS.iter().find(|(word, _)| word == name).map(|(_, sum)| *sum)
        else {
            let words = Checksum::WORDS.map(|(word, _)| word);
            let near = crate::suggest::suggestion(name, words.into_iter());
            return self.error(
                *at,
                format!("a checksum is one of {}, not `{name}`{near}", words.join(", ")),
            );
        };
        let Some(var) = scope.vars.get(&field.name).copied() else { return Ok(()) };
        let from = self.expr(&checksum.from, scope, None)?;
        let to = self.expr(&checksum.to, scope, None)?;
        let last = ops
            .iter()
            .rev()
            .find_map(|op| if let LayoutStep::Field { ty, .. } = op { Some(*ty) } else { None });
        let size = match last.and_then(|ty| self.out.types.get(ty.0 as usize)).map(|def| &def.read)
        {
            Some(ReadAs::Int { size, .. }) => *size,
            _ => 0,
        };
        ops.push(LayoutStep::Checksum { sum, slot: var.slot, size, from, to });
        Ok(())
    }

    fn choice(
        &mut self,
        arms: &[(ExprAst, Vec<Entry>)],
        otherwise: &[Entry],
        scope: &mut FieldScope,
        ops: &mut Vec<LayoutStep>,
    ) -> Result<(), TableError> {
        let mut to_end = Vec::new();
        for (i, (cond, body)) in arms.iter().enumerate() {
            let test = self.test(cond, scope)?;
            let branch = ops.len();
            ops.push(LayoutStep::Branch { test, otherwise: 0 });
            self.entries(body, scope, ops)?;
            if i + 1 < arms.len() || !otherwise.is_empty() {
                to_end.push(ops.len());
                ops.push(LayoutStep::Jump(0));
            }
            let here = ops.len() as u32;
            if let Some(LayoutStep::Branch { otherwise, .. }) = ops.get_mut(branch) {
                *otherwise = here;
            }
        }
        self.entries(otherwise, scope, ops)?;
        land(&to_end, ops);
        Ok(())
    }

    fn matching(
        &mut self,
        on: &ExprAst,
        arms: &[(Vec<ExprAst>, Vec<Entry>)],
        otherwise: &[Entry],
        scope: &mut FieldScope,
        ops: &mut Vec<LayoutStep>,
    ) -> Result<(), TableError> {
        let symbols = self.symbols_of(on, scope);
        let text = scope.is_text(on);
        let value = self.subject(on, scope)?;
        let switch = ops.len();
        ops.push(LayoutStep::Jump(0));
        let mut targets: Vec<(i128, u32)> = Vec::new();
        let mut taken = SeededSet::default();
        let mut to_end = Vec::new();
        for (values, body) in arms {
            let here = ops.len() as u32;
            for v in values {
                let id = if text { self.compared_text(v)? } else { self.expr(v, scope, symbols)? };
                let Some(Ex::Const(n)) = self.out.exprs.get(id.0 as usize) else {
                    return self
                        .error(v.at, "`match` chooses by numbers, names of enum values and texts");
                };
                if !taken.insert(*n) {
                    return self.error(v.at, "this value is in `match` twice");
                }
                targets.push((*n, here));
            }
            self.entries(body, scope, ops)?;
            to_end.push(ops.len());
            ops.push(LayoutStep::Jump(0));
        }
        let default = ops.len() as u32;
        self.entries(otherwise, scope, ops)?;
        land(&to_end, ops);
        targets.sort_by_key(|t| t.0);
        if let Some(op) = ops.get_mut(switch) {
            *op = LayoutStep::Switch { on: value, targets: targets.into(), otherwise: default };
        }
        Ok(())
    }
}

/// The bodies of structures, with their files.
fn bodies(items: &[(Rc<ItemAst>, usize)]) -> impl Iterator<Item = (&StructAst, usize)> {
    items.iter().filter_map(|(item, file)| match &item.kind {
        ItemKind::Struct(s) => Some((s, *file)),
        _ => None,
    })
}

fn land(jumps: &[usize], ops: &mut [LayoutStep]) {
    let here = ops.len() as u32;
    for at in jumps {
        if let Some(op) = ops.get_mut(*at) {
            *op = LayoutStep::Jump(here);
        }
    }
}
