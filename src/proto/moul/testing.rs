//! Shared by the tests of this folder: a key file, a handshake made with it, and a context for a
//! session.

#![allow(clippy::unwrap_used)]

use super::Moul;
use super::keys::KeyRing;
use super::settings::MoulSettings;
use crate::proto::LazyTables;
use crate::session::Settings;
use crate::session::{Context, Emit, Options};
use crate::table::Evaluator;
use crate::tree::Tree;

/// Throw-away keys of a DIRTSAND shard.
pub(super) const KEYS: &[u8] = include_bytes!("../../../keys/dirtsand.ini");
/// The server's seed of a handshake.
pub(super) const SEED: [u8; 7] = [1, 2, 3, 4, 5, 6, 7];
/// The client's half of a handshake.
pub(super) const Y: [u8; 64] = [0x5a; 64];

/// The protocol's own tables.
pub(super) fn tables() -> LazyTables {
    LazyTables::new(&Moul, Vec::new()).unwrap()
}

/// Calls `run` with a context of the tables in `lazy`, of `keys`, and of `emit`.
pub(super) fn in_context<T>(
    lazy: &LazyTables,
    keys: KeyRing,
    emit: &mut dyn Emit,
    run: impl FnOnce(&mut Context<'_>) -> T,
) -> T {
    run(&mut Context {
        tables: lazy.get(),
        evaluator: &mut Evaluator::default(),
        tree: &mut Tree::new(),
        settings: &Settings::new(MoulSettings::with_keys(keys)),
        sequences: [None; 2],
        options: &Options::default(),
        emit,
    })
}
