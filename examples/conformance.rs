//! What the official conformance suite asks a server for, as tools, resources and prompts of a program that embeds
//! haft: `cargo run --example conformance -- 3000`, then `conformance server --url http://localhost:3000/mcp`.
//!
//! Every tool here goes the way that every call goes; only the answers are the suite's. See docs/mcp.md.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use axum::body::Body;
use axum::response::Response;
use futures_util::StreamExt as _;
use haft::{
    BoxFuture, CallError, Caller, Dialect, Haft, Reply, Scene, SessionId, Settings, Store, Tool, ToolSpec, Workspace,
    Yes,
};
use haft_core::content::{ContentBlock, ContentBody, EncodedMedia, ResourceContent, ResourceData, ResultContent};
use haft_mcp::server::model::{
    self as wire, ErrorData, GetPromptRequestParams, GetPromptResponse, GetPromptResult, InputRequiredResult, Prompt,
    PromptArgument, PromptMessage, Reference, Resource, ResourceContents, ResourceTemplate, Role,
};
use haft_mcp::server::{ClientHolder, DecisionPlace, Offer, Options, Server};
use haft_runtime::events::Share;
use haft_runtime::{Form, Written};
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// After how long a call becomes a task, for a suite that does not wait long.
const TASK_AFTER: Duration = Duration::from_millis(300);
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

fn parts<'a>(parts: Vec<ContentBlock>) -> BoxFuture<'a, Result<Reply, CallError>> {
    ready(Ok(Reply::content(ResultContent::of(parts))))
}

fn image() -> ContentBlock {
    ContentBody::Image(EncodedMedia { mime_type: "image/png".to_owned(), data: PIXEL.to_owned() }).into()
}

fn sound() -> ContentBlock {
    ContentBody::Audio(EncodedMedia { mime_type: "audio/wav".to_owned(), data: SILENCE.to_owned() }).into()
}

fn resource(uri: &str, mime_type: &str, text: &str) -> ContentBlock {
    ContentBody::Resource(ResourceContent {
        uri: uri.to_owned(),
        mime_type: Some(mime_type.to_owned()),
        content: ResourceData::Text(text.to_owned()),
        details: Map::new(),
    })
    .into()
}

/// The tools without parameters.
fn plain() -> Vec<(&'static str, &'static str, Work)> {
    vec![
        ("test_simple_text", "Gives a text", |_| ready(Ok(Reply::text("This is a simple text response for testing.")))),
        ("test_image_content", "Gives an image", |_| parts(vec![image()])),
        ("test_audio_content", "Gives a sound", |_| parts(vec![sound()])),
        ("test_embedded_resource", "Gives a resource", |_| {
            parts(vec![resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")])
        }),
        ("test_multiple_content_types", "Gives one of each", |_| {
            let data = r#"{"test":"data","value":123}"#;
            let resource = resource("test://mixed-content-resource", "application/json", data);
            parts(vec![ContentBlock::text("Multiple content types test:"), image(), resource])
        }),
        ("test_error_handling", "Fails", |_| {
            ready(Err(CallError::failed("This tool intentionally returns an error for testing")))
        }),
        ("test_tool_with_logging", "Reports what it does", |scene| Box::pin(logging(scene))),
        ("test_tool_with_progress", "Reports how far it is", |scene| Box::pin(progress(scene))),
        ("test_elicitation_sep1034_defaults", "Asks for values with defaults", |scene| Box::pin(defaults(scene))),
        ("test_elicitation_sep1330_enums", "Asks for choices", |scene| Box::pin(choices(scene))),
        ("test_logging_tool", "Reports what it does", |scene| Box::pin(logging(scene))),
        ("test_reconnection", "Works while the connection breaks", |_| Box::pin(reconnection())),
        ("test_missing_capability", "Needs the client's model", |scene| Box::pin(capital(scene))),
        ("test_streaming_elicitation", "Asks the person", |scene| Box::pin(confirm(scene))),
        ("test_input_required_result_elicitation", "Asks for a name", |scene| Box::pin(name(scene))),
        ("test_input_required_result_sampling", "Asks the client's model", |scene| Box::pin(capital(scene))),
        ("test_input_required_result_request_state", "Asks for a yes", |scene| Box::pin(confirm(scene))),
        ("test_input_required_result_tampered_state", "Asks for a yes", |scene| Box::pin(confirm(scene))),
        ("test_input_required_result_multi_round", "Asks twice", |scene| Box::pin(twice(scene))),
        ("test_input_required_result_capabilities", "Asks whom it can", |scene| Box::pin(whoever(scene))),
        ("failing_job", "Works for a second and fails", |_| Box::pin(failing_job())),
        ("protocol_error_job", "Works for a second and crashes", |_| Box::pin(crashing_job())),
        ("test_tool_with_task", "Asks for a name and works for a second", |scene| Box::pin(name_and_work(scene))),
    ]
}

/// A form of one member, under a name by which its answer can be told.
async fn form(scene: &Scene, name: &str, message: &str, member: &str, kind: &str) -> Written {
    let schema = json!({"type": "object", "title": name, "required": [member], "properties": {member: {"type": kind}}});
    scene.back().elicit(Form { from: scene.call().spoken.clone(), message: message.to_owned(), schema }).await
}

/// What a person wrote, or why there is nothing.
fn written(said: Written) -> Result<Value, CallError> {
    match said {
        Written::Answer(content) => Ok(content),
        other => Err(CallError::failed(format!("nobody answered: {other:?}"))),
    }
}

async fn name(scene: &Scene) -> Result<Reply, CallError> {
    let said = written(form(scene, "user_name", "What is your name?", "name", "string").await)?;
    Ok(Reply::text(format!("Hello, {}!", said["name"].as_str().unwrap_or_default())))
}

async fn failing_job() -> Result<Reply, CallError> {
    tokio::time::sleep(Duration::from_secs(1)).await;
    Err(CallError::failed("This job fails by intention"))
}

#[expect(clippy::panic, reason = "what is asked for is a crash")]
async fn crashing_job() -> Result<Reply, CallError> {
    tokio::time::sleep(Duration::from_secs(1)).await;
    panic!("this job crashes by intention")
}

async fn name_and_work(scene: &Scene) -> Result<Reply, CallError> {
    let greeting = name(scene).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok(greeting)
}

async fn slow_compute(scene: &Scene) -> Result<Reply, CallError> {
    let seconds = scene.call().args["seconds"].as_f64().unwrap_or_default();
    tokio::time::sleep(Duration::try_from_secs_f64(seconds).unwrap_or_default()).await;
    Ok(Reply::text(format!("computed for {seconds} s")))
}

async fn confirm_delete(scene: &Scene) -> Result<Reply, CallError> {
    let schema = json!({"type": "object", "required": ["confirm"], "properties": {"confirm": {"type": "boolean"}}});
    asked(scene, "Please confirm that the file is deleted", schema).await
}

async fn confirm(scene: &Scene) -> Result<Reply, CallError> {
    written(form(scene, "confirm", "Please confirm", "ok", "boolean").await)?;
    Ok(Reply::text("state-ok"))
}

async fn twice(scene: &Scene) -> Result<Reply, CallError> {
    let name = written(form(scene, "step1", "Step 1: What is your name?", "name", "string").await)?;
    let color = written(form(scene, "step2", "Step 2: What is your favorite color?", "color", "string").await)?;
    Ok(Reply::text(format!("{} likes {}", name["name"], color["color"])))
}

async fn capital(scene: &Scene) -> Result<Reply, CallError> {
    sampled(scene, &json!("What is the capital of France?")).await
}

async fn whoever(scene: &Scene) -> Result<Reply, CallError> {
    match form(scene, "user_name", "What is your name?", "name", "string").await {
        Written::Nobody => capital(scene).await,
        said => written(said).map(|said| Reply::text(said.to_string())),
    }
}

/// Fires when connections are to break.
static BREAK: Notify = Notify::const_new();

async fn reconnection() -> Result<Reply, CallError> {
    pause().await;
    BREAK.notify_waiters();
    pause().await;
    Ok(Reply::text("Reconnection test completed"))
}

/// Lets an answer end in the middle, as a network does: a tool knows nothing of connections.
async fn breaking(response: Response) -> Response {
    let (parts, body) = response.into_parts();
    Response::from_parts(parts, Body::from_stream(body.into_data_stream().take_until(BREAK.notified())))
}

/// A tool that brings another.
struct Changing {
    spec: Arc<ToolSpec>,
    haft: Weak<Haft>,
    brought: AtomicUsize,
}

impl Tool for Changing {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }
    fn act<'a>(&'a self, _: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        let name = format!("test_brought_{}", self.brought.fetch_add(1, Ordering::Relaxed));
        let brought =
            ToolSpec::new(&name, "Was not there before").map_err(|error| error.to_string()).and_then(|spec| {
                let haft = self.haft.upgrade().ok_or("it is over")?;
                let tool = Plain { spec: Arc::new(spec), work: |_| ready(Ok(Reply::text("here"))) };
                haft.registry().register(Arc::new(tool)).map_err(|error| error.to_string())
            });
        ready(brought.map(|()| Reply::text(name)).map_err(CallError::failed))
    }
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
    let seconds = json!({"type": "object", "required": ["seconds"],
        "properties": {"seconds": {"type": "number"}, "label": {"type": "string"}}});
    let header = json!({"type": "object", "required": ["region"],
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
    vec![
        ("test_sampling", "Asks the client's model", text("prompt"), |scene| Box::pin(sampling(scene))),
        ("greet", "Greets", text("name"), |scene| {
            ready(Ok(Reply::text(format!("Hello, {}!", scene.call().args["name"].as_str().unwrap_or_default()))))
        }),
        ("confirm_delete", "Asks before it deletes", text("filename"), |scene| Box::pin(confirm_delete(scene))),
        ("slow_compute", "Computes for some seconds", seconds, |scene| Box::pin(slow_compute(scene))),
        ("test_elicitation", "Asks the person", text("message"), |scene| Box::pin(person(scene))),
        ("json_schema_2020_12_tool", "Has a schema with definitions", newest(), |_| ready(Ok(Reply::text("ok")))),
        ("test_parameter_in_a_header", "Has a parameter that is repeated in a header", header, |_| {
            ready(Ok(Reply::text("ok")))
        }),
    ]
}

/// A schema with what the newest draft has.
fn newest() -> Value {
    let (text, either) = (json!({"type": "string"}), json!({"type": "string", "enum": ["phone", "email"]}));
    let address = json!({"$anchor": "addressDef", "type": "object", "properties": {"street": text, "city": text}});
    let properties = json!({"name": text, "address": {"$ref": "#/$defs/address"}, "contactMethod": either,
        "phone": text, "email": text});
    json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
        "$defs": {"address": address}, "properties": properties, "additionalProperties": false,
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]}, "else": {"required": ["email"]}})
}

async fn sampling(scene: &Scene) -> Result<Reply, CallError> {
    sampled(scene, &scene.call().args["prompt"]).await
}

async fn sampled(scene: &Scene, prompt: &Value) -> Result<Reply, CallError> {
    let request =
        json!({"maxTokens": 100, "messages": [{"role": "user", "content": {"type": "text", "text": prompt}}]});
    let answer = scene.back().sample(scene.call().spoken.clone(), request).await?;
    Ok(Reply::text(format!("LLM response: {}", answer["content"])))
}

async fn person(scene: &Scene) -> Result<Reply, CallError> {
    let schema = json!({"type": "object", "required": ["username", "email"], "properties": {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"}}});
    let message = scene.call().args["message"].as_str().unwrap_or_default().to_owned();
    asked(scene, &message, schema).await
}

/// What the person answered to the prompt that asks.
fn context(request: &GetPromptRequestParams) -> Option<String> {
    let answer = request.input_responses.as_ref()?.get("user_context")?;
    Some(answer.pointer("/content/context")?.as_str()?.to_owned())
}

fn context_wanted() -> Result<GetPromptResponse, ErrorData> {
    let schema = json!({"type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"]});
    let wanted = json!({"user_context": {"method": "elicitation/create",
        "params": {"mode": "form", "message": "What context should the prompt use?", "requestedSchema": schema}}});
    let wanted = serde_json::from_value(wanted).map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    Ok(InputRequiredResult::new(Some(wanted), None).into())
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
            Prompt::new("test_input_required_result_prompt", Some("Asks first"), None),
        ]
    }

    fn prompt<'a>(
        &'a self,
        _: &'a SessionId,
        request: &'a GetPromptRequestParams,
    ) -> BoxFuture<'a, Option<Result<GetPromptResponse, ErrorData>>> {
        let arg = |name: &str| {
            request.arguments.as_ref().and_then(|args| args.get(name)).and_then(Value::as_str).unwrap_or_default()
        };
        let text = |text: String| PromptMessage::new_text(Role::User, text);
        let messages = match request.name.as_str() {
            "test_simple_prompt" => vec![text("This is a simple prompt for testing.".to_owned())],
            "test_prompt_with_arguments" => {
                vec![text(format!("Prompt with arguments: arg1='{}', arg2='{}'", arg("arg1"), arg("arg2")))]
            }
            "test_prompt_with_embedded_resource" => {
                let resource =
                    wire::ContentBlock::embedded_text(arg("resourceUri"), "Embedded resource content for testing.");
                vec![
                    PromptMessage::new(Role::User, resource),
                    text("Please process the embedded resource above.".to_owned()),
                ]
            }
            "test_prompt_with_image" => {
                let image = PromptMessage::new(Role::User, wire::ContentBlock::image(PIXEL, "image/png"));
                vec![image, text("Please analyze the image above.".to_owned())]
            }
            "test_input_required_result_prompt" => match context(request) {
                Some(said) => vec![text(said)],
                None => return Box::pin(std::future::ready(Some(context_wanted()))),
            },
            _ => return Box::pin(std::future::ready(None)),
        };
        Box::pin(std::future::ready(Some(Ok(GetPromptResult::new(messages).into()))))
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
    let haft = Arc::new(Haft::new(Workspace::new(&std::env::temp_dir())?, store, Settings::new(&data)));
    for (name, description, work) in plain() {
        let spec = Arc::new(ToolSpec::new(name, description)?);
        haft.registry().register(Arc::new(Plain { spec, work }))?;
    }
    for (name, description, input, work) in with_parameters() {
        let spec = Arc::new(ToolSpec::new(name, description)?.input(input));
        haft.registry().register(Arc::new(Plain { spec, work }))?;
    }
    let spec = Arc::new(ToolSpec::new("test_trigger_tool_change", "Brings another tool")?);
    haft.registry().register(Arc::new(Changing { spec, haft: Arc::downgrade(&haft), brought: AtomicUsize::new(0) }))?;
    let options = Options {
        dialect: Dialect::Haft,
        caller: Caller::default(),
        session: SessionId::default(),
        session_prefix: "",
        budget_tokens: 0,
        patience: Duration::ZERO,
        elicitation: true,
        holder: ClientHolder::User,
        finish_when_gone: false,
        task_after: TASK_AFTER,
        decision_place: DecisionPlace::Elsewhere("Nobody decides here.".to_owned()),
    };
    // The suite's client has nobody who approves that a model is asked; this program says yes for them.
    let server = Server::new(haft, options).offering(Arc::new(Offered)).asking(Arc::new(Yes));
    let end = CancellationToken::new();
    let mcp = server.http(vec!["localhost".to_owned(), "127.0.0.1".to_owned()], end.clone());
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    let until = async move {
        // Whatever comes of listening for it, the program ends.
        let _ = tokio::signal::ctrl_c().await;
        end.cancel();
    };
    let app = axum::Router::new().nest_service("/mcp", mcp).layer(axum::middleware::map_response(breaking));
    axum::serve(listener, app).with_graceful_shutdown(until).await?;
    Ok(std::fs::remove_dir_all(&data)?)
}
