//! Counts who logged in, and why logins failed: cargo run --example count_logins -- CAPTURE KEYS

use std::collections::BTreeMap;

use moulsniff::Decoder;

/// How often a login was answered with what.
fn logins(capture: &str, keys: &str) -> Result<BTreeMap<String, u32>, moulsniff::Error> {
    let mut logins = BTreeMap::new();
    for record in Decoder::new().keys(keys)?.open(capture)? {
        let record = record?;
        if record.message() == Some("Auth2Cli_AcctLoginReply") {
            *logins.entry(record.refused().unwrap_or("logged in".into())).or_default() += 1;
        }
    }
    Ok(logins)
}

fn main() -> Result<(), moulsniff::Error> {
    let args: Vec<String> = std::env::args().collect();
    let [_, capture, keys] = args.as_slice() else {
        eprintln!("usage: count_logins CAPTURE KEYS");
        std::process::exit(2);
    };
    for (what, times) in logins(capture, keys)? {
        println!("{times} {what}");
    }
    Ok(())
}

#[test]
fn logins_are_counted_by_what_became_of_them() -> Result<(), moulsniff::Error> {
    let found = logins("captures/moul/golden.pcap", "keys/shard.keys")?;
    assert_eq!(found.get("logged in"), Some(&1), "{found:?}");
    Ok(())
}
