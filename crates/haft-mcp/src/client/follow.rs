//! Following a server that runs: what it offers as it declares it, again whenever that changes, until it ends.

#![expect(deprecated, reason = "servers of the versions before 2026-07-28 log")]

use super::call::{Abandoned, Connection};
use super::catalogue::{Catalogue, OfferNews, offer_reading};
use super::connect::Standing;
use super::declared::{Declared, names};
use super::link::{Link, OrStop, Phase};
use super::tool::Bridged;
use haft_core::preview::{cut, inert};
use haft_core::{CallError, ErrorKind, ToolName};
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, LoggingLevel, PaginatedRequestParams, SetLevelRequestParams,
    SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;

/// How many pages of tools are read.
const PAGES_MAX: usize = 50;
/// How often, and how long each time, the last words of a program are waited for.
const LOOKS: usize = 10;
const LOOK: Duration = Duration::from_millis(20);
/// How many tools.
const TOOLS_MAX: usize = 2000;
/// How large all declarations together may be.
const DECLARED_MAX: usize = 4 << 20;
/// How long a change of tools waits for the next at first; a server that never rests is looked at ever more rarely.
const CALM: Duration = Duration::from_secs(1);
/// And at most.
const CALM_MOST: Duration = Duration::from_secs(30);
/// How long a server has to end by itself.
const FAREWELL: Duration = Duration::from_secs(1);
/// How long word of a crash may take after the connection broke.
const WORD: Duration = Duration::from_millis(500);

/// Follows a server to its end, and says why it ended and whether it had stood; none if nobody wants it any more.
pub(super) async fn follow(
    link: &Arc<Link>,
    mut standing: Standing,
    stop: &CancellationToken,
) -> Option<(CallError, bool)> {
    let connection = Arc::clone(&standing.connection);
    let first = tokio::time::timeout(link.server.timeout, learn(link, &connection)).await_or(stop).await?;
    let first = first.unwrap_or_else(|_| {
        let seconds = link.server.timeout.as_secs_f64();
        Err(CallError::new(ErrorKind::Upstream, format!("it did not list its tools within {seconds} s")))
    });
    if let Err(error) = first {
        return Some((ending(&mut standing, error).await, false));
    }
    link.with(|memory| memory.error = None);
    let _ = tokio::time::timeout(link.server.timeout, ask_for_logs(&connection)).await;
    standing.tasks.spawn(tell_of_updates(Arc::clone(link), connection.desk.resource_updates()));
    let (link_too, connection_too) = (Arc::clone(link), Arc::clone(&connection));
    standing.tasks.spawn(async move { relearn(&link_too, &connection_too).await });
    let abandoned = std::mem::replace(&mut standing.abandoned, mpsc::unbounded_channel().1);
    standing.tasks.spawn(tell(Arc::clone(&connection), abandoned));
    link.set(Phase::Ready(Arc::clone(&connection)));
    let Standing { service, mut resident, tasks, .. } = standing;
    let cancel = service.cancellation_token();
    let quit = service.waiting();
    tokio::pin!(quit);
    let died = async {
        match &mut resident {
            Some(resident) => resident.ended().await,
            None => std::future::pending().await,
        }
    };
    let why = {
        tokio::pin!(died);
        tokio::select! {
            why = &mut died => Some(why),
            _ = &mut quit => tokio::time::timeout(WORD, died).await.ok(),
            () = link.again.notified() => {
                cancel.cancel();
                let _ = tokio::time::timeout(FAREWELL, &mut quit).await;
                Some("it was ended to be started again".to_owned())
            }
            () = stop.cancelled() => {
                cancel.cancel();
                let _ = tokio::time::timeout(FAREWELL, &mut quit).await;
                return None;
            }
        }
    };
    last_words(&connection).await;
    drop(tasks);
    let why = connection.noticed.fatal().or(why).unwrap_or_else(|| "the connection broke".to_owned());
    Some((crashed(&connection, &why), true))
}

/// Why a server ended before its tools were known.
async fn ending(standing: &mut Standing, error: CallError) -> CallError {
    let ended = match &mut standing.resident {
        Some(resident) => tokio::time::timeout(WORD, resident.ended()).await.ok(),
        None => None,
    };
    let why = standing.connection.noticed.fatal().or(ended).unwrap_or(error.message);
    // What the server wants to know of whoever asks has to get to whoever can sign in.
    CallError { hint: error.hint, details: error.details, ..crashed(&standing.connection, &why) }
}

/// Waits a moment for what a program complained about when it ended: its end may be noticed before its words are read.
async fn last_words(connection: &Connection) {
    for _ in 0..LOOKS {
        if connection.noticed.complaint().is_some() {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn crashed(connection: &Connection, why: &str) -> CallError {
    let complaint = connection.noticed.complaint().map(|said| format!("; it says: {said}")).unwrap_or_default();
    CallError::new(ErrorKind::Upstream, format!("{why}{complaint}"))
}

/// Tells the server what nobody wants any more.
async fn tell(connection: Arc<Connection>, mut abandoned: mpsc::UnboundedReceiver<Abandoned>) {
    while let Some(abandoned) = abandoned.recv().await {
        match abandoned {
            Abandoned::Request(id) => {
                let param =
                    CancelledNotificationParam::new(Some(id), Some("the caller cancelled the request".to_owned()));
                let notification = CancelledNotification::new(param);
                let _ = tokio::time::timeout(FAREWELL, connection.peer.send_notification(notification.into())).await;
            }
            Abandoned::Resource(uri) => {
                let unsubscribed = connection.peer.unsubscribe(UnsubscribeRequestParams::new(uri));
                let _ = tokio::time::timeout(FAREWELL, unsubscribed).await;
            }
            Abandoned::Task(id) => {
                let cancelled = connection.cancel_task(id);
                let _ = tokio::time::timeout(FAREWELL, cancelled).await;
            }
        }
    }
}

/// Tells whoever watches of resources that have changed.
async fn tell_of_updates(link: Arc<Link>, mut updates: broadcast::Receiver<String>) {
    loop {
        match updates.recv().await {
            Ok(uri) => link.tell(OfferNews::ResourceUpdated(uri)),
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}

/// Reads what is offered again whenever it changes, but not more often than is good.
async fn relearn(link: &Arc<Link>, connection: &Arc<Connection>) {
    let listen = subscribe(link, connection);
    tokio::pin!(listen);
    let mut calm = CALM;
    loop {
        tokio::select! {
            () = connection.desk.changed.notified() => {}
            () = &mut listen => return,
        }
        // The server says so: clients hear it at once, and again if what is read then is another list.
        link.tell(OfferNews::ListChanged);
        tokio::time::sleep(calm).await;
        let read = tokio::time::timeout(link.server.timeout, learn(link, connection)).await;
        if let Ok(Err(error)) = read {
            link.with(|memory| memory.error = Some(error.message));
        }
        // Quiet for as long as it was waited means that the storm is over.
        let again = tokio::time::timeout(calm * 2, connection.desk.changed.notified()).await.is_ok();
        calm = if again { (calm * 2).min(CALM_MOST) } else { CALM };
        if again {
            connection.desk.changed.notify_one();
        }
    }
}

/// Watches what clients watch, and hears of changes: servers of the newest version tell only whoever subscribes. Never
/// ends.
async fn subscribe(link: &Arc<Link>, connection: &Arc<Connection>) {
    loop {
        let watched: Vec<String> = link.with(|memory| memory.watched_resources());
        if connection.is_newest() {
            let filter = SubscriptionFilter::builder()
                .tools_list_changed()
                .resources_list_changed()
                .prompts_list_changed()
                .resource_subscriptions(watched)
                .build();
            listen(link, connection, filter).await;
        } else {
            for uri in watched {
                // One that cannot be watched tells of no changes.
                let _ = connection.peer.subscribe(SubscribeRequestParams::new(uri)).await;
            }
            link.rewatch.notified().await;
        }
    }
}

/// Holds a subscription until other resources are to be watched. What the server says on it is heard by the transport.
async fn listen(link: &Arc<Link>, connection: &Arc<Connection>, filter: SubscriptionFilter) {
    if let Ok(mut subscription) = connection.peer.listen(filter).await {
        loop {
            tokio::select! {
                () = link.rewatch.notified() => {
                    let _ = subscription.cancel().await;
                    return;
                }
                said = subscription.next() => if matches!(said, Ok(None) | Err(_)) { break },
            }
        }
        // One that fell behind has missed changes: everything is read anew.
        connection.desk.changed.notify_one();
    }
    link.rewatch.notified().await;
}

/// Reads what a server offers, and offers it here.
async fn learn(link: &Arc<Link>, connection: &Arc<Connection>) -> Result<(), CallError> {
    let (declared, mut refused) = list(connection).await?;
    connection.declare(declared.iter().map(|one| (one.tool.clone(), one.digest)).collect());
    if link.with(|memory| memory.accepted.is_empty()) && !declared.is_empty() {
        accept(link, &declared).await?;
    }
    let before: Vec<Arc<Bridged>> = link.with(|memory| memory.offered.values().cloned().collect());
    offer(link, declared, &mut refused);
    warn_of_new_tools(link, &before);
    // A server that does not list its resources is no reason to do without its tools.
    let reading = Catalogue::read(connection, &mut refused);
    let catalogue = tokio::time::timeout(link.server.timeout / 2, reading).await;
    let catalogue = catalogue.unwrap_or_default();
    offer_reading(link, &catalogue, &mut refused);
    let (changed, rewatch) = link.with(|memory| {
        memory.refused = refused;
        let (changed, watched) = (memory.catalogue != catalogue, memory.watched_resources());
        memory.catalogue = catalogue;
        (changed, memory.watched_resources() != watched)
    });
    if rewatch {
        link.rewatch.notify_one();
    }
    if changed {
        link.tell(OfferNews::ListChanged);
    }
    Ok(())
}

/// Says what model providers cannot take of the tools that were not offered before, as they are declared now.
fn warn_of_new_tools(link: &Link, before: &[Arc<Bridged>]) {
    let offered: Vec<Arc<Bridged>> = link.with(|memory| memory.offered.values().cloned().collect());
    for tool in offered.iter().filter(|tool| !before.iter().any(|known| Arc::ptr_eq(known, tool))) {
        for note in tool.provider_notes() {
            (link.warn)(&note.to_string());
        }
    }
}

/// Asks a server of the versions with a handshake for its log. What a client hears of it is for the client to say.
async fn ask_for_logs(connection: &Connection) {
    let logs = connection.peer.peer_info().is_some_and(|info| info.capabilities.logging.is_some());
    if logs && !connection.is_newest() {
        // One that will not is heard as far as it says anything.
        let _ = connection.peer.set_level(SetLevelRequestParams::new(LoggingLevel::Debug)).await;
    }
}

/// Accepts declarations: from now on these are what the tools are.
pub(super) async fn accept(link: &Link, declared: &[Declared]) -> Result<(), CallError> {
    let pins = declared.iter().map(Declared::pin).collect();
    link.store.pin(&link.server.name, pins).await.map_err(|error| {
        let hint = error.hint();
        CallError::internal(format!("what the server says of its tools cannot be kept: {error}")).hint(hint)
    })?;
    link.with(|memory| {
        for one in declared {
            memory.accepted.insert(one.tool.clone(), one.clone());
        }
    });
    Ok(())
}

async fn list(connection: &Connection) -> Result<(Vec<Declared>, Vec<String>), CallError> {
    let (mut declared, mut refused, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
    let (mut cursor, mut size) = (None, 0);
    for page in 0.. {
        if page == PAGES_MAX {
            refused.push(format!("everything after {PAGES_MAX} pages of tools"));
            break;
        }
        let params = PaginatedRequestParams::default().with_cursor(cursor.take());
        let listed = connection.peer.list_tools(Some(params)).await.map_err(|error| connection.unlisted(&error))?;
        for tool in &listed.tools {
            let one = Declared::of(tool);
            size += one.value.to_string().len();
            if declared.len() == TOOLS_MAX || size > DECLARED_MAX {
                refused.push(format!("everything after `{}`: over the size limit", cut(&inert(&one.tool), 80)));
                return Ok((declared, refused));
            }
            if seen.insert(one.tool.clone()) {
                declared.push(one);
            }
        }
        cursor = listed.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    Ok((declared, refused))
}

/// Makes the registry hold exactly these tools of a server.
pub(super) fn offer(link: &Arc<Link>, declared: Vec<Declared>, refused: &mut Vec<String>) {
    let Some(haft) = link.haft.upgrade() else { return };
    let registry = haft.registry();
    let offered: Vec<Declared> = declared.into_iter().filter(|one| link.server.offers(&one.tool)).collect();
    let names = names(&link.server.name, offered.iter().map(|one| one.tool.as_str()));
    let mut before = link.with(|memory| std::mem::take(&mut memory.offered));
    let mut now = BTreeMap::new();
    for (one, name) in offered.into_iter().zip(names) {
        let altered = link.with(|memory| one.differs(memory.accepted.get(&one.tool)));
        let known = before.remove(&name);
        if let Some(known) = known.as_ref().filter(|known| known.is(&one, altered.is_some())) {
            now.insert(name, Arc::clone(known));
            continue;
        }
        let registered = one.spec(&link.server.name, &name, link.server.timeout).and_then(|spec| {
            let tool = Arc::new(Bridged::new(Arc::clone(link), spec, one.clone(), altered));
            if known.is_some() {
                registry.replace(Arc::clone(&tool) as _);
            } else {
                registry.register(Arc::clone(&tool) as _).map_err(|error| error.to_string())?;
            }
            Ok(tool)
        });
        match registered {
            Ok(tool) => {
                now.insert(name, tool);
            }
            Err(why) => {
                forget(registry, &name, known.is_some());
                refused.push(format!("{}: {}", cut(&inert(&one.tool), 80), cut(&inert(&why), 300)));
            }
        }
    }
    for name in before.keys() {
        forget(registry, name, true);
    }
    link.with(|memory| memory.offered = now);
}

fn forget(registry: &haft_runtime::Registry, name: &str, was_there: bool) {
    if let Some(name) = ToolName::new(name).ok().filter(|_| was_there) {
        registry.unregister(&name);
    }
}
