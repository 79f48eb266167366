//! What the inner loops need of each type, into the program and into its steps.

use super::super::program::*;

/// Fills in [`TypeOp`]s, once every type is known.
pub(super) fn fill(p: &mut Program) {
    p.type_ops = p.types.iter().map(TypeOp::of).collect();
    for step in &mut p.steps {
        if let LayoutStep::Field { ty, marks, op, .. } = step {
            *op = p.type_ops.get(ty.0 as usize).copied().unwrap_or(TypeOp::NONE);
            *marks |= op.marks;
        }
    }
}
