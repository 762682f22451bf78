//! A model that is asked over HTTP: one implementation for all providers, because a provider is a wire format, a place and a
//! key.
//!
//! ```text
//! Prompt ──► Wire::body ──► POST ──► status ──► Decoder ──► Deltas
//!                              │        └──► trouble: why not, and whether to come again
//!                              └──► key: looked up for each request, and shown to nobody but the provider
//! ```
//!
//! Nothing is asked twice here, and no redirect is followed: a key goes where it was said to go, and nowhere else.

mod key;
mod later;
mod trouble;

use super::model::{Counted, Facts, Model, ModelRef, Prompt, about};
use super::settings::Provider;
use crate::http::{self, Answer, Carrier, Client, Leads};
use crate::secrets::Secrets;
use crate::tool::BoxFuture;
use haft_core::CallError;
use haft_core::agent::Delta;
use haft_core::agent::turns::{Failure, FailureKind};
use haft_core::agent::wire::{Broken, Wire};
use haft_core::preview::inert;
use haft_core::web::Target;
use haft_store::waits::{Wait, WaitKind};
use key::Key;
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use trouble::Trouble;

/// How long nothing may come before a stream is given up.
pub const PATIENCE: Duration = Duration::from_mins(2);
/// The largest answer that is read.
const ANSWER_MAX: usize = 64 << 20;
/// The most that is read of an answer that is no stream.
const SAID_MAX: usize = 64 << 10;
/// What is kept of a stream's beginning, to say what it was if it was none.
const HEAD: usize = 512;
/// How long a count may take. It is only to know better.
const COUNTING: Duration = Duration::from_secs(10);

/// A model at a provider's.
pub struct Remote {
    name: ModelRef,
    facts: Facts,
    provider: Provider,
    base: Target,
    client: Client,
    secrets: Arc<Secrets>,
    patience: Duration,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers may hold what proves who asks.
        write!(f, "Remote({} at {})", self.name, self.base.origin())
    }
}

/// The place of a provider, and a client that reaches it and nobody else inside.
pub(crate) fn place(name: &str, provider: &Provider, carrier: Carrier) -> Result<(Target, Client), CallError> {
    let base = Target::read(&provider.url).map_err(|error| {
        CallError::invalid(format!("the URL of the provider `{}` cannot be used: {error}", inert(name)))
            .hint("set models.providers.NAME.url in the user's configuration")
    })?;
    // Whoever is on this machine or beside it is not asked by way of a proxy.
    let carrier = if base.host().is_private() { Carrier::Own } else { carrier };
    let client = http::client(Leads::OutsideBut(base.host().to_string()), carrier)?;
    Ok((base, client))
}

/// Which of these names holds a key.
pub(crate) fn key_among(secrets: &Secrets, names: &[String]) -> Result<Option<String>, CallError> {
    Ok(key::find(secrets, names)?.map(|key| key.name().to_owned()))
}

impl Remote {
    /// A model of a provider, at its place.
    pub(crate) fn new(
        name: ModelRef,
        facts: Facts,
        provider: Provider,
        (base, client): (Target, Client),
        secrets: Arc<Secrets>,
    ) -> Self {
        Self { name, facts, provider, base, client, secrets, patience: PATIENCE }
    }

    /// Gives a stream up sooner or later than usual.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    fn trouble<'a>(&'a self, key: Option<&'a Key>) -> Trouble<'a> {
        Trouble { name: &self.name, keys: &self.provider.keys, key }
    }

    /// A URL below the provider's own.
    fn at(&self, path: &str) -> Result<Target, Failure> {
        let url = format!("{}/{path}", self.provider.url.trim_end_matches('/'));
        Target::read(&url).map_err(|error| Failure { kind: FailureKind::Invalid, message: error.to_string() })
    }

    /// A model's name as a part of a path. It is the user's to say, but never leads elsewhere.
    fn named(&self) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
        let escaped = |c: char| {
            let mut bytes = [0; 4];
            c.encode_utf8(&mut bytes).bytes().map(|byte| format!("%{byte:02X}")).collect::<String>()
        };
        let name = self.name.model.chars();
        name.map(|c| if plain(c) { c.to_string() } else { escaped(c) }).collect()
    }

    fn speaking(&self) -> String {
        match self.provider.wire {
            Wire::Anthropic => "v1/messages".to_owned(),
            Wire::Responses => "responses".to_owned(),
            Wire::Chat => "chat/completions".to_owned(),
            Wire::Gemini => format!("models/{}:streamGenerateContent?alt=sse", self.named()),
        }
    }

    /// Sends a body with the key. An answer that is a failure is one here.
    async fn send(&self, path: &str, body: Vec<u8>, key: Option<&Key>) -> Result<Answer, Failure> {
        let target = self.at(path)?;
        let headers = key::headers(&self.provider, key, &target)?;
        let sent = self.client.post(target.url().clone()).headers(headers).body(body).send();
        let answer = tokio::time::timeout(self.patience, sent).await.map_err(|_| self.silent())?;
        let answer = answer.map_err(|error| self.trouble(key).unreached(&target, &error.without_url()))?;
        if answer.status().is_success() { Ok(answer) } else { Err(self.refused(answer, key).await) }
    }

    fn silent(&self) -> Failure {
        let seconds = self.patience.as_secs_f64();
        Failure { kind: FailureKind::Away, message: format!("{} has said nothing for {seconds} s", self.name) }
    }

    /// Why an answer is none: by its status, its headers, and what it says.
    async fn refused(&self, mut answer: Answer, key: Option<&Key>) -> Failure {
        let (status, after) = (answer.status().as_u16(), later::said(answer.headers(), crate::now_ms()));
        let body = self.body(&mut answer, SAID_MAX).await;
        self.trouble(key).refused(status, after, &body)
    }

    /// What it says, as far as it is read.
    async fn body(&self, answer: &mut Answer, most: usize) -> Vec<u8> {
        let mut body = Vec::new();
        while let Ok(Ok(Some(piece))) = tokio::time::timeout(self.patience, answer.chunk()).await {
            body.extend_from_slice(&piece[..piece.len().min(most - body.len())]);
            if body.len() >= most {
                break;
            }
        }
        body
    }

    async fn key(&self) -> Result<Option<Key>, Failure> {
        let (secrets, names) = (Arc::clone(&self.secrets), self.provider.keys.clone());
        // A secret may be told by a program.
        let found = tokio::task::spawn_blocking(move || key::find(&secrets, &names)).await;
        let found = found.map_err(|_| CallError::internal("the key could not be looked up")).flatten();
        let found = found.map_err(|error| Failure { kind: FailureKind::Denied, message: error.message })?;
        match found {
            None if !self.provider.keys.is_empty() => Err(self.trouble(None).no_key()),
            found => Ok(found),
        }
    }

    async fn speak(&self, body: Vec<u8>, mut listener: Listener) -> Result<(), Failure> {
        let key = self.key().await?;
        let mut answer = self.send(&self.speaking(), body, key.as_ref()).await?;
        let trouble = self.trouble(key.as_ref());
        if !may_be_stream(&answer) {
            let body = self.body(&mut answer, SAID_MAX).await;
            return Err(trouble.no_stream(&body));
        }
        let ended = loop {
            match tokio::time::timeout(self.patience, answer.chunk()).await {
                Err(_) => break Err(self.silent()),
                Ok(Err(error)) => break Err(trouble.cut_off(&error.without_url())),
                Ok(Ok(None)) => break Ok(()),
                Ok(Ok(Some(piece))) => match listener.hear(&piece).await {
                    // Some servers keep the connection after that.
                    Ok(true) if listener.is_over() => break Ok(()),
                    Ok(true) => {}
                    Ok(false) => return Ok(()),
                    Err(broken) => return Err(trouble.broken(&broken)),
                },
            }
            if listener.size > ANSWER_MAX {
                return Err(trouble.endless());
            }
        };
        listener.end().await.map_err(|(broken, head)| match (ended, broken) {
            // Half an event is no odd one.
            (Err(failure), Broken::Cut | Broken::Odd(_)) => failure,
            // What never was a stream is told by how it began.
            (Ok(()), Broken::Cut) if !head.is_empty() => trouble.no_stream(&head),
            (_, broken) => trouble.broken(&broken),
        })
    }

    /// A provider's own count.
    async fn counted(&self, prompt: &Prompt<'_>) -> Option<u64> {
        let mut body: Value = serde_json::from_slice(&self.provider.wire.body(prompt)).ok()?;
        let (path, name) = match self.provider.wire {
            Wire::Anthropic => {
                keep(&mut body, &["model", "messages", "system", "tools", "thinking"]);
                ("v1/messages/count_tokens".to_owned(), "input_tokens")
            }
            Wire::Responses => {
                keep(&mut body, &["model", "input", "instructions", "tools", "reasoning", "parallel_tool_calls"]);
                ("responses/input_tokens".to_owned(), "input_tokens")
            }
            Wire::Gemini => {
                keep(&mut body, &["contents", "systemInstruction", "tools"]);
                if !key::is_vertex(&self.provider) {
                    body["model"] = format!("models/{}", self.name.model).into();
                    body = json!({ "generateContentRequest": body });
                }
                (format!("models/{}:countTokens", self.named()), "totalTokens")
            }
            Wire::Chat => return None,
        };
        let key = self.key().await.ok()?;
        let mut answer = self.send(&path, body.to_string().into_bytes(), key.as_ref()).await.ok()?;
        let body = self.body(&mut answer, SAID_MAX).await;
        serde_json::from_slice::<Value>(&body).ok()?[name].as_u64()
    }
}

/// Only these parts of a body.
fn keep(body: &mut Value, names: &[&str]) {
    if let Some(parts) = body.as_object_mut() {
        parts.retain(|name, _| names.contains(&name.as_str()));
    }
}

/// Whether an answer says that it is a stream, or does not say what it is.
fn may_be_stream(answer: &Answer) -> bool {
    let kind =
        answer.headers().get("content-type").map(|value| String::from_utf8_lossy(value.as_bytes()).to_lowercase());
    kind.is_none_or(|kind| !kind.contains("html") && !kind.contains("json"))
}

/// Follows a stream, and passes on what is said.
struct Listener {
    decoder: haft_core::agent::wire::Decoder,
    said: mpsc::Sender<Delta>,
    head: Vec<u8>,
    heard: bool,
    stopped: bool,
    size: usize,
}

impl Listener {
    fn new(wire: Wire, seed: &str, said: mpsc::Sender<Delta>) -> Self {
        Self { decoder: wire.decoder(seed), said, head: Vec::new(), heard: false, stopped: false, size: 0 }
    }

    /// Whether nothing more comes.
    fn is_over(&self) -> bool {
        self.decoder.is_over()
    }

    /// Takes bytes. Says whether anybody still listens.
    async fn hear(&mut self, bytes: &[u8]) -> Result<bool, Broken> {
        self.size += bytes.len();
        self.head.extend_from_slice(&bytes[..bytes.len().min(HEAD - self.head.len())]);
        // Line by line: what was said before something went wrong was said.
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let deltas = self.decoder.feed(line)?;
            if !self.tell(deltas).await {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn tell(&mut self, deltas: Vec<Delta>) -> bool {
        for delta in deltas {
            self.heard = true;
            self.stopped |= matches!(delta, Delta::Stopped(_));
            if self.said.send(delta).await.is_err() {
                return false;
            }
        }
        true
    }

    /// The stream is over. If it was none, how it began is given back as well.
    async fn end(mut self) -> Result<(), (Broken, Vec<u8>)> {
        let decoder = std::mem::replace(&mut self.decoder, Wire::Chat.decoder(""));
        match decoder.finish() {
            Ok(deltas) => {
                self.tell(deltas).await;
                Ok(())
            }
            Err(_) if self.stopped => Ok(()),
            Err(broken) => {
                let head = if self.heard || looks_like_stream(&self.head) { Vec::new() } else { self.head };
                Err((broken, head))
            }
        }
    }
}

/// Whether bytes begin as event streams do.
fn looks_like_stream(head: &[u8]) -> bool {
    let head = head.trim_ascii_start();
    head.is_empty()
        || [&b"data"[..], b"event", b"id", b"retry", b":"].iter().any(|field| {
            let both = field.len().min(head.len());
            head[..both] == field[..both]
        })
}

impl Model for Remote {
    fn name(&self) -> &ModelRef {
        &self.name
    }

    fn facts(&self) -> Facts {
        self.facts
    }

    fn wire(&self) -> Wire {
        self.provider.wire
    }

    fn ask(
        self: Arc<Self>,
        prompt: &Prompt<'_>,
        seed: &str,
        said: mpsc::Sender<Delta>,
    ) -> BoxFuture<'static, Result<(), Failure>> {
        let body = self.provider.wire.body(prompt);
        let listener = Listener::new(self.provider.wire, seed, said);
        Box::pin(async move {
            let _wait = Wait::begin(WaitKind::Provider, || format!("an answer of {}", self.name));
            let answered = self.speak(body, listener).await;
            if let Err(failure) = &answered {
                let (kind, why) = (failure.kind, failure.message.as_str());
                tracing::warn!(target: "haft::provider", model = %self.name, ?kind, why, "a provider request failed");
            }
            answered
        })
    }

    fn count<'a>(&'a self, prompt: &'a Prompt<'a>) -> BoxFuture<'a, Counted> {
        Box::pin(async move {
            let counted = tokio::time::timeout(COUNTING, self.counted(prompt)).await.ok().flatten();
            counted.map_or_else(|| about(prompt), |tokens| Counted { tokens, exact: true })
        })
    }
}
