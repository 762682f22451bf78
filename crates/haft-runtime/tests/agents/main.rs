//! Models over real HTTP, against a server on this machine that speaks every provider's format.

#![expect(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

mod choosing;
mod failing;
mod speaking;

use haft_core::ToolSpec;
use haft_core::agent::gather::Gather;
use haft_core::agent::turns::Failure;
use haft_core::agent::wire::{Offered, Request, Scribe, Wire};
use haft_core::agent::{Block, Message, Stop, Usage};
use haft_runtime::agent::settings::{AgentSettings, Provider};
use haft_runtime::agent::{Model, ModelRef, Models};
use haft_runtime::http::Carrier;
use haft_runtime::secrets::{SecretSource, Secrets};
use haft_stub::Stub;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// What proves who asks. It must be seen in one header, and nowhere else.
const KEY: &str = "sk-test-0123456789abcdefghij-never-shown";

/// Both names of each form.
const WIRES: [(Wire, haft_stub::Wire); 4] = [
    (Wire::Anthropic, haft_stub::Wire::Anthropic),
    (Wire::Responses, haft_stub::Wire::Responses),
    (Wire::Chat, haft_stub::Wire::Chat),
    (Wire::Gemini, haft_stub::Wire::Gemini),
];

/// Secrets of which one is told by a program: the environment is everybody's in a test.
fn secrets() -> Arc<Secrets> {
    let command = Some(vec!["/bin/echo".to_owned(), KEY.to_owned()]);
    let source = SecretSource { command, hosts: Vec::new() };
    Arc::new(Secrets::new(None, BTreeMap::from([("STUB_MODEL_KEY".to_owned(), source)])))
}

fn provider(wire: Wire, url: String) -> Provider {
    Provider { wire, url, keys: vec!["STUB_MODEL_KEY".to_owned()], headers: BTreeMap::new() }
}

fn models(providers: &[(&str, Provider)]) -> Models {
    let providers = providers.iter().map(|(name, provider)| ((*name).to_owned(), provider.clone())).collect();
    let settings = AgentSettings { providers, ..AgentSettings::default() };
    Models::new(Arc::new(settings), secrets(), Carrier::Own).patience(Duration::from_millis(400))
}

/// A model of a stub that is spoken to in this form.
async fn model(stub: &Stub, (wire, spoken): (Wire, haft_stub::Wire)) -> Arc<dyn Model> {
    let models = models(&[("stub", provider(wire, stub.base(spoken)))]);
    models.get(&ModelRef::parse("stub/stub-1").unwrap()).await.unwrap()
}

/// What came of a question.
#[derive(Debug, PartialEq)]
struct Told {
    message: Message,
    usage: Usage,
    stop: Option<Stop>,
    calls: Vec<String>,
    result: Result<(), Failure>,
}

async fn ask(model: &Arc<dyn Model>) -> Told {
    ask_with(model, &[Message::user("Go.")]).await
}

async fn ask_with(model: &Arc<dyn Model>, history: &[Message]) -> Told {
    let spec = ToolSpec::new("file.read", "Reads a file").unwrap();
    let input = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let tools = [Offered { name: "file_read", spec: &spec, input: &input }];
    let system = ["You are haft.".to_owned()];
    let prompt = Request {
        model: "stub-1",
        system: &system,
        tools: &tools,
        history,
        max_output: 4096,
        effort: None,
        native_search: false,
        scribe: &Scribe::default(),
    };
    let (sender, mut heard) = mpsc::channel(8);
    let listening = async {
        let (mut gather, mut calls) = (Gather::default(), Vec::new());
        while let Some(delta) = heard.recv().await {
            if let Some(Block::Use { name, .. }) = gather.take(delta) {
                calls.push(name);
            }
        }
        (gather, calls)
    };
    let (result, (gather, calls)) = tokio::join!(Arc::clone(model).ask(&prompt, "s1", sender), listening);
    Told { message: gather.message(), usage: gather.usage(), stop: gather.stop(), calls, result }
}
