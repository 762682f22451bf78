//! `haft worker`: does steps until it is told to stop.

use crate::app::{App, Failure, Threads};
use crate::cli::{Common, WorkerAction, WorkerArgs};
use crate::style::{self, CARE, FAINT, GOOD, NAME, paint};
use crate::time;
use haft_core::CallError;
use haft_core::preview::inert;
use haft_runtime::work::Until;
use haft_runtime::{Event, Halt, Nobody};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

/// Works, or says who does.
pub(super) fn run(common: &Common, args: &WorkerArgs) -> Result<u8, Failure> {
    if let Some(WorkerAction::List) = args.action {
        return list(&App::open_to_look_back(common)?);
    }
    if let Some(odd) = args.label.iter().find(|label| label.is_empty() || label.contains(',')) {
        return Err(CallError::invalid(format!("`{}` is no label", inert(odd)))
            .hint("for example gpu or region=eu")
            .into());
    }
    let app = App::open_to_serve(common, Threads::Many)?;
    let mut worker = app.haft.worker(args.slots);
    worker.labels.clone_from(&args.label);
    if let Some(root) = &args.for_root {
        worker.root.clone_from(root);
    }
    app.block_on(async {
        let halt = Halt::new();
        let tasks = app.haft.scheduler(&worker.root);
        // Whoever works also starts what is due.
        let work = async { tokio::join!(app.haft.work(&worker, &Until::Told, &Nobody, &halt), tasks.run(&halt)).0 };
        tokio::pin!(work);
        let fail = |error: std::io::Error| CallError::internal(format!("signals cannot be heard: {error}"));
        let (mut end, mut int) =
            (signal(SignalKind::terminate()).map_err(fail)?, signal(SignalKind::interrupt()).map_err(fail)?);
        // Whoever reads this may send a signal at once.
        if app.json {
            style::json(
                &json!({"worker": worker.id, "root": worker.root, "labels": worker.labels, "slots": worker.slots}),
            );
        } else {
            style::note(&format!(
                "worker {} does the steps of {}; Ctrl-C lets it finish what it has",
                worker.id, worker.root
            ));
        }
        let mut events = app.haft.events().listen();
        let mut told = 0;
        loop {
            tokio::select! {
                over = &mut work => break over.map(drop).map_err(Failure::from),
                Ok(event) = events.recv() => say(&app, &event),
                () = async { tokio::select! { _ = end.recv() => {}, _ = int.recv() => {} } } => {
                    told += 1;
                    halt.cancel();
                    if told > 1 {
                        // Whoever says it twice does not want to wait: the leases run out, and others go on.
                        break Ok(());
                    }
                    style::note("finishing what has begun; once more ends it at once");
                }
            }
        }
    })?;
    app.block_on(app.haft.flush())?;
    Ok(0)
}

fn say(app: &App, event: &Event) {
    let Event::Step { run, step, state, .. } = event else { return };
    if app.json {
        style::json(&json!({"run": run, "step": step, "state": state}));
    } else {
        style::note(&paint(FAINT, format!("{run} {} {state}", inert(step))));
    }
}

fn list(app: &App) -> Result<u8, Failure> {
    let workers = app.block_on(app.store().workers())?;
    if app.json {
        style::json(&workers);
        return Ok(0);
    }
    if workers.is_empty() {
        style::note("no worker was seen in the last day; `haft worker` starts one, and `haft serve` has one in it");
    }
    for worker in workers {
        let state = if worker.state == "working" { paint(GOOD, &worker.state) } else { paint(CARE, &worker.state) };
        let labels = if worker.labels.is_empty() { String::new() } else { format!("  [{}]", worker.labels.join(", ")) };
        let seen = paint(FAINT, format!("seen {}", time::shown(worker.seen_ms)));
        style::out(&format!(
            "{}  {state}  {}/{} steps{labels}  {}:{}  {}  {seen}",
            paint(NAME, &worker.id),
            worker.busy,
            worker.slots,
            inert(&worker.host),
            worker.pid,
            inert(&worker.root)
        ));
    }
    Ok(0)
}
