//! A node over some bytes of a packet.
//!
//! It knows which bytes a node takes, and neither values nor packets.

use crate::tree::{Buffer, Kind, Node, Sym, TypeRef};

/// A node over some bytes of the packet.
pub(super) fn node(name: Sym, ty: TypeRef, kind: Kind, from: usize, to: usize) -> Node {
    Node {
        value: 0,
        name,
        ty,
        start: (from * 8) as u32,
        bits: (to.saturating_sub(from) * 8) as u32,
        end: 0,
        buffer: Buffer::CAPTURED,
        kind,
        marks: 0,
    }
}
