//! What a server may ask of haft: a person's words, a model's, and where the project is. Everything goes to whoever
//! answers for the call that the server is serving, where it is shown, counted and recorded; between calls nobody is
//! asked anything.

#![expect(deprecated, reason = "servers of the versions before 2026-07-28 sample and ask for roots")]

use super::log_message::ServerLog;
use super::tamed;
use crate::content::remove_own_meta_within;
use haft_core::preview::inert;
use haft_core::{CallId, Caller, SessionId};
use haft_runtime::events::{LogLevel, Share};
use haft_runtime::{CallerOffer, Form, SamplingConsent, Scene, Written};
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, CustomRequest, CustomResult,
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability, ErrorCode, FormElicitationCapability,
    Implementation, InputRequest, JsonObject, ListRootsResult, LoggingMessageNotificationParam, NumberOrString,
    ProgressNotificationParam, ProgressToken, ProtocolVersion, RequestId, Root, RootsCapabilities, SamplingCapability,
    TASKS_EXTENSION_ID,
};
use rmcp::service::{InboundStreamOrigin, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, broadcast};

/// How many questions of one server are open at once in one conversation. What one client leaves open holds up no other.
const OPEN_MAX: usize = 4;
/// The largest request for a model that is passed on.
const REQUEST_MAX: usize = 1 << 20;
/// How much of a message is shown to a person.
const MESSAGE_MAX: usize = 4096;
/// How many progress notifications are kept for requests that are not known yet.
const EARLY_MAX: usize = 64;
/// How many log messages of one call are passed on.
const LOGS_MAX: usize = 1000;
/// How many updates of resources a slow listener may miss.
const UPDATES_MAX: usize = 256;

/// What a server hears of haft in general. What a caller does not offer is taken out for its own call.
pub(super) const USUAL_OFFER: CallerOffer = CallerOffer { model: true, forms: true, tasks: false };

/// The calls that a server is serving, and what it has to say to them.
#[derive(Debug)]
pub(super) struct Desk {
    server: String,
    /// The project's address, if the server may read it.
    root: Option<String>,
    calls: Mutex<Calls>,
    /// Whether the user agreed beforehand that the caller's model answers this server.
    sampling: SamplingConsent,
    heard: AtomicU64,
    /// What it offers has changed.
    pub(super) changed: Notify,
    /// The resources that the server says have changed, by their addresses there.
    updates: broadcast::Sender<String>,
}

#[derive(Default)]
struct Calls {
    next: u64,
    running: Vec<RunningCall>,
    open: Vec<OpenQuestion>,
    tokens: HashMap<ProgressToken, Scene>,
    /// Progress of requests that are not tracked yet: a fast server is heard before its request is known to be sent.
    early: VecDeque<ProgressNotificationParam>,
}

impl Calls {
    /// The call that something belongs to where nothing says which.
    fn sole(&self) -> Option<&RunningCall> {
        let is_asking = |running: &RunningCall| self.open.iter().any(|open| open.call == running.scene.call().id);
        let idle: Vec<&RunningCall> = self.running.iter().filter(|call| !is_asking(call)).collect();
        let candidates = if idle.is_empty() { self.running.iter().collect() } else { idle };
        sole(&candidates, |call| Conversation::of(&call.scene)).copied()
    }
}

/// A question of the server's that nobody has answered yet.
struct OpenQuestion {
    call: CallId,
    conversation: Conversation,
}

/// A call that the server is serving.
struct RunningCall {
    number: u64,
    scene: Scene,
    /// Its latest request.
    request: Option<RequestId>,
    /// How many log messages were passed on.
    logs: usize,
}

impl std::fmt::Debug for Calls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Calls").field("running", &self.running.len()).finish_non_exhaustive()
    }
}

/// A call at the desk, as long as this lives.
pub(super) struct Served<'d> {
    desk: &'d Desk,
    number: u64,
}

impl Drop for Served<'_> {
    fn drop(&mut self) {
        self.desk.with(|calls| calls.running.retain(|call| call.number != self.number));
    }
}

/// A request whose progress is passed on, as long as this lives.
pub(super) struct Tracked<'d> {
    desk: &'d Desk,
    token: ProgressToken,
}

impl Drop for Tracked<'_> {
    fn drop(&mut self) {
        self.desk.with(|calls| calls.tokens.remove(&self.token));
    }
}

/// An open question of a call, as long as this lives.
struct Asking<'d> {
    desk: &'d Desk,
    call: CallId,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.desk.with(|calls| {
            if let Some(at) = calls.open.iter().position(|open| open.call == self.call) {
                calls.open.swap_remove(at);
            }
        });
    }
}

/// What two calls have in common if a question may belong to either of them. An independent call is a conversation of
/// its own.
#[derive(PartialEq)]
struct Conversation {
    session: SessionId,
    caller: Caller,
    independent: Option<CallId>,
}

impl Conversation {
    fn of(scene: &Scene) -> Self {
        let call = scene.call();
        let independent = call.independent.then(|| call.id.clone());
        Self { session: call.session.clone(), caller: call.caller.clone(), independent }
    }
}

impl Desk {
    pub(super) fn new(server: &str, root: Option<String>, sampling: SamplingConsent) -> Self {
        Self {
            server: server.to_owned(),
            root,
            sampling,
            calls: Mutex::default(),
            heard: AtomicU64::new(0),
            changed: Notify::new(),
            updates: broadcast::Sender::new(UPDATES_MAX),
        }
    }

    fn with<T>(&self, look: impl FnOnce(&mut Calls) -> T) -> T {
        look(&mut self.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A call that the server is about to serve.
    pub(super) fn serve(&self, scene: &Scene) -> Served<'_> {
        let number = self.with(|calls| {
            calls.next += 1;
            calls.running.push(RunningCall { number: calls.next, scene: scene.clone(), request: None, logs: 0 });
            calls.next
        });
        Served { desk: self, number }
    }

    /// Passes on what the server reports about a request.
    pub(super) fn track(
        &self,
        served: &Served<'_>,
        id: &RequestId,
        token: ProgressToken,
        scene: &Scene,
    ) -> Tracked<'_> {
        let early = self.with(|calls| {
            calls.tokens.insert(token.clone(), scene.clone());
            if let Some(call) = calls.running.iter_mut().find(|call| call.number == served.number) {
                call.request = Some(id.clone());
            }
            let (early, later) = std::mem::take(&mut calls.early).into_iter().partition(|said| token_of(said) == token);
            calls.early = later;
            let early: VecDeque<ProgressNotificationParam> = early;
            early
        });
        for said in early {
            self.progress(said);
        }
        Tracked { desk: self, token }
    }

    /// Whether somebody is thinking about a question of the server's.
    pub(super) fn is_asking(&self) -> bool {
        self.with(|calls| !calls.open.is_empty())
    }

    /// How often progress was heard.
    pub(super) fn heard(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }

    /// The call that something belongs to: that of the request on whose stream it came. Where nothing says which, all
    /// calls have to be of the same conversation, or one would be asked for another's words. A call that already waits for
    /// an answer rarely asks again, so a question that was left open does not make those of later calls ambiguous.
    fn call_of(&self, request: Option<&RequestId>) -> Option<Scene> {
        self.with(|calls| {
            let known = request.and_then(|id| calls.running.iter().find(|call| call.request.as_ref() == Some(id)));
            known.or_else(|| calls.sole()).map(|call| call.scene.clone())
        })
    }

    /// Passes a log message on to the call that it belongs to.
    pub(super) fn log(&self, said: LoggingMessageNotificationParam, request: Option<&RequestId>) {
        let Some(scene) = self.call_of(request) else { return };
        let is_heard = self.with(|calls| {
            let call = calls.running.iter_mut().find(|call| call.scene.call().id == scene.call().id);
            call.is_some_and(|call| {
                call.logs += 1;
                call.logs <= LOGS_MAX
            })
        });
        if !is_heard {
            return;
        }
        let level = serde_json::to_value(said.level).ok().and_then(|level| serde_json::from_value(level).ok());
        let ServerLog { logger, data } = ServerLog::new(&self.server, said.logger.as_deref(), said.data);
        scene.log(level.unwrap_or(LogLevel::Info), Some(logger), data);
    }

    /// Hears that a resource has changed.
    pub(super) fn resource_updated(&self, uri: &str) {
        // Often nobody listens.
        let _ = self.updates.send(uri.to_owned());
    }

    /// Listens for changes of resources.
    pub(super) fn resource_updates(&self) -> broadcast::Receiver<String> {
        self.updates.subscribe()
    }

    /// Opens a question, unless too many are open in its conversation.
    fn open_question(&self, scene: &Scene) -> Option<Asking<'_>> {
        let (call, conversation) = (scene.call().id.clone(), Conversation::of(scene));
        let opened = OpenQuestion { call: call.clone(), conversation };
        let is_opened = self.with(|calls| {
            let has_room = has_room(calls.open.iter().map(|open| &open.conversation), &opened.conversation);
            if has_room {
                calls.open.push(opened);
            }
            has_room
        });
        is_opened.then_some(Asking { desk: self, call })
    }

    fn from(&self) -> String {
        format!("the MCP server `{}`", self.server)
    }

    /// Puts a question of the server's to the person behind the call.
    async fn elicit(&self, scene: Option<Scene>, request: ElicitRequestParams) -> ElicitResult {
        match request {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                let schema = serde_json::to_value(&requested_schema).unwrap_or_default();
                self.show_form(scene, &message, schema).await
            }
            // A page that a server chose is not opened for it.
            _ => ElicitResult::new(ElicitationAction::Decline),
        }
    }

    async fn show_form(&self, scene: Option<Scene>, message: &str, schema: Value) -> ElicitResult {
        let declined = ElicitResult::new(ElicitationAction::Decline);
        let Some(scene) = scene else { return declined };
        let Some(_open) = self.open_question(&scene) else { return declined };
        let form = Form { from: self.from(), message: tamed(message, MESSAGE_MAX), schema };
        match scene.back().elicit(form).await {
            Written::Answer(answer) => ElicitResult::new(ElicitationAction::Accept).with_content(answer),
            Written::Cancelled => ElicitResult::new(ElicitationAction::Cancel),
            Written::Declined | Written::Nobody => declined,
        }
    }

    async fn sample(
        &self,
        scene: Option<Scene>,
        request: CreateMessageRequestParams,
    ) -> Result<CreateMessageResult, ErrorData> {
        let refused = |why: String| ErrorData::new(rmcp::model::ErrorCode(-1), why, None);
        let scene = scene.ok_or_else(|| refused("there is no one call that this belongs to".to_owned()))?;
        let Some(_open) = self.open_question(&scene) else {
            return Err(refused("too many questions are open".to_owned()));
        };
        let mut request = serde_json::to_value(request).map_err(|error| refused(error.to_string()))?;
        remove_own_meta_within(&mut request);
        if request.to_string().len() > REQUEST_MAX {
            return Err(refused(format!("a request for a model has at most {} KiB", REQUEST_MAX >> 10)));
        }
        let answer = scene
            .back()
            .sample_with_consent(self.from(), request, self.sampling)
            .await
            .map_err(|error| refused(error.message))?;
        serde_json::from_value(answer).map_err(|error| refused(format!("the model's answer cannot be read: {error}")))
    }

    /// What a server may ask for, and whether it may answer with a task.
    pub(super) fn capabilities(&self, offer: CallerOffer) -> ClientCapabilities {
        let mut capabilities = ClientCapabilities::default();
        let forms = || ElicitationCapability::new().with_form(FormElicitationCapability::default());
        capabilities.elicitation = offer.forms.then(forms);
        capabilities.sampling = offer.model.then(SamplingCapability::default);
        capabilities.roots = self.root.as_ref().map(|_| RootsCapabilities::default());
        if offer.tasks {
            capabilities.extensions.get_or_insert_default().insert(TASKS_EXTENSION_ID.to_owned(), JsonObject::new());
        }
        capabilities
    }

    fn roots(&self) -> ListRootsResult {
        ListRootsResult::new(self.root.iter().map(|uri| Root::new(uri.clone()).with_name("project")).collect())
    }

    /// Answers what a server of the newest version needs to go on with a call. A form that has no title is named by the
    /// server's key for it, so that a client finds it under the same key.
    pub(super) async fn fulfil(&self, scene: &Scene, key: &str, request: InputRequest) -> Result<Value, ErrorData> {
        let whose = Some(scene.clone());
        let answer = match request {
            InputRequest::Elicitation(request) => serde_json::to_value(match request.params {
                ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                    let mut schema = serde_json::to_value(&requested_schema).unwrap_or_default();
                    if let Some(members) = schema.as_object_mut() {
                        members.entry("title").or_insert_with(|| key.into());
                    }
                    self.show_form(whose, &message, schema).await
                }
                other => self.elicit(whose, other).await,
            }),
            InputRequest::CreateMessage(request) => serde_json::to_value(self.sample(whose, request.params).await?),
            InputRequest::ListRoots(_) => serde_json::to_value(self.roots()),
            _ => return Err(ErrorData::invalid_request("this cannot be asked for", None)),
        };
        answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    /// Passes progress on to the call whose request it is about.
    pub(super) fn progress(&self, said: ProgressNotificationParam) {
        self.heard.fetch_add(1, Ordering::Relaxed);
        let scene = self.with(|calls| {
            let scene = calls.tokens.get(&token_of(&said)).cloned();
            if scene.is_none() && !calls.running.is_empty() && calls.early.len() < EARLY_MAX {
                calls.early.push_back(said.clone());
            }
            scene
        });
        if let Some(scene) = scene {
            let message = said.message.map_or_else(
                || match said.total {
                    Some(total) => format!("{} of {total}", said.progress),
                    None => said.progress.to_string(),
                },
                |message| inert(&tamed(&message, 500)),
            );
            scene.report(message, Some(Share { progress: said.progress, total: said.total }));
        }
    }
}

/// The token of a progress notification. Some servers turn a number into text.
fn token_of(said: &ProgressNotificationParam) -> ProgressToken {
    match &said.progress_token.0 {
        NumberOrString::String(text) => {
            text.parse().map_or(said.progress_token.clone(), |number| ProgressToken(NumberOrString::Number(number)))
        }
        NumberOrString::Number(_) => said.progress_token.clone(),
    }
}

/// Whether one more question may be open in a conversation.
fn has_room<'c>(open: impl Iterator<Item = &'c Conversation>, conversation: &Conversation) -> bool {
    open.filter(|open| *open == conversation).count() < OPEN_MAX
}

/// The latest, if all belong to the same.
fn sole<T, K: PartialEq>(all: &[T], whose: impl Fn(&T) -> K) -> Option<&T> {
    let last = all.last()?;
    all.iter().all(|one| whose(one) == whose(last)).then_some(last)
}

/// haft as a server sees it.
pub(super) struct Answerer(pub(super) Arc<Desk>);

impl ClientHandler for Answerer {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(self.0.capabilities(USUAL_OFFER), Implementation::new("haft", env!("CARGO_PKG_VERSION")))
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(self.0.elicit(self.0.call_of(origin(&context)), request).await)
    }

    async fn create_message(
        &self,
        request: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.0.sample(self.0.call_of(origin(&context)), request).await
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(self.0.roots())
    }

    /// What the SDK has no type for comes here: forms in a shape that it does not know are shown all the same.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        let params = request.params.unwrap_or_default();
        let message = params.get("message").and_then(Value::as_str);
        let (Some(message), Some(schema), "elicitation/create") =
            (message, params.get("requestedSchema").filter(|schema| schema.is_object()), request.method.as_str())
        else {
            let method = inert(&tamed(&request.method, 80));
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method {method}"), None));
        };
        let answer = self.0.show_form(self.0.call_of(origin(&context)), message, schema.clone()).await;
        let answer = serde_json::to_value(answer);
        answer.map(CustomResult::new).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }
}

/// The request on whose stream a question came, where the transport tells.
fn origin(context: &RequestContext<RoleClient>) -> Option<&RequestId> {
    match context.extensions.get::<InboundStreamOrigin>() {
        Some(InboundStreamOrigin::OutboundRequest(id)) => Some(id),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_asked_for_anothers_words() {
        let whose = |call: &(&'static str, u8)| call.0;
        assert_eq!(sole(&[("alice", 1), ("alice", 2)], whose), Some(&("alice", 2)));
        assert_eq!(sole(&[("alice", 1), ("bob", 2)], whose), None);
        assert_eq!(sole(&[], whose), None);
    }

    #[test]
    fn open_questions_of_one_conversation_leave_room_for_another() {
        let of = |session: &str, call: Option<u64>| Conversation {
            session: SessionId::new(session).unwrap(),
            caller: Caller::default(),
            independent: call.map(|call| CallId::new(1, call)),
        };
        let open: Vec<Conversation> = (0..OPEN_MAX).map(|_| of("one", None)).collect();
        assert!(!has_room(open.iter(), &of("one", None)));
        assert!(has_room(open.iter(), &of("two", None)) && has_room(open[1..].iter(), &of("one", None)));
        // Clients without a session share one, and each of their calls stands for itself.
        let open: Vec<Conversation> = (0..64).map(|call| of("all", Some(call))).collect();
        assert!(has_room(open.iter(), &of("all", Some(64))));
    }
}
