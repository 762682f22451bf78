//! Money and tokens of a conversation: set aside before a model is asked, spent when it has answered.

use super::super::model::Price;
use super::super::purse::Reserved;
use super::{Drive, answers::OUTPUT_MIN};
use haft_core::agent::Usage;
use haft_core::agent::turns::Event;

/// What is set aside for an answer.
pub(super) struct Held {
    tokens: Reserved,
    /// None if nobody knows what it costs.
    money: Option<Reserved>,
}

impl Drive<'_, '_, '_> {
    /// Sets aside what it takes to read and write so much, if there is that much.
    pub(super) fn hold(&self, price: Option<Price>, input: u64, output: u32) -> Option<Held> {
        let tokens = self.tokens.reserve(input.saturating_add(output.into()))?;
        let cost = |price: Price| price.cost(&Usage { input, output: output.into(), ..Usage::default() });
        let money = price.map(|price| self.chat.purse.reserve(cost(price)).ok_or(()));
        Some(Held { tokens, money: money.transpose().ok()? })
    }

    /// What there is too little of to read so much.
    pub(super) fn lacking(&self, input: u64) -> Event {
        match self.tokens.left() {
            Some(left) if left < input.saturating_add(OUTPUT_MIN.into()) => Event::NoTokens,
            _ => Event::NoFunds,
        }
    }

    /// What children spent is part of what it cost.
    pub(super) fn count_children(&mut self) {
        let all = self.chat.purse.spent().saturating_sub(self.run.spent);
        let theirs = all.saturating_sub(self.run.cost.unwrap_or_default());
        if theirs > 0 {
            self.count(theirs);
        }
    }

    pub(super) fn price(&self) -> Option<Price> {
        self.models.get(self.run.last_model).and_then(|model| model.facts().price)
    }

    /// Pays for an answer, out of what was set aside for it.
    pub(super) fn pay(&mut self, held: Held, usage: &Usage, price: Option<Price>) {
        held.tokens.spend(usage.read() + usage.output);
        let Some(cost) = price.map(|price| price.cost(usage)) else { return };
        if let Some(money) = held.money {
            money.spend(cost);
        }
        self.count(cost);
    }

    pub(super) fn count(&mut self, cost: u64) {
        for sum in [&mut self.run.cost, &mut self.chat.total.cost] {
            *sum = Some(sum.unwrap_or_default() + cost);
        }
    }
}
