//! Finding an element of a page: by the name that the tree gave it, by a selector, or by the text that one reads on it.

use super::super::Browser;
use super::super::tabs::Tab;
use super::PATIENCE;
use haft_core::CallError;
use haft_core::preview::{cut, inert};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::PoisonError;

/// How an element is named.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Named {
    #[serde(rename = "ref")]
    pub(crate) reference: Option<String>,
    pub(crate) selector: Option<String>,
    pub(crate) text: Option<String>,
}

/// Elements with this text: of those that are there to be clicked if there are any, and of those around each other the
/// innermost.
const BY_TEXT: &str = r#"(wanted => {
    const plain = text => (text || "").replace(/\s+/g, " ").trim().toLowerCase();
    const sought = plain(wanted);
    const shown = element => element.checkVisibility ? element.checkVisibility({ visibilityProperty: true }) : true;
    const said = element => [element.innerText, element.getAttribute("aria-label"),
        element.matches("input[type=submit],input[type=button],input[type=reset]") ? element.value : ""].map(plain);
    const innermost = list => list.filter(one => !list.some(other => other !== one && one.contains(other)));
    const usable = "a[href],button,input[type=submit],input[type=button],input[type=reset],label,summary,option," +
        "[role=button],[role=link],[role=menuitem],[role=tab],[role=option],[role=checkbox],[onclick]";
    for (const selector of [usable, "body *"])
        for (const fits of [text => text === sought, text => text.includes(sought)]) {
            const all = [...document.querySelectorAll(selector)].slice(0, 20000);
            const found = innermost(all.filter(one => said(one).some(fits) && shown(one)));
            if (found.length === 1) return found[0];
            if (found.length > 1) return found.length;
        }
    return null;
})"#;

impl Named {
    /// Whether nothing is named.
    pub(crate) fn is_empty(&self) -> bool {
        self.reference.is_none() && self.selector.is_none() && self.text.is_none()
    }

    /// How it was named, to be shown.
    pub(crate) fn shown(&self) -> String {
        let given = self.reference.as_ref().or(self.selector.as_ref()).or(self.text.as_ref());
        cut(&inert(given.map_or("", String::as_str)), 80)
    }
}

impl Browser {
    /// The element that is meant: one, or it is said why not.
    pub(super) async fn element(&self, tab: &Tab, named: &Named) -> Result<i64, CallError> {
        match (&named.reference, &named.selector, &named.text) {
            (Some(reference), None, None) => self.by_reference(tab, reference),
            (None, Some(selector), None) => {
                let quoted = json!(selector);
                self.by_script(tab, &format!("document.querySelector({quoted})"), &named.shown()).await
            }
            (None, None, Some(text)) => {
                self.by_script(tab, &format!("{BY_TEXT}({})", json!(text)), &named.shown()).await
            }
            _ => Err(CallError::invalid("name the element by exactly one of `ref`, `selector` and `text`")),
        }
    }

    fn by_reference(&self, tab: &Tab, reference: &str) -> Result<i64, CallError> {
        let refs = self.refs.lock().unwrap_or_else(PoisonError::into_inner);
        refs.node(&tab.loader, reference).ok_or_else(|| {
            CallError::not_found(format!("there is no `{}` on this page", cut(&inert(reference), 40)))
                .hint("refs are those of the last tree of this page; browser.content shows it")
        })
    }

    async fn by_script(&self, tab: &Tab, expression: &str, shown: &str) -> Result<i64, CallError> {
        let world = self.world(tab).await?;
        let params = json!({ "expression": expression, "contextId": world });
        let answer = self.ask(tab, "Runtime.evaluate", params, PATIENCE).await?;
        if answer.get("exceptionDetails").is_some() {
            return Err(CallError::invalid(format!("`{shown}` is not a selector that the page understands")));
        }
        let result = &answer["result"];
        if let Some(many) = result["value"].as_u64() {
            return Err(CallError::conflict(format!("`{shown}` is on {many} elements"))
                .hint("browser.content shows them with their refs"));
        }
        let Some(object) = result["objectId"].as_str() else {
            return Err(CallError::not_found(format!("`{shown}` is not on the page"))
                .hint("browser.content shows what is there"));
        };
        let node = self.ask(tab, "DOM.describeNode", json!({ "objectId": object }), PATIENCE).await?;
        node["node"]["backendNodeId"].as_i64().ok_or_else(|| CallError::failed("the element has gone"))
    }

    /// Calls a function on an element, in a world of our own.
    pub(super) async fn with(
        &self,
        tab: &Tab,
        element: i64,
        function: &str,
        args: &[Value],
    ) -> Result<Value, CallError> {
        let world = self.world(tab).await?;
        let resolve = json!({ "backendNodeId": element, "executionContextId": world });
        let gone = || {
            CallError::not_found("the element is not on the page any more").hint("browser.content shows what is there")
        };
        let object = self.ask(tab, "DOM.resolveNode", resolve, PATIENCE).await.map_err(|_| gone())?;
        let args: Vec<Value> = args.iter().map(|value| json!({ "value": value })).collect();
        let call = json!({
            "functionDeclaration": function,
            "objectId": object["object"]["objectId"],
            "arguments": args,
            "returnByValue": true,
        });
        let answer = self.ask(tab, "Runtime.callFunctionOn", call, PATIENCE).await?;
        Ok(answer["result"]["value"].clone())
    }
}
