//! From JSON to bytes: what decodes without a problem comes back.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| moulsniff_fuzz::encode::encode(data));
