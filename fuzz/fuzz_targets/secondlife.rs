//! Second Life: datagrams of a circuit.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| moulsniff_fuzz::sessions::secondlife(data));
