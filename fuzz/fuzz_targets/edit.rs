//! Texts and replacements of every kind: editing never panics, changes only what it says it changes, and
//! where the words stand exactly it does what the standard library does.
#![no_main]

use haft_runtime::tools::file::edit::{Occurrences, Quotes, Replacement};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // Too few bytes to make an edit of is not a finding.
    let _ = attempt(&mut Unstructured::new(data));
});

fn attempt(u: &mut Unstructured<'_>) -> Result<()> {
    let (text, old, new) = (text(u)?, text(u)?, text(u)?);
    let all: bool = u.arbitrary()?;
    let occurrences = if all { Occurrences::All } else { Occurrences::Only };
    let quotes = *u.choose(&[Quotes::AsWritten, Quotes::Alike])?;
    let edited = match (Replacement { old: &old, new: &new, occurrences, quotes }).apply_to_text(&text) {
        Ok(edited) => edited,
        Err(error) => {
            assert!(!error.explain("a file").message.is_empty());
            return Ok(());
        }
    };
    let content = String::from_utf8(edited.content);
    assert!(content.is_ok(), "text does not stay text");
    let content = content.unwrap_or_default();
    let lines = edited.lines;
    assert_ne!(content, text, "an edit that changes nothing is an error");
    assert!(lines.total > 0 && (all || lines.total == 1), "{lines:?}");
    let known = 1..=text.matches('\n').count() + 1;
    assert!(lines.first.is_sorted() && lines.first.iter().all(|line| known.contains(line)));
    // Where line ends need no care, replacing is what everybody calls replacing.
    if text.contains(&old) && !text.contains('\r') {
        assert_eq!(content, text.replace(&old, &new));
    }
    // A CRLF is taken whole: where neither text names a CR, none comes to stand without an LF or goes from one.
    let stray = |text: &str| text.matches('\r').count() - text.matches("\r\n").count();
    if !old.contains('\r') && !new.contains('\r') && stray(&text) == 0 {
        assert_eq!(stray(&content), 0, "{text:?} {old:?} {new:?}");
    }
    Ok(())
}

/// Few letters, so that words recur; among them those that need care.
fn text(u: &mut Unstructured<'_>) -> Result<String> {
    const LETTERS: &[&str] = &["a", "b", " ", "\n", "\r\n", "\r", "'", "\"", "\u{2018}", "\u{201d}", "é", "日"];
    (0..u.int_in_range(0..=24)?).map(|_| u.choose(LETTERS).copied()).collect()
}
