//! process.start, status, output, list and kill: programs that go on after the call that started them. Only
//! what haft started itself can be asked about or ended, and only by the session that started it.

use crate::confined::command::Command;
use crate::output;
use crate::scene::Scene;
use crate::task::{Desk, State, Task, Wish};
use crate::tool::{Blocking, BoxFuture, Reply, Tool};
use crate::tools::declare;
use crate::tools::running::{self, Stage};
use crate::tools::shell::LIMITS;
use haft_core::place::Access;
use haft_core::{CallError, ErrorKind, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;
use std::time::Duration;

/// The longest time that a process may be given: a week.
const TIMEOUT_MAX_MS: u64 = 7 * 24 * 3_600_000;
/// How long the end of one is waited for: it is asked first, and made to after five seconds.
const PATIENCE: Duration = Duration::from_secs(8);
/// The most of an output that one call gives from an offset.
const LIMIT_MAX: u64 = 256 << 10;

/// All of them.
pub fn all() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(Start(Arc::new(start_spec()))),
        Blocking::tool(of_one("process.status", STATUS), |scene: &Scene| status(scene)),
        Blocking::tool(output_spec(), |scene: &Scene| printed(scene)),
        Blocking::tool(list_spec(), |scene: &Scene| list(scene)),
        Blocking::tool(kill_spec(), |scene: &Scene| kill(scene)),
    ]
}

const STATUS: &str = "Check the state of a background process or command: running, done, failed, timed_out, cancelled or lost. Returns its exit status and how to undo its changes.";

/// A tool about one process.
fn of_one(name: &str, description: &str) -> ToolSpec {
    declare(name, description).hint("background task state exit code").input(json!({
        "type": "object",
        "properties": {"id": id()},
        "required": ["id"],
        "additionalProperties": false
    }))
}

fn id() -> Value {
    json!({"type": "string", "pattern": "^(bg_)?[0-9]{1,15}$", "description": "The id that starting it returned (bg_1)"})
}

struct Start(Arc<ToolSpec>);

impl Tool for Start {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        running::to_its_end(scene, start)
    }
}

fn start_spec() -> ToolSpec {
    declare(
        "process.start",
        "Start a program in the background, such as a dev server or a file watcher, and return its id at once. It \
         runs in the same sandbox as shell.exec; its file changes appear when it ends. With args, or if command is \
         one word, it runs directly; otherwise in a shell. It ends with the session unless persist is set.",
    )
    .hint("background daemon server watch spawn launch")
    .input(json!({
        "type": "object",
        "properties": {
            "command": {"type": "string", "minLength": 1, "maxLength": 131_072, "description": "The program, or a shell command"},
            "args": {"type": "array", "items": {"type": "string"}, "maxItems": 10_000, "description": "The program's arguments, passed on unchanged"},
            "cwd": {"type": "string", "description": "Working directory (default: the project root)"},
            "timeout_ms": {"type": "integer", "minimum": 1, "maximum": TIMEOUT_MAX_MS, "description": "Stop it after this many milliseconds (default: never)"},
            "persist": {"type": "boolean", "description": "Keep running when the session ends"},
            "description": {"type": "string", "maxLength": 500, "description": "What it does, in a few words"}
        },
        "required": ["command"],
        "additionalProperties": false
    }))
    .output(json!({
        "type": "object",
        "properties": {"task": {"type": "object", "properties": {"id": {"type": "string"}, "pid": {"type": "integer"}, "state": {"type": "string"}}}},
        "required": ["task"]
    }))
    .runs()
    .destructive()
    .command("command", Some("args"))
    .touches("cwd", Access::Read, Some("."))
}

fn output_spec() -> ToolSpec {
    declare(
        "process.output",
        "Read what a background process or command has printed so far: everything, or from a byte offset on. The \
         data has the next offset.",
    )
    .hint("background task log stdout stderr")
    .input(json!({
        "type": "object",
        "properties": {
            "id": id(),
            "offset": {"type": "integer", "minimum": 0, "description": "First byte to return (default: everything)"},
            "limit": {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "description": "Maximum number of bytes"}
        },
        "required": ["id"],
        "additionalProperties": false
    }))
    .limits(LIMITS)
}

fn list_spec() -> ToolSpec {
    declare("process.list", "List the background processes and commands that this session started, with their states.")
        .hint("background tasks running")
        .input(json!({
            "type": "object",
            "properties": {"all": {"type": "boolean", "description": "Include those of the project's other sessions"}},
            "additionalProperties": false
        }))
}

/// It asks for no more than its session has: what it ends was started, and decided about, by the same caller,
/// and what that changed is kept and can be undone. So it weighs as much as starting it did.
fn kill_spec() -> ToolSpec {
    declare(
        "process.kill",
        "Stop a background process or command that this session started. SIGTERM asks it to end and kills it after 5 \
         seconds; SIGKILL kills it at once. Its changes are kept and can be undone.",
    )
    .hint("stop end cancel terminate background task")
    .input(json!({
        "type": "object",
        "properties": {
            "id": id(),
            "signal": {"type": "string", "enum": ["SIGTERM", "SIGKILL"], "description": "SIGTERM (default) or SIGKILL"}
        },
        "required": ["id"],
        "additionalProperties": false
    }))
    .acts()
    .on_own_tasks()
}

#[derive(Deserialize)]
struct StartArgs {
    command: String,
    args: Option<Vec<String>>,
    timeout_ms: Option<u64>,
    #[serde(default)]
    persist: bool,
    description: Option<String>,
}

fn start(stage: &Stage) -> Result<Reply, CallError> {
    let scene = &stage.scene;
    if scene.is_trial() {
        return Err(CallError::failed("a program that goes on has no end to show, so it cannot be tried"));
    }
    let StartArgs { command, args, timeout_ms, persist, description } = scene.parse()?;
    if persist && scene.workspace().is_copy() {
        let message = "whoever works on a copy of the project starts nothing that outlives it: the copy may go";
        return Err(CallError::new(ErrorKind::Denied, message).hint("leave out `persist`"));
    }
    let masked = haft_core::record::masked(scene.args(), &Value::Null, &[]);
    let shown = haft_core::preview::command(&masked).unwrap_or_default();
    let cwd = running::starting_place(scene)?;
    let is_word = command.chars().all(|c| c.is_alphanumeric() || "-_./+@:=,%".contains(c)) && !command.contains('=');
    let command = match args {
        Some(args) => Command::program(command, args, cwd)?,
        None if is_word => Command::program(command, Vec::new(), cwd)?,
        None => Command::shell(&scene.terms().shell, command, cwd)?,
    };
    let command = command.within(timeout_ms.map(Duration::from_millis));
    running::background(stage, running::errand(scene, shown, description, persist), command)
}

#[derive(Deserialize)]
struct OneArgs {
    id: String,
    offset: Option<u64>,
    limit: Option<u64>,
    signal: Option<String>,
}

fn status(scene: &Scene) -> Result<Reply, CallError> {
    let args: OneArgs = scene.parse()?;
    let (dir, task) = scene.desk().find(&args.id, &scene.call().session)?;
    told_of(scene, &task);
    Ok(Reply::text(running::line(scene, &task)).data(running::data(&task, &dir)))
}

/// If a task of this session has ended, the caller knows it now.
fn told_of(scene: &Scene, task: &Task) {
    if task.end.is_some() && task.errand.session == scene.call().session {
        running::knows_end(scene, task.id);
    }
}

fn printed(scene: &Scene) -> Result<Reply, CallError> {
    let args: OneArgs = scene.parse()?;
    let (dir, task) = scene.desk().find(&args.id, &scene.call().session)?;
    told_of(scene, &task);
    let mut data = running::data(&task, &dir);
    if args.offset.is_none() && args.limit.is_none() {
        let mut shown = running::printed(&dir, scene);
        task.end.iter().flat_map(|end| &end.notices).for_each(|notice| shown.add_line(notice));
        data["next_offset"] = data["output_bytes"].clone();
        let whole = shown.whole.map(|path| path.to_string_lossy().into_owned());
        return Ok(Reply { text: shown.text, data: Some(data), whole, ..Reply::default() });
    }
    let from = args.offset.unwrap_or(0);
    let unread = |error: std::io::Error| CallError::failed(format!("the output cannot be read: {error}"));
    let mut file = std::fs::File::open(dir.output()).map_err(unread)?;
    file.seek(SeekFrom::Start(from)).map_err(unread)?;
    let mut bytes = Vec::new();
    file.take(args.limit.unwrap_or(LIMIT_MAX).min(LIMIT_MAX)).read_to_end(&mut bytes).map_err(unread)?;
    // A character that is cut through comes whole with the next call, unless nothing else would come now.
    let whole = bytes.len() - output::incomplete(&bytes);
    bytes.truncate(if whole == 0 { bytes.len() } else { whole });
    data["offset"] = json!(from);
    data["next_offset"] = json!(from + bytes.len() as u64);
    Ok(Reply::text(String::from_utf8_lossy(&bytes)).data(data))
}

#[derive(Deserialize)]
struct ListArgs {
    #[serde(default)]
    all: bool,
}

fn list(scene: &Scene) -> Result<Reply, CallError> {
    let args: ListArgs = scene.parse()?;
    let session = Some(&scene.call().session).filter(|_| !args.all);
    let tasks = scene.desk().list(session);
    for (_, task) in &tasks {
        told_of(scene, task);
    }
    let lines: Vec<String> = tasks.iter().map(|(_, task)| running::line(scene, task)).collect();
    let text = if lines.is_empty() { "Nothing was started in the background".to_owned() } else { lines.join("\n") };
    let data: Vec<Value> = tasks.iter().map(|(dir, task)| running::data(task, dir)).collect();
    Ok(Reply::text(text).data(json!({ "processes": data })))
}

fn kill(scene: &Scene) -> Result<Reply, CallError> {
    let args: OneArgs = scene.parse()?;
    let (dir, task) = scene.desk().find(&args.id, &scene.call().session)?;
    if task.state() != State::Running {
        told_of(scene, &task);
        let text = format!("It had ended already. {}", running::line(scene, &task));
        return Ok(Reply::text(text).data(running::data(&task, &dir)));
    }
    dir.ask_to_end(if args.signal.as_deref() == Some("SIGKILL") { Wish::Kill } else { Wish::Terminate })?;
    let task = Desk::wait(&dir, PATIENCE).unwrap_or(task);
    told_of(scene, &task);
    let mut text = running::line(scene, &task);
    if task.end.as_ref().is_some_and(|end| end.undo.is_some()) {
        text.push_str(&format!("\nundo what it changed with: haft undo {}", task.errand.call_id));
    }
    Ok(Reply::text(text).data(running::data(&task, &dir)))
}
