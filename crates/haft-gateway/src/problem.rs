//! What went wrong with a request, as a status and words; and the status that an outcome is told with.

use axum::Json;
use axum::response::{IntoResponse, Response};
use haft_core::{CallError, ErrorKind, Outcome};
use haft_runtime::is_refused_repeat;
use haft_store::StoreError;
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Value, json};

/// A request that was not taken.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    kind: &'static str,
    message: String,
    hint: Option<String>,
    details: Option<Value>,
    header: Option<(HeaderName, HeaderValue)>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        Self { status, kind, message: message.into(), hint: None, details: None, header: None }
    }

    /// The request cannot be understood.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ErrorKind::InvalidInput.as_str(), message)
    }

    /// What was named is not there.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, ErrorKind::NotFound.as_str(), message)
    }

    /// It may not be.
    pub(crate) fn denied(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, ErrorKind::Denied.as_str(), message)
    }

    /// The token is missing or wrong.
    pub(crate) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
            .hint("send `Authorization: Bearer TOKEN`; `haft serve` prints the address with it")
            .with(header::WWW_AUTHENTICATE, "Bearer realm=\"haft\"")
    }

    /// Too much at once, or too often.
    pub(crate) fn busy(message: impl Into<String>, seconds: u64) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "busy", message).with(header::RETRY_AFTER, &seconds.to_string())
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    fn with(mut self, name: HeaderName, value: &str) -> Self {
        self.header = HeaderValue::from_str(value).ok().map(|value| (name, value));
        self
    }
}

impl From<CallError> for Problem {
    fn from(error: CallError) -> Self {
        let CallError { kind, message, hint, details } = error;
        Self { status: status_of(kind), kind: kind.as_str(), message, hint, details, header: None }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::from(CallError::internal(error.to_string()).hint(error.hint()))
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut error = json!({ "kind": self.kind, "message": self.message });
        if let Some(hint) = self.hint {
            error["hint"] = hint.into();
        }
        if let Some(details) = self.details {
            error["details"] = details;
        }
        let mut response = (self.status, Json(json!({ "error": error }))).into_response();
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

/// The status for an error beside any call.
fn status_of(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::InvalidInput => StatusCode::BAD_REQUEST,
        ErrorKind::UnknownTool | ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Denied | ErrorKind::Rejected | ErrorKind::Confinement => StatusCode::FORBIDDEN,
        ErrorKind::ApprovalRequired => StatusCode::ACCEPTED,
        ErrorKind::Conflict => StatusCode::CONFLICT,
        ErrorKind::Timeout => StatusCode::GATEWAY_TIMEOUT,
        ErrorKind::Upstream => StatusCode::BAD_GATEWAY,
        ErrorKind::Cancelled | ErrorKind::Failed | ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Whether a call with this error has come to its tool. What the tool met is its answer, not the gateway's.
fn ran(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Failed
            | ErrorKind::Timeout
            | ErrorKind::Cancelled
            | ErrorKind::Upstream
            | ErrorKind::NotFound
            | ErrorKind::Conflict
    )
}

/// Whether a call with this outcome has come to its tool.
pub(crate) fn came_to_its_tool(outcome: &Outcome, kind: ErrorKind) -> bool {
    ran(kind) && !is_refused_repeat(outcome)
}

/// An outcome with its status: 200 once the tool ran, whatever it met.
pub(crate) fn told(outcome: &Outcome) -> Response {
    let refused = outcome.error.as_ref().map(|error| error.kind).filter(|kind| !came_to_its_tool(outcome, *kind));
    (refused.map_or(StatusCode::OK, status_of), Json(outcome)).into_response()
}
