//! Numbers that travel as text: the file lists of MOUL write 32 bits as two units of their UTF-16 text.
//!
//! It knows nothing of file lists.

use crate::table::{Call, Cursor, Run, Stop};
use crate::tree::{Kind, Node};

/// 32 bits as two 16-bit units, the high one first, each little-endian.
pub(super) fn u32_units(run: &mut Run<'_>, cursor: &mut Cursor<'_>, call: &Call) -> Result<u64, Stop> {
    let start = cursor.pos();
    let [a, b, c, d] = cursor.array::<4>()?;
    let value = u64::from(u32::from_le_bytes([c, d, a, b]));
    run.tree.leaf(Node {
        value,
        name: call.name,
        ty: call.ty,
        start: start as u32,
        bits: (cursor.pos() - start) as u32,
        end: 0,
        buffer: cursor.buffer(),
        kind: Kind::Unsigned,
        marks: call.marks,
    });
    Ok(value)
}
