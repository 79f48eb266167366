//! Values of a tree as JSON.

use std::borrow::Cow;

use super::super::problem::any_name;
use super::super::scratch::{SCRATCH_BYTES, TextWriter, short_digits};
use super::super::table_cache::{Label, TableCache, TableCaches};
use super::super::value_texts::{MAX_CACHED, ValueKey, ValueTexts};
use super::escaped_bytes;
use super::named::{integer, named};
use super::strings::{escaped, hex, quoted};
use crate::digits::{uuid_digits, uuid_of};
use crate::print::view::PrintView;
use crate::table::Tables;
use crate::tree::{Kind, Node, Sym, TextKind, Tree, mark};

/// A tree with what it refers to.
/// The parts of a message that lie too deep for JSON.
#[derive(Clone, Copy, Debug)]
pub(super) struct TooDeep {
    /// The first of them.
    pub(super) first: u32,
    /// How many there are.
    pub(super) count: u32,
}

/// State that values share: caches of text, and how deep the current value lies.
#[derive(Clone, Default)]
pub(super) struct ValueState {
    pub(super) caches: TableCaches,
    pub(super) depth: DepthState,
}

/// How deep the value lies that is being written.
#[derive(Clone)]
pub(super) struct DepthState {
    /// What is open around the structure or list that is being written. There is one for every
    /// depth that a `u8` can count, so that none has to be checked.
    open: Box<[OpenPart; 256]>,
    /// What of this message lies too deep for JSON, if anything does.
    pub(super) too_deep: Option<TooDeep>,
}

impl Default for DepthState {
    fn default() -> Self {
        DepthState {
            open: Box::new([OpenPart { end: 0, bracket: Bracket::Object }; 256]),
            too_deep: None,
        }
    }
}

/// Objects and lists within each other in a line of JSON. What lies deeper is written as text.
const MAX_DEPTH: usize = 200;
/// What jq 1.6 has open while it reads a line: of an object the key too, so an object counts twice.
/// It reads 256 at most, and what commands put around a message's values takes a few.
pub(super) const MAX_ENTRIES: usize = 248;
/// Entries of the record around its fields, and of an enum or flag set (its object, its names).
pub(super) const ENTRIES_BESIDE: usize = 5;
/// Levels around a message's fields (the record), and within an enum or flag set (its object, its
/// names).
const LEVELS_BESIDE: usize = 4;
/// As long as fewer parts are open around a part, it is not too deep, even if all of them are
/// objects.
const NEVER_TOO_DEEP: usize = (MAX_ENTRIES - ENTRIES_BESIDE) / 2 - 1;

/// A structure or a list that is being written.
#[derive(Clone, Copy)]
struct OpenPart {
    /// The index behind its last node.
    end: u32,
    bracket: Bracket,
}

/// What it is written as.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)] // as large as the rest is aligned: no bytes between that would have to be copied by themselves
enum Bracket {
    Object = b'}' as u32,
    Array = b']' as u32,
}

impl OpenPart {
    /// What jq has open of it.
    fn entries(&self) -> usize {
        if self.bracket == Bracket::Object { 2 } else { 1 }
    }

    #[inline(always)]
    fn new(index: u32, node: &Node) -> OpenPart {
        OpenPart {
            end: node.end.max(index + 1),
            bracket: if node.kind == Kind::List { Bracket::Array } else { Bracket::Object },
        }
    }

    /// The nodes up to its end.
    #[inline(always)]
    fn of<'a>(&self, nodes: &'a [Node]) -> &'a [Node] {
        nodes.get(..self.end as usize).unwrap_or(nodes)
    }

    /// The label before a value in it; `None` where its name is no label.
    #[inline(always)]
    fn label<'a>(&self, labels: &'a [Label], node: &Node) -> Option<&'a Label> {
        match self.bracket {
            Bracket::Array => Some(&Label::COMMA),
            Bracket::Object => {
                labels.get(node.name.0 as usize).filter(|label| label.length() <= Label::MOST)
            }
        }
    }

    /// The opening bracket. The closing one is two code points later, for both `[` and `{`.
    #[inline(always)]
    fn lead(self) -> u8 {
        self.end() - 2
    }

    #[inline(always)]
    fn end(self) -> u8 {
        self.bracket as u8
    }
}

/// Whether the last of these parts is too deep, with the ones that are open around them.
#[cold]
#[inline(never)]
fn is_too_deep(open: &[OpenPart; 256], depth: u8, last: [OpenPart; 2]) -> bool {
    let depth = usize::from(depth);
    let entries: usize = open.iter().take(depth).chain(&last).map(OpenPart::entries).sum();
    depth >= MAX_DEPTH - LEVELS_BESIDE || ENTRIES_BESIDE + entries > MAX_ENTRIES
}

/// What is cached for `tables`; made when they are met first.
#[inline(always)]
pub(super) fn cache<'a>(caches: &'a mut TableCaches, tables: &Tables) -> &'a mut TableCache {
    let meaning =
        |tables: &Tables, ty| tables.type_op(ty).symbols().map_or(0, |symbols| symbols.0 + 1);
    caches.of(tables, key, meaning)
}

/// Appends a comma, a field's quoted name and a colon.
fn key(name: &str, out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(b",\"");
    escaped_bytes(out, name.as_bytes());
    out.extend_from_slice(b"\":");
    true
}

/// The name that [`key`] made a label of, escaped, without quotes.
pub(super) fn key_text(label: &Label) -> &[u8] {
    label.block().get(2..label.length().saturating_sub(2)).unwrap_or(&[])
}

/// One value.
pub(super) fn value(
    view: &PrintView<'_>,
    state: &mut ValueState,
    index: u32,
    w: &mut TextWriter<'_>,
) {
    match view.message.tree.get(index) {
        Some(node) if matches!(node.kind, Kind::Struct | Kind::List) && !view.hides(node) => {
            inside(view, state, index, w)
        }
        Some(node) => {
            let TableCache { meanings, value_texts, .. } =
                cache(&mut state.caches, view.message.tables);
            leaf(view, meaning_of(meanings, node), value_texts, node, w);
        }
        None => {}
    }
}

/// Appends the bytes of a part that lies too deep, as a string: text where they are printable
/// ASCII, else hex.
#[cold]
#[inline(never)]
pub(super) fn too_deep_text(
    view: &PrintView<'_>,
    too_deep: &mut Option<TooDeep>,
    index: u32,
    w: &mut TextWriter<'_>,
) {
    let Some(node) = view.message.tree.get(index) else { return };
    too_deep.get_or_insert(TooDeep { first: index, count: 0 }).count += 1;
    let from = node.start as usize / 8;
    let to = (node.start as usize + node.bits as usize).div_ceil(8);
    if view.redact
        && view.message.tree.secrets(node.buffer).any(|secret| secret.0 < to && from < secret.1)
    {
        return hidden(node, w);
    }
    let bytes =
        view.message.tree.bytes(node.buffer, view.message.bytes).get(from..to).unwrap_or(&[]);
    w.byte(b'"');
    if bytes.iter().all(|byte| (b' '..=b'~').contains(byte)) {
        escaped(w, bytes)
    } else {
        hex(w, bytes)
    }
    w.byte(b'"');
}

/// A structure as an object, a list as an array. Spans that are no values are left out.
pub(super) fn inside(
    view: &PrintView<'_>,
    state: &mut ValueState,
    index: u32,
    w: &mut TextWriter<'_>,
) {
    w.by_parts(|scratch, at, out| all_inside(view, state, index, scratch, at, out));
}

/// Bytes that a key and most values fill at most, so that there has to be room for both only once.
const FIELD: usize = Label::MOST + 1 + MAX_CACHED;

/// Each part is written together with the byte before it: a comma, or for the first part the
/// opening bracket. Where a structure or list has no parts, the opening bracket is written with the
/// closing one. Returns the writer's new position.
///
/// The nodes lie in the order in which they are written, so that it goes from one to the next, and
/// looks for the end of the part around it. What is frequent is written here, and all else by
/// functions that are not inlined: a loop that did everything would hold nothing in registers.
#[inline(never)]
fn all_inside(
    view: &PrintView<'_>,
    state: &mut ValueState,
    index: u32,
    scratch: &mut [u8; SCRATCH_BYTES],
    at: usize,
    out: &mut Vec<u8>,
) -> usize {
    let nodes = view.message.tree.nodes();
    let Some(node) = nodes.get(index as usize) else { return at };
    let mut w = TextWriter::new(scratch, at, out);
    let ValueState { caches, depth: DepthState { open, too_deep } } = state;
    let TableCache { labels, meanings, value_texts, .. } = cache(caches, view.message.tables);
    let labels = labels.as_slice();
    let meanings = meanings.as_slice();
    let unusual = mark::SPAN | mark::SEE_THROUGH | if view.redact { mark::SECRET } else { 0 };
    let mut here = OpenPart::new(index, node);
    let mut part = here.of(nodes);
    let mut depth = 0u8;
    let mut next = index as usize + 1;
    let mut lead = here.lead();
    loop {
        let Some(node) = part.get(next) else {
            if lead != b',' {
                w.byte(lead);
            }
            w.byte(here.end());
            let Some(outer) = depth.checked_sub(1) else { return w.position() };
            (depth, next, lead) = (outer, here.end as usize, b',');
            here = open.get(usize::from(outer)).copied().unwrap_or(here);
            part = here.of(nodes);
            continue;
        };
        let index = next;
        next = (node.end as usize).max(index + 1);
        if node.has(unusual) {
            if node.has(mark::SEE_THROUGH) {
                next = index + 1;
            } else if !node.has(mark::SPAN) {
                w.by_copy(|w| hidden_field(view, here, node, lead, w));
                lead = b',';
            }
            continue;
        }
        let label = here.label(labels, node);
        if label.is_none() {
            w.by_copy(|w| long_key(view, node.name, lead, w));
        }
        let room =
            w.spare::<FIELD>().and_then(|room| label.unwrap_or(&Label::NONE).put(lead, room));
        let Some((length, value)) = room else { return w.position() };
        lead = b',';
        if let Kind::Text(kind) = node.kind {
            w.advance(length);
            w.by_copy(|w| text(view.message.tree, view.message.bytes, node, kind, w));
        } else if node.kind == Kind::Unsigned {
            let meaning = meaning_of(meanings, node);
            let used = put_number(meaning, value_texts, node, value);
            w.advance(length + used.unwrap_or(0));
            match used {
                Some(_) => {}
                None if meaning == 0 => w.long_number(node.value),
                None => w.by_copy(|w| named(view.message.tables, meaning, node, value_texts, w)),
            }
        } else if matches!(node.kind, Kind::Struct | Kind::List) {
            w.advance(length);
            let inner = OpenPart::new(index as u32, node);
            if usize::from(depth) >= NEVER_TOO_DEEP && is_too_deep(open, depth, [here, inner]) {
                w.by_copy(|w| too_deep_text(view, too_deep, index as u32, w));
                continue;
            }
            if let Some(place) = open.get_mut(usize::from(depth)) {
                *place = here;
            }
            (depth, here, next, part, lead) =
                (depth + 1, inner, index + 1, inner.of(nodes), inner.lead());
        } else {
            w.advance(length);
            w.by_copy(|w| leaf(view, meaning_of(meanings, node), value_texts, node, w));
        }
    }
}

/// Puts an unsigned number of up to 32 bits into a room; returns its length, or `None` where it is
/// long or its text is not at hand.
#[inline(always)]
fn put_number(
    meaning: u32,
    value_texts: &ValueTexts,
    node: &Node,
    room: &mut [u8; MAX_CACHED],
) -> Option<usize> {
    match meaning {
        0 => short_digits(room, node.value),
        _ => value_texts.find(ValueKey::new(meaning, node))?.put(room),
    }
}

#[inline(always)]
fn meaning_of(meanings: &[u32], node: &Node) -> u32 {
    meanings.get(node.ty.0 as usize).copied().unwrap_or(0)
}

/// The name of a field that is long, or came from the traffic.
#[inline(never)]
fn long_key(view: &PrintView<'_>, name: Sym, lead: u8, w: &mut TextWriter<'_>) {
    w.byte(lead);
    w.byte(b'"');
    escaped(w, any_name(view.message.tree, view.message.tables, name).raw().as_bytes());
    w.fixed(b"\":");
}

/// A field, or an element of a list, whose value is hidden, with its key.
#[cold]
#[inline(never)]
fn hidden_field(view: &PrintView<'_>, of: OpenPart, node: &Node, lead: u8, w: &mut TextWriter<'_>) {
    match of.bracket {
        Bracket::Object => long_key(view, node.name, lead, w),
        Bracket::Array => w.byte(lead),
    }
    hidden(node, w);
}

#[cold]
#[inline(never)]
fn hidden(node: &Node, w: &mut TextWriter<'_>) {
    w.fixed(b"\"<redacted, ");
    w.number(u64::from(node.bits.div_ceil(8)));
    w.fixed(b" bytes>\"");
}

/// A value without children.
#[inline(never)]
fn leaf(
    view: &PrintView<'_>,
    meaning: u32,
    value_texts: &mut ValueTexts,
    node: &Node,
    w: &mut TextWriter<'_>,
) {
    if view.hides(node) {
        hidden(node, w);
    } else if meaning != 0 {
        named(view.message.tables, meaning, node, value_texts, w);
    } else {
        scalar(view, node, w);
    }
}

/// A value without children and without names.
fn scalar(view: &PrintView<'_>, node: &Node, w: &mut TextWriter<'_>) {
    match node.kind {
        Kind::Unsigned | Kind::Signed | Kind::Unsigned64 | Kind::Signed64 => integer(node, w),
        Kind::Null => w.fixed(b"null"),
        Kind::Bool => match node.value {
            0 => w.fixed(b"false"),
            1 => w.fixed(b"true"),
            n => w.number(n),
        },
        Kind::F32 if f32::from_bits(node.value as u32).is_finite() => {
            float32(f32::from_bits(node.value as u32), w)
        }
        Kind::F64 if f64::from_bits(node.value).is_finite() => {
            float64(f64::from_bits(node.value), w)
        }
        Kind::Text(kind) => text(view.message.tree, view.message.bytes, node, kind, w),
        Kind::Bytes
        | Kind::Undecoded
        | Kind::F32
        | Kind::F64
        | Kind::Uuid
        | Kind::UuidBe
        | Kind::Ipv4 => {
            w.byte(b'"');
            unquoted(view, node, w);
            w.byte(b'"');
        }
        Kind::Struct | Kind::List => {}
    }
}

/// A value that is neither a plain number nor a text, without the quotes that JSON would have.
pub(super) fn unquoted(view: &PrintView<'_>, node: &Node, w: &mut TextWriter<'_>) {
    match node.kind {
        Kind::Bytes | Kind::Undecoded => hex(w, &content(view, node)),
        Kind::F32 => float32(f32::from_bits(node.value as u32), w),
        Kind::F64 => float64(f64::from_bits(node.value), w),
        Kind::Uuid | Kind::UuidBe => {
            w.fixed(&uuid_digits(&uuid_of(&content(view, node), node.kind == Kind::Uuid)));
        }
        Kind::Ipv4 => {
            let [a, b, c, d] = (node.value as u32).to_be_bytes();
            w.number(a.into());
            for part in [b, c, d] {
                w.byte(b'.');
                w.number(part.into());
            }
        }
        _ => {}
    }
}

/// A text between quotes.
#[inline(never)]
pub(in crate::print) fn text(
    tree: &Tree,
    bytes: &[u8],
    node: &Node,
    kind: TextKind,
    w: &mut TextWriter<'_>,
) {
    if kind == TextKind::Owned {
        w.byte(b'"');
        escaped(w, tree.owned(node.value).raw().as_bytes());
        return w.byte(b'"');
    }
    let (start, length) = node.content();
    let all = tree.bytes(node.buffer, bytes);
    quoted(w, kind, all.get(start..start.saturating_add(length)).unwrap_or(&[]));
}

#[inline]
fn content<'a>(view: &PrintView<'a>, node: &Node) -> Cow<'a, [u8]> {
    view.message.tree.content(node, view.message.bytes)
}

fn float32(f: f32, w: &mut TextWriter<'_>) {
    if eighths(f64::from(f), w) {
        return;
    }
    if f.is_finite() && f.abs() > 3e38 {
        // Read as 64 bits, the shortest bracket of the largest floats lies beyond what 32 bits can
        // hold.
        float64(f64::from(f), w);
    } else if f.is_finite() {
        w.raw(zmij::Buffer::new().format_finite(f).as_bytes());
    } else {
        special(f64::from(f), w);
    }
}

fn float64(f: f64, w: &mut TextWriter<'_>) {
    if eighths(f, w) {
        return;
    }
    if f.is_finite() {
        w.raw(zmij::Buffer::new().format_finite(f).as_bytes());
    } else {
        special(f, w);
    }
}

/// Appends a float that is a whole number of eighths below 65,536; whether it is one. So are 0, 1,
/// a half and many others that are sent, and their digits are the shortest that read back in 32
/// bits as in 64. JSON of game traffic takes 0.97 of the time for it.
#[inline]
fn eighths(f: f64, w: &mut TextWriter<'_>) -> bool {
    let all = f * 8.0;
    let count = all as i32;
    if f64::from(count) != all
        || count.unsigned_abs() >= 8 << 16
        || (count == 0 && f.is_sign_negative())
    {
        return false;
    }
    if count < 0 {
        w.byte(b'-');
    }
    w.number(u64::from(count.unsigned_abs() / 8));
    const DECIMALS: [(&[u8; 4], usize); 8] = [
        (b".0  ", 2),
        (b".125", 4),
        (b".25 ", 3),
        (b".375", 4),
        (b".5  ", 2),
        (b".625", 4),
        (b".75 ", 3),
        (b".875", 4),
    ];
    if let Some((decimals, length)) = DECIMALS.get(count.unsigned_abs() as usize % 8) {
        w.block(decimals, *length);
    }
    true
}

fn special(f: f64, w: &mut TextWriter<'_>) {
    let word: &[u8] = match (f.is_nan(), f > 0.0) {
        (true, _) => b"NaN",
        (_, true) => b"Infinity",
        _ => b"-Infinity",
    };
    w.raw(word);
}

#[cfg(test)]
mod tests {
    use super::super::super::scratch::Scratch;
    use super::*;

    #[test]
    fn eighths_are_written_as_the_shortest_digits_that_read_back() {
        let mut scratch = Scratch::default();
        let mut own = Vec::new();
        let mut buffer = zmij::Buffer::new();
        for count in (-(9 << 16)..9 << 16).map(f64::from) {
            let f = count / 8.0;
            own.clear();
            let mut w = scratch.writer(&mut own);
            let is_one = eighths(f, &mut w);
            w.finish();
            assert_eq!(is_one, f.abs() < 65536.0);
            if is_one {
                assert_eq!(own, buffer.format_finite(f).as_bytes());
                assert_eq!(own, buffer.format_finite(f as f32).as_bytes());
            }
        }
        let mut w = scratch.writer(&mut own);
        for f in [-0.0, 0.1, 0.0625, 1e-300, 65536.0, 1e300, f64::INFINITY, f64::NAN] {
            assert!(!eighths(f, &mut w), "{f}");
        }
    }
}
