//! A page that is open, and a person in front of it.

use crate::devtools::Browser;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a person looks for something before they give up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs before the page does: what a person can find on it, and what the browser forbade it.
const EYES: &str = r"
window.forbidden = [];
addEventListener('securitypolicyviolation', (event) => window.forbidden.push(`${event.violatedDirective} ${event.blockedURI}`));
window.findShown = (selector, text = '') => [...document.querySelectorAll(selector)].find((node) =>
  node.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && (node.innerText ?? '').includes(text));
window.findSpot = async (selector, text) => {
  const node = window.findShown(selector, text);
  if (!node || node.disabled) return null;
  node.scrollIntoView({ block: 'center', inline: 'nearest', behavior: 'instant' });
  const middle = () => {
    const { x, y, width, height } = node.getBoundingClientRect();
    return [x + width / 2, y + height / 2];
  };
  const [x, y] = middle();
  await new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); });
  // Nobody presses what does not stand still, or what is behind something else.
  return String(middle()) === String([x, y]) && node.contains(document.elementFromPoint(x, y)) ? [x, y] : null;
};
";

/// An open page, with storage of its own.
pub(crate) struct Visit<'b> {
    browser: &'b Browser,
    session: String,
}

/// A name that the page gives to its parts for tests.
pub(crate) fn named(test: &str) -> String {
    format!("[data-test={test}]")
}

impl<'b> Visit<'b> {
    /// Opens an address as somebody who has never been there.
    pub(crate) fn open(browser: &'b Browser, url: &str) -> Self {
        let visit = Self::blank(browser);
        visit.go(url);
        visit
    }

    /// An empty page in a profile of its own.
    pub(crate) fn blank(browser: &'b Browser) -> Self {
        let context = browser.send(None, "Target.createBrowserContext", json!({})).unwrap();
        let target = json!({
            "url": "about:blank", "browserContextId": context["browserContextId"], "width": 1280, "height": 860,
        });
        let target = browser.send(None, "Target.createTarget", target).unwrap();
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.send(None, "Target.attachToTarget", attach).unwrap();
        let visit = Self { browser, session: attached["sessionId"].as_str().unwrap().to_owned() };
        for domain in ["Page", "Runtime", "Log"] {
            visit.send(&format!("{domain}.enable"), json!({}));
        }
        visit.send("Emulation.setFocusEmulationEnabled", json!({ "enabled": true }));
        visit.send("Page.addScriptToEvaluateOnNewDocument", json!({ "source": EYES }));
        visit
    }

    pub(crate) fn send(&self, method: &str, params: Value) -> Value {
        let answer = self.browser.send(Some(&self.session), method, params);
        answer.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    pub(crate) fn go(&self, url: &str) {
        self.send("Page.navigate", json!({ "url": url }));
        self.until("the page is there", "document.readyState === 'complete' && location.protocol === 'http:'");
    }

    /// A screen of another size; with a finger instead of a mouse if it is small.
    pub(crate) fn screen(&self, width: u32, height: u32) {
        let phone = width < 500;
        let screen = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone });
        self.send("Emulation.setDeviceMetricsOverride", screen);
        self.send("Emulation.setTouchEmulationEnabled", json!({ "enabled": phone }));
    }

    pub(crate) fn scheme(&self, scheme: &str) {
        let features = json!([
            { "name": "prefers-color-scheme", "value": scheme },
            { "name": "prefers-reduced-motion", "value": "reduce" },
        ]);
        self.send("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    fn tried(&self, script: &str) -> Result<Value, String> {
        let params = json!({ "expression": script, "returnByValue": true, "awaitPromise": true, "userGesture": true });
        let mut answer = self.browser.send(Some(&self.session), "Runtime.evaluate", params)?;
        match answer.get("exceptionDetails") {
            Some(details) => Err(format!("{} in {script}", details["exception"]["description"])),
            None => Ok(answer["result"]["value"].take()),
        }
    }

    /// What a script says.
    pub(crate) fn eval(&self, script: &str) -> Value {
        self.tried(script).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Waits until a script says something that is not false or null.
    pub(crate) fn until(&self, what: &str, script: &str) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            // While the page is being replaced there is nothing to ask.
            let found = self.tried(script).unwrap_or_default();
            if !found.is_null() && found != false {
                return found;
            }
            let shows = || format!("--- the page shows\n{}\n{:?}", self.text(), self.complaints());
            assert!(Instant::now() < end, "{what}: {script}\n{}", shows());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// All text on the page that can be seen.
    pub(crate) fn text(&self) -> String {
        self.tried("document.body.innerText").unwrap_or_default().as_str().unwrap_or_default().to_owned()
    }

    /// Waits until something shows that text, and returns all of its text.
    pub(crate) fn see(&self, selector: &str, text: &str) -> String {
        let script = format!("findShown({}, {})?.innerText", json!(selector), json!(text));
        self.until("nothing like it is to be seen", &script).as_str().unwrap().to_owned()
    }

    /// Waits until nothing shows that text.
    pub(crate) fn see_no(&self, selector: &str, text: &str) {
        self.until("it is still there", &format!("!findShown({}, {})", json!(selector), json!(text)));
    }

    fn spot(&self, selector: &str, text: &str) -> (Value, Value) {
        let script = format!("findSpot({}, {})", json!(selector), json!(text));
        let spot = self.until("it cannot be pressed", &script);
        (spot[0].clone(), spot[1].clone())
    }

    /// Presses something with the mouse, once it can be pressed and nothing is over it.
    pub(crate) fn click(&self, selector: &str) {
        self.click_on(selector, "");
    }

    /// The same, for the one with that text.
    pub(crate) fn click_on(&self, selector: &str, text: &str) {
        let (x, y) = self.spot(selector, text);
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "clickCount": 1 });
            self.send("Input.dispatchMouseEvent", event);
        }
    }

    /// Presses something with a finger.
    pub(crate) fn tap(&self, selector: &str) {
        let (x, y) = self.spot(selector, "");
        self.send("Input.dispatchTouchEvent", json!({ "type": "touchStart", "touchPoints": [{ "x": x, "y": y }] }));
        self.send("Input.dispatchTouchEvent", json!({ "type": "touchEnd", "touchPoints": [] }));
    }

    /// Presses a key.
    pub(crate) fn key(&self, key: &str) {
        let (code, text) = match key {
            "Enter" => (13, "\r"),
            "Escape" => (27, ""),
            "Tab" => (9, ""),
            letter => (0, letter),
        };
        let mut event = json!({ "type": "keyDown", "key": key, "windowsVirtualKeyCode": code, "text": text });
        self.send("Input.dispatchKeyEvent", event.clone());
        (event["type"], event["text"]) = ("keyUp".into(), "".into());
        self.send("Input.dispatchKeyEvent", event);
    }

    /// Writes where the cursor is.
    pub(crate) fn write(&self, text: &str) {
        self.send("Input.insertText", json!({ "text": text }));
    }

    /// Puts a text in the place of the one in a field.
    pub(crate) fn fill(&self, selector: &str, text: &str) {
        self.click(selector);
        self.eval("document.activeElement.select()");
        self.write(text);
    }

    /// What the browser held against the page: errors in its scripts, and what its policy forbade. A request that was
    /// refused is none of it.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let told = self.browser.heard(&self.session, &["Runtime.exceptionThrown", "Log.entryAdded"]);
        let mut found: Vec<String> = told
            .iter()
            .filter(|said| said["params"]["entry"]["source"] != "network")
            .map(|said| said["params"].to_string())
            .collect();
        let forbidden = self.tried("window.forbidden").unwrap_or_default();
        found.extend(forbidden.as_array().into_iter().flatten().map(ToString::to_string));
        found
    }

    /// The person leaves: nothing may have gone wrong behind what they saw.
    pub(crate) fn leave(self) {
        assert_eq!(self.complaints(), Vec::<String>::new());
    }

    /// Keeps a picture for the documentation, where somebody wants new ones.
    pub(crate) fn picture(&self, name: &str) {
        if std::env::var_os("HAFT_SCREENSHOTS").is_none_or(|value| value != "1") {
            return;
        }
        let shot = self.send("Page.captureScreenshot", json!({ "format": "png", "optimizeForSpeed": false }));
        let bytes = BASE64.decode(shot["data"].as_str().unwrap()).unwrap();
        assert!(bytes.len() < 150_000, "{name} is too large: {}", bytes.len());
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join("docs/images");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(name).with_extension("png"), bytes).unwrap();
    }
}
