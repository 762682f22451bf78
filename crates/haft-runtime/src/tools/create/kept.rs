//! Whether what a manifest runs comes with it: what a person is asked about is all that runs.

use crate::shelf::strange;
use haft_core::manifest::{Exec, Manifest};
use haft_core::preview::inert;
use std::collections::BTreeMap;
use std::path::Path;

/// What it names and does not bring, a line each.
pub(super) fn missing(root: &Path, manifest: &Manifest, files: &BTreeMap<String, String>) -> Vec<String> {
    let mut lines = unbrought(manifest, files);
    let own = format!(".haft/tools/{}", manifest.name);
    match strange(root, &root.join(&own), manifest) {
        // What comes after this is found when it is accepted.
        Ok(found) => lines.extend(found.iter().map(|path| {
            let shown = inert(&path.strip_prefix(root).unwrap_or(path).to_string_lossy());
            format!("exec: it would open `{shown}`, which is not among `files`; bring it along, as {own}/NAME")
        })),
        Err(why) => lines.push(format!("exec: {why}")),
    }
    lines
}

/// What its manifest names by a path or as its module, and is not there.
fn unbrought(manifest: &Manifest, files: &BTreeMap<String, String>) -> Vec<String> {
    let own = format!(".haft/tools/{}", manifest.name);
    let inside = |path: &str| {
        let path = path.strip_prefix("./").unwrap_or(path).trim_end_matches('/').to_owned();
        let rest = path.strip_prefix(own.as_str())?;
        if rest.is_empty() { Some(String::new()) } else { rest.strip_prefix('/').map(str::to_owned) }
    };
    let brought = |path: &str| inside(path).is_some_and(|path| files.contains_key(&path));
    match &manifest.exec {
        Exec::Command(command) if command.entrypoint.contains('/') && !brought(&command.entrypoint) => {
            let shown = inert(&command.entrypoint);
            vec![format!(
                "exec.command.entrypoint: `{shown}` is not among `files`; one beside tool.yml is {own}/NAME from the \
                 project's root"
            )]
        }
        Exec::Python(python) => {
            let (file, package) = (python.module.replace('.', "/"), format!("{}/__init__.py", python.module));
            let there = files.contains_key(&format!("{file}.py")) || files.contains_key(&package.replace('.', "/"));
            let at_home = python.cwd.as_deref().and_then(inside).is_some_and(|rest| rest.is_empty());
            let mut lines = Vec::new();
            if !there {
                lines.push(format!("exec.python.module: `{file}.py` is not among `files`"));
            }
            if !at_home {
                lines.push(format!("exec.python.cwd: has to be {own}, where its module is"));
            }
            if python.venv.is_some() {
                lines.push("exec.python.venv: nobody could look through what is in it".to_owned());
            }
            lines
        }
        _ => Vec::new(),
    }
}
