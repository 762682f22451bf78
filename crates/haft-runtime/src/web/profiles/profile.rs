//! One API: how to sign in, how often to ask, what there is and what to look out for.

use crate::web::credential::Credential;
use base64::Engine;
use haft_core::CallError;
use haft_core::preview::{cut, inert};
use haft_core::web::Target;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The most that one profile may hold, as JSON.
pub(super) const BYTES_MAX: usize = 256 << 10;
const ID_MAX: usize = 64;
const ENDPOINTS_MAX: usize = 1000;
/// What is shorter than this describes nothing.
const DESCRIPTION_MIN: usize = 20;
/// As much of a name is repeated.
const NAME_COLUMNS: usize = 80;

/// What is known of an API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its name here: small letters, digits, `_` and `-`.
    pub id: String,
    /// Its name for people.
    #[serde(default)]
    pub name: String,
    /// Where it is. What is known here holds for everything below.
    pub base_url: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// How to sign in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// How often it may be asked.
    #[serde(default, skip_serializing_if = "RateLimit::is_none")]
    pub rate_limit: RateLimit,
    /// What it offers.
    #[serde(default)]
    pub endpoints: Vec<Endpoint>,
    /// How to use it well.
    #[serde(default, deserialize_with = "lines")]
    pub guidelines: Vec<String>,
    /// What not to do.
    #[serde(default, deserialize_with = "lines", skip_serializing_if = "Vec::is_empty")]
    pub avoid: Vec<String>,
    /// What else is worth knowing.
    #[serde(default, deserialize_with = "lines", skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// How to sign in. A value of the form `${NAME}` is read from the environment when it is needed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub enum Auth {
    /// HTTP Basic.
    Basic {
        /// Who.
        username: String,
        /// The proof.
        password: String,
    },
    /// `Authorization: Bearer …`.
    Bearer {
        /// The proof.
        token: String,
    },
    /// A header of the API's own.
    Header {
        /// Its name.
        name: String,
        /// The proof.
        value: String,
    },
    /// A parameter of the query.
    Query {
        /// Its name.
        name: String,
        /// The proof.
        value: String,
    },
}

impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Auth({}, {})", self.kind(), self.shown())
    }
}

/// How often an API may be asked. What is absent is not limited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RateLimit {
    /// In a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_second: Option<u32>,
    /// In a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_minute: Option<u32>,
    /// In an hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_hour: Option<u32>,
    /// In a day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_day: Option<u32>,
}

impl RateLimit {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }

    fn all(&self) -> [(&'static str, Option<u32>); 4] {
        [
            ("per_second", self.per_second),
            ("per_minute", self.per_minute),
            ("per_hour", self.per_hour),
            ("per_day", self.per_day),
        ]
    }
}

/// One thing that an API offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// The method.
    pub method: String,
    /// Below the API's URL.
    pub path: String,
    /// What it does.
    #[serde(default)]
    pub description: String,
}

impl Auth {
    /// The word for its type.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Basic { .. } => "basic",
            Self::Bearer { .. } => "bearer",
            Self::Header { .. } => "header",
            Self::Query { .. } => "query",
        }
    }

    /// The proof, as it is written.
    fn proof(&self) -> &str {
        match self {
            Self::Basic { password, .. } => password,
            Self::Bearer { token } => token,
            Self::Header { value, .. } | Self::Query { value, .. } => value,
        }
    }

    /// The proof as it may be shown: by the variable that holds it, or not at all.
    fn shown(&self) -> &str {
        if variable(self.proof()).is_some() { self.proof() } else { haft_core::secret::MASK }
    }

    /// Whether the proof itself is written down.
    pub fn is_literal(&self) -> bool {
        variable(self.proof()).is_none()
    }

    /// What signs requests to `base`.
    fn credential(&self, id: &str, base: &Target, env: Env<'_>) -> Result<Credential, CallError> {
        let value = |text: &str| match variable(text) {
            Some(name) => env(name).filter(|value| !value.is_empty()).ok_or_else(|| {
                CallError::failed(format!("the API `{id}` is signed in to with `${{{name}}}`, which is not set"))
                    .hint(format!("set {name} in the environment that haft runs in"))
            }),
            None => Ok(text.to_owned()),
        };
        let proof = value(self.proof())?;
        match self {
            Self::Basic { username, .. } => {
                let user = value(username)?;
                let encoded = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{proof}"));
                // With some APIs the name is the key, and there is no password.
                let secret = if proof.len() > user.len() { &proof } else { &user };
                Credential::header(base, "authorization", &format!("Basic {encoded}"), secret)
            }
            Self::Bearer { .. } => Credential::header(base, "authorization", &format!("Bearer {proof}"), &proof),
            Self::Header { name, .. } => Credential::header(base, name, &proof, &proof),
            Self::Query { name, .. } => Ok(Credential::query(base, name, &proof)),
        }
    }
}

/// Where variables are looked up.
pub(super) type Env<'e> = &'e dyn Fn(&str) -> Option<String>;

/// The variable that a value stands for: `${NAME}`.
fn variable(text: &str) -> Option<&str> {
    let name = text.strip_prefix("${")?.strip_suffix('}')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let well = !name.is_empty() && name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit());
    well.then_some(name)
}

/// Masks what proves who asks, unless it is a variable. With some APIs the user name is the key, and the password nothing.
pub(crate) fn hide(auth: &mut Value) {
    let length = |auth: &Value, name: &str| auth[name].as_str().map_or(0, str::len);
    let named = length(auth, "username") < length(auth, "password");
    let open = |name: &str| matches!(name, "type" | "name") || (name == "username" && named);
    for (name, value) in auth.as_object_mut().into_iter().flatten() {
        if !open(name) && value.as_str().is_none_or(|text| variable(text).is_none()) {
            *value = haft_core::secret::MASK.into();
        }
    }
}

/// One text, or a list of them.
fn lines<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Lines {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Lines::deserialize(deserializer)? {
        Lines::One(line) => vec![line],
        Lines::Many(lines) => lines,
    })
}

/// Whether a text is an id.
pub fn is_id(text: &str) -> bool {
    let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.len() <= ID_MAX && text.starts_with(letter) && text.chars().all(|c| letter(c) || matches!(c, '_' | '-'))
}

impl Profile {
    /// Reads one, and says everything that is missing from it or too thin to be of use.
    pub fn read(value: &Value) -> Result<Self, CallError> {
        if value.to_string().len() > BYTES_MAX {
            return Err(CallError::invalid(format!("a profile has at most {} KB", BYTES_MAX >> 10)));
        }
        let hint = "a profile has id, name, base_url, description, endpoints, guidelines, and may have auth, \
                    rate_limit, avoid and notes";
        let mut profile = Self::deserialize(value).map_err(|error| {
            // What the parser quotes may be a key that was put in the wrong place.
            let why = cut(&haft_core::secret::mask(&error.to_string()), 200);
            CallError::invalid(format!("this is not a profile: {why}")).hint(hint)
        })?;
        profile.tame();
        let wanting = profile.wanting();
        if wanting.is_empty() {
            return Ok(profile);
        }
        let list = wanting.iter().map(|what| format!("\n- {what}")).collect::<String>();
        Err(CallError::invalid(format!("the profile is too thin to be of use:{list}"))
            .hint(hint)
            .details(serde_json::json!({ "missing": wanting })))
    }

    /// Everything that is missing, wrong or thin.
    fn wanting(&self) -> Vec<String> {
        let mut list = Vec::new();
        let mut say = |wrong: bool, what: &str| list.extend(wrong.then(|| what.to_owned()));
        say(!is_id(&self.id), "id: 1 to 64 small letters, digits, `_` and `-`, beginning with a letter or digit");
        say(self.name.trim().is_empty(), "name: what people call it");
        let thin = self.description.trim().chars().count() < DESCRIPTION_MIN;
        say(thin, "description: what it is for, in a sentence or two");
        say(self.endpoints.is_empty(), "endpoints: at least one {method, path, description}");
        say(self.guidelines.iter().all(|line| line.trim().is_empty()), "guidelines: how to use it well, at least one");
        say(self.endpoints.len() > ENDPOINTS_MAX, "endpoints: at most 1000");
        for (index, endpoint) in self.endpoints.iter().take(ENDPOINTS_MAX).enumerate() {
            let at = format!("endpoints[{index}]");
            say(!endpoint.path.starts_with('/'), &format!("{at}.path: begins with `/`"));
            let known = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"];
            say(!known.contains(&endpoint.method.as_str()), &format!("{at}.method: one of {}", known.join(", ")));
            say(endpoint.description.trim().is_empty(), &format!("{at}.description: what it does"));
        }
        for (unit, _) in self.rate_limit.all().iter().filter(|(_, rate)| *rate == Some(0)) {
            say(true, &format!("rate_limit.{unit}: at least 1, or absent"));
        }
        match Target::read(&self.base_url) {
            Err(error) => say(true, &format!("base_url: {error}")),
            Ok(base) => {
                say(base.url().query().is_some(), "base_url: without a query");
                let exposed = self.auth.is_some() && !base.is_secure() && !is_here(&base);
                say(exposed, "base_url: https, because credentials are sent there");
            }
        }
        if let Some(auth) = &self.auth {
            list.extend(auth.wanting());
        }
        list
    }

    /// Where it is.
    pub fn base(&self) -> Result<Target, CallError> {
        Target::read(&self.base_url).map_err(|error| CallError::invalid(format!("the API `{}`: {error}", self.id)))
    }

    /// What signs requests to it, if it is signed in to.
    pub(super) fn credential(&self, env: Env<'_>) -> Result<Option<Credential>, CallError> {
        let base = self.base()?;
        self.auth.as_ref().map(|auth| auth.credential(&self.id, &base, env)).transpose()
    }

    /// The profile as it may be shown: without what proves who asks.
    pub fn shown(&self) -> Value {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Some(auth) = value.get_mut("auth") {
            hide(auth);
        }
        value
    }

    /// Everything that is said in words.
    fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        let lists = self.guidelines.iter_mut().chain(&mut self.avoid).chain(&mut self.notes);
        let about = self.endpoints.iter_mut().flat_map(|endpoint| [&mut endpoint.path, &mut endpoint.description]);
        [&mut self.name, &mut self.description].into_iter().chain(lists).chain(about)
    }

    /// Makes everything inert that is said in words: it is shown to people and to models.
    fn tame(&mut self) {
        for text in self.texts() {
            *text = text.lines().map(inert).collect::<Vec<_>>().join("\n");
        }
    }

    /// The same as one text.
    pub(super) fn words(&self) -> String {
        self.clone().texts().map(|text| format!("{text}\n")).collect()
    }

    /// What a model is told with the first answer: how to use it, and how not to. It is marked as what a profile says: an
    /// agent may have written it, out of a document of somebody else's.
    pub(super) fn advice(&self) -> Option<String> {
        let parts = [("guidelines", &self.guidelines), ("avoid", &self.avoid), ("notes", &self.notes)];
        let lines: Vec<String> = parts
            .iter()
            .flat_map(|(what, list)| {
                list.iter().filter(|line| !line.is_empty()).map(move |line| format!("- {what}: \"{}\"", inert(line)))
            })
            .collect();
        let name = cut(&inert(&self.name), NAME_COLUMNS);
        (!lines.is_empty())
            .then(|| format!("The profile of the API {} (\"{name}\") says:\n{}", self.id, lines.join("\n")))
    }
}

impl Auth {
    fn wanting(&self) -> Vec<String> {
        let mut list = Vec::new();
        let mut say = |wrong: bool, what: &str| list.extend(wrong.then(|| what.to_owned()));
        say(self.proof().is_empty(), "auth: the token, password or value; `${NAME}` takes it from the environment");
        let half = self.proof().contains("${") && variable(self.proof()).is_none();
        say(half, "auth: `${NAME}` stands for the whole value, with letters, digits and `_` in its name");
        say(self.proof().contains(|c: char| c.is_control()), "auth: no line ends or control characters");
        match self {
            Self::Basic { username, .. } => say(username.is_empty(), "auth.username: who signs in"),
            Self::Header { name, .. } => {
                let token = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
                say(name.is_empty() || !name.chars().all(token), "auth.name: the header's name");
            }
            Self::Query { name, .. } => say(name.is_empty(), "auth.name: the parameter's name"),
            Self::Bearer { .. } => {}
        }
        list
    }
}

/// Whether what is sent does not leave this machine.
fn is_here(target: &Target) -> bool {
    match target.host() {
        haft_core::host::Host::Address(address) => address.is_loopback(),
        haft_core::host::Host::Name(name) => name == "localhost",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn whole() -> Value {
        json!({
            "id": "acme", "name": "Acme", "base_url": "https://api.acme.test/v1",
            "description": "Orders and customers of the Acme shop.",
            "auth": {"type": "bearer", "token": "${ACME_TOKEN}"},
            "rate_limit": {"per_second": 2},
            "endpoints": [{"method": "GET", "path": "/orders", "description": "All orders"}],
            "guidelines": ["Ask for at most 50 at once"]
        })
    }

    #[test]
    fn everything_that_is_missing_is_listed() {
        let mut thin = json!({"id": "Acme!", "base_url": "http://api.acme.test?x=1", "auth": {"type": "bearer", "token": ""},
            "rate_limit": {"per_day": 0}, "endpoints": [{"method": "get", "path": "orders"}]});
        let error = Profile::read(&thin).unwrap_err();
        insta::assert_snapshot!(error.message, @r"
        the profile is too thin to be of use:
        - id: 1 to 64 small letters, digits, `_` and `-`, beginning with a letter or digit
        - name: what people call it
        - description: what it is for, in a sentence or two
        - guidelines: how to use it well, at least one
        - endpoints[0].path: begins with `/`
        - endpoints[0].method: one of GET, POST, PUT, DELETE, PATCH, HEAD, OPTIONS
        - endpoints[0].description: what it does
        - rate_limit.per_day: at least 1, or absent
        - base_url: without a query
        - base_url: https, because credentials are sent there
        - auth: the token, password or value; `${NAME}` takes it from the environment
        ");
        thin["secret_sauce"] = json!(1);
        assert!(Profile::read(&thin).unwrap_err().message.contains("unknown field `secret_sauce`"));
        assert!(Profile::read(&json!("x")).is_err() && Profile::read(&json!({"id": "x".repeat(300 << 10)})).is_err());
        Profile::read(&whole()).unwrap();
    }

    #[test]
    fn proofs_are_not_shown() {
        let mut profile = whole();
        assert_eq!(Profile::read(&profile).unwrap().shown()["auth"]["token"], "${ACME_TOKEN}");
        for auth in [
            json!({"type": "bearer", "token": "hunter2"}),
            json!({"type": "basic", "username": "u", "password": "hunter2"}),
            json!({"type": "header", "name": "X-Key", "value": "hunter2"}),
            json!({"type": "query", "name": "key", "value": "hunter2"}),
        ] {
            profile["auth"] = auth;
            let read = Profile::read(&profile).unwrap();
            assert!(read.auth.as_ref().unwrap().is_literal());
            let shown = format!("{} {read:?}", read.shown());
            assert!(!shown.contains("hunter2") && shown.contains("[secret]"), "{shown}");
        }
        profile["auth"] = json!({"type": "basic", "username": "hunter2hunter2", "password": "x"});
        let shown = Profile::read(&profile).unwrap().shown().to_string();
        assert!(!shown.contains("hunter2"), "a user name that is the key: {shown}");
        profile["auth"] = json!({"type": "bearer", "token": "Bearer ${ACME_TOKEN}"});
        assert!(Profile::read(&profile).unwrap_err().message.contains("stands for the whole value"));
    }

    #[test]
    fn a_variable_that_is_not_set_is_named() {
        let profile = Profile::read(&whole()).unwrap();
        let error = profile.credential(&|_| None).unwrap_err();
        assert_eq!(error.message, "the API `acme` is signed in to with `${ACME_TOKEN}`, which is not set");
        assert!(profile.credential(&|name| (name == "ACME_TOKEN").then(|| "t0ps3cret".to_owned())).unwrap().is_some());
    }
}
