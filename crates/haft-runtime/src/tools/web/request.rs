//! web.request: any request, with what came back.
//!
//! The first write to a host asks and is remembered for the session. What signs in to a known API is added on the way
//! out; neither what is sent nor what comes back shows it.

use crate::hygiene::Looked;
use crate::scene::Scene;
use crate::secrets::reference::Filling;
use crate::tool::{BoxFuture, Reply, Tool};
use crate::tools::declare;
use crate::web::{Request, Response, json_text};
use haft_core::outcome::Label;
use haft_core::preview::size;
use haft_core::secret::{MASK, is_secret_header};
use haft_core::tool::Outward;
use haft_core::web::Target;
use haft_core::{CallError, ErrorKind, ToolSpec};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The most that is read of an answer.
const BYTES_MAX: usize = 1 << 20;
/// JSON that would become longer is shown as it came.
pub(crate) const INDENTED_MAX: usize = 8 << 20;
/// The most that is sent.
const BODY_MAX: usize = 4 << 20;
/// A little more than a request may take, so that it is the request that says that it took too long.
const TIMEOUT: Duration = Duration::from_secs(125);

/// The tools.
pub fn all() -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(Send { spec: Arc::new(spec()) })]
}

fn spec() -> ToolSpec {
    declare(
        "web.request",
        "Send an HTTP request, for example to a REST API, and return status, headers and body of the response. To \
         read a web page, use web.fetch. For APIs set up with api.setup, sign-in and rate limits are applied \
         automatically. Write `secret:NAME` in the query, a header or the body for a secret of the user that you \
         never see. A status of 400 or above is an error.",
    )
    .hint("http api call rest curl post put delete patch")
    .input(json!({
        "type": "object", "additionalProperties": false, "required": ["url"], "properties": {
            "url": {"type": "string", "description": "The http or https URL", "minLength": 1, "maxLength": 8192},
            "method": {"type": "string", "enum": ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"], "default": "GET"},
            "headers": {"type": "object", "description": "Header names and values", "maxProperties": 64,
                "additionalProperties": {"type": "string", "maxLength": 8192}},
            "body": {"description": "Text is sent unchanged, anything else as JSON"},
            "timeout_ms": {"type": "integer", "description": "Time limit (default 30000)", "minimum": 1, "maximum": 120_000}
        }
    }))
    .output(json!({
        "type": "object", "required": ["status", "url", "headers", "bytes", "truncated"], "properties": {
            "status": {"type": "integer"}, "url": {"type": "string"}, "headers": {"type": "object"},
            "bytes": {"type": "integer"}, "truncated": {"type": "boolean"}
        }
    }))
    .web(Outward::Url("url", Some("method")))
    .acts()
    .only_reads_when("method", &["GET", "HEAD", "OPTIONS"])
    .body("body")
    .sends_secrets()
    .timeout(TIMEOUT)
}

struct Send {
    spec: Arc<ToolSpec>,
}

#[derive(Deserialize)]
struct Args {
    url: String,
    method: String,
    #[serde(default)]
    headers: Map<String, Value>,
    body: Option<Value>,
    timeout_ms: Option<u64>,
}

impl Tool for Send {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(async move {
            let args: Args = scene.parse()?;
            let way = scene.way();
            let request = filled(scene, request(scene, &args)?).await?;
            let (request, profile) = way.profiled(request)?;
            let response = way.send(request).await?;
            let mut reply = shown(&args.method, &response);
            reply.warnings.extend(profile.and_then(|profile| way.advice(&profile)));
            Ok(with_escapes_seen(reply).await)
        })
    }
}

/// The same with the secrets at hand that it was decided to send along.
async fn filled(scene: &Scene, request: Request) -> Result<Request, CallError> {
    let names = scene.errand().map(|errand| errand.secrets.clone()).unwrap_or_default();
    if names.is_empty() {
        return Ok(request);
    }
    let secrets = scene.fetch_secrets(&names).await?;
    if let Some(gone) = names.iter().find(|name| secrets.iter().all(|secret| secret.name() != name.as_str())) {
        return Err(CallError::not_found(format!("the secret `{gone}` is nowhere to be found; nothing was sent")));
    }
    for secret in &secrets {
        secret.may_go_to(request.target())?;
    }
    let filling = Filling::new(request.target(), &secrets);
    Ok(request.filled(filling))
}

/// What is sent, before anything is added that is known of the API.
fn request(scene: &Scene, args: &Args) -> Result<Request, CallError> {
    let target = Target::read(&args.url).map_err(|error| CallError::invalid(error.to_string()))?;
    let mut request = Request::new(&scene.way(), &args.method, target)?.at_most(BYTES_MAX);
    for (name, value) in &args.headers {
        request = request.header(name, value.as_str().unwrap_or_default())?;
    }
    if let Some(timeout) = args.timeout_ms {
        request = request.within(Duration::from_millis(timeout));
    }
    let Some(body) = &args.body else { return Ok(request) };
    let (bytes, json) = match body {
        Value::String(text) => (text.clone().into_bytes(), false),
        other => (other.to_string().into_bytes(), true),
    };
    if bytes.len() > BODY_MAX {
        return Err(CallError::invalid(format!(
            "the body has {}; at most {} are sent",
            size(bytes.len()),
            size(BODY_MAX)
        )));
    }
    if matches!(args.method.as_str(), "GET" | "HEAD" | "OPTIONS") {
        // It would carry something away by a request that counts as reading.
        return Err(CallError::invalid(format!("a {} request has no body", args.method)).hint("use POST to send one"));
    }
    let typed = args.headers.keys().any(|name| name.eq_ignore_ascii_case("content-type"));
    if json && !typed {
        request = request.header("content-type", "application/json")?;
    }
    Ok(request.body(bytes))
}

/// An answer as text and data.
fn shown(method: &str, response: &Response) -> Reply {
    let status = response.status;
    let reason = reqwest::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    let line = format!("HTTP {status} {}", reason.unwrap_or_default()).trim_end().to_owned();
    let headers = headers(response);
    let body = body(response);
    let mut text = format!("{line}\n");
    if response.hops > 0 {
        text.push_str(&format!("(from {}, where it was sent on to)\n", response.target));
    }
    for (name, value) in &headers {
        text.push_str(&format!("{name}: {}\n", value.as_str().unwrap_or_default()));
    }
    if method != "HEAD" {
        text.push_str(&format!("\n{body}"));
    }
    let mut reply = Reply::text(text).data(json!({
        "status": status, "url": response.target.to_string(), "headers": headers,
        "bytes": response.body.len(), "truncated": response.cut
    }));
    reply.labels.push(Label::Untrusted);
    if response.cut {
        reply.warnings.push(format!("the answer is longer than {}, and the rest was not read", size(BYTES_MAX)));
    }
    if status >= 400 {
        let origin = response.target.origin();
        let error =
            CallError::new(ErrorKind::Upstream, format!("{origin} answered {}", line.trim_start_matches("HTTP ")));
        reply.error = Some(error.hint("what it says about that is in the output"));
    }
    reply
}

/// Looks at a reply also as somebody reads it who knows what escapes of JSON mean: an order may be spelled in them.
pub(crate) async fn with_escapes_seen(mut reply: Reply) -> Reply {
    if let Some(words) = json_text::unescaped(&reply.text) {
        let (spelled, _) = Looked::at_all(words).await;
        let (plain, text) = Looked::at_all(std::mem::take(&mut reply.text)).await;
        reply.text = text;
        reply.looked = Some(plain.and(spelled));
    }
    reply
}

/// Headers that name no secret although they sound like it.
const PLAIN: &[&str] = &["www-authenticate", "proxy-authenticate", "access-control-allow-credentials"];

/// The headers of an answer, joined where there are several of one name.
fn headers(response: &Response) -> Map<String, Value> {
    let mut shown = Map::new();
    for (name, value) in &response.headers {
        let hidden = is_secret_header(name) && !PLAIN.contains(&name.as_str());
        let value = if hidden { MASK } else { value.as_str() };
        let joined = match shown.get(name).and_then(Value::as_str) {
            Some(before) if before != MASK => format!("{before}, {value}"),
            _ => value.to_owned(),
        };
        shown.insert(name.clone(), joined.into());
    }
    shown
}

/// A body as text: JSON indented with its numbers and names as they are written, other text in its charset, and of anything
/// else what it is.
pub(crate) fn body(response: &Response) -> String {
    let bytes = &response.body;
    if bytes.is_empty() {
        return "(no body)".to_owned();
    }
    let kind = response.header("content-type").unwrap_or_default().to_ascii_lowercase();
    let mime = kind.split(';').next().unwrap_or_default().trim();
    let text = haft_html::decode(bytes, Some(&kind)).0.into_owned();
    if !is_text(mime, bytes, &text) {
        let what = if mime.is_empty() { "of no known type" } else { mime };
        return format!("[binary, {what}, {}; not shown]", size(bytes.len()));
    }
    let json = (mime.ends_with("json") || mime.is_empty()) && !response.cut;
    let indented = if json { json_text::indented(&text, INDENTED_MAX) } else { None };
    response.masked(indented.unwrap_or(text))
}

/// Whether it can be read: because it says so, or, if it says nothing, because it looks so.
fn is_text(mime: &str, bytes: &[u8], decoded: &str) -> bool {
    const TEXTS: &[&str] =
        &["json", "xml", "javascript", "ecmascript", "x-www-form-urlencoded", "yaml", "x-ndjson", "graphql", "toml"];
    let named = mime.starts_with("text/") || TEXTS.iter().any(|kind| mime.ends_with(kind));
    let unsaid = matches!(mime, "" | "application/octet-stream") && std::str::from_utf8(bytes).is_ok();
    (named || unsaid) && (mime.starts_with("text/") || !decoded.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Response {
        Response {
            status,
            target: Target::read("https://a.test/x").unwrap(),
            headers: headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            body: body.to_vec(),
            cut: false,
            hops: 0,
            veil: Vec::new(),
        }
    }

    #[test]
    fn an_answer_is_shown_without_its_secrets() {
        let headers = [
            ("content-type", "application/json"),
            ("set-cookie", "id=hunter2"),
            ("set-cookie", "other=hunter2"),
            ("x-csrf-token", "hunter2"),
            ("vary", "accept"),
            ("vary", "origin"),
            ("www-authenticate", "Basic realm=x"),
        ];
        let reply = super::shown("GET", &response(200, &headers, br#"{"b":1,"a":[true]}"#));
        insta::assert_snapshot!(reply.text, @r#"
        HTTP 200 OK
        content-type: application/json
        set-cookie: [secret]
        x-csrf-token: [secret]
        vary: accept, origin
        www-authenticate: Basic realm=x

        {
          "b": 1,
          "a": [
            true
          ]
        }
        "#);
        let data = reply.data.unwrap();
        assert_eq!((&data["status"], &data["bytes"], &data["truncated"]), (&json!(200), &json!(18), &json!(false)));
        assert!(!data.to_string().contains("hunter2"), "{data}");
        assert_eq!(reply.labels, [Label::Untrusted]);
        assert!(reply.error.is_none());
    }

    #[test]
    fn a_key_that_is_repeated_in_disguise_is_not_shown() {
        let key = "k3y/with+signs==";
        let credential = || crate::web::Credential::query(&Target::read("https://a.test/").unwrap(), "key", key);
        let utf16: Vec<u8> = format!("you sent {key}").encode_utf16().flat_map(u16::to_le_bytes).collect();
        for (kind, bytes) in [
            ("application/json", br#"{"you": "k3y\/with+signs=="}"#.to_vec()),
            ("application/json", br#"{"you": "k3y\u002fwith\u002bsigns\u003d\u003D"}"#.to_vec()),
            ("application/json", br#"{"you": "\u006b3y/with+signs==", "k3y\/with\u002bsigns==": 1}"#.to_vec()),
            ("text/plain; charset=utf-16le", utf16),
            ("text/html", b"<p>k3y&#47;with&plus;signs&#x3D;=</p>".to_vec()),
            ("text/plain", b"k3y%2Fwith%2bsigns%3D%3D".to_vec()),
        ] {
            let answer = Response {
                veil: vec![credential().mask().clone()],
                ..response(200, &[("content-type", kind)], &bytes)
            };
            let reply = super::shown("GET", &answer);
            assert!(reply.text.contains("[secret]") && !reply.text.contains("signs"), "{kind}: {}", reply.text);
        }
    }

    #[test]
    fn a_failure_shows_what_was_said_about_it() {
        let reply = super::shown("GET", &response(404, &[("content-type", "text/plain")], b"no such thing"));
        assert!(reply.text.ends_with("\n\nno such thing"), "{}", reply.text);
        let error = reply.error.unwrap();
        assert_eq!(
            (error.kind, error.message.as_str()),
            (ErrorKind::Upstream, "https://a.test answered 404 Not Found")
        );
    }

    #[test]
    fn a_body_is_shown_as_what_it_is() {
        for (kind, bytes, expected) in [
            ("text/plain; charset=iso-8859-1", &b"caf\xe9"[..], "café"),
            ("text/plain; charset=\"UTF-8\"", "café".as_bytes(), "café"),
            ("text/plain; charset=nonsense", b"plain", "plain"),
            ("application/problem+json", br#"{"a":1}"#, "{\n  \"a\": 1\n}"),
            ("application/json", b"{broken", "{broken"),
            ("image/png", b"\x89PNG\r\n", "[binary, image/png, 6B; not shown]"),
            ("application/octet-stream", b"\0\x01\xff", "[binary, application/octet-stream, 3B; not shown]"),
            ("application/octet-stream", b"words", "words"),
            ("", b"[1]", "[\n  1\n]"),
            ("text/html", b"", "(no body)"),
        ] {
            assert_eq!(body(&response(200, &[("content-type", kind)], bytes)), expected, "{kind}");
        }
    }
}
