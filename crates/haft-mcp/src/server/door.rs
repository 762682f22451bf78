//! One connection: what the protocol asks, in the words of haft.

#![expect(deprecated, reason = "sampling and logging go, but clients of all but the newest version have them")]

use super::approver::Era;
use super::bridged::{self, BridgedServers, ClientNews};
use super::call_task::TaskOwner;
use super::log_level::{level_of_rank, rank};
use super::news::{BridgedWatch, next_news, tell_news, tell_subscription};
use super::offer::Offer;
use super::own::CALLS;
use super::{Shared, call, listing, session_with_prefix, skills, unknown_method};
use haft_core::{CallId, Caller, SessionId};
use haft_runtime::events::LogLevel;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult, CompletionInfo,
    CustomRequest, CustomResult, ErrorCode, ErrorData, GetPromptRequestParams, GetPromptResponse, GetTaskParams,
    GetTaskResult, Implementation, InitializeRequestParams, InitializeResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ResourceUpdatedNotificationParam,
    ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The longest name that an agent may have.
const NAME_MAX: usize = 64;
/// How many resources one client may watch.
pub(super) const WATCHED_MAX: usize = 256;
/// How much of the name of a resource is kept or repeated.
const URI_MAX: usize = 400;
/// Changes that follow each other closely are told once.
const SETTLING: Duration = Duration::from_millis(50);
/// No logging.
const SILENT: u8 = u8::MAX;

/// How a client is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    Stdio,
    Http,
}

/// One client's connection; over HTTP in the newest protocol, one request.
pub(super) struct Door {
    shared: Arc<Shared>,
    /// Over stdin and stdout there is one conversation; over HTTP a client may open its own.
    session: OnceLock<SessionId>,
    over_http: bool,
    /// Whether the client named the conversation, which then outlives the connection.
    is_named: bool,
    /// The client's own name, once it has said it for good.
    agent: OnceLock<Option<String>>,
    level: AtomicU8,
    gone: CancellationToken,
    watched: Arc<Mutex<BTreeSet<String>>>,
    /// The task that tells of changes, as long as the connection lives.
    followers: Mutex<JoinSet<()>>,
}

impl Drop for Door {
    fn drop(&mut self) {
        if let Some(bridged) = &self.shared.bridged {
            self.watched.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|uri| bridged.unwatch(uri));
        }
        // A session of its own ends with the connection; what others share is ended by whoever made it.
        if let Some(session) = self.session.get().filter(|_| self.over_http && !self.is_named) {
            self.shared.haft.end_session(session);
        }
    }
}

impl Door {
    pub(super) fn stdio(shared: Arc<Shared>, gone: CancellationToken) -> Self {
        Self::new(shared, gone, Transport::Stdio, None)
    }

    /// The door of a client over HTTP, which may have named its conversation.
    pub(super) fn http(shared: Arc<Shared>, gone: CancellationToken, named: Option<SessionId>) -> Self {
        Self::new(shared, gone, Transport::Http, named)
    }

    fn new(shared: Arc<Shared>, gone: CancellationToken, by: Transport, named: Option<SessionId>) -> Self {
        Self {
            shared,
            over_http: by == Transport::Http,
            is_named: named.is_some(),
            session: named.map_or_else(OnceLock::new, OnceLock::from),
            agent: OnceLock::new(),
            level: AtomicU8::new(SILENT),
            gone,
            watched: Arc::default(),
            followers: Mutex::default(),
        }
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// What is listed besides bridged servers: nothing of haft's own in front of one, though it can be read all the same.
    fn listed_offers(&self) -> &[Arc<dyn Offer>] {
        if self.is_front() { &[] } else { &self.shared.offers }
    }

    async fn start_front_server(&self) {
        if let Some(bridged) = &self.shared.bridged {
            bridged.start_front_server().await;
        }
    }

    /// Whether haft stands in front of one bridged server.
    fn is_front(&self) -> bool {
        self.shared.bridged.as_ref().is_some_and(BridgedServers::is_front)
    }

    pub(super) fn gone(&self) -> &CancellationToken {
        &self.gone
    }

    pub(super) fn is_over_http(&self) -> bool {
        self.over_http
    }

    /// The conversation that calls belong to.
    pub(super) fn session(&self) -> SessionId {
        self.session.get().unwrap_or(&self.shared.options.session).clone()
    }

    /// Whether the conversation is this client's alone. Clients that open no session have one together.
    pub(super) fn is_apart(&self) -> bool {
        !self.over_http || self.session.get().is_some()
    }

    /// On whose behalf a request is made.
    pub(super) fn caller(&self, context: &RequestContext<RoleServer>) -> Caller {
        let mut caller = self.shared.options.caller.clone();
        if caller.agent.is_none() {
            caller.claimed = true;
            caller.agent = match self.agent.get() {
                Some(agent) => agent.clone(),
                None => context.client_info().and_then(|client| agent_name(&client.name)),
            };
        }
        caller
    }

    /// Whose tasks a request is about.
    fn task_owner(&self, context: &RequestContext<RoleServer>) -> TaskOwner {
        TaskOwner::new(self.session(), self.caller(context))
    }

    /// Waits until nobody waits for a request any more.
    pub(super) async fn abandoned(&self, context: &RequestContext<RoleServer>) {
        let finish = self.shared.options.finish_when_gone;
        // In the newest protocol over HTTP, to hang up is to cancel; whoever configured otherwise is obeyed.
        let hung_up = self.over_http && finish && Era::of(context) == Era::Rounds;
        tokio::select! {
            () = context.ct.cancelled(), if !hung_up => {}
            () = self.gone.cancelled(), if !finish => {}
            () = std::future::pending() => {}
        }
    }

    /// Whether the client wants to hear messages of this level.
    pub(super) fn logs(&self, context: &RequestContext<RoleServer>, level: LoggingLevel) -> bool {
        let wanted = self.log_rank(context);
        wanted != SILENT && rank(level) >= wanted
    }

    fn log_rank(&self, context: &RequestContext<RoleServer>) -> u8 {
        match Era::of(context) {
            Era::Requests => self.level.load(Ordering::Relaxed),
            Era::Rounds => context.meta.log_level().map_or(SILENT, rank),
        }
    }

    /// From which level on the client wants to hear what its calls log.
    pub(super) fn log_threshold(&self, context: &RequestContext<RoleServer>) -> Option<LogLevel> {
        level_of_rank(self.log_rank(context))
    }

    /// Tells whoever watches that there are new records.
    pub(super) async fn updated(&self, peer: &Peer<RoleServer>, call: &CallId) {
        self.shared.recent.ended(self.session(), call.clone());
        let watched = |uri: &String| self.watched.lock().unwrap_or_else(PoisonError::into_inner).contains(uri);
        for uri in grown(call).into_iter().filter(watched) {
            // A client that has gone need not be told.
            let _ = peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await;
        }
    }

    fn tools(&self, caller: &Caller) -> Arc<Vec<Tool>> {
        if let Some(bridged) = self.shared.bridged.as_ref().filter(|_| self.is_front()) {
            return Arc::new(bridged.front_tools(&self.shared.haft, caller));
        }
        let options = &self.shared.options;
        self.shared.listings.of(&self.shared.haft, caller, options.dialect, options.budget_tokens)
    }
}

/// The resources that have grown when a call has ended.
fn grown(call: &CallId) -> [String; 2] {
    [CALLS.to_owned(), format!("{CALLS}/{call}")]
}

/// What an agent is called after its client. A client may say anything; a name holds no more than letters, digits and
/// a few marks, and no `/`, which would make it somebody's child.
fn agent_name(said: &str) -> Option<String> {
    let plain =
        |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c.to_ascii_lowercase() } else { '-' };
    let name: String = said.trim().chars().take(NAME_MAX).map(plain).collect();
    let name = name.trim_matches('-');
    (!name.is_empty()).then(|| name.to_owned())
}

/// An error about a resource says which.
fn named(mut error: ErrorData, uri: &str) -> ErrorData {
    if error.code == ErrorCode::RESOURCE_NOT_FOUND {
        error.data.get_or_insert_with(|| json!({"uri": haft_core::preview::cut(uri, URI_MAX)}));
    }
    error
}

fn no_more(page: Option<&PaginatedRequestParams>) -> Result<(), ErrorData> {
    match page.and_then(|page| page.cursor.as_ref()) {
        None => Ok(()),
        Some(_) => Err(ErrorData::invalid_params("this list has one page; begin without a cursor", None)),
    }
}

impl ServerHandler for Door {
    fn get_info(&self) -> ServerConfig {
        let mut able = ServerCapabilities::builder()
            .enable_logging()
            .enable_completions()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_tasks()
            .build();
        // Only the lists of bridged servers change.
        if self.shared.bridged.is_some() {
            able.prompts.get_or_insert_default().list_changed = Some(true);
            able.resources.get_or_insert_default().list_changed = Some(true);
        }
        ServerConfig::new(able)
            .with_server_info(Implementation::new("haft", env!("CARGO_PKG_VERSION")))
            .with_instructions(if self.is_front() { FRONT_INSTRUCTIONS } else { INSTRUCTIONS })
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        // Said once: a client does not become somebody else.
        self.agent.get_or_init(|| agent_name(&request.client_info.name));
        if self.over_http {
            self.session.get_or_init(|| session_with_prefix(self.shared.options.session_prefix));
        }
        context.peer.set_peer_info(request.clone());
        let mut agreed = self.negotiate_initialize(&request)?;
        // Tasks are for the revisions that have no handshake.
        agreed.capabilities.extensions = None;
        Ok(agreed)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let mut followers = self.followers.lock().unwrap_or_else(PoisonError::into_inner);
        if followers.is_empty() {
            let (mut changes, peer) = (self.shared.haft.registry().changes(), context.peer);
            let told = peer.clone();
            followers.spawn(async move {
                while changes.changed().await.is_ok() {
                    tokio::time::sleep(SETTLING).await;
                    changes.mark_unchanged();
                    if told.notify_tool_list_changed().await.is_err() {
                        return;
                    }
                }
            });
            if self.shared.bridged.is_some() {
                followers.spawn(tell_news(Arc::clone(&self.shared), Arc::clone(&self.watched), peer));
            }
        }
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let (mut tools, mut calls) = (self.shared.haft.registry().changes(), self.shared.recent.listen());
        let session = self.session();
        let _watch = BridgedWatch::new(&self.shared, context.accepted());
        let mut news = self.shared.bridged.as_ref().map(BridgedServers::news);
        loop {
            // What a client did not subscribe to, it is not told.
            tokio::select! {
                heard = next_news(&mut news) => {
                    let told = match heard {
                        Ok(news) => self.shared.bridged.as_ref().and_then(|bridged| bridged.client_news(&news)),
                        Err(RecvError::Lagged(_)) => Some(ClientNews::ListChanged),
                        Err(RecvError::Closed) => return Ok(()),
                    };
                    if let Some(told) = told {
                        tell_subscription(&context, told).await;
                    }
                }
                () = context.cancelled() => return Ok(()),
                () = self.gone.cancelled() => return Ok(()),
                heard = tools.changed() => {
                    if heard.is_err() {
                        return Ok(());
                    }
                    tokio::time::sleep(SETTLING).await;
                    tools.mark_unchanged();
                    let _ = context.sink().notify_tool_list_changed().await;
                }
                heard = calls.recv() => match heard {
                    Ok((whose, call)) if whose == session => {
                        for uri in grown(&call) {
                            let _ = context.sink().notify_resource_updated(uri).await;
                        }
                    }
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => {
                        let _ = context.sink().notify_resource_updated(CALLS.to_owned()).await;
                    }
                    Err(RecvError::Closed) => return Ok(()),
                },
            }
        }
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        // Over HTTP, parameters that a tool wants repeated in headers are held against them.
        self.tools(&self.shared.options.caller).iter().find(|tool| tool.name == name).cloned()
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.start_front_server().await;
        let tools = self.tools(&self.caller(&context));
        listing::page(&tools, page.and_then(|page| page.cursor).as_deref())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Box::pin(call::answer(self, request, context)).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.shared.call_tasks.get(&self.task_owner(&context), &request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.shared.call_tasks.update(&self.task_owner(&context), &request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.shared.call_tasks.cancel(&self.task_owner(&context), &request.task_id)
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        no_more(page.as_ref())?;
        self.start_front_server().await;
        let (session, mut all) = (self.session(), Vec::new());
        for offer in self.listed_offers() {
            all.extend(offer.resources(&session).await);
        }
        if !self.is_front() {
            all.extend(skills::resources(self, &context).await);
        }
        if let Some(bridged) = &self.shared.bridged {
            all.extend(bridged.resources(&self.shared.haft, &self.caller(&context)));
        }
        Ok(ListResourcesResult::with_all_items(all))
    }

    async fn list_resource_templates(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        no_more(page.as_ref())?;
        self.start_front_server().await;
        let mut all: Vec<_> = self.listed_offers().iter().flat_map(|offer| offer.templates()).collect();
        if !self.is_front() {
            all.extend(skills::templates(self, &context).await);
        }
        if let Some(bridged) = &self.shared.bridged {
            all.extend(bridged.templates(&self.shared.haft, &self.caller(&context)));
        }
        Ok(ListResourceTemplatesResult::with_all_items(all))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let session = self.session();
        for offer in &self.shared.offers {
            if let Some(found) = offer.read(&session, &request.uri).await {
                return match found {
                    Ok(contents) => Ok(ReadResourceResult::new(contents).into()),
                    Err(error) => Err(named(error, &request.uri)),
                };
            }
        }
        let uri = request.uri.clone();
        if !self.is_front()
            && let Some(found) = skills::read(self, &context, &uri).await
        {
            return found.map(|contents| ReadResourceResult::new(contents).into()).map_err(|error| named(error, &uri));
        }
        // Boxed, because a request's future is moved several times before it runs.
        if let Some(found) = Box::pin(bridged::read_resource(self, request, &context)).await {
            return found.map_err(|error| named(error, &uri));
        }
        let missing = "there is no such resource; resources/list shows what there is";
        Err(named(ErrorData::resource_not_found(missing, None), &uri))
    }

    async fn subscribe(&self, request: SubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if watched.len() >= WATCHED_MAX {
            let why = format!("one client watches at most {WATCHED_MAX} resources");
            return Err(ErrorData::invalid_params(why, None));
        }
        let uri = haft_core::preview::cut(&request.uri, URI_MAX);
        if watched.insert(uri.clone())
            && let Some(bridged) = &self.shared.bridged
        {
            bridged.watch(&uri);
        }
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let was_watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner).remove(&request.uri);
        if let Some(bridged) = self.shared.bridged.as_ref().filter(|_| was_watched) {
            bridged.unwatch(&request.uri);
        }
        Ok(())
    }

    async fn list_prompts(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        no_more(page.as_ref())?;
        self.start_front_server().await;
        let mut all: Vec<_> = self.listed_offers().iter().flat_map(|offer| offer.prompts()).collect();
        if !self.is_front() {
            all.extend(skills::prompts(self, &context).await);
        }
        if let Some(bridged) = &self.shared.bridged {
            all.extend(bridged.prompts(&self.shared.haft, &self.caller(&context)));
        }
        Ok(ListPromptsResult::with_all_items(all))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let session = self.session();
        for offer in &self.shared.offers {
            if let Some(found) = offer.prompt(&session, &request).await {
                return found;
            }
        }
        if !self.is_front()
            && let Some(found) = skills::prompt(self, &context, &request).await
        {
            return found;
        }
        if let Some(found) = Box::pin(bridged::get_prompt(self, request, &context)).await {
            return found;
        }
        Err(ErrorData::invalid_params("there is no such prompt; prompts/list shows what there is", None))
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let session = self.session();
        let (of, argument) = (&request.r#ref, &request.argument);
        for offer in &self.shared.offers {
            if let Some(mut values) = offer.complete(&session, of, &argument.name, &argument.value).await {
                let total = u32::try_from(values.len()).ok();
                let more = values.len() > CompletionInfo::MAX_VALUES;
                values.truncate(CompletionInfo::MAX_VALUES);
                let found = CompletionInfo::with_pagination(values, total, more);
                return found.map(CompleteResult::new).map_err(|error| ErrorData::internal_error(error, None));
            }
        }
        if !self.is_front()
            && let Some(values) = skills::complete(self, &context, (of, &argument.name, &argument.value)).await
        {
            let found = CompletionInfo::with_all_values(values);
            return found.map(CompleteResult::new).map_err(|error| ErrorData::internal_error(error, None));
        }
        if let Some(found) = Box::pin(bridged::complete(self, request, &context)).await {
            return found;
        }
        Err(ErrorData::invalid_params("there is no such prompt or resource template", None))
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if Era::of(&context) == Era::Rounds {
            return Err(unknown_method::removed("logging/setLevel"));
        }
        self.level.store(rank(request.level), Ordering::Relaxed);
        Ok(())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(unknown_method::refusal(&request.method, Era::of(&context)))
    }
}

const INSTRUCTIONS: &str = "Tools to work on this machine, under the user's policy. A call may need a person's \
approval: then it waits, or says where it is decided. A denied call stays denied; do not try to get around it. \
Tools that are not listed are found with tool_search and called with tool_call.";

const FRONT_INSTRUCTIONS: &str = "Tools of one server, under the user's policy. A call may need a person's approval: then \
it waits, or says where it is decided. A denied call stays denied; do not try to get around it.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_cannot_name_itself_somebodys_child() {
        assert_eq!(agent_name("Claude Code").as_deref(), Some("claude-code"));
        assert_eq!(agent_name("a/b\n\u{1b}[0m").as_deref(), Some("a-b---0m"));
        assert_eq!(agent_name(" \u{202e} "), None);
        assert_eq!(agent_name(&"x".repeat(500)).map(|name| name.len()), Some(NAME_MAX));
    }
}
