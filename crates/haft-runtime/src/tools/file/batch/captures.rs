//! Globs that remember what their wildcards matched, so that `*.txt` can become `$1.md`.

use regex::Regex;

/// A glob whose wildcards are numbered from the left.
pub(super) struct CapturingGlob(Regex);

impl CapturingGlob {
    /// Reads a glob: `*` and `?` stay within a path segment, `**/` spans any number of directories.
    pub(super) fn new(glob: &str) -> Result<Self, String> {
        let mut pattern = String::from("^");
        let mut rest = glob.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '*' if rest.peek() == Some(&'*') => {
                    rest.next();
                    if rest.next_if_eq(&'/').is_some() {
                        pattern.push_str("((?:[^/]+/)*)");
                    } else {
                        pattern.push_str("(.*)");
                    }
                }
                '*' => pattern.push_str("([^/]*)"),
                '?' => pattern.push_str("([^/])"),
                '[' | ']' | '{' | '}' => return Err(format!("`{c}` is not supported here; use * ? and **")),
                c => pattern.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
            }
        }
        pattern.push('$');
        Regex::new(&pattern).map(Self).map_err(|error| error.to_string())
    }

    /// What each wildcard matched, if the whole path matches.
    pub(super) fn captures(&self, path: &str) -> Option<Vec<String>> {
        let found = self.0.captures(path)?;
        Some(found.iter().skip(1).map(|part| part.map_or_else(String::new, |part| part.as_str().to_owned())).collect())
    }
}

/// The template with `$1`, `$2` … replaced; `$$` is a dollar sign. Errs with the number of a wildcard that
/// is not there.
pub(super) fn expand(template: &str, captures: &[String]) -> Result<String, usize> {
    let mut text = String::new();
    let mut rest = template.chars().peekable();
    while let Some(c) = rest.next() {
        match (c, rest.peek()) {
            ('$', Some('$')) => {
                rest.next();
                text.push('$');
            }
            ('$', Some(digit)) if digit.is_ascii_digit() => {
                let number = rest.next().and_then(|digit| digit.to_digit(10)).unwrap_or(0) as usize;
                let part = number.checked_sub(1).and_then(|at| captures.get(at));
                text.push_str(part.ok_or(number)?);
            }
            _ => text.push(c),
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_are_remembered() {
        let caught = |glob: &str, path: &str| CapturingGlob::new(glob).unwrap().captures(path);
        assert_eq!(caught("*.txt", "a.txt"), Some(vec!["a".into()]));
        assert_eq!(caught("*.txt", "d/a.txt"), None);
        assert_eq!(caught("**/*.txt", "d/e/a.txt"), Some(vec!["d/e/".into(), "a".into()]));
        assert_eq!(caught("**/*.txt", "a.txt"), Some(vec![String::new(), "a".into()]));
        assert_eq!(expand("$1-$$.md", &["x".into()]).as_deref(), Ok("x-$.md"));
        assert_eq!(expand("$2.md", &["x".into()]), Err(2));
    }
}
