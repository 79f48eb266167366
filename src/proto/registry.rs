//! The list of protocols: one line each. A protocol is a folder beside this file and its line here,
//! and nothing else.
//!
//! A line names the folder and the value in the folder's `mod.rs` that implements
//! [`Protocol`](super::Protocol). `cargo fmt` does not look for modules within a macro: `rustfmt
//! src/proto/*/mod.rs` formats the folders.

/// Hands the list to a macro that declares the modules and the values. Protocols are asked in this
/// order whether a connection is theirs.
macro_rules! with_protocols {
    ($declare:ident) => {
        $declare! {
            moul::Moul,
            secondlife::SecondLife,
            intermud3::Intermud3,
            ouro::Ouro,
        }
    };
}
