//! One conversation, driven.

use super::purse::Purse;
use super::settings::Role;
use super::told::{Ended, Watch};
use crate::approver::Approver;
use crate::halt::Halt;
use crate::pipeline::Haft;
use haft_core::agent::wire::Effort;
use haft_core::agent::{Block, Message};
use haft_core::{CallError, Caller, Origin, SessionId};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Who converses, and by what it goes. What is not said is as the settings say.
#[derive(Debug, Clone, Default)]
pub struct Who {
    /// Its conversation.
    pub session: SessionId,
    /// On whose behalf calls are made.
    pub caller: Caller,
    /// As what, if it is a child.
    pub role: Option<Role>,
    /// The models to ask, the first choice first; as the settings say if empty.
    pub models: Vec<super::ModelRef>,
    /// How hard they think.
    pub effort: Option<Effort>,
    /// How often a model is asked.
    pub max_turns: Option<u32>,
    /// Tokens read and written.
    pub max_tokens: Option<u64>,
    /// What it is told besides.
    pub instructions: Vec<String>,
    /// What it may spend; a purse by the settings if none.
    pub purse: Option<Arc<Purse>>,
}

/// The door through which somebody converses.
pub struct Door<'d> {
    /// Who is asked about calls.
    pub approver: &'d dyn Approver,
    /// Stops it. What was said stays, and can be gone on from.
    pub halt: &'d Halt,
    /// Which door.
    pub origin: Origin,
    /// Who watches.
    pub watch: Watch,
    /// What somebody says meanwhile: told with the next results.
    pub meanwhile: Option<mpsc::UnboundedReceiver<Vec<Block>>>,
}

/// A conversation. It is kept in the store, and can be opened again by its session.
pub struct Chat<'h> {
    haft: &'h Haft,
    who: Who,
    history: Vec<Message>,
}

impl<'h> Chat<'h> {
    /// Opens a conversation: a new one, or one that goes on.
    pub async fn open(haft: &'h Haft, who: Who) -> Result<Self, CallError> {
        haft.store().create_session(who.session.clone()).await.map_err(crate::store_error)?;
        Ok(Self { haft, who, history: Vec::new() })
    }

    /// What was said, for whoever shows it.
    pub fn messages(&self) -> &[Message] {
        &self.history
    }

    /// The tool layer that it uses.
    pub fn haft(&self) -> &Haft {
        self.haft
    }

    /// Who converses.
    pub fn who(&self) -> &Who {
        &self.who
    }

    /// Says something, and follows what comes of it to its end.
    pub async fn say(&mut self, blocks: Vec<Block>, door: Door<'_>) -> Result<Ended, CallError> {
        let _ = (blocks, door);
        std::future::ready(Err(CallError::internal("nobody drives conversations yet"))).await
    }
}
