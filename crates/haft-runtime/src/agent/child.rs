//! A tool layer for a child: what its parent has, or less, and another directory if it has one of its own.

use crate::maker::Maker;
use crate::pipeline::Haft;
use crate::task::Desk;
use crate::trial::Trials;
use crate::workspace::Workspace;
use haft_core::policy::{Gate, Policy};
use std::sync::{Arc, Mutex};

impl Haft {
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
            trials: Trials::default(),
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
            shelf: Arc::clone(&self.shelf),
            interpreters: Arc::clone(&self.interpreters),
            active: Arc::clone(&self.active),
            finder: Arc::clone(&self.finder),
            agents: Arc::clone(&self.agents),
            models: Arc::clone(&self.models),
        }
    }
}
