//! Whole pages, as they come out.

use haft_html::{Form, Options, Page, Url, markdown};

macro_rules! page {
    ($name:literal) => {
        include_str!(concat!("pages/", $name, ".html"))
    };
}

fn options() -> Options {
    Options { base: Url::parse("https://www.example.com/dir/page.html").ok(), ..Options::default() }
}

fn read(html: &str) -> Page {
    markdown(html, &options())
}

fn main_of(html: &str) -> Page {
    markdown(html, &Options { main: true, ..options() })
}

#[test]
fn an_article() {
    insta::assert_snapshot!(read(page!("article")).text);
}

#[test]
fn what_an_article_is_about() {
    let page = main_of(page!("article"));
    assert!(page.main);
    insta::assert_snapshot!(page.text);
}

#[test]
fn documentation_with_code_and_tables() {
    insta::assert_snapshot!(read(page!("docs")).text);
}

#[test]
fn documentation_without_marks() {
    insta::assert_snapshot!(markdown(page!("docs"), &Options { form: Form::Text, ..options() }).text);
}

#[test]
fn a_front_page_of_news() {
    insta::assert_snapshot!(read(page!("front")).text);
}

#[test]
fn a_thread_of_a_forum() {
    insta::assert_snapshot!(read(page!("forum")).text);
}

#[test]
fn what_a_thread_is_about() {
    let page = main_of(page!("forum"));
    assert!(page.main && !page.text.contains("Home"), "{}", page.text);
    assert!(page.text.contains("My dough stays flat, however") && page.text.contains("How old is your starter"));
}

#[test]
fn every_way_to_hide_text() {
    let page = read(page!("tricks"));
    assert!(!page.text.contains("H-"), "{}", page.text);
    for number in ["one", "two", "three", "four", "five", "six"] {
        assert!(page.text.contains(&format!("Visible {number}.")), "{number} in {}", page.text);
    }
    assert_eq!(page.hidden_chars, 123);
}

#[test]
fn tag_soup() {
    insta::assert_snapshot!(read(page!("soup")).text);
}

#[test]
fn nested_lists() {
    insta::assert_snapshot!(read(page!("lists")).text);
}

#[test]
fn other_scripts() {
    insta::assert_snapshot!(read(page!("scripts")).text);
}

#[test]
fn a_page_that_is_about_nothing_is_given_whole() {
    let page = main_of("<title>Links</title><a href=/a>a</a> <a href=/b>b</a>");
    assert!(!page.main);
    assert_eq!(page.text, "# Links\n\n[a](https://www.example.com/a) [b](https://www.example.com/b)\n");
}

#[test]
fn cells_stand_below_their_own_headings() {
    insta::assert_snapshot!(read(page!("spans")).text);
}

#[test]
fn cells_without_marks_stand_below_their_own_headings() {
    insta::assert_snapshot!(markdown(page!("spans"), &Options { form: Form::Text, ..options() }).text);
}

#[test]
fn marks_that_change_a_meaning() {
    insta::assert_snapshot!(read(page!("marks")).text);
}

#[test]
fn marks_that_change_a_meaning_are_in_plain_text_too() {
    insta::assert_snapshot!(markdown(page!("marks"), &Options { form: Form::Text, ..options() }).text);
}

#[test]
fn numbers_of_lists() {
    insta::assert_snapshot!(read(page!("numbered")).text);
}
