//! Reading what was sent, within bounds of size and time.

use crate::gateway::Shared;
use crate::problem::Problem;
use axum::body::Body;
use axum::extract::{FromRequestParts, Query, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use http::request::Parts;
use http::{StatusCode, header};
use serde::de::DeserializeOwned;
use std::time::Duration;

/// How large a body may be: what arguments may be, and a little for what is around them.
pub(crate) const BODY_MAX: usize = (16 << 20) + (64 << 10);
/// Bodies up to this size are read by any number of requests at once.
const SMALL: usize = 256 << 10;
/// How long a body may take to arrive.
const ARRIVAL: Duration = Duration::from_secs(30);
/// How much and how long what is too large is listened to, so that its sender hears the answer.
const DRAIN: usize = 256 << 20;
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// The query of a request, or words about what is wrong with it.
pub(crate) struct Asked<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<Shared> for Asked<T> {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &Shared) -> Result<Self, Problem> {
        let Query(wanted) = Query::<T>::from_request_parts(parts, state)
            .await
            .map_err(|error| Problem::invalid(format!("the query is malformed: {}", error.body_text())))?;
        Ok(Self(wanted))
    }
}

/// Keeps the same bounds for whoever reads its bodies itself.
pub(crate) async fn bounded(State(gateway): State<Shared>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    match read(&gateway, Request::from_parts(parts.clone(), body)).await {
        Ok(bytes) => next.run(Request::from_parts(parts, Body::from(bytes))).await,
        Err(problem) => problem.into_response(),
    }
}

/// The body as JSON. Nothing at all is an empty object.
pub(crate) async fn json<T: DeserializeOwned>(gateway: &Shared, request: Request) -> Result<T, Problem> {
    let bytes = read(gateway, request).await?;
    let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
    serde_json::from_slice(text).map_err(|error| {
        // The message quotes names and numbers of places, not content that could be long.
        Problem::invalid(format!("the body is not what is expected: {error}")).hint("/openapi.json describes it")
    })
}

/// The body.
pub(crate) async fn read(gateway: &Shared, request: Request) -> Result<Bytes, Problem> {
    let announced = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let announced: Option<usize> = announced.and_then(|text| text.parse().ok());
    let chunked = request.headers().contains_key(header::TRANSFER_ENCODING);
    let mut body = request.into_body();
    if announced.is_some_and(|size| size > BODY_MAX) {
        return Err(too_large(body).await);
    }
    // Whoever does not say how much it will be might send much.
    let _room = match announced {
        Some(size) if size <= SMALL => None,
        None if !chunked => None,
        _ => Some(gateway.work.large.acquire().await.map_err(|_| Problem::busy("the gateway closes", 5))?),
    };
    let late = || Problem::new(StatusCode::REQUEST_TIMEOUT, "timeout", "the body did not arrive in time");
    match tokio::time::timeout(ARRIVAL, collect(&mut body, announced.unwrap_or(0))).await {
        Err(_) => Err(late()),
        Ok(Err(Unread::Broken)) => Err(Problem::invalid("the body broke off")),
        Ok(Err(Unread::TooLarge)) => Err(too_large(body).await),
        Ok(Ok(bytes)) => Ok(bytes),
    }
}

enum Unread {
    Broken,
    TooLarge,
}

async fn collect(body: &mut Body, expected: usize) -> Result<Bytes, Unread> {
    let mut whole = BytesMut::with_capacity(expected.min(SMALL));
    let mut stream = std::mem::take(body).into_data_stream();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|_| Unread::Broken)?;
        if whole.len() + chunk.len() > BODY_MAX {
            *body = Body::from_stream(stream);
            return Err(Unread::TooLarge);
        }
        whole.extend_from_slice(&chunk);
    }
    Ok(whole.freeze())
}

/// Says no. Listens on for a moment and forgets what it hears: a client that is still sending when the connection
/// closes would never see the answer.
async fn too_large(body: Body) -> Problem {
    let drained = async {
        let (mut stream, mut heard) = (body.into_data_stream(), 0);
        while let Some(Ok(chunk)) = stream.next().await {
            heard += chunk.len();
            if heard > DRAIN {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(DRAIN_TIME, drained).await;
    let message = format!("the body is larger than {} MiB", BODY_MAX >> 20);
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "invalid_input", message).hint("pass large content by file")
}
