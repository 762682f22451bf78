//! `haft store`: where it is, whether it is whole, and how it is taken elsewhere.

use crate::app::{Failure, Ground};
use crate::cli::{Common, StoreAction};
use crate::input::duration_ms;
use crate::started_by::{command_line, require_user};
use crate::style::{self, BAD, FAINT, GOOD, paint};
use haft_core::CallError;
use haft_runtime::now_ms;
use haft_store::{CopyError, Pruned, Store};
use serde_json::json;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// How often progress is shown.
const SHOWN: Duration = Duration::from_millis(200);

/// Does one thing with the store.
pub(super) fn run(common: &Common, action: Option<StoreAction>) -> Result<u8, Failure> {
    let ground = Ground::find_to_look_back(common)?;
    match action.unwrap_or(StoreAction::Path) {
        StoreAction::Path => path(common, &ground),
        StoreAction::Migrate => migrate(common, &ground.layers.store()?),
        StoreAction::Check => check(common, &ground.store()?),
        StoreAction::Copy { from, to } => copy(common, &ground, &from, &to),
        StoreAction::Prune { older_than, dry_run } => prune(common, &ground, &older_than, dry_run),
    }
}

fn path(common: &Common, ground: &Ground) -> Result<u8, Failure> {
    let place = ground.layers.store()?;
    let (shown, format) = (haft_store::shown(&place), haft_store::format_of(&place)?);
    if common.json() {
        style::json(&json!({ "store": shown, "format": format, "data": ground.paths.data_dir() }));
        return Ok(0);
    }
    let what = format.map_or_else(|| "not there yet".to_owned(), |format| format!("format {format}"));
    style::out(&format!("{} {}", style::inert(&shown.display().to_string()), paint(FAINT, format!("({what})"))));
    Ok(0)
}

fn migrate(common: &Common, place: &Path) -> Result<u8, Failure> {
    let (from, to) = haft_store::bring_up_to_date(place)?;
    let shown = haft_store::shown(place);
    if common.json() {
        style::json(&json!({ "store": shown, "from": from, "to": to }));
        return Ok(0);
    }
    let said = match from {
        0 => format!("made, format {to}"),
        same if same == to => format!("up to date, format {to}"),
        older => format!("brought from format {older} to {to}"),
    };
    style::out(&format!("{} {}", paint(GOOD, said), style::inert(&shown.display().to_string())));
    Ok(0)
}

fn check(common: &Common, store: &Store) -> Result<u8, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| CallError::internal(format!("the async runtime cannot start: {error}")))?;
    let (about, found) = (runtime.block_on(store.about())?, runtime.block_on(store.check())?);
    let sound = found.problems.is_empty();
    if common.json() {
        let tables: serde_json::Map<_, _> =
            found.tables.iter().map(|(name, rows)| (name.clone(), json!(rows))).collect();
        style::json(&json!({
            "ok": sound, "store": store.path(), "database": about.database, "format": about.format,
            "head": found.head, "tables": tables, "problems": found.problems,
        }));
        return Ok(u8::from(!sound));
    }
    let rows: i64 = found.tables.iter().map(|(_, rows)| rows).sum();
    style::out(&format!(
        "{}  {}, format {}, {} tables, {rows} rows",
        style::inert(&store.path().display().to_string()),
        about.database,
        about.format,
        found.tables.len(),
    ));
    if let Some(head) = found.head {
        style::out(&format!(
            "{} {} records, head {}:{}",
            paint(GOOD, "the chain holds:"),
            head.seq,
            head.seq,
            head.hash
        ));
    }
    found
        .problems
        .iter()
        .for_each(|problem| style::out(&format!("{} {}", paint(BAD, "wrong:"), style::inert(problem))));
    Ok(u8::from(!sound))
}

fn copy(common: &Common, ground: &Ground, from: &str, to: &str) -> Result<u8, Failure> {
    let (from, to) = (ground.layers.place(from, "FROM")?, ground.layers.place(to, "TO")?);
    let mut shown = Instant::now();
    let watched = !common.json() && std::io::stderr().is_terminal();
    let mut progress = |table: &str, done: i64, all: i64| {
        if watched && (shown.elapsed() > SHOWN || done == all) {
            shown = Instant::now();
            let _ = write!(std::io::stderr(), "\r\x1b[K{table}  {done} of {all}");
        }
    };
    let done = haft_store::copy(&from, &to, &mut progress);
    if watched {
        let _ = write!(std::io::stderr(), "\r\x1b[K");
    }
    let copied = done.map_err(failed)?;
    let rows: i64 = copied.tables.iter().map(|(_, rows)| rows).sum();
    if common.json() {
        let tables: serde_json::Map<_, _> =
            copied.tables.iter().map(|(name, rows)| (name.clone(), json!(rows))).collect();
        style::json(
            &json!({ "from": haft_store::shown(&from), "to": haft_store::shown(&to), "tables": tables, "head": copied.head }),
        );
        return Ok(0);
    }
    let head = copied.head;
    style::out(&format!(
        "{} {rows} rows of {} tables; the log ends at {}:{} in both",
        paint(GOOD, "copied"),
        copied.tables.len(),
        head.seq,
        head.hash,
    ));
    style::note(
        "what undoes earlier calls, and their full outputs, are files of this machine's and stay where they are",
    );
    Ok(0)
}

/// Forgets what is over for long, or says how much that would be.
fn prune(common: &Common, ground: &Ground, older_than: &str, dry_run: bool) -> Result<u8, Failure> {
    let age = duration_ms(older_than).ok_or_else(|| {
        CallError::invalid(format!("`{}` is not a length of time", style::inert(older_than)))
            .hint("write 30d, 12h, 5m or 30s")
    })?;
    let (store, before) = (ground.store()?, now_ms().saturating_sub(age));
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| CallError::internal(format!("the async runtime cannot start: {error}")))?;
    let found = if dry_run {
        runtime.block_on(store.prunable(before))?
    } else {
        require_user()?;
        runtime.block_on(store.prune(before, &command_line().to_string()))?
    };
    if common.json() {
        let mut value = serde_json::to_value(found).unwrap_or_default();
        value["dry_run"] = dry_run.into();
        value["before_ms"] = before.into();
        style::json(&value);
        return Ok(0);
    }
    let Pruned { runs, steps, task_runs, workers, memory_versions } = found;
    let said = if dry_run { "would forget" } else { "forgot" };
    style::out(&format!(
        "{} {runs} runs with {steps} steps, {task_runs} runs of tasks, {workers} workers, {memory_versions} earlier states of \
         memory",
        paint(GOOD, said),
    ));
    Ok(0)
}

fn failed(error: CopyError) -> Failure {
    match error {
        CopyError::Store(error) => Failure::from(error),
        CopyError::Broken { .. } | CopyError::Differs { .. } => {
            CallError::failed(error.to_string()).hint(error.hint()).into()
        }
        CopyError::Older { .. } | CopyError::Full { .. } => {
            CallError::invalid(error.to_string()).hint(error.hint()).into()
        }
    }
}
