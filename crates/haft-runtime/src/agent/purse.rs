//! Money and tokens, reserved before they are spent. A child's purse is a share of its parent's: what it takes is taken from both.

use super::model::Price;
use haft_core::agent::Usage;
use std::sync::{Arc, Mutex, PoisonError};

/// Millionths of a dollar.
pub type Micros = u64;

/// Dollars as that.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "money is small and not negative")]
pub fn micros(usd: f64) -> Micros {
    (usd.max(0.0) * 1_000_000.0).round() as u64
}

/// What a conversation may spend, and has spent: money, or tokens.
#[derive(Debug, Default)]
pub struct Purse {
    limit: Option<Micros>,
    state: Mutex<State>,
    above: Option<Arc<Purse>>,
}

#[derive(Debug, Default, Clone, Copy)]
struct State {
    spent: Micros,
    reserved: Micros,
}

/// Money that is set aside for one answer. What is not spent goes back.
#[derive(Debug)]
pub struct Reserved {
    purse: Arc<Purse>,
    amount: Micros,
}

impl Purse {
    /// One with this much in it; without a limit it only counts.
    pub fn new(limit: Option<Micros>) -> Arc<Self> {
        Arc::new(Self { limit, ..Self::default() })
    }

    /// One of which this much is spent already.
    pub fn resumed(limit: Option<Micros>, spent: Micros) -> Arc<Self> {
        Arc::new(Self { limit, state: Mutex::new(State { spent, reserved: 0 }), above: None })
    }

    /// How much was in it, if that is limited.
    pub fn limit(&self) -> Option<Micros> {
        self.limit
    }

    /// A share of this one, limited by itself as well.
    pub fn share(self: &Arc<Self>, limit: Option<Micros>) -> Arc<Self> {
        Arc::new(Self { limit, above: Some(Arc::clone(self)), ..Self::default() })
    }

    /// What was spent, by whoever has a share as well.
    pub fn spent(&self) -> Micros {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).spent
    }

    /// What is left, as far as anybody counts.
    pub fn left(&self) -> Option<Micros> {
        let State { spent, reserved } = *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let own = self.limit.map(|limit| limit.saturating_sub(spent + reserved));
        let above = self.above.as_ref().and_then(|above| above.left());
        [own, above].into_iter().flatten().min()
    }

    /// Sets money aside, if there is that much.
    pub fn reserve(self: &Arc<Self>, amount: Micros) -> Option<Reserved> {
        self.take(amount).then(|| Reserved { purse: Arc::clone(self), amount })
    }

    fn take(&self, amount: Micros) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = self.limit.is_none_or(|limit| state.spent + state.reserved + amount <= limit);
        // Always from below upwards, so that two of a family never wait for each other.
        if !fits || !self.above.as_ref().is_none_or(|above| above.take(amount)) {
            return false;
        }
        state.reserved += amount;
        true
    }

    fn settle(&self, reserved: Micros, spent: Micros) {
        {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.reserved = state.reserved.saturating_sub(reserved);
            state.spent += spent;
        }
        if let Some(above) = &self.above {
            above.settle(reserved, spent);
        }
    }
}

impl Reserved {
    /// It cost this much.
    pub fn spend(mut self, spent: Micros) {
        self.purse.settle(std::mem::take(&mut self.amount), spent);
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if self.amount > 0 {
            self.purse.settle(self.amount, 0);
        }
    }
}

impl Price {
    /// What this much cost, rounded up.
    pub fn cost(&self, usage: &Usage) -> Micros {
        let all = [
            (usage.input, self.input),
            (usage.output, self.output),
            (usage.cache_read, self.cache_read),
            (usage.cache_write, self.cache_write),
        ];
        let sum: u128 = all.into_iter().map(|(tokens, price)| u128::from(tokens) * u128::from(price)).sum();
        u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_child_takes_is_taken_from_its_parent_and_given_back_if_unused() {
        let parent = Purse::new(Some(100));
        let child = parent.share(Some(60));
        assert!(child.reserve(61).is_none(), "more than its own share");
        let held = child.reserve(50).unwrap();
        assert_eq!((parent.left(), child.left()), (Some(50), Some(10)));
        assert!(parent.reserve(51).is_none(), "the child has the rest");
        held.spend(20);
        assert_eq!((parent.spent(), child.spent(), parent.left()), (20, 20, Some(80)));
        drop(child.reserve(40).unwrap());
        assert_eq!((child.left(), parent.left()), (Some(40), Some(80)));
        let sibling = parent.share(None);
        assert!(sibling.reserve(81).is_none() && sibling.reserve(80).is_some());
    }

    #[test]
    fn what_was_spent_before_is_not_there_again() {
        let resumed = Purse::resumed(Some(100), 70);
        assert_eq!((resumed.spent(), resumed.left(), resumed.limit()), (70, Some(30), Some(100)));
        assert!(resumed.reserve(31).is_none() && resumed.reserve(30).is_some());
        assert!(Purse::resumed(Some(100), 170).reserve(1).is_none(), "the limit may have been lowered since");
    }

    #[test]
    fn a_price_is_exact() {
        let price = Price { input: 3_000_000, output: 15_000_000, cache_read: 300_000, cache_write: 3_750_000 };
        let usage = Usage { input: 1000, output: 100, cache_read: 10_000, cache_write: 0, thinking: 50 };
        assert_eq!(price.cost(&usage), 3000 + 1500 + 3000);
        assert_eq!(price.cost(&Usage { input: 1, ..Usage::default() }), 3);
    }
}
