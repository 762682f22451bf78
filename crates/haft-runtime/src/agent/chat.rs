//! One conversation: it is opened, somebody says something, and it is followed to its end.

use super::agents::is_told;
use super::drive::Drive;
use super::model::{Model, ModelRef};
use super::notes::Edits;
use super::purse::{Micros, Purse};
use super::settings::Role;
use super::told::{Ended, Told, Watch};
use crate::approver::Approver;
use crate::halt::Halt;
use crate::pipeline::Haft;
use crate::store_error;
use crate::tool::BoxFuture;
use haft_core::agent::wire::Effort;
use haft_core::agent::{Block, Message, Usage};
use haft_core::policy::Autonomy;
use haft_core::preview::{cut, inert};
use haft_core::record::masked;
use haft_core::{CallError, CallId, Caller, Origin, SessionId};
use haft_store::Note;
use haft_store::talks::{NewTalk, Standing, Talk, TalkTerms};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::mpsc;

/// How wide a conversation's title is.
const TITLE: usize = 80;
/// The tool that reads skills.
const SKILL_READ: &str = "skill.read";

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
    /// The tokens of its parent, if it is a child: what it reads and writes is taken from both.
    pub tokens: Option<Arc<Purse>>,
    /// What it may spend; a purse by the settings if none.
    pub purse: Option<Arc<Purse>>,
    /// Whose child it is, if it is one.
    pub child: Option<Child>,
    /// How much it may do by itself, where that is less than the settings let it.
    pub autonomy: Option<Autonomy>,
}

/// What makes a conversation a child's.
#[derive(Debug, Clone)]
pub struct Child {
    /// Its parent's session.
    pub above: SessionId,
    /// The name of its role.
    pub role: Option<String>,
    /// `sync`, `background` or `worktree`.
    pub mode: &'static str,
    /// The directory that it works in, where that is not the project.
    pub place: Option<String>,
    /// The calls that led to it, the outermost first.
    pub parents: Vec<CallId>,
    /// What it was asked for, so that it can be spoken to again.
    pub asked: Option<String>,
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
    /// What somebody says meanwhile: told with the next results. What is in no message when it has ended was not said, unless it
    /// is a child's conversation: whoever said it has it back, and decides again.
    pub meanwhile: Option<mpsc::UnboundedReceiver<Vec<Block>>>,
}

/// A conversation. It is kept in the store, and can be opened again by its session.
pub struct Chat<'h> {
    pub(super) haft: &'h Haft,
    pub(super) who: Who,
    pub(super) history: Vec<Message>,
    /// How many of the messages are written down for good.
    saved: usize,
    writer: String,
    pub(super) total: Total,
    pub(super) purse: Arc<Purse>,
    /// What is left of what may be used up for what a person said last.
    pub(super) left: Option<Left>,
    /// The same of tokens, which its children share.
    pub(super) tokens: Option<Arc<Purse>>,
    /// The notes that are told and not written down yet as a part of what was said.
    pub(super) told: Vec<Note>,
    /// The budget that was chosen for it; none if it has that of the settings.
    budget: Option<Micros>,
    talk: Talk,
}

/// What may still be used up.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Left {
    pub(super) turns: u32,
    pub(super) until_ms: Option<i64>,
}

/// What a conversation has used since it began.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Total {
    pub(super) usage: Usage,
    pub(super) cost: Option<u64>,
    pub(super) turns: i64,
    pub(super) calls: i64,
}

/// Writing down what was said: how many messages that is, unless it is somebody else's by now.
pub(super) type Keeping = BoxFuture<'static, Result<Option<usize>, CallError>>;

impl<'h> Chat<'h> {
    /// Opens a conversation: a new one, or one that goes on. Whoever had it open before cannot go on with it.
    pub async fn open(haft: &'h Haft, who: Who) -> Result<Self, CallError> {
        let child = who.child.as_ref();
        let new = NewTalk {
            session: who.session.clone(),
            root: haft.workspace.stored_root(),
            title: String::new(),
            above: child.map(|child| child.above.to_string()),
            role: child.and_then(|child| child.role.clone()),
            mode: child.map_or("main", |child| child.mode),
            place: child.and_then(|child| child.place.clone()),
            asked: child.and_then(|child| child.asked.clone()),
        };
        let writer = crate::new_mark();
        let (talk, history) = haft.store.open_talk(new, writer.clone()).await.map_err(store_error)?;
        let saved = history.len();
        let names: Vec<_> = talk.active.iter().filter_map(|name| haft_core::ToolName::new(name).ok()).collect();
        haft.active.restore(&who.session, names);
        let total = Total {
            usage: talk.usage,
            cost: talk.cost_micros.and_then(|cost| u64::try_from(cost).ok()),
            turns: talk.turns,
            calls: talk.calls,
        };
        let budget = match &who.purse {
            Some(purse) => purse.limit(),
            None => talk.terms.max_micros.and_then(|micros| u64::try_from(micros).ok()),
        };
        let purse = who.purse.clone().unwrap_or_else(|| {
            let spent = talk.spent_micros.and_then(|spent| u64::try_from(spent).ok()).unwrap_or_default();
            Purse::resumed(budget.or(haft.settings.agent.max_micros), spent)
        });
        let who = as_before(who, &talk.terms);
        Ok(Self {
            haft,
            who,
            history: haft_core::agent::pairs::mend(history),
            saved,
            writer,
            total,
            purse,
            left: None,
            tokens: None,
            told: Vec::new(),
            budget,
            talk,
        })
    }

    /// Looks whether a conversation could be had, before one is begun.
    pub async fn possible(haft: &Haft, who: &Who) -> Result<(), CallError> {
        haft.models().chain(&who.models).await.map(drop)
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

    /// How it stood when it was opened.
    pub fn talk(&self) -> &Talk {
        &self.talk
    }

    /// The model that is asked next; none if that is for the settings to say.
    pub fn model(&self) -> Option<&ModelRef> {
        self.who.models.first().or_else(|| self.who.role.as_ref()?.model.as_ref())
    }

    /// Asks other models from now on.
    pub fn use_models(&mut self, models: Vec<super::ModelRef>) {
        self.who.models = models;
    }

    /// Keeps which models are asked, so that they are when somebody goes on with it.
    pub async fn keep_models(&mut self) -> Result<(), CallError> {
        let models = self.models().await?;
        self.keep_terms(&models).await
    }

    /// Says something, and follows what comes of it to its end.
    pub async fn say(&mut self, blocks: Vec<Block>, door: Door<'_>) -> Result<Ended, CallError> {
        (self.left, self.tokens) = (None, None);
        self.hear(blocks, door).await
    }

    /// The same for what nobody says but a child that has ended: it may use up what is left of the last time.
    pub async fn hear(&mut self, blocks: Vec<Block>, door: Door<'_>) -> Result<Ended, CallError> {
        let models = self.models().await?;
        if self.talk.title.is_empty() {
            self.talk.title = title(&blocks);
        }
        self.keep_terms(&models).await?;
        self.haft.note_edits(&self.who.session, Edits::All).await?;
        let blocks = self.with_reports(blocks).await?;
        let watch = Arc::clone(&door.watch);
        let skills = self.skills().await?;
        let ended = Drive::new(self, models, door, skills.as_deref()).follow(blocks).await;
        self.forget_reports().await;
        let ended = ended?;
        watch(&Told::Done { ended: Box::new(ended.clone()) });
        Ok(ended)
    }

    /// What the model is told of skills, if it may read them. The tool for that is told along with it.
    async fn skills(&self) -> Result<Option<String>, CallError> {
        let haft = self.haft;
        let Some(entry) = haft.registry.get(SKILL_READ).filter(|_| haft.told.is_none()) else { return Ok(None) };
        if haft.settings.policy().admits(entry.spec(), &self.who.caller).is_err() {
            return Ok(None);
        }
        let told = crate::skills::section(&haft.skills.offered().await?);
        if told.is_some() {
            haft.active.activate(&self.who.session, [entry.spec().name.clone()]);
        }
        Ok(told)
    }

    /// What is said, after what children had to say when nobody listened.
    async fn with_reports(&self, blocks: Vec<Block>) -> Result<Vec<Block>, CallError> {
        let waiting = self.haft.store.reports(&self.who.session).await.map_err(store_error)?;
        let known = || self.history.iter().flat_map(|message| &message.blocks).chain(&blocks);
        let new = waiting.into_iter().filter(|(id, report)| !is_told(known(), id, report));
        let reports: Vec<Block> = new.map(|(_, text)| Block::Text { text }).collect();
        Ok(reports.into_iter().chain(blocks).collect())
    }

    /// What was told is kept as a part of the conversation, and no longer apart from it. If that fails it is told twice.
    async fn forget_reports(&self) {
        for (id, report) in self.haft.store.reports(&self.who.session).await.unwrap_or_default() {
            if is_told(self.history.iter().flat_map(|message| &message.blocks), &id, &report) {
                let _ = self.haft.store.drop_report(&self.who.session, &id).await;
            }
        }
    }

    /// How hard the model is to think.
    pub(super) fn effort(&self) -> Option<Effort> {
        self.who.effort.or_else(|| self.who.role.as_ref()?.effort).or(self.haft.settings.agent.effort)
    }

    /// Keeps by what it goes, before a model is asked by it.
    async fn keep_terms(&mut self, models: &[Arc<dyn Model>]) -> Result<(), CallError> {
        let word = |effort| serde_json::to_value(effort).ok()?.as_str().map(str::to_owned);
        let terms = TalkTerms {
            models: models.iter().map(|model| model.name().to_string()).collect(),
            effort: self.effort().and_then(word),
            max_micros: self.budget.and_then(|micros| i64::try_from(micros).ok()),
            max_turns: self.who.max_turns.map(i64::from),
            max_tokens: self.who.max_tokens.and_then(|tokens| i64::try_from(tokens).ok()),
        };
        if terms != self.talk.terms {
            let by = (self.who.session.clone(), self.writer.clone());
            if !self.haft.store.keep_terms(by, terms.clone()).await.map_err(store_error)? {
                return Err(taken(&self.who.session));
            }
            self.talk.terms = terms;
        }
        Ok(())
    }

    async fn models(&self) -> Result<Vec<Arc<dyn Model>>, CallError> {
        let role = self.who.role.as_ref().and_then(|role| role.model.clone());
        let wanted = match (self.who.models.is_empty(), role) {
            (true, Some(own)) => vec![own],
            _ => self.who.models.clone(),
        };
        let models = self.haft.models().chain(&wanted).await?;
        let unpriced = models.iter().find(|model| model.facts().price.is_none());
        match unpriced.filter(|_| self.purse.left().is_some()) {
            Some(model) => {
                Err(CallError::invalid(format!("nobody knows what {} costs, and money is limited", model.name()))
                    .hint("name its prices under `models.known`, or set no limit"))
            }
            None => Ok(models),
        }
    }

    /// Writes down what was said since it was last written down, and what is being said. What comes of it is for
    /// [`Self::kept`].
    pub(super) fn keeping(&self, history: &[Message], draft: &[Message], model: &str, state: &str) -> Keeping {
        // The last one may have got longer.
        let from = self.saved.saturating_sub(1).min(history.len());
        let messages = history[from..].iter().chain(draft).map(written).collect();
        let standing = Standing {
            model: model.to_owned(),
            state: state.to_owned(),
            usage: self.total.usage,
            cost_micros: self.total.cost.and_then(|cost| i64::try_from(cost).ok()),
            turns: self.total.turns,
            calls: self.total.calls,
            active: self.haft.active.of(&self.who.session).iter().map(ToString::to_string).collect(),
            spent_micros: i64::try_from(self.purse.spent()).unwrap_or(i64::MAX),
            told: self.told.clone(),
        };
        let by = (self.who.session.clone(), self.writer.clone());
        let (store, title, so_many) = (self.haft.store.clone(), self.talk.title.clone(), history.len());
        Box::pin(async move {
            let own = store.keep_talk(by, from, title, messages, standing).await.map_err(store_error)?;
            Ok(own.then_some(so_many))
        })
    }

    /// Which turn this is: how often a model was asked. One whose answer is still being told is not counted yet.
    pub(super) fn turn(&self, is_telling: bool) -> Option<u32> {
        Some(u32::try_from(self.total.turns).ok()? + u32::from(is_telling))
    }

    /// Something was written down, or somebody else goes on with it.
    pub(super) fn kept(&mut self, kept: Result<Option<usize>, CallError>) -> Result<(), CallError> {
        self.saved = kept?.ok_or_else(|| taken(&self.who.session))?;
        self.told.clear();
        Ok(())
    }

    /// A message that is written down is another one now.
    pub(super) fn changed(&mut self, at: usize) {
        self.saved = self.saved.min(at + 1);
    }

    /// What is sent is this from now on.
    pub(super) async fn keep_shorter(&mut self, history: &[Message]) -> Result<(), CallError> {
        let messages = history.iter().map(written).collect();
        let by = (self.who.session.clone(), self.writer.clone());
        let kept = self.haft.store.shorten_talk(by, messages).await.map_err(store_error);
        self.kept(kept.map(|own| own.then_some(history.len())))
    }
}

/// A message as it is written down: without the secrets of the calls that it makes. The calls themselves are made as they
/// were said.
fn written(message: &Message) -> String {
    let mut message = message.clone();
    for block in &mut message.blocks {
        if let Block::Use { input, .. } = block {
            *input = masked(input, &Value::Null, &[]);
        }
    }
    serde_json::to_string(&message).unwrap_or_default()
}

/// Who converses, by what the conversation went before, as far as nobody says otherwise. A child goes by what it is asked for.
fn as_before(who: Who, terms: &TalkTerms) -> Who {
    if who.child.is_some() {
        return who;
    }
    let role = who.role.as_ref();
    let models = || terms.models.iter().filter_map(|name| ModelRef::parse(name)).collect();
    let effort = || serde_json::from_value(Value::from(terms.effort.clone()?)).ok();
    Who {
        models: if who.models.is_empty() && role.is_none_or(|role| role.model.is_none()) {
            models()
        } else {
            who.models.clone()
        },
        effort: if role.is_some_and(|role| role.effort.is_some()) { who.effort } else { who.effort.or_else(effort) },
        max_turns: who.max_turns.or_else(|| terms.max_turns.and_then(|turns| u32::try_from(turns).ok())),
        max_tokens: who.max_tokens.or_else(|| terms.max_tokens.and_then(|tokens| u64::try_from(tokens).ok())),
        ..who
    }
}

fn taken(session: &SessionId) -> CallError {
    CallError::conflict(format!("somebody else goes on with the conversation {session}; this one stops here"))
        .hint("`haft run --resume` takes it up again, in one place at a time")
}

fn title(blocks: &[Block]) -> String {
    let words = blocks.iter().find_map(|block| match block {
        Block::Text { text } if !text.trim().is_empty() => Some(text.trim()),
        _ => None,
    });
    cut(&inert(words.unwrap_or_default().lines().next().unwrap_or_default()), TITLE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn calls_are_written_down_without_their_secrets() {
        let input = json!({"command": "PGPASSWORD=hunter2 psql", "args": ["x"]});
        let call = Block::Use { id: "1".to_owned(), name: "shell_exec".to_owned(), input, mark: None };
        let text = Block::Text { text: "I look at the database.".to_owned() };
        let message = Message { role: haft_core::agent::Role::Assistant, blocks: vec![text, call] };
        let kept = written(&message);
        assert!(kept.contains("PGPASSWORD=[secret] psql") && !kept.contains("hunter2"), "{kept}");
        assert!(kept.contains("I look at the database."), "{kept}");
    }
}
