//! The steps of layouts. There are thousands and all are unpacked at a start, so those that read a field, which most do, have a form of fixed size.

use super::super::program::{LayoutStep, TypeOp};
use super::{Packed, ProgramPacker, ProgramUnpacker};
use crate::tree::{Sym, TypeRef};

/// A step in 16 bytes: 1 if it reads a field and otherwise 0, its marks, slot, name, type and run.
type StepBytes = [u8; 16];

/// Appends all steps: first each in 16 bytes, then those that do not read a field in the general form.
pub(super) fn pack(steps: &[LayoutStep], out: &mut ProgramPacker) {
    steps.len().pack(out);
    out.bytes.extend(steps.iter().flat_map(field_bytes));
    steps.iter().filter(|step| !matches!(step, LayoutStep::Field { .. })).for_each(|step| step.pack(out));
}

/// The opposite of [`pack`]. The types in short are those of the steps' types.
pub(super) fn unpack(from: &mut ProgramUnpacker, type_ops: &[TypeOp]) -> Option<Vec<LayoutStep>> {
    let bytes = from.length()?.checked_mul(size_of::<StepBytes>())?;
    let all: &[StepBytes] = from.rest.bytes(bytes)?.as_chunks().0;
    let mut steps = Vec::with_capacity(all.len());
    for bytes in all {
        steps.push(match field(*bytes, type_ops) {
            Some(step) => step,
            None => LayoutStep::unpack(from)?,
        });
    }
    Some(steps)
}

fn field_bytes(step: &LayoutStep) -> StepBytes {
    let LayoutStep::Field { name: Sym(name), ty: TypeRef(ty), slot, marks, fixed, op: _ } = step else {
        return [0; 16];
    };
    let ([a, b], [c, d, e, f]) = (slot.to_le_bytes(), name.to_le_bytes());
    let ([g, h, i, j], [k, l, m, n]) = (ty.to_le_bytes(), fixed.to_le_bytes());
    [1, *marks, a, b, c, d, e, f, g, h, i, j, k, l, m, n]
}

#[inline]
fn field([is_field, marks, a, b, c, d, e, f, g, h, i, j, k, l, m, n]: StepBytes, ops: &[TypeOp]) -> Option<LayoutStep> {
    let (slot, name) = (u16::from_le_bytes([a, b]), Sym(u32::from_le_bytes([c, d, e, f])));
    let (ty, fixed) = (u32::from_le_bytes([g, h, i, j]), u32::from_le_bytes([k, l, m, n]));
    let op = ops.get(ty as usize).copied().unwrap_or(TypeOp::NONE);
    (is_field == 1).then_some(LayoutStep::Field { name, ty: TypeRef(ty), slot, marks, op, fixed })
}
