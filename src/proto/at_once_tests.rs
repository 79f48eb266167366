//! Values that are read several at once, or copied from an earlier message, give the same tree as
//! values that are read one by one: over the examples of all tables, as they are, cut and changed.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::{PROTOCOLS, load_tables};
use crate::table::{Evaluator, Example, ExampleOf, ONE_BY_ONE, Remembered, Tables, parse_hex};
use crate::tree::{Outline, Sym, Tree};

/// What is read of some bytes, as text: into a tree, and into an outline. States of earlier
/// messages are not set. Counts the structures that are copies.
fn read(
    evaluator: &mut Evaluator,
    tables: &Tables,
    example: &Example,
    bytes: &[u8],
    copies: &mut usize,
) -> String {
    let mut tree = Tree::default();
    let mut outline = Outline::default();
    evaluator.memory = Remembered::default();
    // No skip programs, which leave less behind of a message that is not complete.
    evaluator.outlined = 0;
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
    *copies += tree.copies().len();
    // Others may be listed, too.
    let telling =
        tree.telling().map(|fields| fields.filter(|(_, node)| tables.is_telling(node.ty)));
    let telling: Option<Vec<u32>> = telling.map(|fields| fields.map(|field| field.0).collect());
    let marks = (tree.is_plain(), tree.is_nameless());
    format!("{said} {marks:?} {telling:?} {:#?} {:#?}", tree.nodes(), tree.problems())
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
    let mut copies = 0;
    for protocol in PROTOCOLS {
        let tables = load_tables(*protocol, &[]).unwrap();
        // It reads all messages, so that it meets the same structures again and again.
        let mut evaluator = Evaluator::default();
        for example in tables.examples() {
            let text = tables.example_bytes(example);
            let bytes = if example.text { text.into_bytes() } else { parse_hex(&text).unwrap() };
            for round in 0..12 {
                // What follows a message in a stream: runs are read at once only where eight more
                // bytes follow.
                let mut bytes = [bytes.as_slice(), &[0xaa; 8]].concat();
                for _ in 0..round % 4 {
                    let at = random() % bytes.len();
                    bytes[at] = (random() & 0xff) as u8;
                }
                if round > 6 {
                    bytes.truncate(random() % bytes.len());
                }
                ONE_BY_ONE.set(true);
                let one_by_one = read(&mut Evaluator::default(), &tables, example, &bytes, &mut 0);
                ONE_BY_ONE.set(false);
                for _ in 0..3 {
                    let at_once = read(&mut evaluator, &tables, example, &bytes, &mut copies);
                    assert!(at_once == one_by_one, "{bytes:02x?}\n{at_once}\n{one_by_one}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 30_000 && copies > 1_000, "{compared} {copies}");
}
