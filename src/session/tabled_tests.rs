//! Sessions by declaration, of a small protocol that is written here: every framing, damage, and
//! where framing is found again.

#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use crate::session::{Counts, CountsFrom, Emit, LengthField, LengthOrder, Options, Settings, Unit};
use crate::table::{Evaluator, TableSource};
use crate::tree::Tree;

use Side::{Client, Server};

const TABLE: &str = "protocol tiny

service plain { number: u8 }
service counted { number: u8, length: u8 whole }

/// Asks something.
message plain client 1 Ask { trans: u8 transaction }
/// Answers it.
message plain server 2 Answer answers Ask { trans: u8 transaction, text: utf8[u8] }
/// Asks without a transaction.
message plain client 3 Next {}
/// Answers the oldest `Next`.
message plain server 4 Here answers Next { place: u8 }

/// A line of text.
message counted client 9 Line { text: bytes[*] }
";

/// What a session said: messages with their offset and the record they answer, events with theirs
/// and their length.
#[derive(Default)]
struct Emitted {
    said: Vec<String>,
    messages: u64,
    bytes: Counts,
}

impl Emit for Emitted {
    fn message(&mut self, _: Moment, message: &Message<'_>, _: &Tables, tree: &mut Tree) -> u64 {
        self.messages += 1;
        let reply =
            message.reply.map_or(String::new(), |reply| format!(" replies to {}", reply.record));
        self.said.push(format!("{} at {}{reply}", message.name.raw(), message.offset));
        self.bytes.add(Counts::of_message(tree, message.bytes.len()));
        self.messages
    }

    fn event(&mut self, _: Moment, event: Event) {
        self.bytes.add(event.counts());
        assert_eq!(event.cut(), 0, "the bytes that became no message are shown: {event:?}");
        match event.kind {
            EventKind::Undecoded => {
                self.said.push(format!(
                    "{} undecoded at {}",
                    event.length.unwrap(),
                    event.offset.unwrap()
                ));
            }
            EventKind::Resync { passed_over } => {
                self.said.push(format!("{passed_over} passed over"))
            }
            EventKind::Limit { limit } => self.said.push(limit.to_string()),
            EventKind::Unanswered { request, message, .. } => {
                self.said.push(format!("{message} {request} unanswered"))
            }
            _ => {}
        }
    }

    fn account(&mut self, _: Side, share: Share, bytes: u64) {
        self.bytes.payload += bytes;
        self.said.push(format!("{bytes} {share:?}"));
    }
}

/// What happens to a connection.
#[derive(Clone, Copy)]
enum Happening<'a> {
    Data(Side, &'a [u8]),
    Gap(Side, u64),
    End(Side),
    Datagram(Side, &'a [u8]),
}

fn emitted_by(
    service: &str,
    framing: Framing,
    resync: Resync,
    parts: &[Happening<'_>],
) -> Vec<String> {
    let source = TableSource { name: "tiny.table".into(), text: TABLE.into() };
    let tables = Tables::load("tiny", vec![source], &[]).unwrap_or_else(|error| panic!("{error}"));
    let service = tables.service_named(service);
    let declared = Declaration { name: "tiny".into(), service, framing, resync, remark: None };
    let mut session = TableSession::new(declared, &tables);
    let mut emitted = Emitted::default();
    let options = Options { max_message: 200, ..Options::default() };
    let mut context = Context {
        tables: &tables,
        evaluator: &mut Evaluator::default(),
        tree: &mut Tree::new(),
        settings: &Settings::NONE,
        sequences: [None; 2],
        options: &options,
        emit: &mut emitted,
    };
    let mut offsets = [0; 2];
    let mut sent = 0;
    for (part, frame) in parts.iter().zip(1..) {
        let at = Moment { frame, ..Moment::default() };
        match part {
            Happening::Data(side, bytes) => {
                session.data(*side, *side.of(&mut offsets), bytes, at, &mut context);
                *side.of(&mut offsets) += bytes.len() as u64;
                sent += bytes.len() as u64;
            }
            Happening::Gap(side, length) => {
                session.gap(*side, *side.of(&mut offsets), *length, at, &mut context);
                *side.of(&mut offsets) += length;
            }
            Happening::End(side) => session.end(*side, at, &mut context),
            Happening::Datagram(side, bytes) => {
                session.datagram(*side, bytes, 0, at, &mut context);
                sent += bytes.len() as u64;
            }
        }
    }
    for side in [Client, Server] {
        session.end(side, Moment::default(), &mut context);
    }
    assert_eq!(emitted.bytes.payload, sent, "every byte is accounted for: {:?}", emitted.said);
    emitted.said
}

fn field(at: usize, counts: CountsFrom) -> Framing {
    Framing::Length(LengthField { at, size: 1, order: LengthOrder::Big, unit: Unit::Bytes, counts })
}

#[test]
fn layouts_frame_a_stream_however_it_is_cut_and_replies_find_their_requests() {
    let client = b"\x01\x07\x01\x08";
    let server = b"\x02\x08\x02hi\x02\x07\x00";
    let want = ["Ask at 0", "Ask at 2", "Answer at 0 replies to 2", "Answer at 5 replies to 1"];
    for step in 1..6 {
        let mut parts: Vec<Happening<'_>> =
            client.chunks(step).map(|bytes| Happening::Data(Client, bytes)).collect();
        parts.extend(server.chunks(step).map(|bytes| Happening::Data(Server, bytes)));
        assert_eq!(
            emitted_by("plain", Framing::Layout, Resync::NextPiece, &parts),
            want,
            "in pieces of {step}"
        );
    }
}

#[test]
fn a_reply_without_a_transaction_belongs_to_the_oldest_request() {
    let parts = [
        Happening::Data(Client, b"\x03\x03"),
        Happening::Data(Server, b"\x04\x01\x04\x02\x04\x03"),
    ];
    let want =
        ["Next at 0", "Next at 1", "Here at 0 replies to 1", "Here at 2 replies to 2", "Here at 4"];
    assert_eq!(emitted_by("plain", Framing::Layout, Resync::NextPiece, &parts), want);
}

#[test]
fn behind_an_unknown_message_the_next_piece_is_tried() {
    let parts =
        [Happening::Data(Client, b"\x01\x07\xee\x01\x01"), Happening::Data(Client, b"\x01\x08")];
    let want = ["Ask at 0", "3 passed over", "Ask at 5", "Ask 1 unanswered", "Ask 2 unanswered"];
    assert_eq!(emitted_by("plain", Framing::Layout, Resync::NextPiece, &parts), want);
}

#[test]
fn behind_a_gap_a_magic_value_is_looked_for() {
    let parts = [
        Happening::Data(Client, b"\x01\x07\x01"),
        Happening::Gap(Client, 3),
        Happening::Data(Client, b"\x09\x09\x01\x08"),
    ];
    let want = [
        "Ask at 0",
        "1 undecoded at 2",
        "2 passed over",
        "Ask at 8",
        "Ask 1 unanswered",
        "Ask 2 unanswered",
    ];
    assert_eq!(emitted_by("plain", Framing::Layout, Resync::Magic(vec![1]), &parts), want);
}

#[test]
fn a_length_field_frames_messages_and_what_is_left_in_a_frame_is_undecoded() {
    let parts = [Happening::Data(Client, b"\x09\x05abc\x09\x02\x77\x03z\x01")];
    let want = ["Line at 0", "Line at 5", "3 undecoded at 7", "1 undecoded at 10"];
    assert_eq!(emitted_by("counted", field(1, CountsFrom::Start), Resync::NextPiece, &parts), want);
    let parts = [Happening::Data(Client, b"\x01\x07\x03\x01\x08\x09")];
    let framed = emitted_by("plain", Framing::Fixed(2), Resync::NextPiece, &parts);
    assert_eq!(
        framed,
        ["Ask at 0", "Next at 2", "2 undecoded at 4", "Ask 1 unanswered", "Next 2 unanswered"],
        "what a message leaves of its frame is undecoded within it"
    );
}

#[test]
fn a_length_that_cannot_be_one_or_is_too_long_loses_framing_until_the_next_piece() {
    let parts = [
        Happening::Data(Client, b"\x09\x01"),
        Happening::Data(Client, b"\x09\xff"),
        Happening::Data(Client, b"\x09\x02"),
    ];
    let want = ["2 passed over", "max-message", "2 passed over", "Line at 4"];
    assert_eq!(emitted_by("counted", field(1, CountsFrom::Start), Resync::NextPiece, &parts), want);
}

#[test]
fn delimiters_and_whole_streams_frame_too() {
    let lines = Framing::Delimiter(b"\n".to_vec());
    let parts = [Happening::Data(Client, b"\x01"), Happening::Data(Client, b"\n\x01\x07\n\x01")];
    let want = ["Ask at 0", "Ask at 2", "1 undecoded at 5", "Ask 2 unanswered"];
    assert_eq!(
        emitted_by("plain", lines, Resync::NextPiece, &parts),
        want,
        "the first one and the rest are cut short"
    );
    let parts = [Happening::Data(Client, b"\x01"), Happening::Data(Client, b"\x07")];
    assert_eq!(
        emitted_by("plain", Framing::Whole, Resync::NextPiece, &parts),
        ["Ask at 0", "Ask 1 unanswered"]
    );
}

#[test]
fn a_datagram_holds_one_message_or_several() {
    let parts = [
        Happening::Datagram(Client, b"\x01\x07\x01\x08"),
        Happening::Datagram(Client, b"\x01\x09\x01"),
    ];
    let unanswered = ["Ask 1 unanswered", "Ask 2 unanswered", "Ask 3 unanswered"];
    let want =
        [&["Ask at 0", "Ask at 2", "Ask at 0", "1 undecoded at 2"], &unanswered[..]].concat();
    assert_eq!(emitted_by("plain", Framing::Layout, Resync::NextPiece, &parts), want);
}

#[test]
fn bytes_that_are_left_alone_are_counted_and_nothing_else() {
    let parts = [Happening::Data(Client, b"abc"), Happening::Datagram(Server, b"defg")];
    assert_eq!(
        emitted_by("plain", Framing::LeftAlone, Resync::NextPiece, &parts),
        ["3 Opaque", "4 Opaque"]
    );
}

#[test]
fn what_may_have_been_answered_in_lost_bytes_is_not_called_unanswered() {
    let parts = [
        Happening::Data(Client, b"\x01\x07\x03"),
        Happening::Gap(Server, 5),
        Happening::Data(Client, b"\x01\x08"),
    ];
    let want = ["Ask at 0", "Next at 2", "Ask at 3", "Ask 3 unanswered"];
    assert_eq!(emitted_by("plain", Framing::Layout, Resync::NextPiece, &parts), want);
}

#[test]
fn a_request_to_a_side_that_sends_no_more_is_unanswered_when_its_own_side_ends() {
    let parts = [
        Happening::Data(Client, b"\x01\x07"),
        Happening::End(Server),
        Happening::Data(Client, b"\x01\x08"),
        Happening::End(Client),
    ];
    let want = ["Ask at 0", "Ask 1 unanswered", "Ask at 2", "Ask 2 unanswered"];
    assert_eq!(emitted_by("plain", Framing::Layout, Resync::NextPiece, &parts), want);
}
