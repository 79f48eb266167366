//! A table file, and bytes that it describes.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| moulsniff_fuzz::readers::table_bytes(data));
