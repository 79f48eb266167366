//! The encoder: runs the layouts of the evaluator over JSON and writes the bytes that the evaluator
//! would read as this JSON.
//!
//! It is the inverse of `eval`, file by file, and reads the same compiled program. What the JSON
//! does not have is computed: counts, lengths, presences and checksums are written as placeholders
//! first, and replaced once what they count is written (`unknown`). It knows no protocol, and
//! neither files nor outputs.

mod bits;
mod bitstream;
mod expr;
mod json;
mod language;
mod leaf;
mod many;
mod message;
mod region;
mod spans;
mod steps;
mod unknown;

pub use bits::{Bits, write_bytes};
pub(super) use bitstream::*;
pub use json::{Json, JsonError, JsonKind};
pub(super) use language::*;
pub use leaf::{NAN_32, NAN_64};
pub use message::Written;
pub use spans::reads_as;

use std::collections::HashMap;
use std::fmt;

use super::Tables;
use super::eval::Remembered;
use crate::captured::Escaped;
use crate::tree::{Sym, TypeRef};
use unknown::{Check, LateSum, Unknown, WholeLength};

/// Why JSON could not become bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodeError {
    /// The value's path, such as `fields.rooms[2].name`.
    pub path: String,
    /// What is wrong with it.
    pub text: String,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, text) = (shortened(&self.path), shortened(&self.text));
        match path.is_empty() {
            true => f.write_str(&text),
            false => write!(f, "{path}: {text}"),
        }
    }
}

/// The most characters of a path or of a text in a message: keys and values may be of any length.
const MAX_SHOWN: usize = 300;

/// The beginning of a text, on one line: control characters are escaped.
fn shortened(text: &str) -> String {
    let (shown, rest) = match text.char_indices().nth(MAX_SHOWN) {
        None => (text, ""),
        Some((at, _)) => (text.get(..at).unwrap_or(""), "…"),
    };
    format!("{}{rest}", Escaped(shown))
}

impl std::error::Error for EncodeError {}

/// Why writing stopped before a layout's end.
#[derive(Debug)]
pub enum Stop {
    /// The JSON is not what the layout says.
    Failed(Box<Failure>),
    /// The rest of the region was written from its `undecoded`.
    Undecoded,
}

/// A mistake in the JSON, and where it is.
#[derive(Debug)]
pub struct Failure {
    /// The value, or the object that a value is missing in.
    node: u32,
    /// The name of the missing value.
    missing: Option<Sym>,
    text: String,
}

/// A value as expressions see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The field is absent.
    Absent,
    /// Its number. 0 for what is no number.
    Number(u64),
    /// A number that is computed later, by its place among those.
    Unknown(u32),
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// A value of the JSON.
    Json(u32),
    /// A number that was computed.
    Number(u64),
    /// Nowhere: the JSON has none.
    Nothing,
}

/// The kept values of one structure.
#[derive(Clone, Copy, Debug, Default)]
pub struct Frame {
    base: usize,
    length: usize,
}

/// A value that is about to be written.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name.
    pub name: Sym,
    /// Its type.
    pub ty: TypeRef,
    /// Whether it is a span, which JSON has only with `--spans`.
    pub span: bool,
    /// The object around it.
    pub object: u32,
    /// The kept values of the structure around it.
    pub frame: Frame,
    /// Where its value comes from.
    pub given: Given,
}

/// The code that writes a type with code: the inverse of [`Native::read`](super::Native). Returns
/// the value that expressions see.
pub type WriteCode = fn(&mut Encoding<'_>, &Field) -> Result<Slot, Stop>;

/// What senders do differently where the same fields can be written in several forms, so that the
/// JSON does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Habits {
    /// Which of a message's texts with characters beyond ASCII are in Latin-1 and not in UTF-8,
    /// where their type allows both: a bit each.
    pub latin1: u64,
    /// Zeros at the end of a text, empty or not, that may have any number of them (`trimmed`).
    pub zeros: [usize; 2],
    /// Which of these texts have one where the others have none, or none where the others have one:
    /// a bit each.
    pub other_zeros: u64,
    /// How many empty lists at the end are written, where they may be left out. The others are left
    /// out. `None` if all are written.
    pub empty_lists: Option<u32>,
    /// How often an end mark is written where that is free.
    pub end_marks: usize,
    /// In which of its encodings a value is written that describes itself.
    pub encoding: usize,
    /// Which regions end without the mark at the end of their last value.
    pub open_ends: OpenEnds,
    /// Names are written whole, also where one that ends alike was written before.
    pub whole_names: bool,
}

/// Which regions end without the mark at the end of their last value (`to`): the region's end is
/// that of the value, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpenEnds {
    /// Those that would end with a blank.
    #[default]
    Blanks,
    /// Those, and all within a message.
    Regions,
    /// All, and the message.
    All,
    /// None.
    None,
}

/// The most encodings of such a value.
const MAX_ENCODINGS: usize = 6;

impl Default for Habits {
    fn default() -> Habits {
        Habits {
            latin1: 0,
            zeros: [0, 1],
            other_zeros: 0,
            empty_lists: None,
            end_marks: 1,
            encoding: 0,
            open_ends: OpenEnds::default(),
            whole_names: false,
        }
    }
}

/// The most texts of a message for which every choice is tried: UTF-8 or Latin-1, a zero or none.
/// Further texts are written in the usual way.
const MAX_ODD_TEXTS: u32 = 6;

/// A message is tried with fewer than this many empty lists at its end, and the others left out.
const MAX_EMPTY_LISTS: u32 = 4;

/// What a message asked its sender's habits about.
#[derive(Clone, Copy, Debug, Default)]
pub struct AskedHabits {
    /// How many of its texts have characters beyond ASCII, and a type that allows UTF-8 and
    /// Latin-1.
    pub odd_texts: u32,
    /// How many of its texts may end with any number of zeros.
    pub zero_texts: u32,
    /// Whether a value that describes itself may end so.
    pub zeros: bool,
    /// Whether empty lists may be left out at the end.
    pub empty_lists: bool,
    /// Whether it ends with an empty list.
    pub ends_empty: bool,
    /// Whether end marks are free.
    pub end_marks: bool,
    /// Whether it has values that describe themselves.
    pub encodings: bool,
    /// Whether a region ends with the mark of its last value.
    pub open_ends: bool,
    /// Whether a name was written before.
    pub names: bool,
}

impl Habits {
    /// Those that make a difference to a message of so many bytes, the usual ones first. Of a long
    /// message, not all are worth trying.
    pub fn all(asked: AskedHabits, bytes: usize) -> impl Iterator<Item = Habits> {
        let usual = Habits::default();
        let up_to = |n: usize, if_asked: bool| if if_asked { n } else { 0 };
        let odd = asked.odd_texts > 0;
        let latin1 = [Habits { latin1: u64::MAX, ..usual }].into_iter().take(up_to(1, odd));
        let lists = (0..MAX_EMPTY_LISTS).map(move |n| Habits { empty_lists: Some(n), ..usual });
        let lists = lists.take(up_to(MAX_EMPTY_LISTS as usize, asked.empty_lists));
        let zeros = [[1, 1], [0, 0]].into_iter().map(move |zeros| Habits { zeros, ..usual });
        let zeros = zeros.take(up_to(2, asked.zeros || asked.zero_texts > 0));
        let ends = [OpenEnds::Regions, OpenEnds::All, OpenEnds::None].into_iter();
        let ends = ends.map(move |open_ends| Habits { open_ends, ..usual });
        let ends = ends.take(up_to(3, asked.open_ends));
        let names = [Habits { whole_names: true, ..usual }].into_iter().take(up_to(1, asked.names));
        let encodings = (1..MAX_ENCODINGS).map(move |encoding| Habits { encoding, ..usual });
        let encodings = encodings.take(up_to(MAX_ENCODINGS, asked.encodings));
        let some = choices(asked.odd_texts).map(move |latin1| Habits { latin1, ..usual });
        let several = [1, 2, 0].into_iter().take(1 + up_to(2, asked.end_marks));
        let several = several.flat_map(move |end_marks| {
            let lists = [None, Some(0)].into_iter().take(1 + up_to(1, asked.empty_lists));
            lists.flat_map(move |empty_lists| {
                let zeros = choices(asked.zero_texts);
                zeros.map(move |other_zeros| Habits {
                    other_zeros,
                    empty_lists,
                    end_marks,
                    ..usual
                })
            })
        });
        let first = [usual].into_iter().chain(latin1).chain(lists).chain(zeros).chain(ends);
        let all = first.chain(names).chain(encodings).chain(some).chain(several);
        all.take(most_tries(bytes))
    }
}

/// The most bytes that are written to find out what a message's sender did, and the fewest tries.
const MAX_TRIED: usize = 32 << 20;
const MIN_TRIES: usize = 8;

/// How many habits are tried for a message or a part of it of so many bytes.
fn most_tries(bytes: usize) -> usize {
    (MAX_TRIED / bytes.max(1)).max(MIN_TRIES)
}

/// Every choice of some of so many texts: a bit each.
fn choices(texts: u32) -> std::ops::Range<u64> {
    0..1 << texts.min(MAX_ODD_TEXTS)
}

/// Packs the content of a buffer. The first argument says how it became one. The last one are the
/// bytes that were captured, if they are known: they are right as long as they have this content.
pub type PackCode = fn(&str, &[u8], &[u8]) -> Option<Vec<u8>>;

/// Writes a span whose type does not say how. Returns whether it did.
pub type LeafCode = fn(&mut Encoding<'_>, &SpanLeaf) -> Result<bool, Stop>;

/// A span without parts.
#[derive(Clone, Copy, Debug)]
pub struct SpanLeaf {
    /// The span, which has a `name`, a `type` and perhaps the `bytes`.
    pub span: u32,
    /// Its value.
    pub value: u32,
    /// How many bits it has.
    pub bits: usize,
}

/// The encoder's state from message to message.
#[derive(Default)]
pub struct Encoder {
    /// How its messages are written where several forms are right.
    pub habits: Habits,
    /// What the last message asked about.
    pub asked: AskedHabits,
    /// Whether lists that are read up to a zero or to the region's end have no zero there.
    pub open_lists: bool,
    /// Packs the content of a span that was in a buffer of its own for another reason than zlib.
    pub pack: Option<PackCode>,
    /// Writes spans of types that need code.
    pub leaf: Option<LeafCode>,
    /// The states of the connection whose messages are written.
    pub states: Vec<u64>,
    /// The values that tables remember.
    pub memory: Remembered,
    /// A store for the protocol's types with code, as in [`Evaluator`](super::Evaluator::context).
    pub context: Option<Box<dyn std::any::Any + Send>>,
    /// What the protocol keeps of the connections whose messages are written.
    pub connections: Option<Box<dyn std::any::Any + Send>>,
    /// What these types keep from message to message to save work.
    pub scratch: Option<Box<dyn std::any::Any + Send>>,
    /// The types of tables whose messages were written from spans.
    types: spans::TypeTexts,
    /// Whether values that have a default must be there, too.
    pub exact: bool,
}

/// A problem of the message, as the JSON has it.
#[derive(Clone, Debug)]
struct Note {
    text: String,
    /// The bytes of the wire, where JSON cannot show them.
    bytes: Option<Vec<u8>>,
}

/// How often another branch is tried in one message.
const MAX_TRIES: u32 = 2_000;

/// The most bytes of one message.
const MAX_BYTES: usize = 64 << 20;

/// How deep structures may lie within each other.
const MAX_DEPTH: u32 = 96;

/// Whether a value of the JSON was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Used {
    No,
    /// With all that it contains.
    Whole,
    /// It is an object or a list, whose values have marks of their own.
    Entered,
}

/// The mark at a value's end that was written last.
#[derive(Clone, Copy, Debug)]
struct EndMark {
    /// The bit behind it.
    pos: usize,
    bits: usize,
    /// It is a blank, which is not needed before the end of a line.
    blank: bool,
}

/// The end of a region, before a field that is only there if the region goes on.
#[derive(Clone, Copy, Debug)]
struct RegionEnd {
    pos: usize,
    object: u32,
    /// The field.
    name: Sym,
}

/// One message that is being written.
pub struct Encoding<'a> {
    /// The tables.
    pub tables: &'a Tables,
    /// The JSON.
    pub json: &'a Json<'a>,
    /// The encoder's state.
    pub state: &'a mut Encoder,
    out: Bits,
    /// The bytes around those that are written to, while these are the content of what is packed.
    outer: Vec<Bits>,
    slots: Vec<Slot>,
    unknowns: Vec<Unknown>,
    /// The numbers that were computed, in this order.
    solved: Vec<u32>,
    checks: Vec<Check>,
    sums: Vec<LateSum>,
    /// The numbers that were found to be right when the message was written before.
    found: Vec<u64>,
    /// The message's number.
    number: Option<u64>,
    /// The field whose text selects the message, and the text, until it is written.
    word: Option<(Sym, &'a str)>,
    /// Whether that text may be in letters of either case.
    any_case: bool,
    /// What says how many bytes the message has.
    length: Option<WholeLength>,
    /// The bytes that must stand at a place: those that every message begins with, or the one that
    /// selects the message.
    certain: (usize, Vec<u8>),
    used: Vec<Used>,
    /// The values that were marked as used, in this order.
    marked: Vec<u32>,
    notes: HashMap<u32, Vec<Note>>,
    /// The objects that hold what the open regions have left over.
    regions: Vec<u32>,
    /// Where the open region ended, if a field that is absent says so.
    ended: Option<RegionEnd>,
    /// The object whose keys belong to several layouts.
    shared: Option<u32>,
    dialects: u32,
    depth: u32,
    tries: u32,
    /// Which of the encodings of a type its texts are in.
    text_kind: usize,
    last_end: Option<EndMark>,
    /// Where names end alike with one that was written before: what it is made of, and the byte
    /// where it begins.
    names: HashMap<Vec<u8>, usize>,
    /// The name and the bytes of the text that was written last.
    last_text: Option<(Sym, Vec<u8>)>,
    /// How many empty lists that may be left out came so far.
    empty_lists: u32,
    /// The bit behind the zero at the end of the last list that has one.
    list_end: Option<usize>,
    /// The bit behind the count of the last empty list.
    empty_end: Option<usize>,
}

impl<'a> Encoding<'a> {
    fn new(tables: &'a Tables, json: &'a Json<'a>, state: &'a mut Encoder) -> Encoding<'a> {
        Encoding {
            tables,
            json,
            state,
            out: Bits::default(),
            outer: Vec::new(),
            slots: Vec::new(),
            unknowns: Vec::new(),
            solved: Vec::new(),
            checks: Vec::new(),
            sums: Vec::new(),
            found: Vec::new(),
            number: None,
            word: None,
            any_case: false,
            length: None,
            certain: (0, Vec::new()),
            used: vec![Used::No; json.len()],
            marked: Vec::new(),
            notes: HashMap::new(),
            regions: Vec::new(),
            ended: None,
            shared: None,
            dialects: 0,
            depth: 0,
            tries: 0,
            text_kind: 0,
            last_end: None,
            names: HashMap::new(),
            last_text: None,
            empty_lists: 0,
            list_end: None,
            empty_end: None,
        }
    }

    /// A mistake in a value.
    pub fn fail<T>(&self, node: u32, text: impl Into<String>) -> Result<T, Stop> {
        Err(Stop::Failed(Box::new(Failure { node, missing: None, text: text.into() })))
    }

    /// A mistake of a field's value, or of its absence.
    pub fn fail_at<T>(&self, field: &Field, text: impl Into<String>) -> Result<T, Stop> {
        match field.given {
            Given::Json(node) => self.fail(node, text),
            _ => {
                let missing = Some(field.name);
                Err(Stop::Failed(Box::new(Failure {
                    node: field.object,
                    missing,
                    text: text.into(),
                })))
            }
        }
    }

    /// The text of a type, for messages.
    pub fn type_text(&self, ty: TypeRef) -> &str {
        self.tables.type_def(ty).map_or("", |def| &def.text)
    }

    fn missing<T>(&self, field: &Field) -> Result<T, Stop> {
        self.fail_at(field, format!("is missing: {}", self.type_text(field.ty)))
    }

    /// The bytes that are written to.
    pub fn out(&mut self) -> &mut Bits {
        &mut self.out
    }

    /// From here on, writes into a buffer of its own.
    fn open_buffer(&mut self) {
        self.outer.push(std::mem::take(&mut self.out));
        self.forget_ends();
    }

    /// What was written last is no longer what stands before the place that is written to.
    fn forget_ends(&mut self) {
        (self.last_end, self.list_end, self.empty_end) = (None, None, None);
    }

    /// Takes the buffer that was opened last.
    fn close_buffer(&mut self) -> Bits {
        let outer = self.outer.pop().unwrap_or_default();
        self.forget_ends();
        std::mem::replace(&mut self.out, outer)
    }

    /// The bit at which the next value begins.
    pub fn pos(&self) -> usize {
        self.out.pos()
    }

    /// Zeros, unless a message would have too many.
    fn put_zeros(&mut self, field: &Field, n: u64) -> Result<(), Stop> {
        match usize::try_from(n) {
            Ok(n) if n <= MAX_BYTES.saturating_sub(self.pos() / 8) => {
                self.out().put_zeros(n);
                Ok(())
            }
            _ => self.fail_at(field, format!("{n} bytes: a message may have {MAX_BYTES}")),
        }
    }

    /// Marks a value as written, with all that it contains or without.
    fn mark(&mut self, node: u32, how: Used) {
        if let Some(used) = self.used.get_mut(node as usize) {
            *used = how;
            self.marked.push(node);
        }
    }

    /// Marks a value, with all that it contains, as written.
    pub fn take(&mut self, node: u32) {
        self.mark(node, Used::Whole);
    }

    /// Marks an object or a list as written, and not what it contains.
    pub fn enter(&mut self, node: u32) {
        self.mark(node, Used::Entered);
    }

    /// The first value of an object with a key that was not written yet.
    pub fn lookup(&self, object: u32, key: &str) -> Option<u32> {
        if self.json.kind(object) != JsonKind::Object {
            return None;
        }
        self.json.children(object).find(|child| {
            self.used.get(*child as usize) == Some(&Used::No) && self.json.key(*child) == key
        })
    }

    /// The same by the name of a field.
    pub fn lookup_sym(&self, object: u32, name: Sym) -> Option<u32> {
        self.lookup(object, self.tables.name(name))
    }

    /// Whether a problem of a value has this text.
    pub fn is_said(&self, node: u32, text: &str) -> bool {
        self.notes_of(node).any(|note| note.text == text)
    }

    /// Whether a problem of a value has a text that is so.
    pub fn says(&self, node: u32, so: impl Fn(&str) -> bool) -> bool {
        self.notes_of(node).any(|note| so(&note.text))
    }

    fn notes_of(&self, node: u32) -> impl Iterator<Item = &Note> {
        self.notes.get(&node).into_iter().flatten()
    }

    /// The bytes that problems of a value show.
    pub fn shown_bytes(&self, node: u32) -> impl Iterator<Item = &[u8]> {
        self.notes_of(node).filter_map(|note| note.bytes.as_deref())
    }

    /// Writes the bytes that no field claims: those of an object, or of the region that it is in.
    /// Returns whether there are any.
    pub fn undecoded(&mut self, object: u32) -> Result<bool, Stop> {
        let of_region = self.regions.last().copied();
        let node = [Some(object), of_region]
            .into_iter()
            .flatten()
            .find_map(|object| self.lookup_sym(object, Sym::UNDECODED));
        let Some(node) = node else { return Ok(false) };
        let bytes = self.hex(node)?;
        self.take(node);
        self.out().put(&bytes);
        Ok(true)
    }

    /// The error of a failure: with the path of its value.
    fn error(&self, failure: &Failure) -> EncodeError {
        let mut path = self.json.path(Json::ROOT, failure.node);
        if let Some(name) = failure.missing {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(self.tables.name(name));
        }
        EncodeError { path, text: failure.text.clone() }
    }

    /// Takes the problems of the message: what they say of the bytes.
    fn read_notes(&mut self, fields: u32, problems: u32) {
        let json = self.json;
        for problem in json.children(problems) {
            let path = json.text_of(problem, "field").unwrap_or("");
            let found = match json.kind(fields) {
                JsonKind::List => self.find_span(fields, path),
                _ => json.find(fields, path),
            };
            let (Some(node), Some(text)) = (found, json.text_of(problem, "text")) else {
                continue;
            };
            let bytes = json.text_of(problem, "bytes").and_then(super::parse_hex);
            let note = Note { text: text.to_string(), bytes };
            self.notes.entry(node).or_default().push(note);
        }
    }
}
