//! The loop: a model is asked, its calls are made, it is told what came of them, until it has nothing more to call for.
//!
//! Events in, effects out. A call is made as soon as its arguments are whole, while the model may still be speaking; results
//! are told in the order of the calls, whichever came first. Whatever happens, and whenever, [`Turns::history`] can be sent
//! again: what is not known to have ended is told as cut off.

mod failures;
mod repeats;

use super::gather::Gather;
use super::pairs::{CUT_OFF, check, mend};
use super::talk::{Block, Delta, Image, Message, Role, Stop, Usage};
use super::wire::Scribe;
use crate::CallId;
use repeats::Repeats;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// How often a model that ran into its limit is let go on.
const CONTINUED: u32 = 2;
/// What a model is told that ran into its limit.
pub const GO_ON: &str = "Go on from where you were cut off.";
/// How many calls one answer may make.
const USES: usize = 1024;
/// How much of a model's window may be filled before what was said is made shorter, in percent.
const FULL: u64 = 80;

/// What may be used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// How often the model is asked.
    pub turns: Option<u32>,
    /// Until when.
    pub until_ms: Option<i64>,
    /// How many tokens the model takes at once.
    pub window: Option<u64>,
    /// How many models there are to fall back to, after the first.
    pub fallbacks: usize,
    /// What the jitter of waits is made from.
    pub seed: u64,
}

/// What happens.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Somebody says something.
    Say(Vec<Block>),
    /// The model says something.
    Said(Delta),
    /// The model's stream is over.
    Spoken,
    /// The model could not be asked, or its stream broke off.
    Failed(Failure),
    /// There is no money left to ask it.
    NoFunds,
    /// There are no tokens left for it to read and write.
    NoTokens,
    /// There is no time left.
    Late,
    /// A call ended.
    Called {
        /// Which.
        id: String,
        /// What the model is told.
        text: String,
        /// What it is shown.
        images: Vec<Image>,
        /// Whether it went wrong.
        failed: bool,
        /// The stored question that is still to be decided, if it is one.
        awaits: Option<CallId>,
    },
    /// The pause is over.
    Rested,
    /// What was said is shorter now.
    Shortened(Vec<Message>),
    /// It could not be made shorter.
    NotShortened,
    /// Somebody wants it to stop.
    Cancel,
}

/// Why a model could not be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Of what kind.
    pub kind: FailureKind,
    /// In somebody's words.
    pub message: String,
}

/// Of what kind a failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// Too much is asked of it just now. It may say when to come again.
    Busy(Option<i64>),
    /// It cannot be reached, or broke off.
    Away,
    /// What it says makes no sense.
    Odd,
    /// It was given more than it takes.
    Overflow,
    /// It does not let us in.
    Denied,
    /// It will not take the request as it is.
    Invalid,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Ask a model, with all that was said.
    Ask {
        /// Which of the models: 0 is the first choice.
        model: usize,
    },
    /// Make a call.
    Call {
        /// Its id.
        id: String,
        /// The tool, as the model calls it.
        name: String,
        /// The arguments.
        input: Value,
    },
    /// Wait until then.
    Rest(i64),
    /// Make shorter what was said.
    Shorten,
    /// Stop asking.
    HangUp,
    /// Stop what was called.
    Halt,
    /// It is over.
    End(End),
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The model has said what it wanted to.
    Done,
    /// The model, or its provider, will not say more.
    Refused,
    /// It ran into the limit of what it may write, again and again.
    Length,
    /// It made the same call again and again.
    Loop,
    /// As often as it may.
    Turns,
    /// As many tokens as it may.
    Tokens,
    /// As long as it may.
    Time,
    /// As much money as there is.
    Funds,
    /// More was said than any model here takes.
    Overflow,
    /// No model answered.
    Failed(Failure),
    /// Somebody wanted it to stop.
    Cancelled,
}

/// An agent's conversation under way.
#[derive(Debug)]
pub struct Turns {
    history: Vec<Message>,
    scribe: Scribe,
    limits: Limits,
    phase: Phase,
    /// Said while the model had its turn; told with the next results.
    meanwhile: Vec<Block>,
    /// The calls that were under way when it was stopped: what came of them may still be told.
    cut_off: BTreeSet<String>,
    asked: u32,
    usage: Usage,
    /// How much the last answer read and wrote: what the next one has to read at least.
    filled: u64,
    model: usize,
    failures: u32,
    /// How often, and for how long in all, the provider had the present request wait.
    waits: Waits,
    /// Of the jitter.
    chance: u64,
    continued: u32,
    shortened: bool,
    repeats: Repeats,
}

/// The waits that a provider asked for (`retry-after`). They use up no try.
#[derive(Debug, Clone, Copy, Default)]
struct Waits {
    count: u32,
    asked_ms: i64,
}

#[derive(Debug)]
enum Phase {
    Idle,
    Turn(Turn),
    Resting,
    Shortening,
    Over,
}

/// A model's turn: what it says, and the calls it makes.
#[derive(Debug, Default)]
struct Turn {
    gather: Gather,
    spoken: bool,
    calls: Vec<Slot>,
}

impl Turn {
    /// What was said, with the calls that count.
    fn message(&self) -> Message {
        let mut message = self.gather.message();
        let known = |id: &str| self.calls.iter().any(|slot| slot.id == id);
        message.blocks.retain(|block| !matches!(block, Block::Use { id, .. } if !known(id)));
        message
    }
}

#[derive(Debug)]
struct Slot {
    id: String,
    /// What tells it from other calls.
    what: String,
    result: Option<Block>,
}

impl Turns {
    /// One that goes on from a history, however that ended.
    pub fn new(history: Vec<Message>, limits: Limits) -> Self {
        Self {
            history: mend(history),
            scribe: Scribe::default(),
            limits,
            phase: Phase::Idle,
            meanwhile: Vec::new(),
            cut_off: BTreeSet::new(),
            asked: 0,
            usage: Usage::default(),
            filled: 0,
            model: 0,
            failures: 0,
            waits: Waits::default(),
            chance: limits.seed,
            continued: 0,
            shortened: false,
            repeats: Repeats::default(),
        }
    }

    /// What was said, ready to be sent.
    pub fn history(&self) -> &[Message] {
        &self.history
    }

    /// Whoever writes it down for a provider.
    pub fn scribe(&self) -> &Scribe {
        &self.scribe
    }

    /// What was said, for whoever goes on with it. Nothing is left here.
    pub fn take_history(&mut self) -> Vec<Message> {
        self.scribe.forget();
        std::mem::take(&mut self.history)
    }

    /// What is being said, as it would be told if it were cut off now: the model's words and whole calls, and the results that
    /// are there. It follows [`Turns::history`], and is written down before a call is made, so that no call is forgotten.
    pub fn draft(&self) -> Vec<Message> {
        let Phase::Turn(turn) = &self.phase else { return Vec::new() };
        let message = turn.message();
        let results: Vec<Block> = turn.calls.iter().filter_map(|slot| slot.result.clone()).collect();
        let both = [message, Message { role: Role::User, blocks: results }];
        both.into_iter().filter(|message| !message.blocks.is_empty()).collect()
    }

    /// Adds what was said meanwhile and was not told when it ended. Without this it was not said: whoever said it has it back.
    pub fn keep_unsaid(&mut self) {
        let unsaid = std::mem::take(&mut self.meanwhile);
        self.add(Role::User, unsaid);
    }

    /// Whether a note can be added to what is about to be sent: the model is not in the middle of something that it goes on with.
    pub fn takes_notes(&self) -> bool {
        let goes_on = |block: &Block| matches!(block, Block::Text { text } if text == GO_ON);
        self.history.last().is_some_and(|last| last.role == Role::User && !last.blocks.last().is_some_and(goes_on))
    }

    /// Adds notes to the end of what is about to be sent.
    pub fn note(&mut self, notes: Vec<Block>) {
        self.add(Role::User, notes);
    }

    /// A question was decided after its call was told to wait for that: from now on these words are told in its place. Says in
    /// which message, if there is one.
    pub fn decided(&mut self, question: &CallId, words: &str) -> Option<usize> {
        for (at, message) in self.history.iter_mut().enumerate() {
            for block in &mut message.blocks {
                if let Block::Result { text, awaits, .. } = block
                    && awaits.as_ref() == Some(question)
                {
                    (*text, *awaits) = (words.to_owned(), None);
                    self.scribe.forget();
                    return Some(at);
                }
            }
        }
        None
    }

    /// What was used up.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// How often the model was asked.
    pub fn asked(&self) -> u32 {
        self.asked
    }

    /// Takes an event, and says what is to be done.
    pub fn on(&mut self, event: Event, now_ms: i64) -> Vec<Effect> {
        match event {
            Event::Say(blocks) => self.say(blocks, now_ms),
            Event::Said(delta) => self.said(delta),
            Event::Spoken => self.spoken(now_ms),
            Event::Failed(failure) => self.failed(failure, now_ms),
            Event::NoFunds => self.stop(End::Funds),
            Event::NoTokens => self.stop(End::Tokens),
            Event::Late => self.stop(End::Time),
            Event::Called { id, text, images, failed, awaits } => {
                self.called(&id, Block::Result { id: id.clone(), text, images, failed, awaits }, now_ms)
            }
            Event::Rested if matches!(self.phase, Phase::Resting) => self.ask(now_ms),
            Event::Shortened(history) if matches!(self.phase, Phase::Shortening) => {
                (self.history, self.filled, self.shortened) = (mend(history), 0, true);
                self.scribe.forget();
                self.ask(now_ms)
            }
            Event::NotShortened if matches!(self.phase, Phase::Shortening) => self.end(End::Overflow),
            Event::Rested | Event::Shortened(_) | Event::NotShortened => Vec::new(),
            Event::Cancel => self.stop(End::Cancelled),
        }
    }

    fn say(&mut self, blocks: Vec<Block>, now_ms: i64) -> Vec<Effect> {
        match self.phase {
            Phase::Idle | Phase::Over => {
                self.add(Role::User, blocks);
                (self.failures, self.continued, self.shortened) = (0, 0, false);
                self.waits = Waits::default();
                self.repeats.clear();
                self.ask(now_ms)
            }
            _ => {
                self.meanwhile.extend(blocks);
                Vec::new()
            }
        }
    }

    /// Adds to what was said, without two messages of one side.
    fn add(&mut self, role: Role, blocks: Vec<Block>) {
        if blocks.is_empty() {
            return;
        }
        match self.history.last_mut() {
            Some(last) if last.role == role => last.blocks.extend(blocks),
            _ => self.history.push(Message { role, blocks }),
        }
    }

    /// The limit that is reached, if one is.
    fn limit(&self, now_ms: i64) -> Option<End> {
        let Limits { turns, until_ms, .. } = self.limits;
        match () {
            () if turns.is_some_and(|most| self.asked >= most) => Some(End::Turns),
            () if until_ms.is_some_and(|until| now_ms >= until) => Some(End::Time),
            () => None,
        }
    }

    /// Asks with what was said meanwhile. At a limit that is not said: whoever said it decides again.
    fn ask_on(&mut self, now_ms: i64) -> Vec<Effect> {
        if self.limit(now_ms).is_none() {
            self.keep_unsaid();
        }
        self.ask(now_ms)
    }

    fn ask(&mut self, now_ms: i64) -> Vec<Effect> {
        if let Some(end) = self.limit(now_ms) {
            return self.end(end);
        }
        if !self.shortened && self.is_full() {
            self.phase = Phase::Shortening;
            return vec![Effect::Shorten];
        }
        if check(&self.history).is_err() {
            self.history = mend(std::mem::take(&mut self.history));
            self.scribe.forget();
        }
        self.phase = Phase::Turn(Turn::default());
        vec![Effect::Ask { model: self.model }]
    }

    /// Whether so little room is left in the model's window that what was said has to be made shorter.
    fn is_full(&self) -> bool {
        self.limits.window.is_some_and(|window| self.filled * 100 > window * FULL)
    }

    fn said(&mut self, delta: Delta) -> Vec<Effect> {
        let Phase::Turn(turn) = &mut self.phase else { return Vec::new() };
        let delta = match delta {
            // Nobody makes so many calls at once; what is past that was never said.
            Delta::Use(..) if turn.calls.len() >= USES => return Vec::new(),
            Delta::Use(at, id, name) => Delta::Use(at, unused(id, turn.calls.len(), &self.history, &turn.gather), name),
            other => other,
        };
        let Some(Block::Use { id, name, input, .. }) = turn.gather.take(delta) else { return Vec::new() };
        let what = format!("{name} {input}");
        let wrong = match &input {
            Value::Object(_) => None,
            _ => Some("The arguments are not a JSON object, so the call was not made. Make it again with valid JSON."),
        };
        let result = wrong.map(|text| Block::result(id.clone(), text, true));
        let made = result.is_none();
        turn.calls.push(Slot { id: id.clone(), what, result });
        if made { vec![Effect::Call { id, name, input }] } else { Vec::new() }
    }

    fn spoken(&mut self, now_ms: i64) -> Vec<Effect> {
        let Phase::Turn(turn) = &mut self.phase else { return Vec::new() };
        if turn.gather.stop().is_none() && turn.calls.is_empty() {
            let message = "its answer was cut off".to_owned();
            return self.failed(Failure { kind: FailureKind::Away, message }, now_ms);
        }
        turn.spoken = true;
        self.go_on(now_ms)
    }

    fn called(&mut self, id: &str, result: Block, now_ms: i64) -> Vec<Effect> {
        let Phase::Turn(turn) = &mut self.phase else {
            self.called_late(id, result);
            return Vec::new();
        };
        if let Some(slot) = turn.calls.iter_mut().find(|slot| slot.id == id && slot.result.is_none()) {
            slot.result = Some(result);
        }
        self.go_on(now_ms)
    }

    /// A call ended after it was told as cut off, because everything was stopped: what it gave until then takes that place.
    fn called_late(&mut self, id: &str, mut result: Block) {
        if !self.cut_off.remove(id) {
            return;
        }
        if let Block::Result { text, failed: true, .. } = &mut result {
            text.push_str(&format!("\n\n{CUT_OFF}"));
        }
        let mut told = self.history.iter_mut().rev().flat_map(|message| &mut message.blocks);
        let place = told.find(|block| matches!(block, Block::Result { id: known, .. } if known == id));
        if let Some(place) = place {
            *place = result;
            self.scribe.forget();
        }
    }

    /// Goes on if the model has spoken and all its calls have ended.
    fn go_on(&mut self, now_ms: i64) -> Vec<Effect> {
        match &self.phase {
            Phase::Turn(turn) if turn.spoken && turn.calls.iter().all(|slot| slot.result.is_some()) => {}
            _ => return Vec::new(),
        }
        let Phase::Turn(turn) = std::mem::replace(&mut self.phase, Phase::Idle) else { return Vec::new() };
        let (stop, calls) = (turn.gather.stop(), turn.calls.len());
        let looping = self.close(turn);
        (self.failures, self.waits, self.asked) = (0, Waits::default(), self.asked + 1);
        self.shortened &= self.is_full();
        let more = !self.meanwhile.is_empty();
        match stop {
            _ if looping => self.end(End::Loop),
            Some(Stop::Refused) if calls == 0 => self.end(End::Refused),
            _ if calls > 0 || more => self.ask_on(now_ms),
            Some(Stop::Paused) => self.ask(now_ms),
            Some(Stop::Length) if self.continued < CONTINUED => {
                self.continued += 1;
                self.add(Role::User, vec![Block::Text { text: GO_ON.to_owned() }]);
                self.ask(now_ms)
            }
            Some(Stop::Length) => self.end(End::Length),
            _ => self.end(End::Done),
        }
    }

    /// Writes a turn down: what was said, and the results in the order of the calls. Says whether the same is done over and
    /// over.
    fn close(&mut self, turn: Turn) -> bool {
        let usage = turn.gather.usage();
        self.usage += usage;
        self.filled = usage.read() + usage.output;
        self.add(Role::Assistant, turn.message().blocks);
        let (mut results, mut whats) = (Vec::new(), Vec::new());
        for Slot { id, what, result } in turn.calls {
            let result = result.unwrap_or_else(|| {
                self.cut_off.insert(id.clone());
                Block::result(id, CUT_OFF, true)
            });
            let text = if let Block::Result { text, .. } = &result { text.as_str() } else { "" };
            whats.push(format!("{what}\n{text}"));
            results.push(result);
        }
        let found = self.repeats.round(&whats);
        for (result, told) in results.iter_mut().zip(found.told) {
            if let (Block::Result { text, .. }, Some(told)) = (result, told) {
                text.push_str(&format!("\n\n({told})"));
            }
        }
        self.add(Role::User, results);
        found.stuck
    }

    /// Stops at once. What was under way is told as cut off, so that somebody can go on from here.
    fn stop(&mut self, end: End) -> Vec<Effect> {
        let phase = std::mem::replace(&mut self.phase, Phase::Idle);
        let mut effects = Vec::new();
        match phase {
            Phase::Over | Phase::Idle => {
                self.phase = phase;
                return Vec::new();
            }
            Phase::Turn(turn) => {
                if !turn.spoken {
                    effects.push(Effect::HangUp);
                }
                if turn.calls.iter().any(|slot| slot.result.is_none()) {
                    effects.push(Effect::Halt);
                }
                self.close(turn);
            }
            Phase::Resting | Phase::Shortening => effects.push(Effect::HangUp),
        }
        effects.extend(self.end(end));
        effects
    }

    fn end(&mut self, end: End) -> Vec<Effect> {
        self.phase = Phase::Over;
        vec![Effect::End(end)]
    }
}

/// An id that no other call has. Some servers count from nought in every answer.
fn unused(id: String, so_many: usize, history: &[Message], gather: &Gather) -> String {
    let taken =
        |id: &str| gather.has(id) || history.iter().any(|message| message.uses().any(|(known, ..)| known == id));
    if !id.is_empty() && !taken(&id) {
        return id;
    }
    let before = history.len() + so_many;
    let new = (before..before + USES).map(|number| format!("{id}-{number}")).find(|new| !taken(new));
    new.unwrap_or(id)
}

#[cfg(test)]
mod tests;
