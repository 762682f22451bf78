//! Workflows: pipelines that are files of a project. They come with the project, so that one runs only after somebody has
//! looked at it, and only as it was then.

use crate::shelf::{Standing, difference};
use crate::store_error;
use crate::workspace::Workspace;
use haft_core::preview::inert;
use haft_core::record::Digest;
use haft_core::work::{Fault, Plan, file};
use haft_core::{CallError, ErrorKind};
use haft_store::{Pin, Store};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where workflows are kept as files.
const FOLDERS: [&str; 2] = [".haft/workflows", ".glee/workflows"];
/// How many files of a folder are looked at.
const FILES_MAX: usize = 1000;
/// How large a workflow may be.
const FILE_MAX: u64 = 1 << 20;
/// How much is held at once of what is offered.
const SHOWN_MAX: usize = 32 << 20;

/// A pipeline that is a file.
#[derive(Debug, Clone)]
pub struct Filed {
    /// Its name.
    pub name: String,
    /// Where.
    pub path: PathBuf,
    /// What it says, or what is wrong with it.
    pub plan: Result<Plan, Vec<file::Misfit>>,
    /// Of what is in it.
    digest: Digest,
}

/// The workflows of a project, by name. One that cannot be read hides no other.
pub fn filed(workspace: &Workspace) -> Vec<Filed> {
    paths(workspace)
        .into_iter()
        .map(|(name, path)| {
            let text = read(&path);
            let digest = text.as_ref().map_or(Digest::ZERO, |text| Digest::of(text.as_bytes()));
            let plan = text.and_then(|text| file::read(&text, &name));
            Filed { name, path, plan, digest }
        })
        .collect()
}

/// Where they are. Of two of one name the first counts.
fn paths(workspace: &Workspace) -> Vec<(String, PathBuf)> {
    let mut found: Vec<(String, PathBuf)> = Vec::new();
    for folder in FOLDERS {
        let entries = std::fs::read_dir(workspace.root().join(folder)).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.take(FILES_MAX).map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let ending = path.extension().and_then(|ending| ending.to_str());
            let (Some("yml" | "yaml"), Some(name)) = (ending, path.file_stem().and_then(|name| name.to_str())) else {
                continue;
            };
            if found.iter().all(|(known, _)| known != name) {
                found.push((name.to_owned(), path));
            }
        }
    }
    found
}

fn read(path: &Path) -> Result<String, Vec<file::Misfit>> {
    let odd = |what: String| {
        let fault = Fault { at: String::new(), what };
        vec![file::Misfit { line: 1, column: 1, fault }]
    };
    let meta = std::fs::symlink_metadata(path).map_err(|error| odd(error.to_string()))?;
    if !meta.is_file() || meta.len() > FILE_MAX {
        return Err(odd(format!("it is no file of at most {} KiB", FILE_MAX >> 10)));
    }
    std::fs::read_to_string(path).map_err(|error| odd(error.to_string()))
}

/// Under what name the store keeps what was accepted of a project's workflows.
fn server(workspace: &Workspace) -> String {
    format!("workflows:{}", workspace.stored_root())
}

fn standing(pin: Option<&Pin>, digest: Digest) -> Standing {
    match pin {
        None => Standing::Untrusted,
        Some(pin) if pin.digest == digest => Standing::Accepted,
        Some(_) => Standing::Changed,
    }
}

impl Filed {
    /// What it says, for whoever only looks.
    pub(super) fn seen(&self) -> Result<Plan, CallError> {
        self.plan.clone().map_err(|misfits| {
            let all: Vec<String> =
                misfits.iter().take(8).map(|one| format!("{}:{}: {}", one.line, one.column, one.fault)).collect();
            CallError::invalid(format!("{}: {}", self.path.display(), all.join("; ")))
                .hint("`haft lint` checks workflows as well")
        })
    }

    /// What it says, for whoever runs it: only if it was accepted as it is.
    pub(super) async fn accepted(&self, store: &Store, workspace: &Workspace) -> Result<Plan, CallError> {
        let plan = self.seen()?;
        let pin = store.pin_of(&server(workspace), &self.name).await.map_err(store_error)?;
        let why = match standing(pin.as_ref(), self.digest) {
            Standing::Own | Standing::Accepted => return Ok(plan),
            Standing::Untrusted => "is the project's, and nobody has accepted it",
            Standing::Changed => "has changed since it was accepted",
        };
        let message = format!("the workflow `{}` {why}", inert(&self.name));
        Err(CallError::new(ErrorKind::Denied, message).hint("`haft trust` shows it and asks"))
    }
}

/// How the workflows of a project stand, by name.
pub async fn standings(store: &Store, workspace: &Workspace) -> Result<BTreeMap<String, Standing>, CallError> {
    let pins = store.pins(&server(workspace)).await.map_err(store_error)?;
    let stands = |file: &Filed| standing(pins.iter().find(|pin| pin.tool == file.name), file.digest);
    Ok(filed(workspace).into_iter().map(|file| (file.name.clone(), stands(&file))).collect())
}

/// A workflow that does not count yet, to be looked at and accepted.
#[derive(Debug, Clone)]
pub struct Offered {
    /// Its name.
    pub name: String,
    /// Where.
    pub path: PathBuf,
    /// How it stands.
    pub standing: Standing,
    /// What it says.
    pub text: String,
    /// What changed in it since it was accepted.
    pub diff: Option<String>,
}

/// What there is to accept.
#[derive(Debug, Clone, Default)]
pub struct Offers {
    /// Those that do not count yet.
    pub open: Vec<Offered>,
    /// How many count already.
    pub counted: usize,
    /// What is wrong with the others.
    pub flaws: Vec<String>,
}

/// The workflows of a project as they stand.
pub async fn offers(store: &Store, workspace: &Workspace) -> Result<Offers, CallError> {
    let server = server(workspace);
    let pins = store.pins(&server).await.map_err(store_error)?;
    let (mut offers, mut held) = (Offers::default(), 0);
    for (name, path) in paths(workspace) {
        let checked = read(&path).and_then(|text| file::read(&text, &name).map(|_| text));
        let text = match checked {
            Ok(text) => text,
            Err(misfits) => {
                let shown = workspace.shown(&path);
                let flaw =
                    |misfit: file::Misfit| format!("{shown}:{}:{}: {}", misfit.line, misfit.column, misfit.fault);
                offers.flaws.extend(misfits.into_iter().map(flaw));
                continue;
            }
        };
        let standing = standing(pins.iter().find(|pin| pin.tool == name), Digest::of(text.as_bytes()));
        if standing.counts() {
            offers.counted += 1;
            continue;
        }
        held += text.len();
        if held > SHOWN_MAX {
            offers.flaws.push(format!("{}: too many at once; `haft trust` again goes on", workspace.shown(&path)));
            break;
        }
        let before = store.pin_texts(&server, &name).await.map_err(store_error)?;
        let before = before["text"].as_str().filter(|_| standing == Standing::Changed);
        let diff = before.map(|before| difference(&workspace.shown(&path), before, &text));
        offers.open.push(Offered { name, path, standing, text, diff });
    }
    Ok(offers)
}

/// Accepts exactly what was offered. What changed since it was looked at does not count.
pub async fn accept(store: &Store, workspace: &Workspace, offered: &[Offered]) -> Result<(), CallError> {
    accept_as(store, &server(workspace), workspace, offered).await
}

/// The same for other files of a project, under the name by which the store keeps them.
pub(crate) async fn accept_as(
    store: &Store,
    server: &str,
    workspace: &Workspace,
    offered: &[Offered],
) -> Result<(), CallError> {
    let texts = offered.iter().map(|one| (one.name.clone(), json!({"text": one.text}))).collect();
    let pin = |one: &Offered| Pin {
        tool: one.name.clone(),
        digest: Digest::of(one.text.as_bytes()),
        declaration: json!({"file": workspace.shown(&one.path)}),
    };
    store.keep_pin_texts(server, texts).await.map_err(store_error)?;
    store.pin(server, offered.iter().map(pin).collect()).await.map_err(store_error)
}

/// Takes back what was accepted. Returns the names.
pub async fn revoke(store: &Store, workspace: &Workspace) -> Result<Vec<String>, CallError> {
    revoke_as(store, &server(workspace)).await
}

/// The same for other files of a project.
pub(crate) async fn revoke_as(store: &Store, server: &str) -> Result<Vec<String>, CallError> {
    let names: Vec<String> = store.pins(server).await.map_err(store_error)?.into_iter().map(|pin| pin.tool).collect();
    store.unpin_tools(server, names.clone()).await.map_err(store_error)?;
    Ok(names)
}
