//! Texts in which somebody copied bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| moulsniff_fuzz::files::dump(data));
