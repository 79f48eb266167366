//! States: any bytes after any descriptors.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| moulsniff_fuzz::readers::sdl_blob(data));
