//! A profile from a document: where the API is, how to sign in, and what it offers.

use super::{Document, ident};
use haft_core::CallError;
use haft_core::web::Target;
use haft_runtime::web::profiles::{Auth, Endpoint, Profile, RateLimit, is_id};
use serde_json::Value;

/// So many endpoints are listed: what is longer is no outline.
const ENDPOINTS_MAX: usize = 1000;
const LINE_MAX: usize = 120;
/// Less is no description.
const DESCRIPTION_MIN: usize = 20;
const DESCRIPTION_MAX: usize = 1000;

/// The profile of an API, and what is worth knowing about how it was made.
pub(crate) fn profile(
    document: &Document,
    id: Option<&str>,
    url: Option<&str>,
) -> Result<(Profile, Vec<String>), CallError> {
    let mut warnings = Vec::new();
    let title = document.info("title");
    let id = id.map_or_else(|| slug(title), str::to_owned);
    if !is_id(&id) {
        return Err(CallError::invalid(format!("`{}` is not an id", haft_core::preview::inert(&id)))
            .hint("name one with --id: small letters, digits, `_` and `-`"));
    }
    let base = url.map(str::to_owned).or_else(|| document.server()).ok_or_else(|| {
        CallError::invalid("the document does not say where the API is: `servers` has no http or https URL")
            .hint("say it with --url")
    })?;
    let base = Target::read(&base).map_err(|error| CallError::invalid(format!("where the API is: {error}")))?;
    let auth = document.scheme(None).and_then(|scheme| {
        let auth = auth(scheme, &id);
        if auth.is_none() {
            warnings.push("how to sign in cannot be said in a profile, and is left out".to_owned());
        }
        auth
    });
    let profile = Profile {
        name: if title.is_empty() { id.clone() } else { haft_core::preview::cut(title, LINE_MAX) },
        base_url: base.to_string().trim_end_matches('/').to_owned(),
        description: description(document, title),
        auth,
        rate_limit: RateLimit::default(),
        endpoints: endpoints(document, &mut warnings),
        guidelines: guidelines(document),
        avoid: Vec::new(),
        notes: Vec::new(),
        id,
    };
    // By the same rules as every other.
    Ok((Profile::read(&serde_json::to_value(&profile).unwrap_or_default())?, warnings))
}

fn slug(title: &str) -> String {
    let name = ident(title).replace('_', "-");
    name.chars().take(64).collect::<String>().trim_end_matches('-').to_owned()
}

fn description(document: &Document, title: &str) -> String {
    let said = document.info("description").split_whitespace().collect::<Vec<_>>().join(" ");
    if said.chars().count() < DESCRIPTION_MIN {
        return format!("{said} {title}, as its OpenAPI document describes it.").trim_start().to_owned();
    }
    haft_core::preview::cut(&said, DESCRIPTION_MAX)
}

fn guidelines(document: &Document) -> Vec<String> {
    let mut lines = vec!["The endpoints are those of its OpenAPI document; do not guess others".to_owned()];
    let docs = document.root["externalDocs"]["url"].as_str().filter(|url| Target::read(url).is_ok());
    lines.extend(docs.map(|url| format!("Its documentation is at {url}")));
    lines
}

fn endpoints(document: &Document, warnings: &mut Vec<String>) -> Vec<Endpoint> {
    let operations = document.operations();
    if operations.len() > ENDPOINTS_MAX {
        let count = operations.len();
        warnings.push(format!("of {count} operations only the first {ENDPOINTS_MAX} are listed in the profile"));
    }
    let endpoint = |operation: &super::Operation<'_>| Endpoint {
        method: operation.method.clone(),
        path: haft_core::preview::cut(operation.path, 200),
        description: operation.line(LINE_MAX),
    };
    let mut list: Vec<Endpoint> = operations.iter().take(ENDPOINTS_MAX).map(endpoint).collect();
    // As many as a profile has room for.
    let mut room: usize = 200 << 10;
    let fitting = list.iter().take_while(|endpoint| {
        let size = endpoint.path.len() + endpoint.description.len() + 80;
        let fits = size <= room;
        room = room.saturating_sub(size);
        fits
    });
    let fitting = fitting.count();
    if fitting < list.len() {
        warnings.push(format!("only the first {fitting} operations have room in the profile"));
        list.truncate(fitting);
    }
    list
}

/// How to sign in by a scheme, with variables in place of what proves who asks.
pub(super) fn auth(scheme: &Value, id: &str) -> Option<Auth> {
    let text = |name: &str| scheme[name].as_str().unwrap_or_default();
    let name = text("name").to_owned();
    match (text("type"), text("scheme").to_ascii_lowercase().as_str(), text("in")) {
        ("http", "basic", _) => {
            Some(Auth::Basic { username: reference(id, "USERNAME"), password: reference(id, "PASSWORD") })
        }
        ("http", "bearer", _) | ("oauth2" | "openIdConnect", ..) => {
            Some(Auth::Bearer { token: reference(id, "TOKEN") })
        }
        ("apiKey", _, "header") => Some(Auth::Header { name, value: reference(id, "KEY") }),
        ("apiKey", _, "query") => Some(Auth::Query { name, value: reference(id, "KEY") }),
        _ => None,
    }
}

/// `${ID_WHAT}`.
fn reference(id: &str, what: &str) -> String {
    format!("${{{}}}", variable(id, what))
}

/// The variable that holds something of an API.
pub(super) fn variable(id: &str, what: &str) -> String {
    let name = ident(id).to_uppercase();
    let name = if name.starts_with(|c: char| c.is_ascii_digit()) { format!("API_{name}") } else { name };
    format!("{name}_{what}")
}
