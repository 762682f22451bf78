//! Redaction of the audit log and its retention: what records say is removed, with the files that calls left, and the hash
//! chain goes on holding.

use crate::kept;
use crate::pipeline::Haft;
use crate::store_error;
use haft_core::{CallError, CallId};
use haft_store::{Redacted, RedactionScope};
use serde::Serialize;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

/// How often the retention is applied.
const DAY: Duration = Duration::from_hours(24);
/// How often one process looks whether it is due.
const LOOK_AGAIN_MS: i64 = 60 * 60 * 1000;
/// The file whose age says when it was applied last, in the data directory.
const MARKER: &str = "log-retention";
/// Who redacts what is too old.
const RETENTION: &str = "retention";

/// What is to be removed, and why.
#[derive(Debug, Clone)]
pub struct RedactionRequest {
    /// Of which records.
    pub scope: RedactionScope,
    /// Who wants it.
    pub by: String,
    /// Why, for the log.
    pub why: Option<String>,
    /// Whether full outputs and attachments stay.
    pub keep_outputs: bool,
    /// Whether before-images go as well.
    pub before_images: bool,
}

/// What was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogRedaction {
    /// From the log.
    #[serde(flatten)]
    pub redacted: Redacted,
    /// How many files of outputs.
    pub outputs: usize,
    /// Of how many calls the before-images.
    pub before_images: usize,
}

impl Haft {
    /// Removes what records of the log say, and what their calls left in files.
    pub async fn redact_log(&self, request: RedactionRequest) -> Result<LogRedaction, CallError> {
        let RedactionRequest { scope, by, why, keep_outputs, before_images } = request;
        let redacted = self.store.redact(scope, &by, why.as_deref()).await.map_err(store_error)?;
        let (data_dir, vault, store) = (self.settings.data_dir.clone(), self.vault.clone(), self.store.clone());
        let calls = redacted.calls.clone();
        let remove = move || {
            let outputs = if keep_outputs { 0 } else { calls.iter().map(|call| remove_outputs(&data_dir, call)).sum() };
            let kept = |call: &&CallId| before_images && vault.of(call).exists();
            let with_images: Vec<&CallId> = calls.iter().filter(kept).collect();
            for call in &with_images {
                vault.drop(&store, call);
            }
            (outputs, with_images.len())
        };
        let removed = tokio::task::spawn_blocking(remove).await;
        let (outputs, before_images) =
            removed.map_err(|crash| CallError::internal(format!("the files could not be removed: {crash}")))?;
        Ok(LogRedaction { redacted, outputs, before_images })
    }

    /// Applies the retention of the log, if there is one and it was not applied within a day. What cannot be removed now is
    /// removed the next time.
    pub(crate) async fn apply_log_retention(&self) {
        let Some(keep) = self.settings.terms.kept.log else { return };
        let now = crate::now_ms();
        let looked = self.retention_looked_ms.swap(now, Ordering::Relaxed);
        if now.saturating_sub(looked) < LOOK_AGAIN_MS {
            return;
        }
        let marker = self.settings.data_dir.join(MARKER);
        let made = std::fs::metadata(&marker).and_then(|meta| meta.modified());
        let is_due = made.map_or(true, |made| SystemTime::now().duration_since(made).unwrap_or_default() >= DAY);
        if !is_due || std::fs::write(&marker, "").is_err() {
            return;
        }
        let days = keep.as_secs() / DAY.as_secs();
        let request = RedactionRequest {
            scope: RedactionScope::Before(now.saturating_sub(i64::try_from(keep.as_millis()).unwrap_or(i64::MAX))),
            by: RETENTION.to_owned(),
            why: Some(format!("older than {days} days (kept.log_days)")),
            keep_outputs: false,
            before_images: false,
        };
        if let Err(error) = self.redact_log(request).await {
            let _ = std::fs::remove_file(&marker);
            tracing::warn!("the log's retention could not be applied: {}", error.message);
        }
    }
}

/// Removes what a call left for people, and says how many files that were.
fn remove_outputs(data_dir: &Path, call: &CallId) -> usize {
    let file = data_dir.join(crate::run::OUTPUTS).join(format!("{call}.txt"));
    let output = usize::from(std::fs::remove_file(file).is_ok());
    let attachments = data_dir.join(kept::ATTACHMENTS).join(call.as_str());
    let count = std::fs::read_dir(&attachments).map(Iterator::count).unwrap_or_default();
    let gone = std::fs::remove_dir_all(&attachments).is_ok();
    output + if gone { count } else { 0 }
}
