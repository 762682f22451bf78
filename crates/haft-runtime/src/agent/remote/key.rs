//! Keys: where they are found, and in which header they go.

use crate::agent::settings::Provider;
use crate::http::{HeaderMap, HeaderName, HeaderValue};
use crate::secrets::{Mask, Secret, Secrets};
use haft_core::CallError;
use haft_core::agent::turns::{Failure, FailureKind};
use haft_core::agent::wire::Wire;
use haft_core::preview::inert;
use haft_core::web::Target;

/// The version of Anthropic's format that is spoken.
const VERSION: &str = "2023-06-01";

/// So much of a key is a key.
const BEGINNING: usize = 12;

/// A key, and what hides it.
pub(crate) struct Key {
    secret: Secret,
    mask: Mask,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key({})", self.secret.name())
    }
}

impl Key {
    /// The variable or secret that holds it.
    pub(crate) fn name(&self) -> &str {
        self.secret.name()
    }

    /// A text without it, in whatever form it stands there.
    pub(crate) fn hidden(&self, text: &str) -> String {
        let mut text = text.to_owned();
        self.mask.text(&mut text);
        // Somebody may have cut it in the middle.
        let beginning = self.secret.value().get(..BEGINNING).unwrap_or(self.secret.value());
        if text.contains(beginning) { "what it said held the key".to_owned() } else { text }
    }
}

/// The first of these that somebody has: in the environment, in haft's store, or from a program that tells it.
pub(crate) fn find(secrets: &Secrets, names: &[String]) -> Result<Option<Key>, CallError> {
    for name in names {
        if let Some(secret) = secrets.get(name)? {
            let mask = Mask::of([secret.value()]);
            return Ok(Some(Key { secret, mask }));
        }
    }
    Ok(None)
}

/// Whether a provider is a project on Vertex: it is spoken to like Gemini, and takes a token instead of a key.
pub(crate) fn is_vertex(provider: &Provider) -> bool {
    provider.wire == Wire::Gemini && provider.url.contains("/publishers/")
}

/// The headers of a request.
pub(crate) fn headers(provider: &Provider, key: Option<&Key>, target: &Target) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert("accept", HeaderValue::from_static("text/event-stream, application/json"));
    if provider.wire == Wire::Anthropic {
        headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
    }
    if let Some(key) = key {
        may_go(key, target)?;
        let (name, value) = match provider.wire {
            Wire::Anthropic => ("x-api-key", key.secret.value().to_owned()),
            Wire::Gemini if !is_vertex(provider) => ("x-goog-api-key", key.secret.value().to_owned()),
            Wire::Gemini | Wire::Chat | Wire::Responses => ("authorization", format!("Bearer {}", key.secret.value())),
        };
        let value = HeaderValue::from_str(&value);
        let mut value =
            value.map_err(|_| denied(format!("the key in {} has characters that no key has", key.name())))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    for (name, value) in &provider.headers {
        let pair = HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_str(value).ok());
        let (name, mut value) = pair.ok_or_else(|| Failure {
            kind: FailureKind::Invalid,
            message: format!("the header `{}` of the provider cannot be sent", inert(name)),
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Whether a key may be sent there: to the hosts that it is bound to, and not in the open over the internet.
fn may_go(key: &Key, target: &Target) -> Result<(), Failure> {
    key.secret.may_go_to(target).map_err(|error| denied(error.message))?;
    if target.is_secure() || target.host().is_private() {
        return Ok(());
    }
    Err(denied(format!(
        "the key in {} is not sent to {} without encryption: use https",
        key.name(),
        target.authority()
    )))
}

fn denied(message: String) -> Failure {
    Failure { kind: FailureKind::Denied, message }
}
