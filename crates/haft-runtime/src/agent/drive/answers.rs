//! Asking a model, and taking in its answer as it is said.

use super::funds::Held;
use super::parts::{Asking, as_asked};
use super::{Drive, PIECES};
use crate::agent::model::Model;
use crate::agent::offer::Offer;
use crate::agent::told::Told;
use haft_core::agent::compact::weigh;
use haft_core::agent::turns::{Event, Failure, FailureKind};
use haft_core::agent::wire::Request;
use haft_core::agent::{Delta, Message, Usage};
use haft_core::outcome::Label;
use haft_core::provider::Provider;
use std::sync::Arc;
use tokio::sync::mpsc;

/// How much a model writes at once if nobody says otherwise.
const OUTPUT: u32 = 16_000;
/// The least that is worth asking for.
pub(super) const OUTPUT_MIN: u32 = 512;

impl<'h: 'd, 'd> Drive<'_, 'h, 'd> {
    /// Asks a model with all that was said, if there is money for it.
    pub(super) fn ask(&mut self, at: usize) {
        self.calls = None;
        let Some(model) = self.models.get(at).cloned() else { return };
        if at != self.run.last_model {
            self.run.last_model = at;
            self.tell(&Told::Fallback { model: self.model(at), why: self.run.why.clone() });
        }
        let active = self.haft().active.of(&self.chat.who.session);
        if self.offer.is_stale(self.haft(), active.len()) {
            let caller = as_asked(&self.chat.who.caller, Some(&model));
            self.offer = Arc::new(Offer::new(self.haft(), &caller, &active));
            self.turns.scribe().forget_tools();
            self.run.declared_to = None;
        }
        self.warn_of_left_out(model.wire().declares());
        let name = self.model(at);
        // Meanwhile the model reads: whatever it calls waits until it is kept.
        self.begin_keeping(&name);
        self.announce();
        let estimate = self.estimate(self.turns.history());
        let Some((max_output, reserved)) = self.reserve(model.as_ref(), estimate) else {
            self.on(self.lacking(estimate));
            return;
        };
        self.tell(&Told::Turn { number: self.turns.asked(), model: name });
        self.run.seed += 1;
        let seed = format!("{}{}", &crate::new_mark()[..8], self.run.seed);
        let (effort, native_search) = (self.chat.effort(), self.haft().settings.agent.native_search);
        let (sender, said) = mpsc::channel(PIECES);
        let request = Request {
            model: &model.name().model,
            system: &self.system,
            tools: &self.offer.offered(),
            history: self.turns.history(),
            max_output,
            effort,
            native_search,
            scribe: self.turns.scribe(),
        };
        let work = Arc::clone(&model).ask(&request, &seed, sender);
        self.asking = Some(Asking {
            work: Some(work),
            came: Ok(()),
            said,
            reserved,
            estimate,
            usage: None,
            written: 0,
            model: at,
        });
    }

    /// Says once which tools the model's provider cannot be told of, and why.
    fn warn_of_left_out(&mut self, provider: Provider) {
        if self.run.declared_to == Some(provider) {
            return;
        }
        self.run.declared_to = Some(provider);
        for note in self.offer.left_out(provider) {
            let message = note.to_string();
            if self.run.warned.insert(message.clone()) {
                self.tell(&Told::Warning { message });
            }
        }
    }

    /// About how many tokens the next answer reads.
    pub(super) fn estimate(&self, history: &[Message]) -> u64 {
        let all = |messages: &[Message]| u64::try_from(weigh(messages)).unwrap_or(u64::MAX);
        if self.run.filled > 0 {
            // All but the newest was counted by the provider.
            return self.run.filled + all(&history[history.len().saturating_sub(1)..]);
        }
        let system: usize = self.system.iter().map(|part| haft_core::tokens::estimate(part)).sum();
        all(history) + u64::try_from(system + self.offer.weight()).unwrap_or_default()
    }

    /// Sets money and tokens aside for an answer; for a shorter one, if there is not enough for a long one.
    fn reserve(&self, model: &dyn Model, estimate: u64) -> Option<(u32, Held)> {
        let facts = model.facts();
        let most = self.haft().settings.agent.max_output.unwrap_or(OUTPUT).min(facts.max_output).max(1);
        let mut output = most;
        loop {
            if let Some(held) = self.hold(facts.price, estimate, output) {
                return Some((output, held));
            }
            if output <= OUTPUT_MIN {
                return None;
            }
            output = (output / 2).max(OUTPUT_MIN);
        }
    }

    pub(super) fn said(&mut self, said: Option<Delta>) -> Event {
        let Some(delta) = said else {
            let came = self.close_answer();
            return match came {
                Ok(()) => Event::Spoken,
                Err(failure) => {
                    self.run.why.clone_from(&failure.message);
                    self.run.requested = matches!(failure.kind, FailureKind::Busy(Some(_)));
                    Event::Failed(failure)
                }
            };
        };
        if let Some(asking) = &mut self.asking {
            match &delta {
                Delta::Usage(usage) => asking.usage = Some(*usage),
                Delta::Text(_, text) | Delta::Thinking(_, text) | Delta::Input(_, text) => asking.written += text.len(),
                _ => {}
            }
        }
        match &delta {
            // Some begin with nothing.
            Delta::Text(_, text) if text.is_empty() => {}
            Delta::Text(_, text) => self.tell(&Told::Content { text: text.clone() }),
            Delta::Thinking(_, text) => self.tell(&Told::Thinking { text: text.clone() }),
            // What a provider found by itself was said by somebody elsewhere.
            Delta::Foreign(_, provider, _) => {
                self.haft().note_labels(&self.chat.who.session, &[Label::Untrusted], provider);
            }
            Delta::Use(_, id, name) => {
                // Its arguments are still to come: what is known of it is made ready meanwhile.
                if let Some(entry) = self.haft().registry.get_by_api_name(name) {
                    let _ = entry.input();
                }
                self.tell(&Told::ToolInput { id: id.clone(), name: name.clone() });
            }
            _ => {}
        }
        Event::Said(delta)
    }

    /// An answer is over: it is paid for and counted. What a provider does not tell is counted as it was foreseen.
    pub(super) fn close_answer(&mut self) -> Result<(), Failure> {
        let Some(asking) = self.asking.take() else { return Ok(()) };
        let unfinished = asking.work.is_some();
        let silent = asking.usage.is_none() && asking.written == 0 && (asking.came.is_err() || unfinished);
        let usage = match asking.usage {
            Some(usage) => usage,
            None if silent => Usage::default(),
            None => Usage {
                input: asking.estimate,
                output: u64::try_from(asking.written / 4).unwrap_or_default(),
                ..Usage::default()
            },
        };
        let Some(model) = self.models.get(asking.model) else { return asking.came };
        let facts = model.facts();
        if !silent {
            self.pay(asking.reserved, &usage, facts.price);
            self.run.paid = true;
            self.run.filled = usage.read() + usage.output;
            self.chat.total.usage += usage;
            self.chat.total.turns += 1;
            let (total, cost_micros) = (self.chat.total.usage, self.chat.total.cost);
            self.tell(&Told::Usage { last: usage, total, cost_micros, window: facts.window });
        }
        asking.came
    }
}
