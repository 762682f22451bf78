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
mod wire;

pub use pool::Browsers;
pub(crate) use pool::Lent;

use crate::confined::Resident;
use haft_core::web::Rules;
use notes::Notes;
use stash::Stash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tree::Refs;
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
}

impl Default for BrowserSettings {
    fn default() -> Self {
        Self { program: None, idle: Duration::from_mins(5), most: 4, viewport: (1280, 800), download_bytes: 100 << 20 }
    }
}

/// One browser.
#[derive(Debug)]
pub(crate) struct Browser {
    wire: Wire,
    /// Whom its pages may reach. It does not change while it runs.
    rules: Rules,
    notes: std::sync::Arc<Notes>,
    refs: Mutex<Refs>,
    stash: Option<Stash>,
    resident: Mutex<Option<Resident>>,
}

impl Browser {
    fn new(wire: Wire, rules: Rules, notes: std::sync::Arc<Notes>, stash: Option<Stash>, resident: Resident) -> Self {
        Self { wire, rules, notes, refs: Mutex::default(), stash, resident: Mutex::new(Some(resident)) }
    }

    /// Ends it, whoever still holds it.
    fn end(&self) {
        drop(self.resident.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}
