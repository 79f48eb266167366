//! Problems in words: which node one is about, and what there is to say.

use super::json::write_escaped;
use super::scratch::TextWriter;
use crate::table::Tables;
use crate::tree::{Kind, Problem, ProblemText, Sym, Tree, mark};

/// A problem's text with its numbers.
pub fn problem_text(problem: &Problem, tables: &Tables, tree: &Tree) -> String {
    problem_text_into(problem, tables, tree, &mut String::new()).to_string()
}

/// A problem's text, put together in `scratch` where numbers have to be put into it.
pub(super) fn problem_text_into<'a>(
    problem: &Problem,
    tables: &'a Tables,
    tree: &'a Tree,
    scratch: &'a mut String,
) -> &'a str {
    match problem.text {
        ProblemText::Fixed(text) if memchr::memchr(b'{', text.as_bytes()).is_none() => text,
        ProblemText::Table(sym) => tables.name(sym),
        ProblemText::Owned(place) => tree.owned(place),
        ProblemText::Fixed(text) => {
            scratch.clear();
            Problem::format(text, problem.a, problem.b, scratch);
            scratch
        }
    }
}

/// The path of the node a problem is about, as filters write it, without `fields.`; empty for the message itself.
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
            out.push_str(tree.dynamic(name).unwrap_or_else(|| tables.name(name)));
        }
    });
    out
}

/// Appends the same, as it stands between the quotes of JSON or as it is; says whether there is any.
pub(super) fn write_path(tree: &Tree, tables: &Tables, target: u32, json: bool, w: &mut TextWriter<'_>) -> bool {
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
            let name = tree.dynamic(name).unwrap_or_else(|| tables.name(name));
            any |= !name.is_empty();
            if json { write_escaped(w, name.as_bytes()) } else { w.text(name.as_bytes()) }
        }
    });
    any
}

/// A step on the way to a node.
enum PathPart {
    /// An element of a list.
    Element(u64),
    /// A field, or an element that has a name.
    Name(Sym),
}

/// Shows the steps on the way to a node.
#[inline(always)]
fn path_parts(tree: &Tree, target: u32, mut show: impl FnMut(PathPart)) {
    let nodes = tree.nodes();
    let mut parent = 0;
    while let Some(node) = nodes.get(parent as usize).filter(|_| parent < target) {
        let (mut index, mut element, list) = (parent + 1, 0, node.kind == Kind::List);
        // What ends before the node is passed over.
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
        show(if list && next.name == Sym::ELEMENT { PathPart::Element(element) } else { PathPart::Name(next.name) });
    }
}
