//! A capture as an HTML page, and as every other text for people.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| moulsniff_fuzz::exports::page(data));
