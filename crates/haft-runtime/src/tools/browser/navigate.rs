//! browser.navigate: opens an address in the session's browser and shows what is there.

use super::reply;
use crate::browser::page::{Form, Wait};
use crate::scene::Scene;
use crate::tool::{BoxFuture, Reply, Tool};
use crate::tools::declare;
use haft_core::tool::Outward;
use haft_core::web::Target;
use haft_core::{CallError, ToolSpec};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// How much of the page is shown at once.
pub(super) const SHOWN: usize = 20_000;

#[derive(Deserialize)]
struct Args {
    url: String,
    #[serde(default)]
    wait: Wait,
    timeout_ms: u64,
}

struct Navigate(Arc<ToolSpec>);

/// browser.navigate.
pub(super) fn tool() -> Arc<dyn Tool> {
    let spec = declare(
        "browser.navigate",
        "Open a web page in a real browser and return it as a tree: one line per heading, text, link, field and \
         button, with refs for browser.click and browser.type. For pages without scripts, web.fetch is cheaper.",
    )
    .hint("open visit website page chromium chrome goto")
    .input(json!({
        "type": "object",
        "properties": {
            "url": {"type": "string", "minLength": 1, "maxLength": 8192, "description": "The http or https URL"},
            "wait": {
                "type": "string",
                "enum": ["load", "idle"],
                "default": "load",
                "description": "load: until the page has loaded; or until the network is idle"
            },
            "timeout_ms": {
                "type": "integer", "minimum": 100, "maximum": 120_000, "default": 30_000,
                "description": "Then return what has loaded so far"
            }
        },
        "required": ["url"],
        "additionalProperties": false
    }))
    .web(Outward::Url("url", None))
    .timeout(Duration::from_mins(4))
    .in_order();
    Arc::new(Navigate(Arc::new(spec)))
}

impl Tool for Navigate {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(async move {
            let args: Args = scene.parse()?;
            let target = Target::read(&args.url).map_err(|error| CallError::invalid(error.to_string()))?;
            scene.way().spend(&target).await?;
            let lent = scene.browsers().open(scene, &target).await?;
            let browser = &lent.browser;
            let opened = browser.navigate(&target, args.wait, Duration::from_millis(args.timeout_ms)).await?;
            let mut aside = browser.aside().await;
            aside.warnings.splice(..0, lent.note.clone().into_iter().chain(opened.late));
            let data = opened.status.map_or_else(|| json!({}), |status| json!({ "status": status }));
            let place = browser.place_at_last().await?;
            let part = match browser.content(Form::Tree, 0, SHOWN).await {
                Ok(part) => part,
                Err(error) => {
                    aside.warnings.push(format!("the page cannot be shown: {}", error.message));
                    return Ok(answered(reply(&place, aside, "", data), opened.status));
                }
            };
            aside.warnings.extend(part.warnings.iter().cloned());
            let reply = answered(reply(&place, aside, &super::page::with_rest(&part), data), opened.status);
            Ok(super::page::looked(reply, part).await)
        })
    }
}

/// A page that says it is not there is shown, and is a failure all the same, as for web.fetch.
fn answered(mut reply: Reply, status: Option<u16>) -> Reply {
    if let Some(status) = status.filter(|status| *status >= 400) {
        let why = format!("the server answered with status {status}");
        reply.error = Some(CallError::failed(why).hint("the page, if there is one, is what it said about that"));
    }
    reply
}
