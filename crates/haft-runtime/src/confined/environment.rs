//! The environment of a confined program: made from nothing, by a list of names that hold no secrets. A
//! list of what to leave out would miss names.

use crate::shelf::places::look_up_in;
use haft_sandbox::roots::followed;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Variables that every program may have.
const HARMLESS: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "LANG",
    "LANGUAGE",
    "TZ",
    "COLUMNS",
    "LINES",
    "CI",
];
/// Variables that say where a toolchain is, or which one: programs on the PATH find the rest of themselves by these.
const TOOLCHAIN_VARIABLES: &[&str] = &[
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "JAVA_HOME",
    "JDK_HOME",
    "MAVEN_HOME",
    "M2_HOME",
    "GRADLE_HOME",
    "KOTLIN_HOME",
    "SDKMAN_DIR",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "GOPATH",
    "GOROOT",
    "GOTOOLCHAIN",
    "NVM_DIR",
    "NVM_BIN",
    "VOLTA_HOME",
    "FNM_DIR",
    "BUN_INSTALL",
    "RBENV_ROOT",
    "RBENV_VERSION",
    "GEM_HOME",
    "GEM_PATH",
    "ASDF_DIR",
    "ASDF_DATA_DIR",
    "DOTNET_ROOT",
    "ANDROID_HOME",
    "ANDROID_SDK_ROOT",
];
/// Variables that name the certificates of authorities that the user trusts.
const CERTIFICATE_VARIABLES: &[&str] = &[
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "AWS_CA_BUNDLE",
];
/// What shows that a directory is an environment of a language: beside its `bin` is all that its programs need.
const ENVIRONMENT_MARKS: &[&str] = &["pyvenv.cfg", "conda-meta"];
/// What of it they need.
const ENVIRONMENT_PARTS: &[&str] =
    &["bin", "lib", "lib64", "libexec", "include", "share", "ssl", "etc/fonts", "conda-meta", "pyvenv.cfg"];
/// Places in a home that hold toolchains: programs on the PATH need what is beside them.
const TOOLCHAINS: &[&str] = &[
    ".cargo/bin",
    ".cargo/registry",
    ".cargo/git",
    ".cargo/env",
    ".rustup",
    ".local/bin",
    ".local/lib",
    ".local/share/uv/python",
    ".nvm",
    ".npm-global",
    ".volta",
    ".fnm",
    ".bun",
    ".deno",
    ".pyenv",
    ".rbenv",
    ".asdf",
    ".sdkman",
    "go/bin",
    "go/pkg",
    "sdk",
    // Not a toolchain, but without a name nobody can commit.
    ".gitconfig",
    ".config/git/config",
    ".config/git/ignore",
];
/// Package managers wait and try again, also where there is no network that could come back.
const NO_RETRIES: &[(&str, &str)] = &[
    ("npm_config_fetch_retries", "0"),
    ("CARGO_NET_RETRY", "0"),
    ("PIP_RETRIES", "0"),
    ("UV_HTTP_RETRIES", "0"),
    ("BUNDLE_RETRY", "0"),
];
/// How many links a program's path may lead through.
const LINKS_MAX: usize = 40;
/// For how long what was found is believed.
const FRESH: Duration = Duration::from_secs(2);
const SYSTEM: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store"];

/// Whether a place belongs to the system's programs and libraries, which every program may read.
pub(crate) fn is_system(path: &Path) -> bool {
    SYSTEM.iter().any(|system| path.starts_with(system))
}

/// Why an environment cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("the secret {0} is declared, and not set in haft's own environment")]
pub struct MissingSecret(pub String);

/// The variables for a program: the harmless ones, those passed by name, and declared secrets.
pub fn make(pass: &[String], secrets: &[String]) -> Result<Vec<(OsString, OsString)>, MissingSecret> {
    let named = |name: &OsStr| {
        let lists = [HARMLESS, TOOLCHAIN_VARIABLES, CERTIFICATE_VARIABLES];
        let harmless = lists.concat().iter().any(|known| name == *known) || name.as_encoded_bytes().starts_with(b"LC_");
        harmless || pass.iter().any(|known| name == known.as_str())
    };
    let mut env: Vec<(OsString, OsString)> = std::env::vars_os().filter(|(name, _)| named(name)).collect();
    for secret in secrets {
        let value = std::env::var_os(secret).ok_or_else(|| MissingSecret(secret.clone()))?;
        env.retain(|(name, _)| name != secret.as_str());
        env.push((secret.into(), value));
    }
    for (name, value) in [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", "/home"), ("LANG", "C.UTF-8")] {
        if !env.iter().any(|(known, _)| known == name) {
            env.push((name.into(), value.into()));
        }
    }
    env.push(("TMPDIR".into(), "/tmp".into()));
    // Without this, `git status` and `git diff` write the index when they are only asked to look.
    if !env.iter().any(|(known, _)| known == "GIT_OPTIONAL_LOCKS") {
        env.push(("GIT_OPTIONAL_LOCKS".into(), "0".into()));
        // That one does not hold for `git diff`.
        for (name, value) in [("COUNT", "1"), ("KEY_0", "diff.autoRefreshIndex"), ("VALUE_0", "false")] {
            env.push((format!("GIT_CONFIG_{name}").into(), value.into()));
        }
    }
    Ok(env)
}

/// Adds what a program without a network has to know, so that it fails at once.
pub(crate) fn add_no_network(env: &mut Vec<(OsString, OsString)>) {
    for (name, value) in NO_RETRIES {
        if !env.iter().any(|(known, _)| known == name) {
            env.push((name.into(), value.into()));
        }
    }
}

/// Whether a place is a project's. In a project that is somebody's home, or holds it, that says nothing: programs are
/// installed there.
pub(crate) fn is_projects(place: &Path, root: &Path) -> bool {
    let inside = place.starts_with(root) || followed(root).is_ok_and(|root| place.starts_with(root));
    inside && !real_home().is_some_and(|home| home.starts_with(root))
}

/// What is outside a project of all that finds and runs programs.
pub(crate) struct Outside {
    /// The PATH without what lies in the project, and without what depends on where one is: whoever may write there would
    /// choose what a tool's program means by a name.
    pub(crate) path: OsString,
    /// Directories of programs and what they need; no settings of the user's, which are files.
    pub(crate) programs: Vec<PathBuf>,
}

/// What is outside a project, looked for as rarely as toolchains are.
pub(crate) fn outside(root: &Path) -> Arc<Outside> {
    static FOUND: Mutex<Option<(Instant, PathBuf, Arc<Outside>)>> = Mutex::new(None);
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    match &*found {
        Some((at, of, outside)) if at.elapsed() < FRESH && of == root => Arc::clone(outside),
        _ => Arc::clone(&found.insert((Instant::now(), root.to_owned(), Arc::new(look_outside(root)))).2),
    }
}

fn look_outside(root: &Path) -> Outside {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let outside = |dir: &PathBuf| dir.is_absolute() && followed(dir).is_ok_and(|real| !is_projects(&real, root));
    let dirs: Vec<PathBuf> = std::env::split_paths(&path).filter(outside).collect();
    let joined = std::env::join_paths(dirs).unwrap_or_default();
    let path = if joined.is_empty() { "/usr/local/bin:/usr/bin:/bin".into() } else { joined };
    let programs = look_for_toolchains().into_iter().filter(|place| place.is_dir() && !is_projects(place, root));
    Outside { path, programs: programs.collect() }
}

/// A program on the PATH that is nobody's who may write in one of these projects: neither it nor a link on the way to it
/// lies there.
pub(crate) fn installed(name: &str, projects: &[&Path]) -> Option<PathBuf> {
    installed_on(&outside(projects.first()?).path, name, projects)
}

fn installed_on(path: &OsStr, name: &str, projects: &[&Path]) -> Option<PathBuf> {
    let foreign = |path: &PathBuf| {
        way(path).is_ok_and(|way| !way.iter().any(|place| projects.iter().any(|root| is_projects(place, root))))
    };
    std::env::split_paths(path).filter_map(|dir| look_up_in(&[dir], name)).find(foreign)
}

/// Every place that a path leads through, links followed one by one.
pub(crate) fn way(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    let parts =
        |path: &Path| -> Vec<OsString> { path.components().rev().map(|part| part.as_os_str().to_owned()).collect() };
    let (mut rest, mut at, mut links) = (parts(path), PathBuf::from("/"), 0);
    let mut places = Vec::new();
    while let Some(part) = rest.pop() {
        if part == ".." {
            at.pop();
            continue;
        }
        // What is absolute begins anew.
        let next = at.join(&part);
        if part != "." {
            places.push(next.clone());
        }
        match std::fs::read_link(&next) {
            Ok(target) if part != "." => {
                links += 1;
                if links > LINKS_MAX {
                    return Err(std::io::ErrorKind::InvalidInput.into());
                }
                rest.extend(parts(&target));
            }
            _ => at = next,
        }
    }
    // It is there, and it is where it seemed to lead.
    if followed(path)? == at { Ok(places) } else { Err(std::io::ErrorKind::InvalidInput.into()) }
}

/// The user's home.
pub fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute() && home.parent().is_some())
}

/// Whether the shell that the user has chosen for themselves, which agents use, reads a command as bash does.
pub fn user_shell_reads(command: &str) -> bool {
    let shell = std::env::var_os("SHELL").map(PathBuf::from);
    match shell.as_deref().and_then(Path::file_name).and_then(std::ffi::OsStr::to_str) {
        Some("bash") => true,
        // Without a word of theirs it is bash or sh.
        None | Some("sh" | "dash") => haft_core::shell::is_portable(command),
        Some(_) => false,
    }
}

/// The user's home, free of links.
pub fn real_home() -> Option<PathBuf> {
    home().map(|home| followed(&home).unwrap_or(home))
}

/// Directories outside the system's own that hold programs and what they need, to be read. They are looked for every
/// other second at most: each call asks twice, and following some thirty paths takes as long as all else it asks.
pub fn toolchains() -> Vec<PathBuf> {
    static FOUND: Mutex<Option<(Instant, Vec<PathBuf>)>> = Mutex::new(None);
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    match &*found {
        Some((at, dirs)) if at.elapsed() < FRESH => dirs.clone(),
        _ => found.insert((Instant::now(), look_for_toolchains())).1.clone(),
    }
}

fn look_for_toolchains() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut dirs: Vec<PathBuf> = std::env::split_paths(&path).filter(|dir| dir.is_absolute()).collect();
    if let Some(home) = home() {
        dirs.extend(TOOLCHAINS.iter().map(|dir| home.join(dir)));
    }
    for variable in [
        "RUSTUP_HOME",
        "NVM_DIR",
        "PYENV_ROOT",
        "GOROOT",
        "JAVA_HOME",
        "JDK_HOME",
        "KOTLIN_HOME",
        "VOLTA_HOME",
        "FNM_DIR",
        "BUN_INSTALL",
        "RBENV_ROOT",
        "ASDF_DIR",
        "DOTNET_ROOT",
        "ANDROID_HOME",
        "ANDROID_SDK_ROOT",
    ] {
        dirs.extend(named_place(variable));
    }
    // Not the whole of these: they also hold tokens for publishing, or other projects.
    for (variable, parts) in [
        ("CARGO_HOME", &["bin", "registry", "git", "env"][..]),
        ("GOPATH", &["bin", "pkg"]),
        ("MAVEN_HOME", &["bin", "boot", "lib"]),
        ("M2_HOME", &["bin", "boot", "lib"]),
        ("GEM_HOME", &["bin", "gems", "specifications", "extensions"]),
    ] {
        dirs.extend(named_place(variable).into_iter().flat_map(|dir| parts.iter().map(move |part| dir.join(part))));
    }
    foreign(dirs)
}

/// The place that a variable names.
fn named_place(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|place| place.is_absolute())
}

/// Those places that are there, that are not the system's, and that are not a home or around one: a home that is on the PATH is
/// still a home.
fn foreign(places: Vec<PathBuf>) -> Vec<PathBuf> {
    let real = places.into_iter().filter_map(|place| followed(&place).ok());
    let home = real_home();
    let around_home = |place: &PathBuf| home.as_ref().is_some_and(|home| home.starts_with(place));
    let mut found: Vec<PathBuf> =
        real.filter(|place| place != Path::new("/") && !around_home(place) && !is_system(place)).collect();
    found.sort();
    found.dedup();
    found
}

/// What programs read besides toolchains because the user's variables say so: environments of a language, and certificates. No
/// program counts as installed because it lies there.
pub(crate) fn environments() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let beside_bin = std::env::split_paths(&path)
        .filter(|dir| dir.is_absolute() && dir.ends_with("bin"))
        .filter_map(|dir| dir.parent().map(Path::to_owned));
    let named = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(|variable| named_place(variable));
    let is_environment = |dir: &PathBuf| ENVIRONMENT_MARKS.iter().any(|mark| dir.join(mark).exists());
    // Not the whole of it: it may be a project as well.
    let parts = |dir: PathBuf| ENVIRONMENT_PARTS.iter().map(move |part| dir.join(part));
    let environments = beside_bin.chain(named).filter(is_environment).flat_map(parts);
    let certificates = CERTIFICATE_VARIABLES.iter().filter_map(|variable| named_place(variable));
    foreign(environments.chain(certificates).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_is_not_set_is_an_error_before_anything_runs() {
        let said = make(&[], &["HAFT_NO_SUCH_SECRET".to_owned()]).unwrap_err();
        assert_eq!(
            said.to_string(),
            "the secret HAFT_NO_SUCH_SECRET is declared, and not set in haft's own environment"
        );
    }

    #[test]
    fn a_way_goes_by_every_link() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        for sub in ["bin", "project", "opt"] {
            std::fs::create_dir(dir.join(sub)).unwrap();
        }
        std::fs::write(dir.join("opt/tool"), "").unwrap();
        std::os::unix::fs::symlink("../opt/./tool", dir.join("project/tool")).unwrap();
        std::os::unix::fs::symlink(dir.join("project/tool"), dir.join("bin/tool")).unwrap();
        let places = way(&dir.join("bin/tool")).unwrap();
        for place in ["bin/tool", "project/tool", "opt/tool"] {
            assert!(places.contains(&dir.join(place)), "{place}: {places:?}");
        }
        std::os::unix::fs::symlink("round", dir.join("round")).unwrap();
        assert!(way(&dir.join("round")).is_err() && way(&dir.join("none")).is_err());
    }

    #[test]
    fn what_lies_in_a_project_or_in_its_copy_is_not_installed() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        for sub in ["project", "copy", "opt", "links"] {
            std::fs::create_dir(dir.join(sub)).unwrap();
            let tool = dir.join(sub).join("tool");
            std::fs::write(&tool, "").unwrap();
            std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let links = dir.join("links");
        std::fs::remove_file(links.join("tool")).unwrap();
        std::os::unix::fs::symlink(dir.join("project/tool"), links.join("tool")).unwrap();
        let (project, copy) = (dir.join("project"), dir.join("copy"));
        let found = |dirs: &[&str]| {
            let path = std::env::join_paths(dirs.iter().map(|sub| dir.join(sub))).unwrap();
            installed_on(&path, "tool", &[&project, &copy])
        };
        assert_eq!(found(&["project", "copy", "links"]), None);
        assert_eq!(found(&["project", "copy", "links", "opt"]), Some(dir.join("opt/tool")));
    }

    #[test]
    fn nothing_passes_that_is_not_named() {
        // CARGO_PKG_NAME is set for every test.
        let names = |pass: &[String]| make(pass, &[]).unwrap().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert!(!names(&[]).contains(&"CARGO_PKG_NAME".into()));
        assert!(names(&["CARGO_PKG_NAME".to_owned()]).contains(&"CARGO_PKG_NAME".into()));
        assert!(names(&[]).contains(&"PATH".into()));
    }
}
