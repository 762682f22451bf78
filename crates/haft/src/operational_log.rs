//! The operational log: what a process does and waits for, one event a line, for whoever finds it stuck. It is no audit log:
//! it is bounded, nothing rests on it, and events name calls, tools and programs, but no arguments, bodies or results.
//!
//! `haft serve`, `haft worker` and `haft mcp` write it to a file that only its owner can read. Every command writes it to
//! stderr with `--verbose` or `HAFT_LOG`. What looks like a secret is masked as in the audit log.

mod line;
mod rotation;

use crate::cli::{Cli, Command};
use crate::config::Paths;
use crate::style;
use haft_store::waits;
use rotation::RotatingFile;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, Filter, Layer};

/// The variable that says what is logged, in the syntax of `RUST_LOG`.
pub(crate) const VARIABLE: &str = "HAFT_LOG";
/// What is logged unless somebody says otherwise.
const USUAL: &str = "warn,haft=info";
/// The same with `--verbose`.
const VERBOSE: &str = "warn,haft=debug";
/// How often waits are looked at, and how long one takes before it is named.
const LOOK: Duration = Duration::from_secs(5);
const LONG: Duration = Duration::from_secs(10);

/// Where a process logs, and what.
pub(crate) struct LogPlan {
    role: &'static str,
    filter: Targets,
    file: Option<PathBuf>,
    to_stderr: bool,
}

impl LogPlan {
    /// What the command line and the environment ask for. None if nothing is to be logged.
    pub(crate) fn of(cli: &Cli) -> Option<Self> {
        let said = std::env::var(VARIABLE).ok().filter(|said| !said.trim().is_empty());
        let verbose = cli.common.verbose;
        let (role, stays) = match &cli.command {
            Command::Serve(_) => ("serve", true),
            Command::Worker(args) if args.action.is_none() => ("worker", true),
            Command::Mcp(args) if args.action.is_none() => ("mcp", true),
            Command::Tui(_) => ("tui", false),
            // Nobody reads what these print, or a program takes it for something else.
            Command::Keep | Command::Script => return None,
            _ => ("command", false),
        };
        let has_screen = role == "tui";
        let asked = verbose || said.is_some();
        if !stays && !asked {
            return None;
        }
        let filter = filter(said.as_deref(), verbose);
        let file = if stays || has_screen { place() } else { None };
        // Lines of a log would destroy a screen.
        let to_stderr = !has_screen && (verbose || (asked && !stays));
        Some(Self { role, filter, file, to_stderr })
    }

    /// What the process is there for.
    pub(crate) fn role(&self) -> &'static str {
        self.role
    }

    /// The layer that writes.
    pub(crate) fn layer<S>(self) -> Box<dyn Layer<S> + Send + Sync>
    where
        S: Subscriber + for<'span> tracing_subscriber::registry::LookupSpan<'span>,
    {
        let file = self.file.map(|path| Mutex::new(RotatingFile::new(path)));
        EventLog { file, to_stderr: self.to_stderr }.with_filter(EventFilter(self.filter)).boxed()
    }
}

/// Where the operational log of this user is.
pub(crate) fn file(data_dir: &Path) -> PathBuf {
    data_dir.join("log").join("haft.log")
}

/// How much room it takes at the most, for people to read.
pub(crate) fn bound() -> String {
    format!("at most {} files of {} MiB", rotation::FILES, rotation::FILE_MAX >> 20)
}

fn place() -> Option<PathBuf> {
    match Paths::from_env(Path::new("/")) {
        Ok(paths) => Some(file(paths.data_dir())),
        Err(error) => {
            style::warn(&format!("there is no operational log: {error}"));
            None
        }
    }
}

/// What is logged. A filter that cannot be read must not keep anybody from working.
fn filter(said: Option<&str>, verbose: bool) -> Targets {
    let usual = if verbose { VERBOSE } else { USUAL };
    let parsed = said.unwrap_or(usual).parse::<Targets>();
    parsed.unwrap_or_else(|error| {
        style::warn(&format!(
            "{VARIABLE} cannot be read, and `{usual}` is used: {error}. It is a list such as `info` or `warn,haft=debug`"
        ));
        usual.parse().unwrap_or_default()
    })
}

/// Events alone: spans are for a collector, and cost nothing where none is.
struct EventFilter(Targets);

impl<S> Filter<S> for EventFilter {
    fn enabled(&self, about: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        about.is_event() && self.0.would_enable(about.target(), about.level())
    }

    fn callsite_enabled(&self, about: &'static Metadata<'static>) -> Interest {
        let enabled = about.is_event() && self.0.would_enable(about.target(), about.level());
        if enabled { Interest::always() } else { Interest::never() }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Filter::<S>::max_level_hint(&self.0)
    }
}

/// Writes each event as a line.
struct EventLog {
    file: Option<Mutex<RotatingFile>>,
    to_stderr: bool,
}

impl<S: Subscriber> Layer<S> for EventLog {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let line = line::line(event);
        if self.to_stderr {
            // Whoever closed it does not want to read it.
            let _ = std::io::stderr().lock().write_all(line.as_bytes());
        }
        let Some(file) = &self.file else { return };
        if let Err(error) = file.lock().unwrap_or_else(PoisonError::into_inner).write(&line) {
            style::warn(&format!("the operational log cannot be written: {error}; this is said once"));
        }
    }
}

/// Names long waits as long as it lives, and says when the process begins and ends.
pub(crate) struct LogWatch {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl LogWatch {
    /// Begins.
    pub(crate) fn start(role: &'static str) -> Self {
        waits::watch();
        log_panics();
        tracing::info!(version = env!("CARGO_PKG_VERSION"), role, "the process begins");
        let (end, ended) = channel();
        let watch = move || {
            while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                waits::report_long_waits(LONG);
            }
        };
        // Without a thread, waits are not named; everything else is logged.
        let thread = std::thread::Builder::new().name("haft-log".to_owned()).spawn(watch).ok();
        Self { end: Some(end), thread }
    }
}

impl Drop for LogWatch {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        tracing::info!("the process ends");
    }
}

/// A panic is logged before it is printed as always.
fn log_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        tracing::error!(panic = %info, "a thread panicked");
        usual(info);
    }));
}
