//! All bridged servers of one haft.

use super::catalogue::{Catalogue, OfferedTool, ReadKind, ServerNews};
use super::connect::Site;
use super::declared::{Declared, names};
use super::follow::{accept, offer};
use super::link::Link;
use super::status::Status;
use super::tool::Bridged;
use super::{Server, Start};
use haft_core::provider::{DeclarationNote, registration_notes};
use haft_core::{CallError, Caller, ErrorKind};
use haft_runtime::Haft;
use haft_runtime::confined::Terms;
use haft_store::{Store, StoreError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How long all of them together have to end.
const FAREWELL: Duration = Duration::from_secs(2);
/// How many changes of resources and prompts a slow listener may miss.
const NEWS_MAX: usize = 256;

/// How servers are met of which nothing is known yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Learn {
    /// In the background, at once: for a process that stays. Servers that are to be started eagerly are.
    Background,
    /// When somebody asks for them: for a process that makes one call.
    OnDemand,
}

/// The bridged servers. Their tools are in the registry of the haft that it was opened for. Dropping it ends them;
/// [`Bridge::close`] also waits for that.
pub struct Bridge {
    links: Vec<Arc<Link>>,
    tasks: Mutex<JoinSet<()>>,
    stop: CancellationToken,
    news: broadcast::Sender<ServerNews>,
}

impl Bridge {
    /// Opens the way to these servers. Tools that were accepted earlier are there at once, without anything being
    /// started. `warn` shows the user what model providers cannot take of tools that a server lists for the first time, or
    /// lists with another declaration.
    pub async fn open(haft: &Arc<Haft>, servers: &[Server], learn: Learn, warn: fn(&str)) -> Result<Self, CallError> {
        let (mut tasks, stop, mut links) = (JoinSet::new(), CancellationToken::new(), Vec::new());
        let news = broadcast::Sender::new(NEWS_MAX);
        let settings = haft.settings();
        let site = Site {
            workspace: Arc::new(haft.workspace().clone()),
            terms: Terms { data_dir: settings.data_dir.clone(), ..settings.terms.clone() },
            oauth: settings.data_dir.join("oauth"),
            carrier: settings.web.carrier,
        };
        for server in servers {
            let link = Arc::new(Link::new(server.clone(), haft, site.clone(), news.clone(), warn));
            let known = recall(&link).await?;
            let at_once = learn == Learn::Background && (!known || server.start == Start::Eager);
            tasks.spawn(Arc::clone(&link).supervise(at_once, stop.clone()));
            links.push(link);
        }
        Ok(Self { links, tasks: Mutex::new(tasks), stop, news })
    }

    /// How each of them is.
    pub fn status(&self) -> Vec<Status> {
        self.links.iter().map(|link| link.status()).collect()
    }

    /// Starts a server if it does not run, waits until it is ready, and says how it is.
    pub async fn start(&self, name: &str) -> Result<Status, CallError> {
        let link = self.link(name)?;
        link.connection().await?;
        Ok(link.status())
    }

    /// The same for a server that has just failed, without waiting for its next turn.
    pub async fn start_anew(&self, name: &str) -> Result<Status, CallError> {
        let link = self.link(name)?;
        link.retry();
        link.settled().await;
        self.start(name).await
    }

    /// Ends a server and starts it again: with other tokens, say.
    pub async fn restart(&self, name: &str) -> Result<Status, CallError> {
        let link = self.link(name)?;
        link.end().await;
        self.start_anew(name).await
    }

    /// Starts a server of whose tools nothing is known yet. Others are left alone.
    pub async fn learn(&self, name: &str) -> Result<(), CallError> {
        let link = self.link(name)?;
        if link.with(|memory| memory.accepted.is_empty()) {
            link.connection().await?;
        }
        Ok(())
    }

    /// The same for all of them, side by side. Returns what went wrong, by server.
    pub async fn learn_all(&self) -> Vec<(String, CallError)> {
        let each = self.links.iter().map(|link| async {
            let name = link.server.name.clone();
            self.learn(&name).await.err().map(|error| (name, error))
        });
        futures_util::future::join_all(each).await.into_iter().flatten().collect()
    }

    /// Accepts what a running server says of its tools now.
    pub async fn accept(&self, name: &str) -> Result<(), CallError> {
        let link = self.link(name)?;
        let tools: Vec<_> = link.with(|memory| memory.offered.values().cloned().collect());
        let declared: Vec<Declared> =
            tools.iter().filter(|tool| tool.why().is_some()).map(|tool| tool.declared().clone()).collect();
        accept(link, &declared).await?;
        for tool in &tools {
            tool.accepted();
        }
        Ok(())
    }

    /// Whether there is such a server.
    pub fn has(&self, name: &str) -> bool {
        self.links.iter().any(|link| link.server.name == name)
    }

    fn link(&self, name: &str) -> Result<&Arc<Link>, CallError> {
        self.links.iter().find(|link| link.server.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.links.iter().map(|link| link.server.name.as_str()).collect();
            let shown = haft_core::preview::cut(&haft_core::preview::inert(name), 40);
            let hint =
                haft_core::suggest::did_you_mean(name, known).unwrap_or_else(|| "`haft mcp list` lists them".into());
            CallError::new(ErrorKind::NotFound, format!("there is no MCP server `{shown}`")).hint(hint)
        })
    }

    /// The servers with the lists of their resources and prompts, as far as they have been started.
    pub(crate) fn catalogues(&self) -> Vec<(&str, Catalogue)> {
        let each = |link: &'_ Arc<Link>| link.with(|memory| memory.catalogue.clone());
        self.links.iter().map(|link| (link.server.name.as_str(), each(link))).collect()
    }

    /// The tools of a server that are offered.
    pub(crate) fn tools_of(&self, server: &str) -> Vec<OfferedTool> {
        let Ok(link) = self.link(server) else { return Vec::new() };
        let offered = |(name, tool): (&String, &Arc<Bridged>)| OfferedTool {
            name: name.clone(),
            own_name: tool.declared().tool.clone(),
            declaration: tool.declared().value.clone(),
        };
        link.with(|memory| memory.offered.iter().map(offered).collect())
    }

    /// Starts a server whose resources and prompts have not been read yet. One that does not start offers none.
    pub(crate) async fn learn_catalogue(&self, server: &str) {
        let Ok(link) = self.link(server) else { return };
        if !link.with(|memory| memory.catalogue.is_read) {
            // Why it does not start is told to whoever calls one of its tools.
            let _ = link.connection().await;
        }
    }

    /// Hears of changes in the resources and prompts of all servers.
    pub(crate) fn news(&self) -> broadcast::Receiver<ServerNews> {
        self.news.subscribe()
    }

    /// Whether the policy keeps a caller from the resources of a server. One that has not been started has none yet.
    pub(crate) fn denies_resources(&self, server: &str, caller: &Caller) -> bool {
        let Some(haft) = self.link(server).ok().and_then(|link| link.haft.upgrade()) else { return true };
        let entry = haft.registry().get(&ReadKind::Resource.tool_name(server));
        entry.is_some_and(|entry| haft.settings().policy().admits(entry.spec(), caller).is_err())
    }

    /// Watches a resource of a server for one more client.
    pub(crate) fn watch(&self, server: &str, uri: &str) {
        let Ok(link) = self.link(server) else { return };
        let watchers = link.with(|memory| {
            let watchers = memory.watched.entry(uri.to_owned()).or_default();
            *watchers += 1;
            *watchers
        });
        if watchers == 1 {
            link.rewatch.notify_one();
        }
    }

    /// Watches it for one client less.
    pub(crate) fn unwatch(&self, server: &str, uri: &str) {
        let Ok(link) = self.link(server) else { return };
        let is_last = link.with(|memory| {
            let watchers = memory.watched.get_mut(uri)?;
            *watchers = watchers.saturating_sub(1);
            let is_last = *watchers == 0;
            if is_last {
                memory.watched.remove(uri);
            }
            Some(is_last)
        });
        if let (Some(true), Some(connection)) = (is_last, link.standing()) {
            connection.stop_watching(uri.to_owned());
            link.rewatch.notify_one();
        }
    }

    /// Ends them all, and waits for that a little while.
    pub async fn close(&self) {
        self.stop.cancel();
        let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        let all = async { while tasks.join_next().await.is_some() {} };
        // What is not done by then ends with its pipes.
        let _ = tokio::time::timeout(FAREWELL, all).await;
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// What model providers cannot take of the tools that were accepted of a server, as they are. Nothing is started.
pub async fn accepted_provider_notes(store: &Store, server: &Server) -> Result<Vec<DeclarationNote>, StoreError> {
    let declared: Vec<Declared> = store.pins(&server.name).await?.iter().map(Declared::of_pin).collect();
    let offered: Vec<&Declared> = declared.iter().filter(|one| server.offers(&one.tool)).collect();
    let names = names(&server.name, offered.iter().map(|one| one.tool.as_str()));
    let specs = offered.iter().zip(&names).filter_map(|(one, name)| one.spec(&server.name, name, server.timeout).ok());
    Ok(specs.flat_map(|spec| registration_notes(&spec)).collect())
}

/// Offers what was accepted earlier. Returns whether anything was.
async fn recall(link: &Arc<Link>) -> Result<bool, CallError> {
    let pins = link.store.pins(&link.server.name).await.map_err(|error| {
        let hint = error.hint();
        CallError::internal(error.to_string()).hint(hint)
    })?;
    let declared: Vec<Declared> = pins.iter().map(Declared::of_pin).collect();
    link.with(|memory| {
        memory.accepted = declared.iter().map(|one| (one.tool.clone(), one.clone())).collect();
    });
    let mut refused = Vec::new();
    offer(link, declared, &mut refused);
    link.with(|memory| memory.refused = refused);
    Ok(!pins.is_empty())
}
