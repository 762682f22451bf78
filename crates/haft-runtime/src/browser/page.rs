//! The page that a browser shows, as tools use it: where it is, what it says, and what is done to it.

mod act;
mod find;
mod view;

pub(crate) use act::{Came, Held, Shot};
pub(crate) use find::Named;
pub(crate) use view::{Form, Part};

use super::Browser;
use super::tabs::{Course, Tab};
use haft_core::preview::{cut, inert, size};
use haft_core::web::Target;
use haft_core::{CallError, ErrorKind};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How long one command to a page may take where nobody says otherwise.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long a download that has begun is waited for.
const DOWNLOAD: Duration = Duration::from_secs(20);
/// How long is waited for what a click sets off.
const AFTERMATH: Duration = Duration::from_secs(10);
/// How long a page may take to come to rest after it was touched.
const SETTLE: Duration = Duration::from_secs(1);

/// Until when a page is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Wait {
    /// It has come.
    #[default]
    Load,
    /// It asks for nothing more.
    Idle,
}

/// How an address was opened.
#[derive(Debug, Default)]
pub(crate) struct Opened {
    /// The status that the server answered with, where a page was asked for.
    pub(crate) status: Option<u16>,
    /// What is said where it did not come in time.
    pub(crate) late: Option<String>,
}

/// Where a page is.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) title: String,
    pub(crate) url: String,
}

/// What happened beside what was asked for.
#[derive(Debug, Default)]
pub(crate) struct Aside {
    pub(crate) warnings: Vec<String>,
    /// What the page said by it. That is the word of a stranger, so it belongs into the text, never into warnings.
    pub(crate) said: Vec<String>,
    /// Where each download is, and how large.
    pub(crate) downloads: Vec<(String, u64)>,
}

impl Browser {
    fn tab(&self) -> Result<Tab, CallError> {
        let tab = self.wire.tabs(|tabs| tabs.current().cloned()).ok_or_else(super::pool::no_page)?;
        if tab.crashed {
            return Err(CallError::failed("the page has crashed").hint("browser.navigate opens another"));
        }
        Ok(tab)
    }

    /// A command to the page.
    async fn ask(&self, tab: &Tab, method: &str, params: Value, patience: Duration) -> Result<Value, CallError> {
        let answer = self.wire.ask(Some(&tab.session), method, params, patience).await?;
        answer.map_err(|error| CallError::failed(format!("the browser says: {}", cut(&inert(&error), 300))))
    }

    /// Opens an address. What comes within the time is shown, whole or not.
    pub(crate) async fn navigate(&self, target: &Target, wait: Wait, timeout: Duration) -> Result<Opened, CallError> {
        let until = Instant::now() + timeout;
        // A page that was left broken or busy is left for good.
        self.refresh().await?;
        let tab = self.tab()?;
        self.close_others(&tab).await?;
        let went = self.ask(&tab, "Page.navigate", json!({ "url": target.to_string() }), timeout).await?;
        if let Some(error) = went["errorText"].as_str() {
            if self.wire.tabs(|tabs| tabs.has_download()) {
                return Ok(Opened::default());
            }
            let failed = self.not_reached().unwrap_or_else(|| unreached(target, error));
            return Err(failed);
        }
        let come = |tab: &Tab| tab.loaded && (wait == Wait::Load || tab.idle) && !tab.loading;
        let left = until.saturating_duration_since(Instant::now());
        // Within one document nothing is loaded. Otherwise the one that was asked for comes, and may send on to others.
        let mut begun = went["loaderId"].is_null();
        let seen = self.wire.until(left, |tabs| {
            let now = tabs.current()?;
            begun |= went["loaderId"] == now.loader.as_str() || now.session != tab.session;
            (now.crashed || (begun && come(now))).then_some(())
        });
        let late = seen.await.is_none();
        let status = self.tab()?.status;
        // Plain requests are answered by the gate where it does not let them pass.
        if let (Some(403 | 502), Some(failed)) = (status, self.not_reached()) {
            self.leave().await;
            return Err(failed);
        }
        let what = if wait == Wait::Load { "finish loading" } else { "come to rest" };
        let said = format!("the page did not {what} within {} ms; this is what was there", timeout.as_millis());
        Ok(Opened { status, late: late.then_some(said) })
    }

    /// Shows nothing: what the gate says in a page's place is not the page's word.
    async fn leave(&self) {
        let Ok(tab) = self.tab() else { return };
        let went = self.ask(&tab, "Page.navigate", json!({ "url": "about:blank" }), PATIENCE).await.unwrap_or_default();
        let blank = |tab: &&Tab| went["loaderId"] == tab.loader.as_str() && tab.loaded;
        self.wire.until(SETTLE, |tabs| tabs.current().filter(blank).map(drop)).await;
    }

    /// Why what was asked for at last was not reached, if the gate did not let it pass or found nobody there.
    fn not_reached(&self) -> Option<CallError> {
        let asked = Target::read(&self.wire.tabs(|tabs| tabs.current().map(|tab| tab.asked.clone()))?).ok()?;
        let failed = self.notes.failed(&asked.authority())?;
        let message = format!("{} cannot be opened: {}", asked.origin(), cut(&inert(&failed.why), 300));
        let (kind, hint) = if failed.denied {
            (
                ErrorKind::Denied,
                "`web.network`, `web.allow_private` and `browser.allow_private` in the configuration say who may be reached",
            )
        } else {
            (ErrorKind::Upstream, "check the address, and that the host is up")
        };
        Some(CallError::new(kind, message).hint(hint))
    }

    /// A tab that is broken is closed for another.
    async fn refresh(&self) -> Result<(), CallError> {
        let tab = self.wire.tabs(|tabs| tabs.current().cloned());
        if tab.as_ref().is_some_and(|tab| !tab.crashed) {
            return Ok(());
        }
        let known = tab.map(|tab| tab.target).unwrap_or_default();
        let failed = |error: String| CallError::failed(format!("no page could be opened: {}", inert(&error)));
        self.wire.ask(None, "Target.createTarget", json!({ "url": "about:blank" }), PATIENCE).await?.map_err(failed)?;
        let other = |tab: &&Tab| tab.target != known && !tab.loader.is_empty();
        let ready = self.wire.until(PATIENCE, |tabs| tabs.current().filter(other).map(drop)).await;
        ready.ok_or_else(|| CallError::failed("no page could be opened").hint("browser.close ends this browser"))
    }

    /// Closes all tabs but one: what was left behind could lead what is shown elsewhere.
    async fn close_others(&self, kept: &Tab) -> Result<(), CallError> {
        for target in self.wire.tabs(|tabs| tabs.others(&kept.target)) {
            // One that has gone by itself is no error.
            let _ = self.wire.ask(None, "Target.closeTarget", json!({ "targetId": target }), PATIENCE).await?;
        }
        let alone = self.wire.until(PATIENCE, |tabs| tabs.others(&kept.target).is_empty().then_some(())).await;
        alone.ok_or_else(|| {
            CallError::failed("the other tabs of this session could not be closed")
                .hint("browser.close ends this browser")
        })
    }

    /// Waits for what an action sets off: another page, if one is coming, otherwise a moment of rest.
    async fn settle(&self) {
        let Ok(tab) = self.tab() else { return };
        let rest = "new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))";
        let params = json!({ "expression": rest, "awaitPromise": true });
        // A page that is being left gives no answer, and one that is busy gives it late.
        let _ = self.wire.ask(Some(&tab.session), "Runtime.evaluate", params, SETTLE).await;
        let calm = |tab: &Tab| tab.crashed || (!tab.loading && tab.loaded);
        if self.wire.until(AFTERMATH, |tabs| tabs.current().filter(|tab| calm(tab)).map(drop)).await.is_none() {
            self.wire.tabs(super::tabs::Tabs::give_up);
        }
    }

    /// Where the page is, after what keeps it busy without end has been ended.
    pub(crate) async fn place_at_last(&self) -> Result<Place, CallError> {
        match self.place().await {
            Err(error) if error.kind == ErrorKind::Timeout => {
                let tab = self.tab()?;
                // A script may run for ever, or wait for an answer to a dialog. Both are heard where scripts run, so they
                // may be answered late or not at all.
                let _ = self.ask(&tab, "Runtime.terminateExecution", json!({}), SETTLE).await;
                let _ = self.ask(&tab, "Page.handleJavaScriptDialog", json!({ "accept": false }), SETTLE).await;
                self.place().await
            }
            place => place,
        }
    }

    /// Where the page is. A page that has come to what is neither of the web nor empty is left.
    pub(crate) async fn place(&self) -> Result<Place, CallError> {
        let tab = self.tab()?;
        let scheme = tab.url.split(':').next().unwrap_or_default();
        if !matches!(scheme, "http" | "https" | "about" | "chrome-error" | "") {
            let message = "the page went to an address that is not of the web, which is not shown; it was left";
            self.ask(&tab, "Page.navigate", json!({ "url": "about:blank" }), PATIENCE).await?;
            return Err(CallError::new(ErrorKind::Denied, message).hint("only http and https pages are opened"));
        }
        let frames = self.ask(&tab, "Page.getFrameTree", json!({}), PATIENCE).await?;
        let document = self.wire.tabs(|tabs| tabs.learn(&tab.session, &frames["frameTree"]["frame"]));
        // The origin is asked for where the page has changed nothing, and holds for that document alone.
        let told = self.look(&tab, "[document.title.slice(0, 300), window.origin]").await.unwrap_or_default();
        self.wire.tabs(|tabs| tabs.learn_origin(&tab.session, document.as_deref(), told[1].as_str()));
        let title = &told[0];
        let title = title.as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(Place { title, url: cut(&inert(&tab.url), 2000) })
    }

    /// Evaluates in a world of our own, where the page has changed nothing.
    async fn look(&self, tab: &Tab, expression: &str) -> Result<Value, CallError> {
        let world = self.world(tab).await?;
        let params = json!({ "expression": expression, "contextId": world, "returnByValue": true });
        let answer = self.ask(tab, "Runtime.evaluate", params, PATIENCE).await?;
        if answer.get("exceptionDetails").is_some() {
            return Err(CallError::failed("the page cannot be looked at").hint("try again when it has come to rest"));
        }
        Ok(answer["result"]["value"].clone())
    }

    async fn world(&self, tab: &Tab) -> Result<Value, CallError> {
        let params = json!({ "frameId": tab.target, "worldName": "haft" });
        let made = self.ask(tab, "Page.createIsolatedWorld", params, PATIENCE).await?;
        Ok(made["executionContextId"].clone())
    }

    /// What happened beside what was asked for; downloads under way are waited for, but not for ever.
    pub(crate) async fn aside(&self) -> Aside {
        let ended = self.wire.until(DOWNLOAD, |tabs| (!tabs.downloads()).then_some(())).await;
        let happened = self.wire.tabs(super::tabs::Tabs::take);
        let mut aside = Aside::default();
        if ended.is_none() && self.wire.is_open() {
            aside.warnings.push("a download is still under way; browser.content tells when it has ended".to_owned());
        }
        match happened.dialogs_seen {
            0 => {}
            1 => aside.warnings.push("the page opened a dialog, which was dismissed".to_owned()),
            seen => aside.warnings.push(format!("the page opened {seen} dialogs, which were dismissed")),
        }
        aside.said.extend(happened.dialogs.iter().map(|said| format!("Dialog, {}", inert(said))));
        for download in happened.downloads {
            let shown = cut(&inert(&download.name), 100);
            let taken = match (&self.stash, download.state) {
                (Some(stash), Course::Done) => stash.take(&download.guid, &download.name),
                _ => Err(CallError::failed("it was cancelled, or is larger than a download may be")),
            };
            match taken {
                Ok((path, bytes)) => aside.downloads.push((path.display().to_string(), bytes)),
                Err(error) => {
                    aside.warnings.push(format!("a download is not kept: {}", error.message));
                    aside.said.push(format!("Not kept: {shown}"));
                }
            }
        }
        aside.warnings.extend(self.notes.refused().into_iter().map(|why| format!("the page was refused: {why}")));
        aside
    }
}

fn unreached(target: &Target, error: &str) -> CallError {
    let message = format!("{} cannot be opened: {}", target.origin(), cut(&inert(error), 200));
    CallError::new(ErrorKind::Upstream, message).hint("check the address, and that the host is up")
}

impl Aside {
    /// What a person reads about it.
    pub(crate) fn lines(&self) -> String {
        let one = |(path, bytes): &(String, u64)| {
            let bytes = usize::try_from(*bytes).unwrap_or(usize::MAX);
            format!("Downloaded {path} ({})\n", size(bytes))
        };
        let said = self.said.iter().map(|said| format!("{said}\n"));
        self.downloads.iter().map(one).chain(said).collect()
    }
}
