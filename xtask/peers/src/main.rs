//! Article pages to markdown: haft and two others that do the same job take turns on the same pages. And scanning the
//! text of those pages, which no other does in the same way.
//!
//! Prints one line of JSON with megabytes a second for each. `cargo xtask bench web` runs it.

use haft_html::{Options, Url, markdown};
use std::hint::black_box;
use std::time::{Duration, Instant};

const ROUNDS: usize = 7;
const PAGES: usize = 40;

/// Who turns pages into text.
type Turner = fn(&str) -> usize;

fn main() {
    let pages: Vec<String> = (0..PAGES).map(article).collect();
    let size: usize = pages.iter().map(String::len).sum();
    let turners: [(&str, Turner); 4] = [("haft", ours), ("main", ours_main), ("html2text", html2text), ("htmd", htmd)];
    let mut best = [Duration::MAX; 4];
    for _ in 0..ROUNDS {
        for ((_, turn), best) in turners.iter().zip(&mut best) {
            let begun = Instant::now();
            for page in &pages {
                black_box(turn(black_box(page)));
            }
            *best = begun.elapsed().min(*best);
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a few megabytes")]
    let speed = |best: &Duration| size as f64 / 1e6 / best.as_secs_f64();
    let said: Vec<String> =
        turners.iter().zip(&best).map(|((name, _), best)| format!("\"{name}_mb_s\": {:.1}", speed(best))).collect();
    let texts: Vec<String> = pages.iter().map(|page| markdown(page, &options(false)).text).collect();
    println!("{{\"scan_mb_s\": {:.1}, \"bytes\": {size}, {}}}", scanned(&texts), said.join(", "));
}

/// The best of some rounds of scanning, in megabytes a second.
#[expect(clippy::cast_precision_loss, reason = "a few megabytes")]
fn scanned(texts: &[String]) -> f64 {
    let size: usize = texts.iter().map(String::len).sum();
    let round = || {
        let begun = Instant::now();
        for text in texts {
            black_box(haft_core::scan::scan(black_box(text)));
        }
        begun.elapsed()
    };
    let best = (0..ROUNDS).map(|_| round()).min().unwrap_or_default();
    size as f64 / 1e6 / best.as_secs_f64()
}

fn options(main: bool) -> Options {
    Options { base: Url::parse("https://news.example/2024/").ok(), main, ..Options::default() }
}

fn ours(page: &str) -> usize {
    markdown(page, &options(false)).text.len()
}

fn ours_main(page: &str) -> usize {
    markdown(page, &options(true)).text.len()
}

fn html2text(page: &str) -> usize {
    html2text::from_read(page.as_bytes(), 100).map_or(0, |text| text.len())
}

fn htmd(page: &str) -> usize {
    let turn = htmd::HtmlToMarkdown::builder().skip_tags(vec!["script", "style"]).build();
    turn.convert(page).map_or(0, |text| text.len())
}

/// A page as newspapers make them: much around the text, links in it, classes everywhere.
fn article(number: usize) -> String {
    const WORDS: &[&str] = &[
        "harbour",
        "the",
        "of",
        "tide",
        "and",
        "minister",
        "said",
        "on",
        "Tuesday,",
        "that",
        "boats",
        "were",
        "more",
        "than",
        "a",
        "quarter",
        "of",
        "what",
        "people",
        "expected;",
        "still",
        "it",
        "rained",
        "&amp;",
        "nobody&rsquo;s",
    ];
    let mut at = number;
    let mut text = |count: usize| {
        let mut line = String::new();
        for _ in 0..count {
            at = at.wrapping_mul(1_103_515_245).wrapping_add(12_345) & 0x7fff_ffff;
            line.push_str(WORDS[(at >> 8) % WORDS.len()]);
            line.push(' ');
        }
        line
    };
    let mut page = format!(
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>Story {number}</title><style>.ad{{display:none}}\
         .hero img{{width:100%}}</style><script>window.data = {{\"a\": [1, 2, 3]}};</script></head><body class=\"story\">\
         <nav class=\"top-nav\"><ul>"
    );
    for link in 0..20 {
        page.push_str(&format!(
            "<li class=\"nav-item\"><a class=\"nav-link\" href=\"/section/{link}\">{}</a></li>\n",
            text(2)
        ));
    }
    page.push_str("</ul></nav>\n<main><article class=\"article-body\">\n<h1>");
    page.push_str(&format!("{}</h1>\n", text(8)));
    for paragraph in 0..60 {
        if paragraph % 10 == 0 {
            page.push_str(&format!("<h2 id=\"s{paragraph}\">{}</h2>\n", text(5)));
        }
        page.push_str(&format!("<p class=\"paragraph\">{}", text(40)));
        page.push_str(&format!("<a href=\"https://example.org/{paragraph}\">{}</a> <em>{}</em>", text(3), text(2)));
        page.push_str(&format!("{}</p>\n", text(40)));
        if paragraph % 15 == 7 {
            page.push_str(&format!(
                "<ul><li>{}</li><li>{}</li></ul>\n<div class=\"ad\">{}</div>",
                text(9),
                text(9),
                text(9)
            ));
        }
    }
    page.push_str("<table><tr><th>a</th><th>b</th></tr>");
    for _ in 0..20 {
        page.push_str(&format!("<tr><td>{}</td><td>{}</td></tr>", text(3), text(3)));
    }
    page.push_str("</table></article></main><footer class=\"footer\"><p>&copy; Example</p></footer></body></html>");
    page
}
