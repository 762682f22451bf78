//! Just enough of HTML to find links and their words on a page of known make. It never fails, and its work is in
//! proportion to the page.

use memchr::{memchr, memmem};

/// An opening tag.
pub(super) struct Tag<'h> {
    name: &'h str,
    attributes: &'h str,
    /// Where its content begins.
    end: usize,
}

/// The opening tags of a page, in order.
pub(super) fn tags(html: &str) -> impl Iterator<Item = Tag<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let begin = at + memchr(b'<', html.as_bytes().get(at..)?)?;
            at = begin + 1;
            let name_end = html[at..].find(|c: char| !c.is_ascii_alphanumeric()).map(|length| at + length)?;
            if name_end == at {
                continue;
            }
            let end = close(html, name_end)?;
            let (name, attributes) = (&html[at..name_end], &html[name_end..end]);
            at = end + 1;
            return Some(Tag { name, attributes, end: at });
        }
    })
}

/// Where a tag ends: the first `>` outside of quotes.
fn close(html: &str, from: usize) -> Option<usize> {
    let mut quote = None;
    for (index, byte) in html.as_bytes()[from..].iter().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Some(from + index),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    None
}

impl<'h> Tag<'h> {
    /// What stands between this tag and the next one that closes its like. What is said there is short.
    pub(super) fn content(&self, html: &'h str) -> &'h str {
        const MOST: usize = 4096;
        let rest = &html[self.end..];
        let mut most = rest.len().min(MOST);
        while !rest.is_char_boundary(most) {
            most -= 1;
        }
        let rest = &rest[..most];
        let end = memmem::find(rest.as_bytes(), format!("</{}", self.name).as_bytes());
        &rest[..end.unwrap_or(rest.len())]
    }
}

/// The value of an attribute, decoded.
pub(super) fn attribute(tag: &Tag<'_>, name: &str) -> Option<String> {
    let mut rest = tag.attributes;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '/');
        let end = rest.find(|c: char| c.is_whitespace() || c == '=').unwrap_or(rest.len());
        let (found, after) = rest.split_at(end);
        let after = after.trim_start();
        let (value, next) = match after.strip_prefix('=').map(str::trim_start) {
            None => ("", after),
            Some(value) => match value.chars().next() {
                Some(quote @ ('"' | '\'')) => value[1..].split_once(quote).unwrap_or((&value[1..], "")),
                _ => value.split_at(value.find(char::is_whitespace).unwrap_or(value.len())),
            },
        };
        if found.eq_ignore_ascii_case(name) {
            return Some(decoded(value));
        }
        if next.is_empty() || next.len() >= rest.len() {
            return None;
        }
        rest = next;
    }
}

/// Whether a tag has one of these classes.
pub(super) fn has_class(tag: &Tag<'_>, wanted: &[&str]) -> bool {
    let classes = attribute(tag, "class").unwrap_or_default();
    classes.split_whitespace().any(|class| wanted.contains(&class))
}

/// The words of a piece of HTML.
pub(super) fn text(html: &str) -> String {
    let mut words = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(begin) = memchr(b'<', rest.as_bytes()) {
        words.push_str(&rest[..begin]);
        let inside = &rest[begin + 1..];
        let is_tag = inside.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?'));
        let end = if is_tag { close(inside, 0) } else { None };
        let Some(end) = end else {
            words.push('<');
            rest = inside;
            if is_tag {
                break;
            }
            continue;
        };
        let name = inside[..end].split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        rest = &inside[end + 1..];
        for silent in ["script", "style"] {
            if name.eq_ignore_ascii_case(silent) {
                let over = memmem::find(rest.as_bytes(), format!("</{silent}").as_bytes());
                rest = &rest[over.unwrap_or(rest.len())..];
            }
        }
        // Words on both sides of a line's end are two; those around mere marking are one.
        if !matches!(name.to_ascii_lowercase().as_str(), "b" | "strong" | "em" | "i" | "span" | "mark" | "")
            || matches!(inside.as_bytes().first(), Some(b'!'))
        {
            words.push(' ');
        }
    }
    words.push_str(rest);
    decoded(&words).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text with character references resolved.
fn decoded(text: &str) -> String {
    /// The longest reference that is resolved.
    const MOST: usize = 10;
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = memchr(b'&', rest.as_bytes()) {
        plain.push_str(&rest[..begin]);
        let after = &rest[begin + 1..];
        let end = after.bytes().take(MOST).position(|byte| byte == b';');
        let resolved = end.and_then(|end| Some((character(&after[..end])?, &after[end + 1..])));
        let (c, next) = resolved.unwrap_or(('&', after));
        plain.push(c);
        rest = next;
    }
    plain.push_str(rest);
    plain
}

fn character(name: &str) -> Option<char> {
    let number = |digits: &str, radix: u32| u32::from_str_radix(digits, radix).ok().and_then(char::from_u32);
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some(' '),
        "hellip" => Some('…'),
        "mdash" => Some('—'),
        "ndash" => Some('–'),
        _ => {
            let digits = name.strip_prefix('#')?;
            digits.strip_prefix(['x', 'X']).map_or_else(|| number(digits, 10), |hex| number(hex, 16))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_taken_out_of_their_marking() {
        for (html, expected) in [
            ("The <b>quick</b>er fox", "The quicker fox"),
            ("a<br>b &amp; c&#39;s &#x26; &lt;d&gt;", "a b & c's & <d>"),
            ("1 < 2 &unknown; & more", "1 < 2 &unknown; & more"),
            ("x<script>alert('<b>')</script>y<style>z</style>", "x y"),
            ("open <a href=\"never closed", "open <a href=\"never closed"),
            ("&#55555555;", "&#55555555;"),
            ("é<b>ü</b>", "éü"),
        ] {
            assert_eq!(text(html), expected, "{html}");
        }
    }

    #[test]
    fn attributes_are_found_however_they_are_quoted() {
        let page = r#"<p/><a  class='x y' data-a=1 href="a?b&amp;c>d" disabled>t</a><td class=z>"#;
        let found: Vec<Tag<'_>> = tags(page).collect();
        assert_eq!(found.len(), 3);
        assert_eq!(attribute(&found[1], "href").as_deref(), Some("a?b&c>d"));
        assert!(has_class(&found[1], &["y"]) && !has_class(&found[1], &["z"]) && has_class(&found[2], &["z"]));
        assert_eq!((attribute(&found[1], "disabled").as_deref(), attribute(&found[1], "id")), (Some(""), None));
        assert_eq!(found[1].content(page), "t");
    }

    #[test]
    fn any_page_has_an_answer() {
        for odd in
            ["<", "<<<<", "<a", "<a =", "<a =>", "<a \"", "< a>", "</", "&", "&#", "&#x;", "<a href=é>é", "\u{0}"]
        {
            let page = odd.repeat(1000);
            let _ = (tags(&page).filter_map(|tag| attribute(&tag, "href")).count(), text(&page));
        }
    }
}
