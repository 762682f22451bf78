//! Signing in to a server that wants to know who asks: the person does so in a browser, and the answer comes back to
//! an address of this machine.

use crate::app::App;
use crate::style::{self, BOLD, paint};
use haft_core::CallError;
use haft_mcp::client::{Reach, oauth};

/// Whether a server could not be reached because it wants to know who asks.
pub(super) fn is_wanted(error: &CallError) -> bool {
    error.details.as_ref().is_some_and(|details| details.get("challenge").is_some())
}

/// Signs in, and keeps the tokens.
pub(super) async fn run(app: &App, name: &str, error: &CallError) -> Result<(), CallError> {
    let challenge = error.details.as_ref().and_then(|details| details["challenge"].as_str()).unwrap_or_default();
    let server = app.doors.servers.iter().find(|server| server.name == name);
    let Some(Reach::Url { url, who, .. }) = server.map(|server| &server.reach) else { return Err(error.clone()) };
    let settings = app.haft.settings();
    let (dir, carrier) = (settings.data_dir.join("oauth"), settings.web.carrier);
    let show = |address: &str| {
        style::note(&format!("{} wants to know who asks; open this in a browser:", paint(BOLD, name)));
        style::note(&style::inert(address));
    };
    oauth::sign_in(&dir, (name, url, carrier), who, challenge, &show).await
}
