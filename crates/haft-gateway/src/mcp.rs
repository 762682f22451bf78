//! `/mcp`: which MCP server a client reaches, and in which session.
//!
//! Both follow from the token. The owner may name any session, because the owner may enter all of them. What an agent names
//! lies among the agents' sessions (`agent:…`): it has no part in what the owner allowed for a session of their own.
//! The agents share one token, so they can enter each other's sessions; a name that others cannot guess keeps them out.

use crate::guard::{Holder, Visitor};
use crate::options::McpServers;
use crate::problem::Problem;
use axum::extract::{Query, Request, State};
use axum::response::{IntoResponse, Response};
use haft_core::SessionId;
use haft_mcp::server::NamedSession;
use tower::ServiceExt;

/// The header in which a client names its session.
const SESSION_HEADER: &str = "haft-session";
/// The same as a part of the query, for clients that cannot send headers.
const SESSION_QUERY: &str = "session";

/// Hands a request to the server that its token is for.
pub(crate) async fn serve(State(servers): State<McpServers>, mut request: Request) -> Response {
    let Some(visitor) = request.extensions().get::<Visitor>().copied() else {
        return Problem::denied("the request was not authenticated").into_response();
    };
    match named_session(visitor, &request) {
        Ok(Some(session)) => request.extensions_mut().insert(NamedSession(session)),
        Ok(None) => None,
        Err(problem) => return problem.into_response(),
    };
    let server = match visitor.holder {
        Holder::Owner => servers.owner,
        // Whoever is not the owner approves nothing.
        Holder::Agent | Holder::Link | Holder::Nobody => servers.agents,
    };
    match server.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// The session that a request names, as this visitor may mean it.
fn named_session(visitor: Visitor, request: &Request) -> Result<Option<SessionId>, Problem> {
    let malformed = || {
        Problem::invalid("the session's name is malformed")
            .hint("a name is 1 to 128 printable characters (in the header, ASCII), said once")
    };
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(request.uri()).map_err(|_| malformed())?;
    let in_query = pairs.into_iter().filter(|(name, _)| name == SESSION_QUERY).map(|(_, name)| Ok(name));
    let headers = request.headers().get_all(SESSION_HEADER).iter();
    let in_headers = headers.map(|value| value.to_str().map(str::to_owned).map_err(|_| malformed()));
    let mut names = in_headers.chain(in_query).collect::<Result<Vec<String>, Problem>>()?;
    // A client may send both the header and the address that it was given; then they have to agree.
    if names.len() == 2 && names.first() == names.last() && request.headers().contains_key(SESSION_HEADER) {
        names.pop();
    }
    match names.as_slice() {
        [] => Ok(None),
        [name] => visitor.session(name).map(Some).ok_or_else(malformed),
        _ => Err(malformed()),
    }
}
