//! A hook behind an address. The user's configuration names it, so it may be on this machine; it cannot send haft on to
//! anybody else.

use super::ANSWER_MAX;
use crate::http::{Carrier, Client, Leads, client};
use haft_core::host::Host;
use haft_core::web::Target;
use std::sync::OnceLock;

/// Posts what is asked, and reads the answer.
pub(super) async fn ask(target: &Target, held: &OnceLock<Client>, given: Vec<u8>) -> Result<Vec<u8>, String> {
    let client = if let Some(client) = held.get() {
        client
    } else {
        let made = client(leads(target), Carrier::Own).map_err(|error| error.message)?;
        held.get_or_init(|| made)
    };
    let request = client.post(target.url().to_string()).header("content-type", "application/json").body(given);
    let mut answer = request.send().await.map_err(|error| format!("it cannot be reached: {}", error.without_url()))?;
    if !answer.status().is_success() {
        return Err(format!("it answers with status {}", answer.status().as_u16()));
    }
    let mut body = Vec::new();
    loop {
        let piece = answer.chunk().await.map_err(|error| format!("its answer broke off: {}", error.without_url()))?;
        let Some(piece) = piece else { return Ok(body) };
        body.extend_from_slice(&piece);
        if body.len() > ANSWER_MAX {
            return Err(format!("it answers with more than {} MiB", ANSWER_MAX >> 20));
        }
    }
}

fn leads(target: &Target) -> Leads {
    match target.host() {
        Host::Name(name) => Leads::OutsideBut(name.clone()),
        Host::Address(_) => Leads::Outside,
    }
}
