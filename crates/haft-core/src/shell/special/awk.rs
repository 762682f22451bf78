//! `awk`: its programs can write files, and run and talk to others.

use crate::shell::deed::{Deed, Task};
use crate::shell::entry::Depth;
use crate::shell::judged::Harm;
use crate::shell::options::{Sorted, sort};
use crate::shell::state::State;
use crate::shell::walk::Walk;
use crate::shell::word::Word;

pub(super) fn read(walk: &mut Walk<'_>, task: &Task<'_>, state: &mut State) -> Deed {
    let mut sorted = sort(task.entry, task.args, false);
    let told = |option: &&crate::shell::options::Found| matches!(option.name.as_str(), "-e" | "--source");
    let mut programs: Vec<Word> =
        sorted.options.iter().filter(told).filter_map(|option| option.value.clone()).collect();
    let from_file = sorted.has("-f") || sorted.has("--file");
    if programs.is_empty() && !from_file && !sorted.operands.is_empty() {
        programs.push(sorted.operands.remove(0));
        sorted.at.remove(0);
    }
    // `name=value` among the files sets a variable.
    let sets =
        |word: &Word| word.start().split_once('=').is_some_and(|(name, _)| !name.is_empty() && !name.contains('/'));
    sorted.operands.retain(|word| !sets(word));
    let files = std::mem::take(&mut sorted.operands);
    let mut deed = walk.by_words(task, Sorted { at: Vec::new(), ..sorted }, state);
    for file in &files {
        walk.reads(file, Depth::Files, state, &mut deed.doubts);
    }
    deed.operands = files;
    if from_file {
        deed.doubt(Harm::Runs, "what awk is told to do stands in a file");
    }
    let known: Option<Vec<&str>> = programs.iter().map(Word::literal).collect();
    match known {
        None => deed.doubt(Harm::Runs, "what awk is told to do is not known before it runs"),
        Some(texts) => {
            if let Some((harm, why)) = harm(&texts.join("\n")) {
                deed.doubt(harm, why);
            }
        }
    }
    deed
}

/// What a program does besides reading and printing.
fn harm(program: &str) -> Option<(Harm, &'static str)> {
    if program.contains("/inet") {
        return Some((Harm::Sends, "awk connects to somewhere"));
    }
    // Whether a slash divides or begins a pattern cannot always be told, and strings hang on it.
    let slashes = program.matches('/').count();
    let unclear = slashes > 1 && program.contains('"');
    let mut reader = Reader { rest: program, value_before: false, printing: false, depth: 0 };
    while let Some(token) = reader.token() {
        match token {
            Token::Divides if unclear => return Some((Harm::Unknown, "the awk program is not understood")),
            Token::Bad => return Some((Harm::Unknown, "the awk program is not understood")),
            Token::Pipe => return Some((Harm::Runs, "awk's `|` runs a command")),
            Token::Into => return Some((Harm::Writes, "awk's `>` writes a file")),
            Token::Name("system") => return Some((Harm::Runs, "awk's `system` runs a command")),
            Token::Name("getline") => return Some((Harm::Unknown, "awk's `getline` may read another file")),
            Token::Name("ARGV" | "ARGC") => return Some((Harm::Unknown, "awk says by itself what it reads")),
            Token::At => return Some((Harm::Runs, "awk's `@` loads or calls something that is not known")),
            Token::Name(_) | Token::Divides | Token::Other => {}
        }
    }
    None
}

enum Token<'t> {
    Name(&'t str),
    Pipe,
    Into,
    At,
    Other,
    Divides,
    Bad,
}

struct Reader<'r> {
    rest: &'r str,
    /// Whether what stands before is a value, so that a slash divides.
    value_before: bool,
    /// Inside the words of `print`, outside brackets, where `>` writes.
    printing: bool,
    depth: usize,
}

impl<'r> Reader<'r> {
    fn token(&mut self) -> Option<Token<'r>> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r']);
        let c = self.rest.chars().next()?;
        let (mut value, mut length, mut token) = (false, c.len_utf8(), Token::Other);
        match c {
            '#' => length = self.rest.find('\n').unwrap_or(self.rest.len()),
            '"' => {
                let Some(end) = quoted(&self.rest[1..], '"') else { return Some(Token::Bad) };
                (value, length) = (true, end + 2);
            }
            '/' if !self.value_before => {
                let Some(end) = regex(&self.rest[1..]) else { return Some(Token::Bad) };
                (value, length) = (true, end + 2);
            }
            // A line may go on after a comma, an operator or a backslash: only these surely end a statement.
            ';' | '{' | '}' => self.printing = false,
            '(' | '[' => self.depth += usize::from(self.printing),
            ')' | ']' => {
                self.depth = self.depth.saturating_sub(1);
                value = true;
            }
            '/' => token = Token::Divides,
            '|' if self.rest.starts_with("||") => length = 2,
            '|' => token = Token::Pipe,
            '>' if self.rest.starts_with(">=") && !self.printing => length = 2,
            '>' if self.printing && self.depth == 0 => token = Token::Into,
            '@' => token = Token::At,
            '$' => {}
            c if c.is_ascii_digit() || c == '.' => {
                length = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(self.rest.len());
                value = true;
            }
            c if c.is_ascii_alphabetic() || c == '_' => {
                length = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
                let name = &self.rest[..length];
                value = !matches!(name, "print" | "printf" | "return" | "in" | "case" | "if" | "while" | "do" | "else");
                if matches!(name, "print" | "printf") {
                    (self.printing, self.depth) = (true, 0);
                }
                token = Token::Name(name);
            }
            '+' | '-' if self.rest.starts_with("++") || self.rest.starts_with("--") => {
                length = 2;
                value = self.value_before;
            }
            _ => {}
        }
        if !matches!(c, '#' | '\\') {
            self.value_before = value;
        }
        self.rest = self.rest.get(length..).unwrap_or_default();
        Some(token)
    }
}

/// Where a string ends.
fn quoted(text: &str, quote: char) -> Option<usize> {
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '\n' => return None,
            c if c == quote => return Some(at),
            _ => {}
        }
    }
    None
}

/// Where a regular expression ends; a slash in a set is read in two ways, so that is not understood.
fn regex(text: &str) -> Option<usize> {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '\n' => return None,
            '/' => return Some(at),
            '[' => {
                let _ = chars.next_if(|(_, c)| *c == '^');
                let _ = chars.next_if(|(_, c)| *c == ']');
                loop {
                    match chars.next()?.1 {
                        ']' => break,
                        '/' | '\n' | '[' => return None,
                        '\\' => drop(chars.next()),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::harm;

    #[test]
    fn programs_are_read_as_awk_reads_them() {
        for program in [
            "{print $1}",
            "{print $1, $2}",
            "$1 > 5 {print}",
            "$1 > 5",
            "/a|b/ {print}",
            "NR==1 || NR==3",
            "BEGIN{FS=\",\"} {s+=$2} END{print s/NR}",
            "{ print ($1 > 2) }",
            "{if ($1 > 3) print $2}",
            "{printf \"%s > %s | x\\n\", $1, $2}",
            "# print > \"x\"\n{print}",
            "length($0) > 80",
            "{a[$1]++} END{for (k in a) print k, a[k]}",
            "{gsub(/>/, \"|\"); print}",
            "$NF ~ /x/ && $1 >= 2",
        ] {
            assert!(harm(program).is_none(), "{program}");
        }
        for program in [
            "{print > \"out\"}",
            "{print $1 >> \"out\"}",
            "{print $1>\"out\"}",
            "BEGIN{system(\"id\")}",
            "{print | \"sh\"}",
            "BEGIN{\"id\" | getline x}",
            "BEGIN{while ((getline l < \"/etc/passwd\") > 0) print l}",
            "{printf(\"%s\", $1) > \"out\"}",
            "BEGIN{s=\"/inet/tcp/0/h/80\"; print |& s}",
            "@load \"x\"",
            "{print (1) (2) > \"x\"}",
            "BEGIN{f=\"system\"; @f(\"id\")}",
            "{x = 4 / 2; print x > \"f/g\"}",
            "{print \"unterminated}",
            "BEGIN{print \"x\" \\\n > \"m\"}",
            "BEGIN{print 1,\n 2 > \"m\"}",
            "BEGIN{print 1 &&\n 2 > \"m\"}",
            "BEGIN{if (1) /\"/ ; print \"x\" > \"m\" ; /\"/}",
            "BEGIN{exit /\"/ } END{print \"x\" > \"m\" ; /\"/}",
            "!/[]/\"]/ {print \"x\" > \"m\"} /\"/",
            "BEGIN{ARGV[1]=\"/etc/passwd\";ARGC=2}{print}",
        ] {
            assert!(harm(program).is_some(), "{program}");
        }
    }
}
