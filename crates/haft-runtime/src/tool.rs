//! What a tool is to the runtime: a declaration, and one function.

pub use crate::blocking::off_thread;
use crate::confined::Guest;
use crate::hygiene::Looked;
use crate::making::Proposed;
use crate::scene::Scene;
use crate::workspace::Workspace;
use haft_core::change::Change;
use haft_core::outcome::{Label, Undo};
use haft_core::web::Target;
use haft_core::{CallError, CallId, ResultContent, ToolSpec};
use haft_sandbox::layer::remove_all;
use serde_json::Value;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

/// A boxed future, so that tools of many kinds fit one registry.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Something a caller may invoke.
pub trait Tool: Send + Sync + 'static {
    /// Its declaration. It must not change.
    fn spec(&self) -> &Arc<ToolSpec>;

    /// Does the work. A tool declared with `Effect::Changes` must only look and return its changes: the
    /// runtime shows, applies and undoes them.
    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>>;

    /// Who made its result. A bridged server's structured content is passed on as the server sent it.
    fn result_source(&self) -> ResultSource {
        ResultSource::Haft
    }

    /// Whether callers are told about it. One that is not listed can still be called by its name, and is governed like
    /// every other: what a door does on a client's behalf is a call of such a tool.
    fn is_listed(&self) -> bool {
        true
    }

    /// Why it is not the tool that a person accepted, for tools whose declaration others write: its description or
    /// its schema has changed since. Then every call is asked, whatever rules say.
    fn altered(&self) -> Option<String> {
        None
    }

    /// Why it may not run at all, for tools that others write: nobody has accepted it as it stands. It is listed all the
    /// same.
    fn barred(&self) -> Option<String> {
        None
    }

    /// Where on the web a call with these arguments goes, for a tool that declares [`Outward::Made`]. Nothing is sent to
    /// find out.
    ///
    /// [`Outward::Made`]: haft_core::tool::Outward::Made
    fn aim(&self, args: &Value) -> Result<Aim, CallError> {
        let _ = args;
        Err(CallError::internal("the tool does not say where it goes"))
    }

    /// What its program needs besides what every program may touch, if it is somebody else's agent.
    fn guest(&self, args: &Value, workspace: &Workspace) -> Result<Option<Guest>, CallError> {
        let _ = (args, workspace);
        Ok(None)
    }
}

/// Who made a tool's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultSource {
    /// A tool of haft's own, or a manifest.
    Haft,
    /// A bridged MCP server.
    Bridged,
}

/// Where a call goes on the web, before anything that is secret is added.
#[derive(Debug, Clone)]
pub struct Aim {
    /// The method, in capitals.
    pub method: String,
    /// The URL.
    pub target: Target,
    /// What is sent besides, each part with its name: `headers`, `body`.
    pub sent: Vec<(&'static str, String)>,
    /// The secrets that are sent, by name.
    pub secrets: Vec<String>,
}

/// What a tool gives back.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    /// Text for the model and the person.
    pub text: String,
    /// The same as data.
    pub data: Option<Value>,
    /// The result in parts, where it has more than text. `text` is what a reader of text alone sees of them.
    pub content: ResultContent,
    /// File changes for the runtime to apply.
    pub changes: Vec<Change>,
    /// Things worth knowing that are not failures.
    pub warnings: Vec<String>,
    /// Where the data came from.
    pub labels: Vec<Label>,
    /// Where the whole is, if the tool itself gave only a part.
    pub whole: Option<String>,
    /// The whole text, where `text` is a part of it that says how much is missing. The runtime keeps it in a file.
    pub whole_text: Option<String>,
    /// What was found in all of what `text` is a part of, where the tool has looked at that. Otherwise the runtime looks at
    /// the text.
    pub looked: Option<Looked>,
    /// What went wrong, if the tool ran and failed: its text, data and changes count all the same.
    pub error: Option<CallError>,
    /// Where the files wait that the changes place.
    pub staging: Option<Arc<Staging>>,
    /// How to take back what has been changed already, by a task in the background.
    pub undo: Option<Undo>,
    /// The agent whose worktree goes once the changes are made: nothing else is in it.
    pub spent: Option<String>,
    /// Whether something that the call started goes on after it.
    pub goes_on: bool,
    /// What is proposed to be kept, for whoever is asked and for the record. A tool is accepted by whoever approves this
    /// call, as far as the changes leave it as it was shown.
    pub proposal: Option<Box<Proposed>>,
}

/// Where calls prepare what they need, in the data directory.
const STAGING: &str = "staging";
/// What was made so long ago and is not locked was left by a process that died.
const UNCLAIMED: std::time::Duration = std::time::Duration::from_mins(1);
/// For how long a directory that is swept away while it is made is made again.
const SWEPT_MAX: std::time::Duration = std::time::Duration::from_secs(10);

/// A directory for what one call prepares, which goes away with whoever holds it last.
#[derive(Debug)]
pub struct Staging {
    dir: PathBuf,
    /// Held as long as the directory is in use: what is not locked was left by a process that died.
    _lock: std::fs::File,
}

impl PartialEq for Staging {
    fn eq(&self, other: &Self) -> bool {
        self.dir == other.dir
    }
}

impl Staging {
    /// Makes a directory for a call, which nobody else may look into. A call may have several: what it
    /// would do is looked at before it is let through.
    pub fn create(data_dir: &Path, call: &CallId) -> std::io::Result<Arc<Self>> {
        Self::sweep_all(data_dir);
        crate::shared_data::make_directory(&data_dir.join(STAGING))?;
        let dir = Self::of(data_dir, call).join(format!("{:016x}", crate::chance()));
        let mut made = Self::make(&dir);
        // Whoever sweeps may take it away before it is locked, or the call's own directory while there is nothing in it.
        let until = std::time::Instant::now() + SWEPT_MAX;
        while std::time::Instant::now() < until {
            match &made {
                Ok(None) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                _ => break,
            }
            std::thread::yield_now();
            made = Self::make(&dir);
        }
        Ok(Arc::new(made?.ok_or(std::io::ErrorKind::NotFound)?))
    }

    /// Makes and locks a directory; none if it was swept away in between.
    fn make(dir: &Path) -> std::io::Result<Option<Self>> {
        use std::os::unix::fs::MetadataExt;
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        // Links on the way would keep its files from being opened later.
        let dir = dir.canonicalize()?;
        let lock = std::fs::File::open(&dir)?;
        lock.lock()?;
        // Only from now on nobody sweeps it.
        let (held, there) = (lock.metadata()?, std::fs::symlink_metadata(&dir).ok());
        let is_there = there.is_some_and(|there| (there.dev(), there.ino()) == (held.dev(), held.ino()));
        Ok(is_there.then_some(Self { dir, _lock: lock }))
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Removes what a process left of a call when it died. What is locked is in use, whatever the store says of its process.
    pub(crate) fn sweep(data_dir: &Path, call: &CallId) {
        let dir = Self::of(data_dir, call);
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            Self::remove_unused(&entry.path());
        }
        // Only if nothing is left in it.
        let _ = std::fs::remove_dir(dir);
    }

    /// Removes a directory that nobody holds, and holds it meanwhile.
    fn remove_unused(dir: &Path) {
        if let Ok(lock) = std::fs::File::open(dir)
            && lock.try_lock().is_ok()
        {
            let _ = remove_all(dir);
        }
    }

    /// Removes everything that processes left when they died. Best effort: the next one tries again.
    fn sweep_all(data_dir: &Path) {
        let entries = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten();
        for call in entries(&data_dir.join(STAGING)) {
            for entry in entries(&call.path()) {
                // Between being made and being locked it looks unused, but not old.
                let age = entry.metadata().and_then(|meta| meta.modified()).ok().and_then(|at| at.elapsed().ok());
                if age.is_some_and(|age| age > UNCLAIMED) {
                    Self::remove_unused(&entry.path());
                }
            }
            // Only if nothing is left in it.
            let _ = std::fs::remove_dir(call.path());
        }
    }

    pub(crate) fn of(data_dir: &Path, call: &CallId) -> PathBuf {
        data_dir.join(STAGING).join(call.as_str())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // What cannot be removed now is removed with the whole data directory.
        let _ = remove_all(&self.dir);
        // The last one of a call also takes the call's own directory along.
        let _ = self.dir.parent().map(std::fs::remove_dir);
    }
}

impl Reply {
    /// A reply of text alone.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A reply in parts, with what a reader of text alone sees of them.
    pub fn content(content: ResultContent) -> Self {
        Self { text: content.as_plain_text(), content, ..Self::default() }
    }

    /// Adds the result as data.
    #[must_use]
    pub fn data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// Adds file changes.
    #[must_use]
    pub fn changes(mut self, changes: Vec<Change>) -> Self {
        self.changes = changes;
        self
    }
}

/// A tool whose work is a plain function on a worker thread: the usual form of everything that touches
/// files.
pub struct Blocking<F> {
    spec: Arc<ToolSpec>,
    work: F,
}

impl<F> Blocking<F>
where
    F: Fn(&Scene) -> Result<Reply, CallError> + Clone + Send + Sync + 'static,
{
    /// A tool of this declaration that does this work.
    pub fn tool(spec: ToolSpec, work: F) -> Arc<dyn Tool> {
        Arc::new(Self { spec: Arc::new(spec), work })
    }
}

impl<F> Tool for Blocking<F>
where
    F: Fn(&Scene) -> Result<Reply, CallError> + Clone + Send + Sync + 'static,
{
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        let (work, scene) = (self.work.clone(), scene.clone());
        Box::pin(async move { off_thread(scene.halt().clone(), move || work(&scene)).await })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn staging_in_use_is_not_swept_and_what_was_left_is() {
        let data = tempfile::tempdir().unwrap();
        let call = crate::new_call_id();
        let staging = Staging::create(data.path(), &call).unwrap();
        std::fs::write(staging.path().join("layer"), "x").unwrap();
        let left = Staging::of(data.path(), &call).join("left");
        std::fs::create_dir(&left).unwrap();
        // Somebody was told that the call's process is gone.
        Staging::sweep(data.path(), &call);
        assert!(staging.path().join("layer").exists());
        assert!(!left.exists());
        drop(staging);
        assert!(!Staging::of(data.path(), &call).exists());
    }

    #[test]
    fn staging_that_is_swept_while_it_is_made_is_made_again() {
        let data = tempfile::tempdir().unwrap();
        let call = crate::new_call_id();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    Staging::sweep(data.path(), &call);
                }
            });
            for _ in 0..300 {
                let staging = Staging::create(data.path(), &call);
                let is_there = staging.as_ref().is_ok_and(|staging| staging.path().is_dir());
                if !is_there {
                    is_over.store(true, Ordering::Relaxed);
                }
                assert!(is_there, "{staging:?}");
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }
}
