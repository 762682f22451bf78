//! The interpreter that a function runs in: that of a virtual environment, or the machine's own.
//!
//! What Python loads before anybody watches it is its own library. That is never the project's: an agent that may write
//! there would choose what every function starts with.

use super::places::look_up;
use crate::confined::environment::{self, is_projects};
use haft_core::CallError;
use haft_core::preview::{cut, inert};
use haft_sandbox::roots::followed;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The largest `pyvenv.cfg`.
const CONFIG_MAX: u64 = 64 << 10;

/// An interpreter, and what of it lies outside the system.
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) made_of: Vec<PathBuf>,
    /// The virtual environment that it is of.
    pub(super) venv: Option<PathBuf>,
}

/// The interpreter of a virtual environment, or the machine's own. An environment lies in the project or beside the
/// manifest, and nothing of it is shown but what an environment has.
pub(super) fn interpreter((root, own): (&Path, &Path), venv: Option<&str>) -> Result<Found, CallError> {
    let Some(venv) = venv else {
        let path = machines_own(root).ok_or_else(|| {
            CallError::not_found("there is no python3 on this machine")
                .hint("install Python 3.8 or later outside the project, or name a venv")
        })?;
        let made_of = prefix(&path).into_iter().collect();
        return Ok(Found { path, made_of, venv: None });
    };
    let shown = cut(&inert(venv), 80);
    let dir = root.join(venv).canonicalize().ok();
    let path = dir.as_ref().and_then(|dir| {
        ["python3", "python"].map(|name| dir.join("bin").join(name)).into_iter().find(|path| path.exists())
    });
    let (Some(dir), Some(path)) = (dir, path) else {
        return Err(CallError::not_found(format!("there is no virtual environment at `{shown}`"))
            .hint(format!("`python3 -m venv {shown}` makes one")));
    };
    let below = |place: &Path| place.canonicalize().is_ok_and(|place| dir.starts_with(&place) && dir != place);
    if !(below(root) || below(own)) || !dir.join("pyvenv.cfg").is_file() {
        return Err(CallError::invalid(format!("`{shown}` is no virtual environment of the project"))
            .hint("one that `python3 -m venv` made lies below the project's root and has a pyvenv.cfg"));
    }
    check_base(root, &dir, &path).map_err(|why| {
        CallError::invalid(format!("the virtual environment `{shown}` cannot be used: {why}"))
            .hint("make it with a Python that is installed on this machine")
    })?;
    let parts = ["bin", "lib", "lib64", "pyvenv.cfg"].map(|part| dir.join(part));
    // `lib64` is a link to `lib` there, and links are not roots.
    let real = |part: &PathBuf| part.symlink_metadata().is_ok_and(|meta| !meta.is_symlink());
    let made_of = parts.into_iter().filter(real).chain(prefix(&path)).collect();
    Ok(Found { path, made_of, venv: Some(dir) })
}

/// Errs unless an environment is made of a Python that is installed, and not of one that lies in the project.
fn check_base(root: &Path, dir: &Path, python: &Path) -> Result<(), String> {
    let said = |path: &Path| inert(&path.to_string_lossy());
    let real = followed(python).ok().filter(|real| real.is_file());
    let real =
        real.ok_or_else(|| format!("its `{}` is no program", said(python.strip_prefix(dir).unwrap_or(python))))?;
    let installed = environment::is_system(&real) || (is_installed(&real) && !is_projects(&real, root));
    if !installed && !real.starts_with(dir) {
        return Err(format!("its Python is `{}`, which is not where programs are installed", said(&real)));
    }
    for home in homes(dir)? {
        let real = followed(&home).unwrap_or_else(|_| home.clone());
        if !home.is_absolute() || [&home, &real].into_iter().any(|place| is_projects(place, root)) {
            return Err(format!("its pyvenv.cfg says that its Python is in `{}`, in the project", said(&home)));
        }
        if !environment::is_system(&real) && !is_installed(&real.join("python3")) {
            return Err(format!(
                "its pyvenv.cfg says that its Python is in `{}`, where none is installed",
                said(&home)
            ));
        }
    }
    Ok(())
}

/// Where an environment says that its Python is. Which of several counts is Python's business.
fn homes(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let mut text = Vec::new();
    let file = std::fs::File::open(dir.join("pyvenv.cfg"));
    let read = file.and_then(|file| file.take(CONFIG_MAX + 1).read_to_end(&mut text));
    read.map_err(|error| format!("its pyvenv.cfg cannot be read: {error}"))?;
    if text.len() as u64 > CONFIG_MAX {
        return Err(format!("its pyvenv.cfg is larger than {} KiB", CONFIG_MAX >> 10));
    }
    let text = String::from_utf8_lossy(&text);
    let pairs = text.split(['\n', '\r']).filter_map(|line| line.split_once('='));
    let homes = pairs.filter(|(key, _)| key.trim().eq_ignore_ascii_case("home"));
    Ok(homes.map(|(_, home)| PathBuf::from(home.trim())).collect())
}

/// Whether a program lies where the user keeps programs.
fn is_installed(real: &Path) -> bool {
    let prefix = real.parent().and_then(Path::parent).unwrap_or(real);
    environment::toolchains().iter().any(|place| prefix.starts_with(place) || real.starts_with(place))
}

/// The first python3 on the PATH that is a program, and none of the project's: that of an activated environment would run
/// what is in it. A script by that name chooses one by files that a confined program does not see.
fn machines_own(root: &Path) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        let mut first = [0; 2];
        std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok() && first != *b"#!"
    };
    let elsewhere = |path: &PathBuf| {
        let Ok(real) = followed(path) else { return false };
        // Each call asks, and nearly always this is the answer.
        if environment::is_system(path) && environment::is_system(&real) {
            return true;
        }
        let dir = path.parent().and_then(|dir| followed(dir).ok());
        dir.is_some_and(|dir| !is_projects(&dir, root) && !is_projects(&real, root))
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).filter(|dir| dir.is_absolute()).map(|dir| dir.join("python3"));
    let usual = ["/usr/bin/python3", "/usr/local/bin/python3"].map(PathBuf::from);
    look_up("python3").into_iter().chain(on_path).chain(usual).find(|path| is_program(path) && elsewhere(path))
}

/// Where an interpreter's own library is, if that is not the system's.
fn prefix(path: &Path) -> Option<PathBuf> {
    let real = followed(path).ok().filter(|real| !environment::is_system(real))?;
    let prefix = real.parent().and_then(Path::parent)?;
    // Only where programs are kept is there an installation around one; a home is none.
    let around_home = environment::real_home().is_some_and(|home| home.starts_with(prefix));
    if !is_installed(&real) || around_home || prefix.parent().is_none() || !prefix.join("lib").is_dir() {
        return Some(real);
    }
    Some(prefix.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::ErrorKind;
    use std::os::unix::fs::symlink;

    /// A place with a project in it.
    fn place() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        std::fs::create_dir(top.join("project")).unwrap();
        (dir, top)
    }

    /// An environment whose Python is this one, by this home.
    fn environment(at: &Path, python: &Path, home: &str) {
        std::fs::create_dir_all(at.join("bin")).unwrap();
        std::fs::create_dir_all(at.join("lib")).unwrap();
        symlink(python, at.join("bin/python3")).unwrap();
        std::fs::write(at.join("pyvenv.cfg"), format!("version = 3\n{home}\n")).unwrap();
    }

    fn system() -> PathBuf {
        PathBuf::from("/usr/bin/env")
    }

    #[test]
    fn a_venv_that_is_not_there_is_said_to_be() {
        let (_dir, top) = place();
        let error = interpreter((&top, &top), Some(".venv")).err().unwrap();
        assert_eq!(error.message, "there is no virtual environment at `.venv`");
        assert_eq!(error.hint.as_deref(), Some("`python3 -m venv .venv` makes one"));
    }

    #[test]
    fn a_venv_lies_in_the_project_or_beside_the_manifest() {
        let (_dir, top) = place();
        let (root, own) = (top.join("project"), top.join("tool"));
        for at in ["outside", "tool/.venv", "project/.venv", "project"] {
            environment(&top.join(at), &system(), "home = /usr/bin");
        }
        std::fs::create_dir_all(root.join("bare/bin")).unwrap();
        symlink(system(), root.join("bare/bin/python3")).unwrap();
        symlink(top.join("outside"), root.join("linked")).unwrap();
        let outside = top.join("outside").to_str().unwrap().to_owned();
        for elsewhere in ["../outside", &outside, "linked", ".", "bare"] {
            let error = interpreter((&root, &own), Some(elsewhere)).err().unwrap();
            let said = format!("`{}` is no virtual environment of the project", cut(elsewhere, 80));
            assert_eq!((error.kind, error.message), (ErrorKind::InvalidInput, said));
        }
        let found = interpreter((&root, &own), Some(".venv")).ok().unwrap();
        assert_eq!(found.path, root.join(".venv/bin/python3"));
        assert_eq!(found.made_of, ["bin", "lib", "pyvenv.cfg"].map(|part| root.join(".venv").join(part)));
        let beside = own.join(".venv");
        assert_eq!(interpreter((&root, &own), beside.to_str()).ok().unwrap().venv, Some(beside));
    }

    #[test]
    fn its_python_is_installed_and_not_the_projects() {
        let (_dir, top) = place();
        let root = top.join("project");
        std::fs::create_dir_all(root.join("base/bin")).unwrap();
        for python in ["project/base/bin/python3", "python3"] {
            std::fs::copy(system(), top.join(python)).unwrap();
        }
        symlink(root.join("base"), top.join("way")).unwrap();
        let (below, by_way) = (root.join("base/bin"), top.join("way/bin"));
        let home = |path: &Path| format!("Home= {}", path.display());
        let twice = format!("home = /usr/bin\n{}", home(&below));
        let good = "home = /usr/bin".to_owned();
        for (number, (python, home, why)) in [
            (below.join("python3"), good.clone(), "not where programs are installed"),
            (top.join("python3"), good.clone(), "not where programs are installed"),
            (PathBuf::from("/usr"), good.clone(), "is no program"),
            (system(), home(&below), "in the project"),
            (system(), home(&by_way), "in the project"),
            (system(), twice, "in the project"),
            (system(), "home = base/bin".to_owned(), "in the project"),
        ]
        .into_iter()
        .enumerate()
        {
            let name = format!("venv{number}");
            environment(&root.join(&name), &python, &home);
            let error = interpreter((&root, &root), Some(&name)).err().unwrap();
            assert_eq!(error.kind, ErrorKind::InvalidInput);
            assert!(error.message.contains(why), "{python:?} {home}: {}", error.message);
        }
        environment(&root.join("copied"), &system(), &good);
        std::fs::remove_file(root.join("copied/bin/python3")).unwrap();
        std::fs::copy(system(), root.join("copied/bin/python3")).unwrap();
        assert!(interpreter((&root, &root), Some("copied")).is_ok(), "one that was copied is part of the environment");
    }

    #[test]
    fn what_is_the_projects_is_not_the_machines() {
        let (_dir, top) = place();
        assert!(is_projects(&top.join("project/x"), &top.join("project")));
        assert!(!is_projects(&top.join("projects"), &top.join("project")));
        assert!(!is_projects(Path::new("/usr/bin/python3"), Path::new("/")), "a home lies there as well");
    }
}
