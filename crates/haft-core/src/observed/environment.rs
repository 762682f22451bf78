//! Commands that show the environment they run in.
//!
//! haft's own shell gives a command an environment without secrets. An agent's own shell gives it the agent's, and
//! nothing masks what it prints. So a command that would otherwise run unasked is looked at once more here: by its text,
//! and strictly, because a variable can be reached in many ways.

use crate::shell::{Command, Judged};

/// Variables that never hold a secret.
const NON_SECRET_VARIABLES: &[&str] = &["HOME", "PWD", "USER", "SHELL", "LANG", "TERM", "PATH", "TMPDIR"];

/// Why a command may show the environment; none if it does not.
pub fn shows_environment(text: &str, judged: &Judged) -> Option<String> {
    if let Some(name) = judged.commands.iter().find_map(printing_command) {
        return Some(format!("`{name}` shows the agent's environment, which nothing masks"));
    }
    // A text that is evaluated a second time (`eval`, `sh -c`) can assemble the name of a variable.
    let is_evaluated_twice = text.contains("eval") || text.contains(" -c");
    let own = if is_evaluated_twice { None } else { loop_variable(text) };
    let shown = |name: &str| NON_SECRET_VARIABLES.contains(&name) || own == Some(name);
    may_expand_other_variable(text, is_evaluated_twice, &shown)
        .then(|| "it may show variables of the agent's environment, which nothing masks".to_owned())
}

/// The name of a command that prints variables.
fn printing_command(command: &Command) -> Option<&str> {
    let name = command.name.as_deref()?;
    let args = &command.args;
    let option = |arg: &str| arg.starts_with(['-', '+']);
    let shows = match name {
        "printenv" | "compgen" => true,
        // Anything except `env NAME=VALUE… PROGRAM …`.
        "env" => {
            let program = args.iter().find(|arg| !arg.shown().contains('='));
            program.is_none_or(|arg| option(arg.shown()) || arg.shown().is_empty())
        }
        "set" => !args.first().is_some_and(|arg| option(arg.shown())) || args.iter().any(|arg| arg.shown() == "-o"),
        "export" | "declare" | "typeset" | "readonly" | "local" => {
            args.iter().all(|arg| option(arg.shown()))
                || args.iter().any(|arg| option(arg.shown()) && arg.shown().contains('p'))
        }
        "ps" => args.iter().any(|arg| !arg.shown().starts_with('-') && arg.shown().contains('e')),
        "jq" | "yq" | "gojq" => args.iter().any(|arg| arg.shown().to_ascii_lowercase().contains("env")),
        "awk" | "gawk" | "mawk" | "nawk" => args.iter().any(|arg| arg.shown().contains("ENVIRON")),
        _ => return None,
    };
    shows.then_some(name)
}

/// The variable that a text sets before anything else, and uses nowhere but in its loop: `for NAME in WORD …; do … done`.
/// Any other assignment may be for one command, in another shell or never made, so that the variable is what it was.
fn loop_variable(text: &str) -> Option<&str> {
    let (name, items) = text.trim_start().strip_prefix("for ")?.trim_start().split_once(" in ")?;
    let given = items.trim_start().starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '*' | '.' | '/'));
    let after = text.split_once("done").map_or("", |(_, after)| after);
    (given && is_name(name) && !text.contains("nullglob") && !after.contains(name)).then_some(name)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_name_byte) && !text.starts_with(|c: char| c.is_ascii_digit())
}

const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether a text may expand a variable that is not one of those that may be shown. Quotes are not read: a text in
/// single quotes may be for a shell as well.
fn may_expand_other_variable(text: &str, is_evaluated_twice: bool, shown: &dyn Fn(&str) -> bool) -> bool {
    let arithmetic = text.split("((").skip(1).any(|rest| rest.contains(|c: char| c.is_ascii_alphabetic()));
    let compares = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v "].iter().any(|word| text.contains(word));
    if arithmetic || (text.contains("[[") && compares) {
        return true;
    }
    if is_evaluated_twice && text.contains('\\') && text.contains('$') {
        return true;
    }
    text.match_indices('$').any(|(at, _)| {
        let rest = &text[at + 1..];
        if let Some(inner) = rest.strip_prefix('{') {
            let end = inner.bytes().position(|byte| !is_name_byte(byte)).unwrap_or(inner.len());
            let after = &inner[end..];
            let plain = after.starts_with(['}', '#', '%', '/'])
                || [":-", ":+", ":=", ":?", "-", "+"].iter().any(|op| after.starts_with(op));
            return !(plain && shown(&inner[..end]));
        }
        let end = rest.bytes().position(|byte| !is_name_byte(byte)).unwrap_or(rest.len());
        let name = &rest[..end];
        match name.bytes().next() {
            Some(first) if first.is_ascii_digit() => is_evaluated_twice,
            Some(_) => !shown(name),
            None => !harmless_after(rest, is_evaluated_twice),
        }
    })
}

/// Whether what follows a `$` makes no variable of it.
fn harmless_after(rest: &str, is_evaluated_twice: bool) -> bool {
    let mut next = rest.chars();
    match next.next() {
        None => true,
        // The end of a quoted pattern.
        Some('\'' | '"') => {
            !is_evaluated_twice && next.next().is_none_or(|c| c.is_whitespace() || matches!(c, '|' | ';' | ')' | '&'))
        }
        Some('@' | '*' | '?' | '#' | '!' | '-' | '$') => !is_evaluated_twice,
        Some(c) => c.is_whitespace() || matches!(c, '(' | ')' | '|' | '/' | ';' | '&' | ','),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::{Ground, Table, judge};

    fn shows(text: &str) -> bool {
        let judged = judge(text, &Ground { cwd: "/p", home: Some("/home/u"), table: Table::shipped() });
        shows_environment(text, &judged).is_some()
    }

    #[test]
    fn command_that_prints_variables_is_known() {
        for text in [
            "env",
            "env -0",
            "printenv",
            "printenv HOME",
            "ls; env | sort",
            "command env",
            "env A=b",
            "set",
            "set -o posix; set",
            "export",
            "export -p",
            "declare -p",
            "declare -x",
            "readonly -p",
            "compgen -v",
            "echo $AWS_SECRET_ACCESS_KEY",
            "echo ${TOKEN}",
            "echo \"${TOKEN:0:4}\"",
            "echo ${!A*}",
            "echo ${HOME:-$TOKEN}",
            "echo ${#TOKEN}",
            "bash -c 'echo $TOKEN'",
            "eval 'echo $TOKEN'",
            "eval $'echo \\x24TOKEN'",
            "a='$'; bash -c \"echo ${a}TOKEN\"",
            "cat <<< $TOKEN",
            "cat <<X\n$TOKEN\nX",
            "echo $((TOKEN))",
            "grep x $TOKEN",
            "ps auxe",
            "jq -n env",
            "TOKEN=1 ls; echo $OTHER",
            "TOKEN=1 ls; echo $TOKEN",
            "for TOKEN in; do :; done; echo $TOKEN",
            "for TOKEN in a; do :; done | cat; echo $TOKEN",
            "echo $TOKEN; for TOKEN in a; do :; done",
            "for a in $TOKEN; do echo $a; done",
        ] {
            assert!(shows(text), "{text}");
        }
    }

    #[test]
    fn command_that_prints_no_variables_is_let_pass() {
        for text in [
            "ls -la",
            "echo hi",
            "echo $HOME $PWD ${USER}",
            "grep 'x$' a.txt | head -1",
            "grep -E '^(a|b$)' a.txt",
            "sed -n '$p' a.txt | cat",
            "echo $?",
            "for f in a b; do cat $f; done",
            "cat $(ls)",
            "ps aux",
            "set -e; ls",
            "awk '{print $1}' a.txt",
            "env LANG=C ls",
        ] {
            // `$p` in a script for sed cannot be told from a variable.
            assert_eq!(shows(text), text.starts_with("sed"), "{text}");
        }
    }
}
