//! Undo of what a call changed in memory.

use crate::pipeline::Haft;
use crate::{new_call_id, store_error};
use haft_core::outcome::Undo;
use haft_core::record::Kind;
use haft_core::{CallError, CallId};
use haft_store::{Entry, Restored};

impl Haft {
    /// Takes back what a call changed in memory; nothing if it changed nothing there.
    pub(crate) async fn undo_memory(&self, call: &CallId) -> Result<Option<(CallId, Undo)>, CallError> {
        if !self.store.memory_can_undo(call).await.map_err(store_error)? {
            return Ok(None);
        }
        let id = new_call_id();
        let about = |said: &str| Entry::new(Kind::Undo).call(&id).with("undoes", call.as_str()).with("said", said);
        self.store.open_call(&id, "undo", about("intent")).await.map_err(store_error)?;
        let done = self.store.memory_undo(call, &id).await.map_err(store_error);
        let restored = matches!(done, Ok(Some(Restored::Done { .. })));
        self.store.close_call(&id, about(if restored { "done" } else { "failed" }));
        match done? {
            Some(Restored::Done { namespace }) => {
                let available = self.store.memory_can_undo(&id).await.map_err(store_error)?;
                Ok(Some((id, Undo { available, files: vec![format!("memory {namespace}")], reason: None })))
            }
            Some(Restored::ChangedSince { namespace }) => {
                let why = format!("{call} cannot be undone: changed since: memory {namespace}");
                Err(CallError::conflict(why).hint("memory.read shows what it says now"))
            }
            None => Ok(None),
        }
    }
}
