//! Finding tasks: by the beginning of a name, and by what they are about.

use super::make::{place, read};
use crate::store_error;
use haft_core::CallError;
use haft_core::preview::{cut, inert};
use haft_core::schedule::Window;
use haft_store::Store;
use haft_store::tasks::{Priority, Task, TaskFilter, TaskStatus};
use jiff::tz::TimeZone;
use serde::Deserialize;

/// How many are shown where nobody says otherwise.
const LIMIT: u32 = 20;
/// How many names are told of those that begin alike.
const ALIKE: usize = 10;

/// Where somebody in a project finds tasks: there, and among the user's own.
pub(super) fn places(root: &str) -> Vec<String> {
    vec![root.to_owned(), String::new()]
}

/// The task that is meant by a name, or by the beginning of one, in these places; none means everywhere.
pub async fn find(store: &Store, given: &str, places: &[String]) -> Result<Task, CallError> {
    let name = given.trim().trim_start_matches('#').to_lowercase();
    let here = |task: &Task| places.is_empty() || places.contains(&task.place);
    let mut found = store.tasks_named(&name, 200).await.map_err(store_error)?;
    found.retain(here);
    if let Some(exact) = found.iter().position(|task| task.id == name) {
        return Ok(found.swap_remove(exact));
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(CallError::not_found(format!("there is no task `{}`", inert(given)))
            .hint("task.list (`haft task list`) shows those there are")),
        many => {
            let lines: Vec<String> = found
                .iter()
                .take(ALIKE)
                .map(|task| format!("{} {}", task.id, cut(&inert(&task.about.title), 60)))
                .collect();
            let more = if many > ALIKE { format!("\n… and {} more", many - ALIKE) } else { String::new() };
            let why = format!("{many} tasks begin with `{}`:\n{}{more}", inert(given), lines.join("\n"));
            Err(CallError::conflict(why).hint("write more of the name"))
        }
    }
}

/// Which tasks somebody asks for.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Query {
    /// `project`, `user`, or without one both.
    pub scope: Option<String>,
    /// A status in anybody's words; `all` for closed ones, too.
    pub status: Option<String>,
    /// `today`, `week` or `overdue`.
    pub due: Option<String>,
    /// A tag.
    pub tag: Option<String>,
    /// Words.
    pub text: Option<String>,
    /// Parts of this task.
    pub parent: Option<String>,
    /// As important.
    pub priority: Option<String>,
    /// How many.
    pub limit: Option<u32>,
}

/// The tasks that somebody in this project asks for; without one, everywhere.
pub async fn list(
    store: &Store,
    query: Query,
    root: Option<&str>,
    zone: &TimeZone,
    now_ms: i64,
) -> Result<Vec<Task>, CallError> {
    let places = match (&query.scope, root) {
        (Some(scope), Some(root)) => vec![place(Some(scope), root)?],
        (None, Some(root)) => places(root),
        (Some(scope), None) => vec![place(Some(scope), "")?],
        (None, None) => Vec::new(),
    };
    let all = query.status.as_deref().is_some_and(|word| word.trim().eq_ignore_ascii_case("all"));
    let status = match query.status.as_deref().filter(|_| !all) {
        Some(word) => {
            Some(read(TaskStatus::parse(word), word, "status", TaskStatus::ALL.iter().map(|known| known.as_str()))?)
        }
        None => None,
    };
    let window = match query.due.as_deref() {
        Some(word) => Some(read(Window::parse(word), word, "span of time", ["today", "week", "overdue"].into_iter())?),
        None => None,
    };
    let priority = match query.priority.as_deref() {
        Some(word) => {
            Some(read(Priority::parse(word), word, "priority", Priority::ALL.iter().map(|known| known.as_str()))?)
        }
        None => None,
    };
    let parent = match &query.parent {
        Some(given) => Some(find(store, given, &places).await?.id),
        None => None,
    };
    let filter = TaskFilter {
        status,
        closed: all,
        due: window.map(|window| window.bounds(now_ms, zone)),
        tag: query.tag,
        text: query.text,
        parent,
        priority,
        limit: query.limit.unwrap_or(LIMIT).clamp(1, 1_000),
        places,
    };
    store.tasks(filter).await.map_err(store_error)
}
