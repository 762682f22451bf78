//! Bridge a server at an address and call its tools: `cargo run --example bridge_client URL`.
//!
//! This is also the client that the MCP conformance suite drives: it names a scenario in
//! `MCP_CONFORMANCE_SCENARIO`, and the server's address is the last argument.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use haft::{Call, Haft, Halt, SessionId, Settings, Store, Workspace, new_call_id};
use haft_mcp::client::{Bridge, Learn, Reach, Server, oauth};
use haft_runtime::Decider;
use haft_runtime::approver::{Approver, Question, Said};
use haft_runtime::http::{self, Carrier, Leads};
use haft_runtime::tool::BoxFuture;
use haft_runtime::{Form, Written};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How often a server may want more than it was given before it is left alone.
const SIGN_INS: usize = 3;

/// Somebody who agrees to everything, and fills in a form with what it proposes.
struct Agreeable;

impl Approver for Agreeable {
    fn decider(&self) -> Decider {
        Decider::embedder("agreeable")
    }
    fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Said> {
        Box::pin(std::future::ready(Said::Once))
    }
    fn elicit<'a>(&'a self, form: &'a Form) -> BoxFuture<'a, Written> {
        let mut answer = Map::new();
        for (name, property) in form.schema["properties"].as_object().into_iter().flatten() {
            if let Some(proposed) = property.get("default") {
                answer.insert(name.clone(), proposed.clone());
            }
        }
        Box::pin(std::future::ready(Written::Answer(Value::Object(answer))))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let url =
        std::env::args().next_back().filter(|url| url.starts_with("http")).ok_or("give the address of a server")?;
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let data = std::env::temp_dir().join(format!("haft-example-bridge-{}", std::process::id()));
    let store = Store::open(&data.join("haft.db"))?;
    let haft = Arc::new(Haft::new(Workspace::new(&std::env::current_dir()?)?, store, Settings::new(&data)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(talk(&haft, &url, &scenario, &data));
    std::fs::remove_dir_all(&data)?;
    done
}

async fn talk(haft: &Arc<Haft>, url: &str, scenario: &str, data: &Path) -> Result<(), Box<dyn Error>> {
    let mut server = Server::new("there", Reach::Url { url: url.to_owned(), headers: BTreeMap::new(), who: who() })?;
    server.timeout = Duration::from_secs(15);
    // No model is offered these tools, so nobody needs the warnings about model providers.
    let bridge = Bridge::open(haft, &[server], Learn::OnDemand, |_| ()).await?;
    let mut left = SIGN_INS;
    let mut met = bridge.start("there").await;
    while let Some(challenge) = met.as_ref().err().and_then(challenge).filter(|_| left > 0) {
        left -= 1;
        sign_in(&data.join("oauth"), url, &challenge).await?;
        met = bridge.start_anew("there").await;
    }
    let status = met?;
    println!("{} tools: {}", status.tools.len(), status.tools.join(", "));
    let calls = wanted(haft, scenario)?;
    // Side by side: what a server wants to know for one call must not get into another.
    let each = calls.into_iter().map(|(tool, args)| call(haft, &bridge, (tool, args), (url, data, left)));
    futures_util::future::try_join_all(each).await?;
    bridge.close().await;
    Ok(())
}

/// Calls one tool, and signs in when the server wants that.
async fn call(
    haft: &Arc<Haft>,
    bridge: &Bridge,
    (tool, args): (String, Value),
    (url, data, mut left): (&str, &Path, usize),
) -> Result<(), Box<dyn Error>> {
    loop {
        let mut call = Call::new(new_call_id(), format!("mcp:there:{tool}"), args.clone());
        // Calls of one session wait for each other.
        call.session = SessionId::new(&tool).ok_or("the tool's name cannot be a session's")?;
        let outcome = haft.call(call, &Agreeable, &Halt::new()).await;
        let Some(error) = outcome.error else {
            println!("{tool}: {}", outcome.output);
            return Ok(());
        };
        let Some(challenge) = challenge(&error).filter(|_| left > 0) else { return Err(error.into()) };
        left -= 1;
        sign_in(&data.join("oauth"), url, &challenge).await?;
        bridge.restart("there").await?;
    }
}

/// What a server wants to know of whoever asks.
fn challenge(error: &haft_core::CallError) -> Option<String> {
    error.details.as_ref()?.get("challenge")?.as_str().map(str::to_owned)
}

/// The calls that a scenario is about.
fn wanted(haft: &Haft, scenario: &str) -> Result<Vec<(String, Value)>, Box<dyn Error>> {
    let plain = |tools: &[&str]| tools.iter().map(|tool| ((*tool).to_owned(), json!({}))).collect();
    let one = |tool: &str, args: Value| vec![(tool.to_owned(), args)];
    Ok(match scenario {
        "tools_call" => one("add_numbers", json!({"a": 5, "b": 3})),
        "elicitation-sep1034-client-defaults" => plain(&["test_client_elicitation_defaults"]),
        "sse-retry" => plain(&["test_reconnection"]),
        "sep-2322-client-request-state" => {
            plain(&["test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_unrelated", "test_mrtr_no_result_type"])
        }
        "http-custom-headers" => context()["toolCalls"].as_array().into_iter().flatten().map(told).collect(),
        "http-invalid-tool-headers" => offered(haft),
        "json-schema-2020-12-preservation" => {
            let tool = haft.registry().get("mcp:there:json_schema_2020_12_tool").ok_or("the tool is not there")?;
            one("json_schema_echo", json!({ "schema": tool.spec().shapes.input }))
        }
        auth if auth.starts_with("auth/") => plain(&["test-tool"]),
        _ => Vec::new(),
    })
}

/// A call that the suite tells of.
fn told(call: &Value) -> (String, Value) {
    (call["name"].as_str().unwrap_or_default().to_owned(), call["arguments"].clone())
}

/// A call of every tool that the server offers here, with words for all it requires.
fn offered(haft: &Haft) -> Vec<(String, Value)> {
    let mut calls = Vec::new();
    for entry in haft.registry().list() {
        let Some(tool) = entry.spec().name.as_str().strip_prefix("mcp:there:") else { continue };
        let required = entry.spec().shapes.input["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let args: Map<String, Value> = required.map(|name| (name.to_owned(), json!("here"))).collect();
        calls.push((tool.to_owned(), Value::Object(args)));
    }
    calls
}

/// Signs in as a browser would in which somebody agrees at once.
async fn sign_in(dir: &Path, url: &str, challenge: &str) -> Result<(), Box<dyn Error>> {
    let (shown, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let show = move |address: &str| {
        let _ = shown.send(address.to_owned());
    };
    let browser = async {
        let client = http::client(Leads::Anywhere, Carrier::Own)?;
        let Some(address) = seen.recv().await else { return Ok(()) };
        let answer = client.get(address).send().await?;
        let back = answer.headers().get("location").and_then(|to| to.to_str().ok()).map(str::to_owned);
        client.get(back.ok_or("the page leads nowhere")?).send().await?;
        Ok::<_, Box<dyn Error>>(())
    };
    let who = who();
    let signed = oauth::sign_in(dir, ("there", url, Carrier::Own), &who, challenge, &show);
    tokio::pin!(signed, browser);
    tokio::select! {
        done = &mut signed => return Ok(done?),
        visit = &mut browser => visit?,
    }
    Ok(signed.await?)
}

/// As whom to sign in: the suite knows some clients beforehand.
fn who() -> oauth::Who {
    let context = context();
    let text = |name: &str| context[name].as_str().map(str::to_owned);
    match text("client_id") {
        Some(id) => oauth::Who::Known { id, secret: text("client_secret") },
        None => oauth::Who::Document("https://conformance-test.local/client-metadata.json".to_owned()),
    }
}

/// What the suite says of a scenario.
fn context() -> Value {
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    serde_json::from_str(&context).unwrap_or_default()
}
