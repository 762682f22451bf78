//! tool.script: a short script that calls tools. It does nothing by itself; each call that it makes is decided, recorded
//! and run as itself, and only what the script prints and returns is told.

use crate::back::Back;
use crate::confined::terms::Settled;
use crate::confined::{Resident, Terms, explain};
use crate::hygiene::unwrapped;
use crate::scene::Scene;
use crate::script::{Came, LINE_MAX, Order, Said, WORD, Wanted};
use crate::tool::{BoxFuture, Reply, Tool};
use crate::tools::declare;
use crate::workspace::Workspace;
use haft_core::manifest::Permissions;
use haft_core::outcome::Label;
use haft_core::web::Rules;
use haft_core::{Call, CallError, ErrorKind, Outcome, ToolSpec};
use haft_sandbox::{Bounds, Program};
use serde::Deserialize;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;

/// How long a script may take by itself. How long its calls take is theirs.
const PATIENCE: Duration = Duration::from_mins(2);
/// How long it may take with all its calls.
const PATIENCE_WITH_CALLS: Duration = Duration::from_mins(30);
/// How long one that has closed its line may take to be gone.
const LAST_MOMENT: Duration = Duration::from_millis(500);
/// What the process may use up.
const MEMORY_MAX: u64 = 1 << 30;
const CPU_MAX: Duration = Duration::from_secs(10);
/// How many warnings of its calls are told.
const WARNINGS_MAX: usize = 8;
/// What no script may call: what would go on without it, or make calls that are not counted as its own.
const NOT_HERE: [&str; 5] = ["agent.delegate", "agent.spawn", "pipeline.promote", "pipeline.run", "tool.script"];

pub(super) fn tool() -> Arc<dyn Tool> {
    let spec = declare(
        "tool.script",
        "Run a Lua 5.4 script that calls many tools in one turn, to loop over, filter or combine results. You see \
         only what it prints or returns (a text or a table). call(\"file.read\", {path=\"a\"}) returns {output, \
         data} or raises; try(tool, args) returns true, result or false, message; all({{tool, args}, …}) runs calls \
         in parallel and returns a list of {ok, output, data, error}. Also: json.encode, json.decode, json.array, \
         json.null, print, Lua's table, string, math, utf8, coroutine; no files, network, clock or load. Each call \
         needs its own approval.",
    )
    .hint("code lua loop batch many calls filter combine program")
    .input(json!({"type": "object", "additionalProperties": false, "required": ["code"], "properties": {
        "code": {"type": "string", "minLength": 1, "maxLength": 65536, "description": "The Lua script"}}}))
    .acts()
    .by_parts()
    .timeout(PATIENCE_WITH_CALLS);
    Arc::new(Script { spec: Arc::new(spec) })
}

struct Script {
    spec: Arc<ToolSpec>,
}

#[derive(Deserialize)]
struct Args {
    code: String,
}

impl Tool for Script {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(async move {
            let Args { code } = scene.parse()?;
            let (order, program) = (Order { code }, program(scene)?);
            let mut talk = Talk::begin(scene, &program).await?;
            let said = tokio::select! {
                biased;
                said = talk.run(&order) => said,
                error = scene.halt().stopped() => Err(Broken::Error(error)),
            };
            talk.end(said).await
        })
    }
}

/// The program that becomes a host.
fn program(scene: &Scene) -> Result<PathBuf, CallError> {
    let own = scene.desk().program().ok_or_else(|| {
        CallError::failed("scripts run in a process of their own, and this program cannot become one")
            .hint("use the haft command, or make the calls one by one")
    })?;
    let real = std::fs::read_link(own).unwrap_or_else(|_| own.to_owned());
    if real.is_file() {
        return Ok(real);
    }
    Err(CallError::failed("haft was replaced while it ran, so that it cannot start itself").hint("start it anew"))
}

/// How a host is held, whatever it is: it declares nothing, and so it may touch nothing but the file that it is.
fn held(
    terms: &Terms,
    workspace: &Workspace,
    rules: &Rules,
    argv: Vec<OsString>,
) -> Result<(Settled, Program), CallError> {
    let bounds = Bounds {
        memory: Some(MEMORY_MAX),
        processes: Some(16),
        cpu: Some(CPU_MAX),
        wall: Some(PATIENCE_WITH_CALLS),
        file_size: Some(0),
        disk: Some(1 << 20),
        output: Some(256 << 20),
        temp: 1 << 20,
    };
    let terms = Terms { bounds, ..terms.clone() };
    let made_of: Vec<PathBuf> = argv.first().map(PathBuf::from).into_iter().collect();
    let settled = terms.settle_declared(workspace, &Permissions::default(), (&made_of, rules), &terms.data_dir);
    let settled = settled.map_err(|error| explain(&error))?;
    Ok((settled, Program { argv, env: Vec::new(), shares_job: false, cwd: "/".into() }))
}

/// Why there is no word of how a script ended.
enum Broken {
    Error(CallError),
    Ended,
    Late,
}

/// A host, and what its script has done so far.
struct Talk<'s> {
    scene: &'s Scene,
    resident: Resident,
    to: pipe::Sender,
    from: BufReader<pipe::Receiver>,
    /// Nobody reads it; it is held so that nothing there ends the host.
    _complaints: OwnedFd,
    calls: usize,
    labels: Vec<Label>,
    warnings: Vec<String>,
}

impl<'s> Talk<'s> {
    async fn begin(scene: &'s Scene, program: &Path) -> Result<Self, CallError> {
        let rules = scene.web().rules(&scene.call().caller, scene.tool());
        let argv = vec![program.as_os_str().to_owned(), WORD.into()];
        let (settled, program) = held(scene.terms(), scene.workspace(), &rules, argv)?;
        let (resident, pipes) = Resident::planned(settled.backend, settled.plan, program, ()).await?;
        let lost = |error: std::io::Error| CallError::internal(format!("no line to the script: {error}"));
        let to = pipe::Sender::from_owned_fd(pipes.stdin).map_err(lost)?;
        let from = BufReader::new(pipe::Receiver::from_owned_fd(pipes.stdout).map_err(lost)?);
        let (labels, warnings) = (Vec::new(), Vec::new());
        Ok(Self { scene, resident, to, from, _complaints: pipes.stderr, calls: 0, labels, warnings })
    }

    /// Hears the script to its end, and has its calls made.
    async fn run(&mut self, order: &Order) -> Result<Said, Broken> {
        let mut left = PATIENCE;
        self.tell(order).await?;
        loop {
            let begun = Instant::now();
            let said = tokio::time::timeout(left, self.hear()).await.map_err(|_| Broken::Late)??;
            left = left.saturating_sub(begun.elapsed());
            let Said::Calls(wanted) = said else { return Ok(said) };
            let came = self.make(wanted).await.map_err(Broken::Error)?;
            self.tell(&came).await?;
        }
    }

    async fn tell(&mut self, what: &impl serde::Serialize) -> Result<(), Broken> {
        let mut line = serde_json::to_vec(what).map_err(|_| Broken::Ended)?;
        line.push(b'\n');
        self.to.write_all(&line).await.map_err(|_| Broken::Ended)
    }

    async fn hear(&mut self) -> Result<Said, Broken> {
        let mut line = Vec::new();
        let mut from = (&mut self.from).take(LINE_MAX as u64 + 1);
        from.read_until(b'\n', &mut line).await.map_err(|_| Broken::Ended)?;
        serde_json::from_slice(&line).map_err(|_| Broken::Ended)
    }

    async fn make(&mut self, wanted: Vec<Wanted>) -> Result<Vec<Came>, CallError> {
        self.calls += wanted.len();
        let calls: Vec<Result<Call, String>> = wanted.into_iter().map(|one| admitted(self.scene, one)).collect();
        let meant: Vec<Call> = calls.iter().filter_map(|call| call.as_ref().ok().cloned()).collect();
        let back: &Back = self.scene.back();
        let mut outcomes = back.call_all(meant).await?.into_iter();
        let mut came = Vec::new();
        for call in calls {
            came.push(match call {
                Ok(_) => match outcomes.next() {
                    Some(outcome) => self.note(outcome),
                    None => Came { error: Some("it was not made: the call was halted".to_owned()), ..Came::default() },
                },
                Err(why) => Came { error: Some(why), ..Came::default() },
            });
        }
        Ok(came)
    }

    /// Notes where data came from, and says what the script is told.
    fn note(&mut self, outcome: Outcome) -> Came {
        let new: Vec<Label> = outcome.labels.iter().filter(|label| !self.labels.contains(label)).copied().collect();
        self.labels.extend(new);
        let room = WARNINGS_MAX.saturating_sub(self.warnings.len());
        self.warnings.extend(outcome.warnings.iter().take(room).map(|warning| format!("{}: {warning}", outcome.tool)));
        let error = outcome.error.as_ref().map(|error| format!("{}: {}", outcome.tool, error.message));
        Came {
            ok: outcome.success,
            // It is marked off once, as what this call gives.
            output: unwrapped(&outcome.output).into_owned(),
            data: outcome.data.unwrap_or_default(),
            truncated: outcome.truncated,
            error: error.or_else(|| (!outcome.success).then(|| format!("{}: it failed", outcome.tool))),
        }
    }

    /// Ends the host, and gives what is told.
    async fn end(self, said: Result<Said, Broken>) -> Result<Reply, CallError> {
        let Self { resident, calls, labels, warnings, .. } = self;
        let moment = if matches!(said, Err(Broken::Ended)) { LAST_MOMENT } else { Duration::ZERO };
        let why = resident.end(moment).await;
        let failed = |message: String| CallError::failed(message).hint("what it called before that has happened");
        let (printed, value, error) = match said {
            Ok(Said::Done { value, printed }) => (printed, value, None),
            Ok(Said::Failed { message, printed }) => {
                (printed, Value::Null, Some(failed(format!("the script failed: {message}"))))
            }
            Ok(Said::Calls(_)) | Err(Broken::Ended) => {
                (String::new(), Value::Null, Some(failed(format!("the script did not come to its end: {why}"))))
            }
            Err(Broken::Late) => {
                let message = format!("the script took more than {} s by itself", PATIENCE.as_secs());
                let error = CallError { kind: ErrorKind::Timeout, ..failed(message) };
                (String::new(), Value::Null, Some(error))
            }
            Err(Broken::Error(error)) => (String::new(), Value::Null, Some(error)),
        };
        let text = match &value {
            Value::Null => printed,
            Value::String(text) => format!("{printed}{text}"),
            value => format!("{printed}{}", serde_json::to_string_pretty(value).unwrap_or_default()),
        };
        let data = json!({"value": value, "calls": calls});
        Ok(Reply { warnings, labels, error, ..Reply::text(text).data(data) })
    }
}

/// The call that is meant, or why it is not made from here.
fn admitted(scene: &Scene, wanted: Wanted) -> Result<Call, String> {
    let call = scene.call().makes(crate::new_call_id(), wanted.tool.as_str(), wanted.args);
    let meant = crate::registry::unwrapped(call.clone());
    let name = scene.catalogue().registry.resolve(&meant).map(|meant| meant.entry.spec().name.clone());
    match name {
        Ok(name) if NOT_HERE.contains(&name.as_str()) => Err(format!("{name} cannot be called by a script")),
        // It may have an agent go on.
        Ok(name) if name.as_str() == "agent.control" && meant.args["action"] == "message" => {
            Err(format!("{name} with a message cannot be called by a script"))
        }
        // What nobody knows is told so by the path of every call.
        _ => Ok(call),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// What a program tries that got out of the script that it was to run. It prints what succeeded.
    const ESCAPE: &str = r#"
t() { name=$1; shift; if ("$@") > /dev/null 2>&1; then echo "$name"; fi; }
t ran true
t read cat PROJECT/secret
t listed test -e PROJECT/secret
t written bash -c 'echo x > PROJECT/new'
t removed rm PROJECT/secret
t state cat DATA/state
t home bash -c 'find HOME/ -maxdepth 1 -type f | grep .'
t users cat /etc/passwd
t temp bash -c 'echo x > /tmp/x && test -s /tmp/x'
t connected bash -c 'exec 3<>/dev/tcp/127.0.0.1/PORT'
t connected6 bash -c 'exec 3<>/dev/tcp/::1/PORT'
t resolved bash -c 'exec 3<>/dev/tcp/localhost/PORT'
t signalled kill -0 PID
t seen test -e /proc/PID/environ && cat /proc/PID/environ | grep -q .
t inherited bash -c 'test -n "$CARGO_PKG_NAME"'
t mounted mount -t tmpfs none /mnt
t unshared unshare -Ur true
"#;

    #[tokio::test]
    async fn whatever_a_host_becomes_it_can_do_nothing() {
        let near = std::env::current_exe().unwrap();
        let dir = tempfile::tempdir_in(near.parent().unwrap()).unwrap();
        let (project, data) = (dir.path().join("project"), dir.path().join("data"));
        for (place, file) in [(&project, "secret"), (&data, "state")] {
            std::fs::create_dir_all(place).unwrap();
            std::fs::write(place.join(file), "secret").unwrap();
        }
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let home = crate::confined::environment::real_home().unwrap_or_default();
        let code = ESCAPE
            .replace("PROJECT", &project.display().to_string())
            .replace("DATA", &data.display().to_string())
            .replace("HOME", &home.display().to_string())
            .replace("PORT", &listener.local_addr().unwrap().port().to_string())
            .replace("PID", &std::process::id().to_string());
        let terms = Terms { data_dir: data.clone(), ..Terms::default() };
        let workspace = Workspace::new(&project).unwrap().own(&data);
        let tried = |argv: Vec<OsString>| {
            let (settled, program) = held(&terms, &workspace, &Rules::default(), argv).unwrap();
            async {
                let (resident, pipes) = Resident::planned(settled.backend, settled.plan, program, ()).await.unwrap();
                drop(pipes.stdin);
                let (mut said, mut complaints) = (String::new(), String::new());
                std::fs::File::from(pipes.stdout).read_to_string(&mut said).unwrap();
                std::fs::File::from(pipes.stderr).read_to_string(&mut complaints).unwrap();
                resident.end(Duration::from_secs(5)).await;
                (said, complaints)
            }
        };
        let (said, complaints) = tried(vec!["/bin/bash".into(), "-c".into(), code.into()]).await;
        assert_eq!(said.lines().collect::<Vec<_>>(), ["ran"], "{complaints}");
        assert_eq!(std::fs::read_to_string(project.join("secret")).unwrap(), "secret");
        assert_eq!(std::fs::read_dir(&project).unwrap().count(), 1);
        // It may have a few processes. With more it is ended, as soon as somebody looks: many times a second.
        let many = "for n in $(seq 40); do sleep 60 & done; sleep 5; jobs -rp | wc -l";
        let (said, complaints) = tried(vec!["/bin/bash".into(), "-c".into(), many.into()]).await;
        let started: usize = said.trim().parse().unwrap_or(0);
        assert!(started < 40, "{started} {complaints}");
    }
}
