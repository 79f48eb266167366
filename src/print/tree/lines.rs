//! The lines of a message's fields: names under each other, values beside them, and what these
//! mean.

use super::super::json;
use super::super::paint::Style;
use super::super::problem::any_name;
use super::super::scratch::{SCRATCH_BYTES, TextWriter, short_digits};
use super::super::table_cache::{Label, TableCache, TableCaches};
use super::super::value_texts::{ValueKey, ValueTexts};
use super::TreeOptions;
use super::meaning::{meaning, meaning_of_bytes};
use super::value;
use crate::captured::is_control;
use crate::print::view::PrintView;
use crate::record::{MessageView, Names};
use crate::table::Tables;
use crate::tree::{Kind, Node, Sym, TypeRef, Walk};

/// A structure or a list whose lines are being written.
#[derive(Clone, Copy)]
struct OpenBlock {
    walk: Walk,
    container: Container,
    /// Characters to the column of a structure's values, or the number of a list's next element.
    count: u32,
}

/// What it is.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)] // as large as the rest is aligned: no bytes between that would have to be copied by themselves
enum Container {
    Structure,
    List,
}

/// What is remembered from one value to the next.
#[derive(Clone, Default)]
pub(super) struct LineState {
    caches: TableCaches,
    /// What is open around the structure or list whose lines are being written.
    open: Vec<OpenBlock>,
}

/// Appends the lines of a tree.
pub(super) fn lines(
    view: &PrintView<'_>,
    names: Names<'_>,
    options: &TreeOptions,
    state: &mut LineState,
    w: &mut TextWriter<'_>,
) {
    let LineState { caches, open } = state;
    let TableCache { labels, meanings, value_texts, .. } =
        caches.of(view.message.tables, label, meaning_of);
    let painted = !options.paint.field.on.is_empty();
    let lines = Lines { view, labels, painted, meanings, options };
    match view.message.tree.get(0) {
        // One value that was asked for by its type.
        Some(value) if !matches!(value.kind, Kind::Struct | Kind::List) => {
            w.fixed(b"    value  ");
            lines.value(0, value, 4, value_texts, w);
            lines.inferred(0, value, &mut { names }, w);
            w.byte(b'\n');
        }
        Some(root) => w.by_parts(|scratch, at, out| {
            let buffers = LineBuffers { value_texts, open };
            lines.inside(root, names, buffers, scratch, at, out)
        }),
        None => {}
    }
}

/// Appends a name as it is. Returns whether it has one byte a character, so that its length is its
/// width.
fn label(name: &str, out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(name.as_bytes());
    name.is_ascii()
}

/// The number under which the texts of a type's values are cached; 0 if they have no texts.
fn meaning_of(tables: &Tables, ty: TypeRef) -> u32 {
    let op = tables.type_op(ty);
    if op.symbols().is_some() || op.shown { ty.0 + 1 } else { 0 }
}

/// Everything that writing the lines of one message needs.
struct LineBuffers<'a> {
    value_texts: &'a mut ValueTexts,
    /// The structures and lists that are open around the line.
    open: &'a mut Vec<OpenBlock>,
}

/// How lines are written.
struct Lines<'a> {
    view: &'a PrintView<'a>,
    /// The names that are written as they are: in ASCII.
    labels: &'a [Label],
    /// Names are in colour.
    painted: bool,
    /// For each type the key of its values' texts; 0 if they have no texts.
    meanings: &'a [u32],
    options: &'a TreeOptions,
}

impl Lines<'_> {
    /// The fields of a structure, whose values begin in the same column, or the elements of a list,
    /// with all that is in them.
    #[inline(never)]
    fn inside(
        &self,
        root: &Node,
        mut names: Names<'_>,
        buffers: LineBuffers<'_>,
        scratch: &mut [u8; SCRATCH_BYTES],
        at: usize,
        out: &mut Vec<u8>,
    ) -> usize {
        let LineBuffers { value_texts, open } = buffers;
        let mut w = TextWriter::new(scratch, at, out);
        let nodes = self.view.message.tree.nodes();
        // Fields so far: each has a colour that ties it to its bytes.
        let mut tie = 0;
        let mut next = names.next();
        open.clear();
        let mut here = self.open(0, root);
        loop {
            let Some((index, node)) = here.walk.next(nodes) else {
                let Some(outer) = open.pop() else { return w.position() };
                here = outer;
                continue;
            };
            let indent = open.len() * 4 + 4;
            spaces(indent, &mut w);
            // The most frequent case comes first and makes the fewest checks.
            if node.kind == Kind::Unsigned
                && here.container == Container::Structure
                && !self.view.hides(node)
            {
                self.name(node.name, here.count, tie, &mut w);
                self.number(node, value_texts, &mut w);
            } else if matches!(node.kind, Kind::Struct | Kind::List) && self.is_nested(index, node)
            {
                self.begin(node.name, &mut here, 0, tie, &mut w);
                open.push(here);
                here = self.open(index, node);
                if here.container == Container::List && is_empty(here.walk, nodes) {
                    w.fixed(b"  none\n");
                } else {
                    w.byte(b'\n');
                }
                continue;
            } else {
                let width = here.count;
                self.begin(node.name, &mut here, width, tie, &mut w);
                if here.container == Container::List {
                    w.fixed(b"  ");
                }
                w.by_copy(|w| self.value(index, node, indent, value_texts, w));
            }
            if next <= index {
                w.by_copy(|w| self.inferred(index, node, &mut names, w));
                next = names.next();
            }
            w.byte(b'\n');
            tie += 1;
        }
    }

    /// The state of a structure or a list while its lines are written.
    #[inline(always)]
    fn open(&self, index: u32, node: &Node) -> OpenBlock {
        let walk = Walk::new(index, node);
        if node.kind == Kind::List {
            OpenBlock { walk, container: Container::List, count: 0 }
        } else {
            OpenBlock { walk, container: Container::Structure, count: self.widest(walk) + 2 }
        }
    }

    /// The characters of a structure's longest name.
    #[inline(never)]
    fn widest(&self, walk: Walk) -> u32 {
        let nodes = self.view.message.tree.nodes();
        let labels = self.labels;
        let mut widest = 0;
        let mut next = walk;
        while let Some((_, node)) = next.next(nodes) {
            let Some(label) = labels.get(node.name.0 as usize) else {
                return self.widest_of_any(walk);
            };
            widest = widest.max(label.length());
        }
        if widest > Label::MOST { self.widest_of_any(walk) } else { widest as u32 }
    }

    /// The same where not all names are labels.
    #[inline(never)]
    fn widest_of_any(&self, mut walk: Walk) -> u32 {
        let mut widest = 0;
        while let Some((_, node)) = walk.next(self.view.message.tree.nodes()) {
            widest = widest.max(self.any_width(node.name));
        }
        widest as u32
    }

    /// Begins a line: a field's name and spaces, or an element's number.
    #[inline(always)]
    fn begin(
        &self,
        name: Sym,
        here: &mut OpenBlock,
        width: u32,
        tie: usize,
        w: &mut TextWriter<'_>,
    ) {
        if here.container == Container::List {
            let number = here.count;
            w.by_copy(|w| self.element(name, number, tie, w));
            here.count += 1;
        } else {
            self.name(name, width, tie, w);
        }
    }

    /// A field's name, padded with spaces to `width` characters; a longer name is not cut.
    #[inline(always)]
    fn name(&self, name: Sym, width: u32, tie: usize, w: &mut TextWriter<'_>) {
        let width = width as usize;
        match self.labels.get(name.0 as usize) {
            Some(label) if label.length().max(width) <= Label::MOST && !self.painted => {
                w.block(label.block(), label.length().max(width));
            }
            Some(label) if label.length() <= Label::MOST => {
                w.by_copy(|w| self.painted_name(label, width, tie, w));
            }
            _ => w.by_copy(|w| self.any_name(name, width, tie, w)),
        }
    }

    /// Whether a value has lines of its own below its name.
    #[inline(always)]
    fn is_nested(&self, index: u32, node: &Node) -> bool {
        match node.kind {
            Kind::Struct => !self.view.hides(node),
            Kind::List => !self.view.hides(node) && !value::is_short_list(self.view, index, node),
            _ => false,
        }
    }

    /// The characters of any name.
    #[inline(never)]
    fn any_width(&self, name: Sym) -> usize {
        let name = any_name(self.view.message.tree, self.view.message.tables, name);
        if name.raw().contains(is_control) {
            return name.escaped().to_string().chars().count();
        }
        name.raw().chars().count()
    }

    /// A name that is painted, or has many spaces behind it.
    #[inline(never)]
    fn painted_name(&self, label: &Label, width: usize, tie: usize, w: &mut TextWriter<'_>) {
        let paint = self.paint(tie);
        w.raw(paint.on.as_bytes());
        w.block(label.block(), label.length());
        w.raw(paint.off.as_bytes());
        spaces(width.saturating_sub(label.length()), w);
    }

    /// A name that is long, or came from the traffic.
    #[inline(never)]
    fn any_name(&self, name: Sym, width: usize, tie: usize, w: &mut TextWriter<'_>) {
        let paint = self.paint(tie);
        w.raw(paint.on.as_bytes());
        w.captured(any_name(self.view.message.tree, self.view.message.tables, name));
        w.raw(paint.off.as_bytes());
        spaces(width.saturating_sub(self.any_width(name)), w);
    }

    /// An element of a list: its number, or the name it has.
    #[inline(never)]
    fn element(&self, name: Sym, number: u32, tie: usize, w: &mut TextWriter<'_>) {
        if name == Sym::ELEMENT {
            let paint = self.paint(tie);
            w.raw(paint.on.as_bytes());
            w.byte(b'[');
            w.number(number.into());
            w.byte(b']');
            w.raw(paint.off.as_bytes());
        } else {
            self.any_name(name, 0, tie, w);
        }
    }

    /// The colour of a name.
    fn paint(&self, tie: usize) -> &Style {
        if self.options.bytes { self.options.paint.tie(tie) } else { &self.options.paint.field }
    }

    /// Any value on the line of its name, which is indented by `indent`, with what it means.
    #[inline(never)]
    fn value(
        &self,
        index: u32,
        node: &Node,
        indent: usize,
        value_texts: &mut ValueTexts,
        w: &mut TextWriter<'_>,
    ) {
        let integer =
            matches!(node.kind, Kind::Unsigned | Kind::Signed | Kind::Unsigned64 | Kind::Signed64);
        match self.meaning(node) {
            _ if self.view.hides(node) => value::hidden(node, w),
            meaning if meaning != 0 && integer => self.explained(meaning, node, value_texts, w),
            meaning => {
                value::other(self.view, index, node, w);
                if meaning != 0 && node.kind == Kind::Bytes {
                    self.explain_bytes(node, indent, w);
                }
            }
        }
    }

    /// What some bytes mean, behind them or below them.
    #[cold]
    fn explain_bytes(&self, node: &Node, indent: usize, w: &mut TextWriter<'_>) {
        let MessageView { tables, tree, bytes } = self.view.message;
        let Some(word) = tables.type_def(node.ty).and_then(|def| def.shown) else { return };
        let content = tree.content(node, bytes);
        let paint = &self.options.paint.meaning;
        let out = w.vec();
        let word = tables.name(word);
        if word == "square" {
            return square(&content, indent + 4, out);
        }
        let at = out.len();
        out.extend_from_slice(b"  ");
        out.extend_from_slice(paint.on.as_bytes());
        let said = out.len();
        meaning_of_bytes(word, tables, &content, out);
        if out.len() == said {
            out.truncate(at);
        } else {
            out.extend_from_slice(paint.off.as_bytes());
        }
    }

    /// The same for an unsigned number of up to 32 bits that is not hidden.
    #[inline(always)]
    fn number(&self, node: &Node, value_texts: &mut ValueTexts, w: &mut TextWriter<'_>) {
        match self.meaning(node) {
            0 => match w.spare::<8>().and_then(|room| short_digits(room, node.value)) {
                Some(used) => w.advance(used),
                None => w.long_number(node.value),
            },
            meaning => self.explained(meaning, node, value_texts, w),
        }
    }

    /// The key of the texts for a node's number; 0 if it has no text.
    #[inline(always)]
    fn meaning(&self, node: &Node) -> u32 {
        self.meanings.get(node.ty.0 as usize).copied().unwrap_or(0)
    }

    /// The name that earlier records give a node's number.
    #[inline(never)]
    fn inferred(&self, index: u32, node: &Node, names: &mut Names<'_>, w: &mut TextWriter<'_>) {
        if let Some((name, record)) = names.take(index).filter(|_| !self.view.hides(node)) {
            w.fixed(b"  \"");
            json::write_escaped(w, name.as_bytes());
            w.fixed(b"\" (inferred, record ");
            w.number(record);
            w.byte(b')');
        }
    }

    /// A number whose type says what it means.
    #[inline(always)]
    fn explained(
        &self,
        by: u32,
        node: &Node,
        value_texts: &mut ValueTexts,
        w: &mut TextWriter<'_>,
    ) {
        let key = ValueKey::new(by, node);
        match value_texts.find(key) {
            Some(text) => text.append(w),
            None => w.by_copy(|w| value_texts.append(key, w, |out| self.explain(node, out))),
        }
    }

    /// A number with what it means.
    fn explain(&self, node: &Node, out: &mut Vec<u8>) {
        let paint = &self.options.paint.meaning;
        match node.kind {
            Kind::Signed | Kind::Signed64 => json::number(out, node.value as i64),
            _ => json::number(out, node.value),
        }
        let at = out.len();
        out.extend_from_slice(b"  ");
        out.extend_from_slice(paint.on.as_bytes());
        let said = out.len();
        meaning(self.view.message.tables, node, out);
        if out.len() == said {
            out.truncate(at);
        } else {
            out.extend_from_slice(paint.off.as_bytes());
        }
    }
}

/// Up to this many cells a side, a square of bits is drawn.
const WIDEST_SQUARE: usize = 256;

/// Draws bits as a square: the least significant of each byte first, the first row at the bottom,
/// two rows a line, which makes the cells square. Other numbers of bits are not drawn.
fn square(bytes: &[u8], indent: usize, out: &mut Vec<u8>) {
    let side = (bytes.len() * 8).isqrt();
    if side * side != bytes.len() * 8 || !(8..=WIDEST_SQUARE).contains(&side) {
        return;
    }
    let is_set = |row: usize, column: usize| {
        let bit = row * side + column;
        bytes.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
    };
    for row in (0..side / 2).rev().map(|pair| pair * 2) {
        out.push(b'\n');
        out.resize(out.len() + indent, b' ');
        for column in 0..side {
            let cell = match (is_set(row + 1, column), is_set(row, column)) {
                (true, true) => "█",
                (true, false) => "▀",
                (false, true) => "▄",
                (false, false) => "·",
            };
            out.extend_from_slice(cell.as_bytes());
        }
    }
}

/// Whether a list has no elements.
#[inline(never)]
fn is_empty(mut walk: Walk, nodes: &[Node]) -> bool {
    walk.next(nodes).is_none()
}

#[inline(always)]
fn spaces(count: usize, w: &mut TextWriter<'_>) {
    const SPACES: [u8; 32] = [b' '; 32];
    let mut left = count;
    while left > SPACES.len() {
        w.fixed(&SPACES);
        left -= SPACES.len();
    }
    w.block(&SPACES, left);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn drawn(bytes: &[u8]) -> String {
        let mut out = Vec::new();
        square(bytes, 1, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_square_of_bits_has_its_first_row_at_the_bottom() {
        assert_eq!(
            drawn(&[0x01, 0x81, 0, 0, 0, 0, 0x80, 0xff]),
            "\n ▀▀▀▀▀▀▀█\n ········\n ········\n █······▀"
        );
    }

    #[test]
    fn other_numbers_of_bits_are_not_drawn() {
        for length in [0, 1, 2, 7, 9, 511, 1 << 15] {
            assert_eq!(drawn(&vec![0xff; length]), "", "{length}");
        }
        assert_eq!(drawn(&[0xff; 512]).lines().count(), 33);
    }
}
