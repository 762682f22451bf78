//! A tool of a bridged server as a tool of haft.

use super::call::{Broken, Connection};
use super::declared::Declared;
use super::follow::accept;
use super::link::Link;
use super::reply;
use haft_core::provider::{DeclarationNote, registration_notes};
use haft_core::{CallError, ToolSpec};
use haft_runtime::tool::ResultSource;
use haft_runtime::{BoxFuture, Reply, Scene, Tool};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A tool of a server.
pub(super) struct Bridged {
    link: Arc<Link>,
    spec: Arc<ToolSpec>,
    declared: Declared,
    /// Why it is not what was accepted.
    altered: Mutex<Option<String>>,
    /// What model providers cannot take of it as it is. Found out when somebody wants to know.
    provider_notes: OnceLock<Vec<DeclarationNote>>,
}

impl Bridged {
    pub(super) fn new(link: Arc<Link>, spec: ToolSpec, declared: Declared, altered: Option<String>) -> Self {
        let (spec, altered) = (Arc::new(spec), Mutex::new(altered));
        Self { link, spec, declared, altered, provider_notes: OnceLock::new() }
    }

    /// Whether this is a tool of that declaration, as much accepted.
    pub(super) fn is(&self, declared: &Declared, altered: bool) -> bool {
        self.declared.digest == declared.digest && self.why().is_some() == altered
    }

    /// Why it is not what was accepted, if it is not.
    pub(super) fn why(&self) -> Option<String> {
        self.altered.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What it says of itself.
    pub(super) fn declared(&self) -> &Declared {
        &self.declared
    }

    /// What model providers cannot take of it as it is.
    pub(super) fn provider_notes(&self) -> &[DeclarationNote] {
        self.provider_notes.get_or_init(|| registration_notes(&self.spec))
    }

    /// It is accepted now.
    pub(super) fn accepted(&self) {
        *self.altered.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Whether the server still means by this tool what was decided upon.
    fn check(&self, connection: &Connection, scene: &Scene) -> Result<(), CallError> {
        let (server, tool) = (&self.link.server.name, haft_core::preview::inert(&self.declared.tool));
        match connection.declared(&self.declared.tool) {
            None => Err(CallError::not_found(format!("the MCP server `{server}` does not offer `{tool}` any more"))
                .hint("`haft tools` lists what there is")),
            Some(now) if now == self.declared.digest && Arc::ptr_eq(scene.spec(), &self.spec) => Ok(()),
            Some(_) => Err(CallError::conflict(format!(
                "the MCP server `{server}` says something else of `{tool}` than what was decided upon; it was not called"
            ))
            .hint("call it again: the question then shows what changed")),
        }
    }

    async fn run(&self, scene: &Scene) -> Result<Reply, CallError> {
        let connection = self.link.connection().await?;
        self.check(&connection, scene)?;
        if self.why().is_some() {
            // Without a person's yes this is not reached: an altered tool is always asked about. That yes was to this
            // declaration: one tool has one, is never altered later than it is made, and `check` has made sure that
            // it is the tool that was decided upon.
            if !scene.asked() {
                return Err(CallError::conflict("the tool has changed, and nobody was asked about it"));
            }
            accept(&self.link, std::slice::from_ref(&self.declared)).await?;
            self.accepted();
        }
        match connection.call(&self.declared.tool, scene).await {
            Ok(result) => Ok(reply::of(&self.link.server.name, result)),
            Err(Broken::Because(error)) => Err(error),
            Err(Broken::Gone) => Err(self.link.why_gone(&connection).await),
        }
    }
}

impl Tool for Bridged {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(self.run(scene))
    }

    fn result_source(&self) -> ResultSource {
        ResultSource::Bridged
    }

    /// Names the declaration: a yes to one is none to the next, whatever changed in it.
    fn altered(&self) -> Option<String> {
        let digest = self.declared.digest.to_string();
        self.why().map(|why| format!("{why} (it is {} now)", &digest[..12.min(digest.len())]))
    }
}
