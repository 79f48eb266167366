//! Compiles expressions: names become slots or numbers.

use super::super::error::TableError;
use super::super::program::*;
use super::super::text::*;
use super::Compiler;
use super::scope::FieldScope;

impl Compiler<'_> {
    /// Compiles an expression. A name that is not a field is a value of `symbols`, or of the only
    /// enum that has it.
    pub(super) fn expr(
        &mut self,
        e: &ExprAst,
        scope: &FieldScope,
        symbols: Option<EnumId>,
    ) -> Result<ExprId, TableError> {
        let ex = match &e.kind {
            ExprKind::Int(n) => Ex::Const(*n),
            ExprKind::Text(_) => {
                return self.error(e.at, "only a field that is a text is compared with a text");
            }
            ExprKind::Name(name) => match scope.vars.get(name) {
                Some(var) if var.value.text => {
                    let use_it =
                        "`==`, `!=`, `in` and `match` compare it with texts in quotation marks";
                    return self.error(e.at, format!("`{name}` is a text: {use_it}"));
                }
                Some(var) => Ex::Slot { slot: var.slot, signed: var.value.signed },
                None if name == "here" && !self.value_owners.contains_key(name) => Ex::Here,
                None if name == "next" && !self.value_owners.contains_key(name) => Ex::Next(0),
                None => Ex::Const(self.constant(e.at, name, symbols, scope)?),
            },
            ExprKind::Next(passed) => Ex::Next(*passed),
            ExprKind::State(name) => Ex::State(self.state(name, e.at)?),
            ExprKind::Path(of, name) => match self.enum_ids.get(of).copied() {
                Some(id) => Ex::Const(self.constant(e.at, name, Some(id), scope)?),
                None => {
                    let near =
                        crate::suggest::suggestion(of, self.enum_ids.keys().map(String::as_str));
                    return self.error(e.at, format!("there is no enum `{of}`{near}"));
                }
            },
            ExprKind::Binary(op @ (BinaryOp::Eq | BinaryOp::Ne), a, b) if scope.is_text(a) => {
                Ex::Binary(*op, self.subject(a, scope)?, self.compared_text(b)?)
            }
            ExprKind::Binary(op, a, b) => {
                let sa = self.symbols_of(a, scope);
                let sb = self.symbols_of(b, scope);
                let left = self.expr(a, scope, sb.or(symbols))?;
                let right = self.expr(b, scope, sa.or(symbols))?;
                self.folded(*op, left, right)
            }
            ExprKind::Not(a) => Ex::Not(self.expr(a, scope, symbols)?),
            ExprKind::In(a, list) if scope.is_text(a) => {
                let value = self.subject(a, scope)?;
                Ex::In(
                    value,
                    list.iter().map(|word| self.compared_text(word)).collect::<Result<_, _>>()?,
                )
            }
            ExprKind::In(a, list) => {
                let own = self.symbols_of(a, scope);
                let value = self.expr(a, scope, None)?;
                let list =
                    list.iter().map(|v| self.expr(v, scope, own)).collect::<Result<_, _>>()?;
                Ex::In(value, list)
            }
            ExprKind::Remaining => Ex::Remaining,
            ExprKind::More => Ex::More,
            ExprKind::Dialect(name) => match self.dialect_ids.get(name) {
                Some(id) => Ex::Dialect(*id),
                None => {
                    let near = crate::suggest::suggestion(
                        name,
                        self.dialect_ids.keys().map(String::as_str),
                    );
                    return self.error(e.at, format!("there is no dialect `{name}`{near}"));
                }
            },
            ExprKind::Recall(kind, key) => {
                let kind = self.name(kind);
                Ex::Recall(kind, self.expr(key, scope, None)?)
            }
        };
        Ok(self.push_expr(ex))
    }

    fn push_expr(&mut self, ex: Ex) -> ExprId {
        let id = ExprId(self.out.exprs.len() as u32);
        self.out.exprs.push(ex);
        id
    }

    /// Compiles the right side of a comparison: a text, or any other expression.
    pub(super) fn subject(
        &mut self,
        e: &ExprAst,
        scope: &FieldScope,
    ) -> Result<ExprId, TableError> {
        match &e.kind {
            ExprKind::Name(name) => match scope.vars.get(name) {
                Some(var) if var.value.text => {
                    Ok(self.push_expr(Ex::Slot { slot: var.slot, signed: false }))
                }
                _ => self.expr(e, scope, None),
            },
            _ => self.expr(e, scope, None),
        }
    }

    /// The number of the word that a field is compared with.
    pub(super) fn compared_text(&mut self, e: &ExprAst) -> Result<ExprId, TableError> {
        let ExprKind::Text(text) = &e.kind else {
            return self.error(e.at, "expected a text in quotation marks, as the field is a text");
        };
        let next = self.out.words.len() as u64 + 1;
        let number = *self.out.words.entry(text.as_bytes().into()).or_insert(next);
        Ok(self.push_expr(Ex::Const(number.into())))
    }

    /// Compiles a condition, in a short form if there is one.
    pub(super) fn test(&mut self, e: &ExprAst, scope: &FieldScope) -> Result<Test, TableError> {
        let id = self.expr(e, scope, None)?;
        let get = |id: &ExprId| self.out.exprs.get(id.0 as usize);
        match get(&id) {
            Some(Ex::More) => return Ok(Test::More),
            Some(Ex::Dialect(dialect)) => return Ok(Test::Dialect(*dialect, true)),
            Some(Ex::Not(of)) => {
                if let Some(Ex::Dialect(dialect)) = get(of) {
                    return Ok(Test::Dialect(*dialect, false));
                }
            }
            _ => {}
        }
        if let Some(Ex::Binary(op, a, b)) = get(&id)
            && let (Some(Ex::Slot { slot, signed: false }), Some(Ex::Const(n))) = (get(a), get(b))
            && let Ok(n) = u64::try_from(*n)
        {
            match op {
                BinaryOp::Has if n != 0 => return Ok(Test::Has(*slot, n)),
                BinaryOp::Eq => return Ok(Test::Equals(*slot, n)),
                BinaryOp::Ne => return Ok(Test::Differs(*slot, n)),
                BinaryOp::Gt => return Ok(Test::Above(*slot, n)),
                _ => {}
            }
        }
        Ok(Test::General(id))
    }

    /// The enum whose names may be compared with an expression.
    pub(super) fn symbols_of(&self, e: &ExprAst, scope: &FieldScope) -> Option<EnumId> {
        match &e.kind {
            ExprKind::Name(name) => scope.vars.get(name).and_then(|v| v.value.symbols),
            ExprKind::Binary(BinaryOp::BitAnd | BinaryOp::BitXor | BinaryOp::BitOr, a, b) => {
                self.symbols_of(a, scope).or_else(|| self.symbols_of(b, scope))
            }
            _ => None,
        }
    }

    fn folded(&self, op: BinaryOp, a: ExprId, b: ExprId) -> Ex {
        let constant = |id: ExprId| match self.out.exprs.get(id.0 as usize) {
            Some(Ex::Const(n)) => Some(*n),
            _ => None,
        };
        match (constant(a), constant(b)) {
            (Some(x), Some(y)) => apply(op, x, y).map_or(Ex::Binary(op, a, b), Ex::Const),
            _ => Ex::Binary(op, a, b),
        }
    }

    /// The value that an enum gives to a name.
    pub(super) fn value_of(&self, of: EnumId, name: &str) -> Option<u64> {
        let owners = self.value_owners.get(name)?;
        owners
            .binary_search_by_key(&of.0, |owner| owner.0.0)
            .ok()
            .and_then(|i| owners.get(i))
            .map(|owner| owner.1)
    }

    pub(super) fn constant(
        &self,
        at: usize,
        name: &str,
        symbols: Option<EnumId>,
        scope: &FieldScope,
    ) -> Result<i128, TableError> {
        if let Some(value) = symbols.and_then(|of| self.value_of(of, name)) {
            return Ok(i128::from(value));
        }
        match self.value_owners.get(name).map(Vec::as_slice) {
            Some([(_, value)]) => Ok(i128::from(*value)),
            Some(_) => {
                self.error(at, format!("several enums have a value `{name}`: write ENUM.{name}"))
            }
            None => {
                let values = symbols
                    .and_then(|id| self.out.enums.get(id.0 as usize))
                    .map(|e| e.values.as_slice());
                let known = values
                    .unwrap_or_default()
                    .iter()
                    .map(|v| &*v.name)
                    .chain(scope.vars.keys().map(String::as_str));
                let near = crate::suggest::suggestion(name, known);
                self.error(
                    at,
                    format!(
                        "`{name}` is no field before this place, and no value of an enum{near}"
                    ),
                )
            }
        }
    }
}
