//! Skills as MCP clients see them: each is a resource and a prompt, named and described in lists, and given in full when it
//! is asked for.
//!
//! What is asked for goes the path of a call of `skill.read`: policy decides about it and the log has it. A skill that
//! policy keeps from the client is not listed.

use super::door::Door;
use base64::Engine as _;
use haft_core::preview::inert;
use haft_core::record::Digest;
use haft_core::skill::{FILE, Skill};
use haft_core::{Call, CallError, Caller, Origin, Outcome};
use haft_runtime::skills::{FILE_DIGEST, ListedSkill};
use haft_runtime::{Halt, Nobody, new_call_id};
use rmcp::RoleServer;
use rmcp::model::{
    CompletionInfo, ErrorData, GetPromptRequestParams, GetPromptResponse, GetPromptResult, Prompt, PromptArgument,
    PromptMessage, Reference, Resource, ResourceContents, ResourceTemplate, Role,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The URI scheme of skill files.
const SCHEME: &str = "skill://";
/// The URI template of skill files.
const TEMPLATE: &str = "skill://{name}/{+file}";
/// The prompt's only argument: free text.
const ARGUMENTS: &str = "arguments";
/// The placeholder in a skill's text that the argument replaces.
const PLACEHOLDER: &str = "$ARGUMENTS";
const READ: &str = "skill.read";
const MARKDOWN: &str = "text/markdown";

type Context = RequestContext<RoleServer>;

/// The skills that are offered to a client.
async fn offered(door: &Door, caller: &Caller) -> Vec<ListedSkill> {
    let haft = &door.shared().haft;
    let may_read =
        haft.registry().get(READ).is_some_and(|entry| haft.settings().policy().admits(entry.spec(), caller).is_ok());
    // What cannot be looked for now is not there now; whoever asks for one by name hears why.
    if may_read { haft.skills().offered().await.unwrap_or_default() } else { Vec::new() }
}

fn is_for(skill: &ListedSkill, whom: fn(&Skill) -> bool) -> bool {
    skill.reading.skill.as_ref().is_some_and(whom)
}

/// A resource for each skill.
pub(super) async fn resources(door: &Door, context: &Context) -> Vec<Resource> {
    let skills = offered(door, &door.caller(context)).await;
    let resource = |skill: &ListedSkill| {
        Resource::new(format!("{SCHEME}{}/{FILE}", skill.name), skill.name.clone())
            .with_description(inert(skill.description()))
            .with_mime_type(MARKDOWN)
    };
    skills.iter().filter(|skill| is_for(skill, |skill| skill.for_models)).map(resource).collect()
}

/// The URI template of skill files, if there are skills.
pub(super) async fn templates(door: &Door, context: &Context) -> Vec<ResourceTemplate> {
    if offered(door, &door.caller(context)).await.is_empty() {
        return Vec::new();
    }
    vec![
        ResourceTemplate::new(TEMPLATE, "skill file").with_description(
            "A file of a skill, by its path in the skill's directory; the instructions are in SKILL.md",
        ),
    ]
}

/// A file of a skill as a call of `skill.read` gives it; none if the name is no skill's.
pub(super) async fn read(
    door: &Door,
    context: &Context,
    uri: &str,
) -> Option<Result<Vec<ResourceContents>, ErrorData>> {
    let (name, file) = uri.strip_prefix(SCHEME)?.split_once('/')?;
    if !door.shared().haft.skills().has(name).await {
        return None;
    }
    Some(contents(door, context, uri, (name, &percent_decoded(file))).await)
}

async fn contents(
    door: &Door,
    context: &Context,
    uri: &str,
    (name, file): (&str, &str),
) -> Result<Vec<ResourceContents>, ErrorData> {
    let missing = |message: String| ErrorData::resource_not_found(message, None);
    let outcome = call(door, context, json!({"name": name, "file": file})).await;
    if let Some(error) = outcome.error {
        return Err(missing(error.message));
    }
    let digest = outcome.data.as_ref().and_then(|data| data.get(FILE_DIGEST)).and_then(Value::as_str);
    let found = if let Some(digest) = digest {
        let bytes = binary(door, (name, file), digest).await.map_err(|error| missing(error.message))?;
        let blob = base64::prelude::BASE64_STANDARD.encode(bytes);
        ResourceContents::blob(blob, uri).with_mime_type("application/octet-stream")
    } else {
        let is_markdown = Path::new(file).extension().is_some_and(|ending| ending == "md");
        let mime = if is_markdown { MARKDOWN } else { "text/plain" };
        ResourceContents::text(text(outcome).await.map_err(missing)?, uri).with_mime_type(mime)
    };
    Ok(vec![found])
}

/// The text of a file as it came out of its call: what a hook took out of it or put in its place stays so.
async fn text(outcome: Outcome) -> Result<String, String> {
    let Some(path) = outcome.full_output.map(PathBuf::from).filter(|_| outcome.truncated) else {
        // A hook's own text was never cut.
        return Ok(outcome.output);
    };
    let unread = |error: std::io::Error| format!("the whole file cannot be read: {error}");
    let read = tokio::task::spawn_blocking(move || {
        let mut text = String::new();
        haft_runtime::files::open(&path)?.read_to_string(&mut text)?;
        Ok(text)
    });
    read.await.unwrap_or_else(|crash| Err(std::io::Error::other(crash))).map_err(unread)
}

/// The bytes of a file that is not text, which no result holds: those that the call was about, and no others.
async fn binary(door: &Door, (name, file): (&str, &str), digest: &str) -> Result<Vec<u8>, CallError> {
    let bytes = door.shared().haft.skills().file(name, file).await?;
    if Digest::of(&bytes).to_string() != digest {
        return Err(CallError::conflict("the file has changed while it was read").hint("read it again"));
    }
    Ok(bytes)
}

/// A prompt for each skill that people may use.
pub(super) async fn prompts(door: &Door, context: &Context) -> Vec<Prompt> {
    let skills = offered(door, &door.caller(context)).await;
    let prompt = |skill: &ListedSkill| {
        let arguments =
            PromptArgument::new(ARGUMENTS).with_description("What it is to be used for").with_required(false);
        Prompt::new(skill.name.clone(), Some(inert(skill.description())), Some(vec![arguments]))
    };
    skills.iter().filter(|skill| is_for(skill, |skill| skill.for_people)).map(prompt).collect()
}

/// A skill's instructions as a prompt; none if there is no such skill.
pub(super) async fn prompt(
    door: &Door,
    context: &Context,
    request: &GetPromptRequestParams,
) -> Option<Result<GetPromptResponse, ErrorData>> {
    let skills = offered(door, &door.caller(context)).await;
    let skill =
        skills.into_iter().find(|skill| skill.name == request.name && is_for(skill, |skill| skill.for_people))?;
    let outcome = call(door, context, json!({"name": skill.name})).await;
    if let Some(error) = outcome.error {
        return Some(Err(ErrorData::invalid_params(error.message, None)));
    }
    let wanted = request.arguments.as_ref().and_then(|args| args.get(ARGUMENTS)).and_then(Value::as_str);
    let text = with_arguments(outcome.output, wanted.unwrap_or_default());
    let message = PromptMessage::new_text(Role::User, text);
    let result = GetPromptResult::new(vec![message]).with_description(inert(skill.description()));
    Some(Ok(result.into()))
}

/// Completes a skill's name. None if the reference is not to a skill.
pub(super) async fn complete(
    door: &Door,
    context: &Context,
    (of, argument, begun): (&Reference, &str, &str),
) -> Option<Vec<String>> {
    let skills = || async { offered(door, &door.caller(context)).await };
    let mut values: Vec<String> = match of {
        Reference::Resource(template) if template.uri == TEMPLATE && argument == "name" => {
            skills().await.into_iter().map(|skill| skill.name).collect()
        }
        Reference::Resource(template) if template.uri == TEMPLATE => Vec::new(),
        Reference::Prompt(prompt) if skills().await.iter().any(|skill| skill.name == prompt.name) => Vec::new(),
        _ => return None,
    };
    values.retain(|value| value.starts_with(begun));
    values.truncate(CompletionInfo::MAX_VALUES);
    Some(values)
}

/// A call of `skill.read`: decided and recorded like any other.
async fn call(door: &Door, context: &Context, args: Value) -> Outcome {
    let shared = door.shared();
    let call = Call {
        id: new_call_id(),
        spoken: READ.to_owned(),
        args,
        dialect: haft_core::Dialect::Haft,
        session: door.session(),
        caller: door.caller(context),
        origin: Origin::Mcp,
        parents: Vec::new(),
        turn: None,
        autonomy: None,
        independent: !door.is_apart(),
    };
    shared.recent.add(&call);
    shared.haft.call(call, &Nobody, &Halt::new()).await
}

/// The text with what a person added: where it says so, otherwise at its end.
fn with_arguments(text: String, wanted: &str) -> String {
    match wanted.trim() {
        _ if text.contains(PLACEHOLDER) => text.replace(PLACEHOLDER, wanted),
        "" => text,
        wanted => format!("{}\n\nApply this skill to: {wanted}", text.trim_end()),
    }
}

/// A path from a URI.
fn percent_decoded(text: &str) -> String {
    let (bytes, mut decoded) = (text.as_bytes(), Vec::with_capacity(text.len()));
    let mut at = 0;
    while at < bytes.len() {
        let code = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        if let Some(byte) = code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            decoded.push(byte);
            at += 3;
        } else {
            decoded.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_of_a_uri_is_decoded() {
        assert_eq!(percent_decoded("a%20b/%C3%A4.md"), "a b/ä.md");
        assert_eq!(percent_decoded("100%/%zz%2"), "100%/%zz%2");
    }

    #[test]
    fn arguments_stand_where_the_skill_wants_them() {
        assert_eq!(with_arguments("Fix $ARGUMENTS.".to_owned(), "it"), "Fix it.");
        assert_eq!(with_arguments("Do.\n".to_owned(), "it"), "Do.\n\nApply this skill to: it");
        assert_eq!(with_arguments("Do.\n".to_owned(), ""), "Do.\n");
    }
}
