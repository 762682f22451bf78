//! The real clients, servers and browser that tests are run against: pinned in `tests/real`, installed below
//! `target/needs` and nowhere else, kept between runs.
//!
//! A part is installed again when its pins change, and only then. Parts are installed side by side, because each
//! mostly waits for a registry. What cannot be had is said; the tests that need it then fail, unless whoever runs
//! them said that they do without (`HAFT_TEST_WITHOUT_MCP=1`, `HAFT_TEST_WITHOUT_CHROMIUM=1`).

mod chromium;
mod npm;
mod place;
pub(crate) mod postgres;
mod python;

use crate::needs::{FD, PDFTOTEXT, RG, SPEECH};
use crate::sh;
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Who does without a server says so by this.
const WITHOUT_POSTGRES: &str = "HAFT_TEST_WITHOUT_POSTGRES";

/// A server for the tests, unless whoever runs them does without. Only the superuser may install Debian's; everybody else
/// gets the one from npm, or is told that its tests are left out.
pub(crate) fn server(real: &mut Real) -> Option<postgres::Postgres> {
    if without(WITHOUT_POSTGRES) {
        real.missing.push(format!("{WITHOUT_POSTGRES} is set: no test meets a real PostgreSQL"));
        return None;
    }
    match postgres::Postgres::start() {
        Ok(server) => Some(server),
        Err(error) if sh::is_root() => {
            real.missing.push(format!("could not: {error:#}; the tests of the shared store fail"));
            None
        }
        Err(error) => {
            real.missing.push(format!("{error:#}; the tests of the shared store are left out"));
            real.settings.push((WITHOUT_POSTGRES, "1"));
            None
        }
    }
}

/// What a test finds in its environment: a variable, and the file or directory it names.
type Export = (&'static str, PathBuf);

/// What could be brought, and a sentence for each thing that could not.
#[derive(Debug, Default)]
pub(crate) struct Real {
    pub(crate) exports: Vec<Export>,
    pub(crate) missing: Vec<String>,
    /// What tests are told to do without.
    pub(crate) settings: Vec<(&'static str, &'static str)>,
}

/// Who does without what says so by these.
const WITHOUT_MCP: &str = "HAFT_TEST_WITHOUT_MCP";
const WITHOUT_CHROMIUM: &str = "HAFT_TEST_WITHOUT_CHROMIUM";
const WITHOUT_WORDLLAMA: &str = "HAFT_TEST_WITHOUT_WORDLLAMA";

/// Brings everything that is not there yet.
pub(crate) fn meet() -> Real {
    let mut real = Real::default();
    if without_mcp() {
        real.missing.push(format!("{WITHOUT_MCP} is set: no test meets a real MCP client or server"));
    } else {
        mcp(&mut real);
    }
    if without(WITHOUT_CHROMIUM) {
        real.missing.push(format!("{WITHOUT_CHROMIUM} is set: no test opens the page"));
    } else {
        let tests = "the tests of the page fail (HAFT_TEST_WITHOUT_CHROMIUM=1 leaves them out)";
        real.take(chromium::bring(), tests);
    }
    if without(WITHOUT_WORDLLAMA) {
        real.missing.push(format!("{WITHOUT_WORDLLAMA} is set: no test meets the real word vectors"));
    } else {
        let tests = "the test of the real word vectors fails (HAFT_TEST_WITHOUT_WORDLLAMA=1 leaves it out)";
        real.take(python::word_vectors(), tests);
    }
    packaged(&mut real);
    if let Err(error) = remember(&real.exports) {
        real.missing.push(format!("could not: {error:#}; tests started without `cargo xtask` find nothing"));
    }
    real
}

/// One of the things, brought if need be.
pub(crate) fn found(variable: &str) -> Result<PathBuf> {
    let real = meet();
    let export = real.exports.into_iter().find(|(name, _)| *name == variable);
    export.map(|(_, path)| path).with_context(|| format!("{variable}: {}", real.missing.join("; ")))
}

/// A Python that sees the durable workflows which work is measured beside. Tests do not need it.
pub(crate) fn durable_peer() -> Result<PathBuf> {
    peer(python::DURABLE)
}

/// One that sees the agents which conversations are measured beside.
pub(crate) fn agents_peer() -> Result<PathBuf> {
    peer(python::AGENTS)
}

fn peer(part: python::Part) -> Result<PathBuf> {
    let found = part.bring()?.into_iter().next();
    found.map(|(_, path)| path).context("nothing was brought")
}

/// What is there, as lines for a shell.
pub(crate) fn print() -> Result<()> {
    let real = meet();
    print!("{}", shell(&real.exports));
    real.missing.iter().for_each(|sentence| eprintln!("{sentence}"));
    let failed = real.missing.iter().filter(|sentence| sentence.starts_with("could not")).count();
    anyhow::ensure!(failed == 0, "{failed} of the things that tests need could not be had");
    Ok(())
}

/// Programs that only Debian's packages bring: who may not install them does without.
fn packaged(real: &mut Real) {
    let wanted = [
        (&SPEECH, "HAFT_TEST_SPEECH", "HAFT_TEST_WITHOUT_SPEECH"),
        (&PDFTOTEXT, "HAFT_TEST_PDFTOTEXT", "HAFT_TEST_WITHOUT_PDFTOTEXT"),
        (&RG, "HAFT_TEST_RG", "HAFT_TEST_WITHOUT_RG"),
        (&FD, "HAFT_TEST_FD", "HAFT_TEST_WITHOUT_FD"),
    ];
    for (need, variable, otherwise) in wanted {
        match need.meet() {
            Ok(program) => real.exports.push((variable, program)),
            Err(sentence) if sh::is_root() && !without(otherwise) => real.missing.push(sentence),
            Err(sentence) => {
                real.missing.push(sentence.replacen("could not: ", "", 1));
                real.settings.push((otherwise, "1"));
            }
        }
    }
}

fn mcp(real: &mut Real) {
    let tests = "the tests with real MCP clients and servers fail (HAFT_TEST_WITHOUT_MCP=1 leaves them out)";
    // Python first where npm is missing, because `PyPI` has an npm.
    let npm = npm::Npm::find();
    let brought = std::thread::scope(|scope| {
        let pythons =
            [python::TWO, python::ONE, python::OLD, python::FRAMEWORKS].map(|part| scope.spawn(move || part.bring()));
        let nodes = scope.spawn(|| match &npm {
            Ok(npm) => vec![npm.core(), npm.inspector(), npm.agents(), npm.frameworks()],
            Err(error) => vec![Err(anyhow::anyhow!("{error:#}"))],
        });
        let mut all: Vec<Result<Vec<Export>>> = Vec::new();
        all.extend(pythons.into_iter().map(|thread| joined(thread.join())));
        all.extend(nodes.join().unwrap_or_else(|_| vec![joined(Err(Box::new(())))]));
        all
    });
    for part in brought {
        real.take(part, tests);
    }
}

fn joined(ended: std::thread::Result<Result<Vec<Export>>>) -> Result<Vec<Export>> {
    ended.unwrap_or_else(|_| Err(anyhow::anyhow!("the installation ended abruptly")))
}

impl Real {
    fn take(&mut self, part: Result<Vec<Export>>, cost: &str) {
        match part {
            Ok(exports) => self.exports.extend(exports),
            Err(error) => self.missing.push(format!("could not: {error:#}; {cost}")),
        }
    }
}

/// Whether whoever runs this does without real clients and servers.
pub(crate) fn without_mcp() -> bool {
    without(WITHOUT_MCP)
}

fn without(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| value == "1")
}

fn home() -> PathBuf {
    sh::root().join("target/needs")
}

fn pins(name: &str) -> PathBuf {
    sh::root().join("tests/real").join(name)
}

/// Leaves a file by which tests find what is there, however they were started.
fn remember(exports: &[Export]) -> Result<()> {
    let lines: Vec<String> = exports.iter().map(|(name, path)| format!("{name}={}", path.display())).collect();
    std::fs::create_dir_all(home()).context("cannot make target/needs")?;
    let draft = home().join(format!(".env-{}", std::process::id()));
    std::fs::write(&draft, lines.join("\n")).context("cannot write below target/needs")?;
    std::fs::rename(&draft, home().join("env")).context("cannot write target/needs/env")
}

fn shell(exports: &[Export]) -> String {
    let mut lines = String::new();
    for (name, path) in exports {
        let quoted = path.to_string_lossy().replace('\'', r"'\''");
        let _ = writeln!(lines, "export {name}='{quoted}'");
    }
    lines
}

/// Fails with the path in the sentence: a package that installs without what is used of it has changed.
fn there(path: PathBuf) -> Result<PathBuf> {
    if path.is_file() || path.is_dir() { Ok(path) } else { anyhow::bail!("{} is not there", shown(&path)) }
}

/// A path from the repository on.
fn shown(path: &Path) -> String {
    path.strip_prefix(sh::root()).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_can_read_what_is_exported() {
        let exports = [("HAFT_TEST_NODE", PathBuf::from("/it's here/node"))];
        let script = format!("{}printf %s \"$HAFT_TEST_NODE\"", shell(&exports));
        let said = sh::capture(&mut sh::command("sh", &["-c", &script])).unwrap();
        assert_eq!(said, "/it's here/node");
    }

    #[test]
    fn what_could_not_be_brought_is_said_with_what_it_costs() {
        let mut real = Real::default();
        real.take(Err(anyhow::anyhow!("there is no npm")), "nothing is tested");
        assert_eq!(real.missing, ["could not: there is no npm; nothing is tested"]);
    }
}
