//! Browsers: one with a profile of its own for each session, driven over the `DevTools` protocol.
//!
//! A browser runs confined (`launch`), is spoken to by two pipes (`wire`) and belongs to one session. Its calls take
//! turns. It ends with its session, when nobody has used it for a while, when another one needs its place, and with
//! haft.

mod errand;
mod find;
mod launch;
mod notes;
pub(crate) mod page;
mod pool;
mod stash;
mod tabs;
mod tree;
mod visits;
mod wire;

pub use pool::Browsers;
pub(crate) use pool::Lent;

use crate::confined::Resident;
use haft_core::host::HostRules;
use haft_core::web::{Rules, Target};
use notes::Notes;
use stash::Stash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tree::Refs;
use visits::Visits;
use wire::Wire;

/// What browsers go by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowserSettings {
    /// The program; without it Chromium or Chrome is looked for on the PATH.
    pub program: Option<String>,
    /// How long a browser that nobody uses stays.
    pub idle: Duration,
    /// How many there may be at once.
    pub most: usize,
    /// The size of a page's window.
    pub viewport: (u32, u32),
    /// The largest download.
    pub download_bytes: u64,
    /// Services inside that every page may reach, and not their own pages alone.
    pub allow_private: HostRules,
}

impl Default for BrowserSettings {
    fn default() -> Self {
        Self {
            program: None,
            idle: Duration::from_mins(5),
            most: 4,
            viewport: (1280, 800),
            download_bytes: 100 << 20,
            allow_private: HostRules::default(),
        }
    }
}

/// One browser.
#[derive(Debug)]
pub(crate) struct Browser {
    wire: Wire,
    /// Whom its pages may reach. It does not change while it runs.
    rules: Rules,
    reach: Reach,
    notes: std::sync::Arc<Notes>,
    refs: Mutex<Refs>,
    stash: Option<Stash>,
    resident: Mutex<Option<Resident>>,
}

/// Which services inside a browser's pages may reach.
#[derive(Debug, Clone)]
struct Reach {
    /// These, wherever the pages come from.
    open: HostRules,
    /// And the one that all of them come from.
    visits: std::sync::Arc<Visits>,
}

impl Reach {
    fn admits(&self, target: &Target) -> bool {
        is_listed(&self.open, target) || self.visits.only(target)
    }
}

fn is_listed(rules: &HostRules, target: &Target) -> bool {
    rules.rule_for(target.host(), target.port()).is_some()
}

impl Browser {
    /// Whether it may show a page from there. What it has shown could reach a service inside along with it.
    fn can_show(&self, target: &Target) -> bool {
        let Reach { open, visits } = &self.reach;
        !self.rules.admits_inside(target) || is_listed(open, target) || visits.could_be_only(target)
    }

    /// Ends it, whoever still holds it.
    fn end(&self) {
        drop(self.resident.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}
