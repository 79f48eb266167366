//! Link layers, IP with its fragments, TCP and UDP: any frames give bytes that tile their streams.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| moulsniff_fuzz::frames::flow(data));
