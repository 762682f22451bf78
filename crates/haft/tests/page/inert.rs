//! What a model wrote is text, whatever it looks like.

use crate::Env;
use crate::decide::ready;
use crate::devtools::Browser;
use crate::visit::{Visit, named};
use serde_json::json;

const TRAP: &str = "<img src=x onerror=\"window.hit=1\"><script>window.hit=2</script><svg onload=window.hit=3>\
    <a href=\"javascript:window.hit=4\">press</a><style>*{display:none}</style><iframe srcdoc=\"<p>\"></iframe>";

#[test]
fn what_a_model_wrote_stays_text() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    let gateway = env.serve(&[]);
    let visit = Visit::open(&browser, &gateway.entrance());
    visit.see(&named("connection-state"), "live");
    let long = "x".repeat(10_000);
    let content = format!("{TRAP}\nleft \u{202e}thgir\u{202c} \u{200b}zero\u{7}\u{1b}[31m\u{e0041}\n{long}\n");
    let id = gateway.asks("file.write", json!({"path": format!("{}.txt", TRAP.replace('/', "")), "content": content}));
    let command = gateway.asks("shell.exec", json!({"command": format!("echo '{TRAP}' \u{202e}; rm -rf \"{TRAP}\"")}));
    gateway.post("/v1/tools/calc.eval/call", json!({"args": {"expression": TRAP}, "session": "<b>bold<b>"}));
    ready(&visit, &id);
    let diff = visit.see(&named("diff"), "<img src=x onerror=");
    for shown in
        ["<script>window.hit=2</script>", "⟨U+202E⟩thgir⟨U+202C⟩", "⟨U+200B⟩zero⟨U+0007⟩⟨U+001B⟩[31m⟨U+E0041⟩", &long]
    {
        assert!(diff.contains(shown), "{shown} in {diff}");
    }
    visit.click_on("summary", "Arguments");
    visit.see("details[open]", "<iframe srcdoc");
    visit.key("j");
    ready(&visit, &command);
    visit.see(&named("command-tree"), "<img src=x");
    visit.see(&named("approval"), "⟨U+202E⟩");
    for (key, view) in [("2", "activity"), ("4", "log")] {
        visit.key(key);
        visit.see(&format!("section.{view}"), "<img src=x");
    }
    visit.click(&named("log-row"));
    visit.see("[aria-label^=Record]", "");
    visit.key("1");
    visit.key("r");
    visit.write(TRAP);
    visit.key("Enter");
    visit.see(&named("decision"), "Rejected");
    assert_eq!(visit.eval("window.hit ?? null"), json!(null));
    let made = "document.querySelectorAll('main :is(img, script, svg, iframe, style, a)').length";
    assert_eq!(visit.eval(made), 0);
    assert_eq!(visit.eval("document.documentElement.scrollWidth <= innerWidth"), true);
    visit.leave();
}

#[test]
fn a_diff_that_looks_like_another_file_is_not_one() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    env.file("a.sql", "-- a/harmless.txt\nkeep\n");
    let gateway = env.serve(&[]);
    gateway.reads("a.sql");
    let id = gateway.asks_to_write("a.sql", "++ b/harmless.txt\nkeep\n");
    let visit = Visit::open(&browser, &gateway.entrance());
    ready(&visit, &id);
    let heads = visit.eval("[...document.querySelectorAll('.file > header code')].map((node) => node.innerText)");
    assert_eq!(heads, json!(["a.sql"]));
    visit.see(".line.del", "--- a/harmless.txt");
    visit.see(".line.add", "+++ b/harmless.txt");
    visit.leave();
}
