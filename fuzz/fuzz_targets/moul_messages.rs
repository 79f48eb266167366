//! MOUL: connections of valid messages, damaged after they were encrypted.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| moulsniff_fuzz::messages::moul_messages(data));
