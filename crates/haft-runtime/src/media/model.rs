//! Models that look and listen, behind OpenAI-compatible addresses: what is asked, and what their answers say.

use super::{Endpoint, Material};
use crate::scene::Scene;
use crate::web::{Credential, Request, Response};
use haft_core::preview::{cut, inert};
use haft_core::web::Target;
use haft_core::{CallError, ErrorKind};
use serde_json::{Value, json};
use std::time::Duration;

/// How long a model may take.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);
/// The most that it may say.
const ANSWER_MAX: usize = 1 << 20;
const WORDS_MAX: u32 = 2048;

/// Lets a model look at a picture.
pub(crate) async fn look(scene: &Scene, endpoint: &Endpoint, prompt: &str, image: &str) -> Result<String, CallError> {
    let body = json!({
        "model": endpoint.model,
        "max_tokens": WORDS_MAX,
        "messages": [{"role": "user", "content": [
            {"type": "text", "text": prompt},
            {"type": "image_url", "image_url": {"url": image}},
        ]}],
    });
    let request = asked(scene, endpoint, "chat/completions")?.header("content-type", "application/json")?;
    let response = scene.way().send(request.body(body.to_string())).await?;
    let answer = answer(endpoint, &response)?;
    let said = &answer["choices"][0]["message"]["content"];
    let parts = said.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
    let text = said.as_str().map_or_else(|| parts.collect::<String>(), str::to_owned);
    if text.trim().is_empty() { Err(strange(endpoint, "it says nothing")) } else { Ok(text) }
}

/// Lets a model listen.
pub(crate) async fn listen(
    scene: &Scene,
    endpoint: &Endpoint,
    sound: &Material,
    language: Option<&str>,
) -> Result<String, CallError> {
    let mark = format!("haft-{:016x}{:016x}", crate::chance(), crate::chance());
    let mut fields = vec![("model", endpoint.model.as_str()), ("response_format", "json")];
    fields.extend(language.map(|language| ("language", language)));
    let kind = format!("multipart/form-data; boundary={mark}");
    let request = asked(scene, endpoint, "audio/transcriptions")?.header("content-type", &kind)?;
    let response = scene.way().send(request.body(form(&mark, &fields, sound))).await?;
    let answer = answer(endpoint, &response)?;
    answer["text"].as_str().map(str::to_owned).ok_or_else(|| strange(endpoint, "there is no `text` in it"))
}

/// The start of a request to an endpoint, with its key.
fn asked(scene: &Scene, endpoint: &Endpoint, path: &str) -> Result<Request, CallError> {
    let url = format!("{}/{path}", endpoint.url.trim_end_matches('/'));
    let target = Target::read(&url).map_err(|error| CallError::invalid(format!("in the configuration: {error}")))?;
    let request = Request::new(&scene.way(), "POST", target)?.named_by_the_user().within(PATIENCE).at_most(ANSWER_MAX);
    let Some(name) = &endpoint.key_env else { return Ok(request) };
    let key = std::env::var(name).map_err(|_| {
        CallError::failed(format!(
            "the variable `{name}`, which should hold the key for {}, is not set",
            endpoint.model
        ))
        .hint("set it where haft is started")
    })?;
    let credential = Credential::header(request.target(), "authorization", &format!("Bearer {key}"), &key)?;
    Ok(request.signed(credential))
}

fn answer(endpoint: &Endpoint, response: &Response) -> Result<Value, CallError> {
    let body = String::from_utf8_lossy(&response.body);
    if response.status >= 400 {
        let said = serde_json::from_str::<Value>(&body).ok();
        let why = said.as_ref().and_then(|said| said["error"]["message"].as_str()).unwrap_or(&body);
        let why = response.masked(haft_core::secret::mask(why));
        return Err(strange(endpoint, &format!("status {}: {}", response.status, cut(&inert(&why), 300))));
    }
    let answer = serde_json::from_str(&body).map(|answer| response.masked_data(answer));
    answer.map_err(|error| strange(endpoint, &format!("it is not JSON: {error}")))
}

fn strange(endpoint: &Endpoint, why: &str) -> CallError {
    CallError::new(ErrorKind::Upstream, format!("the answer of {} cannot be used: {why}", inert(&endpoint.model)))
        .hint("`media` in the configuration says who is asked")
}

/// Fields and a file, as HTML forms are sent.
fn form(mark: &str, fields: &[(&str, &str)], sound: &Material) -> Vec<u8> {
    let mut body = Vec::with_capacity(sound.bytes.len() + 1024);
    for (name, value) in fields {
        let part = format!("--{mark}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        body.extend_from_slice(part.as_bytes());
    }
    // Endpoints go by the name's end; the name itself is nobody's business.
    let (ending, mime) = (super::ending(&sound.mime), &sound.mime);
    let head = format!(
        "--{mark}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"audio{ending}\"\r\nContent-Type: {mime}\r\n\r\n"
    );
    body.extend_from_slice(head.as_bytes());
    body.extend_from_slice(&sound.bytes);
    body.extend_from_slice(format!("\r\n--{mark}--\r\n").as_bytes());
    body
}
