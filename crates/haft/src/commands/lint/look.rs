//! What lies around a manifest: its program, its module, the tools it may call.

use super::files::File;
use haft_core::manifest::lint::{Found, Module, Program, lint};
use haft_core::manifest::{Command, Exec, Flaw, Manifest, Python, Written};
use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// What python brings along.
const STDLIB: &str = include_str!("stdlib.txt");
/// So much of a module is looked at.
const MODULE_MAX: u64 = 256 << 10;

/// What all manifests of a run have in common.
pub(super) struct Around<'r> {
    root: &'r Path,
    names: Vec<String>,
    tools: OnceLock<Arc<BTreeSet<String>>>,
}

impl<'r> Around<'r> {
    pub(super) fn new(root: &'r Path, files: &[File]) -> Self {
        Self { root, names: files.iter().map(|file| file.name.clone()).collect(), tools: OnceLock::new() }
    }

    /// The tools that a step may call, in every spelling.
    fn tools(&self) -> Arc<BTreeSet<String>> {
        let all = || {
            let shipped = haft_runtime::tools::all().iter().map(|tool| &tool.spec().name);
            let spoken = shipped.flat_map(|name| [name.to_string(), name.api_name()]);
            Arc::new(spoken.chain(self.names.iter().cloned()).collect())
        };
        Arc::clone(self.tools.get_or_init(all))
    }
}

/// Everything that is wrong with one tool.
pub(super) fn flaws(around: &Around<'_>, file: &File) -> Vec<Flaw> {
    let text = match file.text() {
        Ok(text) => text,
        Err(why) => return vec![Flaw::error("file", "", why)],
    };
    let manifest = match Manifest::read(&text) {
        Ok(manifest) => manifest,
        Err(flaws) => return flaws,
    };
    let found = match &manifest.exec {
        Exec::Command(command) => Found { program: Some(program(around, file, command)), ..Found::default() },
        Exec::Python(python) => found_python(around, python),
        Exec::Pipeline(_) => Found { tools: Some(around.tools()), ..Found::default() },
        Exec::Http(_) | Exec::Mcp(_) => Found::default(),
    };
    lint(&manifest, &Written::new(&text), &file.name, &found)
}

fn program(around: &Around<'_>, file: &File, command: &Command) -> Program {
    let named = &command.entrypoint;
    if !named.contains('/') {
        let places = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&places).map(|place| place.join(named)).find(|path| is_executable(path));
        return found.map_or(Program::Missing, |_| Program::Runs(None));
    }
    let Ok(real) = around.root.join(named).canonicalize() else { return Program::Missing };
    if !real.is_file() {
        return Program::Missing;
    }
    let own = file.dir.canonicalize().is_ok_and(|dir| real.starts_with(dir));
    if !own && !around.root.canonicalize().is_ok_and(|root| real.starts_with(root)) {
        return Program::Outside;
    }
    if is_executable(&real) { Program::Runs(shebang(&real)) } else { Program::NotExecutable }
}

fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The interpreter that a script's first line names.
fn shebang(path: &Path) -> Option<String> {
    let mut begin = Vec::new();
    std::fs::File::open(path).ok()?.take(256).read_to_end(&mut begin).ok()?;
    let begin = String::from_utf8_lossy(&begin);
    Some(begin.lines().next()?.strip_prefix("#!")?.trim().to_owned())
}

fn found_python(around: &Around<'_>, python: &Python) -> Found {
    let cwd = around.root.join(python.cwd.as_deref().unwrap_or("."));
    let venv = python.venv.as_ref().map(|venv| around.root.join(venv).join("bin/python").exists());
    let below = cwd.join(python.module.replace('.', "/"));
    let file = [below.with_extension("py"), below.join("__init__.py")].into_iter().find(|file| file.is_file());
    let module = file.map_or(Module::Missing, |file| Module::File(foreign(&file, &cwd)));
    Found { module: Some(module), venv, ..Found::default() }
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
