//! Files: captures, keys, tables.

use std::io::Cursor;

use moulsniff::capture::{Capture, CaptureItem, RewriteTarget, Source, inject, strip};
use moulsniff::dump::read_dump;
use moulsniff::examples::run_examples;
use moulsniff::proto::moul::keys::{KeyFile, KeyRing};
use moulsniff::proto::{PROTOCOLS, protocol_named};
use moulsniff::table::{TableSource, Tables};

fn source(data: &[u8]) -> Source {
    Source::reader("x", Box::new(Cursor::new(data.to_vec())))
}

/// Number of the frames, and their bytes; whether there was an error.
fn read(data: &[u8]) -> (u64, u64, bool) {
    let mut capture = Capture::new([source(data)]);
    let mut frames = 0;
    let mut length = 0;
    let mut failed = false;
    loop {
        match capture.next_item() {
            Ok(None) => return (frames, length, failed),
            Ok(Some(CaptureItem::Frame(frame))) => {
                frames += 1;
                length += frame.data.len() as u64;
                assert_eq!(frame.number, frames);
                assert!(frame.time.nanos < 1_000_000_000);
            }
            Ok(Some(_)) => {}
            Err(error) => {
                assert!(!failed, "two errors of one file");
                failed = true;
                assert!(!error.to_string().contains('\n'));
            }
        }
    }
}

pub fn capture(data: &[u8]) {
    let (frames, length, failed) = read(data);
    for with in [true, false] {
        let mut out = Vec::new();
        let output = RewriteTarget::new("y", &mut out);
        let written = match with {
            true => inject(source(data), output, 0x4d4f_554c, b"a key"),
            false => strip(source(data), output),
        };
        if written.is_ok() && !failed {
            assert_eq!(read(&out), (frames, length, false), "what was written reads otherwise");
        }
    }
}

pub fn dump(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match read_dump(text) {
        Ok(dump) => {
            let bytes: usize = dump.pieces.iter().map(Vec::len).sum();
            // Only the `*` of a dump stands for more than is written.
            assert!(bytes <= text.len() || text.contains('*'), "more bytes than characters");
        }
        Err(error) => assert!(!error.to_string().contains('\n')),
    }
}

pub fn keys(data: &[u8]) {
    match KeyFile::parse("x", data) {
        Ok(file) => KeyRing::default().add(file),
        Err(error) => assert!(!error.to_string().contains('\n')),
    }
}

pub fn tables(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for protocol in PROTOCOLS {
        if let Some(Ok(source)) = protocol.foreign_tables("x", text) {
            let _ = Tables::load(protocol.name(), vec![source], protocol.natives());
        }
    }
    let source = TableSource { name: "x".into(), text: text.to_string().into() };
    let Ok(name) = Tables::protocol_of(&source) else { return };
    let Some(protocol) = protocol_named(&name) else { return };
    if let Ok(tables) = Tables::load(&name, vec![source], protocol.natives()) {
        run_examples(&tables);
    }
}
