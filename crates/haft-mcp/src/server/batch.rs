//! Batches, which revision 2025-03-26 alone has: a line may hold several messages, and their answers go out as one.

use rmcp::model::RequestId;
use serde_json::Value;
use std::collections::HashSet;

/// How many messages a batch may hold.
pub(super) const BATCH_MAX: usize = 100;

/// A batch that is not answered yet.
pub(super) struct Batch {
    /// The requests that have no answer yet.
    pub(super) left: HashSet<RequestId>,
    /// The answers so far.
    pub(super) said: Vec<Value>,
}

/// The batches that are not answered yet.
#[derive(Default)]
pub(super) struct Batches(Vec<Batch>);

impl Batches {
    /// Keeps a batch until it is answered. Gives its answers if there is nothing to wait for.
    pub(super) fn open(&mut self, batch: Batch) -> Option<Vec<Value>> {
        self.0.push(batch);
        self.whole(self.0.len() - 1)
    }

    /// Whether a request came in a batch.
    pub(super) fn holds(&self, id: &RequestId) -> bool {
        self.0.iter().any(|batch| batch.left.contains(id))
    }

    /// Adds the answer to a request, or nothing if it will have none. Gives the answers if it was the last.
    pub(super) fn answer(&mut self, id: &RequestId, answer: Option<Value>) -> Option<Vec<Value>> {
        let at = self.0.iter().position(|batch| batch.left.contains(id))?;
        self.0[at].left.remove(id);
        self.0[at].said.extend(answer);
        self.whole(at)
    }

    /// The answers of a batch, if they are complete and there are any.
    fn whole(&mut self, at: usize) -> Option<Vec<Value>> {
        if !self.0[at].left.is_empty() {
            return None;
        }
        let said = self.0.swap_remove(at).said;
        (!said.is_empty()).then_some(said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_go_out_together_when_the_last_has_come() {
        let mut batches = Batches::default();
        let [one, two, three] = [1, 2, 3].map(RequestId::Number);
        let left = [one.clone(), two.clone(), three.clone()].into();
        assert_eq!(batches.open(Batch { left, said: vec![json!("refused")] }), None);
        assert!(batches.holds(&two));
        assert_eq!(batches.answer(&two, Some(json!(2))), None);
        assert_eq!(batches.answer(&one, None), None);
        assert_eq!(batches.answer(&three, Some(json!(3))), Some(vec![json!("refused"), json!(2), json!(3)]));
        assert!(!batches.holds(&one) && batches.0.is_empty());
        assert_eq!(batches.open(Batch { left: HashSet::new(), said: Vec::new() }), None);
        assert!(batches.0.is_empty());
    }
}
