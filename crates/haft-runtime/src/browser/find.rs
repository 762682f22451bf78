//! Where the browser is.

use super::BrowserSettings;
use haft_core::CallError;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What it is called on one system or another.
const NAMES: [&str; 5] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];
/// Where the real program is, where the name is that of a script that needs more of the system than a browser does.
const BEHIND: [&str; 5] = [
    "/usr/lib/chromium/chromium",
    "/usr/lib/chromium-browser/chromium-browser",
    "/usr/lib64/chromium-browser/chromium-browser",
    "/usr/lib64/chromium/chromium",
    "/opt/google/chrome/chrome",
];

impl BrowserSettings {
    /// The program, as the configuration names it or as it is found on the PATH.
    pub fn find(&self) -> Result<PathBuf, CallError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let dirs: Vec<PathBuf> = std::env::split_paths(&path).filter(|dir| dir.is_absolute()).collect();
        self.find_in(&dirs).map(|program| behind(&program))
    }

    fn find_in(&self, dirs: &[PathBuf]) -> Result<PathBuf, CallError> {
        let on_path = |name: &str| dirs.iter().map(|dir| dir.join(name)).find(|path| is_program(path));
        let Some(named) = &self.program else {
            return NAMES.iter().find_map(|name| on_path(name)).ok_or_else(absent);
        };
        let missing = || {
            CallError::not_found(format!("`{named}`, which `browser.program` names, is not a program"))
                .hint("name Chromium or Chrome by its full path, or leave it out to have it found on the PATH")
        };
        if named.contains('/') {
            return Some(PathBuf::from(named))
                .filter(|path| path.is_absolute() && is_program(path))
                .ok_or_else(missing);
        }
        on_path(named).ok_or_else(missing)
    }
}

fn absent() -> CallError {
    CallError::not_found("there is no browser here: neither Chromium nor Chrome is on the PATH")
        .hint("install one (`apt install chromium`), or name it as `browser.program` in the configuration")
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The program itself where a script stands before it.
fn behind(program: &Path) -> PathBuf {
    let real = program.canonicalize().unwrap_or_else(|_| program.to_owned());
    let mut start = [0; 2];
    let script = std::fs::File::open(&real).and_then(|mut file| file.read_exact(&mut start)).is_ok() && &start == b"#!";
    let beside = real.parent().map(|dir| dir.join("chrome"));
    let known = beside.into_iter().chain(BEHIND.map(PathBuf::from)).find(|path| script && is_program(path));
    known.unwrap_or(real)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn it_is_found_by_its_usual_names_or_as_it_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let dirs = [dir.path().to_owned()];
        let usual = BrowserSettings::default();
        let error = usual.find_in(&dirs).unwrap_err();
        assert!(error.message.contains("there is no browser here"), "{error:?}");
        assert!(error.hint.as_deref().is_some_and(|hint| hint.contains("apt install chromium")), "{error:?}");
        let program = dir.path().join("google-chrome");
        std::fs::write(&program, "x").unwrap();
        assert!(usual.find_in(&dirs).is_err(), "nobody can run it");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(usual.find_in(&dirs).unwrap(), program);
        let named = |name: &str| BrowserSettings { program: Some(name.to_owned()), ..BrowserSettings::default() };
        assert_eq!(named("google-chrome").find_in(&dirs).unwrap(), program);
        assert_eq!(named(&program.display().to_string()).find_in(&[]).unwrap(), program);
        for missing in ["firefox", "/nowhere/chromium", "./google-chrome"] {
            assert!(named(missing).find_in(&dirs).unwrap_err().message.contains("is not a program"), "{missing}");
        }
    }
}
