//! MOUL: opening, key agreement, messages, holes, late joins.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| moulsniff_fuzz::sessions::moul(data));
