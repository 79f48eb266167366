//! Values that are read several at once give the same tree as values that are read one by one: over the examples of all tables, as they are, cut and
//! changed.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::{PROTOCOLS, load_tables};
use crate::table::{Evaluator, Example, ExampleOf, ONE_BY_ONE, Tables, parse_hex};
use crate::tree::{Outline, Sym, Tree};

/// What is read of some bytes, as text: into a tree, and into an outline. States of earlier messages are not set.
fn read(tables: &Tables, example: &Example, bytes: &[u8], one_by_one: bool) -> String {
    let (mut evaluator, mut tree, mut outline) = (Evaluator::default(), Tree::default(), Outline::default());
    ONE_BY_ONE.set(one_by_one);
    let said = match example.of {
        ExampleOf::Layout(layout) => {
            let ty = tables.layout(layout).unwrap().ty;
            evaluator.value(tables, ty, Sym::ELEMENT, bytes, 0, &mut tree).to_string()
        }
        ExampleOf::Message(id) => {
            let service = tables.message(id).unwrap().service;
            let from_server = &tables.service(service).unwrap().messages[1];
            let sender = usize::from(from_server.iter().any(|(_, one)| *one == id));
            let said = evaluator.message(tables, service, sender, bytes, &mut tree);
            let outlined = evaluator.message(tables, service, sender, bytes, &mut outline);
            format!("{said:?} {outlined:?} {} {:?}", outline.len(), outline.problems())
        }
    };
    ONE_BY_ONE.set(false);
    let marks = (tree.is_plain(), tree.is_nameless());
    format!("{said} {marks:?} {:#?} {:#?}", tree.nodes(), tree.problems())
}

#[test]
fn values_read_at_once_are_those_read_one_by_one() {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 16) as usize
    };
    let mut compared = 0;
    for protocol in PROTOCOLS {
        let tables = load_tables(*protocol, &[]).unwrap();
        for example in tables.examples() {
            let text = tables.example_bytes(example);
            let bytes = if example.text { text.into_bytes() } else { parse_hex(&text).unwrap() };
            for round in 0..12 {
                // What follows a message in a stream: runs are read at once only where eight more bytes follow.
                let mut bytes = [bytes.as_slice(), &[0xaa; 8]].concat();
                for _ in 0..round % 4 {
                    let at = random() % bytes.len();
                    bytes[at] = (random() & 0xff) as u8;
                }
                if round > 6 {
                    bytes.truncate(random() % bytes.len());
                }
                let (at_once, one_by_one) =
                    (read(&tables, example, &bytes, false), read(&tables, example, &bytes, true));
                assert!(at_once == one_by_one, "{bytes:02x?}\n{at_once}\n{one_by_one}");
                compared += 1;
            }
        }
    }
    assert!(compared > 10_000, "{compared}");
}
