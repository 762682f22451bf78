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
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};
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
/// How many lines may wait to be written; more are counted and left out.
const QUEUE: usize = 4096;
/// How long a process waits at its end until everything is written.
const FLUSH: Duration = Duration::from_secs(1);

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

    /// The layer that takes events, and what writes them. None if there can be no thread for it.
    pub(crate) fn start<S>(self) -> Option<(Box<dyn Layer<S> + Send + Sync>, LogWriter)>
    where
        S: Subscriber + for<'span> tracing_subscriber::registry::LookupSpan<'span>,
    {
        let (lines, queue) = sync_channel(QUEUE);
        let missed = Arc::<AtomicU64>::default();
        let output = LogOutput {
            file: self.file.map(RotatingFile::new),
            to_stderr: self.to_stderr,
            missed: Arc::clone(&missed),
            looked: Instant::now(),
        };
        if let Err(error) = std::thread::Builder::new().name("haft-log".to_owned()).spawn(move || output.serve(&queue))
        {
            style::warn(&format!("there is no operational log: {error}"));
            return None;
        }
        let log = EventLog { lines: lines.clone(), missed }.with_filter(EventFilter(self.filter)).boxed();
        Some((log, LogWriter(lines)))
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
    let said = said.unwrap_or(usual);
    let parsed = match said.split(',').find(|directive| !is_directive(directive.trim())) {
        Some(odd) => Err(format!("`{}` is neither a level nor PART=LEVEL", style::inert(odd))),
        None => said.parse::<Targets>().map_err(|error| error.to_string()),
    };
    parsed.unwrap_or_else(|error| {
        style::warn(&format!(
            "{VARIABLE} cannot be read, and `{usual}` is used: {error}. It is a list such as `info` or `warn,haft=debug`"
        ));
        usual.parse().unwrap_or_default()
    })
}

/// Whether a directive is a level, a part of the program with its level, or a part of haft. The parser takes any text for the
/// name of a part, so that a misspelt level would log nothing.
fn is_directive(directive: &str) -> bool {
    let is_part =
        |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':')) && !name.is_empty();
    match directive.split_once('=') {
        Some((part, level)) => is_part(part) && level.parse::<LevelFilter>().is_ok(),
        None => {
            directive.is_empty()
                || directive.parse::<LevelFilter>().is_ok()
                || is_part(directive) && directive.starts_with("haft")
        }
    }
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

/// What the writing thread is told.
enum LogMessage {
    /// A line to write.
    Line(String),
    /// To say when everything before this is written.
    Flush(SyncSender<()>),
}

/// Hands each event over as a line. It never waits: a disk or a terminal that does not answer must not hold up a call.
struct EventLog {
    lines: SyncSender<LogMessage>,
    missed: Arc<AtomicU64>,
}

impl<S: Subscriber> Layer<S> for EventLog {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if self.lines.try_send(LogMessage::Line(line::line(event))).is_err() {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The thread that writes, and that looks from time to time what is waited for.
struct LogOutput {
    file: Option<RotatingFile>,
    to_stderr: bool,
    missed: Arc<AtomicU64>,
    looked: Instant,
}

impl LogOutput {
    fn serve(mut self, queue: &Receiver<LogMessage>) {
        loop {
            match queue.recv_timeout(LOOK.saturating_sub(self.looked.elapsed())) {
                Ok(LogMessage::Line(line)) => self.write(&line),
                // Whoever asked may have stopped waiting.
                Ok(LogMessage::Flush(done)) => drop(done.try_send(())),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if self.looked.elapsed() >= LOOK {
                self.looked = Instant::now();
                waits::report_long_waits(LONG);
                let missed = self.missed.swap(0, Ordering::Relaxed);
                if missed > 0 {
                    tracing::warn!(missed, "events came faster than they could be written, and are not in this log");
                }
            }
        }
    }

    fn write(&mut self, line: &str) {
        if self.to_stderr {
            // Whoever closed it does not want to read it.
            let _ = std::io::stderr().lock().write_all(line.as_bytes());
        }
        if let Some(Err(error)) = self.file.as_mut().map(|file| file.write(line)) {
            style::warn(&format!("the operational log cannot be written: {error}; this is said once"));
        }
    }
}

/// Says when the process begins and ends, and lets it end only when that is written.
pub(crate) struct LogWriter(SyncSender<LogMessage>);

impl LogWriter {
    /// Begins. Events are collected already.
    pub(crate) fn begin(role: &'static str) {
        waits::watch();
        log_panics();
        tracing::info!(version = env!("CARGO_PKG_VERSION"), role, "the process begins");
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        tracing::info!("the process ends");
        let (done, flushed) = sync_channel(1);
        if self.0.try_send(LogMessage::Flush(done)).is_ok() {
            let _ = flushed.recv_timeout(FLUSH);
        }
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
