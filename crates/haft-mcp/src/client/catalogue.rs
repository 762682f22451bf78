//! What a server offers besides tools: resources, templates of resources, prompts, and completions of their arguments.
//! They are listed as the server lists them. Reading one is a call of a tool that is not listed
//! (`mcp:SERVER:resources:read`, `mcp:SERVER:prompts:get`, `mcp:SERVER:completion:complete`), so that policy, approval and
//! the log see it like every other call.

use super::call::{Broken, Connection};
use super::link::Link;
use super::reply::{BlockCollector, TEXT_MAX};
use super::tamed;
use crate::content::{from_wire, resource_from_wire};
use haft_core::content::ContentBody;
use haft_core::outcome::Label;
use haft_core::preview::{cut, inert};
use haft_core::secret::mask;
use haft_core::shape::{Keep, Limits};
use haft_core::{CallError, ToolName, ToolSpec};
use haft_runtime::tool::ResultSource;
use haft_runtime::{BoxFuture, Reply, Scene, Tool};
use rmcp::ServiceError;
use rmcp::model::{
    CompleteRequestParams, CompleteResult, CompletionInfo, PaginatedRequestParams, Prompt, Resource, ResourceTemplate,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// How many pages of one list are read.
const PAGES_MAX: usize = 50;
/// How many of each kind.
const LISTED_MAX: usize = 2000;
/// How large a list may be, as text.
const LIST_BYTES_MAX: usize = 4 << 20;
/// The longest value of a completion that is passed on.
const COMPLETION_VALUE_MAX: usize = 1 << 10;
/// How much longer than its server's timeout a reading may last: a person may be asked something in between.
const PATIENCE: Duration = Duration::from_mins(10);
/// The attribute of a prompt's message that says whose words they are.
pub(crate) const ROLE: &str = "role";
/// The attribute of a prompt that says what it is for.
pub(crate) const DESCRIPTION: &str = "description";

/// The lists of a server, as it gave them last.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a capability that a server declares or not")]
pub(crate) struct Catalogue {
    pub(crate) resources: Vec<Resource>,
    pub(crate) templates: Vec<ResourceTemplate>,
    pub(crate) prompts: Vec<Prompt>,
    /// Whether the server has resources, even if it lists none.
    has_resources: bool,
    has_prompts: bool,
    /// Whether the lists have been read at all.
    pub(super) is_read: bool,
    /// Whether it completes arguments.
    pub(crate) completes: bool,
}

/// A tool that is offered, and what its server says of it.
pub(crate) struct OfferedTool {
    /// Its name here.
    pub(crate) name: String,
    /// Its name there.
    pub(crate) own_name: String,
    /// The rest of its declaration.
    pub(crate) declaration: Value,
}

/// What changed in what a server offers besides tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OfferNews {
    /// A list is another one now.
    ListChanged,
    /// A resource has another content. Its address is the server's own.
    ResourceUpdated(String),
}

/// What changed, and at which server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerNews {
    pub(crate) server: String,
    pub(crate) news: OfferNews,
}

impl Catalogue {
    /// Reads the lists. One that cannot be had is left empty, and it is said why.
    pub(super) async fn read(connection: &Connection, refused: &mut Vec<String>) -> Self {
        let Some(info) = connection.peer.peer_info() else { return Self::default() };
        let able = &info.capabilities;
        let mut catalogue = Self {
            has_resources: able.resources.is_some(),
            has_prompts: able.prompts.is_some(),
            completes: able.completions.is_some(),
            is_read: true,
            ..Self::default()
        };
        let peer = &connection.peer;
        if catalogue.has_resources {
            let list = pages(|page| async move {
                peer.list_resources(page).await.map(|list| (list.resources, list.next_cursor))
            });
            catalogue.resources = kept("resources", list.await, refused);
            let list = pages(|page| async move {
                peer.list_resource_templates(page).await.map(|list| (list.resource_templates, list.next_cursor))
            });
            catalogue.templates = kept("resource templates", list.await, refused);
        }
        if catalogue.has_prompts {
            let list =
                pages(|page| async move { peer.list_prompts(page).await.map(|list| (list.prompts, list.next_cursor)) });
            catalogue.prompts = kept("prompts", list.await, refused);
        }
        catalogue
    }

    /// Whether the server lists this address, or has a template that it fits.
    pub(crate) fn has_resource(&self, uri: &str) -> bool {
        self.resources.iter().any(|resource| resource.uri == uri)
            || self.templates.iter().any(|template| fits(&template.uri_template, uri))
    }
}

/// Whether an address could have been made from a template: it begins and ends like it.
fn fits(template: &str, uri: &str) -> bool {
    let (Some(open), Some(close)) = (template.find('{'), template.rfind('}')) else { return template == uri };
    let (head, tail) = (&template[..open], &template[close + 1..]);
    uri.len() > head.len() + tail.len() && uri.starts_with(head) && uri.ends_with(tail)
}

/// All pages of a list.
async fn pages<T, F>(mut page: impl FnMut(Option<PaginatedRequestParams>) -> F) -> Result<Vec<T>, ServiceError>
where
    F: Future<Output = Result<(Vec<T>, Option<String>), ServiceError>>,
{
    let (mut all, mut cursor) = (Vec::new(), None);
    for _ in 0..PAGES_MAX {
        let params = PaginatedRequestParams::default().with_cursor(cursor.take());
        let (items, next) = page(Some(params)).await?;
        all.extend(items);
        cursor = next;
        if cursor.is_none() || all.len() >= LISTED_MAX {
            break;
        }
    }
    Ok(all)
}

/// Truncates a list to the size limits.
fn kept<T: serde::Serialize>(what: &str, list: Result<Vec<T>, ServiceError>, refused: &mut Vec<String>) -> Vec<T> {
    let mut list = match list {
        Ok(list) => list,
        Err(error) => {
            refused.push(format!("its {what}: {}", cut(&inert(&error.to_string()), 300)));
            return Vec::new();
        }
    };
    let mut room = LIST_BYTES_MAX;
    let has_room = |item: &&T| {
        let length = serde_json::to_string(item).map_or(usize::MAX, |text| text.len());
        room = room.saturating_sub(length);
        room > 0
    };
    let taken = list.iter().take(LISTED_MAX).take_while(has_room).count();
    if taken < list.len() {
        refused.push(format!("{} of its {what}: over the size limit", list.len() - taken));
        list.truncate(taken);
    }
    list
}

/// What a reading tool reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadKind {
    Resource,
    Prompt,
    /// What an argument of a prompt or a template may be. The server is told what the caller has typed so far.
    Completion,
}

impl ReadKind {
    /// The name under which a server is read.
    pub(crate) fn tool_name(self, server: &str) -> String {
        let what = match self {
            Self::Resource => "resources:read",
            Self::Prompt => "prompts:get",
            Self::Completion => "completion:complete",
        };
        format!("mcp:{server}:{what}")
    }

    fn spec(self, server: &str, timeout: Duration) -> Result<ToolSpec, CallError> {
        let (what, input) = match self {
            Self::Resource => (
                "Read a resource of the server",
                json!({"type": "object", "additionalProperties": false, "required": ["uri"], "properties": {
                    "uri": {"type": "string", "maxLength": 8192, "description": "The resource's address on the server"}
                }}),
            ),
            Self::Prompt => (
                "Fill in a prompt of the server",
                json!({"type": "object", "additionalProperties": false, "required": ["name"], "properties": {
                    "name": {"type": "string", "description": "The prompt's name on the server"},
                    "arguments": {"type": "object", "description": "Its arguments"}
                }}),
            ),
            Self::Completion => (
                "Ask the server what an argument of a prompt or a resource template may be",
                json!({"type": "object", "required": ["ref", "argument"], "properties": {
                    "ref": {"type": "object", "description": "The prompt or the template"},
                    "argument": {"type": "object", "description": "The argument's name, and its value so far"},
                    "context": {"type": "object", "description": "The other arguments"}
                }}),
            ),
        };
        let bad = |error: haft_core::name::BadName| CallError::internal(error.to_string());
        let mut spec = ToolSpec::new(&self.tool_name(server), format!("[MCP:{server}] {what}")).map_err(bad)?;
        let patience = if self == Self::Completion { Duration::ZERO } else { PATIENCE };
        spec = spec.input(input).timeout(timeout + patience);
        // It only looks, but a server that nobody here vouches for hears of it: it is asked about unless rules allow it.
        spec.effects.open_world = true;
        spec.reach.network = true;
        spec.shapes.strict = false;
        // A program reads it as often as a model: it is cut where a server's results are, and not before.
        spec.limits = Limits { lines: usize::MAX, bytes: TEXT_MAX, keep: Keep::Head };
        Ok(spec)
    }
}

/// Makes the registry hold the reading tools that a server's lists call for.
pub(super) fn offer_reading(link: &Arc<Link>, catalogue: &Catalogue, refused: &mut Vec<String>) {
    let Some(haft) = link.haft.upgrade() else { return };
    let wanted = [
        (ReadKind::Resource, catalogue.has_resources),
        (ReadKind::Prompt, catalogue.has_prompts),
        (ReadKind::Completion, catalogue.completes),
    ];
    for (reading, is_wanted) in wanted {
        let name = reading.tool_name(&link.server.name);
        let is_there = haft.registry().has(&name);
        if is_wanted && !is_there {
            let registered = reading.spec(&link.server.name, link.server.timeout).and_then(|spec| {
                let tool = ReadingTool { link: Arc::clone(link), spec: Arc::new(spec), reading };
                haft.registry().register(Arc::new(tool)).map_err(|error| CallError::internal(error.to_string()))
            });
            if let Err(error) = registered {
                refused.push(format!("{name}: {}", error.message));
            }
        } else if let (false, true, Ok(name)) = (is_wanted, is_there, ToolName::new(&name)) {
            haft.registry().unregister(&name);
        }
    }
}

/// Reads from a server on behalf of a client.
struct ReadingTool {
    link: Arc<Link>,
    spec: Arc<ToolSpec>,
    reading: ReadKind,
}

#[derive(Deserialize)]
struct ResourceArguments {
    uri: String,
}

#[derive(Deserialize)]
struct PromptArguments {
    name: String,
    arguments: Option<Map<String, Value>>,
}

impl ReadingTool {
    async fn run(&self, scene: &Scene) -> Result<Reply, CallError> {
        let connection = self.link.connection().await?;
        let read = match self.reading {
            ReadKind::Resource => read_resource(&connection, scene).await?,
            ReadKind::Prompt => get_prompt(&connection, scene).await?,
            ReadKind::Completion => complete(&connection, scene).await?,
        };
        match read {
            Ok(reply) => Ok(reply),
            Err(Broken::Because(error)) => Err(error),
            Err(Broken::Gone) => Err(self.link.why_gone(&connection).await),
        }
    }
}

async fn read_resource(connection: &Connection, scene: &Scene) -> Result<Result<Reply, Broken>, CallError> {
    let given: ResourceArguments = scene.parse()?;
    Ok(connection.read(&given.uri, scene).await.map(|read| {
        let mut collector = BlockCollector::default();
        for contents in &read.contents {
            collector.add(ContentBody::Resource(resource_from_wire(contents)).into());
        }
        collector.into_reply()
    }))
}

async fn get_prompt(connection: &Connection, scene: &Scene) -> Result<Result<Reply, Broken>, CallError> {
    let given: PromptArguments = scene.parse()?;
    Ok(connection.prompt(&given.name, given.arguments, scene).await.map(|prompt| {
        let mut collector = BlockCollector::default();
        for message in &prompt.messages {
            let mut block = from_wire(&message.content);
            block.attributes.insert(ROLE.to_owned(), json!(message.role));
            collector.add(block);
        }
        let mut reply = collector.into_reply();
        let description = prompt.description.map(|text| (DESCRIPTION.to_owned(), text.into()));
        reply.content.attributes.extend(description);
        reply
    }))
}

async fn complete(connection: &Connection, scene: &Scene) -> Result<Result<Reply, Broken>, CallError> {
    let params: CompleteRequestParams = scene.parse()?;
    Ok(connection.complete(params).await.map(|found| {
        let completion = tamed_completion(found);
        let mut reply = Reply::text(completion.values.join("\n")).data(json!(completion));
        reply.labels = vec![Label::Untrusted];
        reply
    }))
}

/// What a server proposes, as text that cannot act. A value that is too long to be one is left out: cut, it would be another.
fn tamed_completion(found: CompleteResult) -> CompletionInfo {
    let mut completion = found.completion;
    completion.values.retain(|value| value.len() <= COMPLETION_VALUE_MAX);
    completion.values.truncate(CompletionInfo::MAX_VALUES);
    for value in &mut completion.values {
        *value = tamed(&mask(value), usize::MAX);
    }
    completion
}

impl Tool for ReadingTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(self.run(scene))
    }

    fn result_source(&self) -> ResultSource {
        ResultSource::Bridged
    }

    fn is_listed(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proposed_values_are_bounded_and_cannot_act() {
        let values = vec!["x".repeat(COMPLETION_VALUE_MAX + 1), "a\u{1b}[2J\u{202e}b".to_owned(), "plain".to_owned()];
        let token = format!("ghp_{}", "a1B2".repeat(10));
        let values = [values, vec![token]].concat();
        let found = CompleteResult::new(CompletionInfo::new(values).unwrap());
        let told = tamed_completion(found).values;
        assert_eq!(told[1..], ["plain", "[secret]"]);
        assert!(!told[0].contains('\u{1b}') && !told[0].contains('\u{202e}'), "{told:?}");
    }

    #[test]
    fn an_address_fits_the_template_that_it_was_made_from() {
        assert!(fits("test://template/{id}/data", "test://template/123/data"));
        assert!(fits("a://b", "a://b"));
        for other in ["test://template//data", "test://other/123/data", "test://template/123"] {
            assert!(!fits("test://template/{id}/data", other), "{other}");
        }
    }
}
