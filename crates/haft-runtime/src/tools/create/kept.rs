//! Whether what a manifest runs comes with it: what a person is asked about is all that runs.

use haft_core::manifest::{Exec, Manifest};
use std::collections::BTreeMap;

/// What it names and does not bring, a line each.
pub(super) fn missing(manifest: &Manifest, files: &BTreeMap<String, String>) -> Vec<String> {
    let own = format!(".haft/tools/{}", manifest.name);
    let inside = |path: &str| {
        let path = path.strip_prefix("./").unwrap_or(path).trim_end_matches('/').to_owned();
        path.strip_prefix(own.as_str()).map(|rest| rest.trim_start_matches('/').to_owned())
    };
    let brought = |path: &str| inside(path).is_some_and(|path| files.contains_key(&path));
    match &manifest.exec {
        Exec::Command(command) if command.entrypoint.contains('/') && !brought(&command.entrypoint) => {
            let shown = haft_core::preview::inert(&command.entrypoint);
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
