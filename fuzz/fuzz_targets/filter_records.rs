//! A filter, and a message it is asked of.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| moulsniff_fuzz::readers::filter_records(data));
