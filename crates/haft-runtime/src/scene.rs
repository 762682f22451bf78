//! What a running tool sees of the world: its arguments, the places it may use, and ways to be stopped
//! and to report progress. Nothing else.

use crate::events::{Event, Events};
use crate::halt::Halt;
use crate::seen::Seen;
use crate::workspace::Workspace;
use haft_core::place::Place;
use haft_core::{Admitted, CallError};
use haft_store::Store;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// A tool's view of one call. Cheap to clone.
#[derive(Clone)]
pub struct Scene {
    admitted: Arc<Admitted>,
    workspace: Arc<Workspace>,
    store: Store,
    events: Events,
    halt: Halt,
}

impl Scene {
    pub(crate) fn new(
        admitted: Arc<Admitted>,
        workspace: Arc<Workspace>,
        store: Store,
        events: Events,
        halt: Halt,
    ) -> Self {
        Self { admitted, workspace, store, events, halt }
    }

    /// The arguments: canonical, valid, defaults filled.
    pub fn args(&self) -> &Value {
        self.admitted.checked().args()
    }

    /// The arguments as a type.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, CallError> {
        T::deserialize(self.args())
            .map_err(|error| CallError::invalid(format!("the arguments cannot be read: {error}")))
    }

    /// The place that a parameter names, as it was decided upon.
    pub fn place(&self, param: &str) -> Result<&Place, CallError> {
        let places = &self.admitted.facts().places;
        places
            .iter()
            .find(|place| place.param == param)
            .ok_or_else(|| CallError::invalid(format!("`{param}` is missing")))
    }

    /// The validated, permitted call.
    pub fn admitted(&self) -> &Admitted {
        &self.admitted
    }

    /// The project and its roots.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// The store, for tools that are about haft's own state.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What this session has read.
    pub fn seen(&self) -> Seen<'_> {
        Seen::new(&self.store, &self.admitted.checked().call().session)
    }

    /// The call's end before its end.
    pub fn halt(&self) -> &Halt {
        &self.halt
    }

    /// A path as a person would write it.
    pub fn shown(&self, path: &Path) -> String {
        self.workspace.shown(path)
    }

    /// Tells whoever listens how far the work is.
    pub fn progress(&self, message: impl Into<String>) {
        let call_id = self.admitted.checked().call().id.clone();
        self.events.send(Event::Progress { call_id, message: message.into() });
    }
}
