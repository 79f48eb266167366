//! SDL, the game's own way to describe states: descriptor files, and the records that follow them.
//!
//! A descriptor ([`descriptor`]) comes from a text ([`parse`]), which may be encrypted
//! ([`decrypt`]); a [`store`] keeps them by name and version, with those of the game's engine
//! (`engine.sdl`). This module knows no connection. Its input is files and regions of bytes.

mod decode;
pub mod decrypt;
pub mod descriptor;
pub mod downloads;
mod encode;
mod names;
pub mod parse;
pub mod store;

use crate::table::Native;

/// The types with code, by the names tables use.
pub const NATIVES: [Native; 3] = [
    Native::new("sdl_variables", decode::read_variables).written_by(encode::write_variables),
    Native::new("sdl_nested", decode::read_nested).written_by(encode::write_nested),
    Native::new("sdl_creatable", decode::read_creatable).written_by(encode::write_creatable),
];
