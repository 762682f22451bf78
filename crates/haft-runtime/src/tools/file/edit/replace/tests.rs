//! The model of replacing, case by case. The differential suite compares it with one written in Python.

use super::*;
use crate::testing::assert_linear;

fn replacement<'r>(old: &'r str, new: &'r str, occurrences: Occurrences) -> Replacement<'r> {
    Replacement { old, new, occurrences, quotes: Quotes::Alike }
}

fn only(text: &str, old: &str, new: &str) -> Result<String, EditError> {
    let edited = replacement(old, new, Occurrences::Only).apply_to_text(text)?;
    Ok(String::from_utf8(edited.content).unwrap())
}

fn all(text: &str, old: &str, new: &str) -> Result<String, EditError> {
    let edited = replacement(old, new, Occurrences::All).apply_to_text(text)?;
    Ok(String::from_utf8(edited.content).unwrap())
}

fn at(lines: &[usize]) -> LineNumbers {
    LineNumbers { first: lines.to_vec(), total: lines.len() }
}

#[test]
fn one_occurrence_or_all() {
    assert_eq!(only("a b c", "b", "x").as_deref(), Ok("a x c"));
    assert_eq!(only("a\nb\na\n", "a", "x"), Err(EditError::Ambiguous(at(&[1, 3]))));
    let edited = replacement("a", "x", Occurrences::All).apply_to_text("a\nb\na\n").unwrap();
    assert_eq!(edited, Edited { content: b"x\nb\nx\n".into(), lines: at(&[1, 3]), quotes: Quotes::AsWritten });
    assert_eq!(all("aaaaa", "aa", "b").as_deref(), Ok("bba"), "none within another");
}

#[test]
fn line_ends_follow_the_file() {
    assert_eq!(only("a\r\nb\r\nc\r\n", "a\nb", "x\ny").as_deref(), Ok("x\r\ny\r\nc\r\n"));
    assert_eq!(only("a\r\nb\r\n", "b", "x\ny").as_deref(), Ok("a\r\nx\r\ny\r\n"));
    assert_eq!(only("a\nb\n", "a\nb", "x").as_deref(), Ok("x\n"));
}

#[test]
fn an_old_text_that_begins_with_a_line_feed_takes_all_of_a_crlf() {
    assert_eq!(only("a\r\nb\r\nc", "\nb", "\nx").as_deref(), Ok("a\r\nx\r\nc"));
    assert_eq!(only("a\r\nb\r\nc", "\nb", "").as_deref(), Ok("a\r\nc"));
    assert_eq!(only("a\r\n\r\nb", "\n\nb", "\nb").as_deref(), Ok("a\r\nb"));
    assert_eq!(all("a\r\nb\r\nc", "\n", "\n\n").as_deref(), Ok("a\r\n\r\nb\r\n\r\nc"));
    // A CR elsewhere in it does not let it in between either.
    assert_eq!(only("a\r\nb\r\n", "\nb\r\n", "x"), Err(EditError::Missing));
}

#[test]
fn every_kind_of_line_end_counts_in_a_file_of_mixed_ones() {
    assert_eq!(all("a\r\nb\na\nb\r\n", "a\nb", "x").as_deref(), Ok("x\nx\r\n"));
    assert_eq!(only("a\r\nb\na\nb\r\n", "a\nb", "x"), Err(EditError::Ambiguous(at(&[1, 3]))));
    assert_eq!(
        all("a\r\na\na", "a", "x\ny").as_deref(),
        Ok("x\r\ny\r\nx\ny\nx\ny"),
        "the last line has the one before"
    );
    // What both texts share keeps its own.
    assert_eq!(only("a\r\nb\nc\r\n", "a\nb\nc", "a\nx\nc").as_deref(), Ok("a\r\nx\nc\r\n"));
}

#[test]
fn a_carriage_return_is_meant_as_it_is_written() {
    assert_eq!(all("a\r\nb\nc\r\n", "\r\n", "\n").as_deref(), Ok("a\nb\nc\n"));
    assert_eq!(all("a\r\nb\nc", "\n", "\r\n").as_deref(), Ok("a\r\nb\r\nc"));
    assert_eq!(all("a\r\nb\rc", "\r", "").as_deref(), Ok("a\nbc"));
    assert_eq!(only("a\nb", "a\r\nb", "x"), Err(EditError::Missing));
}

#[test]
fn curly_and_straight_quotes_are_alike_only_where_nothing_occurs_as_written() {
    assert_eq!(only("say \u{201c}hé\u{201d} now", "say \"hé\"", "say 'ho'").as_deref(), Ok("say 'ho' now"));
    assert_eq!(only("it's", "it\u{2019}s", "is").as_deref(), Ok("is"));
    assert_eq!(only("it's it\u{2019}s", "it's", "is").as_deref(), Ok("is it\u{2019}s"));
    let curly = replacement("\"a\"", "\"b\"", Occurrences::Only).apply_to_text("\u{201c}a\u{201d}").unwrap();
    assert_eq!(
        (curly.content.as_slice(), curly.quotes),
        ("\u{201c}b\u{201d}".as_bytes(), Quotes::Alike),
        "quotes stay"
    );
    let exact = Replacement { quotes: Quotes::AsWritten, ..replacement("it's", "is", Occurrences::All) };
    assert_eq!(exact.apply_to_text("it\u{2019}s").unwrap_err(), EditError::Missing);
}

#[test]
fn nothing_to_do_is_an_error() {
    assert_eq!(only("a", "", "b"), Err(EditError::Empty));
    assert_eq!(only("a", "a", "a"), Err(EditError::Identical));
    assert_eq!(all("a\r\n", "\n", "\r\n"), Err(EditError::Identical));
}

#[test]
fn bytes_that_are_not_text_stay_as_they_are() {
    let content = b"\xff caf\xe9 \r\nfoo\xfe\n";
    let edited = replacement("foo", "bar", Occurrences::Only).apply(content, TextEncoding::UTF_8).unwrap();
    assert_eq!(edited.content, b"\xff caf\xe9 \r\nbar\xfe\n");
    let shown = replacement("caf\u{fffd}", "x", Occurrences::Only).apply(content, TextEncoding::UTF_8);
    assert_eq!(shown, Err(EditError::Missing), "what is shown for a bad byte does not stand for it");
}

#[test]
fn a_file_in_another_encoding_is_edited_in_it() {
    let utf16: Vec<u8> = "\u{feff}één\r\ntwee\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let encoding = TextEncoding::detect(&utf16).unwrap();
    let edited = replacement("\ntwee", "\n2 €\n3", Occurrences::Only).apply(&utf16, encoding).unwrap();
    let expected: Vec<u8> = "\u{feff}één\r\n2 €\r\n3\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(edited.content, expected);
    let latin = b"caf\xe9 \x80 5\n";
    let encoding = TextEncoding::detect(latin).unwrap();
    let edited = replacement("café € 5", "thé € 6", Occurrences::Only).apply(latin, encoding).unwrap();
    assert_eq!(edited.content, b"th\xe9 \x80 6\n");
    let lacking = replacement("café", "→", Occurrences::Only).apply(latin, encoding).unwrap_err();
    insta::assert_snapshot!(lacking.explain("a.txt").message, @"a.txt is in windows-1252, which does not have the character `→` (U+2192); nothing was changed");
}

#[test]
fn lines_are_named_up_to_a_number_and_then_counted() {
    let text = "x\n".repeat(1000);
    let edited = replacement("x", "y", Occurrences::All).apply_to_text(&text).unwrap();
    assert_eq!(
        edited.lines.to_string(),
        "lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20 and 980 more"
    );
}

#[test]
fn what_would_grow_beyond_all_bounds_is_refused() {
    let (text, new) = ("a".repeat(100_000), "b".repeat(100_000));
    assert_eq!(all(&text, "a", &new), Err(EditError::TooLarge));
}

#[test]
fn what_is_near_is_shown() {
    let text = "fn main() {\n    let total = 1;\n}\n";
    let missing = |old: &str| only(text, old, "x").unwrap_err().explain_near("m.rs", text, old).message;
    insta::assert_snapshot!(missing("\tlet total  = 1;\n"), @r"
    `old_string` does not occur in m.rs. Nearest:
    line 2 differs only in white space: `    let total = 1;`
    ");
    insta::assert_snapshot!(missing("let totals = 2;"), @r"
    `old_string` does not occur in m.rs. Nearest:
    line 2: `    let total = 1;`
    ");
}

#[test]
fn replacing_takes_time_in_proportion_to_the_size() {
    let run = |text: String, old: &str, new: &str| {
        replacement(old, new, Occurrences::All).apply_to_text(&text).unwrap();
    };
    assert_linear(100_000, |n| run("a".repeat(n), "a", "bc"));
    assert_linear(50_000, |n| run("a\r\n".repeat(n), "\n", "\n\n"));
    // The line end of every place is the last one.
    assert_linear(50_000, |n| run(format!("x\r\n{}", "a ".repeat(n)), "a", "b\nc"));
    assert_linear(50_000, |n| run("\u{201c}a\u{201d}".repeat(n), "\"a\"", "\"b\""));
    assert_linear(20_000, |n| run("\n\r\n".repeat(n), "\n\r\n\n", "x\r\n"));
    let japanese = TextEncoding::detect(b"\x93\xfa\x96{\x8c\xea\x83e\x83X\x83g").unwrap();
    assert_eq!(japanese.name(), "Shift_JIS");
    assert_linear(20_000, |n| {
        let content = japanese.encode(&"日本語\r\n".repeat(n)).unwrap();
        let edited = replacement("本", "テスト", Occurrences::All).apply(&content, japanese).unwrap();
        assert_eq!(edited.lines.total, n);
    });
}

#[test]
fn looking_for_what_is_near_does_not_cost_more_than_the_edit() {
    // Every run of lines is nearly the one that is wanted.
    let text = format!("{}\n", "word ".repeat(2000)).repeat(5000);
    let old = format!("{}no such line\n", format!("{}\n", "word ".repeat(2000)).repeat(2500));
    let begun = std::time::Instant::now();
    assert_eq!(only(&text, &old, "x").unwrap_err().explain_near("a", &text, &old).kind, haft_core::ErrorKind::NotFound);
    assert!(begun.elapsed().as_secs() < 10, "took {:?}", begun.elapsed());
}
