//! Arguments of every kind in every dialect: translating never panics, and what was understood can be
//! said again and is understood the same.
#![no_main]

use haft_core::Dialect;
use haft_core::dialect::Entry;
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static ENTRIES: LazyLock<Vec<&Entry>> = LazyLock::new(|| Dialect::ALL.into_iter().flat_map(Dialect::entries).collect());

fuzz_target!(|data: &[u8]| {
    // Too few bytes to make arguments of is not a finding.
    let _ = attempt(&mut Unstructured::new(data));
});

fn attempt(u: &mut Unstructured<'_>) -> Result<()> {
    let entry = u.choose(&ENTRIES)?;
    let said = haft_fuzz::arguments(entry.input_schema(), u)?;
    entry.fits(&said);
    let Ok(meant) = entry.to_canonical(said) else { return Ok(()) };
    let again = entry.to_spoken(&meant);
    assert_eq!(entry.to_canonical(again.clone()), Ok(meant), "{} said again as {again}", entry.spoken());
    Ok(())
}
