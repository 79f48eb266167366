//! MOUL: Myst Online: Uru Live and its fan shards. See `docs/moul.md`.

pub mod natives;

use super::{Ends, Opening, Protocol, Session, Transport, Verdict};
use crate::table::{NativeFn, Source, Tables};

/// The protocol.
pub struct Moul;

/// The embedded tables, by file.
macro_rules! tables {
    ($($file:literal),* $(,)?) => {
        vec![$(Source { name: concat!("moul/", $file).into(), text: include_str!($file).into() }),*]
    };
}

impl Protocol for Moul {
    fn name(&self) -> &'static str {
        "moul"
    }

    fn sources(&self) -> Vec<Source> {
        tables![
            "enums.table",
            "creatables.table",
            "plasma_types.table",
            "netmessages.table",
            "messages_core.table",
            "messages_anim.table",
            "messages_avatar.table",
            "messages_camera.table",
            "messages_input.table",
            "messages_net.table",
            "messages_physics.table",
            "messages_sound.table",
        ]
    }

    fn natives(&self) -> &'static [(&'static str, NativeFn)] {
        &natives::NATIVES
    }

    fn recognise_tcp(&self, _opening: &Opening<'_>, _tables: &Tables) -> Verdict {
        Verdict::No
    }

    fn recognise_udp(&self, _opening: &Opening<'_>, _tables: &Tables) -> Verdict {
        Verdict::No
    }

    fn session(&self, _ends: Ends, _transport: Transport, _tables: &Tables) -> Box<dyn Session> {
        Box::new(Nothing)
    }
}

struct Nothing;

impl Session for Nothing {
    fn data(
        &mut self,
        _: super::Side,
        _: u64,
        _: &[u8],
        _: super::Moment,
        _: &mut super::Context<'_>,
    ) {
    }
    fn gap(
        &mut self,
        _: super::Side,
        _: u64,
        _: u64,
        _: super::Moment,
        _: &mut super::Context<'_>,
    ) {
    }
    fn end(&mut self, _: super::Side, _: super::Moment, _: &mut super::Context<'_>) {}
    fn service(&self) -> &str {
        ""
    }
}
