//! `{{path}}` in a command for the shell. Whatever stands for it, a file's name or a page from the web, is one word there,
//! in quotes that are put around it here. Where quotes would not hold, it may not stand: the check is of the command as it
//! is written, before anything has run, and what it does not follow it refuses.

use super::words::{Piece, paths, pieces};
use crate::dialect::elsewhere;
use serde_json::{Map, Value};

/// The parameter that holds the command.
pub const COMMAND: &str = "command";

/// Why something may not stand in a command where it does.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unquotable {
    /// There is nothing else.
    #[error(
        "`{{{{{0}}}}}` would be the whole command, so that whatever it holds is run; write the command itself, and let it \
         be a word of that"
    )]
    Whole(String),
    /// It has quotes around it already.
    #[error("`{{{{{0}}}}}` stands in quotes; leave them away: it is put in as one quoted word")]
    Quoted(String),
    /// It comes after something with which quotes mean something else.
    #[error(
        "`{{{{{0}}}}}` comes after `{1}`, where quotes may not hold it together; write it before that, or in a step of \
         its own, or say `literal: true` if it means itself"
    )]
    After(String, &'static str),
    /// Something else in the command may work out what it holds, quotes or not.
    #[error(
        "`{{{{{0}}}}}` stands in a command with `{1}`, which may work out what it is given; put one of them into a step of \
         its own, or say `literal: true` if it means itself"
    )]
    With(String, &'static str),
    /// What looks like a space is none to a shell.
    #[error("`{{{{{0}}}}}` stands in a command with the character {1:?}, which looks like nothing; take it out")]
    Odd(String, char),
}

/// Commands that take what they are given for names, numbers or commands, and so work it out.
const EVALUATING: [&str; 13] = [
    "let",
    "declare",
    "typeset",
    "local",
    "read",
    "readarray",
    "mapfile",
    "unset",
    "eval",
    "trap",
    "getopts",
    "compgen",
    "complete",
];
/// What works out the value of a variable wherever it is met, also after it was set.
const ARITHMETIC: [&str; 5] = ["$((", "$[", "((", "[", "${"];

/// What parts words for a shell; nothing else does.
fn parts_words(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n')
}

/// A command in a text that works out what it is given.
fn evaluating(text: &str) -> Option<&'static str> {
    let mut before = "";
    for word in text.split(|c: char| parts_words(c) || ";&|()`".contains(c)).filter(|word| !word.is_empty()) {
        // Quotes and escapes within a name are no disguise.
        let plain: String = word.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
        if let Some(found) =
            EVALUATING.into_iter().find(|known| plain == *known || word.ends_with(&format!("{{{known}")))
        {
            return Some(found);
        }
        if plain.starts_with("-v") && matches!(before, "[" | "test" | "printf") {
            return Some("-v");
        }
        before = word;
    }
    None
}

/// What a tool is called here, however a plan says it.
fn canonical(tool: &str) -> &str {
    match tool {
        "shell_exec" => "shell.exec",
        "process_start" => "process.start",
        "tool_call" => "tool.call",
        other => elsewhere(other).first().map_or(other, |entry| entry.canonical()),
    }
}

/// Whether a tool gives its command to a shell.
pub fn is_shell(tool: &str, args: &Map<String, Value>) -> bool {
    match canonical(tool) {
        "shell.exec" => true,
        // With its arguments apart it is run as it is.
        "process.start" => !args.get("args").is_some_and(Value::is_array),
        _ => false,
    }
}

/// Under which name a tool that calls another one takes what that is given.
pub(super) fn inner(tool: &str) -> Option<&'static str> {
    (canonical(tool) == "tool.call").then_some(if tool == "glee_tool" { "params" } else { "args" })
}

/// What may not stand where it does in the command of a call, and which argument that is in.
pub fn unquotable(tool: &str, args: &Map<String, Value>) -> Option<(String, Unquotable)> {
    let command = args.get(COMMAND).and_then(Value::as_str).filter(|_| is_shell(tool, args));
    if let Some(why) = command.and_then(|text| parts(text).err()) {
        return Some((COMMAND.to_owned(), why));
    }
    let (held, called) = (inner(tool)?, args.get("name")?.as_str()?);
    match args.get(held)? {
        Value::Object(args) => unquotable(called, args).map(|(at, why)| (format!("{held}.{at}"), why)),
        other if is_shell(called, &Map::new()) => {
            paths(other).first().map(|path| (held.to_owned(), Unquotable::Whole((*path).to_owned())))
        }
        _ => None,
    }
}

/// The pieces of a command in which all that is filled in can be quoted.
pub fn parts(text: &str) -> Result<Vec<Piece<'_>>, Unquotable> {
    let pieces = pieces(text);
    let blank = |piece: &Piece<'_>| matches!(piece, Piece::Text(text) if text.trim().is_empty());
    let mut said = pieces.iter().filter(|piece| !blank(piece));
    let first = pieces.iter().find_map(|piece| match piece {
        Piece::Path(path) => Some(*path),
        Piece::Text(_) => None,
    });
    if let Some(path) = first.filter(|_| said.all(|piece| matches!(piece, Piece::Path(_)))) {
        return Err(Unquotable::Whole(path.to_owned()));
    }
    let mut scan = Scan { place: Place::Plain, before: '\n', lost: None, arithmetic: None };
    for piece in &pieces {
        match piece {
            Piece::Text(text) => scan.read(text),
            Piece::Path(path) => scan.fits(path)?,
        }
    }
    let Some(path) = first.map(str::to_owned) else { return Ok(pieces) };
    let odd = |c: &char| (c.is_whitespace() || c.is_control()) && !parts_words(*c);
    if let Some(c) = text.chars().find(odd) {
        return Err(Unquotable::Odd(path, c));
    }
    let works_out = scan.arithmetic.or_else(|| evaluating(text));
    works_out.map_or(Ok(pieces), |what| Err(Unquotable::With(path, what)))
}

/// One word for a shell, whatever is in it.
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Plain,
    Single,
    Double,
    Comment,
}

/// How far a command was read, and whether quotes can be put there.
struct Scan {
    place: Place,
    /// The last character, as far as that says what comes next. Something that is filled in counts as a letter.
    before: char,
    /// What was met after which it is not followed any more.
    lost: Option<&'static str>,
    /// What was met that works out the value of a variable.
    arithmetic: Option<&'static str>,
}

impl Scan {
    fn read(&mut self, text: &str) {
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let length = match self.place {
                Place::Plain => self.plain(c, rest),
                Place::Double => self.double(c, rest),
                Place::Single if c == '\'' => self.to(Place::Plain, c),
                Place::Comment if c == '\n' => self.to(Place::Plain, c),
                Place::Single | Place::Comment => c.len_utf8(),
            };
            rest = &rest[length..];
        }
    }

    fn fits(&mut self, path: &str) -> Result<(), Unquotable> {
        let after = |what| Err(Unquotable::After(path.to_owned(), what));
        match (self.lost, self.place, self.before) {
            (Some(what), ..) => after(what),
            (_, Place::Single | Place::Double, _) => Err(Unquotable::Quoted(path.to_owned())),
            (_, Place::Comment, _) => after("#"),
            (_, _, '$') => after("$"),
            (_, _, '\\') => after("\\"),
            _ => {
                self.before = 'x';
                Ok(())
            }
        }
    }

    fn to(&mut self, place: Place, c: char) -> usize {
        (self.place, self.before) = (place, c);
        c.len_utf8()
    }

    /// From here on it is not known what is a word.
    fn lose(&mut self, what: &'static str) -> usize {
        self.lost.get_or_insert(what);
        if ARITHMETIC.contains(&what) {
            self.arithmetic.get_or_insert(what);
        }
        self.before = 'x';
        what.len()
    }

    /// What is escaped is a letter. At the end of a text it escapes what is filled in. A line that goes on is as if it had
    /// not ended, which is followed between words alone.
    fn escape(&mut self, rest: &str) -> usize {
        let next = rest.chars().nth(1);
        if next == Some('\n') {
            let between = parts_words(self.before) || self.place == Place::Double && self.before != '$';
            return if between { 2 } else { self.lose("\\") + 1 };
        }
        self.before = if next.is_some() { 'x' } else { '\\' };
        1 + next.map_or(0, char::len_utf8)
    }

    fn plain(&mut self, c: char, rest: &str) -> usize {
        let starts = parts_words(self.before) || ";&|()<>".contains(self.before);
        let met = |what: &'static str| rest.starts_with(what).then_some(what);
        match c {
            '\\' => return self.escape(rest),
            '\'' => return self.to(Place::Single, c),
            '"' => return self.to(Place::Double, c),
            '#' if starts => return self.to(Place::Comment, c),
            '`' => return self.lose("`"),
            '$' => {
                if let Some(what) = ["$((", "$[", "$'"].into_iter().find_map(met) {
                    return self.lose(what);
                }
                return self.variable(rest);
            }
            '<' if rest.starts_with("<<<") => {
                self.before = '<';
                return 3;
            }
            _ => {}
        }
        if let Some(what) = ["<<", "(("].into_iter().find_map(met) {
            return self.lose(what);
        }
        // After what is wrong in a list for an array, a shell goes on with the next line.
        if c == '(' && self.before == '=' {
            return self.lose("(");
        }
        // Where a copy of a stream goes is expanded twice, unless it is just a number.
        if let Some(to) = rest.strip_prefix(">&").or_else(|| rest.strip_prefix("<&")) {
            let number = to.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(to.len());
            if number == 0 || !to[number..].starts_with(|c: char| parts_words(c) || ";&|)".contains(c)) {
                return self.lose(">&");
            }
            self.before = 'x';
            return 2 + number;
        }
        // A test in double brackets and an index of an array work out what they are given; `[` alone does not.
        if c == '[' && !(starts && rest[1..].starts_with(parts_words)) {
            return self.lose("[");
        }
        self.before = c;
        c.len_utf8()
    }

    fn double(&mut self, c: char, rest: &str) -> usize {
        match c {
            '\\' => self.escape(rest),
            '"' => self.to(Place::Plain, c),
            '`' => self.lose("`"),
            '$' if rest.starts_with("$(") => self.lose("$("),
            '$' if rest.starts_with("$[") => self.lose("$["),
            '$' => self.variable(rest),
            _ => {
                self.before = c;
                c.len_utf8()
            }
        }
    }

    /// `$name` and `${name}` are followed, and nothing that is more than that.
    fn variable(&mut self, rest: &str) -> usize {
        let Some(inner) = rest.strip_prefix("${") else {
            self.before = '$';
            return 1;
        };
        let name = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inner.len());
        if name == 0 || !inner[name..].starts_with('}') {
            return self.lose("${");
        }
        self.before = '}';
        2 + name + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_word_may_stand_wherever_quotes_hold() {
        for command in [
            "ls -l {{x}}",
            "cp {{a}} \"$HOME/it's\" && echo done",
            "echo 'one two' {{x}}.txt >{{y}}",
            "tar cf {{x}}.tar dir{{y}} # a note",
            "for f in *.rs; do grep -n {{x}} \"$f\"; done",
            "a={{x}} ${HOME}/bin/run \"${USER}\" {{a}}{{b}}",
            "echo $(wc -l {{x}}) \\\"{{y}}",
            "cat <<< {{x}}",
            "run {{x}} 2>&1 | tail -n {{y}} >&2; exec 3>&- {{z}}",
            "echo {{x}}#{{y}} $# {{z}} [ -e {{x}} ]",
            "# what it is for\necho {{x}}",
            "cp -r \\\n  {{x}} \"a\\\nb\" \\\n  {{y}}",
            "echo '{{not a path}}' {{x}}",
            "docker ps --format '{{.Names}}'",
        ] {
            assert!(parts(command).is_ok(), "{command}: {:?}", parts(command));
        }
    }

    #[test]
    fn where_they_would_not_it_is_refused() {
        let said = |command: &str| parts(command).unwrap_err();
        for whole in ["{{x}}", " {{ x }}\n", "{{x}} {{y}}", "{{x}}{{y}}"] {
            assert_eq!(said(whole), Unquotable::Whole("x".to_owned()), "{whole}");
        }
        for quoted in
            ["echo \"{{x}}\"", "echo '{{x}}'", "echo \"a\"'b {{x}}'", "echo \"it's {{x}}\"", "echo \"\\\" {{x}}\""]
        {
            assert_eq!(said(quoted), Unquotable::Quoted("x".to_owned()), "{quoted}");
        }
        for (command, what) in [
            ("echo \\{{x}}", "\\"),
            ("echo ${{x}}", "$"),
            ("echo ${v:-{{x}}}", "${"),
            ("echo ${a[{{x}}]}", "${"),
            ("echo `date {{x}}`", "`"),
            ("cat <<EOF\n{{x}}\nEOF", "<<"),
            ("cat <<-'EOF'\n{{x}}\nEOF", "<<"),
            ("echo \"$(echo \"{{x}}\")\"", "$("),
            ("echo $(( {{x}} ))", "$(("),
            ("echo $[{{x}}]", "$["),
            ("(( {{x}} ))", "(("),
            ("[[ {{x}} -eq 1 ]]", "["),
            ("a=([{{x}}]=1)", "("),
            ("a=(;{{x}}", "("),
            ("ls [{{x}}]", "["),
            ("echo a >&{{x}}", ">&"),
            ("echo a >& {{x}}", ">&"),
            ("echo a 2>&1{{x}}", ">&"),
            ("a[{{x}}]=1", "["),
            ("echo $'it\\'s' {{x}}", "$'"),
            ("echo a # {{x}}", "#"),
            ("#{{x}}\nls", "#"),
            ("\\\n#{{x}}\nls", "#"),
            ("echo $\\\n(( {{x}} ))", "\\"),
            ("echo a\\\n#{{x}}", "\\"),
        ] {
            assert_eq!(said(command), Unquotable::After("x".to_owned(), what), "{command}");
        }
        for (command, what) in [
            ("n={{x}}; echo $((n+1))", "$(("),
            ("n={{x}}; [[ $n -gt 3 ]]", "["),
            ("n={{x}}; for ((i=0;i<n;i++)); do :; done", "(("),
            ("for n in {{x}}; do echo ${s:n}; done", "${"),
            ("let n={{x}}", "let"),
            ("declare -i n={{x}}", "declare"),
            ("true;l\\et n={{x}}", "let"),
            ("[ -v {{x}} ]", "-v"),
            ("test -v {{x}}", "-v"),
            ("printf -v {{x}} 1", "-v"),
            ("read {{x}} < a", "read"),
            ("unset {{x}}", "unset"),
            ("eval echo {{x}}", "eval"),
        ] {
            assert_eq!(said(command), Unquotable::With("x".to_owned(), what), "{command}");
        }
        for (command, c) in [
            ("echo a\u{a0}# it's\necho {{x}} # '", '\u{a0}'),
            ("echo a >&2\u{a0}{{x}}", '\u{a0}'),
            ("echo a\r# it's\necho {{x}} # '", '\r'),
            ("echo a\u{c}# {{x}}", '\u{c}'),
        ] {
            let odd = Unquotable::Odd("x".to_owned(), c);
            assert!(
                said(command) == odd || matches!(said(command), Unquotable::After(..) | Unquotable::Quoted(_)),
                "{command:?}"
            );
        }
        let hint = said("echo \"{{x}}\"").to_string();
        assert_eq!(hint, "`{{x}}` stands in quotes; leave them away: it is put in as one quoted word");
    }

    #[test]
    fn a_shell_is_known_by_every_name() {
        let none = Map::new();
        for tool in ["shell.exec", "shell_exec", "Bash", "bash", "process.start", "process_start"] {
            assert!(is_shell(tool, &none), "{tool}");
        }
        assert!(!is_shell("file.write", &none));
        assert!(!is_shell("process.start", json!({"args": ["a"]}).as_object().unwrap()));
        let at = |tool: &str, args: Value| unquotable(tool, args.as_object().unwrap()).map(|(at, _)| at);
        let command = json!({"command": "{{x}}"});
        assert_eq!(at("bash", command.clone()).as_deref(), Some("command"));
        assert_eq!(at("tool.call", json!({"name": "shell.exec", "args": command})).as_deref(), Some("args.command"));
        assert_eq!(at("glee_tool", json!({"name": "bash", "params": "{{x}}"})).as_deref(), Some("params"));
        assert_eq!(at("tool.call", json!({"name": "file.read", "args": "{{x}}"})), None);
    }
}
