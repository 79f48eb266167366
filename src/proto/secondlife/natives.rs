//! Types of the tables that need code.

use super::layer::{layer, write_layer};
use super::llsd::LLSD;
use crate::table::{BITSTREAM, Call, Cursor, EncodeStop, Encoding, Field, Native, Run, Slot, Stop};
use crate::tree::Kind;

/// All of them, by the names that tables use.
pub const NATIVES: &[Native] = &[
    BITSTREAM[0],
    Native::new("face_bits", face_bits).written_by(write_face_bits),
    Native::new("layer", layer).written_by(write_layer),
    LLSD,
];

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

/// As few bytes as the highest face needs.
fn write_face_bits(encoding: &mut Encoding<'_>, field: &Field) -> Result<Slot, EncodeStop> {
    let value = encoding.number(field)?;
    let Some(value) = u64::try_from(value).ok().filter(|value| value >> 63 == 0) else {
        return encoding.fail_at(field, format!("{value} has more than 63 faces"));
    };
    let groups = (64 - value.leading_zeros()).div_ceil(7).max(1);
    for group in (0..groups).rev() {
        let byte = (value >> (group * 7)) as u8 & 0x7f;
        encoding.out().put(&[byte | if group > 0 { 0x80 } else { 0 }]);
    }
    Ok(Slot::Number(value))
}
