//! Pages that nobody wrote to be read: every one has an answer, in time and memory that its size bounds.

use haft_html::{Options, Page, markdown};
use std::time::{Duration, Instant};

const SIZE: usize = 10 << 20;
/// What is not about depth is as bad when it is smaller.
const PART: usize = 2 << 20;
/// Far more than it takes on a slow machine, far less than what grows with the square.
const PATIENCE: Duration = Duration::from_mins(1);

fn read(what: &str, html: &str) -> Page {
    let begun = Instant::now();
    let page = markdown(html, &Options { main: true, ..Options::default() });
    assert!(begun.elapsed() < PATIENCE, "{what} takes {:?}", begun.elapsed());
    assert!(page.text.len() <= html.len() * 4 + 100, "{what} grows to {}", page.text.len());
    page
}

fn repeated(piece: &str) -> String {
    piece.repeat(PART / piece.len())
}

#[test]
fn ten_megabytes_of_one_tag() {
    for piece in ["<div>", "<div><p>", "<blockquote>", "<ul><li>", "<b>", "<a href=x>", "<table><tr><td>", "<x-y>"] {
        let page = read(piece, &format!("{}<p>the end", piece.repeat(SIZE / piece.len())));
        assert!(page.text.contains("the end"), "{piece}: {}", &page.text[..100]);
    }
}

#[test]
fn much_of_ends_and_crossings() {
    for piece in ["</div>", "</p>", "</x>", "<b></i>", "<p><b><i></p>", "</table></td>", "<li></ul>", "<h1><h2>"] {
        read(piece, &format!("{}<p>the end", repeated(piece)));
    }
}

#[test]
fn a_table_without_end() {
    let rows = repeated("<tr><td>a<td>b");
    let page = read("rows", &format!("<table>{rows}</table><p>the end"));
    assert!(page.text.contains("a | b\na | b\n") && page.text.contains("the end"));
    let cells = repeated("<td>a");
    read("cells", &format!("<table><tr>{cells}</table>"));
}

#[test]
fn everything_unclosed() {
    let open = "<!doctype <html <body <h1>Title<ul><li>a<table><tr><td>b<pre>c<code>d<a href='x";
    assert!(read("unclosed", open).text.contains("Title"));
    for end in ["<", "<!", "<!--", "</", "<a", "<a ", "<a b", "<a b=", "<a b='", "&", "&#", "&#x", "<![CDATA["] {
        let page = read(end, &format!("<p>text{end}"));
        assert!(page.text.contains("text"), "{end}");
    }
    for raw in ["script", "style", "title", "textarea", "xmp", "iframe", "noscript", "svg", "template"] {
        read(raw, &format!("<p>text<{raw}>{}", repeated("never ends ")));
    }
}

#[test]
fn nuls_and_no_characters() {
    assert!(read("nul", "<p>a\0b<\0p>c</p\0>&#0;&#x110000;&#xFFFE;").text.starts_with('a'));
    read("nuls", &"\0".repeat(PART));
}

#[test]
fn attributes_without_end() {
    let long = "x".repeat(1 << 20);
    for name in ["class", "style", "href", "id", "colspan", "start", &long] {
        let page = read("attribute", &format!("<ol start={long}><li><a {name}=\"{long}\">text</a></ol>"));
        assert!(page.text.contains("text") && page.text.len() < 100);
    }
    let many: String = (0..100_000).map(|number| format!(" a{number}=1")).collect();
    assert_eq!(read("attributes", &format!("<p{many}>text")).text, "text\n");
}

#[test]
fn a_million_entities() {
    assert_eq!(read("entities", &"&amp;".repeat(1_000_000)).text.len(), 1_000_001);
    assert_eq!(read("entities", &"&#65".repeat(1_000_000)).text.len(), 1_000_001);
    read("no entities", &"&".repeat(PART));
}

#[test]
fn much_style() {
    let rules = repeated(".a,.b{display:none}");
    assert_eq!(read("style", &format!("<style>{rules}</style><p class=a>no<p>yes")).text, "yes\n");
    read("styles", &repeated("<style>{"));
    read("style names", &format!("<style>.q{{display:none}}</style>{}", repeated("<p class='a b c d e f g'>")));
}

#[test]
fn backticks_and_brackets() {
    for piece in ["`", "<code>`</code>", "<pre>`", "[", "](", "<a href=http://a>]", "<img alt=x src=http://a/>"] {
        read(piece, &repeated(piece));
    }
}
