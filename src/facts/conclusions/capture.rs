//! What is wrong with the capture itself: frames that were cut or dropped, one direction only, a
//! beginning that is missing, a clock that went back, files out of order, nothing that is known.

use super::numbered::{ALONE, missing_acks, missing_at_end};
use super::watch::StreamWatch;
use super::words::{clock, length, listed, percent};
use super::{Blame, Conclusion, EndedStream, Kind, MAX_FINDINGS, SessionNames, StreamRef, Weight};
use crate::capture::Moment;
use crate::digits::{counted, plural};
use crate::session::{Side, Transport};

/// The most ports, files and connections that a sentence lists.
const LISTED: usize = 5;
/// Segments of one side, one after the other, behind a gap of the other side that is missing.
const SILENT: u64 = 2;
/// What lacks an acknowledgement is sent again within so many nanoseconds.
const SENT_AGAIN: i64 = 1_000_000_000;
/// So many bytes in a hundred that were never captured are more than a nuisance.
const MUCH: u64 = 1;

/// What is known of the whole capture at its end.
#[derive(Clone, Debug, Default)]
pub struct CaptureFacts {
    /// Frames of any kind.
    pub frames: u64,
    /// Frames that a snap length cut.
    pub cut: u64,
    /// The first of them, and how many bytes of it were captured.
    pub first_cut: u64,
    /// How many bytes of it were captured.
    pub cut_to: u64,
    /// How many bytes all of them lack.
    pub cut_bytes: u64,
    /// Frames that the capturing program says it dropped.
    pub dropped: u64,
    /// Why frames were not read, and how many of each reason.
    pub not_read: Vec<NotReadFrames>,
    /// The first frame that is earlier than one before it by more than the disorder of a capture.
    pub back: Option<u64>,
    /// By how many nanoseconds, at most.
    pub back_by: i64,
    /// Payload of the recognised streams.
    pub payload: u64,
    /// TCP and UDP conversations that no protocol recognised.
    pub foreign: [u64; 2],
    /// Those of them with packets of one end only.
    pub one_sided: u64,
    /// Those of them that begin as TLS does.
    pub tls: u64,
    /// Those of them that began before the capture.
    pub joined_late: u64,
    /// Their ports, those with most bytes first.
    pub ports: Vec<PassedPort>,
    /// The files.
    pub files: FilesFacts,
}

/// A port whose conversations no protocol recognised.
#[derive(Clone, Copy, Debug)]
pub struct PassedPort {
    /// TCP or UDP.
    pub transport: Transport,
    /// The server's port, as far as the packets tell.
    pub port: u16,
    /// How many conversations.
    pub conversations: u64,
    /// Their payload, in bytes.
    pub bytes: u64,
    /// The protocol whose servers are usually there.
    pub usual: Option<&'static str>,
}

/// Frames that were not read for one reason.
#[derive(Clone, Debug)]
pub struct NotReadFrames {
    /// What is in them, in words.
    pub what: String,
    /// How many.
    pub count: u64,
    /// Whether packets may be in them.
    pub may_hide_packets: bool,
    /// Whether Wireshark can take the packets out of them.
    pub is_convertible: bool,
}

/// In which order files were read, and how they lie to each other.
#[derive(Clone, Debug, Default)]
pub struct FilesFacts {
    /// How many there are.
    pub count: u64,
    /// Frames that the capturing program says it dropped.
    pub dropped: u64,
    /// Where they were read in another order than given: their names in the order of reading.
    pub sorted: Vec<String>,
    /// Files that begin before the last frame of the one before them.
    pub overlaps: Vec<FileOverlap>,
}

/// Two files, read one after the other, that overlap in time.
#[derive(Clone, Debug)]
pub struct FileOverlap {
    /// The first one that was read.
    pub earlier: String,
    /// The other one.
    pub later: String,
    /// For how many nanoseconds they overlap.
    pub nanos: i64,
    /// The other one begins before the first one does.
    pub reversed: bool,
}

/// What was recognised.
pub(super) struct Seen {
    pub(super) streams: u64,
    pub(super) messages: u64,
}

impl CaptureFacts {
    pub(super) fn conclude(&self, seen: &Seen, gaps: &Gaps, all: &mut Vec<Conclusion>) {
        if self.frames == 0 {
            return;
        }
        let nothing = seen.streams == 0;
        self.snap_length(nothing, seen, gaps, all);
        self.drops(gaps, all);
        self.encapsulation(nothing, all);
        if nothing {
            all.push(self.nothing_recognised());
        }
        self.order(all);
    }

    fn snap_length(&self, nothing: bool, seen: &Seen, gaps: &Gaps, all: &mut Vec<Conclusion>) {
        if self.cut == 0 {
            return;
        }
        let lacks = nothing || gaps.bytes > 0 || seen.messages == 0;
        let weight = if lacks { Weight::Stop } else { Weight::Hint };
        let what = if lacks { "" } else { ", none of what was recognised" };
        let text = format!(
            "{} of {} {} captured, to {} bytes: {} bytes are missing{what}; tcpdump -s 0 keeps \
             frames whole",
            self.cut,
            counted(self.frames, "frame"),
            plural(self.cut, "was cut when it was", "were cut when they were"),
            self.cut_to,
            self.cut_bytes
        );
        let conclusion = Conclusion::new(weight, Kind::SnapLength, text)
            .of(Blame::Capture)
            .showing(Vec::new(), vec![self.first_cut])
            .sized(self.cut);
        all.push(conclusion.more("moulsniff … --oneline -Y 'event == gap'"));
    }

    fn drops(&self, gaps: &Gaps, all: &mut Vec<Conclusion>) {
        if self.dropped == 0 {
            return;
        }
        let missed = gaps.bytes > 0;
        let what = if missed {
            format!("; {} of recognised connections are missing", counted(gaps.bytes, "byte"))
        } else {
            "; no recognised connection lacks bytes".to_string()
        };
        let weight = if missed { Weight::Stop } else { Weight::Hint };
        let text = format!(
            "the capturing program dropped {}, as the capture says{what}",
            counted(self.dropped, "frame")
        );
        let conclusion =
            Conclusion::new(weight, Kind::Dropped, text).of(Blame::Capture).sized(self.dropped);
        all.push(conclusion.more("moulsniff … --oneline -Y 'event == gap'"));
    }

    fn encapsulation(&self, nothing: bool, all: &mut Vec<Conclusion>) {
        let hidden = self.not_read.iter().filter(|reason| reason.may_hide_packets);
        let unread: u64 = hidden.clone().map(|reason| reason.count).sum();
        if unread == 0 {
            return;
        }
        let weight = if nothing {
            Weight::Stop
        } else if unread * 2 > self.frames {
            Weight::Trouble
        } else {
            Weight::Hint
        };
        let kinds: Vec<String> =
            hidden.clone().map(|reason| format!("{} {}", reason.count, reason.what)).collect();
        let text = format!(
            "{unread} of {} {} not read, in which there may be packets: {}",
            counted(self.frames, "frame"),
            plural(unread, "was", "were"),
            listed(&kinds, LISTED)
        );
        let more = if hidden.clone().any(|reason| reason.is_convertible) {
            "tshark -r … -U IP -w OUT.pcapng"
        } else {
            "capinfos …"
        };
        let conclusion =
            Conclusion::new(weight, Kind::Encapsulation, text).of(Blame::Capture).sized(unread);
        all.push(conclusion.more(more));
    }

    /// Why nothing was recognised. What begins before the capture, or is heard in one direction
    /// only, may be of a known protocol all the same.
    fn nothing_recognised(&self) -> Conclusion {
        let [tcp, udp] = self.foreign;
        let all = tcp + udp;
        let which = if all == 1 {
            "the one conversation".to_string()
        } else {
            format!("all {all} conversations")
        };
        let (kind, head, advice) = if all == 0 {
            let frames = counted(self.frames, "frame");
            (Kind::NothingRecognised, format!("no TCP or UDP payload in {frames}"), "")
        } else if self.one_sided == all {
            let head = format!("one direction alone was captured of {which}");
            (Kind::OneDirection, head, ": capture where both directions pass")
        } else if self.joined_late == all {
            let advice = ": start to capture before the client connects, since encrypted \
                          connections are known by their beginning";
            (Kind::JoinedLate, format!("{which} began before the capture"), advice)
        } else {
            let head = format!("{tcp} TCP and {udp} UDP conversations are of other protocols");
            (Kind::NothingRecognised, head, "")
        };
        let mut text = format!("nothing was recognised: {head}");
        let port = |p: &PassedPort| {
            let (word, bytes) = (p.transport.word(), counted(p.bytes, "byte"));
            format!(
                "{word} port {} ({}, {bytes})",
                p.port,
                counted(p.conversations, "conversation")
            )
        };
        let ports: Vec<String> = self.ports.iter().map(port).collect();
        if !ports.is_empty() {
            text.push_str(&format!(", {}", listed(&ports, LISTED)));
        }
        let not_read: Vec<String> = self
            .not_read
            .iter()
            .map(|reason| format!("{} {}", reason.count, reason.what))
            .collect();
        if !not_read.is_empty() {
            text.push_str(&format!("; frames without one: {}", listed(&not_read, LISTED)));
        }
        for (n, what) in [
            (self.joined_late, "began before the capture"),
            (self.one_sided, "heard in one direction only"),
            (self.tls, "encrypted with TLS"),
        ] {
            if n > 0 && kind == Kind::NothingRecognised {
                text.push_str(&format!(", {n} {what}"));
            }
        }
        text.push_str(advice);
        let usual = self.ports.iter().find_map(|port| Some((port, port.usual?)));
        let more = usual.map_or_else(
            || "moulsniff … --decode-as tcp:PORT=PROTOCOL".to_string(),
            |(at, protocol)| {
                format!("moulsniff … --decode-as {}:{}={protocol}", at.transport.word(), at.port)
            },
        );
        let conclusion = Conclusion::new(Weight::Stop, kind, text);
        conclusion.of(Blame::Capture).more(more)
    }

    fn order(&self, all: &mut Vec<Conclusion>) {
        let files = &self.files;
        let overlap = files.overlaps.first();
        if !files.sorted.is_empty() {
            let text = format!(
                "the files were read in the order of their first frames, not as given: {}",
                listed(&files.sorted, LISTED)
            );
            let conclusion =
                Conclusion::new(Weight::Hint, Kind::FileOrder, text).of(Blame::Capture);
            all.push(conclusion.more("moulsniff … --as-given"));
        }
        if let Some(first) = overlap {
            let FileOverlap { earlier, later, nanos, .. } = first;
            let further = match files.overlaps.len() {
                1 => String::new(),
                n => format!(", and {}", counted(n - 1, "more pair")),
            };
            let reversed = files.overlaps.iter().any(|overlap| overlap.reversed);
            let (weight, text, more) = if reversed {
                let text = format!(
                    "the files were not read in the order of time: {later} begins before \
                     {earlier}{further}"
                );
                (Weight::Stop, text, "moulsniff …")
            } else {
                let text = format!(
                    "{earlier} and {later} overlap in time by {}{further}: two captures of the \
                     same traffic are to be merged by time first",
                    length(*nanos)
                );
                (Weight::Trouble, text, "mergecap -w merged.pcapng …")
            };
            let conclusion = Conclusion::new(weight, Kind::FileOrder, text).of(Blame::Capture);
            all.push(conclusion.more(more));
        }
        let Some(frame) = self.back.filter(|_| overlap.is_none()) else { return };
        let (kind, why, more) = match files.count {
            ..=1 => (
                Kind::Clock,
                "the clock of the capturing machine was set back, or frames are out of order",
                "reordercap … sorted.pcapng",
            ),
            _ => (Kind::FileOrder, "the files are not in the order of time", "moulsniff …"),
        };
        let text = format!(
            "frame {frame} is earlier than one before it, by up to {}: {why}",
            length(self.back_by)
        );
        let conclusion = Conclusion::new(Weight::Trouble, kind, text)
            .of(Blame::Capture)
            .showing(Vec::new(), vec![frame])
            .sized(u64::try_from(self.back_by).unwrap_or(0));
        all.push(conclusion.more(more));
    }
}

/// A stream of which one direction is missing.
struct OneDirection {
    stream: StreamRef,
    /// The side that is missing.
    side: Side,
    /// It is missing from the beginning on.
    from_the_start: bool,
    /// Its last message, if there is one.
    since: Option<Moment>,
    /// Bytes of it that were acknowledged.
    bytes: u64,
    /// Datagrams of it that were acknowledged.
    datagrams: u64,
    /// Messages of the other side that it must have acknowledged.
    unanswered: u64,
    /// For so many nanoseconds, the other side did not send bytes again that only the missing side
    /// can have acknowledged.
    unacknowledged: i64,
    record: u64,
}

/// Bytes that were never captured.
#[derive(Default)]
pub(super) struct Gaps {
    /// Of all streams.
    pub(super) bytes: u64,
    /// Of streams of which no direction is missing.
    scattered: u64,
    gaps: u64,
    streams: u64,
    first: Option<(u64, Moment)>,
    records: Vec<u64>,
    frames: Vec<u64>,
    missing: Vec<OneDirection>,
    /// Streams that began before the capture, and are read all the same.
    late: u64,
    late_services: Vec<String>,
}

impl Gaps {
    /// A stream ended. Returns whether something of it is missing, and the side of which all is.
    pub(super) fn stream(
        &mut self,
        stream: &StreamRef,
        watch: &StreamWatch,
        ended: &EndedStream<'_>,
    ) -> (bool, Option<Side>) {
        // Of UDP the messages of both sides tell it.
        let tells = stream.id.0 == Transport::Tcp || ended.traffic.sides.iter().all(|s| s.heard);
        if !ended.traffic.whole && watch.closed.is_none() && tells {
            self.late += 1;
            if self.late_services.len() < LISTED && !self.late_services.contains(&stream.service) {
                self.late_services.push(stream.service.clone());
            }
        }
        let bytes: u64 = watch.gaps.iter().map(|gaps| gaps.bytes).sum();
        self.bytes += bytes;
        let missing = [Side::Client, Side::Server]
            .into_iter()
            .find_map(|side| one_direction(stream, side, watch, ended));
        if let Some(missing) = missing {
            let side = missing.side;
            if self.missing.len() < MAX_FINDINGS {
                self.missing.push(missing);
            }
            return (true, Some(side));
        }
        if bytes == 0 {
            return (false, None);
        }
        self.scattered += bytes;
        self.streams += 1;
        for gaps in &watch.gaps {
            self.gaps += gaps.count;
            let Some((record, at)) = gaps.first else { continue };
            if self.first.is_none_or(|(known, _)| record < known) {
                self.first = Some((record, at));
            }
            if self.records.len() < super::MAX_RECORDS {
                self.records.push(record);
                self.frames.push(at.frame);
            }
        }
        (true, None)
    }

    pub(super) fn conclude(
        &self,
        capture: &CaptureFacts,
        names: &SessionNames,
        all: &mut Vec<Conclusion>,
    ) {
        self.one_direction(names, all);
        // A snap length or the capturing program itself explains them already.
        if self.scattered > 0 && capture.cut == 0 && capture.dropped == 0 {
            let whole = capture.payload + self.scattered;
            let much = self.scattered * 100 >= whole * MUCH;
            let weight = if much { Weight::Stop } else { Weight::Trouble };
            let since =
                self.first.map_or(String::new(), |(_, at)| format!(" from {} on", clock(at.time)));
            let text = format!(
                "{} of {} were never captured{since} ({} in {}), {} of all: frames are missing in \
                 the capture, their receivers have them",
                counted(self.scattered, "byte"),
                counted(self.streams, "connection"),
                counted(self.gaps, "gap"),
                plural(self.streams, "it", "them"),
                percent(self.scattered, whole)
            );
            let conclusion = Conclusion::new(weight, Kind::Dropped, text)
                .of(Blame::Capture)
                .showing(self.records.clone(), self.frames.clone())
                .sized(self.scattered);
            all.push(conclusion.more("moulsniff … --oneline -Y 'event == gap'"));
        }
        if self.late > 0 {
            let text = format!(
                "{} ({}) began before the capture: what was said before is not known",
                counted(self.late, "connection"),
                listed(&self.late_services, LISTED)
            );
            let conclusion =
                Conclusion::new(Weight::Hint, Kind::JoinedLate, text).of(Blame::Capture);
            all.push(conclusion.sized(self.late).more("moulsniff sessions …"));
        }
    }

    fn one_direction(&self, names: &SessionNames, all: &mut Vec<Conclusion>) {
        for side in [Side::Client, Side::Server] {
            let own: Vec<&OneDirection> =
                self.missing.iter().filter(|missing| missing.side == side).collect();
            let Some(first) = own.first() else { continue };
            let streams: Vec<String> = own
                .iter()
                .map(|missing| {
                    let (transport, number) = missing.stream.id;
                    format!("{} {number}, {}", transport.word(), missing.stream.service)
                })
                .collect();
            let since = match first.since {
                _ if first.from_the_start => "nothing".to_string(),
                Some(at) => format!("from {} on nothing", clock(at.time)),
                None => "at the end nothing".to_string(),
            };
            let bytes: u64 = own.iter().map(|missing| missing.bytes).sum();
            let datagrams: u64 = own.iter().map(|missing| missing.datagrams).sum();
            let acknowledged: Vec<String> = [(bytes, "byte"), (datagrams, "datagram")]
                .into_iter()
                .filter(|(n, _)| *n > 0)
                .map(|(n, noun)| counted(n, noun))
                .collect();
            let unanswered: u64 = own.iter().map(|missing| missing.unanswered).sum();
            let unacknowledged = own.iter().map(|missing| missing.unacknowledged).max();
            let unacknowledged = unacknowledged.filter(|nanos| *nanos > 0);
            let lacks = if let Some(nanos) = unacknowledged.filter(|_| acknowledged.is_empty()) {
                format!(
                    ", although the {} sent nothing again within {}, so the {} acknowledged it",
                    side.other().word(),
                    length(nanos),
                    side.word()
                )
            } else if acknowledged.is_empty() && unanswered > 0 {
                format!(
                    ", although {} of the {} {} hardly ever sent again, so the {} acknowledged {}",
                    counted(unanswered, "message"),
                    side.other().word(),
                    plural(unanswered, "was", "were"),
                    side.word(),
                    plural(unanswered, "it", "them")
                )
            } else if acknowledged.is_empty() {
                String::new()
            } else {
                let were = plural(bytes + datagrams, "was", "were");
                format!(", although {} of it {were} acknowledged", listed(&acknowledged, LISTED))
            };
            let udp = first.stream.id.0 == Transport::Udp;
            let doubt = udp && datagrams == 0 && first.from_the_start;
            let why = if doubt {
                "either it never answered, or only one direction was captured"
            } else {
                "capture where both directions pass"
            };
            let text = format!(
                "{since} that the {} sent was captured of {} ({}){lacks}: {why}",
                side.word(),
                counted(own.len(), "connection"),
                listed(&streams, LISTED)
            );
            let records = own.iter().map(|missing| missing.record).collect();
            let frames = own.iter().filter_map(|missing| Some(missing.since?.frame)).collect();
            let session = (own.len() == 1)
                .then(|| names.of(&first.stream, first.record).map(|session| session.number))
                .flatten();
            let conclusion = Conclusion::new(Weight::Stop, Kind::OneDirection, text)
                .of(Blame::Capture)
                .showing(records, frames)
                .in_session(session)
                .sized(own.len() as u64);
            all.push(conclusion.more("moulsniff sessions …"));
        }
    }
}

/// Whether a side of a stream is missing, from the beginning on or later.
fn one_direction(
    stream: &StreamRef,
    side: Side,
    watch: &StreamWatch,
    ended: &EndedStream<'_>,
) -> Option<OneDirection> {
    let place = side.index();
    let traffic = ended.traffic.sides.get(place)?;
    let gaps = watch.gaps.get(place)?;
    let payload = ended.counts.get(place).map_or(0, |counts| counts.payload);
    let from_the_start = !traffic.heard || payload == 0 && gaps.bytes > 0;
    let datagrams = missing_at_end(ended, side);
    let unanswered = missing_acks(ended, side);
    let behind_gap = gaps.is_last && gaps.bytes > 0 && traffic.unheard >= SILENT;
    let alone = traffic.unheard >= ALONE;
    let unacknowledged = ended.traffic.sides.get(side.other().index());
    let unacknowledged = unacknowledged.map_or(0, |other| other.unacknowledged);
    let unacknowledged = if alone && unacknowledged >= SENT_AGAIN { unacknowledged } else { 0 };
    let later = behind_gap || datagrams > 0 || unanswered > 0 || unacknowledged > 0;
    if !from_the_start && !later {
        return None;
    }
    let since = watch.last.get(place).copied().flatten().map(|(at, _)| at);
    let own = gaps.first.map(|(record, _)| record);
    let last = watch.last.iter().flatten().map(|(_, record)| *record).max();
    Some(OneDirection {
        stream: stream.clone(),
        side,
        from_the_start,
        since,
        bytes: gaps.bytes,
        datagrams,
        unanswered,
        unacknowledged,
        record: own.or(last).unwrap_or(0),
    })
}
