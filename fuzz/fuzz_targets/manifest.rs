//! Bytes of every kind as a tool's file: reading never panics, every flaw has a place, what is read is linted, and
//! mending it gives something that can still be read.
#![no_main]

use haft_core::manifest::lint::{Found, lint};
use haft_core::manifest::{Manifest, Written, fix};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let flaws = match Manifest::read(&text) {
        Ok(manifest) => lint(&manifest, &Written::new(&text), "fuzzed", &Found::default()),
        Err(flaws) => {
            assert!(!flaws.is_empty(), "refused without a reason");
            flaws
        }
    };
    assert!(flaws.iter().all(|flaw| flaw.line > 0 && flaw.column > 0 && !flaw.message.is_empty()));
    let (mended, count) = fix::mend(&text, &flaws);
    assert_eq!(count == 0, mended == text);
    if let Ok(manifest) = Manifest::read(&mended) {
        let left = lint(&manifest, &Written::new(&mended), "fuzzed", &Found::default());
        assert!(fix::mend(&mended, &flaws).1 == 0 || !left.is_empty(), "mending does not end");
    }
});
