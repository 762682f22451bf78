//! What bridged servers offer besides tools, as a client of haft sees it: their resources, templates, prompts and
//! completions. A client that reads a resource, fills in a prompt or has an argument completed makes a call, which policy
//! decides and the log keeps.
//!
//! haft names what several servers offer after the server: `haft://mcp/SERVER/ADDRESS`, `mcp__SERVER__PROMPT`. A server's
//! own names are understood where they mean one thing. In front of one server alone, haft keeps the server's names.

use super::call::{CallReply, RoundInput, begin_or_resume, crashed, heeding, lacking, new_call};
use super::door::Door;
use super::reply::text;
use super::rounds::LongCall;
use crate::client::Bridge;
use crate::client::catalogue::{Catalogue, DESCRIPTION, OfferNews, OfferedTool, ROLE, ReadKind, ServerNews};
use crate::client::{is_inert, tamed, tamed_texts};
use crate::content::{resource_to_wire, to_wire};
use haft_core::content::{ContentBlock, ContentBody};
use haft_core::outcome::Label;
use haft_core::scan::{closing, mark_of};
use haft_core::{Caller, ErrorKind, Outcome};
use haft_runtime::{Haft, Halt, RefusingApprover};
use rmcp::RoleServer;
use rmcp::model::{
    CompleteRequestParams, CompleteResult, CompletionInfo, ErrorCode, ErrorData, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, InputRequiredResult, JsonObject, MetaObject, Prompt, PromptMessage,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Reference, Resource, ResourceTemplate, Role,
    Tool,
};
use rmcp::service::RequestContext;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;

/// How the addresses of bridged resources begin.
const RESOURCES: &str = "haft://mcp/";
/// How the names of bridged prompts begin.
const PROMPTS: &str = "mcp__";
/// The longest description of a tool that is passed on.
const DESCRIPTION_MAX: usize = 4096;
/// The longest value of an argument that is to be completed.
const ARGUMENT_MAX: usize = 4 << 10;
/// The longest total of the arguments in a completion's context, in bytes.
const CONTEXT_MAX: usize = 16 << 10;
/// Members of a declaration that are addresses: cut, they would lead elsewhere.
const ADDRESSES: &[&str] = &["uri", "uriTemplate", "src"];
/// The code for a call that was not carried out, for reasons of haft's own.
const NOT_CARRIED_OUT: ErrorCode = ErrorCode(-32000);

/// The bridged servers that a client sees.
#[derive(Clone)]
pub(super) struct BridgedServers {
    bridge: Arc<Bridge>,
    /// The one server that haft stands in front of; otherwise the client sees all.
    front: Option<String>,
    /// The caller that policy sees when a client watches a resource.
    caller: Caller,
}

/// A resource, template or prompt of a bridged server, by the server's own name for it.
pub(super) struct RemoteName {
    server: String,
    /// Its name or address there.
    name: String,
}

impl BridgedServers {
    /// All servers of a bridge.
    pub(super) fn all(bridge: Arc<Bridge>, caller: &Caller) -> Self {
        Self { bridge, front: None, caller: caller.clone() }
    }

    /// One server alone, under its own names.
    pub(super) fn front(bridge: Arc<Bridge>, server: &str, caller: &Caller) -> Self {
        Self { bridge, front: Some(server.to_owned()), caller: caller.clone() }
    }

    /// Starts the server that haft stands in front of, if it has not been started yet.
    pub(super) async fn start_front_server(&self) {
        if let Some(front) = &self.front {
            self.bridge.learn_catalogue(front).await;
        }
    }

    /// The one server that haft stands in front of.
    pub(super) fn front_server(&self) -> Option<&str> {
        self.front.as_deref()
    }

    /// Whether haft stands in front of one server.
    pub(super) fn is_front(&self) -> bool {
        self.front.is_some()
    }

    /// The lists that a caller sees: of servers that the policy lets it read.
    fn catalogues(&self, haft: &Haft, caller: &Caller, reading: ReadKind) -> Vec<(String, Catalogue)> {
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
        for (server, catalogue) in self.catalogues(haft, caller, ReadKind::Resource) {
            let named = catalogue.resources.iter().filter(|resource| is_inert(&resource.uri));
            all.extend(named.filter_map(sanitized_entry).map(|mut resource: Resource| {
                resource.uri = self.offered_uri(&server, &resource.uri);
                resource
            }));
        }
        all
    }

    /// The URI templates of resources that a caller may read.
    pub(super) fn templates(&self, haft: &Haft, caller: &Caller) -> Vec<ResourceTemplate> {
        let mut all = Vec::new();
        for (server, catalogue) in self.catalogues(haft, caller, ReadKind::Resource) {
            let named = catalogue.templates.iter().filter(|template| is_inert(&template.uri_template));
            all.extend(named.filter_map(sanitized_entry).map(|mut template: ResourceTemplate| {
                template.uri_template = self.offered_uri(&server, &template.uri_template);
                template
            }));
        }
        all
    }

    /// The prompts that a caller may use.
    pub(super) fn prompts(&self, haft: &Haft, caller: &Caller) -> Vec<Prompt> {
        let mut all = Vec::new();
        for (server, catalogue) in self.catalogues(haft, caller, ReadKind::Prompt) {
            all.extend(catalogue.prompts.iter().filter(|prompt| is_named(prompt)).filter_map(sanitized_entry).map(
                |mut prompt| {
                    if !self.is_front() {
                        prompt.name = format!("{PROMPTS}{server}__{}", prompt.name);
                    }
                    prompt
                },
            ));
        }
        all
    }

    /// Whose resource an address is. An address of a server's own is understood if one server alone knows it.
    pub(super) fn find_resource(&self, uri: &str) -> Option<RemoteName> {
        if let Some(server) = &self.front {
            return Some(RemoteName { server: server.clone(), name: uri.to_owned() });
        }
        if let Some(rest) = uri.strip_prefix(RESOURCES) {
            let (server, uri) = rest.split_once('/')?;
            return self.bridge.has(server).then(|| RemoteName { server: server.to_owned(), name: uri.to_owned() });
        }
        self.find_sole_owner(uri, |catalogue| catalogue.has_resource(uri))
    }

    /// Whose prompt a name is.
    fn find_prompt(&self, name: &str) -> Option<RemoteName> {
        if let Some(server) = &self.front {
            return Some(RemoteName { server: server.clone(), name: name.to_owned() });
        }
        let qualified = self.bridge.catalogues().into_iter().find_map(|(server, _)| {
            let own = name.strip_prefix(PROMPTS)?.strip_prefix(server)?.strip_prefix("__")?;
            Some(RemoteName { server: server.to_owned(), name: own.to_owned() })
        });
        qualified.or_else(|| {
            self.find_sole_owner(name, |catalogue| catalogue.prompts.iter().any(|prompt| prompt.name == name))
        })
    }

    /// Whose template it is.
    fn find_template(&self, template: &str) -> Option<RemoteName> {
        let is_listed = |catalogue: &Catalogue| catalogue.templates.iter().any(|one| one.uri_template == template);
        if self.is_front() || template.starts_with(RESOURCES) {
            return self.find_resource(template);
        }
        self.find_sole_owner(template, is_listed)
    }

    fn find_sole_owner(&self, name: &str, has: impl Fn(&Catalogue) -> bool) -> Option<RemoteName> {
        let catalogues = self.bridge.catalogues();
        let mut owners = catalogues.iter().filter(|(_, catalogue)| has(catalogue));
        match (owners.next(), owners.next()) {
            (Some((server, _)), None) => Some(RemoteName { server: (*server).to_owned(), name: name.to_owned() }),
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

    /// At which server the argument of a prompt or a template is completed, with the names that the server uses. None if it
    /// is not among what these servers list for this caller.
    fn find_completion(&self, haft: &Haft, caller: &Caller, of: &mut Reference) -> Option<(String, Catalogue)> {
        let (remote, reading) = match of {
            Reference::Prompt(prompt) => {
                let remote = self.find_prompt(&prompt.name)?;
                prompt.name.clone_from(&remote.name);
                (remote, ReadKind::Prompt)
            }
            Reference::Resource(template) => {
                let remote = self.find_template(&template.uri)?;
                template.uri.clone_from(&remote.name);
                (remote, ReadKind::Resource)
            }
            _ => return None,
        };
        let mut catalogues = self.catalogues(haft, caller, reading).into_iter();
        catalogues.find(|(server, catalogue)| *server == remote.server && lists(catalogue, of))
    }

    /// Subscribes to a resource, unless policy denies reading from its server. The server gets the subscription once it lists
    /// the resource.
    pub(super) fn watch(&self, uri: &str) {
        let remote = self.find_resource(uri);
        if let Some(remote) = remote.filter(|remote| !self.bridge.denies_resources(&remote.server, &self.caller)) {
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

    /// The notification that a client gets for a change at a bridged server. None if the change is at another server than the
    /// front.
    pub(super) fn client_news(&self, news: &ServerNews) -> Option<ClientNews> {
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

/// An entry of a server's list for clients: texts escaped and cut, and `_meta.haft` removed, which is haft's own.
fn sanitized_entry<T: Serialize + DeserializeOwned>(entry: &T) -> Option<T> {
    let mut value = serde_json::to_value(entry).ok()?;
    tamed_texts("", &mut value, &text_max);
    serde_json::from_value(value).ok()
}

/// How long a text of a declaration may be.
fn text_max(name: &str) -> usize {
    if ADDRESSES.contains(&name) { usize::MAX } else { DESCRIPTION_MAX }
}

/// Whether a prompt and its arguments can be called by their names.
fn is_named(prompt: &Prompt) -> bool {
    is_inert(&prompt.name) && prompt.arguments.iter().flatten().all(|argument| is_inert(&argument.name))
}

/// Whether a server lists what is to be completed.
fn lists(catalogue: &Catalogue, what: &Reference) -> bool {
    match what {
        Reference::Prompt(prompt) => catalogue.prompts.iter().any(|one| one.name == prompt.name),
        Reference::Resource(resource) => {
            catalogue.templates.iter().any(|one| one.uri_template == resource.uri)
                || catalogue.has_resource(&resource.uri)
        }
        _ => false,
    }
}

/// Why a request for a completion is not passed on.
fn completion_flaw(request: &CompleteRequestParams) -> Option<String> {
    let argument = &request.argument;
    if argument.name.len() + argument.value.len() > ARGUMENT_MAX {
        return Some(format!("the argument is longer than {ARGUMENT_MAX} bytes; complete a shorter one"));
    }
    let others = request.context.iter().flat_map(|context| &context.arguments).flatten();
    let length: usize = others.map(|(name, value)| name.len() + value.len()).sum();
    let is_long = length > CONTEXT_MAX;
    is_long.then(|| format!("the arguments in the context are longer than {CONTEXT_MAX} bytes; leave some out"))
}

/// A tool as its server declares it, with texts that cannot act on whoever shows it. In a schema these are the texts for
/// people: what a value may be stays as it is. Its output schema is left out, as with every tool (decision 0014).
fn front_tool(tool: OfferedTool) -> Option<Tool> {
    let mut members = tool.declaration.as_object()?.clone();
    members.retain(|member, value| !value.is_null() && member != "outputSchema");
    members.insert("name".to_owned(), tool.own_name.into());
    for (member, value) in &mut members {
        match member.as_str() {
            "name" => {}
            "inputSchema" => tame_schema(value),
            _ => tamed_texts(member, value, &text_max),
        }
    }
    serde_json::from_value(Value::Object(members)).ok()
}

/// Makes the texts for people in a schema inert.
fn tame_schema(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(tame_schema),
        Value::Object(members) => {
            for (member, value) in members {
                match value {
                    Value::String(text) if matches!(member.as_str(), "title" | "description" | "$comment") => {
                        *text = tamed(text, DESCRIPTION_MAX);
                    }
                    value => tame_schema(value),
                }
            }
        }
        _ => {}
    }
}

/// News in the names that a client knows.
pub(super) enum ClientNews {
    ListChanged,
    /// The addresses by which the client may know the resource.
    ResourceUpdated([String; 2]),
}

/// Whether the policy lets a caller read from a server at all.
fn admits(haft: &Haft, caller: &Caller, reading: ReadKind, server: &str) -> bool {
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
    let read = read(door, context, (&remote.server, ReadKind::Resource), json!({ "uri": remote.name }), input).await;
    Some(match read {
        Ok(ReadReply::Asked(told)) => Ok(ReadResourceResponse::InputRequired(told)),
        Ok(ReadReply::Ended(outcome)) => contents(door, &outcome, &remote, &request.uri),
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
    let read = read(door, context, (&remote.server, ReadKind::Prompt), args, input).await;
    Some(match read {
        Ok(ReadReply::Asked(told)) => Ok(GetPromptResponse::InputRequired(told)),
        Ok(ReadReply::Ended(outcome)) => messages(door, &outcome).map(GetPromptResponse::Complete),
        Err(error) => Err(error),
    })
}

/// What an argument of a prompt or a template of a bridged server may be. None if no server has it.
///
/// The server hears what was typed, so this is a call like others: policy decides, and the log keeps it. Nobody can be
/// asked at each keystroke: where a person would have to decide, the server is not asked and there is no proposal.
pub(super) async fn complete(
    door: &Door,
    mut request: CompleteRequestParams,
    context: &RequestContext<RoleServer>,
) -> Option<Result<CompleteResult, ErrorData>> {
    let shared = door.shared();
    let (bridged, caller) = (shared.bridged.as_ref()?, door.caller(context));
    let (server, catalogue) = bridged.find_completion(&shared.haft, &caller, &mut request.r#ref)?;
    if let Some(flaw) = completion_flaw(&request) {
        return Some(Err(ErrorData::invalid_params(flaw, None)));
    }
    if !catalogue.completes {
        return Some(Ok(CompleteResult::default()));
    }
    // What the client says about itself is not for the server.
    request.meta = None;
    let args = match serde_json::to_value(request) {
        Ok(args) => args,
        Err(error) => return Some(Err(ErrorData::internal_error(error.to_string(), None))),
    };
    let mut call = new_call(door, ReadKind::Completion.tool_name(&server), args, caller);
    // It changes nothing, and who types does not wait for the calls before it.
    call.independent = true;
    let halt = Halt::new();
    let calling = Box::pin(shared.haft.call(call, &RefusingApprover, &halt));
    let outcome = heeding(door, context, &halt, calling).await;
    Some(proposals(outcome))
}

/// The values that a server proposed, as far as they came through.
fn proposals(outcome: Outcome) -> Result<CompleteResult, ErrorData> {
    if let Some(error) = outcome.error.filter(|_| !outcome.success) {
        let is_refused = matches!(error.kind, ErrorKind::Denied | ErrorKind::Rejected | ErrorKind::ApprovalRequired);
        return if is_refused { Ok(CompleteResult::default()) } else { Err(wire_error(&error)) };
    }
    let data = outcome.data.filter(|_| !outcome.labels.contains(&Label::Flagged));
    let completion: Option<CompletionInfo> = data.and_then(|data| serde_json::from_value(data).ok());
    Ok(completion.map(CompleteResult::new).unwrap_or_default())
}

/// What a read from a server came to.
enum ReadReply {
    /// The server asks the client something.
    Asked(InputRequiredResult),
    /// It is over.
    Ended(Box<Outcome>),
}

/// Makes the call that reads from a server.
async fn read(
    door: &Door,
    context: &RequestContext<RoleServer>,
    (server, reading): (&str, ReadKind),
    args: Value,
    input: RoundInput,
) -> Result<ReadReply, ErrorData> {
    let shared = door.shared();
    let name = reading.tool_name(server);
    if let Some(bridged) = shared.bridged.as_ref().filter(|_| !shared.haft.registry().has(&name)) {
        // Nothing is known of it before it has been started once.
        bridged.bridge.start(server).await.map_err(|error| wire_error(&error))?;
    }
    let call = new_call(door, name, args, door.caller(context));
    match begin_or_resume(door, context, call, input, LongCall::Retry).await? {
        CallReply::Asked(told) => Ok(ReadReply::Asked(told)),
        CallReply::Ended(ended) => match ended.lacks.filter(|_| !ended.outcome.success) {
            Some(lack) => Err(lacking(lack, &ended.outcome)),
            None => Ok(ReadReply::Ended(Box::new(ended.outcome))),
        },
        // Only a call of a tool becomes one.
        CallReply::Task(_) => Err(crashed()),
    }
}

/// The contents of a resource as they were sent.
fn contents(
    door: &Door,
    outcome: &Outcome,
    remote: &RemoteName,
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
        return Err(if refusal.is_some() {
            wire_error(error)
        } else {
            let said = text(outcome, &door.shared().options.decision_place);
            ErrorData::new(NOT_CARRIED_OUT, said, Some(json!({"call_id": outcome.call_id, "error": error})))
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
    protocol_error(error).unwrap_or_else(|| ErrorData::new(NOT_CARRIED_OUT, error.message.clone(), None))
}

/// The error of the protocol that a bridged server answered with, if that is why a call failed.
pub(super) fn protocol_error(error: &haft_core::CallError) -> Option<ErrorData> {
    let refusal = error.details.as_ref()?.get("mcp_error")?;
    serde_json::from_value(refusal.clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::CallError;
    use haft_core::approval::{Decision, Verdict};
    use rmcp::model::{ArgumentInfo, CompletionContext};

    fn request(what: Reference, value: &str) -> CompleteRequestParams {
        let argument = serde_json::from_value::<ArgumentInfo>(json!({"name": "a", "value": value})).unwrap();
        CompleteRequestParams::new(what, argument)
    }

    #[test]
    fn listed_entry_cannot_act_and_does_not_speak_for_haft() {
        let bad = "x\u{202e}y\u{1b}[2J";
        let prompt: Prompt = serde_json::from_value(json!({
            "name": "p", "title": bad, "description": bad.repeat(2000),
            "arguments": [{"name": "a", "title": bad, "description": bad}],
            "_meta": {"haft": {"labels": []}, "own": bad}
        }))
        .unwrap();
        let resource: Resource = serde_json::from_value(json!({
            "uri": format!("a://{}", "x".repeat(5000)), "name": bad, "description": bad, "mimeType": bad,
            "annotations": {"lastModified": bad}, "_meta": {"haft": 1, bad: 2}
        }))
        .unwrap();
        let (prompt, resource_listed) = (sanitized_entry(&prompt).unwrap(), sanitized_entry(&resource).unwrap());
        assert_eq!(resource_listed.uri, resource.uri);
        let text =
            format!("{}{}", serde_json::to_string(&prompt).unwrap(), serde_json::to_string(&resource_listed).unwrap());
        assert!(!text.contains('\u{202e}') && !text.contains("u001b") && !text.contains("haft"), "{text}");
        assert!(prompt.description.unwrap().len() < DESCRIPTION_MAX * 6);
        assert!(!is_named(&Prompt::new(bad, None::<String>, None)));
    }

    #[test]
    fn front_tool_has_tame_texts_and_keeps_its_values() {
        let bad = "x\u{202e}y";
        let declaration = json!({
            "name": "t", "title": bad, "description": bad, "annotations": {"title": bad, "readOnlyHint": true},
            "_meta": {"haft": {}, "own": 1},
            "inputSchema": {"type": "object", "properties": {
                "description": {"type": "string", "description": bad, "enum": ["a\tb"]}
            }},
            "outputSchema": {"type": "object"}
        });
        let tool =
            front_tool(OfferedTool { name: "mcp:s:t".to_owned(), own_name: "t".to_owned(), declaration }).unwrap();
        let value = serde_json::to_value(&tool).unwrap();
        assert!(!value.to_string().contains('\u{202e}'), "{value}");
        assert_eq!(value["inputSchema"]["properties"]["description"]["enum"], json!(["a\tb"]));
        assert_eq!(value.get("outputSchema"), None, "structured content may be left out");
        assert_eq!((&value["_meta"], &value["annotations"]["readOnlyHint"]), (&json!({"own": 1}), &json!(true)));
    }

    #[test]
    fn only_what_a_server_lists_is_completed() {
        let mut catalogue = Catalogue::default();
        catalogue.prompts = vec![Prompt::new("p", None::<String>, None)];
        catalogue.templates = vec![ResourceTemplate::new("a://{id}", "t")];
        assert!(
            lists(&catalogue, &Reference::for_prompt("p")) && lists(&catalogue, &Reference::for_resource("a://{id}"))
        );
        assert!(
            !lists(&catalogue, &Reference::for_prompt("q")) && !lists(&catalogue, &Reference::for_resource("b://{id}"))
        );
    }

    #[test]
    fn long_argument_is_not_completed() {
        assert_eq!(completion_flaw(&request(Reference::for_prompt("p"), "short")), None);
        assert!(completion_flaw(&request(Reference::for_prompt("p"), &"x".repeat(ARGUMENT_MAX))).is_some());
        let mut long = request(Reference::for_prompt("p"), "short");
        let mut context = CompletionContext::new();
        context.arguments = Some([("other".to_owned(), "x".repeat(CONTEXT_MAX))].into());
        long.context = Some(context);
        assert!(completion_flaw(&long).is_some());
    }

    fn completed(labels: &[Label], error: Option<CallError>) -> Result<CompleteResult, ErrorData> {
        let verdict = Verdict::new(Decision::Allow, "test", "it is a test");
        let tool = haft_core::ToolName::new("mcp:s:completion:complete").unwrap();
        let mut outcome = Outcome::success(haft_core::CallId::new(1, 1), &tool, "a", verdict);
        outcome.data = Some(json!({"values": ["a"], "total": 1, "hasMore": false}));
        outcome.labels = labels.to_vec();
        (outcome.success, outcome.error) = (error.is_none(), error);
        proposals(outcome)
    }

    #[test]
    fn completion_that_is_refused_or_looks_like_an_attack_proposes_nothing() {
        let found = completed(&[Label::Untrusted], None).unwrap();
        assert_eq!((found.completion.values, found.completion.total), (vec!["a".to_owned()], Some(1)));
        let flagged = completed(&[Label::Untrusted, Label::Flagged], None).unwrap();
        assert_eq!(flagged, CompleteResult::default());
        let denied = CallError::new(ErrorKind::Denied, "a rule denies it");
        assert_eq!(completed(&[], Some(denied)).unwrap(), CompleteResult::default());
        let gone = CallError::new(ErrorKind::Upstream, "the server is gone");
        assert_eq!(completed(&[], Some(gone)).unwrap_err().message, "the server is gone");
    }
}
