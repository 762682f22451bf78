//! All pieces, held in memory and in step with the store.

use super::{Memory, Room};
use crate::store_error;
use haft_core::CallError;
use haft_core::memory::{Entry, Index, Scope};
use haft_store::{MemoryNews, Store};
use std::collections::{HashMap, HashSet};
use std::sync::PoisonError;

/// Pieces, as of a change.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) index: Index,
    /// Namespaces by number.
    names: Vec<String>,
    numbers: HashMap<String, u32>,
    /// The last change and piece that were taken in.
    since: (i64, i64),
    /// The change up to which documents were looked at.
    documents: i64,
    /// Whose vectors these are.
    model: Option<String>,
}

impl Held {
    fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    fn apply(&mut self, news: MemoryNews) {
        for piece in news.pieces {
            let namespace = self.number(&piece.namespace);
            match &piece.entry.vector {
                // Its words are as they were.
                Some(vector) if self.index.has(piece.entry.id) => self.index.set_vector(piece.entry.id, vector),
                _ => self.index.insert(Entry { namespace, ..piece.entry }),
            }
        }
        for (name, ids) in news.documents {
            let (namespace, there): (u32, HashSet<i64>) = (self.number(&name), ids.into_iter().collect());
            for id in self.index.ids_of(namespace) {
                if !there.contains(&id) {
                    self.index.remove(id);
                }
            }
        }
        self.since = (news.change, news.after);
        if !news.more {
            self.documents = news.change;
        }
    }

    /// Whose vectors are held.
    pub(super) fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Which numbers a scope means, in somebody's memory. None where that is all of them.
    pub(super) fn numbers_of(&self, scope: Option<&Scope>, room: &Room) -> Option<HashSet<u32>> {
        let wanted = |name: &str| room.called(name).is_some() && scope.is_none_or(|scope| scope.covers(name));
        if self.numbers.keys().all(|name| wanted(name)) {
            return None;
        }
        Some(self.numbers.iter().filter(|(name, _)| wanted(name)).map(|(_, number)| *number).collect())
    }
}

impl Memory {
    /// Takes in what is new in the store, with the vectors of a model.
    pub(super) async fn sync(&self, store: &Store, model: Option<&str>) -> Result<(), CallError> {
        let _turn = self.syncing.lock().await;
        let start = store.memory_change().await.map_err(store_error)?;
        {
            let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
            if held.model.as_deref() != model || held.index.is_loose() {
                *held = Held { model: model.map(str::to_owned), ..Held::default() };
            }
            if held.since == (start, i64::MAX) {
                return Ok(());
            }
            // Who begins with nothing has nothing to take out but what goes while it begins.
            if held.since == (0, 0) {
                held.documents = start;
            }
        }
        if start > 0 {
            store.memory_rebuild(false).await.map_err(store_error)?;
        }
        loop {
            let (since, documents) = {
                let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
                (held.since, held.documents)
            };
            let news = store.memory_news(since, documents, model.map(str::to_owned)).await.map_err(store_error)?;
            let more = news.more;
            self.held.write().unwrap_or_else(PoisonError::into_inner).apply(news);
            if !more {
                return Ok(());
            }
        }
    }
}
