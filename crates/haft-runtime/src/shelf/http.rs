//! Manifests of the kind `http`: a request by the guarded way, and what is taken of its answer.
//!
//! A value that holds a secret is no part of the request until it is sent: it goes as a [`Credential`] to the origin that
//! the manifest names, and stays behind wherever else an answer points. In the body there is no such place; a body is
//! never sent on to another origin.

use super::made::{Made, inputs, named_secrets, reply, unfit, values};
use crate::scene::Scene;
use crate::tool::{Aim, Reply};
use crate::tools::web::request::{INDENTED_MAX, body as shown_body, with_escapes_seen};
use crate::web::{Credential, Request, Response, json_text, open_to};
use haft_core::manifest::template::{Values, names, rendered};
use haft_core::manifest::{Format, Http, Manifest};
use haft_core::preview::size;
use haft_core::web::{Errand, Target};
use haft_core::{CallError, ErrorKind};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The most that is sent.
const BODY_MAX: usize = 4 << 20;
const FORM: &str = "application/x-www-form-urlencoded";

/// A value with its name, and the secret that is in it.
struct Named {
    name: String,
    value: String,
    secret: Option<String>,
}

/// A request, filled in.
struct Filled {
    /// Where it goes, with what of the query is no secret.
    target: Target,
    headers: Vec<Named>,
    /// What of the query holds a secret.
    query: Vec<Named>,
    body: Option<String>,
}

/// Where a call goes, with secrets by their names.
pub(super) fn aim(manifest: &Manifest, http: &Http, args: &Value) -> Result<Aim, CallError> {
    let filled = fill(manifest, http, args, &named_secrets(manifest))?;
    let query: Vec<(&str, &str)> = filled.query.iter().map(|one| (one.name.as_str(), one.value.as_str())).collect();
    let target = if query.is_empty() { filled.target } else { filled.target.with_query(&query) };
    let headers = filled.headers.iter().map(|one| ("headers", format!("{}: {}", one.name, one.value)));
    let sent = headers.chain(filled.body.map(|body| ("body", body))).collect();
    Ok(Aim { method: http.method.clone(), target, sent, secrets: sent_secrets(manifest, http).cloned().collect() })
}

/// Sends it.
pub(super) async fn run(made: &Made, http: &Http, scene: &Scene) -> Result<Reply, CallError> {
    let manifest = made.manifest();
    let secrets = made.secrets(scene)?;
    let filled = fill(manifest, http, scene.args(), &secrets)?;
    bound(manifest, http, &filled.target, scene)?;
    let response = scene.way().send(request(manifest, http, filled, (&secrets, scene))?).await?;
    Ok(with_escapes_seen(taken(manifest, http, &response)).await)
}

fn fill(
    manifest: &Manifest,
    http: &Http,
    args: &Value,
    secrets: &BTreeMap<String, String>,
) -> Result<Filled, CallError> {
    let inputs = inputs(args);
    let values = values(&inputs, secrets);
    let secret_in = |template: &Value| {
        let declared = &manifest.permissions.secrets;
        names(template).into_iter().find(|name| declared.contains_key(*name)).map(str::to_owned)
    };
    let filled = |name: &str, template: &Value| -> Result<Option<Named>, CallError> {
        let value = values.fill(template).map_err(|error| unfit(&error))?;
        let named =
            |value: Value| Named { name: name.to_owned(), value: rendered(&value), secret: secret_in(template) };
        Ok(value.filter(|value| !value.is_null()).map(named))
    };
    // A URL is shown and recorded, so that no secret is ever filled in there.
    let url = Values { inputs: &inputs, secrets: &BTreeMap::new() }.url(&http.url).map_err(|error| unfit(&error))?;
    let mut target = Target::read(&url).map_err(|error| CallError::invalid(error.to_string()))?;
    let mut query = Vec::new();
    for (name, template) in &http.query {
        // A list is the same name again and again.
        let many = values.fill(template).map_err(|error| unfit(&error))?.filter(Value::is_array);
        match many.as_ref().and_then(Value::as_array) {
            Some(items) if secret_in(template).is_none() => {
                let items: Vec<String> = items.iter().map(rendered).collect();
                let pairs: Vec<(&str, &str)> = items.iter().map(|item| (name.as_str(), item.as_str())).collect();
                target = if pairs.is_empty() { target } else { target.with_query(&pairs) };
            }
            _ => match filled(name, template)? {
                Some(one) if one.secret.is_none() => target = target.with_query(&[(&one.name, &one.value)]),
                one => query.extend(one),
            },
        }
    }
    let headers = http.headers.iter().filter_map(|(name, template)| filled(name, template).transpose());
    let headers = headers.collect::<Result<Vec<Named>, CallError>>()?;
    let body = http.body.as_ref().map(|template| values.fill(template).map_err(|error| unfit(&error))).transpose()?;
    let body = body.flatten().map(|body| written(body, &headers)).transpose()?;
    if body.is_some() && !Errand::is_write(&http.method) {
        // It would carry something away by a request that counts as reading.
        return Err(CallError::invalid(format!("a {} request has no body", http.method)).hint("the manifest says POST"));
    }
    Ok(Filled { target, headers, query, body })
}

/// A body as it is sent: text as it is, a form as its header says, everything else as JSON.
fn written(body: Value, headers: &[Named]) -> Result<String, CallError> {
    let form = headers.iter().any(|one| one.name.eq_ignore_ascii_case("content-type") && one.value.starts_with(FORM));
    let text = match body {
        Value::String(text) => text,
        Value::Object(map) if form => {
            let mut pairs = url::form_urlencoded::Serializer::new(String::new());
            for (name, value) in &map {
                match value {
                    Value::Array(items) => drop(pairs.extend_pairs(items.iter().map(|item| (name, rendered(item))))),
                    value => drop(pairs.append_pair(name, &rendered(value))),
                }
            }
            pairs.finish()
        }
        other => other.to_string(),
    };
    if text.len() > BODY_MAX {
        let message = format!("the body has {}; at most {} are sent", size(text.len()), size(BODY_MAX));
        return Err(CallError::invalid(message));
    }
    Ok(text)
}

/// The secrets that a request has, by name.
fn sent_secrets<'m>(manifest: &'m Manifest, http: &Http) -> impl Iterator<Item = &'m String> {
    let parts = http.headers.values().chain(http.query.values()).chain(&http.body);
    let used: Vec<&str> = parts.flat_map(names).collect();
    manifest.permissions.secrets.keys().filter(move |name| used.contains(&name.as_str()))
}

/// Refuses to send a secret to where it does not belong.
fn bound(manifest: &Manifest, http: &Http, target: &Target, scene: &Scene) -> Result<(), CallError> {
    for name in sent_secrets(manifest, http) {
        let Some(secret) = scene.secret(name)? else { continue };
        if scene.web().is_open(&manifest.permissions, target) {
            return Err(CallError::new(ErrorKind::Denied, open_to(name, target)));
        }
        let elsewhere = |hosts: &&haft_core::host::HostRules| hosts.rule_for(target.host(), target.port()).is_none();
        if let Some(hosts) = secret.hosts().filter(elsewhere) {
            let message = format!("the secret `{name}` is for {hosts}, and not for {}", target.authority());
            return Err(CallError::new(ErrorKind::Denied, message).hint("bind it to that host if it belongs there"));
        }
    }
    Ok(())
}

fn request(
    manifest: &Manifest,
    http: &Http,
    filled: Filled,
    (secrets, scene): (&BTreeMap<String, String>, &Scene),
) -> Result<Request, CallError> {
    let origin = Target::read(&format!("{}/", filled.target.origin()));
    let origin = origin.map_err(|error| CallError::invalid(error.to_string()))?;
    let timeout = Duration::from_millis(manifest.timeout_ms());
    let mut request = Request::new(&scene.way(), &http.method, filled.target)?.within(timeout);
    let typed = filled.headers.iter().any(|one| one.name.eq_ignore_ascii_case("content-type"));
    for Named { name, value, secret } in filled.headers {
        request = match secret.and_then(|secret| secrets.get(&secret)) {
            Some(secret) => {
                Request::header_name(&name)?;
                request.signed(Credential::header(&origin, &name, &value, secret)?)
            }
            None => request.header(&name, &value)?,
        };
    }
    for Named { name, value, .. } in filled.query {
        request = request.signed(Credential::query(&origin, &name, &value));
    }
    let Some(body) = filled.body else { return Ok(request) };
    let text = http.body.as_ref().is_some_and(Value::is_string);
    if !typed && !text {
        request = request.header("content-type", "application/json")?;
    }
    Ok(request.body(body))
}

/// What is taken of an answer.
fn taken(manifest: &Manifest, http: &Http, response: &Response) -> Reply {
    let (status, origin) = (response.status, response.target.origin());
    let text = shown_body(response);
    let failed = |message: String| {
        let details = json!({ "status": status });
        let error = CallError::new(ErrorKind::Upstream, message).details(details);
        Reply { error: Some(error.hint("what it says is in the output")), ..Reply::text(text.clone()) }
    };
    if !(200..300).contains(&status) {
        let reason = reqwest::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
        return failed(format!("{origin} answered {status} {}", reason.unwrap_or_default()).trim_end().to_owned());
    }
    let format = manifest.outputs.format;
    let whole = http.response.json_path.is_none() && http.response.fields.is_empty();
    if format == Format::Text && whole {
        let mut reply = reply(format, text, None);
        reply
            .warnings
            .extend(response.cut.then(|| "the answer is longer than is read; the rest is missing".to_owned()));
        return reply;
    }
    if response.cut {
        return failed(format!("the answer of {origin} is longer than {}", size(response.body.len())));
    }
    let json = haft_html::decode(&response.body, response.header("content-type")).0;
    let value = match json.trim_ascii() {
        "" => Value::Null,
        json => match serde_json::from_str(json) {
            Ok(value) => value,
            Err(error) => return failed(format!("{origin} answered {status} with what is not JSON: {error}")),
        },
    };
    let taken = http.response.take(value);
    let mut reply = match format {
        Format::Json => {
            let mut reply = reply(format, String::new(), Some(taken.value));
            // Numbers keep the digits that a value has no room for.
            if let Some(text) = json_text::indented(&json, INDENTED_MAX).filter(|_| whole) {
                reply.text = response.masked(text);
            }
            reply
        }
        Format::Text => reply(format, rendered(&taken.value), Some(rendered(&taken.value).into())),
    };
    reply.warnings.extend(taken.warnings);
    reply
}
