//! What lies around a manifest, looked at as it is looked at when the tool runs: by the same functions, so that whoever
//! lints a tool hears what whoever calls it would hear.

use super::Whose;
use super::places::{self, Ground};
use super::venv::interpreter;
use crate::confined::environment;
use haft_core::manifest::lint::{Found, Place, Program};
use haft_core::manifest::{Command, Exec, Manifest, Python};
use haft_core::{CallError, ErrorKind};
use std::path::{Path, PathBuf};

/// Where a tool is, and whose it is.
#[derive(Debug, Clone, Copy)]
pub struct Spot<'s> {
    /// The project.
    pub root: &'s Path,
    /// The tool's own directory.
    pub dir: &'s Path,
    /// Whose it is.
    pub whose: Whose,
}

impl<'s> Spot<'s> {
    /// Where its paths begin: the user's own tools find what is theirs beside themselves.
    fn base(self) -> &'s Path {
        match self.whose {
            Whose::Own => self.dir,
            Whose::Project => self.root,
        }
    }
}

/// What lies around a manifest, but for what a module imports and for other tools. Beside it: where its module is looked
/// for, if it has one.
pub fn around(manifest: &Manifest, spot: Spot<'_>) -> (Found, Option<PathBuf>) {
    let ground = Ground { root: spot.base(), project: spot.root, dir: spot.dir, permissions: &manifest.permissions };
    let mut found = Found { whose: spot.whose, ..Found::default() };
    match &manifest.exec {
        Exec::Command(command) => {
            found.program = Some(program(&ground, command));
            found.start = Some(place(&ground.start(command.cwd.as_deref())));
            (found, None)
        }
        Exec::Python(Python { cwd, venv, .. }) => {
            let start = ground.start(cwd.as_deref());
            found.start = Some(place(&start));
            found.venv = venv.as_deref().map(|venv| place(&interpreter((ground.root, ground.dir), Some(venv))));
            (found, start.ok())
        }
        Exec::Http(_) | Exec::Mcp(_) | Exec::Pipeline(_) => (found, None),
    }
}

fn place<T>(found: &Result<T, CallError>) -> Place {
    match found {
        Ok(_) => Place::There,
        Err(error) if error.kind == ErrorKind::NotFound => Place::Missing,
        Err(_) => Place::Outside,
    }
}

fn program(ground: &Ground<'_>, command: &Command) -> Program {
    let named = &command.entrypoint;
    let path = ground.root.join(named);
    let Err(error) = ground.entry(named) else {
        // What is installed is interpreted by what is installed with it.
        return Program::Runs(named.contains('/').then(|| shebang(&path)).flatten());
    };
    match path.canonicalize() {
        _ if error.kind == ErrorKind::NotFound => Program::Missing,
        Ok(real) if real.is_dir() => Program::Missing,
        Ok(real) if ground.holds(&real) || environment::is_system(&real) => Program::NotExecutable,
        _ => Program::Outside,
    }
}

/// The interpreter that a script's first line names.
fn shebang(path: &Path) -> Option<String> {
    if path.canonicalize().is_ok_and(|real| environment::is_system(&real)) {
        return None;
    }
    places::shebang(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const COMMAND: &str = "name: t\ndescription: T\nkind: command\nversion: 1\ninputs: {schema: {type: object}}\n\
        outputs: {format: text}\nexec: {command: {entrypoint: ENTRY, cwd: CWD}}\n\
        permissions: {network: false, fs: {read: [], write: []}}\napproval: {required: false}\n";

    fn put(path: &Path, mode: u32) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn paths_begin_where_they_begin_when_the_tool_runs() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let (root, own) = (top.join("project"), top.join("home/tools/t"));
        put(&root.join("in_project.sh"), 0o755);
        put(&own.join("beside.sh"), 0o755);
        put(&own.join("plain.sh"), 0o644);
        let look = |entry: &str, cwd: &str, whose| {
            let manifest = Manifest::read(&COMMAND.replace("ENTRY", entry).replace("CWD", cwd)).unwrap();
            let found = around(&manifest, Spot { root: &root, dir: &own, whose }).0;
            (found.program.unwrap(), found.start.unwrap())
        };
        let runs = || Program::Runs(Some("/bin/sh".to_owned()));
        assert_eq!(look("./in_project.sh", ".", Whose::Project), (runs(), Place::There));
        assert_eq!(look("./beside.sh", ".", Whose::Project), (Program::Missing, Place::There));
        assert_eq!(look("./beside.sh", "..", Whose::Own), (runs(), Place::Outside));
        assert_eq!(look("./in_project.sh", "gone", Whose::Own), (Program::Missing, Place::Missing));
        assert_eq!(look("./plain.sh", ".", Whose::Own), (Program::NotExecutable, Place::There));
        assert_eq!(look("../../../project/in_project.sh", ".", Whose::Own).0, Program::Outside);
        // A name without a slash is looked up and nowhere else, and what is installed is named in full or by name.
        assert_eq!(look("beside.sh", ".", Whose::Own).0, Program::Missing);
        assert_eq!(look("sh", ".", Whose::Own).0, Program::Runs(None));
        assert_eq!(look("/bin/sh", ".", Whose::Own).0, Program::Runs(None));
    }

    #[test]
    fn an_environment_is_one_that_would_run() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        for venv in ["with3", "bare"] {
            let name = if venv == "bare" { "python" } else { "python3" };
            put(&top.join(venv).join("bin").join(name), 0o755);
            std::fs::write(top.join(venv).join("pyvenv.cfg"), "").unwrap();
        }
        put(&top.join("fake/bin/python3"), 0o755);
        let look = |venv: &str| {
            let exec = format!("{{python: {{module: m, function: run, venv: {venv}}}}}");
            let text = COMMAND.replace("{command: {entrypoint: ENTRY, cwd: CWD}}", &exec).replace("command", "python");
            let manifest = Manifest::read(&text).unwrap();
            around(&manifest, Spot { root: &top, dir: &top, whose: Whose::Project }).0.venv.unwrap()
        };
        assert_eq!(
            ["with3", "bare", "fake", "gone"].map(look),
            [Place::There, Place::There, Place::Outside, Place::Missing]
        );
        assert_ne!(look("/usr"), Place::There);
    }
}
