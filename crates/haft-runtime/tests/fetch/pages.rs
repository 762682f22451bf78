//! Pages of every kind.

use super::{Answer, Stage, answer, inner, kind, run};
use haft_core::outcome::Label;
use serde_json::json;

const PAGE: &str = "<title>Tides</title><nav><a href=/>Home</a></nav><p>The sea comes <a href='in'>in</a>.<p hidden>x";

#[test]
fn a_page_comes_as_markdown_with_its_title() {
    run(async {
        let stage = Stage::new(vec![("/a", answer("text/html; charset=utf-8", PAGE))]);
        let outcome = stage.fetch("/a", json!({})).await;
        assert!(outcome.success, "{outcome:?}");
        let url = stage.url("/");
        assert_eq!(inner(&outcome), format!("# Tides\n\n[Home]({url})\n\nThe sea comes [in]({url}in).\n"));
        assert_eq!(outcome.labels, [Label::Untrusted]);
        assert!(outcome.warnings[0].starts_with("1 characters that a reader"), "{:?}", outcome.warnings);
        let data = outcome.data.unwrap();
        assert_eq!(
            (&data["title"], &data["status"], &data["url"]),
            (&json!("Tides"), &json!(200), &json!(stage.url("/a")))
        );
        let text = stage.fetch("/a", json!({"format": "text"})).await;
        assert_eq!(inner(&text), "Tides\n\nHome\n\nThe sea comes in.\n");
        let html = stage.fetch("/a", json!({"format": "html"})).await;
        assert_eq!(inner(&html).trim_end(), PAGE);
    });
}

#[test]
fn json_text_and_what_is_neither() {
    run(async {
        let stage = Stage::new(vec![
            ("/json", answer("application/json", r#"{"b": [1, 2]}"#)),
            ("/text", answer("text/plain; charset=iso-8859-1", b"caf\xe9 <b>".to_vec())),
            ("/image", answer("image/png", b"\x89PNG\r\n\x1a\n\0\0".to_vec())),
        ]);
        assert_eq!(inner(&stage.fetch("/json", json!({})).await), "{\n  \"b\": [\n    1,\n    2\n  ]\n}\n");
        assert_eq!(inner(&stage.fetch("/text", json!({})).await), "café <b>\n");
        let image = stage.fetch("/image", json!({})).await;
        assert!(image.output.starts_with("No text: PNG (image/png)"), "{image:?}");
        assert!(image.labels.is_empty());
    });
}

#[test]
fn a_long_page_comes_in_parts_and_is_asked_for_once() {
    run(async {
        let long: String = (0..30_000).map(|number| format!("{number:05}é ")).collect();
        let stage = Stage::new(vec![("/long", answer("text/plain; charset=utf-8", long.clone()))]);
        let mut read = String::new();
        let mut offset = 0;
        loop {
            let outcome = stage.fetch("/long", json!({"offset": offset})).await;
            let part = inner(&outcome);
            read.push_str(part.strip_suffix('\n').unwrap_or(part));
            match outcome.data.unwrap()["next_offset"].as_u64() {
                Some(next) => {
                    assert!(outcome.warnings.iter().any(|line| line.ends_with(&format!("offset {next} continues"))));
                    offset = next;
                }
                None => break,
            }
        }
        assert_eq!(read, long);
        assert_eq!(stage.served(), 1);
        stage.fetch("/long", json!({})).await;
        assert_eq!(stage.served(), 2, "who begins again sees what is there now");
        let past = stage.fetch("/long", json!({"offset": 10_000_000})).await;
        assert_eq!(past.output, "");
        assert!(past.warnings.contains(&"there are only 210000 characters".to_owned()), "{:?}", past.warnings);
    });
}

#[test]
fn a_failure_shows_what_the_server_said() {
    run(async {
        let page = Answer { status: 503, ..answer("text/html", "<p>Back at noon") };
        let moved = Answer { status: 302, headers: "location: /b\r\n".to_owned(), ..Answer::default() };
        let stage = Stage::new(vec![("/down", page), ("/a", moved), ("/b", answer("text/plain", "here"))]);
        let outcome = stage.fetch("/down", json!({})).await;
        assert_eq!((kind(&outcome), inner(&outcome)), ("failed", "Back at noon\n"), "{outcome:?}");
        let outcome = stage.fetch("/a", json!({})).await;
        assert_eq!((inner(&outcome), &outcome.data.as_ref().unwrap()["url"]), ("here\n", &json!(stage.url("/b"))));
        let elsewhere = stage.call("web.fetch", json!({"url": "http://127.0.0.1:1/"})).await;
        assert_eq!(kind(&elsewhere), "denied", "{elsewhere:?}");
        let nonsense = stage.call("web.fetch", json!({"url": "file:///etc/passwd"})).await;
        assert!(!nonsense.success);
    });
}

#[test]
fn an_answer_without_a_page_is_a_failure() {
    run(async {
        let status = |status| Answer { status, ..Answer::default() };
        let choices = Answer { status: 300, ..answer("text/plain", "choose one") };
        let part = Answer {
            status: 206,
            headers: "content-range: bytes 0-3/100\r\n".to_owned(),
            ..answer("text/plain", "some")
        };
        let stage = Stage::new(vec![
            ("/304", status(304)),
            ("/302", status(302)),
            ("/300", choices),
            ("/206", part),
            ("/204", status(204)),
        ]);
        for (path, said) in [
            ("/304", "the server answered with status 304 (Not Modified)"),
            ("/302", "the server answered with status 302 (Found)"),
            ("/300", "the server answered with status 300 (Multiple Choices)"),
        ] {
            let outcome = stage.fetch(path, json!({})).await;
            assert_eq!((kind(&outcome), outcome.error.unwrap().message.as_str()), ("failed", said));
        }
        assert!(stage.fetch("/204", json!({})).await.success);
        let part = stage.fetch("/206", json!({})).await;
        assert!(part.success && part.warnings[0] == "the server sent only a part of it (bytes 0-3/100)", "{part:?}");
    });
}

#[test]
fn json_is_the_same_but_indented() {
    run(async {
        let json = r#"{"price":1.10,"id":12345678901234567890123,"id":1e400,"name":"\u00e9"}"#;
        let marked = format!("\u{feff}{json}");
        let wide: Vec<u8> = marked.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let stage = Stage::new(vec![
            ("/plain", answer("application/json", json)),
            ("/marked", answer("application/json", marked)),
            ("/wide", answer("application/json", wide)),
        ]);
        let expected =
            "{\n  \"price\": 1.10,\n  \"id\": 12345678901234567890123,\n  \"id\": 1e400,\n  \"name\": \"\\u00e9\"\n}\n";
        for path in ["/plain", "/marked", "/wide"] {
            assert_eq!(inner(&stage.fetch(path, json!({})).await), expected, "{path}");
        }
        let request = stage.call("web.request", json!({"url": stage.url("/wide")})).await;
        assert!(inner(&request).ends_with(expected), "{}", request.output);
    });
}

#[test]
fn json_that_nests_without_end_is_answered_in_time() {
    run(async {
        let depth = 1 << 20;
        let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let stage = Stage::new(vec![("/deep", answer("application/json", deep))]);
        let begun = std::time::Instant::now();
        let outcome = stage.fetch("/deep", json!({})).await;
        assert!(outcome.success && outcome.output.len() < 60_000, "{}", outcome.output.len());
        assert!(begun.elapsed() < std::time::Duration::from_secs(30), "{:?}", begun.elapsed());
    });
}

#[test]
fn a_pdf_is_read() {
    let Some(_) = crate::needs::need("HAFT_TEST_PDFTOTEXT") else { return };
    run(async {
        let stage = Stage::new(vec![("/pdf", answer("application/pdf", pdf()))]);
        let outcome = stage.fetch("/pdf", json!({})).await;
        assert!(inner(&outcome).contains("Hello tides"), "{}", outcome.output);
    });
}

/// The smallest PDF that says something. Readers mend the table that it leaves out.
fn pdf() -> Vec<u8> {
    let stream = "BT /F1 24 Tf 72 700 Td (Hello tides) Tj ET";
    format!(
        "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n\
         3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>endobj\n\
         4 0 obj<</Length {}>>stream\n{stream}\nendstream endobj\n\
         5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n",
        stream.len()
    )
    .into_bytes()
}
