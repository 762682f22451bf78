//! Bytes of every kind as a configuration file: reading never panics, and what is wrong is said of the file
//! it is in.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::Arc;

fuzz_target!(|data: &[u8]| {
    let file: Arc<str> = Arc::from("fuzzed.yml");
    if let Err(error) = haft::config::parse(data, &file) {
        let said = error.to_string();
        assert!(said.contains("fuzzed.yml"), "{said} does not name its file");
        error.hint();
    }
});
