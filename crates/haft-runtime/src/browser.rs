//! Browsers: one with a profile of its own for each session, driven over the DevTools protocol.

/// What browsers go by.
#[derive(Debug, Clone, Default)]
pub struct BrowserSettings {}

/// The browsers of all sessions.
#[derive(Debug, Default)]
pub struct Browsers {}

impl Browsers {
    /// None is started before it is needed.
    pub fn new(_: BrowserSettings) -> Self {
        Self {}
    }
}
