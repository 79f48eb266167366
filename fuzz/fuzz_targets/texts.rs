//! Texts that are read like captures: logs, printed packets.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| moulsniff_fuzz::frames::texts(data));
