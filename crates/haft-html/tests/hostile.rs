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

#[test]
fn spans_without_measure() {
    for span in
        ["colspan=99999999999999999999", "rowspan=65534", "rowspan=0", "colspan=1000 rowspan=65534", "colspan=-1"]
    {
        let rows = format!("<tr><td {span}>a<td>b<td {span}>c<tr><td>d").repeat(PART / 60);
        let page = read(span, &format!("<table>{rows}</table><p>the end"));
        assert!(page.text.contains("the end"));
        let cells = format!("<td {span}>a").repeat(PART / 30);
        read(span, &format!("<table><tr><th>h{cells}<tr><td>d</table>"));
    }
}

#[test]
fn a_thousand_tables_inside_each_other() {
    for open in ["<table><tr><th>h<td>", "<table><tr><td rowspan=2>x<td>", "<table><tr><td><pre>x</pre><td>"] {
        let page = read(open, &format!("{}<p>the end", open.repeat(1000)));
        assert!(page.text.contains("the end"));
    }
}

#[test]
fn marks_without_end() {
    for piece in [
        "<sup>",
        "<sup>1",
        "<sub>x</sub>",
        "<del><p>x",
        "<del>x<br>",
        "<s><sup>1</s>",
        "<q>",
        "<rt>x",
        "<ol reversed><li>x",
        "<ol reversed>",
        "<ul></ol>",
        "<td><pre>x\ny</pre>",
        "<del>~</del>",
        "<b style=text-decoration:line-through>x",
    ] {
        read(piece, &repeated(piece));
        read(piece, &format!("<table><tr><th>{}", repeated(piece)));
    }
}

#[test]
fn what_is_twice_as_long_takes_about_twice_as_long() {
    let pieces = [
        "<tr><td rowspan=3>a<td colspan=2>b",
        "<p>x<sup>2</sup>y <del>a</del>",
        "<ol reversed><li>a</ol>",
        "<tr><td><pre>a\nb</pre><th>c",
        "<ul><li>a<li><a href=/b>b</a></ul>",
        "<blockquote><p>a</blockquote>",
    ];
    let time = |piece: &str, size: usize| {
        let html = format!("<table>{}", piece.repeat(size / piece.len()));
        let begun = Instant::now();
        markdown(&html, &Options { main: true, ..Options::default() });
        begun.elapsed()
    };
    for piece in pieces {
        let (short, long) = (time(piece, PART / 2), time(piece, PART * 4));
        // Eight times as long; the square would be sixty-four times.
        assert!(long < short * 24 + Duration::from_millis(200), "{piece}: {short:?} and {long:?}");
    }
}
