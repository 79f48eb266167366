//! The program `moulsniff`.

use moulsniff::examples::run_examples;
use moulsniff::proto::{load_tables, protocol_named};
use moulsniff::table::{Source, Tables};

fn main() {
    let files: Vec<String> = std::env::args().skip(3).collect();
    let mut sources = Vec::new();
    for f in &files {
        match std::fs::read_to_string(f) {
            Ok(text) => sources.push(Source {
                name: f.clone(),
                text,
            }),
            Err(e) => eprintln!("{f}: {e}"),
        }
    }
    let Some(protocol) = sources.first().and_then(|s| match Tables::protocol_of(s) {
        Ok(p) => protocol_named(&p),
        Err(e) => {
            eprintln!("{e}");
            None
        }
    }) else {
        return;
    };
    match load_tables(protocol, &sources) {
        Err(e) => println!("{e}"),
        Ok(tables) => {
            let (n, failed) = run_examples(&tables);
            for f in &failed {
                println!("{f}");
            }
            println!("{n} examples, {} failed", failed.len());
        }
    }
}
