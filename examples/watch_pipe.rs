//! Prints each message as it arrives: tcpdump -i lo -U -w - | cargo run --example watch_pipe --
//! KEYS

use std::error::Error;
use std::io::Read;

use moulsniff::Decoder;

fn watch(capture: impl Read + Send + 'static, keys: &str) -> Result<u32, Box<dyn Error>> {
    let mut messages = 0;
    for record in Decoder::new().keys(keys)?.redact().read("standard input", capture)? {
        let record = record?;
        let Some(name) = record.message() else { continue };
        println!(
            "{}  {}  {name}  {}",
            record.time_text(),
            record.service(),
            record.get("info").unwrap_or_default()
        );
        messages += 1;
    }
    Ok(messages)
}

fn main() -> Result<(), Box<dyn Error>> {
    let keys = std::env::args().nth(1).ok_or("which key file?")?;
    watch(std::io::stdin(), &keys)?;
    Ok(())
}

#[test]
fn every_message_is_printed() -> Result<(), Box<dyn Error>> {
    let capture = std::fs::File::open("captures/moul/kind_game.pcap")?;
    assert!(watch(capture, "keys/shard.keys")? > 0);
    Ok(())
}
