//! Makes records of a session's messages and events: gives each its number and addresses, counts
//! its bytes, and hands it to the output.
//!
//! It decides nothing about the traffic; it knows no protocol and no output by name.

use super::{Output, Pseudonyms, StreamKey, Summary};
use crate::capture::Moment;
use crate::captured::Escaped;
use crate::digits::{counted, hex, plural};
use crate::facts::NameInference;
use crate::flow::{End, Note, Summed, WrongSum};
use crate::record::{Body, EndedBy, Names, Record, RoundTrips};
use crate::session::{Counts, Emit, Ends, Event, EventKind, Message, Share, Side};
use crate::table::Tables;
use crate::tree::Tree;

/// The most bytes of a reset's payload that are shown.
const MAX_RESET_BYTES: usize = 256;

/// Makes records of one stream. Lives for one call of a session, on borrowed parts of the
/// connection and the run.
pub(super) struct RecordEmitter<'a> {
    pub(super) out: &'a mut dyn Output,
    pub(super) summary: &'a mut Summary,
    pub(super) key: StreamKey,
    pub(super) ends: Ends,
    pub(super) protocol: &'static str,
    pub(super) round_trips: RoundTrips,
    pub(super) counts: &'a mut [Counts; 2],
    pub(super) pseudonyms: Option<&'a mut Pseudonyms>,
    /// Finds the names of numbers, if somebody wants them.
    pub(super) names: Option<&'a mut NameInference>,
}

impl RecordEmitter<'_> {
    /// Counts bytes of a direction, in its own counts and in the totals.
    fn count(&mut self, side: Side, add: impl Fn(&mut Counts)) {
        if let Some(counts) = self.counts.get_mut(side.index()) {
            add(counts);
        }
        add(&mut self.summary.bytes);
    }

    /// An anomaly of a direction's segments.
    pub(super) fn note(&mut self, side: Side, at: Moment, service: &str, note: Note) {
        let limit = |limit| EventKind::Limit { limit };
        let (kind, offset, length, text) = match note {
            Note::Conflict { offset } => {
                let text = "sent twice with different bytes: those captured first stay (noted \
                            once for each direction)";
                (EventKind::Remark, Some(offset), None, text)
            }
            Note::Late { offset, len } => {
                let text = "bytes came after they had been counted as never captured (noted once \
                            for each direction)";
                (EventKind::Remark, Some(offset), Some(len), text)
            }
            Note::Implausible { len } => {
                let text =
                    "a segment too far from all others is left out (noted once for each direction)";
                (EventKind::Remark, None, Some(len), text)
            }
            Note::StreamLimit => {
                let text = "too many bytes wait for missing ones in this direction \
                            (--max-stream): these are given up";
                (limit("max-stream"), None, None, text)
            }
            Note::TotalLimit => {
                let text = "too many bytes wait for missing ones in all streams (--max-total): \
                            these are given up";
                (limit("max-total"), None, None, text)
            }
            Note::Checksum(WrongSum { of, found, right }) => {
                let of = match of {
                    Summed::Ip => "IPv4",
                    Summed::Tcp => "TCP",
                    Summed::Udp => "UDP",
                };
                let text = format!("wrong {of} checksum: {found:04x}, expected {right:04x}");
                return self.say(side, at, service, EventKind::Checksum, text);
            }
            Note::FragmentLimit => {
                let text = "too many IP fragments wait for others: what follows is only the \
                            beginning of a packet";
                (limit("fragments"), None, None, text)
            }
            Note::ResetReason(bytes) => {
                let text = self.reset_text(&bytes);
                return self.say(side, at, service, EventKind::Remark, text);
            }
            // No event: the record of the stream's end follows.
            Note::FinAssumed => return,
        };
        let event = Event {
            kind,
            service: service.to_string(),
            from: side,
            offset,
            length,
            bytes: Vec::new(),
            text: text.into(),
        };
        self.event(at, event);
    }

    /// What the payload of a reset is. Middleboxes write why they closed the connection.
    fn reset_text(&self, bytes: &[u8]) -> String {
        let all = counted(bytes.len() as u64, "byte");
        // A text may tell about persons.
        if self.pseudonyms.is_some() {
            return format!("the reset carries {all}");
        }
        let first = bytes.get(..MAX_RESET_BYTES).unwrap_or(bytes);
        let more = if first.len() < bytes.len() { "…" } else { "" };
        let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
        if first.iter().all(is_text) {
            let text = String::from_utf8_lossy(first);
            format!("the reset carries {all}: {}{more}", Escaped(text.trim_end()))
        } else {
            format!("the reset carries {all}: {}{more}", hex(first))
        }
    }

    /// The stream was ended because too many were open.
    pub(super) fn evicted(&mut self, side: Side, at: Moment, service: &str) {
        let text =
            "too many streams at once: this one, idle for longest, is taken for ended".to_string();
        self.say(side, at, service, EventKind::Limit { limit: "streams" }, text);
    }

    /// A datagram: `there` of its bytes were captured, `missing` were not.
    pub(super) fn cut_datagram(
        &mut self,
        from: Side,
        at: Moment,
        service: &str,
        there: u64,
        missing: u64,
    ) {
        let count = counted(missing, "more byte");
        let were = plural(missing, "was", "were");
        let text = format!(
            "{count} of this datagram {were} not captured, or only without those before {}",
            plural(missing, "it", "them")
        );
        self.event(at, Event::new(EventKind::Gap, service, from, text).about(there, missing));
    }

    /// An event about no bytes.
    fn say(&mut self, from: Side, at: Moment, service: &str, kind: EventKind, text: String) {
        self.event(at, Event::new(kind, service, from, text));
    }

    /// The end of a direction, which its sender closed or reset in the frame `closed_in`.
    pub(super) fn stream_end(
        &mut self,
        side: Side,
        at: Moment,
        service: &str,
        how: End,
        closed_in: Option<u64>,
    ) {
        if how == End::Evicted {
            self.evicted(side, at, service);
        }
        let counts = self.counts.get(side.index()).copied().unwrap_or_default();
        let (end, text) = match how {
            End::Fin => (EndedBy::Fin, "closed"),
            End::Rst => (EndedBy::Reset, "reset"),
            End::CaptureEnd => (EndedBy::Open, "still open at the capture's end"),
            End::Evicted => (EndedBy::GivenUp, "idle for longest when there were too many streams"),
            End::Replaced => (EndedBy::Timeout, "a new connection began between the same ends"),
        };
        self.record(side, at, service, Body::StreamEnd { end, text, counts, closed_in });
    }

    /// Counts payload of a direction that came without its packets.
    pub(super) fn count_payload(&mut self, from: Side, bytes: u64) {
        self.count(from, |c| c.payload += bytes);
    }

    /// Hands a record on.
    #[inline]
    pub(super) fn record(&mut self, from: Side, at: Moment, service: &str, body: Body<'_>) -> u64 {
        self.summary.records += 1;
        let (ends, at) = match &mut self.pseudonyms {
            Some(pseudonyms) => (pseudonyms.ends(self.ends), pseudonyms.moment(at)),
            None => (self.ends, at),
        };
        let (src, dst) = match from {
            Side::Client => (ends.client, ends.server),
            Side::Server => (ends.server, ends.client),
        };
        let mut record = Record {
            number: self.summary.records,
            at,
            start: *self.summary.start.get_or_insert(at.time),
            transport: self.key.transport,
            stream: self.key.number,
            src,
            dst,
            from,
            protocol: self.protocol,
            service,
            round_trips: self.round_trips,
            names: Names::default(),
            body,
        };
        if let Some(names) = &mut self.names {
            record.names = names.infer(&record);
            self.out.record(&record);
        } else {
            self.out.record(&record);
        }
        record.number
    }

    /// A message with its tree: as it is, or with pseudonyms.
    fn whole_message(
        &mut self,
        at: Moment,
        message: &Message<'_>,
        tables: &Tables,
        tree: &mut Tree,
    ) -> u64 {
        let Some(pseudonyms) = &mut self.pseudonyms else {
            return self.record(
                message.from,
                at,
                message.service,
                Body::Message { message, tables, tree },
            );
        };
        pseudonyms.ends(self.ends);
        let bytes = pseudonyms.message(message, tables, tree);
        self.out.plaintext(&self.key, message.from, message.offset, &bytes);
        let message = &Message { bytes: &bytes, ..message.clone() };
        self.record(message.from, at, message.service, Body::Message { message, tables, tree })
    }
}

impl Emit for RecordEmitter<'_> {
    fn message(
        &mut self,
        at: Moment,
        message: &Message<'_>,
        tables: &Tables,
        tree: &mut Tree,
    ) -> u64 {
        self.summary.messages += 1;
        self.summary.problems.add(tree.problems());
        // The payload was counted when it came.
        let bytes = Counts { payload: 0, ..Counts::of_message(tree, message.bytes.len()) };
        self.count(message.from, |c| c.add(bytes));
        let number = self.whole_message(at, message, tables, tree);
        self.out.take_tree(tree);
        number
    }

    fn event(&mut self, at: Moment, event: Event) {
        let bytes = Counts { payload: 0, ..event.counts() };
        self.count(event.from, |c| c.add(bytes));
        let event = match &self.pseudonyms {
            Some(pseudonyms) => {
                if let (EventKind::Undecoded, Some(offset)) = (&event.kind, event.offset) {
                    let filler = Pseudonyms::filler(event.bytes.len());
                    self.out.plaintext(&self.key, event.from, offset, &filler);
                }
                pseudonyms.event(event)
            }
            None => event,
        };
        self.record(event.from, at, &event.service, Body::Event(&event));
    }

    fn account(&mut self, from: Side, share: Share, bytes: u64) {
        self.count(from, |c| match share {
            Share::Closed => c.closed += bytes,
            Share::Opaque => c.opaque += bytes,
        });
    }

    fn plaintext(&mut self, from: Side, offset: u64, bytes: &[u8]) {
        if self.pseudonyms.is_none() {
            self.out.plaintext(&self.key, from, offset, bytes);
        }
    }
}
