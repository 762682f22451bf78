//! Any text: a scan never panics, points at characters, and a wrapper holds whatever is in it.
#![no_main]

use haft_core::scan::{scan, wrapped};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let found = scan(&text);
    assert!(found.score <= 100 && found.findings.len() <= 64);
    assert!(found.findings.iter().all(|finding| text.is_char_boundary(finding.at)));
    let whole = wrapped(&text, "fuzz", "0123456789abcdef", &found);
    assert!(whole.contains(&*text) && whole.ends_with("</untrusted mark=\"0123456789abcdef\">"));
});
