//! Readers that need no connection: types of the tables, states, filters.

use std::sync::OnceLock;

use moulsniff::capture::{Moment, Time};
use moulsniff::captured::Captured;
use moulsniff::filter::Filter;
use moulsniff::proto::moul::sdl::decrypt::decrypt_file;
use moulsniff::proto::moul::sdl::store::Store;
use moulsniff::proto::{DeclaredProtocol, Protocol, protocol_named, read_alone};
use moulsniff::record::Names;
use moulsniff::record::{Body, Record, RoundTrips};
use moulsniff::session::{Event, EventKind, Message, Settings, Side, Transport};
use moulsniff::table::{BITSTREAM, Evaluator, Outcome, ServiceId, TableSource, Tables};
use moulsniff::tree::{Sym, Tree};

use crate::{byte, bytes, checks, number, tables, tables_of};

/// Protocol, type or message, first bit, and the bytes.
pub fn evaluator(mut data: &[u8]) {
    let how = byte(&mut data);
    let lazy = &tables()[usize::from(how & 15) % tables().len()];
    let tables = lazy.get();
    let choice = number(&mut data);
    let mut evaluator = Evaluator::default();
    evaluator.limits.decompressed = 1 << 20;
    lazy.protocol().prepare(&mut evaluator, &Settings::default());
    let mut tree = Tree::new();
    if how & 0x80 != 0 {
        let service = ServiceId((choice % tables.services().len().max(1)) as u32);
        let sender = usize::from(how >> 6 & 1);
        let outcome = evaluator.message(tables, service, sender, data, &mut tree);
        if let Outcome::Message(_, length) = outcome {
            checks::message(tables, &tree, &data[..length]);
        }
        return;
    }
    let layouts = tables.layouts();
    let Some(layout) = layouts.get(choice % layouts.len().max(1)) else { return };
    let bit = usize::from(how >> 4 & 7).min(data.len() * 8);
    let end = evaluator.value(tables, layout.ty, Sym::ELEMENT, data, bit, &mut tree);
    assert!(end <= data.len() * 8);
    checks::message(tables, &tree, data);
}

/// A key, and a descriptor file.
pub fn sdl_text(mut data: &[u8]) {
    let key: Vec<u32> = (0..4).map(|_| number(&mut data) as u32).collect();
    let key = <[u32; 4]>::try_from(key).unwrap();
    let _ = decrypt_file(key, data);
    let mut store = Store::new();
    store.add_file("x.sdl", data, Some(key));
    store.add_file("x.sdl", data, None);
}

/// Descriptors, and a state that may be one of theirs.
pub fn sdl_blob(mut data: &[u8]) {
    let count = number(&mut data);
    let descriptors = bytes(&mut data, count);
    let lazy = tables_of("moul");
    let tables = lazy.get();
    let mut evaluator = Evaluator::default();
    evaluator.limits.decompressed = 1 << 20;
    lazy.protocol().prepare(&mut evaluator, &Settings::default());
    if let Some(store) = Store::of(&mut evaluator) {
        store.keep_file("x.sdl", descriptors);
    }
    let mut tree = Tree::new();
    let ty = tables.type_named("SDL").unwrap();
    evaluator.value(tables, ty, Sym::ELEMENT, data, 0, &mut tree);
    checks::message(tables, &tree, data);
}

/// An expression, asked of a message and of an event.
pub fn filter(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let redact = text.len() % 2 == 1;
    let filter = match Filter::compile(text, tables(), redact) {
        Ok(filter) => filter,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let tables = tables_of("moul").get();
    let (tree, bytes) = sample(tables);
    let message = Message {
        name: Captured::new("Cli2Game_PropagateBuffer"),
        number: Some(2),
        service: "game",
        from: Side::Client,
        offset: 404,
        bytes,
        reply: None,
        no_reply: false,
    };
    filter.keeps(&record(Body::Message { message: &message, tables, tree }));
    let kind = EventKind::Resync { passed_over: 7 };
    let event = Event { offset: Some(1), ..Event::new(kind, "game", Side::Server, "found") };
    filter.keeps(&record(Body::Event(&event)));
}

/// A table file of a protocol, with bytes for its messages and structures.
pub fn table_bytes(mut data: &[u8]) {
    let count = number(&mut data) % (16 << 10);
    let Ok(text) = std::str::from_utf8(bytes(&mut data, count)) else { return };
    let source = TableSource { name: "x".into(), text: text.to_string().into() };
    let Ok(name) = Tables::protocol_of(&source) else { return };
    let built_in = protocol_named(&name);
    let natives = built_in.map_or(&BITSTREAM[..], |protocol| protocol.natives());
    let Ok(tables) = Tables::load(&name, vec![source], natives) else { return };
    let mut evaluator = Evaluator::default();
    evaluator.limits.decompressed = 1 << 20;
    match built_in {
        Some(protocol) => protocol.prepare(&mut evaluator, &Settings::default()),
        None => {
            let Some(protocol) = DeclaredProtocol::of(&tables) else { return };
            evaluator.states = vec![1; 64];
            let protocol: &dyn Protocol = &protocol;
            for side in [Side::Client, Side::Server] {
                read_alone(
                    protocol,
                    &tables,
                    (protocol.transport(), side),
                    None,
                    data,
                    &mut |_| {},
                );
            }
        }
    }
    let mut tree = Tree::new();
    for service in 0..tables.services().len().min(4) {
        for sender in [0, 1] {
            tree.clear();
            let outcome =
                evaluator.message(&tables, ServiceId(service as u32), sender, data, &mut tree);
            if let Outcome::Message(_, length) = outcome {
                checks::message(&tables, &tree, &data[..length]);
            }
        }
    }
    for layout in tables.layouts().iter().take(8) {
        tree.clear();
        let end = evaluator.value(&tables, layout.ty, Sym::ELEMENT, data, 0, &mut tree);
        assert!(end <= data.len() * 8);
        checks::message(&tables, &tree, data);
    }
}

/// An expression, asked of a message of MOUL whose bytes come with it.
pub fn filter_records(mut data: &[u8]) {
    let how = byte(&mut data);
    let count = number(&mut data) % 1024;
    let Ok(text) = std::str::from_utf8(bytes(&mut data, count)) else { return };
    let Ok(filter) = Filter::compile(text, tables(), how & 1 != 0) else { return };
    let tables = tables_of("moul").get();
    let service = ServiceId(u32::from(how >> 2) % tables.services().len() as u32);
    let from = if how & 2 == 0 { Side::Client } else { Side::Server };
    let mut tree = Tree::new();
    let outcome = Evaluator::default().message(tables, service, from.index(), data, &mut tree);
    let Outcome::Message(id, length) = outcome else { return };
    let Some(def) = tables.message(id) else { return };
    let message = Message {
        name: moulsniff::captured::Captured::new(tables.name(def.name)),
        number: def.number,
        service: &tables.services()[service.0 as usize].name,
        from,
        offset: 0,
        bytes: &data[..length],
        reply: None,
        no_reply: false,
    };
    let record = record(Body::Message { message: &message, tables, tree: &tree });
    let kept = || filter.keeps(&record);
    assert_eq!(kept(), kept(), "asked twice");
}

fn record(body: Body<'_>) -> Record<'_> {
    let time = Time { seconds: 1_795_168_301, nanos: 586_970_000, digits: 6 };
    Record {
        number: 12,
        at: Moment { frame: 57, time },
        start: time,
        transport: Transport::Tcp,
        stream: 3,
        src: ([127, 0, 0, 1], 50_000).into(),
        dst: ([127, 0, 0, 1], 14_617).into(),
        from: Side::Client,
        protocol: "moul",
        service: "game",
        round_trips: RoundTrips::default(),
        names: Names::default(),
        body,
    }
}

/// A message with structures, lists and texts in it.
fn sample(tables: &'static Tables) -> (&'static Tree, &'static [u8]) {
    static SAMPLE: OnceLock<(Tree, Vec<u8>)> = OnceLock::new();
    let (tree, bytes) = SAMPLE.get_or_init(|| {
        let bytes = include_bytes!("../propagate.bin").to_vec();
        let mut tree = Tree::new();
        let service = tables.service_named("game").unwrap();
        let outcome = Evaluator::default().message(tables, service, 0, &bytes, &mut tree);
        assert!(matches!(outcome, Outcome::Message(_, n) if n == bytes.len()), "{outcome:?}");
        (tree, bytes)
    });
    (tree, bytes)
}
