//! `cargo xtask bench`: what haft costs, beside what does the same job without it. Peer and haft take
//! turns within one run, so that a busy machine slows both, and only ratios are judged where there is a
//! peer. Nothing is left out for being slow: a number that misses its target is printed as such.

mod apply;
mod clients;
mod conversing;
mod doors;
mod finding;
mod haft;
mod hooks;
mod manifests;
mod memory;
mod overhead;
mod pages;
mod peers;
mod read;
mod report;
mod samples;
mod sandbox;
mod search;
mod shell;
mod start;
mod tools;
mod tree;
mod web;
mod work;

use crate::sh;
use anyhow::{Context, Result};
use report::{Machine, Row, Section};
use std::path::PathBuf;

const CALLS: &str = "Calls and files";
const APPLYING: &str = "Applying changes";
const CONFINEMENT: &str = "Confinement";
const SHELL: &str = "Shell commands";
const DOORS: &str = "Doors";
const CLIENTS: &str = "Coding agents";
const WEB: &str = "The web";
const TOOLS: &str = "Tools as files";
const FINDING: &str = "Finding tools";
const AGENTS: &str = "Agents";
const MEMORY: &str = "Memory";
const WORK: &str = "Work that lasts";

/// Everything.
pub(crate) fn run() -> Result<()> {
    let sections = [
        calls()?,
        applying(None)?,
        confinement()?,
        commands()?,
        at_the_doors()?,
        beside_agents()?,
        on_the_web()?,
        as_files()?,
        found()?,
        conversing()?,
        remembering()?,
        lasting()?,
    ];
    write(&report::document(&sections, &Machine::here()?))
}

/// Only what applying changes costs; beside another version, whose benchmark's program is given.
pub(crate) fn apply(beside: Option<&str>) -> Result<()> {
    renew(&applying(beside)?)
}

/// Only what confinement costs; the rest of `BENCHMARKS.md` stays as it was measured.
pub(crate) fn sandbox() -> Result<()> {
    renew(&confinement()?)
}

/// Only what understanding a command costs.
pub(crate) fn shell() -> Result<()> {
    renew(&commands()?)
}

/// Only what the doors cost.
pub(crate) fn doors() -> Result<()> {
    renew(&at_the_doors()?)
}

/// Only what haft costs beside a coding agent.
pub(crate) fn clients() -> Result<()> {
    renew(&beside_agents()?)
}

/// Only what the web costs: the way out, pages, the scan.
pub(crate) fn web() -> Result<()> {
    renew(&on_the_web()?)
}

/// Only what tools as files cost.
pub(crate) fn tools() -> Result<()> {
    renew(&as_files()?)
}

/// Only what finding tools costs, and how well it works.
pub(crate) fn finding() -> Result<()> {
    renew(&found()?)
}

/// Only what conversations cost.
pub(crate) fn agents() -> Result<()> {
    renew(&conversing()?)
}

/// Only what memory costs, and how well it finds.
pub(crate) fn memory() -> Result<()> {
    renew(&remembering()?)
}

/// Only what steps and tasks cost.
pub(crate) fn work() -> Result<()> {
    renew(&lasting()?)
}

fn renew(section: &Section) -> Result<()> {
    let old = std::fs::read_to_string(path()).unwrap_or_default();
    write(&report::renewed(&old, section, &Machine::here()?))
}

fn calls() -> Result<Section> {
    let mut rows = overhead::rows()?;
    match haft::Haft::build()? {
        Some(haft) => {
            rows.extend(start::rows(&haft)?);
            rows.extend(search::rows(&haft)?);
            rows.extend(read::rows(&haft)?);
        }
        None => rows.push(Row::missing("everything that starts a process", "the binary does not exist yet")),
    }
    let body = report::table(&rows);
    print!("{body}");
    Ok(Section { title: CALLS, body })
}

fn applying(beside: Option<&str>) -> Result<Section> {
    let body = report::table(&apply::rows(beside)?);
    print!("{body}");
    Ok(Section { title: APPLYING, body })
}

fn confinement() -> Result<Section> {
    let body = match haft::Haft::build()? {
        Some(haft) => sandbox::body(&haft)?,
        None => report::table(&[Row::missing("confinement", "the binary does not exist yet")]),
    };
    print!("{body}");
    Ok(Section { title: CONFINEMENT, body })
}

fn commands() -> Result<Section> {
    let body = shell::body()?;
    print!("{body}");
    Ok(Section { title: SHELL, body })
}

fn at_the_doors() -> Result<Section> {
    let body = match haft::Haft::build()? {
        Some(haft) => doors::body(&haft)?,
        None => report::table(&[Row::missing("the doors", "the binary does not exist yet")]),
    };
    print!("{body}");
    Ok(Section { title: DOORS, body })
}

fn beside_agents() -> Result<Section> {
    let body = match haft::Haft::build()? {
        Some(haft) => clients::body(&haft)?,
        None => report::table(&[Row::missing("coding agents", "the binary does not exist yet")]),
    };
    print!("{body}");
    Ok(Section { title: CLIENTS, body })
}

fn on_the_web() -> Result<Section> {
    let body = format!("{}\n{}", web::body()?, pages::body()?);
    print!("{body}");
    Ok(Section { title: WEB, body })
}

fn as_files() -> Result<Section> {
    let body = format!("{}\n{}", manifests::body()?, tools::body()?);
    print!("{body}");
    Ok(Section { title: TOOLS, body })
}

fn found() -> Result<Section> {
    let body = finding::body()?;
    print!("{body}");
    Ok(Section { title: FINDING, body })
}

fn conversing() -> Result<Section> {
    let body = conversing::body()?;
    print!("{body}");
    Ok(Section { title: AGENTS, body })
}

fn remembering() -> Result<Section> {
    let body = memory::body()?;
    print!("{body}");
    Ok(Section { title: MEMORY, body })
}

fn lasting() -> Result<Section> {
    let body = work::body()?;
    print!("{body}");
    Ok(Section { title: WORK, body })
}

fn path() -> PathBuf {
    sh::root().join("BENCHMARKS.md")
}

fn write(document: &str) -> Result<()> {
    std::fs::write(path(), document).context("cannot write BENCHMARKS.md")?;
    println!("wrote BENCHMARKS.md");
    Ok(())
}
