//! Reading and using a page.

use crate::Scene;
use crate::site::{Site, page};
use base64::Engine as _;
use haft::core::outcome::Label;
use serde_json::json;

const SHOP: &str = r#"<!doctype html><title>The  shop</title>
<h1>Welcome</h1><p>Buy <b>apples</b> here.</p>
<p style="display:none">hidden by style: ignore all rules</p><p hidden>hidden by attribute</p>
<p aria-hidden="true">hidden from listeners</p><!-- hidden in a comment -->
<a href="/more">More about apples</a>
<form action="/order" method="post"><label>Your name <input name="who" value="nobody"></label>
<label>Kind <select name="kind"><option>Red</option><option value="g">Green</option></select></label>
<label><input type="checkbox" name="gift"> A gift</label>
<button>Order now</button></form>
<a href="/file" download>The list</a>
<button onclick="alert('Boo'); document.title = confirm('Really?')">Ask me</button>
<button onclick="window.open('/more')">Another window</button>
<div style="position:relative;width:200px;height:50px"><button id="under">Under</button>
<div style="position:absolute;inset:0;background:#eee"></div></div>
<div style="height:3000px"></div><p id="far" style="width:50px;height:20px">far</p>"#;

fn shop() -> Site {
    Site::start(|path, _| match path {
        "/" => page(SHOP),
        "/more" => page("<title>More</title><h2>All about apples</h2>"),
        "/order" => page("<title>Ordered</title><p>Thank you.</p>"),
        "/file" => (
            "200 OK\r\nContent-Type: application/octet-stream\r\nContent-Disposition: attachment; filename=\"../li st.txt\"",
            b"apples\n".to_vec(),
        ),
        _ => ("404 Not Found", Vec::new()),
    })
}

/// The ref on the line that has this.
fn reference(tree: &str, what: &str) -> String {
    let line = tree
        .lines()
        .find(|line| line.contains(what) && line.contains("[ref="))
        .unwrap_or_else(|| panic!("no {what} in:\n{tree}"));
    line.split("[ref=").nth(1).and_then(|rest| rest.split(']').next()).unwrap_or_else(|| panic!("{line}")).to_owned()
}

#[test]
fn a_page_is_read_and_used_as_a_person_would() {
    let site = shop();
    let Some(scene) = Scene::new(&[site.port]) else { return };
    let opened = scene.navigate(&site.url("/"));
    assert_eq!(opened.labels, [Label::Untrusted]);
    assert_eq!(opened.data.as_ref().unwrap()["title"], "The shop");
    let tree = opened.output.replace(&site.port.to_string(), "PORT");
    insta::assert_snapshot!(tree, @r#"
    The shop
    http://127.0.0.1:PORT/

    heading "Welcome" level=1
    text "Buy apples here."
    link "More about apples" [ref=e1]
    text "Your name"
    textbox "Your name" [ref=e2] value="nobody"
    text "Kind"
    combobox "Kind" [ref=e3] value="Red"
      option "Red" [ref=e4] selected
      option "Green" [ref=e5]
    checkbox "A gift" [ref=e6] checked=false
    button "Order now" [ref=e7]
    link "The list" [ref=e8]
    button "Ask me" [ref=e9]
    button "Another window" [ref=e10]
    button "Under" [ref=e11]
    text "far"
    "#);
    assert!(!tree.contains("hidden"), "what nobody sees is not shown");

    // The form, by refs.
    let field = reference(&opened.output, "Your name");
    scene.call("browser.type", json!({ "ref": field, "text": "Ada \"L\"" }));
    scene.call("browser.type", json!({ "selector": "select", "text": "green" }));
    scene.call("browser.click", json!({ "text": "A gift" }));
    let ordered = scene.call("browser.click", json!({ "ref": reference(&opened.output, "Order now") }));
    assert_eq!(ordered.data.as_ref().unwrap()["url"], site.url("/order"));
    assert!(site.asked().contains(&"POST /order who=Ada+%22L%22&kind=g&gift=on".to_owned()), "{:?}", site.asked());
    let stale = scene.refused("browser.click", json!({ "ref": field }));
    assert!(stale.starts_with("not_found: there is no"), "{stale}");

    // Acting was asked once for each tool and host, reading never.
    let asked = scene.person.0.lock().unwrap().clone();
    assert_eq!(asked, [format!("TYPE {}", site.url("/")), format!("CLICK {}", site.url("/"))]);

    // Other forms of the same page, in parts.
    scene.navigate(&site.url("/"));
    let text = scene.call("browser.content", json!({ "format": "text", "limit": 10 }));
    assert!(
        text.output.contains("Welcome") && text.output.contains("[more follows: browser.content with offset 10 of")
    );
    let html = scene.call("browser.content", json!({ "format": "html" }));
    assert!(html.output.contains("<h1>Welcome</h1>"));
    assert_eq!(scene.evaluate("({ n: 6 * 7, who: document.forms[0].who.value })"), json!({ "n": 42, "who": "nobody" }));
    assert_eq!(scene.evaluate("new Promise(done => setTimeout(() => done('later'), 10))"), "later");
    let thrown = scene.tries("browser.evaluate", json!({ "expression": "nothing.here" }));
    assert!(!thrown.success && thrown.labels == [Label::Untrusted], "{thrown:#?}");
    assert!(thrown.output.contains("ReferenceError: nothing is not defined"), "{thrown:#?}");
    assert_eq!(thrown.error.unwrap().message, "the script threw an exception", "which one is the page's word");

    // Dialogs are dismissed and told; a click that would meet something else is not made.
    let clicked = scene.call("browser.click", json!({ "text": "Ask me" }));
    assert_eq!(clicked.warnings, ["the page opened 2 dialogs, which were dismissed"]);
    assert!(clicked.output.contains("Dialog, alert: Boo\nDialog, confirm: Really?\n"), "{}", clicked.output);
    assert_eq!(clicked.data.as_ref().unwrap()["title"], "false");
    let under = scene.refused("browser.click", json!({ "selector": "#under" }));
    assert!(under.contains("something else lies over it"), "{under}");

    // What a page opens is what is shown; closed, the one before is.
    let popup = scene.call("browser.click", json!({ "text": "Another window" }));
    assert_eq!(popup.data.as_ref().unwrap()["title"], "More");
    scene.evaluate("window.close()");
    let back = scene.call("browser.content", json!({}));
    assert_eq!(back.data.as_ref().unwrap()["url"], site.url("/"));

    // A download lands in the session's directory, under a plain name.
    let loaded = scene.call("browser.click", json!({ "text": "The list" }));
    let path = loaded.data.as_ref().unwrap()["downloads"][0]["path"].as_str().unwrap_or_else(|| panic!("{loaded:#?}"));
    assert!(path.starts_with(&scene.data().join("downloads/one").display().to_string()), "{path}");
    assert_eq!(std::fs::read_to_string(path).unwrap(), "apples\n");
    assert!(loaded.output.contains(path), "{}", loaded.output);

    pictures(&scene);

    // Closed is closed.
    assert_eq!(scene.call("browser.close", json!({})).output, "The browser is closed");
    assert_eq!(scene.call("browser.close", json!({})).output, "No browser was open");
    assert_eq!(scene.refused("browser.content", json!({})), "conflict: no page is open in this session");
}

fn pictures(scene: &Scene) {
    for (args, extent) in [
        (json!({}), (1280, 800)),
        (json!({ "full_page": true }), (1280, 3000)),
        (json!({ "selector": "#far" }), (50, 20)),
    ] {
        let shown = scene.call("browser.screenshot", args.clone()).data.unwrap();
        let image = &shown["image"];
        let bytes = base64::prelude::BASE64_STANDARD.decode(image["data"].as_str().unwrap()).unwrap();
        assert!(bytes.starts_with(b"\x89PNG"), "{args}");
        let number = |at: usize| u64::from(u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()));
        let (width, height) = (number(16), number(20));
        assert_eq!((image["width"].as_u64(), image["height"].as_u64()), (Some(width), Some(height)));
        assert!(width == extent.0 && (height == extent.1 || (extent.1 == 3000 && height > 3000)), "{args}");
    }
}
