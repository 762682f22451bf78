//! Conversations as a caller meets them: a model behind real HTTP, the whole tool layer, a real store, real effects.

#![expect(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

mod again;
mod bad;
mod bound;
mod children;
mod copies;
mod declared;
mod kept;
mod later;
mod lost;
mod notes;
mod resumed;
mod talking;
mod worktrees;

use haft_core::agent::wire::Wire;
use haft_core::agent::{Block, Message};
use haft_core::{Caller, Origin, SessionId};
use haft_runtime::agent::model::Price;
use haft_runtime::agent::settings::Provider;
use haft_runtime::agent::{AgentSettings, Chat, Door, Ended, Facts, ModelRef, Purse, Told, Watch, Who};
use haft_runtime::approver::Approver;
use haft_runtime::{Haft, Halt, Settings, Workspace, Yes};
use haft_store::Store;
use haft_stub::{Asked, Reply, Stub};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A project, a model and a tool layer around both.
pub(crate) struct Stage {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) stub: Stub,
    pub(crate) haft: Haft,
}

/// What is known of the scripted model: a dollar for a million tokens.
pub(crate) fn facts() -> Facts {
    let price = Price { input: 1_000_000, output: 1_000_000, cache_read: 1_000_000, cache_write: 1_000_000 };
    Facts { window: 200_000, max_output: 4_000, price: Some(price) }
}

impl Stage {
    /// A model that says this, in this order.
    pub(crate) fn says(script: Vec<Reply>) -> Self {
        Self::with(Stub::start(script), |_| {})
    }

    /// A model that says what it will about what it is asked.
    pub(crate) fn answers(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self::with(Stub::with(answer), |_| {})
    }

    pub(crate) fn with(stub: Stub, change: impl FnOnce(&mut AgentSettings)) -> Self {
        Self::in_dir(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(), stub, change)
    }

    pub(crate) fn in_dir(dir: tempfile::TempDir, stub: Stub, change: impl FnOnce(&mut AgentSettings)) -> Self {
        std::fs::create_dir_all(dir.path().join("project/.git")).unwrap();
        let settings = settings(&stub, change);
        Self { haft: layer(dir.path(), settings), dir, stub }
    }

    /// Another process around the same project and store.
    pub(crate) fn another(&self) -> Haft {
        layer(self.dir.path(), (*self.haft.settings().agent).clone())
    }

    pub(crate) fn file(&self, path: &str, text: &str) {
        let path = self.haft.workspace().root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.haft.workspace().root().join(path)).ok()
    }

    /// Says something, with somebody who says yes to everything, and gives what came of it and all that was told.
    pub(crate) async fn say(&self, words: &str) -> (Ended, Vec<Told>) {
        say(&self.haft, who("talk"), words, &Yes, &Halt::new()).await
    }

    /// What was sent to the model the last time.
    pub(crate) fn last(&self) -> Asked {
        self.stub.asked().last().unwrap().clone()
    }
}

fn settings(stub: &Stub, change: impl FnOnce(&mut AgentSettings)) -> AgentSettings {
    let url = stub.base(haft_stub::Wire::Anthropic);
    let provider = Provider { wire: Wire::Anthropic, url, keys: Vec::new(), headers: BTreeMap::new() };
    let model = ModelRef::parse("stub/stub-1").unwrap();
    let mut settings = AgentSettings {
        models: vec![model.clone()],
        providers: BTreeMap::from([("stub".to_owned(), provider)]),
        facts: BTreeMap::from([(model, facts())]),
        ..AgentSettings::default()
    };
    change(&mut settings);
    settings
}

fn layer(dir: &Path, agent: AgentSettings) -> Haft {
    let workspace = Workspace::new(&dir.join("project")).unwrap();
    let store = Store::open(&dir.join("haft.db")).unwrap();
    let mut settings = Settings::new(dir.join("data"));
    settings.agent = Arc::new(agent);
    Haft::new(workspace, store, settings)
}

pub(crate) fn who(session: &str) -> Who {
    Who {
        session: SessionId::new(session).unwrap(),
        caller: Caller { agent: Some("main".to_owned()), ..Caller::default() },
        purse: Some(Purse::new(None)),
        ..Who::default()
    }
}

/// Says something in a conversation.
pub(crate) async fn say(
    layer: &Haft,
    who: Who,
    words: &str,
    approver: &dyn Approver,
    halt: &Halt,
) -> (Ended, Vec<Told>) {
    let (watch, told) = watch();
    let mut chat = Chat::open(layer, who).await.unwrap();
    let door = Door { approver, halt, origin: Origin::Library, watch, meanwhile: None };
    let ended = chat.say(vec![Block::Text { text: words.to_owned() }], door).await.unwrap();
    let told = told.lock().unwrap().clone();
    (ended, told)
}

/// Somebody who remembers all that is told.
pub(crate) fn watch() -> (Watch, Arc<Mutex<Vec<Told>>>) {
    let told: Arc<Mutex<Vec<Told>>> = Arc::default();
    let kept = Arc::clone(&told);
    (Arc::new(move |one: &Told| kept.lock().unwrap().push(one.clone())), told)
}

/// The names of what was told, in order and once in a row.
pub(crate) fn names(told: &[Told]) -> Vec<String> {
    let name = |one: &Told| serde_json::to_value(one).unwrap()["event"].as_str().unwrap().to_owned();
    let mut names: Vec<String> = told.iter().map(name).collect();
    names.dedup();
    names
}

/// What is sent of a conversation.
pub(crate) async fn said(haft: &Haft, session: &str) -> Vec<Message> {
    haft.store().said(&SessionId::new(session).unwrap()).await.unwrap().pop().unwrap()
}

/// The results that a request to an Anthropic model tells, with their texts.
pub(crate) fn results(asked: &Asked) -> Vec<(String, bool)> {
    let messages = asked.body["messages"].as_array().unwrap();
    let blocks = messages.iter().flat_map(|message| message["content"].as_array().unwrap());
    let results = blocks.filter(|block| block["type"] == "tool_result");
    let text = |block: &Value| match &block["content"] {
        Value::String(text) => text.clone(),
        other => other[0]["text"].as_str().unwrap_or_default().to_owned(),
    };
    results.map(|block| (text(block), block["is_error"] == true)).collect()
}
