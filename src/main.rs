//! The program `moulsniff`; everything it does is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(moulsniff::cli::main(std::env::args_os()))
}
