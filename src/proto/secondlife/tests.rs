//! Datagrams through a session, whole and damaged, and datagrams of other protocols.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::net::SocketAddr;
use std::sync::OnceLock;

use super::SecondLife;
use crate::print::json::{JsonOptions, JsonWriter};
use crate::proto::{LazyTables, Moment, Opening, Protocol, Verdict};
use crate::record::MessageView;
use crate::session::Settings;
use crate::session::{Context, Emit, Ends, Event, Message, Options, Share, Side, Start, Transport};
use crate::table::{Evaluator, Tables, parse_hex};
use crate::tree::{Kind, Node, Tree};

fn tables() -> &'static LazyTables {
    static TABLES: OnceLock<LazyTables> = OnceLock::new();
    TABLES.get_or_init(|| LazyTables::new(&SecondLife, Vec::new()).unwrap())
}

fn nowhere() -> Ends {
    let at = SocketAddr::from(([127, 0, 0, 1], 9000));
    Ends { client: at, server: at }
}

#[derive(Default)]
struct Emitted {
    messages: Vec<String>,
    events: Vec<String>,
}

impl Emit for Emitted {
    fn message(
        &mut self,
        _: Moment,
        message: &Message<'_>,
        tables: &Tables,
        tree: &mut Tree,
    ) -> u64 {
        tiles(tree, message.bytes.len());
        let mut out = Vec::new();
        let mut json = JsonWriter::new(JsonOptions::default());
        json.fields(MessageView { tables, tree, bytes: message.bytes }, &mut out);
        json.problems(MessageView { tables, tree, bytes: message.bytes }, &mut out);
        self.messages.push(format!("{} {}", message.name.raw(), String::from_utf8(out).unwrap()));
        self.messages.len() as u64
    }
    fn event(&mut self, _: Moment, event: Event) {
        self.events.push(event.text);
    }
    fn account(&mut self, _: Side, _: Share, _: u64) {}
}

/// All bytes of the datagram are in a span, none in two.
fn tiles(tree: &Tree, length: usize) {
    let mut at = 0;
    for (_, node) in tree.children(0) {
        assert_eq!(node.start, at, "{:?}", node.kind);
        at += node.bits;
    }
    assert_eq!(at as usize, length * 8);
}

fn emitted_by(datagrams: &[(Side, Vec<u8>)]) -> Emitted {
    let lazy = tables();
    let start = Start {
        ends: nowhere(),
        transport: Transport::Udp,
        whole: true,
        service: None,
        message: None,
    };
    let mut session = SecondLife.session(&start, lazy.get());
    let mut emitted = Emitted::default();
    let mut evaluator = Evaluator::default();
    let mut tree = Tree::new();
    for (side, bytes) in datagrams {
        let mut context = Context {
            tables: lazy.get(),
            evaluator: &mut evaluator,
            tree: &mut tree,
            settings: &Settings::default(),
            sequences: [None; 2],
            options: &Options::default(),
            emit: &mut emitted,
        };
        session.datagram(*side, bytes, 0, Moment::default(), &mut context);
    }
    emitted
}

fn emitted_by_hex(hex: &str) -> Emitted {
    emitted_by(&[(Side::Client, parse_hex(hex).unwrap())])
}

const PING: &str = "00 00000007 00 01 05 09000000";

#[test]
fn header_then_blocks_then_acknowledgements() {
    let emitted = emitted_by_hex("50 00000007 00 01 05 09000000 00000003 00000004 02");
    assert_eq!(
        emitted.messages,
        [
            r#"StartPingCheck {"flags":{"value":80,"names":["ACK","RELIABLE"]},"sequence":7,"PingID":{"PingID":5,"OldestUnacked":9},"acks":[3,4]}"#
        ]
    );
}

#[test]
fn zero_coding_is_undone_in_place() {
    let emitted = emitted_by_hex("80 00000007 00 01 05 09 0003");
    assert!(
        emitted.messages[0].contains(r#""PingID":{"PingID":5,"OldestUnacked":9}}"#),
        "{:?}",
        emitted.messages
    );
}

#[test]
fn an_extra_header_is_taken_behind_the_number() {
    let emitted = emitted_by_hex("00 00000007 04 01 deadbeef 05 09000000");
    assert!(
        emitted.messages[0].contains(r#""sequence":7,"extra":"deadbeef","PingID":{"PingID":5,"#),
        "{:?}",
        emitted.messages
    );
    assert!(emitted.messages[0].contains("an extra header of 4 bytes"));
}

#[test]
fn excess_bytes_are_shown_and_missing_blocks_said() {
    let excess = emitted_by_hex(&format!("{PING} aabb"));
    assert!(excess.messages[0].contains(r#""undecoded":"aabb"}"#), "{:?}", excess.messages);
    let missing = emitted_by_hex("00 00000007 00 01");
    assert!(missing.messages[0].contains("ends before `PingID`"), "{:?}", missing.messages);
    let empty = emitted_by_hex("00 00000007 00 fffffffb");
    assert!(empty.messages[0].contains(r#""Packets":[]}"#), "{:?}", empty.messages);
}

#[test]
fn a_socks_header_is_told_from_a_sequence_number() {
    let behind = emitted_by_hex(&format!("00000001 7f000001 2328 {PING}"));
    let socks = r#"StartPingCheck {"socks":{"reserved":0,"fragment":0,"address_type":1,"address":"127.0.0.1","port":9000},"#;
    assert!(behind.messages[0].starts_with(socks), "{:?}", behind.messages);
    let plain = emitted_by_hex("00 00000105 00 01 05 09000000");
    assert!(plain.messages[0].contains(r#""sequence":261,"#), "{:?}", plain.messages);
}

#[test]
fn what_is_no_message_is_an_event() {
    assert_eq!(emitted_by_hex("40").events, ["too short for a header and a message number"]);
    assert_eq!(emitted_by_hex("00 00000007 00 ffff00").events, ["ends inside the message number"]);
    assert_eq!(
        emitted_by_hex("00 00000007 00 fe 00").events,
        ["no message has the number 254 (0xfe)"]
    );
}

#[test]
fn a_circuit_opens_closes_and_opens_again() {
    let open = parse_hex(
        "40 00000001 00 ffff0003 01000000 00112233445566778899aabbccddeeff \
         00000000000000000000000000000000",
    );
    let close = parse_hex("00 00000002 00 fffffffd");
    let open = open.unwrap();
    let close = close.unwrap();
    let emitted = emitted_by(&[
        (Side::Client, open.clone()),
        (Side::Client, close.clone()),
        (Side::Client, close),
        (Side::Client, open),
    ]);
    let opens = "circuit 1 of session 00112233… opens";
    assert_eq!(emitted.events, [opens, "the circuit closes: CloseCircuit", opens]);
}

/// Datagrams with every form of structure in them: an avatar's update, a chat, a terse update.
fn samples() -> Vec<Vec<u8>> {
    let terse = "80 00000009 00 0f 0001e803 0001e803 ffff 01 3c 5fcfce3c 0002 01 dfd823bc \
                 49d723bc 73f97f3f 50bdb341 7f2a0001 43670800 0143989a d0411b82 6c802c80 ff7fff7f \
                 ff7fff7f ff7fc68c 5bffff7f ff7fff7f 0002";
    let extra = "40 00000007 00 ffff0063 00000000000000000000000000000000 \
                 00000000000000000000000000000000 01 07000000 1000 01 11000000 10 81020304 \
                 000000000000000000000000";
    [
        PING,
        terse,
        extra,
        "90 00000007 00 ffff00010380 0140 00000001 01",
        "10 00000007 00 fffffffb 02 01000000 02000000 00",
    ]
    .iter()
    .map(|hex| parse_hex(hex).unwrap())
    .collect()
}

#[test]
fn datagrams_cut_at_every_byte_and_changed_at_every_bit_are_tiled_all_the_same() {
    for sample in samples() {
        for end in 0..sample.len() {
            emitted_by(&[(Side::Client, sample[..end].to_vec())]);
        }
        for bit in 0..sample.len() * 8 {
            let mut changed = sample.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            emitted_by(&[(Side::Server, changed)]);
        }
    }
}

/// Each message's example as a datagram.
fn example_datagrams(tables: &Tables) -> impl Iterator<Item = Vec<u8>> {
    tables.examples().iter().filter_map(|example| {
        let number = tables.message(example.of.message()?)?.number? as u32;
        let width = match number {
            0..=0xff => 1,
            0x100..=0xffff => 2,
            _ => 4,
        };
        let mut datagram = vec![0, 0, 0, 0, 1, 0];
        datagram.extend(&number.to_be_bytes()[4 - width..]);
        datagram.extend(parse_hex(&tables.example_bytes(example)).unwrap());
        Some(datagram)
    })
}

#[test]
fn the_tree_of_a_datagram_lists_every_field_with_facts() {
    let lazy = tables();
    let tables = lazy.get();
    let layouts = super::datagram::DatagramLayouts::new(tables).unwrap();
    let mut evaluator = Evaluator::default();
    let mut tree = Tree::new();
    let mut complete = 0;
    let mut all = 0;
    for datagram in example_datagrams(tables) {
        tree.clear();
        let form = super::datagram::DatagramForm { socks: false, sender: 0 };
        layouts
            .read(&datagram, form, tables, &mut evaluator, &mut tree)
            .unwrap_or_else(|_| panic!("{datagram:02x?}"));
        // A message with a value that only code reads lists none.
        let Some(listed) =
            tree.telling().map(|fields| fields.map(|(index, _)| index).collect::<Vec<_>>())
        else {
            continue;
        };
        complete += 1;
        // Of a field and its parts with the same facts only the field is listed.
        let has_facts =
            |node: &Node| tables.type_def(node.ty).is_some_and(|def| def.facts.is_some());
        for (index, _) in (0..).zip(tree.nodes()).filter(|(_, node)| has_facts(node)) {
            let inside = |field: &u32| *field <= index && index < tree.get(*field).unwrap().end;
            assert!(listed.iter().any(inside), "node {index} of {datagram:02x?}");
            all += 1;
        }
    }
    assert!(complete > 450 && all > 50, "{complete} {all}");
}

#[test]
fn every_message_is_tiled_wherever_it_is_cut_and_whatever_is_changed() {
    let tables = tables().get();
    let frame = super::datagram::DatagramLayouts::new(tables).unwrap();
    let mut evaluator = Evaluator::default();
    let mut tree = Tree::new();
    let mut read = |datagram: &[u8]| {
        tree.clear();
        if frame
            .read(
                datagram,
                super::datagram::DatagramForm { socks: false, sender: 0 },
                tables,
                &mut evaluator,
                &mut tree,
            )
            .is_ok()
        {
            tiles(&tree, datagram.len());
        }
    };
    for datagram in example_datagrams(tables) {
        for at in 6..datagram.len() {
            read(&datagram[..at]);
            let mut changed = datagram.clone();
            changed[at] ^= 1 << (at % 8);
            read(&changed);
            changed[at] = 0xff;
            read(&changed);
        }
    }
}

#[test]
fn nothing_is_left_without_a_span_in_the_expanded_part() {
    let lazy = tables();
    let frame = super::datagram::DatagramLayouts::new(lazy.get()).unwrap();
    let datagram = parse_hex("80 00000007 00 01 05 09 0009").unwrap();
    let mut evaluator = Evaluator::default();
    let mut tree = Tree::new();
    frame
        .read(
            &datagram,
            super::datagram::DatagramForm { socks: false, sender: 0 },
            lazy.get(),
            &mut evaluator,
            &mut tree,
        )
        .unwrap();
    let (body, _) = tree.children(0).find(|(_, n)| n.kind == Kind::Struct).unwrap();
    let bits: u32 = tree.children(body).map(|(_, n)| n.bits).sum();
    assert_eq!(bits, 12 * 8);
}

fn judged(client: &str, server: &str, last: bool) -> Verdict {
    let client = parse_hex(client).unwrap();
    let server = parse_hex(server).unwrap();
    let opening = Opening {
        client: &client,
        server: &server,
        ends: nowhere(),
        whole: false,
        last,
        known: None,
    };
    SecondLife.recognise_udp(&opening, tables())
}

const USE_CODE: &str = "40 00000001 00 ffff0003 01000000 00112233445566778899aabbccddeeff \
                        00112233445566778899aabbccddeeff";

#[test]
fn a_circuit_is_recognised_on_any_port_and_either_way_round() {
    assert_eq!(judged(USE_CODE, "", false), Verdict::Yes { swapped: false });
    assert_eq!(judged("", USE_CODE, false), Verdict::Yes { swapped: true });
    assert_eq!(
        judged(&format!("00000001 7f000001 2328 {USE_CODE}"), "", false),
        Verdict::Yes { swapped: false }
    );
    assert_eq!(judged(PING, "", false), Verdict::Maybe);
    assert_eq!(judged(PING, "00 00000003 00 02 05", false), Verdict::Yes { swapped: false });
    assert_eq!(judged(PING, PING, false), Verdict::Yes { swapped: false });
}

#[test]
fn a_first_datagram_that_is_not_as_it_should_be_is_waited_out() {
    // A byte too many, and no more than its beginning.
    let code = |end: &str| judged(&format!("{USE_CODE}{end}"), "", false);
    assert_eq!(code("00"), Verdict::Maybe);
    assert_eq!(judged(&USE_CODE[..55], "", false), Verdict::Maybe);
    assert_eq!(judged(&format!("{USE_CODE}00"), "", true), Verdict::No, "nothing better ever came");
    assert_eq!(judged(&format!("{USE_CODE}00"), USE_CODE, false), Verdict::Yes { swapped: false });
    // ChatFromViewer in another character set.
    let ids = "00112233445566778899aabbccddeeff";
    let chat = format!("40 00000005 00 ffff0050 {ids} {ids} 0500 e9e8e7e6 00 01 00000000");
    assert_eq!(judged(&chat, "", false), Verdict::Yes { swapped: false });
}

#[test]
fn other_protocols_are_left_alone() {
    let others = [
        (
            "DNS query",
            "1234 0100 0001 0000 0000 0000 03777777 07657861 6d706c65 03636f6d 00 0001 0001",
        ),
        (
            "DNS query with a number of zeros",
            "4000 0000 0001 0000 0000 0000 03777777 07657861 6d706c65 03636f6d 00 0001 0001",
        ),
        (
            "DNS answer",
            "4000 8180 0001 0001 0000 0000 03777777 00 0001 0001 c00c 0001 0001 0000003c 0004 \
             5db8d822",
        ),
        (
            "multicast DNS answer",
            "0000 8400 0000 0001 0000 0000 05746573 7431056c 6f63616c 00 0001 8001 00000078 0004 \
             c0a80001",
        ),
        (
            "QUIC initial",
            "c0 00000001 08 8394c8f03e515708 00 00 449e 7b9aec34 d1b1c98d d7689fb8 ec11d242",
        ),
        (
            "QUIC version negotiation",
            "80 00000000 08 8394c8f03e515708 08 0011223344556677 00000001",
        ),
        ("QUIC short header", "40 1b00 8394c8f0 3e515708 7b9aec34 d1b1c98d"),
        ("RTP, PCMU", "80 00 0001 00000000 deadbeef ffffffff ffffffff ffffffff ffffffff"),
        (
            "RTP with an early time stamp",
            "80 00 0007 000000a0 00001234 7f7e7d7c ff0001ff 00ff7f7e ffffffff",
        ),
        ("RTCP", "80 c8 0006 12345678 e1e2e3e4 00000000 00000000 00000000 00000000"),
        ("STUN", "0001 0000 2112a442 000102030405060708090a0b"),
        (
            "NTP",
            "23 00 06 ec 00000000 00000000 00000000 0000000000000000 0000000000000000 \
             0000000000000000 0000000000000001",
        ),
        ("Quake 3", "ffffffff 67657473 74617475 730a"),
        ("Source query", "ffffffff 54536f75 72636520 456e6769 6e652051 75657279 00"),
        ("RakNet connection request", "05 00ffff00fefefefefdfdfdfd12345678 0b 00000000"),
        ("RakNet acknowledgement", "c0 0001 01 050000"),
        ("RakNet frame set", "84 000000 40 0090 000000 09 0000000000000001 00000000000000 00"),
        (
            "ENet connect",
            "8fff 1234 82 ff 0001 0000 00 00 00000578 00008000 00000001 00000000 00000000 00001388",
        ),
        ("ENet acknowledgement", "0000 0000 01 00 0001 0001 0000"),
        ("WireGuard", "01000000 12345678 00112233 44556677 8899aabb"),
        ("DHCP", "01010600 3903f326 00000000 00000000 00000000 00000000 00000000"),
        ("SNMP", "302602 0101 0406 7075626c 6963 a019 0204"),
        ("TFTP", "0001 7063 61702e70 6e67 00 6f637465 7400"),
        ("SSDP", "4d2d5345 41524348 202a2048 5454502f 312e310d 0a"),
        ("a game of small integers", "00 00000001 00 00 0000 00000002 00000003"),
        ("zeros", "00000000 00000000 00000000 00000000"),
        ("ones", "01010101 01010101 01010101"),
        ("HTTP text", "47455420 2f204854 54502f31 2e310d0a"),
        ("City of Heroes", "0000003c 00000001 00000000 deadbeef 01"),
    ];
    for (name, hex) in others {
        for last in [false, true] {
            assert_eq!(judged(hex, "", last), Verdict::No, "{name}");
            assert_ne!(
                judged(hex, hex, last),
                Verdict::Yes { swapped: false },
                "{name}, both ways"
            );
        }
    }
}

#[test]
fn random_datagrams_are_no_circuit() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..20_000 {
        let mut bytes = Vec::new();
        while bytes.len() < 48 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            bytes.extend_from_slice(&(state >> 16).to_be_bytes());
        }
        bytes.truncate(7 + (state >> 60) as usize * 2);
        let opening = Opening {
            client: &bytes,
            server: &[],
            ends: nowhere(),
            whole: false,
            last: true,
            known: None,
        };
        assert_eq!(SecondLife.recognise_udp(&opening, tables()), Verdict::No);
    }
}

#[test]
fn the_examples_of_all_messages_hold() {
    let tables = tables().get();
    let (count, failed) = crate::examples::run_examples(tables);
    let failed: Vec<String> = failed.iter().map(ToString::to_string).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    let numbered = tables.messages().iter().filter(|message| message.number.is_some());
    assert_eq!(numbered.count(), 483);
    assert!(count >= 483);
}
