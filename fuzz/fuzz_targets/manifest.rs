//! Bytes of every kind as a tool's file: reading never panics, every flaw stands somewhere in the text, what is read is
//! linted, and mending ends: what was mended is as it should be, and mending it again changes nothing.
#![no_main]

use haft_core::manifest::lint::{Found, lint};
use haft_core::manifest::{Flaw, Manifest, Written, fix};
use libfuzzer_sys::fuzz_target;

/// Mending one flaw lets others be seen, but not for ever.
const ROUNDS: usize = 8;

fn flaws(text: &str) -> Vec<Flaw> {
    match Manifest::read(text) {
        Ok(manifest) => lint(&manifest, &Written::new(text), "fuzzed", &Found::default()),
        Err(flaws) => {
            assert!(!flaws.is_empty(), "refused without a reason");
            flaws
        }
    }
}

/// Whether a flaw stands in the text, or right behind it.
fn is_placed(flaw: &Flaw, text: &str) -> bool {
    let lines = text.split(['\n', '\r']).count() as u64;
    let longest = text.split('\n').map(|line| line.chars().count()).max().unwrap_or_default() as u64;
    (1..=lines + 1).contains(&flaw.line) && (1..=longest + 2).contains(&flaw.column)
}

fuzz_target!(|data: &[u8]| {
    let mut text = String::from_utf8_lossy(data).into_owned();
    for round in 0.. {
        let found = flaws(&text);
        for flaw in &found {
            assert!(is_placed(flaw, &text) && !flaw.message.is_empty(), "{}:{}", flaw.line, flaw.column);
        }
        let (mended, count) = fix::mend(&text, &found);
        assert_eq!(count == 0, mended == text);
        if count == 0 {
            break;
        }
        assert_eq!(fix::mend(&mended, &found).1, 0, "mended twice");
        assert!(round < ROUNDS, "mending does not end");
        text = mended;
    }
});
