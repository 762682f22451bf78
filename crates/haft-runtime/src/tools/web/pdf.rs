//! PDF to text, by a program of the system that sees nothing but the file on its input and reaches nothing.

use crate::confined::filter::{Filter, filter};
use crate::scene::Scene;
use std::path::Path;
use std::time::Duration;

/// Where the program is, if it is anywhere.
const PLACES: &[&str] = &["/usr/bin/pdftotext", "/usr/local/bin/pdftotext", "/bin/pdftotext"];
/// As long may it take.
const PATIENCE: Duration = Duration::from_secs(30);
/// As much may it print.
const OUTPUT_MAX: usize = 8 << 20;

/// The text of a PDF, or why there is none.
pub(super) fn text(bytes: &[u8], scene: &Scene) -> Result<String, String> {
    let program = PLACES.iter().find(|path| Path::new(path).is_file()).ok_or_else(|| {
        "no text can be made of it, because `pdftotext` is not here; install poppler-utils".to_owned()
    })?;
    let argv = [program, "-q", "-enc", "UTF-8", "-", "-"].map(str::to_owned);
    let wanted = Filter { argv: &argv, material: bytes, project: false, timeout: PATIENCE, output: OUTPUT_MAX };
    let printed = filter(scene, &wanted).map_err(|error| format!("no text could be made of it: {}", error.message))?;
    Ok(String::from_utf8_lossy(&printed).into_owned())
}
