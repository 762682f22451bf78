//! `cargo xtask bench`: what haft costs, beside what does the same job without it. Peer and haft take
//! turns within one run, so that a busy machine slows both, and only ratios are judged where there is a
//! peer. Nothing is left out for being slow: a number that misses its target is printed as such.

mod haft;
mod overhead;
mod read;
mod report;
mod samples;
mod search;
mod start;
mod tree;

use crate::sh;
use anyhow::{Context, Result};
use report::Row;

pub(crate) fn run() -> Result<()> {
    let mut rows = overhead::rows()?;
    match haft::Haft::build()? {
        Some(haft) => {
            rows.extend(start::rows(&haft)?);
            rows.extend(search::rows(&haft)?);
            rows.extend(read::rows(&haft)?);
        }
        None => rows.push(Row::missing("everything that starts a process", "the binary does not exist yet")),
    }
    let document = report::document(&rows, &report::Machine::here()?);
    print!("{}", report::table(&rows));
    let path = sh::root().join("BENCHMARKS.md");
    std::fs::write(&path, document).context("cannot write BENCHMARKS.md")?;
    println!("wrote BENCHMARKS.md");
    Ok(())
}
