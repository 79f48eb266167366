//! Layouts and their steps. There are thousands and all are unpacked at a start, so layouts have a
//! form of fixed size, and so have most steps: those that read a field or end a layout.

use super::super::program::{InfoId, Layout, LayoutStep, Positions, TypeOp};
use super::{Packed, ProgramPacker, ProgramUnpacker};
use crate::tree::{Sym, TypeRef};

/// Numbers of four bytes, least significant first.
type Words<const N: usize> = [[u8; 4]; N];

/// Appends all layouts.
pub(super) fn pack_layouts(layouts: &[Layout], out: &mut ProgramPacker) {
    layouts.len().pack(out);
    out.bytes.extend(layouts.iter().flat_map(layout_words).flatten());
}

/// The opposite of [`pack_layouts`].
pub(super) fn unpack_layouts(from: &mut ProgramUnpacker) -> Option<Vec<Layout>> {
    Some(words(from)?.iter().map(layout).collect())
}

/// Appends all steps: first each in 16 bytes, then those that need more in the general form.
pub(super) fn pack(steps: &[LayoutStep], out: &mut ProgramPacker) {
    steps.len().pack(out);
    out.bytes.extend(steps.iter().flat_map(step_words).flatten());
    let rare =
        steps.iter().filter(|step| !matches!(step, LayoutStep::Field { .. } | LayoutStep::End));
    rare.for_each(|step| step.pack(out));
}

/// The opposite of [`pack`]. The types in short are those of the steps' types.
pub(super) fn unpack(from: &mut ProgramUnpacker, type_ops: &[TypeOp]) -> Option<Vec<LayoutStep>> {
    let all = words(from)?;
    let mut steps: Vec<LayoutStep> = all.iter().map(|words| step(words, type_ops)).collect();
    for (step, [[sort, ..], ..]) in steps.iter_mut().zip(all) {
        if *sort == RARE {
            *step = LayoutStep::unpack(from)?;
        }
    }
    Some(steps)
}

/// The elements of a list, each of `N` numbers.
fn words<const N: usize>(from: &mut ProgramUnpacker) -> Option<&'static [Words<N>]> {
    let bytes = from.length()?.checked_mul(size_of::<Words<N>>())?;
    Some(from.rest.bytes(bytes)?.as_chunks().0.as_chunks().0)
}

fn layout_words(layout: &Layout) -> Words<9> {
    let Layout {
        name: Sym(name),
        ty: TypeRef(ty),
        start,
        slots,
        params,
        positions,
        min_bits,
        info,
        carries,
    } = layout;
    let both = |low: u16, high: u16| u32::from(low) | u32::from(high) << 16;
    let named = positions.map_or(0, |positions| both(positions.count, positions.required));
    let place = |info: &Option<InfoId>| info.map_or(0, |info| info.0 + 1);
    let (info, carries) = (place(info), place(carries));
    let has_positions = positions.is_some().into();
    [*name, *ty, *start, both(*slots, *params), has_positions, named, *min_bits, info, carries]
        .map(u32::to_le_bytes)
}

fn layout(words: &Words<9>) -> Layout {
    let [name, ty, start, kept, has_positions, named, min_bits, info, carries] = *words;
    let both = |[a, b, c, d]: [u8; 4]| (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
    let ((slots, params), (count, required)) = (both(kept), both(named));
    let place = |place: [u8; 4]| u32::from_le_bytes(place).checked_sub(1).map(InfoId);
    Layout {
        name: Sym(u32::from_le_bytes(name)),
        ty: TypeRef(u32::from_le_bytes(ty)),
        start: u32::from_le_bytes(start),
        slots,
        params,
        positions: (has_positions != [0; 4]).then_some(Positions { count, required }),
        min_bits: u32::from_le_bytes(min_bits),
        info: place(info),
        carries: place(carries),
    }
}

/// The first byte of a step's form of fixed size.
const FIELD: u8 = 1;
const END: u8 = 2;
/// A step in the general form. The other bytes are zeros.
const RARE: u8 = 0;

/// What sort of step it is; and of a field the marks and the slot, the name and the type.
fn step_words(step: &LayoutStep) -> Words<3> {
    match step {
        LayoutStep::Field { name: Sym(name), ty: TypeRef(ty), slot, marks, op: _ } => {
            let [low, high] = slot.to_le_bytes();
            [[FIELD, *marks, low, high], name.to_le_bytes(), ty.to_le_bytes()]
        }
        LayoutStep::End => [[END, 0, 0, 0], [0; 4], [0; 4]],
        _ => [[RARE, 0, 0, 0], [0; 4], [0; 4]],
    }
}

/// A field; or the end, also in the place of a rare step.
#[inline]
fn step([[sort, marks, low, high], name, ty]: &Words<3>, ops: &[TypeOp]) -> LayoutStep {
    if *sort != FIELD {
        return LayoutStep::End;
    }
    let ty = u32::from_le_bytes(*ty);
    LayoutStep::Field {
        marks: *marks,
        slot: u16::from_le_bytes([*low, *high]),
        name: Sym(u32::from_le_bytes(*name)),
        ty: TypeRef(ty),
        op: ops.get(ty as usize).copied().unwrap_or(TypeOp::NONE),
    }
}
