//! As much of TOML as agents are written in: texts of all four kinds, lists of them, numbers, truth values. What is in a
//! table has the table's name before its own.

use serde_json::{Map, Value, json};

/// Reads a file. What is no such TOML is an error with its line.
pub(super) fn read(text: &str) -> Result<Map<String, Value>, String> {
    let mut reader = Reader { rest: text, line: 1 };
    let (mut found, mut table) = (Map::new(), String::new());
    loop {
        reader.blank(true);
        if reader.rest.is_empty() {
            return Ok(found);
        }
        if reader.rest.starts_with('[') {
            let head = reader.until_line_end();
            let name = head.trim_matches(|c: char| c == '[' || c == ']' || c.is_whitespace());
            table = format!("{name}.");
            continue;
        }
        let key = reader.key()?;
        let value = reader.value()?;
        reader.blank(false);
        if !reader.rest.is_empty() && !reader.rest.starts_with('\n') {
            return Err(reader.wrong("there is more on this line than a value"));
        }
        found.insert(format!("{table}{key}"), value);
    }
}

struct Reader<'t> {
    rest: &'t str,
    line: usize,
}

impl<'t> Reader<'t> {
    fn wrong(&self, what: &str) -> String {
        format!("line {}: {what}", self.line)
    }

    /// Takes so many bytes.
    fn take(&mut self, bytes: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    /// Passes over spaces and comments, and over the ends of lines if those say nothing here.
    fn blank(&mut self, lines: bool) {
        loop {
            let space = self.rest.find(|c: char| !(c == ' ' || c == '\t' || c == '\r' || (lines && c == '\n')));
            self.take(space.unwrap_or(self.rest.len()));
            if !self.rest.starts_with('#') {
                return;
            }
            self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
        }
    }

    fn until_line_end(&mut self) -> &'t str {
        self.take(self.rest.find('\n').unwrap_or(self.rest.len()))
    }

    fn key(&mut self) -> Result<String, String> {
        let Some(end) = self.rest.find(['=', '\n']).filter(|end| self.rest[*end..].starts_with('=')) else {
            return Err(self.wrong("a key and a value are expected"));
        };
        let key = self.take(end).trim().trim_matches('"').to_owned();
        self.take(1);
        self.blank(false);
        if key.is_empty() { Err(self.wrong("a key is empty")) } else { Ok(key) }
    }

    fn value(&mut self) -> Result<Value, String> {
        match self.rest {
            rest if rest.starts_with("\"\"\"") => self.quoted("\"\"\"", true).map(Value::from),
            rest if rest.starts_with("'''") => self.quoted("'''", false).map(Value::from),
            rest if rest.starts_with('"') => self.quoted("\"", true).map(Value::from),
            rest if rest.starts_with('\'') => self.quoted("'", false).map(Value::from),
            rest if rest.starts_with('[') => self.list(),
            _ => self.word(),
        }
    }

    fn quoted(&mut self, mark: &str, escapes: bool) -> Result<String, String> {
        self.take(mark.len());
        let many = mark.len() == 3;
        if many {
            // A line break right after the mark is not part of the text.
            let skip = if self.rest.starts_with("\r\n") { 2 } else { usize::from(self.rest.starts_with('\n')) };
            self.take(skip);
        }
        let mut text = String::new();
        loop {
            if self.rest.starts_with(mark) {
                self.take(mark.len());
                return Ok(text);
            }
            let Some(c) = self.rest.chars().next().filter(|c| many || *c != '\n') else {
                return Err(self.wrong("a text does not end"));
            };
            self.take(c.len_utf8());
            if c == '\\' && escapes { self.escape(&mut text)? } else { text.push(c) }
        }
    }

    fn escape(&mut self, text: &mut String) -> Result<(), String> {
        let c = self.rest.chars().next().ok_or_else(|| self.wrong("a text does not end"))?;
        self.take(c.len_utf8());
        let meant = match c {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            '"' | '\\' => c,
            // The line goes on where the next one begins.
            '\n' => {
                self.take(self.rest.len() - self.rest.trim_start().len());
                return Ok(());
            }
            'u' => self.code(4)?,
            'U' => self.code(8)?,
            _ => return Err(self.wrong("there is no such escape")),
        };
        text.push(meant);
        Ok(())
    }

    /// A character by its number.
    fn code(&mut self, digits: usize) -> Result<char, String> {
        let code = self.rest.get(..digits).and_then(|code| u32::from_str_radix(code, 16).ok()).and_then(char::from_u32);
        let c = code.ok_or_else(|| self.wrong("this is no character"))?;
        self.take(digits);
        Ok(c)
    }

    fn list(&mut self) -> Result<Value, String> {
        self.take(1);
        let mut items = Vec::new();
        loop {
            self.blank(true);
            if self.rest.starts_with(']') {
                self.take(1);
                return Ok(Value::Array(items));
            }
            if self.rest.starts_with('[') || self.rest.is_empty() {
                return Err(self.wrong("a list does not end, or holds lists"));
            }
            items.push(self.value()?);
            self.blank(true);
            if self.rest.starts_with(',') {
                self.take(1);
            } else if !self.rest.starts_with(']') {
                return Err(self.wrong("a comma is missing in a list, or its end"));
            }
        }
    }

    fn word(&mut self) -> Result<Value, String> {
        let end = self.rest.find([',', ']', '#', '\n', ' ', '\t', '\r']).unwrap_or(self.rest.len());
        match self.take(end) {
            "true" => Ok(json!(true)),
            "false" => Ok(json!(false)),
            word => {
                let number = word.replace('_', "");
                let whole = number.parse::<i64>().map(Value::from).ok();
                let value = whole.or_else(|| number.parse::<f64>().ok().filter(|n| n.is_finite()).map(Value::from));
                value.ok_or_else(|| self.wrong("this is no value that is understood here"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_agents_are_written_in_is_read() {
        let text = "# head\nname = \"a-b\" # said\nlist = [\n  'x', # one\n  \"y\\u00e9\",\n]\nn = 1_000\nf = 0.5\nb = true\n\
                    p = \"\"\"\nFirst \\\"line\\\".\nSecond, \\\n   # joined.\n\"\"\"\nq = '''raw \\n'''\n[run]\nmax_turns = 5\n";
        let found = Value::Object(read(text).unwrap());
        assert_eq!(
            found,
            json!({"name": "a-b", "list": ["x", "y\u{e9}"], "n": 1000, "f": 0.5, "b": true,
            "p": "First \"line\".\nSecond, # joined.\n", "q": "raw \\n", "run.max_turns": 5})
        );
    }

    #[test]
    fn what_is_wrong_has_a_line() {
        for (text, why) in [
            ("a = 1\nb\n", "line 2: a key"),
            ("a = \"x\n", "line 1: a text does not end"),
            ("a = [1, 2\n", "or its end"),
            ("a = [1,\n", "a list does not end"),
            ("a = [1 2]\n", "comma"),
            ("a = 1979-05-27\n", "no value"),
            ("a = 1 2\n", "more on this line"),
            ("a = \"\\q\"\n", "escape"),
            ("= 1\n", "a key is empty"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
