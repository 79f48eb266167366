//! Table files: any text is refused with a place, or compiled and its examples run.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| moulsniff_fuzz::files::tables(data));
