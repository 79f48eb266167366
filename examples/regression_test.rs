//! What a server's test suite may ask of a capture that its tests recorded: nothing was refused,
//! every request was answered, and all bytes were understood.

use moulsniff::{Decoder, Severity};

/// What is wrong with what a server did, one line each.
fn complaints(capture: &str, keys: &str) -> Result<Vec<String>, moulsniff::Error> {
    let mut found = Vec::new();
    let mut records = Decoder::new().keys(keys)?.open(capture)?;
    for record in &mut records {
        let record = record?;
        let what = record.message().unwrap_or_default().to_owned();
        found.extend(
            record.refused().map(|reason| format!("record {}: {what}: {reason}", record.number())),
        );
        if matches!(record.event(), Some("unanswered" | "undecoded" | "no_key")) {
            found.push(format!(
                "record {}: {}",
                record.number(),
                record.text().unwrap_or_default()
            ));
        }
        let errors =
            record.problems().into_iter().filter(|problem| problem.severity == Severity::Error);
        found.extend(errors.map(|problem| {
            format!("record {}: {}: {}", record.number(), problem.field, problem.text)
        }));
    }
    if records.counts().is_none_or(|counts| counts.messages == 0) {
        found.push("the capture has no message".into());
    }
    Ok(found)
}

fn main() -> Result<(), moulsniff::Error> {
    let mut args = std::env::args().skip(1);
    let capture = args.next().unwrap_or_default();
    let keys = args.next().unwrap_or_default();
    for complaint in complaints(&capture, &keys)? {
        println!("{complaint}");
    }
    Ok(())
}

#[test]
fn the_server_did_what_it_should() -> Result<(), moulsniff::Error> {
    let found = complaints("captures/moul/kind_game.pcap", "keys/shard.keys")?;
    assert!(found.is_empty(), "{}", found.join("\n"));
    Ok(())
}
