//! What is done with the page that is open: reading it, acting on it, and closing the browser.

use super::navigate::SHOWN;
use super::reply;
use crate::browser::Lent;
use crate::browser::page::{Came, Form, Held, Named, Part, Shot};
use crate::hygiene::Looked;
use crate::scene::Scene;
use crate::tool::{BoxFuture, Reply, Tool};
use crate::tools::declare;
use haft_core::outcome::Label;
use haft_core::preview::size;
use haft_core::shape::{Keep, Limits};
use haft_core::tool::Outward;
use haft_core::{CallError, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The longest text or script that a page is given.
const TEXT_MAX: usize = 100_000;
/// The longest result of a script that is given as data, too.
const RESULT_MAX: usize = 50_000;
/// How long a tool about a page may take: starting nothing, but waiting for scripts, pages and downloads.
const TIMEOUT: Duration = Duration::from_mins(2);

/// What a tool does with the page.
#[derive(Clone, Copy)]
enum Deed {
    Content,
    Click,
    Type,
    Evaluate,
    Screenshot,
    Close,
}

struct PageTool {
    spec: Arc<ToolSpec>,
    deed: Deed,
}

fn made(spec: ToolSpec, deed: Deed) -> Arc<dyn Tool> {
    Arc::new(PageTool { spec: Arc::new(spec.timeout(TIMEOUT).in_order()), deed })
}

/// The parameters by which an element is named.
fn element(what: &str) -> Value {
    json!({
        "ref": {
            "type": "string", "pattern": "^e[0-9]{1,9}$",
            "description": format!("{what}: its ref in the page's tree")
        },
        "selector": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "Or a CSS selector"},
    })
}

fn object(mut properties: Value, more: Value, required: &[&str]) -> Value {
    if let (Some(all), Value::Object(more)) = (properties.as_object_mut(), more) {
        all.extend(more);
    }
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// browser.content.
pub(super) fn content() -> Arc<dyn Tool> {
    let spec = declare(
        "browser.content",
        "Return the page open in the browser: as a tree with refs for browser.click and browser.type, as text, or as \
         HTML. Long pages come in parts; the last line gives the offset to continue with.",
    )
    .hint("read page text html accessibility tree snapshot")
    .input(object(
        json!({
            "format": {"type": "string", "enum": ["tree", "text", "html"], "default": "tree",
                "description": "Form of the result"},
            "offset": {"type": "integer", "minimum": 0, "maximum": 1_000_000_000, "default": 0,
                "description": "First character to show"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 50_000, "default": SHOWN,
                "description": "Maximum number of characters"}
        }),
        json!({}),
        &[],
    ))
    .web(Outward::Page)
    .limits(Limits { lines: usize::MAX, bytes: 256 << 10, keep: Keep::Head });
    made(spec, Deed::Content)
}

/// browser.click.
pub(super) fn click() -> Arc<dyn Tool> {
    let spec = declare(
        "browser.click",
        "Click a link, button or other element of the open browser page, given by ref, selector or text. Returns the \
         page's address after it; read the page with browser.content.",
    )
    .hint("press button link tap")
    .input(object(
        element("The element"),
        json!({"text": {"type": "string", "minLength": 1, "maxLength": 300, "description": "Or its visible text"}}),
        &[],
    ))
    .acts()
    .web(Outward::Page);
    made(spec, Deed::Click)
}

/// browser.type.
pub(super) fn type_into() -> Arc<dyn Tool> {
    let spec = declare(
        "browser.type",
        "Type text into a form field of the open browser page, or choose an option of a list by its text. Give the \
         field by ref or selector.",
    )
    .hint("fill enter input form field keyboard select")
    .input(object(
        element("The field"),
        json!({
            "text": {"type": "string", "maxLength": TEXT_MAX, "description": "The text to type or the option to choose"},
            "clear": {"type": "boolean", "default": true, "description": "Replace the current text"},
            "submit": {"type": "boolean", "default": false, "description": "Press Enter afterwards"}
        }),
        &["text"],
    ))
    .body("text")
    .acts()
    .web(Outward::Page);
    made(spec, Deed::Type)
}

/// browser.evaluate.
pub(super) fn evaluate() -> Arc<dyn Tool> {
    let spec = declare(
        "browser.evaluate",
        "Run JavaScript in the open browser page and return the value of the expression as JSON. Promises are awaited.",
    )
    .hint("javascript script run console")
    .input(object(
        json!({
            "expression": {"type": "string", "minLength": 1, "maxLength": TEXT_MAX,
                "description": "JavaScript; its last value is returned"},
            "timeout_ms": {"type": "integer", "minimum": 100, "maximum": 60_000, "default": 10_000,
                "description": "Time limit in milliseconds"}
        }),
        json!({}),
        &["expression"],
    ))
    .acts()
    .web(Outward::Page)
    .body("expression");
    made(spec, Deed::Evaluate)
}

/// browser.screenshot.
pub(super) fn screenshot() -> Arc<dyn Tool> {
    let spec = declare(
        "browser.screenshot",
        "Take a screenshot of the open browser page: the window, the whole page, or one element. Returns an image.",
    )
    .hint("image picture look see png")
    .input(object(
        element("The element to show"),
        json!({"full_page": {"type": "boolean", "default": false, "description": "The whole page, up to 8000 pixels"}}),
        &[],
    ))
    .web(Outward::Page);
    made(spec, Deed::Screenshot)
}

/// browser.close.
pub(super) fn close() -> Arc<dyn Tool> {
    let spec =
        declare("browser.close", "Close this session's browser and delete its cookies and storage; downloads stay.")
            .hint("quit end chromium");
    made(spec, Deed::Close)
}

impl Tool for PageTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(async move {
            if matches!(self.deed, Deed::Close) {
                let ended = scene.browsers().end_session(&scene.call().session);
                let said = if ended { "The browser is closed" } else { "No browser was open" };
                return Ok(Reply::text(said).data(json!({ "closed": ended })));
            }
            let lent = scene.browsers().lend(scene).await?;
            match self.deed {
                Deed::Content => look(scene, &lent).await,
                Deed::Click => press(scene, &lent).await,
                Deed::Type => write(scene, &lent).await,
                Deed::Evaluate => run(scene, &lent).await,
                Deed::Screenshot | Deed::Close => show(scene, &lent).await,
            }
        })
    }
}

#[derive(Deserialize)]
struct Looks {
    #[serde(default)]
    format: Form,
    offset: usize,
    limit: usize,
}

async fn look(scene: &Scene, lent: &Lent) -> Result<Reply, CallError> {
    let args: Looks = scene.parse()?;
    let place = lent.browser.place().await?;
    let part = lent.browser.content(args.format, args.offset, args.limit).await?;
    let mut aside = lent.browser.aside().await;
    aside.warnings.extend(part.warnings.iter().cloned());
    let reply = reply(&place, aside, &with_rest(&part), json!({ "total": part.total }));
    Ok(looked(reply, part).await)
}

/// A reply with what was found in the page besides what is shown of it.
pub(super) async fn looked(mut reply: Reply, part: Part) -> Reply {
    let (shown, text) = Looked::at_all(reply.text).await;
    reply.text = text;
    Reply { looked: Some(part.looked.and(shown)), ..reply }
}

/// A part of a page, and how to go on.
pub(super) fn with_rest(part: &Part) -> String {
    match part.next {
        Some(next) => {
            format!("{}\n[more follows: browser.content with offset {next} of {}]", part.text, part.total)
        }
        None => part.text.clone(),
    }
}

/// The page has to be where the call was decided to act.
async fn check(scene: &Scene, lent: &Lent) -> Result<Held, CallError> {
    let undecided = || CallError::internal("nobody has decided where this call may act");
    lent.browser.still_at(&scene.errand().ok_or_else(undecided)?.authority).await
}

async fn press(scene: &Scene, lent: &Lent) -> Result<Reply, CallError> {
    let named: Named = scene.parse()?;
    let held = check(scene, lent).await?;
    lent.browser.click(&held, &named).await?;
    done(lent, &format!("Clicked {}", named.shown())).await
}

#[derive(Deserialize)]
struct Types {
    #[serde(rename = "ref")]
    reference: Option<String>,
    selector: Option<String>,
    text: String,
    clear: bool,
    submit: bool,
}

async fn write(scene: &Scene, lent: &Lent) -> Result<Reply, CallError> {
    let args: Types = scene.parse()?;
    let held = check(scene, lent).await?;
    let named = Named { reference: args.reference, selector: args.selector, text: None };
    lent.browser.type_into(&held, &named, &args.text, args.clear, args.submit).await?;
    done(lent, &format!("Typed into {}", named.shown())).await
}

/// What came of an action.
async fn done(lent: &Lent, what: &str) -> Result<Reply, CallError> {
    let aside = lent.browser.aside().await;
    let place = lent.browser.place().await?;
    Ok(reply(&place, aside, what, json!({})))
}

#[derive(Deserialize)]
struct Evaluates {
    expression: String,
    timeout_ms: u64,
}

async fn run(scene: &Scene, lent: &Lent) -> Result<Reply, CallError> {
    let args: Evaluates = scene.parse()?;
    let held = check(scene, lent).await?;
    let came = lent.browser.evaluate(&held, &args.expression, Duration::from_millis(args.timeout_ms)).await?;
    let aside = lent.browser.aside().await;
    let place = lent.browser.place().await?;
    let value = match came {
        Came::Value(value) => value,
        Came::Thrown(said) => {
            let error = CallError::failed("the script threw an exception").hint("the output says which");
            return Ok(Reply { error: Some(error), ..reply(&place, aside, &said, json!({})) });
        }
    };
    let text = serde_json::to_string_pretty(&value).unwrap_or_default();
    let data = if text.len() <= RESULT_MAX { json!({ "value": value }) } else { json!({ "too_large": text.len() }) };
    Ok(reply(&place, aside, &text, data))
}

#[derive(Deserialize)]
struct Shows {
    #[serde(flatten)]
    named: Named,
    full_page: bool,
}

async fn show(scene: &Scene, lent: &Lent) -> Result<Reply, CallError> {
    let args: Shows = scene.parse()?;
    let shot = match (args.full_page, args.named.is_empty()) {
        (true, true) => Shot::Whole,
        (false, true) => Shot::Window,
        (false, false) => Shot::Element(args.named),
        (true, false) => return Err(CallError::invalid("a picture shows the whole page or one element, not both")),
    };
    let place = lent.browser.place().await?;
    let shown = lent.browser.picture(&shot).await?;
    let mut aside = lent.browser.aside().await;
    if shown.cut {
        aside.warnings.push("the page is larger than a picture may be; this is its upper left part".to_owned());
    }
    let text = format!("Image: {}, {}x{}, {}", shown.mime, shown.width, shown.height, size(shown.bytes));
    let image = json!({
        "mime_type": shown.mime,
        "data": shown.base64,
        "width": shown.width,
        "height": shown.height,
        "bytes": shown.bytes,
    });
    let reply = reply(&place, aside, &text, json!({ "image": image }));
    Ok(Reply { labels: vec![Label::Untrusted], ..reply })
}
