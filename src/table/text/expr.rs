//! Expressions: conditions, lengths, arguments.

use super::super::error::TableError;
use super::declarations::TableParser;
use super::lex::Tok;
use super::syntax::*;

/// How deep an expression may be: `a + b + c` has a depth of 3.
const MAX_EXPR_DEPTH: u16 = 128;

/// The operations on numbers. Those of later rows bind closer.
const OPERATIONS: [&[(&str, BinaryOp)]; 6] = [
    &[("|", BinaryOp::BitOr)],
    &[("^", BinaryOp::BitXor)],
    &[("&", BinaryOp::BitAnd)],
    &[("<<", BinaryOp::Shl), (">>", BinaryOp::Shr)],
    &[("+", BinaryOp::Add), ("-", BinaryOp::Sub)],
    &[("*", BinaryOp::Mul), ("/", BinaryOp::Div), ("%", BinaryOp::Rem)],
];

impl TableParser<'_> {
    /// An expression.
    pub(super) fn expr(&mut self) -> Result<ExprAst, TableError> {
        self.deeper(Self::or)
    }

    fn or(&mut self) -> Result<ExprAst, TableError> {
        let mut left = self.and()?;
        while self.eat_word("or")? {
            let right = self.and()?;
            left = binary(self, BinaryOp::Or, left, right)?;
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<ExprAst, TableError> {
        let mut left = self.not()?;
        while self.eat_word("and")? {
            let right = self.not()?;
            left = binary(self, BinaryOp::And, left, right)?;
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<ExprAst, TableError> {
        let at = self.now.at;
        if self.eat_word("not")? {
            let of = self.deeper(Self::not)?;
            return Ok(ExprAst { at, depth: of.depth + 1, kind: ExprKind::Not(Box::new(of)) });
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<ExprAst, TableError> {
        let left = self.parse_number()?;
        let ops = [
            ("==", BinaryOp::Eq),
            ("!=", BinaryOp::Ne),
            ("<=", BinaryOp::Le),
            (">=", BinaryOp::Ge),
            ("<", BinaryOp::Lt),
            (">", BinaryOp::Gt),
        ];
        for (sign, op) in ops {
            if self.eat(sign)? {
                let right = self.parse_number()?;
                return binary(self, op, left, right);
            }
        }
        if self.eat_word("has")? {
            let right = self.parse_number()?;
            return binary(self, BinaryOp::Has, left, right);
        }
        if self.eat_word("in")? {
            self.need("(")?;
            let mut values = Vec::new();
            while !self.eat(")")? {
                values.push(self.parse_number()?);
                self.eat(",")?;
            }
            return Ok(ExprAst {
                at: left.at,
                depth: values.iter().map(|v| v.depth).max().unwrap_or(0).max(left.depth) + 1,
                kind: ExprKind::In(Box::new(left), values),
            });
        }
        Ok(left)
    }

    /// An expression that is a number: what may be compared.
    pub(super) fn parse_number(&mut self) -> Result<ExprAst, TableError> {
        self.operations(0)
    }

    /// A number in a list in which `|` separates them.
    pub(super) fn alternative(&mut self) -> Result<ExprAst, TableError> {
        self.operations(1)
    }

    /// Operations of these and later rows of [`OPERATIONS`]. Those that bind equally are read from
    /// left to right.
    fn operations(&mut self, first: usize) -> Result<ExprAst, TableError> {
        let mut left = self.atom()?;
        'more: loop {
            for (row, signs) in OPERATIONS.iter().enumerate().skip(first) {
                for (sign, op) in *signs {
                    if self.eat(sign)? {
                        let right = self.operations(row + 1)?;
                        left = binary(self, *op, left, right)?;
                        continue 'more;
                    }
                }
            }
            return Ok(left);
        }
    }

    fn atom(&mut self) -> Result<ExprAst, TableError> {
        let at = self.now.at;
        if self.eat("-")? {
            let n = self.int("a number")?;
            return Ok(ExprAst::leaf(at, ExprKind::Int(-i128::from(n))));
        }
        if self.eat("(")? {
            let inner = self.expr()?;
            self.need(")")?;
            return Ok(inner);
        }
        if let Tok::Int(n) = self.now.tok {
            self.advance()?;
            return Ok(ExprAst::leaf(at, ExprKind::Int(i128::from(n))));
        }
        if let Tok::Str(text) = &self.now.tok {
            let text = text.to_string();
            self.advance()?;
            return Ok(ExprAst::leaf(at, ExprKind::Text(text)));
        }
        let name = self.name("a number, a field's name or `(`")?.name;
        let kind = match name.as_str() {
            "remaining" => ExprKind::Remaining,
            "more" => ExprKind::More,
            "state" if self.eat(".")? => ExprKind::State(self.name("the name of a state")?.name),
            "dialect" => ExprKind::Dialect(self.name("the dialect's name")?.name),
            "next" if self.is_sign("(") => {
                self.need("(")?;
                let passed = self.int("how many bytes are passed over")?;
                self.need(")")?;
                ExprKind::Next(u32::try_from(passed).unwrap_or(u32::MAX))
            }
            "recall" if self.is_sign("(") => {
                self.need("(")?;
                let kind = self.name("what kind of thing was remembered")?.name;
                self.need(",")?;
                let key = self.expr()?;
                self.need(")")?;
                return Ok(ExprAst {
                    at,
                    depth: key.depth + 1,
                    kind: ExprKind::Recall(kind, Box::new(key)),
                });
            }
            _ if self.eat(".")? => {
                ExprKind::Path(name, self.name("the name of an enum's value")?.name)
            }
            _ => ExprKind::Name(name),
        };
        Ok(ExprAst::leaf(at, kind))
    }
}

/// Joins two expressions. The compiler and the evaluator recurse into expressions, so their depth
/// is bounded.
fn binary(
    p: &TableParser<'_>,
    op: BinaryOp,
    left: ExprAst,
    right: ExprAst,
) -> Result<ExprAst, TableError> {
    let depth = left.depth.max(right.depth) + 1;
    if depth > MAX_EXPR_DEPTH {
        let message = format!(
            "an expression of more than {MAX_EXPR_DEPTH} terms; `X in (A, B)` takes any number"
        );
        return Err(p.lex.error(p.now.at, message));
    }
    Ok(ExprAst { at: left.at, depth, kind: ExprKind::Binary(op, Box::new(left), Box::new(right)) })
}
