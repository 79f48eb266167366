//! Compiles types.

use super::super::error::TableError;
use super::super::program::*;
use super::super::scale::Scale;
use super::super::text::*;
use super::merge::merge;
use super::positions;
use super::scope::FieldScope;
use super::{CodeNames, Compiler};
use crate::tree::{TextKind, TypeRef, mark};

/// The longest chain of aliases.
const MAX_ALIASES: usize = 64;

/// How many types, and how many steps of layouts, tables may have. Aliases and parents are compiled
/// anew wherever they are used, so a short file could expand to any number of them.
pub(super) const MAX_COMPILED: usize = 400_000;

impl Compiler<'_> {
    /// A type without fields around it (an enum's base, a header's field): it has no expressions.
    pub(in crate::table) fn plain_type(&mut self, ast: &TypeAst) -> Result<TypeRef, TableError> {
        let mut scope = FieldScope::default();
        self.type_(ast, &NO_MODS, &mut scope)
    }

    /// A type at a field, with its modifiers.
    pub(super) fn type_(
        &mut self,
        ast: &TypeAst,
        mods: &Mods,
        scope: &mut FieldScope,
    ) -> Result<TypeRef, TableError> {
        if let TypeKind::Named { name, args } = &ast.kind {
            return self.named(ast.at, name, args, mods, scope);
        }
        let read = match &ast.kind {
            TypeKind::Named { .. } => return self.error(ast.at, "a name"),
            TypeKind::Inline(entries) => self.inline(ast.at, entries, scope)?,
            TypeKind::Many { of, len, bytes } => self.many(of, len, *bytes, mods, scope)?,
            TypeKind::As { region, zlib, inner } => {
                self.region(ast.at, region, zlib.as_ref(), inner, mods, scope)?
            }
            TypeKind::Mapping { of, keys, array } => {
                self.mapping(ast.at, of.as_deref(), keys, array.as_deref(), scope)?
            }
            TypeKind::NullOr { present, of } => ReadAs::NullOr {
                present: self.type_(present, &NO_MODS, scope)?,
                of: self.type_(of, &NO_MODS, scope)?,
            },
        };
        let def = TypeDef { read, text: self.type_text(ast).into(), ..TypeDef::blank() };
        self.add(def, mods, scope)
    }

    /// The type of a name with arguments, which is used at `at`.
    pub(super) fn named(
        &mut self,
        at: usize,
        name: &str,
        args: &[ExprAst],
        mods: &Mods,
        scope: &mut FieldScope,
    ) -> Result<TypeRef, TableError> {
        if let Some(read) = builtin(name) {
            if mods.are_none()
                && let Some(ty) = self.known_plain(name, 0)
            {
                return Ok(ty);
            }
            let def = TypeDef { read, text: name.to_string().into(), ..TypeDef::blank() };
            return self.add(def, mods, scope);
        }
        if matches!(
            name,
            "bytes" | "utf8" | "utf16" | "latin1" | "utf8_or_latin1" | "decimal" | "hexadecimal"
        ) {
            return self.error(
                at,
                format!("`{name}` needs a length in brackets, such as {name}[u32] or {name}[*]"),
            );
        }
        if let Some(native) = self.native_ids.get(name).copied() {
            return self.native_type(native, name, args, mods, scope);
        }
        if let Some(id) = self.enum_ids.get(name).copied() {
            return self.enum_type(id, name, args, mods, scope);
        }
        if let Some(family) = self.family_ids.get(name).copied() {
            let def = TypeDef {
                read: ReadAs::Family(family),
                text: name.to_string().into(),
                ..TypeDef::blank()
            };
            return self.add(def, mods, scope);
        }
        if let Some(layout) = self.layout_ids.get(name).copied() {
            let want = self.out.layouts.get(layout.0 as usize).map_or(0, |l| usize::from(l.params));
            if want != args.len() {
                return self
                    .error(at, format!("`{name}` takes {want} parameters, not {}", args.len()));
            }
            let args = self.args(args, scope)?;
            let def = TypeDef {
                read: ReadAs::Layout { layout, args },
                text: name.to_string().into(),
                ..TypeDef::blank()
            };
            return self.add(def, mods, scope);
        }
        if let Some((item, file)) = self.item_named(name)
            && matches!(item.kind, ItemKind::Alias { .. })
        {
            return self.alias(at, &item, file, mods, scope);
        }
        if let Some(value) = positions::value_type(name) {
            let def = TypeDef {
                read: ReadAs::Value(value),
                text: name.to_string().into(),
                ..TypeDef::blank()
            };
            return self.add(def, mods, scope);
        }
        if self.code.is_none() {
            let native = self.native(name);
            return self.native_type(native, name, args, mods, scope);
        }
        let near = self.near(name);
        self.error(at, format!("there is no type `{name}`{near}"))
    }

    /// A type with code.
    fn native_type(
        &mut self,
        native: u32,
        name: &str,
        args: &[ExprAst],
        mods: &Mods,
        scope: &mut FieldScope,
    ) -> Result<TypeRef, TableError> {
        let text = named_text(name, args).into();
        let args = self.args(args, scope)?;
        let def = TypeDef { read: ReadAs::Native { native, args }, text, ..TypeDef::blank() };
        self.add(def, mods, scope)
    }

    /// Compiles an alias, which file number `file` declares. `at` is where it is used, with `mods`.
    fn alias(
        &mut self,
        at: usize,
        alias: &ItemAst,
        file: usize,
        mods: &Mods,
        scope: &mut FieldScope,
    ) -> Result<TypeRef, TableError> {
        let ItemAst { name, kind: ItemKind::Alias { of, mods: own }, .. } = alias else {
            return self.error(at, format!("`{}` is no type", alias.name));
        };
        self.check_size(at)?;
        if self.open_aliases.contains(name) {
            return self.error(at, format!("`{name}` is defined by itself"));
        }
        if self.open_aliases.len() >= MAX_ALIASES {
            return self.error(
                at,
                format!("more than {MAX_ALIASES} types are names for one another here"),
            );
        }
        self.open_aliases.push(name.to_string());
        let here = std::mem::replace(&mut self.file, file);
        let merged = if mods.are_none() { None } else { Some(merge(own, mods)) };
        let result = self.type_(of, merged.as_ref().unwrap_or(own), scope);
        self.file = here;
        self.open_aliases.pop();
        let ty = result?;
        if let Some(def) = self.out.types.get(ty.0 as usize).cloned() {
            let renamed = TypeDef { text: name.to_string().into(), ..def };
            return Ok(self.push(renamed));
        }
        Ok(ty)
    }

    /// Stops where the tables become too large.
    pub(super) fn check_size(&self, at: usize) -> Result<(), TableError> {
        if self.out.types.len().max(self.out.steps.len()) > MAX_COMPILED {
            return self.error(
                at,
                format!(
                    "the tables have more than {MAX_COMPILED} types or fields, with parents and \
                     aliases filled in"
                ),
            );
        }
        Ok(())
    }

    fn enum_type(
        &mut self,
        id: EnumId,
        name: &str,
        args: &[ExprAst],
        mods: &Mods,
        scope: &mut FieldScope,
    ) -> Result<TypeRef, TableError> {
        let base = match args {
            [] => self.out.enums.get(id.0 as usize).map(|e| e.base),
            [ExprAst { kind: ExprKind::Name(base), at, .. }] => {
                Some(self.named(*at, base, &[], &NO_MODS, &mut FieldScope::default())?)
            }
            [other, ..] => {
                return self.error(other.at, "an enum takes one integer type, such as Flags(u8)");
            }
        };
        let read = base.and_then(|b| self.out.types.get(b.0 as usize)).map(|t| t.read.clone());
        let Some(
            read @ (ReadAs::Int { .. }
            | ReadAs::Native { .. }
            | ReadAs::Value(ValueRead::Int | ValueRead::Uint | ValueRead::Any)),
        ) = read
        else {
            return self.error(
                args.first().map_or(0, |a| a.at),
                format!("the enum `{name}` is read from an integer type"),
            );
        };
        let text = match args {
            [ExprAst { kind: ExprKind::Name(base), .. }] => format!("{name}({base})"),
            _ => name.to_string(),
        };
        self.add(
            TypeDef { read, text: text.into(), symbols: Some(id), ..TypeDef::blank() },
            mods,
            scope,
        )
    }

    pub(super) fn inline(
        &mut self,
        at: usize,
        entries: &[Entry],
        scope: &mut FieldScope,
    ) -> Result<ReadAs, TableError> {
        let layout = self.new_layout("");
        let free = scope.free_names(entries);
        self.fill_inline(layout, entries, &free, scope)?;
        let names = free.into_iter().map(|name| ExprAst::leaf(at, ExprKind::Name(name)));
        let args = names.map(|name| self.subject(&name, scope)).collect::<Result<_, _>>()?;
        Ok(ReadAs::Layout { layout, args })
    }

    fn many(
        &mut self,
        of: &TypeAst,
        len: &LenAst,
        bytes: bool,
        mods: &Mods,
        scope: &mut FieldScope,
    ) -> Result<ReadAs, TableError> {
        let len = self.len(len, bytes, scope)?;
        self.check_last(of, len)?;
        let word = match &of.kind {
            TypeKind::Named { name, .. } => name.as_str(),
            _ => "",
        };
        let text = match word {
            "bytes" if matches!(len.from, LenFrom::Zero | LenFrom::To(_)) => {
                return self.error(of.at, "only text and lists have an end of their own");
            }
            "bytes" => return Ok(ReadAs::Bytes(len)),
            "decimal" => return Ok(ReadAs::Digits { radix: 10, len }),
            "hexadecimal" => return Ok(ReadAs::Digits { radix: 16, len }),
            "utf16" if matches!(len.from, LenFrom::To(_) | LenFrom::Until(_) | LenFrom::Blanks) => {
                return self.error(of.at, "only text of 8 bits is read up to a unit ([to N])");
            }
            "utf8" | "utf8_or_latin1" => TextKind::Utf8,
            "utf16" => TextKind::Utf16,
            "latin1" => TextKind::Latin1,
            _ => {
                if matches!(len.from, LenFrom::To(_) | LenFrom::Blanks) {
                    return self.error(of.at, "only text is read up to a unit ([to N])");
                }
                return Ok(ReadAs::List { of: self.type_(of, &NO_MODS, scope)?, len });
            }
        };
        Ok(ReadAs::Text {
            kind: text,
            or_latin1: word == "utf8_or_latin1",
            len,
            end: match (mods.trimmed, mods.terminated) {
                (true, _) => TextEnd::Zeros,
                (_, true) => TextEnd::Zero,
                _ => TextEnd::Whole,
            },
        })
    }

    fn region(
        &mut self,
        at: usize,
        region: &TypeAst,
        zlib: Option<&ZlibAst>,
        inner: &[TypeAst],
        mods: &Mods,
        scope: &mut FieldScope,
    ) -> Result<ReadAs, TableError> {
        let TypeKind::Many { of, len, bytes } = &region.kind else {
            return self.error(at, "a region is written bytes[N] as TYPE");
        };
        if !matches!(&of.kind, TypeKind::Named { name, .. } if name == "bytes") {
            return self.error(at, "a region is written bytes[N] as TYPE");
        }
        let len = self.len(len, *bytes, scope)?;
        let zlib = match zlib {
            Some(ZlibAst { keep, size }) => Some(Zlib {
                keep: self.expr(keep, scope, None)?,
                size: self.expr(size, scope, None)?,
            }),
            None => None,
        };
        let inside = Mods { terminated: mods.terminated, trimmed: mods.trimmed, ..Mods::default() };
        let mut types = Vec::new();
        for ty in inner {
            let ty_ref = self.type_(ty, &inside, scope)?;
            let read = self.out.types.get(ty_ref.0 as usize).map(|t| &t.read);
            if zlib.is_some() && !matches!(read, Some(ReadAs::Layout { .. } | ReadAs::Family(_))) {
                return self.error(ty.at, "a compressed region holds a structure or a family");
            }
            types.push(ty_ref);
        }
        Ok(ReadAs::Region(RegionType { len, inner: types, dialects: mods.dialects, zlib }))
    }

    fn args(
        &mut self,
        args: &[ExprAst],
        scope: &mut FieldScope,
    ) -> Result<Vec<ExprId>, TableError> {
        args.iter().map(|a| self.expr(a, scope, None)).collect()
    }

    fn add(
        &mut self,
        mut def: TypeDef,
        mods: &Mods,
        scope: &mut FieldScope,
    ) -> Result<TypeRef, TableError> {
        if mods.are_none() {
            return Ok(self.push(def));
        }
        if mods.secret {
            def.marks |= mark::SECRET;
        }
        if mods.opaque {
            def.marks |= mark::OPAQUE;
        }
        if mods.unexplained {
            def.marks |= mark::UNEXPLAINED;
        }
        if !mods.names.is_empty() || mods.facts.place.is_some() || mods.facts.same.is_some() {
            def.marks |= mark::NAME;
        }
        def.transaction = mods.transaction;
        def.max = mods.max;
        def.ids = mods.ids.iter().map(|n| self.name(n)).collect();
        def.refers = mods.refers;
        def.names = mods.names.iter().map(|n| self.name(n)).collect();
        def.facts = self.field_facts(&mods.facts, def.symbols)?;
        if let Some(NameAst { name: word, at }) = &mods.shown {
            let known = |code: &CodeNames<'_>| code.shown.contains(&word.as_str());
            if let Some(code) = self.code.filter(|c| !known(c) && Scale::of_word(word).is_none()) {
                let words: Vec<&str> = code.shown.iter().copied().chain(Scale::WORDS).collect();
                return self.error(*at, format!("`shown` knows {}", words.join(", ")));
            }
            def.shown = Some(self.name(word));
        }
        if let Some(e) = &mods.expect {
            let id = self.expr(e, scope, def.symbols)?;
            match self.out.exprs.get(id.0 as usize) {
                Some(Ex::Const(n)) => def.expect = Some(*n as u64),
                _ => return self.error(e.at, "what is expected (`= N`) is a number"),
            }
        }
        Ok(self.push(def))
    }

    fn push(&mut self, def: TypeDef) -> TypeRef {
        let simple = matches!(
            def.read,
            ReadAs::Int { .. }
                | ReadAs::Float { .. }
                | ReadAs::Bool
                | ReadAs::Uuid { .. }
                | ReadAs::Ipv4 { .. }
        );
        let bare = simple
            && def.shown.is_none()
            && def.names.is_empty()
            && def.max.is_none()
            && def.expect.is_none()
            && def.facts.is_none()
            && def.ids.is_empty()
            && !def.transaction;
        if bare && let Some(ty) = self.known_plain(&def.text, def.marks) {
            return ty;
        }
        let ty = TypeRef(self.out.types.len() as u32);
        if bare {
            self.plain_types.entry(def.marks).or_default().insert(def.text.to_string(), ty);
        }
        self.out.types.push(def);
        ty
    }

    /// The type with this text and these marks, and no other modifiers.
    fn known_plain(&self, text: &str, marks: u8) -> Option<TypeRef> {
        self.plain_types.get(&marks)?.get(text).copied()
    }

    /// A type as the language writes it, from its own words.
    fn type_text(&self, ast: &TypeAst) -> String {
        match &ast.kind {
            TypeKind::Named { name, args } => named_text(name, args),
            TypeKind::Inline(_) => "struct".into(),
            TypeKind::Many { of, len, bytes } => {
                let len = match len {
                    LenAst::Rest => "*".into(),
                    LenAst::Zero => "z".into(),
                    LenAst::To(unit) => format!("to {unit}"),
                    LenAst::Until(end) => format!("to \"{}\"", end.escape_ascii()),
                    LenAst::Blanks => "to blanks".into(),
                    LenAst::Last => "until last".into(),
                    LenAst::Inline(ty) => self.type_text(ty),
                    LenAst::Expr(e) => expr_text(e),
                };
                format!("{}[{len}{}]", self.type_text(of), if *bytes { " bytes" } else { "" })
            }
            TypeKind::As { region, inner, .. } => {
                let inner: Vec<_> = inner.iter().map(|t| self.type_text(t)).collect();
                format!("{} as {}", self.type_text(region), inner.join(" | "))
            }
            TypeKind::Mapping { of: Some(of), .. } => format!("mapping of {}", self.type_text(of)),
            TypeKind::Mapping { .. } => "mapping".into(),
            TypeKind::NullOr { present, of } => {
                format!("null_or({}) {}", self.type_text(present), self.type_text(of))
            }
        }
    }

    fn near(&self, name: &str) -> String {
        let known = [
            "u8", "u16", "u32", "u64", "i32", "bool", "uuid", "ipv4", "utf8", "utf16", "bytes",
            "decimal", "f32", "f64", "int", "uint", "float", "text", "value", "mapping",
        ];
        let declared = self
            .layout_ids
            .keys()
            .chain(self.enum_ids.keys())
            .chain(self.family_ids.keys())
            .chain(self.native_ids.keys());
        crate::suggest::suggestion(name, known.into_iter().chain(declared.map(String::as_str)))
    }
}

/// A name with its arguments as the language writes them.
fn named_text(name: &str, args: &[ExprAst]) -> String {
    match args {
        [] => name.to_string(),
        _ => format!("{name}({})", args.iter().map(expr_text).collect::<Vec<_>>().join(", ")),
    }
}

fn expr_text(e: &ExprAst) -> String {
    match &e.kind {
        ExprKind::Int(n) => n.to_string(),
        ExprKind::Name(n) => n.clone(),
        ExprKind::Path(a, b) => format!("{a}.{b}"),
        ExprKind::Remaining => "remaining".into(),
        ExprKind::Next(passed) => format!("next({passed})"),
        _ => "…".into(),
    }
}

fn builtin(name: &str) -> Option<ReadAs> {
    let (plain, big) = match name.strip_suffix("be") {
        Some(plain) => (plain, true),
        None => (name, false),
    };
    let order = if big { ByteOrder::Big } else { ByteOrder::Little };
    Some(match plain {
        "u8" | "i8" if !big => ReadAs::Int { size: 1, signed: plain == "i8", order },
        "u16" | "i16" => ReadAs::Int { size: 2, signed: plain == "i16", order },
        "u24" => ReadAs::Int { size: 3, signed: false, order },
        "u32" | "i32" => ReadAs::Int { size: 4, signed: plain == "i32", order },
        "u64" | "i64" => ReadAs::Int { size: 8, signed: plain == "i64", order },
        "u32pdp" if !big => ReadAs::Int { size: 4, signed: false, order: ByteOrder::Pdp },
        "f32" => ReadAs::Float { size: 4, big },
        "f64" => ReadAs::Float { size: 8, big },
        "bool" if !big => ReadAs::Bool,
        "uuid" => ReadAs::Uuid { plain: big },
        "ipv4" => ReadAs::Ipv4 { big },
        _ => return None,
    })
}
