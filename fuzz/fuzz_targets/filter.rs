//! Filter expressions: any text is refused with a place, or asked of records.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| moulsniff_fuzz::readers::filter(data));
