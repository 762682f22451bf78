//! How it looks, to everybody: on a phone, in the dark, to those who see little and those who see nothing.

use crate::decide::ready;
use crate::devtools::Browser;
use crate::visit::{Visit, named};
use crate::{Env, Gateway};
use serde_json::{Value, json};

/// The least contrast of text that is to be read (WCAG 2.2, 1.4.3).
const CONTRAST: f64 = 4.5;

/// Every visible text with its contrast, least first. What cannot be used has no need of it.
const CONTRASTS: &str = r"(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = ([r, g, b, a], under) => [r, g, b].map((part, at) => part * a + under[at] * (1 - a));
  const chain = (node) => (node ? [...chain(node.parentElement), node] : []);
  const ground = (nodes) => nodes.reduce((under, node) => over(rgba(getComputedStyle(node).backgroundColor), under), [255, 255, 255]);
  const light = (rgb) => {
    const [r, g, b] = rgb.map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    const seen = walker.currentNode.data.trim() && node.checkVisibility({ visibilityProperty: true, opacityProperty: true });
    if (!seen || node.closest('button:disabled, .skip:not(:focus)')) continue;
    const nodes = chain(node);
    const behind = ground(nodes);
    const opacity = nodes.reduce((all, each) => all * Number(getComputedStyle(each).opacity), 1);
    const [r, g, b, a] = rgba(getComputedStyle(node).color);
    const [one, other] = [light(over([r, g, b, a * opacity], behind)), light(behind)].sort((x, y) => y - x);
    const ratio = (one + 0.05) / (other + 0.05);
    found.set(`${node.tagName}.${node.className} ${walker.currentNode.data.trim().slice(0, 30)}`, ratio);
  }
  return [...found].sort((one, other) => one[1] - other[1]);
})()";

const SUM: &str = "\
name: sum
steps:
  - {id: one, tool: calc.eval, args: {expression: 1 + 1}}
  - {id: two, tool: calc.eval, args: {expression: '{{one}} * 2'}}
  - {id: three, tool: calc.eval, args: {expression: '{{one}} +'}, on_failure: continue}
";

/// A gateway at which something of everything has happened.
fn lived_in(env: &Env) -> Gateway {
    env.file("src/greet.rs", "fn main() {\n    println!(\"Hello\");\n}\n");
    env.file("docs/guide.md", "# Guide\n\nStart here.\n");
    let gateway = env.serve(&[]);
    let call = |tool: &str, args: Value| {
        gateway.post(&format!("/v1/tools/{tool}/call"), json!({ "args": args, "session": "work" }))
    };
    let yes =
        |id: &str| assert_eq!(gateway.post(&format!("/v1/approvals/{id}"), json!({"decision": "once"})).status, 200);
    call("file.read", json!({"path": "docs/guide.md"}));
    call("file.read", json!({"path": "src/greet.rs"}));
    call("calc.eval", json!({"expression": "1440 * 0.85"}));
    yes(&gateway.asks_to_write("docs/guide.md", "# Guide\n\nStart here, then read the reference.\n"));
    call("file.read", json!({"path": "missing.md"}));
    call("file.grep", json!({"pattern": "Hello"}));
    gateway.asks_to_write(
        "src/greet.rs",
        "fn main() {\n    let name = \"reader\";\n    println!(\"Hello, {name}\");\n}\n",
    );
    gateway.asks(
        "shell.exec",
        json!({"command": "git log --oneline | head -5 && cargo test --quiet 2>&1 | tee test.log"}),
    );
    env.file(".haft/workflows/sum.yml", SUM);
    env.run(&["trust", "--yes"]);
    call("pipeline.run", json!({"pipeline_id": "sum"}));
    gateway.asks_to_write("CHANGELOG.md", "# Changes\n\n- Greets by name.\n");
    gateway
}

fn views(visit: &Visit<'_>, mut look: impl FnMut(&str)) {
    for view in ["inbox", "activity", "tools", "log", "work", "settings"] {
        visit.click(&named(&format!("tab-{view}")));
        let sign = match view {
            "inbox" => ("[data-test=approval][data-state=ready]", ""),
            "activity" => ("[data-test=activity-row]", "docs/guide.md ("),
            "tools" => ("[data-test=tool-item]", "calc.eval"),
            "log" => ("[data-test=log-verify-state]", "chain holds"),
            "work" => ("[data-test=run-steps]", "calc.eval"),
            _ => ("[data-test=settings-config]", "autonomy"),
        };
        if view == "activity" || view == "tools" {
            visit.click_on(sign.0, sign.1);
            visit.see(&format!("section.{view} article"), "");
        }
        if view == "work" && visit.eval("findShown('[data-test=run]') === undefined") == true {
            visit.click_on("[data-test=run-open]", "sum");
        }
        visit.see(sign.0, sign.1);
        if view == "inbox" {
            visit.until("it can be answered", "findShown('[data-test=approve-once]')?.disabled === false");
        }
        look(view);
    }
}

#[test]
fn every_text_can_be_read_in_the_light_and_in_the_dark() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    let gateway = lived_in(&env);
    let visit = Visit::open(&browser, &gateway.entrance());
    visit.screen(1120, 660);
    for scheme in ["light", "dark"] {
        visit.scheme(scheme);
        views(&visit, |view| {
            let found = visit.eval(CONTRASTS);
            let texts = found.as_array().unwrap();
            assert!(texts.len() > 15, "{view}: {found:#}");
            let faint: Vec<&Value> = texts.iter().filter(|text| text[1].as_f64().unwrap() < CONTRAST).collect();
            assert!(faint.is_empty(), "{view}, {scheme}: {faint:?}");
            match view {
                "inbox" => visit.picture(&format!("page-inbox-{scheme}")),
                "activity" | "log" if scheme == "light" => visit.picture(&format!("page-{view}")),
                _ => {}
            }
        });
    }
    let dark = visit.eval("getComputedStyle(document.body).backgroundColor");
    assert_eq!(dark, "rgb(18, 20, 22)", "the dark is dark");
    visit.leave();
}

#[test]
fn every_control_has_a_name_and_shows_when_it_has_the_focus() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    let gateway = lived_in(&env);
    let visit = Visit::open(&browser, &gateway.entrance());
    let roles =
        ["button", "link", "textbox", "searchbox", "combobox", "checkbox", "spinbutton", "DisclosureTriangle", "img"];
    views(&visit, |view| {
        let tree = visit.send("Accessibility.getFullAXTree", json!({}));
        let nodes = tree["nodes"].as_array().unwrap();
        let controls: Vec<&Value> = nodes
            .iter()
            .filter(|node| node["ignored"] == false && roles.iter().any(|role| node["role"]["value"] == *role))
            .collect();
        assert!(controls.len() > 6, "{view}: {}", controls.len());
        let nameless: Vec<_> = controls
            .iter()
            .filter(|node| node["name"]["value"].as_str().unwrap_or_default().trim().is_empty())
            .collect();
        assert!(nameless.is_empty(), "{view}: {nameless:#?}");
        let landmarks = nodes
            .iter()
            .filter(|node| ["main", "navigation", "banner"].iter().any(|role| node["role"]["value"] == *role));
        assert_eq!(landmarks.count(), 3, "{view}");
    });
    visit.click(&named("tab-inbox"));
    let mut reached = Vec::new();
    for _ in 0..40 {
        visit.key("Tab");
        let focus = visit.eval(
            "(() => { const node = document.activeElement; const { outlineStyle, outlineWidth } = getComputedStyle(node);
               return [node.dataset.test ?? node.tagName, outlineStyle, parseFloat(outlineWidth)]; })()",
        );
        if focus[0] == "BODY" {
            continue;
        }
        assert!(focus[1] != "none" && focus[2].as_f64().unwrap() >= 2.0, "{focus}");
        reached.push(focus[0].as_str().unwrap().to_owned());
    }
    for control in ["tab-log", "inbox-item", "approve-once", "reject", "reject-message", "edit-args"] {
        assert!(reached.iter().any(|one| one == control), "{control} in {reached:?}");
    }
    visit.leave();
}

#[test]
fn on_a_phone_nothing_is_cut_and_a_finger_approves() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    let gateway = lived_in(&env);
    let visit = Visit::open(&browser, &gateway.entrance());
    visit.screen(390, 844);
    visit.go(&gateway.url("#/inbox"));
    let fits = "document.documentElement.scrollWidth <= innerWidth && innerWidth === 390";
    for view in ["settings", "work", "log", "tools", "activity", "inbox"] {
        visit.tap(&named(&format!("tab-{view}")));
        visit.until("the view changes", &format!("findShown('section.{view}') !== undefined"));
        assert_eq!(visit.eval(fits), true, "{view}");
    }
    let id = visit.eval("findShown('[data-test=inbox-item]', 'greet.rs').dataset.key");
    visit.tap(&format!("[data-key='{}']", id.as_str().unwrap()));
    ready(&visit, id.as_str().unwrap());
    assert_eq!(visit.eval(fits), true);
    visit.see(&named("diff"), "+    let name");
    let height = visit.eval("findShown('[data-test=approve-once]').getBoundingClientRect().height");
    assert!(height.as_f64().unwrap() >= 36.0, "a finger needs room: {height}");
    visit.picture("page-phone");
    visit.tap(&named("approve-once"));
    visit.see(&named("decision"), "Approved once");
    assert!(env.read("src/greet.rs").contains("Hello, {name}"));
    visit.tap(".back button");
    visit.see(&named("inbox-item"), "CHANGELOG.md");
    visit.leave();
}
