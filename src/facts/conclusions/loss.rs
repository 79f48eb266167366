//! Loss: TCP segments that had to be sent again, and what sessions tell of protocols with sequence
//! numbers of their own: datagrams that are missing or were sent again, and acknowledgements of
//! what was never sent.

use super::numbered::{learned_count, missing_at_end, side_of};
use super::words::percent;
use super::{Blame, Conclusion, EndedStream, Kind, MAX_FINDINGS, SessionNames, StreamRef, Weight};
use crate::digits::{counted, plural};
use crate::record::SideTraffic;
use crate::session::{Learned, Side, Transport};

/// So many in a hundred are felt.
const FELT: u64 = 1;
/// Fewer than this say nothing.
const FEW: u64 = 3;

/// What was lost of one side of a stream.
struct Loss {
    stream: StreamRef,
    /// Whose packets, in words.
    of: String,
    side: Option<Side>,
    packets: u64,
    resent: u64,
    lost: u64,
    strange: u64,
    swapped: u64,
    /// Of the lost ones, those that the other side acknowledged.
    unseen: u64,
    frame: u64,
}

/// What was lost.
#[derive(Default)]
pub(super) struct Losses {
    found: Vec<Loss>,
}

impl Losses {
    /// A stream ended. Returns whether something of it was lost.
    pub(super) fn stream(&mut self, stream: &StreamRef, ended: &EndedStream<'_>) -> bool {
        let before = self.found.len();
        let learned = ended.learned.iter().filter(|learned| learned.of_stream);
        let numbered = learned.map(|learned| Loss::of_learned(stream, learned, ended));
        let found = Loss::of_segments(stream, &ended.traffic.sides).into_iter().chain(numbered);
        let found = found.filter(|loss| loss.lost + loss.resent + loss.strange > 0);
        self.found.extend(found.take(MAX_FINDINGS.saturating_sub(before)));
        self.found.len() > before
    }

    pub(super) fn conclude(
        &self,
        names: &SessionNames,
        wanted: &dyn Fn(&StreamRef) -> bool,
        all: &mut Vec<Conclusion>,
    ) {
        for loss in self.found.iter().filter(|loss| wanted(&loss.stream)) {
            loss.conclude(names, all);
        }
    }
}

impl Loss {
    /// TCP segments that were sent again. A probe of the last segment is sent again where nothing
    /// was lost.
    fn of_segments(stream: &StreamRef, [client, server]: &[SideTraffic; 2]) -> Option<Loss> {
        let resent = client.resent + server.resent;
        let of = match [client.resent, server.resent] {
            _ if resent < FEW => return None,
            [_, 0] => "from the client".to_string(),
            [0, _] => "from the server".to_string(),
            [a, b] => format!("({a} from the client, {b} from the server)"),
        };
        let first = [client, server].map(|side| side.first_resent).into_iter();
        Some(Loss {
            stream: stream.clone(),
            of,
            side: None,
            packets: client.packets + server.packets,
            resent,
            lost: 0,
            strange: 0,
            swapped: 0,
            unseen: 0,
            frame: first.filter(|frame| *frame > 0).min().unwrap_or(0),
        })
    }

    fn of_learned(stream: &StreamRef, learned: &Learned, ended: &EndedStream<'_>) -> Loss {
        let count = |wanted: &str| learned_count(learned, wanted);
        let own = learned.name.get(learned.heading..).unwrap_or_default();
        let of = own.trim_start_matches([',', ' ']).to_string();
        let side = side_of(learned);
        // Those at the end are of a direction that is missing.
        let at_end = side.map_or(0, |side| missing_at_end(ended, side));
        Loss {
            stream: stream.clone(),
            of,
            side,
            packets: count("datagrams"),
            resent: count("resends"),
            lost: count("lost").saturating_sub(at_end),
            strange: count("strange_acks"),
            swapped: count("swapped_acks"),
            unseen: count("unseen_acks").saturating_sub(at_end),
            frame: 0,
        }
    }

    fn conclude(&self, names: &SessionNames, all: &mut Vec<Conclusion>) {
        let (transport, number) = self.stream.id;
        let udp = transport == Transport::Udp;
        let noun = if udp { "datagram" } else { "segment" };
        let of = &self.of;
        let stream = format!("{} {number}", transport.word());
        let service = &self.stream.service;
        let ends = self.stream.ends;
        let session = names.of(&self.stream, 0).map(|session| session.number);
        let more = format!(
            "moulsniff … --oneline -Y 'transport == {} and stream == {number}'",
            transport.word()
        );
        let mut add = |weight, kind, blame: Option<Blame>, size, text| {
            let conclusion = Conclusion::new(weight, kind, text)
                .showing(Vec::new(), vec![self.frame])
                .in_session(session)
                .sized(size)
                .more(more.clone());
            all.push(Conclusion { blame, ..conclusion });
        };
        let felt = |n: u64, whole: u64| {
            if n >= FEW && n * 100 >= whole * FELT { Weight::Trouble } else { Weight::Hint }
        };
        if self.lost > 0 {
            let all = self.packets + self.lost;
            // What the other side acknowledged came to it: the capture alone lacks it.
            let in_capture = self.unseen * 2 >= self.lost;
            let (kind, blame, why) = if in_capture {
                let why = format!(
                    "; {} of them {} acknowledged, so the capture lacks them",
                    self.unseen,
                    plural(self.unseen, "was", "were")
                );
                (Kind::Dropped, Blame::Capture, why)
            } else {
                (Kind::Loss, Blame::Network, String::new())
            };
            let text = format!(
                "{} {of} never came to the place of the capture, {} of {all} between {ends} \
                 ({service}, {stream}){why}",
                counted(self.lost, noun),
                percent(self.lost, all)
            );
            add(felt(self.lost, all), kind, Some(blame), self.lost, text);
        }
        if self.resent > 0 {
            let kind = if udp { Kind::Resent } else { Kind::Loss };
            let text = format!(
                "{} {of} {} sent again, {} of {} between {ends} ({service}, {stream}): they or \
                 their acknowledgements were lost",
                counted(self.resent, noun),
                plural(self.resent, "was", "were"),
                percent(self.resent, self.packets),
                self.packets
            );
            add(felt(self.resent, self.packets), kind, Some(Blame::Network), self.resent, text);
        }
        if self.strange > 0 {
            // The other side acknowledged what this one did not send.
            let blame = self.side.map(|side| match side {
                Side::Client => Blame::Server,
                Side::Server => Blame::Client,
            });
            let who = self.side.map_or("one side", |side| side.other().word());
            let swapped = match self.swapped {
                0 => String::new(),
                n if n == self.strange => {
                    ": with the bytes of the numbers in reverse they are right".to_string()
                }
                n => format!(": with the bytes of the numbers in reverse {n} of them are right"),
            };
            let text = format!(
                "the {who} acknowledged {} that {} never sent between {ends} ({service}, \
                 {stream}){swapped}",
                counted(self.strange, noun),
                plural(self.strange, "was", "were"),
            );
            let weight = if self.strange >= FEW || self.swapped > 0 {
                Weight::Trouble
            } else {
                Weight::Hint
            };
            add(weight, Kind::StrangeAcks, blame, self.strange, text);
        }
    }
}
