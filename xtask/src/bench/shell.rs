//! What it costs to understand a command before it runs. The library measures itself beside bash; this gathers
//! a long script that people wrote, and judges.

use super::report::{Row, table};
use crate::sh;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

const ONE_LINER_US: f64 = 60.0;
const ALWAYS_US: f64 = 50_000.0;
const SCRIPT_MS: f64 = 5.0;
/// About as long as the script is.
const SCRIPT_BYTES: usize = 100_000;
/// Where systems keep scripts.
const PLACES: &[&str] = &["/usr/lib/git-core", "/usr/libexec/git-core", "/usr/bin", "/usr/sbin"];

const PROSE: &str = "\
Parsing and judging, without running anything: the one-liners in `crates/haft/benches/one-liners.txt`, and
scripts of this machine's own programs in one text. bash beside it only parses the same (`bash -n`), all in one
process whose start is not counted; it says nothing about what a command does.

";

/// The section of `BENCHMARKS.md`.
pub(super) fn body() -> Result<String> {
    let with = json!({"script": script(PLACES.iter().map(Path::new))?});
    let bench = ["bench", "--package", "haft", "--bench", "shell", "--", "--with", &with.to_string()];
    let said = sh::capture(&mut sh::cargo(&bench))?;
    let object = said.lines().rev().find(|line| line.starts_with('{')).context("the benchmark prints no JSON")?;
    let mut text = PROSE.to_owned();
    text.push_str(&table(&rows(&serde_json::from_str(object)?)?));
    Ok(text)
}

/// Scripts that are installed here, one after the other, in a file below `target/`.
fn script<'p>(places: impl Iterator<Item = &'p Path>) -> Result<PathBuf> {
    let mut text = String::new();
    for path in places.flat_map(scripts) {
        let Ok(script) = fs::read_to_string(&path) else { continue };
        if text.len() + script.len() <= SCRIPT_BYTES {
            let _ = writeln!(text, "{script}");
        }
    }
    if text.len() < SCRIPT_BYTES / 2 {
        bail!("there are only {} bytes of shell scripts here", text.len());
    }
    let file = sh::root().join("target/bench-script.sh");
    fs::write(&file, text)?;
    Ok(file)
}

/// The shell scripts right in a directory, by name.
fn scripts(place: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = entries.filter(|path| is_script(path)).collect();
    found.sort();
    found
}

fn is_script(path: &Path) -> bool {
    let Ok(text) = fs::read(path) else { return false };
    let head = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let shell = [&b"#!/bin/sh"[..], b"#!/bin/bash", b"#! /bin/sh", b"#! /bin/bash", b"#!/usr/bin/env bash"];
    let whole = || sh::command("bash", &["-n"]).arg(path).output().is_ok_and(|said| said.status.success());
    shell.iter().any(|shell| head.starts_with(shell)) && whole()
}

fn rows(numbers: &Value) -> Result<Vec<Row>> {
    let number = |part: &str, name: &str| {
        numbers[part][name].as_f64().with_context(|| format!("the benchmark does not say {name} of {part}"))
    };
    let line = |name: &str| number("one_liners", name);
    let what = format!("one of {} one-liners", line("count")?);
    let (mean, peer) = (line("mean_us")?, line("bash_mean_us")?);
    let (script, bash) = (number("script", "p50_us")? / 1e3, number("script", "bash_us")? / 1e3);
    let kilobytes = number("script", "bytes")? / 1e3;
    Ok(vec![
        Row::within(&format!("{what}, p50"), line("p50_us")?, "µs", ONE_LINER_US),
        Row::only(&format!("{what}, p95"), line("p95_us")?, "µs"),
        Row::within(&format!("{what}, the slowest"), line("max_us")?, "µs", ALWAYS_US),
        Row::only(&format!("{what}, mean"), mean, "µs").peer(format!("bash -n: {peer:.1} µs"), mean / peer),
        Row::within(&format!("{kilobytes:.0} KB of scripts"), script, "ms", SCRIPT_MS)
            .peer(format!("bash -n: {bash:.1} ms"), script / bash),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_needed() {
        let mut whole = json!({
            "one_liners": {"count": 9, "p50_us": 1.0, "p95_us": 2, "max_us": 3, "mean_us": 2, "bash_mean_us": 1},
            "script": {"bytes": 99_000, "p50_us": 1000, "bash_us": 500},
        });
        assert_eq!(rows(&whole).unwrap().len(), 5);
        whole["script"] = json!({});
        assert!(rows(&whole).is_err());
    }

    #[test]
    fn too_little_to_measure_is_said() {
        assert!(script(std::iter::once(Path::new("/no/such/place"))).is_err());
    }
}
