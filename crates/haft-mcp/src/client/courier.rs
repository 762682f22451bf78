//! Who is spoken to for a bridged server. Its own host may be wherever it is, because the user named it; whatever else
//! the server names (where to sign in, for one) has to be public. Other ports of its own host are its own.

use haft_core::CallError;
use haft_core::web::Target;
use haft_runtime::http::{self, Carrier, Client, Leads, Stranger};
use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRedirectPolicy, OAuthHttpRequest,
};
use std::time::Duration;

/// The most that is read of an answer about signing in.
const ANSWER_MAX: usize = 1 << 20;
/// How long one may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a question is sent on.
const HOPS_MAX: usize = 5;

/// The client for one server.
pub(super) fn client(url: &str, carrier: Carrier) -> Result<Client, CallError> {
    Courier::new(url, carrier).map(|courier| courier.client)
}

/// Carries what signing in asks for.
pub(super) struct Courier {
    own: Target,
    carrier: Carrier,
    /// To the server's own host, and nobody else.
    client: Client,
    /// To everybody else.
    outside: Client,
}

/// Why an answer is not used.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("it would lead to where haft does not go: {0}")]
    Url(#[from] haft_core::web::BadUrl),
    #[error(transparent)]
    Stranger(#[from] Stranger),
    #[error("{0} would be asked without encryption")]
    Plain(String),
    #[error("it was sent on more than {HOPS_MAX} times")]
    Hops,
    #[error("the answer is larger than {ANSWER_MAX} bytes")]
    Large,
    #[error("no answer within {} s", PATIENCE.as_secs())]
    Late,
}

impl Courier {
    /// For the server at this address.
    pub(super) fn new(url: &str, carrier: Carrier) -> Result<Self, CallError> {
        let own = Target::read(url).map_err(|error| CallError::invalid(error.to_string()))?;
        let client = http::client(Leads::OutsideBut(own.host().to_string()), carrier)?;
        let outside = http::client(Leads::Outside, carrier)?;
        Ok(Self { own, carrier, client, outside })
    }

    fn client_for(&self, target: &Target) -> &Client {
        if target.host() == self.own.host() { &self.client } else { &self.outside }
    }

    async fn carry(&self, request: OAuthHttpRequest) -> Result<::http::Response<Vec<u8>>, OAuthHttpClientError> {
        let (mut head, mut body) = request.request.into_parts();
        let mut target = Target::read(&head.uri.to_string()).map_err(Fault::from)?;
        for _ in 0..=HOPS_MAX {
            http::judge(&target, &self.own, self.carrier).await.map_err(Fault::from)?;
            let client = self.client_for(&target);
            let sent = client.request(head.method.clone(), target.url().clone()).headers(head.headers.clone());
            let answer = sent.body(body.clone()).send().await?;
            let location = answer.headers().get(::http::header::LOCATION).filter(|_| answer.status().is_redirection());
            let follows = request.redirect_policy == OAuthHttpRedirectPolicy::Follow && head.method.is_safe();
            let Some(location) = location.filter(|_| follows) else { return read(answer).await };
            let next = target.join(&String::from_utf8_lossy(location.as_bytes())).map_err(Fault::from)?;
            if target.is_secure() && !next.is_secure() {
                return Err(Fault::Plain(next.origin()).into());
            }
            if !next.same_origin(&target) {
                head.headers.clear();
                body.clear();
            }
            target = next;
        }
        Err(Fault::Hops.into())
    }
}

async fn read(mut answer: http::Answer) -> Result<::http::Response<Vec<u8>>, OAuthHttpClientError> {
    let mut response = ::http::Response::new(Vec::new());
    *response.status_mut() = answer.status();
    *response.headers_mut() = std::mem::take(answer.headers_mut());
    while let Some(piece) = answer.chunk().await? {
        if response.body().len() + piece.len() > ANSWER_MAX {
            return Err(Fault::Large.into());
        }
        response.body_mut().extend_from_slice(&piece);
    }
    Ok(response)
}

impl OAuthHttpClient for Courier {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        let patience = request.timeout.map_or(PATIENCE, |wanted| wanted.min(PATIENCE));
        Box::pin(async move {
            tokio::time::timeout(patience, self.carry(request)).await.unwrap_or_else(|_| Err(Fault::Late.into()))
        })
    }
}
