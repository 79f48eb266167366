//! Exported PDUs: one decrypted message a packet, as Wireshark exchanges them (link type 252,
//! `LINKTYPE_WIRESHARK_UPPER_PDU`).
//!
//! A packet is a list of tags and behind it the message's bytes. Wireshark's own tags say which
//! dissector takes the bytes, which addresses and ports they came from, and which frame. A tag of
//! our own carries the message's tree (`packed`), so that a reader needs neither keys nor earlier
//! messages, and others what came between messages (`carried`), so that nothing that was found is
//! lost. `docs/sharing.md` has the form.
//!
//! This module knows records, trees and tables. It knows no protocol, no file and no output.

mod carried;
mod packed;
mod packet;
mod tags;
mod unpacked;

pub use carried::{
    CarriedBody, CarriedCapture, CarriedItem, CarriedReader, CarriedRecord, CarriedStream,
    CarriedWriter,
};
pub use packet::{CARRIER, MAX_BYTES, PduPacket, PduWriter, WrittenPacket, dissector_name};
pub use unpacked::{PackedHead, Unpacked};

use crate::table::Tables;

/// The link type of these packets.
pub const LINK_TYPE: u16 = 252;

/// A number that changes when the numbers of names and types do: a packed tree refers to them.
pub fn fingerprint(tables: &Tables) -> u64 {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    let mut add = |text: &str| {
        hash.add(&(text.len() as u64).to_le_bytes());
        hash.add(text.as_bytes());
    };
    add(tables.protocol());
    tables.names().iter().for_each(|name| add(name));
    let mut place = 0;
    while let Some(def) = tables.type_def(crate::tree::TypeRef(place)) {
        add(&def.text);
        place += 1;
    }
    hash.0
}

/// The hash FNV-1a of 64 bits. The one of the standard library may be another one in a later
/// version.
struct Fnv(u64);

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        self.0 = bytes
            .iter()
            .fold(self.0, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    }
}
