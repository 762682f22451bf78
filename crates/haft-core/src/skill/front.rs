//! The front matter of a `SKILL.md`: where it ends, and what its YAML says.

use crate::manifest::Flaw;
use crate::manifest::written::parse;
use serde_json::{Map, Value};

/// A file taken apart.
pub(super) struct FrontMatter<'t> {
    /// Between the two lines of dashes.
    pub(super) yaml: &'t str,
    /// Below them.
    pub(super) body: &'t str,
    /// The first line of the body.
    pub(super) body_line: u64,
}

impl<'t> FrontMatter<'t> {
    /// Takes a text apart; none if it has no front matter, or one without an end.
    pub(super) fn split(text: &'t str) -> Option<Self> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let is_border = |line: &str| line.trim_end() == "---";
        let mut lines = text.split_inclusive('\n');
        let first = lines.next().filter(|line| is_border(line))?;
        let (mut end, mut number) = (first.len(), 2);
        for line in lines {
            if is_border(line) {
                let (yaml, body) = (&text[first.len()..end], &text[end + line.len()..]);
                return Some(Self { yaml, body, body_line: number + 1 });
            }
            end += line.len();
            number += 1;
        }
        None
    }

    /// What the YAML says. Values with a colon in them are common, and no YAML; such lines are read as they are, which is
    /// an error all the same: other programs refuse them.
    pub(super) fn parse(&self, flaws: &mut Vec<Flaw>) -> Option<Map<String, Value>> {
        let said = parse(self.yaml).or_else(|flaw| {
            let place = (flaw.line.max(1) + 1, flaw.column.max(1));
            let mended = parse(&quoted(self.yaml)).ok().filter(Value::is_object);
            let hint = if mended.is_some() { "; quote the value" } else { "" };
            flaws.push(
                Flaw::error("skill", "", format!("the front matter is not valid YAML: {}{hint}", flaw.message))
                    .at(place),
            );
            mended.ok_or(())
        });
        match said {
            Ok(Value::Object(map)) => Some(map),
            Ok(_) => {
                flaws.push(Flaw::error("skill", "", "the front matter must be a mapping of keys to values").at((2, 1)));
                None
            }
            Err(()) => None,
        }
    }
}

/// The same with plain values of the outermost keys in quotes.
fn quoted(yaml: &str) -> String {
    let quote = |line: &str| -> Option<String> {
        let (key, value) = line.split_once(": ")?;
        let plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        let value = value.trim();
        let wanted = plain && !value.is_empty() && !value.starts_with(['"', '\'', '[', '{', '|', '>']);
        wanted.then(|| format!("{key}: {}", Value::from(value)))
    };
    yaml.lines().map(|line| quote(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
}
