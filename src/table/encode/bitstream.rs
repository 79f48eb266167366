//! Writers for the types of OuroDev's bit streams: the inverse of `eval/bitstream.rs`.

use super::{Encoding, Field, Given, JsonKind, Slot, Stop};
use crate::tree::TextKind;

/// A number without a sign.
fn number(encoding: &mut Encoding<'_>, field: &Field) -> Result<u64, Stop> {
    let value = encoding.number(field)?;
    match u64::try_from(value) {
        Ok(value) => Ok(value),
        Err(_) => does_not_fit(encoding, field, value),
    }
}

fn does_not_fit<T>(
    encoding: &Encoding<'_>,
    field: &Field,
    value: impl std::fmt::Display,
) -> Result<T, Stop> {
    let ty = encoding.type_text(field.ty);
    encoding.fail_at(field, format!("{value} does not fit {ty}"))
}

fn put(encoding: &mut Encoding<'_>, field: &Field, value: u64, width: u32) -> Result<Slot, Stop> {
    if width < 64 && value >> width != 0 {
        return does_not_fit(encoding, field, value);
    }
    encoding.out().put_bits(value, width);
    Ok(Slot::Number(value))
}

fn width(encoding: &Encoding<'_>, field: &Field) -> u32 {
    encoding.arg(field, 0).min(64) as u32
}

pub(in crate::table) fn write_bits(
    encoding: &mut Encoding<'_>,
    field: &Field,
) -> Result<Slot, Stop> {
    let value = number(encoding, field)?;
    let width = width(encoding, field);
    put(encoding, field, value, width)
}

/// A bit says whether the number follows; without it, it is 0.
pub(in crate::table) fn write_maybe_bits(
    encoding: &mut Encoding<'_>,
    field: &Field,
) -> Result<Slot, Stop> {
    let value = number(encoding, field)?;
    let width = width(encoding, field);
    encoding.out().put_bits(u64::from(value != 0), 1);
    if value != 0 { put(encoding, field, value, width) } else { Ok(Slot::Number(0)) }
}

fn put_autobits(encoding: &mut Encoding<'_>, field: &Field, value: u64) -> Result<(), Stop> {
    let widths = [2u32, 10, 24, 32];
    let fits = widths.iter().position(|width| value >> width == 0);
    let Some((power, width)) = fits.and_then(|at| Some((at, *widths.get(at)?))) else {
        return does_not_fit(encoding, field, value);
    };
    encoding.out().put_bits(power as u64, 2);
    encoding.out().put_bits(value, width);
    Ok(())
}

pub(in crate::table) fn write_autobits(
    encoding: &mut Encoding<'_>,
    field: &Field,
) -> Result<Slot, Stop> {
    let value = number(encoding, field)?;
    put_autobits(encoding, field, value)?;
    Ok(Slot::Number(value))
}

pub(in crate::table) fn write_autobits2(
    encoding: &mut Encoding<'_>,
    field: &Field,
) -> Result<Slot, Stop> {
    let value = number(encoding, field)?;
    put_autobits(encoding, field, value & 0xffff_ffff)?;
    put_autobits(encoding, field, value >> 32)?;
    Ok(Slot::Number(value))
}

pub(in crate::table) fn write_alignedbits(
    encoding: &mut Encoding<'_>,
    field: &Field,
) -> Result<Slot, Stop> {
    let Given::Json(node) = field.given else { return encoding.fail_at(field, "is missing") };
    encoding.take(node);
    let bytes = encoding.hex(node)?;
    let wanted = encoding.arg(field, 0).div_ceil(8);
    if bytes.len() as u64 != wanted {
        let n = bytes.len();
        return encoding.fail(node, format!("{n} bytes, where {wanted} are expected"));
    }
    encoding.out().align();
    encoding.out().put(&bytes);
    Ok(Slot::Number(0))
}

fn put_packint(encoding: &mut Encoding<'_>, field: &Field, value: u64) -> Result<Slot, Stop> {
    if value > u64::from(u32::MAX) {
        return does_not_fit(encoding, field, value);
    }
    let mut width = encoding.arg(field, 0).clamp(1, 32) as u32;
    let mut left = value;
    loop {
        let full = (1u64 << width) - 1;
        if left < full || width == 32 {
            encoding.out().put_bits(left, width);
            return Ok(Slot::Number(value));
        }
        encoding.out().put_bits(full, width);
        left -= full;
        width = (width * 2).min(32);
    }
}

pub(in crate::table) fn write_packint(
    encoding: &mut Encoding<'_>,
    field: &Field,
) -> Result<Slot, Stop> {
    let value = number(encoding, field)?;
    put_packint(encoding, field, value)
}

pub(in crate::table) fn write_maybe_packint(
    encoding: &mut Encoding<'_>,
    field: &Field,
) -> Result<Slot, Stop> {
    let value = number(encoding, field)?;
    encoding.out().put_bits(u64::from(value != 0), 1);
    if value != 0 { put_packint(encoding, field, value) } else { Ok(Slot::Number(0)) }
}

pub(in crate::table) fn write_string(
    encoding: &mut Encoding<'_>,
    field: &Field,
) -> Result<Slot, Stop> {
    let bytes = encoding.text_bytes(field, &[TextKind::Latin1])?;
    if bytes.contains(&0) {
        return encoding.fail_at(field, "has a zero, where a text of this type ends");
    }
    encoding.out().put(&bytes);
    encoding.out().put(&[0]);
    Ok(Slot::Number(1))
}

/// Whether a value is there. Writes the bit that says so.
fn put_presence(encoding: &mut Encoding<'_>, field: &Field) -> bool {
    let null = match field.given {
        Given::Json(node) if encoding.json.kind(node) == JsonKind::Null => {
            encoding.take(node);
            true
        }
        _ => false,
    };
    encoding.out().put_bits(u64::from(!null), 1);
    !null
}

pub(in crate::table) fn write_maybe_string(
    encoding: &mut Encoding<'_>,
    field: &Field,
) -> Result<Slot, Stop> {
    if put_presence(encoding, field) { write_string(encoding, field) } else { Ok(Slot::Number(0)) }
}

pub(in crate::table) fn write_alignedstring(
    encoding: &mut Encoding<'_>,
    field: &Field,
) -> Result<Slot, Stop> {
    encoding.out().align();
    write_string(encoding, field).map(|_| Slot::Number(0))
}

/// The index in an object `{ index }`.
fn put_index(encoding: &mut Encoding<'_>, field: &Field) -> Result<Slot, Stop> {
    let object = encoding.object(field)?;
    let Some(node) = encoding.lookup(object, "index") else {
        return encoding.fail(object, "has no index");
    };
    let of = Field { given: Given::Json(node), object, ..*field };
    let value = number(encoding, &of)?;
    let width = width(encoding, field).min(32);
    put(encoding, &of, value, width)
}

fn is_object(encoding: &Encoding<'_>, field: &Field) -> bool {
    matches!(field.given, Given::Json(node) if encoding.json.kind(node) == JsonKind::Object)
}

pub(in crate::table) fn write_indexstring(
    encoding: &mut Encoding<'_>,
    field: &Field,
) -> Result<Slot, Stop> {
    if !put_presence(encoding, field) {
        return Ok(Slot::Number(0));
    }
    let in_table = is_object(encoding, field);
    encoding.out().put_bits(u64::from(in_table), 1);
    if in_table { put_index(encoding, field) } else { write_string(encoding, field) }
}

pub(in crate::table) fn write_indexgeneric(
    encoding: &mut Encoding<'_>,
    field: &Field,
) -> Result<Slot, Stop> {
    let in_table = is_object(encoding, field);
    encoding.out().put_bits(u64::from(in_table), 1);
    if in_table {
        return put_index(encoding, field);
    }
    let value = number(encoding, field)?;
    put(encoding, field, value, 32)
}

pub(in crate::table) fn write_float32(
    encoding: &mut Encoding<'_>,
    field: &Field,
) -> Result<Slot, Stop> {
    let bits = float_bits(encoding, field)?;
    put(encoding, field, bits, 32)
}

pub(in crate::table) fn write_maybe_float32(
    encoding: &mut Encoding<'_>,
    field: &Field,
) -> Result<Slot, Stop> {
    let bits = float_bits(encoding, field)?;
    encoding.out().put_bits(u64::from(bits != 0), 1);
    if bits != 0 { put(encoding, field, bits, 32) } else { Ok(Slot::Number(0)) }
}

fn float_bits(encoding: &mut Encoding<'_>, field: &Field) -> Result<u64, Stop> {
    let Given::Json(node) = field.given else { return encoding.fail_at(field, "is missing") };
    encoding.float32(field, node).map(u64::from)
}
