//! City of Heroes: links over UDP and TCP, pieces, bit streams.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| moulsniff_fuzz::sessions::ouro(data));
