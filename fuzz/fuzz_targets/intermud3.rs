//! Intermud-3: framing and mudmode values.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| moulsniff_fuzz::sessions::intermud3(data));
