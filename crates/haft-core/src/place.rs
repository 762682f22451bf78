//! Places in the file system as decisions see them: already resolved, judged before and after links.

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
    /// haft's own state: its log, grants and configuration.
    OwnState,
}

impl Sensitive {
    /// What it is, to finish the sentence "… holds".
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Credentials => "credentials",
            Self::VersionControl => "version control internals",
            Self::OwnState => "haft's own state",
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
        assert_eq!(judged("repo/.haft/config.yml"), Some(Sensitive::OwnState));
        for path in
            ["src/main.rs", ".env.example", "id_rsa.pub", ".github/workflows/ci.yml", ".gitignore", "environment"]
        {
            assert_eq!(judged(path), None, "{path}");
        }
    }
}
