//! Types of the tables that need code.

use super::layer::layer;
use super::llsd::LLSD;
use crate::table::{BITSTREAM, Call, Cursor, Native, Run, Stop};
use crate::tree::Kind;

/// All of them, by the names that tables use.
pub const NATIVES: &[Native] =
    &[BITSTREAM[0], Native::new("face_bits", face_bits), Native::new("layer", layer), LLSD];

/// The faces of an object, 7 in a byte, the most significant group first. A set high bit means that
/// another byte follows.
fn face_bits(run: &mut Run<'_>, cursor: &mut Cursor<'_>, call: &Call) -> Result<u64, Stop> {
    let start = cursor.pos();
    let mut value = 0u64;
    for _ in 0..9 {
        let [byte] = cursor.array::<1>()?;
        value = value << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            break;
        }
    }
    run.tree.leaf(call.node(cursor, start, Kind::Unsigned64, value));
    Ok(value)
}
