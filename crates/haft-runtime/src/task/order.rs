//! What a keeper is told: enough to run one decided command and to keep what it changes, and nothing that
//! would have to be decided again.

use crate::confined::Terms;
use crate::confined::command::Command;
use crate::judge::executed_files::StartedFile;
use crate::maker::Maker;
use crate::task::dir::Task;
use crate::undo::{UndoLimits, Vault};
use crate::workspace::Workspace;
use haft_core::pattern::ToolPattern;
use haft_core::policy::{FloorDeny, Policy};
use haft_core::{CallError, CallId, SessionId};
use haft_store::Store;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Who keeps tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Keeper {
    /// A thread of this process: tasks end with it.
    #[default]
    Thread,
    /// A process of its own, which this program becomes when it is told `keep`: tasks go on when the process
    /// that started them ends.
    Process(PathBuf),
}

/// What a task is for, as it was asked for and decided.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "independent answers of the decision, stored by their names")]
pub(crate) struct Errand {
    /// The call that started it. What it changes is kept, and taken back, under this name.
    pub(crate) call_id: CallId,
    pub(crate) tool: String,
    pub(crate) session: SessionId,
    /// As the caller wrote it.
    pub(crate) command: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    /// Whether a person said yes.
    pub(crate) asked: bool,
    /// Whether they know that what it changes may not be undone.
    #[serde(default)]
    pub(crate) accepts_gaps: bool,
    /// The files that it runs, as they were when it started: nothing of it is kept if they change meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) started: Vec<StartedFile>,
    /// Whether it was let through only because it provably only reads.
    #[serde(default)]
    pub(crate) looks: bool,
    /// Whether it goes on when its session ends.
    pub(crate) persist: bool,
}

/// What a keeper works with.
pub(crate) struct Ground {
    pub(crate) maker: Maker,
    pub(crate) terms: Arc<Terms>,
}

/// The same, for a keeper in another process. It is handed over through a pipe that nobody else reads, because the store's
/// address may hold a password. Other secrets are not in it: that process has the same environment.
#[derive(Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) task: Task,
    pub(super) command: Command,
    pub(super) dir: PathBuf,
    store: PathBuf,
    workspace: Workspace,
    terms: Terms,
    undo: UndoLimits,
    floor: Vec<(String, Option<String>, String)>,
}

impl Order {
    pub(super) fn new(ground: &Ground, undo: UndoLimits, task: Task, command: Command, dir: &Path) -> Self {
        let floor = ground.maker.policy.floor.iter();
        let rule = |rule: &FloorDeny| {
            (rule.tool.to_string(), rule.args.as_ref().map(ToString::to_string), rule.reason.clone())
        };
        Self {
            task,
            command,
            dir: dir.to_owned(),
            store: ground.maker.store.address().to_owned(),
            workspace: Workspace::clone(&ground.maker.workspace),
            terms: Terms::clone(&ground.terms),
            undo,
            floor: floor.map(rule).collect(),
        }
    }

    /// What it takes to carry it out.
    pub(super) fn ground(&self) -> Result<Ground, CallError> {
        let unclear = |what: String| CallError::internal(format!("the keeper was told nonsense: {what}"));
        let rule = |(tool, args, reason): &(String, Option<String>, String)| {
            let args = args.as_ref().map(|text| regex::Regex::new(text)).transpose();
            Ok(FloorDeny {
                tool: ToolPattern::new(tool).map_err(|error| unclear(error.to_string()))?,
                args: args.map_err(|error| unclear(error.to_string()))?,
                reason: reason.clone(),
            })
        };
        let floor = self.floor.iter().map(rule).collect::<Result<_, CallError>>()?;
        let store = Store::open_for_one_call(&self.store).map_err(crate::store_error)?;
        store.keep_lock_in(&self.terms.data_dir);
        let maker = Maker {
            vault: Vault::new(&self.terms.data_dir, self.undo),
            store,
            workspace: Arc::new(self.workspace.clone()),
            policy: Arc::new(Policy { floor, ..Policy::default() }),
        };
        Ok(Ground { maker, terms: Arc::new(self.terms.clone()) })
    }
}
