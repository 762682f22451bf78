//! What a server offers besides tools: resources and prompts. haft offers its own; whoever embeds it may add more.

use haft_core::SessionId;
use haft_runtime::BoxFuture;
use rmcp::model::{
    ErrorData, GetPromptRequestParams, GetPromptResponse, Prompt, Reference, Resource, ResourceContents,
    ResourceTemplate,
};

/// Resources and prompts, for a client in a session. `None` says that something is not among them.
pub trait Offer: Send + Sync {
    /// The prompts.
    fn prompts(&self) -> Vec<Prompt> {
        Vec::new()
    }

    /// One prompt, filled in. To a client of 2026-07-28 it may be a question first; the client comes back with the
    /// answer in its request.
    fn prompt<'a>(
        &'a self,
        _session: &'a SessionId,
        _request: &'a GetPromptRequestParams,
    ) -> BoxFuture<'a, Option<Result<GetPromptResponse, ErrorData>>> {
        Box::pin(std::future::ready(None))
    }

    /// The resources that can be listed.
    fn resources<'a>(&'a self, _session: &'a SessionId) -> BoxFuture<'a, Vec<Resource>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// The forms that the names of further ones have.
    fn templates(&self) -> Vec<ResourceTemplate> {
        Vec::new()
    }

    /// One resource.
    fn read<'a>(
        &'a self,
        _session: &'a SessionId,
        _uri: &'a str,
    ) -> BoxFuture<'a, Option<Result<Vec<ResourceContents>, ErrorData>>> {
        Box::pin(std::future::ready(None))
    }

    /// What an argument may be that begins like this.
    fn complete<'a>(
        &'a self,
        _session: &'a SessionId,
        _of: &'a Reference,
        _argument: &'a str,
        _begun: &'a str,
    ) -> BoxFuture<'a, Option<Vec<String>>> {
        Box::pin(std::future::ready(None))
    }
}
