//! Calls as MCP tasks (the extension `io.modelcontextprotocol/tasks` of revision 2026-07-28, SEP-2663).
//!
//! A call that waits for a person or runs long outlives the request that began it: the client gets a task, asks how it
//! is (`tasks/get`), answers its questions (`tasks/update`), takes it back (`tasks/cancel`) and finds its result there. A
//! task belongs to the caller and session that began it; its id cannot be guessed, and nobody else learns that it exists.

use super::Shared;
use super::bridged::protocol_error;
use super::call::{crash, crashed, result_of};
use super::progress::Reporter;
use super::rounds::{Asked, Ended, Running, TASK_WAIT, Turn, random_word};
use haft_core::{Call, CallId, Caller, ErrorKind, SessionId};
use haft_runtime::Halt;
use rmcp::model::{DetailedTask, ErrorData, InputRequests, InputResponses, Task, TaskPayload, TaskStatus};
use rmcp::task_manager::current_timestamp;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a task exists. It waits for a person for half of that ([`TASK_WAIT`]); the rest is for the client to fetch the
/// result.
const TASK_LIFETIME: Duration = TASK_WAIT.saturating_mul(2);
/// How often a client should ask.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How many tasks there may be. Beyond that calls are answered as for clients without tasks.
const TASKS_MAX: usize = 256;

/// Whose task it is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TaskOwner {
    session: SessionId,
    caller: Caller,
}

impl TaskOwner {
    pub(super) fn new(session: SessionId, caller: Caller) -> Self {
        Self { session, caller }
    }

    pub(super) fn of(call: &Call) -> Self {
        Self::new(call.session.clone(), call.caller.clone())
    }
}

/// A call that is to become a task.
pub(super) struct NewCallTask {
    pub(super) owner: TaskOwner,
    pub(super) running: Running,
    /// What it asks, if it asks.
    pub(super) question: Option<Asked>,
    /// Hears what the call does.
    pub(super) reporter: Option<Reporter>,
    /// Whether it calls another tool by way of haft's own.
    pub(super) by_way: bool,
}

/// One task.
struct CallTask {
    owner: TaskOwner,
    call: CallId,
    halt: Halt,
    expires_at: Instant,
    created_at: String,
    updated_at: String,
    /// What the call is doing, in words.
    activity: Option<String>,
    question: Option<Asked>,
    /// How many questions there have been: each has a key of its own.
    questions: usize,
    /// Whether the client has taken it back.
    is_cancelled: bool,
    /// What came of it.
    end: Option<TaskPayload>,
}

impl CallTask {
    fn is_expired(&self) -> bool {
        Instant::now() >= self.expires_at
    }

    /// Poses the call's next question.
    fn pose(&mut self, mut question: Asked) {
        self.questions += 1;
        if self.questions > 1 {
            question.rename(format!("{}-{}", question.key(), self.questions));
        }
        self.question = Some(question);
        self.updated_at = current_timestamp();
    }

    fn finish(&mut self, payload: TaskPayload) {
        self.question = None;
        self.activity = None;
        self.end = Some(payload);
        self.updated_at = current_timestamp();
    }

    /// The task without its result, as the client first gets it.
    fn summary(&self, id: &str, status: TaskStatus) -> Task {
        let mut task = Task::new(id, status, self.created_at.clone(), self.updated_at.clone())
            .with_ttl_ms(millis(TASK_LIFETIME))
            .with_poll_interval_ms(millis(POLL_INTERVAL));
        task.status_message.clone_from(&self.activity);
        task
    }

    /// The answer to `tasks/get`. Starts the reading time of an open question.
    fn detailed(&mut self, id: &str) -> DetailedTask {
        // Somebody else may have answered it.
        self.question.take_if(|question| !question.is_open());
        let payload = match (&self.end, &mut self.question) {
            (Some(end), _) => end.clone(),
            (None, Some(question)) => {
                let input_requests = InputRequests::from([(question.key().to_owned(), question.show())]);
                TaskPayload::InputRequired { input_requests }
            }
            (None, None) => TaskPayload::Working,
        };
        DetailedTask::new(self.summary(id, payload.status()), payload)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The calls that are tasks, by their id.
#[derive(Default)]
pub(super) struct CallTasks(Mutex<HashMap<String, CallTask>>);

impl CallTasks {
    fn tasks(&self) -> MutexGuard<'_, HashMap<String, CallTask>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a task for a call, and gives its id; none if there are too many.
    pub(super) fn create(&self, owner: &TaskOwner, running: &Running) -> Option<String> {
        let mut tasks = self.tasks();
        tasks.retain(|_, task| {
            let keep = !task.is_expired();
            if !keep && task.end.is_none() {
                task.halt.cancel();
            }
            keep
        });
        let id = random_word(&running.id).filter(|_| tasks.len() < TASKS_MAX)?;
        let now = current_timestamp();
        let task = CallTask {
            owner: owner.clone(),
            call: running.id.clone(),
            halt: running.halt.clone(),
            expires_at: Instant::now() + TASK_LIFETIME,
            created_at: now.clone(),
            updated_at: now,
            activity: None,
            question: None,
            questions: 0,
            is_cancelled: false,
            end: None,
        };
        tasks.insert(id.clone(), task);
        Some(id)
    }

    /// Starts to follow a task's call in the background, and returns the `Task` that announces it to the client.
    pub(super) fn attach(shared: &Arc<Shared>, id: String, mut new_task: NewCallTask) -> Task {
        let (question, activity) = (new_task.question.take(), new_task.reporter.as_ref().and_then(Reporter::activity));
        let mut told = Task::default();
        shared.call_tasks.change(&id, |task| {
            task.activity = activity;
            let status = if question.is_some() { TaskStatus::InputRequired } else { TaskStatus::Working };
            if let Some(question) = question {
                task.pose(question);
            }
            told = task.summary(&id, status);
        });
        let here = Arc::clone(shared);
        shared.rounds.track(async move { follow(&here, &id, new_task).await });
        told
    }

    /// Does something with a task of this owner's.
    fn with<T>(&self, owner: &TaskOwner, id: &str, act: impl FnOnce(&mut CallTask) -> T) -> Result<T, ErrorData> {
        let mut tasks = self.tasks();
        let task = tasks.get_mut(id).filter(|task| task.owner == *owner && !task.is_expired());
        task.map(act).ok_or_else(|| ErrorData::invalid_params("there is no such task, or it has expired", None))
    }

    /// How a task is.
    pub(super) fn get(&self, owner: &TaskOwner, id: &str) -> Result<DetailedTask, ErrorData> {
        self.with(owner, id, |task| task.detailed(id))
    }

    /// Takes answers to a task's question. What answers nothing that is open is ignored: it may be late.
    pub(super) fn update(&self, owner: &TaskOwner, id: &str, mut given: InputResponses) -> Result<(), ErrorData> {
        self.with(owner, id, |task| {
            task.question = task.question.take().and_then(|question| question.answered(&mut given).err());
        })
    }

    /// Takes a task back. One that is over stays as it is.
    pub(super) fn cancel(&self, owner: &TaskOwner, id: &str) -> Result<(), ErrorData> {
        self.with(owner, id, |task| {
            if task.end.is_none() {
                task.is_cancelled = true;
                task.halt.cancel();
            }
        })
    }

    /// Changes a task as its call goes on.
    fn change(&self, id: &str, change: impl FnOnce(&mut CallTask)) {
        if let Some(task) = self.tasks().get_mut(id) {
            change(task);
        }
    }
}

/// Follows a task's call to its end.
async fn follow(shared: &Arc<Shared>, id: &str, new_task: NewCallTask) {
    let NewCallTask { mut running, mut reporter, by_way, owner, .. } = new_task;
    let tasks = &shared.call_tasks;
    let ended = loop {
        let turn = tokio::select! {
            turn = running.next() => turn,
            activity = next_activity(&mut reporter) => {
                tasks.change(id, |task| {
                    task.activity = Some(activity);
                    task.updated_at = current_timestamp();
                });
                continue;
            }
        };
        match turn {
            Turn::Asked(question) => tasks.change(id, |task| task.pose(question)),
            // The client has its task.
            Turn::RemoteTask => {}
            Turn::Ended(ended) => break ended,
            Turn::Lost => break Box::new(crash(running.id.clone(), &running.spoken)),
        }
    };
    tasks.change(id, |task| {
        shared.recent.ended(owner.session, task.call.clone());
        let payload = payload(shared, *ended, by_way, task.is_cancelled);
        task.finish(payload);
    });
}

/// What the call does next, for a task that somebody listens for.
async fn next_activity(reporter: &mut Option<Reporter>) -> String {
    match reporter {
        Some(reporter) => reporter.next_activity().await,
        None => std::future::pending().await,
    }
}

/// What a task's call came to, in the words of the extension.
fn payload(shared: &Shared, ended: Ended, by_way: bool, is_cancelled: bool) -> TaskPayload {
    let was_cancelled = |ended: &Ended| ended.outcome.error.as_ref().is_some_and(|e| e.kind == ErrorKind::Cancelled);
    if is_cancelled && was_cancelled(&ended) {
        return TaskPayload::Cancelled;
    }
    // An error of the protocol, which a bridged server gave for its own task, is one of this task.
    if let Some(error) = ended.outcome.error.as_ref().and_then(protocol_error) {
        return failed(&error);
    }
    // A call that crashed has no result.
    if let Some(error) = ended.outcome.error.as_ref().filter(|error| error.kind == ErrorKind::Internal) {
        return failed(&ErrorData::internal_error(error.message.clone(), None));
    }
    match result_of(shared, ended, by_way) {
        Ok(result) => match serde_json::to_value(result) {
            Ok(Value::Object(result)) => TaskPayload::Completed { result },
            _ => failed(&crashed()),
        },
        Err(error) => failed(&error),
    }
}

fn failed(error: &ErrorData) -> TaskPayload {
    match serde_json::to_value(error) {
        Ok(Value::Object(error)) => TaskPayload::Failed { error },
        _ => TaskPayload::Cancelled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(agent: &str) -> TaskOwner {
        let caller = Caller { agent: Some(agent.to_owned()), ..Caller::default() };
        TaskOwner::new(SessionId::default(), caller)
    }

    #[test]
    fn only_the_owner_sees_a_task() {
        let (tasks, running) = (CallTasks::default(), Running::idle(CallId::new(1, 2)));
        let id = tasks.create(&owner("one"), &running).unwrap();
        assert_eq!(tasks.get(&owner("one"), &id).unwrap().status(), TaskStatus::Working);
        for answer in [tasks.get(&owner("two"), &id).map(drop), tasks.cancel(&owner("two"), &id)] {
            assert_eq!(answer.unwrap_err().message, "there is no such task, or it has expired");
        }
        assert!(tasks.get(&owner("one"), running.id.as_str()).is_err(), "the call's id is no key");
        assert!(running.halt.check().is_ok());
        tasks.cancel(&owner("one"), &id).unwrap();
        assert!(running.halt.check().is_err());
    }

    #[test]
    fn expired_task_is_gone_and_its_call_cancelled() {
        let (tasks, running) = (CallTasks::default(), Running::idle(CallId::new(1, 2)));
        let id = tasks.create(&owner("one"), &running).unwrap();
        tasks.change(&id, |task| task.expires_at = Instant::now());
        assert!(tasks.get(&owner("one"), &id).is_err());
        tasks.create(&owner("one"), &Running::idle(CallId::new(1, 3))).unwrap();
        assert!(running.halt.check().is_err());
        assert_eq!(tasks.tasks().len(), 1);
    }

    #[test]
    fn tasks_are_bounded_and_none_is_dropped_early() {
        let tasks = CallTasks::default();
        let ids: Vec<_> =
            (0..TASKS_MAX).filter_map(|_| tasks.create(&owner("one"), &Running::idle(CallId::new(1, 2)))).collect();
        assert_eq!(ids.len(), TASKS_MAX);
        assert_eq!(tasks.create(&owner("one"), &Running::idle(CallId::new(1, 2))), None);
        assert!(tasks.get(&owner("one"), &ids[0]).is_ok());
    }
}
