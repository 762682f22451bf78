//! Texts and replacements of every kind: editing never panics, changes only what it says it changes, and
//! where the words stand exactly it does what the standard library does.
#![no_main]

use haft_runtime::tools::file::edit::replace;
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // Too few bytes to make an edit of is not a finding.
    let _ = attempt(&mut Unstructured::new(data));
});

fn attempt(u: &mut Unstructured<'_>) -> Result<()> {
    let (text, old, new) = (text(u)?, text(u)?, text(u)?);
    let all = u.arbitrary()?;
    let edited = match replace(&text, &old, &new, all) {
        Ok(edited) => edited,
        Err(error) => {
            assert!(!error.explain("a file").message.is_empty());
            return Ok(());
        }
    };
    assert_ne!(edited.text, text, "an edit that changes nothing is an error");
    assert!(!edited.lines.is_empty() && (all || edited.lines.len() == 1), "{:?}", edited.lines);
    assert!(
        edited.lines.is_sorted() && edited.lines.iter().all(|line| (1..=text.matches('\n').count() + 1).contains(line))
    );
    // Where line ends need no care, replacing is what everybody calls replacing.
    if text.contains(&old) && !text.contains('\r') {
        assert_eq!(edited.text, text.replace(&old, &new));
    }
    Ok(())
}

/// Few letters, so that words recur; among them those that need care.
fn text(u: &mut Unstructured<'_>) -> Result<String> {
    const LETTERS: &[&str] = &["a", "b", " ", "\n", "\r\n", "\r", "'", "\"", "\u{2018}", "\u{201d}", "é", "日"];
    (0..u.int_in_range(0..=24)?).map(|_| u.choose(LETTERS).copied()).collect()
}
