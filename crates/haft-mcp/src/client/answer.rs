//! What a server may ask of haft: a person's words, a model's, and where the project is. Everything goes to whoever
//! answers for the call that the server is serving, where it is shown, counted and recorded; between calls nobody is
//! asked anything.

#![expect(deprecated, reason = "servers of the versions before 2026-07-28 sample and ask for roots")]

use super::tamed;
use haft_core::preview::inert;
use haft_runtime::events::Share;
use haft_runtime::{Form, Scene, Written};
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationCapability, FormElicitationCapability, Implementation, InputRequest,
    ListRootsResult, NumberOrString, ProgressNotificationParam, ProgressToken, ProtocolVersion, Root,
    RootsCapabilities, SamplingCapability,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, Semaphore};

/// How many questions of one server are open at once.
const OPEN_MAX: usize = 4;
/// The largest request for a model that is passed on.
const REQUEST_MAX: usize = 1 << 20;
/// How much of a message is shown to a person.
const MESSAGE_MAX: usize = 4096;

/// The calls that a server is serving, and what it has to say to them.
#[derive(Debug)]
pub(super) struct Desk {
    server: String,
    /// The project's address, if the server may read it.
    root: Option<String>,
    calls: Mutex<Calls>,
    open: Semaphore,
    asking: AtomicUsize,
    heard: AtomicU64,
    /// Its tools have changed.
    pub(super) changed: Notify,
}

#[derive(Default)]
struct Calls {
    next: u64,
    running: Vec<(u64, Scene)>,
    tokens: HashMap<ProgressToken, Scene>,
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
        self.desk.with(|calls| calls.running.retain(|(number, _)| *number != self.number));
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

/// Counts a question that somebody thinks about.
struct Asking<'d>(&'d AtomicUsize);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Desk {
    pub(super) fn new(server: &str, root: Option<String>) -> Self {
        Self {
            server: server.to_owned(),
            root,
            calls: Mutex::default(),
            open: Semaphore::new(OPEN_MAX),
            asking: AtomicUsize::new(0),
            heard: AtomicU64::new(0),
            changed: Notify::new(),
        }
    }

    fn with<T>(&self, look: impl FnOnce(&mut Calls) -> T) -> T {
        look(&mut self.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A call that the server is about to serve.
    pub(super) fn serve(&self, scene: &Scene) -> Served<'_> {
        let number = self.with(|calls| {
            calls.next += 1;
            calls.running.push((calls.next, scene.clone()));
            calls.next
        });
        Served { desk: self, number }
    }

    /// Passes the progress of a request on.
    pub(super) fn track(&self, token: ProgressToken, scene: &Scene) -> Tracked<'_> {
        self.with(|calls| calls.tokens.insert(token.clone(), scene.clone()));
        Tracked { desk: self, token }
    }

    /// Whether somebody is thinking about a question of the server's.
    pub(super) fn is_asking(&self) -> bool {
        self.asking.load(Ordering::Relaxed) > 0
    }

    /// How often progress was heard.
    pub(super) fn heard(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }

    /// The call that a question belongs to. Nothing says which: it has to be the same conversation, whichever it is,
    /// or one would be asked for another's words.
    fn only(&self) -> Option<Scene> {
        let whose = |(_, scene): &(u64, Scene)| (scene.call().session.clone(), scene.call().caller.clone());
        self.with(|calls| sole(&calls.running, whose).map(|(_, scene)| scene.clone()))
    }

    fn asks(&self) -> Asking<'_> {
        self.asking.fetch_add(1, Ordering::Relaxed);
        Asking(&self.asking)
    }

    fn from(&self) -> String {
        format!("the MCP server `{}`", self.server)
    }

    async fn elicit(&self, scene: Option<Scene>, request: ElicitRequestParams) -> ElicitResult {
        let declined = ElicitResult::new(ElicitationAction::Decline);
        let (Ok(_open), Some(scene)) = (self.open.try_acquire(), scene) else { return declined };
        // A page that a server chose is not opened for it.
        let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = request else {
            return declined;
        };
        let schema = serde_json::to_value(&requested_schema).unwrap_or_default();
        let form = Form { from: self.from(), message: tamed(&message, MESSAGE_MAX), schema };
        let _asking = self.asks();
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
        let Ok(_open) = self.open.try_acquire() else {
            return Err(refused("too many questions are open".to_owned()));
        };
        let scene = scene.ok_or_else(|| refused("there is no one call that this belongs to".to_owned()))?;
        let request = serde_json::to_value(request).map_err(|error| refused(error.to_string()))?;
        if request.to_string().len() > REQUEST_MAX {
            return Err(refused(format!("a request for a model has at most {} KiB", REQUEST_MAX >> 10)));
        }
        let _asking = self.asks();
        let answer = scene.back().sample(self.from(), request).await.map_err(|error| refused(error.message))?;
        serde_json::from_value(answer).map_err(|error| refused(format!("the model's answer cannot be read: {error}")))
    }

    fn roots(&self) -> ListRootsResult {
        ListRootsResult::new(self.root.iter().map(|uri| Root::new(uri.clone()).with_name("project")).collect())
    }

    /// Answers what a server of the newest version needs to go on with a call.
    pub(super) async fn fulfil(&self, scene: &Scene, request: InputRequest) -> Result<Value, ErrorData> {
        let whose = Some(scene.clone());
        let answer = match request {
            InputRequest::Elicitation(request) => serde_json::to_value(self.elicit(whose, request.params).await),
            InputRequest::CreateMessage(request) => serde_json::to_value(self.sample(whose, request.params).await?),
            InputRequest::ListRoots(_) => serde_json::to_value(self.roots()),
            _ => return Err(ErrorData::invalid_request("this cannot be asked for", None)),
        };
        answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    fn progress(&self, said: ProgressNotificationParam) {
        self.heard.fetch_add(1, Ordering::Relaxed);
        // Some servers turn a number into text.
        let token = match &said.progress_token.0 {
            NumberOrString::String(text) => {
                text.parse().map_or(said.progress_token.clone(), |number| ProgressToken(NumberOrString::Number(number)))
            }
            NumberOrString::Number(_) => said.progress_token.clone(),
        };
        let scene = self.with(|calls| calls.tokens.get(&token).cloned());
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

/// The latest, if all belong to the same.
fn sole<T, K: PartialEq>(all: &[T], whose: impl Fn(&T) -> K) -> Option<&T> {
    let last = all.last()?;
    all.iter().all(|one| whose(one) == whose(last)).then_some(last)
}

/// haft as a server sees it.
pub(super) struct Answerer(pub(super) Arc<Desk>);

impl ClientHandler for Answerer {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::new().with_form(FormElicitationCapability::default()));
        capabilities.sampling = Some(SamplingCapability::default());
        capabilities.roots = self.0.root.as_ref().map(|_| RootsCapabilities::default());
        ClientConfig::new(capabilities, Implementation::new("haft", env!("CARGO_PKG_VERSION")))
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(self.0.elicit(self.0.only(), request).await)
    }

    async fn create_message(
        &self,
        request: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.0.sample(self.0.only(), request).await
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(self.0.roots())
    }

    async fn on_progress(&self, said: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.0.progress(said);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.changed.notify_one();
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
}
