//! Whoever waits for something is woken when it changes: in this process at once, in others by the server that they
//! share. On a file nobody tells what other processes do; whoever has to know looks now and then, as ever.

use std::sync::Arc;
use tokio::sync::watch;

/// What can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// Questions and what was said to them.
    Approvals,
    /// The log.
    Records,
    /// What was promised.
    Tasks,
    /// Pipelines and their steps.
    Work,
    /// Calls that their callers named.
    Calls,
}

impl Topic {
    pub(crate) const ALL: [Self; 5] = [Self::Approvals, Self::Records, Self::Tasks, Self::Work, Self::Calls];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approvals => "approvals",
            Self::Records => "records",
            Self::Tasks => "tasks",
            Self::Work => "work",
            Self::Calls => "calls",
        }
    }

    /// From the word for it.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|topic| topic.as_str() == word)
    }
}

/// Several of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Topics(u8);

impl Topics {
    pub(crate) const ALL: Self = Self(0b1_1111);

    /// With this one.
    #[must_use]
    pub(crate) const fn with(self, topic: Topic) -> Self {
        Self(self.0 | 1 << topic as u8)
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Topic> {
        Topic::ALL.into_iter().filter(move |topic| self.0 & 1 << *topic as u8 != 0)
    }
}

/// Those who wait, by what they wait for.
#[derive(Default)]
pub(crate) struct Bell {
    anyone: [watch::Sender<u64>; 5],
    others: [watch::Sender<u64>; 5],
}

impl Bell {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// This store has written.
    pub(crate) fn ring(&self, topics: Topics) {
        topics.iter().for_each(|topic| self.anyone[topic as usize].send_modify(next));
    }

    /// Another process has.
    pub(crate) fn ring_for_others(&self, topics: Topics) {
        self.ring(topics);
        topics.iter().for_each(|topic| self.others[topic as usize].send_modify(next));
    }

    pub(crate) fn anyone(&self, topic: Topic) -> watch::Receiver<u64> {
        self.anyone[topic as usize].subscribe()
    }

    pub(crate) fn others(&self, topic: Topic) -> watch::Receiver<u64> {
        self.others[topic as usize].subscribe()
    }
}

fn next(count: &mut u64) {
    *count = count.wrapping_add(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_for_others_does_not_hear_of_us() {
        let bell = Bell::new();
        let (mut any, mut others) = (bell.anyone(Topic::Tasks), bell.others(Topic::Tasks));
        bell.ring(Topics::default().with(Topic::Tasks));
        assert!(any.has_changed().unwrap() && !others.has_changed().unwrap());
        any.mark_unchanged();
        bell.ring_for_others(Topics::default().with(Topic::Work));
        assert!(!any.has_changed().unwrap() && !others.has_changed().unwrap());
        bell.ring_for_others(Topics::ALL);
        assert!(any.has_changed().unwrap() && others.has_changed().unwrap());
        others.mark_unchanged();
        assert!(Topic::ALL.into_iter().all(|topic| Topic::parse(topic.as_str()) == Some(topic)));
    }
}
