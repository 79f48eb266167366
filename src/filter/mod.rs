//! Filters: which records somebody wants, said with the names the JSON has. The language is described in `docs/filters.md`.
//!
//! An expression is compiled once and tested on records and trees as they are, without making JSON of them. This room knows tables,
//! trees and records; it knows no protocol and not the command line.

mod compare;
mod literal;
mod names;
mod parse;
mod path;
mod scan;
mod value;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

pub use path::Path;
pub use value::{Leaf, Scope, Value};

use crate::out::Record;
use crate::proto::LazyTables;
use literal::Literal;
use names::Names;
use regex_lite::Regex;

/// A compiled expression.
pub struct Filter {
    expr: Expr,
    protocols: Vec<String>,
    redact: bool,
    notes: Vec<String>,
    doubts: Vec<FilterError>,
    kept: AtomicBool,
}

/// A mistake in an expression, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    expression: String,
    /// Byte offset of the mistake.
    at: usize,
    /// Its length in bytes.
    length: usize,
    message: String,
}

/// A condition.
enum Expr {
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Not(Box<Expr>),
    Test(Path, Check),
}

/// What is asked of the values at a path; one that fits is enough.
enum Check {
    Present,
    Compare(Op, Literal),
    In(Vec<Literal>),
    Contains(Literal),
    Matches(Regex),
    Has(Literal),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Filter {
    /// Compiles an expression against the tables of all protocols, of which those are loaded that are needed to know its names. With
    /// `redact`, secrets look as the outputs show them.
    ///
    /// # Errors
    /// What is wrong with the expression, and where.
    pub fn compile(expression: &str, tables: &[LazyTables], redact: bool) -> Result<Filter, FilterError> {
        let names = Names::new(tables);
        let (mut expr, parse::Remarks { notes, doubts }) = parse::expression(expression, &names)?;
        expr.cheap_first();
        let (protocols, kept) = (protocols(tables), AtomicBool::new(false));
        Ok(Filter { expr, protocols, redact, notes, doubts, kept })
    }

    /// Whether a record is kept.
    pub fn keeps(&self, record: &Record<'_>) -> bool {
        let kept = self.expr.holds(&Scope::new(record, &self.protocols, self.redact));
        if kept && !self.doubts.is_empty() {
            self.kept.store(true, Ordering::Relaxed);
        }
        kept
    }

    /// What is worth saying about the expression, such as names that no table knows.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Names that no table knows and that look like mistakes, but may come with the traffic itself.
    pub fn doubts(&self) -> &[FilterError] {
        &self.doubts
    }

    /// The judgement once all was read: where nothing was kept, a doubtful name was a mistake.
    ///
    /// # Errors
    /// The first such name.
    pub fn verdict(&self) -> Result<(), FilterError> {
        match self.doubts.first() {
            Some(doubt) if !self.kept.load(Ordering::Relaxed) => Err(doubt.clone()),
            _ => Ok(()),
        }
    }
}

/// Paths into records, compiled together.
#[derive(Clone)]
pub struct Paths {
    paths: Vec<Path>,
    protocols: Vec<String>,
    redact: bool,
    doubts: Vec<FilterError>,
}

impl Paths {
    /// Compiles paths separated by commas, as `--columns` has them.
    ///
    /// # Errors
    /// What is wrong with one of them, and where.
    pub fn compile(list: &str, tables: &[LazyTables], redact: bool) -> Result<Paths, FilterError> {
        let names = Names::new(tables);
        let (paths, parse::Remarks { doubts, .. }) = parse::paths(list, &names)?;
        Ok(Paths { paths, protocols: protocols(tables), redact, doubts })
    }

    /// Names that no table knows and that look like mistakes, but may come with the traffic itself.
    pub fn doubts(&self) -> &[FilterError] {
        &self.doubts
    }

    /// The paths.
    pub fn paths(&self) -> &[Path] {
        &self.paths
    }

    /// What paths are looked up in.
    pub fn scope<'a>(&self, record: &'a Record<'a>) -> Scope<'a> {
        Scope::new(record, &self.protocols, self.redact)
    }
}

fn protocols(tables: &[LazyTables]) -> Vec<String> {
    tables.iter().map(|t| t.protocol().name().to_string()).collect()
}

impl Expr {
    fn holds(&self, scope: &Scope<'_>) -> bool {
        match self {
            Expr::And(all) => all.iter().all(|e| e.holds(scope)),
            Expr::Or(any) => any.iter().any(|e| e.holds(scope)),
            Expr::Not(e) => !e.holds(scope),
            Expr::Test(path, check) => scope.any(path, &mut |value| check.holds(scope, value)),
        }
    }

    /// What a condition costs: those on the record itself next to nothing, a search at any depth most.
    fn cost(&self) -> u32 {
        match self {
            Expr::And(list) | Expr::Or(list) => list.iter().map(Expr::cost).max().unwrap_or(0),
            Expr::Not(e) => e.cost(),
            Expr::Test(path, check) => path.cost() + u32::from(matches!(check, Check::Matches(_))),
        }
    }

    /// Orders what may be tested in any order by its cost.
    fn cheap_first(&mut self) {
        match self {
            Expr::And(list) | Expr::Or(list) => {
                list.iter_mut().for_each(Expr::cheap_first);
                list.sort_by_key(Expr::cost);
            }
            Expr::Not(e) => e.cheap_first(),
            Expr::Test(..) => {}
        }
    }
}

impl Check {
    fn holds(&self, scope: &Scope<'_>, value: Value<'_>) -> bool {
        match self {
            Check::Present => true,
            Check::Compare(op, literal) => op.holds(compare::compare(&scope.leaf(value), literal)),
            Check::In(list) => {
                let leaf = scope.leaf(value);
                list.iter().any(|l| Op::Eq.holds(compare::compare(&leaf, l)))
            }
            Check::Contains(literal) => compare::contains(&scope.leaf(value), literal),
            Check::Matches(regex) => compare::text(&scope.leaf(value)).is_some_and(|t| regex.is_match(&t)),
            Check::Has(literal) => compare::has(&scope.leaf(value), literal),
        }
    }
}

impl Op {
    /// Whether an order fits; none means values of different kinds.
    fn holds(self, order: Option<std::cmp::Ordering>) -> bool {
        match self {
            Op::Eq => order.is_some_and(|o| o.is_eq()),
            Op::Ne => order.is_none_or(|o| o.is_ne()),
            Op::Lt => order.is_some_and(|o| o.is_lt()),
            Op::Le => order.is_some_and(|o| o.is_le()),
            Op::Gt => order.is_some_and(|o| o.is_gt()),
            Op::Ge => order.is_some_and(|o| o.is_ge()),
        }
    }
}

impl FilterError {
    fn new(expression: &str, (at, end): (usize, usize), message: impl Into<String>) -> FilterError {
        FilterError { expression: expression.into(), at, length: end.saturating_sub(at), message: message.into() }
    }
}

impl FilterError {
    /// What is wrong, in one line.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: String = self.expression.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let before = self.expression.get(..self.at).map_or(0, |t| t.chars().count());
        let marked = self.expression.get(self.at..self.at + self.length).map_or(0, |t| t.chars().count());
        writeln!(f, "{}", self.message)?;
        writeln!(f, "  {shown}")?;
        write!(f, "  {}{}", " ".repeat(before), "^".repeat(marked.max(1)))
    }
}

impl std::error::Error for FilterError {}
