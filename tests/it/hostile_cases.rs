//! Hostile captures, each of one kind, made from a number and a size. The same size gives the same
//! bytes: what seems to be chance has a fixed seed. `hostile.rs` holds the program against bounds
//! with them. Twice the size is twice as much of the same harm.

use std::io::Write;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use moulsniff::proto::moul::keys::Rc4;

use crate::common::random;
use crate::made::{ACK, End, Made, SYN, end, ip, tcp, udp};

/// One kind of harm.
pub struct Case {
    pub name: &'static str,
    /// The size of a quick run.
    pub size: u32,
    pub make: fn(u32) -> Vec<u8>,
}

/// The key of all encrypted connections here, and the line of a key file that gives it.
const KEY: [u8; 7] = [1, 2, 3, 4, 5, 6, 7];
pub const KEY_FILE: &str = "moulsniff-keys 1\nsession any rc4=01020304050607\n";

/// What the program is told beside the key: where recognition by content cannot know.
pub const DECODE_AS: [&str; 2] = ["udp:13000=secondlife", "udp:7000=ouro"];

const fn case(name: &'static str, size: u32, make: fn(u32) -> Vec<u8>) -> Case {
    Case { name, size, make }
}

pub const CASES: [Case; 47] = [
    case("handshakes without end", 60, handshakes_without_end),
    case("handshakes with keys that are none", 20, handshakes_for_nothing),
    case("tiny segments", 400, tiny_segments),
    case("overlapping segments", 400, overlapping_segments),
    case("segments in reverse", 400, reversed_segments),
    case("segments sent again and again", 400, repeated_segments),
    case("every second segment missing", 200, missing_segments),
    case("messages behind rubbish and gaps", 60, rubbish_and_gaps),
    case("rubbish on an encrypted connection", 40, encrypted_rubbish),
    case("many connections", 100, many_connections),
    case("connections between the same ends", 100, same_ends),
    case("connections that never open", 500, only_syn),
    case("many circuits", 100, many_circuits),
    case("fragments that wait", 400, lonely_fragments),
    case("fragments of eight bytes", 20, small_fragments),
    case("overlapping fragments", 30, overlapping_fragments),
    case("IPv6 headers without end", 100, header_chains),
    case("VLAN tags without end", 100, vlan_tags),
    case("frames of rubbish", 400, rubbish_frames),
    case("wrong checksums", 200, wrong_checksums),
    case("frames cut by a snap length", 80, cut_frames),
    case("zlib bombs", 1, zlib_bombs),
    case("a gzip bomb", 200, gzip_bomb),
    case("nested arrays of mudmode", 20, mudmode_arrays),
    case("nested mappings of mudmode", 20, mudmode_mappings),
    case("long lists of mudmode", 2, mudmode_lists),
    case("one list of mudmode, ever longer", 2, mudmode_list),
    case("texts that never end", 40, mudmode_open_texts),
    case("names with control characters", 30, mudmode_names),
    case("requests without a reply", 300, unanswered_mudmode),
    case("pings without a reply", 600, unanswered_pings),
    case("transactions without a reply", 300, unanswered_transactions),
    case("nested creatables", 10, nested_creatables),
    case("long lists of creatables", 2, many_creatables),
    case("counts at their maximum", 200, largest_counts),
    case("large states", 4, large_states),
    case("messages that are not in the tables", 100, unknown_messages),
    case("many names", 30, many_names),
    case("blocks and options that are none", 300, bad_blocks),
    case("interfaces without end", 500, many_interfaces),
    case("sections without end", 300, many_sections),
    case("secrets without end", 200, many_secrets),
    case("private keys that open nothing", 4, crate::hostile_keys::private_keys),
    case("a window of 128 MiB", 4, large_window),
    case("reliable packets without end", 100, reliable_packets),
    case("runs of zeros", 6, zero_runs),
    case("link packets of which parts are missing", 100, missing_siblings),
];

/// A connection whose numbers count by themselves.
pub struct Line {
    ends: [End; 2],
    at: [u32; 2],
    ciphers: Option<[Rc4; 2]>,
}

impl Line {
    /// A connection number with its first segments.
    fn open(made: &mut Made, number: u32, port: u16) -> Line {
        let ends = [end((number >> 8) as u16 + 1, 20_000 + (number & 0xff) as u16), end(0, port)];
        made.open(ends[0], ends[1]);
        Line { ends, at: [1, 1], ciphers: None }
    }

    /// A connection to a server of MOUL of which the capture has no beginning.
    pub fn joined(number: u32) -> Line {
        let ends = [end((number >> 8) as u16 + 1, 20_000 + (number & 0xff) as u16), end(0, 14_617)];
        Line { ends, at: [1_000_000, 2_000_000], ciphers: None }
    }

    /// A connection of MOUL's game (11) or auth server (10), its key agreed.
    pub fn agreed(made: &mut Made, number: u32, service: u8) -> Line {
        let mut line = Line::open(made, number, 14_617);
        line.send(made, 0, &connect(service));
        // Each connection has a y of its own, so that no key is derived for two of them at once.
        line.send(made, 0, &[&[0, 66][..], &number.to_le_bytes(), &[0x5a; 60]].concat());
        line.send(made, 1, &[1, 9, 1, 2, 3, 4, 5, 6, 7]);
        line.ciphers = Some([Rc4::new(&KEY), Rc4::new(&KEY)]);
        // First messages, which prove the key.
        let ping = if service == 11 { &AUTH_PING[..6] } else { &AUTH_PING };
        line.send(made, 0, &ping.repeat(8));
        line
    }

    /// Bytes of one side, encrypted where a key was agreed, in segments of 1,400 bytes.
    pub fn send(&mut self, made: &mut Made, side: usize, bytes: &[u8]) {
        let mut bytes = bytes.to_vec();
        if let Some(ciphers) = &mut self.ciphers {
            ciphers[side].apply(&mut bytes);
        }
        for part in bytes.chunks(1400) {
            self.segment(made, side, 0, part);
            self.at[side] = self.at[side].wrapping_add(part.len() as u32);
        }
    }

    /// One segment, `ahead` bytes beyond where the side is.
    fn segment(&self, made: &mut Made, side: usize, ahead: u32, bytes: &[u8]) {
        let way = (self.ends[side], self.ends[1 - side]);
        made.tcp(way, (self.at[side].wrapping_add(ahead), self.at[1 - side], ACK), bytes);
    }
}

/// The first packet of a connection to a MOUL service.
fn connect(service: u8) -> Vec<u8> {
    let second = if service == 11 { 36_u32 } else { 20 };
    let mut packet = vec![service, 31, 0];
    for field in [918_u32, 50, 1] {
        packet.extend(field.to_le_bytes());
    }
    packet.extend([
        0x21, 0x98, 0x48, 0xea, 0x35, 0x6c, 0xd0, 0x4b, 0x9d, 0xae, 0xbb, 0x17, 0xc5, 0x85, 0xe6,
        0x80,
    ]);
    packet.extend(second.to_le_bytes());
    packet.resize(31 + second as usize, 0);
    packet
}

/// A connection to a file server, which needs no key.
fn file_line(made: &mut Made, number: u32) -> Line {
    let mut line = Line::open(made, number, 14_617);
    let mut packet = connect(16);
    packet[31..35].copy_from_slice(&12_u32.to_le_bytes());
    line.send(made, 0, &packet[..43]);
    line
}

/// A ping of the auth service; its first six bytes are one of the game service.
const AUTH_PING: [u8; 14] = [0, 0, 9, 9, 9, 9, 0, 0, 0, 0, 0, 0, 0, 0];

/// A ping of the file service.
const PING: [u8; 12] = *b"\x0c\0\0\0\0\0\0\0\x68\x24\x57\x13";

pub fn noise(length: usize) -> Vec<u8> {
    let mut next = random();
    (0..length).map(|_| next() as u8).collect()
}

fn handshakes_without_end(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    for number in 0..n {
        let mut line = Line::open(&mut made, number, 14_617);
        line.send(&mut made, 0, &connect(10 + (number & 1) as u8));
        line.send(&mut made, 0, &[0, 66, 0x5a]);
    }
    made.bytes
}

fn handshakes_for_nothing(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    for number in 0..n {
        let mut line = Line::agreed(&mut made, number, 10);
        line.ciphers = None;
        line.send(&mut made, 0, &noise(200));
        line.send(&mut made, 1, &noise(200));
    }
    made.bytes
}

fn tiny_segments(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    let mut line = file_line(&mut made, 0);
    PING.iter().cycle().take(n as usize).for_each(|byte| line.send(&mut made, 0, &[*byte]));
    made.bytes
}

fn overlapping_segments(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    let line = file_line(&mut made, 0);
    for i in 0..n {
        line.segment(&mut made, 0, i * 6, &[PING, [i as u8; 12]].concat());
    }
    made.bytes
}

fn reversed_segments(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    let line = file_line(&mut made, 0);
    (0..n).rev().for_each(|i| line.segment(&mut made, 0, i * 12, &PING));
    made.bytes
}

fn repeated_segments(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    let line = file_line(&mut made, 0);
    (0..n).for_each(|i| line.segment(&mut made, 0, i / 20 * 12, &PING));
    made.bytes
}

fn missing_segments(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    let line = file_line(&mut made, 0);
    (0..n).for_each(|i| line.segment(&mut made, 0, i * 24, &PING));
    made.bytes
}

fn rubbish_and_gaps(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    let mut line = file_line(&mut made, 0);
    let rubbish = noise(1200);
    for _ in 0..n {
        line.send(&mut made, 0, &rubbish);
        line.at[0] += 700;
        line.send(&mut made, 0, &PING.repeat(3));
    }
    made.bytes
}

fn encrypted_rubbish(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    let mut line = Line::agreed(&mut made, 0, 10);
    let rubbish = noise(1200);
    for i in 0..n {
        line.send(&mut made, (i & 1) as usize, &rubbish);
        line.at[0] += 100;
    }
    made.bytes
}

fn many_connections(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    for number in 0..n {
        let mut line = file_line(&mut made, number);
        line.send(&mut made, 0, &PING);
    }
    made.bytes
}

fn same_ends(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    for number in 0..n {
        let mut line = file_line(&mut made, 0);
        line.send(&mut made, 0, &PING);
        let ends = (line.ends[0], line.ends[1]);
        let at = line.at;
        made.tcp(ends, (at[0], at[1], if number & 1 == 0 { 4 } else { 1 | ACK }), b"");
    }
    made.bytes
}

fn only_syn(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    for number in 0..n {
        made.tcp((end(number as u16, 9), end(0, 14_617)), (number, 0, SYN), b"");
    }
    made.bytes
}

/// The message of Second Life that opens a circuit, sent reliably.
pub fn use_circuit_code(code: u32) -> Vec<u8> {
    let mut message = vec![0x40, 0, 0, 0, 1, 0, 0xff, 0xff, 0, 3];
    message.extend(code.to_le_bytes());
    message.extend([7; 32]);
    message
}

fn many_circuits(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    for number in 0..n {
        made.udp((end(number as u16 + 1, 40_001), end(0, 13_000)), &use_circuit_code(number));
    }
    made.bytes
}

/// A part of a datagram, at `from` bytes, with more to come or not.
fn fragment(made: &mut Made, id: u16, from: usize, bytes: &[u8], more: bool) {
    let mut packet = ip(17, (end(1, 40_001), end(0, 13_000)), bytes);
    packet[4..6].copy_from_slice(&id.to_be_bytes());
    let field = (from / 8) as u16 | if more { 0x2000 } else { 0 };
    packet[6..8].copy_from_slice(&field.to_be_bytes());
    packet[10..12].copy_from_slice(&[0, 0]);
    let sum = !packet[..20].chunks(2).map(|b| u32::from(u16::from_be_bytes([b[0], b[1]]))).fold(
        0_u32,
        |sum, word| {
            let sum = sum + word;
            (sum & 0xffff) + (sum >> 16)
        },
    ) as u16;
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    made.frame(&packet);
}

fn lonely_fragments(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    let bytes = noise(1200);
    (0..n).for_each(|id| fragment(&mut made, id as u16, 0, &bytes, true));
    made.bytes
}

fn small_fragments(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    let whole =
        udp((end(1, 40_001), end(0, 13_000)), &[use_circuit_code(1), vec![0; 346]].concat());
    for id in 0..n {
        for (i, part) in whole.chunks(8).enumerate().rev() {
            fragment(&mut made, id as u16, i * 8, part, (i + 1) * 8 < whole.len());
        }
    }
    made.bytes
}

fn overlapping_fragments(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    let bytes = noise(64);
    for id in 0..n {
        (0..40).for_each(|i| fragment(&mut made, id as u16, i * 16, &bytes, true));
    }
    made.bytes
}

fn header_chains(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    for _ in 0..n {
        let mut packet = vec![0x60, 0, 0, 0];
        packet.extend(1200_u16.to_be_bytes());
        packet.extend([60, 64]);
        packet.extend([0xfe; 32]);
        (0..150).for_each(|_| packet.extend([60, 0, 1, 4, 0, 0, 0, 0]));
        made.frame(&packet);
    }
    made.bytes
}

/// A pcap of another link type.
fn of_link(link: u32) -> Made {
    let mut made = Made::new();
    made.bytes[20..24].copy_from_slice(&link.to_le_bytes());
    made
}

fn vlan_tags(n: u32) -> Vec<u8> {
    let mut made = of_link(1);
    for _ in 0..n {
        let mut frame = vec![2; 12];
        (0..300).for_each(|_| frame.extend([0x81, 0, 0, 7]));
        made.frame(&frame);
    }
    made.bytes
}

fn rubbish_frames(n: u32) -> Vec<u8> {
    let mut made = of_link(1);
    let rubbish = noise(4096);
    for i in 0..n as usize {
        let mut frame = rubbish[i * 7 % 2000..][..64 + i % 400].to_vec();
        if i & 1 == 0 {
            frame[12..15].copy_from_slice(&[8, 0, 0x45]);
        }
        made.frame(&frame);
    }
    made.bytes
}

fn wrong_checksums(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    let line = file_line(&mut made, 0);
    for i in 0..n {
        let way = (line.ends[0], line.ends[1]);
        let mut segment = tcp(way, (line.at[0] + i * 12, 1, ACK), &PING);
        segment[16] ^= 0x55;
        made.frame(&ip(6, way, &segment));
    }
    made.bytes
}

fn cut_frames(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    let line = file_line(&mut made, 0);
    for i in 0..n {
        let way = (line.ends[0], line.ends[1]);
        let packet = ip(6, way, &tcp(way, (line.at[0] + i * 120, 1, ACK), &PING.repeat(10)));
        made.frame_cut(&packet, 96);
    }
    made.bytes
}

/// A plNetMsgGameMessage in a Cli2Game_PropagateBuffer; the message in it is as it is, or
/// compressed and `size` bytes long.
fn propagate(compressed: Option<u32>, content: &[u8]) -> Vec<u8> {
    let mut object = [619_u16.to_le_bytes().as_slice(), &0_u32.to_le_bytes()].concat();
    object.extend(compressed.unwrap_or(0).to_le_bytes());
    object.push(if compressed.is_some() { 2 } else { 0 });
    object.extend((content.len() as u32).to_le_bytes());
    object.extend(content);
    object.push(0);
    [&[2, 0][..], &619_u32.to_le_bytes(), &(object.len() as u32).to_le_bytes(), &object].concat()
}

fn zlib_bombs(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    let mut line = Line::agreed(&mut made, 0, 11);
    let plain = [&643_u16.to_le_bytes()[..], &[0; 300_000]].concat();
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&plain).unwrap();
    // The first two bytes, the class, are not compressed.
    let content = [&643_u16.to_le_bytes()[..], &packed.finish().unwrap()].concat();
    for _ in 0..n {
        line.send(&mut made, 0, &propagate(Some(300_000), &content));
    }
    made.bytes
}

fn gzip_bomb(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    (0..n).for_each(|_| made.frame(&[0; 10_000]));
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&made.bytes).unwrap();
    packed.finish().unwrap()
}

/// A stream of packets of mudmode, from a mud or from its router.
pub fn mudmode(packets: impl Iterator<Item = (usize, String)>) -> Vec<u8> {
    let mut made = Made::new();
    let mut line = Line::open(&mut made, 0, 8080);
    for (side, text) in packets {
        line.send(&mut made, side, &[&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat());
    }
    made.bytes
}

/// A message to a person, with any value in the place of what is said.
fn tell(value: &str) -> (usize, String) {
    (0, format!("({{\"tell\",5,\"A\",\"a\",\"B\",\"b\",\"V\",{value},}})"))
}

fn mudmode_arrays(n: u32) -> Vec<u8> {
    mudmode((0..n).map(|_| tell(&format!("{}{}", "({".repeat(90), ",})".repeat(90)))))
}

fn mudmode_mappings(n: u32) -> Vec<u8> {
    mudmode((0..n).map(|_| tell(&format!("{}1{}", "([\"k\":".repeat(200), ",])".repeat(200)))))
}

fn mudmode_lists(n: u32) -> Vec<u8> {
    mudmode((0..n).map(|_| tell(&format!("({{{}}})", "1,".repeat(20_000)))))
}

/// At twenty times the size of a quick run, nearly the largest packet that is read (2 MiB).
fn mudmode_list(n: u32) -> Vec<u8> {
    mudmode(std::iter::once(tell(&format!("({{{}}})", "1,".repeat(25_000 * n.min(40) as usize)))))
}

fn mudmode_open_texts(n: u32) -> Vec<u8> {
    mudmode((0..n).map(|i| tell(&"\"x\\\\".repeat(500 + i as usize % 7))))
}

fn mudmode_names(n: u32) -> Vec<u8> {
    let harm = "\u{1b}[2J\u{7}\u{9b}\u{202e}\\n#2  frame 9 \u{0}x".repeat(10);
    mudmode((0..n).map(move |i| {
        (0, format!("({{\"{harm}{i}\",5,\"{harm}\",0,\"B\",0,([\"{harm}\":\"{harm}\",]),}})"))
    }))
}

fn unanswered_mudmode(n: u32) -> Vec<u8> {
    mudmode((0..n).map(|i| (0, format!("({{\"locate-req\",5,\"A\",\"u{i}\",0,0,\"v{i}\",}})"))))
}

fn unanswered_pings(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    let mut line = file_line(&mut made, 0);
    for i in 0..n {
        line.send(&mut made, 0, &[&PING[..8], &i.to_le_bytes()].concat());
    }
    made.bytes
}

fn unanswered_transactions(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    let mut line = Line::agreed(&mut made, 0, 10);
    for i in 0..n {
        line.send(&mut made, 0, &[&[26, 0][..], &i.to_le_bytes(), &i.to_le_bytes()].concat());
    }
    made.bytes
}

/// The part of every plMessage: no sender, no receivers, a time, flags.
const HEADER: [u8; 17] = [0; 17];

fn nested_creatables(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    let mut line = Line::agreed(&mut made, 0, 11);
    let one = [&643_u16.to_le_bytes()[..], &HEADER, &1_u32.to_le_bytes()].concat();
    let last = [&643_u16.to_le_bytes()[..], &HEADER, &0_u32.to_le_bytes()].concat();
    let nested = [one.repeat(150), last].concat();
    (0..n).for_each(|_| line.send(&mut made, 0, &propagate(None, &nested)));
    made.bytes
}

fn many_creatables(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    let mut line = Line::agreed(&mut made, 0, 11);
    let last = [&643_u16.to_le_bytes()[..], &HEADER, &0_u32.to_le_bytes()].concat();
    let list =
        [&643_u16.to_le_bytes()[..], &HEADER, &2000_u32.to_le_bytes(), &last.repeat(2000)].concat();
    (0..n).for_each(|_| line.send(&mut made, 0, &propagate(None, &list)));
    made.bytes
}

fn largest_counts(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    let mut line = Line::agreed(&mut made, 0, 11);
    for _ in 0..n {
        let content =
            [&643_u16.to_le_bytes()[..], &HEADER, &u32::MAX.to_le_bytes(), &[0xff; 40]].concat();
        line.send(&mut made, 0, &propagate(None, &content));
    }
    made.bytes
}

fn large_states(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    let mut line = Line::agreed(&mut made, 0, 11);
    for _ in 0..n {
        // plNetMsgSDLState: flags, an object without clone, a stream with a state of an unknown
        // descriptor.
        let state = [
            &0x8000_u16.to_le_bytes()[..],
            &[6, 0xf0],
            &[0x9a; 6],
            &1_u16.to_le_bytes(),
            &noise(30_000),
        ]
        .concat();
        let mut object =
            [717_u16.to_le_bytes().as_slice(), &0_u32.to_le_bytes(), &[0; 7], &9_u16.to_le_bytes()]
                .concat();
        object.extend([1, 0, 0, 0, 1, 0xf0, 0x9e]);
        object.extend(0_u32.to_le_bytes());
        object.push(0);
        object.extend((state.len() as u32).to_le_bytes());
        object.extend(&state);
        object.extend([1, 0, 0]);
        line.send(
            &mut made,
            0,
            &[&[2, 0][..], &717_u32.to_le_bytes(), &(object.len() as u32).to_le_bytes(), &object]
                .concat(),
        );
    }
    made.bytes
}

fn unknown_messages(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    let mut line = Line::agreed(&mut made, 0, 10);
    for i in 0..n {
        line.send(&mut made, 0, &[0xe7, 3, i as u8, 0, 0, 0]);
        line.send(&mut made, 0, &AUTH_PING.repeat(4));
    }
    made.bytes
}

fn many_names(n: u32) -> Vec<u8> {
    let startup = (
        0,
        "({\"startup-req-3\",5,\"A\",0,\"*i4\",0,1,0,0,1,1,1,\"m\",\"m\",\"m\",\"e\",([\"tell\":1,\
         ]),([]),})"
            .to_owned(),
    );
    let lists = (0..n).map(|i| {
        let entry = |k: u32| {
            format!(
                "\"mud{}\":({{-1,\"1.2.3.4\",{k},2,3,\"l\",\"b\",\"d\",\"t\",\"o\",\"e\",([]),\
                 ([]),}}),",
                i * 20 + k
            )
        };
        (
            1,
            format!(
                "({{\"mudlist\",5,\"*i4\",0,\"A\",0,1,([{}]),}})",
                (0..20).map(entry).collect::<String>()
            ),
        )
    });
    mudmode(std::iter::once(startup).chain(lists))
}

/// A block of pcapng.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let length = ((padded + 12) as u32).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, body, &vec![0; padded - body.len()], &length].concat()
}

fn section() -> Vec<u8> {
    block(0x0a0d_0d0a, &[&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat())
}

fn interface() -> Vec<u8> {
    block(1, &[101, 0, 0, 0, 0, 0, 4, 0])
}

/// A packet of an interface with a SYN in it.
fn packet(interface: u32, number: u32) -> Vec<u8> {
    let way = (end(1, 40_000), end(0, 14_617));
    let data = ip(6, way, &tcp(way, (number, 0, SYN), b""));
    let words = [interface, 0, number, data.len() as u32, data.len() as u32];
    block(6, &[words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>(), data].concat())
}

fn bad_blocks(n: u32) -> Vec<u8> {
    let mut bytes = [section(), interface()].concat();
    for i in 0..n {
        // Options whose lengths go beyond their block, names for addresses, statistics, unknown
        // kinds.
        bytes.extend(block(1, &[101, 0, 0, 0, 0, 0, 4, 0, 9, 0, 0xff, 0xff]));
        bytes.extend(block(4, &noise(40 + i as usize % 64)));
        bytes.extend(block(5, &noise(12)));
        bytes.extend(block(0x8000_0bad + i, &noise(i as usize % 500)));
        bytes.extend(packet(0, i));
    }
    bytes
}

fn many_interfaces(n: u32) -> Vec<u8> {
    let mut bytes = section();
    for i in 0..n {
        bytes.extend(interface());
        bytes.extend(packet(i, i));
    }
    bytes
}

fn many_sections(n: u32) -> Vec<u8> {
    (0..n).flat_map(|i| [section(), interface(), packet(0, i)].concat()).collect()
}

fn many_secrets(n: u32) -> Vec<u8> {
    let texts: Vec<String> = (0..n).map(|i| format!("session rc4={i:014x}\n").repeat(10)).collect();
    let mut made = Made::new();
    let mut line = Line::agreed(&mut made, 0, 10);
    line.send(&mut made, 0, &AUTH_PING.repeat(20));
    as_pcapng(&texts, &made)
}

/// A capture as pcapng that brings secrets along.
pub fn as_pcapng(secrets: &[String], made: &Made) -> Vec<u8> {
    let mut bytes = section();
    for text in secrets {
        bytes.extend(block(
            10,
            &[b"LUOM", &(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat(),
        ));
    }
    bytes.extend(interface());
    // The frames of a pcap behind its header of 24 bytes, as packets.
    let mut rest = &made.bytes[24..];
    while rest.len() > 16 {
        let length = u32::from_le_bytes([rest[8], rest[9], rest[10], rest[11]]);
        let data = &rest[16..16 + length as usize];
        let words = [0, 0, 0, length, length];
        bytes.extend(block(
            6,
            &[&words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>(), data].concat(),
        ));
        rest = &rest[16 + length as usize..];
    }
    bytes
}

/// zstd of which every frame asks for the largest window that is given.
fn large_window(n: u32) -> Vec<u8> {
    const WINDOW_OF_128_MIB: u8 = 17 << 3;
    const BLOCK: usize = 100_000;
    let mut bytes = Vec::new();
    for i in 0..n {
        bytes.extend([0x28, 0xb5, 0x2f, 0xfd, 0, WINDOW_OF_128_MIB]);
        let head = if i == 0 { Made::new().bytes } else { Vec::new() };
        // A frame of a megabyte of zeros, most of which the snap length cut, so that it is short
        // again.
        let content =
            [&head[..], &[0; 8], &(BLOCK as u32).to_le_bytes(), &(BLOCK as u32).to_le_bytes()]
                .concat();
        bytes.extend(&((content.len() as u32) << 3).to_le_bytes()[..3]);
        bytes.extend(&content);
        // A block of one byte that is repeated, the last one of its frame.
        bytes.extend(&((BLOCK as u32) << 3 | 1 << 1 | 1).to_le_bytes()[..3]);
        bytes.push(0);
    }
    bytes
}

fn reliable_packets(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    let way = (end(1, 40_001), end(0, 13_000));
    made.udp(way, &use_circuit_code(1));
    for i in 0..n {
        let sequence = (i % 50 + 2).to_be_bytes();
        // Reliable, sent again, with 200 acknowledgements at its end.
        let mut datagram = vec![0x40 | 0x20 | 0x10];
        datagram.extend(sequence);
        datagram.extend([0, 0xff, 0xff, 0, 3]);
        datagram.extend([9; 36]);
        (0..200_u32).for_each(|ack| datagram.extend((i * 200 + ack).to_be_bytes()));
        datagram.push(200);
        made.udp(if i & 1 == 0 { way } else { (way.1, way.0) }, &datagram);
    }
    made.bytes
}

fn zero_runs(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    let way = (end(1, 40_001), end(0, 13_000));
    made.udp(way, &use_circuit_code(1));
    for i in 0..n {
        // Zero-coded: each two bytes are 255 zeros.
        let mut datagram = vec![0x80];
        datagram.extend((i + 2).to_be_bytes());
        datagram.extend([0, 12]);
        (0..500).for_each(|_| datagram.extend([0, 255]));
        made.udp(way, &datagram);
    }
    made.bytes
}

fn missing_siblings(n: u32) -> Vec<u8> {
    let mut made = Made::new();
    let way = (end(1, 40_002), end(0, 7000));
    let mut next = random();
    for _ in 0..n {
        let body: Vec<u8> = (0..300).map(|_| next() as u8).collect();
        let sum = adler2::adler32_slice(&body).to_be_bytes();
        made.udp(way, &[&sum[..], &body].concat());
    }
    made.bytes
}
