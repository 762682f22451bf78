//! Texts and limits of every kind: cutting never panics, keeps within the limits but for its note, and
//! counts honestly what it leaves out.
#![no_main]

use haft_core::shape::{Keep, Limits, detect, truncate};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    detect(data);
    // Too few bytes to make limits of is not a finding.
    let _ = attempt(Unstructured::new(data));
});

fn attempt(mut u: Unstructured<'_>) -> Result<()> {
    let keep = *u.choose(&[Keep::Head, Keep::Tail, Keep::HeadAndTail])?;
    let limits = Limits { lines: limit(&mut u)?, bytes: limit(&mut u)?, keep };
    let text = String::from_utf8_lossy(u.take_rest()).into_owned();
    let cut = truncate(&text, limits);
    if cut.hidden_bytes == 0 {
        assert_eq!(cut.text, text, "nothing hidden, nothing changed");
        return Ok(());
    }
    let note = format!("[Output truncated - {} bytes hidden, {} lines]", cut.hidden_bytes, cut.hidden_lines);
    assert!(cut.text.contains(&note), "{note} is not in {:?}", cut.text);
    // The note stands on a line of its own, hence two line ends.
    let room = limits.bytes.saturating_add(note.len() + 2);
    assert!(cut.text.len() <= room, "{} bytes are more than {room}", cut.text.len());
    let lines = cut.text.lines().count();
    assert!(lines <= limits.lines.saturating_add(1), "{lines} lines are more than {} and a note", limits.lines);
    assert!(cut.hidden_bytes <= text.len() && cut.hidden_lines <= text.lines().count(), "hides what is not there");
    Ok(())
}

/// Mostly small, so that something is cut; sometimes as large as they come, as unlimited is written.
fn limit(u: &mut Unstructured<'_>) -> Result<usize> {
    Ok(if u.ratio(1, 8)? { u.arbitrary()? } else { u.int_in_range(0..=200)? })
}
