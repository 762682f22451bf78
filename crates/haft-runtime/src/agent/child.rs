//! A tool layer for a child: what its parent has, or less, and another directory if it has one of its own.

use super::again::order;
use super::settings::Role;
use super::spawn::{Mode, Order};
use super::tree::Tree;
use crate::halt::Halt;
use crate::maker::Maker;
use crate::memory::Room;
use crate::pipeline::Haft;
use crate::store_error;
use crate::task::Desk;
use crate::workspace::Workspace;
use haft_core::approval::SkillCommands;
use haft_core::policy::{Gate, Policy};
use haft_core::preview::{cut, inert};
use haft_core::{CallError, SessionId};
use haft_store::Approval;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

/// How many generations are looked through.
const DEPTH_MAX: usize = 16;

/// A child as the store knows it: its id, what it was asked for, and whether it works on a copy.
struct Kept {
    id: String,
    order: Order,
    place: Option<String>,
}

impl Haft {
    /// The tool layer in which a call is made that a child asked for: behind its gates and those of all above it, with its
    /// memory and on its copy, as when it was asked. None if no child asked. What cannot be put together again is refused:
    /// this layer may do more than the child.
    pub(crate) async fn around(&self, asked: &Approval) -> Result<Option<Box<Self>>, CallError> {
        let line = self.line_of(asked).await?;
        // Whoever is above the outermost may be somebody's child elsewhere.
        let named = asked.caller.as_ref().map_or(0, |name| name.matches('/').count());
        let above = named.saturating_sub(line.len());
        let mut layer: Option<Box<Self>> = None;
        for (n, child) in line.iter().enumerate() {
            let parent = layer.as_deref().unwrap_or(self);
            let made = parent.made_again(child, above + n).await;
            layer = Some(Box::new(made.map_err(|error| {
                let why = format!("{} cannot be done as its agent would have: {}", asked.id, error.message);
                CallError { message: why, ..error }
            })?));
        }
        Ok(layer)
    }

    /// Which agent asks, if it works for another one, and where it works, if that is not the project.
    pub async fn asker_of(&self, asked: &Approval) -> Option<String> {
        let child = asked.caller.clone().filter(|agent| agent.contains('/'))?;
        let line = self.line_of(asked).await.unwrap_or_default();
        let place = line.into_iter().rev().find_map(|kept| kept.place);
        Some(place.map_or_else(|| child.clone(), |dir| format!("{child}, in {dir}")))
    }

    /// The children that led to a question, the outermost first.
    async fn line_of(&self, asked: &Approval) -> Result<Vec<Kept>, CallError> {
        let unknown = |session: &str| {
            let agent = cut(&inert(session), 80);
            CallError::conflict(format!("{} was asked by {agent}, of which not enough is known any more", asked.id))
                .hint(format!("`haft approvals reject {}` says no", asked.id))
        };
        let mut line = VecDeque::new();
        let mut next = asked.session.clone();
        while let Some(session) = next {
            let id = SessionId::new(&session).ok_or_else(|| unknown(&session))?;
            let talk = self.store.talk(&id).await.map_err(store_error)?;
            let child = session.strip_prefix("agent-");
            next = talk.as_ref().and_then(|talk| talk.above.clone());
            let (id, talk) = match (child, talk) {
                (None, _) if next.is_none() => break,
                (Some(id), Some(talk)) if next.is_some() && line.len() < DEPTH_MAX => (id.to_owned(), talk),
                _ => return Err(unknown(&session)),
            };
            let order = order(&talk).ok_or_else(|| unknown(&session))?;
            line.push_front(Kept { id, order, place: talk.place });
        }
        Ok(line.into())
    }

    /// A child's layer, as it was when it was spawned and as its role is now.
    async fn made_again(&self, Kept { id, order, place }: &Kept, depth: usize) -> Result<Self, CallError> {
        let role = self.role_of(order, &self.roles().await?)?;
        let workspace = if order.mode == Mode::Worktree || place.is_some() {
            let (parent, data_dir, id) = (Arc::clone(&self.workspace), self.settings.data_dir.clone(), id.clone());
            let open = move || Tree::load(&data_dir, &id)?.workspace(&parent);
            Some(crate::tool::off_thread(Halt::new(), open).await?)
        } else {
            None
        };
        self.child_layer((id, order), role.as_ref(), depth, workspace, &mut Vec::new())
    }

    /// The role that a child is to have.
    pub(super) fn role_of(&self, order: &Order, roles: &BTreeMap<String, Role>) -> Result<Option<Role>, CallError> {
        let find = |name: &String| roles.get(name).cloned().ok_or_else(|| self.unknown_role(name, roles));
        order.role.as_ref().map(find).transpose()
    }

    /// The layer of a child of whoever is so deep: behind its gates, in its part of memory, on its copy.
    pub(super) fn child_layer(
        &self,
        (id, order): (&str, &Order),
        role: Option<&Role>,
        depth: usize,
        workspace: Option<Workspace>,
        warnings: &mut Vec<String>,
    ) -> Result<Self, CallError> {
        let gates = self.gates(order, role, depth, warnings)?;
        let mut layer = self.narrowed(gates, workspace);
        if let Some(narrowing) = order.narrowing.as_ref().filter(|narrowing| !narrowing.commands.is_empty()) {
            let skill = order.skill.as_deref().unwrap_or_default();
            let voice = SkillCommands::new(skill, &narrowing.commands);
            layer.settings.chain.add(Arc::new(voice.map_err(|error| CallError::invalid(error.to_string()))?));
        }
        if order.isolated_memory {
            layer.room = Room::own(id);
        }
        Ok(layer)
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
            retention_looked_ms: Arc::clone(&self.retention_looked_ms),
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
            shown_questions: Arc::clone(&self.shown_questions),
            heard: Mutex::default(),
            web: Arc::clone(&self.web),
            browsers: Arc::clone(&self.browsers),
            media: Arc::clone(&self.media),
            memory: Arc::clone(&self.memory),
            room: self.room.clone(),
            shelf: Arc::clone(&self.shelf),
            skills: Arc::clone(&self.skills),
            interpreters: Arc::clone(&self.interpreters),
            active: Arc::clone(&self.active),
            finder: Arc::clone(&self.finder),
            agents: Arc::clone(&self.agents),
            models: Arc::clone(&self.models),
            told: None,
        }
    }
}
