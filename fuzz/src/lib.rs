//! What the fuzz targets do with their bytes, and what must always be true: no panic, no overflow,
//! every byte accounted for, every line JSON. `docs/fuzzing.md` lists the targets.

pub mod checks;
pub mod encode;
pub mod exports;
pub mod files;
pub mod frames;
pub mod messages;
pub mod readers;
pub mod sessions;

use std::sync::{Arc, OnceLock};

use moulsniff::proto::moul::keys::{KeyFile, KeyRing};
use moulsniff::proto::{LazyTables, PROTOCOLS};

/// The tables of all protocols, compiled once.
pub fn tables() -> &'static Arc<[LazyTables]> {
    static TABLES: OnceLock<Arc<[LazyTables]>> = OnceLock::new();
    TABLES.get_or_init(|| {
        PROTOCOLS.iter().map(|p| LazyTables::new(*p, Vec::new()).unwrap()).collect()
    })
}

/// One protocol's tables.
pub fn tables_of(name: &str) -> &'static LazyTables {
    tables().iter().find(|t| t.protocol().name() == name).unwrap()
}

/// A ring with the private keys of a shard. The file is read once: reading it tests primes, which
/// takes longer than most inputs.
pub fn shard() -> KeyRing {
    static FILE: OnceLock<KeyFile> = OnceLock::new();
    let file = FILE.get_or_init(|| {
        KeyFile::parse("dirtsand.ini", include_bytes!("../../keys/dirtsand.ini")).unwrap()
    });
    let mut ring = KeyRing::default();
    ring.add(file.clone());
    ring
}

/// Takes a byte off the front; 0 where there is none.
pub fn byte(data: &mut &[u8]) -> u8 {
    let Some((first, rest)) = data.split_first() else { return 0 };
    *data = rest;
    *first
}

/// Takes `count` bytes off the front, or all where there are fewer.
pub fn bytes<'a>(data: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = data.split_at(count.min(data.len()));
    *data = rest;
    taken
}

/// Takes a number of two bytes off the front.
pub fn number(data: &mut &[u8]) -> usize {
    let high = usize::from(byte(data));
    high << 8 | usize::from(byte(data))
}
