//! The program `moulsniff`.

fn main() {}
