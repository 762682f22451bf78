//! One line about a run that is kept up to date, where somebody looks.

use crate::app::App;
use crate::live::Line;
use crate::style;
use haft_core::preview::inert;
use haft_runtime::work::drawn;
use haft_runtime::{Event, Halt};
use haft_store::work::{RunSeen, StepSeen};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often it is drawn.
const TICK: Duration = Duration::from_millis(250);
/// How often the run itself is looked at: steps are also skipped, and done by others.
const LOOK: Duration = Duration::from_secs(1);
/// How many running steps are named.
const NAMED: usize = 4;

/// The line, with what it is about.
pub(super) struct Bar {
    /// It.
    pub(super) line: Arc<Line>,
    /// Notes are for whoever reads them later as well.
    notes: bool,
}

/// What is known of the run.
struct Stand {
    begun: Instant,
    run: Option<RunSeen>,
    looked: Option<Instant>,
    running: BTreeSet<String>,
    /// What nobody is there for, as far as that was told already.
    unserved: BTreeSet<String>,
}

impl Bar {
    pub(super) fn new(app: &App) -> Self {
        Self { line: Arc::new(Line::new(app.json)), notes: !app.json }
    }

    /// Does some work, showing how far it is. Ctrl-C stops it.
    pub(super) async fn over<T>(&self, app: &App, work: impl Future<Output = T>, halt: &Halt) -> T {
        let mut events = app.haft.events().listen();
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut stand = Stand::new();
        let mut of = None;
        tokio::pin!(work);
        let done = loop {
            tokio::select! {
                done = &mut work => break done,
                Ok(event) = events.recv(), if self.notes => {
                    if let Event::Step { run, step, state, .. } = event {
                        of.get_or_insert(run);
                        stand.heard(step, &state);
                    }
                }
                _ = tick.tick(), if self.notes => {
                    if let Some(run) = of.as_ref().filter(|_| !self.line.is_hushed()) {
                        for note in stand.look(app, run).await {
                            style::note(&note);
                        }
                        self.line.draw(&stand.line());
                    }
                }
                Ok(()) = tokio::signal::ctrl_c() => halt.cancel(),
            }
        };
        self.line.draw("");
        done
    }
}

impl Stand {
    fn new() -> Self {
        let (running, unserved) = (BTreeSet::new(), BTreeSet::new());
        Self { begun: Instant::now(), run: None, looked: None, running, unserved }
    }

    fn heard(&mut self, step: String, state: &str) {
        if state == "running" {
            self.running.insert(step);
        } else {
            self.running.remove(&step);
        }
    }

    /// Looks at the run if that is due. Says for which steps nobody is there, once for each.
    async fn look(&mut self, app: &App, run: &str) -> Vec<String> {
        if self.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
            return Vec::new();
        }
        self.looked = Some(Instant::now());
        // A store that does not answer just now leaves the line as it was.
        self.run = app.store().run_seen(run).await.ok().flatten().or(self.run.take());
        let waiting = app.store().unserved(run).await.unwrap_or_default();
        let fresh: Vec<StepSeen> = waiting.into_iter().filter(|step| self.unserved.insert(step.id.clone())).collect();
        drawn::notes(&fresh).into_iter().collect()
    }

    fn line(&self) -> String {
        let (done, count) = self.run.as_ref().map_or((0, 0), |run| (run.count - run.unsettled, run.count));
        let seconds = self.begun.elapsed().as_secs();
        let mut line = format!("{done}/{count} steps, {}:{:02}", seconds / 60, seconds % 60);
        if !self.running.is_empty() {
            let named: Vec<String> = self.running.iter().take(NAMED).map(|step| inert(step)).collect();
            let more = self.running.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            line.push_str(&format!(", running {}{more}", named.join(", ")));
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_names_what_runs_and_counts_the_rest() {
        let mut stand = Stand::new();
        for step in ["a", "b", "c", "d", "e", "f"] {
            stand.heard(step.to_owned(), "running");
        }
        stand.heard("b".to_owned(), "done");
        assert_eq!(stand.line(), "0/0 steps, 0:00, running a, c, d, e and 1 more");
    }
}
