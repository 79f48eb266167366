//! Filters and columns: expressions over the keys and fields of records, with the names of the
//! JSON. `docs/filters.md` describes the language.
//!
//! An expression is compiled once and tested on records and trees directly, without making JSON.
//! This module knows tables, trees and records. It knows no protocol and not the command line.

mod compare;
mod hints;
mod host;
mod keys;
mod literal;
mod named;
mod names;
mod parse;
mod parse_path;
mod path;
mod scan;
mod symbols;
#[cfg(test)]
mod tests;
mod times;
mod value;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use host::HostPattern;
pub use named::{NamedExpression, NamedExpressions, can_be_named};
pub use path::Path;
pub use value::{Leaf, RecordScope, RecordValue};

use crate::captured::{Escaped, write_mistake};
use crate::facts::SessionMap;
use crate::proto::LazyTables;
use crate::record::Record;
use literal::Literal;
use names::FilterNames;

/// A compiled expression.
///
/// ```
/// use moulsniff::filter::Filter;
/// use moulsniff::proto::{LazyTables, protocol_named};
///
/// let moul = protocol_named("moul").ok_or("no such protocol")?;
/// let tables = [LazyTables::new(moul, Vec::new())?];
/// assert!(Filter::compile("fields.result != kNetSuccess", &tables, false).is_ok());
/// let mistake = Filter::compile("fields.transid == 7", &tables, false).err().ok_or("no mistake")?;
/// assert!(mistake.to_string().contains("did you mean `trans_id`?"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Filter {
    condition: BooleanExpr,
    protocols: Vec<&'static str>,
    redact: bool,
    doubts: Vec<FilterError>,
    used: BTreeMap<String, String>,
    kept: AtomicBool,
    sessions: Option<Arc<SessionMap>>,
    /// Whether the condition asks for names that earlier records give.
    wants_names: bool,
}

/// A mistake in an expression, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    expression: String,
    /// The bytes of the expression that are wrong.
    place: Range<usize>,
    message: String,
    /// What the expression is, where it is not the one that was typed.
    origin: Option<String>,
}

/// A condition.
enum BooleanExpr {
    And(Vec<BooleanExpr>),
    Or(Vec<BooleanExpr>),
    Not(Box<BooleanExpr>),
    Test(Path, Check),
}

/// A test of the values at a path. It holds if one of them passes.
enum Check {
    Present,
    Compare(CompareOp, Literal),
    In(Vec<SetItem>),
    Contains(Literal),
    #[cfg(feature = "regex")]
    Matches(Box<regex::Regex>),
    Has(Literal),
}

/// An element of a set.
enum SetItem {
    One(Literal),
    /// From the first to the second, both included.
    Range(Literal, Literal),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompareOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Filter {
    /// Compiles an expression. Of `tables`, those of all protocols, only those are loaded that are
    /// needed to know its names. With `redact`, secrets have the values that redacted outputs show.
    ///
    /// # Errors
    /// What is wrong with the expression, and where.
    pub fn compile(
        expression: &str,
        tables: &[LazyTables],
        redact: bool,
    ) -> Result<Filter, FilterError> {
        Filter::compile_with(expression, tables, &NamedExpressions::default(), redact)
    }

    /// The same for an expression that may use filters which have names.
    ///
    /// # Errors
    /// What is wrong with the expression or with a filter that it uses, and where.
    pub fn compile_with(
        expression: &str,
        tables: &[LazyTables],
        named: &NamedExpressions,
        redact: bool,
    ) -> Result<Filter, FilterError> {
        let names = FilterNames::new(tables, named);
        let (condition, parse::Remarks { doubts, used, .. }) =
            parse::expression(expression, &names)?;
        let protocols = protocols(tables);
        let kept = AtomicBool::new(false);
        let sessions = None;
        let wants_names = false;
        let filter =
            Filter { condition, protocols, redact, doubts, used, kept, sessions, wants_names };
        Ok(filter.completed())
    }

    /// The filter, after its condition changed: puts the condition's parts in order, and looks up
    /// what is known of it once and for all.
    fn completed(mut self) -> Filter {
        self.condition.order_by_cost();
        self.wants_names = self.condition.any_path(&Path::wants_names);
        self
    }

    /// A filter that keeps what both keep. Both have to be compiled with the same tables and the
    /// same `redact`.
    pub fn and(mut self, other: Filter) -> Filter {
        self.condition = BooleanExpr::And(vec![self.condition, other.condition]);
        self.doubts.extend(other.doubts);
        self.used.extend(other.used);
        self.completed()
    }

    /// The filters which have names that the expression uses, themselves or within others: what
    /// each stands for, by its name with its `@`.
    pub fn used(&self) -> &BTreeMap<String, String> {
        &self.used
    }

    /// Whether [`keeps`](Filter::keeps) depends on which session a record belongs to, as
    /// [`with_sessions`](Filter::with_sessions) tells it.
    pub fn wants_session(&self) -> bool {
        self.condition.any_path(&Path::wants_session)
    }

    /// Tells the filter which session each record belongs to. Without this call, no record belongs
    /// to a session.
    pub fn with_sessions(self, sessions: Arc<SessionMap>) -> Filter {
        Filter { sessions: Some(sessions), ..self }
    }

    /// Whether [`keeps`](Filter::keeps) depends on the names that earlier records give. Otherwise
    /// records need none.
    pub fn wants_names(&self) -> bool {
        self.wants_names
    }

    /// Whether the condition holds for a record.
    pub fn keeps(&self, record: &Record<'_>) -> bool {
        let scope = RecordScope::new(record, &self.protocols, self.redact);
        let kept = self.condition.holds(&scope.with_sessions(self.sessions.as_deref()));
        if kept && !self.doubts.is_empty() {
            self.kept.store(true, Ordering::Relaxed);
        }
        kept
    }

    /// Names that are probably mistakes, although the traffic itself may bring them.
    pub fn doubts(&self) -> &[FilterError] {
        &self.doubts
    }

    /// Called after the last record: a doubtful name was a mistake if the filter kept nothing.
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
    protocols: Vec<&'static str>,
    redact: bool,
    doubts: Vec<FilterError>,
    sessions: Option<Arc<SessionMap>>,
}

impl Paths {
    /// Compiles paths separated by commas, as the option `--columns` has them.
    ///
    /// # Errors
    /// What is wrong with one of them, and where.
    pub fn compile(list: &str, tables: &[LazyTables], redact: bool) -> Result<Paths, FilterError> {
        Paths::compile_with(list, tables, &NamedExpressions::default(), redact)
    }

    /// The same for paths among which columns that have names may stand.
    ///
    /// # Errors
    /// What is wrong with one of the paths, and where.
    pub fn compile_with(
        list: &str,
        tables: &[LazyTables],
        named: &NamedExpressions,
        redact: bool,
    ) -> Result<Paths, FilterError> {
        let names = FilterNames::new(tables, named);
        let (paths, parse::Remarks { doubts, .. }) = parse::paths(list, &names)?;
        Ok(Paths { paths, protocols: protocols(tables), redact, doubts, sessions: None })
    }

    /// Whether one of the paths leads to the session of a record, as
    /// [`with_sessions`](Paths::with_sessions) tells it.
    pub fn wants_session(&self) -> bool {
        self.paths.iter().any(Path::wants_session)
    }

    /// Tells the paths which session each record belongs to. Without this call, no record belongs
    /// to a session.
    pub fn with_sessions(self, sessions: Arc<SessionMap>) -> Paths {
        Paths { sessions: Some(sessions), ..self }
    }

    /// Names that are probably mistakes, although the traffic itself may bring them.
    pub fn doubts(&self) -> &[FilterError] {
        &self.doubts
    }

    /// The paths, in the order in which they were written.
    pub fn paths(&self) -> &[Path] {
        &self.paths
    }

    /// Whether one of the paths leads to names that earlier records give.
    pub fn wants_names(&self) -> bool {
        self.paths.iter().any(Path::wants_names)
    }

    /// A scope in which the paths can be looked up in a record.
    pub fn scope<'a>(&'a self, record: &'a Record<'a>) -> RecordScope<'a> {
        RecordScope::new(record, &self.protocols, self.redact)
            .with_sessions(self.sessions.as_deref())
    }
}

fn protocols(tables: &[LazyTables]) -> Vec<&'static str> {
    tables.iter().map(|t| t.protocol().name()).collect()
}

impl BooleanExpr {
    fn holds(&self, scope: &RecordScope<'_>) -> bool {
        match self {
            BooleanExpr::And(all) => all.iter().all(|c| c.holds(scope)),
            BooleanExpr::Or(any) => any.iter().any(|c| c.holds(scope)),
            BooleanExpr::Not(c) => !c.holds(scope),
            BooleanExpr::Test(path, check) => {
                scope.any(path, &mut |value| check.holds(scope, value))
            }
        }
    }

    /// Whether `wanted` holds for one of its paths.
    fn any_path(&self, wanted: &dyn Fn(&Path) -> bool) -> bool {
        match self {
            BooleanExpr::And(list) | BooleanExpr::Or(list) => {
                list.iter().any(|part| part.any_path(wanted))
            }
            BooleanExpr::Not(condition) => condition.any_path(wanted),
            BooleanExpr::Test(path, ..) => wanted(path),
        }
    }

    /// How expensive testing it is.
    fn cost(&self) -> u32 {
        match self {
            BooleanExpr::And(list) | BooleanExpr::Or(list) => {
                list.iter().map(BooleanExpr::cost).max().unwrap_or(0)
            }
            BooleanExpr::Not(c) => c.cost(),
            BooleanExpr::Test(path, check) => path.cost() + check.cost(),
        }
    }

    /// Moves cheap conditions before expensive ones, which does not change the result.
    fn order_by_cost(&mut self) {
        match self {
            BooleanExpr::And(list) | BooleanExpr::Or(list) => {
                list.iter_mut().for_each(BooleanExpr::order_by_cost);
                list.sort_by_key(BooleanExpr::cost);
            }
            BooleanExpr::Not(c) => c.order_by_cost(),
            BooleanExpr::Test(..) => {}
        }
    }
}

impl Check {
    /// What it adds to the cost of its path.
    fn cost(&self) -> u32 {
        match self {
            #[cfg(feature = "regex")]
            Check::Matches(_) => 1,
            _ => 0,
        }
    }

    fn holds<'a>(&self, scope: &RecordScope<'a>, value: RecordValue<'a>) -> bool {
        match self {
            Check::Present => true,
            Check::Compare(comparison, literal) => comparison.holds(order(scope, value, literal)),
            Check::In(items) => {
                items.iter().any(|item| item.contains(&|literal| order(scope, value, literal)))
            }
            Check::Contains(literal) => compare::contains(&scope.leaf(value), literal),
            #[cfg(feature = "regex")]
            Check::Matches(pattern) => {
                compare::any_text(&scope.leaf(value), |text| pattern.is_match(text))
            }
            Check::Has(literal) => compare::has(&scope.leaf(value), literal),
        }
    }
}

/// How a value compares with a literal. A literal that reads as a time is compared as one with
/// values that are times.
fn order<'a>(
    scope: &RecordScope<'a>,
    value: RecordValue<'a>,
    literal: &Literal,
) -> Option<std::cmp::Ordering> {
    let time = literal.time.and_then(|time| Some(time.compare(scope.instant(value)?)));
    time.or_else(|| compare::compare(&scope.leaf(value), literal))
}

impl FilterError {
    fn new(expression: &str, place: Range<usize>, message: impl Into<String>) -> FilterError {
        FilterError { expression: expression.into(), place, message: message.into(), origin: None }
    }

    /// Where the mistake begins, in characters from 1.
    pub(crate) fn column(&self) -> usize {
        self.expression.get(..self.place.start).map_or(0, |before| before.chars().count()) + 1
    }

    /// Marks the error as one in `origin`, unless it is already marked.
    fn of(self, origin: &str) -> FilterError {
        FilterError { origin: self.origin.or_else(|| Some(origin.into())), ..self }
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(origin) = &self.origin {
            write!(f, "{}: ", Escaped(origin))?;
        }
        write!(f, "column {}: ", self.column())?;
        write_mistake(&self.message, self.expression.get(self.place.start..).unwrap_or_default(), f)
    }
}

impl std::error::Error for FilterError {}
