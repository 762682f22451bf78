//! Finding tools by what they do: an index over all of them, in step with the registry.
//!
//! The index is made at the first question. Later ones look only whether the registry has changed, and then take in what
//! is new. Who may see a tool is asked when it is found, so that one index serves everybody.

use crate::memory::Table;
use crate::pipeline::Haft;
use crate::registry::{Catalogue, Entry, Registry};
use haft_core::finding::{Asked, Card, Found, Index, Meaning, Weights};
use haft_core::{Caller, ToolName, ToolSpec};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// No more tools are taken in.
const TOOLS_MAX: usize = 50_000;

/// Finds tools.
#[derive(Default)]
pub(crate) struct Finder {
    held: RwLock<Held>,
}

/// An index, as of a change.
#[derive(Default)]
struct Held {
    index: Index,
    specs: HashMap<ToolName, Arc<ToolSpec>>,
    /// The change that was taken in last, and whether word vectors were there.
    seen: Option<(u64, bool)>,
}

/// What is asked.
pub(crate) struct Wanted<'q> {
    /// In words.
    pub(crate) query: &'q str,
    /// How many.
    pub(crate) limit: usize,
    /// Whether the caller may see a tool.
    pub(crate) seen: &'q dyn Fn(&str) -> bool,
}

impl Finder {
    /// The tools that fit best, best first.
    pub(crate) fn find(&self, registry: &Registry, table: Option<&Table>, wanted: &Wanted<'_>) -> Vec<Found> {
        // Read before the tools are: what changes meanwhile is taken in next time.
        let now = (*registry.changes().borrow(), table.is_some());
        let is_new = |held: &Held| held.seen != Some(now);
        if is_new(&self.held.read().unwrap_or_else(PoisonError::into_inner)) {
            let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
            // Somebody else may have done it while this one waited.
            if is_new(&held) {
                held.take_in(registry, table, now);
            }
        }
        let (of, knows) = (vectors(table), known(table));
        let asked = Asked {
            text: wanted.query,
            meaning: table.map(|_| Meaning { of: &of, knows: &knows }),
            wanted: wanted.seen,
            limit: wanted.limit,
            weights: &Weights::default(),
        };
        self.held.read().unwrap_or_else(PoisonError::into_inner).index.search(&asked)
    }
}

impl Haft {
    /// The tools that fit a question best and that this caller may see, best first, and how well each fits.
    pub async fn find_tools(&self, query: &str, limit: usize, caller: &Caller) -> Vec<(Arc<Entry>, f32)> {
        let table = self.memory.word_vectors().await;
        let catalogue = Catalogue { registry: Arc::clone(&self.registry), policy: Arc::clone(&self.settings.policy) };
        let seen = catalogue.sees(caller.clone());
        let found = self.finder.find(&self.registry, table.as_deref(), &Wanted { query, limit, seen: &seen });
        found.into_iter().filter_map(|found| Some((self.registry.get(&found.name)?, found.score))).collect()
    }
}

/// Makes vectors of texts; empty ones without a table.
fn vectors(table: Option<&Table>) -> impl Fn(&str) -> Vec<i8> {
    move |text| table.map(|table| table.embed_one(text)).unwrap_or_default()
}

/// Says whether a word is known.
fn known(table: Option<&Table>) -> impl Fn(&str) -> bool {
    move |word| table.is_some_and(|table| table.knows(word))
}

impl Held {
    fn take_in(&mut self, registry: &Registry, table: Option<&Table>, now: (u64, bool)) {
        let (of, knows) = (vectors(table), known(table));
        let meaning = table.map(|_| Meaning { of: &of, knows: &knows });
        // Vectors have come or gone.
        if self.index.is_loose() || self.seen.is_some_and(|(_, vectors)| vectors != now.1) {
            *self = Self::default();
        }
        let mut gone = std::mem::take(&mut self.specs);
        for entry in registry.list().into_iter().take(TOOLS_MAX) {
            let (name, spec) = (entry.spec().name.clone(), Arc::clone(entry.spec()));
            if gone.remove(&name).is_none_or(|known| !Arc::ptr_eq(&known, &spec)) {
                self.index.insert(&Card::of(&spec), meaning);
            }
            self.specs.insert(name, spec);
        }
        for name in gone.keys() {
            self.index.remove(name.as_str());
        }
        self.seen = Some(now);
    }
}
