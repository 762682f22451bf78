//! A transport on which every notification of a server is heard in order, before whatever the server says next. The SDK
//! gives each notification a task of its own, so that the last progress could come after the result that it belongs to.

use super::answer::Desk;
use rmcp::RoleClient;
use rmcp::model::{GetExtensions, JsonRpcMessage, RequestId, ServerNotification};
use rmcp::service::{InboundStreamOrigin, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::sync::Arc;

/// A transport whose notifications go to the desk.
pub(super) struct ObservedTransport<T> {
    inner: T,
    desk: Arc<Desk>,
}

impl<T> ObservedTransport<T> {
    pub(super) fn new(inner: T, desk: &Arc<Desk>) -> Self {
        Self { inner, desk: Arc::clone(desk) }
    }
}

/// The request on whose stream something came, where the transport tells (Streamable HTTP does).
pub(super) fn originating_request(message: &impl GetExtensions) -> Option<RequestId> {
    match message.extensions().get::<InboundStreamOrigin>() {
        Some(InboundStreamOrigin::OutboundRequest(id)) => Some(id.clone()),
        _ => None,
    }
}

impl Desk {
    /// Hears a notification. False if it is for the SDK.
    fn hear(&self, notification: &ServerNotification) -> bool {
        match notification {
            ServerNotification::ProgressNotification(said) => self.progress(said.params.clone()),
            ServerNotification::LoggingMessageNotification(said) => {
                self.log(said.params.clone(), originating_request(notification).as_ref());
            }
            ServerNotification::ToolListChangedNotification(_)
            | ServerNotification::ResourceListChangedNotification(_)
            | ServerNotification::PromptListChangedNotification(_) => self.changed.notify_one(),
            ServerNotification::ResourceUpdatedNotification(said) => self.resource_updated(&said.params.uri),
            ServerNotification::CancelledNotification(_)
            | ServerNotification::SubscriptionsAcknowledgedNotification(_) => return false,
            // Nobody here has a use for the others.
            _ => {}
        }
        true
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for ObservedTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.inner.receive().await?;
            match &message {
                JsonRpcMessage::Notification(said) if self.desk.hear(&said.notification) => {}
                _ => return Some(message),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
