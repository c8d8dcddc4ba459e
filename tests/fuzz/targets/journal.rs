#![no_main]

#[path = "../../fast/fuzz/checks/mod.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::run("journal", data));
