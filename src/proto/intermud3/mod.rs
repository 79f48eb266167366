//! Intermud-3: MUDs talk to each other through routers, in packets of mudmode text. See
//! `docs/intermud3.md`.

mod encode;
mod framing;
mod leaf;
mod network;
mod nodes;
mod number;
mod numbered;
mod printed;
mod recognise;
mod repair;
mod replies;
mod session;
mod spans;
mod text;
mod value;

use super::{Expected, LazyTables, Opening, Protocol, RecordNames, TextFormat, Verdict};
use crate::session::{Ends, Session, Settings, Start, Transport};
use crate::table::{EncodeError, Encoder, LayoutId, ReadAs, TableSource, Tables, Written};

/// The protocol.
pub struct Intermud3;

/// The embedded tables, by file.
macro_rules! tables {
    ($($file:literal),* $(,)?) => {
        vec![$(TableSource { name: concat!("intermud3/", $file).into(), text: include_str!($file).into() }),*]
    };
}

impl Protocol for Intermud3 {
    fn name(&self) -> &'static str {
        "intermud3"
    }

    fn usual_ports(&self) -> &'static [(Transport, u16)] {
        &[(Transport::Tcp, 8787), (Transport::Tcp, 9000)]
    }

    fn sources(&self) -> Vec<TableSource> {
        tables!["packet.table", "router.table", "channel.table", "oob.table", "irn.table"]
    }

    fn record_names(&self) -> RecordNames {
        RecordNames {
            messages: &["value"],
            any_message: true,
            numbered_fields: &["extra"],
            ..RecordNames::default()
        }
    }

    fn expects(&self, ends: Ends, _settings: &Settings) -> Option<Expected> {
        printed::expected(ends)
    }

    fn text_format(&self) -> Option<&'static dyn TextFormat> {
        Some(&printed::Printed)
    }

    fn recognise_tcp(&self, opening: &Opening<'_>, _tables: &LazyTables) -> Verdict {
        if let Some(expected) = printed::expected(opening.ends) {
            return Verdict::Yes { swapped: expected.swapped };
        }
        recognise::verdict(opening)
    }

    fn encode(
        &self,
        tables: &Tables,
        encoder: &mut Encoder,
        message: Written<'_>,
    ) -> Option<Result<Vec<u8>, EncodeError>> {
        Some(encode::encode(tables, encoder, message))
    }

    fn session(&self, start: &Start<'_>, tables: &Tables) -> Box<dyn Session> {
        Box::new(session::I3Session::new(start.service, tables))
    }
}

/// The positions at the start of every packet. They name the elements of a packet whose type no
/// table knows.
fn header(tables: &Tables) -> Option<LayoutId> {
    let ty = tables.type_named("Packet")?;
    match tables.type_def(ty)?.read {
        ReadAs::Layout { layout, .. } => Some(layout),
        _ => None,
    }
}
