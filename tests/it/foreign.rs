//! Traffic of other protocols, made from a seed: none of it becomes ours, whether its beginning
//! was captured or not, from one side alone, and damaged.

use std::collections::BTreeMap;

use crate::made::{ACK, End, Made, end, run};

/// As many conversations of each family are made. `FOREIGN=1000` makes more of them.
const EACH: usize = 12;

/// Ports of many other protocols, ours among them.
const PORTS: [u16; 12] = [80, 102, 445, 502, 1883, 5432, 6000, 8080, 9000, 9092, 14_617, 44_818];

/// Arbitrary numbers that a seed decides.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % most.max(1)
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.roll(choices.len())]
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.roll(256) as u8).collect()
    }

    fn words(&mut self, length: usize) -> String {
        let words =
            ["login", "GET", "value", "Player", "status", "error", "x", "The", "server", "7"];
        let mut text = String::new();
        while text.len() < length {
            text.push_str(self.one_of(&words));
            text.push(self.one_of(&[' ', ' ', '_', ',', ':']));
        }
        text
    }
}

/// A number of some width and byte order.
#[derive(Clone, Copy)]
struct Width {
    bytes: usize,
    big: bool,
}

impl Width {
    fn any(dice: &mut Dice) -> Width {
        Width { bytes: dice.one_of(&[1, 2, 2, 4, 4, 4, 8]), big: dice.roll(2) == 0 }
    }

    fn put(self, value: u64, out: &mut Vec<u8>) {
        if self.big {
            out.extend(&value.to_be_bytes()[8 - self.bytes..]);
        } else {
            out.extend(&value.to_le_bytes()[..self.bytes]);
        }
    }
}

/// What stands in one place of every message of a made protocol.
#[derive(Clone, Copy)]
enum Part {
    Same(Width, u64),
    Counter(Width, u64),
    Small(Width, usize),
    Zeros(usize),
    Float,
    Random(usize),
    Uuid,
    Text,
    WideText,
    CountedText(Width),
    CountedWideText(Width),
    Numbers(Width),
}

impl Part {
    fn any(dice: &mut Dice) -> Part {
        let width = Width::any(dice);
        match dice.roll(12) {
            0 | 1 => Part::Same(width, dice.one_of(&[0, 1, 2, 3, 10, 16, 23, 255, 300])),
            2 => Part::Counter(width, dice.one_of(&[0, 1, 100, 70_000])),
            3 => Part::Small(width, dice.one_of(&[2, 5, 40, 1000])),
            4 => Part::Zeros(dice.one_of(&[1, 2, 3, 4, 8, 12])),
            5 => Part::Float,
            6 => Part::Random(dice.one_of(&[1, 4, 8])),
            7 => Part::Uuid,
            8 => dice.one_of(&[Part::Text, Part::WideText]),
            9 => Part::CountedText(width),
            10 => Part::CountedWideText(width),
            _ => Part::Numbers(width),
        }
    }

    fn write(self, number: usize, dice: &mut Dice, out: &mut Vec<u8>) {
        match self {
            Part::Same(width, value) => width.put(value, out),
            Part::Counter(width, from) => width.put(from + number as u64, out),
            Part::Small(width, most) => width.put(dice.roll(most) as u64, out),
            Part::Zeros(length) => out.resize(out.len() + length, 0),
            Part::Float => out.extend((dice.roll(2000) as f32 / 8.0 - 100.0).to_le_bytes()),
            Part::Random(length) => out.extend(dice.bytes(length)),
            Part::Uuid => out.extend(dice.bytes(16)),
            Part::Text => {
                let length = dice.roll(30);
                out.extend(dice.words(length).bytes());
                out.push(0);
            }
            Part::WideText => {
                let length = dice.roll(20);
                out.extend(dice.words(length).bytes().flat_map(|byte| [byte, 0]));
                out.extend([0, 0]);
            }
            Part::CountedText(width) => {
                let length = dice.roll(30);
                let text = dice.words(length);
                width.put(text.len() as u64, out);
                out.extend(text.bytes());
            }
            Part::CountedWideText(width) => {
                let length = dice.roll(20);
                let text = dice.words(length);
                width.put(text.len() as u64, out);
                out.extend(text.bytes().flat_map(|byte| [byte, 0]));
            }
            Part::Numbers(width) => {
                let count = dice.roll(6);
                width.put(count as u64, out);
                for _ in 0..count {
                    width.put(dice.roll(500) as u64, out);
                }
            }
        }
    }
}

/// The messages of one side.
struct Form {
    /// The kinds of messages, each with its number and its parts.
    kinds: Vec<(u64, Vec<Part>)>,
    number: Width,
    /// Whether a length comes first, and what it counts beside the content.
    length: Option<(Width, u64)>,
}

impl Form {
    fn any(dice: &mut Dice, kinds: usize, prefixed: bool) -> Form {
        let parts = |dice: &mut Dice| (0..1 + dice.roll(6)).map(|_| Part::any(dice)).collect();
        let of = |dice: &mut Dice| (dice.roll(60) as u64, parts(dice));
        let kinds = (0..kinds).map(|_| of(dice)).collect();
        let length = Width { bytes: dice.one_of(&[2, 2, 4]), big: dice.roll(2) == 0 };
        let counts = dice.one_of(&[0, length.bytes as u64]);
        Form { kinds, number: Width::any(dice), length: prefixed.then_some((length, counts)) }
    }

    fn message(&self, number: usize, dice: &mut Dice) -> Vec<u8> {
        let (kind, parts) = &self.kinds[dice.roll(self.kinds.len())];
        let mut content = Vec::new();
        self.number.put(*kind, &mut content);
        parts.iter().for_each(|part| part.write(number, dice, &mut content));
        let mut out = Vec::new();
        if let Some((width, counts)) = self.length {
            width.put(content.len() as u64 + counts, &mut out);
        }
        out.extend(content);
        out
    }
}

/// What two sides say in turn.
type Said = Vec<(usize, Vec<u8>)>;

/// The same request again and again, and its answer.
fn polls(dice: &mut Dice) -> Said {
    talk(dice, 1, false)
}

fn prefixed(dice: &mut Dice) -> Said {
    let kinds = 1 + dice.roll(8);
    talk(dice, kinds, true)
}

fn unprefixed(dice: &mut Dice) -> Said {
    let kinds = 2 + dice.roll(8);
    talk(dice, kinds, false)
}

fn talk(dice: &mut Dice, kinds: usize, prefixed: bool) -> Said {
    let forms = [Form::any(dice, kinds, prefixed), Form::any(dice, kinds, prefixed)];
    let turns = 4 + dice.roll(60);
    (0..turns * 2).map(|turn| (turn % 2, forms[turn % 2].message(turn / 2, dice))).collect()
}

/// Counters alone, of which little changes.
fn counters(dice: &mut Dice) -> Said {
    let parts: Vec<Part> = (0..1 + dice.roll(6))
        .map(|_| {
            let (width, from) = (Width::any(dice), dice.roll(300) as u64);
            dice.one_of(&[Part::Counter(width, from), Part::Same(width, from), Part::Zeros(2)])
        })
        .collect();
    let mut say = |turn: usize| {
        let mut out = Vec::new();
        parts.iter().for_each(|part| part.write(turn / 2, dice, &mut out));
        (turn % 2, out)
    };
    (0..80).map(&mut say).collect()
}

fn text(dice: &mut Dice) -> Said {
    let (wide, end) = (dice.roll(4) == 0, dice.one_of(&["\r\n", "\n", "\0"]));
    let mut say = |turn: usize| {
        let length = 1 + dice.roll(120);
        let line = dice.words(length) + end;
        let bytes: Vec<u8> = if wide {
            line.bytes().flat_map(|byte| [byte, 0]).collect()
        } else {
            line.into_bytes()
        };
        (turn % 2, bytes)
    };
    (0..40).map(&mut say).collect()
}

fn random(dice: &mut Dice) -> Said {
    let mut say = |turn: usize| {
        let length = 1 + dice.roll(400);
        (turn % 2, dice.bytes(length))
    };
    (0..30).map(&mut say).collect()
}

/// The parts of a program or of a table of numbers, which one side fetches.
fn file(dice: &mut Dice) -> Said {
    let form = Form::any(dice, 6, false);
    let mut said = vec![(0, b"fetch\0\0\0\x01".to_vec())];
    for turn in 0..20 {
        let mut piece = Vec::new();
        while piece.len() < 700 {
            piece.extend(form.message(turn, dice));
            piece.resize(piece.len().next_multiple_of(dice.one_of(&[1, 4, 16])), 0);
        }
        said.push((1, piece));
    }
    said
}

/// Makes one conversation.
type Family = fn(&mut Dice) -> Said;

const FAMILIES: [(&str, Family); 7] = [
    ("polls", polls),
    ("prefixed", prefixed),
    ("unprefixed", unprefixed),
    ("counters", counters),
    ("text", text),
    ("random", random),
    ("file", file),
];

/// What is captured of a conversation.
#[derive(Clone, Copy, Debug)]
enum Seen {
    Whole,
    Late,
    OneSide(usize),
    Damaged,
    Datagrams,
}

const WAYS: [Seen; 6] =
    [Seen::Whole, Seen::Late, Seen::OneSide(0), Seen::OneSide(1), Seen::Damaged, Seen::Datagrams];

/// Puts a conversation into a capture.
fn put(made: &mut Made, ends: [End; 2], said: &Said, seen: Seen, dice: &mut Dice) {
    let mut sent = [1_u32, 1];
    if let Seen::Whole = seen {
        made.open(ends[0], ends[1]);
    }
    let skipped = match seen {
        Seen::Late | Seen::Damaged => dice.roll(said.len() / 3),
        _ => 0,
    };
    for (side, bytes) in &said[skipped..] {
        let way = (ends[*side], ends[1 - side]);
        if let Seen::Datagrams = seen {
            made.udp(way, bytes);
            continue;
        }
        for piece in bytes.chunks(1200) {
            let numbers = (sent[*side], sent[1 - side], ACK);
            sent[*side] += piece.len() as u32;
            let mut piece = piece.to_vec();
            match seen {
                Seen::OneSide(only) if only != *side => continue,
                Seen::Damaged if dice.roll(10) == 0 => continue,
                Seen::Damaged if dice.roll(5) == 0 => {
                    let at = dice.roll(piece.len());
                    piece[at] ^= 1 << dice.roll(8);
                }
                _ => {}
            }
            made.tcp(way, numbers, &piece);
        }
    }
    if let Seen::Whole = seen {
        made.tcp((ends[0], ends[1]), (sent[0], sent[1], 4), b"");
    }
}

#[test]
fn nothing_of_other_protocols_becomes_ours() {
    let each = std::env::var("FOREIGN").ok().and_then(|n| n.parse().ok()).unwrap_or(EACH);
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut taken: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (family, make) in FAMILIES {
        for seen in WAYS {
            let mut made = Made::new();
            for number in 0..each {
                let said = make(&mut dice);
                let port = dice.one_of(&PORTS);
                let ends = [end(number as u16, 40_000 + number as u16), end(0xff00, port)];
                put(&mut made, ends, &said, seen, &mut dice);
            }
            for record in run(&made.bytes, &["-q"]).0 {
                let what = record["message"].as_str().or(record["text"].as_str()).unwrap_or("?");
                let ends = format!("{} {}", record["src"], record["dst"]);
                let stream = format!("{family} {seen:?} {} {ends}", record["stream"]);
                taken.entry(stream).or_default().push(what.to_string());
            }
            if let Ok(folder) = std::env::var("FOREIGN_DIR") {
                let name = format!("{folder}/{family}_{seen:?}.pcap").replace(['(', ')'], "_");
                std::fs::write(name, &made.bytes).unwrap();
            }
        }
    }
    for messages in taken.values_mut() {
        messages.truncate(6);
    }
    assert!(taken.is_empty(), "{} directions were taken for ours: {taken:#?}", taken.len());
}
