//! Links of City of Heroes: the bit stream types against encodings made by another program, whole
//! captures against what their senders said, every bit in its place, and whatever happens to the
//! bytes.

use std::io::Read;
use std::net::SocketAddr;

use moulsniff::capture::Moment;
use moulsniff::print::json::{JsonOptions, JsonWriter};
use moulsniff::proto::{Protocol, load_tables, protocol_named};
use moulsniff::record::MessageView;
use moulsniff::session::{
    Context, Emit, Ends, Event, EventKind, Message, Options, Session, Settings, Share, Side, Start,
    Transport,
};
use moulsniff::table::{Evaluator, Tables, parse_hex};
use moulsniff::tree::{LinkKind, Sym, Tree};
use serde_json::Value;

use crate::ouro_services::packet;

use crate::common::scratch;

fn ouro() -> &'static dyn Protocol {
    protocol_named("ouro").unwrap()
}

fn tables() -> Tables {
    load_tables(ouro(), &[]).unwrap_or_else(|e| panic!("{e}"))
}

fn records(arguments: &[&str]) -> Vec<Value> {
    let output = crate::common::program().args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn truth(name: &str) -> Vec<Value> {
    let file = std::fs::File::open(format!("captures/ouro/{name}.truth.jsonl.gz")).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What a vector's value is in our JSON.
fn expected(vector: &Value) -> Value {
    let value = &vector["value"];
    match vector["type"].as_str().unwrap() {
        "autobits2" => Value::from(value.to_string()),
        "float32" | "maybe float32" => value["u32"].clone(),
        "maybe string" if value == "" => Value::Null,
        _ => value.clone(),
    }
}

/// Our value of a vector, made comparable: floats as their bits, indices looked up.
fn comparable(vector: &Value, got: &Value, tree: &Tree) -> Value {
    let list = vector["params"].get("table").or(vector["params"].get("table_head"));
    match (vector["type"].as_str().unwrap(), got.get("index")) {
        ("float32" | "maybe float32", _) => Value::from(format!("{:08x}", tree.nodes()[0].value)),
        (_, Some(index)) => {
            list.unwrap()[usize::try_from(index.as_u64().unwrap()).unwrap()].clone()
        }
        _ => got.clone(),
    }
}

#[test]
fn every_type_reads_what_another_program_wrote() {
    let text = std::fs::read_to_string("captures/ouro/bitstream_vectors.json").unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    let vectors = file["vectors"].as_array().unwrap();
    assert_eq!(vectors.len(), 99);
    for vector in vectors {
        let parameter = vector["params"].get("n").or(vector["params"].get("log2_table_size"));
        let ty = vector["type"].as_str().unwrap().to_string()
            + &parameter.map_or(String::new(), |n| format!("({n})"));
        let (tables, ty_ref) = tables().with_type(&ty).unwrap_or_else(|e| panic!("{e}"));
        let bytes = parse_hex(vector["hex"].as_str().unwrap()).unwrap();
        let start = usize::try_from(vector["start_bit"].as_u64().unwrap()).unwrap();
        let mut tree = Tree::new();
        let end =
            Evaluator::default().value(&tables, ty_ref, Sym::ELEMENT, &bytes, start, &mut tree);
        let mut out = Vec::new();
        JsonWriter::new(JsonOptions::default()).value(
            MessageView { tables: &tables, tree: &tree, bytes: &bytes },
            0,
            &mut out,
        );
        let got: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(comparable(vector, &got, &tree), expected(vector), "{ty}: {vector}");
        assert_eq!((end - start) as u64, vector["bit_length"].as_u64().unwrap(), "{ty}: {vector}");
        assert!(tree.problems().is_empty(), "{ty}: {vector}");
    }
}

fn hold_against_truth(name: &str, arguments: &[&str]) -> Vec<Value> {
    let capture = format!("captures/ouro/{name}.pcapng");
    let mut all = vec![capture.as_str(), "--json", "--quiet"];
    all.extend(arguments);
    let got: Vec<Value> = records(&all).into_iter().filter(|r| r.get("event").is_none()).collect();
    let want = truth(name);
    assert_eq!(got.len(), want.len());
    for (want, got) in want.iter().zip(&got) {
        let fields = &got["fields"];
        assert_eq!(got["from"], want["from"]);
        assert_eq!(fields["bit_length"], want["bit_length"], "{want}");
        match want["kind"].as_str() {
            Some("control") => assert_eq!(got["message"], want["name"], "{want}"),
            Some("user") => assert_eq!(fields["user_cmd"], want["cmd"], "{want}"),
            Some("encrypted") => assert_eq!(got["message"], "Encrypted"),
            _ => {}
        }
        let cookies = arguments.contains(&"on");
        let said = want.get("fields").and_then(Value::as_object);
        for (key, value) in
            said.into_iter().flatten().filter(|(k, _)| !matches!(k.as_str(), "layout" | "values"))
        {
            let absent = key.starts_with("cookie") && !cookies;
            assert!(absent || fields[key] == *value, "{key} of {want}: {fields}");
        }
        if let Some(link) = want.get("link_header").or(want.get("seq").map(|_| want)) {
            assert_eq!(fields["link"]["sequence"], link["seq"], "{want}");
            assert_eq!(fields["link"]["acks"], link["acks"], "{want}");
        }
    }
    got
}

#[test]
fn a_link_with_pieces_is_put_together() {
    let got = hold_against_truth("coh_segs_udp", &[]);
    let whole: Vec<&Value> =
        got.iter().filter(|r| r["fields"].get("fragments").is_some()).collect();
    assert_eq!(whole.len(), 2);
    assert_eq!(whole[0]["fields"]["fragments"].as_array().unwrap().len(), 2);
    assert_eq!(got.iter().filter(|r| r["message"] == "Fragment").count(), 4);
}

#[test]
fn versions_cookies_and_encryption_are_followed() {
    let got = hold_against_truth("coh_seed_udp", &[]);
    // Decided by what fits: exactly the commands that have cookies show them.
    for (want, got) in truth("coh_seed_udp").iter().zip(&got).filter(|(w, _)| w["kind"] == "user") {
        let enabled = want["session_params"]["cookies_enabled"] == true;
        assert_eq!(got["fields"].get("cookie").is_some(), enabled, "{want}");
        if enabled {
            assert_eq!(got["fields"]["cookie"], want["fields"]["cookie"]);
        }
    }
}

/// The spans of a level lie one behind the other, in bits.
pub fn tiled(spans: &Value, from: u64, to: u64) {
    let mut at = from;
    for span in spans.as_array().unwrap() {
        let start = span["offset"].as_u64().unwrap() * 8
            + span.get("bit_offset").map_or(0, |b| b.as_u64().unwrap());
        let bits = span
            .get("bit_length")
            .map_or(span["length"].as_u64().unwrap() * 8, |b| b.as_u64().unwrap());
        assert_eq!(start, at, "{span}");
        if let Some(inner) = span.get("fields").filter(|_| span.get("buffer").is_none()) {
            tiled(inner, start, start + bits);
        }
        at += bits;
    }
    assert_eq!(at, to);
}

#[test]
fn every_bit_has_its_span() {
    for name in ["coh_segs_udp", "coh_seed_udp"] {
        let capture = format!("captures/ouro/{name}.pcapng");
        for record in records(&[&capture, "--json", "--spans", "--quiet"]) {
            if record.get("event").is_none() {
                tiled(&record["fields"], 0, record["length"].as_u64().unwrap() * 8);
            }
        }
    }
}

/// Keeps what a session says.
#[derive(Default)]
struct Ear {
    said: Vec<(String, Value)>,
    bytes: u64,
    undecoded: u64,
    /// The messages that are sent again, from 1.
    again: Vec<usize>,
    /// How many requests had no reply.
    unanswered: usize,
}

impl Emit for Ear {
    fn message(
        &mut self,
        _: Moment,
        message: &Message<'_>,
        tables: &Tables,
        tree: &mut Tree,
    ) -> u64 {
        let mut out = Vec::new();
        JsonWriter::new(JsonOptions::default())
            .fields(MessageView { tables, tree, bytes: message.bytes }, &mut out);
        self.said.push((message.name.raw().to_string(), serde_json::from_slice(&out).unwrap()));
        self.bytes += message.bytes.len() as u64;
        if tree.links().iter().any(|link| link.kind == LinkKind::SentAgain) {
            self.again.push(self.said.len());
        }
        self.said.len() as u64
    }

    fn event(&mut self, _: Moment, event: Event) {
        if event.kind == EventKind::Undecoded {
            self.undecoded += event.length.unwrap_or(0);
        }
        self.unanswered += usize::from(matches!(event.kind, EventKind::Unanswered { .. }));
    }

    fn account(&mut self, _: Side, _: Share, _: u64) {}
}

/// Feeds pieces to a session of their own.
fn hear<'a>(
    tables: &Tables,
    transport: Transport,
    pieces: impl Iterator<Item = (Side, &'a [u8])>,
) -> Ear {
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 7000));
    let ends = Ends { client: nowhere, server: nowhere };
    let start = Start { ends, transport, whole: true, service: None, message: None };
    let mut session: Box<dyn Session> = ouro().session(&start, tables);
    let mut ear = Ear::default();
    let mut evaluator = Evaluator::default();
    let mut tree = Tree::new();
    let options = Options { max_message: 1 << 20, ..Options::default() };
    let mut context = Context {
        tables,
        evaluator: &mut evaluator,
        tree: &mut tree,
        settings: &Settings::default(),
        sequences: [None; 2],
        options: &options,
        emit: &mut ear,
    };
    let mut offsets = [0u64; 2];
    for (side, bytes) in pieces {
        match transport {
            Transport::Tcp => {
                session.data(side, offsets[side.index()], bytes, Moment::default(), &mut context)
            }
            Transport::Udp => session.datagram(side, bytes, 0, Moment::default(), &mut context),
        }
        offsets[side.index()] += bytes.len() as u64;
    }
    for side in [Side::Client, Side::Server] {
        session.end(side, Moment::default(), &mut context);
    }
    ear
}

/// The datagrams of one link without link header.
fn datagrams(session: u64) -> Vec<(Side, Vec<u8>)> {
    let link = truth("coh_seed_udp").into_iter().filter(|t| t["session"] == session);
    link.map(|t| {
        let side = if t["from"] == "client" { Side::Client } else { Side::Server };
        (side, parse_hex(t["hex"].as_str().unwrap()).unwrap())
    })
    .collect()
}

/// A datagram with a link header: its number, the piece it is (count, position, ID) and what it
/// carries; `unused` of the last bits are not counted.
fn linked(sequence: u32, piece: Option<(u32, u32, u32)>, payload: &[u8], unused: u32) -> Vec<u8> {
    let mut bits: Vec<bool> = Vec::new();
    let mut put = |value: u64, width: u32| bits.extend((0..width).map(|i| value >> i & 1 == 1));
    // Packed integers of 1 bit: 0 to 3 are all that is needed.
    let packed = |n: u32| match n {
        0 => (0, 1),
        n => (u64::from([1u32, 3, 5][n as usize - 1]), 3),
    };
    put(0, 1);
    put(u64::from(sequence), 32);
    let (count, position, id) = piece.unwrap_or_default();
    let (value, width) = packed(count);
    put(value, width);
    if piece.is_some() {
        let (value, width) = packed(position);
        put(value, width);
        put(u64::from(id), 32);
    }
    put(0, 2);
    bits.resize(bits.len().next_multiple_of(8), false);
    let mut body: Vec<u8> =
        bits.chunks(8).map(|c| c.iter().rev().fold(0, |b, bit| b << 1 | u8::from(*bit))).collect();
    body.extend(payload);
    let mut out = (8 * (8 + body.len() as u32) - unused).to_le_bytes().to_vec();
    out.extend(adler2::adler32_slice(&body).to_be_bytes());
    out.extend(body);
    out
}

#[test]
fn pieces_that_contradict_each_other_or_never_come_are_said() {
    let tables = tables();
    let connect = || linked(1, None, &[0b0000_0001], 4);
    let names = |datagrams: &[Vec<u8>]| -> Vec<String> {
        let heard =
            hear(&tables, Transport::Udp, datagrams.iter().map(|d| (Side::Client, d.as_slice())));
        let length: usize = datagrams.iter().map(Vec::len).sum();
        assert_eq!(heard.bytes + heard.undecoded, length as u64);
        heard.said.into_iter().skip(1).map(|(name, _)| name).collect()
    };
    let piece = |n, position, id, text: &[u8]| linked(n, Some((2, position, id)), text, 0);
    let whole =
        [connect(), piece(2, 1, 7, b"b"), piece(3, 0, 7, b"\x7fa"), piece(4, 0, 7, b"\x7fa")];
    assert_eq!(names(&whole), ["Fragment", "UserCommand", "Fragment"]);
    let other = [connect(), piece(2, 0, 7, b"\x7fa"), piece(3, 0, 7, b"zz"), piece(4, 1, 7, b"b")];
    assert_eq!(
        names(&other),
        ["Fragment", "Fragment", "UserCommand"],
        "the piece that came first counts"
    );
    let counts = [
        connect(),
        piece(2, 0, 7, b"\x7fa"),
        linked(3, Some((3, 1, 7)), b"b", 0),
        piece(4, 1, 7, b"b"),
    ];
    assert_eq!(names(&counts), ["Fragment"; 3]);
    let impossible = [connect(), piece(2, 2, 7, b"a"), linked(3, Some((1, 3, 8)), b"b", 0)];
    assert_eq!(names(&impossible), ["Fragment"; 2]);
    // A link that is opened again begins its numbers anew.
    let other = parse_hex(CONNECT).unwrap();
    let again = [
        connect(),
        piece(2, 0, 7, b"\x7fa"),
        other,
        piece(2, 0, 7, b"\x7fc"),
        piece(3, 1, 7, b"b"),
    ];
    assert_eq!(names(&again), ["Fragment", "COMMCONTROL_CONNECT", "Fragment", "UserCommand"]);
}

/// A client's first datagram, and what a server says to it.
const CONNECT: &str = "7900000004db00b80200000000793c0000000000";
const ANSWER: &str = "90000000016e00350200000024000000000e0000";

#[test]
fn what_is_sent_again_asks_and_opens_nothing_again() {
    let tables = tables();
    let links = |client: bool, hex: &str| {
        (if client { Side::Client } else { Side::Server }, parse_hex(hex).unwrap())
    };
    let ask = "70000000010e002304000000001e000000000000";
    let asked = "9000000002e600770400000044000000002e0000";
    // The CONNECT crosses its answer, and the question for the end crosses its acknowledgement.
    let link = [
        links(true, CONNECT),
        links(false, ANSWER),
        links(true, CONNECT),
        links(true, ask),
        links(true, CONNECT),
        links(true, ask),
        links(false, asked),
    ];
    let heard =
        hear(&tables, Transport::Udp, link.iter().map(|(side, bytes)| (*side, bytes.as_slice())));
    let names: Vec<&str> = heard.said.iter().map(|(name, _)| name.as_str()).collect();
    let connect = "COMMCONTROL_CONNECT";
    let end = "COMMCONTROL_DISCONNECT";
    let answers = ["COMMCONTROL_CONNECT_SERVER_ACK_ACK", "COMMCONTROL_DISCONNECT_ACK"];
    assert_eq!(names, [connect, answers[0], connect, end, connect, end, answers[1]]);
    assert_eq!((heard.again, heard.unanswered), (vec![3, 5, 6], 0));
}

#[test]
fn segment_boundaries_do_not_change_the_messages() {
    let tables = tables();
    for link in [1, 5, 9] {
        let datagrams = datagrams(link);
        let whole =
            hear(&tables, Transport::Udp, datagrams.iter().map(|(s, b)| (*s, b.as_slice())));
        for step in [1, 3, 7, 64, 5000] {
            let cut = datagrams.iter().flat_map(|(s, b)| b.chunks(step).map(move |c| (*s, c)));
            let got = hear(&tables, Transport::Tcp, cut);
            assert_eq!(got.said, whole.said, "link {link} in pieces of {step}");
            assert_eq!(got.undecoded, 0);
        }
    }
}

#[test]
fn several_packets_share_a_segment() {
    let tables = tables();
    let mut client = Vec::new();
    let mut server = Vec::new();
    for (side, bytes) in datagrams(1) {
        if side == Side::Client { client.extend(bytes) } else { server.extend(bytes) }
    }
    let got = hear(
        &tables,
        Transport::Tcp,
        [(Side::Client, &client[..]), (Side::Server, &server[..])].into_iter(),
    );
    assert_eq!(got.said.len(), datagrams(1).len());
    assert_eq!(got.bytes, (client.len() + server.len()) as u64);
}

#[test]
fn datagrams_cut_and_changed_lose_nothing() {
    let tables = tables();
    for link in [4, 9, 12] {
        let all = datagrams(link);
        for (i, (side, bytes)) in all.iter().enumerate().filter(|(_, d)| d.1.len() < 100) {
            for end in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[end] ^= 1 << (end % 8);
                for damaged in [&bytes[..end], &changed[..]] {
                    let before = all[..i].iter().map(|(s, b)| (*s, b.as_slice()));
                    let length: usize =
                        all[..i].iter().map(|d| d.1.len()).sum::<usize>() + damaged.len();
                    let got = hear(&tables, Transport::Udp, before.chain([(*side, damaged)]));
                    assert_eq!(
                        got.bytes + got.undecoded,
                        length as u64,
                        "link {link}, datagram {i}, byte {end}"
                    );
                }
            }
        }
    }
}

#[test]
fn streams_cut_and_changed_lose_nothing() {
    let tables = tables();
    for link in [1, 5, 9] {
        let client = datagrams(link).into_iter().filter(|d| d.0 == Side::Client);
        let stream: Vec<u8> = client.flat_map(|d| d.1).take(400).collect();
        for at in 0..stream.len() {
            let mut changed = stream.clone();
            changed[at] ^= 1 << (at % 8);
            let mut more = stream.clone();
            more.splice(at..at, [0xff, 0x00, 0x01]);
            for damaged in [&stream[..at], &changed, &more] {
                let pieces = damaged.chunks(37).map(|piece| (Side::Client, piece));
                let got = hear(&tables, Transport::Tcp, pieces);
                assert_eq!(
                    got.bytes + got.undecoded,
                    damaged.len() as u64,
                    "link {link}, byte {at}"
                );
            }
        }
    }
}

/// What `decode --type` prints.
fn decoded(ty: &str, bit: &str, hex: &str) -> Value {
    records(&["decode", "--type", ty, "--bit", bit, "--json", hex]).remove(0)
}

#[test]
fn what_stands_behind_a_value_stands_beside_it() {
    let index = decoded("indexstring(8)", "0", "1300aa");
    assert_eq!(index["value"], serde_json::json!({"index": 4}));
    assert_eq!(
        (index["bit_length"].as_u64(), index["undecoded"].as_str()),
        (Some(10), Some("802a"))
    );
    let number = decoded("bits(5)", "3", "f8");
    assert_eq!((number["value"].as_u64(), number.get("undecoded")), (Some(31), None));
    let zeros = decoded("bits(5)", "0", "1f");
    assert_eq!(
        (zeros["value"].as_u64(), zeros.get("undecoded")),
        (Some(31), None),
        "fewer than 8 zero bits are padding"
    );
}

#[test]
fn what_cannot_be_read_has_no_value() {
    for (ty, hex) in [
        ("packint(1)", "ffffffffffffffffffff"),
        ("alignedstring", "4142"),
        ("float32", "000000"),
        ("indexgeneric(16)", "01"),
        ("autobits2", "03"),
    ] {
        let got = decoded(ty, "0", hex);
        assert_eq!(got["value"], Value::Null, "{ty}: {got}");
        assert_eq!(got["undecoded"], hex, "{ty}: {got}");
        assert_eq!(got["problems"][0]["severity"], "error", "{ty}: {got}");
    }
    let beyond = decoded("packint(1)", "9", "00");
    assert_eq!((&beyond["value"], beyond.get("undecoded")), (&Value::Null, None));
}

#[test]
fn links_over_tcp_are_read_whatever_happens_to_them() {
    let got = records(&["captures/ouro/coh_tcp.pcap", "--json", "--quiet"]);
    let names = |stream: u64, from: &str| -> Vec<String> {
        let of = got.iter().filter(|r| r["stream"] == stream && r["from"] == from);
        of.filter_map(|r| r["message"].as_str().or(r["event"].as_str()).map(str::to_string))
            .collect()
    };
    let short = |all: Vec<String>| -> String {
        all.iter().map(|n| n.trim_start_matches("COMMCONTROL_")).collect::<Vec<_>>().join(" ")
    };
    // In pieces of 5 bytes and several in a segment; padded and with cookies; encrypted.
    let user = "UserCommand UserCommand";
    let want = format!("CONNECT CONNECT_CLIENT_ACK remark {user} IDLE DISCONNECT stream_end");
    assert_eq!(short(names(0, "client")), want);
    assert_eq!(short(names(1, "client")), want);
    assert_eq!(
        short(names(2, "client")),
        "CONNECT CONNECT_CLIENT_ACK Encrypted Encrypted stream_end"
    );
    // A wrong checksum, then a wrong length, then a number without end: what follows is there.
    assert_eq!(
        short(names(3, "client")),
        "CONNECT CONNECT_CLIENT_ACK UserCommand undecoded Undescribed IDLE stream_end"
    );
    assert_eq!(
        short(names(3, "server")),
        "CONNECT_SERVER_ACK CONNECT_SERVER_ACK_ACK remark UserCommand undecoded stream_end"
    );
    // Joined late, with a loss. The second DISCONNECT is the event that names the first one as
    // unanswered.
    assert_eq!(short(names(4, "client")), "undecoded gap IDLE DISCONNECT DISCONNECT stream_end");
    // Not a link at all.
    assert_eq!(short(names(5, "server")), "remark stream_end");
}

#[test]
fn commands_the_wiki_describes_only_lack_their_number() {
    let table = scratch("ouro.table");
    let text = "protocol ouro\nmessage user client 7 DBGAMECLIENT_CHECK_NAME extends \
                DBGAMECLIENT_CHECK_NAME {}\n";
    std::fs::write(&table, text).unwrap();
    // Version 0: 7 goes as 12; the length counts 7 bits of number, 40 of text, 4 of the last value.
    let (tables, _) = tables().with_type("Flag").unwrap();
    assert!(tables.type_named("DBGAMECLIENT_CHECK_NAME").is_some());
    let shown = records(&["decode", "--type", "DBGAMECLIENT_CHECK_NAME", "--json", "4e6f76610004"]);
    assert_eq!(shown[0]["value"], serde_json::json!({"name": "Nova", "temp_lock": 1}));
    let checked = crate::common::program()
        .args(["tables", "show", "DBGAMECLIENT_CHECK_NAME", "--tables"])
        .arg(&table)
        .output()
        .unwrap();
    std::fs::remove_file(&table).unwrap();
    assert!(
        String::from_utf8_lossy(&checked.stdout).contains("message user client 7"),
        "{checked:?}"
    );
}

#[test]
fn a_link_without_link_headers_never_has_one() {
    let tables = tables();
    for link in [4, 5, 9] {
        let all = datagrams(link);
        // Every datagram behind the first ones, cut short at every byte, with a length and a
        // checksum that are right.
        for (i, (side, bytes)) in all.iter().enumerate().skip(1).take(6) {
            for end in 9..bytes.len() {
                let mut short = (end as u32 * 8).to_le_bytes().to_vec();
                short.extend(adler2::adler32_slice(&bytes[8..end]).to_be_bytes());
                short.extend(&bytes[8..end]);
                let before = all[..i].iter().map(|(s, b)| (*s, b.as_slice()));
                let got = hear(&tables, Transport::Udp, before.chain([(*side, &short[..])]));
                let (name, fields) = got.said.last().unwrap();
                assert!(
                    fields.get("link").is_none(),
                    "link {link}, datagram {i} cut at {end}: {name} {fields}"
                );
            }
        }
    }
}

#[test]
fn an_acknowledgement_that_is_lost_is_not_called_missing() {
    let tables = tables();
    let client = Side::Client;
    let server = Side::Server;
    // CONNECT of version 4, both acknowledgements, that of the second one, and a user command.
    let connect = (client, packet("100 0 1110000"));
    let ack = (server, packet("0 110 0"));
    let client_ack = (client, packet("0 101 0"));
    let ack_ack = (server, packet("0 1110000"));
    let user = |side| (side, packet("1111000 1"));
    let end = [(client, packet("0 1111000"))];
    let unanswered = |datagrams: &[(Side, Vec<u8>)]| {
        let heard = hear(
            &tables,
            Transport::Udp,
            datagrams.iter().map(|(side, bytes)| (*side, bytes.as_slice())),
        );
        heard.unanswered
    };
    let whole = [connect, ack, client_ack, ack_ack, user(server)];
    assert_eq!(unanswered(&whole), 0);
    // One of the acknowledgements is lost, or a CONNECT is sent twice and answered once.
    for lost in 1..4 {
        let rest: Vec<_> = (0..5).filter(|at| *at != lost).map(|at| whole[at].clone()).collect();
        assert_eq!(unanswered(&rest), 0, "without datagram {lost}");
    }
    assert_eq!(unanswered(&[&whole[..1], &whole].concat()), 0);
    assert_eq!(unanswered(&[whole[0].clone(), user(client)]), 0);
    // What nothing shows to be answered is said: where nothing follows, and where a link is to end.
    assert_eq!(unanswered(&whole[..1]), 1);
    assert_eq!(unanswered(&whole[..3]), 1);
    assert_eq!(unanswered(&[&whole[..], &end].concat()), 1);
}

#[test]
fn only_a_first_datagram_opens_a_link() {
    let tables = tables();
    // A user command 1 of a link that was joined late; its last 8 bits are those of a CONNECT's two
    // numbers.
    let names = |sequence| -> Vec<String> {
        let datagram = linked(sequence, None, &[0x71, 0], 5);
        let heard = hear(&tables, Transport::Udp, [(Side::Client, &datagram[..])].into_iter());
        heard.said.into_iter().map(|(name, _)| name).collect()
    };
    assert_eq!(names(1), ["COMMCONTROL_CONNECT"]);
    assert_eq!(names(9), ["UserCommand"]);
}
