//! Tasks of bridged servers (the extension `io.modelcontextprotocol/tasks` of revision 2026-07-28, SEP-2663).
//!
//! A server may answer the call of a tool with a task, if the caller looks after tasks. haft polls the task to its end,
//! has its questions answered by whoever answers for the call, and cancels it when nobody wants the call any more. The
//! server's task id stays here: a client gets a task of haft's own for its call, whose id is good for that client alone,
//! and what comes of the task goes the way of every result.

use super::answer::{Served, USUAL_OFFER};
use super::call::{Abandoned, Broken, Connection};
use super::tamed;
use haft_core::ErrorKind;
use haft_core::preview::inert;
use haft_runtime::{CallerOffer, Scene};
use rmcp::ServiceError;
use rmcp::model::{
    CallToolResult, CancelTaskParams, CancelTaskRequest, ClientRequest, DetailedTask, ErrorCode, ErrorData,
    GetTaskParams, GetTaskRequest, InputRequests, RequestMetaObject, ServerResult, Task, TaskPayload, TaskStatus,
    UpdateTaskParams, UpdateTaskRequest,
};
use rmcp::service::PeerRequestOptions;
use serde_json::Value;
use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::time::Duration;

/// How often a task is polled whose server does not say.
const USUAL_INTERVAL: Duration = Duration::from_secs(1);
/// The intervals that a server may choose.
const INTERVALS: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(30);
/// How many polls may fail one after the other before the task is given up: a network has its moments.
const FAILED_POLLS_MAX: usize = 3;
/// How much of a server's message about its task is passed on.
const MESSAGE_MAX: usize = 500;
/// How many questions of one task are remembered as answered. A call may ask far fewer.
const ANSWERED_MAX: usize = 64;

/// A task of a server's. Dropped before the task is over, the server is told to cancel it.
pub(super) struct RemoteTask<'c> {
    connection: &'c Connection,
    served: &'c Served<'c>,
    scene: &'c Scene,
    id: String,
    /// Whether it may be over or ask something already, which only a poll tells.
    starts_with_poll: bool,
    interval: Duration,
    failed_polls: usize,
    /// The server's latest message, so that each is passed on once.
    message: Option<String>,
    /// The questions that were answered. A server may show one again before it has read the answer.
    answered: HashSet<String>,
    is_over: bool,
}

impl Drop for RemoteTask<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            // Nobody hears it once the connection is gone, and then nobody has to.
            let _ = self.connection.abandoned.send(Abandoned::Task(std::mem::take(&mut self.id)));
        }
    }
}

impl<'c> RemoteTask<'c> {
    /// The task that a server has made of a call.
    pub(super) fn new(connection: &'c Connection, served: &'c Served<'c>, scene: &'c Scene, seed: Task) -> Self {
        Self {
            connection,
            served,
            scene,
            starts_with_poll: seed.status != TaskStatus::Working,
            interval: interval(&seed),
            id: seed.task_id,
            failed_polls: 0,
            message: None,
            answered: HashSet::new(),
            is_over: false,
        }
    }

    /// Follows the task to its end.
    pub(super) async fn finish(mut self) -> Result<CallToolResult, Broken> {
        if !self.scene.back().offer().tasks {
            return Err(self.malformed("answered with a task, which it was not offered"));
        }
        self.scene.back().go_on_as_task().await;
        if !self.starts_with_poll {
            tokio::time::sleep(self.interval).await;
        }
        loop {
            if let Some(DetailedTask { task, payload, .. }) = self.poll().await? {
                self.heed(task);
                match payload {
                    TaskPayload::InputRequired { input_requests } => self.answer(input_requests).await?,
                    TaskPayload::Working => {}
                    over => {
                        self.is_over = true;
                        return self.result(over);
                    }
                }
            }
            tokio::time::sleep(self.interval).await;
        }
    }

    async fn request(&self, request: ClientRequest) -> Result<ServerResult, Broken> {
        self.connection.request(request, self.served, self.scene, self.scene.back().offer()).await
    }

    /// Asks how the task is; none if the server could not be asked this time.
    async fn poll(&mut self) -> Result<Option<DetailedTask>, Broken> {
        let request = GetTaskRequest::new(GetTaskParams::new(self.id.as_str()));
        match self.request(ClientRequest::GetTaskRequest(request)).await {
            Ok(ServerResult::GetTaskResult(found)) => {
                self.failed_polls = 0;
                Ok(Some(found.task))
            }
            Ok(_) => Err(self.malformed("returned a malformed task")),
            Err(Broken::Because(error)) if matches!(error.kind, ErrorKind::Upstream | ErrorKind::Timeout) => {
                self.failed_polls += 1;
                if self.failed_polls < FAILED_POLLS_MAX { Ok(None) } else { Err(Broken::Because(error)) }
            }
            Err(broken) => Err(broken),
        }
    }

    /// Notes what the server says of the task, and passes on what is new.
    fn heed(&mut self, task: Task) {
        self.interval = interval(&task);
        if task.status_message != self.message {
            if let Some(message) = &task.status_message {
                self.scene.progress(inert(&tamed(message, MESSAGE_MAX)));
            }
            self.message = task.status_message;
        }
    }

    /// Has the task's questions answered that are new.
    async fn answer(&mut self, mut requests: InputRequests) -> Result<(), Broken> {
        requests.retain(|key, _| !self.answered.contains(key));
        if requests.is_empty() {
            return Ok(());
        }
        if self.answered.len() + requests.len() > ANSWERED_MAX {
            return Err(self.malformed("asked too many questions for one task"));
        }
        let answers = self.connection.fulfil(requests, self.scene).await?;
        self.answered.extend(answers.keys().cloned());
        let params = UpdateTaskParams::new(self.id.as_str(), answers);
        self.request(ClientRequest::UpdateTaskRequest(UpdateTaskRequest::new(params))).await.map(drop)
    }

    /// What came of the task.
    fn result(&self, payload: TaskPayload) -> Result<CallToolResult, Broken> {
        match payload {
            TaskPayload::Completed { result } => serde_json::from_value(Value::Object(result))
                .map_err(|_| self.malformed("returned a malformed tool result")),
            TaskPayload::Failed { error } => {
                let unexplained = |_| ErrorData::new(ErrorCode::INTERNAL_ERROR, "it does not say why", None);
                let error = serde_json::from_value(Value::Object(error)).unwrap_or_else(unexplained);
                Err(self.connection.explain(ServiceError::McpError(error), self.scene.back().offer()))
            }
            _ => Err(self.malformed("cancelled the task")),
        }
    }

    fn malformed(&self, what: &str) -> Broken {
        Broken::Because(self.connection.upstream(what))
    }
}

/// How often a task is polled.
fn interval(task: &Task) -> Duration {
    let wanted = task.poll_interval_ms.map_or(USUAL_INTERVAL, Duration::from_millis);
    wanted.clamp(*INTERVALS.start(), *INTERVALS.end())
}

impl Connection {
    /// Tells the server to cancel a task.
    pub(super) async fn cancel_task(&self, id: String) {
        let mut meta = RequestMetaObject::default();
        meta.set_client_capabilities(self.desk.capabilities(CallerOffer { tasks: true, ..USUAL_OFFER }));
        let request = ClientRequest::CancelTaskRequest(CancelTaskRequest::new(CancelTaskParams::new(id)));
        let options = PeerRequestOptions::no_options().with_meta(meta);
        if let Ok(handle) = self.peer.send_cancellable_request(request, options).await {
            // A task that is over already cannot be cancelled.
            let _ = handle.await_response().await;
        }
    }
}
