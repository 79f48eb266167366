//! Every type and message of every protocol's tables over any bytes, from any bit.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| moulsniff_fuzz::readers::evaluator(data));
