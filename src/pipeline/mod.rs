//! From frames to records: streams are recognised and given to sessions, and the messages and
//! events of the sessions are numbered and counted.
//!
//! A frame goes through [`Flow`] into the `StreamTable`, which calls the `Connection` it belongs
//! to; that calls the protocol's session, and the session's messages and events become records in a
//! `RecordEmitter`, which hands them to the [`Output`]. This folder knows protocols and outputs
//! only by their traits, none by name.

mod carried_captures;
mod concluding;
mod connection;
mod counting;
mod emitter;
mod exported;
mod filtered;
#[cfg(not(feature = "cli"))]
mod no_pseudonyms;
mod output;
mod passed_over;
mod shared;
mod stream_table;
mod traffic;
mod waiting;

use std::sync::Arc;

use crate::capture::{Frame, Moment, Time};
use crate::flow::{Flow, FlowLimits, FlowStats, NotReadCounts};
use crate::pdu;
use crate::proto::{AllSettings, LazyTables, Protocol};
#[cfg(feature = "cli")]
use crate::pseudonyms::Pseudonyms;
use crate::session::Counts;
use crate::session::{Options, Transport};
use crate::suggest::suggestion;
use crate::table::Tables;
use crate::tree::ProblemCounts;
pub use concluding::{Concluding, Diagnosis};
pub use counting::StatsCounter;
use exported::ExportedMessages;
pub use filtered::Filtered;
#[cfg(not(feature = "cli"))]
use no_pseudonyms::NoPseudonyms as Pseudonyms;
pub use output::{Output, StreamKey, StreamOver};
pub use passed_over::{PassedOver, PassedOverPort};
use shared::Shared;
use stream_table::StreamTable;
pub use traffic::{MessageRoute, TrafficWriter};

/// The setup of a run.
pub struct Setup {
    /// The protocols' tables, in the order in which the protocols are asked whether a stream is
    /// theirs. Shared with the threads that write records.
    pub tables: Arc<[LazyTables]>,
    /// The settings of each protocol.
    pub settings: AllSettings,
    /// The options for all protocols.
    pub options: Options,
    /// Ports whose connections are always decoded as one protocol.
    pub decode_as: Vec<DecodeAs>,
    /// Limits on streams and fragments.
    pub limits: FlowLimits,
    /// The most bytes that the sessions of all streams hold together, remembered messages included.
    pub max_held: usize,
    /// Whether records have the [names](crate::record::Record::names) that earlier records give.
    pub names: bool,
    /// Replaces names in everything that outputs get by pseudonyms, if the user asked for it.
    pub pseudonyms: Option<Pseudonyms>,
}

/// `tcp:14000=moul`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeAs {
    /// TCP or UDP.
    pub transport: Transport,
    /// The port on either side.
    pub port: u16,
    /// The protocol's name.
    pub protocol: String,
}

impl DecodeAs {
    /// Reads `tcp:14000=NAME`, or `14000=NAME`.
    ///
    /// # Errors
    /// A text in another form, a protocol that is not there, or one that does not run over this
    /// transport.
    pub fn parse(text: &str, protocols: &[&dyn Protocol]) -> Result<DecodeAs, String> {
        let (place, protocol) = text.split_once('=').ok_or("no `=`")?;
        let (transport, port) = place.split_once(':').unwrap_or(("tcp", place));
        let transport = match transport {
            "tcp" => Transport::Tcp,
            "udp" => Transport::Udp,
            other => return Err(format!("`{other}` is neither tcp nor udp")),
        };
        let port = port.parse().map_err(|_| format!("`{port}` is no port"))?;
        let Some(named) = protocols.iter().find(|known| known.name() == protocol) else {
            let near = suggestion(protocol, protocols.iter().map(|known| known.name()));
            return Err(format!("there is no protocol `{protocol}`{near}"));
        };
        if !named.transports().contains(&transport) {
            let others: Vec<&str> = named.transports().iter().map(|runs| runs.word()).collect();
            return Err(format!(
                "{protocol} runs over {}, not over {}",
                others.join(" and "),
                transport.word()
            ));
        }
        Ok(DecodeAs { transport, port, protocol: protocol.to_string() })
    }

    /// Finds two that say different things of one port.
    ///
    /// # Errors
    /// What they say.
    pub fn agree(all: &[DecodeAs]) -> Result<(), String> {
        for (at, one) in all.iter().enumerate() {
            let same_port =
                |other: &&DecodeAs| (other.transport, other.port) == (one.transport, one.port);
            let other = all
                .iter()
                .skip(at + 1)
                .find(|other| same_port(other) && other.protocol != one.protocol);
            if let Some(other) = other {
                let transport = one.transport.word();
                let port = one.port;
                return Err(format!(
                    "{transport}:{port} cannot be both {} and {}",
                    one.protocol, other.protocol
                ));
            }
        }
        Ok(())
    }
}

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Counts of frames, packets and streams.
    pub flow: FlowStats,
    /// Records.
    pub records: u64,
    /// The time of the first of them.
    pub start: Option<Time>,
    /// Messages among them.
    pub messages: u64,
    /// Problems of these messages.
    pub problems: ProblemCounts,
    /// Recognised streams.
    pub streams: u64,
    /// Bytes of all recognised streams.
    pub bytes: Counts,
    /// Exported messages that could not be read.
    pub left_out: u64,
    /// Why the first of them could not be read.
    pub left_out_why: Option<&'static str>,
}

/// A run over a capture, from its first frame to its end.
///
/// Frames go in with [`frame`](Pipeline::frame), in the order of the capture;
/// [`finish`](Pipeline::finish) comes once, after the last one. The output is lent to each of these
/// calls, and is the same one for the whole run.
pub struct Pipeline {
    flow: Flow,
    table: StreamTable,
    exported: ExportedMessages,
}

impl Pipeline {
    /// A run before its first frame.
    pub fn new(setup: Setup) -> Self {
        let flow = Flow::new(setup.limits);
        Pipeline {
            flow,
            table: StreamTable::new(Shared::new(setup)),
            exported: ExportedMessages::default(),
        }
    }

    /// Takes the next frame. The records it completes are handed to `out` before this returns.
    pub fn frame(&mut self, frame: &Frame<'_>, out: &mut dyn Output) {
        if frame.link == pdu::LINK_TYPE {
            self.exported.frame(frame, &mut self.table.shared, out);
            return self.flow.count_other(frame);
        }
        self.flow.frame(frame, &mut self.table.sink(out));
    }

    /// Ends the capture: gives up waiting bytes, and ends every stream.
    pub fn finish(&mut self, out: &mut dyn Output) {
        self.flow.finish(&mut self.table.sink(out));
        self.exported.finish(&mut self.table.shared, out);
    }

    /// The settings of each protocol. A capture may add secrets that it carries.
    pub fn settings(&mut self) -> &mut AllSettings {
        &mut self.table.shared.setup.settings
    }

    /// The setup of the run in its present state: with the secrets that captures carried, and the
    /// persons found so far.
    pub fn into_setup(self) -> Setup {
        self.table.shared.setup
    }

    /// The numbers so far.
    pub fn summary(&self) -> Summary {
        let mut flow = self.flow.stats();
        if let Some(pseudonyms) = &self.table.shared.setup.pseudonyms {
            let moved = |time| pseudonyms.moment(Moment { time, ..Moment::default() }).time;
            flow.times = flow.times.map(|(first, last)| (moved(first), moved(last)));
        }
        let mut summary = Summary { flow, ..self.table.shared.summary };
        self.exported.put_into(&mut summary);
        summary
    }

    /// The tables of a protocol.
    pub fn tables(&self, protocol: &str) -> Option<&Tables> {
        LazyTables::of(&self.table.shared.setup.tables, protocol).map(LazyTables::get)
    }

    /// How many frames were not read so far, and why.
    pub fn not_read(&self) -> &NotReadCounts {
        self.flow.not_read()
    }

    /// The ended conversations that no protocol recognised.
    pub fn passed_over(&self) -> &PassedOver {
        &self.table.shared.passed_over
    }
}
