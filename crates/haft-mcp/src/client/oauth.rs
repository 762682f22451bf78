//! Signing in to servers that want to know who asks. Tokens are kept in files that only the user can read, and are
//! renewed when they have run out.

use super::courier::Courier;
use haft_core::preview::{cut, inert};
use haft_core::{CallError, ErrorKind};
use haft_runtime::http::Carrier;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationRequest, CredentialStore, OAuthState, StoredCredentials,
};
use rmcp::transport::streamable_http_client::{AuthRequiredError, InsufficientScopeError};
use std::io::Write;
use std::net::Ipv4Addr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

/// The tokens of one server, in a file.
struct Kept {
    file: PathBuf,
}

type Done<'a, T> = Pin<Box<dyn Future<Output = Result<T, AuthError>> + Send + 'a>>;

impl Kept {
    fn of(dir: &Path, server: &str) -> Self {
        Self { file: dir.join(format!("{server}.json")) }
    }

    fn read(&self) -> Result<Option<StoredCredentials>, AuthError> {
        match std::fs::read(&self.file) {
            Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|error| self.trouble(&error)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.trouble(&error)),
        }
    }

    /// Old or new, never a part; and never readable by anybody else, not even for a moment.
    fn write(&self, credentials: &StoredCredentials) -> Result<(), AuthError> {
        let text = serde_json::to_vec(credentials).map_err(|error| self.trouble(&error))?;
        let dir = self.file.parent().unwrap_or(Path::new("."));
        let draft = self.file.with_extension(format!("draft-{}", std::process::id()));
        let written = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).and_then(|()| {
            let mut options = std::fs::OpenOptions::new();
            let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
            file.write_all(&text)?;
            file.sync_all()?;
            std::fs::rename(&draft, &self.file)
        });
        written.map_err(|error| self.trouble(&error))
    }

    fn trouble(&self, error: &dyn std::error::Error) -> AuthError {
        AuthError::CredentialStoreError(format!("{}: {error}", self.file.display()))
    }
}

/// What the SDK's macro would make of its `async fn`s.
impl CredentialStore for Kept {
    fn load<'s, 'a>(&'s self) -> Done<'a, Option<StoredCredentials>>
    where
        's: 'a,
        Self: 'a,
    {
        Box::pin(std::future::ready(self.read()))
    }

    fn save<'s, 'a>(&'s self, credentials: StoredCredentials) -> Done<'a, ()>
    where
        's: 'a,
        Self: 'a,
    {
        Box::pin(std::future::ready(self.write(&credentials)))
    }

    fn clear<'s, 'a>(&'s self) -> Done<'a, ()>
    where
        's: 'a,
        Self: 'a,
    {
        let gone = match std::fs::remove_file(&self.file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(self.trouble(&error)),
            _ => Ok(()),
        };
        Box::pin(std::future::ready(gone))
    }
}

/// What is known of a server's tokens, if somebody has signed in.
pub(super) async fn known(
    dir: &Path,
    (server, url): (&str, &str),
    carrier: Carrier,
) -> Result<Option<AuthorizationManager>, CallError> {
    let kept = Kept::of(dir, server);
    if !kept.file.exists() {
        return Ok(None);
    }
    let mut manager = manager(url, kept, carrier).await?;
    let there = manager.initialize_from_store().await.map_err(|error| trouble(&error))?;
    Ok(there.then_some(manager))
}

/// What a server wants to know of whoever asks, if that is why a request failed.
pub(super) fn challenge(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let mut source = Some(error);
    while let Some(current) = source {
        if let Some(required) = current.downcast_ref::<AuthRequiredError>() {
            return Some(required.www_authenticate_header.clone());
        }
        if let Some(scope) = current.downcast_ref::<InsufficientScopeError>() {
            return Some(scope.www_authenticate_header.clone());
        }
        source = current.source();
    }
    None
}

/// Forgets a server's tokens.
pub fn forget(dir: &Path, server: &str) {
    // What is not there needs not be forgotten.
    let _ = std::fs::remove_file(Kept::of(dir, server).file);
}

/// How long a person has to sign in.
const SIGN_IN: Duration = Duration::from_mins(5);
/// The largest request that the browser may send.
const REQUEST_MAX: u64 = 16 << 10;

/// As whom haft signs in.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Who {
    /// Somebody new: the server is asked to register haft.
    #[default]
    New,
    /// A client that the server's owner has registered.
    Known {
        /// Its id.
        id: String,
        /// Its secret, if it has one. `${NAME}` stands for haft's own variable.
        secret: Option<String>,
    },
    /// A client that describes itself at this address, where the server takes that.
    Document(String),
}

/// Signs in: shows an address for a browser, waits for the answer that the browser brings back to this machine, and
/// keeps the tokens.
pub async fn sign_in(
    dir: &Path,
    (server, url, carrier): (&str, &str, Carrier),
    who: &Who,
    challenge: &str,
    show: &(dyn Fn(&str) + Sync),
) -> Result<(), CallError> {
    let fail = |error: std::io::Error| CallError::internal(format!("nobody can listen for the browser: {error}"));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(fail)?;
    let redirect = format!("http://127.0.0.1:{}/callback", listener.local_addr().map_err(fail)?.port());
    let manager = manager(url, Kept::of(dir, server), carrier).await?;
    let mut state = OAuthState::Unauthorized(manager);
    let mut request = AuthorizationRequest::new(redirect.as_str()).with_client_name("haft");
    request = match who {
        Who::New => request,
        Who::Document(address) => request.with_client_metadata_url(address.as_str()),
        Who::Known { id, secret } => {
            let known = request.with_preregistered_client(id.as_str());
            match secret {
                Some(secret) => known.with_client_secret(super::expanded(secret)?),
                None => known,
            }
        }
    };
    if !challenge.is_empty() {
        request = request.with_challenge(challenge);
    }
    state.start_authorization(request).await.map_err(|error| trouble(&error))?;
    show(&state.get_authorization_url().await.map_err(|error| trouble(&error))?);
    let answer = tokio::time::timeout(SIGN_IN, answer(&listener, &redirect)).await.map_err(|_| {
        CallError::new(ErrorKind::Timeout, format!("nobody signed in within {} minutes", SIGN_IN.as_secs() / 60))
    })?;
    state.handle_callback_url(&answer).await.map_err(|error| trouble(&error))
}

/// Waits for the browser, and returns the address that it was sent to. Whatever else comes is sent away.
async fn answer(listener: &TcpListener, redirect: &str) -> String {
    loop {
        let Ok((mut stream, _)) = listener.accept().await else { continue };
        let mut line = String::new();
        let mut reader = BufReader::new((&mut stream).take(REQUEST_MAX));
        let read = reader.read_line(&mut line);
        // Somebody who connects and says nothing must not keep the browser waiting.
        let in_time = tokio::time::timeout(Duration::from_secs(5), read).await.is_ok_and(|read| read.is_ok());
        let target = line.split_whitespace().nth(1).filter(|_| in_time && line.starts_with("GET "));
        let query = target.and_then(|target| target.strip_prefix("/callback?"));
        let (status, text) = match query {
            Some(_) => ("200 OK", "Signed in. You can close this page."),
            None => ("404 Not Found", "Nothing is here."),
        };
        let head = format!("HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n", text.len());
        // The browser may have gone already.
        let _ = stream.write_all(format!("{head}connection: close\r\n\r\n{text}").as_bytes()).await;
        if let Some(query) = query {
            return format!("{redirect}?{query}");
        }
    }
}

async fn manager(url: &str, kept: Kept, carrier: Carrier) -> Result<AuthorizationManager, CallError> {
    let courier = Arc::new(Courier::new(url, carrier)?);
    let manager = AuthorizationManager::new_with_oauth_http_client(url, courier).await;
    let mut manager = manager.map_err(|error| trouble(&error))?;
    manager.set_credential_store(kept);
    Ok(manager)
}

fn trouble(error: &AuthError) -> CallError {
    CallError::new(ErrorKind::Upstream, format!("signing in failed: {}", cut(&inert(&error.to_string()), 500)))
}
