//! Manifests of the kind `command`: a program, held to what its manifest declares. No shell reads anything of it.

use super::Whose;
use super::made::{Made, inputs, reply, unfit, values};
use super::places::Ground;
use super::program::{self, Came, Order, STDIN_MAX, said};
use super::standing::Accepted;
use crate::scene::Scene;
use crate::secrets::Cut;
use crate::tool::Reply;
use crate::tools::running::{Stage, to_its_end};
use haft_core::CallError;
use haft_core::manifest::template::{Values, rendered};
use haft_core::manifest::{Command, Format, Manifest};
use haft_core::shape::detect;
use haft_sandbox::Program;
use haft_sandbox::roots::followed;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The most that is read as one value.
const JSON_MAX: usize = 8 << 20;

/// A command whose templates are filled in.
struct Filled {
    manifest: Arc<Manifest>,
    dir: PathBuf,
    whose: Whose,
    secrets: BTreeMap<String, String>,
    entrypoint: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
    stdin: Option<Vec<u8>>,
    cwd: Option<String>,
    stdout: Format,
    fine: Vec<i32>,
    timeout: Duration,
    pinned: Option<Arc<Accepted>>,
}

/// Runs it to its end.
pub(super) async fn run(made: &Made, command: &Command, scene: &Scene) -> Result<Reply, CallError> {
    let secrets = made.secrets(scene)?;
    let inputs = inputs(scene.args());
    let filled = fill(made, command, values(&inputs, &secrets))?;
    to_its_end(scene, move |stage| carry_out(stage, &filled)).await
}

fn fill(made: &Made, command: &Command, values: Values<'_>) -> Result<Filled, CallError> {
    let bad = |error| unfit(&error);
    // Everybody on the machine can read arguments, so that no secret is ever filled in there.
    let none = BTreeMap::new();
    let open = Values { inputs: values.inputs, secrets: &none };
    let args = open.arguments(&command.args).map_err(bad)?;
    if let Some(number) = args.iter().position(|arg| arg.contains('\0')) {
        return Err(CallError::invalid(format!("argument {} has a NUL in it, which no argument can hold", number + 1)));
    }
    let env = values.fill_map(&command.env).map_err(bad)?;
    let stdin = command.stdin.as_ref().map(|stdin| values.fill(stdin)).transpose().map_err(bad)?.flatten();
    let stdin = stdin.map(|value| rendered(&value).into_bytes());
    if stdin.as_ref().is_some_and(|stdin| stdin.len() > STDIN_MAX) {
        return Err(CallError::invalid(format!("its input is larger than {} MiB", STDIN_MAX >> 20)));
    }
    let cwd = command.cwd.as_ref().map(|cwd| open.fill(&Value::from(cwd.as_str()))).transpose().map_err(bad)?;
    Ok(Filled {
        manifest: made.shared(),
        dir: made.dir().to_owned(),
        whose: made.whose(),
        secrets: values.secrets.clone(),
        entrypoint: command.entrypoint.clone(),
        args,
        env: env.into_iter().map(|(name, value)| (name, rendered(&value))).collect(),
        stdin,
        cwd: cwd.flatten().map(|cwd| rendered(&cwd)),
        stdout: command.stdout.map_or(made.manifest().outputs.format, |stdout| stdout.format),
        fine: command.exit_codes_ok.clone(),
        timeout: program::timeout(made),
        pinned: made.pinned(),
    })
}

fn carry_out(stage: &Stage, filled: &Filled) -> Result<Reply, CallError> {
    let permissions = &filled.manifest.permissions;
    let ground = Ground::of(&stage.scene, (&filled.dir, filled.whose), permissions);
    let mut entry = ground.entry(&filled.entrypoint)?;
    entry.made_of.extend(followed(&filled.dir));
    let argv = std::iter::once(entry.path.into()).chain(filled.args.iter().map(Into::into)).collect();
    let order = Order {
        permissions,
        made_of: &entry.made_of,
        program: Program {
            argv,
            env: program::environment(stage.scene.workspace().project(), &filled.secrets, &filled.env)?,
            shares_job: false,
            cwd: ground.start(filled.cwd.as_deref())?,
        },
        stdin: filled.stdin.as_deref(),
        timeout: filled.timeout,
        memory: None,
        fine: &filled.fine,
        pinned: filled.pinned.clone(),
    };
    let came = program::run(stage, order)?;
    Ok(told(stage, filled, came))
}

/// What it printed and how it ended, as a reply.
fn told(stage: &Stage, filled: &Filled, came: Came) -> Reply {
    let Came { kept, ending, mut stdout, stderr, ended } = came;
    let used = stage.scene.used();
    used.mask_bytes(&mut stdout, Cut::back(ended));
    let stderr = stderr.masked(used, ended);
    let complaint = said(&stderr);
    let mut warnings = ending.warnings;
    let (mut reply, odd) = match (filled.stdout, ending.error.is_some()) {
        (Format::Json, false) => match parsed(&stdout) {
            Ok(value) => (reply(filled.manifest.outputs.format, lossy(&stdout), Some(value)), None),
            Err(error) => (Reply::text(lossy(&stdout)), Some(error)),
        },
        _ => (Reply::text(shown(stage, filled, &stdout)), None),
    };
    let failed = ending.error.map(|mut error| {
        if error.kind == haft_core::ErrorKind::Failed {
            if !complaint.is_empty() {
                error.message = format!("{}: {complaint}", error.message);
            }
            let stderr = String::from_utf8_lossy(&stderr);
            error.details = Some(json!({"exit_code": ending.exit_code, "signal": ending.signal, "stderr": stderr}));
        }
        error
    });
    if failed.is_none() && !complaint.is_empty() {
        warnings.push(format!("stderr: {complaint}"));
    }
    reply.error = failed.or(odd);
    Reply { changes: kept.changes, staging: kept.staging, warnings, ..reply }
}

/// What was printed as a value.
fn parsed(stdout: &[u8]) -> Result<Value, CallError> {
    if stdout.len() > JSON_MAX {
        return Err(CallError::failed(format!(
            "it printed more than {} MiB where one JSON value is read",
            JSON_MAX >> 20
        ))
        .hint("print less, or declare stdout.format: text"));
    }
    serde_json::from_slice(stdout).map_err(|error| {
        let what = if stdout.iter().all(u8::is_ascii_whitespace) { "nothing".to_owned() } else { said(stdout) };
        CallError::failed(format!("what it printed is no JSON ({error}): {what}"))
            .hint("print one JSON value and nothing else to stdout, or declare stdout.format: text")
    })
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What was printed as text; of what is none, where it is kept.
fn shown(stage: &Stage, filled: &Filled, stdout: &[u8]) -> String {
    let Some(kind) = detect(&stdout[..stdout.len().min(512)]) else { return lossy(stdout) };
    let file = stage.scene.terms().data_dir.join("outputs").join(format!("{}.stdout.bin", stage.scene.call().id));
    // Secrets cannot be masked in what is no text.
    let kept = filled.secrets.is_empty() && crate::output::keep(&file, stdout).is_ok();
    let kept = if kept { format!(", kept in {}", file.display()) } else { String::new() };
    format!("[stdout is not text: {}, {} bytes{kept}]", kind.name, stdout.len())
}
