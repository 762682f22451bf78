//! Sending a request: hop by hop, each judged, bounded and recorded.

use super::Way;
use super::body::{ACCEPTED, Intake};
use super::request::Request;
use super::trouble::{cause, late, refused, refused_to, slow, unreached, unreadable};
use crate::http;
use crate::secrets::{Cut, Mask, bytes_by};
use haft_core::host::Host;
use haft_core::record::Kind;
use haft_core::web::{Refusal, Rules, Target};
use haft_core::{CallError, ErrorKind};
use haft_store::Entry;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderValue, LOCATION, RANGE};
use reqwest::{Method, StatusCode};
use serde_json::Value;
use std::time::Instant;

/// How often a request is sent on.
const HOPS_MAX: usize = 5;

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
    /// What proved who asked: it may stand in the body in ways that only show when it is decoded.
    pub(crate) veil: Vec<Mask>,
}

impl Response {
    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Text that was made of it, without what proved who asked. Whoever decodes a body passes what came of it here.
    pub fn masked(&self, text: impl Into<String>) -> String {
        let mut text = text.into();
        for mask in &self.veil {
            mask.text(&mut text);
        }
        text
    }

    /// The same for data.
    pub fn masked_data(&self, data: Value) -> Value {
        match data {
            Value::String(text) => self.masked(text).into(),
            Value::Array(items) => items.into_iter().map(|item| self.masked_data(item)).collect(),
            Value::Object(map) => {
                map.into_iter().map(|(name, value)| (self.masked(name), self.masked_data(value))).collect()
            }
            other => other,
        }
    }
}

/// What one hop came to.
enum Hop {
    Arrived(Box<Response>),
    SentOn(StatusCode, HeaderValue),
}

impl Way<'_> {
    /// Sends a request, and follows where it is sent on to as far as the rules go. All of it is bounded: the hops, the
    /// time for all of them together, the size of the answer.
    pub async fn send(&self, request: Request) -> Result<Response, CallError> {
        let (timeout, veil) = (request.timeout, request.masks());
        if !veil.is_empty() && request.headers.contains_key(RANGE) {
            // A part of what repeats a key shows a part of the key.
            let message = "the header `range` is not sent to an API that is signed in to";
            return Err(CallError::invalid(message).hint("ask for all of it, or for less by the API's own parameters"));
        }
        let until = Instant::now() + timeout;
        let share = self.web.room.share(self.session);
        let work = async {
            let _turn = self.web.room.request(&share).await;
            self.follow(request, until).await
        };
        let done = tokio::time::timeout(timeout, work).await.unwrap_or_else(|_| Err(late(timeout)));
        done.map_err(|mut error| {
            for mask in &veil {
                mask.text(&mut error.message);
                error.hint.iter_mut().for_each(|hint| mask.text(hint));
            }
            error
        })
    }

    /// Judges and counts a request that somebody else will send: a browser.
    pub(crate) async fn spend(&self, target: &Target) -> Result<(), CallError> {
        let rules = self.web.rules(self.caller, self.tool);
        rules.admits(target).map_err(|refusal| refused(&refusal))?;
        self.web.spent.take(self.store, self.session, crate::now_ms()).await
    }

    async fn follow(&self, mut request: Request, until: Instant) -> Result<Response, CallError> {
        let mut rules = self.web.rules(self.caller, self.tool);
        if let Some(permissions) = self.permissions {
            super::narrow(&mut rules, permissions);
        }
        if let Some(named) = &request.named {
            rules.private = rules.private.iter().chain([named]).cloned().collect::<Vec<_>>().into();
        }
        let mut been: Vec<(Method, Target)> = Vec::new();
        loop {
            let (status, location) = match self.hop(&request, &rules, (been.len(), until)).await? {
                Hop::Arrived(response) => return Ok(*response),
                Hop::SentOn(status, location) => (status, location),
            };
            let next = request.onward(status, &location)?;
            been.push((request.method, request.target));
            let fault = if been.iter().any(|(method, target)| *method == next.method && *target == next.target) {
                Some(format!("it is sent round in circles, by way of {}", next.target.origin()))
            } else if been.len() > HOPS_MAX {
                Some(format!("it was sent on more than {HOPS_MAX} times, last to {}", next.target.origin()))
            } else {
                None
            };
            if let Some(message) = fault {
                return Err(CallError::new(ErrorKind::Upstream, message).hint("ask for the last address by itself"));
            }
            request = next;
        }
    }

    /// One hop: judged, counted, sent, read, recorded.
    async fn hop(&self, request: &Request, rules: &Rules, (hops, until): (usize, Instant)) -> Result<Hop, CallError> {
        let mut noted = Noted::new(self, request, until);
        let done = self.attempt(request, rules, hops, &mut noted).await;
        noted.end = done.as_ref().map_or_else(|error| End::Failed(error.kind), |_| End::Well);
        done
    }

    async fn attempt(
        &self,
        request: &Request,
        rules: &Rules,
        hops: usize,
        noted: &mut Noted<'_>,
    ) -> Result<Hop, CallError> {
        let judged = self.judge(&request.target, rules).await;
        judged.map_err(|refusal| refused_to(&refusal, &request.target, self.permissions))?;
        self.web.profiles.pass(&request.target, hops > 0 && !request.goes_where_named())?;
        self.web.spent.take(self.store, self.session, crate::now_ms()).await?;
        let client = self.web.client(rules, &request.target)?;
        let (mut url, mut headers) = (request.target.url().clone(), request.headers.clone());
        if let Some(filling) = &request.filling {
            filling.fill(&mut url, &mut headers)?;
        }
        for credential in &request.credentials {
            credential.sign(&mut url, &mut headers);
        }
        let mut sent = client.request(request.method.clone(), url).headers(headers).header(ACCEPT_ENCODING, ACCEPTED);
        if let Some(body) = &request.body {
            let filled = request.filling.as_ref().and_then(|filling| filling.body(body));
            sent = sent.body(filled.map_or_else(|| body.clone(), Into::into));
        }
        let response = sent.send().await;
        // The URL that was sent may hold what proves who asks.
        let response = response.map_err(|error| unreached(&request.target, &error.without_url()))?;
        noted.status = Some(response.status().as_u16());
        let sends_on = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
        match response.headers().get(LOCATION).filter(|_| sends_on) {
            // What else it says is not read.
            Some(location) => Ok(Hop::SentOn(response.status(), location.clone())),
            None => self.read(request, response, hops, noted).await.map(|response| Hop::Arrived(Box::new(response))),
        }
    }

    /// Whether a target may be connected to, as far as that can be told before it is. Where a name leads is judged by the
    /// client, in the moment of connecting; if a proxy connects, it is judged here.
    async fn judge(&self, target: &Target, rules: &Rules) -> Result<(), Refusal> {
        rules.admits(target)?;
        match target.host() {
            _ if rules.admits_inside(target) => Ok(()),
            Host::Address(address) if http::is_inside(*address) => Err(Refusal::Private(target.authority())),
            Host::Address(_) => Ok(()),
            Host::Name(name) => http::leads_outside_from_here(name, self.web.settings().carrier).await,
        }
    }

    async fn read(
        &self,
        request: &Request,
        mut response: reqwest::Response,
        hops: usize,
        noted: &mut Noted<'_>,
    ) -> Result<Response, CallError> {
        let bad = |why: String| unreadable(&request.target, &why);
        // An answer to HEAD describes a body that does not come.
        let coding = if request.method == Method::HEAD { String::new() } else { coding(response.headers()) };
        let mut intake = Intake::new(&coding, request.bytes).map_err(bad)?;
        // What it may become: all that is allowed, or what it says if it cannot become more.
        let said = response.content_length().filter(|_| coding.is_empty()).and_then(|size| usize::try_from(size).ok());
        let size = said.map_or(request.bytes, |said| said.min(request.bytes));
        let share = self.web.room.share(self.session);
        let mut room = self.web.room.body(&share);
        'reading: loop {
            let next = room.in_time(response.chunk()).await.ok_or_else(|| slow(&request.target, room.pace()))?;
            let Some(piece) = next.map_err(|error| bad(cause(&error)))? else { break };
            let mut rest = &piece[..];
            while !rest.is_empty() {
                let fits = intake.fits(rest, room.limit());
                if fits == 0 {
                    room.grow().await;
                    intake.widen(size);
                    continue;
                }
                let more = intake.take(&rest[..fits]).map_err(bad)?;
                noted.bytes = intake.received;
                room.reached(intake.size());
                rest = &rest[fits..];
                if !more {
                    break 'reading;
                }
            }
        }
        let (mut body, cut) = intake.finish().map_err(bad)?;
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = response.headers().iter().map(|(name, value)| (name.to_string(), text(value)));
        let mut headers: Vec<(String, String)> = headers.collect();
        let veil = request.masks();
        bytes_by(&veil, &mut body, Cut::back(cut));
        for mask in &veil {
            for (_, value) in &mut headers {
                mask.text(value);
            }
        }
        let (status, target) = (response.status().as_u16(), request.target.clone());
        Ok(Response { status, target, headers, body, cut, hops, veil })
    }
}

/// How a body is encoded, in one line however many said so.
fn coding(headers: &HeaderMap) -> String {
    let said = headers.get_all(CONTENT_ENCODING).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    said.collect::<Vec<_>>().join(", ")
}

/// How a hop ended.
enum End {
    Well,
    Failed(ErrorKind),
    /// Nobody waited for it any longer.
    GivenUp,
}

/// What the record says of one hop: whom, how it ended and how much came, and nothing of what was said. It is written
/// when this goes, so that no way of ending escapes it.
struct Noted<'w> {
    way: &'w Way<'w>,
    method: Method,
    authority: String,
    begun: Instant,
    status: Option<u16>,
    bytes: usize,
    end: End,
    /// When its time is up.
    until: Instant,
}

impl<'w> Noted<'w> {
    fn new(way: &'w Way<'w>, request: &Request, until: Instant) -> Self {
        Self {
            way,
            method: request.method.clone(),
            authority: request.target.authority(),
            begun: Instant::now(),
            status: None,
            bytes: 0,
            end: End::GivenUp,
            until,
        }
    }
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        let millis = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut entry = Entry::new(Kind::Request)
            .call(self.way.call)
            .with("method", self.method.as_str())
            .with("host", self.authority.as_str())
            .with("bytes", self.bytes)
            .with("duration_ms", millis);
        if let Some(status) = self.status {
            entry = entry.with("status", status);
        }
        let error = match self.end {
            End::Well => None,
            End::Failed(kind) => Some(kind),
            End::GivenUp if Instant::now() < self.until => Some(ErrorKind::Cancelled),
            End::GivenUp => Some(ErrorKind::Timeout),
        };
        if let Some(error) = error {
            entry = entry.with("error", error.as_str());
        }
        self.way.store.record_later(entry);
    }
}
