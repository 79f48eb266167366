//! Capture files of every kind: any bytes are read to their end, and what is written from them
//! reads the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| moulsniff_fuzz::files::capture(data));
