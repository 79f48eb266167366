//! Types of the link's tables that need code, beside those of bit streams: acknowledgements,
//! padding, and values that are not on the wire.

use std::sync::LazyLock;

use crate::table::{
    BITSTREAM, Call, Cursor, EncodeStop, Encoding, Field, Given, JsonKind, Native, Run, Slot,
    Slots, Stop,
};
use crate::tree::{Kind, Severity, Sym, TypeRef, mark};

/// All of them, by the name tables use.
pub static NATIVES: LazyLock<Vec<Native>> = LazyLock::new(|| {
    let own: [Native; 3] = [
        Native::new("acks", acks).written_by(write_acks),
        Native::new("align", align).written_by(write_align),
        Native::new("given", given).written_by(write_given),
    ];
    BITSTREAM.into_iter().chain(own).collect()
});

/// A list of sequence numbers: their count, the first one, and for each further one its difference
/// to the one before, less 1.
fn acks(run: &mut Run<'_>, cursor: &mut Cursor<'_>, call: &Call) -> Result<u64, Stop> {
    let ty = |name: &str| run.tables.type_named(name).ok_or(Stop::Unknown);
    let count = ty("AckCount")?;
    let first = ty("FirstAck")?;
    let next = ty("NextAck")?;
    let name = run.tables.count_name();
    let count = run.field(cursor, name, count, mark::SPAN, Slots::default())?;
    let list = run.open(cursor, call.name, call.ty, call.marks);
    if let Some(node) = run.tree.get_mut(list) {
        node.kind = Kind::List;
    }
    let result = ack_list(run, cursor, count, AckTypes { first, next });
    run.tree.close(list, cursor.pos());
    result
}

/// The types of the list's numbers.
#[derive(Clone, Copy)]
struct AckTypes {
    first: TypeRef,
    next: TypeRef,
}

fn ack_list(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    count: u64,
    types: AckTypes,
) -> Result<u64, Stop> {
    let mut before = 0u32;
    for i in 0..count {
        let ty = if i == 0 { types.first } else { types.next };
        let value = run.field(cursor, Sym::ELEMENT, ty, 0, Slots::default())? as u32;
        before = if i == 0 { value } else { before.wrapping_add(value).wrapping_add(1) };
        let node = run.tree.len().saturating_sub(1);
        if let Some(node) = run.tree.get_mut(node) {
            node.value = u64::from(before);
        }
    }
    Ok(count)
}

/// Zero bits up to the next byte's start. Adds no node if there are none.
fn align(run: &mut Run<'_>, cursor: &mut Cursor<'_>, call: &Call) -> Result<u64, Stop> {
    let start = cursor.pos();
    let pad = start.next_multiple_of(8) - start;
    if pad == 0 {
        return Ok(0);
    }
    let value = cursor.bits(pad as u32)?;
    let node = run.tree.leaf(call.node(cursor, start, Kind::Unsigned, value));
    if value != 0 {
        run.problem(Severity::Note, node, "padding that is not zero: {a}", value as i64, 0);
    }
    Ok(value)
}

/// A number that follows from others and is not on the wire.
fn given(run: &mut Run<'_>, cursor: &mut Cursor<'_>, call: &Call) -> Result<u64, Stop> {
    let value = run.arg(call, 0, cursor);
    run.tree.leaf(call.node(cursor, cursor.pos(), Kind::Unsigned, value));
    Ok(value)
}

fn write_acks(encoding: &mut Encoding<'_>, field: &Field) -> Result<Slot, EncodeStop> {
    let Given::Json(list) = field.given else { return encoding.fail_at(field, "is missing") };
    if encoding.json.kind(list) != JsonKind::List {
        return encoding.fail(list, "is no list");
    }
    let tables = encoding.tables;
    let ty = |name: &str| tables.type_named(name);
    let (Some(count), Some(first), Some(next)) = (ty("AckCount"), ty("FirstAck"), ty("NextAck"))
    else {
        return encoding.fail(list, "cannot be encoded: the tables have no acknowledgements");
    };
    encoding.enter(list);
    let nodes: Vec<u32> = encoding.json.children(list).collect();
    encoding.put_number(&Field { ty: count, ..*field }, nodes.len() as i128)?;
    let mut before: Option<u32> = None;
    for node in nodes {
        let of = Field { given: Given::Json(node), ty: first, ..*field };
        let number = encoding.number(&of)?;
        let Ok(number) = u32::try_from(number) else {
            return encoding.fail(node, format!("{number} does not fit 32 bits"));
        };
        let (ty, value) = match before {
            None => (first, number),
            Some(before) => (next, number.wrapping_sub(before).wrapping_sub(1)),
        };
        encoding.put_number(&Field { ty, ..of }, i128::from(value))?;
        before = Some(number);
    }
    Ok(Slot::Number(0))
}

/// Zero bits up to the next byte, or those that a span has.
fn write_align(encoding: &mut Encoding<'_>, field: &Field) -> Result<Slot, EncodeStop> {
    let value = match field.given {
        Given::Nothing => 0,
        _ => encoding.number(field)?,
    };
    let pad = encoding.pos().next_multiple_of(8) - encoding.pos();
    encoding.out().put_bits(value as u64, pad as u32);
    Ok(Slot::Number(value as u64))
}

/// Not written: it follows from others.
fn write_given(encoding: &mut Encoding<'_>, field: &Field) -> Result<Slot, EncodeStop> {
    if let Given::Json(node) = field.given {
        encoding.take(node);
    }
    Ok(Slot::Number(encoding.arg(field, 0)))
}
