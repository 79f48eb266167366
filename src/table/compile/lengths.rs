//! Compiles lengths: the counts of lists, and where bytes, texts and lists end.

use super::super::error::TableError;
use super::super::program::*;
use super::super::text::*;
use super::Compiler;
use super::scope::FieldScope;

impl Compiler<'_> {
    /// Makes sure that a list whose elements say which is the last one has such elements.
    pub(super) fn check_last(&self, of: &TypeAst, len: Len) -> Result<(), TableError> {
        if !matches!(len.from, LenFrom::Last) || self.says_last(of) {
            return Ok(());
        }
        self.error(
            of.at,
            "what `[until last]` ends is a list of a structure in which `last` says that it is \
             the last one",
        )
    }

    /// Whether a type is a structure that can say that it is the last of a list.
    fn says_last(&self, of: &TypeAst) -> bool {
        fn within(entries: &[Entry]) -> bool {
            entries.iter().any(|entry| match entry {
                Entry::Last => true,
                Entry::If { arms, otherwise } => {
                    arms.iter().any(|arm| within(&arm.1)) || within(otherwise)
                }
                Entry::Match { arms, otherwise, .. } => {
                    arms.iter().any(|arm| within(&arm.1)) || within(otherwise)
                }
                _ => false,
            })
        }
        match &of.kind {
            TypeKind::Inline(entries) => within(entries),
            TypeKind::Named { name, .. } => self.item_named(name).is_some_and(
                |(item, _)| matches!(&item.kind, ItemKind::Struct(body) if within(&body.entries)),
            ),
            _ => false,
        }
    }

    pub(super) fn len(
        &mut self,
        len: &LenAst,
        bytes: bool,
        scope: &mut FieldScope,
    ) -> Result<Len, TableError> {
        let from = match len {
            LenAst::Rest => LenFrom::Rest,
            LenAst::Zero => LenFrom::Zero,
            LenAst::To(unit) => match u8::try_from(*unit) {
                Ok(unit) => LenFrom::To(unit),
                Err(_) => return self.error(0, "text is read up to a unit of 8 bits"),
            },
            LenAst::Until(end) => {
                let known = self.out.delimiters.iter().position(|d| d == end);
                if known.is_none() {
                    self.out.delimiters.push(end.clone());
                }
                LenFrom::Until(known.unwrap_or(self.out.delimiters.len() - 1) as u32)
            }
            LenAst::Blanks => LenFrom::Blanks,
            LenAst::Last => LenFrom::Last,
            LenAst::Inline(ty) => LenFrom::Inline(self.plain_type(ty)?),
            LenAst::Expr(ExprAst { kind: ExprKind::Int(n), at, .. }) => match u32::try_from(*n) {
                Ok(n) => LenFrom::Const(n),
                Err(_) => return self.error(*at, "a length has 32 bits at most"),
            },
            LenAst::Expr(e) => {
                self.check_count(e, scope)?;
                LenFrom::Expr(self.expr(e, scope, None)?)
            }
        };
        Ok(Len { from, bytes })
    }

    /// An unknown word in a length may be a misspelt integer type: `[u17]`.
    fn check_count(&self, e: &ExprAst, scope: &FieldScope) -> Result<(), TableError> {
        let ExprKind::Name(name) = &e.kind else { return Ok(()) };
        if scope.vars.contains_key(name) || self.value_owners.contains_key(name) {
            return Ok(());
        }
        let near = crate::suggest::suggestion(
            name,
            scope.vars.keys().map(String::as_str).chain(INTEGER_TYPES),
        );
        self.error(
            e.at,
            format!(
                "`{name}` is no integer type, no field before this place, and no value of an \
                 enum{near}"
            ),
        )
    }
}
