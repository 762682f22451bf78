//! Making a task: from what somebody said to what is kept.

use super::find::{find, places};
use super::{given, step};
use crate::{chance, store_error};
use haft_core::outcome::Label;
use haft_core::policy::Autonomy;
use haft_core::preview::inert;
use haft_core::record::secrets_in;
use haft_core::schedule::{Missed, due};
use haft_core::secret::tells_secret;
use haft_core::web::Target;
use haft_core::{CallError, Caller, ErrorKind, ToolName};
use haft_store::Store;
use haft_store::tasks::{About, Owner, Priority, Promise, Standing, Task, TaskKind, TaskStatus};
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::{Value, json};

/// A page is not looked at more often.
pub(crate) const WATCH_FLOOR_MINUTES: f64 = 5.0;
/// Nor less often: a month.
const WATCH_CEILING_MINUTES: f64 = 44_640.0;
/// Where nobody says otherwise, once an hour.
const WATCH_MINUTES: f64 = 60.0;
/// How often something is tried again where nobody says otherwise.
const RETRIES: u32 = 3;
/// How many tasks of one place may do something by themselves.
const LIVE_MAX: u32 = 1_000;
/// How many tasks of one place may be open at once, before an agent makes another.
const OPEN_MAX: u32 = 10_000;
/// The same for a person.
const OPEN_MAX_PERSON: u32 = 1_000_000;
/// How deep tasks may be in one another.
const DEPTH_MAX: usize = 8;
/// How long what is done may be, as text.
const SPEC_MAX: usize = 64 << 10;
/// Names by which a task is handed over to be run at once.
const AGENTS: &[&str] = &["haft", "agent", "nodyn"];

/// What somebody wants to be kept.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Wanted {
    /// In a few words.
    pub title: String,
    /// In more.
    pub description: Option<String>,
    /// How much it matters.
    pub priority: Option<String>,
    /// When it should be done.
    pub due: Option<String>,
    /// `project` or `user`.
    pub scope: Option<String>,
    /// Words by which it is found.
    pub tags: Vec<String>,
    /// The task that it is a part of, by the beginning of its name.
    pub parent: Option<String>,
    /// Whose it is to do.
    pub assignee: Option<String>,
    /// When it is done.
    pub schedule: Option<String>,
    /// In which zone that is meant.
    pub zone: Option<String>,
    /// A page to look at.
    pub watch_url: Option<String>,
    /// How often.
    pub watch_interval_minutes: Option<f64>,
    /// A stored pipeline to run.
    pub pipeline: Option<String>,
    /// What it is given.
    pub inputs: Option<Value>,
    /// A tool to call.
    pub tool: Option<String>,
    /// With which arguments.
    pub args: Option<Value>,
    /// Words for an agent.
    pub prompt: Option<String>,
    /// What is done about times that were missed.
    pub missed: Option<String>,
    /// How often it is tried again.
    pub retries: Option<u32>,
    /// How much its calls may do by themselves, where that is less than usual.
    pub autonomy: Option<String>,
}

/// Who makes a task, and where.
#[derive(Debug, Clone)]
pub struct Who {
    /// The project.
    pub root: String,
    /// On whose behalf.
    pub caller: Caller,
    /// Where they are: what `tomorrow` means.
    pub zone: TimeZone,
    /// Whether it is a person at the command line, and not an agent.
    pub person: bool,
    /// Where what they have heard came from. The task's calls are decided as if they had heard it, too.
    pub labels: Vec<Label>,
}

impl Who {
    /// Whether they have heard what looks like an attack. Then each call of the task is asked about.
    fn wary(&self) -> bool {
        self.labels.contains(&Label::Flagged)
    }
}

/// Makes a task and keeps it. What was understood differently than it was said is told beside it.
pub async fn make(store: &Store, wanted: Wanted, who: &Who, now_ms: i64) -> Result<(Task, Vec<String>), CallError> {
    let mut notes = Vec::new();
    let parent = match &wanted.parent {
        Some(given) => Some(room_below(store, find(store, given, &places(&who.root)).await?).await?),
        None => None,
    };
    let task = drafted(&wanted, who, parent, now_ms, &mut notes)?;
    clean(&task)?;
    let most = if who.person { OPEN_MAX_PERSON } else { OPEN_MAX };
    if store.open_tasks(&task.place, most).await.map_err(store_error)? >= i64::from(most) {
        let why = format!("{most} tasks are open here already, and there is no room for more");
        return Err(
            CallError::conflict(why).hint("complete, cancel or remove some of them first; `haft task list` shows them")
        );
    }
    if task.kind != TaskKind::Manual {
        let live = store.live_tasks(&task.place, LIVE_MAX).await.map_err(store_error)?;
        if live >= i64::from(LIVE_MAX) {
            let why = format!("{LIVE_MAX} tasks here already do something by themselves");
            return Err(CallError::conflict(why).hint("complete or cancel some of them first"));
        }
    }
    store.add_task(task.clone()).await.map_err(store_error)?;
    Ok((task, notes))
}

/// The task, as far as it is decided without looking at others.
fn drafted(
    wanted: &Wanted,
    who: &Who,
    parent: Option<String>,
    now_ms: i64,
    notes: &mut Vec<String>,
) -> Result<Task, CallError> {
    let kind = kind_of(wanted, notes);
    let mut promise = promised(wanted, kind, who, now_ms, notes)?;
    let next_ms = planned(wanted, kind, &mut promise, now_ms)?;
    let priority = match &wanted.priority {
        Some(word) => read(Priority::parse(word), word, "priority", Priority::ALL.iter().map(|known| known.as_str()))?,
        None => Priority::Medium,
    };
    Ok(Task {
        id: format!("{:012x}", chance() >> 16),
        place: place(wanted.scope.as_deref(), &who.root)?,
        kind,
        status: TaskStatus::Pending,
        about: About {
            title: title(&wanted.title)?,
            description: wanted.description.clone().filter(|text| !text.trim().is_empty()),
            priority,
            due_ms: wanted.due.as_ref().map(|text| due(text, now_ms, &who.zone)).transpose()?,
            tags: tags(&wanted.tags)?,
            parent,
        },
        promise,
        standing: Standing { made_ms: now_ms, changed_ms: now_ms, next_ms, ..Standing::default() },
    })
}

/// What makes it happen: a pipeline before a schedule before a page.
fn kind_of(wanted: &Wanted, notes: &mut Vec<String>) -> TaskKind {
    let kind = match wanted {
        Wanted { pipeline: Some(_), .. } => TaskKind::Pipeline,
        Wanted { schedule: Some(_), .. } => TaskKind::Scheduled,
        Wanted { watch_url: Some(_), .. } => TaskKind::Watch,
        _ => TaskKind::Manual,
    };
    if wanted.watch_url.is_some() && kind != TaskKind::Watch {
        let first = if kind == TaskKind::Pipeline { "a pipeline" } else { "a schedule" };
        notes.push(format!("watch_url is left out: {first} comes before it"));
    }
    kind
}

fn promised(
    wanted: &Wanted,
    kind: TaskKind,
    who: &Who,
    now_ms: i64,
    notes: &mut Vec<String>,
) -> Result<Promise, CallError> {
    let missed = match &wanted.missed {
        Some(word) => {
            read(Missed::parse(word), word, "policy for missed runs", Missed::ALL.iter().map(|known| known.as_str()))?
        }
        None => Missed::default(),
    };
    let autonomy = match (who.wary(), autonomy(wanted.autonomy.as_deref())?) {
        (true, _) => {
            notes.push(
                "this conversation has heard what looks like an attack: what its calls write or run is asked"
                    .to_owned(),
            );
            Some(Autonomy::Conservative)
        }
        (false, autonomy) => autonomy,
    };
    Ok(Promise {
        spec: spec(wanted, kind)?,
        schedule: wanted.schedule.clone(),
        zone: wanted.zone.clone().filter(|zone| !zone.trim().is_empty()),
        since_ms: now_ms,
        missed,
        retries: wanted.retries.unwrap_or(RETRIES).min(10),
        assignee: wanted.assignee.clone(),
        owner: Owner { root: who.root.clone(), caller: who.caller.clone(), autonomy, labels: who.labels.clone() },
    })
}

/// What is done: one thing.
fn spec(wanted: &Wanted, kind: TaskKind) -> Result<Option<Value>, CallError> {
    let object = |value: &Option<Value>, name: &str| match value {
        None => Ok(json!({})),
        Some(value) if value.is_object() => Ok(value.clone()),
        Some(_) => Err(CallError::invalid(format!("`{name}` has to be an object"))),
    };
    let said = [wanted.tool.is_some(), wanted.prompt.is_some(), wanted.pipeline.is_some()];
    if said.iter().filter(|said| **said).count() > 1 {
        let why = "a task does one thing: a tool, a prompt or a pipeline";
        return Err(CallError::invalid(why).hint("for several steps, store a pipeline and name it"));
    }
    if let Some(tool) = &wanted.tool {
        ToolName::new(tool).map_err(|error| CallError::invalid(error.to_string()))?;
        return Ok(Some(json!({"tool": tool, "args": object(&wanted.args, "args")?})));
    }
    if let Some(prompt) = &wanted.prompt {
        return Ok(Some(json!({ "prompt": prompt })));
    }
    Ok(match kind {
        TaskKind::Pipeline => Some(json!({"pipeline": wanted.pipeline, "inputs": object(&wanted.inputs, "inputs")?})),
        TaskKind::Watch => Some(step::look(&watched(wanted.watch_url.as_deref().unwrap_or_default())?)),
        // The task's own words, for the agent that does it.
        TaskKind::Scheduled => {
            let more = wanted.description.as_ref().map_or_else(String::new, |text| format!("\n\n{text}"));
            Some(json!({"prompt": format!("{}{more}", wanted.title.trim())}))
        }
        TaskKind::Manual => None,
    })
}

fn watched(url: &str) -> Result<String, CallError> {
    let target = Target::read(url).map_err(|error| CallError::invalid(error.to_string()))?;
    Ok(target.url().to_string())
}

/// When it is due first.
fn planned(wanted: &Wanted, kind: TaskKind, promise: &mut Promise, now_ms: i64) -> Result<Option<i64>, CallError> {
    if kind == TaskKind::Watch {
        let minutes = wanted.watch_interval_minutes.unwrap_or(WATCH_MINUTES);
        let minutes = if minutes.is_finite() { minutes } else { WATCH_MINUTES };
        promise.schedule = Some(format!("{:.0}m", minutes.clamp(WATCH_FLOOR_MINUTES, WATCH_CEILING_MINUTES)));
        promise.zone = None;
        // The first look is the one that later ones are compared with.
        return Ok(Some(now_ms));
    }
    if let Some(text) = &promise.schedule {
        return Ok(given(text, promise.zone.as_deref(), now_ms)?.next(now_ms));
    }
    if promise.zone.is_some() {
        return Err(CallError::invalid("a time zone without a schedule says nothing").hint("give a schedule, too"));
    }
    let handed = wanted.assignee.as_ref().is_some_and(|who| AGENTS.contains(&who.to_lowercase().as_str()));
    Ok((promise.spec.is_some() && (kind == TaskKind::Pipeline || handed)).then_some(now_ms))
}

/// The project, or nowhere in particular.
pub(super) fn place(scope: Option<&str>, root: &str) -> Result<String, CallError> {
    match scope.map(|word| word.trim().to_lowercase()).as_deref() {
        None | Some("" | "project" | "context") => Ok(root.to_owned()),
        Some("user" | "global") => Ok(String::new()),
        Some(other) => {
            let why = format!("there is no scope `{}`", inert(other));
            Err(CallError::invalid(why).hint("say `project` for this project, or `user` for wherever you are"))
        }
    }
}

/// A word that means one of a few.
pub(super) fn read<T: Copy>(
    found: Option<T>,
    word: &str,
    what: &str,
    known: impl Iterator<Item = &'static str>,
) -> Result<T, CallError> {
    found.ok_or_else(|| {
        let known: Vec<&str> = known.collect();
        CallError::invalid(format!("`{}` is no {what}", inert(word))).hint(format!("say one of {}", known.join(", ")))
    })
}

pub(super) fn title(text: &str) -> Result<String, CallError> {
    let title = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if title.is_empty() || title.chars().count() > 200 {
        return Err(
            CallError::invalid("a title has between 1 and 200 characters").hint("put the rest into the description")
        );
    }
    Ok(title)
}

pub(super) fn tags(given: &[String]) -> Result<Vec<String>, CallError> {
    let mut tags: Vec<String> = given.iter().map(|tag| tag.trim().trim_start_matches('#').to_owned()).collect();
    tags.retain(|tag| !tag.is_empty());
    tags.dedup();
    let plain = |tag: &String| {
        tag.chars().count() <= 40
            && tag.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/'))
    };
    match tags.iter().find(|tag| !plain(tag)) {
        Some(odd) => Err(CallError::invalid(format!("`{}` is no tag", inert(odd)))
            .hint("a tag is one word of up to 40 letters, digits, - _ . : /")),
        None if tags.len() > 20 => Err(CallError::invalid("a task has up to 20 tags")),
        None => Ok(tags),
    }
}

/// A task can only be held more tightly than its project holds calls.
fn autonomy(word: Option<&str>) -> Result<Option<Autonomy>, CallError> {
    const LEVELS: [(&str, Autonomy); 3] = [
        ("conservative", Autonomy::Conservative),
        ("standard", Autonomy::Standard),
        ("autonomous", Autonomy::Autonomous),
    ];
    let Some(word) = word else { return Ok(None) };
    let known = LEVELS.into_iter().find(|(level, _)| *level == word).map(|(_, autonomy)| autonomy);
    read(known, word, "level of autonomy", LEVELS.into_iter().map(|(level, _)| level)).map(Some)
}

/// Refuses what must not be written down, or is too long.
pub(super) fn clean(task: &Task) -> Result<(), CallError> {
    let spec = task.promise.spec.as_ref().map(Value::to_string).unwrap_or_default();
    if spec.len() > SPEC_MAX {
        return Err(CallError::invalid(format!("what the task does is longer than {} KiB", SPEC_MAX >> 10))
            .hint("put it into a file, and name that"));
    }
    let description = task.about.description.as_deref().unwrap_or_default();
    if description.len() > SPEC_MAX {
        return Err(CallError::invalid(format!("the description is longer than {} KiB", SPEC_MAX >> 10)));
    }
    let private = [task.about.title.as_str(), description, spec.as_str()].into_iter().any(tells_secret);
    let in_commands = task.promise.spec.as_ref().is_some_and(|spec| !secrets_in(spec).is_empty());
    if private || in_commands {
        return Err(CallError::new(
            ErrorKind::InvalidInput,
            "the task contains what looks like a secret, and tasks are kept",
        )
        .hint("keep it with `haft secret set NAME`, and write secret:NAME where a tool sends it"));
    }
    Ok(())
}

/// A task below which there is room for another.
async fn room_below(store: &Store, parent: Task) -> Result<String, CallError> {
    let (id, mut above) = (parent.id.clone(), parent.about.parent);
    if parent.status.closed() {
        return Err(CallError::conflict(format!("task {id} is {}: it gets no more parts", parent.status.as_str())));
    }
    for _ in 1..DEPTH_MAX {
        let Some(next) = above else { return Ok(id) };
        above = store.task(&next).await.map_err(store_error)?.and_then(|task| task.about.parent);
    }
    Err(CallError::invalid(format!("tasks are at most {DEPTH_MAX} deep in one another")))
}
