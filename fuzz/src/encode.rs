//! The way back: bytes that decode without a problem encode to the same bytes.

use std::cell::RefCell;

use moulsniff::{Decoder, Encoder};

use crate::byte;

/// What the bytes are decoded as.
const NAMES: [&str; 13] = [
    "moul.auth.client",
    "moul.auth.server",
    "moul.game.client",
    "moul.game.server",
    "moul.file.client",
    "moul.file.server",
    "moul.gatekeeper.client",
    "moul.gatekeeper.server",
    "secondlife.circuit.client",
    "secondlife.circuit.server",
    "intermud3.router.client",
    "ouro.link.client",
    "ouro.auth_server.server",
];

thread_local! {
    static BOTH: RefCell<(Decoder, Encoder)> =
        RefCell::new((Decoder::new(), Encoder::new().unwrap()));
}

/// A byte for the service, then messages.
pub fn encode(mut data: &[u8]) {
    let name = NAMES[usize::from(byte(&mut data)) % NAMES.len()];
    BOTH.with_borrow_mut(|(decoder, encoder)| {
        let Ok(records) = decoder.decode(name, data) else { return };
        for record in records {
            if record.message().is_none() {
                continue;
            }
            let (json, spans) = (record.json(), record.json_spans());
            let from_fields = encoder.encode(&json);
            let from_spans = encoder.encode(&spans);
            if !record.problems().is_empty() {
                continue;
            }
            let is_same = |bytes: &Option<Vec<u8>>| bytes.as_deref() == Some(record.bytes());
            match from_fields {
                Ok(bytes) if is_same(&bytes) => continue,
                Ok(_) => {}
                Err(error) => {
                    let text = error.to_string();
                    assert!(text.contains("cannot be encoded"), "{name}: {text}: {json}");
                }
            }
            match from_spans {
                Ok(bytes) => assert!(is_same(&bytes), "{name}: other bytes: {spans}"),
                Err(error) => panic!("{name}: {error}: {spans}"),
            }
        }
    });
}
