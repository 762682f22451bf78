//! One line about a call, for prompts and logs. Model-written text is shown inert: no control
//! characters, no invisible direction changes, nothing that could pretend to be part of the prompt.

use serde_json::Value;
use std::fmt::Write as _;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Text with everything that could act on a terminal or mislead the eye made visible.
pub fn inert(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    let mut before = None;
    while let Some(c) = characters.next() {
        // One such blank is ordinary text; beside another blank it only hides how far something was pushed.
        let beside_blank = before.is_some_and(is_blank) || characters.peek().copied().is_some_and(is_blank);
        let is_hiding = is_unusual_blank(c) && beside_blank;
        before = Some(c);
        match c {
            '\n' => shown.push('↵'),
            '\t' => shown.push(' '),
            c if c.is_control() || is_deceptive(c) || is_hiding => {
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
            }
            c => shown.push(c),
        }
    }
    shown
}

/// Characters that reorder or hide text, or look like nothing: bidirectional controls, zero-width characters, letters that
/// are drawn as blanks, blanks of unusual widths, unusual variation selectors, tags.
fn is_deceptive(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{1680}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{205f}'..='\u{206f}'
        | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Blanks of ordinary texts: no-break spaces of French, the ideographic space.
fn is_unusual_blank(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{202f}' | '\u{3000}')
}

fn is_blank(c: char) -> bool {
    c == ' ' || c == '\t' || is_unusual_blank(c)
}

/// The text, cut to `columns` of display width (CJK counts two) with `…` at the cut.
pub fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut width = 0;
    let mut shown = String::new();
    for c in text.chars() {
        width += c.width().unwrap_or(0);
        if width > columns.saturating_sub(1) {
            break;
        }
        shown.push(c);
    }
    shown.push('…');
    shown
}

/// One line about a call: `file.read: src/main.rs  +100,50  # why`.
/// Parameters in `bodies` are shown by their size: a preview is kept where bodies must not be.
pub fn line(
    spoken: &str,
    (canonical, bodies): (&str, &[&str]),
    args: &Value,
    note: Option<&str>,
    columns: usize,
) -> String {
    let mut text = format!("{spoken}: {}", body(canonical, bodies, args));
    if let Some(note) = note.filter(|note| !note.is_empty()) {
        let _ = write!(text, "  # {note}");
    }
    cut(&inert(&text), columns)
}

fn body(canonical: &str, bodies: &[&str], args: &Value) -> String {
    let masked = || crate::record::masked(args, &Value::Null, bodies);
    let text = |name: &str| args.get(name).and_then(Value::as_str).unwrap_or_default();
    match canonical {
        "calc.eval" => text("expression").to_owned(),
        "shell.exec" | "process.start" => format!("$ {}", command(&masked()).unwrap_or_default()),
        "file.read" => match range(args) {
            Some(range) => format!("{}  {range}", text("path")),
            None => text("path").to_owned(),
        },
        "file.edit" => text("path").to_owned(),
        "web.request" => request(args),
        "api.setup" => setup(args),
        "file.write" => format!("{} ({})", text("path"), size(text("content").len())),
        _ => generic(&masked(), bodies),
    }
}

/// Method, URL, and how much is sent; nothing of what.
fn request(args: &Value) -> String {
    let text = |name: &str| args.get(name).and_then(Value::as_str).unwrap_or_default();
    let sent = match args.get("body") {
        Some(Value::String(body)) => format!("  ({})", size(body.len())),
        Some(body) => format!("  ({})", size(body.to_string().len())),
        None => String::new(),
    };
    let headers = args.get("headers").and_then(Value::as_object).filter(|headers| !headers.is_empty());
    let headers = headers.map(|headers| format!("  headers={}", shown(&headers.clone().into()))).unwrap_or_default();
    format!("{} {}{sent}{headers}", text("method"), crate::secret::mask_urls(text("url")))
}

/// What is done to which profile. Which variable would be sent to which host is what a person decides about, so it comes
/// first; a key itself is not shown.
fn setup(args: &Value) -> String {
    let profile = &args["profile"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let id = if args["id"].is_string() { text(&args["id"]) } else { text(&profile["id"]) };
    let mut said = format!("{} {}", text(&args["action"]), cut(&id, ID_COLUMNS));
    let base = profile["base_url"].as_str();
    if let Some(auth) = profile["auth"].as_object() {
        let named: Vec<&str> =
            auth.values().filter_map(Value::as_str).filter(|value| value.starts_with("${")).collect();
        let what = if named.is_empty() { "a key".to_owned() } else { named.join(" ") };
        let kind = text(auth.get("type").unwrap_or(&Value::Null));
        let host = base.map_or_else(|| "a host that is not known".to_owned(), host);
        let _ = write!(said, ": sends {what} to {host} as {kind}");
    }
    if let Some(base) = base {
        let _ = write!(said, "  {}", crate::secret::mask_urls(base));
    }
    said
}

/// As much of an id is shown.
const ID_COLUMNS: usize = 64;
/// As much of a host is shown.
const HOST_COLUMNS: usize = 50;

/// The host that a URL leads to, in plain letters. Of a long one the end is shown: that is whose it is.
fn host(url: &str) -> String {
    let Ok(target) = crate::web::Target::read(url) else { return "what is no URL".to_owned() };
    let authority = target.authority();
    match authority.len().checked_sub(HOST_COLUMNS).filter(|over| *over > 0) {
        Some(over) => format!("…{}", &authority[authority.ceil_char_boundary(over + 1)..]),
        None => authority,
    }
}

/// The command of a call, with the arguments that it is given apart, as a shell would write them.
pub fn command(args: &Value) -> Option<String> {
    let mut text = args.get("command")?.as_str()?.to_owned();
    for word in args.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            let _ = write!(text, " {word}");
        } else {
            let _ = write!(text, " '{}'", word.replace('\'', r"'\''"));
        }
    }
    Some(text)
}

fn range(args: &Value) -> Option<String> {
    let number = |name: &str| args.get(name).and_then(Value::as_u64);
    let (offset, limit) = (number("offset"), number("limit"));
    (offset.is_some() || limit.is_some()).then(|| match limit {
        Some(limit) => format!("+{},{limit}", offset.unwrap_or(0)),
        None => format!("+{}", offset.unwrap_or(0)),
    })
}

/// Scalars first, in order of their names, then containers by what they hold.
fn generic(args: &Value, bodies: &[&str]) -> String {
    let Some(object) = args.as_object() else { return args.to_string() };
    let mut entries: Vec<(&String, &Value)> = object.iter().collect();
    entries.sort_by_key(|(name, value)| (value.is_object() || value.is_array(), name.as_str()));
    let value = |name: &str, value: &Value| match value.as_str() {
        Some(text) if bodies.contains(&name) => format!("({})", size(text.len())),
        Some(text) if name == "url" => Value::from(crate::secret::mask_urls(text)).to_string(),
        _ => shown(value),
    };
    let text =
        entries.iter().map(|(name, given)| format!("{name}={}", value(name, given))).collect::<Vec<_>>().join(", ");
    crate::secret::mask(&text).into_owned()
}

fn shown(value: &Value) -> String {
    const KEYS_SHOWN: usize = 3;
    match value {
        Value::Array(items) => format!("[{} items]", items.len()),
        Value::Object(map) => {
            let mut keys: Vec<&str> = map.keys().take(KEYS_SHOWN).map(String::as_str).collect();
            let more = map.len().saturating_sub(KEYS_SHOWN);
            let rest = format!("+{more} more");
            if more > 0 {
                keys.push(&rest);
            }
            format!("{{{}}}", keys.join(", "))
        }
        scalar => scalar.to_string(),
    }
}

/// A number of bytes for people: `2.3KB`.
pub fn size(bytes: usize) -> String {
    const UNITS: &[(&str, usize)] = &[("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)];
    for (unit, scale) in UNITS {
        if bytes >= *scale {
            let tenths = (bytes * 10 + scale / 2) / scale;
            return format!("{}.{}{unit}", tenths / 10, tenths % 10);
        }
    }
    format!("{bytes}B")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn blank_letters_are_shown_and_ordinary_blanks_are_not() {
        for blank in ['\u{3164}', '\u{115f}', '\u{1160}', '\u{ffa0}', '\u{2800}', '\u{2003}', '\u{fe00}', '\u{e0100}'] {
            assert_eq!(inert(&format!("ls {blank}; x")), format!("ls \\u{{{:x}}}; x", u32::from(blank)));
        }
        assert_eq!(inert("Ça va\u{a0}? 「漢字\u{3000}漢字」 ❤\u{fe0f}"), "Ça va\u{a0}? 「漢字\u{3000}漢字」 ❤\u{fe0f}");
        assert_eq!(inert("ls\u{a0}\u{a0}\u{3000}x"), "ls\\u{a0}\\u{a0}\\u{3000}x");
        assert_eq!(inert("ls \u{a0}x"), "ls \\u{a0}x");
    }

    #[test]
    fn previews_follow_the_document() {
        let show = |canonical: &str, args: Value, note| line(canonical, (canonical, &["secret"]), &args, note, 80);
        let lines = [
            show("calc.eval", json!({"expression": "2 + 2"}), None),
            show("file.read", json!({"path": "config.lua", "offset": 100, "limit": 50}), Some("reading tail")),
            show("file.write", json!({"path": "output.txt", "content": "x".repeat(2355)}), Some("saving log")),
            show(
                "web.request",
                json!({"method": "POST", "url": "https://a.test/x", "body": {"a": 1}, "headers": {"X": "y"}}),
                None,
            ),
            show(
                "api.setup",
                json!({"action": "create", "profile": {"id": "a", "base_url": "https://a.test",
                "auth": {"type": "bearer", "token": "${A_TOKEN}"}}}),
                None,
            ),
            show("web.search", json!({"query": format!("my key AKIA{}", "Z7Q3M5N2K8R4T6W1")}), None),
            show(
                "browser.navigate",
                json!({"url": format!("https://a.test/?k=AKIA{}", "Z7Q3M5N2K8R4T6W1"), "wait": "load"}),
                None,
            ),
            show("my.search", json!({"b": {"x": 1, "y": 2, "z": 3, "w": 4}, "a": "v", "c": [1, 2]}), None),
        ];
        insta::assert_snapshot!(lines.join("\n"), @r#"
        calc.eval: 2 + 2
        file.read: config.lua  +100,50  # reading tail
        file.write: output.txt (2.3KB)  # saving log
        web.request: POST https://a.test/x  (7B)  headers={X}
        api.setup: create a: sends ${A_TOKEN} to a.test:443 as bearer  https://a.test
        web.search: query="my key [secret]"
        browser.navigate: url="https://a.test/?k=[secret]", wait="load"
        my.search: a="v", b={x, y, z, +1 more}, c=[2 items]
        "#);
    }

    #[test]
    fn where_a_variable_goes_is_seen_however_long_the_rest_is() {
        let base = format!("https://api.bank.test.{}.evil.test/{}", "a".repeat(60), "b".repeat(300));
        let auth = json!({"type": "bearer", "token": "${AWS_SECRET_ACCESS_KEY}"});
        let args = json!({"action": "create", "profile": {"id": "bank", "base_url": base, "auth": auth}});
        let shown = line("api.setup", ("api.setup", &[]), &args, None, 120);
        assert!(
            shown.contains("sends ${AWS_SECRET_ACCESS_KEY} to …") && shown.contains(".evil.test:443 as bearer"),
            "{shown}"
        );
    }

    #[test]
    fn text_from_a_model_cannot_act() {
        assert_eq!(inert("a\x1b[2Jb\u{202e}c\nd"), "a\\u{1b}[2Jb\\u{202e}c↵d");
    }

    #[test]
    fn wide_characters_count_two() {
        assert_eq!(cut("日本語テキスト", 8), "日本語…");
        assert_eq!(cut("short", 8), "short");
    }
}
