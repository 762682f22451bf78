//! How far a call is, for a client that wants to know.

#![expect(deprecated, reason = "sampling and logging go, but clients of all but the newest version have them")]

use crate::client::log_message::name_in_front;
use futures_util::future::BoxFuture;
use haft_core::CallId;
use haft_runtime::Event;
use haft_runtime::events::{LogLevel, Share};
use rmcp::RoleServer;
use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;
use serde_json::Value;
use std::convert::Infallible;
use std::time::{Duration, Instant};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

/// How often a client is told that a call still waits or runs.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// What a call is doing while it reports nothing of its own.
struct Activity {
    /// In words, e.g. `waiting for approval 1m7f…: write a.txt`.
    description: String,
    since: Instant,
}

/// How a client wants to be told.
pub(super) enum Told {
    /// As the progress of its request.
    Progress(ProgressToken),
    /// As messages of the log.
    Log(String),
    /// Not at all: the client asks how its task is.
    OnRequest,
}

/// Passes on what one call reports.
pub(super) struct Reporter {
    pub(super) peer: Peer<RoleServer>,
    pub(super) told: Told,
    pub(super) call: CallId,
    pub(super) events: Receiver<Event>,
    last: f64,
    activity: Option<Activity>,
    /// One line about the call, while it waits for approval.
    asked: Option<String>,
    /// The lowest level of what the call logs that the client hears; none if it hears nothing of it.
    log_from: Option<LogLevel>,
    /// The one server that haft stands in front of: its loggers have the names that it gave them.
    front: Option<String>,
    /// The message that is being sent. It outlives [`Reporter::run`], which is dropped when the call ends: a result that
    /// overtook it would close the stream on which it is sent.
    in_flight: Option<BoxFuture<'static, ()>>,
}

impl Reporter {
    pub(super) fn new(peer: Peer<RoleServer>, told: Told, call: CallId, events: Receiver<Event>) -> Self {
        Self {
            peer,
            told,
            call,
            events,
            last: f64::NEG_INFINITY,
            activity: None,
            asked: None,
            log_from: None,
            front: None,
            in_flight: None,
        }
    }

    /// Also passes on what the call logs, from this level on.
    #[must_use]
    pub(super) fn logging_from(mut self, level: Option<LogLevel>) -> Self {
        self.log_from = level;
        self
    }

    /// Names loggers as the one server does that haft stands in front of.
    #[must_use]
    pub(super) fn in_front_of(mut self, server: Option<&str>) -> Self {
        self.front = server.map(str::to_owned);
        self
    }

    /// Passes on what is reported until it is dropped.
    pub(super) async fn run(&mut self) -> Infallible {
        let mut heartbeat = tokio::time::interval_at(tokio::time::Instant::now() + HEARTBEAT, HEARTBEAT);
        loop {
            let received = tokio::select! {
                received = self.events.recv() => received,
                _ = heartbeat.tick() => {
                    self.send_heartbeat().await;
                    continue;
                }
            };
            match received {
                Ok(event) => self.pass_on(event).await,
                // What was missed is old by now.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }

    /// What the call is doing, in words.
    pub(super) fn activity(&self) -> Option<String> {
        self.activity.as_ref().map(|activity| activity.description.clone())
    }

    /// Waits until the call does something else.
    pub(super) async fn next_activity(&mut self) -> String {
        let before = self.activity();
        loop {
            match self.events.recv().await {
                Ok(event) => self.pass_on(event).await,
                // What was missed is old by now.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => std::future::pending().await,
            }
            if let Some(activity) = self.activity().filter(|now| Some(now) != before.as_ref()) {
                return activity;
            }
        }
    }

    /// Says what the call has been doing, and for how long.
    async fn send_heartbeat(&mut self) {
        let Some(activity) = &self.activity else { return };
        let message = format!("{} ({} s)", activity.description, activity.since.elapsed().as_secs());
        self.send(message, None).await;
    }

    /// Passes on what was reported before the call ended.
    pub(super) async fn rest(&mut self) {
        self.finish_sending().await;
        loop {
            match self.events.try_recv() {
                Ok(event) => self.pass_on(event).await,
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    async fn pass_on(&mut self, event: Event) {
        match event {
            Event::Progress { call_id, message, done, .. } if call_id == self.call => self.send(message, done).await,
            Event::Log { call_id, level, logger, data, .. }
                if call_id == self.call && self.log_from.is_some_and(|lowest| level >= lowest) =>
            {
                self.send_log(level, logger, data).await;
            }
            Event::Approval { call_id, preview, .. } if call_id == self.call => {
                let description = format!("waiting for approval {call_id}: {preview}");
                self.send(description.clone(), None).await;
                self.activity = Some(Activity { description, since: Instant::now() });
                self.asked = Some(preview);
            }
            Event::CallStart { call_id, preview, .. } if call_id == self.call => self.begin_running(&preview),
            Event::RunsElsewhere { call_id } if call_id == self.call => {
                if let Some(preview) = self.asked.take() {
                    self.begin_running(&preview);
                }
            }
            _ => {}
        }
    }

    fn begin_running(&mut self, preview: &str) {
        self.activity = Some(Activity { description: format!("running: {preview}"), since: Instant::now() });
    }

    /// Passes on a log message.
    async fn send_log(&mut self, level: LogLevel, logger: Option<String>, data: Value) {
        let mut message = LoggingMessageNotificationParam::new(logging_level(level), data);
        message.logger = match &self.front {
            Some(server) => name_in_front(logger, server),
            None => logger,
        };
        let peer = self.peer.clone();
        self.deliver(async move {
            // A client that has gone need not be told.
            let _ = peer.notify_logging_message(message).await;
        })
        .await;
    }

    /// Sends a message, after the one that is being sent.
    async fn deliver(&mut self, sending: impl Future<Output = ()> + Send + 'static) {
        self.finish_sending().await;
        self.in_flight = Some(Box::pin(sending));
        self.finish_sending().await;
    }

    async fn finish_sending(&mut self) {
        if let Some(sending) = &mut self.in_flight {
            sending.await;
        }
        self.in_flight = None;
    }

    async fn send(&mut self, message: String, done: Option<Share>) {
        let peer = self.peer.clone();
        match &self.told {
            Told::Progress(token) => {
                let (progress, total) = next(self.last, done);
                self.last = progress;
                let mut told = ProgressNotificationParam::new(token.clone(), progress).with_message(message);
                told.total = total;
                self.deliver(async move {
                    // A client that has gone need not be told.
                    let _ = peer.notify_progress(told).await;
                })
                .await;
            }
            Told::Log(logger) => {
                let logger = logger.clone();
                self.deliver(async move {
                    let _ = log(&peer, LoggingLevel::Info, &logger, message).await;
                })
                .await;
            }
            Told::OnRequest => {}
        }
    }
}

fn logging_level(level: LogLevel) -> LoggingLevel {
    match level {
        LogLevel::Debug => LoggingLevel::Debug,
        LogLevel::Info => LoggingLevel::Info,
        LogLevel::Notice => LoggingLevel::Notice,
        LogLevel::Warning => LoggingLevel::Warning,
        LogLevel::Error => LoggingLevel::Error,
        LogLevel::Critical => LoggingLevel::Critical,
        LogLevel::Alert => LoggingLevel::Alert,
        LogLevel::Emergency => LoggingLevel::Emergency,
    }
}

/// The next number, always greater than the last one, and out of how much.
fn next(last: f64, done: Option<Share>) -> (f64, Option<f64>) {
    match done {
        Some(Share { progress, total }) if progress > last => (progress, total),
        Some(Share { total, .. }) => (last.next_up(), total),
        None => (if last.is_finite() { last + 1.0 } else { 1.0 }, None),
    }
}

/// Writes to the client's log.
pub(super) async fn log(
    peer: &Peer<RoleServer>,
    level: LoggingLevel,
    logger: &str,
    message: String,
) -> Result<(), rmcp::ServiceError> {
    peer.notify_logging_message(LoggingMessageNotificationParam::new(level, message.into()).with_logger(logger)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_only_grow() {
        let share = |progress| Some(Share { progress, total: Some(9.0) });
        let mut last = f64::NEG_INFINITY;
        for done in [share(0.0), share(3.0), share(3.0), None, share(1.0), None] {
            let (progress, _) = next(last, done);
            assert!(progress > last && progress.is_finite(), "{progress} after {last}");
            last = progress;
        }
    }
}
