//! Sending a request: hop by hop, each judged, bounded and recorded.

use super::Way;
use super::body::{ACCEPTED, Intake};
use super::credential::Credential;
use crate::now_ms;
use haft_core::host::HostRule;
use haft_core::preview::{cut, inert};
use haft_core::record::Kind;
use haft_core::web::{Refusal, Target};
use haft_core::{CallError, ErrorKind};
use haft_store::Entry;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Method, StatusCode};
use std::time::{Duration, Instant};

/// How often a request is sent on.
const HOPS_MAX: usize = 5;
/// Headers that say nothing about who asks, and so may be sent on to another origin.
const HARMLESS: &[&str] = &["accept", "accept-language", "user-agent"];
/// Headers that this side sets by itself.
const OWN: &[&str] = &[
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "trailer",
    "accept-encoding",
    "proxy-authorization",
    "proxy-connection",
];

/// Something to ask of the web.
#[derive(Debug, Clone)]
pub struct Request {
    method: Method,
    target: Target,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
    bytes: usize,
    timeout: Duration,
    credential: Option<Credential>,
    named: Option<HostRule>,
}

/// What came back.
#[derive(Debug, Clone)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// Where it came from in the end.
    pub target: Target,
    /// Its headers; what is not text is shown as far as it is.
    pub headers: Vec<(String, String)>,
    /// Its body, decoded.
    pub body: Vec<u8>,
    /// Whether there was more of it.
    pub cut: bool,
    /// How often it was sent on.
    pub hops: usize,
}

impl Response {
    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

impl Request {
    /// By this method, with the usual limits. The rules of `way` say how much and how long.
    pub fn new(way: &Way<'_>, method: &str, target: Target) -> Result<Self, CallError> {
        let bad = |_| CallError::invalid(format!("`{}` is not an HTTP method", cut(&inert(method), 40)));
        let method = Method::from_bytes(method.to_ascii_uppercase().as_bytes()).map_err(bad)?;
        if matches!(method, Method::CONNECT | Method::TRACE) {
            return Err(CallError::invalid(format!("{method} requests are not sent")));
        }
        let settings = way.web.settings();
        let (bytes, timeout) = (settings.bytes, settings.timeout);
        Ok(Self {
            method,
            target,
            headers: HeaderMap::new(),
            body: None,
            bytes,
            timeout,
            credential: None,
            named: None,
        })
    }

    /// Adds a header. What could be taken for the beginning of another one is refused.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, CallError> {
        let shown = || cut(&inert(name), 60);
        let bad = || {
            CallError::invalid(format!(
                "the header `{}` cannot be sent: line ends and control characters do not belong there",
                shown()
            ))
        };
        let name = HeaderName::try_from(name).map_err(|_| bad())?;
        if OWN.contains(&name.as_str()) {
            return Err(CallError::invalid(format!("the header `{name}` is set by haft itself")));
        }
        let value = HeaderValue::try_from(value).map_err(|_| bad())?;
        self.headers.append(name, value);
        Ok(self)
    }

    /// Where it goes.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Sends along what proves who asks, as long as it goes where that belongs.
    #[must_use]
    pub fn signed(mut self, credential: Credential) -> Self {
        self.credential = Some(credential).filter(|credential| credential.is_for(&self.target));
        self
    }

    /// Where it goes was named by the user's configuration, and may be reached even on this machine or its network.
    /// That is for this host and port alone: where it is sent on to is judged like everything else.
    #[must_use]
    pub fn named_by_the_user(mut self) -> Self {
        self.named = self.target.authority().parse().ok();
        self
    }

    /// Adds a body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Reads at most so much.
    #[must_use]
    pub fn at_most(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// Takes at most so long.
    #[must_use]
    pub fn within(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// What is sent to where an answer points, or why nothing is.
    fn onward(&mut self, status: StatusCode, location: &HeaderValue) -> Result<(), CallError> {
        let refused =
            |why: String| CallError::new(ErrorKind::Denied, format!("it was sent on, and that is not followed: {why}"));
        let location = location.to_str().map_err(|_| refused("where to is not readable".to_owned()))?;
        let next = self.target.join(location).map_err(|error| refused(error.to_string()))?;
        if self.target.is_secure() && !next.is_secure() {
            return Err(refused(format!("{} would be asked without encryption", next.origin())));
        }
        let next = match &self.credential {
            Some(credential) => credential
                .taken_out_of(next)
                .ok_or_else(|| refused("what proves who asks would be in the URL".to_owned()))?,
            None => next,
        };
        self.credential = self.credential.take().filter(|credential| credential.is_for(&next));
        let kept = matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        let same = next.same_origin(&self.target);
        if !same {
            let strange: Vec<HeaderName> =
                self.headers.keys().filter(|name| !HARMLESS.contains(&name.as_str())).cloned().collect();
            for name in strange {
                self.headers.remove(name);
            }
        }
        if !same || !kept {
            self.body = None;
            self.headers.remove(reqwest::header::CONTENT_TYPE);
            if self.method != Method::HEAD {
                self.method = Method::GET;
            }
        }
        self.target = next;
        Ok(())
    }
}

impl Way<'_> {
    /// Sends a request, and follows where it is sent on to as far as the rules go.
    pub async fn send(&self, mut request: Request) -> Result<Response, CallError> {
        let timeout = request.timeout;
        let late = || CallError::new(ErrorKind::Timeout, format!("no answer within {} s", timeout.as_secs_f64()));
        let work = async {
            for hops in 0..=HOPS_MAX {
                let response = self.hop(&request, hops).await?;
                match response {
                    Hop::Arrived(response) => return Ok(*response),
                    Hop::SentOn(status, location) => request.onward(status, &location)?,
                }
            }
            let message = format!("it was sent on more than {HOPS_MAX} times, last to {}", request.target.origin());
            Err(CallError::new(ErrorKind::Upstream, message))
        };
        tokio::time::timeout(timeout, work).await.unwrap_or_else(|_| Err(late()))
    }

    /// One hop: judged, counted, sent, read, recorded.
    async fn hop(&self, request: &Request, hops: usize) -> Result<Hop, CallError> {
        let begun = Instant::now();
        let mut rules = self.web.rules(self.caller, self.tool);
        if let Some(named) = &request.named {
            rules.private = rules.private.iter().chain([named]).cloned().collect::<Vec<_>>().into();
        }
        let judged = rules.admits(&request.target).map_err(|refusal| refused(&refusal));
        let judged = judged.and_then(|()| self.web.spent.take(self.session, now_ms()));
        if let Err(error) = judged {
            self.note(request, begun, Err(&error));
            return Err(error);
        }
        let client = self.web.client(&rules, &request.target)?;
        let (mut url, mut headers) = (request.target.url().clone(), request.headers.clone());
        if let Some(credential) = &request.credential {
            credential.sign(&mut url, &mut headers);
        }
        let mut sent = client.request(request.method.clone(), url).headers(headers).header(ACCEPT_ENCODING, ACCEPTED);
        if let Some(body) = &request.body {
            sent = sent.body(body.clone());
        }
        let result = match sent.send().await {
            Ok(response) => read(request, response, hops).await,
            // The URL that was sent may hold what proves who asks.
            Err(error) => Err(unreached(&request.target, &error.without_url())),
        };
        let told = result.as_ref().map(|(status, hop)| (*status, hop.size()));
        self.note(request, begun, told);
        result.map(|(_, hop)| hop)
    }

    /// Every request is in the record: whom, how it ended and how much came, and nothing of what was said.
    fn note(&self, request: &Request, begun: Instant, result: Result<(u16, usize), &CallError>) {
        let millis = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let entry = Entry::new(Kind::Request)
            .call(self.call)
            .with("method", request.method.as_str())
            .with("host", request.target.authority())
            .with("duration_ms", millis);
        let entry = match result {
            Ok((status, bytes)) => entry.with("status", status).with("bytes", bytes),
            Err(error) => entry.with("error", error.kind.as_str()),
        };
        self.store.record_later(entry);
    }
}

/// What one hop came to.
enum Hop {
    Arrived(Box<Response>),
    SentOn(StatusCode, HeaderValue),
}

impl Hop {
    fn size(&self) -> usize {
        match self {
            Self::Arrived(response) => response.body.len(),
            Self::SentOn(..) => 0,
        }
    }
}

async fn read(request: &Request, mut response: reqwest::Response, hops: usize) -> Result<(u16, Hop), CallError> {
    let status = response.status();
    let code = status.as_u16();
    let sends_on = matches!(code, 301 | 302 | 303 | 307 | 308);
    if let Some(location) = response.headers().get(LOCATION).filter(|_| sends_on) {
        return Ok((code, Hop::SentOn(status, location.clone())));
    }
    let unreadable = |why: String| {
        CallError::new(ErrorKind::Upstream, format!("the answer of {} cannot be read: {why}", request.target.origin()))
    };
    let coding = response.headers().get(CONTENT_ENCODING).and_then(|value| value.to_str().ok());
    // An answer to HEAD describes a body that does not come.
    let coding = coding.filter(|_| request.method != Method::HEAD);
    let mut intake = Intake::new(coding, request.bytes).map_err(unreadable)?;
    let mut none = true;
    while let Some(piece) = response.chunk().await.map_err(|error| unreadable(cause(&error)))? {
        none = none && piece.is_empty();
        if !intake.take(&piece).map_err(unreadable)? {
            break;
        }
    }
    let (mut body, cut) = if none { (Vec::new(), false) } else { intake.finish().map_err(unreadable)? };
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let mut headers: Vec<(String, String)> =
        response.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    if let Some(credential) = &request.credential {
        credential.mask_bytes(&mut body);
        for (_, value) in &mut headers {
            credential.mask_text(value);
        }
    }
    let target = request.target.clone();
    Ok((code, Hop::Arrived(Box::new(Response { status: code, target, headers, body, cut, hops }))))
}

fn refused(refusal: &Refusal) -> CallError {
    CallError::new(ErrorKind::Denied, refusal.to_string()).hint(refusal.hint())
}

/// Why there is no answer: the guard's own word if it was the guard, else the innermost cause.
fn unreached(target: &Target, error: &reqwest::Error) -> CallError {
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        if let Some(refusal) = inner.downcast_ref::<Refusal>() {
            return refused(refusal);
        }
        source = inner.source();
    }
    let message = format!("{} cannot be reached: {}", target.origin(), cause(error));
    let hint = if error.is_connect() { "check the address, and that the host is up" } else { "try again later" };
    CallError::new(ErrorKind::Upstream, message).hint(hint)
}

/// The innermost of a chain of errors, which is the one that says something.
fn cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(inner) = innermost.source() {
        innermost = inner;
    }
    cut(&inert(&innermost.to_string()), 200)
}
