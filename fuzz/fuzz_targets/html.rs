//! Any bytes as a page: reading never panics, whatever the charset and the options, and never grows out of bounds.
#![no_main]

use haft_html::{Form, Options, Url, decode, markdown};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let (choice, data) = data.split_first().unwrap_or((&0, data));
    let content_type = ["text/html", "text/html; charset=utf-16le", "x; charset=shift_jis", "x; charset=utf-7"];
    let (html, _) = decode(data, Some(content_type[usize::from(choice >> 2 & 3)]));
    let form = if choice & 1 == 0 { Form::Markdown } else { Form::Text };
    let base = Url::parse("https://example.org/a/b").ok();
    let page = markdown(&html, &Options { form, main: choice & 2 != 0, base });
    // An address may be as long as the base for every link of a few bytes.
    assert!(page.text.len() <= html.len() * 16 + 1000, "{} bytes of {}", page.text.len(), html.len());
    assert!(page.hidden_chars <= html.len());
});
