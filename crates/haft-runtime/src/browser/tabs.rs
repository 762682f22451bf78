//! What a browser's own words mean for its tabs: which page is shown, how far it has come, what it asked and what it
//! downloads. Pure: an event goes in, commands come out.

use super::visits::Visits;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;

/// How many tabs stay open; what pages open beyond that is closed.
const TABS_MAX: usize = 5;
/// How many dialogs of one call are kept.
const DIALOGS_KEPT: usize = 5;
/// After so many dialogs in one call, what runs in the page is ended.
const DIALOGS_MAX: usize = 20;
/// How many downloads of one call are taken; more are cancelled.
const DOWNLOADS_MAX: usize = 8;
/// The longest text that is kept of a dialog.
const SAID_MAX: usize = 300;

/// A command that is to be sent: the session it is for, the method, the parameters.
pub(super) type Command = (Option<String>, &'static str, Value);

/// One page.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each told by an event of its own")]
pub(super) struct Tab {
    /// The target, which is also its main frame.
    pub(super) target: String,
    /// The session by which it is spoken to.
    pub(super) session: String,
    /// Its address.
    pub(super) url: String,
    /// The origin of the document that it shows, once somebody has asked.
    pub(super) origin: String,
    /// The world of that document's own scripts, once somebody has asked.
    pub(super) context: String,
    /// The document that it shows.
    pub(super) loader: String,
    /// Whether that document has come.
    pub(super) loaded: bool,
    /// Whether nothing of it is under way any more.
    pub(super) idle: bool,
    /// Whether another one is coming.
    pub(super) loading: bool,
    /// Whether it is broken.
    pub(super) crashed: bool,
    /// The address that a document was asked for at last, after all that were sent on from there.
    pub(super) asked: String,
    /// The status that it came with, if it has.
    pub(super) status: Option<u16>,
}

/// A file that a page gives.
#[derive(Debug, Clone)]
pub(super) struct Download {
    /// Under this name it lies there.
    pub(super) guid: String,
    /// The page would call it this.
    pub(super) name: String,
    /// Where it stands.
    pub(super) state: Course,
}

/// Where a download stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    Running,
    Done,
    Cancelled,
}

/// What belongs to one call, and is taken at its end.
#[derive(Debug, Default)]
pub(super) struct Happened {
    /// What dialogs said, as far as it is kept.
    pub(super) dialogs: Vec<String>,
    /// How many there were.
    pub(super) dialogs_seen: usize,
    /// The downloads that have ended.
    pub(super) downloads: Vec<Download>,
}

/// The tabs of one browser.
#[derive(Debug)]
pub(super) struct Tabs {
    open: Vec<Tab>,
    happened: Happened,
    running: VecDeque<Download>,
    viewport: (u32, u32),
    download_max: u64,
    visits: Arc<Visits>,
}

impl Tab {
    fn show(&mut self, frame: &Value) {
        let part = |name: &str| frame[name].as_str().unwrap_or_default();
        if self.loader != part("loaderId") {
            part("loaderId").clone_into(&mut self.loader);
            // What a frame is said to have for an origin is made of its address alone.
            self.origin.clear();
        }
        self.url = format!("{}{}", part("url"), part("urlFragment"));
    }
}

impl Tabs {
    pub(super) fn new(viewport: (u32, u32), download_max: u64, visits: Arc<Visits>) -> Self {
        let (open, happened, running) = (Vec::new(), Happened::default(), VecDeque::new());
        Self { open, happened, running, viewport, download_max, visits }
    }

    /// The page that is shown: the one opened last.
    pub(super) fn current(&self) -> Option<&Tab> {
        self.open.last()
    }

    /// The targets of all tabs but one.
    pub(super) fn others(&self, kept: &str) -> Vec<String> {
        self.open.iter().filter(|tab| tab.target != kept).map(|tab| tab.target.clone()).collect()
    }

    /// Takes in what a tab's main frame is said to be at this moment, and says which document that is.
    pub(super) fn learn(&mut self, session: &str, frame: &Value) -> Option<String> {
        let tab = self.open.iter_mut().find(|tab| tab.session == session)?;
        tab.show(frame);
        Some(tab.loader.clone())
    }

    /// Takes in the origin of a document, if that is the one which is shown.
    pub(super) fn learn_origin(&mut self, session: &str, document: Option<&str>, origin: Option<&str>) {
        let shown = |tab: &&mut Tab| tab.session == session && Some(tab.loader.as_str()) == document;
        if let Some(tab) = self.open.iter_mut().find(shown) {
            origin.unwrap_or_default().clone_into(&mut tab.origin);
        }
    }

    /// The tab that is spoken to by a session.
    pub(super) fn of(&self, session: &str) -> Option<&Tab> {
        self.open.iter().find(|tab| tab.session == session)
    }

    /// What has not come by now is not waited for again.
    pub(super) fn give_up(&mut self) {
        if let Some(tab) = self.open.last_mut() {
            tab.loading = false;
        }
    }

    /// Whether some download is under way.
    pub(super) fn downloads(&self) -> bool {
        !self.running.is_empty()
    }

    /// What has happened since this was asked last.
    pub(super) fn take(&mut self) -> Happened {
        std::mem::take(&mut self.happened)
    }

    /// Whether a download has ended or begun since [`Self::take`].
    pub(super) fn has_download(&self) -> bool {
        self.downloads() || !self.happened.downloads.is_empty()
    }

    fn tab(&mut self, event: &Value) -> Option<&mut Tab> {
        let session = event["sessionId"].as_str()?;
        self.open.iter_mut().find(|tab| tab.session == session)
    }

    /// The tab whose main frame an event is about.
    fn whole(&mut self, event: &Value) -> Option<&mut Tab> {
        let frame = event["params"]["frameId"].as_str()?;
        self.tab(event).filter(|tab| tab.target == frame)
    }

    /// Takes in what the browser says.
    pub(super) fn hear(&mut self, event: &Value) -> Vec<Command> {
        let params = &event["params"];
        match event["method"].as_str().unwrap_or_default() {
            "Target.attachedToTarget" => return self.attached(params),
            "Target.detachedFromTarget" => self.detached(params),
            "Inspector.targetCrashed" => self.crashed(event),
            "Fetch.requestPaused" => return self.paused(event),
            "Network.responseReceived" if params["type"] == "Document" => self.came(event),
            "Page.frameNavigated" => self.navigated(event),
            "Runtime.executionContextCreated" => self.context(event),
            "Page.navigatedWithinDocument" => self.moved(event),
            "Page.lifecycleEvent" => self.lifecycle(event),
            "Page.frameStartedLoading" => self.loading(event, true),
            "Page.frameRequestedNavigation" if params["disposition"] == "currentTab" => self.loading(event, true),
            "Page.frameStoppedLoading" => self.loading(event, false),
            "Page.javascriptDialogOpening" => return self.dialog(event),
            "Browser.downloadWillBegin" => return self.download(params),
            "Browser.downloadProgress" => return self.progress(params),
            _ => {}
        }
        Vec::new()
    }

    fn attached(&mut self, params: &Value) -> Vec<Command> {
        let (Some(session), Some(target)) = (params["sessionId"].as_str(), params["targetInfo"]["targetId"].as_str())
        else {
            return Vec::new();
        };
        let to = |method: &'static str, params: Value| (Some(session.to_owned()), method, params);
        let go = to("Runtime.runIfWaitingForDebugger", json!({}));
        if params["targetInfo"]["type"] != "page" {
            return vec![go];
        }
        if self.open.len() >= TABS_MAX {
            // It may have begun to go somewhere when it is closed.
            self.visits.stray();
            return vec![go, (None, "Target.closeTarget", json!({ "targetId": target }))];
        }
        let url = params["targetInfo"]["url"].as_str().unwrap_or_default().to_owned();
        self.open.push(Tab { target: target.to_owned(), session: session.to_owned(), url, ..Tab::default() });
        let (width, height) = self.viewport;
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        vec![
            to("Page.enable", json!({})),
            to("Page.setLifecycleEventsEnabled", json!({ "enabled": true })),
            to("Inspector.enable", json!({})),
            to("Emulation.setDeviceMetricsOverride", metrics),
            // Nothing of what comes is kept for us.
            to("Network.enable", json!({ "maxTotalBufferSize": 0, "maxResourceBufferSize": 0 })),
            to("Fetch.enable", json!({ "patterns": [document()] })),
            go,
        ]
    }

    fn detached(&mut self, params: &Value) {
        self.open.retain(|tab| params["sessionId"] != tab.session.as_str());
    }

    fn crashed(&mut self, event: &Value) {
        if let Some(tab) = self.tab(event) {
            (tab.crashed, tab.loading) = (true, false);
        }
    }

    /// A document has come.
    fn came(&mut self, event: &Value) {
        let status = event["params"]["response"]["status"].as_u64().and_then(|status| u16::try_from(status).ok());
        if let Some(tab) = self.whole(event) {
            tab.status = status;
        }
    }

    /// A document is asked for. It goes on at once; where it leads is known before anything of it runs.
    fn paused(&mut self, event: &Value) -> Vec<Command> {
        let (params, visits) = (&event["params"], Arc::clone(&self.visits));
        if let Some(tab) = self.whole(event) {
            tab.status = None;
            params["request"]["url"].as_str().unwrap_or_default().clone_into(&mut tab.asked);
            visits.go(&tab.asked);
        }
        let session = event["sessionId"].as_str().map(str::to_owned);
        vec![(session, "Fetch.continueRequest", json!({ "requestId": params["requestId"] }))]
    }

    fn navigated(&mut self, event: &Value) {
        let frame = &event["params"]["frame"];
        if frame.get("parentId").is_some() {
            return;
        }
        if let Some(tab) = self.tab(event) {
            if frame["loaderId"] != tab.loader.as_str() {
                (tab.loaded, tab.idle) = (false, false);
            }
            tab.show(frame);
            tab.crashed = false;
        }
    }

    fn context(&mut self, event: &Value) {
        let context = &event["params"]["context"];
        let (frame, own) = (&context["auxData"]["frameId"], &context["auxData"]["isDefault"]);
        if let Some(tab) = self.tab(event).filter(|tab| *own == true && *frame == tab.target.as_str()) {
            context["uniqueId"].as_str().unwrap_or_default().clone_into(&mut tab.context);
        }
    }

    fn moved(&mut self, event: &Value) {
        let url = event["params"]["url"].as_str().unwrap_or_default().to_owned();
        if let Some(tab) = self.whole(event) {
            tab.url = url;
        }
    }

    fn lifecycle(&mut self, event: &Value) {
        let (loader, name) = (event["params"]["loaderId"].clone(), event["params"]["name"].clone());
        let Some(tab) = self.whole(event) else { return };
        if name == "init" || tab.loader.is_empty() {
            tab.origin.clear();
            loader.as_str().unwrap_or_default().clone_into(&mut tab.loader);
            (tab.loaded, tab.idle) = (false, false);
        }
        if loader == tab.loader.as_str() {
            tab.loaded |= name == "load";
            tab.idle |= name == "networkIdle";
        }
    }

    fn loading(&mut self, event: &Value, begins: bool) {
        if let Some(tab) = self.whole(event) {
            tab.loading = begins;
        }
    }

    /// Nobody is there who could answer: every question is answered with no, and leaving a page with yes.
    fn dialog(&mut self, event: &Value) -> Vec<Command> {
        let session = event["sessionId"].as_str().map(str::to_owned);
        let params = &event["params"];
        let kind = params["type"].as_str().unwrap_or("dialog");
        let leaves = kind == "beforeunload";
        let happened = &mut self.happened;
        if !leaves {
            happened.dialogs_seen += 1;
            if happened.dialogs.len() < DIALOGS_KEPT {
                let said = haft_core::preview::cut(params["message"].as_str().unwrap_or_default(), SAID_MAX);
                happened.dialogs.push(format!("{kind}: {said}"));
            }
        }
        let answer = (session.clone(), "Page.handleJavaScriptDialog", json!({ "accept": leaves }));
        if happened.dialogs_seen > DIALOGS_MAX {
            return vec![(session, "Runtime.terminateExecution", json!({})), answer];
        }
        vec![answer]
    }

    fn download(&mut self, params: &Value) -> Vec<Command> {
        let text = |name: &str| params[name].as_str().unwrap_or_default().to_owned();
        let (guid, frame) = (text("guid"), text("frameId"));
        if let Some(tab) = self.open.iter_mut().find(|tab| tab.target == frame) {
            // What would have been a page is a file.
            tab.loading = false;
        }
        if self.running.len() + self.happened.downloads.len() >= DOWNLOADS_MAX {
            return vec![(None, "Browser.cancelDownload", json!({ "guid": guid }))];
        }
        self.running.push_back(Download { guid, name: text("suggestedFilename"), state: Course::Running });
        Vec::new()
    }

    fn progress(&mut self, params: &Value) -> Vec<Command> {
        let Some(at) = self.running.iter().position(|one| params["guid"] == one.guid.as_str()) else {
            return Vec::new();
        };
        let large = |name: &str| params[name].as_f64().is_some_and(|bytes| bytes > as_float(self.download_max));
        let state = match params["state"].as_str() {
            Some("completed") => Course::Done,
            Some("canceled") => Course::Cancelled,
            _ if large("receivedBytes") || large("totalBytes") => {
                return vec![(None, "Browser.cancelDownload", json!({ "guid": params["guid"] }))];
            }
            _ => return Vec::new(),
        };
        if let Some(download) = self.running.remove(at) {
            self.happened.downloads.push(Download { state, ..download });
        }
        Vec::new()
    }
}

/// Which requests are looked at on their way: those for documents.
fn document() -> Value {
    json!({ "urlPattern": "*", "resourceType": "Document", "requestStage": "Request" })
}

/// Exact for every size that a download can have.
#[expect(clippy::cast_precision_loss, reason = "a bound of megabytes")]
fn as_float(bytes: u64) -> f64 {
    bytes as f64
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "a test reads better with its JSON in place")]
mod tests {
    use super::*;

    fn tabs() -> Tabs {
        Tabs::new((1280, 800), 1000, Arc::default())
    }

    fn attach(tabs: &mut Tabs, number: usize) -> Vec<Command> {
        let info = json!({ "targetId": format!("T{number}"), "type": "page", "url": "about:blank" });
        let params = json!({ "sessionId": format!("S{number}"), "targetInfo": info, "waitingForDebugger": true });
        tabs.hear(&json!({ "method": "Target.attachedToTarget", "params": params }))
    }

    fn said(tabs: &mut Tabs, method: &str, params: Value) -> Vec<Command> {
        tabs.hear(&json!({ "method": method, "sessionId": "S1", "params": params }))
    }

    #[test]
    fn what_a_page_opens_is_shown_and_too_much_is_closed() {
        let mut tabs = tabs();
        for number in 1..=TABS_MAX {
            let commands = attach(&mut tabs, number);
            assert!(commands.iter().any(|(_, method, _)| *method == "Runtime.runIfWaitingForDebugger"));
            assert_eq!(tabs.current().unwrap().target, format!("T{number}"));
        }
        let commands = attach(&mut tabs, 99);
        assert!(commands.iter().any(|(_, method, _)| *method == "Target.closeTarget"));
        assert_eq!(tabs.current().unwrap().target, format!("T{TABS_MAX}"));
        let gone = json!({ "sessionId": format!("S{TABS_MAX}") });
        tabs.hear(&json!({ "method": "Target.detachedFromTarget", "params": gone }));
        assert_eq!(tabs.current().unwrap().target, format!("T{}", TABS_MAX - 1));
    }

    #[test]
    fn a_document_has_come_when_its_own_load_is_told() {
        let mut tabs = tabs();
        attach(&mut tabs, 1);
        let life = |loader: &str, name: &str| json!({ "frameId": "T1", "loaderId": loader, "name": name });
        said(&mut tabs, "Page.lifecycleEvent", life("L1", "init"));
        said(
            &mut tabs,
            "Page.frameNavigated",
            json!({ "frame": { "id": "T1", "loaderId": "L1", "url": "http://a/" } }),
        );
        said(&mut tabs, "Page.lifecycleEvent", life("L0", "load"));
        assert!(!tabs.current().unwrap().loaded, "that was the one before");
        said(&mut tabs, "Page.lifecycleEvent", json!({ "frameId": "F", "loaderId": "L1", "name": "load" }));
        assert!(!tabs.current().unwrap().loaded, "that was a frame in it");
        said(&mut tabs, "Page.lifecycleEvent", life("L1", "load"));
        assert!(tabs.current().unwrap().loaded);
        assert_eq!(tabs.current().unwrap().url, "http://a/");
        let frame = json!({ "id": "F", "parentId": "T1", "loaderId": "L9", "url": "http://b/" });
        said(&mut tabs, "Page.frameNavigated", json!({ "frame": frame }));
        assert_eq!(tabs.current().unwrap().url, "http://a/", "a frame in it is not it");
    }

    #[test]
    fn where_a_document_leads_is_known_before_it_goes_on_and_how_it_came_after() {
        let mut tabs = tabs();
        attach(&mut tabs, 1);
        let own = haft_core::web::Target::read("http://127.0.0.1:8080/").unwrap();
        let asks = |frame: &str, url: &str| json!({ "requestId": "R", "frameId": frame, "request": { "url": url } });
        let went = said(&mut tabs, "Fetch.requestPaused", asks("T1", "http://127.0.0.1:8080/a"));
        assert_eq!(went, [(Some("S1".to_owned()), "Fetch.continueRequest", json!({ "requestId": "R" }))]);
        said(&mut tabs, "Fetch.requestPaused", asks("F", "https://elsewhere.example/"));
        assert!(tabs.visits.only(&own), "a frame in a page is not the page");
        let came = json!({ "type": "Document", "frameId": "T1", "response": { "status": 404 } });
        said(&mut tabs, "Network.responseReceived", came);
        let tab = tabs.current().unwrap();
        assert_eq!((tab.asked.as_str(), tab.status), ("http://127.0.0.1:8080/a", Some(404)));
        said(&mut tabs, "Fetch.requestPaused", asks("T1", "https://elsewhere.example/"));
        assert!(!tabs.visits.only(&own));
        assert_eq!(tabs.current().unwrap().status, None, "the next has not come");
    }

    #[test]
    fn an_origin_is_that_of_one_document() {
        let mut tabs = tabs();
        attach(&mut tabs, 1);
        let frame =
            |loader: &str| json!({ "id": "T1", "loaderId": loader, "url": "about:blank", "securityOrigin": "://" });
        let first = tabs.learn("S1", &frame("L1"));
        said(&mut tabs, "Page.frameNavigated", json!({ "frame": frame("L2") }));
        tabs.learn_origin("S1", first.as_deref(), Some("http://a"));
        assert_eq!(tabs.current().unwrap().origin, "", "that was the one before");
        let second = tabs.learn("S1", &frame("L2"));
        tabs.learn_origin("S1", second.as_deref(), Some("http://b"));
        assert_eq!(tabs.current().unwrap().origin, "http://b");
        tabs.learn("S1", &frame("L2"));
        assert_eq!(tabs.current().unwrap().origin, "http://b");
        tabs.learn("S1", &frame("L3"));
        assert_eq!(tabs.current().unwrap().origin, "");
    }

    #[test]
    fn dialogs_are_answered_and_an_endless_row_of_them_is_ended() {
        let mut tabs = tabs();
        attach(&mut tabs, 1);
        let ask = json!({ "type": "confirm", "message": "Send it?" });
        let answers = said(&mut tabs, "Page.javascriptDialogOpening", ask.clone());
        assert_eq!(answers, [(Some("S1".to_owned()), "Page.handleJavaScriptDialog", json!({ "accept": false }))]);
        let leave = said(&mut tabs, "Page.javascriptDialogOpening", json!({ "type": "beforeunload", "message": "" }));
        assert_eq!(leave[0].2, json!({ "accept": true }));
        for _ in 0..DIALOGS_MAX {
            said(&mut tabs, "Page.javascriptDialogOpening", ask.clone());
        }
        let ended = said(&mut tabs, "Page.javascriptDialogOpening", ask.clone());
        assert_eq!(ended[0].1, "Runtime.terminateExecution");
        let happened = tabs.take();
        assert_eq!((happened.dialogs.len(), happened.dialogs_seen), (DIALOGS_KEPT, DIALOGS_MAX + 2));
        assert_eq!(happened.dialogs[0], "confirm: Send it?");
        assert_eq!(said(&mut tabs, "Page.javascriptDialogOpening", ask).len(), 1, "the next call begins anew");
    }

    #[test]
    fn downloads_are_bounded_in_size_and_number() {
        let mut tabs = tabs();
        let begin = |tabs: &mut Tabs, guid: &str| {
            said(tabs, "Browser.downloadWillBegin", json!({ "guid": guid, "suggestedFilename": "a.txt" }))
        };
        let now = |guid: &str, received: u64, state: &str| json!({ "guid": guid, "receivedBytes": received, "totalBytes": 0, "state": state });
        assert!(begin(&mut tabs, "one").is_empty() && tabs.downloads());
        assert!(said(&mut tabs, "Browser.downloadProgress", now("one", 1000, "inProgress")).is_empty());
        let cancel = said(&mut tabs, "Browser.downloadProgress", now("one", 1001, "inProgress"));
        assert_eq!(cancel, [(None, "Browser.cancelDownload", json!({ "guid": "one" }))]);
        said(&mut tabs, "Browser.downloadProgress", now("one", 1001, "canceled"));
        for number in 1..DOWNLOADS_MAX {
            assert!(begin(&mut tabs, &number.to_string()).is_empty());
        }
        assert_eq!(begin(&mut tabs, "more")[0].1, "Browser.cancelDownload");
        assert_eq!(tabs.take().downloads[0].state, Course::Cancelled);
    }
}
