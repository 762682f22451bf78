//! Pages that are too much: too large, too insistent, without end.

use crate::Scene;
use crate::site::{Site, page};
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn a_page_that_is_too_much_is_bounded() {
    let site = Site::start(|path, _| match path {
        "/large" => {
            page(&format!("<title>Large</title>{}", format!("<p>{}</p>", "word after word ".repeat(1600)).repeat(120)))
        }
        "/dialogs" => page("<title>Insistent</title><p>here</p><script>while (true) alert('again')</script>"),
        "/endless" => page("<title>Endless</title><p>first</p><img src=\"/never\">"),
        "/never" => {
            std::thread::sleep(Duration::from_secs(30));
            page("late")
        }
        _ => page("<title>Small</title><p>small"),
    });
    let Some(scene) = Scene::new(&[site.port]) else { return };

    // Three megabytes, more than a tree is made of: a part of its text, and how to go on.
    let large = scene.call("browser.navigate", json!({ "url": site.url("/large"), "timeout_ms": 60_000 }));
    assert!(large.output.len() < 60_000 && large.output.contains("word after word"), "{}", large.output.len());
    assert!(large.output.contains("[more follows"), "{}", &large.output[..200]);

    // A dialog after the other: dismissed, then ended.
    let insistent = scene.call("browser.navigate", json!({ "url": site.url("/dialogs"), "timeout_ms": 30_000 }));
    assert_eq!(insistent.output.matches("Dialog, alert: again").count(), 5, "{insistent:#?}");
    let told = |warning: &String| {
        warning.starts_with("the page opened ") && warning.ends_with(" dialogs, which were dismissed")
    };
    assert!(insistent.warnings.iter().any(told), "{:?}", insistent.warnings);
    assert!(!insistent.warnings.iter().any(|warning| warning.contains("again")), "{:?}", insistent.warnings);
    assert!(insistent.output.contains("here"), "{insistent:#?}");

    // What does not come is not waited for any longer than was said.
    let begun = Instant::now();
    let endless = scene.call("browser.navigate", json!({ "url": site.url("/endless"), "timeout_ms": 1000 }));
    assert!(endless.warnings[0].contains("did not finish loading within 1000 ms"), "{:?}", endless.warnings);
    assert!(endless.output.contains("first") && begun.elapsed() < Duration::from_secs(25), "{endless:#?}");

    // A script without end is ended, and the page goes on.
    scene.navigate(&site.url("/"));
    let late = scene.refused("browser.evaluate", json!({ "expression": "for (;;);", "timeout_ms": 500 }));
    assert!(late.contains("did not end") || late.contains("terminated"), "{late}");
    assert_eq!(scene.evaluate("1 + 1"), 2);
    let huge = scene.refused("browser.evaluate", json!({ "expression": "'x'.repeat(49 << 20)" }));
    assert!(huge.contains("more than 48 MB"), "{huge}");
    let many = scene.call("browser.evaluate", json!({ "expression": "'x'.repeat(200000)" }));
    assert!(many.output.len() < 60_000 && many.data.as_ref().unwrap()["too_large"].is_number());
}
