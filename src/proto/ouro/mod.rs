//! City of Heroes (OuroDev): links between its client and servers, over UDP and TCP. See
//! `docs/ouro.md`.
//!
//! It knows the published parts: packets, bit streams and the link's own commands. The unpublished
//! parts (encryption, compression, the numbers of user commands) are named, but not decoded.

mod auth;
mod encode;
mod frame;
mod life;
mod link;
mod natives;
mod options;
mod packet;
mod received;
mod recognise;
mod replies;
mod sequence;
mod session;
mod siblings;
mod stream;

pub use session::LinkSession;

use super::{
    LazyTables, Opening, OptionSpec, OptionValues, Protocol, RecordNames, Seal, SettingsError,
    Verdict,
};
use crate::session::{Session, Settings, Start, Transport};
use crate::table::{EncodeError, Encoder, Native, TableSource, Tables, Written};

/// The protocol.
pub struct Ouro;

impl Protocol for Ouro {
    fn name(&self) -> &'static str {
        "ouro"
    }

    fn sources(&self) -> Vec<TableSource> {
        vec![
            TableSource { name: "ouro/link.table".into(), text: include_str!("link.table").into() },
            TableSource { name: "ouro/auth.table".into(), text: include_str!("auth.table").into() },
            TableSource {
                name: "ouro/dbserver.table".into(),
                text: include_str!("dbserver.table").into(),
            },
        ]
    }

    fn usual_ports(&self) -> &'static [(Transport, u16)] {
        &[(Transport::Udp, 7000), (Transport::Udp, 7002), (Transport::Udp, 7003)]
    }

    fn natives(&self) -> &'static [Native] {
        &natives::NATIVES
    }

    fn transports(&self) -> &[Transport] {
        &[Transport::Udp, Transport::Tcp]
    }

    fn services_by_port(&self) -> bool {
        true
    }

    fn record_names(&self) -> RecordNames {
        RecordNames {
            messages: &["Encrypted", "Undescribed", "UserCommand", "ControlCommand"],
            other_services: &[("user", "link")],
            ..RecordNames::default()
        }
    }

    fn options(&self) -> &'static [OptionSpec] {
        &options::OPTIONS
    }

    fn settings(
        &self,
        values: &OptionValues,
        _warn: &mut dyn FnMut(String),
    ) -> Result<Settings, SettingsError> {
        Ok(Settings::new(options::OuroSettings::new(values)))
    }

    fn recognise_tcp(&self, opening: &Opening<'_>, _tables: &LazyTables) -> Verdict {
        recognise::tcp(opening)
    }

    fn recognise_udp(&self, opening: &Opening<'_>, _tables: &LazyTables) -> Verdict {
        recognise::udp(opening)
    }

    fn encode(
        &self,
        tables: &Tables,
        encoder: &mut Encoder,
        message: Written<'_>,
    ) -> Option<Result<Vec<u8>, EncodeError>> {
        encode::encode(tables, encoder, message)
    }

    fn seal(&self, service: &str) -> Option<Box<dyn Seal>> {
        (service == auth::SERVICE).then(|| Box::new(auth::AuthSeal::default()) as Box<dyn Seal>)
    }

    fn session(&self, start: &Start<'_>, tables: &Tables) -> Box<dyn Session> {
        if start.transport == Transport::Tcp
            && recognise::AUTH_PORTS.contains(&start.ends.server.port())
        {
            return Box::new(auth::AuthSession::new(tables));
        }
        Box::new(LinkSession::new(start, tables))
    }
}
