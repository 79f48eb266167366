//! Computes the minimum size of types and layouts in bits, so that a count which asks for more than
//! the message can hold is found at once.

use super::super::program::*;
use crate::tree::{TextKind, TypeRef};

/// Computes the minimum bits of each type and layout. Types may refer to each other in circles, so
/// it repeats until nothing grows, a bounded number of times.
pub(super) fn fill(p: &mut Program) {
    for _ in 0..8 {
        let mut grown = false;
        for i in 0..p.types.len() {
            let Some(def) = p.types.get(i) else { continue };
            let bits = minimum(p, &def.read).min(1 << 24);
            grown |= bits > def.min_bits;
            if let Some(def) = p.types.get_mut(i) {
                def.min_bits = bits;
            }
        }
        for i in 0..p.layouts.len() {
            let bits = p.layouts.get(i).map_or(0, |l| layout_minimum(p, l)).min(1 << 24);
            if let Some(layout) = p.layouts.get_mut(i) {
                grown |= bits > layout.min_bits;
                layout.min_bits = bits;
            }
        }
        if !grown {
            return;
        }
    }
}

fn layout_minimum(p: &Program, layout: &Layout) -> u32 {
    let steps = p.steps.get(layout.start as usize..).unwrap_or(&[]);
    let mut bits = 0u32;
    for op in steps {
        match op {
            LayoutStep::Field { ty, .. } => {
                bits = bits.saturating_add(p.types.get(ty.0 as usize).map_or(0, |t| t.min_bits))
            }
            LayoutStep::Say { .. }
            | LayoutStep::Partial
            | LayoutStep::Last
            | LayoutStep::Word { .. }
            | LayoutStep::Remember { .. }
            | LayoutStep::Set { .. }
            | LayoutStep::Checksum { .. } => {}
            // The steps behind a choice are left out: they would rarely change the result.
            _ => return bits,
        }
    }
    bits
}

fn minimum(p: &Program, read: &ReadAs) -> u32 {
    let of = |ty: &TypeRef| p.types.get(ty.0 as usize).map_or(0, |t| t.min_bits);
    let len = |len: &Len, unit: u32| match len.from {
        LenFrom::Const(n) => n.saturating_mul(if len.bytes { 8 } else { unit }),
        LenFrom::Inline(ty) => of(&ty),
        LenFrom::Zero => unit,
        LenFrom::Expr(_)
        | LenFrom::Rest
        | LenFrom::Until(_)
        | LenFrom::To(_)
        | LenFrom::Blanks
        | LenFrom::Last => 0,
    };
    match read {
        ReadAs::Int { size, .. } | ReadAs::Float { size, .. } => u32::from(*size) * 8,
        ReadAs::Bool => 8,
        ReadAs::Uuid { .. } => 128,
        ReadAs::Ipv4 { .. } => 32,
        ReadAs::Bytes(l) | ReadAs::Region(RegionType { len: l, .. }) => len(l, 8),
        ReadAs::Text { kind: TextKind::Utf16 | TextKind::Inverted16, len: l, .. } => len(l, 16),
        ReadAs::Text { len: l, .. } | ReadAs::Digits { len: l, .. } => len(l, 8),
        ReadAs::List { len: Len { from: LenFrom::Zero, .. }, .. } => 0,
        ReadAs::List { of: element, len: l } => len(l, of(element)),
        ReadAs::Layout { layout, .. } => p.layouts.get(layout.0 as usize).map_or(0, |l| l.min_bits),
        ReadAs::Family(f) => p.families.get(f.0 as usize).map_or(0, |f| of(&f.of)),
        ReadAs::NullOr { present, .. } => of(present),
        ReadAs::Native { .. } | ReadAs::Value(_) => 0,
    }
}
