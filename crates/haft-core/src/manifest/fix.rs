//! Mending what is mechanical, on the text itself: comments, order and quoting of everything else stay as they are.
//!
//! A change is made on the lines, read again, and kept only if the text then says exactly what was meant and nothing
//! else has changed. What cannot be done so is left to a person.

use super::flaw::{Flaw, escape};
use super::written::{Written, parse};
use serde_json::{Map, Value};
use std::ops::Range;

/// How one flaw is mended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fix {
    /// Indent by spaces.
    Tabs,
    /// Say this instead.
    Set {
        /// Where.
        pointer: String,
        /// What.
        value: Value,
    },
    /// Say this as well.
    Add {
        /// The key that it comes after.
        after: String,
        /// Its own key, beside that one.
        key: &'static str,
        /// What.
        value: Value,
    },
    /// Leave this out.
    Remove {
        /// A key and its value.
        pointer: String,
    },
}

/// The text with every flaw mended that has a fix, and how many were. Mending it again changes nothing.
pub fn mend(text: &str, flaws: &[Flaw]) -> (String, usize) {
    let (mut text, mut mended) = (text.to_owned(), 0);
    for fix in flaws.iter().filter_map(|flaw| flaw.fix.as_ref()) {
        if let Some(better) = fix.apply(&text) {
            text = better;
            mended += 1;
        }
    }
    (text, mended)
}

impl Fix {
    /// The text with this changed. None if that cannot be done, or changes nothing.
    pub fn apply(&self, text: &str) -> Option<String> {
        if *self == Self::Tabs {
            return untabbed(text);
        }
        let before = parse(text).ok()?;
        let mut meant = before.clone();
        let lines = Lines::of(text);
        let better = match self {
            Self::Tabs => None,
            Self::Set { pointer, value } => {
                *meant.pointer_mut(pointer)? = value.clone();
                lines.set(pointer, value)
            }
            Self::Add { after, key, value } => {
                let (parent, _) = after.rsplit_once('/')?;
                meant.pointer_mut(parent)?.as_object_mut()?.insert((*key).to_owned(), value.clone());
                lines.add(after, key, value)
            }
            Self::Remove { pointer } => {
                let (parent, key) = pointer.rsplit_once('/')?;
                let around = meant.pointer_mut(parent)?.as_object_mut()?;
                around.shift_remove(&key.replace("~1", "/").replace("~0", "~"))?;
                // Without its last key, what is left would be nothing instead of an empty map.
                if around.is_empty() { lines.set(parent, &Value::Object(Map::new())) } else { lines.remove(pointer) }
            }
        }?;
        (meant != before && parse(&better).ok()? == meant).then_some(better)
    }
}

/// Tabs that indent, as two spaces each or as four; whichever can be read.
fn untabbed(text: &str) -> Option<String> {
    let with = |spaces: &str| {
        let line = |line: &str| {
            let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
            format!("{}{}", line[..indent].replace('\t', spaces), &line[indent..])
        };
        text.split('\n').map(line).collect::<Vec<_>>().join("\n")
    };
    ["  ", "    "].into_iter().map(with).find(|better| better != text && parse(better).is_ok())
}

/// A text, by its lines and places.
struct Lines<'t> {
    text: &'t str,
    written: Written<'t>,
    /// Where each line begins, and behind them where the text ends.
    begins: Vec<usize>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Self {
        let begins = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
        let mut begins: Vec<usize> = begins.collect();
        begins.push(text.len());
        Self { text, written: Written::new(text), begins }
    }

    fn line(&self, index: usize) -> Option<&'t str> {
        self.text.get(*self.begins.get(index)?..*self.begins.get(index + 1)?)
    }

    /// The byte at a line and column.
    fn byte(&self, (line, column): (u64, u64)) -> Option<usize> {
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        let text = self.line(index)?;
        let within =
            text.char_indices().nth(usize::try_from(column).ok()?.checked_sub(1)?).map_or(text.len(), |(at, _)| at);
        Some(self.begins.get(index)? + within)
    }

    /// The key's line and indentation, if the key begins its line.
    fn block_key(&self, pointer: &str) -> Option<(usize, usize)> {
        let (line, column) = self.written.places().get(pointer)?.key?;
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        let indent = usize::try_from(column).ok()?.checked_sub(1)?;
        let before = self.line(index)?.get(..indent)?;
        before.bytes().all(|byte| byte == b' ').then_some((index, indent))
    }

    /// The line behind a key's value: the next one that is not indented more than the key, without the blank lines and
    /// the comments in front of it. A list may stand as far left as its key.
    fn behind(&self, (index, indent): (usize, usize)) -> usize {
        let mut end = index + 1;
        for next in index + 1..self.begins.len() - 1 {
            let line = self.line(next).unwrap_or_default();
            let content = line.trim();
            let depth = line.len() - line.trim_start_matches(' ').len();
            let inside = depth > indent || (depth == indent && (content == "-" || content.starts_with("- ")));
            match content {
                "" => {}
                _ if inside => end = next + 1,
                comment if comment.starts_with('#') => {}
                _ => break,
            }
        }
        end
    }

    fn splice(&self, range: Range<usize>, with: &str) -> Option<String> {
        Some(format!("{}{with}{}", self.text.get(..range.start)?, self.text.get(range.end..)?))
    }

    fn set(&self, pointer: &str, value: &Value) -> Option<String> {
        let spot = self.written.places().get(pointer)?;
        if let Some(bytes) = &spot.bytes {
            return self.splice(bytes.clone(), &inline(value));
        }
        let begin = self.byte(spot.value)?;
        if self.text.get(begin..)?.starts_with(['[', '{']) {
            return self.splice(begin..self.closing(begin)?, &inline(value));
        }
        let key = self.block_key(pointer)?;
        let (first, last) = (self.line(key.0)?, self.behind(key));
        let colon = first.find(':')? + 1;
        let rest = first.get(colon..)?.trim_end();
        let end = if first.ends_with("\r\n") { "\r\n" } else { "\n" };
        // Only a comment may stand behind the colon of what goes on below.
        if !rest.is_empty() && !rest.trim_start().starts_with('#') {
            return None;
        }
        let comments: String = self.comments(key.0 + 1..last).collect();
        let said = format!("{} {}{rest}{end}{comments}", first.get(..colon)?, inline(value));
        self.splice(*self.begins.get(key.0)?..*self.begins.get(last)?, &said)
    }

    fn add(&self, after: &str, key: &str, value: &Value) -> Option<String> {
        let said = format!("{key}: {}", inline(value));
        if let Some((index, indent)) = self.block_key(after) {
            let at = *self.begins.get(self.behind((index, indent)))?;
            let end = if self.line(index)?.ends_with("\r\n") { "\r\n" } else { "\n" };
            let open = if self.text.get(..at)?.ends_with('\n') { "" } else { end };
            return self.splice(at..at, &format!("{open}{}{said}{end}", " ".repeat(indent)));
        }
        let at = self.written.places().get(after)?.bytes.clone()?.end;
        self.splice(at..at, &format!(", {said}"))
    }

    fn remove(&self, pointer: &str) -> Option<String> {
        let key = self.block_key(pointer)?;
        let behind = self.behind(key);
        // As far left as the key was: further right they could become a part of a text before them.
        let pad = " ".repeat(key.1);
        let comments: String =
            self.comments(key.0 + 1..behind).map(|line| format!("{pad}{}", line.trim_start())).collect();
        self.splice(*self.begins.get(key.0)?..*self.begins.get(behind)?, &comments)
    }

    /// The comments that have lines of their own among these.
    fn comments(&self, lines: Range<usize>) -> impl Iterator<Item = &'t str> {
        lines.filter_map(|index| self.line(index)).filter(|line| line.trim_start().starts_with('#'))
    }

    /// Behind the bracket that closes the one at a byte.
    fn closing(&self, begin: usize) -> Option<usize> {
        let (mut depth, mut quote) = (0_usize, None);
        let mut bytes = self.text.bytes().enumerate().skip(begin);
        while let Some((at, byte)) = bytes.next() {
            match (quote, byte) {
                (Some(b'"'), b'\\') => {
                    bytes.next();
                }
                (Some(open), byte) if open == byte => quote = None,
                (None, b'"' | b'\'') => quote = Some(byte),
                (None, b'[' | b'{') => depth += 1,
                (None, b']' | b'}') => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

/// A value on one line. JSON is YAML; a plain word needs no quotes.
fn inline(value: &Value) -> String {
    let plain = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
            && !matches!(
                text.to_ascii_lowercase().as_str(),
                "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
            )
    };
    match value {
        Value::String(text) if plain(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The pointer to a key of what another pointer leads to.
pub(super) fn below(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", escape(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TEXT: &str = "# head\nname: old   # the name\npermissions:\n  network: true # why\n  fs:\n    read:\n    - a\n    # b\n    - b\n    write: [\"x]\", y] # both\n  secrets:\n    # one\n    A:\n      type: string\n    B: {type: string}\n\n# foot\napproval: {required: true}\n";

    fn set(pointer: &str, value: Value) -> Option<String> {
        Fix::Set { pointer: pointer.to_owned(), value }.apply(TEXT)
    }

    fn remove(text: &str, pointer: &str) -> Option<String> {
        Fix::Remove { pointer: pointer.to_owned() }.apply(text)
    }

    #[test]
    fn one_value_changes_and_every_comment_stays() {
        assert!(set("/name", json!("new-name")).unwrap().contains("name: new-name   # the name\n"));
        assert!(set("/permissions/network", json!(false)).unwrap().contains("  network: false # why\n"));
        assert!(set("/permissions/fs/write", json!([])).unwrap().contains("    write: [] # both\n"));
        assert!(set("/permissions/fs/read", json!([])).unwrap().contains("    read: []\n    # b\n    write:"));
        assert_eq!(set("/name", json!("old")), None, "nothing to do");
        assert_eq!(set("/nothing", json!(1)), None);
    }

    #[test]
    fn keys_go_and_come() {
        let less = remove(TEXT, "/permissions/secrets/A").unwrap();
        assert!(less.contains("  secrets:\n    # one\n    B: {type: string}\n\n# foot"), "{less}");
        let none = remove(&less, "/permissions/secrets/B").unwrap();
        assert!(none.contains("  secrets: {}\n    # one\n\n# foot\napproval"), "{none}");
        let add = Fix::Add { after: "/approval/required".to_owned(), key: "reason", value: json!("It: \"asks\"") };
        let more = add.apply(&none).unwrap();
        assert!(more.ends_with("approval: {required: true, reason: \"It: \\\"asks\\\"\"}\n"), "{more}");
        assert_eq!(add.apply(&more), None, "once is enough");
        let block = add.apply("approval:\r\n  required: true # yes\r\nother: 1\r\n").unwrap();
        assert!(block.contains("# yes\r\n  reason: \"It"), "{block}");
        assert!(add.apply("approval:\n  required: true").unwrap().ends_with("true\n  reason: \"It: \\\"asks\\\"\"\n"));
    }

    #[test]
    fn a_comment_outlives_what_it_stands_in() {
        let text = "a: |\n  text\nsecrets:\n  A:\n    # why\n    type: string # goes\n  B: {}\n";
        assert_eq!(remove(text, "/secrets/A").unwrap(), "a: |\n  text\nsecrets:\n  # why\n  B: {}\n");
        let last = "secrets:\n  # nobody uses it\n  A: {}\nb: 1\n";
        assert_eq!(remove(last, "/secrets/A").unwrap(), "secrets: {}\n  # nobody uses it\nb: 1\n");
    }

    #[test]
    fn tabs_become_spaces_where_they_indent() {
        let fixed = Fix::Tabs.apply("a:\n\tb: \"x\ty\"\n\tc:\n\t\td: 1\n").unwrap();
        assert_eq!(fixed, "a:\n  b: \"x\ty\"\n  c:\n    d: 1\n");
        assert_eq!(Fix::Tabs.apply(&fixed), None);
    }
}
