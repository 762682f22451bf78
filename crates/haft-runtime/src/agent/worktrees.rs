//! The worktrees that are kept: whose they are, and whether anything in them is not in its project yet.

use super::agents::Agents;
use super::spawn::is_awaited;
use super::tree::{self, Tree};
use crate::halt::Halt;
use crate::pipeline::Haft;
use crate::store_error;
use haft_core::{CallError, SessionId};
use haft_store::Store;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// How many children of one conversation are looked through.
const CHILDREN: i64 = 1000;

/// A worktree that is kept.
#[derive(Debug, Clone, Serialize)]
pub struct Worktree {
    /// The agent's id.
    pub id: String,
    /// Where it is.
    pub path: PathBuf,
    /// The project it is a copy of, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<PathBuf>,
    /// The branch it is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// When it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made_ms: Option<i64>,
    /// What is in it.
    pub holds: Holds,
    /// What of it is not in the project, as far as that can be said.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmerged: Vec<String>,
    /// Whether its agent works there, as far as anybody knows.
    pub running: bool,
}

/// What is in a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Holds {
    /// Nothing that is not in the project.
    Merged,
    /// Changes that are not in the project.
    Unmerged,
    /// Nobody can say: its project, or what is known of it, is gone.
    Unknown,
}

/// All that are kept beside a data directory.
pub fn kept(data_dir: &Path, halt: &Halt) -> Vec<Worktree> {
    tree::ids(data_dir).into_iter().map(|id| look(data_dir, id, halt)).collect()
}

fn look(data_dir: &Path, id: String, halt: &Halt) -> Worktree {
    let dir = tree::place(data_dir, &id);
    let Ok(tree) = Tree::load(data_dir, &id) else {
        let (project, branch, made_ms, unmerged) = (None, None, None, Vec::new());
        return Worktree { id, path: dir, project, branch, made_ms, holds: Holds::Unknown, unmerged, running: false };
    };
    let (holds, unmerged) = match tree.project() {
        // Only what is known of it is left.
        _ if !dir.exists() => (Holds::Merged, Vec::new()),
        Err(_) => (Holds::Unknown, Vec::new()),
        Ok(project) => match tree.changes(&project, halt) {
            Ok(merge) if merge.changes.is_empty() && merge.left.is_empty() => (Holds::Merged, Vec::new()),
            Ok(merge) => {
                let changed = merge.changes.iter().map(|change| project.shown(change.path()));
                (Holds::Unmerged, changed.chain(merge.left).collect())
            }
            Err(error) => (Holds::Unmerged, vec![error.message]),
        },
    };
    Worktree {
        id,
        // Without a slash at its end, where the project is its whole repository.
        path: tree.root().components().collect(),
        project: Some(tree.project_root().to_owned()),
        branch: Some(tree.branch().to_owned()),
        made_ms: tree.made_ms(),
        holds,
        unmerged,
        running: false,
    }
}

impl Haft {
    /// The worktrees that are kept, of all projects.
    pub async fn worktrees(&self) -> Result<Vec<Worktree>, CallError> {
        let (data_dir, halt) = (self.settings.data_dir.clone(), Halt::new());
        let own = halt.clone();
        let mut kept = crate::tool::off_thread(halt, move || Ok(kept(&data_dir, &own))).await?;
        for one in &mut kept {
            let talk = match session_of(&one.id) {
                Some(session) => self.store.talk(&session).await.map_err(store_error)?,
                None => None,
            };
            one.running = self.agents.runs(&one.id) || talk.is_some_and(|talk| talk.state == "running");
        }
        Ok(kept)
    }
}

/// The session of the agent that works in a worktree.
fn session_of(id: &str) -> Option<SessionId> {
    SessionId::new(&format!("agent-{id}"))
}

/// The ids of a conversation's agents, and of theirs.
pub(crate) async fn of_session(store: &Store, session: &SessionId) -> Result<Vec<String>, CallError> {
    let mut open = vec![session.to_string()];
    let mut ids: Vec<String> = Vec::new();
    while let Some(above) = open.pop() {
        let id = above.strip_prefix("agent-").map(str::to_owned);
        if id.as_ref().is_some_and(|id| ids.contains(id)) {
            continue;
        }
        ids.extend(id);
        let children = store.talks("", Some(&above), CHILDREN).await.map_err(store_error)?;
        open.extend(children.into_iter().map(|talk| talk.session));
    }
    Ok(ids)
}

/// Those of these agents that work, as far as anybody knows, or of whose calls some wait for somebody to decide.
pub(crate) async fn busy(store: &Store, agents: &Agents, ids: &[String]) -> Result<Vec<String>, CallError> {
    let mut busy = Vec::new();
    for id in ids {
        let Some(session) = session_of(id) else { continue };
        let talk = store.talk(&session).await.map_err(store_error)?;
        let works = agents.runs(id) || talk.is_some_and(|talk| talk.state == "running");
        if works || is_awaited(store, &session).await? {
            busy.push(id.clone());
        }
    }
    Ok(busy)
}

/// Throws away those of these agents' worktrees that are not busy, and in which nothing is that is not in the project. Returns
/// the others.
pub(crate) fn sweep(data_dir: &Path, ids: &[String], busy: &[String], halt: &Halt) -> Result<Vec<Worktree>, CallError> {
    let there = tree::ids(data_dir);
    let mut others = Vec::new();
    for id in ids.iter().filter(|id| there.contains(*id)) {
        let found = look(data_dir, id.clone(), halt);
        if found.holds == Holds::Merged && !busy.contains(id) {
            tree::remove(data_dir, id)?;
        } else {
            others.push(found);
        }
    }
    Ok(others)
}
