//! How a task goes on: it is claimed, started, ended, tried again. Plain functions on the task.

use super::{Task, TaskKind, TaskStatus};
use haft_core::schedule::Due;

/// Whoever claims a task starts it within this time; after that somebody else does.
pub const LEASE_MS: i64 = 60_000;
/// The longest wait before something is tried again.
pub const BACKOFF_MAX_MS: i64 = 30 * 60_000;
/// So much of a result is kept with its task.
pub(super) const RESULT_MAX: usize = 16 << 10;

/// What one of those who found a task due was given to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The task as it is now.
    pub task: Task,
    /// The time for which it is started. It names the run: started for the same time again, it is the same run.
    pub at_ms: i64,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It did what it should.
    Well,
    /// It did not; it may work later.
    Badly,
    /// It did not, and trying again would not help: a person said no, or it makes no sense.
    ForGood,
}

/// What a claimant got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// A run to start, for this time.
    Start(i64),
    /// Nothing: what was missed is left out, and the next time is another one.
    Passed,
}

impl From<bool> for Ended {
    fn from(ok: bool) -> Self {
        if ok { Self::Well } else { Self::Badly }
    }
}

/// How long it takes until something is tried again that was tried in vain so often: 1, 2, 4 … minutes.
pub fn backoff_ms(attempt: u32) -> i64 {
    let minutes = 1_i64.checked_shl(attempt.saturating_sub(1)).unwrap_or(i64::MAX).max(1);
    minutes.saturating_mul(60_000).min(BACKOFF_MAX_MS)
}

impl Task {
    /// Whether somebody has begun to start it and not said that it is started.
    pub fn is_owed(&self) -> bool {
        self.standing.at_ms.is_some() && self.standing.run.is_none()
    }

    /// Whether somebody has put it off: it waits, and not for the answer to a question of its own.
    pub fn is_held(&self) -> bool {
        self.status == TaskStatus::Waiting && self.standing.waits_for.is_none()
    }

    /// Why nothing more is done for it, if that is so.
    pub(super) fn rests(&self) -> Option<&'static str> {
        match self.status {
            TaskStatus::Done => Some("its task is done"),
            TaskStatus::Failed => Some("its task was given up"),
            TaskStatus::Cancelled => Some("its task was cancelled"),
            _ if self.is_held() => Some("its task was put off"),
            _ => None,
        }
    }

    /// Takes a due task, if it is still due at the time that the claimant saw: what it gives is to be started. `due` is
    /// what is to be done about its schedule now.
    pub(super) fn claim(&mut self, seen_ms: i64, due: &Due, now_ms: i64) -> Option<Taken> {
        if self.standing.next_ms != Some(seen_ms) || seen_ms > now_ms {
            return None;
        }
        if self.is_owed() {
            // Somebody died, or is slow: the same run is started again.
            self.standing.next_ms = Some(now_ms.saturating_add(LEASE_MS));
            return self.standing.at_ms.map(Taken::Start);
        }
        self.standing.missed = self.standing.missed.saturating_add(i64::try_from(due.missed).unwrap_or(i64::MAX));
        let Some(at_ms) = due.run else {
            self.standing.next_ms = due.next;
            return Some(Taken::Passed);
        };
        self.standing.next_ms = Some(now_ms.saturating_add(LEASE_MS));
        self.standing.then_ms = due.next;
        self.standing.at_ms = Some(at_ms);
        self.status = TaskStatus::InProgress;
        Some(Taken::Start(at_ms))
    }

    /// Notes that what was claimed is under way.
    pub(super) fn started(&mut self, at_ms: i64, run: &str) -> Option<()> {
        if self.standing.at_ms != Some(at_ms) || !self.is_owed() {
            return None;
        }
        self.standing.run = Some(run.to_owned());
        self.standing.next_ms = None;
        Some(())
    }

    /// Notes that a run ended, and says for which time it was. A run ends once, and only the one that is under way.
    pub(super) fn ended(&mut self, run: &str, ended: Ended, now_ms: i64) -> Option<i64> {
        let mine = self.standing.run.as_deref().is_none_or(|under_way| under_way == run);
        let at_ms = self.standing.at_ms.filter(|_| mine)?;
        let held = self.is_held();
        let now = &mut self.standing;
        (now.at_ms, now.run, now.waits_for) = (None, None, None);
        (now.ran_ms, now.ok) = (Some(now_ms), Some(ended == Ended::Well));
        (now.next_ms, now.changed_ms) = (None, now_ms);
        let then = now.then_ms.take();
        if self.status.closed() || held {
            return Some(at_ms);
        }
        now.attempt = if ended == Ended::Well { 0 } else { now.attempt.saturating_add(1) };
        let repeats = then.is_some();
        let again = ended == Ended::Badly && now.attempt <= self.promise.retries;
        self.status = match (repeats, ended, again) {
            (true, ..) | (false, _, true) => TaskStatus::Pending,
            (false, Ended::Well, _) => TaskStatus::Done,
            (false, ..) => TaskStatus::Failed,
        };
        now.next_ms = if again && !repeats { Some(now_ms.saturating_add(backoff_ms(now.attempt))) } else { then };
        now.closed_ms = self.status.closed().then_some(now_ms);
        Some(at_ms)
    }

    /// Closes it: nothing more is due.
    pub(super) fn close(&mut self, status: TaskStatus, now_ms: i64) {
        self.status = status;
        self.standing.closed_ms = Some(now_ms);
        self.standing.changed_ms = now_ms;
        (self.standing.next_ms, self.standing.then_ms, self.standing.waits_for) = (None, None, None);
    }

    /// Puts it off: nothing is due until somebody opens it again.
    pub fn hold(&mut self) {
        self.status = TaskStatus::Waiting;
        self.standing.closed_ms = None;
        (self.standing.next_ms, self.standing.then_ms, self.standing.waits_for) = (None, None, None);
    }

    /// Plans it anew: from now on it is due then. What is under way ends first.
    pub fn plan(&mut self, next_ms: Option<i64>) {
        if self.standing.at_ms.is_some() {
            self.standing.then_ms = next_ms;
        } else {
            self.standing.next_ms = next_ms;
        }
        self.standing.attempt = 0;
    }

    /// Whether there is anything that could be run.
    pub fn can_run(&self) -> bool {
        self.promise.spec.is_some() || self.kind == TaskKind::Watch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_half_an_hour() {
        let minutes: Vec<i64> = (0..9).map(|attempt| backoff_ms(attempt) / 60_000).collect();
        assert_eq!(minutes, [1, 1, 2, 4, 8, 16, 30, 30, 30]);
        assert_eq!(backoff_ms(u32::MAX), BACKOFF_MAX_MS);
    }

    #[test]
    fn every_documents_words_mean_one_of_ours() {
        let read = |word: &str| TaskStatus::parse(word).map(TaskStatus::as_str);
        for (word, ours) in [
            ("pending", "pending"),
            ("open", "pending"),
            ("in_progress", "in_progress"),
            ("In Progress", "in_progress"),
            ("completed", "done"),
            ("done", "done"),
            ("failed", "failed"),
            ("cancelled", "cancelled"),
            ("canceled", "cancelled"),
        ] {
            assert_eq!(read(word), Some(ours), "{word}");
        }
        assert_eq!(read("maybe"), None);
    }
}
