//! Problems of messages, counted by severity and by text.
//!
//! Most texts are fixed ones with numbers; the numbers are inserted only when everything is
//! counted. At most [`TEXTS`] texts are kept apart.

use std::collections::HashMap;

use super::counters::{NameCounter, OTHERS, RecentCounts};
use crate::table::Tables;
use crate::tree::{Problem, ProblemCounts, ProblemText, Severity, Tree};

/// Different fixed texts, with their numbers, that are kept apart.
const TEXTS: usize = 10_000;

/// A fixed text and its numbers, and how bad the problem is.
type FixedText = (Severity, &'static str, i64, i64);

/// The problems of many messages.
#[derive(Default)]
pub struct Problems {
    by_severity: ProblemCounts,
    /// Problems whose text is the traffic's or the tables': notes, warnings, errors.
    told: [NameCounter; 3],
    /// The other problems, and the latest of them.
    fixed: HashMap<FixedText, u64>,
    recent: RecentCounts<FixedText>,
}

/// Problems with the same severity and text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProblemKind {
    /// How bad it is.
    pub severity: Severity,
    /// The text.
    pub text: String,
    /// How many there were.
    pub count: u64,
}

impl Problems {
    /// Counts a problem. Only trees have texts of their own.
    pub(super) fn add(&mut self, problem: &Problem, tables: &Tables, tree: Option<&Tree>) {
        let severity = problem.severity;
        self.by_severity.count(severity);
        let Some(told) = self.told.get_mut(severity as usize) else { return };
        let text = match problem.text {
            ProblemText::Owned(place) => {
                told.count_text(tree.map_or("", |tree| tree.owned(place).raw()));
                return;
            }
            ProblemText::Table(sym) => {
                told.count(std::ptr::from_ref(tables).addr(), sym.0, tables.name(sym));
                return;
            }
            ProblemText::Fixed(text) => text,
            ProblemText::ShortFor(_) => ProblemText::SHORT,
        };
        let key = (severity, text, problem.a, problem.b);
        let Some((earlier, n)) = self.recent.count(key) else { return };
        let full = self.fixed.len() >= TEXTS && !self.fixed.contains_key(&earlier);
        *self.fixed.entry(if full { (earlier.0, OTHERS, 0, 0) } else { earlier }).or_default() += n;
    }

    /// How many of each severity.
    pub fn by_severity(&self) -> ProblemCounts {
        self.by_severity
    }

    /// The problems by text, the worst first, then the most frequent. With `together`, texts that
    /// differ only in their numbers count as one, with `…` for each number.
    pub fn kinds(&self, together: bool) -> Vec<ProblemKind> {
        let mut texts: HashMap<(Severity, String), u64> = HashMap::new();
        for (told, severity) in
            self.told.iter().zip([Severity::Note, Severity::Warning, Severity::Error])
        {
            texts.extend(told.all().map(|(text, n)| ((severity, text.to_string()), n)));
        }
        let fixed = self.fixed.iter().map(|(key, n)| (*key, *n));
        for ((severity, text, a, b), n) in fixed.chain(self.recent.iter().copied()) {
            let mut said = String::new();
            if together {
                Problem::format_without_numbers(text, &mut said);
            } else {
                Problem::format(text, a, b, &mut said);
            }
            *texts.entry((severity, said)).or_default() += n;
        }
        let kind = |((severity, text), count)| ProblemKind { severity, text, count };
        let mut all: Vec<ProblemKind> = texts.into_iter().map(kind).collect();
        all.sort_by(|a, b| {
            (b.severity, b.count).cmp(&(a.severity, a.count)).then_with(|| a.text.cmp(&b.text))
        });
        all
    }
}
