//! Whether what a manifest runs comes with it or is there.

use haft_core::manifest::{Exec, Manifest};
use std::collections::BTreeMap;
use std::path::Path;

/// What it names and nobody brings, a line each.
pub(super) fn missing(manifest: &Manifest, files: &BTreeMap<String, String>, root: &Path) -> Vec<String> {
    let own = format!(".haft/tools/{}/", manifest.name);
    let brought = |path: &str| {
        let path = path.strip_prefix("./").unwrap_or(path);
        path.strip_prefix(own.as_str()).is_some_and(|inside| files.contains_key(inside))
    };
    match &manifest.exec {
        Exec::Command(command) if command.entrypoint.contains('/') && !command.entrypoint.contains("${") => {
            let entrypoint = &command.entrypoint;
            if brought(entrypoint) || root.join(entrypoint).exists() {
                return Vec::new();
            }
            let shown = haft_core::preview::inert(entrypoint);
            vec![format!(
                "exec.command.entrypoint: there is no `{shown}`; a file beside tool.yml is {own}NAME from the project's root"
            )]
        }
        _ => Vec::new(),
    }
}
