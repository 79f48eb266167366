//! The problems below a message, one a line. A problem that several fields share is one line, with
//! the first of these fields.

use super::super::paint::Paint;
use super::super::problem::{any_name, problem_text_into, write_path};
use super::super::scratch::TextWriter;
use super::painted;
use crate::captured::Captured;
use crate::table::Tables;
use crate::tree::{Problem, ProblemText, Severity, Tree};

/// Fields that are named of those that share a problem.
const PLACES: usize = 3;

/// Appends a line for each problem of a tree. `scratch` takes texts that are put together.
pub(super) fn problem_lines(
    tree: &Tree,
    tables: &Tables,
    paint: &Paint,
    scratch: &mut String,
    w: &mut TextWriter<'_>,
) {
    // A tree keeps at most `Tree::MAX_PROBLEMS`, so that comparing each with those before it is
    // cheap.
    let all = tree.problems();
    for (at, problem) in all.iter().enumerate() {
        let same = |other: &&Problem| says_the_same(tree, problem, other);
        if all.iter().take(at).any(|earlier| same(&earlier)) {
            continue;
        }
        let line = Line { tree, tables, paint, problem };
        let nodes = all.iter().skip(at).filter(same).map(|same| same.node);
        match nodes.clone().count() {
            0 | 1 => line.single(scratch, w),
            count => line.several(count, nodes, scratch, w),
        }
    }
}

fn says_the_same(tree: &Tree, one: &Problem, other: &Problem) -> bool {
    let same = |one, other| match (one, other) {
        (ProblemText::Owned(one), ProblemText::Owned(other)) => {
            tree.owned(one).raw() == tree.owned(other).raw()
        }
        (one, other) => one == other,
    };
    (one.severity, one.a, one.b) == (other.severity, other.a, other.b) && same(one.text, other.text)
}

/// A line and what it is about.
struct Line<'a> {
    tree: &'a Tree,
    tables: &'a Tables,
    paint: &'a Paint,
    problem: &'a Problem,
}

impl Line<'_> {
    /// `  · note`
    fn begin(&self, w: &mut TextWriter<'_>) {
        w.fixed(b"  ");
        let paint =
            if self.problem.severity == Severity::Note { &self.paint.dim } else { &self.paint.bad };
        painted(w, paint, self.paint.marks.dot);
        painted(w, paint, self.problem.severity.word());
    }

    /// Appends the path of a node; returns false for the message itself.
    fn path(&self, node: u32, w: &mut TextWriter<'_>) -> bool {
        write_path(self.tree, node, w, |name, w| {
            let name = any_name(self.tree, self.tables, name);
            w.captured(name);
            !name.raw().is_empty()
        })
    }

    /// `  · note: buffer.flags: unlisted bits`
    fn single(&self, scratch: &mut String, w: &mut TextWriter<'_>) {
        self.begin(w);
        w.fixed(b": ");
        if self.path(self.problem.node, w) {
            w.fixed(b": ");
        }
        w.captured(problem_text_into(self.problem, self.tables, self.tree, scratch));
        w.byte(b'\n');
    }

    /// ` · note, 12 times: unlisted bits: in list[0].flags, list[1].flags, list[2].flags and
    /// others`
    fn several(
        &self,
        count: usize,
        nodes: impl Iterator<Item = u32>,
        scratch: &mut String,
        w: &mut TextWriter<'_>,
    ) {
        self.begin(w);
        w.fixed(b", ");
        w.number(count as u64);
        w.fixed(b" times: ");
        w.captured(problem_text_into(self.problem, self.tables, self.tree, scratch));
        let mut before = ": in ";
        for node in nodes.take(PLACES) {
            w.word(before);
            if !self.path(node, w) {
                w.captured(Captured::new("the message"));
            }
            before = ", ";
        }
        if count > PLACES {
            w.fixed(b" and others");
        }
        w.byte(b'\n');
    }
}
