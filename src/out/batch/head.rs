//! What a batch has of each record, without what is kept in the batch's vectors.

use std::net::SocketAddr;

use super::StreamNumber;
use crate::capture::Moment;
use crate::out::tree::AnnotationRange;
use crate::proto::{Reply, Side};
use crate::record::{Counts, EndedBy, Record, RoundTrips};
use crate::table::MessageId;
use crate::tree::DeferredPart;

/// A record without what it refers to.
pub(super) struct Head {
    pub(super) number: u64,
    pub(super) at: Moment,
    pub(super) stream: StreamNumber,
    pub(super) from: Side,
    pub(super) protocol: &'static str,
    /// The place of its [`RecordDirection`].
    pub(super) direction: usize,
    pub(super) annotations: AnnotationRange,
    pub(super) selection: Selection,
    pub(super) what: BatchedBody,
}

/// What most records of a direction of a stream have in common.
pub(super) struct RecordDirection {
    pub(super) stream: StreamNumber,
    pub(super) src: SocketAddr,
    pub(super) dst: SocketAddr,
    pub(super) service: String,
    pub(super) round_trips: RoundTrips,
}

/// What a record says.
pub(super) enum BatchedBody {
    Message {
        name: Range,
        number: Option<u64>,
        offset: u64,
        bytes: Range,
        reply: Option<Reply>,
        no_reply: bool,
        fields: FieldsAt,
        once: Option<&'static str>,
        /// Whether it was counted, and if so, whether it keeps the first note that is [said
        /// once](crate::session::Message::once).
        counted: Option<bool>,
    },
    /// By its place.
    Event(usize),
    StreamEnd {
        end: EndedBy,
        text: Range,
        counts: Counts,
        closed_in: Option<u64>,
        /// Whether the counts have what is in messages.
        counted: bool,
    },
}

/// Where a batch has a message's fields.
#[derive(Clone, Copy)]
pub(super) enum FieldsAt {
    /// In a tree, by its place.
    Tree(usize),
    /// Only in its bytes: it came as an outline.
    Unread(Unread),
    /// Its outline is enough. It has this place, or none if it has no problems.
    Outline(Option<usize>, MessageId),
}

/// A message that came as an outline.
#[derive(Clone, Copy)]
pub(super) struct Unread {
    pub(super) id: MessageId,
    /// What it has to be read with, by its place in the batch.
    pub(super) context: Option<usize>,
    /// The part of it that its outline leaves out.
    pub(super) part: Option<DeferredPart>,
}

/// Start and end in one of the vectors.
pub(super) type Range = (usize, usize);

/// What becomes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Selection {
    /// It was not asked about.
    Undecided,
    /// It is written.
    Kept,
    /// It is not written, but later records may show a name that it gives.
    ForNames,
    /// It is not written, and changes nothing in later records.
    Dropped,
}

/// A record with its body.
pub(super) fn record<'b, B>(head: &Head, direction: &'b RecordDirection, body: B) -> Record<'b, B> {
    let &Head { number, at, stream: (transport, stream), from, protocol, .. } = head;
    let &RecordDirection { src, dst, ref service, round_trips, .. } = direction;
    Record { number, at, transport, stream, src, dst, from, protocol, service, round_trips, body }
}
