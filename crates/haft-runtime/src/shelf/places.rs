//! Where a manifest's program lies and starts. Whatever is named is followed to where it really is, and has to be in the
//! project, in the tool's own directory, among what the manifest declares, or among the system's programs.

use super::Whose;
use crate::confined::environment;
use crate::scene::Scene;
use haft_core::CallError;
use haft_core::manifest::Permissions;
use haft_core::preview::{cut, inert};
use haft_sandbox::roots::followed;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// How much of a script is looked at to find who reads it.
const FIRST_LINE: u64 = 256;

/// Where the places of one tool are found.
pub(super) struct Ground<'g> {
    /// Where what it starts is found from: the project; or its own directory, if it is the user's own.
    pub(super) root: &'g Path,
    /// The project, from which its places are declared.
    pub(super) project: &'g Path,
    /// The tool's own directory.
    pub(super) dir: &'g Path,
    /// What it declares.
    pub(super) permissions: &'g Permissions,
}

/// A program, and what of it lies outside the system.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// What is started.
    pub(super) path: PathBuf,
    /// What has to be read for that.
    pub(super) made_of: Vec<PathBuf>,
}

impl<'g> Ground<'g> {
    /// The ground of a tool. One of the user's own finds what belongs to it beside itself, and never in whatever project
    /// it is called in.
    pub(super) fn of(scene: &'g Scene, (dir, whose): (&'g Path, Whose), permissions: &'g Permissions) -> Self {
        let project = scene.workspace().root();
        let root = match whose {
            Whose::Own => dir,
            Whose::Project => project,
        };
        Self { root, project, dir, permissions }
    }

    /// The program that a manifest names: by a path from the project's root, or by a name that is looked up.
    pub(super) fn entry(&self, named: &str) -> Result<Entry, CallError> {
        // A name without a slash is looked up, and nowhere else: what lies in the project is named by its path.
        let found = if named.contains('/') { None } else { Some(look_up(named).unwrap_or_default()) };
        let path = found.clone().unwrap_or_else(|| self.root.join(named));
        let shown = cut(&inert(named), 80);
        let real = followed(&path).map_err(|_| {
            CallError::not_found(format!("there is no program `{shown}`"))
                .hint("a path starts at the project's root, of your own tools at their directory; a name is looked up on the PATH")
        })?;
        // What is found on the PATH is where the user has put it.
        let allowed = found.is_some() || (Path::new(named).is_absolute() && is_system(&real)) || self.holds(&real);
        if !allowed {
            return Err(CallError::invalid(format!("the entrypoint `{shown}` leads out of the project"))
                .hint("only the system's programs may lie elsewhere, named in full or by name"));
        }
        executable(&real, &shown)?;
        let mut made_of = Vec::new();
        made_of.extend(foreign(&real));
        let reader = interpreter(&real).filter(|reader| self.holds(reader) || is_installed(reader));
        made_of.extend(reader.as_deref().and_then(foreign));
        // A program that goes by the name it was called by is called by that, where the name can be read.
        let path = if is_system(&path) || self.reads(&path) { path } else { real };
        Ok(Entry { path, made_of })
    }

    /// Where it starts.
    pub(super) fn start(&self, cwd: Option<&str>) -> Result<PathBuf, CallError> {
        let Some(cwd) = cwd else { return Ok(self.root.to_owned()) };
        let shown = cut(&inert(cwd), 80);
        let real = followed(&self.root.join(cwd)).ok().filter(|real| real.is_dir());
        let real = real.ok_or_else(|| CallError::not_found(format!("there is no directory `{shown}` to start in")))?;
        if self.holds(&real) {
            return Ok(real);
        }
        Err(CallError::invalid(format!("`{shown}` leads out of the project"))
            .hint("start in the project, or in a directory under permissions.fs"))
    }

    /// Whether a place is in the project, in the tool's own directory, or declared.
    pub(super) fn holds(&self, real: &Path) -> bool {
        real.starts_with(self.root) || is_in(real, self.dir) || self.reads(real)
    }

    /// Whether the program may read a place because of what is declared.
    pub(super) fn reads(&self, place: &Path) -> bool {
        let fs = &self.permissions.fs;
        fs.read.iter().chain(&fs.write).any(|declared| is_in(place, &self.project.join(declared)))
            || is_in(place, self.dir)
    }
}

fn is_in(place: &Path, dir: &Path) -> bool {
    followed(dir).is_ok_and(|dir| place.starts_with(dir))
}

/// Whether a place is among the programs that the user has installed.
fn is_installed(path: &Path) -> bool {
    path.is_file() && environment::toolchains().iter().any(|place| path.starts_with(place))
}

fn is_system(path: &Path) -> bool {
    environment::is_system(path)
}

/// What is not among the system's programs has to be shown to be read.
fn foreign(real: &Path) -> Option<PathBuf> {
    (!is_system(real)).then(|| real.to_owned())
}

/// A program on the PATH.
pub(super) fn look_up(name: &str) -> Option<PathBuf> {
    look_up_in(&on_the_path(), name)
}

/// The directories on the PATH.
pub(super) fn on_the_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).filter(|dir| dir.is_absolute()).collect()
}

/// A program in the first of these directories that has it.
pub(crate) fn look_up_in(dirs: &[PathBuf], name: &str) -> Option<PathBuf> {
    let usable =
        |file: &PathBuf| file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
    dirs.iter().map(|dir| dir.join(name)).find(usable)
}

fn executable(real: &Path, shown: &str) -> Result<(), CallError> {
    let meta = real.metadata().map_err(|error| CallError::failed(format!("`{shown}`: {error}")))?;
    if !meta.is_file() {
        return Err(CallError::invalid(format!("the entrypoint `{shown}` is not a program")));
    }
    if meta.permissions().mode() & 0o111 == 0 {
        return Err(CallError::invalid(format!("the entrypoint `{shown}` may not be run"))
            .hint(format!("`chmod +x {shown}` lets it be run")));
    }
    Ok(())
}

/// What a script's first line says of who reads it. Whatever is no file is not waited for.
pub(super) fn shebang(path: &Path) -> Option<String> {
    let mut begin = Vec::new();
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    std::fs::File::open(path).ok()?.take(FIRST_LINE).read_to_end(&mut begin).ok()?;
    let line = begin.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    Some(String::from_utf8_lossy(line).trim().to_owned())
}

/// Who reads a script, by its first line.
pub(crate) fn interpreter(real: &Path) -> Option<PathBuf> {
    interpreter_by(real, look_up)
}

/// The same, with names looked up in this way.
pub(crate) fn interpreter_by(real: &Path, look_up: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let line = shebang(real)?;
    let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty());
    // The kernel finds a relative one from where the program starts, which is not here.
    let first = words.next().map(PathBuf::from).filter(|first| first.is_absolute())?;
    if first.file_name().is_some_and(|name| name == "env") {
        let name = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
        return followed(&look_up(name)?).ok();
    }
    followed(&first).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn program(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_program_is_the_projects_the_tools_or_the_systems() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let root = top.join("project");
        program(&root.join("scripts/x.sh"), "#!/bin/sh\n");
        program(&top.join("outside.sh"), "#!/bin/sh\n");
        program(&top.join("tool/run"), "#!/bin/sh\n");
        std::fs::write(root.join("plain.txt"), "x").unwrap();
        symlink(top.join("outside.sh"), root.join("out")).unwrap();
        symlink("/usr/bin/env", root.join("env")).unwrap();
        let permissions = Permissions::default();
        let ground = Ground { root: &root, project: &root, dir: &top.join("tool"), permissions: &permissions };
        let entry = ground.entry("./scripts/x.sh").unwrap();
        assert_eq!(entry.path, root.join("scripts/x.sh"));
        assert_eq!(entry.made_of, [root.join("scripts/x.sh")]);
        assert!(ground.entry(top.join("tool/run").to_str().unwrap()).is_ok());
        assert_eq!(ground.entry("/bin/sh").unwrap().made_of, Vec::<PathBuf>::new());
        assert!(is_system(&ground.entry("sh").unwrap().path) || !ground.entry("sh").unwrap().made_of.is_empty());
        let said = |named: &str| ground.entry(named).unwrap_err().message;
        assert_eq!(said("../outside.sh"), "the entrypoint `../outside.sh` leads out of the project");
        assert_eq!(said("./out"), "the entrypoint `./out` leads out of the project", "links are followed");
        assert_eq!(said("./env"), "the entrypoint `./env` leads out of the project", "a link is no full name");
        assert_eq!(
            said(top.join("outside.sh").to_str().unwrap()).split('`').nth(2).unwrap(),
            " leads out of the project"
        );
        assert_eq!(said("./nothing"), "there is no program `./nothing`");
        assert_eq!(said("no-such-program"), "there is no program `no-such-program`");
        assert_eq!(said("./plain.txt"), "the entrypoint `./plain.txt` may not be run");
        assert_eq!(said("./scripts"), "the entrypoint `./scripts` is not a program");
    }

    #[test]
    fn a_start_is_in_the_project_or_declared() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let root = top.join("project");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::create_dir_all(top.join("elsewhere")).unwrap();
        let mut permissions = Permissions::default();
        let start = |permissions: &Permissions, cwd: Option<&str>| {
            Ground { root: &root, project: &root, dir: &root, permissions }.start(cwd).map_err(|error| error.message)
        };
        assert_eq!(start(&permissions, None).unwrap(), root);
        assert_eq!(start(&permissions, Some("sub")).unwrap(), root.join("sub"));
        assert_eq!(start(&permissions, Some("nowhere")).unwrap_err(), "there is no directory `nowhere` to start in");
        assert_eq!(start(&permissions, Some("../elsewhere")).unwrap_err(), "`../elsewhere` leads out of the project");
        permissions.fs.read.push("../elsewhere".to_owned());
        assert_eq!(start(&permissions, Some("../elsewhere")).unwrap(), top.join("elsewhere"));
    }
}
