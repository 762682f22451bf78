//! What a reader of the page would not see: attributes, inline styles, and the page's own simple style rules.
//!
//! Text that only machines see is where orders for machines are put. What is not understood here counts as seen.

use std::collections::HashSet;

/// As much of a style is read; more is no honest style.
const STYLE_MAX: usize = 8 << 10;
/// So many rules of a page are kept.
const RULES_MAX: usize = 20_000;
/// As much of a page's style blocks is read.
const BLOCKS_MAX: usize = 4 << 20;
/// Further out than any screen, in pixels.
const FAR: f64 = -400.0;

/// Whether an inline style hides its element.
pub(crate) fn style_hides(style: &str) -> bool {
    let mut look = Look::default();
    let style = plain(style);
    for part in style.split(';') {
        let Some((name, value)) = part.split_once(':') else { continue };
        if look.sees(name, value.strip_suffix("!important").unwrap_or(value)) {
            return true;
        }
    }
    look.hides()
}

/// A style without spaces, comments and escapes, in lower case.
fn plain(style: &str) -> String {
    let mut out = String::new();
    let mut rest = &style[..style.floor_char_boundary(STYLE_MAX)];
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '/' if rest.starts_with('*') => rest = rest.split_once("*/").map_or("", |(_, after)| after),
            '\\' => {
                let digits = rest.bytes().take(6).take_while(u8::is_ascii_hexdigit).count();
                let code = u32::from_str_radix(&rest[..digits], 16).ok().and_then(char::from_u32);
                out.extend(code.map(|c| c.to_ascii_lowercase()));
                rest = &rest[digits..];
                rest = if digits > 0 { rest.strip_prefix(' ').unwrap_or(rest) } else { rest };
            }
            c if c.is_whitespace() => {}
            c => out.push(c.to_ascii_lowercase()),
        }
    }
    out
}

/// What several declarations hide together.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a thing that a style says, and they hide only together")]
struct Look {
    color: Option<String>,
    background: Option<String>,
    clips: bool,
    flat: bool,
    thin: bool,
    placed: bool,
    far: bool,
}

impl Look {
    /// Takes in a declaration. Whether it hides by itself.
    fn sees(&mut self, name: &str, value: &str) -> bool {
        let length = || length(value);
        match name {
            "display" => return value == "none",
            "visibility" => return matches!(value, "hidden" | "collapse"),
            "content-visibility" => return value == "hidden",
            "opacity" => return length().is_some_and(|number| number < if value.ends_with('%') { 5.0 } else { 0.05 }),
            "font-size" => return length().is_some_and(|number| number <= 0.0 || value == "1px"),
            "font" => return value.starts_with("0/") || value.starts_with("0px"),
            "text-indent" | "margin-left" | "margin-top" => return length().is_some_and(|number| number < FAR),
            "clip" => return value.starts_with("rect(0") || value.starts_with("rect(1px"),
            "clip-path" => return matches!(value, "inset(50%)" | "inset(100%)") || value.starts_with("circle(0"),
            "transform" => {
                return value.starts_with("scale(0)") || value.contains("(-9999") || value.contains("(-1000");
            }
            "position" => self.placed = matches!(value, "absolute" | "fixed" | "relative"),
            "left" | "top" | "right" | "bottom" => self.far |= length().is_some_and(|number| number < FAR),
            "overflow" => self.clips = matches!(value, "hidden" | "clip"),
            "width" | "max-width" => self.thin |= length().is_some_and(|number| number <= 1.0 && !value.contains('%')),
            "height" | "max-height" => {
                self.flat |= length().is_some_and(|number| number <= 1.0 && !value.contains('%'));
            }
            "color" | "-webkit-text-fill-color" => self.color = Some(color(value)),
            "background" | "background-color" => self.background = Some(color(value)),
            _ => {}
        }
        false
    }

    fn hides(&self) -> bool {
        let unseen = self.color.is_some() && self.color == self.background;
        let clear = self.color.as_deref() == Some("transparent");
        unseen || clear || (self.clips && (self.thin || self.flat)) || (self.placed && self.far)
    }
}

/// The number that a length begins with.
fn length(value: &str) -> Option<f64> {
    let end = value.find(|c: char| !(c.is_ascii_digit() || matches!(c, '-' | '+' | '.'))).unwrap_or(value.len());
    value[..end].parse().ok()
}

/// A colour in one spelling, as far as spellings are known.
fn color(value: &str) -> String {
    let wide = |hex: &str| hex.chars().flat_map(|c| [c, c]).collect::<String>();
    match value {
        "white" => "ffffff".to_owned(),
        "black" => "000000".to_owned(),
        "transparent" => value.to_owned(),
        _ => match value.strip_prefix('#') {
            Some(hex) if hex.len() == 3 && hex.is_ascii() => wide(hex),
            Some(hex) if hex.len() == 8 && hex.is_ascii() && hex.ends_with("00") => "transparent".to_owned(),
            Some(hex) => hex.to_owned(),
            None => numbers(value),
        },
    }
}

/// `rgb(…)` and `rgba(…)`.
fn numbers(value: &str) -> String {
    let inner = value.split_once('(').filter(|(name, _)| name.starts_with("rgb")).map(|(_, inner)| inner);
    let Some(inner) = inner else { return value.to_owned() };
    let parts: Vec<f64> = inner.trim_end_matches(')').split([',', '/']).filter_map(length).collect();
    match parts.as_slice() {
        [_, _, _, alpha] if *alpha < 0.05 => "transparent".to_owned(),
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast of a float saturates")]
        [r, g, b, ..] => format!("{:02x}{:02x}{:02x}", *r as u8, *g as u8, *b as u8),
        _ => value.to_owned(),
    }
}

/// What the page's own style blocks hide: names of elements, classes and ids.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    selectors: HashSet<String>,
}

impl Rules {
    /// Reads every style block of a page, wherever it stands.
    pub(crate) fn read(html: &str) -> Self {
        let mut rules = Self::default();
        let (mut from, mut room) = (0, BLOCKS_MAX);
        for at in memchr::memchr_iter(b'<', html.as_bytes()) {
            let opens = html.as_bytes().get(at + 1..at + 6).is_some_and(|name| name.eq_ignore_ascii_case(b"style"));
            if at < from || !opens {
                continue;
            }
            let Some(begin) = memchr::memchr(b'>', &html.as_bytes()[at..]).map(|end| at + end + 1) else { break };
            let end = block_end(html, begin);
            from = end;
            let taken = &html[begin..html.floor_char_boundary(end.min(begin + room))];
            room -= taken.len();
            rules.take(taken);
        }
        rules
    }

    fn take(&mut self, css: &str) {
        let mut skipped = 0_usize;
        let mut begin = 0;
        for (at, mark) in css.match_indices(['{', '}']) {
            let part = css[begin..at].trim();
            begin = at + 1;
            match mark {
                // What holds only under conditions is not known to hold.
                "{" if skipped > 0 || (part.starts_with('@') && !always(part)) => skipped += 1,
                "{" => {
                    let body = css[begin..].split(['}', '{']).next().unwrap_or_default();
                    if hides_plainly(body) {
                        self.keep(part);
                    }
                }
                _ => skipped = skipped.saturating_sub(1),
            }
        }
    }

    fn keep(&mut self, selectors: &str) {
        for selector in selectors.rsplit("*/").next().unwrap_or_default().split(',').map(str::trim) {
            let simple = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '#');
            if !selector.is_empty() && self.selectors.len() < RULES_MAX && selector.chars().all(simple) {
                self.selectors.insert(selector.to_owned());
            }
        }
    }

    /// Whether a rule hides this element.
    pub(crate) fn hide(&self, name: &str, id: &str, classes: &str) -> bool {
        if self.selectors.is_empty() {
            return false;
        }
        let known = |selector: &str| self.selectors.contains(selector);
        let either = |mark: char, word: &str| known(&format!("{mark}{word}")) || known(&format!("{name}{mark}{word}"));
        known(name)
            || (!id.is_empty() && either('#', id))
            || classes.split_ascii_whitespace().any(|class| either('.', class))
    }
}

/// Where a style block that begins here ends: at its own end tag and at no other, as in a browser.
fn block_end(html: &str, begin: usize) -> usize {
    let rest = &html.as_bytes()[begin..];
    let ends = |at: &usize| {
        let name = rest.get(at + 2..at + 7).is_some_and(|name| name.eq_ignore_ascii_case(b"style"));
        name && rest.get(at + 7).is_none_or(|next| matches!(next, b'>' | b'/') || next.is_ascii_whitespace())
    };
    memchr::memmem::find_iter(rest, b"</").find(ends).map_or(html.len(), |at| begin + at)
}

/// Whether a group of rules holds on every screen.
fn always(group: &str) -> bool {
    let group = group.to_ascii_lowercase();
    let plain = !group.contains('(') && !group.contains("print");
    (group.starts_with("@media") && plain) || group.starts_with("@layer") || group.starts_with("@supports")
}

fn hides_plainly(body: &str) -> bool {
    let body = plain(body);
    body.split(';').filter_map(|part| part.split_once(':')).any(|(name, value)| {
        matches!(
            (name, value.strip_suffix("!important").unwrap_or(value)),
            ("display", "none") | ("visibility", "hidden")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trick_is_seen_through() {
        for style in [
            "display:none",
            "DISPLAY : None !important",
            "d\\69 splay: none",
            "color:red;/* x */display/**/:none",
            "visibility: hidden",
            "opacity: 0",
            "opacity:.01",
            "opacity: 0%",
            "font-size:0px",
            "font-size: 0",
            "position:absolute; left:-9999px",
            "position: fixed; top: -1000em",
            "text-indent:-9999px",
            "color:#fff;background:#FFFFFF",
            "color: white; background-color: rgb(255, 255, 255)",
            "color: rgba(0,0,0,0)",
            "color: transparent",
            "width:0;height:0;overflow:hidden",
            "height: 1px; overflow: hidden",
            "clip: rect(0 0 0 0)",
            "clip-path: inset(100%)",
            "transform: scale(0)",
        ] {
            assert!(style_hides(style), "{style}");
        }
    }

    #[test]
    fn what_is_only_styled_is_seen() {
        for style in [
            "",
            "display:block",
            "opacity:0.5",
            "opacity: 100%",
            "font-size: 0.8em",
            "color:#fff;background:#000",
            "color:white",
            "left:-9999px",
            "width:0",
            "width:100%;height:50%;overflow:hidden",
            "text-indent:-1em",
            "margin-left:-15px",
            ":;:;::",
            "\\",
        ] {
            assert!(!style_hides(style), "{style}");
        }
    }

    #[test]
    fn simple_rules_of_the_page_hide() {
        let page = "<STYLE type=x>.a, p.b , #c{color:red;display:none} @media print{.d{display:none}}
            @media screen { .e { visibility : hidden } } .f .g{display:none} .h{display:block}</style><p>
            <style>/* .x */ aside { display: none !important } .i{opacity:0}</style>";
        let rules = Rules::read(page);
        let hides = |name: &str, id: &str, class: &str| rules.hide(name, id, class);
        assert!(hides("div", "", "z a") && hides("p", "", "b") && hides("div", "c", "") && hides("div", "", "e"));
        assert!(hides("aside", "", ""));
        for class in ["b", "d", "f", "g", "h", "i", "x", "A"] {
            assert!(!hides("div", "", class), "{class}");
        }
    }

    #[test]
    fn a_style_block_ends_at_its_own_end_tag() {
        let page = "<style>/*</*/ .a{display:none} /* </p> </styles> */ .b{display:none}</STYLE ><p>.c{display:none}
            <style>.d{display:none}</style/>.e{display:none}<style>.f{display:none} /* open";
        let rules = Rules::read(page);
        for class in ["a", "b", "d", "f"] {
            assert!(rules.hide("div", "", class), "{class}");
        }
        for class in ["c", "e"] {
            assert!(!rules.hide("div", "", class), "{class}");
        }
    }

    #[test]
    fn a_block_that_is_cut_inside_a_character_counts_up_to_there() {
        for shift in 0..3 {
            let filler = "漢".repeat(BLOCKS_MAX / 3);
            let page = format!("<style>.a{{display:none}}/*{}{filler}*/</style>", "x".repeat(shift));
            assert!(Rules::read(&page).hide("div", "", "a"), "{shift}");
        }
    }
}
