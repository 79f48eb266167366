//! Second Life and OpenSim: the UDP messages of a circuit between a viewer and a simulator, and
//! what viewers and grids say over HTTP. See `docs/secondlife.md`.
//!
//! Knows how a circuit's datagrams are framed and numbered, and how HTTP's messages are. The tables
//! know what is in the messages.

mod circuit;
mod datagram;
mod embedded;
mod encode;
mod http;
mod layer;
mod llsd;
mod meanings;
mod natives;
mod packet;
mod recognise;
mod session;
pub mod template;
#[cfg(test)]
mod tests;

pub use circuit::Counters;
pub use session::CircuitSession;

use super::{LazyTables, Opening, Protocol, RecordNames, Verdict};
use crate::session::{Session, Start, Transport};
use crate::table::{
    EncodeError, Encoder, Meaning, Native, TableError, TableSource, Tables, Written,
};

/// The protocol.
pub struct SecondLife;

/// The embedded tables, by file.
macro_rules! tables {
    ($($file:literal),* $(,)?) => {
        vec![$(TableSource { name: concat!("secondlife/", $file).into(), text: include_str!($file).into() }),*]
    };
}

impl Protocol for SecondLife {
    fn name(&self) -> &'static str {
        "secondlife"
    }

    fn sources(&self) -> Vec<TableSource> {
        tables![
            "enums.table",
            "structures.table",
            "circuits.table",
            "agents.table",
            "avatars.table",
            "teleport.table",
            "chat.table",
            "objects.table",
            "sounds.table",
            "scripts.table",
            "inventory.table",
            "assets.table",
            "groups.table",
            "friends.table",
            "money.table",
            "map.table",
            "parcels.table",
            "regions.table",
            "search.table",
            "simulators.table",
            "http.table",
            "login.table",
            "capabilities.table",
            "requests.table",
        ]
    }

    fn usual_ports(&self) -> &'static [(Transport, u16)] {
        &[
            (Transport::Udp, 9000),
            (Transport::Udp, 12035),
            (Transport::Udp, 13000),
            (Transport::Tcp, 9000),
            (Transport::Tcp, 8002),
        ]
    }

    fn natives(&self) -> &'static [Native] {
        natives::NATIVES
    }

    fn meanings(&self) -> &'static [Meaning] {
        &meanings::MEANINGS
    }

    fn transports(&self) -> &[Transport] {
        &[Transport::Udp, Transport::Tcp]
    }

    fn foreign_tables(&self, name: &str, text: &str) -> Option<Result<TableSource, TableError>> {
        template::is_template(text).then(|| template::to_source(name, text))
    }

    fn encode(
        &self,
        tables: &Tables,
        encoder: &mut Encoder,
        message: Written<'_>,
    ) -> Option<Result<Vec<u8>, EncodeError>> {
        Some(encode::encode(tables, encoder, message))
    }

    fn record_names(&self) -> RecordNames {
        RecordNames { any_message: true, ..RecordNames::default() }
    }

    fn recognise_tcp(&self, opening: &Opening<'_>, _tables: &LazyTables) -> Verdict {
        http::recognise(opening)
    }

    fn recognise_udp(&self, opening: &Opening<'_>, tables: &LazyTables) -> Verdict {
        recognise::recognise(opening, tables)
    }

    fn session(&self, start: &Start<'_>, tables: &Tables) -> Box<dyn Session> {
        match start.transport {
            Transport::Tcp => Box::new(http::HttpSession::new(tables, start.message)),
            Transport::Udp => Box::new(CircuitSession::new(start.ends, tables)),
        }
    }
}
