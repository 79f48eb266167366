//! What the fuzz targets do with their bytes, and what they hold to be always true: no panic, no overflow, every byte accounted for, every line JSON.

pub mod checks;
pub mod files;
pub mod frames;
pub mod readers;
pub mod sessions;

use std::sync::{Arc, OnceLock};

use moulsniff::proto::{LazyTables, PROTOCOLS};

/// The tables of all protocols, compiled once.
pub fn tables() -> &'static Arc<[LazyTables]> {
    static TABLES: OnceLock<Arc<[LazyTables]>> = OnceLock::new();
    TABLES.get_or_init(|| PROTOCOLS.iter().map(|p| LazyTables::new(*p, Vec::new()).unwrap()).collect())
}

/// One protocol's tables.
pub fn tables_of(name: &str) -> &'static LazyTables {
    tables().iter().find(|t| t.protocol().name() == name).unwrap()
}

/// Takes a byte off the front; 0 where there is none.
pub fn byte(data: &mut &[u8]) -> u8 {
    let Some((first, rest)) = data.split_first() else { return 0 };
    *data = rest;
    *first
}

/// Takes so many bytes off the front, or what there is.
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
