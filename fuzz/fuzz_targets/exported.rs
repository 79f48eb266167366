//! Packets of exported messages (link type 252).
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| moulsniff_fuzz::exports::exported(data));
