//! `sed`: its scripts can read and write files and run commands.

use crate::shell::deed::{Deed, Task};
use crate::shell::entry::Depth;
use crate::shell::judged::{Doubt, Harm};
use crate::shell::options::{Sorted, sort};
use crate::shell::state::State;
use crate::shell::walk::Walk;
use crate::shell::word::Word;

pub(super) fn read(walk: &mut Walk<'_>, task: &Task<'_>, state: &mut State) -> Deed {
    let mut sorted = sort(task.entry, task.args, false);
    let told = |name: &&crate::shell::options::Found| matches!(name.name.as_str(), "-e" | "--expression");
    let mut scripts: Vec<Word> = sorted.options.iter().filter(told).filter_map(|option| option.value.clone()).collect();
    let from_file = sorted.has("-f") || sorted.has("--file");
    if scripts.is_empty() && !from_file && !sorted.operands.is_empty() {
        let script = sorted.operands.remove(0);
        if script.splits() {
            let why = format!("`{}` may be more than one word", crate::shell::cut(&script.text));
            sorted.doubts.push(Doubt::new(Harm::Unknown, why));
        }
        scripts.push(script);
        sorted.at.remove(0);
    }
    let short = sorted.has("-i");
    let in_place = short || sorted.has("--in-place");
    let tamed = sorted.has("--sandbox");
    let files = std::mem::take(&mut sorted.operands);
    let mut deed = walk.by_words(task, Sorted { at: Vec::new(), ..sorted }, state);
    for file in &files {
        walk.reads(file, Depth::Files, state, &mut deed.doubts);
        if in_place {
            let mut doubts = Vec::new();
            walk.writes(file, state, &mut doubts, "`sed -i`");
            deed.blame(if short { "-i" } else { "--in-place" }, Harm::Writes, doubts);
        }
    }
    deed.operands = files;
    if from_file {
        deed.doubt(Harm::Runs, "what sed is told to do stands in a file");
    }
    let known: Option<Vec<&str>> = scripts.iter().map(Word::literal).collect();
    match known {
        _ if tamed => {}
        None => deed.doubt(Harm::Runs, "what sed is told to do is not known before it runs"),
        Some(texts) => match script(&texts.join("\n")) {
            Err(why) => deed.doubt(Harm::Unknown, why),
            Ok(acts) => acts.into_iter().for_each(|act| does(walk, act, &mut deed, state)),
        },
    }
    deed
}

fn does(walk: &mut Walk<'_>, act: Act, deed: &mut Deed, state: &State) {
    match act {
        Act::Reads(path) => walk.reads(&Word::known(path), Depth::Files, state, &mut deed.doubts),
        Act::Writes(path) => walk.writes(&Word::known(path), state, &mut deed.doubts, "sed's `w`"),
        Act::Runs => deed.doubt(Harm::Runs, "sed's `e` runs a command"),
    }
}

/// What a script does besides printing.
enum Act {
    Reads(String),
    Writes(String),
    Runs,
}

/// Reads a script. What is not understood is an error.
fn script(text: &str) -> Result<Vec<Act>, String> {
    let mut reader = Reader { rest: text, acts: Vec::new() };
    loop {
        reader.rest = reader.rest.trim_start_matches([' ', '\t', '\n', ';', '}']);
        if reader.rest.is_empty() {
            return Ok(reader.acts);
        }
        if reader.command().is_none() {
            return Err(format!("`{}` is not understood as part of a sed script", crate::shell::cut(reader.rest)));
        }
    }
}

struct Reader<'r> {
    rest: &'r str,
    acts: Vec<Act>,
}

impl<'r> Reader<'r> {
    fn command(&mut self) -> Option<()> {
        if self.rest.starts_with('#') {
            self.line();
            return Some(());
        }
        self.addresses()?;
        let command = self.next()?;
        match command {
            '{' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | 'F' => {}
            'l' | 'L' | 'q' | 'Q' => {
                self.rest = self.rest.trim_start_matches([' ', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
            }
            'a' | 'i' | 'c' => self.text(),
            ':' | 'b' | 't' | 'T' | 'v' => {
                self.rest = self.rest.trim_start_matches([' ', '\t']);
                let label = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
                self.rest = self.rest.trim_start_matches(label);
            }
            'r' | 'R' => {
                let path = self.line().trim_start().to_owned();
                self.acts.push(Act::Reads(path));
            }
            'w' | 'W' => {
                let path = self.line().trim_start().to_owned();
                self.acts.push(Act::Writes(path));
            }
            'e' => {
                self.line();
                self.acts.push(Act::Runs);
            }
            's' => self.substitute()?,
            'y' => {
                let delimiter = self.next()?;
                self.until(delimiter)?;
                self.until(delimiter)?;
            }
            _ => return None,
        }
        Some(())
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    /// The rest of the line.
    fn line(&mut self) -> &'r str {
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        let line = &self.rest[..end];
        self.rest = &self.rest[end..];
        line
    }

    /// The text of `a`, `i` and `c`, which goes on after a backslash at the end of a line.
    fn text(&mut self) {
        loop {
            let line = self.line();
            // Two backslashes are one of them, and no more.
            let quotes = line.chars().rev().take_while(|c| *c == '\\').count();
            if quotes % 2 == 0 || self.rest.is_empty() {
                return;
            }
            self.rest = &self.rest[1..];
        }
    }

    /// Text up to a delimiter; a backslash quotes, and in a set (`[/]`) the delimiter stays ordinary for some
    /// seds and not for others, so that is not understood.
    fn until(&mut self, delimiter: char) -> Option<()> {
        let mut in_set = false;
        loop {
            match self.next()? {
                '\\' => drop(self.next()?),
                c if c == delimiter => return (!in_set).then_some(()),
                '[' if delimiter != '[' => in_set = self.rest.contains(']'),
                ']' => in_set = false,
                '\n' if delimiter != '\n' => {}
                _ => {}
            }
        }
    }

    fn addresses(&mut self) -> Option<()> {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t']);
            match self.rest.chars().next()? {
                '0'..='9' | '$' | ',' | '+' | '~' | '!' => drop(self.next()),
                '/' => {
                    self.next();
                    self.until('/')?;
                    self.rest = self.rest.trim_start_matches(['I', 'M']);
                }
                '\\' => {
                    self.next();
                    let delimiter = self.next()?;
                    self.until(delimiter)?;
                    self.rest = self.rest.trim_start_matches(['I', 'M']);
                }
                _ => return Some(()),
            }
        }
    }

    fn substitute(&mut self) -> Option<()> {
        let delimiter = self.next()?;
        if matches!(delimiter, '\n' | '\\') {
            return None;
        }
        self.until(delimiter)?;
        self.replacement(delimiter)?;
        loop {
            match self.rest.chars().next() {
                Some('g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9') => drop(self.next()),
                Some('e') => {
                    self.next();
                    self.acts.push(Act::Runs);
                }
                Some('w') => {
                    self.next();
                    let path = self.line().trim_start().to_owned();
                    self.acts.push(Act::Writes(path));
                    return Some(());
                }
                None | Some(';' | '\n' | '}' | ' ' | '\t' | '#') => return Some(()),
                Some(_) => return None,
            }
        }
    }

    /// Brackets mean nothing in a replacement.
    fn replacement(&mut self, delimiter: char) -> Option<()> {
        loop {
            match self.next()? {
                '\\' => drop(self.next()?),
                c if c == delimiter => return Some(()),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Act, script};

    fn said(text: &str) -> String {
        match script(text) {
            Err(_) => "?".to_owned(),
            Ok(acts) => acts
                .iter()
                .map(|act| match act {
                    Act::Reads(path) => format!("r {path}"),
                    Act::Writes(path) => format!("w {path}"),
                    Act::Runs => "e".to_owned(),
                })
                .collect::<Vec<_>>()
                .join(", "),
        }
    }

    #[test]
    fn scripts_are_read_as_sed_reads_them() {
        for (text, want) in [
            ("s/a/b/", ""),
            ("s/a/b/gI;p", ""),
            ("1,5p", ""),
            ("$!d", ""),
            ("/x/,/y/{s/a/b/;p}", ""),
            (r"s|/usr|\|x|g", ""),
            ("/re/I,+3d", ""),
            ("1~2d;5q", ""),
            ("a\\\nhello w x", ""),
            ("a hello\ns/x/y/w out", "w out"),
            ("y/abc/xyz/", ""),
            (":a;N;$!ba;s/\\n/ /g", ""),
            ("# w x\np", ""),
            ("s/a/b/w out", "w out"),
            ("s/a/b/gw out", "w out"),
            ("w out", "w out"),
            ("/x/w out", "w out"),
            ("W out", "w out"),
            ("1e", "e"),
            ("e touch x", "e"),
            ("s/.*/touch x/e", "e"),
            ("s/a/b/;e", "e"),
            ("r other.txt", "r other.txt"),
            ("{e\n}", "e"),
            ("s/[/]/x/", "?"),
            ("s/a/b", "?"),
            ("k", "?"),
            ("s/a/b/;s/c/d/e", "e"),
            ("\\,x,e", "e"),
            (":a w m", "w m"),
            ("v 4.2 w m", "w m"),
            ("a hello\\\\\nw m", "w m"),
            ("c\\\\\nw m", "w m"),
            ("i\\\nfoo\\\\\nw m", "w m"),
            ("a\\\nfoo\\\nw m", ""),
        ] {
            assert_eq!(said(text), want, "{text}");
        }
    }
}
