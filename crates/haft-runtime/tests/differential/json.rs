//! JSON that web.fetch shows beside its own text, and beside what Python reads in it: only white space between tokens may
//! differ.

use crate::cases::{Generator, compare};
use crate::python::Python;
use crate::server::{Server, inner};
use serde_json::json;

/// Answers a text with what is in it, names in order and numbers as they are written, or with nothing.
const READER: &str = "
import json
def refuse(name):
    raise ValueError(name)
def answer(text):
    try:
        return [json.loads(text, object_pairs_hook=list, parse_float=str, parse_int=str, parse_constant=refuse)]
    except ValueError:
        return None
";

/// Answers whether there was nothing.
const IS_NONE: &str = "
read = answer
def answer(text):
    return read(text) is None
";

#[test]
fn what_is_indented_says_what_was_written() {
    let (server, python) = (Server::start(), Python::start(READER));
    compare("json::what_is_indented_says_what_was_written", 150, |generator| {
        let text = document(generator);
        let (content_type, body) = encoded(generator, &text);
        let outcome = server.fetch(content_type, body);
        let shown = inner(&outcome);
        assert_eq!(without_spaces(shown), without_spaces(&text), "{text}");
        let read = python.ask(&json!(shown));
        assert!(!read.is_null() && read == python.ask(&json!(text)), "{text}");
        assert_eq!(shown.lines().count(), lines(&text), "{text}");
    });
}

#[test]
fn what_is_not_json_is_shown_as_it_came() {
    let (server, python) = (Server::start(), Python::start(&format!("{READER}{IS_NONE}")));
    compare("json::what_is_not_json_is_shown_as_it_came", 150, |generator| {
        let mut text = document(generator);
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let at = places[generator.below(places.len())];
        match generator.below(3) {
            0 => drop(text.remove(at)),
            1 => text.insert_str(at, generator.pick(&[",", "]", "{", "\"", "0", "'", "NaN", "\\", "\u{a0}", "-", "."])),
            _ => text.truncate(at),
        }
        if text.trim().is_empty() || python.ask(&json!(text)) != true {
            return;
        }
        let outcome = server.fetch("application/json", text.clone());
        let end = if text.ends_with('\n') { "" } else { "\n" };
        assert_eq!(inner(&outcome), format!("{text}{end}"));
    });
}

fn document(generator: &mut Generator) -> String {
    let value = value(generator, 5);
    format!("{}{value}{}", spaces(generator), spaces(generator))
}

fn value(generator: &mut Generator, depth: usize) -> String {
    let shape = if depth == 0 { 2 + generator.below(3) } else { generator.below(5) };
    let count = generator.below(4);
    let items: Vec<String> = match shape {
        0 => (0..count).map(|_| value(generator, depth - 1)).collect(),
        1 => (0..count)
            .map(|_| {
                let name = if generator.chance(40) { "\"same\"".to_owned() } else { string(generator) };
                format!("{name}{}:{}{}", spaces(generator), spaces(generator), value(generator, depth - 1))
            })
            .collect(),
        2 => return string(generator),
        3 => return number(generator),
        _ => return generator.pick(&["true", "false", "null"]).to_owned(),
    };
    let items: Vec<String> =
        items.into_iter().map(|item| format!("{}{item}{}", spaces(generator), spaces(generator))).collect();
    let (open, close) = if shape == 0 { ('[', ']') } else { ('{', '}') };
    let inside = if items.is_empty() { spaces(generator) } else { items.join(",") };
    format!("{open}{inside}{close}")
}

fn string(generator: &mut Generator) -> String {
    const PIECES: &[&str] = &[
        "a",
        " ",
        "  ",
        "é",
        "漢",
        "\\\"",
        "\\\\",
        "\\n",
        "\\u00e9",
        "\\ud83d\\ude00",
        "\\/",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
    ];
    format!("\"{}\"", generator.text(PIECES, 6))
}

fn number(generator: &mut Generator) -> String {
    let sign = generator.pick(&["", "-"]);
    let whole = match generator.below(3) {
        0 => "0".to_owned(),
        1 => (generator.below(1000) + 1).to_string(),
        _ => format!("{}{:019}", generator.below(9) + 1, generator.next()),
    };
    let fraction = generator.pick(&["", "", ".0", ".10", ".1000000000000000055511151231257827"]);
    let exponent = generator.pick(&["", "", "", "e5", "E+05", "e-400", "E400"]);
    format!("{sign}{whole}{fraction}{exponent}")
}

fn spaces(generator: &mut Generator) -> String {
    if generator.chance(70) { String::new() } else { generator.text(&[" ", "\n", "\t", "\r\n"], 3) }
}

/// The text in one of the encodings that servers send, with what says so.
fn encoded(generator: &mut Generator, text: &str) -> (&'static str, Vec<u8>) {
    let marked = format!("\u{feff}{text}");
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let plain = text.chars().all(|c| u32::from(c) < 0x80 || c == 'é');
    match generator.below(6) {
        0 => ("application/json", marked.into_bytes()),
        1 => ("application/json; charset=UTF-8", text.into()),
        2 => ("text/json", wide(&marked)),
        3 => ("application/json; charset=utf-16le", wide(text)),
        4 => ("application/json", marked.encode_utf16().flat_map(u16::to_be_bytes).collect()),
        5 if plain => {
            let bytes = text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
            ("application/vnd.api+json; charset=\"iso-8859-1\"", bytes)
        }
        _ => ("application/problem+json", text.into()),
    }
}

/// The text without the white space between its tokens.
fn without_spaces(text: &str) -> String {
    let (mut inside, mut escaped) = (false, false);
    let kept = |c: &char| {
        let keep = inside || !c.is_ascii_whitespace();
        inside ^= *c == '"' && !escaped;
        escaped = inside && *c == '\\' && !escaped;
        keep
    };
    text.chars().filter(kept).collect()
}

/// How many lines it has with every member on its own.
fn lines(text: &str) -> usize {
    let tokens = without_spaces(text);
    let (mut inside, mut escaped, mut lines, mut last) = (false, false, 1, ' ');
    for c in tokens.chars() {
        if !inside {
            let empty = matches!((last, c), ('[', ']') | ('{', '}'));
            lines += usize::from(c == ',') + 2 * usize::from(matches!(c, '[' | '{'));
            lines -= 2 * usize::from(empty);
        }
        inside ^= c == '"' && !escaped;
        escaped = inside && c == '\\' && !escaped;
        last = c;
    }
    lines
}
