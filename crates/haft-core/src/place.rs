//! Places in the file system as decisions see them: already resolved, judged before and after links.

mod client_control;

pub use client_control::{client_control_places, is_client_control};

use crate::git_control::GitControl;
use serde::Serialize;
use std::path::{Component, Path, PathBuf};

/// What a call does at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// It looks.
    Read,
    /// It changes.
    Write,
}

/// Why a place deserves more care than its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sensitive {
    /// Keys, tokens, passwords.
    Credentials,
    /// The insides of a version control directory.
    VersionControl,
    /// haft's own state: its tokens, store, vault, keys, log and the user's configuration. No tool touches it.
    OwnState,
    /// Which tools, hooks, servers and permissions an agent's client has. Only a change deserves care.
    ClientControl,
    /// haft's own files that tools may read: a project's `.haft`, outputs of earlier calls, the user's skills and tools.
    OwnFiles,
}

impl Sensitive {
    /// What it is, to finish the sentence "… holds".
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Credentials => "credentials",
            Self::VersionControl => "version control internals",
            Self::OwnState => "haft's own state",
            Self::ClientControl => "an agent client's tools, hooks or permissions",
            Self::OwnFiles => "haft's own files",
        }
    }
}

/// A place that a call names, resolved by the runtime before anything is decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The parameter that named it.
    pub param: &'static str,
    /// The path as the caller said it.
    pub spoken: String,
    /// The path with every link followed; tools open this one and nothing else.
    pub real: PathBuf,
    /// The shortest honest way to write it: relative to the project where it lies inside.
    pub shown: String,
    /// What the call does there.
    pub access: Access,
    /// Whether it lies inside the roots that this access may use unasked.
    pub inside: bool,
    /// Why it deserves more care.
    pub sensitive: Option<Sensitive>,
}

/// How the name of a directory begins in which haft keeps before-images outside of its data directory; the user's number
/// follows.
pub const SHELF_PREFIX: &str = ".haft-undo-";

/// Directory names that hold credentials wherever they stand.
const CREDENTIAL_DIRS: &[&str] =
    &[".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".gcloud", ".password-store", ".vault"];
/// File names that hold credentials wherever they stand.
const CREDENTIAL_FILES: &[&str] = &[
    ".env",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".git-credentials",
    ".htpasswd",
    ".vault-token",
    "credentials.json",
    "terraform.tfstate",
    "credentials.toml",
    ".credentials.json",
    "service-account.json",
];
/// Beginnings of names that mean credentials: keys are copied and renamed.
const CREDENTIAL_STARTS: &[&str] = &["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"];
/// File name endings that mean credentials.
const CREDENTIAL_ENDINGS: &[&str] = &[".pem", ".key", ".p12", ".pfx", ".keystore", ".kdbx"];
/// `.env.example` and its like are made to be read.
const HARMLESS_ENV: &[&str] = &["example", "sample", "template", "dist", "defaults"];

/// Judges a path by its names alone. Call it on the path as spoken and again on the path as resolved:
/// a link may hide either.
pub fn sensitive(path: &Path) -> Option<Sensitive> {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy().to_lowercase()),
        _ => None,
    });
    let mut found = None;
    let mut previous = String::new();
    for name in names {
        found = found.or_else(|| judge_name(&previous, &name));
        previous = name;
    }
    found
}

/// Why a program that may write a root must still leave this place in it alone: whoever writes it decides
/// what runs later, outside and unasked. The path is relative to the root. A directory is judged by its
/// name alone; what is in it has to be judged as well.
pub fn guarded(inside: &Path, is_dir: bool, root_is_home: bool) -> Option<&'static str> {
    let names: Vec<String> =
        inside.components().map(|part| part.as_os_str().to_string_lossy().to_lowercase()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    if names.iter().any(|name| matches!(*name, ".haft" | ".glee")) {
        return Some("haft's own configuration and tools");
    }
    if names.iter().any(|name| name.starts_with(SHELF_PREFIX)) {
        return Some("haft keeps before-images there");
    }
    if names.windows(2).any(|pair| matches!(pair, [".hg", "hgrc"])) {
        return Some("mercurial runs what stands there");
    }
    // What is in a directory is judged by itself.
    if !is_dir && is_client_control(inside) {
        return Some(CLIENT_CONTROL_WHY);
    }
    let first = names.first().copied().unwrap_or_default();
    // In a home nearly every hidden file is read, believed or run by something that starts there later.
    if root_is_home && (first == "bin" || (first.starts_with('.') && !matches!(first, ".cache" | ".git"))) {
        return Some("in a home it is read or run by what starts there later");
    }
    None
}

/// Why client control files are guarded.
pub const CLIENT_CONTROL_WHY: &str = "it decides which tools, hooks or permissions an agent's client has";

/// The control files of repositories on a path: what lies behind each `.git` in it, with the names in lower case. A directory
/// counts by its name, and what is in it has to be judged as well.
pub fn git_controls(inside: &Path, is_dir: bool) -> Vec<GitControl> {
    let names: Vec<String> =
        inside.components().map(|part| part.as_os_str().to_string_lossy().to_lowercase()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let behind = names.iter().enumerate().filter(|(_, name)| **name == ".git").map(|(at, _)| &names[at + 1..]);
    // A `.git` that is a file or a link points to a repository, wherever somebody likes.
    behind.filter(|rest| !(rest.is_empty() && is_dir)).filter_map(GitControl::of).collect()
}

/// Places that are guarded right below a root, to be protected by the kernel where they exist.
pub const GUARDED: &[&str] = &[".haft", ".glee"];
/// The same of a repository, where nobody looks at what is in them when changes are kept.
pub const GUARDED_GIT: &[&str] = &[".git/hooks", ".git/config", ".git/config.worktree", ".git/info/attributes"];

fn judge_name(parent: &str, name: &str) -> Option<Sensitive> {
    let public = name.strip_suffix(".pub").is_some();
    let credentials = is_env(name)
        || CREDENTIAL_DIRS.contains(&name)
        || CREDENTIAL_FILES.contains(&name)
        || CREDENTIAL_STARTS.iter().any(|start| name.starts_with(start) && !public)
        || CREDENTIAL_ENDINGS.iter().any(|ending| name.ends_with(ending))
        || (parent == "gh" && name == "hosts.yml");
    if credentials {
        Some(Sensitive::Credentials)
    } else if matches!(name, ".git" | ".hg" | ".svn") {
        Some(Sensitive::VersionControl)
    } else if matches!(name, ".haft" | ".glee") {
        Some(Sensitive::OwnFiles)
    } else if name.starts_with(SHELF_PREFIX) {
        Some(Sensitive::OwnState)
    } else {
        None
    }
}

/// `.env`, `.env.local`, `.envrc`, `prod.env`, but not `.env.example`.
fn is_env(name: &str) -> bool {
    match name.strip_prefix(".env") {
        Some("") => true,
        Some(rest) => !HARMLESS_ENV.iter().any(|word| rest.trim_start_matches(['.', '_', '-']) == *word),
        None => name.strip_suffix(".env").is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decides_about_later_runs_is_guarded() {
        let judged = |path: &str, home: bool| guarded(Path::new(path), false, home).is_some();
        let controls = |path: &str| git_controls(Path::new(path), false);
        for path in GUARDED_GIT.iter().chain(&[
            "sub/.git/hooks/pre-commit",
            ".git/modules/a/config",
            ".git/worktrees/w/config.worktree",
            ".git/rebase-merge/git-rebase-todo",
            ".GIT/hooks/x",
            "sub/.git",
        ]) {
            assert!(!controls(path).is_empty(), "{path}");
        }
        for path in GUARDED.iter().chain(&[
            ".hg/hgrc",
            "a/b/.haft/tools/x/tool.yml",
            ".claude/settings.local.json",
            "sub/.vscode",
            ".haft-undo-1000/c-1/0",
        ]) {
            assert!(judged(path, false), "{path}");
        }
        for path in [
            ".git/description",
            ".git/objects/aa/bb",
            ".git/refs/heads/x",
            ".github/workflows/x.yml",
            "hooks/x",
            ".bashrc",
            "AGENTS.md",
        ] {
            assert!(!judged(path, false) && controls(path).is_empty(), "{path}");
        }
        for dir in ["sub/.git", ".claude", ".vscode"] {
            assert!(guarded(Path::new(dir), true, false).is_none(), "its content is judged one by one");
        }
        assert!(judged(".bashrc", true) && judged(".config/autostart/x", true) && !judged("src/.bashrc", true));
    }

    #[test]
    fn names_that_hold_secrets_are_known_anywhere() {
        let judged = |path: &str| sensitive(Path::new(path));
        for path in [
            "/home/u/.ssh/config",
            "a/.env",
            "a/.env.local",
            "prod.env",
            ".envrc",
            "id_rsa.old",
            "x/server.PEM",
            ".aws/credentials",
            "k/id_rsa",
        ] {
            assert_eq!(judged(path), Some(Sensitive::Credentials), "{path}");
        }
        assert_eq!(judged("repo/.git/hooks/pre-commit"), Some(Sensitive::VersionControl));
        assert_eq!(judged("repo/.haft/config.yml"), Some(Sensitive::OwnFiles));
        assert_eq!(judged("repo/.haft-undo-1000/c-1/0"), Some(Sensitive::OwnState));
        for path in
            ["src/main.rs", ".env.example", "id_rsa.pub", ".github/workflows/ci.yml", ".gitignore", "environment"]
        {
            assert_eq!(judged(path), None, "{path}");
        }
    }
}
