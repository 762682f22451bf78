//! Changing a task: its words, its times, and where it stands.

use super::find::find;
use super::make::{clean, read, tags, title};
use super::{given, schedule};
use crate::store_error;
use haft_core::CallError;
use haft_core::outcome::Label;
use haft_core::schedule::{Missed, due};
use haft_store::Store;
use haft_store::tasks::{Priority, Task, TaskKind, TaskStatus};
use jiff::tz::TimeZone;
use serde::Deserialize;

/// What somebody wants to be otherwise. What is not said stays.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Edit {
    /// Where it stands, in anybody's words.
    pub status: Option<String>,
    /// How much it matters.
    pub priority: Option<String>,
    /// When it should be done; empty or `none`: nobody says.
    pub due: Option<String>,
    /// In a few words.
    pub title: Option<String>,
    /// In more; empty: none.
    pub description: Option<String>,
    /// All its tags.
    pub tags: Option<Vec<String>>,
    /// When it is done; empty or `none`: no more.
    pub schedule: Option<String>,
    /// In which zone that is meant.
    pub zone: Option<String>,
    /// What is done about times that were missed.
    pub missed: Option<String>,
    /// Whose it is to do.
    pub assignee: Option<String>,
    /// Whether it is to be run now, apart from its times.
    #[serde(skip)]
    pub run_now: bool,
    /// Where what whoever changes it has heard came from: its words may come from there.
    #[serde(skip)]
    pub labels: Vec<Label>,
}

/// What was changed.
#[derive(Debug, Clone, PartialEq)]
struct Changes {
    task: Task,
    status: Option<TaskStatus>,
}

/// Changes a task, by the beginning of its name, and gives it as it is then. Closing one closes what is below it; how many
/// that were is told beside it.
pub async fn edit(
    store: &Store,
    given: &str,
    wanted: Edit,
    (places, local): (&[String], &TimeZone),
    now_ms: i64,
) -> Result<(Task, usize), CallError> {
    let found = find(store, given, places).await?;
    let id = found.id.clone();
    let Changes { task, status } = changed(found, &wanted, local, now_ms)?;
    clean(&task)?;
    let replanned = wanted.schedule.is_some() || wanted.zone.is_some();
    let reopened = status == Some(TaskStatus::Pending);
    let edit = move |now: &mut Task| {
        now.about = task.about;
        now.promise = task.promise;
        now.kind = task.kind;
        now.standing.changed_ms = now_ms;
        if replanned || reopened || wanted.run_now {
            now.plan(task.standing.next_ms);
        }
        if let Some(status) = status.filter(|status| !matches!(status, TaskStatus::Done | TaskStatus::Cancelled)) {
            stand(now, status, now_ms);
        }
    };
    let edited = store.edit_task(&id, edit).await.map_err(store_error)?;
    let gone = || CallError::not_found(format!("task {id} is gone: somebody removed it meanwhile"));
    let edited = edited.ok_or_else(gone)?;
    let Some(closing @ (TaskStatus::Done | TaskStatus::Cancelled)) = status else { return Ok((edited, 0)) };
    let closed = store.close_task(&id, closing, now_ms).await.map_err(store_error)?;
    let task = store.task(&id).await.map_err(store_error)?.ok_or_else(gone)?;
    Ok((task, closed.saturating_sub(1)))
}

/// Where it stands from now on.
fn stand(task: &mut Task, status: TaskStatus, now_ms: i64) {
    if status == TaskStatus::Waiting {
        return task.hold();
    }
    task.status = status;
    task.standing.closed_ms = status.closed().then_some(now_ms);
    if status == TaskStatus::Failed {
        (task.standing.next_ms, task.standing.then_ms, task.standing.waits_for) = (None, None, None);
    }
}

/// The task as it should be, before anything is written.
fn changed(mut task: Task, wanted: &Edit, local: &TimeZone, now_ms: i64) -> Result<Changes, CallError> {
    let none = |text: &str| matches!(text.trim().to_lowercase().as_str(), "" | "none");
    let known = &mut task.promise.owner.labels;
    known.extend(wanted.labels.iter().copied());
    known.sort_unstable();
    known.dedup();
    if let Some(word) = &wanted.priority {
        let known = Priority::ALL.iter().map(|known| known.as_str());
        task.about.priority = read(Priority::parse(word), word, "priority", known)?;
    }
    if let Some(text) = &wanted.due {
        task.about.due_ms = if none(text) { None } else { Some(due(text, now_ms, local)?) };
    }
    if let Some(text) = &wanted.title {
        task.about.title = title(text)?;
    }
    if let Some(text) = &wanted.description {
        task.about.description = Some(text.clone()).filter(|text| !text.trim().is_empty());
    }
    if let Some(given) = &wanted.tags {
        task.about.tags = tags(given)?;
    }
    if let Some(word) = &wanted.missed {
        task.promise.missed =
            read(Missed::parse(word), word, "policy for missed runs", Missed::ALL.iter().map(|known| known.as_str()))?;
    }
    if let Some(who) = &wanted.assignee {
        task.promise.assignee = Some(who.clone()).filter(|who| !none(who));
    }
    let status = match wanted.status.as_deref() {
        Some(word) => {
            Some(read(TaskStatus::parse(word), word, "status", TaskStatus::ALL.iter().map(|known| known.as_str()))?)
        }
        None => None,
    };
    replan(&mut task, wanted, now_ms)?;
    if status == Some(TaskStatus::Pending) && (task.status.closed() || task.is_held()) {
        task.standing.next_ms = schedule(&task)?.and_then(|schedule| schedule.next(now_ms));
    }
    if wanted.run_now {
        super::does(&task)?;
        if task.standing.at_ms.is_some() {
            return Err(CallError::conflict(format!("task {} is under way already", task.id))
                .hint(format!("`haft task show {}` says how far it is", task.id)));
        }
        task.standing.next_ms = Some(now_ms);
    }
    Ok(Changes { task, status: status.or_else(|| wanted.run_now.then_some(TaskStatus::Pending)) })
}

/// Another schedule, or the same in another zone.
fn replan(task: &mut Task, wanted: &Edit, now_ms: i64) -> Result<(), CallError> {
    if wanted.schedule.is_none() && wanted.zone.is_none() {
        return Ok(());
    }
    if task.kind == TaskKind::Watch {
        return Err(CallError::invalid("how often a page is looked at is decided when the task is made")
            .hint("make another one with watch_interval_minutes"));
    }
    if let Some(name) = &wanted.zone {
        task.promise.zone = Some(name.clone()).filter(|name| !name.trim().is_empty());
    }
    if let Some(text) = &wanted.schedule {
        let none = matches!(text.trim().to_lowercase().as_str(), "" | "none");
        task.promise.schedule = (!none).then(|| text.clone());
        if none {
            task.promise.zone = None;
        }
    }
    task.promise.since_ms = now_ms;
    task.standing.next_ms = match &task.promise.schedule {
        Some(text) => given(text, task.promise.zone.as_deref(), now_ms)?.next(now_ms),
        None => None,
    };
    task.kind = match (task.kind, &task.promise.schedule) {
        (TaskKind::Manual, Some(_)) => TaskKind::Scheduled,
        (TaskKind::Scheduled, None) => TaskKind::Manual,
        (kind, _) => kind,
    };
    if task.kind == TaskKind::Scheduled && task.promise.spec.is_none() {
        // It would be run as whoever made it, with the words of whoever changed it.
        return Err(CallError::invalid(format!("task {} is for somebody to do, and cannot be given times", task.id))
            .hint("make a new one that says what is to be run"));
    }
    Ok(())
}
