//! `haft confine`: any program under explicit permissions, as one would use any other sandbox. No store, no
//! configuration and no agent take part.

mod policy;
mod report;

use crate::cli::ConfineArgs;
use crate::style;
use haft_core::CallError;
use haft_runtime::confined::{self, Guard, Job, Ran, environment};
use haft_runtime::tool::Staging;
use haft_runtime::{new_call_id, undo};
use haft_sandbox::linux::signals;
use haft_sandbox::watch::{Hit, Watch, own};
use haft_sandbox::{Confinement, Level, Plan, Program, SandboxError, Stdio, Writes, backend, roots};
use policy::Policy;
use report::Report;
use std::io::IsTerminal;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// haft could not do its part.
const OWN_FAILURE: u8 = 125;
const NOT_STARTED: u8 = 126;
const NOT_FOUND: u8 = 127;
const TIME_UP: u8 = 124;
/// From being asked to end to being made to.
const GRACE: Duration = Duration::from_secs(2);
/// Passed on to the program, which is in a session of its own and would not get them.
const PASSED_ON: &[i32] = &[libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

/// Of these, what a program that shares the job gets by itself.
const TYPED: &[i32] = &[libc::SIGINT, libc::SIGQUIT];

/// Runs the program and passes its exit status on.
pub(super) fn run(args: &ConfineArgs) -> u8 {
    match confine(args) {
        Ok(code) => code,
        Err(error) => {
            style::error(&error.0);
            error.1
        }
    }
}

/// What went wrong, and the exit status that says so.
struct Failure(CallError, u8);

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let bad_usage = error.kind == haft_core::ErrorKind::InvalidInput;
        Self(error, if bad_usage { 2 } else { OWN_FAILURE })
    }
}

impl From<SandboxError> for Failure {
    fn from(error: SandboxError) -> Self {
        let code = match &error {
            SandboxError::Unclear(_) => 2,
            SandboxError::Unenforceable(_) | SandboxError::Step { .. } => OWN_FAILURE,
            SandboxError::Program { error, .. } if error.kind() == std::io::ErrorKind::NotFound => NOT_FOUND,
            SandboxError::Program { .. } => NOT_STARTED,
        };
        Self(confined::explain(&error), code)
    }
}

fn failed(what: &str) -> impl Fn(std::io::Error) -> Failure + '_ {
    move |error| Failure(CallError::failed(format!("{what}: {error}")), OWN_FAILURE)
}

fn confine(args: &ConfineArgs) -> Result<u8, Failure> {
    let wanted = Policy::of(args)?;
    let cwd = std::env::current_dir().map_err(failed("the working directory cannot be used"))?;
    let data = data_dir()?;
    let machine = confined::machine::known(&data);
    let direct = args.direct || !(machine.layers || args.dry_run);
    if direct && !args.direct && !wanted.write.is_empty() {
        style::warn("copy-on-write views do not work here, so it writes straight into the directories");
    }
    let staging = if wanted.write.is_empty() || direct { None } else { Some(stage(&data)?) };
    let (confinement, guard) = settle(wanted.clone(), &cwd, staging.as_deref())?;
    let backend = backend();
    let report_to = args.json.as_deref().map(|file| open_report(file, &confinement.write)).transpose()?;
    let plan = backend.plan(confinement)?;
    heed_requirement(&plan)?;
    let program = program(args, &wanted, cwd.clone())?;
    let came = signals(PASSED_ON).map_err(failed("signals cannot be passed on"))?;
    let how = Watch {
        signal: &|| next_signal(&came).filter(|signal| !(program.shares_job && TYPED.contains(signal))),
        wake: Some(&came),
        grace: GRACE,
        ..Watch::unattended(plan.bounds())
    };
    let job = Job { backend, plan: &plan, program: &program, staging, begun: &|| {} };
    let mut ran = confined::run(job, stdio()?, how)?;
    let shown = |path: &Path| shorten(path, &cwd);
    ran.take_git_refusals(&guard);
    let mut report = Report::of(&ran, args.dry_run, &shown);
    let code = finish(args, &mut ran, &guard, &mut report, &shown);
    report.tell();
    if let Some(file) = report_to {
        report.write(file).map_err(failed("the report cannot be written"))?;
    }
    code
}

/// Before anything runs: a report that cannot be written is no report, and one that the program could put a
/// link in place of is a way out.
fn open_report(file: &Path, write: &[PathBuf]) -> Result<std::fs::File, Failure> {
    if file == Path::new("-") {
        return Err(CallError::invalid("--json -: stdout belongs to the program; name a file").into());
    }
    let parent = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let real = parent.canonicalize().unwrap_or_else(|_| parent.to_owned());
    if write.iter().any(|root| real.starts_with(root)) {
        let why = format!("--json {}: the program may write there; name a file elsewhere", file.display());
        return Err(CallError::invalid(why).into());
    }
    let open = std::fs::File::create(file);
    open.map_err(|error| CallError::invalid(format!("--json {}: {error}", file.display())).into())
}

/// The user's own `confinement.require: full` holds here as well.
fn heed_requirement(plan: &Plan) -> Result<(), Failure> {
    if plan.standing.level == Level::Full {
        return Ok(());
    }
    let Ok(paths) = crate::config::Paths::from_env(Path::new("/")) else { return Ok(()) };
    let file = paths.user_config();
    let Ok(text) = std::fs::read(&file) else { return Ok(()) };
    let config = crate::config::parse(&text, &Arc::from(file.to_string_lossy()))
        .map_err(|error| CallError::invalid(error.to_string()))?;
    if config.confinement.require == Some(crate::config::Require::Full) {
        let why =
            format!("the configuration requires full confinement, and only `{}` is in force", plan.standing.level);
        return Err(SandboxError::Unenforceable(why).into());
    }
    Ok(())
}

/// Keeps or shows what was changed, and says what the exit status is.
fn finish(
    args: &ConfineArgs,
    ran: &mut Ran,
    guard: &Guard,
    report: &mut Report,
    shown: &dyn Fn(&Path) -> String,
) -> Result<u8, Failure> {
    let code = u8::try_from(ran.watched.end.code() & 0xff).unwrap_or(1);
    let code = if ran.watched.hit == Some(Hit::Wall) { TIME_UP } else { code };
    let changes = match ran.keepable(guard, shown) {
        Ok(changes) => changes,
        Err(error) => {
            report.refuse(&error.message);
            return Ok(if code == 0 { OWN_FAILURE } else { code });
        }
    };
    if let (Some(hit), true) = (ran.watched.hit, ran.diffed.is_some()) {
        report.refuse(&format!("it reached its limit of {}; nothing was kept", hit.noun()));
        return Ok(if code == 0 { OWN_FAILURE } else { code });
    }
    if args.dry_run {
        report.diff = Some(haft_runtime::diff(&changes, shown));
        return Ok(code);
    }
    if let (false, Some(staging)) = (changes.is_empty(), &ran.staging) {
        undo::loose::carry_out(staging.path(), &changes, shown)?;
    }
    // The rest is kept; a script has to notice that it is not all.
    Ok(if code == 0 && !ran.git_refused.is_empty() { OWN_FAILURE } else { code })
}

fn settle(wanted: Policy, cwd: &Path, staging: Option<&Staging>) -> Result<(Confinement, Guard), Failure> {
    let named: Vec<PathBuf> = wanted.write.iter().map(|root| cwd.join(root)).collect();
    let (write, granted) = confined::guard::split(&named);
    let writes = staging.map_or(Writes::Direct, |staging| Writes::Layered(staging.path().to_owned()));
    let confinement = Confinement {
        read: wanted.read,
        write,
        protect: wanted.protect,
        hide: own_state().into_iter().filter(|dir| dir.is_dir()).collect(),
        seal: Vec::new(),
        stand_in: Vec::new(),
        passing: Vec::new(),
        lent: Vec::new(),
        network: wanted.network,
        writes,
        bounds: wanted.bounds,
    };
    let mut confinement = roots::resolve(confinement, cwd)?;
    let guard = Guard {
        roots: confinement.write.clone(),
        granted: granted.iter().filter_map(|place| place.canonicalize().ok()).collect(),
        protected: std::mem::take(&mut confinement.protect),
        own: own_state(),
        home: environment::real_home(),
    };
    confinement.protect = guard.for_kernel(&confinement.writes);
    Ok((confinement, guard))
}

/// haft's own configuration, store and staging, wherever a root may include them.
fn own_state() -> Vec<PathBuf> {
    let Ok(paths) = crate::config::Paths::from_env(Path::new("/")) else { return Vec::new() };
    let real = |dir: &Path| dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    [paths.config_dir(), paths.data_dir()].into_iter().map(real).collect()
}

/// Where haft keeps its data; in memory if there is no such place.
fn data_dir() -> Result<PathBuf, Failure> {
    let dir = match crate::config::Paths::from_env(Path::new("/")) {
        Ok(paths) => paths.data_dir().to_owned(),
        Err(error) => return confined::terms::own_memory().ok_or_else(|| CallError::failed(error.to_string()).into()),
    };
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir);
    // A home that cannot be written is no reason not to confine.
    if made.is_err() || rustix::fs::access(&dir, rustix::fs::Access::WRITE_OK).is_err() {
        return Ok(confined::terms::own_memory().unwrap_or(dir));
    }
    Ok(dir)
}

/// A directory for the layers, beside haft's other data.
fn stage(data: &Path) -> Result<Arc<Staging>, Failure> {
    let base = confined::Terms::staging_base(data);
    Staging::create(&base, &new_call_id()).map_err(failed("there is no room for what the program writes"))
}

fn program(args: &ConfineArgs, wanted: &Policy, cwd: PathBuf) -> Result<Program, Failure> {
    let env = environment::make(&[], &wanted.secrets)
        .map_err(|missing| Failure(CallError::invalid(missing.to_string()), 2))?;
    // At a terminal, job control decides who may read what is typed.
    let shares_job = std::io::stdin().is_terminal();
    Ok(Program { argv: args.command.clone(), env, shares_job, cwd })
}

fn stdio() -> Result<Stdio, Failure> {
    let fail = failed("a standard descriptor cannot be passed on");
    Ok(Stdio {
        stdin: own(std::io::stdin()).map_err(&fail)?,
        stdout: own(std::io::stdout()).map_err(&fail)?,
        stderr: own(std::io::stderr()).map_err(&fail)?,
    })
}

/// A signal that came since the last look.
fn next_signal(came: &OwnedFd) -> Option<i32> {
    let mut record = [0; 128];
    let read = rustix::io::read(came, &mut record).ok()?;
    let number = record.get(..4).filter(|_| read >= 4)?;
    i32::try_from(u32::from_ne_bytes(number.try_into().ok()?)).ok()
}

fn shorten(path: &Path, cwd: &Path) -> String {
    let shown = path.strip_prefix(cwd).unwrap_or(path);
    haft_runtime::workspace::display(shown.as_os_str())
}
