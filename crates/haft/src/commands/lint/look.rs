//! What lies around a manifest: its program, its module, the tools it may call.

use super::files::File;
use crate::config::Paths;
use haft_core::manifest::lint::{Module, lint};
use haft_core::manifest::{Exec, Flaw, Manifest, Python, Written};
use haft_runtime::shelf::{self, Spot};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// What python brings along.
const STDLIB: &str = include_str!("stdlib.txt");
/// So much of a module is looked at.
const MODULE_MAX: u64 = 256 << 10;

/// What all manifests of a run have in common.
pub(super) struct Around<'r> {
    paths: &'r Paths,
    names: Vec<String>,
    tools: OnceLock<Arc<BTreeSet<String>>>,
    servers: OnceLock<Option<Arc<BTreeSet<String>>>>,
}

impl<'r> Around<'r> {
    pub(super) fn new(paths: &'r Paths, files: &[File]) -> Self {
        let names = files.iter().map(|file| file.name.clone()).collect();
        Self { paths, names, tools: OnceLock::new(), servers: OnceLock::new() }
    }

    /// The tools that a step may call, in every spelling.
    pub(super) fn tools(&self) -> Arc<BTreeSet<String>> {
        let all = || {
            let shipped = haft_runtime::tools::all().iter().map(|tool| &tool.spec().name);
            let spoken = shipped.flat_map(|name| [name.to_string(), name.api_name()]);
            Arc::new(spoken.chain(self.names.iter().cloned()).collect())
        };
        Arc::clone(self.tools.get_or_init(all))
    }

    /// Whether a bridged server may have this tool: what it offers is known when it runs.
    pub(super) fn may_serve(&self, tool: &str) -> bool {
        let server = tool.strip_prefix("mcp:").and_then(|rest| rest.split(':').next());
        let server = server.or_else(|| tool.strip_prefix("mcp__").and_then(|rest| rest.split("__").next()));
        server.is_some_and(|server| self.servers().is_none_or(|servers| servers.contains(server)))
    }

    /// The servers that the configuration bridges. A broken one says nothing, and then nothing is said of servers.
    fn servers(&self) -> Option<Arc<BTreeSet<String>>> {
        let all = || Some(Arc::new(crate::config::servers_named(self.paths).ok()?));
        self.servers.get_or_init(all).clone()
    }
}

/// Everything that is wrong with one tool.
pub(super) fn flaws(around: &Around<'_>, file: &File) -> Vec<Flaw> {
    let text = match file.text() {
        Ok(text) => text,
        Err(why) => return vec![why],
    };
    let manifest = match Manifest::read(&text) {
        Ok(manifest) => manifest,
        Err(flaws) => return flaws,
    };
    let spot = Spot { root: around.paths.root(), dir: &file.dir, whose: file.whose };
    let (mut found, start) = shelf::around(&manifest, spot);
    match &manifest.exec {
        Exec::Python(python) => found.module = start.map(|start| module(&start, python)),
        Exec::Pipeline(_) => (found.tools, found.servers) = (Some(around.tools()), around.servers()),
        Exec::Mcp(_) => found.servers = around.servers(),
        Exec::Http(_) | Exec::Command(_) => {}
    }
    lint(&manifest, &Written::new(&text), &file.name, &found)
}

fn module(start: &Path, python: &Python) -> Module {
    let below = start.join(python.module.replace('.', "/"));
    let file = [below.with_extension("py"), below.join("__init__.py")].into_iter().find(|file| file.is_file());
    file.map_or(Module::Missing, |file| Module::File(foreign(&file, start)))
}

/// The first import of a module that is neither python's own nor beside it.
fn foreign(file: &Path, cwd: &Path) -> Option<String> {
    let mut text = String::new();
    std::fs::File::open(file).ok()?.take(MODULE_MAX).read_to_string(&mut text).ok()?;
    let own = |name: &str| {
        let beside = |dir: &Path| dir.join(name).is_dir() || dir.join(format!("{name}.py")).is_file();
        beside(cwd) || file.parent().is_some_and(beside)
    };
    let known = |name: &str| name.starts_with('_') || STDLIB.split_whitespace().any(|known| known == name);
    text.lines().flat_map(imports).find(|name| !known(name) && !own(name)).map(str::to_owned)
}

/// The modules that a line imports, by their first names.
fn imports(line: &str) -> Vec<&str> {
    let line = line.split('#').next().unwrap_or_default().trim();
    if let Some(list) = line.strip_prefix("import ") {
        return list.split(',').filter_map(single).collect();
    }
    let from = line.strip_prefix("from ").and_then(|rest| rest.split_once(" import "));
    from.and_then(|(module, _)| single(module)).into_iter().collect()
}

/// The `a` of `a.b` or `a.b as c`; anything else is prose.
fn single(part: &str) -> Option<&str> {
    let mut words = part.split_whitespace();
    let name = words.next()?.split('.').next()?;
    let said = matches!((words.next(), words.next(), words.next()), (None, ..) | (Some("as"), Some(_), None));
    (said && !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_told_from_prose() {
        assert_eq!(imports("import os, requests as r  # both"), ["os", "requests"]);
        assert_eq!(imports("    from numpy.linalg import norm"), ["numpy"]);
        assert_eq!(imports("from . import beside"), [""; 0]);
        assert_eq!(imports("import the data from the file"), [""; 0]);
        assert_eq!(imports("important = 5"), [""; 0]);
    }
}
