//! Looks up paths in a record.

use super::keys::{KEYS, KeyParts, RecordKey};
use super::path::{Path, PathKey, PathStep};
use super::symbols::SymbolPart;
use super::value::{Leaf, RecordScope, RecordValue};
use crate::captured::Captured;
use crate::digits::milliseconds;
use crate::facts::Refused;
use crate::tree::{Kind, Node, Sym};

/// Called with each value at a path; returns whether to stop.
type See<'s, 'a> = &'s mut dyn FnMut(RecordValue<'a>) -> bool;

impl<'a> RecordScope<'a> {
    /// Calls `see` with each value at a path until it returns true. Returns whether it did.
    pub fn any(&self, path: &Path, see: &mut dyn FnMut(RecordValue<'a>) -> bool) -> bool {
        self.walk(RecordValue::Record, &path.steps, see)
    }

    fn walk(&self, value: RecordValue<'a>, steps: &[PathStep], see: See<'_, 'a>) -> bool {
        let Some((step, rest)) = steps.split_first() else { return see(value) };
        match step {
            PathStep::Key(key) => self.get(value, key).is_some_and(|v| self.walk(v, rest, see)),
            PathStep::Anywhere(key) => self.anywhere(value, key, &mut |v| self.walk(v, rest, see)),
            PathStep::Everywhere => self.leaves(value, &mut |v| self.walk(v, rest, see)),
            PathStep::Index(n) => {
                let mut at = 0;
                self.elements(value, &mut |v| {
                    at += 1;
                    at == n + 1 && self.walk(v, rest, see)
                })
            }
            PathStep::All => self.elements(value, &mut |v| self.walk(v, rest, see)),
        }
    }

    /// Whether a node has a key's name.
    fn is_named(&self, name: Sym, key: &PathKey) -> bool {
        let Some(view) = self.message else { return false };
        if name.0 >= Sym::DYNAMIC {
            return view.tree.dynamic(name).map(Captured::raw) == Some(&key.text);
        }
        key.sym(self.protocol, view.tables) == Some(name)
    }

    /// The value of a key of an object.
    fn get(&self, value: RecordValue<'a>, key: &PathKey) -> Option<RecordValue<'a>> {
        match value {
            RecordValue::Record => key.record.and_then(|key| (key.get)(self)),
            RecordValue::Node(index) => self.member(index, key),
            RecordValue::CalledNames => self
                .called()
                .find(|called| self.field_path(called.node) == key.text)
                .map(RecordValue::CalledName),
            _ => self.part(value, &key.text),
        }
    }

    /// A part of something that is no field.
    fn part(&self, value: RecordValue<'a>, key: &str) -> Option<RecordValue<'a>> {
        match value {
            RecordValue::Problem(i) => self.problem_key(i, key),
            RecordValue::Link(link) => match key {
                "record" => Some(RecordValue::Int(link.record.into())),
                "elapsed_ms" => Some(RecordValue::Float(milliseconds(link.nanos))),
                _ => None,
            },
            RecordValue::Refused(refused) => self.refused_key(refused, key),
            RecordValue::CalledName(called) => match key {
                "name" => Some(RecordValue::Text(called.name)),
                "record" => Some(RecordValue::Int(called.record.into())),
                _ => None,
            },
            RecordValue::Counts(c) => {
                let n = match key {
                    "payload" => c.payload,
                    "explained" => c.explained,
                    "opaque" => c.opaque,
                    "undecoded" => c.undecoded,
                    "closed" => c.closed,
                    "lost" => c.lost,
                    _ => return None,
                };
                Some(RecordValue::Int(n.into()))
            }
            _ => None,
        }
    }

    fn refused_key(&self, refused: Refused<'a>, key: &str) -> Option<RecordValue<'a>> {
        match key {
            "field" => refused.is_by_field().then_some(RecordValue::FieldPath(refused.node)),
            "value" if refused.value.is_some() => Some(RecordValue::Number(refused.node)),
            "value" => refused.is_by_field().then_some(RecordValue::Node(refused.node)),
            "name" => refused.name.map(RecordValue::Text),
            _ => None,
        }
    }

    fn member(&self, index: u32, key: &PathKey) -> Option<RecordValue<'a>> {
        let node = self.node(index)?;
        if self.hides(node) {
            return None;
        }
        if node.kind == Kind::Struct {
            return self.named_member(index, key).map(RecordValue::Node);
        }
        self.symbol_key(index, node, key)
    }

    /// The value of a key of an enum's or a flag set's value.
    fn symbol_key(&self, index: u32, node: &Node, key: &PathKey) -> Option<RecordValue<'a>> {
        let part = key.symbol?;
        let symbols = self.symbols(node)?;
        match part {
            SymbolPart::Value => Some(RecordValue::Number(index)),
            SymbolPart::Names if symbols.flags => Some(RecordValue::Names(index)),
            SymbolPart::Name if !symbols.flags => match self.leaf(RecordValue::Node(index)) {
                Leaf::Named(_, name) => name.map(RecordValue::Text),
                _ => None,
            },
            _ => None,
        }
    }

    fn problem_key(&self, i: usize, key: &str) -> Option<RecordValue<'a>> {
        let problem = self.message?.tree.problems().get(i)?;
        match key {
            "severity" => Some(RecordValue::Text(problem.severity.word())),
            "field" => Some(RecordValue::ProblemField(i)),
            "text" => Some(RecordValue::ProblemText(i)),
            "bytes" => problem.bytes.map(|_| RecordValue::ProblemBytes(i)),
            _ => None,
        }
    }

    /// The elements of a list.
    fn elements(&self, value: RecordValue<'a>, see: See<'_, 'a>) -> bool {
        let Some(view) = self.message else { return false };
        match value {
            RecordValue::Node(index) => {
                let list = self.node(index).is_some_and(|n| n.kind == Kind::List && !self.hides(n));
                list && view.tree.members(index).any(|(i, _)| see(RecordValue::Node(i)))
            }
            RecordValue::CalledNames => {
                self.called().any(|called| see(RecordValue::CalledName(called)))
            }
            RecordValue::Names(index) => {
                self.flag_names(index).any(|name| see(RecordValue::Text(name)))
            }
            RecordValue::Problems => {
                (0..view.tree.problems().len()).any(|i| see(RecordValue::Problem(i)))
            }
            RecordValue::Links(kind) => view
                .tree
                .links()
                .iter()
                .filter(|l| l.kind == kind)
                .any(|l| see(RecordValue::Link(*l))),
            _ => false,
        }
    }

    /// Calls `see` with the values of a key in `value` and in everything within it, in the order of
    /// jq's `..`.
    fn anywhere(&self, value: RecordValue<'a>, key: &PathKey, see: See<'_, 'a>) -> bool {
        match value {
            RecordValue::Record => {
                let composites = KEYS.iter().filter(|key| !matches!(key.parts, KeyParts::None));
                let mut parts = composites.filter_map(|key| (key.get)(self));
                self.get(RecordValue::Record, key).is_some_and(&mut *see)
                    || parts.any(|part| self.anywhere(part, key, see))
            }
            RecordValue::Problems | RecordValue::Links(_) | RecordValue::CalledNames => {
                self.elements(value, &mut |v| self.get(v, key).is_some_and(&mut *see))
            }
            RecordValue::Node(index) => self.has(key) && self.below(index, key, see),
            _ => self.get(value, key).is_some_and(see),
        }
    }

    /// Calls `see` with each value that has no parts, in the record and in everything within it. Of
    /// fields with names that came with the traffic, these names are values as well.
    fn leaves(&self, value: RecordValue<'a>, see: See<'_, 'a>) -> bool {
        match value {
            RecordValue::Record => {
                KEYS.iter().any(|key| (key.get)(self).is_some_and(|v| self.parts_of(key, v, see)))
            }
            RecordValue::Node(index) => self.leaves_below(index, see),
            _ => see(value),
        }
    }

    /// [`RecordScope::leaves`] in the value of a key.
    fn parts_of(&self, key: &RecordKey, value: RecordValue<'a>, see: See<'_, 'a>) -> bool {
        let mut each = |value, names: &[&str]| {
            names.iter().any(|name| self.part(value, name).is_some_and(&mut *see))
        };
        match (key.parts, value) {
            (KeyParts::None | KeyParts::Fields, _) => self.leaves(value, see),
            // The bytes of an event have no parts, those of a stream's end have.
            (KeyParts::Object(_), RecordValue::EventBytes) => see(value),
            (KeyParts::Object(names), _) => each(value, names),
            (KeyParts::List(names) | KeyParts::ByPath(names), _) => {
                self.elements(value, &mut |element| each(element, names))
            }
        }
    }

    /// [`RecordScope::leaves`] in the tree.
    fn leaves_below(&self, index: u32, see: See<'_, 'a>) -> bool {
        let (Some(view), Some(node)) = (self.message, self.node(index)) else { return false };
        if let Some(name) = view.tree.dynamic(node.name)
            && see(RecordValue::Text(name.raw()))
        {
            return true;
        }
        match node.kind {
            Kind::Struct | Kind::List if !self.hides(node) => {
                view.tree.members(index).any(|(i, _)| self.leaves_below(i, see))
            }
            _ => see(RecordValue::Node(index)),
        }
    }

    /// Whether a message may have a key anywhere in its fields. Looking at the names of all nodes
    /// is cheaper than searching the tree, and most messages do not have the key.
    fn has(&self, key: &PathKey) -> bool {
        let Some(view) = self.message else { return false };
        let sym = key.sym(self.protocol, view.tables);
        let named = |n: &Node| {
            Some(n.name) == sym || n.name.0 >= Sym::DYNAMIC && self.is_named(n.name, key)
        };
        key.symbol.is_some() || view.tree.nodes().iter().any(named)
    }

    /// [`RecordScope::anywhere`] in the tree.
    fn below(&self, index: u32, key: &PathKey, see: See<'_, 'a>) -> bool {
        let (Some(view), Some(node)) = (self.message, self.node(index)) else { return false };
        if self.hides(node) {
            return false;
        }
        let list = match node.kind {
            Kind::Struct => false,
            // Elements of a list have no key in the JSON, although they have a name among spans.
            Kind::List => true,
            _ => return self.symbol_key(index, node, key).is_some_and(see),
        };
        let own = if list { None } else { self.named_member(index, key) };
        if own.is_some_and(|i| see(RecordValue::Node(i))) {
            return true;
        }
        let shown = |i: u32, n: &Node| list || own == Some(i) || !self.is_named(n.name, key);
        view.tree.members(index).any(|(i, n)| shown(i, n) && self.below(i, key, see))
    }

    /// The member of a structure with a key. Of a key that comes twice, JSON parsers use the last.
    fn named_member(&self, index: u32, key: &PathKey) -> Option<u32> {
        let members = self.message?.tree.members(index);
        members.filter(|(_, n)| self.is_named(n.name, key)).last().map(|(i, _)| i)
    }
}
