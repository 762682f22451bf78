//! The end of a call before its end: cancellation by the caller, or the deadline. It reaches every stage.

use haft_core::{CallError, ErrorKind};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// A caller's hold on a call: clone it to keep a way to cancel.
#[derive(Debug, Clone, Default)]
pub struct Halt {
    token: CancellationToken,
    deadline: Option<(Instant, Duration)>,
}

impl Halt {
    /// Never halts unless cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels everything that holds this or a narrower halt.
    pub fn cancel(&self) {
        self.token.cancel();
    }

    /// The same, but cancelling it cancels nothing else.
    #[must_use]
    pub fn narrowed(&self) -> Self {
        Self { token: self.token.child_token(), deadline: self.deadline }
    }

    /// The same, but over after `limit` at the latest. An earlier deadline stays.
    #[must_use]
    pub fn within(&self, limit: Duration) -> Self {
        let mine = (Instant::now() + limit, limit);
        let deadline = self.deadline.map_or(mine, |old| if old.0 < mine.0 { old } else { mine });
        Self { token: self.token.child_token(), deadline: Some(deadline) }
    }

    /// Errs once the call is cancelled or late. Long loops call this.
    pub fn check(&self) -> Result<(), CallError> {
        if self.token.is_cancelled() {
            return Err(cancelled());
        }
        match self.deadline {
            Some((end, limit)) if Instant::now() >= end => Err(late(limit)),
            _ => Ok(()),
        }
    }

    /// Waits until the call is cancelled or late, and says which.
    pub async fn stopped(&self) -> CallError {
        let Some((end, limit)) = self.deadline else {
            self.token.cancelled().await;
            return cancelled();
        };
        tokio::select! {
            () = self.token.cancelled() => cancelled(),
            () = tokio::time::sleep_until(end.into()) => late(limit),
        }
    }
}

fn cancelled() -> CallError {
    CallError::new(ErrorKind::Cancelled, "the call was cancelled")
}

fn late(limit: Duration) -> CallError {
    CallError::new(ErrorKind::Timeout, format!("the call did not finish within {} ms", limit.as_millis()))
}
