//! Connections written as dialogues, without a capture: what comes of them, in which order, and at
//! which frame.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::net::{Ipv4Addr, SocketAddr};

use super::Moul;
use super::keys::{KeyFile, KeyRing, KeyService, Rc4, derive_session_key};
use super::testing::{self, KEYS, SEED, Y};
use crate::proto::{Moment, Protocol};
use crate::session::Counts;
use crate::session::{
    Emit, Ends, Event, EventKind, Message, Session, Share, Side, Start, Transport,
};
use crate::table::{Tables, parse_hex};
use crate::tree::Tree;

use Side::{Client, Server};

/// The connect packet of a game client.
const CONNECT: &str = "0b 1f00 96030000 32000000 01000000 219848ea356cd04b9daebb17c585e680 \
                       24000000 b8e5d32d22d7c8439f2adf1245e36178 eaac0f7ee1daec4aa4cae76c05fdcfcf";
const PING: &str = "0000 0df0ad0b";
const JOIN: &str = "0100 0f000000 0e000000 e78a2e1963b2444b996e2b492a30da53 86000000";
const JOINED: &str = "0100 0f000000 00000000";
/// No table has this message.
const UNKNOWN: &str = "e703 0102030405060708090a0b0c0d0e0f101112";

/// What a session said.
#[derive(Default)]
struct Emitted {
    /// The frame and name of each message, or the frame and word of each event that matters here.
    records: Vec<(u64, String)>,
    /// The requests that were called unanswered.
    unanswered: Vec<String>,
    bytes: Counts,
}

impl Emit for Emitted {
    fn message(&mut self, at: Moment, message: &Message<'_>, _: &Tables, tree: &mut Tree) -> u64 {
        self.records.push((at.frame, message.name.raw().to_string()));
        self.bytes.add(Counts::of_message(tree, message.bytes.len()));
        self.records.len() as u64
    }

    fn event(&mut self, at: Moment, event: Event) {
        self.bytes.add(event.counts());
        let word = match event.kind {
            EventKind::Key { .. } => "key",
            EventKind::Resync { .. } => "resync",
            EventKind::Undecoded => "undecoded",
            EventKind::Unanswered { message, .. } => return self.unanswered.push(message),
            _ => return,
        };
        self.records.push((at.frame, word.into()));
    }

    fn account(&mut self, _: Side, _: Share, _: u64) {}
}

impl Emitted {
    /// The names of the messages of a side's service, in order.
    fn names(&self) -> Vec<&str> {
        self.records.iter().map(|(_, name)| name.as_str()).collect()
    }
}

/// What a session emits of a game connection: both sides' handshake in frames 1 to 3, then one
/// frame a line. `agreed` is whether the key agreement takes place, so that all lines are
/// encrypted; without it, they are in clear.
fn emitted_by(agreed: bool, lines: &[(Side, &str)]) -> Emitted {
    let file = KeyFile::parse("dirtsand.ini", KEYS).unwrap();
    let key = file.keys().iter().find(|key| key.service() == Some(KeyService::Game)).unwrap();
    let key = derive_session_key(key, &Y, &SEED).unwrap();
    let mut ciphers: [Rc4; 2] = [key.cipher(), key.cipher()];
    let mut keys = KeyRing::default();
    keys.add(file);
    let (y, seed): (&[u8], &[u8]) = if agreed { (&Y, &SEED) } else { (&[], &[]) };
    let mut frames = vec![
        (Client, parse_hex(CONNECT).unwrap()),
        (Client, [&[0, y.len() as u8 + 2], y].concat()),
        (Server, [&[1, seed.len() as u8 + 2], seed].concat()),
    ];
    for (side, hex) in lines {
        let mut bytes = parse_hex(hex).unwrap();
        if agreed {
            ciphers[side.index()].apply(&mut bytes);
        }
        frames.push((*side, bytes));
    }
    let lazy = testing::tables();
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 14617));
    let ends = Ends { client: at, server: at };
    let start =
        Start { ends, transport: Transport::Tcp, whole: true, service: None, message: None };
    let mut session: Box<dyn Session> = Moul.session(&start, lazy.get());
    let mut emitted = Emitted::default();
    let mut sent = [0_u64; 2];
    testing::in_context(&lazy, keys, &mut emitted, |context| {
        let last = Moment { frame: frames.len() as u64, ..Moment::default() };
        for (i, (side, bytes)) in frames.iter().enumerate() {
            let at = Moment { frame: i as u64 + 1, ..Moment::default() };
            session.data(*side, sent[side.index()], bytes, at, context);
            sent[side.index()] += bytes.len() as u64;
        }
        session.end(Client, last, context);
        session.end(Server, last, context);
    });
    assert_eq!(emitted.bytes.payload, sent.iter().sum::<u64>(), "every byte is accounted for");
    emitted
}

#[test]
fn messages_that_waited_for_the_key_come_in_the_order_in_which_they_were_sent() {
    // One ping proves too little: the key is settled only when several are there.
    let emitted = emitted_by(
        true,
        &[
            (Client, PING),
            (Server, PING),
            (Client, PING),
            (Server, PING),
            (Client, JOIN),
            (Server, JOINED),
        ],
    );
    let want = [
        (1, "ConnectPacket"),
        (2, "Cli2Srv_Connect"),
        (3, "Srv2Cli_Encrypt"),
        (4, "key"),
        (4, "Cli2Game_PingRequest"),
        (5, "Game2Cli_PingReply"),
        (6, "Cli2Game_PingRequest"),
        (7, "Game2Cli_PingReply"),
        (8, "Cli2Game_JoinAgeRequest"),
        (9, "Game2Cli_JoinAgeReply"),
    ];
    assert_eq!(emitted.records, want.map(|(frame, name)| (frame, name.to_string())));
}

#[test]
fn messages_behind_one_that_no_table_has_are_read_where_a_piece_of_the_stream_begins_with_them() {
    for agreed in [false, true] {
        let opening = [(Client, JOIN), (Server, JOINED), (Client, PING)];
        let behind = [(Client, UNKNOWN), (Client, JOIN), (Client, PING)];
        let emitted = emitted_by(agreed, &[&opening[..], &behind].concat());
        assert_eq!(
            emitted.names()[emitted.names().len() - 3..],
            ["resync", "Cli2Game_JoinAgeRequest", "Cli2Game_PingRequest"]
        );
        let unknown = parse_hex(UNKNOWN).unwrap().len() as u64;
        assert_eq!(
            emitted.bytes.undecoded, unknown,
            "the bytes of the unknown message and no others"
        );
    }
}

#[test]
fn two_unknown_messages_cost_no_known_one_between_them() {
    let emitted = emitted_by(
        false,
        &[(Client, JOIN), (Client, UNKNOWN), (Client, JOIN), (Client, UNKNOWN), (Client, JOIN)],
    );
    assert_eq!(
        emitted.names().iter().filter(|name| **name == "Cli2Game_JoinAgeRequest").count(),
        3
    );
    assert_eq!(emitted.bytes.undecoded, 2 * parse_hex(UNKNOWN).unwrap().len() as u64);
}

#[test]
fn the_inside_of_an_unknown_message_is_not_taken_for_others() {
    // The middle piece is full of what pings look like, but goes on into the last one.
    let pieces =
        ["e703 0000", "0000 00000000 0000 00000000 0000 0000", "0000 0000 00000000 0000 000000"];
    let lines: Vec<(Side, &str)> = pieces.iter().map(|piece| (Client, *piece)).collect();
    let emitted = emitted_by(false, &lines);
    assert!(!emitted.names().contains(&"Cli2Game_PingRequest"), "{:?}", emitted.names());
}

#[test]
fn a_request_that_got_no_reply_is_said_at_the_end() {
    let answered = [(Client, JOIN), (Server, JOINED)];
    assert!(emitted_by(false, &answered).unanswered.is_empty());
    let hangs = [(Client, PING), (Server, PING), (Client, JOIN)];
    assert_eq!(
        emitted_by(true, &hangs).unanswered.last().map(String::as_str),
        Some("Cli2Game_JoinAgeRequest")
    );
    // Bytes of the server that no message explains may have been the reply.
    let unread = [(Client, JOIN), (Server, UNKNOWN)];
    assert!(emitted_by(false, &unread).unanswered.is_empty());
}
