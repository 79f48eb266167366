//! The list of protocols: one line each.

use super::Protocol;

/// All protocols, in the order they are asked whether a connection is theirs.
pub static PROTOCOLS: &[&dyn Protocol] =
    &[&super::moul::Moul, &super::secondlife::SecondLife, &super::intermud3::Intermud3, &super::ouro::Ouro];

/// The protocol with a name.
pub fn protocol_named(name: &str) -> Option<&'static dyn Protocol> {
    PROTOCOLS.iter().copied().find(|p| p.name() == name)
}
