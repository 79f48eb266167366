//! A capture under pseudonyms, exported and read again.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| moulsniff_fuzz::exports::pseudonyms(data));
