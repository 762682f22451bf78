//! Where tasks are started, waited for and found.

use crate::confined::Terms;
use crate::confined::command::Command;
use crate::maker::Maker;
use crate::task::dir::{State, Task, TaskDir, TaskId, Wish};
use crate::task::keeper::Charge;
use crate::task::leash::{Collar, Leash, Word, listen};
use crate::task::order::{Errand, Ground, Keeper, Order};
use crate::undo::UndoLimits;
use haft_core::{CallError, SessionId};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often what has no event is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Where tasks are started and found.
pub(crate) struct Desk {
    ground: Arc<Ground>,
    undo: UndoLimits,
    keeper: Keeper,
    /// Tasks that end with this process, and with this.
    threads: Mutex<Vec<(TaskDir, bool, JoinHandle<()>)>>,
}

/// A task that somebody waits for. Dropped, the task ends; released, it goes on.
pub(crate) struct Held {
    pub(crate) dir: TaskDir,
    pub(crate) id: TaskId,
    words: Receiver<Word>,
    leash: Option<Leash>,
}

/// What is heard of a task.
pub(crate) enum News {
    /// Nothing, for so long.
    Silence,
    /// It printed a line.
    Line(String),
    /// It has ended.
    End,
}

impl Desk {
    /// The program that becomes what it is told to be, if this one can.
    pub(crate) fn program(&self) -> Option<&Path> {
        match &self.keeper {
            Keeper::Thread => None,
            Keeper::Process(program) => Some(program),
        }
    }

    pub(crate) fn new(maker: Maker, terms: Arc<Terms>, undo: UndoLimits, keeper: Keeper) -> Self {
        Self { ground: Arc::new(Ground { maker, terms }), undo, keeper, threads: Mutex::default() }
    }

    /// Who makes changes real.
    pub(crate) fn maker(&self) -> &Maker {
        &self.ground.maker
    }

    fn data_dir(&self) -> &Path {
        &self.ground.terms.data_dir
    }

    /// Starts a task, and returns once its program runs, or once somebody says why it must not any more.
    pub(crate) fn start(
        &self,
        errand: Errand,
        command: Command,
        halted: &dyn Fn() -> Option<CallError>,
    ) -> Result<Held, CallError> {
        TaskDir::sweep(self.data_dir());
        let (dir, id) = TaskDir::create(self.data_dir())
            .map_err(|error| CallError::internal(format!("there is no room for a task: {error}")))?;
        let root = self.ground.maker.workspace.root().to_owned();
        let task = Task::new(id, errand, root);
        let held = self.begin(dir.clone(), task, command).and_then(|held| held.started(halted));
        held.inspect_err(|_| dir.remove())
    }

    fn begin(&self, dir: TaskDir, task: Task, command: Command) -> Result<Held, CallError> {
        let id = task.id;
        let (words, leash) = match &self.keeper {
            Keeper::Thread => self.begin_thread(dir.clone(), task, command)?,
            Keeper::Process(program) => {
                let order = Order::new(&self.ground, self.undo, task, command, dir.path());
                begin_process(program, &order)?
            }
        };
        Ok(Held { dir, id, words, leash: Some(leash) })
    }

    fn begin_thread(&self, dir: TaskDir, task: Task, command: Command) -> Result<(Receiver<Word>, Leash), CallError> {
        let (tell, words) = channel();
        let (collar, ground, persist) = (Collar::default(), Arc::clone(&self.ground), task.errand.persist);
        let (kept, leash) = (collar.clone(), Leash::Thread(collar));
        let place = dir.clone();
        let life = move || {
            let say = |word| drop(tell.send(word));
            let lost = task.clone();
            let charge = Charge { ground: &ground, dir: &dir, task, command: &command, collar: kept, say: &say };
            // The process goes on, so a task whose thread crashed has to be marked: nobody keeps it.
            if catch_unwind(AssertUnwindSafe(|| charge.carry_out())).is_err() {
                let _ = dir.write(&Task { keeper: (0, String::new()), ..lost });
            }
        };
        let thread = std::thread::Builder::new().name("haft-task".to_owned()).spawn(life);
        let thread = thread.map_err(|error| CallError::internal(format!("no thread for the task: {error}")))?;
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|(_, _, thread)| !thread.is_finished());
        threads.push((place, persist, thread));
        Ok((words, leash))
    }

    /// The tasks of this project: of one session, or of all.
    pub(crate) fn list(&self, session: Option<&SessionId>) -> Vec<(TaskDir, Task)> {
        let mut all = TaskDir::list(self.data_dir());
        let root = self.ground.maker.workspace.root();
        all.retain(|(_, task)| task.root == root && session.is_none_or(|session| task.errand.session == *session));
        all
    }

    /// A task of this project and session.
    pub(crate) fn find(&self, text: &str, session: &SessionId) -> Result<(TaskDir, Task), CallError> {
        let own = || self.list(Some(session));
        let found = TaskId::parse(text).and_then(|id| {
            let dir = TaskDir::of(self.data_dir(), id);
            let task = dir.read()?;
            Some((dir, task))
        });
        let root = self.ground.maker.workspace.root();
        match found {
            Some((dir, task)) if task.root == root && task.errand.session == *session => Ok((dir, task)),
            _ => Err(unknown(text, &own())),
        }
    }

    /// The task of this project that a person names, whatever its session.
    pub(crate) fn named(&self, text: &str) -> Option<Task> {
        let dir = TaskDir::of(self.data_dir(), TaskId::parse(text)?);
        dir.read().filter(|task| task.root == self.ground.maker.workspace.root())
    }

    /// Ends a session's tasks, but for those that were to go on. Returns which.
    pub(crate) fn end_session(&self, session: &SessionId) -> Vec<TaskId> {
        let of_session = TaskDir::list(self.data_dir()).into_iter().filter(|(_, task)| {
            task.errand.session == *session && !task.errand.persist && task.state() == State::Running
        });
        of_session.filter_map(|(dir, task)| dir.ask_to_end(Wish::Terminate).is_ok().then_some(task.id)).collect()
    }

    /// Waits at most so long until nothing of a session runs any more. Whether that is so.
    pub(crate) fn rests(&self, session: &SessionId, at_most: Duration) -> bool {
        let until = Instant::now() + at_most;
        let mut of_session =
            TaskDir::list(self.data_dir()).into_iter().filter(|(_, task)| task.errand.session == *session);
        let left = || until.saturating_duration_since(Instant::now());
        let ended =
            |(dir, _): (TaskDir, Task)| Self::wait(&dir, left()).is_none_or(|task| task.state() != State::Running);
        of_session.all(ended)
    }

    /// Waits at most so long for the end of a task.
    pub(crate) fn wait(dir: &TaskDir, at_most: Duration) -> Option<Task> {
        let until = Instant::now() + at_most;
        loop {
            let task = dir.read()?;
            if task.state() != State::Running || Instant::now() >= until {
                return Some(task);
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Desk {
    /// What this process keeps ends with its host, but for what was to go on: that ends with the process.
    fn drop(&mut self) {
        let threads = std::mem::take(self.threads.get_mut().unwrap_or_else(PoisonError::into_inner));
        let ending = threads.into_iter().filter(|(_, persist, _)| !persist);
        let ending: Vec<_> = ending.inspect(|(dir, _, _)| drop(dir.ask_to_end(Wish::Terminate))).collect();
        for (_, _, thread) in ending {
            let _ = thread.join();
        }
    }
}

impl Held {
    /// Waits until the program runs.
    fn started(self, halted: &dyn Fn() -> Option<CallError>) -> Result<Self, CallError> {
        loop {
            match self.words.recv_timeout(LOOK) {
                Ok(Word::Started) => return Ok(self),
                Ok(Word::Refused(error)) => return Err(error),
                Ok(Word::Line(_)) => {}
                Err(RecvTimeoutError::Timeout) => halted().map_or(Ok(()), Err)?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(CallError::internal("whoever was to keep the task died before it began"));
                }
            }
        }
    }

    /// What is heard next, within so long.
    pub(crate) fn news(&self, within: Duration) -> News {
        match self.words.recv_timeout(within) {
            Ok(Word::Line(line)) => News::Line(line),
            Ok(Word::Started | Word::Refused(_)) | Err(RecvTimeoutError::Timeout) => News::Silence,
            Err(RecvTimeoutError::Disconnected) => News::End,
        }
    }

    /// Lets it go on by itself.
    pub(crate) fn release(mut self) -> (TaskDir, TaskId) {
        if let Some(leash) = self.leash.take() {
            leash.release();
        }
        (self.dir.clone(), self.id)
    }

    /// Ends it, discarding what it changed; [`Self::news`] tells when it has ended.
    pub(crate) fn cut(&mut self) {
        drop(self.leash.take());
    }
}

fn begin_process(program: &PathBuf, order: &Order) -> Result<(Receiver<Word>, Leash), CallError> {
    let fail = |what: &str, error: &dyn std::fmt::Display| CallError::internal(format!("{what}: {error}"));
    let mut text = serde_json::to_vec(order).map_err(|error| fail("the task cannot be handed over", &error))?;
    text.push(b'\n');
    let child = std::process::Command::new(program)
        .arg0("haft")
        .arg("keep")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut child: Child = child.map_err(|error| fail("nobody could be started to keep the task", &error))?;
    let mut pipe = child.stdin.take();
    let sent = pipe.as_mut().map_or(Ok(()), |pipe| pipe.write_all(&text).and_then(|()| pipe.flush()));
    let words = listen(child);
    sent.map_err(|error| fail("the task could not be handed over", &error))?;
    Ok((words, Leash::Process(pipe)))
}

fn unknown(text: &str, own: &[(TaskDir, Task)]) -> CallError {
    let ids: Vec<String> = own.iter().map(|(_, task)| task.id.to_string()).collect();
    let shown = haft_core::preview::cut(&haft_core::preview::inert(text), 40);
    let error = CallError::not_found(format!("this session started no task `{shown}`"));
    let known = if ids.is_empty() { "it has none".to_owned() } else { format!("it has {}", ids.join(", ")) };
    error.hint(known).details(serde_json::json!({ "known": ids }))
}
