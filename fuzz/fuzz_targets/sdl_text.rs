//! State descriptors: texts, and files encrypted in either way.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| moulsniff_fuzz::readers::sdl_text(data));
