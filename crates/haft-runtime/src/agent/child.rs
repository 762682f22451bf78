//! A tool layer for a child: what its parent has, or less, and another directory if it has one of its own.

use super::tree::Tree;
use crate::halt::Halt;
use crate::maker::Maker;
use crate::pipeline::Haft;
use crate::store_error;
use crate::task::Desk;
use crate::workspace::Workspace;
use haft_core::policy::{Gate, Policy};
use haft_core::{CallError, SessionId};
use std::sync::{Arc, Mutex};

/// How many generations are looked through.
const DEPTH_MAX: usize = 16;

impl Haft {
    /// The tool layer in which a conversation's calls are made, where that is not this one: around the copy of this project that
    /// a child works on, or one above it. Gates are not needed for what was asked about: it has passed them.
    pub(crate) async fn around(&self, session: Option<&str>) -> Result<Option<Self>, CallError> {
        let mut next = session.and_then(SessionId::new).filter(|_| !self.workspace.is_copy());
        for _ in 0..DEPTH_MAX {
            let Some(session) = next else { return Ok(None) };
            let Some(talk) = self.store.talk(&session).await.map_err(store_error)? else { return Ok(None) };
            if talk.place.is_some() {
                let (workspace, data_dir) = (Arc::clone(&self.workspace), self.settings.data_dir.clone());
                let id = session.as_str().strip_prefix("agent-").unwrap_or_default().to_owned();
                let open = move || Tree::load(&data_dir, &id)?.workspace(&workspace);
                let workspace = crate::tool::off_thread(Halt::new(), open).await?;
                return Ok(Some(self.narrowed(Vec::new(), Some(workspace))));
            }
            next = talk.above.as_deref().and_then(SessionId::new);
        }
        Ok(None)
    }

    /// The same tools, store and rules behind more gates, and in another workspace if one is given. Nothing that holds here
    /// holds any less there.
    pub(crate) fn narrowed(&self, gates: Vec<Gate>, workspace: Option<Workspace>) -> Self {
        let mut settings = self.settings.clone();
        let policy = Policy {
            gates: settings.policy.gates.iter().cloned().chain(gates).collect(),
            ..(*settings.policy).clone()
        };
        settings.policy = Arc::new(policy);
        let (workspace, desk) = match workspace {
            None => (Arc::clone(&self.workspace), Arc::clone(&self.desk)),
            Some(workspace) => {
                let workspace = Arc::new(workspace);
                let maker = Maker {
                    vault: self.vault.clone(),
                    store: self.store.clone(),
                    workspace: Arc::clone(&workspace),
                    policy: Arc::clone(&settings.policy),
                };
                let desk = Desk::new(maker, Arc::clone(&self.terms), settings.undo, settings.keeper.clone());
                (workspace, Arc::new(desk))
            }
        };
        Self {
            registry: Arc::clone(&self.registry),
            workspace,
            store: self.store.clone(),
            settings,
            events: self.events.clone(),
            vault: self.vault.clone(),
            terms: Arc::clone(&self.terms),
            trials: Arc::clone(&self.trials),
            desk,
            lanes: Mutex::default(),
            trees: crate::back::Trees::default(),
            running: Mutex::default(),
            claimed: Mutex::default(),
            heard: Mutex::default(),
            web: Arc::clone(&self.web),
            browsers: Arc::clone(&self.browsers),
            media: Arc::clone(&self.media),
            memory: Arc::clone(&self.memory),
            room: self.room.clone(),
            shelf: Arc::clone(&self.shelf),
            interpreters: Arc::clone(&self.interpreters),
            active: Arc::clone(&self.active),
            finder: Arc::clone(&self.finder),
            agents: Arc::clone(&self.agents),
            models: Arc::clone(&self.models),
            told: None,
        }
    }
}
