//! Reads the records of states by their descriptors.
//!
//! These are the types with code `sdl_variables`, `sdl_nested` and `sdl_creatable` of the message
//! tables. `sdl.table` declares everything that a table can express. The formats are in
//! docs/sdl.md. This file knows regions of bytes and descriptors, no messages.

use super::descriptor::{Descriptor, NestedType, SimpleType, Variable};
use super::names::SdlNames;
use super::store::Store;
use crate::table::{Call, Cursor, Evaluator, Run, Slots, Stop};
use crate::tree::{
    Concern, Kind, Problem, ProblemText, Severity, Sym, TextKind, TypeRef, decode_text, mark,
};
use std::fmt;
use std::sync::Arc;

/// The note of a state with a list whose count has 8 bits only.
pub(super) const WRAPPED: &str =
    "a list of more than 255 records with a count of 8 bits; all of it is there";

/// The note of a state with a list whose count has as many bits as it needs.
pub(super) const WIDE: &str =
    "a list of more than 255 records with counts and places as libHSPlasma writes them";

/// Records within records.
const MAX_DEPTH: u32 = 24;

/// The first list of a record: variables with values. Its argument is the version of the descriptor
/// that was named before it.
pub(super) fn read_variables(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    call: &Call,
) -> Result<u64, Stop> {
    let Some(names) = SdlScratch::names(run) else {
        return Err(Stop::Unknown);
    };
    let Some(descriptor) = find_descriptor(run, cursor, names, call) else {
        return Ok(read_without_descriptor(run, cursor, names, call));
    };
    let mut reader = StateReader::new(run, names, SdlReading::default());
    let node = reader.run.open(cursor, call.name, call.ty, call.marks);
    let result = reader.read_simple_list(cursor, &descriptor);
    reader.run.tree.close(node, cursor.pos());
    if result.is_err() {
        report_misfit(run, cursor, node, &descriptor);
    }
    Ok(0)
}

/// The second list: variables with records. Several readings are possible in rare cases: the first
/// one that ends where the region ends is taken.
pub(super) fn read_nested(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    call: &Call,
) -> Result<u64, Stop> {
    let Some(names) = SdlScratch::names(run) else {
        return Err(Stop::Unknown);
    };
    let undecoded = run.tree.nodes().last().is_some_and(|node| node.kind == Kind::Undecoded);
    if undecoded {
        return Ok(0);
    }
    let Some(descriptor) = find_descriptor(run, cursor, names, call) else {
        return Ok(0);
    };
    let start = *cursor;
    let before = run.tree.checkpoint();
    let mut doubts = Doubts::default();
    for reading in all_readings() {
        if (reading.newest && !doubts.version)
            || (reading.long != LongList::Byte && !doubts.long_list)
        {
            continue;
        }
        let (result, met) = read_nested_as(run, cursor, names, call, &descriptor, reading);
        if result.is_ok() && cursor.left_bits() == 0 {
            note_long_list(run, before.node(), reading.long);
            return Ok(0);
        }
        doubts.version |= met.version;
        doubts.long_list |= met.long_list;
        run.tree.back_to(before);
        *cursor = start;
    }
    let (result, _) = read_nested_as(run, cursor, names, call, &descriptor, SdlReading::default());
    if result.is_err() {
        report_misfit(run, cursor, before.node(), &descriptor);
    }
    Ok(0)
}

fn note_long_list(run: &mut Run<'_>, node: u32, long: LongList) {
    let text = match long {
        LongList::Byte => return,
        LongList::Wrapped => WRAPPED,
        LongList::Wide => WIDE,
    };
    run.problem(Severity::Note, node, text, 0, 0);
}

fn read_nested_as(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    names: SdlNames,
    call: &Call,
    descriptor: &Descriptor,
    reading: SdlReading,
) -> (Result<(), Stop>, Doubts) {
    let mut reader = StateReader::new(run, names, reading);
    let node = reader.run.open(cursor, call.name, call.ty, call.marks);
    let result = reader.read_nested_list(cursor, descriptor);
    reader.run.tree.close(node, cursor.pos());
    (result, reader.doubts)
}

/// The class number that means a null object.
const NO_OBJECT: u64 = 0x8000;

/// An object of the class whose number precedes it, or `null`.
pub(super) fn read_creatable(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    call: &Call,
) -> Result<u64, Stop> {
    let Some(names) = SdlScratch::names(run) else {
        return Err(Stop::Unknown);
    };
    let node = run.open(cursor, call.name, call.ty, call.marks);
    let read = run.field(cursor, names.class, names.class_type, 0, Slots::default());
    let result = match read {
        Ok(NO_OBJECT) => {
            run.tree.cut(node + 1);
            if let Some(node) = run.tree.get_mut(node) {
                node.kind = Kind::Null;
            }
            Ok(NO_OBJECT)
        }
        Ok(class) => read_object(run, cursor, names, class),
        Err(stop) => Err(stop),
    };
    run.tree.close(node, cursor.pos());
    result
}

/// An object of the class `class`, in a region with its length before it.
fn read_object(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    names: SdlNames,
    class: u64,
) -> Result<u64, Stop> {
    let length =
        run.field(cursor, run.tables.count_name(), names.size32, mark::SPAN, Slots::default())?;
    let outer = cursor.narrow(usize::try_from(length).unwrap_or(usize::MAX))?;
    let tables = run.tables;
    let family = tables.families().iter().find(|family| family.name == "plCreatable");
    let member = family.and_then(|family| {
        let at = family.members.binary_search_by_key(&class, |member| member.0).ok()?;
        tables.layout(family.members.get(at)?.1)
    });
    match member {
        Some(layout) => {
            run.bounded(cursor, names.object, &[layout.ty], false, Slots::default());
        }
        None => leave_undecoded(run, cursor),
    }
    cursor.restore(outer);
    Ok(class)
}

/// The descriptor that a state names just before its record, from the store that the protocol put
/// beside the evaluator.
fn find_descriptor(
    run: &mut Run<'_>,
    cursor: &Cursor<'_>,
    names: SdlNames,
    call: &Call,
) -> Option<Arc<Descriptor>> {
    let version = u32::try_from(run.arg(call, 0, cursor)).ok()?;
    let name = find_descriptor_name(run, cursor, names)?;
    let found = find_store(run).find(&name, version).cloned();
    SdlScratch::put_buffer(run.state, name);
    found
}

fn find_store<'a>(run: &'a Run<'_>) -> &'a Store {
    let own = run.state.context.as_ref().and_then(|context| context.downcast_ref());
    own.unwrap_or_else(|| Store::engine())
}

fn find_descriptor_name(run: &mut Run<'_>, cursor: &Cursor<'_>, names: SdlNames) -> Option<String> {
    let mut name = SdlScratch::take_buffer(run.state);
    let mut nodes = run.tree.nodes().iter().rev();
    let node = nodes.find(|node| node.name == names.descriptor_name && !node.has(mark::SPAN))?;
    let Kind::Text(kind) = node.kind else {
        return None;
    };
    if kind == TextKind::Owned {
        name.push_str(run.tree.owned(node.value).raw());
        return Some(name);
    }
    let (at, len) = node.content();
    let mut back = *cursor;
    back.seek(at.checked_mul(8)?);
    decode_text(kind, back.peek(len).ok()??, &mut name);
    Some(name)
}

/// Reads a record whose descriptor is not known. The size of its counts depends on the number of
/// variables, which only the descriptor tells, so nothing can be decoded. The one exception is a
/// rest of two zero counts: both lists are empty.
fn read_without_descriptor(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    names: SdlNames,
    call: &Call,
) -> u64 {
    let size = match cursor.rest() {
        [0, 0] => Some(names.size8),
        [0, 0, 0, 0] => Some(names.size16),
        [0, 0, 0, 0, 0, 0, 0, 0] => Some(names.size32),
        _ => None,
    };
    let version = run.arg(call, 0, cursor);
    let descriptor = find_descriptor_name(run, cursor, names);
    let known = descriptor.as_ref().map(|name| find_store(run).versions_text(name));
    let known = known.unwrap_or_default();
    // Clients that know other versions of it do not take this one.
    let severity = if known.is_empty() { Severity::Note } else { Severity::Warning };
    let node = run.tree.len();
    if let Some(size) = size {
        for name in [call.name, names.nested] {
            let node = run.open(cursor, name, call.ty, call.marks);
            // Cannot fail: the rest was compared with two zeros above.
            let _ = run.field(cursor, run.tables.count_name(), size, mark::SPAN, Slots::default());
            run.tree.close(node, cursor.pos());
        }
    } else {
        leave_undecoded(run, cursor);
    }
    match descriptor {
        Some(name) => {
            if size.is_none() || !known.is_empty() {
                let text = format_args!(
                    "no state descriptor `{name}` of version {version} is known{known}"
                );
                add_concern(run, severity, Concern::UnknownVersion, node, text);
            }
            SdlScratch::put_buffer(run.state, name);
        }
        None if size.is_some() => {}
        None => {
            add_problem(run, Severity::Note, node, format_args!("no state descriptor is named"))
        }
    }
    0
}

/// Reports that the bytes do not match the descriptor. What was read stays in the tree, the rest
/// becomes undecoded.
fn report_misfit(run: &mut Run<'_>, cursor: &mut Cursor<'_>, node: u32, descriptor: &Descriptor) {
    leave_undecoded(run, cursor);
    let Descriptor { name, version, .. } = descriptor;
    add_problem(
        run,
        Severity::Warning,
        node,
        format_args!("not a record of `{name}`, version {version}, as its descriptor says"),
    );
}

fn leave_undecoded(run: &mut Run<'_>, cursor: &mut Cursor<'_>) {
    run.undecoded(cursor);
}

fn add_problem(run: &mut Run<'_>, severity: Severity, node: u32, text: fmt::Arguments<'_>) {
    add_concern(run, severity, Concern::None, node, text);
}

fn add_concern(
    run: &mut Run<'_>,
    severity: Severity,
    concern: Concern,
    node: u32,
    text: fmt::Arguments<'_>,
) {
    let text = ProblemText::Owned(run.tree.own_format(text));
    run.tree.problem(Problem { severity, node, text, a: 0, b: 0, bytes: None, concern });
}

/// What reading a record needs besides the bytes.
struct StateReader<'r, 'a> {
    run: &'r mut Run<'a>,
    names: SdlNames,
    reading: SdlReading,
    doubts: Doubts,
    depth: u32,
}

impl<'r, 'a> StateReader<'r, 'a> {
    fn new(run: &'r mut Run<'a>, names: SdlNames, reading: SdlReading) -> Self {
        StateReader { run, names, reading, doubts: Doubts::default(), depth: 0 }
    }

    fn field(
        &mut self,
        cursor: &mut Cursor<'_>,
        name: Sym,
        ty: TypeRef,
        marks: u8,
    ) -> Result<u64, Stop> {
        let start = cursor.pos();
        let node = self.run.tree.len();
        if node >= self.run.state.limits.nodes {
            return Err(Stop::Limit);
        }
        let result = self.run.field(cursor, name, ty, marks, Slots::default());
        if result.is_err() && self.run.tree.len() == node {
            cursor.seek(start);
        }
        result
    }

    /// A count or an index, in as many bytes as its largest possible value needs.
    fn read_sized(
        &mut self,
        cursor: &mut Cursor<'_>,
        name: Sym,
        largest: usize,
    ) -> Result<usize, Stop> {
        let ty = self.names.sized(largest);
        self.field(cursor, name, ty, mark::SPAN).map(|n| usize::try_from(n).unwrap_or(usize::MAX))
    }

    fn read_simple_list(
        &mut self,
        cursor: &mut Cursor<'_>,
        descriptor: &Descriptor,
    ) -> Result<(), Stop> {
        let largest = descriptor.variables().len();
        let count = self.read_sized(cursor, self.run.tables.count_name(), largest)?;
        let largest = (count != descriptor.simple_count()).then_some(largest);
        for number in 0..count {
            let start = cursor.pos();
            let node = self.run.open(cursor, Sym::ELEMENT, self.names.simple, 0);
            let place = self.read_place(cursor, largest, number).unwrap_or(usize::MAX);
            let Some((variable, simple)) = descriptor.simple(place) else {
                return self.undo_place(cursor, node, start);
            };
            self.set_name(node, variable);
            let result = self.read_simple(cursor, variable, simple);
            self.run.tree.close(node, cursor.pos());
            result?;
        }
        Ok(())
    }

    fn read_nested_list(
        &mut self,
        cursor: &mut Cursor<'_>,
        descriptor: &Descriptor,
    ) -> Result<(), Stop> {
        let largest = descriptor.variables().len();
        let count = self.read_sized(cursor, self.run.tables.count_name(), largest)?;
        let largest = (count != descriptor.nested_count()).then_some(largest);
        for number in 0..count {
            let start = cursor.pos();
            let node = self.run.open(cursor, Sym::ELEMENT, self.names.nested_type, 0);
            let place = self.read_place(cursor, largest, number).unwrap_or(usize::MAX);
            let Some((variable, of)) = descriptor.nested(place) else {
                return self.undo_place(cursor, node, start);
            };
            self.set_name(node, variable);
            let result = self.read_nested(cursor, variable, of);
            self.run.tree.close(node, cursor.pos());
            result?;
        }
        Ok(())
    }

    /// A variable's index in the descriptor. It precedes the variable on the wire, unless all
    /// variables are present: then it is `number`.
    fn read_place(
        &mut self,
        cursor: &mut Cursor<'_>,
        largest: Option<usize>,
        number: usize,
    ) -> Result<usize, Stop> {
        match largest {
            Some(largest) => self.read_sized(cursor, self.names.index, largest),
            None => Ok(number),
        }
    }

    /// The descriptor has no variable at that index, or the region ends before it: undoes the
    /// reading of it.
    fn undo_place(&mut self, cursor: &mut Cursor<'_>, node: u32, start: usize) -> Result<(), Stop> {
        self.run.tree.cut(node);
        cursor.seek(start);
        Err(Stop::Bad)
    }

    fn set_name(&mut self, node: u32, variable: &Variable) {
        let name = self.run.tree.dynamic_name(&variable.name);
        if let Some(node) = self.run.tree.get_mut(node) {
            node.name = name;
        }
    }

    /// The flags at the start of every variable, and the hint that they may announce.
    fn read_header(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Stop> {
        let flags = self.field(cursor, self.names.save_flags, self.names.var_flags, 0)?;
        if flags & 2 != 0 {
            self.field(cursor, self.names.notification_info, self.names.notification, 0)?;
        }
        Ok(())
    }

    fn read_simple(
        &mut self,
        cursor: &mut Cursor<'_>,
        variable: &Variable,
        simple: SimpleType,
    ) -> Result<(), Stop> {
        self.read_header(cursor)?;
        let flags = self.field(cursor, self.names.save_flags2, self.names.var_flags, 0)?;
        if flags & 4 != 0 {
            self.field(cursor, self.names.time_stamp, self.names.time, 0)?;
        }
        if flags & 8 != 0 {
            return Ok(());
        }
        let ty = self.names.of_type(simple);
        match (variable.count, ty) {
            (Some(1), Some(ty)) => {
                self.field(cursor, self.run.tables.value_name(), ty, 0).map(|_| ())
            }
            (count, ty) => self.read_values(cursor, count, ty),
        }
    }

    /// A list of values. Those that are never on the wire are only counted.
    fn read_values(
        &mut self,
        cursor: &mut Cursor<'_>,
        count: Option<u32>,
        ty: Option<TypeRef>,
    ) -> Result<(), Stop> {
        let count = match count {
            Some(count) => u64::from(count),
            None => {
                self.field(cursor, self.run.tables.count_name(), self.names.size32, mark::SPAN)?
            }
        };
        let Some(ty) = ty else { return Ok(()) };
        let list = self.open_list(cursor, self.run.tables.value_name());
        let result =
            (0..count).try_for_each(|_| self.field(cursor, Sym::ELEMENT, ty, 0).map(|_| ()));
        self.run.tree.close(list, cursor.pos());
        result
    }

    fn open_list(&mut self, cursor: &Cursor<'_>, name: Sym) -> u32 {
        let node = self.run.open(cursor, name, self.names.records_type, 0);
        if let Some(node) = self.run.tree.get_mut(node) {
            node.kind = Kind::List;
        }
        node
    }

    fn read_nested(
        &mut self,
        cursor: &mut Cursor<'_>,
        variable: &Variable,
        of: &NestedType,
    ) -> Result<(), Stop> {
        self.read_header(cursor)?;
        self.field(cursor, self.names.save_flags2, self.names.var_flags, 0)?;
        let total = match variable.count {
            Some(count) => count as usize,
            None => {
                let total = self.field(cursor, self.names.total, self.names.size32, 0)?;
                usize::try_from(total).unwrap_or(usize::MAX)
            }
        };
        let largest = match (variable.count, self.reading.long) {
            (Some(count), _) => count as usize,
            (None, LongList::Wide) => total,
            // In a list of variable length, counts and indices have 8 bits, even if the list has
            // more than 255 elements.
            (None, _) => 0,
        };
        let mut count = self.read_sized(cursor, self.run.tables.count_name(), largest)?;
        if variable.count.is_none() && total > 0xff {
            self.doubts.long_list = true;
            if self.reading.long == LongList::Wrapped && total & 0xff == count {
                count = total;
            }
        }
        let list = self.open_list(cursor, self.names.records);
        let result = self.read_records(cursor, of, count, (count != total).then_some(largest));
        self.run.tree.close(list, cursor.pos());
        result
    }

    fn read_records(
        &mut self,
        cursor: &mut Cursor<'_>,
        of: &NestedType,
        count: usize,
        largest: Option<usize>,
    ) -> Result<(), Stop> {
        if count == 0 {
            return Ok(());
        }
        let store = find_store(self.run);
        let seen = store.nested(of, false).cloned();
        let newest = store.nested(of, true).cloned();
        self.doubts.version |= seen != newest;
        let chosen = if self.reading.newest { newest } else { seen.or(newest) };
        let Some(descriptor) = chosen else {
            let node = self.run.tree.len().saturating_sub(1);
            add_problem(
                self.run,
                Severity::Note,
                node,
                format_args!("no state descriptor `{}` is known", of.name),
            );
            return Err(Stop::Unknown);
        };
        for _ in 0..count {
            self.read_record(cursor, &descriptor, largest)?;
        }
        Ok(())
    }

    /// An element of a list: a record without a stream header.
    fn read_record(
        &mut self,
        cursor: &mut Cursor<'_>,
        descriptor: &Descriptor,
        largest: Option<usize>,
    ) -> Result<(), Stop> {
        if self.depth >= MAX_DEPTH {
            return Err(Stop::Limit);
        }
        self.depth = self.depth.saturating_add(1);
        let node = self.run.open(cursor, Sym::ELEMENT, self.names.record, 0);
        let result = self.read_record_parts(cursor, descriptor, largest);
        self.run.tree.close(node, cursor.pos());
        self.depth = self.depth.saturating_sub(1);
        result
    }

    fn read_record_parts(
        &mut self,
        cursor: &mut Cursor<'_>,
        descriptor: &Descriptor,
        largest: Option<usize>,
    ) -> Result<(), Stop> {
        if let Some(largest) = largest {
            let ty = self.names.sized(largest);
            self.field(cursor, self.names.index, ty, 0)?;
        }
        self.field(cursor, self.names.flags, self.names.record_flags, 0)?;
        let version = self.field(cursor, self.names.io_version, self.names.size8, 0)?;
        if version != 6 {
            return Err(Stop::Bad);
        }
        let node = self.run.open(cursor, self.names.variables, self.names.lists, 0);
        let result = self.read_simple_list(cursor, descriptor);
        self.run.tree.close(node, cursor.pos());
        result?;
        let node = self.run.open(cursor, self.names.nested, self.names.lists, 0);
        let result = self.read_nested_list(cursor, descriptor);
        self.run.tree.close(node, cursor.pos());
        result
    }
}

/// One way to read a record. Which way is right is decided by what fits the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SdlReading {
    /// Nested records have the newest version of all, not the newest version that precedes them in
    /// their file.
    newest: bool,
    /// How lists of more than 255 records are counted.
    long: LongList,
}

/// How a list that may have more than 255 records writes its count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LongList {
    /// In 8 bits, with an 8-bit index before each record, as clients read it.
    #[default]
    Byte,
    /// In 8 bits, modulo 256, followed by all records without an index, as clients write it.
    Wrapped,
    /// In as many bits as the length of the list needs, as are the indices. libHSPlasma writes
    /// this.
    Wide,
}

/// A reason to try a second way of reading.
#[derive(Clone, Copy, Debug, Default)]
struct Doubts {
    /// The newest version of a nested descriptor differs from the newest one before it in the file.
    version: bool,
    /// A list may have more than 255 records.
    long_list: bool,
}

/// All ways of reading, the usual one first.
fn all_readings() -> impl Iterator<Item = SdlReading> {
    [LongList::Byte, LongList::Wrapped, LongList::Wide]
        .into_iter()
        .flat_map(|long| [false, true].map(|newest| SdlReading { newest, long }))
}

/// What is kept beside an evaluator.
#[derive(Default)]
struct SdlScratch {
    /// The names of the tables that ran last, and the address of these tables.
    names: Option<(usize, SdlNames)>,
    /// A buffer for the descriptor name in a state.
    name: String,
}

impl SdlScratch {
    fn of(evaluator: &mut Evaluator) -> Option<&mut SdlScratch> {
        evaluator.scratch.get_or_insert_with(|| Box::new(SdlScratch::default())).downcast_mut()
    }

    /// The names in the tables of this run. `None` if the tables have no `sdl.table`. They are
    /// looked up once.
    fn names(run: &mut Run<'_>) -> Option<SdlNames> {
        let tables = run.tables;
        let here = std::ptr::from_ref(tables).addr();
        let scratch = SdlScratch::of(run.state)?;
        match scratch.names {
            Some((of, names)) if of == here => Some(names),
            _ => {
                let names = SdlNames::look_up(tables)?;
                scratch.names = Some((here, names));
                Some(names)
            }
        }
    }

    /// Takes the buffer, which is empty.
    fn take_buffer(evaluator: &mut Evaluator) -> String {
        let mut name = SdlScratch::of(evaluator)
            .map(|scratch| std::mem::take(&mut scratch.name))
            .unwrap_or_default();
        name.clear();
        name
    }

    /// Gives the buffer back.
    fn put_buffer(evaluator: &mut Evaluator, name: String) {
        if let Some(scratch) = SdlScratch::of(evaluator) {
            scratch.name = name;
        }
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
