//! The stream of events over HTTP.

use crate::gateway::Shared;
use crate::guard::Visitor;
use crate::hub::{Frame, Listener, sse};
use crate::meters::Counted;
use crate::problem::Problem;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use haft_core::SessionId;
use http::{HeaderMap, header};
use serde::Deserialize;
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;

/// How often something is said when there is nothing to say, so that both sides know the other is there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What a listener wants.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Wanted {
    last_event_id: Option<u64>,
    session: Option<String>,
}

struct Stream {
    gateway: Shared,
    listener: Listener,
    session: Option<SessionId>,
    visitor: Visitor,
    /// Whether the first words have been said.
    greeted: bool,
    closed: bool,
    _counted: Counted,
}

/// `GET /v1/events`.
pub(crate) async fn events(
    State(gateway): State<Shared>,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
    crate::body::Asked(wanted): crate::body::Asked<Wanted>,
) -> Result<Response, Problem> {
    let said = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    // A number that makes no sense is one that we did not give: the listener hears that it missed something.
    let last = said.map(|text| text.trim().parse().unwrap_or(0)).or(wanted.last_event_id);
    let session = match wanted.session {
        Some(name) => Some(visitor.session(&name).ok_or_else(|| Problem::invalid("that is not a session"))?),
        None => None,
    };
    let listener = gateway.hub.listen(last);
    let counted = Counted::new(&gateway.meters.listeners);
    let stream = Stream { gateway, listener, session, visitor, greeted: false, closed: false, _counted: counted };
    let body = Body::from_stream(stream::unfold(stream, |mut stream| async move {
        let chunk = stream.next().await?;
        Some((Ok::<_, Infallible>(chunk), stream))
    }));
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, body).into_response())
}

impl Stream {
    async fn next(&mut self) -> Option<Bytes> {
        if self.closed {
            return None;
        }
        if !self.greeted {
            self.greeted = true;
            return Some(self.greeting());
        }
        while let Some(frame) = self.listener.replayed.pop_front() {
            if self.is_for_us(&frame) {
                return Some(frame.sse.clone());
            }
        }
        loop {
            tokio::select! {
                biased;
                frame = self.listener.coming.recv() => match frame {
                    Ok(frame) if self.is_for_us(&frame) => return Some(frame.sse.clone()),
                    Ok(_) => {}
                    Err(RecvError::Lagged(count)) => return Some(self.missed(count)),
                    Err(RecvError::Closed) => return None,
                },
                () = self.gateway.work.closing.cancelled() => {
                    self.closed = true;
                    return Some(sse(None, "closing", "{}"));
                }
                () = tokio::time::sleep(KEEP_ALIVE) => return Some(Bytes::from_static(b": keep-alive\n\n")),
            }
        }
    }

    /// The first words: that the stream is open, and what of it is lost.
    fn greeting(&mut self) -> Bytes {
        match self.listener.missed.take() {
            None => Bytes::from_static(b": connected\n\n"),
            Some(0) => sse(None, "missed", &json!({ "count": 0, "restarted": true }).to_string()),
            Some(count) => self.missed(count),
        }
    }

    fn missed(&self, count: u64) -> Bytes {
        self.gateway.meters.missed.inc_by(count);
        sse(None, "missed", &json!({ "count": count }).to_string())
    }

    fn is_for_us(&self, frame: &Arc<Frame>) -> bool {
        if !self.visitor.sees(frame.session.as_ref().map(SessionId::as_str)) {
            return false;
        }
        match (&self.session, &frame.session) {
            (Some(wanted), Some(whose)) => wanted == whose,
            _ => true,
        }
    }
}
