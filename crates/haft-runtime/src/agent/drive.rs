//! Following a conversation: events for the state machine, and what it wants done.
//!
//! Everything that goes on at once is awaited in one place ([`Drive::next`]): the answer as it is said, the calls, what
//! somebody says meanwhile, the clock. What is said is written down before it has an effect.

mod answers;
mod funds;
mod parts;

use super::agents::{Live, Lived};
use super::chat::{Chat, Door, Keeping, Left};
use super::model::Model;
use super::notes::{DECIDED, edits_note};
use super::offer::{Like, Offer, system};
use super::purse::Purse;
use super::result::told;
use super::shorten::{SUMMARY_MAX, Shorter, shorter};
use super::told::{Ended, Told, Watch};
use crate::approver::Approver;
use crate::events::Event as Heard;
use crate::halt::Halt;
use crate::pipeline::Haft;
use crate::tool::BoxFuture;
use crate::{new_call_id, now_ms, store_error};
use funds::Held;
use haft_core::agent::compact::weigh;
use haft_core::agent::turns::{Effect, End, Event, Limits, Turns};
use haft_core::agent::{Block, Message};
use haft_core::{Call, CallError, CallId, ErrorKind, Origin, Outcome, provider::Provider};
use haft_store::NoteKind;
use parts::{Asking, CALLS_MAX, Calls, as_asked, called, done, more, preview, said, state, until};
use serde_json::Value;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{Semaphore, broadcast, mpsc};

/// How many pieces of an answer may wait to be taken in.
const PIECES: usize = 256;
/// A conversation being followed.
pub(super) struct Drive<'c, 'h, 'd> {
    chat: &'c mut Chat<'h>,
    models: Vec<Arc<dyn Model>>,
    turns: Turns,
    effects: VecDeque<Effect>,
    door: Through<'d>,
    offer: Arc<Offer>,
    system: Vec<String>,
    /// What it may read and write, with its children.
    tokens: Arc<Purse>,
    asking: Option<Asking>,
    calls: Option<Calls<'d>>,
    /// What was said, while it is being written down.
    keeping: Option<Keeping>,
    rest_until: Option<i64>,
    shortening: Option<BoxFuture<'d, Option<Shorter>>>,
    /// Money and tokens for that.
    set_aside: Option<Held>,
    heard: broadcast::Receiver<Heard>,
    /// What children in the background report.
    reports: mpsc::UnboundedReceiver<Vec<Block>>,
    _lived: Lived,
    /// Of this run, not of the whole conversation.
    run: Run,
}

/// The door, taken apart.
struct Through<'d> {
    approver: &'d dyn Approver,
    halt: &'d Halt,
    origin: Origin,
    watch: Watch,
    meanwhile: Option<mpsc::UnboundedReceiver<Vec<Block>>>,
}

#[derive(Default)]
struct Run {
    begun: Option<Instant>,
    until_ms: Option<i64>,
    calls: u32,
    cost: Option<u64>,
    last_model: usize,
    why: String,
    seed: u64,
    /// What the last answer read and wrote.
    filled: u64,
    /// How many of the messages whoever watches has been told of.
    announced: usize,
    /// What may be used up, at the beginning.
    left: Left,
    /// What had been spent before.
    spent: u64,
    /// The provider in whose form the offered tools were looked through.
    declared_to: Option<Provider>,
    /// The warnings about declarations that were given.
    warned: BTreeSet<String>,
    /// Whether the provider asked for the wait that comes next.
    requested: bool,
    /// Whether the notes for the next request have been taken in.
    noted: bool,
    /// Whether something was paid for that is not written down yet.
    paid: bool,
}

impl<'c, 'h: 'd, 'd> Drive<'c, 'h, 'd> {
    pub(super) fn new(
        chat: &'c mut Chat<'h>,
        models: Vec<Arc<dyn Model>>,
        door: Door<'d>,
        skills: Option<&str>,
    ) -> Self {
        let haft = chat.haft;
        let settings = &haft.settings.agent;
        let until_ms = settings.max_time.map(|time| now_ms() + i64::try_from(time.as_millis()).unwrap_or(i64::MAX / 2));
        let left = chat.left.take().unwrap_or(Left {
            turns: chat.who.max_turns.unwrap_or(settings.max_turns).min(settings.max_turns),
            until_ms,
        });
        let Left { turns, until_ms } = left;
        let tokens = chat.tokens.take().unwrap_or_else(|| {
            let most = [chat.who.max_tokens, settings.max_tokens].into_iter().flatten().min();
            chat.who.tokens.as_ref().map_or_else(|| Purse::new(most), |above| above.share(most))
        });
        chat.tokens = Some(Arc::clone(&tokens));
        let limits = Limits {
            turns: Some(turns),
            until_ms,
            window: models.first().map(|model| model.facts().window),
            fallbacks: models.len().saturating_sub(1),
            seed: crate::chance(),
        };
        let caller = as_asked(&chat.who.caller, models.first());
        let offer = Arc::new(Offer::new(haft, &caller, &haft.active.of(&chat.who.session)));
        let system = system(haft, &chat.who, offer.deferred, skills);
        let Door { approver, halt, origin, watch, meanwhile } = door;
        let (announced, spent) = (chat.history.len(), chat.purse.spent());
        let seed = u64::try_from(announced).unwrap_or_default();
        let (say, reports) = mpsc::unbounded_channel();
        let live = Live {
            purse: Arc::clone(&chat.purse),
            models: models.iter().map(|model| model.name().clone()).collect(),
            effort: chat.who.effort,
            tokens: Arc::clone(&tokens),
            like: Like::of(haft, &chat.who.caller, &system),
            watch: Arc::clone(&watch),
            say,
            room: Arc::new(Semaphore::new(settings.max_children.max(1))),
        };
        let lived = haft.agents.begin(&chat.who.session, live);
        Self {
            turns: Turns::new(std::mem::take(&mut chat.history), limits),
            chat,
            models,
            effects: VecDeque::new(),
            door: Through { approver, halt, origin, watch, meanwhile },
            offer,
            system,
            tokens,
            asking: None,
            calls: None,
            keeping: None,
            rest_until: None,
            shortening: None,
            set_aside: None,
            heard: haft.events.listen(),
            reports,
            _lived: lived,
            run: Run { begun: Some(Instant::now()), until_ms, seed, announced, left, spent, ..Run::default() },
        }
    }

    /// Says something, and follows what comes of it to its end. Whatever happens, the conversation is as it was left.
    pub(super) async fn follow(mut self, blocks: Vec<Block>) -> Result<Ended, CallError> {
        self.tell(&Told::Start {
            session: self.chat.who.session.clone(),
            model: self.model(0),
            tools: self.offer.len(),
            deferred: self.offer.deferred,
        });
        let done = self.go(blocks).await;
        let state = match &done {
            Ok(end) => state(end),
            Err(_) => "failed".to_owned(),
        };
        let end = match done {
            Ok(end) => end,
            Err(error) => {
                // What was under way is told as cut off.
                self.turns.on(Event::Cancel, now_ms());
                self.halt_calls().await;
                self.close_unsaid();
                let model = self.model(self.run.last_model);
                // It may be somebody else's by now.
                let _ = self.keep(&state, &model).await;
                self.chat.history = self.turns.take_history();
                return Err(error);
            }
        };
        self.close_unsaid();
        self.count_children();
        let left = self.run.left;
        self.chat.left = Some(Left { turns: left.turns.saturating_sub(self.turns.asked()), until_ms: left.until_ms });
        let model = self.model(self.run.last_model);
        let kept = self.keep(&state, &model).await;
        self.announce();
        self.chat.history = self.turns.take_history();
        kept?;
        Ok(self.ended(end))
    }

    fn ended(&self, end: End) -> Ended {
        let last = self.chat.history.last().filter(|last| last.role == haft_core::agent::Role::Assistant);
        let took = self.run.begun.map(|begun| begun.elapsed()).unwrap_or_default();
        Ended {
            session: self.chat.who.session.clone(),
            end,
            text: last.map(Message::text).unwrap_or_default(),
            turns: self.turns.asked(),
            calls: self.run.calls,
            usage: self.turns.usage(),
            cost_micros: self.run.cost,
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// A child has nobody who types: what was said to it stays said.
    fn close_unsaid(&mut self) {
        if self.chat.who.child.is_some() {
            self.turns.keep_unsaid();
        }
    }

    async fn go(&mut self, blocks: Vec<Block>) -> Result<End, CallError> {
        let notes = self.take_notes().await?;
        self.run.noted = true;
        self.on(Event::Say(notes.into_iter().chain(blocks).collect()));
        loop {
            while let Some(effect) = self.effects.pop_front() {
                if let Some(end) = self.act(effect).await? {
                    self.halt_calls().await;
                    return Ok(end);
                }
            }
            let event = self.next().await?;
            // If both happen in one moment, whoever stops it goes first: nothing more is asked.
            if self.door.halt.check().is_err() {
                self.on(Event::Cancel);
            }
            self.on(event);
            if self.run.paid && self.effects.is_empty() {
                // A call may take long, and what its answer cost must outlive this process.
                let model = self.model(self.run.last_model);
                self.begin_keeping(&model);
            }
        }
    }

    /// Takes in what happened outside the conversation and its model does not know. It waits in the store until it is written
    /// down as a part of what was said.
    async fn take_notes(&mut self) -> Result<Vec<Block>, CallError> {
        let haft = self.haft();
        let (mut texts, mut edits) = (Vec::new(), Vec::new());
        for note in haft.store.notes(&self.chat.who.session).await.map_err(store_error)? {
            if self.chat.told.contains(&note) {
                continue;
            }
            match note.kind {
                NoteKind::Approval => {
                    let Some(text) = haft.decided_note(&note.id).await? else { continue };
                    let decided = CallId::parse(&note.id).and_then(|id| self.turns.decided(&id, DECIDED));
                    if let Some(at) = decided {
                        self.chat.changed(at);
                    }
                    texts.push(text);
                }
                NoteKind::Edit => edits.push(note.text.clone()),
                NoteKind::Undo | NoteKind::Process | NoteKind::Report => texts.push(note.text.clone()),
            }
            self.chat.told.push(note);
        }
        if !edits.is_empty() {
            texts.push(edits_note(&edits));
        }
        Ok(texts.into_iter().map(|text| Block::Text { text }).collect())
    }

    /// Begins to write down what was said, while something else goes on.
    fn begin_keeping(&mut self, model: &str) {
        self.run.paid = false;
        self.keeping = Some(self.chat.keeping(self.turns.history(), &self.turns.draft(), model, "running"));
    }

    fn on(&mut self, event: Event) {
        let effects = self.turns.on(event, now_ms());
        self.effects.extend(effects);
    }

    fn tell(&self, told: &Told) {
        (self.door.watch)(told);
    }

    /// Tells of the messages that are whole by now.
    fn announce(&mut self) {
        let history = self.turns.history();
        for message in history.get(self.run.announced..).unwrap_or_default() {
            // What was never called is seen nowhere else.
            for (_, name, _) in message.uses().filter(|(.., input)| !input.is_object()) {
                let message = format!("{name} was not called: its arguments are no JSON object");
                self.tell(&Told::Warning { message });
            }
            self.tell(&Told::Message { message: message.clone() });
        }
        self.run.announced = history.len();
    }

    fn model(&self, at: usize) -> String {
        self.models.get(at).map(|model| model.name().to_string()).unwrap_or_default()
    }

    fn haft(&self) -> &'h Haft {
        self.chat.haft
    }

    async fn act(&mut self, effect: Effect) -> Result<Option<End>, CallError> {
        match effect {
            Effect::Ask { model } => {
                if !std::mem::take(&mut self.run.noted) && self.turns.takes_notes() {
                    let notes = self.take_notes().await?;
                    self.turns.note(notes);
                }
                self.ask(model);
            }
            Effect::Call { id, name, input } => self.call(id, name, input).await?,
            Effect::Rest(until) => {
                self.rest_until = Some(until);
                let (why, after_ms) = (self.run.why.clone(), (until - now_ms()).max(0));
                self.tell(&Told::Retry { why, after_ms, requested: self.run.requested });
            }
            Effect::Shorten => {
                // All of it, before any of it is left out.
                let model = self.model(self.run.last_model);
                self.keep("running", &model).await?;
                self.announce();
                self.shorten();
            }
            Effect::HangUp => {
                let _ = self.close_answer();
                (self.asking, self.shortening, self.rest_until) = (None, None, None);
            }
            Effect::Halt => {
                if let Some(calls) = &self.calls {
                    calls.halt.cancel();
                }
            }
            Effect::End(end) => return Ok(Some(end)),
        }
        Ok(None)
    }

    /// Makes a call, once it is written down that it was asked for.
    async fn call(&mut self, id: String, name: String, input: Value) -> Result<(), CallError> {
        if self.calls.as_ref().is_some_and(|calls| calls.left == 0) {
            self.too_many(id);
            return Ok(());
        }
        let model = self.model(self.run.last_model);
        self.keep("running", &model).await?;
        let who = &self.chat.who;
        let caller = as_asked(&who.caller, self.models.get(self.run.last_model));
        let call = Call {
            session: who.session.clone(),
            caller,
            origin: self.door.origin,
            parents: who.child.as_ref().map(|child| child.parents.clone()).unwrap_or_default(),
            turn: self.chat.turn(self.asking.is_some()),
            autonomy: who.autonomy,
            ..Call::new(new_call_id(), name.clone(), input)
        };
        self.tell(&Told::ToolStart {
            id: id.clone(),
            call_id: call.id.clone(),
            name: name.clone(),
            preview: preview(self.haft(), &call),
        });
        (self.run.calls, self.chat.total.calls) = (self.run.calls + 1, self.chat.total.calls + 1);
        let calls = match &mut self.calls {
            Some(calls) => calls,
            none => none.insert(Calls::new(self.chat.haft, self.door.approver, self.door.halt)),
        };
        let sent = match (&calls.sender, calls.left) {
            (Some(sender), 1..) => {
                calls.left -= 1;
                calls.ids.insert(call.id.clone(), id.clone());
                sender.try_send(Ok(call)).is_ok()
            }
            _ => false,
        };
        if !sent {
            self.too_many(id);
        }
        Ok(())
    }

    fn too_many(&mut self, id: String) {
        let text = format!("At most {CALLS_MAX} calls are made at once. This one was not made: make it later.");
        self.on(Event::Called { id, text, images: Vec::new(), failed: true, awaits: None });
    }

    fn shorten(&mut self) {
        let Some(model) = self.models.get(self.run.last_model).cloned() else { return };
        let input = self.estimate(self.turns.history());
        self.set_aside = self.hold(self.price(), input, SUMMARY_MAX);
        if self.set_aside.is_none() {
            self.on(self.lacking(input));
            return;
        }
        self.run.seed += 1;
        let (system, offer) = (self.system.clone(), Arc::clone(&self.offer));
        let seed = format!("{}-short", self.run.seed);
        self.shortening = Some(Box::pin(shorter(model, system, offer, self.turns.history().to_vec(), seed)));
    }

    /// Writes down what was said, and waits until that is done.
    async fn keep(&mut self, state: &str, model: &str) -> Result<(), CallError> {
        self.run.paid = false;
        let keeping = self.chat.keeping(self.turns.history(), &self.turns.draft(), model, state);
        // What was being written before is part of this.
        self.keeping = None;
        self.chat.kept(keeping.await)
    }

    /// Waits for whatever happens next.
    async fn next(&mut self) -> Result<Event, CallError> {
        loop {
            let halt = self.door.halt.clone();
            let event = tokio::select! {
                biased;
                _ = halt.stopped() => Some(Event::Cancel),
                () = until(self.run.until_ms) => Some(Event::Late),
                kept = done(&mut self.keeping) => {
                    self.keeping = None;
                    self.chat.kept(kept)?;
                    None
                }
                said = said(&mut self.asking) => Some(self.said(said)),
                called = called(&mut self.calls) => self.called(called),
                shorter = done(&mut self.shortening) => Some(self.shortened(shorter).await?),
                () = until(self.rest_until) => {
                    self.rest_until = None;
                    Some(Event::Rested)
                }
                more = more(&mut self.door.meanwhile) => Some(Event::Say(more)),
                Some(report) = self.reports.recv() => Some(Event::Say(report)),
                heard = self.heard.recv() => {
                    self.hear(heard);
                    None
                }
            };
            if let Some(event) = event {
                return Ok(event);
            }
        }
    }

    /// What the bus says of this conversation's calls.
    fn hear(&mut self, heard: Result<Heard, broadcast::error::RecvError>) {
        let Ok(Heard::Progress { call_id, message, .. }) = heard else { return };
        if let Some(id) = self.calls.as_ref().and_then(|calls| calls.ids.get(&call_id)) {
            self.tell(&Told::ToolProgress { id: id.clone(), message });
        }
    }

    fn called(&mut self, outcome: Option<Outcome>) -> Option<Event> {
        let Some(outcome) = outcome else {
            self.calls = None;
            return None;
        };
        let id = self.calls.as_mut()?.ids.remove(&outcome.call_id)?;
        Some(self.ended_call(id, outcome))
    }

    /// What the model is told of a call that has ended.
    fn ended_call(&self, id: String, outcome: Outcome) -> Event {
        let (text, images, failed) = told(&outcome);
        let asks = outcome.error.as_ref().is_some_and(|error| error.kind == ErrorKind::ApprovalRequired);
        let awaits = asks.then(|| outcome.call_id.clone());
        self.tell(&Told::ToolEnd { id: id.clone(), outcome: Box::new(outcome) });
        Event::Called { id, text, images, failed, awaits }
    }

    async fn shortened(&mut self, shorter: Option<Shorter>) -> Result<Event, CallError> {
        self.shortening = None;
        let (reserved, price) = (self.set_aside.take(), self.price());
        let Some(Shorter { history, usage }) = shorter else { return Ok(Event::NotShortened) };
        let before = u64::try_from(weigh(self.turns.history())).unwrap_or_default();
        let after = u64::try_from(weigh(&history)).unwrap_or_default();
        if let Some(reserved) = reserved {
            self.pay(reserved, &usage, price);
        }
        self.chat.total.usage += usage;
        if after >= before {
            return Ok(Event::NotShortened);
        }
        self.chat.keep_shorter(&history).await?;
        (self.run.filled, self.run.announced) = (0, history.len());
        self.tell(&Told::Compacted { before, after });
        Ok(Event::Shortened(history))
    }
}
