//! Where a session's words become records: numbered, addressed, and every byte of theirs counted.

use super::{Output, StreamKey, Summary};
use crate::flow::{End, Note, Summed, WrongSum};
use crate::out::{Body, Counts, Outlined, Record};
use crate::proto::moul::keys::SessionLine;
use crate::proto::{Emit, Ends, Event, EventKind, Message, Moment, Share, Side};
use crate::table::{MessageId, Tables};
use crate::tree::{Buffer, Kind, Outline, Tree, mark};

/// One stream's way out.
pub(super) struct Desk<'a, O: Output> {
    pub(super) out: &'a mut O,
    pub(super) summary: &'a mut Summary,
    pub(super) key: StreamKey,
    pub(super) ends: Ends,
    pub(super) protocol: &'static str,
    pub(super) counts: &'a mut [Counts; 2],
}

impl<O: Output> Desk<'_, O> {
    /// Counts bytes of a direction, for it and for the whole.
    fn count(&mut self, side: Side, add: impl Fn(&mut Counts)) {
        if let Some(counts) = self.counts.get_mut(side.index()) {
            add(counts);
        }
        add(&mut self.summary.bytes);
    }

    /// Payload that was captured.
    pub(super) fn payload(&mut self, side: Side, bytes: u64) {
        self.count(side, |c| c.payload += bytes);
    }

    /// Something odd about a direction's segments.
    pub(super) fn note(&mut self, side: Side, at: Moment, service: &str, note: Note) {
        let limit = |limit| EventKind::Limit { limit };
        let (kind, offset, length, text) = match note {
            Note::Conflict { offset } => {
                let text = "sent twice with different bytes: the first captured ones stay (said once in a direction)";
                (EventKind::Remark, Some(offset), None, text)
            }
            Note::Late { offset, len } => {
                let text = "bytes came after they had been given up as never captured (said once in a direction)";
                (EventKind::Remark, Some(offset), Some(len), text)
            }
            Note::Implausible { len } => {
                let text = "a segment too far from all others is left out (said once in a direction)";
                (EventKind::Remark, None, Some(len), text)
            }
            Note::StreamLimit => {
                let text = "too many bytes wait for missing ones in this direction (--max-stream): these are given up";
                (limit("max-stream"), None, None, text)
            }
            Note::TotalLimit => {
                let text = "too many bytes wait for missing ones in all streams (--max-total): these are given up";
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
                let text = "too many IP fragments wait for others: what follows is only the beginning of a packet";
                (limit("fragments"), None, None, text)
            }
            // The stream's end, which follows, says enough.
            Note::FinAssumed => return,
        };
        let event = Event { kind, service: service.to_string(), from: side, offset, length, text: text.into() };
        self.event(at, event);
    }

    /// The stream was ended because there were too many.
    pub(super) fn too_many(&mut self, side: Side, at: Moment, service: &str) {
        let text = "too many streams at once: this one, idle for longest, is taken for ended".to_string();
        self.say(side, at, service, EventKind::Limit { limit: "streams" }, text);
    }

    /// A datagram of which so many bytes are there and so many more were not captured.
    pub(super) fn cut_datagram(&mut self, from: Side, at: Moment, service: &str, (there, missing): (u64, u64)) {
        let text =
            format!("{missing} more bytes of this datagram were not captured, or only without those before them");
        let (offset, length) = (Some(there), Some(missing));
        self.event(at, Event { kind: EventKind::Gap, service: service.to_string(), from, offset, length, text });
    }

    /// An event that is about no bytes.
    fn say(&mut self, from: Side, at: Moment, service: &str, kind: EventKind, text: String) {
        self.event(at, Event { kind, service: service.to_string(), from, offset: None, length: None, text });
    }

    /// The end of a direction.
    pub(super) fn stream_end(&mut self, side: Side, at: Moment, service: &str, how: End) {
        if how == End::Evicted {
            self.too_many(side, at, service);
        }
        let counts = self.counts.get(side.index()).copied().unwrap_or_default();
        let text = match how {
            End::Fin => "closed",
            End::Rst => "reset",
            End::CaptureEnd => "still open at the capture's end",
            End::Evicted => "idle for longest when there were too many streams",
            End::Replaced => "a new connection began between the same ends",
        };
        self.record(side, at, service, Body::StreamEnd { text, counts });
    }

    fn record(&mut self, from: Side, at: Moment, service: &str, body: Body<'_>) -> u64 {
        let record = self.next(from, at, service, body);
        self.out.record(&record);
        record.number
    }

    /// The next record.
    fn next<'r, B>(&mut self, from: Side, at: Moment, service: &'r str, body: B) -> Record<'r, B> {
        self.summary.records += 1;
        let (src, dst) = match from {
            Side::Client => (self.ends.client, self.ends.server),
            Side::Server => (self.ends.server, self.ends.client),
        };
        Record {
            number: self.summary.records,
            at,
            transport: self.key.transport,
            stream: self.key.number,
            src,
            dst,
            from,
            protocol: self.protocol,
            service,
            body,
        }
    }
}

impl<O: Output> Emit for Desk<'_, O> {
    fn message(&mut self, at: Moment, message: &Message<'_>, tables: &Tables, tree: &Tree) -> u64 {
        self.summary.messages += 1;
        self.summary.problems += tree.problems().len() as u64;
        let (opaque, undecoded) = shares(tree);
        let explained = (message.bytes.len() as u64).saturating_sub(opaque + undecoded);
        self.count(message.from, |c| {
            c.explained += explained;
            c.opaque += opaque;
            c.undecoded += undecoded;
        });
        self.record(message.from, at, message.service, Body::Message { message, tables, tree })
    }

    fn spent(&mut self, tree: &mut Tree) {
        self.out.spent(tree);
    }

    fn outline(&mut self, at: Moment, message: &Message<'_>, id: MessageId, tables: &Tables, outline: &Outline) -> u64 {
        self.summary.messages += 1;
        self.summary.problems += outline.problems().len() as u64;
        self.count(message.from, |c| c.explained += message.bytes.len() as u64);
        let record = self.next(message.from, at, message.service, Outlined { message, id, tables, outline });
        self.out.outline(&record);
        record.number
    }

    fn event(&mut self, at: Moment, event: Event) {
        let length = event.length.unwrap_or(0);
        match event.kind {
            EventKind::Gap => self.count(event.from, |c| c.lost += length),
            EventKind::Undecoded => self.count(event.from, |c| c.undecoded += length),
            EventKind::Resync { passed_over } => self.count(event.from, |c| c.undecoded += passed_over),
            _ => {}
        }
        self.record(event.from, at, &event.service, Body::Event(&event));
    }

    fn account(&mut self, from: Side, share: Share, bytes: u64) {
        self.count(from, |c| match share {
            Share::Closed => c.closed += bytes,
            Share::Opaque => c.opaque += bytes,
        });
    }

    fn plaintext(&mut self, from: Side, offset: u64, bytes: &[u8]) {
        self.out.plaintext(&self.key, from, offset, bytes);
    }

    fn session_key(&mut self, line: &SessionLine) {
        self.out.session_key(line);
    }
}

/// How many of a message's captured bytes are opaque, and how many no field claims or explains. A region with content of its own counts in
/// proportion to that content.
pub(crate) fn shares(tree: &Tree) -> (u64, u64) {
    if tree.is_plain() {
        return (0, 0);
    }
    let mut bits = (0u64, 0u64);
    let nodes = tree.nodes();
    let mut at = 0;
    while let Some(node) = nodes.get(at) {
        at += 1;
        if node.has(mark::OWN_BUFFER) {
            let (opaque, undecoded, all) = content(tree, at as u32, node.end);
            let part = |n: u64| (u64::from(node.bits) * n).div_ceil(all.max(1));
            bits.0 += part(opaque);
            // Where nothing came of it, nothing of it is explained.
            bits.1 += if all == 0 { u64::from(node.bits) } else { part(undecoded) };
            at = node.end as usize;
        } else if node.buffer == Buffer::CAPTURED {
            if node.kind == Kind::Undecoded || node.has(mark::UNEXPLAINED) {
                bits.1 += u64::from(node.bits);
            } else if node.has(mark::OPAQUE) {
                bits.0 += u64::from(node.bits);
                at = node.end as usize;
            }
        }
    }
    (bits.0 / 8, bits.1.div_ceil(8))
}

/// Opaque, undecoded and all bits of a made buffer's nodes.
fn content(tree: &Tree, first: u32, end: u32) -> (u64, u64, u64) {
    let nodes = tree.nodes().get(first as usize..end as usize).unwrap_or(&[]);
    let mut sums = (0, 0, 0);
    for node in nodes.iter().filter(|n| !matches!(n.kind, Kind::Struct | Kind::List)) {
        let bits = u64::from(node.bits);
        sums.2 += bits;
        if node.kind == Kind::Undecoded || node.has(mark::UNEXPLAINED) {
            sums.1 += bits;
        } else if node.has(mark::OPAQUE) {
            sums.0 += bits;
        }
    }
    sums
}
