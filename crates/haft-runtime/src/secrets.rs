//! Secrets: where they come from, and where they go. A value is asked for by name while a call runs, is noted with that
//! call, and is masked in everything that the call gives back.

use haft_core::CallError;
use haft_core::host::HostRules;
use haft_core::secret::MASK;
use serde_json::Value;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// What is shorter than this is not looked for in answers: it would be found everywhere.
const MASKED_MIN: usize = 4;

/// A secret's value. It is shown nowhere.
#[derive(Clone)]
pub struct Secret {
    name: String,
    value: Arc<str>,
    hosts: Option<HostRules>,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({})", self.name)
    }
}

impl Secret {
    /// The value, for whoever sends it.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The hosts that it may be sent to; none if nobody said.
    pub fn hosts(&self) -> Option<&HostRules> {
        self.hosts.as_ref()
    }
}

/// Where secrets come from.
#[derive(Debug, Default)]
pub struct Secrets;

impl Secrets {
    /// A secret by its name; none if nobody has it.
    pub fn get(&self, name: &str) -> Result<Option<Secret>, CallError> {
        let found = std::env::var(name).ok().filter(|value| !value.is_empty());
        Ok(found.map(|value| Secret { name: name.to_owned(), value: value.into(), hosts: None }))
    }
}

/// The secrets that one call has used.
#[derive(Debug, Clone, Default)]
pub(crate) struct Used(Arc<Mutex<Vec<Secret>>>);

impl Used {
    pub(crate) fn note(&self, secret: &Secret) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(secret.clone());
    }

    /// Masks them in a text.
    pub(crate) fn mask(&self, text: &mut String) {
        for secret in &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            if secret.value.len() >= MASKED_MIN && text.contains(&*secret.value) {
                *text = text.replace(&*secret.value, MASK);
            }
        }
    }

    /// Masks them in a value, in names as well.
    pub(crate) fn mask_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.mask(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask_value(item)),
            Value::Object(map) => {
                let old = std::mem::take(map);
                for (mut key, mut value) in old {
                    self.mask(&mut key);
                    self.mask_value(&mut value);
                    map.insert(key, value);
                }
            }
            _ => {}
        }
    }

    /// Masks them in a failure.
    pub(crate) fn mask_error(&self, error: &mut CallError) {
        self.mask(&mut error.message);
        error.hint.iter_mut().for_each(|hint| self.mask(hint));
        error.details.iter_mut().for_each(|details| self.mask_value(details));
    }

    /// Masks them in all that a call gives back.
    pub(crate) fn mask_reply(&self, reply: &mut Result<crate::tool::Reply, CallError>) {
        if self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            return;
        }
        match reply {
            Ok(reply) => {
                self.mask(&mut reply.text);
                reply.data.iter_mut().for_each(|data| self.mask_value(data));
                reply.warnings.iter_mut().for_each(|warning| self.mask(warning));
                reply.error.iter_mut().for_each(|error| self.mask_error(error));
            }
            Err(error) => self.mask_error(error),
        }
    }
}
