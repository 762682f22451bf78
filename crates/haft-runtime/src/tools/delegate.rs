//! agent.delegate: a task for an agent that somebody else makes and the user has installed, as a confined child.
//!
//! ```text
//! task ─> standard input ─> claude │ codex │ gemini ─> its own form of output ─> last words, session, cost
//!                            │ held by the kernel: the project on a view, its own directory, its maker's hosts
//!                            └─> what it did to the project ─> changes, as of any other program
//! ```
//!
//! It reaches nobody but its maker, gets no variables but its own keys, and of what it writes outside the project only its
//! conversations about the project stay. Where it cannot be held so, it does not run.

mod agents;
mod said;

use crate::confined::command::{Ending, Kept, Readied, Reins, carry};
use crate::confined::{Guest, environment, explain, filter};
use crate::scene::Scene;
use crate::shelf::program::{Tail, said as sentence};
use crate::tool::{BoxFuture, Reply, Tool};
use crate::tools::declare;
use crate::tools::running::{Stage, to_its_end};
use crate::workspace::Workspace;
use agents::{Agent, Found, Wish, chosen};
use haft_core::outcome::Label;
use haft_core::preview::{cut, inert};
use haft_core::{CallError, ErrorKind, ToolSpec};
use haft_sandbox::{Bounds, Program};
use said::Said;
use serde::Deserialize;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::sync::Arc;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_mins(30);
const TIMEOUT_MAX: Duration = Duration::from_hours(6);
/// What the end of it may take beyond its time.
const SLACK: Duration = Duration::from_secs(10);
/// How much of what it complains about is kept: its end.
const COMPLAINTS_MAX: usize = 4 << 10;

/// The tool.
pub(super) fn tool() -> Arc<dyn Tool> {
    Arc::new(Delegate(Arc::new(spec())))
}

struct Delegate(Arc<ToolSpec>);

impl Tool for Delegate {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        to_its_end(scene, run)
    }

    fn guest(&self, args: &Value, workspace: &Workspace) -> Result<Option<Guest>, CallError> {
        let session = args["session"].as_str().filter(|session| said::is_session(session));
        chosen(args["agent"].as_str(), workspace)?.guest(workspace, session).map(Some)
    }
}

fn spec() -> ToolSpec {
    let mut spec = declare(
        "agent.delegate",
        "Delegate a task to another coding agent installed here (Claude Code, Codex CLI, Gemini CLI) and return its \
         final answer. It knows only the task, or continues an earlier `session`. It can read and write the project; \
         its changes can be undone. It can connect only to its vendor's servers.",
    )
    .input(json!({"type": "object", "additionalProperties": false, "required": ["task"], "properties": {
        "task": {"type": "string", "minLength": 1, "description": "The task, with everything it needs to know"},
        "agent": {"type": "string", "enum": ["claude", "codex", "gemini"], "description": "Which agent (default: the first installed)"},
        "session": {"type": "string", "description": "Session of an earlier call to continue"},
        "model": {"type": "string", "description": "A model of that agent"},
        "timeout_ms": {
            "type": "integer",
            "minimum": 1,
            "maximum": u64::try_from(TIMEOUT_MAX.as_millis()).unwrap_or(u64::MAX),
            "description": "Stop it after this many milliseconds (default 1800000)"
        }}}))
    .output(json!({
        "type": "object",
        "properties": {
            "agent": {"type": "string"},
            "session": {"type": ["string", "null"]},
            "cost_usd": {"type": "number"},
            "exit_code": {"type": ["integer", "null"]},
            "changed": {"type": "array", "items": {"type": "string"}},
            "duration_ms": {"type": "integer"},
            "run": {"type": "object"}
        },
        "required": ["agent", "session", "exit_code", "changed"]
    }))
    .hint("claude code codex gemini cli external agent second opinion hand over other model")
    .runs()
    .destructive()
    .timeout(TIMEOUT_MAX + SLACK);
    spec.reach.network = true;
    spec.effects.open_world = true;
    spec
}

#[derive(Deserialize)]
struct Args {
    task: String,
    agent: Option<String>,
    session: Option<String>,
    model: Option<String>,
    timeout_ms: Option<u64>,
}

fn run(stage: &Stage) -> Result<Reply, CallError> {
    let scene = &stage.scene;
    if scene.is_trial() {
        return Err(CallError::failed("it cannot be tried without doing it: what it tells its maker stays told"));
    }
    let args: Args = scene.parse()?;
    check(&args)?;
    let found = chosen(args.agent.as_deref(), scene.workspace())?;
    let came = carry_out(stage, &found, &args)?;
    Ok(told(stage, found.agent, came))
}

/// What becomes an argument must not be taken for an option.
fn check(args: &Args) -> Result<(), CallError> {
    let shown = |text: &str| cut(&inert(text), 80);
    if let Some(session) = args.session.as_ref().filter(|session| !said::is_session(session)) {
        return Err(CallError::invalid(format!("`{}` is no session of an agent's", shown(session)))
            .hint("pass on what an earlier call gave as `session`"));
    }
    let letter = |c: char| c.is_ascii_alphanumeric();
    let named = |model: &String| {
        model.starts_with(letter) && model.len() <= 128 && model.chars().all(|c| letter(c) || "._:/@[]-".contains(c))
    };
    if let Some(model) = args.model.as_ref().filter(|model| !named(model)) {
        return Err(CallError::invalid(format!("`{}` is no name of a model", shown(model))));
    }
    Ok(())
}

/// What came of a run.
struct Came {
    kept: Kept,
    ending: Ending,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    timeout: Duration,
    withheld: Vec<String>,
}

fn carry_out(stage: &Stage, found: &Found, args: &Args) -> Result<Came, CallError> {
    let scene = &stage.scene;
    let (begun, agent) = (Instant::now(), found.agent);
    let guest = found.guest(scene.workspace(), args.session.as_deref())?;
    let lost = |error| CallError::internal(format!("no room for what it changes: {error}"));
    let staging = scene.terms().stage(&scene.call().id).map_err(lost)?;
    guest.prepare(staging.path())?;
    let rules = scene.web().rules(&scene.call().caller, scene.tool());
    let settled = scene.terms().settle_guest(scene.workspace(), (&guest, &rules), staging.path());
    let mut settled = settled.map_err(|error| explain(&error))?;
    let timeout = args.timeout_ms.map_or(TIMEOUT, Duration::from_millis);
    settled.plan.confinement.bounds = Bounds { wall: Some(timeout), ..settled.plan.confinement.bounds };
    let wish = Wish { session: args.session.as_deref(), model: args.model.as_deref() };
    let words = (agent.args)(&wish).into_iter().map(OsString::from);
    let (env, withheld) = variables(scene, agent, &guest)?;
    let whole = std::iter::once(found.program.clone().into()).chain(words).collect();
    let program = Program { argv: whole, env, shares_job: false, cwd: scene.workspace().root().to_owned() };
    let stdin = filter::placed(args.task.as_bytes());
    let stdin = stdin.map_err(|error| CallError::internal(format!("no room for its input: {error}")))?;
    let place = staging.path().to_owned();
    let readied = Readied { settled, program, staging: Some(staging), stdin: Some(stdin), begun };
    let (mut stdout, mut stderr) = (Vec::new(), Tail::default());
    let mut sink = |number: usize, bytes: &[u8]| match number {
        0 => stdout.extend_from_slice(bytes),
        _ => stderr.push(bytes, COMPLAINTS_MAX),
    };
    scene.progress(format!("{} works", agent.name));
    let reins = Reins { stop: &|| stage.halted().is_some(), signal: &|| None, begun: &|| {} };
    let done = carry(readied, &reins, &mut sink)?;
    let withheld = withheld.into_iter().chain(guest.gather(&place)).collect();
    let (kept, ending) = done.settle(stage.halted(), &|path| scene.shown(path));
    let stderr = stderr.masked(scene.used(), ending.exit_code.is_none());
    Ok(Came { kept, ending, stdout, stderr, timeout, withheld })
}

/// The variables of a program.
type Variables = Vec<(OsString, OsString)>;

/// Its variables: the harmless ones, what tells it where it is, and its own keys, as far as they may go to its hosts. And
/// what it was not given, in a sentence each.
fn variables(scene: &Scene, agent: &Agent, guest: &Guest) -> Result<(Variables, Vec<String>), CallError> {
    let mut env = environment::make(&[], &[]).map_err(|error| CallError::internal(error.to_string()))?;
    let mut withheld = Vec::new();
    let mut set = |name: &str, value: OsString| {
        env.retain(|(known, _)| known != name);
        env.push((name.into(), value));
    };
    set("PATH", environment::outside(scene.workspace().project()).path.clone());
    if let Some(home) = environment::real_home() {
        set("HOME", home.into());
    }
    for (name, value) in agent.env {
        set(name, value.into());
    }
    for name in agent.keys.iter().filter(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty())) {
        let Some(secret) = scene.secret(name)? else { continue };
        let bound = secret.hosts();
        let beyond =
            guest.hosts.iter().find(|host| bound.is_some_and(|bound| !bound.iter().any(|most| host.is_below(most))));
        match beyond {
            Some(host) => withheld.push(format!("{name} is bound to other hosts than {host}, and was not passed on")),
            None => set(name, secret.value().into()),
        }
    }
    Ok((env, withheld))
}

/// What it said and how it ended, as a reply.
fn told(stage: &Stage, agent: &Agent, came: Came) -> Reply {
    let Came { kept, ending, stdout, stderr, timeout, withheld } = came;
    let printed = String::from_utf8_lossy(&stdout);
    let read = (agent.read)(&printed);
    let error = failure(agent, (&ending, timeout), read.as_ref(), (&stdout, &stderr));
    let Said { text, session, cost_usd, .. } =
        read.unwrap_or_else(|| Said { text: printed.into_owned(), ..Said::default() });
    let changed: Vec<String> = kept.changes.iter().map(|change| stage.scene.shown(change.path())).collect();
    let mut data = json!({
        "agent": agent.name, "session": session, "exit_code": ending.exit_code, "changed": changed,
        "duration_ms": ending.duration_ms, "run": ending.run,
    });
    if let Some(cost) = cost_usd {
        data["cost_usd"] = json!(cost);
    }
    let warnings = ending.warnings.into_iter().chain(withheld).collect();
    Reply {
        data: Some(data),
        changes: kept.changes,
        staging: kept.staging,
        labels: vec![Label::Untrusted],
        warnings,
        error,
        ..Reply::text(signed(text, agent, session.as_deref()))
    }
}

/// Its last words, with the name of the conversation: whoever is told only words can go on with it all the same.
fn signed(mut text: String, agent: &Agent, session: Option<&str>) -> String {
    if let Some(session) = session {
        text.push_str(&format!("\n\n[{} can go on with this as session {session}]", agent.name));
    }
    text
}

/// What went wrong: how it ended, what it said of itself, or that it said nothing that can be read.
fn failure(
    agent: &Agent,
    (ending, timeout): (&Ending, Duration),
    read: Option<&Said>,
    (stdout, stderr): (&[u8], &[u8]),
) -> Option<CallError> {
    let name = agent.name;
    let own = read.and_then(|said| said.failure.as_deref()).map(|why| cut(&inert(why), 600));
    let hint = format!(
        "`{name}` by itself shows whether it works and is logged in; besides it is given {}",
        agent.keys.join(" and ")
    );
    match (&ending.error, own) {
        (Some(error), _) if error.kind == ErrorKind::Timeout => {
            let message = format!("{name} was ended after {} ms: {}", timeout.as_millis(), error.message);
            Some(CallError::new(ErrorKind::Timeout, message).hint("give it more with timeout_ms, or a smaller task"))
        }
        (Some(error), own) if error.kind == ErrorKind::Failed => {
            let why = own.unwrap_or_else(|| sentence(if stderr.is_empty() { stdout } else { stderr }));
            let why = if why.is_empty() { why } else { format!(": {why}") };
            Some(CallError::failed(format!("{name} failed: {}{why}", error.message)).hint(hint))
        }
        (Some(error), _) => Some(error.clone()),
        (None, Some(why)) => Some(CallError::failed(format!("{name} says that it failed: {why}")).hint(hint)),
        (None, None) if read.is_none() => {
            let what = sentence(stdout);
            let what = if what.is_empty() { "nothing".to_owned() } else { what };
            Some(
                CallError::failed(format!("what {name} printed is in none of the forms that are known: {what}"))
                    .hint(hint),
            )
        }
        (None, None) => None,
    }
}
