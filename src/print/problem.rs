//! The text of a problem and the path of the field it is about.

use super::scratch::TextWriter;
use crate::captured::Captured;
use crate::table::Tables;
use crate::tree::{Kind, Problem, ProblemText, Sym, Tree, mark};

/// A problem's text with its numbers put in.
pub fn problem_text(problem: &Problem, tables: &Tables, tree: &Tree) -> String {
    problem_text_into(problem, tables, tree, &mut String::new()).raw().to_string()
}

/// The same without an allocation for texts without numbers; `scratch` takes those that have some.
pub(super) fn problem_text_into<'a>(
    problem: &Problem,
    tables: &'a Tables,
    tree: &'a Tree,
    scratch: &'a mut String,
) -> Captured<'a> {
    match problem.text {
        ProblemText::Fixed(text) if memchr::memchr(b'{', text.as_bytes()).is_none() => {
            Captured::new(text)
        }
        ProblemText::Table(sym) => Captured::new(tables.name(sym)),
        ProblemText::Owned(place) => tree.owned(place),
        ProblemText::Fixed(_) | ProblemText::ShortFor(_) => {
            scratch.clear();
            problem.write_numbered(|name| tables.name(name), scratch);
            Captured::new(scratch)
        }
    }
}

/// The path of the field a problem is about, as filters write it but without `fields.`; empty for
/// the message itself.
pub fn problem_path(tree: &Tree, tables: &Tables, target: u32) -> String {
    let mut out = String::new();
    path_parts(tree, target, |part| match part {
        PathPart::Element(element) => {
            out.push('[');
            out.push_str(itoa::Buffer::new().format(element));
            out.push(']');
        }
        PathPart::Name(name) => {
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(any_name(tree, tables, name).raw());
        }
    });
    out
}

/// Appends this path; `write_name` appends a field's name, escaped for the output, and says
/// whether it has characters. Returns false for the empty path.
#[inline]
pub(super) fn write_path(
    tree: &Tree,
    target: u32,
    w: &mut TextWriter<'_>,
    mut write_name: impl FnMut(Sym, &mut TextWriter<'_>) -> bool,
) -> bool {
    let mut any = false;
    path_parts(tree, target, |part| match part {
        PathPart::Element(element) => {
            w.byte(b'[');
            w.number(element);
            w.byte(b']');
            any = true;
        }
        PathPart::Name(name) => {
            if any {
                w.byte(b'.');
            }
            any |= write_name(name, w);
        }
    });
    any
}

/// A field's name: the tables', or one that came with the traffic.
pub(super) fn any_name<'a>(tree: &'a Tree, tables: &'a Tables, name: Sym) -> Captured<'a> {
    tree.dynamic(name).unwrap_or_else(|| Captured::new(tables.name(name)))
}

/// A step on the way to a node.
enum PathPart {
    /// An element of a list.
    Element(u64),
    /// A field, or an element that has a name.
    Name(Sym),
}

/// Calls `show` with each step from the root to the node `target`.
#[inline(always)]
fn path_parts(tree: &Tree, target: u32, mut show: impl FnMut(PathPart)) {
    let nodes = tree.nodes();
    let mut parent = 0;
    while let Some(node) = nodes.get(parent as usize).filter(|_| parent < target) {
        let mut index = parent + 1;
        let mut element = 0;
        let list = node.kind == Kind::List;
        // Skip the children that end before the node: node indices ascend, and `end` is the index
        // behind a child's last descendant.
        let next = loop {
            let Some(next) = nodes.get(index as usize) else { return };
            if target < next.end {
                break next;
            }
            if list {
                element += u64::from(!next.has(mark::SPAN));
            }
            index = next.end.max(index + 1);
        };
        if index > target || index >= node.end {
            return;
        }
        parent = index;
        if next.has(mark::SEE_THROUGH) {
            continue;
        }
        show(if list && next.name == Sym::ELEMENT {
            PathPart::Element(element)
        } else {
            PathPart::Name(next.name)
        });
    }
}
