//! What is done to a page: clicks and keys as a person would give them, scripts, pictures.

use super::super::errand::owner;
use super::super::tabs::Tab;
use super::super::{Browser, page::find::Named};
use super::PATIENCE;
use base64::Engine as _;
use haft_core::preview::{cut, inert};
use haft_core::{CallError, ErrorKind};
use serde_json::{Value, json};
use std::time::Duration;

/// The largest side of a picture.
const SIDE_MAX: f64 = 8000.0;
/// The largest picture, in bytes.
const PICTURE_MAX: usize = 20 << 20;

/// What a picture is to show.
#[derive(Debug, Clone)]
pub(crate) enum Shot {
    Window,
    Whole,
    Element(Named),
}

/// A picture.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) mime: &'static str,
    pub(crate) base64: String,
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) bytes: usize,
    pub(crate) cut: bool,
}

/// A page that was checked: what is done is done to it, or not at all.
#[derive(Debug)]
pub(crate) struct Held(Tab);

/// What came of a script.
#[derive(Debug)]
pub(crate) enum Came {
    Value(Value),
    /// What it threw, in the page's own words.
    Thrown(String),
}

/// Whether a click in the middle of an element meets it, or what lies over it.
const MEETS: &str = "function (x, y) {
    const root = this.getRootNode();
    const hit = (root.elementFromPoint ? root : document).elementFromPoint(x, y);
    if (!hit) return false;
    const label = hit.closest && hit.closest('label');
    const meets = hit === this || this.contains(hit) || hit.contains(this) || (label && label.control === this);
    return Boolean(meets);
}";

/// Makes a field ready to be typed into, or says why it cannot be. What is a choice is chosen.
const READY: &str = "function (text, clear) {
    const tag = this.tagName;
    if (this.disabled) return 'it is disabled';
    if (this.readOnly) return 'it can only be read';
    if (tag === 'INPUT' && ['file'].includes(this.type)) return 'it takes files, and those are not given to pages';
    if (tag === 'SELECT') {
        const plain = text => text.replace(/\\s+/g, ' ').trim().toLowerCase();
        const option = [...this.options].find(one => plain(one.label) === plain(text) || one.value === text);
        if (!option) return 'it has no such choice';
        this.value = option.value;
        this.dispatchEvent(new Event('input', { bubbles: true }));
        this.dispatchEvent(new Event('change', { bubbles: true }));
        return 'chosen';
    }
    if (tag !== 'INPUT' && tag !== 'TEXTAREA' && !this.isContentEditable) return 'it takes no text';
    this.focus();
    if (this.isContentEditable) {
        const range = document.createRange();
        range.selectNodeContents(this);
        if (!clear) range.collapse(false);
        const selection = getSelection();
        selection.removeAllRanges();
        selection.addRange(range);
    } else if (clear) {
        this.select();
    } else if (this.setSelectionRange && /^(text|search|url|tel|password|)$/.test(this.type) || tag === 'TEXTAREA') {
        this.setSelectionRange(this.value.length, this.value.length);
    }
    return null;
}";

impl Browser {
    /// The page must still be where the call was decided to act.
    pub(crate) async fn still_at(&self, authority: &str) -> Result<Held, CallError> {
        // First the world that scripts would run in, then whose it is: should another document come in between, the
        // world has gone with its own.
        let tab = self.tab()?;
        let session = tab.session.clone();
        self.ask(&tab, "Runtime.enable", json!({}), PATIENCE).await?;
        let world = self.wire.tabs(|tabs| tabs.of(&session).map(|tab| tab.context.clone())).unwrap_or_default();
        self.ask(&tab, "Runtime.disable", json!({}), PATIENCE).await?;
        self.place().await?;
        let tab = Tab { context: world, ..self.tab()? };
        if tab.session == session && owner(&tab).is_some_and(|target| target.authority() == authority) {
            return Ok(Held(tab));
        }
        Err(moved("nothing was done"))
    }

    /// Whether what is shown is still the document that was checked.
    fn holds(&self, tab: &Tab, done: &str) -> Result<(), CallError> {
        let now = self.tab()?;
        if now.session == tab.session && now.loader == tab.loader { Ok(()) } else { Err(moved(done)) }
    }

    /// Clicks an element in its middle.
    pub(crate) async fn click(&self, Held(tab): &Held, named: &Named) -> Result<(), CallError> {
        let element = self.element(tab, named).await?;
        let [x, y] = self.middle(tab, element, named).await?;
        let meets = self.with(tab, element, MEETS, &[json!(x), json!(y)]).await?;
        if meets != true {
            let message = format!("`{}` cannot be clicked: something else lies over it", named.shown());
            return Err(CallError::conflict(message).hint("browser.screenshot shows what is there"));
        }
        for (kind, buttons) in [("mouseMoved", 0), ("mousePressed", 1), ("mouseReleased", 0)] {
            let button = if kind == "mouseMoved" { "none" } else { "left" };
            let event = json!({ "type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": 1 });
            // A button that is down has to come up again, wherever that is.
            if kind != "mouseReleased" {
                self.holds(tab, "nothing was clicked")?;
            }
            self.input(tab, "Input.dispatchMouseEvent", event).await?;
        }
        self.settle().await;
        Ok(())
    }

    /// Types into a field.
    pub(crate) async fn type_into(
        &self,
        Held(tab): &Held,
        named: &Named,
        text: &str,
        clear: bool,
        submit: bool,
    ) -> Result<(), CallError> {
        let element = self.element(tab, named).await?;
        // What cannot be scrolled to may still take text.
        let scroll = json!({ "backendNodeId": element });
        let _ = self.wire.ask(Some(&tab.session), "DOM.scrollIntoViewIfNeeded", scroll, PATIENCE).await?;
        self.holds(tab, "nothing was typed")?;
        let ready = self.with(tab, element, READY, &[json!(text), json!(clear)]).await?;
        self.holds(tab, "nothing was typed")?;
        match ready.as_str() {
            Some("chosen") => {}
            Some(why) => {
                return Err(CallError::failed(format!("`{}` cannot be typed into: {}", named.shown(), inert(why))));
            }
            None if text.is_empty() && clear => self.key(tab, "Delete", "Delete", 46, None).await?,
            None => self.input(tab, "Input.insertText", json!({ "text": text })).await?,
        }
        if submit {
            self.holds(tab, "the text was typed, but Enter was not pressed")?;
            self.key(tab, "Enter", "Enter", 13, Some("\r")).await?;
        }
        self.settle().await;
        Ok(())
    }

    async fn key(&self, tab: &Tab, key: &str, code: &str, number: u32, text: Option<&str>) -> Result<(), CallError> {
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({ "type": kind, "key": key, "code": code, "windowsVirtualKeyCode": number });
            if let Some(text) = text.filter(|_| kind == "keyDown") {
                event["text"] = text.into();
            }
            self.input(tab, "Input.dispatchKeyEvent", event).await?;
        }
        Ok(())
    }

    /// Input that the page answers by going away is input all the same.
    async fn input(&self, tab: &Tab, method: &str, event: Value) -> Result<(), CallError> {
        self.wire.ask(Some(&tab.session), method, event, PATIENCE).await.map(drop)
    }

    async fn middle(&self, tab: &Tab, element: i64, named: &Named) -> Result<[f64; 2], CallError> {
        let [x, y, width, height] = self.frame(tab, element, named).await?;
        Ok([x + width / 2.0, y + height / 2.0])
    }

    /// Where an element is in the window: left, top, width, height.
    async fn frame(&self, tab: &Tab, element: i64, named: &Named) -> Result<[f64; 4], CallError> {
        let unseen = || {
            CallError::failed(format!("`{}` is not visible on the page", named.shown()))
                .hint("browser.screenshot shows what is")
        };
        let node = json!({ "backendNodeId": element });
        self.ask(tab, "DOM.scrollIntoViewIfNeeded", node.clone(), PATIENCE).await.map_err(|_| unseen())?;
        let quads = self.ask(tab, "DOM.getContentQuads", node, PATIENCE).await.map_err(|_| unseen())?;
        let corners: Vec<f64> = quads["quads"][0].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
        let [x0, y0, x1, y1, x2, y2, x3, y3] = corners[..] else { return Err(unseen()) };
        let (left, right) = (x0.min(x1).min(x2).min(x3), x0.max(x1).max(x2).max(x3));
        let (top, bottom) = (y0.min(y1).min(y2).min(y3), y0.max(y1).max(y2).max(y3));
        if right - left < 1.0 || bottom - top < 1.0 {
            return Err(unseen());
        }
        Ok([left, top, right - left, bottom - top])
    }

    /// Evaluates a script in the page, as the page itself could.
    pub(crate) async fn evaluate(
        &self,
        Held(tab): &Held,
        expression: &str,
        patience: Duration,
    ) -> Result<Came, CallError> {
        self.holds(tab, "nothing was evaluated")?;
        let millis = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        let params = json!({
            "expression": expression,
            "uniqueContextId": tab.context,
            "awaitPromise": true,
            "returnByValue": true,
            "timeout": millis,
        });
        let begun = std::time::Instant::now();
        let endless = || CallError::new(ErrorKind::Timeout, format!("the script did not end within {millis} ms"));
        let answer = self.wire.ask(Some(&tab.session), "Runtime.evaluate", params, patience).await;
        let answer = match answer {
            Err(late) if late.kind == ErrorKind::Timeout => {
                // What runs without end would keep the page from ever answering again.
                let _ = self.wire.ask(Some(&tab.session), "Runtime.terminateExecution", json!({}), PATIENCE).await;
                return Err(endless());
            }
            answer => answer?,
        };
        let failed = |why: &str| CallError::failed(format!("the script failed: {}", cut(&inert(why), 500)));
        let answer = answer.map_err(|error| match error.as_str() {
            "Object reference chain is too long" | "Object couldn't be returned by value" => {
                failed("its result cannot be given as JSON")
            }
            "uniqueContextId not found" | "Cannot find context with specified id" => moved("nothing was evaluated"),
            // The browser itself ends what takes longer than it was given, and has no better words for it.
            "Internal error" if begun.elapsed() * 10 >= patience * 9 => endless(),
            other => failed(other),
        })?;
        if let Some(thrown) = answer.get("exceptionDetails") {
            let said = thrown["exception"]["description"].as_str().or(thrown["exception"]["value"].as_str());
            let said = said.or(thrown["text"].as_str()).unwrap_or("it threw something");
            return Ok(Came::Thrown(cut(&inert(said), 500)));
        }
        self.settle().await;
        let result = &answer["result"];
        // What JSON has no word for has a description.
        let odd = || result["unserializableValue"].as_str().map(Value::from);
        Ok(Came::Value(result.get("value").cloned().or_else(odd).unwrap_or(Value::Null)))
    }

    /// A picture of the page.
    pub(crate) async fn picture(&self, shot: &Shot) -> Result<Shown, CallError> {
        let tab = self.tab()?;
        let metrics = self.ask(&tab, "Page.getLayoutMetrics", json!({}), PATIENCE).await?;
        let number = |value: &Value| value.as_f64().unwrap_or_default();
        let (view, whole) = (&metrics["cssVisualViewport"], &metrics["cssContentSize"]);
        let [x, y, width, height] = match shot {
            Shot::Window => {
                let at = [&view["pageX"], &view["pageY"], &view["clientWidth"], &view["clientHeight"]];
                at.map(number)
            }
            Shot::Whole => [0.0, 0.0, number(&whole["width"]), number(&whole["height"])],
            Shot::Element(named) => {
                let element = self.element(&tab, named).await?;
                let [x, y, width, height] = self.frame(&tab, element, named).await?;
                // Scrolling may have moved the window.
                let metrics = self.ask(&tab, "Page.getLayoutMetrics", json!({}), PATIENCE).await?;
                let view = &metrics["cssVisualViewport"];
                [x + number(&view["pageX"]), y + number(&view["pageY"]), width, height]
            }
        };
        let (shown_width, shown_height) = (width.clamp(1.0, SIDE_MAX), height.clamp(1.0, SIDE_MAX));
        let cut = shown_width < width || shown_height < height;
        let clip = json!({ "x": x, "y": y, "width": shown_width, "height": shown_height, "scale": 1 });
        for (format, mime) in [("png", "image/png"), ("jpeg", "image/jpeg")] {
            let mut params = json!({ "format": format, "clip": clip, "captureBeyondViewport": true });
            if format == "jpeg" {
                params["quality"] = 80.into();
            }
            let answer = self.ask(&tab, "Page.captureScreenshot", params, PATIENCE).await?;
            let base64 = answer["data"].as_str().unwrap_or_default().to_owned();
            let bytes = base64.len() / 4 * 3;
            if bytes <= PICTURE_MAX && !base64.is_empty() {
                let (width, height) =
                    extent(&base64).unwrap_or((whole_number(shown_width), whole_number(shown_height)));
                return Ok(Shown { mime, base64, width, height, bytes, cut });
            }
        }
        Err(CallError::failed("the picture would be too large").hint("take one of the window, or of an element"))
    }
}

fn moved(done: &str) -> CallError {
    let message = format!("the page has moved on, or opened another, since this was decided; {done}");
    CallError::conflict(message).hint("browser.content shows what is there now")
}

/// How large a PNG says it is.
fn extent(base64: &str) -> Option<(u32, u32)> {
    let start = base64::prelude::BASE64_STANDARD.decode(base64.get(..32)?).ok()?;
    let header = start.strip_prefix(b"\x89PNG\r\n\x1a\n")?;
    let word = |at: usize| header.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
    Some((word(8)?, word(12)?))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and SIDE_MAX")]
fn whole_number(side: f64) -> u32 {
    side.clamp(1.0, SIDE_MAX) as u32
}
