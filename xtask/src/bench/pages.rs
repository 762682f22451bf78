//! What it costs to read a page and to look at its text, beside others that turn HTML into text.

use super::report::{Row, table};
use crate::sh;
use anyhow::{Context, Result};
use serde_json::Value;

const PAGES_MB_S: f64 = 50.0;
const SCAN_MB_S: f64 = 100.0;

const PROSE: &str = "\
Article pages of about 40 KB, made by the benchmark: to markdown by haft and by two other libraries in turns, and the text
that comes of them scanned. The others are in a package of their own, `xtask/peers`, so that haft does not depend on them.

";

/// A part of the web's section of `BENCHMARKS.md`.
pub(super) fn body() -> Result<String> {
    let manifest = sh::root().join("xtask/peers/Cargo.toml");
    let target = sh::root().join("target/peers");
    let (manifest, target) = (manifest.to_string_lossy().into_owned(), target.to_string_lossy().into_owned());
    let args = ["run", "--release", "--quiet", "--manifest-path", &manifest, "--target-dir", &target];
    let said = sh::capture(&mut sh::cargo(&args))?;
    let object = said.lines().rev().find(|line| line.starts_with('{')).context("the benchmark prints no JSON")?;
    Ok(format!("{PROSE}{}", table(&rows(&serde_json::from_str(object)?)?)))
}

fn rows(numbers: &Value) -> Result<Vec<Row>> {
    let number = |name: &str| numbers[name].as_f64().with_context(|| format!("the benchmark does not say {name}"));
    let (ours, main) = (number("haft_mb_s")?, number("main_mb_s")?);
    let (text, htmd, scan) = (number("html2text_mb_s")?, number("htmd_mb_s")?, number("scan_mb_s")?);
    // What is judged is time: so many milliseconds for a megabyte.
    let time = |speed: f64| 1000.0 / speed;
    Ok(vec![
        Row::within(&format!("a megabyte of HTML to markdown ({ours:.0} MB/s)"), time(ours), "ms", time(PAGES_MB_S))
            .peer(format!("html2text: {text:.0} MB/s, htmd: {htmd:.0} MB/s"), text.max(htmd) / ours),
        Row::only(&format!("the same, main content only ({main:.0} MB/s)"), time(main), "ms"),
        Row::within(&format!("a megabyte of text scanned ({scan:.0} MB/s)"), time(scan), "ms", time(SCAN_MB_S)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_number_is_needed() {
        let whole = json!({"haft_mb_s": 90, "main_mb_s": 80, "html2text_mb_s": 10, "htmd_mb_s": 40, "scan_mb_s": 150});
        assert_eq!(rows(&whole).unwrap().len(), 3);
        assert!(rows(&json!({"haft_mb_s": 90})).is_err());
    }
}
