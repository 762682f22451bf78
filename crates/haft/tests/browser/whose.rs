//! Whose page it is that is acted on: its host's, its opener's, or nobody's.

use crate::Scene;
use crate::site::{Site, page};
use serde_json::json;

const OPENER: &str = r#"<!doctype html><title>Opener</title>
<button onclick="window.open('about:blank').document.body.innerHTML = '<title>Empty</title><input id=key>'">Heir</button>
<button onclick="window.open('/other')">Other</button>"#;

#[test]
fn an_empty_page_is_acted_on_as_its_openers_or_not_at_all() {
    let site = Site::start(|path, _| match path {
        "/" => page(OPENER),
        "/gone" => ("302 Found\r\nLocation: https://127.0.0.1:9/", Vec::new()),
        _ => page("<title>Other</title><input id=key>"),
    });
    let Some(scene) = Scene::new(&[site.port]) else { return };
    let asked = || scene.person.0.lock().unwrap().clone();

    // What the opener can read is asked for as the opener's.
    scene.navigate(&site.url("/"));
    let heir = scene.call("browser.click", json!({ "text": "Heir" }));
    assert_eq!(heir.data.as_ref().unwrap()["url"], "about:blank", "{heir:#?}");
    scene.call("browser.type", json!({ "selector": "#key", "text": "hello" }));
    assert_eq!(asked(), [format!("CLICK {}", site.url("/")), format!("TYPE {}", site.url("/"))]);
    assert_eq!(scene.evaluate("document.querySelector('#key').value"), "hello");
    assert_eq!(asked().last().unwrap(), &format!("EVALUATE {}", site.url("/")));

    // What is nobody's is looked at, and not acted on.
    let gone = scene.tries("browser.navigate", json!({ "url": site.url("/gone") }));
    assert!(!gone.success, "{gone:#?}");
    scene.call("browser.content", json!({}));
    for (tool, args) in [
        ("browser.evaluate", json!({ "expression": "1" })),
        ("browser.type", json!({ "selector": "body", "text": "x" })),
        ("browser.click", json!({ "selector": "body" })),
    ] {
        let said = scene.refused(tool, args);
        assert!(said.starts_with("denied: ") && said.contains("belongs to no host that is known"), "{tool}: {said}");
    }

    // Opening a page leaves no other one behind: when it closes itself, nothing is there.
    scene.navigate(&site.url("/"));
    scene.call("browser.click", json!({ "text": "Other" }));
    scene.navigate(&site.url("/other"));
    scene.tries("browser.evaluate", json!({ "expression": "window.close()" }));
    assert_eq!(scene.refused("browser.content", json!({})), "conflict: no page is open in this session");
}
