//! Two messages field by field: which fields are the same, and which differ.

use std::collections::HashMap;

use super::align::StreamScope;
use super::detail::{DetailContent, DetailValue};
use super::hash::{ContentHash, secret_half};
use super::lcs::{Hole, Match, common, holes};
use super::renaming::{Naming, NamingVerdict, Renaming, Said, Scope};

/// A field of two messages.
#[derive(Clone, Debug)]
pub(super) struct FieldLine {
    /// Its path, as filters have it.
    pub(super) path: String,
    /// Its value as JSON, on the side that has it.
    pub(super) values: [Option<String>; 2],
    pub(super) same: bool,
    /// The contradiction: two numbers that are known to identify the same thing, and the messages
    /// that show it.
    pub(super) against: Option<(Naming, Naming, Said)>,
}

/// Compares the fields of two messages.
pub(super) struct FieldComparer<'r> {
    pub(super) renaming: &'r Renaming,
    pub(super) scope: StreamScope,
    /// Both messages are tied to requests or replies, so the numbers of their transactions say
    /// nothing more.
    pub(super) tied: bool,
    /// A pairing that is looked for: its line is marked, as if something contradicted it.
    pub(super) sought: Option<Naming>,
    pub(super) lines: Vec<FieldLine>,
}

impl FieldComparer<'_> {
    /// Appends a line for each value without parts in `a` and `b`, in the order of `a`.
    pub(super) fn compare(&mut self, path: &str, a: &DetailValue, b: &DetailValue) {
        if a.left_out || b.left_out {
            return;
        }
        match (&a.content, &b.content) {
            (DetailContent::Struct(x), DetailContent::Struct(y)) => self.fields(path, x, y),
            (DetailContent::List(x), DetailContent::List(y)) if a.unordered => self.set(path, x, y),
            (DetailContent::List(x), DetailContent::List(y)) => self.list(path, x, y),
            (DetailContent::Leaf(x), DetailContent::Leaf(y)) => {
                let against = self.contradiction(a, b);
                let same = a.hash == b.hash && a.marks.len() == b.marks.len() && against.is_none();
                self.lines.push(FieldLine {
                    path: path.to_string(),
                    values: [Some(x.clone()), Some(y.clone())],
                    same,
                    against,
                });
            }
            _ => self.push(path, Some(a), Some(b)),
        }
    }

    /// The evidence that two values do not identify the same thing.
    fn contradiction(&self, a: &DetailValue, b: &DetailValue) -> Option<(Naming, Naming, Said)> {
        // The hash of an identifying value does not depend on the value. The marks do.
        a.marks.iter().zip(&b.marks).find_map(|(x, y)| {
            let naming = Naming { kind: self.scope.kind(x.kind), a: x.value, b: y.value };
            if self.tied && naming.kind != x.kind && self.sought != Some(naming) {
                return None;
            }
            match self.renaming.verdict(naming) {
                NamingVerdict::Contradicts(known, said) => Some((naming, known, said)),
                _ if self.sought == Some(naming) => Some((naming, naming, Said::default())),
                _ => None,
            }
        })
    }

    fn push(&mut self, path: &str, a: Option<&DetailValue>, b: Option<&DetailValue>) {
        if a.or(b).is_some_and(|value| value.left_out) {
            return;
        }
        let values = [a.map(DetailValue::json), b.map(DetailValue::json)];
        self.lines.push(FieldLine { path: path.to_string(), values, same: false, against: None });
    }

    /// Fields by their names. A field that only one side has stays in its place.
    fn fields(&mut self, path: &str, a: &[DetailValue], b: &[DetailValue]) {
        let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, other) in b.iter().enumerate() {
            places.entry(&other.name).or_default().push(at);
        }
        let mut next = 0;
        for one in a {
            let found = places
                .get(&*one.name)
                .and_then(|all| all.get(all.partition_point(|at| *at < next)).copied());
            match found {
                Some(at) => {
                    for other in b.get(next..at).unwrap_or_default() {
                        self.push(&format!("{path}.{}", other.name), None, Some(other));
                    }
                    if let Some(other) = b.get(at) {
                        self.compare(&format!("{path}.{}", one.name), one, other);
                    }
                    next = at + 1;
                }
                None => self.push(&format!("{path}.{}", one.name), Some(one), None),
            }
        }
        for other in b.get(next..).unwrap_or_default() {
            self.push(&format!("{path}.{}", other.name), None, Some(other));
        }
    }

    fn list(&mut self, path: &str, a: &[DetailValue], b: &[DetailValue]) {
        let keys = |values: &[DetailValue]| {
            values.iter().map(|value| secret_half(value.hash)).collect::<Vec<_>>()
        };
        let mut matches: Vec<Match> = Vec::new();
        let all = Hole { a: [0, a.len()], b: [0, b.len()] };
        if a.len() != b.len() {
            common(&keys(a), &keys(b), all, &mut matches);
        }
        let mut equal = matches.iter().peekable();
        for hole in holes(&matches, [a.len(), b.len()]) {
            while let Some(one) = equal.next_if(|one| (one.a as usize) < hole.a[0]) {
                self.element(path, a, b, *one);
            }
            let part = |values: &[DetailValue], at: usize, end: usize| {
                values.get(at..end).map(<[_]>::len).unwrap_or(0)
            };
            let both = part(a, hole.a[0], hole.a[1]).min(part(b, hole.b[0], hole.b[1]));
            for at in 0..both {
                self.element(
                    path,
                    a,
                    b,
                    Match { a: (hole.a[0] + at) as u32, b: (hole.b[0] + at) as u32 },
                );
            }
            let rest = |from: usize, to: usize| (from + both..to).collect::<Vec<_>>();
            self.alone(path, a, &rest(hole.a[0], hole.a[1]), true);
            self.alone(path, b, &rest(hole.b[0], hole.b[1]), false);
        }
        for one in equal {
            self.element(path, a, b, *one);
        }
    }

    fn element(&mut self, path: &str, a: &[DetailValue], b: &[DetailValue], one: Match) {
        if let (Some(left), Some(right)) = (a.get(one.a as usize), b.get(one.b as usize)) {
            self.compare(&format!("{path}[{}]", one.a), left, right);
        }
    }

    /// Elements in any order: only those without a partner are shown.
    fn set(&mut self, path: &str, a: &[DetailValue], b: &[DetailValue]) {
        let of_b = |kind, value| self.renaming.of_b(kind, value);
        let mut places: HashMap<SetElement, Vec<usize>> = HashMap::new();
        for (at, other) in b.iter().enumerate().rev() {
            places.entry(self.set_element(other, of_b)).or_default().push(at);
        }
        let of_a = |kind, value| self.renaming.of_a(kind, value);
        let mut rest = Vec::new();
        for (at, one) in a.iter().enumerate() {
            let partner = places.get_mut(&self.set_element(one, of_a)).and_then(Vec::pop);
            rest.extend(partner.is_none().then_some(at));
        }
        let mut free: Vec<usize> = places.into_values().flatten().collect();
        free.sort_unstable();
        match (rest.as_slice(), free.as_slice()) {
            // One element in the place of another one.
            ([left], [right]) => self.push(&format!("{path}[{left}]"), a.get(*left), b.get(*right)),
            _ => {
                self.alone(path, a, &rest, true);
                self.alone(path, b, &free, false);
            }
        }
    }

    /// Elements that only one list has: several of them are one line, with the list's path and a
    /// list of them.
    fn alone(&mut self, path: &str, all: &[DetailValue], places: &[usize], in_a: bool) {
        let mut values =
            places.iter().filter_map(|at| all.get(*at)).filter(|value| !value.left_out);
        let (path, text) = match places {
            [] => return,
            [at] => (format!("{path}[{at}]"), values.next().map(DetailValue::json)),
            _ => (
                path.to_string(),
                Some(format!("[{}]", values.map(DetailValue::json).collect::<Vec<_>>().join(","))),
            ),
        };
        let values = if in_a { [text, None] } else { [None, text] };
        if values.iter().any(Option::is_some) {
            self.lines.push(FieldLine { path, values, same: false, against: None });
        }
    }

    /// What makes two elements of sets the same: content, and the numbers in it as the second
    /// capture has them. Numbers that are not known are all alike.
    fn set_element(
        &self,
        value: &DetailValue,
        known: impl Fn(u64, u64) -> Option<u64>,
    ) -> SetElement {
        let marks = value.marks.iter().map(|mark| {
            let kind = self.scope.kind(mark.kind);
            (kind, known(kind, mark.value))
        });
        (value.hash, marks.collect())
    }
}

/// The content of a set's element, and the numbers in it with their kinds.
type SetElement = (ContentHash, Vec<(u64, Option<u64>)>);
