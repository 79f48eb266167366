//! SDL, the game's own way to describe states: descriptor files, and the records that follow them.
//!
//! A descriptor ([`descriptor`]) comes from a text ([`parse`]), which may be encrypted
//! ([`decrypt`]); a [`store`] keeps them by name and version, with those of the game's engine
//! (`engine.sdl`). This module knows no connection. Its input is files and regions of bytes.

mod decode;
pub mod decrypt;
pub mod descriptor;
pub mod downloads;
mod names;
pub mod parse;
pub mod store;

pub use decode::NATIVES;
