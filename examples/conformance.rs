//! What the official conformance suite asks a server for, as tools, resources and prompts of a program that embeds
//! haft: `cargo run --example conformance -- 3000`, then `conformance server --url http://localhost:3000/mcp`.
//!
//! Every tool here goes the way that every call goes; only the answers are the suite's. See docs/mcp.md.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use haft::{
    BoxFuture, CallError, Caller, Dialect, Haft, Reply, Scene, SessionId, Settings, Store, Tool, ToolSpec, Workspace,
    Yes,
};
use haft_mcp::server::model::{
    ContentBlock, ErrorData, GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Reference, Resource,
    ResourceContents, ResourceTemplate, Role,
};
use haft_mcp::server::{Offer, Options, Server};
use haft_runtime::events::Share;
use haft_runtime::{Form, Written};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const SILENCE: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

type Work = for<'a> fn(&'a Scene) -> BoxFuture<'a, Result<Reply, CallError>>;

/// A tool that is a declaration and a function.
struct Plain {
    spec: Arc<ToolSpec>,
    work: Work,
}

impl Tool for Plain {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }
    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        (self.work)(scene)
    }
}

/// An answer that is known beforehand.
fn ready<'a>(reply: Result<Reply, CallError>) -> BoxFuture<'a, Result<Reply, CallError>> {
    Box::pin(std::future::ready(reply))
}

fn blocks<'a>(text: &str, content: &[Value]) -> BoxFuture<'a, Result<Reply, CallError>> {
    ready(Ok(Reply::text(text).data(json!({ "content": content }))))
}

fn image() -> Value {
    json!({"type": "image", "data": PIXEL, "mimeType": "image/png"})
}

/// The tools without parameters.
fn plain() -> Vec<(&'static str, &'static str, Work)> {
    vec![
        ("test_simple_text", "Gives a text", |_| ready(Ok(Reply::text("This is a simple text response for testing.")))),
        ("test_image_content", "Gives an image", |_| blocks("", &[image()])),
        ("test_audio_content", "Gives a sound", |_| {
            blocks("", &[json!({"type": "audio", "data": SILENCE, "mimeType": "audio/wav"})])
        }),
        ("test_embedded_resource", "Gives a resource", |_| {
            let resource = json!({"uri": "test://embedded-resource", "mimeType": "text/plain",
                "text": "This is an embedded resource content."});
            blocks("", &[json!({"type": "resource", "resource": resource})])
        }),
        ("test_multiple_content_types", "Gives one of each", |_| {
            let resource = json!({"type": "resource", "resource": {"uri": "test://mixed-content-resource",
                "mimeType": "application/json", "text": "{\"test\":\"data\",\"value\":123}"}});
            blocks("Multiple content types test:", &[image(), resource])
        }),
        ("test_error_handling", "Fails", |_| {
            ready(Err(CallError::failed("This tool intentionally returns an error for testing")))
        }),
        ("test_tool_with_logging", "Reports what it does", |scene| Box::pin(logging(scene))),
        ("test_tool_with_progress", "Reports how far it is", |scene| Box::pin(progress(scene))),
        ("test_elicitation_sep1034_defaults", "Asks for values with defaults", |scene| Box::pin(defaults(scene))),
        ("test_elicitation_sep1330_enums", "Asks for choices", |scene| Box::pin(choices(scene))),
    ]
}

async fn pause() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

async fn logging(scene: &Scene) -> Result<Reply, CallError> {
    for message in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        scene.progress(message);
        pause().await;
    }
    Ok(Reply::text("done"))
}

async fn progress(scene: &Scene) -> Result<Reply, CallError> {
    for done in [0.0, 50.0, 100.0] {
        scene.report(format!("{done} of 100"), Some(Share { progress: done, total: Some(100.0) }));
        pause().await;
    }
    Ok(Reply::text("done"))
}

async fn asked(scene: &Scene, message: &str, schema: Value) -> Result<Reply, CallError> {
    let form = Form { from: scene.call().spoken.clone(), message: message.to_owned(), schema };
    let said = match scene.back().elicit(form).await {
        Written::Answer(content) => format!("action=accept, content={content}"),
        other => format!("{other:?}"),
    };
    Ok(Reply::text(format!("User response: {said}")))
}

async fn defaults(scene: &Scene) -> Result<Reply, CallError> {
    let schema = json!({"type": "object", "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true}}});
    asked(scene, "Please review these values", schema).await
}

async fn choices(scene: &Scene) -> Result<Reply, CallError> {
    let titled = |one: &str, two: &str| json!([{"const": one, "title": "One"}, {"const": two, "title": "Two"}]);
    let plain = ["option1", "option2", "option3"];
    let schema = json!({"type": "object", "properties": {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled("value1", "value2")},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("value1", "value2")}}}});
    asked(scene, "Please choose", schema).await
}

/// The tools with parameters.
fn with_parameters() -> Vec<(&'static str, &'static str, Value, Work)> {
    let text = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
    let address = json!({"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}});
    let newest = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
        "$defs": {"address": address}, "additionalProperties": false,
        "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}}});
    vec![
        ("test_sampling", "Asks the client's model", text("prompt"), |scene| Box::pin(sampling(scene))),
        ("test_elicitation", "Asks the person", text("message"), |scene| Box::pin(person(scene))),
        ("json_schema_2020_12_tool", "Has a schema with definitions", newest, |_| ready(Ok(Reply::text("ok")))),
    ]
}

async fn sampling(scene: &Scene) -> Result<Reply, CallError> {
    let prompt = &scene.call().args["prompt"];
    let request =
        json!({"maxTokens": 100, "messages": [{"role": "user", "content": {"type": "text", "text": prompt}}]});
    let answer = scene.back().sample("test_sampling", request).await?;
    Ok(Reply::text(format!("LLM response: {}", answer["content"])))
}

async fn person(scene: &Scene) -> Result<Reply, CallError> {
    let schema = json!({"type": "object", "required": ["username", "email"], "properties": {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"}}});
    let message = scene.call().args["message"].as_str().unwrap_or_default().to_owned();
    asked(scene, &message, schema).await
}

/// The resources and prompts.
struct Offered;

impl Offer for Offered {
    fn prompts(&self) -> Vec<Prompt> {
        let needs =
            |names: &[&str]| Some(names.iter().map(|name| PromptArgument::new(*name).with_required(true)).collect());
        vec![
            Prompt::new("test_simple_prompt", Some("A text"), None),
            Prompt::new("test_prompt_with_arguments", Some("A text with arguments"), needs(&["arg1", "arg2"])),
            Prompt::new("test_prompt_with_embedded_resource", Some("A resource"), needs(&["resourceUri"])),
            Prompt::new("test_prompt_with_image", Some("An image"), None),
        ]
    }

    fn prompt<'a>(
        &'a self,
        _: &'a SessionId,
        name: &'a str,
        args: &'a JsonObject,
    ) -> BoxFuture<'a, Option<Result<GetPromptResult, ErrorData>>> {
        let arg = |name: &str| args.get(name).and_then(Value::as_str).unwrap_or_default();
        let text = |text: String| PromptMessage::new_text(Role::User, text);
        let messages = match name {
            "test_simple_prompt" => vec![text("This is a simple prompt for testing.".to_owned())],
            "test_prompt_with_arguments" => {
                vec![text(format!("Prompt with arguments: arg1='{}', arg2='{}'", arg("arg1"), arg("arg2")))]
            }
            "test_prompt_with_embedded_resource" => {
                let resource =
                    ContentBlock::embedded_text(arg("resourceUri"), "Embedded resource content for testing.");
                vec![
                    PromptMessage::new(Role::User, resource),
                    text("Please process the embedded resource above.".to_owned()),
                ]
            }
            "test_prompt_with_image" => {
                let image = PromptMessage::new(Role::User, ContentBlock::image(PIXEL, "image/png"));
                vec![image, text("Please analyze the image above.".to_owned())]
            }
            _ => return Box::pin(std::future::ready(None)),
        };
        Box::pin(std::future::ready(Some(Ok(GetPromptResult::new(messages)))))
    }

    fn resources<'a>(&'a self, _: &'a SessionId) -> BoxFuture<'a, Vec<Resource>> {
        let listed = vec![
            Resource::new("test://static-text", "Static text").with_mime_type("text/plain"),
            Resource::new("test://static-binary", "Static image").with_mime_type("image/png"),
            Resource::new("test://watched-resource", "Watched").with_mime_type("text/plain"),
        ];
        Box::pin(std::future::ready(listed))
    }

    fn templates(&self) -> Vec<ResourceTemplate> {
        vec![ResourceTemplate::new("test://template/{id}/data", "Template").with_mime_type("application/json")]
    }

    fn read<'a>(
        &'a self,
        _: &'a SessionId,
        uri: &'a str,
    ) -> BoxFuture<'a, Option<Result<Vec<ResourceContents>, ErrorData>>> {
        let templated = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
        let content = match (uri, templated) {
            ("test://static-text", _) => {
                ResourceContents::text("This is the content of the static text resource.", uri)
            }
            ("test://static-binary", _) => ResourceContents::blob(PIXEL, uri).with_mime_type("image/png"),
            ("test://watched-resource", _) => ResourceContents::text("Watched.", uri),
            (_, Some(id)) => {
                let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
                ResourceContents::text(data.to_string(), uri).with_mime_type("application/json")
            }
            _ => return Box::pin(std::future::ready(None)),
        };
        Box::pin(std::future::ready(Some(Ok(vec![content]))))
    }

    fn complete<'a>(
        &'a self,
        _: &'a SessionId,
        _: &'a Reference,
        _: &'a str,
        _: &'a str,
    ) -> BoxFuture<'a, Option<Vec<String>>> {
        Box::pin(std::future::ready(Some(vec!["testValue1".to_owned(), "testValue2".to_owned()])))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port: u16 = std::env::args().nth(1).unwrap_or_else(|| "3000".to_owned()).parse()?;
    let data = std::env::temp_dir().join(format!("haft-example-conformance-{}", std::process::id()));
    let store = Store::open(&data.join("haft.db"))?;
    let haft = Haft::new(Workspace::new(&std::env::temp_dir())?, store, Settings::new(&data));
    for (name, description, work) in plain() {
        let spec = Arc::new(ToolSpec::new(name, description)?);
        haft.registry().register(Arc::new(Plain { spec, work }))?;
    }
    for (name, description, input, work) in with_parameters() {
        let spec = Arc::new(ToolSpec::new(name, description)?.input(input));
        haft.registry().register(Arc::new(Plain { spec, work }))?;
    }
    let options = Options {
        dialect: Dialect::Haft,
        caller: Caller::default(),
        session: SessionId::default(),
        budget_tokens: 0,
        patience: Duration::ZERO,
        elicitation: true,
        finish_when_gone: false,
        decide_at: "Nobody decides here.".to_owned(),
    };
    // The suite's client has nobody who approves that a model is asked; this program says yes for them.
    let server = Server::new(Arc::new(haft), options).offering(Arc::new(Offered)).asking(Arc::new(Yes));
    let end = CancellationToken::new();
    let mcp = server.http(vec!["localhost".to_owned(), "127.0.0.1".to_owned()], end.clone());
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    let until = async move {
        // Whatever comes of listening for it, the program ends.
        let _ = tokio::signal::ctrl_c().await;
        end.cancel();
    };
    axum::serve(listener, axum::Router::new().nest_service("/mcp", mcp)).with_graceful_shutdown(until).await?;
    Ok(std::fs::remove_dir_all(&data)?)
}
