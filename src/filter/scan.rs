//! Looking up paths in a record.

use super::path::{Key, Path, Step};
use super::value::{Leaf, Scope, Value, milliseconds};
use crate::tree::{Kind, LinkKind, Node, Sym};

/// Is shown the values at a path; says whether it has seen enough.
type See<'s, 'a> = &'s mut dyn FnMut(Value<'a>) -> bool;

impl<'a> Scope<'a> {
    /// Shows all values at a path, until one is enough; says whether one was.
    pub fn any(&self, path: &Path, see: &mut dyn FnMut(Value<'a>) -> bool) -> bool {
        self.walk(Value::Record, &path.steps, see)
    }

    fn walk(&self, value: Value<'a>, steps: &[Step], see: See<'_, 'a>) -> bool {
        let Some((step, rest)) = steps.split_first() else { return see(value) };
        match step {
            Step::Key(key) => self.get(value, key).is_some_and(|v| self.walk(v, rest, see)),
            Step::Anywhere(key) => self.anywhere(value, key, &mut |v| self.walk(v, rest, see)),
            Step::Index(n) => {
                let mut at = 0;
                self.elements(value, &mut |v| {
                    at += 1;
                    at == n + 1 && self.walk(v, rest, see)
                })
            }
            Step::All => self.elements(value, &mut |v| self.walk(v, rest, see)),
        }
    }

    /// Whether a node has a key's name.
    fn is_named(&self, name: Sym, key: &Key) -> bool {
        let Some(view) = self.message else { return false };
        if name.0 >= Sym::DYNAMIC {
            return view.tree.dynamic(name) == Some(&key.text);
        }
        key.sym(self.protocol, view.tables) == Some(name)
    }

    /// The value of a key of an object.
    fn get(&self, value: Value<'a>, key: &Key) -> Option<Value<'a>> {
        match value {
            Value::Record => self.key(&key.text),
            Value::Node(index) => self.member(index, key),
            Value::Problem(i) => self.problem_key(i, &key.text),
            Value::Link(link) => match key.text.as_str() {
                "record" => Some(Value::Int(link.record.into())),
                "elapsed_ms" => Some(Value::Float(milliseconds(link.nanos))),
                _ => None,
            },
            Value::Counts(c) => {
                let n = match key.text.as_str() {
                    "payload" => c.payload,
                    "explained" => c.explained,
                    "opaque" => c.opaque,
                    "undecoded" => c.undecoded,
                    "closed" => c.closed,
                    "lost" => c.lost,
                    _ => return None,
                };
                Some(Value::Int(n.into()))
            }
            _ => None,
        }
    }

    fn member(&self, index: u32, key: &Key) -> Option<Value<'a>> {
        let node = self.node(index)?;
        if self.hides(node) {
            return None;
        }
        if node.kind == Kind::Struct {
            return self.named_member(index, key).map(Value::Node);
        }
        self.symbol_key(index, node, &key.text)
    }

    /// The keys a value with names has in the JSON.
    fn symbol_key(&self, index: u32, node: &Node, key: &str) -> Option<Value<'a>> {
        if !is_symbol_key(key) {
            return None;
        }
        let symbols = self.symbols(node)?;
        match key {
            "value" => Some(Value::Number(index)),
            "names" if symbols.flags => Some(Value::Names(index)),
            "name" if !symbols.flags => match self.leaf(Value::Node(index)) {
                Leaf::Named(_, name) => name.map(Value::Text),
                _ => None,
            },
            _ => None,
        }
    }

    fn problem_key(&self, i: usize, key: &str) -> Option<Value<'a>> {
        let problem = self.message?.tree.problems().get(i)?;
        match key {
            "severity" => Some(Value::Text(problem.severity.word())),
            "field" => Some(Value::ProblemField(i)),
            "text" => Some(Value::ProblemText(i)),
            "bytes" => problem.bytes.map(|_| Value::ProblemBytes(i)),
            _ => None,
        }
    }

    /// The elements of a list.
    fn elements(&self, value: Value<'a>, see: See<'_, 'a>) -> bool {
        let Some(view) = self.message else { return false };
        match value {
            Value::Node(index) => {
                let list = self.node(index).is_some_and(|n| n.kind == Kind::List && !self.hides(n));
                list && view.tree.members(index).any(|(i, _)| see(Value::Node(i)))
            }
            Value::Names(index) => self.flag_names(index).any(|name| see(Value::Text(name))),
            Value::Problems => (0..view.tree.problems().len()).any(|i| see(Value::Problem(i))),
            Value::Links(kind) => view.tree.links().iter().filter(|l| l.kind == kind).any(|l| see(Value::Link(*l))),
            _ => false,
        }
    }

    /// The values of a key in an object and all that are within it, in the order in which jq's `..` meets them.
    fn anywhere(&self, value: Value<'a>, key: &Key, see: See<'_, 'a>) -> bool {
        match value {
            Value::Record => {
                self.get(value, key).is_some_and(&mut *see)
                    || [LinkKind::SentAgain, LinkKind::Acknowledges]
                        .into_iter()
                        .any(|kind| self.anywhere(Value::Links(kind), key, see))
                    || ["fields", "problems", "bytes"]
                        .into_iter()
                        .any(|part| self.key(part).is_some_and(|value| self.anywhere(value, key, see)))
            }
            Value::Problems | Value::Links(_) => self.elements(value, &mut |v| self.get(v, key).is_some_and(&mut *see)),
            Value::Node(index) => self.has(key) && self.below(index, key, see),
            _ => self.get(value, key).is_some_and(see),
        }
    }

    /// Whether a message may have a key anywhere in its fields: most have not, and one look at all names is enough to know.
    fn has(&self, key: &Key) -> bool {
        let Some(view) = self.message else { return false };
        let sym = key.sym(self.protocol, view.tables);
        let named = |n: &Node| Some(n.name) == sym || n.name.0 >= Sym::DYNAMIC && self.is_named(n.name, key);
        is_symbol_key(&key.text) || view.tree.nodes().iter().any(named)
    }

    /// [`Scope::anywhere`] in the tree.
    fn below(&self, index: u32, key: &Key, see: See<'_, 'a>) -> bool {
        let (Some(view), Some(node)) = (self.message, self.node(index)) else { return false };
        if self.hides(node) {
            return false;
        }
        let list = match node.kind {
            Kind::Struct => false,
            // What is in a list has no key, whatever it is called among the spans.
            Kind::List => true,
            _ => return self.symbol_key(index, node, &key.text).is_some_and(see),
        };
        let own = if list { None } else { self.named_member(index, key) };
        if own.is_some_and(|i| see(Value::Node(i))) {
            return true;
        }
        let shown = |i: u32, n: &Node| list || own == Some(i) || !self.is_named(n.name, key);
        view.tree.members(index).any(|(i, n)| shown(i, n) && self.below(i, key, see))
    }

    /// The member of a structure that has a name. Of keys that come twice, JSON's readers see the last.
    fn named_member(&self, index: u32, key: &Key) -> Option<u32> {
        let members = self.message?.tree.members(index);
        members.filter(|(_, n)| self.is_named(n.name, key)).last().map(|(i, _)| i)
    }
}

/// Whether values with names have a key of this name in the JSON.
fn is_symbol_key(key: &str) -> bool {
    matches!(key, "value" | "name" | "names")
}
