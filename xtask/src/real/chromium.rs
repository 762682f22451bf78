//! A Chromium: the machine's, Debian's for who may install it, or the one that is packed for npm, which brings
//! the libraries it needs and so runs for anybody.
//!
//! The latter is a headless shell: it is driven through the `DevTools` protocol like any other, but cannot
//! `--dump-dom`.

use super::npm::Npm;
use super::place::{install, place, texts};
use super::{Export, pins, there};
use crate::needs::CHROMIUM;
use anyhow::{Context, Result, anyhow};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const VARIABLE: &str = "HAFT_TEST_CHROMIUM";

/// Its libraries and fonts lie beside it.
const SCRIPT: &str = r#"#!/bin/sh
here="${0%/*}"
LD_LIBRARY_PATH="$here/lib" FONTCONFIG_PATH="$here" exec "$here/headless_shell" --no-zygote "$@"
"#;

pub(super) fn bring() -> Result<Vec<Export>> {
    let program = CHROMIUM.meet().or_else(|sentence| packed().with_context(|| anyhow!(sentence)))?;
    Ok(vec![(VARIABLE, program)])
}

fn packed() -> Result<PathBuf> {
    let npm = Npm::find()?;
    let packages = npm.packages("chromium", "ci")?.join("@sparticuz/chromium/bin");
    let unpack = pins("chromium").join("unpack.mjs");
    let lock = pins("chromium").join("package-lock.json");
    let place = place("chromium-shell", &texts(&[lock, unpack.clone()])?, |dir| {
        let mut command = Command::new(npm.node()?);
        command.arg(&unpack).arg(there(packages)?).arg(dir);
        install(&mut command, &dir.join("log"))?;
        script(&dir.join("chromium"))
    })?;
    there(place.join("chromium"))
}

fn script(to: &Path) -> Result<()> {
    fs::write(to, SCRIPT).context("cannot write a script")?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o755)).context("cannot make a script runnable")
}
