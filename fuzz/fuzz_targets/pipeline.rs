//! Whole captures through every room, with all outputs: each line is JSON, each byte is accounted
//! for.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| moulsniff_fuzz::frames::pipeline(data));
