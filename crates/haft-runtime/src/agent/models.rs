//! Which models there are, and which of them is asked.
//!
//! ```text
//! settings: use ──► get ──► Remote
//!    nothing said ──► the first provider with a key ──► its model
//!         no key ──► a server on this machine ──► whichever model it has
//!           none ──► an error that says what to do
//! ```

use super::facts;
use super::model::{Facts, Model, ModelRef};
use super::providers;
use super::remote::{self, PATIENCE, Remote};
use super::settings::{AgentSettings, Provider};
use crate::http::{Carrier, Client};
use crate::pipeline::Haft;
use crate::secrets::Secrets;
use haft_core::preview::{cut, inert};
use haft_core::web::Target;
use haft_core::{CallError, ErrorKind};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;

/// How long a server on this machine has to say that it is there.
const PROBE: Duration = Duration::from_millis(700);
/// The largest list of models that is read.
const LIST_MAX: usize = 1 << 20;
/// How many models of a server are told.
const LISTED: usize = 200;

/// The models that can be asked.
pub struct Models {
    settings: Arc<AgentSettings>,
    secrets: Arc<Secrets>,
    carrier: Carrier,
    patience: Duration,
    /// Connections are kept by provider: the same for all its models.
    places: Mutex<BTreeMap<String, (Target, Client)>>,
    /// Those that a program has added itself.
    added: Mutex<BTreeMap<ModelRef, Arc<dyn Model>>>,
}

/// A provider, as people are told of it.
#[derive(Debug, Clone, Serialize)]
pub struct Available {
    /// Its name.
    pub provider: String,
    /// In which form it is spoken to.
    pub wire: haft_core::agent::wire::Wire,
    /// Where it is; empty if nobody has said.
    pub url: String,
    /// The variables and secrets that may hold its key.
    pub keys: Vec<String>,
    /// Which of them does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Whether it is a server on this machine.
    pub local: bool,
    /// Whether it can be asked: there is a key, or it needs none and is there.
    pub ready: bool,
    /// Its models: those that haft knows or was told of, or those that the server lists.
    pub models: Vec<Listed>,
}

/// A model, as people are told of it.
#[derive(Debug, Clone, Serialize)]
pub struct Listed {
    /// Which.
    pub model: ModelRef,
    /// What is known of it.
    #[serde(flatten)]
    pub facts: Facts,
}

impl Models {
    /// By these settings, with keys from these secrets; a proxy carries what goes outside if the carrier says so.
    pub fn new(settings: Arc<AgentSettings>, secrets: Arc<Secrets>, carrier: Carrier) -> Self {
        Self { settings, secrets, carrier, patience: PATIENCE, places: Mutex::default(), added: Mutex::default() }
    }

    /// Those of a tool layer.
    pub fn of(haft: &Haft) -> Self {
        let settings = &haft.settings;
        Self::new(Arc::clone(&settings.agent), Arc::clone(&settings.secrets), settings.web.carrier)
    }

    /// Gives streams up sooner or later than usual.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// All providers by name: those that haft knows, and what the settings say.
    pub fn providers(&self) -> BTreeMap<String, Provider> {
        let mut all = providers::known(|name| std::env::var(name).ok());
        all.extend(self.settings.providers.clone());
        all
    }

    /// What is known of a model.
    pub fn facts(&self, model: &ModelRef) -> Facts {
        self.settings.facts.get(model).copied().unwrap_or_else(|| facts::of(model))
    }

    /// Adds a model of a program's own, which is asked by its name like any other.
    pub fn register(&self, model: Arc<dyn Model>) {
        self.added.lock().unwrap_or_else(PoisonError::into_inner).insert(model.name().clone(), model);
    }

    /// A model. It is an error if nobody knows its provider or has a key for it.
    pub async fn get(&self, model: &ModelRef) -> Result<Arc<dyn Model>, CallError> {
        let added = self.added.lock().unwrap_or_else(PoisonError::into_inner).get(model).cloned();
        if let Some(added) = added {
            return Ok(added);
        }
        let provider = self.provider(&model.provider)?;
        if !provider.keys.is_empty() && self.key_of(&provider).await?.is_none() {
            return Err(no_key(&model.provider, &provider.keys));
        }
        let place = self.place(&model.provider, &provider)?;
        let secrets = Arc::clone(&self.secrets);
        let remote = Remote::new(model.clone(), self.facts(model), provider, place, secrets);
        Ok(Arc::new(remote.patience(self.patience)))
    }

    /// The models to ask, the first choice first: these, or those of the settings, or what can be found. One for which
    /// there is no key is left out if there is another.
    pub async fn chain(&self, models: &[ModelRef]) -> Result<Vec<Arc<dyn Model>>, CallError> {
        let chosen = if models.is_empty() { self.chosen().await? } else { models.to_vec() };
        let (mut found, mut wrong) = (Vec::new(), None);
        for model in &chosen {
            match self.get(model).await {
                Ok(model) => found.push(model),
                Err(error) => {
                    tracing::warn!(model = %model, error = %error.message, "a model is left out");
                    wrong = wrong.or(Some(error));
                }
            }
        }
        match wrong {
            Some(error) if found.is_empty() => Err(error),
            _ => Ok(found),
        }
    }

    /// Which models are asked if nobody says more: those of the settings; else one of the first provider with a key; else
    /// one of a server on this machine.
    pub async fn chosen(&self) -> Result<Vec<ModelRef>, CallError> {
        if !self.settings.models.is_empty() {
            return Ok(self.settings.models.clone());
        }
        let (all, mut wrong) = (self.providers(), None);
        for (name, model) in providers::preferred() {
            let (Some(provider), Some(model)) = (all.get(name), model) else { continue };
            match self.key_of(provider).await {
                Ok(Some(_)) if !provider.url.is_empty() => {
                    return Ok(vec![ModelRef { provider: name.to_owned(), model: model.to_owned() }]);
                }
                Ok(_) => {}
                Err(error) => wrong = wrong.or(Some(error)),
            }
        }
        let here = self.here(&all).await;
        let speaks = |name: &&String| !["embed", "rerank", "whisper"].iter().any(|word| name.contains(word));
        let first = here.iter().find_map(|(name, models)| models.iter().find(speaks).map(|model| (name, model)));
        let found = first.map(|(name, model)| ModelRef { provider: name.clone(), model: model.clone() });
        found.map(|model| vec![model]).ok_or_else(|| wrong.unwrap_or_else(|| nobody(&all)))
    }

    /// All providers, for people to look at. Servers on this machine are asked what they have.
    pub async fn available(&self) -> Vec<Available> {
        let all = self.providers();
        let mut here = self.here(&all).await;
        let order: Vec<&str> = providers::preferred().map(|(name, _)| name).collect();
        let mut names: Vec<&String> = all.keys().collect();
        names.sort_by_key(|name| order.iter().position(|known| known == name).unwrap_or(usize::MAX));
        let mut told = Vec::new();
        for name in names {
            let Some(provider) = all.get(name) else { continue };
            let (key, listed) = (self.key_of(provider).await.ok().flatten(), here.remove(name));
            let local = is_here(provider);
            let ready = if provider.keys.is_empty() { !local || listed.is_some() } else { key.is_some() };
            told.push(Available {
                provider: name.clone(),
                wire: provider.wire,
                url: provider.url.clone(),
                keys: provider.keys.clone(),
                key,
                local,
                ready: ready && !provider.url.is_empty(),
                models: self.listed(name, listed),
            });
        }
        told
    }

    /// The models of a provider: those that a server lists, those that the settings speak of, and those that haft knows.
    fn listed(&self, provider: &str, listed: Option<Vec<String>>) -> Vec<Listed> {
        let named = |model: String| ModelRef { provider: provider.to_owned(), model };
        let mut models: Vec<ModelRef> = listed.unwrap_or_default().into_iter().map(named).collect();
        let said = self.settings.facts.keys().chain(&self.settings.models);
        models.extend(said.filter(|model| model.provider == provider).cloned());
        models.extend(facts::models_of(provider));
        let mut seen = std::collections::BTreeSet::new();
        models.retain(|model| seen.insert(model.clone()));
        models.into_iter().map(|model| Listed { facts: self.facts(&model), model }).collect()
    }

    /// The servers on this machine that answer, and their models.
    async fn here(&self, all: &BTreeMap<String, Provider>) -> BTreeMap<String, Vec<String>> {
        let mut asked = JoinSet::new();
        for (name, provider) in all.iter().filter(|(_, provider)| is_here(provider)) {
            let Ok((base, client)) = self.place(name, provider) else { continue };
            let (name, url) = (name.clone(), format!("{}/models", provider.url.trim_end_matches('/')));
            asked.spawn(async move {
                let listed = tokio::time::timeout(PROBE, listed_at(&client, &base, &url)).await;
                listed.ok().flatten().map(|models| (name, models))
            });
        }
        asked.join_all().await.into_iter().flatten().collect()
    }

    fn provider(&self, name: &str) -> Result<Provider, CallError> {
        let mut all = self.providers();
        let Some(provider) = all.remove(name) else {
            let known: Vec<&str> = all.keys().map(String::as_str).collect();
            return Err(CallError::not_found(format!("nobody knows the provider `{}`", inert(name)))
                .hint(format!("there are {}; others are named under models.providers", known.join(", "))));
        };
        if provider.url.is_empty() {
            return Err(CallError::invalid(format!("nobody has said where `{name}` is"))
                .hint("set GOOGLE_CLOUD_PROJECT, and GOOGLE_CLOUD_LOCATION if it is not `global`"));
        }
        Ok(provider)
    }

    fn place(&self, name: &str, provider: &Provider) -> Result<(Target, Client), CallError> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = places.get(name) {
            return Ok(place.clone());
        }
        let place = remote::place(name, provider, self.carrier)?;
        places.insert(name.to_owned(), place.clone());
        Ok(place)
    }

    /// The name of the key that there is.
    async fn key_of(&self, provider: &Provider) -> Result<Option<String>, CallError> {
        let (secrets, names) = (Arc::clone(&self.secrets), provider.keys.clone());
        let find = move || remote::key_among(&secrets, &names);
        let found = tokio::task::spawn_blocking(find).await;
        found.map_err(|_| CallError::internal("the keys could not be looked up")).flatten()
    }
}

/// Whether a provider is on this machine and needs no key.
fn is_here(provider: &Provider) -> bool {
    let loopback = |target: Target| match target.host() {
        haft_core::host::Host::Address(address) => address.is_loopback(),
        haft_core::host::Host::Name(name) => name == "localhost",
    };
    provider.keys.is_empty() && Target::read(&provider.url).is_ok_and(loopback)
}

/// What a server lists, if it is one that serves models.
async fn listed_at(client: &Client, base: &Target, url: &str) -> Option<Vec<String>> {
    let url = Target::read(url).ok().filter(|url| url.same_origin(base))?;
    let mut answer = client.get(url.url().clone()).send().await.ok().filter(|answer| answer.status().is_success())?;
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await.ok()? {
        body.extend_from_slice(&piece);
        if body.len() > LIST_MAX {
            return None;
        }
    }
    let said: Value = serde_json::from_slice(&body).ok()?;
    let ids = said["data"].as_array()?.iter().filter_map(|model| model["id"].as_str());
    let plain = |id: &&str| !id.is_empty() && id.len() <= 200 && inert(id) == *id && !id.contains(char::is_whitespace);
    Some(ids.filter(plain).take(LISTED).map(str::to_owned).collect())
}

fn no_key(provider: &str, keys: &[String]) -> CallError {
    let first = keys.first().map_or("NAME", String::as_str);
    CallError::new(ErrorKind::NotFound, format!("there is no key for the provider `{}`", cut(&inert(provider), 80)))
        .hint(format!("set {}, or keep one with `haft secret set {first}`", keys.join(" or ")))
}

/// There is nobody to ask.
fn nobody(all: &BTreeMap<String, Provider>) -> CallError {
    let keys: Vec<String> = providers::preferred()
        .filter_map(|(name, model)| model.and(all.get(name)).and_then(|provider| provider.keys.first().cloned()))
        .collect();
    let here: Vec<String> = providers::preferred()
        .filter(|(_, model)| model.is_none())
        .filter_map(|(name, _)| all.get(name).map(|provider| format!("{name} at {}", provider.url)))
        .collect();
    CallError::new(
        ErrorKind::NotFound,
        format!("there is no model to ask: no key is set, and no server answers on this machine ({})", here.join(", ")),
    )
    .hint(format!(
        "set one of {}; or keep one with `haft secret set NAME`; or start a local server, for example `ollama serve`; or \
         name a model under models.use. `haft models` shows what there is",
        keys.join(", ")
    ))
}
