//! A task's directory: who keeps it, what it printed, how it ended, and whether somebody wants it to end.
//! Every process that knows the data directory reads the same truth here; nobody needs to be asked.

use crate::confined::command::Ending;
use crate::task::order::Errand;
use haft_core::outcome::Undo;
use haft_core::{CallError, ErrorKind};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How many tasks that have ended are remembered, and for how long.
const REMEMBERED: usize = 100;
const KEEP: Duration = Duration::from_hours(7 * 24);

/// Names a task: short, and never used twice in one data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct TaskId(u64);

impl TaskId {
    /// Reads `bg_7`, or just the number.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("bg_").unwrap_or(text);
        let plain = !digits.is_empty() && digits.len() <= 15 && digits.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| digits.parse().ok().map(Self)).flatten()
    }

    /// Its number alone.
    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bg_{}", self.0)
    }
}

impl From<TaskId> for String {
    fn from(id: TaskId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for TaskId {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("`{text}` is not a task"))
    }
}

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// It goes on.
    Running,
    /// It ended by itself, well.
    Done,
    /// It ended badly, or what it changed could not be kept.
    Failed,
    /// Its time was up.
    TimedOut,
    /// Somebody ended it.
    Cancelled,
    /// Whoever kept it died, and it with them.
    Lost,
}

impl State {
    /// In one word.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
        }
    }
}

/// How a task ended, and what came of what it changed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct End {
    pub(crate) state: State,
    pub(crate) ending: Ending,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) undo: Option<Undo>,
    /// What stands in place of output that is not text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) notices: Vec<String>,
}

impl End {
    /// The end of what ended so.
    pub(crate) fn of(ending: Ending, cancelled: bool, undo: Option<Undo>, notices: Vec<String>) -> Self {
        let state = match &ending.error {
            _ if cancelled => State::Cancelled,
            None => State::Done,
            Some(error) if error.kind == ErrorKind::Timeout => State::TimedOut,
            Some(error) if error.kind == ErrorKind::Cancelled => State::Cancelled,
            Some(_) => State::Failed,
        };
        Self { state, ending, undo, notices }
    }
}

/// A task, as it stands in its directory.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) id: TaskId,
    pub(crate) errand: Errand,
    #[serde(with = "haft_core::path_text::stored")]
    pub(crate) root: PathBuf,
    pub(crate) started_ms: i64,
    /// The process that keeps it, and when that began.
    pub(crate) keeper: (i64, String),
    /// Whether the keeper holds the task's directory locked. Earlier versions did not.
    #[serde(default)]
    pub(crate) locked: bool,
    /// Whether the keeper lived when this was read.
    #[serde(skip)]
    pub(super) is_kept: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) end: Option<End>,
}

impl Task {
    /// Where it stands. One whose keeper is gone does not run, whatever was written last.
    pub(crate) fn state(&self) -> State {
        match &self.end {
            Some(end) => end.state,
            None if self.is_kept => State::Running,
            None => State::Lost,
        }
    }

    /// A task that begins now.
    pub(crate) fn new(id: TaskId, errand: Errand, root: PathBuf) -> Self {
        let keeper = haft_store::myself();
        Self { id, errand, root, started_ms: crate::now_ms(), keeper, locked: false, is_kept: true, end: None }
    }

    /// How long it took, or has run.
    pub(crate) fn age_ms(&self) -> u64 {
        let so_far = || u64::try_from(crate::now_ms().saturating_sub(self.started_ms)).unwrap_or(0);
        self.end.as_ref().map_or_else(so_far, |end| end.ending.duration_ms)
    }
}

/// How somebody wants a task to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Asked first.
    Terminate,
    /// At once.
    Kill,
}

/// The directory of one task.
#[derive(Debug, Clone)]
pub(crate) struct TaskDir(PathBuf);

impl TaskDir {
    fn all(data_dir: &Path) -> PathBuf {
        data_dir.join("tasks")
    }

    /// Makes a directory with a number that nobody had before.
    pub(crate) fn create(data_dir: &Path) -> io::Result<(Self, TaskId)> {
        let all = Self::all(data_dir);
        crate::shared_data::make_directory(&all)?;
        let mut number = numbers(&all).into_iter().max().unwrap_or(0);
        loop {
            number += 1;
            let dir = all.join(number.to_string());
            match std::fs::DirBuilder::new().mode(0o700).create(&dir) {
                Ok(()) => return Ok((Self(dir), TaskId(number))),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The directory of a task that was started earlier.
    pub(crate) fn of(data_dir: &Path, id: TaskId) -> Self {
        Self(Self::all(data_dir).join(id.0.to_string()))
    }

    /// At this place.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// Every task that is remembered, oldest first.
    pub(crate) fn list(data_dir: &Path) -> Vec<(Self, Task)> {
        let all = Self::all(data_dir);
        let mut numbers = numbers(&all);
        numbers.sort_unstable();
        let dirs = numbers.into_iter().map(|number| Self(all.join(number.to_string())));
        dirs.filter_map(|dir| dir.read().map(|task| (dir, task))).collect()
    }

    /// Forgets what ended long ago. The latest stays, so that numbers only grow.
    pub(crate) fn sweep(data_dir: &Path) {
        let ended: Vec<(Self, Task)> =
            Self::list(data_dir).into_iter().filter(|(_, task)| task.state() != State::Running).collect();
        let excess = ended.len().saturating_sub(REMEMBERED);
        for (index, (dir, _)) in ended.iter().enumerate().take(ended.len().saturating_sub(1)) {
            let touched = std::fs::metadata(dir.0.join("task.json")).and_then(|meta| meta.modified());
            let old = touched.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age > KEEP));
            if index < excess || old {
                dir.remove();
            }
        }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Where what is printed goes.
    pub(crate) fn output(&self) -> PathBuf {
        self.0.join("output.txt")
    }

    /// What stands there, and whether the task is still kept.
    pub(crate) fn read(&self) -> Option<Task> {
        let task = self.read_file()?;
        if task.end.is_some() {
            return Some(task);
        }
        if self.is_kept(&task) {
            return Some(Task { is_kept: true, ..task });
        }
        // Its keeper may have written its end since.
        self.read_file()
    }

    fn read_file(&self) -> Option<Task> {
        serde_json::from_slice(&std::fs::read(self.0.join("task.json")).ok()?).ok()
    }

    /// Whether a task's keeper lives. The kernel says so, in every PID namespace.
    fn is_kept(&self, task: &Task) -> bool {
        if !task.locked {
            return haft_store::may_live(task.keeper.0, &task.keeper.1, task.started_ms);
        }
        let Ok(dir) = File::open(&self.0) else { return false };
        dir.try_lock_shared().is_err()
    }

    /// Locks it for its keeper, until the value is dropped.
    pub(crate) fn hold(&self) -> io::Result<File> {
        let dir = File::open(&self.0)?;
        loop {
            match dir.lock() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done.map(|()| dir),
            }
        }
    }

    /// Writes what stands there: old or new, never a part.
    pub(crate) fn write(&self, task: &Task) -> io::Result<()> {
        let draft = self.0.join(format!(".task-{:016x}", crate::chance()));
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        file.write_all(&serde_json::to_vec(task)?)?;
        std::fs::rename(&draft, self.0.join("task.json"))
    }

    /// Asks for the end.
    pub(crate) fn ask_to_end(&self, wish: Wish) -> Result<(), CallError> {
        let word = match wish {
            Wish::Terminate => "SIGTERM",
            Wish::Kill => "SIGKILL",
        };
        std::fs::write(self.0.join("cancel"), word)
            .map_err(|error| CallError::internal(format!("it could not be asked to end: {error}")))
    }

    /// Whether somebody asked for the end, and how.
    pub(crate) fn wish(&self) -> Option<Wish> {
        let word = std::fs::read(self.0.join("cancel")).ok()?;
        Some(if word == b"SIGKILL" { Wish::Kill } else { Wish::Terminate })
    }

    /// Forgets it.
    pub(crate) fn remove(&self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn numbers(all: &Path) -> Vec<u64> {
    let entries = std::fs::read_dir(all).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::{CallId, SessionId};

    fn task(id: TaskId, keeper: (i64, String)) -> Task {
        let errand = Errand {
            call_id: CallId::new(1, 1),
            tool: "shell.exec".to_owned(),
            session: SessionId::default(),
            command: "true".to_owned(),
            description: None,
            asked: true,
            accepts_gaps: true,
            started: Vec::new(),
            looks: false,
            persist: false,
        };
        Task { keeper, ..Task::new(id, errand, "/p".into()) }
    }

    #[test]
    fn ids_grow_and_are_read_in_both_forms() {
        let dir = tempfile::tempdir().unwrap();
        let (first, one) = TaskDir::create(dir.path()).unwrap();
        let (second, two) = TaskDir::create(dir.path()).unwrap();
        assert_eq!((one.to_string(), two.to_string()), ("bg_1".to_owned(), "bg_2".to_owned()));
        assert_eq!((TaskId::parse("bg_2"), TaskId::parse("2")), (Some(two), Some(two)));
        for bad in ["", "bg_", "bg_x", "../1", "-1", "bg_99999999999999999999"] {
            assert_eq!(TaskId::parse(bad), None, "{bad}");
        }
        let dead = (1 << 40, "never".to_owned());
        first.write(&task(one, dead.clone())).unwrap();
        second.write(&task(two, dead)).unwrap();
        TaskDir::sweep(dir.path());
        assert_eq!(TaskDir::create(dir.path()).unwrap().1.to_string(), "bg_3");
    }

    #[test]
    fn a_task_whose_keeper_is_gone_is_lost_and_never_running() {
        let data = tempfile::tempdir().unwrap();
        let (dir, id) = TaskDir::create(data.path()).unwrap();
        // Whatever its keeper's number is: it may be another process's by now, or mean something in another namespace.
        for keeper in [haft_store::myself(), (1 << 40, "never".to_owned())] {
            dir.write(&Task { locked: true, ..task(id, keeper) }).unwrap();
            let held = dir.hold().unwrap();
            assert_eq!(dir.read().unwrap().state(), State::Running);
            drop(held);
            assert_eq!(dir.read().unwrap().state(), State::Lost);
        }
    }

    #[test]
    fn a_task_of_an_earlier_version_is_known_by_its_keepers_number() {
        let data = tempfile::tempdir().unwrap();
        let (dir, id) = TaskDir::create(data.path()).unwrap();
        let (pid, born) = haft_store::myself();
        let state = |keeper: (i64, String)| {
            let mut text = serde_json::to_value(task(id, keeper)).unwrap();
            text.as_object_mut().unwrap().remove("locked");
            std::fs::write(dir.path().join("task.json"), text.to_string()).unwrap();
            dir.read().unwrap().state()
        };
        assert_eq!(state((pid, born)), State::Running);
        assert_eq!(state((pid, "1@another-boot".to_owned())), State::Lost);
    }
}
