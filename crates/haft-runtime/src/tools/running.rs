//! What the tools that run programs share: waiting for one here, starting one in the background, and telling
//! what came of it.

use crate::confined::command::{self, Command, Ending, Reins, Site, seconds};
use crate::output::{self, Collector, Ends, Order, Pace, Shown};
use crate::scene::Scene;
use crate::task::{Errand, Held, News, State, Task, TaskDir, TaskId};
use crate::tool::{BoxFuture, Reply};
use haft_core::{CallError, Dialect, ErrorKind};
use haft_store::NoteKind;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a halt is looked for while a task is waited for.
const LOOK: Duration = Duration::from_millis(50);

/// Tells the work when nobody waits for its result any more.
struct Presence(Arc<AtomicBool>);

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A call and whether anybody still waits for it.
pub(crate) struct Stage {
    pub(crate) scene: Scene,
    gone: Arc<AtomicBool>,
}

impl Stage {
    /// Why the call has to end now.
    pub(crate) fn halted(&self) -> Option<CallError> {
        let gone = || CallError::new(ErrorKind::Cancelled, "the caller went away");
        let left = self.gone.load(Ordering::Acquire).then(gone);
        left.or_else(|| self.scene.halt().check().err())
    }
}

/// Does blocking work to its end, also when the call is halted: the work hears of it, and only its end is
/// the end of everything that it started. Refused while too much work whose callers went away has not ended.
pub(crate) fn to_its_end<T: Send + 'static>(
    scene: &Scene,
    work: impl FnOnce(&Stage) -> Result<T, CallError> + Send + 'static,
) -> BoxFuture<'static, Result<T, CallError>> {
    let gone = Arc::new(AtomicBool::new(false));
    let stage = Stage { scene: scene.clone(), gone: Arc::clone(&gone) };
    Box::pin(async move {
        let (mut owner, token) = crate::blocking::begin_work(None)?;
        let _presence = Presence(gone);
        let task = tokio::task::spawn_blocking(move || {
            let _token = token;
            work(&stage)
        });
        owner.owns(&task);
        task.await.unwrap_or_else(|crash| Err(CallError::internal(format!("the tool crashed: {crash}"))))
    })
}

/// Where a program starts.
pub(super) fn starting_place(scene: &Scene) -> Result<PathBuf, CallError> {
    let place = scene.place("cwd")?;
    if !place.real.is_dir() {
        return Err(CallError::not_found(format!("{} is not a directory to start in", place.shown)));
    }
    if !place.inside {
        return Err(CallError::invalid(format!("{} is not something that the command may read", place.shown))
            .hint("start it in the project, or name the directory under files.read"));
    }
    Ok(place.real.clone())
}

/// What a task is for, as this call asks for it.
pub(super) fn errand(scene: &Scene, command: String, description: Option<String>, persist: bool) -> Errand {
    let call = scene.call();
    Errand {
        call_id: call.id.clone(),
        tool: scene.tool().to_string(),
        session: call.session.clone(),
        command,
        description,
        asked: scene.asked(),
        accepts_gaps: scene.accepts_gaps(),
        started: scene.started_files().to_vec(),
        looks: scene.looks(),
        persist,
    }
}

/// Runs a command in this process, and waits for its end.
pub(super) fn here(stage: &Stage, command: &Command) -> Result<Reply, CallError> {
    let scene = &stage.scene;
    let mut pace = Pace::default();
    let mut line = |line: &[u8]| pace.line(line, &mut |line| scene.progress(line));
    let file = scene.terms().data_dir.join("outputs").join(format!("{}.txt", scene.call().id));
    let mut collector = Collector::new(scene.terms().shell.order, file, &mut line);
    let reins = Reins { stop: &|| stage.halted().is_some(), signal: &|| None, begun: &|| {} };
    let terms = scene.terms().for_a_look(scene.looks());
    let site = Site { workspace: scene.workspace(), terms: &terms, call: &scene.call().id };
    let done = command::run(command, &site, &reins, &mut collector)?;
    let shown = collector.finish().shown(scene.limits());
    make_room_after(scene, &shown);
    // A caller who cancelled hears that, with what was printed so far; nothing is kept.
    let (kept, ending) = done.settle(stage.halted(), &|path| scene.shown(path));
    let reply = ended(&ending, shown, None);
    Ok(Reply { changes: kept.changes, staging: kept.staging, ..reply })
}

/// Lets the oldest of what is kept go where a whole output was just added. That one is bounded by itself, and fresh, so it
/// stays; should there be no room at all, the next that asks beforehand is told so.
fn make_room_after(scene: &Scene, shown: &Shown) {
    if shown.whole.is_some() {
        let _ = scene.terms().kept.make_room(&scene.terms().data_dir, 0);
    }
}

/// The reply about a command that has ended.
fn ended(ending: &Ending, mut shown: Shown, task: Option<Value>) -> Reply {
    for line in ending.lines() {
        shown.add_line(&line);
    }
    let mut data = json!({
        "exit_code": ending.exit_code, "signal": ending.signal, "duration_ms": ending.duration_ms, "run": ending.run,
    });
    if let Some(task) = task {
        data["task"] = task;
    }
    let mut warnings = ending.warnings.clone();
    warnings.extend(shown.warning);
    let whole = shown.whole.map(|path| path.to_string_lossy().into_owned());
    Reply { text: shown.text, data: Some(data), warnings, error: ending.error.clone(), whole, ..Reply::default() }
}

/// Starts a command in the background, and lets it go on.
pub(super) fn background(stage: &Stage, errand: Errand, command: Command) -> Result<Reply, CallError> {
    let scene = &stage.scene;
    let (_, id) = scene.desk().start(errand, command, &|| stage.halted())?.release();
    let text = format!("Started {} in the background. {}", spoken(scene, id), advice(scene, id));
    let data = json!({"exit_code": null, "signal": null, "task": {"id": id, "pid": id.number(), "state": "running"}});
    Ok(Reply { text, data: Some(data), goes_on: true, ..Reply::default() })
}

/// Runs a command so that it can go on in the background: if it takes longer than this, it does.
pub(super) fn movable(stage: &Stage, errand: Errand, command: Command, patience: Duration) -> Result<Reply, CallError> {
    let scene = &stage.scene;
    let begun = Instant::now();
    let mut held = scene.desk().start(errand, command, &|| stage.halted())?;
    let mut cut = None;
    loop {
        match held.news(LOOK.min(patience.saturating_sub(begun.elapsed()))) {
            News::Line(line) => scene.progress(line),
            News::End => return waited_for(scene, &held, cut),
            News::Silence if cut.is_some() => {}
            News::Silence => {
                cut = stage.halted();
                if cut.is_some() {
                    held.cut();
                } else if begun.elapsed() >= patience {
                    return Ok(moved(scene, held, begun.elapsed()));
                }
            }
        }
    }
}

/// The reply about a task that ended while it was waited for. It need not be remembered as one.
fn waited_for(scene: &Scene, held: &Held, cut: Option<CallError>) -> Result<Reply, CallError> {
    knows_end(scene, held.id);
    let task = held.dir.read().ok_or_else(|| CallError::internal("the task's own record is gone"))?;
    let Some(end) = &task.end else {
        return Err(CallError::internal("whoever kept the command died, and it with them; nothing was kept"));
    };
    let mut shown = printed(&held.dir, scene);
    // What was kept as it came is put in order as far as all of it is here.
    if scene.terms().shell.order == Order::Separate && shown.whole.is_none() {
        shown.text = output::parted(&shown.text);
    }
    let mut ending = end.ending.clone();
    ending.error = cut.or(ending.error);
    end.notices.iter().for_each(|notice| shown.add_line(notice));
    shown.whole = shown.whole.and_then(|path| {
        let kept = scene.terms().data_dir.join("outputs");
        let file = kept.join(format!("{}.txt", scene.call().id));
        std::fs::create_dir_all(&kept).and_then(|()| std::fs::rename(path, &file)).ok().map(|()| file)
    });
    make_room_after(scene, &shown);
    // What is not text stays where the reply says that it is.
    if end.notices.is_empty() {
        held.dir.remove();
    }
    Ok(Reply { undo: end.undo.clone(), ..ended(&ending, shown, None) })
}

fn moved(scene: &Scene, held: Held, after: Duration) -> Reply {
    let (dir, id) = held.release();
    let mut shown = printed(&dir, scene);
    let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
    shown.add_line(&format!(
        "[it still runs after {}, and goes on in the background as {}. {}]",
        seconds(after_ms),
        spoken(scene, id),
        advice(scene, id)
    ));
    let data = json!({
        "exit_code": null, "signal": null, "duration_ms": after_ms,
        "task": {"id": id, "pid": id.number(), "state": "running", "moved": true},
    });
    let whole = shown.whole.map(|path| path.to_string_lossy().into_owned());
    Reply { text: shown.text, data: Some(data), whole, goes_on: true, ..Reply::default() }
}

/// What a task has printed, as far as this call may show it.
pub(super) fn printed(dir: &TaskDir, scene: &Scene) -> Shown {
    Ends::read(&dir.output()).map(|ends| ends.shown(scene.limits())).unwrap_or_default()
}

/// The caller is told by this very call that a task has ended, and needs no note about it.
pub(super) fn knows_end(scene: &Scene, id: TaskId) {
    scene.store().drop_note(&scene.call().session, NoteKind::Process, &id.to_string());
}

/// A task as the caller's dialect names it.
pub(super) fn spoken(scene: &Scene, id: TaskId) -> String {
    if scene.call().dialect == Dialect::Flynn { format!("pid {}", id.number()) } else { id.to_string() }
}

/// What to call next.
fn advice(scene: &Scene, id: TaskId) -> String {
    let args = match scene.call().dialect {
        Dialect::Flynn => format!("{{\"pid\": {}}}", id.number()),
        _ => format!("{{\"id\": \"{id}\"}}"),
    };
    format!("process.output {args} shows what it prints, process.status how it stands, process.kill ends it")
}

/// One line about a task.
pub(super) fn line(scene: &Scene, task: &Task) -> String {
    let (id, time) = (spoken(scene, task.id), seconds(task.age_ms()));
    let error = task.end.as_ref().and_then(|end| end.ending.error.as_ref());
    let how = match (task.state(), error) {
        (State::Running, _) => format!("running for {time}"),
        (State::Done, _) => format!("done, exit status 0, after {time}"),
        (State::Lost, _) => "lost: whoever kept it died, and it with them; nothing was kept".to_owned(),
        (state, Some(error)) => format!("{}: {} (after {time})", state.word(), error.message),
        (state, None) => format!("{} after {time}", state.word()),
    };
    format!("{id}: {how}  $ {}", haft_core::preview::cut(&haft_core::preview::inert(&task.errand.command), 100))
}

/// A task as data.
pub(super) fn data(task: &Task, dir: &TaskDir) -> Value {
    let bytes = std::fs::metadata(dir.output()).map_or(0, |meta| meta.len());
    let mut data = json!({
        "id": task.id, "pid": task.id.number(), "state": task.state(), "command": task.errand.command,
        "call_id": task.errand.call_id, "session": task.errand.session, "started_ms": task.started_ms,
        "duration_ms": task.age_ms(), "persist": task.errand.persist, "output_bytes": bytes,
        "output_file": shown_path(&dir.output()), "exit_code": null, "signal": null,
    });
    if let Some(description) = &task.errand.description {
        data["description"] = json!(description);
    }
    if let Some(end) = &task.end {
        data["exit_code"] = json!(end.ending.exit_code);
        data["signal"] = json!(end.ending.signal);
        data["run"] = end.ending.run.clone();
        data["error"] = json!(end.ending.error);
        data["undo"] = json!(end.undo);
    }
    data
}

fn shown_path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
