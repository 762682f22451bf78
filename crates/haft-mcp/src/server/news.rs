//! Telling clients what changes at bridged servers: their lists, and the resources that a client watches.

use super::Shared;
use super::bridged::ClientNews;
use super::door::WATCHED_MAX;
use crate::client::catalogue::ServerNews;
use rmcp::RoleServer;
use rmcp::model::{ResourceUpdatedNotificationParam, SubscriptionFilter};
use rmcp::service::{Peer, SubscriptionContext};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

/// Tells a client what changes in the resources and prompts of bridged servers, until the client goes.
pub(super) async fn tell_news(shared: Arc<Shared>, watched: Arc<Mutex<BTreeSet<String>>>, peer: Peer<RoleServer>) {
    let Some(bridged) = &shared.bridged else { return };
    let mut news = bridged.news();
    loop {
        let told = match news.recv().await {
            Ok(news) => bridged.client_news(&news),
            Err(RecvError::Lagged(_)) => Some(ClientNews::ListChanged),
            Err(RecvError::Closed) => return,
        };
        let sent = match told {
            None => Ok(()),
            Some(ClientNews::ListChanged) => tell_lists(&peer).await,
            Some(ClientNews::ResourceUpdated(uris)) => {
                let is_watched = |uri: &String| watched.lock().unwrap_or_else(PoisonError::into_inner).contains(uri);
                match uris.into_iter().find(is_watched) {
                    Some(uri) => peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await,
                    None => Ok(()),
                }
            }
        };
        if sent.is_err() {
            return;
        }
    }
}

async fn tell_lists(peer: &Peer<RoleServer>) -> Result<(), rmcp::ServiceError> {
    peer.notify_tool_list_changed().await?;
    peer.notify_resource_list_changed().await?;
    peer.notify_prompt_list_changed().await
}

/// The bridged resources that a subscription watches, as long as this lives.
pub(super) struct BridgedWatch<'d> {
    shared: &'d Shared,
    uris: Vec<String>,
}

impl<'d> BridgedWatch<'d> {
    pub(super) fn new(shared: &'d Shared, filter: &SubscriptionFilter) -> Self {
        let mut uris = filter.resource_subscriptions.clone().unwrap_or_default();
        uris.truncate(WATCHED_MAX);
        if let Some(bridged) = &shared.bridged {
            for uri in &uris {
                bridged.watch(uri);
            }
        }
        Self { shared, uris }
    }
}

impl Drop for BridgedWatch<'_> {
    fn drop(&mut self) {
        if let Some(bridged) = &self.shared.bridged {
            self.uris.iter().for_each(|uri| bridged.unwatch(uri));
        }
    }
}

/// What changes at bridged servers; never, where there are none.
pub(super) async fn next_news(news: &mut Option<Receiver<ServerNews>>) -> Result<ServerNews, RecvError> {
    match news {
        Some(news) => news.recv().await,
        None => std::future::pending().await,
    }
}

/// Tells a subscription. What it did not ask for, it is not told, and one that has gone need not be.
pub(super) async fn tell_subscription(context: &SubscriptionContext, told: ClientNews) {
    let sink = context.sink();
    match told {
        ClientNews::ListChanged => {
            let _ = sink.notify_tool_list_changed().await;
            let _ = sink.notify_resource_list_changed().await;
            let _ = sink.notify_prompt_list_changed().await;
        }
        ClientNews::ResourceUpdated(uris) => {
            for uri in uris {
                let _ = sink.notify_resource_updated(uri).await;
            }
        }
    }
}
