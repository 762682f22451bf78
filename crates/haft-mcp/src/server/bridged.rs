//! What bridged servers offer besides tools, as a client of haft sees it: their resources, templates, prompts and
//! completions. A client that reads a resource or fills in a prompt makes a call, which policy decides and the log keeps.
//!
//! haft names what several servers offer after the server: `haft://mcp/SERVER/ADDRESS`, `mcp__SERVER__PROMPT`. A server's
//! own names are understood where they mean one thing. In front of one server alone, haft keeps the server's names.

use super::call::{Carried, RoundInput, carry, crashed, lacking, new_call};
use super::door::Door;
use super::reply::text;
use super::rounds::LongCall;
use crate::client::Bridge;
use crate::client::catalogue::{Catalogue, DESCRIPTION, OfferNews, OfferedTool, ROLE, Reading, ServerNews};
use crate::client::tamed;
use crate::content::{resource_to_wire, to_wire};
use haft_core::content::{ContentBlock, ContentBody};
use haft_core::outcome::Label;
use haft_core::scan::{closing, mark_of};
use haft_core::{Caller, Outcome};
use haft_runtime::Haft;
use rmcp::RoleServer;
use rmcp::model::{
    CompleteRequestParams, CompleteResult, ErrorCode, ErrorData, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, InputRequiredResult, JsonObject, MetaObject, Prompt, PromptMessage, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Reference, Resource, ResourceTemplate, Role, Tool,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};
use std::sync::Arc;

/// How the addresses of bridged resources begin.
const RESOURCES: &str = "haft://mcp/";
/// How the names of bridged prompts begin.
const PROMPTS: &str = "mcp__";
/// The longest description of a tool that is passed on.
const DESCRIPTION_MAX: usize = 4096;
/// The code for a call that was not carried out, for reasons of haft's own.
const NOT_CARRIED_OUT: ErrorCode = ErrorCode(-32000);

/// The bridged servers that a client sees.
#[derive(Clone)]
pub(super) struct BridgedServers {
    bridge: Arc<Bridge>,
    /// The one server that haft stands in front of; otherwise the client sees all.
    front: Option<String>,
}

/// Something at a bridged server.
pub(super) struct Remote {
    server: String,
    /// Its name or address there.
    name: String,
}

impl BridgedServers {
    /// All servers of a bridge.
    pub(super) fn all(bridge: Arc<Bridge>) -> Self {
        Self { bridge, front: None }
    }

    /// One server alone, under its own names.
    pub(super) fn front(bridge: Arc<Bridge>, server: &str) -> Self {
        Self { bridge, front: Some(server.to_owned()) }
    }

    /// Starts the server that haft stands in front of, if it has not been started yet.
    pub(super) async fn wake_front(&self) {
        if let Some(front) = &self.front {
            self.bridge.learn_catalogue(front).await;
        }
    }

    /// Whether haft stands in front of one server.
    pub(super) fn is_front(&self) -> bool {
        self.front.is_some()
    }

    /// The lists that a caller sees: of servers that the policy lets it read.
    fn catalogues(&self, haft: &Haft, caller: &Caller, reading: Reading) -> Vec<(String, Catalogue)> {
        let seen = |server: &str| self.front.as_deref().is_none_or(|front| front == server);
        let all = self.bridge.catalogues().into_iter();
        let read = all.filter(|(server, _)| seen(server) && admits(haft, caller, reading, server));
        read.map(|(server, catalogue)| (server.to_owned(), catalogue)).collect()
    }

    fn offered_uri(&self, server: &str, uri: &str) -> String {
        if self.is_front() { uri.to_owned() } else { format!("{RESOURCES}{server}/{uri}") }
    }

    /// The resources that a caller may read.
    pub(super) fn resources(&self, haft: &Haft, caller: &Caller) -> Vec<Resource> {
        let mut all = Vec::new();
        for (server, catalogue) in self.catalogues(haft, caller, Reading::Resource) {
            all.extend(catalogue.resources.into_iter().map(|mut resource| {
                resource.uri = self.offered_uri(&server, &resource.uri);
                resource
            }));
        }
        all
    }

    /// The forms that the addresses of further ones have.
    pub(super) fn templates(&self, haft: &Haft, caller: &Caller) -> Vec<ResourceTemplate> {
        let mut all = Vec::new();
        for (server, catalogue) in self.catalogues(haft, caller, Reading::Resource) {
            all.extend(catalogue.templates.into_iter().map(|mut template| {
                template.uri_template = self.offered_uri(&server, &template.uri_template);
                template
            }));
        }
        all
    }

    /// The prompts that a caller may use.
    pub(super) fn prompts(&self, haft: &Haft, caller: &Caller) -> Vec<Prompt> {
        let mut all = Vec::new();
        for (server, catalogue) in self.catalogues(haft, caller, Reading::Prompt) {
            all.extend(catalogue.prompts.into_iter().map(|mut prompt| {
                if !self.is_front() {
                    prompt.name = format!("{PROMPTS}{server}__{}", prompt.name);
                }
                prompt
            }));
        }
        all
    }

    /// Whose resource an address is. An address of a server's own is understood if one server alone knows it.
    pub(super) fn find_resource(&self, uri: &str) -> Option<Remote> {
        if let Some(server) = &self.front {
            return Some(Remote { server: server.clone(), name: uri.to_owned() });
        }
        if let Some(rest) = uri.strip_prefix(RESOURCES) {
            let (server, uri) = rest.split_once('/')?;
            return self.bridge.has(server).then(|| Remote { server: server.to_owned(), name: uri.to_owned() });
        }
        self.sole(uri, |catalogue| catalogue.has_resource(uri))
    }

    /// Whose prompt a name is.
    fn find_prompt(&self, name: &str) -> Option<Remote> {
        if let Some(server) = &self.front {
            return Some(Remote { server: server.clone(), name: name.to_owned() });
        }
        let qualified = self.bridge.catalogues().into_iter().find_map(|(server, _)| {
            let own = name.strip_prefix(PROMPTS)?.strip_prefix(server)?.strip_prefix("__")?;
            Some(Remote { server: server.to_owned(), name: own.to_owned() })
        });
        qualified.or_else(|| self.sole(name, |catalogue| catalogue.prompts.iter().any(|prompt| prompt.name == name)))
    }

    /// Whose template it is.
    fn find_template(&self, template: &str) -> Option<Remote> {
        let is_listed = |catalogue: &Catalogue| catalogue.templates.iter().any(|one| one.uri_template == template);
        if self.is_front() || template.starts_with(RESOURCES) {
            return self.find_resource(template);
        }
        self.sole(template, is_listed)
    }

    fn sole(&self, name: &str, has: impl Fn(&Catalogue) -> bool) -> Option<Remote> {
        let catalogues = self.bridge.catalogues();
        let mut owners = catalogues.iter().filter(|(_, catalogue)| has(catalogue));
        match (owners.next(), owners.next()) {
            (Some((server, _)), None) => Some(Remote { server: (*server).to_owned(), name: name.to_owned() }),
            _ => None,
        }
    }

    /// The tools of the server that haft stands in front of, as the server declares them.
    pub(super) fn front_tools(&self, haft: &Haft, caller: &Caller) -> Vec<Tool> {
        let Some(server) = &self.front else { return Vec::new() };
        let admitted = |name: &str| {
            haft.registry().get(name).is_some_and(|entry| haft.settings().policy().admits(entry.spec(), caller).is_ok())
        };
        let offered = self.bridge.tools_of(server).into_iter().filter(|tool| admitted(&tool.name));
        let mut tools: Vec<Tool> = offered.filter_map(front_tool).collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        tools
    }

    /// What haft calls a tool of the server that it stands in front of.
    pub(super) fn front_tool_name(&self, spoken: &str) -> Option<String> {
        let server = self.front.as_deref()?;
        let own = self.bridge.tools_of(server).into_iter().find(|tool| tool.own_name == spoken);
        Some(own.map_or_else(|| format!("mcp:{server}:{spoken}"), |tool| tool.name))
    }

    /// What an argument of a prompt or a template may be. None if it is not among what these servers offer.
    pub(super) async fn complete(
        &self,
        haft: &Haft,
        caller: &Caller,
        mut request: CompleteRequestParams,
    ) -> Option<Result<CompleteResult, ErrorData>> {
        let (remote, reading) = match &mut request.r#ref {
            Reference::Prompt(prompt) => {
                let remote = self.find_prompt(&prompt.name)?;
                prompt.name.clone_from(&remote.name);
                (remote, Reading::Prompt)
            }
            Reference::Resource(template) => {
                let remote = self.find_template(&template.uri)?;
                template.uri.clone_from(&remote.name);
                (remote, Reading::Resource)
            }
            _ => return None,
        };
        let catalogues = self.catalogues(haft, caller, reading);
        let (_, catalogue) = catalogues.iter().find(|(server, _)| *server == remote.server)?;
        if !catalogue.completes {
            return Some(Ok(CompleteResult::default()));
        }
        // What the client says about itself is not for the server.
        request.meta = None;
        Some(self.bridge.complete(&remote.server, request).await.map_err(|error| wire_error(&error)))
    }

    /// Watches a resource for a client.
    pub(super) fn watch(&self, uri: &str) {
        if let Some(remote) = self.find_resource(uri) {
            self.bridge.watch(&remote.server, &remote.name);
        }
    }

    /// Watches it no longer.
    pub(super) fn unwatch(&self, uri: &str) {
        if let Some(remote) = self.find_resource(uri) {
            self.bridge.unwatch(&remote.server, &remote.name);
        }
    }

    /// Hears of changes.
    pub(super) fn news(&self) -> tokio::sync::broadcast::Receiver<ServerNews> {
        self.bridge.news()
    }

    /// What a piece of news means to a client: the addresses by which it may know a resource; none if lists changed.
    pub(super) fn told(&self, news: &ServerNews) -> Option<ClientNews> {
        if self.front.as_deref().is_some_and(|front| front != news.server) {
            return None;
        }
        Some(match &news.news {
            OfferNews::ListChanged => ClientNews::ListChanged,
            OfferNews::ResourceUpdated(uri) => {
                ClientNews::ResourceUpdated([self.offered_uri(&news.server, uri), uri.clone()])
            }
        })
    }
}

/// A tool as its server declares it, with a description that cannot act on whoever shows it.
fn front_tool(tool: OfferedTool) -> Option<Tool> {
    let mut members = tool.declaration.as_object()?.clone();
    members.retain(|_, value| !value.is_null());
    members.insert("name".to_owned(), tool.own_name.into());
    if let Some(Value::String(text)) = members.get_mut("description") {
        *text = tamed(text, DESCRIPTION_MAX);
    }
    serde_json::from_value(Value::Object(members)).ok()
}

/// News in the names that a client knows.
pub(super) enum ClientNews {
    ListChanged,
    /// The addresses by which the client may know the resource.
    ResourceUpdated([String; 2]),
}

/// Whether the policy lets a caller read from a server at all.
fn admits(haft: &Haft, caller: &Caller, reading: Reading, server: &str) -> bool {
    let entry = haft.registry().get(&reading.tool_name(server));
    entry.is_some_and(|entry| haft.settings().policy().admits(entry.spec(), caller).is_ok())
}

/// Reads a resource of a bridged server. None if no server has it.
pub(super) async fn read_resource(
    door: &Door,
    mut request: ReadResourceRequestParams,
    context: &RequestContext<RoleServer>,
) -> Option<Result<ReadResourceResponse, ErrorData>> {
    let remote = door.shared().bridged.as_ref()?.find_resource(&request.uri)?;
    let input = RoundInput::take(&mut request.input_responses, &mut request.request_state);
    let read = read(door, context, (&remote.server, Reading::Resource), json!({ "uri": remote.name }), input).await;
    Some(match read {
        Ok(Read::Asked(told)) => Ok(ReadResourceResponse::InputRequired(told)),
        Ok(Read::Ended(outcome)) => contents(door, &outcome, &remote, &request.uri),
        Err(error) => Err(error),
    })
}

/// Fills in a prompt of a bridged server. None if no server has it.
pub(super) async fn get_prompt(
    door: &Door,
    mut request: GetPromptRequestParams,
    context: &RequestContext<RoleServer>,
) -> Option<Result<GetPromptResponse, ErrorData>> {
    let remote = door.shared().bridged.as_ref()?.find_prompt(&request.name)?;
    let input = RoundInput::take(&mut request.input_responses, &mut request.request_state);
    let mut args = json!({ "name": remote.name });
    if let Some(arguments) = request.arguments.take() {
        args["arguments"] = Value::Object(arguments);
    }
    let read = read(door, context, (&remote.server, Reading::Prompt), args, input).await;
    Some(match read {
        Ok(Read::Asked(told)) => Ok(GetPromptResponse::InputRequired(told)),
        Ok(Read::Ended(outcome)) => messages(door, &outcome).map(GetPromptResponse::Complete),
        Err(error) => Err(error),
    })
}

/// How far a reading got.
enum Read {
    /// The server asks the client something.
    Asked(InputRequiredResult),
    /// It is over.
    Ended(Box<Outcome>),
}

/// Makes the call that reads from a server.
async fn read(
    door: &Door,
    context: &RequestContext<RoleServer>,
    (server, reading): (&str, Reading),
    args: Value,
    input: RoundInput,
) -> Result<Read, ErrorData> {
    let shared = door.shared();
    let name = reading.tool_name(server);
    if let Some(bridged) = shared.bridged.as_ref().filter(|_| !shared.haft.registry().has(&name)) {
        // Nothing is known of it before it has been started once.
        bridged.bridge.start(server).await.map_err(|error| wire_error(&error))?;
    }
    let call = new_call(door, name, args, door.caller(context));
    match carry(door, context, call, input, LongCall::Retry).await? {
        Carried::Asked(told) => Ok(Read::Asked(told)),
        Carried::Ended(ended) => match ended.lacks.filter(|_| !ended.outcome.success) {
            Some(lack) => Err(lacking(lack, &ended.outcome)),
            None => Ok(Read::Ended(Box::new(ended.outcome))),
        },
        // Only a call of a tool becomes one.
        Carried::Task(_) => Err(crashed()),
    }
}

/// The contents of a resource as they were sent.
fn contents(
    door: &Door,
    outcome: &Outcome,
    remote: &Remote,
    asked_for: &str,
) -> Result<ReadResourceResponse, ErrorData> {
    let mut contents = Vec::new();
    for block in outcome_blocks(door, outcome)? {
        if let ContentBody::Resource(mut resource) = block.body {
            // A client that asked by haft's name for it finds it by that name.
            if resource.uri == remote.name {
                asked_for.clone_into(&mut resource.uri);
            }
            let mut meta = resource.details.get("_meta").and_then(Value::as_object).cloned().unwrap_or_default();
            meta.insert("haft".to_owned(), about(outcome));
            resource.details.insert("_meta".to_owned(), Value::Object(meta));
            contents.extend(resource_to_wire(&resource));
        }
    }
    Ok(ReadResourceResult::new(contents).into())
}

/// The messages of a prompt as they were sent.
fn messages(door: &Door, outcome: &Outcome) -> Result<GetPromptResult, ErrorData> {
    let mut messages = Vec::new();
    for mut block in outcome_blocks(door, outcome)? {
        let role = block.attributes.remove(ROLE).and_then(|role| serde_json::from_value(role).ok());
        messages.extend(to_wire(&block).map(|content| PromptMessage::new(role.unwrap_or(Role::User), content)));
    }
    let mut result = GetPromptResult::new(messages);
    let description = outcome.content.attributes.get(DESCRIPTION).and_then(Value::as_str);
    result.description = description.map(str::to_owned);
    let meta = JsonObject::from_iter([("haft".to_owned(), about(outcome))]);
    result.meta = Some(MetaObject(meta));
    Ok(result)
}

/// The parts of an outcome. A text that looks like an attack is marked off where it stands; others arrive as they were sent,
/// because what reads a resource is a program as often as a model (decision 0017).
fn outcome_blocks(door: &Door, outcome: &Outcome) -> Result<Vec<ContentBlock>, ErrorData> {
    if let Some(error) = outcome.error.as_ref().filter(|_| !outcome.success) {
        let refusal = error.details.as_ref().and_then(|details| details.get("mcp_error"));
        return Err(match refusal {
            Some(_) => wire_error(error),
            None => {
                let said = text(outcome, &door.shared().options.decision_place);
                ErrorData::new(NOT_CARRIED_OUT, said, Some(json!({"call_id": outcome.call_id, "error": error})))
            }
        });
    }
    let mut blocks = outcome.content.blocks.clone();
    if outcome.labels.contains(&Label::Flagged) {
        let (opening, mark) = (outcome.output.lines().next().unwrap_or_default(), mark_of(&outcome.output));
        let end = mark.map(closing).unwrap_or_default();
        for text in blocks.iter_mut().filter_map(ContentBlock::readable_text_mut) {
            *text = format!("{opening}\n{text}\n{end}");
        }
    }
    Ok(blocks)
}

/// What haft says about what it read.
fn about(outcome: &Outcome) -> Value {
    let mut about = json!({ "call_id": outcome.call_id, "labels": outcome.labels });
    if !outcome.warnings.is_empty() {
        about["warnings"] = json!(outcome.warnings);
    }
    about
}

/// That a server needs a capability that this client did not declare, if that is why a call failed.
pub(super) fn missing_capability(error: &haft_core::CallError) -> Option<ErrorData> {
    Some(wire_error(error)).filter(|error| error.code == ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY)
}

/// A failure in the server's own words, where it has any.
fn wire_error(error: &haft_core::CallError) -> ErrorData {
    let refusal = error.details.as_ref().and_then(|details| details.get("mcp_error"));
    let own = refusal.and_then(|refusal| serde_json::from_value(refusal.clone()).ok());
    own.unwrap_or_else(|| ErrorData::new(NOT_CARRIED_OUT, error.message.clone(), None))
}
