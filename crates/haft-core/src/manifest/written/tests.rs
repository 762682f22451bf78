//! Texts that cannot be read, places in those that can, and bounds on all of them.

use super::*;
use serde_json::json;

fn bad(text: &str) -> String {
    let flaw = parse(text).unwrap_err();
    assert!(flaw.line >= 1 && flaw.column >= 1);
    flaw.to_string()
}

#[test]
fn what_cannot_be_read_is_told_with_its_place() {
    for (text, expected) in [
        ("a: 1\na: 2", "2:1: the key `a` is given twice"),
        ("5: a\n\"5\": b", "1:1: a key is given twice"),
        ("a: 1\n---\nb: 2", "3:1: a second YAML document; a manifest is one"),
        ("? [a]\n: b", "1:3: a key has to be text"),
        ("~: x", "1:1: a key has to be text, and this one is empty"),
        ("a: *x", "1:4: `*` begins an alias in YAML; put text that begins with it in quotes"),
        ("a: &x [*x]", "1:8: an alias that stands inside what it repeats"),
        ("a: .nan", "1:4: a number that is not finite; JSON has none"),
        ("a: 1e999", "1:4: a number that is not finite; JSON has none"),
        ("a: !run x", "1:9: a `!tag` means nothing here; put text that begins with `!` in quotes"),
        ("a: !!int 1", "1:10: a `!tag` means nothing here; put text that begins with `!` in quotes"),
        ("a:\n  - !!str 5", "2:11: a `!tag` means nothing here; put text that begins with `!` in quotes"),
        ("a: !!map\n  b: 1", "2:3: a `!tag` means nothing here; put text that begins with `!` in quotes"),
        ("{\"a\":!!int 1}", "1:12: a `!tag` means nothing here; put text that begins with `!` in quotes"),
        ("!!str a: 1", "1:7: a `!tag` means nothing here; put text that begins with `!` in quotes"),
        ("<<: {a: 1}\n", "1:1: `<<` is not known here; write the keys out"),
        ("a:\n\tb: 1", "2:1: a tab cannot indent in YAML; use spaces"),
        ("a: [1, 2", "1:4: unclosed bracket '['"),
        ("a: @b", "1:4: text that begins with `@` has to be in quotes"),
        ("a: b: c", "1:5: a second `:` on the line; put text that holds `: ` in quotes"),
    ] {
        assert_eq!(bad(text), expected, "{text:?}");
    }
}

#[test]
fn words_stay_words() {
    let value = parse("a: [yes, no, on, y, true, 010, 1_000, \"5\", 1.5, ~]").unwrap();
    let Value::Array(items) = &value["a"] else { panic!("{value}") };
    assert_eq!(items[..5], [json!("yes"), json!("no"), json!("on"), json!("y"), json!(true)]);
    assert_eq!(items[7..], [json!("5"), json!(1.5), Value::Null]);
    let loud = parse("a: hi !there # !no\nb: \"!!int 5\"\nc: |\n  !x\n").unwrap();
    assert_eq!(loud, json!({"a": "hi !there", "b": "!!int 5", "c": "!x\n"}));
}

#[test]
fn nothing_unfolds_without_bound() {
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (last, next) in ["a", "b", "c", "d", "e", "f", "g", "h"].iter().zip(["b", "c", "d", "e", "f", "g", "h", "i"]) {
        bomb.push_str(&format!("{next}: &{next} [{}]\n", vec![format!("*{last}"); 9].join(", ")));
    }
    assert!(bad(&bomb).ends_with(words::TOO_MUCH), "{}", bad(&bomb));
    let fat = format!("a: &a \"{}\"\nb: [{}]\n", "x".repeat(200_000), vec!["*a"; 60].join(", "));
    assert!(bad(&fat).ends_with(words::TOO_MUCH), "{}", bad(&fat));
    assert!(bad(&format!("a: {}", "[".repeat(100_000))).len() < 300);
    assert!(bad(&format!("a: {}{}", "[".repeat(70), "]".repeat(70))).ends_with(words::TOO_MUCH));
    assert!(bad(&"x".repeat(10 << 20)).contains("larger than 256 KiB"));
    let (few, many) = ("- x\n".repeat(10_000), "- x\n".repeat(60_000));
    assert!(parse(&few).is_ok() && bad(&many).ends_with(words::TOO_MUCH));
}

#[test]
fn every_key_and_value_has_a_place() {
    let text = "# head\na: 1\nb:\n  - x\n  - {c: \"ä q\", d: ~}\n\"k/~\": |\n  text\nz: &z [1]\ny: *z\n";
    let written = Written::new(text);
    for (pointer, place) in [
        ("/a", (2, 1)),
        ("/b", (3, 1)),
        ("/b/0", (4, 5)),
        ("/b/1/d", (5, 16)),
        ("/k~1~0", (6, 1)),
        ("/y/0", (9, 4)),
        ("/b/1/new", (5, 5)),
        ("/gone", (2, 1)),
    ] {
        assert_eq!(written.place(pointer), place, "{pointer}");
    }
    let quoted = written.places().get("/b/1/c").unwrap().bytes.clone().unwrap();
    assert_eq!(&text[quoted], "\"ä q\"");
    assert_eq!(written.places().get("/y/0").unwrap().bytes, None, "it stands elsewhere");
    assert_eq!(Written::default().place("/a"), (0, 0));
}
